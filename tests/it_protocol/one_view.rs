//! Whoever has to act learns it from every view: what was escalated, what is past its deadline, what
//! no budget pays for; and nothing is offered that is refused.

use std::fs;

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared, sample, value};
use test_support::team::with_protocol;
use test_support::time::{done, own};

/// What the views that a person reads say: `status`, `next`, `inbox`, `prime`, whether a wait ends, and
/// `alerts`.
fn told(env: &TestEnvironment, person: &str) -> String {
    let status = env.data(&["status"]);
    let needs = status["attention"].as_array().unwrap().iter();
    let needs: Vec<String> = needs
        .map(|one| format!("{} {} {}", one["id"], one["need"], one["turn"]).replace('"', ""))
        .collect();
    let next = env.data(&["next", "7"]);
    let inbox = env.handoff(&["inbox", "--as", person]).shown;
    let prime = env.data(&["prime", "--as", person]);
    let wait = env.handoff(&["wait", "--inbox", "--as", person, "--timeout", "0s"]);
    let alerts = env.handoff(&["alerts", "--json"]);
    let document = alerts.json();
    let firing = document["data"]["firing"].as_array().unwrap();
    assert_eq!(alerts.status, i32::from(!firing.is_empty()));
    let alert = firing.iter().find(|one| one["name"] == "needs-person");
    format!(
        "{}\nnext: {} with {}\ninbox: {}\nprime: {}\nwait exits {}\nalert: {}",
        needs.join("\n"),
        next["agent"].as_str().unwrap(),
        next["handoff"]["id"].as_str().unwrap(),
        inbox.lines().nth(1).unwrap(),
        prime["attention"][0]["need"].as_str().unwrap_or("nothing"),
        wait.status,
        alert.map_or("nothing", |alert| alert["ids"][0].as_str().unwrap())
    )
}

/// A ledger whose protocol has changes, with an issue.
fn opened(change: impl FnOnce(&mut Value)) -> TestEnvironment {
    let env = own("issue-to-pr", change);
    env.pace(1);
    env.send(opening(7)).success();
    env
}

