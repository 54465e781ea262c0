//! A small GitHub: the repository `owner/desk` with its issues, pull requests and commits, and the payloads by which it
//! tells what happens there. Its clock is the environment's, and no two things happen in one second, but what is undone at once.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::dice::Dice;

use super::model::Model;
use super::said::Afoot;
use super::{ISSUE, OTHER};
use crate::runner::Runner;
use test_support::events::person;

/// The branch that the agents' contracts name.
pub(super) const BRANCH: &str = "enhancement/87-csv-export";

pub(super) struct Issue {
    pub(super) number: u64,
    pub(super) title: String,
    pub(super) requirements: Vec<String>,
    pub(super) labels: Vec<&'static str>,
    pub(super) milestone: Option<&'static str>,
    pub(super) assignees: Vec<&'static str>,
    /// Why it is closed, if it is.
    pub(super) closed: Option<&'static str>,
    /// Transferred or deleted.
    pub(super) gone: bool,
}

pub(super) struct Pull {
    pub(super) number: u64,
    pub(super) closes: Vec<u64>,
    pub(super) head: String,
    pub(super) is_fork: bool,
    pub(super) draft: bool,
    pub(super) open: bool,
    pub(super) merge_sha: Option<String>,
    pub(super) reviewers: Vec<&'static str>,
}

pub(super) struct Hub {
    pub(super) runner: Runner,
    pub(super) issues: BTreeMap<u64, Issue>,
    pub(super) pulls: Vec<Pull>,
    /// The newest commit of the default branch.
    pub(super) main: String,
    /// Each commit that only merges the base into the one before: that one.
    pub(super) merges: BTreeMap<String, String>,
    pub(super) model: Model,
    pub(super) afoot: Afoot,
    /// Whether the agent whose turn it is has claimed its work.
    pub(super) held: bool,
    /// How often the work went back.
    pub(super) rounds: u32,
    /// The server's refs, apart from the ledger, and where they are.
    pub(super) refs: BTreeMap<String, String>,
    /// Whether all that happens now happens within one second.
    pub(super) at_once: bool,
    /// What everything that has a number of its own is counted with.
    ids: u64,
}

/// A server, a clone for the agents, and two repositories as the intake's runs have them.
fn prepared() -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    let repo = env.repo();
    env.git(env.root(), &["init", "-q", "--bare", "owner/desk"]);
    env.git(&repo, &["remote", "add", "origin", "../owner/desk"]);
    env.git(&repo, &["push", "-q", "origin", "main"]);
    let init = ["init", "--remote", "origin", "--evidence", "off"];
    env.handoff(&init).success();
    for name in ["intake-0", "intake-1"] {
        env.git(env.root(), &["init", "-q", "--bare", name]);
        let settings = [
            ("user.name", "github-actions[bot]"),
            ("user.email", "bot@example.com"),
            ("remote.origin.url", "ROOT/owner/desk"),
            ("handoff.branch", "handoffs"),
            ("handoff.remote", "origin"),
        ];
        for (key, value) in settings {
            env.git(&env.root().join(name), &["config", key, value]);
        }
        let from = "../owner/desk";
        let fetch = ["fetch", "-q", from, "handoffs:refs/heads/handoffs"];
        env.git(&env.root().join(name), &fetch);
    }
    env
}

impl Hub {
    pub(super) fn new(dice: &mut Dice) -> Self {
        let env = TestEnvironment::prepared("lives", prepared);
        env.pace(1);
        for name in ["intake-0", "intake-1"] {
            let config = env.root().join(name).join("config");
            let text = fs::read_to_string(&config).unwrap();
            let root = env.root().to_str().unwrap();
            fs::write(&config, text.replace("ROOT", root)).unwrap();
        }
        let runner = Runner::new(env);
        let may = json!([
            ["ada", "write"],
            ["grace", "admin"],
            ["linus", "read"],
            ["mallory", "none"],
            ["renovate[bot]", "unknown"]
        ]);
        let github = runner.env.root().join("github");
        fs::write(github.join("collaborators.json"), may.to_string()).unwrap();
        let main = runner.env.git(&runner.server(), &["rev-parse", "main"]);
        let main = main.trim().to_owned();
        let issue = |number, title: &str| Issue {
            number,
            title: title.to_owned(),
            requirements: vec!["no parcel is lost".to_owned()],
            labels: vec!["bug", "priority: high"],
            milestone: None,
            assignees: Vec::new(),
            closed: None,
            gone: false,
        };
        let mut issues = BTreeMap::from([(ISSUE, issue(ISSUE, "Parcels are lost"))]);
        if dice.percent(30) {
            issues.insert(OTHER, issue(OTHER, "Ships are lost"));
        }
        Self {
            runner,
            issues,
            pulls: Vec::new(),
            merges: BTreeMap::new(),
            model: Model::default(),
            afoot: Afoot::default(),
            held: false,
            rounds: 0,
            refs: BTreeMap::from([("refs/heads/main".to_owned(), main.clone())]),
            main,
            at_once: false,
            ids: 0,
        }
    }

    pub(super) fn env(&self) -> &TestEnvironment {
        &self.runner.env
    }

    pub(super) fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// The time at which something happens, after all that happened before.
    pub(super) fn now(&self) -> i64 {
        if !self.at_once {
            self.env().wait(2);
        }
        self.env().now()
    }

