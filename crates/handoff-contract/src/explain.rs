//! Turns a validator's errors into findings with our codes and messages, which do not quote the
//! whole value.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::pointer::{parts, push_part};
use handoff_base::text::counted;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use super::contains::Contains;
use super::line::{heading_of, words_of};
use super::shape::{Node, Prop, Shape, Spot, listing};
use super::source::{Format, Source};
use super::value::scalar_text;
use super::{MAX_FINDINGS, pattern, text};

/// The maximum length of a pattern shown beside a description, in bytes.
const READABLE: usize = 48;

/// Collects the findings of one check.
pub(super) struct Explainer<'a> {
    pub(super) source: &'a Source,
    pub(super) shape: &'a Shape,
    pub(super) contains: &'a Contains,
    pub(super) wrapper: Option<&'a str>,
    pub(super) value: &'a Value,
    pub(super) findings: &'a mut Vec<Finding>,
    /// The number of omitted findings.
    pub(super) more: usize,
}

impl Explainer<'_> {
    /// Adds the findings of an error. Recursion is bounded by how deep the schema nests
    /// alternatives.
    pub(super) fn explain(&mut self, error: &ValidationError<'_>) {
        let pointer = error.instance_path().as_str();
        match error.kind() {
            Kind::Required { property } => {
                self.missing(pointer, property.as_str().unwrap_or_default());
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                for name in unexpected {
                    self.unknown(pointer, name);
                }
            }
            Kind::Type { kind } => self.wrong_type(pointer, kind, error.instance()),
            Kind::Enum { options } => {
                let allowed = options.as_array().map_or(&[][..], Vec::as_slice);
                self.not_allowed(pointer, allowed, error.instance());
            }
            Kind::Constant { expected_value } => {
                let allowed = std::slice::from_ref(&**expected_value);
                self.not_allowed(pointer, allowed, error.instance());
            }
            Kind::Pattern { pattern } => self.pattern(pointer, pattern, error.instance()),
            Kind::Custom { keyword, message } if keyword == pattern::KEYWORD => {
                self.pattern(pointer, message, error.instance());
            }
            Kind::Format { format } => self.format(pointer, format, error.instance()),
            Kind::Minimum { limit } => self.range(error, &format!("less than {limit}")),
            Kind::Maximum { limit } => self.range(error, &format!("more than {limit}")),
            Kind::ExclusiveMinimum { limit } => {
                self.range(error, &format!("not more than {limit}"));
            }
            Kind::ExclusiveMaximum { limit } => {
                self.range(error, &format!("not less than {limit}"));
            }
            Kind::MultipleOf { multiple_of } => {
                self.range(error, &format!("not a multiple of {multiple_of}"));
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.alternatives(pointer, context);
            }
            Kind::OneOfMultipleValid { .. } => {
                let message = "the value fits several forms of which only one is allowed";
                self.invalid(pointer, message.to_owned(), None);
            }
            Kind::UniqueItems => {
                self.invalid(
                    pointer,
                    "the list holds the same item twice".to_owned(),
                    None,
                );
            }
            Kind::Contains => {
                let message = match self.contains.get(error.schema_path().as_str()) {
                    Some(wanted) => format!("no item of the list is {wanted}"),
                    None => "the list does not hold the items that it must hold".to_owned(),
                };
                self.add(FindingCode::FieldValue, pointer, message, None);
            }
            Kind::FalseSchema => {
                self.invalid(
                    pointer,
                    "this is not allowed here".to_owned(),
                    Some("remove it"),
                );
            }
            Kind::PropertyNames { error } => {
                let message = format!("`{}` is not a valid name here", shown(error.instance()));
                self.invalid(pointer, message, Some("rename it"));
            }
            _ => match wrong_length(error) {
                Some(message) => self.add(FindingCode::FieldLength, pointer, message, None),
                None => self.invalid(pointer, text::short(&error.masked().to_string()), None),
            },
        }
    }

    fn add(&mut self, code: FindingCode, pointer: &str, message: String, fix: Option<String>) {
        if self.findings.len() >= MAX_FINDINGS {
            self.more += 1;
            return;
        }
        let place = self.source.place(self.shape, self.wrapper, pointer);
        let mut finding = Finding::error(code, place.path, message);
        (finding.line, finding.column) = (place.line, place.column);
        finding.fix = fix.or_else(|| self.described(pointer));
        self.findings.push(finding);
    }

    fn invalid(&mut self, pointer: &str, message: String, fix: Option<&str>) {
        let fix = fix.map(str::to_owned);
        self.add(FindingCode::FieldInvalid, pointer, message, fix);
    }

    fn wrong_type(&mut self, pointer: &str, kind: &TypeKind, value: &Value) {
        let expected = match kind {
            TypeKind::Single(kind) => type_name(*kind).to_owned(),
            TypeKind::Multiple(kinds) => {
                let names: Vec<_> = kinds.iter().map(type_name).collect();
                names.join(" or ")
            }
        };
        let given = match value {
            Value::Array(_) | Value::Object(_) | Value::Null => shown(value),
            Value::String(_) if self.source.format() != Format::Xml => {
                format!("the text `{}`", shown(value))
            }
            _ => format!("`{}`", shown(value)),
        };
        let message = format!("expected {expected}, not {given}");
        // For example `"8080"` in place of 8080.
        let in_json = self.source.is_json_at(self.wrapper, pointer);
        let quoted = value.as_str().is_some_and(|text| {
            in_json
                && serde_json::from_str::<Value>(text)
                    .is_ok_and(|v| v.is_number() || v.is_boolean())
        });
        let mut fix = quoted.then(|| "write it without the quotes".to_owned());
        if !in_json && self.source.format() == Format::Markdown {
            fix = Some(in_markdown(kind));
        }
        self.add(FindingCode::FieldType, pointer, message, fix);
    }

    fn format(&mut self, pointer: &str, format: &str, value: &Value) {
        let message = format!("`{}` is not a valid {}", shown(value), text::short(format));
        let fix = match format {
            "date-time" => Some("write it like 2026-01-31T12:00:00Z".to_owned()),
            "date" => Some("write it like 2026-01-31".to_owned()),
            _ => None,
        };
        self.add(FindingCode::FieldFormat, pointer, message, fix);
    }

    fn pattern(&mut self, pointer: &str, pattern: &str, value: &Value) {
        let shown = shown(value);
        let blank = value.as_str().is_some_and(text::is_blank);
        let message = if blank {
            "the text is blank".to_owned()
        } else if self.described(pointer).is_some() && pattern.len() > READABLE {
            format!("`{shown}` is not valid here")
        } else {
            let or = match self.shape.node(self.node(pointer)) {
                Node::Leaf(leaf) if leaf.integer => "be a whole number, or ",
                Node::Leaf(leaf) if leaf.number => "be a number, or ",
                _ => "",
            };
            format!("`{shown}` must {or}match {}", text::short(pattern))
        };
        self.add(FindingCode::FieldPattern, pointer, message, None);
    }

    fn range(&mut self, error: &ValidationError<'_>, fault: &str) {
        let message = format!("{} is {fault}", shown(error.instance()));
        let pointer = error.instance_path().as_str();
        self.add(FindingCode::FieldRange, pointer, message, None);
    }

    fn not_allowed(&mut self, pointer: &str, allowed: &[Value], value: &Value) {
        const LISTED: usize = 12;
        let mut texts: Vec<String> = allowed.iter().map(scalar_text).collect();
        if let Some(list) = listing(&texts).cloned() {
            texts.retain(|text| *text != list);
        }
        let mut list: Vec<String> = texts
            .iter()
            .take(LISTED)
            .map(|text| format!("`{}`", text::short(text)))
            .collect();
        if texts.len() > LISTED {
            list.push(format!("or {} others", texts.len() - LISTED));
        }
        let list = list.join(", ");
        let raw = brief(value);
        let shown = text::short(&raw);
        // For example `"false"` in place of false.
        let quoted = value.as_str().is_some_and(|text| {
            allowed
                .iter()
                .any(|v| !v.is_string() && scalar_text(v) == text)
        });
        let message = if quoted {
            format!("the text `{shown}` is not the value {shown}")
        } else if allowed.len() == 1 {
            format!("`{shown}` must be {list}")
        } else {
            format!("`{shown}` is not one of {list}")
        };
        let fix = if quoted {
            Some("write it without the quotes".to_owned())
        } else if texts.iter().any(|text| text == text::trim(&raw)) && value.is_string() {
            Some("remove the blanks around it".to_owned())
        } else if allowed.len() > 1 {
            text::closest(&raw, texts.iter().map(String::as_str))
                .map(|close| format!("did you mean `{}`?", text::short(close)))
        } else {
            None
        };
        self.add(FindingCode::FieldValue, pointer, message, fix);
    }

    fn missing(&mut self, parent: &str, name: &str) {
        let mut pointer = parent.to_owned();
        push_part(&mut pointer, name);
        let prop = self.prop(&pointer);
        let sample = prop
            .filter(|prop| !prop.allowed.is_empty() && prop.allowed.len() <= 8)
            .map_or_else(|| "…".to_owned(), |prop| prop.allowed.join("|"));
        let sample = sample.as_str();
        let shown = prop.map_or(name, |prop| prop.name.as_str());
        let mut fix = match (self.source.format(), prop.map(|prop| prop.spot)) {
            (Format::Xml, Some(Spot::Attribute)) => {
                format!("add the attribute `{shown}=\"{sample}\"`")
            }
            (Format::Xml, Some(Spot::Text)) => "write it as the text of the element".to_owned(),
            (Format::Xml, _) => format!("add `<{shown}>{sample}</{shown}>`"),
            (Format::Markdown, _) if !self.source.is_json_at(self.wrapper, &pointer) => {
                let section = self.wrapper.is_none() && parent.is_empty();
                match (section, prop.map(|prop| self.shape.node(prop.node))) {
                    (
                        true,
                        Some(
                            Node::Object { .. }
                            | Node::Open { object: true }
                            | Node::Json { object: true },
                        ),
                    ) => {
                        format!(
                            "add the section `{}:` with bullets such as `- Key: …`, or with JSON",
                            heading_of(name)
                        )
                    }
                    (true, Some(Node::Array { .. })) => {
                        format!("add the section `{}:` with a list", heading_of(name))
                    }
                    (true, _) => format!("add the section `{}: {sample}`", heading_of(name)),
                    _ => format!("add `- {}: {sample}`", words_of(name)),
                }
            }
            (Format::Json | Format::Markdown, _) => {
                let node = prop.map(|prop| self.shape.node(prop.node));
                match node {
                    Some(
                        Node::Object { .. }
                        | Node::Open { object: true }
                        | Node::Json { object: true },
                    ) => {
                        format!("add `\"{name}\": {{…}}`")
                    }
                    Some(Node::Array { .. }) => format!("add `\"{name}\": […]`"),
                    Some(Node::Leaf(leaf)) if !leaf.string => format!("add `\"{name}\": {sample}`"),
                    _ => format!("add `\"{name}\": \"{sample}\"`"),
                }
            }
        };
        if let Some(description) = prop.and_then(described) {
            fix.push_str(": ");
            fix.push_str(&description);
        }
        let message = format!("`{}` is missing", text::short(shown));
        self.add(FindingCode::FieldMissing, &pointer, message, Some(fix));
    }

    fn unknown(&mut self, parent: &str, name: &str) {
        if self.findings.len() >= MAX_FINDINGS {
            self.more += 1;
            return;
        }
        let mut pointer = parent.to_owned();
        push_part(&mut pointer, name);
        let given = self.value.pointer(parent);
        let node = self.node(parent);
        let close = match self.shape.node(node) {
            Node::Object { props, .. } => {
                let absent = props.iter().filter(|prop| {
                    prop.key != name && given.is_none_or(|given| given.get(&prop.key).is_none())
                });
                text::closest(name, absent.map(|prop| prop.key.as_str()))
            }
            _ => None,
        };
        let list = self
            .list_of(node, name)
            .filter(|_| self.source.format() == Format::Xml);
        let fix = match (list, close) {
            (Some(list), _) => format!("write it inside `<{list}>`"),
            (None, Some(close)) => format!("did you mean `{close}`?"),
            (None, None) => "remove it".to_owned(),
        };
        let message = format!("`{}` is unknown here", text::short(name));
        self.add(FindingCode::FieldUnknown, &pointer, message, Some(fix));
    }

    /// The name of the list whose items have this name, among an object's lists.
    fn list_of(&self, node: usize, name: &str) -> Option<&str> {
        let Node::Object { props, .. } = self.shape.node(node) else {
            return None;
        };
        let holds = |prop: &&Prop| match self.shape.node(prop.node) {
            Node::Array {
                name: item,
                wrapped,
                ..
            } => *wrapped && item == name,
            _ => false,
        };
        props.iter().find(holds).map(|prop| prop.name.as_str())
    }

    /// Explains the alternative that the value matches best, if only one does.
    fn alternatives(&mut self, pointer: &str, context: &[Vec<ValidationError<'static>>]) {
        // The intended branch is of the value's type and has its discriminating constants.
        let score = |branch: &Vec<ValidationError<'static>>| {
            let other = branch.iter().any(|error| match error.kind() {
                Kind::Type { .. } | Kind::FalseSchema => error.instance_path().as_str() == pointer,
                Kind::Constant { .. } => true,
                _ => false,
            });
            (other, branch.len())
        };
        let best = context.iter().map(score).min();
        let mut nearest = context.iter().filter(|branch| Some(score(branch)) == best);
        match (nearest.next(), nearest.next()) {
            (Some(branch), None) => {
                for error in branch {
                    self.explain(error);
                }
            }
            _ => {
                let message = format!("the value fits none of the {} allowed forms", context.len());
                self.invalid(pointer, message, None);
            }
        }
    }

    /// The shape's node at a pointer.
    fn node(&self, pointer: &str) -> usize {
        parts(pointer).fold(self.shape.root(), |node, part| {
            match self.shape.node(node) {
                Node::Array { item, .. } => *item,
                _ => self.shape.property(node, &part).1,
            }
        })
    }

    /// Describes the value expected at a pointer; for an item of a list or an open map, describes
    /// the list or map.
    fn described(&self, pointer: &str) -> Option<String> {
        let parent = || self.prop(pointer.rsplit_once('/')?.0);
        self.prop(pointer).or_else(parent).and_then(described)
    }

    /// The named property at a pointer.
    fn prop(&self, pointer: &str) -> Option<&Prop> {
        let (parent, _) = pointer.rsplit_once('/')?;
        let name = parts(pointer).last()?;
        self.shape.property(self.node(parent), &name).0
    }
}

