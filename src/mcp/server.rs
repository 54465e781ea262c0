//! What is answered to each request.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::{Semaphore, watch};

use super::line::Line;
use super::{Fixed, resources, schema, verbs};
use crate::call::Call;
use crate::exit;
use crate::failure::Failure;
use crate::interruption::Interruption;
use crate::output::Output;

/// What a client tells its model of the server.
const INSTRUCTIONS: &str = "A ledger of handoffs between agents, kept in Git. Begin with prime: who \
you are, what waits, what to do. Your turn: claim (prints the contract and what to do), work, new (a contract's skeleton), fill it in, check, \
send. `as` names the agent that you are; never act as another. Every answer is one document: \
with ok false, error.hint is the next safe step, \
and explain says more of a code.";

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

/// The server.
pub(super) struct Server {
    fixed: Fixed,
    tools: Vec<Tool>,
    turns: Turns,
    gone: watch::Receiver<bool>,
}

impl Server {
    /// A server for a connection that tells when it is over, and whose turn it is there.
    pub(super) fn new(fixed: Fixed, gone: watch::Receiver<bool>) -> (Self, Turns) {
        let turns = Turns::new();
        let server = Self {
            tools: schema::tools(&fixed),
            fixed,
            turns: turns.clone(),
            gone,
        };
        (server, turns)
    }

    /// Runs a command when its turn comes, and returns its document.
    ///
    /// # Errors
    /// An error of the protocol where nobody waits for it any more.
    async fn run(
        &self,
        line: Line,
        waits: bool,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let turns = match waits {
            true => &self.turns.waiting,
            false => &self.turns.one,
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
        let failure = Failure::new(exit::ENVIRONMENT, "panicked", text).hint(
            "a step is recorded whole or not at all: see `git handoff log`, and report what the server's standard error says",
        );
        said(&failure)
    })
}

/// The document of a failure.
pub(super) fn said(failure: &Failure) -> Vec<u8> {
    let mut output = Output::kept();
    output.fail(failure);
    output.into_kept()
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        let own = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .with_title("Handoffs between agents");
        ServerConfig::new(capabilities)
            .with_server_info(own)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(verb) = verbs::named(&request.name) else {
            let text = format!("unknown tool: {}", request.name);
            return Err(ErrorData::invalid_params(text, None));
        };
        let given = request.arguments.unwrap_or_default();
        let document = match Line::of_call(verb, &given, &self.fixed) {
            Ok(line) => self.run(line, verb.waits(), &context).await?,
            Err(failure) => serde_json::from_slice(&said(&failure)).unwrap_or_default(),
        };
        let text = vec![ContentBlock::text(document.to_string())];
        let mut result = match document["ok"] == true {
            true => CallToolResult::success(text),
            false => CallToolResult::error(text),
        };
        result.structured_content = Some(document);
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        resources::list(self, cursor.as_deref(), &context).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let found = resources::read(self, &request.uri, &context).await?;
        Ok(found.into())
    }
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
