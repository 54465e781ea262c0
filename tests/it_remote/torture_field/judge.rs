//! What must be so in the end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;

use sha2::{Digest, Sha256};

use super::Field;
use super::account::{Account, Act, Told};
use test_support::remote::{assert_whole, tip};

/// A commit of the ledger, the oldest first.
struct Commit {
    id: String,
    committer: String,
    message: String,
}

impl Commit {
    fn trailers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let lines = self.message.lines();
        lines.filter_map(move |line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Insists on all that is promised.
pub(crate) fn judge(field: &Field, account: &Account) {
    let there = tip(field.env(), &field.bare);
    whole(field, &there);
    never_rewritten(field, &there);
    let commits = commits_of(field, &field.bare, "refs/heads/handoffs");
    lawful(&commits);
    acknowledged(field, account, &commits);
}

/// All have the same, and it is sound; what is the user's is as it was.
fn whole(field: &Field, there: &str) {
    let env = field.env();
    assert_whole(env, &field.bare);
    for clone in &field.clones {
        let (name, folder) = (&clone.name, &clone.folders[0]);
        assert_eq!(tip(env, folder), there, "{name}");
        assert_eq!(field.bystanders(clone), clone.before, "{name}");
        if clone.is_shallow {
            let args = ["fetch", "--full"];
            env.run(field.program(clone, 0, &args), &args, None)
                .success();
        }
        for args in [&["doctor"][..], &["verify", "--incremental"], &["verify"]] {
            let ran = env.run(field.program(clone, 0, args), args, None);
            let damage = match args[0] {
                "doctor" => ran.stdout.contains("error ledger"),
                _ => ran.status != 0,
            };
            assert!(!damage, "{name}: {}", ran.shown);
        }
        assert_whole(env, folder);
    }
}

/// Wherever the remote's branch ever was, it leads on from there.
fn never_rewritten(field: &Field, there: &str) {
    let all = field.env().git(&field.bare, &["rev-list", there]);
    let all: HashSet<&str> = all.lines().collect();
    let tips = field.tips.lock().unwrap();
    assert!(!tips.is_empty());
    for tip in &*tips {
        assert!(
            all.contains(&tip[..]),
            "{tip} was published, and taken away"
        );
    }
}

fn commits_of(field: &Field, repository: &std::path::Path, tip: &str) -> Vec<Commit> {
    let format = "--format=%H%n%cn%n%B%x00";
    let args = ["log", "--first-parent", "--reverse", format, tip];
    let log = field.env().git(repository, &args);
    let all = log.split('\0').map(str::trim_start);
    let commit = |text: &str| {
        let (id, rest) = text.split_once('\n')?;
        let (committer, message) = rest.split_once('\n')?;
        Some(Commit {
            id: id.to_owned(),
            committer: committer.to_owned(),
            message: message.to_owned(),
        })
    };
    all.filter_map(commit).collect()
}

/// Each handoff goes from the state where it is, so that it is claimed once at a time.
fn lawful(commits: &[Commit]) {
    let mut states: HashMap<&str, &str> = HashMap::new();
    let mut origins = HashSet::new();
    for commit in commits {
        for transition in commit.trailers("Transition") {
            let (id, change) = transition.split_once(' ').unwrap();
            let (from, to) = change.split_once("..").unwrap();
            let is = states.insert(id, to).unwrap_or("none");
            assert_eq!(from, is, "{}: {}", commit.id, commit.message);
        }
        for origin in commit.trailers("Synced-From") {
            assert!(origins.insert(origin), "{origin} was made again twice");
        }
    }
}

/// What each clone keeps of the steps that were refused: by commit, the message.
fn rejected(field: &Field, number: usize) -> BTreeMap<String, String> {
    let clone = &field.clones[number];
    let args = ["refused", "--limit", "0", "--json"];
    let ran = field.env().run(field.program(clone, 0, &args), &args, None);
    let mut found = BTreeMap::new();
    for kept in ran.success().json()["data"]["rejected"].as_array().unwrap() {
        assert_ne!(kept["reason"], "", "{kept:#}");
        let id = kept["commit"].as_str().unwrap().to_owned();
        let folder = &clone.folders[0];
        let message = field.env().git(folder, &["log", "-1", "--format=%B", &id]);
        found.insert(id, message);
    }
    found
}

/// Whether the claim of a clone's commit has nothing to add to the remote: the same person claimed
/// the same handoff there, by a commit that the clone did not know. It may be one that nobody was
/// told of, or another process's in the same clone.
fn claimed_elsewhere(field: &Field, clone: usize, id: &str, commits: &[Commit]) -> bool {
    let known = commits_of(field, &field.clones[clone].folders[0], id);
    let own = known.last().unwrap();
    let claims = |commit: &Commit| commit.trailers("Event").any(|event| event == "claim");
    assert!(claims(own), "{}", own.message);
    commits.iter().any(|commit| {
        claims(commit)
            && commit.committer == own.committer
            && commit.trailers("Handoff-Id").eq(own.trailers("Handoff-Id"))
            && !known.iter().any(|known| known.id == commit.id)
    })
}

/// Each step that was acknowledged is there once, or refused with a reason, and no
/// step is there twice.
fn acknowledged(field: &Field, account: &Account, commits: &[Commit]) {
    let published: HashSet<&str> = commits.iter().map(|commit| &commit.id[..]).collect();
    let origins = commits
        .iter()
        .flat_map(|commit| commit.trailers("Synced-From"));
    let origins: HashSet<&str> = origins.collect();
    let rejected: Vec<_> = (0..field.clones.len())
        .map(|n| rejected(field, n))
        .collect();
    // A contract is kept as it was sent; any other step's text is in its message.
    let args = [
        "grep",
        "-h",
        "-o",
        "sent-[0-9]*x[0-9]*z",
        "refs/heads/handoffs",
        "--",
    ];
    let args = [&args[..], &["issues/*.xml"]].concat();
    let sent = field.env().git_any(&field.bare, &args).stdout;
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for marker in sent.lines() {
        *counts.entry(marker).or_default() += 1;
    }
    for commit in commits {
        // The subject and a trailer may both have it.
        let words = commit.message.split_whitespace();
        let markers: BTreeSet<&str> = words.filter(|word| word.starts_with("did-")).collect();
        for marker in markers {
            *counts.entry(marker).or_default() += 1;
        }
    }
    let acts = account.acts();
    let mut told: BTreeMap<&str, Vec<&Act>> = BTreeMap::new();
    for act in &acts {
        if let Some(marker) = &act.marker {
            told.entry(marker).or_default().push(act);
        }
        let Some(id) = act.commit.as_deref() else {
            continue;
        };
        let is_there = published.contains(id);
        match act.told {
            Told::Published => {
                assert!(is_there, "acknowledged, and not on the remote: {act:?}");
                let kept = rejected.iter().any(|kept| kept.contains_key(id));
                assert!(!kept, "acknowledged, and refused: {act:?}");
            }
            Told::Recorded if act.is_claim => {
                let is_kept = rejected[act.clone].contains_key(id);
                let times = [is_there, origins.contains(id), is_kept];
                let times = times.iter().filter(|is| **is).count();
                let is_held = || claimed_elsewhere(field, act.clone, id, commits);
                assert!(
                    times == 1 || times == 0 && is_held(),
                    "{times} of there, made again and kept: {act:?}"
                );
            }
            _ => {}
        }
    }
    let known: BTreeSet<&str> = told.keys().copied().collect();
    assert!(counts.keys().all(|marker| known.contains(marker)));
    for (marker, acts) in told {
        let count = counts.get(marker).copied().unwrap_or(0);
        // A send that was killed and then repeated names no commit, and not every message its summary.
        let contract = fs::read(field.env().root().join(format!("{marker}.xml")));
        let digest = contract.map(|bytes| format!("{:x}", Sha256::digest(bytes)));
        let digest = digest.unwrap_or_else(|_| marker.to_owned());
        let is_kept = acts.iter().any(|act| {
            let mut kept = rejected[act.clone].iter();
            // A claim has its contract's summary in its message.
            let is_sent = marker.starts_with("sent-");
            kept.any(|(id, message)| {
                let is_its = message.contains(marker) || message.contains(&digest);
                act.commit.as_ref() == Some(id)
                    || (is_its && (!is_sent || message.contains(" none..")))
            })
        });
        assert!(count <= 1, "{count} times there: {acts:?}");
        let is = |told: fn(&Told) -> bool| acts.iter().any(|act| told(&act.told));
        if is(|told| *told == Told::Published) {
            assert_eq!(count, 1, "acknowledged, and not on the remote: {acts:?}");
        }
        if is(|told| *told == Told::Recorded) {
            assert!(count == 1 || is_kept, "recorded, and lost: {acts:?}");
        }
        if acts.len() == 1 {
            assert!(
                count == 0 || !is_kept,
                "there, and kept as refused: {acts:?}"
            );
        }
        if acts.iter().all(|act| matches!(act.told, Told::Refused(..))) {
            assert!(count == 0 && !is_kept, "not written, and there: {acts:?}");
        }
    }
}
