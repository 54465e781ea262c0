//! Steps that are made with plain git pass every hook exactly when the tool would have made them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use test_support::TestEnvironment;
use test_support::contracts::{opening, prepared};
use test_support::hooks::{Desk, Original, every_step, server};

#[test]
fn every_kind_of_step_can_be_made_with_plain_git() {
    let source = every_step();
    let desk = Desk::new(&source, 0);
    assert!(desk.steps.len() > 45, "{}", desk.steps.len());
    for step in &desk.steps {
        desk.stage(step);
        let made = desk.commit(&step.author, &step.message, &[]);
        assert_eq!(made.status, 0, "{}: {}", step.message, made.stderr);
    }
    let tree = |env: &TestEnvironment, name: &str| env.git(&env.repo(), &["rev-parse", name]);
    assert_eq!(
        tree(&desk.env, "handoffs^{tree}"),
        tree(&source, "handoffs^{tree}")
    );
    server(&desk.env, &["pre-receive", "update"]);
    desk.env
        .git(&desk.env.repo(), &["push", "-q", "origin", "handoffs"]);
    desk.env.assert_sound();
}

/// A ledger whose fourth commit is a contract sent on: 0 start · 1 87.1 sent · 2 87.1 claimed · 3 87.2 sent.
fn source() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.claim("87.1", "prep-agent").success();
    env.send(prepared(87)).success();
    env
}

/// What is wrong with a step that would else be the fourth: what is done to the files that are staged,
/// to its author and to its message, and the finding for it.
struct Wrong {
    name: &'static str,
    files: fn(&Desk),
    author: Option<[&'static str; 2]>,
    message: Option<fn(&str) -> String>,
    code: &'static str,
    path: &'static str,
}

const RIGHT: Wrong = Wrong {
    name: "nothing",
    files: |_| {},
    author: None,
    message: None,
    code: "",
    path: "",
};

const FOLDER: &str = "issues/87/00/87";
const CONTRACT: &str = "issues/87/00/87/0002-prep-agent-to-implementer-agent.xml";

fn edited(desk: &Desk, path: &str, from: &str, to: &str) {
    let text = fs::read_to_string(desk.ledger.join(path)).unwrap();
    assert!(text.contains(from), "{path}: {text}");
    desk.put(path, text.replacen(from, to, 1));
}

fn wrong() -> Vec<Wrong> {
    vec![
        Wrong {
            name: "a record that says something else",
            files: |desk| {
                let record = format!("{FOLDER}/0001.json");
                edited(desk, &record, "\"completed\"", "\"failed\"");
            },
            code: "record.altered",
            path: "issues/87/00/87/0001.json",
            ..RIGHT
        },
        Wrong {
            name: "a stray file",
            files: |desk| desk.put("notes.txt", "x"),
            code: "file.stray",
            path: "notes.txt",
            ..RIGHT
        },
        Wrong {
            name: "an incomplete contract",
            files: |desk| edited(desk, CONTRACT, "<branch>", "<branches>"),
            code: "xml.syntax",
            path: CONTRACT,
            ..RIGHT
        },
        Wrong {
            name: "a contract without a field",
            files: |desk| {
                let text = fs::read_to_string(desk.ledger.join(CONTRACT)).unwrap();
                let (before, rest) = text.split_once("<status>").unwrap();
                let (_, after) = rest.split_once("</status>").unwrap();
                desk.put(CONTRACT, format!("{before}{after}"));
            },
            code: "field.missing",
            path: CONTRACT,
            ..RIGHT
        },
        Wrong {
            name: "no entry for what is open",
            files: |desk| {
                desk.env
                    .git(&desk.ledger, &["rm", "-qrf", "open/implementer-agent"]);
            },
            code: "file.missing",
            path: "open/implementer-agent/",
            ..RIGHT
        },
        Wrong {
            name: "an executable record",
            files: |desk| {
                let path = desk.ledger.join(FOLDER).join("0002.json");
                fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
                desk.env.git(&desk.ledger, &["add", "."]);
            },
            code: "record.altered",
            path: "issues/87/00/87/0002.json",
            ..RIGHT
        },
        Wrong {
            name: "a change of the manifest alone",
            files: |desk| {
                desk.env.git(&desk.ledger, &["reset", "-q", "--hard"]);
                edited(desk, "ledger.json", "\"off\"", "\"warn\"");
            },
            code: "step.none",
            path: "ledger.json",
            ..RIGHT
        },
        Wrong {
            name: "another agent",
            author: Some(["fixer-agent", "fixer-agent@handoff.invalid"]),
            code: "commit.author",
            ..RIGHT
        },
        Wrong {
            name: "the agent under another address",
            author: Some(["prep-agent", "prep-agent@example.org"]),
            code: "commit.author",
            ..RIGHT
        },
        Wrong {
            name: "a message without a trailer",
            message: Some(|message| message.replace("Issue: 87\n", "")),
            code: "commit.message",
            ..RIGHT
        },
        Wrong {
            name: "a message that says more",
            message: Some(|message| format!("{message}Signed-off-by: A <a@example.org>\n")),
            code: "commit.message",
            ..RIGHT
        },
    ]
}

impl Wrong {
    fn author(&self, step: &Original) -> [String; 3] {
        match self.author {
            None => step.author.clone(),
            Some([name, email]) => [name.to_owned(), email.to_owned(), step.author[2].clone()],
        }
    }

