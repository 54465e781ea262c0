//! The status of a handoff or an issue that a command waits for, and when it changes by itself.

use handoff_base::Moment;
use handoff_base::ids::HandoffId;
use handoff_protocol::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::record::{Issue, IssueStatus, Record};

/// The outcome of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "WaitOutcome")]
pub enum Outcome {
    /// It is done.
    Completed,
    /// It failed, or was rejected or cancelled.
    Failed,
    /// It continues once somebody answers.
    Blocked,
    /// It continues.
    Waiting,
}

/// The status of what a command waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitStatus {
    /// Its outcome.
    pub outcome: Outcome,
    /// The handoffs that determine the outcome.
    pub by: Vec<HandoffId>,
    /// When it changes by itself, if it will.
    pub wake: Option<Moment>,
}

/// What has expired in this state, in a few words.
pub fn overdue_text(state: State) -> &'static str {
    match state {
        State::Pending => "not claimed in time",
        _ => "lease ran out",
    }
}

impl Record {
    /// Its state at this moment: failed if it has expired, even if that is not recorded yet.
    pub fn state_at(&self, now: Moment) -> State {
        if self.is_expired(now) {
            State::Failed
        } else {
            self.state
        }
    }

    /// Its status at this moment.
    pub fn wait_status(&self, now: Moment) -> WaitStatus {
        let outcome = match self.state_at(now) {
            State::Completed => Outcome::Completed,
            State::Failed | State::Dead | State::Rejected | State::Cancelled => Outcome::Failed,
            State::Blocked => Outcome::Blocked,
            State::Pending | State::InProgress => Outcome::Waiting,
        };
        WaitStatus {
            outcome,
            by: vec![self.id.clone()],
            wake: self.expires_at().filter(|_| outcome == Outcome::Waiting),
        }
    }
}

impl Issue {
    /// The status at this moment, from the records of the issue's open handoffs and of its newest
    /// one.
    ///
    /// An issue continues as long as an agent can act without a decision by others: it works, can
    /// claim, or can still send on.
    pub fn wait_status(&self, open: &[Record], newest: &Record, now: Moment) -> WaitStatus {
        let ids = |records: &[&Record]| records.iter().map(|r| r.id.clone()).collect();
        let which = |outcome: Outcome| -> Vec<&Record> {
            let stands = |r: &&Record| r.wait_status(now).outcome == outcome;
            open.iter().filter(stands).collect()
        };
        let status = |outcome, by: &[&Record], wake| WaitStatus {
            outcome,
            by: ids(by),
            wake,
        };
        if self.status == IssueStatus::Completed {
            return status(Outcome::Completed, &[newest], None);
        }
        if self.status == IssueStatus::Cancelled {
            return status(Outcome::Failed, &[newest], None);
        }
        let mut moving = which(Outcome::Waiting);
        // A handoff that waits for others does not move by itself.
        moving.retain(|r| r.state != State::Pending || r.waits_for.is_empty());
        if !moving.is_empty() {
            let wakes = moving.iter().filter_map(|r| r.wait_status(now).wake);
            return status(Outcome::Waiting, &moving, wakes.min());
        }
        let (blocked, failed) = (which(Outcome::Blocked), which(Outcome::Failed));
        if !blocked.is_empty() {
            status(Outcome::Blocked, &blocked, None)
        } else if !failed.is_empty() {
            status(Outcome::Failed, &failed, None)
        } else if !open.is_empty() {
            status(Outcome::Failed, &open.iter().collect::<Vec<_>>(), None)
        } else if !self.awaiting.is_empty() {
            self.awaited_status(newest)
        } else if newest.state != State::Completed {
            status(Outcome::Failed, &[newest], None)
        } else if self.unfollowed.is_empty() {
            // Somebody must now decide or send.
            status(Outcome::Waiting, &[newest], None)
        } else {
            WaitStatus {
                outcome: Outcome::Waiting,
                by: self.unfollowed.clone(),
                wake: None,
            }
        }
    }

