//! What `scripts/bench` needs beside the program itself.
//!
//! `bench_tool ledger N` makes a legal ledger of N handoffs in the repository of the current folder;
//! `bench_tool open CLAIMABLE WAITING` one in which prep-agent has so many to claim, and implementer-agent so many;
//! `bench_tool steps COUNT FIRST DIR` writes COUNT steps, each opening an issue, one folder each, for
//! `bare_writes` and the plumbing script; `bench_tool contracts MS` counts checked contracts, nine times for so long.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../benches/support/mod.rs"]
mod support;

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chrono::{DateTime, FixedOffset};
use handoff::base::{Edit, ObjectId};
use handoff::contract::Format;
use handoff::git::{Person, Proposal, Repository, Shape, Surroundings, tune};
use handoff::ledger::{Clock, DEFAULT_BRANCH, Founding, Ledger, Session};
use handoff::model::layout;
use handoff::protocol::Policy;
use handoff::templates::built_in;
use support::contracts::Stage;
use support::work::Planned;
use support::{Samples, Work};

/// The ledger's branch.
const REF: &str = "refs/heads/handoffs";

fn main() {
    tune(Surroundings::default());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["ledger", handoffs] => ledger(handoffs.parse().unwrap()),
        ["open", claimable, waiting] => open(claimable.parse().unwrap(), waiting.parse().unwrap()),
        ["steps", count, first, dir] => {
            steps(
                count.parse().unwrap(),
                first.parse().unwrap(),
                Path::new(dir),
            );
        }
        ["contracts", ms] => contracts(Duration::from_millis(ms.parse().unwrap())),
        _ => panic!(
            "bench_tool ledger N | open CLAIMABLE WAITING | steps COUNT FIRST DIR | contracts MS"
        ),
    }
}

struct Fixed;

impl Clock for Fixed {
    fn author(&self) -> DateTime<FixedOffset> {
        DateTime::from_timestamp(1_767_261_600, 0)
            .unwrap()
            .fixed_offset()
    }
    fn committer(&self) -> DateTime<FixedOffset> {
        self.author()
    }
}

/// The ledger's first commit: what `init` wrote, or the same made here.
fn root(repository: &Repository) -> ObjectId {
    let bench = ("Bench", "bench@handoff.invalid");
    let clock = std::rc::Rc::new(Fixed);
    let session = Session::new(clock, bench, std::time::SystemTime::now, |_| 0);
    let founding = Founding {
        protocol: "issue-to-pr".parse().unwrap(),
        evidence: Policy::Off,
        files: built_in("issue-to-pr").unwrap().into_files(),
        readme: "A ledger that was made to be measured.\n".to_owned(),
    };
    let mut ledger = Ledger::new(repository, DEFAULT_BRANCH).unwrap();
    ledger.init(&session, &founding).unwrap();
    ledger.tip_id().unwrap().unwrap()
}

