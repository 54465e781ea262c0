//! The page about a ledger, looked at with a real browser.

use std::fs;
use std::path::Path;

use crate::pages::{HOSTILE, look, report, troubled};
use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::{Format, opening, prepared, sample};

fn address(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// A browser had nothing to complain of, and asked for nothing but the page.
#[track_caller]
fn assert_quiet(found: &Value, address: &str) {
    assert_eq!(found["complaints"], json!([]));
    let requests = found["requests"].as_array().unwrap();
    assert!(!requests.is_empty());
    for one in requests {
        let one = one.as_str().unwrap();
        assert!(one == address || one == "data:,", "{one}");
    }
}

#[test]
fn the_page_says_what_stands_still_where_since_when_and_why() {
    let env = troubled();
    let (path, _) = report(&env, &[]);
    let at = address(&path);
    let found = look(
        &at,
        &json!({ "steps": [["text", "#attention"], ["text", "h1"], ["evaluate", "document.title"], ["text", "#open"]] }),
    );
    assert_quiet(&found, &at);
    let said = found["answers"][0].as_str().unwrap();
    for needed in [
        // No attempt is left, first of all.
        "90.2\nno attempt left\nExport delivery history as CSV\n503",
        "with implementer-agent; orchestrator's turn",
        "88.2\nfailed",
        "89.2\nwaits for an answer\nExport delivery history as CSV\nWhich encoding?",
        "git handoff answer 89.2 encoding=VALUE --as orchestrator",
        "92.1\nnot claimed",
        "git handoff claim 92.1 --as prep-agent",
        "93.1\nrejected\nExport delivery history as CSV\nIt is 87 again",
        "since 2026-03-02",
    ] {
        assert!(said.contains(needed), "no {needed:?} in:\n{said}");
    }
    let first = said.find("90.2\nno attempt left").unwrap();
    assert!(first < said.find("89.2\n").unwrap(), "{said}");
    assert_eq!(found["answers"][1], "Handoffs of repo");
    let stuck = env.handoff(&["report", "--output", "again.html", "--json"]);
    let count = stuck.success().json()["data"]["attention"].to_string();
    assert_eq!(found["answers"][2], format!("({count}) Handoffs of repo"));
    let open = found["answers"][3].as_str().unwrap();
    assert!(open.contains("implementer-agent"), "{open}");
    assert!(open.contains("■ 90.2"), "{open}");
}

#[test]
fn figures_and_sums_read_as_sentences() {
    let env = TestEnvironment::with_ledger();
    for issue in 1..=4 {
        env.send(opening(issue)).success();
        env.claim(&format!("{issue}.1"), "prep-agent").success();
        env.handoff(&[
            "fail",
            &format!("{issue}.1"),
            "--as",
            "prep-agent",
            "--code",
            if issue == 4 { "Other" } else { "Timeout" },
            "--message",
            &format!("run {issue} took too long"),
        ])
        .success();
    }
    env.wait_minutes(300);
    let (path, _) = report(&env, &[]);
    let at = address(&path);
    let found = look(
        &at,
        &json!({ "steps": [
            ["evaluate", "document.querySelector('.figures').textContent"],
            ["text", ".sums"],
            ["count", ".stuck li"],
        ] }),
    );
    assert_quiet(&found, &at);
    let figures = found["answers"][0].as_str().unwrap();
    assert!(figures.contains("4 of 4"), "{figures}");
    let sums = found["answers"][1].as_str().unwrap();
    assert!(
        sums.starts_with("prep-agent: 4 failed (3 Timeout, and one other reason), oldest 5 h"),
        "{sums}"
    );
    assert_eq!(found["answers"][2], 4, "the rows stay");
}

#[test]
fn names_in_a_table_are_not_broken() {
    let env = troubled();
    let (path, _) = report(&env, &[]);
    let at = address(&path);
    // How many lines each is on, whatever the window.
    let lines = "[...document.querySelectorAll('.agents th')].map((one) => { const range = document.createRange(); range.selectNodeContents(one); \
                 return [new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size, one.textContent.split(' ').length]; }).every(([lines, words]) => lines <= words)";
    for width in [800, 1280, 1600] {
        let plan = json!({ "viewport": { "width": width, "height": 900 }, "steps": [
            ["evaluate", lines],
            ["evaluate", "document.documentElement.scrollWidth <= innerWidth"],
        ] });
        let found = look(&at, &plan);
        assert_eq!(found["answers"], json!([true, true]), "{width}");
    }
}

#[test]
fn the_timeline_begins_with_what_has_stood_longest_and_marks_leases_that_ran_out() {
    let env = TestEnvironment::with_ledger();
    // The oldest of all is held by nobody who gives a sign of life.
    env.send(opening(1)).success();
    env.claim("1.1", "prep-agent").success();
    env.wait_minutes(60 * 24 * 30);
    for issue in 2..=50 {
        env.send(opening(issue)).success();
    }
    let (path, _) = report(&env, &[]);
    let at = address(&path);
    let found = look(
        &at,
        &json!({ "steps": [
            ["count", ".lanes tbody tr"],
            ["text", ".lanes tbody tr"],
            ["count", "#l-1 path.late"],
            ["count", ".lanes path.late"],
            ["text", ".lanes caption"],
            ["evaluate", "document.querySelector('.axis').children.length"],
            ["text", ".legend"],
        ] }),
    );
    assert_quiet(&found, &at);
    let answers = &found["answers"];
    assert_eq!(answers[0], 40);
    let first = answers[1].as_str().unwrap();
    assert!(
        first.starts_with("1 Export delivery history as CSV\n← 2026-")
            && first.contains("lease ran out"),
        "{first}"
    );
    assert_eq!([&answers[2], &answers[3]], [&json!(1), &json!(1)]);
    let caption = answers[4].as_str().unwrap();
    assert!(caption.contains("before the first day drawn"), "{caption}");
    assert_eq!(answers[5], 5);
    let legend = answers[6].as_str().unwrap();
    assert!(
        legend.contains("lease ran out") && legend.contains("dead"),
        "{legend}"
    );
}

#[test]
fn an_issue_shows_its_way_its_times_and_its_contracts() {
    let env = troubled();
    let (path, _) = report(&env, &[]);
    let at = address(&path);
    let found = look(
        &at,
        &json!({ "steps": [
            ["text", "#i-87"],
            ["evaluate", "document.querySelector('#i-87 svg[role=img]').getAttribute('aria-label')"],
            ["evaluate", "document.querySelectorAll('#i-87 .flow .n text').length"],
            ["click", "#h-87\\.1 summary"],
            ["text", "#h-87\\.1 pre"],
            ["text", "#i-88"],
            ["click", "#h-88\\.2 summary"],
            ["text", "#h-88\\.2 pre"],
            ["text", "#i-89"],
            ["evaluate", "document.querySelector('#i-90 .a.dead') !== null"],
        ] }),
    );
    assert_quiet(&found, &at);
    let answers = &found["answers"];
    let issue = answers[0].as_str().unwrap();
    for needed in [
        "Issue 87",
        "issue-to-pr",
        "12 handoffs",
        "completed",
        "working",
        "waiting",
        "87.12",
    ] {
        assert!(issue.contains(needed), "no {needed:?} in:\n{issue}");
    }
    // One that failed once and was retried.
    assert!(issue.contains("Attempt 1 failed"), "{issue}");
    let label = answers[1].as_str().unwrap();
    assert!(
        label.starts_with("Way of issue 87: 12 handoffs between issue-manager, prep-agent"),
        "{label}"
    );
    assert_eq!(answers[2], 12);
    let contract = answers[4].as_str().unwrap();
    for needed in [
        "from          issue-manager\n",
        "issue_number  87\n",
        "requirements\n  - ",
        "claim by prep-agent → in progress",
        "sha256 ",
    ] {
        assert!(contract.contains(needed), "no {needed:?} in:\n{contract}");
    }
    let failed = answers[5].as_str().unwrap();
    for needed in [
        "BuildTimeout",
        "Kept: 1 file",
        "git handoff restore 88.2 --attempt 1",
    ] {
        assert!(failed.contains(needed), "no {needed:?} in:\n{failed}");
    }
    let context = answers[7].as_str().unwrap();
    for needed in [
        "machine",
        "The runner was stopped",
        "build.log",
        "the last lines",
    ] {
        assert!(context.contains(needed), "no {needed:?} in:\n{context}");
    }
    let blocked = answers[8].as_str().unwrap();
    assert!(
        blocked.contains("implementer-agent asked about 89.2: Which encoding? Asked: encoding"),
        "{blocked}"
    );
    assert_eq!(answers[9], true);
}

#[test]
fn contracts_are_text_whatever_they_hold() {
    let env = troubled();
    let long = |number: usize| format!("{number} {}<script>1</script>", "x".repeat(9_900));
    let huge: Vec<String> = (0..95).map(long).collect();
    let mut contract: Value =
        serde_json::from_str(&sample("issue-manager-to-prep-agent", Format::Json, 700)).unwrap();
    contract["requirements"] = json!(huge);
    env.send(contract.to_string()).success();
    let (path, text) = report(&env, &[]);
    // The page has its own script, and no other; no comment, no handler, nothing unseen.
    assert_eq!(text.matches("<script").count(), 1);
    assert_eq!(text.matches("</script").count(), 1);
    for never in ["<img", "<!--", "]]>", "onerror=\"", "\u{202e}", " style="] {
        assert!(!text.contains(never), "{never}");
    }
    assert!(
        text.len() < 1_000_000,
        "a long contract is cut: {}",
        text.len()
    );
    assert!(text.contains("git handoff show 700.1 --contract"));
    let at = address(&path);
    let found = look(
        &at,
        &json!({ "steps": [
            ["evaluate", "document.title"],
            ["click", "#h-666\\.1 summary"],
            ["text", "#h-666\\.1 pre"],
            ["text", "#i-88 li.why"],
            ["evaluate", "document.images.length + document.scripts.length + document.links.length - document.querySelectorAll('a[href^=\"#\"]').length"],
        ] }),
    );
    assert_quiet(&found, &at);
    let answers = &found["answers"];
    assert!(answers[0].as_str().unwrap().ends_with("Handoffs of repo"));
    let shown = answers[2].as_str().unwrap();
    assert!(shown.contains(HOSTILE), "{shown}");
    assert!(shown.contains("\\u{202e}txt.exe"), "{shown}");
    assert!(shown.contains("line\n    </pre>\n    line"), "{shown}");
    assert!(answers[3].as_str().unwrap().contains(HOSTILE));
    // No picture, one script, and no link that leads off the page.
    assert_eq!(answers[4], 1);
}

#[test]
fn nobody_is_kept_out_in_light_or_dark() {
    let env = troubled();
    let (path, _) = report(&env, &[]);
    let at = address(&path);
    for viewport in [
        json!({ "width": 1280, "height": 900 }),
        json!({ "width": 360, "height": 740 }),
    ] {
        let plan = json!({
            "schemes": ["light", "dark"],
            "axe": true,
            "viewport": viewport,
            "steps": [["evaluate", "document.documentElement.scrollWidth <= innerWidth"]],
        });
        let found = look(&at, &plan);
        assert_eq!(found["violations"], json!([]));
        assert_quiet(&found, &at);
        // Nothing has to be scrolled sideways.
        assert_eq!(found["answers"], json!([true, true]));
    }
}

#[test]
fn filters_narrow_down_what_is_shown() {
    let env = troubled();
    let (path, _) = report(&env, &[]);
    let at = address(&path);
    let found = look(
        &at,
        &json!({ "steps": [
            ["text", "#f-count"],
            ["choose", ["#f-state", "blocked"]],
            ["text", "#f-count"],
            ["text", "#index tbody"],
            ["count", "section.issue"],
            ["click", "#f-clear"],
            ["choose", ["#f-protocol", "delegation"]],
            ["count", "#index tbody tr"],
            ["choose", ["#f-protocol", ""]],
            ["choose", ["#f-agent", "closer-agent"]],
            ["count", "#index tbody tr"],
            ["click", "#f-clear"],
            // Words that only a contract has, in any order.
            ["type", ["#f-text", "DISPATCHERS 90.2"]],
            ["wait", ["#f-count", "1 of "]],
            ["text", "#index tbody"],
            // A link to what is filtered out shows it.
            ["evaluate", "document.querySelector('#attention a[href=\"#h-88.2\"]').click()"],
            ["wait", ["#f-count", " issues"]],
            ["evaluate", "document.getElementById('i-88').hidden"],
            ["choose", ["#f-attention", "any"]],
            ["evaluate", "[...document.querySelectorAll('#index tbody tr:not([hidden])')].map((row) => row.dataset.k).sort().join(' ')"],
            // So does the same link once more, which changes no address.
            ["choose", ["#f-state", "blocked"]],
            ["evaluate", "scrollTo(0, 0)"],
            ["evaluate", "document.querySelector('#attention a[href=\"#h-88.2\"]').click()"],
            ["evaluate", "document.getElementById('i-88').hidden"],
            ["evaluate", "(() => { const { top } = document.getElementById('h-88.2').getBoundingClientRect(); return top >= 0 && top < innerHeight; })()"],
        ] }),
    );
    assert_quiet(&found, &at);
    let answers = found["answers"].as_array().unwrap();
    let all: usize = answers[0]
        .as_str()
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(answers[2], format!("1 of {all} issues"));
    assert!(
        answers[3].as_str().unwrap().starts_with("89"),
        "{}",
        answers[3]
    );
    assert_eq!(answers[4], 1);
    assert_eq!(answers[7], 1);
    assert_eq!(answers[10], 1, "closer-agent was in 87 alone");
    assert!(
        answers[14].as_str().unwrap().starts_with("90"),
        "{}",
        answers[14]
    );
    assert_eq!(answers[17], false);
    assert!(
        answers[19].as_str().unwrap().contains("88 89 90 91 92 93"),
        "{}",
        answers[19]
    );
    assert_eq!(answers[23], false);
    assert_eq!(answers[24], true);
}

#[test]
fn filters_are_for_the_whole_page() {
    let env = troubled();
    let (path, _) = report(&env, &[]);
    let at = address(&path);
    let keys = "[...document.querySelectorAll('#index tbody tr:not([hidden])')].map((row) => row.dataset.k).sort().join(' ')";
    let found = look(
        &at,
        &json!({ "steps": [
            ["choose", ["#f-attention", "blocked"]],
            ["evaluate", keys],
            ["count", ".stuck li"],
            ["evaluate", "document.querySelectorAll('.lanes tbody tr:not([hidden])').length"],
            ["evaluate", "[...document.querySelectorAll('.steps li:not([hidden])')].every((one) => one.dataset.i === '89')"],
            ["click", "#f-clear"],
            ["choose", ["#f-findings", "found"]],
            ["evaluate", keys],
            ["count", ".stuck li"],
            ["text", "#f-none"],
            ["click", "#f-clear"],
            ["choose", ["#f-attention", "turn:prep-agent"]],
            ["evaluate", "[...document.querySelectorAll('.stuck li:not([hidden])')].every((one) => one.dataset.n.includes('turn:prep-agent'))"],
            ["click", "#f-clear"],
            ["evaluate", "document.querySelectorAll('[data-i][hidden], [data-k][hidden]').length"],
            // By keyboard alone: a key chooses, and what is chosen applies at once.
            ["evaluate", "document.getElementById('f-attention').focus()"],
            ["press", "ArrowDown"],
            ["evaluate", "document.getElementById('f-attention').value + ' ' + document.documentElement.className"],
        ] }),
    );
    assert_quiet(&found, &at);
    let answers = &found["answers"];
    assert_eq!(answers[1], "89");
    assert_eq!([&answers[2], &answers[3]], [&json!(1), &json!(1)]);
    assert_eq!(answers[4], true);
    assert_eq!(answers[7], "87");
    assert_eq!(answers[8], 0);
    assert_eq!(answers[9], "Nothing that fits the filters needs attention.");
    assert_eq!(answers[12], true);
    assert_eq!(answers[14], 0);
    assert_eq!(answers[17], "any filtered");
}

#[test]
fn a_page_prints_on_few_sheets_without_what_ended() {
    let env = troubled();
    let (path, _) = report(&env, &[]);
    let at = address(&path);
    let steps = json!([
        ["print", null],
        ["media", "print"],
        [
            "evaluate",
            "[...document.querySelectorAll('nav, #filters, .hs details')].filter((one) => one.getClientRects().length).length"
        ],
        ["count", "#i-87"],
        ["count", "section.issue"],
        [
            "evaluate",
            "getComputedStyle(document.body).backgroundColor"
        ],
        // No cell is cut.
        [
            "evaluate",
            "[...document.querySelectorAll('td, th')].every((one) => one.scrollWidth <= one.clientWidth + 1)"
        ],
    ]);
    let plan = json!({ "schemes": ["dark"], "viewport": { "width": 720, "height": 1000 }, "steps": steps });
    let found = look(&at, &plan);
    assert_quiet(&found, &at);
    let answers = &found["answers"];
    assert!(answers[0].as_u64().unwrap() <= 10, "{answers}");
    assert_eq!(answers[2], 0);
    assert_eq!([&answers[3], &answers[4]], [&json!(0), &json!(3)]);
    assert_eq!(answers[5], "rgb(255, 255, 255)");
    assert_eq!(answers[6], true);
    // What was asked for is printed, whatever its state.
    let (path, _) = report(&env, &["--issue", "87"]);
    let plan =
        json!({ "steps": [["media", "print"], ["count", "#i-87"], ["count", "#i-87 .flow"]] });
    let found = look(&address(&path), &plan);
    assert_eq!(found["answers"], json!([null, 1, 1]));
}

#[test]
fn an_issue_tells_its_steps_in_the_order_of_the_log() {
    let env = TestEnvironment::with_ledger();
    // Steps are made in the same second.
    env.pace(0);
    env.send(opening(1)).success();
    env.claim("1.1", "prep-agent").success();
    env.send(prepared(1)).success();
    env.claim("1.2", "implementer-agent").success();
    let fail = ["fail", "1.2", "--as", "implementer-agent", "--code", "E"];
    env.handoff(&[&fail[..], &["--message", "503", "--recoverable"]].concat())
        .success();
    let retry = ["retry", "1.2", "--as", "orchestrator", "--reason", "again"];
    env.handoff(&retry).success();
    let note = ["annotate", "1.2", "--as", "prep-agent", "--note", "late"];
    env.wait_minutes(1);
    env.handoff(&note).success();
    let (path, _) = report(&env, &[]);
    let log = env.handoff(&["log", "1", "--json"]).success().json();
    let steps = log["data"]["steps"].as_array().unwrap().iter().rev();
    let events: Vec<&str> = steps.map(|step| step["event"].as_str().unwrap()).collect();
    assert_eq!(
        events,
        [
            "send", "claim", "send", "claim", "fail", "retry", "annotate"
        ]
    );
    let text = "[...document.querySelectorAll('#i-1 .hs > li')].map((one) => one.textContent.replace(/^[-0-9]+ [0-9:]+ /, ''))";
    let found = look(
        &address(&path),
        &json!({ "steps": [["evaluate", text], ["text", ".steps"]] }),
    );
    let told = found["answers"][0].as_array().unwrap();
    let words = [
        "issue-manager asked prep-agent",
        "prep-agent took 1.1",
        "prep-agent handed on to implementer-agent",
        "implementer-agent took 1.2",
        "Attempt 1 failed at 1.2 with implementer-agent: E 503",
        "orchestrator let 1.2 be tried again: again",
        "prep-agent noted on 1.2: late",
        "Open now: 1.2 pending with implementer-agent",
    ];
    assert_eq!(told.len(), words.len(), "{told:?}");
    for (told, words) in told.iter().zip(words) {
        assert!(told.as_str().unwrap().starts_with(words), "{told}: {words}");
    }
    let newest = found["answers"][1].as_str().unwrap();
    let at = |word: &str| newest.find(word).unwrap();
    assert!(
        at("retry") < at("fail") && at("fail") < at("claim"),
        "{newest}"
    );
}

#[test]
fn a_keyboard_reaches_everything_and_its_place_is_seen() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let (path, _) = report(&env, &[]);
    let at = address(&path);
    let found = look(
        &at,
        &json!({ "steps": [
            ["tab-through", 60],
            ["evaluate", "document.querySelectorAll('a[href], summary, input, select, button').length"],
        ] }),
    );
    assert_quiet(&found, &at);
    let seen = found["answers"][0].as_array().unwrap();
    let names: Vec<&str> = seen
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[0], "a Skip to what needs attention");
    assert_eq!(names[1], "#to-search");
    for one in seen {
        assert_eq!(one["outlined"], true, "{one}");
    }
    for needed in [
        "#f-text",
        "#f-state",
        "#f-agent",
        "#f-protocol",
        "#f-clear",
        "a 87",
        "summary Contract issue-manager-to-prep-agent (xm",
    ] {
        assert!(names.contains(&needed), "no {needed} in {names:?}");
    }
    assert_eq!(found["answers"][1], seen.len(), "{names:?}");
}

