//! What holds in every issue, whatever is asked for.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use handoff::base::ids::WorkerId;
use handoff::base::{Edit, Moment};
use handoff::ledger::attention::{deciding, of_issue};
use handoff::ledger::{HandoffSurvey, IssueSurvey};
use handoff::model::open_entry::{awaiting_path, open_path};
use handoff::model::{
    DaySpending, EventArgs, FileChanges, Issue, IssueStatus, Planned, PlannedStep, Record, Spent,
    Transition, Update, layout, record,
};
use handoff::protocol::{Event, State as Lifecycle};

use super::act::{Act, Asked, WORKERS};
use super::recorded::recorded;
use super::state::State;
use super::world::{ATTEMPTS, TOKENS, World};

/// A step, and the states before and after it.
pub(crate) struct Taken<'a> {
    pub(crate) world: &'a World,
    pub(crate) before: &'a State,
    pub(crate) after: &'a State,
    pub(crate) act: &'a Act,
    pub(crate) step: &'a PlannedStep,
}

/// Whether an invariant holds, or how it does not.
type Held = Result<(), String>;

/// Its name, and what it looks at.
type Invariant = (&'static str, fn(&Taken<'_>) -> Held);

/// Every invariant, by name.
pub(crate) const ALL: [Invariant; 14] = [
    ("one holder at most", one_holder_at_most),
    (
        "a claim changes hands on record",
        claims_change_hands_on_record,
    ),
    (
        "only the holder's worker acts",
        only_the_holders_worker_acts,
    ),
    ("terminal states stay", terminal_states_stay),
    ("an issue that ended stays ended", ended_issues_stay_ended),
    ("attempts never fall", attempts_never_fall),
    (
        "the same again writes nothing",
        the_same_again_writes_nothing,
    ),
    (
        "the step follows from the states",
        the_step_is_in_its_message,
    ),
    ("attention while open", attention_while_open),
    ("a pause holds work back", a_pause_holds_work_back),
    ("entries equal what is open", entries_equal_what_is_open),
    ("times never run backwards", times_never_run_backwards),
    (
        "sums are those of the records",
        sums_are_those_of_the_records,
    ),
    (
        "nothing is claimed beyond a budget",
        nothing_is_claimed_beyond_a_budget,
    ),
];

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Held {
    if holds { Ok(()) } else { Err(otherwise()) }
}

impl Taken<'_> {
    fn issue(&self) -> &Issue {
        self.after.issue.as_deref().unwrap()
    }

    /// Each record before and after the step.
    fn pairs(&self) -> impl Iterator<Item = (&Record, &Record)> {
        let before = self.before.records.iter().map(AsRef::as_ref);
        before.zip(self.after.records.iter().map(AsRef::as_ref))
    }
}

/// A handoff has a lease if and only if its receiver works on it; it names that agent, one worker,
/// and the number of its claim.
fn one_holder_at_most(taken: &Taken<'_>) -> Held {
    for record in &taken.after.records {
        let works = record.state == Lifecycle::InProgress;
        let right = match &record.lease {
            Some(lease) => works && lease.holder == record.to && lease.token == record.claims(),
            None => !works,
        };
        ensure(right, || format!("{}: {:?}", record.id, record.lease))?;
    }
    Ok(())
}

/// A lease passes from one worker to another only by a takeover, or after the work stopped; each
/// has a higher token.
fn claims_change_hands_on_record(taken: &Taken<'_>) -> Held {
    for (was, is) in taken.pairs() {
        let (Some(old), Some(new)) = (&was.lease, &is.lease) else {
            continue;
        };
        let took = is.transitions[was.transitions.len()..].iter();
        let took = took.filter(|t| t.event == Some(Event::TakeOver)).count();
        let same = (&old.holder, &old.worker, old.token) == (&new.holder, &new.worker, new.token);
        let right = if took == 0 {
            same
        } else {
            new.token > old.token
        };
        ensure(right, || format!("{}: {old:?} became {new:?}", is.id))?;
    }
    Ok(())
}

/// Of the workers of an agent, only the one that holds a handoff may report on it.
fn only_the_holders_worker_acts(taken: &Taken<'_>) -> Held {
    let (state, at) = (taken.after, taken.act.at);
    for record in &state.records {
        let Some(lease) = &record.lease else {
            continue;
        };
        for worker in WORKERS {
            let args = EventArgs {
                progress: Some(format!("{worker} is at it")),
                ..EventArgs::default()
            };
            let worker: WorkerId = worker.parse().unwrap();
            let act = Act {
                agent: record.to.clone(),
                at,
                traceparent: None,
                usage: Vec::new(),
                delivery: None,
                asked: Asked::Update(Update::change(record.id.number(), Event::Extend, args)),
                worker: Some(worker),
            };
            let may = act.plan(taken.world, state).is_ok();
            let holds = act.worker.as_ref() == Some(&lease.worker);
            ensure(holds || !may, || {
                format!("{}: {:?} may too", record.id, act.worker)
            })?;
        }
    }
    Ok(())
}

