//! The floor under `send`: the same objects through git2 alone, without a check, as a whole process.
//!
//! `bare_writes DIR REF` writes one step of `bench_tool steps` to the repository of the current folder.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use git2::build::TreeUpdateBuilder;
use git2::{FileMode, Repository, Signature, Time};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (dir, refname) = (arguments.next().unwrap(), arguments.next().unwrap());
    let dir = Path::new(&dir);
    let text = |name: &str| fs::read_to_string(dir.join(name)).unwrap();

    git2::opts::strict_object_creation(false);
    let repository = Repository::open_from_env().unwrap();
    let tip = repository.refname_to_id(&refname).unwrap();
    let parent = repository.find_commit(tip).unwrap();
    let mut blobs = Vec::new();
    let mut trees = TreeUpdateBuilder::new();
    for line in text("edits").lines() {
        let (number, path) = line.split_once('\t').unwrap();
        let number: usize = number.parse().unwrap();
        if number == blobs.len() {
            let bytes = fs::read(dir.join(format!("blob-{number}"))).unwrap();
            blobs.push(repository.blob(&bytes).unwrap());
        }
        trees.upsert(path, blobs[number], FileMode::Blob);
    }
    let tree = trees
        .create_updated(&repository, &parent.tree().unwrap())
        .unwrap();
    let tree = repository.find_tree(tree).unwrap();
    let author = text("author");
    let mut author = author.lines();
    let (name, email, date) = (
        author.next().unwrap(),
        author.next().unwrap(),
        author.next().unwrap(),
    );
    let seconds: i64 = date.split(' ').next().unwrap().parse().unwrap();
    let author = Signature::new(name, email, &Time::new(seconds, 0)).unwrap();
    // No step is recorded before the one that it follows, whatever its author's date.
    let committer = Signature::now("Bench", "bench@handoff.invalid").unwrap();
    let commit = repository
        .commit(
            None,
            &author,
            &committer,
            &text("message"),
            &tree,
            &[&parent],
        )
        .unwrap();
    repository
        .reference_matching(&refname, commit, true, tip, "bare writes")
        .unwrap();
}
