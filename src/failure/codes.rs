//! Every public code, as explained in `codes.md` beside this file, which is compiled into the
//! program; `docs/codes.md` is generated from it.

use schemars::JsonSchema;
use serde::Serialize;

use super::ErrorCode;

/// What is said of each code, without the exit codes of errors.
pub(crate) const EXPLANATIONS: &str = include_str!("codes.md");

/// A code and its explanation.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ExplainedCode")]
pub(crate) struct Code {
    /// The code as it is printed; for an exit code, its digits.
    pub code: &'static str,
    /// Its section in docs/codes.md: `Exit codes`, `Errors`, `Findings in contracts`,
    /// `Findings in protocols`, `Findings in hooks`, `Findings in ledgers`.
    pub kind: &'static str,
    /// For an error, its exit codes.
    pub exit: Vec<u8>,
    /// What causes it.
    pub cause: &'static str,
    /// An example.
    pub example: &'static str,
    /// What to do about it.
    pub cure: &'static str,
}

/// Every code, in the document's order.
pub(crate) fn all() -> impl Iterator<Item = Code> {
    let kinds = EXPLANATIONS.split("\n## ").skip(1);
    kinds.flat_map(|part| {
        let (kind, rest) = part.split_once('\n').unwrap_or((part, ""));
        let entries = rest.split("\n### `").skip(1);
        entries.map(move |entry| {
            let code = entry.split_once('`').map_or(entry, |(code, _)| code);
            let error = ErrorCode::ALL.iter().find(|error| error.as_str() == code);
            let error = error.filter(|_| kind == "Errors");
            Code {
                code,
                kind,
                exit: error.map_or_else(Vec::new, |error| error.exits().to_vec()),
                cause: line(entry, "cause"),
                example: line(entry, "example"),
                cure: line(entry, "cure"),
            }
        })
    })
}

/// One line of an entry, by its name.
fn line(entry: &'static str, name: &str) -> &'static str {
    let mut lines = entry.lines();
    let found = lines.find_map(|line| {
        let rest = line.strip_prefix("- ")?;
        rest.strip_prefix(name)?.strip_prefix(": ")
    });
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use handoff_base::finding::FindingCode;

    use super::all;
    use crate::failure::ErrorCode;

    #[test]
    fn each_code_is_there_once_and_whole() {
        let mut seen = BTreeSet::new();
        for code in all() {
            assert!(seen.insert(code.code), "{} appears twice", code.code);
            for text in [code.cause, code.example, code.cure] {
                assert!(!text.is_empty(), "{code:?}");
            }
            assert_eq!(code.exit.is_empty(), code.kind != "Errors", "{code:?}");
        }
        assert!(seen.len() > 300);
    }

    /// The codes of one kind with their exit codes, in alphabetical order.
    fn explained(kind: &str) -> Vec<(&'static str, Vec<u8>)> {
        let of_kind = all().filter(|code| code.kind.starts_with(kind));
        let mut codes: Vec<_> = of_kind.map(|code| (code.code, code.exit)).collect();
        codes.sort_unstable();
        codes
    }

    #[test]
    fn every_error_code_is_explained() {
        let codes = ErrorCode::ALL.iter();
        let codes = codes.map(|code| (code.as_str(), code.exits().to_vec()));
        let codes: Vec<_> = codes.collect();
        assert_eq!(explained("Errors"), codes, "codes.md on the left");
    }

    #[test]
    fn every_finding_code_is_explained() {
        let codes = FindingCode::ALL.iter();
        let codes: Vec<_> = codes.map(|code| (code.as_str(), Vec::new())).collect();
        assert_eq!(explained("Findings"), codes, "codes.md on the left");
    }
}
