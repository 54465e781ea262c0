//! Work is held by a worker: of several that act as one agent, exactly the holder can go on. Here
//! no worker is named unless a test does so: each working tree has an id of its own.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::contracts::{opening, prepared};
use test_support::hooks;
use test_support::team::with_protocol;
use test_support::{Ran, TestEnvironment, stored};

use crate::clones::Clones;

/// Runs the program in a folder, with nothing that names its worker.
fn run(env: &TestEnvironment, folder: &Path, args: &[&str], input: Option<&str>) -> Ran {
    let mut command = env.program(args);
    command.current_dir(folder).env_remove("GIT_HANDOFF_WORKER");
    env.run(command, args, input.map(str::as_bytes))
}

fn line(env: &TestEnvironment, folder: &Path, line: &str) -> Ran {
    let args: Vec<&str> = line.split(' ').collect();
    run(env, folder, &args, None)
}

/// The id that a working tree keeps, as git finds its own directory.
fn own_id(env: &TestEnvironment, folder: &Path) -> String {
    let dir = env.git(folder, &["rev-parse", "--absolute-git-dir"]);
    let file = Path::new(dir.trim()).join("handoff/worker");
    fs::read_to_string(file).unwrap().trim().to_owned()
}

/// Every act of a holder in a folder is refused, with this code and exit 5, and leaves no trace.
#[track_caller]
fn all_refused(env: &TestEnvironment, folder: &Path, code: &str, says: &[&str]) {
    let tip = || env.git(folder, &["rev-parse", "handoffs"]);
    let before = tip();
    for act in [
        "complete 87.1 --as prep-agent --json",
        "fail 87.1 --as prep-agent --message no --json",
        "block 87.1 --as prep-agent --reason which? --json",
        "extend 87.1 --as prep-agent --json",
        "send - --as prep-agent --json",
    ] {
        let args: Vec<&str> = act.split(' ').collect();
        let input = act.starts_with("send").then(|| prepared(87));
        let ran = run(env, folder, &args, input.as_deref()).exits(5);
        let error = ran.json()["error"].take();
        assert_eq!(error["code"], code, "{act}: {error}");
        let message = error["message"].as_str().unwrap();
        for text in says {
            assert!(message.contains(text), "{act}: no {text:?} in {message}");
        }
    }
    assert_eq!(tip(), before, "a refusal writes nothing");
}

#[test]
fn of_two_clones_that_act_as_one_agent_only_the_holder_goes_on() {
    let clones = Clones::new();
    let (env, repo, other) = (&clones.env, clones.env.repo(), &clones.other);
    run(env, &repo, &["send", "-"], Some(&opening(87))).success();
    line(env, &repo, "claim 87.1 --as prep-agent").success();
    let (mine, theirs) = (own_id(env, &repo), "claim 87.1 --as prep-agent --json");
    let refused = line(env, other, theirs).exits(5).json()["error"].take();
    assert_eq!(refused["code"], "already_claimed");
    assert!(refused["message"].as_str().unwrap().contains(&mine));
    assert_ne!(mine, own_id(env, other));
    let says = [&*mine, "since 2026-", "until 2026-"];
    all_refused(env, other, "held_by_worker", &says);

    // Each page says who holds it.
    let page = line(env, &repo, "prime --as prep-agent").success();
    assert!(page.stdout.contains("You hold:"), "{}", page.shown);
    let page = line(env, other, "prime --as prep-agent --json").success();
    let data = page.json()["data"].take();
    assert_eq!(data["holds"]["count"], 0);
    assert_eq!(data["held_by_others"]["first"][0]["worker"], *mine);
    for reads in ["show 87.1", "status 87", "status"] {
        line(env, other, reads).success().says(&mine);
    }

    // What one holds can be claimed again; nothing is written.
    let before = clones.tip(&repo);
    line(env, &repo, "claim 87.1 --as prep-agent")
        .success()
        .says("you already hold it since");
    assert_eq!(clones.tip(&repo), before);
    run(env, &repo, &["send", "-"], Some(&prepared(87))).success();
    clones.assert_sound(&repo);
}

