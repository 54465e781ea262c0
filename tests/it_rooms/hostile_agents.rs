//! Agents that work against their user: whatever one puts in the place of what the worker made, not a
//! byte of the user's own files, index, HEAD and branches changes, nothing that it names is run, and
//! the next attempt goes on.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use test_support::TestEnvironment;
use test_support::agents::{PREPARED, agent, once, opened, outcome, retry, work, work_as, worker};
use test_support::files::script;
use test_support::remote::{bare, served};

/// A ledger in which issue 87 waits for prep-agent, and a user in the middle of something: with staged
/// content that no file has, a changed file and one that git does not know.
fn user_at_work() -> TestEnvironment {
    let env = opened();
    let repo = env.repo();
    fs::write(repo.join("staged.txt"), "only staged\n").unwrap();
    env.git(&repo, &["add", "staged.txt"]);
    fs::remove_file(repo.join("staged.txt")).unwrap();
    fs::write(repo.join("notes.txt"), "mine\n").unwrap();
    fs::create_dir_all(env.root().join("theirs")).unwrap();
    fs::write(env.root().join("theirs/.bashrc"), "# mine\n").unwrap();
    env
}

/// Every byte that is the user's: the working tree, what is in `.git` but for objects, logs, what the
/// worker keeps there and the branches of ledger and issue; and the files beside the repository.
fn everything(env: &TestEnvironment) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(root: &Path, at: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(at).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap();
            let others = [
                ".git/objects",
                ".git/logs",
                ".git/handoff",
                ".git/worktrees",
                ".git/refs/heads/handoffs",
                ".git/refs/heads/handoff",
                ".git/refs/remotes",
                ".git/refs/handoff",
                // Refs in tables are asked for below.
                ".git/reftable",
            ];
            if others.iter().any(|other| name.ends_with(other)) {
                continue;
            }
            let found = fs::symlink_metadata(&path).unwrap();
            if found.is_dir() {
                walk(root, &path, all);
            } else if found.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                all.insert(path, target.to_string_lossy().into_owned().into_bytes());
            } else {
                all.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    let mut all = BTreeMap::new();
    for root in [env.repo(), env.root().join("theirs")] {
        walk(&root, &root, &mut all);
    }
    let words = [
        "-c",
        "core.fsmonitor=false",
        "for-each-ref",
        "refs/heads/main",
        "refs/tags",
    ];
    let refs = env.git(&env.repo(), &words) + &env.git(&env.repo(), &["symbolic-ref", "HEAD"]);
    all.insert(PathBuf::from("refs"), refs.into_bytes());
    all
}

/// Plays an agent that fails after this, and insists that nothing of the user's changed, that nothing
/// it named was run, and that an honest agent's next attempt hands on.
#[track_caller]
fn harms_nobody(text: &str) {
    let env = user_at_work();
    let evil = env.root().join("evil.sh");
    script(
        &evil,
        "#!/bin/sh\necho \"$0 $*\" >> \"$(dirname \"$0\")/ran\"\ncat\n",
    );
    let before = everything(&env);
    let ran = once(&env, &format!("{text}\nexit 3"));
    assert_eq!(outcome(&ran).0, "failed", "{}", ran.shown);
    let told = fs::read_to_string(env.root().join("ran"));
    assert!(told.is_err(), "it was run: {told:?}");
    let after = everything(&env);
    for (path, bytes) in &before {
        assert_eq!(
            after.get(path),
            Some(bytes),
            "{} after {text}",
            path.display()
        );
    }
    assert_eq!(before.len(), after.len(), "new: {:?}", after.keys());
    env.assert_sound();
    retry(&env);
    let ran = once(&env, &format!("git handoff send {PREPARED}"));
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    let after = everything(&env);
    assert!(
        before
            .iter()
            .all(|(path, bytes)| after.get(path) == Some(bytes))
    );
}

