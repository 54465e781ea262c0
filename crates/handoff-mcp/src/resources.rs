//! The ledger's resources and their URIs.

use std::collections::BTreeSet;

use handoff::base::text::quoted;
use serde_json::{Value, json};

use super::calls;
use super::line::Line;
use super::message::{Answer, INTERNAL, INVALID_PARAMS, NO_RESOURCE, error};
use super::schema::Fixed;
use super::wording::Wording;
use handoff_cli::context::interruption::Interruption;
use handoff_cli::failure::Failure;

/// The number of resources on a page of the list.
const PAGE: usize = 100;

const JSON: &str = "application/json";

/// A page of resources: the ledger, the protocols in force, and the issues with an open handoff.
/// Closed issues are readable by URI, too.
///
/// # Errors
/// An error of the protocol if the ledger can't be read, or the cursor is invalid.
pub(super) fn list(fixed: &Fixed, cursor: Option<&str>, interruption: &Interruption) -> Answer {
    let begin = match cursor.map(str::parse::<usize>) {
        None => 0,
        Some(Ok(begin)) => begin,
        Some(Err(_)) => return Err(error(INVALID_PARAMS, "the cursor is invalid")),
    };
    let status = data(run(fixed, &["status", "--limit", "0"], interruption)?)?;
    let protocols = data(run(fixed, &["protocol", "list"], interruption)?)?;
    let ledger = "What is open and needs attention";
    let mut all = vec![resource("uri", "ledger", "ledger", ledger)];
    for protocol in protocols["protocols"].as_array().into_iter().flatten() {
        if protocol["in_force"] == true
            && let Some(name) = protocol["name"].as_str()
        {
            let about = "A protocol: agents, routes, contracts";
            all.push(resource("uri", &format!("protocol/{name}"), name, about));
        }
    }
    let records = status["handoffs"].as_array().into_iter().flatten();
    let open: BTreeSet<&str> = records
        .filter_map(|record| record["id"].as_str()?.rsplit_once('.'))
        .map(|(issue, _)| issue)
        .collect();
    for issue in open {
        let about = "An issue in which a handoff is open";
        all.push(resource("uri", &format!("issue/{issue}"), issue, about));
    }
    let next = begin.saturating_add(PAGE);
    let is_last = next >= all.len();
    let page: Vec<Value> = all.into_iter().skip(begin).take(PAGE).collect();
    let mut result = json!({ "resources": page });
    if !is_last {
        result["nextCursor"] = next.to_string().into();
    }
    Ok(result)
}

fn resource(address: &str, path: &str, name: &str, description: &str) -> Value {
    let uri = format!("handoff://{path}");
    json!({ (address): uri, "name": name, "description": description, "mimeType": JSON })
}

/// The templates of URIs.
pub(super) fn templates() -> Value {
    let template = |path, name, description| resource("uriTemplate", path, name, description);
    json!({ "resourceTemplates": [
        template("issue/{key}", "issue", "An issue and all of its handoffs"),
        template("issue/{key}/context", "context", "Everything that an issue's contracts have accumulated"),
        template("handoff/{id}", "handoff", "A handoff: its record, its history, its contract"),
        {
            "uriTemplate": "handoff://handoff/{id}/contract",
            "name": "contract",
            "description": "A contract as it was sent",
        },
        template("protocol/{name}", "protocol", "A protocol: its agents, routes and contracts"),
    ] })
}

/// Reads the resource at a URI.
///
/// # Errors
/// An error of the protocol if it does not exist, with the command's own document.
pub(super) fn read(fixed: &Fixed, uri: &str, interruption: &Interruption) -> Answer {
    let path = uri.strip_prefix("handoff://").unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    let words: &[&str] = match parts[..] {
        ["ledger"] => &["status"],
        ["issue", key] => &["status", "--", key],
        ["issue", key, "context"] => &["context", "--", key],
        ["handoff", id] | ["handoff", id, "contract"] => &["show", "--", id],
        ["protocol", name] => &["protocol", "show", "--", name],
        _ => {
            let text = format!("there is no resource {}", quoted(uri));
            let failure = Failure::usage(text)
                .hint("its forms are those of resources/templates/list, and handoff://ledger");
            let mut error = refused(calls::document(&failure, &Wording::of_resource(fixed)));
            error["code"] = NO_RESOURCE.into();
            return Err(error);
        }
    };
    let document = run(fixed, words, interruption)?;
    let (format, text) = match parts[..] {
        ["handoff", _, "contract"] => {
            let shown = data(document)?;
            let format = match shown["record"]["contract"]["format"].as_str() {
                Some("xml") => "application/xml",
                Some("json") => JSON,
                _ => "text/markdown",
            };
            let text = shown["contract"]["text"].as_str().unwrap_or_default();
            (format, text.to_owned())
        }
        _ if document["ok"] == true => (JSON, document.to_string()),
        _ => return Err(refused(document)),
    };
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": format, "text": text }] }))
}

/// Runs a reading command and returns its document.
fn run(fixed: &Fixed, words: &[&str], interruption: &Interruption) -> Answer {
    let line = Line::new(words, fixed.agent.as_deref(), fixed);
    calls::run(line, &Wording::of_resource(fixed), interruption)
}

/// A document as text.
fn data(mut document: Value) -> Answer {
    if document["ok"] == true {
        Ok(document["data"].take())
    } else {
        Err(refused(document))
    }
}

/// The JSON-RPC error for a failed command.
fn refused(document: Value) -> Value {
    let failure = &document["error"];
    let code = match failure["code"].as_str() {
        Some("no_issue" | "no_handoff" | "no_protocol") => NO_RESOURCE,
        Some("usage") => INVALID_PARAMS,
        _ => INTERNAL,
    };
    let mut error = error(code, failure["message"].as_str().unwrap_or_default());
    error["data"] = document;
    error
}
