//! The contracts that an agent may send next, and the command for each.

use handoff::base::Moment;
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::base::text::word;
use handoff::git::Repository;
use handoff::ledger::{Rules, Snapshot};
use handoff::model::planner::{Holder, Sending};
use handoff::model::{Issue, Record, View};
use handoff::protocol::Ends;
use handoff::templates::{Known, known_at_tip, with_current_branch, with_workspace};
use schemars::JsonSchema;
use serde::Serialize;

use super::settings::schema_at;
use super::skeleton::{Format, Wanted};
use crate::failure::Failure;
use crate::output::Carried;

/// The placeholder for the issue in commands that open one.
pub const NEW_ISSUE: &str = "ISSUE";

/// The contract field with the path of a workspace.
const WORKSPACE: &str = "workspace_path";

/// A contract that the agent may send next.
#[derive(Clone, Serialize, JsonSchema)]
pub struct NextContract {
    /// its receiver
    pub to: AgentName,
    /// the title of its type
    pub title: String,
    /// its type
    pub contract_type: String,
    /// the command that prints its skeleton
    pub command: String,
    /// the command that writes, checks and sends it, with a mark for each value that only its sender
    /// knows; null if it is not a usual way on
    pub send: Option<String>,
    /// the fields of `send` that are lists: give one `--set` for each entry
    pub lists: Vec<String>,
    /// The `send` command without values: on a terminal, it asks for them.
    #[serde(skip)]
    pub asks: String,
    /// The `send` command with a single placeholder for all values.
    #[serde(skip)]
    pub sets: String,
    /// A line for each value.
    #[serde(skip)]
    pub fields: Vec<String>,
    /// What the key of an issue that it opens is, if not a number.
    #[serde(skip)]
    pub key_about: Option<String>,
    /// Whether it is a usual next step, not one to an agent that steps in.
    #[serde(skip)]
    pub usual: bool,
    /// The request that it answers, if it must be named.
    #[serde(skip)]
    pub answers: Option<HandoffId>,
    /// Whether its commands name the worker, since they may be run in another working tree.
    #[serde(skip)]
    pub names_worker: bool,
    /// Whether it reports a failure to an agent that steps in, as `block` and `fail` do.
    #[serde(skip)]
    pub only_reports: bool,
    /// Whether its type must be named.
    #[serde(skip)]
    pub names_type: bool,
    #[serde(skip)]
    /// Its format.
    pub format: Format,
}

/// Whether the receiver of a handoff usually completes it without sending: a report on a task, in a
/// protocol whose issues end without a contract.
pub fn only_notes(rules: &Rules<'_>, work: &Record) -> bool {
    let protocol = rules.protocol();
    let kind = protocol.contract_type(&work.contract_type);
    let tasks = kind.and_then(|kind| kind.tasks.as_ref());
    tasks.is_some_and(|tasks| tasks.completes.is_some())
        && protocol.ends() == Ends::NothingOpen
        && protocol.steps_in(&work.to)
}

/// Whether a protocol may refuse a contract type because of the issue's state.
fn may_refuse(rules: &Rules<'_>) -> bool {
    let definition = rules.protocol().definition();
    let mut kinds = definition.contracts.iter();
    definition
        .limits
        .as_ref()
        .is_some_and(|limits| limits.refuse())
        || kinds.any(|kind| kind.tasks.is_some())
}

/// Lists the contracts that can be sent next.
pub struct Onward<'a, 'r> {
    /// The repository, the source of known values.
    pub repository: &'a Repository,
    /// The ledger's newest state.
    pub tip: &'a Snapshot<'r>,
    /// The protocol of the issue.
    pub rules: &'a Rules<'r>,
    /// Whether the ledger has other protocols.
    pub several: bool,
    /// Whether the agent holds other work too, so that commands must name the answered request.
    pub holds_several: bool,
    /// The options that commands carry.
    pub carried: &'a Carried,
    /// The current time.
    pub now: Moment,
}