#[test]
fn everything_is_readable_without_scripts() {
    let env = troubled();
    let (path, text) = report(&env, &[]);
    let at = address(&path);
    let found = look(
        &at,
        &json!({ "script": false, "steps": [
            ["count", "#filters"],
            ["count", "#index tbody tr"],
            ["count", "section.issue"],
            ["click", "#h-90\\.2 summary"],
            ["text", "#h-90\\.2 pre"],
        ] }),
    );
    assert_quiet(&found, &at);
    let answers = &found["answers"];
    assert_eq!(answers[0], 0, "what does nothing does not show");
    let issues = text.matches("<section class=\"issue\"").count();
    assert_eq!(answers[1], issues);
    assert_eq!(answers[2], issues);
    assert!(answers[4].as_str().unwrap().contains("History"));
}

#[test]
fn the_policy_allows_the_pages_own_script_and_style_alone() {
    let env = TestEnvironment::with_ledger();
    let (_, text) = report(&env, &[]);
    let (_, policy) = text
        .split_once("http-equiv=\"Content-Security-Policy\" content=\"")
        .unwrap();
    let policy = policy.split('"').next().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'sha256-"),
        "{policy}"
    );
    for never in ["unsafe", "connect-src", "http:", "https:", "*"] {
        assert!(!policy.contains(never), "{policy}");
    }
    // A script that is another by one letter does not run.
    let other = text.replacen("'use strict';", "'use strict' ;", 1);
    assert_ne!(other, text);
    let path = env.file("other.html", &other);
    let found = look(
        &format!("file://{path}"),
        &json!({ "steps": [["count", "#filters"]] }),
    );
    assert_eq!(found["answers"][0], 0);
    assert!(
        found["complaints"].to_string().contains("script-src"),
        "{found}"
    );
    // An empty ledger says so.
    assert!(text.contains("Nothing needs attention"));
    assert!(text.contains("There is no issue"));
}

