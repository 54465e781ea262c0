//! Workers: claim handoffs for their agents, run a command for each, and record the results.
//!
//! The supervisor, here, watches the ledger on one thread: it claims, starts a thread for each
//! piece of work (`piece`), notifies it when its work is lost, and removes worktrees that are no
//! longer needed; `adopt` resumes the work of killed workers. `roles` and `profile` define the
//! commands, `prompt` writes their input, `run` runs them, `slot` notes what runs, `worktree` and
//! `checkout` provide the folders, and `breaker` pauses after failures. `merging` merges the newest
//! base. `decide` makes the steps that need no judgement. Every step on the ledger is a command of
//! the program (`program`), as a person would run it.
//!
//! An agent may be hostile. Its processes are below one of our own (`reaper`, `process`), its
//! output comes through a pipe (`run_output`), its files are read without following links
//! (`agent_folder`), and the worker runs git on what was recorded before (`publish`).

mod adopt;
mod agent_folder;
mod branches;
mod breaker;
mod checkout;
mod decide;
mod documents;
mod listing;
mod merging;
mod piece;
mod profile;
mod program;
mod prompt;
mod publish;
pub mod reaper;
mod recognition;
pub mod roles;
mod run;
mod run_output;
mod share;
mod slot;
mod turn;
mod usage;
mod worktree;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use handoff::base::Moment;
use handoff::base::ObjectId;
use handoff::base::ids::{AgentName, HandoffId, IssueKey, WorkerId};
use handoff::base::text::{continued, cut};
use handoff::base::text::{counted_as, one_line};
use handoff::git::{Repository, Waker};
use handoff::ledger::{Snapshot, claimable, turn_before};
use handoff::model::{BranchPatterns, IssueStatus, Record, View};
use handoff::protocol::State;
#[cfg(target_os = "linux")]
use rustix::process::DumpableBehavior;
use schemars::JsonSchema;
use serde::Serialize;

use branches::Naming;
use breaker::Breakers;
use decide::Decider;
pub use decide::Undecided;
use piece::{Later, Outcome, Piece};
use program::{Actor, Program};
use run::{Notice, Stop};
use slot::{Note, Slot};
use turn::Merging;

use handoff_cli::context::Context;
use handoff_cli::context::interruption::Interruption;
use handoff_cli::context::lookout::{Lookout, Place};
use handoff_cli::environment::{self, drawn, now};
use handoff_cli::failure::{ErrorCode, Failure, hint};
use handoff_cli::output::{Answer, Output, counted};
use handoff_cli::process::ProcessGroup;
use handoff_cli::view::Look;

pub use listing::{Listing, Wanted};
pub use roles::Bounds;
use roles::Role;
use worktree::Worktrees;

/// The delay before another claim after an error.
const AGAIN: Duration = Duration::from_secs(15);

/// How often the supervisor looks if nothing happens: leases expire without a step.
const GLANCE: Duration = Duration::from_secs(20);

/// How long an agent may go on after it sent its work on itself, as a multiple of its grace period.
const LINGERING: u32 = 12;

/// The maximum length of a printed reason, in characters; the ledger has all of it.
const SHOWN: usize = 1000;

/// A worker's task.
pub struct Plan {
    /// The roles that it runs.
    pub roles: Vec<Role>,
    /// Only this issue.
    pub issue: Option<IssueKey>,
    /// The maximum number of pieces of work.
    pub most: Option<usize>,
    /// Whether it ends once nothing waits.
    pub until_idle: bool,
    /// The time after which nothing more is claimed.
    pub time: Option<Duration>,
    /// How often the remote is polled.
    pub poll: Option<Duration>,
    /// Whether it also makes the steps that need no judgement.
    pub decides: bool,
    /// The folder for worktrees.
    pub worktrees: PathBuf,
}

/// A worker's results.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "Work")]
pub struct WorkView {
    /// each piece of work, in the order in which they ended
    pub pieces: Vec<PieceView>,
    /// how many decisions it carried out
    pub decided: usize,
    /// with `--decide`: about what nothing was decided in the end, and why
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<Undecided>,
    /// whether it decides
    #[serde(skip)]
    pub decides: bool,
}

