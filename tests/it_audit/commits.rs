//! Lists of commits: what `new` fills in, and what a claim may say of each.

use insta::assert_snapshot;

use crate::desk::{BRANCH, Desk, listing};

fn named(id: &str, message: &str) -> (String, String) {
    (id.to_owned(), message.to_owned())
}

#[test]
fn a_list_has_each_commit_once_with_its_own_message() {
    let desk = Desk::new("enforce");
    let [first, second] = desk.work();
    let own = [
        named(&first, "export: write rows as CSV"),
        named(&second, "history: offer the download"),
    ];
    let mut found = Vec::new();
    let twice = [
        own[0].clone(),
        own[1].clone(),
        named(&first.to_uppercase(), &own[0].1),
    ];
    let other = [own[0].clone(), named(&second, "history: offer nothing")];
    for list in [&own[..1], &twice, &other] {
        found.extend(desk.refused(&listing(2, list), &["evidence.commits"]));
    }
    let found = found.join("\n").replace(&first.to_uppercase(), "[COMMIT]");
    assert_snapshot!(desk.env.filtered(&found), @r#"
    /handoff/commits not listed: [commit] "history: offer the download"
    /handoff/commits/commit[3]/@sha "[COMMIT]" is listed already, as number 1
    /handoff/commits/commit[2] commit [commit] says "history: offer the download", not "history: offer nothing"
    "#);
    // A merge may be left out, and a message may be given whole.
    let body = desk.commit(BRANCH, &[("a.txt", "1\n")], "a: more\n\nIt has a body.");
    desk.commit("main", &[("b.txt", "1\n")], "meanwhile");
    desk.git(&["checkout", "-q", BRANCH]);
    desk.git(&["merge", "-q", "--no-edit", "main"]);
    let whole = [&own[..], &[named(&body, "a: more It has a body.")]].concat();
    desk.env.send(listing(3, &whole)).success();
    assert_eq!(desk.check("87.3", "commits"), "passed");
    desk.env.assert_sound();
}

#[test]
fn more_commits_than_fit_in_a_line_are_counted() {
    let desk = Desk::new("enforce");
    let [first, _] = desk.work();
    for number in 0..6 {
        let (file, message) = (format!("{number}.txt"), format!("step {number}"));
        desk.commit(BRANCH, &[(&file, "1\n")], &message);
    }
    let list = [named(&first, "export: write rows as CSV")];
    let found = desk.refused(&listing(8, &list), &["evidence.commits"]);
    assert_snapshot!(desk.env.filtered(&found.join("\n")), @r#"/handoff/commits not listed: [commit] "history: offer the download", [commit] "step 0", [commit] "step 1", [commit] "step 2", [commit] "step 3" and 2 more"#);
}

#[test]
fn what_send_lists_is_what_a_check_accepts() {
    let desk = Desk::new("enforce");
    desk.git(&["init", "-q", "--bare", "../origin.git"]);
    desk.git(&["remote", "add", "origin", "../origin.git"]);
    // Others' work is on origin's main; the main here is behind.
    let old = desk.git(&["rev-parse", "main"]);
    desk.commit("main", &[("theirs.txt", "1\n")], "theirs");
    desk.git(&["push", "-q", "origin", "main"]);
    desk.git(&["branch", "-f", BRANCH, "main"]);
    let [first, second] = desk.work();
    desk.git(&["branch", "-f", "main", &old]);
    let commits = [
        named(&first, "export: write rows as CSV"),
        named(&second, "history: offer the download"),
    ];
    // The hint names the base that the check uses, too.
    let sent = desk.env.send(listing(2, &commits[..1])).exits(3);
    sent.says("`git log --no-merges origin/main..enhancement/87-csv-export`");
    // What is left to `send` is what it would have been told.
    let whole = listing(2, &commits);
    let (start, rest) = whole.split_once("<files_changed>2<").unwrap();
    let open = format!("{start}<files_changed>{{{{fill by send: files}}}}<{rest}");
    let (start, rest) = open.split_once("<commits>").unwrap();
    let (_, end) = rest.split_once("</commits>").unwrap();
    let open = format!("{start}<commits>{{{{fill by send: commits}}}}</commits>{end}");
    desk.env.send(open).success();
    let shown = desk.env.handoff(&["show", "87.3", "--contract"]).success();
    for (id, message) in &commits {
        assert!(
            shown
                .stdout
                .contains(&format!("<commit sha=\"{id}\">{message}</commit>")),
            "{}",
            shown.stdout
        );
    }
    assert!(
        shown.stdout.contains("<files_changed>2</files_changed>"),
        "{}",
        shown.stdout
    );
    desk.env.assert_sound();
}
