//! One piece of work, from its claim to its end: a worktree, a run of the command, and what came of
//! it on record.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::Duration;

use handoff_base::ids::HandoffId;
use handoff_model::ModelUsage;
use serde_json::Value;

use super::process::ProcessGroup;
use super::program::{Actor, Program, word};
use super::prompt::{self, Work};
use super::roles::Role;
use super::run::{End, Files, Lease, Line, Notice, Room, Stop};
use super::share::Share;
use super::slot::{Note, Slot};
use super::usage;
use super::worktree::{Trouble, Wanted, Worktree, Worktrees};

/// How often a step that met a busy or absent remote is made again, and after which time.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(3);

/// After how many killed workers a piece of work is given up.
const CUT_OFF: u32 = 3;

/// A piece of work that this process does.
pub(super) struct Piece {
    pub(super) program: Program,
    pub(super) worktrees: Worktrees,
    pub(super) role: Role,
    pub(super) actor: Actor,
    pub(super) slot: Slot,
    pub(super) id: HandoffId,
    /// What `claim` answered.
    pub(super) claimed: Value,
    /// Whether the role only looks at the code.
    pub(super) only_looks: bool,
    /// The remote that code is pushed to.
    pub(super) remote: Option<String>,
    /// Whether the ledger has a remote.
    pub(super) is_shared: bool,
    /// What a killed worker noted about it.
    pub(super) earlier: Option<Note>,
    pub(super) notices: Receiver<Notice>,
    pub(super) sender: Sender<Notice>,
    /// Its processes, those of the program included.
    pub(super) group: ProcessGroup,
}

/// What came of a piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was handed on, or ended otherwise by its agent.
    HandedOn,
    /// It failed, for this reason.
    Failed(String),
    /// It waits for a person, for this reason.
    Blocked(String),
    /// Somebody else has it now, for this reason.
    Lost(String),
    /// The worker ended before it: whoever takes its slot goes on.
    Left,
}

/// Why a piece of work is given up.
struct Fault {
    code: &'static str,
    message: String,
    details: Option<String>,
    recoverable: bool,
    /// What the work took, as an option.
    used: Option<String>,
}

/// Where the work is done.
struct Place {
    folder: PathBuf,
    has_earlier_work: bool,
    /// Held until the work ends.
    worktree: Option<Worktree>,
}

impl Piece {
    /// Does the work. Returns the slot for the next piece.
    pub(super) fn run(self, say: &dyn Fn(String)) -> (Slot, Outcome) {
        let outcome = self.outcome(say);
        if outcome == Outcome::Left {
            self.slot.leave();
        } else {
            self.slot.clear();
        }
        (self.slot, outcome)
    }

    fn outcome(&self, say: &dyn Fn(String)) -> Outcome {
        let place = match self.place() {
            Ok(place) => place,
            Err(Trouble::CheckedOut(path)) => {
                let branch = self.branch();
                let reason = format!(
                    "branch {branch} is checked out in {path}: switch to another one there, then answer"
                );
                return self.block(&reason, None);
            }
            Err(Trouble::Other(why)) => {
                return self.fail(
                    None,
                    None,
                    Fault {
                        code: "NO_WORKTREE",
                        message: format!("there is no worktree for it: {}", one_line(&why)),
                        details: None,
                        recoverable: true,
                        used: None,
                    },
                );
            }
        };
        let earlier = self
            .earlier
            .as_ref()
            .and_then(|note| note.contract.as_deref());
        let files = match earlier
            .and_then(Files::of_contract)
            .map_or_else(Files::create, Ok)
        {
            Ok(files) => files,
            Err(error) => {
                return self.fail(
                    Some(&place),
                    None,
                    Fault {
                        code: "NO_FOLDER",
                        message: format!("there is no temporary folder: {error}"),
                        details: None,
                        recoverable: true,
                        used: None,
                    },
                );
            }
        };
        say(format!(
            "{} {}: runs in {}, its output is in {}",
            self.id,
            self.actor.agent,
            place.folder.display(),
            files.log().display()
        ));
        let outcome = self.work(&place, &files, say);
        if !matches!(outcome, Outcome::Left | Outcome::Lost(_)) {
            self.publish(say);
        }
        if outcome != Outcome::Left {
            files.remove();
        }
        drop(place.worktree);
        outcome
    }

