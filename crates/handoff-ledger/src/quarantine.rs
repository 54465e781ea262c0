//! Quarantine: a commit on the ledger's branch that is not a step stays in history, but its content
//! no longer counts. A person signs that, and the ledger's manifest lists it.

use std::collections::BTreeMap;

use handoff_base::ids::AgentName;
use handoff_base::{Edit, ObjectId};
use handoff_git::{Change, EntryKind, GitError, Repository, Tree};
use handoff_model::trailers::folded;
use handoff_model::{Refusal, RoleRefusal, Scar, StateRefusal, layout, record};
use handoff_protocol::{AgentKind, Protocol};

use super::archive_step::{archive_step_of, step_changes};
use super::draft::{Decided, Draft};
use super::error::{LedgerError, WriteError};
use super::halt::MOST;
use super::signing::{By, Demand};
use super::snapshot::Snapshot;

/// A person's decision about a commit that is not a step.
#[derive(Clone, Debug)]
pub struct Quarantine {
    /// The person.
    pub by: AgentName,
    /// The reason.
    pub reason: String,
    /// The commit.
    pub commit: ObjectId,
    /// Whether later steps that depend on it may be undone, too.
    pub with_later: bool,
}

/// The scar that a commit with this tree adds, if any.
pub(super) fn scar_of(
    repository: &Repository,
    (old, new): (ObjectId, ObjectId),
    changes: &[Change],
) -> Option<Scar> {
    changes.iter().find(|c| c.path == layout::MANIFEST)?;
    let scars = |tree| {
        Some(
            Snapshot::in_tree(repository, tree)
                .ok()?
                .manifest()
                .quarantined
                .clone(),
        )
    };
    // The previous state may be the damage.
    let (old, mut new) = (scars(old).unwrap_or_default(), scars(new)?);
    new.pop().filter(|scar| !old.contains(scar))
}

/// The changes of a commit and of its dependents, with the previous content.
#[derive(Default)]
struct Undoing {
    before: BTreeMap<String, (Option<ObjectId>, EntryKind)>,
    later: Vec<ObjectId>,
    /// The scars that were added since.
    scars: Vec<Scar>,
}

impl Undoing {
    fn take(&mut self, changes: &[Change], is_quarantine: bool) {
        for change in changes
            .iter()
            .filter(|c| !is_quarantine || c.path != layout::MANIFEST)
        {
            let before = || (change.old, change.kind);
            self.before
                .entry(change.path.clone())
                .or_insert_with(before);
        }
    }

    /// Leaves out what a later step undid itself: a step writes only what changes.
    fn keep_what_differs(&mut self, now: &Tree<'_>) -> Result<(), GitError> {
        for (path, (old, kind)) in std::mem::take(&mut self.before) {
            let is_same = now.entry(&path)? == old.map(|old| (kind, old));
            // Its content is written anew in any case.
            if !is_same || path == layout::MANIFEST {
                self.before.insert(path, (old, kind));
            }
        }
        Ok(())
    }

