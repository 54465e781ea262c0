//! What the documents say is what the program does: codes, fields, commands, exit codes, examples, links.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared, sample};
use test_support::workflow::completed;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The program's source below a folder, each file without comments and tests.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().unwrap() != "tests" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let tested = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                let code = tested.lines().filter(|l| !l.trim().starts_with("//"));
                let shown = path.strip_prefix(root()).unwrap().to_str().unwrap();
                let code: Vec<&str> = code.collect();
                found.push((shown.to_owned(), code.join("\n")));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has sources");
    found
}

/// One table of a document: the heading above it and the cells of its rows.
struct Table {
    heading: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// The words in the first cell of each row that are set as code.
    fn names(&self) -> BTreeSet<String> {
        let cells = self.rows.iter().map(|row| row[0].as_str());
        cells.flat_map(coded).collect()
    }
}

/// The cells of a row, in which `\\|` is no border.
fn cells(row: &str) -> Vec<String> {
    let row = row.replace("\\|", "\0");
    let cells = row.split('|');
    cells.map(|cell| cell.trim().replace('\0', "\\|")).collect()
}

/// What is set as code in a text.
fn coded(text: &str) -> Vec<String> {
    let parts = text.split('`').skip(1).step_by(2);
    parts.map(str::to_owned).collect()
}

fn tables(document: &str) -> Vec<Table> {
    let (mut heading, mut found, mut inside) = (String::new(), Vec::<Table>::new(), false);
    for line in document.lines() {
        if let Some(title) = line.strip_prefix('#') {
            heading = title.trim_start_matches('#').trim().to_owned();
        }
        let Some(row) = line.strip_prefix('|').and_then(|l| l.strip_suffix('|')) else {
            inside = false;
            continue;
        };
        if inside && row.starts_with("---") {
            continue;
        }
        if inside {
            found.last_mut().unwrap().rows.push(cells(row));
        } else {
            let heading = heading.clone();
            found.push(Table {
                heading,
                rows: Vec::new(),
            });
            inside = true;
        }
    }
    found
}

/// The tables beneath one heading of a document.
fn tables_under(document: &str, heading: &str) -> Vec<Table> {
    let mut found = tables(&read(document));
    found.retain(|table| table.heading == heading);
    assert!(!found.is_empty(), "{document} has a table under {heading}");
    found
}