/// The transitions of a handoff are only added to, each as the lifecycle has it; one that ended
/// never changes, and one that is dead leaves that state by a redrive or by being cancelled.
fn terminal_states_stay(taken: &Taken<'_>) -> Held {
    for (was, is) in taken.pairs() {
        let (old, all) = (was.transitions.len(), &is.transitions);
        let kept = all.get(..old) == Some(&was.transitions[..]);
        ensure(kept, || format!("{}: its past changed", is.id))?;
        // What it took can be reported later.
        let same = Record {
            usage: was.usage.clone(),
            ..is.clone()
        } == *was;
        ensure(!was.state.is_terminal() || same, || {
            format!("{} ended as {} and changed", is.id, was.state)
        })?;
        let mut state = was.state;
        for transition in &all[old..] {
            let event = transition.event.unwrap();
            let legal = state.on(event) == Ok(transition.to) && transition.from == Some(state);
            ensure(legal, || format!("{}: {event} while {state}", is.id))?;
            let leaves_death = matches!(event, Event::Redrive | Event::Cancel);
            ensure(state != Lifecycle::Dead || leaves_death, || {
                format!("{}: {event} while dead", is.id)
            })?;
            state = transition.to;
        }
        ensure(state == is.state, || {
            format!("{}: {state}, not {}", is.id, is.state)
        })?;
    }
    Ok(())
}

/// An issue that was given up opens again only by a reopening; one that was completed, also by a
/// contract that may open an issue.
fn ended_issues_stay_ended(taken: &Taken<'_>) -> Held {
    let (Some(was), is) = (&taken.before.issue, taken.issue()) else {
        return Ok(());
    };
    let reopened = matches!(taken.act.asked, Asked::Update(Update::Reopen { .. }));
    let sent = matches!(taken.act.asked, Asked::Send(_));
    let right = match (was.status, is.status) {
        (IssueStatus::Cancelled, IssueStatus::Cancelled) => true,
        (IssueStatus::Cancelled, status) => reopened && status == IssueStatus::Open,
        (IssueStatus::Completed, IssueStatus::Open) => reopened || sent,
        (IssueStatus::Completed, IssueStatus::Cancelled) => false,
        (IssueStatus::Open, _) | (_, IssueStatus::Completed) => true,
    };
    ensure(right, || format!("{:?} became {:?}", was.status, is.status))
}

/// Attempts, handoffs, steps and claims are only counted up: attempts by a retry, a redrive or a
/// reassignment, by one.
fn attempts_never_fall(taken: &Taken<'_>) -> Held {
    for (was, is) in taken.pairs() {
        let again = is.transitions[was.transitions.len()..].iter();
        let again = again.filter(|t| {
            let failed = t.from == Some(Lifecycle::Failed);
            matches!(t.event, Some(Event::Retry | Event::Redrive))
                || t.event == Some(Event::Reassign) && failed
        });
        let more = u32::try_from(again.count()).unwrap();
        ensure(
            is.attempt == was.attempt + more && is.claims() >= was.claims(),
            || format!("{}: attempt {} became {}", is.id, was.attempt, is.attempt),
        )?;
    }
    let (was, is) = (&taken.before.issue, taken.issue());
    let (steps, handoffs) = was.as_ref().map_or((0, 0), |i| (i.steps, i.handoffs));
    let records = u32::try_from(taken.after.records.len()).unwrap();
    let right = is.steps == steps + 1 && is.handoffs >= handoffs && is.handoffs == records;
    ensure(right, || {
        format!("{steps} steps and {handoffs} handoffs became {is:?}")
    })
}

/// The same request again, a second later, writes nothing. An extension counts from then on.
fn the_same_again_writes_nothing(taken: &Taken<'_>) -> Held {
    let mut again = taken.act.clone();
    let extends = matches!(
        &again.asked,
        Asked::Update(Update::Change {
            event: Event::Extend,
            ..
        })
    );
    if !extends {
        again.at += TimeDelta::seconds(1);
    }
    match again.plan(taken.world, taken.after) {
        Ok(Planned::Write(step)) => Err(format!("it wrote: {}", step.message)),
        Ok(Planned::Repeat(receipt)) => ensure(receipt.repeated, || "not as repeated".to_owned()),
        Err(_) => Ok(()),
    }
}

