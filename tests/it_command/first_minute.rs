//! What a newcomer meets: the program alone, other words for its commands, a contract in one command.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};
use test_support::contracts::{Format, opening, prepared, sample};
use test_support::remote::bare;
use test_support::terminal::Terminal;
use test_support::workflow::{Step, run, workflow};
use test_support::{Ran, TestEnvironment};

/// Runs the program as an agent.
fn act(env: &TestEnvironment, agent: &str, args: &[&str]) -> Ran {
    env.handoff(&[args, &["--as", agent]].concat())
}

/// The arguments that hand work on, with values for these fields.
fn sending<'a>(to: &'a str, set: &[&'a str]) -> Vec<&'a str> {
    let set = set.iter().flat_map(|setting| ["--set", setting]);
    ["send", "--to", to].into_iter().chain(set).collect()
}

/// The next command that the program alone, with these options, names in its few lines.
fn next_command(env: &TestEnvironment, args: &[&str]) -> String {
    let ran = env.handoff(args).success();
    assert!(ran.stdout.lines().count() <= 10, "{}", ran.shown);
    let mut lines = ran.stdout.lines();
    lines
        .find_map(|line| line.strip_prefix("next: "))
        .unwrap()
        .to_owned()
}

/// The commands that a claim prints to send contracts with: the receiver and the title of each.
fn sends(claimed: &Ran) -> Vec<(&str, &str)> {
    let lines = claimed.stderr.lines();
    let sends = lines.filter_map(|line| line.split_once(": git handoff send --issue 87 --to "));
    let mut sends: Vec<(&str, &str)> = sends
        .map(|(_, send)| {
            let (command, title) = send.rsplit_once("   # ").unwrap();
            (command.split(' ').next().unwrap(), title)
        })
        .collect();
    sends.sort_unstable();
    sends
}

const OPENING: [&str; 6] = [
    "issue_title=Dispatchers ask for their delivery history",
    "type=feature",
    "priority=high",
    "summary=A file with all deliveries",
    "requirements=It has one row for each delivery",
    "requirements=Times, in UTC",
];

const PREPARED: [&str; 5] = [
    "branch=issue-87",
    "workspace_path=.",
    "dependencies=installed",
    "build=passed",
    "dev_server=n/a: a library",
];

#[test]
fn alone_it_says_where_one_is_and_the_next_command() {
    let env = TestEnvironment::new();
    assert_eq!(
        next_command(&env, &[]),
        "git init && git handoff init --protocol review"
    );
    let env = TestEnvironment::with_repository();
    let alone = |args: &[&str]| next_command(&env, args);
    // Whoever starts a ledger chooses between two protocols.
    assert!(alone(&[]).starts_with("git handoff init --protocol review  "));
    let shown = env.handoff(&[]).success().stdout;
    assert!(
        shown.contains("review      (a coder, a reviewer and a person)\n")
            && shown.contains("git handoff init --protocol issue-to-pr      ("),
        "{shown}"
    );
    env.handoff(&["init"]).success();
    let open = "git handoff send --issue N --to prep-agent --as issue-manager";
    for person in [&[][..], &["--as", "maintainer"], &["--as", "issue-manager"]] {
        assert!(alone(person).starts_with(open));
    }
    let as_prep = ["--as", "prep-agent"];
    assert!(alone(&as_prep).starts_with("git handoff wait --inbox"));
    env.send(opening(87)).success();
    assert_eq!(alone(&[]), "git handoff claim 87.1 --as prep-agent");
    assert!(alone(&as_prep).starts_with("git handoff claim --next"));
    env.wait_minutes(3);
    for args in [&as_prep[..], &[]] {
        let shown = env.handoff(args).success().stdout;
        assert!(
            shown.starts_with("87.1  pending  ") && shown.contains(" minutes ago  "),
            "{shown}"
        );
    }
    env.claim("87.1", "prep-agent").success();
    assert!(alone(&as_prep).starts_with("git handoff prime"));
    let block = ["block", "87.1", "--reason", "Which columns?"];
    act(&env, "prep-agent", &block).success();
    let shown = env.handoff(&[]).success().stdout;
    assert!(
        shown.contains("needs attention\n! 87.1 waits for an answer"),
        "{shown}"
    );
    act(&env, "issue-manager", &["answer", "87.1", "All of them"]).success();
    env.claim("87.1", "prep-agent").success();
    assert!(alone(&["--as", "nobody-known"]).starts_with("git handoff protocol show"));
    insta::assert_snapshot!(env.handoff(&as_prep).success().stdout.replace(env!("CARGO_PKG_VERSION"), "VERSION"), @"
    git-handoff VERSION: a ledger of handoffs between agents, kept in Git
    here: the ledger on branch handoffs, protocol issue-to-pr; 1 open handoff
    you: prep-agent; you hold 87.1; 0 for you to claim
    next: git handoff prime --as prep-agent
    all commands: git handoff help --all
    ");
    let json = env
        .handoff(&["--json", "--as", "prep-agent"])
        .success()
        .json();
    assert_eq!(json["data"]["holds"], json!(["87.1"]));
    assert_eq!(json["data"]["branch"], "handoffs");
}

#[test]
fn the_first_help_is_short_and_the_whole_one_has_every_command_once() {
    let env = TestEnvironment::new();
    let first = env.handoff(&["-h"]).success().stdout;
    let rows = first
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1);
    assert_eq!(
        rows.take_while(|line| !line.is_empty()).count(),
        15,
        "{first}"
    );
    assert_eq!(env.handoff(&["help"]).success().stdout, first);
    let help = env.handoff(&["help", "--all"]).success().stdout;
    let listed: Vec<&str> = help
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
        .filter_map(|line| line.split("  ").next())
        .filter(|word| !word.contains(' '))
        .collect();
    let once: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(once.len(), listed.len(), "{listed:?}");
    let all = git_handoff::command();
    let all: BTreeSet<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
    assert_eq!(once, all);
    let headings = help
        .lines()
        .filter(|line| line.ends_with(':') && !line.starts_with(' '));
    let headings: Vec<&str> = headings.collect();
    let groups = [
        "Start:",
        "Hand work on:",
        "Decide what happens:",
        "See where things are:",
        "Trust it:",
        "Share and keep it:",
        "For machines:",
        "Options:",
    ];
    assert_eq!(headings[..groups.len()], groups);
    // A topic is a command, below another too, a task, or a code.
    for (topic, says) in [
        ("send", "Usage: git handoff send"),
        ("protocol set", "Usage: git handoff protocol set"),
        ("share", "Share and keep it:\n  sync "),
        ("review", "A coder, a reviewer and a person"),
        ("lease_lost", "lease_lost  (error, exit 5)"),
        ("keys", "# Keys of protocol.json"),
        ("protocol.json", "|`routes`|`Route`[]|"),
        ("routes", "\n`Route`:\n\n|member|type|meaning|\n"),
        ("limits", "\n## Limits\n"),
        ("decisions", "\n## Decisions\n\nA rule of `decisions`:"),
        ("version", "the protocol's own version"),
        ("evidence", "# What a contract states"),
        ("own-protocol", "git handoff protocol new press "),
        ("own-protocol.md", "## With tasks"),
        ("findings", "--set findings='{\"finding\": \"F1\", "),
        (
            "findings",
            "A person overrules so:\n  `git handoff reject 123.4",
        ),
        ("gate.md", "# A gate for merges on GitHub"),
        ("docs/work.md", "# Run agents"),
    ] {
        let words: Vec<&str> = ["help"].into_iter().chain(topic.split(' ')).collect();
        let shown = env.handoff(&words).success().stdout;
        assert!(shown.contains(says), "{topic}: {shown}");
        assert!(shown.ends_with('\n'), "{topic}: {shown}");
    }
    let unknown = env.handoff(&["help", "weather"]).exits(2);
    unknown
        .says("no help is about \"weather\"")
        .says("share, machines");
    // What was decided about the program is no help in using it.
    env.handoff(&["help", "decisions.md"]).exits(2);
    // What an author looks for is not a whole page.
    for topic in ["own-protocol", "protocol.json", "routes", "facts", "limits"] {
        let shown = env.handoff(&["help", topic]).success().stdout;
        let words = shown.split_whitespace().count();
        assert!((20..450).contains(&words), "{topic}: {words} words");
    }
    for option in [
        &["set", "7", "--priority", "high", "--as", "maintainer"][..],
        &["set", "7", "--priority=high", "--as", "maintainer"],
    ] {
        env.handoff(option).exits(2).says(
            "`set` takes `priority=VALUE`, without dashes: \
             `git handoff set 7 priority=high --as maintainer --reason WHY`",
        );
    }
    let reasoned = ["set", "7", "--labels", "a b", "-m", "it waits"];
    env.handoff(&reasoned)
        .exits(2)
        .says("`git handoff set 7 'labels=a b' -m 'it waits'`");
}

#[test]
fn other_words_for_commands_and_issues_work_or_are_answered() {
    let env = TestEnvironment::with_ledger();
    env.pace(0);
    env.send(opening(87)).success();
    let listed = env.handoff(&["list"]).success().stdout;
    assert_eq!(env.handoff(&["ls"]).success().stdout, listed);
    let status = env.handoff(&["status", "87"]).success().stdout;
    let address = "https://github.com/octo/parcels/issues/87#issuecomment-1";
    for forms in [
        &["#87"][..],
        &["87"],
        &[address],
        &["status", "#87"],
        &["status", address],
    ] {
        assert_eq!(env.handoff(forms).success().stdout, status, "{forms:?}");
    }
    // Another repository's issue of that number is not this one.
    let mine = ["remote", "add", "origin", "git@github.com:octo/parcels.git"];
    env.git(&env.repo(), &mine);
    assert_eq!(env.handoff(&[address]).success().stdout, status);
    let other = "https://github.com/octo/other/issues/87";
    env.handoff(&["status", other])
        .exits(2)
        .says("another repository, \"octo/other\"");
    let shown = env.handoff(&["show", "87.1"]).success().stdout;
    assert_eq!(env.handoff(&["87.1"]).success().stdout, shown);
    env.pace(60);
    act(&env, "prep-agent", &["take", "#87.1"]).success();
    act(&env, "prep-agent", &["comment", "87", "--note", "seen"]).success();
    act(&env, "prep-agent", &["done", "87"]).success();
    for (word, command) in [
        ("start", "git handoff claim --next"),
        ("rejected", "git handoff refused"),
    ] {
        env.handoff(&[word]).exits(2).says(command);
        let error = env.handoff(&[word, "--json"]).exits(2).json();
        assert!(error["error"]["hint"].as_str().unwrap().contains(command));
    }
    env.handoff(&["stats"]).exits(2).says("status");
}

#[test]
fn a_step_is_two_commands() {
    let env = TestEnvironment::with_ledger();
    env.git(&env.repo(), &["checkout", "-qb", "issue-87"]);
    env.git(
        &env.repo(),
        &["commit", "-q", "--allow-empty", "-m", "Begin"],
    );
    let open = [
        sending("prep-agent", &OPENING),
        vec![
            "--issue",
            "87",
            "--set",
            "issue_url=https://github.com/octo/parcels/issues/87",
        ],
    ]
    .concat();
    act(&env, "issue-manager", &open).success();
    let claimed = act(&env, "prep-agent", &["claim", "--next"]).success();
    let next = &claimed.stderr;
    assert!(
        next.starts_with(
            "next: git handoff send --issue 87 --to implementer-agent --as prep-agent --set FIELD=VALUE…"
        ),
        "{next}"
    );
    for field in [
        "validation.dependencies",
        "validation.build",
        "validation.dev_server",
    ] {
        assert!(next.contains(&format!("\n    {field}: ")), "{next}");
    }
    assert!(
        !next.contains("workspace_type") && !next.contains("branch"),
        "{next}"
    );
    // What is missing is listed, with the options that give it.
    let before = env.tip();
    let missing = act(
        &env,
        "prep-agent",
        &sending("implementer-agent", &PREPARED[..3]),
    )
    .exits(3);
    insta::assert_snapshot!(missing.stderr, @"
    error: the contract is not complete; nothing was written
      /port field.unfilled port of the development server; leave it out if dev_server says `n/a: ` and why
      /validation/build field.unfilled outcome of the first build and test run
      /validation/dev_server field.unfilled outcome of starting the development server, or `n/a: ` and why there is none
    hint: give --set port, --set validation.build, --set validation.dev_server; see `git handoff explain contract_refused`
    ");
    assert_eq!(env.tip(), before);
    act(&env, "prep-agent", &sending("implementer-agent", &PREPARED)).success();
    let sent = env
        .handoff(&["show", "87.2", "--contract"])
        .success()
        .stdout;
    assert!(
        sent.contains("<workspace_type>in-place</workspace_type>"),
        "{sent}"
    );
    assert!(!sent.contains("port"), "{sent}");
    // A second time, there is nothing to hand on.
    let refused = act(&env, "prep-agent", &sending("implementer-agent", &PREPARED)).exits(2);
    refused
        .says("prep-agent holds nothing here")
        .says("hint: add --issue N; ");
    env.assert_sound();
}

#[test]
fn fields_are_named_and_typed() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    let sends = |set: &[&str]| act(&env, "prep-agent", &sending("implementer-agent", set));
    sends(&["colour=red"])
        .exits(2)
        .says("the contract has no field \"colour\"")
        .says("validation.build");
    sends(&["build"]).exits(2).says("FIELD=VALUE");
    sends(&["validation=3"])
        .exits(2)
        .says("validation is of type object");
    act(&env, "prep-agent", &["send", "--set", "a=b"])
        .exits(2)
        .says("--to");
    act(
        &env,
        "prep-agent",
        &["send", "--to", "implementer-agent", "contract.xml"],
    )
    .exits(6);
    env.handoff(&["send", "--to", "implementer-agent"])
        .exits(2)
        .says("say which agent you are");
    act(&env, "prep-agent", &["send", "--to", "closer-agent"])
        .exits(4)
        .says("no route");
    act(
        &env,
        "prep-agent",
        &["send", "--to", "implementer-agent", "--issue", "88"],
    )
    .exits(4)
    .says("issue 88 has not been opened yet")
    .says("`git handoff send --issue 88 --to prep-agent --as issue-manager`");
    let made = act(
        &env,
        "prep-agent",
        &[
            "new",
            "--issue",
            "87",
            "--to",
            "implementer-agent",
            "--set",
            "build=4 passed",
        ],
    );
    assert!(made.success().stdout.contains("<build>4 passed</build>"));
}

#[test]
fn on_a_terminal_send_asks_for_what_is_missing() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    let before = env.tip();
    let terminal = Terminal::new(&env, 100);
    let send = ["send", "--as", "prep-agent", "--set", "branch=issue-87"];
    let asked = terminal.start(&send[..3]);
    asked.shows("What do you send?");
    asked.types("1\r");
    asked.shows("branch: code branch of the work (Enter: later)");
    asked.signal(Signal::INT);
    asked.left();
    assert_eq!(env.tip(), before);
    let asked = terminal.start(&[&send[..], &["--to", "implementer-agent"]].concat());
    for (question, answer) in [
        ("workspace_path: ", "."),
        ("workspace_type: ", "here"),
        // What is wrong is said at once, and asked for again.
        ("`worktree`", "in-place"),
        ("port: ", ""),
        ("validation.dependencies: ", "installed"),
        ("validation.build: ", "12 passed"),
        // No port is asked for without a server.
        ("validation.dev_server: ", "n/a: a library"),
        ("<build>12 passed</build>", "n"),
    ] {
        asked.shows(question);
        assert_eq!(env.tip(), before);
        asked.types(&format!("{answer}\r"));
    }
    asked.shows("nothing was sent");
    asked.left();
    assert_eq!(env.tip(), before);
    let given = [
        "workspace_path=.",
        "workspace_type=in-place",
        "build=12 passed",
        "dev_server=n/a: a library",
    ];
    let given = given.iter().flat_map(|one| ["--set", *one]);
    let given: Vec<&str> = send.into_iter().chain(given).collect();
    let asked = terminal.start(&[&given[..], &["--to", "implementer-agent"]].concat());
    asked.shows("validation.dependencies: ");
    asked.types("installed\r");
    asked.shows("Send it?");
    asked.types("\r");
    asked.shows("87.2 prep-agent → implementer-agent: pending");
    asked.left();
    // Elsewhere nothing is asked.
    env.handoff(&send[..3]).exits(2).says("say what to send");
    env.assert_sound();
}

