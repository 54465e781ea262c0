//! Stored files: the ledger's settings, issues, handoffs, failures, snapshots.

use handoff::base::Moment;
use handoff::model::archive::{find_in_index, read_index, with_archived, without_archived};
use handoff::model::record::{Stored, read, write};
use handoff::model::{ArchivedIssue, FailureFile, Issue, Manifest, Record, SnapshotManifest};
use serde::Serialize;
use serde_json::Value;

use super::{Target, corpus};

const WORDS: &[&str] = &[
    "\"version\": 2",
    "\"version\": 1",
    "\"in_progress\"",
    "\"pending\"",
    "\"dead\"",
    "\"2026-02-30T00:00:00Z\"",
    "\"2026-06-30T23:59:60Z\"",
    "\"+262142-12-31T23:59:59Z\"",
    "\"9999-12-31T23:59:59.999999999Z\"",
    "\"0000-01-01T00:00:00+23:59\"",
    "\"87.1\"",
    "\"87.4294967296\"",
    "\"lease\": {}",
    "\"transitions\": []",
    "{}",
    "[]",
    "null",
];

pub(super) fn target() -> Target {
    Target {
        samples: corpus("records"),
        words: WORDS,
        check: Box::new(|bytes| {
            same::<Manifest>(bytes);
            same::<Issue>(bytes);
            same::<Record>(bytes);
            same::<FailureFile>(bytes);
            same::<SnapshotManifest>(bytes);
            same::<ArchivedIssue>(bytes);
            same_index(bytes);
        }),
    }
}

/// What is read is written as the same bytes from then on, and holds what the file said.
fn same<T: Stored + Serialize>(bytes: &[u8]) {
    let Ok(file) = read::<T>(bytes) else {
        return;
    };
    let written = write(&file);
    let again = write(&read::<T>(&written).unwrap());
    assert_eq!(written, again);
    let second: Value = serde_json::from_slice(bytes).unwrap();
    agree(&serde_json::from_slice(&written).unwrap(), &second, "");
}

/// An index that is read is written as the same bytes from then on, with the same issues.
fn same_index(bytes: &[u8]) {
    let Ok(issues) = read_index(bytes) else {
        return;
    };
    let Some(first) = issues.first().map(|issue| issue.issue.clone()) else {
        return;
    };
    let written = with_archived(b"", issues).unwrap();
    let again = with_archived(&written, Vec::new()).unwrap();
    assert_eq!(written, again);
    assert!(find_in_index(&written, &first).unwrap().is_some());
    let without = without_archived(&written, &first).unwrap();
    assert!(find_in_index(&without, &first).unwrap().is_none());
}

/// Every value that was written is what a reader that knows no records sees in the file. What
/// was left out there is empty.
pub(super) fn agree(written: &Value, read: &Value, at: &str) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (key, value) in written {
                if let Some(read) = read.get(key) {
                    agree(value, read, &format!("{at}/{key}"));
                }
            }
            for (key, value) in read {
                let is_empty = match value {
                    Value::Null | Value::Bool(false) => true,
                    Value::Array(items) => items.is_empty(),
                    Value::Object(members) => members.is_empty(),
                    _ => false,
                };
                assert!(written.contains_key(key) || is_empty, "{at}/{key}");
            }
        }
        (Value::Array(written), Value::Array(read)) => {
            assert_eq!(written.len(), read.len(), "{at}");
            for (number, (written, read)) in written.iter().zip(read).enumerate() {
                agree(written, read, &format!("{at}/{number}"));
            }
        }
        (Value::String(written), Value::String(read)) if written != read => {
            let moment = |text: &str| text.parse::<Moment>();
            let moments = (moment(written).ok(), moment(read).ok());
            assert_eq!(moments.0, moments.1, "{at}: {written} {read}");
            assert!(moments.0.is_some(), "{at}: {written} {read}");
        }
        _ => assert_eq!(written, read, "{at}"),
    }
}

#[test]
fn prove_records() {
    super::prove("fuzz-records", &target());
}
