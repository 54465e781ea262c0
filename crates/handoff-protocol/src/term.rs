//! The terms of consistency rules: a place in the contract, a property of its issue, or a constant,
//! each with filters.
//!
//! ```text
//! /pr_url|number                          the last number in the text at /pr_url
//! fact:pr_number                          the issue's fact of this name
//! /findings/*/severity|is critical|count  how many findings have this severity
//! ```

use handoff_base::pointer::{is_pointer, lookup, select};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A property of the issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The issue's key.
    Key,
    /// The issue's age, in seconds since it was opened.
    Age,
    /// The names of the tasks with the same parent as the contract's task.
    Tasks,
    /// The completed ones among them, including the contract's own.
    TasksCompleted,
    /// The other ones among them.
    TasksRemaining,
    /// The workers that sent contracts of these types in the issue.
    Workers,
    /// The worker that sends this contract.
    Worker,
    /// The retries of the handoff that the sender holds, or of the request that it answers.
    Retries,
}

impl Known {
    const ALL: [(&'static str, Self); 8] = [
        ("issue:key", Self::Key),
        ("issue:age", Self::Age),
        ("tasks:all", Self::Tasks),
        ("tasks:completed", Self::TasksCompleted),
        ("tasks:remaining", Self::TasksRemaining),
        ("workers:of", Self::Workers),
        ("worker", Self::Worker),
        ("held:retries", Self::Retries),
    ];
}

/// The source of a term's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// A place in the contract: a JSON Pointer, in which `*` stands for every item.
    Place(String),
    /// A fact of the issue, and a pointer into its value.
    Fact(String, String),
    /// Another property of the issue, with an argument.
    Known(Known, String),
    /// A constant.
    Fixed(Value),
}

/// A filter on a term's values.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Filter {
    /// The names in a list's items, an object's keys, or a text.
    Names,
    /// The key that each text has as a message's bullet: lower case, `_` for other signs.
    Key,
    /// Strips this prefix from each text.
    After(String),
    /// Truncates each text at this part.
    Before(String),
    /// The last number in each text.
    Number,
    /// The last segment of each URL's path.
    End,
    /// Each URL without the last two segments of its path.
    Repository,
    /// The number of values.
    Count,
    /// The values equal to this text.
    Is(String),
    /// The number of failures that a text reports: `0` for `passed (12/12)`, `1` for `failed`.
    Failing,
    /// The same, or the number of vulnerabilities if it is greater.
    Vulnerable,
}

/// A parsed term.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Term {
    text: Value,
    subject: Subject,
    filters: Vec<Filter>,
}

schemars::generated! {
    impl schemars::JsonSchema for Term {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Term".into()
        }

        fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
            schemars::json_schema!({ "type": ["string", "number", "boolean"] })
        }
    }
}

impl From<Term> for Value {
    fn from(term: Term) -> Self {
        term.text
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Value::String(text) => f.write_str(text),
            other => write!(f, "{other}"),
        }
    }
}

impl TryFrom<Value> for Term {
    type Error = String;

    fn try_from(text: Value) -> Result<Self, String> {
        let Value::String(term) = &text else {
            return if text.is_number() || text.is_boolean() {
                let (subject, filters) = (Subject::Fixed(text.clone()), Vec::new());
                Ok(Self {
                    text,
                    subject,
                    filters,
                })
            } else {
                Err("a term is a text, a number, `true` or `false`".to_owned())
            };
        };
        let mut parts = term.split('|');
        let subject = subject(parts.next().unwrap_or_default())?;
        let filters = parts.map(filter).collect::<Result<_, _>>()?;
        Ok(Self {
            subject,
            filters,
            text,
        })
    }
}

fn subject(text: &str) -> Result<Subject, String> {
    if text.starts_with('/') {
        return if is_pointer(text) {
            Ok(Subject::Place(text.to_owned()))
        } else {
            Err(format!("`{text}` is not a JSON Pointer"))
        };
    }
    if let Some(fixed) = text.strip_prefix("text:") {
        return Ok(Subject::Fixed(json!(fixed)));
    }
    if let Some(fact) = text.strip_prefix("fact:") {
        let at = fact.find('/').unwrap_or(fact.len());
        let (name, pointer) = fact.split_at(at);
        return Ok(Subject::Fact(name.to_owned(), pointer.to_owned()));
    }
    let (name, argument) = text.split_once(' ').unwrap_or((text, ""));
    let known = Known::ALL.iter().find(|(known, _)| *known == name);
    match known {
        Some((_, known)) if argument.is_empty() != (*known == Known::Workers) => {
            Ok(Subject::Known(*known, argument.to_owned()))
        }
        _ => {
            let names: Vec<&str> = Known::ALL.iter().map(|(name, _)| *name).collect();
            Err(format!(
                "`{text}` is not a term: use a JSON Pointer, `fact:NAME`, `text:TEXT`, or one of {}",
                names.join(", ")
            ))
        }
    }
}

