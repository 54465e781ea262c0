//! `new`: skeletons that are filled with what is known.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::team::Folder;

/// The routes in the order of a workflow without detours, with the type.
const ROUTES: [(&str, &str); 9] = [
    ("issue-manager", "prep-agent"),
    ("prep-agent", "implementer-agent"),
    ("implementer-agent", "reviewer-agent"),
    ("reviewer-agent", "fixer-agent"),
    ("fixer-agent", "reviewer-agent"),
    ("reviewer-agent", "validator-agent"),
    ("validator-agent", "closer-agent"),
    ("closer-agent", "workflow-complete"),
    ("validator-agent", "fixer-agent"),
];

/// What a person would fill in, by what the mark asks for.
const ANSWERS: &[(&str, &str)] = &[
    ("what this issue asks for", "Exports"),
    ("title of the issue", "Export delivery history"),
    ("feature, bug", "enhancement"),
    ("critical, high", "high"),
    ("one thing that must hold", "It downloads"),
    ("worktree, in-place or cloud", "worktree"),
    ("port of", "4187"),
    (
        "address of the pull request",
        "https://github.com/quayside/parcel-desk/pull/91",
    ),
    ("number of the pull request", "91"),
    ("number of critical findings", "1"),
    ("number of", "3"),
    ("path and line", "src/lib.rs:4"),
    ("critical, important", "critical"),
    ("test coverage", "87.5%"),
    ("merge, squash", "merge"),
    ("test, lint", "test"),
    ("failure, or blocked", "failure"),
    ("true or false", "true"),
    ("short name of the kind", "BuildError"),
    ("id of", "0123abc"),
    ("", "as it should be"),
];

/// Fills every mark of a skeleton.
fn filled(skeleton: &str) -> String {
    let mut text = String::new();
    let mut rest = skeleton;
    // What `send` fills in stays.
    while let Some((before, after)) = rest.split_once("{{fill:") {
        let (mark, after) = after.split_once("}}").unwrap();
        let mark = format!("{mark}}}}}");
        let (_, answer) = ANSWERS
            .iter()
            .find(|(asked, _)| mark.contains(asked))
            .unwrap();
        let number = answer.parse::<u32>().is_ok() || *answer == "true";
        // A mark is a text; in JSON its answer may be a number.
        if number && before.ends_with('"') && after.starts_with('"') {
            text += before.strip_suffix('"').unwrap();
            text += answer;
            rest = after.strip_prefix('"').unwrap();
        } else {
            text += before;
            text += answer;
            rest = after;
        }
    }
    text + rest
}

/// A repository with a remote's address and a code branch of two commits.
fn code() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    let url = "git@github.com:quayside/parcel-desk.git";
    env.git(&repo, &["remote", "add", "origin", url]);
    env.git(&repo, &["checkout", "-q", "-b", "enhancement/87-export"]);
    commit(&env, "export.rs", "export: write rows as CSV");
    commit(&env, "view.rs", "history: offer <the> \"download\" & more");
    env
}

fn commit(env: &TestEnvironment, file: &str, subject: &str) -> String {
    fs::write(env.repo().join(file), subject).unwrap();
    env.git(&env.repo(), &["add", file]);
    env.git(&env.repo(), &["commit", "-q", "-m", subject]);
    env.git(&env.repo(), &["rev-parse", "HEAD"])
        .trim()
        .to_owned()
}

fn skeleton(env: &TestEnvironment, from: &str, to: &str, format: &str) -> String {
    let args = [
        "new", "--issue", "87", "--from", from, "--to", to, "--format", format,
    ];
    env.handoff(&args).success().stdout
}

fn json_skeleton(env: &TestEnvironment, from: &str, to: &str) -> Value {
    serde_json::from_str(&skeleton(env, from, to, "json")).unwrap()
}

