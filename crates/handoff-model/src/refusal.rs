//! Why the ledger refuses a step: typed, with everything a hint needs.

use handoff_base::Moment;
use handoff_base::finding::Finding;
use handoff_base::ids::{AgentName, HandoffId, IssueKey};
use handoff_base::text::quoted;
use handoff_protocol::{Event, IllegalEvent, Protocol, State};

use crate::claim_queue::Claimable;
use crate::evidence::EvidenceFault;

/// A refused step. The ledger is unchanged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// What was kept belongs to another attempt.
    #[error("{id} is at attempt {attempt}, and what was kept is of another one")]
    OtherAttempt {
        /// The handoff.
        id: HandoffId,
        /// Its attempt.
        attempt: u32,
    },
    /// Nobody by that name takes part.
    #[error("{agent} is not an agent of protocol {protocol}")]
    UnknownAgent {
        /// The name that was given.
        agent: AgentName,
        /// The protocol.
        protocol: String,
        /// Who does take part.
        agents: Vec<String>,
    },
    /// The contract names another sender.
    #[error("{agent} cannot send a contract from {from}")]
    NotTheSender {
        /// Who sends.
        agent: AgentName,
        /// Whom the contract names.
        from: AgentName,
    },
    /// The first contract of an issue must be one that opens it.
    #[error("issue {issue} was not opened yet")]
    NotOpened {
        /// The issue.
        issue: IssueKey,
        /// Who may open an issue, by a contract to whom.
        openers: Vec<(String, String)>,
    },
    /// The closing contract was sent.
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
    /// The sender was handed work and has not claimed it.
    #[error("{agent} has not claimed {id}")]
    NotClaimed {
        /// The handoff.
        id: HandoffId,
        /// Its receiver.
        agent: AgentName,
    },
    /// The sender's handoff is failed or blocked.
    #[error("{agent} does not work on {id}, which is {state}")]
    NotWorking {
        /// The handoff.
        id: HandoffId,
        /// Its receiver.
        agent: AgentName,
        /// Its state.
        state: State,
    },
    /// The sender was handed nothing.
    #[error("{agent} holds nothing in issue {issue}")]
    NotHeld {
        /// The sender.
        agent: AgentName,
        /// The issue.
        issue: IssueKey,
        /// What is open there, and with whom.
        open: Vec<(HandoffId, AgentName)>,
    },
    /// The event belongs to someone else.
    #[error("{agent} cannot {event} {id}, which was handed to {to}")]
    NotYours {
        /// The handoff.
        id: HandoffId,
        /// Who tried.
        agent: AgentName,
        /// What was tried.
        event: Event,
        /// The receiver.
        to: AgentName,
    },
    /// The decision belongs to someone else.
    #[error("{agent} cannot decide about {id}, which was handed to {to}")]
    NotDecider {
        /// The handoff.
        id: HandoffId,
        /// Who tried.
        agent: AgentName,
        /// The receiver.
        to: AgentName,
    },
    /// Someone else was first.
    #[error("{id} is claimed by {holder} since {}", time(*since))]
    AlreadyClaimed {
        /// The handoff.
        id: HandoffId,
        /// Who works on it.
        holder: AgentName,
        /// Since when.
        since: Moment,
    },
    /// The lifecycle has no such arrow.
    #[error("{id}: {illegal}")]
    Illegal {
        /// The handoff.
        id: HandoffId,
        /// State and event.
        illegal: IllegalEvent,
    },
    /// The issue is one request, which has its answer.
    #[error("issue {issue} is one request, and has its answer")]
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
    /// The protocol has no requirement of that name.
    #[error("protocol {protocol} has no requirement {}", quoted(name))]
    NoRequirement {
        /// The name.
        name: String,
        /// The protocol.
        protocol: AgentName,
        /// The names there are.
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
        /// What it waits for.
        waits_for: Vec<HandoffId>,
    },
    /// A request is answered, not only completed.
    #[error("{id} is a request: {from} waits for an answer")]
    NeedsAnswer {
        /// The handoff.
        id: HandoffId,
        /// Who asked.
        from: AgentName,
        /// Who was asked.
        to: AgentName,
        /// The types of contract that answer it.
        types: Vec<String>,
    },
    /// The request has its answer.
    #[error("{id} is {state}: {answer} is its answer")]
    Answered {
        /// The request.
        id: HandoffId,
        /// Its state.
        state: State,
        /// The answer.
        answer: HandoffId,
    },
    /// The contract's own id belongs to another contract.
    #[error("{contract_id} is the id of {id}, which has another contract")]
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
    /// The contract does not fit what the issue knows.
    #[error("the contract does not fit issue {issue}")]
    Unfit {
        /// The issue.
        issue: IssueKey,
        /// Why, all of it.
        findings: Vec<Finding>,
    },
    /// What the contract says of tasks does not fit where they stand.
    #[error("the contract does not fit the tasks of issue {issue}")]
    Tasks {
        /// The issue.
        issue: IssueKey,
        /// Why, all of it.
        findings: Vec<Finding>,
    },
    /// The receiver waits for the sender, directly or through others.
    #[error("{to} waits for {from} in {id} already: {reason}")]
    Loop {
        /// The sender.
        from: AgentName,
        /// The receiver.
        to: AgentName,
        /// The request that its receiver made.
        id: HandoffId,
        /// The protocol's reason.
        reason: String,
    },
    /// The request may not be retried again.
    #[error("{id} cannot be retried: {why}")]
    RetriesSpent {
        /// The handoff.
        id: HandoffId,
        /// Why.
        why: String,
    },
    /// The next attempt may not begin yet.
    #[error("{id} is tried again from {}", time(*not_before))]
    TooEarly {
        /// The handoff.
        id: HandoffId,
        /// When it can be claimed.
        not_before: Moment,
    },
    /// The lease is shorter or longer than any may be.
    #[error("a lease of {id} has from 1 to {most} seconds")]
    LeaseLength {
        /// The handoff.
        id: HandoffId,
        /// The longest, in seconds.
        most: u64,
    },
    /// The sender, or the claim that it names, does not hold the handoff any more.
    #[error("{agent} does not hold {id} any more: {}", lost(*token, *ran_out, holder.as_ref()))]
    LeaseLost {
        /// The handoff.
        id: HandoffId,
        /// Who comes back.
        agent: AgentName,
        /// The claim that it named.
        token: Option<u32>,
        /// When its own lease ran out.
        ran_out: Option<Moment>,
        /// The handoff's state now.
        state: State,
        /// Who holds it now, and by which claim.
        holder: Option<(AgentName, u32)>,
    },
    /// A lease ran out, which has to be recorded before anything else.
    #[error("the lease of {id} ran out")]
    Overdue {
        /// The handoff.
        id: HandoffId,
    },
    /// The lease did not run out.
    #[error("{id} has no lease that ran out")]
    NotOverdue {
        /// The handoff.
        id: HandoffId,
    },
    /// The answer is not what was asked for.
    #[error("the answer to {id} is not what was asked for")]
    AnswerUnfit {
        /// The handoff.
        id: HandoffId,
        /// Why, all of it.
        findings: Vec<Finding>,
    },
    /// What was said elsewhere was said before that to which it would apply now.
    #[error("what stands at {id} is from {}, and this was said before, at {}", time(*since), time(*said_at))]
    SaidBefore {
        /// The handoff.
        id: HandoffId,
        /// Since when it stands as it does.
        since: Moment,
        /// When it was said.
        said_at: Moment,
    },
    /// The agent cannot take this handoff over.
    #[error(
        "{agent} cannot take over {id}: no route brings it such a contract from the same sender"
    )]
    NotAssignable {
        /// The handoff.
        id: HandoffId,
        /// The agent.
        agent: AgentName,
        /// Those who can.
        others: Vec<AgentName>,
    },
    /// A limit of the protocol leaves no room for one more.
    #[error("issue {issue} has reached a limit: {limit}")]
    Limit {
        /// The issue.
        issue: IssueKey,
        /// The limit.
        limit: Box<Limit>,
        /// The handoff that the sender works on.
        basis: Option<HandoffId>,
    },
    /// The decision does not fit what was decided on.
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
    /// The contract is about another one than its sender works on.
    #[error("`{field}` is {value}, and {id} is about another contract")]
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
    /// What is recorded of the contract's claims is not what the rules demand.
    #[error("{fault}")]
    Evidence {
        /// The issue.
        issue: IssueKey,
        /// What is wrong with it.
        fault: EvidenceFault,
    },
    /// Nobody is named as sender.
    #[error("the contract names no sender")]
    NoSender,
    /// Nothing waits for this agent that could be claimed.
    #[error("nothing waits for {agent}{}", if **found == Claimable::default() { "" } else { " that can be claimed yet" })]
    NothingToClaim {
        /// The agent.
        agent: AgentName,
        /// What waits for it, and for what.
        found: Box<Claimable>,
    },
}

