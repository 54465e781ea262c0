//! Real messages: from git 2.47 where reproducible, from newer versions' source, and from bug
//! reports about hosts.
#![allow(clippy::unwrap_used)]

use super::*;

const REF: &str = "refs/heads/handoffs";

/// The variant of an outcome, with its message.
fn meaning(result: Result<Pushed, RemoteError>) -> String {
    match result {
        Ok(pushed) => format!("{pushed:?}"),
        Err(RemoteError::Refused { message }) => format!("Refused: {}", message.join(" | ")),
        Err(RemoteError::Protected { message }) => format!("Protected: {message}"),
        Err(RemoteError::Denied { message }) => format!("Denied: {message}"),
        Err(RemoteError::Failed { message }) => format!("Failed: {message}"),
        Err(other) => format!("{other:?}"),
    }
}

/// A push with this outcome for the ref and this error output.
fn pushed(outcome: &str, stderr: &str) -> String {
    let stdout = format!(
        "To https://host/x.git\n!\tac860cfcf9c8af22c90ec372b375379a56a09a1e:{REF}\t{outcome}\nDone\n"
    );
    let stderr = format!("{stderr}\nerror: failed to push some refs to 'https://host/x.git'\n");
    meaning(of_push(REF, stdout.as_bytes(), stderr.as_bytes()))
}

/// A failure before refs were negotiated.
fn contact(stderr: &str) -> String {
    let result = of_push(REF, b"", stderr.as_bytes());
    let fetched = meaning(Err(of_contact(&lines(stderr.as_bytes()))));
    assert_eq!(meaning(result), fetched, "fetch and push differ: {stderr}");
    fetched
}

const GONE: &str = "fatal: Could not read from remote repository.\n\n\
    Please make sure you have the correct access rights\nand the repository exists.";

#[test]
fn damage_here_is_told_from_damage_there() {
    for message in [
        "fatal: loose object 2f27df (stored in .git/objects/2f/27df) is corrupt",
        "error: object file .git/objects/23/71f7 is empty; fatal: bad tree object 2371f7",
    ] {
        assert!(tells_of_damage(message), "{message}");
        assert!(!tells_of_damage(
            &format!("remote: {message}").replace("; ", "; remote: ")
        ));
    }
    assert!(!tells_of_damage(GONE));
}

#[test]
fn a_fetch_that_another_overtook_is_made_again() {
    let lock = "error: cannot lock ref 'refs/handoff/remotes/origin/handoffs': ";
    let id = "1234567890123456789012345678901234567890";
    let at = format!("{lock}is at {id} but expected {id}");
    for (stderr, is_overtaken) in [
        (at.as_str(), true),
        (&format!("{lock}reference already exists"), true),
        ("fatal: update_ref failed: cannot lock references", true),
        (
            &format!("{lock}Unable to create '/srv/x.lock': Permission denied"),
            false,
        ),
        (&format!("remote: {at}"), false),
    ] {
        assert_eq!(
            is_locked(&lines(stderr.as_bytes())),
            is_overtaken,
            "{stderr}"
        );
    }
}

#[test]
fn someone_was_first() {
    let zero = "1234567890123456789012345678901234567890";
    let at = format!("is at {zero} but expected {zero}");
    for (outcome, stderr) in [
        (
            "[rejected] (fetch first)",
            "hint: Updates were rejected because the remote contains work",
        ),
        (
            "[rejected] (non-fast-forward)",
            "hint: Updates were rejected because the tip",
        ),
        ("[rejected] (stale info)", ""),
        ("[rejected] (already exists)", ""),
        ("[remote rejected] (incorrect old value provided)", ""),
        ("[remote rejected] (reference already exists)", ""),
        (
            "[remote rejected] (non-fast-forward)",
            "remote: error: denying non-fast-forward refs/heads/handoffs (you should pull first)",
        ),
        ("[remote rejected] (non-fast forward)", ""),
        ("[remote rejected] (failed to lock)", ""),
        ("[remote rejected] (failed to update ref)", ""),
        ("[remote rejected] (failed to update refs)", ""),
        (
            "[remote rejected] (failed to update ref)",
            &format!("remote: error: cannot lock ref '{REF}': {at}        "),
        ),
        (
            "[remote rejected] (failed to update ref)",
            "remote: error: cannot lock ref 'refs/heads/handoffs': reference already exists        ",
        ),
        (
            "[remote rejected] (failed to update ref)",
            "remote: error: cannot lock ref 'refs/heads/handoffs': Unable to create '/srv/x: Permission denied/refs/heads/handoffs.lock': File exists.        \n\
             remote: \nremote: Another git process seems to be running in this repository, e.g.",
        ),
        (
            &format!("[remote rejected] (cannot lock ref '{REF}': {at})"),
            "",
        ),
        (
            "[remote rejected] (TF401028: The reference 'refs/heads/handoffs' has already been updated by another client, so you cannot update it. Please try again.)",
            "",
        ),
    ] {
        assert_eq!(pushed(outcome, stderr), "Behind", "{outcome}: {stderr}");
    }
}