/// The message has the request as it was made, whose plan is the same step: that is what an audit
/// does with each commit.
fn the_step_is_in_its_message(taken: &Taken<'_>) -> Held {
    let act = recorded(taken)?;
    let planned = act.plan(taken.world, taken.before);
    let Ok(Planned::Write(again)) = planned else {
        return Err(format!("derived {}: {planned:?}", act.line(taken.world)));
    };
    let (files, wanted) = (by_path(&again.files), by_path(&taken.step.files));
    for (path, edit) in &wanted {
        ensure(files.get(path) == Some(edit), || {
            format!("derived {}: {path} differs", act.line(taken.world))
        })?;
    }
    ensure(files.len() == wanted.len(), || {
        "more files follow".to_owned()
    })?;
    ensure(again.message == taken.step.message, || {
        format!("{}\nis not\n{}", again.message, taken.step.message)
    })?;
    ensure(again.previous == taken.step.previous, || {
        "another previous step".to_owned()
    })
}

fn by_path(files: &FileChanges) -> BTreeMap<&str, &Edit> {
    files
        .iter()
        .map(|(path, edit)| (path.as_str(), edit))
        .collect()
}

/// While an issue is open, somebody works on it or has it to claim, or it needs somebody; left alone
/// for a year, it needs somebody. Whose turn it is, the protocol knows. An issue in which only notes
/// were sent holds no work, and a paused one waits.
fn attention_while_open(taken: &Taken<'_>) -> Held {
    let (issue, protocol, now) = (taken.issue(), &taken.world.protocol, taken.act.at);
    let records: Vec<Record> = taken
        .after
        .records
        .iter()
        .map(|r| Record::clone(r))
        .collect();
    let survey = IssueSurvey::of(issue, &records);
    let needs = |now: Moment| {
        let decides = |number| deciding(taken.after, protocol, number, now);
        let Ok(found) = of_issue(&survey, protocol, (None, &[]), now, decides);
        found
    };
    let found = needs(now);
    for one in &found {
        ensure(protocol.agent(one.turn.as_str()).is_some(), || {
            format!("{one:?}")
        })?;
    }
    let only_notes = survey.handoffs.iter().all(HandoffSurvey::is_note);
    if issue.status != IssueStatus::Open || issue.paused.is_some() || only_notes {
        return Ok(());
    }
    let moves = |record: &Record| match record.state {
        Lifecycle::InProgress => !record.is_expired(now),
        Lifecycle::Pending => {
            let state = |n: u32| records.get(n as usize - 1).map(|r| r.state);
            record.waits_in_vain(|id| state(id.number())).is_none()
        }
        _ => false,
    };
    ensure(!found.is_empty() || records.iter().any(moves), || {
        format!("nobody is told of it: {issue:?}")
    })?;
    let later: Moment = now + TimeDelta::days(366);
    ensure(!needs(later).is_empty(), || {
        format!("a year later nobody is told: {issue:?}")
    })
}

/// Nothing that a pause holds back is claimed or runs out of time, and an issue that ended is not
/// paused.
fn a_pause_holds_work_back(taken: &Taken<'_>) -> Held {
    let is = taken.issue();
    ensure(
        is.status == IssueStatus::Open || is.paused.is_none(),
        || format!("{:?} and paused", is.status),
    )?;
    let Some(was) = &taken.before.issue else {
        return Ok(());
    };
    for (before, after) in taken.pairs() {
        let new = &after.transitions[before.transitions.len()..];
        let hands = |event: Event| event.is_claim() || event == Event::Expire;
        let is_handed = new.iter().filter_map(|t| t.event).any(hands);
        ensure(!is_handed || was.held_back(&before.to).is_none(), || {
            format!("{} is paused: {new:?}", before.id)
        })?;
    }
    Ok(())
}

