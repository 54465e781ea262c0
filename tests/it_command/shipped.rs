//! What is shipped around the program: the demo, the hook, manual pages and
//! completions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use test_support::TestEnvironment;
use test_support::contracts::opening;

#[test]
fn the_demo_takes_an_issue_to_its_end_and_leaves_the_repository() {
    let env = TestEnvironment::new();
    let folder = env.root().join("tour");
    let ran = env.handoff(&["demo", folder.to_str().unwrap()]).success();
    for told in [
        "field.unfilled",
        "(exit 3)",
        "7.4 reviewer-agent → fixer-agent: pending",
        "statements: passed commits_added",
        "7.8 closer-agent → workflow-complete: completed",
        "issue 7 is completed: nothing can be added to it",
        "the ledger is sound: 16 commits, 8 handoffs",
    ] {
        assert!(ran.stdout.contains(told), "{told}:\n{}", ran.stdout);
    }
    let deleting = format!("\nDelete it with: rm -r {}\n", folder.display());
    assert!(ran.stdout.ends_with(&deleting), "{}", ran.stdout);
    env.git(&folder, &["fsck", "--strict"]);
    let merge = env.git(&folder, &["log", "-1", "--format=%s", "main"]);
    assert_eq!(merge.trim(), "Merge pull request #8");
    assert_eq!(env.git(&folder, &["status", "--porcelain"]), "");
    demo_reads_like_a_story(&env, &folder);
    // Nothing there is overwritten.
    env.handoff(&["demo", folder.to_str().unwrap()]).exits(2);
    let json = env.handoff(&["demo", "--json"]).success().json();
    let made = Path::new(json["data"]["folder"].as_str().unwrap()).to_owned();
    assert!(made.join(".git").is_dir());
    fs::remove_dir_all(made).unwrap();
}

/// What the demo records is what somebody would write, at the pace of an afternoon.
fn demo_reads_like_a_story(env: &TestEnvironment, folder: &Path) {
    let subjects = ["log", "--reverse", "--format=%an: %s", "handoffs"];
    let subjects = env.git(folder, &subjects);
    let subjects = subjects.lines().filter(|line| !line.contains(" claimed, "));
    insta::assert_snapshot!(subjects.collect::<Vec<_>>().join("\n"), @"
    Demo: Start the ledger
    issue-manager: 7.1 sent to prep-agent: Print a title as a slug that fits into a web address
    prep-agent: 7.2 sent to implementer-agent: Titles become slugs
    implementer-agent: 7.3 sent to reviewer-agent: slug.sh joins the words of a title by dashes, in lower case
    reviewer-agent: 7.4 sent to fixer-agent: critical=1, important=0, suggestion=0
    fixer-agent: 7.5 sent to reviewer-agent: Titles become slugs
    reviewer-agent: 7.6 sent to validator-agent: Punctuation is gone from slugs, and a test covers two words
    validator-agent: 7.7 sent to closer-agent: Titles become slugs
    closer-agent: 7.8 sent to workflow-complete: slug.sh prints titles as slugs
    ");
    let at = folder.to_str().unwrap();
    let list = env.handoff(&["-C", at, "list", "--json"]).success().json();
    let handoffs = list["data"]["handoffs"].as_array().unwrap();
    assert_eq!(handoffs.len(), 8);
    for handoff in handoffs {
        let summary = handoff["summary"].as_str().unwrap();
        assert!(is_sentence(summary), "{handoff}");
        assert_eq!(handoff["title"], "Titles become slugs");
    }
    let status = env.handoff(&["-C", at, "status", "7"]).success().stdout;
    let found = status.lines().find(|line| line.contains("- F1")).unwrap();
    assert_eq!(
        found.trim(),
        "- F1 (critical, slug.sh:3): Punctuation ends up in the slug; answered by 7.5: \
         What is no letter or digit becomes one dash; resolved by 7.6"
    );
    // Nothing is open: the next command opens an issue.
    let here = env.handoff(&["-C", at]).success().stdout;
    assert!(
        here.contains(": git handoff send --issue N --to "),
        "{here}"
    );
    let log = env.handoff(&["-C", at, "log", "7"]).success().stdout;
    assert!(!log.contains(" 0s "), "{log}");
}

/// Whether a summary is at least a word of letters, beginning with a capital or a file's name.
fn is_sentence(text: &str) -> bool {
    let words = text
        .split(' ')
        .filter(|word| word.chars().all(char::is_alphabetic));
    let is_path = |word: &str| word.contains(':');
    words.count() > 0 && !text.split(' ').any(is_path)
}

#[test]
fn the_quick_demo_ends_with_one_verified_handoff() {
    let env = TestEnvironment::new();
    let folder = env.root().join("tour");
    let tour = folder.to_str().unwrap();
    env.handoff(&["demo", "--quick", tour])
        .success()
        .says("7.1 issue-manager → prep-agent: in_progress")
        .says("the ledger is sound: 3 commits, 1 handoff");
    let verified = env.handoff(&["-C", tour, "verify", "--json"]).success();
    assert_eq!(verified.json()["data"]["handoffs"], 1);
}

#[test]
fn the_version_says_which_build_it_is() {
    let env = TestEnvironment::new();
    let short = env.handoff(&["--version"]).success().stdout;
    let long = env.handoff(&["--version", "--verbose"]).success().stdout;
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines[0], short.trim());
    let named = |name: &str| {
        let mut values = lines.iter().filter_map(|line| line.split_once(": "));
        values.find(|(own, _)| *own == name).unwrap().1
    };
    assert!(!named("commit").is_empty());
    assert!(
        named("target").starts_with(std::env::consts::ARCH),
        "{long}"
    );
    assert!(named("program").ends_with("git-handoff"), "{long}");
    assert_eq!(named("installed by"), "unknown");
    let profile = Path::new(named("program")).parent().unwrap();
    assert_eq!(profile.file_name().unwrap(), named("profile"));
    env.handoff(&["--verbose"]).exits(2);
}

