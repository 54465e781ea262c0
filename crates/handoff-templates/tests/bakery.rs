//! How a user's protocol can be tested in a unit test: it is valid, and accepts the expected
//! contracts.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use handoff_contract::Input;
use handoff_model::{Review, check_protocol, review};
use handoff_protocol::Protocol;
use handoff_templates::{Folder, FolderSchemas};
use serde_json::json;

fn bakery() -> Folder {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/protocols/bakery");
    Folder::read(&path).unwrap()
}

/// Checks an order with this note.
fn ordered(pieces: &serde_json::Value, to: &str) -> Review {
    let protocol = Protocol::load(bakery().file("protocol.json").unwrap()).unwrap();
    let order = json!({
        "order": "bread-7", "from": "counter", "to": to, "status": "wanted", "urgency": "today", "wanted": pieces,
        "label": { "kind": "label", "schema": "label.schema.json", "path": "labels/label-{timestamp}.json" },
        "tries": 1, "note": "For the market"
    });
    let bytes = order.to_string();
    let schemas = FolderSchemas::new(bakery());
    review(&protocol, &schemas, &Input::read(bytes.as_bytes()), None).unwrap()
}

#[test]
fn the_protocol_is_sound() {
    let findings = check_protocol(&bakery().into_files());
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn an_order_needs_a_number_of_pieces() {
    let review = ordered(&json!(40), "oven-1");
    assert!(review.is_complete(), "{:#?}", review.findings);
    let contract = review.contract.unwrap();
    assert_eq!(
        (contract.kind.as_str(), contract.issue.as_str()),
        ("order", "bread-7")
    );
    let refused = ordered(&json!("many"), "oven-1");
    assert!(
        refused
            .findings
            .iter()
            .any(|finding| finding.path == "/wanted")
    );
}
