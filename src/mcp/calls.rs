//! Calls: each runs a command, when its turn comes.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};

use super::line::Line;
use super::schema::Fixed;
use crate::context::call::Call;
use crate::context::interruption::Interruption;
use crate::failure::{ErrorCode, Failure};
use crate::output::Output;

/// How many calls may wait for others at a time.
const WAITING: u32 = 16;

/// Whose turn it is: one call at a time, in the order in which they came; those that
/// wait for others do so beside them.
#[derive(Clone)]
pub(super) struct Turns {
    one: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Turns {
    fn new() -> Self {
        Self {
            one: Arc::new(Semaphore::new(1)),
            waiting: Arc::new(Semaphore::new(WAITING as usize)),
        }
    }

    /// Returns when no call runs any more.
    pub(super) async fn all_over(&self) {
        // Nobody closes them, so both come.
        let _one = self.one.acquire().await;
        let _all = self.waiting.acquire_many(WAITING).await;
    }
}

/// What runs the commands of one connection.
pub(super) struct Calls {
    fixed: Fixed,
    turns: Turns,
    gone: watch::Receiver<bool>,
}

impl Calls {
    /// For a connection that tells when it is over, and whose turn it is there.
    pub(super) fn new(fixed: Fixed, gone: watch::Receiver<bool>) -> (Self, Turns) {
        let turns = Turns::new();
        let calls = Self {
            fixed,
            turns: turns.clone(),
            gone,
        };
        (calls, turns)
    }

    /// What the server was started with.
    pub(super) fn fixed(&self) -> &Fixed {
        &self.fixed
    }

    /// Runs a command when its turn comes, and returns its document.
    ///
    /// # Errors
    /// An error of the protocol where nobody waits for it any more.
    pub(super) async fn run(
        &self,
        line: Line,
        waits: bool,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let turns = if waits {
            &self.turns.waiting
        } else {
            &self.turns.one
        };
        let over = || ErrorData::internal_error("nobody waits for this any more", None);
        let _turn = tokio::select! {
            biased;
            () = context.ct.cancelled() => return Err(over()),
            turn = turns.acquire() => turn.map_err(|_| over())?,
        };
        let interruption = Interruption::default();
        let call = Call::new(line.input, interruption.clone());
        let mut work = Box::pin(performed(move || crate::document(&line.arguments, call)));
        let mut gone = self.gone.clone();
        let gone = async { drop(gone.wait_for(|gone| *gone).await) };
        let done = tokio::select! {
            bytes = &mut work => Some(bytes),
            () = context.ct.cancelled() => None,
            () = gone => None,
        };
        let bytes = match done {
            Some(bytes) => bytes,
            // A step that was begun is brought to its end: only waits end early.
            None => {
                interruption.ask();
                work.await
            }
        };
        let document = serde_json::from_slice(&bytes);
        document.map_err(|error| {
            ErrorData::internal_error(
                format!("the command's answer is no document: {error}"),
                None,
            )
        })
    }

    /// The document of a command that reads, for a resource.
    ///
    /// # Errors
    /// An error of the protocol where nobody waits for it any more.
    pub(super) async fn read(
        &self,
        words: &[&str],
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let Fixed { agent, branch } = &self.fixed;
        let line = Line::new(words, agent.as_deref(), branch.as_deref());
        self.run(line, false, context).await
    }
}

/// What a command prints, which runs on a thread of its own. One that panics took
/// nothing with it but its answer.
async fn performed(work: impl FnOnce() -> Vec<u8> + Send + 'static) -> Vec<u8> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| {
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
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.unwrap_or_else(|error| panic!("{error}"));
        let told = runtime.block_on(performed(|| panic!("on purpose")));
        let document: Value = serde_json::from_slice(&told).unwrap_or_default();
        assert_eq!(document["ok"], false);
        assert_eq!(document["error"]["code"], "panicked");
        let after = runtime.block_on(performed(|| b"{}".to_vec()));
        assert_eq!(after, b"{}", "and the next call is answered");
    }
}
