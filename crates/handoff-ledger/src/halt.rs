//! Halts: pauses of all work, of an agent or of a protocol. They are stored in the ledger's
//! manifest; each change is a separate commit.

use handoff_base::ids::AgentName;
use handoff_base::{Edit, Moment, ObjectId};
use handoff_model::trailers::folded;
use handoff_model::{
    Halt, HaltEnd, HaltScope, Manifest, Refusal, RoleRefusal, StateRefusal, StepEvent, layout,
    record,
};
use handoff_protocol::Protocol;

use super::draft::{Decided, Draft};
use super::error::LedgerError;
use super::ledger::Ledger;
use super::session::Session;
use super::signing::{By, Demand};
use super::snapshot::Snapshot;

/// The maximum size of the manifest with its halts, in bytes: every command reads it.
pub(super) const MOST: usize = 48 * 1024;

/// The start or end of a halt.
#[derive(Clone, Debug)]
pub struct HaltChange {
    /// The agent that decides it.
    pub by: AgentName,
    /// When.
    pub at: Moment,
    /// The scope.
    pub scope: HaltScope,
    /// The reason.
    pub reason: String,
    /// `Some` starts a halt, `true` if running work is released; `None` ends it.
    pub pauses: Option<bool>,
}

impl Ledger<'_> {
    /// Starts or ends a halt. Returns the commit, or `None` if nothing changed.
    ///
    /// # Errors
    /// [`LedgerError`]; the ledger is then unchanged.
    pub fn halt(
        &mut self,
        session: &Session,
        change: &HaltChange,
    ) -> Result<Option<ObjectId>, LedgerError> {
        let ((), commit) = self.write(session, |_, tip, at| {
            let change = HaltChange {
                at,
                ..change.clone()
            };
            halt_step(tip, &change)
        })?;
        Ok(commit)
    }
}

impl HaltChange {
    /// The change between two manifests, if it is a single one.
    pub(super) fn between(before: &Manifest, after: &Manifest) -> Option<Self> {
        let ends = |one: &Halt| before.paused.contains(one) && !after.paused.contains(one);
        // The same pause may be ended twice within its time's unit.
        let is_new = |end: &HaltEnd| before.resumed.as_ref() != Some(end) || ends(&end.paused);
        if let Some(end) = after.resumed.clone().filter(is_new) {
            return Some(Self {
                by: end.by,
                at: end.at,
                scope: end.paused.scope,
                reason: end.reason,
                pauses: None,
            });
        }
        let new = after
            .paused
            .iter()
            .find(|one| !before.paused.contains(one))?;
        Some(Self {
            by: new.by.clone(),
            at: new.at,
            scope: new.scope.clone(),
            reason: new.reason.clone(),
            pauses: Some(new.now),
        })
    }
}

/// Plans the start or end of a halt. The audit plans it again.
pub(super) fn halt_step(tip: &Snapshot<'_>, change: &HaltChange) -> Decided<()> {
    let HaltChange {
        by, scope, reason, ..
    } = change;
    let manifest = tip.manifest();
    let own = scope
        .protocol
        .as_ref()
        .unwrap_or(&manifest.default_protocol);
    let rules = tip.named_rules(own.as_str())?;
    ensure_known(tip, rules.protocol(), change)?;
    let mut manifest = manifest.clone();
    let known = manifest.paused.iter().position(|one| one.scope == *scope);
    let known = known.map(|at| manifest.paused.remove(at));
    let (what, event) = match (change.pauses, known) {
        (Some(now), known) => {
            let halt = Halt {
                at: change.at,
                by: by.clone(),
                reason: reason.clone(),
                scope: scope.clone(),
                now,
            };
            let same = |known: &Halt| (&known.by, &known.reason, known.now) == (by, reason, now);
            if known.as_ref().is_some_and(same) {
                return Ok((None, ()));
            }
            manifest.paused.push(halt);
            ("Pause", StepEvent::Pause)
        }
        (None, Some(paused)) => {
            manifest.resumed = Some(HaltEnd {
                at: change.at,
                by: by.clone(),
                reason: reason.clone(),
                paused,
            });
            ("Resume", StepEvent::Reopen)
        }
        (None, None) => {
            let last = manifest.resumed.as_ref();
            if last.is_some_and(|last| {
                (&last.by, &last.reason, &last.paused.scope) == (by, reason, scope)
            }) {
                return Ok((None, ()));
            }
            let paused = manifest.paused.into_iter().map(|one| one.scope).collect();
            let scope = Box::new(scope.clone());
            return Err(Refusal::from(StateRefusal::NotHalted { scope, paused }).into());
        }
    };
    let bytes = record::write(&manifest);
    if bytes.len() > MOST {
        let bytes = MOST;
        return Err(Refusal::from(StateRefusal::HaltsFull { bytes }).into());
    }
    let now = if change.pauses == Some(true) {
        ", now"
    } else {
        ""
    };
    let message = format!(
        "{what} {scope}{now}\n\nEvent: {}\n{what}: {}{now}\nReason: {}\nFrom: {by}\n",
        event.as_str(),
        scope.option(),
        folded(reason)
    );
    let files = vec![(layout::MANIFEST.to_owned(), Edit::Bytes(bytes))];
    let demand = Demand::of(&rules, By::Agent(by.clone()))?;
    Ok((
        Some(Draft {
            author: Some(by.clone()),
            ..Draft::shared(files, message, demand)
        }),
        (),
    ))
}

/// Refuses an agent that may not decide about everything, and a name that no protocol defines.
fn ensure_known(
    tip: &Snapshot<'_>,
    protocol: &Protocol,
    change: &HaltChange,
) -> Result<(), LedgerError> {
    let by = &change.by;
    let agents = protocol.definition().agents.iter();
    let names = agents.map(|agent| &agent.id);
    let mut who = names.filter(|agent| protocol.steps_in(agent));
    if !who.clone().any(|lead| lead == by) {
        if protocol.agent(by.as_str()).is_none() {
            return Err(Refusal::unknown_agent(by, protocol).into());
        }
        let refused = RoleRefusal::NotLead {
            agent: by.clone(),
            leads: who.by_ref().cloned().collect(),
        };
        return Err(Refusal::from(refused).into());
    }
    let Some(agent) = &change.scope.agent else {
        return Ok(());
    };
    let mut knows = protocol.agent(agent.as_str()).is_some();
    if change.scope.protocol.is_none() {
        for name in tip.protocols()? {
            knows |= tip.rules(&name)?.protocol().agent(agent.as_str()).is_some();
        }
    }
    if knows {
        return Ok(());
    }
    Err(Refusal::unknown_agent(agent, protocol).into())
}
