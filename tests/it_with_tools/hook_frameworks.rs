//! Hook managers as they are installed from their registries, with the lines of docs/hooks.md,
//! beside another hook that must still run.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use test_support::TestEnvironment;
use test_support::contracts::opening;
use test_support::files::script;
use test_support::stand_in::StandIn;
use test_support::tools::HOOK;

/// The blocks of code under a heading of docs/hooks.md.
fn snippets(heading: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/hooks.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once(&format!("\n### {heading}\n")).unwrap();
    let section = section.split("\n#").next().unwrap();
    let blocks = section.split("\n```").skip(1).step_by(2);
    blocks
        .map(|block| block.split_once('\n').unwrap().1.to_owned() + "\n")
        .collect()
}

/// A repository with a ledger, hooks of a manager, and another hook that keeps count.
struct Managed {
    env: TestEnvironment,
    stand_in: StandIn,
}

impl Managed {
    fn new() -> Self {
        let env = TestEnvironment::with_ledger();
        env.git(env.root(), &["init", "-q", "--bare", "server.git"]);
        env.git(&env.repo(), &["remote", "add", "origin", "../server.git"]);
        let stand_in = StandIn::new(&env);
        Self { env, stand_in }
    }

    /// The line that is the other hook, for an event.
    fn other(&self, event: &str) -> String {
        format!("echo {event} >>{}", self.env.root().join("other").display())
    }

    /// How often the other hook ran since the last time, by event.
    fn ran(&self) -> String {
        let path = self.env.root().join("other");
        let ran = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        ran.lines().collect::<Vec<_>>().join(" ")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.env.repo().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A command that finds the managers, and something else first where `first` says so.
    fn command(&self, program: &str, args: &[&str], first: Option<&Path>) -> Command {
        let mut command = self.env.command(program);
        let path = command.get_envs().find(|(name, _)| *name == "PATH");
        let path = path.and_then(|(_, value)| value).unwrap().to_owned();
        let managers = ["node_modules/.bin", "venv/bin"].map(|bin| HOOK.folder().join(bin));
        let folders = first.map(Path::to_owned).into_iter().chain(managers);
        let folders = folders.chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).unwrap());
        command.args(args);
        command
    }

    fn run(&self, program: &str, args: &[&str]) -> Output {
        self.command(program, args, None).output().unwrap()
    }

    #[track_caller]
    fn success(&self, program: &str, args: &[&str]) {
        let output = self.run(program, args);
        assert!(output.status.success(), "{program} {args:?}: {output:#?}");
    }

    /// What git said in a command that must fail.
    #[track_caller]
    fn refused(&self, args: &[&str]) -> String {
        let output = self.run("git", args);
        assert!(!output.status.success(), "{args:?}: {output:#?}");
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Takes a repository with the hooks in place through everything that they are there for.
    fn works(&self) {
        let env = &self.env;
        let repo = env.repo();
        env.git(&repo, &["add", "."]);
        env.git(&repo, &["commit", "-q", "--no-verify", "-m", "Hooks"]);
        self.ran();

        // Two contracts that are not complete: each finding of each.
        let commit = ["commit", "-m", "Contracts"];
        self.write("handoffs/87.xml", &opening(87));
        self.write(
            "handoffs/88.xml",
            "<handoff><from>prep-agent</from></handoff>",
        );
        self.write("handoffs/89.json", "{\"handoff\": {}}");
        env.git(&repo, &["add", "."]);
        // What is staged counts.
        self.write("handoffs/88.xml", &opening(88));
        let said = self.refused(&commit);
        for name in ["handoffs/88.xml", "handoffs/89.json"] {
            assert!(said.contains(name), "{said}");
        }
        assert!(!said.contains("handoffs/87.xml"), "{said}");
        let staged = env.git(&repo, &["show", ":handoffs/88.xml"]);
        let checked = env
            .handoff_with(&["check", "-", "--json"], staged)
            .exits(3)
            .json();
        let findings = checked["error"]["findings"].as_array().unwrap();
        assert!(!findings.is_empty());
        for finding in findings {
            let message = finding["message"].as_str().unwrap();
            assert!(said.contains(message), "{message} in {said}");
        }
        assert_eq!(self.ran(), "pre-commit");
        fs::remove_file(repo.join("handoffs/89.json")).unwrap();
        env.git(&repo, &["add", "."]);
        self.success("git", &commit);
        assert_eq!(self.ran(), "pre-commit commit-msg");

        // A ledger that is what it should be, and one with a file that no step writes.
        let push = ["push", "origin", "handoffs"];
        self.success("git", &push);
        assert_eq!(self.ran(), "pre-push");
        let tip = env.tip();
        let blob = env.git(&repo, &["rev-parse", "HEAD:README.md"]);
        let tree = env.git(&repo, &["ls-tree", "handoffs"]);
        let tree = format!("{tree}100644 blob {}\tstray\n", blob.trim());
        let mut command = env.command("git");
        command.args(["mktree"]);
        let tree = env.run(command, &[], Some(tree.as_bytes())).stdout;
        let args = ["commit-tree", tree.trim(), "-p", &tip, "-m", "By hand"];
        let stray = env.git(&repo, &args);
        let args = ["update-ref", "refs/heads/handoffs", stray.trim()];
        env.git(&repo, &args);
        let said = self.refused(&push);
        assert!(said.contains("stray"), "{said}");
        assert_eq!(self.ran(), "pre-push");
        let server = env.root().join("server.git");
        let there = env.git(&server, &["rev-parse", "refs/heads/handoffs"]);
        assert_eq!(there.trim(), tip);
        env.git(&repo, &["update-ref", "refs/heads/handoffs", &tip]);

        // What the program is given, to the word.
        let with_stand_in = |args: &[&str]| {
            let mut command = self.command("git", args, Some(&self.stand_in.folder));
            let output = command.output().unwrap();
            assert!(output.status.success(), "{output:#?}");
        };
        self.write("notes", "one\n");
        env.git(&repo, &["add", "."]);
        with_stand_in(&["commit", "-m", "Notes"]);
        assert_eq!(
            self.stand_in.called(),
            "hook pre-commit\nhook commit-msg .git/COMMIT_EDITMSG\n"
        );
        with_stand_in(&["push", "origin", "HEAD:refs/heads/new"]);
        assert_eq!(
            self.stand_in.called(),
            "hook pre-push origin ../server.git\n"
        );
        let head = env.git(&repo, &["rev-parse", "HEAD"]);
        let head = head.trim();
        // A framework may give the id of no commit with 40 digits whatever git does.
        let input = self.stand_in.input();
        assert_eq!(
            input.trim_end_matches(['0', '\n']),
            format!("HEAD {head} refs/heads/new ")
        );
        with_stand_in(&["commit", "--allow-empty", "-m", "Another"]);
        with_stand_in(&["push", "origin", "main:new"]);
        let next = env.git(&repo, &["rev-parse", "HEAD"]);
        let line = format!("refs/heads/main {} refs/heads/new {head}\n", next.trim());
        assert_eq!(self.stand_in.input(), line);
        self.ran();
        self.stand_in.called();
    }

    /// No command moves the ledger's branch to a commit that is not a ledger step.
    fn works_with_reference_transaction(&self) {
        let tip = self.env.tip();
        let said = self.refused(&["update-ref", "refs/heads/handoffs", "HEAD"]);
        assert!(said.contains("history.rewritten"), "{said}");
        assert_eq!(self.env.tip(), tip);
        self.success("git", &["branch", "another"]);
    }

    /// What calls the program, by hook, as `hooks status` says.
    fn by(&self) -> String {
        let data = self.env.data(&["hooks", "status"]);
        let hooks = data["hooks"].as_array().unwrap();
        let shown = hooks.iter().map(|hook| {
            let by = hook["by"].as_str().unwrap_or("-");
            format!("{} {by}\n", hook["hook"].as_str().unwrap())
        });
        shown.collect()
    }
}