    /// Runs the command, and again with the findings about a refused contract.
    fn work(&self, place: &Place, files: &Files, say: &dyn Fn(String)) -> Outcome {
        let cut_off = self.cut_off();
        if cut_off > CUT_OFF {
            return self.fail(
                Some(place),
                Some(files),
                Fault {
                    code: "WORKER_LOST",
                    message: format!("{cut_off} workers were killed over it"),
                    details: None,
                    recoverable: false,
                    used: None,
                },
            );
        }
        let first = self.prompt(place, self.earlier.is_some());
        let mut prompt = first.clone();
        let mut lease = Lease::of(&self.claimed);
        let share = Share::of(&self.claimed);
        let mut used = self.used_before(files);
        // What a killed worker's agent had written is as good as what one writes now.
        let mut end =
            (self.earlier.is_some() && matches!(files.left(), Ok(Some(_)))).then_some(End {
                stopped: None,
                status: None,
            });
        for run in 0..=self.role.bounds.mend {
            let ended = match end.take() {
                Some(end) => end,
                None => match self.run_once((place, files), &prompt, &mut lease, (&used, &share)) {
                    Ok(end) => end,
                    Err(message) => {
                        return self.fail(
                            Some(place),
                            Some(files),
                            Fault {
                                code: "NOT_STARTED",
                                message: one_line(&message),
                                details: None,
                                recoverable: true,
                                used: None,
                            },
                        );
                    }
                },
            };
            if let Err(why) = files.reported() {
                say(format!(
                    "{}: what it reports to have used is not recorded: {why}",
                    self.id
                ));
            }
            usage::add(&mut used, files.used(&self.role.usage));
            match self.settle((place, files), ended, &used, say) {
                Ok(outcome) => return outcome,
                Err((message, findings)) if run < self.role.bounds.mend => {
                    say(format!("{}: run again: {message}", self.id));
                    let contract = files.left().ok().flatten().unwrap_or_default();
                    prompt = prompt::mend(&first, &contract, &message, &findings);
                }
                Err((message, findings)) => {
                    let first = findings
                        .lines()
                        .next()
                        .and_then(|line| line.strip_prefix("- "));
                    let message =
                        format!("its contract was refused: {}", first.unwrap_or(&message));
                    return self.fail(
                        Some(place),
                        Some(files),
                        Fault {
                            code: "CONTRACT_REFUSED",
                            message,
                            details: Some(findings),
                            recoverable: true,
                            used: usage::option(&used),
                        },
                    );
                }
            }
        }
        unreachable!("the last run has an outcome")
    }

    /// How many processes were killed over it.
    fn cut_off(&self) -> u32 {
        let note = self.earlier.as_ref();
        note.map_or(0, |note| note.cut_off + u32::from(!note.is_left))
    }

    /// What the runs of a killed worker took.
    fn used_before(&self, files: &Files) -> Vec<ModelUsage> {
        let mut used = Vec::new();
        if let Some(note) = &self.earlier {
            used.clone_from(&note.usage);
            usage::add(&mut used, files.used(&self.role.usage));
        }
        used
    }

