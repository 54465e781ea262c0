//! Screens content for secrets before it is written.
//!
//! The audit does not screen again: the rules change with the program, and must not make an
//! accepted commit invalid later.

use std::collections::HashSet;

use handoff_base::finding::{Finding, FindingCode};
use handoff_contract::{Allowance, Input, Secrets};
use handoff_protocol::{Definition, Protocol};
use serde_json::Value;

use crate::contract::Review;
use crate::layout::DEFINITION;
use crate::rules::ProtocolFiles;
use crate::step::Update;

/// The screening of one step, and what is allowed in it.
pub struct Screen {
    /// What the protocol allows.
    standing: Vec<Allowance>,
    /// What is allowed for this step, each with whether it was used.
    asked: Vec<(Allowance, bool)>,
    allowed: Vec<Allowance>,
    /// `allowed`, as a set for lookup.
    known: HashSet<Allowance>,
    found: Secrets,
}

/// The result of [`Screen::findings`].
#[derive(Debug)]
pub struct Screened {
    /// The matches allowed for this step, by rule and place.
    pub allowed: Vec<Allowance>,
    /// A permission that matched nothing.
    pub unused: Option<Allowance>,
}

/// Why content may not be stored.
#[derive(Debug)]
pub enum Unscreened {
    /// It contains something that looks like a secret.
    Secret {
        /// Each secret's place, without its text.
        findings: Vec<Finding>,
    },
    /// A permission matches nothing in it.
    Unused {
        /// The allowance.
        allowance: Allowance,
    },
}

impl Screen {
    /// Starts a screening by a protocol's rules, with the permissions for this step.
    pub fn new(definition: &Definition, asked: &[Allowance]) -> Self {
        let standing = definition.secrets.iter().flat_map(|secrets| &secrets.allow);
        let standing = standing.map(|allowed| Allowance {
            rule: allowed.rule.clone(),
            place: allowed.at.clone(),
        });
        Self {
            standing: standing.collect(),
            asked: asked.iter().map(|a| (a.clone(), false)).collect(),
            allowed: Vec::new(),
            known: HashSet::new(),
            found: Secrets::default(),
        }
    }

    /// Screens a contract, or a document in the same formats.
    pub fn contract(&mut self, input: &Input<'_>) {
        self.weigh(Secrets::in_input(input));
    }

    /// Screens a file of any kind; findings use its name.
    pub fn file(&mut self, name: &str, bytes: &[u8]) {
        self.weigh(Secrets::in_file(name, bytes));
    }

    /// Whether nothing forbidden was found yet.
    pub fn is_clean(&self) -> bool {
        self.found.is_empty()
    }

    /// Screens the texts of a value; findings use JSON Pointers.
    pub fn value(&mut self, value: &Value) {
        self.weigh(Secrets::in_value(value));
    }

    fn weigh(&mut self, mut secrets: Secrets) {
        let Self {
            standing,
            asked,
            allowed,
            known,
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
            if is_allowed && known.insert(own.clone()) {
                allowed.push(own);
            }
            !is_allowed
        });
        self.found.extend(secrets);
    }

    /// Ends the screening: adds a finding for each secret that is not allowed, and masks these
    /// secrets in the other findings.
    pub fn findings(self, others: &mut Vec<Finding>) -> Screened {
        self.found.mask(others);
        others.extend(self.found.findings());
        let unused = self.asked.into_iter().find(|(_, used)| !used);
        Screened {
            allowed: self.allowed,
            unused: unused.map(|(allowance, _)| allowance),
        }
    }

    /// Ends the screening; returns the allowed matches.
    ///
    /// # Errors
    /// [`Unscreened::Secret`] for a forbidden secret, [`Unscreened::Unused`] for an allowance that
    /// matches nothing.
    pub fn finish(self) -> Result<Vec<Allowance>, Unscreened> {
        let mut findings = Vec::new();
        let screened = self.findings(&mut findings);
        if !findings.is_empty() {
            return Err(Unscreened::Secret { findings });
        }
        match screened.unused {
            Some(allowance) => Err(Unscreened::Unused { allowance }),
            None => Ok(screened.allowed),
        }
    }
}

impl Review {
    /// The review, with its document screened; no finding shows a secret.
    #[must_use]
    pub fn screened(mut self, protocol: &Protocol, input: &Input<'_>, asked: &[Allowance]) -> Self {
        let mut screen = Screen::new(protocol.definition(), asked);
        screen.contract(input);
        let Screened { allowed, unused } = screen.findings(&mut self.findings);
        if let Some(contract) = &mut self.contract {
            contract.allowed_secrets = allowed;
        }
        if self.holds_secrets() {
            (self.contract, self.draft) = (None, None);
            self.no_route = false;
        }
        self.unused = unused;
        self
    }

    /// Whether the document was refused for a secret.
    pub fn holds_secrets(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.code == FindingCode::SecretFound)
    }
}

/// Screens the texts of an update, and records the allowed matches in it.
///
/// # Errors
/// [`Unscreened::Secret`] and [`Unscreened::Unused`].
pub fn screen_update(protocol: &Protocol, update: &mut Update) -> Result<(), Unscreened> {
    let value = update.content();
    let arguments = match update {
        Update::Change { arguments, .. } => Some(arguments),
        _ => None,
    };
    let allow = arguments.as_ref().map_or(&[][..], |args| &args.allow);
    let mut screen = Screen::new(protocol.definition(), allow);
    // What was allowed when the step was first made elsewhere stays allowed.
    let known = arguments.as_ref().map_or(&[][..], |a| &a.allowed_secrets);
    screen.standing.extend_from_slice(known);
    screen.value(&value);
    let allowed = screen.finish()?;
    if let Some(arguments) = arguments {
        arguments.allowed_secrets.extend(allowed);
    }
    Ok(())
}

/// Screens a protocol's files, by what the protocol itself allows.
///
/// # Errors
/// [`Unscreened::Secret`].
pub fn screen_protocol(files: &ProtocolFiles) -> Result<(), Unscreened> {
    let definition = files.iter().find(|(path, _)| path == DEFINITION);
    let Some(protocol) = definition.and_then(|(_, bytes)| Protocol::load(bytes).ok()) else {
        // An invalid definition is refused elsewhere.
        return Ok(());
    };
    let mut screen = Screen::new(protocol.definition(), &[]);
    for (path, bytes) in files {
        screen.file(path, bytes);
    }
    screen.finish().map(drop)
}