impl WorkView {
    /// Whether a piece of work was not sent on in the end.
    pub fn is_any_left(&self) -> bool {
        let last: BTreeMap<_, _> = self
            .pieces
            .iter()
            .map(|one| (&one.id, one.outcome))
            .collect();
        last.values().any(|outcome| *outcome != "handed_on")
    }
}

impl Answer for WorkView {
    fn text(&self, _: &Look) -> String {
        let pieces = self.pieces.len();
        let mut text = match pieces {
            0 => "no piece of work was done".to_owned(),
            _ => counted_as(pieces, "piece", [" of work", "s of work"]),
        };
        for outcome in [
            "handed_on",
            "failed",
            "blocked",
            "given_back",
            "lost",
            "left",
        ] {
            let count = self
                .pieces
                .iter()
                .filter(|piece| piece.outcome == outcome)
                .count();
            if count > 0 {
                text += &format!(", {count} {}", outcome.replace('_', " "));
            }
        }
        if !self.decides {
            return text + "\n";
        }
        text += &match (self.decided, &self.undecided[..]) {
            (0, []) => ", no decision: nothing failed or ran out".to_owned(),
            (0, _) => ", no decision".to_owned(),
            (count, _) => format!(", {}", counted(count, "decision")),
        };
        for one in &self.undecided {
            let id = one
                .id
                .as_ref()
                .map_or_else(String::new, |id| format!("{id} "));
            text += &format!("\nnot decided: {id}{}", continued(&one.why));
        }
        text + "\n"
    }
}

/// A piece of work.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PieceOfWork")]
pub struct PieceView {
    /// the handoff
    pub id: HandoffId,
    /// the agent
    pub agent: AgentName,
    /// `handed_on`, `failed`, `blocked`, `given_back` (it could not be done now), `lost` (somebody else
    /// has it now), or `left` (still claimed: the worker ended first, or could not record what came of
    /// it)
    pub outcome: &'static str,
    /// why, unless it was handed on
    pub why: Option<String>,
    /// the statements of its contract that the repository contradicts
    pub contradicted: Vec<String>,
}

/// A piece of work in progress.
struct Running {
    role: usize,
    id: HandoffId,
    worker: WorkerId,
    line: Sender<Notice>,
    /// When its agent is stopped, if it has sent the work on itself and still runs.
    until: Option<Instant>,
}

/// A claimed handoff: its id, the answer of `claim`, the note of a killed worker if it is resumed,
/// and the marked group for its processes.
type Claimed = (HandoffId, serde_json::Value, Option<Note>, ProcessGroup);

/// A message of a piece's thread.
enum News {
    /// Its command runs: where, and the file of its output.
    Runs(String),
    /// It ended: its slot, and the result.
    Ended(Slot, Outcome),
}

/// Runs pieces of work.
pub struct Supervisor<'a> {
    context: &'a Context,
    repository: &'a Repository,
    plan: Plan,
    program: Program,
    worktrees: Worktrees,
    /// The folder of the slots.
    folder: PathBuf,
    /// The prefix of its workers' ids.
    base: WorkerId,
    /// The remote that code is pushed to.
    remote: Option<String>,
    /// The ledger's branch.
    ledger: String,
    free: Vec<Slot>,
    running: BTreeMap<usize, Running>,
    news: (Sender<News>, Receiver<News>),
    waker: Option<Waker>,
    done: WorkView,
    claimed: usize,
    /// Until when each role claims nothing after an error.
    resting: BTreeMap<usize, Instant>,
    /// The profiles that can't run now.
    breakers: Breakers,
    /// The slots that others left, and since when that is known.
    abandoned: BTreeMap<usize, Instant>,
    /// The worktrees of ended issues that contain unique work.
    kept: BTreeSet<PathBuf>,
    /// The commits of branches that are known to be on the remote.
    pushed: BTreeMap<String, ObjectId>,
    decider: Decider,
    /// Messages that are printed once: decisions that failed, and spent budgets.
    told: BTreeSet<String>,
}