#[test]
fn a_page_about_some_issues_says_so() {
    let env = troubled();
    let (_, text) = report(&env, &["--issue", "88", "--issue", "90"]);
    assert!(text.contains("This page is about 88, 90 only."));
    assert_eq!(text.matches("<section class=\"issue\"").count(), 2);
    assert!(!text.contains(">89.2<"));
    // What is open always has a section; what is completed, if it moved since then.
    let (_, text) = report(&env, &["--since", "1h"]);
    assert!(!text.contains("id=\"i-87\"") && text.contains("id=\"i-88\""));
    assert!(
        text.contains("but one is without a section of its own"),
        "{text}"
    );
    assert!(text.contains("<th scope=\"row\">87 "), "it is listed");
    env.handoff(&["report", "--issue", "4711", "-o", "no.html"])
        .exits(6)
        .says("4711");
    assert!(!env.repo().join("no.html").exists());
}

#[test]
fn a_file_is_replaced_as_a_whole_and_standard_output_gets_the_same() {
    let env = troubled();
    env.pace(0);
    let path = env.root().join("report.html");
    fs::write(&path, "old").unwrap();
    fs::hard_link(&path, env.root().join("kept.html")).unwrap();
    let said = env
        .handoff(&["report", "-o", path.to_str().unwrap()])
        .success();
    assert!(
        said.stdout.contains("things need attention"),
        "{}",
        said.shown
    );
    let written = fs::read_to_string(&path).unwrap();
    // Whoever had the old one open still has it whole.
    assert_eq!(
        fs::read_to_string(env.root().join("kept.html")).unwrap(),
        "old"
    );
    assert!(written.ends_with("</html>\n"));
    assert_eq!(
        env.handoff(&["report", "-o", "-"]).success().stdout,
        written
    );
    env.handoff(&["report", "-o", "-", "--json"]).exits(2);
    env.handoff(&["report", "-o", "no/such/folder.html"])
        .exits(9)
        .says("cannot write");
    let left = fs::read_dir(env.root()).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_str().unwrap().contains(".new")
    });
    assert_eq!(left.count(), 0);
    // Nothing is written to the repository.
    assert_eq!(env.git(&env.repo(), &["status", "--porcelain"]), "");
}

