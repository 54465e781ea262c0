//! What a power cut leaves, files that exist and are empty: found, told, and put right from the
//! remote by the command that is printed.

use std::fs;
use std::path::{Path, PathBuf};

use test_support::contracts::opening;
use test_support::repository_kind::{self, is_reftable};

use crate::clones::Clones;

/// The branch's own file in a clone.
fn branch(clone: &Path) -> PathBuf {
    clone.join(".git/refs/heads/handoffs")
}

/// The files of the loose objects that one commit has and its parent has not.
fn objects_of(clones: &Clones, clone: &Path, commit: &str) -> Vec<PathBuf> {
    let listed = format!("{commit}^!");
    let args = ["rev-list", "--objects", "--no-object-names", &listed];
    let listed = clones.env.git(clone, &args);
    let file = |id: &str| clone.join(".git/objects").join(&id[..2]).join(&id[2..]);
    let files = listed.lines().map(file).filter(|file| file.exists());
    files.collect()
}

fn empty(files: &[PathBuf]) {
    for file in files {
        fs::remove_file(file).unwrap();
        fs::write(file, "").unwrap();
    }
}

/// Asserts that a command tells of the damage, and runs what it prints.
#[track_caller]
fn repaired(clones: &Clones, clone: &Path, command: &[&str]) -> serde_json::Value {
    let ran = clones.env.handoff_in(clone, command);
    ran.exits(10).says("`git handoff fetch --repair`");
    let args = ["fetch", "--repair", "--json"];
    let ran = clones.env.handoff_in(clone, &args).success();
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    answer["data"].clone()
}

/// Asserts that the audit tells of lost steps until somebody accepts it.
#[track_caller]
fn accepted(clones: &Clones, clone: &Path) {
    let ran = clones.env.handoff_in(clone, &["verify"]);
    ran.exits(10).says("history.rewritten");
    let accept = ["verify", "--accept-rewritten"];
    clones.env.handoff_in(clone, &accept).success();
}