#[test]
fn what_is_printed_runs_in_another_worktree_of_the_same_worker() {
    let env = TestEnvironment::with_ledger();
    let (repo, linked) = (env.repo(), env.root().join("linked"));
    env.git(&repo, &["worktree", "add", "-q", "../linked"]);
    run(&env, &repo, &["send", "-"], Some(&opening(87))).success();
    let claim = line(&env, &repo, "claim 87.1 --as prep-agent").success();
    let mine = own_id(&env, &repo);
    claim.says(&format!(
        "git handoff block 87.1 --as prep-agent --reason WHAT --worker {mine}"
    ));
    line(&env, &linked, "claim 87.1 --as prep-agent").exits(5);
    assert_ne!(mine, own_id(&env, &linked));
    all_refused(&env, &linked, "held_by_worker", &[&mine]);

    // The page's command, with a value for each mark.
    env.git(&linked, &["checkout", "-qb", "issue-87"]);
    let page = line(&env, &repo, "prime --as prep-agent --json").success();
    let commands = page.json()["data"]["commands"].take();
    let mut send = commands[1].as_str().unwrap().to_owned();
    assert!(send.contains(&format!(" --worker {mine}")), "{send}");
    while let Some((before, rest)) = send.split_once("{{fill") {
        let (about, after) = rest.split_once("}}").unwrap();
        let value = match about {
            about if about.contains("port") => "8080",
            about if about.contains("worktree") => "worktree",
            _ => "issue-87",
        };
        send = format!("{before}{value}{after}");
    }
    let send = send.replace('\'', "");
    let send = send.strip_prefix("git handoff ").unwrap();
    line(&env, &linked, send).success();
    env.assert_sound();

    // A worker that the configuration names is known in every worktree.
    env.git(&repo, &["config", "handoff.worker", "desk:7/a@b"]);
    let claim = line(&env, &repo, "claim 87.2 --as implementer-agent").success();
    assert!(!claim.shown.contains("--worker"), "{}", claim.shown);
    line(&env, &linked, "complete 87.2 --as implementer-agent").success();
    env.assert_sound();
}

#[test]
fn two_first_commands_of_a_working_tree_agree_on_its_worker() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    run(&env, &repo, &["send", "-"], Some(&opening(87))).success();
    fs::remove_file(repo.join(".git/handoff/worker")).unwrap();
    // Reading gives it none.
    line(&env, &repo, "prime --as prep-agent").success();
    line(&env, &repo, "next 87").success();
    assert!(!repo.join(".git/handoff/worker").exists());
    let start = || {
        let mut command = env.program(&["claim", "87.1", "--as", "prep-agent"]);
        command.env_remove("GIT_HANDOFF_WORKER");
        command.stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let all: Vec<_> = (0..4).map(|_| start()).collect();
    for mut child in all {
        assert!(child.wait().unwrap().success());
    }
    let folder = fs::read_dir(repo.join(".git/handoff")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name());
    let left = names.filter(|name| name.to_str().unwrap().starts_with("worker"));
    assert_eq!(left.count(), 1, "nothing is left over");
    env.assert_sound();
}

#[test]
fn a_claim_that_sync_refused_is_held_no_more() {
    let clones = Clones::new();
    let (env, repo, other) = (&clones.env, clones.env.repo(), &clones.other);
    run(env, &repo, &["send", "-"], Some(&opening(87))).success();
    line(env, other, "sync").success();
    clones.take_away();
    line(env, other, "claim 87.1 --as prep-agent --offline").exits(8);
    for page in ["prime --as prep-agent", "show 87.1"] {
        line(env, other, page)
            .success()
            .says("claimed here offline; origin does not have it yet: git handoff sync");
    }
    clones.bring_back();
    line(env, &repo, "claim 87.1 --as prep-agent").success();
    line(env, other, "sync").exits(5);
    let page = line(env, other, "prime --as prep-agent --json").success();
    assert_eq!(page.json()["data"]["holds"]["count"], 0);
    let mine = own_id(env, &repo);
    let shown = line(env, other, "show 87.1").success().says(&mine);
    assert!(!shown.shown.contains("offline"), "{}", shown.shown);
    all_refused(env, other, "held_by_worker", &[&mine]);
    run(env, &repo, &["send", "-"], Some(&prepared(87))).success();
    clones.assert_sound(&repo);
}

