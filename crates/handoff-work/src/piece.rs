//! One piece of work, from its claim to its end: a worktree, a run of the command, and the recorded
//! result.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::Duration;

use handoff::base::finding::FindingCode;
use handoff::base::ids::HandoffId;
use handoff::base::text::quoted;
use handoff::contract::Secrets;
use handoff::git::Repository;
use handoff::ledger::Snapshot;
use handoff::model::{BranchPatterns, ModelUsage, Record, View};
use handoff::protocol::{AnotherTry, Retry, RunFailure, State};
use serde_json::Value;

use super::agent_folder::{self, AgentFolder};
use super::program::{Actor, Program, Said, word};
use super::prompt::{self, Work};
use super::roles::{Commits, Role};
use super::run::{End, Files, Lease, Line, Notice, Room, Started, Stop, not_started};
use super::run_output::RunFolder;
use super::share::Share;
use super::slot::{Note, Slot};
use super::turn::Merging;
use super::usage;
use super::worktree::{Trouble, Wanted, Worktree, Worktrees};
use handoff_cli::process::ProcessGroup;

/// The number of attempts at a step while the remote is busy or absent, and the pause between them.
pub(super) const TRIES: u32 = 8;
pub(super) const PAUSE: Duration = Duration::from_secs(4);

/// The number of killed workers after which a piece of work is given up.
const CUT_OFF: u32 = 3;

/// The maximum size of a reason in an agent's file, in bytes.
const MOST_OF_REASON: u64 = 64 * 1024;

/// The maximum size of a step's text, in bytes: the ledger accepts 64 KiB.
const MOST_OF_TEXT: usize = 60 * 1024;

/// A piece of work of this process.
pub(super) struct Piece {
    pub(super) program: Program,
    pub(super) worktrees: Worktrees,
    pub(super) role: Role,
    pub(super) actor: Actor,
    pub(super) slot: Slot,
    pub(super) id: HandoffId,
    /// The answer of `claim`.
    pub(super) claimed: Value,
    /// Whether another run works on the same issue, so that this one has a branch of its own.
    pub(super) is_beside: bool,
    /// Whether the role only reads the code.
    pub(super) only_looks: bool,
    /// Its part in merges.
    pub(super) merging: Merging,
    /// The protocol's rules for failures.
    pub(super) retry: Retry,
    /// The remote that code is pushed to.
    pub(super) remote: Option<String>,
    /// The ref with the remote's branch of the ledger as last seen, if the ledger has a remote.
    pub(super) tracking: Option<String>,
    /// The ledger's branch.
    pub(super) ledger: String,
    /// The patterns of branches named after issues.
    pub(super) patterns: BranchPatterns,
    /// A killed worker's note about it.
    pub(super) earlier: Option<Note>,
    pub(super) notices: Receiver<Notice>,
    pub(super) sender: Sender<Notice>,
    /// Its processes, including the program's own.
    pub(super) group: ProcessGroup,
}

/// The result of a piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was sent on, or ended otherwise by its agent; with the contradicted statements.
    HandedOn(Vec<String>),
    /// It failed, for this reason.
    Failed(String),
    /// It waits for a person, for this reason; with the command that answers.
    Blocked(String, Option<String>),
    /// It could not be done now, for this reason, and is pending again.
    GivenBack(String, Later),
    /// It was paused at once, for this reason, and is pending again.
    Paused(String),
    /// Another worker has it now, for this reason.
    Lost(String),
    /// It is still claimed, and the next holder of its slot resumes it: the worker ended, or the
    /// result could not be recorded, for this reason.
    Left(Option<String>),
}

/// The result of a push.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The remote has the branch, or it must not be pushed.
    Done,
    /// The remote refused it, in git's words.
    Refused(String),
    /// The remote was unreachable, in git's words.
    Unreachable(String),
}

/// When to retry work that could not be done now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Later {
    /// After this time, if the program states one.
    pub(super) after: Option<Duration>,
    /// Whether the obstacle passes by itself.
    pub(super) passes: bool,
}

/// Why a piece of work is given up.
struct Fault {
    kind: RunFailure,
    message: String,
    details: Option<String>,
    /// When to try again, if that helps later.
    later: Later,
}

impl Fault {
    fn new(kind: RunFailure, message: String) -> Self {
        Self {
            kind,
            message,
            details: None,
            later: Later::default(),
        }
    }
}

/// A fault in what an agent left, for it to fix.
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) findings: String,
}

/// The place of the work.
pub(super) struct Place {
    pub(super) folder: PathBuf,
    pub(super) has_earlier_work: bool,
    /// Held until the work ends; `None` in the repository's own working tree.
    pub(super) worktree: Option<Worktree>,
}

/// A piece of work and its place.
pub(super) struct Site<'a> {
    pub(super) place: &'a Place,
    pub(super) files: &'a Files,
    pub(super) say: &'a dyn Fn(String),
}

impl Piece {
    /// Does the work. Returns the slot for the next piece.
    pub(super) fn run(self, say: &dyn Fn(String)) -> (Slot, Outcome) {
        let outcome = self.outcome(say);
        if matches!(outcome, Outcome::Left(_)) {
            self.slot.leave();
        } else {
            self.slot.clear();
        }
        (self.slot, outcome)
    }

