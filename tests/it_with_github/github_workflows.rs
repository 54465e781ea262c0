//! The workflows and the action as files: what the linter says, what they may, what they rest on.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::runner::expression::expanded;
use crate::yaml;
use serde_json::{Map, Value, json};
use std::process::Command;
use test_support::TestEnvironment;
use test_support::tools::{GITHUB, WORKFLOW};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every workflow that is shipped, and the project's own.
fn workflows() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["templates/github", ".github/workflows"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "yml") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert_eq!(found.len(), 9, "{found:?}");
    found
}

/// What the linter finds in each workflow, by name and text.
fn findings(workflows: &[(String, String)]) -> Vec<Vec<Value>> {
    let found = GITHUB.run("lint.mjs", &[], &json!(workflows).to_string());
    let mut found: Vec<Vec<Value>> = serde_json::from_str(&found).unwrap();
    // What GitHub has had since the linter's lists were made.
    let is_new = |finding: &Value| {
        let message = finding["message"].as_str().unwrap();
        message.starts_with("label \"macos-15-intel\" is unknown")
            || message.starts_with("invalid activity type \"typed\" for \"issues\"")
    };
    for findings in &mut found {
        findings.retain(|finding| !is_new(finding));
    }
    found
}

/// The action's steps as a workflow, so that the linter reads them.
fn action_as_workflow() -> String {
    let action = yaml(&root().join("action/action.yml"));
    let inputs = action["inputs"].as_object().unwrap().keys();
    let inputs: Map<String, Value> = inputs
        .map(|name| (name.clone(), json!({ "type": "string" })))
        .collect();
    let outputs = action["outputs"].as_object().unwrap().iter();
    let outputs: Map<String, Value> = outputs
        .map(|(name, output)| (name.clone(), output["value"].clone()))
        .collect();
    let workflow = json!({
        "on": { "workflow_call": { "inputs": inputs } },
        "jobs": { "job": { "runs-on": "ubuntu-latest", "outputs": outputs, "steps": action["runs"]["steps"] } },
    });
    serde_json::to_string_pretty(&workflow).unwrap()
}

