//! Everything an agent needs to start on a handoff.

use handoff_base::ids::{AgentName, HandoffId};
use handoff_contract::Format;
use handoff_git::Repository;
use handoff_model::spending::{SpentSoFar, day, left};
use handoff_model::{
    Annotation, AnswerGiven, Artifact, Decision, Issue, KnownFact, Left, Record, Refusal,
    ReviewFinding, Task, Told, View,
};
use handoff_protocol::{AgentKind, CHANGED_BY, Protocol};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::base_branch::base_branch;
use super::error::LedgerError;
use super::external_reviews::Said;
use super::failure::{PastFailure, past_work_in_full};
use super::protocol_store::documents;
use super::snapshot::{IssueFolder, Rules, Snapshot};

/// A contract as it was sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ContractText {
    /// Its text; bytes that are not UTF-8 are replaced, `show --contract` has them.
    pub text: String,
}

/// The work that an agent decided on before it sent a handoff.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DecidedOn {
    /// The handoff that brought it.
    pub id: HandoffId,
    /// The agent that did it.
    pub agent: AgentName,
    /// The location of that agent's session.
    pub session: Option<String>,
    /// The format of its contract.
    pub format: Format,
    /// Its contract.
    pub text: String,
}

/// The rejection of an earlier handoff.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Rejection {
    /// The handoff.
    pub id: HandoffId,
    /// The agent that rejected it.
    pub by: AgentName,
    /// Why.
    pub why: Option<String>,
}

impl Rejection {
    /// The rejection of the last handoff of the same type before this one, among the three before it.
    fn before(folder: &IssueFolder<'_>, record: &Record) -> Result<Option<Self>, LedgerError> {
        let number = record.id.number();
        for earlier in (number.saturating_sub(3).max(1)..number).rev() {
            let earlier = folder.shared_record(earlier)?;
            let same = earlier.filter(|one| one.contract_type == record.contract_type);
            if let Some(earlier) = same {
                return Ok(earlier.rejection().map(|rejection| Self {
                    id: earlier.id.clone(),
                    by: rejection.by.clone(),
                    why: rejection.reason.clone(),
                }));
            }
        }
        Ok(None)
    }
}

/// What the work on an issue needs, whatever contract hands it over.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkBrief {
    /// The issue's title.
    #[serde(skip)]
    pub title: String,
    /// The summary of the contract that opened the issue, for a later handoff.
    pub opening: Option<String>,
    /// The facts that the protocol's `briefing` names, in its order: what is required, the
    /// workspace.
    pub facts: Map<String, Value>,
    /// The sources of the facts; those without an entry come from contracts.
    pub sources: Vec<Told>,
    /// The names of those facts that an event changed after the handoff was sent.
    pub changed: Vec<String>,
    /// Who changed them, if the event says so.
    pub changed_by: Map<String, Value>,
    /// The findings of reviews that are open, answered or disputed.
    pub findings: Vec<ReviewFinding>,
    /// What is asked for outside the ledger: reviews that request changes, checks that failed.
    pub asked: Vec<Said>,
    /// The rejection of the handoff that this one replaces, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Rejection>,
    /// What blocked agents of the issue were answered, the oldest first.
    pub answers: Vec<AnswerGiven>,
    /// What was decided about the issue's handoffs, the oldest first.
    pub decisions: Vec<Decision>,
    /// The code branch, if one is known.
    pub branch: Option<WorkBranch>,
    /// The branch that the work is merged into, and starts from: the noted one, else the default
    /// branch; null if neither is known here.
    pub base: Option<String>,
}

/// The code branch of an issue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkBranch {
    /// Its name.
    pub name: String,
    /// Its commit in this clone; null if the branch is not here.
    pub commit: Option<String>,
    /// Its commit when the handoff was sent, if it was known.
    pub sent: Option<String>,
    /// Whether it only lacks commits here: that commit follows on the one here.
    #[serde(skip)]
    pub behind: bool,
    /// Whether this clone has it itself, not only `origin`'s.
    #[serde(skip)]
    pub is_local: bool,
}

