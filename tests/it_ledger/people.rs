//! People: what they are offered, and what they change while an agent works.

use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::exchange::sample;
use test_support::team::with_protocol;

#[cfg(feature = "agents")]
#[test]
fn who_works_is_told_once_of_what_others_change_meanwhile() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    env.claim("7.1", "prep-agent").success();
    let extend = ["extend", "7.1", "--as", "prep-agent"];
    env.handoff(&extend).success();
    let maintainer = ["--as", "maintainer"];
    env.handoff(
        &[
            &["annotate", "7", "--note", "without a header line"][..],
            &maintainer,
        ]
        .concat(),
    )
    .success();
    let set = ["set", "7", "priority=critical", "--reason", "it burns"];
    env.handoff(&[&set[..], &maintainer].concat()).success();
    // What only reads tells it, each time.
    let check = ["check", "-", "--as", "prep-agent"];
    for _ in 0..2 {
        let shown = env.handoff_with(&check, opening(8)).stderr;
        assert!(shown.contains("new since you claimed it"), "{shown}");
        env.handoff(&["prime", "--as", "prep-agent"])
            .says("new since you claimed it, from maintainer: \"without a header line");
    }
    let shown = env.handoff(&extend).success().stderr;
    assert!(
        shown.contains("7.1, new since you claimed it, from maintainer: without a header line"),
        "{shown}"
    );
    assert!(shown.contains("it burns (priority critical)"), "{shown}");
    let again = env.handoff(&extend).success().stderr;
    assert!(!again.contains("new since"), "{again}");
}

#[test]
fn who_works_is_told_of_a_request_that_is_sent_again() {
    let env = with_protocol("delegation");
    env.pace(1);
    let mut request = sample("delegation", "request");
    let id = format!("{}.1", request["traceId"].as_str().unwrap());
    let to = request["handoffTo"].as_str().unwrap().to_owned();
    env.send(request.to_string()).success();
    env.claim(&id, &to).success();
    env.wait(10);
    request["contextForTarget"]["summary"] = "berth 5, not 4".into();
    env.send(request.to_string()).success();
    let again = id.replace(".1", ".2");
    let said = format!(
        "{id}, new since you claimed it, from document_generator: request was sent again, as {again}: berth 5, not 4"
    );
    let shown = env.handoff(&["extend", &id, "--as", &to]).success().stderr;
    assert!(shown.contains(&said), "{shown}");
}

#[test]
fn a_person_is_offered_commands_in_its_own_name() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    env.claim("7.1", "prep-agent").success();
    let why = ["--as", "prep-agent", "--reason", "which table?"];
    env.handoff(&[&["block", "7.1"][..], &why].concat())
        .success();
    env.git(&env.repo(), &["config", "handoff.agent", "maintainer"]);
    for command in [
        &["next", "7"][..],
        &["show", "7.1"],
        &["status"],
        &["doctor"],
    ] {
        let shown = env.handoff(command).shown;
        assert!(!shown.contains("--as orchestrator"), "{shown}");
    }
    for command in [
        &["next", "7"][..],
        &["inbox"],
        &["status"],
        #[cfg(feature = "agents")]
        &["prime"],
    ] {
        let shown = env.handoff(command).shown;
        assert!(
            shown.contains("git handoff answer 7.1 ANSWER --as maintainer"),
            "{shown}"
        );
        assert!(!shown.contains("--apply"), "{shown}");
    }
    env.handoff(&["answer", "7.1", "the second", "--as", "maintainer"])
        .success();
}

