//! Fake servers that accept or refuse traces and notices.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use tiny_http::{Header, Response, Server};

use crate::contracts::opening;
use crate::{Ran, TestEnvironment};

/// A request that a server received.
pub struct Sent {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// A server that answers sequential requests; the last answer repeats.
pub struct Collector {
    pub address: String,
    pub sent: Receiver<Sent>,
}

/// Status, body, and `Retry-After`.
pub type Way = (u16, &'static str, Option<&'static str>);

impl Collector {
    pub fn new(ways: &'static [Way]) -> Self {
        let server = Server::http("127.0.0.1:0").unwrap();
        let address = format!("http://{}", server.server_addr());
        let (tell, sent): (Sender<Sent>, _) = channel();
        thread::spawn(move || {
            for (number, mut request) in server.incoming_requests().enumerate() {
                let mut body = String::new();
                request.as_reader().read_to_string(&mut body).unwrap();
                let headers = request.headers().iter();
                let headers = headers.map(|h| (h.field.to_string(), h.value.to_string()));
                let told = tell.send(Sent {
                    path: request.url().to_owned(),
                    headers: headers.collect(),
                    body,
                });
                if told.is_err() {
                    return;
                }
                let (status, body, after) = ways[number.min(ways.len() - 1)];
                let mut response = Response::from_string(body).with_status_code(status);
                let mut add = |name: &str, value: &str| {
                    response.add_header(Header::from_bytes(name, value).unwrap());
                };
                add("Content-Type", "application/json");
                if let Some(after) = after {
                    add("Retry-After", after);
                }
                if status == 307 {
                    add("Location", "/elsewhere");
                }
                let _ = request.respond(response);
            }
        });
        Self { address, sent }
    }

    pub fn sent(&self) -> Vec<Sent> {
        self.sent.try_iter().collect()
    }
}

/// A server that answers every connection with these bytes, then closes or hangs.
pub fn says(bytes: &'static [u8], hangs: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(bytes);
            if hangs {
                kept.push(stream);
            }
        }
    });
    address
}

/// A ledger with two issues.
pub fn ledger() -> TestEnvironment {
    let env = TestEnvironment::with_ledger();
    env.send(opening(87)).success();
    env.send(opening(88)).success();
    env
}

/// Pushes traces with these environment variables.
pub fn push(env: &TestEnvironment, args: &[&str], set: &[(&str, &str)]) -> Ran {
    let all = [&["export", "otlp", "--push"], args].concat();
    let mut command = env.program(&all);
    command.envs(set.iter().copied());
    let (tip, ran) = (env.tip(), env.run(command, &all, None));
    // Whatever happens there, the ledger is unchanged.
    assert_eq!(env.tip(), tip);
    ran
}