/// The tables beneath one heading of docs/json.md.
fn described(heading: &str) -> Vec<Table> {
    tables_under("docs/json.md", heading)
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn every_change_answers_with_a_receipt() {
    let env = TestEnvironment::with_ledger();
    let as_prep = ["--as", "prep-agent"];
    env.data(&["send", &env.file("opening.xml", opening(87))]);
    let claim = || env.data(&["claim", "--next", "--as", "prep-agent"]);
    claim();
    for args in [
        &["fail", "87", "--message", "no space"][..],
        &["retry", "87"],
        &["reject", "87", "--reason", "not mine"],
    ] {
        env.data(&[args, &as_prep].concat());
    }
    env.data(&["send", &env.file("again.xml", opening(88))]);
    claim();
    for args in [
        [
            "block",
            "88",
            "--reason",
            "which branch?",
            "--as",
            "prep-agent",
        ]
        .as_slice(),
        &["answer", "88", "main", "--as", "issue-manager"],
        &[
            "cancel",
            "88",
            "--reason",
            "never mind",
            "--as",
            "prep-agent",
        ],
    ] {
        env.data(args);
    }
    env.data(&["send", &env.file("third.xml", opening(89))]);
    claim();
    env.data(&["complete", "89", "--as", "prep-agent"]);

    let env = completed(|_| Format::Xml);
    env.data(&["reopen", "87", "--as", "closer-agent", "--reason", "why"]);
}

#[test]
fn answers_have_the_fields_that_are_described() {
    let env = TestEnvironment::with_repository();
    env.data(&["init"]);
    let opening = env.file("opening.xml", opening(87));
    env.handoff(&["send", &opening]).success();
    env.claim("87.1", "prep-agent").success();
    env.send(prepared(87)).success();
    let new = ["new", "--issue", "87", "--from", "prep-agent"];
    env.data(&[&new[..], &["--to", "implementer-agent"]].concat());
    let contract = env.file("error.json", sample("error", Format::Json, 87));
    env.data(&["check", "--contract-only", &contract]);
    env.data(&["inbox", "--as", "prep-agent"]);
    env.data(&["prime", "--as", "implementer-agent"]);
    env.data(&["hook", "pre-commit"]);
    env.data(&["status"]);
    env.data(&["status", "87"]);
    env.data(&["show", "87.2"]);
    env.data(&["context", "87"]);
    env.data(&["list"]);
    env.data(&["verify"]);
    for by in ["agent", "protocol"] {
        env.data(&["metrics", "--by", by]);
    }
    env.wait(86_400);
    let alarms = env.handoff(&["alerts", "--json"]).exits(1).json();
    env.wait(-86_400);
    assert!(alarms["data"]["firing"][0].is_object());
    let gate = ["gate", "--issue", "87", "--json"];
    env.handoff(&gate).exits(1).json();
    let payload = json!({"action": "opened", "repository": {"id": 1, "full_name": "quayside/parcel-desk"}, "pull_request": {
        "number": 5, "title": "Keep parcels", "body": "Closes #87", "html_url": "https://github.com/quayside/parcel-desk/pull/5",
        "head": {"ref": "issue-87", "sha": "1".repeat(40), "repo": {"id": 1}}, "base": {"repo": {"id": 1}}}});
    let payload = env.file("event.json", payload.to_string());
    let given = ["--name", "pull_request", "--file", &payload];
    env.data(&[&["github", "issue"][..], &given].concat());
    let event = env.data(&[&["github", "event", "--dry-run"][..], &given].concat());
    assert!(event["did"][0].is_object() && event["draft"].is_object());
    for args in [
        &["github", "output", "87"][..],
        &["github", "summary", "87"],
        &["github", "comment", "87"],
        &["hooks", "install"],
        &["hooks", "status"],
        &["hooks", "uninstall"],
        &["agents", "list"],
        &["agents", "install", "codex", "--dry-run"],
        &["protocol", "list"],
        &["protocol", "show"],
        &["protocol", "check", "delegation"],
        &["protocol", "add", "orchestrator-specialist"],
        &["document", "list"],
    ] {
        env.data(args);
    }
    env.data(&["wait", "87.1"]);
    env.data(&["wait", "--inbox", "--as", "implementer-agent"]);
    env.handoff(&["watch", "--all", "--once"]).success().lines();
    env.data(&["log", "87"]);
    for args in [&["graph", "87"][..], &["graph", "--protocol"]] {
        env.data(args);
    }
    let out = env.root().join("out");
    let out = out.to_str().unwrap();
    env.data(&["export", "--format", "files", out]);
    env.data(&["import", out]);
    let shared = env.root().join("shared");
    env.data(&["exchange", shared.to_str().unwrap()]);
    for (command, path) in [(&["demo"][..], "tour"), (&["man", "--dir"], "pages")] {
        let path = env.root().join(path);
        env.data(&[command, &[path.to_str().unwrap()]].concat());
    }
    env.data(&["explain", "usage"]);

    let refused = env.handoff_with(&["check", "-", "--json"], "<handoff/>");
    refused.exits(3).json();
}

#[test]
fn every_answer_is_described_and_every_example_is_json() {
    let document = read("docs/json.md");
    let command = git_handoff::command();
    let receipts = document.split("### Receipts\n").nth(1).unwrap();
    let receipts = coded(receipts.trim_start().split("\n\n").next().unwrap());
    for sub in command.get_subcommands() {
        let name = sub.get_name();
        let text = ["board", "help", "man", "completions"].contains(&name);
        let own = document.contains(&format!("\n### `{name}`\n"));
        let receipt = receipts.iter().any(|r| r == name);
        assert!(text || own || receipt, "docs/json.md lacks {name}");
    }
    for (heading, example) in examples(&document) {
        let whole = example.replace(", … }", " }").replace("…", "");
        let value: Value = serde_json::from_str(&whole)
            .unwrap_or_else(|error| panic!("the example under {heading}: {error}"));
        let mut said = described(&heading)[0].names();
        if heading == "The document" {
            said.remove("data");
            said.remove("work_paused");
        } else {
            let rows = &described(&heading)[0].rows;
            let is_optional = |name: &String| {
                rows.iter()
                    .any(|row| row[0].contains(&format!("`{name}`?")))
            };
            said.retain(|name| !is_optional(name) || value.get(name).is_some());
        }
        assert_eq!(keys(&value), said, "the example under {heading}");
    }
}

#[test]
fn every_member_word_code_and_option_is_named() {
    fn words(schema: &Value, names: &mut BTreeSet<String>) {
        names.extend(schema["const"].as_str().map(str::to_owned));
        for list in ["oneOf", "enum"] {
            for word in schema[list].as_array().into_iter().flatten() {
                names.extend(word.as_str().map(str::to_owned));
                words(word, names);
            }
        }
    }
    let folder = fs::read_dir(root().join("schemas/output")).unwrap();
    let files = folder.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let answers: String = files.collect();
    let schema: Value = serde_json::from_str(&read("schemas/output/definitions.json")).unwrap();
    let mut names = BTreeSet::new();
    let definitions = schema["$defs"].as_object().unwrap();
    let printed = |name: &str| answers.contains(&format!("#/$defs/{name}\""));
    for (_, definition) in definitions.iter().filter(|(name, _)| printed(name)) {
        words(definition, &mut names);
        let members = definition["properties"].as_object().into_iter();
        names.extend(members.flat_map(|all| all.keys().cloned()));
    }
    let codes = handoff::base::codes::all().filter(|code| code.kind != "Exit codes");
    let codes: BTreeSet<String> = codes.map(|code| code.code.to_owned()).collect();
    assert!(names.len() > 400 && codes.len() > 400);
    for (page, names) in [("docs/json.md", names), ("docs/codes.md", codes)] {
        let said: BTreeSet<String> = coded(&read(page).replace("```", "")).into_iter().collect();
        let missing: Vec<_> = names.difference(&said).collect();
        assert!(missing.is_empty(), "{page} lacks {missing:?}");
    }
    fn of(command: &clap::Command, page: &str) {
        let name = command.get_bin_name().unwrap_or("git handoff");
        let name = name.trim_start_matches("git handoff ");
        let section = page.split(&format!("# `{name}`\n")).nth(1);
        let section = section.map_or(page, |rest| rest.split("\n## ").next().unwrap());
        let mut own = command
            .get_arguments()
            .filter(|arg| !arg.is_hide_set() && arg.get_id() != "help" && !arg.is_global_set());
        let missing = own.find(|arg| {
            let long = arg.get_long().map(|long| format!("--{long}"));
            let is_said = |long: String| {
                ["`", " <"]
                    .iter()
                    .any(|end| section.contains(&(long.clone() + end)))
            };
            !long.is_none_or(is_said)
        });
        assert!(
            missing.is_none(),
            "docs/commands.md lacks {name} {missing:?}"
        );
        let subs = command.get_subcommands();
        let subs = subs.filter(|sub| sub.get_name() != "help" && !sub.is_hide_set());
        subs.for_each(|sub| of(sub, page));
    }
    let mut command = git_handoff::command();
    command.build();
    of(&command, &read("docs/commands.md"));
}

/// The JSON examples of a document with the headings above them.
fn examples(document: &str) -> Vec<(String, String)> {
    let (mut heading, mut found, mut inside) = (String::new(), Vec::new(), false);
    for line in document.lines() {
        if line.starts_with("```") {
            inside = line == "```json";
            if inside {
                found.push((heading.clone(), String::new()));
            }
        } else if inside {
            let (_, example) = found.last_mut().unwrap();
            *example += &format!("{line}\n");
        } else if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().to_owned();
        }
    }
    assert!(found.len() > 10);
    found
}