#[test]
fn a_crashed_worker_that_comes_back_overrules_nobody() {
    let clones = Clones::new();
    let (env, repo, other) = (&clones.env, clones.env.repo(), &clones.other);
    run(env, &repo, &["send", "-"], Some(&opening(87))).success();
    line(env, &repo, "claim 87.1 --as prep-agent --lease 10m").success();
    env.wait_minutes(10);
    line(env, other, "retry 87.1 --as orchestrator").success();
    line(env, &repo, "sync").success();
    all_refused(env, &repo, "lease_lost", &["its lease ran out"]);
    line(env, other, "claim 87.1 --as prep-agent").success();
    let theirs = own_id(env, other);
    line(env, &repo, "sync").success();
    all_refused(env, &repo, "held_by_worker", &[&theirs]);
    run(env, other, &["send", "-"], Some(&prepared(87))).success();
    // Once that is sent on, the same contract is a repetition, and another one comes too late.
    let late = prepared(87).replace("</status>", " </status>");
    run(
        env,
        &repo,
        &["send", "-", "--as", "prep-agent"],
        Some(&prepared(87)),
    )
    .success();
    assert_ne!(run(env, &repo, &["send", "-"], Some(&late)).status, 0);
    clones.assert_sound(other);
}

#[test]
fn a_takeover_is_on_record_and_fences_off_the_old_worker() {
    let clones = Clones::new();
    let (env, repo, other) = (&clones.env, clones.env.repo(), &clones.other);
    run(env, &repo, &["send", "-"], Some(&opening(87))).success();
    line(env, &repo, "claim 87.1 --as prep-agent").success();
    let take = |folder: &Path, why: &str| {
        let claim = ["claim", "87.1", "--as", "prep-agent", "--take-over"];
        run(
            env,
            folder,
            &[&claim[..], &["--reason", why]].concat(),
            None,
        )
    };
    // One's own claim, and none at all.
    take(&repo, "it hangs")
        .exits(5)
        .says("itself has held 87.1 since");
    line(env, other, "claim 87.1 --as prep-agent --take-over").exits(2);
    take(other, " ").exits(2);
    take(other, "that machine is gone")
        .success()
        .says("token 2");
    let (mine, theirs) = (own_id(env, &repo), own_id(env, other));
    line(env, &repo, "sync").success();
    // Both find it, and why, where they look for their work.
    for folder in [repo.as_path(), other.as_path()] {
        for view in ["inbox", "prime"] {
            let told = line(env, folder, &format!("{view} --as prep-agent")).success();
            let shown = told.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(shown.contains("taken over"), "{}", told.shown);
            assert!(shown.contains("that machine is gone"), "{}", told.shown);
            assert!(shown.contains(&theirs), "{}", told.shown);
        }
    }
    let says = [&*theirs, "\"that machine is gone\""];
    all_refused(env, &repo, "held_by_worker", &says);
    let shown = line(env, &repo, "show 87.1 --json").success();
    let record = stored(&shown.json()["data"]);
    let last = record["transitions"].as_array().unwrap().last().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    assert_eq!(text(&last["event"]), "take_over");
    assert_eq!(text(&last["reason"]), "that machine is gone");
    assert_eq!(text(&last["worker"]), theirs);
    assert_eq!(text(&record["transitions"][1]["worker"]), mine);
    assert_eq!(
        (&record["lease"]["token"], &record["attempt"]),
        (&2.into(), &1.into())
    );
    // The one that took over goes on; the other is told who did, also afterwards.
    run(
        env,
        other,
        &["complete", "87.1", "--as", "prep-agent"],
        None,
    )
    .success();
    line(env, &repo, "sync").success();
    let late = line(env, &repo, "complete 87.1 --as prep-agent").exits(5);
    late.says(&theirs).says("that machine is gone");
    let nothing = take(&repo, "and back").exits(4);
    nothing.says("`take_over` is not possible");
    clones.assert_sound(&repo);
}

