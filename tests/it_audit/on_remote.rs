//! In a shared ledger, others go on with what is on the remote: claims hold only if it is there.

use std::fs;

use insta::assert_snapshot;

use test_support::contracts::{Format, prepared, sample};
use test_support::remote::hook;

use crate::desk::{BRANCH, Desk, fixed, merged};
use crate::merges::{Merging, WAYS};

/// A desk whose ledger and main branch are shared through `origin`.
fn shared() -> Desk {
    shared_under("enforce")
}

fn shared_under(policy: &str) -> Desk {
    let desk = Desk::new(policy);
    desk.git(&["init", "-q", "--bare", "../origin.git"]);
    desk.git(&["remote", "add", "origin", "../origin.git"]);
    desk.git(&["push", "-q", "origin", "main"]);
    desk.env.handoff(&["init", "--remote", "origin"]).success();
    desk
}

#[test]
fn a_branch_and_its_commits_are_pushed_as_they_are_handed_on() {
    let desk = shared();
    let [first, second] = desk.work();
    let contract = desk.implemented(2, &[&first, &second]);
    let origin = desk.env.root().join("origin.git");
    hook(
        &origin,
        "update",
        "case $1 in refs/heads/enhancement/*) echo 'not this name'; exit 1;; esac",
    );
    let mut refused = desk.env.send(&contract).exits(3);
    for said in [
        "evidence.branch",
        "evidence.commits",
        "is only here, and can't be pushed",
        "a hook of the remote refused it: not this name",
        &format!("push it: `git push origin {BRANCH}`"),
    ] {
        refused = refused.says(said);
    }
    fs::remove_file(origin.join("hooks/update")).unwrap();
    let heads = desk.git(&["for-each-ref", "refs/heads", "refs/tags", "HEAD"]);
    // `check` pushes nothing, and says the same as `send`.
    desk.env.handoff_with(&["check", "-"], &contract).success();
    assert_eq!(desk.env.git(&origin, &["branch", "--list", BRANCH]), "");
    desk.env.send(&contract).success();
    assert_eq!(desk.env.git(&origin, &["rev-parse", BRANCH]).trim(), second);
    assert_eq!(
        desk.git(&["for-each-ref", "refs/heads", "refs/tags", "HEAD"])
            .lines()
            .count(),
        heads.lines().count()
    );
    assert_eq!(desk.check("87.3", "branch"), "passed");
    assert_eq!(desk.check("87.3", "commits"), "passed");
    desk.env.assert_sound();
}

#[test]
fn what_is_refused_pushes_nothing() {
    let desk = shared();
    let [first, _] = desk.work();
    let contract = desk.implemented(2, &[&first, "deadbeefdeadbeef"]);
    desk.env.send(contract).exits(3).says("evidence.commits");
    let origin = desk.env.root().join("origin.git");
    assert_eq!(desk.env.git(&origin, &["branch", "--list", BRANCH]), "");
}

#[test]
fn a_branch_is_pushed_wherever_it_is_checked_out() {
    let desk = Desk::new("warn");
    desk.git(&["init", "-q", "--bare", "../origin.git"]);
    desk.git(&["remote", "add", "origin", "../origin.git"]);
    desk.git(&["push", "-q", "origin", "main"]);
    desk.env.handoff(&["init", "--remote", "origin"]).success();
    desk.env.handoff(&["protocol", "add", "review"]).success();
    for (issue, branch, is_elsewhere) in [("601", "wip", false), ("602", "wip2", true)] {
        desk.git(&["branch", branch, "main"]);
        desk.commit(branch, &[(branch, "x\n")], branch);
        desk.git(&["checkout", "-q", "main"]);
        if is_elsewhere {
            desk.git(&["worktree", "add", "-q", "../other", branch]);
        }
        let set = format!("branch={branch}");
        let send = [
            "send",
            "--protocol",
            "review",
            "--issue",
            issue,
            "--to",
            "reviewer",
        ];
        let more = ["--as", "coder", "--set", &set, "--set", "summary=s"];
        let sent = desk.env.handoff(&[&send[..], &more].concat()).success();
        sent.says(&format!("  pushed {branch} to origin\n"));
        let origin = desk.env.root().join("origin.git");
        let there = desk.env.git(&origin, &["rev-parse", branch]);
        assert_eq!(there.trim(), desk.git(&["rev-parse", branch]));
    }
}

