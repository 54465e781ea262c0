//! The page for the start of a session: an agent's role, its open handoffs, its next contract, and
//! the commands for it.
//! This module collects the `facts` from the ledger's tip, after asking the remote; `text` writes
//! them to a `page` of a limited number of tokens. `session_hook` answers the hooks of harnesses
//! with it.

mod facts;
mod page;
pub mod session_hook;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use facts::{Contract, Facts};
use handoff::base::Moment;
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::git::Repository;
use handoff::ledger::attention::{Attention, NextTurn, another_attempt};
use handoff::ledger::{
    Bucket, Kept, Ledger, MergeLeft, Overview, OverviewLimits, Rules, Snapshot, UnpushedCode,
    WorkBrief, merge_left_here, merges_left, overview, past_work, restored_here,
};
use handoff::model::view::{News, news};
use handoff::model::{Claimable, Handoff, Question, Record, Refusal, View};
use handoff::protocol::{AgentKind, Protocol, State};
use handoff::templates::Known;
use page::Cut;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use handoff_cli::context::Context;
use handoff_cli::context::fresh::{Fresh, Reading};
use handoff_cli::context::worker::holder;
use handoff_cli::contracts::onward::{NextContract, Onward, only_notes};
use handoff_cli::contracts::skeleton::{Skeleton, before_work};
use handoff_cli::environment::now;
use handoff_cli::failure::Failure;
use handoff_cli::output::{Answer, Output};
use handoff_cli::render::in_force;
use handoff_cli::view::Look;

/// Limits on reading at the start of a session, for speed.
const LOOK: OverviewLimits<'_> = OverviewLimits {
    records: 400,
    each: 8,
    after: None,
};

/// How many handoffs of a bucket are shown; the others only by id.
const SHOWN: usize = 3;

/// The page for an agent.
#[derive(Serialize, JsonSchema)]
pub struct Prime {
    /// the acting agent, by its name in the protocol
    agent: AgentName,
    /// the protocol of the work it holds or could claim next, else the first that lists it
    protocol: String,
    /// its role there
    role: Option<String>,
    /// its kind there
    kind: Option<AgentKind>,
    /// the other protocols that list it
    elsewhere: Vec<String>,
    /// what it works on, as this worker
    holds: BucketView,
    /// what other workers of the agent work on
    held_by_others: BucketView,
    /// what it can claim
    waits: BucketView,
    /// what it can't claim or go on with yet
    later: BucketView,
    /// its own work that needs attention
    stuck: BucketView,
    /// work of others that it must decide on
    to_decide: BucketView,
    /// everything that it is told of, the most urgent first
    attention: Vec<Attention>,
    /// what the work that it holds needs; null if it holds none
    work: Option<WorkBrief>,
    /// how many steps made here offline were refused and are kept, until they are retried or dropped
    rejected: usize,
    /// how many open handoffs were not read, because reading all would take too long
    unread: usize,
    /// the next contract
    contract: Option<ContractView>,
    /// what it could send instead
    others: Vec<NextContract>,
    /// its next steps, for a shell
    commands: Vec<String>,
    /// what did not fit into `text`
    cut: Vec<Cut>,
    /// whether the remote was asked first; null if the ledger has no remote
    pub fresh: Option<Fresh>,
    /// what is printed without `--json`
    pub text: String,
}

impl Answer for Prime {
    fn text(&self, _: &Look) -> String {
        self.text.clone()
    }
}

/// Handoffs of one kind.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Bucket")]
struct BucketView {
    /// how many there are
    count: usize,
    /// the first three, in brief
    first: Vec<BriefView>,
}

/// A handoff in brief.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BriefHandoff")]
struct BriefView {
    #[serde(flatten)]
    handoff: Handoff,
    /// whether its claim was made here offline, and the remote does not have it yet
    unpublished: bool,
    /// whether its issue is paused: what is handed on waits
    paused: bool,
    /// why it is in its state, if it failed or is blocked or dead
    reason: Option<String>,
    /// the questions to answer, if it is blocked
    questions: Vec<Question>,
}

impl BriefView {
    fn new(record: &Record, unpublished: &[(HandoffId, String)], now: Moment) -> Self {
        let is_blocked = record.state == State::Blocked;
        let questions = record.questions().iter().filter(|_| is_blocked);
        Self {
            handoff: Handoff::new(record, now),
            questions: questions.cloned().collect(),
            reason: record.reason().map(str::to_owned),
            paused: false,
            unpublished: unpublished.iter().any(|(id, _)| *id == record.id),
        }
    }
}

