//! The XML form of a schema's values, compiled from its `xml` keywords (as in OpenAPI 3.2).
//!
//! A [`Shape`] is a list of nodes, one per place of the schema (`node`); `reference` resolves
//! references, `choices` finds enumerations with a member that lists the others.

mod choices;
mod error;
mod node;
mod reference;

use std::collections::{HashMap, HashSet};

use choices::Choices;
use reference::refuse_endless;
pub(super) use reference::resolve;
use serde_json::{Map, Value};

use super::text;
use super::value::scalar_text;
pub(super) use choices::listing;
pub use error::ShapeError;
pub(super) use node::{LeafType, Node, OPEN, Prop, Spot};

/// The XML form of a JSON Schema's values.
#[derive(Clone, Debug)]
pub struct Shape {
    nodes: Vec<Node>,
    choices: Choices,
}

const ROOT: usize = 1;
const MAX_NODES: usize = 10_000;

impl Shape {
    /// Compiles the `xml` keywords of a schema.
    ///
    /// # Errors
    /// [`ShapeError`], if a reference has no target or is circular, or values have no clear XML
    /// form.
    pub fn from_schema(schema: &Value) -> Result<Self, ShapeError> {
        match Self::as_far_as_possible(schema)? {
            (_, Some(error)) => Err(error),
            (shape, None) => Ok(shape),
        }
    }

    /// Like [`Shape::from_schema`], but where there is no clear XML form, anything is accepted,
    /// because other formats need none. The second part is the first such reason.
    pub(super) fn as_far_as_possible(
        schema: &Value,
    ) -> Result<(Self, Option<ShapeError>), ShapeError> {
        refuse_endless(schema)?;
        let mut without = None;
        let mut builder = Builder {
            schema,
            known: HashMap::new(),
            nodes: vec![Some(Node::Open { object: false })],
            work: Vec::new(),
            choices: Choices::default(),
        };
        builder.node(&[schema])?;
        while let Some((index, schemas)) = builder.work.pop() {
            builder.nodes[index] = match builder.compile(index, &schemas) {
                Ok(node) => Some(node),
                Err(
                    error @ (ShapeError::Name { .. }
                    | ShapeError::Ambiguous { .. }
                    | ShapeError::Unsupported { .. }),
                ) => {
                    without.get_or_insert(error);
                    None
                }
                Err(error) => return Err(error),
            };
        }
        let nodes: Vec<Node> = builder
            .nodes
            .into_iter()
            .map(|node| node.unwrap_or(Node::Open { object: false }))
            .collect();
        let mut choices = builder.choices;
        choices.link(&nodes);
        Ok((Self { nodes, choices }, without))
    }

    /// The shape of a document without a schema.
    pub fn open() -> Self {
        let node = || Node::Open { object: false };
        Self {
            nodes: vec![node(), node()],
            choices: Choices::default(),
        }
    }

    /// Calls `report` for each text in a value that is a list of choices, with its pointer and the
    /// choices.
    pub(super) fn undecided(&self, value: &Value, report: impl FnMut(&str, &str, &[String])) {
        self.choices.undecided(&self.nodes, ROOT, value, report);
    }

    /// The choices that a text lists, if it is such a list.
    pub(super) fn listed(&self, text: &str) -> Option<&[String]> {
        self.choices.listed(text)
    }

    pub(super) fn root(&self) -> usize {
        ROOT
    }

    pub(super) fn node(&self, index: usize) -> &Node {
        &self.nodes[index]
    }

    /// The property `key` of a node, and the node of its value.
    pub(super) fn property(&self, index: usize, key: &str) -> (Option<&Prop>, usize) {
        match self.node(index) {
            Node::Object { props, additional } => match props.iter().find(|prop| prop.key == key) {
                Some(prop) => (Some(prop), prop.node),
                None => (None, additional.unwrap_or(OPEN)),
            },
            _ => (None, OPEN),
        }
    }

    /// Whether the node is an array without a wrapper, whose items are children of the parent
    /// element.
    pub(super) fn is_bare_array(&self, index: usize) -> bool {
        matches!(self.node(index), Node::Array { wrapped: false, .. })
    }
}

/// The combined constraints of all schemas for one place, as far as the XML form depends on them.
#[derive(Default)]
struct Facts<'s> {
    types: Vec<&'s str>,
    props: Vec<(&'s str, Vec<&'s Value>)>,
    /// The index of each property in `props`.
    places: HashMap<&'s str, usize>,
    required: HashSet<&'s str>,
    items: Vec<&'s Value>,
    additional: Option<&'s Value>,
    name: Option<&'s str>,
    node_type: Option<&'s str>,
    description: Option<&'s str>,
    allowed: Vec<&'s Value>,
    /// Whether its values are written as JSON text in an element.
    json: bool,
    /// Whether an unsupported `xml` keyword is present: a prefix or namespace.
    namespace: bool,
}

