//! The check on pull requests: one judgement, wherever it is shown, set as a status of the commit that it is about.

use std::collections::BTreeSet;
use std::fs;

use crate::github_rehearsal::{opened, said};
use crate::runner::api::Fault;
use crate::runner::{Event, Run, Runner, TOKEN, files, values};
use crate::yaml;
use serde_json::{Value, json};
use test_support::contracts::{Format, sample};
use test_support::{Ran, TestEnvironment};

/// The branch of the samples' code.
fn branch_of_sample() -> String {
    let contract = sample("prep-agent-to-implementer-agent", Format::Xml, 87);
    let branch = contract.split("<branch>").nth(1).unwrap();
    branch.split("</branch>").next().unwrap().to_owned()
}

/// A repository on the server, and a clone in which issue 87 waits for its review, in pull request 7.
pub(crate) struct Desk {
    pub(crate) runner: Runner,
    pub(crate) branch: String,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let branch = branch_of_sample();
        let desk = Self::implementing(&branch);
        desk.step("implementer-agent", "implementer-agent-to-reviewer-agent");
        desk
    }

    /// The same before it waits: nothing in the ledger names a pull request.
    fn implementing(branch: &str) -> Self {
        let runner = Runner::new(TestEnvironment::with_repository());
        let server = runner.server();
        let head = ["symbolic-ref", "HEAD", "refs/heads/main"];
        runner.env.git(&server, &head);
        let branch = branch.to_owned();
        let desk = Self { runner, branch };
        desk.commit("Base", &[("shared.txt", "a\nb\nc\nd\ne\n")]);
        desk.git(&["remote", "add", "origin", "../owner/desk"]);
        desk.git(&["push", "-q", "origin", "main"]);
        desk.env()
            .handoff(&["init", "--remote", "origin"])
            .success();
        desk.git(&["checkout", "-q", "-b", &desk.branch]);
        desk.commit("Work", &[("shared.txt", "A\nb\nc\nd\ne\n")]);
        desk.step("", "issue-manager-to-prep-agent");
        desk.step("prep-agent", "prep-agent-to-implementer-agent");
        desk
    }

    pub(crate) fn env(&self) -> &TestEnvironment {
        &self.runner.env
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.env().git(&self.env().repo(), args).trim().to_owned()
    }

    pub(crate) fn commit(&self, message: &str, files: &[(&str, &str)]) {
        for (path, text) in files {
            fs::write(self.env().repo().join(path), text).unwrap();
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn step(&self, agent: &str, contract: &str) {
        if !agent.is_empty() {
            self.env().claim("87", agent).success();
        }
        let contract = sample(contract, Format::Xml, 87)
            .replace("quayside/parcel-desk/pull/91", "owner/desk/pull/7")
            .replace("quayside/parcel-desk", "owner/desk")
            .replace(&branch_of_sample(), &self.branch)
            .replace("<pr_number>91<", "<pr_number>7<");
        self.env().send(contract).success();
    }

    pub(crate) fn approve(&self) {
        self.step("reviewer-agent", "reviewer-agent-to-validator-agent");
    }

    /// The base branch gets a commit on the server.
    fn base_moves(&self) {
        self.git(&["checkout", "-q", "main"]);
        self.commit("Others' work", &[("shared.txt", "a\nb\nc\nd\nE\n")]);
        self.git(&["push", "-q", "origin", "main"]);
        self.git(&["checkout", "-q", &self.branch]);
    }

    /// The pull request as it is on the server, once this has been pushed.
    pub(crate) fn pull_request(&self, number: u64, branch: &str, body: &str) -> Value {
        let to = format!("HEAD:refs/pull/{number}/head");
        self.git(&["push", "-q", "-f", "origin", &to]);
        let here = json!({ "id": 1, "full_name": "owner/desk" });
        json!({
            "number": number, "state": "open", "title": "x", "body": body, "draft": false, "merged": false,
            "merge_commit_sha": null, "labels": [], "author_association": "NONE",
            "html_url": format!("https://github.com/owner/desk/pull/{number}"),
            "user": { "login": "octocat", "type": "User" },
            "head": { "ref": branch, "sha": self.head(), "repo": here },
            "base": { "ref": "main", "sha": "2".repeat(40), "repo": here },
        })
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Pull request 7 changes, which starts the intake and the gate.
    pub(crate) fn pull(&self, action: &str, run: u32) {
        let described = self.pull_request(7, &self.branch, "Closes #87");
        let here = described["base"]["repo"].clone();
        let payload = json!({
            "action": action, "number": 7, "pull_request": described, "repository": here,
            "sender": { "login": "octocat", "type": "User" },
        });
        let event = Event::new("pull_request_target", run, payload);
        let intake = self.runner.run("handoff-intake.yml", &event);
        intake.job("record", "success");
        self.env().handoff(&["fetch"]).success();
    }

    /// Somebody starts the gate by hand.
    pub(crate) fn dispatch(&self, issue: &str) -> Run {
        let inputs = json!({ "inputs": { "issue": issue } });
        let event = Event::new("workflow_dispatch", 90, inputs);
        let run = self.runner.run("handoff-gate.yml", &event);
        run.job("gate", "success");
        run
    }

    /// Runs it as a step of a workflow.
    fn handoff(&self, args: &[&str]) -> Ran {
        let mut command = self.env().program(args);
        command
            .env("GITHUB_API_URL", self.runner.api.url())
            .env("GITHUB_REPOSITORY", "owner/desk")
            .env("GH_ENTERPRISE_TOKEN", TOKEN);
        self.env().run(command, args, None)
    }

    pub(crate) fn state(&self) -> String {
        self.runner.api.status(&self.head()).unwrap().0
    }

    /// Asserts that everything that shows whether pull request 7 may be merged says this.
    #[track_caller]
    fn agree(&self, passes: bool) {
        let state = if passes { "success" } else { "failure" };
        assert_eq!(self.state(), state);
        let mark = if passes {
            ": ✓ `approved`: "
        } else {
            ": ✗ not `approved`: "
        };
        let comments = self.runner.kept("comments.json");
        let comment = comments[0]["body"].as_str().unwrap();
        assert!(comment.contains(mark), "{comment}");
        let about = ["--pull-request", "7"];
        // For the commit that is known of it, without asking GitHub.
        for about in [&about[..], &[]] {
            let page = ["github", "summary", "87", "--output", "-"];
            let page = self.handoff(&[&page[..], about].concat()).success();
            assert!(page.stdout.contains(mark), "{}", page.shown);
            let short = &self.head()[..10];
            let title = format!("- Required of a merge of `{short}`: ");
            assert!(page.stdout.contains(&title), "{}", page.shown);
            assert!(comment.contains(&title), "{comment}");
            let output = ["github", "output", "87", "--output", "-"];
            let output = self.handoff(&[&output[..], about].concat()).success();
            let output = values(&output.stdout);
            assert_eq!(output["gate"], passes.to_string());
            assert_eq!(output["gate_head"], self.head());
            let gate = self.handoff(&[&["gate", "87"][..], about].concat());
            assert_eq!(gate.status == 0, passes, "{}", gate.shown);
        }
    }
}

#[test]
fn everything_says_the_same_through_a_push_after_the_approval() {
    let desk = Desk::new();
    desk.pull("opened", 1);
    desk.agree(false);
    // A step of an agent starts no workflow; it starts the gate.
    desk.approve();
    assert_eq!(desk.state(), "failure");
    desk.dispatch("87");
    assert_eq!(desk.state(), "success");
    desk.pull("edited", 2);
    desk.agree(true);
    // A commit that nobody approved.
    desk.env().wait_minutes(1);
    desk.commit("Late", &[("late.txt", "late\n")]);
    desk.pull("synchronize", 3);
    desk.agree(false);
    let late = desk.head();
    let (_, description) = desk.runner.api.status(&late).unwrap();
    assert!(
        description.starts_with("87 not approved: 87.4 "),
        "{description}"
    );
    assert!(description.chars().count() <= 140, "{description}");
    // It is taken back, and the base branch comes in place of it.
    desk.env().wait_minutes(1);
    desk.git(&["reset", "-q", "--hard", "HEAD~1"]);
    desk.base_moves();
    desk.git(&["merge", "-q", "--no-edit", "main"]);
    desk.pull("synchronize", 4);
    desk.agree(true);
    // The approval is taken back.
    let reject = ["reject", "87", "--as", "validator-agent", "--reason", "no"];
    desk.env().handoff(&reject).success();
    desk.dispatch("87");
    desk.pull("edited", 5);
    desk.agree(false);
    // What somebody else sets does not stay.
    let forged = json!({ "sha": desk.head(), "context": "handoff gate", "state": "success", "description": "ok" });
    desk.runner.api.is_set(forged);
    desk.dispatch("");
    desk.agree(false);
}

#[test]
fn two_ledgers_of_a_repository_share_no_status_comment_file_group_or_cache() {
    let desk = Desk::new();
    let (env, runner) = (desk.env(), &desk.runner);
    let folder = env.repo().join(".github");
    let shared = ["init", "--remote", "origin", "--github", "--github-agents"];
    env.handoff(&shared).success();
    let before = files(&folder);
    let other = [&["--branch", "crew/two"][..], &shared].concat();
    env.handoff(&other).success();
    let after = files(&folder);
    assert!(before.iter().all(|file| after.contains(file)));
    assert_eq!(after.len(), 2 * before.len());
    // What GitHub tells apart by a name has another one.
    let marks = [
        "name: handoff ",
        "name: \"handoff",
        "group: ",
        "keys: handoff",
        "key: handoff",
        "LEDGER: ",
        "POLICY: ",
        "\"context\": ",
        "\"name\": ",
        "label.name == ",
        "--label ",
    ];
    let names = |is_second: bool| {
        let own = after
            .iter()
            .filter(|(path, _)| path.to_str().unwrap().contains("-crew-two.") == is_second);
        let texts = own.map(|(_, text)| String::from_utf8(text.clone()).unwrap());
        let lines = texts.flat_map(|text| {
            text.lines()
                .map(|line| line.trim().to_owned())
                .collect::<Vec<_>>()
        });
        lines
            .filter(|line| marks.iter().any(|mark| line.contains(mark)))
            .collect::<BTreeSet<_>>()
    };
    let (usual, second) = (names(false), names(true));
    assert_eq!(usual.len(), second.len());
    assert!(usual.is_disjoint(&second), "{usual:#?}{second:#?}");
    // What the one judges opens nothing of the other.
    let file = |name: &str| yaml(&folder.join("workflows").join(name));
    let started = |name: &str, event: &Event| {
        let run = runner.run_workflow(&file(name), event);
        assert!(
            run.jobs.values().all(|result| result == "success"),
            "{}",
            run.log
        );
    };
    let described = desk.pull_request(7, &desk.branch, "Closes #87");
    runner.api.knows(&described);
    let by_hand = Event::new(
        "workflow_dispatch",
        90,
        json!({ "inputs": { "issue": "" } }),
    );
    let both = || {
        let state = |name: &str| runner.api.status_named(&desk.head(), name).unwrap().0;
        started("handoff-gate.yml", &by_hand);
        started("handoff-gate-crew-two.yml", &by_hand);
        (state("handoff gate"), state("handoff gate (crew/two)"))
    };
    env.handoff(&["--branch", "handoffs", "sync"]).success();
    assert_eq!(both(), ("failure".to_owned(), "failure".to_owned()));
    env.git(&env.repo(), &["config", "handoff.branch", "handoffs"]);
    desk.approve();
    assert_eq!(both(), ("success".to_owned(), "failure".to_owned()));
    // Each has its own comment and reply, and writes none of the other's.
    for name in ["handoff-intake.yml", "handoff-intake-crew-two.yml"] {
        for run in [1, 2] {
            started(name, &opened(87, run));
            started(name, &said(runner, 31, "/handoff cancle"));
        }
    }
    let comments = runner.kept("comments.json");
    let lines = comments.as_array().unwrap().iter();
    let mut lines: Vec<&str> = lines
        .map(|one| one["body"].as_str().unwrap().lines().next().unwrap())
        .collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "<!-- git-handoff-reply:comment-31 -->",
            "<!-- git-handoff-reply:comment-31@crew-two -->",
            "<!-- git-handoff:87 -->",
            "<!-- git-handoff:87 -->",
            "<!-- git-handoff:87@crew-two -->",
        ]
    );
    // A ledger's files are its own to remove, and another's in their place are not written over.
    env.handoff(&["--branch", "crew/two", "uninstall"])
        .success();
    assert_eq!(files(&folder), before);
    fs::write(
        folder.join("workflows/handoff-gate-crew-two.yml"),
        "name: \"handoff gate (crew-two)\"\n",
    )
    .unwrap();
    env.handoff(&other)
        .says("handoff-gate-crew-two.yml is there already, and is another file");
}

