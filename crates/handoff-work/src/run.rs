//! One run of an agent's command: its processes, its time, and its lease.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use handoff::contract::MAX_BYTES;
use handoff::model::ModelUsage;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::agent_folder::{self, AgentFolder};
use super::program::{Actor, CONTRACT, Program, alone};
use super::reaper;
use super::roles::{Given, PromptBy, Role};
use super::run_output::{RunFolder, RunOutput, of_killed};
use super::share::Share;
use super::usage::{self, UsageRule, UsageSoFar};
use handoff_cli::environment::{self, MARK};
use handoff_cli::process::ProcessGroup;

/// The variable with the file for a usage report.
const USAGE: &str = "GIT_HANDOFF_USAGE";

/// The maximum size of a usage report, in bytes.
const MOST_OF_REPORT: u64 = 64 * 1024;

/// How often a run's usage is compared with its budget.
const COMPARED: Duration = Duration::from_secs(2);

/// How long to wait for a process that survives being killed.
const UNHEARD: Duration = Duration::from_secs(5);

/// The delay before a failed extension of a lease is retried.
const AGAIN: Duration = Duration::from_secs(10);

/// Why a run must end early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The worker ends; the next one resumes the work.
    Leave,
    /// The worker no longer holds the handoff, for this reason.
    Lost(String),
    /// The agent has ended the work itself, but still runs.
    Done,
    /// Its work is paused, at once, for this reason.
    Paused(String),
    /// Its time is up.
    Time,
    /// Its budget is spent, in words.
    Spent(String),
}

/// A message to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// Its command has ended.
    Ended,
    /// It must end.
    Stop(Stop),
}

/// How a run ended.
pub(super) struct End {
    /// Why it was stopped, if it was.
    pub(super) stopped: Option<Stop>,
    /// The command's exit status; `None` if the worker was killed.
    pub(super) status: Option<ExitStatus>,
    /// The end of its output.
    pub(super) tail: String,
    pub(super) used: UsageSoFar,
}

impl End {
    /// Whether the command reported success.
    pub(super) fn went_well(&self) -> bool {
        self.stopped.is_none() && self.status.is_none_or(|status| status.success())
    }
}

/// The files of a run: the folder in the worktree, and the worker's own.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) agent: AgentFolder,
    pub(super) own: RunFolder,
}

impl Files {
    /// The contract that was left, if any.
    ///
    /// # Errors
    /// Why it can't be read as one.
    pub(super) fn contract(&self) -> Result<Option<String>, String> {
        self.agent.text(agent_folder::CONTRACT, MAX_BYTES as u64)
    }

    /// The command's usage report; `None` if there is none.
    ///
    /// # Errors
    /// Why its report can't be recorded.
    fn reported(&self, rules: &[UsageRule]) -> Result<Option<Vec<ModelUsage>>, String> {
        let report = self.agent.read(agent_folder::USAGE, MOST_OF_REPORT)?;
        let usage = report.map(|bytes| usage::in_file(rules, &bytes));
        usage.transpose()
    }

    /// A run's usage so far: from its output or its report, whichever is more.
    fn used_so_far(&self, rules: &[UsageRule], output: UsageSoFar) -> UsageSoFar {
        // A file that can't be read may be half written: use the output.
        let file = self.reported(rules).ok().flatten().unwrap_or_default();
        UsageSoFar {
            usage: usage::combine(&file, &output.usage),
            ..output
        }
    }

    /// The usage of an ended run. A file that can't be read is now a fault.
    fn used(&self, rules: &[UsageRule], output: UsageSoFar) -> UsageSoFar {
        let refused = self.reported(rules).err();
        let used = self.used_so_far(rules, output);
        UsageSoFar {
            unreadable: used.unreadable.or(refused),
            ..used
        }
    }

    /// The end of a run whose worker was killed.
    pub(super) fn end_of_killed(&self, role: &Role) -> End {
        let (used, tail) = of_killed(&self.own.log(), &role.usage);
        End {
            stopped: None,
            status: None,
            tail,
            used: self.used(&role.usage, used),
        }
    }
}

/// The lease of a piece of work.
pub(super) struct Lease {
    pub(super) id: String,
    pub(super) token: String,
    /// When it is extended next; `None` if it never ends.
    pub(super) due: Option<Instant>,
}

impl Lease {
    /// Reads the lease from the answer of a claim or an extension.
    pub(super) fn of(answer: &serde_json::Value) -> Self {
        Self {
            id: answer["id"].as_str().unwrap_or_default().to_owned(),
            token: answer["token"].to_string(),
            due: half_way(answer["expires_at"].as_str()),
        }
    }