    fn place(&self) -> Result<Place, Trouble> {
        if self.role.bounds.in_place {
            return Ok(Place {
                folder: self.program.folder().to_owned(),
                has_earlier_work: false,
                worktree: None,
            });
        }
        // A contract's word: as an argument of git's, it could be an option.
        let branch = self.branch();
        let is_name = self
            .program
            .git(&["check-ref-format", &format!("refs/heads/{branch}")]);
        if branch.starts_with(['-', '+']) || is_name.is_err() {
            let text = format!(
                "{} is no name of a branch",
                handoff_base::text::quoted(&branch)
            );
            return Err(Trouble::Other(text));
        }
        let has_failed = self.claimed["failures"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        let worktree = self.worktrees.open(&Wanted {
            id: &self.id,
            actor: &self.actor,
            branch: &branch,
            detached: self.only_looks,
            restores: has_failed,
            remote: self.remote.as_deref(),
        })?;
        Ok(Place {
            folder: worktree.path.clone(),
            has_earlier_work: worktree.has_earlier_work,
            worktree: Some(worktree),
        })
    }

    /// The issue's branch: the one that its contracts name, else one for the issue.
    fn branch(&self) -> String {
        let named = self.claimed["work"]["branch"]["name"].as_str();
        named.map_or_else(|| format!("handoff/{}", self.id.issue()), str::to_owned)
    }

    fn prompt(&self, place: &Place, was_cut_off: bool) -> String {
        let within = self.program.within(&place.folder);
        let has_branch = within.git(&["symbolic-ref", "--quiet", "HEAD"]).is_ok();
        prompt::first(&Work {
            program: &within,
            is_apart: !has_branch && !self.only_looks,
            actor: &self.actor,
            claimed: &self.claimed,
            branch: &self.branch(),
            base: &self.worktrees.base(self.remote.as_deref()),
            has_worktree: place.worktree.is_some(),
            detached: self.only_looks,
            has_earlier_work: place.has_earlier_work,
            was_cut_off,
        })
    }

    /// Runs the command once.
    fn run_once(
        &self,
        (place, files): (&Place, &Files),
        prompt: &str,
        lease: &mut Lease,
        (before, share): (&[ModelUsage], &Share),
    ) -> Result<End, String> {
        let mut variables = vec![
            ("GIT_HANDOFF_ISSUE", self.id.issue().to_string()),
            ("GIT_HANDOFF_ID", self.id.to_string()),
            ("GIT_HANDOFF_BRANCH", self.branch()),
            (
                "GIT_HANDOFF_BASE",
                self.worktrees.base(self.remote.as_deref()),
            ),
        ];
        let steps = self.claimed["record"]["transitions"].as_array();
        let mut steps = steps.into_iter().flatten().rev();
        if let Some(parent) = steps.find_map(|step| step["traceparent"].as_str()) {
            variables.push(("TRACEPARENT", parent.to_owned()));
        }
        let room = Room {
            role: &self.role,
            actor: &self.actor,
            folder: &place.folder,
            files,
            before,
            share,
            variables,
        };
        let mut note = Note {
            agent: self.actor.agent.clone(),
            worker: self.actor.worker.clone(),
            id: Some(self.id.clone()),
            cut_off: self.cut_off(),
            is_left: false,
            contract: Some(files.contract()),
            usage: before.to_vec(),
            group: Some(self.group.clone()),
        };
        let noted = |note: &Note| self.slot.write(note).map_err(|error| error.to_string());
        // Before it starts: its mark shows which processes are its own, whenever this one is killed.
        noted(&note)?;
        let child = room.start(&self.group, prompt)?;
        let group = self.group.clone().of(child.id());
        note.group = Some(group.clone());
        // Without it, the mark is enough on Linux.
        let _ = noted(&note);
        let line = Line {
            program: &self.program,
            notices: &self.notices,
            sender: &self.sender,
        };
        Ok(room.watch(child, &group, lease, &line))
    }

    /// Records what came of a run.
    ///
    /// # Errors
    /// What was wrong with the contract that was left.
    fn settle(
        &self,
        (place, files): (&Place, &Files),
        end: End,
        used: &[ModelUsage],
        say: &dyn Fn(String),
    ) -> Result<Outcome, (String, String)> {
        match end.stopped {
            Some(Stop::Leave) => return Ok(Outcome::Left),
            Some(Stop::Lost(why)) => return Ok(Outcome::Lost(why)),
            Some(Stop::Time | Stop::Spent(_)) | None => {}
        }
        let used = usage::option(used);
        let details = self.push(place);
        if let Some(why) = &details {
            say(format!(
                "{}: its branch is not pushed: {}",
                self.id,
                one_line(why)
            ));
        }
        if !self.is_held() {
            self.report(used.as_deref());
            return Ok(Outcome::HandedOn);
        }
        // What a run leaves that goes wrong is kept with the failure.
        let went_well = end.stopped.is_none() && end.status.is_none_or(|status| status.success());
        if went_well {
            match files.left() {
                Ok(Some(_)) => return self.send(&files.contract(), used.as_deref()),
                Ok(None) => {}
                Err(why) => {
                    return Err((format!("the contract can't be read: {why}"), String::new()));
                }
            }
        }
        let needs_person = || {
            let tail = files.tail();
            self.role.needs_person.iter().find_map(|pattern| {
                let found = pattern.find(&tail)?;
                let start = tail[..found.start()].rfind('\n').map_or(0, |at| at + 1);
                Some(
                    tail[start..]
                        .lines()
                        .next()?
                        .chars()
                        .take(500)
                        .collect::<String>(),
                )
            })
        };
        if end.stopped.is_none()
            && let Some(asked) = needs_person()
        {
            let reason = format!("its agent waits for a permission: {asked}");
            return Ok(self.block(&reason, used.as_deref()));
        }
        let (code, message) = why(&end, &self.role);
        Ok(self.fail(
            Some(place),
            Some(files),
            Fault {
                code,
                message,
                details,
                recoverable: true,
                used,
            },
        ))
    }

    /// Whether this worker still holds it.
    fn is_held(&self) -> bool {
        let said =
            self.program
                .run_again(&self.actor, &["show", &self.id.to_string()], (TRIES, PAUSE));
        let record = &said.data()["record"];
        // What can't be read is not known to have been handed on: the next step finds out.
        said.exit != 0
            || record["state"] == "in_progress"
                && record["lease"]["worker"] == self.actor.worker.as_str()
    }

    /// Sends the contract that was left.
    fn send(&self, contract: &Path, used: Option<&str>) -> Result<Outcome, (String, String)> {
        let token = self.claimed["token"].to_string();
        let issue = self.id.issue().to_string();
        let path = word(contract);
        let mut words = vec!["send", &path, "--issue", &issue, "--token", &token];
        words.extend(used);
        let said = self.program.run_again(&self.actor, &words, (TRIES, PAUSE));
        match said.exit {
            0 | 8 => Ok(Outcome::HandedOn),
            5 => Ok(Outcome::Lost(said.message().to_owned())),
            _ => Err((said.message().to_owned(), said.findings())),
        }
    }

    /// Records what the work took that its agent handed on itself.
    fn report(&self, used: Option<&str>) {
        let Some(used) = used else { return };
        let id = self.id.to_string();
        let words = ["annotate", &id, "--note=what the work took", used];
        // The work is done, whether this is known or not.
        self.program.run_again(&self.actor, &words, (TRIES, PAUSE));
    }

    /// Pushes the branch. Returns why it was not.
    fn push(&self, place: &Place) -> Option<String> {
        let remote = self
            .remote
            .as_deref()
            .filter(|_| self.role.bounds.pushes && !self.only_looks && place.worktree.is_some())?;
        let within = self.program.within(&place.folder);
        let branch = within
            .git(&["symbolic-ref", "--quiet", "--short", "HEAD"])
            .ok()?;
        if within.has_none_of_its_own("HEAD", remote) {
            return None;
        }
        // From the repository's own folder: a remote by a relative path is relative to that.
        self.program
            .git(&[
                "push",
                "--quiet",
                remote,
                &format!("refs/heads/{branch}:refs/heads/{branch}"),
            ])
            .err()
    }

    /// Brings to the remote what was only recorded here: the agent's own steps too, which may have
    /// been made where the remote could not be reached.
    fn publish(&self, say: &dyn Fn(String)) {
        if !self.is_shared {
            return;
        }
        let said = self
            .program
            .run_again(&self.actor, &["sync"], (TRIES, PAUSE));
        if said.exit != 0 {
            let why = said.message();
            say(format!(
                "{}: recorded here only: {why}; `git handoff sync`",
                self.id
            ));
        }
    }

    /// Records that it failed, with what is there.
    fn fail(&self, place: Option<&Place>, files: Option<&Files>, fault: Fault) -> Outcome {
        let id = self.id.to_string();
        let token = self.claimed["token"].to_string();
        let message = format!("--message={}", fault.message);
        let mut words = vec!["fail", &id, "--code", fault.code, &message];
        words.extend(["--token", &token]);
        let details = fault.details.filter(|details| !details.trim().is_empty());
        // In one word, since a text may begin with a dash.
        let details = details.map(|details| format!("--details={details}"));
        words.extend(details.as_deref());
        if fault.recoverable {
            words.push("--recoverable");
        }
        words.extend(fault.used.as_deref());
        let bare = words.clone();
        if place.is_some() {
            words.push("--snapshot");
        }
        let kept = files.map(|files| [files.end_of_output(), Some(files.contract())]);
        let kept: Vec<String> = kept
            .into_iter()
            .flatten()
            .flatten()
            .filter(|path| fs::metadata(path).is_ok_and(|found| found.len() > 0))
            .map(|path| word(&path))
            .collect();
        let program = place.map_or_else(
            || self.program.clone(),
            |place| self.program.within(&place.folder),
        );
        let without: Vec<&str> = words.clone();
        for path in &kept {
            words.extend(["--attach", path]);
        }
        // What holds a secret, or is too large, is left out; that it failed is recorded.
        let mut last = None;
        let attempts = [
            (&program, words),
            (&program, without),
            (&self.program, bare),
        ];
        for (program, words) in attempts {
            let said = program.run_again(&self.actor, &words, (TRIES, PAUSE));
            match said.exit {
                0 | 8 => {
                    if words.contains(&"--snapshot")
                        && place.is_some_and(|place| place.worktree.is_some())
                    {
                        self.tidy(program);
                    }
                    return Outcome::Failed(fault.message.clone());
                }
                5 | 6 => return Outcome::Lost(said.message().to_owned()),
                _ => last = Some(said.message().to_owned()),
            }
        }
        let why = last.unwrap_or_default();
        Outcome::Lost(format!("{}; that can't be recorded: {why}", fault.message))
    }

    /// Removes from a worktree what the ledger keeps of it now; the next attempt gets it from there.
    fn tidy(&self, within: &Program) {
        let branch = format!("refs/heads/{}", self.branch());
        let top = within.git(&["rev-parse", "--show-toplevel"]);
        if top.is_ok_and(|top| fs::canonicalize(top).ok() != fs::canonicalize(within.folder()).ok())
        {
            return;
        }
        let mut steps = vec![
            vec!["reset", "--quiet", "--hard"],
            vec!["clean", "--quiet", "-fd"],
        ];
        if within.git(&["symbolic-ref", "--quiet", "HEAD"]).is_err() {
            steps.push(vec!["switch", "--quiet", "--detach", &branch]);
        }
        for step in steps {
            // What can't be removed is set aside by whoever needs the worktree next.
            let _ = within.git(&step);
        }
    }

    /// Records that only a person can decide something.
    fn block(&self, reason: &str, used: Option<&str>) -> Outcome {
        let token = self.claimed["token"].to_string();
        let id = self.id.to_string();
        let reason_word = format!("--reason={reason}");
        let mut words = vec!["block", &id, &reason_word, "--token", &token];
        words.extend(used);
        let said = self.program.run_again(&self.actor, &words, (TRIES, PAUSE));
        match said.exit {
            0 | 8 => Outcome::Blocked(reason.to_owned()),
            _ => Outcome::Lost(format!(
                "{reason}; that can't be recorded: {}",
                said.message()
            )),
        }
    }
}

impl Program {
    /// Runs a command, and again if the remote was busy or away.
    fn run_again(
        &self,
        actor: &Actor,
        words: &[&str],
        (tries, pause): (u32, Duration),
    ) -> super::program::Said {
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

/// Why a run that handed nothing on failed.
fn why(end: &End, role: &Role) -> (&'static str, String) {
    if end.stopped == Some(Stop::Time) {
        let time = role.bounds.time.unwrap_or_default();
        return (
            "TIME_SPENT",
            format!("it took longer than {}", humantime::format_duration(time)),
        );
    }
    if let Some(Stop::Spent(text)) = &end.stopped {
        return ("BUDGET_SPENT", text.clone());
    }
    let program = Path::new(&role.command[0]).file_name();
    let program = program
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let Some(status) = end.status else {
        return ("NOT_ENDED", format!("how {program} ended is not known"));
    };
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return ("SIGNAL", format!("{program} was ended by signal {signal}"));
    }
    match status.code() {
        Some(0) => (
            "NOTHING_HANDED_ON",
            format!("{program} ended and handed nothing on"),
        ),
        code => (
            "EXIT",
            format!("{program} exited with {}", code.unwrap_or_default()),
        ),
    }
}

/// A text on one line.
fn one_line(text: &str) -> String {
    handoff_base::text::one_line(text)
}
