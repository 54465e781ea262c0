//! Answers in comments: lines that begin with `/handoff answer`.

use handoff_base::ids::HandoffId;

use super::markdown::statements;

pub(super) const COMMAND: &str = "/handoff";

/// In bytes.
const LONGEST: usize = 16 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The handoff that is answered, if the comment names one.
    pub(super) id: Option<HandoffId>,
    /// One text for each command.
    pub(super) lines: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("it has no line that begins with `/handoff answer`")]
    Silent,
    #[error(
        "its line `/handoff …` is not a known command: use `/handoff answer TEXT` or `/handoff answer KEY=VALUE`"
    )]
    Unknown,
    #[error("its line `/handoff answer` has no answer")]
    Empty,
    #[error("it answers several handoffs: one comment answers one")]
    Several,
    #[error("its answer has more than {LONGEST} bytes")]
    TooLong,
}

pub(super) fn answer(text: &str) -> Result<Answer, NoAnswer> {
    let mut answer = Answer {
        id: None,
        lines: Vec::new(),
    };
    let mut spoken = false;
    for line in statements(text) {
        let Some(rest) = line.strip_prefix(COMMAND) else {
            continue;
        };
        let mut words = rest.split_whitespace();
        if !rest.starts_with([' ', '\t']) || words.next() != Some("answer") {
            return Err(NoAnswer::Unknown);
        }
        spoken = true;
        let rest = rest.trim_start().trim_start_matches("answer").trim();
        let first = words.next().and_then(|word| word.parse::<HandoffId>().ok());
        let said = match &first {
            Some(_) => rest
                .split_once(char::is_whitespace)
                .map_or("", |(_, rest)| rest.trim()),
            None => rest,
        };
        if said.is_empty() {
            return Err(NoAnswer::Empty);
        }
        match (&answer.id, first) {
            (Some(id), Some(other)) if *id != other => return Err(NoAnswer::Several),
            (None, Some(id)) => answer.id = Some(id),
            _ => {}
        }
        answer.lines.push(said.to_owned());
    }
    match () {
        () if !spoken => Err(NoAnswer::Silent),
        () if answer.lines.iter().map(String::len).sum::<usize>() > LONGEST => {
            Err(NoAnswer::TooLong)
        }
        () => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Answer, NoAnswer, answer};

    #[test]
    fn a_line_answers() {
        let said = |text: &str| answer(text).unwrap();
        let lines = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
        let plain = |texts: &[&str]| Answer {
            id: None,
            lines: lines(texts),
        };
        assert_eq!(
            said("hi\r\n/handoff answer the  second one \r\nbye"),
            plain(&["the  second one"])
        );
        assert_eq!(
            said("/handoff answer port=1\n/handoff\tanswer host=a b"),
            plain(&["port=1", "host=a b"])
        );
        let named = said("/handoff answer 12.3 8.5");
        assert_eq!(
            (named.id.unwrap().to_string(), named.lines),
            ("12.3".to_owned(), lines(&["8.5"]))
        );
    }

    #[test]
    fn what_is_quoted_or_other_does_not() {
        for (text, why) in [
            ("thanks", NoAnswer::Silent),
            ("> /handoff answer x", NoAnswer::Silent),
            (" /handoff answer x", NoAnswer::Silent),
            ("```\n/handoff answer x\n```", NoAnswer::Silent),
            ("<!-- /handoff answer x -->", NoAnswer::Silent),
            ("/handoff cancel", NoAnswer::Unknown),
            ("/handoffs answer x", NoAnswer::Unknown),
            ("/handoff answer", NoAnswer::Empty),
            ("/handoff answer 12.3", NoAnswer::Empty),
            (
                "/handoff answer 1.2 a\n/handoff answer 1.3 b",
                NoAnswer::Several,
            ),
        ] {
            assert_eq!(answer(text), Err(why), "{text}");
        }
        let long = format!("/handoff answer {}", "x".repeat(17_000));
        assert_eq!(answer(&long), Err(NoAnswer::TooLong));
    }
}
