//! Maps XML elements to values, guided by a shape.

use std::collections::HashMap;

use handoff_base::finding::{Finding, FindingCode};
use serde_json::{Map, Number, Value};

use super::shape::{LeafType, Node, OPEN, Prop, Shape, Spot};
use super::xml::{Attribute, Document, Element};
use super::{BY_SEND, FILL, MAX_FINDINGS, json, text};

/// Maps a document to a value, and reports what the value can't represent.
pub(super) fn to_value(source: &str, document: &Document, shape: &Shape) -> Mapped {
    let mut mapper = Mapper {
        source,
        document,
        shape,
        findings: Vec::new(),
        more: 0,
    };
    let root = document.root();
    let trail = Trail {
        parent: None,
        name: &root.name,
        position: None,
    };
    let value = mapper.value(root, shape.root(), &trail);
    Mapped {
        value,
        findings: mapper.findings,
        more: mapper.more,
    }
}

/// A mapped value, and findings about what it can't represent.
pub(super) struct Mapped {
    pub(super) value: Value,
    pub(super) findings: Vec<Finding>,
    /// The number of omitted findings.
    pub(super) more: usize,
}

/// The path to an element, rendered only for a finding.
struct Trail<'a> {
    parent: Option<&'a Trail<'a>>,
    name: &'a str,
    position: Option<usize>,
}

impl Trail<'_> {
    fn path(&self) -> String {
        let mut path = self.parent.map(Trail::path).unwrap_or_default();
        path.push('/');
        path.push_str(self.name);
        if let Some(position) = self.position {
            path.push_str(&format!("[{position}]"));
        }
        path
    }
}

struct Mapper<'a> {
    source: &'a str,
    document: &'a Document,
    shape: &'a Shape,
    findings: Vec<Finding>,
    more: usize,
}