struct Builder<'s> {
    schema: &'s Value,
    known: HashMap<Vec<usize>, usize>,
    nodes: Vec<Option<Node>>,
    work: Vec<(usize, Vec<&'s Value>)>,
    choices: Choices,
}

impl<'s> Builder<'s> {
    /// The node of a value that all these `schemas` describe. A new one is compiled later.
    fn node(&mut self, schemas: &[&'s Value]) -> Result<usize, ShapeError> {
        let key: Vec<usize> = schemas
            .iter()
            .map(|&schema| std::ptr::from_ref(schema) as usize)
            .collect();
        if let Some(&index) = self.known.get(&key) {
            return Ok(index);
        }
        let index = self.nodes.len();
        if index >= MAX_NODES {
            return Err(ShapeError::TooLarge);
        }
        self.nodes.push(None);
        self.known.insert(key, index);
        self.work.push((index, schemas.to_vec()));
        Ok(index)
    }

    fn compile(&mut self, index: usize, schemas: &[&'s Value]) -> Result<Node, ShapeError> {
        let facts = self.gather(schemas)?;
        let has = |name: &str| facts.types.contains(&name);
        if facts.json {
            return Ok(Node::Json {
                object: facts.types == ["object"],
            });
        }
        let untyped = facts.types.is_empty();
        let described = !facts.props.is_empty() || facts.additional.is_some();
        // A text or an object has open content.
        let free = has("string") && facts.props.is_empty();
        if described && !free && (untyped || has("object")) {
            return self.object(&facts);
        }
        if has("array") || (untyped && !facts.items.is_empty()) {
            let item = self.node(&facts.items)?;
            let item_facts = self.gather(&facts.items)?;
            let (name, _) = naming("item", &item_facts)?;
            if is_array(&item_facts) && !is_wrapped(&item_facts) {
                return Err(ShapeError::Unsupported {
                    name: name.to_owned(),
                    reason: "an array within an array needs \"nodeType\": \"element\"",
                });
            }
            return Ok(Node::Array {
                item,
                name: name.to_owned(),
                wrapped: is_wrapped(&facts),
            });
        }
        let leaf = LeafType {
            string: has("string"),
            integer: has("integer"),
            number: has("number"),
            boolean: has("boolean"),
        };
        if leaf != LeafType::default() && !has("object") {
            self.choices.add(index, &facts.allowed);
            return Ok(Node::Leaf(leaf));
        }
        Ok(Node::Open {
            object: facts.types == ["object"],
        })
    }

    fn object(&mut self, facts: &Facts<'s>) -> Result<Node, ShapeError> {
        let mut props: Vec<Prop> = Vec::with_capacity(facts.props.len());
        let mut taken = HashSet::new();
        for (key, schemas) in &facts.props {
            let own = self.gather(schemas)?;
            let (mut name, spot) = naming(key, &own)?;
            let node = self.node(schemas)?;
            let mut allowed_in = None;
            if is_array(&own) {
                let items = self.gather(&own.items)?;
                if !is_wrapped(&own) {
                    name = naming(name, &items)?.0;
                }
                allowed_in = Some(items);
            } else if spot != Spot::Element
                && (described_as_object(&own) || own.types.contains(&"object"))
            {
                return Err(ShapeError::Unsupported {
                    name: (*key).to_owned(),
                    reason: "an attribute or text is a scalar",
                });
            }
            if is_array(&own) && spot != Spot::Element {
                return Err(ShapeError::Unsupported {
                    name: (*key).to_owned(),
                    reason: "an attribute or text is a scalar",
                });
            }
            // Text properties all share one place, whatever their names.
            let place = if spot == Spot::Text { "" } else { name };
            if !taken.insert((spot, place.to_owned())) {
                return Err(ShapeError::Ambiguous {
                    name: name.to_owned(),
                });
            }
            let allowed = allowed_in.as_ref().unwrap_or(&own).allowed.iter();
            let mut allowed: Vec<String> = allowed.map(|value| scalar_text(value)).collect();
            if let Some(list) = listing(&allowed).cloned() {
                allowed.retain(|text| *text != list);
            }
            props.push(Prop {
                key: (*key).to_owned(),
                name: name.to_owned(),
                spot,
                node,
                required: facts.required.contains(key),
                description: own.description.map(str::to_owned),
                allowed,
            });
        }
        let has_text = props.iter().any(|prop| prop.spot == Spot::Text);
        if has_text && let Some(prop) = props.iter().find(|prop| prop.spot == Spot::Element) {
            return Err(ShapeError::Unsupported {
                name: prop.key.clone(),
                reason: "child elements cannot stand beside a text property",
            });
        }
        let additional = match facts.additional {
            Some(schema) => Some(self.node(&[schema])?),
            None => None,
        };
        Ok(Node::Object { props, additional })
    }

    fn gather(&self, schemas: &[&'s Value]) -> Result<Facts<'s>, ShapeError> {
        let mut facts = Facts::default();
        let mut seen = HashSet::new();
        let mut strong: Vec<&'s Value> = schemas.iter().rev().copied().collect();
        let mut weak: Vec<&'s Value> = Vec::new();
        let mut is_strong = true;
        loop {
            let schema = if let Some(schema) = strong.pop() {
                schema
            } else if let Some(schema) = weak.pop() {
                is_strong = false;
                schema
            } else {
                return Ok(facts);
            };
            let Value::Object(schema) = schema else {
                continue;
            };
            if !seen.insert(std::ptr::from_ref(schema)) {
                continue;
            }
            facts.add(schema, is_strong);
            // Precedence: the schema's own keywords, then those of references, then alternatives.
            if let Some(branches) = schema.get("allOf").and_then(Value::as_array) {
                strong.extend(branches.iter().rev());
            }
            if let Some(Value::String(reference)) = schema.get("$ref") {
                strong.push(resolve(self.schema, reference)?);
            }
            for key in ["else", "then", "if"] {
                weak.extend(schema.get(key));
            }
            for key in ["anyOf", "oneOf"] {
                if let Some(branches) = schema.get(key).and_then(Value::as_array) {
                    weak.extend(branches.iter().rev());
                }
            }
            if let Some(Value::Object(branches)) = schema.get("dependentSchemas") {
                weak.extend(branches.values());
            }
        }
    }
}

impl<'s> Facts<'s> {
    fn add(&mut self, schema: &'s Map<String, Value>, is_strong: bool) {
        if self.types.is_empty() {
            match schema.get("type") {
                Some(Value::String(name)) => self.types.push(name),
                Some(Value::Array(names)) => {
                    self.types.extend(names.iter().filter_map(Value::as_str));
                }
                _ => {}
            }
        }
        if self.allowed.is_empty() {
            match (schema.get("const"), schema.get("enum")) {
                (Some(value), _) => self.allowed.push(value),
                (None, Some(Value::Array(values))) => self.allowed.extend(values),
                _ => {}
            }
            if self.types.is_empty() {
                for value in &self.allowed {
                    let name = type_of(value);
                    if !self.types.contains(&name) {
                        self.types.push(name);
                    }
                }
            }
        }
        if let Some(Value::Object(properties)) = schema.get("properties") {
            for (key, schema) in properties {
                let next = self.props.len();
                let at = *self.places.entry(key).or_insert(next);
                if at == next {
                    self.props.push((key, Vec::new()));
                }
                self.props[at].1.push(schema);
            }
        }
        if is_strong && let Some(Value::Array(required)) = schema.get("required") {
            self.required
                .extend(required.iter().filter_map(Value::as_str));
        }
        self.items.extend(schema.get("items"));
        if let Some(additional @ Value::Object(_)) = schema.get("additionalProperties") {
            self.additional.get_or_insert(additional);
        }
        let description = schema.get("description").and_then(Value::as_str);
        self.description = self.description.or(description);
        if let Some(Value::Object(xml)) = schema.get("xml") {
            self.name = self.name.or(xml.get("name").and_then(Value::as_str));
            let flag = |key: &str| xml.get(key).and_then(Value::as_bool) == Some(true);
            let node_type = xml.get("nodeType").and_then(Value::as_str).or_else(|| {
                if flag("attribute") {
                    Some("attribute")
                } else if flag("wrapped") {
                    Some("element")
                } else {
                    None
                }
            });
            self.node_type = self.node_type.or(node_type);
            self.json |= flag("x-json");
            self.namespace |= xml.contains_key("namespace") || xml.contains_key("prefix");
        }
    }
}

fn described_as_object(facts: &Facts<'_>) -> bool {
    !facts.props.is_empty() || facts.additional.is_some()
}

fn is_array(facts: &Facts<'_>) -> bool {
    facts.types.contains(&"array") || (facts.types.is_empty() && !facts.items.is_empty())
}

fn is_wrapped(facts: &Facts<'_>) -> bool {
    facts.node_type == Some("element")
}

/// The XML name and spot of the property or item with the key `key`.
fn naming<'a>(key: &'a str, facts: &Facts<'a>) -> Result<(&'a str, Spot), ShapeError> {
    let name = facts.name.unwrap_or(key);
    let spot = match facts.node_type {
        None | Some("element") => Spot::Element,
        Some("attribute") => Spot::Attribute,
        Some("text" | "cdata") => Spot::Text,
        Some("none") if is_array(facts) => Spot::Element,
        Some(_) => {
            return Err(ShapeError::Unsupported {
                name: text::short(key),
                reason: "its nodeType is not element, attribute or text",
            });
        }
    };
    if facts.namespace || (spot != Spot::Text && !text::is_name(name)) {
        return Err(ShapeError::Name {
            name: text::short(name),
        });
    }
    Ok((name, spot))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
