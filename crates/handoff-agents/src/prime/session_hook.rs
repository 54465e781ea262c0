//! The answers to a harness's hooks. No failure here may break a session.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};
use std::{fs, thread};

use crate::harness::{Event, Harness, Kept};
use clap::ValueEnum;
use handoff::base::digest;
use handoff::git::{Repository, SharedModes};
use serde_json::Value;

use super::{held, prime};
use handoff_cli::context::Context;
use handoff_cli::environment::MARK;
use handoff_cli::environment::{is_set, project_of_harness};
use handoff_cli::failure::Failure;
use handoff_cli::output::Output;

/// The event that a hook answers.
#[derive(Clone, Copy, ValueEnum)]
pub enum When {
    /// A session begins
    SessionStart,
    /// The agent is about to stop
    Stop,
}

/// Answers a hook.
///
/// # Errors
/// A [`Failure`] if nothing can be printed.
pub fn answer(
    context: &Context,
    output: &mut Output,
    name: &str,
    event: When,
) -> Result<(), Failure> {
    let Some(harness) = Harness::find(name).filter(|harness| harness.hooks.is_some()) else {
        return Ok(());
    };
    // The prompt of `work` contains everything already.
    if is_set(&[MARK]) {
        return Ok(());
    }
    let input = input();
    go_to_repository(&input);
    let (event, text) = match event {
        When::SessionStart => {
            let text = match prime(context, false, output) {
                Ok(page) => Some(page.text),
                // The hook may run in any repository, so no remote is asked.
                Err(mut failure) => {
                    let is_elsewhere = context.may_be_elsewhere(&mut failure, true);
                    is_elsewhere.then(|| format!("{}: {}.", failure.message, failure.next()))
                }
            };
            (Event::SessionStart, text)
        }
        When::Stop => {
            let kept = Harness::kept_before(&input);
            if kept == Kept::Perhaps {
                return Ok(());
            }
            let text = held(context, output).ok().flatten();
            let is_first = |session: &str| {
                let repository = context.repository().ok();
                repository.is_some_and(|r| remember(r.common_dir(), name, session))
            };
            let text = text.filter(|_| match &kept {
                Kept::Ask(session) => is_first(session),
                Kept::No | Kept::Perhaps => true,
            });
            (Event::Stop, text)
        }
    };
    match text {
        Some(text) => output.raw(format!("{}\n", harness.answer(event, &text)).as_bytes()),
        None => Ok(()),
    }
}

/// The harness's message on standard input. Some harnesses leave it open, so reading stops at the
/// end of an object, or after a short time.
fn input() -> Value {
    const PATIENCE: Duration = Duration::from_secs(2);
    let parts = parts();
    let until = Instant::now() + PATIENCE;
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match parts.recv_timeout(left) {
            Ok(part) => bytes.extend(part),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
        if bytes.trim_ascii_end().ends_with(b"}")
            && let Ok(input) = serde_json::from_slice(&bytes)
        {
            return input;
        }
    }
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Chunks of standard input as they arrive.
fn parts() -> Receiver<Vec<u8>> {
    /// More than any harness sends.
    const MOST: u64 = 1 << 24;
    let (sender, parts) = channel();
    // Without input, the thread ends with the process.
    thread::spawn(move || {
        let mut stdin = std::io::stdin().take(MOST);
        let mut part = vec![0; 1 << 16];
        while let Ok(length @ 1..) = stdin.read(&mut part) {
            if sender.send(part[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    parts
}

/// Some harnesses run hooks in a folder other than the project's.
fn go_to_repository(input: &Value) {
    if Repository::open_here().is_ok() {
        return;
    }
    let working_folder = input["cwd"].as_str().map(PathBuf::from);
    for folder in [working_folder, project_of_harness()].into_iter().flatten() {
        if std::env::set_current_dir(folder).is_ok() && Repository::open_here().is_ok() {
            return;
        }
    }
}

/// Remembers that an agent was kept from stopping. Returns whether this is the first time and could
/// be stored; otherwise it would be kept forever.
fn remember(common_dir: &Path, harness: &str, session: &str) -> bool {
    /// The maximum number of sessions that are remembered; the oldest are dropped.
    const MOST: usize = 256;
    let folder = common_dir.join("handoff").join("kept");
    let name = digest(format!("{harness}\0{session}").as_bytes());
    let _modes = SharedModes::begin();
    let made = fs::create_dir_all(&folder).and_then(|()| fs::File::create_new(folder.join(name)));
    if made.is_err() {
        return false;
    }
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut notes: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    notes.sort();
    let old = notes.len().saturating_sub(MOST);
    for (_, path) in &notes[..old] {
        // Another process may have removed it.
        let _ = fs::remove_file(path);
    }
    true
}
