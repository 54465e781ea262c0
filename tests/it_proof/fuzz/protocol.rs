//! `protocol.json`.

use std::ffi::OsStr;

use handoff::model::check_protocol;
use handoff::protocol::Protocol;

use super::{Target, files};

const WORDS: &[&str] = &[
    "\"*\"",
    "\"kind\": \"end\"",
    "\"kind\": \"human\"",
    "\"style\": \"strict\"",
    "\"path\": \"../../x\"",
    "\"/a/0/~1\"",
    "\"pattern\": \"^(([a-z]+)*(?!x))*$\"",
    "\"max_retries\": 4294967295",
    "\"timeout_seconds\": 18446744073709551615",
    "\"name\": \"a\"",
    "\"limits\": {}",
    "\"answers\": []",
    "{}",
    "[]",
    "null",
    "**/*",
    "{{",
];

pub(super) fn target() -> Target {
    Target {
        samples: files("templates", |path| {
            path.file_name() == Some(OsStr::new("protocol.json"))
        }),
        words: WORDS,
        check: Box::new(check),
    }
}

fn check(bytes: &[u8]) {
    let checked = check_protocol(&[("protocol.json".to_owned(), bytes.to_vec())]);
    let Ok((protocol, faults)) = Protocol::with_faults(bytes) else {
        assert!(!checked.is_empty());
        return;
    };
    assert_eq!(Protocol::load(bytes).is_ok(), faults.is_empty());
    // serde reads an object from the list of its members' values too; only `check_protocol`, which
    // every protocol passes before it is used, refuses that.
    if !faults.is_empty() || checked.iter().any(|found| found.path.is_empty()) {
        return;
    }
    for agent in protocol.agent_names() {
        for to in protocol.receivers(agent) {
            let types = protocol.types_between(agent, to.as_str());
            for kind in types {
                protocol.acknowledge_seconds(agent, to.as_str(), &kind.name, None);
                protocol.reports_to(agent, to);
                protocol.onward(agent, Some((to, &kind.name)));
            }
        }
    }
}

#[test]
fn prove_protocol() {
    super::prove("fuzz-protocol", &target());
}
