//! The processes of a run, which are ended as a whole: by the process that all of them are below
//! (`reaper`), by a mark in their environment, which shows those of a worker that was killed, and by a
//! control group, where one can be made, which holds them even if they end their reaper.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait};
use serde::{Deserialize, Serialize};

use crate::environment;

/// The variable that marks the processes of an agent.
pub const MARK: &str = "GIT_HANDOFF_RUN";

/// How long it may take the system to end a process that was killed.
const KILLED: Duration = Duration::from_secs(5);

/// How much longer than its processes a reaper has: it kills those that are left after the grace.
const REAPED: Duration = Duration::from_secs(3);

/// The processes that an agent's command started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProcessGroup {
    /// The value of their mark, which nobody else has.
    pub mark: String,
    /// The number of its first process and its group, once it is started.
    pub number: Option<i32>,
    /// Whether its first process is a reaper, which ends the others.
    #[serde(default)]
    pub is_reaped: bool,
    /// Its control group (version 2), if one could be made.
    pub cgroup: Option<PathBuf>,
    /// When its first process was started, as the system has it: another process may get its number
    /// later.
    pub started: Option<String>,
}

impl ProcessGroup {
    /// A group that is about to be started.
    pub fn marked() -> Self {
        Self {
            mark: environment::random_word(),
            number: None,
            is_reaped: false,
            cgroup: None,
            started: None,
        }
    }

    /// The same, with a control group of its own, if one can be made.
    pub fn confined(self) -> Self {
        let folder = own_cgroup().map(|own| own.join(format!("git-handoff-{}", self.mark)));
        let made = folder.filter(|folder| fs::create_dir(folder).is_ok());
        Self {
            cgroup: made,
            ..self
        }
    }

    /// The same, once its reaper runs.
    pub fn reaped_by(self, number: u32) -> Self {
        Self {
            is_reaped: true,
            ..self.of(number)
        }
    }

    /// The same, once its first process runs.
    pub fn of(self, number: u32) -> Self {
        Self {
            number: i32::try_from(number).ok(),
            started: started(number),
            ..self
        }
    }

    /// Ends all of its processes: asks them to, and after this time kills those that are left.
    pub fn end(&self, grace: Duration) {
        if let Some(reaper) = self.first().filter(|_| self.is_reaped) {
            Member::Process(reaper).send(Signal::TERM);
            until(grace + REAPED, || self.first().is_none());
        }
        self.end_marked(grace);
        if let Some(cgroup) = &self.cgroup {
            let is_gone = || fs::remove_dir(cgroup).is_ok() || !cgroup.exists();
            if !is_gone() {
                // What is left in it has ended its reaper, and hides from its mark.
                let _ = fs::write(cgroup.join("cgroup.kill"), "1");
                until(KILLED, is_gone);
            }
        }
    }

    fn end_marked(&self, grace: Duration) {
        for (signal, patience) in [(Signal::TERM, grace), (Signal::KILL, KILLED)] {
            let mut asked = Vec::new();
            let has_ended = until(patience, || {
                let alive = self.alive();
                // One that was started in between is asked too.
                for one in alive.iter().filter(|one| !asked.contains(*one)) {
                    one.send(signal);
                }
                asked = alive;
                asked.is_empty()
            });
            if has_ended {
                return;
            }
        }
    }

    /// Whether any of its processes runs.
    pub fn is_alive(&self) -> bool {
        !self.alive().is_empty()
    }

    /// The number of its first process, if that runs.
    fn first(&self) -> Option<i32> {
        let runs = |number: &i32| {
            let now = u32::try_from(*number).ok().and_then(started);
            now.is_some() && now == self.started
        };
        self.number.filter(runs)
    }

    /// What is left of it: those with its mark, and the group of its first process. A program may
    /// have changed its user or its environment, so that the mark can't be read.
    fn alive(&self) -> Vec<Member> {
        let mut members: Vec<Member> = marked(&self.mark)
            .into_iter()
            .map(Member::Process)
            .collect();
        members.extend(self.first().map(Member::Group));
        members
    }
}

/// The control group (version 2) of this process.
fn own_cgroup() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (_, at, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then_some(at)
    })?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(mount).join(own))
}

