//! The steps that need no mind: what the protocol's rules say about work that failed or whose lease
//! ran out.

use handoff::base::Moment;
use handoff::ledger::Snapshot;
use handoff::ledger::attention;
use handoff::model::{Advice, View, decider, needs_attention};
use handoff::protocol::{Action, Need};

use super::Supervisor;
use super::program::Actor;
use handoff_cli::failure::Failure;
use handoff_cli::output::Output;

impl Supervisor<'_> {
    /// Carries out one step that is due. Returns whether the ledger changed.
    pub(super) fn decide(
        &mut self,
        tip: &Snapshot<'_>,
        now: Moment,
        output: &mut Output,
    ) -> Result<bool, Failure> {
        // One worker of a clone is enough; if it is killed, the next one takes this over.
        if self.deciding.is_none() {
            self.deciding = handoff_cli::process::locked(&self.folder.join("decide.lock"))
                .ok()
                .flatten();
        }
        if self.deciding.is_none() {
            return Ok(false);
        }
        let mut records = Vec::new();
        for entry in tip.open()? {
            records.push(tip.open_record(&entry)?);
        }
        let protocols = attention::protocols(tip, now)?;
        for one in attention::of_tip(tip, &records, &protocols, now)? {
            if self
                .plan
                .issue
                .as_ref()
                .is_some_and(|key| *key != one.issue)
            {
                continue;
            }
            let key = one.issue.to_string();
            let mut agent = one.turn.clone();
            let words = match one.need {
                Need::LeaseRanOut | Need::Unclaimed if is_over(&records, &one.id, now) => {
                    vec!["reap"]
                }
                Need::Failed | Need::Dead => {
                    let folder = tip.issue(&one.issue)?;
                    let Some(issue) = folder.issue()? else {
                        continue;
                    };
                    let rules = tip.rules(issue.protocol.as_str())?;
                    let advised = needs_attention(rules.protocol(), &folder, &issue, now)?;
                    let Some((advice, record)) = advised else {
                        continue;
                    };
                    if !needs_no_mind(&advice) {
                        continue;
                    }
                    // Nothing is done in the name of a person.
                    agent = decider(rules.protocol(), &record.from).clone();
                    vec!["next", &key, "--apply"]
                }
                _ => continue,
            };
            let actor = Actor {
                agent,
                worker: self.base.clone(),
            };
            let said = self.program.run(&actor, &words);
            // The clock of a step and that of its recording may differ: then nothing ran out yet.
            let reaped = said.data()["handoffs"].as_array();
            let is_early = reaped.is_some_and(Vec::is_empty);
            if matches!(said.exit, 0 | 8) && !is_early {
                let action = said.data()["action"].as_str().unwrap_or("reap");
                output.say(&format!("{} {}: {action}", one.id, actor.agent));
                self.done.decided += 1;
                return Ok(true);
            }
            if said.code() == "nothing_to_decide" {
                // Somebody else was faster.
                continue;
            }
            let told = format!("{}: not decided: {}", one.id, said.message());
            if self.told.insert(told.clone()) {
                output.say(&told);
            }
        }
        Ok(false)
    }
}

/// Whether a time ran out that a step records.
fn is_over(
    records: &[handoff::model::Record],
    id: &handoff::base::ids::HandoffId,
    now: Moment,
) -> bool {
    records
        .iter()
        .any(|record| record.id == *id && record.is_expired(now))
}

/// Whether carrying it out takes nobody's judgement, and loses nothing.
fn needs_no_mind(advice: &Advice) -> bool {
    let moves = matches!(advice.action, Action::Retry | Action::Reassign);
    let asks_person = advice.action.is_with_person();
    !advice.by_contract && (moves || asks_person && advice.decided.is_none())
}
