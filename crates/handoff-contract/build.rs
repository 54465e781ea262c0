//! Turns the rules for secrets into tables, so that a process that screens a contract parses none.
//!
//! The rules are those of the crate `nosecrets-rules` and the project's own, in the same form; an own
//! rule takes the place of the crate's of the same id.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use nosecrets_rules::{Rule, Severity, load_builtin_rules, parse_rules};

const OWN: &str = "src/secrets/rules.toml";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={OWN}");
    let mut rules: BTreeMap<String, Rule> = BTreeMap::new();
    let own = parse_rules(&fs::read_to_string(OWN)?, OWN)?;
    for rule in load_builtin_rules()?.into_iter().chain(own) {
        rules.insert(rule.id.clone(), rule);
    }
    // Words by the rules that they call for. A rule's keyword may be several words, all of which are needed.
    let mut words: Vec<String> = Vec::new();
    let mut code = String::from("static RULES: &[Rule] = &[\n");
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
            "Rule {{ id: {:?}, name: {:?}, pattern: {:?}, form: Form::{form}, \
             needs: &{}, allowed: &{:?} }},",
            rule.id,
            rule.name,
            rule.pattern,
            listed(&needs),
            allow.patterns,
        )?;
    }
    code += "];\n";
    let mut order: Vec<usize> = (0..words.len()).collect();
    order.sort_by_key(|&at| pair(&words[at]));
    code += "static WORDS: &[Word] = &[\n";
    for at in order {
        writeln!(
            code,
            "Word {{ pair: {}, text: {:?}, number: {at} }},",
            pair(&words[at]),
            words[at]
        )?;
    }
    code += "];\n";
    let target = Path::new(&env::var("OUT_DIR")?).join("secret_rules.rs");
    fs::write(target, code)?;
    Ok(())
}

fn listed(needs: &[Vec<usize>]) -> String {
    let each: Vec<String> = needs.iter().map(|all| format!("&{all:?}")).collect();
    format!("[{}]", each.join(", "))
}

/// The first two characters, upper and lower case alike, in ten bits; as in `rules.rs`.
fn pair(word: &str) -> u16 {
    let bytes = word.as_bytes();
    // One of a single character only counts where another word stands too; see `words_in`.
    let second = bytes.get(1).copied().unwrap_or_default();
    u16::from(bytes[0] & 31) << 5 | u16::from(second & 31)
}
