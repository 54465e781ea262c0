//! Work that is handed on between two clones: the next one has its code and its steps, or is told.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use test_support::agents::{PREPARED, agent, now, outcome};
use test_support::contracts::opening;
use test_support::remote::{bare, clone, hook};
use test_support::time::words;
use test_support::{Ran, TestEnvironment};

/// Two clones of a remote with a ledger in which issue 87 waits for prep-agent.
fn two() -> (TestEnvironment, PathBuf, [PathBuf; 2]) {
    let env = TestEnvironment::with_repository();
    let origin = bare(&env, "origin.git");
    let address = origin.to_str().unwrap().to_owned();
    env.git(
        &env.repo(),
        &["push", "-q", &address, "HEAD:refs/heads/main"],
    );
    let clones = ["a", "b"].map(|name| clone(&env, &address, name));
    for folder in &clones {
        env.handoff_in(folder, &["init", "--remote", "origin"])
            .success();
    }
    let args = ["send", "-"];
    let mut command = env.program(&args);
    command.current_dir(&clones[0]);
    env.run(command, &args, Some(opening(87).as_bytes()))
        .success();
    (env, origin, clones)
}

/// Runs a worker of a clone.
fn work(env: &TestEnvironment, folder: &Path, options: &[&str], command: &[&str]) -> Ran {
    let mut args = vec!["work", "--json", "--env", "OUT", "--poll", "1s"];
    args.extend(options);
    if !command.is_empty() {
        args.push("--");
    }
    args.extend(command);
    let mut program = now(env, &args);
    program.current_dir(folder).env("OUT", env.root());
    env.run(program, &args, None)
}

const IMPLEMENTED: &str = "--to reviewer-agent --issue 87 --set summary=done --set tests_added=1 --set coverage=90% \
     --set pr_number=88 --set pr_url=https://github.com/quayside/parcel-desk/pull/88";

#[test]
fn code_is_pushed_before_its_agent_hands_it_on_and_who_lacks_it_is_not_run() {
    let (env, origin, [a, b]) = two();
    let enforced = ["protocol", "set", "issue-to-pr", "evidence", "enforce"];
    env.handoff_in(&a, &enforced).success();
    let prep = agent(&env, &format!("git handoff send {PREPARED}"));
    let options = ["--as", "prep-agent", "--once"];
    let ran = work(&env, &a, &options, &[prep.to_str().unwrap()]);
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    assert_eq!(
        ran.json()["data"]["pieces"][0]["contradicted"],
        serde_json::json!([])
    );
    // It hands on itself, and pushes nothing.
    let text = format!(
        "echo 1 > w.txt; git add w.txt; git commit -q -m w; git handoff send {IMPLEMENTED}"
    );
    let implementer = agent(&env, &text);
    let options = ["--as", "implementer-agent", "--once"];
    let ran = work(&env, &a, &options, &[implementer.to_str().unwrap()]);
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    let pushed = env.git(&origin, &["rev-parse", "handoff/87"]);
    assert_eq!(pushed, env.git(&a, &["rev-parse", "handoff/87"]));
    // Somebody deletes the branch, and another clone has an empty one of that name.
    env.git(&origin, &["branch", "-D", "handoff/87"]);
    env.git(&b, &["branch", "handoff/87"]);
    let reviewer = agent(&env, "touch $OUT/ran");
    let options = ["--as", "reviewer-agent", "--once"];
    let ran = work(&env, &b, &options, &[reviewer.to_str().unwrap()]);
    let (what, why) = outcome(&ran);
    assert_eq!(what, "blocked", "{}", ran.shown);
    assert!(why.contains("origin has no branch handoff/87"), "{why}");
    assert!(!env.root().join("ran").exists());
}

