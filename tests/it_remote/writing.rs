//! A write with a remote: it looks, plans on what is there, and pushes its one commit. Processes of
//! one clone do so one after the other.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;
use test_support::contracts::{opening, prepared};
use test_support::remote::{hook, unhook};
use test_support::team::at_once;
use test_support::{Ran, TestEnvironment, until};

use crate::clones::{Clones, is_in_queue};

/// What a command started to talk to the remote.
#[derive(Debug, PartialEq, Eq)]
struct Contact {
    looks: usize,
    pushes: usize,
}

const WROTE: Contact = Contact {
    looks: 1,
    pushes: 1,
};

const LOOKED: Contact = Contact {
    looks: 1,
    pushes: 0,
};

/// Runs the program in a clone.
fn run(team: &Clones, clone: &Path, args: &[&str], input: Option<&str>) -> (Ran, Contact) {
    let trace = team.env.root().join("trace");
    let _ = fs::remove_file(&trace);
    let mut command = team.env.program(args);
    command.current_dir(clone);
    command.env("GIT_TRACE2_EVENT", &trace);
    command.env("GIT_HANDOFF_WORKER", test_support::worker_of(clone));
    let ran = team.env.run(command, args, input.map(str::as_bytes));
    let text = fs::read_to_string(&trace).unwrap_or_default();
    let starts = |verb: &str| {
        let starts = text.lines().filter(|l| l.contains(r#""event":"start""#));
        starts.filter(|line| line.contains(verb)).count()
    };
    let contact = Contact {
        looks: starts(r#""--no-write-fetch-head""#),
        pushes: starts(r#""--no-follow-tags""#),
    };
    (ran, contact)
}

fn open(team: &Clones, issue: u32) -> (Ran, Contact) {
    run(
        team,
        &team.env.repo(),
        &["send", "-"],
        Some(&opening(issue)),
    )
}

/// Two clones, of which the first opened issues 1 and 2.
fn opened() -> Clones {
    let team = Clones::new();
    for issue in [1, 2] {
        open(&team, issue).0.success();
    }
    team
}

fn code(ran: &Ran) -> Value {
    ran.json()["error"]["code"].clone()
}

#[test]
fn each_write_is_one_look_and_one_push_of_one_commit() {
    let team = opened();
    let (repo, before) = (team.env.repo(), team.tip(&team.bare));
    let (sent, contact) = open(&team, 3);
    sent.success();
    assert_eq!(contact, WROTE);
    let changes: [&[&str]; 6] = [
        &["claim", "--next", "--as", "prep-agent"],
        &["extend", "1", "--as", "prep-agent", "--lease", "9h"],
        &["complete", "1.1", "--as", "prep-agent"],
        &["annotate", "1", "--as", "prep-agent", "--note", "done"],
        &["cancel", "2.1", "--as", "issue-manager"],
        &["pause", "2", "--as", "issue-manager", "--reason", "later"],
    ];
    for args in changes {
        let (changed, contact) = run(&team, &repo, args, None);
        changed.success();
        assert_eq!(contact, WROTE, "{args:?}");
    }
    assert_eq!(team.published_since(&before).len(), 1 + changes.len());
    for args in [
        &["sync"][..],
        &["fetch"],
        &["status"],
        &["inbox", "--as", "prep-agent"],
    ] {
        let (read, contact) = run(&team, &repo, args, None);
        read.success();
        assert_eq!(contact, LOOKED, "{args:?}");
    }
    team.there(&["sync"]).success();
    team.assert_together();
}

#[test]
fn what_another_clone_claimed_is_refused_for_that_reason() {
    let team = opened();
    let there = ["claim", "1.1", "--as", "prep-agent", "--json"];
    let holder = team.there(&there).success().json()["data"]["commit"].clone();
    let claim = ["claim", "1.1", "--as", "prep-agent", "--json"];
    let (refused, contact) = run(&team, &team.env.repo(), &claim, None);
    assert_eq!(code(&refused.exits(5)), "already_claimed");
    assert_eq!(contact, LOOKED, "a refusal is not pushed");
    assert_eq!(holder, team.tip(&team.bare));
    team.assert_together();
}

#[test]
fn what_only_the_remote_has_counts() {
    let team = opened();
    let repo = team.env.repo();
    // The sender's claim.
    let claim = ["claim", "1.1", "--as", "prep-agent", "--worker", "prep"];
    team.there(&claim).success();
    let send = ["send", "-", "--worker", "prep"];
    let (sent, contact) = run(&team, &repo, &send, Some(&prepared(1)));
    sent.success();
    assert_eq!(contact, WROTE);
    // The issue.
    team.open(&team.other, 3, &[]).success();
    let claim = ["claim", "3", "--as", "prep-agent"];
    run(&team, &repo, &claim, None).0.success();
    // Which of an issue's handoffs is open, or could be cancelled.
    team.there(&["claim", "2", "--as", "prep-agent"]).success();
    team.send(&team.other, &prepared(2), &[]).success();
    let cancel = ["cancel", "2", "--as", "prep-agent", "--json"];
    let (cancelled, _) = run(&team, &repo, &cancel, None);
    assert_eq!(cancelled.success().json()["data"]["handoff"]["id"], "2.2");
    team.there(&["sync"]).success();
    team.assert_together();
}

#[test]
fn whether_anything_is_to_be_done_is_known_from_the_remote() {
    let send = ["send", "-", "--json"];
    let team = opened();
    let sent = |issue: u32| {
        let (sent, contact) = run(&team, &team.env.repo(), &send, Some(&opening(issue)));
        let sent = sent.success().json()["data"].take();
        (
            sent["handoff"]["id"].clone(),
            sent["repeated"].clone(),
            contact,
        )
    };
    // The other clone sent it.
    team.open(&team.other, 3, &[]).success();
    assert_eq!(sent(3), ("3.1".into(), true.into(), LOOKED));
    assert_eq!(team.tip(&team.env.repo()), team.tip(&team.bare));
    // The other clone withdrew it.
    team.there(&["cancel", "2.1", "--as", "issue-manager"])
        .success();
    assert_eq!(sent(2), ("2.2".into(), false.into(), WROTE));
    // Nobody did anything.
    assert_eq!(sent(2), ("2.2".into(), true.into(), LOOKED));
    team.there(&["sync"]).success();
    team.assert_together();
}

#[test]
fn a_refused_contract_is_noted_once() {
    let team = opened();
    let broken = opening(3)
        .replace("<issue_title>", "<title>")
        .replace("</issue_title>", "</title>");
    assert_ne!(broken, opening(3));
    let (refused, contact) = run(&team, &team.env.repo(), &["send", "-"], Some(&broken));
    refused.exits(3);
    assert_eq!(contact, LOOKED);
    let notes = team
        .env
        .repo()
        .join(".git/handoff/refused/refs/heads/handoffs");
    let notes = fs::read_to_string(notes).unwrap();
    assert_eq!(notes.lines().count(), 1, "{notes}");
}

#[test]
fn what_is_made_while_the_remote_is_away_is_recorded_here_and_goes_first() {
    let team = opened();
    let repo = team.env.repo();
    team.take_away();
    let claim = ["claim", "9.1", "--as", "prep-agent"];
    let (refused, _) = run(&team, &repo, &claim, None);
    refused.exits(6).says("origin is out of reach");
    let (sent, _) = open(&team, 3);
    sent.exits(8).says("recorded here, but not on origin: ");
    let (claimed, _) = run(&team, &repo, &["claim", "3.1", "--as", "prep-agent"], None);
    claimed.exits(8);
    team.bring_back();
    let before = team.tip(&team.bare);
    let (sent, contact) = open(&team, 4);
    sent.success();
    assert_eq!(contact.looks, 1);
    assert_eq!(team.published_since(&before).len(), 3);
    team.there(&["sync"]).success();
    team.assert_together();
}

#[test]
fn a_branch_that_went_back_or_is_gone_is_not_restored() {
    for (change, code_there) in [
        (
            &["update-ref", "refs/heads/handoffs", "handoffs~1"][..],
            "remote_rewritten",
        ),
        (&["update-ref", "-d", "refs/heads/handoffs"], "remote_gone"),
    ] {
        let team = opened();
        team.env.git(&team.bare, change);
        let there = team.at(&team.bare, "refs/heads/handoffs");
        let send = ["send", "-", "--json"];
        let (refused, _) = run(&team, &team.env.repo(), &send, Some(&opening(3)));
        assert_eq!(code(&refused.exits(10)), code_there);
        assert_eq!(team.at(&team.bare, "refs/heads/handoffs"), there);
    }
}

#[test]
fn a_hook_of_the_remote_refuses_a_step_once() {
    let team = opened();
    let asked = team.env.root().join("asked");
    let script = format!("echo >>'{}'; echo 'not today'; exit 1", asked.display());
    hook(&team.bare, "pre-receive", &script);
    let (refused, contact) = open(&team, 3);
    refused.exits(4).says("not today");
    assert_eq!(contact, WROTE);
    assert_eq!(fs::read_to_string(&asked).unwrap().lines().count(), 1);
    unhook(&team.bare, "pre-receive");
    open(&team, 3).0.success();
    team.there(&["sync"]).success();
    team.assert_together();
}

#[test]
fn an_answer_that_is_cut_off_leaves_one_step() {
    let team = opened();
    let before = team.tip(&team.bare);
    // The step arrives, and the push fails all the same.
    let mark = team.env.root().join("mark");
    let script = format!(
        "[ -e '{0}' ] || {{ touch '{0}'; kill -9 $PPID; }}",
        mark.display()
    );
    hook(&team.bare, "post-receive", &script);
    let (sent, _) = open(&team, 3);
    sent.success();
    assert!(mark.exists());
    assert_eq!(team.published_since(&before).len(), 1);
    team.there(&["sync"]).success();
    team.assert_together();
}

#[test]
fn fifty_writers_of_one_clone_all_end_beside_another_clone() {
    let team = Clones::new();
    let before = team.tip(&team.bare);
    let send = |issue: u32| {
        let file = team.env.file(&format!("{issue}.xml"), opening(issue));
        vec!["send".to_owned(), file, "--timeout".into(), "5m".into()]
    };
    let all: Vec<_> = (1..=50).map(send).collect();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            for issue in 51..=54 {
                team.open(&team.other, issue, &[]).success();
            }
        });
        for ended in at_once(&team.env, &all) {
            let said = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(0), "{said}");
        }
        other.join().unwrap();
    });
    assert_eq!(team.published_since(&before).len(), 54);
    for clone in [&team.env.repo(), &team.other] {
        team.env.handoff_in(clone, &["sync"]).success();
    }
    team.assert_together();
}