#[test]
fn fields_can_be_a_json_object() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    let send = [
        "send",
        "--to",
        "implementer-agent",
        "--as",
        "prep-agent",
        "-",
    ];
    let with = |fields: &str| env.handoff_with(&send, fields);
    with("<a/>")
        .exits(2)
        .says("FILE is a JSON object of the contract's fields");
    with(r#"{"build": 1, "build": 2}"#)
        .exits(3)
        .says("json.duplicate_key");
    with(r#"{"colour": "red"}"#)
        .exits(2)
        .says("the contract has no field \"colour\"");
    let fields = r#"{"branch": "issue-87", "workspace_path": ".", "workspace_type": "in-place",
        "validation.dependencies": "it's in", "build": "12 passed", "dev_server": "n/a: a library"}"#;
    with(fields).success();
    let sent = env.handoff(&["show", "87.2", "--contract"]).success();
    assert!(sent.stdout.contains("<dependencies>it's in</dependencies>"));
    env.assert_sound();
}

#[test]
fn a_contract_is_edited_until_it_is_accepted() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    let editor = env.file("editor", "#!/bin/sh
cp \"$1\" \"$0.saw\"
grep -q 'refused' \"$1\" && sed -i 's/{{fill[^}]*}}/done/' \"$1\" || sed -i 's/{{fill: outcome[^}]*}}/passed/' \"$1\"
");
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let send = [
        "send",
        "--to",
        "implementer-agent",
        "--edit",
        "--as",
        "prep-agent",
        "--set",
        "branch=issue-87",
        "--set",
        "workspace_path=.",
        "--set",
        "workspace_type=in-place",
        "--set",
        "port=4000",
        "--set",
        "dev_server=n/a: a library",
    ];
    let edit = |editor: &str| {
        let mut command = env.program(&send);
        command.env("GIT_EDITOR", editor);
        env.run(command, &send, None)
    };
    let draft = env
        .repo()
        .join(".git/handoff/drafts/87-to-implementer-agent.xml");
    edit("false").exits(2).says("the editor false ended with");
    // What was written is kept, and opened again.
    edit("true").exits(3).says("the draft is kept in");
    assert!(draft.is_file());
    edit(&editor).success();
    assert!(!draft.exists());
    let saw = fs::read_to_string(Path::new(&editor).with_extension("saw")).unwrap();
    assert!(saw.contains("#: build: required, string"), "{saw}");
    let sent = env
        .handoff(&["show", "87.2", "--contract"])
        .success()
        .stdout;
    assert!(
        !sent.contains("#:") && sent.contains("<build>passed</build>"),
        "{sent}"
    );
    edit("truncate -s 0").exits(2);
    env.assert_sound();
}

