//! The output without a command: the current state, and the next command.

use std::collections::BTreeMap;

use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::base::text::{continued, word};
use handoff::git::{OpenError, Repository, masked};
use handoff::ledger::attention::Attention;
use handoff::ledger::{
    BranchError, Ledger, LedgerError, OverviewLimits, RemoteDistance, Snapshot, merge_left_here,
    merges_left, overview,
};
use handoff::model::{Paused, Record};
use handoff::protocol::Protocol;
use schemars::JsonSchema;
use serde::Serialize;

use super::next::gate_command;
use super::status;
use crate::context::elsewhere::taken_over;
use crate::context::fresh::{Fresh, Reading};
use crate::context::worker::holder;
use crate::context::{Context, fresh};
use crate::contracts::skeleton::opening_command;
use crate::environment::{now, own_version};
use crate::failure::Failure;
use crate::output::{Answer, BEGIN, Output, counted, counted_as};
use crate::render::attention::{attention_text, rejected_text};
use crate::render::rows;
use crate::render::stored::say_how_to_read;
use crate::view::Look;

/// The command that shows a whole workflow.
const DEMO: &str = "git handoff demo      (a whole workflow in a scratch repository)";

/// The commands that start a ledger, one for each protocol that a new one is likely to follow.
const STARTS: [&str; 2] = [
    "git handoff init --protocol review      (a coder, a reviewer and a person)",
    "git handoff init --protocol issue-to-pr      (seven agents, from an issue to its merged pull request)",
];

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
    /// what needs the agent, or if it has no work or none is set, somebody: the three most urgent; for
    /// the latter empty where more than 400 handoffs are open
    attention: Vec<Attention>,
    /// how much that is in all
    attention_total: usize,
    /// What waits for the agent, or otherwise what is open and needs nobody, the first three.
    #[serde(skip)]
    waiting: Vec<Record>,
    /// How many more of these there are.
    #[serde(skip)]
    unlisted: usize,
    /// The pauses of their issues.
    #[serde(skip)]
    paused: BTreeMap<IssueKey, Paused>,
    /// The command that lists all of them, and all that needs somebody.
    #[serde(skip)]
    all: String,
    /// Whether the remote was asked first.
    #[serde(skip)]
    fresh: Option<Fresh>,
    /// How the ledger compares with its remote's as last seen.
    #[serde(skip)]
    distance: Option<RemoteDistance>,
    /// How many steps made here offline were refused and are kept.
    #[serde(skip)]
    rejected: usize,
    /// The command that sets who acts in this working tree.
    #[serde(skip)]
    setting: String,
    /// The merges of completed issues that are left.
    #[serde(skip)]
    left: Vec<String>,
    /// the next command, then others
    next: Vec<String>,
}

impl Answer for HereView {
    fn text(&self, look: &Look) -> String {
        let (shown, total) = (self.attention.len(), self.attention_total);
        let needs = attention_text(&self.attention, (shown, total, &self.all), look);
        let mut waiting = rows::table(self.waiting.iter(), look);
        if self.unlisted > 0 {
            waiting += &format!("  and {} more ({} lists all)\n", self.unlisted, self.all);
        }
        waiting += &look.sentences(&status::paused_text(&self.paused));
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
                let is_asked = self.fresh.as_ref().is_some_and(Fresh::is_answered);
                lines.extend(
                    distance.map(|one| status::remote_text(one, is_asked).trim_end().into()),
                );
                lines.extend(rejected_text(self.rejected));
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
        lines.extend(self.left.iter().map(|left| continued(left)));
        let before = std::iter::once("next").chain(std::iter::repeat("  or"));
        let commands = before.zip(&self.next);
        lines.extend(commands.map(|(word, command)| format!("{word}: {command}")));
        lines.push("all commands: git handoff help --all".to_owned());
        lines.join("\n") + "\n"
    }
}

impl HereView {
    /// Sets the first of what needs attention.
    fn needing(
        &mut self,
        tip: &Snapshot<'_>,
        mut attention: Vec<Attention>,
    ) -> Result<(), Failure> {
        self.attention_total = attention.len();
        attention.truncate(LOOK.each);
        self.attention = attention;
        let mut all = self.attention.iter_mut();
        all.try_for_each(|one| say_how_to_read(tip, one))
    }

    /// Sets what there is for whoever runs it, with the command that opens the first issue.
    fn without_agent(
        &mut self,
        tip: &Snapshot<'_>,
        opens: Option<String>,
        output: &Output,
    ) -> Result<(), Failure> {
        if self.open <= LOOK.records {
            self.whoever(tip, output)?;
        }
        let begin = format!("git handoff {BEGIN} --as AGENT      (what an agent needs to begin)");
        let opens = opens.filter(|_| self.attention.is_empty());
        let first = opens.unwrap_or_else(|| "git handoff status".to_owned());
        self.next = vec![first, begin];
        if let Some(first) = self.attention.first() {
            self.next.insert(0, first.next.clone());
        } else if let Some(first) = self.waiting.first().filter(|one| self.is_claimable(one)) {
            let claim = format!("git handoff claim {} --as {}", first.id, first.to);
            self.next.insert(0, claim);
        }
        let left = self.merges(tip)?;
        if self.open == 0 {
            left.into_iter().for_each(|gate| self.next.insert(0, gate));
        }
        Ok(())
    }

