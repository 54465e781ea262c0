//! Internals for tests: parsers of foreign bytes for fuzzing, and the values that a trial
//! generates. Not an interface of this program.

use std::ffi::OsString;

use serde_json::{Map, Value};

pub use handoff_mcp::{McpLine, mcp_lines};

/// Generated values for a place of a schema, the likeliest first.
pub fn values(schema: &Value, pointer: &str) -> Vec<Value> {
    handoff_trial::values(schema, pointer)
}

/// The path of an HTTP request, and whether the body is wanted too.
///
/// # Errors
/// The status line that refuses it.
pub fn http_request(head: &[u8], port: u16) -> Result<(String, bool), &'static str> {
    handoff_http::server::asked(head, port)
}

/// The command-line arguments for a tool call.
///
/// # Errors
/// Why it is refused, or that there is no such tool.
pub fn mcp_command(tool: &str, arguments: &Map<String, Value>) -> Result<Vec<OsString>, String> {
    handoff_mcp::command(crate::commands::mcp::COMMANDS, tool, arguments)
}
