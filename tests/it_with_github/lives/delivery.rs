//! How what GitHub tells arrives: in another order, twice, late, in a run that is killed and started again, or in two runs
//! that meet. Each does what a run of the intake's workflow does.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::hub::repository;
use super::{ISSUE, Life};
use crate::runner::{Event, TOKEN};
use test_support::events::person;

/// How far what is on its way can be overtaken.
const WINDOW: u64 = 5;

/// What GitHub told, which starts a run.
pub(super) struct Told {
    name: &'static str,
    payload: Value,
    permission: Option<&'static str>,
    run: u64,
    what: String,
}

#[derive(Default)]
pub(super) struct Mail {
    new: Vec<Rc<Told>>,
    on_its_way: Vec<Rc<Told>>,
    /// What comes last.
    late: Vec<Rc<Told>>,
    runs: u64,
    attempts: u64,
    /// The commits that a run or an agent was told of.
    pub(super) acknowledged: Vec<String>,
}

impl Mail {
    pub(super) fn deliveries(&self) -> u64 {
        self.attempts
    }
}

impl Life {
    pub(super) fn tell(
        &mut self,
        name: &'static str,
        payload: Value,
        permission: Option<&'static str>,
        what: String,
    ) {
        self.mail.runs += 1;
        let run = 100 + self.mail.runs;
        self.log
            .push(format!("{run} at {}: {what}", self.hub.env().now()));
        self.mail.new.push(Rc::new(Told {
            name,
            payload,
            permission,
            run,
            what,
        }));
    }

    /// What was told is on its way.
    pub(super) fn send_out(&mut self) {
        for told in std::mem::take(&mut self.mail.new) {
            if self.dice.percent(10) {
                self.mail.late.push(Rc::clone(&told));
            }
            let is_late = self.dice.percent(10);
            let to = if is_late {
                &mut self.mail.late
            } else {
                &mut self.mail.on_its_way
            };
            to.push(told);
        }
    }

    /// Delivers one of those that were told first, if any is on its way.
    pub(super) fn deliver_one(&mut self) -> bool {
        let Some(told) = self.next() else {
            return false;
        };
        // The workflow leaves out what is only pending.
        let is_recorded = told.name != "status" || told.payload["state"] != "pending";
        if self.by_workflow && is_recorded && self.dice.percent(25) {
            self.delivered_by_the_workflow(&told);
            return true;
        }
        match self.dice.below(10) {
            0 => self.delivered_by_a_killed_run(&told),
            1 => match self.next() {
                Some(other) => self.delivered_at_once(&told, &other),
                None => self.delivered_at_once(&told, &told),
            },
            _ => self.delivered(&told),
        }
        true
    }

    fn next(&mut self) -> Option<Rc<Told>> {
        let count = self.mail.on_its_way.len() as u64;
        if count == 0 {
            return None;
        }
        let at = self.dice.below(count.min(WINDOW));
        Some(self.mail.on_its_way.remove(usize::try_from(at).unwrap()))
    }

    /// Delivers all of it, what is late last.
    pub(super) fn deliver_all(&mut self) {
        self.send_out();
        while self.deliver_one() {}
        self.mail.on_its_way.append(&mut self.mail.late);
        while self.deliver_one() {}
    }

    fn repository(&self, which: u64) -> PathBuf {
        self.hub.env().root().join(format!("intake-{which}"))
    }

    /// The run's step that carries out the event, not started yet.
    fn run(&mut self, told: &Told, which: u64) -> (Command, Vec<&'static str>) {
        self.mail.attempts += 1;
        let file = format!("event-{which}.json");
        let file = self.hub.env().file(&file, told.payload.to_string());
        let mut args = vec!["github", "event", "--json"];
        if let Some(permission) = told.permission {
            args.extend(["--permission", permission]);
        }
        if self.asks {
            args.push("--ask-github");
            self.github_knows();
        }
        let mut command = self.program(&args, which);
        command
            .env("GITHUB_EVENT_NAME", told.name)
            .env("GITHUB_EVENT_PATH", file)
            .env("GITHUB_RUN_ID", told.run.to_string())
            .env("GITHUB_RUN_ATTEMPT", self.mail.attempts.to_string());
        (command, args)
    }

