//! Git's index.

use std::fs;

use handoff_base::{ObjectFormat, ObjectId};
use handoff_git::{StagedFile, index_files};
use tempfile::TempDir;

use super::{Target, corpus};

const WORDS: &[&str] = &[
    "DIRC",
    "TREE",
    "REUC",
    "EOIE",
    "IEOT",
    "UNTR",
    "FSMN",
    "link",
    "sdir",
    "\0\0\0\x02",
    "\0\0\0\x03",
    "\0\0\0\x04",
    "\0",
    "\x7f\x7f\x7f\x7f",
    "../a",
    ".git/config",
    "a//b",
];

/// The size of the digest at the end, which git need not write.
const DIGEST: usize = 20;

pub(super) fn target() -> Target {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = corpus("index");
    for sample in &mut samples {
        sample.truncate(sample.len() - DIGEST);
    }
    Target {
        samples,
        words: WORDS,
        check: Box::new(move |bytes| check(&folder, bytes)),
    }
}

/// What libgit2 and this program take for an index has the same files.
fn check(folder: &TempDir, bytes: &[u8]) {
    let bytes = [bytes, &[0; DIGEST]].concat();
    let Some(read) = index_files(&bytes, ObjectFormat::Sha1) else {
        return;
    };
    let path = folder.path().join("index");
    fs::write(&path, &bytes).unwrap();
    let Ok(index) = git2::Index::open(&path) else {
        return;
    };
    // Others are left to git.
    let Some(mut read) = read else {
        return;
    };
    let is_file = |mode: u32| matches!(mode & 0o170_000, 0o100_000 | 0o120_000);
    let is_staged = |entry: &git2::IndexEntry| {
        let (stage, is_intended) = (entry.flags & 0x3000, entry.flags_extended & 0x2000);
        stage == 0 && is_intended == 0 && is_file(entry.mode)
    };
    let mut second: Vec<StagedFile> = index
        .iter()
        .filter(is_staged)
        .map(|entry| StagedFile {
            path: String::from_utf8_lossy(&entry.path).into_owned(),
            id: entry.id.to_string().parse::<ObjectId>().unwrap(),
        })
        .collect();
    let order = |a: &StagedFile, b: &StagedFile| {
        (&a.path, a.id.to_string()).cmp(&(&b.path, b.id.to_string()))
    };
    read.sort_by(order);
    second.sort_by(order);
    assert_eq!(read, second);
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use test_support::dice::Dice;

    use super::super::mutator::Mutator;
    use super::*;

    #[test]
    fn prove_index() {
        super::super::prove("fuzz-index", &target());
    }

    fn git(folder: &Path, args: &[&str]) -> Option<Vec<u8>> {
        let mut command = Command::new("git");
        command.arg("-C").arg(folder).args(args);
        let output = command.env("GIT_INDEX_FILE", "index").output().unwrap();
        output.status.success().then_some(output.stdout)
    }

    /// A process for each takes too long to do so for every mutant.
    #[test]
    fn git_reads_the_same() {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "--quiet"]).unwrap();
        let target = target();
        let mutator = Mutator {
            samples: &target.samples,
            words: target.words,
        };
        let mut compared = 0;
        for seed in 0..200 {
            let mutant = mutator.mutant(&mut Dice::new(seed));
            let bytes = [&mutant[..], &[0; DIGEST]].concat();
            let Some(Some(files)) = index_files(&bytes, ObjectFormat::Sha1) else {
                continue;
            };
            fs::write(folder.path().join("index"), &bytes).unwrap();
            let Some(listed) = git(folder.path(), &["ls-files", "--stage", "-z"]) else {
                continue;
            };
            // With those that are only intended to be added, which libgit2 tells apart.
            let listed: Vec<String> = String::from_utf8_lossy(&listed)
                .split_terminator('\0')
                .filter_map(|line| {
                    let (facts, path) = line.split_once('\t').unwrap();
                    let [_, id, stage] = facts.split(' ').collect::<Vec<_>>()[..] else {
                        panic!("{line}");
                    };
                    (stage == "0").then(|| format!("{id} {path}"))
                })
                .collect();
            for file in files {
                let line = format!("{} {}", file.id, file.path);
                assert!(listed.contains(&line), "seed {seed}: {line} {listed:?}");
            }
            compared += 1;
        }
        assert!(compared > 5, "{compared}");
    }
}