/// A limit of a protocol that was reached, and its value.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Limit {
    /// Handoffs in the issue.
    #[error("{most} handoffs")]
    Handoffs {
        /// How many there may be.
        most: u32,
    },
    /// Handoffs about one item.
    #[error("{most} handoffs about {}", quoted(item))]
    Item {
        /// The item.
        item: String,
        /// How many there may be.
        most: u32,
    },
    /// Work that goes round and round.
    #[error("{most} {name}")]
    Rounds {
        /// What goes round.
        name: String,
        /// How often it may.
        most: u32,
    },
    /// The time for handing work over.
    #[error("its deadline was {}", time(*end))]
    Deadline {
        /// When it passed.
        end: Moment,
    },
    /// The same sender, receiver and reason.
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
        /// How many of the newest handoffs are looked at.
        among: u32,
        /// How many of them may be alike.
        most: u32,
    },
    /// The same way again too soon.
    #[error("{seconds} s must pass between two handoffs from {from} to {to}")]
    Cooldown {
        /// The sender.
        from: AgentName,
        /// The receiver.
        to: AgentName,
        /// How many seconds must pass.
        seconds: u64,
        /// How many of them are left.
        left: u64,
    },
}

fn time(at: Moment) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn lost(token: Option<u32>, ran_out: Option<Moment>, holder: Option<&(AgentName, u32)>) -> String {
    let why = match (ran_out, token) {
        (Some(at), _) => format!("its lease ran out, as was recorded at {}", time(at)),
        (None, Some(token)) => format!("claim {token} is over"),
        (None, None) => "its claim is over".to_owned(),
    };
    match holder {
        Some((holder, token)) => format!("{why}, and claim {token} by {holder} holds it"),
        None => why,
    }
}

fn list(ids: &[HandoffId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    ids.join(", ")
}

impl Refusal {
    /// The refusal of a name that takes no part in a protocol.
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
    /// The refusal to claim, where nothing can be claimed.
    pub fn refusal(self, agent: &AgentName) -> Refusal {
        Refusal::NothingToClaim {
            agent: agent.clone(),
            found: Box::new(self),
        }
    }
}
