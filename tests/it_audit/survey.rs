//! A survey says what the records say, whichever way it is made, and whatever became of
//! the note that the last one left.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use handoff::git::Repository;
use handoff::ledger::{DEFAULT_BRANCH, HandoffSurvey, IssueSurvey, Ledger, Survey};
use handoff::model::{Issue, IssueStatus, Record, View, layout};
use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::exchange::lived;
use test_support::hooks::every_step;
use test_support::team::BUILT_IN;
#[cfg(feature = "report")]
use test_support::time::{RESEARCH, WRITER, answers, asks, traced};

/// The survey of the ledger in the current folder, on this many threads.
fn survey(threads: usize) -> Survey {
    let repository = Repository::open_here().unwrap();
    let ledger = Ledger::new(&repository, DEFAULT_BRANCH).unwrap();
    let tip = ledger.tip().unwrap();
    let survey = ledger.survey(&tip, threads).unwrap();
    assert_eq!(survey.tip, tip.commit());
    survey
}

/// The records of the ledger in the current folder, read one after the other.
struct Records(Vec<(Issue, Vec<Record>)>);

impl Records {
    fn read() -> Self {
        let repository = Repository::open_here().unwrap();
        let ledger = Ledger::new(&repository, DEFAULT_BRANCH).unwrap();
        let tip = ledger.tip().unwrap();
        let mut found = Vec::new();
        for key in tip.issues().unwrap() {
            let folder = tip.issue(&key).unwrap();
            let read = (folder.issue().unwrap().unwrap(), folder.records().unwrap());
            let one = folder.survey().unwrap().unwrap();
            let one: Vec<IssueSurvey<'_>> = one.iter().collect();
            assert_eq!(one, [IssueSurvey::of(&read.0, &read.1)], "{key}");
            found.push(read);
        }
        found.sort_by_key(|(issue, _)| match issue.issue.as_str().parse::<u64>() {
            Ok(number) => (0, number, String::new()),
            Err(_) => (1, 0, issue.issue.to_string()),
        });
        Self(found)
    }

    /// What a survey must say.
    fn summaries(&self) -> Vec<IssueSurvey<'_>> {
        let all = self.0.iter();
        all.map(|(issue, records)| IssueSurvey::of(issue, records))
            .collect()
    }

    fn assert_is(&self, survey: &Survey) {
        let found: Vec<IssueSurvey<'_>> = survey.issues.iter().collect();
        assert_eq!(found, self.summaries());
        assert_eq!(survey.issues.len(), found.len());
        for issue in &found {
            assert_eq!(survey.issues.get(&issue.key).as_ref(), Some(issue));
        }
        let needs = |issue: &&IssueSurvey<'_>| {
            let open = |handoff: &HandoffSurvey<'_>| !handoff.state.is_terminal();
            issue.status == IssueStatus::Open
                || !issue.awaiting.is_empty()
                || issue.handoffs.iter().any(open)
        };
        let active: Vec<IssueSurvey<'_>> = survey.issues.active().collect();
        assert_eq!(
            active,
            found.iter().filter(needs).cloned().collect::<Vec<_>>()
        );
    }

    /// Surveys on two threads, and compares.
    fn check(&self) {
        self.assert_is(&survey(2));
    }
}

/// Goes into a repository.
fn enter(repo: &Path) -> PathBuf {
    std::env::set_current_dir(repo).unwrap();
    repo.join(".git/handoff/survey/refs/heads/handoffs")
}

#[cfg(feature = "report")]
/// How many handoffs `metrics` and `verify` count, and how many of them are notes.
#[track_caller]
fn counted(env: &TestEnvironment) -> (u64, u64) {
    let figures = &env.data(&["metrics"])["figures"];
    let count = |name: &str| figures[name].as_u64().unwrap();
    assert_eq!(env.data(&["verify"])["handoffs"], count("handoffs"));
    let states = figures["states"].as_object().unwrap().values();
    let in_states: u64 = states.map(|number| number.as_u64().unwrap()).sum();
    assert_eq!(in_states + count("notes"), count("handoffs"));
    (count("handoffs"), count("notes"))
}

#[cfg(feature = "report")]
#[test]
fn metrics_and_verify_count_the_same_handoffs() {
    let mut notes = 0;
    for protocol in BUILT_IN {
        notes += counted(&lived(protocol)).1;
    }
    assert!(notes > 0);
    // Cancelled and rejected work, a second protocol, and an archive.
    let env = every_step();
    env.handoff(&["protocol", "add", "delegation"]).success();
    env.pace(1);
    env.send(asks(WRITER, RESEARCH, &[])).success();
    env.claim(&traced(1), RESEARCH).success();
    env.send(answers(RESEARCH, "resolved", &[])).success();
    let before = counted(&env);
    env.wait_minutes(60);
    env.handoff(&["archive", "--older", "1m"]).success();
    assert_eq!(counted(&env), before);
}

#[test]
fn a_survey_says_what_the_records_say() {
    let _own = crate::FOLDER.lock();
    let mut handoffs = 0;
    for protocol in BUILT_IN {
        let env = lived(protocol);
        let note = enter(&env.repo());
        let records = Records::read();
        records.check();
        // From the note alone, and anew.
        records.check();
        fs::remove_file(&note).unwrap();
        env.git(&env.repo(), &["gc", "--quiet"]);
        records.assert_is(&survey(1));
        handoffs += records.0.iter().map(|(_, all)| all.len()).sum::<usize>();
    }
    assert!(handoffs > 40, "{handoffs}");
    what_changed_is_read(&every_step());
}

