//! The next safe thing to do after an error, as data: text and commands. Whoever shows it words the
//! commands: for a shell it is [`Display`], and one place quotes their arguments.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use crate::text::word;

/// What to do next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// Its parts, in order.
    pub parts: Vec<Part>,
}

/// A part of a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Words for people.
    Text(String),
    /// A command to run.
    Command(Command),
}

/// A command: its program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command(Vec<Piece>);

/// A piece of a command, or of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// What is written as it is.
    Form(Cow<'static, str>),
    /// A value, not quoted.
    Value(String),
}

/// Makes a hint from a text, with values for its `{}`. Between backticks, a text that begins with
/// `git` or `ls` is a command, of which the values are arguments, or parts of one.
#[macro_export]
macro_rules! hint {
    ($text:literal $(, $value:expr)* $(,)?) => {{
        // Compares the number of values with the text.
        if false {
            let _ = format_args!($text $(, $value)*);
        }
        $crate::hint::Hint::new($text, &[$(&$value as &dyn std::fmt::Display),*])
    }};
}

/// The programs that hints name.
const PROGRAMS: [&str; 2] = ["git ", "ls "];

impl Hint {
    /// What [`hint!`] makes of its arguments.
    pub fn new(text: &'static str, values: &[&dyn Display]) -> Self {
        let mut hint = Self::default();
        let mut values = values.iter().map(ToString::to_string);
        for (part, is_command) in spans(text) {
            let mut forms = part.split("{}");
            let mut pieces: Vec<Piece> = forms.next().map(form).into_iter().collect();
            for rest in forms {
                pieces.extend(values.next().map(Piece::Value));
                pieces.push(form(rest));
            }
            if is_command {
                hint.parts.push(Part::Command(Command(pieces)));
            } else {
                let pieces = pieces.into_iter().map(|piece| match piece {
                    Piece::Form(form) => form.into_owned(),
                    Piece::Value(value) => value,
                });
                hint.text(&pieces.collect::<String>());
            }
        }
        hint
    }

    fn text(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(last)) => *last += text,
            _ => self.parts.push(Part::Text(text.to_owned())),
        }
    }

    /// Continues it.
    #[must_use]
    pub fn and(mut self, more: impl Into<Self>) -> Self {
        for part in more.into().parts {
            match part {
                Part::Text(text) => self.text(&text),
                command @ Part::Command(_) => self.parts.push(command),
            }
        }
        self
    }

    /// Whether it names a command.
    pub fn names_command(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| matches!(part, Part::Command(_)))
    }

    /// Adds a command to see unless it names one.
    #[must_use]
    pub fn or_see(self, command: impl Into<Self>) -> Self {
        if self.names_command() {
            return self;
        }
        let see = if self.parts.is_empty() {
            "see "
        } else {
            "; see "
        };
        self.and(see).and(command)
    }
}

/// A text in which values, if any, are quoted for a shell already.
impl<T: AsRef<str>> From<T> for Hint {
    fn from(text: T) -> Self {
        let mut hint = Self::default();
        for (part, is_command) in spans(text.as_ref()) {
            if is_command {
                let pieces = vec![form(part.to_owned())];
                hint.parts.push(Part::Command(Command(pieces)));
            } else {
                hint.text(part);
            }
        }
        hint
    }
}

impl Display for Hint {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => formatter.write_str(text),
            Part::Command(command) => write!(formatter, "`{command}`"),
        })
    }
}

impl Command {
    /// Adds an option with its value.
    pub fn option(&mut self, name: &'static str, value: impl Display) {
        let value = Piece::Value(value.to_string());
        self.0.extend([form(" "), form(name), form(" "), value]);
    }
}

/// As it is typed in a shell.
impl Display for Command {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Form(form) => formatter.write_str(form),
            Piece::Value(value) => formatter.write_str(&word(value)),
        })
    }
}

fn form(text: impl Into<Cow<'static, str>>) -> Piece {
    Piece::Form(text.into())
}

/// The parts of a text, and whether each is a command, without its backticks.
fn spans(text: &str) -> Vec<(&str, bool)> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('`') {
        let span = &after[..end_of_command(after)];
        let closed = (before.len() + span.len() + 2).min(rest.len());
        let is_command = rest[..closed].len() == before.len() + span.len() + 2
            && PROGRAMS.iter().any(|program| span.starts_with(program));
        if is_command {
            found.extend([(before, false), (span, true)]);
        } else {
            found.push((&rest[..closed], false));
        }
        rest = &rest[closed..];
    }
    found.push((rest, false));
    found.retain(|(part, _)| !part.is_empty());
    found
}

/// Where a command ends that a backtick begins: at the next one outside single quotes, within
/// which a foreign name may have some.
pub fn end_of_command(text: &str) -> usize {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '`' if !quoted => return at,
            _ => {}
        }
    }
    text.find('`').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::{Hint, Part};

    /// The commands of a hint.
    fn commands(hint: &Hint) -> Vec<String> {
        let commands = hint.parts.iter().filter_map(|part| match part {
            Part::Command(command) => Some(command.to_string()),
            Part::Text(_) => None,
        });
        commands.collect()
    }

    #[test]
    fn values_are_arguments_of_commands_and_words_of_texts() {
        let hint = hint!(
            "{} is gone: `git branch {} {}` restores it, or `git --git-dir={} status`, in {}",
            "the branch",
            "a `b`",
            7,
            "/it's {}",
            "two words"
        );
        assert_eq!(
            hint.to_string(),
            "the branch is gone: `git branch 'a `b`' 7` restores it, or \
             `git --git-dir='/it'\\''s {}' status`, in two words"
        );
        let found = [
            "git branch 'a `b`' 7",
            "git --git-dir='/it'\\''s {}' status",
        ];
        assert_eq!(commands(&hint), found);
        assert_eq!(commands(&Hint::from(hint.to_string())), found);
    }

    #[test]
    fn only_programs_are_commands() {
        let named = hint!("check `ls -ld`").and("; then see `git status`");
        assert_eq!(commands(&named), ["ls -ld", "git status"]);
        let unnamed = hint!("put `git` on the PATH, or raise `version` or `{}`", "git x");
        assert!(!unnamed.names_command(), "{unnamed:?}");
        assert_eq!(unnamed.parts.len(), 1);
    }

    #[test]
    fn an_option_more_is_quoted_too() {
        let mut hint = hint!("`git handoff show {}`", "7.1");
        for part in &mut hint.parts {
            if let Part::Command(command) = part {
                command.option("--branch", "a b");
            }
        }
        assert_eq!(hint.to_string(), "`git handoff show 7.1 --branch 'a b'`");
    }
}