#[test]
fn a_worktree_that_names_the_main_repository_is_made_to_name_its_own_again() {
    harms_nobody("echo \"gitdir: $REPO/.git\" > .git; echo mine > README.md");
    harms_nobody("rm .git; ln -s \"$REPO/.git\" .git; echo x > new.txt");
    harms_nobody("d=$(git rev-parse --git-dir); echo ../../../elsewhere > $d/commondir");
}

#[test]
fn no_program_that_a_repository_in_its_place_names_is_run() {
    let own = "git init -q own; for key in core.fsmonitor core.sshCommand gpg.program gpg.ssh.program \
               filter.evil.clean filter.evil.smudge filter.evil.process diff.external core.pager; do\n\
               git -C own config $key $OUT/evil.sh; done\n\
               git -C own config core.hooksPath $OUT; git -C own config commit.gpgSign true\n\
               echo '* filter=evil diff=evil' > .gitattributes; echo x > x.txt\n";
    harms_nobody(&format!("{own}rm .git; mv own/.git .git"));
    // One within it, which git would ask for changes by running itself there.
    harms_nobody(&format!(
        "{own}mv own sub; echo s > sub/s; git -C sub -c core.fsmonitor=false -c core.hooksPath=/dev/null -c commit.gpgSign=false \
         commit -q --allow-empty -m s; git add sub 2> /dev/null; echo more > sub/more; rm -f $OUT/ran"
    ));
}

#[test]
fn a_folder_in_the_place_of_its_worktree_is_not_touched() {
    harms_nobody("d=$PWD; cd /; mv $d $OUT/moved; ln -s $REPO $d");
    harms_nobody("d=$PWD; cd /; mv $d $OUT/moved; mkdir $d; echo mine > $d/mine");
    harms_nobody("d=$PWD; cd /; rm -rf $d");
}

#[test]
fn what_it_leaves_is_read_without_following_links() {
    harms_nobody("rm -rf .git-handoff; ln -s $OUT/theirs .git-handoff");
    harms_nobody(
        "for name in contract usage.json blocked.md failed.md prompt.md .gitignore; do\n\
         ln -sf $OUT/theirs/.bashrc .git-handoff/$name; done; yes | head -c 200000",
    );
}

#[test]
fn a_run_on_a_branch_that_is_not_the_issues_moves_no_branch() {
    harms_nobody("git symbolic-ref HEAD refs/heads/main; echo x > evil.txt");
    harms_nobody("git symbolic-ref HEAD refs/heads/handoffs; echo x > evil.txt");
}

#[test]
fn filters_that_it_sets_in_the_repository_are_not_run_by_the_worker() {
    let env = user_at_work();
    let evil = env.root().join("evil.sh");
    script(
        &evil,
        "#!/bin/sh\ntr '\\0' ' ' < /proc/$PPID/cmdline >> \"$(dirname \"$0\")/ran\"\n[ $# -gt 0 ] || cat\n",
    );
    let text = format!(
        "git config filter.evil.clean $OUT/evil.sh; git config filter.evil.smudge $OUT/evil.sh\n\
         git config core.fsmonitor $OUT/evil.sh; git config core.hooksPath $OUT\n\
         for hook in post-checkout pre-push reference-transaction; do cp $OUT/evil.sh $OUT/$hook; done\n\
         echo '* filter=evil' > .gitattributes; echo x > x.txt\n\
         GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0=/dev/null \
         GIT_CONFIG_KEY_1=core.fsmonitor GIT_CONFIG_VALUE_1=false git handoff new {PREPARED} > .git-handoff/contract\n\
         rm -f $OUT/ran"
    );
    let roles = env.file(
        "roles.toml",
        format!(
            "[[role]]\nagent = \"prep-agent\"\ncommit = \"worker\"\ncommand = [\"{}\"]\n",
            env.root().join("agent.sh").display()
        ),
    );
    script(&env.root().join("agent.sh"), format!("#!/bin/sh\n{text}\n"));
    let ran = work(&env, &["--file", &roles, "--once", "--json"]);
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    let told = fs::read_to_string(env.root().join("ran"));
    assert!(told.is_err(), "it was run: {told:?}");
    let log = env.git(
        &env.repo(),
        &[
            "-c",
            "core.fsmonitor=false",
            "log",
            "--format=%an %s",
            "-1",
            "handoff/87",
        ],
    );
    assert!(log.starts_with("prep-agent "), "{log}");
    let files = env.git(&env.repo(), &["ls-tree", "--name-only", "handoff/87"]);
    assert!(
        files.contains("x.txt") && !files.contains(".git-handoff"),
        "{files}"
    );
}

