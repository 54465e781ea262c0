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