/// The words of a command line as a shell splits them: up to a pipe, a comment in parentheses or
/// after `#`, without redirections. None where the line has no `git handoff`.
fn words(line: &str) -> Option<Vec<String>> {
    let (_, line) = line.split_at_checked(line.find("git handoff")?)?;
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            '|' | '(' | '#' if !quoted && word.is_none() => break,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if let Some(at) = words.iter().position(|word| word == ">" || word == "<") {
        words.drain(at..(at + 2).min(words.len()));
    }
    Some(words.split_off(1))
}

#[track_caller]
fn assert_parses(line: &str) {
    let words = words(line).unwrap();
    let parsed = git_handoff::command().try_get_matches_from(&words);
    // Help is an answer.
    if let Err(error) = parsed
        && error.use_stderr()
    {
        panic!("{line}\n{words:?}\n{error}");
    }
}

#[test]
fn every_command_has_examples_that_it_takes() {
    fn of(command: &clap::Command, path: &str) -> usize {
        let help = command.get_after_help();
        let help = help.unwrap_or_else(|| panic!("{path} has no example"));
        let help = help.to_string();
        assert!(help.contains(path), "no example of {path} is one of it");
        let lines = help.replace("\\\n", " ");
        let mut count = 0;
        for line in lines.lines().filter(|l| l.starts_with("  ")) {
            if words(line).is_some() {
                assert_parses(line.split(": ").last().unwrap());
                count += 1;
            }
        }
        for sub in command.get_subcommands() {
            count += of(sub, &format!("{path} {}", sub.get_name()));
        }
        count
    }
    let count = of(&git_handoff::command(), "git handoff");
    assert!(count > 90, "{count} examples were found");
}

