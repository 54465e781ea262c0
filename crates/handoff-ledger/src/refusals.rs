//! Contracts that were refused when sent from this clone.
//!
//! A refused contract changes nothing, so the ledger does not count them. This clone notes each
//! outside the branch: sender, receiver and the code of the refusal, but not the contract's
//! content. The notes may be lost at any time. A protocol can require some kinds to be recorded in
//! the ledger as well: see [`Ledger::put_on_record`].

use handoff_base::Moment;
use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::text::counted;
use handoff_git::Scratch;
use handoff_macros::skip_serializing_none;
use handoff_model::{ContractRefusal, Limit, Opened, Refusal, RequestRefusal, Update, View};
use handoff_protocol::{Check, Fields, OnRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contract_match::{ContractMatch, Offer};
use super::error::{ContractError, LedgerError};
use super::ledger::Ledger;
use super::session::Session;

/// How many notes are kept when a file is trimmed.
const KEPT: usize = 1000;

/// The file size in bytes above which it is trimmed. A note has 200 to 400 bytes.
const LARGE: u64 = 512 << 10;

/// The maximum number of finding codes in a note.
const CODES: usize = 8;

/// A contract that was refused.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// When it was refused.
    pub at: Moment,
    /// The code of the refusal.
    pub code: String,
    /// The codes of the findings, without duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The issue, if known.
    pub issue: Option<IssueKey>,
    /// The sender, if it is an agent of the protocol.
    pub from: Option<AgentName>,
    /// The receiver, if it is an agent of the protocol.
    pub to: Option<AgentName>,
    /// The protocol that it seems to follow.
    pub protocol: Option<AgentName>,
    /// The contract's type, if it can be determined.
    pub contract_type: Option<String>,
    /// How many bytes it has; none in notes of older versions.
    pub bytes: Option<usize>,
}

impl Refused {
    /// Whether it was refused because of a cycle.
    pub fn is_cycle(&self) -> bool {
        matches!(self.code.as_str(), "cycle" | "loop")
    }

    /// Whether the repository contradicts a statement of it.
    pub fn is_contradicted(&self) -> bool {
        let is_evidence = |code: &String| Check::ALL.iter().any(|c| c.code().as_str() == code);
        self.findings.iter().any(is_evidence)
    }
}

impl Ledger<'_> {
    /// Notes a refused contract and returns the note; write errors are ignored. If the contract may
    /// contain a secret, notes only its type, and returns `None`, so that nothing is recorded.
    pub fn note_refused(
        &self,
        session: &Session,
        offer: &Offer<'_>,
        code: &str,
        findings: &[Finding],
        at: Moment,
    ) -> Option<Refused> {
        if session.quarantined {
            return None;
        }
        let mut codes: Vec<FindingCode> = Vec::new();
        for finding in findings.iter().filter(|f| f.is_error()) {
            if codes.len() < CODES && !codes.contains(&finding.code) {
                codes.push(finding.code);
            }
        }
        let holds_secret =
            code == "secret_found" || findings.iter().any(|f| f.code == FindingCode::SecretFound);
        let mut refused = Refused {
            at,
            code: code.to_owned(),
            findings: codes.iter().map(ToString::to_string).collect(),
            issue: offer.issue.cloned(),
            from: None,
            to: None,
            protocol: None,
            contract_type: None,
            bytes: Some(offer.input.bytes().len()),
        };
        // Details that can't be determined are omitted.
        let _ = self.describe(&mut refused, offer);
        if holds_secret {
            (refused.issue, refused.from, refused.to) = (None, None, None);
        }
        if let Ok(mut line) = serde_json::to_vec(&refused) {
            line.push(b'\n');
            let notes = self.refusals();
            if notes.append(&line).is_ok_and(|size| size > LARGE) {
                trim(&notes);
            }
        }
        (!holds_secret).then_some(refused)
    }

    /// Records a refusal in its issue, if the protocol requires that for its kind and the issue
    /// exists. Returns the issue if the refusal is recorded now.
    ///
    /// # Errors
    /// [`LedgerError`] if it can't be recorded.
    pub fn put_on_record(
        &mut self,
        session: &Session,
        refused: &Refused,
        reason: &RefusalReason,
    ) -> Result<Option<IssueKey>, LedgerError> {
        let (Some(key), Some(agent)) = (&refused.issue, &refused.from) else {
            return Ok(None);
        };
        let tip = self.tip()?;
        let Some(issue) = tip.issue(key)?.issue()? else {
            return Ok(None);
        };
        let rules = tip.rules(issue.protocol.as_str())?;
        let wanted = rules.protocol().definition().on_record();
        if !wanted.contains(&reason.kind) {
            return Ok(None);
        }
        let why = match &refused.findings[..] {
            [] => reason.why.clone(),
            codes => codes.join(", "),
        };
        let update = Update::Refuse {
            kind: reason.kind,
            code: refused.code.clone(),
            why,
        };
        self.update(session, agent, key, &update)?;
        Ok(Some(key.clone()))
    }

    /// Fills in the members of a refused contract that the ledger knows.
    fn describe(&self, refused: &mut Refused, offer: &Offer<'_>) -> Result<(), LedgerError> {
        let ContractMatch { rules, review } = self.tip()?.match_contract(offer)?;
        let protocol = rules.protocol();
        refused.protocol = Some(protocol.definition().name.clone());
        refused.contract_type = review.kind;
        let Ok(source) = offer.input.source() else {
            return Ok(());
        };
        let wrapper = Opened::new(protocol, source).wrapper;
        let kind = refused
            .contract_type
            .as_deref()
            .and_then(|k| protocol.contract_type(k));
        let field = |field: for<'f> fn(&'f Fields) -> &'f Option<String>| {
            let common = field(&protocol.definition().fields).as_deref();
            let at = kind.map_or(common, |kind| protocol.field(kind, field));
            source.probe(wrapper.as_deref(), at?)
        };
        let agent = |name: Option<String>| Some(protocol.agent(&name?)?.id.clone());
        refused.from = agent(field(|f| &f.from)).or_else(|| offer.agent.cloned());
        refused.to = agent(field(|f| &f.to));
        let named = || field(|f| &f.issue)?.parse().ok();
        let sent = || review.contract.map(|contract| contract.issue);
        refused.issue = refused.issue.take().or_else(sent).or_else(named);
        Ok(())
    }

    /// The refusals noted here, the oldest first; unreadable lines are left out.
    pub fn refused(&self) -> Vec<Refused> {
        let bytes = self.refusals().read().unwrap_or_default();
        let lines = bytes.split(|&b| b == b'\n');
        lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect()
    }

    fn refusals(&self) -> Scratch {
        let name = format!("refused/{}", self.refname());
        Scratch::new(self.repository().common_dir(), &name)
    }
}

