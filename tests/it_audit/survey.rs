//! A survey says what the records say, whichever way it is made, and whatever became of
//! the note that the last one left.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use handoff_git::Repository;
use handoff_ledger::{DEFAULT_BRANCH, IssueSurvey, Ledger};
use handoff_model::View;
use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::exchange::lived;
use test_support::hooks::every_step;
use test_support::team::BUILT_IN;

/// The survey of the ledger in the current folder, on this many threads.
fn survey(threads: usize) -> Vec<IssueSurvey> {
    let repository = Repository::open_here().unwrap();
    let ledger = Ledger::new(&repository, DEFAULT_BRANCH).unwrap();
    let tip = ledger.tip().unwrap();
    let survey = ledger.survey(&tip, threads).unwrap();
    assert_eq!(survey.tip, tip.commit());
    survey.issues
}

/// What the records of the ledger in the current folder say, read one after the other.
fn read() -> Vec<IssueSurvey> {
    let repository = Repository::open_here().unwrap();
    let ledger = Ledger::new(&repository, DEFAULT_BRANCH).unwrap();
    let tip = ledger.tip().unwrap();
    let mut found: Vec<IssueSurvey> = Vec::new();
    for key in tip.issues().unwrap() {
        let folder = tip.issue(&key).unwrap();
        let issue = folder.issue().unwrap().unwrap();
        let told = IssueSurvey::of(&issue, &folder.records().unwrap());
        assert_eq!(folder.survey().unwrap().unwrap(), told, "{key}");
        found.push(told);
    }
    found.sort_by(|a, b| {
        let size = |i: &IssueSurvey| match i.key.as_str().parse::<u64>() {
            Ok(number) => (0, number, String::new()),
            Err(_) => (1, 0, i.key.to_string()),
        };
        size(a).cmp(&size(b))
    });
    found
}

/// Goes into a repository.
fn enter(repo: &Path) -> PathBuf {
    std::env::set_current_dir(repo).unwrap();
    repo.join(".git/handoff/survey/refs/heads/handoffs")
}

#[test]
fn a_survey_says_what_the_records_say() {
    let _own = crate::FOLDER.lock();
    let mut handoffs = 0;
    for protocol in BUILT_IN {
        let env = lived(protocol);
        let note = enter(&env.repo());
        let told = read();
        assert_eq!(survey(2), told, "{protocol}");
        // From the note alone, and anew.
        assert_eq!(survey(2), told, "{protocol}");
        fs::remove_file(&note).unwrap();
        env.git(&env.repo(), &["gc", "--quiet"]);
        assert_eq!(survey(1), told, "{protocol}");
        handoffs += told.iter().map(|i| i.handoffs.len()).sum::<usize>();
    }
    assert!(handoffs > 40, "{handoffs}");
    what_changed_is_read(&every_step());
}

fn what_changed_is_read(env: &TestEnvironment) {
    let note = enter(&env.repo());
    let first = survey(2);
    assert!(!first.is_empty());
    let events: BTreeSet<_> = first
        .iter()
        .flat_map(|i| &i.handoffs)
        .flat_map(|h| &h.changes)
        .filter_map(|c| c.event)
        .map(|e| e.as_str())
        .collect();
    assert!(events.len() > 8, "{events:?}");
    let old = fs::read(&note).unwrap();

    // A new issue, and another step in an old one.
    env.send(opening(1000)).success();
    env.send(opening(92)).success();
    env.claim("1000.1", "prep-agent").success();
    let told = read();
    assert_ne!(first, told);
    assert_eq!(survey(2), told);
    let new = fs::read(&note).unwrap();
    assert_ne!(old, new);
    // Where nothing changed, nothing is written.
    let modified = || fs::metadata(&note).unwrap().modified().unwrap();
    let before = modified();
    assert_eq!(survey(2), told);
    assert_eq!(modified(), before);

    // What is no note of this branch counts for nothing.
    let middle = new.len() / 2;
    let flipped = |at: usize| {
        let mut bytes = new.clone();
        bytes[at] ^= 1;
        bytes
    };
    for bytes in [
        Vec::new(),
        new[..middle].to_vec(),
        [&new[..], b"more"].concat(),
        flipped(0),
        flipped(8),
        flipped(middle),
        flipped(new.len() - 1),
        vec![0; new.len()],
        old.clone(),
    ] {
        fs::write(&note, bytes).unwrap();
        assert_eq!(survey(2), told);
        assert_eq!(fs::read(&note).unwrap(), new);
    }
    fs::remove_file(&note).unwrap();
    fs::create_dir(&note).unwrap();
    assert_eq!(survey(2), told);
    fs::remove_dir(&note).unwrap();

    // A branch that was written anew is read as it is now.
    survey(2);
    let before = env.git(&env.repo(), &["rev-parse", "handoffs~3"]);
    env.git(
        &env.repo(),
        &["update-ref", "refs/heads/handoffs", before.trim()],
    );
    assert_eq!(survey(2), first);
    assert_eq!(read(), first);
}
