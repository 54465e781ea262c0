//! What runs leave behind: worktrees and branches of ended issues, here and on the remote.

use test_support::agents::{PREPARED, agent, run_now, work_as};
use test_support::contracts::opening;
use test_support::{TestEnvironment, stored};

/// A clone whose prep-agents committed a file for issues 87 and 88; the first was cancelled since.
fn worked() -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    env.git(env.root(), &["init", "-q", "--bare", "origin.git"]);
    env.git(&env.repo(), &["remote", "add", "origin", "../origin.git"]);
    env.git(&env.repo(), &["push", "-q", "origin", "main"]);
    env.git(&env.repo(), &["remote", "set-head", "origin", "main"]);
    env.handoff(&["init", "--remote", "origin", "--evidence", "off"])
        .success();
    for issue in [87, 88] {
        env.send(opening(issue)).success();
    }
    let prepared = PREPARED.replace("87", "$GIT_HANDOFF_ISSUE");
    let text = format!(
        "echo $GIT_HANDOFF_ISSUE > work-$GIT_HANDOFF_ISSUE.txt\n\
         git add . && git commit -q -m \"Work on $GIT_HANDOFF_ISSUE\" && git handoff send {prepared}"
    );
    work_as(&env, "prep-agent", &agent(&env, &text), &["--until-idle"]).success();
    run_now(
        &env,
        &[
            "cancel",
            "--all",
            "87",
            "--as",
            "orchestrator",
            "--reason",
            "Not needed",
        ],
    )
    .success();
    env
}

fn branches(env: &TestEnvironment, here: &[&str]) -> Vec<String> {
    let listed = env.git(&env.repo(), here);
    let names = listed
        .lines()
        .filter_map(|line| line.split_once("refs/heads/"));
    names.map(|(_, name)| name.to_owned()).collect()
}

fn own(env: &TestEnvironment) -> Vec<String> {
    branches(env, &["for-each-ref", "refs/heads"])
}

fn theirs(env: &TestEnvironment) -> Vec<String> {
    branches(env, &["ls-remote", "--heads", "origin"])
}

#[test]
fn branches_of_ended_issues_go_once_something_else_has_their_commits() {
    let env = worked();
    let repo = env.repo();
    // Others' branches, some named as if they were an issue's.
    for name in ["handoff/99", "feature", "handoff/87.9x"] {
        env.git(&repo, &["branch", name]);
    }
    let before = env.git(&repo, &["for-each-ref", "refs/heads"]);
    let place = env.root().join("repo.worktrees/87");
    let listed = env
        .handoff(&["work", "--list", "--remote"])
        .success()
        .stdout;
    assert_eq!(
        listed,
        format!(
            "{}  issue 87, ended: nothing that is not elsewhere\n\
             {}  issue 88: nothing that is not elsewhere\n\
             branch origin/handoff/87  issue 87, ended: only here: commits that are not merged\n\
             remove one with what only it has: git handoff work --prune --discard 87 --remote\n",
            place.display(),
            place.with_file_name("88").display(),
        )
    );
    assert_eq!(env.git(&repo, &["for-each-ref", "refs/heads"]), before);

    // Its worktree goes first; the branch on the remote has what no other has.
    let pruned = env
        .handoff(&["work", "--prune", "--remote"])
        .success()
        .stdout;
    assert!(
        pruned.contains("\nbranch handoff/87  issue 87, ended: removed\nbranch origin/handoff/87  issue 87, ended: only here"),
        "{pruned}"
    );
    assert!(!own(&env).contains(&"handoff/87".to_owned()));
    for name in [
        "handoff/88",
        "handoff/99",
        "feature",
        "handoff/87.9x",
        "main",
    ] {
        assert!(own(&env).contains(&name.to_owned()), "{name}");
    }
    assert!(theirs(&env).contains(&"handoff/87".to_owned()));

    // Also where the clone knows no main branch there, and has this one checked out.
    env.git(&repo, &["remote", "set-head", "origin", "--delete"]);
    env.git(&repo, &["switch", "-q", "handoff/87"]);
    env.handoff(&["work", "--prune", "--remote"]).success();
    assert!(theirs(&env).contains(&"handoff/87".to_owned()));
    env.git(&repo, &["switch", "-q", "main"]);
    env.handoff(&["work", "--prune"]).success();
    env.git(&repo, &["remote", "set-head", "origin", "main"]);

    // Merged there by somebody else, it goes too.
    env.git(&repo, &["fetch", "-q", "origin"]);
    env.git(
        &repo,
        &["push", "-q", "origin", "origin/handoff/87:refs/heads/main"],
    );
    env.git(&repo, &["update-ref", "-d", "refs/remotes/origin/main"]);
    env.git(&repo, &["fetch", "-q", "origin"]);
    // A clone of what was empty knows no main branch there.
    env.git(&repo, &["remote", "set-head", "origin", "--delete"]);
    env.handoff(&["work", "--list", "--remote"])
        .success()
        .says("branch origin/handoff/87  issue 87, ended: nothing that is not elsewhere");
    env.handoff(&["work", "--prune"]).success();
    assert!(theirs(&env).contains(&"handoff/87".to_owned()), "unasked");
    let pruned = env.handoff(&["work", "--prune", "--remote", "--json"]);
    let data = &pruned.success().json()["data"];
    assert_eq!(
        data["branches"],
        serde_json::json!([{
            "name": "handoff/87", "remote": "origin", "issue": "87", "only_here": false,
            "removed": true, "trouble": null
        }])
    );
    assert_eq!(theirs(&env).len(), 3, "main, the ledger, and 88");
    env.assert_sound();
}

