//! The parts of the stored files that a survey keeps. Everything else is skipped while parsing:
//! reading all of it takes twice as long.

use std::borrow::Cow;

use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId, IdError, IssueKey};
use handoff_model::record::{VERSION, answer_text};
use handoff_model::{
    FindingState, IssueStatus, Spending, Spent, StoredError, TraceParent, Usage, Verdict,
};
use handoff_protocol::{Action, Event, State};
use serde::Deserialize;
use serde::de::{Error, IgnoredAny};
use serde_json::{Map, Value};

use super::packed::{Names, Packed, has, tells};
use super::types::first_line;

/// The parts of `issue.json` that a survey keeps.
#[derive(Deserialize)]
struct Issue<'a> {
    version: u32,
    issue: IssueKey,
    #[serde(borrow)]
    title: Cow<'a, str>,
    #[serde(borrow)]
    protocol: Cow<'a, str>,
    status: IssueStatus,
    opened_at: Moment,
    updated_at: Moment,
    completed_at: Option<Moment>,
    #[serde(borrow)]
    paused: Option<Paused<'a>>,
    steps: u32,
    #[serde(default)]
    reopened: Vec<Reopening>,
    #[serde(default, borrow)]
    counted: Vec<Counted<'a>>,
    #[serde(default, borrow)]
    unfollowed: Vec<Number<'a>>,
    #[serde(default, borrow)]
    awaiting: Vec<Awaiting<'a>>,
    #[serde(default, borrow)]
    to_tell: Vec<Awaiting<'a>>,
    #[serde(default, borrow)]
    decisions: Vec<Decision<'a>>,
    #[serde(default)]
    findings: Vec<Finding>,
    #[serde(default)]
    spent: Spending,
}

impl Issue<'_> {
    fn counts_since(&self) -> Moment {
        let again = self.reopened.last().map(|again| again.at);
        again.unwrap_or(self.opened_at)
    }
}

#[derive(Deserialize)]
struct Finding {
    state: FindingState,
}

#[derive(Deserialize)]
struct Paused<'a> {
    at: Moment,
    #[serde(borrow)]
    by: Cow<'a, str>,
    #[serde(borrow)]
    reason: Cow<'a, str>,
    #[serde(default, borrow)]
    except: Vec<Text<'a>>,
}

#[derive(Deserialize)]
struct Reopening {
    at: Moment,
    handoffs: u32,
}

#[derive(Deserialize)]
struct Awaiting<'a> {
    #[serde(borrow)]
    id: Number<'a>,
    #[serde(borrow)]
    agent: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Counted<'a> {
    number: u32,
    #[serde(default, borrow)]
    rounds: Vec<Text<'a>>,
}

#[derive(Deserialize)]
struct Decision<'a> {
    at: Moment,
    #[serde(borrow)]
    id: Number<'a>,
    action: Action,
}

/// A text that is borrowed also in a list or an option.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The id of a handoff in the same issue.
#[derive(Deserialize)]
struct Number<'a>(#[serde(borrow)] Cow<'a, str>);

impl Number<'_> {
    fn number(&self) -> Option<u32> {
        let id: HandoffId = self.0.parse().ok()?;
        Some(id.number())
    }
}

/// The parts of `NNNN.json` that a survey keeps.
#[derive(Deserialize)]
struct Record<'a> {
    version: u32,
    #[serde(borrow)]
    id: Number<'a>,
    #[serde(borrow)]
    contract_type: Cow<'a, str>,
    #[serde(borrow)]
    from: Cow<'a, str>,
    #[serde(borrow)]
    to: Cow<'a, str>,
    state: State,
    #[serde(borrow)]
    priority: Option<Text<'a>>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    summary: Cow<'a, str>,
    #[serde(borrow)]
    contract: Contract<'a>,
    #[serde(borrow)]
    intended: Option<Text<'a>>,
    #[serde(borrow)]
    follows: Option<Number<'a>>,
    #[serde(borrow)]
    answers: Option<Number<'a>>,
    #[serde(borrow)]
    replaces: Option<Number<'a>>,
    #[serde(borrow)]
    task: Option<Task<'a>>,
    #[serde(default, borrow)]
    waits_for: Vec<Number<'a>>,
    #[serde(default)]
    evidence: Vec<Evidence>,
    #[serde(default)]
    violations: Vec<IgnoredAny>,
    attempt: u32,
    not_before: Option<Moment>,
    acknowledge_by: Option<Moment>,
    lease: Option<Lease>,
    #[serde(default)]
    usage: Vec<Usage>,
    #[serde(borrow)]
    transitions: Vec<Transition<'a>>,
}

