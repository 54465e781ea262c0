use clap::Args;
use handoff::base::ids::{AgentName, HandoffId};
use handoff::base::text::continued;
use handoff::ledger::attention::{NextTurn, limit_to_send};
use handoff::ledger::{
    Briefing, IssueFolder, Ledger, OtherProtocol, OverviewLimits, Rules, Snapshot, Target,
    approved_merge, briefing, overview, unsent_commits,
};
use handoff::model::view::commands::options;
use handoff::model::{Detail, EventArgs, Handoff, IssueSummary, Record, View};
use handoff::protocol::{Event, Protocol, State};
use schemars::JsonSchema;
use serde::Serialize;

use super::next::gate_command;
use crate::args::{duration, text};
use crate::context::worker::holder;
use crate::context::{Context, handoff_id};
use crate::contracts::onward::{NextContract, Onward, only_notes};
use crate::environment::{now, run_of_work};
use crate::exit;
use crate::failure::{ErrorCode, Failure, hint};
use crate::output::{Answer, Output};
use crate::render;
use crate::render::receipt::WrittenView;
use crate::view::Look;

/// Claim a handoff that is waiting for you, and print its contract
///
/// From now on you hold the handoff. Prints what you need to start: requirements, findings, answers,
/// workspace, branch, what earlier attempts left, the contract, and the files that were delivered.
///
/// A claim is held by an agent and a worker: this working tree, or `--worker`. If several claim the
/// same handoff, one succeeds and the others exit 5, as does what another worker sends or reports. To
/// claim again what you hold writes nothing. If its worker is gone for good, `--take-over` takes it
/// over, on record.
///
/// A claim lasts for its lease; `git handoff extend` prolongs it. After that the handoff has failed
/// with TIMEOUT, and what you send is refused (exit 5). Where processes share a worker, give the
/// claim's token to `send`, `complete`, `fail`, `block` and `extend`.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff claim 123.4 --as fixer-agent
  git handoff claim 123 --as fixer-agent       (the issue's only open handoff)
  git handoff claim --next --as fixer-agent    (the most urgent)
  git handoff claim 123.4 --as fixer-agent --lease 2h
  git handoff claim 123.4 --as fixer-agent --take-over \\
      --reason 'the machine it ran on is gone'")]
pub(crate) struct Arguments {
    /// The handoff
    #[arg(
        value_name = "ID",
        required_unless_present = "next",
        conflicts_with = "next"
    )]
    id: Option<String>,
    /// Claim the most urgent handoff that is waiting for you; the oldest of equally urgent ones
    #[arg(long)]
    next: bool,
    /// How long you hold it unless you extend it, such as 45m; by default as
    /// long as its contract or the protocol says
    #[arg(long, value_name = "DURATION", value_parser = duration::seconds)]
    lease: Option<u64>,
    /// Take the handoff from another worker of yours that holds it, such as one that crashed;
    /// what it still sends is refused
    #[arg(long, requires = "reason", conflicts_with = "next")]
    take_over: bool,
    /// Why it is taken over
    #[arg(long, value_name = "TEXT", requires = "take_over")]
    reason: Option<String>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let agent = context.acting_agent(&repository)?;
        let args = EventArgs {
            lease: self.lease,
            reason: self.reason.as_deref().map(text::kept).transpose()?,
            ..EventArgs::default()
        };
        let event = if self.take_over {
            Event::TakeOver
        } else {
            Event::Claim
        };
        let (mut ledger, session) = context.writer(&repository, output)?;
        let target = match &self.id {
            Some(id) => Target::Handoff(handoff_id(&ledger.tip()?, id, Some(&agent))?),
            None => Target::Next,
        };
        if let Some(run) = run_of_work()
            && !matches!(&target, Target::Handoff(id) if *id == run.id)
        {
            let text = format!(
                "this is a run of {}: its worker claims other handoffs",
                run.id
            );
            return Err(Failure::new(ErrorCode::NotYours, text)
                .hint("hand on, block or fail what you hold, and end"));
        }
        let claimed = ledger.claim(&session, &agent, &target, event, &args);
        let done =
            claimed.map_err(|error| self.held_instead(context, &ledger, &agent, error.into()))?;
        output.follow(&ledger);
        let record = &done.receipt.record;
        let tip = ledger.tip()?;
        let folder = tip.issue(record.id.issue())?;
        let brief = briefing(&tip, &folder, record)?;
        let rules = tip.rules(record.protocol.as_str())?;
        let issue = folder.issue()?;
        let held = issue.iter().flat_map(|issue| issue.held_by(&record.to));
        let carried = output.carried().map(|carried| carried.after(record));
        let onward = Onward {
            repository: &repository,
            tip: &tip,
            rules: &rules,
            several: false,
            holds_several: held.count() > 1,
            carried: &carried.unwrap_or_default(),
            now: now()?,
        };
        let is_held = record.state == State::InProgress && !only_notes(&rules, record);
        // For a handoff that was claimed already, print it despite a fault of a template or schema.
        let next = is_held.then(|| onward.contracts(&record.to, Some(record)).ok());
        let mut contracts = next.flatten().unwrap_or_default();
        output.carry(onward.carried_with(&contracts));
        let mut written = WrittenView::new(&done, output);
        let at_limit = at_limit(&folder, rules.protocol(), record, &mut contracts)?;
        if let Some(limit) = &at_limit {
            written = written.with_commands(&limit.commands, output);
        }
        let time = rules.protocol().definition().limits.as_ref();
        let party = rules.protocol().agent(record.to.as_str());
        let claimed = ClaimView {
            handoff: Handoff::new(record, now()?),
            issue: IssueSummary::from(&done.receipt.issue),
            written,
            record: Detail(record.clone()),
            role: party.map(|party| party.role.as_str()),
            other_protocol: tip.other_protocol(&record.protocol)?,
            longest_run_seconds: time.and_then(|time| time.longest_run_seconds),
            briefing: &brief,
            contracts: &contracts,
            merge: merge_first((&tip, &folder, &rules), record, &contracts, output)?,
            asides: asides((&folder, &rules), (record, is_held), &contracts, output)?,
        };
        output.answer(&claimed)?;
        let unsent = issue.map(|issue| unsent_commits(&tip, &folder, &issue, &rules));
        let unsent = unsent.transpose()?.flatten();
        unsent.iter().for_each(|told| output.say(&continued(told)));
        let told = at_limit.iter().map(|limit| continued(&limit.why));
        told.for_each(|told| output.say(&told));
        claimed.written.say_next_contracts(&contracts, output);
        Ok(())
    }
}

