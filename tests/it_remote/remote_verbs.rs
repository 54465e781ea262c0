//! Every command that writes, on a ledger with a remote: it publishes, or records
//! here alone where it is told to; and nothing of the user's is touched.

use std::collections::BTreeMap;
#[cfg(feature = "all")]
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use test_support::contracts::{Format, opening, prepared, value as sample_value};
use test_support::remote::{hook, unhook};
use test_support::{Ran, TestEnvironment, workflow};

use crate::clones::Clones;

/// A command that writes.
struct Verb {
    name: &'static str,
    /// Makes the ledger that the remote has when it runs.
    before: fn(&Clones),
    /// The command, of words without blanks.
    line: &'static str,
    /// A member of its receipt.
    receipt: &'static str,
}

/// A ledger of a protocol in the first clone, with what commands make of it.
fn ledger(clones: &Clones, protocol: &str, lines: &[&str]) {
    let env = &clones.env;
    let init = ["init", "--protocol", protocol, "--evidence", "off"];
    env.handoff(&init).success();
    done(clones, lines);
}

fn done(clones: &Clones, lines: &[&str]) {
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        clones.env.handoff(&words).success();
    }
}

const OPEN: &str = "send ../opening.xml";
const CLAIM: &str = "claim 87.1 --as prep-agent";
const FAIL: &str = "fail 87.1 --as prep-agent --message broken --recoverable";
const BLOCK: &str = "block 87.1 --as prep-agent --reason which?";
const RETRY: &str = "retry 87.1 --as orchestrator --reason again";

fn nothing(_: &Clones) {}

fn empty(clones: &Clones) {
    ledger(clones, "issue-to-pr", &[]);
}

fn opened(clones: &Clones) {
    ledger(clones, "issue-to-pr", &[OPEN]);
}

fn paused(clones: &Clones) {
    ledger(
        clones,
        "issue-to-pr",
        &[OPEN, "pause 87 --as orchestrator --reason later"],
    );
}

fn two_protocols(clones: &Clones) {
    empty(clones);
    done(clones, &["protocol add delegation"]);
}

fn claimed(clones: &Clones) {
    ledger(clones, "issue-to-pr", &[OPEN, CLAIM]);
}

fn failed(clones: &Clones) {
    ledger(clones, "issue-to-pr", &[OPEN, CLAIM, FAIL]);
}

fn blocked(clones: &Clones) {
    ledger(clones, "issue-to-pr", &[OPEN, CLAIM, BLOCK]);
}

fn dead(clones: &Clones) {
    failed(clones);
    for _ in 0..3 {
        done(clones, &[RETRY, CLAIM, FAIL]);
    }
}

fn expired(clones: &Clones) {
    ledger(
        clones,
        "issue-to-pr",
        &[OPEN, &format!("{CLAIM} --lease 1s")],
    );
}

fn completed(clones: &Clones) {
    empty(clones);
    workflow::run(&clones.env, &workflow::workflow(|_| Format::Xml));
}

fn asked(clones: &Clones) {
    ledger(clones, "delegation", &["send ../request.json"]);
}

fn specialists(clones: &Clones) {
    ledger(clones, "orchestrator-specialist", &[]);
}

fn own_protocol(clones: &Clones) {
    let copy = "protocol copy issue-to-pr ../own";
    done(clones, &[copy]);
    ledger(clones, "../own", &[]);
    let file = clones.env.root().join("own/protocol.json");
    let mut protocol: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    protocol["version"] = "1.0.1".into();
    fs::write(file, protocol.to_string()).unwrap();
}

/// The other clone keeps a claim that was refused, and that can be made now.
fn refused(clones: &Clones) {
    opened(clones);
    done(clones, &["init --remote origin"]);
    clones.there(&["init", "--remote", "origin"]).success();
    let claim: Vec<&str> = CLAIM.split(' ').collect();
    clones
        .there(&[&claim[..], &["--offline"]].concat())
        .exits(8);
    done(clones, &[CLAIM]);
    clones.there(&["sync"]).exits(5);
    done(clones, &[FAIL, RETRY]);
}

const fn verb(
    name: &'static str,
    before: fn(&Clones),
    line: &'static str,
    receipt: &'static str,
) -> Verb {
    Verb {
        name,
        before,
        line,
        receipt,
    }
}

const REQUEST: &str = "3f6e0a58-94c1-4d27-8a3b-5e1d7c90b264.1";