impl Onward<'_, '_> {
    /// The contracts that an agent may send from its current work, the likeliest first, with `send`
    /// commands for the first and the usual ones; without work, those that open an issue. Contracts
    /// that the issue's state would refuse are omitted.
    pub fn contracts(
        &self,
        agent: &AgentName,
        work: Option<&Record>,
    ) -> Result<Vec<NextContract>, Failure> {
        let mut all = self.next_contracts(agent, work)?;
        let issue = match work {
            Some(work) => self.tip.issue(work.id.issue())?.shared_issue()?,
            None => None,
        };
        if let Some(issue) = issue.filter(|_| may_refuse(self.rules)) {
            let mut allowed = Vec::new();
            for next in all {
                if !self.is_hopeless(&next, agent, work, &issue)? {
                    allowed.push(next);
                }
            }
            all = allowed;
        }
        for (place, next) in all.iter_mut().enumerate() {
            if place == 0 || next.usual {
                self.add_commands(next, agent, work)?;
            }
        }
        let carried = self.carried_with(&all);
        for next in &mut all {
            let texts = [&mut next.command, &mut next.asks, &mut next.sets];
            for text in texts.into_iter().chain(&mut next.send) {
                *text = carried.command(text);
            }
        }
        Ok(all)
    }

    /// The options that all commands on a screen with these contracts carry.
    pub fn carried_with(&self, contracts: &[NextContract]) -> Carried {
        let mut carried = self.carried.clone();
        carried.is_worker_named |= contracts.iter().any(|next| next.names_worker);
        carried
    }

    fn next_contracts(
        &self,
        agent: &AgentName,
        work: Option<&Record>,
    ) -> Result<Vec<NextContract>, Failure> {
        let protocol = self.rules.protocol();
        let request = work.map(|work| (&work.from, work.contract_type.as_str()));
        let mut onward = protocol.onward(agent.as_str(), request);
        if work.is_none() {
            let opens = |to: &AgentName, kind: Option<&String>| match kind {
                Some(kind) => protocol.opens(agent.as_str(), to.as_str(), kind),
                None => {
                    let mut routes = protocol.routes(agent.as_str(), to.as_str());
                    routes.any(|route| route.opens)
                }
            };
            onward.retain(|(to, kind)| opens(to, kind.as_ref()));
        }
        let answered = work.filter(|w| !protocol.answers_to(&w.contract_type).is_empty());
        let intended = work.and_then(Record::successor);
        let rank = |to: &AgentName| match to {
            to if answered.is_some_and(|work| work.from == *to) => 0,
            to if intended == Some(to) => 0,
            to if protocol.steps_in(to) => 2,
            _ => 1,
        };
        let mut contracts = Vec::new();
        for (to, kind) in onward {
            let format = Format::first(protocol, kind.as_deref());
            let wanted = Wanted {
                kind: kind.as_deref(),
                ..Wanted::new(agent, &to)
            };
            let found = wanted.contract_type(protocol, format)?;
            let answers = answered.filter(|work| work.from == to && self.holds_several);
            let key = work.map_or(NEW_ISSUE, |work| work.id.issue().as_str());
            let mut command = format!("git handoff new --issue {key} --from {agent} --to {to}");
            if let Some(kind) = &kind {
                command += &format!(" --type {kind}");
            }
            // Contracts that settle findings come before those that raise them.
            let outcome = match (found.settles, &found.raises) {
                (true, None) => 0,
                (_, Some(_)) => 2,
                (false, None) => 1,
            };
            let next = NextContract {
                title: found.title.clone(),
                contract_type: found.name.clone(),
                usual: !protocol.steps_in(&to),
                answers: answers.map(|work| work.id.clone()),
                names_worker: false,
                only_reports: protocol.steps_in(&to) && found.failure.is_some(),
                names_type: kind.is_some(),
                send: None,
                asks: String::new(),
                sets: String::new(),
                fields: Vec::new(),
                key_about: None,
                lists: Vec::new(),
                command: self
                    .carried
                    .command(&(command + &self.protocol_option(work))),
                to,
                format,
            };
            contracts.push(((rank(&next.to), outcome), next));
        }
        contracts.sort_by_key(|(place, _)| *place);
        Ok(contracts.into_iter().map(|(_, next)| next).collect())
    }

