use std::collections::{BTreeMap, HashSet};

use clap::Args;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::text::continued;
use handoff::base::{Moment, ObjectId, short_id};
use handoff::ledger::attention::{self, Attention, NextTurn};
use handoff::ledger::{
    Audited, IssueReport, IssueSurvey, Ledger, MergeLeft, Rejected, RemoteDistance, Snapshot,
    UnpushedCode, merges_left,
};
use handoff::model::{IssueStatus, IssueSummary, Paused, Record, Refusal, View};
use handoff::protocol::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::next::{CodeState, gate_command, say_turn};
use crate::args::remote::AskArgs;
use crate::context::fresh::{Fresh, Reading};
use crate::context::{Context, fresh};
use crate::environment::now;
use crate::failure::Failure;
use crate::output::page::{Page, PageArgs};
use crate::output::{Answer, Output, as_object, counted, counted_as};
use crate::render;
use crate::render::attention::{attention_text, rejected_text};
use crate::render::rows::{self, ListedHandoff};
use crate::view::Look;

/// Show all open handoffs, or the status of one issue
///
/// If the ledger has a remote, asks it first, for at most 2 seconds.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff status
  git handoff status 123 --json
  git handoff status --idle      (also issues in which an agent has to send)")]
pub(crate) struct Arguments {
    /// The issue; by default, everything that is open
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    /// Also list open issues without an open handoff: an agent has to send one
    #[arg(long, conflicts_with = "issue")]
    idle: bool,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    asks: AskArgs,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let reading = context.fresh(&repository, self.asks.offline, output)?;
        let Reading { ledger, tip, fresh } = reading;
        let now = now()?;
        if let Some(issue) = &self.issue {
            return self.issue(issue, &tip, fresh, output);
        }
        let (records, mut attention, _) = needs(&tip, now)?;
        output.complete(&mut attention);
        let open_states = State::ALL.into_iter().filter(|s| !s.is_terminal());
        let count = |state| records.iter().filter(|r| r.state == state).count();
        let remote = ledger.beside_remote()?;
        let unpushed = ledger.unpushed_code(&tip)?;
        let unmerged = merges_left(&tip)?;
        let damage = ledger.damage(&tip, now);
        // A partial clone would have to fetch every issue.
        let is_partial = remote
            .as_ref()
            .is_some_and(|remote| repository.is_promised_by(&remote.remote));
        let counts_all = records.is_empty() && !is_partial;
        let counted = counts_all.then(|| counted_issues(&tip)).flatten();
        let (open_issues, completed) = counted.unzip();
        let mut paused = tip.paused_among(records.iter().map(|record| record.id.issue()))?;
        let is_over = |record: &&Record| {
            let paused = paused.get(record.id.issue());
            let waits = paused.is_some_and(|paused| paused.holds_back(&record.to));
            record.is_expired(now) && !waits
        };
        let expired = records.iter().filter(is_over).count();
        let open = open_states.map(|state| (state, count(state))).collect();
        let attention_total = attention.len();
        attention.truncate(self.page.most_before(self.page.most(output)));
        let mut rows: Vec<Row> = records
            .into_iter()
            .map(Box::new)
            .map(Row::Handoff)
            .collect();
        if self.idle {
            let idle = idle_issues(&ledger, &tip)?.into_iter();
            rows.extend(idle.map(Box::new).map(Row::Idle));
        }
        let page = self.page.cut(&mut rows, Row::name, output)?;
        let (mut records, mut idle) = (Vec::new(), Vec::new());
        for row in rows {
            match row {
                Row::Handoff(record) => records.push(*record),
                Row::Idle(issue) => idle.push(*issue),
            }
        }
        let shown: HashSet<&IssueKey> = records.iter().map(|r| r.id.issue()).collect();
        paused.retain(|issue, _| shown.contains(issue));
        let turn = turn_of_one(&tip, &records, now)?.filter(|_| attention.is_empty());
        let view = StatusView {
            completed,
            open_issues,
            branch: ledger.branch(),
            commit: tip.commit(),
            protocol: &tip.manifest().default_protocol,
            policies: render::policies(&tip)?,
            open,
            expired,
            paused,
            attention,
            attention_total,
            printed: self.page.most_before(PRINTED),
            idle,
            page,
            remote,
            unpushed,
            unmerged,
            damage,
            rejected: ledger.rejected()?,
            handoffs: ListedHandoff::all(records, now),
            fresh,
        };
        output.answer(&view)?;
        say_turn(turn.as_ref(), &view.attention, output);
        // The output itself says which steps are not on the remote.
        fresh::say(view.fresh.as_ref().filter(|f| !f.is_answered()), output);
        Ok(())
    }

    fn issue(
        &self,
        issue: &str,
        tip: &Snapshot<'_>,
        fresh: Option<Fresh>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let now = now()?;
        let key: IssueKey = issue.parse()?;
        let folder = tip.issue(&key)?;
        let issue = folder.current_issue()?;
        let issue = issue.ok_or_else(|| Refusal::no_issue(&key))?;
        let rules = tip.rules(issue.protocol.as_str())?;
        let code = CodeState::read(tip, &folder, &issue, &rules)?;
        let mut report = IssueReport::new(issue, &folder, &rules, now)?;
        output.complete(&mut report.attention);
        let mut records = folder.records()?;
        let usage = render::issue_usage(&records);
        let page = self.page.cut(&mut records, |r| r.id.to_string(), output)?;
        let view = IssueView {
            report,
            handoffs: ListedHandoff::all(records, now),
            page,
            usage,
            fresh,
        };
        output.answer(&view)?;
        code.say(output);
        let next = view.report.turn.as_ref();
        if let Some(left) = code.left.filter(|_| next.is_none()) {
            let gate = output.command(&gate_command(&key));
            output.say(&format!("{}: `{gate}`", continued(&left)));
        }
        say_turn(next, &view.report.attention, output);
        fresh::say(view.fresh.as_ref(), output);
        Ok(())
    }
}

