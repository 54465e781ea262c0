//! Bad input: refused with its code and place, and the ledger unchanged.

use std::io::Write;
use std::process::{Command, Stdio};

use test_support::contracts::{Format, opening, sample};
use test_support::{TestEnvironment, program};

/// An opening contract with one passage replaced.
fn xml(was: &str, is: &str) -> Vec<u8> {
    let text = opening(88);
    assert!(text.contains(was), "{was}");
    text.replacen(was, is, 1).into_bytes()
}

fn json(was: &str, is: &str) -> Vec<u8> {
    let text = sample("issue-manager-to-prep-agent", Format::Json, 88);
    assert!(text.contains(was), "{was}");
    text.replacen(was, is, 1).into_bytes()
}

/// Fault, document, code of a finding and its line and column.
type Case = (&'static str, Vec<u8>, &'static str, Option<(u32, u32)>);

fn cases() -> Vec<Case> {
    let deep =
        |open: &str, close: &str| (open.repeat(100_000) + &close.repeat(100_000)).into_bytes();
    let bytes = |text: &str, bad: &[u8]| {
        let (before, after) = text.split_once("BAD").unwrap();
        [before.as_bytes(), bad, after.as_bytes()].concat()
    };
    let text = |bad: &[u8]| {
        bytes(
            &String::from_utf8(xml("delivery history as", "BAD")).unwrap(),
            bad,
        )
    };
    let value = |bad: &[u8]| {
        bytes(
            &String::from_utf8(json("delivery history as", "BAD")).unwrap(),
            bad,
        )
    };
    let long = "x".repeat(10_000);
    let agent = |name: &str| xml("<from>issue-manager<", &format!("<from>{name}<"));
    let key = |key: &str| json(": 88,", &format!(": {key},"));
    vec![
        (
            "two roots",
            [opening(88), opening(88)].concat().into_bytes(),
            "xml.syntax",
            Some((16, 1)),
        ),
        (
            "unclosed root",
            xml("</handoff>", ""),
            "xml.syntax",
            Some((16, 1)),
        ),
        (
            "end tag of another",
            xml("</type>", "</kind>"),
            "xml.syntax",
            Some((7, 20)),
        ),
        (
            "undeclared prefix",
            xml("<type>enhancement</type>", "<a:type>bug</a:type>"),
            "xml.namespace",
            Some((7, 4)),
        ),
        (
            "control character",
            text(b"\x1b"),
            "xml.syntax",
            Some((6, 23)),
        ),
        ("null character", text(b"\0"), "xml.syntax", Some((6, 23))),
        ("null reference", text(b"&#0;"), "xml.syntax", Some((6, 23))),
        (
            "control reference",
            text(b"&#x1b;"),
            "xml.syntax",
            Some((6, 23)),
        ),
        ("bad UTF-8", text(b"\xff"), "input.not_utf8", Some((6, 23))),
        (
            "surrogate",
            text(b"\xed\xa0\x80"),
            "input.not_utf8",
            Some((6, 23)),
        ),
        (
            "doctype",
            xml("<handoff>", "<!DOCTYPE handoff>\n<handoff>"),
            "xml.doctype",
            Some((1, 1)),
        ),
        (
            "entity bomb",
            xml(
                "<handoff>",
                "<!DOCTYPE h [<!ENTITY a \"aa\"><!ENTITY b \"&a;&a;\">]><handoff>",
            ),
            "xml.doctype",
            Some((1, 1)),
        ),
        (
            "external entity",
            xml(
                "<handoff>",
                "<!DOCTYPE h SYSTEM \"file:///etc/passwd\"><handoff>",
            ),
            "xml.doctype",
            Some((1, 1)),
        ),
        ("entity", text(b"&nbsp;"), "xml.syntax", Some((6, 23))),
        (
            "duplicate attribute",
            xml("<type>", "<type a='1' a='2'>"),
            "xml.syntax",
            Some((7, 15)),
        ),
        (
            "duplicate element",
            xml("<type>", "<type>bug</type><type>"),
            "field.repeated",
            Some((7, 19)),
        ),
        (
            "duplicate key",
            json("\"to\"", "\"from\": \"x\", \"to\""),
            "json.duplicate_key",
            Some((3, 3)),
        ),
        (
            "two documents",
            [json("{", "{"), b"{}".to_vec()].concat(),
            "json.syntax",
            Some((16, 1)),
        ),
        (
            "bad UTF-8 in JSON",
            value(b"\xff"),
            "input.not_utf8",
            Some((6, 26)),
        ),
        (
            "raw control character",
            value(b"\x1b"),
            "json.syntax",
            Some((6, 26)),
        ),
        (
            "escaped null",
            value(b"\\u0000"),
            "text.control_character",
            Some((6, 18)),
        ),
        ("lone surrogate", value(b"\\ud800"), "json.syntax", None),
        (
            "deep XML",
            deep("<a>", "</a>"),
            "xml.too_deep",
            Some((1, 193)),
        ),
        (
            "deep in a contract",
            xml("<type>", &("<data>".to_owned() + &"<a>".repeat(100_000))),
            "xml.too_deep",
            None,
        ),
        ("deep JSON", deep("[", "]"), "json.too_deep", None),
        ("deep objects", deep("{\"a\":", "}"), "json.too_deep", None),
        ("empty", Vec::new(), "input.empty", None),
        ("white space", b" \n\t ".to_vec(), "input.empty", None),
        (
            "neither",
            b"From: a\nTo: b\n".to_vec(),
            "input.unknown_format",
            Some((1, 1)),
        ),
        (
            "missing field",
            xml("  <priority>medium</priority>\n", ""),
            "field.missing",
            Some((1, 1)),
        ),
        (
            "missing key",
            json("  \"priority\": \"medium\",\n", ""),
            "field.missing",
            Some((1, 1)),
        ),
        (
            "unknown field",
            xml("<type>", "<urgency>now</urgency><type>"),
            "field.unknown",
            Some((7, 3)),
        ),
        (
            "unknown key",
            json("\"type\"", "\"urgency\": 1, \"type\""),
            "field.unknown",
            None,
        ),
        (
            "wrong type",
            json(": 88,", ": \"eighty\","),
            "field.type",
            None,
        ),
        (
            "wrong type in XML",
            xml(">88<", ">eighty<"),
            "field.type",
            Some((5, 3)),
        ),
        (
            "bad enumeration",
            xml(">medium<", ">urgent<"),
            "field.value",
            Some((8, 3)),
        ),
        ("issue with a path", key("\"../../x\""), "field.type", None),
        (
            "issue with a newline",
            key("\"1\\nIssue: 9\""),
            "field.type",
            None,
        ),
        (
            "issue of 10,000 characters",
            key(&format!("\"{long}\"")),
            "field.type",
            None,
        ),
        ("issue zero", key("0"), "field.range", None),
        (
            "agent with a path",
            agent("../prep"),
            "agent.name",
            Some((2, 3)),
        ),
        (
            "agent with a newline",
            agent("prep&#10;To: x"),
            "agent.name",
            Some((2, 3)),
        ),
        (
            "agent with a control character",
            json("\"issue-manager\"", "\"a\\u0007b\""),
            "text.control_character",
            Some((2, 11)),
        ),
        (
            "agent of 10,000 characters",
            agent(&long),
            "agent.name",
            Some((2, 3)),
        ),
        (
            "agent unknown",
            agent("stranger"),
            "agent.unknown",
            Some((2, 3)),
        ),
        ("no agent", agent(""), "", Some((2, 3))),
        (
            "no root of the protocol",
            xml("<handoff>", "<handover>"),
            "xml.syntax",
            None,
        ),
        (
            "mark left",
            xml("medium", "{{fill: priority}}"),
            "field.unfilled",
            Some((8, 3)),
        ),
    ]
}

