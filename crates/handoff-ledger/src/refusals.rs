//! Contracts that were refused when they were sent from this clone.
//!
//! A refused contract writes no step, so the ledger can't tell how many there were.
//! This clone keeps a note of each beside the branch: who wanted to hand what to whom,
//! and the code of the refusal, nothing that the contract says. The notes may be lost at any time.

use handoff_base::finding::Finding;
use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::{Moment, moment};
use handoff_contract::SECRET;
use handoff_git::Scratch;
use handoff_model::intake::Opened;
use handoff_protocol::Fields;
use serde::{Deserialize, Serialize};

use super::contract_match::{ContractMatch, Offer};
use super::error::LedgerError;
use super::session::Session;
use super::write::Ledger;

/// How many notes are kept when the older ones go.
const KEPT: usize = 1000;

/// How large the file becomes before they go, in bytes. A note has 200 to 400.
const LARGE: u64 = 512 << 10;

/// How many codes of findings a note has at most.
const CODES: usize = 8;

/// A contract that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// When.
    #[serde(with = "moment")]
    pub at: Moment,
    /// The code of the refusal.
    pub code: String,
    /// The codes of the findings, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The issue, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue: Option<IssueKey>,
    /// The sender, where it is an agent of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<AgentName>,
    /// The receiver, where it is an agent of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<AgentName>,
    /// The protocol that it seems to follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<AgentName>,
    /// The contract's type, where it can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_type: Option<String>,
}

impl Refused {
    /// Says whether it was refused because the work would have gone in circles.
    pub fn is_cycle(&self) -> bool {
        matches!(self.code.as_str(), "cycle" | "loop")
    }
}

impl Ledger<'_> {
    /// Notes that a contract was refused, where that can be noted. Nothing that looks
    /// like a secret is: of a contract that holds one, only its kind.
    pub fn note_refused(
        &self,
        session: &Session,
        offer: &Offer<'_>,
        code: &str,
        findings: &[Finding],
        at: Moment,
    ) {
        if session.quarantined {
            return;
        }
        let mut codes: Vec<String> = Vec::new();
        for finding in findings.iter().filter(|f| f.is_error()) {
            if codes.len() < CODES && !codes.iter().any(|known| *known == finding.code) {
                codes.push(finding.code.to_string());
            }
        }
        let holds_secret = code == "secret_found" || findings.iter().any(|f| f.code == SECRET);
        let mut refused = Refused {
            at,
            code: code.to_owned(),
            findings: codes,
            issue: offer.issue.cloned(),
            from: None,
            to: None,
            protocol: None,
            contract_type: None,
        };
        // What can't be told of it is left out.
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
    }

    /// Says of a refused contract what it names of what the ledger knows.
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

    /// What was refused here, the oldest first; lines that can't be read are left
    /// out.
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

/// Leaves the newest notes. One that another process adds meanwhile may be lost.
fn trim(notes: &Scratch) {
    let bytes = notes.read().unwrap_or_default();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&b| b == b'\n').collect();
    let newest = lines[lines.len().saturating_sub(KEPT)..].concat();
    let _ = notes.write(&newest);
}
