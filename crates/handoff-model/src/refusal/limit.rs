//! Refusals because a limit is reached.

use handoff_base::codes::ErrorCode;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::text::{counted, quoted, word};
use handoff_base::{Moment, hint};

use crate::refusal::{listed, time};

/// What the end of an issue's time means.
pub(crate) const PAST_DEADLINE: &str =
    "the deadline has passed, so that nothing can be sent but what ends the issue";

/// A contract would exceed a limit.
#[derive(Clone, Debug, thiserror::Error)]
#[error("issue {issue} has reached a limit: {limit}")]
pub struct LimitReached {
    /// The issue.
    pub issue: IssueKey,
    /// The protocol that sets the limit.
    pub protocol: AgentName,
    /// The limit.
    pub limit: Box<Limit>,
    /// The handoff that the sender works on.
    pub basis: Option<HandoffId>,
}

impl Explained for LimitReached {
    fn explanation(&self) -> Explanation {
        let rest = match &self.basis {
            Some(id) => hint!(
                "end {}, which you hold: `git handoff fail {} --code CODE --message WHY`; then `git handoff next {}` says what follows",
                id,
                id,
                self.issue
            ),
            None => hint!(
                "continue with the open work (`git handoff status {}`)",
                self.issue
            ),
        };
        match &*self.limit {
            Limit::Cooldown { left, .. } => {
                ErrorCode::Cooldown.hint(hint!("send it again in {} s, or ", left).and(rest))
            }
            Limit::Cycle { .. } => {
                ErrorCode::Cycle.hint(hint!("ask another agent or a person, or ").and(rest))
            }
            Limit::Notes { .. } => ErrorCode::LimitReached
                .hint("nothing was written; say it in the next contract of the issue"),
            Limit::Full { .. } => ErrorCode::LimitReached
                .hint("nothing was written; go on in an issue of another key, and end this one"),
            Limit::Deadline { person, .. } => ErrorCode::LimitReached.hint(hint!(
                "{}; {} gives it more time, `git handoff protocol set {} limits.deadline_seconds NUMBER`, or ends it: `git handoff cancel {} --all --as {} --reason WHY`",
                PAST_DEADLINE,
                person.as_ref().map_or("a person", AgentName::as_str),
                self.protocol,
                self.issue,
                person.as_ref().map_or("AGENT", AgentName::as_str)
            )),
            Limit::Transitions { .. } => ErrorCode::LimitReached
                .hint("nothing was written; cancel or complete it, and send it again"),
            limit => {
                let way = match limit.people() {
                    [] => {
                        hint!(
                            "use another route of the protocol (`git handoff protocol show {}`), or ",
                            self.protocol
                        )
                    }
                    people => hint!("hand it to {}, or ", listed(people, " or ")),
                };
                let hint = way.and(rest);
                ErrorCode::LimitReached.hint(match limit.setting() {
                    Some(key) => hint.and(hint!(
                        "; a person can raise the limit with `git handoff protocol set {} {} NUMBER`",
                        self.protocol,
                        key
                    )),
                    None => hint,
                })
            }
        }
    }
}

/// A limit that was reached, with its value.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Limit {
    /// Notes on the issue.
    #[error("{most} notes, or {} MiB of them", bytes >> 20)]
    Notes { most: usize, bytes: usize },
    /// Changes of one handoff's state.
    #[error("{most} changes of {id}")]
    Transitions { id: HandoffId, most: usize },
    /// Handoffs, whatever the protocol.
    #[error("{most} handoffs, the most that an issue can have")]
    Full { most: u32 },
    /// Handoffs in the issue, by the protocol.
    #[error("{}", counted(*most, "handoff"))]
    Handoffs {
        most: u32,
        /// The people to whom the sender can still send it.
        people: Vec<AgentName>,
    },
    /// Handoffs about the same item.
    #[error("{} about {}", counted(*most, "handoff"), quoted(item))]
    Item {
        item: String,
        most: u32,
        /// The people to whom the sender can still send it.
        people: Vec<AgentName>,
    },
    /// The number of rounds.
    #[error("{most} {name}")]
    Rounds { name: String, most: u32 },
    /// The deadline for handoffs.
    #[error("its deadline was {}", time(*end))]
    Deadline {
        end: Moment,
        /// Who can raise it.
        person: Option<AgentName>,
    },
    /// Handoffs with the same sender, receiver and reason.
    #[error(
        "{most} of the last {among} handoffs went from {from} to {to} for the same reason, {}",
        quoted(reason)
    )]
    Cycle {
        from: AgentName,
        to: AgentName,
        reason: String,
        /// The number of newest handoffs that are checked.
        among: u32,
        /// How many of them may be alike.
        most: u32,
    },
    /// A handoff from the same sender to the same receiver came too soon.
    #[error("{seconds} s must pass between two handoffs from {from} to {to}")]
    Cooldown {
        from: AgentName,
        to: AgentName,
        /// The required interval, in seconds.
        seconds: u64,
        /// The seconds that remain.
        left: u64,
    },
}

impl Limit {
    /// The people to whom the sender can still send.
    fn people(&self) -> &[AgentName] {
        match self {
            Self::Handoffs { people, .. } | Self::Item { people, .. } => people,
            _ => &[],
        }
    }

    /// The command by which a person raises the limit in a protocol; `None` if it can't be raised.
    pub fn raise(&self, protocol: &str) -> Option<String> {
        let key = self.setting()?;
        let key = word(&key);
        Some(format!("git handoff protocol set {protocol} {key} NUMBER"))
    }

    /// The key of the setting that raises the limit.
    fn setting(&self) -> Option<String> {
        Some(match self {
            Self::Handoffs { .. } => "limits.handoffs".to_owned(),
            Self::Item { .. } => "limits.item".to_owned(),
            Self::Rounds { name, .. } => format!("limits.rounds.{name}"),
            Self::Deadline { .. } => "limits.deadline_seconds".to_owned(),
            Self::Cycle { .. }
            | Self::Cooldown { .. }
            | Self::Full { .. }
            | Self::Notes { .. }
            | Self::Transitions { .. } => return None,
        })
    }
}