#[test]
fn what_it_names_in_the_repositorys_configuration_is_not_run_for_a_push() {
    let env = to_code();
    let evil = env.root().join("evil.sh");
    script(
        &evil,
        "#!/bin/sh\necho \"$0 $*\" >> \"$(dirname \"$0\")/ran\"\nexit 1\n",
    );
    let set = "for key in core.sshCommand core.askPass gpg.program gpg.ssh.program credential.helper \
               remote.origin.uploadpack remote.origin.receivepack; do git config $key $OUT/evil.sh; done\n\
               git config protocol.ext.allow always; git config remote.origin.mirror true";
    // On its branch, then with the configuration changed, it leaves a contract.
    let text = format!(
        "set -e\necho good > a.sh; git add a.sh; git commit -q -m a\n{}\n{set}",
        CODED.replace("git handoff send --issue 7", "git handoff new --issue 7")
            + " > .git-handoff/contract"
    );
    let coder = agent(&env, &text);
    let ran = work_as(&env, "coder", &coder, &["--once"]);
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    let told = fs::read_to_string(env.root().join("ran"));
    assert!(told.is_err(), "it was run: {told:?}");
    let origin = served(&env).join("origin.git");
    let file = env.git(&origin, &["show", "handoff/7:a.sh"]);
    assert_eq!(file, "good\n");
    // What the next worker finds is what a person left there.
    let local = env.git(&env.repo(), &["config", "--local", "core.sshCommand"]);
    assert_eq!(Path::new(local.trim()), evil);
}

#[test]
fn what_it_hides_from_git_is_told() {
    let env = opened();
    let text = format!(
        "echo made > made.txt; echo seen > seen.txt\n\
         printf 'made.txt\\n' >> $(git rev-parse --git-common-dir)/info/exclude\n\
         git handoff new {PREPARED} > .git-handoff/contract"
    );
    let command = agent(&env, &text);
    let roles = env.file(
        "roles.toml",
        format!(
            "[[role]]\nagent = \"prep-agent\"\ncommit = \"worker\"\ncommand = [\"{}\"]\n",
            command.display()
        ),
    );
    let ran = work(&env, &["--file", &roles, "--once"]).success();
    ran.says("info/exclude has got new lines, and what they match is in no commit: \"made.txt\"");
    let files = env.git(&env.repo(), &["ls-tree", "-r", "--name-only", "handoff/87"]);
    assert!(
        files.contains("seen.txt") && !files.contains("made.txt"),
        "{files}"
    );
}

#[test]
fn no_remote_is_contacted_whose_address_it_changed() {
    let env = to_code();
    let own = env.root().join("own.git");
    env.git(env.root(), &["init", "-q", "--bare", own.to_str().unwrap()]);
    script(
        &own.join("hooks/pre-receive"),
        "#!/bin/sh\ntouch ../ran ran\n",
    );
    let at = env.git(&env.repo(), &["config", "remote.origin.url"]);
    let set = format!("git config url.{}.insteadOf {}", own.display(), at.trim());
    let text = format!(
        "set -e\n[ ! -e $OUT/again ] || set -- again\necho good > a.sh; git add a.sh; git commit -q -m a || true\n{}\n[ \"$1\" = again ] || {set}",
        CODED.replace("git handoff send", "git handoff new") + " > .git-handoff/contract"
    );
    let coder = agent(&env, &text);
    let ran = work_as(&env, "coder", &coder, &["--once"]);
    let (outcome_then, why) = outcome(&ran);
    assert_eq!(outcome_then, "left", "{}", ran.shown);
    let told = format!("url.{}.insteadof was changed in .git/config", own.display());
    assert!(why.contains(&told), "{why}");
    assert!(!own.join("ran").exists(), "its hook was run");
    // Set back, the next worker goes on with what was left.
    let key = format!("url.{}.insteadOf", own.display());
    env.git(&env.repo(), &["config", "--unset", &key]);
    fs::write(env.root().join("again"), "").unwrap();
    let ran = work_as(&env, "coder", &coder, &["--once"]);
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
}

