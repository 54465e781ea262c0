//! Commands that are printed can be pasted: whatever name stands in them, a shell runs nothing else.

use std::fs;
use std::path::Path;
use std::process::Command;

use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, sample};

/// Names that git allows for branches, and what else is printed, each of which would make the file
/// `X` if a shell read it.
const HOSTILE: [&str; 3] = [
    "fix;touch${IFS}X;#",
    "a'$(touch${IFS}X)'b",
    "c`touch${IFS}X`d&touch${IFS}X",
];

/// The commands in a text: between backticks, after `next:` and `or:`, and lines that begin so.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        for start in ["`git ", "next: git ", "or: git ", ": git ", "then git "] {
            for (at, _) in line.match_indices(start) {
                let from = at + start.len() - "git ".len();
                // As somebody would select it, who may miss the end.
                let rest = &line[from..];
                found.push(rest.trim_end_matches('`').to_owned());
                let mut ends = rest
                    .match_indices('`')
                    .map(|(end, _)| rest[..end].to_owned());
                found.extend(ends.next_back());
            }
        }
    }
    found
}

/// Runs a printed command as if it had been pasted, where `git` is a program that does nothing.
fn paste(folder: &Path, command: &str) {
    let _ = Command::new("sh")
        .args(["-c", command])
        .env_clear()
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", folder.join("bin").display()),
        )
        .current_dir(folder)
        .output();
    assert!(
        !folder.join("X").exists(),
        "this ran more than itself: {command}"
    );
}

#[test]
fn no_printed_command_runs_a_name_in_it() {
    let mut seen = 0;
    for name in HOSTILE {
        let env = TestEnvironment::with_ledger();
        let folder = env.root().join("paste");
        fs::create_dir_all(folder.join("bin")).unwrap();
        test_support::files::script(&folder.join("bin/git"), "#!/bin/sh\n");
        env.git(&env.repo(), &["branch", "-f", name, "HEAD"]);
        env.handoff(&[
            "protocol",
            "set",
            "issue-to-pr",
            "evidence",
            "warn",
            "--as",
            "issue-manager",
        ]);
        env.send(opening(87)).success();
        env.claim("87.1", "prep-agent").success();
        let json = sample("prep-agent-to-implementer-agent", Format::Json, 87)
            .replace("enhancement/87-csv-export", name);
        let mut texts = vec![env.handoff_with(&["send", "-"], json)];
        texts.push(env.claim("87.2", "implementer-agent"));
        let work = sample("implementer-agent-to-reviewer-agent", Format::Json, 87)
            .replace("enhancement/87-csv-export", name);
        let path = env.file(&format!("{}.json", name.replace('/', "")), &work);
        let odd = env.repo().join(name);
        for args in [
            &["check", &path][..],
            &["check", &path, "--evidence", "enforce"],
            &["send", &path],
            &["status"],
            &["status", "--branch", name],
            &["verify", "--branch", name],
            &["--branch", name, "init"],
            &["--branch", name, "status"],
            &["show", "87.2"],
            &["next", "87"],
            #[cfg(feature = "agents")]
            &["prime", "--as", "implementer-agent"],
            #[cfg(feature = "agents")]
            &["prime", "--as", "reviewer-agent", "--branch", name],
            &["init", "--protocol", name],
            &["init", "--remote", name],
            &["protocol", "add", name],
            &["protocol", "show", name],
            &["protocol", "copy", "issue-to-pr", odd.to_str().unwrap()],
            &["watch", "--from", "HEAD", "--branch", name],
            &["log", "--author", name],
            &["log", "--git", "--branch", name],
            &["explain", name],
            &["document", "get", name],
            &[
                "block",
                "87.2",
                "--as",
                "implementer-agent",
                "--reason",
                name,
                "--needs",
                name,
            ],
            &["next", "87"],
            &["status", "87"],
            &["inbox", "--as", "implementer-agent"],
            &["fetch", "--remote", name],
            &["sync"],
        ] {
            texts.push(env.handoff(args));
        }
        for ran in &texts {
            for command in commands(&format!("{}\n{}", ran.stdout, ran.stderr)) {
                seen += usize::from(command.contains("touch"));
                paste(&folder, &command);
            }
        }
    }
    assert!(seen > 5, "the names are in {seen} commands only");
}

/// The commands that an answer says to run next, as they stand at the end of their lines.
fn next_commands(said: &str) -> Vec<&str> {
    let lines = said.lines().filter(|line| !line.starts_with("hint: "));
    let found = lines.filter_map(|line| line.find("git handoff ").map(|at| &line[at..]));
    found.filter(|command| !command.contains('`')).collect()
}

/// A folder that is called as a protocol is told from it, as long as nobody has to think of it.
#[test]
fn what_an_author_is_told_to_run_next_is_run_as_it_is_printed() {
    let env = TestEnvironment::with_repository();
    let run = |line: &str| {
        let mut command = env.command("sh");
        command.args(["-c", line]);
        env.run(command, &[line], None)
    };
    let followed = |line: &str, count: usize| {
        let ran = run(line);
        let next = next_commands(&ran.stderr);
        // `protocol test` is one of a room.
        let is_less = count > 1 || line.contains(" check ");
        let is_less = is_less && !cfg!(feature = "trial");
        assert_eq!(next.len(), count - usize::from(is_less), "{}", ran.shown);
        for command in &next {
            let is_test = command.starts_with("git handoff protocol test ");
            let fewer = if is_test { " --issues 1" } else { "" };
            run(&format!("{command}{fewer}")).success();
        }
        ran
    };
    followed(
        "git handoff protocol new review-own --from review review",
        3,
    )
    .success();
    fs::remove_dir_all(env.repo().join("review")).unwrap();
    followed("git handoff protocol copy delegation delegation", 1).success();
    followed("git handoff protocol new 'my press' --agents a,b", 0).exits(2);
    followed("git handoff protocol new press --agents a,b 'my press'", 3).success();
    followed("git handoff protocol check 'my press'", 1).success();
    // One that differs from what has its name, and is faulty.
    let path = env.repo().join("delegation/protocol.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"format\": 1", "\"format\": 2", 1)).unwrap();
    let faulty = run("git handoff protocol check ./delegation").exits(1);
    let next = next_commands(&faulty.stderr);
    assert_eq!(next, ["git handoff protocol check ./delegation"]);
    fs::write(
        &path,
        text.replacen("\"title\": \"", "\"title\": \"Our ", 1),
    )
    .unwrap();
    for command in next {
        followed(command, 1).success();
    }
    // With a ledger, the folder is added to it.
    let made = followed("git handoff protocol new pair --agents c,d", 3).success();
    assert!(
        made.stderr.contains("  git handoff protocol add ./pair\n"),
        "{}",
        made.shown
    );
    // The command that opens an issue, with `N` for its number.
    let added =
        run("git handoff protocol new trio --agents e,f,g; git handoff protocol add ./trio");
    let last = next_commands(&added.stderr).pop().unwrap();
    assert!(
        last.starts_with("git handoff send --issue N "),
        "{}",
        added.shown
    );
    run(last).success();
}