/// The reason of a refusal that can be recorded: without the contract's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalReason {
    kind: OnRecord,
    why: String,
}

impl RefusalReason {
    /// The reason of a failed send; `None` if its kind is never recorded.
    pub fn of(error: &LedgerError) -> Option<Self> {
        let refusal = match error {
            LedgerError::Refused(refusal) => refusal,
            LedgerError::Contract(ContractError::Gate { refusal, .. }) => refusal,
            LedgerError::Contract(
                ContractError::Invalid(_)
                | ContractError::Artifact(_)
                | ContractError::Evidence(_)
                | ContractError::Delivered(_)
                | ContractError::Route(_),
            ) => return Some(Self::contract("the contract was refused")),
            _ => return None,
        };
        Some(match refusal {
            Refusal::Limit(reached) => Self::limit(&reached.limit),
            Refusal::Request(RequestRefusal::Loop { from, to, .. }) => Self {
                kind: OnRecord::Cycles,
                why: format!("{to} is already waiting for {from}"),
            },
            Refusal::Request(RequestRefusal::Unfit { .. }) => {
                Self::contract("the answer is not what was asked for")
            }
            Refusal::Contract(ContractRefusal::IdTaken { .. }) => return None,
            Refusal::Contract(_) => Self::contract("the contract contradicts its issue"),
            _ => return None,
        })
    }

    fn contract(why: &str) -> Self {
        Self {
            kind: OnRecord::RefusedContracts,
            why: why.to_owned(),
        }
    }

    fn limit(limit: &Limit) -> Self {
        let why = match limit {
            Limit::Item { most, .. } => format!("{} about one item", counted(*most, "handoff")),
            Limit::Cycle {
                from,
                to,
                among,
                most,
                ..
            } => {
                format!(
                    "{most} of the last {among} handoffs went from {from} to {to} for one reason"
                )
            }
            other => other.to_string(),
        };
        let kind = match limit {
            Limit::Cycle { .. } => OnRecord::Cycles,
            _ => OnRecord::Limits,
        };
        Self { kind, why }
    }
}

/// Keeps only the newest notes. A note that another process adds at the same time may be lost.
fn trim(notes: &Scratch) {
    let bytes = notes.read().unwrap_or_default();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&b| b == b'\n').collect();
    let newest = lines[lines.len().saturating_sub(KEPT)..].concat();
    let _ = notes.write(&newest);
}