#[test]
#[cfg(target_os = "linux")]
fn the_environment_of_the_worker_is_not_to_be_read() {
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;

    let env = user_at_work();
    let text = "cat /proc/$PPID/environ > $OUT/reaper.txt\n\
        worker=$(cut -d ' ' -f 4 /proc/$PPID/stat)\n\
        cat /proc/$worker/environ > $OUT/worker.txt 2> $OUT/why.txt\nexit 3";
    let agent = agent(&env, text);
    let args = [
        "--as",
        "prep-agent",
        "--once",
        "--json",
        "--",
        agent.to_str().unwrap(),
    ];
    let mut command = worker(&env, &args);
    command.env("GITHUB_TOKEN", "secret-1");
    // Root may read everything: here without its rights, as any other user.
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        let mut as_others = Command::new("setpriv");
        as_others
            .args(["--bounding-set=-all", "--inh-caps=-all"])
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(command.get_current_dir().unwrap())
            .env_clear()
            .envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
        command = as_others;
    }
    let ran = env.run(command, &args, None);
    assert_eq!(outcome(&ran).0, "failed", "{}", ran.shown);
    let seen = |name| fs::read_to_string(env.root().join(name)).unwrap();
    assert!(seen("reaper.txt").contains("PATH="));
    assert_eq!(seen("worker.txt"), "", "{}", ran.shown);
    assert!(seen("why.txt").contains("ermi"), "{}", seen("why.txt"));
}

#[test]
fn no_process_of_a_run_outlives_it() {
    let env = user_at_work();
    let name = format!("31337.{}", std::process::id());
    let hidden = [
        format!("env -i /bin/sleep {name} &"),
        format!("env -i setsid /bin/sleep {name} &"),
        format!(
            "(trap '' TERM HUP; env -i setsid sh -c 'trap \"\" TERM HUP; (/bin/sleep {name}) & wait' &) &"
        ),
    ];
    let ran = once(&env, &format!("{}\nsleep 0.2\nexit 3", hidden.join("\n")));
    assert_eq!(outcome(&ran).0, "failed", "{}", ran.shown);
    assert_eq!(living(&name), Vec::<String>::new());
}

/// The command lines that name this.
fn living(name: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines
        .filter(|line| line.contains(name) && !line.contains("git-handoff"))
        .collect()
}

#[test]
fn a_contract_chooses_no_branch_that_is_not_the_issues() {
    for branch in ["main", "release/1.0", "gh-pages"] {
        let env = user_at_work();
        let origin = bare(&env, "origin.git");
        let address = origin.to_str().unwrap();
        env.git(&env.repo(), &["remote", "add", "origin", address]);
        env.git(&env.repo(), &["branch", "-f", "release/1.0"]);
        env.git(&env.repo(), &["branch", "-f", "gh-pages"]);
        env.git(
            &env.repo(),
            &["push", "-q", "origin", "main", "release/1.0", "gh-pages"],
        );
        env.git(&env.repo(), &["switch", "-q", "-c", "idle"]);
        let sent = format!(
            "git handoff send {} --set workspace_path=$PWD",
            PREPARED.replace("$GIT_HANDOFF_BRANCH", branch)
        );
        let ran = once(&env, &sent);
        assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
        let at = |folder: &Path| env.git(folder, &["rev-parse", branch]);
        let before = (at(&env.repo()), at(&origin));
        let evil = agent(
            &env,
            "echo x > evil; git add evil; git commit -q -m evil; exit 3",
        );
        let ran = work_as(&env, "implementer-agent", &evil, &["--once"]);
        assert_eq!(outcome(&ran).0, "failed", "{branch}: {}", ran.shown);
        assert_eq!((at(&env.repo()), at(&origin)), before, "{branch}");
    }
}

