//! What many steps leave behind is packed by git's own maintenance, beside the
//! writers.

use std::fs;
use std::path::Path;
use std::process::Command;

use handoff::base::ObjectFormat;
use handoff::git::blob_id;
use test_support::contracts::opening;
use test_support::repository_kind;
use test_support::until;
use test_support::{Ran, TestEnvironment};

/// Puts three objects into the folder that git counts, and a tag that leads to them.
fn litter(env: &TestEnvironment, repo: &Path, name: &str) -> Ran {
    let format = if repository_kind::is_sha256() {
        ObjectFormat::Sha256
    } else {
        ObjectFormat::Sha1
    };
    let counted = |text: &String| {
        let id = blob_id(text.as_bytes(), format).unwrap();
        id.to_string().starts_with("17")
    };
    let texts = (0..).map(|n| format!("{name} {n}\n")).filter(counted);
    let mut script = "set -e\n".to_owned();
    for (n, text) in texts.take(3).enumerate() {
        script += &format!("b{n}=$(printf '%s' '{text}' | git hash-object -w --stdin)\n");
    }
    script += "tree=$(printf '100644 blob %s\\t%s\\n' $b0 0 $b1 1 $b2 2 | git mktree)\n";
    script += &format!("git update-ref 'refs/tags/{name}' $tree\n");
    let mut command = env.command("sh");
    command.args(["-c", &script]).current_dir(repo);
    repository_kind::name_bare(&mut command, repo);
    env.run(command, &["litter"], None)
}

/// Runs git with something on its standard input, and returns its answer.
fn with_input(env: &TestEnvironment, repo: &Path, args: &[&str], input: &str) -> String {
    let mut command = env.command("git");
    command.args(args).current_dir(repo);
    let ran = env.run(command, args, Some(input.as_bytes())).success();
    ran.stdout.trim().to_owned()
}

/// How many loose objects there are, and how many packs.
fn count(env: &TestEnvironment, repo: &Path) -> (u32, u32) {
    let said = env.git(repo, &["count-objects", "-v"]);
    let number = |key: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap().trim().parse().unwrap()
    };
    (number("count:"), number("packs:"))
}

fn config(env: &TestEnvironment, settings: &[(&str, &str)]) {
    for (key, value) in settings {
        env.git(&env.repo(), &["config", key, value]);
    }
}

/// The program, with git writing down every command that is started below it.
fn traced(env: &TestEnvironment, args: &[&str]) -> Command {
    let mut command = env.program(args);
    command.env("GIT_TRACE2_EVENT", env.root().join("trace"));
    command
}

