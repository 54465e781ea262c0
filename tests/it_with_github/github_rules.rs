//! The rules about GitHub's events: a whole issue by them, payloads with anything missing, and every fault of a rule.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared, sample};
use test_support::events::{
    at, comment, did, event, file, issue, issues, person, pull, pull_request, repository, samples,
    why,
};
use test_support::team::Folder;

/// What an agent puts in the place of a mark.
fn known_to_agent(asked: &str) -> &'static str {
    for (word, value) in [
        ("critical, important", "critical"),
        ("merge, squash", "squash"),
        ("coverage", "87.5%"),
        ("number of important findings still open", "0"),
        ("number of", "1"),
        ("id of a commit", "1111111"),
        ("path and line", "src/parcels.rs:1"),
        ("port", "8080"),
    ] {
        if asked.contains(word) {
            return value;
        }
    }
    "as it should be"
}

/// Has an agent finish what an event began, and send it.
#[track_caller]
fn finish(env: &TestEnvironment, data: &Value, kind: &str) {
    let draft = &data["draft"];
    assert_eq!(draft["contract_type"], kind, "{data:#}");
    let mut text = draft["text"].as_str().unwrap().to_owned();
    for left in draft["missing"].as_array().unwrap() {
        let asked = left["asked"].as_str().unwrap();
        text = text.replace(&format!("{{{{fill: {asked}}}}}"), known_to_agent(asked));
    }
    env.send(text).success();
}

fn review(env: &TestEnvironment, state: &str, body: &str) -> Value {
    json!({"action": "submitted", "pull_request": pull_request(5, 12), "repository": repository(), "sender": person("m"),
        "review": {"state": state, "body": body, "user": person("m"), "author_association": "OWNER",
            "submitted_at": at(env, 0), "commit_id": "1".repeat(40)}})
}

#[test]
fn events_and_agents_take_an_issue_to_its_end() {
    let env = TestEnvironment::with_ledger();
    assert_eq!(
        did(&event(&env, "issues", &issues("opened", issue(12)))),
        ["sent 12.1"]
    );
    env.claim("12.1", "prep-agent").success();
    let ask = [
        "block",
        "12.1",
        "--as",
        "prep-agent",
        "--reason",
        "which base?",
        "--needs",
        "base:string",
    ];
    env.handoff(&ask).success();
    env.wait_minutes(1);
    let answer = comment(&env, issue(12), "/handoff answer base=main");
    assert_eq!(
        did(&event(&env, "issue_comment", &answer)),
        ["answered 12.1"]
    );
    env.claim("12.1", "prep-agent").success();
    env.send(prepared(12)).success();

    env.claim("12.2", "implementer-agent").success();
    let opened = event(&env, "pull_request", &pull("opened", pull_request(5, 12)));
    assert_eq!(did(&opened), ["noted 12.2"]);
    finish(&env, &opened, "implementer-agent-to-reviewer-agent");

    env.claim("12.3", "reviewer-agent").success();
    let asks = event(
        &env,
        "pull_request_review",
        &review(&env, "changes_requested", "See below."),
    );
    finish(&env, &asks, "reviewer-agent-to-fixer-agent");

    env.claim("12.4", "fixer-agent").success();
    let mut pushed = pull_request(5, 12);
    pushed["head"]["sha"] = json!("4".repeat(40));
    let pushed = event(&env, "pull_request", &pull("synchronize", pushed));
    finish(&env, &pushed, "fixer-agent-to-reviewer-agent");

    env.claim("12.5", "reviewer-agent").success();
    let approves = event(
        &env,
        "pull_request_review",
        &review(&env, "approved", "\r\nWell done.\r\nMore."),
    );
    assert!(
        why(&approves).contains("not of the branch's newest commit"),
        "{approves:#}"
    );
    let mut newest = review(&env, "approved", "\r\nWell done.\r\nMore.");
    newest["review"]["commit_id"] = json!("4".repeat(40));
    let mut early = newest.clone();
    early["review"]["submitted_at"] = json!(at(&env, -3600));
    let early = event(&env, "pull_request_review", &early);
    assert_eq!(early["draft"], Value::Null, "{early:#}");
    let approves = event(&env, "pull_request_review", &newest);
    assert!(
        approves["draft"]["text"]
            .as_str()
            .unwrap()
            .contains("<summary>Well done.</summary>"),
        "{approves:#}"
    );
    finish(&env, &approves, "reviewer-agent-to-validator-agent");
    // Each review is about the commit that it was of on GitHub.
    for (id, commit) in [("12.4", "1"), ("12.6", "4")] {
        let code = env.data(&["show", id])["record"]["code"].take();
        assert_eq!(code["commit"], commit.repeat(40), "{id}");
    }

    env.claim("12.6", "validator-agent").success();
    let ran = json!({"action": "completed", "repository": repository(), "sender": person("m"), "workflow_run": {
        "id": 7, "run_attempt": 1, "name": "CI", "event": "pull_request", "conclusion": "success",
        "head_branch": "issue-12", "head_sha": "4".repeat(40), "head_repository": repository(), "pull_requests": []}});
    assert_eq!(did(&event(&env, "workflow_run", &ran)), ["noted 12.6"]);
    let mut merged = pull_request(5, 12);
    merged["merged"] = json!(true);
    merged["merge_commit_sha"] = json!("3".repeat(40));
    let merged = pull("closed", merged);
    let validated = event(&env, "pull_request", &merged);
    assert!(
        validated["draft"]["text"]
            .as_str()
            .unwrap()
            .contains(&"3".repeat(40)),
        "{validated:#}"
    );
    finish(&env, &validated, "validator-agent-to-closer-agent");

    env.claim("12.7", "closer-agent").success();
    let new = [
        "new",
        "--issue",
        "12",
        "--from",
        "closer-agent",
        "--to",
        "workflow-complete",
        "--format",
        "json",
    ];
    let mut last: Value = serde_json::from_str(env.data(&new)["text"].as_str().unwrap()).unwrap();
    assert_eq!(last["pr_number"], json!(5));
    last["summary"] = json!("Parcels are kept");
    last["actions_taken"] = json!(["merged"]);
    env.send(last.to_string()).success();
    assert_eq!(env.data(&["status", "12"])["issue"]["status"], "completed");
    // What `send` counted.
    let sent = env.handoff(&["show", "12.8", "--contract"]).success();
    assert!(
        sent.stdout.contains("\"review_iterations\": 2")
            || sent.stdout.contains("\"review_iterations\":2"),
        "{}",
        sent.stdout
    );

    // What comes late, or again, changes nothing more.
    let tip = env.tip();
    assert_eq!(
        event(&env, "pull_request", &merged)["did"][0]["repeated"],
        true
    );
    let mut closed = issue(12);
    closed["state_reason"] = json!("completed");
    assert!(did(&event(&env, "issues", &issues("closed", closed))).is_empty());
    let late = comment(&env, issue(12), "/handoff answer base=other");
    assert!(why(&event(&env, "issue_comment", &late)).contains("nothing in issue 12 waits"));
    assert_eq!(env.tip(), tip);
    env.assert_sound();
}