impl Mapper<'_> {
    fn report(&mut self, offset: usize, make: impl FnOnce() -> Finding) {
        if self.findings.len() >= MAX_FINDINGS {
            self.more += 1;
            return;
        }
        let (line, column) = text::position(self.source, offset);
        self.findings.push(make().at(line, column));
    }

    fn value(&mut self, element: &Element, node: usize, trail: &Trail<'_>) -> Value {
        let shape = self.shape;
        match shape.node(node) {
            Node::Leaf(leaf) => self.leaf(element, *leaf, trail),
            Node::Object { props, additional } => {
                self.object(element, props, additional.unwrap_or(OPEN), trail)
            }
            Node::Array { item, name, .. } => self.array(element, *item, name, trail),
            Node::Open { object } => match open(self.document, element) {
                Value::String(text) if *object && text::is_blank(&text) => {
                    Value::Object(Map::new())
                }
                value => value,
            },
            Node::Json { .. } => self.json(element, trail),
        }
    }

    /// Parses an element's text as JSON. If it is not JSON, the text is kept, and the schema
    /// reports it.
    fn json(&mut self, element: &Element, trail: &Trail<'_>) -> Value {
        let text = LeafType {
            string: true,
            ..LeafType::default()
        };
        let text = self.leaf(element, text, trail);
        let parsed = text.as_str().map(json::parse_any);
        match parsed {
            Some(Ok(value)) if !value.is_string() => value,
            _ => text,
        }
    }

    fn leaf(&mut self, element: &Element, leaf: LeafType, trail: &Trail<'_>) -> Value {
        for attribute in &element.attributes {
            self.unknown_attribute(attribute, &[], trail);
        }
        self.no_elements_within(element, trail);
        coerce(&element.text, leaf)
    }

    /// Reports child elements of an element that should contain only text.
    fn no_elements_within(&mut self, element: &Element, trail: &Trail<'_>) {
        if let Some(child) = self.document.children(element).next() {
            self.report(child.offset, || {
                let message = format!(
                    "`{}` holds text, not elements such as `{}`",
                    text::short(&element.name),
                    text::short(&child.name)
                );
                Finding::error(FindingCode::XmlUnexpectedElement, trail.path(), message)
                    .fix("write < as &lt; if it is meant as text")
            });
        }
    }

    fn array(&mut self, element: &Element, item: usize, name: &str, trail: &Trail<'_>) -> Value {
        for attribute in &element.attributes {
            self.unknown_attribute(attribute, &[], trail);
        }
        self.unexpected_text(element, trail);
        let document = self.document;
        let mut items = Vec::new();
        for child in document.children(element) {
            let position = Some(items.len() + 1);
            if *child.name == *name {
                let trail = Trail {
                    parent: Some(trail),
                    name,
                    position,
                };
                items.push(self.value(child, item, &trail));
            } else {
                self.report(child.offset, || {
                    let path = format!("{}/{}", trail.path(), child.name);
                    let message = format!(
                        "`{}` holds `{name}` elements, not `{}`",
                        text::short(&element.name),
                        text::short(&child.name)
                    );
                    Finding::error(FindingCode::FieldUnknown, path, message)
                        .fix(format!("write `<{name}>…</{name}>`"))
                });
            }
        }
        Value::Array(items)
    }

    fn object(
        &mut self,
        element: &Element,
        props: &[Prop],
        additional: usize,
        trail: &Trail<'_>,
    ) -> Value {
        let mut members = Map::with_capacity(props.len());
        for attribute in &element.attributes {
            let prop = props
                .iter()
                .find(|prop| prop.spot == Spot::Attribute && prop.name == *attribute.name);
            match prop {
                Some(prop) => {
                    let value = match self.shape.node(prop.node) {
                        Node::Leaf(leaf) => coerce(&attribute.value, *leaf),
                        _ => Value::String(attribute.value.to_string()),
                    };
                    members.insert(prop.key.clone(), value);
                }
                None => self.unknown_attribute(attribute, props, trail),
            }
        }
        if let Some(prop) = props.iter().find(|prop| prop.spot == Spot::Text) {
            if !element.text.is_empty() || prop.required {
                let value = match self.shape.node(prop.node) {
                    Node::Leaf(leaf) => coerce(&element.text, *leaf),
                    _ => Value::String(element.text.to_string()),
                };
                members.insert(prop.key.clone(), value);
            }
            self.no_elements_within(element, trail);
            return Value::Object(members);
        }
        self.unexpected_text(element, trail);
        self.child_elements(element, props, additional, trail, &mut members);
        for prop in props {
            let empty = prop.required && self.shape.is_bare_array(prop.node);
            if empty && !members.contains_key(&prop.key) {
                members.insert(prop.key.clone(), Value::Array(Vec::new()));
            }
        }
        Value::Object(members)
    }

    fn child_elements(
        &mut self,
        element: &Element,
        props: &[Prop],
        additional: usize,
        trail: &Trail<'_>,
        members: &mut Map<String, Value>,
    ) {
        let (document, shape) = (self.document, self.shape);
        let mut unknown: HashMap<&str, usize> = HashMap::new();
        for child in document.children(element) {
            let prop = props
                .iter()
                .find(|prop| prop.spot == Spot::Element && prop.name == *child.name);
            let inner = |position| Trail {
                parent: Some(trail),
                name: &child.name,
                position,
            };
            let Some(prop) = prop else {
                if let Some(prop) = props.iter().find(|prop| prop.key == *child.name) {
                    self.report(child.offset, || misplaced(prop, &child.name, trail));
                    continue;
                }
                let count = unknown.entry(&child.name).or_insert(0);
                *count += 1;
                let count = *count;
                if let Node::Array {
                    item,
                    wrapped: false,
                    ..
                } = shape.node(additional)
                {
                    let value = self.value(child, *item, &inner(Some(count)));
                    let items = members
                        .entry(child.name.to_string())
                        .or_insert_with(|| Value::Array(Vec::new()));
                    if let Value::Array(items) = items {
                        items.push(value);
                    }
                    continue;
                }
                let position = (count > 1).then_some(count);
                let value = self.value(child, additional, &inner(position));
                match members.get_mut(&*child.name) {
                    None => {
                        members.insert(child.name.to_string(), value);
                    }
                    Some(Value::Array(items)) if count > 2 => items.push(value),
                    Some(first) => {
                        let both = vec![first.take(), value];
                        *first = Value::Array(both);
                    }
                }
                continue;
            };
            if let Node::Array {
                item,
                wrapped: false,
                ..
            } = shape.node(prop.node)
            {
                let items = members
                    .entry(prop.key.clone())
                    .or_insert_with(|| Value::Array(Vec::new()));
                let position = items.as_array().map_or(0, Vec::len) + 1;
                let value = self.value(child, *item, &inner(Some(position)));
                if let Some(Value::Array(items)) = members.get_mut(&prop.key) {
                    items.push(value);
                }
                continue;
            }
            if members.contains_key(&prop.key) {
                self.report(child.offset, || {
                    let message = format!("`{}` is given more than once", prop.name);
                    Finding::error(FindingCode::FieldRepeated, inner(None).path(), message)
                        .fix("keep one of them")
                });
                continue;
            }
            let value = self.value(child, prop.node, &inner(None));
            members.insert(prop.key.clone(), value);
        }
    }

    fn unexpected_text(&mut self, element: &Element, trail: &Trail<'_>) {
        if text::is_blank(&element.text) {
            return;
        }
        let unfilled = element.text.contains(FILL);
        self.report(element.text_offset, || {
            let path = trail.path();
            if unfilled {
                return unfilled_finding(path, &element.text);
            }
            let message = format!(
                "`{}` holds elements, not text such as `{}`",
                text::short(&element.name),
                text::short(text::trim(&element.text))
            );
            Finding::error(FindingCode::XmlUnexpectedText, path, message)
        });
    }

    fn unknown_attribute(&mut self, attribute: &Attribute, props: &[Prop], trail: &Trail<'_>) {
        self.report(attribute.offset, || {
            let name = &*attribute.name;
            let path = format!("{}/@{name}", trail.path());
            let shown = text::short(name);
            let message = format!("the attribute `{shown}` is unknown here");
            let finding = Finding::error(FindingCode::FieldUnknown, path, message);
            let element = props
                .iter()
                .find(|prop| prop.spot == Spot::Element && prop.name == name);
            let attributes = props.iter().filter(|prop| prop.spot == Spot::Attribute);
            let close = text::closest(name, attributes.map(|prop| prop.name.as_str()));
            match (element, close) {
                (Some(_), _) => finding.fix(format!("write it as the element `<{shown}>`")),
                (None, Some(close)) => finding.fix(format!("did you mean `{close}`?")),
                (None, None) => finding.fix("remove it"),
            }
        });
    }
}