#[test]
fn the_hook_refuses_what_is_staged_and_incomplete() {
    let env = TestEnvironment::with_repository();
    let hook = env.repo().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/pre-commit");
    fs::copy(script, &hook).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let folder = env.repo().join("handoffs/a b");
    fs::create_dir_all(&folder).unwrap();
    let commit = || {
        let mut command = env.command("git");
        command
            .args(["commit", "-q", "-m", "Contracts"])
            .output()
            .unwrap()
    };
    fs::write(folder.join("one.xml"), opening(87)).unwrap();
    fs::write(env.repo().join("notes.xml"), "<notes/>").unwrap();
    env.git(&env.repo(), &["add", "."]);
    assert!(commit().status.success());
    // What is staged counts, not what the file says by now.
    fs::write(
        folder.join("two.xml"),
        "<handoff><from>prep-agent</from></handoff>",
    )
    .unwrap();
    env.git(&env.repo(), &["add", "."]);
    fs::write(folder.join("two.xml"), opening(88)).unwrap();
    let refused = commit();
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    for told in ["field.missing", "handoffs/a b/two.xml"] {
        assert!(said.contains(told), "{said}");
    }
    env.git(&env.repo(), &["add", "."]);
    assert!(commit().status.success());
}

#[test]
fn the_hook_knows_the_contracts_of_every_protocol() {
    let env = TestEnvironment::with_repository();
    let hook = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/pre-commit");
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let folder = env.repo().join("handoffs");
    fs::create_dir_all(&folder).unwrap();
    let staged = |path: &Path| {
        fs::copy(path, folder.join("contract.json")).unwrap();
        env.git(&env.repo(), &["add", "."]);
        let output = env.command("sh").arg(&hook).output().unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for (valid, invalid) in [
        (
            "issue-to-pr/valid/error.json",
            "issue-to-pr/invalid/bad-merge-status.json",
        ),
        (
            "orchestrator-specialist/valid/request.json",
            "orchestrator-specialist/invalid/missing-priority.json",
        ),
        (
            "task-breakdown/valid/planning-to-execution.json",
            "task-breakdown/invalid/missing-data.json",
        ),
        (
            "delegation/valid/response.json",
            "delegation/invalid/bad-status.json",
        ),
        (
            "directive/valid/handoff.json",
            "directive/invalid/missing-context-summary.json",
        ),
    ] {
        let (passed, said) = staged(&samples.join(valid));
        assert!(passed, "{valid}: {said}");
        let (passed, said) = staged(&samples.join(invalid));
        assert!(!passed, "{invalid}: {said}");
        // Notes and gates stand beside the fault itself.
        let fault = said.matches("handoffs/contract.json field.").count();
        assert_eq!(fault, 1, "{said}");
    }
}

#[test]
fn there_is_a_manual_page_for_each_command_and_completions_for_each_shell() {
    let env = TestEnvironment::new();
    let folder = env.root().join("man1");
    env.handoff(&["man", "--dir", folder.to_str().unwrap()])
        .success();
    let page = fs::read_to_string(folder.join("git-handoff.1")).unwrap();
    assert_eq!(env.handoff(&["man"]).success().stdout, page);
    for command in git_handoff::command().get_subcommands() {
        let name = command.get_name();
        let page = fs::read_to_string(folder.join(format!("git-handoff-{name}.1"))).unwrap();
        assert!(
            page.contains(".SH NAME") && page.contains("xample"),
            "{name}: {page}"
        );
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = env.handoff(&["completions", shell]).success().stdout;
        assert!(
            script.contains("git-handoff") && script.contains("claim"),
            "{shell}"
        );
    }
}

/// What bash completes for these words, called as git's own completion calls it for `git handoff`.
fn completed_by_git(env: &TestEnvironment, words: &[&str], index: &str) -> String {
    let script = env.root().join("completions.bash");
    let text = env.handoff(&["completions", "bash"]).success().stdout;
    fs::write(&script, text).unwrap();
    let call = r#". "$0"; words=("${@:2}"); cword=$(($# - 2)); cur=${words[cword]}; prev=${words[cword-1]}
        [[ -z $1 ]] || __git_cmd_idx=$1; _git_handoff; echo "${COMPREPLY[*]}""#;
    let ran = std::process::Command::new("bash")
        .args(["-c", call, script.to_str().unwrap(), index])
        .args(words)
        .output()
        .unwrap();
    assert!(ran.stderr.is_empty(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

#[test]
fn git_completes_the_command_and_what_is_after_it() {
    let env = TestEnvironment::new();
    for (words, index, completed) in [
        (&["git", "handoff", "cla"][..], "1", "claim"),
        (&["git", "-C", "handoff", "handoff", "cla"], "3", "claim"),
        (&["git", "handoff", "sync", "--set"], "1", "--set-aside"),
        // git before 2.31, and an alias of it.
        (&["git", "--bare", "handoff", "cla"], "", "claim"),
        (&["git", "ho", "sync", "--set"], "1", "--set-aside"),
    ] {
        assert_eq!(completed_by_git(&env, words, index), completed, "{words:?}");
    }
}