#[test]
fn without_an_identity_nothing_is_written() {
    let env = TestEnvironment::with_repository();
    let unknown = |more: &[(&str, &str)]| {
        let mut command = env.program(&["init"]);
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("USER", "somebody");
        command.envs(more.iter().copied());
        env.run(command, &["init"], None)
    };
    for key in ["user.name", "user.email"] {
        env.git_any(&env.repo(), &["config", "--unset", key]);
    }
    unknown(&[])
        .exits(9)
        .says("git does not know who you are")
        .says("git config user.email");
    assert_eq!(
        env.git(&env.repo(), &["for-each-ref", "refs/heads/handoffs"]),
        ""
    );
    unknown(&[("GITHUB_ACTIONS", "true"), ("GITHUB_ACTOR", "octocat")]).success();
    let by = env.git(
        &env.repo(),
        &["log", "-1", "--format=%cn <%ce>", "handoffs"],
    );
    assert_eq!(by.trim(), "octocat <octocat@users.noreply.github.com>");
}

#[test]
fn what_init_installs_uninstall_removes() {
    let env = TestEnvironment::with_repository();
    let files = || {
        let mut found = Vec::new();
        for line in env
            .git(&env.repo(), &["status", "--porcelain", "-uall"])
            .lines()
        {
            found.push(line.to_owned());
        }
        found
    };
    let before = files();
    let ran = env
        .handoff(&[
            "init",
            "--hooks",
            "--github",
            "--agents",
            "claude-code,codex",
        ])
        .success();
    for what in [
        "pre-commit: created",
        ".github/workflows/handoff-gate.yml: created",
        ".github/ruleset-ledger.json: created",
        "AGENTS.md: created",
    ] {
        assert!(ran.stdout.contains(what), "{}", ran.shown);
    }
    let placeholder = "replace `uses: OWNER/git-handoff/action@0000000000000000000000000000000000000000` \
                       in .github/workflows/handoff-audit.yml, ";
    assert!(ran.stderr.contains(placeholder), "{}", ran.shown);
    assert!(
        env.repo()
            .join(".github/workflows/handoff-intake.yml")
            .is_file()
    );
    // Again, nothing changes.
    let again = env
        .handoff(&[
            "init",
            "--hooks",
            "--github",
            "--agents",
            "claude-code,codex",
        ])
        .success();
    assert!(!again.stdout.contains("created"), "{}", again.shown);
    // A workflow that somebody changed stays, and so does the ledger.
    let gate = env.repo().join(".github/workflows/handoff-gate.yml");
    let text = fs::read_to_string(&gate).unwrap();
    fs::write(
        &gate,
        text.replace("timeout-minutes: 20", "timeout-minutes: 9"),
    )
    .unwrap();
    env.handoff(&["init", "--github"])
        .success()
        .says("nothing changed");
    let tip = env.tip();
    let removed = env.handoff(&["uninstall"]).success();
    removed
        .says("the ledger stays: branch handoffs, refs/handoff/, ")
        .says("to delete the ledger here for good: git for-each-ref ");
    assert!(gate.is_file());
    fs::remove_dir_all(env.repo().join(".github")).unwrap();
    assert_eq!(files(), before);
    assert_eq!(env.tip(), tip);
    assert!(!env.repo().join(".git/hooks/pre-commit").exists());
    env.handoff(&["uninstall"])
        .success()
        .says("nothing was installed here");
    // What runs agents is only there if it is asked for.
    let agents = env.repo().join(".github/workflows/handoff-agent.yml");
    let action = ["init", "--github", "octo/handoff/action@1"];
    env.handoff(&action).success();
    assert!(!agents.exists());
    env.handoff(&[&action[..], &["--github-agents"]].concat())
        .success()
        .says(".github/workflows/handoff-agent.yml: created");
    let text = fs::read_to_string(&agents).unwrap();
    assert_eq!(text.matches("uses: octo/handoff/action@1").count(), 3);
    // Another commit of it takes its place, and what was changed stays.
    let changed = text.replace("TIME: 45m", "TIME: 9m");
    fs::write(&agents, &changed).unwrap();
    let newer = ["init", "--github", "octo/handoff/action@2"];
    env.handoff(&newer)
        .success()
        .says("handoff-agent.yml: uses: octo/handoff/action@1 → uses: octo/handoff/action@2");
    let now = fs::read_to_string(&agents).unwrap();
    assert_eq!(now, changed.replace("action@1", "action@2"));
    env.handoff(&newer).success().says("nothing changed");
    fs::write(&agents, now.replace("TIME: 9m", "TIME: 45m")).unwrap();
    env.handoff(&["uninstall"]).success();
    assert!(!agents.exists());
    // One of the names is taken: no workflow is written.
    fs::create_dir_all(env.repo().join(".github/workflows")).unwrap();
    fs::write(&gate, "name: other\n").unwrap();
    env.handoff(&["init", "--github", "octo/handoff/action@1"])
        .exits(9)
        .says("handoff-gate.yml");
    assert!(
        !env.repo()
            .join(".github/workflows/handoff-intake.yml")
            .exists()
    );
}

