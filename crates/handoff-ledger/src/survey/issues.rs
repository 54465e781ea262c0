//! All issues of a ledger, encoded; decoded lazily.

use std::borrow::Cow;
use std::collections::HashSet;

use handoff_base::Moment;
use handoff_base::ids::IssueKey;
use serde::{Deserialize, Serialize, Serializer};

use handoff_model::view::survey::IssueSurvey;

/// Summaries of issues, sorted by number, then by name. About 300 bytes per handoff.
#[derive(Debug, Default)]
pub struct Issues(Vec<Encoded<'static>>);

/// An encoded [`IssueSurvey`], with the values that are needed without decoding it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Encoded<'a> {
    key: IssueKey,
    is_active: bool,
    /// The latest time in the summary.
    newest: Moment,
    #[serde(borrow, serialize_with = "at_once")]
    summary: Cow<'a, [u8]>,
}

fn at_once<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

impl Encoded<'_> {
    pub(super) fn new(issue: &IssueSurvey<'_>) -> postcard::Result<Self> {
        Ok(Self {
            key: issue.key.clone(),
            is_active: issue.is_active(),
            newest: issue.newest(),
            summary: postcard::to_allocvec(issue)?.into(),
        })
    }

    pub(super) fn into_owned(self) -> Encoded<'static> {
        Encoded {
            key: self.key,
            is_active: self.is_active,
            newest: self.newest,
            summary: self.summary.into_owned().into(),
        }
    }

    /// The summary; `None` if its encoding is damaged.
    fn decoded(&self) -> Option<IssueSurvey<'_>> {
        postcard::from_bytes(&self.summary).ok()
    }
}

impl Issues {
    /// The number of issues.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no issues.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Decodes each issue, sorted by number, then by name.
    pub fn iter(&self) -> impl Iterator<Item = IssueSurvey<'_>> {
        self.0.iter().filter_map(Encoded::decoded)
    }

    /// Decodes the issues that may still need attention: those that are open, have an open handoff,
    /// or await or have yet to notify an agent.
    pub fn active(&self) -> impl Iterator<Item = IssueSurvey<'_>> {
        self.active_since(Some(Moment::LAST))
    }

    /// Like [`Self::active`], plus the issues that have a time after this one: of a change, a
    /// lease's end or a pause. Without it, all issues.
    pub fn active_since(&self, since: Option<Moment>) -> impl Iterator<Item = IssueSurvey<'_>> {
        let counts = move |issue: &&Encoded<'_>| {
            issue.is_active || since.is_none_or(|since| issue.newest >= since)
        };
        self.0.iter().filter(counts).filter_map(Encoded::decoded)
    }

    /// An issue by its key.
    pub fn get(&self, key: &IssueKey) -> Option<IssueSurvey<'_>> {
        let found = self.0.binary_search_by(|issue| issue.key.cmp(key));
        self.0.get(found.ok()?)?.decoded()
    }

    pub(super) fn encoded(&self) -> &[Encoded<'_>] {
        &self.0
    }

    /// Replaces issues by their new summaries; removes those of `gone` without one.
    pub(super) fn update(&mut self, gone: &HashSet<IssueKey>, read: Vec<Encoded<'static>>) {
        self.0.retain(|issue| !gone.contains(&issue.key));
        self.0.extend(read);
        self.0.sort_by(|a, b| a.key.cmp(&b.key));
    }
}

impl From<Vec<Encoded<'static>>> for Issues {
    /// Takes issues that are sorted by key.
    fn from(sorted: Vec<Encoded<'static>>) -> Self {
        Self(sorted)
    }
}
