use clap::Args;
use handoff::base::ids::IssueKey;
use handoff_github::event::{Event, Naming, Subject};
use schemars::JsonSchema;
use serde::Serialize;

use super::given::{Asking, read};
use crate::context::Context;
use crate::failure::{ErrorCode, Failure};
use crate::output::{Answer, Output};
use crate::view::Look;

/// Print the issues that a GitHub event is about, one per line
///
/// For an event of an issue, that issue. For a pull request, those of --closes, or those that GitHub
/// names with --ask-github; else those that its text says it closes (`Closes #12`); else the one that its branch is named after, if the
/// ledger has it (12, issue-12, feature/12-title, or as the protocol's `github.branches` say); else the open ones in the ledger
/// that have this pull request, or the commit that was checked.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff github issue
  git handoff github issue --closes 12,13
  git handoff github issue --ask-github
  git handoff github issue --file event.json --name pull_request")]
pub(crate) struct Arguments {
    #[command(flatten)]
    asking: Asking,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let mut event = read(context, &self.asking.given)?;
        let closes = self.asking.ask(context, &mut event, output).closes;
        let (subject, issues) = match context.repository() {
            Ok(repository) => match context.tip(&repository) {
                Ok(tip) => {
                    let subject = Subject::of(&event, &Naming::of(&tip, &closes)?);
                    let issues = subject.known(&tip, &event)?;
                    (subject, issues)
                }
                Err(_) => by_itself(&event, &closes),
            },
            Err(_) => by_itself(&event, &closes),
        };
        if issues.is_empty() {
            let text = "the event is about no issue";
            return Err(Failure::new(ErrorCode::NoIssueNamed, text).hint(
                "write \"Closes #12\" into the pull request's description, or name its branch after the issue (issue-12)",
            ));
        }
        output.answer(&SubjectView {
            keys: issues,
            pull_request: subject.pull_request,
        })
    }
}

/// Without a ledger, the issues come from the event itself and from GitHub.
fn by_itself(event: &Event, closes: &[IssueKey]) -> (Subject, Vec<IssueKey>) {
    let subject = Subject::of(event, &Naming::given(closes));
    let issues = subject.named();
    (subject, issues)
}

/// What an event is about.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GithubIssue")]
pub(crate) struct SubjectView {
    /// the keys of the issues that the event is about
    keys: Vec<IssueKey>,
    /// the pull request that it is about, if any
    pull_request: Option<u64>,
}

impl Answer for SubjectView {
    fn text(&self, _: &Look) -> String {
        self.keys.iter().map(|issue| format!("{issue}\n")).collect()
    }
}
