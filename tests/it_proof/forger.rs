//! Forged steps: commits, trees and blobs of legal steps with a byte, a header, an order, a mode, a
//! name, a second entry or a chain of folders changed. What the judge accepts, git accepts, reads as
//! the judge does, and has the bytes that the program writes.
//!
//! A commit is judged against its parent's tree alone, so that a whole batch is one line of
//! history: before each forged step is a commit that puts the tree back. A sample of each batch goes
//! through the hook and through `verify`.
#![allow(clippy::too_many_lines, reason = "the kinds of forgery are one table")]
#![allow(
    clippy::disallowed_methods,
    reason = "objects are forged, and the judge works in the current folder"
)]

use std::collections::HashSet;
use std::path::Path;

use chrono::{TimeDelta, Utc};
use git2::{ObjectType, Odb, Oid, Repository};
use handoff::ledger::{Audit, AuditScope};
use test_support::dice::Dice;
use test_support::hooks::every_step;
use test_support::proof::Proof;
use test_support::{TestEnvironment, repository_kind};

/// How many forged steps are judged at once.
const BATCH: u32 = 500;

/// A legal step.
struct Step {
    raw: Vec<u8>,
    parent: Oid,
    tree: Oid,
    /// The tree before it, and when that was recorded, as it is stored.
    before: Oid,
    recorded: String,
    /// The files that it writes.
    paths: Vec<String>,
}

/// A forged step that can be read.
struct Forged {
    what: &'static str,
    id: Oid,
    raw: Vec<u8>,
    /// The commit before it, and the step's own.
    after: Oid,
    parent: Oid,
    /// Whether it is the step itself.
    legal: bool,
}

fn raw(odb: &Odb<'_>, id: Oid) -> Vec<u8> {
    odb.read(id).unwrap().data().to_vec()
}

fn steps(repository: &Repository, tip: Oid) -> Vec<Step> {
    let odb = repository.odb().unwrap();
    let mut next = repository.find_commit(tip).unwrap();
    let mut steps = Vec::new();
    while let Ok(parent) = next.parent(0) {
        let (old, new) = (parent.tree().unwrap(), next.tree().unwrap());
        let diff = repository.diff_tree_to_tree(Some(&old), Some(&new), None);
        let paths = diff
            .unwrap()
            .deltas()
            .filter_map(|delta| {
                let path = delta.new_file().path()?.to_str()?.to_owned();
                new.get_path(Path::new(&path)).ok().map(|_| path)
            })
            .collect();
        let text = String::from_utf8(raw(&odb, parent.id())).unwrap();
        let recorded = text.lines().find(|line| line.starts_with("committer "));
        steps.push(Step {
            raw: raw(&odb, next.id()),
            parent: parent.id(),
            tree: new.id(),
            before: old.id(),
            recorded: recorded.unwrap().to_owned(),
            paths,
        });
        next = parent;
    }
    steps
}

fn index(dice: &mut Dice, length: usize) -> usize {
    usize::try_from(dice.below(u64::try_from(length.max(1)).unwrap())).unwrap()
}

fn flipped(dice: &mut Dice, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if !bytes.is_empty() {
        let at = index(dice, bytes.len());
        bytes[at] ^= 1 << dice.below(8);
    }
    bytes
}

/// A byte set in, taken out or doubled.
fn shifted(dice: &mut Dice, bytes: &[u8]) -> Vec<u8> {
    const ODD: &[u8] = b"\0\t \n\r<>0+-.\x7f\xff\xc2";
    let at = index(dice, bytes.len());
    let mut bytes = bytes.to_vec();
    match dice.below(3) {
        0 if at < bytes.len() => drop(bytes.remove(at)),
        1 if at < bytes.len() => bytes.insert(at, bytes[at]),
        _ => bytes.insert(at, *dice.one(ODD)),
    }
    bytes
}

