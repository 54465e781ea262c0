//! Every public code with its word, its exit codes, and its explanation for `git handoff explain`,
//! written above it. `docs/codes.md` is generated from them, in their order.

mod error;
pub mod exit;
mod finding;

pub use error::ErrorCode;
pub use finding::FindingCode;

use schemars::JsonSchema;
use serde::Serialize;

/// A code and its explanation.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ExplainedCode {
    /// The code as it is printed; for an exit code, its digits.
    pub code: &'static str,
    /// Its section in docs/codes.md: `Exit codes`, `Errors`, `Findings in contracts`,
    /// `Findings in protocols`, `Findings in hooks`, `Findings in ledgers`.
    pub kind: &'static str,
    /// For an error, its exit codes.
    pub exit: &'static [u8],
    /// What causes it.
    pub cause: &'static str,
    /// An example.
    pub example: &'static str,
    /// What to do about it.
    pub cure: &'static str,
    /// The explanation that `verify` prints for people who know neither Git nor JSON.
    #[serde(skip)]
    pub(crate) meaning: Option<&'static str>,
}

/// Every code, in the order of docs/codes.md.
pub fn all() -> impl Iterator<Item = &'static ExplainedCode> {
    let kinds = [
        exit::EXPLAINED,
        ErrorCode::EXPLAINED,
        FindingCode::EXPLAINED,
    ];
    kinds.into_iter().flatten()
}

/// Defines the codes of one type, by kind, each below its explanation.
macro_rules! codes {
    ($(#[$about:meta])* $type:ident { $($kind:literal { $(
        #[doc = $cause:literal] #[doc = $example:literal] #[doc = $cure:literal]
        $(#[doc = $meaning:literal])?
        $name:ident = $word:literal $(, $($exit:ident)|+)?;
    )+ })+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema)]
        #[schemars(with = "String")]
        pub enum $type {
            $($(#[doc = concat!("`", $word, "`")] $name,)+)+
        }

        impl $type {
            pub(super) const EXPLAINED: &[ExplainedCode] = &[$($(ExplainedCode {
                code: $word,
                kind: $kind,
                exit: &[$($(exit::$exit),+)?],
                cause: after($cause, " - cause: "),
                example: after($example, " - example: "),
                cure: after($cure, " - cure: "),
                meaning: [$(after($meaning, " - verify: "))?].first().copied(),
            },)+)+];

            /// The word under which programs know the code.
            pub fn as_str(self) -> &'static str {
                Self::EXPLAINED[self as usize].code
            }

            /// What to do about it, in general.
            pub fn cure(self) -> &'static str {
                Self::EXPLAINED[self as usize].cure
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    };
}
use codes;

/// The text after a label at the start of an explanation's line; compilation fails without the
/// label.
const fn after(line: &'static str, name: &str) -> &'static str {
    let (start, text) = line.split_at(name.len());
    let mut at = 0;
    while at < name.len() {
        assert!(
            start.as_bytes()[at] == name.as_bytes()[at],
            "a code is explained by its cause, an example and its cure, a line each"
        );
        at += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::all;

    #[test]
    fn each_code_is_there_once() {
        let mut seen = BTreeSet::new();
        for code in all() {
            assert!(seen.insert(code.code), "{} appears twice", code.code);
            assert_eq!(code.exit.is_empty(), code.kind != "Errors", "{code:?}");
        }
    }
}
