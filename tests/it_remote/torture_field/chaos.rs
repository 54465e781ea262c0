//! What is done to the clones and the remote while the agents work.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use super::dice::Dice;
use super::{Field, Line, processes};
use test_support::remote::{Fault, Way};

/// Breaks something now and then until it is over.
pub(crate) fn break_things(field: &Field, over: &AtomicBool, mut dice: Dice) {
    while !over.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(20 + dice.below(150)));
        let clone = dice.one(&field.clones);
        match (dice.below(100), &clone.line) {
            (0..45, Line::Proxy(proxy)) => {
                let way = *dice.one(&[Way::Up, Way::Down]);
                let digits = dice.below(13);
                let bytes = dice.below(1 << digits);
                let fault = match dice.percent(5) {
                    true => Fault::Stall(way, bytes),
                    false => Fault::Cut(way, bytes),
                };
                proxy.next(&[fault]);
            }
            (45..54, line) => {
                unreachable(line, true);
                thread::sleep(Duration::from_millis(100 + dice.below(400)));
                unreachable(line, false);
            }
            (54..60, _) => fs::write(field.bare.join("refuse"), "").unwrap(),
            (60..80, _) => {
                let all = field.clones.iter().map(|clone| &clone.folders[0]);
                let all: Vec<&PathBuf> = all.chain([&field.bare]).collect();
                let repository = *dice.one(&all);
                tidy(field, repository, &mut dice);
            }
            _ => {}
        }
        free_what_is_stuck(field);
    }
}

/// Makes the remote unreachable on a line, or reachable again.
fn unreachable(line: &Line, is: bool) {
    match line {
        Line::Path(link) => {
            let away = link.with_extension("away");
            match is {
                true => fs::rename(link, away).unwrap(),
                false => fs::rename(away, link).unwrap(),
            }
        }
        Line::Proxy(proxy) if is => proxy.always(Fault::Refuse),
        Line::Proxy(proxy) => proxy.heal(),
    }
}

/// Has git tidy a repository up, as users and schedules do.
fn tidy(field: &Field, repository: &Path, dice: &mut Dice) {
    let args: &[&str] = match dice.below(6) {
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
        _ => &["gc", "--auto", "--quiet"],
    };
    // It may meet a lock, and give up.
    field.env().git_any(repository, args);
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