#[test]
fn an_issue_that_only_github_links_is_told_gated_and_commented() {
    let desk = Desk::implementing("export");
    let (api, runner) = (&desk.runner.api, &desk.runner);
    // Neither its text nor its branch names issue 87.
    let changing = |branch: &str, action: &str, run: u32, result: &str| {
        let described = desk.pull_request(7, branch, "It exports; see the sidebar");
        let payload = json!({
            "action": action, "number": 7, "pull_request": described,
            "repository": described["base"]["repo"], "sender": { "login": "octocat", "type": "User" },
        });
        let event = Event::new("pull_request_target", run, payload);
        let intake = runner.run("handoff-intake.yml", &event);
        intake.job("record", result);
        desk.env().handoff(&["fetch"]).success();
        intake
    };
    let changed = |branch: &str, action: &str, run| changing(branch, action, run, "success");
    let intake = changed("export", "opened", 1);
    intake.says("pull request 7 names no issue");
    assert!(api.status(&desk.head()).unwrap().1.contains("no issue"));
    api.links(7, 87);
    let intake = changed("export", "edited", 2);
    intake
        .says("pull_request_target edited, issue 87, ")
        .says("note added to issue 87 by ");
    assert!(
        intake.summary.contains("## Issue `87`"),
        "{}",
        intake.summary
    );
    let (state, description) = api.status(&desk.head()).unwrap();
    assert!(
        state == "failure" && description.starts_with("87 not approved: "),
        "{description}"
    );
    let comments = runner.kept("comments.json");
    let on: Vec<&Value> = comments.as_array().unwrap().iter().collect();
    let on: Vec<&Value> = on.iter().map(|one| &one["number"]).collect();
    assert_eq!(on, [7, 87]);
    desk.step("implementer-agent", "implementer-agent-to-reviewer-agent");
    // Whoever approves starts the gate: for the issue, or for all.
    desk.approve();
    desk.dispatch("87");
    assert_eq!(desk.state(), "success");
    let run = desk.dispatch("");
    assert!(!run.log.contains("linked issues"), "{}", run.log);
    assert_eq!(desk.state(), "success");
    // It counts more than the branch, which looks like another's.
    let intake = changed("issue-5-export", "edited", 3);
    intake.says(", issue 87, ");
    assert_eq!(desk.state(), "success");
    // GitHub does not say: the ledger knows the pull request, whatever its text names, and the gate is closed.
    let down = Fault {
        at: "POST /graphql",
        status: 403,
        headers: Vec::new(),
        times: 2,
    };
    api.fails(down);
    let notice = "::notice title=linked issues are not known::GitHub answers 403: Not now";
    let intake = changing("export", "edited", 4, "failure");
    intake
        .says(notice)
        .says(", issue 87, ")
        .says("::error title=handoff intake::GitHub did not say which issues");
    let (state, why) = api.status(&desk.head()).unwrap();
    assert_eq!(state, "failure");
    assert_eq!(
        why,
        "not known: which issues are linked to it; it is judged again by itself. GitHub answers 403: Not now"
    );
    // The sweep judges it again, and starts the run again.
    let failed = json!([[4, 1], [3, 4]]).to_string();
    fs::write(desk.env().root().join("github/failed.json"), failed).unwrap();
    let sweep = Event::new("schedule", 91, json!({ "schedule": "11 * * * *" }));
    runner
        .run("handoff-gate.yml", &sweep)
        .job("gate", "success");
    assert_eq!(desk.state(), "success");
    assert_eq!(runner.kept("reruns.json"), json!([4]));
    desk.env().assert_sound();
}