/// Changes a commit; its second line, which names its parent, mostly stays.
fn forged_commit(dice: &mut Dice, raw: &str) -> (&'static str, Vec<u8>) {
    let (header, message) = raw.split_once("\n\n").unwrap();
    let mut lines: Vec<Vec<u8>> = header
        .lines()
        .map(|line| line.as_bytes().to_vec())
        .collect();
    let at = [0, 2, 3][index(dice, 3)];
    let join =
        |lines: &[Vec<u8>], message: &[u8]| [&lines.join(&b'\n'), &b"\n\n"[..], message].concat();
    let replaced = |text: &[u8], from: &str, to: &str| {
        String::from_utf8(text.to_vec())
            .unwrap()
            .replacen(from, to, 1)
            .into_bytes()
    };
    let zone = *dice.one(&[
        "-0000", "+9999", "+1460", "0000", "+00", "", "+2400", "-1200", "+0545",
    ]);
    let extra = *dice.one(&[
        "author Else <e@x> 1 +0000",
        "committer Else <e@x> 1 +0000",
        "gpgsig ",
        "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----",
        "gpgsig -----BEGIN X-----\n -----END X-----\n more",
        "gpgsig-sha256 x",
        "encoding UTF-8",
        "mergetag object x",
        " folded",
        "x",
        "",
    ]);
    let what = match dice.below(12) {
        0 => {
            lines[at] = flipped(dice, &lines[at]);
            "byte of a header"
        }
        1 => {
            lines[at] = shifted(dice, &lines[at]);
            "length of a header"
        }
        2 => {
            let line = lines[at].clone();
            lines.insert(index(dice, lines.len() + 1), line);
            "second header"
        }
        3 => {
            let other = index(dice, lines.len());
            lines.swap(at, other);
            "order of headers"
        }
        4 => {
            lines.insert(2 + index(dice, lines.len() - 1), extra.as_bytes().to_vec());
            "another header"
        }
        5 => {
            let at = 2 + index(dice, 2);
            lines[at] = replaced(&lines[at], "+0000", zone);
            "zone"
        }
        6 => {
            let time = *dice.one(&["> 0", "> -", ">  ", "> +", "> 9", ">"]);
            let at = 2 + index(dice, 2);
            lines[at] = replaced(&lines[at], "> ", time);
            "time"
        }
        7 => {
            return (
                "byte of the message",
                join(&lines, &flipped(dice, message.as_bytes())),
            );
        }
        8 => {
            return (
                "length of the message",
                join(&lines, &shifted(dice, message.as_bytes())),
            );
        }
        9 => {
            lines[0] = replaced(&lines[0].to_ascii_uppercase(), "TREE", "tree");
            "case of an id"
        }
        10 => {
            let name = *dice.one(&[
                "committer Robin Jr. <r@x>",
                "committer é <>",
                "committer R\u{a0} <a b>",
                "committer  R <x>",
                "committer R.<x>",
            ]);
            let end = String::from_utf8(lines[3].clone()).unwrap();
            lines[3] = format!("{name}{}", &end[end.rfind('>').unwrap() + 1..]).into_bytes();
            "name"
        }
        _ => {
            return (
                "trailer",
                join(
                    &lines,
                    format!("{message}Made-Offline: 0123456789abcdef\n").as_bytes(),
                ),
            );
        }
    };
    (what, join(&lines, message.as_bytes()))
}

/// A folder's entries: mode, name, id.
type Entry = (Vec<u8>, Vec<u8>, Vec<u8>);

fn entries(mut tree: &[u8]) -> Vec<Entry> {
    let mut found = Vec::new();
    let length = repository_kind::digits() / 2;
    while let Some(space) = tree.iter().position(|&b| b == b' ') {
        let nul = tree.iter().position(|&b| b == 0).unwrap();
        found.push((
            tree[..space].to_vec(),
            tree[space + 1..nul].to_vec(),
            tree[nul + 1..=nul + length].to_vec(),
        ));
        tree = &tree[nul + 1 + length..];
    }
    found
}

fn stored(entries: &[Entry]) -> Vec<u8> {
    let parts = entries
        .iter()
        .map(|(mode, name, id)| [&mode[..], b" ", name, b"\0", id].concat());
    parts.collect::<Vec<_>>().concat()
}

