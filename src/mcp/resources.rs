//! What can be read of the ledger, and under which addresses.

use std::collections::BTreeSet;

use handoff_base::text::quoted;
use rmcp::RoleServer;
use rmcp::model::{
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use rmcp::service::RequestContext;
use serde_json::Value;

use super::calls::Calls;
use crate::failure::Failure;
use crate::output::Output;

/// How many resources one page of the list has.
const PAGE: usize = 100;

const JSON: &str = "application/json";

/// The ledger as a whole.
const LEDGER: &str = "handoff://ledger";

/// One page of what there is: the ledger, the protocols in force, the issues in which
/// a handoff is open. What is closed is read by its address all the same.
///
/// # Errors
/// An error of the protocol where the ledger can't be read, or the cursor is none.
pub(super) async fn list(
    calls: &Calls,
    cursor: Option<&str>,
    context: &RequestContext<RoleServer>,
) -> Result<ListResourcesResult, ErrorData> {
    let begin = match cursor.map(str::parse::<usize>) {
        None => 0,
        Some(Ok(begin)) => begin,
        Some(Err(_)) => return Err(ErrorData::invalid_params("that is no cursor", None)),
    };
    let status = data(calls.read(&["status"], context).await?)?;
    let protocols = data(calls.read(&["protocol", "list"], context).await?)?;
    let mut all = vec![resource(
        LEDGER,
        "ledger",
        "What is open and needs attention",
    )];
    for protocol in protocols["protocols"].as_array().into_iter().flatten() {
        if protocol["in_force"] == true
            && let Some(name) = protocol["name"].as_str()
        {
            let uri = format!("handoff://protocol/{name}");
            all.push(resource(
                &uri,
                name,
                "A protocol: agents, routes, contracts",
            ));
        }
    }
    let records = status["handoffs"].as_array().into_iter().flatten();
    let open: BTreeSet<&str> = records
        .filter_map(|record| record["id"].as_str()?.rsplit_once('.'))
        .map(|(issue, _)| issue)
        .collect();
    for issue in open {
        let uri = format!("handoff://issue/{issue}");
        all.push(resource(&uri, issue, "An issue in which a handoff is open"));
    }
    let next = begin.saturating_add(PAGE);
    let is_last = next >= all.len();
    let page: Vec<Resource> = all.into_iter().skip(begin).take(PAGE).collect();
    let mut result = ListResourcesResult::with_all_items(page);
    result.next_cursor = (!is_last).then(|| next.to_string());
    Ok(result)
}

fn resource(uri: &str, name: &str, description: &str) -> Resource {
    Resource::new(uri, name)
        .with_description(description)
        .with_mime_type(JSON)
}

/// The addresses that there may be something under.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let known = [
        (
            "issue/{key}",
            "issue",
            "An issue and all of its handoffs",
            Some(JSON),
        ),
        (
            "issue/{key}/context",
            "context",
            "Everything that an issue's contracts have accumulated",
            Some(JSON),
        ),
        (
            "handoff/{id}",
            "handoff",
            "A handoff: its record, its history, its contract",
            Some(JSON),
        ),
        (
            "handoff/{id}/contract",
            "contract",
            "A contract as it was sent",
            None,
        ),
        (
            "protocol/{name}",
            "protocol",
            "A protocol: its agents, routes and contracts",
            Some(JSON),
        ),
    ];
    let templates = known.map(|(path, name, description, format)| {
        let template =
            ResourceTemplate::new(format!("handoff://{path}"), name).with_description(description);
        match format {
            Some(format) => template.with_mime_type(format),
            None => template,
        }
    });
    ListResourceTemplatesResult::with_all_items(templates.to_vec())
}

/// What is under an address.
///
/// # Errors
/// An error of the protocol where there is nothing, with the command's own document.
pub(super) async fn read(
    calls: &Calls,
    uri: &str,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResult, ErrorData> {
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
            let document =
                serde_json::from_slice(&Output::of_failure(&failure)).unwrap_or_default();
            let error = refused(document);
            return Err(ErrorData::resource_not_found(error.message, error.data));
        }
    };
    let document = calls.read(words, context).await?;
    let contents = match parts[..] {
        ["handoff", _, "contract"] => {
            let contract = data(document)?["contract"].take();
            let format = match contract["format"].as_str() {
                Some("xml") => "application/xml",
                Some("json") => JSON,
                _ => "text/markdown",
            };
            let text = contract["text"].as_str().unwrap_or_default();
            ResourceContents::text(text, uri).with_mime_type(format)
        }
        _ if document["ok"] == true => {
            ResourceContents::text(document.to_string(), uri).with_mime_type(JSON)
        }
        _ => return Err(refused(document)),
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// What a document says.
fn data(mut document: Value) -> Result<Value, ErrorData> {
    if document["ok"] == true {
        Ok(document["data"].take())
    } else {
        Err(refused(document))
    }
}

/// The protocol's error for a command's.
fn refused(document: Value) -> ErrorData {
    let error = &document["error"];
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    let is_missing = ["no_issue", "no_handoff", "no_protocol"];
    let code = error["code"].as_str().unwrap_or_default();
    match code {
        code if is_missing.contains(&code) => {
            ErrorData::resource_not_found(message, Some(document))
        }
        "usage" => ErrorData::invalid_params(message, Some(document)),
        _ => ErrorData::internal_error(message, Some(document)),
    }
}
