//! `export otlp --push` against real servers: one that takes, ones that ask for
//! patience, and ones that are no collector at all.

use std::net::TcpListener;

use serde_json::json;
use test_support::collector::{Collector, Way, ledger, push, says};
use test_support::time::code;

#[test]
fn address_headers_and_name_come_from_the_environment() {
    let env = ledger();
    let collector = Collector::new(&[(200, "", None)]);
    let base = format!("{}/base/", collector.address);
    let secret = "x-key=s3cr%2Ct-word, authorization=Bearer%20t0ken-word";
    let set = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", base.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", secret),
        ("OTEL_SERVICE_NAME", "parcel-desk"),
    ];
    let ran = push(&env, &[], &set).success();
    let sent = collector.sent().remove(0);
    assert_eq!(sent.path, "/base/v1/traces");
    let header = |wanted: &str| -> Option<&str> {
        let is = |(name, _): &&(String, String)| name.eq_ignore_ascii_case(wanted);
        sent.headers
            .iter()
            .find(is)
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(header("x-key"), Some("s3cr,t-word"));
    assert_eq!(header("authorization"), Some("Bearer t0ken-word"));
    assert!(sent.body.contains("parcel-desk"));
    assert!(!ran.shown.contains("word"), "{}", ran.shown);
    // What is said of traces goes before what is said of everything.
    let own = format!("{}/own", collector.address);
    let more = [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", own.as_str()),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-key=other"),
    ];
    push(&env, &[], &[&set[..], &more].concat()).success();
    let sent = collector.sent().remove(0);
    assert_eq!(sent.path, "/own");
    assert!(sent.headers.iter().any(|(_, value)| value == "other"));
}

#[test]
fn a_collector_that_asks_for_patience_gets_it() {
    let env = ledger();
    let collector = Collector::new(&[
        (429, "{}", Some("1")),
        (503, "no", Some("0")),
        (200, "{\"partialSuccess\":{}}", None),
    ]);
    push(&env, &[&collector.address], &[]).success();
    let sent = collector.sent();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|one| one.body == sent[0].body));
    // No more of it than there is time.
    let collector = Collector::new(&[(503, "{\"message\": \"full\"}", Some("60"))]);
    let args = [&collector.address, "--timeout", "3s", "--json"];
    let ran = push(&env, &args, &[]).exits(9);
    assert_eq!(code(&ran), "collector_refused");
    let ran = ran.says("503").says("full").says("--timeout");
    assert!(ran.stderr.is_empty());
    assert_eq!(collector.sent().len(), 1);
}

#[test]
fn what_is_refused_or_no_answer_of_a_collector_is_told() {
    let env = ledger();
    let set = [(
        "OTEL_EXPORTER_OTLP_HEADERS",
        "authorization=Bearer%20t0ken-word",
    )];
    let ways: [(&[Way], &str); 5] = [
        (
            &[(
                401,
                "{\"message\":\"t0ken-word \\u001b[31mis wrong\"}",
                None,
            )],
            "401",
        ),
        (&[(404, "<html>", None)], "404"),
        (&[(307, "", None)], "307"),
        (
            &[(200, "<html>welcome</html>", None)],
            "not answer as a collector",
        ),
        (&[(200, "[1]", None)], "not answer as a collector"),
    ];
    for (ways, said) in ways {
        let collector = Collector::new(Box::leak(ways.to_vec().into_boxed_slice()));
        let ran = push(&env, &[&collector.address, "--json"], &set).exits(9);
        assert_eq!(code(&ran), "collector_refused");
        let ran = ran.says(said);
        assert!(!ran.shown.contains("t0ken-word"), "{}", ran.shown);
        let ran = push(&env, &[&collector.address], &set).exits(9);
        assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.shown);
        assert_eq!(collector.sent().len(), 2, "one attempt each: {said}");
    }
}

