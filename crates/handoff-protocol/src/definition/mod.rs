//! The stored form of a protocol: the content of `protocol.json`. `check` tests whether its parts
//! are consistent.
//!
//! It contains the types that serde reads, and methods that need only one of them.

mod alerts;
mod attention;
mod budget;
mod consistency;
mod contract_type;
mod decision;
mod evidence;
mod fact;
mod fact_source;
mod fields;
mod findings;
mod github;
mod lazy_part;
mod limits;
mod opinions;
mod place;
mod requirement;
mod route;
mod run_failure;
mod tasks;
mod timing;
mod traces;

use handoff_base::words;
use std::collections::BTreeMap;

use handoff_base::finding::FindingCode;
use handoff_base::ids::AgentName;
use handoff_macros::apply;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lifecycle::State;

pub use alerts::{Alert, Alerts, Level, Measure, Metric, Side, Threshold};
pub use attention::{LEAD, Need, PARTIES, PERSON, RECEIVER, SENDER};
pub use budget::{Budget, BudgetUnit, Per};
pub use consistency::{Comparison, ConsistencyRule};
pub use contract_type::{
    ArtifactFields, ContractType, CriticalInputs, ExpectedFields, FailureFields, ForeignFile,
    GivenFields, InputFields, NamedSchema, Outcome, Words,
};
pub use decision::{Action, Circumstances, DecisionRule};
pub use evidence::{
    Check, Claims, CommitsClaim, EvidenceRules, MergeClaim, Policy, Strategy, TestsClaim,
};
pub use fact::{Fact, FactRule, Facts};
pub use fact_source::FactSource;
pub use fields::Fields;
pub use findings::{FixFields, RaisedFields, ReviewFields};
pub use github::{
    BASE, BRANCH, CHANGED_BY, Command, Condition, ContractRule, Effect, EventKind, EventRule,
    Github, HEAD, PULL_REQUEST, PULL_REQUEST_STATE, Permission, Source, SourceRule, Take,
    Unfinished,
};
pub use lazy_part::Later;
pub use limits::{CycleLimit, ItemLimit, Limits, OnRecord, RoundLimit, Turns};
pub use opinions::Opinions;
pub use place::Place;
pub use requirement::{COMPLETED, Identity, Requirement};
pub use route::{Forbidden, Route, Routes};
pub use run_failure::{AnotherTry, RunFailure};
pub use tasks::{TaskFields, TaskState};
pub use timing::{Jitter, LONGEST, OwnRetry, Retry, TimeField, Unit};
pub use traces::{TraceEvent, TraceValue, Traces};

/// How work moves from one agent to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// Sending onward completes the handoff that the sender held.
    Relay,
    /// A request is answered to its requester, which continues with what it holds.
    Call,
}

words! {
    /// The kind of an agent.
    pub enum AgentKind {
        /// Routes work and decides about failures.
        Orchestrator = "orchestrator",
        /// Does one kind of work.
        Specialist = "specialist",
        /// A person.
        Human = "human",
        /// Not an agent but the end: a contract sent here completes its issue.
        End = "end",
    }
}

/// When an issue ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// When a contract is sent to an agent of kind `end`.
    ClosingContract,
    /// When nothing is open in it, every report was taken up, and the last request was answered
    /// successfully.
    NothingOpen,
}

/// An agent of a protocol.
#[apply(
    Vec => #[serde(default)],
)]
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Its name.
    pub id: AgentName,
    /// Other names that contracts and `--as` may use.
    pub aliases: Vec<String>,
    /// Its role, in a few words.
    pub role: String,
    /// Its kind. `orchestrator` decides about failures; a contract to `end` closes the issue.
    pub kind: AgentKind,
    /// Its place in the workflow, from 1; lower goes first.
    pub phase: Option<u32>,
    /// The `actions` it may take; if empty, any not forbidden.
    pub allowed: Vec<String>,
    /// The actions it must not take.
    pub forbidden: Vec<String>,
    /// Patterns of paths that its commits may change, such as `docs/**`; any, if empty.
    pub paths: Vec<String>,
}

/// An error code of failures.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorCode {
    /// What it means.
    pub meaning: String,
    /// What to do: the advice, if the failure has none.
    pub recovery: String,
    /// Whether a retry should correct the contract: `git handoff retry ID --with FILE`.
    #[serde(default)]
    pub corrected: bool,
    /// The ends of an agent's run without a result that it stands for, by default `FAILED`.
    #[serde(default)]
    pub runs: Vec<RunFailure>,
}

