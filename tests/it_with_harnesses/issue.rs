//! An issue from its first handoff to its end, by `git handoff work` with a profile as it is shipped.

use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;
use test_support::TestEnvironment;

use crate::agent::{Obedient, role};
use crate::harness::Harness;
use crate::trial::Trial;
use crate::wire::Tokens;

const ROLES: [&str; 6] = [
    "prep-agent",
    "implementer-agent",
    "reviewer-agent",
    "fixer-agent",
    "validator-agent",
    "closer-agent",
];

/// The file of roles: all are done by one profile.
pub(crate) fn roles(trial: &Trial) -> String {
    let role = |agent| {
        let profile = trial.harness.name;
        format!("[[role]]\nagent = \"{agent}\"\nprofile = \"{profile}\"\n")
    };
    let text: String = ROLES.into_iter().map(role).collect();
    trial.env.file("roles.toml", text)
}

/// Merges the branch on the remote, as a person does on a pull request's page. Returns the
/// commit.
fn merge(env: &TestEnvironment, server: &Path) -> String {
    let folder = env.root().join("forge");
    let address = server.to_str().unwrap();
    env.git(env.root(), &["clone", "-q", address, "forge"]);
    env.git(
        &folder,
        &["merge", "-q", "--no-ff", "--no-edit", "origin/handoff/87"],
    );
    env.git(&folder, &["push", "-q", "origin", "HEAD:main"]);
    env.git(&folder, &["rev-parse", "HEAD"]).trim().to_owned()
}

/// Ends completed, with a sound ledger, and what it took as the stand-in counted it.
pub(crate) fn whole(harness: &'static Harness) {
    let trial = std::sync::Arc::new(Trial::new(harness, &[]));
    trial.open(87);
    let merged = Mutex::new(None);
    let forge = std::sync::Arc::downgrade(&trial);
    let by_command = harness.by_command;
    trial.model.plays(move |request| {
        let mut merged = merged.lock().unwrap();
        if role(&request.told()) == Some("validator-agent") && merged.is_none() {
            let trial = forge.upgrade().unwrap();
            *merged = Some(merge(&trial.env, &trial.server));
        }
        let merged = merged.clone();
        Obedient { by_command, merged }.turn(request)
    });
    let file = roles(&trial);
    let ran = trial.handoff(&["work", "--file", &file, "--until-idle", "--json"]);
    let story = format!("{}\n{}", trial.model.story(), ran.shown);
    assert_eq!(ran.status, 0, "{story}");
    let pieces = ran.json()["data"]["pieces"].clone();
    let outcomes: Vec<String> = pieces
        .as_array()
        .unwrap()
        .iter()
        .map(|piece| format!("{} {}", piece["agent"], piece["outcome"]).replace('"', ""))
        .collect();
    let wanted = [
        "prep-agent handed_on",
        "implementer-agent handed_on",
        "reviewer-agent handed_on",
        "fixer-agent handed_on",
        "reviewer-agent handed_on",
        "validator-agent handed_on",
        "closer-agent handed_on",
    ];
    assert_eq!(outcomes, wanted, "{story}");
    let status = trial.data(&["status", "87"]);
    assert_eq!(status["issue"]["status"], "completed", "{story}");
    trial.handoff(&["verify"]).success();
    assert_eq!(recorded(&trial, 7), trial.model.tokens(), "{story}");
    assert_eq!(trial.processes(), [""; 0]);
    let branch = ["show", "--stat", "--format=", "main:"];
    let files = trial.env.git(&trial.server, &branch);
    for file in ["export.py", "test_export.py"] {
        assert!(files.contains(file), "{file}: {files}");
    }
}

/// What the handoffs' records say that their work took.
pub(crate) fn recorded(trial: &Trial, handoffs: usize) -> Tokens {
    let mut sum = Tokens::default();
    for number in 1..=handoffs {
        let shown = trial.data(&["show", &format!("87.{number}")]);
        let claims = shown["record"]["usage"].as_array().cloned();
        for claim in claims.unwrap_or_default() {
            for model in claim["models"].as_array().into_iter().flatten() {
                let count = |name: &str| model.get(name).and_then(Value::as_u64).unwrap_or(0);
                sum.input += count("input_tokens");
                sum.cached += count("cached_tokens");
                sum.output += count("output_tokens");
            }
        }
    }
    sum
}
