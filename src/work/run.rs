//! One run of an agent's command: its processes, their time, and the lease that covers it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use handoff_contract::MAX_BYTES;
use handoff_model::usage::ensure_usage;
use handoff_model::{ModelUsage, read_usage};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::process::{MARK, ProcessGroup};
use super::program::{Actor, Program, alone};
use super::roles::Role;
use super::share::Share;
use super::usage::{self, UsageRule};
use crate::environment;

/// The variable that names the file in which a contract may be left.
pub(super) const CONTRACT: &str = "GIT_HANDOFF_CONTRACT";

/// The variable that names the file in which a command may say what it used.
const USAGE: &str = "GIT_HANDOFF_USAGE";

/// How much of the end of a command's output is searched for what it used, in bytes.
const SEARCHED: u64 = 16 * 1024 * 1024;

/// The longest report of what a command used, in bytes.
const MOST_OF_REPORT: u64 = 64 * 1024;

/// How often a run's usage is compared with its budget.
const COMPARED: Duration = Duration::from_secs(2);

/// How much of the end of a command's output is kept of a failure, in bytes.
const KEPT: u64 = 64 * 1024;

/// How long is waited for a process that can't be ended.
const UNHEARD: Duration = Duration::from_secs(5);

/// How long after a lease could not be extended it is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// Why a run is to end before it ends by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The worker ends; whoever takes its place goes on.
    Leave,
    /// The handoff is not this worker's any more, for this reason.
    Lost(String),
    /// Its time is up.
    Time,
    /// It used what its budget has, in words.
    Spent(String),
}

/// What a run is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// Its command has ended.
    Ended,
    /// It is to end.
    Stop(Stop),
}

/// How a run ended.
pub(super) struct End {
    /// Why it was stopped, if it was.
    pub(super) stopped: Option<Stop>,
    pub(super) status: Option<ExitStatus>,
}

/// The files of a run, outside of every repository: agents may be confined to temporary folders.
pub(super) struct Files {
    folder: PathBuf,
}

impl Files {
    /// Makes the folder.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn create() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("git-handoff-").tempdir()?;
        Ok(Self {
            folder: folder.keep(),
        })
    }

    /// Those of a run whose worker was killed, if they are still there.
    pub(super) fn of_contract(contract: &Path) -> Option<Self> {
        let folder = contract.parent().filter(|folder| folder.is_dir())?;
        Some(Self {
            folder: folder.to_owned(),
        })
    }

    pub(super) fn contract(&self) -> PathBuf {
        self.folder.join("contract")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("output.txt")
    }

    fn prompt(&self) -> PathBuf {
        self.folder.join("prompt.md")
    }

    /// The contract that was left, if one was.
    ///
    /// # Errors
    /// Why what is there can't be one.
    pub(super) fn left(&self) -> Result<Option<String>, String> {
        let text = regular(&self.contract(), MAX_BYTES as u64)?;
        let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(text.filter(|text| !text.trim().is_empty()))
    }

    fn usage(&self) -> PathBuf {
        self.folder.join("usage.json")
    }

    /// What the command says that it used; none if it says nothing.
    ///
    /// # Errors
    /// Why its report can't be recorded.
    pub(super) fn reported(&self) -> Result<Option<Vec<ModelUsage>>, String> {
        let Some(bytes) = regular(&self.usage(), MOST_OF_REPORT)? else {
            return Ok(None);
        };
        let usage = read_usage(&bytes).map_err(|error| error.to_string())?;
        Ok(Some(usage))
    }

    /// What the run used so far: as its command says it, else as its output shows.
    pub(super) fn used(&self, rules: &[UsageRule]) -> Vec<ModelUsage> {
        if let Ok(Some(usage)) = self.reported() {
            return usage;
        }
        if rules.is_empty() {
            return Vec::new();
        }
        let output = self.last(SEARCHED).unwrap_or_default();
        let usage = usage::in_output(rules, &String::from_utf8_lossy(&output));
        // What an agent prints may be no report.
        Some(usage)
            .filter(|usage| ensure_usage(usage).is_ok())
            .unwrap_or_default()
    }

    /// The last bytes of the output.
    fn last(&self, most: u64) -> Option<Vec<u8>> {
        let (mut log, size) = opened(&self.log()).ok()??;
        log.seek(SeekFrom::Start(size.saturating_sub(most))).ok()?;
        let mut bytes = Vec::new();
        log.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The end of the output, as a file to attach.
    pub(super) fn end_of_output(&self) -> Option<PathBuf> {
        let size = fs::metadata(self.log()).ok()?.len();
        if size <= KEPT {
            return Some(self.log()).filter(|_| size > 0);
        }
        let bytes = self.last(KEPT)?;
        let whole = bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let path = self.folder.join("end-of-output.txt");
        fs::write(&path, &bytes[whole..]).ok()?;
        Some(path)
    }

    /// The end of the output, as text.
    pub(super) fn tail(&self) -> String {
        let bytes = self
            .end_of_output()
            .and_then(|path| regular(&path, KEPT).ok()?);
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    }

    pub(super) fn remove(&self) {
        // What stays is in a temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Opens a file that a command may have put there: it may be anything, such as a device without end,
/// or a pipe that nobody writes to. Returns its size too; `None` if there is no such file.
fn opened(path: &Path) -> Result<Option<(File, u64)>, String> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let found = file.metadata().map_err(|error| error.to_string())?;
    if found.is_file() {
        Ok(Some((file, found.len())))
    } else {
        Err("it is not a regular file".to_owned())
    }
}

/// Reads such a file, which may have so many bytes at most.
fn regular(path: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
    let Some((file, _)) = opened(path)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    // One byte more shows that there is too much.
    let read = file.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!("it has more than {most} bytes"));
    }
    Ok(Some(bytes))
}

