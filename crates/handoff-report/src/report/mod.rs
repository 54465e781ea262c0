//! The report: one self-contained HTML page about a ledger.
//!
//! [`Report::of`] selects the content, [`Report::write`] writes it part by part, so that memory
//! stays small for any size. `page` is the frame; `attention`, `open`, `charts`, `timeline` and
//! `index` are about all issues, `issue`, `story`, `handoff`, `flow` and `contract` about one;
//! `order` sorts an issue's steps; `sections` renders issues on several threads. All foreign text
//! goes through `escape`; `words` formats times, counts and states.

mod attention;
mod charts;
mod contract;
mod cost;
mod escape;
mod flow;
mod handoff;
mod index;
mod issue;
mod open;
mod order;
mod page;
mod sections;
mod story;
mod timeline;
mod words;

use std::collections::HashSet;
use std::io;
use std::io::Write;

use ::handoff::base::Moment;
use ::handoff::base::ids::IssueKey;
use ::handoff::ledger::{IssueSurvey, LedgerError, Snapshot, Survey};
use ::handoff::model::IssueStatus;
use schemars::JsonSchema;
use serde::Serialize;

use ::handoff::ledger::attention::{Attention, Protocols};

pub use page::{Frame, gone, policy};

/// How many handoffs may have their issue's section on a page by default; open issues always have
/// one.
pub(crate) const MOST_HANDOFFS: usize = 20_000;

/// Why a page could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The ledger can't be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The page can't be written.
    #[error("the page cannot be written")]
    Write(#[from] io::Error),
}

/// The selection of a page's content.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only these issues, if given.
    pub only: Option<Vec<IssueKey>>,
    /// The search that found them; empty if they were named.
    pub query: String,
    /// Leaves out completed issues without a step since then.
    pub since: Option<Moment>,
    /// Whether every issue gets a section, regardless of their number.
    pub all: bool,
    /// The maximum number of issues.
    pub limit: Option<usize>,
}

/// A page's content before it is written.
pub struct Report<'a> {
    branch: &'a str,
    /// The policy of the protocols in force; empty if nothing is checked.
    policy: String,
    protocols: &'a Protocols,
    /// The issues of the page: open ones first, then by their last step.
    issues: Vec<&'a IssueSurvey<'a>>,
    /// How many there were before the limit.
    found: usize,
    /// Those that have a section, in the same order.
    sections: Vec<&'a IssueSurvey<'a>>,
    stuck: Vec<Attention>,
    wanted: &'a Wanted,
    tip: String,
    now: Moment,
}

/// The counts of a written page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Written {
    /// The number of issues covered.
    pub issues: usize,
    /// The number of their handoffs.
    pub handoffs: usize,
    /// The number of issues with a section.
    pub sections: usize,
    /// The number of needs.
    pub attention: usize,
}

/// The issues that have a section to link to.
struct Shown<'a>(HashSet<&'a IssueKey>);

impl Shown<'_> {
    fn has(&self, key: &IssueKey) -> bool {
        self.0.contains(key)
    }
}

impl<'a> Report<'a> {
    /// Sets the policy shown in the header.
    #[must_use]
    pub fn under(self, policy: String) -> Self {
        Self { policy, ..self }
    }

    /// Selects the content. `stuck` is the attention of the same survey.
    pub fn of(
        (survey, all): (&Survey, &'a [IssueSurvey<'a>]),
        mut stuck: Vec<Attention>,
        protocols: &'a Protocols,
        branch: &'a str,
        wanted: &'a Wanted,
        now: Moment,
    ) -> Self {
        let only = wanted.only.as_ref();
        let only: Option<HashSet<&IssueKey>> = only.map(|keys| keys.iter().collect());
        let is_wanted = |key: &IssueKey| only.as_ref().is_none_or(|only| only.contains(key));
        let issues = all.iter().filter(|issue| is_wanted(&issue.key));
        let mut issues: Vec<&IssueSurvey<'_>> = issues.collect();
        // A stable sort: ties stay in the order of keys.
        issues.sort_by_key(|issue| {
            let is_done = issue.status != IssueStatus::Open;
            (is_done, std::cmp::Reverse(issue.updated_at))
        });
        let found = issues.len();
        issues.truncate(wanted.limit.unwrap_or(usize::MAX));
        let sections = with_sections(&issues, wanted);
        let shown: HashSet<&IssueKey> = issues.iter().map(|issue| &issue.key).collect();
        stuck.retain(|one| shown.contains(&one.issue));
        Self {
            branch,
            policy: String::new(),
            protocols,
            issues,
            found,
            sections,
            stuck,
            wanted,
            tip: survey.tip.to_string(),
            now,
        }
    }

    /// Writes the page with this many threads. The snapshot must be of the survey's commit.
    ///
    /// # Errors
    /// [`ReportError`] when the ledger can't be read or the page can't be written.
    pub fn write(
        &self,
        tip: &Snapshot<'_>,
        frame: &Frame,
        threads: usize,
        out: &mut impl Write,
    ) -> Result<Written, ReportError> {
        let shown = Shown(self.sections.iter().map(|issue| &issue.key).collect());
        let mut page = String::new();
        page::head(&mut page, self, frame);
        index::filters(&mut page, &self.issues, &self.stuck, self.protocols);
        attention::section(&mut page, &self.stuck, &self.issues, &shown, self.now);
        open::section(&mut page, &self.issues, &shown, self.now);
        charts::section(&mut page, &self.issues, self.now);
        cost::section(&mut page, &self.issues, self.now);
        timeline::section(
            &mut page,
            &self.issues,
            &self.stuck,
            (tip, &shown),
            self.now,
        )?;
        index::section(&mut page, &self.issues, &self.stuck, &shown, self.now);
        page::details(&mut page, self);
        out.write_all(page.as_bytes())?;
        drop(page);
        sections::write(self, tip, threads, out)?;
        let mut page = String::new();
        page::foot(&mut page, frame);
        out.write_all(page.as_bytes())?;
        out.flush()?;
        Ok(Written {
            issues: self.issues.len(),
            handoffs: self.issues.iter().map(|issue| issue.handoffs.len()).sum(),
            sections: self.sections.len(),
            attention: self.stuck.len(),
        })
    }
}

/// The issues that get a section: open ones, and as many others as fit, the newest first.
fn with_sections<'a>(issues: &[&'a IssueSurvey<'a>], wanted: &Wanted) -> Vec<&'a IssueSurvey<'a>> {
    let mut room = MOST_HANDOFFS;
    let mut found = Vec::new();
    for issue in issues {
        let is_open = issue.status == IssueStatus::Open;
        let is_recent = wanted.since.is_none_or(|since| issue.updated_at >= since);
        let fits = wanted.all || wanted.only.is_some() || issue.handoffs.len() <= room;
        if is_open || is_recent && fits {
            found.push(*issue);
            room = room.saturating_sub(issue.handoffs.len());
        } else if is_recent {
            // Once one is left out, no older issue is shown either.
            room = 0;
        }
    }
    found
}
