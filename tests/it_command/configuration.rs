//! Settings: what git takes, the program takes, wherever it is set.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;

use test_support::TestEnvironment;
use test_support::contracts::opening;

/// Git's options and the environment of a command.
#[derive(Clone, Copy, Default)]
struct Given<'a> {
    options: &'a [&'a str],
    variables: &'a [(&'a str, &'a str)],
}

/// Runs git in a folder, with more arguments; what it prints, and whether it succeeds.
fn git(env: &TestEnvironment, dir: &Path, given: Given<'_>, args: &[&str]) -> (bool, String) {
    let mut command = env.command("git");
    command.current_dir(dir).args(given.options).args(args);
    command.envs(given.variables.iter().copied());
    let output = command.output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(printed).unwrap())
}

/// Fails unless a step is recorded for whom git would take as committer, which is Bot or is not.
fn records(env: &TestEnvironment, dir: &Path, given: Given<'_>, is_bot: bool) {
    static ISSUES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    let issue = ISSUES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let contract = env.file("contract.xml", opening(issue));
    let (_, ident) = git(env, dir, given, &["var", "GIT_COMMITTER_IDENT"]);
    let (sent, printed) = git(env, dir, given, &["handoff", "send", &contract]);
    assert!(sent, "{:?}: {printed}", given.options);
    let tip = env.git(
        &env.repo(),
        &["log", "-1", "--format=%cn <%ce> ", "handoffs"],
    );
    let wanted = ident.rsplit_once("> ").unwrap().0;
    assert_eq!(
        tip.trim_end(),
        format!("{wanted}>"),
        "{:?}",
        given.variables
    );
    assert_eq!(wanted.starts_with("Bot <"), is_bot, "{wanted}");
}

const NOTHING: Given<'_> = Given {
    options: &[],
    variables: &[],
};

/// Makes the user's own name Bot in a file, and returns its path.
fn bot(env: &TestEnvironment) -> String {
    env.file("bot", "[user]\n\tname = Bot\n\temail = bot@example.com\n")
}

#[test]
fn settings_of_the_environment_and_of_the_command_line_count() {
    let env = TestEnvironment::with_ledger();
    let (repo, file) = (env.repo(), bot(&env));
    let included = format!("include.path={file}");
    for options in [
        &["-c", "user.name=Bot", "-c", "user.email=it's \"odd\"@x"][..],
        &["-c", "committer.name=Bot", "-c", "user.name=Jay"],
        &["-c", &included],
    ] {
        records(&env, &repo, Given { options, ..NOTHING }, true);
    }
    for variables in [
        &[
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "User.Name"),
            ("GIT_CONFIG_VALUE_0", "Jay"),
            ("GIT_CONFIG_KEY_1", "user.name"),
            ("GIT_CONFIG_VALUE_1", "Bot"),
        ][..],
        &[("GIT_CONFIG_GLOBAL", &file)],
        &[
            ("GIT_CONFIG_SYSTEM", &file),
            ("GIT_CONFIG_NOSYSTEM", "no"),
            ("GIT_CONFIG_GLOBAL", ""),
        ],
        &[("GIT_COMMITTER_NAME", "Bot"), ("GIT_CONFIG_COUNT", "0")],
        &[
            ("GIT_COMMITTER_NAME", "Bot"),
            ("GIT_COMMITTER_DATE", "Wed Mar 4 06:06:07 2026 +0100"),
        ],
    ] {
        records(
            &env,
            &repo,
            Given {
                variables,
                ..NOTHING
            },
            true,
        );
    }
    let unread = [("GIT_CONFIG_SYSTEM", &*file)];
    records(
        &env,
        &repo,
        Given {
            variables: &unread,
            ..NOTHING
        },
        false,
    );
    // The program's own settings too.
    let options = &["-c", "handoff.agent=prep-agent"];
    let (claimed, said) = git(
        &env,
        &repo,
        Given { options, ..NOTHING },
        &["handoff", "claim", "--next"],
    );
    assert!(claimed, "{said}");
    let options = &["-c", "handoff.branch=elsewhere"];
    let (found, said) = git(
        &env,
        &repo,
        Given { options, ..NOTHING },
        &["handoff", "status"],
    );
    assert!(!found && said.contains("no branch elsewhere"), "{said}");
    let variables = &[("GIT_CONFIG_PARAMETERS", "'nonsense")];
    let (found, said) = git(
        &env,
        &repo,
        Given {
            variables,
            ..NOTHING
        },
        &["--no-pager", "handoff", "status"],
    );
    assert!(!found && said.contains("GIT_CONFIG_PARAMETERS"), "{said}");
    let given = Given {
        options: &["--namespace=elsewhere"],
        ..NOTHING
    };
    records(&env, &repo, given, false);
    // What is written goes to the repository's own file.
    let (made, said) = git(
        &env,
        &repo,
        Given {
            options: &["-c", "a.b=c"],
            ..NOTHING
        },
        &["handoff", "init", "--branch", "second"],
    );
    assert!(made, "{said}");
    assert_eq!(
        env.git(&repo, &["config", "--local", "handoff.branch"]),
        "second\n"
    );
    assert!(
        !fs::read_to_string(repo.join(".git/config"))
            .unwrap()
            .contains("[a]")
    );
}

