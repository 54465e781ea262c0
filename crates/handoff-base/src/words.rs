//! Enums whose variants are words, both stored and printed.

/// Defines an enum with a word for each variant.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $visible:vis enum $type:ident { $(
        $(#[$of:meta])* $variant:ident = $word:literal,
    )+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        $visible enum $type {
            $($(#[$of])* #[serde(rename = $word)] $variant,)+
        }

        impl $type {
            /// All variants, in order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The variant's word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    };
}
