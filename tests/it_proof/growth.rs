//! Every reader at a quarter of its cap and at its cap, with the worst input that we could think of
//! for it: four times the input takes at most six times the instructions, which valgrind counts.
//!
//! What a run takes without the input is taken off. The short form has two readers, and smaller
//! inputs; of the long form each case is a reader, so that the first run of all takes a while.

use std::fs;
use std::io::{BufRead, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use test_support::contracts::opening;
use test_support::proof::Proof;
use test_support::running::Running;
use test_support::team::Folder;
use test_support::{TestEnvironment, program, tamper};

/// Four times as much may take so many times the instructions.
const MOST: f64 = 6.0;

/// The cap of contracts and of a protocol's files.
const CONTRACT: usize = 1 << 20;

/// How an input gets to its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// `check FILE`
    Check,
    /// `protocol check FOLDER`, as its definition
    Protocol,
    /// `protocol check FOLDER`, as the schema of a contract
    Schema,
    /// `github event --file FILE`
    Event,
    /// a line to `mcp`
    Line,
    /// `protocol check FOLDER`, as its list of keys
    Signers,
    /// `hook pre-commit`, as the paths of git's index
    Index,
    /// `show ISSUE`, as the issue's stored file
    Issue,
    /// `serve`, as the head of a request
    Request,
}