#[test]
fn the_users_second_file_counts_where_git_reads_it() {
    let env = TestEnvironment::with_ledger();
    let (repo, file) = (env.repo(), bot(&env));
    let folder = env.root().join("home/.config/git");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(&file, folder.join("config")).unwrap();
    records(&env, &repo, NOTHING, false);
    let own = [("GIT_CONFIG_GLOBAL", "")];
    let named = [
        ("GIT_COMMITTER_NAME", "Jay"),
        ("GIT_COMMITTER_EMAIL", "j@x"),
        own[0],
    ];
    records(
        &env,
        &repo,
        Given {
            variables: &named,
            ..NOTHING
        },
        false,
    );
    let mut command = env.command("git");
    command
        .env_remove("GIT_CONFIG_GLOBAL")
        .args(["handoff", "send", "-"]);
    fs::remove_file(env.root().join("home/.gitconfig")).unwrap();
    env.run(command, &["send", "-"], Some(opening(9).as_bytes()))
        .success();
    let tip = env.git(&repo, &["log", "-1", "--format=%cn", "handoffs"]);
    assert_eq!(tip, "Bot\n");
}

#[test]
fn includes_count_on_gits_conditions() {
    let env = TestEnvironment::with_ledger();
    let (repo, file) = (env.repo(), bot(&env));
    fs::copy(&file, env.root().join("home/bot")).unwrap();
    fs::copy(&file, repo.join(".git/bot")).unwrap();
    let link = env.root().join("link");
    symlink(&repo, &link).unwrap();
    let root = env.root().to_str().unwrap();
    let own = |key: &str, value: &str| env.git(&repo, &["config", "--global", key, value]);
    let kept = fs::read_to_string(env.root().join("home/.gitconfig")).unwrap();
    for (condition, is_met) in [
        (format!("includeIf.gitdir:{root}/repo/"), true),
        (format!("includeIf.gitdir:{root}/REPO/"), false),
        (format!("includeIf.gitdir/i:{root}/REPO/"), true),
        ("includeIf.gitdir:repo/".to_owned(), true),
        ("includeIf.gitdir:~/".to_owned(), false),
        ("includeIf.onbranch:main".to_owned(), true),
        ("includeIf.onbranch:m*/".to_owned(), false),
        (
            "includeIf.hasconfig:remote.*.url:https://example.com/**".to_owned(),
            false,
        ),
        ("include".to_owned(), true),
    ] {
        own(&format!("{condition}.path"), "~/bot");
        records(&env, &repo, NOTHING, is_met);
        fs::write(env.root().join("home/.gitconfig"), &kept).unwrap();
    }
    // By the way in which the folder is named, and with the home folder behind a link.
    let variables = &[("PWD", link.to_str().unwrap())];
    own(&format!("includeIf.gitdir:{root}/link/.path"), &file);
    records(
        &env,
        &link,
        Given {
            variables,
            ..NOTHING
        },
        true,
    );
    records(&env, &repo, NOTHING, false);
    fs::write(env.root().join("home/.gitconfig"), &kept).unwrap();
    let variables = &[("HOME", link.to_str().unwrap())];
    own("includeIf.gitdir:~/.path", &file);
    records(
        &env,
        &repo,
        Given {
            variables,
            ..NOTHING
        },
        true,
    );
    fs::write(env.root().join("home/.gitconfig"), &kept).unwrap();
    // Without a branch, no condition on one is met.
    own("includeIf.onbranch:**.path", &file);
    env.git(&repo, &["checkout", "-q", "--detach"]);
    records(&env, &repo, NOTHING, false);
    env.git(&repo, &["checkout", "-q", "main"]);
    fs::write(env.root().join("home/.gitconfig"), &kept).unwrap();
    env.git(&repo, &["config", "include.path", "bot"]);
    records(&env, &repo, NOTHING, true);
    env.git(&repo, &["config", "--unset", "include.path"]);
    // In one worktree only.
    env.git(&repo, &["config", "extensions.worktreeConfig", "true"]);
    env.git(&repo, &["worktree", "add", "-q", "../beside"]);
    let beside = env.root().join("beside");
    env.git(&beside, &["config", "--worktree", "user.name", "Bot"]);
    records(&env, &beside, NOTHING, true);
    records(&env, &repo, NOTHING, false);
    env.assert_sound();
}