/// Whether a commit that was sent is here, and follows on another one.
fn is_behind(repository: &Repository, here: Option<&str>, sent: Option<&str>) -> bool {
    let parsed = here.zip(sent).filter(|(here, sent)| here != sent);
    let parsed = parsed.and_then(|(here, sent)| here.parse().ok().zip(sent.parse().ok()));
    parsed.is_some_and(|(here, sent)| matches!(repository.is_in_history(here, sent), Ok(true)))
}

impl WorkBrief {
    /// A fact's name in words, with whether an event changed it after the handoff was sent.
    pub fn told(&self, name: &str) -> String {
        let words = name.replace('_', " ");
        if !self.changed.iter().any(|changed| changed == name) {
            return Told::beside(&self.sources, name, &words);
        }
        // Only events change facts like this; their author matters more than the agent that noted
        // them.
        match self.changed_by.get(name).and_then(Value::as_str) {
            Some(by) => format!("{words} (changed by {by} since this was sent)"),
            None => {
                let words = format!("{words}, changed since this was sent");
                Told::beside(&self.sources, name, &words)
            }
        }
    }

    /// What the work on a handoff of this issue needs.
    ///
    /// # Errors
    /// [`LedgerError`] if an earlier record can't be read.
    pub fn of(
        folder: &IssueFolder<'_>,
        protocol: &Protocol,
        issue: &Issue,
        record: &Record,
    ) -> Result<Self, LedgerError> {
        let repository = folder.repository();
        let named = protocol.definition().facts.briefing.iter();
        let definition = protocol.definition();
        let known: Vec<(&String, KnownFact<'_>)> = named
            .filter_map(|name| Some((name, issue.fact(definition, name)?)))
            .collect();
        let facts = known.iter().map(|(name, fact)| (name.as_str(), *fact));
        let sources = Told::of(facts, definition);
        let is_new = |fact: &KnownFact<'_>| {
            let note = fact.note.filter(|note| note.event.is_some());
            note.is_some_and(|note| record.sent_at().is_some_and(|sent| note.at > sent))
        };
        let new = known.iter().filter(|(_, fact)| is_new(fact));
        let changed = new.clone().map(|(name, _)| (*name).clone()).collect();
        let changed_by = new.filter_map(|(name, fact)| {
            let by = fact.note?.facts.get(CHANGED_BY)?;
            Some(((*name).clone(), by.clone()))
        });
        let changed_by = changed_by.collect();
        let stated = issue.facts.get("branch").and_then(Value::as_str);
        let code = record.code.as_ref();
        let branch = stated.or(code.map(|code| code.branch.as_str()));
        let branch = branch.map(|name| {
            let name = name.trim_start_matches("refs/heads/");
            let sent = code.filter(|code| code.branch == name);
            let sent = sent.map(|code| code.commit.clone());
            let here = repository.code(name).map(|here| here.commit);
            WorkBranch {
                name: name.to_owned(),
                behind: is_behind(repository, here.as_deref(), sent.as_deref()),
                commit: here,
                sent,
                is_local: repository.local_branch(name).is_some(),
            }
        });
        let named = branch.as_ref().map(|branch| branch.name.as_str());
        let base = base_branch(repository, Some((issue, definition)), named, None);
        Ok(Self {
            base,
            title: issue.title.clone(),
            opening: opening(folder, protocol, issue, record)?,
            facts: known
                .into_iter()
                .map(|(name, fact)| (name.clone(), fact.value.clone()))
                .collect(),
            sources,
            changed,
            changed_by,
            asked: Said::of(issue, protocol)
                .into_iter()
                .filter(|said| said.asks)
                .collect(),
            findings: issue.unsettled().cloned().collect(),
            answers: issue.answers.clone(),
            decisions: issue.decisions.clone(),
            rejected: Rejection::before(folder, record)?,
            branch,
        })
    }
}

/// Everything an agent gets with a claimed handoff.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Briefing {
    /// What the work needs.
    pub work: WorkBrief,
    /// Its contract.
    pub contract: ContractText,
    /// The work that its sender decided on, if the sender decides about the work of others.
    pub decided_on: Option<DecidedOn>,
    /// The facts that the issue's contracts stated, other than those of `work`.
    pub facts: Map<String, Value>,
    /// The files that the handoffs from which this one follows delivered, and its own contract does
    /// not.
    pub artifacts: Vec<Artifact>,
    /// The state of the issue's tasks.
    pub tasks: Vec<Task>,
    /// Corrections to the issue's contracts and records.
    pub annotations: Vec<Annotation>,
    /// What the protocol's budgets leave for this work.
    pub budget: Vec<Left>,
    /// The limits of rounds and handoffs that are nearly reached, in words.
    pub limits: Vec<String>,
    /// The failures of earlier attempts, the oldest first.
    pub failures: Vec<PastFailure>,
    /// The documents that the protocol's issues share.
    pub documents: Map<String, Value>,
}

