//! A step's commit and trees are the bytes that the program writes, and no others: what git and
//! libgit2 would read differently, or a stricter server would refuse, is found and refused.

use std::fs;
use std::path::Path;

use crate::keys::header;
use test_support::tamper::{BRANCH, Ledger, folder};

/// A ledger, and a server with the hook that has all of it but the last step.
struct Stage {
    ledger: Ledger,
    server: Ledger,
    /// The last step's commit, as it is stored.
    step: String,
}

impl Stage {
    fn new() -> Self {
        let ledger = Ledger::new();
        let step = ledger.git_raw(&["cat-file", "commit", BRANCH], None, b"");
        let server = ledger.clone_with(&[]);
        server.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
        server.git(&["update-ref", BRANCH, &format!("{BRANCH}~1")]);
        let hooks = server.path().join("hooks");
        fs::create_dir_all(&hooks).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/pre-receive");
        fs::copy(script, hooks.join("pre-receive")).unwrap();
        Self {
            ledger,
            server,
            step: String::from_utf8(step).unwrap(),
        }
    }

    fn written(&self, kind: &str, bytes: &[u8]) -> String {
        let args = ["hash-object", "-t", kind, "-w", "--literally", "--stdin"];
        let id = self.ledger.git_raw(&args, None, bytes);
        String::from_utf8(id).unwrap().trim().to_owned()
    }

    /// Puts this commit in place of the last step: what the audit and the server find.
    #[track_caller]
    fn found(&self, name: &str, commit: &[u8]) -> Vec<String> {
        let id = self.written("commit", commit);
        self.ledger.set_branch(&id);
        let found = self.ledger.damage(&[]);
        let url = self.server.path().to_str().unwrap().to_owned();
        let (code, said) = self.ledger.git_any(&["push", "-q", &url, BRANCH]);
        assert_ne!(code, 0, "{name}: the server took it");
        let code = found[0].split(' ').nth(1).unwrap();
        // git itself can't list a tree that ends too early.
        let named = said.contains(code) || said.contains("too-short tree");
        assert!(named, "{name}: {said}");
        found
    }

    /// The last step with a tree that this makes of the ids of its folders, by their paths.
    #[track_caller]
    fn with_tree(&self, name: &str, tree: &str) -> Vec<String> {
        let old = self
            .ledger
            .git(&["rev-parse", &format!("{}^{{tree}}", self.id())]);
        self.found(name, self.step.replace(&old, tree).as_bytes())
    }

    /// The commit of the last step.
    fn id(&self) -> String {
        self.written("commit", self.step.as_bytes())
    }

    /// A folder of the last step's tree, as it is stored.
    fn folder(&self, path: &str) -> Vec<u8> {
        let name = format!("{}:{path}", self.id());
        self.ledger.git_raw(&["cat-file", "tree", &name], None, b"")
    }

    /// The last step's tree with other bytes for one of its folders.
    fn tree_with(&self, path: &str, bytes: &[u8]) -> String {
        let mut id = self.written("tree", bytes);
        let mut path = path;
        while !path.is_empty() {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
            let old = entry(
                "40000",
                name,
                &self
                    .ledger
                    .git(&["rev-parse", &format!("{}:{path}", self.id())]),
            );
            let bytes = replaced(&self.folder(above), &old, &entry("40000", name, &id));
            id = self.written("tree", &bytes);
            path = above;
        }
        id
    }
}

fn entry(mode: &str, name: &str, id: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&id[at..at + 2], 16).unwrap();
    let id: Vec<u8> = (0..id.trim().len()).step_by(2).map(digits).collect();
    [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &id].concat()
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes
        .windows(from.len())
        .position(|part| part == from)
        .unwrap();
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

#[test]
fn a_commit_that_readers_take_differently_is_refused() {
    let stage = Stage::new();
    let step = &stage.step;
    let author = step.lines().find(|l| l.starts_with("author ")).unwrap();
    let committer = step.lines().find(|l| l.starts_with("committer ")).unwrap();
    let tree = step.lines().next().unwrap();
    let forged = "Somebody Else <else@example.org> 1 +0000";
    let signed = |text: &str| step.replacen(committer, &format!("{committer}\n{text}"), 1);
    let cases = [
        (
            "a second author",
            step.replacen(author, &format!("{author}\nauthor {forged}"), 1),
        ),
        ("a second committer", signed(&format!("committer {forged}"))),
        (
            "an author after the committer",
            signed(&format!("author {forged}")),
        ),
        ("a leading zero", step.replacen("> 17726", "> 017726", 1)),
        (
            "no zone",
            step.replacen(author, author.trim_end_matches(" +0000"), 1),
        ),
        ("zone +9999", step.replacen("+0000", "+9999", 1)),
        ("zone -0000", step.replacen("+0000", "-0000", 1)),
        (
            "zone +1460",
            step.replacen(committer, &committer.replace("+0000", "+1460"), 1),
        ),
        ("two blanks", step.replacen("author ", "author  ", 1)),
        ("two blanks before the time", step.replacen("> ", ">  ", 1)),
        (
            "an upper-case id",
            step.replacen(tree, &format!("tree {}", tree[5..].to_uppercase()), 1),
        ),
        ("an empty signature", signed(&format!("{} ", header()))),
        (
            "a signature without an end",
            signed(&format!("{} -----BEGIN PGP SIGNATURE-----", header())),
        ),
        ("an encoding", signed("encoding UTF-8")),
        (
            "NUL in the committer's name",
            step.replacen("committer Tester", "committer Test\0er", 1),
        ),
        (
            "NUL at the end of the author",
            step.replacen(author, &format!("{author}\0"), 1),
        ),
        (
            "a tab in the committer's name",
            step.replacen("committer Tester", "committer Test\ter", 1),
        ),
        (
            "a blank after the name",
            step.replacen("Tester <", "Tester  <", 1),
        ),
        (
            "an empty line before the message",
            step.replacen("\n\n", "\n\n\n", 1),
        ),
    ];
    for (name, commit) in cases {
        assert_ne!(commit, *step, "{name}");
        let found = stage.found(name, commit.as_bytes());
        assert!(
            found.contains(&"9 commit.header".to_owned()),
            "{name}: {found:?}"
        );
    }
    stage.ledger.set_branch(&stage.id());
    stage.ledger.assert_sound(&[]);
}