#[test]
fn what_work_took_has_charts_and_a_table() {
    let env = TestEnvironment::with_ledger();
    let usage = |model: &str, cost: f64| {
        let usage = json!({
            "provider": "anthropic", "model": model, "input_tokens": 12_000, "cached_tokens": 9_000,
            "output_tokens": 345, "cost": cost, "currency": "USD",
        });
        format!("--usage={usage}")
    };
    let send = |args: &str, contract: String| {
        env.handoff_with(&["send", "-", args], contract).success();
    };
    send(&usage("opus", 0.25), opening(87));
    env.claim("87.1", "prep-agent").success();
    send(&usage("<script>", 2.5), prepared(87));
    let (path, _) = report(&env, &[]);
    let at = address(&path);
    let open = json!([
        "evaluate",
        "document.querySelectorAll('#cost details').forEach(d => d.open = true)"
    ]);
    let found = look(
        &at,
        &json!({ "axe": true, "steps": [open, ["text", "#cost"], ["text", "#i-87 .meta"]] }),
    );
    assert_quiet(&found, &at);
    let said = found["answers"][1].as_str().unwrap();
    for needed in ["Tokens per hour", "Cost per hour, USD", "2.75", "24,690"] {
        assert!(said.contains(needed), "no {needed:?} in {said}");
    }
    let rows: Vec<&str> = said.lines().filter(|line| line.contains('\t')).collect();
    assert_eq!(
        rows,
        [
            "Agent\tModel\tInput\tCached\tOutput\tCost",
            "prep-agent\tanthropic <script>\t12,000\t9,000\t345\t2.50 USD",
            "issue-manager\tanthropic opus\t12,000\t9,000\t345\t0.25 USD",
        ]
    );
    let meta = found["answers"][2].as_str().unwrap();
    assert!(meta.contains("2.75 USD, 24,690 tokens"), "{meta}");
}