    fn message(&self, step: &Original) -> String {
        self.message
            .map_or_else(|| step.message.clone(), |change| change(&step.message))
    }
}

#[test]
fn a_step_with_one_thing_wrong_is_refused_at_every_gate() {
    let source = source();
    for wrong in wrong() {
        let desk = Desk::new(&source, 3);
        let env = &desk.env;
        let bare = server(env, &["pre-receive"]);
        env.git(&env.repo(), &["push", "-q", "origin", "handoffs"]);
        let (tip, step) = (desk.tip(), &desk.steps[3]);
        desk.stage(step);
        (wrong.files)(&desk);
        let (author, message) = (wrong.author(step), wrong.message(step));
        let refused = |ran: test_support::Ran, gate: &str| {
            let name = wrong.name;
            assert_ne!(ran.status, 0, "{name}: {gate}");
            let said = format!("{}{}", ran.stdout, ran.stderr);
            for told in [wrong.code, wrong.path] {
                assert!(said.contains(told), "{name}: {gate}: no {told} in: {said}");
            }
        };
        // In turn: by the first hook, by the one that can't be passed by, and, with all hooks off, by
        // whoever gets it.
        let hook = match wrong.message {
            None => "pre-commit",
            Some(_) => "commit-msg",
        };
        refused(desk.commit(&author, &message, &[]), hook);
        assert_eq!(desk.tip(), tip);
        let passed = desk.commit(&author, &message, &["--no-verify"]);
        refused(passed, "reference-transaction");
        assert_eq!(desk.tip(), tip, "{}", wrong.name);
        let forced = desk.force(&author, &message);
        assert_eq!(forced.status, 0, "{}: {}", wrong.name, forced.stderr);
        let made = desk.tip();
        let push = ["push", "origin", "handoffs"];
        refused(env.git_any(&env.repo(), &push), "pre-push");
        let unchecked = ["push", "--no-verify", "origin", "handoffs"];
        let arrived = env.git_any(&env.repo(), &unchecked);
        assert!(arrived.stderr.contains(&made[..10]), "{}", arrived.stderr);
        refused(arrived, "pre-receive");
        assert_eq!(env.git(&bare, &["rev-parse", "handoffs"]).trim(), tip);
        let audit = env.handoff(&["verify"]).exits(10);
        refused(audit, "verify");
    }
}

#[test]
fn the_same_step_with_nothing_wrong_passes_at_every_gate() {
    let source = source();
    let desk = Desk::new(&source, 3);
    server(&desk.env, &["pre-receive", "update"]);
    let step = &desk.steps[3];
    desk.stage(step);
    let (author, message) = (RIGHT.author(step), RIGHT.message(step));
    assert_eq!(desk.commit(&author, &message, &[]).status, 0);
    desk.env
        .git(&desk.env.repo(), &["push", "-q", "origin", "handoffs"]);
    desk.env.assert_sound();
}