/// The next contract.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PrimedContract")]
struct ContractView {
    /// its receiver
    to: AgentName,
    /// the title of its type
    title: String,
    #[serde(flatten)]
    skeleton: Skeleton,
    /// whether values in it were cut
    shortened: bool,
}

impl From<Contract> for ContractView {
    fn from(contract: Contract) -> Self {
        Self {
            to: contract.next.to,
            title: contract.next.title,
            skeleton: contract.skeleton,
            shortened: contract.shortened,
        }
    }
}

/// Makes the page for an agent.
///
/// # Errors
/// A [`Failure`] if there is no ledger, or the agent is not set or unknown.
pub fn prime(context: &Context, offline: bool, output: &mut Output) -> Result<Prime, Failure> {
    let repository = context.repository()?;
    let agent = context.acting_agent(&repository);
    // Without an agent, the remote is not needed.
    let offline = offline || agent.is_err();
    let Reading { ledger, tip, fresh } = context.fresh(&repository, offline, output)?;
    let agent = agent?;
    let (knowing, agent) = protocols_of(&tip, agent)?;
    let protocols: Vec<&Protocol> = knowing.iter().map(Rules::protocol).collect();
    let now = now()?;
    let worker = context.worker(&repository)?;
    let who = holder(&agent, worker.as_ref());
    let mut overview = overview(&tip, who, &protocols, now, LOOK)?;
    output.complete(&mut overview.attention);
    let paused = tip.paused_among(overview.held.first.iter().map(|held| held.id.issue()))?;
    let unpublished = unpublished(&ledger, &overview)?;
    let again = again((&tip, &protocols), &overview, now)?;
    // A contract sent after the lease expired is refused. No lease expires while its issue is
    // paused.
    let is_paused = |record: &Record| paused.contains_key(record.id.issue());
    let held = overview.held.first.iter();
    let mut held = held.filter(|r| is_paused(r) || !r.is_expired(now));
    let work = held.next().or(overview.waiting.first.first());
    let unclaimable = [
        &overview.held,
        &overview.held_by_others,
        &overview.stuck,
        &overview.later,
        &overview.to_decide,
    ];
    let about = work
        .or(unclaimable.iter().find_map(|bucket| bucket.first.first()))
        .cloned();
    let rules = knowing
        .iter()
        .find(|rules| Some(rules.protocol().name()) == about.as_ref().map(|r| r.protocol.as_str()))
        .or(knowing.first());
    let rules = rules.ok_or_else(|| Claimable::default().refusal(&agent))?;
    let carried = context.carried_at(&repository, &tip);
    let onward = Onward {
        repository: &repository,
        tip: &tip,
        rules,
        several: tip.protocols()?.len() > 1,
        holds_several: overview.held.count > 1,
        carried: &carried,
        now,
    };
    let mut others = onward.contracts(&agent, work)?;
    let of_screen = onward.carried_with(&others);
    let contract = if others.is_empty() || work.is_some_and(|work| only_notes(rules, work)) {
        None
    } else {
        Some(written(&onward, others.remove(0), &agent, work)?)
    };
    let facts = Facts {
        unpushed: unpushed(&ledger, &tip)?,
        left: left(&tip, about.as_ref(), (&agent, rules.protocol()))?,
        party: rules.protocol().agent(agent.as_str()),
        protocol: rules.protocol(),
        policy: in_force(&tip, rules.protocol().name())?,
        elsewhere: { protocols.iter().copied() }
            .filter(|p| p.name() != rules.protocol().name())
            .collect(),
        brief: brief(&onward, work)?,
        at_limit: at_limit(&onward, work)?,
        news: unseen(&tip, work)?,
        restorable: restorable(&repository, &overview),
        restored: restored_here(&repository),
        work: work.cloned(),
        carried: of_screen,
        agent,
        overview,
        unpublished,
        again,
        paused,
        halts: tip.manifest().paused.clone(),
        rejected: ledger.rejected()?.len(),
        contract,
        others,
        now,
        fresh,
    };
    Ok(facts.finish())
}

/// The code that was handed on, and is only here: whoever goes on can't get it.
fn unpushed(ledger: &Ledger<'_>, tip: &Snapshot<'_>) -> Result<Vec<UnpushedCode>, Failure> {
    let mut found = ledger.unpushed_code(tip)?;
    found.retain(|code| code.was_handed_on);
    Ok(found)
}

