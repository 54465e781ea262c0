//! The output of a run, read from a pipe as it arrives; its size on disk and in memory is limited.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, PipeReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;

use super::usage::{UsageReader, UsageRule, UsageSoFar};

/// The maximum of a run's output that is written to its file, in bytes.
const MOST_ON_DISK: u64 = 16 * 1024 * 1024;

/// The maximum of an output's end that is kept with a failure, in bytes.
const KEPT: usize = 64 * 1024;

/// How long to wait for the remaining output of an ended command.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A folder for the worker's own files of a run, which agents don't know.
#[derive(Debug)]
pub(super) struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Creates the folder, which others can't read.
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        let folder = Self { path };
        if !folder.is_there() {
            folder.remove();
            fs::DirBuilder::new().mode(0o700).create(&folder.path)?;
        }
        Ok(folder)
    }

    /// Whether the folder exists: a killed worker left it.
    pub(super) fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| found.is_dir())
    }

    /// The output of the last run.
    pub(super) fn log(&self) -> PathBuf {
        self.path.join("output.txt")
    }

    /// Writes a new file, replacing what is there without following links.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        new_file(&path)?.write_all(bytes)?;
        Ok(path)
    }

    pub(super) fn remove(&self) {
        let _ = match fs::symlink_metadata(&self.path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&self.path),
            Ok(_) => fs::remove_file(&self.path),
            Err(_) => return,
        };
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::options().write(true).create_new(true).open(path)
}

pub(super) struct RunOutput {
    so_far: Arc<Mutex<SoFar>>,
    ended: Receiver<()>,
}

struct SoFar {
    log: File,
    written: u64,
    left_out: u64,
    end: VecDeque<u8>,
    usage: UsageReader,
}

impl SoFar {
    fn take(&mut self, bytes: &[u8]) {
        self.usage.feed(bytes);
        self.end.extend(bytes);
        let surplus = self.end.len().saturating_sub(KEPT);
        self.end.drain(..surplus);
        let room = usize::try_from(MOST_ON_DISK - self.written).unwrap_or(usize::MAX);
        let fitting = &bytes[..bytes.len().min(room)];
        // A full disk must not end the run: the end of its output is in memory.
        if self.log.write_all(fitting).is_ok() {
            self.written += fitting.len() as u64;
        }
        self.left_out += (bytes.len() - fitting.len()) as u64;
    }
}

impl RunOutput {
    /// Reads a pipe until its end, on a thread of its own.
    ///
    /// # Errors
    /// The system's error, if the file can't be created.
    pub(super) fn read(pipe: PipeReader, log: &Path, rules: &[UsageRule]) -> io::Result<Self> {
        let so_far = Arc::new(Mutex::new(SoFar {
            log: new_file(log)?,
            written: 0,
            left_out: 0,
            end: VecDeque::new(),
            usage: UsageReader::new(rules),
        }));
        let (sender, ended) = channel();
        let shared = Arc::clone(&so_far);
        thread::spawn(move || {
            pump(pipe, &shared);
            // There may be no receiver.
            let _ = sender.send(());
        });
        Ok(Self { so_far, ended })
    }

    fn so_far(&self) -> MutexGuard<'_, SoFar> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The usage that the output reports.
    pub(super) fn used(&self) -> UsageSoFar {
        self.so_far().usage.used()
    }

    /// The end of the output of an ended command, as text.
    pub(super) fn end(&self) -> String {
        // A process that could not be ended may hold the pipe open.
        let _ = self.ended.recv_timeout(LAST_WORDS);
        let mut so_far = self.so_far();
        let end: Vec<u8> = so_far.end.iter().copied().collect();
        if so_far.left_out > 0 {
            let mark = format!("\n[{} bytes are left out here]\n", so_far.left_out);
            let written = so_far.log.write_all(mark.as_bytes());
            let _ = written.and_then(|()| so_far.log.write_all(&end));
            so_far.left_out = 0;
        }
        whole_lines(&end)
    }
}

/// Reads until the end, or an error.
fn pump(mut pipe: PipeReader, shared: &Mutex<SoFar>) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                let mut so_far = shared.lock().unwrap_or_else(PoisonError::into_inner);
                so_far.take(&buffer[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// The end of an output, from the beginning of a line if it is truncated.
fn whole_lines(end: &[u8]) -> String {
    let start = if end.len() < KEPT {
        0
    } else {
        let line = end.iter().position(|byte| *byte == b'\n');
        line.map_or(0, |line| line + 1)
    };
    String::from_utf8_lossy(&end[start..]).into_owned()
}

/// The output of a killed worker's run: the usage that it reports, and its end.
pub(super) fn of_killed(log: &Path, rules: &[UsageRule]) -> (UsageSoFar, String) {
    let mut usage = UsageReader::new(rules);
    let mut end = VecDeque::new();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let opened = File::options().read(true).custom_flags(flags).open(log);
    let is_file = |file: &File| {
        file.metadata()
            .is_ok_and(|found| found.is_file() && found.nlink() == 1)
    };
    if let Some(mut file) = opened.ok().filter(is_file) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = file.read(&mut buffer) {
            usage.feed(&buffer[..count]);
            end.extend(&buffer[..count]);
            let surplus = end.len().saturating_sub(KEPT);
            end.drain(..surplus);
        }
    }
    let end: Vec<u8> = end.into();
    (usage.used(), whole_lines(&end))
}