/// Rewrites the newest commit of the ledger: another worker made the step.
fn forge(env: &TestEnvironment, repo: &Path, from: &str, to: &str) {
    let worktree: PathBuf = env.root().join("forgery");
    let path = worktree.to_str().unwrap();
    env.git(
        repo,
        &["worktree", "add", "-q", "--detach", path, "handoffs"],
    );
    let record = worktree.join("issues/87/00/87/0001.json");
    let text = fs::read_to_string(&record).unwrap();
    let (start, end) = text.rsplit_once(from).unwrap();
    fs::write(&record, format!("{start}{to}{end}")).unwrap();
    // The message, too, as whoever forges a step would.
    let trailer = |json: &str| json.replace("\"worker\": ", "Worker: ").replace('"', "");
    let message = env.git(&worktree, &["log", "-1", "--format=%B"]);
    let message = message.replace(&trailer(from), &trailer(to));
    let amend = [
        "commit",
        "-q",
        "--amend",
        "--no-verify",
        "-a",
        "-m",
        &message,
    ];
    env.git(&worktree, &amend);
    let forged = env.git(&worktree, &["rev-parse", "HEAD"]);
    env.git(repo, &["worktree", "remove", "--force", path]);
    env.git(repo, &["update-ref", "refs/heads/handoffs", forged.trim()]);
}

#[test]
fn a_commit_in_which_another_worker_goes_on_is_found_and_refused() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    let bare = hooks::server(&env, &["pre-receive"]);
    env.send(opening(87)).success();
    env.handoff(&["claim", "87.1", "--as", "prep-agent"])
        .success();
    env.git(&repo, &["push", "-q", "--no-verify", "origin", "handoffs"]);
    let sound = env.git(&bare, &["rev-parse", "handoffs"]);
    env.handoff(&["complete", "87.1", "--as", "prep-agent"])
        .success();
    forge(
        &env,
        &repo,
        "\"worker\": \"repo\"",
        "\"worker\": \"elsewhere\"",
    );
    let found = env.handoff(&["verify"]).exits(10);
    found
        .says("step.illegal")
        .says("87.1 is held by prep-agent (worker repo)");
    let push = ["push", "-q", "--no-verify", "origin", "handoffs"];
    let refused = env.git_any(&repo, &push);
    assert_eq!(refused.status, 1);
    assert!(
        refused.stderr.contains("step.illegal"),
        "{}",
        refused.stderr
    );
    assert_eq!(env.git(&bare, &["rev-parse", "handoffs"]), sound);
}

#[test]
fn a_worker_id_with_odd_characters_is_refused() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let before = env.tip();
    let long = "w".repeat(65);
    for bad in ["", "a b", "-w", "é", "a\nb", "a$b", &long] {
        let option = format!("--worker={bad}");
        env.handoff(&["claim", "87.1", "--as", "prep-agent", &option])
            .exits(2)
            .says("worker id");
    }
    let mut command = env.program(&["claim", "87.1", "--as", "prep-agent"]);
    command.env("GIT_HANDOFF_WORKER", "a b");
    env.run(command, &["claim"], None)
        .exits(2)
        .says("it comes from GIT_HANDOFF_WORKER");
    assert_eq!(env.tip(), before);
    // A file that somebody edited.
    let file = env.repo().join(".git/handoff/worker");
    fs::write(file, "a b\n").unwrap();
    line(&env, &env.repo(), "claim 87.1 --as prep-agent")
        .exits(9)
        .says("--worker ID");
    assert_eq!(env.tip(), before);
}

