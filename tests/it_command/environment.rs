//! Repositories and branches that hold no ledger, and what programs are told.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use test_support::TestEnvironment;
use test_support::contracts::{opening, prepared};
use test_support::files::script;
use test_support::repository_kind::git_knows_tables;

/// Every command that needs a ledger says the same, and exits 9.
fn all_exit_9(env: &TestEnvironment, dir: &Path, code: &str) -> String {
    let contract = env.file("contract.xml", opening(87));
    let commands: [&[&str]; 11] = [
        &["send", &contract],
        &["claim", "87.1", "--as", "prep-agent"],
        &["inbox", "--as", "prep-agent"],
        &["status"],
        &["status", "87"],
        &["show", "87.1"],
        &["context", "87"],
        &["list"],
        &["log"],
        &["verify"],
        &["reopen", "87", "--as", "prep-agent", "--reason", "x"],
    ];
    let mut shown = String::new();
    for args in commands {
        let ran = env.handoff_in(dir, args).exits(9);
        assert!(ran.stdout.is_empty(), "{}", ran.shown);
        shown = ran.stderr;
        let mut args = args.to_vec();
        args.push("--json");
        let ran = env.handoff_in(dir, &args).exits(9);
        let document = ran.json();
        assert_eq!(document["ok"], false);
        assert_eq!(document["error"]["code"], code, "{document:#}");
        assert!(document["error"]["hint"].is_string(), "{document:#}");
        assert!(ran.stderr.is_empty(), "{}", ran.shown);
    }
    // Where there is no ledger, a contract is checked against the built-in
    // protocol; a branch that is something else leaves open by which rules.
    let status = if code == "not_a_ledger" { 9 } else { 0 };
    env.handoff_in(dir, &["check", &contract]).exits(status);
    env.filtered(&shown)
}

