//! Who may decide which protocols are in force, once one of them has a list of keys; and how the
//! other protocols compare with the ledger's default one.
//!
//! The write path and the audit both ask here.

use std::fmt;
use std::rc::Rc;

use handoff_base::ids::AgentName;
use handoff_model::{ADDED_SIGNER, ProtocolFiles, Strictness, Weakness, loosened, weaker};
use handoff_protocol::{Protocol, SIGNERS, Signers};
use schemars::JsonSchema;
use serde::Serialize;

use super::error::{LedgerError, ProtocolError};
use super::signing::{By, Demand};
use super::snapshot::{Rules, Snapshot};

/// The keys that may put a protocol in force: those of the default protocol, else those of all that
/// have a list; `None` if none has one.
fn authority(tip: &Snapshot<'_>) -> Result<Option<Rc<Signers>>, LedgerError> {
    let mut all = Signers::default();
    // The default protocol comes first.
    for name in tip.protocols()? {
        let Some(signers) = tip.rules(&name)?.signers()? else {
            continue;
        };
        if name == tip.manifest().default_protocol.as_str() {
            return Ok(Some(signers));
        }
        all = all.joined(&signers);
    }
    Ok((!all.is_empty()).then(|| Rc::new(all)))
}

/// The trailer that names what a protocol checks less strictly than the default one.
pub(super) const WEAKER: &str = "Weaker";

/// A protocol that is about to be put in force: what it needs, and what it says of itself.
pub(super) struct Authorized {
    /// The required signature.
    pub(super) demand: Option<Demand>,
    /// What it checks less strictly than the default protocol, or than its version in force.
    weaknesses: Vec<Weakness>,
}

impl Authorized {
    /// Compares a protocol with the default one, in a ledger where a protocol has a list of keys; in any
    /// ledger, a new version of the default one with the version in force, `known`.
    pub(super) fn of(
        tip: &Snapshot<'_>,
        known: Option<&Rules<'_>>,
        protocol: &Protocol,
        files: &ProtocolFiles,
    ) -> Result<Self, LedgerError> {
        let manifest = tip.manifest();
        let authority = authority(tip)?;
        let list = files.iter().find(|(path, _)| path == SIGNERS);
        let own = Strictness {
            protocol,
            is_signed: list.is_some_and(|(_, bytes)| !Signers::parse(bytes).0.is_empty()),
        };
        let is_default = protocol.name() == manifest.default_protocol.as_str();
        let default = match known {
            Some(known) if is_default => Some(tip.rules(known.protocol().name())?),
            None if is_default => None,
            _ if authority.is_none() => None,
            _ => Some(tip.rules(tip.manifest().default_protocol.as_str())?),
        };
        let mut weaknesses = Vec::new();
        if let Some(than) = &default {
            let strictness = Strictness {
                protocol: than.protocol(),
                is_signed: than.signers()?.is_some(),
            };
            weaknesses = weaker(own, strictness, manifest.evidence);
            if is_default {
                let is_new = |key: &String| weaknesses.iter().all(|known| known.key != *key);
                let more = loosened(files, &than.files()?).into_iter().filter(is_new);
                let more: Vec<Weakness> = more.map(Weakness::of_version).collect();
                weaknesses.extend(more);
            }
        }
        let Some(signers) = authority else {
            return Ok(Self {
                demand: None,
                weaknesses,
            });
        };
        // A protocol's own people may change it, but not below the default.
        let own = match known.filter(|_| weaknesses.is_empty()) {
            Some(known) => Demand::of(known, By::Committer)?,
            None => None,
        };
        let demand = own.unwrap_or_else(|| Demand::new(signers, By::Committer));
        Ok(Self {
            demand: Some(demand),
            weaknesses,
        })
    }

    /// The trailer that says on record that a protocol is weaker; empty if it is not.
    ///
    /// # Errors
    /// [`ProtocolError::Weaker`] if it is, and may not be.
    pub(super) fn weaker_trailer(
        &self,
        name: &str,
        tip: &Snapshot<'_>,
        may_be_weaker: bool,
    ) -> Result<String, ProtocolError> {
        if self.weaknesses.is_empty() {
            return Ok(String::new());
        }
        // Without signatures any writer may weaken a protocol, on record. Adding a key is on record, too:
        // a listed person does it to maintain the list.
        let to_say = || {
            let asked = self.weaknesses.iter();
            asked.filter(|weakness| weakness.key != ADDED_SIGNER)
        };
        if !may_be_weaker && self.demand.is_some() && to_say().next().is_some() {
            let findings = to_say().map(|weakness| weakness.finding.clone());
            return Err(ProtocolError::Weaker {
                name: name.to_owned(),
                default: tip.manifest().default_protocol.to_string(),
                findings: findings.collect(),
            });
        }
        let keys: Vec<&str> = self
            .weaknesses
            .iter()
            .map(|weakness| &*weakness.key)
            .collect();
        Ok(format!("{WEAKER}: {}\n", keys.join(", ")))
    }
}

impl Demand {
    /// The demand for the step that opens an issue. Under a protocol without keys it must be signed
    /// with any key of the default protocol, if that lists some: nobody else takes an issue's key.
    pub(super) fn of_opening(
        rules: &Rules<'_>,
        by: By,
        default: &Rules<'_>,
    ) -> Result<Option<Self>, LedgerError> {
        if let Some(own) = Self::of(rules, by)? {
            return Ok(Some(own));
        }
        let listed = default.signers()?;
        Ok(listed.map(|signers| Self::new(signers, By::Opener)))
    }
}

/// A protocol other than the ledger's default one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OtherProtocol {
    /// Its name.
    pub protocol: AgentName,
    /// The ledger's default protocol.
    pub default: AgentName,
    /// Its steps need no signature, and those of the default protocol do.
    pub unsigned: bool,
}

impl fmt::Display for OtherProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "protocol {}, not {}", self.protocol, self.default)?;
        if self.unsigned {
            f.write_str(": unsigned")?;
        }
        Ok(())
    }
}

impl Snapshot<'_> {
    /// Whether a protocol in force lists keys.
    pub(super) fn lists_keys(&self) -> Result<bool, LedgerError> {
        Ok(authority(self)?.is_some())
    }

    /// A protocol, if it is not the default one.
    ///
    /// # Errors
    /// [`LedgerError`] if a protocol can't be read.
    pub fn other_protocol(&self, name: &AgentName) -> Result<Option<OtherProtocol>, LedgerError> {
        let default = &self.manifest().default_protocol;
        if name == default {
            return Ok(None);
        }
        let is_signed = |name: &AgentName| -> Result<bool, LedgerError> {
            Ok(self.rules(name.as_str())?.signers()?.is_some())
        };
        let unsigned = is_signed(default)? && !is_signed(name)?;
        Ok(Some(OtherProtocol {
            protocol: name.clone(),
            default: default.clone(),
            unsigned,
        }))
    }
}
