//! The output without a command: the current state, and the next command.

use handoff::base::ids::{AgentName, HandoffId};
use handoff::base::text::{continued, word};
use handoff::git::{OpenError, Repository, masked};
use handoff::ledger::attention::Attention;
use handoff::ledger::{BranchError, Ledger, LedgerError, OverviewLimits, RemoteDistance, overview};
use handoff::model::Record;
use handoff::protocol::Protocol;
use schemars::JsonSchema;
use serde::Serialize;

use super::status;
use crate::context::Context;
use crate::context::elsewhere::taken_over;
use crate::context::worker::holder;
use crate::environment::{now, own_version};
use crate::failure::Failure;
use crate::output::{Answer, Output, counted, counted_as};
use crate::render::attention::attention_text;
use crate::render::rows;
use crate::view::Look;

/// The command that shows a whole workflow.
const DEMO: &str = "git handoff demo      (a whole workflow in a scratch repository)";

/// Limits on reading, for speed.
const LOOK: OverviewLimits<'_> = OverviewLimits {
    records: 400,
    each: 3,
    after: None,
};

/// The current state, and the next commands.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "Here")]
pub(crate) struct HereView {
    /// the program's version
    version: &'static str,
    /// whether this is in a repository
    in_repository: bool,
    /// the ledger's branch; null if there is no ledger here
    branch: Option<String>,
    /// the ledger's branch, if it existed and is gone
    gone: Option<String>,
    /// the remote that has a ledger, if there is none here
    elsewhere: Option<String>,
    /// the protocol that a new issue follows
    protocol: Option<AgentName>,
    /// the remote through which the ledger is shared
    remote: Option<String>,
    /// how many handoffs are open
    open: usize,
    /// the acting agent, if one is set
    agent: Option<AgentName>,
    /// whether a protocol of the ledger lists it
    agent_known: bool,
    /// how many handoffs it holds
    held: usize,
    /// the first three of them
    holds: Vec<HandoffId>,
    /// how many handoffs it can claim
    waits: usize,
    /// how many things need it
    needs: usize,
    /// what needs the agent, or if none is set somebody, the three most urgent; for the latter empty
    /// where more than 400 handoffs are open
    attention: Vec<Attention>,
    /// how much that is in all
    attention_total: usize,
    /// What waits for the agent, or if none is set what is open and needs nobody, the first three.
    #[serde(skip)]
    waiting: Vec<Record>,
    /// How the ledger compares with its remote's as last seen.
    #[serde(skip)]
    distance: Option<RemoteDistance>,
    /// the next command, then others
    next: Vec<String>,
}

impl Answer for HereView {
    fn text(&self, look: &Look) -> String {
        let (shown, total) = (self.attention.len(), self.attention_total);
        let needs = attention_text(&self.attention, (shown, total), look);
        let waiting = rows::table(self.waiting.iter(), look);
        let listed = needs.lines().chain(waiting.lines());
        let listed = listed.filter(|line| !line.is_empty());
        let mut lines: Vec<String> = listed.map(str::to_owned).collect();
        lines.push(format!(
            "git-handoff {}: a ledger of handoffs between agents, kept in Git",
            self.version
        ));
        match (&self.branch, &self.protocol) {
            (Some(branch), Some(protocol)) => {
                let remote = self.remote.as_deref().map(continued);
                let shared = remote.map(|remote| format!(", shared through {remote}"));
                let shared = shared.unwrap_or_default();
                let open = counted(self.open, "open handoff");
                lines.push(format!(
                    "here: the ledger on branch {branch}, protocol {protocol}{shared}; {open}"
                ));
                let distance = self.distance.iter();
                let distance = distance.filter(|one| one.unpublished > 0 || one.behind > 0);
                lines.extend(distance.map(|one| status::remote_text(one, false).trim_end().into()));
                lines.push(self.agent_text());
            }
            _ if self.in_repository => {
                lines.push(match (&self.gone, &self.elsewhere) {
                    (Some(branch), _) => {
                        format!("here: the ledger's branch {branch} existed, but is gone")
                    }
                    (None, Some(remote)) => {
                        let remote = continued(remote);
                        format!("here: a repository without a ledger; {remote} has one")
                    }
                    (None, None) => "here: a repository without a ledger".to_owned(),
                });
            }
            _ => lines.push("here: not in a Git repository".to_owned()),
        }
        let before = std::iter::once("next").chain(std::iter::repeat("  or"));
        let commands = before.zip(&self.next);
        lines.extend(commands.map(|(word, command)| format!("{word}: {command}")));
        lines.push("all commands: git handoff help --all".to_owned());
        lines.join("\n") + "\n"
    }
}

impl HereView {
    /// Sets the first of what needs attention.
    fn needing(&mut self, mut attention: Vec<Attention>) {
        self.attention_total = attention.len();
        attention.truncate(LOOK.each);
        self.attention = attention;
    }