#[test]
fn every_route_has_a_skeleton_that_is_refused_until_it_is_filled() {
    let env = code();
    let errors = ROUTES[..8].iter().map(|(from, _)| (*from, "orchestrator"));
    for (from, to) in ROUTES.into_iter().chain(errors) {
        for format in ["xml", "json"] {
            let text = skeleton(&env, from, to, format);
            assert!(text.contains("{{fill: "), "{from} to {to}: {text}");
            let marks = text.matches("{{fill").count();
            let left = env.handoff_with(&["check", "-", "--json"], &text).exits(3);
            let findings = left.json()["error"]["findings"].clone();
            let unfilled = findings.as_array().unwrap().iter();
            let unfilled = unfilled.filter(|f| f["code"] == "field.unfilled").count();
            assert_eq!(unfilled, marks, "{from} to {to}: {findings:#}\n{text}");
            // That it may not be sent now is told beside.
            let codes = findings.as_array().unwrap().iter().map(|f| &f["code"]);
            let others = codes.filter(|code| {
                !["field.unfilled", "step.refused"]
                    .iter()
                    .any(|c| *code == c)
            });
            assert_eq!(others.count(), 0, "{findings:#}");
            let before = env.tip();
            env.send(&text).exits(3).says("field.unfilled");
            assert_eq!(env.tip(), before);
            // A list that is not known is one mark, and a person writes a list.
            let whole = filled(&text);
            env.handoff_with(&["check", "--contract-only", "-"], &whole)
                .success()
                .says("complete");
        }
    }
}

/// Every type of every protocol can be asked for, in each of its formats, and only its marks are at fault.
#[test]
fn every_type_of_every_protocol_has_a_skeleton() {
    use handoff::protocol::Protocol;
    use handoff::templates::{BUILT_IN, built_in};
    for name in BUILT_IN {
        let env = TestEnvironment::with_repository();
        env.handoff(&["init", "--protocol", name]).success();
        let folder = built_in(name).unwrap();
        let protocol = Protocol::load(folder.file("protocol.json").unwrap()).unwrap();
        let agents = protocol.definition().agents.iter();
        let agents: Vec<&str> = agents.map(|a| a.id.as_str()).collect();
        // A trace is named by a UUID.
        let key = match name {
            "delegation" => "5a1c7e90-0b2d-4f38-9c64-d07e1f2a3b4c",
            _ => "87",
        };
        let mut found = BTreeSet::new();
        for (from, to) in agents
            .iter()
            .flat_map(|a| agents.iter().map(move |b| (*a, *b)))
        {
            for kind in protocol.types_between(from, to) {
                for format in &protocol.definition().formats {
                    // One way for each type and format is enough.
                    if !kind.has_format(format) || !found.insert((&kind.name, format)) {
                        continue;
                    }
                    let args = [
                        "new", "--issue", key, "--from", from, "--to", to, "--type", &kind.name,
                        "--format", format,
                    ];
                    let text = env.handoff(&args).success().stdout;
                    let marks = text.matches("{{fill").count();
                    assert!(marks > 0, "{text}");
                    let left = env.handoff_with(&["check", "-", "--json"], &text).exits(3);
                    let findings = left.json()["error"]["findings"].clone();
                    let findings = findings.as_array().unwrap();
                    let errors: Vec<&str> = findings
                        .iter()
                        .filter(|f| f["severity"] == "error" && f["code"] != "gate.required_fields")
                        .filter(|f| f["code"] != "step.refused")
                        .map(|f| f["code"].as_str().unwrap())
                        .collect();
                    assert_eq!(
                        errors,
                        vec!["field.unfilled"; marks],
                        "{findings:#?}\n{text}"
                    );
                }
            }
        }
        for kind in &protocol.definition().contracts {
            for format in protocol
                .definition()
                .formats
                .iter()
                .filter(|f| kind.has_format(f))
            {
                assert!(
                    found.contains(&(&kind.name, format)),
                    "{name}: {} {format}",
                    kind.name
                );
            }
        }
    }
}

