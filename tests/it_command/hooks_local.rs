//! What git's hooks refuse and let pass in a clone: staged contracts, messages, pushes, moves of refs.

use std::fs;

use insta::assert_snapshot;
use test_support::contracts::{Format, opening, prepared, sample, valid};
use test_support::hooks::{Desk, LOCAL, install, server};
use test_support::{Ran, TestEnvironment, repository_kind};

/// A repository with a ledger and all local hooks.
fn hooked() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    install(&env.repo().join(".git"), &LOCAL);
    env
}

fn put(env: &TestEnvironment, path: &str, bytes: impl AsRef<[u8]>) {
    let file = env.repo().join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, bytes).unwrap();
    env.git(&env.repo(), &["add", path]);
}

fn commit(env: &TestEnvironment, options: &[&str]) -> Ran {
    let args = [&["commit", "-q", "-m", "Contracts"], options].concat();
    env.git_any(&env.repo(), &args)
}

/// The opening contract without one of its elements.
fn without(element: &str) -> String {
    let text = opening(88);
    let (before, rest) = text.split_once(&format!("<{element}>")).unwrap();
    let (_, after) = rest.split_once(&format!("</{element}>")).unwrap();
    format!("{before}{after}")
}

/// A branch of the ledger's name that is none may begin on a remote, and not replace a ledger there.
#[test]
fn what_is_no_ledger_replaces_none() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let bare = server(&env, &[]);
    env.git(&env.repo(), &["push", "-q", "origin", "main", "handoffs"]);
    env.git(
        env.root(),
        &["clone", "-q", bare.to_str().unwrap(), "clone"],
    );
    let clone = env.root().join("clone");
    env.git(&clone, &["branch", "--no-track", "handoffs", "main"]);
    install(&clone.join(".git"), &["pre-push"]);
    let before = env.git(&bare, &["rev-parse", "handoffs"]);
    let ran = env.git_any(&clone, &["push", "-q", "-f", "origin", "handoffs"]);
    assert_ne!(ran.status, 0, "{}", ran.shown);
    assert_eq!(env.git(&bare, &["rev-parse", "handoffs"]), before);
    env.git(env.root(), &["init", "-q", "--bare", "other.git"]);
    let other = env.root().join("other.git");
    env.git(&clone, &["push", "-q", other.to_str().unwrap(), "handoffs"]);
}