#[test]
fn a_branch_that_a_rule_of_the_remote_refuses_is_for_a_person() {
    let (env, origin, [a, _]) = two();
    let rule = "case $1 in refs/heads/handoff/*) echo 'no such branches here'; exit 1;; esac";
    hook(&origin, "update", rule);
    let text = format!(
        "echo 1 > w.txt; git add w.txt; git commit -q -m w; git handoff new {PREPARED} > $GIT_HANDOFF_CONTRACT"
    );
    let prep = agent(&env, &text);
    let options = ["--as", "prep-agent", "--once"];
    let ran = work(&env, &a, &options, &[prep.to_str().unwrap()]);
    let (what, why) = outcome(&ran);
    assert_eq!(what, "blocked", "{}", ran.shown);
    assert!(why.contains("no such branches here"), "{why}");
}

/// Clone `a` hands on a commit of a branch for issue 87 while the remote is away, which then
/// returns.
fn handed_on_offline(env: &TestEnvironment, origin: &Path, a: &Path) {
    let gone = env.root().join("gone.git");
    fs::rename(origin, &gone).unwrap();
    let claim = ["claim", "87.1", "--as", "prep-agent"];
    env.handoff_in(a, &claim).exits(8);
    env.git(a, &["switch", "-q", "-C", "handoff/87"]);
    fs::write(a.join("w.txt"), "1").unwrap();
    env.git(a, &["add", "w.txt"]);
    env.git(a, &["commit", "-q", "-m", "w"]);
    let prepared = PREPARED.replace("$GIT_HANDOFF_BRANCH", "handoff/87");
    let mut send = vec!["send", "--as", "prep-agent"];
    send.extend(prepared.split(' '));
    env.handoff_in(a, &send).exits(8);
    fs::rename(&gone, origin).unwrap();
}

#[test]
fn code_that_was_handed_on_offline_is_pushed_before_its_step() {
    let (env, origin, [a, b]) = two();
    handed_on_offline(&env, &origin, &a);
    // Any write publishes what was recorded offline.
    let note = ["annotate", "87", "--as", "prep-agent", "--note", "here"];
    env.handoff_in(&a, &note)
        .success()
        .says("pushed handoff/87 to origin, with what was handed on offline");
    let there = || {
        env.git(
            &origin,
            &[
                "for-each-ref",
                "--format=%(objectname)",
                "refs/heads/handoff",
            ],
        )
    };
    assert_eq!(there(), env.git(&a, &["rev-parse", "handoff/87"]));
    // What was handed on and published stays deleted.
    env.git(&origin, &["branch", "-D", "handoff/87"]);
    env.git(&b, &["fetch", "-q", "origin"]);
    let sync = env.handoff_in(&a, &["sync", "--json"]).success().json();
    assert_eq!(sync["data"]["code"], serde_json::json!([]));
    assert_eq!(there(), "");
}

#[test]
fn code_that_a_hook_refuses_does_not_keep_its_step_here() {
    let (env, origin, [a, _]) = two();
    handed_on_offline(&env, &origin, &a);
    let rule = "case $1 in refs/heads/handoff/*) echo 'no such branches here'; exit 1;; esac";
    hook(&origin, "update", rule);
    env.handoff_in(&a, &["sync"])
        .success()
        .says("handoff/87 can't be pushed to origin: ")
        .says("no such branches here")
        .says("issue 87: 1 commit of handoff/87 not on origin: `git push origin handoff/87`");
    let tip = |folder| env.git(folder, &["rev-parse", "handoffs"]);
    assert_eq!(tip(&origin), tip(&a));
}

#[test]
fn a_code_branch_that_was_deleted_meanwhile_is_not_restored() {
    let (env, origin, [a, _]) = two();
    env.git(&a, &["push", "-q", "origin", "HEAD:refs/heads/handoff/87"]);
    handed_on_offline(&env, &origin, &a);
    env.git(&origin, &["branch", "-D", "handoff/87"]);
    let sync = env.handoff_in(&a, &["sync", "--json"]).success().json();
    assert_eq!(sync["data"]["code"], serde_json::json!([]));
    assert_eq!(env.git(&origin, &["branch", "--list", "handoff/*"]), "");
}

