//! Boards for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use handoff::base::Moment;
use handoff::base::ids::AgentName;
use handoff::ledger::attention::Attention;
use handoff::model::Record;
use handoff::protocol::Need;
use serde_json::{Value, json};

use super::actions::Acting;
use super::data::{Board, Card, Found};
use super::state::App;
use handoff_cli::args::filter::Query;

pub(super) fn now() -> Moment {
    Moment::from_timestamp_millis(1_772_442_000_000).unwrap_or_default()
}

/// A handoff sent two hours ago, with overridden members.
pub(super) fn record(id: &str, to: &str, state: &str, more: Value) -> Record {
    let at = "2026-03-02T07:00:00Z";
    let mut value = json!({
        "version": 3, "id": id, "title": "Export the history", "protocol": "p",
        "contract_type": "t", "from": "lead", "to": to, "state": state, "summary": "s",
        "contract": {"file": "f", "format": "json", "bytes": 1, "sha256": "0".repeat(64)},
        "attempt": 1,
        "transitions": [{"at": at, "by": "lead", "to": state}],
    });
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{error}"))
}

fn agent(name: &str) -> AgentName {
    name.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// A board of these handoffs, some of them with needs.
pub(super) fn board(records: Vec<Record>, needs: &[(&str, Need)]) -> Board {
    let open: Vec<Arc<Record>> = records.into_iter().map(Arc::new).collect();
    let attention = needs.iter().filter_map(|(id, need)| {
        let record = open.iter().find(|record| record.id.to_string() == *id)?;
        let found = Attention {
            issue: record.id.issue().clone(),
            title: record.title.clone(),
            id: record.id.clone(),
            need: *need,
            with: record.to.clone(),
            turn: agent("lead"),
            told: vec![agent("lead")],
            since: now(),
            why: String::new(),
            attempt: 1,
            next: String::new(),
            read: None,
            by: None,
            takes_nothing: false,
        };
        let card = Card {
            record: Arc::clone(record),
            attention: Some(Arc::new(found)),
            paused: None,
        };
        Some((*need == Need::Blocked, card))
    });
    let found = Found {
        attention: attention.collect(),
        open: open.clone(),
        paused: BTreeMap::new(),
        agents: vec![agent("writer"), agent("checker")],
    };
    Board {
        ledger: "handoffs at 0123456789".to_owned(),
        trouble: None,
        columns: found.columns(),
    }
}

/// A board with a failed and a blocked handoff.
pub(super) fn app() -> App {
    let failure = json!([{
        "at": "2026-03-02T08:30:00Z", "by": "writer", "event": "fail", "from": "in_progress",
        "to": "failed", "failure": {"code": "E", "message": "disk \u{1b}[31mfull", "recoverable": true},
    }]);
    let asked = json!([{
        "at": "2026-03-02T08:59:00Z", "by": "writer", "event": "block", "from": "in_progress",
        "to": "blocked", "questions": [{"key": "port", "type": "integer"}, {"key": "host"}],
    }]);
    let lease = json!({"holder": "writer", "worker": "desk-1", "since": "2026-03-02T08:00:00Z",
        "token": 1});
    let records = vec![
        record("7.1", "checker", "pending", json!({})),
        record(
            "7.2",
            "writer",
            "failed",
            json!({"transitions": failure, "attempt": 2, "code": {"branch": "csv", "commit": "a1"}}),
        ),
        record("8.1", "writer", "blocked", json!({"transitions": asked})),
        record(
            "9.1",
            "writer",
            "in_progress",
            json!({"lease": lease, "title": "\u{1b}]0;x\u{7}Two"}),
        ),
    ];
    let mut app = App::new(Acting::default(), &Query::default(), now());
    app.load(board(
        records,
        &[("7.2", Need::Failed), ("8.1", Need::Blocked)],
    ));
    app
}