#[test]
fn a_merge_must_be_on_the_remote() {
    let desk = shared();
    let [first, second] = desk.work();
    desk.git(&["push", "-q", "origin", BRANCH]);
    desk.approved(&[&first, &second]);
    desk.git(&["checkout", "-q", "main"]);
    desk.git(&["merge", "-q", "--no-ff", "--no-edit", BRANCH]);
    let merge = desk.git(&["rev-parse", "HEAD"]);
    let contract = merged(&merge, "merge");
    let found = desk.refused(&contract, &["evidence.merge"]);
    assert_snapshot!(desk.env.filtered(&found.join("\n")), @r#"/handoff/merge_sha "[commit]" is only here: it is not on origin's "main""#);
    let sent = desk.env.send(&contract).exits(3);
    sent.says("push it: `git push origin main`");
    desk.git(&["push", "-q", "origin", "main"]);
    // What was merged is there, also without its branch.
    desk.git(&["push", "-q", "origin", "--delete", BRANCH]);
    desk.env.send(&contract).success();
    assert_eq!(desk.check("87.5", "merge"), "passed");
    desk.env.assert_sound();
}

/// Whatever the policy: a merge that lacks the work, or that only this clone has, is refused.
#[test]
fn a_false_merge_is_refused_where_contradictions_are_warnings() {
    let desk = shared_under("warn");
    let [first, second] = desk.work();
    desk.git(&["push", "-q", "origin", BRANCH]);
    desk.approved(&[&first, &second]);
    let root = desk.git(&["rev-parse", "main"]);
    for strategy in ["merge", "squash", "rebase"] {
        desk.env
            .send(merged(root.trim(), strategy))
            .exits(3)
            .says("it is the first commit of all");
    }
    desk.git(&["checkout", "-q", "main"]);
    desk.git(&["merge", "-q", "--no-ff", "--no-edit", BRANCH]);
    let merge = desk.git(&["rev-parse", "HEAD"]);
    desk.env
        .send(merged(merge.trim(), "merge"))
        .exits(3)
        .says("is only here: it is not on origin's \"main\"");
    desk.git(&["push", "-q", "origin", "main"]);
    desk.env.send(merged(merge.trim(), "squash")).success();
    assert!(desk.check("87.5", "merge").starts_with("contradicted"));
    let gate = ["gate", "87", "--require", "validated"];
    desk.env.handoff(&gate).success();
    desk.env.assert_sound();
}

#[test]
fn offline_what_the_remote_has_is_not_known() {
    let desk = shared();
    let [first, second] = desk.work();
    let contract = desk.implemented(2, &[&first, &second]);
    desk.env
        .handoff_with(&["send", "-", "--offline"], &contract)
        .exits(8);
    assert_snapshot!(desk.checks("87.3").join("\n"), @"
    branch skipped: whether origin has enhancement/87-csv-export as it is here is not known: it is out of reach
    commits skipped: whether origin has enhancement/87-csv-export as it is here is not known: it is out of reach
    files_changed passed
    tests_added skipped: no test report was given
    coverage skipped: no coverage report was given
    ");
}

#[test]
fn a_ledger_of_one_repository_asks_for_no_push() {
    let desk = Desk::new("enforce");
    desk.git(&["init", "-q", "--bare", "../origin.git"]);
    desk.git(&["remote", "add", "origin", "../origin.git"]);
    let [first, second] = desk.work();
    desk.env
        .send(desk.implemented(2, &[&first, &second]))
        .success();
    assert_eq!(desk.check("87.3", "branch"), "passed");
}

/// A shared desk, and the contract with which the implementer's commits, pushed or not, are handed on.
fn handed_on(policy: &str, pushes: bool) -> (Desk, String) {
    let desk = shared_under(policy);
    let [first, second] = desk.work();
    if pushes {
        desk.git(&["push", "-q", "origin", BRANCH]);
    }
    let contract = desk.implemented(2, &[&first, &second]);
    (desk, contract)
}

/// Changes a branch of the remote from elsewhere: this clone does not know of it.
fn elsewhere(desk: &Desk, args: &[&str]) {
    desk.env.git(&desk.env.root().join("origin.git"), args);
}

#[test]
fn what_is_fixed_is_pushed_under_warn_too_but_no_branch_of_somebody_else() {
    let (desk, contract) = handed_on("warn", false);
    desk.env
        .send(test_support::contracts::opening(88))
        .success();
    desk.env.claim("88.1", "prep-agent").success();
    desk.git(&["branch", "notes", BRANCH]);
    desk.git(&["checkout", "-q", "main"]);
    // In a run of `work`, an agent may name any branch; elsewhere, one that is named after another issue.
    let other = prepared(88).replace("enhancement/88-csv-export", "notes");
    let mut in_run = desk.env.program(&["send", "-"]);
    in_run.env("GIT_HANDOFF_RUN", "mark");
    let refused = desk
        .env
        .run(in_run, &["send", "-"], Some(other.as_bytes()))
        .exits(3);
    refused.says("push it: `git push origin notes`");
    let another = prepared(88).replace("enhancement/88-csv-export", BRANCH);
    let refused = desk.env.send(another).exits(3);
    refused.says(&format!("push it: `git push origin {BRANCH}`"));
    desk.env
        .send(&contract)
        .success()
        .says(&format!("  pushed {BRANCH} to origin\n"));
    desk.env.claim("87.3", "reviewer-agent").success();
    desk.env
        .send(sample("reviewer-agent-to-fixer-agent", Format::Xml, 87))
        .success();
    desk.env.claim("87.4", "fixer-agent").success();
    desk.commit(BRANCH, &[("src/export.py", "fixed\n")], "export: fix");
    desk.env.send(fixed(1)).success();
    let origin = desk.env.root().join("origin.git");
    let there = desk.env.git(&origin, &["rev-parse", BRANCH]);
    assert_eq!(there.trim(), desk.git(&["rev-parse", BRANCH]));
    desk.env.assert_sound();
}

#[test]
fn a_branch_that_the_remote_lost_or_rewrote_is_not_what_this_clone_knows() {
    let (desk, contract) = handed_on("warn", true);
    elsewhere(&desk, &["branch", "-D", BRANCH]);
    let sent = desk.env.send(&contract).exits(3);
    sent.says(&format!("is only here: origin has no branch \"{BRANCH}\""));
    elsewhere(&desk, &["branch", BRANCH, "main"]);
    let sent = desk.env.send(&contract).exits(3);
    sent.says(&format!("is only here: it is not on origin's \"{BRANCH}\""))
        .says(&format!("push it: `git push origin {BRANCH}`"));
    desk.git(&["push", "-q", "origin", BRANCH]);
    // Where origin's has others, a push would be rejected.
    desk.git(&[
        "push",
        "-q",
        "-f",
        "origin",
        &format!("{BRANCH}~1:{BRANCH}"),
    ]);
    desk.git(&["switch", "-q", "--detach", "main"]);
    desk.git(&["commit", "-q", "--allow-empty", "-m", "Other"]);
    desk.git(&["push", "-q", "-f", "origin", &format!("HEAD:{BRANCH}")]);
    desk.env
        .send(&contract)
        .exits(3)
        .says(&format!("`git rebase origin/{BRANCH} {BRANCH}`"));
    desk.git(&["push", "-q", "-f", "origin", BRANCH]);
    desk.env.send(&contract).success();
}

/// A branch that was rebased or amended here has all of origin's: onto that, it would be as before.
#[test]
fn a_branch_that_was_rewritten_here_is_pushed_in_place_of_the_former_one() {
    for (rewrite, keeps_log) in [
        (&["rebase", "-q", "main"][..], true),
        (&["rebase", "-q", "main"], false),
        (&["commit", "-q", "-a", "--amend", "-m", "Other"], true),
    ] {
        let (desk, _) = handed_on("warn", true);
        desk.commit("main", &[("docs.md", "text\n")], "Docs");
        desk.git(&["push", "-q", "origin", "main"]);
        desk.git(&["checkout", "-q", BRANCH]);
        fs::write(desk.env.repo().join("src/history.py"), "other\n").unwrap();
        if rewrite[0] == "rebase" {
            desk.git(&["commit", "-q", "-a", "-m", "Later"]);
        }
        desk.git(rewrite);
        if !keeps_log {
            desk.git(&["reflog", "expire", "--expire=all", "--all"]);
        }
        let push = format!("git push --force-with-lease origin {BRANCH}");
        let says = format!("the branch was rewritten here: `{push}`");
        let sent = desk.env.send(desk.done(2)).exits(3).says(&says);
        assert!(!sent.shown.contains("git rebase"), "{}", sent.shown);
        let status = desk.env.handoff(&["status"]).success();
        let status = status.says(&format!("of {BRANCH} not on origin: `{push}`\n"));
        assert!(
            !status.shown.contains("`git push origin"),
            "{}",
            status.shown
        );
        let push: Vec<&str> = push.split(' ').skip(1).collect();
        desk.git(&push);
        desk.env.send(desk.done(2)).success();
    }
}

#[test]
fn a_new_branch_without_commits_is_pushed_for_the_next_agent() {
    let desk = shared();
    desk.env
        .send(test_support::contracts::opening(88))
        .success();
    desk.env.claim("88.1", "prep-agent").success();
    let branch = "enhancement/88-csv-export";
    desk.git(&["branch", branch, "main"]);
    desk.env.send(prepared(88)).success();
    assert_eq!(desk.check("88.2", "branch"), "passed");
    let origin = desk.env.root().join("origin.git");
    desk.env.git(&origin, &["rev-parse", branch]);
}

#[test]
fn a_claim_says_that_the_commit_it_was_handed_on_with_is_gone() {
    let (desk, contract) = handed_on("warn", true);
    desk.env.send(&contract).success();
    elsewhere(&desk, &["branch", "-D", BRANCH]);
    let args = ["claim", "87.3", "--as", "reviewer-agent", "--json"];
    let claimed = desk.env.handoff(&args).success().json();
    let warning = &claimed["data"]["warnings"][0];
    assert_eq!(warning["code"], "code.missing", "{claimed}");
    let message = warning["message"].as_str().unwrap();
    assert!(
        message.ends_with(&format!("{BRANCH}\": origin has no branch {BRANCH}")),
        "{message}"
    );
}

/// Whoever lost its claim must not push what it did since over its successor's work.
#[test]
fn an_agent_is_told_to_push_only_what_was_handed_on() {
    let (desk, contract) = handed_on("warn", true);
    desk.env.send(&contract).success();
    desk.git(&["checkout", "-q", BRANCH]);
    desk.git(&["commit", "-q", "--allow-empty", "-m", "Later"]);
    let only_here = format!("1 commit of {BRANCH} not on origin");
    desk.env.handoff(&["status"]).success().says(&only_here);
    #[cfg(feature = "agents")]
    {
        let prime = ["prime", "--as", "fixer-agent"];
        let page = desk.env.handoff(&prime).success().stdout;
        assert!(!page.contains("git push"), "{page}");
    }
}

#[test]
fn a_gate_that_is_asked_for_no_commit_judges_only_one_that_the_remote_has() {
    let (desk, contract) = handed_on("warn", true);
    desk.env.send(&contract).success();
    desk.env.claim("87.3", "reviewer-agent").success();
    desk.env
        .send(sample("reviewer-agent-to-validator-agent", Format::Xml, 87))
        .success();
    desk.env.handoff(&["gate", "87"]).success();
    elsewhere(&desk, &["branch", "-D", BRANCH]);
    desk.git(&["fetch", "-q", "--prune", "origin"]);
    let closed = desk.env.handoff(&["gate", "87"]).exits(1).stdout;
    let why = format!("origin has no branch {BRANCH}: `git push origin {BRANCH}`");
    assert!(closed.contains(&why), "{closed}");
    desk.env
        .handoff(&["gate", "87", "--head", BRANCH])
        .success();
    let only_here =
        format!("issue 87: 2 commits of {BRANCH} not on origin: `git push origin {BRANCH}`\n");
    let told = |command: &str| {
        let shown = desk.env.handoff(&[command]).stdout;
        assert!(shown.contains(&only_here), "{shown}");
    };
    told("status");
    #[cfg(feature = "report")]
    told("alerts");
    #[cfg(feature = "agents")]
    desk.env.handoff(&["prime", "--as", "fixer-agent"]).success().says(&format!(
        "Handed on with issue 87, and not on origin, where whoever goes on gets it: git push origin {BRANCH}\n"
    ));
}

#[test]
fn other_lines_at_the_place_of_the_work_are_no_merge_of_it() {
    let desk = shared();
    let [first, second] = desk.work();
    desk.approved(&[&first, &second]);
    let other = [("src/export.py", "tabs\n"), ("src/history.py", "form\n")];
    desk.commit("main", &other, "Tabs");
    desk.git(&["push", "-q", "origin", "main"]);
    let next = desk.env.handoff(&["next", "87"]).success();
    assert!(!next.shown.contains("is merged"), "{}", next.shown);
    desk.git(&["branch", "-q", "-D", BRANCH]);
    desk.git(&["push", "-q", "origin", "--delete", BRANCH]);
    let gate = desk.env.handoff(&["gate", "87"]).exits(1);
    assert!(!gate.shown.contains("is merged"), "{}", gate.shown);
}

#[test]
fn a_merge_by_hand_that_no_step_reports_is_told() {
    let told = "is merged into main, and no step of issue 87 says so: `git handoff gate 87`";
    let fast_forward: Merging = |desk| desk.git(&["merge", "-q", "--ff-only", BRANCH]);
    for (way, merge) in WAYS.into_iter().chain([("fast-forward", fast_forward)]) {
        let desk = shared();
        let [first, second] = desk.work();
        desk.approved(&[&first, &second]);
        let tells = |tells: bool| {
            for view in ["status", "next"] {
                let shown = desk.env.handoff(&[view, "87"]).success().stderr;
                assert_eq!(shown.contains(told), tells, "{way}, {view}: {shown}");
            }
        };
        tells(false);
        desk.git(&["checkout", "-q", "main"]);
        merge(&desk);
        desk.git(&["push", "-q", "origin", "main"]);
        tells(true);
        desk.git(&["branch", "-q", "-D", BRANCH]);
        desk.git(&["push", "-q", "origin", "--delete", BRANCH]);
        tells(true);
        desk.env
            .handoff(&["gate", "87"])
            .success()
            .says("; it is merged into main");
        // What was committed there later was not approved, and is not asked for.
        desk.git(&["checkout", "-q", "-b", BRANCH, &second]);
        desk.git(&["commit", "-q", "--allow-empty", "-m", "Later"]);
        desk.env.handoff(&["gate", "87"]).success().says(&format!(
            "; it is merged into main; {BRANCH} has other commits here"
        ));
        desk.git(&["checkout", "-q", "main"]);
    }
}

#[test]
fn an_invented_merge_passes_no_gate_where_nothing_is_checked() {
    let desk = Desk::new("off");
    let [first, second] = desk.work();
    desk.approved(&[&first, &second]);
    desk.env
        .send(merged("1234567890123456789012345678901234567890", "squash"))
        .success();
    let gate = ["gate", "87", "--require", "validated"];
    let closed = desk.env.handoff(&gate).exits(1);
    assert!(
        closed.stdout.contains("commit 1234567890 is not on main"),
        "{}",
        closed.shown
    );
}

/// What a contract said that was cancelled is no longer known.
#[test]
fn a_cancelled_contract_contradicts_no_later_one() {
    let desk = Desk::new("off");
    let [first, second] = desk.work();
    desk.approved(&[&first, &second]);
    let wrong = "1234567890123456789012345678901234567890";
    desk.env.send(merged(wrong, "squash")).success();
    let by = ["cancel", "87.5", "--as", "validator-agent"];
    let cancel = [&by[..], &["--reason", "the wrong commit"]].concat();
    desk.env.handoff(&cancel).success();
    let right = "2345678901234567890123456789012345678901";
    desk.env.send(merged(right, "squash")).success();
    desk.env.assert_sound();
}
