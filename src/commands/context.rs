use clap::Args;
use handoff::base::text::fenced;
use handoff::ledger::{HandoffContext, IssueContext};
use handoff::model::{Refusal, View};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::environment::now;
use crate::failure::Failure;
use crate::output::page::{Page, PageArgs};
use crate::output::{Answer, Output};
use crate::render;
use crate::view::Look;

/// Print everything that an issue's contracts have accumulated
///
/// Prints what is known about the issue, what in it needs somebody, and each contract as it was sent, oldest first. With
/// --json, also prints the newest value of every field, and each handoff's record.
#[derive(Args)]
#[command(after_help = "Example:\n  git handoff context 123")]
pub(crate) struct Arguments {
    /// The issue; by default the branch's
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let tip = context.tip(&repository)?;
        let key = context.issue_or_here(self.issue.as_deref(), &repository, &tip)?;
        let folder = tip.issue(&key)?;
        let no_issue = || Refusal::no_issue(&key);
        let issue = folder.issue()?.ok_or_else(no_issue)?;
        let rules = tip.rules(issue.protocol.as_str())?;
        output.paged();
        let found = handoff::ledger::context(&folder, &rules, now()?)?;
        let mut found = found.ok_or_else(no_issue)?;
        output.complete(&mut found.report.attention);
        let usage = render::issue_usage(found.handoffs.iter().map(|h| &h.record.0));
        let name = |handoff: &HandoffContext| handoff.record.0.id.to_string();
        let page = self.page.cut(&mut found.handoffs, name, output)?;
        output.answer(&ContextView { found, page, usage })
    }
}

/// An issue's accumulated contracts.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Context")]
pub(crate) struct ContextView {
    #[serde(flatten)]
    found: IssueContext,
    #[serde(flatten)]
    page: Page,
    /// The usage of all its handoffs.
    #[serde(skip)]
    usage: String,
}

impl Answer for ContextView {
    fn text(&self, look: &Look) -> String {
        let records = self.found.handoffs.iter().map(|handoff| &handoff.record.0);
        let mut text = render::issue_text(&self.found.report, (records, &self.usage), look);
        for handoff in &self.found.handoffs {
            let record = &handoff.record.0;
            let headline = render::headline(record);
            let contract = fenced(&handoff.text, record.contract.format.extension());
            text += &format!("\n{headline}\n\n{contract}");
        }
        text + self.page.text()
    }
}