impl<'a> Supervisor<'a> {
    /// A supervisor for this repository.
    ///
    /// # Errors
    /// A [`Failure`] if a role can't run here; nothing was claimed then.
    pub fn new(
        context: &'a Context,
        repository: &'a Repository,
        plan: Plan,
    ) -> Result<Self, Failure> {
        // Before any agent runs, which could name others, or read tokens in this environment.
        environment::pin_programs(repository)?;
        hide_from_agents();
        let program = Program::new(repository, context.branch()).map_err(|error| {
            Failure::new(
                ErrorCode::Directory,
                format!("the program's own file is not known: {error}"),
            )
        })?;
        let folder = slot::folder(repository.common_dir());
        let base = context.acting_worker(repository)?.id;
        Ok(Self {
            worktrees: Worktrees::new(&program, plan.worktrees.clone(), &folder),
            remote: code_remote(context, repository),
            ledger: context.ledger(repository)?.branch().to_owned(),
            context,
            repository,
            plan,
            program,
            breakers: Breakers::of(&folder),
            folder,
            base,
            free: Vec::new(),
            running: BTreeMap::new(),
            news: channel(),
            waker: None,
            done: WorkView::default(),
            claimed: 0,
            resting: BTreeMap::new(),
            abandoned: BTreeMap::new(),
            kept: BTreeSet::new(),
            pushed: BTreeMap::new(),
            decider: Decider::default(),
            told: BTreeSet::new(),
        })
    }

    /// Works until nothing is left to do, or it is asked to end.
    ///
    /// # Errors
    /// A [`Failure`] if the ledger can't be read, or the worker was interrupted.
    pub fn run(mut self, output: &mut Output) -> Result<WorkView, Failure> {
        let ledger = self.context.ledger(self.repository)?;
        let place = Place::Both(self.context.remote(self.repository)?);
        let mut lookout = Lookout::open(ledger, place, self.plan.poll, None)?;
        self.waker = Some(lookout.waker());
        let interruption = lookout.catch()?;
        let over = self
            .plan
            .time
            .and_then(|time| Instant::now().checked_add(time));
        let worked = self.work(&mut lookout, &interruption, over, output);
        if worked.is_err() {
            self.stop_all();
        }
        self.finish(output);
        if worked.is_ok() && lookout.trouble().is_none() {
            self.publish(output)?;
        }
        lookout.leave_fetched();
        lookout.stop();
        if interruption.requested().load(Ordering::SeqCst) {
            let left = self
                .done
                .pieces
                .iter()
                .filter(|piece| piece.outcome == "left")
                .count();
            if left > 0 {
                output
                    .say("what was not done stays claimed: run the command again to go on with it");
            }
            interruption.pass_on();
        }
        self.done.undecided = self.decider.undecided;
        self.done.decides = self.plan.decides;
        worked.map(|()| self.done)
    }

