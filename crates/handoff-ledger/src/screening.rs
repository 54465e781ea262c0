//! What is about to be kept is screened for secrets: at the door, before anything of it is written.
//!
//! The audit does not screen again. Rules change with the program, and what was accepted once must
//! not become a fault of the history.

use handoff_base::finding::Finding;
use handoff_contract::{Allowance, SECRET, Secrets};
use handoff_protocol::{Definition, Protocol};
use serde_json::{Value, json};

use super::error::LedgerError;
use super::failure::Attached;
use super::intake::Review;
use super::layout::DEFINITION;
use super::shared::ProtocolFiles;
use super::step::{Request, Told};

/// The screening of one step: what goes with it, and what of it is allowed all the same.
pub(super) struct Screen {
    /// What the protocol allows.
    standing: Vec<Allowance>,
    /// What is allowed for this step, and whether it was needed.
    asked: Vec<(Allowance, bool)>,
    allowed: Vec<Allowance>,
    found: Secrets,
}

/// What a screening without secrets comes to.
#[derive(Debug)]
pub(super) struct Screened {
    /// Every secret that was allowed for this step, by rule and place.
    pub(super) allowed: Vec<Allowance>,
    /// An allowance that nothing needed.
    pub(super) unused: Option<Allowance>,
}

impl Screen {
    /// Begins one under a protocol, with what is allowed for this step.
    pub(super) fn new(definition: &Definition, asked: &[Allowance]) -> Self {
        let standing = definition.secrets.iter().flat_map(|secrets| &secrets.allow);
        let standing = standing.map(|allowed| Allowance {
            rule: allowed.rule.clone(),
            place: allowed.at.clone(),
        });
        Self {
            standing: standing.collect(),
            asked: asked.iter().map(|a| (a.clone(), false)).collect(),
            allowed: Vec::new(),
            found: Secrets::default(),
        }
    }

    /// Screens a contract, or a document that is written like one.
    pub(super) fn contract(&mut self, bytes: &[u8]) {
        self.weigh(Secrets::in_contract(bytes));
    }

    /// Screens a file of any kind; findings name it so.
    pub(super) fn file(&mut self, name: &str, bytes: &[u8]) {
        self.weigh(Secrets::in_file(name, bytes));
    }

    /// Says whether nothing was found yet that is not allowed.
    pub(super) fn is_clean(&self) -> bool {
        self.found.is_empty()
    }

    /// Screens the texts of a value; findings name them by JSON Pointers.
    pub(super) fn value(&mut self, value: &Value) {
        self.weigh(Secrets::in_value(value));
    }

    fn weigh(&mut self, mut secrets: Secrets) {
        let Self {
            standing,
            asked,
            allowed,
            ..
        } = self;
        secrets.retain(|secret| {
            if standing.iter().any(|a| secret.is_allowed_by(a)) {
                return false;
            }
            let mut is_allowed = false;
            for (allowance, used) in asked.iter_mut() {
                if secret.is_allowed_by(allowance) {
                    (*used, is_allowed) = (true, true);
                }
            }
            let own = secret.allowance();
            if is_allowed && !allowed.contains(&own) {
                allowed.push(own);
            }
            !is_allowed
        });
        self.found.extend(secrets);
    }

    /// Ends the screening with the findings for what is not allowed; `others` are told without it.
    pub(super) fn findings(self, others: &mut Vec<Finding>) -> Screened {
        self.found.mask(others);
        others.extend(self.found.iter().map(|secret| secret.finding()));
        let unused = self.asked.into_iter().find(|(_, used)| !used);
        Screened {
            allowed: self.allowed,
            unused: unused.map(|(allowance, _)| allowance),
        }
    }

    /// Ends the screening; the answer is what was allowed.
    ///
    /// # Errors
    /// [`LedgerError::Secret`] for what is not allowed, [`LedgerError::UnusedAllowance`] for what is
    /// allowed and not there.
    pub(super) fn finish(self) -> Result<Vec<Allowance>, LedgerError> {
        let mut findings = Vec::new();
        let screened = self.findings(&mut findings);
        if !findings.is_empty() {
            return Err(LedgerError::Secret { findings });
        }
        match screened.unused {
            Some(allowance) => Err(LedgerError::UnusedAllowance { allowance }),
            None => Ok(screened.allowed),
        }
    }
}

impl Review {
    /// The same review after its document was screened, so that none of its findings tells a secret.
    #[must_use]
    pub fn screened(mut self, protocol: &Protocol, bytes: &[u8], asked: &[Allowance]) -> Self {
        let mut screen = Screen::new(protocol.definition(), asked);
        screen.contract(bytes);
        let Screened { allowed, unused } = screen.findings(&mut self.findings);
        if let Some(contract) = &mut self.contract {
            contract.allowed_secrets = allowed;
        }
        if self.holds_secrets() {
            self.contract = None;
            self.no_route = false;
        }
        self.unused = unused;
        self
    }

    /// Says whether its document was refused for a secret.
    pub(super) fn holds_secrets(&self) -> bool {
        self.findings.iter().any(|finding| finding.code == SECRET)
    }
}

/// Screens the texts of a request, which then says which of them hold what was allowed. A contract was
/// screened with its review.
///
/// # Errors
/// [`LedgerError::Secret`] and [`LedgerError::UnusedAllowance`].
pub(super) fn screen_request(
    protocol: &Protocol,
    request: &mut Request<'_>,
) -> Result<(), LedgerError> {
    let (value, told) = match request {
        Request::Send { .. } => return Ok(()),
        Request::Change { told, .. } => (json!(told), Some(told)),
        Request::Decide { why, .. } => (json!({ "why": why }), None),
        Request::Annotate { note, facts, .. } => (json!({ "note": note, "facts": facts }), None),
        Request::Reopen { reason } => (json!({ "reason": reason }), None),
    };
    let asked = told.as_ref().map_or(&[][..], |told| &told.allow);
    let mut screen = Screen::new(protocol.definition(), asked);
    // What was allowed when the step was first taken, elsewhere.
    let known = told.as_ref().map_or(&[][..], |told| &told.allowed_secrets);
    screen.standing.extend_from_slice(known);
    screen.value(&value);
    let allowed = screen.finish()?;
    if let Some(told) = told {
        told.allowed_secrets.extend(allowed);
    }
    Ok(())
}

/// Begins the screening of a failure with its texts and the files that are attached to it.
pub(super) fn screen_failure(protocol: &Protocol, told: &Told, attached: &[Attached]) -> Screen {
    let mut screen = Screen::new(protocol.definition(), &told.allow);
    screen.value(&json!(told));
    for file in attached {
        screen.file(&file.name(), &file.bytes);
    }
    screen
}

/// Screens a protocol's files, under what it allows itself.
///
/// # Errors
/// [`LedgerError::Secret`].
pub(super) fn screen_protocol(files: &ProtocolFiles) -> Result<(), LedgerError> {
    let definition = files.iter().find(|(path, _)| path == DEFINITION);
    let Some(protocol) = definition.and_then(|(_, bytes)| Protocol::load(bytes).ok()) else {
        // It is refused for what it is.
        return Ok(());
    };
    let mut screen = Screen::new(protocol.definition(), &[]);
    for (path, bytes) in files {
        screen.file(path, bytes);
    }
    screen.finish().map(drop)
}