/// The tip's entries are those of the open records and of what awaits somebody, with the very bytes;
/// the issue lists the same.
fn entries_equal_what_is_open(taken: &Taken<'_>) -> Held {
    let (state, issue) = (taken.after, taken.issue());
    let bytes = |record: &Record| state.files.get(layout::record_file(&record.id).as_str());
    let open = state.records.iter();
    let open = open.filter_map(|record| Some((record, open_path(record)?)));
    let mut wanted = BTreeMap::new();
    let mut listed = BTreeSet::new();
    for (record, path) in open {
        wanted.insert(path, bytes(record));
        listed.insert((
            record.id.clone(),
            record.to.clone(),
            record.state,
            record.expires_at(),
        ));
    }
    let own = issue.open.iter();
    let own: BTreeSet<_> = own
        .map(|open| {
            (
                open.id.clone(),
                open.to.clone(),
                open.state,
                open.expires_at,
            )
        })
        .collect();
    ensure(own == listed && own.len() == issue.open.len(), || {
        format!("{:?}", issue.open)
    })?;
    for one in issue.awaiting.iter().chain(&issue.to_tell) {
        let record = &state.records[one.id.number() as usize - 1];
        wanted.insert(awaiting_path(&one.id, &one.agent), bytes(record));
    }
    if let Some(paused) = &issue.paused {
        let file = layout::paused_file(&issue.issue);
        let found = state.files.get(file.as_str());
        let right = found.is_some_and(|bytes| **bytes == *record::write(paused));
        ensure(right, || format!("{file}: {found:?}"))?;
        wanted.insert(file, found);
    }
    let entries = state.files.iter();
    let others = [layout::ISSUES, layout::SPENT];
    let entries = entries.filter(|(path, _)| !others.iter().any(|top| path.starts_with(top)));
    let found: BTreeMap<String, _> = entries
        .map(|(path, bytes)| (path.to_string(), Some(bytes)))
        .collect();
    ensure(found == wanted, || {
        let names = |all: &BTreeMap<String, _>| all.keys().cloned().collect::<Vec<_>>();
        format!("{:?} instead of {:?}", names(&found), names(&wanted))
    })
}

/// The times of an issue's steps and of a handoff's transitions only go forward.
fn times_never_run_backwards(taken: &Taken<'_>) -> Held {
    for record in &taken.after.records {
        let ordered = record.transitions.is_sorted_by_key(|t| t.at);
        let last = record.transitions.last().unwrap().at;
        ensure(ordered && last <= taken.issue().updated_at, || {
            format!("{record:?}")
        })?;
    }
    let (was, is) = (&taken.before.issue, taken.issue());
    let went_on = was
        .as_ref()
        .is_none_or(|was| was.updated_at <= is.updated_at && was.opened_at == is.opened_at);
    let right = went_on && is.updated_at == taken.act.at && is.opened_at <= is.updated_at;
    ensure(right, || format!("{is:?}"))
}

/// What all records of an issue report, and how many claims of them were not given back.
fn reported(state: &State) -> (Spent, u64) {
    let mut sum = Spent::default();
    let mut claims = 0;
    for record in &state.records {
        sum.add(&record.all_spent());
        let released = |t: &&Transition| t.event == Some(Event::Release);
        let released = record.transitions.iter().filter(released).count();
        claims += u64::from(record.claims()) - u64::try_from(released).unwrap();
    }
    (sum, claims)
}

/// The sums that claims are measured by equal what the records say, in the issue and over all days.
fn sums_are_those_of_the_records(taken: &Taken<'_>) -> Held {
    let (records, claims) = reported(taken.after);
    let days = taken
        .after
        .files
        .iter()
        .filter(|(path, _)| path.starts_with("spent/"));
    let days: Vec<DaySpending> = days
        .map(|(_, bytes)| record::read(bytes).unwrap())
        .collect();
    let days = days.iter().flat_map(|day| day.protocols.values());
    let issue = std::iter::once(&taken.issue().spent);
    for (name, sums) in [
        ("the issue", issue.collect::<Vec<_>>()),
        ("the days", days.collect()),
    ] {
        let mut sum = Spent::default();
        for own in sums.into_iter().flat_map(|spending| spending.values()) {
            sum.add(&own.ended);
            own.held.values().for_each(|held| sum.add(held));
        }
        let same =
            (sum.tokens(), &sum.cost, sum.attempts) == (records.tokens(), &records.cost, claims);
        ensure(same, || {
            format!("{name}: {sum:?}, and the records say {records:?}, {claims} claims")
        })?;
    }
    Ok(())
}

/// Whatever was claimed, a budget was left for it: what ended, and the whole share of what is held.
fn nothing_is_claimed_beyond_a_budget(taken: &Taken<'_>) -> Held {
    let claims = |state: &State| reported(state).1;
    let is_new = taken.after.records.len() > taken.before.records.len();
    if is_new || claims(taken.after) <= claims(taken.before) {
        return Ok(());
    }
    let (spent, claims) = reported(taken.before);
    ensure(spent.tokens() < TOKENS && claims < ATTEMPTS, || {
        format!(
            "{} tokens and {claims} claims, and one more was made",
            spent.tokens()
        )
    })
}
