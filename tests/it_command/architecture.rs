//! The rules that neither the compiler nor clippy checks, read from the source itself. What a crate
//! may use is in its `Cargo.toml`; what no library may call is in `crates/clippy.toml`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// One file of the program: its path from the root, its whole text, and its code without comments
/// and tests.
struct Source {
    path: String,
    text: String,
    code: String,
}

impl Source {
    fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    fn is_command_line(&self) -> bool {
        let folders = [
            "src/",
            "crates/handoff-agents/src/prime/",
            "crates/handoff-board/src/",
            "crates/handoff-cli/src/",
            "crates/handoff-http/src/",
            "crates/handoff-mcp/src/",
            "crates/handoff-notify/src/",
            "crates/handoff-trial/src/",
            "crates/handoff-work/src/",
        ];
        folders.iter().any(|folder| self.path.starts_with(folder))
    }
}

/// The sources of the command line and of the libraries.
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    walk(&root.join("src"), &mut paths);
    for library in fs::read_dir(root.join("crates")).unwrap() {
        let folder = library.unwrap().path();
        // What the tests share is a test, too.
        if folder.is_dir() && !folder.ends_with("test-support") {
            walk(&folder.join("src"), &mut paths);
        }
    }
    paths.sort();
    let sources: Vec<Source> = paths
        .iter()
        .map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let shown = path.strip_prefix(root).unwrap();
            Source {
                path: shown.to_str().unwrap().replace('\\', "/"),
                code: code(&text),
                text,
            }
        })
        .collect();
    let own = sources.iter().filter(|source| source.is_command_line());
    let own = own.count();
    assert!(own > 80 && sources.len() - own > 200, "they were found");
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
    code.match_indices(word).any(|(at, _)| {
        !code[..at].ends_with(is_name) && !code[at + word.len()..].starts_with(is_name)
    })
}