#[test]
fn command_lines_in_documents_are_ones_that_the_program_takes() {
    let mut count = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap().replace("\\\n", " ");
        let mut inside = false;
        for line in text.lines() {
            if line.starts_with("```") {
                inside = !inside && !line.ends_with("json");
            } else if inside && line.starts_with("git handoff ") {
                assert_parses(line);
                count += 1;
            }
        }
    }
    assert!(count > 8, "{count} command lines were found");
}

#[test]
fn commands_that_are_named_exist() {
    let command = git_handoff::command();
    let documents = documents().into_iter().map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        (path.display().to_string(), text)
    });
    for (path, text) in documents.chain(sources("src")) {
        for rest in text.split("`git handoff ").skip(1) {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let name = &rest[..end.unwrap_or(rest.len())];
            // `{next}` in a hint, COMMAND in prose, -h.
            let other = name.is_empty() || name.starts_with('-') || name == "COMMAND";
            let known = command.find_subcommand(name).is_some();
            assert!(other || known, "{path}: git handoff {name}");
        }
    }
}

/// Who has only the program has no `docs/`.
#[test]
fn messages_name_pages_by_the_command_that_prints_them() {
    let help = read("src/commands/help.rs");
    let (_, pages) = help.split_once("= pages! {").unwrap();
    let (pages, _) = pages.split_once('}').unwrap();
    let (mut named, is_name) = (0, |c: char| c.is_ascii_lowercase() || c == '-');
    for (path, text) in ["src", "crates"].into_iter().flat_map(sources) {
        for rest in text.split("docs/").skip(1) {
            let after = rest.trim_start_matches(is_name);
            let is_embedded = text.contains("include_str!") || path.ends_with("path_pattern.rs");
            assert!(
                is_embedded || !after.starts_with(".md"),
                "{path}: docs/{rest:.40}"
            );
        }
        for rest in text.split("git handoff help ").skip(1) {
            let (page, after) = rest.split_at(rest.find(|c| !is_name(c)).unwrap());
            if after.starts_with(".md") {
                named += 1;
                assert!(
                    pages.contains(&format!("\"{page}\"")),
                    "{path}: help {page}.md"
                );
            }
        }
    }
    assert!(named > 8, "{named} pages are named");
}

#[test]
fn the_tables_of_exit_codes_agree() {
    let known = handoff::base::codes::all().filter(|code| code.kind == "Exit codes");
    let known: BTreeSet<String> = known.map(|code| code.code.to_owned()).collect();
    let page = "docs/codes.md";
    let table = &tables_under(page, "Exit codes")[0];
    let said: BTreeSet<String> = table
        .rows
        .iter()
        .map(|row| row[0].replace('`', ""))
        .collect();
    assert_eq!(said, known, "{page} on the left, the codes on the right");

    let help = git_handoff::full_command();
    let help = help.get_after_help().unwrap().to_string();
    let (_, codes) = help.split_once(":\n").unwrap();
    let numbers = codes.split_whitespace().filter(|w| w.parse::<u8>().is_ok());
    assert_eq!(numbers.map(str::to_owned).collect::<BTreeSet<_>>(), known);
}

fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
    found
}

#[test]
fn words_that_readers_stumbled_over_stay_away() {
    const AWAY: [&str; 9] = [
        "by lot",
        "come again",
        "is no step",
        "strangeness",
        "that is none",
        "unless_lost",
        "unless_taken",
        "match true {",
        "match false {",
    ];
    let documents = documents().into_iter().map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        (path.display().to_string(), text)
    });
    for (path, text) in documents.chain(sources("src")).chain(sources("crates")) {
        for word in AWAY {
            assert!(!text.contains(word), "{path} says {word:?}");
        }
    }
}

/// A heading's name in a link, as code hosts and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim()
        .to_lowercase()
        .replace(|c: char| !c.is_alphanumeric() && !" -_".contains(c), "");
    kept.replace(' ', "-")
}