    fn work(
        &mut self,
        lookout: &mut Lookout<'_>,
        interruption: &Interruption,
        over: Option<Instant>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let (mut last, mut swept) = (None, 0);
        let mut looked = Instant::now();
        loop {
            self.take_in(output);
            if interruption.requested().load(Ordering::SeqCst) {
                self.stop_all();
                return Ok(());
            }
            let tips = lookout.tips(output)?;
            let mut pause = GLANCE;
            if let Some(tip) = tips.first() {
                let now = now()?;
                self.watch(tip, now)?;
                self.go_on(tip, output);
                let is_new = last != Some(tip.commit());
                let is_due = is_new || looked.elapsed() >= GLANCE;
                let in_time = over.is_none_or(|over| Instant::now() < over);
                if self.plan.decides && is_due && in_time && self.decide(tip, now, output)? {
                    continue;
                }
                if in_time && self.claim(tip, now, output)? {
                    continue;
                }
                if is_due {
                    looked = Instant::now();
                    if lookout.trouble().is_none() {
                        self.publish(output)?;
                    }
                }
                last = Some(tip.commit());
                // Also after a piece ended: its worktree was still in use at the ledger's last
                // change.
                if is_new || swept != self.done.pieces.len() {
                    swept = self.done.pieces.len();
                    self.sweep(tip, output)?;
                }
                if self.running.is_empty() && self.is_done(over) && lookout.has_looked() {
                    return Ok(());
                }
                if let Some(at) = self.next_change(tip, now)? {
                    let left = (at - now).to_std().unwrap_or_default();
                    pause = pause.min(left.max(Duration::from_millis(20)));
                }
                let until = self.running.values().filter_map(|running| running.until);
                if let Some(until) = until.min() {
                    let left = until.saturating_duration_since(Instant::now());
                    pause = pause.min(left.max(Duration::from_millis(20)));
                }
                if let Some(left) = self.breakers.next_end() {
                    pause = pause.min(left.max(Duration::from_millis(20)));
                }
            }
            let left = over.map(|over| over.saturating_duration_since(Instant::now()));
            let left = left.filter(|left| !left.is_zero());
            let pause = left.map_or(pause, |left| left.min(pause));
            lookout.pause_saying(Some(pause), self.running.is_empty(), output);
        }
    }

    /// Whether nothing is left to do, now that nothing runs and nothing could be claimed.
    fn is_done(&self, over: Option<Instant>) -> bool {
        let roles = &self.plan.roles;
        let is_stopped = |role: &Role| self.breakers.is_stopped(&role.profile_name());
        let rests = !self.resting.is_empty() || self.breakers.is_waiting();
        self.plan.until_idle && !rests
            || !roles.is_empty() && !self.plan.decides && roles.iter().all(is_stopped)
            || self.plan.most.is_some_and(|most| self.claimed >= most)
            || over.is_some_and(|over| Instant::now() >= over)
    }

    /// Collects the results of pieces.
    fn take_in(&mut self, output: &mut Output) {
        while let Ok(news) = self.news.1.try_recv() {
            self.hear(news, output);
        }
    }

    fn hear(&mut self, news: News, output: &mut Output) {
        let (slot, outcome) = match news {
            News::Runs(text) => return output.say(&text),
            News::Ended(slot, outcome) => (slot, outcome),
        };
        let Some(running) = self.running.remove(&slot.number) else {
            return;
        };
        if !matches!(outcome, Outcome::Left(_)) {
            self.free.push(slot);
        }
        let profile = self.plan.roles[running.role].profile_name();
        let pause = match &outcome {
            Outcome::GivenBack(why, later) => {
                self.told
                    .insert(format!("{profile}: pauses: {}", one_line(why)));
                Some(self.breakers.open(&profile, why, *later, drawn()))
            }
            Outcome::Left(Some(why)) => {
                Some(self.breakers.open(&profile, why, Later::default(), drawn()))
            }
            Outcome::HandedOn(_) | Outcome::Failed(_) | Outcome::Blocked(..) => {
                self.breakers.close(&profile);
                None
            }
            Outcome::Lost(_) | Outcome::Paused(_) | Outcome::Left(None) => None,
        };
        let agent = self.plan.roles[running.role].agent.clone();
        let (mut contradicted, mut answer) = (Vec::new(), None);
        let (word, why) = match outcome {
            Outcome::HandedOn(said) => {
                contradicted = said;
                ("handed_on", None)
            }
            Outcome::Failed(why) => ("failed", Some(why)),
            Outcome::Blocked(why, command) => {
                answer = command.map(|command| format!("{}: next: {command}", running.id));
                ("blocked", Some(why))
            }
            Outcome::GivenBack(why, _) | Outcome::Paused(why) => ("given_back", Some(why)),
            Outcome::Lost(why) => ("lost", Some(why)),
            Outcome::Left(why) => ("left", why),
        };
        let id = running.id;
        let shown = word.replace('_', " ");
        for statement in &contradicted {
            output.say(&format!("{id} {agent}: contradicted: {statement}"));
        }
        output.say(&match &why {
            Some(why) => format!("{id} {agent}: {shown}: {}", cut(why, SHOWN)),
            None => format!("{id} {agent}: {shown}"),
        });
        for more in pause.into_iter().chain(answer) {
            output.say(&more);
        }
        self.done.pieces.push(PieceView {
            id,
            agent,
            outcome: word,
            why,
            contradicted,
        });
    }

