//! Signed history that somebody tampered with through plain git, and steps that plain git signs.

use std::fs;

use crate::keys::{
    BRANCH, damage, ed25519, findings, forget, header, key, parts, path, protocol, put, raw,
    script, signature, signed, start, team, use_key, with_key,
};
use insta::assert_snapshot;
use test_support::TestEnvironment;
use test_support::contracts::opening;

/// A ledger in which keys are asked for, and whose newest step is issue-manager's; and that step
/// without its signature, and the signature.
fn opened() -> (TestEnvironment, String, String) {
    let env = team();
    with_key(&env, "manager", &["send", "-"], &opening(1)).success();
    let (payload, signature) = parts(&raw(&env, &env.tip()));
    (env, payload, signature)
}

const GIT: &[&str] = &["-n", "git"];

#[test]
fn a_step_that_plain_git_signs_is_a_step() {
    let (env, payload, _) = opened();
    put(
        &env,
        &signed(&payload, &signature(&env, "manager", GIT, &payload)),
    );
    env.assert_sound();
    let options = ["-n", "git", "-O", "hashalg=sha256"];
    put(
        &env,
        &signed(&payload, &signature(&env, "manager", &options, &payload)),
    );
    env.assert_sound();
    // Checked out, written and committed by a person in the agent's name.
    let step = env.tip();
    use_key(&env, "manager");
    let git = |args: &[&str]| env.git(&env.repo(), args);
    git(&["update-ref", BRANCH, &format!("{step}~1")]);
    git(&["checkout", "-q", "handoffs"]);
    git(&["checkout", &step, "--", "."]);
    let author = "issue-manager <issue-manager@handoff.invalid>";
    let message = env.file("message", payload.split_once("\n\n").unwrap().1);
    let date = git(&["log", "-1", "--format=%ad", "--date=raw", &step]);
    let commit = [
        "commit",
        "-q",
        "-S",
        "--author",
        author,
        "--date",
        date.trim(),
        "-F",
        &message,
    ];
    git(&commit);
    assert_ne!(env.tip(), step);
    forget(&env);
    env.assert_sound();
}

#[test]
fn a_step_without_its_signature_is_found() {
    let (env, payload, _) = opened();
    put(&env, &payload);
    assert_snapshot!(damage(&env), @"signature.missing the step is issue-manager's, and is not signed");
}

#[test]
fn a_key_of_another_agent_is_found() {
    let (env, payload, _) = opened();
    put(
        &env,
        &signed(&payload, &signature(&env, "prep", GIT, &payload)),
    );
    assert_snapshot!(damage(&env), @"signature.other_agent the step is issue-manager's, and is signed with SHA256:…, a key of prep-agent@handoff.invalid");
    ed25519(&env, "stranger");
    put(
        &env,
        &signed(&payload, &signature(&env, "stranger", GIT, &payload)),
    );
    assert_snapshot!(damage(&env), @"signature.unknown the step is issue-manager's, and is signed with SHA256:…, which is nobody's key");
}

#[test]
fn an_altered_commit_with_its_old_signature_is_found() {
    let (env, payload, signature) = opened();
    let later = payload.replace("+0000\n\n", "+0100\n\n");
    assert_ne!(later, payload);
    put(&env, &signed(&later, &signature));
    assert_snapshot!(damage(&env), @"signature.bad the signature is not one of this commit");
}

#[test]
fn keys_that_ssh_keygen_verifies_vouch_for_one_commit_alone() {
    for kind in [["ecdsa", "-b", "384"], ["rsa", "-b", "2048"]] {
        let env = TestEnvironment::with_repository();
        let line = key(&env, "robin", &kind);
        start(&env, &format!("robin@example.com,* {line}"));
        use_key(&env, "robin");
        env.send(opening(1)).success();
        let (payload, signature) = parts(&raw(&env, &env.tip()));
        let later = payload.replace("+0000\n\n", "+0100\n\n");
        assert_ne!(later, payload);
        put(&env, &signed(&later, &signature));
        let bad = "signature.bad the signature is not one of this commit";
        assert_eq!(damage(&env), bad);
        put(&env, &signed(&payload, &signature));
        env.assert_sound();
        // One that is too old to verify says nothing of the commit.
        forget(&env);
        script(&env, "ssh-keygen", "echo unknown option >&2; exit 1");
        let args = ["verify", "--json"];
        let mut command = env.program(&args);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", env.root().display()));
        assert_eq!(
            findings(env.run(command, &args, None), 10, "ledger_damaged"),
            "signature.unverified the signature could not be verified: ssh-keygen cannot be run: unknown option"
        );
    }
}