    /// The warning of its claim that the sent commit is not on the remote.
    fn missing_code(&self) -> Option<String> {
        let mut warnings = self.claimed["warnings"].as_array().into_iter().flatten();
        let missing = warnings.find(|one| one["code"] == FindingCode::CodeMissing.as_str())?;
        let text = |name: &str| missing[name].as_str().unwrap_or_default();
        Some(format!("{}; {}", text("message"), text("fix")))
    }

    fn outcome(&self, say: &dyn Fn(String)) -> Outcome {
        // Give up: an agent must not review or continue another branch than the one that was sent.
        if let Some(why) = self.missing_code() {
            return self.give_up(RunFailure::NeedsPerson, why, None);
        }
        let place = match self.place() {
            Ok(place) => place,
            Err(Trouble::CheckedOut(path)) => {
                let branch = self.branch();
                let why = format!(
                    "branch {branch} is checked out in {path}: switch to another one there, then answer"
                );
                return self.give_up(RunFailure::NeedsPerson, why, None);
            }
            Err(Trouble::Refused(why)) => {
                return self.give_up(RunFailure::BranchRefused, why, None);
            }
            Err(Trouble::Other(why)) => {
                let why = format!("there is no worktree for it: {}", one_line(&why));
                return self.give_up(RunFailure::NotReady, why, None);
            }
        };
        let made = AgentFolder::create(&place.folder).and_then(|agent| {
            let own = RunFolder::create(self.slot.run_folder());
            let own = own.map_err(|error| format!("{error}"))?;
            Ok(Files { agent, own })
        });
        let files = match made {
            Ok(files) => files,
            Err(why) => {
                let why = format!("there is no folder for its files: {}", one_line(&why));
                return self.give_up(RunFailure::NotReady, why, None);
            }
        };
        say(format!(
            "{} {}: runs in {}, its output is in {}",
            self.id,
            self.actor.agent,
            place.folder.display(),
            files.own.log().display()
        ));
        let site = Site {
            place: &place,
            files: &files,
            say,
        };
        let worktree = place.worktree.as_ref();
        let excluded = worktree.map(|worktree| worktree.checkout.excluded());
        let outcome = self.work(&site);
        if let Some((worktree, before)) = worktree.zip(excluded) {
            self.tell_excluded(&before, &worktree.checkout.excluded(), say);
        }
        if !matches!(outcome, Outcome::Left(_) | Outcome::Lost(_)) {
            self.publish(&place, say);
        }
        if !matches!(outcome, Outcome::Left(_)) && self.is_whole(&place) {
            files.agent.discard();
        }
        drop(place.worktree);
        outcome
    }

    /// Says which files git ignores since the agent ran: they are in no commit.
    fn tell_excluded(&self, before: &str, after: &str, say: &dyn Fn(String)) {
        const NAMED: usize = 3;
        let known: HashSet<&str> = before.lines().collect();
        let mut added = after.lines().filter(|line| !known.contains(line));
        let named: Vec<String> = added.by_ref().take(NAMED).map(quoted).collect();
        if !named.is_empty() {
            let more = if added.next().is_some() { ", …" } else { "" };
            let named = named.join(", ");
            say(format!(
                "{}: meanwhile info/exclude has got new lines, and what they match is in no commit: {named}{more}",
                self.id
            ));
        }
    }

    /// Runs the command, and again with the findings about a refused contract.
    fn work(&self, site: &Site<'_>) -> Outcome {
        let cut_off = self.cut_off();
        if cut_off >= CUT_OFF {
            let fault = Fault::new(
                RunFailure::WorkersLost,
                format!("{cut_off} workers were killed over it"),
            );
            return self.fail(site, "", fault, None);
        }
        if let Some(outcome) = self.bring_base(site) {
            return outcome;
        }
        if let Err(why) = self.set_up(site) {
            return why;
        }
        let first = self.prompt(site, self.earlier.is_some());
        let mut prompt = first.clone();
        let mut lease = Lease::of(&self.claimed);
        let share = Share::of(&self.claimed);
        let (mut used, mut end) = self.left_by_killed(site.files);
        for run in 0..=self.role.bounds.mend {
            let ended = match end.take() {
                Some(end) => Ok(end),
                None => self.run_once(site, &prompt, &mut lease, (&used, &share)),
            };
            let mut ended = match ended {
                Ok(end) => end,
                Err(why) => {
                    let fault = Fault::new(RunFailure::NotStarted, one_line(&why));
                    return self.fail(site, "", fault, None);
                }
            };
            ended.used = share.recorded(ended.used);
            if let Some(why) = &ended.used.unreadable {
                let spent = share.exceeded_by(|| ended.used.clone());
                let counts = match &spent {
                    Some(_) => "counts as all that was left",
                    None => "is not recorded",
                };
                (site.say)(format!("{}: its usage report {counts}: {why}", self.id));
                ended.stopped = ended.stopped.or(spent.map(Stop::Spent));
            }
            usage::add(&mut used, ended.used.usage.clone());
            let option = usage::option(&used);
            match self.settle(site, &ended, option.as_deref()) {
                Ok(outcome) => return outcome,
                Err(refusal) if run < self.role.bounds.mend => {
                    (site.say)(format!("{}: run again: {}", self.id, refusal.message));
                    let contract = site.files.contract().ok().flatten().unwrap_or_default();
                    let agent = &site.files.agent;
                    let why = (refusal.message.as_str(), refusal.findings.as_str());
                    let (text, long) = prompt::mend(&first, agent.path(), &contract, why);
                    agent.add(&long);
                    prompt = text;
                }
                Err(refusal) => return self.refused(site, &ended, refusal, option.as_deref()),
            }
        }
        unreachable!("the last run has an outcome")
    }

