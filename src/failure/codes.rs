//! Every public code, as explained in docs/codes.md, which is compiled into the
//! program.

use serde::Serialize;

const DOCUMENT: &str = include_str!("../../docs/codes.md");

/// A code and its explanation.
#[derive(Debug, Serialize)]
pub(crate) struct Code {
    /// The code as it is printed: `lease_lost`, `field.missing`, `5`.
    pub code: &'static str,
    /// What has this code, by the document's heading: `Errors`, `Findings in contracts`.
    pub kind: &'static str,
    /// The exit codes of an error.
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
    let kinds = DOCUMENT.split("\n## ").skip(1);
    kinds.flat_map(|part| {
        let (kind, rest) = part.split_once('\n').unwrap_or((part, ""));
        let entries = rest.split("\n### `").skip(1);
        entries.map(move |entry| {
            let code = entry.split_once('`').map_or(entry, |(code, _)| code);
            let exit = line(entry, "exit").split(", ");
            Code {
                code,
                kind,
                exit: exit.filter_map(|number| number.parse().ok()).collect(),
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

    use super::all;

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
}
