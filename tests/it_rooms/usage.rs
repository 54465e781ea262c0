//! What work cost, and the budgets that end it.

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{opening, prepared};
use test_support::team::{at_once, exits, record, said};
use test_support::time::{assert_goes_there_and_back, attempt, denied, done, own};

/// The shipped protocol with these budgets.
fn budgeted(budgets: Value) -> TestEnvironment {
    own("issue-to-pr", |protocol| {
        protocol["limits"]["budgets"] = budgets
    })
}

/// A report of one model's usage, without spaces.
fn usage(input: u64, output: u64, cost: f64) -> String {
    let model = json!({
        "provider": "anthropic", "model": "opus", "input_tokens": input, "output_tokens": output,
        "cached_tokens": input / 2, "cost": cost, "currency": "USD", "turns": 3,
    });
    model.to_string()
}

fn file(env: &TestEnvironment, path: &str) -> Value {
    let text = env.git(&env.repo(), &["show", &format!("handoffs:{path}")]);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn each_claim_has_its_own_totals_and_a_later_report_replaces_them() {
    let env = TestEnvironment::with_ledger();
    let opened = format!("--usage={}", usage(900, 100, 0.25));
    env.handoff_with(&["send", "-", &opened], opening(87))
        .success();
    done(&env, "claim 87.1 --as prep-agent");
    let extend = ["extend", "87.1", "--as", "prep-agent", "--usage"];
    let report = |text: &str| env.handoff(&[&extend[..], &[text]].concat()).success();
    report(&usage(100, 10, 0.1));
    report(&usage(300, 20, 0.2));
    let fail = format!(
        "fail 87.1 --as prep-agent --message late --usage {}",
        usage(400, 30, 0.3)
    );
    done(&env, &fail);
    done(&env, "retry 87.1 --as orchestrator");
    env.wait_minutes(60);
    done(&env, "claim 87.1 --as prep-agent");
    let path = env.file(
        "usage.json",
        format!("[{},{}]", usage(5, 5, 0.5), usage(6, 6, 0.5)),
    );
    env.handoff_with(&["send", "-", "--usage", &path], prepared(87))
        .success();
    let told = |id: &str| {
        let usage = record(&env, id)["usage"].take();
        let usage = usage.as_array().unwrap().iter().map(|one| {
            let costs = one["models"]
                .as_array()
                .unwrap()
                .iter()
                .map(|m| m["cost"].to_string());
            let costs: Vec<String> = costs.collect();
            format!(
                "{} attempt {} claim {}: {}",
                one["by"],
                one["attempt"],
                one["token"],
                costs.join("+")
            )
        });
        usage.collect::<Vec<_>>()
    };
    assert_eq!(
        told("87.1"),
        [
            r#""issue-manager" attempt 1 claim 0: 0.25"#,
            r#""prep-agent" attempt 1 claim 1: 0.3"#,
            r#""prep-agent" attempt 2 claim 2: 0.5+0.5"#,
        ]
    );
    // What is known only later is told with a note.
    let late = [
        "annotate",
        "87.1",
        "--as",
        "prep-agent",
        "--note",
        "all of it",
        "--usage",
    ];
    let report = usage(20, 20, 1.5);
    env.handoff(&[&late[..], &[&report]].concat()).success();
    env.handoff(&[&late[..], &[&report]].concat())
        .success()
        .says("already has this note");
    assert_eq!(told("87.1")[2], r#""prep-agent" attempt 2 claim 2: 1.5"#);
    let other = [
        "annotate",
        "87.1",
        "--as",
        "orchestrator",
        "--note",
        "x",
        "--usage",
    ];
    // Only its own agent says what it took, and totals only grow: a budget can't be cleared.
    env.handoff(&[&other[..], &[&report]].concat()).exits(3);
    let less = usage(20, 20, 1.25);
    env.handoff(&[&late[..], &[&less]].concat())
        .exits(3)
        .says("less than was reported before");
    assert_eq!(told("87.1").len(), 3);
    assert_eq!(told("87.1")[2], r#""prep-agent" attempt 2 claim 2: 1.5"#);
    assert!(record(&env, "87.2")["usage"].is_null());
    insta::assert_snapshot!(done(&env, "status 87").stdout.lines().take(6).collect::<Vec<_>>().join("\n"), @r#"
    issue 87: open (issue-to-pr, 2 handoffs, since 2026-03-02 09:05:00Z)
      title: Export delivery history as CSV
      took 2.05 USD, 1,470 tokens
        issue-manager 0.25 USD, 1,000 tokens
        prep-agent 1.80 USD, 470 tokens
      issue_url: https://github.com/quayside/parcel-desk/issues/87
    "#);
    insta::assert_snapshot!(done(&env, "metrics").stdout.split("\nusage").nth(1).unwrap(), @r#"
                  input  cached  output  turns  cost
    all                1,320  660     150     9      2.05 USD
    by issue-manager   900    450     100     3      0.25 USD
    by prep-agent      420    210     50      6      1.80 USD
    of anthropic/opus  1,320  660     150     9      2.05 USD
    on 2026-03-02      1,320  660     150     9      2.05 USD
    "#);
    let text = done(&env, "metrics --format openmetrics").stdout;
    let samples = text
        .lines()
        .filter(|line| line.starts_with("git_handoff_usage_cost{"));
    insta::assert_snapshot!(samples.collect::<Vec<_>>().join("\n"), @r#"
    git_handoff_usage_cost{protocol="issue-to-pr",agent="issue-manager",provider="anthropic",model="opus",currency="USD"} 0.25
    git_handoff_usage_cost{protocol="issue-to-pr",agent="prep-agent",provider="anthropic",model="opus",currency="USD"} 1.8
    "#);
    env.assert_sound();
    assert_goes_there_and_back(&env, "issue-to-pr");
}

#[test]
fn a_report_is_checked_before_anything_is_written() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    done(&env, "claim 87.1 --as prep-agent");
    let tip = env.tip();
    for (report, why) in [
        ("{}", "none of input_tokens"),
        (r#"{"cost":1}"#, "given together"),
        (r#"{"turns":-1}"#, "invalid value"),
        (
            r#"[{"turns":1},{"turns":1,"model":"a b"}]"#,
            "is not a name",
        ),
        (r#"{"turns":1,"spend":2}"#, "unknown field"),
        ("[", "EOF"),
    ] {
        let line = [
            "extend",
            "87.1",
            "--as",
            "prep-agent",
            "--usage",
            report,
            "--json",
        ];
        let ran = env.handoff(&line).exits(3);
        assert_eq!(ran.json()["error"]["code"], "usage_refused", "{report}");
        ran.says(why);
    }
    let missing = "extend 87.1 --as prep-agent --usage missing.json";
    denied(&env, missing, 6, "no_file");
    assert_eq!(env.tip(), tip);
}

#[test]
fn an_issue_is_claimed_until_its_budget_is_spent() {
    let env = budgeted(json!({
        "run": {"per": "run", "cost": 2, "currency": "USD"},
        "team": {"per": "issue", "cost": 1, "currency": "USD"},
    }));
    env.send(opening(87)).success();
    env.send(opening(88)).success();
    let claimed = env.data(&["claim", "87.1", "--as", "prep-agent"]);
    let left = |data: &Value| {
        let all = data["budget"].as_array().unwrap().iter();
        let all = all.map(|one| format!("{}: {} of {}", one["budget"], one["left"], one["most"]));
        all.collect::<Vec<_>>()
    };
    assert_eq!(
        left(&claimed),
        [r#""run": 2.0 of 2.0"#, r#""team": 1.0 of 1.0"#]
    );
    let cost = |cost: f64| format!("--usage={}", usage(10, 1, cost));
    env.handoff(&["extend", "87.1", "--as", "prep-agent", &cost(0.4)])
        .success();
    let again = env.data(&["claim", "87.1", "--as", "prep-agent"]);
    assert_eq!(
        left(&again),
        [r#""run": 1.6 of 2.0"#, r#""team": 1.0 of 1.0"#]
    );
    env.handoff_with(&["send", "-", &cost(1.25)], prepared(87))
        .success();
    let tip = env.tip();
    let refused = attempt(&env, "claim 87.2 --as implementer-agent").exits(4);
    insta::assert_snapshot!(refused.shown, @r#"
    $ git handoff claim 87.2 --as implementer-agent
    --- stderr
    error: 87.2 cannot be claimed: 1.25 USD of 1.00 USD per issue (budget team) is spent or claimed
    hint: ask a person to raise the budget (`git handoff protocol set issue-to-pr limits.budgets.cost.team N`) or to end the issue; `git handoff status 87` shows what it cost
    --- exit 4
    "#);
    assert_eq!(env.tip(), tip);
    denied(
        &env,
        "claim --next --as implementer-agent",
        4,
        "budget_spent",
    );
    // What another issue has is not spent.
    done(&env, "claim --next --as prep-agent");
    insta::assert_snapshot!(attempt(&env, "alerts").exits(1).stdout, @r#"
    critical needs-person: needs_person is 1, not below 1 (issue-to-pr)
      since 2026-03-02 09:11:00Z (6m)
      87.2
      `git handoff next ISSUE` says what a person has to decide, or which limit to raise
    warning budget: budget_spent is 125.0 %, not below 80.0 % (issue-to-pr)
      since 2026-03-02 09:11:00Z (6m)
      issue 87
      see what it was spent on, and raise the budget or end the work
    "#);
    done(
        &env,
        "protocol set issue-to-pr limits.budgets.cost.team 3.5",
    );
    done(&env, "claim 87.2 --as implementer-agent");
    assert!(
        file(&env, "issues/87/00/87/issue.json")["spent"]["prep-agent"]["ended"]["cost"]["USD"]
            == 1.25
    );
    env.assert_sound();
    assert_goes_there_and_back(&env, &env.root().join("own").display().to_string());
}

#[test]
fn a_day_ends_and_what_runs_counts_with_its_whole_share() {
    let env = budgeted(json!({
        "run": {"per": "run", "agent": "prep-agent", "tokens": 400},
        "day": {"per": "day", "agent": "prep-agent", "tokens": 1000, "attempts": 4},
    }));
    for issue in 1..=6 {
        env.send(opening(issue)).success();
    }
    done(&env, "claim 1.1 --as prep-agent");
    done(&env, "claim 2.1 --as prep-agent");
    done(&env, "claim 3.1 --as prep-agent");
    // Three shares of 400 are claimed of 1,000.
    let ran = denied(&env, "claim 4.1 --as prep-agent", 4, "budget_spent");
    ran.says("1,200 tokens of 1,000 tokens per day by prep-agent (budget day)");
    let report = format!("--usage={}", usage(50, 10, 0.0));
    env.handoff(&[
        "fail",
        "1.1",
        "--as",
        "prep-agent",
        "--message",
        "no",
        &report,
    ])
    .success();
    env.handoff(&[
        "fail",
        "2.1",
        "--as",
        "prep-agent",
        "--message",
        "no",
        &report,
    ])
    .success();
    done(&env, "claim 4.1 --as prep-agent");
    denied(&env, "claim 5.1 --as prep-agent", 4, "budget_spent").says("4 attempts of 4 attempts");
    env.wait_minutes(24 * 60);
    // The next day, and yesterday's leases ran out.
    done(&env, "claim 5.1 --as prep-agent");
    env.assert_sound();
    let days = env.git(
        &env.repo(),
        &["ls-tree", "--name-only", "handoffs", "spent/"],
    );
    assert_eq!(days.lines().count(), 2, "{days}");
    assert_goes_there_and_back(&env, &env.root().join("own").display().to_string());
}

#[test]
fn workers_at_once_claim_no_more_than_a_budget_has() {
    let env = budgeted(json!({"day": {"per": "day", "attempts": 3}}));
    for issue in 1..=8 {
        env.send(opening(issue)).success();
    }
    let claims: Vec<Vec<String>> = (1..=8)
        .map(|issue| {
            let line = format!("claim {issue}.1 --as prep-agent --worker w{issue}");
            line.split(' ').map(str::to_owned).collect()
        })
        .collect();
    let outputs = at_once(&env, &claims);
    let mut exits = exits(&outputs);
    exits.sort_unstable();
    assert_eq!(exits, [0, 0, 0, 4, 4, 4, 4, 4], "{}", said(&outputs));
    env.assert_sound();
}

#[test]
fn a_sum_that_was_changed_by_hand_is_found() {
    let env = budgeted(json!({"day": {"per": "day", "attempts": 1}}));
    env.send(opening(87)).success();
    done(&env, "claim 87.1 --as prep-agent");
    let repo = env.repo();
    let day = env.git(&repo, &["ls-tree", "--name-only", "handoffs", "spent/"]);
    let day = day.trim();
    let mut changed = file(&env, day);
    changed["protocols"]["issue-to-pr"]["prep-agent"]["ended"]["attempts"] = 0.into();
    let path = env.file("changed.json", changed.to_string());
    let blob = env.git(&repo, &["hash-object", "-w", &path]);
    let in_index = |args: &[&str]| {
        let mut git = env.command("git");
        git.args(args)
            .current_dir(&repo)
            .env("GIT_INDEX_FILE", env.root().join("index"));
        env.run(git, args, None).success().stdout
    };
    in_index(&["read-tree", "handoffs"]);
    let entry = format!("100644,{},{day}", blob.trim());
    in_index(&["update-index", "--cacheinfo", &entry]);
    let tree = in_index(&["write-tree"]);
    let args = [
        "commit-tree",
        tree.trim(),
        "-p",
        "handoffs",
        "-m",
        "Less was spent",
    ];
    let commit = env.git(&repo, &args);
    env.git(&repo, &["update-ref", "refs/heads/handoffs", commit.trim()]);
    let ran = env.handoff(&["verify"]).exits(10);
    ran.says("the commit is not a step");
}

#[test]
fn sums_of_any_size_can_be_read_again() {
    let env = budgeted(json!({
        "day": {"per": "day", "tokens": 1_000_000_000_000_000_u64},
    }));
    let much = r#"{"cost": 999999999.5, "currency": "VND", "output_tokens": 5}"#;
    for issue in [87, 88, 89] {
        env.send(opening(issue)).success();
        let id = format!("{issue}.1");
        env.claim(&id, "prep-agent").success();
        env.handoff(&["complete", &id, "--as", "prep-agent", "--usage", much])
            .success();
    }
    let too_much = much.replace("999999999.5", "1e9");
    let add = ["annotate", "87.1", "--as", "prep-agent", "--note", "x"];
    env.handoff(&[&add[..], &["--usage", &too_much]].concat())
        .exits(3)
        .says("cost is");
    env.handoff(&["status", "87"]).success();
    env.handoff(&["metrics"]).success().says("VND");
    env.assert_sound();
}

#[test]
fn a_figure_beyond_belief_keeps_nobody_from_their_work() {
    let env = budgeted(json!({
        "day": {"per": "day", "agent": "prep-agent", "cost": 100, "currency": "USD"},
    }));
    for issue in [1, 2] {
        env.send(opening(issue)).success();
    }
    done(&env, "claim 1.1 --as prep-agent");
    let report = |cost: f64| {
        let usage = usage(10, 10, cost);
        env.handoff(&["extend", "1.1", "--as", "prep-agent", "--usage", &usage])
    };
    let tip = env.tip();
    report(999_999_999.0)
        .exits(3)
        .says("more than 1000 times the 100.00 USD of budget day");
    assert_eq!(env.tip(), tip);
    done(&env, "claim 2.1 --as prep-agent --worker another");
    // What is only dear counts.
    report(150.0).success();
    env.assert_sound();
}