#[test]
fn workflows_name_the_ledgers_branch() {
    let env = TestEnvironment::with_repository();
    let init = [
        "init",
        "--branch",
        "no",
        "--github",
        "octo/handoff/action@1",
        "--github-agents",
    ];
    env.handoff(&init).success();
    let folder = env.repo().join(".github");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    for name in ["agent", "audit", "gate", "intake", "verify"] {
        let text = read(&format!("workflows/handoff-{name}-no.yml"));
        assert!(text.contains("  LEDGER: \"no\"\n"), "{name}: {text}");
    }
    assert!(read("ruleset-ledger-no.json").contains("\"refs/heads/no\""));
    env.handoff(&["uninstall"]).success();
    assert!(!folder.exists());
}

#[test]
fn claim_names_the_part_and_has_a_command_for_every_usual_way_on() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent")
        .success()
        .says("your part: Prepares branch and workspace");
    let prepared = [&PREPARED[..], &["workspace_type=in-place"]].concat();
    act(&env, "prep-agent", &sending("implementer-agent", &prepared)).success();
    let claimed = act(&env, "implementer-agent", &["claim", "--next"]).success();
    let (fields, next): (Vec<&str>, Vec<&str>) = claimed
        .stderr
        .lines()
        .partition(|line| line.starts_with("    "));
    assert!(
        next[0].starts_with("next: git handoff send --issue 87 --to reviewer-agent"),
        "{next:?}"
    );
    assert!(fields[4].contains("or `n/a: ` and why"), "{fields:?}");
    assert!(
        next[0].ends_with("   # Implementation ready for review"),
        "{next:?}"
    );
    // What goes to an orchestrator instead is left to `block` and `fail`.
    assert_eq!(next.len(), 1, "{next:?}");
}