#[test]
fn every_fault_of_every_staged_contract_is_told_with_its_place() {
    let env = hooked();
    put(&env, "handoffs/whole.xml", opening(87));
    put(&env, "handoffs/a b/one.xml", without("priority"));
    let two = sample("error", Format::Json, 88)
        .replace("\"issue_number\": 88", "\"issue_number\": \"x\"");
    put(&env, ".handoffs/two.json", two);
    put(&env, "notes.xml", "<notes/>");
    let refused = commit(&env, &[]);
    assert_eq!(refused.status, 1);
    assert_snapshot!(env.filtered(&refused.stderr), @"
    error: 2 staged contracts are incomplete
      4:19 .handoffs/two.json field.type /issue_number: expected a whole number, not the text `x`
          Number of the issue, a whole number from 1 up
      1:1 handoffs/a b/one.xml field.missing /handoff/priority: `priority` is missing
          add `<priority>critical|high|medium|low</priority>`: How urgent the work is: critical, high, medium or low
    hint: fix what the findings name, `git add` it, and commit again; to commit the rest first, unstage it: `git restore --staged FILE` keeps the file. For a file that is not to be sent, such as a sample: `git config --add handoff.contracts '!FILE'`
    ");
    let mut command = env.command(test_support::program());
    command.args(["hook", "pre-commit", "--json"]);
    let told = env.run(command, &[], None).exits(1).json();
    assert_eq!(told["error"]["code"], "hook_refused");
    let first = &told["error"]["findings"][0];
    assert_eq!(first["path"], ".handoffs/two.json");
    assert!(first["line"].is_u64() && first["column"].is_u64());
}

#[test]
fn what_is_staged_counts_and_only_where_it_differs_from_head() {
    let env = hooked();
    put(&env, "handoffs/one.xml", without("priority"));
    fs::write(env.repo().join("handoffs/one.xml"), opening(88)).unwrap();
    assert_eq!(
        commit(&env, &[]).status,
        1,
        "the file is fixed, the index is not"
    );
    // `commit -a` and `commit PATH` bring an index of their own.
    assert_eq!(commit(&env, &["-a"]).status, 0);
    fs::write(env.repo().join("handoffs/one.xml"), without("summary")).unwrap();
    assert_eq!(commit(&env, &["-a"]).status, 1);
    assert_eq!(commit(&env, &["handoffs/one.xml"]).status, 1);
    env.git(
        &env.repo(),
        &[
            "-c",
            "core.hooksPath=/dev/null",
            "commit",
            "-qam",
            "Past the hooks",
        ],
    );
    // What HEAD has already is not judged again, and neither is what goes.
    put(&env, "other.txt", "x");
    assert_eq!(commit(&env, &[]).status, 0);
    env.git(&env.repo(), &["mv", "handoffs/one.xml", "handoffs/two.xml"]);
    assert_eq!(commit(&env, &[]).status, 1);
    env.git(&env.repo(), &["rm", "-qf", "handoffs/two.xml"]);
    assert_eq!(commit(&env, &[]).status, 0);
    // A file that is only intended is no part of the commit.
    fs::write(env.repo().join("handoffs.xml"), "x").unwrap();
    put(&env, "other.txt", "y");
    fs::create_dir_all(env.repo().join("handoffs")).unwrap();
    fs::write(env.repo().join("handoffs/later.xml"), "").unwrap();
    env.git(&env.repo(), &["add", "-N", "handoffs/later.xml"]);
    assert_eq!(commit(&env, &[]).status, 0);
}

#[test]
fn contracts_are_found_wherever_they_lie() {
    let env = hooked();
    let repo = env.repo();
    let bare = valid("issue-to-pr", "error.json");
    let mut faulty = serde_json::from_str::<serde_json::Value>(&bare).unwrap();
    faulty.as_object_mut().unwrap().remove("status");
    let request = valid("delegation", "request.json");
    for (path, text, checked) in [
        ("contract.xml", without("priority"), true),
        ("src/deep/er/Contract.XML", without("priority"), true),
        ("cut-off.xml", opening(88)[..120].to_owned(), true),
        ("whole.xml", opening(88), false),
        ("a b/error.json", faulty.to_string(), true),
        ("wrapped.json", format!("{{\"handoff\": {faulty}}}"), true),
        ("cut-off.json", bare[..bare.len() - 8].to_owned(), true),
        ("whole.json", bare, false),
        // Of other kinds.
        ("contract.txt", without("priority"), false),
        (
            "package.json",
            "{\"name\": \"app\", \"status\": \"x\"}".to_owned(),
            false,
        ),
        ("broken.json", "{\"a\": ".to_owned(), false),
        ("list.json", "[1]".to_owned(), false),
        ("pom.xml", "<project/>".to_owned(), false),
        ("README.md", "# Contracts\n".to_owned(), false),
        // Not of a protocol in force.
        (
            "request.json",
            request.replace("\"priority\"", "\"prio\""),
            false,
        ),
        ("message.md", "HANDOFF: A → B\n\nSTATUS\n".to_owned(), false),
        // Larger than a contract may be.
        (
            "large.xml",
            without("priority") + &" ".repeat(1 << 20),
            false,
        ),
    ] {
        put(&env, path, text);
        let ran = commit(&env, &[]);
        assert_eq!(ran.status, i32::from(checked), "{path}: {}", ran.stderr);
        assert_eq!(ran.stderr.contains(path), checked, "{}", ran.stderr);
        if checked {
            let exclude = ["config", "--add", "handoff.contracts", &format!("!{path}")];
            env.git(&repo, &exclude);
            let passed = commit(&env, &[]);
            assert_eq!(passed.status, 0, "{path}: {}", passed.stderr);
            // The usual folders stay as they are.
            put(&env, "handoffs/any.json", "{}");
            assert_eq!(commit(&env, &[]).status, 1);
            env.git(&repo, &["rm", "-qf", "handoffs/any.json"]);
        }
    }
    // The contracts of a protocol in the working tree are there to be filled in.
    let folder = repo.join("our-way");
    let args = ["protocol", "copy", "issue-to-pr", folder.to_str().unwrap()];
    env.handoff(&args).success();
    env.git(&repo, &["add", "our-way"]);
    assert_eq!(commit(&env, &[]).status, 0);
}

#[test]
fn messages_and_contracts_of_every_protocol_in_force_are_found() {
    let env = hooked();
    for name in ["task-breakdown", "delegation"] {
        env.handoff(&["protocol", "add", name]).success();
    }
    let request = valid("delegation", "request.json");
    for (path, text) in [
        ("notes/message.md", "HANDOFF: A → B\n\nSTATUS\n".to_owned()),
        ("request.json", request.replace("\"priority\"", "\"prio\"")),
        ("contract.xml", without("priority")),
    ] {
        put(&env, path, text);
        let refused = commit(&env, &[]);
        assert_eq!(refused.status, 1, "{path}");
        assert!(refused.stderr.contains(path), "{}", refused.stderr);
        env.git(&env.repo(), &["rm", "-qf", path]);
    }
}

#[test]
fn what_differs_is_found_whatever_git_has_worked_out() {
    let env = hooked();
    let repo = env.repo();
    let check = |faulty: &[&str], when: &str| {
        let ran = env.handoff(&["hook", "pre-commit"]);
        assert_eq!(
            ran.status,
            i32::from(!faulty.is_empty()),
            "{when}: {}",
            ran.stderr
        );
        let named = |path: &&str| ran.stderr.contains(*path);
        for path in ["a/b/one.xml", "a/two.xml", "c.xml", "a.xml/d.xml"] {
            assert_eq!(
                named(&path),
                faulty.contains(&path),
                "{when}: {}",
                ran.stderr
            );
        }
    };
    for path in ["a/b/one.xml", "a/two.xml", "c.xml", "other/file.txt"] {
        put(&env, path, without("priority"));
    }
    let all = ["a/b/one.xml", "a/two.xml", "c.xml"];
    check(&all, "before the first commit of them");
    env.git(&repo, &["write-tree"]);
    check(&all, "all trees known");
    let past = ["-c", "core.hooksPath=/dev/null", "commit", "-qm", "Past"];
    env.git(&repo, &past);
    check(&[], "nothing staged");
    env.git(&repo, &["read-tree", "--empty"]);
    check(&[], "nothing left");
    env.git(&repo, &["add", "."]);
    check(&[], "no tree known");
    env.git(&repo, &["read-tree", "HEAD"]);
    put(&env, "other/file.txt", "x");
    check(&[], "another folder changed");
    put(&env, "a/b/one.xml", without("summary"));
    check(&["a/b/one.xml"], "one changed");
    env.git(&repo, &["write-tree"]);
    check(&["a/b/one.xml"], "one changed, all trees known");
    put(&env, "a/b/one.xml", opening(88));
    check(&[], "it is complete");
    // A folder in a file's place, and a file in a folder's.
    env.git(&repo, &["rm", "-rqf", "a"]);
    put(&env, "a.xml/d.xml", without("priority"));
    check(&["a.xml/d.xml"], "another folder");
    env.git(&repo, &past);
    env.git(&repo, &["rm", "-rqf", "a.xml"]);
    put(&env, "a.xml", opening(88));
    check(&[], "a file in a folder's place");
}

#[test]
fn a_contract_of_a_protocol_that_is_not_in_force_is_said_to_be_one() {
    let env = hooked();
    let valid = valid("delegation", "request.json");
    let faulty = valid.replace("\"priority\"", "\"prio\"");
    for text in [&valid, &faulty] {
        let file = env.file("request.json", text);
        for args in [["check", &file], ["send", &file]] {
            let ran = env.handoff(&args);
            assert_ne!(ran.status, 0);
            let told = format!("{}{}", ran.stdout, ran.stderr);
            let named = "contract.not_in_force this is a contract of protocol delegation, of type request, and delegation is not in force in this ledger";
            assert!(told.contains(named), "{told}");
            assert!(
                told.contains("`git handoff protocol add delegation`"),
                "{told}"
            );
            assert!(!told.contains("field.missing"), "{told}");
        }
        put(&env, "handoffs/request.json", text);
        let refused = commit(&env, &[]);
        assert_eq!(refused.status, 1);
        assert!(
            refused
                .stderr
                .contains("handoffs/request.json contract.not_in_force"),
            "{}",
            refused.stderr
        );
    }
    env.handoff(&["protocol", "add", "delegation"]).success();
    let file = env.file("request.json", &valid);
    env.handoff(&["check", &file]).success();
    // What is of a protocol in force is judged under that.
    let own = env.file("own.xml", without("priority"));
    env.handoff(&["check", &own]).exits(3).says("field.missing");
}

#[test]
fn every_shipped_protocol_is_known_when_it_is_not_in_force() {
    for (name, file, text) in [
        ("orchestrator-specialist", "request.json", None),
        ("task-breakdown", "planning-to-execution.json", None),
        (
            "task-breakdown",
            "message.md",
            Some("environment-message.md"),
        ),
        ("directive", "handoff.json", None),
    ] {
        let env = TestEnvironment::with_ledger();
        let text = valid(name, text.unwrap_or(file));
        let file = env.file(file, text);
        let ran = env.handoff(&["check", &file]).exits(3);
        let named = format!("a contract of protocol {name}");
        assert!(ran.stdout.contains(&named), "{}", ran.stdout);
    }
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "directive"]).success();
    let file = env.file("contract.xml", without("priority"));
    let ran = env.handoff(&["check", &file]).exits(3);
    assert!(
        ran.stdout.contains("a contract of protocol issue-to-pr"),
        "{}",
        ran.stdout
    );
}

