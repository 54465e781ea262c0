//! The page about a ledger, served: what it answers to whom, and how it keeps up.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use crate::pages::{look, troubled};
use serde_json::{Value, json};
use test_support::TestEnvironment;
use test_support::contracts::opening;

/// A server that runs, until it is dropped.
struct Served {
    child: Child,
    port: u16,
}

impl Served {
    fn start(env: &TestEnvironment, args: &[&str]) -> Self {
        let mut command = env.program(&[&["serve"], args].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let port = line
            .trim()
            .trim_end_matches('/')
            .rsplit(':')
            .next()
            .unwrap();
        let port = port.parse().unwrap_or_else(|_| panic!("{line}"));
        Self { child, port }
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// The head and the body of what is answered to a request with these headers.
    fn ask(&self, line: &str, headers: &str) -> (String, String) {
        let mut client = self.connect();
        write!(client, "{line} HTTP/1.1\r\n{headers}\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    fn get(&self, path: &str) -> (String, String) {
        self.ask(
            &format!("GET {path}"),
            &format!("Host: localhost:{}\r\n", self.port),
        )
    }

    /// Sends a signal, and returns the exit code.
    fn signal(mut self, name: &str) -> Option<i32> {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill")
            .args(["-s", name, &pid])
            .status()
            .unwrap();
        assert!(sent.success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program for the browser's script to run: a shell's lines in the environment's repository.
fn program(env: &TestEnvironment, name: &str, lines: &str) -> String {
    let command = env.command("sh");
    let mut text = String::from("#!/bin/sh\nset -e\n");
    for (key, value) in command.get_envs() {
        if let (Some(key), Some(value)) = (key.to_str(), value.and_then(|v| v.to_str())) {
            text += &format!("export {key}='{value}'\n");
        }
    }
    text += &format!("cd '{}'\n{lines}\n", env.repo().display());
    let path = env.file(name, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn the_page_is_served_with_headers_that_keep_it_to_itself() {
    let env = troubled();
    let served = Served::start(&env, &[]);
    let (head, body) = served.get("/");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    for needed in [
        "Content-Type: text/html; charset=utf-8",
        "Content-Security-Policy: default-src 'none'; script-src 'sha256-",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer",
        "Cache-Control: no-store",
        "Cross-Origin-Resource-Policy: same-origin",
    ] {
        assert!(head.contains(needed), "no {needed} in {head}");
    }
    assert!(body.contains("<h2 id=\"attention-title\">"));
    assert!(
        head.contains(&format!("Content-Length: {}", body.len())),
        "{head}"
    );
    let (_, tip) = served.get("/tip");
    assert_eq!(
        serde_json::from_str::<Value>(&tip).unwrap(),
        json!({ "tip": env.tip() })
    );
    // Asked for the headers alone, it gives them.
    let host = format!("Host: 127.0.0.1:{}\r\n", served.port);
    let (only, none) = served.ask("HEAD /", &host);
    assert!(
        only.contains(&format!("Content-Length: {}", body.len())),
        "{only}"
    );
    assert_eq!(none, "");
    assert!(served.get("/etc/passwd").0.starts_with("HTTP/1.1 404 "));
    assert!(served.get("/../tip").0.starts_with("HTTP/1.1 404 "));
}

#[test]
fn other_names_other_sites_and_other_methods_are_refused() {
    let env = TestEnvironment::with_ledger();
    let served = Served::start(&env, &[]);
    let host = format!("Host: 127.0.0.1:{}\r\n", served.port);
    for (line, headers, expected) in [
        ("GET /", "Host: evil.example\r\n".to_owned(), "421"),
        (
            "GET /",
            format!("Host: evil.example:{}\r\n", served.port),
            "421",
        ),
        ("GET /", "Host: 127.0.0.1\r\n".to_owned(), "421"),
        ("GET /", String::new(), "421"),
        (
            "GET /",
            format!("{host}Sec-Fetch-Site: cross-site\r\n"),
            "403",
        ),
        (
            "GET /tip",
            format!("{host}Sec-Fetch-Site: same-site\r\n"),
            "403",
        ),
        (
            "GET /tip",
            format!("{host}Origin: http://evil.example\r\n"),
            "403",
        ),
        ("POST /", host.clone(), "405"),
        ("DELETE /tip", host.clone(), "405"),
        ("GET http://evil.example/", host.clone(), "404"),
    ] {
        let (head, body) = served.ask(line, &headers);
        assert!(
            head.starts_with(&format!("HTTP/1.1 {expected} ")),
            "{line} {headers}: {head}"
        );
        assert!(!body.contains("<html"), "{line} {headers}");
    }
    assert!(served.ask("GET /tip", &host).0.starts_with("HTTP/1.1 200 "));
}

#[test]
fn the_page_keeps_up_with_the_ledger_and_stays_where_it_was() {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    let contract = env.file("next.xml", opening(88));
    let served = Served::start(&env, &[]);
    let next = program(&env, "next", &format!("git-handoff send '{contract}' 2>&1"));
    let lose = program(
        &env,
        "lose",
        "git update-ref refs/kept refs/heads/handoffs\ngit update-ref -d refs/heads/handoffs",
    );
    let back = program(&env, "back", "git update-ref refs/heads/handoffs refs/kept");
    let at = served.address();
    let found = look(
        &at,
        &json!({ "steps": [
            ["wait", ["#live", "Live"]],
            ["choose", ["#f-state", "open"]],
            ["click", "#h-87\\.1 summary"],
            ["type", ["#f-text", "parcel"]],
            ["evaluate", "scrollTo(0, 400)"],
            ["evaluate", "scrollY"],
            ["run", next],
            ["wait", ["#index", "88"]],
            ["wait", ["#live", "Live"]],
            ["evaluate", "document.getElementById('f-state').value + ' ' + document.getElementById('f-text').value"],
            ["evaluate", "document.querySelector('#h-87\\\\.1 details').open"],
            ["evaluate", "scrollY"],
            ["evaluate", "document.activeElement.id"],
            ["run", lose],
            ["wait", ["main", "The ledger can't be shown"]],
            ["text", "main"],
            ["run", back],
            ["wait", ["#index", "88"]],
        ] }),
    );
    let answers = &found["answers"];
    assert_eq!(answers[9], "open parcel");
    assert_eq!(answers[10], true);
    assert_eq!(answers[11], answers[5]);
    assert_eq!(answers[12], "f-text");
    let gone = answers[15].as_str().unwrap();
    assert!(gone.contains("handoffs"), "{gone}");
    for one in found["requests"].as_array().unwrap() {
        let one = one.as_str().unwrap();
        assert!(one.starts_with(&at) || one == "data:,", "{one}");
    }
    // A browser tells of the page that said what was wrong, and of nothing else.
    for one in found["complaints"].as_array().unwrap() {
        assert!(one.as_str().unwrap().contains("503"), "{one}");
    }
}

#[test]
fn what_was_read_and_what_had_the_focus_stay_where_they_were() {
    let env = TestEnvironment::with_ledger();
    for issue in 81..=87 {
        env.send(opening(issue)).success();
    }
    let contract = env.file("next.xml", opening(88));
    let served = Served::start(&env, &[]);
    let next = program(&env, "next", &format!("git-handoff send '{contract}' 2>&1"));
    let lose = program(
        &env,
        "lose",
        "git update-ref refs/kept refs/heads/handoffs\ngit update-ref -d refs/heads/handoffs",
    );
    let back = program(&env, "back", "git update-ref refs/heads/handoffs refs/kept");
    let top = "Math.round(document.getElementById('h-84.1').getBoundingClientRect().top)";
    let focus =
        "document.activeElement.localName + ' ' + document.activeElement.closest('[id]').id";
    let found = look(
        &served.address(),
        &json!({ "steps": [
            ["wait", ["#live", "Live"]],
            // The address leads elsewhere: that is not where the reader is any more.
            ["click", "#index a[href='#i-82']"],
            ["evaluate", "document.getElementById('h-84.1').querySelector('summary').focus({ preventScroll: true })"],
            ["evaluate", "document.getElementById('i-84').scrollIntoView()"],
            ["evaluate", "new Promise((done) => setTimeout(done, 300))"],
            ["evaluate", top],
            ["run", next],
            ["wait", ["#details", "Issue 88"]],
            ["wait", ["#live", "Live"]],
            ["evaluate", top],
            ["evaluate", focus],
            ["evaluate", "document.getElementById('i-88').compareDocumentPosition(document.getElementById('i-84')) & 4"],
            // While there is no ledger, nothing is live; with it comes what was there.
            ["run", lose],
            ["wait", ["#live", "Not live"]],
            ["run", back],
            ["wait", ["#details", "Issue 88"]],
            ["wait", ["#live", "Live"]],
            ["evaluate", top],
            ["evaluate", focus],
            ["evaluate", "document.querySelector('.lanes a[href=\"#i-83\"]').focus()"],
            ["evaluate", "sessionStorage.length"],
            ["run", lose],
            ["wait", ["#live", "Not live"]],
            ["run", back],
            ["wait", ["#details", "Issue 88"]],
            ["evaluate", "document.activeElement.outerHTML"],
        ] }),
    );
    let answers = &found["answers"];
    let place = |at: usize| answers[at].as_i64().unwrap();
    assert!((place(5) - place(9)).abs() <= 1, "{answers}");
    assert_eq!(answers[10], "summary h-84.1");
    assert_eq!(answers[11], 4, "the new one is above");
    assert!((place(5) - place(17)).abs() <= 1, "{answers}");
    assert_eq!(answers[18], "summary h-84.1");
    assert_eq!(answers[20], 0);
    assert_eq!(answers[25], "<a href=\"#i-83\">83</a>");
}

#[test]
fn what_is_served_is_accessible_in_light_and_dark() {
    let env = troubled();
    let served = Served::start(&env, &["--issue", "88", "--issue", "666"]);
    let plan =
        json!({ "schemes": ["light", "dark"], "axe": true, "steps": [["count", "section.issue"]] });
    let found = look(&served.address(), &plan);
    assert_eq!(found["violations"], json!([]));
    assert_eq!(found["complaints"], json!([]));
    assert_eq!(found["answers"], json!([2, 2]));
}

#[test]
fn slow_and_many_clients_keep_nobody_waiting() {
    let env = troubled();
    let served = Served::start(&env, &[]);
    let (_, page) = served.get("/");
    // Some never ask, some ask a letter at a time, some never take their answer.
    let mut kept = Vec::new();
    for i in 0..100 {
        let mut client = served.connect();
        match i % 3 {
            0 => {}
            1 => client.write_all(b"GET / HT").unwrap(),
            _ => write!(
                client,
                "GET / HTTP/1.1\r\nHost: localhost:{}\r\n\r\n",
                served.port
            )
            .unwrap(),
        }
        kept.push(client);
    }
    for _ in 0..5 {
        assert_eq!(served.get("/").1, page);
    }
    // Nor do they together.
    for _ in 0..300 {
        let mut client = served.connect();
        client.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        kept.push(client);
    }
    for _ in 0..5 {
        assert_eq!(served.get("/").1, page);
    }
    drop(kept);
    // A request of any length is not read to its end.
    let mut client = served.connect();
    let _ = client.write_all(&vec![b'x'; 1 << 20]);
    assert!(served.get("/tip").0.starts_with("HTTP/1.1 200 "));
}

#[test]
fn it_ends_when_it_is_asked_to_and_says_what_is_wrong_at_the_start() {
    let env = TestEnvironment::with_ledger();
    let hangup = cfg!(target_os = "linux").then_some("HUP");
    for signal in ["INT", "TERM"].into_iter().chain(hangup) {
        let served = Served::start(&env, &[]);
        assert!(served.get("/").0.starts_with("HTTP/1.1 200 "));
        assert_eq!(served.signal(signal), Some(0), "{signal}");
    }
    let served = Served::start(&env, &[]);
    let port = served.port.to_string();
    env.handoff(&["serve", "--port", &port])
        .exits(9)
        .says("cannot listen on port");
    env.handoff(&["serve", "--issue", "4711"])
        .exits(6)
        .says("4711");
    TestEnvironment::with_repository()
        .handoff(&["serve"])
        .exits(9);
    assert_eq!(env.git(&env.repo(), &["status", "--porcelain"]), "");
}