#[test]
fn claim_prints_every_send_shortly_and_the_last_one_says_that_the_issue_is_complete() {
    let env = TestEnvironment::with_ledger();
    let steps = workflow(|_| Format::Json);
    let claim = |agent: &str| {
        let claimed = act(&env, agent, &["claim", "87"]).success();
        let length = claimed.stdout.chars().count() + claimed.stderr.chars().count();
        assert!(length <= 6_000, "{length}: {}", claimed.shown);
        claimed
    };
    run(&env, &steps[..10]);
    assert_eq!(
        sends(&claim("reviewer-agent")),
        [
            ("fixer-agent", "Review asks for changes"),
            ("validator-agent", "Review approves")
        ]
    );
    run(&env, &steps[11..22]);
    assert_eq!(
        sends(&claim("validator-agent")),
        [
            ("closer-agent", "Merged"),
            ("fixer-agent", "Validation failed")
        ]
    );
    run(&env, &steps[23..25]);
    let Step::Send(last) = &steps[25] else {
        panic!("the last step sends the report");
    };
    let completed = env.send(last).success();
    let told = "\n  issue 87 is complete: no work is left in it\n";
    assert!(completed.stdout.contains(told), "{}", completed.shown);
}

#[test]
fn wrong_usage_names_what_would_be_right() {
    let env = TestEnvironment::with_ledger();
    act(
        &env,
        "issue-manager",
        &["send", "--issue", "0", "--to", "prep-agent"],
    )
    .exits(2)
    .says("0 is not an issue's number: the first is 1");
    env.handoff(&["claim", "--next"])
        .exits(2)
        .says("agents are: issue-manager, prep-agent");
    env.handoff(&["claim", "--nonsense"])
        .exits(2)
        .says("see `git handoff claim -h`");
    env.handoff(&["protocol", "new", "bad name", "--agents", "a,b"])
        .exits(2)
        .says("protocol name \"bad name\"");
}

#[test]
fn a_role_that_decides_is_told_every_result_with_approval_first() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    let prepared = [&PREPARED[..], &["workspace_type=in-place"]].concat();
    act(&env, "prep-agent", &sending("implementer-agent", &prepared)).success();
    env.claim("87.2", "implementer-agent").success();
    let work = sample("implementer-agent-to-reviewer-agent", Format::Json, 87);
    env.send(work.replace("enhancement/87-csv-export", "issue-87"))
        .success();
    let claimed = act(&env, "reviewer-agent", &["claim", "--next"]).success();
    let entry = "    blocking_issues (once for each entry): {\"location\":\"{{fill: path and line of the finding}}\",\
                 \"severity\":\"{{fill: critical, important or suggestion}}\",\"description\":\"{{fill: what is wrong there}}\"}; optional: finding";
    let starts = [
        "choose one: git handoff send --issue 87 --to validator-agent ",
        "  or: git handoff send --issue 87 --to fixer-agent ",
    ];
    let lines: Vec<&str> = claimed.stderr.lines().collect();
    let next: Vec<&&str> = lines
        .iter()
        .filter(|line| !line.starts_with("    "))
        .collect();
    assert_eq!(next.len(), starts.len(), "{lines:?}");
    for (line, start) in next.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    assert!(lines.contains(&entry), "{lines:?}");
    assert!(
        next[1].ends_with("   # Review asks for changes"),
        "{}",
        next[1]
    );
    let page = act(&env, "reviewer-agent", &["prime"])
        .success()
        .says("2. git handoff send --issue 87 --to validator-agent ")
        .says("# once it is done, choose one: \"Review approves\"; then your part is done")
        .says("   or: git handoff send --issue 87 --to fixer-agent ")
        .says("# \"Review asks for changes\"")
        .says("- \"Agent failed or is blocked\": git handoff new ");
    assert!(!page.stdout.contains("more contract"), "{}", page.stdout);
    let refused = act(&env, "reviewer-agent", &sending("fixer-agent", &[])).exits(3);
    refused.says(
        "--set blocking_issues.0.location, --set blocking_issues.0.severity, --set blocking_issues.0.description",
    );
}

#[test]
fn what_send_lacks_is_named_with_what_is_expected() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent")
        .success()
        .says("\n    branch: code branch of the work\n    workspace_path: path of the workspace\n    workspace_type: worktree, in-place or cloud\n");
    let prepared = |set: &[&'static str]| {
        let all = [
            &[
                "branch=issue-87",
                "workspace_path=.",
                "dependencies=a",
                "build=b",
            ][..],
            set,
        ]
        .concat();
        act(&env, "prep-agent", &sending("implementer-agent", &all))
    };
    let fields = "`git handoff protocol show issue-to-pr --type prep-agent-to-implementer-agent` lists the fields";
    prepared(&["workspace_type=in-place", "dev_server=running"])
        .exits(3)
        .says("hint: give --set port; ");
    prepared(&["workspace_type=here", "dev_server=n/a: a library"])
        .exits(3)
        .says(&format!(
            "hint: give other values with --set FIELD=VALUE; {fields}"
        ));
    prepared(&["workspace_type=in-place", "dev_server=n/a: a library"]).success();
    env.claim("87.2", "implementer-agent").success();
    env.git(&env.repo(), &["checkout", "-qb", "issue-87"]);
    let built = [
        "pr_url=https://github.com/quayside/parcel-desk/pull/9",
        "pr_number=9",
        "tests_added=2",
        "coverage=87.5%",
    ];
    let none = "commit the work on it first";
    act(
        &env,
        "implementer-agent",
        &sending("reviewer-agent", &built),
    )
    .exits(3)
    .says("/commits field.unfilled branch issue-87 has no commits of its own yet\n")
    .says(&format!("hint: give --set summary; {none}"));
    let built = [&built[..], &["summary=Built"]].concat();
    let refused = act(
        &env,
        "implementer-agent",
        &sending("reviewer-agent", &built),
    )
    .exits(3);
    assert!(!refused.shown.contains("sha"), "{}", refused.shown);
    refused.says(&format!("hint: {none}"));
    env.git(
        &env.repo(),
        &["commit", "-q", "--allow-empty", "-m", "Work"],
    );
    // A refused value is told what `claim` asks for.
    let asked = "test coverage, such as 87.5%, or `n/a: ` and why\n";
    env.claim("87.2", "implementer-agent").says(asked);
    let unsaid = [&built[..3], &built[4..], &["coverage=n/a:none"]].concat();
    act(
        &env,
        "implementer-agent",
        &sending("reviewer-agent", &unsaid),
    )
    .exits(3)
    .says("/coverage field.pattern `n/a:none` is not valid here\n")
    .says(&format!("      {asked}"));
    act(
        &env,
        "implementer-agent",
        &sending("reviewer-agent", &built),
    )
    .success();
}

