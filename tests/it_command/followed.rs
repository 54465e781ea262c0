//! What a newcomer follows, run as it stands: README.md and docs/tutorial.md, each in order in one
//! folder, and what they say that it prints.

use std::fs;

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

/// Follows a document, whose blocks of text have been printed, in their order.
fn follow(env: &TestEnvironment, document: &str) {
    let printed = env.follow(document);
    let lines: Vec<&str> = printed.lines().collect();
    let text = fs::read_to_string(project().join(document)).unwrap();
    let (mut left, mut count) = (&lines[..], 0);
    for block in text.split("\n```text\n").skip(1) {
        let block = block.split("\n```\n").next().unwrap();
        let shown: Vec<&str> = std::iter::once("…").chain(block.lines()).collect();
        left = after(&shown, left).unwrap_or_else(|| panic!("{block}\n\nis not in\n{printed}"));
        count += 1;
    }
    assert!(count > 0, "{document} shows nothing of what is printed");
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