#[track_caller]
fn assert_sound(clones: &Clones, clone: &Path) {
    clones.env.handoff_in(clone, &["verify"]).success();
    clones
        .env
        .git(clone, &["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn an_empty_branch_is_put_back_to_where_it_was() {
    if is_reftable() {
        // No ref has a file that could be empty.
        return;
    }
    let clones = Clones::new();
    let repo = clones.env.repo();
    clones.open(&repo, 1, &[]).success();
    clones.open(&repo, 2, &["--offline"]).exits(8);
    let tip = clones.at(&repo, "handoffs");
    for contents in ["", "\0\0\0\0"] {
        fs::write(branch(&repo), contents).unwrap();
        let found = repaired(&clones, &repo, &["status"]);
        assert_eq!(found["commit"], *tip);
        assert!(found["lost"].as_array().unwrap().is_empty(), "{found}");
        assert_eq!(clones.at(&repo, "handoffs"), tip);
    }
    assert_sound(&clones, &repo);
    clones.env.handoff(&["sync"]).success();
}

/// git takes a commit of the remote for one that is here, because its file is.
#[test]
fn damage_that_only_git_meets_is_told_with_what_puts_it_right() {
    let clones = Clones::new();
    let repo = clones.env.repo();
    clones.open(&clones.other, 1, &[]).success();
    let there = clones.at(&clones.other, "handoffs");
    let folder = repo.join(".git/objects").join(&there[..2]);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(&there[2..]), [0; 150]).unwrap();
    let told = "`git handoff fetch --repair` repairs this clone's copy";
    clones.open(&repo, 2, &[]).exits(8).says(told);
    clones.env.handoff(&["sync"]).exits(8).says(told);
    clones.env.handoff(&["fetch"]).exits(9).says(told);
    clones.env.handoff(&["fetch", "--repair"]).success();
    clones.env.handoff(&["sync"]).success();
    assert_sound(&clones, &repo);
    assert_eq!(
        clones.at(&repo, "handoffs"),
        clones.at(&clones.bare, "handoffs")
    );
}

#[test]
fn empty_objects_come_from_the_remote() {
    let clones = Clones::new();
    let repo = clones.env.repo();
    clones.open(&repo, 1, &[]).success();
    let claim = ["claim", "1.1", "--as", "prep-agent"];
    clones.env.handoff(&claim).success();
    let tip = clones.at(&repo, "handoffs");
    let files = objects_of(&clones, &repo, &tip);
    assert!(files.len() > 3, "{files:?}");
    // The tracking ref leads to them too, and is empty itself the second time.
    for tracking_too in [false, true] {
        empty(&files);
        if tracking_too && !is_reftable() {
            let folder = repo.join(".git/refs/handoff/remotes/origin/handoffs");
            assert!(folder.exists());
            fs::write(folder, "").unwrap();
        }
        let found = repaired(&clones, &repo, &["verify"]);
        assert_eq!(found["removed"], files.len());
        assert_eq!(found["commit"], *tip);
        assert!(found["lost"].as_array().unwrap().is_empty(), "{found}");
        assert_sound(&clones, &repo);
    }
    clones.open(&repo, 2, &[]).success();
}

#[test]
fn what_only_this_clone_had_is_named_as_lost() {
    let clones = Clones::new();
    let repo = clones.env.repo();
    clones.open(&repo, 1, &[]).success();
    let there = clones.at(&repo, "handoffs");
    clones.open(&repo, 2, &["--offline"]).exits(8);
    let lost = clones.at(&repo, "handoffs");
    empty(&objects_of(&clones, &repo, &lost));
    let found = repaired(&clones, &repo, &["inbox", "--as", "prep-agent"]);
    assert_eq!(found["commit"], *there);
    assert_eq!(found["lost"], serde_json::json!([lost]));
    accepted(&clones, &repo);
    assert_sound(&clones, &repo);
    // The same contract again is the step again.
    clones.open(&repo, 2, &[]).success();
}

#[test]
fn without_a_remote_the_last_whole_step_counts() {
    let clones = Clones::without_ledger();
    let env = &clones.env;
    let repo = env.repo();
    env.handoff(&["init"]).success();
    clones.open(&repo, 1, &[]).success();
    let before = clones.at(&repo, "handoffs");
    clones.open(&repo, 2, &[]).success();
    let lost = clones.at(&repo, "handoffs");
    if !is_reftable() {
        fs::write(branch(&repo), "").unwrap();
        let found = repaired(&clones, &repo, &["list"]);
        assert_eq!(found["commit"], *lost);
    }
    empty(&objects_of(&clones, &repo, &lost));
    let found = repaired(&clones, &repo, &["list"]);
    assert_eq!(found["commit"], *before);
    assert_eq!(found["lost"], serde_json::json!([lost]));
    accepted(&clones, &repo);
    assert_sound(&clones, &repo);
}

#[test]
fn nothing_is_changed_where_nothing_is_damaged() {
    let clones = Clones::new();
    let repo = clones.env.repo();
    clones.open(&repo, 1, &[]).success();
    clones.there(&["fetch"]).success();
    let contract = clones.env.file("2.xml", opening(2));
    clones.there(&["send", &contract]).success();
    let there = clones.at(&clones.bare, "handoffs");
    let ran = clones.env.handoff(&["fetch", "--repair"]).success();
    ran.says("the branch is at [commit], and all its objects are here");
    assert_eq!(clones.at(&repo, "handoffs"), there);
    let both = clones.env.handoff(&["fetch", "--repair", "--full"]);
    both.exits(2);
}

#[test]
fn a_git_that_refuses_the_repository_makes_nothing_count_as_lost() {
    let clones = Clones::without_ledger();
    let env = &clones.env;
    let repo = env.repo();
    env.handoff(&["init"]).success();
    clones.open(&repo, 1, &[]).success();
    let log = || env.git(&repo, &["reflog", "show", "--format=%H %gs", "handoffs"]);
    let state = || (clones.at(&repo, "handoffs"), log());
    let before = state();
    let folder = env.root().join("broken");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("git"), "#!/bin/sh\nexit 128\n").unwrap();
    let mut chmod = env.command("chmod");
    chmod.arg("+x").arg(folder.join("git")).status().unwrap();
    for path in [format!("{}:/bin", folder.display()), "/nowhere".to_owned()] {
        let args = ["fetch", "--repair"];
        let mut command = env.program(&args);
        command.env("PATH", path);
        env.run(command, &args, None)
            .exits(9)
            .says("the repair cannot go on");
        assert_eq!(state(), before);
    }
}

