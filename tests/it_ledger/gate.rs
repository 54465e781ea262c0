//! What an issue must show before a merge.

use insta::assert_snapshot;
use serde_json::{Value, json};
use test_support::contracts::{Format, opening, sample};
use test_support::time;
use test_support::workflow::{Step, workflow};
use test_support::{Ran, TestEnvironment};

/// Whether the gate is open, by the exit code and by the answer.
fn is_open(env: &TestEnvironment, args: &[&str]) -> bool {
    let args = [&["gate", "--json"], args].concat();
    let ran = env.handoff(&args);
    let data = match ran.status {
        0 => ran.json()["data"].clone(),
        1 => ran.json()["data"].clone(),
        _ => panic!("{}", ran.shown),
    };
    assert_eq!(
        data["passed"],
        Value::Bool(ran.status == 0),
        "{}",
        ran.shown
    );
    ran.status == 0
}

#[test]
fn the_gate_follows_the_issue() {
    let env = TestEnvironment::with_ledger();
    let mut open = Vec::new();
    // A merge that is not on the base passes no gate.
    let merge = env.git(&env.repo(), &["rev-parse", "--short=12", "main"]);
    for step in workflow(|_| Format::Xml) {
        match step {
            Step::Send(contract) => env
                .send(contract.replace("e60b8d1f7a2c", merge.trim()))
                .success(),
            Step::Run(args) => env.handoff(args).success(),
        };
        let asked = |name| is_open(&env, &["--issue", "87", "--require", name]);
        let now = (asked("approved"), asked("validated"), asked("completed"));
        assert_eq!(
            is_open(&env, &["--issue", "87"]),
            now.0,
            "approved is the default"
        );
        let both = is_open(&env, &["--issue", "87", "--require", "approved,validated"]);
        assert_eq!(both, now.0 && now.1);
        if open.last() != Some(&now) {
            open.push(now);
        }
    }
    // The review approves, validation sends it back, the next review approves.
    assert_eq!(
        open,
        [
            (false, false, false),
            (true, false, false),
            (false, false, false),
            (true, false, false),
            (true, true, false),
            (true, true, true),
        ]
    );
    env.assert_sound();
}

/// An issue that was approved; its branch has one commit.
fn approved() -> TestEnvironment {
    approved_by(|_| "desk", |_| "desk@example.com")
}