/// The program, which is ended once it has used a processor for five seconds.
fn bounded(env: &TestEnvironment, args: &[&str]) -> Command {
    let mut command = env.command("sh");
    command.args(["-c", "ulimit -t 5; exec \"$@\"", "sh", program()]);
    command.args(args);
    command
}

#[test]
fn each_fault_is_found_where_it_is_and_nothing_is_recorded() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let tip = env.tip();
    let mut wrong = String::new();
    for (name, document, code, place) in cases() {
        for (command, status) in [("send", 3), ("check", 3)] {
            let args = [command, "-", "--json"];
            let ran = env.run(bounded(&env, &args), &args, Some(document.as_ref()));
            let answer = ran.json();
            assert_eq!(answer["ok"], false, "{name}");
            let error = &answer["error"];
            let findings = error["findings"].as_array().unwrap();
            let found = findings.iter().any(|f| {
                let at = |field: &str| f[field].as_u64();
                let here = place.is_none_or(|(line, column)| {
                    at("line") == Some(line.into()) && at("column") == Some(column.into())
                });
                (code.is_empty() || f["code"] == code) && here && f["severity"] == "error"
            });
            if ran.status != status || !found {
                let shown: Vec<String> = findings
                    .iter()
                    .take(4)
                    .map(|f| {
                        format!(
                            "    {}:{} {} {}",
                            f["line"],
                            f["column"],
                            f["code"],
                            f["message"]
                                .to_string()
                                .chars()
                                .take(90)
                                .collect::<String>()
                        )
                    })
                    .collect();
                wrong += &format!(
                    "{name}: {command} exits {}, and finds\n{}\n",
                    ran.status,
                    shown.join("\n")
                );
            }
            assert!(
                ran.stdout.len() < 20_000,
                "{name}: {} bytes",
                ran.stdout.len()
            );
        }
        // For people: no control characters, and no flood.
        let ran = env.handoff_with(&["send", "-"], &document).exits(3);
        assert!(ran.stderr.len() < 20_000 && ran.stdout.is_empty(), "{name}");
        assert!(
            !ran.stderr.contains(|c: char| c.is_control() && c != '\n'),
            "{name}: {:?}",
            ran.stderr
        );
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(env.tip(), tip);
    env.assert_sound();
}