    fn program(&self, args: &[&str], which: u64) -> Command {
        let mut command = self.hub.env().program(args);
        command
            .env_remove("GIT_HANDOFF_WORKER")
            .env("GIT_DIR", self.repository(which))
            .env("GITHUB_API_URL", self.hub.runner.api.url())
            .env("GITHUB_REPOSITORY", "owner/desk")
            .env("GH_ENTERPRISE_TOKEN", TOKEN);
        command
    }

    /// What a run was told is kept.
    fn was_told(&mut self, told: &Told, document: &Value) {
        let did = document["data"]["did"].as_array().unwrap();
        let commits = did.iter().filter_map(|did| did["commit"].as_str());
        self.mail.acknowledged.extend(commits.map(str::to_owned));
        let short = |did: &Value| format!("{} {}", did["what"], did["id"]);
        let did: Vec<String> = did.iter().map(short).collect();
        self.log.push(format!(
            "    {} {}: {did:?} {}",
            told.run, told.what, document["data"]["why"]
        ));
    }

    fn delivered(&mut self, told: &Told) {
        let (command, args) = self.run(told, 0);
        let ran = self.hub.env().run(command, &args, None);
        assert_eq!(ran.status, 0, "{}: {}", told.what, ran.shown);
        self.was_told(told, &ran.json());
        if self.dice.percent(12) {
            self.show();
        }
    }

    /// By the steps that the workflow's file has.
    fn delivered_by_the_workflow(&mut self, told: &Told) {
        self.mail.attempts += 1;
        self.github_knows();
        let run = u32::try_from(told.run).unwrap();
        let mut event = Event::new(told.name, run, told.payload.clone());
        event.attempt = u32::try_from(self.mail.attempts).unwrap();
        let ran = self.hub.runner.run("handoff-intake.yml", &event);
        // A comment without a command starts no job.
        let says = told.payload["comment"]["body"].as_str();
        let is_plain = says.is_some_and(|says| !says.contains("/hand"));
        ran.job("record", if is_plain { "skipped" } else { "success" });
        self.log
            .push(format!("    {} {}: by the workflow", told.run, told.what));
        // The event may be an old one.
        self.github_knows();
    }

    /// GitHub's API knows how things are now.
    fn github_knows(&self) {
        let at = self.hub.env().now();
        for number in self.hub.issues.keys() {
            let described = self.hub.issue_told(*number, at);
            self.hub.runner.api.knows_issue(&described);
        }
        for pull in &self.hub.pulls {
            let described = self.hub.pull_told(pull.number, at);
            self.hub.runner.api.knows(&described);
        }
    }

