//! What a person sees on a terminal: views that fit it, git's pager, the progress of long work.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;
use serde_json::Value;
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared, sample};
use test_support::files::script;
use test_support::terminal::Terminal;

/// A ledger with one handoff for each way to look at it.
fn desk() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    let summary = "Dispatchers ask for their delivery history as a file";
    let send = |issue: u32, about: &str| {
        let contract = sample("issue-manager-to-prep-agent", Format::Json, issue);
        assert!(contract.contains(summary));
        env.send(contract.replace(summary, about)).success();
    };
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    env.send(prepared(87)).success();
    env.claim("87.2", "implementer-agent").success();
    let failed = ["fail", "87.2", "--as", "implementer-agent", "--message"];
    let why = "the export runs out of memory at 48,000 rows, before the second batch";
    env.handoff(&[&failed[..], &[why]].concat()).success();
    env.wait_minutes(26 * 60);
    send(
        88,
        "配達履歴をファイルとして書き出せるようにしてほしいという要望がある、列の順序は画面と同じ",
    );
    env.wait_minutes(90);
    send(
        89,
        "👩‍👩‍👧‍👦 family accounts 🇩🇪🇫🇷 see each other's parcels: cafe\u{301} orders too, not only shops",
    );
    env.claim("89.1", "prep-agent").success();
    env.wait_minutes(20);
    send(
        90,
        "Which carriers are meant?\\u0009A tab, \\u202eturned round",
    );
    env.claim("90.1", "prep-agent").success();
    let blocked = ["block", "90.1", "--as", "prep-agent", "--reason"];
    let asked = "are \u{1b}[31mall\u{7} carriers meant, or those with an interface of their own?";
    env.handoff(&[&blocked[..], &[asked]].concat()).success();
    env
}

#[test]
fn status_fits_the_terminal() {
    let env = desk();
    for columns in [120, 80, 40] {
        let seen = Terminal::new(&env, columns).handoff(&["status", "--no-pager"]);
        assert_eq!(seen.status, 0);
        assert_snapshot!(format!("status_{columns}"), seen.screen);
    }
}

#[test]
fn lists_and_logs_fit_the_terminal() {
    let env = desk();
    for columns in [120, 80, 40] {
        let terminal = Terminal::new(&env, columns);
        let mut shown = String::new();
        for args in [
            &["inbox", "--as", "prep-agent"][..],
            &["list", "--state", "pending"],
            &["log", "-n", "7"],
            &["status", "87"],
        ] {
            let seen = terminal.handoff(&[args, &["--no-pager"]].concat());
            assert_eq!(seen.status, 0);
            shown += &format!("$ git handoff {}\n{}\n\n", args.join(" "), seen.screen);
        }
        assert_snapshot!(format!("lists_{columns}"), shown);
    }
}

#[test]
fn a_handoff_is_shown_with_how_long_ago_things_were() {
    let env = desk();
    let seen = Terminal::new(&env, 80).handoff(&["show", "87.2", "--no-pager"]);
    assert_snapshot!(seen.screen);
}

/// A ledger with so many handoffs that no screen holds them.
fn long() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    for issue in 1..=60 {
        env.send(opening(issue)).success();
    }
    env
}

