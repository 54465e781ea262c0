//! Reviews: the contracts that raise, answer and settle findings, and the commit that one is about.

use schemars::JsonSchema;
use serde::Deserialize;

/// The places where a contract lists findings that must be answered before the work is approved.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RaisedFields {
    /// The list, with one entry per finding; the other pointers are relative to it.
    pub list: String,
    /// What is wrong.
    pub text: String,
    /// Where; findings without it are answered by id, their text's beginning, or enough nameless
    /// entries.
    pub location: Option<String>,
    /// How severe it is, or of which kind.
    pub severity: Option<String>,
    /// The earlier finding whose answer it disputes; so does the same text and location.
    pub finding: Option<String>,
    /// Whether what was skipped for a reason is raised again only with newer code, or after a person's
    /// answer.
    #[serde(default)]
    pub once: bool,
}

/// The places where a contract answers findings: each as fixed, or as skipped with the reason.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixFields {
    /// The list, with one entry per answer; the other pointers are relative to it.
    pub list: String,
    /// What was done, or why nothing was.
    pub text: String,
    /// The location of the findings that it answers.
    pub location: Option<String>,
    /// The id of the finding that it answers, before the location.
    pub finding: Option<String>,
    /// The commit that fixes it.
    pub commit: Option<String>,
    /// Whether nothing was done: `true`.
    pub skipped: Option<String>,
}

/// What says which commit of the code a contract is about. If none of these is given, that is the
/// commit that the sender's claim showed. Without it, it is the newest of the code branch when the
/// contract is sent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewFields {
    /// The place of the commit's full id.
    pub commit: Option<String>,
    /// The fact with the commit that an event noted meanwhile, if the contract names none.
    pub fact: Option<String>,
}
