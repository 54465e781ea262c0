//! Everything an agent needs to start on a handoff.

use handoff_base::ids::{AgentName, HandoffId};
use handoff_contract::Format;
use handoff_model::{Annotation, Artifact, Record, Task, View};
use handoff_protocol::AgentKind;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::error::LedgerError;
use super::failure::{PastFailure, failures_in_full};
use super::protocol_store::documents;
use super::snapshot::{IssueFolder, Snapshot};

/// A contract as it was sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Emitted {
    /// The handoff that it started.
    pub id: HandoffId,
    /// Its format.
    pub format: Format,
    /// Its text.
    pub text: String,
}

/// The agent whose work a handoff continues.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Previous {
    /// The agent.
    pub agent: AgentName,
    /// The handoff that brought its work here.
    pub id: HandoffId,
    /// The location of its session.
    pub session: Option<String>,
}

/// What an agent gets with a handoff that it claims.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Briefing {
    /// Its contract.
    pub contract: Emitted,
    /// The contract that its sender decided on, if the sender decides about the work of others.
    pub decided_on: Option<Emitted>,
    /// The agent whose work it continues.
    pub previous: Previous,
    /// The facts that the issue's contracts stated.
    pub facts: Map<String, Value>,
    /// The files that contracts of the issue delivered, as far back as this handoff follows from
    /// others.
    #[serde(skip)]
    pub artifacts: Vec<Artifact>,
    /// The state of the issue's tasks.
    pub tasks: Vec<Task>,
    /// Corrections to the issue's contracts and records.
    pub annotations: Vec<Annotation>,
    /// The failures of earlier attempts, the oldest first.
    pub failures: Vec<PastFailure>,
    /// The documents that the protocol's issues share.
    pub documents: Map<String, Value>,
}

/// How many handoffs back artifacts are gathered.
const FAR: usize = 100;

/// Gathers the briefing for a handoff.
///
/// # Errors
/// [`LedgerError`] if something can't be read.
pub fn briefing(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    record: &Record,
) -> Result<Briefing, LedgerError> {
    let emitted = |record: &Record| -> Result<Emitted, LedgerError> {
        let bytes = folder.contract(record)?;
        Ok(Emitted {
            id: record.id.clone(),
            format: record.contract.format,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    };
    let rules = tip.rules(record.protocol.as_str())?;
    let decides = rules
        .protocol()
        .is_kind(record.from.as_str(), AgentKind::Orchestrator);
    let basis = match record.follows.as_ref().filter(|_| decides) {
        Some(id) => folder.record(id.number())?.filter(|b| b.to == record.from),
        None => None,
    };
    let source = basis.as_ref().unwrap_or(record);
    let mut artifacts: Vec<Artifact> = Vec::new();
    let mut back = Some(record.clone());
    for _ in 0..FAR {
        let Some(earlier) = back else { break };
        for artifact in earlier.artifacts {
            if !artifacts.iter().any(|known| known.path == artifact.path) {
                artifacts.push(artifact);
            }
        }
        back = match earlier.follows {
            Some(id) => folder.record(id.number())?,
            None => None,
        };
    }
    let issue = folder.issue()?;
    let shared = documents(tip, &rules)?.into_iter();
    Ok(Briefing {
        contract: emitted(record)?,
        decided_on: basis.as_ref().map(emitted).transpose()?,
        previous: Previous {
            agent: source.from.clone(),
            id: source.id.clone(),
            session: source.session.clone(),
        },
        facts: issue.as_ref().map(|i| i.facts.clone()).unwrap_or_default(),
        artifacts,
        failures: failures_in_full(tip.repository(), folder, record)?,
        annotations: issue
            .as_ref()
            .map(|i| i.annotations.clone())
            .unwrap_or_default(),
        tasks: issue.map(|i| i.tasks).unwrap_or_default(),
        documents: shared
            .map(|(name, value)| (name.to_string(), value))
            .collect(),
    })
}
