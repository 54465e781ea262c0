//! A signed ledger, and protocols that ask for less than its own.

use std::fs;
use std::path::Path;

use crate::keys::{
    BRANCH, damage, ed25519, findings, parts, path, protocol, put, raw, signature, signed, team,
    with_key, with_settings, without_prints,
};
use insta::assert_snapshot;
use serde_json::{Value, json};
use test_support::contracts::{Format, opening, sample};
use test_support::{Ran, TestEnvironment};

/// A folder with the usual protocol under another name, changed like this, and no list of keys.
fn lax(env: &TestEnvironment, change: impl FnOnce(&mut Value)) -> String {
    let folder = env.root().join("lax");
    let shown = folder.to_str().unwrap().to_owned();
    let _ = fs::remove_dir_all(&folder);
    env.handoff(&["protocol", "copy", "issue-to-pr", &shown])
        .success();
    let file = folder.join("protocol.json");
    let mut definition: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    definition["name"] = "lax".into();
    change(&mut definition);
    fs::write(file, serde_json::to_string_pretty(&definition).unwrap()).unwrap();
    let _ = fs::remove_file(folder.join("allowed_signers"));
    shown
}

/// Who sends which contract, from the prepared workspace to the approval.
const STEPS: [(&str, &str); 3] = [
    ("prep-agent", "prep-agent-to-implementer-agent"),
    ("implementer-agent", "implementer-agent-to-reviewer-agent"),
    ("reviewer-agent", "reviewer-agent-to-validator-agent"),
];

/// Takes an issue under the protocol `lax` to its approval, without a key.
fn approve(env: &TestEnvironment, issue: u32) {
    for (number, (agent, name)) in (1..).zip(STEPS) {
        env.claim(&format!("{issue}.{number}"), agent).success();
        env.send(sample(name, Format::Xml, issue)).success();
    }
}

/// The message of the ledger's last commit.
fn message(env: &TestEnvironment) -> String {
    env.git(&env.repo(), &["log", "-1", "--format=%B", BRANCH])
}

