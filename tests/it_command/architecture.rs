//! The rules that keep the parts apart, read from the source itself.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The longest a file may be, in lines.
const LONGEST: usize = 600;

/// One file of `src`: its path from there, its whole text, and its code without comments and tests.
struct Source {
    path: String,
    text: String,
    code: String,
}

impl Source {
    /// The part of the crate that it belongs to: `git` of `git/tree.rs`, `ids` of `ids.rs`.
    fn part(&self) -> &str {
        let first = self.path.split('/').next().unwrap();
        first.trim_end_matches(".rs")
    }

    fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }
}

fn sources() -> Vec<Source> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    walk(&root, &mut paths);
    paths.sort();
    let sources: Vec<Source> = paths
        .iter()
        .map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let shown = path.strip_prefix(&root).unwrap();
            Source {
                path: shown.to_str().unwrap().replace('\\', "/"),
                code: code(&text),
                text,
            }
        })
        .collect();
    assert!(sources.len() > 40, "src was found");
    sources
}

/// The lines of a file that are code: no comments, and nothing below `#[cfg(test)] mod`.
fn code(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        if line.starts_with("mod tests {") && lines.last() == Some(&"#[cfg(test)]") {
            break;
        }
        if !line.trim_start().starts_with("//") {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// Whether a word stands in the code, not as a part of a longer name.
fn names(code: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        !code[..at].ends_with(is_name) && !code[at + word.len()..].starts_with(is_name)
    })
}

