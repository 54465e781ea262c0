//! Why the ledger refuses a step: typed, with everything needed for a hint.

use handoff_base::Moment;
use handoff_base::finding::Finding;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::text::quoted;
use handoff_protocol::{Event, IllegalEvent, Protocol, State};

use crate::claim_queue::Claimable;
use crate::evidence::EvidenceFault;

/// A refused request. The ledger is unchanged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// The failure context belongs to another attempt.
    #[error("{id} is at attempt {attempt}, but the saved context belongs to another attempt")]
    OtherAttempt {
        /// The handoff.
        id: HandoffId,
        /// Its attempt.
        attempt: u32,
    },
    /// The protocol has no agent by that name.
    #[error("{agent} is not an agent of protocol {protocol}")]
    UnknownAgent {
        /// The name that was given.
        agent: AgentName,
        /// The protocol.
        protocol: String,
        /// The agents that take part.
        agents: Vec<String>,
    },
    /// The contract names another sender.
    #[error("{agent} cannot send a contract from {from}")]
    NotTheSender {
        /// The agent that sends.
        agent: AgentName,
        /// The sender that the contract names.
        from: AgentName,
    },
    /// The first contract of an issue must be one that opens it.
    #[error("issue {issue} has not been opened yet")]
    NotOpened {
        /// The issue.
        issue: IssueKey,
        /// The agents that may open an issue, each with the receiver of its contract.
        openers: Vec<(String, String)>,
    },
    /// The closing contract was already sent.
    #[error("issue {issue} is completed: nothing can be added to it")]
    IssueCompleted {
        /// The issue.
        issue: IssueKey,
    },
    /// Only a completed issue can be reopened.
    #[error("issue {issue} is open")]
    NotCompleted {
        /// The issue.
        issue: IssueKey,
    },
    /// The sender has not claimed the work it was handed.
    #[error("{agent} has not claimed {id}")]
    NotClaimed {
        /// The handoff.
        id: HandoffId,
        /// Its receiver.
        agent: AgentName,
    },
    /// The sender's handoff is failed or blocked.
    #[error("{agent} is not working on {id}, which is {state}")]
    NotWorking {
        /// The handoff.
        id: HandoffId,
        /// Its receiver.
        agent: AgentName,
        /// Its state.
        state: State,
    },
    /// The sender has no handoff.
    #[error("{agent} holds nothing in issue {issue}")]
    NotHeld {
        /// The sender.
        agent: AgentName,
        /// The issue.
        issue: IssueKey,
        /// The open handoffs and their receivers.
        open: Vec<(HandoffId, AgentName)>,
    },
    /// Another agent may cause the event.
    #[error("{agent} cannot {event} {id}, which was handed to {to}")]
    NotYours {
        /// The handoff.
        id: HandoffId,
        /// The agent that tried.
        agent: AgentName,
        /// The event it tried.
        event: Event,
        /// The receiver.
        to: AgentName,
    },
    /// Another agent decides about the handoff.
    #[error("{agent} cannot decide about {id}, which was handed to {to}")]
    NotDecider {
        /// The handoff.
        id: HandoffId,
        /// The agent that tried.
        agent: AgentName,
        /// The receiver.
        to: AgentName,
    },
    /// Another agent claimed the handoff first.
    #[error("{id} has been claimed by {holder} since {}", time(*since))]
    AlreadyClaimed {
        /// The handoff.
        id: HandoffId,
        /// The agent that works on it.
        holder: AgentName,
        /// When it was claimed.
        since: Moment,
    },
    /// The lifecycle has no such transition.
    #[error("{id}: {illegal}")]
    Illegal {
        /// The handoff.
        id: HandoffId,
        /// The state and the event.
        illegal: IllegalEvent,
    },
    /// The issue is a single request that has its answer.
    #[error("issue {issue} is a single request, and is already answered")]
    OneRequest {
        /// The issue.
        issue: IssueKey,
    },
    /// There is no such issue.
    #[error("there is no issue {issue}")]
    NoIssue {
        /// The key.
        issue: IssueKey,
    },
    /// The protocol has no requirement with that name.
    #[error("protocol {protocol} has no requirement {}", quoted(name))]
    NoRequirement {
        /// The name.
        name: String,
        /// The protocol.
        protocol: AgentName,
        /// The names that exist.
        known: Vec<String>,
    },
    /// There is no such handoff.
    #[error("there is no handoff {id}")]
    NoHandoff {
        /// The id.
        id: HandoffId,
    },
    /// Other handoffs must be completed first.
    #[error("{id} waits for {}", list(waits_for))]
    Waits {
        /// The handoff.
        id: HandoffId,
        /// The handoffs it waits for.
        waits_for: Vec<HandoffId>,
    },
    /// A request must be answered, not only completed.
    #[error("{id} is a request: {from} waits for an answer")]
    NeedsAnswer {
        /// The handoff.
        id: HandoffId,
        /// The requester.
        from: AgentName,
        /// The agent that must answer.
        to: AgentName,
        /// The types of contract that answer it.
        types: Vec<String>,
    },
    /// The request already has its answer.
    #[error("{id} is {state}: {answer} is its answer")]
    Answered {
        /// The request.
        id: HandoffId,
        /// Its state.
        state: State,
        /// The answer.
        answer: HandoffId,
    },
    /// Another contract has the same id.
    #[error("{contract_id} is already the contract id of {id}, for a different contract")]
    IdTaken {
        /// The contract's own id, escaped for display.
        contract_id: String,
        /// The handoff that has it.
        id: HandoffId,
    },
    /// The issue follows another protocol.
    #[error("issue {issue} follows protocol {protocol}")]
    OtherProtocol {
        /// The issue.
        issue: IssueKey,
        /// Its protocol.
        protocol: AgentName,
    },
    /// The contract contradicts what the issue knows.
    #[error("the contract does not fit issue {issue}")]
    Unfit {
        /// The issue.
        issue: IssueKey,
        /// All the reasons.
        findings: Vec<Finding>,
    },
    /// The contract contradicts the state of the tasks.
    #[error("the contract does not fit the tasks of issue {issue}")]
    Tasks {
        /// The issue.
        issue: IssueKey,
        /// All the reasons.
        findings: Vec<Finding>,
    },
    /// The receiver waits for the sender, directly or through others.
    #[error("{to} is already waiting for {from} in {id}: {reason}")]
    Loop {
        /// The sender.
        from: AgentName,
        /// The receiver.
        to: AgentName,
        /// The request that the receiver made.
        id: HandoffId,
        /// The protocol's reason.
        reason: String,
    },
    /// The handoff may not be retried again.
    #[error("{id} cannot be retried: {why}")]
    RetriesSpent {
        /// The handoff.
        id: HandoffId,
        /// Why.
        why: String,
    },
    /// The next attempt may not start yet.
    #[error("{id} cannot be claimed before {}", time(*not_before))]
    TooEarly {
        /// The handoff.
        id: HandoffId,
        /// When it can be claimed.
        not_before: Moment,
    },
    /// The requested lease length is out of range.
    #[error("a lease of {id} must be from 1 to {most} seconds")]
    LeaseLength {
        /// The handoff.
        id: HandoffId,
        /// The longest length, in seconds.
        most: u64,
    },
    /// The sender, or the claim that it names, no longer holds the handoff.
    #[error("{agent} no longer holds {id}: {}", lost(*token, *ran_out, holder.as_ref()))]
    LeaseLost {
        /// The handoff.
        id: HandoffId,
        /// The agent that lost it.
        agent: AgentName,
        /// The claim token that it passed.
        token: Option<u32>,
        /// When its lease ran out.
        ran_out: Option<Moment>,
        /// The handoff's state now.
        state: State,
        /// The agent that holds it now, and the token of its claim.
        holder: Option<(AgentName, u32)>,
    },
    /// A lease ran out, which must be recorded first.
    #[error("the lease of {id} ran out")]
    Overdue {
        /// The handoff.
        id: HandoffId,
    },
    /// The lease has not run out.
    #[error("{id} has no lease that ran out")]
    NotOverdue {
        /// The handoff.
        id: HandoffId,
    },
    /// The answer does not match the questions.
    #[error("the answer to {id} does not match the question")]
    AnswerUnfit {
        /// The handoff.
        id: HandoffId,
        /// All the reasons.
        findings: Vec<Finding>,
    },
    /// The event was said before the situation that it would apply to now.
    #[error("this is from {}, before {id} reached its current state at {}", time(*said_at), time(*since))]
    SaidBefore {
        /// The handoff.
        id: HandoffId,
        /// When the current situation began.
        since: Moment,
        /// The time of the input.
        said_at: Moment,
    },
    /// The agent cannot take this handoff over.
    #[error("{agent} cannot take over {id}: no route lets the same sender send it such a contract")]
    NotAssignable {
        /// The handoff.
        id: HandoffId,
        /// The agent.
        agent: AgentName,
        /// The agents that can.
        others: Vec<AgentName>,
    },
    /// One more contract would exceed a limit of the protocol.
    #[error("issue {issue} has reached a limit: {limit}")]
    Limit {
        /// The issue.
        issue: IssueKey,
        /// The limit.
        limit: Box<Limit>,
        /// The handoff that the sender works on.
        basis: Option<HandoffId>,
    },
    /// The decision contradicts its basis.
    #[error("`{field}` cannot be {value} after {id}, whose status is {status}")]
    NotAfter {
        /// The field.
        field: Box<str>,
        /// Its value, escaped for display.
        value: Box<str>,
        /// The handoff that the sender works on.
        id: HandoffId,
        /// The status of its contract.
        status: Box<str>,
        /// The values that fit.
        fitting: Vec<String>,
    },
    /// The contract is about another contract than its sender works on.
    #[error("`{field}` is {value}, but {id} is about another contract")]
    NotAbout {
        /// The field.
        field: Box<str>,
        /// Its value, escaped for display.
        value: Box<str>,
        /// The handoff that the sender works on.
        id: HandoffId,
        /// The id of that handoff's contract.
        known: Box<str>,
    },
    /// The protocol has no such error code.
    #[error("{code} is not an error code of protocol {protocol}")]
    UnknownErrorCode {
        /// The code, escaped for display.
        code: String,
        /// The protocol.
        protocol: String,
        /// The codes it has.
        codes: Vec<String>,
    },
    /// The recorded evidence does not match what the rules require.
    #[error("{fault}")]
    Evidence {
        /// The issue.
        issue: IssueKey,
        /// What is wrong with it.
        fault: EvidenceFault,
    },
    /// The contract names no sender.
    #[error("the contract names no sender")]
    NoSender,
    /// Nothing that waits for this agent can be claimed.
    #[error("nothing waits for {agent}{}", if **found == Claimable::default() { "" } else { " that can be claimed yet" })]
    NothingToClaim {
        /// The agent.
        agent: AgentName,
        /// What waits for it, and for what.
        found: Box<Claimable>,
    },
}

