//! A stand-in for `schemars`, which only the generator of schemas and pages needs, but which takes
//! a fifth of the build time of type-heavy crates. The feature `generate` enables `schemars`;
//! without it, every type has [`JsonSchema`], and the derive generates nothing.

#[cfg(feature = "generate")]
pub use schemars::*;

#[cfg(not(feature = "generate"))]
pub use handoff_macros::JsonSchema;

/// Types with a schema.
#[cfg(not(feature = "generate"))]
pub trait JsonSchema {}

#[cfg(not(feature = "generate"))]
impl<T: ?Sized> JsonSchema for T {}

/// Items compiled only where schemas are generated.
#[cfg(feature = "generate")]
#[macro_export]
macro_rules! generated {
    ($($item:item)*) => { $($item)* };
}

/// Items compiled only where schemas are generated.
#[cfg(not(feature = "generate"))]
#[macro_export]
macro_rules! generated {
    ($($item:item)*) => {};
}