#[test]
fn only_listed_variables_reach_an_agent() {
    let env = user_at_work();
    let agent = env.root().join("agent.sh");
    script(
        &agent,
        "#!/bin/sh\nenv | grep -E '^(PATH|MINE_TOO|GITHUB_TOKEN|AWS_SECRET_ACCESS_KEY|SSH_AUTH_SOCK)=' > seen.txt; exit 3\n",
    );
    assert!(fs::metadata(&agent).unwrap().permissions().mode() & 0o100 > 0);
    let args = [
        "--as",
        "prep-agent",
        "--once",
        "--json",
        "--env",
        "MINE_*",
        "--",
        agent.to_str().unwrap(),
    ];
    let mut command = worker(&env, &args);
    command
        .env("GITHUB_TOKEN", "secret-1")
        .env("AWS_SECRET_ACCESS_KEY", "secret-2")
        .env("SSH_AUTH_SOCK", "secret-3")
        .env("MINE_TOO", "shown");
    let ran = env.run(command, &args, None);
    assert_eq!(outcome(&ran).0, "failed", "{}", ran.shown);
    let place = env.root().join("again");
    env.handoff(&["restore", "87.1", "--worktree", place.to_str().unwrap()])
        .success();
    let seen = fs::read_to_string(place.join("seen.txt")).unwrap();
    assert!(
        seen.contains("MINE_TOO=shown") && seen.contains("PATH="),
        "{seen}"
    );
    assert!(!seen.contains("secret-"), "{seen}");
}

/// Issue 7 of the protocol `review`, for whose coder a finding waits. The repository has a remote.
fn to_code() -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    let origin = bare(&env, "origin.git");
    env.git(
        &env.repo(),
        &["remote", "add", "origin", origin.to_str().unwrap()],
    );
    env.git(&env.repo(), &["branch", "develop"]);
    env.git(&env.repo(), &["push", "-q", "origin", "main", "develop"]);
    env.handoff(&["init", "--protocol", "review"]).success();
    let finding = "findings={\"severity\":\"blocking\",\"text\":\"No script\"}";
    env.handoff(&[
        "send",
        "--issue",
        "7",
        "--to",
        "coder",
        "--as",
        "maintainer",
        "--set",
        "summary=Script",
        "--set",
        finding,
    ])
    .success();
    env
}

const CODED: &str = "git handoff send --issue 7 --to reviewer --as coder --set branch=handoff/7 --set summary=Done \
     --set 'findings={\"finding\":\"F1\",\"text\":\"Written\"}'";

/// Plays a coder that hands `evil` on as `a.sh` and then does this, and a reviewer that prints it.
#[track_caller]
fn reviewed(text: &str, look: &str) -> String {
    let env = to_code();
    let coder = agent(
        &env,
        &format!("set -e\necho evil > a.sh; git add a.sh; git commit -q -m a\n{CODED}\n{text}"),
    );
    let ran = work_as(&env, "coder", &coder, &["--once"]);
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
    let reviewer = agent(&env, &format!("{look} > $OUT/seen; exit 3"));
    let ran = work_as(&env, "reviewer", &reviewer, &["--once"]);
    assert_eq!(outcome(&ran).0, "failed", "{}", ran.shown);
    fs::read_to_string(env.root().join("seen")).unwrap()
}

