//! What is done to the clones and the remote while the agents work.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use super::{Clone, Field, Line, processes};
use test_support::dice::Dice;
use test_support::remote::{Direction, Fault};

/// What happens to a step of an agent, apart from being killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The next connection breaks: it is cut, or nothing goes on there.
    Broken(Fault),
    /// The remote cannot be reached meanwhile.
    Absent,
    /// The remote refuses a push.
    Refused,
    /// A repository is tidied up meanwhile.
    Tidied,
}

/// What a kill hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    Tool,
    /// The git commands that it runs, and perhaps itself.
    Git {
        and_tool: bool,
    },
}

/// What is to happen to each step of an agent: a seed decides, and nothing else.
#[derive(Clone)]
pub(crate) struct Troubles(pub(crate) Dice);

impl Troubles {
    /// What happens to the next step.
    pub(crate) fn draw(&mut self) -> (Option<Victim>, Option<Trouble>) {
        let dice = &mut self.0;
        let victim = match dice.below(100) {
            0..10 => Some(Victim::Git { and_tool: false }),
            10..20 => Some(Victim::Git { and_tool: true }),
            20..30 => Some(Victim::Tool),
            _ => None,
        };
        let trouble = match dice.below(100) {
            0..17 => {
                let direction = *dice.one(&[Direction::Up, Direction::Down]);
                let digits = dice.below(13);
                let bytes = dice.below(1 << digits);
                Some(Trouble::Broken(if dice.percent(5) {
                    Fault::Stall(direction, bytes)
                } else {
                    Fault::Cut(direction, bytes)
                }))
            }
            17..24 => Some(Trouble::Absent),
            24..29 => Some(Trouble::Refused),
            29..44 => Some(Trouble::Tidied),
            _ => None,
        };
        (victim, trouble)
    }
}

/// Faults that were made, counted where they are.
#[derive(Default)]
pub(crate) struct Made {
    pub(crate) killed: AtomicU32,
    pub(crate) git_killed: AtomicU32,
    pub(crate) absent: AtomicU32,
    pub(crate) tidied: AtomicU32,
}

impl Field {
    /// Takes a step while this happens to it.
    pub(crate) fn troubled<T>(
        &self,
        clone: &Clone,
        trouble: Option<Trouble>,
        dice: &mut Dice,
        step: impl FnOnce() -> T,
    ) -> T {
        match (trouble, &clone.line) {
            (Some(Trouble::Broken(fault)), Line::Proxy(proxy)) => proxy.next(&[fault]),
            (Some(Trouble::Refused), _) => fs::write(self.bare.join("refuse"), "").unwrap(),
            (Some(Trouble::Absent), line) => {
                let mut how_many = clone.absences.lock().unwrap();
                if *how_many == 0 {
                    unreachable(line, true);
                }
                *how_many += 1;
                drop(how_many);
                self.made.absent.fetch_add(1, Ordering::SeqCst);
                let done = step();
                let mut how_many = clone.absences.lock().unwrap();
                *how_many -= 1;
                if *how_many == 0 {
                    unreachable(line, false);
                }
                return done;
            }
            (Some(Trouble::Tidied), _) => {
                let all = self.clones.iter().map(|clone| &clone.folders[0]);
                let all: Vec<&PathBuf> = all.chain([&self.bare]).collect();
                let repository = *dice.one(&all);
                return thread::scope(|scope| {
                    scope.spawn(|| tidy(self, repository, dice));
                    step()
                });
            }
            _ => {}
        }
        step()
    }
}

/// Removes what is stuck, now and then until it is over.
pub(crate) fn keep_going(field: &Field, over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(50));
        free_what_is_stuck(field);
    }
}

/// Makes the remote unreachable on a line, or reachable again.
fn unreachable(line: &Line, is: bool) {
    match line {
        Line::Path(link) => {
            let away = link.with_extension("away");
            if is {
                fs::rename(link, away).unwrap()
            } else {
                fs::rename(away, link).unwrap()
            }
        }
        Line::Proxy(proxy) if is => proxy.always(Fault::Refuse),
        Line::Proxy(proxy) => proxy.heal(),
    }
}

/// Has git tidy a repository up, or the ledger verified, as users and schedules do.
fn tidy(field: &Field, repository: &Path, dice: &mut Dice) {
    let args: &[&str] = match dice.below(8) {
        0 | 1 => &["pack-refs", "--all"],
        2 => &["gc", "--quiet"],
        3 => &["repack", "-d", "-q"],
        4 => &[
            "maintenance",
            "run",
            "--quiet",
            "--task=loose-objects",
            "--task=pack-refs",
        ],
        5 => &["gc", "--auto", "--quiet"],
        _ => &["-c", "alias.v=!git-handoff verify --incremental", "v"],
    };
    // It may meet a lock, and give up.
    field.env().git_any(repository, args);
    field.made.tidied.fetch_add(1, Ordering::SeqCst);
}

/// The locks that git leaves where it was killed, which only a person removes. The
/// ledger's branch of a clone is not among them: who writes there clears up.
fn locks(field: &Field) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![field.bare.join("refs")];
    let mut files = vec![field.bare.join("packed-refs.lock")];
    for clone in &field.clones {
        let git = clone.folders[0].join(".git");
        folders.push(git.join("refs/handoff"));
        files.extend(["packed-refs.lock", "shallow.lock"].map(|name| git.join(name)));
    }
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => files.push(entry.path()),
            }
        }
    }
    let is_lock = |path: &PathBuf| path.extension().is_some_and(|end| end == "lock");
    found.extend(
        files
            .into_iter()
            .filter(|path| is_lock(path) && path.exists()),
    );
    found
}

/// Removes locks that nobody can hold any more: nothing runs but the daemon.
pub(crate) fn clear_locks(field: &Field) {
    for lock in locks(field) {
        let _ = fs::remove_file(lock);
    }
}

/// Does as a person would who finds that a lock stays: has all agents wait, sees that
/// no git runs, and removes it.
fn free_what_is_stuck(field: &Field) {
    let old = |path: &PathBuf| {
        let changed = fs::metadata(path).and_then(|data| data.modified());
        let age = changed.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
        age.is_ok_and(|age| age > Duration::from_secs(1))
    };
    if !locks(field).iter().any(old) {
        return;
    }
    let gate = field.gate.write().unwrap();
    // What goes on by itself ends, and what hangs in a connection is cut off.
    for clone in &field.clones {
        if let Line::Proxy(proxy) = &clone.line {
            proxy.heal();
        }
    }
    processes::wait_for_none(field.env(), &["git daemon", "git-daemon"]);
    clear_locks(field);
    field.freed.fetch_add(1, Ordering::SeqCst);
    drop(gate);
}