/// Whose turn it is in the issue of these handoffs, if they are of one, wait to be claimed, and no
/// pause is in the way.
fn turn_of_one(
    tip: &Snapshot<'_>,
    records: &[Record],
    now: Moment,
) -> Result<Option<NextTurn>, Failure> {
    let Some(key) = records.first().map(|first| first.id.issue()) else {
        return Ok(None);
    };
    if !records
        .iter()
        .all(|r| r.is_pending() && r.id.issue() == key)
    {
        return Ok(None);
    }
    let folder = tip.issue(key)?;
    let Some(issue) = folder.issue()? else {
        return Ok(None);
    };
    let rules = tip.rules(issue.protocol.as_str())?;
    let (_, turn) = attention::turn_in(&folder, rules.protocol(), now)?;
    Ok(turn.filter(|turn| !turn.is_paused))
}

/// What needs attention among the open handoffs, most urgent first.
pub(super) fn needs(
    tip: &Snapshot<'_>,
    now: Moment,
) -> Result<(Vec<Record>, Vec<Attention>, attention::Protocols), Failure> {
    let mut records = Vec::new();
    for entry in tip.open()? {
        records.push(tip.open_record(&entry)?);
    }
    let protocols = attention::protocols(tip, now)?;
    let attention = attention::of_tip(tip, &records, &protocols, now)?;
    Ok((records, attention, protocols))
}

/// The maximum number of folders read to count the completed issues.
const COUNTED: usize = 3000;

/// How many entries that need attention are printed.
const PRINTED: usize = 5;

/// An issue.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "IssueWithHandoffs")]
pub(crate) struct IssueView {
    #[serde(flatten)]
    report: IssueReport,
    /// its handoffs, open and closed, by number
    handoffs: Vec<ListedHandoff>,
    #[serde(flatten)]
    page: Page,
    /// The usage of all of them.
    #[serde(skip)]
    usage: String,
    /// whether the remote was asked first; null if the ledger has no remote
    fresh: Option<Fresh>,
}

impl Answer for IssueView {
    fn text(&self, look: &Look) -> String {
        let records = self.handoffs.iter().map(ListedHandoff::record);
        render::issue_text(&self.report, (records, &self.usage), look) + self.page.text()
    }
}