#[test]
fn a_signature_of_another_commit_is_found() {
    let (env, _, signature) = opened();
    with_key(&env, "manager", &["send", "-"], &opening(2)).success();
    let (payload, _) = parts(&raw(&env, &env.tip()));
    put(&env, &signed(&payload, &signature));
    assert_snapshot!(damage(&env), @"signature.bad the signature is not one of this commit");
}

#[test]
fn a_signature_that_was_not_made_for_git_is_found() {
    let (env, payload, _) = opened();
    put(
        &env,
        &signed(
            &payload,
            &signature(&env, "manager", &["-n", "file"], &payload),
        ),
    );
    assert_snapshot!(damage(&env), @"signature.bad the signature was not made for git");
}

#[test]
fn what_is_no_signature_is_found() {
    let (env, payload, signature) = opened();
    // With SHA-256, each of the two headers has the other's part.
    let (own, others) = match header() {
        "gpgsig" => ("gpgsig", "gpgsig-sha256"),
        header => (header, "gpgsig"),
    };
    let found = |raw: &str| {
        put(&env, raw);
        let said = damage(&env);
        let said = said.replace(&format!("{own} "), "[own] ");
        said.replace(&format!("{others} "), "[other] ")
    };
    let two = format!("{signature}{signature}");
    assert_snapshot!(found(&signed(&payload, &two)), @r#"
    signature.bad the commit has two signatures
    commit.header the commit is not in a step's canonical form: "[own] -----BEGIN SSH SIGNATURE-----"
    "#);
    let other = signature.replace(&format!("{own} "), &format!("{others} "));
    assert_snapshot!(found(&signed(&payload, &other)), @r#"
    signature.bad the commit has a signature in a header where git looks for none
    commit.header the commit is not in a step's canonical form: "[other] -----BEGIN SSH SIGNATURE-----"
    "#);
    let lines: Vec<&str> = signature.lines().collect();
    let cut = [&lines[..2], &lines[3..]].concat().join("\n") + "\n";
    assert_snapshot!(found(&signed(&payload, &cut)), @"signature.bad the signature cannot be read");
    assert_snapshot!(found(&signed(&payload, &format!("{own} nothing at all\n"))), @r#"
    signature.unknown the signature is neither one of ssh nor one of OpenPGP
    commit.header the commit is not in a step's canonical form: "[own] nothing at all"
    "#);
    let x509 = " -----BEGIN SIGNED MESSAGE-----\n MIIB\n -----END SIGNED MESSAGE-----\n";
    let x509 = format!("{own}{x509}");
    assert_snapshot!(found(&signed(&payload, &x509)), @"signature.unknown the signature is neither one of ssh nor one of OpenPGP");
    let after_committer = format!(" and more\n{signature}");
    assert_snapshot!(found(&signed(&payload, &after_committer)), @r#"
    signature.bad the signature is not one of this commit
    commit.header the commit is not in a step's canonical form: " and more"
    "#);
    let with_more = format!("{signature} and more\n");
    assert_snapshot!(found(&signed(&payload, &with_more)), @r#"
    signature.bad the signature cannot be read
    commit.header the commit is not in a step's canonical form: " and more"
    "#);
}

#[test]
fn where_no_key_is_asked_for_a_signature_must_still_be_one() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(1)).success();
    let payload = raw(&env, &env.tip());
    ed25519(&env, "anybody");
    let good = signature(&env, "anybody", GIT, &payload);
    put(&env, &signed(&payload, &good));
    env.assert_sound();
    // Not known here, and so not judged.
    let pgp = " -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n";
    let pgp = format!("{}{pgp}", header());
    put(&env, &signed(&payload, &pgp));
    env.handoff(&["verify"]).success();
    let forged = payload.replace("+0000\n\n", "+0100\n\n");
    put(&env, &signed(&forged, &good));
    assert_snapshot!(damage(&env), @"signature.bad the signature is not one of this commit");
    let start = env.git(&env.repo(), &["rev-list", "--max-parents=0", "handoffs"]);
    put(&env, &signed(&raw(&env, start.trim()), &good));
    assert_snapshot!(damage(&env), @"signature.bad the signature is not one of this commit");
}

#[test]
fn the_rules_that_count_are_those_before_the_step() {
    let (env, payload, _) = opened();
    // A list that lets a stranger in, put in force by the stranger.
    let stranger = ed25519(&env, "stranger");
    let folder = protocol(&env, "9.9.9", &format!("* {stranger}"));
    let scratch = TestEnvironment::with_repository();
    scratch.git(
        &scratch.repo(),
        &[
            "fetch",
            "-q",
            env.repo().to_str().unwrap(),
            "handoffs:handoffs",
        ],
    );
    let step = env.tip();
    // What the tool refuses is made by lifting the list first, elsewhere.
    let refused = with_key(
        &env,
        "stranger",
        &["protocol", "update", &folder, "--json"],
        "",
    );
    assert_snapshot!(findings(refused, 4, "signature_refused"), @"signature.unknown the change is robin@example.com's, and is signed with SHA256:…, which is nobody's key");
    let robin = with_key(&env, "robin", &["protocol", "update", &folder], "");
    robin.success();
    let (change, _) = parts(&raw(&env, &env.tip()));
    put(
        &env,
        &signed(&change, &signature(&env, "stranger", GIT, &change)),
    );
    assert_snapshot!(damage(&env), @"signature.unknown the change is robin@example.com's, and is signed with SHA256:…, which is nobody's key");
    put(&env, &change);
    assert_snapshot!(damage(&env), @"signature.missing the change is robin@example.com's, and is not signed");
    env.git(&env.repo(), &["update-ref", BRANCH, &step]);
    put(
        &env,
        &signed(&payload, &signature(&env, "manager", GIT, &payload)),
    );
    env.assert_sound();
}

#[test]
fn a_certificate_is_no_listed_key() {
    let env = TestEnvironment::with_repository();
    let (line, _) = (ed25519(&env, "robin"), ed25519(&env, "authority"));
    let mut certify = env.command("ssh-keygen");
    certify.args([
        "-q",
        "-s",
        &path(&env, "authority"),
        "-I",
        "robin",
        "-n",
        "robin",
    ]);
    certify.args(["-V", "always:forever", &path(&env, "robin.pub")]);
    assert!(certify.output().unwrap().status.success());
    start(&env, &format!("* {line}"));
    use_key(&env, "robin");
    env.send(opening(1)).success();
    let (payload, _) = parts(&raw(&env, &env.tip()));
    let certified = signature(&env, "robin-cert.pub", GIT, &payload);
    put(&env, &signed(&payload, &certified));
    assert_snapshot!(damage(&env), @"signature.bad the signature cannot be read");
}

#[test]
fn a_large_key_is_not_taken_for_a_forger_s() {
    let env = TestEnvironment::with_ledger();
    let _ = key(&env, "large", &["rsa", "-b", "1024"]);
    use_key(&env, "large");
    env.git(&env.repo(), &["config", "handoff.sign", "true"]);
    env.send(opening(1)).success();
    env.handoff(&["verify"]).success();
    let lines = fs::read_to_string(path(&env, "large.pub")).unwrap();
    let folder = protocol(&env, "1.0.0", &format!("* {lines}"));
    let check = ["protocol", "check", &folder, "--json"];
    assert_snapshot!(findings(env.handoff(&check), 1, "protocol_faults"), @"signers.key the key has 1024 bits, and RSA keys have from 2048 to 4096");
}

#[test]
fn a_server_takes_no_step_that_the_wrong_key_signed() {
    let (env, payload, _) = opened();
    let step = env.tip();
    let server = env.root().join("server");
    let git = |args: &[&str]| env.git(&env.repo(), args);
    git(&["init", "-q", "--bare", server.to_str().unwrap()]);
    env.handoff_in(&server, &["hooks", "install", "--server"])
        .success();
    let start = format!("{step}~1:{BRANCH}");
    git(&["push", "-q", server.to_str().unwrap(), &start]);
    let push = || env.git_any(&env.repo(), &["push", server.to_str().unwrap(), BRANCH]);
    put(&env, &payload);
    push().exits(1).says("signature.missing");
    let forged = signature(&env, "prep", GIT, &payload);
    put(&env, &signed(&payload, &forged));
    push().exits(1).says("signature.other_agent");
    git(&["update-ref", BRANCH, &step]);
    push().success();
}