#[test]
fn a_refusal_is_told_with_its_status_and_the_collector_s_own_words() {
    let env = ledger();
    let huge: &'static str = Box::leak("too much of it ".repeat(100_000).into_boxed_str());
    let ways: [(Way, &[&str]); 8] = [
        ((400, huge, None), &["answers 400: too much of it too", "…"]),
        (
            (413, "body too\nlarge", None),
            &["answers 413: body too large"],
        ),
        (
            (400, "{\"error\":{\"message\":\"bad span\"}}", None),
            &["answers 400: bad span"],
        ),
        ((400, "{}", None), &["answers 400\n"]),
        ((500, "<html>oh</html>", None), &["answers 500\n"]),
        (
            (302, "", None),
            &["answers 302\n", "redirections are not followed"],
        ),
        (
            (429, "busy", Some("3600")),
            &["answers 429: busy", "asks to wait 3600 s"],
        ),
        (
            (429, "", Some("18446744073709551615")),
            &["answers 429\n", "asks to wait 18446744073709551615 s"],
        ),
    ];
    for (way, all) in ways {
        let collector = Collector::new(Box::leak(Box::new([way])));
        let ran = push(&env, &[&collector.address], &[]).exits(9);
        for said in all {
            assert!(ran.stderr.contains(said), "{said}: {}", ran.shown);
        }
        assert!(ran.stderr.len() < 1000, "{}", ran.shown);
        assert_eq!(collector.sent().len(), 1);
    }
    // The status is known, whatever becomes of the rest.
    for hangs in [true, false] {
        let half = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 900\r\n\r\nno such thing";
        let address = says(half, hangs);
        let ran = push(&env, &[&address, "--timeout", "2s"], &[]).exits(9);
        assert!(
            ran.stderr.contains("answers 400: no such thing"),
            "{}",
            ran.shown
        );
    }
}

#[test]
fn spans_that_a_collector_rejects_are_counted() {
    let env = ledger();
    let partial = "{\"partialSuccess\":{\"rejectedSpans\":\"2\",\"errorMessage\":\"too old\"}}";
    let partial: &'static [Way] = Box::leak(Box::new([(200, partial, None)]));
    let collector = Collector::new(partial);
    let ran = push(&env, &[&collector.address, "--json"], &[]).exits(9);
    assert_eq!(code(&ran), "collector_rejected");
    let data = ran.json()["data"].clone();
    assert_eq!(
        (&data["rejected_spans"], &data["message"]),
        (&json!(2), &json!("too old"))
    );
    // A warning alone is no failure.
    let warning = Collector::new(&[(
        200,
        "{\"partialSuccess\":{\"errorMessage\":\"slow\"}}",
        None,
    )]);
    let ran = push(&env, &[&warning.address], &[]).success();
    assert!(ran.stderr.contains("slow"), "{}", ran.shown);
}

#[test]
fn one_that_is_not_there_hangs_or_talks_nonsense_is_told_in_time() {
    let env = ledger();
    let refused = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{";
    for address in [
        refused,
        says(b"", true),
        says(half, true),
        says(half, false),
        says(b"", false),
        says(b"SSH-2.0-OpenSSH_9.2\r\n", false),
        says(&[0xff; 512], false),
    ] {
        let args = [address.as_str(), "--timeout", "2s", "--json"];
        let ran = push(&env, &args, &[]).exits(9);
        assert_eq!(code(&ran), "collector_unreachable", "{}", ran.shown);
    }
}

#[test]
fn what_can_be_no_address_is_wrong_usage_and_is_not_repeated() {
    let env = ledger();
    for address in [
        "localhost:4318",
        "ftp://localhost/secret-word",
        "http://",
        "http://user:secret-word@localhost:4318",
        "http://local host/secret-word",
    ] {
        let ran = push(&env, &[address], &[]).exits(2);
        assert!(!ran.stderr.contains("secret-word"), "{}", ran.shown);
        let set = [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", address)];
        push(&env, &[], &set).exits(2);
    }
    push(&env, &[], &[])
        .exits(2)
        .says("OTEL_EXPORTER_OTLP_ENDPOINT");
    let wrong = [("OTEL_EXPORTER_OTLP_HEADERS", "secret-word")];
    let ran = push(&env, &["http://127.0.0.1:9"], &wrong).exits(2);
    assert!(!ran.stderr.contains("secret-word"), "{}", ran.shown);
    env.handoff(&["export", "otlp", "--timeout", "2s"]).exits(2);
    let both = [
        "export",
        "otlp",
        "--output",
        "x",
        "--push",
        "http://localhost",
    ];
    env.handoff(&both).exits(2);
}