#[test]
fn nothing_is_left_to_do() {
    for source in sources() {
        for word in ["TODO", "FIXME", "XXX"] {
            assert!(!names(&source.text, word), "{} has {word}", source.path);
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
        // All names of this one are ordinary words.
        if protocol["name"] == "review" {
            continue;
        }
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
        let may = source.is_command_line()
            || source.path == "crates/handoff-templates/src/builtin.rs"
            || source.is_test();
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
                faults.push(format!("{} names {word}", source.path));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn commands_name_agents_only_in_help_and_in_the_demo() {
    // Outside of doc comments and of clap's attributes, which hold the help's examples.
    let mut faults = Vec::new();
    for source in sources().iter().filter(|s| s.is_command_line()) {
        if source.path.starts_with("src/commands/demo") {
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
                        faults.push(format!("{} line {number} of its code: {line}", source.path));
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

/// The states of a handoff.
const STATES: [&str; 8] = [
    "Pending",
    "InProgress",
    "Completed",
    "Failed",
    "Blocked",
    "Rejected",
    "Cancelled",
    "Dead",
];

/// Where a handoff's state may be named besides the model and the lifecycle, and what for. Whose turn
/// it is and what may be done is decided in `handoff-model`.
const MAY_NAME_STATES: [(&str, &str); 22] = [
    (
        "crates/handoff-github/src/event/command_steps.rs",
        "the handoff that a comment is about",
    ),
    (
        "crates/handoff-github/src/event/contract.rs",
        "what a delivery goes on with that broke off",
    ),
    ("crates/handoff-github/src/summary.rs", "words"),
    ("crates/handoff-graph/src/", "figures and pictures"),
    (
        "crates/handoff-report/src/",
        "figures, pictures and pages of what is recorded",
    ),
    (
        "crates/handoff-ledger/src/code_branches.rs",
        "words of a finding",
    ),
    (
        "crates/handoff-ledger/src/contract_match.rs",
        "the issues that a contract can be about",
    ),
    (
        "crates/handoff-exchange/src/",
        "the states of other programs' files",
    ),
    (
        "crates/handoff-ledger/src/failure/kept_context.rs",
        "which failures are kept",
    ),
    (
        "crates/handoff-ledger/src/sending.rs",
        "which delivered files still count",
    ),
    (
        "crates/handoff-board/src/",
        "words, and keys by the lifecycle",
    ),
    ("src/commands/change.rs", "words: what a rejection did"),
    ("src/commands/claim.rs", "what follows from a claim"),
    ("src/commands/metrics.rs", "figures"),
    ("src/commands/next.rs", "words: what a decision left"),
    ("src/commands/wait.rs", "words"),
    (
        "crates/handoff-mcp/src/tasks.rs",
        "the states of another kind of task",
    ),
    ("crates/handoff-agents/src/prime/", "words"),
    ("crates/handoff-cli/src/render/", "words"),
    ("crates/handoff-trial/src/", "a played agent's own work"),
    ("crates/handoff-cli/src/view/", "symbols and colours"),
    ("crates/handoff-work/src/", "what became of a run"),
];

#[test]
fn what_a_state_means_is_decided_in_the_model() {
    let own = ["crates/handoff-model/src/", "crates/handoff-protocol/src/"];
    let (sources, known) = (sources(), MAY_NAME_STATES);
    let mut unused: BTreeSet<&str> = known.iter().map(|(path, _)| *path).collect();
    let mut faults = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let compares = |state: &str| names(&source.code, &format!("State::{state}"));
        if own.iter().any(|path| source.path.starts_with(path))
            || !STATES.iter().any(|s| compares(s))
        {
            continue;
        }
        match known.iter().find(|(path, _)| source.path.starts_with(path)) {
            Some((path, _)) => _ = unused.remove(path),
            None => faults.push(&source.path),
        }
    }
    assert!(
        faults.is_empty(),
        "these compare a handoff's state: {faults:#?}"
    );
    assert!(unused.is_empty(), "these no longer do: {unused:#?}");
}

#[test]
fn who_is_a_person_is_decided_once() {
    let sources = sources();
    let named = sources.iter().filter(|source| !source.is_test());
    let named = named.filter(|source| names(&source.code, "AgentKind::Human"));
    let named: Vec<&str> = named.map(|source| source.path.as_str()).collect();
    // `Definition::is_person` decides it; a drawing has a shape for each kind.
    let known = [
        "crates/handoff-graph/src/lib.rs",
        "crates/handoff-protocol/src/definition/mod.rs",
    ];
    assert_eq!(named, known);
}

/// The crates in which no top-level modules use each other in a circle.
const LAYERED: [&str; 5] = [
    "handoff-exchange",
    "handoff-git",
    "handoff-ledger",
    "handoff-model",
    "handoff-protocol",
];

/// The top-level modules of a crate that each of them uses, and where: a file and the path in it.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

/// The form of a time in a text is decided in `moment.rs`; the others are days, and the report's page.
#[test]
fn times_in_texts_have_one_form() {
    let own_forms = [
        "crates/handoff-base/src/moment.rs",
        // Days.
        "crates/handoff-cli/src/view/ago.rs",
        "crates/handoff-model/src/record/spending.rs",
        // A commit's subject is short.
        "crates/handoff-model/src/planner/trail.rs",
        // For programs.
        "crates/handoff-git/src/commits/signed_commit.rs",
        "crates/handoff-notify/src/notice.rs",
        // The page.
        "crates/handoff-report/src/report/charts.rs",
        "crates/handoff-report/src/report/timeline.rs",
        "crates/handoff-report/src/report/words.rs",
    ];
    let with_form = |source: &&Source| {
        source.code.contains(".format(\"%") || source.code.contains(".format(form)")
    };
    let sources = sources();
    let found = sources.iter().filter(with_form);
    let found: Vec<&str> = found.map(|source| source.path.as_str()).collect();
    let mut own_forms = own_forms.to_vec();
    own_forms.sort_unstable();
    assert_eq!(found, own_forms);
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The name that a path begins with.
fn first_name(path: &str) -> &str {
    let path = path.trim_start();
    &path[..path.find(|c| !is_name(c)).unwrap_or(path.len())]
}

/// The names that the paths of a group in braces begin with, or that of one path.
fn first_names(paths: &str) -> Vec<&str> {
    let Some(group) = paths.strip_prefix('{') else {
        return vec![first_name(paths)];
    };
    let mut depth = 0;
    let group = &group[..group.find(';').unwrap_or(group.len())];
    let paths = group.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0 && c == ','
    });
    paths.map(first_name).collect()
}

fn uses(sources: &[Source], library: &str) -> Uses {
    let root = format!("crates/{library}/src/");
    let files: Vec<(Vec<&str>, &Source)> = sources
        .iter()
        .filter(|source| !source.is_test())
        .filter_map(|source| {
            let path = source.path.strip_prefix(&root)?.strip_suffix(".rs")?;
            let parts = path.split('/').filter(|part| *part != "mod");
            Some((parts.collect(), source))
        })
        .collect();
    let modules: BTreeSet<&str> = files.iter().map(|(path, _)| path[0]).collect();
    // What the crate offers to others is used by its name in the root, too.
    let mut offered = BTreeMap::new();
    for (_, lib) in files.iter().filter(|(path, _)| path[0] == "lib") {
        for statement in lib.code.split("pub use ").skip(1) {
            let (module, names) = statement.split_once("::").unwrap();
            offered.extend(first_names(names).into_iter().map(|name| (name, module)));
        }
    }
    let mut uses = Uses::new();
    for (path, source) in files.iter().filter(|(path, _)| path[0] != "lib") {
        let own = uses.entry(path[0].to_owned()).or_default();
        for to_root in ["crate::".to_owned(), "super::".repeat(path.len())] {
            for (at, _) in source.code.match_indices(&to_root) {
                if source.code[..at].ends_with(|c| is_name(c) || c == ':') {
                    continue;
                }
                for name in first_names(&source.code[at + to_root.len()..]) {
                    let module = offered.get(name).copied().unwrap_or(name);
                    if modules.contains(module) && module != path[0] {
                        let place = format!("{} has {to_root}{name}", source.path);
                        own.entry(module.to_owned()).or_insert(place);
                    }
                }
            }
        }
    }
    uses
}

/// The shortest circle through a module: the places of the uses that make it.
fn circle(uses: &Uses, start: &str) -> Option<Vec<String>> {
    let (mut ahead, mut met) = (VecDeque::from([(start, Vec::new())]), BTreeSet::new());
    while let Some((module, places)) = ahead.pop_front() {
        for (next, place) in uses.get(module).into_iter().flatten() {
            let places = [&places[..], std::slice::from_ref(place)].concat();
            if next == start {
                return Some(places);
            }
            if met.insert(next) {
                ahead.push_back((next, places));
            }
        }
    }
    None
}

#[test]
fn modules_use_each_other_one_way() {
    let sources = sources();
    for library in LAYERED {
        let uses = uses(&sources, library);
        assert!(uses.len() > 8 && uses.values().any(|own| own.len() > 3));
        let circle = uses.keys().find_map(|module| circle(&uses, module));
        assert_eq!(circle, None, "modules of {library} use each other");
    }
}

#[test]
fn a_circle_of_modules_is_found() {
    let source = |(path, code): (&str, &str)| Source {
        path: format!("crates/x/src/{path}.rs"),
        text: String::new(),
        code: code.to_owned(),
    };
    let files = [
        ("lib", "mod a;\nmod b;\nmod c;\npub use c::{C, D};"),
        ("a", "use super::b::{self, B};"),
        ("b/mod", "mod inner;\nuse self::inner::A;"),
        ("b/inner", "use super::super::{C, b::{B, A}};"),
        ("c/mod", "use crate::{b::{a, A}};"),
    ];
    let uses = uses(&files.map(source), "x");
    assert_eq!(circle(&uses, "a"), None);
    let there = "crates/x/src/b/inner.rs has super::super::C";
    let back = "crates/x/src/c/mod.rs has crate::b";
    assert_eq!(circle(&uses, "b").unwrap(), [there, back]);
}

/// The names of a table of a `Cargo.toml`: `[dependencies]` and the like.
fn names_of(manifest: &str, table: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest)).unwrap();
    let after = text.split_once(&format!("[{table}]\n")).unwrap().1;
    let lines = after.lines().take_while(|line| !line.starts_with('['));
    let named = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    named.map(str::to_owned).collect()
}

#[test]
fn a_room_sees_no_other_room() {
    let features = names_of("Cargo.toml", "features");
    let no_rooms = ["default", "all", "https", "shell", "file-events", "#", ""];
    let is_room = |feature: &&String| !no_rooms.contains(&feature.as_str());
    let rooms: Vec<String> = features
        .iter()
        .filter(is_room)
        .map(|room| format!("handoff-{room}"))
        .collect();
    assert!(rooms.len() > 6, "{rooms:?}");
    for room in &rooms {
        let uses = names_of(&format!("crates/{room}/Cargo.toml"), "dependencies");
        let own = uses.iter().filter(|name| name.starts_with("handoff"));
        // What draws, what speaks HTTP, what commands share, and macros are no rooms.
        let may = ["", "-cli", "-graph", "-http", "-macros"].map(|name| format!("handoff{name}"));
        let others: Vec<_> = own.filter(|name| !may.contains(name)).collect();
        assert!(others.is_empty(), "{room} sees {others:?}");
    }
}
