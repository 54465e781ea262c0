//! The gate on GitHub: its rulesets, and its workflow's steps as they stand in the file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::runner::{Event, Run, Runner, TOKEN};
use crate::yaml;
use serde_json::{Value, json};
use test_support::contracts::{Format, sample};
use test_support::{TestEnvironment, repository_kind};

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("templates/github")
        .join(name)
}

#[test]
fn the_workflow_may_read_and_runs_nothing_that_a_pull_request_says() {
    let workflow = yaml(&shipped("handoff-gate.yml"));
    assert_eq!(
        workflow["true"]
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        ["merge_group", "schedule", "workflow_dispatch"]
    );
    let jobs = workflow["jobs"].as_object().unwrap();
    assert_eq!(jobs.len(), 1);
    let job = &jobs["gate"];
    assert_eq!(
        job["permissions"],
        json!({ "actions": "write", "contents": "write", "pull-requests": "write", "issues": "read", "statuses": "write" })
    );
    for step in job["steps"].as_array().unwrap() {
        // No action but this project's, no checkout, and no text of GitHub's in a script.
        match step["uses"].as_str() {
            Some(action) => assert!(action.starts_with("OWNER/git-handoff/action@"), "{step}"),
            None => assert!(!step["run"].as_str().unwrap().contains("${{"), "{step}"),
        }
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
    let workflow = yaml(&shipped("handoff-gate.yml"));
    let branch = format!("refs/heads/{}", workflow["env"]["LEDGER"].as_str().unwrap());
    assert_eq!(ledger["conditions"]["ref_name"]["include"], json!([branch]));
    assert_eq!(
        types(&ledger),
        ["deletion", "non_fast_forward", "required_linear_history"]
    );
    let checks = gate["rules"].as_array().unwrap().last().unwrap();
    assert_eq!(
        checks["parameters"]["required_status_checks"],
        json!([{ "context": "handoff gate" }])
    );
    // Of a job with the status's name, GitHub would require both.
    assert_ne!(workflow["jobs"]["gate"]["name"], "handoff gate");
}

/// An issue whose code is in pull request 7, and the check on it.
struct Gate {
    runner: Runner,
}

impl Gate {
    fn new() -> Self {
        let env = TestEnvironment::with_ledger();
        let repo = env.repo();
        let branch = sample("prep-agent-to-implementer-agent", Format::Xml, 87)
            .split("<branch>")
            .nth(1)
            .and_then(|rest| Some(rest.split("</branch>").next()?.to_owned()))
            .unwrap();
        env.git(&repo, &["checkout", "-q", "-b", &branch]);
        fs::write(repo.join("work.txt"), "work\n").unwrap();
        env.git(&repo, &["add", "."]);
        env.git(&repo, &["commit", "-q", "-m", "Work"]);
        let gate = Self {
            runner: Runner::new(env),
        };
        for (agent, contract) in [
            ("", "issue-manager-to-prep-agent"),
            ("prep-agent", "prep-agent-to-implementer-agent"),
            ("implementer-agent", "implementer-agent-to-reviewer-agent"),
        ] {
            gate.step(agent, contract);
        }
        gate
    }

    fn env(&self) -> &TestEnvironment {
        &self.runner.env
    }

    /// An agent takes its handoff and sends a contract.
    fn step(&self, agent: &str, contract: &str) {
        if !agent.is_empty() {
            self.env().claim("87", agent).success();
        }
        self.env().send(sample(contract, Format::Xml, 87)).success();
    }

    /// Pushes the ledger and the pull request's code, and runs the workflow.
    fn run(&self, branch: &str, body: &str) -> Run {
        let env = self.env();
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
        let head = env.git(&repo, &["rev-parse", "HEAD"]);
        let here = json!({ "full_name": "owner/desk" });
        self.runner.api.knows(&json!({
            "number": 7,
            "state": "open",
            "title": "Parcels",
            "body": body,
            "head": { "ref": branch, "sha": head.trim(), "repo": here },
            "base": { "ref": "main", "repo": here },
        }));
        let event = Event::new("workflow_dispatch", 1, json!({ "inputs": { "issue": "" } }));
        self.runner.run("handoff-gate.yml", &event)
    }

    /// Puts a policy on the default branch.
    fn policy(&self, policy: &Value) {
        let env = self.env();
        let remote = env.root().join("owner/desk");
        let file = env.file("policy.json", policy.to_string());
        let git = |args: &[&str]| env.git(&remote, args).trim().to_owned();
        let tree = |kind: &str, id: &str, name: &str| {
            let mut command = env.command("git");
            command.current_dir(&remote).arg("mktree");
            repository_kind::name_bare(&mut command, &remote);
            let line = format!("{kind} {id}\t{name}\n");
            let ran = env.run(command, &["mktree"], Some(line.as_bytes()));
            ran.success().stdout.trim().to_owned()
        };
        let blob = git(&["hash-object", "-w", &file]);
        let inner = tree("100644 blob", &blob, "handoff-gate.json");
        let root = tree("040000 tree", &inner, ".github");
        let commit = git(&["commit-tree", "-m", "Policy", &root]);
        git(&["update-ref", "HEAD", &commit]);
    }

    fn head(&self) -> String {
        let head = self.env().git(&self.env().repo(), &["rev-parse", "HEAD"]);
        head.trim().to_owned()
    }

    #[track_caller]
    fn passes(&self, branch: &str, body: &str) {
        let run = self.run(branch, body);
        run.job("gate", "success").says("approved");
        let (state, description) = self.runner.api.status(&self.head()).unwrap();
        assert_eq!((&*state, &*description), ("success", "87 approved"));
        assert!(run.log.contains("::notice title=approved::"), "{}", run.log);
        assert!(!run.log.contains(TOKEN));
    }

    #[track_caller]
    fn fails(&self, branch: &str, body: &str, why: &str) {
        let run = self.run(branch, body);
        run.job("gate", "success").says(why);
        let (state, _) = self.runner.api.status(&self.head()).unwrap();
        assert_eq!(state, "failure", "{}", run.log);
        // Every reason is an annotation.
        assert!(run.log.contains("\n::warning"), "{}", run.log);
    }
}

#[test]
fn the_check_passes_for_the_code_that_was_approved_and_no_other() {
    let gate = Gate::new();
    gate.fails("issue-87", "", "not approved");
    gate.step("reviewer-agent", "reviewer-agent-to-validator-agent");
    for branch in [
        "87",
        "issue-87",
        "issue_87-parcels",
        "feature/87-parcels",
        "a/b/issue-87",
    ] {
        gate.passes(branch, "");
    }
    for body in [
        "Closes #87",
        "One.\r\n\r\nThis (fixes #87), at last.\r\n",
        "closes: #87",
        "FIXES: #87",
    ] {
        gate.passes("parcels", body);
    }
    // What the text closes counts more than a number in the branch's name.
    gate.passes("release/2026-11", "Closes #87");
    gate.passes("issue-88", "Resolves: #87");
    gate.fails("issue-87", "closes #88", "there is no issue 88");
    gate.fails("x", "resolved #87\nCloses #88", "there is no issue 88");
    gate.passes("issue-87", "see #88, which encloses #89");
    gate.fails("parcels-87", "see #87", "it names no issue");
    // A number in a branch's name is an issue's if there is one.
    gate.fails("fix-404-page", "", "it names no issue");
    // Texts that try to be more than a name.
    let sly = "$(touch sly)`touch sly`\nISSUE=87\n'; touch sly; '";
    gate.fails(sly, sly, "it names no issue");
    gate.passes("x", "Closes #87; touch sly");
    let written = gate.runner.written();
    let made = |path: &Path| path.file_name().is_some_and(|name| name == "sly");
    assert!(!written.iter().any(|(path, _)| made(path)));

    // A commit after the review.
    let repo = gate.env().repo();
    fs::write(repo.join("late.txt"), "late\n").unwrap();
    gate.env().git(&repo, &["add", "."]);
    gate.env().git(&repo, &["commit", "-q", "-m", "Late"]);
    gate.fails("issue-87", "", "not approved");
    // Another issue's approval is of other code.
    gate.fails("parcels", "Closes #87", "not approved");
}

#[test]
fn what_was_committed_by_hand_opens_nothing() {
    let gate = Gate::new();
    gate.fails("issue-87", "", "not approved");
    // A rule by which the sending for review would be the approval.
    let env = gate.env();
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
    env.handoff(&["gate", "--issue", "87"])
        .exits(1)
        .says("the ledger is damaged");
    gate.fails("issue-87", "", "the ledger is damaged");
}

#[test]
fn a_policy_on_the_default_branch_says_what_the_gate_asks() {
    let gate = Gate::new();
    gate.step("reviewer-agent", "reviewer-agent-to-validator-agent");
    gate.passes("issue-87", "");
    gate.policy(&json!({ "format": 1, "require": ["approved"], "protocol": "issue-to-pr" }));
    gate.passes("issue-87", "");
    gate.policy(&json!({ "format": 1, "require": ["validated"] }));
    gate.fails("issue-87", "", "not validated");
    gate.policy(&json!({ "format": 1, "require": ["approved"], "signed": true }));
    gate.fails("issue-87", "", "issue-to-pr listed no keys");
    gate.policy(&json!({ "format": 1, "require": "approved" }));
    // A policy that is not understood sets nothing that could be taken for a pass.
    let run = gate.run("issue-87", "");
    run.job("gate", "failure").says("is not a policy");
}
