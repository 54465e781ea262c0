//! Signed steps: what makes the program sign, with which key, and what it refuses to write.

use std::fs;
use std::process::{Child, Stdio};

use crate::keys::{
    ed25519, findings, good_for_git, header, key, list, make_key, parts, path, protocol, raw,
    script, start, team, use_key, with_key, with_settings, without_prints,
};
use insta::assert_snapshot;
use test_support::contracts::opening;
use test_support::{TestEnvironment, repository_kind};

/// Says whether the newest step is signed.
fn is_signed(env: &TestEnvironment) -> bool {
    raw(env, &env.tip()).contains(&format!("\n{} ", header()))
}

#[test]
fn every_kind_of_key_signs_and_git_agrees() {
    let kinds: [&[&str]; 6] = [
        &["ed25519"],
        &["ecdsa", "-b", "256"],
        &["ecdsa", "-b", "384"],
        &["ecdsa", "-b", "521"],
        &["rsa", "-b", "2048"],
        &["rsa", "-b", "3072"],
    ];
    let env = TestEnvironment::with_repository();
    let name = |kind: &[&str]| kind.concat();
    let lines = kinds.map(|kind| format!("robin@example.com,* {}", key(&env, &name(kind), kind)));
    start(&env, &lines.concat());
    for (issue, kind) in (1..).zip(kinds) {
        use_key(&env, &name(kind));
        env.send(opening(issue)).success();
        env.git(
            &env.repo(),
            &[
                "-c",
                &format!(
                    "gpg.ssh.allowedSignersFile={}",
                    list(&env, "1.0.0").display()
                ),
                "verify-commit",
                "handoffs",
            ],
        );
    }
    assert_eq!(good_for_git(&env, &list(&env, "1.0.0")), kinds.len());
    env.assert_sound();
}

#[test]
fn nothing_is_signed_and_nothing_started_unless_it_is_asked_for() {
    let env = TestEnvironment::with_ledger();
    let mut command = env.program(&["send", "-"]);
    command.env("PATH", env.root());
    let ran = env.run(command, &["send", "-"], Some(opening(1).as_bytes()));
    if repository_kind::is_reftable() {
        // Where refs are in tables, git writes them.
        ran.exits(9).says("git cannot be started");
        return;
    }
    ran.success();
    assert!(!is_signed(&env));
    env.assert_sound();
}

#[test]
fn every_step_is_signed_where_git_is_told_to_sign() {
    let env = TestEnvironment::with_repository();
    ed25519(&env, "robin");
    use_key(&env, "robin");
    env.git(&env.repo(), &["config", "commit.gpgSign", "yes"]);
    let list = env.file(
        "list",
        format!("* {}", fs::read_to_string(path(&env, "robin.pub")).unwrap()),
    );
    env.handoff(&["init"]).success();
    env.send(opening(1)).success();
    env.claim("1.1", "prep-agent").success();
    env.handoff(&["fail", "1.1", "--as", "prep-agent", "--message", "no space"])
        .success();
    env.handoff(&["next", "1", "--apply", "--as", "orchestrator"])
        .success();
    env.handoff(&["protocol", "add", "delegation"]).success();
    let count = env.git(&env.repo(), &["rev-list", "--count", "handoffs"]);
    assert_eq!(count.trim(), good_for_git(&env, list.as_ref()).to_string());
    env.assert_sound();
}

