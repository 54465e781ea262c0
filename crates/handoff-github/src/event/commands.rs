//! Commands in comments and reviews: lines that begin with `/handoff`.

use handoff::base::hexadecimal;
use handoff::base::ids::HandoffId;
use handoff::protocol::Command;
use sha2::{Digest, Sha256};

use super::markdown::statements;

pub(super) const NAME: &str = "/handoff";

/// The maximum number of commands in a comment; any further ones are refused together.
const MOST: usize = 10;

/// The maximum size of a command, in bytes.
const LONGEST: usize = 16 * 1024;

/// A command as written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// Its lines: one, or each line of an answer.
    pub(super) lines: Vec<String>,
    /// The parsed command, or why it can't be parsed.
    pub(super) asked: Result<Asked, Unclear>,
}

/// A parsed command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) command: Command,
    /// The handoff that it names, if any.
    pub(super) id: Option<HandoffId>,
    /// The rest of each line.
    pub(super) rest: Vec<String>,
}

/// Why a command can't be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unclear {
    #[error("it names no command")]
    None,
    #[error("there is no such command")]
    Unknown,
    #[error("it has more than {LONGEST} bytes")]
    TooLong,
    #[error("a comment has at most {MOST} commands")]
    TooMany,
}

impl Said {
    /// A digest of its lines.
    pub(super) fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for line in &self.lines {
            digest.update(line.split_whitespace().collect::<Vec<_>>().join(" "));
            digest.update([b'\n']);
        }
        hexadecimal(&digest.finalize())[..16].to_owned()
    }

    /// Whether another line continues this answer.
    fn goes_on(&self, further: &Asked) -> bool {
        let Ok(own) = &self.asked else { return false };
        let same = own.id.is_none() || further.id.is_none() || own.id == further.id;
        own.command == Command::Answer && further.command == Command::Answer && same
    }
}

/// The commands of a text, in order. Lines that answer the same handoff are one command.
pub(super) fn commands(text: &str) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    for line in statements(text) {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let asked = match is_command(name) {
            Some(true) => asked(rest),
            Some(false) => Err(Unclear::Unknown),
            None => continue,
        };
        let goes_on = |asked: &Asked| all.iter().rposition(|said| said.goes_on(asked));
        match asked.as_ref().ok().and_then(goes_on) {
            Some(at) => join(&mut all[at], line, asked),
            None => all.push(Said {
                lines: vec![line.to_owned()],
                asked,
            }),
        }
    }
    for (at, said) in all.iter_mut().enumerate() {
        if said.lines.iter().map(String::len).sum::<usize>() > LONGEST {
            said.asked = Err(Unclear::TooLong);
        }
        if at >= MOST {
            said.asked = Err(Unclear::TooMany);
        }
    }
    all.truncate(MOST + 1);
    all
}

fn join(said: &mut Said, line: &str, further: Result<Asked, Unclear>) {
    if let (Ok(own), Ok(further)) = (&mut said.asked, further) {
        said.lines.push(line.to_owned());
        own.rest.extend(further.rest);
        own.id = own.id.take().or(further.id);
    }
}

/// Whether a line's first word is the commands' prefix (`true`), or probably a misspelling of it
/// (`false`).
fn is_command(word: &str) -> Option<bool> {
    let word = word.to_ascii_lowercase();
    if word == NAME {
        return Some(true);
    }
    let meant = ["/handof", "/hand-of", "/handsof"];
    let is_one = meant.iter().any(|start| word.starts_with(start));
    let letters = |b: u8| b.is_ascii_lowercase() || b == b'-' || b == b':';
    (is_one && word.bytes().skip(1).all(letters)).then_some(false)
}

