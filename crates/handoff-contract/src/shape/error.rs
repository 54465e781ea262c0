//! Why a schema has no shape.

/// Why a schema cannot be written as XML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A `$ref` that is not `#` or `#/…`, or leads nowhere; a `$dynamicRef`; an `$id` below the root.
    #[error("the reference `{reference}` does not lead to a place in this schema")]
    Reference {
        /// The reference as written.
        reference: String,
    },
    /// A schema that applies itself to the same value, without end.
    #[error("the reference `{reference}` never ends")]
    Endless {
        /// A reference on the circle.
        reference: String,
    },
    /// An element or attribute name that XML does not allow, or a namespace.
    #[error("`{name}` cannot be the name of an element or attribute")]
    Name {
        /// The name as written.
        name: String,
    },
    /// Two properties that would be written alike.
    #[error("two properties are written as `{name}`")]
    Ambiguous {
        /// The name both have.
        name: String,
    },
    /// A combination that has no XML form.
    #[error("`{name}` cannot be written as XML: {reason}")]
    Unsupported {
        /// The property.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// A schema of more than 10,000 distinct places, or nested beyond 256 levels.
    #[error("the schema is too large or too deeply nested")]
    TooLarge,
}
