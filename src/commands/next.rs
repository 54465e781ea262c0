use clap::Args;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::text::{continued, quoted, set_off};
use handoff::ledger::attention::{Attention, NextTurn, another_attempt, turn_in};
use handoff::ledger::{
    IssueFolder, Ledger, LedgerError, Rules, Session, Snapshot, merge_left, unreported_merge,
    unsent_commits,
};
use handoff::model::{
    Advice, Decision, Handoff, Issue, IssueStatus, IssueSummary, Question, Record, Refusal, Update,
    View, answer_command, issue_folder, turn,
};
use handoff::protocol::{Action, Protocol, State};
use schemars::JsonSchema;
use serde::Serialize;

use super::gate::ended;
use crate::context::fresh::{Fresh, Reading};
use crate::context::{Context, fresh};
use crate::environment::{drawn, now};
use crate::failure::{ErrorCode, Failure, hint};
use crate::output::{Answer, Output};
use crate::render::advice::questions_text;
use crate::render::receipt::WrittenView;
use crate::view::Look;

/// Show what should happen next in an issue, and why
///
/// If a handoff failed, is blocked or its lease ran out, the protocol's rules choose whether to ask,
/// retry, reassign it, continue with what there is, skip it, do it by hand, let a person decide, or end
/// it. With --apply, that is carried out and recorded with its rationale.
///
/// If nothing needs attention, the answer is whose turn it is. If several agents could act, the rules
/// for the task's state decide; without one, the agent in the lower phase goes first.
///
/// Asks the ledger's remote first, for at most 2 seconds; not with --offline.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff next 123
  git handoff next 123 --apply --as orchestrator
  git handoff next environment --task 12 \\
      --between task-orchestrator,execution-guardian")]
