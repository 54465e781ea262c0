//! A client of the Model Context Protocol, line by line.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::TestEnvironment;

/// The newest protocol version with a handshake, and the one without.
pub const HANDSHAKE: &str = "2025-11-25";
pub const STATELESS: &str = "2026-07-28";

/// A running server, with what was exchanged.
pub struct Wire {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    /// The `_meta` of each request, without a handshake.
    meta: Option<Value>,
    count: i64,
    early: BTreeMap<i64, Value>,
}

/// The `_meta` of a request without a handshake.
pub fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

impl Wire {
    /// A server before any message. It has every tool by default.
    pub fn silent(env: &TestEnvironment, args: &[&str]) -> Self {
        let all = ["--tools", "all"];
        let tools = &all[..if args.contains(&"--tools") { 0 } else { 2 }];
        let mut command = env.program(&[&["mcp"], tools, args].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        Self::of(command)
    }

    pub fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take().map(BufReader::new),
            child,
            meta: None,
            count: 0,
            early: BTreeMap::new(),
        }
    }

    /// A server after the handshake.
    pub fn new(env: &TestEnvironment, args: &[&str]) -> Self {
        let mut wire = Self::silent(env, args);
        wire.shake_hands(HANDSHAKE);
        wire
    }

    /// A server without a handshake.
    pub fn stateless(env: &TestEnvironment, args: &[&str]) -> Self {
        let mut wire = Self::silent(env, args);
        wire.meta = Some(meta(STATELESS));
        wire
    }

    /// From now on, declares support for an extension.
    pub fn declare(&mut self, extension: &str) {
        let meta = self.meta.as_mut().unwrap();
        meta["io.modelcontextprotocol/clientCapabilities"]["extensions"][extension] = json!({});
    }

    /// Performs the handshake; returns the server's description.
    #[track_caller]
    pub fn shake_hands(&mut self, version: &str) -> Value {
        let own = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let said = self.result("initialize", own);
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        said
    }

    /// Writes a line.
    pub fn line(&mut self, line: &str) {
        self.text(&format!("{line}\n"));
    }

    /// Writes text that may not be a complete line.
    pub fn text(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    pub fn write(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    /// Sends a request without waiting; returns its id.
    pub fn ask(&mut self, method: &str, mut params: Value) -> i64 {
        self.count += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        let id = self.count;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next message of any kind.
    #[track_caller]
    pub fn read(&mut self) -> Value {
        let mut line = String::new();
        let read = self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        if read == 0 {
            let mut said = String::new();
            let stderr = self.child.stderr.as_mut().unwrap();
            stderr.read_to_string(&mut said).unwrap();
            panic!("the server ended: {said}");
        }
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    /// The response to a request; other responses are stored until asked for.
    #[track_caller]
    pub fn answer(&mut self, id: i64) -> Value {
        loop {
            if let Some(message) = self.early.remove(&id) {
                return message;
            }
            let message = self.read();
            let other = message["id"].as_i64().unwrap();
            assert!(self.early.insert(other, message).is_none(), "{other} twice");
        }
    }

    /// Sends a request; returns the whole response.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    #[track_caller]
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let mut message = self.request(method, params);
        assert!(message.get("error").is_none(), "{method}: {message}");
        message["result"].take()
    }

    #[track_caller]
    pub fn error(&mut self, method: &str, params: Value) -> Value {
        let mut message = self.request(method, params);
        assert!(message.get("result").is_none(), "{method}: {message}");
        message["error"].take()
    }

    /// Calls the tool for a command without waiting.
    pub fn ask_for(&mut self, command: &str, arguments: Value) -> i64 {
        let tool = format!("handoff_{command}");
        self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// A tool's document, which must also be present as text, with a consistent error flag.
    #[track_caller]
    pub fn document(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.ask_for(tool, arguments);
        let message = self.answer(id);
        document(&message)
    }

    /// The data of a tool's document, which must report success.
    #[track_caller]
    pub fn data(&mut self, tool: &str, arguments: Value) -> Value {
        let mut document = self.document(tool, arguments);
        assert_eq!(document["ok"], true, "{tool}: {document}");
        document["data"].take()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops reading responses.
    pub fn read_no_more(&mut self) {
        self.stdout = None;
    }

    /// Closes the server's input; returns the remaining messages, the exit code and stderr.
    pub fn end(mut self) -> (Vec<Value>, Option<i32>, String) {
        drop(self.stdin.take());
        self.outcome()
    }

    /// Reads until the server ends by itself; returns the remaining messages, the exit code and
    /// stderr.
    pub fn outcome(mut self) -> (Vec<Value>, Option<i32>, String) {
        // Keep the input open: waiting for the child would close it.
        let stdin = self.stdin.take();
        let mut rest: Vec<Value> = self.early.into_values().collect();
        if let Some(stdout) = self.stdout.take() {
            for line in stdout.lines() {
                rest.push(serde_json::from_str(&line.unwrap()).unwrap());
            }
        }
        let output = self.child.wait_with_output().unwrap();
        drop(stdin);
        let said = String::from_utf8(output.stderr).unwrap();
        (rest, output.status.code(), said)
    }

    /// Waits until the server ended by itself.
    pub fn ended(mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }
}

/// The document in a response to a call.
#[track_caller]
pub fn document(message: &Value) -> Value {
    assert!(message.get("error").is_none(), "{message}");
    let result = &message["result"];
    let document = &result["structuredContent"];
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *document);
    assert_eq!(document["schema"], "git-handoff/2");
    assert_eq!(result["isError"], document["ok"] != true, "{message}");
    document.clone()
}
