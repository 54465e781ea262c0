//! What a line says: a message, or what is wrong with it and whom to tell.

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, ErrorData, RequestId};
use rmcp::service::RxJsonRpcMessage;
use serde_json::Value;

type Message = RxJsonRpcMessage<RoleServer>;

/// What a request is told that can't be taken.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) id: Option<RequestId>,
    pub(super) error: ErrorData,
}

/// The methods that there are, and what each has to be told.
const METHODS: &[(&str, &str)] = &[
    (
        "initialize",
        "needs `protocolVersion`, a text, `capabilities`, an object, and `clientInfo`, an object with `name` and `version`",
    ),
    (
        "tools/call",
        "needs `name`, a text, and may have `arguments`, an object",
    ),
    ("resources/read", "needs `uri`, a text"),
    ("tools/list", "may have `cursor`, a text"),
    ("resources/list", "may have `cursor`, a text"),
    ("resources/templates/list", "may have `cursor`, a text"),
    ("server/discover", "needs nothing but `_meta`, an object"),
    ("ping", "needs nothing"),
];

/// The message in a line. None where there is none, or nobody could tell what an answer
/// to it answers.
///
/// # Errors
/// What to answer where it is JSON and no message, or its parameters are wrong.
pub(super) fn message(line: &[u8]) -> Result<Option<Message>, Box<Refused>> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    match serde_json::from_slice(line) {
        Ok(Message::Request(request)) => {
            // The library takes a request that it does not know for a custom method.
            if let ClientRequest::CustomRequest(custom) = &request.request
                && let Some(error) = misused(&custom.method, "the params are wrong")
            {
                let id = Some(request.id);
                return Err(Box::new(Refused { id, error }));
            }
            Ok(Some(Message::Request(request)))
        }
        Ok(message) => Ok(Some(message)),
        Err(_) => match serde_json::from_slice(line) {
            Ok(value) => fault(&value).map_or(Ok(None), |refused| Err(Box::new(refused))),
            Err(_) => Ok(None),
        },
    }
}

/// The error of a method of those that there are, whose parameters are wrong.
fn misused(method: &str, what: &str) -> Option<ErrorData> {
    let (_, needs) = METHODS.iter().find(|(name, _)| *name == method)?;
    let text = format!("{what}: {method} {needs}");
    Some(ErrorData::invalid_params(text, None))
}

/// What is wrong with JSON that is no message; nothing is said of a notification.
fn fault(value: &Value) -> Option<Refused> {
    let said = |name| value.get(name);
    let method = said("method").and_then(Value::as_str);
    if method.is_some() && said("id").is_none() {
        return None;
    }
    // The id of an answer is one that this side gave.
    let is_answer = said("result").is_some() || said("error").is_some();
    let id = said("id").filter(|_| !is_answer);
    let id = id.and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    let text = match method {
        _ if !value.is_object() => "a message is an object",
        _ if said("jsonrpc").and_then(Value::as_str) != Some("2.0") => "`jsonrpc` is not \"2.0\"",
        None => "there is no `method`, a text",
        Some(_) if id.is_none() => "`id` is neither a text nor a whole number",
        Some(method) if said("params").is_some_and(|params| !params.is_object()) => {
            let text = "the params are no object";
            let error = misused(method, text);
            let error = error.unwrap_or_else(|| ErrorData::invalid_params(text, None));
            return Some(Refused { id, error });
        }
        Some(_) => "that is no request",
    };
    let error = ErrorData::invalid_request(text, None);
    Some(Refused { id, error })
}
