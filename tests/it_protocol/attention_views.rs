//! What needs somebody: every view of it says the same, in random ledgers of every protocol, and
//! each way a handoff can end reaches whoever it concerns.

use std::collections::BTreeSet;

use serde_json::Value;
use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::exchange::{handoff, lived, sample, text};
use test_support::proof::times;
use test_support::team::{BUILT_IN, with_protocol};

/// A generator of numbers, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// What needs somebody, as a view has it: id, need, turn and everyone who is told.
fn needs(value: &Value) -> BTreeSet<String> {
    let told = |one: &Value| {
        let told = list(&one["told"]).iter();
        told.map(|agent| agent.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(",")
    };
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let line = |one: &Value| {
        let (id, need, why) = (text(one, "id"), text(one, "need"), text(one, "why"));
        format!("{id} {need} {} {}: {why}", text(one, "turn"), told(one))
    };
    list(value).iter().map(line).collect()
}

/// The agents of a protocol, without its end.
fn agents(env: &TestEnvironment, protocol: &str) -> Vec<String> {
    let shown = env.data(&["protocol", "show", protocol]);
    let agents = list(&shown["definition"]["agents"]).iter();
    let agents = agents.filter(|agent| agent["kind"] != "end");
    agents
        .map(|a| a["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Asserts that every view says the same about what needs somebody.
#[track_caller]
fn assert_agreement(env: &TestEnvironment, protocol: &str) {
    // No time passes between the views.
    env.pace(0);
    let definition = env.data(&["protocol", "show", protocol])["definition"].take();
    let status = env.data(&["status"]);
    let all = needs(&status["attention"]);
    assert_eq!(needs(&env.data(&["metrics"])["stuck"]), all, "metrics");
    let page = env.root().join("report.html");
    let report = env.data(&["report", "--output", page.to_str().unwrap()]);
    assert_eq!(report["attention"], all.len(), "report");
    let issues = list(&env.data(&["list"])["handoffs"]).to_vec();
    let issues: BTreeSet<&str> = issues
        .iter()
        .map(|h| h["id"].as_str().unwrap().rsplit_once('.').unwrap().0)
        .collect();
    for issue in issues {
        let own = |line: &&String| line.starts_with(&format!("{issue}."));
        let own: BTreeSet<String> = all.iter().filter(own).cloned().collect();
        let next = env.data(&["next", issue]);
        assert_eq!(needs(&next["attention"]), own, "next {issue}");
        for view in ["status", "context"] {
            let shown = env.data(&[view, issue]);
            assert_eq!(needs(&shown["attention"]), own, "{view} {issue}");
        }
        let output = env.data(&["github", "output", issue]);
        assert_eq!(output["attention"], own.len().to_string(), "github {issue}");
    }
    for agent in agents(env, protocol) {
        let is_told = |line: &&String| {
            let told = line.split(' ').nth(3).unwrap().trim_end_matches(':');
            told.split(',').any(|one| one == agent)
        };
        let told: BTreeSet<String> = all.iter().filter(is_told).cloned().collect();
        let inbox = env.data(&["inbox", "--as", &agent])["attention"].clone();
        let prime = env.data(&["prime", "--as", &agent]);
        assert_eq!(inbox, prime["attention"], "prime of {agent}");
        let takes_nothing = |one: &&Value| one["takes_nothing"] == true;
        let (only_told, acts): (Vec<&Value>, Vec<&Value>) =
            list(&inbox).iter().partition(takes_nothing);
        assert_eq!(
            needs(&acts.into_iter().cloned().collect()),
            told,
            "inbox of {agent}"
        );
        assert!(only_told.iter().all(|one| one["turn"] == agent), "{inbox}");
        let text = prime["text"].as_str().unwrap();
        let count = |key: &str| prime[key]["count"].as_u64().unwrap();
        if text.contains("you may stop") {
            assert!(list(&inbox).is_empty(), "{agent} may stop: {inbox}");
            assert_eq!(count("holds") + count("waits"), 0, "{text}");
        }
        // A person stands in for the orchestrator.
        let is_kind = |name: &str, kind: &str| {
            let mut agents = list(&definition["agents"]).iter();
            agents.any(|one| one["id"] == name && one["kind"] == kind)
        };
        let is_person = is_kind(&agent, "human");
        let is_up_to = |one: &Value| {
            let turn = one["turn"].as_str().unwrap();
            turn == agent || is_person && is_kind(turn, "orchestrator")
        };
        let turn = list(&inbox).iter().any(is_up_to);
        let wakes = env.handoff(&["wait", "--inbox", "--as", &agent, "--timeout", "0s"]);
        let expected = if turn || count("waits") > 0 { 0 } else { 7 };
        assert_eq!(wakes.status, expected, "{}\n{told:?}", wakes.shown);
    }
    env.pace(7);
}

/// Something that an agent does to an open handoff; it may be refused.
fn act(env: &TestEnvironment, random: &mut Random, protocol: &str) {
    let status = env.data(&["status"]);
    let open = list(&status["handoffs"]);
    let agents = agents(env, protocol);
    let Some(handoff) = (!open.is_empty()).then(|| random.pick(open)) else {
        return;
    };
    let text = |key: &str| handoff[key].as_str().unwrap();
    let (id, to, from) = (text("id"), text("to"), text("from"));
    let any = random.pick(&agents).clone();
    let reason = format!("reason {}", random.below(1000));
    let acts: &[&[&str]] = &[
        &["claim", id, "--as", to],
        &["claim", id, "--as", to, "--lease", "60s"],
        &["complete", id, "--as", to],
        &[
            "fail",
            id,
            "--as",
            to,
            "--message",
            &reason,
            "--recoverable",
        ],
        &["fail", id, "--as", to, "--message", &reason],
        &[
            "block", id, "--as", to, "--reason", &reason, "--needs", "port",
        ],
        &["answer", id, "port=8080", "--as", from],
        &["reject", id, "--as", to, "--reason", &reason],
        &["cancel", id, "--as", from, "--reason", &reason],
        &["cancel", id, "--as", &any, "--reason", &reason],
        &["retry", id, "--as", from, "--reason", &reason],
        &["retry", id, "--as", &any, "--reason", &reason],
        &["reap"],
    ];
    // Each fits few states; most tries of the rest are refused and write nothing.
    for _ in 0..4 {
        let args: &[&str] = random.pick::<&[&str]>(acts);
        let ran = env.handoff(args);
        if ran.status == 0 {
            break;
        }
    }
    if random.below(4) == 0 {
        env.wait_minutes([1, 20, 300][random.below(3)]);
    }
}

fn agree(protocol: &str) {
    for seed in 1..=u64::from(times()) {
        let env = lived(protocol);
        let mut random = Random(seed * 7919);
        assert_agreement(&env, protocol);
        for _ in 0..4 {
            for _ in 0..3 {
                act(&env, &mut random, protocol);
            }
            assert_agreement(&env, protocol);
        }
        env.assert_sound();
    }
}

#[test]
fn views_agree_about_issue_to_pr() {
    agree(BUILT_IN[0]);
}

#[test]
fn views_agree_about_orchestrator_specialist() {
    agree(BUILT_IN[1]);
}

#[test]
fn views_agree_about_task_breakdown() {
    agree(BUILT_IN[2]);
}

#[test]
fn views_agree_about_delegation() {
    agree(BUILT_IN[3]);
}

#[test]
fn views_agree_about_directive() {
    agree(BUILT_IN[4]);
}

/// A ledger with one handoff: its id, sender and receiver.
fn begun(protocol: &str) -> (TestEnvironment, String, String, String) {
    let env = with_protocol(protocol);
    env.pace(1);
    let contract = match protocol {
        "issue-to-pr" => opening(7),
        "task-breakdown" => text(&sample(protocol, "environment-to-planning")),
        "directive" => text(&handoff("h-1", "ResearchGPT", "DesignGPT", "success")),
        _ => text(&sample(protocol, "request")),
    };
    env.send(contract).success();
    let status = env.data(&["status"]);
    let one = &list(&status["handoffs"])[0];
    let named = |key: &str| one[key].as_str().unwrap().to_owned();
    (env, named("id"), named("from"), named("to"))
}

/// What the agents are told after something, and that each finds it, with the reason, where it
/// looks: one line.
#[track_caller]
fn told(env: &TestEnvironment, way: &str, reason: Option<&str>) -> String {
    env.pace(0);
    let all = env.data(&["status"])["attention"].clone();
    if list(&all).is_empty() {
        env.pace(1);
        return format!("{way}: nobody\n");
    }
    let lines: Vec<String> = list(&all)
        .iter()
        .map(|one| finds(env, one, (way, reason)))
        .collect();
    env.pace(1);
    format!("{way}: {}\n", lines.join("; "))
}

/// Asserts that each agent that is told of something finds it, with the reason, where it looks, and
/// that the one whose turn it is wakes.
#[track_caller]
fn finds(env: &TestEnvironment, one: &Value, (way, reason): (&str, Option<&str>)) -> String {
    let named = |key: &str| one[key].as_str().unwrap().to_owned();
    let agents: Vec<&str> = list(&one["told"])
        .iter()
        .map(|a| a.as_str().unwrap())
        .collect();
    let issue = named("issue");
    for view in ["status", "context"] {
        let shown = env.handoff(&[view, &issue]).success().stdout;
        assert!(shown.contains("needs attention"), "{way}, {view}: {shown}");
        let next = format!("next: {}", named("next"));
        assert!(shown.contains(&next), "{way}, {view}: {shown}");
    }
    for agent in &agents {
        let inbox = env.handoff(&["inbox", "--as", agent]).success().stdout;
        let prime = env.handoff(&["prime", "--as", agent]).success().stdout;
        for view in [&inbox, &prime] {
            assert!(view.contains(&named("id")), "{way}, {agent}: {view}");
            let has = reason.is_none_or(|reason| view.contains(reason));
            assert!(has, "{way}, {agent}: {view}");
        }
        assert!(!prime.contains("you may stop"), "{way}, {agent}: {prime}");
    }
    let wakes = ["wait", "--inbox", "--as", agents[0], "--timeout", "0s"];
    env.handoff(&wakes).success();
    format!("{}, {}", named("need"), agents.join(", "))
}

/// Asserts that an agent, and nobody else, is told of an end that takes nothing more of it until it
/// says that it knows, and of nothing afterwards.
#[track_caller]
fn until_seen(env: &TestEnvironment, id: &str, agent: &str) {
    assert_agreement(
        env,
        env.data(&["show", id])["record"]["protocol"]
            .as_str()
            .unwrap(),
    );
    let all = env.data(&["inbox", "--as", agent])["attention"].clone();
    let own = |one: &&Value| one["id"] == id && one["takes_nothing"] == true;
    let own = list(&all)
        .iter()
        .find(own)
        .unwrap_or_else(|| panic!("{all}"));
    for view in ["status", "alerts"] {
        let shown = env.handoff(&[view]).stdout;
        assert!(!shown.contains("--note seen"), "{view}: {shown}");
    }
    assert_eq!(own["told"], serde_json::json!([agent]));
    let next = format!("git handoff annotate {id} --as {agent} --note seen");
    assert_eq!(own["next"], next);
    let args: Vec<&str> = next.split(' ').skip(2).collect();
    // That another agent knows is no news of this one.
    let other = args.join(" ").replace(agent, own["with"].as_str().unwrap());
    if !other.contains(agent) {
        let args: Vec<&str> = other.split(' ').collect();
        env.handoff(&args).success();
        assert_eq!(env.data(&["inbox", "--as", agent])["attention"], all);
    }
    env.handoff(&args).success();
    // As a lead it may still be told of what another has to do.
    let inbox = env.data(&["inbox", "--as", agent]);
    let again = |one: &Value| one["id"] == id && one["next"] == next;
    assert!(!list(&inbox["attention"]).iter().any(again), "{inbox}");
    env.assert_sound();
}

#[test]
fn a_holder_is_told_of_a_cancellation_though_its_sender_knows() {
    let env = lived("task-breakdown");
    let status = env.data(&["status"]);
    let open = list(&status["handoffs"]);
    let mut told = 0;
    for handoff in open {
        let text = |key: &str| handoff[key].as_str().unwrap();
        let (id, from, to) = (text("id"), text("from"), text("to"));
        env.handoff(&["claim", id, "--as", to]);
        let shown = env.data(&["show", id]);
        let cancel = ["cancel", id, "--as", from, "--reason", "not needed"];
        let held = shown["handoff"]["state"] == "in_progress" && from != to;
        if held && env.handoff(&cancel).status == 0 {
            until_seen(&env, id, to);
            told += 1;
        }
    }
    assert!(told > 0, "{status}");
}

#[test]
fn who_asked_is_told_of_the_answer_that_ends_the_issue() {
    let (env, id, from, to) = begun("delegation");
    env.handoff(&["claim", &id, "--as", &to]).success();
    let mut answer = sample("delegation", "response");
    answer["traceId"] = sample("delegation", "request")["traceId"].clone();
    answer["respondingAgent"] = to.as_str().into();
    answer["status"] = "resolved".into();
    env.send(text(&answer)).success();
    let answer = id.replace(".1", ".2");
    let issue = id.trim_end_matches(".1");
    assert_eq!(env.data(&["status", issue])["issue"]["status"], "completed");
    assert_eq!(told(&env, "answer", None), "answer: nobody\n");
    until_seen(&env, &answer, &from);
    env.handoff(&["prime", "--as", &from])
        .says("nothing waits for you");
}

/// Each way in which the first handoff of a protocol can end or stop, and who is told.
fn each_end(protocol: &str) -> String {
    let mut table = String::new();
    let why = "the words of the reason";
    let because = |verb: &str, who: fn(&str, &str) -> String| {
        let (env, id, from, to) = begun(protocol);
        let by = who(&from, &to);
        env.handoff(&[verb, &id, "--as", &by, "--reason", why])
            .success();
        told(&env, verb, Some(why))
    };
    table += &because("reject", |_, to| to.to_owned());
    table += &because("cancel", |_, to| to.to_owned());
    table += &because("cancel", |from, _| from.to_owned()).replace("cancel:", "cancel its own:");

    let held = || {
        let (env, id, from, to) = begun(protocol);
        env.handoff(&["claim", &id, "--as", &to]).success();
        (env, id, from, to)
    };
    let (env, id, from, to) = held();
    let cancel = ["cancel", &id, "--as", &from, "--reason", why];
    let ran = env.handoff(&cancel);
    if from != to {
        ran.success();
        table += &told(&env, "cancel under its holder", Some(why));
    }
    let code = ["--code", "TIMEOUT"];
    let fail = |env: &TestEnvironment, id: &str, to: &str| {
        let args = ["fail", id, "--as", to, "--message", why, "--recoverable"];
        let all = [&args[..], &code].concat();
        if env.handoff(&all).status != 0 {
            env.handoff(&args).success();
        }
    };
    let pause = if protocol == "task-breakdown" { 1 } else { 20 };
    let (env, id, _, to) = held();
    fail(&env, &id, &to);
    table += &told(&env, "fail", Some(why));
    while env.data(&["show", &id])["handoff"]["state"] == "failed" {
        let people = agents(&env, protocol);
        let retried = people
            .iter()
            .any(|by| env.handoff(&["retry", &id, "--as", by]).status == 0);
        assert!(retried, "nobody may retry {id}");
        // After the delay before another attempt, and before the time to claim it is over.
        let claims = |_: &u32| env.handoff(&["claim", &id, "--as", &to]).status == 0;
        let claimed = (0..200).inspect(|_| env.wait(pause)).find(claims);
        assert!(claimed.is_some(), "{id} can never be claimed");
        fail(&env, &id, &to);
    }
    table += &told(&env, "fail, no attempt left", Some(why));

    let (env, id, from, to) = held();
    env.handoff(&[
        "block", &id, "--as", &to, "--reason", why, "--needs", "port",
    ])
    .success();
    table += &told(&env, "block", Some(why));
    env.handoff(&["answer", &id, "port=8080", "--as", &from])
        .success();
    table += &told(&env, "answer", Some("8080"));

    let (env, id, _, to) = held();
    let done = env.handoff(&["complete", &id, "--as", &to]);
    table += &match done.status {
        0 => told(&env, "complete", None),
        _ => format!("complete: refused with {}\n", done.status),
    };

    let (env, ..) = begun(protocol);
    env.wait_minutes(2 * 24 * 60);
    table += &told(&env, "nobody claims", None);
    let (env, ..) = held();
    env.wait_minutes(2 * 24 * 60);
    table += &told(&env, "the lease runs out", None);
    table
}

#[test]
fn each_end_is_told_in_issue_to_pr() {
    insta::assert_snapshot!(each_end(BUILT_IN[0]), @"
    reject: rejected, issue-manager, orchestrator
    cancel: cancelled, issue-manager, orchestrator
    cancel its own: cancelled, issue-manager, orchestrator
    cancel under its holder: cancelled, issue-manager, orchestrator
    fail: failed, orchestrator
    fail, no attempt left: dead, maintainer, orchestrator
    block: blocked, orchestrator, maintainer
    answer: answered, prep-agent
    complete: not_handed_on, prep-agent, orchestrator
    nobody claims: unclaimed, prep-agent, orchestrator
    the lease runs out: lease_ran_out, orchestrator
    ");
}

#[test]
fn each_end_is_told_in_orchestrator_specialist() {
    insta::assert_snapshot!(each_end(BUILT_IN[1]), @"
    reject: rejected, @frontend-specialist
    cancel: cancelled, @frontend-specialist
    cancel its own: cancelled, @frontend-specialist
    cancel under its holder: cancelled, @frontend-specialist
    fail: failed, @frontend-specialist
    fail, no attempt left: dead, @frontend-specialist
    block: blocked, @frontend-specialist
    answer: answered, @react-specialist
    complete: refused with 4
    nobody claims: unclaimed, @frontend-specialist, @react-specialist
    the lease runs out: lease_ran_out, @frontend-specialist
    ");
}

#[test]
fn each_end_is_told_in_task_breakdown() {
    insta::assert_snapshot!(each_end(BUILT_IN[2]), @"
    reject: rejected, environment-architect, task-orchestrator
    cancel: cancelled, environment-architect, task-orchestrator
    cancel its own: nobody
    cancel under its holder: nobody
    fail: failed, task-orchestrator
    fail, no attempt left: dead, operator, task-orchestrator
    block: blocked, operator
    answer: answered, task-orchestrator
    complete: nobody
    nobody claims: unclaimed, task-orchestrator; unclaimed, task-orchestrator
    the lease runs out: lease_ran_out, task-orchestrator; unclaimed, task-orchestrator
    ");
}

#[test]
fn each_end_is_told_in_delegation() {
    insta::assert_snapshot!(each_end(BUILT_IN[3]), @"
    reject: rejected, document_generator, orchestrator
    cancel: nobody
    cancel its own: nobody
    cancel under its holder: nobody
    fail: failed, orchestrator
    fail, no attempt left: dead, human, orchestrator
    block: blocked, orchestrator, human
    answer: answered, research_agent
    complete: refused with 4
    nobody claims: unclaimed, orchestrator, research_agent
    the lease runs out: lease_ran_out, orchestrator
    ");
}

#[test]
fn each_end_is_told_in_directive() {
    insta::assert_snapshot!(each_end(BUILT_IN[4]), @"
    reject: rejected, ResearchGPT, MetaGPT
    cancel: cancelled, ResearchGPT, MetaGPT
    cancel its own: cancelled, ResearchGPT, MetaGPT
    cancel under its holder: cancelled, ResearchGPT, MetaGPT
    fail: failed, MetaGPT
    fail, no attempt left: dead, USER, MetaGPT
    block: blocked, USER
    answer: answered, MetaGPT
    complete: refused with 4
    nobody claims: unclaimed, MetaGPT
    the lease runs out: lease_ran_out, MetaGPT
    ");
}
