//! What is answered to each request.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};

use super::calls::Calls;
use super::line::Line;
use super::{resources, schema, verbs};
use crate::output::Output;

/// What a client tells its model of the server.
const INSTRUCTIONS: &str = "A ledger of handoffs between agents, kept in Git. Begin with prime: who \
you are, what waits, what to do. Your turn: claim (prints the contract and what to do), work, new (a contract's skeleton), fill it in, check, \
send. `as` names the agent that you are; never act as another. Every answer is one document: \
with ok false, error.hint is the next safe step, \
and explain says more of a code.";

/// The server.
pub(super) struct Server {
    calls: Calls,
    tools: Vec<Tool>,
}

impl Server {
    /// A server of what these calls can do.
    pub(super) fn new(calls: Calls) -> Self {
        Self {
            tools: schema::tools(calls.fixed()),
            calls,
        }
    }
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
        let document = match Line::of_call(verb, &given, self.calls.fixed()) {
            Ok(line) => self.calls.run(line, verb.waits(), &context).await?,
            Err(failure) => {
                serde_json::from_slice(&Output::of_failure(&failure)).unwrap_or_default()
            }
        };
        let text = vec![ContentBlock::text(document.to_string())];
        let mut result = if document["ok"] == true {
            CallToolResult::success(text)
        } else {
            CallToolResult::error(text)
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
        resources::list(&self.calls, cursor.as_deref(), &context).await
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
        let found = resources::read(&self.calls, &request.uri, &context).await?;
        Ok(found.into())
    }
}
