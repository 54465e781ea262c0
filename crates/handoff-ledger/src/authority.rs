//! Who may put protocols in force once one of them has a list of keys, and how the others compare
//! with the default protocol. Used by the write path and the audit.

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use handoff_base::finding::Finding;
use handoff_base::ids::AgentName;
use handoff_model::{
    ADDED_SIGNER, ProtocolFiles, Strictness, Weakness, acts_as_person, loosened, person, trailers,
    weaker,
};
use handoff_protocol::{Protocol, SIGNERS, Signers};
use schemars::JsonSchema;
use serde::Serialize;

use super::error::{LedgerError, ProtocolError};
use super::signing::{By, Demand};
use super::snapshot::{Rules, Snapshot};

/// The keys that may put a protocol in force: those of the default protocol, else those of every
/// protocol with a list; `None` if there is no list.
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

/// The trailer that lists the checks that are weaker than in the default protocol.
pub(super) const WEAKER: &str = "Weaker";

/// Puts the recorded `Weaker` keys into a derived message, if they only add what early versions
/// counted as weaker: every changed policy of a rule, every changed limit, and every new field of a
/// closed schema.
pub(super) fn with_recorded_policies(message: String, recorded: &[u8]) -> String {
    let keys = |text: &str| -> Vec<String> {
        let mut trailers = trailers(text).into_iter();
        let weaker = trailers.find(|(name, _)| *name == WEAKER);
        let listed = weaker.map(|(_, keys)| keys.split(", ").map(str::to_owned).collect());
        listed.unwrap_or_default()
    };
    let (own, told) = (keys(&message), keys(&String::from_utf8_lossy(recorded)));
    let early = ["consistency.", "limits.", "schema."];
    let is_early = |key: &str| early.iter().any(|part| key.starts_with(part));
    let is_known = |key: &String| own.contains(key) || is_early(key);
    if !told.iter().all(is_known) || !own.iter().all(|key| told.contains(key)) {
        return message;
    }
    let (rest, _) = message
        .split_once(&format!("{WEAKER}: "))
        .unwrap_or((&message, ""));
    format!("{rest}{}", weaker_trailer(&told))
}

/// The trailer with these keys; empty if there are none.
pub(super) fn weaker_trailer(keys: &[String]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    format!("{WEAKER}: {}\n", keys.join(", "))
}

/// A protocol to put in force: the required signature and its trailer.
pub(super) struct Authorized {
    /// The required signature.
    pub(super) demand: Option<Demand>,
    /// The checks that are weaker than in the default protocol, or than in its version in force.
    weaknesses: Vec<Weakness>,
    /// For a protocol other than the default: the checks that are weaker than in its version in
    /// force, or, if it is new and for the same issues, than in the default one.
    than_before: Vec<Weakness>,
}

