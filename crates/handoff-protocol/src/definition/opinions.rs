//! Opinions: facts on which several parties report at once, such as the workflows of a commit or
//! the reviewers of a pull request.

use handoff_macros::apply;
use schemars::JsonSchema;
use serde::Deserialize;

/// A fact on which several have an opinion at once: each one's newest note counts, and one of them
/// decides.
#[apply(
    Vec => #[serde(default)],
)]
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Opinions {
    /// Their heading, in one line, such as `Reviews on GitHub`.
    pub title: String,
    /// The fact that names whose opinion it is, such as `review_by`.
    pub by: String,
    /// The fact with the opinion, such as `review_state`: the one of which they are stored.
    #[serde(skip)]
    pub fact: String,
    /// The fact with an opinion's commit, if only those on the newest (`head`) count.
    pub commit: Option<String>,
    /// Other facts, taken from the deciding note.
    pub with: Vec<String>,
    /// The opinions that ask for something: one decides against all others, like a finding.
    pub asks: Vec<String>,
    /// The opinions that agree: one decides if nobody has another.
    pub agrees: Vec<String>,
    /// The values that take an opinion back.
    pub withdraws: Vec<String>,
    /// Whose opinions are all needed; by default everybody's count.
    pub required: Vec<String>,
}

impl Opinions {
    /// Whether the deciding note states this fact.
    pub fn covers(&self, name: &str) -> bool {
        let own = [&self.by, &self.fact].into_iter();
        own.chain(&self.commit).chain(&self.with).any(|n| n == name)
    }
}
