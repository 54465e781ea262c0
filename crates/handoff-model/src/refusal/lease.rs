//! Refusals about leases and claims.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::hint::Hint;
use handoff_base::ids::{AgentName, HandoffId, IssueKey, WorkerId};
use handoff_base::text::quoted;
use handoff_base::{Moment, hint};
use handoff_protocol::{Event, State};

use crate::record::{Issue, Lease, Record, Transition};
use crate::refusal::{see_handoff, see_issue, time};

/// The agent does not hold the handoff, or another one does.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LeaseRefusal {
    /// Another worker claimed the handoff first.
    #[error("{} has been claimed by {}", .0.id, .0)]
    AlreadyClaimed(Box<Holding>),
    /// Another worker of the agent holds the handoff.
    #[error("{} is held by {}", .0.id, .0)]
    HeldByWorker(Box<Holding>),
    /// The worker already holds the handoff that it would take over.
    #[error("worker {worker} itself has held {id} since {}", time(*since))]
    OwnClaim {
        id: HandoffId,
        worker: WorkerId,
        since: Moment,
    },
    /// A takeover needs a reason.
    #[error("{0} can be taken over only with a reason")]
    NoReason(HandoffId),
    /// A claim needs a worker.
    #[error("{0} can be claimed only by a worker, and none is named")]
    NoWorker(HandoffId),
    /// The sender has not claimed the work it was handed.
    #[error("{agent} has not claimed {id}")]
    NotClaimed {
        id: HandoffId,
        agent: AgentName,
        /// From when it can be claimed, if that is later.
        from: Option<Moment>,
    },
    /// The sender's handoff is failed or blocked.
    #[error("{agent} is not working on {id}, which is {state}")]
    NotWorking {
        id: HandoffId,
        agent: AgentName,
        state: State,
        /// The command that answers it, if it is blocked.
        answer: Option<String>,
    },
    /// The sender has no handoff.
    #[error("{agent} holds nothing in issue {issue}")]
    NotHeld {
        agent: AgentName,
        issue: IssueKey,
        open: Vec<(HandoffId, AgentName)>,
    },
    /// The requested lease length is out of range.
    #[error("a lease of {id} must be from 1 to {most} seconds")]
    Length {
        id: HandoffId,
        /// The longest length, in seconds.
        most: u64,
    },
    /// The delay of a release is out of range.
    #[error("{id} can be given back for 1 to {most} seconds, which is the longest lease")]
    After {
        id: HandoffId,
        /// The longest time, in seconds.
        most: u64,
    },
    /// The sender's claim is over.
    #[error("{agent} no longer holds {id}: {}", lost(*token, end.as_ref(), holder.as_deref()))]
    Lost {
        id: HandoffId,
        agent: AgentName,
        token: Option<u32>,
        /// How the claim ended, if known.
        end: Option<ClaimEnd>,
        state: State,
        /// The agent that holds it now, and the token of its claim.
        holder: Option<Box<(AgentName, u32)>>,
    },
    /// The receiver claims the work too late: it has failed already.
    #[error("{to} did not claim {id} in time: it had until {}", time(*until))]
    Unacknowledged {
        id: HandoffId,
        to: AgentName,
        until: Moment,
        state: State,
    },
    /// A lease or a time to be claimed has expired, and this must be recorded first.
    #[error("the lease of {0}, or the time to claim it, ran out")]
    Overdue(HandoffId),
    /// Its time has not run out.
    #[error("{0} has no lease and no time to claim it that ran out")]
    NotOverdue(HandoffId),
}

impl Explained for LeaseRefusal {
    fn explanation(&self) -> Explanation {
        match self {
            Self::AlreadyClaimed(by) => ErrorCode::AlreadyClaimed
                .hint(hint!("claim another: `git handoff claim --next`; ").and(by.take_over())),
            Self::HeldByWorker(by) => {
                let hint = hint!(
                    "nothing was recorded, so keep your work; see `git handoff show {}`; ",
                    by.id
                );
                // Without a takeover, the same worker may have claimed it elsewhere.
                let other_tree = by.taken_over.is_none().then(|| {
                    hint!("if you claimed it in another working tree: ")
                        .and_again("--worker", &by.worker)
                        .and("; ")
                });
                let hint = hint.and(other_tree.unwrap_or_default());
                ErrorCode::HeldByWorker.hint(hint.and(by.take_over()))
            }
            Self::OwnClaim { id, .. } => ErrorCode::OwnClaim.hint(hint!(
                "you hold it, so go on: `git handoff context {}`",
                id.issue()
            )),
            Self::NoReason(id) => {
                ErrorCode::Usage.hint(hint!("`git handoff claim {} --take-over --reason WHY`", id))
            }
            Self::NoWorker(_) => {
                ErrorCode::NoWorker.hint("name the worker with --worker ID or GIT_HANDOFF_WORKER")
            }
            Self::NotClaimed { id, agent, from } => {
                ErrorCode::NotClaimed.hint(how_to_claim(id, agent, *from))
            }
            Self::NotWorking {
                id,
                agent,
                answer: Some(answer),
                ..
            } => ErrorCode::NotWorking.hint(format!(
                "`{answer}` first; then `git handoff claim {id} --as {agent}`"
            )),
            Self::NotWorking {
                id, agent, state, ..
            } => ErrorCode::NotWorking.hint(match state {
                // Whose decision a retry is depends on the failure.
                State::Failed => another_attempt(id).and(hint!("; then {} can claim it", agent)),
                state if state.is_terminal() => {
                    hint!(
                        "{} is final; `git handoff next {}` says how the work goes on",
                        state,
                        id.issue()
                    )
                }
                _ => hint!(
                    "run `git handoff show {}` first; then {} can claim it",
                    id,
                    agent
                ),
            }),
            Self::NotHeld { open, issue, .. } if open.is_empty() => {
                ErrorCode::NotHeld.hint(see_issue(issue))
            }
            Self::NotHeld { open, .. } => {
                let open = open.iter().map(|(id, to)| format!("{id} is with {to}"));
                ErrorCode::NotHeld.hint(open.collect::<Vec<_>>().join(", "))
            }
            Self::Length { .. } => {
                ErrorCode::Usage.hint("`git handoff extend` extends it while the work goes on")
            }
            Self::After { id, .. } => {
                ErrorCode::Usage.hint(hint!("without --after, {} is offered again at once", id))
            }
            Self::Lost { id, state, .. } => ErrorCode::LeaseLost.hint(
                hint!("nothing was recorded, so keep your work; ").and(match state {
                    State::Pending => hint!("claim it again: `git handoff claim {}`", id),
                    State::Failed | State::Dead => another_attempt(id),
                    _ => hint!("see its state: `git handoff show {}`", id),
                }),
            ),
            Self::Unacknowledged { id, .. } => ErrorCode::NotAcknowledged.hint(another_attempt(id)),
            Self::Overdue(id) => ErrorCode::Overdue.hint(see_handoff(id)),
            Self::NotOverdue(id) => ErrorCode::NotOverdue.hint(see_handoff(id)),
        }
    }
}

