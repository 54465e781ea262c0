//! How the values at one place of a schema are written.

/// The kinds of scalar that a leaf may hold.
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
        /// The node of properties that are not named.
        additional: Option<usize>,
    },
    Array {
        item: usize,
        name: String,
        wrapped: bool,
    },
    /// Anything; `object` if the schema insists on an object.
    Open {
        object: bool,
    },
}

/// Where a property is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    Element,
    Attribute,
    Text,
}

/// One named property of an object.
#[derive(Clone, Debug)]
pub(crate) struct Prop {
    pub(crate) key: String,
    /// Its name in XML; the items' name if it is an array without a wrapper.
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
