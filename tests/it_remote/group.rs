//! Writers of one clone at once: those that wait publish in one push, each its own step, once.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use test_support::contracts::opening;
use test_support::remote::{bare, hook, unhook};
use test_support::{TestEnvironment, until};

use crate::clones::{Clones, is_in_queue};

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

    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.env().program(args);
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn send(&self, issue: u32, more: &[&str]) -> Writer {
        let contract = self.env().file(&format!("{issue}.xml"), opening(issue));
        let child = self.start(&[&["send", &contract], more].concat());
        Writer { child, issue }
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

    /// How many steps wait in the clone, or were there last.
    fn waiting(&self) -> usize {
        let folder = self.env().repo().join(".git/handoff");
        let names = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let is_group = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("group-")
        };
        let note = names
            .filter(is_group)
            .find_map(|path| fs::read_to_string(path).ok());
        let note = note.unwrap_or_default();
        let last = note.split(' ').nth(2).unwrap_or("-");
        if last.len() < 40 {
            return 0;
        }
        let range = format!("refs/handoff/remotes/origin/handoffs..{last}");
        let counted = self
            .env()
            .git_any(&self.env().repo(), &["rev-list", "--count", &range]);
        counted.stdout.trim().parse().unwrap_or_default()
    }

    /// A first step is pushed and held back, these wait for it, and when it is through, one of them
    /// is held back while the steps of all others wait.
    fn wait_with(&mut self, start: impl Fn(&Self) -> Vec<Writer>) -> (Writer, Vec<Writer>) {
        let first = self.send(100, &[]);
        until("the first is there", || self.pushes() == 1);
        let writers = start(self);
        self.open_second(&writers);
        until("all others wait", || self.waiting() == writers.len());
        (first, writers)
    }

    /// Lets the first push through once all of these wait for it, until one of them pushes. Who
    /// begins later would have to look at the remote first, and would wait for that push's end.
    fn open_second(&mut self, writers: &[Writer]) {
        let have_begun = || writers.iter().all(|writer| is_in_queue(&writer.child));
        until("all of them have begun", have_begun);
        self.open(1);
        until("the second is there", || self.pushes() == 2);
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

fn senders(gate: &Gate) -> Vec<Writer> {
    (1..=7).map(|issue| gate.send(issue, &[])).collect()
}

const SENT: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 100];

#[test]
fn steps_that_wait_are_published_in_one_push() {
    let mut gate = Gate::new("");
    let (first, writers) = gate.wait_with(senders);
    gate.open(2);
    all_succeed(writers.into_iter().chain([first]));
    assert!(gate.pushes() <= 3, "{} pushes", gate.pushes());
    gate.assert_opened(&SENT);
}