#[test]
fn a_person_who_wants_an_agents_work_is_told_how_to_take_it() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    env.git(&env.repo(), &["config", "handoff.agent", "maintainer"]);
    let reason = ["--reason", "it is stuck"];
    let take_over = ["claim", "7.1", "--take-over", "--reason", "it is stuck"];
    for command in [&["claim", "7.1"][..], &take_over] {
        let refused = env.handoff(command).exits(4);
        let hint = refused.stderr.split('`').nth(1).unwrap();
        let command: Vec<&str> = hint.split(' ').skip(2).collect();
        let command = command
            .iter()
            .filter(|word| !["--reason", "WHY"].contains(word));
        let mut command: Vec<&str> = command.copied().collect();
        if command.contains(&"--take-over") {
            command.extend(reason);
        }
        command.extend(["--worker", if command.len() > 4 { "robin" } else { "desk" }]);
        env.handoff(&command).success();
    }
    env.handoff(&["show", "7.1"]).success().says("worker robin");
    env.assert_sound();
}

#[test]
fn who_takes_work_from_an_agent_sees_who_is_told() {
    let env = TestEnvironment::with_ledger();
    let told = "prep-agent (worker desk), which held it, is told at its next command\n";
    for issue in [7, 8] {
        env.send(opening(issue)).success();
        let id = format!("{issue}.1");
        let claim = ["claim", &id, "--as", "prep-agent", "--worker", "desk"];
        env.handoff(&claim).success();
        let all: &[&str] = if issue == 7 { &[] } else { &["--all"] };
        let about = if issue == 7 { &id } else { "8" };
        let cancel = [
            "cancel",
            about,
            "--as",
            "maintainer",
            "--reason",
            "not needed",
        ];
        let said = env.handoff(&[&cancel[..], all].concat()).success().stdout;
        assert_eq!(said.matches(told).count(), 1, "{said}");
        let late = [
            "fail",
            &id,
            "--as",
            "prep-agent",
            "--code",
            "X",
            "--reason",
            "late",
        ];
        env.handoff(&late).exits(4).says("cancelled");
        for view in [&["inbox", "--as", "maintainer"][..], &["alerts"]] {
            let shown = env.handoff(view).shown;
            assert!(issue == 7 || !shown.contains("8.1"), "{shown}");
        }
    }
}

#[test]
fn a_pause_of_all_is_told_to_who_holds_nothing_and_to_who_resumes_one_issue() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(7)).success();
    let lead = ["--as", "orchestrator", "--reason", "a freeze"];
    env.handoff(&[&["pause", "--all"][..], &lead].concat())
        .success();
    let told = |command: &[&str]| drop(env.handoff(command).success().says("all work is paused"));
    told(&["--as", "fixer-agent"]);
    #[cfg(feature = "agents")]
    told(&["prime", "--as", "fixer-agent"]);
    env.handoff(&[&["resume", "7"][..], &lead].concat())
        .exits(4)
        .says("git handoff resume --all --as orchestrator");
    let after = ["set", "7", "after=none"];
    env.handoff(&[&after[..], &lead].concat())
        .success()
        .says("issue 7: unchanged, after is none");
}

/// Persons act under one agent's name: the worker tells them apart.
#[test]
fn the_log_says_who_approved() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init", "--protocol", "review"]).success();
    env.git(&env.repo(), &["switch", "-q", "-c", "csv"]);
    let work = ["commit", "-q", "--allow-empty", "-m", "Work"];
    env.git(&env.repo(), &work);
    let send = ["send", "--issue", "7", "--to", "reviewer", "--as", "coder"];
    let set = ["--set", "branch=csv", "--set", "summary=Prints CSV"];
    env.handoff(&[&send[..], &set].concat()).success();
    for person in ["ada", "bob"] {
        let approve = ["approve", "7", "--as", "maintainer", "--worker", person];
        env.handoff(&approve).success();
    }
    let log = ["log", "7", "--event", "approve"];
    let shown = env.handoff(&log).success().stdout;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 2, "{shown}");
    for (line, person) in lines.iter().zip(["bob", "ada"]) {
        assert!(
            line.contains(&format!("  maintainer ({person})  ")),
            "{shown}"
        );
    }
    let steps = env.data(&log)["steps"].clone();
    assert_eq!(
        (&steps[0]["worker"], &steps[1]["worker"]),
        (&"bob".into(), &"ada".into())
    );
}