#[test]
fn a_file_that_git_is_about_to_write_stays() {
    let clones = Clones::new();
    let repo = clones.env.repo();
    let begun = repo.join(".git/objects/00/tmp_obj_begun");
    fs::create_dir_all(begun.parent().unwrap()).unwrap();
    fs::write(&begun, "").unwrap();
    clones.env.handoff(&["fetch", "--repair"]).success();
    assert!(begun.exists());
}

/// What a power cut leaves of an `init` that had not recorded its remote yet.
#[test]
fn a_tracking_ref_of_a_remote_that_is_not_the_ledgers_yet() {
    if is_reftable() {
        // No ref has a file that could be empty.
        return;
    }
    let clones = Clones::new();
    let (env, repo) = (&clones.env, clones.env.repo());
    env.git(&repo, &["config", "--unset", "handoff.remote"]);
    env.git(&repo, &["update-ref", "-d", "refs/heads/handoffs"]);
    let tracking = repo.join(".git/refs/handoff/remotes/origin/handoffs");
    let absent = format!("{}\n", "1".repeat(repository_kind::digits()));
    for damage in ["", &absent] {
        fs::write(&tracking, damage).unwrap();
        let init = ["init", "--remote", "origin"];
        let told = env.handoff(&init);
        assert_ne!(told.status, 0);
        told.says("`git handoff fetch --repair`");
        env.handoff(&["fetch", "--repair"]).success();
        assert!(!tracking.exists());
        env.handoff(&init).success();
        env.git(&repo, &["update-ref", "-d", "refs/heads/handoffs"]);
        env.git(&repo, &["config", "--unset", "handoff.remote"]);
    }
}

/// Replaces a file, also one that is read-only.
fn damage(file: &Path, how: &str) {
    let whole = fs::read(file).unwrap();
    fs::remove_file(file).unwrap();
    match how {
        "cut off" => fs::write(file, &whole[..whole.len() / 2]).unwrap(),
        "garbage" => fs::write(file, [0x5a; 200]).unwrap(),
        "zeros" => fs::write(file, [0; 200]).unwrap(),
        _ => assert_eq!(how, "missing"),
    }
}

fn repair_json(clones: &Clones, clone: &Path, more: &[&str]) -> serde_json::Value {
    let args = [&["fetch", "--repair", "--json"], more].concat();
    let ran = clones.env.handoff_in(clone, &args).success();
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    answer["data"].clone()
}

#[test]
fn each_kind_of_damage_to_a_file_is_told_and_comes_from_the_remote() {
    let clones = Clones::new();
    let (env, repo) = (&clones.env, clones.env.repo());
    // What is fetched has files of its own.
    env.git(&repo, &["config", "fetch.unpackLimit", "10000"]);
    clones.open(&repo, 1, &[]).success();
    let tip = clones.at(&repo, "handoffs");
    let files = objects_of(&clones, &repo, &tip);
    for how in ["cut off", "garbage", "zeros", "missing"] {
        for file in &files {
            damage(file, how);
            env.handoff(&["verify"])
                .exits(10)
                .says("`git handoff fetch --repair`");
        }
        env.handoff(&["doctor"]).says("fetch --repair");
        let found = repair_json(&clones, &repo, &[]);
        assert_eq!(found["commit"], *tip, "{how}");
        let aside = found["aside"].as_array().unwrap();
        let moved = ["cut off", "garbage"].contains(&how);
        assert_eq!(aside.len(), files.len() * usize::from(moved), "{how}");
        for file in aside {
            assert!(Path::new(file.as_str().unwrap()).is_file(), "{file}");
        }
        assert_sound(&clones, &repo);
        // A second run has nothing to do.
        let again = repair_json(&clones, &repo, &[]);
        assert!(again["aside"].as_array().unwrap().is_empty(), "{again}");
        // One that was killed had moved some, and fetched none.
        damage(&files[0], "missing");
        damage(&files[1], "cut off");
        repair_json(&clones, &repo, &[]);
        assert_sound(&clones, &repo);
    }
}

