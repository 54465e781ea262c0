//! A contract as it was sent: its text, its format, and its strictly parsed tree.

use std::fmt;

use handoff_base::finding::{Finding, FindingCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::value::each_text;
use super::wrapping::{has_fence, unwrapped};
use super::{MAX_BYTES, json, markdown, text, xml};

/// The formats a contract may be written in.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// XML 1.0 in UTF-8, without DTD and without namespaces.
    Xml,
    /// JSON (RFC 8259) in UTF-8, without duplicate keys.
    Json,
    /// A Markdown message: `HANDOFF: A → B`, and sections under headings in capitals.
    #[serde(rename = "md")]
    Markdown,
}

impl Format {
    /// Returns the extension of a file in this format, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Xml => "xml",
            Self::Json => "json",
            Self::Markdown => "md",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.extension())
    }
}

/// A strictly parsed contract that owns its text.
#[derive(Clone, Debug)]
pub struct Source {
    text: String,
    tree: Tree,
}

/// The parsed text, before any schema is known.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    Xml(xml::Document),
    Json(Value),
    Markdown(markdown::Message),
}

impl Tree {
    /// The value that a source has before any schema is known; XML has none.
    fn document(&self) -> Option<&Value> {
        match self {
            Self::Xml(_) => None,
            Self::Json(document) => Some(document),
            Self::Markdown(message) => Some(message.value()),
        }
    }
}

/// The section of a Markdown message that may hold a whole contract.
const DATA: &str = "handoff_data";

impl Source {
    /// Parses a contract: size limit, UTF-8, format detection, strict parse.
    ///
    /// # Errors
    /// The findings, if it cannot be parsed: `input.*`, `xml.*`, `json.*`, `markdown.*`, `text.control_character`.
    pub fn parse(bytes: &[u8]) -> Result<Self, Vec<Finding>> {
        if bytes.len() > MAX_BYTES {
            let message = format!(
                "the contract has {} bytes, {MAX_BYTES} are allowed",
                bytes.len()
            );
            return Err(vec![
                Finding::error(FindingCode::InputTooLarge, "", message)
                    .fix("keep large content in files and name them as artifacts"),
            ]);
        }
        let bytes = unwrapped(bytes);
        let text = std::str::from_utf8(bytes).map_err(|error| vec![not_utf8(bytes, &error)])?;
        let tree = match text::trim(text).chars().next() {
            None => {
                let finding = Finding::error(FindingCode::InputEmpty, "", "the contract is empty");
                return Err(vec![finding]);
            }
            Some('<') => Tree::Xml(xml::parse(text)?),
            Some('{' | '[' | '"') => Tree::Json(json::parse(text)?),
            Some(_) if markdown::begins(text) => Tree::Markdown(markdown::parse(text)?),
            Some(other) => {
                let offset = text.find(other).unwrap_or(0);
                let (line, column) = text::position(text, offset);
                let message = format!(
                    "a contract is XML, JSON or a Markdown message, and starts with `<`, `{{` or `HANDOFF:`, not `{}`",
                    text::short(&other.to_string())
                );
                let mut finding =
                    Finding::error(FindingCode::InputUnknownFormat, "", message).at(line, column);
                if has_fence(text) {
                    finding = finding.fix(
                        "remove what is before and after the contract; one Markdown fence around it may stay",
                    );
                }
                return Err(vec![finding]);
            }
        };
        Ok(Self {
            text: text.to_owned(),
            tree,
        })
    }

    /// Returns the format the contract is written in.
    pub fn format(&self) -> Format {
        match self.tree {
            Tree::Xml(_) => Format::Xml,
            Tree::Json(_) => Format::Json,
            Tree::Markdown(_) => Format::Markdown,
        }
    }

    /// Returns the original text.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the root's name: XML's root element, or the key of a wrapped JSON document (an
    /// object whose only key is one of `roots` and whose value is an object). An unwrapped document
    /// has none. For a Markdown message it is `handoff_data`, if that is one of `roots` and its
    /// section holds an object.
    pub fn root(&self, roots: &[&str]) -> Option<String> {
        match &self.tree {
            Tree::Xml(document) => Some(document.root().name.to_string()),
            Tree::Json(Value::Object(map)) if map.len() == 1 => map
                .iter()
                .find(|(key, value)| roots.contains(&key.as_str()) && value.is_object())
                .map(|(key, _)| key.clone()),
            Tree::Json(_) => None,
            Tree::Markdown(message) => message
                .value()
                .get(DATA)
                .filter(|data| data.is_object() && roots.contains(&DATA))
                .map(|_| DATA.to_owned()),
        }
    }

    /// Returns the value inside the wrapper, or the whole document without one.
    pub(super) fn unwrapped<'a>(document: &'a Value, wrapper: Option<&str>) -> &'a Value {
        wrapper
            .and_then(|key| document.get(key))
            .unwrap_or(document)
    }

    /// Returns the names of a JSON or Markdown contract's members, each with whether it is an
    /// object; none for XML.
    pub fn members(&self, wrapper: Option<&str>) -> Vec<(&str, bool)> {
        let document = self.tree.document();
        let members = document.and_then(|document| Self::unwrapped(document, wrapper).as_object());
        members
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str(), value.is_object()))
            .collect()
    }

    /// Visits every unescaped text: its path in the source's terms, the nearest name, the text, and
    /// its byte offset if known.
    pub(super) fn each_text(&self, visit: &mut impl FnMut(&str, &str, &str, Option<usize>)) {
        match &self.tree {
            Tree::Xml(document) => document.each_text(&mut |path, name, text, offset| {
                visit(path, name, text, Some(offset));
            }),
            Tree::Json(_) | Tree::Markdown(_) => {
                let document = self.tree.document().unwrap_or(&Value::Null);
                each_text(document, &mut String::new(), "", &mut |path, key, text| {
                    visit(path, key, text, None);
                });
            }
        }
    }

    /// Returns the scalar at a JSON Pointer as text, before any schema is known.
    ///
    /// In XML, a part of the pointer is the name of a child element or, at the end, of an
    /// attribute; a number is the position of a child element from 0.
    pub fn probe(&self, wrapper: Option<&str>, pointer: &str) -> Option<String> {
        let document = match &self.tree {
            Tree::Xml(document) => return document.probe(pointer),
            Tree::Json(document) => document,
            Tree::Markdown(message) => message.value(),
        };
        match Self::unwrapped(document, wrapper).pointer(pointer)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

fn not_utf8(bytes: &[u8], error: &std::str::Utf8Error) -> Finding {
    let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
    let (line, column) = text::position(&good, good.len());
    Finding::error(
        FindingCode::InputNotUtf8,
        "",
        "the contract is not valid UTF-8",
    )
    .at(line, column)
    .fix("save it as UTF-8")
}
