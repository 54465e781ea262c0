//! Every attack of docs/security.md's last table, made through plain git on a real
//! ledger: what the audit says of it, that a server with the hook refuses the
//! push, and that the local hook refuses to move the branch there.

use std::fs;
use std::path::{Path, PathBuf};

use test_support::tamper::{BRANCH, Ledger, contract, folder, remove, set};

/// A ledger, and a server that has it, whose hook checks what it receives.
struct Attack {
    ledger: Ledger,
    server: Ledger,
    /// The branch before the attack.
    good: String,
}

fn hook(name: &str, hooks: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("hooks")
        .join(name);
    fs::create_dir_all(hooks).unwrap();
    fs::copy(script, hooks.join(name)).unwrap();
}

impl Attack {
    fn new() -> Self {
        let ledger = Ledger::new();
        let server = ledger.clone_with(&[]);
        server.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
        hook("pre-receive", &server.path().join("hooks"));
        let good = ledger.tip().id;
        Self {
            ledger,
            server,
            good,
        }
    }

    fn server_path(&self) -> PathBuf {
        self.server.path().to_owned()
    }

    /// Pushes what the attack made, by force; what the server says.
    fn push(&self) -> String {
        let url = self.server_path();
        let refspec = format!("+{BRANCH}:{BRANCH}");
        let pushed = self
            .ledger
            .git_any(&["push", "-q", url.to_str().unwrap(), &refspec]);
        assert_ne!(pushed.0, 0, "the server took it");
        assert_eq!(self.server.git(&["rev-parse", BRANCH]), self.good);
        pushed.1
    }

    /// Moves the branch from where it was to where the attack had it, as any git
    /// command would; what the local hook says.
    fn moves_locally(&self) -> String {
        let bad = self.ledger.git(&["rev-parse", BRANCH]);
        self.ledger.git(&["update-ref", BRANCH, &self.good]);
        let hooks = self.ledger.path().join(".git/hooks");
        hook("reference-transaction", &hooks);
        let moved = self.ledger.git_any(&["update-ref", BRANCH, &bad]);
        assert_ne!(moved.0, 0, "the local hook let it pass");
        assert_eq!(self.ledger.git(&["rev-parse", BRANCH]), self.good);
        moved.1
    }

    /// Asserts that all three find it: the audit with these findings, the hooks
    /// with the code of the first of them, or because history was rewritten.
    #[track_caller]
    fn must_be_found(self, findings: &[&str]) {
        let found = self.ledger.damage(&[]);
        assert_eq!(found, findings, "verify");
        let code = findings[0].split(' ').nth(1).unwrap();
        for (who, said) in [
            ("server", self.push()),
            ("local hook", self.moves_locally()),
        ] {
            let named = said.contains(code) || said.contains("history.rewritten");
            assert!(named, "{who}, {code}: {said}");
        }
        // What was there before is as it was, and goes on.
        self.ledger.forget();
        self.ledger.assert_sound(&[]);
        self.ledger
            .handoff(40, &["claim", "89.1", "--as", "prep-agent"], "");
        let url = self.server_path();
        self.ledger
            .git(&["push", "-q", url.to_str().unwrap(), BRANCH]);
    }
}

fn replaced(ledger: &Ledger, path: &str, from: &str, to: &str) -> String {
    let text = ledger.file(path);
    assert!(text.contains(from), "{path}: {text}");
    text.replacen(from, to, 1)
}

const CONTRACT: &str = "0001-issue-manager-to-prep-agent.xml";

#[test]
fn an_altered_contract() {
    let attack = Attack::new();
    let path = format!("{}/{CONTRACT}", folder(87));
    let altered = replaced(&attack.ledger, &path, "</handoff>", " </handoff>");
    attack.ledger.add(&[set(&path, &*altered)]);
    attack.must_be_found(&[&format!("10 contract.altered {path}"), "10 commit.message"]);
}

#[test]
fn an_altered_record() {
    let attack = Attack::new();
    let path = format!("{}/0003.json", folder(87));
    let altered = replaced(&attack.ledger, &path, "\"attempt\": 1", "\"attempt\": 2");
    let open = attack.ledger.entry("87.3");
    attack
        .ledger
        .add(&[set(&path, &*altered), set(&open, &*altered)]);
    let found = attack.ledger.damage(&[]);
    assert!(found.iter().any(|line| line.contains(&path)), "{found:?}");
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    attack.must_be_found(&found);
}