    /// Gives up work whose contract is refused after the last run.
    fn refused(&self, site: &Site<'_>, end: &End, refusal: Refusal, used: Option<&str>) -> Outcome {
        let mut lines = refusal.findings.lines();
        let first = lines.next().and_then(|line| line.strip_prefix("- "));
        let message = format!(
            "its contract was refused: {}",
            first.unwrap_or(&refusal.message)
        );
        let fault = Fault {
            details: Some(refusal.findings.clone()),
            ..Fault::new(RunFailure::ContractRefused, message)
        };
        self.fail(site, &end.tail, fault, used)
    }

    /// How many workers were killed while they ran this piece.
    fn cut_off(&self) -> u32 {
        let note = self.earlier.as_ref();
        note.map_or(0, |note| note.cut_off + u32::from(!note.is_left))
    }

    /// The usage of a killed worker's runs, and the end of the last one if it left a contract: that
    /// end counts like a new run's.
    fn left_by_killed(&self, files: &Files) -> (Vec<ModelUsage>, Option<End>) {
        let Some(note) = &self.earlier else {
            return (Vec::new(), None);
        };
        let mut used = note.usage.clone();
        if !note.has_run {
            return (used, None);
        }
        let end = files.end_of_killed(&self.role);
        if !note.was_running && matches!(files.contract(), Ok(Some(_))) {
            return (used, Some(end));
        }
        usage::add(&mut used, end.used.usage);
        (used, None)
    }