/// A reader's worst input: its name, its way, its cap, and how it is made for a size.
type Reader = (&'static str, Way, usize, fn(usize) -> String);

const READERS: [Reader; 27] = [
    ("a token in each value of JSON", Way::Check, CONTRACT, |n| {
        contract("requirements", &json!(tokens(n)))
    }),
    (
        "a token in each element of XML",
        Way::Check,
        CONTRACT,
        |n| {
            let all = tokens(n / 2).into_iter();
            let all = all.map(|token| format!("<requirement>{token}</requirement>"));
            xml(&format!(
                "<requirements>{}</requirements>",
                all.collect::<String>()
            ))
        },
    ),
    (
        "text that is full of names of secrets",
        Way::Check,
        CONTRACT,
        |n| "token=".repeat(n / 6),
    ),
    ("unknown keys of JSON", Way::Check, CONTRACT, |n| {
        many(
            n,
            14,
            "{\"from\":\"issue-manager\"",
            |i| format!(",\"k{i}\":1"),
            "}",
        )
    }),
    ("repeated keys of JSON", Way::Check, CONTRACT, |n| {
        many(
            n,
            8,
            "{\"from\":\"issue-manager\"",
            |_| ",\"a\":1".to_owned(),
            "}",
        )
    }),
    ("wrong items of JSON", Way::Check, CONTRACT, |n| {
        contract("requirements", &json!(vec![1; n / 3]))
    }),
    ("deep JSON, again and again", Way::Check, CONTRACT, |n| {
        let deep = format!("{}{}", "[".repeat(60), "]".repeat(60));
        many(n, 121, "{\"a\":[1", |_| format!(",{deep}"), "]}")
    }),
    ("copied choices", Way::Check, CONTRACT, |n| {
        contract(
            "requirements",
            &json!(vec!["bug|enhancement|feature"; n / 27]),
        )
    }),
    (
        "marks that are left to fill in",
        Way::Check,
        CONTRACT,
        |n| contract("requirements", &json!(vec!["<fill in: x>"; n / 16])),
    ),
    ("escapes of JSON", Way::Check, CONTRACT, |n| {
        contract("summary", &json!("\u{1}\"".repeat(n / 9)))
    }),
    ("unknown elements of XML", Way::Check, CONTRACT, |n| {
        xml(&many(n, 11, "", |i| format!("<a{i}/>"), ""))
    }),
    ("elements of one name", Way::Check, CONTRACT, |n| {
        xml(&"<summary/>".repeat(n / 10))
    }),
    (
        "elements with all the attributes they may have",
        Way::Check,
        CONTRACT,
        |n| {
            let all: String = (0..60).map(|i| format!(" a{i}=\"\"")).collect();
            xml(&format!("<a{all}/>").repeat(n / 460))
        },
    ),
    ("references of XML", Way::Check, CONTRACT, |n| {
        xml(&format!("<summary>{}</summary>", "&#65;".repeat(n / 5)))
    }),
    ("sections of Markdown", Way::Check, CONTRACT, |n| {
        many(
            n,
            15,
            "HANDOFF: A → B\n\n",
            |i| format!("SECTION{i}:\nx\n\n"),
            "",
        )
    }),
    ("items of Markdown", Way::Check, CONTRACT, |n| {
        many(
            n,
            7,
            "HANDOFF: A → B\n\nITEMS:\n",
            |_| "- a: b\n".to_owned(),
            "",
        )
    }),
    ("agents of a protocol", Way::Protocol, CONTRACT, |n| {
        let agent = |i| json!({"id": format!("a{i}"), "role": "r", "kind": "specialist"});
        definition("/agents", (0..n / 45).map(agent).collect())
    }),
    (
        "words that an agent may and may not do",
        Way::Protocol,
        CONTRACT,
        |n| {
            let words: Vec<Value> = (0..n / 20).map(|i| json!(format!("w{i}"))).collect();
            let agent = json!({"id": "a", "role": "r", "kind": "specialist", "allowed": words, "forbidden": words});
            definition("/agents", vec![agent])
        },
    ),
    ("routes of a protocol", Way::Protocol, CONTRACT, |n| {
        let route =
            |i| json!({"from": "prep-agent", "to": "fixer-agent", "contracts": [format!("x{i}")]});
        definition("/routes", (0..n / 65).map(route).collect())
    }),
    ("patterns of a schema", Way::Schema, CONTRACT / 4, |n| {
        let all = (0..n / 50).map(|i| {
            (
                format!("p{i}"),
                json!({"pattern": format!("^(([a-z]+)*x{i})*$")}),
            )
        });
        json!({"properties": all.collect::<serde_json::Map<_, _>>()}).to_string()
    }),
    ("labels of an event", Way::Event, 8 << 20, |n| {
        let labels: Vec<Value> = (0..n / 18)
            .map(|i| json!({"name": format!("l{i}")}))
            .collect();
        let issue =
            json!({"number": 5, "title": "t", "body": "[a](b ".repeat(n / 60), "labels": labels});
        json!({"action": "opened", "issue": issue, "repository": {"full_name": "a/b"}}).to_string()
    }),
    ("a line to the server of tools", Way::Line, CONTRACT, |n| {
        let arguments = json!({"contract": contract("requirements", &json!(tokens(n)))});
        let params = json!({"name": "handoff_check", "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
            + "\n"
    }),
    ("keys that may sign", Way::Signers, CONTRACT, |n| {
        many(
            n,
            100,
            "",
            |i| format!("agent-{i:06}@handoff.invalid {KEY}\n"),
            "",
        )
    }),
    ("patterns of one key", Way::Signers, CONTRACT, |n| {
        let all: Vec<String> = (0..n / 12).map(|i| format!("*a*{i:06}*")).collect();
        format!("{} {KEY}\n", all.join(","))
    }),
    ("files in git's index", Way::Index, 8 << 20, |n| {
        let blob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        many(n, 64, "", |i| format!("100644 {blob}\tsrc/{i:09}.rs\n"), "")
    }),
    ("facts of a stored issue", Way::Issue, CONTRACT, |n| {
        let facts = (0..n / 20).map(|i| (format!("f{i:06}"), json!("v")));
        json!(facts.collect::<serde_json::Map<_, _>>()).to_string()
    }),
    // As many as are read, and as long as leaves room for the rest of the head.
    ("headers of a request", Way::Request, 15 << 10, |n| {
        let text = "a".repeat((n / 60).saturating_sub(8));
        (0..60).map(|i| format!("X{i:02}: {text}\r\n")).collect()
    }),
];

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHvPSgLr0cCoC3sSqM2x2xH4qEiDD6XySjBA4ppr9Ytb";

/// Distinct texts of about `n` bytes in all, each of which looks like a secret.
fn tokens(n: usize) -> Vec<String> {
    let token = |i| format!("gh{}{i:05}Qv9LmT4zRb7WnY1cD5eF6gH8jK0aBcD", "p_");
    (0..n * 9 / 10 / 43).map(token).collect()
}

fn many(n: usize, each: usize, start: &str, one: impl Fn(usize) -> String, end: &str) -> String {
    let all: String = (0..n / each).map(one).collect();
    format!("{start}{all}{end}")
}

fn contract(key: &str, value: &Value) -> String {
    json!({"from": "issue-manager", "to": "prep-agent", key: value}).to_string()
}

fn xml(inside: &str) -> String {
    format!("<handoff><from>issue-manager</from><to>prep-agent</to>{inside}</handoff>")
}

/// A built-in definition with more in one of its lists.
fn definition(pointer: &str, more: Vec<Value>) -> String {
    let path = test_support::project().join("templates/issue-to-pr/protocol.json");
    let mut definition: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let list = definition
        .pointer_mut(pointer)
        .unwrap()
        .as_array_mut()
        .unwrap();
    list.extend(more);
    definition.to_string()
}

/// Puts an input where a command reads it: the command.
fn prepared(env: &TestEnvironment, way: Way, input: &str) -> Vec<String> {
    let line = match way {
        Way::Check => format!("check {} --protocol issue-to-pr", env.file("input", input)),
        Way::Protocol | Way::Schema | Way::Signers => {
            let folder = env.root().join("protocol");
            if folder.exists() {
                fs::remove_dir_all(&folder).unwrap();
            }
            let folder = Folder::copy(env, "issue-to-pr", "protocol");
            let file = match way {
                Way::Schema => "schemas/issue-manager-to-prep-agent.schema.json",
                Way::Signers => "allowed_signers",
                _ => "protocol.json",
            };
            folder.write(file, input);
            format!("protocol check {}", folder.path())
        }
        Way::Event => {
            let file = env.file("input", input);
            format!("github event --dry-run --name issues --delivery x1 --file {file}")
        }
        Way::Line => "mcp".to_owned(),
        Way::Index => {
            let _ = fs::remove_file(env.repo().join(".git/index"));
            give(env, &["update-index", "--index-info"], input);
            "hook pre-commit".to_owned()
        }
        Way::Issue => {
            let facts: Value = serde_json::from_str(input).unwrap();
            let path = format!("{}/issue.json", tamper::folder(87));
            let stored = env.git(&env.repo(), &["show", &format!("{STARTED}:{path}")]);
            let mut issue: Value = serde_json::from_str(&stored).unwrap();
            issue["facts"] = facts;
            let issue = issue.to_string();
            let on = env.git(&env.repo(), &["rev-parse", STARTED]);
            let (on, size) = (on.trim(), issue.len());
            let commit = format!(
                "commit refs/heads/handoffs\ncommitter A <a@b.c> 1772604000 +0000\ndata 1\nA\n\
                 from {on}\nM 100644 inline {path}\ndata {size}\n{issue}\n"
            );
            give(env, &["fast-import", "--quiet", "--force"], &commit);
            "show 87 --json".to_owned()
        }
        Way::Request => "serve".to_owned(),
    };
    line.split(' ').map(str::to_owned).collect()
}

/// The tag of the ledger as it was at first.
const STARTED: &str = "started";

/// Runs git, which reads this.
fn give(env: &TestEnvironment, args: &[&str], input: &str) {
    let mut command = env.command("git");
    command.args(args);
    env.run(command, args, Some(input.as_bytes())).success();
}

/// The instructions of one run of the program on an input.
fn instructions(env: &TestEnvironment, way: Way, input: &str) -> f64 {
    let line = prepared(env, way, input);
    let mut command = env.command("valgrind");
    command.args([
        "--tool=cachegrind",
        "--cache-sim=no",
        "--cachegrind-out-file=/dev/null",
        program(),
    ]);
    command.args(&line);
    let told = if way == Way::Request {
        let mut served = Running::silent(command);
        let mut line = String::new();
        served.lines.read_line(&mut line).unwrap();
        let port = line.trim().trim_end_matches('/').rsplit(':').next();
        let port: u16 = port.unwrap().parse().unwrap();
        for _ in 0..REQUESTS {
            let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let head = format!("GET /tip HTTP/1.1\r\nHost: localhost:{port}\r\n{input}\r\n");
            client.write_all(head.as_bytes()).unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        }
        served.interrupt();
        served.end().2
    } else {
        let stdin = (way == Way::Line).then_some(input.as_bytes());
        env.run(command, &["valgrind"], stdin).stderr
    };
    let counted = told.lines().find_map(|line| line.split_once("I   refs:"));
    let counted = counted.unwrap_or_else(|| panic!("valgrind counted nothing:\n{told}"));
    counted.1.trim().replace(',', "").parse().unwrap()
}

/// How many requests are sent, so that what threads do by chance counts little.
const REQUESTS: usize = 20;

#[test]
fn prove_growth() {
    let mut proof = Proof::new("growth", 2);
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.git(&env.repo(), &["tag", STARTED, "handoffs"]);
    let part = if proof.is_long() { 1 } else { 32 };
    let (mut runs, mut worst) = (0, 0.0_f64);
    while let Some(case) = proof.case() {
        let (name, way, cap, make) = READERS[usize::try_from(case % READERS.len() as u64).unwrap()];
        let counts =
            [0, cap / part / 4, cap / part].map(|size| instructions(&env, way, &make(size)));
        let [none, quarter, whole] = counts;
        let times = (whole - none) / (quarter - none);
        assert!(
            times <= MOST,
            "{name}: {times:.1} times the instructions: {counts:?}"
        );
        runs += 3;
        worst = worst.max(times);
    }
    // In hundredths.
    let worst = format!("{:.0}", worst * 100.0).parse().unwrap();
    proof.passed(&[
        ("runs", runs),
        ("% at most of a quarter's instructions", worst),
    ]);
}
