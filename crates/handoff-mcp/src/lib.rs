//! The server of the Model Context Protocol: commands are tools, the ledger is
//! resources.
//!
//! `verbs` lists the commands that are tools, `schema` derives a tool from its command's clap
//! definition, `line` makes a command line of a call's arguments, `calls` runs it when its turn
//! comes, `usage` and `wording` say in the words of tools what is wrong with a call and what comes
//! next, `tasks` keeps the answers that a client fetches later, `resources` lists what can be read, `server` answers each request, which `message`
//! reads from one of the input's `lines`. A call runs the same code as the command line, within
//! this process, and its answer is the document that `--json` prints.

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

/// How long the last answers wait for a client to read them after a signal.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

enum Event {
    Line(Line),
    /// The call of this number has this answer; it waited for other agents or not.
    Finished(u64, bool, Answer),
    /// The input ended, or a signal came.
    Over,
    /// All answers are written, or the output is closed.
    Written,
}

/// What a line of the input is.
pub enum McpLine {
    /// A request, or without an id a notification.
    Request {
        /// Its id.
        id: Option<Value>,
        /// Its method.
        method: String,
        /// Its parameters: an object, or null.
        params: Value,
    },
    /// Answered with this error.
    Refused(Value),
    /// Neither.
    Ignored,
    /// Longer than a line may be; its request's id, if that is known.
    TooLong(Option<Value>),
}

/// The lines of an input, as the server reads them.
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

/// The commands that are tools: there is one program in a process.
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
    // A wait may run a git process that polls a remote: it must not be left behind.
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
    // Reading continues while a client does not read its answers.
    let writer = move || {
        // If this fails, the output is closed.
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
        // A started step is completed, whether or not its answer is read.
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

/// Writes answers, one per line, until there are no more.
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