fn what_changed_is_read(env: &TestEnvironment) {
    let note = enter(&env.repo());
    let first = Records::read();
    first.check();
    let summaries = first.summaries();
    let handoffs = summaries.iter().flat_map(|i| &i.handoffs);
    let changes = handoffs.flat_map(|h| &h.changes);
    let events: BTreeSet<_> = changes.filter_map(|c| Some(c.event?.as_str())).collect();
    assert!(events.len() > 8, "{events:?}");
    let old = fs::read(&note).unwrap();

    // A new issue, and another step in an old one: only what changed is read.
    env.send(opening(1000)).success();
    env.send(opening(92)).success();
    env.claim("1000.1", "prep-agent").success();
    let records = Records::read();
    assert_ne!(summaries, records.summaries());
    let unchanged = &summaries[0].key;
    assert!(unchanged.as_str() != "1000" && unchanged.as_str() != "92");
    let path = format!("handoffs:{}/0001.json", layout::issue_folder(unchanged));
    let id = env.git(&env.repo(), &["rev-parse", &path]);
    let (folder, file) = id.trim().split_at(2);
    let object = env.repo().join(".git/objects").join(folder).join(file);
    let elsewhere = env.root().join("object");
    fs::rename(&object, &elsewhere).unwrap();
    records.check();
    fs::rename(&elsewhere, &object).unwrap();
    let new = fs::read(&note).unwrap();
    assert_ne!(new, old);
    // Where nothing changed, nothing is written.
    let modified = || fs::metadata(&note).unwrap().modified().unwrap();
    let before = modified();
    records.check();
    assert_eq!(modified(), before);

    spoiled(&note, &old, &new, &records);

    // A branch that was written anew is read as it is now.
    survey(2);
    let before = env.git(&env.repo(), &["rev-parse", "handoffs~3"]);
    env.git(
        &env.repo(),
        &["update-ref", "refs/heads/handoffs", before.trim()],
    );
    first.check();
    assert_eq!(Records::read().summaries(), summaries);
}

/// Whatever became of a note, the survey says what the records say. `old` is the note before the
/// last change, `new` the one after it.
fn spoiled(note: &Path, old: &[u8], new: &[u8], records: &Records) {
    let check = |bytes: &[u8]| {
        fs::write(note, bytes).unwrap();
        records.check();
        // What it wrote can be used, and says the same.
        records.check();
    };
    // In the head, and everywhere.
    for at in (0..80).step_by(7).chain((0..new.len()).step_by(151)) {
        let mut bytes = new.to_vec();
        bytes[at] ^= 1 << (at % 8);
        check(&bytes);
    }
    // Cut off, as by a writer that was killed or a full disk.
    for length in (0..new.len()).step_by(new.len() / 9).chain([new.len() - 1]) {
        check(&new[..length]);
    }
    // Of another file, twice, longer, and of an earlier state.
    for bytes in [
        [new, new].concat(),
        [new, b"more"].concat(),
        [&new[..new.len() / 2], old].concat(),
        old.to_vec(),
        vec![0; new.len()],
        Vec::new(),
    ] {
        check(&bytes);
    }
    // Of a program with another version.
    let version = new.windows(6).position(|w| w.starts_with(b"0.1."));
    if let Some(at) = version {
        let mut bytes = new.to_vec();
        bytes[at] = b'9';
        check(&bytes);
    }
    fs::remove_file(note).unwrap();
    fs::create_dir(note).unwrap();
    records.check();
    fs::remove_dir(note).unwrap();
}

#[cfg(feature = "report")]
/// What the note says after many steps, each with a survey, is what a fresh clone says; also if
/// some surveys were killed and some ran at once.
#[test]
fn a_note_of_many_steps_says_what_a_fresh_clone_says() {
    let env = every_step();
    let notes = env.repo().join(".git/handoff");
    let note = notes.join("survey/refs/heads/handoffs");
    // Only this clone was audited.
    fs::remove_dir_all(notes.join("audited")).unwrap();
    let compare = |name: &str| {
        let clone = env.root().join(name);
        env.git(env.root(), &["clone", "-q", "-b", "handoffs", "repo", name]);
        for args in [
            &["metrics", "--json", "--by", "route"][..],
            &["alerts", "--json"],
            &["metrics", "--format", "openmetrics"],
        ] {
            let own = env.handoff(args);
            let fresh = env.handoff_in(&clone, args);
            assert_eq!(own.stdout, fresh.stdout, "{name}: {args:?}");
        }
    };
    // Both clones read at the same time.
    env.pace(0);
    compare("first");
    for number in 2000..2012 {
        env.send(opening(number)).success();
        if number % 3 == 0 {
            let cut = fs::read(&note).unwrap();
            fs::write(&note, &cut[..cut.len() - 5]).unwrap();
        }
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| env.handoff(&["metrics"]).success());
            }
        });
        env.claim(&format!("{number}.1"), "prep-agent").success();
        env.handoff(&["metrics"]).success();
    }
    compare("last");
}
