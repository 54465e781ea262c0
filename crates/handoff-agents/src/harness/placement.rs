//! Decides which instructions file gets the text for which harness, so that each harness reads it
//! once.
//!
//! Some harnesses read others' files too: Copilot reads `AGENTS.md`, `GEMINI.md`, Claude's pages
//! and rules, and what `CLAUDE.md` imports. So a harness that reads `AGENTS.md` gets the text there
//! if another one needs it there; and a file that Copilot also reads only imports the text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use handoff::git::read_regular;

use super::{AgentsMd, HARNESSES, Harness, guide};

/// The instructions file that most harnesses read.
const AGENTS_MD: &str = "AGENTS.md";

/// The file with the text, for instructions files that import it.
pub(super) const TEXT_FILE: &str = ".agents/git-handoff.md";

/// An instructions file with its block.
#[derive(Debug)]
pub(super) struct Placed {
    /// The file's path.
    pub(super) path: String,
    /// The harnesses that read the text there; empty if there is no block.
    pub(super) names: Vec<String>,
    /// The line that imports the text; `None` if the block has the text itself.
    pub(super) import: Option<String>,
}

/// The harnesses named in any block.
pub(super) fn installed_names(root: &Path) -> BTreeSet<String> {
    let files = HARNESSES.iter().map(|harness| &harness.instructions);
    let blocks = files.filter_map(|path| {
        let bytes = read_regular(&root.join(path)).ok()?;
        guide::names(&bytes).ok().flatten()
    });
    blocks.flatten().collect()
}

/// Each instructions file with its expected block for these harnesses.
pub(super) fn placements(root: &Path, names: &BTreeSet<String>) -> Vec<Placed> {
    let mut files = BTreeMap::new();
    for harness in HARNESSES.iter() {
        let own = real(root, &harness.instructions);
        // Several paths may resolve to one file.
        let file = files.entry(own).or_insert_with(|| Placed {
            path: harness.instructions.clone(),
            names: Vec::new(),
            import: harness.import.clone(),
        });
        if harness.import.is_none() {
            file.import = None;
        }
    }
    for harness in HARNESSES.iter().filter(|h| names.contains(&h.name)) {
        let path = place(harness, root, names);
        if let Some(file) = files.get_mut(&real(root, path)) {
            file.names.push(harness.name.clone());
            file.names.sort();
        }
    }
    files.into_values().collect()
}

/// The file in which a harness reads the text, if the named harnesses are installed.
pub(super) fn place<'a>(harness: &'a Harness, root: &Path, names: &BTreeSet<String>) -> &'a str {
    let mut named = HARNESSES.iter().filter(|other| names.contains(&other.name));
    let is_there = named.any(|other| real(root, &other.instructions) == real(root, AGENTS_MD));
    let reads = harness.agents_md.as_ref();
    if is_there && reads.is_some_and(|reads| reads.agents_md_in(root)) {
        AGENTS_MD
    } else {
        &harness.instructions
    }
}

impl AgentsMd {
    /// Whether the harness reads `AGENTS.md` in this worktree.
    fn agents_md_in(&self, root: &Path) -> bool {
        let pages = self.pages.iter().map(|page| root.join(page));
        let pages: Vec<_> = pages.filter(|page| page.exists()).collect();
        let imports = pages.iter().any(|page| {
            let text = read_regular(page).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let mut words = text.split_whitespace();
            words.any(|word| ["@AGENTS.md", "@./AGENTS.md", "@../AGENTS.md"].contains(&word))
                || page.canonicalize().ok() == root.join(AGENTS_MD).canonicalize().ok()
        });
        imports || pages.is_empty() && self.alone
    }
}

/// A file's path with links resolved.
fn real(root: &Path, path: &str) -> std::path::PathBuf {
    let path = root.join(path);
    path.canonicalize().unwrap_or(path)
}