fn filter(text: &str) -> Result<Filter, String> {
    Ok(match text {
        "names" => Filter::Names,
        "key" => Filter::Key,
        "number" => Filter::Number,
        "end" => Filter::End,
        "repository" => Filter::Repository,
        "count" => Filter::Count,
        "failing" => Filter::Failing,
        "vulnerable" => Filter::Vulnerable,
        other => match other.split_once(' ') {
            Some(("is", word)) => Filter::Is(word.to_owned()),
            Some(("after", beginning)) => Filter::After(beginning.to_owned()),
            Some(("before", part)) => Filter::Before(part.to_owned()),
            _ => {
                return Err(format!(
                    "`{other}` is not a filter: use names, key, number, end, repository, count, failing, vulnerable, `after TEXT`, `before TEXT` or `is WORD`"
                ));
            }
        },
    })
}

impl Term {
    /// The source of its value.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Whether the value depends only on the contract.
    pub fn is_own(&self) -> bool {
        matches!(self.subject, Subject::Place(_) | Subject::Fixed(_))
    }

    /// Whether the value is a single non-negative number.
    pub fn is_count(&self) -> bool {
        match &self.filters[..] {
            [] => matches!(self.subject, Subject::Known(Known::Age | Known::Retries, _)),
            [.., Filter::Count] => true,
            [Filter::Number | Filter::Failing | Filter::Vulnerable] => self.is_single_place(),
            _ => false,
        }
    }

    /// Whether its filters make texts, whatever the value is.
    pub fn is_text(&self) -> bool {
        let mut made = self.filters.iter().rev();
        let made = made.find(|filter| !matches!(filter, Filter::Is(_)));
        made.is_some_and(|filter| match filter {
            Filter::Names | Filter::Key | Filter::After(_) | Filter::Before(_) => true,
            Filter::End | Filter::Repository => true,
            Filter::Number | Filter::Count | Filter::Is(_) => false,
            Filter::Failing | Filter::Vulnerable => false,
        })
    }

    /// Whether the value is that of one place, without filters.
    pub fn is_whole_place(&self) -> bool {
        !self.is_filtered() && self.is_single_place()
    }

    /// Whether filters change its values.
    pub fn is_filtered(&self) -> bool {
        !self.filters.is_empty()
    }

    fn is_single_place(&self) -> bool {
        self.place().is_some_and(|at| !at.contains("/*"))
    }

    /// The pointer into the contract, for a place.
    pub fn place(&self) -> Option<&str> {
        match &self.subject {
            Subject::Place(at) => Some(at),
            _ => None,
        }
    }

    /// Its values in a contract, for a place or a constant; `None` if the place is missing.
    pub fn own_values(&self, contract: &Value) -> Option<Vec<Value>> {
        match &self.subject {
            Subject::Place(at) => {
                let found = select(contract, at);
                // An empty list counts as present, although it has no items.
                let (above, is_spread) = match at.split_once("/*") {
                    Some((above, _)) => (above, true),
                    None => (at.as_str(), false),
                };
                if found.is_empty() && !(is_spread && lookup(contract, above).is_some()) {
                    return None;
                }
                self.filtered(found.into_iter().cloned().collect())
            }
            Subject::Fixed(value) => self.filtered(vec![value.clone()]),
            _ => None,
        }
    }

    /// Applies its filters; `None` if nothing is left to compare.
    pub fn filtered(&self, values: Vec<Value>) -> Option<Vec<Value>> {
        let mut filters = self.filters.iter();
        filters.try_fold(values, |values, filter| filter.apply(values))
    }
}

