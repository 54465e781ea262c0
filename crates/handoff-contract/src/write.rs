//! Writes values as XML, JSON and Markdown messages.

use quick_xml::escape::partial_escape;
use serde_json::{Map, Value};

use super::line::{heading_of, words_of};
use super::shape::{Node, OPEN, Shape, Spot};
use super::text;
use super::value::scalar_text;

/// Writes a value as XML, indented by two spaces, with a line feed at the end.
///
/// Parsing it back with the same shape gives the same value, if the value fits the shape, its keys
/// are XML names, and open content has only strings, objects, and arrays of two or more items.
/// Content that is written as JSON is not restricted. Characters that XML can't contain become
/// U+FFFD; in keys, characters that a name can't contain become `_`.
pub fn write_xml(value: &Value, shape: &Shape, root: &str) -> String {
    let mut writer = Writer {
        out: String::new(),
        shape,
    };
    writer.element(root, value, shape.root(), 0);
    writer.out
}

/// Writes a value as JSON, indented, with a line feed at the end.
pub fn write_json(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Writes an object or a list as the data of a Markdown message: indented JSON, with a line feed at
/// the end.
///
/// Parsing it back gives the same value under `/handoff_data`. Names and status may be any text:
/// each is reduced to one line, so that none can add a section or a title. An empty status is left
/// out.
pub fn write_markdown(value: &Value, from: &str, to: &str, status: &str) -> String {
    let name = |name: &str| {
        let line = contract_line(name).replace(['→', '>'], "-");
        if line.is_empty() {
            "?".to_owned()
        } else {
            line
        }
    };
    let rule = "=".repeat(48);
    let mut out = format!("HANDOFF: {} → {}\n{rule}\n", name(from), name(to));
    let status = contract_line(status);
    if !status.is_empty() {
        out.push_str(&format!("STATUS: {status}\n\n"));
    }
    out.push_str(&format!("HANDOFF DATA:\n{value:#}\n{rule}\n"));
    out
}

/// Writes a value as a Markdown message with sections: texts beside their headings, named texts as
/// bullets, anything else as JSON.
///
/// Parsing it back gives the same value, if its keys have the form of headings and bullets, and no
/// text is empty or multi-line. If the shape expects another type than text, a text is a
/// placeholder: it is written where the value that replaces it will parse.
pub fn write_message(value: &Value, shape: &Shape) -> String {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let rule = "=".repeat(48);
    let name = |name: &str| contract_line(name).replace(['→', '>'], "-");
    let mut out = format!(
        "HANDOFF: {} → {}\n{rule}\n",
        name(text("from")),
        name(text("to"))
    );
    let sections = value.as_object().into_iter().flatten();
    for (key, section) in sections.filter(|(key, _)| !["from", "to"].contains(&key.as_str())) {
        let heading = heading_of(key);
        let (_, node) = shape.property(shape.root(), key);
        let is_text = |node: usize| match shape.node(node) {
            Node::Leaf(leaf) => leaf.string,
            Node::Open { object } | Node::Json { object } => !object,
            Node::Object { .. } | Node::Array { .. } => false,
        };
        match section {
            Value::String(text) if !is_text(node) => {
                out.push_str(&format!("{heading}:\n{}\n\n", contract_line(text)));
            }
            Value::String(text) => out.push_str(&format!("{heading}: {}\n\n", contract_line(text))),
            Value::Object(members)
                if !members.is_empty()
                    && members.values().all(Value::is_string)
                    && members.keys().all(|k| is_text(shape.property(node, k).1)) =>
            {
                out.push_str(&format!("{heading}:\n"));
                for (key, text) in members {
                    let text = contract_line(text.as_str().unwrap_or_default());
                    out.push_str(&format!("- {}: {text}\n", words_of(key)));
                }
                out.push('\n');
            }
            other => out.push_str(&format!("{heading}:\n{other:#}\n\n")),
        }
    }
    let body = out.trim_end().len();
    out.truncate(body);
    out.push_str(&format!("\n{rule}\n"));
    out
}

/// Elements of one name, one for each value, without white space between them.
pub(super) fn elements(shape: &Shape, name: &str, node: usize, values: &[Value]) -> String {
    let mut all = String::new();
    for value in values {
        let mut writer = Writer {
            out: String::new(),
            shape,
        };
        writer.element(name, value, node, 0);
        all += writer.out.trim_end();
    }
    all
}

/// Escapes a text as the content of an element.
pub(super) fn element_text(value: &str) -> String {
    let mut out = String::new();
    escape_into(&mut out, value, false);
    out
}

/// Escapes a text as an attribute's value, for either kind of quotes.
pub(super) fn attribute_text(value: &str) -> String {
    let mut out = String::new();
    escape_into(&mut out, value, true);
    out.replace('\'', "&apos;")
}

/// A text as one line, without characters that contracts can't contain.
fn contract_line(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| match c {
            '\u{2028}' | '\u{2029}' => ' ',
            c if c.is_control() => ' ',
            c if text::is_xml_char(c) => c,
            _ => '\u{fffd}',
        })
        .collect();
    text::trim(&line).to_owned()
}

struct Writer<'a> {
    out: String,
    shape: &'a Shape,
}