#[test]
fn what_says_to_sign_is_heard_wherever_git_hears_it() {
    let env = TestEnvironment::with_ledger();
    ed25519(&env, "robin");
    use_key(&env, "robin");
    let git = |args: &[&str]| env.git(&env.repo(), args);
    let mut issue = 0;
    let mut sent = |settings: &[(&str, &str)]| {
        issue += 1;
        match settings {
            [] => env.send(opening(issue)).success(),
            _ => with_settings(&env, settings, &["send", "-"], &opening(issue)).success(),
        };
        is_signed(&env)
    };
    assert!(!sent(&[]));
    assert!(sent(&[("commit.gpgSign", "true")]));
    assert!(sent(&[("commit.gpgsign", "false"), ("handoff.SIGN", "1")]));
    assert!(!sent(&[
        ("handoff.sign", "true"),
        ("handoff.sign", "false")
    ]));
    git(&["config", "commit.gpgSign", "true"]);
    assert!(sent(&[]));
    assert!(sent(&[("user.name", "Robin")]));
    assert!(!sent(&[("handoff.sign", "false")]));
    git(&["config", "handoff.sign", "off"]);
    assert!(!sent(&[]));
    git(&["config", "--unset", "handoff.sign"]);
    git(&["config", "--unset", "commit.gpgSign"]);
    // Only git reads this one.
    let more = env.file("more", "[handoff]\n\tsign = true\n");
    git(&[
        "config",
        "includeIf.hasconfig:remote.*.url:https://example.com/**.path",
        &more,
    ]);
    assert!(!sent(&[]));
    git(&["remote", "add", "origin", "https://example.com/parcels.git"]);
    assert!(sent(&[]));
    // `git -c`, which passes it on.
    let args = ["-c", "handoff.sign=false", "handoff", "send", "-"];
    let mut command = env.command("git");
    command.args(args);
    env.run(command, &args, Some(opening(99).as_bytes()))
        .success();
    assert!(!is_signed(&env));
    env.assert_sound();
    git(&["config", "handoff.sign", "perhaps"]);
    let ran = env.send(opening(100)).exits(9);
    assert_snapshot!(ran.stderr, @"
    error: handoff.sign in git's configuration is not a boolean
    hint: nothing was written; set handoff.sign or commit.gpgSign to true or false; see `git handoff explain signing_failed`
    ");
}

#[test]
fn a_signed_step_is_the_step_that_it_would_be() {
    let steps = |sign: &str| {
        let env = TestEnvironment::with_repository();
        ed25519(&env, "robin");
        use_key(&env, "robin");
        let names = [
            ("user.name", "„Robin“ Doe Jr. Müller"),
            ("handoff.sign", sign),
        ];
        for (name, value) in names {
            env.git(&env.repo(), &["config", name, value]);
        }
        env.handoff(&["init"]).success();
        let dates = [
            ("GIT_AUTHOR_DATE", "@1772448000 +0530"),
            ("GIT_COMMITTER_DATE", "@1772451600 -0330"),
        ];
        let mut command = env.program(&["send", "-"]);
        command.envs(dates).env("GIT_INDEX_FILE", "/nowhere/index");
        env.run(command, &["send", "-"], Some(opening(7).as_bytes()))
            .success();
        env.assert_sound();
        let lines = parts(&raw(&env, &env.tip())).0;
        let own = lines.lines().filter(|line| !line.starts_with("parent "));
        own.map(|line| format!("{line}\n")).collect::<String>()
    };
    assert_eq!(steps("true"), steps("false"));
}

#[test]
fn a_step_without_a_key_or_with_one_that_may_not_sign_is_refused() {
    let env = team();
    ed25519(&env, "stranger");
    let start = env.tip();
    let args = ["send", "-", "--json"];
    let none = env.handoff_with(&args, opening(1));
    assert_eq!(none.status, 4);
    assert!(
        findings(none, 4, "signature_refused").starts_with(
            "signature.missing the step is issue-manager's, and could not be signed: "
        )
    );
    let refused = |key: &str| {
        let found = findings(
            with_key(&env, key, &args, &opening(1)),
            4,
            "signature_refused",
        );
        assert_eq!(env.tip(), start, "nothing was written");
        found
    };
    assert_snapshot!(refused("stranger"), @"signature.unknown the step is issue-manager's, and is signed with SHA256:…, which is nobody's key");
    assert_snapshot!(refused("prep"), @"signature.other_agent the step is issue-manager's, and is signed with SHA256:…, a key of prep-agent@handoff.invalid");
    assert_snapshot!(refused("robin"), @"signature.other_agent the step is issue-manager's, and is signed with SHA256:…, a key of robin@example.com");
    with_key(&env, "manager", &args, &opening(1)).success();
    let claim = ["claim", "1.1", "--as", "prep-agent"];
    let shown = with_key(&env, "manager", &claim, "").exits(4).stderr;
    assert_snapshot!(without_prints(&shown), @"
    error: the signature was refused
       signature.other_agent the step is prep-agent's, and is signed with SHA256:…, a key of issue-manager
          sign with a key that is listed: `git handoff protocol show` tells who has which; a new key is listed in allowed_signers, by `git handoff protocol update`
    hint: nothing was written; sign with a key listed for the step's author: `git handoff protocol show` lists the keys by owner
    ");
    with_key(&env, "prep", &claim, "").success();
    env.assert_sound();
}

#[test]
fn keys_are_rotated_by_date_and_revoked_by_an_update() {
    let env = TestEnvironment::with_repository();
    let (old, new, robin) = (
        ed25519(&env, "old"),
        ed25519(&env, "new"),
        ed25519(&env, "robin"),
    );
    // The clock stands at 09:00 on 2026-03-02.
    start(
        &env,
        &format!(
            "* valid-before=\"202603021200Z\" {old}* valid-after=\"20260302110000Z\" {new}robin@example.com {robin}"
        ),
    );
    let args = ["send", "-", "--json"];
    let refused = |key: &str, issue: u32| {
        findings(
            with_key(&env, key, &args, &opening(issue)),
            4,
            "signature_refused",
        )
    };
    with_key(&env, "old", &args, &opening(1)).success();
    assert_snapshot!(refused("new", 2), @"signature.not_valid the step is issue-manager's, and is dated 2026-03-02 09:10:00Z; its key SHA256:… is valid from 2026-03-02 11:00:00Z");
    env.wait_minutes(150);
    with_key(&env, "old", &args, &opening(2)).success();
    with_key(&env, "new", &args, &opening(3)).success();
    env.wait_minutes(30);
    assert_snapshot!(refused("old", 4), @"signature.not_valid the step is issue-manager's, and is dated 2026-03-02 12:13:00Z; its key SHA256:… is valid until 2026-03-02 12:00:00Z");
    with_key(&env, "new", &args, &opening(4)).success();
    // The new key is lost: whoever may change the protocol takes it off the list.
    let folder = protocol(&env, "1.1.0", &format!("* {old}robin@example.com {robin}"));
    with_key(&env, "robin", &["protocol", "update", &folder], "").success();
    // The old key has no end on that line: it may sign what it could not, which is on record.
    let said = env.git(&env.repo(), &["log", "-1", "--format=%B", "handoffs"]);
    assert!(said.contains("Weaker: signers.added"), "{said}");
    assert_snapshot!(refused("new", 5), @"signature.unknown the step is issue-manager's, and is signed with SHA256:…, which is nobody's key");
    with_key(&env, "old", &args, &opening(5)).success();
    // What was signed before stays what it was.
    env.assert_sound();
}

#[test]
fn the_list_is_changed_by_who_is_on_it_for_their_address() {
    let env = team();
    let tip = env.tip();
    let line = |name: &str| fs::read_to_string(path(&env, &format!("{name}.pub"))).unwrap();
    let lines = format!(
        "issue-manager {}prep-agent,someone@example.com {}",
        line("manager"),
        line("prep")
    );
    let next = protocol(&env, "1.1.0", &lines);
    let update = |key: &str, folder: &str| {
        with_key(&env, key, &["protocol", "update", folder, "--json"], "")
    };
    assert_snapshot!(findings(update("manager", &next), 4, "signature_refused"), @"signature.other_agent the change is robin@example.com's, and is signed with SHA256:…, a key of issue-manager");
    // Whoever signs says who they are: no agent's name passes for a person's.
    let key = path(&env, "manager.pub");
    for email in ["issue-manager", "issue-manager@handoff.invalid"] {
        let settings = [("gpg.format", "ssh"), ("user.signingKey", &*key)];
        let args = ["protocol", "update", &next];
        let mut command = env.program(&args);
        command.env("GIT_COMMITTER_EMAIL", email);
        crate::keys::set(&mut command, &settings);
        env.run(command, &args, None)
            .exits(4)
            .says("signature.other_agent");
    }
    // Without the list, nobody would have to sign.
    let without = protocol(&env, "1.2.0", "");
    fs::remove_file(list(&env, "1.2.0")).unwrap();
    assert_snapshot!(findings(update("robin", &without), 3, "protocol_refused"), @"protocol.signers the new version leaves out allowed_signers, which is in force");
    assert_eq!(env.tip(), tip);
    update("robin", &next).success();
    // A list of nobody says it aloud.
    let nobody = protocol(&env, "1.3.0", "# nobody has to sign any more\n");
    update("robin", &nobody).exits(4);
    let settings = [
        ("gpg.format", "ssh"),
        ("user.signingKey", &*path(&env, "prep.pub")),
    ];
    let args = ["protocol", "update", &nobody, "--weaker"];
    let mut command = env.program(&args);
    command.env("GIT_COMMITTER_EMAIL", "someone@example.com");
    crate::keys::set(&mut command, &settings);
    env.run(command, &args, None).success();
    env.send(opening(1)).success();
    assert!(!is_signed(&env));
    // Others stand beside it, and ask for what they ask.
    env.handoff(&["protocol", "add", "delegation"]).success();
    env.assert_sound();
}

#[test]
fn a_lease_that_ran_out_is_recorded_by_anybody_who_is_listed() {
    let env = team();
    with_key(&env, "manager", &["send", "-"], &opening(1)).success();
    let claim = ["claim", "1.1", "--as", "prep-agent", "--lease", "10m"];
    with_key(&env, "prep", &claim, "").success();
    env.wait_minutes(30);
    ed25519(&env, "stranger");
    let tip = env.tip();
    let reap = ["reap", "--json"];
    assert_snapshot!(findings(with_key(&env, "stranger", &reap, ""), 4, "signature_refused"), @"signature.unknown the step is to be signed by anybody who is listed, and is signed with SHA256:…, which is nobody's key");
    assert_eq!(env.tip(), tip);
    with_key(&env, "manager", &reap, "").success();
    assert_ne!(env.tip(), tip);
    env.assert_sound();
}

#[test]
fn what_cannot_be_signed_is_not_written() {
    let env = TestEnvironment::with_ledger();
    env.git(&env.repo(), &["config", "handoff.sign", "true"]);
    let start = env.tip();
    let failed = |settings: &[(&str, &str)]| {
        let mut all = vec![("gpg.format", "ssh")];
        all.extend(settings);
        let ran = with_settings(&env, &all, &["send", "-", "--json"], &opening(1)).exits(9);
        let error = ran.json()["error"].take();
        assert_eq!(error["code"], "signing_failed");
        assert_eq!(env.tip(), start, "nothing was written");
        env.filtered(error["message"].as_str().unwrap())
    };
    let missing = path(&env, "nobody");
    assert_snapshot!(failed(&[("user.signingKey", &missing)]), @"the commit could not be signed: git says: error: Couldn't load public key [root]/nobody: No such file or directory?");
    ed25519(&env, "robin");
    let robin = path(&env, "robin");
    let fails = script(
        &env,
        "fails",
        "echo the token is not plugged in >&2; exit 1",
    );
    assert_snapshot!(failed(&[("user.signingKey", &robin), ("gpg.ssh.program", &fails)]), @"the commit could not be signed: git says: error: the token is not plugged in");
    let other = script(
        &env,
        "lies",
        "cat > /dev/null; echo '[GNUPG:] SIG_CREATED ' >&2",
    );
    let lies = [
        ("gpg.format", "openpgp"),
        ("user.signingKey", "x"),
        ("gpg.program", &other),
    ];
    assert_snapshot!(failed(&lies), @"the commit could not be signed: git wrote a different commit from the one to be signed: it has no signature");
    let ran = env.send(opening(1)).exits(9);
    assert_eq!(env.tip(), start);
    let hint = ran
        .stderr
        .lines()
        .find(|line| line.starts_with("hint"))
        .unwrap();
    assert_snapshot!(hint, @r#"hint: nothing was written; `git commit-tree -S "$(git mktree </dev/null)" -m test </dev/null` shows whether git can sign here, without moving a branch. Unlock a key with a passphrase first: `ssh-add`, or gpg's agent"#);
    // A passphrase that nobody is there to type.
    make_key(&env, "locked", &["ed25519"], "open sesame");
    let locked = path(&env, "locked");
    assert!(failed(&[("user.signingKey", &locked)]).contains("passphrase"));
    env.assert_sound();
}

#[test]
fn a_program_that_never_answers_is_ended_with_all_it_started() {
    let env = TestEnvironment::with_ledger();
    ed25519(&env, "robin");
    let (start, pid) = (env.tip(), path(&env, "pid"));
    let hangs = script(
        &env,
        "hangs",
        &format!("sleep 1000 & echo $! > {pid}; wait"),
    );
    let settings = [
        ("handoff.sign", "true"),
        ("gpg.format", "ssh"),
        ("user.signingKey", &*path(&env, "robin")),
        ("gpg.ssh.program", &hangs),
    ];
    let ran = with_settings(&env, &settings, &["send", "-", "--json"], &opening(1)).exits(9);
    let error = ran.json()["error"].take();
    assert_snapshot!(error["message"].as_str().unwrap(), @"the commit could not be signed: the program that signs did not answer in time");
    assert_eq!(env.tip(), start);
    let pid = fs::read_to_string(pid).unwrap();
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
    env.send(opening(1)).success();
}

#[test]
fn writers_that_sign_at_once_all_get_their_turn() {
    let env = TestEnvironment::with_repository();
    let line = ed25519(&env, "robin");
    start(&env, &format!("* {line}"));
    use_key(&env, "robin");
    // Without the queue, only the compare-and-swap keeps them apart.
    let queue = env.repo().join(".git/handoff");
    let _ = fs::remove_dir_all(&queue);
    fs::write(queue, "").unwrap();
    let children: Vec<Child> = (1..=4)
        .map(|issue| {
            let file = env.file(&format!("{issue}.xml"), opening(issue));
            let mut command = env.program(&["send", &file]);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(good_for_git(&env, &list(&env, "1.0.0")), 4);
    env.assert_sound();
}

#[test]
fn a_key_that_only_an_agent_holds_signs() {
    let env = TestEnvironment::with_repository();
    let line = ed25519(&env, "robin");
    start(&env, &format!("* {line}"));
    let socket = path(&env, "agent");
    let mut agent = env.command("ssh-agent");
    agent.args(["-D", "-a", &socket]);
    agent.stdout(Stdio::null()).stderr(Stdio::null());
    let mut agent = agent.spawn().unwrap();
    while !fs::exists(&socket).unwrap() {
        assert!(agent.try_wait().unwrap().is_none(), "the agent runs");
        std::thread::yield_now();
    }
    let mut add = env.command("ssh-add");
    add.env("SSH_AUTH_SOCK", &socket).arg(path(&env, "robin"));
    assert!(add.output().unwrap().status.success());
    fs::remove_file(path(&env, "robin")).unwrap();
    use_key(&env, "robin");
    let send = |socket: &str| {
        let mut command = env.program(&["send", "-"]);
        command.env("SSH_AUTH_SOCK", socket);
        env.run(command, &["send", "-"], Some(opening(1).as_bytes()))
    };
    let (without, with) = (send("/nowhere"), send(&socket));
    agent.kill().unwrap();
    agent.wait().unwrap();
    without.exits(4).says("signature.missing");
    with.success();
    env.assert_sound();
}

#[cfg(feature = "exchange")]
#[test]
fn an_import_signs_what_it_writes_and_a_rehearsal_nothing() {
    let source = TestEnvironment::with_ledger();
    source.send(opening(1)).success();
    source.claim("1.1", "prep-agent").success();
    source.send(test_support::contracts::prepared(1)).success();
    let folder = path(&source, "out");
    source
        .handoff(&["export", "--format", "log", &folder])
        .success();
    let env = TestEnvironment::with_ledger();
    let start = env.tip();
    let line = ed25519(&env, "robin");
    let import = |key: &str, more: &[&str]| {
        let key = path(&env, key);
        let settings = [
            ("gpg.format", "ssh"),
            ("user.signingKey", &*key),
            ("handoff.sign", "true"),
        ];
        let args = [&["import", &folder], more].concat();
        with_settings(&env, &settings, &args, "")
    };
    import("nobody", &["--dry-run"]).success();
    import("nobody", &[]).exits(9);
    assert_eq!(env.tip(), start);
    import("robin", &[]).success();
    let list = env.file("list", format!("* {line}"));
    assert_eq!(good_for_git(&env, list.as_ref()), 3);
    env.assert_sound();
}

#[test]
fn a_worktree_can_have_a_key_of_its_own() {
    let env = team();
    use_key(&env, "manager");
    let tree = path(&env, "prep-tree");
    let git = |args: &[&str]| env.git(&env.repo(), args);
    git(&["config", "extensions.worktreeConfig", "true"]);
    git(&["worktree", "add", "-q", "--detach", &tree]);
    git(&[
        "-C",
        &tree,
        "config",
        "--worktree",
        "user.signingKey",
        &path(&env, "prep.pub"),
    ]);
    env.send(opening(1)).success();
    env.claim("1.1", "prep-agent")
        .exits(4)
        .says("signature.other_agent");
    env.handoff_in(tree.as_ref(), &["claim", "1.1", "--as", "prep-agent"])
        .success();
    env.assert_sound();
}

#[test]
fn the_list_is_checked_and_shown() {
    let env = TestEnvironment::with_repository();
    let line = ed25519(&env, "robin");
    let lines = format!(
        "prep-agent valid-after=\"20260101Z\",valid-before=\"202612312359Z\" {line}\
         *-agent,!prep-agent openpgp 0123456789abcdef0123456789abcdef01234567\n"
    );
    let folder = protocol(&env, "1.0.0", &lines);
    let check = env.handoff(&["protocol", "check", &folder]).success();
    assert_snapshot!(env.filtered(&check.stdout), @"
    [root]/protocol-1.0.0: sound (35 files)
      allowed_signers warning signers.no_key no key is listed for issue-manager, so that every step of it is refused
          add a line: issue-manager TYPE KEY
      allowed_signers warning signers.no_key no key is listed for orchestrator, so that every step of it is refused
          add a line: orchestrator TYPE KEY
      allowed_signers warning signers.no_key no key is listed for maintainer, so that every step of it is refused
          add a line: maintainer TYPE KEY
      allowed_signers warning signers.unjudged nothing here says whether there is a key 0123456789ABCDEF0123456789ABCDEF01234567, and whether it may sign
          look: gpg --list-keys 0123456789ABCDEF0123456789ABCDEF01234567
      allowed_signers warning signers.no_person no key is listed for a person, so that nobody can change the protocol or the list later
          add a line with the e-mail address that git has for whoever may
    ");
    let shown = env.handoff(&["protocol", "show", &folder]).success().stdout;
    let from = shown.find("signers (").unwrap();
    assert_snapshot!(without_prints(&shown[from..]), @"
    signers (every step must be signed)
      prep-agent           ssh-ed25519  SHA256:…  from 2026-01-01 00:00:00Z until 2026-12-31 23:59:00Z
      *-agent,!prep-agent  openpgp      0123456789ABCDEF0123456789ABCDEF01234567
    ");
    let mut data = env.data(&["protocol", "show", &folder]);
    let mut first = data["signers"][0].take();
    assert!(
        first["fingerprint"]
            .take()
            .as_str()
            .unwrap()
            .starts_with("SHA256:")
    );
    assert_snapshot!(first, @r#"{"principals":"prep-agent","type":"ssh-ed25519","fingerprint":null,"valid_after":"2026-01-01T00:00:00Z","valid_before":"2026-12-31T23:59:00Z"}"#);
    fs::write(
        list(&env, "1.0.0"),
        format!("prep-agent {line}a cert-authority {line}b valid-after=\"20260101\" {line}\n"),
    )
    .unwrap();
    let check = env.handoff(&["protocol", "check", &folder]).exits(1);
    assert_snapshot!(env.filtered(&check.stdout), @r#"
    [root]/protocol-1.0.0: 2 faults
      2:1 allowed_signers signers.authority certificate authorities are not taken: a line names one key
          list the key of each agent itself
      3:1 allowed_signers signers.date valid-after is 20260101, which is another moment in each time zone
          end it in Z, for UTC: valid-after="20260101Z"
    "#);
    let init = ["init", "--protocol", &folder, "--json"];
    assert_snapshot!(findings(env.handoff(&init), 3, "protocol_refused"), @"
    signers.authority certificate authorities are not taken: a line names one key
    signers.date valid-after is 20260101, which is another moment in each time zone
    ");
    assert_eq!(env.tip(), "");
}

#[test]
fn documents_that_issues_share_are_signed_by_who_sets_them() {
    let env = TestEnvironment::with_repository();
    let (robin, front) = (ed25519(&env, "robin"), ed25519(&env, "front"));
    let folder = path(&env, "calls");
    env.handoff(&["protocol", "copy", "orchestrator-specialist", &folder])
        .success();
    let signers = format!("@frontend-specialist {front}robin@example.com {robin}");
    fs::write(format!("{folder}/allowed_signers"), signers).unwrap();
    env.handoff(&["init", "--protocol", &folder]).success();
    let text = r#"{"framework": "React", "version": "19.1", "layers": {}}"#;
    let set = [
        "document",
        "set",
        "tech-stack",
        "-",
        "--as",
        "@frontend-specialist",
    ];
    with_key(&env, "robin", &set, text)
        .exits(4)
        .says("signature.other_agent");
    with_key(&env, "front", &set, text).success();
    env.assert_sound();
}