pub(crate) struct Arguments {
    /// The issue; by default the branch's
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    /// Carry out the action, and record why
    #[arg(long, conflicts_with_all = ["task", "between"])]
    apply: bool,
    /// The task that the agents act on
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// The agents that could act; by default those that have an open handoff
    #[arg(long, value_name = "AGENT,…", value_delimiter = ',')]
    between: Vec<String>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let (ledger, session, tip, fresh) = if self.apply {
            let (ledger, session) = context.writer(&repository, output)?;
            let tip = ledger.tip()?;
            (ledger, Some(session), tip, None)
        } else {
            let offline = context.remote_args().is_offline();
            let Reading { ledger, tip, fresh } = context.fresh(&repository, offline, output)?;
            (ledger, None, tip, fresh)
        };
        let key = context.issue_or_here(self.issue.as_deref(), &repository, &tip)?;
        let folder = tip.issue(&key)?;
        let issue = folder.current_issue()?;
        let issue = issue.ok_or_else(|| Refusal::no_issue(&key))?;
        let rules = tip.rules(issue.protocol.as_str())?;
        let protocol = rules.protocol();
        let code = CodeState::read(&tip, &folder, &issue, &rules)?;
        code.say(output);
        let asks_for_turn = self.task.is_some() || !self.between.is_empty();
        let between = context.all_named(&repository, &self.between)?;
        let (mut attention, next) = turn_in(&folder, protocol, now()?)?;
        output.complete(&mut attention);
        if asks_for_turn {
            let about = (&folder, &issue);
            return self.turn(about, &between, attention, protocol, (fresh, output));
        }
        let turn = Turn::of(next.as_ref(), code.left.as_deref(), (&folder, &issue))?;
        let commands = code.commands(next.as_ref(), &key).into_iter();
        let mut commands: Vec<String> = commands.map(|command| output.command(&command)).collect();
        let advice = next.as_ref().and_then(|next| next.advice.as_ref());
        let Some((advice, record)) = advice else {
            if self.apply {
                return Err(nothing_to_apply(&key, next.as_ref(), attention.first()));
            }
            answer_turn(turn, attention, commands, (fresh, output))?;
            if next.is_none() && code.left.is_none() && issue.status != IssueStatus::Open {
                output.say(&ended(&IssueSummary::from(&issue), protocol));
            }
            return Ok(());
        };
        if context.agent(&repository)?.as_ref() == Some(&record.to) {
            let own = another_attempt(&tip, &[protocol], record, now()?)?;
            commands.splice(..0, own.map(|own| output.command(&own)));
        }
        let mut view = NextView::of_advice(turn, (advice, record), commands);
        view.attention = attention;
        view.fresh = fresh;
        if let Some(session) = &session {
            let agent = context.acting_agent(&repository)?;
            let choices = view.commands.as_deref().unwrap_or_default();
            ensure_decides((advice, record), protocol, &agent, choices)?;
            return Self::carried_out((ledger, session), &agent, advice, (view, output));
        }
        output.answer(&view)?;
        view.say_commands(output);
        fresh::say(view.fresh.as_ref(), output);
        Ok(())
    }

    /// Carries out the protocol's advice in an agent's name.
    fn carried_out(
        (mut ledger, session): (Ledger<'_>, &Session),
        agent: &AgentName,
        advice: &Advice,
        (view, output): (NextView<'_>, &mut Output),
    ) -> Result<(), Failure> {
        let (mut view, key) = (view, advice.id.issue());
        let update = advice.update(drawn());
        let mut done = ledger.update(session, agent, key, &update)?;
        let (state, issue) = (done.receipt.record.state, &done.receipt.issue);
        let is_last = issue.status == IssueStatus::Open && issue.open.is_empty();
        if advice.action == Action::Terminate && state == State::Cancelled && is_last {
            let reason = advice.why.clone();
            done = ledger.update(session, agent, key, &Update::GiveUp { reason })?;
        }
        output.follow(&ledger);
        // What was offered is done: `applied` has what comes next. A decision that a contract
        // carries out is not done yet.
        let offered = view.commands.take().filter(|_| advice.by_contract);
        view.attention.retain(|one| one.id != advice.id);
        view.turn.issue = IssueSummary::from(&done.receipt.issue);
        view.turn.handoff = Some(Handoff::new(&done.receipt.record, now()?));
        let written = WrittenView::new(&done, output);
        view.applied = Some(match &offered {
            Some(commands) => written.with_commands(commands, output),
            None => written,
        });
        output.answer(&view)?;
        if let Some(written) = &view.applied {
            if done.receipt.record.state == State::Blocked {
                let id = &advice.id;
                output.say(&format!("{id} stays blocked until it is answered"));
            }
            written.say_next(output);
        }
        Ok(())
    }

    /// Prints whose turn it is, if nothing needs attention.
    fn turn(
        &self,
        (folder, issue): (&IssueFolder<'_>, &Issue),
        between: &[AgentName],
        attention: Vec<Attention>,
        protocol: &Protocol,
        (fresh, output): (Option<Fresh>, &mut Output),
    ) -> Result<(), Failure> {
        let key = &issue.issue;
        for agent in between {
            if protocol.agent(agent.as_str()).is_none() {
                return Err(Refusal::unknown_agent(agent, protocol).into());
            }
        }
        if let Some(task) = &self.task
            && !issue.tasks.iter().any(|t| t.id == *task)
        {
            let text = format!("issue {key} has no task {}", quoted(task));
            return Err(Failure::new(ErrorCode::NoTask, text)
                .hint(hint!("`git handoff status {}` lists its tasks", key)));
        }
        if self.apply {
            return Err(nothing_to_apply(key, None, attention.first()));
        }
        let halts = folder.halts()?;
        let next = turn(protocol, issue, &halts, (self.task.as_deref(), between));
        let of =
            |turn| NextTurn::of(turn, folder, (protocol, issue), now()?).map_err(Failure::from);
        let next = next.map(of).transpose()?;
        let turn = Turn::of(next.as_ref(), None, (folder, issue))?;
        answer_turn(turn, attention, Vec::new(), (fresh, output))
    }
}

/// Refuses to record, for a person, that the handoff waits for a person's answer or choice: they know.
fn ensure_decides(
    (advice, record): (&Advice, &Record),
    protocol: &Protocol,
    agent: &AgentName,
    choices: &[String],
) -> Result<(), Failure> {
    if !protocol.is_person(agent.as_str()) {
        return Ok(());
    }
    let is_own = protocol.is_person(advice.agent.as_str()) && advice.to.is_none();
    if is_own && advice.action.is_with_person() && record.state.is_stuck() {
        let (person, why) = (&advice.agent, &advice.why);
        let text = format!("nothing to apply, {person} has to choose: {why}");
        let choices = choices.iter().map(|one| format!("`{one}`"));
        let choices: Vec<String> = choices.collect();
        let hint = format!("choose: {}", choices.join(" or "));
        return Err(Failure::new(ErrorCode::NothingToDecide, text).hint(hint));
    }
    if advice.action != Action::Ask || record.state != State::Blocked {
        return Ok(());
    }
    let text = format!("nothing to apply: {} waits for an answer", record.id);
    let answer = answer_command(record, agent);
    Err(Failure::new(ErrorCode::NothingToDecide, text).hint(format!("run `{answer}`")))
}

/// The failure if there is nothing to apply: nothing needs attention, or an agent has to send a
/// contract or make another step.
fn nothing_to_apply(key: &IssueKey, next: Option<&NextTurn>, first: Option<&Attention>) -> Failure {
    if let Some(paused) = next.filter(|next| next.is_paused) {
        let command = paused.commands.join(" or ");
        let failure = Failure::new(ErrorCode::IssuePaused, paused.why.clone());
        return failure.hint(format!("run `{command}`"));
    }
    let Some(one) = first else {
        let text = format!("nothing in issue {key} needs attention: its agents can continue");
        return Failure::new(ErrorCode::NothingToDecide, text)
            .hint(hint!("`git handoff next {}` shows whose turn it is", key));
    };
    let (id, need, turn) = (&one.id, one.what(), &one.turn);
    let text = format!(
        "nothing to apply in issue {key}: {id} needs {turn}, not a decision ({need}: {})",
        continued(&one.why)
    );
    Failure::new(ErrorCode::NothingToDecide, text).hint(format!("run `{}`", one.next))
}

/// Prints whose turn it is, and the commands for it.
fn answer_turn(
    turn: Turn<'_>,
    attention: Vec<Attention>,
    commands: Vec<String>,
    (fresh, output): (Option<Fresh>, &mut Output),
) -> Result<(), Failure> {
    let view = NextView {
        commands: Some(commands).filter(|commands| !commands.is_empty()),
        attention,
        fresh,
        ..NextView::of_turn(turn)
    };
    output.answer(&view)?;
    view.say_commands(output);
    fresh::say(view.fresh.as_ref(), output);
    Ok(())
}

/// The next action in an issue.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Next")]
pub(crate) struct NextView<'a> {
    #[serde(flatten)]
    turn: Turn<'a>,
    #[serde(flatten)]
    advice: Option<AdviceView<'a>>,
    /// the commands that carry it out; present if something needs attention, or has to follow, and
    /// without `--apply`
    #[serde(skip_serializing_if = "Option::is_none")]
    commands: Option<Vec<String>>,
    /// what needs somebody in the issue, and whom, the most urgent first
    attention: Vec<Attention>,
    /// with `--apply`: what was written; then `issue` and `handoff` are as it left them
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<WrittenView<'a>>,
    /// whether the remote was asked first; null if the ledger has no remote, and with `--apply`
    fresh: Option<Fresh>,
}

/// Whose turn it is.
#[derive(Serialize, JsonSchema)]
struct Turn<'a> {
    /// the issue
    issue: IssueSummary,
    /// `advance`, `ask`, `retry`, `reassign`, `proceed_partial`, `skip`, `fall_back`, `escalate`,
    /// `terminate`; null if nothing has to happen
    action: Option<Action>,
    /// whose turn it is; null if nothing has to happen
    agent: Option<&'a AgentName>,
    /// the handoff that it is about; null if none is open
    handoff: Option<Handoff>,
    /// why: with `--apply` this is the rationale that is recorded
    why: String,
}