/// How an agent claims a handoff, which may be from a time on.
fn how_to_claim(id: &HandoffId, agent: &AgentName, from: Option<Moment>) -> Hint {
    match from {
        Some(from) => hint!(
            "it can be claimed from {}: `git handoff wait --inbox --as {}` waits for it",
            time(from),
            agent
        ),
        None => hint!("claim it first: `git handoff claim {} --as {}`", id, agent),
    }
}

/// How a failed or dead handoff becomes claimable again.
fn another_attempt(id: &HandoffId) -> Hint {
    hint!(
        "`git handoff next {}` says who can give it another attempt",
        id.issue()
    )
}

/// Who holds a handoff, since when, and until when.
#[derive(Clone, Debug)]
pub struct Holding {
    /// The handoff.
    pub id: HandoffId,
    /// The agent that holds it.
    pub agent: AgentName,
    /// The worker of that agent that holds it.
    pub worker: WorkerId,
    /// When it was claimed or taken over.
    pub since: Moment,
    /// When the lease runs out, if it does.
    pub until: Option<Moment>,
    /// The reason of the takeover, if it was taken over.
    pub taken_over: Option<String>,
}

impl Holding {
    pub(crate) fn of(record: &Record, lease: &Lease) -> Box<Self> {
        let mut claims = record.transitions.iter().rev();
        let claim = claims.find(|t| t.event.is_some_and(Event::is_claim));
        let taken_over = claim.filter(|t| t.event == Some(Event::TakeOver));
        Box::new(Self {
            id: record.id.clone(),
            agent: lease.holder.clone(),
            worker: lease.worker.clone(),
            since: lease.since,
            until: lease.expires_at,
            taken_over: taken_over.and_then(|t| t.reason.clone()),
        })
    }

    /// How to take the handoff over from its worker.
    fn take_over(&self) -> Hint {
        hint!(
            "only if that worker is gone, take it over: `git handoff claim {} --take-over --reason WHY --as {}`",
            self.id,
            self.agent
        )
    }
}

impl std::fmt::Display for Holding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (agent, worker, since) = (&self.agent, &self.worker, time(self.since));
        write!(f, "{agent} (worker {worker}) since {since}")?;
        if let Some(until) = self.until {
            write!(f, ", until {}", time(until))?;
        }
        match &self.taken_over {
            Some(why) => write!(f, "; that worker took it over: {}", quoted(why)),
            None => Ok(()),
        }
    }
}

/// How a claim ended.
#[derive(Clone, Debug)]
pub enum ClaimEnd {
    /// The lease expired; recorded at this moment.
    RanOut(Moment),
    /// Another worker took the handoff over with this transition.
    TakenOver(Box<Transition>),
}

impl LeaseRefusal {
    /// The refusal of a claim that comes too late, if it does.
    pub(crate) fn unacknowledged(record: &Record) -> Option<Self> {
        Some(Self::Unacknowledged {
            id: record.id.clone(),
            to: record.to.clone(),
            until: record.unacknowledged()?,
            state: record.state,
        })
    }

    /// The refusal of an agent that has no open handoff in an issue.
    pub(crate) fn not_held(issue: &Issue, agent: &AgentName) -> Self {
        let open = issue.open.iter();
        Self::NotHeld {
            agent: agent.clone(),
            issue: issue.issue.clone(),
            open: open
                .map(|open| (open.id.clone(), open.to.clone()))
                .collect(),
        }
    }
}

fn lost(token: Option<u32>, end: Option<&ClaimEnd>, holder: Option<&(AgentName, u32)>) -> String {
    let why = match (end, token) {
        (Some(ClaimEnd::RanOut(at)), _) => format!("its lease ran out, recorded at {}", time(*at)),
        (Some(ClaimEnd::TakenOver(by)), _) => {
            let worker = by.worker.as_ref().map(|worker| format!(" {worker}"));
            format!(
                "worker{} took it over at {}: {}",
                worker.unwrap_or_default(),
                time(by.at),
                quoted(by.reason.as_deref().unwrap_or_default())
            )
        }
        (None, Some(token)) => format!("claim {token} is over"),
        (None, None) => "its claim is over".to_owned(),
    };
    match holder {
        Some((holder, token)) => format!("{why}; it is now held by {holder} (claim {token})"),
        None => why,
    }
}