/// A document that all issues share.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Its title, in a few words.
    pub title: String,
    /// The JSON Schema's file, relative to the protocol's folder.
    pub schema: String,
}

/// How the files of another system differ from the protocol's contracts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportProfile {
    /// Where such files come from, in a few words.
    pub title: String,
    /// The differences, by contract type.
    pub contracts: BTreeMap<String, ImportedType>,
}

/// How an imported file differs from a contract type.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportedType {
    /// The members that it may lack; they are recorded as unknown.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// When it was written, if not where the type says.
    pub at: Option<String>,
    /// When its receiver took the work up.
    pub claimed_at: Option<String>,
}

impl ImportedType {
    /// Whether a file may lack this member.
    pub fn may_lack(&self, pointer: &str) -> bool {
        self.unknown.iter().any(|member| {
            let rest = pointer.strip_prefix(member.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// A property that every handoff of a protocol with tasks must have. A failed gate is a finding of
/// its own, in addition to those about the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Everything that the contract's type requires is present.
    RequiredFields,
    /// Every value is valid, and the values are consistent.
    DataIntegrity,
    /// The contract agrees with the state of the tasks.
    StateConsistency,
    /// Every task has a known parent and a place in the plan.
    NoOrphanedTasks,
    /// The sender may send this contract to this receiver now.
    ValidTransition,
}

impl Gate {
    /// Every gate.
    pub const ALL: [Self; 5] = [
        Self::RequiredFields,
        Self::DataIntegrity,
        Self::StateConsistency,
        Self::NoOrphanedTasks,
        Self::ValidTransition,
    ];

    /// The code of the finding that the gate failed.
    pub fn code(self) -> FindingCode {
        match self {
            Self::RequiredFields => FindingCode::GateRequiredFields,
            Self::DataIntegrity => FindingCode::GateDataIntegrity,
            Self::StateConsistency => FindingCode::GateStateConsistency,
            Self::NoOrphanedTasks => FindingCode::GateNoOrphanedTasks,
            Self::ValidTransition => FindingCode::GateValidTransition,
        }
    }
}

/// What may be stored although it looks like a secret.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretRules {
    /// The kinds of value that are allowed.
    pub allow: Vec<AllowedSecret>,
}

/// A kind of value that looks like a secret but is not.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AllowedSecret {
    /// The id of the rule that matches it.
    pub rule: String,
    /// The only place where it is allowed; by default everywhere.
    pub at: Option<String>,
}

/// The words of a protocol's contracts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Vocabulary {
    /// Priority words, the most urgent first; they order the inbox and `claim --next`.
    pub priorities: Vec<String>,
    /// Status words, and the states they stand for; unfinished ones are refused.
    pub status: BTreeMap<String, State>,
    /// The error codes of failures; any code, if empty.
    pub errors: BTreeMap<String, ErrorCode>,
}

/// A protocol, as stored in `protocol.json`.
#[apply(
    Vec => #[serde(default)],
    BTreeMap => #[serde(default)],
)]
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The version of this file's format: 1.
    pub format: u32,
    /// The protocol's name.
    pub name: AgentName,
    /// The protocol's own version.
    pub version: String,
    /// Its purpose, in one line.
    pub title: String,
    /// The formats that contracts may have: `xml`, `json`, `md`.
    #[skip_apply]
    pub formats: Vec<String>,
    /// The places of the envelope's fields.
    pub fields: Fields,
    /// The words that contracts use.
    #[serde(default)]
    pub words: Vocabulary,
    /// The agents.
    #[skip_apply]
    pub agents: Vec<Agent>,
    /// The contract types.
    #[skip_apply]
    pub contracts: Vec<ContractType>,
    /// The routes.
    #[schemars(with = "Vec<route::StoredRoute>")]
    pub routes: Routes,
    /// The facts gathered about an issue, by name.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, fact::StoredFact>>")]
    pub facts: Facts,
    /// What traces and commit messages include from its contracts and facts.
    pub traces: Option<Traces>,
    /// The documents that all issues share, by name.
    pub documents: BTreeMap<AgentName, Document>,
    /// How files of other systems say less than contracts, by profile.
    pub imports: BTreeMap<AgentName, ImportProfile>,
    /// Leases, retries, and limits on the number, rate and cost of handoffs.
    pub limits: Option<Limits>,
    /// What to do about handoffs that need attention: the first rule that applies.
    pub decisions: Vec<DecisionRule>,
    /// Rules that compare places of a contract with each other and with facts.
    pub consistency: Vec<ConsistencyRule>,
    /// What happens to statements that the repository contradicts.
    pub evidence: Option<EvidenceRules>,
    /// What `git handoff gate` checks, by name: those with `merge`, else `completed`. The newest
    /// contract of a requirement's types decides.
    pub requirements: BTreeMap<String, Requirement>,
    /// What may be stored although it looks like a secret.
    pub secrets: Option<SecretRules>,
    /// What `git handoff alerts` watches: alerts, or names of [usual
    /// ones](protocols.md#the-usual-alerts); and [who is told](protocols.md#who-is-told).
    #[serde(default)]
    #[schemars(with = "Option<Vec<alerts::StoredEntry>>")]
    pub alerts: Alerts,
    /// What follows from events of GitHub.
    #[schemars(with = "Option<Github>")]
    pub github: Option<Later<Github>>,
}