impl<'a> Turn<'a> {
    /// Whose turn it is, else the merge that is left.
    fn of(
        next: Option<&'a NextTurn>,
        left: Option<&str>,
        (folder, issue): (&IssueFolder<'_>, &Issue),
    ) -> Result<Self, Failure> {
        let id = next.and_then(|next| next.id.as_ref());
        let record = id.map(|id| folder.record(id.number())).transpose()?;
        let record = record.flatten();
        let now = now()?;
        let nobody = left.unwrap_or("nothing is open");
        let mut why = next.map_or(nobody, |next| &next.why).to_owned();
        let contradicted = record.as_ref().map(Record::contradicted);
        for one in contradicted.unwrap_or_default() {
            let said = one.split_once(": ").map_or(&*one, |(_, what)| what);
            if !why.contains(said) {
                why += &format!("; contradicted: {one}");
            }
        }
        Ok(Self {
            issue: IssueSummary::from(issue),
            action: next.filter(|next| !next.is_paused).map(|next| next.action),
            agent: next.map(|next| &next.agent),
            handoff: record.map(|record| Handoff::new(&record, now)),
            why,
        })
    }
}

/// The advice on a handoff that needs attention: one that failed, is dead, is blocked, or whose
/// lease expired.
#[derive(Serialize, JsonSchema)]
struct AdviceView<'a> {
    /// the agent that is to do the work, if it goes to another
    to: Option<&'a AgentName>,
    /// why the handoff is in its state, in the words of the agent that caused it
    reason: Option<&'a str>,
    /// what the failing tool reported; null if it failed without that, or did not fail
    details: Option<&'a str>,
    /// the decision about it that is already recorded and changed nothing; then the commands are
    /// what comes after it
    decided: Option<&'a Decision>,
    /// the questions to answer
    questions: &'a [Question],
    /// what the next attempt should do differently, or what a person should do by hand
    instructions: Option<&'a str>,
    /// the paths in the ledger's tree of its contract and of the files kept from its newest failure
    kept: Vec<String>,
    #[serde(skip)]
    record: &'a Record,
}