#[test]
fn an_issue_can_be_taken_to_its_end_with_skeletons_alone() {
    for format in ["xml", "json"] {
        let env = code();
        for (from, to) in &ROUTES[..8] {
            if *from != "issue-manager" {
                env.claim("87", from).success();
            }
            if *from == "fixer-agent" {
                commit(&env, "quote.rs", "export: quote cells");
            }
            if *from == "validator-agent" {
                env.git(&env.repo(), &["checkout", "-q", "main"]);
                let args = [
                    "merge",
                    "-q",
                    "--no-ff",
                    "-m",
                    "Merge",
                    "enhancement/87-export",
                ];
                env.git(&env.repo(), &args);
            }
            env.send(filled(&skeleton(&env, from, to, format)))
                .success();
        }
        let status = env.data(&["status", "87"]);
        assert_eq!(status["issue"]["status"], "completed");
        assert_eq!(status["known"]["total_commits"], 3);
        let merge = env.git(&env.repo(), &["rev-parse", "main"]);
        assert_eq!(status["known"]["merge_sha"], merge.trim());
        env.assert_sound();
    }
}

/// Sends a skeleton, filled; returns the contract as it was recorded.
fn sent(env: &TestEnvironment, skeleton: &Value) -> Value {
    let text = serde_json::to_string(skeleton).unwrap();
    let ran = env
        .handoff_with(&["send", "-", "--json"], filled(&text))
        .success();
    let id = ran.json()["data"]["handoff"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown = env.data(&["show", &id]);
    serde_json::from_str(shown["contract"]["text"].as_str().unwrap()).unwrap()
}

#[test]
fn what_the_repository_knows_is_filled_in() {
    let env = code();
    let repo = env.repo();
    let opened = json_skeleton(&env, "issue-manager", "prep-agent");
    assert_eq!(
        opened["issue_url"],
        "https://github.com/quayside/parcel-desk/issues/87"
    );
    assert_eq!(opened["issue_number"], 87);
    env.send(opening(87)).success();
    env.claim("87", "prep-agent").success();
    let ready = json_skeleton(&env, "prep-agent", "implementer-agent");
    assert_eq!(ready["branch"], "enhancement/87-export");
    assert_eq!(ready["workspace_path"], repo.to_str().unwrap());
    let text = serde_json::to_string(&ready).unwrap();
    env.send(filled(&text)).success();
    env.claim("87", "implementer-agent").success();

    let third = commit(&env, "view.rs", "history: again");
    let draft = json_skeleton(&env, "implementer-agent", "reviewer-agent");
    let mark = "{{fill by send: number of files that the branch changes}}";
    assert_eq!(draft["files_changed"], mark);
    let built = sent(&env, &draft);
    assert_eq!(built["files_changed"], 2);
    let log = env.git(&repo, &["log", "--format=%H %s", "main..HEAD"]);
    let listed: Vec<String> = built["commits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            format!(
                "{} {}",
                c["sha"].as_str().unwrap(),
                c["message"].as_str().unwrap()
            )
        })
        .collect();
    let mut expected: Vec<&str> = log.lines().collect();
    expected.reverse();
    assert!(
        listed == expected || {
            expected.reverse();
            listed == expected
        },
        "{listed:#?}\n{log}"
    );
    assert!(listed.iter().any(|c| c.starts_with(&third)));
    assert_eq!(
        env.data(&["show", "87.3"])["record"]["code"]["commit"],
        third
    );

    env.claim("87", "reviewer-agent").success();
    let asked = skeleton(&env, "reviewer-agent", "fixer-agent", "xml");
    assert!(asked.contains("<pr_number>91</pr_number>"), "{asked}");
    env.send(filled(&asked)).success();
    env.claim("87", "fixer-agent").success();
    // Written before the work, sent after it.
    let fixed = json_skeleton(&env, "fixer-agent", "reviewer-agent");
    commit(&env, "a.rs", "export: quote cells");
    commit(&env, "b.rs", "export: quote signs");
    assert_eq!(sent(&env, &fixed)["commits_added"], 2);
    env.claim("87", "reviewer-agent").success();
    env.send(filled(&skeleton(
        &env,
        "reviewer-agent",
        "validator-agent",
        "json",
    )))
    .success();
    env.claim("87", "validator-agent").success();

    // Nothing is merged yet: only then is there a commit to name.
    let early = json_skeleton(&env, "validator-agent", "closer-agent");
    assert!(early["merge_sha"].as_str().unwrap().starts_with("{{fill"));
    // The figures are the ledger's own, so that what is filled in is what `send` compares: a commit
    // that no contract tells of is not among them.
    commit(&env, "c.rs", "export: say how many");
    let total = |from: &str| {
        let skeleton = json_skeleton(&env, from, "workflow-complete");
        skeleton["metrics"]["total_commits"].clone()
    };
    assert_eq!(total("closer-agent"), 5);
    env.git(&repo, &["checkout", "-q", "main"]);
    env.git(
        &repo,
        &[
            "merge",
            "-q",
            "--no-ff",
            "-m",
            "Merge",
            "enhancement/87-export",
        ],
    );
    let merge = env.git(&repo, &["rev-parse", "HEAD"]);
    assert_eq!(total("closer-agent"), 5);
    let merged = json_skeleton(&env, "validator-agent", "closer-agent");
    assert_eq!(sent(&env, &merged)["merge_sha"], merge.trim());
    let long = ["--lease", "3days"];
    env.handoff(&[&["claim", "87", "--as", "closer-agent"], &long[..]].concat())
        .success();

    // What goes on until the contract is sent is filled in then.
    env.wait_minutes(2 * 24 * 60 + 3 * 60);
    let complete = json_skeleton(&env, "closer-agent", "workflow-complete");
    let cycle = complete["cycle_time"].as_str().unwrap();
    assert!(cycle.starts_with("{{fill by send"), "{cycle}");
    env.wait_minutes(90);
    let metrics =
        json!({"review_iterations": 2, "total_commits": 5, "tests_added": 3, "coverage": "87.5%"});
    let complete = sent(&env, &complete);
    assert_eq!(complete["metrics"], metrics);
    assert_eq!(complete["cycle_time"], "2 days 5 hours");
    env.assert_sound();
}