impl Filter {
    fn apply(&self, values: Vec<Value>) -> Option<Vec<Value>> {
        let texts = |values: &[Value], part: fn(&str) -> Option<Value>| {
            let parts = values.iter().map(|value| part(&text_of(value)));
            parts.collect::<Option<Vec<Value>>>()
        };
        match self {
            Self::Names => Some(names(&values).map(Value::String).collect()),
            Self::Key => texts(&values, |text| Some(json!(key_of(text)))),
            Self::After(beginning) => {
                let rest = |value: &Value| {
                    let text = text_of(value);
                    let rest = text.strip_prefix(beginning.as_str()).unwrap_or(&text);
                    json!(rest)
                };
                Some(values.iter().map(rest).collect())
            }
            Self::Before(part) => {
                let start = |value: &Value| {
                    let text = text_of(value);
                    let start = text.split(part.as_str()).next().unwrap_or_default();
                    json!(start)
                };
                Some(values.iter().map(start).collect())
            }
            Self::End => texts(&values, |text| end(text).map(Value::from)),
            Self::Number => texts(&values, |text| last_number(text).map(Value::from)),
            Self::Repository => texts(&values, |text| repository(text).map(Value::from)),
            Self::Count => Some(vec![json!(names(&values).count())]),
            Self::Is(word) => Some(values.into_iter().filter(|v| text_of(v) == *word).collect()),
            Self::Failing => texts(&values, |text| Some(json!(failing(text)))),
            Self::Vulnerable => texts(&values, |text| Some(json!(vulnerable(text)))),
        }
    }
}

/// The text of a scalar.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The names in values: a list's items, an object's keys, or the last word of each part of a text
/// between commas and arrows (only within its first brackets, if any). `none` yields no name.
pub(crate) fn names(values: &[Value]) -> impl Iterator<Item = String> + '_ {
    values.iter().flat_map(|value| match value {
        Value::Array(items) => items.iter().map(text_of).collect(),
        Value::Object(fields) => fields.keys().cloned().collect(),
        Value::String(text) => listed(text),
        other => vec![other.to_string()],
    })
}

fn listed(text: &str) -> Vec<String> {
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    let inside = inside.map_or(text, |(inside, _)| inside).replace("->", ",");
    let parts = inside.split([',', '→']);
    let last_words = parts.filter_map(|part| part.split_whitespace().next_back());
    let names = last_words.filter(|word| !word.eq_ignore_ascii_case("none"));
    names.map(str::to_owned).collect()
}

/// The key of a message's bullet with these words.
pub(crate) fn key_of(words: &str) -> String {
    let words = words.to_lowercase();
    let parts = words.split(|c: char| !c.is_alphanumeric());
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    parts.join("_")
}

fn last_number(text: &str) -> Option<u64> {
    let mut digits = text.split(|c: char| !c.is_ascii_digit());
    digits.rfind(|d| !d.is_empty())?.parse().ok()
}

/// The last segment of a URL's path: `7` of `…/pull/7#discussion`.
fn end(address: &str) -> Option<&str> {
    let path = address.split(['?', '#']).next()?;
    Some(path.trim_end_matches('/').rsplit_once('/')?.1)
}

/// A URL without the last two segments of its path: `…/owner/name` of `…/owner/name/pull/7`.
fn repository(address: &str) -> Option<String> {
    let (rest, _) = address.trim_end_matches('/').rsplit_once('/')?;
    let (base, _) = rest.rsplit_once('/')?;
    base.contains("://").then(|| base.to_ascii_lowercase())
}

/// The number of failures that a text reports: the largest of the differences, as in `passed
/// (150/156)`, and the numbers beside words for failures; else 1 if the text begins with such a
/// word.
fn failing(text: &str) -> u64 {
    let text = text.to_lowercase();
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != '/')
        .filter(|word| !word.is_empty())
        .collect();
    let bad = |word: &str| {
        ["fail", "error", "broken"]
            .iter()
            .any(|b| word.starts_with(b))
    };
    let good = |word: &str| {
        ["pass", "ok", "green", "clean"]
            .iter()
            .any(|g| word.starts_with(g))
    };
    let shares = words.iter().filter_map(|word| {
        let (part, whole) = word.split_once('/')?;
        whole.parse::<u64>().ok()?.checked_sub(part.parse().ok()?)
    });
    let starts_bad = match &words[..] {
        ["not", word, ..] => good(word),
        [_, "free", ..] | [] => false,
        [word, ..] => bad(word),
    };
    let counted = (1..words.len()).filter_map(|at| {
        let count = match &words[..at] {
            [.., count, "of", _] | [.., count] => count.parse::<u64>().ok()?,
            [] => return None,
        };
        bad(words[at]).then_some(count)
    });
    let told = shares.chain(counted).max();
    match told {
        Some(0) | None if starts_bad => 1,
        Some(count) => count,
        None => 0,
    }
}

