//! Why handoffs and issues need attention, and who is notified.

use handoff_base::words;

words! {
    /// Why a handoff or an issue needs somebody, the most urgent first.
    pub enum Need {
        /// No attempt is left.
        Dead = "dead",
        /// It failed, and nobody has decided how to proceed.
        Failed = "failed",
        /// It waits for a handoff that will never be completed.
        Stranded = "stranded",
        /// Its agent waits for an answer.
        Blocked = "blocked",
        /// It was decided that a person steps in, and nobody has done so.
        Escalated = "escalated",
        /// The deadline has passed, and nothing can be sent in it.
        PastDeadline = "past_deadline",
        /// A budget leaves nothing for a claim.
        BudgetSpent = "budget_spent",
        /// Its merge takes a person's approval, which is missing.
        Unapproved = "unapproved",
        /// Its code was merged before its review ended.
        Merged = "merged",
        /// The lease ran out.
        LeaseRanOut = "lease_ran_out",
        /// Its receiver rejected it, and its sender has not sent another.
        Rejected = "rejected",
        /// It was cancelled, and its sender has not sent another.
        Cancelled = "cancelled",
        /// It is completed, and nothing was sent on from it.
        NotHandedOn = "not_handed_on",
        /// Nobody has claimed it in time.
        Unclaimed = "unclaimed",
        /// The lease is about to end.
        LeaseEnding = "lease_ending",
        /// The answer that its agent asked for came.
        Answered = "answered",
    }
}

impl Need {
    /// The need in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Dead => "no attempt left",
            Self::Failed => "failed",
            Self::Stranded => "waits in vain",
            Self::Blocked => "waits for an answer",
            Self::Escalated => "waits for a person",
            Self::PastDeadline => "past its deadline",
            Self::BudgetSpent => "budget spent",
            Self::Unapproved => "waits for approval",
            Self::Merged => "merged before its review",
            Self::LeaseRanOut => "lease ran out",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
            Self::NotHandedOn => "waits to be sent on",
            Self::Unclaimed => "not claimed",
            Self::LeaseEnding => "lease about to end",
            Self::Answered => "answered",
        }
    }

    /// Whether only a person can let the work continue, whatever the handoff's state. Every
    /// protocol alerts about such needs.
    pub fn is_hindrance(self) -> bool {
        matches!(
            self,
            Self::Escalated
                | Self::PastDeadline
                | Self::BudgetSpent
                | Self::Unapproved
                | Self::Merged
        )
    }

    /// Who is notified by default; the first is the one whose turn it is.
    pub fn told(self) -> &'static [&'static str] {
        match self {
            Self::Dead | Self::Escalated | Self::PastDeadline | Self::BudgetSpent => {
                &[PERSON, LEAD]
            }
            Self::Unapproved | Self::Merged => &[PERSON],
            // The answer may be known only to a person.
            Self::Blocked => &[LEAD, PERSON],
            Self::Failed | Self::Stranded | Self::LeaseRanOut => &[LEAD],
            Self::Rejected | Self::Cancelled => &[SENDER, LEAD],
            Self::NotHandedOn | Self::Unclaimed => &[RECEIVER, LEAD],
            Self::LeaseEnding | Self::Answered => &[RECEIVER],
        }
    }
}

/// Notify the sender of the handoff.
pub const SENDER: &str = "sender";
/// Notify its receiver.
pub const RECEIVER: &str = "receiver";
/// Notify the orchestrator; in a call, the agent that made the request.
pub const LEAD: &str = "lead";
/// Notify the person who steps in, else the lead.
pub const PERSON: &str = "person";

/// The words for these parties; any other word is an agent's name.
pub const PARTIES: [&str; 4] = [SENDER, RECEIVER, LEAD, PERSON];