#[test]
fn a_person_learns_from_every_view_what_was_escalated() {
    let env = opened(|_| {});
    env.claim("7.1", "prep-agent").success();
    let fail = [
        "fail",
        "7.1",
        "--as",
        "prep-agent",
        "--message",
        "no access",
    ];
    env.handoff(&fail).success();
    insta::assert_snapshot!(told(&env, "maintainer"), @"
    7.1 failed maintainer
    next: maintainer with 7.1
    inbox: needs attention
    prime: failed
    wait exits 0
    alert: nothing
    ");
    let apply = ["next", "7", "--apply", "--as", "orchestrator"];
    env.handoff(&apply).success();
    insta::assert_snapshot!(told(&env, "maintainer"), @"
    7.1 escalated maintainer
    next: maintainer with 7.1
    inbox: needs attention
    prime: escalated
    wait exits 0
    alert: 7.1
    ");
    env.handoff(&["alerts", "--issue", "7"])
        .exits(1)
        .says("critical needs-person: needs_person is 1, not below 1 (issue-to-pr)");
    // `show` offers what `next` does, to the same person.
    let next = env.data(&["next", "7"]);
    let (show, commands) = next["commands"].as_array().unwrap().split_last().unwrap();
    assert_eq!(show, "git handoff show 7.1");
    let show = env.data(&["show", "7.1"]);
    let options = show["options"].as_array().unwrap().iter();
    let options: Vec<&Value> = options.map(|option| &option["command"]).collect();
    assert_eq!(commands.iter().collect::<Vec<_>>(), options);
    insta::assert_snapshot!(options[0], @r#""git handoff retry 7.1 --as maintainer --reason WHY""#);
    // Once something is done about it, it is not with the person any more.
    let retry = [
        "retry",
        "7.1",
        "--as",
        "maintainer",
        "--reason",
        "access is given",
    ];
    env.handoff(&retry).success();
    assert_eq!(env.data(&["status"])["attention"], json!([]));
    env.handoff(&["alerts"]).success();
    env.assert_sound();
}

#[test]
fn a_person_learns_from_every_view_that_the_deadline_has_passed() {
    let env = opened(|p| p["limits"]["deadline_seconds"] = json!(600));
    env.claim("7.1", "prep-agent").success();
    env.wait_minutes(11);
    insta::assert_snapshot!(told(&env, "maintainer"), @"
    7.1 past_deadline maintainer
    next: maintainer with 7.1
    inbox: needs attention
    prime: past_deadline
    wait exits 0
    alert: 7.1
    ");
    let prime = env.data(&["prime", "--as", "prep-agent"]);
    assert_eq!(prime["contract"], Value::Null, "what would be refused");
    let raise = env.data(&["next", "7"])["commands"][0]
        .as_str()
        .unwrap()
        .replace(" N", " 86400");
    let words: Vec<&str> = raise.split(' ').skip(2).collect();
    env.handoff(&[&words[..], &["--as", "maintainer"]].concat())
        .success();
    assert_eq!(env.data(&["status"])["attention"], json!([]));
}

#[test]
fn a_person_learns_from_every_view_that_a_budget_is_spent() {
    let env = opened(|p| {
        p["limits"]["budgets"] =
            json!({ "team": { "per": "issue", "cost": 1, "currency": "USD" } });
    });
    env.claim("7.1", "prep-agent").success();
    let usage = r#"{"model":"m","cost":2,"currency":"USD","input_tokens":1}"#;
    let fail = [
        "fail",
        "7.1",
        "--as",
        "prep-agent",
        "--message",
        "x",
        "--recoverable",
    ];
    env.handoff(&[&fail[..], &["--usage", usage]].concat())
        .success();
    env.handoff(&["retry", "7.1", "--as", "orchestrator", "--reason", "again"])
        .success();
    insta::assert_snapshot!(told(&env, "maintainer"), @"
    7.1 budget_spent maintainer
    next: maintainer with 7.1
    inbox: needs attention
    prime: budget_spent
    wait exits 0
    alert: 7.1
    ");
    let prime = env.data(&["prime", "--as", "prep-agent"]);
    assert_eq!(
        (&prime["waits"]["count"], &prime["later"]["count"]),
        (&json!(0), &json!(1))
    );
    assert!(
        !prime["commands"].to_string().contains("claim 7.1"),
        "{prime:#}"
    );
    env.handoff(&["claim", "7.1", "--as", "prep-agent"])
        .exits(4);
}

#[test]
fn nothing_is_offered_that_a_limit_refuses() {
    let env = opened(|p| p["limits"]["handoffs"] = json!(50));
    let limit = ["protocol", "set", "issue-to-pr", "limits.handoffs", "2"];
    env.handoff(&limit).success();
    let offered = |id: &str, agent: &str| {
        let claimed = env.data(&["claim", id, "--as", agent]);
        let offered = claimed["contracts"].as_array().unwrap().iter();
        let offered = offered.map(|one| one["contract_type"].as_str().unwrap().to_owned());
        offered.collect::<Vec<_>>()
    };
    let first = offered("7.1", "prep-agent");
    assert!(
        first.contains(&"prep-agent-to-implementer-agent".to_owned()),
        "{first:?}"
    );
    env.send(prepared(7)).success();
    assert_eq!(offered("7.2", "implementer-agent"), Vec::<String>::new());
    let prime = env.data(&["prime", "--as", "implementer-agent"]);
    assert_eq!(prime["contract"], Value::Null);
}

/// The issue with its work prepared, on a code branch that is here.
fn with_branch() -> (TestEnvironment, String) {
    let env = opened(|_| {});
    let text = sample("prep-agent-to-implementer-agent", Format::Json, 7);
    let contract: Value = serde_json::from_str(&text).unwrap();
    let branch = contract["branch"].as_str().unwrap().to_owned();
    env.git(&env.repo(), &["branch", &branch]);
    env.claim("7.1", "prep-agent").success();
    env.send(text).success();
    (env, branch)
}

#[test]
fn only_a_commit_that_brought_the_work_is_named_as_the_merge() {
    let (env, branch) = with_branch();
    let git = |args: &[&str]| env.git(&env.repo(), args);
    let named = || {
        let new = [
            "new",
            "--issue",
            "7",
            "--from",
            "validator-agent",
            "--to",
            "closer-agent",
        ];
        let data = env.data(&[&new[..], &["--format", "json"]].concat());
        let contract: Value = serde_json::from_str(data["text"].as_str().unwrap()).unwrap();
        contract["merge_sha"].as_str().unwrap().to_owned()
    };
    assert!(named().starts_with("{{fill"), "{}", named());
    git(&["checkout", "-q", &branch]);
    for file in ["one.txt", "two.txt"] {
        std::fs::write(env.repo().join(file), file).unwrap();
        git(&["add", file]);
        git(&["commit", "-q", "-m", file]);
    }
    git(&["checkout", "-q", "main"]);
    assert!(named().starts_with("{{fill"), "{}", named());
    git(&["merge", "-q", "--squash", &branch]);
    git(&["commit", "-q", "-m", "Both (#5)"]);
    assert_eq!(named(), git(&["rev-parse", "main"]).trim());
}

#[test]
fn that_the_base_branch_is_not_known_is_said() {
    let (env, branch) = with_branch();
    env.git(&env.repo(), &["branch", "-m", "main", "trunk"]);
    let claimed = env.data(&["claim", "7.2", "--as", "implementer-agent"]);
    let hand_on = claimed["contracts"][0]["send"].as_str().unwrap();
    assert!(hand_on.contains("--set commits="), "{hand_on}");
    let send = "send --issue 7 --to reviewer-agent --as implementer-agent --set summary=s --set tests_added=1 \
        --set coverage=80% --set pr_number=5 --set pr_url=https://github.com/quayside/parcel-desk/pull/5";
    let words: Vec<&str> = send.split_whitespace().collect();
    let why = format!("the base of {branch}, which it is merged into, is not known here");
    env.handoff(&words)
        .exits(3)
        .says(&why)
        .says("git config init.defaultBranch BRANCH");
    env.git(&env.repo(), &["config", "init.defaultBranch", "trunk"]);
    env.handoff(&words)
        .exits(3)
        .says("has no commits of its own yet");
}

#[test]
fn the_status_names_the_policy_that_is_in_force() {
    let env = TestEnvironment::with_ledger();
    let said = |env: &TestEnvironment| {
        let text = env.handoff(&["status"]).shown;
        let line = text.lines().find(|line| line.contains("are checked"));
        line.unwrap_or("unchecked").trim().to_owned()
    };
    let set = |what: &str, policy: &str| {
        let set = ["protocol", "set", "issue-to-pr", what, policy];
        env.handoff(&[&set[..], &["--as", "maintainer"]].concat())
            .success();
    };
    set("evidence", "enforce");
    assert_eq!(said(&env), "contracts' statements are checked: enforce");
    set("evidence.tests", "warn");
    assert_eq!(
        said(&env),
        "contracts' statements are checked: enforce (warn for tests)"
    );
}

#[test]
fn a_placeholder_is_no_reason_and_no_answer() {
    let env = opened(|_| {});
    let refused = |args: &[&str]| {
        env.handoff(args)
            .exits(2)
            .says("placeholder of a printed command")
    };
    refused(&["cancel", "7.1", "--as", "orchestrator", "--reason", "WHY"]);
    refused(&[
        "annotate",
        "7",
        "--as",
        "orchestrator",
        "--note",
        "x",
        "--fact",
        "base=BRANCH",
    ]);
    env.claim("7.1", "prep-agent").success();
    let ask = [
        "block",
        "7.1",
        "--as",
        "prep-agent",
        "--reason",
        "which?",
        "--needs",
        "port",
    ];
    env.handoff(&ask).success();
    refused(&["answer", "7.1", "port=VALUE", "--as", "orchestrator"]);
    refused(&["answer", "7.1", "ANSWER", "--as", "orchestrator"]);
    env.handoff(&["answer", "7.1", "port=8080", "--as", "orchestrator"])
        .success();
}

#[test]
fn status_and_next_name_the_same_agent_where_no_attempt_is_left() {
    let env = with_protocol("directive");
    let session = ("/session_id", json!("weir"));
    env.send(value("directive", "handoff", &[session]).to_string())
        .success();
    for attempt in 0..=3 {
        if attempt > 0 {
            done(&env, "retry weir.1 --as MetaGPT");
        }
        done(&env, "claim weir.1 --as MetaGPT");
        done(&env, "fail weir.1 --as MetaGPT --message unreadable");
    }
    let needed = &env.data(&["status"])["attention"][0];
    assert_eq!(needed["need"], "dead");
    assert_eq!(needed["turn"], "USER", "only a person revives it");
    let next = env.data(&["next", "weir"]);
    assert_eq!(
        (&next["agent"], &next["action"]),
        (&json!("USER"), &json!("fall_back"))
    );
    let inbox = env.data(&["inbox", "--as", "USER"]);
    assert_eq!(
        inbox["attention"][0]["need"], "dead",
        "a person is still told"
    );
}

#[test]
fn work_whose_file_is_missing_is_not_called_good() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "directive", "--evidence", "warn"])
        .success();
    let session = ("/session_id", json!("weir"));
    env.send(value("directive", "handoff", &[session]).to_string())
        .success();
    insta::assert_snapshot!(env.handoff(&["next", "weir"]).success().stdout, @r#"retry to ResearchGPT: weir.1 is failed, because there is no file "notes/varroa-counts.md": the work failed, and may be tried again with adjusted instructions"#);
    // Once the file is there, the same contract is good.
    let file = env.repo().join("notes/varroa-counts.md");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "weekly\n").unwrap();
    let session = ("/session_id", json!("reed"));
    env.send(value("directive", "handoff", &[session]).to_string())
        .success();
    insta::assert_snapshot!(env.handoff(&["next", "reed"]).success().stdout, @"advance to DesignGPT: reed.1 says success: the work came to a good end");
}

#[test]
fn what_show_offers_is_accepted_when_the_time_ran_out() {
    let env = with_protocol("orchestrator-specialist");
    env.pace(1);
    let key = ("/handoff_id", json!("renewal-api-4"));
    let retries = ("/retry_policy/max_retries", json!(1));
    let request = value("orchestrator-specialist", "request-dotnet", &[key, retries]);
    env.send(request.to_string()).success();
    let agent = request["target"]["agent_id"].as_str().unwrap();
    let offered = || {
        let shown = env.data(&["show", "renewal-api-4.1"]);
        let command = shown["options"][0]["command"].as_str().unwrap();
        let line = command.strip_prefix("git handoff ").unwrap();
        assert!(line.starts_with("retry "), "{line}");
        done(&env, &line.replace("WHY", "again"));
    };
    env.claim("renewal-api-4.1", agent).success();
    env.wait_minutes(24 * 60);
    offered();
    env.wait_minutes(2);
    env.claim("renewal-api-4.1", agent).success();
    env.wait_minutes(24 * 60);
    // Its lease ran out, which nobody has recorded, and it has no attempt left.
    offered();
    assert_eq!(
        env.data(&["show", "renewal-api-4.1"])["handoff"]["state"],
        "pending"
    );
    env.assert_sound();
}

#[test]
fn prime_names_each_handoff_that_it_does_not_show() {
    let env = TestEnvironment::with_ledger();
    for issue in 1..=5 {
        env.send(opening(issue)).success();
    }
    let prime = env
        .handoff(&["prime", "--as", "prep-agent"])
        .success()
        .stdout;
    let rest = prime.lines().find(|line| line.contains("more handoff"));
    insta::assert_snapshot!(rest.unwrap(), @"(2 more handoffs: 4.1, 5.1)");
}
