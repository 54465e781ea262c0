//! What a newcomer follows, run as it stands: README.md and docs/tutorial.md, each in order in one
//! folder; and what these and other documents say that is printed.

use std::fs;
use std::path::PathBuf;

use test_support::contracts::{Format, opening, prepared};
use test_support::workflow::completed;
use test_support::{TestEnvironment, project};

/// Whether a line is printed as a document has it, where `…` stands for anything.
fn fits(shown: &str, line: &str) -> bool {
    let (first, rest) = shown.split_once('…').unwrap_or((shown, ""));
    let Some(line) = line.strip_prefix(first) else {
        return false;
    };
    if !shown.contains('…') {
        return line.is_empty();
    }
    (0..=line.len()).any(|at| line.is_char_boundary(at) && fits(rest, &line[at..]))
}

/// The lines after those that are shown. A line that is `…` stands for any number of them.
fn after<'a>(shown: &[&str], lines: &'a [&'a str]) -> Option<&'a [&'a str]> {
    match shown.split_first() {
        None => Some(lines),
        Some((&"…", rest)) => (0..=lines.len()).find_map(|at| after(rest, &lines[at..])),
        Some((first, rest)) => {
            let (line, lines) = lines.split_first()?;
            fits(first, line).then(|| after(rest, lines)).flatten()
        }
    }
}

/// The blocks of a document in this language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(project().join(document)).unwrap();
    let begin = format!("\n```{language}\n");
    let blocks: Vec<String> = text
        .split(&begin)
        .skip(1)
        .map(|block| block.split("\n```\n").next().unwrap().to_owned())
        .collect();
    assert!(
        !blocks.is_empty(),
        "{document} shows nothing that is printed"
    );
    blocks
}

/// What is printed after a block.
#[track_caller]
fn rest<'a>(block: &str, printed: &'a [&'a str]) -> &'a [&'a str] {
    let shown: Vec<&str> = std::iter::once("…").chain(block.lines()).collect();
    after(&shown, printed).unwrap_or_else(|| panic!("{block}\n\nis not in\n{}", printed.join("\n")))
}

/// Follows a document, whose blocks of text are printed in their order.
fn follow(env: &TestEnvironment, document: &str) {
    let printed = env.follow(document);
    let lines: Vec<&str> = printed.lines().collect();
    let mut left = &lines[..];
    for block in blocks(document, "text") {
        left = rest(&block, left);
    }
}

/// Runs the commands of a document's consoles, and compares what they print. Before each console, the
/// world is made ready, and the folder named.
fn play(env: &TestEnvironment, page: &str, before: impl Fn(usize) -> PathBuf) {
    for (i, block) in blocks(&format!("docs/{page}.md"), "console")
        .iter()
        .enumerate()
    {
        let commands = block.lines().filter_map(|line| line.strip_prefix("$ "));
        let script: String = commands
            .map(|command| {
                let shown = command.replace('\'', "'\\''");
                format!("printf '%s\\n' '$ {shown}'\n{command}\n")
            })
            .collect();
        assert!(!script.is_empty(), "{page}: {block}");
        let folder = before(i);
        let mut command = env.command("sh");
        command.current_dir(folder);
        let ran = command.args(["-c", &format!("exec 2>&1\n{script}")]);
        let printed = String::from_utf8(ran.output().unwrap().stdout).unwrap();
        rest(block, &printed.lines().collect::<Vec<_>>());
    }
}

/// A ledger with a remote.
fn shared() -> TestEnvironment {
    let env = TestEnvironment::with_repository();
    env.git(env.root(), &["init", "-q", "--bare", "origin.git"]);
    env.git(&env.repo(), &["remote", "add", "origin", "../origin.git"]);
    env
}

#[test]
fn the_flow_of_the_readme_works_in_an_empty_folder() {
    let env = TestEnvironment::new();
    follow(&env, "README.md");
}

#[test]
fn the_tutorial_can_be_followed_to_its_end() {
    let env = TestEnvironment::new();
    follow(&env, "docs/tutorial.md");
    let clone = env.root().join("parcels");
    env.git(&clone, &["fsck", "--strict"]);
}

#[test]
fn the_page_about_remotes_shows_what_is_printed() {
    let env = shared();
    play(&env, "remotes", |console| {
        match console {
            0 => return env.repo(),
            1 => {
                env.send(opening(12)).success();
                fs::rename(env.root().join("origin.git"), env.root().join("away")).unwrap();
            }
            3 => {
                fs::rename(env.root().join("away"), env.root().join("origin.git")).unwrap();
                env.git(env.root(), &["clone", "-q", "origin.git", "second"]);
                return env.root().join("second");
            }
            _ => {}
        }
        env.repo()
    });
}

#[test]
fn the_page_about_failures_shows_what_is_printed() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(123)).success();
    env.claim("123.1", "prep-agent").success();
    env.send(prepared(123)).success();
    env.claim("123.2", "implementer-agent").success();
    fs::write(env.repo().join("build.log"), "error: no linker\n").unwrap();
    fs::write(env.repo().join("export.rs"), "fn export() {\n").unwrap();
    play(&env, "failures", |console| {
        if console == 2 {
            env.data(&[
                "retry",
                "123.2",
                "--as",
                "orchestrator",
                "--reason",
                "again",
            ]);
            env.claim("123.2", "implementer-agent").success();
            env.wait(90_000);
        }
        env.repo()
    });
}

#[test]
fn other_pages_show_what_is_printed() {
    let env = completed(|_| Format::Xml);
    env.wait(100 * 86_400);
    for page in ["housekeeping", "exchange", "agents", "hooks"] {
        play(&env, page, |_| env.repo());
    }
}
