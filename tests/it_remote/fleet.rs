//! Workers that run agents: a whole fleet in two clones of one remote, whose agents and workers die.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::dice::Dice;
use test_support::proof::times;
use test_support::remote::{assert_whole, bare, clone};
use test_support::{PATIENCE, TestEnvironment, repository_kind};

const ROLES: [&str; 5] = [
    "prep-agent",
    "implementer-agent",
    "reviewer-agent",
    "validator-agent",
    "closer-agent",
];

/// Two clones of a remote that has a ledger, and a script as agent.
struct Fleet {
    env: TestEnvironment,
    origin: PathBuf,
    clones: [PathBuf; 2],
    roles: PathBuf,
    faults: PathBuf,
}

impl Fleet {
    fn new() -> Self {
        let env = TestEnvironment::with_repository();
        let origin = bare(&env, "origin.git");
        let address = origin.to_str().unwrap().to_owned();
        env.git(
            &env.repo(),
            &["push", "-q", &address, "HEAD:refs/heads/main"],
        );
        let clones = ["a", "b"].map(|name| clone(&env, &address, name));
        env.handoff_in(
            &clones[0],
            &["init", "--remote", "origin", "--evidence", "off"],
        )
        .success();
        env.handoff_in(&clones[1], &["init", "--remote", "origin"])
            .success();
        let agent = env.root().join("agent.sh");
        test_support::files::script(&agent, include_str!("agent.sh"));
        let entry = |role: &&str| {
            format!(
                "[[role]]\nagent = \"{role}\"\ncommand = [\"sh\", \"{}\"]\n",
                agent.display()
            )
        };
        let roles = env.root().join("roles.toml");
        let text: Vec<String> = ROLES.iter().map(entry).collect();
        fs::write(&roles, text.join("\n")).unwrap();
        let faults = env.root().join("faults");
        fs::create_dir(&faults).unwrap();
        Self {
            env,
            origin,
            clones,
            roles,
            faults,
        }
    }

    fn open(&self, issue: usize) {
        let issue = issue.to_string();
        let address = format!("https://github.com/octo/parcels/issues/{issue}");
        let fields = [
            format!("issue_url={address}"),
            format!("issue_title=Part {issue}"),
            "type=feature".to_owned(),
            "priority=high".to_owned(),
            "requirements=It works".to_owned(),
            "summary=A part".to_owned(),
        ];
        let mut args = vec!["send", "--issue", &issue, "--to", "prep-agent"];
        args.extend(["--as", "issue-manager"]);
        args.extend(fields.iter().flat_map(|field| ["--set", field]));
        self.env.handoff_in(&self.clones[0], &args).success();
    }

    /// A worker of a clone, not started yet. Its agents meet with faults.
    fn worker(&self, clone: usize, args: &[&str]) -> Command {
        let roles = self.roles.to_str().unwrap();
        let mut all = vec!["work", "--file", roles, "--time", "30s", "--grace", "500ms"];
        all.extend(["--env", "FAULTS"]);
        all.extend(["--poll", "1s"]);
        all.extend(args);
        let mut command = self.env.program(&all);
        command
            .current_dir(&self.clones[clone])
            .env("GIT_HANDOFF_WORKER", format!("clone-{clone}"))
            .env("FAULTS", &self.faults)
            // Leases end by the true time.
            .env_remove("GIT_AUTHOR_DATE")
            .env_remove("GIT_COMMITTER_DATE")
            .stdout(Stdio::null())
            .stderr(self.said());
        command
    }

    /// The file for all that workers say.
    fn said(&self) -> File {
        let mut options = File::options();
        let path = self.env.root().join("said.txt");
        options.create(true).append(true).open(path).unwrap()
    }

    /// How many issues are completed, as the remote has them.
    fn completed(&self, issues: usize) -> usize {
        self.env.handoff_in(&self.clones[0], &["fetch"]);
        let is = |issue: &usize| {
            let issue = issue.to_string();
            let ran = self
                .env
                .handoff_in(&self.clones[0], &["status", &issue, "--offline", "--json"]);
            ran.status == 0 && ran.json()["data"]["issue"]["status"] == "completed"
        };
        (1..=issues).filter(is).count()
    }

    /// Where the ledger is at the remote.
    fn tip(&self) -> String {
        repository_kind::now_at(&self.origin, "refs/heads/handoffs")
    }

    /// The processes that agents started and that still run. git's maintenance, which a worker's own
    /// commands start, ends by itself.
    fn orphans(&self) -> Vec<String> {
        let mark = format!("FAULTS={}", self.faults.display());
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let is_agent = |folder: &Path| {
            let variables = fs::read(folder.join("environ")).unwrap_or_default();
            let has = |start: &[u8]| {
                let mut all = variables.split(|byte| *byte == 0);
                all.any(|one| one.starts_with(start))
            };
            has(mark.as_bytes()) && has(b"GIT_HANDOFF_ID=")
        };
        entries
            .filter(|entry| is_agent(&entry.path()))
            .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
            .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
            .collect()
    }
}