impl Definition {
    /// Finds an agent by its name or by one of its other names.
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        let mut agents = self.agents.iter();
        agents.find(|a| a.id.as_str() == name || a.aliases.iter().any(|alias| alias == name))
    }

    /// Whether an agent is a person. Rules, views and notices all ask this function.
    pub fn is_person(&self, name: &str) -> bool {
        let agent = self.agent(name);
        agent.is_some_and(|agent| agent.kind == AgentKind::Human)
    }

    /// The agents that are persons, in the definition's order.
    pub fn people(&self) -> impl Iterator<Item = &AgentName> {
        let names = self.agents.iter().map(|agent| &agent.id);
        names.filter(|name| self.is_person(name.as_str()))
    }

    /// Whether a merge needs a person's approval.
    pub fn merge_takes_a_person(&self) -> bool {
        let mut requirements = self.requirements.values();
        requirements.any(|one| one.merge && !one.approved_by.is_empty())
    }

    /// Whether a merge needs a person's approval that a handoff of this type can get: one that
    /// meets another requirement of the merge or, if there is none, one of `undone_by`.
    pub fn takes_approval(&self, kind: &str) -> bool {
        let merge = self.requirements.values().filter(|one| one.merge);
        let (persons, contracts): (Vec<_>, Vec<_>) =
            merge.partition(|one| !one.approved_by.is_empty());
        let of = |types: &[String]| types.iter().any(|one| one == kind);
        !persons.is_empty()
            && if contracts.is_empty() {
                persons.iter().any(|one| of(&one.undone_by))
            } else {
                contracts.iter().any(|one| of(&one.shown_by))
            }
    }

    /// Whether a completed handoff of this type may end an issue before a person's approval that
    /// its merge requires: no contract reports the merge.
    pub fn ends_unmerged(&self, kind: &str) -> bool {
        self.takes_approval(kind) && self.merge_facts().next().is_none()
    }

    /// Whether a contract of this type approves a merge that no contract reports, so that the merge
    /// is what is left.
    pub fn approves_merge(&self, kind: &str) -> bool {
        self.merge_facts().next().is_none() && self.shows_merge(kind)
    }

    /// Whether a contract of this type reports a merge, so that its sender merges first.
    pub fn reports_merge(&self, kind: &str) -> bool {
        let mut kinds = self.contracts.iter().filter(|one| one.name == kind);
        kinds.any(|one| {
            one.claims
                .as_ref()
                .is_some_and(|claims| claims.merge.is_some())
        })
    }

    /// Whether a contract of this type approves a merge.
    pub fn shows_merge(&self, kind: &str) -> bool {
        let mut merges = self.requirements.values().filter(|one| one.merge);
        merges.any(|one| one.shown_by.iter().any(|shown| shown == kind))
    }

    /// Whether a handoff of this type comes before the approval that a merge requires.
    pub fn is_before_merge(&self, kind: &str) -> bool {
        let mut merge = self.requirements.values().filter(|one| one.merge);
        merge.any(|one| one.undone_by.iter().any(|undone| undone == kind))
    }

    /// The facts that name the commit of a merge.
    pub fn merge_facts(&self) -> impl Iterator<Item = &String> {
        let claims = self
            .contracts
            .iter()
            .filter_map(|kind| kind.claims.as_ref());
        let merges: Vec<&String> = claims
            .filter_map(|claims| Some(&claims.merge.as_ref()?.commit))
            .collect();
        let names = move |rule: &FactRule| match rule {
            FactRule::Last(list) => list.iter().any(|pointer| merges.contains(&pointer)),
            _ => false,
        };
        let facts = self.facts.iter();
        facts.filter_map(move |(name, fact)| names(&fact.rule).then_some(name))
    }

    /// How work moves: `call` if any contract type answers another one.
    pub fn style(&self) -> Style {
        if self.contracts.iter().any(|kind| !kind.answers.is_empty()) {
            Style::Call
        } else {
            Style::Relay
        }
    }

    /// The retry settings, if failed work is retried.
    pub fn retry(&self) -> Option<&Retry> {
        self.limits.as_ref()?.retry.as_ref()
    }

    /// The rules for GitHub's events.
    pub fn event_rules(&self) -> &[EventRule] {
        let rules = self.github.as_ref().map(|github| &*github.get().rules);
        rules.unwrap_or_default()
    }

    /// The repositories that the ledger serves, if several, each with the prefix of its issues'
    /// keys.
    pub fn repositories(&self) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        let github = self.github.as_ref();
        github.map_or(&NONE, |github| &github.get().repositories)
    }

    /// The patterns of branch names for issues; empty for the default ones.
    pub fn branch_patterns(&self) -> &[String] {
        let branches = self.github.as_ref().map(|github| &*github.get().branches);
        branches.unwrap_or_default()
    }

    /// What work may cost, by name.
    pub fn budgets(&self) -> &BTreeMap<String, Budget> {
        static NONE: BTreeMap<String, Budget> = BTreeMap::new();
        self.limits.as_ref().map_or(&NONE, |limits| &limits.budgets)
    }

    /// The kinds of refused contracts that are kept on record.
    pub fn on_record(&self) -> &[OnRecord] {
        self.limits.as_ref().map_or(&[], |limits| &limits.on_record)
    }

    /// The gates that every handoff must pass.
    pub fn gates(&self) -> &[Gate] {
        let has_tasks = self.contracts.iter().any(|kind| kind.tasks.is_some());
        if has_tasks { &Gate::ALL } else { &[] }
    }

    /// Whether work that failed with this code is retried with a corrected contract.
    pub fn takes_correction(&self, code: Option<&str>) -> bool {
        let known = code.and_then(|code| self.words.errors.get(code));
        known.is_some_and(|known| known.corrected)
    }

    /// Whether `evidence` has nothing to check: no contract claims anything about the repository,
    /// and no agent is restricted to paths.
    pub fn claims_nothing(&self) -> bool {
        let claims = |kind: &ContractType| {
            let claims = kind.claims.as_ref().map(Claims::places);
            claims.is_some_and(|places| !places.is_empty())
                || kind.artifacts.is_some()
                || kind.fields.branch.is_some()
        };
        self.fields.branch.is_none()
            && self.agents.iter().all(|agent| agent.paths.is_empty())
            && !self.contracts.iter().any(claims)
    }

    /// The budgets that simultaneous claims can exceed together: those per day without a budget per
    /// run in the same unit. Each with its name and unit.
    pub fn unbounded_budgets(&self) -> Vec<(&str, BudgetUnit)> {
        let bounds = |day: &Budget, of: BudgetUnit| {
            self.budgets().values().any(|run| {
                run.per == Per::Run
                    && run.limited().any(|other| other == of)
                    && (run.agent.is_none() || run.agent == day.agent)
                    && (of != BudgetUnit::Cost || run.currency == day.currency)
            })
        };
        let days = self.budgets().iter().filter(|(_, day)| day.per == Per::Day);
        let open = days.flat_map(|(name, day)| {
            let open = day.limited().filter(|of| *of != BudgetUnit::Attempts);
            let open = open.filter(move |of| !bounds(day, *of));
            open.map(move |of| (name.as_str(), of))
        });
        open.collect()
    }

    /// Whether a contract can close an issue: there is an agent of kind `end`.
    pub fn has_end(&self) -> bool {
        self.agents.iter().any(|agent| agent.kind == AgentKind::End)
    }
}
