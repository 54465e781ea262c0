//! What an issue needs for itself, and what it has no need of.

use insta::assert_snapshot;
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared, sample};

/// A ledger in which the preparer holds issues 87 and 88.
fn two() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    for issue in [87, 88] {
        env.send(opening(issue)).success();
        env.claim(&format!("{issue}.1"), "prep-agent").success();
    }
    env
}

#[test]
fn two_open_issues_with_one_port_or_workspace_are_named() {
    let env = two();
    env.send(prepared(87)).success();
    let same = prepared(88)
        .replace("parcel-desk-88", "parcel-desk-87")
        .replace("4188", "4187");
    let checked = env.handoff_with(&["check", "-"], &same).success();
    assert_snapshot!(checked.shown, @r#"
    $ git handoff check -
    -: complete (prep-agent-to-implementer-agent)
      9:3 /handoff/port warning contract.shared port "4187" is also that of issue 87, which is open
          use another port, or wait until nobody works on issue 87
      7:3 /handoff/workspace_path warning contract.shared workspace path "/srv/desk/parcel-desk-87" is also that of issue 87, which is open
          use another workspace path, or wait until nobody works on issue 87
    "#);
    let sent = env.send(&same).success();
    assert_snapshot!(sent.shown, @r#"
    $ git handoff send -
    88.2 prep-agent → implementer-agent: pending
      88.1 in_progress..completed
      commit [commit]
    --- stderr
      9:3 /handoff/port warning contract.shared port "4187" is also that of issue 87, which is open
          use another port, or wait until nobody works on issue 87
      7:3 /handoff/workspace_path warning contract.shared workspace path "/srv/desk/parcel-desk-87" is also that of issue 87, which is open
          use another workspace path, or wait until nobody works on issue 87
    next, for implementer-agent: git handoff claim 88.2 --as implementer-agent
    "#);
    // The same bytes again warn of nothing, nor does what the issue had already.
    let again = env.send(&same).success();
    assert!(!again.shown.contains("contract.shared"), "{}", again.shown);
    env.claim("88.2", "implementer-agent").success();
    let done = env.send(sample(
        "implementer-agent-to-reviewer-agent",
        Format::Xml,
        88,
    ));
    assert!(!done.success().shown.contains("contract.shared"));
    env.assert_sound();
}

#[test]
fn one_branch_of_several_issues_is_named_and_a_closed_issue_needs_nothing() {
    let env = two();
    env.send(prepared(87)).success();
    env.send(opening(89)).success();
    env.claim("89.1", "prep-agent").success();
    let branch =
        |issue: u32| prepared(issue).replace(&format!("enhancement/{issue}-"), "enhancement/87-");
    let one = env.send(branch(88)).success();
    one.says("branch \"enhancement/87-csv-export\" is also that of issue 87, which is open");
    let two = env.handoff_with(&["check", "-"], branch(89)).success();
    two.says("is also that of issues 87, 88, which are open");
    for id in ["87.2", "88.2"] {
        env.handoff(&[
            "cancel",
            id,
            "--as",
            "implementer-agent",
            "--reason",
            "not needed",
        ])
        .success();
    }
    let free = env.send(branch(89)).success();
    assert!(!free.shown.contains("contract.shared"), "{}", free.shown);
}

#[test]
fn the_base_as_an_issues_branch_is_told_and_another_one_can_be_noted() {
    let env = two();
    let named = prepared(87).replace("enhancement/87-csv-export", "main");
    let told = "warning contract.shared main is the base, which work is merged into";
    let cure = "git handoff annotate 87 --as maintainer --fact branch=VALUE --note WHY";
    env.handoff_with(&["check", "-"], &named).says(told);
    env.send(named).success().says(told).says(cure);
    let note = "annotate 87 --fact branch=csv --note Own --as maintainer";
    let note: Vec<&str> = note.split(' ').collect();
    env.handoff(&note).success();
    env.claim("87.2", "implementer-agent").success().says("csv");
}

#[test]
fn a_protocol_that_wants_no_such_warning_gives_none() {
    let env = test_support::time::own("issue-to-pr", |protocol| {
        for fact in ["workspace_path", "port", "branch"] {
            protocol["facts"][fact]["exclusive"] = false.into();
        }
    });
    for issue in [87, 88] {
        env.send(opening(issue)).success();
        env.claim(&format!("{issue}.1"), "prep-agent").success();
    }
    env.send(prepared(87)).success();
    let same = prepared(88).replace("4188", "4187");
    let sent = env.send(same).success();
    assert!(!sent.shown.contains("contract.shared"), "{}", sent.shown);
}

#[cfg(feature = "agents")]
#[test]
fn what_does_not_apply_is_counted_and_shown_with_its_reason() {
    let env = two();
    let none = "n/a: a library has no server";
    let contract = prepared(87)
        .replace(">4187<", &format!(">{none}<"))
        .replace("answers on port 4187", none);
    let sent = env.send(&contract).success();
    assert_snapshot!(sent.shown, @"
    $ git handoff send -
    87.2 prep-agent → implementer-agent: pending
      87.1 in_progress..completed
      n/a in 2 places: /port (a library has no server), /validation/dev_server (a library has no server)
      commit [commit]
    --- stderr
    next, for implementer-agent: git handoff claim 87.2 --as implementer-agent
    ");
    let shown = env.handoff(&["show", "87.2"]).success();
    shown
        .says("n/a")
        .says("/validation/dev_server: a library has no server");
    let places = env.data(&["show", "87.2"])["record"]["not_applicable"].take();
    assert_snapshot!(places.to_string(), @r#"[{"path":"/port","reason":"a library has no server"},{"path":"/validation/dev_server","reason":"a library has no server"}]"#);
    // Two of them share nothing, and neither needs to name a port at all.
    let without = prepared(88)
        .replace("<port>4188</port>", "")
        .replace("answers on port 4188", none);
    let sent = env.send(&without).success();
    assert!(!sent.shown.contains("contract.shared"), "{}", sent.shown);
    env.claim("88.2", "implementer-agent").success();
    let facts = env
        .data(&["prime", "--as", "implementer-agent"])
        .to_string();
    assert!(!facts.contains("4188"), "a port is never invented: {facts}");
    env.assert_sound();
}

#[test]
fn a_server_that_ran_has_a_port() {
    let env = two();
    let without = prepared(87).replace("<port>4187</port>", "");
    let refused = env.send(&without).exits(3);
    assert_snapshot!(refused.shown, @"
    $ git handoff send -
    --- stderr
    error: the contract was refused
      1:1 /handoff/port field.missing `port` is missing
          add `<port>…</port>`: Port of the development server, from 1 to 65535, or `n/a: ` and the reason; optional if `dev_server` says that there is none
    hint: fix the contract (see `git handoff check FILE`) and send it again
    --- exit 3
    ");
    let word = prepared(87).replace(">4187<", ">n/a<");
    let refused = env.send(&word).exits(3);
    assert_snapshot!(refused.shown, @"
    $ git handoff send -
    --- stderr
    error: the contract was refused
      9:3 /handoff/port field.pattern `n/a` must be a whole number, or match ^n/a: [^ \\t\\n\\r]
          Port of the development server, from 1 to 65535, or `n/a: ` and the reason; optional if `dev_server` says that there is none
    hint: fix the contract (see `git handoff check FILE`) and send it again
    --- exit 3
    ");
}