#[test]
fn paths_are_configured_as_patterns() {
    let env = hooked();
    let repo = env.repo();
    for pattern in ["docs/*.xml", "in/**", "!in/schemas/**"] {
        env.git(&repo, &["config", "--add", "handoff.contracts", pattern]);
    }
    for (path, checked) in [
        ("handoffs/a.xml", false),
        ("docs/a.xml", true),
        ("docs/a.json", false),
        ("in/deep/er/a.json", true),
        ("in/a.JSON", true),
        ("in/a.txt", false),
        ("in/schemas/a.json", false),
        ("within/a.json", false),
    ] {
        put(&env, path, "{}");
        let status = commit(&env, &[]).status;
        assert_eq!(status, i32::from(checked), "{path}");
        env.git(&repo, &["rm", "-qf", "--ignore-unmatch", path]);
        env.git(
            &repo,
            &[
                "-c",
                "core.hooksPath=/dev/null",
                "commit",
                "-qm",
                "x",
                "--allow-empty",
            ],
        );
    }
}

#[test]
fn a_pattern_that_is_none_refuses() {
    let env = hooked();
    let repo = env.repo();
    put(&env, "handoffs/a.xml", "{}");
    for pattern in ["[", "handoffs/[a-", "!docs/["] {
        env.git(&repo, &["config", "handoff.contracts", pattern]);
        let refused = commit(&env, &[]);
        assert_eq!(refused.status, 1, "{pattern}");
        let told = format!("error: handoff.contracts: {pattern:?} is not a pattern for paths");
        assert!(refused.stderr.starts_with(&told), "{}", refused.stderr);
    }
    for pattern in ["docs/[ab]*", "\\[", "a**b", "[]x]", "[^a]/***"] {
        env.git(&repo, &["config", "handoff.contracts", pattern]);
        let passed = commit(&env, &["--allow-empty"]);
        assert_eq!(passed.status, 0, "{pattern}: {}", passed.stderr);
    }
}

