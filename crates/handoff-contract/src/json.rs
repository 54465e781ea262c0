//! Strict JSON: a bounded scan, then serde_json; positions are determined only when needed
//! (`scan`).

use std::fmt;

use handoff_base::finding::{Finding, FindingCode};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::scan::{self, Seen};
use super::{MAX_DEPTH, MAX_FINDINGS, text};

/// Parses text that is valid UTF-8 and within the size limit.
pub(super) fn parse(source: &str) -> Result<Value, Vec<Finding>> {
    let value = parse_any(source)?;
    if value.is_object() {
        return Ok(value);
    }
    Err(vec![
        Finding::error(
            FindingCode::JsonNotAnObject,
            "",
            "a contract is a JSON object",
        )
        .at(1, 1)
        .fix("put the contract's fields into an object"),
    ])
}

/// Whether an invalid text is truncated JSON.
pub(super) fn ends_early(source: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(source).is_err_and(|error| error.is_eof())
}

/// Parses any JSON value, with the same strictness and limits.
pub(super) fn parse_any(source: &str) -> Result<Value, Vec<Finding>> {
    if let Some(offset) = scan::too_deep(source, MAX_DEPTH) {
        let (line, column) = text::position(source, offset);
        let message = format!("objects and arrays nest deeper than {MAX_DEPTH} levels");
        return Err(vec![
            Finding::error(FindingCode::JsonTooDeep, "", message).at(line, column),
        ]);
    }
    let mut suspicious = false;
    let mut reader = serde_json::Deserializer::from_str(source);
    let value = Strict(&mut suspicious)
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| vec![syntax(source, &error)])?;
    let findings = if suspicious {
        inspect(source)
    } else {
        Vec::new()
    };
    if findings.is_empty() {
        Ok(value)
    } else {
        Err(findings)
    }
}

fn syntax(source: &str, error: &serde_json::Error) -> Finding {
    let shown = error.to_string();
    let message = shown
        .rsplit_once(" at line ")
        .map_or(shown.as_str(), |(head, _)| head);
    let code = if message == "number out of range" {
        FindingCode::JsonNumberRange
    } else {
        FindingCode::JsonSyntax
    };
    let said = match message {
        "key must be a string" => "expected a key in double quotes",
        "expected value" => "expected a value",
        "trailing comma" => "a comma without a value after it",
        "trailing characters" => "only one JSON value is allowed, and more follows",
        "EOF while parsing an object" => "the document ends within an object",
        "EOF while parsing a list" => "the document ends within a list",
        "EOF while parsing a string" => "the document ends within a text",
        "EOF while parsing a value" => "the document ends where a value is expected",
        "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            "a \\u escape that is no character"
        }
        other if other.starts_with("control character") => {
            "a line break or control character within a text"
        }
        other => other,
    };
    let (line, column) = text::position_in_line(source, error.line(), error.column());
    let finding = Finding::error(code, "", text::short(said)).at(line, column);
    match message {
        "trailing comma" => finding.fix("remove the comma"),
        other if other.starts_with("control character") => {
            finding.fix("close the text with a double quote, or write a line break as \\n")
        }
        _ => finding,
    }
}

/// Parses a value, and sets the flag on a duplicate key, a forbidden character or a float.
struct Strict<'f>(&'f mut bool);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        *self.0 = true;
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        *self.0 |= forbidden(value).is_some();
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Strict(self.0))? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            *self.0 |= forbidden(&key).is_some();
            let value = access.next_value_seed(Strict(self.0))?;
            *self.0 |= members.insert(key, value).is_some();
        }
        Ok(Value::Object(members))
    }
}

/// The first character that XML forbids; a contract must not contain it either.
fn forbidden(value: &str) -> Option<char> {
    value.chars().find(|&c| !text::is_xml_char(c))
}

/// Scans a valid text again to report suspicious parts with their positions.
fn inspect(source: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    scan::walk(source, &mut |pointer, offset, seen| {
        let mut report = |code: FindingCode, path: &str, message: String| {
            if findings.len() < MAX_FINDINGS {
                let (line, column) = text::position(source, offset);
                let mut path = path.to_owned();
                text::bound(&mut path);
                findings.push(Finding::error(code, path, message).at(line, column));
            }
        };
        let holds = |what: &str, c: char| {
            let number = u32::from(c);
            format!("{what} holds the character U+{number:04X}, which a contract cannot hold")
        };
        match seen {
            Seen::Key { key, again } => {
                if let Some(c) = forbidden(key) {
                    let object = pointer.rfind('/').map_or("", |end| &pointer[..end]);
                    report(FindingCode::TextControlCharacter, object, holds("a key", c));
                }
                if again {
                    let message = format!("the key `{}` is given twice", text::short(key));
                    report(FindingCode::JsonDuplicateKey, pointer, message);
                }
            }
            Seen::Text(value) => {
                if let Some(c) = forbidden(value) {
                    report(
                        FindingCode::TextControlCharacter,
                        pointer,
                        holds("the value", c),
                    );
                }
            }
            Seen::Scalar(raw) => {
                let integral = raw.starts_with(|c: char| c == '-' || c.is_ascii_digit())
                    && !raw.contains(['.', 'e', 'E']);
                if integral && raw.parse::<i64>().is_err() && raw.parse::<u64>().is_err() {
                    let message = format!("the number {} does not fit 64 bits", text::short(raw));
                    report(FindingCode::JsonNumberRange, pointer, message);
                }
            }
        }
    });
    findings
}
