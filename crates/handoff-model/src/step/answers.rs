//! Answers to questions: parses them, and compares them with the kinds that were asked for.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::HandoffId;
use handoff_base::pointer::escaped_part;
use handoff_base::text::quoted;
use serde_json::{Map, Value};

use crate::record::Question;

/// The known kinds of values. A question may use any word; an unknown one accepts any value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Integer,
    Truth,
    List,
    Map,
    Any,
}

impl Kind {
    fn of(words: Option<&str>) -> Self {
        let words = words.unwrap_or_default().trim().to_ascii_lowercase();
        match words.as_str() {
            list if list.ends_with("[]")
                || list.starts_with("array")
                || list.starts_with("list") =>
            {
                Self::List
            }
            "string" | "text" | "str" => Self::Text,
            "number" | "float" | "decimal" => Self::Number,
            "integer" | "int" => Self::Integer,
            "boolean" | "bool" => Self::Truth,
            "object" | "map" | "record" | "dictionary" => Self::Map,
            _ => Self::Any,
        }
    }

    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Truth => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Map => value.is_object(),
            Self::Any => !value.is_null(),
        }
    }
}

/// Parses an answer given as text: as a value of the requested kind if possible, else as the text.
pub fn read(questions: &[Question], key: &str, text: &str) -> Value {
    let asked = questions.iter().find(|q| q.key == key);
    let kind = Kind::of(asked.and_then(|q| q.kind.as_deref()));
    let parsed = || serde_json::from_str(text).ok();
    let value: Option<Value> = match kind {
        Kind::Text | Kind::Any => None,
        _ => parsed().filter(|value| kind.takes(value)),
    };
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Whether a text can be the whole answer: no required question asks for another kind of value.
pub(crate) fn can_be_words(questions: &[Question]) -> bool {
    let needed = questions.iter().filter(|q| !q.optional);
    let mut kinds = needed.map(|q| Kind::of(q.kind.as_deref()));
    kinds.all(|kind| matches!(kind, Kind::Text | Kind::Any))
}

/// The questions of a handoff.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The handoff.
    pub id: &'a HandoffId,
    /// The questions.
    pub questions: &'a [Question],
}

/// The faults of answers: a wrong kind, a missing or empty answer, or an unknown key. Without
/// questions that have keys, any answer is valid.
pub(crate) fn faults(asked: Asked<'_>, values: &Map<String, Value>) -> Vec<Finding> {
    let place = |key: &str| format!("/{}", escaped_part(key));
    let mut found = missing(asked, values, place);
    found.extend(misfits(&[asked], values, place));
    found
}

/// The required questions without an answer.
pub(crate) fn unanswered<'q>(
    questions: &'q [Question],
    values: &Map<String, Value>,
) -> impl Iterator<Item = &'q Question> {
    let is_given = |key: &str| match values.get(key) {
        None => false,
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(_) => true,
    };
    let needed = questions.iter().filter(|q| !q.optional);
    needed.filter(move |q| !is_given(&q.key))
}

/// A fault for each required question without an answer; `place` returns where its answer belongs.
pub(crate) fn missing(
    asked: Asked<'_>,
    values: &Map<String, Value>,
    place: impl Fn(&str) -> String,
) -> Vec<Finding> {
    let given: Vec<&str> = values.keys().map(String::as_str).collect();
    let given = match &given[..] {
        [] => "nothing is given".to_owned(),
        keys => format!("given: {}", quoted(&keys.join(", "))),
    };
    let fault = |question: &Question| {
        let what = match values.get(&question.key) {
            Some(_) => "answered with nothing".to_owned(),
            None => format!("not answered; {given}"),
        };
        let meaning = question.description.as_ref();
        let meaning = meaning.map(|text| format!(" ({})", text.trim()));
        let text = format!(
            "{}{} is asked in {}, and {what}",
            named(question),
            meaning.unwrap_or_default(),
            asked.id
        );
        Finding::error(FindingCode::AnswerMissing, place(&question.key), text)
    };
    unanswered(asked.questions, values).map(fault).collect()
}

