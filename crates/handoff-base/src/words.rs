//! Enums whose variants are words, as they are stored and printed.

/// Defines an enum of words: each variant with the word that it is stored and printed as.
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
            /// All of them, in order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word.
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