#[test]
fn a_digest_that_does_not_fit() {
    let attack = Attack::new();
    let path = format!("{}/0003.json", folder(87));
    let text = attack.ledger.file(&path);
    let start = text.find("\"sha256\": \"").unwrap() + 11;
    let digest = &text[start..start + 64];
    let altered = text.replacen(digest, &"0".repeat(64), 1);
    let open = attack.ledger.entry("87.3");
    // In the commit that sent it, and everywhere it stands since.
    attack.ledger.rewrite(7, |_, commit| {
        let edits = [set(&path, &*altered), set(&open, &*altered)];
        commit.tree = attack.ledger.edited(&commit.tree, &edits);
        commit.message = commit.message.replace(digest, &"0".repeat(64));
    });
    let found = attack.ledger.damage(&[]);
    assert_eq!(
        found,
        [
            format!("7 record.altered {path}"),
            format!("7 open.stale {open}"),
            "7 commit.message".to_owned(),
            format!(
                "9 contract.altered {}/0003-implementer-agent-to-reviewer-agent.xml",
                folder(87)
            ),
        ]
    );
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    attack.must_be_found(&found);
}

#[test]
fn a_removed_commit() {
    let attack = Attack::new();
    attack.ledger.replay(2, &[4, 5, 6, 7, 8, 9]);
    let entry = "open/prep-agent/ready.medium.issue-to-pr.20260304T050100000.-.87.1.json";
    attack.must_be_found(&[
        &format!("3 step.illegal {}/0002.json", folder(87)),
        &format!("8 open.stale {entry}"),
    ]);
}

#[test]
fn commits_removed_from_the_end() {
    let attack = Attack::new();
    attack.ledger.assert_sound(&[]);
    let before = attack.ledger.commits()[7].id.clone();
    attack.ledger.git(&["update-ref", BRANCH, &before]);
    attack.must_be_found(&["7 history.rewritten"]);
}

#[test]
fn a_rewritten_branch() {
    let attack = Attack::new();
    attack.ledger.assert_sound(&[]);
    let good = attack.ledger.tip().id;
    attack.ledger.rewrite(1, |_, commit| {
        let (name, date) = commit.committer.split_once('<').unwrap();
        commit.committer = format!("{name}Again <{date}");
    });
    let anew = attack.ledger.git(&["rev-parse", BRANCH]);
    // The clone saw the branch as it was.
    attack.ledger.git(&["update-ref", BRANCH, &good]);
    attack.ledger.assert_sound(&[]);
    attack.ledger.git(&["update-ref", BRANCH, &anew]);
    attack.must_be_found(&["1 history.rewritten"]);
}

#[test]
fn reordered_commits() {
    let attack = Attack::new();
    attack.ledger.replay(2, &[3, 5, 4, 6, 7, 8, 9]);
    attack.must_be_found(&[&format!("5 step.backdated {}/issue.json", folder(87))]);
}

#[test]
fn an_inserted_commit() {
    let attack = Attack::new();
    // A legal step of issue 90, put between two that came after each other.
    attack.ledger.handoff(
        20,
        &["send", "-"],
        &contract("issue-manager-to-prep-agent", 90),
    );
    attack.ledger.replay(4, &[10, 5, 6, 7, 8, 9]);
    attack.must_be_found(&[&format!("6 step.backdated {}/issue.json", folder(88))]);
}

#[test]
fn a_step_that_no_protocol_allows() {
    let attack = Attack::new();
    // The claim of another ledger in which the reviewer was asked for it.
    let other = Ledger::new();
    other.handoff(20, &["claim", "89.1", "--as", "prep-agent"], "");
    let claim = other.tip();
    let record = format!("{}/0001.json", folder(89));
    let forge = |path: &str| {
        other
            .file(path)
            .replace("\"by\": \"prep-agent\"", "\"by\": \"reviewer-agent\"")
    };
    let issue = format!("{}/issue.json", folder(89));
    let (was, is) = (attack.ledger.entry("89.1"), other.entry("89.1"));
    let (forged, open, known) = (forge(&record), forge(&is), other.file(&issue));
    let tip = attack.ledger.tip();
    let mut commit = claim;
    commit.parents = vec![tip.id.clone()];
    let by = commit
        .message
        .replace("By: prep-agent", "By: reviewer-agent");
    assert_ne!(by, commit.message);
    commit.message = by;
    let edits = [
        set(&record, &*forged),
        remove(&was),
        set(&is, &*open),
        set(&issue, &*known),
    ];
    commit.tree = attack.ledger.edited(&tip.tree, &edits);
    let id = attack.ledger.write(&commit);
    attack.ledger.set_branch(&id);
    attack.must_be_found(&[&format!("10 step.illegal {record}")]);
}

