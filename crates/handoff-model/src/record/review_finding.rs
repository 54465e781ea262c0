//! Findings of reviews, with their state.

use handoff_base::ids::{AgentName, HandoffId};
use handoff_base::words;
use handoff_macros::skip_serializing_none;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// The state of a finding.
    pub enum FindingState {
        /// Nobody answered it.
        Open = "open",
        /// It was fixed, or skipped with a reason; the next review decides.
        Answered = "answered",
        /// A later review disputed the answer; it needs another one.
        Disputed = "disputed",
        /// A review approved its answer.
        Resolved = "resolved",
        /// Its reviewer, or a person, withdrew it.
        Withdrawn = "withdrawn",
    }
}

impl FindingState {
    /// Whether it is resolved or withdrawn.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Resolved | Self::Withdrawn)
    }

    /// Whether it needs an answer, and prevents approval until then.
    pub fn is_unanswered(self) -> bool {
        matches!(self, Self::Open | Self::Disputed)
    }
}

/// A finding of a review.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewFinding {
    /// Its id, unique in the issue: `F1`.
    pub id: String,
    /// Its state.
    pub state: FindingState,
    /// The handoff that raised it.
    pub raised_by: HandoffId,
    /// The agent that still objects, if somebody else turned its review down: the work goes back,
    /// and the finding stays.
    pub objector: Option<AgentName>,
    /// Where it is.
    pub location: Option<String>,
    /// How severe it is, or of which kind.
    pub severity: Option<String>,
    /// What is wrong.
    pub text: String,
    /// The handoff that answered it last.
    pub answered_by: Option<HandoffId>,
    /// The answer; `None` if it was answered along with others.
    pub answer: Option<String>,
    /// Whether it was skipped, for the reason in its answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// The commit that fixes it, by its answer.
    pub commit: Option<String>,
    /// The handoff that disputed its answer last.
    pub disputed_by: Option<HandoffId>,
    /// The remaining problem, if the disputing review words it differently.
    pub dispute: Option<String>,
    /// The handoff that approved it.
    pub resolved_by: Option<HandoffId>,
}

impl ReviewFinding {
    /// Its id with its severity and location: `F1 (critical, src/a.rs:3)`.
    pub fn name(&self) -> String {
        let about = [self.severity.as_deref(), self.location.as_deref()];
        let about: Vec<&str> = about.into_iter().flatten().collect();
        match &about[..] {
            [] => self.id.clone(),
            about => format!("{} ({})", self.id, about.join(", ")),
        }
    }

    /// Its name and state, in one line.
    pub fn line(&self) -> String {
        format!("{}: {}; {}", self.name(), self.text, self.standing())
    }

    /// Its state in words: `answered by 7.4 in 1a2b3c4: Escaped the cells`.
    pub fn standing(&self) -> String {
        let answer = || {
            let word = if self.skipped { "skipped" } else { "answered" };
            let by = self.answered_by.as_ref().map(|id| format!(" by {id}"));
            let commit = self.commit.as_ref().map(|commit| format!(" in {commit}"));
            let text = self.answer.as_ref().map(|text| format!(": {text}"));
            let parts = [by, commit, text].into_iter().flatten();
            parts.fold(word.to_owned(), |all, part| all + &part)
        };
        match (self.state, &self.disputed_by, &self.resolved_by) {
            (FindingState::Answered, ..) => answer(),
            (FindingState::Disputed, Some(by), _) => {
                let why = self.dispute.as_ref().map(|why| format!(": {why}"));
                format!("{}; disputed by {by}{}", answer(), why.unwrap_or_default())
            }
            // A reason was accepted, nothing was fixed.
            (FindingState::Resolved, _, Some(by)) if self.skipped => {
                format!("{}; dropped by {by}", answer())
            }
            (FindingState::Resolved, _, Some(by)) => format!("{}; resolved by {by}", answer()),
            (state, ..) => state.as_str().to_owned(),
        }
    }
}