/// Every place of a value, as JSON Pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let name = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                found.push(name(key));
                places(member, &name(key), found);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                found.push(format!("{at}/{i}"));
                places(item, &format!("{at}/{i}"), found);
            }
        }
        _ => {}
    }
}

/// Takes something away, or puts something else there.
fn spoil(payload: &mut Value, place: usize, how: u8) {
    let mut all = Vec::new();
    places(payload, "", &mut all);
    if all.is_empty() {
        return;
    }
    let pointer = &all[place % all.len()];
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    let other = [
        Value::Null,
        json!(-1),
        json!("x\n::error::y\u{202e}\u{0}"),
        json!([[]]),
        json!({}),
        json!("9".repeat(2000)),
        json!(1e300),
    ];
    match payload.pointer_mut(parent).unwrap() {
        Value::Object(members) if how == 0 => drop(members.remove(&key)),
        _ => *payload.pointer_mut(pointer).unwrap() = other[usize::from(how) % other.len()].clone(),
    }
}

#[test]
fn no_payload_is_too_strange() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(1)).success();
    event(&env, "pull_request", &{
        let mut own = pull_request(2, 1);
        own["head"]["sha"] = json!("5".repeat(40));
        pull("opened", own)
    });
    let kinds = [
        "issues",
        "issue_comment",
        "pull_request",
        "pull_request_review",
        "workflow_run",
        "check_suite",
    ];
    let mut all = samples();
    all.retain(|(name, _)| kinds.contains(&name.as_str()));
    all.push((
        "issue_comment".to_owned(),
        comment(&env, issue(1), "/handoff answer x=1"),
    ));
    all.push(("issues".to_owned(), issues("opened", issue(30))));
    all.push((
        "pull_request_review".to_owned(),
        review(&env, "approved", "fine"),
    ));
    let tip = env.tip();
    let faults = prop::collection::vec((any::<usize>(), 0..8_u8), 1..12);
    let strategy = (0..all.len(), faults);
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(250)
    });
    let outcome = runner.run(&strategy, |(sample, faults)| {
        let (name, mut payload) = all[sample].clone();
        for (place, how) in faults {
            spoil(&mut payload, place, how);
        }
        let path = file(&env, &payload);
        let ran = env.handoff(&[
            "github",
            "event",
            "--dry-run",
            "--name",
            &name,
            "--file",
            &path,
        ]);
        // A payload of which nothing is left is none.
        prop_assert!(
            ran.status == 0 || ran.status == 3 && ran.stderr.contains("is not an event"),
            "{}",
            ran.shown
        );
        for line in ran.stdout.lines() {
            let log = !line.trim_start().starts_with("::")
                && !line.contains(|c: char| c.is_control() || c == '\u{202e}');
            prop_assert!(log, "{line:?}");
        }
        Ok(())
    });
    outcome.unwrap();
    assert_eq!(env.tip(), tip, "a rehearsal writes nothing");
}

