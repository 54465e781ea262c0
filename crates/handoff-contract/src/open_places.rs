//! Fills in the placeholders that `send` provides values for. All other bytes and all line numbers
//! stay the same, so that findings name places in the original.

use std::ops::Range;

use handoff_base::pointer::{parts, push_part};
use serde_json::Value;

use super::markdown::Message;
use super::shape::{Node, OPEN, Shape, Spot};
use super::source::{Source, Tree};
use super::value::{each_text, scalar_text};
use super::write::{attribute_text, element_text, elements};
use super::xml::{Document, Element};
use super::{BY_SEND, scan, text};

/// A contract with its open places filled in as far as values are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Its text.
    pub text: String,
    /// The pointers of the places that are still open.
    pub left: Vec<String>,
}

/// An open place: its pointer, and the range of text to replace.
struct OpenPlace {
    pointer: String,
    range: Range<usize>,
    form: Form,
}

/// How the value of an open place is written.
enum Form {
    Json,
    /// On one line of a Markdown message.
    Line,
    Attribute,
    /// As the content of an element of this shape.
    Content(usize),
    /// As elements of this name and shape, one for each list entry, in place of the one element.
    Elements(String, usize),
}

impl Source {
    /// Fills in each open place for whose JSON Pointer `value` returns a value.
    pub fn filled(
        &self,
        shape: &Shape,
        wrapper: Option<&str>,
        value: impl Fn(&str) -> Option<Value>,
    ) -> Filled {
        let mut places = match self.tree() {
            Tree::Xml(document) => {
                let mut walk = InXml {
                    text: self.text(),
                    document,
                    shape,
                    found: Vec::new(),
                };
                walk.element(document.root(), shape.root(), &mut String::new());
                walk.found
            }
            Tree::Json(_) => in_json(self.text()),
            Tree::Markdown(message) => in_message(self.text(), message),
        };
        places.sort_by_key(|place| place.range.start);
        let within = wrapper.map(|wrapper| {
            let mut pointer = String::new();
            push_part(&mut pointer, wrapper);
            pointer
        });
        let mut filled = Filled {
            text: String::new(),
            left: Vec::new(),
        };
        let mut done = 0;
        for place in places {
            let inner = within
                .as_deref()
                .and_then(|w| place.pointer.strip_prefix(w));
            let pointer = inner.unwrap_or(&place.pointer);
            let known = value(pointer).and_then(|value| written(&value, &place.form, shape));
            match known {
                Some(known) if place.range.start >= done => {
                    filled.text += &self.text()[done..place.range.start];
                    filled.text += &known;
                    done = place.range.end;
                }
                _ => filled.left.push(pointer.to_owned()),
            }
        }
        filled.text += &self.text()[done..];
        filled
    }
}

fn in_message(text: &str, message: &Message) -> Vec<OpenPlace> {
    let mut found = Vec::new();
    each_text(
        message.value(),
        &mut String::new(),
        "",
        &mut |pointer, _, value| {
            if !is_open(value) {
                return;
            }
            let parts: Vec<String> = parts(pointer).collect();
            let start = message.locate(text, &parts);
            let (range, form) = if message.is_json(&parts) {
                (Some(start..scan::value_end(text, start)), Form::Json)
            } else {
                (mark_from(text, start), Form::Line)
            };
            found.extend(range.map(|range| OpenPlace {
                pointer: pointer.to_owned(),
                range,
                form,
            }));
        },
    );
    found
}

/// Whether a text is nothing but the placeholder of an open place.
fn is_open(text: &str) -> bool {
    let text = text::trim(text);
    text.starts_with(BY_SEND) && text.ends_with("}}")
}

/// The range of the first placeholder at or after an offset.
fn mark_from(text: &str, from: usize) -> Option<Range<usize>> {
    let start = from + text.get(from..)?.find(BY_SEND)?;
    let end = start + text[start..].find("}}")? + 2;
    Some(start..end)
}