/// The lease of a piece of work.
pub(super) struct Lease {
    pub(super) id: String,
    pub(super) token: String,
    /// When it is extended next; none if it never ends.
    pub(super) due: Option<Instant>,
}

impl Lease {
    /// Of a claim's answer, or an extension's.
    pub(super) fn of(answer: &serde_json::Value) -> Self {
        Self {
            id: answer["id"].as_str().unwrap_or_default().to_owned(),
            token: answer["token"].to_string(),
            due: half_way(answer["expires_at"].as_str()),
        }
    }

    /// Extends it if half of it is over, with what the work took so far.
    fn keep(&mut self, room: &Room<'_>, program: &Program) -> Option<Stop> {
        if self.due.is_none_or(|due| Instant::now() < due) {
            return None;
        }
        let usage = usage::option(&room.used());
        let mut words = vec!["extend", &self.id, "--token", &self.token];
        words.extend(usage.as_deref());
        let said = program.run(room.actor, &words);
        if matches!(said.exit, 4 | 5) && !said.may_pass() {
            return Some(Stop::Lost(said.message().to_owned()));
        }
        self.due = match said.data()["expires_at"].as_str() {
            Some(end) => half_way(Some(end)),
            None => Some(Instant::now() + AGAIN),
        };
        None
    }
}

/// The middle of the time that is left.
fn half_way(end: Option<&str>) -> Option<Instant> {
    let end: DateTime<Utc> = end?.parse().ok()?;
    let left = end
        .signed_duration_since(Utc::now())
        .to_std()
        .unwrap_or_default();
    Some(Instant::now() + left / 2)
}

/// What a run is made in.
pub(super) struct Room<'a> {
    pub(super) role: &'a Role,
    pub(super) actor: &'a Actor,
    pub(super) folder: &'a Path,
    pub(super) files: &'a Files,
    /// What earlier runs of the work took.
    pub(super) before: &'a [ModelUsage],
    /// What the work may take.
    pub(super) share: &'a Share,
    /// More variables.
    pub(super) variables: Vec<(&'static str, String)>,
}

