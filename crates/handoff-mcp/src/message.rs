//! Parses a line into a request, or into the error to answer.

use handoff::contract::scan::{Seen, walk};
use serde_json::{Map, Value, json};

pub(super) type Object = Map<String, Value>;

/// A result or a JSON-RPC error.
pub(super) type Answer = Result<Value, Value>;

pub(super) const INVALID_REQUEST: i32 = -32600;
pub(super) const NO_METHOD: i32 = -32601;
pub(super) const INVALID_PARAMS: i32 = -32602;
pub(super) const INTERNAL: i32 = -32603;
pub(super) const NO_RESOURCE: i32 = -32002;
pub(super) const NO_CAPABILITY: i32 = -32021;
pub(super) const NO_VERSION: i32 = -32022;

/// A request or, without an id, a notification.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: Option<Value>,
    pub(super) method: String,
    /// An object, or null.
    pub(super) params: Value,
}

/// Parses a line. `None` if it gets no answer: it is not JSON, a response, or an invalid
/// notification.
///
/// # Errors
/// The error to answer if the line is JSON but not a valid message.
pub(super) fn message(line: &[u8]) -> Result<Option<Message>, Value> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let text = std::str::from_utf8(line).unwrap_or_default();
    let Ok(mut value) = serde_json::from_str::<Value>(text) else {
        return Ok(None);
    };
    let mut is_ambiguous = false;
    walk(text, &mut |_, _, seen| {
        is_ambiguous |= matches!(seen, Seen::Key { again: true, .. });
    });
    let method = value["method"].as_str().map(str::to_owned);
    let has = |name| value.get(name).is_some();
    let id = value.get("id").and_then(identity);
    let invalid = |text| error(INVALID_REQUEST, text);
    let params = &value["params"];
    let may_be_object = |value: &Value| value.is_object() || value.is_null();
    let error = match &method {
        _ if !value.is_object() => invalid("a message is an object"),
        // Ignore responses: this side makes no requests.
        None if has("result") || has("error") => return Ok(None),
        _ if value["jsonrpc"] != "2.0" => invalid("`jsonrpc` is not \"2.0\""),
        None => invalid("there is no `method`, a text"),
        Some(_) if has("id") && id.is_none() => {
            invalid("`id` is neither a text nor a whole number")
        }
        Some(method) if !may_be_object(params) => misused(method, "`params` is not an object"),
        Some(_) if !may_be_object(&params["_meta"]) => invalid("`_meta` is no object"),
        Some(_) if is_ambiguous => invalid("a member is given twice"),
        Some(_) => {
            let params = value["params"].take();
            return Ok(method.map(|method| Message { id, method, params }));
        }
    };
    // A notification is never answered.
    if method.is_some() && !has("id") {
        return Ok(None);
    }
    Err(response(id, Err(error)))
}

/// A request's id: a string or an integer.
pub(super) fn identity(id: &Value) -> Option<Value> {
    // Some clients write all numbers with a fraction; from 2^53 on, those are ambiguous.
    let is_exact = |number: &f64| number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
    let number = id.as_f64().filter(is_exact).map(|number| number as i64);
    let number = id.as_i64().or(number).map(Value::from);
    number.or_else(|| id.as_str().map(Value::from))
}

pub(super) fn error(code: i32, message: impl Into<String>) -> Value {
    json!({ "code": code, "message": message.into() })
}

/// The error for invalid parameters.
pub(super) fn misused(method: &str, detail: &str) -> Value {
    let needs = match method {
        "initialize" => {
            "needs `protocolVersion`, a text, `capabilities`, an object, and `clientInfo`, an object with `name` and `version`"
        }
        "ping" => "needs nothing",
        "resources/list" | "resources/templates/list" | "tasks/list" | "tools/list" => {
            "may have `cursor`, a text"
        }
        "resources/read" => "needs `uri`, a text",
        "tasks/cancel" | "tasks/get" | "tasks/result" | "tasks/update" => "needs `taskId`, a text",
        "server/discover" => "needs nothing but `_meta`, an object",
        "tools/call" => "needs `name`, a text, and may have `arguments` and `task`, objects",
        _ => return error(INVALID_PARAMS, detail),
    };
    error(INVALID_PARAMS, format!("{detail}: {method} {needs}"))
}

/// The response to a request, whose id may be unknown.
pub(super) fn response(id: Option<Value>, answer: Answer) -> Value {
    let mut message = json!({ "jsonrpc": "2.0" });
    if let Some(id) = id {
        message["id"] = id;
    }
    match answer {
        Ok(result) => message["result"] = result,
        Err(error) => message["error"] = error,
    }
    message
}
