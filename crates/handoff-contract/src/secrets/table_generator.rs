//! Generates `table.rs`, so that no rules are parsed at run time: `UPDATE_REFERENCE=1 cargo test -p
//! handoff-contract table` writes it; without the variable, the test compares it.
//!
//! The rules are those of the crate `nosecrets-rules` and the project's own, which override the
//! crate's by id.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that writes a table"
)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use nosecrets_rules::{Rule, Severity, load_builtin_rules, parse_rules};

use super::rules::pair;

#[test]
fn table_is_what_the_rules_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/secrets/table.rs");
    let expected = table();
    if env::var_os("UPDATE_REFERENCE").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == expected,
        "the table is out of date: UPDATE_REFERENCE=1 cargo test -p handoff-contract table"
    );
}

fn table() -> String {
    let own = parse_rules(include_str!("rules.toml"), "rules.toml").unwrap();
    let common = load_builtin_rules().unwrap();
    let each = common.into_iter().chain(own);
    let rules: BTreeMap<String, Rule> = each.map(|rule| (rule.id.clone(), rule)).collect();
    let mut code = String::from(
        "// Generated from rules.toml and nosecrets-rules; see table_generator.rs.\n\n",
    );
    // The words of each rule. A rule's keyword may be several words, all of which must occur.
    let mut words: Vec<String> = Vec::new();
    code += "static RULES: &[Rule] = &[\n";
    for rule in rules.values() {
        let mut needs: Vec<Vec<usize>> = Vec::new();
        for keyword in &rule.keywords {
            let each = keyword.split(' ').map(|word| {
                words.iter().position(|w| w == word).unwrap_or_else(|| {
                    words.push(word.to_owned());
                    words.len() - 1
                })
            });
            needs.push(each.collect());
        }
        let allow = rule.allow.clone().unwrap_or_default();
        let form = match rule.severity {
            Severity::Critical | Severity::High => "Own",
            Severity::Medium => "Drawn",
            Severity::Low => "Chosen",
        };
        writeln!(
            code,
            "    Rule {{ id: {:?}, name: {:?}, pattern: {:?}, form: Form::{form}, needs: &{}, allowed: &{:?} }},",
            rule.id,
            rule.name,
            rule.pattern,
            listed(&needs),
            allow.patterns,
        )
        .unwrap();
    }
    code += "];\n\nstatic WORDS: &[Word] = &[\n";
    let begins = |word: &str| match *word.as_bytes() {
        // A one-character word counts only if another word is found; see `words_in`.
        [one] => pair(one, 0),
        [one, two, ..] => pair(one, two),
        [] => unreachable!("a keyword has no empty word"),
    };
    let mut order: Vec<usize> = (0..words.len()).collect();
    order.sort_by_key(|&at| begins(&words[at]));
    for at in order {
        let (word, pair) = (&words[at], begins(&words[at]));
        writeln!(
            code,
            "    Word {{ pair: {pair}, text: {word:?}, number: {at} }},"
        )
        .unwrap();
    }
    code + "];\n"
}

fn listed(needs: &[Vec<usize>]) -> String {
    let each: Vec<String> = needs.iter().map(|all| format!("&{all:?}")).collect();
    format!("[{}]", each.join(", "))
}