#[test]
fn an_idle_worker_publishes_what_was_recorded_while_the_remote_was_away() {
    let (env, origin, [a, _]) = two();
    let gone = env.root().join("gone.git");
    fs::rename(&origin, &gone).unwrap();
    let claim = ["claim", "87.1", "--as", "prep-agent"];
    env.handoff_in(&a, &claim).exits(8);
    let alerts = env.handoff_in(&a, &["alerts"]).success().stdout;
    let only_here = "1 step is only here, and not on the remote: `git handoff sync`";
    assert!(alerts.contains(only_here), "{alerts}");
    let there = || env.git(&gone, &["rev-parse", "handoffs"]);
    let before = there();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_secs(2));
            fs::rename(&gone, &origin).unwrap();
        });
        let options = ["--as", "closer-agent", "--timeout", "6s"];
        work(&env, &a, &options, &["true"]).success();
    });
    let after = env.git(&origin, &["rev-parse", "handoffs"]);
    assert_ne!(before, after);
    assert_eq!(after, env.git(&a, &["rev-parse", "handoffs"]));
}

#[test]
fn a_clone_that_never_claimed_decides_and_says_why_not() {
    let (env, _, [a, b]) = two();
    let claim = ["claim", "87.1", "--as", "prep-agent"];
    let fail = [
        "fail",
        "87.1",
        "--as",
        "prep-agent",
        "--message",
        "no network",
        "--recoverable",
    ];
    let in_a = |args: &[&str]| {
        let mut command = now(&env, args);
        command.current_dir(&a);
        env.run(command, args, None).success();
    };
    in_a(&claim);
    in_a(&fail);
    let decide = ["--decide", "--until-idle"];
    let ran = work(&env, &b, &decide, &[]).success().json();
    assert_eq!(ran["data"]["decided"], 1);
    assert_eq!(ran["data"]["undecided"], serde_json::Value::Null);
    in_a(&claim);
    in_a(&fail[..6]);
    // A person is called, and then it is theirs.
    let ran = work(&env, &b, &decide, &[]).success().json();
    assert_eq!(ran["data"]["decided"], 1);
    let ran = work(&env, &b, &decide, &[]).success().json();
    let undecided = &ran["data"]["undecided"][0];
    assert_eq!(
        (&ran["data"]["decided"], &undecided["id"]),
        (&0.into(), &"87.1".into()),
        "{ran}"
    );
    let args = ["work", "--decide", "--until-idle"];
    let mut command = now(&env, &args);
    command.current_dir(&b);
    let told = env.run(command, &args, None).success().stdout;
    let none = "no piece of work was done, no decision\nnot decided: 87.1 ";
    assert!(told.starts_with(none), "{told}");
}

#[test]
fn a_clone_that_fetched_the_ledger_and_does_not_share_it_is_told() {
    let (env, origin, _) = two();
    let copy = clone(&env, origin.to_str().unwrap(), "copy");
    env.git(&copy, &["fetch", "-q", "origin", "handoffs:handoffs"]);
    env.handoff_in(&copy, &["claim", "87.1", "--as", "prep-agent"])
        .success()
        .says("`git handoff init --remote origin` shares the ledger");
}

#[test]
fn a_ledger_that_was_rewritten_is_an_alert() {
    let (env, origin, [a, _]) = two();
    env.handoff_in(&a, &["alerts"]).success();
    env.git(
        &origin,
        &["update-ref", "refs/heads/handoffs", "handoffs~1"],
    );
    let alerts = env.handoff_in(&a, &["alerts"]).exits(1);
    alerts.says("the remote's branch was rewritten: `git handoff fetch` says more");
    let document = env.handoff_in(&a, &["alerts", "--json"]).exits(1).json();
    let message = document["error"]["message"].as_str().unwrap();
    assert!(message.contains("rewritten"), "{document}");
    env.handoff_in(&a, &["alerts", "--offline"]).success();
}

/// What ends the review of issue 7.
const DONE: [&str; 11] = [
    "send",
    "--as",
    "reviewer",
    "--to",
    "end",
    "--set",
    "summary=Done",
    "--issue",
    "7",
    "--worker",
    "w",
];