    /// Extends the lease once half of it is over, and reports the usage so far.
    fn keep(
        &mut self,
        room: &Room<'_>,
        used: &dyn Fn() -> UsageSoFar,
        program: &Program,
    ) -> Option<Stop> {
        if self.due.is_none_or(|due| Instant::now() < due) {
            return None;
        }
        let usage = usage::option(&room.with_earlier(used()).usage);
        let mut words = vec!["extend", &self.id, "--token", &self.token];
        words.extend(usage.as_deref());
        let said = program.run(room.actor, &words);
        if matches!(said.exit, 4 | 5) && !said.may_pass() {
            return Some(Stop::Lost(said.message().to_owned()));
        }
        self.due = match said.data()["handoff"]["expires_at"].as_str() {
            Some(end) => half_way(Some(end)),
            None => Some(Instant::now() + AGAIN),
        };
        None
    }
}

/// The middle of the remaining time.
fn half_way(end: Option<&str>) -> Option<Instant> {
    let end: DateTime<Utc> = end?.parse().ok()?;
    let left = end
        .signed_duration_since(Utc::now())
        .to_std()
        .unwrap_or_default();
    Some(Instant::now() + left / 2)
}

/// What a run needs to start and to watch a command.
pub(super) struct Room<'a> {
    pub(super) role: &'a Role,
    pub(super) actor: &'a Actor,
    /// The program's own file.
    pub(super) own: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) files: &'a Files,
    /// The usage of earlier runs of the work.
    pub(super) before: &'a [ModelUsage],
    /// The budget of the work.
    pub(super) share: &'a Share,
    /// Its time limit.
    pub(super) time: Option<Duration>,
    /// More variables.
    pub(super) variables: &'a [(String, String)],
}

/// A running command.
pub(super) struct Started {
    reaper: Child,
    output: RunOutput,
}

impl Started {
    /// The id of the reaper, below which all processes of the run are.
    pub(super) fn number(&self) -> u32 {
        self.reaper.id()
    }
}

