//! How long a claim holds: leases, their extension, and their expiry.

use chrono::{DateTime, TimeDelta};
use handoff_base::Moment;
use handoff_base::ids::{AgentName, HandoffId};
use handoff_protocol::{Event, LONGEST, State};

use crate::planner::{Changed, Planner, TIMED_OUT};
use crate::record::{Failure, Issue, Lease, Progress, Record};
use crate::refusal::{LeaseRefusal, Refusal, StateRefusal};
use crate::request::EventArgs;
use crate::step::Planned;

/// The first handoff of an issue whose lease ran out and which is not failed yet.
pub(crate) fn overdue(issue: &Issue, at: Moment) -> Option<HandoffId> {
    let mut open = issue.open.iter();
    let open = open.find(|open| open.expires_at.is_some_and(|end| end <= at))?;
    Some(open.id.clone())
}

/// When an agent's last claim of a handoff ran out, if it ended that way.
pub(super) fn ran_out(record: &Record, agent: &AgentName) -> Option<Moment> {
    let mine =
        |event| move |t: &&crate::record::Transition| t.event == Some(event) && t.by == *agent;
    let newest = record.transitions.iter().rev();
    let since = newest.take_while(|t| !mine(Event::Claim)(t));
    since.filter(mine(Event::Expire)).last().map(|t| t.at)
}

/// The text between the holder and the end of its lease in the message of the resulting failure.
const RAN_OUT: &str = ": its lease ran out at ";

/// The end of the lease that a failure's message reports.
pub fn ran_out_at(message: &str) -> Option<Moment> {
    let (_, end) = message.rsplit_once(RAN_OUT)?;
    let end = DateTime::parse_from_rfc3339(end).ok()?;
    Some(end.to_utc())
}

impl<V> Planner<'_, V> {
    /// The lease of a new claim.
    pub(super) fn lease(&self, record: &Record, args: &EventArgs) -> Result<Lease, LeaseRefusal> {
        let seconds = self.length(record, args)?;
        Ok(Lease {
            holder: self.actor.name.clone(),
            since: self.actor.at,
            token: record.claims().saturating_add(1),
            seconds,
            expires_at: seconds.and_then(|seconds| self.after(seconds)),
            progress: None,
        })
    }

    /// The moment this many seconds from now, if it can be represented.
    fn after(&self, seconds: u64) -> Option<Moment> {
        let length = TimeDelta::try_seconds(i64::try_from(seconds).ok()?)?;
        self.actor.at.checked_add_signed(length)
    }

    /// The length of a lease that starts now, in seconds; `None` means no end.
    fn length(&self, record: &Record, args: &EventArgs) -> Result<Option<u64>, LeaseRefusal> {
        let leases = self.protocol.definition().leases.as_ref();
        let own = record.timeout_seconds.or(leases.map(|l| l.seconds));
        let longest = leases.and_then(|l| l.longest_seconds).unwrap_or(LONGEST);
        // A length that the contract sets is allowed, however long.
        let most = longest.max(own.unwrap_or(0));
        if args.lease.is_some_and(|asked| asked == 0 || asked > most) {
            let id = record.id.clone();
            return Err(LeaseRefusal::Length { id, most });
        }
        Ok(args.lease.or(own))
    }

    /// Extends a holder's lease and records its progress.
    pub(super) fn extend(
        &self,
        issue: Issue,
        mut record: Record,
        args: &EventArgs,
    ) -> Result<Planned, Refusal> {
        let from = record.state;
        let illegal = |illegal| StateRefusal::Illegal {
            id: record.id.clone(),
            illegal,
        };
        from.on(Event::Extend).map_err(illegal)?;
        let asked = EventArgs {
            lease: args.lease.or(record.lease.as_ref().and_then(|l| l.seconds)),
            ..EventArgs::default()
        };
        let seconds = self.length(&record, &asked)?;
        let end = seconds.and_then(|seconds| self.after(seconds));
        let at = self.actor.at;
        let Some(lease) = &mut record.lease else {
            let id = record.id;
            return Err(Refusal::no_handoff(&id));
        };
        let mut extended = lease.clone();
        // A holder that waits for others has no deadline, and an extension never shortens a lease.
        if extended.expires_at.is_some() && end > extended.expires_at {
            (extended.seconds, extended.expires_at) = (seconds, end);
        }
        if let Some(text) = &args.progress
            && extended.progress.as_ref().is_none_or(|p| p.text != *text)
        {
            let text = text.clone();
            extended.progress = Some(Progress { at, text });
        }
        if extended == *lease {
            let receipt = self.repeated(record, issue);
            return Ok(Planned::Repeat(Box::new(receipt)));
        }
        *lease = extended;
        let summary = match (&args.progress, lease.expires_at) {
            (Some(text), _) => text.clone(),
            (None, Some(end)) => format!("{} works until {end:?}", lease.holder),
            (None, None) => format!("{} is at work", lease.holder),
        };
        let changed = Changed {
            goes_on: true,
            ..Changed::of(issue, record.id.clone(), vec![record])
        };
        Ok(Planned::Write(Box::new(self.commit(changed, &summary))))
    }

    /// The failure that an expired lease leads to.
    pub(super) fn expired(&self, record: &Record) -> Result<Failure, Refusal> {
        let id = || record.id.clone();
        let lease = record.lease.as_ref();
        let end = lease.and_then(|lease| Some((lease, lease.expires_at?)));
        let Some((lease, end)) = end.filter(|(_, end)| *end <= self.actor.at) else {
            return Err(LeaseRefusal::NotOverdue(id()).into());
        };
        let progress = lease.progress.as_ref();
        let failure = Failure {
            code: TIMED_OUT.to_owned(),
            message: format!(
                "{} was not done in time{RAN_OUT}{}",
                lease.holder,
                end.format("%Y-%m-%dT%H:%M:%SZ")
            ),
            details: progress.map(|p| format!("the last it said: {}", p.text)),
            recoverable: true,
            suggested_action: None,
        };
        let reported = self.reported(Some(&failure))?;
        Ok(reported.unwrap_or(failure))
    }

    /// Refuses a caller that no longer holds the handoff: its claim is not the newest, or its lease
    /// ran out.
    pub(super) fn ensure_lease_held(
        &self,
        record: &Record,
        token: Option<u32>,
    ) -> Result<(), LeaseRefusal> {
        let agent = self.actor.name;
        let lease = record.lease.as_ref();
        let current = lease.is_some_and(|lease| {
            lease.holder == *agent && token.is_none_or(|token| token == lease.token)
        });
        let ran_out = ran_out(record, agent);
        if current || token.is_none() && ran_out.is_none() {
            return Ok(());
        }
        // A handoff that was given up for another reason reports that reason itself.
        if token.is_none() && record.state.is_terminal() && record.to == *agent {
            return Ok(());
        }
        Err(LeaseRefusal::Lost {
            id: record.id.clone(),
            agent: agent.clone(),
            token,
            ran_out,
            state: record.state,
            holder: lease.map(|lease| (lease.holder.clone(), lease.token)),
        })
    }

    /// Removes the end of the lease of a holder that waits for others; returns whether that changed
    /// it.
    pub(super) fn hold(&self, record: &mut Record) -> bool {
        let lease = record
            .lease
            .as_mut()
            .filter(|_| record.state == State::InProgress);
        lease.is_some_and(|lease| lease.expires_at.take().is_some())
    }
}
