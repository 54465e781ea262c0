//! Ends all processes of a run: by their common ancestor (`reaper`), by a marker in their
//! environment, which identifies those of a killed worker, and by a control group if possible,
//! which holds them even if they kill the reaper.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use handoff::git::SharedModes;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait};
use serde::{Deserialize, Serialize};

use crate::environment::{self, MARK};

/// How long the system may take to end a killed process.
const KILLED: Duration = Duration::from_secs(5);

/// The reaper's extra time: it kills the remaining processes after the grace period.
const REAPED: Duration = Duration::from_secs(3);

/// The processes started by an agent's command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProcessGroup {
    /// The unique value of their marker.
    pub mark: String,
    /// The id of its first process, which is also its group id, once started.
    pub number: Option<i32>,
    /// Whether its first process is a reaper, which ends the others.
    #[serde(default)]
    pub is_reaped: bool,
    /// Its control group (v2), if one could be created.
    pub cgroup: Option<PathBuf>,
    /// The start time of its first process, to detect reuse of the id.
    pub started: Option<String>,
}

impl ProcessGroup {
    /// A group that is not started yet.
    pub fn marked() -> Self {
        Self {
            mark: environment::random_word(),
            number: None,
            is_reaped: false,
            cgroup: None,
            started: None,
        }
    }

    /// Adds a control group of its own to the group, if one can be created.
    pub fn confined(self) -> Self {
        let folder = own_cgroup().map(|own| own.join(format!("git-handoff-{}", self.mark)));
        let made = folder.filter(|folder| fs::create_dir(folder).is_ok());
        Self {
            cgroup: made,
            ..self
        }
    }

    /// Sets the running reaper as the group's first process.
    pub fn reaped_by(self, number: u32) -> Self {
        Self {
            is_reaped: true,
            ..self.of(number)
        }
    }

    /// Sets the group's running first process.
    pub fn of(self, number: u32) -> Self {
        Self {
            number: i32::try_from(number).ok(),
            started: started(number),
            ..self
        }
    }

    /// Ends all of its processes: terminates them, and kills the remaining ones after the grace
    /// period.
    pub fn end(&self, grace: Duration) {
        if let Some(reaper) = self.first().filter(|_| self.is_reaped) {
            Member::Process(reaper).send(Signal::TERM);
            until(grace + REAPED, || self.first().is_none());
        }
        self.end_marked(grace);
        if let Some(cgroup) = &self.cgroup {
            let is_gone = || fs::remove_dir(cgroup).is_ok() || !cgroup.exists();
            if !is_gone() {
                // A process that is left has killed the reaper and removed the marker.
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
                // Processes started meanwhile are terminated, too.
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

    /// The id of its first process, if it runs.
    fn first(&self) -> Option<i32> {
        let runs = |number: &i32| {
            let now = u32::try_from(*number).ok().and_then(started);
            now.is_some() && now == self.started
        };
        self.number.filter(runs)
    }

    /// Its remaining processes: those with the marker, and its first process's group. A process may
    /// have changed its user or environment, which hides the marker.
    fn alive(&self) -> Vec<Member> {
        let mut members: Vec<Member> = marked(&self.mark)
            .into_iter()
            .map(Member::Process)
            .collect();
        members.extend(self.first().map(Member::Group));
        members
    }
}

/// This process's control group (v2).
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

/// This process's living descendants, where they can be listed.
pub fn below() -> Option<Vec<Pid>> {
    let process = |entry: fs::DirEntry| {
        let number: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The second field is a name, which may contain blanks and parentheses.
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

/// Ends processes started during its lifetime: this process adopts orphans, where the system
/// supports it (Linux).
pub struct Adoption {
    /// The descendants that existed before.
    others: Vec<Pid>,
}

impl Adoption {
    /// Starts adopting orphans.
    pub fn begin() -> Self {
        adopt_orphans(true);
        Self {
            others: below().unwrap_or_default(),
        }
    }

    /// Ends the processes started since: terminates them, and kills the remaining ones after the
    /// grace period.
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

/// Polls a condition until it holds or time runs out; returns whether it holds.
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

/// The processes with this marker in their environment.
fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let has = |number: &i32| {
        // Other users' processes can't be read.
        let variables = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        variables
            .split(|byte| *byte == 0)
            .any(|one| one == wanted.as_bytes())
    };
    entries.filter_map(number).filter(has).collect()
}

/// A process's start time, in the system's format; `None` if it does not exist or is a zombie.
fn started(number: u32) -> Option<String> {
    if let Ok(stat) = fs::read_to_string(format!("/proc/{number}/stat")) {
        // The second field is a name, which may contain blanks and parentheses.
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

/// Locks a file of a git directory while the result is held; `None` if another process holds it. The
/// system releases a killed process's lock.
///
/// # Errors
/// The system's, if the file or its folder can't be created.
pub fn locked(path: &Path) -> io::Result<Option<File>> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    let _modes = SharedModes::begin();
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    loop {
        let lock = options.open(path)?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        // The previous holder may have removed the file.
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
