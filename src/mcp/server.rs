//! The answers to requests.

use std::sync::mpsc::Sender;

use serde_json::{Value, json};

use super::Event;
use super::calls::{self, Calls, Work};
use super::line::Line;
use super::lines::{self, LONGEST};
use super::message::{
    INVALID_PARAMS, INVALID_REQUEST, Message, NO_METHOD, NO_RESOURCE, NO_VERSION, Object, error,
    identity, message, misused, response,
};
use super::schema::Fixed;
use super::verbs::ToolSet;
use super::wording::Wording;
use super::{resources, schema, verbs};

/// The instructions that a client gives to its model: of every set, and of those that write.
const INSTRUCTIONS: [&str; 3] = [
    "A ledger of handoffs between agents, kept in Git. Begin with handoff_prime: who you are, what waits, what to do. ",
    "Your turn: handoff_claim (returns the contract and what to do), work, handoff_new (a contract's skeleton), fill it in, \
handoff_check, handoff_send. ",
    "`as` names the agent that you are; never act as another. Every answer is one document: with ok false, error.hint is \
the next safe step, and handoff_explain says more of a code.",
];

/// The newest version of the protocol with a handshake, and the one without.
const HANDSHAKE: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";
const VERSIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    HANDSHAKE,
    STATELESS,
];

/// The `_meta` of a request without a handshake.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// How a connection settles the version.
enum Era {
    /// Once, by a handshake.
    Handshake(&'static str),
    /// By the `_meta` of each request.
    Stateless,
}

/// The server of a connection.
pub(super) struct Server {
    fixed: Fixed,
    tools: Value,
    /// `None` until a request decides it.
    era: Option<Era>,
    pub(super) calls: Calls,
}

impl Server {
    /// A server that sends these events when its calls end.
    pub(super) fn new(fixed: Fixed, events: Sender<Event>) -> Self {
        Self {
            tools: schema::tools(&fixed),
            fixed,
            era: None,
            calls: Calls::new(events),
        }
    }

    /// The immediate answer to a line.
    pub(super) fn answer(&mut self, line: lines::Line) -> Option<Value> {
        let read = match line {
            lines::Line::Whole(line) => message(&line),
            lines::Line::TooLong(id) => {
                let text = format!("a line may have {LONGEST} bytes, and this one has more");
                Err(response(id, Err(error(INVALID_REQUEST, text))))
            }
        };
        let message = match read {
            Ok(message) => message?,
            Err(refused) => return Some(refused),
        };
        let Message { id, method, params } = message;
        let Some(id) = id else {
            if method == "notifications/cancelled" {
                self.calls.cancel(&identity(&params["requestId"])?);
            }
            return None;
        };
        let answer = self.request(id.clone(), &method, params).transpose()?;
        Some(response(Some(id), answer))
    }

    /// The result of a request; `None` if a call brings it later.
    fn request(&mut self, id: Value, method: &str, params: Value) -> Result<Option<Value>, Value> {
        let misused = || misused(method, "the params are wrong");
        let is_newest = match (method, &self.era) {
            ("initialize", _) => {
                return self.shake_hands(&params).map(Some).ok_or_else(misused);
            }
            ("ping", None) => false,
            _ => self.version(method, &params["_meta"])? == STATELESS,
        };
        let is_list = method != "tools/call";
        let now = |result| Ok(Some(shaped(result, is_newest, is_list)));
        let fixed = self.fixed.clone();
        let (waits, work): (bool, Work) = match method {
            "ping" => return now(json!({})),
            "server/discover" => return Ok(Some(self.discovered())),
            "tools/list" => return now(json!({ "tools": self.tools })),
            "tools/call" => {
                let arguments = match &params["arguments"] {
                    Value::Null => &Object::new(),
                    arguments => arguments.as_object().ok_or_else(misused)?,
                };
                let name = params["name"].as_str().ok_or_else(misused)?;
                let verb = verbs::named(name, fixed.tools);
                let verb = verb.map_err(|text| error(INVALID_PARAMS, text))?;
                match Line::of_call(verb, arguments, &fixed) {
                    Ok(line) => {
                        let work = move |i: &_| {
                            let wording = Wording::of_tool(verb, &fixed);
                            calls::run(line, &wording, i).map(called)
                        };
                        (verb.waits(), Box::new(work))
                    }
                    Err(failure) => {
                        let wording = Wording::of_tool(verb, &fixed);
                        return now(called(calls::document(&failure, &wording)));
                    }
                }
            }
            "resources/list" => {
                let cursor = params["cursor"].as_str().map(str::to_owned);
                let work = move |i: &_| resources::list(&fixed, cursor.as_deref(), i);
                (false, Box::new(work))
            }
            "resources/templates/list" => return now(resources::templates()),
            "resources/read" => {
                let uri = params["uri"].as_str().ok_or_else(misused)?.to_owned();
                (false, Box::new(move |i| resources::read(&fixed, &uri, i)))
            }
            _ => return Err(error(NO_METHOD, method)),
        };
        let work = move |interruption: &_| match work(interruption) {
            Ok(result) => Ok(shaped(result, is_newest, is_list)),
            Err(mut error) => {
                if is_newest && error["code"] == NO_RESOURCE {
                    error["code"] = INVALID_PARAMS.into();
                }
                Err(error)
            }
        };
        self.calls.add(id, waits, Box::new(work));
        Ok(None)
    }