fn forged_tree(dice: &mut Dice, odb: &Odb<'_>, tree: &[u8]) -> (&'static str, Vec<u8>) {
    let mut all = entries(tree);
    let (at, other) = (index(dice, all.len()), index(dice, all.len()));
    let name = *dice.one(&[
        ".git",
        "..",
        ".",
        "a",
        "Issues",
        "issue.json",
        "x/y",
        "",
        "zz",
        "GIT~1",
        "\u{fffd}",
    ]);
    let what = match dice.below(10) {
        0 => return ("byte of a tree", flipped(dice, tree)),
        1 => return ("length of a tree", shifted(dice, tree)),
        2 => {
            all.swap(at, other);
            "order of entries"
        }
        3 => {
            let entry = all[at].clone();
            all.insert(other, entry);
            "second entry"
        }
        4 => {
            let modes: [&[u8]; 7] = [
                b"040000", b"40000", b"100755", b"120000", b"160000", b"0100644", b"100664",
            ];
            all[at].0 = dice.one(&modes).to_vec();
            "mode"
        }
        5 => {
            all[at].1 = shifted(dice, &all[at].1.clone())
                .into_iter()
                .filter(|b| *b != 0)
                .collect();
            "name of an entry"
        }
        6 => {
            drop(all.remove(at));
            "missing entry"
        }
        7 => {
            all[at].2 = all[other].2.clone();
            "object of an entry"
        }
        _ => {
            let mut id = odb.write(ObjectType::Tree, b"").unwrap();
            for _ in 0..dice.below(30) {
                let chain = stored(&[(b"40000".to_vec(), b"a".to_vec(), id.as_bytes().to_vec())]);
                id = odb.write(ObjectType::Tree, &chain).unwrap();
            }
            let entry = (
                b"40000".to_vec(),
                name.as_bytes().to_vec(),
                id.as_bytes().to_vec(),
            );
            all.insert(other, entry);
            all.sort_by_key(|(mode, name, _)| {
                [&name[..], if mode == b"40000" { b"/" } else { b"" }].concat()
            });
            "empty folders"
        }
    };
    (what, stored(&all))
}

/// The step's tree with one of its folders or files changed.
fn forged_root(dice: &mut Dice, odb: &Odb<'_>, step: &Step) -> (&'static str, Oid) {
    let path: Vec<&str> = dice.one(&step.paths).split('/').collect();
    // The folders on the way, the root first.
    let mut way = vec![(step.tree, raw(odb, step.tree))];
    for name in &path[..path.len() - 1] {
        let inside = entries(&way[way.len() - 1].1);
        let entry = inside
            .iter()
            .find(|entry| entry.1 == name.as_bytes())
            .unwrap();
        let id = Oid::from_bytes(&entry.2).unwrap();
        way.push((id, raw(odb, id)));
    }
    let (what, mut depth, mut id) = if dice.percent(25) {
        let inside = entries(&way[way.len() - 1].1);
        let name = path[path.len() - 1].as_bytes();
        let old = Oid::from_bytes(&inside.iter().find(|entry| entry.1 == name).unwrap().2).unwrap();
        let bytes = raw(odb, old);
        let bytes = if dice.percent(50) {
            flipped(dice, &bytes)
        } else {
            shifted(dice, &bytes)
        };
        (
            "blob",
            way.len(),
            odb.write(ObjectType::Blob, &bytes).unwrap(),
        )
    } else {
        let depth = index(dice, way.len());
        let (what, bytes) = forged_tree(dice, odb, &way[depth].1);
        (what, depth, odb.write(ObjectType::Tree, &bytes).unwrap())
    };
    while depth > 0 {
        depth -= 1;
        let mut above = entries(&way[depth].1);
        let entry = above
            .iter_mut()
            .find(|entry| entry.1 == path[depth].as_bytes())
            .unwrap();
        entry.2 = id.as_bytes().to_vec();
        id = odb.write(ObjectType::Tree, &stored(&above)).unwrap();
    }
    (what, id)
}

/// A line of forged steps after the ledger's tip: its end, those that can be read, and how many
/// can't.
fn forge(
    repository: &Repository,
    tip: Oid,
    dice: &mut Dice,
    steps: &[Step],
) -> (Oid, Vec<Forged>, u64) {
    let odb = repository.odb().unwrap();
    let mut last = tip;
    let (mut all, mut unreadable) = (Vec::new(), 0);
    for number in 0..BATCH {
        let step = dice.one(steps);
        let back = format!(
            "tree {}\nparent {last}\nauthor A <a> 1 +0000\n{}\n\nBack\n",
            step.before, step.recorded
        );
        let after = odb.write(ObjectType::Commit, back.as_bytes()).unwrap();
        last = after;
        let own = String::from_utf8(step.raw.clone()).unwrap();
        let own = own.replacen(&step.parent.to_string(), &after.to_string(), 1);
        let (what, bytes) = match dice.below(100) {
            _ if number % 25 == 0 => ("nothing", own.clone().into_bytes()),
            0..45 => forged_commit(dice, &own),
            _ => {
                let (what, tree) = forged_root(dice, &odb, step);
                (
                    what,
                    own.replacen(&step.tree.to_string(), &tree.to_string(), 1)
                        .into_bytes(),
                )
            }
        };
        let id = odb.write(ObjectType::Commit, &bytes).unwrap();
        let read = repository.find_commit(id);
        if read.is_ok_and(|commit| commit.parent_id(0).ok() == Some(after)) {
            last = id;
            let legal = bytes == own.as_bytes();
            all.push(Forged {
                what,
                id,
                raw: bytes,
                after,
                parent: step.parent,
                legal,
            });
        } else {
            unreadable += 1;
        }
    }
    (last, all, unreadable)
}

