//! Whatever becomes of the notes that a clone keeps for itself, what it says and writes is right.

use std::fs;
use std::path::{Path, PathBuf};

use crate::clones::Clones;
use test_support::proof::times;

/// What may become of a note.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Removed,
    Emptied,
    CutOff,
    Changed,
    /// What it said earlier.
    Earlier,
    /// Written by a program that puts it another way.
    OfAnotherVersion,
}

const FATES: [Fate; 6] = [
    Fate::Removed,
    Fate::Emptied,
    Fate::CutOff,
    Fate::Changed,
    Fate::Earlier,
    Fate::OfAnotherVersion,
];

impl Fate {
    fn befalls(self, note: &Path, earlier: &Path) {
        let mut bytes = fs::read(note).unwrap_or_default();
        match self {
            Self::Removed => {
                let _ = fs::remove_file(note);
                return;
            }
            Self::Emptied => bytes.clear(),
            Self::CutOff => bytes.truncate(bytes.len() / 2),
            Self::Changed => {
                for byte in bytes.iter_mut().step_by(5) {
                    *byte ^= 1;
                }
            }
            Self::Earlier => bytes = fs::read(earlier).unwrap_or_default(),
            Self::OfAnotherVersion => bytes = b"99 {\"tip\": \"elsewhere\"}\n".to_vec(),
        }
        fs::write(note, bytes).unwrap();
    }
}

/// The files in a folder and in those below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_note_of_a_clone_may_be_lost_spoiled_or_of_another_version() {
    let team = Clones::new();
    let (env, repo) = (&team.env, team.env.repo());
    let kept = repo.join(".git/handoff");
    // All of it is over before a lease ends.
    env.pace(1);
    let mut issue = 100;
    let mut step = || {
        issue += 1;
        let id = format!("{issue}.1");
        team.open(&repo, issue, &[]).success();
        env.claim(&id, "prep-agent").success();
        // Each of these leaves a note, or goes by one.
        env.handoff(&["verify", "--incremental"]).success();
        team.there(&["fetch"]).success();
        team.there(&["verify", "--incremental"]).success();
        env.pace(0);
        for args in [
            &["inbox", "--as", "prep-agent", "--json"][..],
            &["status", "--json", "--offline"],
            #[cfg(feature = "report")]
            &["metrics", "--json"],
            &["show", &id, "--json"],
        ] {
            let [here, there] = [env.handoff(args), team.there(args)].map(|ran| {
                let mut said = ran.json();
                // What a clone says of itself: when it asked the remote, and what it audited.
                for own in ["fresh", "corruption"] {
                    said["data"].as_object_mut().unwrap().remove(own);
                }
                said
            });
            assert_eq!(here, there, "{args:?}");
        }
        env.pace(1);
    };
    step();
    let earlier = env.root().join("earlier");
    for note in files(&kept) {
        let copy = earlier.join(note.strip_prefix(&kept).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(note, copy).unwrap();
    }
    step();
    // Two files are no such notes. Whoever has another name is another worker; and where the branch
    // was seen shows that history was written anew: a commit that never was is reported as that.
    let notes = files(&kept);
    let notes = notes
        .iter()
        .filter(|note| !note.ends_with("worker") && !note.starts_with(kept.join("seen")));
    let notes: Vec<_> = notes
        .map(|note| note.strip_prefix(&kept).unwrap())
        .collect();
    assert!(notes.len() >= 5, "{notes:?}");
    let fates = [Fate::Removed, Fate::Changed, Fate::Earlier];
    for (n, fate) in fates.into_iter().enumerate() {
        // In the short form, each note meets one of them.
        let share = if times() > 1 {
            (0, 1)
        } else {
            (n, fates.len())
        };
        for note in notes.iter().skip(share.0).step_by(share.1) {
            fate.befalls(&kept.join(note), &earlier.join(note));
            step();
        }
    }
    // All at once.
    for fate in FATES {
        for note in &notes {
            fate.befalls(&kept.join(note), &earlier.join(note));
        }
        step();
    }
    fs::remove_dir_all(&kept).unwrap();
    team.open(&repo, 99, &[]).success();
    team.there(&["fetch"]).success();
    team.assert_together();
}
