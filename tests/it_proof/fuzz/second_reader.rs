//! XML as two other readers see it, in the form of content that no schema describes.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{XmlVersion, escape};
use serde_json::{Map, Value};

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

#[derive(Default)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
    children: Vec<Element>,
}

impl Element {
    fn value(mut self) -> Value {
        if !self.children.is_empty() && self.text.trim_matches(BLANKS).is_empty() {
            self.text.clear();
        }
        if self.children.is_empty() && self.attributes.is_empty() {
            return self.text.into();
        }
        let mut members = Map::new();
        for (name, value) in self.attributes {
            members.insert(format!("@{name}"), value.into());
        }
        if !self.text.is_empty() {
            members.insert("#text".to_owned(), self.text.into());
        }
        for child in self.children {
            let (name, value) = (child.name.clone(), child.value());
            match members.get_mut(&name) {
                None => drop(members.insert(name, value)),
                Some(Value::Array(items)) => items.push(value),
                Some(first) => *first = Value::Array(vec![first.take(), value]),
            }
        }
        members.into()
    }
}

/// The root's name and value, as roxmltree reads the text.
pub(super) fn roxmltree(text: &str) -> (String, Value) {
    fn element(node: roxmltree::Node<'_, '_>) -> Element {
        let attributes = node.attributes().filter(|a| a.namespace().is_none());
        let text = node.children().filter(roxmltree::Node::is_text);
        Element {
            name: node.tag_name().name().to_owned(),
            attributes: attributes
                .map(|a| (a.name().to_owned(), a.value().to_owned()))
                .collect(),
            text: text.filter_map(|node| node.text()).collect(),
            children: node
                .children()
                .filter(roxmltree::Node::is_element)
                .map(element)
                .collect(),
        }
    }
    let document = roxmltree::Document::parse(text).unwrap();
    let root = element(document.root_element());
    (root.name.clone(), root.value())
}

/// The root's name and value, as quick-xml reads the text.
pub(super) fn quick_xml(text: &str) -> (String, Value) {
    fn begin(start: &BytesStart<'_>) -> Element {
        let all = start.attributes().map(Result::unwrap);
        let attributes = all.map(|attribute| {
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let name = attribute.key.as_ref().to_owned();
            (name, value.unwrap().into_owned())
        });
        let own = attributes.filter(|(name, _)| !name.contains(':') && name != "xmlns");
        Element {
            name: start.name().as_ref().to_owned(),
            attributes: own.collect(),
            ..Element::default()
        }
    }
    let mut reader = Reader::from_str(text);
    let mut open = vec![Element::default()];
    loop {
        let last = open.last_mut().unwrap();
        match reader.read_event().unwrap() {
            Event::Start(start) => open.push(begin(&start)),
            Event::Empty(start) => last.children.push(begin(&start)),
            Event::End(_) => {
                let done = open.pop().unwrap();
                open.last_mut().unwrap().children.push(done);
            }
            Event::Text(text) => last.text.push_str(&text.xml10_content()),
            Event::CData(text) => last.text.push_str(&text.xml10_content()),
            Event::GeneralRef(entity) => match entity.resolve_char_ref().unwrap() {
                Some(character) => last.text.push(character),
                None => {
                    let known = escape::resolve_predefined_entity(&entity);
                    last.text.push_str(known.unwrap());
                }
            },
            Event::Eof => break,
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) | Event::DocType(_) => {}
        }
    }
    let [mut all] = <[Element; 1]>::try_from(open).unwrap_or_else(|_| panic!("not closed"));
    let root = all.children.pop().unwrap();
    (root.name.clone(), root.value())
}