    fn is_claimable(&self, record: &Record) -> bool {
        let waits = record.not_before.is_some() || !record.waits_for.is_empty();
        record.is_pending() && !waits && !self.paused.contains_key(record.id.issue())
    }

    /// Sets the merges that are left. Returns the command for the first one.
    fn merges(&mut self, tip: &Snapshot<'_>) -> Result<Option<String>, Failure> {
        let mut left = merges_left(tip)?;
        // To find the issue of the branch that is checked out may take reading all of them.
        if left.is_empty() && (self.open == 0 || self.agent.is_some()) {
            left.extend(merge_left_here(tip)?);
        }
        let shown = left.iter().take(LOOK.each);
        self.left = shown.map(ToString::to_string).collect();
        Ok(left.first().map(|left| gate_command(&left.issue)))
    }

    /// Sets what needs anybody, what needs persons first, and what else is open.
    fn whoever(&mut self, tip: &Snapshot<'_>, output: &Output) -> Result<(), Failure> {
        "git handoff status".clone_into(&mut self.all);
        let (mut open, mut attention, protocols) = status::needs(tip, now()?)?;
        output.complete(&mut attention);
        // Mostly persons run it without an agent.
        let is_person = |one: &Attention| {
            let mut all = protocols.values();
            all.any(|protocol| protocol.is_person(one.turn.as_str()))
        };
        attention.sort_by_key(|one| !is_person(one));
        open.retain(|record| attention.iter().all(|one| one.id != record.id));
        self.unlisted = open.len().saturating_sub(LOOK.each);
        open.truncate(LOOK.each);
        self.paused = tip.paused_among(open.iter().map(|record| record.id.issue()))?;
        self.waiting = open;
        self.needing(tip, attention)
    }

    fn agent_text(&self) -> String {
        let Some(agent) = &self.agent else {
            let set = &self.setting;
            return format!("you: no agent is set (--as AGENT, GIT_HANDOFF_AGENT, or `{set}`)");
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
        here.next = vec![
            "git init && git handoff init --protocol review".to_owned(),
            DEMO.to_owned(),
        ];
    } else {
        here.in_repository = true;
        look(context, &*context.repository()?, &mut here, output)?;
    }
    output.answer(&here)?;
    fresh::say(here.fresh.as_ref().filter(|f| !f.is_answered()), output);
    Ok(())
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
    here.setting = repository.setting_command("handoff.agent AGENT");
    if ledger.tip_id()?.is_none() {
        without_ledger(repository, &mut ledger, here);
        return Ok(());
    }
    let Reading { ledger, tip, fresh } = context.fresh(repository, false, output)?;
    here.fresh = fresh;
    here.all = "git handoff status".to_owned();
    here.branch = Some(ledger.branch().to_owned());
    here.protocol = Some(tip.manifest().default_protocol.clone());
    here.remote = context.remote(repository)?.map(|remote| masked(&remote));
    (here.distance, here.rejected) = (ledger.beside_remote()?, ledger.rejected()?.len());
    here.open = tip.open()?.len();
    let is_idle = here.open == 0;
    let rules = tip.default_rules()?;
    let opens = |by: Option<&AgentName>| {
        let opening = is_idle.then(|| opening_command(&rules, by, ""));
        opening.transpose().map(Option::flatten)
    };
    let Some(agent) = here.agent.clone() else {
        return here.without_agent(&tip, opens(None)?, output);
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
    let is_own = |one: &Attention| one.is_up_to(&known.id, &knowing);
    found.attention.retain(is_own);
    output.complete(&mut found.attention);
    let carried = context.carried_at(repository, &tip);
    let command = |line: String| carried.command(&line);
    here.held = found.held.count;
    let held = found.held.first.iter();
    here.holds = held.map(|record: &Record| record.id.clone()).collect();
    here.waits = found.waiting.count;
    let is_new = |record: &Record| found.attention.iter().all(|one| one.id != record.id);
    let waiting = found.waiting.first.iter().filter(|record| is_new(record));
    here.waiting = waiting.cloned().collect();
    here.unlisted = found.waiting.count.saturating_sub(LOOK.each);
    here.all = command(format!("git handoff inbox --as {}", known.id));
    here.needs = found.attention.len();
    here.needing(&tip, found.attention)?;
    let name = &known.id;
    here.next = if found.held.count > 0 {
        vec![command(format!("git handoff {BEGIN} --as {name}"))]
    } else if here.needs > 0 {
        vec![here.all.clone()]
    } else if here.waits > 0 {
        vec![command(format!("git handoff claim --next --as {name}"))]
    } else if let Some(gate) = here.merges(&tip)? {
        vec![command(gate)]
    } else {
        let wait = command(format!("git handoff wait --inbox --as {name}"));
        let is_person = knowing.iter().any(|p| p.is_person(name.as_str()));
        match opens(Some(name))? {
            Some(open) => vec![open, wait],
            None => match opens(None)?.filter(|_| is_person) {
                Some(open) => vec![open, wait],
                None => vec![wait, "git handoff status".to_owned()],
            },
        }
    };
    if [here.held, here.needs, here.waits] == [0; 3] && here.open <= LOOK.records {
        here.whoever(&tip, output)?;
    }
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
    here.next = match taken_over(repository, ledger, false) {
        Some((remote, command)) => {
            here.elsewhere = Some(remote);
            vec![command]
        }
        None => STARTS.map(str::to_owned).to_vec(),
    };
    here.next.push(DEMO.to_owned());
}