impl Authorized {
    /// Compares a protocol with the default one, if a protocol of the ledger lists keys; compares a
    /// new version of the default one with `known`, the version in force, in any ledger.
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
        let compared = |than: &Rules<'_>, is_version: bool| -> Result<Vec<Weakness>, LedgerError> {
            let strictness = Strictness {
                protocol: than.protocol(),
                is_signed: than.signers()?.is_some(),
            };
            let mut weaknesses = weaker(own, strictness, manifest.evidence);
            if is_version {
                let is_new =
                    |(key, _): &(String, String)| weaknesses.iter().all(|known| known.key != *key);
                let more = loosened(files, &than.files()?).into_iter().filter(is_new);
                let more: Vec<Weakness> = more.map(Weakness::of_version).collect();
                weaknesses.extend(more);
            }
            Ok(weaknesses)
        };
        let weaknesses = match &default {
            Some(than) => compared(than, is_default)?,
            None => Vec::new(),
        };
        let than_before = match known {
            _ if is_default => Vec::new(),
            Some(known) => compared(known, true)?,
            // What takes the same opening contracts would be followed in the default one's stead.
            None => {
                let than = tip.rules(manifest.default_protocol.as_str())?;
                let opens = |protocol: &Protocol| -> BTreeSet<String> {
                    let routes = protocol.definition().routes.iter();
                    let opening = routes.filter(|route| route.opens);
                    opening.flat_map(|route| route.contracts.clone()).collect()
                };
                if opens(protocol).is_disjoint(&opens(than.protocol())) {
                    Vec::new()
                } else {
                    compared(&than, true)?
                }
            }
        };
        let Some(signers) = authority else {
            return Ok(Self {
                demand: None,
                weaknesses,
                than_before,
            });
        };
        // A protocol's own signers may change it, but not below the default.
        let own = match known.filter(|_| weaknesses.is_empty()) {
            Some(known) => Demand::of(known, By::Committer)?,
            None => None,
        };
        let demand = own.unwrap_or_else(|| Demand::new(signers, By::Committer));
        Ok(Self {
            demand: Some(demand),
            weaknesses,
            than_before,
        })
    }

    /// Compares a protocol in force that becomes the default one with the one that is.
    pub(super) fn as_default(
        tip: &Snapshot<'_>,
        protocol: &Rules<'_>,
        than: &Rules<'_>,
    ) -> Result<Self, LedgerError> {
        let strictness = |rules| -> Result<Strictness<'_>, LedgerError> {
            let rules: &Rules<'_> = rules;
            Ok(Strictness {
                protocol: rules.protocol(),
                is_signed: rules.signers()?.is_some(),
            })
        };
        let evidence = tip.manifest().evidence;
        let weaknesses = weaker(strictness(protocol)?, strictness(than)?, evidence);
        let authority = authority(tip)?;
        Ok(Self {
            demand: authority.map(|signers| Demand::new(signers, By::Committer)),
            weaknesses,
            than_before: Vec::new(),
        })
    }

    /// Refuses an agent that weakens a protocol, for instance by a higher limit. `rules` tells who
    /// is a person.
    ///
    /// # Errors
    /// [`ProtocolError::WeakerByAgent`].
    pub(super) fn ensure_by_person(
        &self,
        rules: &Protocol,
        agent: &AgentName,
        name: &str,
    ) -> Result<(), ProtocolError> {
        let mut findings = said(&self.weaknesses);
        findings.extend(said(&self.than_before));
        // A protocol may have nobody who decides.
        let decides = person(rules).or(rules.lead());
        if findings.is_empty() || acts_as_person(rules, agent) || decides.is_none() {
            return Ok(());
        }
        let people = rules.definition().people().chain(decides);
        let people: BTreeSet<&AgentName> = people.collect();
        Err(ProtocolError::WeakerByAgent {
            name: name.to_owned(),
            agent: agent.clone(),
            people: people.into_iter().map(AgentName::to_string).collect(),
            findings,
        })
    }

    /// The keys of the checks that are weaker than in the version in force, if no trailer has them.
    pub(super) fn unrecorded_keys(&self) -> Vec<String> {
        let is_recorded = |key: &str| self.weaknesses.iter().any(|known| known.key == key);
        let keys = self.than_before.iter().map(|weakness| weakness.key.clone());
        keys.filter(|key| !is_recorded(key)).collect()
    }

    /// The keys of the weakened checks, for the trailer that records them.
    ///
    /// # Errors
    /// [`ProtocolError::Weaker`] if it is weaker, and must not be.
    pub(super) fn weaker_keys(
        &self,
        name: &str,
        tip: &Snapshot<'_>,
        may_be_weaker: bool,
    ) -> Result<Vec<String>, ProtocolError> {
        // Without signatures, any person may weaken a protocol: it is recorded.
        let findings = said(&self.weaknesses);
        if !may_be_weaker && self.demand.is_some() && !findings.is_empty() {
            return Err(ProtocolError::Weaker {
                name: name.to_owned(),
                default: tip.manifest().default_protocol.to_string(),
                findings,
            });
        }
        let keys = self.weaknesses.iter().map(|weakness| weakness.key.clone());
        Ok(keys.collect())
    }
}

/// The keys in which a new version of a protocol differs from the one in force.
pub(super) struct Compared {
    /// What it checks more.
    pub(super) more: BTreeSet<String>,
    /// What may be checked more or less, or is a fact, which checks nothing.
    pub(super) changed: BTreeSet<String>,
}

/// Compares a new version of a protocol with the one in force.
pub(super) fn compared(
    tip: &Snapshot<'_>,
    known: &Rules<'_>,
    protocol: &Protocol,
    files: &ProtocolFiles,
) -> Result<Compared, LedgerError> {
    let list = files.iter().find(|(path, _)| path == SIGNERS);
    let was = Strictness {
        protocol: known.protocol(),
        is_signed: known.signers()?.is_some(),
    };
    let is = Strictness {
        protocol,
        is_signed: list.is_some_and(|(_, bytes)| !Signers::parse(bytes).0.is_empty()),
    };
    let before = known.files()?;
    let keys = |one: (Strictness<'_>, &ProtocolFiles), than: (Strictness<'_>, &ProtocolFiles)| {
        let weaker = weaker(one.0, than.0, tip.manifest().evidence).into_iter();
        let keys = weaker.map(|weakness| weakness.key);
        let keys: BTreeSet<String> = keys.chain(loosened(one.1, than.1).into_keys()).collect();
        keys
    };
    let less = keys((is, files), (was, &before));
    let more = keys((was, &before), (is, files));
    let checks = |key: &String, of: &Protocol| {
        let fact = key.strip_prefix("facts.");
        fact.is_none_or(|name| of.definition().facts.get(name).is_some_and(|f| f.exclusive))
    };
    let known = known.protocol();
    let in_both = |key: &&String| more.contains(*key) || !checks(key, known);
    let changed = less.iter().filter(in_both).cloned().collect();
    let only_more = |key: &&String| !less.contains(*key) && checks(key, protocol);
    Ok(Compared {
        more: more.iter().filter(only_more).cloned().collect(),
        changed,
    })
}

/// The findings about weaknesses. None if only keys were added: a listed person does that to
/// maintain the list, and it is recorded anyway.
fn said(weaknesses: &[Weakness]) -> Vec<Finding> {
    if weaknesses
        .iter()
        .all(|weakness| weakness.key == ADDED_SIGNER)
    {
        return Vec::new();
    }
    let all = weaknesses.iter().map(|weakness| weakness.finding.clone());
    all.collect()
}

impl Demand {
    /// The signature demanded of the step that opens an issue. Under a protocol without keys, that
    /// is any key of the default protocol, if it lists some, so that nobody else can take an
    /// issue's key.
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
    /// Its steps need no signature, but those of the default protocol do.
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