/// How many times git's maintenance was started below a traced command.
fn maintained(env: &TestEnvironment) -> usize {
    let text = fs::read_to_string(env.root().join("trace")).unwrap_or_default();
    let starts = text.lines().filter(|line| {
        line.contains(r#""event":"start""#) && line.contains(r#""maintenance","run","--auto""#)
    });
    starts.count()
}

fn send(env: &TestEnvironment, issue: u32) {
    let contract = env.file(&format!("{issue}.xml"), opening(issue));
    let args = ["send", &contract];
    env.run(traced(env, &args), &args, None).success();
}

/// Waits until no maintenance is under way.
fn settled(env: &TestEnvironment) {
    let objects = env.repo().join(".git/objects");
    until("maintenance ends", || {
        let text = fs::read_to_string(env.root().join("trace")).unwrap_or_default();
        let of = |event: &str| text.lines().filter(|l| l.contains(event)).count();
        // A git that goes on in the background ends twice, and holds its lock until then.
        !objects.join("maintenance.lock").exists()
            && !env.repo().join(".git/gc.pid").exists()
            && of(r#""event":"start""#) <= of(r#""event":"atexit""#)
    });
}

#[test]
fn a_write_has_git_pack_what_is_loose_when_it_is_due() {
    let env = TestEnvironment::with_ledger();
    config(&env, &[("gc.auto", "1")]);
    send(&env, 1);
    settled(&env);
    assert_eq!(maintained(&env), 0, "it was not due");
    litter(&env, &env.repo(), "litter").success();
    let (loose, _) = count(&env, &env.repo());
    assert!(loose > 15, "{loose}");
    // Who only reads has nothing cleaned up.
    env.run(traced(&env, &["status"]), &["status"], None)
        .success();
    settled(&env);
    assert_eq!(maintained(&env), 0);
    // Old enough for git to forget them.
    let logs = || ["HEAD", "main"].map(|log| env.git(&env.repo(), &["reflog", "show", log]));
    let before = logs();
    send(&env, 2);
    until("packed", || count(&env, &env.repo()).0 == 0);
    until("started", || maintained(&env) > 0);
    settled(&env);
    assert_eq!(maintained(&env), 1);
    assert_eq!(logs(), before);
    send(&env, 3);
    settled(&env);
    assert_eq!(maintained(&env), 1, "it is not due any more");
    env.assert_sound();
    assert_eq!(
        env.data(&["status"])["handoffs"].as_array().unwrap().len(),
        3
    );
}

#[test]
fn the_users_settings_keep_it_from_being_started() {
    let env = TestEnvironment::with_ledger();
    litter(&env, &env.repo(), "litter").success();
    for (number, settings) in [
        [("gc.auto", "0"), ("gc.autoPackLimit", "1")],
        [("gc.auto", "1"), ("maintenance.auto", "false")],
        [("gc.auto", "many"), ("maintenance.auto", "true")],
    ]
    .iter()
    .enumerate()
    {
        config(&env, settings);
        send(&env, u32::try_from(number).unwrap() + 1);
    }
    settled(&env);
    assert_eq!(maintained(&env), 0);
    config(&env, &[("gc.auto", "1")]);
    let contract = env.file("9.xml", opening(9));
    let rehearsal = ["check", &contract];
    let ran = env.run(traced(&env, &rehearsal), &rehearsal, None);
    ran.success();
    settled(&env);
    assert_eq!(maintained(&env), 0, "a rehearsal writes nothing");
    send(&env, 9);
    until("started", || maintained(&env) > 0);
    settled(&env);
    assert_eq!(maintained(&env), 1);
}

#[test]
fn what_runs_within_git_leaves_it_to_git() {
    let env = TestEnvironment::with_ledger();
    litter(&env, &env.repo(), "litter").success();
    config(&env, &[("gc.auto", "1")]);
    for (number, name) in ["GIT_DIR", "GIT_INDEX_FILE"].iter().enumerate() {
        let issue = u32::try_from(number).unwrap() + 1;
        let contract = env.file("1.xml", opening(issue));
        let args = ["send", &contract];
        let mut command = traced(&env, &args);
        let value = match *name {
            "GIT_DIR" => env.repo().join(".git"),
            _ => env.repo().join(".git/index"),
        };
        command.env(name, value);
        env.run(command, &args, None).success();
    }
    settled(&env);
    assert_eq!(maintained(&env), 0);
    if repository_kind::is_by_name() {
        // A bare repository is named by GIT_DIR there, as git does for what it runs.
        return;
    }
    // Being a subcommand of git is not that, in a bare repository either.
    let bare = env.root().join("bare.git");
    env.git(env.root(), &["clone", "-q", "--bare", "repo", "bare.git"]);
    litter(&env, &bare, "more").success();
    env.git(&bare, &["config", "gc.auto", "1"]);
    let contract = env.file("3.xml", opening(3));
    let mut command = env.command("git");
    command.args(["handoff", "send", &contract]);
    command.env("GIT_TRACE2_EVENT", env.root().join("trace"));
    command.current_dir(&bare);
    env.run(command, &["send"], None).success();
    until("packed", || count(&env, &bare).0 == 0);
    assert_eq!(maintained(&env), 1);
}

#[test]
fn packs_are_joined_when_there_are_too_many() {
    let env = TestEnvironment::with_ledger();
    let repo = env.repo();
    let pack = |keep: bool| {
        env.git(&repo, &["repack", "-q", "-d"]);
        if keep {
            let packs = fs::read_dir(repo.join(".git/objects/pack")).unwrap();
            for pack in packs.map(|entry| entry.unwrap().path()) {
                if pack.extension().is_some_and(|end| end == "pack") {
                    fs::write(pack.with_extension("keep"), "").unwrap();
                }
            }
        }
    };
    config(&env, &[("gc.autoPackLimit", "2")]);
    pack(true);
    for issue in 1..=2 {
        send(&env, issue);
        pack(false);
    }
    send(&env, 3);
    settled(&env);
    assert_eq!(count(&env, &repo).1, 3);
    assert_eq!(
        maintained(&env),
        0,
        "one of three is kept, and two are not too many"
    );
    pack(false);
    send(&env, 4);
    until("joined", || count(&env, &repo).1 == 2);
    until("started", || maintained(&env) > 0);
    settled(&env);
    assert_eq!(maintained(&env), 1);
    env.assert_sound();
}

#[test]
fn what_nothing_points_to_yet_is_not_removed() {
    let env = TestEnvironment::with_ledger();
    litter(&env, &env.repo(), "litter").success();
    config(&env, &[("gc.auto", "1"), ("gc.pruneExpire", "now")]);
    let object = ["hash-object", "-w", "--stdin"];
    let unreached = with_input(&env, &env.repo(), &object, "nothing points here");
    send(&env, 1);
    until("packed", || count(&env, &env.repo()).0 == 1);
    until("started", || maintained(&env) > 0);
    settled(&env);
    assert_eq!(maintained(&env), 1);
    env.git(&env.repo(), &["cat-file", "-e", &unreached]);
    let expire = [
        "-c",
        "gc.auto=1",
        "-c",
        "gc.autoPackLimit=0",
        "gc",
        "--quiet",
    ];
    env.git(&env.repo(), &expire);
    let gone = ["cat-file", "-e", &unreached];
    assert_eq!(
        env.git_any(&env.repo(), &gone).status,
        1,
        "the user's own removes it"
    );
}

#[test]
fn a_git_that_is_missing_or_fails_is_nobodys_concern() {
    let env = TestEnvironment::with_ledger();
    litter(&env, &env.repo(), "litter").success();
    config(&env, &[("gc.auto", "1")]);
    let folder = env.root().join("broken");
    fs::create_dir(&folder).unwrap();
    let called = env.root().join("called");
    for (issue, broken) in [(1, false), (2, true)] {
        if broken {
            let script = format!(
                "#!/bin/sh\n>'{}'\necho broken >&2\nexit 1\n",
                called.display()
            );
            fs::write(folder.join("git"), script).unwrap();
            env.command("chmod")
                .arg("+x")
                .arg(folder.join("git"))
                .status()
                .unwrap();
        }
        let contract = env.file("1.xml", opening(issue));
        let args = ["send", &contract];
        let mut command = env.program(&args);
        command.env("PATH", format!("{}:/bin", folder.display()));
        if !broken {
            command.env("PATH", &folder);
        }
        let ran = env.run(command, &args, None);
        if repository_kind::is_reftable() {
            // There, git writes the ref.
            ran.exits(9).says("git");
            continue;
        }
        let ran = ran.success();
        assert!(!ran.stderr.contains("broken"), "{}", ran.shown);
    }
    until("the broken one was started", || called.exists());
}

#[test]
fn writers_beside_maintenance_lose_nothing() {
    const WRITERS: u32 = 4;
    /// How many issues a writer opens and claims: at least, and at most.
    const ISSUES: [u32; 2] = [8, 500];
    const TIMES: usize = 4;
    let env = TestEnvironment::with_repository();
    // A branch in a folder of its own, which git removes with its last loose ref.
    env.handoff(&["init", "--branch", "team/handoffs"])
        .success();
    // At each step, where it is not under way; every second time all packs are joined.
    config(&env, &[("gc.auto", "1"), ("gc.autoPackLimit", "1")]);
    env.pace(0);
    let chain = |writer: u32| {
        let [least, most] = ISSUES;
        let mut done = 0;
        while done < least || (done < most && maintained(&env) < TIMES) {
            let issue = 1 + writer * most + done;
            send(&env, issue);
            let claim = ["claim", &format!("{issue}.1"), "--as", "prep-agent"];
            env.run(traced(&env, &claim), &claim, None).success();
            done += 1;
        }
        done
    };
    let done: u32 = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || chain(writer)))
            .collect();
        let mut number = 0;
        while writers.iter().any(|writer| !writer.is_finished()) {
            // git itself, many times in each step, does not always get through.
            let _ = litter(&env, &env.repo(), &format!("litter-{number}"));
            number += 1;
        }
        writers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    settled(&env);
    let times = maintained(&env);
    assert!(times >= TIMES, "maintenance was started {times} times");
    let steps = env.git(&env.repo(), &["rev-list", "--count", "team/handoffs"]);
    assert_eq!(steps.trim(), (1 + 2 * done).to_string());
    let open = env.data(&["status", "--limit", "0"])["handoffs"].clone();
    let open = open.as_array().unwrap();
    assert_eq!(open.len(), usize::try_from(done).unwrap());
    let is_held = |handoff: &serde_json::Value| handoff["state"] == "in_progress";
    assert!(open.iter().all(is_held));
    env.assert_sound();
    // A step makes seven objects or more: most of theirs are packed, and the next
    // step has the rest packed too.
    litter(&env, &env.repo(), "last").success();
    send(&env, 1 + WRITERS * ISSUES[1]);
    until("packed", || count(&env, &env.repo()).0 < 100);
    settled(&env);
    let (_, packs) = count(&env, &env.repo());
    assert!(packs < 10, "{packs} packs");
    env.assert_sound();
}

