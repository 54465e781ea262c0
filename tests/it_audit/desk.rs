//! An issue whose contracts claim things about a real repository, true and false.

use std::fs;

use serde_json::Value;

use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared, sample};

/// The branch that the samples name.
pub(crate) const BRANCH: &str = "enhancement/87-csv-export";

/// A ledger under a policy, in a repository with a branch for issue 87.
pub(crate) struct Desk {
    pub(crate) env: TestEnvironment,
}

impl Desk {
    /// A ledger in which the implementer holds issue 87, and the branch has
    /// nothing yet.
    pub(crate) fn new(policy: &str) -> Self {
        Self::begun(policy, |_| {})
    }

    /// The same, under a protocol that was changed.
    pub(crate) fn with(policy: &str, change: impl FnOnce(&mut Value)) -> Self {
        Self::begun(policy, |desk| desk.change_protocol("issue-to-pr", change))
    }

    fn begun(policy: &str, prepare: impl FnOnce(&Self)) -> Self {
        let env = TestEnvironment::with_repository();
        env.handoff(&["init", "--evidence", policy]).success();
        let desk = Self { env };
        prepare(&desk);
        desk.env.git(&desk.env.repo(), &["branch", BRANCH]);
        desk.env.send(opening(87)).success();
        desk.env.claim("87.1", "prep-agent").success();
        desk.env.send(prepared(87)).success();
        desk.env.claim("87.2", "implementer-agent").success();
        desk
    }

    /// Notes that the work is on another branch than the one that was prepared.
    pub(crate) fn on_branch(&self, name: &str) {
        let fact = format!("branch={name}");
        let args = ["annotate", "87", "--as", "maintainer", "--note", "moved"];
        let fact = ["--fact", &fact];
        self.env.handoff(&[&args[..], &fact].concat()).success();
    }

    /// Puts a changed version of a protocol in force.
    pub(crate) fn change_protocol(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let folder = self.env.root().join("protocol");
        let path = folder.to_str().unwrap();
        self.env
            .handoff(&["protocol", "copy", name, path])
            .success();
        let file = folder.join("protocol.json");
        let mut definition: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        definition["version"] = "2.0.0".into();
        change(&mut definition);
        fs::write(&file, serde_json::to_vec_pretty(&definition).unwrap()).unwrap();
        self.env.handoff(&["protocol", "update", path]).success();
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.env.git(&self.env.repo(), args).trim().to_owned()
    }