    fn place(&self) -> Result<Place, Trouble> {
        if self.role.bounds.in_place {
            return Ok(Place {
                folder: self.program.folder().to_owned(),
                has_earlier_work: false,
                worktree: None,
            });
        }
        let branch = self.branch();
        if self.only_looks {
            Self::ensure_name(&branch)?;
        } else {
            self.may_write(&branch).map_err(Trouble::Refused)?;
        }
        // The agent that sent this may be about to end.
        let waits = !self.is_beside;
        let has_failed = self.claimed["failures"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        let worktree = self.worktrees.open(&Wanted {
            id: &self.id,
            actor: &self.actor,
            branch: &branch,
            detached: self.only_looks,
            sent: self.claimed["work"]["branch"]["sent"].as_str(),
            restores: has_failed,
            remote: self.remote.as_deref(),
            base: &self.base(),
            brings_base: self.merging.merges || self.merging.is_conflict,
            waits,
        })?;
        Ok(Place {
            folder: worktree.checkout.path.clone(),
            has_earlier_work: worktree.has_earlier_work,
            worktree: Some(worktree),
        })
    }

    /// Refuses a branch that can't be an argument of git: a contract's word could be an option.
    fn ensure_name(branch: &str) -> Result<(), Trouble> {
        let is_name = Repository::is_ref_name(&format!("refs/heads/{branch}"));
        if branch.starts_with(['-', '+']) || !is_name {
            let quoted = handoff::base::text::quoted(branch);
            return Err(Trouble::Refused(format!("{quoted} is no name of a branch")));
        }
        Ok(())
    }

    /// The branch: the one in the issue's contracts, else one for the issue; for a part that runs
    /// beside another, one for the handoff.
    pub(super) fn branch(&self) -> String {
        let named = self.claimed["work"]["branch"]["name"].as_str();
        named.map_or_else(|| self.unnamed_branch(), str::to_owned)
    }

    /// The branch if no contract names one, the same for each attempt.
    pub(super) fn unnamed_branch(&self) -> String {
        let own = format!("handoff/{}", self.id);
        let shared = format!("handoff/{}", self.id.issue());
        let is_own = match self.worktrees.begun_on(&self.id) {
            Some(begun) if begun == shared => false,
            Some(begun) if begun == own => true,
            _ => self.is_beside || self.worktrees.has_branch(&own),
        };
        if is_own { own } else { shared }
    }

    /// The branches of other parts of the issue that ran beside this one, and whose commits are
    /// missing here.
    fn parts(&self, within: &Program) -> Vec<String> {
        let issue = self.id.issue();
        let own = format!("refs/heads/handoff/{issue}.*");
        let remote = self.remote.as_deref();
        let theirs = remote.map(|remote| format!("refs/remotes/{remote}/handoff/{issue}.*"));
        let mut words = vec![
            "for-each-ref",
            "--format=%(refname)",
            "--no-merged=HEAD",
            &own,
        ];
        words.extend(theirs.as_deref());
        // Most issues have no parts, which takes no process to see.
        let theirs = remote.map(|remote| format!("refs/remotes/{remote}/handoff/"));
        let folders = [Some("refs/heads/handoff/"), theirs.as_deref()];
        let names = within.refs(&folders.into_iter().flatten().collect::<Vec<_>>());
        if !names
            .iter()
            .any(|name| name.contains(&format!("/handoff/{issue}.")))
        {
            return Vec::new();
        }
        let found = within.git(&words).unwrap_or_default();
        let part = |name: &str| name.rsplit_once("/handoff/")?.1.parse::<HandoffId>().ok();
        let parts: BTreeSet<HandoffId> = found.lines().filter_map(part).collect();
        let parts = parts.iter().filter(|part| part.issue() == issue);
        parts.map(|part| format!("handoff/{part}")).collect()
    }

    /// The base of the issue's branch: from its facts, else the repository's main branch.
    pub(super) fn base(&self) -> String {
        let noted = self.claimed["work"]["base"].as_str();
        noted.map_or_else(
            || self.worktrees.base(self.remote.as_deref()),
            str::to_owned,
        )
    }

    fn prompt(&self, site: &Site<'_>, was_cut_off: bool) -> String {
        let within = self.within(site.place);
        let has_branch = within.branch().is_some();
        let agent = &site.files.agent;
        let (text, long) = prompt::first(&Work {
            program: &within,
            folder: agent.path(),
            commits_for_agent: self.role.commits == Commits::Worker,
            is_apart: !has_branch && !self.only_looks,
            actor: &self.actor,
            claimed: &self.claimed,
            branch: &self.branch(),
            base: &self.base(),
            parts: &self.parts(&within),
            has_worktree: site.place.worktree.is_some(),
            detached: self.only_looks,
            has_earlier_work: site.place.has_earlier_work,
            was_cut_off,
            time: self.time(),
        });
        agent.add(&long);
        text
    }

    /// Runs commands in this place.
    pub(super) fn within(&self, place: &Place) -> Program {
        match &place.worktree {
            Some(worktree) => self.program.within(&worktree.checkout),
            None => self.program.clone(),
        }
    }

    /// Whether the place is still the original one.
    fn is_whole(&self, place: &Place) -> bool {
        let worktree = place.worktree.as_ref();
        worktree.is_none_or(|worktree| worktree.checkout.check().is_ok())
    }

    /// The variables that are set for the agent, besides those that are let through.
    fn variables(&self) -> Vec<(String, String)> {
        let mut variables = vec![
            ("GIT_HANDOFF_ISSUE".to_owned(), self.id.issue().to_string()),
            ("GIT_HANDOFF_ID".to_owned(), self.id.to_string()),
            ("GIT_HANDOFF_BRANCH".to_owned(), self.branch()),
            ("GIT_HANDOFF_BASE".to_owned(), self.base()),
        ];
        let steps = self.claimed["record"]["transitions"].as_array();
        let mut steps = steps.into_iter().flatten().rev();
        if let Some(parent) = steps.find_map(|step| step["traceparent"].as_str()) {
            variables.push(("TRACEPARENT".to_owned(), parent.to_owned()));
        }
        variables.extend(self.relative_remotes());
        variables
    }

    fn room<'a>(
        &'a self,
        site: &Site<'a>,
        time: Option<Duration>,
        (before, share): (&'a [ModelUsage], &'a Share),
        variables: &'a [(String, String)],
    ) -> Room<'a> {
        Room {
            role: &self.role,
            actor: &self.actor,
            own: self.program.own(),
            folder: &site.place.folder,
            files: site.files,
            before,
            share,
            time,
            variables,
        }
    }

    /// The time limit of a run: the role's, else the protocol's.
    pub(super) fn time(&self) -> Option<Duration> {
        let longest = self.claimed["longest_run_seconds"].as_u64();
        let longest = longest.map(Duration::from_secs);
        self.role.bounds.time.or(longest)
    }

    /// Sets a new worktree up.
    ///
    /// # Errors
    /// The result of the work if that fails; the machine is to blame.
    fn set_up(&self, site: &Site<'_>) -> Result<(), Outcome> {
        let is_new = site.place.worktree.as_ref().is_some_and(|one| one.is_new);
        let Some(setup) = self.role.setup.as_ref().filter(|_| is_new) else {
            return Ok(());
        };
        let (share, variables) = (Share::default(), self.variables());
        let room = self.room(site, Some(setup.time), (&[], &share), &variables);
        let group = self.group.clone().confined();
        let started = room.spawn(&group, &setup.command, None);
        let mut lease = Lease::of(&self.claimed);
        let end = started.map(|started| self.watched(&room, started, group, &mut lease, &[]));
        let failed = |why: &str| {
            let why = format!("its worktree can't be set up: {}", one_line(why));
            Err(self.give_up(RunFailure::NotReady, why, None))
        };
        match end {
            Ok(end) if end.went_well() => Ok(()),
            Ok(End {
                stopped: Some(Stop::Leave),
                ..
            }) => Err(Outcome::Left(None)),
            Ok(End {
                stopped: Some(Stop::Lost(why)),
                ..
            }) => Err(Outcome::Lost(why)),
            Ok(End {
                stopped: Some(Stop::Paused(why)),
                ..
            }) => Err(self.pause(&why, None)),
            Ok(end) => {
                let (_, why) = why(&end, &setup.command[0], Some(setup.time));
                let last = end.tail.lines().rev().find(|line| !line.trim().is_empty());
                failed(&last.map_or(why.clone(), |last| format!("{why}: {last}")))
            }
            Err(why) => failed(&why),
        }
    }

    /// Runs the command once.
    fn run_once(
        &self,
        site: &Site<'_>,
        prompt: &str,
        lease: &mut Lease,
        (before, share): (&[ModelUsage], &Share),
    ) -> Result<End, String> {
        let variables = self.variables();
        let room = self.room(site, self.time(), (before, share), &variables);
        // Before the start: by the mark, the processes are found even if this worker is killed at
        // once.
        let group = self.group.clone().confined();
        let noted = self.slot.write(&self.note(before, group.clone()));
        noted.map_err(|error| error.to_string())?;
        let branches = self.worktrees.branches();
        let started = room
            .start(&group, prompt)
            .inspect_err(|_| group.end(Duration::ZERO))?;
        let end = self.watched(&room, started, group, lease, before);
        if let Some(worktree) = &site.place.worktree {
            let remote = self.remote.as_deref();
            self.worktrees.note_made(worktree, &branches, remote);
        }
        match not_started(&end) {
            Some(why) => Err(why),
            None => Ok(end),
        }
    }

    fn watched(
        &self,
        room: &Room<'_>,
        started: Started,
        group: ProcessGroup,
        lease: &mut Lease,
        before: &[ModelUsage],
    ) -> End {
        let group = group.reaped_by(started.number());
        // If it can't be written, the mark alone still identifies the processes on Linux.
        let _ = self.slot.write(&self.note(before, group.clone()));
        let line = Line {
            program: &self.program,
            notices: &self.notices,
            sender: &self.sender,
        };
        room.watch(started, &group, lease, &line)
    }

    fn note(&self, before: &[ModelUsage], group: ProcessGroup) -> Note {
        Note {
            agent: self.actor.agent.clone(),
            worker: self.actor.worker.clone(),
            id: Some(self.id.clone()),
            cut_off: self.cut_off(),
            is_left: false,
            has_run: true,
            was_running: false,
            usage: before.to_vec(),
            group: Some(group),
        }
    }

    /// Records the result of a run.
    ///
    /// # Errors
    /// The fault in what was left.
    fn settle(&self, site: &Site<'_>, end: &End, used: Option<&str>) -> Result<Outcome, Refusal> {
        match &end.stopped {
            Some(Stop::Leave) => {
                if let Some(outcome) = self.ended_by_agent(used) {
                    return Ok(outcome);
                }
                self.note_usage(used);
                return Ok(Outcome::Left(None));
            }
            Some(Stop::Lost(why)) => return Ok(Outcome::Lost(why.clone())),
            Some(Stop::Done | Stop::Paused(_) | Stop::Time | Stop::Spent(_)) | None => {}
        }
        if let Err(why) = self.take_back(site) {
            let fault = Fault::new(RunFailure::NoWorktree, one_line(&why));
            return Ok(self.fail_without(end, fault, used, site));
        }
        let pushed = self.push(site);
        if let Some(outcome) = self.ended_by_agent(used) {
            if matches!(outcome, Outcome::HandedOn(_)) {
                self.tell_left_behind(site);
            }
            return Ok(outcome);
        }
        if let Some(Stop::Paused(why)) = &end.stopped {
            return Ok(self.pause(why, used));
        }
        if end.went_well() {
            match site.files.contract() {
                Ok(Some(contract)) => return self.hand_on(site, &contract, used),
                Ok(None) => {}
                Err(why) => {
                    return Err(Refusal {
                        message: format!("the contract can't be read: {why}"),
                        findings: String::new(),
                    });
                }
            }
        }
        if let Some(outcome) = self.said_in_a_file(site, end, used) {
            return Ok(outcome);
        }
        let code = end.status.and_then(|status| status.code());
        // A program that retries until its time is up may have ended without an error message.
        let is_over = end.stopped == Some(Stop::Time);
        if let Some(now) = self.role.unavailable(code, &end.tail)
            && (is_over || end.stopped.is_none())
        {
            let later = Later {
                after: now.retry_after,
                passes: now.passes,
            };
            let fault = Fault {
                later,
                ..Fault::new(RunFailure::Unavailable, now.reason)
            };
            return Ok(self.fail(site, &end.tail, fault, used));
        }
        if end.stopped.is_none()
            && let Some(question) = self.role.question(&end.tail)
        {
            let mut reason = format!("its agent waits for a permission: {}", question.text);
            if let Some(rule) = question.rule {
                reason += &format!("; {rule} in the file of roles allows it");
            }
            return Ok(self.give_up(RunFailure::NeedsPerson, reason, used));
        }
        let (kind, message) = why(end, self.role.program(), self.time());
        let details = match pushed {
            Pushed::Refused(why) | Pushed::Unreachable(why) => Some(why),
            Pushed::Done => None,
        };
        let fault = Fault {
            details,
            ..Fault::new(kind, message)
        };
        Ok(self.fail(site, &end.tail, fault, used))
    }

    /// The result that an agent left in a file instead of a contract: a question for a person, or
    /// why the work can't be done.
    fn said_in_a_file(&self, site: &Site<'_>, end: &End, used: Option<&str>) -> Option<Outcome> {
        let text = |name: &str| {
            let text = site.files.agent.text(name, MOST_OF_REASON).ok().flatten();
            text.map(|text| text.trim().to_owned())
        };
        if end.stopped.is_some() {
            return None;
        }
        if let Some(reason) = text(agent_folder::BLOCKED) {
            return Some(self.block(&reason, used));
        }
        let said = text(agent_folder::FAILED)?;
        let (message, details) = said.split_once('\n').unwrap_or((&said, ""));
        let fault = Fault {
            details: Some(details.to_owned()),
            ..Fault::new(RunFailure::AgentFailed, message.to_owned())
        };
        Some(self.fail(site, &end.tail, fault, used))
    }

    /// The result, if its agent recorded it itself.
    fn ended_by_agent(&self, used: Option<&str>) -> Option<Outcome> {
        // If the handoff can't be read, assume that it was not sent on; the next step finds out.
        let record = self.newest_record()?;
        let own = &self.actor.worker;
        if record.state == State::InProgress {
            let holder = record.lease.as_ref().map(|lease| &lease.worker);
            let other = holder.filter(|holder| *holder != own)?;
            return Some(Outcome::Lost(format!(
                "worker {other} holds {} now",
                self.id
            )));
        }
        let last = record.transitions.last();
        let by = last.and_then(|last| last.worker.as_ref());
        if by.is_some_and(|worker| worker != own) {
            return Some(Outcome::Lost(format!("{} is {}", self.id, record.state)));
        }
        self.report(used);
        let reason = last.and_then(|last| last.reason.as_deref());
        let reason = one_line(reason.unwrap_or("no reason was given"));
        Some(match record.state {
            State::Failed | State::Dead => {
                let failure = last.and_then(|last| last.failure.as_ref());
                Outcome::Failed(failure.map_or(reason, |failure| one_line(&failure.message)))
            }
            State::Blocked => Outcome::Blocked(reason, self.answer_command()),
            State::Pending => Outcome::GivenBack(reason, Later::default()),
            _ => Outcome::HandedOn(Vec::new()),
        })
    }

    /// The handoff by the newest state known here: an agent records in this clone.
    fn newest_record(&self) -> Option<Record> {
        let clone = Repository::open_here().ok()?;
        let commit = |name: &str| clone.resolve(name).ok().flatten();
        let here = format!("refs/heads/{}", self.ledger);
        let theirs = self.tracking.as_deref();
        let theirs = theirs.filter(|theirs| self.program.is_in_history(&here, theirs));
        let newest = commit(theirs.unwrap_or(&here))?;
        let tip = Snapshot::at(&clone, newest, &self.ledger).ok()?;
        tip.issue(self.id.issue())
            .ok()?
            .record(self.id.number())
            .ok()?
    }

    /// The command by which a person answers what its agent asked.
    fn answer_command(&self) -> Option<String> {
        let show = ["show", &self.id.to_string(), "--offline"];
        let said = self.program.run_again(&self.actor, &show, (TRIES, PAUSE));
        let mut options = said.data()["options"].as_array()?.iter();
        let answer = options.find(|one| one["action"] == "ask")?;
        answer["command"].as_str().map(str::to_owned)
    }

    /// Sends the work on by the contract that was left.
    fn hand_on(
        &self,
        site: &Site<'_>,
        contract: &str,
        used: Option<&str>,
    ) -> Result<Outcome, Refusal> {
        self.commit(site)?;
        if self.only_looks {
            self.tell_left_behind(site);
        }
        match self.push(site) {
            Pushed::Done => {}
            // A rule of the remote, which no agent can change.
            Pushed::Refused(why) if why.contains("[remote rejected]") => {
                let (branch, why) = (self.branch(), one_line(&why));
                let why = format!("branch {branch} can't be pushed, a rule refuses it: {why}");
                return Ok(self.give_up(RunFailure::NeedsPerson, why, used));
            }
            Pushed::Refused(why) => {
                return Err(Refusal {
                    message: format!("branch {} can't be pushed", self.branch()),
                    findings: format!("- the remote refuses it: {}\n", one_line(&why)),
                });
            }
            Pushed::Unreachable(why) => {
                let why = one_line(&why);
                return Ok(Outcome::Left(Some(format!(
                    "its branch can't be pushed: {why}"
                ))));
            }
        }
        if let Some(remote) = &self.remote {
            // Fetch the base: `send` may have to name commits that were merged there meanwhile.
            self.worktrees.refresh(remote, &self.base());
        }
        // A copy, so that the checked bytes are sent.
        let copy = site.files.own.write("contract", contract.as_bytes());
        let copy = match copy {
            Ok(copy) => word(&copy),
            Err(error) => return Ok(Outcome::Left(Some(error.to_string()))),
        };
        let token = self.claimed["handoff"]["token"].to_string();
        let issue = self.id.issue().to_string();
        let mut words = vec!["send", &copy, "--issue", &issue, "--token", &token];
        words.extend(used);
        let said = self
            .within(site.place)
            .run_again(&self.actor, &words, (TRIES, PAUSE));
        match said.exit {
            0 | 8 => Ok(Outcome::HandedOn(contradictions(&said))),
            5 => Ok(Outcome::Lost(said.message().to_owned())),
            _ if said.may_pass() => Ok(self.kept(&said)),
            // Another run would fail as well: a person must raise the limit, or end the work.
            _ if said.is_at_limit() => {
                let why = format!("{}: {}", said.message(), said.hint());
                Ok(self.give_up(RunFailure::NeedsPerson, why, used))
            }
            _ => Err(Refusal {
                message: said.message().to_owned(),
                findings: said.findings(),
            }),
        }
    }

    /// The result can't be recorded now: the note and the claim stay for the next worker.
    pub(super) fn kept(&self, said: &Said) -> Outcome {
        Outcome::Left(Some(format!(
            "the result can't be recorded: {}",
            said.message()
        )))
    }

    /// Reports the usage of work that its agent sent on itself.
    fn report(&self, used: Option<&str>) {
        let Some(used) = used else { return };
        let id = self.id.to_string();
        let words = ["annotate", &id, used];
        // The work is done, even if this can't be recorded.
        self.program.run_again(&self.actor, &words, (TRIES, PAUSE));
    }

    /// Reports the usage of work that is left to the next worker.
    fn note_usage(&self, used: Option<&str>) {
        let Some(used) = used else { return };
        let (id, token) = (
            self.id.to_string(),
            self.claimed["handoff"]["token"].to_string(),
        );
        // The next worker has it in the note, too.
        self.program
            .run(&self.actor, &["extend", &id, "--token", &token, used]);
    }

    /// Records a failure in a worktree that was replaced.
    fn fail_without(
        &self,
        end: &End,
        fault: Fault,
        used: Option<&str>,
        site: &Site<'_>,
    ) -> Outcome {
        let attached = self.attached(site, &end.tail);
        self.record_failure(&self.program, None, &attached, fault, used)
    }

    /// Records a failure, with the files.
    fn fail(&self, site: &Site<'_>, tail: &str, fault: Fault, used: Option<&str>) -> Outcome {
        let attached = self.attached(site, tail);
        let within = self.within(site.place);
        self.record_failure(&within, Some(site.place), &attached, fault, used)
    }

    /// The files that are stored with a failure.
    fn attached(&self, site: &Site<'_>, tail: &str) -> Vec<String> {
        let own = &site.files.own;
        let contract = site.files.contract().ok().flatten();
        let files = [
            ("end-of-output.txt", Some(tail.to_owned())),
            ("contract", contract),
        ];
        let files = files.into_iter().filter_map(|(name, text)| {
            let text = text.filter(|text| !text.is_empty())?;
            own.write(name, text.as_bytes()).ok()
        });
        files.map(|path| word(&path)).collect()
    }

    /// Records a failure of work that has left nothing to keep.
    pub(super) fn give_up(&self, kind: RunFailure, why: String, used: Option<&str>) -> Outcome {
        self.record_failure(&self.program, None, &[], Fault::new(kind, why), used)
    }

    /// Does what the protocol says about such a failure: block, give back, or fail.
    fn record_failure(
        &self,
        within: &Program,
        place: Option<&Place>,
        attached: &[String],
        fault: Fault,
        used: Option<&str>,
    ) -> Outcome {
        match self.retry.another_try(fault.kind) {
            AnotherTry::Person => return self.block(&fault.message, used),
            AnotherTry::Later => return self.give_back(&fault.message, fault.later, used),
            AnotherTry::Now | AnotherTry::Never => {}
        }
        let id = self.id.to_string();
        let token = self.claimed["handoff"]["token"].to_string();
        let said = recordable(&fault.message);
        let message = format!("--message={said}");
        // If a snapshot or file can't be kept, as with a secret in it, retry without: the failure
        // must be recorded.
        let mut last: Option<String> = None;
        let attempts = [
            (within, true, true),
            (within, true, false),
            (within, false, true),
            (within, false, false),
            (&self.program, false, false),
        ];
        for (program, keeps, attaches) in attempts {
            if keeps && place.is_none() {
                continue;
            }
            let mut words = vec!["fail", &id, "--run-failure", fault.kind.as_str(), &message];
            words.extend(["--token", &token]);
            let lost = last.as_ref().map(|why| format!("not kept: {why}"));
            let mut details: Vec<&str> = fault.details.as_deref().into_iter().collect();
            details.extend(lost.as_deref());
            let details = details.join("\n");
            // In one word, since a text may begin with a dash.
            let details = format!("--details={}", recordable(details.trim()));
            words.extend(Some(details.as_str()).filter(|word| *word != "--details="));
            words.extend(used);
            if keeps {
                words.push("--snapshot");
            }
            for path in attached.iter().filter(|_| attaches) {
                words.extend(["--attach", path]);
            }
            let answer = program.run_again(&self.actor, &words, (TRIES, PAUSE));
            match answer.exit {
                0 | 8 => {
                    let place = place.filter(|place| keeps && place.worktree.is_some());
                    if let Some(place) = place {
                        self.tidy(place);
                    }
                    let lost = lost.map(|lost| format!("; {lost}"));
                    return Outcome::Failed(one_line(&(said + &lost.unwrap_or_default())));
                }
                5 | 6 => return Outcome::Lost(answer.message().to_owned()),
                _ if answer.may_pass() => return self.kept(&answer),
                _ => {
                    last = Some(one_line(&format!(
                        "{} {}",
                        answer.message(),
                        answer.findings()
                    )))
                }
            }
        }
        let why = last.unwrap_or_default();
        Outcome::Lost(format!("{said}; that can't be recorded: {why}"))
    }

    /// Resets a worktree whose work the ledger has stored; the next attempt restores that.
    fn tidy(&self, place: &Place) {
        let within = self.within(place);
        if !self.is_whole(place) {
            return;
        }
        let branch = format!("refs/heads/{}", self.branch());
        let mut steps = vec![
            vec!["reset", "--quiet", "--hard"],
            vec!["clean", "--quiet", "-fd"],
        ];
        if within.branch().is_none() {
            steps.push(vec!["switch", "--quiet", "--detach", &branch]);
        }
        for step in steps {
            // The next user of the worktree sets aside what can't be removed.
            let _ = within.git(&step);
        }
    }

    /// Blocks the work until a person decides.
    fn block(&self, reason: &str, used: Option<&str>) -> Outcome {
        let reason = recordable(reason);
        let words = ["block", &self.id.to_string(), &format!("--reason={reason}")];
        self.step(&words, used, |said| {
            let answer = said.data()["next"][0].as_str().map(str::to_owned);
            Outcome::Blocked(one_line(&reason), answer)
        })
    }

    /// Releases paused work; its profile is not to blame.
    fn pause(&self, why: &str, used: Option<&str>) -> Outcome {
        match self.give_back(why, Later::default(), used) {
            Outcome::GivenBack(why, _) => Outcome::Paused(why),
            other => other,
        }
    }

    /// Releases the claim: the work could not be done now, through no fault of its agent.
    fn give_back(&self, reason: &str, later: Later, used: Option<&str>) -> Outcome {
        let reason = recordable(reason);
        let words = [
            "release",
            &self.id.to_string(),
            &format!("--reason={reason}"),
        ];
        self.step(&words, used, |_| Outcome::GivenBack(reason.clone(), later))
    }

    fn step(
        &self,
        words: &[&str],
        used: Option<&str>,
        done: impl FnOnce(&Said) -> Outcome,
    ) -> Outcome {
        let token = self.claimed["handoff"]["token"].to_string();
        let mut words = words.to_vec();
        words.extend(["--token", &token]);
        words.extend(used);
        let said = self.program.run_again(&self.actor, &words, (TRIES, PAUSE));
        match said.exit {
            0 | 8 => done(&said),
            _ if said.may_pass() => self.kept(&said),
            _ => Outcome::Lost(format!("that can't be recorded: {}", said.message())),
        }
    }
}

