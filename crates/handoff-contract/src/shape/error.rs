//! Why a schema has no shape.

/// Why a schema's values can't be written as XML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A `$ref` without a target or other than `#` and `#/…`; a `$dynamicRef`; an `$id` below the
    /// root.
    #[error("the reference `{reference}` does not lead to a place in this schema")]
    Reference {
        /// The reference as written.
        reference: String,
    },
    /// A schema that applies itself to the same value endlessly.
    #[error("the reference `{reference}` is circular")]
    Endless {
        /// A reference in the cycle.
        reference: String,
    },
    /// A name that XML does not allow for elements or attributes, or a namespace.
    #[error("`{name}` cannot be the name of an element or attribute")]
    Name {
        /// The name as written.
        name: String,
    },
    /// Two properties written under the same name.
    #[error("two properties are written as `{name}`")]
    Ambiguous {
        /// The name of both.
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
    /// A schema with more than 10,000 distinct places, or nested deeper than 256 levels.
    #[error("the schema is too large or too deeply nested")]
    TooLarge,
}