/// The maximum number of previous handoffs whose artifacts are collected.
const FAR: usize = 100;

/// The summary with which an issue was opened, if a later handoff's reader learns more from it than
/// from the title.
fn opening(
    folder: &IssueFolder<'_>,
    protocol: &Protocol,
    issue: &Issue,
    record: &Record,
) -> Result<Option<String>, LedgerError> {
    let number = record.id.number();
    let first = (number > 1).then(|| folder.record(1)).transpose()?;
    let says_more = |first: &Record| {
        let kind = protocol.contract_type(&first.contract_type);
        first.summary != issue.title && kind.is_none_or(|kind| kind.title != first.summary)
    };
    let first = first.flatten().filter(says_more);
    Ok(first.map(|first| first.summary))
}

/// Collects the briefing for a handoff.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn briefing(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    record: &Record,
) -> Result<Briefing, LedgerError> {
    let text = |record: &Record| -> Result<String, LedgerError> {
        Ok(String::from_utf8_lossy(&folder.contract(record)?).into_owned())
    };
    let rules = tip.rules(record.protocol.as_str())?;
    let decides = rules
        .protocol()
        .is_kind(record.from.as_str(), AgentKind::Orchestrator);
    let basis = match record.follows.as_ref().filter(|_| decides) {
        Some(id) => folder.record(id.number())?.filter(|b| b.to == record.from),
        None => None,
    };
    let decided_on = match basis {
        Some(basis) => Some(DecidedOn {
            text: text(&basis)?,
            id: basis.id,
            agent: basis.from,
            session: basis.session,
            format: basis.contract.format,
        }),
        None => None,
    };
    let mut artifacts: Vec<Artifact> = Vec::new();
    let mut follows = record.follows.clone();
    for _ in 0..FAR {
        let Some(id) = follows else { break };
        let Some(earlier) = folder.record(id.number())? else {
            break;
        };
        for artifact in earlier.artifacts {
            let mut known = record.artifacts.iter().chain(&artifacts);
            if !known.any(|known| known.path == artifact.path) {
                artifacts.push(artifact);
            }
        }
        follows = earlier.follows;
    }
    let issue = folder.issue()?;
    let issue = issue.ok_or_else(|| Refusal::no_issue(folder.key()))?;
    let shared = documents(tip, &rules)?.into_iter();
    let budget = budget_left(&rules, folder, &issue, record)?;
    let limits = issue.near_limits(rules.protocol());
    let work = WorkBrief::of(folder, rules.protocol(), &issue, record)?;
    let mut facts = issue.facts;
    facts.retain(|name, _| !work.facts.contains_key(name));
    Ok(Briefing {
        budget,
        limits,
        work,
        contract: ContractText {
            text: text(record)?,
        },
        decided_on,
        facts,
        artifacts,
        failures: past_work_in_full(tip.repository(), folder, record)?,
        annotations: issue.annotations,
        tasks: issue.tasks,
        documents: shared
            .map(|(name, value)| (name.to_string(), value))
            .collect(),
    })
}

/// The rest of the budgets for a claim, on the day on which it began.
fn budget_left(
    rules: &Rules<'_>,
    folder: &IssueFolder<'_>,
    issue: &Issue,
    record: &Record,
) -> Result<Vec<Left>, LedgerError> {
    let definition = rules.protocol().definition();
    let since = record.lease.as_ref().map(|lease| lease.since);
    let Some(since) = since.or(record.latest().map(|latest| latest.at)) else {
        return Ok(Vec::new());
    };
    if definition.budgets().is_empty() {
        return Ok(Vec::new());
    }
    let spent = folder.spent_on(&day(since))?.unwrap_or_default();
    let so_far = SpentSoFar {
        issue: &issue.spent,
        day: spent.protocols.get(&definition.name),
    };
    Ok(left(definition, (&record.to, &record.id), so_far))
}
