//! The board, on a real terminal.

use std::fs;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared, sample};
use test_support::terminal::{Live, Terminal};

/// A ledger with a handoff that failed, one that is blocked, one that is held and one that waits.
fn desk() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    env.send(prepared(87)).success();
    env.claim("87.2", "implementer-agent").success();
    let failed = ["fail", "87.2", "--as", "implementer-agent", "--recoverable"];
    let why = ["--message", "the export runs out of memory"];
    env.handoff(&[&failed[..], &why].concat()).success();
    env.wait_minutes(90);
    for issue in [88, 89, 90] {
        let contract = sample("issue-manager-to-prep-agent", Format::Json, issue);
        env.send(contract).success();
    }
    env.claim("88.1", "prep-agent").success();
    env.claim("89.1", "prep-agent").success();
    let blocked = ["block", "89.1", "--as", "prep-agent", "--reason"];
    env.handoff(&[&blocked[..], &["which carriers?"]].concat())
        .success();
    env.wait_minutes(20);
    env
}

/// The board of a ledger, once it was read.
fn board(env: &TestEnvironment, args: &[&str]) -> Live {
    let terminal = Terminal::new(env, 80).rows(24);
    let live = terminal.start(&[&["board"], args].concat());
    // What is drawn last.
    live.shows("c: cancel");
    live
}

/// Closes the board; the terminal is as it was found.
fn close(live: Live) -> String {
    live.types("q");
    let left = live.left();
    assert_eq!(left.status.code(), Some(0));
    assert_eq!(left.changed, Vec::<&str>::new());
    String::from_utf8_lossy(&left.raw).replace('\u{1b}', "\\e")
}

#[test]
fn it_shows_what_is_open_in_any_size() {
    let env = desk();
    let live = board(&env, &[]);
    assert_snapshot!("board_80", env.filtered(&live.screen()));
    live.resize(29, 24);
    live.shows("too small: 29x24 of 30x8");
    live.resize(40, 12);
    let narrow = live.shows("2 more >");
    assert!(!narrow.contains("prep-agent"), "{narrow}");
    live.resize(160, 40);
    live.shows("blocked, which carriers?");
    let raw = close(live);
    assert!(raw.contains("\\e[38;5;1;"), "it has no colour: {raw}");
}

/// The header, `status` and the report say how each protocol treats statements.
#[test]
fn policies_are_named_by_protocol() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    let policies = |says: &str| {
        let status = env.handoff(&["status"]).success();
        status.says(&format!("statements are checked: {says}"));
        let live = Terminal::new(&env, 120).rows(24).start(&["board"]);
        live.shows(&format!("statements: {says}"));
        close(live);
        env.handoff(&["report"]).success();
        let page = fs::read_to_string(env.repo().join("handoff-report.html")).unwrap();
        assert!(
            page.contains(&format!("statements are checked: {says}<")),
            "{says}"
        );
    };
    policies("enforce");
    env.handoff(&["protocol", "add", "issue-to-pr"]).success();
    policies("issue-to-pr warn; review enforce");
}

#[test]
fn a_pause_says_what_ends_it() {
    let env = TestEnvironment::with_ledger();
    for issue in [7, 8] {
        env.send(opening(issue)).success();
    }
    let set = ["set", "7", "after=8", "--as", "orchestrator"];
    env.handoff(&[&set[..], &["--reason", "it needs 8"]].concat())
        .success();
    let live = Terminal::new(&env, 160).rows(24).start(&["board"]);
    live.shows("paused until issue 8 has ended, pending");
    close(live);
}

#[test]
fn a_handoff_is_looked_into() {
    let env = desk();
    let repo = env.repo();
    env.git(&repo, &["branch", "enhancement/87-csv-export"]);
    let live = board(&env, &[]);
    live.types("\r");
    let screen = live.shows("fail by implementer-agent");
    assert!(
        screen.contains("87.2 prep-agent → implementer-agent: failed"),
        "{screen}"
    );
    live.types("l");
    live.shows("<from>prep-agent</from>");
    live.types("3");
    live.shows("87.2, attempt 1 failed");
    live.types("\t");
    live.shows("no difference");
    // What happens meanwhile is shown without a key.
    live.types("1");
    let retry = [
        "retry",
        "87.2",
        "--as",
        "orchestrator",
        "--reason",
        "more memory",
    ];
    env.handoff(&retry).success();
    live.shows("more memory");
    live.types("q");
    live.shows("needs attention");
    close(live);
}

#[test]
fn it_follows_the_ledger() {
    let env = desk();
    let live = board(&env, &["--offline"]);
    env.send(opening(95)).success();
    live.shows("○ 95.1");
    env.handoff(&["cancel", "95.1", "--as", "issue-manager", "--reason", "no"])
        .success();
    live.lacks("○ 95.1");
    live.types("/88.\r");
    live.lacks("87.2");
    live.shows("88.1");
    live.types("\u{1b}");
    live.shows("87.2");
    close(live);
}

#[test]
fn the_conditions_of_list_narrow_it_down() {
    let env = desk();
    let set = ["set", "88", "labels=bug", "--as", "maintainer"];
    env.handoff(&[&set[..], &["--reason", "sorted"]].concat())
        .success();
    let terminal = Terminal::new(&env, 80).rows(24);
    let live = terminal.start(&["board", "--label", "bug"]);
    live.shows("88.1");
    live.shows("/label=bug");
    live.lacks("87.2");
    live.types("\u{1b}");
    live.shows("87.2");
    live.types("/state=failed|blocked and title~DELIVERY\r");
    live.lacks("88.1");
    live.shows("89.1");
    live.types("/\u{1b}");
    live.shows("88.1");
    live.types("/state=lost\r");
    live.shows("states are: pending");
    live.types("\u{1b}");
    close(live);
}