/// A pager of the test's own: a script that gets the whole text on standard input.
fn pager(env: &TestEnvironment, script: &str) -> String {
    let path = env.file("pager", format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A pager that says what it got.
const MARKS: &str = "echo PAGER; cat";

#[test]
fn colors_are_there_for_a_terminal_that_takes_them() {
    let env = desk();
    let list = [
        "list",
        "--state",
        "failed",
        "--state",
        "pending",
        "--no-pager",
    ];
    let terminal = || Terminal::new(&env, 80);
    assert_snapshot!(terminal().handoff(&list).raw);
    let configured = |key: &str, value: &str| {
        env.git(&env.repo(), &["config", key, value]);
        let seen = terminal().handoff(&list);
        env.git(&env.repo(), &["config", "--unset", key]);
        seen.raw
    };
    for (raw, why) in [
        (
            terminal().with("NO_COLOR", "1").handoff(&list).raw,
            "NO_COLOR",
        ),
        (terminal().with("TERM", "dumb").handoff(&list).raw, "TERM"),
        (
            terminal()
                .handoff(&[&list[..], &["--color", "never"]].concat())
                .raw,
            "--color",
        ),
        (configured("color.ui", "never"), "color.ui"),
        (configured("color.handoff", "false"), "color.handoff"),
    ] {
        assert!(!raw.contains("\\e"), "{why}: {raw}");
        // What colours say, symbols say too.
        assert!(
            raw.contains("✗ failed") && raw.contains("○ pending"),
            "{why}: {raw}"
        );
    }
    env.git(&env.repo(), &["config", "color.ui", "never"]);
    let seen = terminal().handoff(&[&list[..], &["--color", "always"]].concat());
    assert!(seen.raw.contains("\\e[31m✗ failed"), "{}", seen.raw);
}

#[test]
fn a_locale_without_unicode_gets_ascii() {
    let env = desk();
    let terminal = Terminal::new(&env, 80).with("LC_ALL", "C");
    let failed = ["list", "--state", "failed", "--no-pager"];
    assert_snapshot!(terminal.handoff(&failed).screen, @"
    87.2  x failed  prep-agent -> implementer-agent  medium  1 day ago
      | Export delivery history as CSV: the export runs out of memory at 48,000 r...
    ");
    let narrow = Terminal::new(&env, 60).with("LC_ALL", "C");
    assert_snapshot!(narrow.handoff(&failed).screen, @"
    87.2  x failed  prep-agent -> implementer-agent  medium
      1 day ago
      | Export delivery history as CSV: the export runs out o...
    ");
    assert_snapshot!(terminal.handoff(&["log", "87", "-n", "1", "--no-pager"]).screen, @"
    [commit]  1 day ago  implementer-agent  held 1m  87.2 failed: the export ru...
    1 shown; the rest: git handoff log 87 -n 1 --no-pager --after [commit]
    the same with git: git log -n 1 handoffs -- issues/87/00/87
    ");
    // The first that is set counts.
    let lang = Terminal::new(&env, 80)
        .with("LC_ALL", "")
        .with("LANG", "de_DE.UTF-8");
    assert!(lang.handoff(&failed).screen.contains("✗ failed"));
}

#[test]
fn columns_says_how_wide_the_terminal_is() {
    let env = desk();
    let seen = |terminal: Terminal| terminal.handoff(&["list", "--no-pager"]).screen;
    let wide = seen(Terminal::new(&env, 200).with("COLUMNS", "60"));
    assert!(
        wide.lines().all(|line| line.chars().count() <= 60),
        "{wide}"
    );
    assert!(wide.contains('…'), "{wide}");
    let unknown = seen(Terminal::new(&env, 200).with("COLUMNS", "many"));
    assert!(
        unknown.lines().any(|line| line.chars().count() > 100),
        "{unknown}"
    );
}

#[test]
fn without_a_terminal_each_row_is_one_line_whatever_the_environment_says() {
    let env = desk();
    let list = ["list", "--state", "failed"];
    let piped = env.handoff(&list).success().stdout;
    assert_snapshot!(piped, @"87.2  failed  prep-agent → implementer-agent  medium  1 day ago  Export delivery history as CSV: the export runs out of memory at 48,000 rows, before the second batch");
    for (name, value) in [
        ("COLUMNS", "20"),
        ("PAGER", "false"),
        ("GIT_PAGER_IN_USE", "0"),
    ] {
        let mut command = env.program(&list);
        command.env(name, value);
        assert_eq!(
            env.run(command, &list, None).success().stdout,
            piped,
            "{name}"
        );
    }
}

#[test]
fn a_long_view_goes_through_less() {
    let env = long();
    let terminal = || Terminal::new(&env, 80).rows(10);
    let list = || env.program(&["list"]);
    let seen = terminal().run(list(), &[(":", "G"), ("(END)", "q")]);
    assert_eq!(seen.status, 0);
    assert_snapshot!(seen.screen, @"
      | Export delivery history as CSV
    57.1  ○ pending  issue-manager → prep-agent  medium  4 minutes ago
      | Export delivery history as CSV
    58.1  ○ pending  issue-manager → prep-agent  medium  3 minutes ago
      | Export delivery history as CSV
    59.1  ○ pending  issue-manager → prep-agent  medium  2 minutes ago
      | Export delivery history as CSV
    60.1  ○ pending  issue-manager → prep-agent  medium  1 minute ago
      | Export delivery history as CSV
    ");
    // Colours are let through, and the screen stays as it was left: `LESS=FRX`.
    assert!(seen.raw.contains("\\e[33m○ pending\\e[0m"), "{}", seen.raw);
    // Ctrl-C is the pager's own, and takes nothing down.
    let seen = terminal().run(list(), &[(":", "\u{3}"), (":", "q")]);
    assert_eq!(seen.status, 0);
    // What fits the screen is there at once.
    let seen = terminal().handoff(&["list", "--issue", "7"]);
    assert_eq!((seen.status, seen.screen.lines().count()), (0, 2));
}

#[test]
fn the_pager_is_the_one_that_git_would_take() {
    let env = desk();
    let marks = pager(&env, MARKS);
    let terminal = || Terminal::new(&env, 120);
    let config = |key: &str, value: &str| env.git(&env.repo(), &["config", key, value]);
    let list = ["list", "--state", "pending"];
    let paged = |terminal: Terminal, args: &[&str]| {
        let seen = terminal.handoff(args);
        assert_eq!(seen.status, 0, "{}", seen.raw);
        assert!(seen.raw.contains("88.1"), "{}", seen.raw);
        seen.raw.contains("PAGER")
    };
    assert!(paged(terminal().with("PAGER", &marks), &list));
    assert!(paged(
        terminal().with("GIT_PAGER", &format!("sed '1s/^/PAGER/' | {marks}")),
        &list
    ));
    for none in ["cat", ""] {
        let terminal = terminal().with("PAGER", &marks).with("GIT_PAGER", none);
        assert!(!paged(terminal, &list), "{none:?}");
    }
    config("core.pager", &marks);
    assert!(paged(terminal().with("PAGER", "cat"), &list));
    assert!(!paged(terminal().with("GIT_PAGER", "cat"), &list));
    assert!(!paged(terminal(), &[&list[..], &["--no-pager"]].concat()));
    assert!(!paged(terminal(), &[&list[..], &["--json"]].concat()));
    assert!(!paged(terminal().with("TERM", "dumb"), &list));
    config("pager.handoff", "false");
    assert!(!paged(terminal(), &list));
    config("core.pager", "cat");
    config("pager.handoff", "true");
    assert!(!paged(terminal(), &list));
    config("pager.handoff", &marks);
    assert!(paged(terminal(), &list));
    assert!(!paged(terminal().with("GIT_PAGER", "cat"), &list));
    // What a command did is not a view.
    let seen = terminal().handoff(&["claim", "88.1", "--as", "prep-agent"]);
    assert!(!seen.raw.contains("PAGER"), "{}", seen.raw);
}

#[test]
fn a_pager_that_fails_or_leaves_changes_no_answer() {
    let env = long();
    let terminal = |pager: &str| Terminal::new(&env, 80).with("GIT_PAGER", pager);
    // It is not there, by itself or in a shell, or may not be started.
    let refused = env.file("text", "no program");
    for pager in ["no-such-pager", "no-such-pager --long", &refused] {
        let seen = terminal(pager).handoff(&["list"]);
        assert_eq!(seen.status, 0, "{pager}");
        assert!(seen.raw.contains("60.1"), "{pager}: {}", seen.raw);
    }
    // It reads nothing, or says that it failed: the answer was the command's.
    for pager in ["true", "false", "exit 3", "head -n 1"] {
        assert_eq!(terminal(pager).handoff(&["list"]).status, 0, "{pager}");
    }
    // Errors are not for it.
    let marks = pager(&env, MARKS);
    let seen = terminal(&marks).handoff(&["status", "no-such-issue"]);
    assert_eq!(seen.status, 6);
    assert!(
        seen.raw.contains("error") && !seen.raw.contains("PAGER"),
        "{}",
        seen.raw
    );
}

#[test]
fn a_damaged_ledger_is_told_in_the_pager_and_by_the_exit_code() {
    let env = desk();
    env.git(&env.repo(), &["config", "core.pager", &pager(&env, MARKS)]);
    let seen = Terminal::new(&env, 120).handoff(&["verify"]);
    assert_eq!(seen.status, 0);
    assert!(seen.raw.starts_with("PAGER"), "{}", seen.raw);
    let tree = env.git(&env.repo(), &["rev-parse", "handoffs~1^{tree}"]);
    let args = [
        "commit-tree",
        tree.trim(),
        "-p",
        "handoffs",
        "-m",
        "By hand",
    ];
    let forged = env.git(&env.repo(), &args);
    env.git(
        &env.repo(),
        &["update-ref", "refs/heads/handoffs", forged.trim()],
    );
    let seen = Terminal::new(&env, 120).handoff(&["verify"]);
    assert_eq!(seen.status, 10);
    let (report, error) = seen.raw.split_once("error").unwrap();
    assert!(
        report.starts_with("PAGER") && report.contains("commit.message"),
        "{report}"
    );
    assert!(
        error.contains("damaged") || error.contains("hint"),
        "{error}"
    );
}

#[test]
fn in_gits_pager_it_looks_as_on_a_terminal() {
    let env = desk();
    let list = ["-p", "handoff", "list", "--state", "failed"];
    let git = |variables: &[(&'static str, &str)], columns: u16| {
        let mut command = env.command("git");
        command.args(list);
        let terminal = Terminal::new(&env, columns).with("GIT_PAGER", "cat -A; echo PAGER");
        let terminal = variables
            .iter()
            .fold(terminal, |t, (name, value)| t.with(name, value));
        terminal.run(command, &[])
    };
    let seen = git(&[], 80);
    assert_eq!(seen.status, 0);
    assert_snapshot!(seen.screen, @r"
    ^[[1m87.2^[[0m  ^[[31mM-bM-^\M-^W failed^[[0m  prep-agent M-bM-^FM-^R implemente
    r-agent  medium  ^[[2m1 day ago^[[0m$
      | Export delivery history as CSV: the export runs out of memory at 48,000 rowM
    -bM-^@M-&$
    PAGER
    ");
    let narrow = git(&[], 40);
    assert!(narrow.raw.lines().count() > seen.raw.lines().count());
    assert!(!git(&[("NO_COLOR", "1")], 80).raw.contains("^[["));
    assert!(!git(&[("TERM", "dumb")], 80).raw.contains("^[["));
    env.git(&env.repo(), &["config", "color.pager", "false"]);
    let seen = git(&[], 80);
    assert!(
        !seen.raw.contains("^[[") && seen.raw.contains("day ago"),
        "{}",
        seen.raw
    );
    // In a pager of its own just so.
    let terminal = Terminal::new(&env, 80).with("GIT_PAGER", "cat -A");
    let seen = terminal.handoff(&["list"]);
    assert!(
        !seen.raw.contains("^[[") && seen.raw.contains("day ago"),
        "{}",
        seen.raw
    );
}

/// An import that takes longer than a second, or a remote that does.
#[test]
fn long_work_says_how_far_it_is_on_a_terminal_only() {
    let env = desk();
    let remote = env.root().join("remote.git");
    let remote = remote.to_str().unwrap();
    env.git(env.root(), &["init", "-q", "--bare", remote]);
    let slow = format!("{remote}/hooks/pre-receive");
    script(slow.as_ref(), "#!/bin/sh\ncat > /dev/null\nsleep 2\n");
    env.git(&env.repo(), &["config", "handoff.remote", remote]);
    let seen = Terminal::new(&env, 60).handoff(&["sync"]);
    assert_eq!(seen.status, 0, "{}", seen.raw);
    assert!(
        seen.raw.contains("\\e[Ksending to the remote: "),
        "{}",
        seen.raw
    );
    // Nothing of it is left.
    assert!(seen.raw.contains("\\e[Ksent "), "{}", seen.raw);
    assert!(!seen.screen.contains("sending"), "{}", seen.screen);

    env.send(opening(91)).exits(0);
    env.handoff(&["send", &env.file("more.xml", opening(92)), "--offline"]);
    let quiet = env.handoff(&["sync"]).success();
    assert!(!quiet.shown.contains("sending"), "{}", quiet.shown);
    env.handoff(&["send", &env.file("more.xml", opening(93)), "--offline"]);
    let json = Terminal::new(&env, 60).handoff(&["sync", "--json"]);
    assert!(json.raw.starts_with('{'), "{}", json.raw);
    env.handoff(&["send", &env.file("more.xml", opening(94)), "--offline"]);
    let dumb = Terminal::new(&env, 60)
        .with("TERM", "dumb")
        .handoff(&["sync"]);
    assert!(dumb.raw.starts_with("sent "), "{}", dumb.raw);
}

#[test]
fn status_names_first_what_needs_someone() {
    let env = desk();
    let data = env.data(&["status"]);
    let told = |data: &Value| -> Vec<String> {
        let stuck = data["attention"].as_array().unwrap().iter();
        let one = |s: &Value| format!("{} {} {}", s["id"], s["need"], s["turn"]).replace('"', "");
        stuck.map(one).collect()
    };
    let before = ["87.2 failed maintainer", "90.1 blocked orchestrator"];
    assert_eq!(told(&data), before);
    assert_eq!(
        data["attention"][0]["next"],
        "git handoff retry 87.2 --as maintainer --reason WHY"
    );
    // The lease of 89.1 ends, and 88.1 waits for longer than one would have lasted.
    env.wait_minutes(4 * 60);
    let after = [
        "87.2 failed maintainer",
        "90.1 blocked orchestrator",
        "89.1 lease_ran_out orchestrator",
        "88.1 unclaimed prep-agent",
    ];
    assert_eq!(told(&env.data(&["status"])), after);
    let seen = Terminal::new(&env, 100).handoff(&["status", "--no-pager"]);
    assert!(
        seen.screen.contains("◐ in_progress, lease ran out"),
        "{}",
        seen.screen
    );
    let piped = env.handoff(&["status"]).success().stdout;
    assert!(piped.contains("needs attention\n! 87.2 failed"), "{piped}");
}