/// What is merged before a contract that reports a merge is sent, if one can be.
fn merge_first(
    (tip, folder, rules): (&Snapshot<'_>, &IssueFolder<'_>, &Rules<'_>),
    record: &Record,
    contracts: &[NextContract],
    output: &Output,
) -> Result<Option<String>, Failure> {
    let definition = rules.protocol().definition();
    let mut reports = contracts.iter().filter(|next| next.send.is_some());
    if !reports.any(|next| definition.reports_merge(&next.contract_type)) {
        return Ok(None);
    }
    let gate = output.command(&gate_command(record.id.issue()));
    let approved = match folder.issue()? {
        Some(issue) => approved_merge(tip, folder, &issue, rules)?,
        None => None,
    };
    Ok(Some(match approved {
        Some((left, false)) => format!("once `{gate}` exits 0: {}", left.merge()),
        Some((left, true)) => format!("{} has the approved commit already", left.base),
        None => format!("`{gate}` says what to merge, once that is approved"),
    }))
}

/// What to do if the work does not go on; before, about a failure that it reports.
fn asides(
    (folder, rules): (&IssueFolder<'_>, &Rules<'_>),
    (record, is_held): (&Record, bool),
    contracts: &[NextContract],
    output: &Output,
) -> Result<Option<String>, Failure> {
    if !is_held {
        return Ok(None);
    }
    let (id, agent) = (&record.id, &record.to);
    let block = format!("git handoff block {id} --as {agent} --reason WHAT");
    let fail = format!("git handoff fail {id} --as {agent} --message WHY --recoverable --snapshot");
    let [block, fail] = [block, fail].map(|command| output.command(&command));
    // Whoever has no contract to send is told as the next step.
    let basis = record.follows.as_ref().filter(|_| !contracts.is_empty());
    let basis = basis.map(|id| folder.shared_record(id.number()));
    let stuck = basis
        .transpose()?
        .flatten()
        .filter(|basis| basis.state.is_stuck());
    let decide = stuck.map(|stuck| {
        let all = options(rules.protocol(), folder, &stuck, now()?)?;
        let all = all.iter().take(2).map(|one| output.command(&one.command));
        let all: Vec<String> = all.collect();
        let done = output.command(&format!("git handoff complete {id} --as {agent}"));
        let (stuck, state) = (&stuck.id, stuck.state);
        Ok::<_, Failure>(format!(
            "  it is about {stuck}, which is {state}: {}; then: {done}\n",
            all.join(", or: ")
        ))
    });
    let decide = decide.transpose()?.unwrap_or_default();
    Ok(Some(
        decide + &format!("  if you are stuck: {block}, or: {fail}\n"),
    ))
}

/// What an agent may do at a limit with the handoff that it claimed. Drops the contracts that it
/// can't send there.
fn at_limit(
    folder: &IssueFolder<'_>,
    protocol: &Protocol,
    record: &Record,
    contracts: &mut Vec<NextContract>,
) -> Result<Option<NextTurn>, Failure> {
    let Some(issue) = folder
        .current_issue()?
        .filter(|_| record.state == State::InProgress)
    else {
        return Ok(None);
    };
    let of = (protocol, &issue);
    let at = now()?;
    contracts
        .retain(|one| limit_to_send(of, (&record.to, &one.to), &one.contract_type, at).is_none());
    Ok(NextTurn::at_limit(folder, of, record, at)?)
}

impl Arguments {
    /// Why nothing was claimed; says first if the agent holds something already.
    fn held_instead(
        &self,
        context: &Context,
        ledger: &Ledger<'_>,
        agent: &AgentName,
        failure: Failure,
    ) -> Failure {
        const FIRST: OverviewLimits<'_> = OverviewLimits {
            records: 400,
            each: 1,
            after: None,
        };
        if !self.next || failure.exit != exit::NOT_FOUND {
            return failure;
        }
        let held = || -> Result<Option<HandoffId>, Failure> {
            let tip = ledger.tip()?;
            let worker = context.worker(ledger.repository())?;
            let mut protocols = Vec::new();
            for name in tip.protocols()? {
                protocols.push(tip.rules(&name)?.protocol().clone());
            }
            let known: Vec<&Protocol> = protocols.iter().collect();
            let who = holder(agent, worker.as_ref());
            let found = overview(&tip, who, &known, now()?, FIRST)?;
            Ok(found.held.first.first().map(|record| record.id.clone()))
        };
        // If the held handoffs can't be read, the first reason stands.
        match held() {
            Ok(Some(id)) => Failure {
                message: format!("{}, but you hold {id}", failure.message),
                ..failure
            }
            .hint(hint!(
                "`git handoff claim {}` prints what it needs again",
                id
            )),
            _ => failure,
        }
    }
}