#[test]
fn a_damaged_pack_goes_once_what_can_be_read_is_in_another() {
    let clones = Clones::new();
    let (env, repo) = (&clones.env, clones.env.repo());
    clones.open(&repo, 1, &[]).success();
    fs::write(repo.join("own.txt"), "the user's own\n".repeat(50)).unwrap();
    env.git(&repo, &["add", "own.txt"]);
    env.git(&repo, &["commit", "-qm", "own"]);
    let head = env.git(&repo, &["rev-parse", "HEAD"]);
    let contract = env.git(&repo, &["ls-tree", "-r", "--name-only", "handoffs"]);
    let contract = contract
        .lines()
        .find(|name| name.ends_with(".xml") && name.starts_with("issues/"));
    let id = clones.at(&repo, &format!("handoffs:{}", contract.unwrap()));
    for damage in ["object", "trailer", "index"] {
        env.git(&repo, &["repack", "-qad"]);
        let packs = fs::read_dir(repo.join(".git/objects/pack")).unwrap();
        let packs: Vec<PathBuf> = packs.map(|pack| pack.unwrap().path()).collect();
        let with = |ending: &str| {
            let found = packs
                .iter()
                .find(|p| p.extension().is_some_and(|e| e == ending));
            found.unwrap().clone()
        };
        let (pack, index) = (with("pack"), with("idx"));
        let file = if damage == "index" { &index } else { &pack };
        let mut bytes = fs::read(file).unwrap();
        let listed = env.git(&repo, &["verify-pack", "-v", index.to_str().unwrap()]);
        let line = listed.lines().find(|line| line.starts_with(&id)).unwrap();
        let offset: usize = line.split_whitespace().nth(4).unwrap().parse().unwrap();
        let at = match damage {
            "object" => offset + 20,
            "trailer" => bytes.len() - 5,
            _ => 1,
        };
        bytes[at] ^= 0xff;
        bytes[at + 1] ^= 0xff;
        fs::remove_file(file).unwrap();
        fs::write(file, bytes).unwrap();
        let found = repair_json(&clones, &repo, &[]);
        let tip = clones.at(&repo, "handoffs");
        assert_eq!(found["commit"], *tip, "{damage}");
        let (aside, name) = (found["aside"].to_string(), pack.file_name().unwrap());
        assert!(aside.contains(name.to_str().unwrap()), "{damage}: {aside}");
        env.handoff(&["verify"]).success();
        assert_eq!(env.git(&repo, &["rev-parse", "HEAD"]), head);
        assert!(
            env.git(&repo, &["show", "HEAD:own.txt"])
                .starts_with("the user's own")
        );
        assert_sound(&clones, &repo);
    }
}

#[test]
fn what_nothing_has_stays_in_its_place_until_a_copy_has_it_or_somebody_gives_it_up() {
    let clones = Clones::new();
    let (env, repo) = (&clones.env, clones.env.repo());
    env.git(&repo, &["config", "fetch.unpackLimit", "10000"]);
    clones.open(&repo, 1, &[]).success();
    let before = clones.at(&repo, "handoffs");
    clones.open(&repo, 2, &["--offline"]).exits(8);
    let tip = clones.at(&repo, "handoffs");
    let (backup, bundle) = (env.root().join("backup.git"), env.root().join("ledger"));
    let (backup, bundle) = (backup.to_str().unwrap(), bundle.to_str().unwrap());
    env.git(&repo, &["clone", "-q", "--bare", ".", backup]);
    env.git(&repo, &["bundle", "create", "-q", bundle, "handoffs"]);
    let files = objects_of(&clones, &repo, &tip);
    let folder = repo.join(".git/handoff/damaged");
    let bytes = || -> Vec<Vec<u8>> { files.iter().map(|file| fs::read(file).unwrap()).collect() };
    let refused = |args: &[&str], code: i32, told: &str| {
        let before = bytes();
        let ran = env.handoff(&[&["fetch", "--repair"], args].concat());
        let ran = ran.exits(code).says(told);
        assert!(!ran.stderr.contains("nothing was written"), "{}", ran.shown);
        assert_eq!(bytes(), before);
        assert_eq!(clones.at(&repo, "handoffs"), tip);
    };
    let spoil = || files.iter().for_each(|file| damage(file, "cut off"));
    spoil();
    refused(&[], 10, "--from PATH");
    refused(
        &["--from", "../nowhere"],
        9,
        "damaged files are back in place",
    );
    assert!(!folder.join("1").exists());
    // Where they can't be moved.
    let _ = fs::remove_dir(&folder);
    fs::write(&folder, "").unwrap();
    refused(&[], 9, "the repair cannot go on");
    fs::remove_file(&folder).unwrap();
    let found = repair_json(&clones, &repo, &["--from", backup]);
    assert_eq!(found["commit"], *tip);
    assert_sound(&clones, &repo);
    spoil();
    let found = repair_json(&clones, &repo, &["--give-up"]);
    assert_eq!(found["commit"], *before);
    assert_eq!(found["lost"], serde_json::json!([tip]));
    accepted(&clones, &repo);
    assert_sound(&clones, &repo);
    // The remote's own copy is damaged for all that this clone knows: a bundle has more.
    env.git(&repo, &["fetch", "-q", bundle, "handoffs:handoffs"]);
    let damaged = objects_of(&clones, &repo, &before);
    damaged.iter().for_each(|file| damage(file, "garbage"));
    let found = repair_json(&clones, &repo, &["--from", bundle]);
    assert_eq!(found["commit"], *tip);
    assert_sound(&clones, &repo);
}