fn in_json(text: &str) -> Vec<OpenPlace> {
    let mut found = Vec::new();
    scan::walk(text, &mut |pointer, start, seen| {
        if let scan::Seen::Text(value) = seen
            && is_open(value)
        {
            found.push(OpenPlace {
                pointer: pointer.to_owned(),
                range: start..scan::value_end(text, start),
                form: Form::Json,
            });
        }
    });
    found
}

struct InXml<'a> {
    text: &'a str,
    document: &'a Document,
    shape: &'a Shape,
    found: Vec<OpenPlace>,
}

impl InXml<'_> {
    fn add(&mut self, pointer: &str, range: Option<Range<usize>>, form: Form) {
        self.found.extend(range.map(|range| OpenPlace {
            pointer: pointer.to_owned(),
            range,
            form,
        }));
    }

    /// Recursion is bounded by the document's depth.
    fn element(&mut self, element: &Element, node: usize, pointer: &mut String) {
        let length = pointer.len();
        let shape = self.shape;
        let (props, additional) = match shape.node(node) {
            Node::Object { props, additional } => (props.as_slice(), additional.unwrap_or(OPEN)),
            _ => (&[][..], OPEN),
        };
        for attribute in element.attributes.iter().filter(|a| is_open(&a.value)) {
            let named = |spot| {
                props
                    .iter()
                    .find(move |prop| prop.spot == spot && *prop.name == *attribute.name)
            };
            if let Some(prop) = named(Spot::Attribute) {
                push_part(pointer, &prop.key);
                let range = mark_from(self.text, attribute.offset);
                self.add(pointer, range, Form::Attribute);
                pointer.truncate(length);
            }
        }
        if is_open(&element.text) {
            let range = mark_from(self.text, element.text_offset);
            let own = props.iter().find(|prop| prop.spot == Spot::Text);
            if let Some(own) = own {
                push_part(pointer, &own.key);
            }
            let node = own.map_or(node, |own| own.node);
            self.add(pointer, range, Form::Content(node));
            pointer.truncate(length);
        }
        if let Node::Array { item, .. } = shape.node(node) {
            for (index, child) in self.document.children(element).enumerate() {
                push_part(pointer, &index.to_string());
                self.element(child, *item, pointer);
                pointer.truncate(length);
            }
            return;
        }
        let mut entries: Vec<(&str, usize)> = Vec::new();
        for child in self.document.children(element) {
            let prop = props
                .iter()
                .find(|prop| prop.spot == Spot::Element && *prop.name == *child.name);
            let (key, next) = prop.map_or((&*child.name, additional), |p| (p.key.as_str(), p.node));
            push_part(pointer, key);
            match shape.node(next) {
                Node::Array {
                    item,
                    wrapped: false,
                    ..
                } if child.is_leaf() && is_open(&child.text) => {
                    let range = whole(self.text, child);
                    self.add(
                        pointer,
                        range,
                        Form::Elements(child.name.to_string(), *item),
                    );
                }
                Node::Array {
                    item,
                    wrapped: false,
                    ..
                } => {
                    let count = match entries.iter_mut().find(|(name, _)| *name == key) {
                        Some((_, count)) => {
                            *count += 1;
                            *count
                        }
                        None => {
                            entries.push((key, 0));
                            0
                        }
                    };
                    push_part(pointer, &count.to_string());
                    self.element(child, *item, pointer);
                }
                _ => self.element(child, next, pointer),
            }
            pointer.truncate(length);
        }
    }
}

/// The range of a leaf element, from start tag to end tag.
fn whole(text: &str, leaf: &Element) -> Option<Range<usize>> {
    let end = mark_from(text, leaf.text_offset)?.end;
    let end = end + text.get(end..)?.find('>')? + 1;
    Some(leaf.offset..end)
}