    /// Commits files on a branch, which is checked out from then on; returns the
    /// commit.
    pub(crate) fn commit(&self, branch: &str, files: &[(&str, &str)], message: &str) -> String {
        self.git(&["checkout", "-q", branch]);
        for (path, text) in files {
            let path = self.env.repo().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Two commits on the branch, which change two files.
    pub(crate) fn work(&self) -> [String; 2] {
        let first = self.commit(
            BRANCH,
            &[("src/export.py", "rows\n")],
            "export: write rows as CSV",
        );
        let second = self.commit(
            BRANCH,
            &[("src/history.py", "link\n")],
            "history: offer the download",
        );
        [first, second]
    }

    /// Hands work on until the fixer holds it.
    pub(crate) fn reviewed(&self, commits: &[&str]) {
        self.env.send(self.implemented(2, commits)).success();
        self.env.claim("87.3", "reviewer-agent").success();
        self.env
            .send(sample("reviewer-agent-to-fixer-agent", Format::Xml, 87))
            .success();
        self.env.claim("87.4", "fixer-agent").success();
    }

    /// Hands work on until the validator holds it.
    pub(crate) fn approved(&self, commits: &[&str]) {
        self.env.send(self.implemented(2, commits)).success();
        self.env.claim("87.3", "reviewer-agent").success();
        self.env
            .send(sample("reviewer-agent-to-validator-agent", Format::Xml, 87))
            .success();
        self.env.claim("87.4", "validator-agent").success();
    }

    /// The implementer's contract with these claims; each commit has its own subject.
    pub(crate) fn implemented(&self, files: u32, commits: &[&str]) -> String {
        let subject = |id: &&str| {
            let args = ["log", "-1", "--format=%s", *id];
            let found = self.env.git_any(&self.env.repo(), &args).stdout;
            (id.to_string(), found.trim().to_owned())
        };
        let commits: Vec<(String, String)> = commits.iter().map(subject).collect();
        listing(files, &commits)
    }

    /// The implementer's contract with all that the branch has.
    pub(crate) fn done(&self, files: u32) -> String {
        let range = format!("main..{BRANCH}");
        let args = ["log", "--reverse", "--no-merges", "--format=%H", &range];
        let commits = self.git(&args);
        self.implemented(files, &commits.lines().collect::<Vec<_>>())
    }

    /// The checks of a handoff: each with its result, and why.
    pub(crate) fn checks(&self, id: &str) -> Vec<String> {
        let data = self.env.data(&["show", id]);
        let evidence = data["record"]["evidence"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        evidence
            .iter()
            .map(|e| {
                let line = format!("{} {}", text(&e["check"]), text(&e["result"]));
                match e["reason"].as_str() {
                    Some(why) => format!("{line}: {why}"),
                    None => line,
                }
            })
            .collect()
    }

    /// The result of one check of a handoff.
    pub(crate) fn check(&self, id: &str, check: &str) -> String {
        let checks = self.checks(id);
        let found = checks
            .iter()
            .find_map(|line| line.strip_prefix(check)?.strip_prefix(' '));
        found.unwrap_or("not recorded").to_owned()
    }

    /// Insists that the contract is refused for these reasons, by `send` and by
    /// `check`, and that nothing was written; returns the messages.
    #[track_caller]
    pub(crate) fn refused(&self, contract: &str, codes: &[&str]) -> Vec<String> {
        let tip = self.env.tip();
        let checked = self
            .env
            .handoff_with(&["check", "-", "--json"], contract)
            .exits(3);
        let sent = self
            .env
            .handoff_with(&["send", "-", "--json"], contract)
            .exits(3);
        assert_eq!(self.env.tip(), tip, "nothing is written");
        let sent = sent.json();
        assert_eq!(sent["error"]["code"], "evidence_contradicted");
        let findings = |document: &Value| -> Vec<Value> {
            let found = document["error"]["findings"].as_array().unwrap().iter();
            found
                .map(|f| {
                    serde_json::json!([
                        f["code"],
                        f["severity"],
                        f["path"],
                        f["line"],
                        f["message"],
                        f["fix"]
                    ])
                })
                .collect()
        };
        assert_eq!(
            findings(&sent),
            findings(&checked.json()),
            "check and send agree"
        );
        let text = |f: &Value, i: usize| f[i].as_str().unwrap().to_owned();
        let found: Vec<String> = findings(&sent).iter().map(|f| text(f, 0)).collect();
        assert_eq!(found, codes);
        for finding in findings(&sent) {
            assert!(
                finding[3].is_number() && finding[5].is_string(),
                "{finding}"
            );
        }
        findings(&sent)
            .iter()
            .map(|f| format!("{} {}", text(f, 2), text(f, 4)))
            .collect()
    }
}

/// The implementer's contract with these claims.
pub(crate) fn implemented(files: u32, commits: &[&str]) -> String {
    let commits = commits.iter().map(|id| (id.to_string(), String::new()));
    listing(files, &commits.collect::<Vec<_>>())
}

/// The implementer's contract with these commits and their messages.
pub(crate) fn listing(files: u32, commits: &[(String, String)]) -> String {
    let text = sample("implementer-agent-to-reviewer-agent", Format::Xml, 87);
    let (start, rest) = text.split_once("<commits>").unwrap();
    let (_, end) = rest.split_once("</commits>").unwrap();
    let commit = |(sha, message): &(String, String)| {
        let message = if message.is_empty() {
            "a change"
        } else {
            message
        };
        format!("<commit sha=\"{sha}\">{message}</commit>")
    };
    let commits: String = commits.iter().map(commit).collect();
    let start = start.replace("<files_changed>7<", &format!("<files_changed>{files}<"));
    format!("{start}<commits>{commits}</commits>{end}")
}

/// The fixer's contract with this number of commits.
pub(crate) fn fixed(commits: u32) -> String {
    let text = sample("fixer-agent-to-reviewer-agent", Format::Xml, 87);
    text.replace("<commits_added>2<", &format!("<commits_added>{commits}<"))
}

/// The validator's contract about this merge.
pub(crate) fn merged(commit: &str, strategy: &str) -> String {
    let text = sample("validator-agent-to-closer-agent", Format::Xml, 87);
    text.replace("e60b8d1f7a2c", commit)
        .replace(">rebase<", &format!(">{strategy}<"))
}