#[test]
fn a_commit_that_starts_a_ledger_in_another_name_is_found() {
    let ledger = Ledger::new();
    ledger.rewrite(0, |number, commit| {
        if number == 0 {
            commit.author = commit.author.replace("Tester", "Somebody Else");
        }
    });
    assert_eq!(ledger.damage(&[]), ["0 commit.author"]);
}

#[test]
fn a_committer_whose_name_ends_in_a_stop_or_in_another_zone_is_fine() {
    let stage = Stage::new();
    for (from, to) in [
        ("committer Tester", "committer Tester Jr."),
        ("committer Tester", "committer 'Té ster'"),
        (
            "committer Tester <tester@example.org>",
            "committer Tester <>",
        ),
        ("+0000\n\n", "+1245\n\n"),
        ("+0000\n\n", "-0330\n\n"),
        ("+0000\n\n", "+1500\n\n"),
    ] {
        let commit = stage.step.replacen(from, to, 1);
        assert_ne!(commit, stage.step);
        stage
            .ledger
            .set_branch(&stage.written("commit", commit.as_bytes()));
        stage.ledger.assert_sound(&[]);
    }
}

#[test]
fn a_tree_that_another_repository_would_refuse_is_refused() {
    let stage = Stage::new();
    let empty = stage.written("tree", b"");
    let issue = &folder(89)[..];
    let root = stage.folder("");
    let with = |bytes: &[u8], more: &[u8]| [bytes, more].concat();
    let chain = (0..100).fold(empty.clone(), |id, _| {
        stage.written("tree", &entry("40000", "a", &id))
    });
    let twins = [
        entry("40000", "ISSUES", &empty),
        entry("40000", "Issues", &empty),
    ]
    .concat();
    let issue_json = {
        let id = stage
            .ledger
            .git(&["rev-parse", &format!("{}:{issue}/issue.json", stage.id())]);
        entry("100644", "issue.json", &id)
    };
    let own = stage.folder(issue);
    let without = replaced(&own, &issue_json, b"");
    let slash = {
        let id = stage
            .ledger
            .git(&["rev-parse", &format!("{}:{issue}/issue.json", stage.id())]);
        let above = stage.folder("issues/89");
        let below = stage.written("tree", &without);
        let old = stage
            .ledger
            .git(&["rev-parse", &format!("{}:issues/89/00", stage.id())]);
        let inner = stage.folder("issues/89/00");
        let old_inner = entry(
            "40000",
            "89",
            &stage
                .ledger
                .git(&["rev-parse", &format!("{}:{issue}", stage.id())]),
        );
        let inner = replaced(&inner, &old_inner, &entry("40000", "89", &below));
        let inner = with(&inner, &entry("100644", "89/issue.json", &id));
        let inner = stage.written("tree", &inner);
        let above = replaced(
            &above,
            &entry("40000", "00", &old),
            &entry("40000", "00", &inner),
        );
        stage.tree_with("issues/89", &above)
    };
    let cases = [
        (
            "an empty .git",
            stage.tree_with("", &with(&entry("40000", ".git", &empty), &root)),
        ),
        (
            "an empty ..",
            stage.tree_with("", &with(&entry("40000", "..", &empty), &root)),
        ),
        (
            "empty case twins",
            stage.tree_with("", &with(&twins, &root)),
        ),
        (
            "a chain of folders",
            stage.tree_with("", &with(&root, &entry("40000", "zz", &chain))),
        ),
        (
            "an empty folder in an issue",
            stage.tree_with(issue, &with(&own, &entry("40000", "notes", &empty))),
        ),
        (
            "out of order",
            stage.tree_with(issue, &with(&issue_json, &without)),
        ),
        (
            "bytes at the end",
            stage.tree_with(issue, &with(&own, b"more")),
        ),
    ];
    for (name, tree) in cases {
        let found = stage.with_tree(name, &tree);
        // A folder that no ledger has is named, and not looked into.
        let is_named = ["9 commit.tree", "9 file.stray"]
            .iter()
            .any(|code| found[0].starts_with(code));
        assert!(is_named, "{name}: {found:?}");
    }
    stage.with_tree("a name with a slash", &slash);
    for (name, bytes) in [
        ("twice", with(&own, &issue_json)),
        (
            "a padded mode",
            replaced(&own, &issue_json, &[b"0", &issue_json[..]].concat()),
        ),
        (
            "executable",
            replaced(&own, &issue_json, &[b"100755", &issue_json[6..]].concat()),
        ),
    ] {
        stage.with_tree(name, &stage.tree_with(issue, &bytes));
    }
}