fn asked(rest: &str) -> Result<Asked, Unclear> {
    let rest = rest.trim_start();
    let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let word = word.trim_end_matches(':').to_ascii_lowercase();
    if word.is_empty() {
        return Err(Unclear::None);
    }
    let mut known = Command::ALL.into_iter();
    let command = known.find(|command| command.as_str() == word);
    let command = command.ok_or(Unclear::Unknown)?;
    let rest = rest.trim();
    let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let id = first.parse::<HandoffId>().ok();
    let rest = if id.is_some() { after.trim() } else { rest };
    Ok(Asked {
        command,
        id,
        rest: vec![rest.to_owned()],
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{LONGEST, Unclear, commands};
    use handoff::protocol::Command;

    /// Each command as `COMMAND ID: REST`, or why it can't be parsed.
    fn read(text: &str) -> Vec<String> {
        let all = commands(text).into_iter();
        all.map(|said| match said.asked {
            Ok(asked) => {
                let id = asked.id.map(|id| format!(" {id}")).unwrap_or_default();
                format!("{}{id}: {}", asked.command.as_str(), asked.rest.join(" | "))
            }
            Err(why) => format!("{why:?}"),
        })
        .collect()
    }

    #[test]
    fn a_line_is_a_command() {
        for (text, all) in [
            (
                "hi\r\n/handoff answer the  second one \r\nbye",
                &["answer: the  second one"][..],
            ),
            (
                "/handoff answer port=1\n/handoff\tanswer host=a b",
                &["answer: port=1 | host=a b"],
            ),
            ("so:\n  /handoff retry", &["retry: "]),
            ("/handoff answer 12.3 8.5", &["answer 12.3: 8.5"]),
            (
                "/handoff answer 1.2 a\n/handoff answer 1.3 b\n/handoff answer 1.2 c",
                &["answer 1.2: a | c", "answer 1.3: b"],
            ),
            (
                "/handoff answer a\n/handoff answer 1.2 b",
                &["answer 1.2: a | b"],
            ),
            ("/Handoff Retry: 1.2 now", &["retry 1.2: now"]),
            (
                "/handoff approve\n/handoff status",
                &["approve: ", "status: "],
            ),
            ("/handoff answer", &["answer: "]),
            ("/handoff aprove", &["Unknown"]),
            ("/handoff", &["None"]),
            ("/handoffs answer x", &["Unknown"]),
            ("/handof retry", &["Unknown"]),
            ("/hand-off: retry", &["Unknown"]),
            // Right below a quotation, an unquoted line is a statement.
            ("> why?\n/handoff retry", &["retry: "]),
            ("> why?\nso\n/handoff retry", &["retry: "]),
        ] {
            assert_eq!(read(text), all, "{text}");
        }
    }

    #[test]
    fn what_is_quoted_or_other_is_none() {
        for text in [
            "thanks",
            "> /handoff answer x",
            "```\n/handoff answer x\n```",
            "    /handoff retry",
            "<!-- /handoff answer x -->",
            "<pre>\n/handoff retry\n</pre>",
            "/handoff/answer.md is the file",
            "/handoff.md",
            "/handbook answer",
        ] {
            assert_eq!(commands(text), [], "{text}");
        }
    }

    #[test]
    fn it_stays_within_bounds() {
        let long = format!("/handoff answer {}", "x".repeat(LONGEST));
        assert_eq!(commands(&long)[0].asked, Err(Unclear::TooLong));
        let many = "/handoff status\n".repeat(40);
        let all = commands(&many);
        assert_eq!(all.len(), 11);
        assert_eq!(all[10].asked, Err(Unclear::TooMany));
        assert_eq!(all[9].asked.as_ref().unwrap().command, Command::Status);
    }

    #[test]
    fn the_same_words_have_the_same_digest() {
        let digest = |text: &str| commands(text)[0].digest();
        assert_eq!(
            digest("/handoff retry  1.2\nx"),
            digest("y\n\n/handoff retry 1.2 ")
        );
        assert_ne!(digest("/handoff retry 1.2"), digest("/handoff retry 1.3"));
    }
}