#[test]
fn no_repository() {
    let env = TestEnvironment::new();
    let said = all_exit_9(&env, env.root(), "repository");
    insta::assert_snapshot!(said, @"
    error: this is not a Git repository, nor is any folder above it
    hint: change to a repository, or name one with -C DIR; see `git handoff explain repository`
    ");
    let ran = env.handoff(&["-C", "nowhere", "status"]).exits(9);
    insta::assert_snapshot!(ran.shown, @"
    $ git handoff -C nowhere status
    --- stderr
    error: cannot go to nowhere: No such file or directory (os error 2)
    hint: see `git handoff explain directory`
    --- exit 9
    ");
}

#[test]
fn no_ledger() {
    let env = TestEnvironment::with_repository();
    let said = all_exit_9(&env, &env.repo(), "no_ledger");
    insta::assert_snapshot!(said, @"
    error: the repository has no ledger: there is no branch handoffs
    hint: start one with `git handoff init --protocol review`
    ");
    // A branch below the ledger's name.
    env.git(&env.repo(), &["branch", "handoffs/x"]);
    env.handoff(&["init"])
        .exits(2)
        .says("branch handoffs can't be made beside branch handoffs/x")
        .says("--branch NAME");
    env.handoff(&["init", "--branch", "ledger"]).success();
}

#[test]
fn a_branch_that_is_no_ledger() {
    let env = TestEnvironment::with_repository();
    env.git(&env.repo(), &["branch", "handoffs"]);
    let tip = env.tip();
    let said = all_exit_9(&env, &env.repo(), "not_a_ledger");
    insta::assert_snapshot!(said, @"
    error: branch handoffs is not a ledger: it has no ledger.json
    hint: name the ledger's branch with --branch, or start one on another branch: `git handoff init --branch NAME`; if it was one, `git handoff doctor` names the commit that destroyed it
    ");
    // It is its owner's: nothing is said of deleting it, and the hooks let it move.
    let removed = env.handoff(&["uninstall"]).success();
    assert_eq!(removed.stdout, "nothing was installed here\n");
    let doctor = env.handoff(&["doctor"]).exits(1);
    assert!(!doctor.shown.contains("quarantine"), "{}", doctor.shown);
    env.handoff(&["hooks", "install"]).success();
    env.git(&env.repo(), &["switch", "-q", "handoffs"]);
    env.git(
        &env.repo(),
        &["commit", "-q", "--allow-empty", "-m", "Mine"],
    );
    env.git(&env.repo(), &["reset", "-q", "--hard", "HEAD~1"]);
    env.git(&env.repo(), &["switch", "-q", "main"]);
    env.git(&env.repo(), &["branch", "-m", "handoffs", "mine"]);
    env.git(&env.repo(), &["branch", "-m", "mine", "other"]);
    env.handoff(&["hooks", "uninstall"]).success();
    env.git(&env.repo(), &["branch", "-m", "other", "handoffs"]);
    env.handoff(&["init"]).exits(9).says("is not a ledger");
    assert_eq!(env.tip(), tip);
    env.handoff(&["init", "--branch", "ledger"]).success();
    env.send(opening(87)).success();
    assert_eq!(env.tip(), tip);
    // One that was a ledger is a damaged one.
    let worktree = env.root().join("tree");
    let worktree = worktree.to_str().unwrap();
    env.git(
        &env.repo(),
        &["worktree", "add", "-q", "--detach", worktree, "ledger"],
    );
    let dir = Path::new(worktree);
    env.git(dir, &["rm", "-q", "ledger.json"]);
    env.git(dir, &["commit", "-q", "-m", "By hand"]);
    let head = env.git(dir, &["rev-parse", "HEAD"]);
    env.git(
        &env.repo(),
        &["update-ref", "refs/heads/ledger", head.trim()],
    );
    env.handoff(&["verify"]).exits(10).says("ledger.json");
    assert_eq!(
        env.git(&env.repo(), &["config", "handoff.branch"]),
        "ledger\n"
    );
}

/// A repository with one commit and these formats.
fn of_formats(env: &TestEnvironment, formats: &[&str]) -> PathBuf {
    let args = [&["init", "-q"], formats, &["repo"]].concat();
    env.git(env.root(), &args);
    let repo = env.repo();
    env.git(&repo, &["commit", "-q", "--allow-empty", "-m", "Start"]);
    repo
}

#[test]
fn a_repository_of_an_unknown_format_is_refused() {
    if !git_knows_tables() {
        return;
    }
    for (key, value, said) in [
        (
            "core.repositoryformatversion",
            "2",
            "unsupported repository version 2",
        ),
        (
            "extensions.objectformat",
            "sha512",
            "unknown object format 'sha512'",
        ),
        (
            "extensions.compatobjectformat",
            "sha256",
            "extensions.compatObjectFormat is not supported",
        ),
        (
            "extensions.refstorage",
            "cloud",
            "unknown ref storage format 'cloud'",
        ),
        (
            "extensions.novelty",
            "true",
            "unsupported extension name extensions.novelty",
        ),
    ] {
        let env = TestEnvironment::new();
        let repo = of_formats(&env, &["--object-format=sha1", "--ref-format=reftable"]);
        let config = fs::read_to_string(repo.join(".git/config")).unwrap();
        env.git(&repo, &["config", key, value]);
        let ran = env.handoff_in(&repo, &["init"]).exits(9).says(said);
        assert!(
            ran.stderr.contains("hint: a ledger needs objects"),
            "{}",
            ran.shown
        );
        let ran = all_exit_9(&env, &repo, "repository");
        assert!(ran.contains(said), "{ran}");
        fs::write(repo.join(".git/config"), config).unwrap();
        assert_eq!(
            env.git(&repo, &["branch", "--format=%(refname)"]),
            "refs/heads/main\n"
        );
    }
}

#[test]
fn tables_of_refs_that_cannot_be_read_are_named() {
    if !git_knows_tables() {
        return;
    }
    let env = TestEnvironment::new();
    let repo = of_formats(&env, &["--ref-format=reftable"]);
    env.handoff(&["init"]).success();
    env.send(opening(87)).success();
    let tables = repo.join(".git/reftable");
    let list = tables.join("tables.list");
    let names = fs::read_to_string(&list).unwrap();
    let newest = tables.join(names.lines().last().unwrap());
    let whole = fs::read(&newest).unwrap();
    let mut newer = whole.clone();
    newer[4] = 9;
    for (file, spoiled, said) in [
        (&list, &b"nothing.ref\n"[..], "reftable: git says: "),
        (&list, &[0; 40], "reftable: git says: "),
        (&list, b"", "reftable/tables.list: it is missing or empty"),
        (&newest, &whole[..whole.len() / 2], "reftable: git says: "),
        (&newest, &newer, "reftable: git says: "),
    ] {
        let kept = fs::read(file).unwrap();
        replace(file, spoiled);
        let contract = env.file("88.xml", opening(88));
        for args in [&["status"][..], &["send", &contract], &["init"]] {
            let ran = env.handoff(args).exits(10).says(said);
            assert!(
                ran.stderr
                    .contains("hint: nothing was written; git keeps its refs there"),
                "{}",
                ran.shown
            );
        }
        replace(file, &kept);
    }
    let away = repo.join(".git/away");
    fs::rename(&tables, &away).unwrap();
    let contract = env.file("88.xml", opening(88));
    for args in [&["status"][..], &["send", &contract], &["init"]] {
        let said = "reftable/tables.list: it is missing or empty";
        let ran = env.handoff(args).exits(10).says(said);
        assert!(ran.stderr.contains("hint: "), "{}", ran.shown);
    }
    fs::rename(&away, &tables).unwrap();
    // What another process holds for good is told by its name; nothing is written.
    let lock = tables.join("tables.list.lock");
    fs::write(&lock, "").unwrap();
    let contract = env.file("88.xml", opening(88));
    let ran = env.handoff(&["send", &contract]).exits(7);
    assert!(
        ran.stderr.contains("reftable/tables.list.lock"),
        "{}",
        ran.shown
    );
    fs::remove_file(&lock).unwrap();
    env.send(opening(88)).success();
    env.assert_sound();
}

#[test]
fn a_git_that_knows_no_tables_is_named_where_it_is_needed() {
    if !git_knows_tables() {
        return;
    }
    let env = TestEnvironment::new();
    let repo = of_formats(&env, &["--ref-format=reftable"]);
    env.handoff(&["init"]).success();
    env.send(opening(87)).success();
    let tip = env.tip();
    let old = env.root().join("old-git");
    let says = "fatal: unknown repository extension found:\\n\\trefstorage\\n";
    let text = format!("#!/bin/sh\nprintf '{says}' >&2\nexit 128\n");
    script(&old.join("git"), text);
    let run = |args: &[&str]| {
        let mut command = env.program(args);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", old.display()));
        env.run(command, args, None)
    };
    let contract = env.file("88.xml", opening(88));
    let needing = |args: &[&str]| {
        run(args)
            .exits(9)
            .says("git is older than 2.45")
            .says("put git 2.45 or later on the PATH");
    };
    needing(&["status"]);
    needing(&["send", &contract]);
    needing(&["hooks", "install"]);
    env.git(&repo, &["remote", "add", "origin", "../server"]);
    env.git(&repo, &["config", "handoff.remote", "origin"]);
    needing(&["fetch"]);
    needing(&["send", &contract]);
    assert_eq!(env.tip(), tip);
}

/// Tables are read-only.
fn replace(file: &Path, bytes: &[u8]) {
    fs::remove_file(file).unwrap();
    fs::write(file, bytes).unwrap();
}

/// Replaces one file of the ledger by a commit of git's own.
fn tamper(env: &TestEnvironment, path: &str, bytes: &str) {
    let repo = env.repo();
    let folder = env.root().join("tamper");
    let folder = folder.to_str().unwrap();
    env.git(
        &repo,
        &["worktree", "add", "-q", "--detach", folder, "handoffs"],
    );
    let dir = Path::new(folder);
    fs::write(dir.join(path), bytes).unwrap();
    env.git(dir, &["commit", "-q", "-a", "-m", "By hand"]);
    env.git(
        &repo,
        &[
            "update-ref",
            "refs/heads/handoffs",
            env.git(dir, &["rev-parse", "HEAD"]).trim(),
        ],
    );
    env.git(&repo, &["worktree", "remove", "--force", folder]);
}

#[test]
fn a_broken_manifest_is_damage() {
    for broken in ["", "{", "[]", "{\"version\":99}", "{\"version\":1}"] {
        let env = TestEnvironment::with_ledger();
        env.send(opening(87)).success();
        tamper(&env, "ledger.json", broken);
        let tip = env.tip();
        for args in [
            &["status"][..],
            &["claim", "87.1", "--as", "prep-agent"],
            &["init"],
        ] {
            let ran = env.handoff(args);
            assert_eq!(ran.status, 10, "{broken:?}: {}", ran.shown);
            assert!(ran.stderr.contains("ledger.json"), "{}", ran.shown);
            assert!(ran.stderr.contains("hint: "), "{}", ran.shown);
        }
        env.send(opening(88)).exits(10);
        env.handoff(&["verify"]).exits(10).says("ledger.json");
        assert_eq!(env.tip(), tip);
    }
}

#[test]
fn damage_to_a_record_is_found_and_stays_where_it_is() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.send(opening(88)).success();
    let path = "issues/87/00/87/0001.json";
    let record = env.git(&env.repo(), &["show", &format!("handoffs:{path}")]);
    tamper(&env, path, &record.replace("\"medium\"", "\"high\""));
    env.handoff(&["verify"]).exits(10).says(path);
    tamper(&env, path, "{}");
    env.handoff(&["show", "87.1"]).exits(10).says(path);
    let damaged = env.handoff(&["verify", "87"]).exits(10);
    insta::assert_snapshot!(damaged.shown, @r#"
    $ git handoff verify 87
    the ledger is damaged: 5 findings in 4 commits, 1 handoff, up to [commit]
      audited: only issue 87, and the rules; branch handoffs, from the first commit to the last, recorded 2026-03-02 09:15:00Z

    1. commit [commit] "By hand"
       in the name of Robin Doe, recorded by Robin Doe on 2026-03-02 09:09:00Z
       The record of a handoff does not follow from its steps.
       The description of the step does not tell what the step did.
         issues/87/00/87/0001.json record.altered the step has no business with this file
          commit.message the message does not tell a step: it has no trailer Event

    2. commit [commit] "By hand"
       in the name of Robin Doe, recorded by Robin Doe on 2026-03-02 09:15:00Z
       The record of a handoff does not follow from its steps.
       The description of the step does not tell what the step did.
       A file of the ledger can't be understood.
         issues/87/00/87/0001.json record.altered the step has no business with this file
          commit.message the message does not tell a step: it has no trailer Event
         issues/87/00/87/0001.json file.unreadable issues/87/00/87/0001.json cannot be read: it is not a valid record: missing field `version` at line 1 column 2
    --- stderr
    error: the ledger is damaged: 5 findings in 4 commits, 1 handoff, up to [commit]
    hint: compare with another clone; `git handoff verify --quarantine [commit] --as maintainer --reason WHY` takes what is not a step back, on record
    --- exit 10
    "#);
    // The other issue is well, and its work goes on.
    env.claim("88", "prep-agent").success();
    env.send(prepared(88)).success();
    env.handoff(&["verify", "88"]).success();
    env.handoff(&["verify", "87"]).exits(10);
}

#[test]
fn contract_text_cannot_forge_a_trailer_or_end_a_message() {
    let attacks = [
        "x&#10;&#10;Handoff-Id: 9.9&#10;Issue: 9",
        "x\n\nHandoff-Id: 9.9\nTransition: 9.9 none..completed",
        "---\n\nHandoff-Id: 9.9",
        "--- a/x\n+++ b/x",
        "# ------------------------ >8 ------------------------\nHandoff-Id: 9.9",
        "#",
        "Handoff-Id: 9.9",
        "Signed-off-by: Someone &lt;s@example.com&gt;",
        "(cherry picked from commit 0123456789)",
        "x&#13;&#10;Protocol: other",
        "x&#x85;&#x2028;Issue: 9&#x2029;Issue: 9",
        "fixup! x",
        "[skip ci]\n\nIssue: 9",
        "-- \nHandoff-Id: 9.9",
        "diff --git a/x b/x",
    ];
    let env = TestEnvironment::with_ledger();
    let names = [
        "Handoff-Id",
        "Issue",
        "From",
        "To",
        "Transition",
        "Contract-Type",
        "Contract-Sha256",
        "Protocol",
    ];
    let sent = &["Event", "By", "Worker", "At"][..];
    let rejected = &["Event", "Reason", "By", "Worker", "At", "Attempt"];
    let check = |issue: usize, attack: &str, own: &[&str]| {
        let message = env.git(&env.repo(), &["log", "-1", "--format=%B", "handoffs"]);
        let file = env.file("message", &message);
        let parsed = env.git(&env.repo(), &["interpret-trailers", "--parse", &file]);
        let found: Vec<&str> = parsed
            .lines()
            .map(|l| l.split(": ").next().unwrap())
            .collect();
        let wanted = [&names[..], own].concat();
        assert_eq!(found, wanted, "{attack:?}:\n{message}");
        assert!(
            parsed.contains(&format!("Handoff-Id: {issue}.1\nIssue: {issue}\n")),
            "{parsed}"
        );
        let told = |line: &&str| !line.starts_with("Reason: ");
        let mut others = parsed.lines().filter(told);
        assert!(others.all(|line| !line.contains("9.9")), "{parsed}");
        // What `git commit --cleanup=scissors` and the like would leave is all of it.
        let stripped = env.run(
            {
                let mut c = env.command("git");
                c.args(["stripspace", "--strip-comments"]);
                c
            },
            &[],
            Some(message.as_bytes()),
        );
        assert_eq!(stripped.stdout.trim(), message.trim(), "{attack:?}");
        assert_eq!(
            message.trim().split("\n\n").count(),
            3,
            "{attack:?}:\n{message}"
        );
    };
    for (number, attack) in attacks.iter().enumerate() {
        let issue = 100 + number;
        let contract = opening(u32::try_from(issue).unwrap())
            .replace(
                "Dispatchers ask for their delivery history as a file",
                attack,
            )
            .replace("Export delivery history as CSV", attack);
        env.send(&contract).success();
        check(issue, attack, sent);
        // The words of a command are no different.
        let reason = attack.replace("&#10;", "\n").replace("&#13;", "\r");
        let id = format!("{issue}.1");
        env.handoff(&[
            "reject",
            &id,
            "--as",
            "prep-agent",
            &format!("--reason={reason}"),
        ])
        .success();
        check(issue, attack, rejected);
        let shown = env.data(&["show", &id]);
        assert_eq!(shown["record"]["transitions"][1]["reason"], reason.as_str());
    }
    let subjects = env.git(&env.repo(), &["log", "--format=%s", "handoffs"]);
    let ours = |s: &str| {
        let done = s.split_once(".1 ").is_some_and(|(issue, done)| {
            let known = ["sent to prep-agent", "rejected"];
            issue.parse::<u32>().is_ok() && known.iter().any(|known| done.starts_with(known))
        });
        s == "Start the ledger" || done
    };
    assert!(subjects.lines().all(ours), "{subjects}");
    env.assert_sound();
}

#[test]
fn annotations_cannot_be_forged() {
    let env = TestEnvironment::with_ledger();
    let attack = "%0A::error::owned\n::error file=x::owned &#10;::set-output name=a::b\r\n::stop-commands::x";
    let contract = opening(87)
        .replace(">medium<", &format!(">{attack}<"))
        .replace("<type>", &format!("<urgency>{attack}</urgency><type>"));
    let file = env.file("a,b:c%0A.xml", contract);
    let ran = env
        .handoff(&["check", "--format", "github", &file])
        .exits(3);
    for line in ran.stdout.lines() {
        assert!(line.starts_with("::error file="), "{line:?}");
        let (properties, message) = line[2..].split_once("::").unwrap();
        assert!(
            properties.contains("a%2Cb%3Ac%250A.xml,line="),
            "{properties}"
        );
        assert!(
            !message.contains("%0A::error::owned") || message.contains("%250A::error::owned"),
            "{message}"
        );
    }
    assert!(
        ran.stdout.matches("\n").count() >= 2 && !ran.stdout.contains('\r'),
        "{}",
        ran.shown
    );
    let clean = env.file("clean.xml", opening(87));
    let ran = env
        .handoff(&["check", "--format", "github", &clean])
        .success();
    assert_eq!(ran.stdout, "");
}

#[test]
fn an_annotation_names_file_line_and_column() {
    let env = TestEnvironment::with_ledger();
    let file = env.file("contract.xml", opening(87).replace(">medium<", ">100%<"));
    let ran = env
        .handoff(&["check", "--format", "github", &file])
        .exits(3);
    insta::assert_snapshot!(ran.shown, @"
    $ git handoff check --format github [root]/contract.xml
    ::error file=[root]/contract.xml,line=8,col=3,title=field.value::/handoff/priority `100%25` is not one of `critical`, `high`, `medium`, `low`%0AHow urgent the work is: critical, high, medium or low
    --- exit 3
    ");
    // What is not in the file is told at the file.
    let early = env.file("early.xml", prepared(87));
    let ran = env
        .handoff(&["check", "--format", "github", &early])
        .exits(4);
    assert!(
        ran.stdout
            .ends_with("early.xml,title=not_opened::issue 87 has not been opened yet\n"),
        "{}",
        ran.shown
    );
}

#[test]
fn json_has_one_shape_for_every_outcome() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let contract = env.file("fine.xml", opening(87));
    let faulty = env.file("faulty.xml", opening(88).replace("medium", "urgent"));
    let early = env.file("early.xml", prepared(87));
    let failing: [(&[&str], i32, &str); 13] = [
        (&["check", &faulty], 3, "contract_refused"),
        (
            &["check", "--format", "json", &faulty],
            3,
            "contract_refused",
        ),
        (&["send"], 2, "usage"),
        (&["status", "--no-such-flag"], 2, "usage"),
        (&["no-such-command"], 2, "usage"),
        (&["claim", "87.1"], 2, "no_agent"),
        (&["status", "../x"], 2, "usage"),
        (&["send", &faulty], 3, "contract_refused"),
        (&["send", &early], 4, "not_claimed"),
        (&["claim", "87.1", "--as", "fixer-agent"], 4, "not_yours"),
        (&["status", "99"], 6, "no_issue"),
        (
            &["claim", "--next", "--as", "fixer-agent"],
            6,
            "nothing_to_claim",
        ),
        (&["status", "--branch", "main"], 9, "not_a_ledger"),
    ];
    for (args, status, code) in failing {
        let mut args = args.to_vec();
        args.push("--json");
        let ran = env.handoff(&args).exits(status);
        let document = ran.json();
        assert_eq!(ran.stderr, "", "{}", ran.shown);
        assert_eq!(document["schema"], "git-handoff/2");
        assert_eq!(document["ok"], false);
        let error = document["error"].as_object().unwrap();
        let names: Vec<&str> = error.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["code", "message", "hint", "findings"],
            "{}",
            ran.shown
        );
        assert_eq!(error["code"], code, "{}", ran.shown);
        assert!(!error["message"].as_str().unwrap().is_empty());
        let findings = error["findings"].as_array().unwrap();
        assert_eq!(
            findings.is_empty(),
            ![1, 3].contains(&status),
            "{}",
            ran.shown
        );
        for finding in findings {
            for name in ["code", "severity", "path", "message"] {
                assert!(finding[name].is_string(), "{finding:#}");
            }
            assert!(
                finding["line"].is_u64() && finding["column"].is_u64(),
                "{finding:#}"
            );
        }
    }
    let fine: [&[&str]; 11] = [
        &["init"],
        &["check", &contract],
        &["send", &contract],
        &["claim", "87", "--as", "prep-agent"],
        &["inbox", "--as", "prep-agent"],
        &["status"],
        &["show", "87.1"],
        &["context", "87"],
        &["list"],
        &["log"],
        &["verify"],
    ];
    for args in fine {
        let mut args = args.to_vec();
        args.push("--json");
        let ran = env.handoff(&args).success();
        let document = ran.json();
        assert_eq!(ran.stderr, "", "{}", ran.shown);
        let names: Vec<&str> = document
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(names, ["schema", "ok", "data"]);
        assert_eq!(
            (&document["schema"], &document["ok"]),
            (&Value::from("git-handoff/2"), &Value::Bool(true))
        );
    }
    insta::assert_snapshot!(env.handoff(&["send", &faulty, "--json"]).exits(3).shown, @r#"
    $ git handoff send [root]/faulty.xml --json
    {
      "schema": "git-handoff/2",
      "ok": false,
      "error": {
        "code": "contract_refused",
        "message": "the contract was refused",
        "hint": "fix the contract (see `git handoff check FILE`) and send it again",
        "findings": [
          {
            "code": "field.value",
            "severity": "error",
            "path": "/handoff/priority",
            "line": 8,
            "column": 3,
            "message": "`urgent` is not one of `critical`, `high`, `medium`, `low`",
            "fix": "How urgent the work is: critical, high, medium or low"
          }
        ]
      }
    }
    --- exit 3
    "#);
}

#[test]
fn terminals_are_not_moved_by_foreign_text() {
    let env = TestEnvironment::with_ledger();
    let attack = "red &#x9b;31m&#x202e;txt.exe &#x7f;";
    let contract = opening(87).replace(
        "Dispatchers ask for their delivery history as a file",
        attack,
    );
    env.send(contract).success();
    for args in [
        &["status"][..],
        &["status", "87"],
        &["show", "87.1"],
        &["list"],
        &["log"],
        &["inbox", "--as", "prep-agent"],
    ] {
        let ran = env.handoff(args).success();
        assert!(
            !ran.stdout.contains(|c: char| c.is_control() && c != '\n'),
            "{:?}",
            ran.stdout
        );
    }
}

#[test]
fn dates_that_git_does_not_take_are_refused() {
    let env = TestEnvironment::with_ledger();
    let tip = env.tip();
    for date in ["@-5 +0000", "@253402300800 +0000", "yesterday"] {
        for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            let mut command = env.program(&["send", &env.file("c.xml", opening(87))]);
            let ended = command.env(name, date).output().unwrap();
            assert_eq!(ended.status.code(), Some(2), "{name}={date}");
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(said.contains(name) && said.contains("hint:"), "{said}");
        }
    }
    assert_eq!(env.tip(), tip);
}

#[test]
fn objects_that_would_be_lost_are_not_written() {
    let env = TestEnvironment::with_ledger();
    let tip = env.tip();
    let elsewhere = env.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut command = env.program(&["send", &env.file("c.xml", opening(87))]);
    command.env("GIT_OBJECT_DIRECTORY", &elsewhere);
    command.env(
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        env.repo().join(".git/objects"),
    );
    let ended = command.output().unwrap();
    assert_eq!(ended.status.code(), Some(9));
    assert_eq!(env.tip(), tip);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn a_symbolic_branch_is_no_place_for_a_ledger() {
    let env = TestEnvironment::with_ledger();
    env.git(&env.repo(), &["branch", "-m", "handoffs", "real"]);
    env.git(
        &env.repo(),
        &["symbolic-ref", "refs/heads/handoffs", "refs/heads/real"],
    );
    env.handoff(&["status"]).success();
    env.send(opening(87)).exits(9).says("symbolic");
    let mut command = env.program(&["--branch", "real", "send", &env.file("c.xml", opening(87))]);
    assert_eq!(command.status().unwrap().code(), Some(0));
}

#[test]
fn a_committer_without_a_usable_name_is_recorded_all_the_same() {
    let env = TestEnvironment::with_ledger();
    let mut command = env.program(&["send", &env.file("c.xml", opening(87))]);
    let ended = command
        .env("GIT_COMMITTER_NAME", "<\u{1}>")
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(0));
    let name = env.git(&env.repo(), &["log", "-1", "--format=%cn", "handoffs"]);
    assert_eq!(name.trim(), "unknown");
    env.assert_sound();
}

#[test]
fn a_record_that_was_tampered_with_is_still_shown() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let path = "issues/87/00/87/0001.json";
    let stored = env.git(&env.repo(), &["show", &format!("handoffs:{path}")]);
    let code = "  \"code\": { \"branch\": \"x\", \"commit\": \"éééééééééééé\", \"tree\": \"\" },\n  \"attempt\"";
    tamper(&env, path, &stored.replacen("  \"attempt\"", code, 1));
    env.handoff(&["show", "87.1"]).success().says("éééééééééé");
    env.handoff(&["verify"]).exits(10);
}