/// The names of a document's headings. A second one of the same name gets `-1`.
fn anchors(text: &str) -> BTreeSet<String> {
    let (mut found, mut is_code) = (BTreeSet::new(), false);
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) {
            let name = anchor(heading.trim_start_matches('#'));
            let mut names = (0..).map(|n| match n {
                0 => name.clone(),
                n => format!("{name}-{n}"),
            });
            let free = names.find(|name| !found.contains(name));
            found.extend(free);
        }
    }
    found
}

/// Where a document's links and pictures lead, without those to other sites.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if is_code {
            continue;
        }
        for (begin, end) in [("](", ')'), ("src=\"", '"'), ("srcset=\"", '"')] {
            let rest = line.split(begin).skip(1);
            found.extend(rest.map(|rest| rest.split(end).next().unwrap().to_owned()));
        }
    }
    found.retain(|link| !link.contains("://"));
    found
}

#[test]
fn links_lead_somewhere() {
    let mut count = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        let folder = path.parent().unwrap();
        for link in links(&text) {
            let (file, place) = link.split_once('#').unwrap_or((&link, ""));
            // The book holds docs alone.
            let leaves = folder != root() && file.starts_with("..");
            assert!(!leaves, "{}: {link} leads out of docs", path.display());
            let target: PathBuf = match file {
                "" => path.clone(),
                file => folder.join(Path::new(file)),
            };
            assert!(target.exists(), "{}: {link}", path.display());
            if !place.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                assert!(anchors(&text).contains(place), "{}: {link}", path.display());
            }
            count += 1;
        }
    }
    assert!(count > 100, "{count} links were found");
}

#[test]
fn the_book_has_every_page_once() {
    let listed = links(&read("docs/SUMMARY.md"));
    let pages = documents().into_iter();
    let pages = pages.filter(|path| path.starts_with(root().join("docs")));
    let names = pages.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let pages: BTreeSet<String> = names.filter(|name| name != "SUMMARY.md").collect();
    assert_eq!(listed.len(), pages.len(), "{listed:?}");
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), pages);
}

#[test]
fn what_is_read_first_stays_short() {
    let readme = read("README.md");
    assert!(readme.lines().count() <= 120, "README.md is too long");
    for command in [
        "cargo run --profile quick -- demo",
        "scripts/test",
        "scripts/install",
    ] {
        let is_there = readme.lines().any(|line| line.starts_with(command));
        assert!(is_there, "README.md lacks {command}");
    }
    let texts = documents().into_iter().filter_map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        let is_by_hand =
            path.starts_with(root().join("docs")) && !text.starts_with("<!-- Generated ");
        // The tables of figures are what `scripts/bench` prints.
        let is_printed = |line: &&str| path.ends_with("performance.md") && line.starts_with('|');
        is_by_hand.then(|| text.lines().filter(|line| !is_printed(line)).count())
    });
    let lines: usize = texts.sum();
    assert!(lines <= 5000, "docs has {lines} lines written by hand");
}

#[test]
fn every_rule_names_a_test_that_there_is() {
    let rules = |heading: &str| tables_under("docs/rules.md", heading);
    // The small one follows no document.
    let documented = |name: &&str| *name != handoff::templates::SMALL;
    let tables: Vec<Table> = handoff::templates::BUILT_IN
        .into_iter()
        .filter(documented)
        .flat_map(rules)
        .collect();
    let attacks = tables_under("docs/security.md", "Attacks on the ledger");
    assert_eq!(attacks.len(), 1);
    for table in tables.iter().chain(&attacks) {
        assert!(table.rows.len() > 10);
    }
    let named = ["Metrics", "Thresholds", "Attributes"];
    let named = named.map(|what| format!("{what} of the documents"));
    let named = named.map(|heading| tables_under("docs/built-in.md", &heading));
    let named: Vec<Table> = named.into_iter().flatten().collect();
    let all = sources("tests");
    for table in tables.into_iter().chain(attacks).chain(named) {
        for row in &table.rows {
            assert!([3, 4, 6].contains(&row.len()), "{row:?}");
            assert!(row.iter().all(|cell| !cell.trim().is_empty()), "{row:?}");
            let tests = coded(row.last().unwrap());
            assert!(!tests.is_empty(), "{row:?}");
            for test in tests {
                let (file, name) = test.split_once("::").unwrap();
                let file = format!("/{file}.rs");
                let of_file = all.iter().find(|(path, _)| path.ends_with(&file));
                let (_, text) = of_file.unwrap_or_else(|| panic!("there is no file {file}"));
                let is_test = format!("#[test]\nfn {name}() {{");
                assert!(text.contains(&is_test), "there is no test {test}");
            }
        }
    }
}