#[test]
fn only_what_changed_is_set_for_each_open_pull_request() {
    let desk = Desk::new();
    let api = &desk.runner.api;
    let approved = desk.pull_request(7, &desk.branch, "Closes #87");
    api.knows(&approved);
    // Made with a workflow's own token: no event tells of them.
    desk.git(&["checkout", "-q", "main"]);
    let mut other = Vec::new();
    for number in [8, 9] {
        desk.commit("Other", &[("other.txt", &number.to_string())]);
        api.knows(&desk.pull_request(number, "other", ""));
        other.push(desk.head());
    }
    desk.git(&["reset", "-q", "--hard", "origin/main"]);
    let mut closed = desk.pull_request(10, "gone", "");
    closed["state"] = json!("closed");
    api.knows(&closed);
    desk.approve();

    let dry = desk.handoff(&["github", "status", "--dry-run"]).success();
    insta::assert_snapshot!(desk.env().filtered(&dry.stdout), @r#"
    [commit] success, would be set
      ✓ pull request 7, issue 87: approved: 87.4 (reviewer-agent-to-validator-agent) by reviewer-agent, of commit [commit]; contradicted: 87.3 commits: "9c41e07" is no commit of this repository; "b27d5aa3" is no commit of this repository; "[commit]" is no commit of this repository; 87.3 files_changed: the contract says 7 files, and 1 is changed
    [commit] failure, would be set
      ✗ pull request 8: not about an issue: it names no issue: write "Closes #12" into the description, or name its branch after the issue (issue-12)
    [commit] failure, would be set
      ✗ pull request 9: not about an issue: it names no issue: write "Closes #12" into the description, or name its branch after the issue (issue-12)
    "#);
    assert_eq!(api.count(), 0);
    desk.handoff(&["github", "status"]).success();
    assert_eq!(api.count(), 3);
    api.asked();
    let again = desk.handoff(&["github", "status"]).success();
    assert!(
        again.stdout.contains(" success, as it was\n"),
        "{}",
        again.shown
    );
    assert_eq!(api.count(), 3);
    let asked = api.asked();
    assert!(
        asked
            .iter()
            .all(|asked| asked.starts_with("GET ") || asked == "POST /graphql"),
        "{asked:?}"
    );
    // Two pages of the list, and what all of them close, with their statuses.
    assert_eq!(asked.len(), 3, "{asked:?}");
    desk.handoff(&["github", "status", "--issue", "87"])
        .success();
    assert_eq!(api.asked().len(), 3);
    assert_eq!(
        api.status(approved["head"]["sha"].as_str().unwrap())
            .unwrap()
            .0,
        "success"
    );
    for commit in &other {
        let (state, description) = api.status(commit).unwrap();
        assert_eq!(state, "failure");
        assert!(
            description.starts_with("not about an issue: it names no issue"),
            "{description}"
        );
    }
    // Without a name, or with another one.
    desk.handoff(&["github", "status", "9", "--context", "else"])
        .success();
    assert_eq!(api.count(), 4);
}

#[test]
fn what_github_refuses_is_told_and_what_it_puts_off_is_waited_for() {
    let desk = Desk::new();
    let api = &desk.runner.api;
    let mut described = desk.pull_request(7, &desk.branch, "Closes #87");
    api.knows(&described);
    let fault = |at, status, headers: &[(&'static str, &str)]| Fault {
        at,
        status,
        headers: headers
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect(),
        times: 1,
    };
    let status = || desk.handoff(&["github", "status"]);
    let reset = (desk.env().now() + 2).to_string();
    for waited in [
        fault("POST", 403, &[("retry-after", "1")]),
        fault("GET", 429, &[("retry-after", "0")]),
        fault(
            "GET",
            403,
            &[
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", &reset),
            ],
        ),
        fault("GET", 502, &[]),
    ] {
        api.fails(waited);
        status().success();
    }
    assert_eq!(api.count(), 1);
    for (fault, text) in [
        (fault("GET", 403, &[]), "GitHub answers 403: Not now"),
        (fault("GET", 404, &[]), "GitHub answers 404: Not now"),
        (
            fault("GET", 301, &[("location", "/elsewhere")]),
            "the repository has moved",
        ),
        (
            fault("GET", 429, &[("retry-after", "3600")]),
            "asks to wait 3600 s",
        ),
    ] {
        api.fails(fault);
        status().exits(9).says(text);
    }
    // A commit that is gone hinders no other.
    described["head"]["sha"] = json!("3".repeat(40));
    described["number"] = json!(6);
    api.knows(&described);
    desk.git(&["commit", "-q", "--allow-empty", "-m", "Another"]);
    api.knows(&desk.pull_request(8, "main", "Closes #12"));
    let told = status().exits(9);
    told.says("No commit found for SHA");
    assert_eq!(api.count(), 2);
    // Without what a workflow sets, with a token for github.com alone, and with another's.
    desk.env().handoff(&["github", "status"]).exits(2);
    api.asked();
    let mut command = desk.env().program(&["github", "status"]);
    command
        .env("GITHUB_API_URL", api.url())
        .env("GITHUB_REPOSITORY", "owner/desk")
        .env("GH_TOKEN", TOKEN);
    let refused = desk.env().run(command, &["github", "status"], None);
    refused.exits(2).says("GH_ENTERPRISE_TOKEN is not set");
    assert_eq!(api.asked(), [""; 0]);
    let mut command = desk.env().program(&["github", "status"]);
    command
        .env("GITHUB_API_URL", api.url())
        .env("GITHUB_REPOSITORY", "owner/desk")
        .env("GITHUB_ENTERPRISE_TOKEN", "wrong-token-0123456789");
    let refused = desk
        .env()
        .run(command, &["github", "status"], None)
        .exits(9);
    assert!(
        refused.shown.contains("401: Bad credentials"),
        "{}",
        refused.shown
    );
    assert!(!refused.shown.contains("wrong-token"), "{}", refused.shown);
}

/// Puts a policy on the default branch, and returns it as a file.
fn policy(desk: &Desk, exempt: &Value) -> String {
    let policy = json!({ "format": 1, "require": ["approved"], "exempt": exempt });
    desk.git(&["checkout", "-q", "main"]);
    fs::create_dir_all(desk.env().repo().join(".github")).unwrap();
    let text = policy.to_string();
    desk.commit("Policy", &[(".github/handoff-gate.json", &text)]);
    desk.git(&["push", "-q", "origin", "main"]);
    desk.env().file("policy.json", text)
}

#[test]
fn a_policy_exempts_pull_requests_and_the_check_says_why() {
    let desk = Desk::new();
    let api = &desk.runner.api;
    policy(
        &desk,
        &json!([
            { "reason": "dependency updates", "authors": ["renovate[bot]"], "paths": ["**/*.lock", "*.lock"] },
            { "reason": "an emergency", "labels": ["hotfix"], "into": ["main"] },
            { "reason": "documentation", "paths": ["docs/**"], "without_issue": true },
        ]),
    );
    let event = |number, body: &str, change: &dyn Fn(&mut Value)| {
        let mut described = desk.pull_request(number, "other", body);
        change(&mut described);
        let payload = json!({ "action": "labeled", "number": number, "pull_request": described,
            "repository": described["base"]["repo"] });
        let run = desk.runner.run(
            "handoff-intake.yml",
            &Event::new("pull_request_target", 1, payload),
        );
        run.job("record", "success");
        api.status(&desk.head()).unwrap()
    };
    let by_renovate = |described: &mut Value| described["user"]["login"] = json!("renovate[bot]");
    let with_label = |described: &mut Value| described["labels"] = json!([{ "name": "hotfix" }]);
    let success = |text: &str| ("success".to_owned(), text.to_owned());

    desk.git(&["checkout", "-q", "-b", "other"]);
    desk.commit("Update", &[("cargo.lock", "1\n")]);
    assert_eq!(
        event(8, "", &by_renovate),
        success("exempt: dependency updates (by renovate[bot]; only **/*.lock, *.lock)")
    );
    assert_eq!(event(8, "", &|_| {}).0, "failure");
    // Somebody pushes more to the bot's branch.
    desk.commit("More", &[("src.rs", "1\n")]);
    assert_eq!(event(8, "", &by_renovate).0, "failure");
    // A merge drops a commit, and a rebase brings it back.
    desk.git(&["checkout", "-q", "-b", "dropped", "HEAD~1"]);
    desk.commit("Evil", &[("src.rs", "1\n")]);
    desk.git(&["checkout", "-q", "other"]);
    desk.git(&["reset", "-q", "--hard", "HEAD~1"]);
    desk.git(&["merge", "-q", "--no-edit", "-s", "ours", "dropped"]);
    assert_eq!(event(8, "", &by_renovate).0, "failure");
    // A file that moves away from where others have to look is a change there too.
    desk.git(&["reset", "-q", "--hard", "main"]);
    desk.git(&["mv", "shared.txt", "shared.lock"]);
    desk.git(&["commit", "-q", "-m", "Move"]);
    assert_eq!(event(8, "", &by_renovate).0, "failure");
    // A label is given, and taken again; the issue is not approved.
    assert_eq!(
        event(8, "Closes #87", &with_label),
        success("exempt: an emergency (label hotfix; into main)")
    );
    assert_eq!(event(8, "Closes #87", &|_| {}).0, "failure");
    desk.git(&["reset", "-q", "--hard", "main"]);
    fs::create_dir(desk.env().repo().join("docs")).unwrap();
    desk.commit("Docs", &[("docs/a.md", "1\n")]);
    assert_eq!(event(9, "", &|_| {}).0, "success");
    assert_eq!(event(9, "Closes #87", &|_| {}).0, "failure");
}

#[test]
fn the_merge_queues_commit_is_judged_by_each_pull_request_in_it() {
    let desk = Desk::new();
    let api = &desk.runner.api;
    policy(
        &desk,
        &json!([{ "reason": "updates", "authors": ["renovate[bot]"], "paths": ["*.lock"] }]),
    );
    let base = desk.head();
    desk.git(&["checkout", "-q", &desk.branch]);
    api.knows(&desk.pull_request(7, &desk.branch, "Closes #87"));
    desk.git(&["checkout", "-q", "-b", "update", "main"]);
    desk.commit("Update", &[("cargo.lock", "1\n")]);
    let mut update = desk.pull_request(8, "update", "");
    update["user"]["login"] = json!("renovate[bot]");
    api.knows(&update);
    // A commit of the queue: a pull request merged into what is before it.
    let queued = |before: &str, branch: &str, number: u64, and: &[(&str, &str)]| {
        desk.git(&["checkout", "-q", "--detach", before]);
        desk.git(&["merge", "-q", "--no-ff", "--no-edit", branch]);
        if !and.is_empty() {
            for (path, text) in and {
                fs::write(desk.env().repo().join(path), text).unwrap();
            }
            desk.git(&["add", "-A"]);
            desk.git(&["commit", "-q", "--amend", "--no-edit"]);
        }
        let name = format!("refs/heads/gh-readonly-queue/main/pr-{number}-{before}");
        desk.git(&["push", "-q", "-f", "origin", &format!("HEAD:{name}")]);
        (name, desk.head(), before.to_owned())
    };
    let judged = |(name, head, base): &(String, String, String)| {
        let payload = json!({
            "action": "checks_requested",
            "merge_group": { "head_sha": head, "head_ref": name, "base_sha": base, "base_ref": "refs/heads/main" },
            "repository": { "id": 1, "full_name": "owner/desk" },
        });
        let run = desk
            .runner
            .run("handoff-gate.yml", &Event::new("merge_group", 1, payload));
        run.job("gate", "success");
        api.status(head).unwrap()
    };
    let first = queued(&base, &desk.branch, 7, &[]);
    let second = queued(&first.1, "update", 8, &[]);
    // Nobody has approved the one before.
    assert_eq!(judged(&first).0, "failure");
    let (state, description) = judged(&second);
    assert!(
        state == "failure" && description.starts_with("87 not approved: "),
        "{description}"
    );
    desk.git(&["checkout", "-q", &desk.branch]);
    desk.approve();
    assert_eq!(
        judged(&first),
        ("success".to_owned(), "87 approved".to_owned())
    );
    assert_eq!(judged(&second).0, "success");
    // The queue's commit has more than the pull requests in it.
    let more = queued(&base, &desk.branch, 7, &[("more.txt", "1\n")]);
    assert_eq!(judged(&more).0, "failure");
    let after = queued(&more.1, "update", 8, &[]);
    assert_eq!(judged(&after).0, "failure");
    // What it builds on is of no pull request.
    desk.git(&["checkout", "-q", "--detach", &base]);
    desk.commit("Nobody's", &[("nobody.txt", "1\n")]);
    let stray = queued(&desk.head(), "update", 8, &[]);
    let (state, description) = judged(&stray);
    assert_eq!(state, "failure");
    assert!(
        description.contains("is neither on main nor of a pull request in its queue"),
        "{description}"
    );
    // A squash has one parent, and is judged by its files like any.
    desk.git(&["checkout", "-q", "--detach", &base]);
    desk.git(&["merge", "-q", "--squash", &desk.branch]);
    desk.git(&["commit", "-q", "-m", "Squashed (#7)"]);
    let name = format!("refs/heads/gh-readonly-queue/main/pr-7-{base}");
    desk.git(&["push", "-q", "-f", "origin", &format!("HEAD:{name}")]);
    assert_eq!(judged(&(name, desk.head(), base)).0, "success");
}

#[test]
fn one_commit_of_two_pull_requests_passes_if_both_do() {
    let desk = Desk::new();
    let api = &desk.runner.api;
    api.knows(&desk.pull_request(7, &desk.branch, "Closes #87"));
    let mut exempt = desk.pull_request(8, "chore", "");
    exempt["base"]["ref"] = json!("gh-pages");
    api.knows(&exempt);
    let policy = json!({"format": 1, "require": ["approved"], "exempt": [{"reason": "pages", "into": ["gh-pages"]}]});
    let file = desk.env().file("policy.json", policy.to_string());
    let set = |asked: &[&str]| {
        let args = [&["github", "status"][..], asked, &["--policy", &file]].concat();
        desk.handoff(&args).success();
        desk.state()
    };
    for asked in [&["8"][..], &["7"], &[]] {
        assert_eq!(set(asked), "failure", "{asked:?}");
    }
    desk.approve();
    assert_eq!(set(&["8"]), "success");
    // A history that is cut off does not show by which rules it was approved.
    let (server, shallow) = (desk.runner.server(), desk.env().root().join("shallow"));
    let from = format!("file://{}", server.display());
    let clone = ["clone", "-q", "--depth=1", "--no-single-branch", &from];
    let clone = [&clone[..], &[shallow.to_str().unwrap()]].concat();
    desk.env().git(desk.env().root(), &clone);
    let git = |args: &[&str]| desk.env().git(&shallow, args);
    git(&["branch", "-q", "handoffs", "origin/handoffs"]);
    git(&["config", "handoff.remote", "origin"]);
    let args = ["github", "status", "7"];
    let mut command = desk.env().program(&args);
    command
        .current_dir(&shallow)
        .env("GITHUB_API_URL", desk.runner.api.url())
        .env("GITHUB_REPOSITORY", "owner/desk")
        .env("GH_ENTERPRISE_TOKEN", TOKEN);
    desk.env().run(command, &args, None).says("cut off here");
    assert_eq!(desk.state(), "failure");
}

#[test]
fn what_comes_late_judges_the_pull_request_as_it_is_now() {
    let desk = Desk::new();
    let api = &desk.runner.api;
    let exempt = json!([{ "reason": "an emergency", "labels": ["hotfix"], "into": ["main"] }]);
    policy(&desk, &exempt);
    desk.git(&["checkout", "-q", &desk.branch]);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut described = desk.pull_request(7, &desk.branch, "Closes #87");
        described["labels"] = json!([{ "name": "hotfix" }]);
        change(&mut described);
        described
    };
    let payload = json!({ "action": "labeled", "number": 7, "pull_request": with(&|_| {}),
        "repository": with(&|_| {})["base"]["repo"], "sender": { "login": "octocat", "type": "User" } });
    let event = Event::new("pull_request_target", 1, payload);
    let run = |event: &Event| {
        let run = desk.runner.run("handoff-intake.yml", event);
        run.job("record", "success");
    };
    run(&event);
    assert_eq!(desk.state(), "success");
    // Each time the run is started again, with what it was told first.
    for change in [
        |described: &mut Value| described["labels"] = json!([]),
        |described: &mut Value| described["base"]["ref"] = json!("release"),
    ] {
        api.knows(&with(&change));
        run(&event.again());
        assert_eq!(desk.state(), "failure");
        api.knows(&with(&|_| {}));
        run(&event.again());
        assert_eq!(desk.state(), "success");
    }
    // Another commit has its own status; one that is closed has none.
    let old = desk.head();
    desk.commit("More", &[("more.txt", "1\n")]);
    api.knows(&with(&|described| described["labels"] = json!([])));
    run(&event.again());
    assert_eq!(
        (desk.state(), api.status(&old).unwrap().0),
        ("failure".to_owned(), "success".to_owned())
    );
    let count = api.count();
    api.knows(&with(&|described| described["state"] = json!("closed")));
    run(&event.again());
    assert_eq!(api.count(), count);
}

#[test]
fn another_base_takes_a_new_approval() {
    let desk = Desk::new();
    desk.git(&["push", "-q", "origin", "main:release"]);
    desk.pull("opened", 1);
    desk.env().wait_minutes(1);
    desk.approve();
    desk.pull("edited", 2);
    assert_eq!(desk.state(), "success");
    desk.env().wait_minutes(1);
    let into = |base: &str, run: u32| {
        let mut described = desk.pull_request(7, &desk.branch, "Closes #87");
        described["base"]["ref"] = json!(base);
        let payload = json!({ "action": "edited", "number": 7, "pull_request": described,
            "changes": { "base": { "ref": { "from": "main" } } }, "repository": described["base"]["repo"] });
        let event = Event::new("pull_request_target", run, payload);
        desk.runner
            .run("handoff-intake.yml", &event)
            .job("record", "success");
        desk.env().handoff(&["fetch"]).success();
        desk.env().wait_minutes(1);
        desk.runner.api.status(&desk.head()).unwrap()
    };
    let (state, why) = into("release", 3);
    assert_eq!(state, "failure");
    assert_eq!(
        why,
        "87 not approved: 87.4 was said of a merge into main, and it is to be merged into release now: that takes a new approval"
    );
    assert_eq!(into("main", 4).0, "success");
    // It is approved as it is to be merged now.
    assert_eq!(into("release", 5).0, "failure");
    let head = desk.head();
    let approve = ["approve", "87.4", "--as", "maintainer", "--head", &head];
    desk.env().handoff(&approve).success();
    desk.dispatch("87");
    assert_eq!(desk.state(), "success");
    assert_eq!(into("main", 6).0, "failure");
}