#[test]
fn where_no_queue_can_be_kept_each_still_publishes_its_own() {
    let team = Clones::new();
    let queue = team.env.repo().join(".git/handoff/remote.lock");
    fs::remove_file(&queue).unwrap();
    fs::create_dir(&queue).unwrap();
    open(&team, 1).0.success();
    open(&team, 2).0.success();
    team.there(&["sync"]).success();
    team.assert_together();
}

/// A script that waits in the remote until a push is let through.
fn gate(env: &TestEnvironment) -> String {
    let root = env.root().display();
    format!(
        "echo >>'{root}/pushes'\n\
        while :; do\n\
        for open in '{root}'/open-*; do mv \"$open\" '{root}/through' 2>/dev/null && exit 0; done\n\
        sleep 0.02\n\
        done"
    )
}

/// A clone, and a remote that holds back each push until it is let through.
struct Gate {
    team: Clones,
    /// The newest step that the remote has at first.
    first: String,
    let_through: usize,
}

/// A process, and its contract's issue.
struct Writer {
    child: Child,
    issue: u32,
}

impl Gate {
    fn new(more: &str) -> Self {
        let team = Clones::new();
        let script = format!("{more}\n{}", gate(&team.env));
        hook(&team.bare, "pre-receive", &script);
        let first = team.tip(&team.bare);
        Self {
            team,
            first,
            let_through: 0,
        }
    }