    /// Whether the issue's state would refuse the contract.
    fn is_hopeless(
        &self,
        next: &NextContract,
        agent: &AgentName,
        work: Option<&Record>,
        issue: &Issue,
    ) -> Result<bool, Failure> {
        let (_, known) = self.known(next, agent, work)?;
        let sending = Sending {
            protocol: self.rules.protocol(),
            issue,
            kind: &next.contract_type,
            value: &next.wanted(agent).known_value(self.rules, &known)?,
            from: agent,
            to: &next.to,
            at: self.now,
        };
        Ok(sending.is_hopeless())
    }

    /// The issue's key, and the known values for this contract.
    pub fn known(
        &self,
        next: &NextContract,
        agent: &AgentName,
        work: Option<&Record>,
    ) -> Result<(IssueKey, Known), Failure> {
        let key: IssueKey = work.map_or_else(|| NEW_ISSUE.parse(), |w| Ok(w.id.issue().clone()))?;
        let folder = self.tip.issue(&key)?;
        let issue = folder.issue()?.filter(|_| work.is_some());
        let lease = work.and_then(|work| work.lease.as_ref());
        let by = Holder {
            agent,
            worker: lease.map(|lease| &lease.worker),
        };
        let mut known = known_at_tip(
            self.repository,
            self.rules.protocol(),
            &folder,
            issue.as_ref(),
            (by, &next.to),
            self.now,
        )?;
        if work.is_none() {
            for name in ["issue", "key", "issue_url"] {
                known.remove(name);
            }
        }
        Ok((key, known))
    }

    /// Adds the commands that compose and send this contract, and its list fields.
    fn add_commands(
        &self,
        next: &mut NextContract,
        agent: &AgentName,
        work: Option<&Record>,
    ) -> Result<(), Failure> {
        let (key, known) = self.known(next, agent, work)?;
        let known = with_current_branch(self.repository, (self.tip, &key), known)?;
        let known = with_workspace(self.repository, known);
        let wanted = Wanted {
            kind: Some(next.contract_type.as_str()).filter(|_| next.names_type),
            ..next.wanted(agent)
        };
        let command = wanted.command(key.as_str());
        let options = wanted.options(self.rules, &known)?;
        let answers = next.answers.as_ref();
        let answers = answers.map(|id| format!(" --answers {id}"));
        let more = answers.unwrap_or_default() + &self.protocol_option(work);
        let schema = wanted.schema(self.rules)?;
        // The sender of a contract with a workspace may work there, in another tree.
        let names_worker =
            self.carried.is_of_tree && schema_at(&schema, &[WORKSPACE.to_owned()]).is_some();
        let with = |values: &str| format!("{command}{values}{more}");
        let fields = options.lines(&schema);
        let opens = work.is_none();
        let key_about = opens.then(|| wanted.key_about(self.rules)).transpose()?;
        let words = options.words().into_iter().map(|word| format!(" {word}"));
        next.names_worker = names_worker;
        next.send = Some(with(&words.collect::<String>()));
        next.asks = with("");
        next.sets = with(if options.is_empty() {
            ""
        } else {
            " --set FIELD=VALUE…"
        });
        next.fields = fields;
        next.key_about = key_about.flatten();
        next.lists = options.lists;
        Ok(())
    }

    /// The option for the protocol, if an issue is opened and there are several.
    fn protocol_option(&self, work: Option<&Record>) -> String {
        if work.is_none() && self.several {
            format!(" --protocol {}", word(self.rules.protocol().name()))
        } else {
            String::new()
        }
    }
}

impl NextContract {
    /// The skeleton request for it.
    pub fn wanted<'a>(&'a self, from: &'a AgentName) -> Wanted<'a> {
        Wanted {
            kind: Some(&self.contract_type),
            format: Some(self.format),
            ..Wanted::new(from, &self.to)
        }
    }
}
