//! `protocol new`: folders that are sound at once, and what is refused.

use std::fs;
use std::path::Path;

use serde_json::Value;
use test_support::TestEnvironment;
use test_support::team::{BUILT_IN, Refused};

/// Every file of a folder, by its path in it.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for sub in ["", "schemas", "templates"] {
        for entry in fs::read_dir(folder.join(sub)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.strip_prefix(folder).unwrap();
                let name = name.to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// A skeleton in which every mark is filled in with the same text.
fn filled(env: &TestEnvironment, from: &str, to: &str) -> String {
    let args = [
        "new", "--issue", "7", "--from", from, "--to", to, "--format", "json",
    ];
    let skeleton = env.handoff(&args).success().stdout;
    let mut contract: Value = serde_json::from_str(&skeleton).unwrap();
    for value in contract.as_object_mut().unwrap().values_mut() {
        if value.as_str().is_some_and(|text| text.contains("{{fill")) {
            *value = "Done".into();
        }
    }
    contract.to_string()
}

#[test]
fn a_relay_is_used_without_a_change() {
    let env = TestEnvironment::with_repository();
    let args = [
        "protocol",
        "new",
        "press",
        "--agents",
        "@writer,editor, printer",
    ];
    let made = env.handoff(&args).success();
    let test = "\n  git handoff protocol test ./press";
    let shown = if cfg!(feature = "trial") {
        made.shown
    } else {
        let check = "git handoff protocol check ./press";
        made.shown.replace(check, &format!("{check}{test}"))
    };
    insta::assert_snapshot!(shown, @"
    $ git handoff protocol new press --agents '@writer,editor, printer'
    press: @writer, editor, printer, orchestrator, end
    9 files in ./press
      protocol.json
      schemas/_writer-to-editor.schema.json
      schemas/editor-to-printer.schema.json
      schemas/error.schema.json
      schemas/printer-to-end.schema.json
      templates/_writer-to-editor.json
      templates/editor-to-printer.json
      templates/error.json
      templates/printer-to-end.json
    --- stderr
    no contract type declares claims, so that `evidence` checks nothing: see `git handoff explain protocol.claims`
    next, as it is and after each edit:
      git handoff protocol check ./press
      git handoff protocol test ./press
    then, to use it:
      git handoff init --protocol ./press
    ");
    env.handoff(&["protocol", "check", "press"])
        .success()
        .says("press: sound (9 files)");
    env.handoff(&["init", "--protocol", "./press"]).success();
    for (from, to) in [
        ("@writer", "editor"),
        ("editor", "printer"),
        ("printer", "end"),
    ] {
        if from != "@writer" {
            env.claim("7", from).success();
        }
        env.send(filled(&env, from, to)).success();
    }
    assert_eq!(env.data(&["status", "7"])["issue"]["status"], "completed");
    env.assert_sound();
}

#[test]
fn an_agent_of_a_relay_reports_to_the_orchestrator() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["protocol", "new", "pair", "--agents", "a,b", "../pair"])
        .success();
    env.handoff(&["init", "--protocol", "../pair"]).success();
    env.send(filled(&env, "a", "b")).success();
    env.claim("7", "b").success();
    let report = r#"{"issue": "7", "from": "b", "to": "orchestrator", "status": "failure",
        "summary": "No space is left", "code": "DiskFull", "recoverable": true}"#;
    env.send(report).success();
    env.handoff(&["next", "7"])
        .success()
        .says("retry: 7.1 is failed (DiskFull)");
    env.assert_sound();
}

#[test]
fn every_protocol_can_be_copied_under_another_name() {
    let env = TestEnvironment::with_repository();
    for name in BUILT_IN {
        let own = format!("our-{name}");
        env.handoff(&["protocol", "new", &own, "--from", name])
            .success();
        env.handoff(&["protocol", "check", &own])
            .success()
            .says(": sound");
        let text = fs::read_to_string(env.repo().join(&own).join("protocol.json")).unwrap();
        let definition: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(definition["name"], *own);
        assert_eq!(definition["version"], "1.0.0");
    }
    // One in force, too, which its folder is the only source of.
    env.handoff(&["init", "--protocol", "our-directive"])
        .success();
    fs::remove_dir_all(env.repo().join("our-directive")).unwrap();
    env.handoff(&["protocol", "new", "third", "--from", "our-directive"])
        .success();
}