    fn env(&self) -> &TestEnvironment {
        &self.team.env
    }

    fn start(&self, args: &[&str], issue: u32) -> Writer {
        let mut command = self.env().program(args);
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        Writer { child, issue }
    }

    fn send(&self, issue: u32, more: &[&str]) -> Writer {
        let contract = self.env().file(&format!("{issue}.xml"), opening(issue));
        self.start(&[&["send", &contract], more].concat(), issue)
    }

    fn claim(&self, worker: &str) -> Writer {
        let claim = ["claim", "100.1", "--as", "prep-agent", "--worker", worker];
        self.start(&claim, 100)
    }

    /// How many pushes reached the remote.
    fn pushes(&self) -> usize {
        let pushes = fs::read_to_string(self.env().root().join("pushes"));
        pushes.map_or(0, |pushes| pushes.lines().count())
    }

    /// Lets so many pushes through, of those that come and will come.
    fn open(&mut self, count: usize) {
        for _ in 0..count {
            self.let_through += 1;
            let name = format!("open-{}", self.let_through);
            fs::write(self.env().root().join(name), "").unwrap();
        }
    }

    /// A first step is pushed and held back, and seven others wait for their turn.
    fn held_back(&self) -> (Writer, Vec<Writer>) {
        let first = self.send(100, &[]);
        until("the first is there", || self.pushes() == 1);
        let writers: Vec<Writer> = (1..=7).map(|issue| self.send(issue, &[])).collect();
        let have_begun = || writers.iter().all(|writer| is_in_queue(&writer.child));
        until("all of them have begun", have_begun);
        (first, writers)
    }