#[test]
fn a_hook_refused_it_and_said_why() {
    let stderr_lines = "remote: no from update        \nremote: err        \n\
        remote: \u{1b}[31mred\u{1b}[0m\u{7}        \n\
        remote: error: hook declined to update refs/heads/handoffs        ";
    assert_eq!(
        pushed("[remote rejected] (hook declined)", stderr_lines),
        "Refused: no from update | err | red"
    );
    let stderr_lines = "remote: error: branch handoffs is the ledger, and this move is not made of legal steps\n\
        remote:   1a2b 1:1 issues/7/record.json field.missing /handoff/status: `status` is missing";
    assert_eq!(
        pushed(
            "[remote rejected] (pre-receive hook declined)",
            stderr_lines
        ),
        "Refused: error: branch handoffs is the ledger, and this move is not made of legal steps | \
         1a2b 1:1 issues/7/record.json field.missing /handoff/status: `status` is missing"
    );
    assert_eq!(
        pushed("[remote rejected] (pre-receive hook declined)", ""),
        "Refused: pre-receive hook declined"
    );
    assert_eq!(
        pushed(
            "[remote rejected] (push declined due to email privacy restrictions)",
            "remote: error: GH007: Your push would publish a private email address."
        ),
        "Refused: error: GH007: Your push would publish a private email address."
    );
    for aborted in [
        "remote: error: ref updates aborted by hook",
        "remote: error: in 'prepared' phase, update aborted by the reference-transaction hook",
    ] {
        let stderr_lines = format!("remote: not now\n{aborted}");
        let outcome = "[remote rejected] (failed to update refs)";
        assert_eq!(
            pushed(outcome, &stderr_lines),
            "Refused: not now",
            "{aborted}"
        );
    }
    assert_eq!(
        contact(
            "not now\nfatal: ref updates aborted by hook\nsend-pack: unexpected disconnect while reading sideband packet\nfatal: the remote end hung up unexpectedly"
        ),
        "Refused: not now"
    );
}

#[test]
fn what_a_hook_says_is_bounded() {
    let stderr_lines: String = (0..1000)
        .map(|n| format!("remote: {n} {}\n", "x".repeat(5000)))
        .collect();
    let result = pushed(
        "[remote rejected] (pre-receive hook declined)",
        &stderr_lines,
    );
    assert!(result.starts_with("Refused: 0 xxx"), "{}", &result[..80]);
    assert!(result.len() < 40 * 410, "{}", result.len());
}

#[test]
fn the_branch_is_protected() {
    for (outcome, stderr, message) in [
        (
            "[remote rejected] (protected branch hook declined)",
            "remote: error: GH006: Protected branch update failed for refs/heads/handoffs.\nremote: error: Changes must be made through a pull request.",
            "error: GH006: Protected branch update failed for refs/heads/handoffs.; error: Changes must be made through a pull request.",
        ),
        (
            "[remote rejected] (push declined due to repository rule violations)",
            "remote: error: GH013: Repository rule violations found for refs/heads/handoffs.\nremote: \nremote: - Changes must be made through a pull request.",
            "error: GH013: Repository rule violations found for refs/heads/handoffs.; - Changes must be made through a pull request.",
        ),
        (
            "[remote rejected] (pre-receive hook declined)",
            "remote: GitLab: You are not allowed to push code to protected branches on this project.",
            "GitLab: You are not allowed to push code to protected branches on this project.",
        ),
        (
            "[remote rejected] (pre-receive hook declined)",
            "remote: Branch refs/heads/handoffs can only be modified through pull requests.\nremote: Check your branch permissions configuration with the project administrator.",
            "Branch refs/heads/handoffs can only be modified through pull requests.; Check your branch permissions configuration with the project administrator.",
        ),
        (
            "[remote rejected] (pre-receive hook declined)",
            "remote: Gitea: Not allowed to push to protected branch handoffs",
            "Gitea: Not allowed to push to protected branch handoffs",
        ),
        (
            "[remote rejected] (TF402455: Pushes to this branch are not permitted; you must use a pull request to update this branch.)",
            "remote: Analyzing objects... (12/12) (8 ms)",
            "TF402455: Pushes to this branch are not permitted; you must use a pull request to update this branch.",
        ),
        (
            "[remote rejected] (deny updating a hidden ref)",
            "",
            "deny updating a hidden ref",
        ),
        (
            "[remote rejected] (branch is currently checked out)",
            "remote: error: refusing to update checked out branch: refs/heads/handoffs\nremote: error: By default, updating the current branch in a non-bare repository",
            "branch is currently checked out",
        ),
    ] {
        assert_eq!(pushed(outcome, stderr), format!("Protected: {message}"));
    }
}