#[test]
fn a_fleet_whose_agents_and_workers_die_closes_every_issue() {
    let issues = 2 * times() as usize;
    const WORKERS: usize = 4;
    let fleet = Fleet::new();
    for issue in 1..=issues {
        fleet.open(issue);
    }
    let start = |number: usize| fleet.worker(number % 2, &["--decide"]).spawn().unwrap();
    let mut workers: Vec<Child> = (0..WORKERS).map(start).collect();
    let mut dice = Dice::new(7);
    let begun = Instant::now();
    let patience = PATIENCE + Duration::from_secs(60 * issues as u64);
    let mut kills = 0;
    while fleet.completed(issues) < issues {
        if begun.elapsed() > patience {
            let status = fleet.env.handoff_in(&fleet.clones[0], &["status"]);
            let said = fs::read_to_string(fleet.env.root().join("said.txt")).unwrap();
            panic!("not closed after {kills} kills: {}\n{said}", status.shown);
        }
        // On a busy machine, kills come no faster than steps.
        let (before, paused) = (fleet.tip(), Instant::now());
        thread::sleep(Duration::from_millis(1500));
        while fleet.tip() == before && paused.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(50));
        }
        let victim = usize::try_from(dice.below(WORKERS as u64)).unwrap();
        workers[victim].kill().unwrap();
        workers[victim].wait().unwrap();
        workers[victim] = start(victim);
        kills += 1;
    }
    let took = begun.elapsed();
    for worker in &mut workers {
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    // What the last kills left, the next worker of each clone takes up.
    for clone in 0..2 {
        let ended = fleet.worker(clone, &["--until-idle"]).status().unwrap();
        assert!(ended.success(), "{ended}");
    }
    assert_eq!(fleet.orphans(), Vec::<String>::new());
    let (mut steps, mut left) = (0, 0);
    for folder in &fleet.clones {
        fleet.env.handoff_in(folder, &["sync"]).success();
        fleet.env.handoff_in(folder, &["verify"]).success();
        // A worker that was killed right after it recorded a failure left its files there; no other
        // worktree is left.
        let list = fleet
            .env
            .handoff_in(folder, &["work", "--list", "--json"])
            .success()
            .json();
        for one in list["data"]["worktrees"].as_array().unwrap() {
            let said = fs::read_to_string(fleet.env.root().join("said.txt")).unwrap();
            assert_ne!(one["only_here"], serde_json::json!([]), "{one}: {said}");
            let issue = one["issue"].as_str().unwrap();
            fleet
                .env
                .handoff_in(folder, &["work", "--prune", "--discard", issue])
                .success();
            left += 1;
        }
        let listed = fleet.env.git(folder, &["worktree", "list", "--porcelain"]);
        assert_eq!(listed.matches("worktree ").count(), 1, "{listed}");
        let notes = fs::read_dir(folder.join(".git/handoff/work"))
            .unwrap()
            .flatten();
        let notes = notes.filter(|note| note.file_name().to_string_lossy().ends_with(".json"));
        assert_eq!(notes.count(), 0, "nothing is under way");
    }
    assert_whole(&fleet.env, &fleet.origin);
    fleet
        .env
        .git(&fleet.clones[0], &["fetch", "-q", "origin", "main"]);
    for issue in 1..=issues {
        let file = format!("FETCH_HEAD:work-{issue}.txt");
        fleet.env.git(&fleet.clones[0], &["cat-file", "-e", &file]);
        let log = fleet
            .env
            .handoff_in(&fleet.clones[0], &["log", &issue.to_string(), "--json"]);
        let log: Value = log.success().json();
        let entries = log["data"]["steps"].as_array().unwrap();
        assert!(entries.len() <= 40, "{} steps", entries.len());
        steps += entries.len();
    }
    let figures = format!(
        "{issues} issues, {kills} kills, {steps} steps, {left} worktrees named, {} s",
        took.as_secs()
    );
    writeln!(std::io::stderr(), "{figures}").unwrap();
}

#[test]
fn a_branch_that_another_clone_has_gone_on_with_is_followed() {
    let fleet = Fleet::new();
    fleet.open(1);
    // Both clones make the branch from another commit; only one has work on it.
    let at = |clone: usize, line: &str| {
        let args: Vec<&str> = line.split(' ').collect();
        fleet.env.git(&fleet.clones[clone], &args)
    };
    at(1, "commit -q --allow-empty -m more");
    at(1, "push -q origin HEAD:main");
    at(1, "branch handoff/1");
    for role in ["prep-agent", "implementer-agent", "reviewer-agent"] {
        let clone = usize::from(role == "reviewer-agent");
        let agent = fleet.env.root().join("agent.sh");
        let args = [
            "work",
            "--as",
            role,
            "--once",
            "--json",
            "--",
            agent.to_str().unwrap(),
        ];
        let mut command = fleet.env.program(&args);
        command.current_dir(&fleet.clones[clone]);
        command.env("GIT_HANDOFF_WORKER", format!("clone-{clone}"));
        command
            .env_remove("GIT_AUTHOR_DATE")
            .env_remove("GIT_COMMITTER_DATE");
        fleet.env.run(command, &args, None).success();
    }
}