/// An issue of which a person noted a branch and labels.
fn labelled(env: &TestEnvironment, issue: u32, branch: &str, labels: &str) {
    env.send(opening(issue)).success();
    let issue = issue.to_string();
    let by = ["--reason", "sorted", "--as", "maintainer"];
    let labels = format!("labels={labels}");
    env.handoff(&[&["set", &issue, &labels][..], &by].concat())
        .success();
    let fact = format!("branch={branch}");
    env.handoff(&[&["annotate", &issue, "--fact", &fact][..], &by].concat())
        .success();
}

#[test]
fn a_page_is_searched_by_title_label_branch_and_person() {
    let env = TestEnvironment::with_ledger();
    labelled(&env, 2, "feature/csv", &format!("bug,{HOSTILE}"));
    labelled(&env, 10, "feature/xml", "docs");
    env.send(opening(1)).success();
    let cancel = ["cancel", "1.1", "--as", "maintainer", "--reason", "no need"];
    env.handoff(&cancel).success();
    let (path, text) = report(&env, &[]);
    assert_eq!(text.matches("<script").count(), 1);
    let at = address(&path);
    let keys = "[...document.querySelectorAll('#index tbody tr:not([hidden])')].map((row) => row.dataset.k).join(' ')";
    let found = look(
        &at,
        &json!({ "axe": true, "steps": [
            ["choose", ["#f-label", HOSTILE]],
            ["evaluate", keys],
            ["click", "#f-clear"],
            ["choose", ["#f-branch", "feature/xml"]],
            ["evaluate", keys],
            ["click", "#f-clear"],
            ["choose", ["#f-person", "maintainer"]],
            ["evaluate", keys],
            ["click", "#f-clear"],
            ["type", ["#f-title", "DELIVERY history"]],
            ["wait", ["#f-count", "3 issues"]],
            ["type", ["#f-title", "no such"]],
            ["wait", ["#f-count", "0 of 3"]],
            ["click", "#f-clear"],
            ["choose", ["#f-order", "number"]],
            ["evaluate", keys],
            ["evaluate", "document.title + document.images.length"],
            ["text", "#i-2 .meta"],
        ] }),
    );
    assert_quiet(&found, &at);
    assert_eq!(found["violations"], json!([]));
    let answers = &found["answers"];
    assert_eq!(
        [&answers[1], &answers[4], &answers[7], &answers[15]],
        ["2", "10", "1", "1 2 10"]
    );
    assert!(answers[16].as_str().unwrap().ends_with("Handoffs of repo0"));
    let meta = answers[17].as_str().unwrap();
    assert!(meta.contains("branch feature/csv"), "{meta}");
    // The same by options; what is not known is refused.
    let (_, text) = report(&env, &["--label", "docs", "--on", "feature/xml"]);
    assert!(text.contains("<code>label=docs and branch=feature/xml</code>"));
    assert_eq!(text.matches("<section class=\"issue\"").count(), 1);
    let (_, text) = report(&env, &["--where", "title~delivery", "--limit", "2"]);
    assert!(text.contains("It shows the first 2 of 3 issues"), "{text}");
    assert_eq!(text.matches("<section class=\"issue\"").count(), 2);
    env.handoff(&["report", "--priority", "hihg", "-o", "no.html"])
        .exits(2)
        .says("priorities are:");
}