impl Writer<'_> {
    fn indent(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n("  ", depth));
    }

    fn start(&mut self, name: &str) {
        self.out.push('<');
        self.out.push_str(&safe_name(name));
    }

    fn end(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(&safe_name(name));
        self.out.push('>');
    }

    fn attribute(&mut self, name: &str, value: &str) {
        self.out.push(' ');
        self.out.push_str(&safe_name(name));
        self.out.push_str("=\"");
        escape_into(&mut self.out, value, true);
        self.out.push('"');
    }

    /// Writes one element on a separate line.
    fn element(&mut self, name: &str, value: &Value, node: usize, depth: usize) {
        self.indent(depth);
        self.start(name);
        match (self.shape.node(node), value) {
            (Node::Object { .. }, Value::Object(members)) => {
                self.object(name, members, node, depth);
            }
            (
                Node::Array {
                    item, name: each, ..
                },
                Value::Array(items),
            ) => {
                if items.is_empty() {
                    self.out.push_str("/>");
                } else {
                    self.out.push_str(">\n");
                    for value in items {
                        self.element(each, value, *item, depth + 1);
                    }
                    self.indent(depth);
                    self.end(name);
                }
            }
            // A placeholder is written as plain text, so that it is reported as unfilled.
            (Node::Json { .. }, value) if !value.is_string() => self.text(name, &value.to_string()),
            (_, Value::Object(members)) => self.open(name, members, depth),
            (_, value) => self.text(name, &flat(value)),
        }
        self.out.push('\n');
    }

    /// Closes a start tag, then writes text and end tag.
    fn text(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            self.out.push_str("/>");
        } else {
            self.out.push('>');
            escape_into(&mut self.out, value, false);
            self.end(name);
        }
    }

    fn object(&mut self, name: &str, members: &Map<String, Value>, node: usize, depth: usize) {
        let shape = self.shape;
        let mut own_text = None;
        let mut children = Vec::new();
        for (key, value) in members {
            let (prop, next) = shape.property(node, key);
            match prop.map(|prop| (prop.spot, prop.name.as_str())) {
                _ if value.is_null() => {}
                Some((Spot::Attribute, name)) => self.attribute(name, &flat(value)),
                Some((Spot::Text, _)) => own_text = Some(flat(value)),
                Some((Spot::Element, name)) => children.push((name, value, next)),
                None => children.push((key.as_str(), value, next)),
            }
        }
        if let Some(text) = own_text {
            return self.text(name, &text);
        }
        let mut opened = false;
        for (child, value, next) in children {
            let item = match shape.node(next) {
                Node::Array {
                    item,
                    wrapped: false,
                    ..
                } => Some(*item),
                Node::Array { .. } => None,
                _ => Some(next),
            };
            let values = match (item, value) {
                (Some(_), Value::Array(items)) => items.as_slice(),
                _ => std::slice::from_ref(value),
            };
            for value in values {
                if !opened {
                    self.out.push_str(">\n");
                    opened = true;
                }
                self.element(child, value, item.unwrap_or(next), depth + 1);
            }
        }
        if opened {
            self.indent(depth);
            self.end(name);
        } else {
            self.out.push_str("/>");
        }
    }

    /// Writes an object without a schema.
    fn open(&mut self, name: &str, members: &Map<String, Value>, depth: usize) {
        for (key, value) in members {
            if let Some(name) = key.strip_prefix('@') {
                self.attribute(name, &flat(value));
            }
        }
        let own_text = members.get("#text").map(flat).unwrap_or_default();
        let children = members
            .iter()
            .filter(|(key, _)| !key.starts_with('@') && *key != "#text");
        let mut opened = false;
        for (key, value) in children {
            let values = match value {
                Value::Array(items) => items.as_slice(),
                value => std::slice::from_ref(value),
            };
            for value in values {
                if !opened {
                    self.out.push('>');
                    escape_into(&mut self.out, &own_text, false);
                    opened = true;
                }
                // Next to text, white space would become part of the text.
                if own_text.is_empty() {
                    if !self.out.ends_with('\n') {
                        self.out.push('\n');
                    }
                    self.element(key, value, OPEN, depth + 1);
                } else {
                    let start = self.out.len();
                    self.element(key, value, OPEN, 0);
                    debug_assert!(self.out.len() > start);
                    self.out.pop();
                }
            }
        }
        if opened {
            if own_text.is_empty() {
                self.indent(depth);
            }
            self.end(name);
        } else {
            self.text(name, &own_text);
        }
    }
}

/// A value as the text of an attribute or a leaf.
fn flat(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        value => scalar_text(value),
    }
}

fn safe_name(name: &str) -> std::borrow::Cow<'_, str> {
    if text::is_name(name) {
        return name.into();
    }
    let mut safe: String = name
        .chars()
        .map(|c| if text::is_name_char(c) { c } else { '_' })
        .collect();
    if !safe.starts_with(text::is_name_start) {
        safe.insert(0, '_');
    }
    safe.into()
}

fn escape_into(out: &mut String, value: &str, in_attribute: bool) {
    for c in partial_escape(value).chars() {
        match c {
            '\r' => out.push_str("&#13;"),
            '\n' if in_attribute => out.push_str("&#10;"),
            '\t' if in_attribute => out.push_str("&#9;"),
            '"' if in_attribute => out.push_str("&quot;"),
            c if text::is_xml_char(c) => out.push(c),
            _ => out.push('\u{fffd}'),
        }
    }
}