#[test]
fn what_cannot_be_written_is_refused() {
    let env = code();
    let new = |from, to, more: &[&str]| {
        let mut args = vec!["new", "--issue", "87", "--from", from, "--to", to];
        args.extend(more);
        env.handoff(&args)
    };
    let mut text = new("prep-agent", "closer-agent", &[]).exits(4).shown;
    text += &new("prep-agent", "deployer", &[]).exits(4).shown;
    text += &new(
        "prep-agent",
        "orchestrator",
        &["--type", "workflow-complete"],
    )
    .exits(2)
    .shown;
    text += &env
        .handoff(&["new", "--issue", "87", "--to", "prep-agent"])
        .exits(2)
        .shown;
    insta::assert_snapshot!(text, @"
    $ git handoff new --issue 87 --from prep-agent --to closer-agent
    --- stderr
    error: protocol issue-to-pr has no route from prep-agent to closer-agent
    hint: prep-agent may send to: implementer-agent, orchestrator; see `git handoff explain route_refused`
    --- exit 4
    $ git handoff new --issue 87 --from prep-agent --to deployer
    --- stderr
    error: deployer is not an agent of protocol issue-to-pr
    hint: agents are: issue-manager, prep-agent, implementer-agent, reviewer-agent, fixer-agent, validator-agent, closer-agent, orchestrator, maintainer, workflow-complete; see `git handoff explain unknown_agent`
    --- exit 4
    $ git handoff new --issue 87 --from prep-agent --to orchestrator --type workflow-complete
    --- stderr
    error: no contract of type workflow-complete goes from prep-agent to orchestrator
    hint: say which with --type: error; see `git handoff new -h`
    --- exit 2
    $ git handoff new --issue 87 --to prep-agent
    --- stderr
    error: say which agent you are
    hint: with --as AGENT, GIT_HANDOFF_AGENT, or `git config handoff.agent AGENT`; agents are: issue-manager, prep-agent, implementer-agent, reviewer-agent, fixer-agent, validator-agent, closer-agent, orchestrator, maintainer
    --- exit 2
    ");
}

#[test]
fn the_workspace_is_the_worktree_of_the_branch() {
    let env = code();
    let (repo, tree) = (env.repo(), env.root().join("tree"));
    env.send(opening(87)).success();
    let words = ["worktree", "add", "-q", "-b", "issue-87"];
    env.git(&repo, &[&words[..], &[tree.to_str().unwrap()]].concat());
    env.git(&repo, &["branch", "nowhere"]);
    let workspace = |folder: &Path, branch: &str| {
        let set = format!("branch={branch}");
        let args = [
            "new",
            "--issue",
            "87",
            "--from",
            "prep-agent",
            "--to",
            "implementer-agent",
            "--format",
            "json",
            "--set",
            &set,
        ];
        let made = env.handoff_in(folder, &args).success().stdout;
        let made: Value = serde_json::from_str(&made).unwrap();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (text("workspace_path"), text("workspace_type"))
    };
    let path = |folder: &Path| folder.to_str().unwrap().to_owned();
    // Wherever it is typed.
    for folder in [&repo, &tree] {
        let linked = (path(&tree), "worktree".to_owned());
        assert_eq!(workspace(folder, "issue-87"), linked);
        let main = (path(&repo), "in-place".to_owned());
        assert_eq!(workspace(folder, "enhancement/87-export"), main);
        let (left, kind) = workspace(folder, "nowhere");
        assert!(
            left.starts_with("{{fill") && kind.starts_with("{{fill"),
            "{left} {kind}"
        );
    }
}

/// What is known is filled in where the schema in force takes it; a value that it refuses is asked of
/// the sender, who never wrote it.
#[test]
fn what_the_schema_refuses_is_left_to_the_sender() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "press", "--agents", "writer,editor"])
        .success();
    let folder = Folder::new(&env, "repo/press");
    folder.edit("schemas/writer-to-editor.schema.json", |schema| {
        schema["$defs"] = json!({"topic": {"type": "string", "pattern": "^topic/"}});
        let properties = &mut schema["properties"];
        properties["branch"] = json!({"description": "The topic", "$ref": "#/$defs/topic"});
        properties["number"] = json!({"description": "The number", "type": "string"});
        properties["files"] = json!({"type": "array", "maxItems": 0, "items": {"type": "string"}});
        schema["required"]
            .as_array_mut()
            .unwrap()
            .push(json!("branch"));
    });
    folder.edit("templates/writer-to-editor.json", |template| {
        template["branch"] = json!("{{branch: the topic}}");
        template["number"] = json!("{{issue: its number}}");
        template["files"] = json!(["{{files_changed: all}}"]);
    });
    env.handoff(&["init", "--protocol", "./press"]).success();
    env.git(&env.repo(), &["checkout", "-q", "-b", "moon"]);
    fs::write(env.repo().join("moon.md"), "The moon pulls.").unwrap();
    env.git(&env.repo(), &["add", "moon.md"]);
    env.git(&env.repo(), &["commit", "-q", "-m", "moon"]);
    let new = ["new", "--issue", "7", "--from", "writer", "--to", "editor"];
    let made: Value = serde_json::from_str(&env.handoff(&new).success().stdout).unwrap();
    assert_eq!(made["branch"], "{{fill: the topic}}");
    assert_eq!((&made["number"], &made["files"]), (&json!("7"), &json!([])));
    let send = [
        "send",
        "--issue",
        "7",
        "--to",
        "editor",
        "--as",
        "writer",
        "--set",
        "summary=x",
    ];
    let refused = env.handoff(&send).exits(3);
    let refused = refused.says("--set branch").says("the topic");
    assert!(!refused.shown.contains("moon"), "{}", refused.shown);
    env.git(&env.repo(), &["branch", "topic/moon"]);
    env.handoff(&[&send[..], &["--set", "branch=topic/moon"]].concat())
        .success();
    // A branch that it takes is filled in.
    env.git(&env.repo(), &["checkout", "-q", "-b", "topic/tides"]);
    let of_8 = [&["send", "--issue", "8"], &send[3..]].concat();
    env.handoff(&of_8).success();
    env.handoff(&["show", "8.1"]).success().says("topic/tides");
    env.assert_sound();
}
