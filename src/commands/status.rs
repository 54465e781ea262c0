use clap::Args;
use handoff_base::ids::IssueKey;
use handoff_base::text::plain;
use handoff_insight::attention;
use handoff_insight::attention::Stuck;
use handoff_ledger::{RemoteDistance, Snapshot};
use handoff_model::{IssueStatus, Refusal, View};
use handoff_protocol::{Policy, State};
use serde_json::json;

use crate::context::Context;
use crate::environment::now;
use crate::failure::Failure;
use crate::output::{Output, counted};
use crate::render;
use crate::render::rows;
use crate::view::Look;

/// Show all open handoffs, or the status of one issue
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff status
  git handoff status 123 --json
  git handoff status --idle      (also issues in which an agent has to send)")]
pub(crate) struct Arguments {
    /// The issue; by default, everything that is open
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    /// Also list open issues without an open handoff: an agent has to send one.
    /// Reads every issue
    #[arg(long, conflicts_with = "issue")]
    idle: bool,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let now = now()?;
        let look = output.look(now);
        if let Some(issue) = &self.issue {
            let key: IssueKey = issue.parse()?;
            let folder = tip.issue(&key)?;
            let issue = folder.issue()?.ok_or_else(|| Refusal::no_issue(&key))?;
            let records = folder.records()?;
            let text = render::issue_text(&issue, &records, &look);
            let records: Vec<_> = records.iter().map(|r| rows::record_json(r, now)).collect();
            return output.answer(&json!({ "issue": issue, "handoffs": records }), &text);
        }
        let mut records = Vec::new();
        for entry in tip.open()? {
            records.push(tip.open_record(&entry)?);
        }
        let mut counts = serde_json::Map::new();
        let mut words = Vec::new();
        for one in State::ALL.into_iter().filter(|s| !s.is_terminal()) {
            let count = records.iter().filter(|r| r.state == one).count();
            counts.insert(one.to_string(), count.into());
            if count > 0 {
                words.push(look.count(count, one));
            }
        }
        let said = if words.is_empty() {
            "no handoff is open".to_owned()
        } else {
            words.join(", ")
        };
        let mut text = format!(
            "ledger {} at {}: {said}\n",
            ledger.branch(),
            tip.commit().short()
        );
        let policy = tip.manifest().evidence;
        if policy != Policy::Off {
            text += &format!("  contracts' claims are checked: {}\n", policy.as_str());
        }
        let told = output.is_json() || look.is_for_terminal();
        let stuck = if told && !records.is_empty() {
            attention::of_open(&records, &attention::protocols(&tip)?, now)
        } else {
            Vec::new()
        };
        text = look.sentences(&text) + &attention_text(&stuck, &look);
        text += &rows::table(&records, &look);
        let (table, mut text) = (text, String::new());
        let expired = records.iter().filter(|r| r.is_expired(now)).count();
        if expired > 0 {
            text +=
                &format!("{expired} with a lease that ran out: `git handoff reap` records it\n");
        }
        let beside = ledger.beside_remote()?;
        let rejected = ledger.rejected()?;
        let idle = if self.idle {
            idle_issues(&tip)?
        } else {
            Vec::new()
        };
        for (issue, agents) in &idle {
            let senders = match agents.join(", ") {
                none if none.is_empty() => "any agent that may open it".to_owned(),
                some => some,
            };
            text += &format!("issue {issue} is open but has no open handoff: {senders} can send\n");
        }
        if let Some(beside) = &beside {
            text += &beside_text(beside);
        }
        if !rejected.is_empty() {
            let kept = match rejected.len() {
                1 => "1 step made offline was refused and is kept".to_owned(),
                count => format!("{count} steps made offline were refused and are kept"),
            };
            text += &format!("{kept}: `git handoff rejected`\n");
        }
        let idle: Vec<_> = idle
            .into_iter()
            .map(|(issue, agents)| json!({ "issue": issue, "may_send": agents }))
            .collect();
        let records: Vec<_> = records.iter().map(|r| rows::record_json(r, now)).collect();
        let data = json!({
            "branch": ledger.branch(),
            "commit": tip.commit().to_string(),
            "protocol": tip.manifest().default_protocol,
            "evidence": tip.manifest().evidence,
            "open": counts,
            "expired": expired,
            "attention": stuck,
            "handoffs": records,
            "idle": idle,
            "remote": beside.map(|beside| json!({
                "name": beside.remote,
                "seen": beside.seen,
                "unpublished": beside.unpublished,
                "behind": beside.behind,
            })),
            "rejected": rejected,
        });
        output.answer(&data, &(table + &look.sentences(&text)))
    }
}

/// The most urgent handoffs that need attention, for a terminal only: elsewhere, the rows suffice.
fn attention_text(stuck: &[Stuck], look: &Look) -> String {
    const MOST: usize = 5;
    let Some(first) = stuck.first().filter(|_| look.is_for_terminal()) else {
        return String::new();
    };
    let rows = stuck.iter().take(MOST).map(|stuck| {
        let about = stuck.id.as_ref().map(|id| look.id(id));
        let turn = stuck.turn.as_ref().map(|agent| format!("{agent}'s turn"));
        vec![
            about.unwrap_or_else(|| stuck.issue.to_string()),
            look.urgent(&format!("! {}", stuck.need.title())),
            turn.unwrap_or_default(),
            look.time(stuck.since),
            look.cell(&stuck.why),
        ]
    });
    let table = look.inner_table(&rows.collect::<Vec<_>>());
    let more = match stuck.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("  and {more} more\n"),
    };
    let (heading, next) = (look.heading("needs attention"), &first.next);
    format!("\n{heading}\n{table}{more}  next: {next}\n\n")
}

/// How far the ledger is ahead of and behind its remote's, as last seen.
fn beside_text(beside: &RemoteDistance) -> String {
    let RemoteDistance {
        remote,
        unpublished,
        behind,
        seen,
    } = beside;
    let remote = plain(remote);
    match (*seen, *unpublished, *behind) {
        (false, ..) => format!("{remote} has not been reached yet: `git handoff sync`\n"),
        (true, 0, 0) => format!("up to date with {remote} as last seen\n"),
        (true, own, 0) => format!(
            "{} not on {remote}: `git handoff sync`\n",
            counted(own, "commit")
        ),
        (true, 0, theirs) => format!(
            "{} on {remote} but not on the branch here: `git handoff fetch`\n",
            counted(theirs, "commit")
        ),
        (true, own, theirs) => format!(
            "{} not on {remote}, {} on it but not on the branch here: `git handoff sync`\n",
            counted(own, "commit"),
            counted(theirs, "commit")
        ),
    }
}

/// Open issues without an open handoff, each with the agents that may send on
/// from a handoff they completed.
fn idle_issues(tip: &Snapshot<'_>) -> Result<Vec<(IssueKey, Vec<String>)>, Failure> {
    let mut idle = Vec::new();
    for key in tip.issues()? {
        let folder = tip.issue(&key)?;
        let Some(issue) = folder.issue()? else {
            continue;
        };
        if issue.status == IssueStatus::Open && issue.open.is_empty() {
            let mut agents = Vec::new();
            for id in &issue.unfollowed {
                agents.extend(folder.record(id.number())?.map(|r| r.to.to_string()));
            }
            idle.push((key, agents));
        }
    }
    Ok(idle)
}
