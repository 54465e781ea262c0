//! Trees that name themselves again and again: a few hundred bytes that unfold to a billion files.
//! They are reported by their root, and nothing that reads a ledger unfolds them.

use std::path::Path;

use test_support::tamper::{BRANCH, Ledger, folder};

/// Nine levels of so many folders each, the same ones.
fn bomb(ledger: &Ledger, wide: u32) -> String {
    let blob = ledger.git_raw(&["hash-object", "-w", "--stdin"], None, b"x");
    let blob = String::from_utf8(blob).unwrap();
    let tree = |kind: &str, id: &str| {
        let lines: String = (10..10 + wide)
            .map(|n| format!("{kind} {id}\t{n}\n"))
            .collect();
        let id = ledger.git_raw(&["mktree"], None, lines.as_bytes());
        String::from_utf8(id).unwrap().trim().to_owned()
    };
    let first = tree("100644 blob", blob.trim());
    (1..9).fold(first, |id, _| tree("040000 tree", &id))
}

/// A ledger whose newest commit has a bomb at a path.
fn bombed(path: &str, wide: u32) -> Ledger {
    let ledger = Ledger::new();
    let bomb = bomb(&ledger, wide);
    let tip = ledger.tip().id;
    let stream = format!(
        "commit {BRANCH}\ncommitter Someone <someone@example.org> 1772604000 +0000\ndata 5\nMore\n\
         from {tip}\nM 040000 {bomb} {path}\n"
    );
    ledger.git_raw(&["fast-import", "--quiet"], None, stream.as_bytes());
    ledger.forget();
    ledger
}

#[test]
fn a_bomb_is_reported_by_its_root() {
    let in_issue = format!("{}/notes", folder(89));
    for (path, found) in [
        ("zz", vec!["10 step.none zz"]),
        ("open/prep-agent/zz", vec!["10 step.none open/prep-agent/"]),
        ("open/zz", vec!["10 step.none open/zz"]),
        ("protocols/issue-to-pr/more", vec!["10 step.none"]),
        (&in_issue, vec!["10"]),
    ] {
        let ledger = bombed(path, 10);
        let damage = ledger.damage(&[]);
        assert!(damage.len() < 12, "{path}: {} findings", damage.len());
        for (damage, found) in damage.iter().zip(&found) {
            assert!(damage.starts_with(found), "{path}: {damage}");
        }
        let (code, said) = ledger.git_any(&["handoff", "status"]);
        assert_eq!(code, 0, "{path}: {said}");
    }
}

#[test]
fn one_where_folders_may_be_is_not_unfolded_either() {
    let ledger = bombed("issues/99", 40);
    assert_eq!(ledger.damage(&[])[0], "10 object.unreadable");
    let (_, answer) = ledger.verify(&[]);
    let said = answer["error"]["findings"][0]["message"].as_str();
    assert_eq!(said, Some("a tree has more than 20000 entries here"));
}

#[test]
fn a_server_refuses_them() {
    let ledger = bombed("zz", 10);
    let server = Ledger::new();
    let hooks = server.path().join(".git/hooks");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/pre-receive");
    std::fs::create_dir_all(&hooks).unwrap();
    std::fs::copy(script, hooks.join("pre-receive")).unwrap();
    let url = server.path().to_str().unwrap();
    let (code, said) = ledger.git_any(&["push", "-q", url, &format!("{BRANCH}:{BRANCH}")]);
    assert!(code != 0 && said.contains("zz"), "{said}");
}