    fn agent_text(&self) -> String {
        let Some(agent) = &self.agent else {
            return "you: no agent is set (--as AGENT, GIT_HANDOFF_AGENT, or `git config handoff.agent AGENT`)"
                .to_owned();
        };
        if !self.agent_known {
            return format!("you: {agent}, which no protocol here lists");
        }
        let held: Vec<String> = self.holds.iter().map(ToString::to_string).collect();
        let more = match self.held - held.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let holds = match &held[..] {
            [] => "you hold nothing".to_owned(),
            held => format!("you hold {}{more}", held.join(", ")),
        };
        let needs = match self.needs {
            0 => String::new(),
            several => format!(
                "; {}",
                counted_as(several, "thing", [" needs you", "s need you"])
            ),
        };
        format!(
            "you: {agent}; {holds}; {} for you to claim{needs}",
            self.waits
        )
    }
}

/// Prints the current state, and the next commands.
///
/// # Errors
/// A [`Failure`] if there is a repository or a ledger that can't be read.
pub(crate) fn run(context: &Context, output: &mut Output) -> Result<(), Failure> {
    let mut here = HereView {
        version: own_version(),
        ..HereView::default()
    };
    if let Err(OpenError::NotFound) = Repository::open_here() {
        here.next = vec!["git init && git handoff init".to_owned(), DEMO.to_owned()];
    } else {
        here.in_repository = true;
        look(context, &*context.repository()?, &mut here, output)?;
    }
    output.answer(&here)
}

/// Reads the ledger of a repository.
fn look(
    context: &Context,
    repository: &Repository,
    here: &mut HereView,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut ledger = context.ledger(repository)?;
    here.agent = context.agent(repository)?;
    if ledger.tip_id()?.is_none() {
        without_ledger(repository, &mut ledger, here);
        return Ok(());
    }
    let tip = ledger.tip()?;
    output.tell_pauses(&tip);
    here.branch = Some(ledger.branch().to_owned());
    here.protocol = Some(tip.manifest().default_protocol.clone());
    here.remote = context.remote(repository)?.map(|remote| masked(&remote));
    here.distance = ledger.beside_remote()?;
    here.open = tip.open()?.len();
    let Some(agent) = here.agent.clone() else {
        if here.open <= LOOK.records {
            let (mut open, mut attention, _) = status::needs(&tip, now()?)?;
            output.complete(&mut attention);
            open.retain(|record| attention.iter().all(|one| one.id != record.id));
            open.truncate(LOOK.each);
            here.waiting = open;
            here.needing(attention);
        }
        here.next = vec![
            "git handoff status".to_owned(),
            "git handoff prime --as AGENT      (what an agent needs to begin)".to_owned(),
        ];
        return Ok(());
    };
    let mut protocols = Vec::new();
    for name in tip.protocols()? {
        protocols.push(tip.rules(&name)?.protocol().clone());
    }
    let knowing = protocols
        .iter()
        .filter(|p| p.agent(agent.as_str()).is_some());
    let knowing: Vec<&Protocol> = knowing.collect();
    let Some(known) = knowing.first().and_then(|p| p.agent(agent.as_str())) else {
        here.next = vec!["git handoff protocol show      (lists the agents)".to_owned()];
        return Ok(());
    };
    here.agent_known = true;
    let worker = context.worker(repository)?;
    let who = holder(&known.id, worker.as_ref());
    let mut found = overview(&tip, who, &knowing, now()?, LOOK)?;
    found.attention.retain(|one| one.turn == known.id);
    output.complete(&mut found.attention);
    let carried = context.carried_at(repository, &tip);
    let command = |line: String| carried.command(&line);
    here.held = found.held.count;
    here.holds = found
        .held
        .first
        .iter()
        .map(|record: &Record| record.id.clone())
        .collect();
    here.waits = found.waiting.count;
    let is_new = |record: &Record| found.attention.iter().all(|one| one.id != record.id);
    let waiting = found.waiting.first.iter().filter(|record| is_new(record));
    here.waiting = waiting.cloned().collect();
    here.needs = found.attention.len();
    here.needing(found.attention);
    let name = &known.id;
    here.next = if found.held.count > 0 {
        vec![command(format!("git handoff prime --as {name}"))]
    } else if here.needs > 0 {
        vec![command(format!("git handoff inbox --as {name}"))]
    } else if here.waits > 0 {
        vec![command(format!("git handoff claim --next --as {name}"))]
    } else {
        vec![
            command(format!("git handoff wait --inbox --as {name}")),
            "git handoff status".to_owned(),
        ]
    };
    Ok(())
}

/// Sets the commands that create or recover the ledger: the earlier one, a remote's, or a new one.
fn without_ledger(repository: &Repository, ledger: &mut Ledger<'_>, here: &mut HereView) {
    let branch = ledger.branch().to_owned();
    if let Err(LedgerError::Branch(BranchError::NoLedger {
        seen: Some(seen), ..
    })) = ledger.tip()
    {
        here.next = vec![format!(
            "git branch {} {seen}      (what this clone last saw of it)",
            word(&branch)
        )];
        here.gone = Some(branch);
        return;
    }
    let start = match taken_over(repository, ledger, false) {
        Some((remote, command)) => {
            here.elsewhere = Some(remote);
            command
        }
        None => "git handoff init".to_owned(),
    };
    here.next = vec![start, DEMO.to_owned()];
}