/// A claimed handoff, with what its agent needs to start.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Claim")]
pub(crate) struct ClaimView<'a> {
    /// the handoff
    handoff: Handoff,
    /// its issue
    issue: IssueSummary,
    #[serde(flatten)]
    written: WrittenView<'a>,
    /// what else is stored of it: what happened before
    record: Detail<Record>,
    /// what the agent's part is, in the protocol's words
    role: Option<&'a str>,
    /// its protocol, if it is not the ledger's default one
    #[serde(skip_serializing_if = "Option::is_none")]
    other_protocol: Option<OtherProtocol>,
    /// the longest that a worker may let its agent run for this claim, in seconds; null if the protocol
    /// does not say
    longest_run_seconds: Option<u64>,
    #[serde(flatten)]
    briefing: &'a Briefing,
    /// the contracts that can be sent from it, the likeliest first; replace each `{{fill: …}}`
    contracts: &'a [NextContract],
    /// what to merge before a contract that reports a merge is sent; null if none does
    merge: Option<String>,
    #[serde(skip)]
    asides: Option<String>,
}

impl Answer for ClaimView<'_> {
    fn text(&self, look: &Look) -> String {
        let record = &self.record.0;
        // The history matters to an agent that resumes a handoff.
        let history = (record.transitions.len() > 2)
            .then(|| format!("\nwhat happened\n{}", render::history_text(record, look)));
        let role = self
            .role
            .map(|role| format!("  your part: {}\n", continued(role)));
        let merge = self.merge.as_ref();
        let merge = merge.map(|merge| format!("  merge: {}\n", continued(merge)));
        self.written.outcome()
            + &role.unwrap_or_default()
            + &merge.unwrap_or_default()
            + self.asides.as_deref().unwrap_or_default()
            + &render::other_protocol(self.other_protocol.as_ref())
            + &render::briefing_text(self.briefing, record)
            + &history.unwrap_or_default()
    }
}