impl<'a> NextView<'a> {
    fn of_turn(turn: Turn<'a>) -> Self {
        Self {
            turn,
            advice: None,
            commands: None,
            attention: Vec::new(),
            applied: None,
            fresh: None,
        }
    }

    fn say_commands(&self, output: &mut Output) {
        for (i, command) in self.commands.iter().flatten().enumerate() {
            let label = if i == 0 { "next:" } else { "  or:" };
            output.say(&format!("{label} {command}"));
        }
    }

    fn of_advice(
        turn: Turn<'a>,
        (advice, record): (&'a Advice, &'a Record),
        commands: Vec<String>,
    ) -> Self {
        Self {
            advice: Some(AdviceView {
                to: advice.to.as_ref(),
                reason: record.reason(),
                details: record
                    .failure()
                    .and_then(|failure| failure.details.as_deref()),
                decided: advice.decided.as_ref(),
                questions: &advice.questions,
                instructions: advice.instructions.as_deref(),
                kept: kept(record),
                record,
            }),
            commands: Some(commands),
            ..Self::of_turn(turn)
        }
    }
}

impl Answer for NextView<'_> {
    fn text(&self, look: &Look) -> String {
        let turn = &self.turn;
        let why = continued(&turn.why);
        let Some(advice) = &self.advice else {
            return match (turn.agent, &turn.handoff) {
                (Some(agent), Some(handoff)) => format!("{agent} with {}: {why}\n", handoff.id),
                (Some(agent), None) => format!("{agent}: {why}\n"),
                (None, _) if self.commands.is_none() => {
                    format!("nothing is open in issue {}\n", turn.issue.key)
                }
                (None, _) => format!("{why}\n"),
            };
        };
        let to = advice.to.map(|to| format!(" to {to}")).unwrap_or_default();
        let action = turn.action.map_or("", Action::as_str);
        let mut text = match advice.decided.zip(turn.agent) {
            Some((decision, agent)) if self.applied.is_none() => {
                let at = look.moment(decision.at);
                let by = &decision.by;
                format!("{agent}'s turn: {why}\n  {by} decided to {action} {at}\n")
            }
            _ => format!("{action}{to}: {why}\n"),
        };
        if let Some((reason, last)) = advice.reason.zip(advice.record.latest()) {
            text += &format!("  {}: {}\n", last.by, continued(reason));
        }
        text += &set_off(advice.details.unwrap_or_default());
        text += &set_off(&questions_text(advice.questions));
        if let Some(instructions) = advice.instructions {
            text += &format!("  {}\n", continued(instructions));
        }
        if matches!(turn.action, Some(Action::FallBack | Action::Escalate)) {
            let Record {
                from, to, attempt, ..
            } = advice.record;
            text += &format!("  sent from {from} to {to}, attempt {attempt}; see in the ledger:\n");
            for path in &advice.kept {
                text += &format!("    {path}\n");
            }
        }
        if let Some(written) = &self.applied {
            text += &written.outcome();
        }
        text
    }
}