#[test]
fn of_those_that_wait_a_refused_one_is_told_alone() {
    let mut gate = Gate::new("");
    let claims = |gate: &Gate| {
        let claim = |worker: &str| Writer {
            child: gate.start(&["claim", "100.1", "--as", "prep-agent", "--worker", worker]),
            issue: 100,
        };
        let mut writers = senders(gate);
        writers.extend([claim("one"), claim("other")]);
        writers
    };
    let first = gate.send(100, &[]);
    until("the first is there", || gate.pushes() == 1);
    let mut writers = claims(&gate);
    gate.open_second(&writers);
    // One of the claims waits too, the other waits for what becomes of it.
    until("all others wait", || gate.waiting() == writers.len() - 1);
    gate.open(20);
    let claims = writers.split_off(7);
    all_succeed(writers.into_iter().chain([first]));
    let mut codes: Vec<_> = claims.into_iter().map(|claim| ended(claim).0).collect();
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
    let first = gate.send(100, &[]);
    until("the first is there", || gate.pushes() == 1);
    let writers = senders(&gate);
    gate.open(100);
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
fn who_is_killed_among_those_that_wait_holds_up_nobody() {
    let mut gate = Gate::new("");
    let (first, writers) = gate.wait_with(senders);
    // Three of them, which may be the one whose push is held back.
    let (killed, others): (Vec<Writer>, Vec<Writer>) =
        writers.into_iter().partition(|writer| writer.issue <= 3);
    for mut writer in killed {
        writer.child.kill().unwrap();
        writer.child.wait().unwrap();
    }
    gate.open(20);
    all_succeed(others.into_iter().chain([first]));
    // A step that was not acknowledged may be published or not; it is sent again.
    all_succeed((1..=3).map(|issue| gate.send(issue, &[])));
    gate.assert_opened(&SENT);
}

#[test]
fn who_publishes_for_others_may_be_killed() {
    let mut gate = Gate::new("");
    let first = gate.send(100, &[]);
    until("the first is there", || gate.pushes() == 1);
    let writers = senders(&gate);
    let (mut killed, status) = (first, Some(0));
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    gate.open(20);
    for writer in writers {
        let (ended, said) = ended(writer);
        assert_eq!(ended, status, "{said}");
    }
    all_succeed([gate.send(100, &[])]);
    gate.assert_opened(&SENT);
}

#[test]
fn steps_that_wait_are_planned_again_if_another_clone_is_first() {
    let mut gate = Gate::new("");
    let env = gate.env();
    let mut other = env.program(&["send", &env.file("9.xml", opening(9)), "--offline"]);
    other.current_dir(&gate.team.other);
    let other = other.output().unwrap();
    assert_eq!(other.status.code(), Some(8));
    let (first, writers) = gate.wait_with(senders);
    // Its push is not held back.
    unhook(&gate.team.bare, "pre-receive");
    gate.team.there(&["sync"]).success();
    hook(&gate.team.bare, "pre-receive", &self::gate(gate.env()));
    gate.open(20);
    all_succeed(writers.into_iter().chain([first]));
    gate.assert_opened(&[&SENT[..], &[9]].concat());
}

#[test]
fn who_has_no_time_left_among_those_that_wait_knows_what_became_of_its_step() {
    let mut gate = Gate::new("");
    let first = gate.send(100, &[]);
    until("the first is there", || gate.pushes() == 1);
    let hasty = gate.send(8, &["--timeout", "1s"]);
    let writers = senders(&gate);
    let (status, said) = ended(hasty);
    let is_there = match status {
        Some(8) => true,
        Some(7) => false,
        _ => panic!("{status:?} {said}"),
    };
    gate.open(40);
    for writer in writers.into_iter().chain([first]) {
        let (status, said) = ended(writer);
        assert!(matches!(status, Some(0 | 8)), "{said}");
    }
    let more: &[u32] = if is_there { &[8] } else { &[] };
    gate.assert_opened(&[&SENT[..], more].concat());
}

#[test]
fn steps_that_wait_for_a_remote_that_goes_away_are_not_lost() {
    let mut gate = Gate::new("");
    let (first, writers) = gate.wait_with(senders);
    gate.team.take_away();
    gate.open(20);
    for writer in writers.into_iter().chain([first]) {
        // The push that was held back may have taken all of them along.
        let (status, said) = ended(writer);
        assert!(matches!(status, Some(0 | 8)), "{said}");
    }
    gate.team.bring_back();
    gate.assert_opened(&SENT);
}

#[test]
fn without_a_place_for_notes_each_publishes_its_own() {
    let env = TestEnvironment::with_repository();
    let server = bare(&env, "server.git");
    let address = server.to_str().unwrap().to_owned();
    let team = Clones::through(env, server, &address);
    let folder = team.env.repo().join(".git/handoff");
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with("group-") {
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
        }
    }
    team.open(&team.env.repo(), 1, &[]).success();
    team.open(&team.env.repo(), 2, &[]).success();
    team.there(&["sync"]).success();
    team.assert_together();
}

#[test]
fn a_note_that_says_nothing_or_lies_costs_nothing() {
    let team = Clones::new();
    let repo = team.env.repo();
    let folder = repo.join(".git/handoff");
    let group = || {
        let names = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut names = names.filter(|path| path.to_str().unwrap().contains("/group-"));
        names.next().unwrap()
    };
    team.open(&repo, 1, &[]).success();
    let (old, none) = (team.tip(&repo), "0123456789012345678901234567890123456789");
    let future = "99999999999999999999";
    for (issue, note) in [
        (2, "nonsense".to_owned()),
        (3, format!("{future} {old} {old} {old}")),
        (4, format!("1 {none} {none} {none}")),
        (5, "\0\0\0".to_owned()),
        (6, format!("{future} - - -")),
    ] {
        fs::write(group(), note).unwrap();
        team.open(&repo, issue, &[]).success();
        let there = team.tip(&team.bare);
        assert_eq!(team.tip(&repo), there);
    }
    assert_eq!(team.published_since(&old).len(), 5);
    team.there(&["sync"]).success();
    team.assert_together();
}
