//! The position of a value in its source, in terms of the source's format.

use handoff_base::pointer::{parts, push_part};
use serde_json::Value;

use super::shape::{Node, OPEN, Shape, Spot};
use super::source::{Source, Tree};
use super::xml::{Document, Element};
use super::{scan, text};

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// An element path (`/handoff/commits/commit[2]/@sha`) or a JSON Pointer (`/commits/1/sha`).
    pub path: String,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Column in characters, from 1.
    pub column: Option<u32>,
}

impl Source {
    /// The place of a pointer into the value model. Parts that do not exist are still in the path;
    /// line and column are then those of the nearest existing value.
    pub fn place(&self, shape: &Shape, wrapper: Option<&str>, pointer: &str) -> Place {
        let (path, offset) = match self.tree() {
            Tree::Xml(document) => in_xml(document, shape, pointer),
            Tree::Json(document) => {
                let path = document_pointer(document, wrapper, pointer);
                let parts: Vec<String> = parts(&path).collect();
                let offset = scan::locate(self.text(), &parts);
                (path, offset)
            }
            Tree::Markdown(message) => {
                let path = document_pointer(message.value(), wrapper, pointer);
                let parts: Vec<String> = parts(&path).collect();
                let offset = message.locate(self.text(), &parts);
                (path, offset)
            }
        };
        let (line, column) = text::position(self.text(), offset);
        Place {
            path,
            line: Some(line),
            column: Some(column),
        }
    }

    /// The line and column of a byte offset; without an offset, those of the value at a pointer
    /// into the whole document.
    pub(super) fn position(&self, pointer: &str, offset: Option<usize>) -> Option<(u32, u32)> {
        match offset {
            Some(offset) => Some(text::position(self.text(), offset)),
            None => {
                let place = self.place(&Shape::open(), None, pointer);
                place.line.zip(place.column)
            }
        }
    }

    /// Whether the value at a pointer is written as JSON, or would be if it existed.
    pub(super) fn is_json_at(&self, wrapper: Option<&str>, pointer: &str) -> bool {
        match self.tree() {
            Tree::Xml(_) => false,
            Tree::Json(_) => true,
            Tree::Markdown(message) => {
                let path = document_pointer(message.value(), wrapper, pointer);
                message.is_json(&parts(&path).collect::<Vec<_>>())
            }
        }
    }
}

/// Converts a pointer into the contract to one into the whole document, including the wrapper.
fn document_pointer(document: &Value, wrapper: Option<&str>, pointer: &str) -> String {
    let mut path = String::new();
    if let Some(key) = wrapper.filter(|&key| document.get(key).is_some()) {
        push_part(&mut path, key);
    }
    path.push_str(pointer);
    path
}

fn in_xml(document: &Document, shape: &Shape, pointer: &str) -> (String, usize) {
    let root = document.root();
    let mut path = format!("/{}", root.name);
    let mut offset = root.offset;
    let mut node = shape.root();
    let mut element = Some(root);
    // The parent element and the item name of an array whose wrapper has been passed.
    let mut array: Option<(Option<&Element>, String)> = None;
    if let Node::Array { name, .. } = shape.node(node) {
        array = Some((element, name.clone()));
    }
    let mut parts = parts(pointer).peekable();
    while let Some(part) = parts.next() {
        if let Some((parent, name)) = array.take() {
            let position: usize = part.parse().unwrap_or(0);
            path.push_str(&format!("/{name}[{}]", position + 1));
            element = named(document, parent, &name).nth(position);
            node = match shape.node(node) {
                Node::Array { item, .. } => *item,
                _ => OPEN,
            };
        } else {
            let (prop, next) = shape.property(node, &part);
            let name = prop.map_or(part.as_str(), |prop| prop.name.as_str());
            let spot = prop.map_or_else(|| open_spot(shape.node(node), &part), |prop| prop.spot);
            node = next;
            match spot {
                Spot::Text => {
                    offset = element.map_or(offset, |element| element.text_offset);
                    break;
                }
                Spot::Attribute => {
                    let name = name.trim_start_matches('@');
                    path.push_str(&format!("/@{name}"));
                    let found = element.and_then(|element| element.attribute(name));
                    offset = found.map_or(offset, |attribute| attribute.offset);
                    break;
                }
                Spot::Element => {}
            }
            let repeated = prop.is_none()
                && parts
                    .peek()
                    .is_some_and(|part| part.parse::<usize>().is_ok());
            if shape.is_bare_array(node) || repeated {
                array = Some((element, name.to_owned()));
                if parts.peek().is_none() {
                    path.push_str(&format!("/{name}"));
                    let first = named(document, element, name).next();
                    offset = first.map_or(offset, |first| first.offset);
                }
                continue;
            }
            path.push_str(&format!("/{name}"));
            element = named(document, element, name).next();
        }
        if let Some(element) = element {
            offset = element.offset;
        }
        if let Node::Array {
            name,
            wrapped: true,
            ..
        } = shape.node(node)
        {
            array = Some((element, name.clone()));
        }
    }
    (path, offset)
}

/// The children of an element with this name.
fn named<'a>(
    document: &'a Document,
    parent: Option<&'a Element>,
    name: &str,
) -> impl Iterator<Item = &'a Element> {
    let children = parent
        .into_iter()
        .flat_map(|parent| document.children(parent));
    children.filter(move |child| *child.name == *name)
}

/// Where a part of a pointer into open content is written: as attribute, text or element.
fn open_spot(node: &Node, part: &str) -> Spot {
    match node {
        Node::Open { .. } if part.starts_with('@') => Spot::Attribute,
        Node::Open { .. } if part == "#text" => Spot::Text,
        _ => Spot::Element,
    }
}
