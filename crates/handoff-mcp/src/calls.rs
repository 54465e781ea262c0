//! Runs the commands of calls in turn.

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

/// The stack size of a command's thread: like a main thread's.
const STACK: usize = 8 * 1024 * 1024;

/// The maximum number of parallel calls: ordinary ones, and ones that wait for other agents.
const MOST: [usize; 2] = [1, 16];

/// The recipient of a call's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Recipient {
    /// The request with this id.
    Request(Value),
    /// The task with this id.
    Task(String),
}

pub(super) type Work = Box<dyn FnOnce(&Interruption) -> Answer + Send>;

/// Runs a connection's commands in order, one at a time; those that wait for other agents run in
/// parallel.
pub(super) struct Calls {
    events: Sender<Event>,
    running: [usize; 2],
    queued: [VecDeque<(u64, Work)>; 2],
    /// The number of calls received.
    count: u64,
    /// By number: each unfinished call's recipient, and the flag that interrupts it. A cancelled
    /// call is removed.
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

    /// Queues a call; its answer is sent as an event.
    pub(super) fn add(&mut self, recipient: Recipient, waits: bool, work: Work) {
        self.count += 1;
        let open = (recipient, Interruption::default());
        self.open.insert(self.count, open);
        self.queued[usize::from(waits)].push_back((self.count, work));
        self.start(waits);
    }

    /// Frees a call's slot. Returns the recipient of its answer, unless it was cancelled.
    pub(super) fn finish(&mut self, number: u64, waits: bool) -> Option<Recipient> {
        self.running[usize::from(waits)] -= 1;
        self.start(waits);
        self.open.remove(&number).map(|(recipient, _)| recipient)
    }

    /// Cancels the calls of a recipient: queued ones are dropped, and waits end. A step in progress
    /// is completed.
    pub(super) fn cancel(&mut self, cancelled: &Recipient) {
        let is_it =
            |_: &u64, (recipient, _): &mut (Recipient, Interruption)| recipient == cancelled;
        for (_, (_, interruption)) in self.open.extract_if(.., is_it) {
            interruption.ask();
        }
    }

    /// Interrupts all waits.
    pub(super) fn end_waits(&self) {
        for (_, interruption) in self.open.values() {
            interruption.ask();
        }
    }

    /// Whether no call runs; then the queues are empty, too.
    pub(super) fn is_idle(&self) -> bool {
        self.running == [0; 2]
    }

    /// Starts queued calls whose turn it is, each on its own thread.
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
        let text = format!("the command's answer is not a JSON document: {problem}");
        error(INTERNAL, text)
    })?;
    Ok(wording.told(document, hint))
}

pub(super) fn document(failure: &Failure, wording: &Wording<'_>) -> Value {
    let (bytes, hint) = Output::of_failure(failure);
    let document = serde_json::from_slice(&bytes).unwrap_or_default();
    wording.told(document, hint)
}

/// A command's output. A panic only fails this call.
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