#[test]
fn an_index_in_any_form_is_read() {
    for form in ["2", "3", "4", "split", "sparse"] {
        let env = hooked();
        let repo = env.repo();
        for number in 0..40 {
            put(&env, &format!("hand{number}/file-{number}.txt"), "x");
        }
        put(&env, "handoffs/whole.xml", opening(87));
        assert_eq!(commit(&env, &[]).status, 0, "{form}");
        match form {
            "split" => env.git(&repo, &["update-index", "--split-index"]),
            "sparse" => env.git(
                &repo,
                &[
                    "sparse-checkout",
                    "set",
                    "--cone",
                    "--sparse-index",
                    "handoffs",
                ],
            ),
            "3" => {
                env.git(&repo, &["update-index", "--index-version", "3"]);
                env.git(
                    &repo,
                    &["update-index", "--skip-worktree", "hand1/file-1.txt"],
                )
            }
            version => env.git(&repo, &["update-index", "--index-version", version]),
        };
        put(&env, "handoffs/z.xml", without("priority"));
        let refused = commit(&env, &[]);
        assert_eq!(refused.status, 1, "{form}");
        assert!(
            refused.stderr.contains("handoffs/z.xml"),
            "{form}: {}",
            refused.stderr
        );
        put(&env, "handoffs/z.xml", opening(90));
        let passed = commit(&env, &[]);
        assert_eq!(passed.status, 0, "{form}: {}", passed.stderr);
    }
}

#[test]
fn markdown_is_a_contract_where_it_begins_as_one() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "directive"]).success();
    install(&env.repo().join(".git"), &LOCAL);
    put(
        &env,
        "handoffs/README.md",
        "# Contracts\n\nThey are kept here.\n",
    );
    assert_eq!(commit(&env, &[]).status, 0);
    for mark in ["", "\u{feff}"] {
        let message = format!("{mark}HANDOFF: A → B\n\nSTATUS\n");
        put(&env, "handoffs/message.md", message);
        assert_eq!(commit(&env, &[]).status, 1, "{mark:?}");
    }
}

