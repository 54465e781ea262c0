//! Termination signals and closed pipes, for commands that run until something happens.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A flag: the program was asked to end.
#[derive(Clone, Default)]
pub struct Interruption {
    requested: Arc<AtomicBool>,
    signal: Arc<AtomicI32>,
    waker: Arc<Mutex<Option<Waker>>>,
}

/// Called when a waiting command is asked to end.
type Waker = Box<dyn Fn() + Send>;

impl Interruption {
    /// From now on, SIGINT, SIGTERM and SIGHUP set the flag and call `wake` instead of ending the
    /// program. A program started under `nohup` ignores SIGHUP as before.
    ///
    /// # Errors
    /// The system's error if signals can't be caught.
    pub fn catch(wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        let caught = Self::default();
        #[cfg(unix)]
        {
            use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
            let hangup = (!ignores_hangup()).then_some(SIGHUP);
            let caught_ones = [SIGINT, SIGTERM].into_iter().chain(hangup);
            let mut signals = signal_hook::iterator::Signals::new(caught_ones)?;
            let noted = caught.clone();
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    noted.signal.store(signal, Ordering::SeqCst);
                    // A second signal ends the program at once.
                    if noted.requested.swap(true, Ordering::SeqCst) {
                        noted.pass_on();
                    }
                    wake();
                }
            });
        }
        #[cfg(not(unix))]
        drop(wake);
        Ok(caught)
    }

    /// Also wakes when standard output's reader is gone.
    pub fn or_reader_gone(&self, wake: impl Fn() + Send + 'static) {
        #[cfg(unix)]
        {
            use rustix::event::{PollFd, PollFlags, poll};
            use rustix::io::Errno;
            let requested = Arc::clone(&self.requested);
            std::thread::spawn(move || {
                let stdout = io::stdout();
                // With no flags, poll still reports a closed pipe.
                let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
                while poll(&mut polled, None) == Err(Errno::INTR) {}
                if polled[0]
                    .revents()
                    .intersects(PollFlags::ERR | PollFlags::HUP)
                {
                    requested.store(true, Ordering::SeqCst);
                    wake();
                }
            });
        }
        #[cfg(not(unix))]
        drop(wake);
    }

    /// Whether the program was asked to end.
    pub fn requested(&self) -> &AtomicBool {
        &self.requested
    }

    /// The flag, for another thread or a library.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.requested)
    }

    /// From now on, signals end the program again; so does one that came before.
    pub fn release(&self) {
        if self.requested.swap(true, Ordering::SeqCst) {
            self.pass_on();
        }
    }

    /// Asks one command to end, where there is no signal to the whole program.
    pub fn ask(&self) {
        self.requested.store(true, Ordering::SeqCst);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wake) = waker.as_ref() {
            wake();
        }
    }

    /// From now on, calls `wake` when the command is asked to end. Check `requested` before
    /// waiting.
    pub fn wakes(&self, wake: impl Fn() + Send + 'static) {
        let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        *waker = Some(Box::new(wake));
    }

    /// Ends the program like the caught signal would have; does nothing without one.
    pub fn pass_on(&self) {
        #[cfg(unix)]
        {
            let signal = self.signal.load(Ordering::SeqCst);
            if signal == 0 {
                return;
            }
            // Only signals that end programs are caught.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}

/// Whether the program was started with SIGHUP ignored, like under `nohup`; assumed if unknown.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return true;
    };
    let mut lines = status.lines();
    let ignored = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first bit is signal 1, SIGHUP.
    ignored.is_none_or(|mask| mask & 1 == 1)
}