    /// Settles a version by a handshake, which decides the era unless it is decided. `None` if the
    /// parameters are wrong.
    fn shake_hands(&mut self, params: &Value) -> Option<Value> {
        params["capabilities"].as_object()?;
        params["clientInfo"]["name"].as_str()?;
        params["clientInfo"]["version"].as_str()?;
        let requested = params["protocolVersion"].as_str()?;
        let mut versions = VERSIONS.into_iter().filter(|version| *version != STATELESS);
        let version = versions.find(|version| *version == requested);
        let version = version.unwrap_or(HANDSHAKE);
        if !matches!(self.era, Some(Era::Stateless)) {
            self.era = Some(Era::Handshake(version));
        }
        Some(json!({
            "protocolVersion": version,
            "capabilities": capabilities(),
            "serverInfo": own(),
            "instructions": self.instructions(),
        }))
    }

    /// The version of a request; without a handshake, the first request decides the era.
    ///
    /// # Errors
    /// The error to answer if it states another version, or its `_meta` is incomplete.
    fn version(&mut self, method: &str, meta: &Value) -> Result<&'static str, Value> {
        let stated = meta[VERSION].as_str();
        let known = VERSIONS.into_iter().find(|known| stated == Some(known));
        if stated.is_some() && known.is_none() {
            let mut error = error(NO_VERSION, "Unsupported protocol version");
            error["data"] = json!({ "requested": stated, "supported": VERSIONS });
            return Err(error);
        }
        let is_probe = method == "server/discover";
        if let Some(Era::Handshake(agreed)) = self.era
            && known != Some(STATELESS)
            && !is_probe
        {
            return Ok(known.unwrap_or(agreed));
        }
        let version = known.is_none().then_some(VERSION);
        let capabilities = (!meta[CAPABILITIES].is_object()).then_some(CAPABILITIES);
        let missing: Vec<&str> = version.into_iter().chain(capabilities).collect();
        if !missing.is_empty() {
            let text = "request _meta is missing or has malformed required fields";
            let text = format!("{text}: {}", missing.join(", "));
            return Err(error(INVALID_PARAMS, text));
        }
        if method == "ping" {
            return Err(error(NO_METHOD, method));
        }
        if !is_probe {
            self.era.get_or_insert(Era::Stateless);
        }
        Ok(known.unwrap_or(STATELESS))
    }

    /// The server's description without a handshake.
    fn discovered(&self) -> Value {
        json!({
            "resultType": "complete",
            "supportedVersions": VERSIONS,
            "capabilities": capabilities(),
            "instructions": self.instructions(),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": own() },
        })
    }

    fn instructions(&self) -> String {
        let [begin, turn, rules] = INSTRUCTIONS;
        let turn = if self.fixed.tools == ToolSet::Read {
            ""
        } else {
            turn
        };
        [begin, turn, rules].concat()
    }
}

fn capabilities() -> Value {
    json!({ "resources": {}, "tools": {} })
}

fn own() -> Value {
    json!({
        "name": env!("CARGO_PKG_NAME"),
        "title": "Handoffs between agents",
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// The result of a tool, which is a document.
fn called(document: Value) -> Value {
    let is_error = document["ok"] != true;
    json!({
        "content": [{ "type": "text", "text": document.to_string() }],
        "structuredContent": document,
        "isError": is_error,
    })
}

/// A result with the fields that the newest version requires.
fn shaped(result: Value, is_newest: bool, is_list: bool) -> Value {
    if !is_newest {
        return result;
    }
    let mut response = json!({ "resultType": "complete" });
    if is_list {
        response["ttlMs"] = 0.into();
        response["cacheScope"] = "private".into();
    }
    if let (Value::Object(response), Value::Object(result)) = (&mut response, result) {
        response.extend(result);
    }
    response
}