#[test]
fn a_gate_that_cannot_tell_refuses() {
    // The folder of the protocol in force is missing.
    let env = hooked();
    put(&env, "handoffs/a.xml", opening(88));
    let broken = env.git(
        &env.repo(),
        &["rev-parse", "handoffs:protocols/issue-to-pr"],
    );
    let loose = |id: &str| {
        env.repo()
            .join(".git/objects")
            .join(&id[..2])
            .join(&id[2..])
    };
    let (broken, kept) = (loose(broken.trim()), env.root().join("kept"));
    fs::rename(&broken, &kept).unwrap();
    let refused = commit(&env, &[]);
    assert_eq!(refused.status, 1);
    assert!(refused.stderr.contains("hint: "), "{}", refused.stderr);
    fs::rename(&kept, &broken).unwrap();
    assert_eq!(commit(&env, &[]).status, 0);
}

#[test]
fn where_a_ledger_was_only_that_one_comes_back() {
    let env = hooked();
    let repo = env.repo();
    env.send(opening(87)).success();
    let tip = env.tip();
    let past = |args: &[&str]| {
        env.git(&repo, &[&["-c", "core.hooksPath=/dev/null"], args].concat());
    };
    past(&["branch", "-D", "handoffs"]);
    put(&env, "handoffs/a.xml", opening(88));
    let refused = commit(&env, &[]);
    assert_eq!(refused.status, 1);
    let way = format!("`git branch handoffs {tip}` brings it back");
    assert!(refused.stderr.contains(&way), "{}", refused.stderr);
    let older = env.git_any(&repo, &["branch", "handoffs", &format!("{tip}~1")]);
    assert_ne!(older.status, 0);
    assert!(
        older.stderr.contains("history.rewritten"),
        "{}",
        older.stderr
    );
    env.git(&repo, &["branch", "handoffs", &tip]);
    assert_eq!(commit(&env, &[]).status, 0);
}