#[test]
fn a_forged_author() {
    let attack = Attack::new();
    attack.ledger.rewrite(9, |_, commit| {
        let (_, date) = commit.author.split_once("> ").unwrap();
        commit.author = format!("reviewer-agent <reviewer-agent@handoff.invalid> {date}");
    });
    attack.must_be_found(&["9 commit.author"]);
}

#[test]
fn a_stray_file() {
    let attack = Attack::new();
    attack.ledger.rewrite(9, |_, commit| {
        let edits = [set("issues/89/00/89/notes.txt", "x")];
        commit.tree = attack.ledger.edited(&commit.tree, &edits);
    });
    attack.must_be_found(&["9 file.stray issues/89/00/89/notes.txt"]);
}

#[test]
fn a_stale_open_entry() {
    let attack = Attack::new();
    let first = &attack.ledger.commits()[1].id;
    let entry = &attack.ledger.entry_in(first, "87.1");
    let record = attack.ledger.file(&format!("{}/0001.json", folder(87)));
    attack.ledger.rewrite(9, |_, commit| {
        commit.tree = attack.ledger.edited(&commit.tree, &[set(entry, &*record)]);
    });
    let found = attack.ledger.damage(&[]);
    assert!(
        found
            .iter()
            .any(|line| line.ends_with("issues/89/00/89") || line.contains(entry)),
        "{found:?}"
    );
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    attack.must_be_found(&found);
}

#[test]
fn an_open_entry_that_was_removed() {
    let attack = Attack::new();
    let entry = &attack.ledger.entry("87.3");
    attack.ledger.add(&[remove(entry)]);
    let found = attack.ledger.damage(&[]);
    assert!(
        found[0].contains(entry) || found[0].contains("step.none"),
        "{found:?}"
    );
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    attack.must_be_found(&found);
}

#[test]
fn a_merge_commit() {
    let attack = Attack::new();
    let third = attack.ledger.commits()[3].id.clone();
    attack
        .ledger
        .rewrite(9, |_, commit| commit.parents.push(third.clone()));
    attack.must_be_found(&["9 history.merge"]);
}

#[test]
fn a_backdated_step() {
    let attack = Attack::new();
    attack.ledger.rewrite(9, |_, commit| {
        let (name, _) = commit.committer.rsplit_once("> ").unwrap();
        commit.committer = format!("{name}> 1772560000 +0000");
    });
    attack.must_be_found(&[&format!("9 step.backdated {}/issue.json", folder(89))]);
}

#[test]
fn a_contract_that_its_schema_of_the_time_refuses() {
    let attack = Attack::new();
    let path = format!("{}/{CONTRACT}", folder(89));
    let altered = replaced(&attack.ledger, &path, "<issue_number>89</issue_number>", "");
    attack.ledger.rewrite(9, |_, commit| {
        commit.tree = attack.ledger.edited(&commit.tree, &[set(&path, &*altered)]);
    });
    attack.must_be_found(&[
        &format!("9 field.missing {path}"),
        &format!("9 contract.altered {path}"),
    ]);
}

#[test]
fn a_protocol_that_was_weakened() {
    let attack = Attack::new();
    let path = "protocols/issue-to-pr/protocol.json";
    let altered = replaced(
        &attack.ledger,
        path,
        "\"from\": \"prep-agent\"",
        "\"from\": \"*\"",
    );
    attack.ledger.add(&[set(path, &*altered)]);
    let found = attack.ledger.damage(&[]);
    assert!(found[0].contains("protocols/issue-to-pr"), "{found:?}");
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    attack.must_be_found(&found);
}