/// Has commits signed by a program that first runs a command.
fn signed_after(env: &TestEnvironment, command: &str) {
    let program = env.root().join("signer");
    let script = format!(
        "#!/bin/sh\ncat >/dev/null\n{command}\necho '[GNUPG:] SIG_CREATED ' >&2\n\
         printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nnone\\n-----END PGP SIGNATURE-----\\n'\n"
    );
    fs::write(&program, script).unwrap();
    let mut chmod = env.command("chmod");
    chmod.arg("+x").arg(&program).status().unwrap();
    let program = program.to_str().unwrap();
    config(env, &[("gpg.program", program), ("handoff.sign", "true")]);
}

#[test]
fn objects_that_a_collection_removed_before_the_branch_moved_are_written_again() {
    let env = TestEnvironment::with_ledger();
    send(&env, 1);
    let gone = env.root().join("gone");
    // The step's blobs and trees are written by now, and its commit is not.
    signed_after(
        &env,
        &format!(
            "unset GIT_DIR; git -C '{repo}' count-objects >'{gone}'; \
             git -C '{repo}' gc --quiet --prune=now; git -C '{repo}' count-objects >>'{gone}'",
            repo = env.repo().display(),
            gone = gone.display(),
        ),
    );
    send(&env, 2);
    let counts = fs::read_to_string(gone).unwrap();
    let counts: Vec<&str> = counts.lines().collect();
    assert!(!counts[0].starts_with("0 "), "{counts:?}");
    assert!(counts[1].starts_with("0 "), "{counts:?}");
    env.git(&env.repo(), &["fsck", "--strict"]);
    env.handoff(&["show", "2.1"]).success();
}