/// The number of vulnerabilities that a text reports: the one before a severity or the word (`3
/// critical vulnerabilities found`), else 1 if the text mentions some without denying them; or its
/// number of failures, if greater.
fn vulnerable(text: &str) -> u64 {
    const GRADES: [&str; 6] = ["critical", "severe", "high", "medium", "moderate", "low"];
    const DENIALS: [&str; 6] = ["no", "not", "none", "without", "zero", "0"];
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let names = |word: &str| word.starts_with("vulnerab") || word.starts_with("cve");
    let counted = words.windows(2).filter_map(|pair| {
        let is_counted = GRADES.contains(&pair[1]) || names(pair[1]);
        pair[0].parse::<u64>().ok().filter(|_| is_counted)
    });
    let is_told = words.iter().any(|word| names(word));
    let is_denied = words.iter().any(|word| DENIALS.contains(word));
    let told = counted.max().unwrap_or(u64::from(is_told && !is_denied));
    told.max(failing(text))
}

#[cfg(test)]
mod tests {
    use super::{Term, failing, vulnerable};
    use serde_json::{Value, json};

    fn values(term: &str, contract: &Value) -> Option<Vec<Value>> {
        let term: Term = serde_json::from_value(json!(term)).expect("the term is well formed");
        term.own_values(contract)
    }

    #[test]
    fn terms_take_parts_of_a_contract() {
        let contract = json!({"url": "https://Forge.example/o/r/pull/7/", "n": 7, "empty": [],
            "list": [{"kind": "a"}, {"kind": "b"}, {"kind": "a"}],
            "map": {"Task 1": "x (weight: 8)", "Task 2": "y"}, "path": "a → b -> c, then d", "group": "[b, c] after a", "marked": "https://forge.example/pull/7x?tab=2", "no": "None"});
        let table: [(&str, Option<Vec<Value>>); 17] = [
            ("/url|number", Some(vec![json!(7)])),
            (
                "/url|repository",
                Some(vec![json!("https://forge.example/o/r")]),
            ),
            ("/list/*/kind|is a|count", Some(vec![json!(2)])),
            (
                "/map|names|key|after task_",
                Some(vec![json!("1"), json!("2")]),
            ),
            ("/map/Task 1|number", Some(vec![json!(8)])),
            ("/map/*|number", None),
            (
                "/path|names",
                Some(vec![json!("a"), json!("b"), json!("c"), json!("d")]),
            ),
            ("/no|names", Some(Vec::new())),
            ("/group|names", Some(vec![json!("b"), json!("c")])),
            ("/empty/*|count", Some(vec![json!(0)])),
            ("/absent", None),
            ("/absent/*|count", None),
            ("/url|end", Some(vec![json!("7")])),
            ("/marked|end", Some(vec![json!("7x")])),
            ("/path|before  → |after x", Some(vec![json!("a")])),
            ("text:x", Some(vec![json!("x")])),
            ("text:x, y|names", Some(vec![json!("x"), json!("y")])),
        ];
        for (term, expected) in table {
            assert_eq!(values(term, &contract), expected, "{term}");
        }
    }

    #[test]
    fn what_is_no_term_is_told() {
        for (term, told) in [
            (json!("pr_number"), "`pr_number` is not a term"),
            (json!("/a|sum"), "`sum` is not a filter"),
            (json!("/"), "is not a JSON Pointer"),
            (json!(null), "a term is a text"),
            (json!("workers:of"), "is not a term"),
        ] {
            let error = serde_json::from_value::<Term>(term.clone()).map(|_| ());
            let error = error.expect_err("it is no term").to_string();
            assert!(error.contains(told), "{term}: {error}");
        }
    }

    #[test]
    fn failures_are_counted_as_a_text_tells_them() {
        for (text, count) in [
            ("passed (156/156)", 0),
            ("passed (150/156)", 6),
            ("12 passed, 0 failed", 0),
            ("12 passed, 2 failed", 2),
            ("0 of 12 failed", 0),
            ("2 of 12 failed", 2),
            ("error-free", 0),
            ("failed", 1),
            ("Failed (1/3)", 2),
            ("not passing", 1),
            ("not needed: a library", 0),
            ("no vulnerabilities", 0),
            ("passed without errors", 0),
            ("verified", 0),
        ] {
            assert_eq!(failing(text), count, "{text}");
        }
        for (text, count) in [
            ("no vulnerabilities", 0),
            ("3 critical vulnerabilities found", 3),
            ("found 2 vulnerabilities (1 high, 1 low)", 2),
            ("1 high, 0 low", 1),
            ("0 vulnerabilities", 0),
            ("0 critical, 0 high", 0),
            ("vulnerabilities found", 1),
            ("CVE-2024-1234 in lodash", 1),
            ("passed, no known vulnerabilities", 0),
            ("not vulnerable", 0),
            ("failed", 1),
            ("passed, 12 rules", 0),
        ] {
            assert_eq!(vulnerable(text), count, "{text}");
        }
    }
}