#[test]
fn an_empty_worker_id_is_refused_with_its_place() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    env.send(opening(87)).success();
    let claim = ["claim", "87.1", "--as", "prep-agent"];
    let named = [&claim[..], &["--worker", ""]].concat();
    run(&env, &repo, &named, None)
        .exits(2)
        .says("it comes from --worker");
    env.git(&repo, &["config", "handoff.worker", ""]);
    run(&env, &repo, &claim, None)
        .exits(2)
        .says("it comes from the configuration's handoff.worker");
}

#[test]
fn an_empty_variable_names_no_worker() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let args = ["claim", "87.1", "--as", "prep-agent", "--json"];
    let mut command = env.program(&args);
    command.env("GIT_HANDOFF_WORKER", "");
    let claimed = env.run(command, &args, None).success().json();
    assert_eq!(
        claimed["data"]["handoff"]["worker"],
        own_id(&env, &env.repo())
    );
}

/// The lines of both outputs that have this text.
fn lines_with(ran: &Ran, text: &str) -> Vec<String> {
    let all = ran.stdout.lines().chain(ran.stderr.lines());
    let found = all.filter(|line| line.contains(text));
    found.map(|line| line.trim().to_owned()).collect()
}

#[test]
fn a_hint_names_the_worker_so_that_its_command_runs_in_another_working_tree() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    let trees = ["second", "third"].map(|name| env.root().join(name));
    for tree in &trees {
        env.git(
            &repo,
            &["worktree", "add", "-q", "--detach", tree.to_str().unwrap()],
        );
    }
    run(&env, &repo, &["send", "-"], Some(&opening(87))).success();
    line(&env, &repo, "claim 87.1 --as prep-agent").success();
    let refused = line(&env, &trees[0], "claim 87.1 --as prep-agent").exits(5);
    let second = own_id(&env, &trees[0]);
    let next = format!("`git handoff claim --next --as prep-agent --worker {second}`");
    let over = format!("claim 87.1 --take-over --reason WHY --as prep-agent --worker {second}");
    for text in [&next, &format!("`git handoff {over}`")] {
        assert!(refused.stderr.contains(text), "{}", refused.shown);
    }
    // As it was printed, but elsewhere.
    let over = over.replace("WHY", "gone");
    let taken = line(&env, &trees[1], &format!("{over} --json")).success();
    assert_eq!(taken.json()["data"]["handoff"]["worker"], *second);
    // The old worker is told what only reads, and its own id where that matters.
    let own = own_id(&env, &repo);
    let refused = line(&env, &repo, "complete 87.1 --as prep-agent").exits(5);
    let shown = &refused.stderr;
    assert!(
        shown.contains("`git handoff show 87.1`"),
        "{}",
        refused.shown
    );
    assert!(
        shown.contains(&format!("--as prep-agent --worker {own}`")),
        "{}",
        refused.shown
    );
    // A worker that other working trees share is not repeated.
    env.git(&repo, &["config", "handoff.worker", "shared"]);
    let refused = line(&env, &repo, "complete 87.1 --as prep-agent").exits(5);
    assert!(!refused.stderr.contains("--worker"), "{}", refused.shown);
}