#[test]
fn a_step_beside_a_collection_is_in_a_pack_that_it_does_not_know() {
    let env = TestEnvironment::with_ledger();
    send(&env, 1);
    env.git(&env.repo(), &["gc", "--quiet", "--prune=now"]);
    let (loose, packs) = count(&env, &env.repo());
    let running = env.repo().join(".git/gc.pid");
    fs::write(&running, format!("{} here", std::process::id())).unwrap();
    send(&env, 2);
    fs::remove_file(running).unwrap();
    assert_eq!((loose, count(&env, &env.repo()).1), (0, packs + 1));
    // What the collection removes now is all that was written loose.
    for folder in fs::read_dir(env.repo().join(".git/objects")).unwrap() {
        let folder = folder.unwrap();
        if folder.file_name().len() == 2 {
            fs::remove_dir_all(folder.path()).unwrap();
        }
    }
    env.assert_sound();
}

#[test]
fn writers_beside_collections_that_prune_everything_lose_nothing() {
    const WRITERS: u32 = 8;
    const ISSUES: u32 = 12;
    let env = TestEnvironment::with_ledger();
    config(&env, &[("gc.auto", "0")]);
    env.pace(0);
    let times = std::thread::scope(|scope| {
        let write = |writer: u32| {
            for issue in 0..ISSUES {
                send(&env, 1 + writer * ISSUES + issue);
            }
        };
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write(writer)))
            .collect();
        let mut times = 0;
        while writers.iter().any(|writer| !writer.is_finished()) {
            env.git_any(&env.repo(), &["gc", "--quiet", "--prune=now"]);
            times += 1;
        }
        times
    });
    assert!(times > 1, "{times} collections");
    let open = env.data(&["status", "--limit", "0"])["handoffs"].clone();
    let sent = usize::try_from(WRITERS * ISSUES).unwrap();
    assert_eq!(open.as_array().unwrap().len(), sent);
    env.assert_sound();
}
