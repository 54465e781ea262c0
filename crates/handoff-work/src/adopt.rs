//! Resumes the work of this clone's killed workers, or records that it failed.

use std::time::{Duration, Instant};

use handoff::base::ids::HandoffId;
use handoff::ledger::Snapshot;
use handoff::protocol::RunFailure;

use super::program::Actor;
use super::slot::{Note, Slot};
use super::{AGAIN, Bounds, Supervisor};
use handoff_cli::output::Output;
use handoff_cli::process::ProcessGroup;

/// How long a killed worker's slot is left to a worker of the same agent, before a worker of other
/// agents records its work as failed.
const ABANDONED: Duration = Duration::from_secs(60);

/// The error if the remote is unreachable now.
struct Away;

impl Supervisor<'_> {
    /// Resumes the work of killed workers of this clone.
    pub(super) fn go_on(&mut self, tip: &Snapshot<'_>, output: &mut Output) {
        let slots = Slot::left_behind(&self.folder);
        let is_there = |number: &usize| slots.iter().any(|slot| slot.number == *number);
        self.abandoned.retain(|number, _| is_there(number));
        for slot in slots {
            let Some(note) = slot.note() else { continue };
            let is_other = |id: &HandoffId| Some(id.issue()) != self.plan.issue.as_ref();
            if self.plan.issue.is_some() && note.id.as_ref().is_none_or(is_other) {
                // The issue is another or unknown: leave the slot to a worker for all issues.
                continue;
            }
            let role = self
                .plan
                .roles
                .iter()
                .position(|role| role.agent == note.agent);
            let may_more = self.plan.most.is_none_or(|most| self.claimed < most);
            let has_room = may_more && role.is_some_and(|role| self.has_room(role));
            if has_room && role.is_some_and(|role| self.rests(role)) {
                continue;
            }
            if let (Some(role), true) = (role, has_room) {
                self.adopt(slot, note, role, tip, output);
                continue;
            }
            let since = *self
                .abandoned
                .entry(slot.number)
                .or_insert_with(Instant::now);
            if role.is_none() && since.elapsed() >= ABANDONED {
                self.abandoned.remove(&slot.number);
                self.give_up(&slot, &note, output);
            }
        }
    }

    /// Resumes the handoff of a killed worker, as that worker.
    fn adopt(
        &mut self,
        slot: Slot,
        note: Note,
        role: usize,
        tip: &Snapshot<'_>,
        output: &mut Output,
    ) {
        let actor = Actor {
            agent: note.agent.clone(),
            worker: note.worker.clone(),
        };
        let interrupted = note.group.as_ref().is_some_and(ProcessGroup::is_alive);
        if let Some(group) = note.group.as_ref().filter(|_| interrupted) {
            group.end(self.plan.roles[role].bounds.grace);
        }
        // Start the processes of this worker under a mark of their own, noted first.
        let group = ProcessGroup::marked();
        let note = Note {
            group: Some(group.clone()),
            was_running: interrupted,
            ..note
        };
        // If the note can't be written, a later worker won't find these processes.
        let _ = slot.write(&note);
        let program = self.program.marked(&group);
        let said = match self.held(&actor) {
            Ok(Some(id)) => program.run(&actor, &["claim", &id.to_string()]),
            Ok(None) => return self.forget(slot),
            Err(Away) => {
                self.resting.insert(role, Instant::now() + AGAIN);
                return;
            }
        };
        let id = said.data()["handoff"]["id"]
            .as_str()
            .and_then(|id| id.parse().ok());
        match (said.exit, id) {
            (0, Some(id)) => {
                let how = if note.is_left {
                    "stopped"
                } else {
                    "was killed"
                };
                output.say(&format!(
                    "{id} {}: going on where a worker {how}",
                    actor.agent
                ));
                let claimed = (id, said.data().clone(), Some(note), group);
                self.start(slot, role, actor, claimed, tip);
            }
            // The remote is unreachable, or lacks the claim so far: keep the note for later.
            (7..=9, _) => drop(self.resting.insert(role, Instant::now() + AGAIN)),
            _ => self.forget(slot),
        }
    }

    /// Frees the slot of a worker that left nothing to resume.
    fn forget(&mut self, slot: Slot) {
        slot.clear();
        self.free.push(slot);
    }

    /// The handoff that a worker holds by the newest state of the ledger: it may have been killed
    /// before it noted the claim, or after it sent the work on.
    fn held(&self, actor: &Actor) -> Result<Option<HandoffId>, Away> {
        if self.tracking().is_some() && self.program.run(actor, &["fetch"]).exit != 0 {
            return Err(Away);
        }
        let said = self
            .program
            .run(actor, &["inbox", "--limit", "0", "--offline"]);
        let handoffs = said.data()["handoffs"].as_array();
        let mut own = handoffs.into_iter().flatten().filter(|handoff| {
            handoff["state"] == "in_progress" && handoff["worker"] == actor.worker.as_str()
        });
        Ok(own.find_map(|handoff| handoff["id"].as_str()?.parse().ok()))
    }

    /// Records as failed the work of a killed worker whose agent this worker does not run.
    fn give_up(&self, slot: &Slot, note: &Note, output: &mut Output) {
        let actor = Actor {
            agent: note.agent.clone(),
            worker: note.worker.clone(),
        };
        if let Some(group) = &note.group {
            group.end(Bounds::default().grace);
        }
        let Ok(held) = self.held(&actor) else { return };
        if let Some(id) = held {
            let words = [
                "fail",
                &id.to_string(),
                "--run-failure",
                RunFailure::WorkerLost.as_str(),
                "--message",
                "its worker was killed, and no other worker of its agent resumed the work",
            ];
            let said = self.program.run(&actor, &words);
            if said.may_pass() {
                // Keep the note for later.
                return;
            }
            if matches!(said.exit, 0 | 8) {
                output.say(&format!(
                    "{id} {}: its worker was killed, and did not come back",
                    note.agent
                ));
            }
        }
        slot.clear();
    }
}