#[derive(Deserialize)]
struct Contract<'a> {
    #[serde(borrow)]
    file: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Task<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Evidence {
    result: Verdict,
}

#[derive(Deserialize)]
struct Lease {
    seconds: Option<u64>,
    expires_at: Option<Moment>,
}

#[derive(Deserialize)]
struct Transition<'a> {
    at: Moment,
    #[serde(borrow)]
    by: Cow<'a, str>,
    event: Option<Event>,
    to: State,
    #[serde(borrow)]
    receiver: Option<Text<'a>>,
    ran_out_at: Option<Moment>,
    #[serde(borrow)]
    failure: Option<Failure<'a>>,
    #[serde(borrow)]
    reason: Option<Text<'a>>,
    #[serde(default, borrow)]
    questions: Vec<Question<'a>>,
    #[serde(default)]
    values: Map<String, Value>,
    traceparent: Option<TraceParent>,
}

#[derive(Deserialize)]
struct Failure<'a> {
    #[serde(borrow)]
    code: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Question<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
}

/// An invalid agent's name.
fn invalid(error: IdError) -> StoredError {
    StoredError::Form(Error::custom(error))
}

/// Reads `issue.json`, without the handoffs; with the issue's key. Nobody is told any more how an
/// archived issue ended.
pub(super) fn issue(
    bytes: &[u8],
    is_archived: bool,
    names: &mut Names<'_>,
) -> Result<(IssueKey, Packed), StoredError> {
    let mut issue: Issue<'_> = serde_json::from_slice(bytes).map_err(StoredError::Form)?;
    check(issue.version)?;
    if is_archived {
        issue.to_tell.clear();
    }
    let mut packed = Packed::default();
    packed.text(&issue.title);
    packed.agent(names, &issue.protocol).map_err(invalid)?;
    packed.status(issue.status);
    packed.time(issue.opened_at);
    packed.time(issue.counts_since());
    packed.time(issue.updated_at);
    packed.byte(u8::from(issue.completed_at.is_some()));
    if let Some(at) = issue.completed_at {
        packed.time(at);
    }
    packed.byte(u8::from(issue.paused.is_some()));
    if let Some(paused) = &issue.paused {
        packed.time(paused.at);
        packed.agent(names, &paused.by).map_err(invalid)?;
        packed.text(&paused.reason);
        packed.count(paused.except.len());
        for Text(agent) in &paused.except {
            packed.agent(names, agent).map_err(invalid)?;
        }
    }
    packed.number(issue.steps);
    packed.number(u32::try_from(issue.reopened.len()).unwrap_or(u32::MAX));
    packed.number(issue.reopened.last().map_or(0, |again| again.handoffs));
    packed.count(
        issue
            .counted
            .iter()
            .map(|counted| counted.rounds.len())
            .sum(),
    );
    for counted in &issue.counted {
        for Text(name) in &counted.rounds {
            packed.word(names, name);
            packed.number(counted.number);
        }
    }
    packed.ids(&issue.unfollowed);
    for all in [&issue.awaiting, &issue.to_tell] {
        let pairs = all
            .iter()
            .filter_map(|one| Some((one.id.number()?, &*one.agent)));
        let pairs: Vec<(u32, &str)> = pairs.collect();
        packed.count(pairs.len());
        for (number, agent) in pairs {
            packed.number(number);
            packed.agent(names, agent).map_err(invalid)?;
        }
    }
    let decision = |one: &Decision<'_>| Some((one.at, one.id.number()?, one.action));
    let decisions: Vec<(Moment, u32, Action)> =
        issue.decisions.iter().filter_map(decision).collect();
    packed.count(decisions.len());
    for (at, number, action) in decisions {
        packed.time(at);
        packed.number(number);
        packed.action(action);
    }
    packed.count(issue.findings.len());
    let unsettled = |finding: &&Finding| !finding.state.is_settled();
    packed.count(issue.findings.iter().filter(unsettled).count());
    packed.count(issue.spent.len());
    for (agent, spent) in &issue.spent {
        packed.agent(names, agent.as_str()).map_err(invalid)?;
        packed.spent(names, &spent.ended);
        packed.count(spent.held.len());
        for (id, so_far) in &spent.held {
            packed.number(id.number());
            packed.spent(names, so_far);
        }
    }
    packed.is_active = issue.status == IssueStatus::Open
        || !issue.awaiting.is_empty()
        || !issue.to_tell.is_empty();
    Ok((issue.issue, packed))
}