    /// Each issue was opened once on the remote, and nothing else was done.
    #[track_caller]
    fn assert_opened(&self, issues: &[u32]) {
        unhook(&self.team.bare, "pre-receive");
        self.env().handoff(&["sync"]).success();
        let range = format!("{}..handoffs", self.first);
        let format = "--format=%(trailers:key=Handoff-Id,valueonly)";
        let log = self.env().git(&self.team.bare, &["log", format, &range]);
        let mut opened: Vec<String> = log.split_whitespace().map(str::to_owned).collect();
        opened.sort();
        let mut issues: Vec<String> = issues.iter().map(|issue| format!("{issue}.1")).collect();
        issues.sort();
        assert_eq!(opened, issues);
        self.team.assert_sound(&self.env().repo());
        let here = self.team.tip(&self.env().repo());
        assert_eq!(here, self.team.tip(&self.team.bare));
    }
}

#[track_caller]
fn ended(writer: Writer) -> (Option<i32>, String) {
    let output = writer.child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let shown = format!("{}: {said}", writer.issue);
    (output.status.code(), shown)
}

#[track_caller]
fn all_succeed(writers: impl IntoIterator<Item = Writer>) {
    for writer in writers {
        let (status, said) = ended(writer);
        assert_eq!(status, Some(0), "{said}");
    }
}

fn kill(writers: impl IntoIterator<Item = Writer>) {
    for mut writer in writers {
        writer.child.kill().unwrap();
        writer.child.wait().unwrap();
    }
}

const SENT: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 100];