#[test]
fn every_fault_of_a_rule_is_told_with_its_place() {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "issue-to-pr", "ours");
    let rule = json!({"name": "noted", "on": {"issues": ["opened"]}, "as": "orchestrator", "note": "An issue",
        "facts": {"title": "/issue/title"}});
    let check = |rules: Value| {
        folder.define(|definition| definition["github"] = json!({"rules": rules}));
        env.handoff(&["protocol", "check", &folder.path()])
    };
    check(json!([rule])).success();
    let send = |contract: Value| json!({"note": null, "facts": null, "do": {"send": contract}, "as": "issue-manager"});
    let opening = json!({"contract": "issue-manager-to-prep-agent", "to": "prep-agent", "fields": {"/type": "/issue/type"}});
    let with = |base: &Value, key: &str, value: Value| {
        let mut changed = base.clone();
        changed[key] = value;
        changed
    };
    let told = |change: &Value| {
        let mut changed = rule.clone();
        for (key, value) in change.as_object().unwrap() {
            match value {
                Value::Null => drop(changed.as_object_mut().unwrap().remove(key)),
                value => changed[key] = value.clone(),
            }
        }
        check(json!([changed]))
    };
    told(&send(opening.clone())).success();
    for (change, said) in [
        (
            json!({"name": "Noted"}),
            "/github/rules/0/name protocol.github",
        ),
        (
            json!({"name": "x".repeat(49)}),
            "/github/rules/0/name protocol.github",
        ),
        (json!({"on": {}}), "/github/rules/0/on protocol.github"),
        (
            json!({"on": {"issues": ["not it"]}}),
            "/github/rules/0/on/issues protocol.github",
        ),
        (
            json!({"on": {"star": []}}),
            "/github/rules/0/on protocol.syntax",
        ),
        (
            json!({"when": {"issue": 1}}),
            "/github/rules/0/when protocol.pointer",
        ),
        (
            json!({"when": {"/issue": []}}),
            "/github/rules/0/when protocol.github",
        ),
        (
            json!({"when": {"/issue": {"a": 1}}}),
            "/github/rules/0/when protocol.github",
        ),
        (
            json!({"as": "nobody"}),
            "/github/rules/0/as protocol.unknown_agent",
        ),
        (
            json!({"as": "workflow-complete"}),
            "/github/rules/0/as protocol.github",
        ),
        (
            json!({"needs": "write"}),
            "/github/rules/0/needs protocol.github",
        ),
        (
            json!({"on": {"issue_comment": ["created"]}, "needs": "none"}),
            "/github/rules/0/needs protocol.github",
        ),
        (json!({"note": " "}), "/github/rules/0/note protocol.github"),
        (
            json!({"note": "a\nb"}),
            "/github/rules/0/note protocol.github",
        ),
        (
            json!({"note": null}),
            "/github/rules/0/facts protocol.github",
        ),
        (
            json!({"note": null, "facts": null}),
            "/github/rules/0 protocol.github",
        ),
        (
            json!({"facts": {"Title": "/a"}}),
            "/github/rules/0/facts/Title protocol.github",
        ),
        (
            json!({"facts": {"title": "a"}}),
            "/github/rules/0/facts/title protocol.pointer",
        ),
        (
            json!({"facts": {"title": {"at": []}}}),
            "/github/rules/0/facts/title protocol.github",
        ),
        (
            json!({"facts": {"title": {"at": ["/a"], "under": ["x"]}}}),
            "/github/rules/0/facts/title protocol.github",
        ),
        (
            json!({"facts": {"title": {"at": ["/a"], "take": "items", "map": {"x": 1}}}}),
            "/github/rules/0/facts/title protocol.github",
        ),
        (
            json!({"do": "answer"}),
            "/github/rules/0/do protocol.github",
        ),
        (json!({"do": "merge"}), "/github/rules/0/do protocol.syntax"),
        (
            send(with(&opening, "contract", json!("none"))),
            "/github/rules/0/do/send/contract protocol.unknown_type",
        ),
        (
            send(with(&opening, "to", json!("nobody"))),
            "/github/rules/0/do/send/to protocol.unknown_agent",
        ),
        (
            send(with(&opening, "to", json!("closer-agent"))),
            "/github/rules/0/do/send/contract protocol.github",
        ),
        (
            send(with(&opening, "fields", json!({"type": "/a"}))),
            "/github/rules/0/do/send/fields protocol.pointer",
        ),
        (
            send(with(&opening, "fields", json!({"/type": "a"}))),
            "/github/rules/0/do/send/fields protocol.pointer",
        ),
    ] {
        let ran = told(&change).exits(1);
        assert!(ran.shown.contains(said), "{change}\n{}", ran.shown);
    }
    check(json!([rule, rule]))
        .exits(1)
        .says("/github/rules/1/name protocol.duplicate");
}