/// The unfinished work that was kept of the listed handoffs; what can't be read is left to `restore`
/// to report.
fn restorable(repository: &Repository, overview: &Overview) -> BTreeSet<(HandoffId, String)> {
    let buckets = [
        &overview.held,
        &overview.waiting,
        &overview.stuck,
        &overview.to_decide,
    ];
    let mut found = BTreeSet::new();
    for record in buckets
        .into_iter()
        .flat_map(|bucket: &Bucket| &bucket.first)
    {
        let contexts = past_work(record)
            .into_iter()
            .filter_map(|past| past.context);
        for context in contexts {
            let kept = Kept::open(repository, &record.id, &context);
            if let Ok(Some(_)) = kept.and_then(|kept| kept.manifest()) {
                found.insert((record.id.clone(), context.folder));
            }
        }
    }
    found
}

/// The completed issue whose merge is left, if nothing waits for the agent: the one whose branch is
/// checked out, else one that the agent approved, or for a person any.
fn left(
    tip: &Snapshot<'_>,
    about: Option<&Record>,
    (agent, protocol): (&AgentName, &Protocol),
) -> Result<Option<IssueKey>, Failure> {
    if about.is_some() {
        return Ok(None);
    }
    let is_own = |left: &MergeLeft| left.by == *agent || protocol.is_person(agent.as_str());
    let left = match merge_left_here(tip)? {
        None => merges_left(tip)?.into_iter().find(is_own),
        here => here,
    };
    Ok(left.map(|left| left.issue))
}

/// The handoffs that an agent claimed here offline, each with the remote that lacks the claim.
fn unpublished(
    ledger: &Ledger<'_>,
    overview: &Overview,
) -> Result<Vec<(HandoffId, String)>, Failure> {
    let mut unpublished = Vec::new();
    for record in &overview.held.first {
        let remote = ledger.lacks_claim(record)?;
        unpublished.extend(remote.map(|remote| (record.id.clone(), remote)));
    }
    Ok(unpublished)
}

/// The commands by which an agent goes on with its handoffs whose time ran out.
fn again(
    (tip, protocols): (&Snapshot<'_>, &[&Protocol]),
    overview: &Overview,
    now: Moment,
) -> Result<BTreeMap<HandoffId, String>, Failure> {
    let mut again = BTreeMap::new();
    for record in overview.held.first.iter().chain(&overview.stuck.first) {
        let command = another_attempt(tip, protocols, record, now)?;
        again.extend(command.map(|command| (record.id.clone(), command)));
    }
    Ok(again)
}

/// The message for an agent that is about to stop while it holds handoffs or something needs it;
/// `None` otherwise.
///
/// # Errors
/// A [`Failure`] if there is no ledger, or the agent is not set or unknown.
pub fn held(context: &Context, output: &mut Output) -> Result<Option<String>, Failure> {
    let repository = context.repository()?;
    let agent = context.acting_agent(&repository);
    let Reading { tip, .. } = context.fresh(&repository, agent.is_err(), output)?;
    let agent = agent?;
    let (knowing, agent) = protocols_of(&tip, agent)?;
    let protocols: Vec<&Protocol> = knowing.iter().map(Rules::protocol).collect();
    let now = now()?;
    let worker = context.worker(&repository)?;
    let who = holder(&agent, worker.as_ref());
    // All held handoffs are needed, however long this takes.
    let overview = overview(&tip, who, &protocols, now, OverviewLimits::ALL)?;
    let held: Vec<&Record> = overview
        .held
        .first
        .iter()
        .filter(|record| !record.is_expired(now))
        .collect();
    let text = text::still_held(&agent, &held, &overview.attention);
    Ok(text.map(|text| output.sentence(text).to_string()))
}

/// The protocols in force that list an agent, and the agent's name in the first.
fn protocols_of<'r>(
    tip: &Snapshot<'r>,
    agent: AgentName,
) -> Result<(Vec<Rules<'r>>, AgentName), Failure> {
    let mut all = Vec::new();
    for name in tip.protocols()? {
        all.push(tip.rules(&name)?);
    }
    let first = all
        .first()
        .map(|rules| Refusal::unknown_agent(&agent, rules.protocol()));
    all.retain(|rules| rules.protocol().agent(agent.as_str()).is_some());
    let known = all
        .first()
        .and_then(|rules| rules.protocol().agent(agent.as_str()));
    match (known, first) {
        (Some(known), _) => {
            let name = known.id.clone();
            Ok((all, name))
        }
        (None, Some(refusal)) => Err(refusal.into()),
        (None, None) => Ok((all, agent)),
    }
}

/// What others said about the work that an agent holds since it was claimed.
fn unseen(tip: &Snapshot<'_>, work: Option<&Record>) -> Result<Vec<News>, Failure> {
    let Some(held) = work.filter(|work| work.lease.is_some()) else {
        return Ok(Vec::new());
    };
    let folder = tip.issue(held.id.issue())?;
    let issue = folder.shared_issue()?;
    let found = issue.map(|issue| news(&folder, &issue, held, None));
    Ok(found.transpose()?.unwrap_or_default())
}

