//! Calls: each runs a command, when its turn comes.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::thread;

use serde_json::Value;

use super::Event;
use super::line::Line;
use super::message::{Answer, INTERNAL, error};
use super::usage;
use super::wording::Wording;
use handoff_cli::context::call::Call;
use handoff_cli::context::interruption::Interruption;
use handoff_cli::failure::{ErrorCode, Failure};
use handoff_cli::output::{Kept, Output};

/// The stack of a thread that runs a command: as much as a process has.
const STACK: usize = 8 * 1024 * 1024;

/// How many calls may run at a time: those that do not wait for other agents, and those that do.
const MOST: [usize; 2] = [1, 16];

/// Who gets the answer of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Recipient {
    /// The request with this id.
    Request(Value),
    /// The task with this id.
    Task(String),
}

pub(super) type Work = Box<dyn FnOnce(&Interruption) -> Answer + Send>;

/// Runs the commands of a connection in order: one at a time, and in parallel those that wait for
/// other agents.
pub(super) struct Calls {
    events: Sender<Event>,
    running: [usize; 2],
    queued: [VecDeque<(u64, Work)>; 2],
    /// How many calls were received.
    count: u64,
    /// By their numbers, who gets the answers of those that are still wanted, and their
    /// interruptions.
    open: BTreeMap<u64, (Recipient, Interruption)>,
}

impl Calls {
    pub(super) fn new(events: Sender<Event>) -> Self {
        Self {
            events,
            running: [0; 2],
            queued: Default::default(),
            count: 0,
            open: BTreeMap::new(),
        }
    }

    /// Runs a call when its turn comes, then sends an event with its answer.
    pub(super) fn add(&mut self, recipient: Recipient, waits: bool, work: Work) {
        self.count += 1;
        let open = (recipient, Interruption::default());
        self.open.insert(self.count, open);
        self.queued[usize::from(waits)].push_back((self.count, work));
        self.start(waits);
    }

    /// Ends a call's turn. Returns who gets its answer, if it is still wanted.
    pub(super) fn finish(&mut self, number: u64, waits: bool) -> Option<Recipient> {
        self.running[usize::from(waits)] -= 1;
        self.start(waits);
        self.open.remove(&number).map(|(recipient, _)| recipient)
    }

    /// Cancels these calls: none is started, and waits end. A step that was started is
    /// completed.
    pub(super) fn cancel(&mut self, cancelled: &Recipient) {
        let is_it =
            |_: &u64, (recipient, _): &mut (Recipient, Interruption)| recipient == cancelled;
        for (_, (_, interruption)) in self.open.extract_if(.., is_it) {
            interruption.ask();
        }
    }

    /// Ends every wait.
    pub(super) fn end_waits(&self) {
        for (_, interruption) in self.open.values() {
            interruption.ask();
        }
    }

    /// Whether no call runs; then none is queued either.
    pub(super) fn is_idle(&self) -> bool {
        self.running == [0; 2]
    }

    /// Starts the calls whose turn it is, each on a thread of its own.
    fn start(&mut self, waits: bool) {
        let lane = usize::from(waits);
        while self.running[lane] < MOST[lane]
            && let Some((number, work)) = self.queued[lane].pop_front()
        {
            let Some((_, interruption)) = self.open.get(&number) else {
                continue;
            };
            let interruption = interruption.clone();
            let events = self.events.clone();
            let finish = move |answer| drop(events.send(Event::Finished(number, waits, answer)));
            let fail = finish.clone();
            self.running[lane] += 1;
            let thread = thread::Builder::new().stack_size(STACK);
            if let Err(problem) = thread.spawn(move || finish(work(&interruption))) {
                let text = format!("the system gives no thread: {problem}");
                fail(Err(error(INTERNAL, text)));
            }
        }
    }
}

/// Runs a command, and returns its document.
///
/// # Errors
/// An error of the protocol if the document is invalid.
pub(super) fn run(line: Line, wording: &Wording<'_>, interruption: &Interruption) -> Answer {
    let call = Call::new(line.input, interruption.clone());
    let misused = |error: &_| usage::misused(wording.verb?, error, &line.arguments);
    let (bytes, hint) = performed(|| (crate::commands().run)(&line.arguments, call, &misused));
    let document = serde_json::from_slice(&bytes).map_err(|problem| {
        let text = format!("the command's answer is no document: {problem}");
        error(INTERNAL, text)
    })?;
    Ok(wording.told(document, hint))
}

pub(super) fn document(failure: &Failure, wording: &Wording<'_>) -> Value {
    let (bytes, hint) = Output::of_failure(failure);
    let document = serde_json::from_slice(&bytes).unwrap_or_default();
    wording.told(document, hint)
}

/// The output of a command. A panic loses only its answer.
fn performed(work: impl FnOnce() -> Kept) -> Kept {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let text = "the command met a fault of the program, and gave up";
        let failure = Failure::new(ErrorCode::Panicked, text).hint(
            "a step is recorded whole or not at all: see `git handoff log`, and report what the server's standard error says",
        );
        Output::of_failure(&failure)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::performed;

    #[test]
    fn a_panic_is_an_answer() {
        let answer = performed(|| panic!("on purpose"));
        let document: Value = serde_json::from_slice(&answer.0).unwrap_or_default();
        assert_eq!(document["ok"], false);
        assert_eq!(document["error"]["code"], "panicked");
        let after = performed(|| (b"{}".to_vec(), None));
        assert_eq!(after.0, b"{}", "and the next call is answered");
    }
}