#[test]
fn a_reviewer_sees_the_code_that_was_handed_on() {
    let hidden = "echo fine > a.sh";
    let hidden = [
        format!("git update-index --skip-worktree a.sh; {hidden}"),
        format!("git update-index --assume-unchanged a.sh; {hidden}"),
        "git sparse-checkout set --no-cone /none".to_owned(),
    ];
    for text in hidden {
        assert_eq!(reviewed(&text, "cat a.sh"), "evil\n", "{text}");
    }
    let other = "evil=$(git rev-parse HEAD:a.sh); git replace $evil $(echo fine | git hash-object -w --stdin)";
    assert_eq!(reviewed(other, "git show HEAD:a.sh"), "evil\n");
    let graft = "git rev-parse HEAD > $REPO/.git/info/grafts";
    assert_eq!(reviewed(graft, "git log --format=%s -1 HEAD^"), "Start\n");
}

#[test]
fn a_lock_that_a_run_left_in_its_worktree_stops_nobody() {
    let lock = "touch $(git rev-parse --git-dir)/index.lock $(git rev-parse --git-dir)/HEAD.lock";
    assert_eq!(reviewed(lock, "cat a.sh"), "evil\n");
}

#[test]
fn a_branch_that_others_have_is_not_pushed_for_an_agent() {
    // The second one is a branch that nobody here knows of.
    for get in ["", "git update-ref -d refs/remotes/origin/develop;"] {
        let env = to_code();
        let origin = served(&env).join("origin.git");
        let at = |branch: &str| env.git(&origin, &["rev-parse", branch]);
        let before = at("develop");
        let text = format!(
            "git fetch -q origin; git checkout -q -b develop2 origin/develop; git branch -D develop 2> /dev/null\n\
             git branch -m develop; {get} echo x > x; git add x; git commit -q -m x; exit 3"
        );
        let coder = agent(&env, &text);
        env.git(&env.repo(), &["branch", "-D", "develop"]);
        let ran = work_as(&env, "coder", &coder, &["--once"]);
        assert_eq!(outcome(&ran).0, "failed", "{}", ran.shown);
        assert_eq!(at("develop"), before, "{}", ran.shown);
    }
    // One that the run made, with tags that the user's configuration would send along.
    let env = to_code();
    let text = "git config push.followTags true; git checkout -q -b scripts; echo x > x; git add x; git commit -q -m x\n\
                git tag -a v9 -m v9; exit 3";
    let coder = agent(&env, text);
    let ran = work_as(&env, "coder", &coder, &["--once"]);
    assert_eq!(outcome(&ran).0, "failed", "{}", ran.shown);
    let refs = env.git(
        &served(&env).join("origin.git"),
        &["for-each-ref", "--format=%(refname)"],
    );
    assert!(
        refs.contains("refs/heads/scripts") && !refs.contains("v9"),
        "{refs}"
    );
}

#[test]
fn what_an_agent_says_of_its_failure_moves_no_cursor() {
    let env = to_code();
    let coder = agent(
        &env,
        "printf '\\033]0;title\\007\\033[2Jgone \\342\\200\\256x' > .git-handoff/failed.md",
    );
    let args = ["--as", "coder", "--once", "--", coder.to_str().unwrap()];
    let ran = work(&env, &args);
    let shown = format!("{}{}", ran.stdout, ran.stderr);
    assert!(shown.contains("gone"), "{shown}");
    assert!(
        !shown.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{shown:?}"
    );
}

#[test]
fn a_reviewer_that_commits_is_told_so() {
    let env = to_code();
    let coder = agent(
        &env,
        &format!("set -e\necho a > a.sh; git add a.sh; git commit -q -m a\n{CODED}"),
    );
    work_as(&env, "coder", &coder, &["--once"]);
    let text = "git handoff new --issue 7 --to end --as reviewer --set summary=Fine > .git-handoff/contract\n\
                if [ -e $OUT/told ]; then cp $OUT/prompt $OUT/second; exit; fi; touch $OUT/told\n\
                echo b > a.sh; git commit -q -a -m b";
    let reviewer = agent(&env, &format!("cat > $OUT/prompt\n{text}"));
    let ran = work_as(&env, "reviewer", &reviewer, &["--once"]);
    let prompt = fs::read_to_string(env.root().join("second"));
    let prompt = prompt.unwrap_or_else(|_| panic!("{}", ran.shown));
    assert!(prompt.contains("is on no branch"), "{prompt}");
    assert_ne!(outcome(&ran).0, "handed_on", "{}", ran.shown);
}

