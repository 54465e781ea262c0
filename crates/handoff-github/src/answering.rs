//! How an open question is answered in a comment.

use handoff::model::{Question, Record};

use super::text::line;

/// In characters.
const MOST_KEY: usize = 80;

/// The lines of a comment that answer what a blocked handoff asks, with a place for each value.
pub(crate) fn answer_lines(record: &Record) -> String {
    let id = &record.id;
    let needed = record.questions().iter().filter(|q| !q.optional);
    let lines: Vec<String> = needed
        .map(|question| {
            let key = line(&question.key, MOST_KEY);
            format!("/handoff answer {id} {key}={}", place(question))
        })
        .collect();
    if lines.is_empty() {
        format!("/handoff answer {id} TEXT")
    } else {
        lines.join("\n")
    }
}

/// What stands for a value: its type, in capitals.
fn place(question: &Question) -> String {
    let kind = question.kind.as_deref().unwrap_or("value");
    line(kind, MOST_KEY).to_uppercase()
}