    /// Makes a commit on the server with one new file, and lets these refs point at it.
    pub(super) fn commit(&mut self, parents: &[&str], refs: &[&str]) -> String {
        let number = self.id();
        let (mark, now) = (refs[0], self.env().now());
        let mut stream = format!(
            "commit {mark}\nmark :1\ncommitter Ada <ada@example.com> {now} +0000\ndata 4\nWork\n"
        );
        for (word, parent) in ["from", "merge"].iter().zip(parents) {
            stream += &format!("{word} {parent}\n");
        }
        // A merge has what both sides have.
        if let [_, other] = parents {
            for path in self.files(other) {
                stream += &format!("M 100644 {} {}\n", path.0, path.1);
            }
        } else {
            stream += &format!("M 100644 inline file-{number}\ndata 2\n{}\n", number % 10);
        }
        for name in &refs[1..] {
            stream += &format!("reset {name}\nfrom :1\n\n");
        }
        let server = self.runner.server();
        let args = ["fast-import", "--quiet", "--force"];
        let mut command = self.env().command("git");
        command
            .args(args)
            .current_dir(&server)
            .env("GIT_DIR", &server);
        self.env()
            .run(command, &args, Some(stream.as_bytes()))
            .success();
        let id = self.env().git(&server, &["rev-parse", mark]);
        let id = id.trim().to_owned();
        for name in refs {
            self.refs.insert((*name).to_owned(), id.clone());
        }
        id
    }

    /// The files of a commit: their ids and names.
    fn files(&self, commit: &str) -> Vec<(String, String)> {
        let server = self.runner.server();
        let listed = self.env().git(&server, &["ls-tree", commit]);
        let lines = listed.lines().filter_map(|line| {
            let (about, name) = line.split_once('\t')?;
            let id = about.split(' ').nth(2)?;
            Some((id.to_owned(), name.to_owned()))
        });
        lines.collect()
    }

    /// The comments on an issue or a pull request.
    pub(super) fn comments(&self, on: u64) -> Vec<Value> {
        let all = self.runner.kept("comments.json");
        let all = all.as_array().unwrap().iter();
        all.filter(|one| one["number"] == on).cloned().collect()
    }

    /// Puts a comment in the place of the one with its id, or adds it.
    pub(super) fn comment(&self, new: Value) {
        let mut all = self.runner.kept("comments.json");
        let list = all.as_array_mut().unwrap();
        match list.iter_mut().find(|one| one["id"] == new["id"]) {
            Some(known) => *known = new,
            None => list.push(new),
        }
        let file = self.env().root().join("github/comments.json");
        fs::write(file, all.to_string()).unwrap();
    }

    pub(super) fn pull(&mut self, number: u64) -> &mut Pull {
        let mut all = self.pulls.iter_mut();
        all.find(|pull| pull.number == number).unwrap()
    }

    /// The pull request of the repository itself that is open, or was merged.
    pub(super) fn own_pull(&self) -> Option<&Pull> {
        let mut all = self.pulls.iter().rev().filter(|pull| !pull.is_fork);
        all.find(|pull| pull.open || pull.merge_sha.is_some())
    }

    pub(super) fn issue_told(&self, number: u64, at: i64) -> Value {
        let issue = &self.issues[&number];
        let labels: Vec<Value> = issue
            .labels
            .iter()
            .map(|name| json!({ "name": name }))
            .collect();
        let assignees: Vec<Value> = issue.assignees.iter().map(|one| person(one)).collect();
        let items: String = issue
            .requirements
            .iter()
            .map(|one| format!("- [ ] {one}\r\n"))
            .collect();
        json!({
            "number": number,
            "state": if issue.closed.is_some() { "closed" } else { "open" },
            "state_reason": issue.closed,
            "title": issue.title,
            "html_url": format!("https://github.com/owner/desk/issues/{number}"),
            "labels": labels, "assignees": assignees,
            "milestone": issue.milestone.map(|title| json!({ "title": title })),
            "body": format!("It is so.\r\n\r\n### Requirements\r\n{items}"),
            "user": person("octocat"), "author_association": "NONE",
            "updated_at": shown(at),
            "closed_at": issue.closed.map(|_| shown(at)),
        })
    }

    pub(super) fn pull_told(&self, number: u64, at: i64) -> Value {
        let pull = self
            .pulls
            .iter()
            .find(|pull| pull.number == number)
            .unwrap();
        let closes: Vec<String> = pull
            .closes
            .iter()
            .map(|issue| format!("Closes #{issue}"))
            .collect();
        let own = repository();
        let from = if pull.is_fork {
            json!({ "id": 2, "full_name": "mallory/desk", "default_branch": "main" })
        } else {
            own.clone()
        };
        let reviewers: Vec<Value> = pull.reviewers.iter().map(|one| person(one)).collect();
        json!({
            "number": number, "state": if pull.open { "open" } else { "closed" },
            "title": "Keep parcels", "body": closes.join("\n"), "labels": [],
            "html_url": address(number),
            "draft": pull.draft, "merged": pull.merge_sha.is_some(), "merge_commit_sha": pull.merge_sha,
            "user": person("octocat"), "author_association": "MEMBER",
            "requested_reviewers": reviewers, "requested_teams": [],
            "head": { "ref": BRANCH, "sha": pull.head, "repo": from },
            "base": { "ref": "main", "sha": self.main, "repo": own },
            "updated_at": shown(at),
        })
    }
}

pub(super) fn address(pull: u64) -> String {
    format!("https://github.com/owner/desk/pull/{pull}")
}

pub(super) fn repository() -> Value {
    json!({ "id": 1, "full_name": "owner/desk", "default_branch": "main" })
}

/// A time as payloads have it.
pub(super) fn shown(at: i64) -> String {
    let at = chrono::DateTime::from_timestamp(at, 0).unwrap();
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}
