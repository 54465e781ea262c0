//! A real pseudo-terminal for the program, and an emulator that shows what a person would see.

use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Child, Command};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{self, Pty};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};

use crate::{PATIENCE, TestEnvironment, until};

/// How long a program may ignore keys before they are typed again.
const UNANSWERED: Duration = Duration::from_secs(1);

/// A terminal with a size and environment variables.
pub struct Terminal<'e> {
    env: &'e TestEnvironment,
    columns: u16,
    rows: u16,
    variables: Vec<(&'static str, String)>,
}

/// The output of a program on a terminal.
pub struct Seen {
    /// Every byte, with `ESC` made visible, without carriage returns.
    pub raw: String,
    /// The final screen, row by row.
    pub screen: String,
    pub status: i32,
}

impl<'e> Terminal<'e> {
    pub fn new(env: &'e TestEnvironment, columns: u16) -> Self {
        Self {
            env,
            columns,
            rows: 40,
            variables: vec![("TERM", "xterm-256color".to_owned())],
        }
    }

    pub fn rows(mut self, rows: u16) -> Self {
        self.rows = rows;
        self
    }

    /// Sets an environment variable.
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value.to_owned()));
        self
    }

    /// Runs the program to its end.
    pub fn handoff(&self, args: &[&str]) -> Seen {
        self.run(self.env.program(args), &[])
    }

    /// Starts the program without waiting for its end.
    pub fn start(&self, args: &[&str]) -> Live {
        let mut command = self.env.program(args);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let (pty, pts) = blocking::open().unwrap();
        pty.resize(Size::new(self.rows, self.columns)).unwrap();
        let modes = tcgetattr(&pty).unwrap().local_modes;
        let child = blocking::Command::from(command).spawn(pts).unwrap();
        let pty = Arc::new(pty);
        let screen = Arc::new(Mutex::new(parser(self.columns, self.rows)));
        let reader = {
            let (pty, screen) = (Arc::clone(&pty), Arc::clone(&screen));
            thread::spawn(move || {
                let (mut raw, mut bytes) = (Vec::new(), [0; 4096]);
                // Reading fails once the terminal's last user is gone.
                while let Ok(count @ 1..) = (&*pty).read(&mut bytes) {
                    screen.lock().unwrap().process(&bytes[..count]);
                    raw.extend(&bytes[..count]);
                }
                raw
            })
        };
        Live {
            pty,
            modes,
            child,
            screen,
            reader,
        }
    }

    /// Runs a command and types keys: whenever there was output since the last keys and the screen
    /// shows a text, the keys that go with it. Like a person, types them again if the text is still
    /// there and nothing else appeared for a second.
    pub fn run(&self, mut command: Command, typed: &[(&str, &str)]) -> Seen {
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let (pty, pts) = blocking::open().unwrap();
        pty.resize(Size::new(self.rows, self.columns)).unwrap();
        let mut child = blocking::Command::from(command).spawn(pts).unwrap();
        let mut screen = parser(self.columns, self.rows);
        let (mut raw, mut typed) = (Vec::new(), typed.iter().peekable());
        let status = thread::scope(|scope| {
            let (pty, (sender, shown)) = (&pty, channel());
            scope.spawn(move || {
                let (mut pty, mut bytes) = (pty, [0; 4096]);
                // Reading fails once the terminal's last user is gone.
                while let Ok(count @ 1..) = pty.read(&mut bytes) {
                    let _ = sender.send(bytes[..count].to_vec());
                }
            });
            let start = Instant::now();
            let mut is_new = false;
            let mut last: Option<&(&str, &str)> = None;
            let mut quiet_since = start;
            loop {
                match shown.recv_timeout(Duration::from_millis(100)) {
                    Ok(bytes) => {
                        screen.process(&bytes);
                        raw.extend(bytes);
                        is_new = true;
                        quiet_since = Instant::now();
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                let now = screen.screen().contents();
                // `less` drops input before it has set up the terminal, or while it handles an
                // interrupt.
                let is_quiet = quiet_since.elapsed() > UNANSWERED;
                let again = last.filter(|(text, _)| is_quiet && now.contains(text));
                let next = typed.next_if(|(text, _)| is_new && now.contains(text));
                if let Some(keys) = next.or(again) {
                    let mut keyboard = pty;
                    keyboard.write_all(keys.1.as_bytes()).unwrap();
                    is_new = false;
                    quiet_since = Instant::now();
                    last = Some(keys);
                }
                if start.elapsed() > PATIENCE {
                    let _ = child.kill();
                    panic!("still running:\n{now}");
                }
            }
            child.wait().unwrap()
        });
        assert_eq!(typed.next(), None, "{}", screen.screen().contents());
        let raw = String::from_utf8_lossy(&raw).replace('\r', "");
        let rows = screen.screen().rows(0, self.columns);
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        Seen {
            raw: self.env.filtered(&raw.replace('\u{1b}', "\\e")),
            screen: self.env.filtered(rows.join("\n").trim_end()),
            status: status.code().unwrap_or(-1),
        }
    }
}

/// A running program on a terminal.
pub struct Live {
    pty: Arc<Pty>,
    /// The terminal's initial modes.
    modes: LocalModes,
    child: Child,
    screen: Arc<Mutex<vt100::Parser>>,
    reader: JoinHandle<Vec<u8>>,
}

/// A terminal after a program exited.
pub struct Left {
    pub status: std::process::ExitStatus,
    /// Every byte that was written to it.
    pub raw: Vec<u8>,
    /// The differences from its initial state.
    pub changed: Vec<&'static str>,
}

impl Live {
    /// The screen, row by row.
    pub fn screen(&self) -> String {
        let parser = self.screen.lock().unwrap();
        let columns = parser.screen().size().1.get();
        let rows = parser.screen().rows(0, columns);
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// Waits until the screen shows a text; returns the screen.
    #[track_caller]
    pub fn shows(&self, text: &str) -> String {
        self.is_so(text, |screen| screen.contains(text))
    }

    /// Waits until the screen no longer shows a text; returns the screen.
    #[track_caller]
    pub fn lacks(&self, text: &str) -> String {
        self.is_so(text, |screen| !screen.contains(text))
    }

    #[track_caller]
    fn is_so(&self, text: &str, is: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if is(&screen) {
                return screen;
            }
            assert!(start.elapsed() < PATIENCE, "never: {text}\n{screen}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn types(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let [high, wide] = [rows, columns].map(|n| NonZero::new(n).unwrap());
        self.screen.lock().unwrap().set_size(high, wide);
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the program to exit.
    #[track_caller]
    pub fn left(mut self) -> Left {
        let mut status = None;
        until("its end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let modes = tcgetattr(&*self.pty).unwrap().local_modes;
        let raw = self.reader.join().unwrap();
        let parser = self.screen.lock().unwrap();
        let screen = parser.screen();
        let changed = [
            (screen.alternate_screen(), "the alternate screen is shown"),
            (screen.hide_cursor(), "the cursor is hidden"),
            (screen.bracketed_paste(), "pasted text is marked"),
            (modes != self.modes, "keys are not handled as before"),
        ];
        let changed = changed.into_iter().filter(|(is, _)| *is);
        Left {
            status: status.unwrap(),
            raw,
            changed: changed.map(|(_, what)| what).collect(),
        }
    }
}

fn parser(columns: u16, rows: u16) -> vt100::Parser {
    let [rows, columns] = [rows, columns].map(|n| NonZero::new(n).unwrap());
    vt100::Parser::new(rows, columns, 0)
}
