//! The workflow and the rulesets for GitHub: what they are, and the workflow's steps as they stand in the file.
#![allow(clippy::unwrap_used, missing_docs)]
#![cfg(unix)]

mod hooks_support;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hooks_support::tools;
use serde_json::{Value, json};
use support::contracts::{Format, sample};
use support::{Ran, TestEnvironment};

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("templates/github")
        .join(name)
}

/// The workflow as data. YAML takes the key `on` for true.
fn workflow() -> Value {
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let output = Command::new(tools().join("venv/bin/python"))
        .args(["-c", script])
        .arg(shipped("handoff-gate.yml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_workflow_may_read_and_runs_nothing_that_a_pull_request_says() {
    let workflow = workflow();
    assert_eq!(workflow["permissions"], json!({ "contents": "read" }));
    assert_eq!(
        workflow["true"]
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        ["pull_request_target"]
    );
    let jobs = workflow["jobs"].as_object().unwrap();
    assert_eq!(jobs.len(), 1);
    let job = &jobs["gate"];
    assert!(job.get("permissions").is_none());
    for step in job["steps"].as_array().unwrap() {
        // No one else's action, no checkout, and no text of GitHub's in a script.
        assert!(step.get("uses").is_none(), "{step}");
        let script = step["run"].as_str().unwrap();
        assert!(!script.contains("${{"), "{script}");
    }
}

#[test]
fn the_rulesets_protect_the_ledger_and_require_the_check() {
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(shipped(name)).unwrap()).unwrap()
    };
    let types = |ruleset: &Value| -> Vec<String> {
        let rules = ruleset["rules"].as_array().unwrap();
        let each = rules.iter().map(|rule| rule["type"].as_str().unwrap());
        each.map(str::to_owned).collect()
    };
    let (ledger, gate) = (read("ruleset-ledger.json"), read("ruleset-gate.json"));
    for ruleset in [&ledger, &gate] {
        // What the REST API requires of a ruleset, and nothing that it does not know.
        let keys: Vec<&String> = ruleset.as_object().unwrap().keys().collect();
        let known = [
            "name",
            "target",
            "enforcement",
            "bypass_actors",
            "conditions",
            "rules",
        ];
        assert_eq!(keys, known);
        assert_eq!(ruleset["target"], "branch");
        assert_eq!(ruleset["enforcement"], "active");
        assert_eq!(ruleset["bypass_actors"], json!([]));
    }
    let workflow = workflow();
    let branch = format!("refs/heads/{}", workflow["env"]["LEDGER"].as_str().unwrap());
    assert_eq!(ledger["conditions"]["ref_name"]["include"], json!([branch]));
    assert_eq!(
        types(&ledger),
        ["deletion", "non_fast_forward", "required_linear_history"]
    );
    let checks = gate["rules"].as_array().unwrap().last().unwrap();
    assert_eq!(
        checks["parameters"]["required_status_checks"],
        json!([{ "context": workflow["jobs"]["gate"]["name"] }])
    );
}

/// A runner: it starts each step of the workflow as GitHub does, and stops at the first that fails.
struct Runner {
    env: TestEnvironment,
}

impl Runner {
    /// An issue that was approved, its code in pull request 7, and both on a server.
    fn new() -> Self {
        let env = TestEnvironment::with_ledger();
        let repo = env.repo();
        let branch = { sample("prep-agent-to-implementer-agent", Format::Xml, 87) }
            .split("<branch>")
            .nth(1)
            .and_then(|rest| Some(rest.split("</branch>").next()?.to_owned()))
            .unwrap();
        env.git(&repo, &["checkout", "-q", "-b", &branch]);
        fs::write(repo.join("work.txt"), "work\n").unwrap();
        env.git(&repo, &["add", "."]);
        env.git(&repo, &["commit", "-q", "-m", "Work"]);
        env.git(env.root(), &["init", "-q", "--bare", "owner/desk"]);
        let runner = Self { env };
        for (agent, contract) in [
            ("", "issue-manager-to-prep-agent"),
            ("prep-agent", "prep-agent-to-implementer-agent"),
            ("implementer-agent", "implementer-agent-to-reviewer-agent"),
        ] {
            runner.step(agent, contract);
        }
        runner
    }

    /// An agent takes its handoff and sends a contract.
    fn step(&self, agent: &str, contract: &str) {
        if !agent.is_empty() {
            self.env.claim("87", agent).success();
        }
        self.env.send(sample(contract, Format::Xml, 87)).success();
    }