#[test]
fn the_example_of_the_documents_works() {
    let document = std::fs::read_to_string("docs/protocols.md").unwrap();
    let section = document.split("### Events of GitHub").nth(1).unwrap();
    let example = section.split("```json\n").nth(1).unwrap();
    let example: Value = serde_json::from_str(example.split("```").next().unwrap()).unwrap();
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "issue-to-pr", "ours");
    folder.define(|definition| definition["github"] = example);
    env.handoff(&["init", "--protocol", &folder.path()])
        .success();
    let mut asked = issue(12);
    asked["body"] = json!("Please.\n* none is lost\n");
    asked["labels"] = json!([{"name": "bug"}]);
    let data = event(&env, "issues", &issues("labeled", asked.clone()));
    assert!(
        did(&data).is_empty() && why(&data).contains("labels/*/name"),
        "{data:#}"
    );
    asked["labels"] = json!([{"name": "bug"}, {"name": "for-agents"}]);
    assert_eq!(
        did(&event(&env, "issues", &issues("labeled", asked))),
        ["sent 12.1"]
    );
    let contract = env.data(&["show", "12.1"])["contract"]["text"].to_string();
    for said in [
        "<summary>Please.</summary>",
        "<type>bug</type>",
        "<priority>medium</priority>",
    ] {
        assert!(contract.contains(said), "{said}: {contract}");
    }
}

#[test]
fn a_ledger_of_older_rules_says_what_brings_newer_ones() {
    let env = TestEnvironment::with_repository();
    let folder = Folder::copy(&env, "issue-to-pr", "older");
    folder.define(|definition| drop(definition.as_object_mut().unwrap().remove("github")));
    env.handoff(&["init", "--protocol", &folder.path()])
        .success();
    let data = event(&env, "issues", &issues("opened", issue(12)));
    assert!(
        did(&data).is_empty() && why(&data).contains("git handoff protocol update"),
        "{data:#}"
    );
    env.send(opening(12)).success();
    let data = event(&env, "pull_request", &pull("opened", pull_request(5, 12)));
    assert!(
        did(&data).is_empty() && why(&data).contains("has no rules"),
        "{data:#}"
    );
    assert!(
        why(&data).contains("git handoff protocol update issue-to-pr"),
        "{data:#}"
    );

    // Where no version has any, none is to be put in force.
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "orchestrator-specialist"])
        .success();
    let data = event(&env, "issues", &issues("opened", issue(12)));
    assert!(
        why(&data).contains("has rules about GitHub's events") && !why(&data).contains("update"),
        "{data:#}"
    );
}

