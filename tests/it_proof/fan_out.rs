//! Many clones write to one remote at one moment: none of the steps is lost, and none is there
//! twice. How long that takes is told, not judged.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::files;
use test_support::proof::Proof;
use test_support::remote::{Access, Http, assert_whole, origin};

/// How clones reach the remote.
#[derive(Clone, Copy, Debug)]
enum Way {
    Path,
    Http,
}

/// The remote, and clones of it that are copies of one.
struct Fan {
    env: TestEnvironment,
    bare: PathBuf,
    clones: Vec<PathBuf>,
    _http: Option<Http>,
}

impl Fan {
    fn new(way: Way, count: usize) -> Self {
        let env = TestEnvironment::with_repository();
        env.pace(0);
        let bare = origin(&env);
        let args = ["init", "--remote", "origin", "--evidence", "off"];
        env.handoff(&args).success();
        let (to, http) = match way {
            Way::Path => (bare.to_str().unwrap().to_owned(), None),
            Way::Http => {
                let http = Http::start(&env, Access::Open);
                (http.address("server.git"), Some(http))
            }
        };
        let first = test_support::remote::clone(&env, &to, "clone-0");
        env.handoff_in(&first, &["init", "--remote", "origin"])
            .success();
        let copy = |number| {
            let folder = env.root().join(format!("clone-{number}"));
            files::copy(&first, &folder);
            folder
        };
        let copies = (1..count).map(copy);
        let clones = [first.clone()].into_iter().chain(copies).collect();
        Self {
            env,
            bare,
            clones,
            _http: http,
        }
    }

    /// Has every clone open an issue of its own at one moment; how long each took, in order.
    fn write(&self) -> Vec<Duration> {
        let ready = Barrier::new(self.clones.len());
        let mut took: Vec<Duration> = thread::scope(|scope| {
            let write = |(number, clone): (usize, &'_ PathBuf)| {
                let issue = u32::try_from(number + 1).unwrap();
                let name = format!("open-{issue}.xml");
                let contract = self.env.file(&name, opening(issue));
                let (clone, ready) = (clone.clone(), &ready);
                scope.spawn(move || {
                    ready.wait();
                    self.send(&clone, &contract)
                })
            };
            let writers: Vec<_> = self.clones.iter().enumerate().map(write).collect();
            writers
                .into_iter()
                .map(|writer| writer.join().unwrap())
                .collect()
        });
        took.sort_unstable();
        took
    }

    fn send(&self, clone: &Path, contract: &str) -> Duration {
        let args = ["send", contract, "--json", "--timeout", "20m"];
        let mut command = self.env.program(&args);
        command
            .current_dir(clone)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let start = Instant::now();
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let took = start.elapsed();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(output.status.success(), "{document}");
        assert_eq!(document["data"]["repeated"], false);
        took
    }

    /// Every issue is on the remote, in one step.
    fn assert_complete(&self) {
        let log = [
            "log",
            "--format=%(trailers:key=Handoff-Id,valueonly,separator=)",
            "handoffs",
        ];
        let told = self.env.git(&self.bare, &log);
        let mut ids: Vec<&str> = told.lines().filter(|line| !line.is_empty()).collect();
        ids.sort_unstable();
        let mut wanted: Vec<String> = (1..=self.clones.len()).map(|n| format!("{n}.1")).collect();
        wanted.sort_unstable();
        assert_eq!(ids, wanted);
        self.env.handoff_in(&self.bare, &["verify"]).success();
        assert_whole(&self.env, &self.bare);
    }
}

/// The time within which so many of a hundred were done.
fn within(took: &[Duration], percent: usize) -> f64 {
    let at = (took.len() * percent).div_ceil(100).max(1) - 1;
    took[at].as_secs_f64()
}

#[test]
fn prove_that_writes_of_many_clones_at_one_moment_are_all_kept() {
    let mut proof = Proof::new("fan-out", 2);
    let sizes: &[(Way, usize)] = if proof.is_long() {
        &[
            (Way::Path, 50),
            (Way::Http, 50),
            (Way::Path, 200),
            (Way::Http, 200),
        ]
    } else {
        &[(Way::Path, 12), (Way::Http, 6)]
    };
    let mut writes = 0;
    let mut told = Vec::new();
    // As many of them as there is time for.
    for &(way, count) in sizes.iter().cycle() {
        if proof.case().is_none() {
            break;
        }
        let fan = Fan::new(way, count);
        let took = fan.write();
        fan.assert_complete();
        writes += u64::try_from(count).unwrap();
        let [half, most, all] = [50, 95, 100].map(|percent| within(&took, percent));
        told.push(format!(
            "of {count} by {way:?} 50 % in {half:.1} s, 95 % in {most:.1} s, all in {all:.1} s"
        ));
    }
    let told = format!("writes, none lost or doubled; {}", told.join("; "));
    proof.passed(&[(&told, writes)]);
}
