//! What an issue must show before something like a merge is allowed.

use handoff_base::words;
use handoff_macros::apply;
use schemars::JsonSchema;
use serde::Deserialize;

/// A requirement that an issue can meet, by a contract or by a person's approval. The newest contract
/// of all the types named here decides; an approval counts until a contract of `undone_by` is sent.
#[apply(
    Vec => #[serde(default)],
)]
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Its meaning, in a few words.
    pub title: String,
    /// The contract types that meet it; with `approved_by`, whose approval counts; by default any.
    pub shown_by: Vec<String>,
    /// Whose approval meets it: agents of kind `human`, or `person`. A disapproval holds until its
    /// person approves.
    pub approved_by: Vec<String>,
    /// The status words that count; by default all but failures and skipped work.
    pub status: Vec<String>,
    /// The contract types after which it must be met again.
    pub undone_by: Vec<String>,
    /// The contract types whose senders must differ from who meets it or approved.
    pub apart_from: Vec<String>,
    /// What tells these senders apart.
    #[serde(default)]
    pub apart_by: Identity,
    /// Whether `gate` checks it if no requirement is named.
    #[serde(default)]
    pub merge: bool,
}

words! {
    /// What tells the senders of contracts apart.
    #[derive(Default)]
    pub enum Identity {
        /// The worker that sent the contract.
        #[default]
        Worker = "worker",
        /// The e-mail address of its commit's committer.
        Committer = "committer",
        /// The key that signed its commit.
        Key = "key",
    }
}

/// The requirement that every protocol has: the issue is completed.
pub const COMPLETED: &str = "completed";