/// Reads `NNNN.json`; with the handoff's number.
pub(super) fn handoff(bytes: &[u8], names: &mut Names<'_>) -> Result<(u32, Packed), StoredError> {
    let record: Record<'_> = serde_json::from_slice(bytes).map_err(StoredError::Form)?;
    check(record.version)?;
    let number = record.id.number();
    let number = number.ok_or_else(|| StoredError::Form(Error::custom("its id is none")))?;
    let packed = record.packed(number, names).map_err(invalid)?;
    Ok((number, packed))
}

impl Record<'_> {
    /// The receiver that it was sent to, which the name of the contract's file contains, if that is
    /// not its receiver now.
    fn other_receiver(&self, number: u32) -> Option<&str> {
        let (stem, _) = self.contract.file.rsplit_once('.')?;
        let rest = stem.strip_prefix(&format!("{number:04}-"))?;
        let rest = rest.strip_prefix(&*self.from)?;
        let name = rest.strip_prefix("-to-")?;
        (name != self.to && name.parse::<AgentName>().is_ok()).then_some(name)
    }

    fn packed(&self, number: u32, names: &mut Names<'_>) -> Result<Packed, IdError> {
        let contradicted = |e: &&Evidence| e.result == Verdict::Contradicted;
        let contradicted = self.evidence.iter().filter(contradicted).count();
        let faults = (contradicted, self.violations.len());
        let other_receiver = self.other_receiver(number);
        // At most one of them is stored.
        let expires_at = match &self.lease {
            Some(lease) => lease.expires_at,
            None => self.acknowledge_by,
        };
        let lease = self.lease.as_ref().and_then(|lease| lease.seconds);
        let numbers = [
            (has::FOLLOWS, &self.follows),
            (has::ANSWERS, &self.answers),
            (has::REPLACES, &self.replaces),
        ];
        let numbers = numbers.map(|(what, id)| (what, id.as_ref().and_then(Number::number)));
        let words = [(has::PRIORITY, &self.priority), (has::STATUS, &self.status)];
        let times = [
            (has::NOT_BEFORE, self.not_before),
            (has::EXPIRES_AT, expires_at),
        ];
        let mut more = 0;
        let mut note = |what: u64, is_there: bool| more |= if is_there { what } else { 0 };
        note(has::OTHER_RECEIVER, other_receiver.is_some());
        note(has::INTENDED, self.intended.is_some());
        let are_there = words.iter().map(|(what, word)| (*what, word.is_some()));
        let are_there = are_there.chain(numbers.iter().map(|(what, id)| (*what, id.is_some())));
        are_there.for_each(|(what, is_there)| note(what, is_there));
        note(has::TASK, self.task.is_some());
        note(has::WAITS_FOR, !self.waits_for.is_empty());
        times
            .iter()
            .for_each(|(what, at)| note(*what, at.is_some()));
        note(has::LEASE, lease.is_some());
        note(has::FAULTS, faults != (0, 0));
        note(has::ATTEMPTS, self.attempt != 1);
        note(has::USAGE, !self.usage.is_empty());

        let ended = self.transitions.last().map(|last| last.to.is_terminal());
        let mut packed = Packed::default();
        packed.is_active = !self.state.is_terminal() || ended != Some(true);
        packed.number(more);
        packed.number(number);
        packed.state(self.state);
        packed.word(names, &self.contract_type);
        packed.agent(names, &self.from)?;
        packed.agent(names, &self.to)?;
        packed.text(&self.summary);
        packed.count(self.transitions.len());
        for transition in &self.transitions {
            transition.pack(&mut packed, names)?;
        }
        let intended = self.intended.as_ref().map(|Text(name)| &**name);
        for name in [other_receiver, intended].into_iter().flatten() {
            packed.agent(names, name)?;
        }
        for Text(word) in words.into_iter().filter_map(|(_, word)| word.as_ref()) {
            packed.word(names, word);
        }
        for number in numbers.into_iter().filter_map(|(_, number)| number) {
            packed.number(number);
        }
        self.task.iter().for_each(|task| packed.text(&task.id));
        if !self.waits_for.is_empty() {
            packed.ids(&self.waits_for);
        }
        for at in times.into_iter().filter_map(|(_, at)| at) {
            packed.time(at);
        }
        if let Some(seconds) = lease {
            packed.number(seconds);
        }
        if faults != (0, 0) {
            packed.count(faults.0);
            packed.count(faults.1);
        }
        if self.attempt != 1 {
            packed.number(self.attempt);
        }
        self.pack_usage(&mut packed, names)?;
        Ok(packed)
    }
}