#[test]
fn a_message_on_the_ledgers_branch_is_what_the_step_wants_after_gits_clean_up() {
    let source = TestEnvironment::with_ledger();
    source.send(opening(87)).success();
    let desk = Desk::new(&source, 1);
    let step = &desk.steps[1];
    desk.stage(step);
    let refused = desk.commit(&step.author, "Open 87\n", &[]);
    assert_eq!(refused.status, 1);
    assert_snapshot!(desk.env.filtered(&refused.stderr), @"
    error: this commit on branch handoffs is not a step that the ledger accepts
      issues/87/00/87/0001-issue-manager-to-prep-agent.xml file.stray the step has no business with this file
      issues/87/00/87/0001.json file.stray the step has no business with this file
      issues/87/00/87/issue.json file.stray the step has no business with this file
      open/prep-agent/ready.medium.issue-to-pr.20260302T090500000.-.87.1.json file.stray the step has no business with this file
       commit.message the message does not tell a step: it has no trailer Event
    hint: nothing was committed, and your files are unchanged. `git checkout --detach` keeps them and frees the branch, so that `git handoff` (send, claim, complete …) can make the step; `git handoff help hooks.md` explains how to make one by hand
    ");
    // Without an editor, comments stay in the message, and blanks go.
    let commented = format!("{}# by hand\n", step.message);
    assert_eq!(desk.commit(&step.author, &commented, &[]).status, 1);
    let editor = |file: &str| {
        let path = desk.env.file(
            "editor",
            format!("#!/bin/sh\ncat {file} \"$1\" > \"$1.new\"; mv \"$1.new\" \"$1\"\n"),
        );
        desk.env.git(
            desk.env.root(),
            &["config", "--global", "core.editor", &format!("sh {path}")],
        );
    };
    editor(&desk.env.file(
        "message",
        format!("\n\n{}   \n", step.message.replace('\n', "  \n")),
    ));
    let mut command = desk.env.command("git");
    command
        .args(["commit", "-q", "-v"])
        .env("GIT_AUTHOR_NAME", &step.author[0])
        .env("GIT_AUTHOR_EMAIL", &step.author[1])
        .env("GIT_AUTHOR_DATE", &step.author[2])
        .current_dir(&desk.ledger);
    let made = desk.env.run(command, &[], None);
    assert_eq!(made.status, 0, "{}", made.stderr);
    desk.env.assert_sound();
}

#[test]
fn other_branches_are_nobodys_business() {
    let env = hooked();
    let repo = env.repo();
    assert_eq!(commit(&env, &["--allow-empty"]).status, 0);
    for args in [
        &["checkout", "-q", "-b", "work"][..],
        &["commit", "-q", "--allow-empty", "-m", "a"],
        &["commit", "-q", "--allow-empty", "--amend", "-m", "b"],
        &["reset", "-q", "--hard", "HEAD~1"],
        &["tag", "one"],
        &["branch", "two"],
        &["branch", "-m", "two", "three"],
        &["branch", "-D", "three"],
        &["worktree", "add", "-q", "../else"],
        &["stash", "list"],
        &["checkout", "-q", "--detach"],
    ] {
        env.git(&repo, args);
    }
}

#[test]
fn no_local_command_takes_a_step_away() {
    let env = hooked();
    let repo = env.repo();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    let tip = env.tip();
    let check = |packed: &str| {
        for (args, code) in [
            (&["branch", "-D", "handoffs"][..], "branch.deleted"),
            (&["branch", "-m", "handoffs", "other"], "branch.deleted"),
            (&["branch", "-f", "handoffs", "main"], "history.rewritten"),
            (
                &["update-ref", "-d", "refs/heads/handoffs"],
                "branch.deleted",
            ),
            (
                &["update-ref", "refs/heads/handoffs", "handoffs~1"],
                "history.rewritten",
            ),
            (
                &["symbolic-ref", "refs/heads/handoffs", "refs/heads/main"],
                "branch.symbolic",
            ),
            (&["fetch", "-q", ".", "+main:handoffs"], "history.rewritten"),
        ] {
            // git asks no hook before it renames a branch in tables.
            if args[1] == "-m" && repository_kind::is_reftable() {
                continue;
            }
            // Before 2.46 it asks none before it makes a branch symbolic.
            if args[0] == "symbolic-ref" && !repository_kind::git_is_at_least(2, 46) {
                continue;
            }
            let ran = env.git_any(&repo, args);
            assert_ne!(ran.status, 0, "{packed}: {args:?}");
            assert!(
                ran.stderr.contains(code),
                "{packed}: {args:?}: {}",
                ran.stderr
            );
            assert_eq!(env.tip(), tip, "{packed}: {args:?}");
        }
    };
    check("loose");
    env.git(&repo, &["pack-refs", "--all"]);
    assert!(!repo.join(".git/refs/heads/handoffs").exists());
    check("packed");
    env.git(&repo, &["gc", "-q"]);
    env.send(prepared(87)).success();
    env.git(&repo, &["gc", "-q", "--prune=now"]);
    // Under a working tree too.
    env.git(&repo, &["worktree", "add", "-q", "../ledger", "handoffs"]);
    let (ledger, tip) = (env.root().join("ledger"), env.tip());
    for args in [
        &["reset", "-q", "--hard", "HEAD~1"][..],
        &["commit", "-q", "--no-verify", "--allow-empty", "-m", "x"],
        &["commit", "-q", "--no-verify", "--amend", "-m", "x"],
        &[
            "merge",
            "-q",
            "--no-verify",
            "-s",
            "ours",
            "--allow-unrelated-histories",
            "-m",
            "x",
            "main",
        ],
    ] {
        let ran = env.git_any(&ledger, args);
        assert_ne!(ran.status, 0, "{args:?}");
        assert_eq!(env.tip(), tip, "{args:?}");
        // By then a reset has changed the files.
        let told = "git may have changed files before it ran this hook: see `git status`";
        assert!(ran.stderr.contains(told), "{args:?}: {}", ran.stderr);
        env.git(&ledger, &["reset", "-q", "--hard"]);
    }
    env.assert_sound();
}

#[test]
fn a_new_branch_is_audited_or_taken_over_from_a_remote() {
    let source = TestEnvironment::with_ledger();
    source.send(opening(87)).success();
    let env = TestEnvironment::new();
    let hooks = env.root().join("all");
    install(&hooks, &LOCAL);
    let path = hooks.join("hooks");
    env.git(
        env.root(),
        &[
            "config",
            "--global",
            "core.hooksPath",
            path.to_str().unwrap(),
        ],
    );
    let from = source.repo();
    let from = from.to_str().unwrap();
    let clone = |options: &[&str], to: &str| {
        let ran = env.git_any(env.root(), &[&["clone", "-q", from, to], options].concat());
        assert_eq!(ran.status, 0, "{to}: {}", ran.stderr);
        (env.root().join(to), ran.stderr)
    };
    let taken = "branch handoffs is taken over as the remote has it; `git handoff verify` audits its whole history\n";
    let (repo, said) = clone(&[], "plain");
    assert_eq!(said, "");
    let ran = env.git_any(&repo, &["branch", "-q", "handoffs", "origin/handoffs"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, taken));
    clone(&["--mirror"], "mirror");
    clone(&["--branch", "handoffs"], "branch");
    let url = format!("file://{from}");
    env.git(
        env.root(),
        &[
            "clone",
            "-q",
            "--depth=1",
            "--branch=handoffs",
            &url,
            "shallow",
        ],
    );
    // What nobody vouches for is audited from its first commit on.
    let other = env.root().join("other");
    env.git(env.root(), &["init", "-q", "other"]);
    env.git(
        &other,
        &["fetch", "-q", from, "handoffs:refs/source/handoffs"],
    );
    env.git(&other, &["branch", "handoffs", "refs/source/handoffs"]);
    let another = env.root().join("another");
    env.git(env.root(), &["init", "-q", "another"]);
    let refused = env.git_any(&another, &["fetch", "-q", from, "main:handoffs"]);
    assert_ne!(refused.status, 0);
    assert!(
        refused.stderr.contains("ledger.json is missing"),
        "{}",
        refused.stderr
    );
    // A legal step that someone else made is fetched into the branch.
    source.claim("87.1", "prep-agent").success();
    env.git(&other, &["fetch", "-q", from, "handoffs:handoffs"]);
}

#[test]
fn a_push_of_the_ledger_follows_what_the_remote_has() {
    let env = hooked();
    let repo = env.repo();
    server(&env, &[]);
    env.git(&repo, &["push", "-q", "origin", "handoffs", "main"]);
    env.send(opening(87)).success();
    env.git(&repo, &["push", "-q", "origin", "handoffs"]);
    for (args, code) in [
        (&["push", "origin", ":handoffs"][..], "branch.deleted"),
        (
            &["push", "-f", "origin", "handoffs~1:handoffs"],
            "history.rewritten",
        ),
        (
            &["push", "-f", "origin", "main:handoffs"],
            "history.rewritten",
        ),
    ] {
        let ran = env.git_any(&repo, args);
        assert_eq!(ran.status, 1, "{args:?}");
        assert!(ran.stderr.contains(code), "{args:?}: {}", ran.stderr);
    }
    // Somebody else was faster.
    let elsewhere = env.root().join("elsewhere");
    let server = env.root().join("server.git");
    env.git(
        env.root(),
        &["clone", "-q", server.to_str().unwrap(), "elsewhere"],
    );
    env.git(&elsewhere, &["branch", "-q", "handoffs", "origin/handoffs"]);
    let claim = env.handoff_in(&elsewhere, &["claim", "87.1", "--as", "prep-agent"]);
    claim.success();
    env.git(&elsewhere, &["push", "-q", "origin", "handoffs"]);
    env.send(opening(88)).success();
    let late = env.git_any(&repo, &["push", "-f", "origin", "handoffs"]);
    assert_eq!(late.status, 1);
    assert_snapshot!(env.filtered(&late.stderr), @"
    error: branch handoffs is the ledger, and this move is not made of legal steps
      [commit]  branch.unknown commit [commit] is not in this repository, where branch handoffs is: what follows it cannot be told
    hint: nothing was pushed. `git config handoff.remote origin` and `git handoff sync` replay your new steps on its handoffs and push them: nothing is lost
    error: failed to push some refs to '[root]/server.git'
    ");
}

#[test]
fn two_clones_that_went_apart_are_brought_together() {
    let env = hooked();
    let repo = env.repo();
    server(&env, &["pre-receive"]);
    env.send(opening(87)).success();
    env.git(&repo, &["push", "-q", "origin", "handoffs"]);
    env.git(env.root(), &["clone", "-q", "server.git", "elsewhere"]);
    let elsewhere = env.root().join("elsewhere");
    env.git(&elsewhere, &["branch", "-q", "handoffs", "origin/handoffs"]);
    let claim = env.handoff_in(&elsewhere, &["claim", "87.1", "--as", "prep-agent"]);
    claim.success();
    env.git(&elsewhere, &["push", "-q", "origin", "handoffs"]);
    let theirs = env.git(&elsewhere, &["rev-parse", "handoffs"]);
    env.send(opening(88)).success();
    let refused = env.git_any(&repo, &["push", "-f", "origin", "handoffs"]);
    assert!(
        refused.stderr.contains("git handoff sync"),
        "{}",
        refused.stderr
    );
    // Nor is what the clone has taken away by a local command.
    env.git(&repo, &["fetch", "-q", "origin", "handoffs"]);
    let take = ["branch", "-f", "handoffs", "origin/handoffs"];
    let stopped = env.git_any(&repo, &take);
    assert!(stopped.stderr.contains("history.rewritten"));
    // As docs/hooks.md says.
    env.git(&repo, &["config", "handoff.remote", "origin"]);
    let synced = env.data(&["sync"]);
    assert_eq!(
        (&synced["brought"], &synced["made_again"]),
        (&1.into(), &1.into())
    );
    let there = env.git(&env.root().join("server.git"), &["rev-parse", "handoffs"]);
    assert_eq!(env.tip(), there.trim());
    env.git(
        &repo,
        &["merge-base", "--is-ancestor", theirs.trim(), "handoffs"],
    );
    env.handoff(&["show", "88.1"]).success();
    env.handoff(&["verify"]).success();
    env.assert_sound();
}

#[test]
fn a_code_branch_is_pushed_by_whoever_holds_its_issue() {
    let env = hooked();
    let repo = env.repo();
    server(&env, &[]);
    env.git(&repo, &["push", "-q", "origin", "handoffs"]);
    for step in test_support::workflow::workflow(|_| Format::Xml)
        .iter()
        .take(11)
    {
        test_support::workflow::run(&env, std::slice::from_ref(step));
    }
    let branch = "enhancement/87-csv-export";
    env.git(&repo, &["branch", branch]);
    let push = |agent: &str| {
        let mut command = env.command("git");
        command.args(["push", "-q", "-f", "origin", &format!("{branch}:{branch}")]);
        command.env("GIT_HANDOFF_AGENT", agent);
        env.run(command, &[], None)
    };
    assert_eq!(push("").status, 0, "nobody asked for the check");
    env.git(&repo, &["commit", "-q", "--allow-empty", "-m", "more"]);
    env.git(&repo, &["branch", "-f", branch, "HEAD"]);
    env.git(&repo, &["config", "handoff.pushGuard", "true"]);
    let refused = push("prep-agent");
    assert_eq!(refused.status, 1);
    assert_snapshot!(env.filtered(&refused.stderr), @"
    error: according to the ledger, you do not hold what you push
      enhancement/87-csv-export branch.not_held issue 87 is worked on here, and prep-agent does not hold it: reviewer-agent works on 87.4 until 2026-03-02 13:18:00Z
          see whose turn it is: `git handoff status 87`
    hint: nothing was pushed, and your commits are kept; push again once you hold the issue. `handoff.pushGuard` in git's configuration enables this check; see `git handoff explain hook_refused`
    error: failed to push some refs to '[root]/server.git'
    ");
    let unnamed = push("");
    assert!(unnamed.stderr.contains(
        "issue 87 is worked on here, and nothing says which agent pushes: reviewer-agent works"
    ));
    assert!(unnamed.stderr.contains("say which agent you are"));
    env.git(&repo, &["config", "handoff.pushGuard", "maybe"]);
    let unclear = push("reviewer-agent");
    assert_eq!(unclear.status, 1);
    assert_snapshot!(env.filtered(&unclear.stderr), @r#"
    error: handoff.pushGuard is "maybe", which is neither true nor false
    hint: nothing was pushed. Use `git config handoff.pushGuard true` to check code branches, or `git config handoff.pushGuard false` to leave them unchecked
    error: failed to push some refs to '[root]/server.git'
    "#);
    env.git(&repo, &["config", "handoff.pushGuard", "true"]);
    assert_eq!(push("reviewer-agent").status, 0);
    // Other branches are free.
    env.git(&repo, &["push", "-q", "origin", "main:notes-87"]);
    // The lease runs out.
    env.wait_minutes(60 * 24);
    env.git(&repo, &["commit", "-q", "--allow-empty", "-m", "late"]);
    env.git(&repo, &["branch", "-f", branch, "HEAD"]);
    let late = push("reviewer-agent");
    assert_eq!(late.status, 1);
    assert!(late.stderr.contains("ran out"), "{}", late.stderr);
}

#[test]
fn the_ledger_may_be_on_another_branch() {
    let env = TestEnvironment::with_repository();
    env.git(&env.repo(), &["config", "handoff.branch", "team/ledger"]);
    env.handoff(&["init"]).success();
    install(&env.repo().join(".git"), &LOCAL);
    let ran = env.git_any(&env.repo(), &["branch", "-D", "team/ledger"]);
    assert!(ran.stderr.contains("branch.deleted"), "{}", ran.stderr);
    env.git(&env.repo(), &["branch", "handoffs"]);
    env.git(&env.repo(), &["branch", "-D", "handoffs"]);
}
