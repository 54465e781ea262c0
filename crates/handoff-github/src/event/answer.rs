//! The content of an answer in a comment: values by key, or text.

use handoff::base::Moment;
use handoff::model::{EventArgs, Question, read_answer};

/// The error for a key with two values.
#[derive(Debug)]
pub(super) struct AnsweredTwice(pub(super) String);

/// The event arguments of an answer: values if every line has some, else text, with the author and
/// the link.
pub(super) fn answer_args(
    questions: &[Question],
    lines: &[String],
    by: &str,
    said_at: Moment,
) -> Result<EventArgs, AnsweredTwice> {
    let pairs: Option<Vec<Vec<(&str, &str)>>> =
        lines.iter().map(|line| pairs(questions, line)).collect();
    let mut args = EventArgs {
        said_at: Some(said_at),
        ..EventArgs::default()
    };
    match pairs {
        Some(pairs) => {
            for (key, text) in pairs.into_iter().flatten() {
                let value = read_answer(questions, key, text);
                if args.values.insert(key.to_owned(), value).is_some() {
                    return Err(AnsweredTwice(key.to_owned()));
                }
            }
            args.reason = Some(format!("by {by}"));
        }
        None => args.reason = Some(format!("{} (by {by})", lines.join("\n"))),
    }
    Ok(args)
}

/// Parses `port=8080 host=a`, or one key whose value may contain blanks.
fn pairs<'a>(questions: &[Question], line: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
    let is_key = |key: &str| questions.iter().any(|q| q.key == key);
    let words = line.split_whitespace();
    let all: Option<Vec<_>> = words.map(|word| word.split_once('=')).collect();
    if let Some(all) = all.filter(|all| all.iter().all(|(key, _)| is_key(key))) {
        return Some(all);
    }
    let (key, value) = line.split_once('=')?;
    let key = key.trim();
    is_key(key).then(|| vec![(key, value.trim())])
}