    /// The run's machine is gone, at any moment; the run is started again.
    fn delivered_by_a_killed_run(&mut self, told: &Told) {
        let (mut command, _) = self.run(told, 1);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(self.dice.below(80)));
        let _ = child.kill();
        child.wait().unwrap();
        self.log.push(format!("    {} is killed", told.run));
        // The next run has a machine of its own.
        let dead = self.repository(1);
        for lock in [
            "refs/heads/handoffs.lock",
            "packed-refs.lock",
            "config.lock",
        ] {
            let _ = std::fs::remove_file(dead.join(lock));
        }
        self.fetch(1);
        self.delivered(told);
    }

    /// A run begins with what the server has.
    fn fetch(&self, which: u64) {
        let spec = "+refs/heads/handoffs:refs/heads/handoffs";
        let args = ["fetch", "-q", "--no-tags", "origin", spec];
        self.hub.env().git(&self.repository(which), &args);
    }

    /// Two runs meet; or a run is started again before it has ended.
    fn delivered_at_once(&mut self, one: &Rc<Told>, other: &Rc<Told>) {
        let (first, args) = self.run(one, 0);
        let (second, others) = self.run(other, 1);
        let env = self.hub.env();
        let (ran, also) = thread::scope(|scope| {
            let ran = scope.spawn(|| env.run(first, &args, None));
            let also = env.run(second, &others, None);
            (ran.join().unwrap(), also)
        });
        self.log
            .push(format!("    {} and {} meet", one.run, other.run));
        for (told, ran) in [(one, ran), (other, also)] {
            assert_eq!(ran.status, 0, "{}: {}", told.what, ran.shown);
            self.was_told(told, &ran.json());
        }
    }

    /// The rest of the intake: the check, and the comments, of each issue.
    pub(super) fn show(&mut self) {
        self.fetch(0);
        let issues: Vec<u64> = self.hub.issues.keys().copied().collect();
        for issue in issues {
            let number = issue.to_string();
            let args = [
                "github",
                "status",
                "--issue",
                &number,
                "--require",
                "approved",
            ];
            let ran = self.hub.env().run(self.program(&args, 0), &args, None);
            assert_eq!(ran.status, 0, "{}", ran.shown);
            let pull = self
                .hub
                .own_pull()
                .filter(|pull| pull.closes.contains(&issue));
            let pull = pull.map(|pull| pull.number);
            for on in [Some(issue), pull].into_iter().flatten() {
                self.write_comment(issue, on, pull);
            }
        }
    }

    fn write_comment(&mut self, issue: u64, on: u64, pull: Option<u64>) {
        let known = json!(self.hub.comments(on)).to_string();
        let existing = self.hub.env().file("comments.json", known);
        let body = self.hub.env().root().join("comment.md");
        let _ = std::fs::remove_file(&body);
        let (issue, pull) = (issue.to_string(), pull.map(|pull| pull.to_string()));
        let body = body.to_str().unwrap();
        let mut args = vec!["github", "comment", &issue, "--require", "approved"];
        args.extend(["--existing", &existing, "--output", body]);
        args.extend(pull.iter().flat_map(|pull| ["--pull-request", pull]));
        let ran = self.hub.env().run(self.program(&args, 0), &args, None);
        // 6: the ledger does not have the issue yet.
        if ran.status == 6 {
            return;
        }
        assert_eq!(ran.status, 0, "{}", ran.shown);
        // It says so already.
        let Ok(body) = std::fs::read_to_string(body) else {
            return;
        };
        let known = ran.stdout.trim().parse::<u64>();
        let id = known.unwrap_or_else(|_| 500_000 + self.hub.id());
        let user = json!({ "login": "github-actions[bot]", "type": "Bot" });
        let comment = json!({ "id": id, "number": on, "user": user, "body": body });
        self.hub.comment(comment);
    }

    /// The gate judges the commit of a merge queue.
    pub(super) fn judge_queue(&mut self, number: u64, (name, base, head): (&str, &str, &str)) {
        let payload = json!({
            "action": "checks_requested",
            "merge_group": { "head_sha": head, "head_ref": name, "base_sha": base, "base_ref": "refs/heads/main" },
            "repository": repository(), "sender": person("octocat"),
        });
        let file = self.hub.env().file("queue.json", payload.to_string());
        self.fetch(0);
        let args = ["github", "status", "--event", "--require", "approved"];
        let mut command = self.program(&args, 0);
        command
            .env("GITHUB_EVENT_NAME", "merge_group")
            .env("GITHUB_EVENT_PATH", file);
        let ran = self.hub.env().run(command, &args, None);
        assert_eq!(ran.status, 0, "{}", ran.shown);
        let passes = self.may_merge(number);
        self.log
            .push(format!("  the queue tests {number}: {passes}"));
        let state = self.hub.runner.api.status(head).unwrap();
        let expected = if passes { "success" } else { "failure" };
        if !Self::is_taken_back(&state.1) {
            assert_eq!(state.0, expected, "issue {ISSUE}: {}", state.1);
        }
    }
}