/// Two clones of a remote; in the first, a reviewer holds work on the branch `csv`.
fn in_review() -> (TestEnvironment, PathBuf, [PathBuf; 2]) {
    let env = TestEnvironment::with_repository();
    let origin = bare(&env, "origin.git");
    let address = origin.to_str().unwrap().to_owned();
    env.git(&env.repo(), &["push", "-q", &address, "HEAD:main"]);
    let [a, b] = ["a", "b"].map(|name| clone(&env, &address, name));
    let init = ["init", "--remote", "origin", "--protocol", "review"];
    env.handoff_in(&a, &init).success();
    env.git(&a, &["switch", "-q", "-c", "csv"]);
    let work = ["commit", "-q", "--allow-empty", "-m", "Work"];
    env.git(&a, &work);
    let sent = "send --as coder --to reviewer --issue 7 --set branch=csv --set summary=Done";
    let sent: Vec<&str> = sent.split(' ').collect();
    env.handoff_in(&a, &sent).success();
    let claim = ["claim", "7", "--as", "reviewer", "--worker", "w"];
    env.handoff_in(&a, &claim).success();
    (env, origin, [a, b])
}

/// Who approves has the commit: where it is not here, it is fetched first.
#[test]
fn an_approval_is_of_a_commit_that_is_here() {
    let (env, _, [_, b]) = in_review();
    env.handoff_in(&b, &["init", "--remote", "origin"])
        .success();
    let approve = ["approve", "7.1", "--as", "maintainer"];
    for (command, exit) in [(&approve[..], 6), (&DONE, 3)] {
        env.handoff_in(&b, command)
            .exits(exit)
            .says("which this approves, is not here")
            .says("`git fetch origin csv`, and read it before you approve it");
    }
    env.git(&b, &["fetch", "-q", "origin", "csv"]);
    env.handoff_in(&b, &approve).success();
    env.handoff_in(&b, &DONE).success();
}

/// Runs a command in a clone.
fn on(env: &TestEnvironment, folder: &Path, line: &str) -> Ran {
    let words = words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    env.handoff_in(folder, &words)
}

/// Replaces the last commit of the branch that is checked out, here and on `origin`.
fn rewrite(env: &TestEnvironment, folder: &Path) {
    let amend = ["commit", "-q", "--amend", "--allow-empty", "-m", "Other"];
    env.git(folder, &amend);
    env.git(folder, &["push", "-q", "-f", "origin", "HEAD"]);
}

/// A branch that was rewritten after it was handed on: who reviews it sends it back, gets it anew,
/// and approves that.
#[test]
fn a_branch_that_was_rewritten_is_sent_back_and_handed_on_again() {
    let (env, _, [a, b]) = in_review();
    on(&env, &a, "release 7.1 --as reviewer --worker w --reason x").success();
    rewrite(&env, &a);
    on(&env, &b, "init --remote origin").success();
    env.git(&b, &["fetch", "-q", "origin"]);
    let why = "without it: the branch was rewritten";
    let back = "git handoff send --issue 7 --to coder --as reviewer";
    let claimed = on(&env, &b, "claim 7.1 --as reviewer --worker w").success();
    let claimed = claimed.says(why).says(back).shown;
    assert!(!claimed.contains("git push origin"), "{claimed}");
    env.handoff_in(&b, &DONE)
        .exits(3)
        .says("which this approves, is not here: origin has csv at ")
        .says(why)
        .says(back);
    on(&env, &b, "approve 7.1 --as maintainer")
        .exits(6)
        .says(why)
        .says("git handoff approve 7.1 --as maintainer --head origin/csv");
    let found = "--worker w --set summary=Anew --set findings.0.text=rewritten";
    on(&env, &b, &format!("{} {found}", &back[12..])).success();
    on(&env, &a, "claim 7.2 --as coder")
        .success()
        .says("go on from there: what you send is about it as it is now");
    let again = "--set summary=Again --set findings.0.finding=F1 --set findings.0.text=pushed";
    let again = format!("send --issue 7 --to reviewer --as coder {again}");
    on(&env, &a, &again).success();
    env.git(&b, &["fetch", "-q", "origin"]);
    let claimed = on(&env, &b, "claim 7.3 --as reviewer --worker w").success();
    assert!(!claimed.shown.contains(why), "{}", claimed.shown);
    env.handoff_in(&b, &DONE).success();
    on(&env, &b, "gate 7").success();
}