#[test]
fn the_specialists_of_a_copy_are_renamed_everywhere() {
    let env = TestEnvironment::with_repository();
    let old = [
        "issue-manager",
        "prep-agent",
        "implementer-agent",
        "reviewer-agent",
        "fixer-agent",
        "validator-agent",
        "closer-agent",
    ];
    // One new name is another's old one.
    let new = "desk,closer-agent,coder,critic,mender,judge,clerk";
    env.handoff(&[
        "protocol",
        "new",
        "studio",
        "--from",
        "issue-to-pr",
        "--agents",
        new,
    ])
    .success();
    env.handoff(&["protocol", "check", "studio"]).success();
    let files = files(&env.repo().join("studio"));
    for (path, text) in &files {
        for name in old.iter().filter(|name| **name != "closer-agent") {
            assert!(
                !path.contains(name) && !text.contains(name),
                "{path}: {name}"
            );
        }
    }
    let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    assert!(
        paths.contains(&"schemas/closer-agent-to-coder.schema.json"),
        "{paths:?}"
    );
    env.handoff(&["protocol", "show", "./studio"])
        .success()
        .says("mender → critic")
        .says("clerk → workflow-complete");
}

#[test]
fn what_cannot_be_made_is_refused_with_a_way_on() {
    let env = TestEnvironment::with_repository();
    fs::create_dir(env.repo().join("full")).unwrap();
    fs::write(env.repo().join("full/file"), "").unwrap();
    let mut text = String::new();
    for line in [
        "protocol new",
        "protocol new own",
        "protocol new a/b --agents a,b",
        "protocol new issue-to-pr --agents a,b",
        "protocol new own --agents a",
        "protocol new own --agents a,b,a",
        "protocol new own --agents a,A",
        "protocol new own --agents a,b!",
        "protocol new own --agents a,,b",
        "protocol new own --agents a,orchestrator",
        "protocol new full --agents a,b",
        "protocol new own --agents a,b .git",
        "protocol new own --from nothing",
        "protocol new own --from directive --agents a,b",
        "protocol new own --from directive --agents a,b,USER",
        "protocol new own --agents a,b-to-c,a-to-b,c",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let ran = env.handoff(&args);
        assert_ne!(ran.status, 0, "{}", ran.shown);
        text += &ran.shown;
    }
    assert!(!env.repo().join("own").exists());
    insta::assert_snapshot!(text, @r#"
    $ git handoff protocol new
    --- stderr
    error: the following required arguments were not provided:
      --agents <AGENTS>
      <NAME>

    Usage: git handoff protocol new --agents <AGENTS> <NAME> [FOLDER]

    For more information, see `git handoff protocol -h`.
    --- exit 2
    $ git handoff protocol new own
    --- stderr
    error: the following required arguments were not provided:
      --agents <AGENTS>

    Usage: git handoff protocol new --agents <AGENTS> <NAME> [FOLDER]

    For more information, see `git handoff protocol -h`.
    --- exit 2
    $ git handoff protocol new a/b --agents a,b
    --- stderr
    error: protocol name "a/b" may contain only letters, digits, `.`, `_`, `-` and `@`, the first a letter, a digit or `@`, and no `..`
    hint: use a name such as in `git handoff protocol new our-way --agents writer,editor`
    --- exit 2
    $ git handoff protocol new issue-to-pr --agents a,b
    --- stderr
    error: issue-to-pr is a built-in protocol
    hint: use another name: `git handoff protocol new our-issue-to-pr --from issue-to-pr`; `git handoff protocol copy issue-to-pr FOLDER` keeps the name, for a new version
    --- exit 2
    $ git handoff protocol new own --agents a
    --- stderr
    error: work is handed on between two agents or more
    hint: name them all: `git handoff protocol new own --agents writer,editor`
    --- exit 2
    $ git handoff protocol new own --agents a,b,a
    --- stderr
    error: --agents names a twice
    hint: use another name for one of them, as in `git handoff protocol new own --agents writer,editor`
    --- exit 2
    $ git handoff protocol new own --agents a,A
    --- stderr
    error: --agents: a and A would share their files
    hint: use another name for one of them, as in `git handoff protocol new own --agents writer,editor`
    --- exit 2
    $ git handoff protocol new own --agents a,b!
    --- stderr
    error: --agents: agent name "b!" may contain only letters, digits, `.`, `_`, `-` and `@`, the first a letter, a digit or `@`, and no `..`
    hint: use names such as in `git handoff protocol new press --agents writer,editor`
    --- exit 2
    $ git handoff protocol new own --agents a,,b
    --- stderr
    error: --agents: agent name is empty
    hint: use names such as in `git handoff protocol new press --agents writer,editor`
    --- exit 2
    $ git handoff protocol new own --agents a,orchestrator
    --- stderr
    error: --agents: every relay has orchestrator and end already
    hint: leave orchestrator out, such as in `git handoff protocol new own --agents writer,editor`
    --- exit 2
    $ git handoff protocol new full --agents a,b
    --- stderr
    error: ./full exists and is not an empty folder
    hint: name a new folder; see `git handoff protocol -h`
    --- exit 2
    $ git handoff protocol new own --agents a,b .git
    --- stderr
    error: .git exists and is not an empty folder
    hint: name a new folder; see `git handoff protocol -h`
    --- exit 2
    $ git handoff protocol new own --from nothing
    --- stderr
    error: no built-in protocol or folder is named "nothing"
    hint: built in: issue-to-pr, orchestrator-specialist, task-breakdown, delegation, directive, review; see `git handoff explain no_protocol`
    --- exit 6
    $ git handoff protocol new own --from directive --agents a,b
    --- stderr
    error: --agents: directive has 3 specialists, and each needs a name: ResearchGPT, DesignGPT, ImplementationGPT
    hint: leave --agents out to keep the names: `git handoff protocol new own --from directive`
    --- exit 2
    $ git handoff protocol new own --from directive --agents a,b,USER
    --- stderr
    error: --agents: directive has another agent called USER
    hint: leave --agents out to keep the names: `git handoff protocol new own --from directive`
    --- exit 2
    $ git handoff protocol new own --agents a,b-to-c,a-to-b,c
    --- stderr
    error: own would not be sound
      20:14 /contracts/2/type protocol.duplicate contract type `a-to-b-to-c` is defined twice
          rename or remove one
      27:48 /routes/2/contracts protocol.route a contract of type `a-to-b-to-c` can't name `a-to-b`: schemas/a-to-b-to-c.schema.json lists others at `/from`
          add `a-to-b` there, or correct the route
      27:48 /routes/2/contracts protocol.route a contract of type `a-to-b-to-c` can't name `c`: schemas/a-to-b-to-c.schema.json lists others at `/to`
          add `c` there, or correct the route
    hint: nothing was written; use other names; see `git handoff explain protocol_faults`
    --- exit 1
    "#);
    let args = ["protocol", "new", "own", "--agents", "a,a", "--json"];
    let refused = Refused::of(&env.handoff(&args));
    assert_eq!(refused.says(), (2, "usage"));
    assert!(
        refused.hint.contains("git handoff protocol new own"),
        "{}",
        refused.hint
    );
}

#[test]
fn a_protocol_without_claims_says_that_evidence_checks_nothing() {
    let env = TestEnvironment::with_repository();
    let none = "no contract type declares claims, so that `evidence` checks nothing";
    env.handoff(&["protocol", "new", "press", "--agents", "writer,editor"])
        .success()
        .says(none);
    env.handoff(&["protocol", "check", "./press"])
        .success()
        .says("press: sound (7 files)")
        .says(&format!("note protocol.claims {none}"));
    env.handoff(&["init", "--protocol", "./press"]).success();
    let set = |value| {
        let args = [
            "protocol",
            "set",
            "press",
            "evidence",
            value,
            "--as",
            "orchestrator",
        ];
        env.handoff(&args).success()
    };
    set("enforce").says(none);
    assert!(!set("off").shown.contains(none));
    let checked = env.handoff(&["protocol", "check", "issue-to-pr"]).success();
    assert!(!checked.shown.contains(none), "{}", checked.shown);
    let ledger = TestEnvironment::with_ledger();
    let folder = env.repo().join("press");
    ledger
        .handoff(&["protocol", "add", folder.to_str().unwrap()])
        .success()
        .says("next: git handoff send --issue N --to editor --as writer --protocol press ");
}