#[test]
fn an_action_is_shown_and_done() {
    let env = desk();
    let live = board(&env, &[]);
    live.types("r");
    live.shows("git handoff retry 87.2");
    live.types("orchestrator\rit's $(touch owned) `larger`; now");
    live.shows("--reason 'it'\\''s $(touch owned)");
    live.types("\r");
    live.shows("87.2 prep-agent → implementer-agent: pending");
    let data = env.data(&["show", "87.2"]);
    let last = data["record"]["transitions"].as_array().unwrap().last();
    let last = last.unwrap();
    assert_eq!(last["event"], "retry");
    assert_eq!(last["by"], "orchestrator");
    assert_eq!(last["reason"], "it's $(touch owned) `larger`; now");
    assert!(!env.repo().join("owned").exists());
    live.types("x");
    live.lacks("any key: close");
    // The blocked one is the only one that needs somebody now.
    live.types("a");
    live.shows("git handoff answer 89.1 --as orchestrator");
    live.types("all of them\r");
    live.shows("89.1 issue-manager → prep-agent: pending");
    assert_eq!(env.data(&["show", "89.1"])["handoff"]["state"], "pending");
    live.types("x");
    close(live);
    env.assert_sound();
}

#[test]
fn a_refusal_is_told_and_changes_nothing() {
    let env = desk();
    let before = env.tip();
    let live = board(&env, &["--as", "orchestrator"]);
    live.types("sno-such-agent\r\r");
    live.shows("refused");
    live.shows("no-such-agent");
    live.types("x");
    live.types("a");
    live.shows("87.2 is failed: answer is not for it");
    close(live);
    assert_eq!(env.tip(), before);
}

#[test]
fn without_colours_it_says_the_same() {
    let env = desk();
    let terminal = Terminal::new(&env, 80).rows(24).with("NO_COLOR", "1");
    for args in [&["board"][..], &["board", "--color", "never"]] {
        let live = terminal.start(args);
        live.shows("✗ 87.2");
        let raw = close(live);
        assert!(!raw.contains("\\e[38;5;"), "{raw}");
    }
    let plain = terminal.with("LC_ALL", "C").start(&["board"]);
    plain.shows("x 87.2");
    plain.types("?");
    let screen = plain.shows("git handoff retry");
    assert!(screen.is_ascii(), "{screen}");
    plain.types("x");
    close(plain);
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let env = desk();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let live = board(&env, &[]);
        live.types("r");
        live.shows("git handoff retry 87.2");
        live.signal(signal);
        let left = live.left();
        assert_eq!(left.status.code(), Some(0), "{signal:?}");
        assert_eq!(left.changed, Vec::<&str>::new(), "{signal:?}");
    }
    // Keys that end it at once, also while something is typed.
    let live = board(&env, &[]);
    live.types("r");
    live.shows("git handoff retry 87.2");
    live.types("\u{3}");
    assert_eq!(live.left().changed, Vec::<&str>::new());
}

#[test]
fn foreign_text_moves_nothing() {
    let env = TestEnvironment::with_ledger();
    let foreign = "\\u202eCSV\\u0009export";
    let contract = sample("issue-manager-to-prep-agent", Format::Json, 87);
    let contract = contract.replace("Export delivery history as CSV", foreign);
    env.send(contract).success();
    env.claim("87.1", "prep-agent").success();
    let blocked = [
        "block",
        "87.1",
        "--as",
        "prep-agent",
        "--reason",
        "a \u{1b}[31mred\u{9b}2J reason",
    ];
    let needs = ["--needs", "k\u{1b}[2Jey:integer=\u{1b}[2J"];
    env.handoff(&[&blocked[..], &needs].concat()).success();
    let live = board(&env, &[]);
    live.shows("a \\u{1b}[31mred\\u{9b}2J");
    live.types("\r");
    live.shows("\\u{1b}[31mred");
    live.types("2");
    live.shows("issue-manager");
    live.types("a");
    live.shows("k\\u{1b}[2Jey (integer)");
    live.types("\u{1b}");
    live.lacks("(integer)");
    live.types("q");
    live.shows("needs attention");
    let raw = close(live);
    for harmful in ["\\e]0;", "\\e[31m", "\u{9b}", "\u{202e}", "\u{7}"] {
        assert!(!raw.contains(harmful), "{harmful}: {raw}");
    }
}

#[test]
fn without_a_terminal_or_a_ledger_it_says_what_to_do() {
    let env = desk();
    env.handoff(&["board"]).exits(2).says("git handoff status");
    let json: Value = env.handoff(&["board", "--json"]).exits(2).json();
    assert_eq!(json["error"]["code"], "usage");
    let dumb = Terminal::new(&env, 80).with("TERM", "dumb");
    let seen = dumb.handoff(&["board"]);
    assert_eq!(seen.status, 2);
    assert!(seen.raw.contains("git handoff status"), "{}", seen.raw);
    let empty = TestEnvironment::with_repository();
    let seen = Terminal::new(&empty, 80).handoff(&["board"]);
    let status = Terminal::new(&empty, 80).handoff(&["status"]);
    assert_eq!((seen.status, &seen.raw), (9, &status.raw));
}
