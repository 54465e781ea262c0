//! Lines of the Model Context Protocol.

use git_handoff::readers::{McpLine, mcp_command, mcp_lines};
use serde_json::Value;

use super::{Target, corpus};

const WORDS: &[&str] = &[
    "\"jsonrpc\":\"2.0\"",
    "\"id\":1",
    "\"id\": 9007199254740993",
    "\"id\":1.0",
    "\"id\":null",
    "\"id\":\"\"",
    "\"method\":\"tools/call\"",
    "\"method\":\"notifications/cancelled\"",
    "\"params\":{}",
    "\"name\":\"handoff_claim\"",
    "\"arguments\":{\"next\":true}",
    "\"as\":\"prep-agent\"",
    "\"--\"",
    "\"-x\"",
    "\"--branch=x\"",
    "\"contract\":\"<a/>\"",
    "\"_meta\":{}",
    "\"result\":1",
    "\n",
    "\r\n",
    "\\n",
    "\\u0000",
];

/// How long lines may be here, so that some are too long.
const LONGEST: usize = 256;

pub(super) fn target() -> Target {
    Target {
        samples: corpus("mcp"),
        words: WORDS,
        check: Box::new(check),
    }
}

fn check(bytes: &[u8]) {
    let lines = bytes.split_inclusive(|b| *b == b'\n');
    let lines: Vec<&[u8]> = lines
        .map(|line| line.strip_suffix(b"\n").unwrap_or(line))
        .collect();
    let read = mcp_lines(bytes, LONGEST);
    assert_eq!(read.len(), lines.len());
    for (line, read) in lines.iter().zip(read) {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let second = serde_json::from_slice::<Value>(line);
        match read {
            McpLine::Ignored => {}
            McpLine::Request { id, method, params } => {
                let second = second.unwrap();
                assert_eq!(second["method"], method);
                assert_eq!(second["params"], params);
                called(&method, &params);
                assert_eq!(second.get("id").is_some(), id.is_some());
                if let Some(id) = id {
                    same_id(&second["id"], &id);
                }
            }
            McpLine::Refused(answer) => {
                let second = second.unwrap();
                assert_eq!(answer["jsonrpc"], "2.0");
                assert!(answer["error"]["code"].is_i64());
                if let Some(id) = answer.get("id") {
                    same_id(&second["id"], id);
                }
            }
            McpLine::TooLong(id) => {
                let Ok(second) = second else {
                    continue;
                };
                // The id is found or not, but it is no other one.
                let count = String::from_utf8_lossy(line).matches("\"id\"").count();
                if let (Some(id), 1) = (id, count) {
                    same_id(&second["id"], &id);
                }
            }
        }
    }
}

/// What a call names is a value in the command that it runs, and never an option of its own.
fn called(method: &str, params: &Value) {
    let (Some(name), Some(arguments)) = (params["name"].as_str(), params["arguments"].as_object())
    else {
        return;
    };
    if method != "tools/call" {
        return;
    }
    let Ok(words) = mcp_command(name, arguments) else {
        return;
    };
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
    let end = words.iter().position(|word| *word == "--").unwrap();
    for word in &words[1..end] {
        let known =
            |option: &str| option == "json" || arguments.contains_key(&option.replace('-', "_"));
        match word.strip_prefix("--") {
            Some(option) => {
                let option = option.split('=').next().unwrap();
                assert!(known(option), "{word}");
            }
            None => assert!(
                word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'),
                "{word}"
            ),
        }
    }
}

/// A whole number may be written with a fraction.
fn same_id(stated: &Value, id: &Value) {
    assert!(
        stated == id || stated.as_f64() == id.as_f64() && stated.is_f64(),
        "{stated} {id}"
    );
}

#[test]
fn prove_mcp() {
    super::prove("fuzz-mcp", &target());
}