#[test]
fn of_those_that_wait_a_refused_one_is_told_alone() {
    let mut gate = Gate::new("");
    let (first, writers) = gate.held_back();
    let claims = [gate.claim("one"), gate.claim("other")];
    gate.open(20);
    all_succeed(writers.into_iter().chain([first]));
    let mut codes = claims.map(|claim| ended(claim).0);
    codes.sort();
    assert_eq!(codes, [Some(0), Some(5)]);
    unhook(&gate.team.bare, "pre-receive");
    assert_eq!(gate.team.published_since(&gate.first).len(), SENT.len() + 1);
    gate.team.assert_sound(&gate.env().repo());
}

#[test]
fn a_hook_that_refuses_one_of_those_that_wait_stops_no_other() {
    let refuses = "while read old new ref; do\n\
        if git log --format=%B $old..$new | grep -q '^Handoff-Id: 4[.]'; then echo 'no fours'; exit 1; fi\n\
        done";
    let mut gate = Gate::new(refuses);
    let (first, writers) = gate.held_back();
    gate.open(20);
    for writer in writers {
        let is_four = writer.issue == 4;
        let (status, said) = ended(writer);
        assert_eq!(status, Some(if is_four { 4 } else { 0 }), "{said}");
        assert_eq!(said.contains("no fours"), is_four, "{said}");
    }
    all_succeed([first]);
    gate.assert_opened(&[1, 2, 3, 5, 6, 7, 100]);
}

#[test]
fn who_is_killed_while_it_pushes_or_waits_holds_up_nobody() {
    let mut gate = Gate::new("");
    let (first, writers) = gate.held_back();
    let (killed, others): (Vec<Writer>, Vec<Writer>) =
        writers.into_iter().partition(|writer| writer.issue <= 3);
    kill(killed.into_iter().chain([first]));
    gate.open(20);
    all_succeed(others);
    // A step that was not acknowledged may be published or not; it is sent again.
    all_succeed([1, 2, 3, 100].map(|issue| gate.send(issue, &[])));
    gate.assert_opened(&SENT);
}

#[test]
fn a_step_whose_push_another_clone_overtakes_is_planned_again() {
    let mut gate = Gate::new("");
    let env = gate.env();
    let mut other = env.program(&["send", &env.file("9.xml", opening(9)), "--offline"]);
    other.current_dir(&gate.team.other);
    let other = other.output().unwrap();
    assert_eq!(other.status.code(), Some(8));
    let (first, writers) = gate.held_back();
    // Its push is not held back.
    unhook(&gate.team.bare, "pre-receive");
    gate.team.there(&["sync"]).success();
    hook(&gate.team.bare, "pre-receive", &self::gate(gate.env()));
    gate.open(20);
    all_succeed(writers.into_iter().chain([first]));
    gate.assert_opened(&[&SENT[..], &[9]].concat());
}

#[test]
fn who_has_no_time_left_knows_what_became_of_its_step() {
    let mut gate = Gate::new("");
    let first = gate.send(100, &[]);
    until("the first is there", || gate.pushes() == 1);
    let hasty = gate.send(8, &["--timeout", "1s"]);
    let (status, said) = ended(hasty);
    let is_there = match status {
        Some(8) => true,
        Some(7) => false,
        _ => panic!("{status:?} {said}"),
    };
    gate.open(20);
    let (status, said) = ended(first);
    assert!(matches!(status, Some(0 | 8)), "{said}");
    let more: &[u32] = if is_there { &[8] } else { &[] };
    gate.assert_opened(&[&[100][..], more].concat());
}

#[test]
fn steps_that_wait_for_a_remote_that_goes_away_are_not_lost() {
    let mut gate = Gate::new("");
    let (first, writers) = gate.held_back();
    gate.team.take_away();
    gate.open(20);
    for writer in writers.into_iter().chain([first]) {
        let (status, said) = ended(writer);
        assert!(matches!(status, Some(0 | 8)), "{said}");
    }
    gate.team.bring_back();
    gate.assert_opened(&SENT);
}