/// The same where somebody else fixes what a reviewer found.
#[test]
fn a_rewritten_branch_goes_to_who_fixes_what_is_found() {
    let (env, _, [a, b]) = two();
    on(&env, &a, "protocol set issue-to-pr evidence enforce").success();
    env.git(&a, &["switch", "-q", "-c", "handoff/87"]);
    on(&env, &a, "claim 87.1 --as prep-agent").success();
    let prepared = PREPARED.replace("$GIT_HANDOFF_BRANCH", "handoff/87");
    on(&env, &a, &format!("send --as prep-agent {prepared}")).success();
    on(&env, &a, "claim 87.2 --as implementer-agent").success();
    env.git(&a, &["commit", "-q", "--allow-empty", "-m", "Work"]);
    on(
        &env,
        &a,
        &format!("send --as implementer-agent {IMPLEMENTED}"),
    )
    .success();
    rewrite(&env, &a);
    env.git(&b, &["fetch", "-q", "origin"]);
    let back = "git handoff send --issue 87 --to fixer-agent --as reviewer-agent";
    on(&env, &b, "claim 87.3 --as reviewer-agent")
        .success()
        .says(back);
    let approve = "send --issue 87 --to validator-agent --as reviewer-agent --set summary=ok";
    on(&env, &b, approve).exits(3).says(back);
    let found = "--set critical_count=1 --set important_count=0 --set suggestion_count=0 \
         --set blocking_issues.0.severity=critical \
         --set blocking_issues.0.location=handoff/87 --set blocking_issues.0.description=rewritten";
    on(&env, &b, &format!("{} {found}", &back[12..])).success();
    on(&env, &a, "claim 87.4 --as fixer-agent").success();
    env.git(&a, &["commit", "-q", "--allow-empty", "-m", "Fix"]);
    let fixed = "--set fixes_applied.0.finding=F1 --set fixes_applied.0.location=handoff/87 \
         --set fixes_applied.0.description=pushed";
    let fixed = format!("send --issue 87 --to reviewer-agent --as fixer-agent {fixed}");
    on(&env, &a, &fixed).success();
    env.git(&b, &["fetch", "-q", "origin"]);
    on(&env, &b, "claim 87.5 --as reviewer-agent").success();
    on(&env, &b, approve).success();
}

