//! The places of the fields that every protocol knows.

use schemars::JsonSchema;
use serde::Deserialize;

/// The places of the envelope's fields, as JSON Pointers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    /// The contract's own id: unique in its type, or shared by one piece of work.
    pub id: Option<String>,
    /// The issue key.
    pub issue: Option<String>,
    /// The key of the issue that a contract without one opens: a pointer, or the key.
    pub new_issue: Option<String>,
    /// The sender.
    pub from: Option<String>,
    /// The receiver.
    pub to: Option<String>,
    /// The status word.
    pub status: Option<String>,
    /// When the contract was made.
    pub at: Option<String>,
    /// The priority word.
    pub priority: Option<String>,
    /// The issue's title.
    pub title: Option<String>,
    /// The one-line summary.
    pub summary: Option<String>,
    /// The code branch that the work is on.
    pub branch: Option<String>,
    /// The location of the sender's session.
    pub session: Option<String>,
}

/// The fields that are set, by name.
pub(super) fn named<'a, const N: usize>(
    all: [(&'static str, Option<&'a String>); N],
) -> impl Iterator<Item = (&'static str, &'a str)> {
    let given = |(name, field): (_, Option<&'a String>)| Some((name, field?.as_str()));
    all.into_iter().filter_map(given)
}

impl Fields {
    /// The fields that are set, by name.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        named([
            ("id", self.id.as_ref()),
            ("issue", self.issue.as_ref()),
            ("new_issue", self.new_issue.as_ref()),
            ("from", self.from.as_ref()),
            ("to", self.to.as_ref()),
            ("status", self.status.as_ref()),
            ("at", self.at.as_ref()),
            ("priority", self.priority.as_ref()),
            ("title", self.title.as_ref()),
            ("summary", self.summary.as_ref()),
            ("branch", self.branch.as_ref()),
            ("session", self.session.as_ref()),
        ])
    }
}
