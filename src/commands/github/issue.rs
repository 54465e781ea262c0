use clap::Args;
use handoff_base::ids::IssueKey;
use handoff_github::event::{Subject, pull_request_of};
use schemars::JsonSchema;
use serde::Serialize;

use super::given::{Given, read};
use crate::context::Context;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Answer, Output};
use crate::view::Look;

/// Print the issue that a GitHub event is about
///
/// For an event of an issue, that issue. For a pull request, the issue that its text says it
/// closes (`Closes #12`); else the one that its branch is named after (12, issue-12,
/// feature/12-title); else the open one in the ledger that has this pull request.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff github issue
  git handoff github issue --file event.json --name pull_request")]
pub(crate) struct Arguments {
    #[command(flatten)]
    given: Given,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let event = read(context, &self.given)?;
        let subject = Subject::of(&event);
        let known = match (&subject.issue, subject.pull_request) {
            // Without a ledger, only the event itself can name the issue.
            (None, Some(number)) => known_here(context, number),
            (issue, _) => issue.clone(),
        };
        let Some(issue) = known else {
            let text = "the event is about no issue";
            return Err(Failure::new(ErrorCode::NoIssueNamed, text).advice(
                "write \"Closes #12\" into the pull request's description, or name its branch after the issue (issue-12)",
            ));
        };
        output.answer(&SubjectView {
            issue,
            pull_request: subject.pull_request,
        })
    }
}

/// What an event is about.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GithubIssue")]
pub(crate) struct SubjectView {
    /// the issue that the event is about
    issue: IssueKey,
    /// the pull request that it is about, if any
    pull_request: Option<u64>,
}

impl Answer for SubjectView {
    fn text(&self, _: &Look) -> String {
        format!("{}\n", self.issue)
    }
}

/// The open issue in the ledger that has this pull request, if there is a ledger.
fn known_here(context: &Context, number: u64) -> Option<IssueKey> {
    let repository = context.repository().ok()?;
    let tip = context.tip(&repository).ok()?;
    pull_request_of(&tip, number).ok()?
}