#[test]
fn no_protocol_is_added_to_a_signed_ledger_without_a_listed_persons_key() {
    let env = team();
    ed25519(&env, "stranger");
    let start = env.tip();
    let folder = lax(&env, |_| {});
    let add = ["protocol", "add", &folder, "--weaker", "--json"];
    let none = env.handoff(&add);
    assert!(findings(none, 4, "signature_refused").starts_with("signature.missing"));
    let refused = |key: &str| findings(with_key(&env, key, &add, ""), 4, "signature_refused");
    assert_snapshot!(refused("stranger"), @"signature.unknown the change is robin@example.com's, and is signed with SHA256:…, which is nobody's key");
    assert_snapshot!(refused("manager"), @"signature.other_agent the change is robin@example.com's, and is signed with SHA256:…, a key of issue-manager");
    assert_eq!(env.tip(), start, "nothing was written");
    // A person's key is not enough for one that checks less: it has to be said.
    let add = &add[..3];
    let weak = with_key(&env, "robin", add, "").exits(4).stderr;
    assert_snapshot!(weak, @"
    error: protocol lax is weaker than issue-to-pr, the ledger's default
      allowed_signers protocol.weaker the protocol lists no keys, so that nothing has to be signed: issue-to-pr is stricter
    hint: nothing was written; make it as strict, or say that it may be weaker: --weaker, which is recorded with your name; see `git handoff explain protocol_weaker`
    ");
    assert_eq!(env.tip(), start, "nothing was written");
    with_key(&env, "robin", &[add, &["--weaker"]].concat(), "").success();
    assert_snapshot!(message(&env), @"
    Add protocol lax 1.0.0

    Protocol: lax
    Weaker: signers
    ");
    env.assert_sound();
    // Nor does it become the default one without that.
    let choose = ["protocol", "use", "lax", "--weaker", "--json"];
    let none = env.handoff(&choose);
    assert!(findings(none, 4, "signature_refused").starts_with("signature.missing"));
    with_key(&env, "robin", &choose[..3], "")
        .exits(4)
        .says("protocol lax is weaker than issue-to-pr, the ledger's default");
    with_key(&env, "robin", &choose, "").success();
    assert!(
        message(&env).ends_with("Protocol: lax\nWeaker: signers\n\n"),
        "{}",
        message(&env)
    );
    env.assert_sound();
    let back = ["protocol", "use", "issue-to-pr"];
    env.handoff(&back).exits(4).says("signature.missing");
    with_key(&env, "robin", &back, "").success();
    // So is an update of one that has no list of its own.
    let set = [
        "protocol",
        "set",
        "lax",
        "time.lease_seconds",
        "60",
        "--weaker",
        "--json",
    ];
    let none = env.handoff(&set);
    assert!(findings(none, 4, "signature_refused").starts_with("signature.missing"));
    with_key(&env, "robin", &set, "").success();
    env.assert_sound();
}

#[test]
fn what_was_added_without_a_key_by_hand_is_found_everywhere() {
    let env = team();
    let folder = lax(&env, |_| {});
    let add = ["protocol", "add", &folder, "--weaker"];
    let before = env.tip();
    with_key(&env, "robin", &add, "").success();
    let step = env.tip();
    let (payload, _) = parts(&raw(&env, &step));
    let server = env.root().join("server");
    let git = |args: &[&str]| env.git(&env.repo(), args);
    git(&["init", "-q", "--bare", server.to_str().unwrap()]);
    env.handoff_in(&server, &["hooks", "install", "--server"])
        .success();
    let push = |from: &str| {
        let to = format!("{from}:{BRANCH}");
        env.git_any(&env.repo(), &["push", server.to_str().unwrap(), &to])
    };
    push(&before).success();
    put(&env, &payload);
    assert_snapshot!(damage(&env), @"signature.missing the change is robin@example.com's, and is not signed");
    push(BRANCH).exits(1).says("signature.missing");
    // One that hides what it checks less is signed, and still not what such a step is.
    let silent = payload.replace("Weaker: signers\n", "");
    assert_ne!(silent, payload);
    put(
        &env,
        &signed(&silent, &signature(&env, "robin", &["-n", "git"], &silent)),
    );
    assert_snapshot!(damage(&env), @"commit.message the message or its trailers do not tell what the step did");
    push(BRANCH).exits(1).says("commit.message");
    push(&step).success();
}

#[test]
fn an_issue_is_not_taken_by_opening_it_under_a_weaker_protocol() {
    let env = team();
    let folder = lax(&env, |_| {});
    with_key(&env, "robin", &["protocol", "add", &folder, "--weaker"], "").success();
    let start = env.tip();
    let args = ["send", "-", "--protocol", "lax", "--json"];
    let none = env.handoff_with(&args, opening(7));
    assert!(findings(none, 4, "signature_refused").starts_with("signature.missing an issue under a protocol without keys is opened with one that the ledger's default protocol lists"));
    assert_eq!(env.tip(), start, "nothing was written");
    with_key(&env, "prep", &args, &opening(7)).success();
    // From then on its protocol asks for none.
    approve(&env, 7);
    env.assert_sound();
    let (payload, _) = parts(&raw(&env, &format!("{BRANCH}~6")));
    assert!(payload.contains("7.1 sent"), "{payload}");
    put(&env, &payload);
    assert_snapshot!(damage(&env), @"signature.missing an issue under a protocol without keys is opened with one that the ledger's default protocol lists, and is not signed");
}

#[test]
fn a_gate_asks_for_the_ledgers_own_protocol_and_views_name_another() {
    let env = team();
    let folder = lax(&env, |_| {});
    with_key(&env, "robin", &["protocol", "add", &folder, "--weaker"], "").success();
    with_key(
        &env,
        "manager",
        &["send", "-", "--protocol", "lax"],
        &opening(7),
    )
    .success();
    approve(&env, 7);
    let shown = |args: &[&str]| env.handoff(args).shown;
    assert_snapshot!(shown(&["gate", "7", "--require", "approved"]), @"
    $ git handoff gate 7 --require approved
    ✗ not protocol: the issue follows lax, which is unsigned, not issue-to-pr
      protocol lax, not issue-to-pr: unsigned
      contracts' statements are checked: warn
    --- stderr
    error: issue 7 follows another protocol, lax
    hint: find out who opened it under lax: `git handoff log 7`; a gate for that protocol has `--protocol lax`
    --- exit 1
    ");
    assert_snapshot!(shown(&["gate", "7", "--require", "approved", "--protocol", "lax"]), @"
    $ git handoff gate 7 --require approved --protocol lax
    ✓ approved: 7.4 (reviewer-agent-to-validator-agent) by reviewer-agent
      protocol lax, not issue-to-pr: unsigned
      contracts' statements are checked: warn
    --- stderr
    validator-agent's turn with 7.4, no other agent can act: `git handoff claim 7.4 --as validator-agent`
    ");
    assert_snapshot!(shown(&["gate", "7", "--require", "approved", "--protocol", "lax", "--signed"]), @"
    $ git handoff gate 7 --require approved --protocol lax --signed
    ✓ approved: 7.4 (reviewer-agent-to-validator-agent) by reviewer-agent
    ✗ not signed: lax listed no keys at the step [commit]
      protocol lax, not issue-to-pr: unsigned
      contracts' statements are checked: warn
    --- stderr
    error: issue 7 is not signed
    hint: what is recorded can't be signed any more: do it again in a new issue, each step signed with a listed key; `git handoff help signatures.md` sets that up
    --- exit 1
    ");
    assert_snapshot!(shown(&["verify", "7"]), @"
    $ git handoff verify 7
    the ledger is sound: 9 commits, 4 handoffs, up to [commit]
      audited: only issue 7, and the rules; branch handoffs, from the first commit to the last, recorded 2026-03-02 09:17:00Z
      every step was legal under the rules of its time, and nothing was changed since
      protocol lax, not issue-to-pr: unsigned
    ");
    assert_snapshot!(shown(&["list"]), @"
    $ git handoff list
    7.1  completed  issue-manager → prep-agent          medium  9 minutes ago  Export delivery history as CSV
    7.2  completed  prep-agent → implementer-agent      medium  7 minutes ago  Export delivery history as CSV
    7.3  completed  implementer-agent → reviewer-agent  medium  5 minutes ago  Export delivery history as CSV
    7.4  pending    reviewer-agent → validator-agent    medium  5 minutes ago  Export delivery history as CSV
    protocol lax, not issue-to-pr: unsigned; issues: 7
    ");
    assert!(shown(&["show", "7.4"]).contains("\n  protocol lax, not issue-to-pr: unsigned\n"));
    let claimed = shown(&["claim", "7.4", "--as", "validator-agent"]);
    assert!(
        claimed.contains("\n  protocol lax, not issue-to-pr: unsigned\n"),
        "{claimed}"
    );
    #[cfg(feature = "github")]
    {
        let line = "github output 7 --require approved --output -";
        let github = env.handoff(&line.split(' ').collect::<Vec<_>>());
        assert!(
            github.stdout.contains("\nfalse\n") && github.stdout.contains("\nprotocol\n"),
            "{}",
            github.shown
        );
    }
}

#[test]
fn a_stricter_policy_is_not_weaker_and_a_refusal_names_all_that_is() {
    let env = team();
    let signers = fs::read_to_string(env.root().join("protocol-1.0.0/allowed_signers")).unwrap();
    let folder = |version: &str, policy: Option<&str>, more: &str| {
        let folder = protocol(&env, version, &format!("{signers}{more}"));
        let file = Path::new(&folder).join("protocol.json");
        let text = fs::read_to_string(&file).unwrap();
        let mut definition: Value = serde_json::from_str(&text).unwrap();
        let rule = definition["consistency"][1].as_object_mut().unwrap();
        rule.remove("policy");
        rule.extend(policy.map(|policy| ("policy".to_owned(), policy.into())));
        fs::write(file, definition.to_string()).unwrap();
        folder
    };
    let update = |folder: &str, more: &[&str]| {
        let update = ["protocol", "update", folder];
        with_key(&env, "robin", &[&update[..], more].concat(), "")
    };
    let key = format!("prep-agent {}", ed25519(&env, "new"));
    let weak = folder("2.0.0", Some("warn"), &key);
    assert_snapshot!(update(&weak, &[]).shown, @"
    $ git handoff protocol update [root]/protocol-2.0.0
    --- stderr
    error: protocol issue-to-pr is weaker than its version in force
      /consistency/1/policy protocol.weaker the rule `pull-request-address` is warn, not enforce: issue-to-pr is stricter
      allowed_signers protocol.weaker `signers.added` may let pass what the version in force refuses
    hint: nothing was written; make it as strict, or say that it may be weaker: --weaker, which is recorded with your name; see `git handoff explain protocol_weaker`
    --- exit 4
    ");
    update(&weak, &["--weaker"])
        .success()
        .says("\n  checks less, on record: consistency.pull-request-address, signers.added\n");
    let log = env.handoff(&["log", "-n", "1", "--oneline"]).stdout;
    let line = "from 1.0.0 to 2.0.0; checks less: consistency.pull-request-address, signers.added";
    assert!(log.contains(line), "{log}");
    // Without the key, the rule is enforced.
    let stricter = update(&folder("3.0.0", None, &key), &[]).success();
    assert!(
        !stricter.shown.contains("checks less"),
        "{}",
        stricter.shown
    );
    env.assert_sound();
    // At first, each changed policy was recorded as weaker.
    let (payload, _) = parts(&raw(&env, BRANCH));
    let recorded = |keys: &str| {
        let payload = format!("{payload}Weaker: {keys}\n");
        let signature = signature(&env, "robin", &["-n", "git"], &payload);
        put(&env, &signed(&payload, &signature));
    };
    recorded("consistency.same-round");
    env.assert_sound();
    recorded("signers");
    assert_snapshot!(damage(&env), @"commit.message the message or its trailers do not tell what the step did");
}

/// Runs the program as somebody whose git signs whatever it can with this key.
fn signing(env: &TestEnvironment, key: &str, args: &[&str], input: &str) -> Ran {
    let key = path(env, &format!("{key}.pub"));
    let settings = [
        ("gpg.format", "ssh"),
        ("user.signingKey", &*key),
        ("handoff.sign", "true"),
    ];
    with_settings(env, &settings, args, input)
}

/// A file of a policy that pins the key `agents` for each agent, and these lines.
fn pinned(env: &TestEnvironment, more: &[String]) -> String {
    let agents = fs::read_to_string(path(env, "agents.pub")).unwrap();
    let signers = [&[format!("* {}", agents.trim_end())][..], more].concat();
    let policy = json!({"format": 1, "require": ["approved"], "signers": signers});
    env.file("policy.json", policy.to_string())
}

#[test]
fn a_policy_with_keys_says_who_decides_what_a_requirement_means() {
    // A protocol of one's own that nobody who is listed put in force.
    let env = signed_approval();
    let foreign =
        "issue-to-pr is neither as the program ships it nor put in force by a listed person";
    let gate = |env: &TestEnvironment, issue: &str, policy: &str| {
        env.handoff(&["gate", issue, "--policy", policy])
    };
    gate(&env, "7", &pinned(&env, &[])).exits(1).says(foreign);
    let robin = fs::read_to_string(path(&env, "robin.pub")).unwrap();
    let robin = format!("robin@example.com {}", robin.trim_end());
    gate(&env, "7", &pinned(&env, &[robin])).success();

    // Where the ledger lists no keys, any writer changes what its words mean, for a while or for good.
    let env = TestEnvironment::with_ledger();
    ed25519(&env, "agents");
    let policy = pinned(&env, &[]);
    let send = |options: &[&str], contract: &str| {
        signing(
            &env,
            "agents",
            &[&["send", "-"], options].concat(),
            contract,
        )
        .success();
    };
    send(&[], &opening(7));
    for (number, (agent, name)) in (1..).zip(STEPS) {
        gate(&env, "7", &policy).exits(1);
        let claim = ["claim", &format!("7.{number}"), "--as", agent];
        signing(&env, "agents", &claim, "").success();
        send(&[], &sample(name, Format::Xml, 7));
    }
    gate(&env, "7", &policy).success();
    let weaker = |name: &str| {
        lax(&env, |definition| {
            definition["name"] = name.into();
            definition["version"] = "99.0.0".into();
            definition["requirements"]["approved"]["shown_by"] = json!([
                "issue-manager-to-prep-agent",
                "reviewer-agent-to-validator-agent"
            ]);
        })
    };
    signing(&env, "agents", &["protocol", "add", &weaker("lax")], "").success();
    send(&["--protocol", "lax"], &opening(8));
    gate(&env, "8", &policy)
        .exits(1)
        .says("the issue follows lax, not issue-to-pr");
    gate(&env, "7", &policy).success();
    let update = |folder: &str| {
        let update = ["protocol", "update", folder, "--weaker"];
        signing(&env, "agents", &update, "").success();
    };
    update(&weaker("issue-to-pr"));
    gate(&env, "7", &policy).exits(1).says(foreign);
    env.handoff(&["verify"]).success();
}

/// A ledger whose agents all sign with the key `agents`, with issue 7 approved.
fn signed_approval() -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    let (agents, robin) = (ed25519(&env, "agents"), ed25519(&env, "robin"));
    let folder = protocol(
        &env,
        "1.0.0",
        &format!("* {agents}robin@example.com {robin}"),
    );
    signing(&env, "robin", &["init", "--protocol", &folder], "").success();
    with_key(&env, "agents", &["send", "-"], &opening(7)).success();
    for (number, (agent, name)) in (1..).zip(STEPS) {
        let claim = ["claim", &format!("7.{number}"), "--as", agent];
        with_key(&env, "agents", &claim, "").success();
        with_key(
            &env,
            "agents",
            &["send", "-"],
            &sample(name, Format::Xml, 7),
        )
        .success();
    }
    env
}

#[test]
fn a_policy_outside_the_ledger_says_all_that_counts() {
    let env = signed_approval();
    let key = fs::read_to_string(path(&env, "agents.pub")).unwrap();
    ed25519(&env, "stranger");
    let stranger = fs::read_to_string(path(&env, "stranger.pub")).unwrap();
    env.handoff(&["gate", "7", "--signed"]).success();
    let asked = |policy: &Value| {
        let file = env.file("policy.json", policy.to_string());
        without_prints(&env.handoff(&["gate", "7", "--policy", &file]).shown)
    };
    let robin = fs::read_to_string(path(&env, "robin.pub")).unwrap();
    let policy = |key: &str| {
        let robin = format!("robin@example.com {}", robin.trim_end());
        let signers = [format!("* {}", key.trim_end()), robin];
        json!({"format": 1, "protocol": "issue-to-pr", "require": ["approved"], "signers": signers})
    };
    assert_snapshot!(asked(&policy(&key)), @"
    $ git handoff gate 7 --policy [root]/policy.json
    ✓ approved: 7.4 (reviewer-agent-to-validator-agent) by reviewer-agent
    ✓ signed: each step of the issue is signed with a listed key
      contracts' statements are checked: warn
    --- stderr
    validator-agent's turn with 7.4, no other agent can act: `git handoff claim 7.4 --as validator-agent`
    ");
    assert_snapshot!(asked(&policy(&stranger)), @"
    $ git handoff gate 7 --policy [root]/policy.json
    ✓ approved: 7.4 (reviewer-agent-to-validator-agent) by reviewer-agent
    ✗ not signed: the step [commit]: the step is reviewer-agent's, and is signed with SHA256:…, which is nobody's key
      contracts' statements are checked: warn
    --- stderr
    error: issue 7 is not signed
    hint: what is recorded can't be signed any more: do it again in a new issue, each step signed with a listed key; `git handoff help signatures.md` sets that up
    --- exit 1
    ");
    assert_snapshot!(asked(&json!({"format": 1, "require": ["validated"]})), @"
    $ git handoff gate 7 --policy [root]/policy.json
    ✗ not validated: validator-agent has not validated 7.4 (reviewer-agent-to-validator-agent) yet; it waits for validator-agent
      contracts' statements are checked: warn
    --- stderr
    error: issue 7 is not validated
    hint: validator-agent's turn with 7.4, no other agent can act: `git handoff claim 7.4 --as validator-agent`
    --- exit 1
    ");
    assert_snapshot!(asked(&json!({"format": 1, "protocol": "lax"})), @"
    $ git handoff gate 7 --policy [root]/policy.json
    ✗ not protocol: the issue follows issue-to-pr, not lax
      contracts' statements are checked: warn
    --- stderr
    error: issue 7 follows another protocol, issue-to-pr
    hint: find out who opened it under issue-to-pr: `git handoff log 7`; a gate for that protocol has `--protocol issue-to-pr`
    --- exit 1
    ");
    assert_snapshot!(asked(&json!({"format": 1, "requires": ["approved"]})), @r#"
    $ git handoff gate 7 --policy [root]/policy.json
    --- stderr
    error: "[root]/policy.json" is not a policy for a gate
       gate.policy it is not a policy: unknown field `requires`, expected one of `format`, `protocol`, `require`, `signed`, `signers`, `exempt` at line 1 column 22
    hint: the gate stays closed; `git handoff help gate.md` describes the file
    --- exit 2
    "#);
    // What is not here can't be shown.
    let shallow = env.root().join("shallow");
    let from = format!("file://{}", env.repo().display());
    env.git(
        env.root(),
        &[
            "clone",
            "-q",
            "--bare",
            "--depth=1",
            "--branch=handoffs",
            &from,
            shallow.to_str().unwrap(),
        ],
    );
    let ran = env
        .handoff_in(&shallow, &["gate", "7", "--signed"])
        .exits(1);
    assert!(
        ran.shown.contains("lacks part of the issue's history"),
        "{}",
        ran.shown
    );
}

#[test]
fn one_that_checks_as_much_needs_no_word_and_what_less_is_named() {
    let env = team();
    let list = fs::read_to_string(crate::keys::list(&env, "1.0.0")).unwrap();
    let folder = lax(&env, |definition| {
        definition["secrets"] = json!({"allow": [{"rule": "aws-access-key"}]});
        definition["evidence"] = json!({"policy": "off"});
        definition["contracts"][2]
            .as_object_mut()
            .unwrap()
            .remove("claims");
        let rules = definition["consistency"].as_array_mut().unwrap();
        rules[0]["policy"] = "warn".into();
        rules.remove(1);
    });
    fs::write(format!("{folder}/allowed_signers"), &list).unwrap();
    let add = ["protocol", "add", &folder, "--json"];
    let found = findings(with_key(&env, "robin", &add, ""), 4, "protocol_weaker");
    assert_snapshot!(found, @"
    protocol.weaker the check `branch` is off, not warn: issue-to-pr is stricter
    protocol.weaker the check `commits` is off, not warn: issue-to-pr is stricter
    protocol.weaker the check `files_changed` is off, not warn: issue-to-pr is stricter
    protocol.weaker the check `commits_added` is off, not warn: issue-to-pr is stricter
    protocol.weaker the check `merge` is off, not warn: issue-to-pr is stricter
    protocol.weaker the check `artifacts` is off, not warn: issue-to-pr is stricter
    protocol.weaker the check `paths` is off, not warn: issue-to-pr is stricter
    protocol.weaker the check `tests` is off, not warn: issue-to-pr is stricter
    protocol.weaker the check `tests_added` is off, not warn: issue-to-pr is stricter
    protocol.weaker the check `coverage` is off, not warn: issue-to-pr is stricter
    protocol.weaker the contract type implementer-agent-to-reviewer-agent does not say where `commits` is stated: issue-to-pr is stricter
    protocol.weaker the contract type implementer-agent-to-reviewer-agent does not say where `coverage` is stated: issue-to-pr is stricter
    protocol.weaker the contract type implementer-agent-to-reviewer-agent does not say where `files_changed` is stated: issue-to-pr is stricter
    protocol.weaker the contract type implementer-agent-to-reviewer-agent does not say where `tests_added` is stated: issue-to-pr is stricter
    protocol.weaker the rule `issue-address` is warn, not enforce: issue-to-pr is stricter
    protocol.weaker the rule `pull-request-address` is off, not enforce: issue-to-pr is stricter
    protocol.weaker what looks like a secret of the rule `aws-access-key` is allowed: issue-to-pr is stricter
    ");
    let folder = lax(&env, |_| {});
    fs::write(format!("{folder}/allowed_signers"), &list).unwrap();
    with_key(&env, "robin", &add, "").success();
    assert!(!message(&env).contains("Weaker"));
    // Its own people may change it, but not below the ledger's.
    let set = ["protocol", "set", "lax", "consistency.*", "off", "--json"];
    let rule: Value = env.data(&["protocol", "set", "lax"]);
    let rules = rule["settings"].as_array().unwrap().iter();
    let mut keys =
        rules.filter_map(|s| s["key"].as_str().filter(|k| k.starts_with("consistency.")));
    let set = [set[0], set[1], set[2], keys.next().unwrap(), set[4], set[5]];
    findings(with_key(&env, "robin", &set, ""), 4, "protocol_weaker");
    env.assert_sound();
}

#[test]
fn each_commit_that_changed_the_issue_is_asked_for_its_signature() {
    let env = signed_approval();
    env.handoff(&["gate", "7", "--signed"]).success();
    let worktree = env.root().join("by-hand");
    let at = worktree.to_str().unwrap();
    env.git(
        &env.repo(),
        &["worktree", "add", "-q", "--detach", at, BRANCH],
    );
    fs::write(worktree.join("issues/07/00/7/0005.json"), "{}").unwrap();
    // What its message says it is about is not what it changed.
    let author = "reviewer-agent <reviewer-agent@handoff.invalid>";
    let message = "8.1 sent to prep-agent: x\n\nIssue: 8\nTransition: 8.1 none..pending\n";
    env.git(&worktree, &["add", "-A"]);
    env.git(
        &worktree,
        &["commit", "-q", "--author", author, "-m", message],
    );
    let forged = env.git(&worktree, &["rev-parse", "HEAD"]);
    env.git(&env.repo(), &["update-ref", BRANCH, forged.trim()]);
    env.handoff(&["gate", "7", "--signed"])
        .exits(1)
        .says("✗ not signed: the step ")
        .says("and is not signed");
}

#[test]
fn only_a_person_raises_a_limit() {
    let env = TestEnvironment::with_ledger();
    env.handoff(&["protocol", "add", "delegation"]).success();
    let rounds = "limits.rounds.failed validations";
    for (protocol, key, more, person) in [
        ("issue-to-pr", rounds, "9", "maintainer"),
        ("issue-to-pr", "retry", "9", "maintainer"),
        ("delegation", "retry", "9", "human"),
    ] {
        let set = ["protocol", "set", protocol, key, more, "--as"];
        let tip = env.tip();
        for agent in ["orchestrator", "fixer-agent"] {
            env.handoff(&[&set[..], &[agent]].concat())
                .exits(4)
                .says("only a person raises a limit")
                .says(&format!("who can: {person}"));
        }
        assert_eq!(env.tip(), tip);
        env.handoff(&[&set[..], &[person]].concat()).success();
        // It is recorded as theirs, like other decisions.
        assert!(message(&env).contains(&format!("From: {person}\n")));
        let log = env.data(&["log", "--limit", "1"]);
        assert_eq!(log["steps"][0]["author"], person);
    }
    // What is stricter is anybody's to say, and a person at a terminal needs no name.
    let fewer = ["protocol", "set", "issue-to-pr", rounds, "2"];
    env.handoff(&[&fewer[..], &["--as", "fixer-agent"]].concat())
        .success();
    env.handoff(&["protocol", "set", "issue-to-pr", rounds, "5"])
        .success();
    env.assert_sound();
}

#[test]
fn a_new_version_of_the_default_protocol_says_what_it_lets_pass() {
    let env = team();
    let list = fs::read_to_string(crate::keys::list(&env, "1.0.0")).unwrap();
    let update = |version: &str, change: &dyn Fn(&mut Value), more: &[&str]| {
        let folder = lax(&env, |definition| {
            definition["name"] = "issue-to-pr".into();
            definition["version"] = version.into();
            change(definition);
        });
        fs::write(format!("{folder}/allowed_signers"), &list).unwrap();
        let args = [&["protocol", "update", &folder][..], more].concat();
        with_key(&env, "robin", &args, "")
    };
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Value));
    let weaker: [Change<'_>; 7] = [
        ("requirements.approved", &|of| {
            of["requirements"]["approved"]["undone_by"] = json!([]);
        }),
        ("merge", &|of| {
            of["requirements"]["approved"]["merge"] = false.into();
            of["requirements"]["other-worker"]["merge"] = true.into();
        }),
        ("agents.fixer-agent", &|of| {
            of["agents"][4]["kind"] = "orchestrator".into();
        }),
        ("routes", &|of| {
            of["routes"][2]["opens"] = true.into();
        }),
        ("github", &|of| {
            of["github"]["rules"][11]["as"] = "implementer-agent".into();
        }),
        ("contracts.reviewer-agent-to-validator-agent", &|of| {
            of["contracts"][4]
                .as_object_mut()
                .unwrap()
                .remove("reviews");
        }),
        ("limits", &|of| {
            of["limits"]["rounds"]["failed validations"]["most"] = 9.into();
        }),
    ];
    for (at, (key, change)) in weaker.iter().enumerate() {
        let version = format!("2.{at}.0");
        let tip = env.tip();
        update(&version, change, &[])
            .exits(4)
            .says("is weaker than its version in force")
            .says(key);
        assert_eq!(env.tip(), tip);
    }
    let all = |of: &mut Value| weaker.iter().for_each(|(_, change)| change(of));
    update("3.0.0", &all, &["--weaker"]).success();
    let said = message(&env);
    for (key, _) in &weaker {
        assert!(said.contains(key), "no {key} in {said}");
    }
    // What is stricter, or only says something else, needs no word.
    update("3.1.0", &|of| of["title"] = "Ours".into(), &[]).success();
    assert!(!message(&env).contains("Weaker"), "{}", message(&env));
    let budget = |tokens: u64| {
        move |of: &mut Value| {
            of["limits"]["budgets"] = json!({"runs": {"per": "run", "tokens": tokens}})
        }
    };
    update("3.2.0", &budget(1000), &[]).success();
    update("3.3.0", &budget(2000), &[]).exits(4).says("budgets");
    update("3.3.0", &budget(500), &[]).success();
    assert!(!message(&env).contains("Weaker"), "{}", message(&env));
    env.assert_sound();
}

#[test]
fn where_nobody_signs_it_is_on_record_too() {
    let env = TestEnvironment::with_ledger();
    let folder = lax(&env, |definition| {
        definition["name"] = "issue-to-pr".into();
        definition["version"] = "2.0.0".into();
        definition["requirements"]["approved"]["undone_by"] = json!([]);
    });
    let schema = format!("{folder}/schemas/reviewer-agent-to-validator-agent.schema.json");
    let mut laxer: Value = serde_json::from_slice(&fs::read(&schema).unwrap()).unwrap();
    laxer["required"].as_array_mut().unwrap().pop();
    fs::write(&schema, laxer.to_string()).unwrap();
    env.handoff(&["protocol", "update", &folder]).success();
    let said = message(&env);
    assert!(
        said.contains("Weaker: ") && said.contains("requirements.approved"),
        "{said}"
    );
    assert!(
        said.contains("schema.reviewer-agent-to-validator-agent"),
        "{said}"
    );
    env.assert_sound();
    let silent = raw(&env, &env.tip());
    let line = said
        .lines()
        .find(|line| line.starts_with("Weaker"))
        .unwrap();
    put(&env, &silent.replace(&format!("{line}\n"), ""));
    assert!(damage(&env).starts_with("commit.message"));
}

#[test]
fn a_protocol_that_was_in_force_before_its_rules_were_compared_stays_in_force() {
    let env = TestEnvironment::with_ledger();
    let set = |value| ["protocol", "set", "issue-to-pr", "limits.handoffs", value];
    env.handoff(&set("5")).success();
    // As an earlier version let it be: an issue can't end within one handoff.
    let stream = env.git(&env.repo(), &["fast-export", "handoffs"]);
    let earlier = stream
        .replace("limits.handoffs to 5", "limits.handoffs to 1")
        .replace("\"handoffs\": 5", "\"handoffs\": 1");
    assert_eq!(stream.len(), earlier.len());
    assert_ne!(stream, earlier);
    let repo = env.root().join("earlier");
    env.git(env.root(), &["init", "-q", "earlier"]);
    fs::write(env.root().join("stream"), earlier).unwrap();
    let import = "alias.import=!git fast-import --quiet < ../stream";
    env.git(&repo, &["-c", import, "import"]);
    env.handoff_in(&repo, &["verify"]).success();
    env.handoff_in(&repo, &set("30")).success();
    let again = env.handoff_in(&repo, &set("1"));
    assert_eq!(again.status, 3, "{}", again.shown);
    env.handoff_in(&repo, &["verify"]).success();
}