/// Streams every step to one `git fast-import`.
fn ledger(handoffs: usize) {
    let root = root(&Repository::open_here().unwrap());
    let mut import = Command::new("git")
        .args(["fast-import", "--quiet", "--date-format=raw"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufWriter::with_capacity(1 << 20, import.stdin.take().unwrap());
    let mut work = Work::new();
    let (mut sent, mut commits) = (0, 1);
    while sent < handoffs {
        let planned = work.next_step();
        let (author, message) = (&planned.author, &planned.step.message);
        let committer = author.to_string();
        let committer = &committer[committer.find('>').unwrap() + 1..];
        write!(out, "commit refs/heads/{DEFAULT_BRANCH}\nauthor {author}\n").unwrap();
        writeln!(out, "committer Bench <bench@handoff.invalid>{committer}").unwrap();
        write!(out, "data {}\n{message}\n", message.len()).unwrap();
        if commits == 1 {
            writeln!(out, "from {root}").unwrap();
        }
        for (path, edit) in &planned.step.files {
            match edit {
                Edit::Bytes(bytes) => {
                    write!(out, "M 100644 inline {path}\ndata {}\n", bytes.len()).unwrap();
                    out.write_all(bytes).unwrap();
                    out.write_all(b"\n").unwrap();
                }
                Edit::Gone => writeln!(out, "D {path}").unwrap(),
                Edit::Folder(_) => panic!("a step of this work keeps no folder"),
            }
        }
        commits += 1;
        sent += usize::from(planned.sends);
    }
    out.flush().unwrap();
    drop(out);
    assert!(import.wait().unwrap().success(), "git fast-import failed");
    println!("{commits} commits");
}

/// A ledger in which one agent has so many handoffs to claim, and another so many.
fn open(claimable: u32, waiting: u32) {
    let repository = Repository::open_here().unwrap();
    let mut writer = Writer::new(&repository);
    let mut work = Work::new();
    for issue in 1..=claimable + waiting {
        // It is opened, claimed and prepared.
        let steps = if issue <= waiting { 3 } else { 1 };
        for planned in work.first_steps(issue, steps) {
            writer.write(&planned);
        }
    }
    println!("{} commits", writer.end());
}

/// Writes steps into packs, with the trees that the program would write: a plain path does not tell where in a
/// divided folder a file goes.
struct Writer<'r> {
    repository: &'r Repository,
    published: ObjectId,
    tip: ObjectId,
    commits: usize,
}

impl<'r> Writer<'r> {
    fn new(repository: &'r Repository) -> Self {
        let root = root(repository);
        repository.collect_new_objects();
        Self {
            repository,
            published: root,
            tip: root,
            commits: 1,
        }
    }

    fn write(&mut self, planned: &Planned) {
        const COLLECTED: usize = 256 << 20;
        let committer = Person::new("Bench", "bench@handoff.invalid", planned.author.at);
        let tree = self.repository.commit(self.tip).unwrap().tree;
        let prepared = self.repository.prepare(&Proposal {
            refname: REF,
            parent: Some((self.tip, tree)),
            edits: &planned.step.files,
            shape: Shape {
                closed: layout::is_closed,
                divided: layout::is_divided,
            },
            author: &planned.author,
            committer: &committer,
            message: &planned.step.message,
        });
        self.tip = prepared.unwrap().commit();
        self.commits += 1;
        if self.repository.collected_bytes() >= COLLECTED {
            self.publish();
            self.repository.collect_new_objects();
        }
    }

    fn publish(&mut self) {
        let (before, after) = (Some(self.published), self.tip);
        self.repository.write_pack().unwrap();
        { self.repository.move_ref(REF, before, after, "bench_tool") }.unwrap();
        self.published = self.tip;
    }

    /// How many commits there are.
    fn end(mut self) -> usize {
        self.publish();
        self.commits
    }
}

/// Writes steps as files: `contract`, `message`, `author` (name, address, date), `edits` (blob, path), `blob-N`.
fn steps(count: u32, first: u32, dir: &Path) {
    let mut work = Work::new();
    for number in 0..count {
        let planned = work.opening(first + number);
        let dir = dir.join(number.to_string());
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("contract"), planned.contract.as_ref().unwrap()).unwrap();
        fs::write(dir.join("message"), &planned.step.message).unwrap();
        let author = planned.author;
        let text = format!(
            "{}\n{}\n{} +0000\n",
            author.name,
            author.email,
            author.at.timestamp()
        );
        fs::write(dir.join("author"), text).unwrap();
        let mut blobs: Vec<&Vec<u8>> = Vec::new();
        let mut edits = String::new();
        for (path, edit) in &planned.step.files {
            let Edit::Bytes(bytes) = edit else {
                panic!("the first step of an issue only writes files");
            };
            let known = blobs.iter().position(|blob| *blob == bytes);
            let at = known.unwrap_or_else(|| {
                fs::write(dir.join(format!("blob-{}", blobs.len())), bytes).unwrap();
                blobs.push(bytes);
                blobs.len() - 1
            });
            edits += &format!("{at}\t{path}\n");
        }
        fs::write(dir.join("edits"), edits).unwrap();
    }
}

/// Prints how many contracts one core checks in a second: parse, resolve, schema, semantic checks.
fn contracts(turn: Duration) {
    let samples = Samples::new();
    for (name, format) in [("XML", Format::Xml), ("JSON", Format::Json)] {
        let texts: Vec<String> = Stage::all(17)
            .into_iter()
            .map(|stage| samples.text(stage, 17, format))
            .collect();
        let bytes: usize = texts.iter().map(String::len).sum();
        let mut rates = Vec::new();
        for _ in 0..9 {
            let start = Instant::now();
            let mut checked = 0_u32;
            while start.elapsed() < turn {
                for text in &texts {
                    samples.review(std::hint::black_box(text));
                    checked += 1;
                }
            }
            rates.push(f64::from(checked) / start.elapsed().as_secs_f64());
        }
        rates.sort_by(f64::total_cmp);
        println!(
            "{name} {:.0} {}",
            rates[rates.len() / 2],
            bytes / texts.len()
        );
    }
}
