//! Setting what the queue goes by, for one issue or for all that meet a query; issues that come after
//! others, end together, or are about the same.

use test_support::contracts::opening;
use test_support::team::with_protocol;
use test_support::time::{RESEARCH, TRACE, WRITER, asks, traced};
use test_support::{Ran, TestEnvironment};

const WHY: [&str; 4] = ["--as", "orchestrator", "--reason", "the customer waits"];

fn with_three() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    for issue in [7, 8, 10] {
        env.send(opening(issue)).success();
    }
    env
}

fn with(args: &[&'static str]) -> Vec<&'static str> {
    [args, &WHY[..]].concat()
}

fn lacks(ran: &Ran, text: &str) {
    assert!(!ran.shown.contains(text), "{}", ran.shown);
}

#[test]
fn the_queue_goes_by_a_priority_that_was_set() {
    let env = with_three();
    let first = |env: &TestEnvironment| {
        let inbox = env.data(&["inbox", "--as", "prep-agent"]);
        inbox["handoffs"][0]["id"].as_str().unwrap().to_owned()
    };
    assert_eq!(first(&env), "7.1");
    env.handoff(&with(&["set", "10", "priority=critical"]))
        .success()
        .says("issue 10: priority medium → critical  commit ");
    assert_eq!(first(&env), "10.1");
    env.handoff(&with(&["set", "10", "priority=critical"]))
        .success()
        .says("issue 10: unchanged, priority is critical\n");
    env.handoff(&with(&["set", "7", "priority=soon"]))
        .exits(2)
        .says(
            "known are: critical, high, medium, low; such as `git handoff set 7 priority=critical ",
        );
    env.handoff(&with(&["set", "7", "colour=red"])).exits(2);
    env.handoff(&[
        "set",
        "7",
        "priority=low",
        "--as",
        "fixer-agent",
        "--reason",
        "x",
    ])
    .exits(4);
    let args = [
        "annotate",
        "7",
        "--fact",
        "priority=high",
        "--note",
        "urgent",
    ];
    env.handoff(&args)
        .exits(2)
        .says("git handoff set 7 priority=high");
    // What follows has it, too.
    env.handoff(&with(&[
        "set",
        "--where",
        "priority=medium and title~csv",
        "priority=high",
    ]))
    .success()
    .says("issue 7: priority medium → high");
    let list = env.data(&["list", "--priority", "high"]);
    assert_eq!(list["total"], 2);
    env.handoff(&["verify"]).success();
}

/// Each refusal names what can be set, and a command that is accepted.
#[test]
fn a_protocol_without_priorities_says_what_can_be_set() {
    let env = test_support::time::own("review", |protocol| {
        protocol["name"] = "hurry".into();
        protocol.as_object_mut().unwrap().remove("words");
    });
    let work = ["send", "--issue", "7", "--to", "reviewer", "--as", "coder"];
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    env.git(&env.repo(), &["commit", "-q", "--allow-empty", "-m", "CSV"]);
    let fields = ["--set", "branch=csv", "--set", "summary=Done"];
    env.handoff(&[&work[..], &fields].concat()).success();
    let set = |what: &str| {
        let why = ["--as", "maintainer", "--reason", "asked"];
        env.handoff(&[&["set", "7", what][..], &why].concat())
    };
    let known = "known are: labels, assignee, after, duplicate_of, split_from; such as \
                 `git handoff set 7 labels=urgent --reason WHY --as maintainer`";
    for (what, told) in [
        (
            "priority=high",
            "\"high\", of which protocol hurry has none,",
        ),
        ("branch=x", "\"branch\" can't be set"),
    ] {
        set(what).exits(2).says(told).says(known);
    }
    set("duplicate_of=7")
        .exits(2)
        .says("names the issue itself");
    let unknown = set("duplicate_of=9").exits(6);
    assert!(!unknown.shown.contains("case counts"), "{}", unknown.shown);
    set("labels=urgent").success();
}

#[test]
fn an_issue_that_comes_after_another_is_handed_out_once_that_has_ended() {
    let env = with_three();
    env.handoff(&with(&["set", "8", "after=7,10"])).success();
    env.handoff(&with(&["set", "7", "after=8"]))
        .exits(2)
        .says("after itself");
    lacks(&env.handoff(&["doctor"]), "issue 8");
    // Resuming drops no order.
    env.handoff(&with(&["resume", "8"]))
        .exits(4)
        .says("git handoff set 8 after=none --as orchestrator");
    env.handoff(&with(&["resume", "--where", "issue=8"]))
        .success()
        .says("nothing meets these conditions");
    env.handoff(&["claim", "8.1", "--as", "prep-agent"])
        .exits(4)
        .says("until issues 7, 10 have ended");
    // What is next is in the issue that it waits for.
    let next = |told: &str| {
        let ran = env.handoff(&["next", "8"]).success().says(told);
        assert!(!ran.shown.contains("reopen"), "{}", ran.shown);
    };
    next("git handoff next 7");
    env.handoff(&["next", "8", "--apply", "--as", "orchestrator"])
        .exits(4)
        .says("run `git handoff next 7`");
    env.handoff(&with(&["cancel", "7", "--all"])).success();
    env.handoff(&["claim", "8.1", "--as", "prep-agent"])
        .exits(4);
    next("git handoff next 10");
    env.handoff(&with(&["cancel", "10", "--all"])).success();
    next("prep-agent with 8.1");
    lacks(&env.handoff(&["status", "8"]).success(), "paused");
    env.handoff(&["claim", "--next", "--as", "prep-agent"])
        .success();
    let issue = env.data(&["status", "8"]);
    assert!(issue["record"]["paused"].is_null(), "{issue:#}");
    env.handoff(&["verify"]).success();
}

#[test]
fn an_order_that_is_taken_back_lifts_no_other_pause_and_reopens_nothing() {
    let env = with_three();
    env.handoff(&with(&["set", "8", "after=7"])).success();
    let none = |issue| env.handoff(&with(&["set", issue, "after=none"]));
    none("8").success().says("issue 8: after 7 → none  commit ");
    none("8")
        .success()
        .says("issue 8: unchanged, after is none\n");
    env.handoff(&with(&["pause", "10"])).success();
    none("10").success().says("unchanged");
    env.handoff(&["status", "10"]).says("paused");
    env.handoff(&with(&["cancel", "7", "--all"])).success();
    none("7").exits(4);
    env.handoff(&["status", "7"]).says("issue 7: cancelled");
}

#[test]
fn what_is_set_of_an_issue_is_one_step() {
    let env = with_three();
    let commits = || env.git(&env.repo(), &["rev-list", "--count", "handoffs"]);
    let count = || commits().trim().parse::<u32>().unwrap();
    let before = count();
    for words in [
        &["set", "8", "priority=high", "after=7"][..],
        &["set", "10", "after=7,8", "labels=csv"],
    ] {
        env.handoff(&with(words)).success();
        env.handoff(&with(words)).success().says("unchanged");
    }
    assert_eq!(count(), before + 2);
    env.handoff(&["log", "8"])
        .says("set priority=\"high\" after=7");
    env.handoff(&["claim", "8.1", "--as", "prep-agent"])
        .exits(4)
        .says("until issue 7 has ended");
    let set = ["set", "8", "priority=low", "after=99"];
    env.handoff(&with(&set)).exits(6).says("no issue 99");
    assert_eq!(env.data(&["show", "8.1"])["handoff"]["priority"], "high");
    env.handoff(&with(&["cancel", "7", "--all"])).success();
    env.handoff(&["claim", "8.1", "--as", "prep-agent"])
        .success();
    env.assert_sound();
}

#[test]
fn an_order_is_taken_back_with_what_else_is_set_in_one_step() {
    let env = with_protocol("delegation");
    env.pace(1);
    let other = "0b9e3c52-7d14-4a86-8f30-2c5d6e7f8a91";
    env.send(asks(WRITER, RESEARCH, &[])).success();
    env.send(asks(WRITER, RESEARCH, &[("/traceId", other.into())]))
        .success();
    let commits = || env.git(&env.repo(), &["rev-list", "--count", "handoffs"]);
    let count = || commits().trim().parse::<u32>().unwrap();
    let due = || env.data(&["show", &traced(1)])["handoff"]["expires_at"].take();
    let why = ["--as", WRITER, "--reason", "it needs that"];
    let after = format!("after={other}");
    env.handoff(&[&["set", TRACE, &after][..], &why].concat())
        .success();
    let (before, first) = (count(), due());
    env.wait_minutes(10);
    let words = ["set", TRACE, "after=none", "priority=critical"];
    let set = || env.handoff(&[&words[..], &why].concat()).success();
    set().says("critical, after ").says(" → none  commit ");
    assert_eq!(count(), before + 1);
    set().says("unchanged");
    assert_eq!(count(), before + 1);
    env.handoff(&["log", TRACE])
        .says("set priority=\"critical\" after=none");
    let handoff = env.data(&["show", &traced(1)])["handoff"].take();
    assert_eq!(handoff["priority"], "critical");
    assert!(due().as_str() > first.as_str(), "{first}: its whole time");
    env.claim(&traced(1), RESEARCH).success();
    env.assert_sound();
}

#[test]
fn work_is_given_to_another_agent_with_what_else_is_set_in_one_step() {
    let env = with_protocol("delegation");
    env.pace(1);
    env.send(asks(WRITER, RESEARCH, &[])).success();
    let commits = || env.git(&env.repo(), &["rev-list", "--count", "handoffs"]);
    let count = || commits().trim().parse::<u32>().unwrap();
    let before = count();
    let words = ["set", TRACE, "assignee=orchestrator", "priority=critical"];
    let why = ["--as", WRITER, "--reason", "it knows more"];
    let set = || env.handoff(&[&words[..], &why].concat()).success();
    set().says("orchestrator");
    assert_eq!(count(), before + 1);
    set().says("unchanged");
    assert_eq!(count(), before + 1);
    let handoff = env.data(&["show", &traced(1)])["handoff"].take();
    assert_eq!(handoff["to"], "orchestrator");
    assert_eq!(handoff["priority"], "critical");
    env.handoff(&["log", TRACE])
        .says("set priority=\"critical\" assignee=orchestrator");
    env.claim(&traced(1), "orchestrator").success();
    env.assert_sound();
}

#[test]
fn a_running_issue_ends_as_a_duplicate_in_one_command() {
    let env = with_three();
    env.handoff(&["claim", "8.1", "--as", "prep-agent"])
        .success();
    env.handoff(&["cancel", "8", "--duplicate-of", "7", "--as", "orchestrator"])
        .success();
    env.handoff(&["status", "8"])
        .says("cancelled")
        .says("duplicate_of");
    env.handoff(&["status", "7"])
        .says("issue 8 is a duplicate of this one");
    env.handoff(&with(&["set", "10", "split_from=7"])).success();
    env.handoff(&["status", "7"])
        .says("issue 10 was split from this one");
    // Who may not say it of one issue does not say it of the other.
    let tip = env.tip();
    let why = ["--as", "implementer-agent", "--reason", "so"];
    for link in ["duplicate_of=7", "split_from=7"] {
        let set = ["set", "10", link];
        env.handoff(&[&set[..], &why].concat()).exits(4);
    }
    let cancel = ["cancel", "10", "--duplicate-of", "7"];
    env.handoff(&[&cancel[..], &why].concat()).exits(4);
    assert_eq!(env.tip(), tip);
    env.handoff(&["verify"]).success();
}

/// Also while nothing is open in it.
#[test]
fn a_priority_that_is_set_stays_and_several_refusals_have_one_exit() {
    let env = with_three();
    env.handoff(&["cancel", "7.1", "--as", "issue-manager", "--reason", "no"])
        .success();
    env.handoff(&with(&["set", "7", "priority=low"]))
        .success()
        .says("issue 7: priority medium → low");
    env.handoff(&with(&["set", "7", "priority=low"]))
        .says("issue 7: unchanged, priority is low");
    assert_eq!(env.data(&["status", "7"])["known"]["priority"], "low");
    env.handoff(&with(&["set", "7", "8", "priority=soon"]))
        .exits(2)
        .says("2 of 2 changes refused");
    let link = env.handoff(&with(&["set", "8", "10", "duplicate_of=7"]));
    link.success()
        .says("issue 7: noted that issue 8 is a duplicate of this one")
        .says("git handoff cancel ISSUE --duplicate-of 7");
    env.handoff(&with(&["set", "8", "99", "labels=csv"]))
        .exits(1)
        .says("1 of 2 changes refused");
    env.assert_sound();
}

#[test]
fn a_query_cancels_retries_reassigns_and_pauses() {
    let env = with_three();
    for id in ["7.1", "8.1"] {
        env.handoff(&["claim", id, "--as", "prep-agent"]).success();
        env.handoff(&["fail", id, "--as", "prep-agent", "--reason", "no network"])
            .success();
    }
    env.handoff(&with(&["retry", "--where", "state=failed"]))
        .success()
        .says("7.1: pending  commit ")
        .says("8.1: pending");
    env.handoff(&with(&["pause", "--where", "issue=7|8"]))
        .success()
        .says("issue 7: paused");
    env.handoff(&with(&["cancel", "--where", "issue!=8", "--all"]))
        .success()
        .says("7.1: cancelled  commit ")
        .says("issue 7: cancelled  commit ");
    env.handoff(&["cancel", "--where", "state=nowhere"])
        .exits(2);
    let open = env.data(&["status"]);
    assert_eq!(open["total"], 1, "{open:#}");
    env.handoff(&["verify"]).success();
}

#[test]
fn workers_are_shown_with_what_they_hold() {
    let env = with_three();
    env.handoff(&["claim", "7.1", "--as", "prep-agent", "--lease", "1m"])
        .success();
    env.wait_minutes(10);
    let workers = env.data(&["workers"]);
    assert_eq!(workers["workers"][0]["holds"], "7.1");
    assert_eq!(workers["workers"][0]["lost"], true);
    env.handoff(&["workers"]).says("lost");
}

#[test]
fn a_query_that_is_not_understood_is_refused_with_its_place() {
    let env = with_three();
    let list = |query: &str| env.handoff(&["list", "--where", query]);
    list("state=pending or state=failed")
        .exits(2)
        .says("\"or\" at character 15 joins no conditions");
    list("state=pending issue=7")
        .exits(2)
        .says("`and` is missing before \"issue=7\" at character 15");
    list("title~csv issue != 7")
        .exits(2)
        .says("`and` is missing before \"issue\" at character 11");
    list("issue=7||8").exits(2).says("write issue=VALUE");
    for (query, found) in [
        ("state=pending AND issue=7|8", 2),
        ("title~'csv or state=x and' and issue=7", 0),
        ("title~CSV   and state=pending", 3),
    ] {
        let list = env.data(&["list", "--where", query]);
        assert_eq!(list["total"], found, "{query}");
    }
}

#[test]
fn a_pause_that_takes_an_order_s_place_says_so() {
    let env = with_three();
    env.handoff(&with(&["set", "8", "after=7"])).success();
    env.handoff(&with(&["pause", "8"]))
        .success()
        .says("until issue 7 has ended: the customer waits; that ends")
        .says("git handoff resume 8 --as orchestrator");
    env.handoff(&["status"]).says("`git handoff resume 8");
    env.handoff(&with(&["pause", "10"])).success();
    env.handoff(&with(&["resume", "--where", "issue=8|10"]))
        .success()
        .says("issue 8: open")
        .says("issue 10: open");
    env.handoff(&["verify"]).success();
}

#[test]
fn a_link_to_itself_is_refused_and_one_is_taken_back() {
    let env = with_three();
    let set = |words: &[&'static str]| env.handoff(&with(&[&["set"], words].concat()));
    set(&["8", "duplicate_of=8"])
        .exits(2)
        .says("duplicate_of=8 of issue 8 names the issue itself");
    let unknown = set(&["8", "split_from=77"]).exits(6);
    lacks(&unknown.says("there is no issue 77"), "case counts");
    set(&["8", "split_into=7"])
        .exits(2)
        .says("git handoff set 7 split_from=8");
    set(&["8", "duplicate_of=7"]).success();
    set(&["7", "duplicate_of=8"]).exits(2).says("lead back");
    set(&["8", "duplicate_of=none"])
        .success()
        .says("issue 8: duplicate_of 7 → none  commit ");
    env.handoff(&["status", "7"])
        .says("issue 8 is no longer a duplicate of this one");
    let issue = env.data(&["status", "8"]);
    assert!(issue["known"]["duplicate_of"].is_null(), "{issue:#}");
    set(&["8", "duplicate_of=none"])
        .success()
        .says("issue 8: unchanged, duplicate_of is none");
    set(&["7", "duplicate_of=8"]).success();
    set(&["7", "priority=high", "priority=low"])
        .exits(2)
        .says("\"priority\" is given two values");
    let why = ["--as", "implementer-agent", "--reason", "so"];
    env.handoff(&[&["set", "7", "priority=low"][..], &why].concat())
        .exits(4)
        .says("implementer-agent cannot set priority of issue 7");
    env.handoff(&["verify"]).success();
}

#[test]
fn the_command_that_resumes_an_agent_can_be_typed() {
    let env = with_three();
    env.handoff(&with(&["pause", "--agent", "prep-agent"]))
        .success();
    env.handoff(&["claim", "--next", "--as", "prep-agent"])
        .says("`git handoff resume --agent prep-agent --as orchestrator --reason WHY`");
    env.handoff(&["show", "99.1"])
        .exits(6)
        .says("`git handoff list`");
    env.handoff(&["show", "8.7"])
        .exits(6)
        .says("`git handoff status 8`");
    env.handoff(&["set", "8", "--as", "orchestrator", "--reason", "x"])
        .exits(2)
        .says("labels=urgent --reason WHY");
}