#[test]
fn there_is_no_permission() {
    for stderr in [
        "fatal: Authentication failed for 'http://127.0.0.1:8080/x.git/'",
        "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
        "error: unable to read askpass response from '/bin/false'\nfatal: could not read Password for 'https://me@host': terminal prompts disabled",
        "remote: Permission to a/b.git denied to c.\nfatal: unable to access 'https://github.com/a/b.git/': The requested URL returned error: 403",
        "fatal: unable to access 'http://h/returned error: 500': x/': The requested URL returned error: 401",
        "error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403\nsend-pack: unexpected disconnect while reading sideband packet\nfatal: the remote end hung up unexpectedly",
        "fatal: remote error: access denied or repository not exported: /x.git",
        "fatal: remote error: service not enabled: /x.git",
        &format!("git@github.com: Permission denied (publickey).\n{GONE}"),
        &format!("Permission denied (publickey,gssapi-keyex,password).\n{GONE}"),
        &format!("ERROR: Permission to a/b.git denied to c.\n{GONE}"),
        &format!(
            "ERROR: The key you are authenticating with has been marked as read only.\n{GONE}"
        ),
        &format!(
            "remote: \nremote: ERROR: You are not allowed to push code to this project.\nremote: \n{GONE}"
        ),
        &format!(
            "fatal: detected dubious ownership in repository at '/srv/x.git'\nTo add an exception for this directory, call:\n\n\tgit config --global --add safe.directory /srv/x.git\n{GONE}"
        ),
    ] {
        let result = contact(stderr);
        assert!(result.starts_with("Denied: "), "{result}");
        assert!(!result.contains("and the repository exists"), "{result}");
    }
    for (outcome, stderr) in [
        (
            "[remote rejected] (unpacker error)",
            "error: remote unpack failed: unable to create temporary object directory",
        ),
        (
            "[remote rejected] (unpacker error)",
            "remote: error: insufficient permission for adding an object to repository database ./objects        \nremote: fatal: failed to write object        \nerror: remote unpack failed: unpack-objects abnormal exit",
        ),
        (
            "[remote rejected] (unpacker error)",
            "remote: fatal: Unable to create temporary file '/srv/x.git/./objects/pack/tmp_pack_XXXXXX': Permission denied        \nerror: remote unpack failed: index-pack abnormal exit",
        ),
        (
            "[remote rejected] (failed to update ref)",
            "remote: error: cannot lock ref 'refs/heads/handoffs': Unable to create '/srv/x.git/./refs/heads/handoffs.lock': Permission denied        ",
        ),
        (
            "[remote rejected] (failed to update ref)",
            "remote: error: cannot lock ref 'refs/heads/handoffs': Unable to create '/srv/x.git/./refs/heads/handoffs.lock': Read-only file system        ",
        ),
        (
            "[remote rejected] (prohibited by Gerrit: not permitted: update)",
            "",
        ),
        (
            "[remote rejected] (TF401027: You need the Git 'GenericContribute' permission to perform this action.)",
            "",
        ),
    ] {
        let result = pushed(outcome, stderr);
        assert!(result.starts_with("Denied: "), "{outcome}: {result}");
    }
}

