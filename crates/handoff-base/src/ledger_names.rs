//! The names of a ledger's parts on GitHub: the plain ones for the default branch; those of another ledger in
//! the same repository have its branch.

/// The default branch of a ledger.
pub const DEFAULT_BRANCH: &str = "handoffs";

/// The name of the status that a ledger sets.
pub fn status_name(branch: &str) -> String {
    title("handoff gate", branch)
}

/// A name that people read: `handoff gate`, or `handoff gate (BRANCH)`.
pub fn title(name: &str, branch: &str) -> String {
    if branch == DEFAULT_BRANCH {
        name.to_owned()
    } else {
        format!("{name} ({branch})")
    }
}

/// What follows the name of a file or a group: nothing, or `before` and the branch in letters, digits, `.`, `_`, `-`.
pub fn suffix(before: char, branch: &str) -> String {
    if branch == DEFAULT_BRANCH {
        return String::new();
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain = branch
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .collect::<String>();
    format!("{before}{plain}")
}