impl Room<'_> {
    /// Starts the command.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn start(&self, group: &ProcessGroup, prompt: &str) -> Result<Child, String> {
        let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        let path = self.files.prompt();
        fs::write(&path, prompt).map_err(|error| failed(&path, error))?;
        // What an earlier run left is not this one's.
        let _ = fs::remove_file(self.files.contract());
        let _ = fs::remove_file(self.files.usage());
        let _ = fs::remove_file(self.files.log());
        let log =
            File::create(self.files.log()).map_err(|error| failed(&self.files.log(), error))?;
        let errors = log
            .try_clone()
            .map_err(|error| failed(&self.files.log(), error))?;
        let mut words = self.role.command.iter();
        let mut command = Command::new(words.next().map_or("", String::as_str));
        let mut takes_prompt = false;
        for word in words {
            takes_prompt |= word.contains("{prompt}") || word.contains("{prompt_file}");
            let word = word.replace("{prompt_file}", &path.to_string_lossy());
            command.arg(word.replace("{prompt}", prompt));
        }
        command.current_dir(self.folder).stdout(log).stderr(errors);
        command.stdin(if takes_prompt {
            Stdio::null()
        } else {
            Stdio::from(File::open(&path).map_err(|error| failed(&path, error))?)
        });
        alone(&mut command);
        command
            .env(MARK, &group.mark)
            .env(CONTRACT, self.files.contract())
            .env(USAGE, self.files.usage())
            .env("GIT_HANDOFF_AGENT", self.actor.agent.as_str())
            .env("GIT_HANDOFF_WORKER", self.actor.worker.as_str())
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        let program = &self.role.command[0];
        command
            .spawn()
            .map_err(|error| format!("{program} can't be started: {error}"))
    }

    /// What the work took so far.
    pub(super) fn used(&self) -> Vec<ModelUsage> {
        let mut used = self.before.to_vec();
        usage::add(&mut used, self.files.used(&self.role.usage));
        used
    }

    /// Waits for the end of the command, and ends what it leaves behind.
    pub(super) fn watch(
        &self,
        mut child: Child,
        group: &ProcessGroup,
        lease: &mut Lease,
        line: &Line<'_>,
    ) -> End {
        tell_end(&child, line.sender.clone());
        let bounds = &self.role.bounds;
        let after = |time: Option<Duration>| time.and_then(|time| Instant::now().checked_add(time));
        let share = environment::now().ok().and_then(|now| self.share.time(now));
        let (over, out_of_budget) = (after(bounds.time), after(share));
        let is_past = |end: Option<Instant>| end.is_some_and(|end| Instant::now() >= end);
        let stopped = loop {
            if is_past(over) {
                break Some(Stop::Time);
            }
            if is_past(out_of_budget) {
                break Some(Stop::Spent("its time is spent".to_owned()));
            }
            if let Some(spent) = self.share.exceeded_by(|| self.used()) {
                break Some(Stop::Spent(spent));
            }
            if let Some(lost) = lease.keep(self, line.program) {
                break Some(lost);
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
                Ok(Notice::Ended) => break None,
                Ok(Notice::Stop(stop)) => break Some(stop),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Some(Stop::Leave),
            }
        };
        group.end(bounds.grace);
        // It is ended: it was killed if it did not listen. One of another user may go on.
        let begun = Instant::now();
        let mut status = None;
        while status.is_none() && begun.elapsed() < UNHEARD {
            status = child.try_wait().ok().flatten();
            if status.is_none() {
                thread::sleep(Duration::from_millis(5));
            }
        }
        End { stopped, status }
    }
}

/// How a run hears of what happens, and acts on the ledger.
pub(super) struct Line<'a> {
    pub(super) program: &'a Program,
    pub(super) notices: &'a Receiver<Notice>,
    pub(super) sender: &'a Sender<Notice>,
}

/// Sends a notice when a process has ended. Its number stays its own until it is waited for.
fn tell_end(child: &Child, sender: Sender<Notice>) {
    let Some(number) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return;
    };
    thread::spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(number), options), Err(Errno::INTR)) {}
        // Nobody may listen any more.
        let _ = sender.send(Notice::Ended);
    });
}