/// The requirements of the work that an agent holds.
fn brief(onward: &Onward<'_, '_>, work: Option<&Record>) -> Result<Option<WorkBrief>, Failure> {
    let Some(held) = work.filter(|work| work.state == State::InProgress) else {
        return Ok(None);
    };
    let folder = onward.tip.issue(held.id.issue())?;
    let protocol = onward.rules.protocol();
    let issue = folder.issue()?;
    let brief = issue.map(|issue| WorkBrief::of(&folder, protocol, &issue, held));
    Ok(brief.transpose()?)
}

/// The limit, if one is reached, that keeps an agent from sending all that it might from its work.
fn at_limit(onward: &Onward<'_, '_>, work: Option<&Record>) -> Result<Option<String>, Failure> {
    let Some(work) = work else { return Ok(None) };
    let folder = onward.tip.issue(work.id.issue())?;
    let Some(issue) = folder.current_issue()? else {
        return Ok(None);
    };
    let of = (onward.rules.protocol(), &issue);
    let limit = NextTurn::at_limit(&folder, of, work, onward.now)?;
    Ok(limit.map(|limit| limit.why))
}

/// The skeleton of a contract, with its values shortened.
fn written(
    onward: &Onward<'_, '_>,
    next: NextContract,
    agent: &AgentName,
    work: Option<&Record>,
) -> Result<Contract, Failure> {
    let (_, known) = onward.known(&next, agent, work)?;
    let mut shortened = false;
    let brief = known.clone().map(|value| short(value, 0, &mut shortened));
    let wanted = next.wanted(agent);
    let open = |known: &Known| before_work(known, onward.rules.protocol());
    let skeleton = wanted.write(onward.rules, &open(&brief))?;
    // A value that was shortened need not occur in this contract.
    let shortened = shortened && wanted.write(onward.rules, &open(&known))?.text != skeleton.text;
    Ok(Contract {
        next,
        skeleton,
        shortened,
    })
}

/// A shortened value: text cut and on one line, lists and objects with only their first items.
fn short(value: Value, depth: usize, shortened: &mut bool) -> Value {
    const TOKENS: usize = 40;
    const ITEMS: usize = 2;
    const MEMBERS: usize = 8;
    const DEPTH: usize = 3;
    match value {
        Value::String(text) => {
            let beginning: String = text.chars().take(400).collect();
            let words: Vec<&str> = beginning.split_whitespace().collect();
            let cut = page::clip(&words.join(" "), TOKENS);
            let same = cut == text;
            *shortened |= !same;
            Value::String(if same { text } else { format!("{cut}…") })
        }
        Value::Array(items) => {
            *shortened |= items.len() > ITEMS || depth > DEPTH;
            let most = if depth > DEPTH { 0 } else { ITEMS };
            let items = items.into_iter().take(most);
            items
                .map(|item| short(item, depth + 1, shortened))
                .collect()
        }
        Value::Object(members) => {
            *shortened |= members.len() > MEMBERS || depth > DEPTH;
            let most = if depth > DEPTH { 0 } else { MEMBERS };
            let members = members.into_iter().take(most);
            members
                .map(|(name, value)| (name, short(value, depth + 1, shortened)))
                .collect()
        }
        other => other,
    }
}

impl Facts<'_> {
    fn finish(self) -> Prime {
        let (text, cut) = text::tell(&self);
        let commands = text::commands(&self);
        let bucket = |bucket: Bucket| {
            let first = bucket.first.iter().take(SHOWN);
            BucketView {
                count: bucket.count,
                first: first
                    .map(|record| BriefView {
                        paused: self.paused.contains_key(record.id.issue()),
                        ..BriefView::new(record, &self.unpublished, self.now)
                    })
                    .collect(),
            }
        };
        Prime {
            agent: self.agent,
            protocol: self.protocol.name().to_owned(),
            role: self.party.map(|party| party.role.clone()),
            kind: self.party.map(|party| party.kind),
            elsewhere: { self.elsewhere.iter() }
                .map(|p| p.name().to_owned())
                .collect(),
            holds: bucket(self.overview.held),
            held_by_others: bucket(self.overview.held_by_others),
            waits: bucket(self.overview.waiting),
            later: bucket(self.overview.later),
            stuck: bucket(self.overview.stuck),
            to_decide: bucket(self.overview.to_decide),
            attention: self.overview.attention,
            work: self.brief,
            rejected: self.rejected,
            unread: self.overview.unread,
            contract: self.contract.map(ContractView::from),
            others: self.others,
            commands,
            cut,
            fresh: self.fresh,
            text,
        }
    }
}