/// The same; each agent is this worker and commits to the ledger with this address.
fn approved_by(
    worker: impl Fn(&'static str) -> &'static str,
    committer: impl Fn(&'static str) -> &'static str,
) -> TestEnvironment {
    approved_in(TestEnvironment::with_ledger(), worker, committer)
}

/// The same, in this ledger.
fn approved_in(
    env: TestEnvironment,
    worker: impl Fn(&'static str) -> &'static str,
    committer: impl Fn(&'static str) -> &'static str,
) -> TestEnvironment {
    let branch = sample("prep-agent-to-implementer-agent", Format::Xml, 87)
        .split("<branch>")
        .nth(1)
        .and_then(|rest| Some(rest.split("</branch>").next()?.to_owned()))
        .unwrap();
    env.git(&env.repo(), &["checkout", "-q", "-b", &branch]);
    env.git(
        &env.repo(),
        &["commit", "-q", "--allow-empty", "-m", "Work"],
    );
    for (agent, contract) in [
        ("", "issue-manager-to-prep-agent"),
        ("prep-agent", "prep-agent-to-implementer-agent"),
        ("implementer-agent", "implementer-agent-to-reviewer-agent"),
        ("reviewer-agent", "reviewer-agent-to-validator-agent"),
    ] {
        env.git(&env.repo(), &["config", "user.email", committer(agent)]);
        let worker = ["--worker", worker(agent)];
        if !agent.is_empty() {
            let claim = ["claim", "87", "--as", agent];
            env.handoff(&[&claim[..], &worker].concat()).success();
        }
        let contract = sample(contract, Format::Xml, 87);
        env.handoff_with(&[&["send", "-"][..], &worker].concat(), contract)
            .success();
    }
    env
}

#[test]
fn who_wrote_the_code_does_not_approve_it_if_the_gate_asks_for_another() {
    let env = approved();
    let refused = |env: &TestEnvironment, name: &str| {
        assert!(is_open(env, &["87"]), "approved is met");
        env.handoff(&["gate", "87", "--require", name])
            .exits(1)
            .stdout
    };
    assert_snapshot!(refused(&env, "other-worker"), @"✗ not other-worker: worker desk sent both 87.3 and 87.4");
    assert_snapshot!(refused(&env, "other-committer"), @"✗ not other-committer: committer desk@example.com sent both 87.3 and 87.4");
    assert_snapshot!(refused(&env, "other-key"), @"✗ not other-key: the key that sent 87.4 is not known");

    let env = approved_by(
        |_| "desk",
        |agent| match agent {
            "reviewer-agent" => "robin@example.com",
            _ => "desk@example.com",
        },
    );
    assert!(is_open(
        &env,
        &["87", "--require", "approved,other-committer"]
    ));
    refused(&env, "other-worker");

    let env = approved_by(
        |agent| {
            if agent == "reviewer-agent" {
                "robins-desk"
            } else {
                "desk"
            }
        },
        |_| "desk@example.com",
    );
    assert!(is_open(&env, &["87", "--require", "approved,other-worker"]));
    refused(&env, "other-committer");
}

#[test]
fn an_approval_is_of_the_code_that_was_reviewed() {
    let env = approved();
    let reviewed = commit_at(&env, "HEAD");
    assert!(is_open(&env, &["--issue", "87", "--head", "HEAD"]));
    // The same files under another message, as after a rebase.
    env.git(
        &env.repo(),
        &[
            "commit",
            "-q",
            "--amend",
            "--allow-empty",
            "-m",
            "Other words",
        ],
    );
    assert!(is_open(&env, &["--issue", "87", "--head", "HEAD"]));
    std::fs::write(env.repo().join("late.txt"), "x").unwrap();
    env.git(&env.repo(), &["add", "."]);
    env.git(&env.repo(), &["commit", "-q", "-m", "After the review"]);
    assert!(!is_open(&env, &["--issue", "87", "--head", "HEAD"]));
    assert_snapshot!(env.handoff(&["gate", "--issue", "87", "--head", "HEAD"]).exits(1).shown, @"
    $ git handoff gate --issue 87 --head HEAD
    ✗ not approved: 87.4 (reviewer-agent-to-validator-agent) by reviewer-agent is about commit [commit], not [commit]: commit [commit] does not bring the same changes
    --- stderr
    error: issue 87 is not approved
    hint: validator-agent's turn with 87.4, no other agent can act: `git handoff claim 87.4 --as validator-agent`
    --- exit 1
    ");
    // The branch is what is merged, if no commit is named; once it is gone, what was merged.
    env.handoff(&["gate", "87"])
        .exits(1)
        .says("the same changes, and ")
        .says(" is at [commit]");
    let branch = env.git(&env.repo(), &["branch", "--show-current"]);
    env.git(&env.repo(), &["checkout", "-q", "main"]);
    env.git(&env.repo(), &["merge", "-q", "--ff-only", &reviewed]);
    env.git(&env.repo(), &["branch", "-q", "-D", branch.trim()]);
    env.handoff(&["gate", "87"])
        .success()
        .says("; it is merged into main");
}

#[test]
fn an_approval_that_was_turned_down_is_none() {
    let env = approved();
    assert!(is_open(&env, &["--issue", "87"]));
    let reject = ["reject", "87", "--as", "validator-agent", "--reason", "no"];
    env.handoff(&reject).success();
    assert!(!is_open(&env, &["--issue", "87"]));
}

#[test]
fn a_depth_1_clone_answers() {
    let env = approved();
    let clone = env.root().join("clone");
    let url = format!("file://{}", env.repo().display());
    let args = [
        "clone",
        "-q",
        "--bare",
        "--depth=1",
        "--branch",
        "handoffs",
        &url,
    ];
    env.git(
        env.root(),
        &[&args[..], &[clone.to_str().unwrap()]].concat(),
    );
    env.handoff_in(&clone, &["gate", "--issue", "87"]).success();
    env.handoff_in(&clone, &["gate", "--issue", "87", "--require", "validated"])
        .exits(1);
}

#[test]
fn what_cannot_be_asked_is_said() {
    let env = TestEnvironment::with_ledger();
    env.send(sample("issue-manager-to-prep-agent", Format::Xml, 87))
        .success();
    for (args, code) in [
        (&["--issue", "99"][..], 6),
        (&["--issue", "87", "--require", "blessed"], 2),
        (&["--issue", "87", "--head", "0000000"], 6),
        (&["--issue", "87", "--head", "::error::x"], 6),
        (&["--issue", "87", "--head", ":/[x"], 6),
        (&["--issue", "87", "--head", "HEAD^{/[x}"], 6),
        (&["--issue", "87", "--head", "HEAD@{x"], 6),
        (&["--issue", "87", "--head", "HEAD^{nothing}"], 6),
        (&["--issue", "87", "--head", ""], 6),
        (&["--issue", "../87"], 2),
    ] {
        env.handoff(&[&["gate"], args].concat()).exits(code);
    }
    assert_snapshot!(env.handoff(&["gate", "--issue", "87"]).exits(1).shown, @"
    $ git handoff gate --issue 87
    ✗ not approved: nobody sent reviewer-agent-to-validator-agent
    --- stderr
    error: issue 87 is not approved
    hint: prep-agent's turn with 87.1, no other agent can act: `git handoff claim 87.1 --as prep-agent`
    --- exit 1
    ");
    let elsewhere = TestEnvironment::with_repository();
    elsewhere.handoff(&["gate", "--issue", "87"]).exits(9);
    // What was sent and rejected is named.
    elsewhere
        .handoff(&["init", "--protocol", "review"])
        .success();
    let run = |line: &str, set: &[&str]| {
        let words = line.split(' ').chain(set.iter().copied());
        elsewhere.handoff(&words.collect::<Vec<_>>())
    };
    elsewhere.git(&elsewhere.repo(), &["switch", "-q", "-c", "csv"]);
    work(&elsewhere, "a.txt");
    let set = ["--set", "summary=Header", "--set", "branch=csv"];
    run("send --issue 8 --to reviewer --as coder", &set).success();
    run("reject 8 --as reviewer --reason no", &[]).success();
    run("gate 8", &[])
        .exits(1)
        .says("8.1 (work) yet; it was rejected by reviewer: \"no\"");
}

#[test]
fn a_requirement_that_an_unknown_contract_type_shows_is_a_fault() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "copy", "issue-to-pr", "own"])
        .success();
    let file = env.repo().join("own/protocol.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let gone = text.replace(
        r#""shown_by": ["reviewer-agent-to-validator-agent"]"#,
        r#""shown_by": ["letter"]"#,
    );
    assert_ne!(text, gone);
    std::fs::write(&file, gone).unwrap();
    let told = env.handoff(&["protocol", "check", "own"]).exits(1);
    assert_snapshot!(told.stdout, @"
    own: 4 faults
      129:20 /requirements/other-worker/shown_by/0 protocol.unknown_type no contract type is called `letter`
          define it, or correct the name
      134:20 /requirements/other-committer/shown_by/0 protocol.unknown_type no contract type is called `letter`
          define it, or correct the name
      140:20 /requirements/other-key/shown_by/0 protocol.unknown_type no contract type is called `letter`
          define it, or correct the name
      147:20 /requirements/approved/shown_by/0 protocol.unknown_type no contract type is called `letter`
          define it, or correct the name
    ");
    env.handoff(&["init", "--protocol", "own"]).exits(3);
}

/// An issue whose reviewer is at work; its branch has one commit.
fn in_review() -> TestEnvironment {
    let env = approved();
    let reject = ["reject", "87", "--as", "validator-agent", "--reason", "no"];
    env.handoff(&reject).success();
    env
}

#[test]
fn a_review_says_which_commit_it_is_about() {
    let head = |env: &TestEnvironment| {
        env.git(&env.repo(), &["rev-parse", "HEAD"])
            .trim()
            .to_owned()
    };
    let commit = |env: &TestEnvironment| {
        let args = ["commit", "-q", "--allow-empty", "-m", "Unseen"];
        std::fs::write(env.repo().join("unseen.txt"), "x").unwrap();
        env.git(&env.repo(), &["add", "unseen.txt"]);
        env.git(&env.repo(), &args);
    };
    let names = |id: &str| {
        let contract = sample("reviewer-agent-to-validator-agent", Format::Xml, 87);
        let tag = format!("<reviewed_commit>{id}</reviewed_commit></handoff>");
        contract.replace("</handoff>", &tag)
    };
    let open = |env: &TestEnvironment, id: &str| is_open(env, &["87", "--head", id]);

    // The contract names it, though the branch has moved on.
    let env = in_review();
    let reviewed = head(&env);
    commit(&env);
    env.send(names(&reviewed)).success();
    let code = env.data(&["show", "87.5"])["record"]["code"].take();
    assert_eq!(code["commit"], reviewed);
    assert!(open(&env, &reviewed) && !open(&env, &head(&env)));
    env.assert_sound();

    // A commit that is not here has no files.
    let env = in_review();
    let elsewhere = "5".repeat(40);
    env.send(names(&elsewhere)).success();
    let code = env.data(&["show", "87.5"])["record"]["code"].take();
    assert_eq!(
        (&code["commit"], &code["tree"]),
        (&Value::from(elsewhere), &Value::Null)
    );
    assert!(!open(&env, &head(&env)));
    env.assert_sound();
}

#[test]
fn a_person_other_than_who_wrote_the_code_approves_it() {
    let env = approved();
    let asked = ["87", "--require", "approved-by-person"];
    let approve = |worker: &str, rest: &[&str]| {
        let own = ["approve", "87.4", "--as", "maintainer", "--worker", worker];
        env.handoff(&[&own[..], rest].concat())
    };
    assert_snapshot!(env.handoff(&[&["gate"], &asked[..]].concat()).exits(1).shown, @"
    $ git handoff gate 87 --require approved-by-person
    ✗ not approved-by-person: nobody has approved 87.4 yet; it waits for maintainer
    --- stderr
    error: issue 87 is not approved-by-person
    hint: a person approves it: `git handoff approve 87.4 --as maintainer`; read it first: `git diff [commit] [commit]`
    --- exit 1
    ");
    // No agent is a person.
    let agent = ["approve", "87.4", "--as", "reviewer-agent"];
    assert_snapshot!(env.handoff(&agent).exits(4).shown, @"
    $ git handoff approve 87.4 --as reviewer-agent
    --- stderr
    error: only a person can approve or disapprove; reviewer-agent is an agent
    hint: who can: maintainer; see `git handoff explain not_yours`
    --- exit 4
    ");
    // The approval of whoever sent the code, from the same working tree, is none.
    approve("desk", &[])
        .success()
        .says("\nrecorded; does not count: for approved-by-person, the same worker sent 87.3\n")
        .says("git handoff approve 87.4 --as maintainer --worker NAME\n");
    assert_snapshot!(env.handoff(&[&["gate"], &asked[..]].concat()).exits(1).stderr, @"
    error: issue 87 is not approved-by-person
    hint: a person is a worker of their own: `git handoff approve 87.4 --as maintainer --worker NAME`
    ");
    assert_snapshot!(approve("robin", &["--note", "tried it"]).success().shown, @"
    $ git handoff approve 87.4 --as maintainer --worker robin --note 'tried it'
    87.4 approved at [commit] by maintainer
      commit [commit]
      recorded, but no merge under its protocol asks for it; this does: git handoff gate 87 --require approved-by-person
      for all merges: git handoff protocol set issue-to-pr requirements.approved-by-person true
    ");
    let tip = env.tip();
    approve("robin", &["--note", "tried it"]).success();
    assert_eq!(env.tip(), tip, "the same again writes nothing");
    assert!(is_open(&env, &asked));
    assert!(is_open(&env, &[&asked[..], &["--head", "HEAD"]].concat()));

    // The opposite closes it, until the person approves once more.
    let reject = [
        "reject",
        "87.3",
        "--as",
        "maintainer",
        "--reason",
        "no tests",
    ];
    assert_snapshot!(env.handoff(&reject).success().shown, @"
    $ git handoff reject 87.3 --as maintainer --reason 'no tests'
    87.3 disapproved at [commit] by maintainer
      commit [commit]
      the gate stays closed to this code until maintainer approves it
    ");
    assert!(!is_open(&env, &asked));
    let said = env.handoff(&[&["gate"], &asked[..]].concat()).exits(1);
    said.says("maintainer ends that by an approval: `git handoff approve 87.4 --as maintainer`");
    // A reviewer's approval does not outweigh it.
    let said = env.handoff(&["gate", "87"]).exits(1);
    said.says("✗ not approved: 87.3 disapproved at [commit] by maintainer: \"no tests\"")
        .says("maintainer ends that by an approval: `git handoff approve 87.4 --as maintainer`");
    approve("robin", &[]).success();
    assert!(is_open(&env, &asked) && is_open(&env, &["87"]));

    // It is of the code as it was.
    std::fs::write(env.repo().join("late.txt"), "x").unwrap();
    env.git(&env.repo(), &["add", "."]);
    env.git(&env.repo(), &["commit", "-q", "-m", "After the approval"]);
    let now = [&asked[..], &["--head", "HEAD"]].concat();
    assert!(!is_open(&env, &now));
    let said = env.handoff(&[&["gate"], &now[..]].concat()).exits(1).stderr;
    let again = said.split('`').nth(1).unwrap();
    assert!(
        again.starts_with("git handoff approve 87.4 --as maintainer --head "),
        "{said}"
    );
    approve("robin", &["--head", "HEAD"]).success();
    assert!(is_open(&env, &now));
    let log = env.handoff(&["log", "87", "--event", "approve,disapprove", "--oneline"]);
    assert_eq!(log.success().stdout.lines().count(), 5);
    env.handoff(&["show", "87.4"]).success().says("tried it");

    // What waits for an agent, a person can reject; then its approval is none, and can't be given.
    let reject = ["reject", "87.4", "--as", "maintainer", "--reason", "no"];
    env.handoff(&reject).success().says("rejected");
    assert!(!is_open(&env, &asked));
    assert_snapshot!(approve("robin", &["--head", "HEAD"]).exits(4).stderr, @"
    error: 87.4 is rejected: there is nothing to approve
    hint: `git handoff status 87` shows what came after it
    ");
    env.assert_sound();
}

#[test]
fn a_required_approval_waits_for_its_person_and_holds_the_merge_up() {
    let strict = |definition: &mut Value| {
        definition["requirements"]["approved-by-person"]["merge"] = true.into();
        definition["evidence"] = json!({"policy": "off", "checks": {"merge": "enforce"}});
    };
    let ledger = time::own("issue-to-pr", strict);
    let env = approved_in(ledger, |_| "desk", |_| "desk@example.com");
    let waits = |env: &TestEnvironment| {
        let inbox = env.data(&["inbox", "--as", "maintainer"]);
        let found = inbox["attention"].as_array().unwrap().clone();
        let one = |one: &Value| (one["need"].clone(), one["next"].clone());
        found.iter().map(one).collect::<Vec<_>>()
    };
    let due = |id: &str| {
        let next = format!("git handoff approve {id} --as maintainer");
        vec![(Value::from("unapproved"), Value::from(next))]
    };
    assert_eq!(waits(&env), due("87.4"));
    let theirs = ["list", "--person", "maintainer"];
    env.handoff(&theirs).success().says("87.4");
    for screen in ["status", "next", "show", "gate"] {
        let shown = env.handoff(&[screen, "87"]).shown;
        assert!(
            shown.contains("git handoff approve 87.4 --as maintainer"),
            "{shown}"
        );
    }
    let worker = ["--worker", "desk"];
    let claim = ["claim", "87.4", "--as", "validator-agent"];
    env.handoff(&[&claim[..], &worker].concat()).success();
    assert_eq!(waits(&env), due("87.4"));

    // Whoever merges it all the same is refused, before the approval and after a disapproval.
    let branch = env.git(&env.repo(), &["branch", "--show-current"]);
    env.git(&env.repo(), &["checkout", "-q", "main"]);
    let merge = ["merge", "-q", "--no-ff", "-m", "Merge", branch.trim()];
    env.git(&env.repo(), &merge);
    let merge = env.git(&env.repo(), &["rev-parse", "--short=12", "main"]);
    let merged = sample("validator-agent-to-closer-agent", Format::Xml, 87)
        .replace("e60b8d1f7a2c", merge.trim())
        .replace(">rebase<", ">merge<");
    let send = || env.handoff_with(&["send", "-", "--worker", "desk"], merged.clone());
    send()
        .exits(3)
        .says("evidence.approval not approved-by-person: nobody has approved 87.4 yet");
    let say = |verb: &str, rest: &[&str]| {
        let own = [verb, "87.4", "--as", "maintainer", "--worker", "robin"];
        env.handoff(&[&own[..], rest].concat()).success();
    };
    say("reject", &["--reason", "no tests"]);
    assert_eq!(waits(&env), [], "the person has decided");
    send().exits(3).says("87.4 disapproved at [commit]");

    // New code is a new question; an approval lets the merge through.
    say("approve", &[]);
    assert_eq!(waits(&env), []);
    let has_it = "main has it\n";
    env.handoff(&["gate", "87"]).success().says(has_it);
    send().success();
    env.handoff(&["gate", "87"]).success().says(has_it);
    env.assert_sound();
}

/// An issue that ended by an agent's approval still lacks the person's.
#[test]
fn an_ended_issue_lacks_the_approval_of_its_person() {
    let env = time::own("review", |definition| {
        definition["requirements"]["approved-by-person"]["merge"] = true.into();
    });
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    let work = ["commit", "-q", "--allow-empty", "-m", "Work"];
    env.git(&env.repo(), &work);
    let send = |from: &str, to: &str, more: &[&str]| {
        let head = ["send", "--issue", "7", "--to", to, "--as", from];
        let set = ["--set", "summary=Done", "--worker", from];
        env.handoff(&[&head[..], &set, more].concat()).success()
    };
    send("coder", "reviewer", &["--set", "branch=csv"]);
    let claim = ["claim", "7", "--as", "reviewer", "--worker", "reviewer"];
    env.handoff(&claim).success();
    let due = "git handoff approve 7.2 --as maintainer";
    send("reviewer", "end", &[])
        .says("issue 7 is complete")
        .says("7.2 is not approved by a person yet")
        .says(&format!("next, for maintainer: {due}"));
    let next = env.handoff(&["next", "7"]).success();
    next.says("not approved by a person yet").says(due);
    let status = env.handoff(&["status", "7"]).success();
    status.says("waits for approval").says(due);
    // Each view tells it, from the entry that the step wrote.
    let views = [
        &["--as", "maintainer"][..],
        &["status"],
        &["inbox", "--as", "maintainer"],
        #[cfg(feature = "report")]
        &["alerts"],
    ];
    let all_tell = |env: &TestEnvironment, tells: bool| {
        for view in views {
            let shown = env.handoff(view).shown;
            assert_eq!(shown.contains("7.2"), tells, "{shown}");
        }
    };
    all_tell(&env, true);
    #[cfg(feature = "notify")]
    env.handoff(&["notify", "--once", "--exec", "cat", "--json"])
        .says(r#""need":"unapproved""#);
    env.assert_sound();
    env.handoff(&["approve", "7.2", "--as", "maintainer", "--worker", "robin"])
        .success();
    assert!(is_open(&env, &["7"]));
    all_tell(&env, false);
    let next = env.handoff(&["next", "7"]).success();
    assert!(!next.shown.contains(due), "{}", next.shown);
    env.assert_sound();
}

#[test]
fn a_merge_before_its_review_is_told_to_a_person_until_the_issue_ends() {
    let env = TestEnvironment::with_ledger();
    for (agent, to) in [
        ("issue-manager", "prep-agent"),
        ("prep-agent", "implementer-agent"),
        ("implementer-agent", "reviewer-agent"),
    ] {
        if agent != "issue-manager" {
            env.claim("87", agent).success();
        }
        env.send(sample(&format!("{agent}-to-{to}"), Format::Xml, 87))
            .success();
    }
    let needs = |env: &TestEnvironment| {
        let inbox = env.data(&["inbox", "--as", "maintainer"]);
        let found = inbox["attention"].as_array().unwrap().clone();
        let one = |one: &Value| format!("{} {}", one["need"], one["next"]);
        found.iter().map(one).collect::<Vec<_>>()
    };
    assert!(needs(&env).is_empty());
    // As the rule for a merged pull request notes it.
    let note = [
        "annotate",
        "87",
        "--as",
        "orchestrator",
        "--note",
        "The pull request was merged",
        "--fact",
        "merge_sha=e60b8d1f7a2c",
    ];
    env.handoff(&note).success();
    let next = "git handoff cancel 87 --all --as maintainer --reason 'it is merged'";
    assert_eq!(needs(&env), [format!("\"merged\" \"{next}\"")]);
    env.handoff(&["next", "87"]).success().says(next);
    for view in [&["status"][..], &["status", "87"], &["show", "87.3"]] {
        let shown = env.handoff(view).shown;
        assert!(shown.contains("merged before its review"), "{shown}");
    }
    #[cfg(feature = "report")]
    env.handoff(&["alerts"]).says("needs-person").says("87.3");
    env.handoff(&[
        "cancel",
        "87",
        "--all",
        "--as",
        "maintainer",
        "--reason",
        "it is merged",
    ])
    .success();
    assert!(needs(&env).is_empty());
    env.assert_sound();
}

#[test]
fn new_code_takes_a_new_approval() {
    let env = TestEnvironment::with_ledger();
    let mut open = Vec::new();
    // What holds no code is not what a person has to approve.
    env.send(opening(87)).success();
    let approve = ["approve", "87", "--as", "maintainer", "--worker", "robin"];
    env.handoff(&approve).success();
    let gate = ["gate", "87", "--require", "approved-by-person"];
    env.handoff(&gate)
        .exits(1)
        .says("there is nothing to approve yet");
    for step in workflow(|_| Format::Xml) {
        match step {
            Step::Send(contract) => env.send(contract).success(),
            Step::Run(args) => env.handoff(args).success(),
        };
        let is_met = || is_open(&env, &["87", "--require", "approved-by-person"]);
        let before = is_met();
        if env.handoff(&approve).status == 0 && is_met() {
            open.push((before, is_met()));
        }
    }
    let renewed = open.iter().filter(|(before, _)| !before).count();
    assert_eq!(renewed, 3, "by the work and by each fix: {open:?}");
    env.assert_sound();
}

/// `| `skipped` | Agent skipped (e.g., no fixes needed) |`: an agent that skipped its work approves and
/// merges nothing, and every text view says so.
#[test]
fn skipped_work_is_no_approval_and_no_merge() {
    let env = TestEnvironment::with_ledger();
    for (agent, contract) in [
        ("", "issue-manager-to-prep-agent"),
        ("prep-agent", "prep-agent-to-implementer-agent"),
        ("implementer-agent", "implementer-agent-to-reviewer-agent"),
        ("reviewer-agent", "reviewer-agent-to-validator-agent"),
        ("validator-agent", "validator-agent-to-closer-agent"),
    ] {
        if !agent.is_empty() {
            env.claim("87", agent).success();
        }
        let contract = sample(contract, Format::Xml, 87);
        let skipped = ["<review_status>", "<merge_status>"];
        let skipped = skipped.into_iter().fold(contract, |text, at| {
            text.replace(at, &format!("<status>skipped</status>{at}"))
        });
        env.send(skipped).success();
    }
    let ran = env.handoff(&["gate", "87", "--require", "approved,validated"]);
    assert_snapshot!(ran.exits(1).stdout, @"
    ✗ not approved: 87.4 (reviewer-agent-to-validator-agent) says skipped
    ✗ not validated: 87.5 (validator-agent-to-closer-agent) says skipped
    ");
    for args in [
        &["status", "87"][..],
        &["show", "87.4"],
        &["list"],
        &["inbox", "--as", "closer-agent"],
        #[cfg(feature = "agents")]
        &["prime", "--as", "closer-agent"],
    ] {
        env.handoff(args).success().says("skipped");
    }
    env.assert_sound();
}

/// The full id of a commit here.
fn commit_at(env: &TestEnvironment, name: &str) -> String {
    let id = env.git(&env.repo(), &["rev-parse", name]);
    id.trim().to_owned()
}

/// A commit on the code branch, with a file of this name.
fn work(env: &TestEnvironment, file: &str) -> String {
    std::fs::write(env.repo().join(file), "x").unwrap();
    env.git(&env.repo(), &["add", file]);
    env.git(&env.repo(), &["commit", "-q", "-m", file]);
    commit_at(env, "HEAD")
}

#[test]
fn an_approval_is_of_what_its_claim_showed_unless_it_names_another() {
    let env = in_review();
    let shown = commit_at(&env, "HEAD");
    // The branch moves while the reviewer looks, and agents note what they like.
    let unseen = work(&env, "unseen.txt");
    for agent in ["implementer-agent", "reviewer-agent", "orchestrator"] {
        let fact = format!("reviewed_commit={unseen}");
        let note = ["annotate", "87", "--as", agent, "--note", "n", "--fact"];
        env.handoff(&[&note[..], &[&fact]].concat())
            .exits(4)
            .says("cannot note the fact reviewed_commit");
    }
    let new = ["new", "--issue", "87", "--from", "reviewer-agent", "--to"];
    let skeleton = [&new[..], &["validator-agent", "--format", "json"]].concat();
    let says = |ran: Ran, text: &str| assert!(ran.stdout.contains(text), "{}", ran.shown);
    says(env.handoff(&skeleton).success(), &shown);
    let contract = sample("reviewer-agent-to-validator-agent", Format::Xml, 87);
    let sent = env.send(contract).success();
    let (here, reviewed) = (&unseen[..10], &shown[..10]);
    let moved = format!(" is at {here} here, and this approves {reviewed}");
    assert!(sent.stderr.contains(&moved), "{}", sent.shown);
    let again = "`git handoff cancel 87.5 --as reviewer-agent`, and send it again with";
    let again = format!("{again} --set reviewed_commit={unseen}");
    assert!(sent.stderr.contains(&again), "{}", sent.shown);
    let diff = format!("`git diff {reviewed} enhancement/87-csv-export` shows the difference");
    assert!(sent.stderr.contains(&diff), "{}", sent.shown);
    says(sent, &format!(" at {}", &shown[..10]));
    says(env.handoff(&["show", "87.5"]).success(), &shown[..10]);
    assert!(!is_open(&env, &["87"]), "the branch is elsewhere");
    assert!(is_open(&env, &["87", "--head", &shown]));
    assert!(!is_open(&env, &["87", "--head", &unseen]));
    // As it was printed.
    env.handoff(&["cancel", "87.5", "--as", "reviewer-agent"])
        .success();
    let set = format!("reviewed_commit={unseen}");
    let send = ["send", "--issue", "87", "--to", "validator-agent", "--as"];
    let values = ["reviewer-agent", "--set", "summary=good", "--set", &set];
    let sent = env.handoff(&[&send[..], &values].concat()).success();
    assert!(!sent.stderr.contains("here, and this"), "{}", sent.shown);
    assert!(is_open(&env, &["87", "--head", &unseen]));
    env.assert_sound();
}

/// Sends a sample of this contract as the agent that it is from, which claims what it was sent.
fn step(env: &TestEnvironment, agent: &str, contract: &str) {
    env.claim("87", agent).success();
    let contract = sample(contract, Format::Xml, 87);
    env.send(contract).success();
}

#[test]
fn an_objection_outlives_whoever_it_is_not_from() {
    let objected_to = |env: TestEnvironment| {
        step(&env, "validator-agent", "validator-agent-to-fixer-agent");
        assert!(!is_open(&env, &["87"]));
        env
    };
    let objected = || objected_to(approved());
    let head = |env: &TestEnvironment| commit_at(env, "HEAD");
    let is_open_at = |env: &TestEnvironment| is_open(env, &["87", "--head", &head(env)]);

    // Its receiver rejects the work, the orchestrator cancels it: the objection stays.
    for (verb, agent) in [("reject", "fixer-agent"), ("cancel", "orchestrator")] {
        let env = objected();
        env.handoff(&[verb, "87.5", "--as", agent, "--reason", "no"])
            .success();
        assert!(!is_open(&env, &["87"]), "{agent}");
        env.handoff(&["gate", "87"]).exits(1).says("87.5");
    }
    // Who raised it, or a person, takes it back.
    for agent in ["validator-agent", "maintainer"] {
        let env = objected();
        env.handoff(&["cancel", "87.5", "--as", agent, "--reason", "no"])
            .success();
        assert!(is_open_at(&env), "{agent}");
    }
    // The same commit, approved again by another, does not end it; other code does.
    let env = objected();
    step(&env, "fixer-agent", "fixer-agent-to-reviewer-agent");
    step(&env, "reviewer-agent", "reviewer-agent-to-validator-agent");
    assert!(!is_open_at(&env));
    env.handoff(&["gate", "87"])
        .exits(1)
        .says("validator-agent objects with 87.5 to")
        .says("which 87.7 approves")
        .says("or a person's: `git handoff approve 87.7 --as maintainer`");
    let approve = ["approve", "87.7", "--as", "maintainer", "--worker", "robin"];
    env.handoff(&approve).success();
    assert!(is_open_at(&env));
    let reject = [
        "reject",
        "87.7",
        "--as",
        "validator-agent",
        "--reason",
        "no",
    ];
    env.handoff(&reject).success();
    // Nor does a commit that changes nothing, or the same change on a newer base.
    let empty = ["commit", "-q", "--allow-empty", "-m", "Fixed"];
    let onto = |env: &TestEnvironment| {
        let branch = env.git(&env.repo(), &["branch", "--show-current"]);
        env.git(&env.repo(), &["checkout", "-q", "main"]);
        work(env, "base.txt");
        env.git(&env.repo(), &["checkout", "-q", branch.trim()]);
        env.git(&env.repo(), &["rebase", "-q", "main"]);
    };
    for (number, ends) in [false, false, true].into_iter().enumerate() {
        let change = |env: &TestEnvironment| match number {
            0 => drop(env.git(&env.repo(), &empty)),
            1 => onto(env),
            _ => drop(work(env, "fix.txt")),
        };
        let fix = |env: &TestEnvironment, change: &dyn Fn(&TestEnvironment)| {
            env.claim("87", "fixer-agent").success();
            change(env);
            let fixed = sample("fixer-agent-to-reviewer-agent", Format::Xml, 87);
            env.send(fixed).success();
            step(env, "reviewer-agent", "reviewer-agent-to-validator-agent");
        };
        let env = objected();
        fix(&env, &|env| drop(work(env, "first.txt")));
        assert!(is_open_at(&env));
        let objected = head(&env);
        let env = objected_to(env);
        fix(&env, &change);
        assert_eq!(is_open_at(&env), ends, "{number}");
        assert!(!is_open(&env, &["87", "--head", &objected]), "{number}");
        env.assert_sound();
    }
}

#[test]
fn a_commit_is_named_by_what_no_other_can_take() {
    let env = approved();
    let good = commit_at(&env, "HEAD");
    let branch = env.git(&env.repo(), &["branch", "--show-current"]);
    let branch = branch.trim();
    let evil = work(&env, "evil.txt");
    let git = |args: &[&str]| env.git(&env.repo(), args);
    let closed = |name: &str, why: &str| {
        let ran = env.handoff(&["gate", "87", "--head", name]);
        assert_ne!(ran.status, 0, "{}", ran.shown);
        ran.says(why);
    };
    // A tag that has the branch's name, or another commit's id, is not that.
    git(&["tag", branch, &good]);
    closed(branch, "is the name of several");
    closed(&format!("refs/heads/{branch}"), "is about commit");
    git(&["update-ref", &format!("refs/tags/{evil}"), &good]);
    git(&["update-ref", &format!("refs/heads/{evil}"), &good]);
    closed(&evil, "is about commit");
    // Nor is an abbreviation, of which the next commit may take the other half.
    closed(&good[..12], "may be an abbreviated id");
    let told = env.handoff(&["gate", "87", "--head", &good[..12]]);
    assert!(told.stderr.contains(&good), "{}", told.stderr);
    git(&["update-ref", &format!("refs/heads/{}", &evil[..10]), &good]);
    closed(&evil[..10], "may be an abbreviated id");
    assert!(is_open(&env, &["87", "--head", &good]));
    // What git would show in a commit's place is not what is judged.
    git(&["replace", &evil, &good]);
    closed(&evil, "is about commit");
    git(&["replace", "-d", &evil]);
    let tree = |commit: &str| commit_at(&env, &format!("{commit}^{{tree}}"));
    git(&["replace", &tree(&evil), &tree(&good)]);
    closed(&evil, "is about commit");
    git(&["replace", "-d", &tree(&evil)]);
    let info = env.repo().join(".git/info");
    std::fs::create_dir_all(&info).unwrap();
    std::fs::write(info.join("grafts"), format!("{evil} {good}\n")).unwrap();
    closed(&evil, "is about commit");
}

/// A merge is asked about when its issue is done, and often from another branch.
#[test]
fn a_completed_issue_is_found_by_its_branch() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    let commit = ["commit", "-q", "--allow-empty", "-m", "The parcels as CSV"];
    env.git(&env.repo(), &commit);
    for line in [
        "send --issue 7 --to reviewer --as coder --set branch=csv --set summary=Done",
        "claim 7 --as reviewer",
        "send --issue 7 --to end --as reviewer --set summary=Good",
        "gate",
        "checkout main",
        "gate --head csv",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "checkout" => drop(env.git(&env.repo(), &["switch", "-q", words[1]])),
            _ => drop(env.handoff(&words).success()),
        }
    }
    env.handoff(&["gate"])
        .exits(2)
        .says("none has the branch main");
    // None is open: the newest is approved.
    let approve = ["approve", "7", "--as", "maintainer", "--worker", "robin"];
    env.handoff(&approve).success().says("7.2 approved");
}