#[test]
fn all_findings_are_told_not_just_the_first() {
    let env = TestEnvironment::with_ledger();
    let contract = opening(88)
        .replace(">88<", ">none<")
        .replace("medium", "urgent")
        .replace("delivery history as", "{{fill: what}}")
        .replace("  <type>enhancement</type>\n", "");
    insta::assert_snapshot!(env.send(contract).exits(3).shown, @"
    $ git handoff send -
    --- stderr
    error: the contract was refused
      1:1 /handoff/type field.missing `type` is missing
          add `<type>feature|bug|enhancement|refactor|chore</type>`: Kind of work: feature, bug, enhancement, refactor or chore
      5:3 /handoff/issue_number field.type expected a whole number, not `none`
          Number of the issue, a whole number from 1 up
      6:3 /handoff/issue_title field.unfilled this place is not filled in yet
          write here: what
      7:3 /handoff/priority field.value `urgent` is not one of `critical`, `high`, `medium`, `low`
          How urgent the work is: critical, high, medium or low
      8:3 /handoff/summary field.unfilled this place is not filled in yet
          write here: what
    hint: fix the contract (see `git handoff check FILE`) and send it again
    --- exit 3
    ");
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let env = TestEnvironment::with_ledger();
    let tip = env.tip();
    let folder = env.root().join("folder");
    std::fs::create_dir(&folder).unwrap();
    env.file("empty.xml", "");
    // Fifty megabytes of a contract that would be well formed.
    let big = opening(88).replace("as a file", &"x".repeat(50 << 20));
    let big = env.file("big.xml", big);
    let mut text = String::new();
    for file in [
        folder.to_str().unwrap(),
        "/dev/null",
        "/dev/zero",
        &big,
        &env.file("empty.xml", ""),
    ] {
        text += &env.handoff(&["send", file]).exits(3).shown;
        env.handoff(&["check", file]).exits(3);
    }
    text += &env.handoff(&["send", "/nowhere/x.xml"]).exits(6).shown;
    text += &env.handoff(&["check", "/nowhere/x.xml"]).exits(6).shown;
    insta::assert_snapshot!(text, @r#"
    $ git handoff send [root]/folder
    --- stderr
    error: "[root]/folder" is a folder, not a file
       input.not_a_file "[root]/folder" is a folder, not a file
    hint: see `git handoff explain contract_refused`
    --- exit 3
    $ git handoff send /dev/null
    --- stderr
    error: "/dev/null" is a device or a socket, not a file
       input.not_a_file "/dev/null" is a device or a socket, not a file
    hint: see `git handoff explain contract_refused`
    --- exit 3
    $ git handoff send /dev/zero
    --- stderr
    error: "/dev/zero" is a device or a socket, not a file
       input.not_a_file "/dev/zero" is a device or a socket, not a file
    hint: see `git handoff explain contract_refused`
    --- exit 3
    $ git handoff send [root]/big.xml
    --- stderr
    error: the contract was refused
       input.too_large the contract has 1048577 bytes, 1048576 are allowed
          keep large content in files and name them as artifacts
    hint: fix the contract (see `git handoff check FILE`) and send it again
    --- exit 3
    $ git handoff send [root]/empty.xml
    --- stderr
    error: the contract was refused
       input.empty the contract is empty
    hint: fix the contract (see `git handoff check FILE`) and send it again
    --- exit 3
    $ git handoff send /nowhere/x.xml
    --- stderr
    error: "/nowhere/x.xml" cannot be read: No such file or directory (os error 2)
    hint: see `git handoff explain no_file`
    --- exit 6
    $ git handoff check /nowhere/x.xml
    /nowhere/x.xml: 1 fault (contract)
       input.not_found "/nowhere/x.xml" cannot be read: No such file or directory (os error 2)
    --- exit 6
    "#);
    // Endless input is read no further than the cap, but for what a pipe holds.
    let mut command = env.program(&["send", "-"]);
    command.stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut written = 0;
    while stdin.write_all(&[0; 4096]).is_ok() {
        written += 4096;
    }
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(written < 2 << 20, "{written} bytes");
    assert_eq!(env.tip(), tip);
}

#[test]
fn names_on_the_command_line_are_checked_before_anything_else() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let tip = env.tip();
    let long = "x".repeat(10_000);
    let bad = [
        "",
        "../87",
        "87/..",
        "8 7",
        "87\n",
        "a\nIssue: 9",
        "\u{1b}[31m",
        "é",
        ".87",
        "-87x",
        "87.git/",
        &long,
    ];
    for name in bad {
        let id = format!("{name}.1");
        let runs: [&[&str]; 8] = [
            &["status", "--", name],
            &["context", "--", name],
            &["claim", "--as", "prep-agent", "--", &id],
            &["show", "--", &id],
            &["log", "--", name],
            &["list", "--issue=", "--issue", "x"],
            &[
                "new",
                "--from",
                "prep-agent",
                "--to",
                "implementer-agent",
                &format!("--issue={name}"),
            ],
            &["claim", "87.1", &format!("--as={name}")],
        ];
        for args in runs {
            // Dots are fine in an agent's name, and an empty one is none.
            let ran = env.handoff(args);
            assert_eq!(ran.status, 2, "{name:?}: {}", ran.shown);
            assert!(
                ran.stderr.len() < 1_000,
                "{name:?}: {} bytes",
                ran.stderr.len()
            );
            assert!(!ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
        }
    }
    for id in [
        "87.0",
        "87.01",
        "87.-1",
        "87.x",
        "87.",
        ".1",
        "87.1.1",
        "87.99999999999",
        "87.4294967296",
    ] {
        env.handoff(&["show", "--", id]).exits(2);
    }
    for branch in [
        "", "a..b", "a b", "-x", "x.lock", "HEAD", "a~1", "@{-1}", "/x", "a\nb",
    ] {
        env.handoff(&["status", &format!("--branch={branch}")])
            .exits(2);
    }
    assert_eq!(env.tip(), tip);
}