#[test]
fn labels_stand_at_the_lines_of_the_timeline_at_every_width() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(1)).success();
    // Each form of a label: of hours, of days, of months.
    for (minutes, issue) in [(5, 2), (60 * 24 * 3, 3), (60 * 24 * 90, 4)] {
        env.wait_minutes(minutes);
        env.send(opening(issue)).success();
        env.wait_minutes(5);
        let (path, _) = report(&env, &[]);
        let at = address(&path);
        let measured = "(() => {
            const wrong = [];
            const bars = document.querySelector('.lanes tbody svg').getBoundingClientRect();
            for (const axis of document.querySelectorAll('.axis')) {
                let end = -Infinity;
                [...axis.children].forEach((label, i) => {
                    const { left, right, width } = label.getBoundingClientRect();
                    if (!width) return;
                    const at = [left, (left + right) / 2, (left + right) / 2, (left + right) / 2, right][i];
                    const line = bars.left + bars.width * i / 4;
                    if (Math.abs(at - line) > 1) wrong.push(`${label.textContent}: ${at}, not ${line}`);
                    if (left < end + 4) wrong.push(`${label.textContent} overlaps`);
                    if (left < bars.left - 1 || right > bars.right + 1) wrong.push(`${label.textContent} sticks out`);
                    end = right;
                });
            }
            return [wrong, [...document.querySelectorAll('.lanes thead .axis span')].filter((one) => one.getClientRects().length).length];
        })()";
        let widths = [320, 360, 480, 640, 735, 800, 991, 1024, 1280, 1920];
        let mut steps = Vec::new();
        for width in widths {
            let seen = "document.querySelector('#timeline').scrollIntoView()";
            steps.push(json!(["resize", width]));
            steps.push(json!(["evaluate", seen]));
            steps.push(json!(["evaluate", measured]));
        }
        let found = look(&at, &json!({ "steps": steps }));
        for (i, width) in widths.into_iter().enumerate() {
            let [wrong, count] = [0, 1].map(|part| &found["answers"][3 * i + 2][part]);
            assert_eq!(*wrong, json!([]), "{width}");
            let least = if width < 480 { 1 } else { 2 };
            assert!(count.as_u64().unwrap() >= least, "{width}: {count}");
        }
    }
}