/// What another clone forged, or what the remote can't be asked about, opens no gate.
#[test]
fn the_gate_trusts_neither_forged_steps_nor_an_old_copy() {
    let (env, origin, [a, b]) = in_review();
    env.handoff_in(&a, &DONE).success();
    env.handoff_in(&a, &["gate", "7"]).success();

    // A clone without this program replaces the approved commit, in each record.
    let good = env.git(&a, &["rev-parse", "csv"]);
    env.git(&a, &["switch", "-q", "-c", "evil"]);
    env.git(&a, &["commit", "-q", "--allow-empty", "-m", "Evil"]);
    env.git(&a, &["push", "-q", "origin", "evil"]);
    let evil = env.git(&a, &["rev-parse", "evil"]);
    let sound = env.git(&b, &["ls-remote", "origin", "refs/heads/handoffs"]);
    let sound = sound.split('\t').next().unwrap();
    env.git(&b, &["fetch", "-q", "origin", "handoffs:handoffs"]);
    env.git(&b, &["checkout", "-q", "handoffs"]);
    let files = env.git(&b, &["grep", "-l", good.trim(), "--", "issues"]);
    assert!(files.lines().count() > 1, "{files}");
    for file in files.lines() {
        let path = b.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace(good.trim(), evil.trim())).unwrap();
    }
    env.git(&b, &["commit", "-q", "--no-verify", "-a", "-m", "Tidy"]);
    env.git(&b, &["push", "-q", "origin", "handoffs"]);
    for folder in [&a, &b] {
        for head in ["evil", "csv"] {
            let head = env.git(&a, &["rev-parse", head]);
            env.git(folder, &["fetch", "-q", "origin", "evil"]);
            env.handoff_in(folder, &["gate", "7", "--head", head.trim()])
                .exits(1)
                .says("✗ not sound: the ledger is damaged: ")
                .says("see `git handoff verify 7`");
        }
    }

    // The remote goes back: what is here continues it no more.
    let c = clone(&env, origin.to_str().unwrap(), "c");
    env.git(&origin, &["update-ref", "refs/heads/handoffs", sound]);
    env.handoff_in(&c, &["init", "--remote", "origin"])
        .success();
    env.handoff_in(&c, &["gate", "7"]).success();
    env.git(
        &origin,
        &["update-ref", "refs/heads/handoffs", "handoffs~1"],
    );
    env.handoff_in(&c, &["gate", "7"])
        .exits(1)
        .says("✗ not sound: what origin has now could not be read")
        .says("the remote's branch was rewritten");
    std::fs::rename(&origin, env.root().join("gone.git")).unwrap();
    env.handoff_in(&c, &["gate", "7"])
        .exits(1)
        .says("is out of reach")
        .says("`git handoff gate 7 --offline` judges by what is here");
    env.handoff_in(&c, &["gate", "7", "--offline"]).success();
}

/// What `send` fills in, it accepts, though the branch here is behind the remote's.
#[test]
fn a_clone_that_is_behind_is_told_so_and_sends_what_the_remote_has() {
    let (env, _, [a, b]) = two();
    let run = |dir: &Path, line: &str| {
        let args: Vec<&str> = line.split(' ').collect();
        env.handoff_in(dir, &args).success()
    };
    let prepared = "--to implementer-agent --as prep-agent --set branch=feature/87 --set port=3000 \
         --set workspace_type=worktree --set workspace_path=. --set dependencies=installed \
         --set build=passed --set dev_server=started";
    env.git(&a, &["switch", "-q", "-c", "feature/87"]);
    run(&a, "claim 87.1 --as prep-agent");
    run(&a, &format!("send --issue 87 {prepared}"));
    env.git(&b, &["fetch", "-q"]);
    env.git(&b, &["switch", "-q", "feature/87"]);
    run(&a, "claim 87.2 --as implementer-agent");
    env.git(&a, &["commit", "-q", "--allow-empty", "-m", "Work"]);
    run(&a, &format!("send --as implementer-agent {IMPLEMENTED}"));
    let merge = "`git switch feature/87` and `git merge --ff-only [commit]`";
    run(&b, "claim 87.3 --as reviewer-agent").says(merge);
    let approve = "send --issue 87 --to validator-agent --as reviewer-agent --set summary=fine";
    run(&b, approve).says(merge);
    // The merge is found by what the remote has, too.
    env.git(&a, &["switch", "-q", "main"]);
    env.git(
        &a,
        &["merge", "-q", "--no-ff", "-m", "Merged", "feature/87"],
    );
    env.git(&a, &["push", "-q", "origin", "main"]);
    env.git(&b, &["fetch", "-q", "origin", "main"]);
    run(&b, "claim 87.4 --as validator-agent");
    let merged = "send --issue 87 --to closer-agent --as validator-agent --set merge_strategy=merge \
         --set tests=passed --set coverage=90% --set lint=clean --set type_check=clean --set security=clean";
    run(&b, merged);
    let contract = env.handoff_in(&b, &["show", "87.5"]).success().stdout;
    let commit = env.git(&a, &["rev-parse", "main"]);
    assert!(contract.contains(commit.trim()), "{contract}");
}