/// The paths of a handoff's files in the ledger's tree: its contract, and the context of its newest
/// failure.
fn kept(record: &Record) -> Vec<String> {
    let folder = issue_folder(record.id.issue());
    let newest = record.transitions.iter().rev();
    let failure = newest.filter_map(|t| t.context.as_ref()).next();
    [&record.contract.file]
        .into_iter()
        .chain(failure.map(|context| &context.folder))
        .map(|name| format!("{folder}/{name}"))
        .collect()
}

/// What this clone knows of an issue's code beside what its steps say.
pub(super) struct CodeState {
    /// Its merge, which no step reports, with the command.
    merged: Option<String>,
    /// Commits that were not handed on.
    unsent: Option<String>,
    /// That the merge of an approved and completed issue is left.
    pub(super) left: Option<String>,
}

impl CodeState {
    /// Reads it.
    ///
    /// # Errors
    /// [`LedgerError`] if something can't be read.
    pub(super) fn read(
        tip: &Snapshot<'_>,
        folder: &IssueFolder<'_>,
        issue: &Issue,
        rules: &Rules<'_>,
    ) -> Result<Self, LedgerError> {
        let merged = unreported_merge(tip, folder, issue, rules)?;
        let unsent = unsent_commits(tip, folder, issue, rules)?;
        let left = match unsent {
            None => merge_left(tip, folder, issue, rules)?.map(|left| left.to_string()),
            Some(_) => None,
        };
        let gate = gate_command(&issue.issue);
        Ok(Self {
            merged: merged.map(|merged| format!("{merged}: `{gate}`")),
            unsent,
            left,
        })
    }

    /// The commands for whose turn it is, else for the merge that is left.
    fn commands(&self, next: Option<&NextTurn>, key: &IssueKey) -> Vec<String> {
        let left = self.left.iter().map(|_| gate_command(key));
        next.map_or_else(|| left.collect(), |next| next.commands.clone())
    }

    /// Says what somebody did outside the ledger.
    pub(super) fn say(&self, output: &mut Output) {
        let told = self.merged.iter().chain(&self.unsent);
        told.for_each(|told| output.say(&continued(told)));
    }
}

/// The command that checks whether an issue's code can be merged.
pub(super) fn gate_command(key: &IssueKey) -> String {
    format!("git handoff gate {key}")
}

/// Says whose turn it is in an issue and the command for it, unless an entry says it already.
pub(super) fn say_turn(next: Option<&NextTurn>, attention: &[Attention], output: &mut Output) {
    let Some(next) = next else { return };
    let Some(command) = next.commands.first().map(|command| output.command(command)) else {
        return;
    };
    if attention.iter().all(|one| one.next != command) {
        output.say(&format!("next, for {}: {command}", next.agent));
    }
    if let Some((person, command)) = &next.raise {
        let command = output.command(command);
        output.say(&format!("or, for {person}: {command}"));
    }
}
