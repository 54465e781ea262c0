//! The board: a live view of the ledger on a terminal.
//!
//! `load` reads the ledger on its own thread, woken by changes of the branch, and produces the
//! `data`. `state` holds the view and selection, and handles keys; `draw` renders it. `detail`
//! reads one handoff, `actions` are the commands that decide about it, `edit` is a text input.
//! `terminal` sets up and restores the terminal. All threads send messages to one event loop, here.

mod actions;
mod data;
mod detail;
mod draw;
mod edit;
mod load;
#[cfg(test)]
mod samples;
mod state;
mod terminal;

use std::io::{IsTerminal, stdin, stdout};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{Event, KeyEventKind};
use ratatui::crossterm::style::force_color_output;

use self::actions::{Acting, Outcome};
use self::data::Board;
use self::detail::Detail;
use self::draw::Paint;
use self::load::Loader;
use self::state::{App, Effect};
use self::terminal::Held;
use handoff_cli::args::filter::Filter;
use handoff_cli::args::remote::PollArgs;
use handoff_cli::context::Context;
use handoff_cli::context::interruption::Interruption;
use handoff_cli::environment::now;
use handoff_cli::failure::{ErrorCode, Failure};
use handoff_cli::output::Output;
use handoff_cli::view::is_dumb;

/// The interval at which ages are redrawn.
const AGES: Duration = Duration::from_secs(10);

/// An event for the loop.
enum Message {
    /// A key, pasted text, or a resize.
    Event(Event),
    /// The ledger was read.
    Loaded(Board),
    /// Reading the ledger failed.
    Failed(String),
    /// A handoff was read.
    Detail(Box<Detail>),
    /// A command ended.
    Ran(Outcome),
    /// The terminal was closed, or a signal arrived.
    Ended,
    /// A thread panicked.
    Panicked,
}

/// Runs the board until it is closed.
///
/// # Errors
/// A [`Failure`] of usage without a terminal, and of the environment without a ledger.
pub fn run(
    context: &Context,
    looks: PollArgs,
    filter: &Filter,
    output: &Output,
) -> Result<(), Failure> {
    if output.is_json() || !stdin().is_terminal() || !stdout().is_terminal() || is_dumb() {
        let text = "the board needs a terminal that can move its cursor";
        return Err(Failure::usage(text).hint("`git handoff status` prints what is open"));
    }
    let repository = context.repository()?;
    let query = filter.query(&context.tip(&repository)?)?;
    if !looks.offline {
        context.remote(&repository)?;
    }
    let agent = context.agent(&repository)?;
    let (sender, messages) = mpsc::channel();
    let interruption = Interruption::catch({
        let sender = Mutex::new(sender.clone());
        move || {
            if let Ok(sender) = sender.lock() {
                let _ = sender.send(Message::Ended);
            }
        }
    });
    interruption.map_err(|error| {
        let text = format!("signals cannot be caught: {error}");
        Failure::new(ErrorCode::Signals, text)
    })?;
    let acting = Acting {
        agent: agent.as_ref().map(ToString::to_string),
        options: context.other_options(looks.offline),
    };
    let look = output.look(now()?);
    let paint = Paint {
        has_colors: output.has_colors(),
        look,
    };
    if paint.has_colors {
        // `--color always` overrides NO_COLOR.
        force_color_output(true);
    }
    let held = Held::take(&sender).map_err(|error| failed(&error))?;
    let from = (context.global(), query.clone());
    let loader = Loader::start(from, looks, agent, sender.clone());
    let shown = Shown {
        context,
        paint,
        sender,
        loader: &loader,
        app: App::new(acting, &query, look.now()),
    }
    .show(held, &messages);
    loader.stop();
    shown
}

fn failed(error: &std::io::Error) -> Failure {
    Failure::new(
        ErrorCode::Output,
        format!("the terminal cannot be used: {error}"),
    )
}

/// The board on the terminal.
struct Shown<'a> {
    context: &'a Context,
    paint: Paint,
    sender: Sender<Message>,
    loader: &'a Loader,
    app: App,
}

impl Shown<'_> {
    /// The event loop: draws and handles messages until the board is closed.
    fn show(mut self, mut held: Held, messages: &Receiver<Message>) -> Result<(), Failure> {
        loop {
            let (app, paint) = (&mut self.app, self.paint);
            let drawn = held.terminal.draw(|frame| draw::board(frame, app, paint));
            drawn.map_err(|error| failed(&error))?;
            let first = match messages.recv_timeout(AGES) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            self.app.now = now()?;
            self.paint.look = self.paint.look.at(self.app.now);
            for message in first.into_iter().chain(messages.try_iter()) {
                let effect = match message {
                    Message::Ended => return Ok(()),
                    Message::Panicked => {
                        drop(held);
                        let text = "the board ended, since a part of it panicked";
                        return Err(Failure::new(ErrorCode::Panicked, text));
                    }
                    message => self.take(message),
                };
                match effect {
                    Effect::Quit => return Ok(()),
                    Effect::Redraw => held.terminal.clear().map_err(|error| failed(&error))?,
                    effect => self.start(effect),
                }
            }
        }
    }

    fn take(&mut self, message: Message) -> Effect {
        let app = &mut self.app;
        match message {
            Message::Event(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                return app.key(key);
            }
            Message::Event(Event::Paste(text)) => app.paste(&text),
            Message::Loaded(board) => return app.load(board),
            Message::Failed(why) => app.fail(why),
            Message::Detail(detail) => app.looked(*detail),
            Message::Ran(outcome) => app.ran(outcome),
            Message::Event(_) | Message::Ended | Message::Panicked => {}
        }
        Effect::None
    }

    /// Starts slow work on its own thread.
    fn start(&self, effect: Effect) {
        let (to, look) = (self.sender.clone(), self.paint.look);
        let global = self.context.global();
        match effect {
            Effect::Open(id) => drop(thread::spawn(move || {
                let detail = Detail::read(global, id, look);
                // If nobody receives, the board is closed.
                let _ = to.send(Message::Detail(Box::new(detail)));
            })),
            Effect::Run(invocation) => drop(thread::spawn(move || {
                let _ = to.send(Message::Ran(invocation.run()));
            })),
            Effect::Filter(query) => self.loader.filter(query),
            Effect::None | Effect::Redraw | Effect::Quit => {}
        }
    }
}