#[test]
fn a_worker_removes_its_own_branch_of_an_ended_issue() {
    let env = worked();
    env.git(&env.repo(), &["branch", "handoff/87.1-mine"]);
    work_as(
        &env,
        "prep-agent",
        &agent(&env, "exit 1"),
        &["--until-idle"],
    )
    .success();
    assert!(!env.root().join("repo.worktrees/87").exists());
    let own = own(&env);
    assert!(!own.contains(&"handoff/87".to_owned()), "{own:?}");
    for name in ["handoff/87.1-mine", "handoff/88"] {
        assert!(own.contains(&name.to_owned()), "{own:?}");
    }
    assert!(theirs(&env).contains(&"handoff/87".to_owned()));
}

#[test]
fn a_branch_with_commits_of_its_own_stays_unless_it_is_discarded() {
    let env = worked();
    let repo = env.repo();
    env.git(&repo, &["push", "-q", "origin", ":handoff/87"]);
    work_as(
        &env,
        "prep-agent",
        &agent(&env, "exit 1"),
        &["--until-idle"],
    )
    .success();
    assert!(own(&env).contains(&"handoff/87".to_owned()));
    let pruned = env.handoff(&["work", "--prune"]).success().stdout;
    assert!(
        pruned.contains(
            "branch handoff/87  issue 87, ended: only here: commits that no other branch has\n"
        ),
        "{pruned}"
    );
    // What a person has checked out is not theirs to remove.
    env.git(&repo, &["switch", "-q", "handoff/87"]);
    env.handoff(&["work", "--prune", "--discard", "87"])
        .success();
    assert!(own(&env).contains(&"handoff/87".to_owned()));
    env.git(&repo, &["switch", "-q", "main"]);
    env.handoff(&["work", "--prune", "--discard", "87"])
        .success();
    assert!(!own(&env).contains(&"handoff/87".to_owned()));
    assert!(own(&env).contains(&"handoff/88".to_owned()));
    assert_eq!(stored(&env.data(&["show", "88.2"]))["state"], "pending");
}

#[test]
fn without_a_remote_its_branches_can_not_be_asked_for() {
    let env = TestEnvironment::with_repository();
    env.handoff(&["init"]).success();
    let ran = env.handoff(&["work", "--prune", "--remote"]);
    assert_eq!(ran.status, 2);
    assert!(
        ran.stderr.contains("git remote add origin"),
        "{}",
        ran.stderr
    );
}