#[test]
fn a_deleted_branch() {
    let attack = Attack::new();
    let url = attack.server_path();
    let refspec = format!(":{BRANCH}");
    let (code, said) = attack
        .ledger
        .git_any(&["push", "-q", url.to_str().unwrap(), &refspec]);
    assert_ne!(code, 0, "{said}");
    assert_eq!(attack.server.git(&["rev-parse", BRANCH]), attack.good);
    hook(
        "reference-transaction",
        &attack.ledger.path().join(".git/hooks"),
    );
    let (code, said) = attack.ledger.git_any(&["branch", "-D", "handoffs"]);
    assert_ne!(code, 0, "{said}");
    assert_eq!(attack.ledger.git(&["rev-parse", BRANCH]), attack.good);
}

#[test]
fn a_missing_object() {
    let attack = Attack::new();
    let path = format!("{}/{CONTRACT}", folder(87));
    let blob = attack
        .ledger
        .git(&["rev-parse", &format!("{BRANCH}:{path}")]);
    fs::remove_file(attack.ledger.loose(&blob)).unwrap();
    let found = attack.ledger.damage(&[]);
    assert_eq!(found[0], format!("1 object.unreadable {path}"));
}

/// Runs the program with these dates; its exit code, and what it says on stderr.
fn dated(ledger: &Ledger, author: &str, committer: &str, args: &str) -> (i32, String) {
    let dates = format!("GIT_AUTHOR_DATE={author} GIT_COMMITTER_DATE={committer}");
    let alias = format!("alias.dated=!{dates} git-handoff {args}");
    ledger.git_any(&["-c", &alias, "dated"])
}

#[test]
fn a_lease_taken_with_a_date_ahead() {
    let attack = Attack::new();
    let now = "2026-03-04T06:00:00Z";
    for ahead in ["2030-01-01T00:00:00Z", "2026-03-05T05:00:00Z"] {
        // The second is within a day: the lease ends by the later of both clocks.
        let (_, said) = dated(&attack.ledger, ahead, now, "reap");
        assert_eq!(attack.ledger.tip().id, attack.good, "{ahead}: {said}");
    }
    let claim = "claim 89.1 --as prep-agent";
    let (code, said) = dated(&attack.ledger, "2030-01-01T00:00:00Z", now, claim);
    assert!(
        code == 2 && said.contains("more than a day after"),
        "{said}"
    );
    let ahead = "2100-01-01T00:00:00Z";
    let (code, said) = dated(&attack.ledger, ahead, ahead, claim);
    assert!(
        code == 2 && said.contains("more than a day after"),
        "{said}"
    );
    // A step that was made so elsewhere.
    attack.ledger.rewrite(9, |_, commit| {
        let (name, _) = commit.author.rsplit_once("> ").unwrap();
        commit.author = format!("{name}> 4000000000 +0000");
    });
    let found = attack.ledger.damage(&[]);
    assert!(
        found
            .iter()
            .any(|line| line.starts_with("9 step.postdated")),
        "{found:?}"
    );
    // The server goes by its own clock, whatever the pusher's environment says.
    attack.ledger.git(&["update-ref", BRANCH, &attack.good]);
    attack.ledger.rewrite(9, |_, commit| {
        for person in [&mut commit.author, &mut commit.committer] {
            let (name, _) = person.rsplit_once("> ").unwrap();
            *person = format!("{name}> 4000000000 +0000");
        }
    });
    let before = attack.ledger.commits()[8].id.clone();
    attack.server.git(&["update-ref", BRANCH, &before]);
    let url = attack.server_path();
    let date = "GIT_COMMITTER_DATE='4000000000 +0000'";
    let alias = format!("alias.dated=!{date} git push -q {} {BRANCH}", url.display());
    let (code, said) = attack.ledger.git_any(&["-c", &alias, "dated"]);
    assert!(code != 0 && said.contains("step.postdated"), "{said}");
}

#[test]
fn a_postdated_step() {
    let attack = Attack::new();
    // The far end of what dates can say: no key with an end would be valid after it.
    attack.ledger.rewrite(9, |_, commit| {
        let (name, _) = commit.committer.rsplit_once("> ").unwrap();
        commit.committer = format!("{name}> 4000000000 +0000");
    });
    let step = attack.ledger.tip().id;
    let before = attack.ledger.commits()[8].id.clone();
    attack.server.git(&["update-ref", BRANCH, &before]);
    let url = attack.server_path();
    let (code, said) = attack
        .ledger
        .git_any(&["push", "-q", url.to_str().unwrap(), BRANCH]);
    assert!(code != 0 && said.contains("step.postdated"), "{said}");
    attack.ledger.git(&["update-ref", BRANCH, &before]);
    hook(
        "reference-transaction",
        &attack.ledger.path().join(".git/hooks"),
    );
    let (code, said) = attack.ledger.git_any(&["update-ref", BRANCH, &step]);
    assert!(code != 0 && said.contains("step.postdated"), "{said}");
}