/// Every command that writes. `{…}` is replaced before it runs.
const VERBS: &[Verb] = &[
    verb("init", nothing, "init --remote origin", "branch"),
    verb("send", claimed, "send ../prepared.xml", "handoff"),
    verb("claim", opened, CLAIM, "record"),
    verb(
        "extend",
        claimed,
        "extend 87.1 --as prep-agent --lease 9h",
        "handoff",
    ),
    verb(
        "release",
        claimed,
        "release 87.1 --as prep-agent --reason later",
        "handoff",
    ),
    verb(
        "complete",
        claimed,
        "complete 87.1 --as prep-agent",
        "handoff",
    ),
    verb("fail", claimed, FAIL, "handoff"),
    verb("block", claimed, BLOCK, "handoff"),
    verb(
        "answer",
        blocked,
        "answer 87.1 main --as issue-manager",
        "handoff",
    ),
    verb("retry", failed, RETRY, "handoff"),
    verb(
        "reassign",
        asked,
        "reassign {request} --to validator --as document_generator",
        "handoff",
    ),
    verb(
        "retry",
        dead,
        "retry 87.1 --as orchestrator --reason up",
        "handoff",
    ),
    verb(
        "approve",
        claimed,
        "approve 87.1 --as maintainer",
        "handoff",
    ),
    verb("reap", expired, "reap --as orchestrator", "handoffs"),
    verb(
        "reject",
        opened,
        "reject 87.1 --as prep-agent --reason no",
        "handoff",
    ),
    verb(
        "cancel",
        opened,
        "cancel 87.1 --as issue-manager --reason no",
        "handoff",
    ),
    verb(
        "pause",
        opened,
        "pause 87 --as orchestrator --reason later",
        "handoff",
    ),
    verb(
        "reopen",
        completed,
        "reopen 87 --as closer-agent --reason more",
        "handoff",
    ),
    verb(
        "resume",
        paused,
        "resume 87 --as orchestrator --reason later",
        "issue",
    ),
    verb(
        "set",
        opened,
        "set 87 --as orchestrator priority=low --reason later",
        "changed",
    ),
    verb(
        "annotate",
        opened,
        "annotate 87.1 --as prep-agent --note 88",
        "handoff",
    ),
    verb(
        "next",
        failed,
        "next 87 --apply --as orchestrator",
        "applied",
    ),
    verb("protocol add", empty, "protocol add delegation", "version"),
    verb(
        "protocol update",
        own_protocol,
        "protocol update ../own",
        "version",
    ),
    verb(
        "protocol set",
        empty,
        "protocol set issue-to-pr evidence enforce",
        "version",
    ),
    verb(
        "protocol use",
        two_protocols,
        "protocol use delegation --weaker",
        "before",
    ),
    verb(
        "document set",
        specialists,
        "document set tech-stack ../stack.json --as @frontend-specialist",
        "document",
    ),
    verb("archive", completed, "archive 87", "count"),
    #[cfg(feature = "exchange")]
    verb("import", empty, "import ../exported", "imported"),
    #[cfg(feature = "exchange")]
    verb("exchange", specialists, "exchange ../desk", "imported"),
    verb(
        "refused retry",
        refused,
        "refused retry {rejected}",
        "rejected",
    ),
];

/// What takes `--offline` and makes no step: `wait`, `watch` and what asks the remote
/// first look here alone, the others only have it from the command that they are part of.
#[cfg(feature = "all")]
const READERS: [&str; 25] = [
    "alerts",
    "board",
    "doctor",
    "workers",
    "notify",
    "prime",
    "gate",
    "inbox",
    "list",
    "log",
    "show",
    "status",
    "wait",
    "watch",
    "protocol list",
    "protocol show",
    "protocol new",
    "protocol check",
    "protocol test",
    "protocol copy",
    "document list",
    "document show",
    "refused list",
    "refused show",
    "refused drop",
];

#[cfg(feature = "all")]
#[test]
fn the_table_has_every_command_that_writes() {
    let command = git_handoff::command();
    let takes = |command: &clap::Command| {
        command
            .get_arguments()
            .any(|argument| argument.get_long() == Some("offline"))
    };
    let mut known = BTreeSet::new();
    for sub in command.get_subcommands().filter(|sub| takes(sub)) {
        let name = sub.get_name();
        let below: Vec<String> = sub
            .get_subcommands()
            .map(|leaf| format!("{name} {}", leaf.get_name()))
            .collect();
        if below.is_empty() {
            known.insert(name.to_owned());
        } else {
            known.extend(below);
        }
    }
    let verbs = VERBS.iter().map(|verb| verb.name);
    let here: BTreeSet<String> = verbs.chain(READERS).map(str::to_owned).collect();
    assert_eq!(
        here, known,
        "the tables on the left, the program on the right"
    );
}