#[test]
fn damage_that_is_another_branchs_stays_and_is_told() {
    let clones = Clones::new();
    let (env, repo) = (&clones.env, clones.env.repo());
    fs::write(repo.join("own.txt"), "the user's own").unwrap();
    env.git(&repo, &["add", "own.txt"]);
    env.git(&repo, &["commit", "-qm", "own"]);
    let id = clones.at(&repo, "HEAD:own.txt");
    let file = repo.join(".git/objects").join(&id[..2]).join(&id[2..]);
    damage(&file, "cut off");
    let spoiled = fs::read(&file).unwrap();
    let found = repair_json(&clones, &repo, &[]);
    assert_eq!(found["others"], serde_json::json!([id]));
    assert!(found["aside"].as_array().unwrap().is_empty(), "{found}");
    assert_eq!(fs::read(&file).unwrap(), spoiled);
    env.handoff(&["verify"]).success();
}

#[test]
fn a_repair_does_not_hide_that_the_remote_went_back() {
    let clones = Clones::new();
    let (env, repo) = (&clones.env, clones.env.repo());
    env.git(&repo, &["config", "fetch.unpackLimit", "10000"]);
    clones.open(&repo, 1, &[]).success();
    let before = clones.at(&repo, "handoffs");
    clones.open(&repo, 2, &[]).success();
    let tip = clones.at(&repo, "handoffs");
    let told = |text: &str, alert: &str| {
        let told = [("status", text), ("doctor", text), ("alerts", alert)];
        // Alerts are those of a room.
        let most = if cfg!(feature = "report") { 3 } else { 2 };
        for (command, text) in told.into_iter().take(most) {
            let said = env.handoff(&[command]);
            let said = format!("{}{}", said.stdout, said.stderr);
            assert!(said.contains(text), "{command}: {said}");
        }
    };
    let put_back = ["update-ref", "refs/heads/handoffs", &before];
    env.git(&clones.bare, &put_back);
    // The damaged object is on the remote; a repair that can't reach it changes nothing, either.
    damage(&objects_of(&clones, &repo, &before)[0], "cut off");
    clones.take_away();
    env.handoff(&["fetch", "--repair"]).exits(9);
    clones.bring_back();
    let found = repair_json(&clones, &repo, &[]);
    assert_eq!(found["commit"], *tip, "{found}");
    let rewritten = "the remote's branch was rewritten";
    told(rewritten, rewritten);
    env.handoff(&["sync"]).exits(10).says("was rewritten");
    // What only the removed steps had is lost, and that it was there is not.
    damage(&objects_of(&clones, &repo, &tip)[0], "missing");
    let found = repair_json(&clones, &repo, &[]);
    assert_eq!(found["lost"], serde_json::json!([tip]), "{found}");
    told("history.rewritten", "corrupt-ledger");
    accepted(&clones, &repo);
    env.handoff(&["sync"]).success();
    clones.assert_sound(&repo);
}