#[test]
fn what_is_missing_and_what_is_wrong_is_told_at_once() {
    let env = TestEnvironment::with_ledger();
    let opens = |more: &[&str]| {
        let set = [
            "issue_title=A file",
            "summary=A file",
            "requirements=One row",
        ];
        let set = [&set[..], &["priority=normal", "type=bugfix"], more].concat();
        let opens = [&sending("prep-agent", &set)[..], &["--issue", "3"]].concat();
        act(&env, "issue-manager", &opens).exits(3).stderr
    };
    insta::assert_snapshot!(opens(&[]), @"
    error: the contract is not complete; nothing was written
      /issue_url field.unfilled web address of the issue, taken from an origin on a forge; without a forge, such as https://none.invalid/me/repo/issues/7
      /type field.value `bugfix` is not one of `feature`, `bug`, `enhancement`, `refactor`, `chore`
          Kind of work: feature, bug, enhancement, refactor or chore
      /priority field.value `normal` is not one of `critical`, `high`, `medium`, `low`
          How urgent the work is: critical, high, medium or low
    hint: give --set issue_url; give other values with --set FIELD=VALUE; `git handoff protocol show issue-to-pr --type issue-manager-to-prep-agent` lists the fields
    ");
    let given = opens(&["issue_url=https://github.com/octo/parcels/issues/3"]);
    assert!(!given.contains("issue_url"), "{given}");
}

#[test]
fn who_holds_nothing_is_told_that_before_the_fields() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let send = |agent, to, set: &[&str]| {
        act(
            &env,
            agent,
            &[&["send", "--issue", "87", "--to", to], set].concat(),
        )
    };
    let prepared = [
        "--set",
        "branch=b",
        "--set",
        "dependencies=a",
        "--set",
        "build=b",
        "--set",
        "dev_server=c",
    ];
    for set in [&[][..], &prepared] {
        send("prep-agent", "implementer-agent", set)
            .exits(4)
            .says("error: prep-agent has not claimed 87.1\n")
            .says("hint: claim it first: `git handoff claim 87.1 --as prep-agent`");
    }
    let refused = send("implementer-agent", "reviewer-agent", &[]).exits(4);
    refused
        .says("error: implementer-agent holds nothing in issue 87\n")
        .says("/pr_url field.unfilled")
        .says("87.1 is with prep-agent");
    env.claim("87.1", "prep-agent").success();
    send("prep-agent", "implementer-agent", &[])
        .exits(3)
        .says("the contract is not complete");
}

#[test]
fn a_ledger_that_is_gone_is_told_with_what_brings_it_back() {
    let env = TestEnvironment::with_ledger();
    let tip = env.tip();
    env.git(&env.repo(), &["branch", "-q", "-D", "handoffs"]);
    let here = env.handoff(&[]).success().stdout;
    assert!(
        here.contains("here: the ledger's branch handoffs existed, but is gone\n"),
        "{here}"
    );
    assert!(
        here.contains(&format!("next: git branch handoffs {tip} ")),
        "{here}"
    );
}