/// A user's work in a clone: every kind of change.
fn make_dirty(clones: &Clones) {
    let (env, other) = (&clones.env, &clones.other);
    let git = |args: &[&str]| drop(env.git(other, args));
    for (name, text) in [("README.md", "stashed\n"), ("kept", "kept\n")] {
        fs::write(other.join(name), text).unwrap();
    }
    git(&["stash", "-q"]);
    git(&["branch", "side"]);
    git(&["tag", "-a", "-m", "One", "v1"]);
    git(&["update-ref", "refs/notes/x", "HEAD"]);
    fs::write(other.join("README.md"), "staged\n").unwrap();
    git(&["add", "README.md"]);
    fs::write(other.join("README.md"), "and changed\n").unwrap();
    fs::write(other.join("untracked"), "new\n").unwrap();
    // A time that differs from the index's: a refresh would show.
    let file = fs::File::options().write(true).open(other.join("kept"));
    file.unwrap()
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    git(&["add", "-N", "untracked"]);
}

/// What belongs to the user in a clone: files by path with their modes, times and bytes.
fn users(clone: &Path, configures: bool) -> BTreeMap<PathBuf, (u32, i64, Vec<u8>)> {
    let owned = [
        ".git/objects",
        ".git/handoff",
        ".git/refs/handoff",
        ".git/refs/heads/handoffs",
        ".git/logs/refs/heads/handoffs",
        // As git does it after a push.
        ".git/refs/remotes/origin/handoffs",
        ".git/logs/refs/remotes/origin/handoffs",
        // What is in it is compared ref by ref.
        ".git/reftable",
    ];
    let mut found = BTreeMap::new();
    let mut folders = vec![clone.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let inside = path.strip_prefix(clone).unwrap().to_owned();
            let is_owned = owned.iter().any(|own| inside.starts_with(own));
            if is_owned || configures && inside == Path::new(".git/config") {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                folders.push(path);
                continue;
            }
            let time = meta.mtime() * 1_000_000_000 + meta.mtime_nsec();
            found.insert(inside, (meta.mode(), time, fs::read(&path).unwrap()));
        }
    }
    assert!(found.contains_key(Path::new(".git/index")));
    assert!(found.contains_key(Path::new(".git/HEAD")));
    found
}

/// The user's refs, wherever they are kept.
fn users_refs(env: &TestEnvironment, clone: &Path) -> Vec<String> {
    let refs = env.git(clone, &["for-each-ref"]);
    let own = ["refs/heads/handoffs", "refs/remotes/origin/handoffs"];
    let is_users = |line: &&str| {
        let name = line.split('\t').nth(1).unwrap();
        !own.contains(&name) && !name.starts_with("refs/handoff/")
    };
    refs.lines().filter(is_users).map(str::to_owned).collect()
}

/// A remote with a ledger, and two clones in the same state, each with a remote of its own.
struct Stage {
    clones: Clones,
    /// The clone in which a command publishes, and its remote.
    online: PathBuf,
    bare: PathBuf,
}

impl Stage {
    fn new(verb: &Verb) -> Self {
        let clones = Clones::without_ledger();
        let env = &clones.env;
        env.pace(1);
        env.file("opening.xml", opening(87));
        env.file("prepared.xml", prepared(87));
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
        let request = samples.join("delegation/valid/request.json");
        fs::copy(request, env.root().join("request.json")).unwrap();
        env.file(
            "stack.json",
            r#"{"framework": "React", "version": "19.1", "layers": {}}"#,
        );
        if verb.name == "exchange" {
            let pending = env.root().join("desk/handoffs/pending");
            fs::create_dir_all(&pending).unwrap();
            let request = sample_value("orchestrator-specialist", "request", &[]).to_string();
            fs::write(pending.join("request.json"), request).unwrap();
        }
        if verb.name == "import" {
            let exporter = TestEnvironment::with_ledger();
            exporter.send(opening(5)).success();
            let folder = env.root().join("exported");
            let args = ["export", "--format", "files", folder.to_str().unwrap()];
            exporter.handoff(&args).success();
        }
        make_dirty(&clones);
        (verb.before)(&clones);
        if !clones.tip(&env.repo()).is_empty() {
            env.git(&env.repo(), &["push", "-q", "origin", "handoffs"]);
            clones.there(&["init", "--remote", "origin"]).success();
        }
        let (online, bare) = (env.root().join("online"), env.root().join("bare2.git"));
        for (from, to) in [(&clones.other, &online), (&clones.bare, &bare)] {
            let copied = Command::new("cp").arg("-a").args([from, to]).status();
            assert!(copied.unwrap().success());
        }
        let url = ["config", "remote.origin.url", bare.to_str().unwrap()];
        env.git(&online, &url);
        Self {
            clones,
            online,
            bare,
        }
    }

