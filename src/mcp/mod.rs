//! The server of the Model Context Protocol: verbs are tools, the ledger is
//! resources.
//!
//! `verbs` says which commands are tools, `schema` derives a tool from what clap
//! knows of its command, `line` makes a command line of a call's arguments, `calls` runs it
//! when its turn comes, `resources` names what can be read, `server` answers each request,
//! `wire` is the connection, of `lines` that are each a `message`. A call runs the very code
//! that the command line runs, within this process, and its answer is the document that
//! `--json` prints.

mod calls;
mod line;
mod lines;
mod message;
mod resources;
mod schema;
mod server;
mod verbs;
mod wire;

pub(crate) use schema::Fixed;

use std::sync::atomic::Ordering;

use calls::Calls;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use server::Server;
use tokio::sync::watch;
use wire::Wire;

use crate::context::interruption::Interruption;
use crate::failure::{ErrorCode, Failure};

/// The stack of a thread that runs a command: as much as a process has.
const STACK: usize = 8 * 1024 * 1024;

/// Serves until the input ends, nobody reads the output, or a signal comes.
///
/// # Errors
/// A [`Failure`] of the environment where the system gives no threads or no pipes.
pub(crate) fn serve(fixed: Fixed) -> Result<(), Failure> {
    let failed = |what: String| Failure::new(ErrorCode::McpFailed, what);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_stack_size(STACK)
        .build()
        .map_err(|error| failed(format!("the server cannot be started: {error}")))?;
    let (gone, is_gone) = watch::channel(false);
    // A wait may have a git that asks a remote: it must not be left behind.
    let asked = gone.clone();
    let interruption = Interruption::catch(move || {
        asked.send_replace(true);
    })
    .map_err(|error| failed(format!("signals cannot be caught: {error}")))?;
    let served = runtime.block_on(async {
        let (reader, writer) = rmcp::transport::io::stdio_pipes();
        // The library reads nothing: it would keep silent of what it can't take.
        let output = AsyncRwTransport::new_server(tokio::io::empty(), writer);
        let wire = Wire::new(reader, output, gone);
        let (calls, turns) = Calls::new(fixed, is_gone.clone());
        let served = match Server::new(calls).serve(wire).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|e| e.to_string()),
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            // Nobody read the first answers.
            Err(_) if *is_gone.borrow() => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        // What was begun is brought to its end, whether or not anyone hears of it.
        turns.all_over().await;
        served
    });
    // Nothing is left that runs but a read of the input, which may never return.
    runtime.shutdown_background();
    if interruption.requested().load(Ordering::SeqCst) {
        interruption.pass_on();
    }
    served.map_err(|error| {
        failed(format!("the connection broke: {error}"))
            .hint("see that the harness speaks the Model Context Protocol, and start it again")
    })
}