#[test]
fn what_send_wrote_is_told_of_by_field() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init"]).success();
    let before = [
        sending("prep-agent", &OPENING[..2]),
        vec![
            "--issue",
            "87",
            "--set",
            "issue_url=https://github.com/octo/parcels/issues/87",
        ],
        vec!["--set", "priority=soon", "--set", "summary=A file"],
        vec!["--set", "requirements=One row", "--set", "requirements="],
    ];
    let refused = act(&env, "issue-manager", &before.concat()).exits(3);
    insta::assert_snapshot!(refused.stderr, @"
    error: the contract was refused
      /priority field.value `soon` is not one of `critical`, `high`, `medium`, `low`
          How urgent the work is: critical, high, medium or low
      /requirements/1 field.length the text is empty
          What must hold when the work is done: one `requirement` for each demand
    hint: give other values with --set FIELD=VALUE; `git handoff protocol show issue-to-pr --type issue-manager-to-prep-agent` lists the fields
    ");
    env.send(opening(87)).success();
    // Who has not claimed what waits is led to that first.
    act(&env, "prep-agent", &sending("implementer-agent", &PREPARED))
        .exits(2)
        .says("hint: `git handoff claim --next --as prep-agent");
    env.claim("87.1", "prep-agent").success();
    let set = [&PREPARED[..], &["workspace_type=in-place"]].concat();
    let sent = act(&env, "prep-agent", &sending("implementer-agent", &set)).success();
    insta::assert_snapshot!(sent.stderr, @r#"
      /branch warning evidence.branch there is no branch "issue-87" here
          accepted already: what you make good now, tell with `git handoff annotate 87.2 --as prep-agent --note TEXT`; create or fetch the branch, or name the right one; `git handoff protocol set issue-to-pr evidence.branch enforce` refuses it
    next, for implementer-agent: git handoff claim 87.2 --as implementer-agent
    "#);
}

#[test]
fn a_contract_sent_again_is_told_how_it_is_compared_anew() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init"]).success();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    env.send(prepared(87)).success().says("contradicted branch");
    let branch = "enhancement/87-csv-export";
    env.git(&env.repo(), &["branch", branch]);
    let again = env.send(prepared(87)).success();
    insta::assert_snapshot!(again.shown, @"
    $ git handoff send -
    87.2 prep-agent → implementer-agent: pending
      statements: contradicted branch
      already in the ledger, in the state above; nothing was written
      it was compared with the repository as it was then; as it is now: git handoff show 87.2 --contract | git handoff check -
      to record that: git handoff cancel 87.2 --as prep-agent --reason WHY, then send it again
    --- stderr
    next, for implementer-agent: git handoff claim 87.2 --as implementer-agent
    ");
    let contract = env
        .handoff(&["show", "87.2", "--contract"])
        .success()
        .stdout;
    let checked = env.handoff_with(&["check", "-"], &contract).success();
    assert!(
        !checked.shown.contains("evidence.branch"),
        "{}",
        checked.shown
    );
    let cancel = [
        "cancel",
        "87.2",
        "--as",
        "prep-agent",
        "--reason",
        "the branch is there",
    ];
    env.handoff(&cancel).success();
    let anew = env.send(prepared(87)).success();
    assert!(!anew.shown.contains("contradicted"), "{}", anew.shown);
}

#[test]
fn the_issue_is_the_one_whose_branch_is_checked_out() {
    let env = TestEnvironment::with_ledger();
    let on = |branch: &str| env.git(&env.repo(), &["checkout", "-q", "-B", branch]);
    for issue in [87, 88] {
        env.send(opening(issue)).success();
    }
    let asked = [&["next"][..], &["context"], &["graph"], &["gate"]];
    // By the name that `work` gives, until a contract names another.
    on("handoff/88");
    for args in asked {
        let (here, named) = (env.handoff(args), env.handoff(&[args, &["88"]].concat()));
        let first = |ran: &Ran| ran.stdout.lines().next().map(str::to_owned);
        assert_eq!(first(&here), first(&named), "{args:?}");
        assert_eq!(here.status, named.status, "{args:?}");
    }
    env.claim("88", "prep-agent").success();
    let prepared = prepared(88);
    let branch = prepared.split("<branch>").nth(1).unwrap();
    let branch = branch.split("</branch>").next().unwrap().to_owned();
    env.send(prepared.clone()).success();
    for args in asked {
        env.handoff(args)
            .exits(2)
            .says("no issue is named, and none has the branch handoff/88");
    }
    on(&branch);
    let said = env.handoff(&["next"]).success();
    assert_eq!(said.stdout, env.handoff(&["next", "88"]).stdout);
    env.handoff(&["context", "--json"]).success().says("\"88\"");
    // Two that claim to have it are not told apart.
    let note = format!("branch={branch}");
    let note = [
        "annotate",
        "87",
        "--as",
        "maintainer",
        "--fact",
        &note,
        "--note",
        "here",
    ];
    env.handoff(&note).success();
    env.handoff(&["next"])
        .exits(2)
        .says("several have the branch")
        .says("87, 88");
    env.git(&env.repo(), &["checkout", "-q", "--detach"]);
    env.handoff(&["gate"]).exits(2).says("no issue is named");
    env.handoff(&["graph", "--since", "30d"]).exits(2);
}

#[test]
fn the_command_that_uninstall_prints_leaves_nothing_of_the_ledger() {
    let env = TestEnvironment::with_repository();
    let repo = env.repo();
    let origin = bare(&env, "origin.git");
    env.git(
        &repo,
        &["remote", "add", "origin", origin.to_str().unwrap()],
    );
    env.git(&repo, &["push", "-q", "origin", "HEAD:refs/heads/main"]);
    env.git(&repo, &["fetch", "-q", "origin"]);
    let before = (
        env.git(&repo, &["for-each-ref"]),
        env.git(&repo, &["rev-list", "--all", "--reflog"]),
    );
    env.handoff(&["init", "--remote", "origin", "--hooks"])
        .success();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    fs::write(repo.join("kept.txt"), "half").unwrap();
    let fail = ["fail", "87.1", "--as", "prep-agent", "--code", "E"];
    env.handoff(&[&fail[..], &["--message", "503", "--snapshot"]].concat())
        .success();
    env.git(&repo, &["fetch", "-q", "origin"]);
    env.handoff(&["metrics"]).success();
    fs::remove_file(repo.join("kept.txt")).unwrap();
    let said = env.handoff(&["uninstall"]).success().stdout;
    let (_, command) = said
        .split_once("to delete the ledger here for good: ")
        .unwrap();
    let mut shell = Command::new("sh");
    let ran = shell.args(["-c", command.trim()]).current_dir(&repo);
    assert!(ran.status().unwrap().success(), "{command}");
    // What reads brings nothing back.
    for reading in [
        &[][..],
        &["status"],
        &["list"],
        &["log"],
        &["show", "87.1"],
        &["prime", "--as", "prep-agent"],
        &["verify"],
        &["report"],
        &["metrics"],
        &["alerts"],
        &["doctor"],
        &["workers"],
        &["refused"],
        &["gate", "87"],
        &["protocol", "list"],
        &["fetch"],
    ] {
        env.handoff(reading);
    }
    let after = (
        env.git(&repo, &["for-each-ref"]),
        env.git(&repo, &["rev-list", "--all", "--reflog"]),
    );
    assert_eq!(after, before);
    assert!(!repo.join(".git/handoff").exists());
    let config = fs::read_to_string(repo.join(".git/config")).unwrap();
    assert!(!config.contains("[handoff"), "{config}");
    assert_eq!(env.git(&repo, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(env.git(&repo, &["status", "--porcelain"]), "");
}

/// What `init` refuses writes nothing: not here, not at the remote, not into the configuration.
#[test]
fn a_refused_init_writes_nothing_anywhere() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init"]).success();
    let origin = bare(&env, "server.git");
    let address = origin.to_str().unwrap();
    env.git(&env.repo(), &["remote", "add", "origin", address]);
    let refs = |dir: &Path| env.git(dir, &["for-each-ref", "--format=%(refname)"]);
    let configured = |dir: &Path| {
        let ran = env.git_any(dir, &["config", "handoff.remote"]);
        ran.stdout.trim().to_owned()
    };
    let init = ["init", "--remote", "origin"];
    let others = [
        (["--protocol", "review"], "with protocol issue-to-pr"),
        (["--evidence", "enforce"], "with --evidence warn"),
    ];
    for (other, why) in others {
        env.handoff(&[&init[..], &other].concat())
            .exits(4)
            .says(&format!("error: the ledger already exists, {why}\n"));
        assert_eq!(refs(&origin), "");
        assert_eq!(configured(&env.repo()), "");
    }
    // Nor is a ledger taken over that is at the remote only.
    env.handoff(&init)
        .success()
        .says("\n  in every other clone: git handoff init --remote origin\n");
    let other = TestEnvironment::with_repository();
    test_support::remote::origin(&other);
    other
        .handoff(&[&init[..], &["--branch", "steps"]].concat())
        .success()
        .says("in every other clone: git handoff init --remote origin --branch steps\n");
    let clone = env.root().join("clone");
    env.git(env.root(), &["clone", "-q", address, "clone"]);
    for (other, why) in others {
        env.handoff_in(&clone, &[&init[..], &other].concat())
            .exits(4)
            .says(why);
        let heads = env.git(&clone, &["for-each-ref", "refs/heads"]);
        assert_eq!(heads, "", "{why}");
        assert_eq!(configured(&clone), "");
    }
    env.handoff_in(
        &clone,
        &[&init[..], &["--protocol", "issue-to-pr"]].concat(),
    )
    .success()
    .says("took over the ledger of origin");
}

/// A check that an earlier fault ends says what it has not come to.
#[test]
fn check_says_what_it_has_not_judged_yet() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--evidence", "enforce"]).success();
    env.send(opening(87)).success();
    let file = |text: &str| env.file("contract.xml", text);
    let wrong = prepared(87).replace("<port>4187", "<port>many");
    let later = "more may follow: ";
    let check = |text: &str| {
        let name = file(text);
        env.handoff(&["check", &name, "--as", "prep-agent"])
    };
    // What can be judged is: the step.
    check(&wrong)
        .exits(3)
        .says("  step.refused ")
        .says("more may follow: what the repository says of it was not judged yet\n");
    check(&wrong.replace("<status>ready", "<status>soon"))
        .exits(3)
        .says("more may follow: whether it may be sent now was not judged yet\n");
    check(&wrong.replace("<dependencies>", "<dependency>"))
        .exits(3)
        .says("more may follow: whether it may be sent now, and what the repository says of it, was not judged yet\n");
    let unclaimed = check(&prepared(87)).exits(4);
    assert!(
        unclaimed
            .stdout
            .ends_with("more may follow: what the repository says of it was not judged yet\n"),
        "{}",
        unclaimed.shown
    );
    env.claim("87.1", "prep-agent").success();
    for text in [&prepared(87), &wrong] {
        let judged = check(text);
        assert!(!judged.shown.contains(later), "{}", judged.shown);
    }
}

/// The author gets all faults at once: of the document, of the step, and of the statements.
#[test]
fn a_refusal_has_the_faults_of_every_layer() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    let contract = |to: &str, branch: &str| {
        format!(
            r#"{{"issue": "7", "from": "coder", "to": "{to}", "branch": "{branch}", "commits": ["{}"],
            "summary": "", "findings": []}}"#,
            "d".repeat(40)
        )
    };
    let codes = |command: &str, contract: &str| {
        let ran = env.handoff_with(&[command, "-", "--as", "coder", "--json"], contract);
        let ran = ran.exits(3).json();
        let findings = ran["error"]["findings"].as_array().unwrap().clone();
        let code = |found: &Value| found["code"].as_str().unwrap().to_owned();
        findings.iter().map(code).collect::<Vec<_>>().join(" ")
    };
    for command in ["check", "send"] {
        let found = codes(command, &contract("reviewer", "nowhere"));
        assert_eq!(found, "evidence.branch field.pattern", "{command}");
        // What the branch is, nobody knows.
        let found = codes(command, &contract("reviewer", ""));
        assert_eq!(found, "field.length field.pattern", "{command}");
    }
    // The step is refused as well: nobody has opened the issue, and a review opens none.
    let review =
        r#"{"issue": "8", "from": "reviewer", "to": "coder", "summary": "", "findings": []}"#;
    let check = ["check", "-", "--as", "reviewer"];
    env.handoff_with(&check, review)
        .exits(3)
        .says("step.refused issue 8 has not been opened yet")
        .says("field.pattern");
}