#[test]
fn the_pre_commit_framework() {
    let managed = Managed::new();
    let env = &managed.env;
    // The project as the framework gets it: a repository with the file that says what there is.
    let project = env.root().join("project");
    // The framework fetches it into one with SHA-1, whatever the user's has.
    let init = ["init", "-q", "--object-format=sha1", "project"];
    env.git(env.root(), &init);
    let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join(".pre-commit-hooks.yaml");
    fs::copy(hooks, project.join(".pre-commit-hooks.yaml")).unwrap();
    env.git(&project, &["add", "."]);
    env.git(&project, &["commit", "-q", "-m", "Hooks"]);
    let revision = env.git(&project, &["rev-parse", "HEAD"]);
    let mut config = snippets("pre-commit").remove(0);
    config = config.replace("ADDRESS-OF-GIT-HANDOFF", project.to_str().unwrap());
    config = config.replace("REVISION", revision.trim());
    config += "  - repo: local\n    hooks:\n";
    for event in ["pre-commit", "commit-msg", "pre-push"] {
        let other = managed.other(event);
        config += &format!(
            "      - id: other-{event}\n        name: other\n        language: unsupported\n        \
             entry: sh -c '{other}'\n        stages: [{event}]\n        always_run: true\n        \
             pass_filenames: false\n"
        );
    }
    managed.write(".pre-commit-config.yaml", &config);
    managed.success("pre-commit", &["validate-config"]);
    managed.success(
        "pre-commit",
        &["validate-manifest", "../project/.pre-commit-hooks.yaml"],
    );
    managed.success("pre-commit", &["install", "--install-hooks"]);
    insta::assert_snapshot!(managed.by(), @"
    pre-commit pre-commit
    commit-msg pre-commit
    pre-push pre-commit
    reference-transaction -
    ");
    managed.works();

    // A hook of ours that is there first is run by the framework, with all of standard input.
    managed.success("pre-commit", &["uninstall", "-t", "pre-push"]);
    env.handoff(&["hooks", "install", "--files", "pre-push"])
        .success();
    managed.write(
        ".pre-commit-config.yaml",
        &config.replace("      - id: git-handoff-pre-push\n", ""),
    );
    managed.success("pre-commit", &["install", "-t", "pre-push"]);
    insta::assert_snapshot!(managed.by(), @"
    pre-commit pre-commit
    commit-msg pre-commit
    pre-push block
    reference-transaction -
    ");
    env.handoff(&["hooks", "install", "--files", "pre-push"])
        .success()
        .says("pre-push.legacy");
    env.git(&env.repo(), &["commit", "-q", "--no-verify", "-am", "New"]);
    let args = [
        "push",
        "origin",
        "HEAD:refs/heads/one",
        "HEAD:refs/heads/two",
    ];
    let mut command = managed.command("git", &args, Some(&managed.stand_in.folder));
    assert!(command.output().unwrap().status.success());
    assert_eq!(managed.stand_in.input().lines().count(), 2);
    assert_eq!(managed.ran(), "pre-push");
    env.handoff(&["hooks", "uninstall", "pre-push"]).success();
    assert!(!env.repo().join(".git/hooks/pre-push.legacy").exists());
}

#[test]
fn lefthook() {
    let managed = Managed::new();
    let env = &managed.env;
    // As it stands, and with another command under each hook.
    let mut config = snippets("lefthook").remove(0);
    for event in ["pre-commit", "commit-msg", "pre-push"] {
        let commands = format!("{event}:\n  commands:\n");
        let other = managed.other(event);
        let other =
            format!("    other:\n      run: {other}; cat >/dev/null\n      use_stdin: true\n");
        config = config.replace(&commands, &(commands.clone() + &other));
    }
    managed.write("lefthook.yml", &config);
    managed.success("lefthook", &["validate"]);
    managed.success("lefthook", &["install"]);
    insta::assert_snapshot!(managed.by(), @"
    pre-commit lefthook
    commit-msg lefthook
    pre-push lefthook
    reference-transaction -
    ");
    managed.works();

    // Beside it, the hook that it does not have; installing it again takes nothing away.
    env.handoff(&["hooks", "install", "--files"]).success();
    managed.success("lefthook", &["install", "--force"]);
    insta::assert_snapshot!(managed.by(), @"
    pre-commit lefthook
    commit-msg lefthook
    pre-push lefthook
    reference-transaction block
    ");
    managed.works_with_reference_transaction();
    // Without a line of ours there, a block in its file would be lost: refused.
    managed.write(
        "lefthook.yml",
        &config.replace("git-handoff hook pre-push", "true"),
    );
    let refused = env.handoff(&["hooks", "install", "--files"]).exits(9);
    insta::assert_snapshot!(env.filtered(&refused.stderr), @"
    error: nothing was changed: 1 hook is in the way
      [root]/repo/.git/hooks/pre-push hook.managed the file is lefthook's, which writes it anew and would drop a block in it
          have lefthook call `git handoff hook pre-push`: `git handoff help hooks.md` has the lines for lefthook.yml
    hint: see `git handoff explain hooks_refused`
    ");
}

#[test]
fn husky() {
    let managed = Managed::new();
    let env = &managed.env;
    managed.success("husky", &[]);
    let refused = env.handoff(&["hooks", "install", "--files"]).exits(9);
    insta::assert_snapshot!(env.filtered(&refused.stderr), @"
    error: nothing was changed: 4 hooks are in the way
      [root]/repo/.husky/_/pre-commit hook.managed the file is husky's, which writes it anew and would drop a block in it
          have husky call `git handoff hook pre-commit`: `git handoff help hooks.md` has the lines for .husky/pre-commit
      [root]/repo/.husky/_/commit-msg hook.managed the file is husky's, which writes it anew and would drop a block in it
          have husky call `git handoff hook commit-msg`: `git handoff help hooks.md` has the lines for .husky/commit-msg
      [root]/repo/.husky/_/pre-push hook.managed the file is husky's, which writes it anew and would drop a block in it
          have husky call `git handoff hook pre-push`: `git handoff help hooks.md` has the lines for .husky/pre-push
      [root]/repo/.husky/_/reference-transaction hook.elsewhere core.hooksPath is .husky/_ (file:[root]/repo/.git/config), so that hooks are in [root]/repo/.husky/_, which is not in this repository's git directory
          if that folder may be changed, say so with --into-hooks-path
    hint: see `git handoff explain hooks_refused`
    ");
    let events = ["pre-commit", "commit-msg", "pre-push"];
    for (event, line) in events.iter().zip(snippets("husky")) {
        let text = format!("{}\n{line}", managed.other(event));
        script(&env.repo().join(".husky").join(event), text);
    }
    insta::assert_snapshot!(managed.by(), @"
    pre-commit husky
    commit-msg husky
    pre-push husky
    reference-transaction -
    ");
    managed.works();

    env.handoff(&["hooks", "install", "--files", "--into-hooks-path"])
        .success();
    managed.success("husky", &[]);
    insta::assert_snapshot!(managed.by(), @"
    pre-commit husky
    commit-msg husky
    pre-push husky
    reference-transaction block
    ");
    managed.works_with_reference_transaction();
    let set = env.git(&env.repo(), &["config", "core.hooksPath"]);
    assert_eq!(set.trim(), ".husky/_");
}
