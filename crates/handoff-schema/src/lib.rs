//! Stands in for `schemars`, which only the generator of schemas and pages needs, and takes a fifth of
//! the time of a crate with many types. With the feature `generate` it is `schemars`; without it,
//! every type has [`JsonSchema`], and to derive it makes nothing.

#[cfg(feature = "generate")]
pub use schemars::*;

#[cfg(not(feature = "generate"))]
pub use handoff_schema_none::JsonSchema;

/// What has a schema.
#[cfg(not(feature = "generate"))]
pub trait JsonSchema {}

#[cfg(not(feature = "generate"))]
impl<T: ?Sized> JsonSchema for T {}

/// Items that are there only where schemas are generated.
#[cfg(feature = "generate")]
#[macro_export]
macro_rules! generated {
    ($($item:item)*) => { $($item)* };
}

/// Items that are there only where schemas are generated.
#[cfg(not(feature = "generate"))]
#[macro_export]
macro_rules! generated {
    ($($item:item)*) => {};
}