#[test]
fn whose_repository_is_trusted_is_gits_decision() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(1)).success();
    let repo = env.repo();
    // Only root can give a file away.
    if chown(&repo, Some(65534), Some(65534)).is_err() {
        return;
    }
    chown(repo.join(".git"), Some(65534), Some(65534)).unwrap();
    let home = env.root().join("home/.gitconfig");
    let kept = fs::read_to_string(&home).unwrap();
    let (path, below) = (
        repo.to_str().unwrap(),
        format!("{}/*", env.root().display()),
    );
    let mut trusted = 0;
    for (global, by_environment) in [
        (None, None),
        (None, Some("*")),
        (None, Some(path)),
        (None, Some(&*below)),
        (None, Some("/elsewhere/*")),
        (Some("*"), None),
        (Some(path), None),
        (Some(&below), None),
        (Some("/elsewhere"), None),
        (Some("*"), Some("")),
    ] {
        fs::write(&home, &kept).unwrap();
        if let Some(value) = global {
            env.git(env.root(), &["config", "--global", "safe.directory", value]);
        }
        let option = by_environment.map(|value| format!("safe.directory={value}"));
        let options: Vec<&str> = option.iter().flat_map(|value| ["-c", value]).collect();
        let variables: Vec<(&str, &str)> = by_environment
            .iter()
            .flat_map(|value| {
                [
                    ("GIT_CONFIG_COUNT", "1"),
                    ("GIT_CONFIG_KEY_0", "safe.directory"),
                    ("GIT_CONFIG_VALUE_0", value),
                ]
            })
            .collect();
        for given in [
            Given {
                options: &options,
                ..NOTHING
            },
            Given {
                variables: &variables,
                ..NOTHING
            },
        ] {
            let (is_trusted, _) = git(&env, &repo, given, &["status"]);
            let (reads, said) = git(&env, &repo, given, &["handoff", "status"]);
            assert_eq!(reads, is_trusted, "{global:?} {by_environment:?}: {said}");
            let (audits, said) = git(&env, &repo, given, &["handoff", "verify"]);
            assert_eq!(audits, is_trusted, "{global:?} {by_environment:?}: {said}");
            trusted += u32::from(is_trusted);
        }
    }
    assert!((8..16).contains(&trusted), "{trusted}");
    fs::write(&home, &kept).unwrap();
    let variables = &[("GIT_DIR", ".git")];
    let (reads, said) = git(
        &env,
        &repo,
        Given {
            variables,
            ..NOTHING
        },
        &["handoff", "status"],
    );
    assert!(reads, "{said}");
    env.handoff(&["status"])
        .exits(9)
        .says("the repository belongs to another user");
}

#[test]
fn a_bare_clone_that_does_not_share_its_ledger_says_so() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(1)).success();
    let claim = ["claim", "--next", "--as", "prep-agent"];
    for (option, branches) in [("--bare", "bare"), ("--mirror", "mirror")] {
        let clone = env.root().join(branches);
        let (from, to) = (env.repo(), clone.to_str().unwrap());
        env.git(
            env.root(),
            &["clone", "-q", option, from.to_str().unwrap(), to],
        );
        env.git(
            &clone,
            &[
                "worktree",
                "add",
                "-q",
                &format!("../{branches}-tree"),
                "main",
            ],
        );
        let tree = env.root().join(format!("{branches}-tree"));
        env.handoff_in(&tree, &claim)
            .success()
            .says("what is recorded stays in this clone")
            .says("`git handoff init --remote origin` shares the ledger");
    }
    let claimed = env.handoff(&claim).success();
    assert!(
        !claimed.shown.contains("stays in this clone"),
        "{}",
        claimed.shown
    );
}
