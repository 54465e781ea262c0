//! Readers of foreign bytes, for the proofs that fuzz them: no interface of this program.

use std::ffi::OsString;

use serde_json::{Map, Value};

pub use crate::mcp::{McpLine, mcp_lines};

/// The path that a request asks for, and whether it wants the body too.
///
/// # Errors
/// The status that refuses it.
pub fn http_request(head: &[u8], port: u16) -> Result<(String, bool), &'static str> {
    crate::http::server::asked(head, port)
}

/// The arguments of the command that a call of a tool runs.
///
/// # Errors
/// Why it is refused, or that there is no such tool.
pub fn mcp_command(tool: &str, arguments: &Map<String, Value>) -> Result<Vec<OsString>, String> {
    crate::mcp::command(tool, arguments)
}