    /// Runs a verb in a clone; nothing of the user's changes.
    fn run(&self, verb: &Verb, clone: &Path, more: &[&str]) -> Ran {
        let env = &self.clones.env;
        let mut line = verb.line.replace("{request}", REQUEST);
        if line.contains("{rejected}") {
            let listed = env.handoff_in(clone, &["refused", "--json"]).json();
            let name = listed["data"]["rejected"][0]["name"].as_str().unwrap();
            line = line.replace("{rejected}", name);
        }
        let words: Vec<&str> = line.split(' ').chain(more.iter().copied()).collect();
        let configures = verb.name == "init";
        let before = (users(clone, configures), users_refs(env, clone));
        // What the first clone claimed, its worker goes on with here.
        let ran = env.handoff_in(clone, &[&words[..], &["--worker", "repo"]].concat());
        let now = (users(clone, configures), users_refs(env, clone));
        let name = verb.name;
        assert_eq!(now.1, before.1, "{name}: {}", ran.shown);
        for path in before.0.keys().chain(now.0.keys()) {
            let same = before.0.get(path) == now.0.get(path);
            assert!(same, "{name} changed {}: {}", path.display(), ran.shown);
        }
        ran
    }
}

#[track_caller]
fn publishes(verb: &Verb, stage: &Stage) {
    let (name, clones) = (verb.name, &stage.clones);
    let before = clones.tip(&stage.bare);
    let document = stage.run(verb, &stage.online, &["--json"]).success().json();
    assert_eq!(document["ok"], true, "{name}");
    assert!(
        document["data"].get(verb.receipt).is_some(),
        "{name}: {document:#}"
    );
    let tip = clones.tip(&stage.online);
    assert_ne!(tip, before, "{name} wrote nothing");
    assert_eq!(clones.tip(&stage.bare), tip, "{name}");
    sound(clones, &[&stage.online, &stage.bare]);
}

#[track_caller]
fn records_here_alone(verb: &Verb, stage: &Stage) {
    let (name, clones) = (verb.name, &stage.clones);
    let (before, here) = (clones.tip(&clones.bare), clones.tip(&clones.other));
    let args = ["--offline", "--json"];
    let document = stage.run(verb, &clones.other, &args).exits(8).json();
    assert_eq!(document["ok"], false, "{name}");
    assert_eq!(document["error"]["code"], "not_published", "{name}");
    assert!(
        document["data"].get(verb.receipt).is_some(),
        "{name}: {document:#}"
    );
    assert_ne!(clones.tip(&clones.other), here, "{name} wrote nothing");
    assert_eq!(clones.tip(&clones.bare), before, "{name}");
    let sync = verb_of("sync");
    let synced = stage
        .run(&sync, &clones.other, &["--json"])
        .success()
        .json();
    assert_ne!(synced["data"]["sent"], 0, "{name}: {synced:#}");
    let tip = clones.tip(&clones.other);
    assert_ne!(tip, before, "{name}");
    assert_eq!(clones.tip(&clones.bare), tip, "{name}");
    sound(clones, &[&clones.other, &clones.bare]);
}

const fn verb_of(line: &'static str) -> Verb {
    verb(line, nothing, line, "")
}

#[track_caller]
fn sound(clones: &Clones, repositories: &[&Path]) {
    for repository in repositories {
        clones.env.handoff_in(repository, &["verify"]).success();
        let fsck = ["fsck", "--strict", "--no-dangling"];
        let fsck = clones.env.git_any(repository, &fsck);
        assert_eq!(fsck.status, 0, "{}{}", fsck.stdout, fsck.stderr);
    }
}

/// Tries some of the verbs; each test takes a share, so that they run side by side.
fn try_share(share: usize) {
    const SHARES: usize = 3;
    for verb in VERBS.iter().skip(share).step_by(SHARES) {
        let stage = Stage::new(verb);
        publishes(verb, &stage);
        records_here_alone(verb, &stage);
    }
}

#[test]
fn verbs_publish_or_record_here_alone_first_share() {
    try_share(0);
}

