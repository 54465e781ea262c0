//! How the values at one place of a schema are written.

/// The scalar types allowed for a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeafType {
    pub(crate) string: bool,
    pub(crate) integer: bool,
    pub(crate) number: bool,
    pub(crate) boolean: bool,
}

/// How the values at one place are written.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Leaf(LeafType),
    Object {
        props: Vec<Prop>,
        /// The node of additional properties.
        additional: Option<usize>,
    },
    Array {
        item: usize,
        name: String,
        wrapped: bool,
    },
    /// Any value; `object` if the schema requires an object.
    Open {
        object: bool,
    },
    /// Any value, written as JSON text; `object` if the schema requires an object.
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
    /// Its XML name; for an array without a wrapper, the items' name.
    pub(crate) name: String,
    pub(crate) spot: Spot,
    pub(crate) node: usize,
    pub(crate) required: bool,
    pub(crate) description: Option<String>,
    /// The allowed values, without a member that lists the others.
    pub(crate) allowed: Vec<String>,
}

/// The node of open content.
pub(crate) const OPEN: usize = 0;