/// The living processes below this one, where they can be listed.
pub fn below() -> Option<Vec<Pid>> {
    let process = |entry: fs::DirEntry| {
        let number: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The second field is a name, which may hold spaces and brackets.
        let (_, after) = stat.rsplit_once(')')?;
        let mut fields = after.split_whitespace();
        let has_ended = matches!(fields.next(), Some("Z" | "X"));
        let parent: i32 = fields.next()?.parse().ok()?;
        Some((number, parent, has_ended))
    };
    let entries = fs::read_dir("/proc").ok()?;
    let all: Vec<(i32, i32, bool)> = entries.flatten().filter_map(process).collect();
    let mut below = vec![getpid().as_raw_nonzero().get()];
    let mut next = 0;
    while next < below.len() {
        let parent = below[next];
        below.extend(all.iter().filter(|one| one.1 == parent).map(|one| one.0));
        next += 1;
    }
    let lives = |number: &&i32| all.iter().any(|one| one.0 == **number && !one.2);
    let below = below[1..].iter().filter(lives);
    Some(below.filter_map(|number| Pid::from_raw(*number)).collect())
}

/// What is started while it lasts, and ends with it: this process is the parent of the orphans, where
/// the system can make it that (Linux).
pub struct Adoption {
    /// What was below this process before.
    others: Vec<Pid>,
}

impl Adoption {
    /// Begins to adopt orphans.
    pub fn begin() -> Self {
        adopt_orphans(true);
        Self {
            others: below().unwrap_or_default(),
        }
    }

    /// Ends what was started: asks it to, and after this time kills what is left.
    pub fn end(self, grace: Duration) {
        for (signal, patience) in [(Signal::TERM, grace), (Signal::KILL, KILLED)] {
            let has_ended = until(patience, || {
                while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
                let mut left = below().unwrap_or_default();
                left.retain(|one| !self.others.contains(one));
                for one in &left {
                    let _ = kill_process(*one, signal);
                }
                left.is_empty()
            });
            if has_ended {
                break;
            }
        }
        adopt_orphans(false);
    }
}

#[cfg(target_os = "linux")]
fn adopt_orphans(adopts: bool) {
    let _ = rustix::process::set_child_subreaper(adopts.then(getpid));
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans(_: bool) {}

/// Polls a condition until it holds or the time is up; returns whether it holds.
fn until(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if begun.elapsed() > patience {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
    Process(i32),
    Group(i32),
}

impl Member {
    fn send(self, signal: Signal) {
        // A process may have ended meanwhile.
        let _ = match self {
            Self::Process(number) => Pid::from_raw(number).map(|pid| kill_process(pid, signal)),
            Self::Group(number) => Pid::from_raw(number).map(|pid| kill_process_group(pid, signal)),
        };
    }
}

/// The processes with this mark in their environment.
fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let has = |number: &i32| {
        // Those of other users can't be read.
        let variables = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        variables
            .split(|byte| *byte == 0)
            .any(|one| one == wanted.as_bytes())
    };
    entries.filter_map(number).filter(has).collect()
}

/// When a process was started, in the system's own words; none if there is no such process, or it has
/// ended and nobody has waited for it yet.
fn started(number: u32) -> Option<String> {
    if let Ok(stat) = fs::read_to_string(format!("/proc/{number}/stat")) {
        // The second field is a name, which may hold spaces and brackets.
        let (_, after) = stat.rsplit_once(')')?;
        let mut fields = after.split_whitespace();
        let has_ended = fields.next() == Some("Z");
        return fields.nth(18).filter(|_| !has_ended).map(str::to_owned);
    }
    let mut command = std::process::Command::new("ps");
    let shown = command
        .args(["-o", "lstart=", "-p", &number.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&shown.stdout).trim().to_owned();
    Some(text).filter(|text| !text.is_empty())
}

/// Locks a file for as long as it is held, unless another process has locked it. The system gives
/// back what a killed process held.
///
/// # Errors
/// The system's, if there can be no such file.
pub fn locked(path: &Path) -> io::Result<Option<File>> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    loop {
        let lock = options.open(path)?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        // Whoever held it may have removed the file in between.
        let is_there = fs::metadata(path)
            .is_ok_and(|there| lock.metadata().is_ok_and(|own| own.ino() == there.ino()));
        if is_there {
            return Ok(Some(lock));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::{MARK, ProcessGroup, marked, started};

    #[test]
    fn a_group_ends_with_those_that_left_it_and_those_that_do_not_listen() {
        let group = ProcessGroup::marked();
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "trap '' TERM; setsid sleep 600 & sleep 600 & wait; sleep 600",
        ]);
        command
            .env(MARK, &group.mark)
            .process_group(0)
            .stdout(Stdio::null());
        let mut first = command.spawn().expect("sh is there");
        let group = group.of(first.id());
        while marked(&group.mark).len() < 3 {
            std::thread::yield_now();
        }
        assert!(group.started.is_some());
        group.end(Duration::from_millis(100));
        first.wait().expect("it has ended");
        assert_eq!(marked(&group.mark), Vec::<i32>::new());
        assert_eq!(started(first.id()), None);
    }
}