fn described(prop: &Prop) -> Option<String> {
    let description = prop.description.as_deref()?;
    Some(text::trim(description).trim_end_matches('.').to_owned())
}

/// How to write a value other than text in a Markdown message.
fn in_markdown(kind: &TypeKind) -> String {
    let kinds: Vec<JsonType> = match kind {
        TypeKind::Single(kind) => vec![*kind],
        TypeKind::Multiple(kinds) => kinds.iter().collect(),
    };
    let fix = if kinds.contains(&JsonType::Object) {
        "write bullets such as `- Key: …`, or JSON, on the lines below the heading"
    } else if kinds.contains(&JsonType::Array) {
        "write bullets such as `- …`, or JSON, on the lines below the heading"
    } else if kinds.contains(&JsonType::String) {
        "write it as text beside the heading"
    } else {
        "write the section as JSON: a section's text and its bullets are always text"
    };
    fix.to_owned()
}

/// The message for a text, a list or an object that is too short or too long.
fn wrong_length(error: &ValidationError<'_>) -> Option<String> {
    let value = error.instance();
    Some(match error.kind() {
        Kind::MinLength { limit: 1 } => "the text is empty".to_owned(),
        Kind::MinLength { limit } => {
            format!(
                "`{}` has less than {}",
                shown(value),
                counted(*limit, "character")
            )
        }
        Kind::MaxLength { limit } => {
            format!("the text has more than {}", counted(*limit, "character"))
        }
        Kind::MinItems { .. } if value.as_array().is_some_and(Vec::is_empty) => {
            "the list is empty".to_owned()
        }
        Kind::MinItems { limit } => format!("the list has less than {}", counted(*limit, "item")),
        Kind::MaxItems { limit } => format!("the list has more than {}", counted(*limit, "item")),
        Kind::MinProperties { limit } => {
            format!("there are less than {}", counted(*limit, "field"))
        }
        Kind::MaxProperties { limit } => {
            format!("there are more than {}", counted(*limit, "field"))
        }
        _ => return None,
    })
}

fn type_name(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "a list",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "text",
    }
}

fn shown(value: &Value) -> String {
    text::short(&brief(value))
}

/// A short description of a value.
fn brief(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => text.chars().take(80).collect(),
        other => other.to_string(),
    }
}
