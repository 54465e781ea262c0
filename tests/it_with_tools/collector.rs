//! `export otlp --push`: what a collector is sent, as its own reader decodes it, and https.

use serde_json::{Value, json};
use test_support::collector::{Collector, ledger, push};
#[cfg(feature = "https")]
use test_support::time::code;

#[test]
fn a_collector_gets_what_a_file_would_hold() {
    let env = ledger();
    let collector = Collector::new(&[(200, "{}", None)]);
    env.pace(0);
    let ran = push(&env, &[&collector.address, "--json"], &[]).success();
    let sent = collector.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].path, "/v1/traces");
    let kind = ("Content-Type".to_owned(), "application/json".to_owned());
    let is =
        |(name, value): &(String, String)| name.eq_ignore_ascii_case(&kind.0) && *value == kind.1;
    assert!(sent[0].headers.iter().any(is), "{:?}", sent[0].headers);
    let pushed = crate::decoded("read-otlp.py", &sent[0].body);
    let file = env.handoff(&["export", "otlp"]).success().stdout;
    let of = |documents: &[Value]| -> Vec<Value> {
        let scopes = documents
            .iter()
            .map(|d| &d["resourceSpans"][0]["scopeSpans"][0]["spans"]);
        scopes.flat_map(|s| s.as_array().unwrap().clone()).collect()
    };
    assert_eq!(of(&pushed), of(&crate::decoded("read-otlp.py", &file)));
    let data = ran.json()["data"].clone();
    assert_eq!(data["endpoint"], format!("{}/v1/traces", collector.address));
    assert_eq!((&data["issues"], &data["requests"]), (&json!(2), &json!(1)));
    assert_eq!(data["spans"], of(&pushed).len());
    assert_eq!(data["rejected_spans"], 0);
}

/// Answers one request after the other over TLS, and prints its port first.
#[cfg(feature = "https")]
const TLS_SERVER: &str = r#"
import http.server, ssl, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

#[cfg(feature = "https")]
#[test]
fn https_is_spoken_where_the_certificate_is_trusted() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let env = ledger();
    let [key, own] = ["key.pem", "own.pem"].map(|name| env.root().join(name));
    let subject = "/CN=localhost";
    let extensions = [
        "subjectAltName=DNS:localhost",
        "basicConstraints=critical,CA:FALSE",
    ];
    let made = Command::new("openssl")
        .args(["req", "-x509", "-nodes", "-days", "1", "-subj", subject])
        .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args([
            "-addext",
            extensions[0],
            "-addext",
            extensions[1],
            "-keyout",
        ])
        .args([key.as_os_str(), "-out".as_ref(), own.as_os_str()])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let mut server = Command::new("python3")
        .args(["-c", TLS_SERVER])
        .args([&own, &key])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut port = String::new();
    let printed = server.stdout.take().unwrap();
    BufReader::new(printed).read_line(&mut port).unwrap();
    let address = format!("https://localhost:{}", port.trim());

    let nothing = env.file("nothing.pem", "");
    let trusted = own.to_str().unwrap();
    let name = "OTEL_EXPORTER_OTLP_CERTIFICATE";
    let ran = push(&env, &[&address, "--json"], &[(name, trusted)]).success();
    assert_eq!(
        ran.json()["data"]["endpoint"],
        format!("{address}/v1/traces")
    );
    for (set, reason) in [
        (&[][..], "UnknownIssuer"),
        (&[(name, nothing.as_str())], "it holds none"),
        (&[(name, "no-such-file.pem")], "no-such-file.pem"),
    ] {
        let ran = push(&env, &[&address, "--json"], set).exits(9);
        assert_eq!(code(&ran), "collector_unreachable");
        let message = ran.json()["error"]["message"].to_string();
        assert!(message.contains(reason), "{message}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}