/// Everything that is open.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Status")]
pub(crate) struct StatusView<'a> {
    /// the ledger's branch
    branch: &'a str,
    /// its commit
    commit: ObjectId,
    /// the protocol that a new issue follows
    protocol: &'a AgentName,
    /// how each protocol in force treats statements that the repository contradicts: `enforce`, `warn` or `off`, and the checks for which
    /// it says otherwise
    #[schemars(with = "BTreeMap<AgentName, String>")]
    policies: BTreeMap<String, String>,
    /// how many handoffs are `pending`, `in_progress`, `blocked`, `failed` and `dead`; each is
    /// present, even if 0
    #[serde(serialize_with = "as_object")]
    #[schemars(with = "BTreeMap<State, usize>")]
    open: Vec<(State, usize)>,
    /// how many of them have an expired lease, or time to claim them, that nobody has recorded yet
    expired: usize,
    /// the pauses of the paused issues among those of `handoffs`
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    paused: BTreeMap<IssueKey, Paused>,
    /// how many issues are completed; null if a handoff is open, some are archived or there are
    /// very many, and in a partial clone
    completed: Option<usize>,
    /// How many are open without an open handoff, where they are counted.
    #[serde(skip)]
    open_issues: Option<usize>,
    /// what needs somebody, and whom, the most urgent first; at most `--limit`, and empty with
    /// `--after`
    attention: Vec<Attention>,
    /// how much needs somebody in all
    attention_total: usize,
    /// the open handoffs, by id
    handoffs: Vec<ListedHandoff>,
    /// with `--idle`: the open issues without open handoffs, which come after all handoffs
    idle: Vec<IdleIssue>,
    #[serde(flatten)]
    page: Page,
    /// how this clone's ledger compares with its remote's as last seen, beside what `fresh` says; null
    /// if the ledger has no remote
    remote: Option<RemoteDistance>,
    /// the code of open issues that is only here, as far as is known here
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unpushed: Vec<UnpushedCode>,
    /// the completed issues among those of the last 32 steps whose code is not in its base yet
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unmerged: Vec<MergeLeft>,
    /// what is known to be wrong with the ledger itself, by its newest commits or the last audit here
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<Audited>,
    /// the offline steps that were refused and are kept
    rejected: Vec<Rejected>,
    /// whether the remote was asked first; null if the ledger has no remote
    fresh: Option<Fresh>,
    #[serde(skip)]
    printed: usize,
}

/// A row of the table of open work.
enum Row {
    Handoff(Box<Record>),
    Idle(Box<IdleIssue>),
}

impl Row {
    fn name(&self) -> String {
        match self {
            Self::Handoff(record) => record.id.to_string(),
            Self::Idle(idle) => idle.issue.key.to_string(),
        }
    }
}

/// An open issue without an open handoff.
#[derive(Serialize, JsonSchema)]
struct IdleIssue {
    #[serde(flatten)]
    issue: IssueSummary,
    /// the agents that may send
    may_send: Vec<String>,
}

impl Answer for StatusView<'_> {
    fn text(&self, look: &Look) -> String {
        let counts = self.open.iter().filter(|(_, count)| *count > 0);
        let counts: Vec<String> = counts.map(|(state, n)| look.count(*n, *state)).collect();
        let open = match counts.join(", ") {
            none if none.is_empty() => {
                let issues = [(self.open_issues, "open"), (self.completed, "completed")];
                let issues = issues.into_iter().filter_map(|(n, state)| {
                    let n = n.filter(|n| *n > 0)?;
                    let issues = counted_as(n, "issue", [" is", "s are"]);
                    Some(format!(", {issues} {state}"))
                });
                "no handoff is open".to_owned() + &issues.collect::<String>()
            }
            counts => counts,
        };
        let mut head = format!(
            "ledger {} at {}: {open}\n",
            self.branch,
            self.commit.short()
        );
        head += &render::policy_line(&render::policies_text(&self.policies));
        if let Some(damage) = &self.damage {
            let (commit, codes) = (short_id(&damage.commit), damage.codes.join(", "));
            head += &format!(
                "the ledger is damaged: {codes}, found at {commit}: `git handoff verify` says what cures it\n"
            );
        }
        let count = (self.printed, self.attention_total, "--limit 0");
        let table = look.sentences(&head)
            + &attention_text(&self.attention, count, look)
            + &rows::table(self.handoffs.iter().map(ListedHandoff::record), look);
        let mut more = String::new();
        more += &paused_text(&self.paused);
        if self.expired > 0 {
            let expired = self.expired;
            more += &format!("{expired} whose time ran out: `git handoff reap` records it\n");
        }
        for IdleIssue { issue, may_send } in &self.idle {
            let senders = match may_send.join(", ") {
                none if none.is_empty() => "any agent that may open it".to_owned(),
                some => some,
            };
            let key = &issue.key;
            more += &format!("issue {key} is open but has no open handoff: {senders} can send\n");
        }
        if let Some(remote) = &self.remote {
            more += &remote_text(remote, self.fresh.as_ref().is_some_and(Fresh::is_answered));
        }
        more += &unpushed_text(&self.unpushed);
        for left in &self.unmerged {
            more += &format!("{left}: `{}`\n", gate_command(&left.issue));
        }
        let rejected = rejected_text(self.rejected.len());
        more.extend(rejected.map(|line| format!("{line}\n")));
        more += self.page.text();
        table + &look.sentences(&more)
    }
}

