//! The protocol that new issues follow, if none is named. The manifest names it; each change is a
//! separate commit.

use handoff_base::ids::AgentName;
use handoff_base::{Edit, ObjectId};
use handoff_model::{Manifest, layout, record};
use schemars::JsonSchema;
use serde::Serialize;

use super::authority::{Authorized, weaker_trailer};
use super::draft::{Decided, Draft};
use super::error::LedgerError;
use super::ledger::Ledger;
use super::session::Session;
use super::snapshot::Snapshot;

/// The change of the default protocol.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DefaultChange {
    /// The protocol that new issues follow now.
    pub protocol: AgentName,
    /// The one that they followed before.
    pub before: AgentName,
    /// What it checks less than that one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weaker: Vec<String>,
    /// The commit that was written; null if it was the default already.
    pub commit: Option<ObjectId>,
}

impl Ledger<'_> {
    /// Makes a protocol in force the default one. `may_be_weaker` allows it to check less than the
    /// one before, which is recorded.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn use_protocol(
        &mut self,
        session: &Session,
        name: &str,
        may_be_weaker: bool,
    ) -> Result<DefaultChange, LedgerError> {
        let by = session.agent.as_ref();
        let (mut done, commit) = self.write(session, |_, tip, _| {
            default_step(tip, name, (may_be_weaker, by))
        })?;
        done.commit = commit;
        Ok(done)
    }
}

/// The default protocol after a change of the manifest, if that is what changed.
pub(super) fn new_default<'m>(before: &Manifest, after: &'m Manifest) -> Option<&'m AgentName> {
    let new = &after.default_protocol;
    (before.default_protocol != *new).then_some(new)
}

/// Plans the change of the default protocol: other protocols are compared with that one, and its
/// people put them in force. So only a person of the one before may change it, and where keys are
/// listed, only a listed one. The audit plans it again.
pub(super) fn default_step(
    tip: &Snapshot<'_>,
    name: &str,
    (may_be_weaker, by): (bool, Option<&AgentName>),
) -> Decided<DefaultChange> {
    let rules = tip.named_rules(name)?;
    let before = tip.default_rules()?;
    let mut manifest = tip.manifest().clone();
    let mut outcome = DefaultChange {
        protocol: rules.protocol().definition().name.clone(),
        before: manifest.default_protocol.clone(),
        weaker: Vec::new(),
        commit: None,
    };
    if outcome.protocol == outcome.before {
        return Ok((None, outcome));
    }
    let authorized = Authorized::as_default(tip, &rules, &before)?;
    let mut message = format!("Use protocol {name} by default\n\nProtocol: {name}\n");
    if let Some(by) = by {
        authorized.ensure_by_person(before.protocol(), by, name)?;
        message += &format!("From: {by}\n");
    }
    outcome.weaker = authorized.weaker_keys(name, tip, may_be_weaker)?;
    message += &weaker_trailer(&outcome.weaker);
    manifest.default_protocol = outcome.protocol.clone();
    let files = vec![(
        layout::MANIFEST.to_owned(),
        Edit::Bytes(record::write(&manifest)),
    )];
    let step = Draft {
        author: by.cloned(),
        ..Draft::shared(files, message, authorized.demand)
    };
    Ok((Some(step), outcome))
}
