//! Hints: the next safe thing to do after an error, as text and commands. The caller renders the
//! commands; their [`Display`] form is ready for a shell, with every argument quoted.

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
    /// Text for people.
    Text(String),
    /// A command to run.
    Command(Command),
    /// The failed command again, with this option (name, value) added.
    Again(&'static str, String),
}

/// A command line, with its arguments quoted for a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command(String);

/// Makes a hint from a text, with values for its `{}`. Text in backticks that begins with `git` or
/// `ls` is a command, whose values are quoted as arguments.
#[macro_export]
macro_rules! hint {
    ($text:literal $(, $value:expr)* $(,)?) => {{
        // Checks the number of values at compile time.
        if false {
            let _ = format_args!($text $(, $value)*);
        }
        $crate::hint::Hint::new($text, &[$(&$value as &dyn std::fmt::Display),*])
    }};
}

/// The programs that hints may name.
const PROGRAMS: [&str; 2] = ["git ", "ls "];

impl Hint {
    /// Implements [`hint!`].
    pub fn new(text: &str, values: &[&dyn Display]) -> Self {
        let mut hint = Self::default();
        let mut values = values.iter().map(ToString::to_string).peekable();
        for (part, is_command) in spans(text) {
            let mut filled = String::new();
            for (at, piece) in part.split("{}").enumerate() {
                filled += &match values.next_if(|_| at > 0) {
                    Some(value) if is_command => word(&value).into_owned(),
                    Some(value) => value,
                    None if at > 0 => "{}".to_owned(),
                    None => String::new(),
                };
                filled += piece;
            }
            hint.add(filled, is_command);
        }
        hint
    }

    fn add(&mut self, part: String, is_command: bool) {
        match self.parts.last_mut() {
            _ if is_command => self.parts.push(Part::Command(Command(part))),
            Some(Part::Text(last)) => *last += &part,
            _ => self.parts.push(Part::Text(part)),
        }
    }

    /// Appends to the hint.
    #[must_use]
    pub fn and(mut self, more: impl Into<Self>) -> Self {
        for part in more.into().parts {
            match part {
                Part::Text(text) => self.add(text, false),
                other => self.parts.push(other),
            }
        }
        self
    }

    /// Appends the failed command with this option added.
    #[must_use]
    pub fn and_again(mut self, name: &'static str, value: impl Display) -> Self {
        self.parts.push(Part::Again(name, value.to_string()));
        self
    }

    /// Appends "see `command`", unless the hint already contains a command.
    #[must_use]
    pub fn or_see(self, command: impl Into<Self>) -> Self {
        let is_command = |part: &Part| matches!(part, Part::Command(_));
        match &self.parts[..] {
            [] => Self::from("see ").and(command),
            parts if parts.iter().any(is_command) => self,
            _ => self.and("; see ").and(command),
        }
    }
}

/// Any values in the text must be quoted for a shell already.
impl<T: AsRef<str>> From<T> for Hint {
    fn from(text: T) -> Self {
        Self::new(text.as_ref(), &[])
    }
}

impl Display for Hint {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => formatter.write_str(text),
            Part::Command(command) => write!(formatter, "`{command}`"),
            Part::Again(name, value) => write!(formatter, "add {name} {value}"),
        })
    }
}

impl Command {
    /// The words of the command line, unquoted.
    pub fn words(&self) -> Vec<String> {
        shlex::split(&self.0).unwrap_or_default()
    }

    /// Replaces a word where it first stands.
    pub fn replace_word(&mut self, from: &str, to: &str) {
        self.0 = self.0.replacen(from, to, 1);
    }

    /// Adds an option without a value.
    pub fn flag(&mut self, name: &str) {
        self.0 += &format!(" {name}");
    }

    /// Adds an option with its value.
    pub fn option(&mut self, name: &str, value: &str) {
        self.0 += &format!(" {name} {}", word(value));
    }

    /// Replaces the first value of an option.
    pub fn instead(&mut self, name: &str, value: &str) {
        let name = format!(" {name} ");
        if let Some(at) = self.0.find(&name) {
            let from = at + name.len();
            let to = self.0[from..]
                .find(' ')
                .map_or(self.0.len(), |end| from + end);
            self.0.replace_range(from..to, &word(value));
        }
    }
}

impl From<&str> for Command {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Display for Command {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Splits a text into spans, each with whether it is a command; a command loses its backticks.
fn spans(text: &str) -> Vec<(&str, bool)> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('`') {
        let span = &after[..end_of_command(after)];
        let closed = (before.len() + span.len() + 2).min(rest.len());
        let is_command = rest[..closed].ends_with('`')
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

/// The end of a command that starts after a backtick: the next backtick outside single quotes.
/// Quoted values, such as file names, may contain backticks.
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

    /// The words of each command in a hint.
    fn commands(hint: &Hint) -> Vec<String> {
        let commands = hint.parts.iter().filter_map(|part| match part {
            Part::Command(command) => Some(command.words().join("|")),
            Part::Text(_) | Part::Again(..) => None,
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
        let found = ["git|branch|a `b`|7", "git|--git-dir=/it's {}|status"];
        assert_eq!(commands(&hint), found);
        assert_eq!(commands(&Hint::from(hint.to_string())), found);
    }

    #[test]
    fn only_programs_are_commands() {
        let named = hint!("check `ls -ld`").and("; then see `git status`");
        assert_eq!(commands(&named), ["ls|-ld", "git|status"]);
        assert_eq!(named.clone().or_see("`git log`"), named);
        let unnamed = hint!("put `git` on the PATH, or raise `version` or `{}`", "git x");
        let shown = unnamed.to_string();
        assert_eq!(unnamed.parts, [Part::Text(shown.clone())]);
        let see = hint!("`git handoff explain {}`", "x");
        let both = format!("{shown}; see `git handoff explain x`");
        assert_eq!(unnamed.or_see(see.clone()).to_string(), both);
        assert_eq!(
            Hint::default().or_see(see).to_string(),
            "see `git handoff explain x`"
        );
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
