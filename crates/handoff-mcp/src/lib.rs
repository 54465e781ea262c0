//! A Model Context Protocol server whose tools are commands and whose resources are the ledger.
//!
//! `verbs` lists the tools, `schema` derives a tool's schema from its command's clap definition,
//! `line` builds a command line from a call's arguments, `calls` runs it, `usage` and `wording`
//! express errors and next steps in terms of tools, `tasks` stores answers that a client fetches
//! later, `resources` lists what can be read, `server` answers requests, which `message` parses
//! from the input's `lines`. A call runs the same code as the command line, in this process; its
//! answer is the document that `--json` prints.

mod calls;
mod line;
mod lines;
mod message;
mod resources;
mod schema;
mod server;
mod tasks;
mod usage;
#[doc(hidden)]
pub mod verbs;
mod wording;

pub use schema::Fixed;
pub use verbs::ToolSet;

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use lines::{LONGEST, Line, Lines};
use message::{Answer, Message, Object, message};
use serde_json::Value;
use server::Server;

use handoff_cli::context::call::Commands;
use handoff_cli::context::interruption::Interruption;
use handoff_cli::failure::{ErrorCode, Failure};

/// How long the last answers may take to be written after a signal.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

enum Event {
    Line(Line),
    /// A call's number, whether it waited for other agents, and its answer.
    Finished(u64, bool, Answer),
    /// The input ended, or a signal arrived.
    Over,
    /// All answers are written, or the output is closed.
    Written,
}

/// A parsed line of input.
pub enum McpLine {
    /// A request or, without an id, a notification.
    Request {
        /// Its id.
        id: Option<Value>,
        /// Its method.
        method: String,
        /// Its parameters: an object, or null.
        params: Value,
    },
    /// Invalid: answered with this error.
    Refused(Value),
    /// Neither a request nor a notification.
    Ignored,
    /// Over the limit; with its request's id, if known.
    TooLong(Option<Value>),
}

/// Splits an input into lines as the server does.
pub fn mcp_lines(input: &[u8], longest: usize) -> Vec<McpLine> {
    let lines = Lines::new(input, longest).map(|line| match line {
        Line::TooLong(id) => McpLine::TooLong(id),
        Line::Whole(line) => match message(&line) {
            Ok(Some(Message { id, method, params })) => McpLine::Request { id, method, params },
            Ok(None) => McpLine::Ignored,
            Err(answer) => McpLine::Refused(answer),
        },
    });
    lines.collect()
}

/// The commands that are tools: set once per process.
static COMMANDS: OnceLock<Commands> = OnceLock::new();

fn commands() -> &'static Commands {
    COMMANDS.get().expect("whoever calls this crate gives them")
}

/// The arguments of the command that a call of a tool runs.
///
/// # Errors
/// Why it is refused, or that there is no such tool.
pub fn command(
    commands: Commands,
    tool: &str,
    arguments: &Object,
) -> Result<Vec<OsString>, String> {
    COMMANDS.get_or_init(|| commands);
    let verb = verbs::named(tool, ToolSet::All)?;
    let line = line::Line::of_call(verb, arguments, &Fixed::default());
    line.map(|line| line.arguments)
        .map_err(|failure| failure.message)
}

/// Serves until the input ends, the output is closed, or a signal comes.
///
/// # Errors
/// A [`Failure`] of the environment if the system gives no threads.
pub fn serve(commands: Commands, fixed: Fixed) -> Result<(), Failure> {
    COMMANDS.get_or_init(|| commands);
    let failed = |error: io::Error| {
        let text = format!("the server cannot be started: {error}");
        Failure::new(ErrorCode::McpFailed, text)
    };
    let (events, received) = mpsc::channel();
    // A wait may have started a git process to poll a remote: end it, too, on a signal.
    let signalled = events.clone();
    let interruption = Interruption::catch(move || drop(signalled.send(Event::Over)));
    let interruption = interruption.map_err(failed)?;
    let read = events.clone();
    let reader = move || {
        for line in Lines::new(io::stdin().lock(), LONGEST) {
            drop(read.send(Event::Line(line)));
        }
        drop(read.send(Event::Over));
    };
    thread::Builder::new().spawn(reader).map_err(failed)?;
    let (output, answers) = mpsc::channel();
    let written = events.clone();
    // A separate thread: reading must not wait for a client that does not read its answers.
    let writer = move || {
        // An error means that the output is closed.
        drop(write(&answers));
        drop(written.send(Event::Written));
    };
    thread::Builder::new().spawn(writer).map_err(failed)?;
    let mut output = Some(output);
    let mut server = Server::new(fixed, events);
    let (mut is_over, mut is_written) = (false, false);
    let mut patience = Duration::MAX;
    while !(is_over && is_written && server.calls.is_idle()) {
        let Ok(event) = received.recv_timeout(patience) else {
            break;
        };
        let answer = match event {
            Event::Line(_) if is_over => None,
            Event::Line(line) => server.answer(line),
            Event::Finished(number, waits, answer) => server.finish(number, waits, answer),
            Event::Over | Event::Written => {
                is_written |= matches!(event, Event::Written);
                is_over = true;
                server.calls.end_waits();
                None
            }
        };
        for answer in answer.into_iter().chain(server.answers.drain(..)) {
            if let Some(output) = &output {
                drop(output.send(answer));
            }
        }
        // A step in progress is completed, even if its answer can't be delivered.
        if is_over && server.calls.is_idle() {
            output = None;
            if interruption.requested().load(Ordering::SeqCst) {
                patience = LAST_ANSWERS;
            }
        }
    }
    if interruption.requested().load(Ordering::SeqCst) {
        interruption.pass_on();
    }
    Ok(())
}

/// Writes answers, one per line, until the channel closes.
fn write(answers: &Receiver<Value>) -> io::Result<()> {
    let mut output = io::stdout().lock();
    for answer in answers {
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        output.write_all(&line)?;
        output.flush()?;
    }
    Ok(())
}