/// A value written in the form that an open place needs; `None` if that form can't hold it.
fn written(value: &Value, form: &Form, shape: &Shape) -> Option<String> {
    match (form, value) {
        (_, Value::Null) => None,
        (Form::Json, value) => Some(value.to_string()),
        (Form::Line, Value::Array(_) | Value::Object(_)) => Some(value.to_string()),
        (Form::Line, value) => Some(scalar_text(value)).filter(|line| !line.contains('\n')),
        (Form::Attribute, Value::Array(_) | Value::Object(_)) => None,
        (Form::Attribute, value) => Some(attribute_text(&scalar_text(value))),
        (Form::Elements(name, item), Value::Array(entries)) => {
            Some(elements(shape, name, *item, entries))
        }
        (Form::Elements(..), _) => None,
        (Form::Content(node), Value::Array(entries)) => match shape.node(*node) {
            Node::Array { item, name, .. } => Some(elements(shape, name, *item, entries)),
            Node::Json { .. } => Some(element_text(&value.to_string())),
            _ => None,
        },
        (Form::Content(node), Value::Object(_)) => match shape.node(*node) {
            Node::Json { .. } => Some(element_text(&value.to_string())),
            _ => None,
        },
        (Form::Content(_), value) => Some(element_text(&scalar_text(value))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::super::{Shape, Source};

    fn shape() -> Shape {
        Shape::from_schema(&json!({
            "type": "object",
            "properties": {
                "n": { "type": "integer" },
                "at": { "type": "string", "xml": { "nodeType": "attribute" } },
                "commits": {
                    "type": "array", "xml": { "wrapped": true },
                    "items": {
                        "type": "object", "xml": { "name": "commit" },
                        "properties": {
                            "sha": { "type": "string", "xml": { "nodeType": "attribute" } },
                            "message": { "type": "string", "xml": { "nodeType": "text" } },
                        },
                    },
                },
                "in": { "type": "object", "properties": { "n": { "type": "integer" } } },
            },
        }))
        .unwrap()
    }

    fn known(pointer: &str) -> Option<Value> {
        let all = json!({
            "n": 3, "at": "a \"b\"", "in": { "n": 4 },
            "commits": [{ "sha": "01", "message": "x & y" }, { "sha": "02", "message": "z" }],
        });
        all.pointer(pointer).cloned()
    }

    fn filled(text: &str) -> String {
        let source = Source::parse(text.as_bytes()).unwrap();
        let filled = source.filled(&shape(), None, known);
        assert!(filled.left.is_empty(), "{filled:?}");
        filled.text
    }

    #[test]
    fn open_places_are_filled_and_every_other_byte_stays() {
        assert_eq!(
            filled(
                "<h at='{{fill by send: a}}'><!-- c -->\n <n> {{fill by send: n &amp; m}} </n>\n \
                 <in><n>{{fill by send: n}}</n></in>\n <commits>{{fill by send: all}}</commits>\n</h>\n"
            ),
            "<h at='a &quot;b&quot;'><!-- c -->\n <n> 3 </n>\n <in><n>4</n></in>\n \
             <commits><commit sha=\"01\">x &amp; y</commit><commit sha=\"02\">z</commit></commits>\n</h>\n"
        );
        assert_eq!(
            filled(
                "{ \"n\": \"{{fill by send: n}}\",\n \"commits\" : \"{{fill by send: all}}\", \"x\": \"{{fill: y}}\" }"
            ),
            "{ \"n\": 3,\n \"commits\" : [{\"sha\":\"01\",\"message\":\"x & y\"},{\"sha\":\"02\",\"message\":\"z\"}], \"x\": \"{{fill: y}}\" }"
        );
        assert_eq!(
            filled(
                "HANDOFF: A → B\n===\nN:\n{{fill by send: n}}\n\nAT: {{fill by send: a}}\n\nIN:\n{\"n\": \"{{fill by send: n}}\"}\n===\n"
            ),
            "HANDOFF: A → B\n===\nN:\n3\n\nAT: a \"b\"\n\nIN:\n{\"n\": 4}\n===\n"
        );
    }

    #[test]
    fn what_is_not_known_stays_open() {
        let source =
            Source::parse(br#"{"h": {"n": "{{fill by send: n}}", "m": "{{fill by send: m}}"}}"#);
        let filled = source.unwrap().filled(&shape(), Some("h"), known);
        assert_eq!(filled.left, ["/m"]);
        assert_eq!(
            filled.text,
            r#"{"h": {"n": 3, "m": "{{fill by send: m}}"}}"#
        );
    }
}