/// A fault for each answer of a wrong kind, and for each without a question.
pub(crate) fn misfits(
    asked: &[Asked<'_>],
    values: &Map<String, Value>,
    place: impl Fn(&str) -> String,
) -> Vec<Finding> {
    let all = || {
        asked
            .iter()
            .flat_map(|a| a.questions.iter().map(move |q| (a.id, q)))
    };
    let mut found = Vec::new();
    if all().next().is_none() {
        return found;
    }
    for (key, value) in values {
        let Some((id, question)) = all().find(|(_, q)| q.key == *key) else {
            let keys: Vec<String> = all().map(|(_, q)| named(q)).collect();
            let ids: Vec<String> = asked.iter().map(|a| a.id.to_string()).collect();
            let text = format!(
                "{} was not asked in {}; asked: {}; given: {}",
                quoted(key),
                ids.join(" or "),
                keys.join(", "),
                shown(value)
            );
            found.push(Finding::error(FindingCode::AnswerUnknown, place(key), text));
            continue;
        };
        let kind = question.kind.as_deref();
        let is_blank = matches!(value, Value::String(text) if text.trim().is_empty());
        let is_missing = is_blank && !question.optional;
        if !is_missing && !fits(kind, value) {
            let text = format!(
                "{} must be of type {}, as asked in {id}, and this is {}: {}",
                quoted(key),
                quoted(kind.unwrap_or("any")),
                type_of(value),
                shown(value)
            );
            found.push(Finding::error(FindingCode::AnswerType, place(key), text));
        }
    }
    found
}

/// A question's key, with its kind.
fn named(question: &Question) -> String {
    match &question.kind {
        Some(kind) => format!("{} ({})", quoted(&question.key), kind.trim()),
        None => quoted(&question.key),
    }
}

/// The maximum length of a value shown in a finding, in characters.
const SHOWN: usize = 40;

/// A value for a message, truncated.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Whether a value is of a kind; `X[]` is a list of X.
fn fits(kind: Option<&str>, value: &Value) -> bool {
    let element = kind.and_then(|kind| kind.trim().strip_suffix("[]"));
    match (element, value) {
        (Some(element), Value::Array(items)) => items.iter().all(|item| fits(Some(element), item)),
        _ => Kind::of(kind).takes(value),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::{Asked, faults, read};
    use crate::record::Question;

    fn question(kind: &str, optional: bool) -> Question {
        let description = None;
        let (key, kind) = ("k".to_owned(), Some(kind.to_owned()));
        Question {
            key,
            kind,
            description,
            optional,
        }
    }

    fn codes(kind: &str, optional: bool, values: &Value) -> Vec<String> {
        let values = values.as_object().unwrap();
        let id = "7.1".parse().unwrap();
        let questions = [question(kind, optional)];
        let asked = Asked {
            id: &id,
            questions: &questions,
        };
        let found = faults(asked, values);
        found.into_iter().map(|f| f.code.to_string()).collect()
    }

    #[test]
    fn each_kind_takes_its_own_values() {
        let all = [
            ("string", json!("5")),
            ("number", json!(1.5)),
            ("integer", json!(7)),
            ("boolean", json!(true)),
            ("string[]", json!(["a"])),
            ("object", json!({"a": 1})),
        ];
        for (kind, value) in &all {
            assert!(
                codes(kind, false, &json!({"k": value})).is_empty(),
                "{kind}"
            );
            for (other, wrong) in all.iter().filter(|(other, _)| other != kind) {
                let fits = (*kind, *other) == ("number", "integer");
                let expected: &[&str] = if fits { &[] } else { &["answer.type"] };
                assert_eq!(
                    codes(kind, false, &json!({"k": wrong})),
                    expected,
                    "{kind} {other}"
                );
            }
        }
        assert!(codes("a colour", false, &json!({"k": 3})).is_empty());
        assert_eq!(
            codes("string[]", false, &json!({"k": [1]})),
            ["answer.type"]
        );
        assert!(codes("integer[][]", false, &json!({"k": [[1], []]})).is_empty());
        assert_eq!(
            codes("string", false, &json!({"k": " "})),
            ["answer.missing"]
        );
        assert_eq!(
            codes("a colour", false, &json!({"k": null})),
            ["answer.type"]
        );
    }

    #[test]
    fn what_is_asked_must_be_answered_and_nothing_else() {
        assert_eq!(codes("text", false, &json!({})), ["answer.missing"]);
        assert!(codes("text", true, &json!({})).is_empty());
        assert_eq!(codes("text", true, &json!({"x": 1})), ["answer.unknown"]);
        let id = "7.1".parse().unwrap();
        let nothing = Asked {
            id: &id,
            questions: &[],
        };
        assert!(faults(nothing, json!({"x": 1}).as_object().unwrap()).is_empty());
    }

    #[test]
    fn text_is_read_as_what_was_asked_for() {
        let read = |kind: &str, text: &str| read(&[question(kind, false)], "k", text);
        assert_eq!(read("number", "12"), json!(12));
        assert_eq!(read("string", "12"), json!("12"));
        assert_eq!(read("boolean", "true"), json!(true));
        assert_eq!(read("string[]", r#"["a"]"#), json!(["a"]));
        assert_eq!(read("number", "twelve"), json!("twelve"));
        assert_eq!(super::read(&[], "k", "12"), json!("12"));
    }
}
