//! What the proofs take from this program besides its commands: readers of foreign bytes, to fuzz
//! them, and the values that a trial makes up. No interface of this program.

use std::ffi::OsString;

use serde_json::{Map, Value};

pub use handoff_mcp::{McpLine, mcp_lines};

/// The values that are made up for a place of a schema, the likeliest first.
pub fn values(schema: &Value, pointer: &str) -> Vec<Value> {
    handoff_trial::values(schema, pointer)
}

/// The path that a request asks for, and whether it wants the body too.
///
/// # Errors
/// The status that refuses it.
pub fn http_request(head: &[u8], port: u16) -> Result<(String, bool), &'static str> {
    handoff_http::server::asked(head, port)
}

/// The arguments of the command that a call of a tool runs.
///
/// # Errors
/// Why it is refused, or that there is no such tool.
pub fn mcp_command(tool: &str, arguments: &Map<String, Value>) -> Result<Vec<OsString>, String> {
    handoff_mcp::command(crate::commands::mcp::COMMANDS, tool, arguments)
}