#[test]
fn a_review_on_github_says_which_commit_an_approval_is_about() {
    let env = TestEnvironment::with_ledger();
    event(&env, "issues", &issues("opened", issue(12)));
    env.claim("12.1", "prep-agent").success();
    let here = |contract: String| contract.replace("pull/91", "pull/5").replace(">91<", ">5<");
    let contract = here(prepared(12));
    let (_, rest) = contract.split_once("<branch>").unwrap();
    let (branch, _) = rest.split_once("</branch>").unwrap();
    env.git(&env.repo(), &["checkout", "-q", "-b", branch]);
    env.send(&contract).success();
    env.claim("12.2", "implementer-agent").success();
    env.send(here(sample(
        "implementer-agent-to-reviewer-agent",
        Format::Xml,
        12,
    )))
    .success();
    env.claim("12.3", "reviewer-agent").success();
    let commit = || {
        let args = ["commit", "-q", "--allow-empty", "-m", "Work"];
        env.git(&env.repo(), &args);
        let head = env.git(&env.repo(), &["rev-parse", "HEAD"]);
        head.trim().to_owned()
    };
    let file = |name: &str| {
        std::fs::write(env.repo().join(name), "x").unwrap();
        env.git(&env.repo(), &["add", name]);
    };
    let code = |id: &str| env.data(&["show", id])["record"]["code"]["commit"].take();
    let reviews = |state: &str, commit: &str| {
        let mut review = review(&env, state, "Read.");
        review["review"]["commit_id"] = json!(commit);
        let data = event(&env, "pull_request_review", &review);
        assert!(did(&data)[0].starts_with("noted"), "{data:#}");
    };
    let reviewed = commit();
    reviews("changes_requested", &reviewed);
    file("later.txt");
    let later = commit();
    env.send(here(sample(
        "reviewer-agent-to-fixer-agent",
        Format::Xml,
        12,
    )))
    .success();
    assert_eq!(code("12.4"), reviewed);
    env.claim("12.4", "fixer-agent").success();
    env.send(here(sample(
        "fixer-agent-to-reviewer-agent",
        Format::Xml,
        12,
    )))
    .success();
    assert_eq!(code("12.5"), later);
    // What was noted before the reviewer was handed the work is not about it.
    env.claim("12.5", "reviewer-agent").success();
    file("last.txt");
    let last = commit();
    env.send(here(sample(
        "reviewer-agent-to-validator-agent",
        Format::Xml,
        12,
    )))
    .success();
    // The claim showed what was handed over; the branch went on unseen.
    assert_eq!(code("12.6"), later);
    env.handoff(&["gate", "12", "--head", &later]).success();
    for head in [&last, &reviewed] {
        env.handoff(&["gate", "12", "--head", head]).exits(1);
    }
    env.assert_sound();
}

/// Every order of these.
fn orders<T: Clone>(all: &[T]) -> Vec<Vec<T>> {
    if all.is_empty() {
        return vec![Vec::new()];
    }
    let each = (0..all.len()).flat_map(|at| {
        let mut rest = all.to_vec();
        let first = rest.remove(at);
        let rest = orders(&rest).into_iter();
        rest.map(move |rest| [vec![first.clone()], rest].concat())
    });
    each.collect()
}

#[test]
fn a_persons_approval_is_the_same_in_whatever_order_it_and_its_end_arrive() {
    // What is said, when, and whether the commit is approved once all of it has arrived.
    for (said, stands) in [
        (&["approves 10", "dismissed 10"][..], false),
        (&["approves 10", "asks 20"], false),
        (&["says 5", "asks 20"], false),
        (&["approves 10", "asks 20", "says 30"], true),
        (&["approves 10", "dismissed 10", "says 30"], true),
        (&["approves 10", "dismissed 10", "asks 20", "says 30"], true),
        (&["asks 5", "approves 10"], true),
    ] {
        for order in orders(said) {
            let env = TestEnvironment::with_ledger();
            env.send(opening(12)).success();
            let own = pull("opened", pull_request(5, 12));
            event(&env, "pull_request", &own);
            env.wait_minutes(10);
            let start = env.now();
            for one in &order {
                let (what, seconds) = one.split_once(' ').unwrap();
                let time = at(&env, start - env.now() + seconds.parse::<i64>().unwrap());
                let (state, by, id) = match what {
                    "asks" => ("changes_requested", "grace", 2),
                    "dismissed" => ("dismissed", "ada", 1),
                    _ => ("approved", "ada", 1),
                };
                if what == "says" {
                    let mut on = issue(5);
                    on["pull_request"] = json!({});
                    on["body"] = json!("Closes #12");
                    on["author_association"] = json!("MEMBER");
                    let mut payload = comment(&env, on, "/handoff approve");
                    payload["comment"]["created_at"] = json!(time);
                    event(&env, "issue_comment", &payload);
                    continue;
                }
                let mut payload = review(&env, state, "/handoff approve");
                payload["action"] = json!(if what == "dismissed" {
                    what
                } else {
                    "submitted"
                });
                payload["review"]["user"] = person(by);
                payload["review"]["id"] = json!(id);
                payload["review"]["submitted_at"] = json!(time);
                if what == "asks" {
                    payload["review"]["body"] = json!("No");
                }
                event(&env, "pull_request_review", &payload);
            }
            let notes = env.data(&["status", "12"])["record"]["annotations"].take();
            let notes = notes.as_array().unwrap().iter().rev();
            let last = notes
                .clone()
                .find_map(|note| note["approval"]["approved"].as_bool());
            assert_eq!(last.unwrap_or(false), stands, "{order:?}");
            env.assert_sound();
        }
    }
}