/// The id of a merge is not asked for before there is one.
#[test]
fn work_that_is_not_merged_is_said_not_to_be() {
    let env = TestEnvironment::with_ledger();
    let branch = "enhancement/87-csv-export";
    env.git(&env.repo(), &["switch", "-q", "-c", branch]);
    let work = ["commit", "-q", "--allow-empty", "-m", "Work"];
    env.git(&env.repo(), &work);
    let contract = |kind: &str| sample(kind, Format::Xml, 87);
    env.send(contract("issue-manager-to-prep-agent")).success();
    for (agent, kind) in [
        ("prep-agent", "prep-agent-to-implementer-agent"),
        ("implementer-agent", "implementer-agent-to-reviewer-agent"),
        ("reviewer-agent", "reviewer-agent-to-validator-agent"),
    ] {
        env.claim("87", agent).success();
        env.send(contract(kind)).success();
    }
    env.claim("87", "validator-agent").success();
    let send = || act(&env, "validator-agent", &sending("closer-agent", &[]));
    let why = format!("{branch} is not merged into main here yet");
    let early = send()
        .exits(3)
        .says(&format!("/merge_sha field.unfilled {why}\n"))
        .says("; `git handoff gate 87`; if it exits 0, merge the commit that it approves: `git merge --no-ff COMMIT` on main");
    assert!(!early.stderr.contains("--set merge_sha"), "{}", early.shown);
    env.git(&env.repo(), &["switch", "-q", "main"]);
    env.git(&env.repo(), &["merge", "-q", "--no-ff", branch]);
    let merged = send();
    assert!(!merged.stderr.contains("merge_sha"), "{}", merged.shown);
}

/// Who may open an issue and has nothing to do may stop: an issue is no duty.
#[cfg(feature = "agents")]
#[test]
fn who_may_open_an_issue_may_stop_too() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    let work = ["commit", "-q", "--allow-empty", "-m", "Work"];
    env.git(&env.repo(), &work);
    let sent = sending("reviewer", &["branch=csv", "summary=Done"]);
    act(&env, "coder", &[&sent[..], &["--issue", "7"]].concat()).success();
    let page = act(&env, "coder", &["prime"]).success().stdout;
    assert!(
        page.contains("nothing waits for you: you may stop, or open an issue.\n"),
        "{page}"
    );
    assert!(
        page.contains("\n   git handoff send --issue ISSUE"),
        "{page}"
    );
    assert!(!page.contains("1. git handoff send"), "{page}");
}