#[test]
fn what_was_claimed_before_its_workspace_was_made_is_sent_from_there() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    run(&env, &repo, &["send", "-"], Some(&opening(87))).success();
    let claimed = line(&env, &repo, "claim 87.1 --as prep-agent").success();
    let own = own_id(&env, &repo);
    let send = "git handoff send --issue 87 --to implementer-agent --as prep-agent";
    let printed = format!("{send} --set FIELD=VALUE… --worker {own}");
    assert!(claimed.stderr.contains(&printed), "{}", claimed.shown);
    // As do the other commands of that screen.
    let block = "git handoff block 87.1 --as prep-agent --reason WHAT";
    let stuck = format!("{block} --worker {own}, or: git handoff fail 87.1 ");
    assert!(claimed.stdout.contains(&stuck), "{}", claimed.shown);
    env.git(&repo, &["worktree", "add", "-q", "-b", "issue-87", "../ws"]);
    let workspace = env.root().join("ws");
    // Without it, another worker sends: the error has the whole command.
    let values = "--set validation.dependencies=ok --set validation.build=ok \
                  --set validation.dev_server=ok --set port=4000";
    let values = values.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = format!("{} {values}", &send["git handoff ".len()..]);
    let refused = line(&env, &workspace, &plain).exits(5);
    let again = format!("`git handoff {plain} --worker {own}`");
    assert!(refused.stderr.contains(&again), "{}", refused.shown);
    // The page of that working tree says it before it offers another issue.
    run(&env, &repo, &["send", "-"], Some(&opening(88))).success();
    let page = line(&env, &workspace, "prime --as prep-agent").success();
    let go_on = format!("go on as its worker: git handoff prime --as prep-agent --worker {own}");
    let (on, other) = (page.stdout.find(&go_on), page.stdout.find("claim 88.1"));
    assert!(on.is_some() && on < other, "{}", page.shown);
    line(&env, &workspace, &format!("{plain} --worker {own}")).success();
    // What names a wrong worker is repeated with the right one alone.
    line(&env, &repo, "claim 88.1 --as prep-agent").success();
    let named = "complete 88.1 --as prep-agent --worker other";
    line(&env, &repo, named).exits(5).says(&format!(
        "`git handoff complete 88.1 --as prep-agent --worker {own}`"
    ));
}

#[test]
fn each_list_of_what_comes_next_names_the_worker_of_who_asks() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    env.git(&repo, &["worktree", "add", "-q", "--detach", "../linked"]);
    run(&env, &repo, &["send", "-"], Some(&opening(87))).success();
    line(&env, &repo, "claim 87.1 --as prep-agent").success();
    let own = own_id(&env, &repo);
    line(&env, &repo, "complete 87.1 --as prep-agent").success();
    let next = "git handoff new --issue 87 --from prep-agent --to AGENT";
    let onward = line(&env, &repo, "next 87 --as orchestrator --json").success();
    let plain = onward.json()["data"]["attention"][0]["next"].take();
    assert!(plain.as_str().unwrap().starts_with(&next[..45]), "{plain}");
    assert!(!plain.as_str().unwrap().contains("--worker"), "{plain}");
    let whole = format!("{} --worker {own}", plain.as_str().unwrap());
    for view in ["next 87", "inbox", "status", "prime"] {
        let ran = line(&env, &repo, &format!("{view} --as prep-agent --json")).success();
        assert_eq!(ran.json()["data"]["attention"][0]["next"], *whole, "{view}");
        let ran = line(&env, &repo, &format!("{view} --as prep-agent")).success();
        assert!(
            !lines_with(&ran, &whole).is_empty(),
            "{view}: {}",
            ran.shown
        );
        let twice = format!("{whole} --worker");
        assert!(lines_with(&ran, &twice).is_empty(), "{view}: {}", ran.shown);
    }
    let waited = line(&env, &repo, "wait --inbox --as prep-agent --timeout 5s").success();
    assert_eq!(lines_with(&waited, "next: "), [format!("next: {whole}")]);
    run(&env, &repo, &["send", "-"], Some(&opening(88))).success();
    let waited = line(&env, &repo, "wait --inbox --as prep-agent --timeout 5s").success();
    let claim = format!("next: git handoff claim --next --as prep-agent --worker {own}");
    assert_eq!(lines_with(&waited, "next: "), [claim]);
}

#[test]
fn the_worker_of_the_only_working_tree_is_named_only_if_the_command_names_it() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    run(&env, &repo, &["send", "-"], Some(&opening(87))).success();
    line(&env, &repo, "claim 87.1 --as prep-agent").success();
    run(&env, &repo, &["send", "-"], Some(&prepared(87))).success();
    // Unlike prep-agent's, its contract tells of no workspace.
    let claim = line(&env, &repo, "claim 87.2 --as implementer-agent").success();
    let own = " --as implementer-agent";
    assert!(claim.stderr.contains(own), "{}", claim.shown);
    assert!(!claim.stderr.contains("--worker"), "{}", claim.shown);
    let named = format!(" --worker {}", own_id(&env, &repo));
    let extended = format!("extend --as implementer-agent{named}");
    let extended = line(&env, &repo, &extended).success();
    assert!(extended.stderr.contains(&named), "{}", extended.shown);
}

