//! HTTP requests.

use git_handoff::readers::http_request;

use super::{Target, corpus};

const WORDS: &[&str] = &[
    "GET ",
    "HEAD ",
    "POST ",
    "HTTP/1.0",
    "HTTP/1.1",
    "HTTP/2.0",
    "Host: localhost:4000\r\n",
    "Host: evil.example\r\n",
    "Host:",
    "hOST : localhost:4000\r\n",
    " localhost:4000\r\n",
    "Origin: http://localhost:4000\r\n",
    "Origin: null\r\n",
    "Sec-Fetch-Site: cross-site\r\n",
    "Sec-Fetch-Site: none\r\n",
    "Transfer-Encoding: chunked\r\n",
    "[::1]:4000",
    "127.0.0.1:4000",
    "\r\n",
    "\n",
    "\r",
    "/../",
    "%2e%2e/",
    "?",
    "#",
    "*",
    "http://localhost:4000/",
];

pub(super) fn target() -> Target {
    Target {
        samples: corpus("http"),
        words: WORDS,
        check: Box::new(check),
    }
}

/// Reads the lines of a request as RFC 9112 has them: what is accepted is asked under one of this
/// machine's names, once, from here, and for nothing but reading.
fn check(bytes: &[u8]) {
    let Ok((path, with_body)) = http_request(bytes, 4000) else {
        return;
    };
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line));
    let first = lines.find(|line| !line.is_empty()).unwrap();
    let [method, target, version] = first.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{first:?}");
    };
    assert_eq!(with_body, method == "GET");
    assert!(with_body || method == "HEAD", "{method}");
    assert!(["HTTP/1.0", "HTTP/1.1"].contains(&version), "{version}");
    assert_eq!(target.split('?').next(), Some(&*path));
    let headers: Vec<(String, &str)> = lines
        .take_while(|line| !line.is_empty())
        .map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim_matches([' ', '\t']))
        })
        .collect();
    let all = |wanted: &str| -> Vec<String> {
        let of = headers.iter().filter(|(name, _)| name == wanted);
        of.map(|(_, value)| value.to_ascii_lowercase()).collect()
    };
    let own = ["localhost:4000", "127.0.0.1:4000", "[::1]:4000"];
    let [host] = &all("host")[..] else {
        panic!("{:?}", all("host"));
    };
    assert!(own.contains(&&**host), "{host}");
    for origin in all("origin") {
        let site = origin.strip_prefix("http://").unwrap();
        assert!(own.contains(&site), "{origin}");
    }
    for site in all("sec-fetch-site") {
        assert!(["same-origin", "none"].contains(&&*site), "{site}");
    }
}

#[test]
fn prove_http() {
    super::prove("fuzz-http", &target());
}
