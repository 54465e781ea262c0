//! GitHub's events, and their effects on the ledger.

use std::fs;

use serde_json::{Value, json};

use crate::TestEnvironment;
use crate::tools::GITHUB;

/// Writes a payload to a file.
pub fn file(env: &TestEnvironment, payload: &Value) -> String {
    env.file("event.json", payload.to_string())
}

/// Runs `github event`; returns its data.
#[track_caller]
pub fn event(env: &TestEnvironment, name: &str, payload: &Value) -> Value {
    let path = file(env, payload);
    env.data(&["github", "event", "--name", name, "--file", &path])
}

/// Runs `github event` with the author's permission; returns its data.
#[track_caller]
pub fn permitted(env: &TestEnvironment, name: &str, payload: &Value, permission: &str) -> Value {
    let path = file(env, payload);
    env.data(&[
        "github",
        "event",
        "--name",
        name,
        "--file",
        &path,
        "--permission",
        permission,
    ])
}

/// The effects: `noted 12.1`, `sent 12.1`, …
pub fn did(data: &Value) -> Vec<String> {
    let all = data["did"].as_array().unwrap().iter();
    all.map(|did| {
        let again = if did["repeated"] == true {
            " again"
        } else {
            ""
        };
        let text = |key: &str| did[key].as_str().unwrap().to_owned();
        format!("{} {}{again}", text("what"), text("id"))
    })
    .collect()
}

/// The reasons why something was not done, as one text.
pub fn why(data: &Value) -> String {
    let all = data["why"].as_array().unwrap().iter();
    let all: Vec<&str> = all.map(|why| why.as_str().unwrap()).collect();
    all.join("\n")
}

/// The environment's time plus seconds, in the payloads' format.
pub fn at(env: &TestEnvironment, seconds: i64) -> String {
    let at = chrono::DateTime::from_timestamp(env.now() + seconds, 0).unwrap();
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub fn repository() -> Value {
    json!({"id": 1, "full_name": "quayside/parcel-desk"})
}

pub fn person(login: &str) -> Value {
    json!({"login": login, "type": "User"})
}

/// An issue in GitHub's format, with everything that a contract needs.
pub fn issue(number: u32) -> Value {
    json!({
        "number": number,
        "state": "open",
        "title": "Parcels are lost",
        "html_url": format!("https://github.com/quayside/parcel-desk/issues/{number}"),
        "labels": [{"name": "bug"}, {"name": "priority: high"}],
        "body": "They are.\r\n\r\n### Requirements\r\n- [ ] no parcel is lost\r\n- [ ] it is tested\r\n",
        "user": person("octocat"),
        "author_association": "NONE",
    })
}

pub fn issues(action: &str, mut issue: Value) -> Value {
    if action == "closed" {
        issue["state"] = json!("closed");
    }
    json!({"action": action, "issue": issue, "repository": repository(), "sender": person("octocat")})
}

/// A pull request for an issue, from the same repository.
pub fn pull_request(number: u32, issue: u32) -> Value {
    json!({
        "number": number,
        "state": "open",
        "title": "Keep parcels",
        "body": format!("Closes #{issue}"),
        "html_url": format!("https://github.com/quayside/parcel-desk/pull/{number}"),
        "draft": false,
        "merged": false,
        "merge_commit_sha": null,
        "user": person("octocat"),
        "author_association": "MEMBER",
        "head": {"ref": format!("issue-{issue}"), "sha": "1".repeat(40), "repo": repository()},
        "base": {"ref": "main", "sha": "2".repeat(40), "repo": repository()},
    })
}

pub fn pull(action: &str, pull_request: Value) -> Value {
    json!({"action": action, "pull_request": pull_request, "repository": repository(), "sender": person("octocat")})
}

/// A comment by the repository's owner.
pub fn comment(env: &TestEnvironment, issue: Value, body: &str) -> Value {
    json!({
        "action": "created",
        "issue": issue,
        "comment": {
            "body": body,
            "user": person("maintainer"),
            "author_association": "OWNER",
            "created_at": at(env, 0),
            "html_url": "https://github.com/quayside/parcel-desk/issues/12#issuecomment-1",
            "performed_via_github_app": null,
        },
        "repository": repository(),
        "sender": person("maintainer"),
    })
}

/// Every sample payload, with its event's name.
pub fn samples() -> Vec<(String, Value)> {
    let folder = GITHUB
        .folder()
        .join("node_modules/@octokit/webhooks-examples");
    let mut found = Vec::new();
    for api in fs::read_dir(folder).unwrap() {
        let index = api.unwrap().path().join("index.json");
        let Ok(text) = fs::read_to_string(index) else {
            continue;
        };
        let kinds: Vec<Value> = serde_json::from_str(&text).unwrap();
        for kind in kinds {
            let name = kind["name"].as_str().unwrap();
            for example in kind["examples"].as_array().unwrap() {
                found.push((name.to_owned(), example.clone()));
            }
        }
    }
    found
}

/// The value of a fact, from the newest note.
pub fn fact(env: &TestEnvironment, name: &str) -> Value {
    let notes = env.data(&["status", "12"])["record"]["annotations"].clone();
    let mut notes = notes.as_array().unwrap().iter().rev();
    let found = notes.find_map(|note| note["facts"].get(name).cloned());
    found.unwrap_or(Value::Null)
}