    fn is_met_by(&self, changes: &[Change], is_quarantine: bool) -> bool {
        let mut changes = changes
            .iter()
            .filter(|c| !is_quarantine || c.path != layout::MANIFEST);
        let is_in = |path: &str, folder: &str| {
            path.strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        changes.any(|change| {
            let path = change.path.as_str();
            let mut known = self.before.keys();
            self.before.contains_key(path)
                || known.any(|known| is_in(path, known) || is_in(known, path))
        })
    }
}

/// Plans the step that quarantines a commit, on the tip. Returns the later steps that are undone
/// with it. The audit plans it again.
pub(super) fn quarantine_step(
    repository: &Repository,
    tip: ObjectId,
    scar: &Scar,
) -> Decided<Vec<ObjectId>> {
    let (mut since, mut found, mut cut_off) = (Vec::new(), None, false);
    for stored in repository.history(tip) {
        let commit = stored?.commit;
        cut_off |= commit.cut_off;
        if commit.id == scar.commit {
            let parent = commit.parents.first().filter(|_| !commit.cut_off);
            found = parent.map(|parent| (*parent, commit.tree));
            break;
        }
        since.push((commit.id, commit.tree));
    }
    let name = scar.commit.short();
    let (sound, stray) = found.ok_or(if cut_off {
        WriteError::CutOff(name)
    } else {
        WriteError::NotOnBranch(name)
    })?;
    let sound = Snapshot::at(repository, sound, "")?;
    let changes = step_changes(repository, sound.tree_id(), stray)?;
    let mut undoing = Undoing::default();
    undoing.take(&changes, false);
    let mut before = stray;
    for (id, tree) in since.into_iter().rev() {
        let changes = step_changes(repository, before, tree)?;
        let added = scar_of(repository, (before, tree), &changes);
        before = tree;
        if undoing.is_met_by(&changes, added.is_some()) {
            if archive_step_of(&changes).is_some() {
                let (commit, step) = (scar.commit.short(), id.short());
                return Err(WriteError::Archived { commit, step }.into());
            }
            undoing.take(&changes, added.is_some());
            undoing.later.push(id);
        }
        undoing.scars.extend(added);
    }
    undoing.keep_what_differs(&Tree::new(repository, before))?;
    let tip = Snapshot::at(repository, tip, "");
    if let Ok(tip) = &tip
        && tip
            .manifest()
            .quarantined
            .iter()
            .any(|known| known.commit == scar.commit)
    {
        return Ok((None, Vec::new()));
    }
    drafted(repository, (tip, sound), undoing, scar)
}

fn drafted(
    repository: &Repository,
    (tip, sound): (Result<Snapshot<'_>, LedgerError>, Snapshot<'_>),
    mut undoing: Undoing,
    scar: &Scar,
) -> Decided<Vec<ObjectId>> {
    // Settings, and who is a person, come from before any stray commit.
    let mut manifest = if undoing.before.remove(layout::MANIFEST).is_some() {
        let mut manifest = sound.manifest().clone();
        manifest.quarantined.append(&mut undoing.scars);
        manifest
    } else {
        tip.as_ref()
            .map_or(sound.manifest(), Snapshot::manifest)
            .clone()
    };
    let is_of_rules = |path: &String| path.starts_with(layout::PROTOCOLS);
    let rules = match tip {
        Ok(tip) if !undoing.before.keys().any(is_of_rules) => tip.default_rules(),
        _ => sound.default_rules(),
    }?;
    ensure_person(rules.protocol(), &scar.by)?;
    let Undoing { before, later, .. } = undoing;
    manifest.quarantined.push(Scar {
        undone: later.clone(),
        ..scar.clone()
    });
    let bytes = record::write(&manifest);
    if bytes.len() > MOST {
        let bytes = MOST;
        return Err(Refusal::from(StateRefusal::HaltsFull { bytes }).into());
    }
    let mut files = vec![(layout::MANIFEST.to_owned(), Edit::Bytes(bytes))];
    for (path, (old, kind)) in before {
        let edit = match (old, kind) {
            (None, _) => Edit::Gone,
            (Some(folder), EntryKind::Tree) => Edit::Folder(folder),
            (Some(file), _) => Edit::Bytes(repository.blob(file)?.to_vec()),
        };
        files.push((path, edit));
    }
    let Scar {
        commit, reason, by, ..
    } = scar;
    let undone: String = later.iter().map(|id| format!("Undone: {id}\n")).collect();
    let message = format!(
        "Quarantine commit {}\n\nQuarantine: {commit}\n{undone}Reason: {}\nFrom: {by}\n",
        commit.short(),
        folded(reason)
    );
    let demand = Demand::of(&rules, By::Agent(by.clone()))?;
    let author = Some(by.clone());
    Ok((
        Some(Draft {
            author,
            ..Draft::shared(files, message, demand)
        }),
        later,
    ))
}

/// Refuses an agent that is not a person; in a protocol without persons, the orchestrator signs.
fn ensure_person(protocol: &Protocol, by: &AgentName) -> Result<(), LedgerError> {
    let mut people: Vec<&AgentName> = protocol.definition().people().collect();
    if people.is_empty() {
        let agents = protocol.definition().agents.iter();
        let leads = agents.filter(|agent| agent.kind == AgentKind::Orchestrator);
        people.extend(leads.map(|agent| &agent.id));
    }
    if people.contains(&by) {
        return Ok(());
    }
    if protocol.agent(by.as_str()).is_none() {
        return Err(Refusal::unknown_agent(by, protocol).into());
    }
    let people = people.into_iter().cloned().collect();
    let agent = by.clone();
    Err(Refusal::from(RoleRefusal::NoSignOff { agent, people }).into())
}