    /// The status of an issue in which nothing is open, by what awaits an agent: failed if rejected
    /// or cancelled work does, else waiting.
    fn awaited_status(&self, newest: &Record) -> WaitStatus {
        let is_done = |id: &HandoffId| {
            self.unfollowed.contains(id) || *id == newest.id && newest.state == State::Completed
        };
        let awaiting = || self.awaiting.iter().map(|one| one.id.clone());
        let ended: Vec<HandoffId> = awaiting().filter(|id| !is_done(id)).collect();
        let (outcome, by) = match ended[..] {
            [] => (Outcome::Waiting, awaiting().collect()),
            _ => (Outcome::Failed, ended),
        };
        WaitStatus {
            outcome,
            by,
            wake: None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    fn at(second: i64) -> Moment {
        Moment::from_timestamp_millis(second * 1000).unwrap()
    }

    fn record(number: u32, state: &str, more: Value) -> Record {
        let mut value = json!({
            "version": 4,
            "id": format!("7.{number}"),
            "title": "t",
            "protocol": "p",
            "contract_type": "work",
            "from": "a",
            "to": "b",
            "state": state,
            "summary": "s",
            "contract": { "file": "f", "format": "json", "bytes": 1, "sha256": "" },
            "attempt": 1,
            "transitions": [],
        });
        let fields = value.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    fn held(number: u32, until: i64) -> Record {
        let lease = json!({ "lease": {
            "holder": "b", "worker": "w", "since": at(0).to_rfc3339(), "token": 1,
            "expires_at": at(until).to_rfc3339(),
        }});
        record(number, "in_progress", lease)
    }

    fn issue(status: &str, unfollowed: &[&str]) -> Issue {
        let value = json!({
            "version": 4,
            "issue": "7",
            "title": "t",
            "protocol": "p",
            "status": status,
            "opened_at": at(0).to_rfc3339(),
            "updated_at": at(0).to_rfc3339(),
            "handoffs": 3,
            "steps": 3,
            "open": [],
            "unfollowed": unfollowed,
            "facts": {},
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn each_state_of_a_handoff_has_an_outcome() {
        let table = [
            ("pending", Outcome::Waiting),
            ("in_progress", Outcome::Waiting),
            ("blocked", Outcome::Blocked),
            ("completed", Outcome::Completed),
            ("failed", Outcome::Failed),
            ("dead", Outcome::Failed),
            ("rejected", Outcome::Failed),
            ("cancelled", Outcome::Failed),
        ];
        assert_eq!(table.len(), State::ALL.len());
        for (state, outcome) in table {
            let standing = record(1, state, json!({})).wait_status(at(9));
            assert_eq!(
                (standing.outcome, standing.wake),
                (outcome, None),
                "{state}"
            );
        }
    }

    #[test]
    fn a_lease_ends_at_its_very_second() {
        let before = held(1, 10).wait_status(at(9));
        assert_eq!(
            (before.outcome, before.wake),
            (Outcome::Waiting, Some(at(10)))
        );
        assert_eq!(held(1, 10).state_at(at(9)), State::InProgress);
        let after = held(1, 10).wait_status(at(10));
        assert_eq!((after.outcome, after.wake), (Outcome::Failed, None));
        assert_eq!(held(1, 10).state_at(at(10)), State::Failed);
        // Only a handoff in progress has a lease that counts.
        let mut done = held(1, 10);
        done.state = State::Completed;
        assert_eq!(done.wait_status(at(99)).outcome, Outcome::Completed);
    }

    #[test]
    fn an_issue_goes_on_while_anything_in_it_moves() {
        let open = issue("open", &[]);
        let failed = record(1, "failed", json!({}));
        let pending = record(2, "pending", json!({}));
        let blocked = record(3, "blocked", json!({}));
        let stands = |open_records: &[&Record], now: i64| {
            let records: Vec<Record> = open_records.iter().map(|&r| r.clone()).collect();
            let standing = open.wait_status(&records, &records[records.len() - 1], at(now));
            let by: Vec<u32> = standing.by.iter().map(HandoffId::number).collect();
            (standing.outcome, by, standing.wake)
        };
        assert_eq!(
            stands(&[&failed, &pending], 0),
            (Outcome::Waiting, vec![2], None)
        );
        assert_eq!(
            stands(&[&failed, &blocked], 0),
            (Outcome::Blocked, vec![3], None)
        );
        assert_eq!(stands(&[&failed], 0), (Outcome::Failed, vec![1], None));
        let works = held(2, 10);
        let later = held(3, 20);
        let both = stands(&[&failed, &later, &works], 0);
        assert_eq!(both, (Outcome::Waiting, vec![3, 2], Some(at(10))));
        let one = stands(&[&failed, &later, &works], 10);
        assert_eq!(one, (Outcome::Waiting, vec![3], Some(at(20))));
        assert_eq!(
            stands(&[&failed, &works], 10),
            (Outcome::Failed, vec![1, 2], None)
        );
        // A handoff that waits for the failed one does not move.
        let dependent = record(3, "pending", json!({ "waits_for": ["7.1"] }));
        assert_eq!(
            stands(&[&failed, &dependent], 0),
            (Outcome::Failed, vec![1], None)
        );
        assert_eq!(stands(&[&dependent], 0), (Outcome::Failed, vec![3], None));
    }

    #[test]
    fn an_issue_with_nothing_open_is_done_turned_down_or_with_who_may_send() {
        let outcome = |issue: Issue, newest: &str| {
            let newest = record(3, newest, json!({}));
            issue.wait_status(&[], &newest, at(0)).outcome
        };
        assert_eq!(
            outcome(issue("completed", &[]), "completed"),
            Outcome::Completed
        );
        assert_eq!(
            outcome(issue("completed", &[]), "cancelled"),
            Outcome::Completed
        );
        for newest in ["completed", "cancelled", "rejected"] {
            assert_eq!(outcome(issue("cancelled", &[]), newest), Outcome::Failed);
        }
        assert_eq!(outcome(issue("open", &[]), "completed"), Outcome::Waiting);
        assert_eq!(
            outcome(issue("open", &["7.3"]), "completed"),
            Outcome::Waiting
        );
        assert_eq!(
            outcome(issue("open", &["7.2"]), "rejected"),
            Outcome::Failed
        );
        assert_eq!(outcome(issue("open", &[]), "cancelled"), Outcome::Failed);
    }
}
