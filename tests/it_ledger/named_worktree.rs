//! A worktree that the environment names, whatever its own `.git` file says, and the programs that a
//! repository's configuration names, which do not run.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use test_support::failure::{AGENT, held, restore};
use test_support::files::{chmod, write};
use test_support::{Ran, TestEnvironment};

/// A ledger whose handoff 87.1 is held, and a linked worktree.
struct Field {
    env: TestEnvironment,
    worktree: PathBuf,
}

impl Field {
    fn new() -> Self {
        let env = held();
        write(&env.repo().join("kept.txt"), "kept\n");
        env.git(&env.repo(), &["add", "-A"]);
        env.git(&env.repo(), &["commit", "-q", "-m", "kept"]);
        let worktree = env.root().join("worktree");
        let path = worktree.to_str().unwrap();
        let words = ["worktree", "add", "-q", "-b", "issue-87", path];
        env.git(&env.repo(), &words);
        write(&worktree.join("kept.txt"), "changed\n");
        write(&worktree.join("new/file.txt"), "new\n");
        write(&env.repo().join("of-main.txt"), "not the agent's\n");
        Self { env, worktree }
    }

    /// Makes the worktree's own `.git` lead elsewhere.
    fn lead_to(&self, git_dir: &Path) {
        let link = format!("gitdir: {}\n", git_dir.display());
        fs::write(self.worktree.join(".git"), link).unwrap();
    }

    /// Runs the program in a folder, with the git directory and the working tree in the environment.
    fn run(&self, folder: &Path, args: &[&str], input: Option<&str>) -> Ran {
        let mut command = self.env.program(args);
        command
            .current_dir(folder)
            .env("GIT_DIR", self.env.repo().join(".git/worktrees/worktree"))
            .env("GIT_WORK_TREE", &self.worktree);
        self.env.run(command, args, input.map(str::as_bytes))
    }

    fn fail(&self, folder: &Path) -> Ran {
        let args = ["fail", "87.1", "--as", AGENT, "--message", "x"];
        let args = [&args[..], &["--snapshot", "--worker", "repo"]].concat();
        self.run(folder, &args, None)
    }

    /// The index, HEAD, and files of the user's own working tree.
    fn users(&self) -> Vec<Vec<u8>> {
        let repo = self.env.repo();
        let files = [".git/index", ".git/HEAD", "kept.txt", "of-main.txt"];
        let read = |file: &&str| fs::read(repo.join(file)).unwrap();
        files.iter().map(read).collect()
    }

    /// Makes every program that a repository can name leave a mark.
    fn arm(&self, git_dir: &Path) -> PathBuf {
        let mark = self.env.root().join("ran");
        let script = self.env.root().join("program");
        let text = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", mark.display());
        write(&script, &text);
        chmod(&script, 0o755);
        for hook in [
            "post-checkout",
            "post-index-change",
            "reference-transaction",
            "pre-auto-gc",
            "fsmonitor-watchman",
            "pre-commit",
            "pre-push",
        ] {
            let path = git_dir.join("hooks").join(hook);
            write(&path, &text);
            chmod(&path, 0o755);
        }
        let program = script.to_str().unwrap();
        let mut config = fs::read_to_string(git_dir.join("config")).unwrap();
        config += &format!(
            "[core]\n\tfsmonitor = {program}\n\tpager = {program}\n\teditor = {program}\n\
             [filter \"evil\"]\n\tclean = {program}\n\tsmudge = {program}\n\trequired = true\n\
             [filter \"a=b\"]\n\tprocess = {program}\n\
             [diff]\n\texternal = {program}\n[diff \"evil\"]\n\ttextconv = {program}\n\
             [alias]\n\tupdate-index = !{program}\n\tls-files = !{program}\n\
             [gc]\n\tauto = 1\n"
        );
        fs::write(git_dir.join("config"), config).unwrap();
        mark
    }
}

const ATTRIBUTES: &str = "*.txt filter=evil diff=evil\n";