fn our(id: Oid) -> handoff::base::ObjectId {
    id.to_string().parse().unwrap()
}

/// The forged steps that the judge accepts.
fn accepted<'f>(
    judge: &handoff::git::Repository,
    tip: Oid,
    last: Oid,
    all: &'f [Forged],
) -> Vec<&'f Forged> {
    let scope = AuditScope {
        issue: None,
        since: Some(our(tip)),
        tally: None,
        now: chrono::Utc::now().into(),
    };
    let audit = Audit::run(judge, our(last), scope, 2).unwrap();
    let errors = audit.findings.iter().filter(|finding| finding.is_error());
    let refused: HashSet<String> = errors
        .filter_map(|finding| finding.commit.clone())
        .collect();
    assert!(
        audit
            .findings
            .iter()
            .all(|f| f.code.to_string() != "history.broken")
    );
    all.iter()
        .filter(|forged| !refused.contains(&forged.id.to_string()))
        .collect()
}

/// What git says of the accepted ones: who made them, and that they are whole.
fn git_agrees(
    env: &TestEnvironment,
    judge: &handoff::git::Repository,
    repository: &Repository,
    accepted: &[&Forged],
) {
    let repo = env.repo();
    let ids: String = accepted
        .iter()
        .map(|forged| format!("{}\n", forged.id))
        .collect();
    let list = repo.join("accepted");
    std::fs::write(&list, &ids).unwrap();
    let format = "--format=%H%x01%T%x01%P%x01%an%x01%ae%x01%ad%x01%cn%x01%ce%x01%cd";
    let log =
        format!("alias.told=!git log --no-walk=unsorted --date=raw {format} --stdin <accepted");
    let told = env.git(&repo, &["-c", &log, "told"]);
    assert_eq!(told.lines().count(), accepted.len());
    for (forged, line) in accepted.iter().zip(told.lines()) {
        let what = forged.what;
        let fields: Vec<&str> = line.split('\u{1}').collect();
        let [id, tree, parent, an, ae, ad, cn, ce, cd] = fields[..] else {
            panic!("{what}: {line}");
        };
        assert_eq!(id, forged.id.to_string());
        let commit = judge.commit(our(forged.id)).unwrap();
        for (person, [name, email, date]) in [
            (&commit.author, [an, ae, ad]),
            (&commit.committer, [cn, ce, cd]),
        ] {
            assert_eq!(
                (&*person.name, &*person.email),
                (name, email),
                "{what} {id}"
            );
            let at = format!("{} {}", person.at.timestamp(), person.at.format("%z"));
            assert_eq!(at, date, "{what} {id}");
        }
        // The bytes, made again from what git reads.
        let again = format!(
            "tree {tree}\nparent {parent}\nauthor {an} <{ae}> {ad}\ncommitter {cn} <{ce}> {cd}\n"
        );
        let (start, rest) = forged.raw.split_at(again.len());
        assert_eq!(String::from_utf8_lossy(start), again, "{what} {id}");
        let text = String::from_utf8(rest.to_vec()).unwrap();
        let signed = ["gpgsig ", "gpgsig-sha256 "]
            .iter()
            .any(|start| text.starts_with(&format!("{start}-----BEGIN ")))
            && text.contains("\n\n");
        assert!(text.starts_with('\n') || signed, "{what} {id}: {text}");
        assert!(!text.contains('\0'), "{what} {id}");
        // The tree, made again from its files.
        let format = repository.object_format();
        let tree = Oid::from_str_ext(tree, format).unwrap();
        let mut files = git2::Index::new_ext(format).unwrap();
        files
            .read_tree(&repository.find_tree(tree).unwrap())
            .unwrap();
        assert_eq!(
            files.write_tree_to(repository).unwrap(),
            tree,
            "{what} {id}"
        );
    }
}

/// Copies a tree with all that it names.
fn copy_tree(from: &Odb<'_>, to: &Odb<'_>, tree: Oid) {
    let bytes = raw(from, tree);
    for (mode, _, id) in entries(&bytes) {
        let id = Oid::from_bytes(&id).unwrap();
        if mode == b"40000" {
            copy_tree(from, to, id);
        } else if !to.exists(id) && from.exists(id) {
            to.write(ObjectType::Blob, &raw(from, id)).unwrap();
        }
    }
    to.write(ObjectType::Tree, &bytes).unwrap();
}