impl Room<'_> {
    /// Starts the agent's command.
    pub(super) fn start(&self, group: &ProcessGroup, prompt: &str) -> Result<Started, String> {
        let agent = &self.files.agent;
        agent.write(agent_folder::PROMPT, prompt.as_bytes())?;
        let prompt_file = agent.file(agent_folder::PROMPT);
        let usage_file = agent.file(agent_folder::USAGE);
        let (words, by) = self.role.words(&Given {
            prompt,
            prompt_file: &prompt_file,
            usage_file: &usage_file,
            budget: self.share.cost_left("USD"),
            folder: self.folder,
        });
        let input = Some(prompt).filter(|_| by == PromptBy::Stdin);
        self.spawn(group, &words, input)
    }

    /// Starts a command below a reaper, with a text on standard input or nothing.
    pub(super) fn spawn(
        &self,
        group: &ProcessGroup,
        words: &[String],
        input: Option<&str>,
    ) -> Result<Started, String> {
        // Remove the files of an earlier run.
        self.files.agent.clear();
        let log = self.files.own.log();
        let failed = |error: io::Error| format!("{}: {error}", log.display());
        let (reader, writer) = io::pipe().map_err(failed)?;
        let errors = writer.try_clone().map_err(failed)?;
        let output = RunOutput::read(reader, &log, &self.role.usage).map_err(failed)?;
        let mut command = Command::new(self.own);
        let grace = format!("--reaper={}", self.role.bounds.grace.as_millis());
        command.args(["work", &grace]);
        if let Some(cgroup) = &group.cgroup {
            command.arg("--cgroup").arg(cgroup);
        }
        command.arg("--").args(words);
        command
            .current_dir(self.folder)
            .stdout(writer)
            .stderr(errors);
        command.stdin(match input {
            None => Stdio::null(),
            // Write the worker's own copy of the prompt: the agent may have replaced its file.
            Some(text) => {
                let path = self.files.own.write("prompt.md", text.as_bytes());
                Stdio::from(path.and_then(File::open).map_err(failed)?)
            }
        });
        self.surround(&mut command, group);
        let reaper = command
            .spawn()
            .map_err(|error| format!("{} can't be started: {error}", words[0]))?;
        Ok(Started { reaper, output })
    }

    /// Gives a command its environment: the variables that the role lets through, and those of the
    /// run.
    fn surround(&self, command: &mut Command, group: &ProcessGroup) {
        command.env_clear();
        let passing = environment::variables();
        command
            .envs(passing.filter(|(name, _)| name.to_str().is_some_and(|n| self.role.passes(n))));
        alone(command);
        let agent = &self.files.agent;
        command
            .envs(&self.role.variables)
            .env(MARK, &group.mark)
            .env(CONTRACT, agent.file(agent_folder::CONTRACT))
            .env(USAGE, agent.file(agent_folder::USAGE))
            .env("GIT_HANDOFF_AGENT", self.actor.agent.as_str())
            .env("GIT_HANDOFF_WORKER", self.actor.worker.as_str())
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
    }

    /// The usage of the work so far, earlier runs included.
    fn with_earlier(&self, used: UsageSoFar) -> UsageSoFar {
        let mut all = self.before.to_vec();
        usage::add(&mut all, used.usage);
        UsageSoFar {
            usage: all,
            unreadable: used.unreadable,
        }
    }

    /// Waits for the end of the command, and ends its remaining processes.
    pub(super) fn watch(
        &self,
        started: Started,
        group: &ProcessGroup,
        lease: &mut Lease,
        line: &Line<'_>,
    ) -> End {
        let Started { mut reaper, output } = started;
        tell_end(&reaper, line.sender.clone());
        let rules = &self.role.usage;
        let used = || self.files.used_so_far(rules, output.used());
        let stopped = self.stopped(&used, lease, line);
        group.end(self.role.bounds.grace);
        // The group was killed, unless a process belongs to another user: don't wait for that
        // forever.
        let begun = Instant::now();
        let mut status = None;
        while status.is_none() && begun.elapsed() < UNHEARD {
            status = reaper.try_wait().ok().flatten();
            if status.is_none() {
                thread::sleep(Duration::from_millis(5));
            }
        }
        let tail = output.end();
        End {
            stopped,
            status,
            tail,
            used: self.files.used(rules, output.used()),
        }
    }

    /// Waits until the command ends, or must end.
    fn stopped(
        &self,
        used: &dyn Fn() -> UsageSoFar,
        lease: &mut Lease,
        line: &Line<'_>,
    ) -> Option<Stop> {
        let after = |time: Option<Duration>| time.and_then(|time| Instant::now().checked_add(time));
        let share = environment::now().ok().and_then(|now| self.share.time(now));
        let (over, out_of_budget) = (after(self.time), after(share));
        let is_past = |end: Option<Instant>| end.is_some_and(|end| Instant::now() >= end);
        loop {
            if is_past(over) {
                return Some(Stop::Time);
            }
            if is_past(out_of_budget) {
                return Some(Stop::Spent("its time is spent".to_owned()));
            }
            if let Some(spent) = self.share.exceeded_by(|| self.with_earlier(used())) {
                return Some(Stop::Spent(spent));
            }
            if let Some(lost) = lease.keep(self, used, line.program) {
                return Some(lost);
            }
            let compared = self.share.is_measured().then(|| Instant::now() + COMPARED);
            let next = [over, out_of_budget, lease.due, compared]
                .into_iter()
                .flatten()
                .min();
            let pause = next.map(|next| next.saturating_duration_since(Instant::now()));
            match line
                .notices
                .recv_timeout(pause.unwrap_or(Duration::from_secs(3600)))
            {
                Ok(Notice::Ended) => return None,
                Ok(Notice::Stop(stop)) => return Some(stop),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Some(Stop::Leave),
            }
        }
    }
}

/// How a run gets messages and acts on the ledger.
pub(super) struct Line<'a> {
    pub(super) program: &'a Program,
    pub(super) notices: &'a Receiver<Notice>,
    pub(super) sender: &'a Sender<Notice>,
}

/// Sends a message when a process has ended, without reaping it: its id can't be reused before
/// that.
fn tell_end(child: &Child, sender: Sender<Notice>) {
    let Some(number) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return;
    };
    thread::spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(number), options), Err(Errno::INTR)) {}
        // The receiver may be gone.
        let _ = sender.send(Notice::Ended);
    });
}

/// Why the reaper could not start the command, from the last line of its output.
pub(super) fn not_started(end: &End) -> Option<String> {
    let code = end.status.and_then(|status| status.code());
    let line = end.tail.lines().next_back()?;
    let text = line.strip_prefix(reaper::PREFIX)?;
    (code == Some(i32::from(reaper::NOT_STARTED))).then(|| text.to_owned())
}