    /// Ends every run; its work stays for the next worker.
    fn stop_all(&self) {
        for running in self.running.values() {
            // It may have ended already.
            let _ = running.line.send(Notice::Stop(Stop::Leave));
        }
    }

    /// Waits for the end of all runs.
    fn finish(&mut self, output: &mut Output) {
        while !self.running.is_empty() {
            match self.news.1.recv() {
                Ok(news) => self.hear(news, output),
                Err(_) => return,
            }
        }
    }

    /// Ends the runs of handoffs that this worker no longer holds.
    fn watch(&mut self, tip: &Snapshot<'_>, now: Moment) -> Result<(), Failure> {
        for running in self.running.values_mut() {
            let record = tip.issue(running.id.issue())?.record(running.id.number())?;
            let Some(record) = record else { continue };
            // A pending state is no end: the state read last may be older than the claim.
            let is_ended = !matches!(record.state, State::InProgress | State::Pending);
            let most = self.plan.roles[running.role].bounds.grace * LINGERING;
            running.until = running.until.filter(|_| is_ended);
            if is_ended && *running.until.get_or_insert(Instant::now() + most) <= Instant::now() {
                let _ = running.line.send(Notice::Stop(Stop::Done));
            }
            let (agent, protocol) = (&record.to, record.protocol.as_str());
            let mut halts = tip.manifest().paused.iter();
            let halt = halts.find(|halt| halt.now && halt.holds_back(agent, protocol));
            if let Some(why) = lost(&record, &running.worker, now) {
                let _ = running.line.send(Notice::Stop(Stop::Lost(why)));
            } else if let Some(halt) = halt {
                let _ = running
                    .line
                    .send(Notice::Stop(Stop::Paused(halt.to_string())));
            }
        }
        Ok(())
    }

    /// Whether a role claims nothing for a while after an error.
    fn rests(&self, role: usize) -> bool {
        let until = self.resting.get(&role);
        until.is_some_and(|until| Instant::now() < *until)
            || (self.breakers)
                .rests(&self.plan.roles[role].profile_name())
                .is_some()
    }

    /// Prints once why a profile pauses, also if another worker of the clone caused it.
    fn tell_pause(&mut self, role: usize, output: &mut Output) {
        let profile = self.plan.roles[role].profile_name();
        if let Some(why) = self.breakers.rests(&profile) {
            let told = format!("{profile}: pauses: {why}");
            if self.told.insert(told.clone()) {
                output.say(&told);
            }
        }
    }

    /// The ref with the remote's branch of the ledger as last seen, if the ledger has a remote.
    fn tracking(&self) -> Option<String> {
        let ledger = self.context.ledger(self.repository).ok()?;
        ledger.tracking_ref().map(str::to_owned)
    }

    fn has_room(&self, role: usize) -> bool {
        let running = self.running.values().filter(|running| running.role == role);
        running.count() < self.plan.roles[role].bounds.jobs
    }