#[test]
fn anything_else_may_pass() {
    for stderr in [
        &format!("fatal: '/srv/x.git' does not appear to be a git repository\n{GONE}"),
        &format!("ssh: Could not resolve hostname host: Name or service not known\n{GONE}"),
        &format!("ssh: connect to host 127.0.0.1 port 1: Connection refused\n{GONE}"),
        "fatal: unable to access 'https://host/x.git/': Could not resolve host: host",
        "fatal: unable to access 'https://h/': The requested URL returned error: 403': The requested URL returned error: 502",
        "fatal: unable to access 'https://host/x.git/': The requested URL returned error: 503",
        "fatal: unable to connect to 127.0.0.1:\n127.0.0.1[0: 127.0.0.1]: errno=Connection refused",
        "fatal: the remote end hung up unexpectedly",
        "fatal: read error: Connection reset by peer",
        "error: RPC failed; curl 52 Empty reply from server\nfatal: the remote end hung up unexpectedly",
        "fatal: repository 'https://host/Permission denied (publickey)/' not found",
        "remote: fatal: Authentication failed for 'x'\nfatal: the remote end hung up unexpectedly",
        "",
    ] {
        let result = contact(stderr);
        assert!(result.starts_with("Failed: "), "{stderr}: {result}");
        assert!(result.len() > "Failed: ".len());
    }
    for (outcome, stderr) in [
        ("[remote failure] (remote failed to report status)", ""),
        ("[remote rejected] (shallow update not allowed)", ""),
        ("[remote rejected] (missing necessary objects)", ""),
        ("[rejected] (new shallow roots not allowed)", ""),
        (
            "[remote rejected] (unpacker error)",
            "remote: fatal: write error: No space left on device        \nerror: remote unpack failed: index-pack abnormal exit",
        ),
        (
            "[remote rejected] (failed to update ref)",
            "remote: error: cannot lock ref 'refs/heads/handoffs': Unable to create '/srv/x.git/./refs/heads/handoffs.lock': No space left on device        ",
        ),
        (
            "[remote rejected] (failed to update ref)",
            "remote: error: cannot lock ref 'refs/heads/handoffs': 'refs/heads' exists; cannot create 'refs/heads/handoffs'        ",
        ),
    ] {
        let result = pushed(outcome, stderr);
        let reason = outcome.rsplit_once('(').unwrap().1.trim_end_matches(')');
        assert!(result.starts_with(&format!("Failed: {reason}")), "{result}");
        assert!(!result.contains("failed to push some refs"), "{result}");
    }
}

#[test]
fn only_the_line_about_the_ref_counts() {
    let other =
        b"To x\n!\ta:refs/heads/handoffs2\t[rejected] (fetch first)\n \tb:refs/heads/main\t1..2\n";
    assert!(meaning(of_push(REF, other, b"")).starts_with("Failed: "));
    assert!(meaning(of_pushed(REF, other)).starts_with("Failed: "));
    let line = |flag: &str| format!("To x\n{flag}\ta:{REF}\t1111111..2222222\n");
    for (stdout, result) in [
        (line("="), "Already"),
        (line(" "), "Done"),
        (line("*"), "Done"),
        (line("=") + &line("="), "Already"),
        (line("=") + &line(" "), "Done"),
    ] {
        assert_eq!(meaning(of_pushed(REF, stdout.as_bytes())), result);
    }
}

#[test]
fn a_fetch_says_that_there_is_no_branch_or_that_it_was_rewritten() {
    let read = |text: &str| {
        let lines = lines(text.as_bytes());
        (is_missing(REF, &lines), is_rewritten(&lines))
    };
    let rewritten = "From /srv/x\n ! [rejected]        handoffs   -> refs/handoff/remotes/origin/handoffs  (non-fast-forward)\n";
    assert_eq!(read(rewritten), (false, true));
    let compact = rewritten.replace("origin/handoffs ", "origin/* ");
    assert_eq!(read(&compact), (false, true));
    let missing = format!("fatal: couldn't find remote ref {REF}\n");
    assert_eq!(read(&missing), (true, false));
    assert_eq!(read(&missing.replace("offs", "offs2")), (false, false));
    assert_eq!(
        read("remote: ! [rejected] x (non-fast-forward)\n"),
        (false, false)
    );
}

#[test]
fn secrets_in_addresses_are_masked() {
    for (text, shown) in [
        ("'https://me:token@host/x'", "'https://***@host/x'"),
        (
            "'https://token@host/x' and http://a:b@c",
            "'https://***@host/x' and http://***@c",
        ),
        (
            "https://user:p@ss@host:8080/a@b",
            "https://***@host:8080/a@b",
        ),
        ("ssh://git@host/x", "ssh://git@host/x"),
        ("ssh://git:pass@host/x", "ssh://***@host/x"),
        (
            "https://host/a@b file:///srv/a@b git@host:x",
            "https://host/a@b file:///srv/a@b git@host:x",
        ),
        ("://@", "://***@"),
    ] {
        assert_eq!(masked(text), shown);
    }
    let message =
        contact("fatal: unable to access 'https://me:secret@h/': Could not resolve host: h");
    assert!(!message.contains("secret"), "{message}");
    let message = pushed(
        "[remote failure] (remote failed to report status)",
        "remote: see https://t0k3n@h/",
    );
    assert!(!message.contains("t0k3n"), "{message}");
}