/// A limit of a protocol that was reached, with its value.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Limit {
    /// Handoffs in the issue.
    #[error("{most} handoffs")]
    Handoffs {
        /// The maximum.
        most: u32,
    },
    /// Handoffs about one item.
    #[error("{most} handoffs about {}", quoted(item))]
    Item {
        /// The item.
        item: String,
        /// The maximum.
        most: u32,
    },
    /// The number of rounds.
    #[error("{most} {name}")]
    Rounds {
        /// The kind of round.
        name: String,
        /// The maximum.
        most: u32,
    },
    /// The deadline for handoffs.
    #[error("its deadline was {}", time(*end))]
    Deadline {
        /// When it passed.
        end: Moment,
    },
    /// Handoffs with the same sender, receiver and reason.
    #[error(
        "{most} of the last {among} handoffs went from {from} to {to} for the same reason, {}",
        quoted(reason)
    )]
    Cycle {
        /// The sender.
        from: AgentName,
        /// The receiver.
        to: AgentName,
        /// The reason.
        reason: String,
        /// The number of newest handoffs that are checked.
        among: u32,
        /// The number of them that may be alike.
        most: u32,
    },
    /// Another handoff on the same route too soon.
    #[error("{seconds} s must pass between two handoffs from {from} to {to}")]
    Cooldown {
        /// The sender.
        from: AgentName,
        /// The receiver.
        to: AgentName,
        /// The required interval, in seconds.
        seconds: u64,
        /// The seconds that remain.
        left: u64,
    },
}

fn time(at: Moment) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn lost(token: Option<u32>, ran_out: Option<Moment>, holder: Option<&(AgentName, u32)>) -> String {
    let why = match (ran_out, token) {
        (Some(at), _) => format!("its lease ran out, recorded at {}", time(at)),
        (None, Some(token)) => format!("claim {token} is over"),
        (None, None) => "its claim is over".to_owned(),
    };
    match holder {
        Some((holder, token)) => format!("{why}; it is now held by {holder} (claim {token})"),
        None => why,
    }
}

fn list(ids: &[HandoffId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    ids.join(", ")
}

impl Refusal {
    /// The refusal of a name that is not an agent of the protocol.
    pub fn unknown_agent(agent: &AgentName, protocol: &Protocol) -> Self {
        let agents = protocol.agent_names();
        Self::UnknownAgent {
            agent: agent.clone(),
            protocol: protocol.name().to_owned(),
            agents: agents.into_iter().map(str::to_owned).collect(),
        }
    }
}

impl Claimable {
    /// The refusal to claim if nothing can be claimed.
    pub fn refusal(self, agent: &AgentName) -> Refusal {
        Refusal::NothingToClaim {
            agent: agent.clone(),
            found: Box::new(self),
        }
    }
}