#[test]
fn verbs_publish_or_record_here_alone_second_share() {
    try_share(1);
}

#[test]
fn verbs_publish_or_record_here_alone_third_share() {
    try_share(2);
}

#[test]
fn looking_touches_nothing_of_the_users_either() {
    let opened = verb("status", opened, "status", "");
    let stage = Stage::new(&opened);
    let (env, other) = (&stage.clones.env, &stage.clones.other);
    for line in [
        "status",
        "status --json",
        "refused",
        "fetch",
        "fetch --full",
        "sync",
        "wait --inbox --as prep-agent",
        "wait --inbox --as prep-agent --offline",
        "watch --once --all",
        "watch --once --all --offline",
        "inbox --as prep-agent",
        "inbox --as prep-agent --offline",
        #[cfg(feature = "agents")]
        "prime --as prep-agent",
        "next 87",
    ] {
        // There is something new to see each time.
        env.handoff(&["annotate", "87.1", "--as", "prep-agent", "--note", line])
            .success();
        env.git(&env.repo(), &["push", "-q", "origin", "handoffs"]);
        let words: Vec<&str> = line.split(' ').collect();
        let (tip, tracked) = (stage.clones.tip(other), users(other, false));
        let refs = users_refs(env, other);
        env.handoff_in(other, &words).success();
        assert_eq!(users_refs(env, other), refs, "{line}");
        assert!(users(other, false) == tracked, "{line} changed a file");
        let moves = words[0] != "refused" && !words.contains(&"--offline");
        assert_eq!(stage.clones.tip(other) != tip, moves, "{line}");
    }
}

#[test]
fn what_two_clones_set_and_update_at_once_all_holds() {
    let clones = Clones::without_ledger();
    own_protocol(&clones);
    done(&clones, &["init --remote origin"]);
    clones.there(&["init", "--remote", "origin"]).success();
    let set = |key: &str, value: &str| format!("protocol set issue-to-pr {key} {value}");
    let offline = |line: &str| {
        let words: Vec<&str> = line.split(' ').chain(["--offline"]).collect();
        clones.there(&words).exits(8);
    };
    offline(&set("evidence", "enforce"));
    offline("protocol update ../own");
    offline(&set("time.lease_seconds", "1234"));
    let here = set("limits.handoffs", "77");
    clones
        .env
        .handoff(&here.split(' ').collect::<Vec<_>>())
        .success();
    clones.there(&["sync"]).success();
    clones.env.handoff(&["sync"]).success();
    for listed in [
        clones.env.handoff(&["protocol", "set", "issue-to-pr"]),
        clones.there(&["protocol", "set", "issue-to-pr"]),
    ] {
        let rows = listed
            .stdout
            .lines()
            .map(|row| row.split_whitespace().take(2));
        let rows: Vec<String> = rows.map(|row| row.collect::<Vec<_>>().join(" ")).collect();
        for row in [
            "evidence enforce",
            "time.lease_seconds 1234",
            "limits.handoffs 77",
        ] {
            assert!(rows.iter().any(|r| r == row), "{row}: {}", listed.shown);
        }
    }
    clones.env.assert_sound();
}

#[test]
fn what_was_reaped_before_a_refusal_is_told() {
    let team = Clones::new();
    let (env, repo) = (&team.env, team.env.repo());
    for (issue, id) in [(1, "1.1"), (2, "2.1")] {
        team.open(&repo, issue, &[]).success();
        env.claim(id, "prep-agent").success();
    }
    env.wait_minutes(600);
    // The second of two steps is refused.
    let once = "[ -e once ] && echo 'one is enough' && exit 1; touch once";
    hook(&team.bare, "pre-receive", once);
    let refused = env.handoff(&["reap", "--json"]).exits(4).json();
    assert_eq!(
        refused["error"]["message"],
        "recorded 1 handoff, but not the rest: origin refused: a hook of the remote refused it"
    );
    let handoffs = refused["data"]["handoffs"].as_array().unwrap();
    assert_eq!(handoffs.len(), 1, "{refused:#}");
    assert_eq!(handoffs[0]["state"], "failed");
    assert_eq!(team.tip(&repo), team.tip(&team.bare));
    let refused = env.handoff(&["reap", "--json"]).exits(4).json();
    assert_eq!(refused["data"].as_object(), None, "nothing was recorded");
    unhook(&team.bare, "pre-receive");
    let rest = env.data(&["reap"]);
    assert_eq!(rest["handoffs"].as_array().unwrap().len(), 1);
    team.env.assert_sound();
}