/// The finding for an element that should be an attribute or text, or has a wrong name.
fn misplaced(prop: &Prop, name: &str, trail: &Trail<'_>) -> Finding {
    let path = format!("{}/{name}", trail.path());
    let message = format!("the element `{name}` is unknown here");
    let fix = match prop.spot {
        Spot::Attribute => format!("write it as the attribute `{}=\"…\"`", prop.name),
        Spot::Element => format!("write it as the element `<{}>`", prop.name),
        Spot::Text => "write it as the text of the element".to_owned(),
    };
    Finding::error(FindingCode::FieldUnknown, path, message).fix(fix)
}

/// The rest of [`BY_SEND`] after [`FILL`].
const BY_SEND_WORDS: &str = " by send";

/// The finding for a placeholder that is not filled in.
pub(super) fn unfilled_finding(path: String, value: &str) -> Finding {
    let what = value
        .split_once(FILL)
        .and_then(|(_, rest)| rest.split_once("}}"))
        .map(|(what, _)| what.strip_prefix(BY_SEND_WORDS).unwrap_or(what))
        .map(|what| text::trim(what.trim_start_matches(':')))
        .filter(|what| !what.is_empty());
    let message = if value.contains(BY_SEND) {
        "`send` can't tell what belongs here"
    } else {
        "this place is not filled in yet"
    };
    let finding = Finding::error(FindingCode::FieldUnfilled, path, message);
    match what {
        Some(what) => finding.fix(format!("write here: {}", text::short(what))),
        None => finding.fix("replace the mark by the value"),
    }
}

/// Maps content without a schema: members, with repeated ones as arrays, `@name` and `#text`.
fn open(document: &Document, element: &Element) -> Value {
    if element.is_leaf() && element.attributes.is_empty() {
        return Value::String(element.text.to_string());
    }
    let mut members = Map::new();
    for attribute in &element.attributes {
        let value = Value::String(attribute.value.to_string());
        members.insert(format!("@{}", attribute.name), value);
    }
    if !element.text.is_empty() {
        let value = Value::String(element.text.to_string());
        members.insert("#text".to_owned(), value);
    }
    for child in document.children(element) {
        let value = open(document, child);
        match members.get_mut(&*child.name) {
            None => {
                members.insert(child.name.to_string(), value);
            }
            // Open content never maps one element to an array, so this array holds the repetitions
            // so far.
            Some(Value::Array(items)) => items.push(value),
            Some(first) => {
                let both = vec![first.take(), value];
                *first = Value::Array(both);
            }
        }
    }
    Value::Object(members)
}

/// Parses a scalar. A text that does not have the type is kept, and the schema reports it.
fn coerce(raw: &str, leaf: LeafType) -> Value {
    let as_it_is = || Value::String(raw.to_owned());
    let is_numeric = leaf.integer || leaf.number;
    // Where both numbers and texts are valid, a numeric text is a number.
    if leaf.string && !is_numeric {
        return as_it_is();
    }
    let trimmed = text::trim(raw);
    if is_numeric && let Some(number) = integer(trimmed) {
        return Value::Number(number);
    }
    if leaf.number
        && let Some(number) = decimal(trimmed)
    {
        return Value::Number(number);
    }
    match trimmed {
        "true" | "1" if leaf.boolean => Value::Bool(true),
        "false" | "0" if leaf.boolean => Value::Bool(false),
        _ => as_it_is(),
    }
}

fn integer(raw: &str) -> Option<Number> {
    let digits = raw.strip_prefix(['+', '-']).unwrap_or(raw);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match raw.parse::<i64>() {
        Ok(number) => Some(number.into()),
        Err(_) => raw.parse::<u64>().ok().map(Number::from),
    }
}

fn decimal(raw: &str) -> Option<Number> {
    let plain = raw
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    if !plain {
        return None;
    }
    raw.parse::<f64>().ok().and_then(Number::from_f64)
}