#[test]
fn long_titles_and_labels_fit_at_every_width() {
    let env = TestEnvironment::with_ledger();
    let word = "Pneumonoultramicroscopicsilicovolcanoconiosis".repeat(6);
    let mut contract: Value =
        serde_json::from_str(&sample("issue-manager-to-prep-agent", Format::Json, 1)).unwrap();
    contract["issue_title"] = json!(word);
    env.send(contract.to_string()).success();
    let labels = format!("labels={}", &word[..60]);
    let by = ["--reason", "x", "--as", "maintainer"];
    env.handoff(&[&["set", "1", &labels][..], &by].concat())
        .success();
    let (path, _) = report(&env, &[]);
    for width in [320, 640, 1024, 1920] {
        let plan = json!({ "viewport": { "width": width, "height": 900 }, "steps": [
            ["evaluate", "document.querySelectorAll('.issue').forEach((one) => { one.style.contentVisibility = 'visible'; })"],
            ["evaluate", "document.documentElement.scrollWidth <= innerWidth"],
            ["evaluate", "[...document.querySelectorAll('h1, h2, h3, h4, .meta')].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent.slice(0, 60))"],
        ] });
        let found = look(&address(&path), &plan);
        assert_eq!(found["answers"][1], true, "{width}");
        assert_eq!(found["answers"][2], json!([]), "{width}");
    }
}
