//! `prime`: what the page costs an agent, as a real tokenizer counts it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::tools::AGENT;

/// What a page may cost.
const MOST: usize = 1500;

fn prime(env: &TestEnvironment, agent: &str) -> String {
    env.handoff(&["prime", "--as", agent]).success().stdout
}

/// Asserts that none of these pages costs too much.
#[track_caller]
fn assert_small(pages: &[(String, String)]) {
    let texts: Vec<String> = pages.iter().map(|(_, text)| text.clone()).collect();
    // A real tokenizer's: the larger count of two encodings.
    let counts = AGENT.run("count-tokens.mjs", &[], &json!(texts).to_string());
    let counts: Vec<usize> = serde_json::from_str(&counts).unwrap();
    assert_eq!(counts.len(), pages.len());
    for ((name, text), count) in pages.iter().zip(counts) {
        assert!(count > 20, "{name}: {count} tokens");
        assert!(count < MOST, "{name}: {count} tokens\n{text}");
    }
}

fn samples(protocol: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let folder = folder.join(protocol).join("valid");
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    found
}

fn agents(protocol: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let path = root.join(protocol).join("protocol.json");
    let protocol: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let agents = protocol["agents"].as_array().unwrap().iter();
    agents
        .map(|a| a["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_agent_of_every_protocol_is_told_its_part_in_few_tokens() {
    let mut pages = Vec::new();
    let (mut claims, mut templates) = (0, 0);
    for protocol in handoff::templates::BUILT_IN {
        let env = TestEnvironment::with_repository();
        env.handoff(&["init", "--protocol", protocol]).success();
        env.pace(0);
        let mut tell = |env: &TestEnvironment, when: &str| {
            for agent in agents(protocol) {
                let page = prime(env, &agent);
                let first = format!("You are {agent} (");
                assert!(page.starts_with(&first), "{protocol}: {page}");
                assert!(page.lines().next().unwrap().contains(protocol), "{page}");
                templates += usize::from(page.contains(" The whole contract: "));
                pages.push((format!("{protocol}, {agent}, {when}"), page));
            }
        };
        tell(&env, "before any contract");
        for (number, path) in samples(protocol).iter().enumerate() {
            // Which of them may be sent now is for the protocol to say.
            let issue = format!("t-{number}");
            let path = path.to_str().unwrap();
            let sent = env.handoff(&["send", path]);
            if sent.status != 0 {
                env.handoff(&["send", path, "--issue", &issue]);
            }
        }
        tell(&env, "with work that waits");
        for agent in agents(protocol) {
            let claimed = env.handoff(&["claim", "--next", "--as", &agent]);
            claims += usize::from(claimed.status == 0);
        }
        tell(&env, "with work that is held");
    }
    assert!(claims >= 8, "{claims}");
    assert!(templates > 20, "{templates}");
    assert_small(&pages);
}

/// Letters in an order that no tokenizer knows, words that could be words, and other scripts.
/// The same in one line, of characters that are seen.
fn line(seed: u64, length: usize) -> String {
    let all = noise(seed, length);
    let seen = |c: &char| !c.is_control() && !handoff::base::text::is_misleading(*c);
    all.chars().filter(seen).collect()
}

fn noise(seed: u64, length: usize) -> String {
    let mut state = seed;
    let mut draw = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let sets: [&str; 6] = [
        "qxzjkvwbQXZJKVW",
        "abcdefghijklmnopqrstuvwxyz0123456789",
        "{}[]()#$%^&*_+=~`|;:!?.,-/",
        "漢字仮名交文龍鬱麤",
        "𒀀𒀁𒀂𒀃𒀄",
        "\u{301}\u{30c}é\u{202e}",
    ];
    let mut text = String::new();
    while text.chars().count() < length {
        match draw(sets.len() + 2) {
            kind if kind < sets.len() => {
                let set: Vec<char> = sets[kind].chars().collect();
                (0..20).for_each(|_| text.push(set[draw(set.len())]));
            }
            _ => {
                let (c, v): (Vec<char>, Vec<char>) = (
                    "bcdfghklmnprstvw".chars().collect(),
                    "aeiouy".chars().collect(),
                );
                for n in 0..6 {
                    text.push(if n % 2 == 0 {
                        c[draw(c.len())]
                    } else {
                        v[draw(v.len())]
                    });
                }
            }
        }
        if draw(3) == 0 {
            text.push(' ');
        }
    }
    text
}

/// A name as long as a name may be.
fn long_name(n: usize) -> String {
    format!("Qx{n:02}{}", "zK9_".repeat(15))
}

/// A protocol with as much of everything as fits into its file, in words that no tokenizer knows.
fn write_huge_protocol(folder: &Path, rename: impl Fn(&str) -> String) {
    let path = folder.join("protocol.json");
    let text = rename(&fs::read_to_string(&path).unwrap());
    let mut protocol: Value = serde_json::from_str(&text).unwrap();
    protocol["name"] = json!("qZ".repeat(32));
    let sender = long_name(1);
    for agent in protocol["agents"].as_array_mut().unwrap() {
        agent["role"] = json!(line(1, 3000));
        if agent["id"] == sender {
            agent["allowed"] = (0..300).map(|n| noise(n, 60)).collect();
            agent["forbidden"] = (300..600).map(|n| noise(n, 60)).collect();
            agent["paths"] = (0..300)
                .map(|n| format!("src/{}/{n}", "xqZ9".repeat(20)))
                .collect();
        }
    }
    for n in 10..60 {
        let other = long_name(n);
        let agent = json!({ "id": other, "role": "x", "kind": "specialist" });
        protocol["agents"].as_array_mut().unwrap().push(agent);
        let routes = protocol["routes"].as_array_mut().unwrap();
        for (from, to) in [(&sender, &other), (&other, &sender)] {
            if n < 40 || *to == sender {
                routes.push(
                    json!({ "from": from, "to": to, "contracts": ["handoff"], "opens": true }),
                );
            } else {
                routes.push(json!({ "from": from, "to": to, "forbidden": noise(7, 900) }));
            }
        }
    }
    for contract in protocol["contracts"].as_array_mut().unwrap() {
        contract["title"] = json!(line(9, 2000));
    }
    fs::write(&path, protocol.to_string()).unwrap();
    for name in ["handoff", "evaluation"] {
        let part = |kind: &str| folder.join(format!("{kind}.json").replace("NAME", name));
        let read = |path: &Path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let (template, schema) = (part("templates/NAME"), part("schemas/NAME.schema"));
        let (mut skeleton, mut rules): (Value, Value) = (read(&template), read(&schema));
        for n in 0..400 {
            skeleton[format!("f{n}")] = json!(noise(n, 80));
            rules["properties"][format!("f{n}")] = json!({ "type": "string" });
        }
        fs::write(&template, skeleton.to_string()).unwrap();
        fs::write(&schema, rules.to_string()).unwrap();
    }
}

#[test]
fn no_protocol_and_no_contract_makes_the_page_long() {
    let env = TestEnvironment::with_repository();
    let folder = env.root().join("protocol");
    let given = folder.to_str().unwrap();
    env.handoff(&["protocol", "copy", "directive", given])
        .success();
    let renamed = [("ResearchGPT", 1), ("DesignGPT", 2), ("MetaGPT", 3)];
    let rename = |text: &str| {
        renamed.iter().fold(text.to_owned(), |text, (name, n)| {
            text.replace(&format!("\"{name}\""), &format!("\"{}\"", long_name(*n)))
        })
    };
    write_huge_protocol(&folder, rename);
    env.handoff(&["init", "--protocol", given]).success();
    let mut pages = vec![("opening".to_owned(), prime(&env, &long_name(1)))];
    let path = samples("directive")
        .into_iter()
        .find(|p| p.ends_with("handoff.json"));
    let contract = rename(&fs::read_to_string(path.unwrap()).unwrap());
    for n in 0..8_u64 {
        let mut contract: Value = serde_json::from_str(&contract).unwrap();
        contract["context_summary"] = json!(noise(n, 2000));
        contract["handoff_id"] = json!(format!("apiary-{n}"));
        let key = format!("Zq{n}{}", "xW7-".repeat(15));
        let file = env.file("contract.json", contract.to_string());
        env.handoff(&["send", &file, "--issue", &key]).success();
    }
    for when in ["waiting", "held", "held by two"] {
        for n in [1, 2, 3, 10, 50] {
            pages.push((format!("{n}, {when}"), prime(&env, &long_name(n))));
        }
        let next = ["claim", "--next", "--as", &long_name(3)];
        env.handoff(&next).success();
    }
    assert_small(&pages);
    for (name, page) in &pages {
        assert!(page.len() > 500, "{name}: {page}");
        assert!(
            page.contains("\n1. git handoff ") || page.contains("To wait for work"),
            "{page}"
        );
    }
    let is_cut = |(_, page): &(String, String)| page.contains(", which `new` prints)");
    assert!(pages.iter().any(is_cut), "{}", pages[2].1);
    let data = env.data(&["prime", "--as", &long_name(3)]);
    let cut: Vec<&str> = data["cut"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cut| cut["command"].as_str().unwrap())
        .collect();
    assert!(
        cut.iter().any(|c| c.starts_with("git handoff inbox ")),
        "{cut:?}"
    );
    assert!(
        cut.iter().any(|c| c.starts_with("git handoff new ")),
        "{cut:?}"
    );
}