#[test]
fn an_agent_by_another_of_its_names_has_the_same_worker() {
    let env = with_protocol("directive");
    let repo = env.repo();
    env.git(&repo, &["worktree", "add", "-q", "--detach", "../linked"]);
    let contract = json!({
        "handoff_id": "research-1",
        "from_agent": "ResearchGPT",
        "to_agent": "DesignGPT",
        "timestamp": "2026-03-02T08:00:00Z",
        "status": "success",
        "produced_artifacts": [],
        "assumptions": [],
        "missing_inputs": [],
        "recommended_next_agent": "DesignGPT",
        "context_summary": "what the ferry needs",
        "kb_updates_proposed": false,
        "session_id": "ferry-71",
    });
    run(&env, &repo, &["send", "-"], Some(&contract.to_string())).success();
    let claimed = line(&env, &repo, "claim ferry-71.1 --as METAGPT --json").success();
    let option = format!(" --worker {}", own_id(&env, &repo));
    let next = claimed.json()["data"]["next"].take();
    let is_complete = |command: &Value| {
        let command = command.as_str().unwrap();
        command.contains(" --from MetaGPT ") && command.ends_with(&option)
    };
    assert!(next.as_array().unwrap().iter().all(is_complete), "{next}");
    line(&env, &repo, "prime --as METAGPT")
        .success()
        .says(&format!(
            "git handoff extend ferry-71.1 --as MetaGPT{option}"
        ));
}

#[test]
fn a_branch_that_was_named_goes_with_what_comes_next() {
    let env = TestEnvironment::with_repository();
    let repo = env.repo();
    line(&env, &repo, "init --branch work").success();
    env.git(&repo, &["config", "--unset", "handoff.branch"]);
    let sent = run(
        &env,
        &repo,
        &["send", "-", "--branch", "work"],
        Some(&opening(87)),
    );
    assert_eq!(
        lines_with(&sent, "next"),
        ["next, for prep-agent: git handoff claim 87.1 --as prep-agent --branch work"]
    );
    let refused = line(&env, &repo, "show 99.1 --branch work").exits(6);
    assert!(
        refused.stderr.contains("--branch work`"),
        "{}",
        refused.shown
    );
}

#[test]
fn a_retry_of_what_is_worked_on_says_who_holds_it_and_how_to_wait() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    line(&env, &env.repo(), "claim 87.1 --as prep-agent").success();
    let before = env.tip();
    for agent in ["prep-agent", "orchestrator"] {
        let args = ["retry", "87.1", "--as", agent, "--reason", "again"];
        run(&env, &env.repo(), &args, None)
            .exits(4)
            .says("an attempt is running: `git handoff show 87.1`")
            .says("`git handoff wait 87.1`");
    }
    assert_eq!(env.tip(), before);
}

#[test]
fn after_a_remote_was_renamed_each_command_says_how_to_go_on() {
    let clones = Clones::new();
    let (env, other) = (&clones.env, &clones.other);
    run(env, other, &["send", "-"], Some(&opening(87))).success();
    env.git(other, &["remote", "rename", "origin", "upstream"]);
    let command = "git config handoff.remote upstream";
    for view in [
        "status",
        "prime --as prep-agent",
        "inbox --as prep-agent",
        "next 87",
    ] {
        let ran = line(env, other, view).success();
        assert!(!lines_with(&ran, command).is_empty(), "{}", ran.shown);
    }
    for refused in ["claim 87.1 --as prep-agent", "sync", "fetch"] {
        line(env, other, refused)
            .exits(2)
            .says("handoff.remote")
            .says(command);
    }
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    env.git(other, &words);
    let ran = line(env, other, "claim 87.1 --as prep-agent").success();
    assert!(lines_with(&ran, "no remote").is_empty(), "{}", ran.shown);
    // With several, the program does not guess.
    env.git(other, &["remote", "add", "fork", "../elsewhere"]);
    env.git(other, &["config", "handoff.remote", "gone"]);
    line(env, other, "sync")
        .exits(2)
        .says("`git config handoff.remote NAME`")
        .says("`git remote -v`");
}

