//! The lines for a comment that answers open questions.

use handoff::model::{Question, Record};

use super::text::line;

/// The maximum length of a key, in characters.
const MOST_KEY: usize = 80;

/// The comment lines that answer a blocked handoff's questions, with a placeholder for each value.
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

/// The placeholder of a value: its type, in capitals.
fn place(question: &Question) -> String {
    let kind = question.kind.as_deref().unwrap_or("value");
    line(kind, MOST_KEY).to_uppercase()
}
