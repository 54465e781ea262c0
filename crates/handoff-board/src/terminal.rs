//! Sets up the terminal, and restores it at the end, after a panic, and after a signal.

use std::io::{self, Stdout, stdout};
use std::panic;
use std::sync::mpsc::Sender;
use std::thread;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::Message;

/// The terminal in the board's mode.
pub(super) struct Held {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Held {
    /// Sets up the terminal. From now on, keys and panics are sent as messages.
    pub(super) fn take(to: &Sender<Message>) -> io::Result<Self> {
        let usual = panic::take_hook();
        let panicked = to.clone();
        panic::set_hook(Box::new(move |info| {
            leave();
            usual(info);
            // If nobody receives, the program ends anyway.
            let _ = panicked.send(Message::Panicked);
        }));
        enable_raw_mode()?;
        let taken = execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste);
        let terminal = taken.and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        let held = Self {
            terminal: terminal.inspect_err(|_| leave())?,
        };
        let keys = to.clone();
        thread::spawn(move || {
            while let Ok(event) = event::read() {
                if keys.send(Message::Event(event)).is_err() {
                    return;
                }
            }
            let _ = keys.send(Message::Ended);
        });
        Ok(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        leave();
    }
}

/// Restores the terminal. If it was closed, there is nothing to restore, and errors are ignored.
fn leave() {
    let _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