#[test]
fn a_ledger_of_an_earlier_version_is_refused_with_the_reason() {
    let env = TestEnvironment::with_ledger();
    let worktree = env.root().join("earlier");
    let path = worktree.to_str().unwrap();
    let repo = env.repo();
    env.git(
        &repo,
        &["worktree", "add", "-q", "--detach", path, "handoffs"],
    );
    let file = worktree.join("ledger.json");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"version\": 4"), "{text}");
    fs::write(&file, text.replace("\"version\": 4", "\"version\": 1")).unwrap();
    env.git(&worktree, &["commit", "-q", "--no-verify", "-am", "back"]);
    let earlier = env.git(&worktree, &["rev-parse", "HEAD"]);
    env.git(
        &repo,
        &["update-ref", "refs/heads/handoffs", earlier.trim()],
    );
    for command in [
        "status",
        "prime --as prep-agent",
        "claim --next --as prep-agent",
    ] {
        let ran = line(&env, &repo, command);
        assert_ne!(ran.status, 0, "{}", ran.shown);
        ran.says("ledger.json").says("version 1");
    }
}

#[cfg(feature = "mcp")]
#[test]
fn a_server_is_a_worker_of_its_own() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    env.send(opening(87)).success();
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"handoff_claim","arguments":{"id":"87.1","as":"prep-agent"}}}"#;
    let input = format!("{initialize}\n{call}\n");
    let served = run(&env, &repo, &["mcp"], Some(&input)).success();
    let shown = line(&env, &repo, "show 87.1 --json").success();
    let worker = shown.json()["data"]["handoff"]["worker"].take();
    let worker = worker.as_str().unwrap();
    assert!(worker.starts_with("mcp-"), "{worker}");
    assert!(
        served.stdout.contains(&format!("\"worker\":\"{worker}\"")),
        "{}",
        served.shown
    );
    all_refused(&env, &repo, "held_by_worker", &[worker]);
    line(
        &env,
        &repo,
        &format!("complete 87.1 --as prep-agent --worker {worker}"),
    )
    .success();
    env.assert_sound();
}

#[cfg(feature = "github")]
#[test]
fn a_workflow_run_is_the_worker_of_its_event() {
    let env = TestEnvironment::with_ledger();
    let person = json!({"login": "octocat", "type": "User"});
    let payload = json!({
        "action": "opened",
        "repository": {"id": 1, "full_name": "octo/parcels"},
        "sender": person,
        "issue": {
            "number": 12,
            "state": "open",
            "title": "Parcels are lost",
            "html_url": "https://github.com/octo/parcels/issues/12",
            "labels": [{"name": "bug"}, {"name": "priority: high"}],
            "body": "They are.\n\n### Requirements\n- [ ] no parcel is lost\n",
            "user": person,
            "author_association": "NONE",
        },
    });
    let file = env.file("event.json", payload.to_string());
    let args = ["github", "event", "--name", "issues", "--file", &file];
    let mut command = env.program(&args);
    command.env_remove("GIT_HANDOFF_WORKER");
    command
        .env("GITHUB_RUN_ID", "7")
        .env("GITHUB_RUN_ATTEMPT", "2");
    env.run(command, &args, None).success();
    let shown = line(&env, &env.repo(), "show 12.1 --json").success();
    let sent = shown.json()["data"]["record"]["transitions"][0].take();
    assert_eq!(sent["worker"], "github-run-7-2");
    env.assert_sound();
}
