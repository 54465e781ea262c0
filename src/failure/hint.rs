//! The next safe thing to do after a failure.

/// What the hint says, and whether that suffices.
#[derive(Debug)]
pub(crate) struct Hint {
    pub text: String,
    /// Whether it names a command to run. Where it names none, one is added.
    pub names_command: bool,
}

impl Hint {
    /// A hint that names no command.
    pub(crate) fn advice(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            names_command: false,
        }
    }

    /// Adds a command to it, with the words around.
    pub(crate) fn add(&mut self, text: &str) {
        self.text += text;
        self.names_command = true;
    }

    /// Whether it names a command exactly if it says so, which debug builds insist on.
    pub(super) fn is_true(&self) -> bool {
        let found = ["`git ", "`ls "]
            .iter()
            .any(|start| self.text.contains(start));
        found == self.names_command
    }

    /// Puts it into a sentence.
    #[must_use]
    pub(crate) fn map(self, sentence: impl FnOnce(&str) -> String) -> Self {
        Self {
            text: sentence(&self.text),
            ..self
        }
    }
}

/// A hint that names a command.
impl<T: Into<String>> From<T> for Hint {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            names_command: true,
        }
    }
}