#[test]
fn a_run_claims_nothing_else() {
    let env = to_code();
    let finding = "findings={\"severity\":\"blocking\",\"text\":\"More\"}";
    env.handoff(&[
        "send",
        "--issue",
        "8",
        "--to",
        "coder",
        "--as",
        "maintainer",
        "--set",
        "summary=More",
        "--set",
        finding,
    ])
    .success();
    let text = "git handoff claim 8 --as coder 2> $OUT/said; echo $? >> $OUT/said\n\
                git handoff claim --next --as coder > /dev/null 2>&1 || echo $? >> $OUT/said; exit 3";
    let ran = work_as(
        &env,
        "coder",
        &agent(&env, text),
        &["--once", "--issue", "7"],
    );
    assert_eq!(outcome(&ran).0, "failed", "{}", ran.shown);
    let said = fs::read_to_string(env.root().join("said")).unwrap();
    assert!(said.contains("this is a run of 7.1"), "{said}");
    assert!(said.ends_with("\n4\n4\n"), "{said}");
    assert_eq!(env.data(&["status", "8"])["issue"]["status"], "open");
    let waiting = env.data(&["show", "8.1"]);
    assert_eq!(waiting["handoff"]["state"], "pending");
}

#[test]
fn an_agent_that_handed_on_and_stays_is_ended() {
    let env = to_code();
    let text = format!("echo a > a.sh; git add a.sh; git commit -q -m a\n{CODED}\nsleep 3000");
    let ran = work_as(
        &env,
        "coder",
        &agent(&env, &text),
        &["--once", "--grace", "50ms"],
    );
    assert_eq!(outcome(&ran).0, "handed_on", "{}", ran.shown);
}

#[test]
fn what_is_too_large_to_keep_is_told_and_the_rest_is_kept() {
    let env = to_code();
    let text = "head -c 20000000 /dev/zero > core.1; echo the end of it; exit 3";
    let ran = work_as(&env, "coder", &agent(&env, text), &["--once"]);
    let (word, why) = outcome(&ran);
    assert_eq!(word, "failed", "{}", ran.shown);
    assert!(
        why.contains("not kept: ") && why.contains("core.1"),
        "{why}"
    );
    let kept = env.data(&["show", "7.1"]).to_string();
    assert!(kept.contains("\"files\":1,\"bytes\":14"), "{kept}");
    assert!(kept.contains("not kept: "), "{kept}");
}

#[test]
fn a_branch_that_leads_to_the_users_moves_it_for_nobody() {
    let env = user_at_work();
    let at = |env: &TestEnvironment| env.git(&env.repo(), &["rev-parse", "main"]);
    let before = at(&env);
    let text = format!(
        "git symbolic-ref refs/heads/handoff/87 refs/heads/main; echo x > x.txt\n\
         git handoff new {PREPARED} > .git-handoff/contract"
    );
    let program = agent(&env, &text);
    let roles = format!(
        "[[role]]\nagent = \"prep-agent\"\ncommit = \"worker\"\ncommand = [\"{}\"]\n",
        program.display()
    );
    let roles = env.file("roles.toml", roles);
    let ran = work(&env, &["--file", &roles, "--once", "--json"]);
    assert_eq!(at(&env), before, "{}", ran.shown);
    // Nor is the next agent put on it.
    let state = env.data(&["show", "87.1"])["handoff"]["state"].take();
    assert_eq!(state, "failed", "{}", ran.shown);
    retry(&env);
    let ran = once(&env, "echo y > y; git add y; git commit -q -m y");
    assert!(ran.shown.contains("is a symbolic ref"), "{}", ran.shown);
    assert_eq!(at(&env), before, "{}", ran.shown);
}