impl Record<'_> {
    fn pack_usage(&self, packed: &mut Packed, names: &mut Names<'_>) -> Result<(), IdError> {
        if self.usage.is_empty() {
            return Ok(());
        }
        packed.count(self.usage.iter().map(|usage| usage.models.len()).sum());
        for usage in &self.usage {
            for model in &usage.models {
                packed.time(usage.at);
                packed.agent(names, usage.by.as_str())?;
                packed.number(usage.token);
                packed.word(names, model.provider.as_deref().unwrap_or_default());
                packed.word(names, model.model.as_deref().unwrap_or_default());
                packed.spent(names, &Spent::of(std::slice::from_ref(model)));
            }
        }
        Ok(())
    }
}

impl Packed {
    /// A sum of what work took.
    fn spent(&mut self, names: &mut Names<'_>, spent: &Spent) {
        for number in [
            spent.attempts,
            spent.seconds,
            spent.input_tokens,
            spent.output_tokens,
            spent.cached_tokens,
            spent.turns,
        ] {
            self.number(number);
        }
        self.count(spent.cost.len());
        for (currency, cost) in &spent.cost {
            self.word(names, currency.as_str());
            self.number(cost.billionths());
        }
    }

    /// The numbers of handoffs.
    fn ids(&mut self, ids: &[Number<'_>]) {
        let numbers: Vec<u32> = ids.iter().filter_map(Number::number).collect();
        self.count(numbers.len());
        numbers.iter().for_each(|number| self.number(*number));
    }
}

impl Transition<'_> {
    /// The failure, the question or the reason, in one line.
    fn reason(&self) -> Option<Cow<'_, str>> {
        let asked = || {
            let question = self.questions.first()?;
            let description = question.description.as_ref();
            Some(description.map_or(&question.key, |Text(text)| text))
        };
        let message = self.failure.as_ref().map(|failure| &failure.message);
        let why = message.or(self.reason.as_ref().map(|Text(text)| text));
        let why = why.or_else(asked).map(|why| Cow::Borrowed(&**why));
        why.or_else(|| answer_text(&self.values).map(Cow::Owned))
            .and_then(first_line)
    }

    fn pack(&self, packed: &mut Packed, names: &mut Names<'_>) -> Result<(), IdError> {
        let reason = self.reason();
        let mut more = 0;
        let mut note = |what: u8, is_there: bool| more |= if is_there { what } else { 0 };
        note(tells::RECEIVER, self.receiver.is_some());
        note(tells::FAILURE, self.failure.is_some());
        note(tells::REASON, reason.is_some());
        note(tells::RAN_OUT, self.ran_out_at.is_some());
        note(tells::TRACE, self.traceparent.is_some());
        packed.change(self.event, self.to, more != 0);
        packed.time(self.at);
        packed.agent(names, &self.by)?;
        if more != 0 {
            packed.byte(more);
        }
        if let Some(Text(receiver)) = &self.receiver {
            packed.agent(names, receiver)?;
        }
        if let Some(failure) = &self.failure {
            packed.word(names, &failure.code);
        }
        if let Some(reason) = &reason {
            packed.text(reason);
        }
        if let Some(at) = self.ran_out_at {
            packed.time(at);
        }
        if let Some(trace) = self.traceparent {
            packed.trace(trace);
        }
        Ok(())
    }
}

fn check(version: u32) -> Result<(), StoredError> {
    match version {
        VERSION => Ok(()),
        version => Err(StoredError::Version { version }),
    }
}