/// The contradicted statements of what was sent.
fn contradictions(said: &Said) -> Vec<String> {
    let evidence = said.data()["evidence"].as_array();
    let told = evidence.into_iter().flatten().filter_map(|one| {
        let reason = one["reason"].as_str().unwrap_or_default();
        let check = one["check"].as_str().unwrap_or_default();
        (one["result"] == "contradicted").then(|| format!("{check}: {reason}"))
    });
    told.collect()
}

impl Program {
    /// Runs a command, and retries while the remote is busy or absent.
    pub(super) fn run_again(
        &self,
        actor: &Actor,
        words: &[&str],
        (tries, pause): (u32, Duration),
    ) -> Said {
        let mut said = self.run(actor, words);
        for _ in 1..tries {
            if !said.may_pass() {
                break;
            }
            thread::sleep(pause);
            said = self.run(actor, words);
        }
        said
    }
}

/// Why a run that sent nothing on failed.
fn why(end: &End, program: &str, time: Option<Duration>) -> (RunFailure, String) {
    if end.stopped == Some(Stop::Time) {
        let time = humantime::format_duration(time.unwrap_or_default());
        return (RunFailure::TimeSpent, format!("it took longer than {time}"));
    }
    if let Some(Stop::Spent(text)) = &end.stopped {
        return (RunFailure::BudgetSpent, text.clone());
    }
    let program = Path::new(program).file_name();
    let program = program
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let Some(status) = end.status else {
        return (
            RunFailure::NotEnded,
            format!("how {program} ended is not known"),
        );
    };
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return (
            RunFailure::Signal,
            format!("{program} was ended by signal {signal}"),
        );
    }
    match status.code() {
        Some(0) => (
            RunFailure::NothingHandedOn,
            format!("{program} ended and handed nothing on"),
        ),
        code => (
            RunFailure::Exit,
            format!("{program} exited with {}", code.unwrap_or_default()),
        ),
    }
}

/// An agent's or program's message as a valid reason: secrets and NUL bytes are masked, so that the
/// failure can always be recorded.
fn recordable(text: &str) -> String {
    let mut text = text.replace('\0', " ");
    // Before truncation, which could hide half of a secret.
    Secrets::in_value(&Value::from(text.as_str())).mask_text(&mut text);
    text.truncate(text.floor_char_boundary(MOST_OF_TEXT));
    text
}

pub(super) fn one_line(text: &str) -> String {
    handoff::base::text::one_line(text)
}