#[test]
fn the_named_worktree_is_read_and_not_the_one_that_its_git_file_leads_to() {
    let field = Field::new();
    field.lead_to(&field.env.repo().join(".git"));
    let before = field.users();
    let folders = [
        field.worktree.join("new"),
        field.env.repo(),
        field.env.root().to_owned(),
    ];
    for (i, folder) in folders.iter().enumerate() {
        let id = format!("87.{}", i + 1);
        let opening = ["claim", "87.1", "--as", AGENT, "--worker", "repo", "--json"];
        let claimed = field.run(folder, &opening, None).success().json();
        assert_eq!(claimed["data"]["handoff"]["id"], "87.1", "{id}");
        let prepared = ["new", "--issue", "87", "--to", "implementer-agent"];
        let prepared = [&prepared[..], &["--as", AGENT]].concat();
        let draft = field.run(folder, &prepared, None).success();
        let worktree = field.worktree.canonicalize().unwrap();
        assert!(
            draft.stdout.contains(worktree.to_str().unwrap()),
            "{}",
            draft.shown
        );
        assert!(draft.stdout.contains("issue-87"), "{}", draft.shown);
    }
    field.fail(&folders[2]).success();
    assert_eq!(field.users(), before);
    let restored = restore(&field.env, "restored");
    let read = |file: &str| fs::read_to_string(restored.join(file)).unwrap();
    assert_eq!(read("kept.txt"), "changed\n");
    assert_eq!(read("new/file.txt"), "new\n");
    assert!(!restored.join("of-main.txt").exists());
    assert_eq!(field.users(), before);
    field.env.assert_sound();
}

#[test]
fn no_program_runs_that_a_repository_names() {
    let field = Field::new();
    let hostile = field.env.root().join("hostile");
    field.env.git(field.env.root(), &["init", "-q", "hostile"]);
    write(&hostile.join("theirs.txt"), "theirs\n");
    let before = field.users();
    field.arm(&hostile.join(".git"));
    let mark = field.arm(&field.env.repo().join(".git"));
    write(&field.worktree.join(".gitattributes"), ATTRIBUTES);
    field.lead_to(&hostile.join(".git"));
    field.fail(&field.worktree).success();
    let restored = field.env.root().join("restored");
    let args = ["restore", "87.1", "--worktree", restored.to_str().unwrap()];
    field.run(field.env.root(), &args, None).success();
    field
        .env
        .handoff(&["retry", "87.1", "--as", "orchestrator"])
        .success();
    let args = ["claim", "87.1", "--as", AGENT, "--worker", "repo"];
    field.run(&field.worktree, &args, None).success();
    let ran = fs::read_to_string(&mark).unwrap_or_default();
    assert_eq!(ran, "", "a program of a repository ran");
    assert_eq!(field.users(), before);
    let read = |file: &str| fs::read_to_string(restored.join(file)).unwrap();
    assert_eq!(read("kept.txt"), "changed\n");
    assert!(!restored.join("theirs.txt").exists());
}

#[test]
fn a_restored_worktree_runs_no_filter_that_the_repository_names() {
    let field = Field::new();
    write(&field.env.repo().join(".gitattributes"), ATTRIBUTES);
    field.env.git(&field.env.repo(), &["add", ".gitattributes"]);
    field
        .env
        .git(&field.env.repo(), &["commit", "-q", "-m", "attributes"]);
    field.env.git(&field.worktree, &["stash", "-q", "-u"]);
    field.env.git(&field.worktree, &["merge", "-q", "main"]);
    let mark = field.arm(&field.env.repo().join(".git"));
    write(&field.worktree.join("new.txt"), "new\n");
    field.fail(&field.worktree).success();
    let restored = restore(&field.env, "restored");
    assert_eq!(fs::read_to_string(&mark).unwrap_or_default(), "");
    let kept = fs::read_to_string(restored.join("kept.txt")).unwrap();
    assert_eq!(
        (&*kept, restored.join("new.txt").exists()),
        ("kept\n", true)
    );
}

#[test]
fn a_working_tree_may_be_named_by_a_relative_path() {
    let field = Field::new();
    let args = ["claim", "87.1", "--as", AGENT, "--worker", "repo", "--json"];
    let mut command = field.env.program(&args);
    command
        .current_dir(field.worktree.join("new"))
        .env("GIT_DIR", field.env.repo().join(".git/worktrees/worktree"))
        .env("GIT_WORK_TREE", "..");
    let claimed = field.env.run(command, &args, None).success().json();
    assert_eq!(claimed["data"]["work"]["base"], json!("main"));
    let args = ["fail", "87.1", "--as", AGENT, "--message", "x"];
    let args = [&args[..], &["--snapshot", "--worker", "repo"]].concat();
    let mut command = field.env.program(&args);
    command
        .current_dir(field.worktree.join("new"))
        .env("GIT_DIR", field.env.repo().join(".git/worktrees/worktree"))
        .env("GIT_WORK_TREE", "..");
    field.env.run(command, &args, None).success();
    let restored = restore(&field.env, "restored");
    assert!(restored.join("new/file.txt").exists());
}