/// Puts a forged step where its own step was, in a repository that has no other.
fn put(from: &Repository, to: &Repository, forged: &Forged) -> Oid {
    let (old, new) = (from.odb().unwrap(), to.odb().unwrap());
    let tree = from.find_commit(forged.id).unwrap().tree_id();
    // A refused step may name a tree that is nowhere.
    if old.exists(tree) && !new.exists(tree) {
        copy_tree(&old, &new, tree);
    }
    let after = forged.after.to_string();
    let at = forged
        .raw
        .windows(after.len())
        .position(|id| id == after.as_bytes());
    let (start, rest) = forged.raw.split_at(at.unwrap());
    let bytes = [
        start,
        forged.parent.to_string().as_bytes(),
        &rest[after.len()..],
    ]
    .concat();
    new.write(ObjectType::Commit, &bytes).unwrap()
}

/// The accepted ones are whole for git, and a sample goes where a push would bring it: through the
/// hook, and to `verify`.
fn others_agree(
    batch: &TestEnvironment,
    from: &Repository,
    accepted: &[&Forged],
    sample: &[(&Forged, bool)],
) {
    let env = every_step();
    let to = Repository::open(env.repo()).unwrap();
    for forged in accepted {
        put(from, &to, forged);
    }
    let checked = env.git_any(&env.repo(), &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(checked.status, 0, "{}{}", checked.stdout, checked.stderr);
    for (forged, is_accepted) in sample {
        // A refused tree may be one that can't be copied.
        let (env, id) = if *is_accepted {
            (&env, put(from, &to, forged))
        } else {
            (batch, put(from, from, forged))
        };
        let line = format!("{} {id} refs/heads/handoffs\n", forged.parent);
        let ran = env.handoff_with(&["hook", "pre-receive"], line);
        // Only a hook knows what time it is.
        let recorded = from.find_commit(forged.id).unwrap().time().seconds();
        let is_ahead = recorded > Utc::now().timestamp() + TimeDelta::days(1).num_seconds();
        assert_eq!(
            ran.status == 0,
            *is_accepted && !is_ahead,
            "{}: {}",
            forged.what,
            ran.stderr
        );
        if *is_accepted {
            let branch = format!("forged-{id}");
            env.git(&env.repo(), &["branch", "-f", &branch, &id.to_string()]);
            env.handoff(&["verify", "--branch", &branch]).success();
        }
    }
}

#[test]
fn prove_that_no_forged_step_passes() {
    let mut proof = Proof::new("forger", 1);
    let (mut mutants, mut passed) = (0, 0);
    while let Some(seed) = proof.case() {
        let env = every_step();
        let mut dice = Dice::new(seed);
        std::env::set_current_dir(env.repo()).unwrap();
        let judge = handoff::git::Repository::open_here().unwrap();
        let repository = Repository::open(env.repo()).unwrap();
        let tip = judge.resolve("refs/heads/handoffs").unwrap().unwrap();
        let tip = Oid::from_bytes(tip.as_bytes()).unwrap();
        let steps = steps(&repository, tip);
        let (last, all, unreadable) = forge(&repository, tip, &mut dice, &steps);
        let accepted = accepted(&judge, tip, last, &all);
        let ids: HashSet<Oid> = accepted.iter().map(|forged| forged.id).collect();
        for forged in all.iter().filter(|forged| forged.legal) {
            assert!(
                ids.contains(&forged.id),
                "seed {seed}: a legal step was refused"
            );
        }
        git_agrees(&env, &judge, &repository, &accepted);
        let strange: Vec<&Forged> = all.iter().filter(|forged| !forged.legal).collect();
        let taken = accepted.iter().find(|forged| !forged.legal).copied();
        let drawn = [*dice.one(&strange), *dice.one(&strange)]
            .into_iter()
            .chain(taken);
        let sample: Vec<_> = drawn
            .map(|forged| (forged, ids.contains(&forged.id)))
            .collect();
        others_agree(&env, &repository, &accepted, &sample);
        mutants += u64::from(BATCH);
        passed += u64::try_from(accepted.iter().filter(|forged| !forged.legal).count()).unwrap();
        assert!(
            unreadable < u64::from(BATCH) / 3,
            "seed {seed}: {unreadable} can't be read"
        );
        std::env::set_current_dir("/").unwrap();
    }
    assert!(passed > 0);
    proof.passed(&[
        ("mutants", mutants),
        ("accepted, as git and the writer have them", passed),
    ]);
}