#[test]
fn the_linter_finds_nothing() {
    let mut all: Vec<(String, String)> = workflows()
        .into_iter()
        .map(|path| {
            (
                path.display().to_string(),
                fs::read_to_string(&path).unwrap(),
            )
        })
        .collect();
    all.push(("action.yml".to_owned(), action_as_workflow()));
    for ((name, _), found) in all.iter().zip(findings(&all)) {
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

#[test]
fn the_linter_finds_what_is_put_in() {
    let intake = root().join("templates/github/handoff-intake.yml");
    let intake = fs::read_to_string(intake).unwrap();
    let action = action_as_workflow();
    let faults = [
        (
            "types: [submitted, dismissed]",
            "types: [submited, dismissed]",
            "events",
        ),
        (
            "steps.event.outputs.issues }}",
            "steps.evnt.outputs.issues }}",
            "expression",
        ),
        (
            "      contents: write",
            "      contents: wirte",
            "permissions",
        ),
        (
            "    runs-on: ubuntu-latest",
            "    needs: recrod\n    runs-on: ubuntu-latest",
            "job-needs",
        ),
        ("timeout-minutes: 20", "timeout-minute: 20", "syntax-check"),
        // Foreign text in a script.
        (
            "git --git-dir=\"$LEDGER_REPOSITORY\" handoff github event --ask-github",
            "echo ${{ github.event.issue.title }}",
            "expression",
        ),
        ("inputs.ledger", "inputs.leger", "expression"),
    ];
    let mutated: Vec<(String, String)> = faults
        .iter()
        .map(|(was, is, _)| {
            let text = if intake.contains(was) {
                &intake
            } else {
                &action
            };
            assert!(text.contains(was), "{was}");
            ((*is).to_owned(), text.replacen(was, is, 1))
        })
        .collect();
    for ((_, is, kind), found) in faults.iter().zip(findings(&mutated)) {
        assert!(found.iter().any(|f| f["kind"] == *kind), "{is}: {found:#?}");
    }
}

/// What the auditor of security finds in files: which rule, and in which line of which file.
fn audit(files: &[PathBuf], options: &[&str]) -> Vec<String> {
    let mut command = Command::new(WORKFLOW.folder().join("venv/bin/zizmor"));
    command
        .args(["--offline", "--no-config", "--persona", "auditor"])
        .args(["--min-severity", "low", "--strict-collection"])
        .args(["--quiet", "--no-progress", "--format", "json"])
        .args(options)
        .args(files);
    let output = command.output().unwrap();
    let found: Vec<Value> = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let line = |finding: &Value| {
        let place = &finding["locations"][0];
        let file = &place["symbolic"]["key"]["Local"]["given_path"];
        let row = &place["concrete"]["location"]["start_point"]["row"];
        format!("{} {file}:{row}", finding["ident"].as_str().unwrap())
    };
    found.iter().map(line).collect()
}

#[test]
fn the_auditor_finds_nothing_and_what_it_leaves_out_has_a_reason() {
    let mut all = workflows();
    all.push(root().join("action/action.yml"));
    assert_eq!(audit(&all, &[]), [""; 0]);
    for path in &all {
        for line in fs::read_to_string(path).unwrap().lines() {
            if let Some((_, ignore)) = line.split_once("zizmor: ") {
                let reason = ignore.split_once("] ").map(|(_, reason)| reason.trim());
                let is_said = reason.is_some_and(|reason| reason.split(' ').count() > 3);
                assert!(is_said, "{}: {line}", path.display());
            }
        }
    }
    // It does read them.
    let found = audit(&all, &["--no-ignores"]);
    let dangerous = |found: &&String| found.starts_with("dangerous-triggers ");
    assert_eq!(found.iter().filter(dangerous).count(), 3, "{found:?}");
}

#[test]
fn the_auditor_finds_what_is_put_in() {
    let env = TestEnvironment::new();
    let intake = root().join("templates/github/handoff-intake.yml");
    let intake = fs::read_to_string(intake).unwrap();
    let action = fs::read_to_string(root().join("action/action.yml")).unwrap();
    let faults = [
        (
            "action@0000000000000000000000000000000000000000",
            "action@v1",
            "unpinned-uses",
        ),
        (
            "permissions: {}",
            "permissions: write-all",
            "excessive-permissions",
        ),
        (
            " # it pushes steps to the ledger's branch",
            "",
            "undocumented-permissions",
        ),
        (
            "git --git-dir=\"$LEDGER_REPOSITORY\" handoff github event --ask-github",
            "echo ${{ github.event.issue.title }}",
            "template-injection",
        ),
        ("zizmor: ignore", "", "dangerous-triggers"),
        (
            "'\"$GITHUB_ACTION_PATH/run\"'",
            "echo ${{ inputs.command }}",
            "template-injection",
        ),
    ];
    for (was, is, rule) in faults {
        let (name, text) = if intake.contains(was) {
            ("intake.yml", &intake)
        } else {
            ("action.yml", &action)
        };
        assert!(text.contains(was), "{was}");
        let file = env.root().join(name);
        fs::write(&file, text.replace(was, is)).unwrap();
        let found = audit(&[file], &[]);
        assert!(
            found.iter().any(|f| f.starts_with(rule)),
            "{was}: {found:?}"
        );
    }
}

/// Every step of a workflow or of the action.
fn steps(file: &Value) -> Vec<Value> {
    let jobs = file["jobs"].as_object().into_iter().flatten();
    let lists = jobs
        .map(|(_, job)| &job["steps"])
        .chain([&file["runs"]["steps"]]);
    lists
        .filter_map(Value::as_array)
        .flatten()
        .cloned()
        .collect()
}

#[test]
fn actions_are_pinned_and_scripts_hold_no_expression() {
    let pinned = [
        "actions/attest",
        "actions/cache",
        "actions/cache/restore",
        "actions/cache/save",
        "actions/checkout",
        "actions/deploy-pages",
        "actions/download-artifact",
        "actions/setup-node",
        "actions/upload-artifact",
        "actions/upload-pages-artifact",
        "OWNER/git-handoff/action",
    ];
    let mut used = BTreeSet::new();
    let action = root().join("action/action.yml");
    for path in workflows().into_iter().chain([action]) {
        let file = yaml(&path);
        for step in steps(&file) {
            if let Some(uses) = step["uses"].as_str() {
                let (name, at) = uses.split_once('@').unwrap();
                assert!(pinned.contains(&name), "{}: {uses}", path.display());
                let is_commit = at.len() == 40 && at.bytes().all(|b| b.is_ascii_hexdigit());
                assert!(is_commit, "{}: {uses}", path.display());
                used.insert(uses.to_owned());
            } else {
                let script = step["run"].as_str().unwrap();
                assert!(!script.contains("${{"), "{}: {script}", path.display());
            }
        }
    }
    // One commit of each, and of all that is in one repository.
    assert_eq!(used.len(), pinned.len(), "{used:?}");
    let commits: BTreeSet<_> = used
        .iter()
        .map(|uses| uses.split('@').next_back())
        .collect();
    assert_eq!(commits.len(), pinned.len() - 2, "{used:?}");
}

#[test]
fn a_harness_gets_the_node_that_it_runs_on() {
    let file = yaml(&root().join("templates/github/handoff-agent.yml"));
    let steps = file["jobs"]["work"]["steps"].as_array().unwrap();
    let at = |is: &dyn Fn(&Value) -> bool| steps.iter().position(is).unwrap();
    let uses = |step: &Value| {
        step["uses"]
            .as_str()
            .is_some_and(|uses| uses.starts_with("actions/setup-node@"))
    };
    let node = at(&uses);
    assert!(
        node < at(&|step| step["run"]
            .as_str()
            .is_some_and(|run| run.starts_with("npm install ")))
    );
    // What the code's package.json asks for is not this job's business: nothing is cached.
    assert_eq!(
        steps[node]["with"],
        json!({ "node-version": "24", "package-manager-cache": false })
    );
}

#[test]
fn an_enterprise_server_gets_the_actions_for_artifacts_that_it_has() {
    let action = format!("octo/git-handoff/action@{}", "1".repeat(40));
    for (url, is_server) in [
        ("https://github.com/octo/desk", false),
        ("https://octo.ghe.com/octo/desk", false),
        ("git@ssh.github.com:octo/desk.git", false),
        ("../owner/desk", false),
        ("https://ada@ghe.corp.example/octo/desk.git", true),
        ("git@github.corp.example:octo/desk.git", true),
        ("ssh://git@notgithub.com:22/octo/desk", true),
    ] {
        let env = TestEnvironment::with_ledger();
        let repo = env.repo();
        env.git(&repo, &["remote", "add", "origin", url]);
        env.handoff(&["init", "--github", &action, "--github-agents"])
            .success();
        let mut pins = BTreeSet::new();
        for name in ["agent", "audit"] {
            let file = repo.join(format!(".github/workflows/handoff-{name}.yml"));
            for step in steps(&yaml(&file)) {
                let uses = step["uses"].as_str().unwrap_or_default().to_owned();
                pins.extend(Some(uses).filter(|uses| uses.contains("-artifact@")));
            }
        }
        let (up, down) = if is_server {
            (
                "c24449f33cd45d4826c6702db7e49f7cdb9b551d",
                "ad191675b41f6a5b46da9a048cb6893812da158b",
            )
        } else {
            (
                "bbbca2ddaa5d8feaa63e36b76fdaad77386f024f",
                "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c",
            )
        };
        let wanted = [
            format!("actions/download-artifact@{down}"),
            format!("actions/upload-artifact@{up}"),
        ];
        assert_eq!(pins, BTreeSet::from(wanted), "{url}");
        // They are still ours to remove.
        env.handoff(&["uninstall"]).success();
        assert!(!repo.join(".github").exists(), "{url}");
    }
}

#[test]
fn labels_that_come_in_a_bunch_wait_in_one_group() {
    let intake = yaml(&root().join("templates/github/handoff-intake.yml"));
    let group = intake["concurrency"]["group"].as_str().unwrap();
    let group = |run: u32, event: Value| {
        let context = json!({ "github": { "event": event, "run_id": run.to_string() } });
        expanded(group, &context)
    };
    let issue = |action: &str| json!({ "action": action, "issue": { "number": 87 } });
    let pull = |action: &str| json!({ "action": action, "pull_request": { "number": 87 } });
    for (run, event) in [
        (1, issue("labeled")),
        (2, issue("unlabeled")),
        (3, pull("labeled")),
    ] {
        assert_eq!(group(run, event), "handoff-intake-87");
    }
    // Every other event is one of a kind: GitHub may drop none of them.
    for event in [
        issue("opened"),
        issue("edited"),
        pull("synchronize"),
        json!({}),
    ] {
        assert_eq!(group(4, event), "handoff-intake-4");
    }
}

#[test]
fn agents_of_an_issue_run_one_at_a_time() {
    let agents = yaml(&root().join("templates/github/handoff-agent.yml"));
    let group = agents["concurrency"]["group"].as_str().unwrap();
    let group = |event: Value| {
        let context = json!({ "github": { "event": event, "run_id": "4" } });
        expanded(group, &context)
    };
    let labeled = |name: &str| json!({ "issue": { "number": 87 }, "label": { "name": name } });
    let started = json!({ "inputs": { "issue": "87" } });
    assert_eq!(group(started), "handoff-agent-87");
    assert_eq!(group(labeled("handoff")), "handoff-agent-87");
    // Another label must not take the place of a run that waits.
    assert_eq!(group(labeled("bug")), "handoff-agent-4");
}

#[test]
fn each_job_may_what_it_needs_and_ends() {
    let mut said = String::new();
    for path in workflows() {
        let file = yaml(&path);
        let whole = &file["permissions"];
        assert!(whole.is_object(), "{}", path.display());
        for (name, job) in file["jobs"].as_object().unwrap() {
            let may = if job["permissions"].is_null() {
                whole
            } else {
                &job["permissions"]
            };
            assert!(job["timeout-minutes"].as_u64().unwrap() <= 60);
            let file = path.file_stem().unwrap().to_str().unwrap();
            said += &format!("{file} {name} {may}\n");
        }
    }
    insta::assert_snapshot!(said, @r#"
    book build {"contents":"read"}
    release build {"contents":"read"}
    release contents {"contents":"read"}
    release publish {"contents":"write","id-token":"write","attestations":"write"}
    release npm {"contents":"read","id-token":"write"}
    release pypi {"contents":"read","id-token":"write"}
    release crates {"contents":"read"}
    release image {"contents":"read","packages":"write"}
    release index {"packages":"write"}
    release elsewhere {"contents":"read"}
    semver compare {"contents":"read"}
    handoff-agent turn {"contents":"write","pull-requests":"write","issues":"read","statuses":"write"}
    handoff-agent work {"contents":"read"}
    handoff-agent carry {"contents":"write","issues":"write","pull-requests":"write","actions":"write","statuses":"write"}
    handoff-audit audit {"contents":"read"}
    handoff-audit tell {"issues":"write"}
    handoff-gate gate {"actions":"write","contents":"write","pull-requests":"write","issues":"read","statuses":"write"}
    handoff-intake record {"contents":"write","issues":"write","pull-requests":"write","statuses":"write"}
    handoff-pages report {"contents":"read"}
    handoff-pages deploy {"pages":"write","id-token":"write"}
    handoff-verify verify {"contents":"read"}
    "#);
}

#[test]
fn the_table_of_permissions_is_that_of_the_workflows() {
    let page = fs::read_to_string(root().join("docs/github.md")).unwrap();
    for path in workflows() {
        let file = yaml(&path);
        let name = path.file_name().unwrap().to_str().unwrap();
        if !path.starts_with(root().join("templates")) {
            continue;
        }
        for (job, body) in file["jobs"].as_object().unwrap() {
            let may = if body["permissions"].is_null() {
                &file["permissions"]
            } else {
                &body["permissions"]
            };
            let may: Vec<String> = may
                .as_object()
                .unwrap()
                .iter()
                .map(|(what, how)| format!("`{what}: {}`", how.as_str().unwrap()))
                .collect();
            let row = format!("|`{name}`|`{job}`|{}|", may.join(", "));
            assert!(page.contains(&row), "docs/github.md has no row {row}");
        }
    }
}
