//! Turns faults into findings with our codes and messages, which do not quote the whole value.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::pointer::{parts, push_part};
use handoff_base::text::counted;
use serde_json::Value;

use super::evaluate::{Fault, Rule};
use super::line::{heading_of, words_of};
use super::shape::{Node, Prop, Shape, Spot, listing};
use super::source::{Format, Source};
use super::value::scalar_text;
use super::{MAX_FINDINGS, text};

/// The maximum length of a pattern shown beside a description, in bytes.
const READABLE: usize = 48;

/// Collects the findings of one check.
pub(super) struct Explainer<'a> {
    pub(super) source: &'a Source,
    pub(super) shape: &'a Shape,
    pub(super) wrapper: Option<&'a str>,
    pub(super) value: &'a Value,
    pub(super) findings: &'a mut Vec<Finding>,
    /// The number of omitted findings.
    pub(super) more: usize,
}

impl Explainer<'_> {
    /// Adds the findings of a fault. Recursion is bounded by how deep the schema nests
    /// alternatives.
    pub(super) fn explain(&mut self, fault: &Fault<'_>) {
        let pointer = fault.pointer.as_str();
        let value = self.value.pointer(pointer).unwrap_or(&Value::Null);
        match &fault.rule {
            Rule::Missing(name) => self.missing(pointer, name),
            Rule::Unknown(name) => self.unknown(pointer, name),
            Rule::Type(given) => self.wrong_type(pointer, given, value),
            Rule::OneOf(allowed) => self.not_allowed(pointer, allowed, value),
            Rule::Const(allowed) => {
                self.not_allowed(pointer, std::slice::from_ref(*allowed), value)
            }
            Rule::Pattern(pattern) => self.pattern(pointer, pattern, value),
            Rule::Format(format) => self.format(pointer, format, value),
            Rule::Range(keyword, limit) => {
                let than = match *keyword {
                    "minimum" => "less than",
                    "maximum" => "more than",
                    "exclusiveMinimum" => "not more than",
                    "exclusiveMaximum" => "not less than",
                    _ => "not a multiple of",
                };
                let message = format!("{} is {than} {limit}", shown(value));
                self.add(FindingCode::FieldRange, pointer, message, None);
            }
            Rule::Length(keyword, limit) => {
                let message = wrong_length(keyword, *limit, value);
                self.add(FindingCode::FieldLength, pointer, message, None);
            }
            Rule::NoAlternative(branches) => self.alternatives(pointer, branches),
            Rule::SeveralAlternatives => {
                let message = "the value fits several forms of which only one is allowed";
                self.invalid(pointer, message.to_owned(), None);
            }
            Rule::Unique => {
                let message = "the list holds the same item twice".to_owned();
                self.invalid(pointer, message, None);
            }
            Rule::Contains(item) => {
                let message = match item.and_then(required_item) {
                    Some(wanted) => format!("no item of the list is {wanted}"),
                    None => "the list does not hold the items that it must hold".to_owned(),
                };
                self.add(FindingCode::FieldValue, pointer, message, None);
            }
            Rule::Never => {
                let message = "this is not allowed here".to_owned();
                self.invalid(pointer, message, Some("remove it"));
            }
            Rule::Not => {
                let message = "the value has a form that is not allowed here".to_owned();
                self.invalid(pointer, message, None);
            }
            Rule::Name(name) => {
                let name: String = name.chars().take(80).collect();
                let message = format!("`{}` is not a valid name here", text::short(&name));
                self.invalid(pointer, message, Some("rename it"));
            }
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

    fn wrong_type(&mut self, pointer: &str, types: &Value, value: &Value) {
        let names = TYPES.iter().filter(|(kind, _)| has_type(types, kind));
        let names: Vec<_> = names.map(|(_, name)| *name).collect();
        let expected = names.join(" or ");
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
            fix = Some(in_markdown(types));
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
    fn alternatives(&mut self, pointer: &str, branches: &[Vec<Fault<'_>>]) {
        // The intended branch is of the value's type and has its discriminating constants.
        let score = |branch: &Vec<Fault<'_>>| {
            let other = branch.iter().any(|fault| match fault.rule {
                Rule::Type(_) | Rule::Never => fault.pointer == pointer,
                Rule::Const(_) => true,
                _ => false,
            });
            (other, branch.len())
        };
        let best = branches.iter().map(score).min();
        let mut nearest = branches.iter().filter(|branch| Some(score(branch)) == best);
        match (nearest.next(), nearest.next()) {
            (Some(branch), None) => {
                for fault in branch {
                    self.explain(fault);
                }
            }
            _ => {
                let message = format!(
                    "the value fits none of the {} allowed forms",
                    branches.len()
                );
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
fn in_markdown(types: &Value) -> String {
    let fix = if has_type(types, "object") {
        "write bullets such as `- Key: …`, or JSON, on the lines below the heading"
    } else if has_type(types, "array") {
        "write bullets such as `- …`, or JSON, on the lines below the heading"
    } else if has_type(types, "string") {
        "write it as text beside the heading"
    } else {
        "write the section as JSON: a section's text and its bullets are always text"
    };
    fix.to_owned()
}

/// The message for a text, a list or an object that is too short or too long.
fn wrong_length(keyword: &str, limit: u64, value: &Value) -> String {
    let than = if keyword.starts_with("min") {
        "less"
    } else {
        "more"
    };
    match value {
        Value::String(_) if keyword == "minLength" && limit == 1 => "the text is empty".to_owned(),
        Value::String(_) => {
            let text = match than {
                "less" => format!("`{}`", shown(value)),
                _ => "the text".to_owned(),
            };
            format!("{text} has {than} than {}", counted(limit, "character"))
        }
        Value::Array(items) if items.is_empty() => "the list is empty".to_owned(),
        Value::Array(_) => format!("the list has {than} than {}", counted(limit, "item")),
        _ => format!("there are {than} than {}", counted(limit, "field")),
    }
}

/// Describes an item that a list must hold, if its schema is a single condition that can be put into
/// words.
fn required_item(item: &Value) -> Option<String> {
    let mut asked = item.as_object()?.iter().filter(|(key, _)| {
        let key = key.as_str();
        key != "type" && key != "description"
    });
    let (keyword, value) = asked.next().filter(|_| asked.next().is_none())?;
    let shown = text::short(&scalar_text(value));
    match keyword.as_str() {
        "minimum" => Some(format!("at least {shown}")),
        "maximum" => Some(format!("at most {shown}")),
        "exclusiveMinimum" => Some(format!("more than {shown}")),
        "exclusiveMaximum" => Some(format!("less than {shown}")),
        "const" if !value.is_object() && !value.is_array() => Some(format!("`{shown}`")),
        _ => None,
    }
}

/// The types of JSON Schema, and what findings call them.
const TYPES: [(&str, &str); 7] = [
    ("null", "null"),
    ("boolean", "true or false"),
    ("integer", "a whole number"),
    ("number", "a number"),
    ("string", "text"),
    ("array", "a list"),
    ("object", "an object"),
];

/// Whether `type` has a type.
fn has_type(types: &Value, name: &str) -> bool {
    let mut names = types
        .as_array()
        .map_or(std::slice::from_ref(types), Vec::as_slice)
        .iter();
    names.any(|one| one == name)
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