/// Dates a commit's recording.
fn recorded(commit: &mut test_support::tamper::Commit, seconds: i64) {
    let (name, _) = commit.committer.rsplit_once("> ").unwrap();
    commit.committer = format!("{name}> {seconds} +0000");
}

/// Wherever it is read, it is named with its writer; what follows has the last credible time.
#[test]
fn commits_from_the_future_date_no_later_step() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let in_two_days = i64::try_from(now.unwrap().as_secs()).unwrap() + 2 * 86_400;
    for seconds in [in_two_days, 4_000_000_000, 99_999_999_999, 253_402_300_799] {
        let attack = Attack::new();
        let ledger = &attack.ledger;
        // Several in a row limit nothing, either.
        ledger.rewrite(8, |_, commit| recorded(commit, seconds));
        ledger.forget();
        let found = ["8 step.postdated", "9 step.postdated"];
        let of = |found: &[String]| -> Vec<String> {
            let words = found
                .iter()
                .map(|line| line.splitn(3, ' ').take(2).collect::<Vec<_>>());
            words.map(|words| words.join(" ")).collect()
        };
        assert_eq!(of(&ledger.damage(&[])), found, "{seconds}");
        let (_, said) = ledger.verify(&[]);
        let message = said["error"]["findings"][0]["message"].as_str().unwrap();
        assert!(message.contains("@"), "{message}");
        // The write path says so, and goes on by its own clock; so does the hook.
        attack.server.git(&[
            "fetch",
            "-q",
            ledger.path().to_str().unwrap(),
            &format!("+{BRANCH}:{BRANCH}"),
        ]);
        let note = "annotate 89 --as orchestrator --note";
        let date = "2026-03-04T05:40:00Z";
        let (code, said) = dated(ledger, date, date, &format!("{note} one"));
        assert!(
            code == 0 && said.contains("limits no later step"),
            "{code} {said}"
        );
        let (code, said) = dated(ledger, date, date, &format!("{note} two"));
        assert!(
            code == 0 && !said.contains("limits no later step"),
            "{code} {said}"
        );
        assert!(
            ledger.tip().committer.ends_with("> 1772602800 +0000"),
            "{seconds}"
        );
        assert_eq!(of(&ledger.damage(&[])), found, "{seconds}");
        let server = attack.server_path();
        ledger.git(&["push", "-q", server.to_str().unwrap(), BRANCH]);
        // A step that is dated before the last credible one is found there, too.
        let last = ledger.commits().len() - 1;
        ledger.rewrite(last, |_, commit| recorded(commit, 1_700_000_000));
        let damage = of(&ledger.damage(&[]));
        assert!(
            damage.contains(&format!("{last} step.backdated")),
            "{damage:?}"
        );
    }
}

/// Each step writes the list of an issue's folder again, and each command reads the manifest.
#[test]
fn an_issue_and_the_manifest_grow_to_an_end() {
    let ledger = Ledger::new();
    ledger.handoff(20, &["claim", "88.2", "--as", "implementer-agent"], "");
    let path = format!("{}/issue.json", folder(88));
    let full = ledger.file(&path);
    let full = full.replace("\"handoffs\": 2", "\"handoffs\": 10000");
    ledger.add(&[set(&path, full.into_bytes())]);
    let file = ledger.path().join("next.xml");
    fs::write(&file, contract("implementer-agent-to-reviewer-agent", 88)).unwrap();
    let (code, said) = ledger.git_any(&["handoff", "send", file.to_str().unwrap()]);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("10000 handoffs, the most that an issue can have"),
        "{said}"
    );
    let mut manifest = ledger.file("ledger.json");
    manifest.push_str(&" ".repeat(64 * 1024));
    ledger.add(&[set("ledger.json", manifest)]);
    let (code, said) = ledger.git_any(&["handoff", "status"]);
    assert_eq!(code, 10, "{said}");
    assert!(said.contains("ledger.json"), "{said}");
    assert_eq!(ledger.verify(&[]).0, 10);
}