    /// Claims the next piece of work for a role with room. Returns whether the ledger changed.
    fn claim(
        &mut self,
        tip: &Snapshot<'_>,
        now: Moment,
        output: &mut Output,
    ) -> Result<bool, Failure> {
        for role in 0..self.plan.roles.len() {
            if self.plan.most.is_some_and(|most| self.claimed >= most) {
                return Ok(false);
            }
            if self.rests(role) || !self.has_room(role) {
                self.tell_pause(role, output);
                continue;
            }
            self.resting.remove(&role);
            let agent = &self.plan.roles[role].agent;
            let wanted = match &self.plan.issue {
                None => {
                    let found = claimable(tip, agent, now)?;
                    let spent = found.spent.filter(|_| found.first.is_none());
                    let text = spent.map(|spent| format!("{agent}: {spent}"));
                    if let Some(text) = text.filter(|text| self.told.insert(text.clone())) {
                        output.say(&text);
                    }
                    found.first
                }
                Some(key) => waiting_in(tip, key, agent, now)?,
            };
            let Some(wanted) = wanted else { continue };
            let by_id = self.plan.issue.is_some().then_some(wanted);
            if self.claim_for(role, by_id, tip, output)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Claims for a role. Returns whether it got something.
    fn claim_for(
        &mut self,
        role: usize,
        wanted: Option<HandoffId>,
        tip: &Snapshot<'_>,
        output: &mut Output,
    ) -> Result<bool, Failure> {
        let slot = self.free.pop().map_or_else(|| Slot::take(&self.folder), Ok);
        let slot = slot.map_err(|error| unwritable(&self.folder, &error))?;
        let actor = Actor {
            agent: self.plan.roles[role].agent.clone(),
            worker: worker_of(&self.base, slot.number),
        };
        let group = ProcessGroup::marked();
        let note = Note {
            agent: actor.agent.clone(),
            worker: actor.worker.clone(),
            id: None,
            cut_off: 0,
            is_left: false,
            has_run: false,
            was_running: false,
            usage: Vec::new(),
            group: Some(group.clone()),
        };
        // Write the note before the claim, so that after a kill the slot's next holder looks for
        // one.
        let noted = slot.write(&note);
        noted.map_err(|error| unwritable(&self.folder, &error))?;
        let id = wanted.as_ref().map(ToString::to_string);
        let lease = self.lease(role);
        let mut words = match &id {
            Some(id) => vec!["claim", id],
            None => vec!["claim", "--next"],
        };
        words.extend(lease.iter().flat_map(|lease| ["--lease", lease]));
        let said = self.program.marked(&group).run(&actor, &words);
        let got = said.data()["handoff"]["id"].as_str();
        let got: Option<HandoffId> = got.and_then(|id| id.parse().ok());
        let agent = &actor.agent;
        match (said.exit, got) {
            (0, Some(id)) => {
                output.say(&format!("{id} {agent}: claimed"));
                self.start(
                    slot,
                    role,
                    actor,
                    (id, said.data().clone(), None, group),
                    tip,
                );
                return Ok(true);
            }
            (8, got) => {
                let id = got.map(|id| format!("{id} ")).unwrap_or_default();
                output.say(&format!(
                    "{id}{agent}: claimed here only: {}",
                    said.message()
                ));
                // No agent starts on a claim that others can't see. The note stays: the work is
                // resumed once the remote has the claim.
                self.resting.insert(role, Instant::now() + AGAIN);
                return Ok(false);
            }
            // Another worker was faster.
            (4..=6, _) if said.code() != "budget_spent" => {}
            _ => {
                output.say(&format!("{agent}: nothing claimed: {}", said.message()));
                self.resting.insert(role, Instant::now() + AGAIN);
                if self.plan.until_idle || self.plan.most.is_some() {
                    slot.clear();
                    return Err(
                        Failure::new(ErrorCode::NotClaimed, said.message().to_owned())
                            .hint(hint!("`git handoff claim --next --as {}` says more", agent)),
                    );
                }
            }
        }
        slot.clear();
        self.free.push(slot);
        Ok(false)
    }

    /// The lease to request for a role with a time limit: the limit plus time to end.
    fn lease(&self, role: usize) -> Option<String> {
        let bounds = &self.plan.roles[role].bounds;
        let time = bounds.time? + bounds.grace + Duration::from_secs(60);
        Some(format!("{}s", time.as_secs()))
    }

    /// Starts a piece of work on a thread of its own.
    fn start(
        &mut self,
        slot: Slot,
        role: usize,
        actor: Actor,
        (id, claimed, earlier, group): Claimed,
        tip: &Snapshot<'_>,
    ) {
        self.claimed += 1;
        let is_beside = self.is_beside(&id);
        let (sender, notices) = channel();
        self.running.insert(
            slot.number,
            Running {
                role,
                id: id.clone(),
                worker: actor.worker.clone(),
                line: sender.clone(),
                until: None,
            },
        );
        let protocol = claimed["record"]["protocol"].as_str();
        let rules = tip.rules(protocol.unwrap_or_default()).ok();
        let retry = rules.and_then(|rules| rules.protocol().definition().retry().cloned());
        let piece = Piece {
            program: self.program.marked(&group),
            worktrees: self.worktrees.marked(&group),
            role: self.plan.roles[role].clone(),
            only_looks: only_looks(tip, &claimed, &actor.agent),
            merging: Merging::of(tip, &claimed, &actor.agent),
            retry: retry.unwrap_or_default(),
            is_beside,
            remote: self.remote.clone(),
            tracking: self.tracking(),
            ledger: self.ledger.clone(),
            patterns: tip.branch_patterns().unwrap_or_default(),
            actor,
            slot,
            id,
            claimed,
            earlier,
            notices,
            sender,
            group,
        };
        let (sender, waker) = (self.news.0.clone(), self.waker.clone());
        let tell = move |news| {
            // Without a receiver, the supervisor has ended.
            let _ = sender.send(news);
            waker.iter().for_each(Waker::wake);
        };
        thread::spawn(move || {
            let (slot, outcome) = piece.run(&|text| tell(News::Runs(text)));
            tell(News::Ended(slot, outcome));
        });
    }

    /// Whether another handoff of the same issue runs, and is not known to be sent on.
    fn is_beside(&self, id: &HandoffId) -> bool {
        let mut same = self
            .running
            .values()
            .filter(|run| run.id.issue() == id.issue());
        // The snapshot that was claimed on may be older than the claim.
        let tip = self.context.tip(self.repository);
        same.any(|run| {
            let folder = tip.as_ref().ok().and_then(|tip| tip.issue(id.issue()).ok());
            let record = folder.and_then(|folder| folder.record(run.id.number()).ok()?);
            record.is_none_or(|record| record.state == State::InProgress)
        })
    }

    /// The earliest moment at which a handoff that can't be claimed yet becomes claimable.
    fn next_change(&self, tip: &Snapshot<'_>, now: Moment) -> Result<Option<Moment>, Failure> {
        let mut soonest = None;
        for role in &self.plan.roles {
            let later = claimable(tip, &role.agent, now)?.later.map(|(at, _)| at);
            soonest = [soonest, later].into_iter().flatten().min();
        }
        Ok(soonest)
    }

    /// Removes the worktrees of ended issues, unless they contain unique work.
    fn sweep(&mut self, tip: &Snapshot<'_>, output: &mut Output) -> Result<(), Failure> {
        for found in self.worktrees.all() {
            let path = &found.remembered.path;
            let issue = tip.issue(&found.remembered.issue)?.issue()?;
            let has_ended = issue.is_some_and(|issue| issue.status != IssueStatus::Open);
            if !has_ended || self.kept.contains(path) {
                continue;
            }
            let Some(_lock) = self.worktrees.free(&found) else {
                continue;
            };
            let checkout = found.remembered.checkout.as_ref();
            let loses = checkout.map_or_else(Vec::new, |checkout| self.worktrees.loses(checkout));
            let trouble = if loses.is_empty() {
                let removed = self.worktrees.remove(&found, false);
                removed
                    .and_then(|()| self.sweep_branches(&found.remembered.issue))
                    .err()
            } else {
                Some(format!("it has {}", loses.join(" and ")))
            };
            if let Some(trouble) = trouble {
                output.say(&format!(
                    "{} stays: {trouble}; `git handoff work --list`",
                    path.display()
                ));
                self.kept.insert(path.clone());
            }
        }
        Ok(())
    }

    /// Removes this clone's branches of an ended issue, unless they have unique commits.
    fn sweep_branches(&self, issue: &IssueKey) -> Result<(), String> {
        // Only branches named by workers: a person may have named one after the issue, too.
        let naming = Naming {
            ledger_branch: &self.ledger,
            patterns: &BranchPatterns::default(),
        };
        let all = self.worktrees.issue_branches(&naming, None)?;
        let mut own = all.iter().filter(|branch| branch.issue == *issue);
        own.try_for_each(|branch| {
            if self.worktrees.has_own_commits(branch) {
                return Ok(());
            }
            self.worktrees.remove_branch(branch)
        })
    }
}

/// Forbids other processes of the user to read this one's environment and memory, and to trace it.
fn hide_from_agents() {
    #[cfg(target_os = "linux")]
    // Where that is not possible, an agent can do it: a user of its own is what is safe.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// The id of a slot's worker: the same for every process that takes it.
fn worker_of(base: &WorkerId, slot: usize) -> WorkerId {
    let id = format!("{}/{slot}", &base.as_str()[..base.as_str().len().min(56)]);
    id.parse().unwrap_or_else(|_| base.clone())
}

/// Why a worker no longer holds a handoff, if another agent changed that.
fn lost(record: &Record, worker: &WorkerId, now: Moment) -> Option<String> {
    let id = &record.id;
    let is_own = record
        .latest()
        .is_none_or(|last| last.worker.as_ref() == Some(worker));
    match (&record.state, &record.lease) {
        (State::InProgress, Some(lease)) if lease.worker != *worker => {
            Some(format!("worker {} holds {id} now", lease.worker))
        }
        (State::InProgress, _) if record.is_expired(now) => Some("its lease ran out".to_owned()),
        (State::InProgress, _) => None,
        _ if is_own => None,
        // The state that was read last is older than the claim.
        (State::Pending, _) => None,
        (state, _) => Some(format!("{id} is {state}")),
    }
}

/// The handoff of an issue that an agent can claim now.
fn waiting_in(
    tip: &Snapshot<'_>,
    key: &IssueKey,
    agent: &AgentName,
    now: Moment,
) -> Result<Option<HandoffId>, Failure> {
    let folder = tip.issue(key)?;
    let agent = tip.receiver(agent)?;
    let issue = folder.issue()?;
    for open in issue
        .iter()
        .flat_map(|issue| &issue.open)
        .filter(|open| open.to == agent)
    {
        let record = folder.record(open.id.number())?;
        let Some(record) = record else { continue };
        if handoff::model::claim_queue::hindrance(&record, now).is_none()
            && turn_before(tip, &record, now)?.is_none()
        {
            return Ok(Some(open.id.clone()));
        }
    }
    Ok(None)
}

/// Whether an agent only reads the code: one of its contracts is a review of a commit.
fn only_looks(tip: &Snapshot<'_>, claimed: &serde_json::Value, agent: &AgentName) -> bool {
    let name = claimed["record"]["protocol"].as_str().unwrap_or_default();
    tip.rules(name).is_ok_and(|rules| {
        let protocol = rules.protocol();
        let types = protocol
            .routes_from(agent.as_str())
            .flat_map(|route| &route.contracts);
        let mut types = types.filter_map(|name| protocol.contract_type(name));
        types.any(|kind| kind.reviews.is_some())
    })
}

/// The remote that code is pushed to: the ledger's if it is a named one, else `origin`, else the
/// only one.
fn code_remote(context: &Context, repository: &Repository) -> Option<String> {
    let all = repository.remotes();
    let ledger = context.remote(repository).ok().flatten();
    let named = ledger.filter(|name| all.contains(name));
    named.or_else(|| match &all[..] {
        [only] => Some(only.clone()),
        all => all.iter().find(|name| *name == "origin").cloned(),
    })
}

fn unwritable(folder: &Path, error: &std::io::Error) -> Failure {
    let text = format!("{} can't be written: {error}", folder.display());
    Failure::new(ErrorCode::FolderUnwritable, text).hint("nothing was claimed")
}