    /// Pushes the ledger and the pull request's code, and runs the workflow.
    fn run(&self, branch: &str, body: &str) -> Ran {
        let env = &self.env;
        let repo = env.repo();
        let push = [
            "push",
            "-q",
            "-f",
            "../owner/desk",
            "handoffs",
            "HEAD:refs/pull/7/head",
        ];
        env.git(&repo, &push);
        let temp = env.root().join("temp");
        let _ = fs::remove_dir_all(&temp);
        fs::create_dir(&temp).unwrap();
        let (later, paths) = (temp.join("env"), temp.join("path"));
        let head = env.git(&repo, &["rev-parse", "HEAD"]);
        let told: BTreeMap<&str, String> = BTreeMap::from([
            ("github.event.pull_request.head.ref", branch.to_owned()),
            ("github.event.pull_request.body", body.to_owned()),
            ("github.event.pull_request.number", "7".to_owned()),
            ("github.event.pull_request.head.sha", head.trim().to_owned()),
            (
                "github.server_url",
                format!("file://{}", env.root().display()),
            ),
            ("github.repository", "owner/desk".to_owned()),
            ("github.token", "secret".to_owned()),
        ]);
        let workflow = workflow();
        let mut all = String::new();
        for step in workflow["jobs"]["gate"]["steps"].as_array().unwrap() {
            let mut command = env.command("bash");
            command
                .args(["--noprofile", "--norc", "-eo", "pipefail", "-c"])
                .arg(step["run"].as_str().unwrap())
                .env("RUNNER_TEMP", &temp)
                .env("GITHUB_ENV", &later)
                .env("GITHUB_PATH", &paths);
            for part in [&workflow["env"], &step["env"]] {
                for (name, value) in part.as_object().into_iter().flatten() {
                    let value = value.as_str().unwrap();
                    let asked = value
                        .strip_prefix("${{ ")
                        .and_then(|v| v.strip_suffix(" }}"));
                    command.env(name, asked.map_or(value, |asked| &told[asked]));
                }
            }
            for line in fs::read_to_string(&later).unwrap_or_default().lines() {
                let (name, value) = line.split_once('=').unwrap();
                command.env(name, value);
            }
            let ran = env.run(command, &[], None);
            all += &ran.stdout;
            if ran.status != 0 {
                return Ran { stdout: all, ..ran };
            }
        }
        let done = env.command("true");
        let ran = env.run(done, &[], None);
        Ran { stdout: all, ..ran }
    }

    #[track_caller]
    fn passes(&self, branch: &str, body: &str) {
        let ran = self.run(branch, body);
        assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("✓ approved"), "{}", ran.stdout);
        assert!(!ran.stdout.contains("secret") && !ran.stderr.contains("secret"));
    }

    #[track_caller]
    fn fails(&self, branch: &str, body: &str, why: &str) {
        let ran = self.run(branch, body);
        assert_ne!(ran.status, 0, "{}", ran.stdout);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn the_check_passes_for_the_code_that_was_approved_and_no_other() {
    let runner = Runner::new();
    runner.fails("issue-87", "", "issue 87 is not approved");
    runner.step("reviewer-agent", "reviewer-agent-to-validator-agent");
    for branch in [
        "87",
        "issue-87",
        "issue_87-parcels",
        "feature/87-parcels",
        "a/b/issue-87",
    ] {
        runner.passes(branch, "");
    }
    for body in [
        "Closes #87",
        "One.\r\n\r\nThis (fixes #87), at last.\r\n",
        "resolved #87\nCloses #88",
        "closes: #87",
        "FIXES: #87",
    ] {
        runner.passes("parcels", body);
    }
    // What the text closes counts more than a number in the branch's name.
    runner.passes("release/2026-11", "Closes #87");
    runner.passes("issue-88", "Resolves: #87");
    runner.fails("issue-87", "closes #88", "there is no issue 88");
    runner.passes("issue-87", "see #88, which encloses #89");
    runner.fails("parcels-87", "see #87", "::error::no issue");
    // Texts that try to be more than a name.
    let sly = "$(touch sly)`touch sly`\nISSUE=87\n'; touch sly; '";
    runner.fails(sly, sly, "::error::no issue");
    runner.passes("x", "Closes #87; touch sly");
    assert!(!runner.env.repo().join("sly").exists());

    // A commit after the review.
    let repo = runner.env.repo();
    fs::write(repo.join("late.txt"), "late\n").unwrap();
    runner.env.git(&repo, &["add", "."]);
    runner.env.git(&repo, &["commit", "-q", "-m", "Late"]);
    runner.fails("issue-87", "", "issue 87 is not approved");
    // Another issue's approval is of other code.
    runner.fails("parcels", "Closes #87", "issue 87 is not approved");
}

#[test]
fn what_was_committed_by_hand_opens_nothing() {
    let runner = Runner::new();
    runner.fails("issue-87", "", "issue 87 is not approved");
    // A rule by which the sending for review would be the approval.
    let env = &runner.env;
    let tree = env.root().join("ledger");
    let add = ["worktree", "add", "-q", "--detach", "../ledger", "handoffs"];
    env.git(&env.repo(), &add);
    let file = tree.join("protocols/issue-to-pr/protocol.json");
    let text = fs::read_to_string(&file).unwrap();
    let weak = text
        .replace(
            r#""undone_by": ["implementer-agent-to-reviewer-agent", "#,
            r#""undone_by": ["#,
        )
        .replace(
            r#""shown_by": ["reviewer-agent-to-validator-agent"]"#,
            r#""shown_by": ["implementer-agent-to-reviewer-agent"]"#,
        );
    assert_ne!(text, weak);
    fs::write(&file, weak).unwrap();
    env.git(&tree, &["commit", "-q", "-a", "-m", "By hand"]);
    let forged = env.git(&tree, &["rev-parse", "HEAD"]);
    env.git(
        &env.repo(),
        &["update-ref", "refs/heads/handoffs", forged.trim()],
    );
    env.handoff(&["gate", "--issue", "87"]).success();
    runner.fails("issue-87", "", "the ledger is damaged");
}