/// Asserts that only files that `may` say so hold any of these words.
fn only(words: &[&str], may: impl Fn(&Source) -> bool) {
    let mut faults = Vec::new();
    let mut seen = 0;
    for source in sources().iter().filter(|s| !s.is_test()) {
        for word in words {
            let found = names(&source.code, word);
            if found && !may(source) {
                faults.push(format!("src/{} names {word}", source.path));
            }
            seen += usize::from(found && may(source));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(seen > 0, "{words:?} are words that are in use");
}

#[test]
fn only_git_names_libgit2() {
    only(&["git2", "libgit2_sys"], |source| source.part() == "git");
}

#[test]
fn only_the_command_line_names_clap_and_touches_the_world() {
    only(
        &[
            "clap",
            "clap_complete",
            "clap_mangen",
            "anstream",
            "println!",
            "print!",
            "eprintln!",
            "eprint!",
            "std::process::exit",
            "process::exit",
            "process::ExitCode",
            "std::env",
            "env::var",
            "env::var_os",
            "env::args",
            "Utc::now",
            "Local::now",
            "SystemTime::now",
            "io::stdin",
            "io::stdout",
            "io::stderr",
        ],
        |source| source.part() == "cli" || source.path == "main.rs",
    );
}

#[test]
fn only_the_server_of_tools_names_its_protocol_and_its_runtime() {
    only(&["rmcp", "tokio"], |source| {
        source.path.starts_with("cli/mcp/")
    });
}

#[test]
fn only_the_command_line_knows_a_random_number() {
    only(&["RandomState", "rand", "getrandom"], |source| {
        source.part() == "cli"
    });
}

#[test]
fn modules_name_only_what_is_below_them() {
    const ABOVE_NOTHING: &[&str] = &[
        "cli",
        "agents",
        "hooks",
        "templates",
        "github",
        "insight",
        "ledger",
        "contract",
        "protocol",
        "git",
    ];
    let forbidden: &[(&str, &[&str])] = &[
        ("ids", ABOVE_NOTHING),
        ("finding", ABOVE_NOTHING),
        (
            "contract",
            &[
                "cli",
                "agents",
                "hooks",
                "templates",
                "github",
                "insight",
                "ledger",
                "protocol",
                "git",
            ],
        ),
        (
            "protocol",
            &[
                "cli",
                "agents",
                "hooks",
                "templates",
                "github",
                "insight",
                "ledger",
                "contract",
                "git",
            ],
        ),
        (
            "git",
            &[
                "cli",
                "agents",
                "hooks",
                "templates",
                "github",
                "insight",
                "ledger",
                "contract",
                "protocol",
            ],
        ),
        (
            "ledger",
            &["cli", "agents", "hooks", "templates", "github", "insight"],
        ),
        (
            "insight",
            &["cli", "agents", "hooks", "templates", "github"],
        ),
        ("github", &["cli", "agents", "hooks"]),
        ("templates", &["cli", "agents"]),
        ("hooks", &["cli", "agents"]),
        (
            "agents",
            &[
                "cli",
                "templates",
                "github",
                "insight",
                "ledger",
                "contract",
                "protocol",
                "git",
            ],
        ),
    ];
    let sources = sources();
    let mut faults = Vec::new();
    for (part, others) in forbidden {
        let own: Vec<&Source> = sources.iter().filter(|s| s.part() == *part).collect();
        assert!(!own.is_empty(), "{part} is there");
        for source in own {
            // `use crate::{a, b}` would escape the search below.
            assert!(!source.code.contains("use crate::{"), "src/{}", source.path);
            for other in *others {
                if names(&source.code, &format!("crate::{other}")) {
                    faults.push(format!("src/{} names crate::{other}", source.path));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    let parts = [
        "agents",
        "cli",
        "contract",
        "finding",
        "git",
        "github",
        "hooks",
        "ids",
        "insight",
        "ledger",
        "lib",
        "main",
        "protocol",
        "templates",
    ];
    for source in &sources {
        assert!(
            parts.contains(&source.part()),
            "a rule is needed for src/{}",
            source.path
        );
    }
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = sources()
        .iter()
        .map(|source| (source, source.text.lines().count()))
        .filter(|(_, lines)| *lines > LONGEST)
        .map(|(source, lines)| format!("src/{} has {lines} lines", source.path))
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn nothing_is_left_to_do() {
    for source in sources() {
        for word in ["todo!", "unimplemented!", "dbg!", "TODO", "FIXME", "XXX"] {
            assert!(!names(&source.text, word), "src/{} has {word}", source.path);
        }
    }
}

/// Names in protocols that variables and messages have too: only as a whole text would code know them.
const ORDINARY: [&str; 4] = ["decision", "request", "response", "validator"];

#[test]
fn no_code_knows_a_protocol_by_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut words = Vec::new();
    for entry in fs::read_dir(root.join("templates")).unwrap() {
        let path = entry.unwrap().path().join("protocol.json");
        // What is for a host holds no protocol.
        if !path.exists() {
            continue;
        }
        let protocol: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        words.push(protocol["name"].as_str().unwrap().to_owned());
        for agent in protocol["agents"].as_array().unwrap() {
            words.push(agent["id"].as_str().unwrap().to_owned());
        }
        for contract in protocol["contracts"].as_array().unwrap() {
            words.push(contract["type"].as_str().unwrap().to_owned());
            if let Some(member) = contract["root"].as_str() {
                words.push(member.to_owned());
            }
        }
    }
    // The program's own name, an ordinary word, a key of protocol.json and kinds of agents are no protocol's.
    let shared = ["handoff", "error", "failure", "orchestrator", "human"];
    words.retain(|word| !shared.contains(&word.as_str()));
    words.sort();
    words.dedup();
    assert!(words.len() > 10, "{words:?}");
    let mut faults = Vec::new();
    for source in sources() {
        // Help texts show examples, the demo is one, and the list of what ships is a list of names.
        let may =
            source.part() == "cli" || source.path == "templates/builtin.rs" || source.is_test();
        for word in words.iter().filter(|_| !may) {
            // A part of a longer name in kebab case is another name.
            let found = source.code.match_indices(word.as_str()).any(|(at, _)| {
                let (before, after) = (&source.code[..at], &source.code[at + word.len()..]);
                if ORDINARY.contains(&word.as_str()) {
                    return before.ends_with('"') && after.starts_with('"');
                }
                let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
                !before.ends_with(is_name) && !after.starts_with(is_name)
            });
            if found {
                faults.push(format!("src/{} names {word}", source.path));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn commands_name_agents_only_in_help_and_in_the_demo() {
    // Outside of doc comments and of clap's attributes, which hold the help's examples.
    let mut faults = Vec::new();
    for source in sources().iter().filter(|s| s.part() == "cli") {
        if source.path.starts_with("cli/commands/demo") {
            continue;
        }
        let mut in_attribute = false;
        for (number, line) in source.code.lines().enumerate() {
            let starts = line.trim_start().starts_with("#[");
            in_attribute |= starts;
            if !in_attribute {
                for word in [
                    "-agent\"",
                    "\"issue-manager\"",
                    "\"orchestrator\"",
                    "\"issue-to-pr\"",
                    "\"workflow-complete\"",
                ] {
                    if line.contains(word) {
                        faults.push(format!(
                            "src/{} line {number} of its code: {line}",
                            source.path
                        ));
                    }
                }
            }
            if in_attribute && line.trim_end().ends_with(']') {
                in_attribute = false;
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