/// Pauses of issues, and what ends them.
pub(super) fn paused_text(all: &BTreeMap<IssueKey, Paused>) -> String {
    let line = |(key, paused): (&IssueKey, &Paused)| {
        let resume = paused.resume(key, "WHY");
        format!("issue {key} is {paused}: `{resume}`\n")
    };
    all.iter().map(line).collect()
}

pub(super) fn unpushed_text(all: &[UnpushedCode]) -> String {
    let each = all.iter().map(unpushed);
    each.map(|(what, cure)| format!("{what}: {cure}\n"))
        .collect()
}

/// Unpushed code, and the command that pushes it.
pub(super) fn unpushed(one: &UnpushedCode) -> (String, String) {
    let (commits, shown) = (counted(one.commits, "commit"), continued(&one.branch));
    let what = format!("issue {}: {commits} of {shown} not on origin", one.issue);
    (what, format!("`{}`", one.push))
}

/// How a ledger compares with its remote's, as text.
pub(super) fn remote_text(distance: &RemoteDistance, is_asked: bool) -> String {
    let remote = continued(&distance.remote);
    let seen = if is_asked { "" } else { " as last seen" };
    let here = |steps| counted_as(steps, "step", [" here is", "s here are"]);
    match (distance.seen, distance.unpublished, distance.behind) {
        (false, ..) => format!("{remote} has not been reached yet: `git handoff sync`\n"),
        (true, 0, 0) => format!("the ledger is up to date with {remote}{seen}\n"),
        (true, own, 0) => format!("{} not on {remote} yet: `git handoff sync`\n", here(own)),
        (true, 0, theirs) => format!(
            "{remote} has {} not here: `git handoff fetch`\n",
            counted_as(theirs, "step", [" that is", "s that are"])
        ),
        (true, own, theirs) => format!(
            "{} not on {remote} yet, and {theirs} there not here: `git handoff sync`\n",
            here(own)
        ),
    }
}

/// The numbers of open and of completed issues; `None` if there are too many to count, or some can't
/// be read or are archived.
fn counted_issues(tip: &Snapshot<'_>) -> Option<(usize, usize)> {
    let (mut open, mut completed) = (0, 0);
    for key in tip.issues_within(COUNTED).ok()? {
        let issue = tip.issue(&key).ok()?.issue().ok()??;
        open += usize::from(issue.status == IssueStatus::Open);
        completed += usize::from(issue.status == IssueStatus::Completed);
    }
    let has_archived = tip.has_archived().unwrap_or(true);
    (!has_archived).then_some((open, completed))
}

/// The open issues without an open handoff, by key, each with the agents that may send on from a
/// completed handoff.
fn idle_issues(ledger: &Ledger<'_>, tip: &Snapshot<'_>) -> Result<Vec<IdleIssue>, Failure> {
    let survey = ledger.survey(tip, Context::threads())?;
    let is_idle = |issue: &IssueSurvey<'_>| {
        let mut handoffs = issue.handoffs.iter();
        issue.status == IssueStatus::Open && handoffs.all(|h| h.state.is_terminal())
    };
    let mut idle = Vec::new();
    for found in survey.issues.active().filter(is_idle) {
        let senders = found.unfollowed.iter().filter_map(|n| found.handoff(*n));
        let may_send = senders.map(|handoff| handoff.to.to_string()).collect();
        let issue = tip.issue(&found.key)?.issue()?;
        idle.extend(issue.map(|issue| IdleIssue {
            issue: IssueSummary::from(&issue),
            may_send,
        }));
    }
    idle.sort_by(|one, other| one.issue.key.cmp(&other.issue.key));
    Ok(idle)
}
