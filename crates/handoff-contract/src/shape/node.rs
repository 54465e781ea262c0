//! The written form of the values at one place of a schema.

/// The scalar types that a leaf may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeafType {
    pub(crate) string: bool,
    pub(crate) integer: bool,
    pub(crate) number: bool,
    pub(crate) boolean: bool,
}

/// The written form of the values at one place.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Leaf(LeafType),
    Object {
        props: Vec<Prop>,
        /// The node of other properties than the named ones.
        additional: Option<usize>,
    },
    Array {
        item: usize,
        name: String,
        wrapped: bool,
    },
    /// Anything; `object` if the schema requires an object.
    Open {
        object: bool,
    },
    /// Anything, written as JSON in the element's text; `object` if the schema requires an object.
    Json {
        object: bool,
    },
}

/// Where a property is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Spot {
    Element,
    Attribute,
    Text,
}

/// One named property of an object.
#[derive(Clone, Debug)]
pub(crate) struct Prop {
    pub(crate) key: String,
    /// Its name in XML; for an array without a wrapper, the items' name.
    pub(crate) name: String,
    pub(crate) spot: Spot,
    pub(crate) node: usize,
    pub(crate) required: bool,
    pub(crate) description: Option<String>,
    /// The allowed values, if the schema lists them, without one that only lists the others.
    pub(crate) allowed: Vec<String>,
}

/// The node of content that no schema describes.
pub(crate) const OPEN: usize = 0;
