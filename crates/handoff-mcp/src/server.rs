//! Answers requests.

use std::sync::mpsc::Sender;

use serde_json::{Value, json};

use super::Event;
use super::calls::{self, Calls, Recipient, Work};
use super::line::Line;
use super::lines::{self, LONGEST};
use super::message::{
    Answer, INVALID_PARAMS, INVALID_REQUEST, Message, NO_CAPABILITY, NO_METHOD, NO_RESOURCE,
    NO_VERSION, Object, error, identity, message, misused, response,
};
use super::schema::Fixed;
use super::tasks::{self, Form, Tasks};
use super::verbs::ToolSet;
use super::wording::Wording;
use super::{resources, schema, verbs};

/// The instructions for the client's model: for every tool set, and for those that write.
const INSTRUCTIONS: [&str; 3] = [
    "A ledger of handoffs between agents, kept in Git. Begin with handoff_prime: who you are, what waits, what to do. ",
    "Your turn: handoff_claim (returns the contract and what to do), work, handoff_new (a contract's skeleton), fill it in, \
handoff_check, handoff_send. ",
    "`as` names the agent that you are; never act as another. Every answer is one document: with ok false, error.hint is \
the next safe step, and handoff_explain says more of a code.",
];

/// The newest protocol version with a handshake, and the one without.
const HANDSHAKE: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";
const VERSIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    HANDSHAKE,
    STATELESS,
];

/// The `_meta` key of the version in requests without a handshake.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// How a connection determines its protocol version.
enum Era {
    Handshake(&'static str),
    /// By the `_meta` of each request.
    Stateless,
}

/// The server of a connection.
pub(super) struct Server {
    fixed: Fixed,
    tools: Value,
    /// `None` until the first request sets it.
    era: Option<Era>,
    pub(super) calls: Calls,
    tasks: Tasks,
    /// Responses to earlier requests, to be written after the current one.
    pub(super) answers: Vec<Value>,
}

impl Server {
    /// Creates a server whose calls send these events when they end.
    pub(super) fn new(fixed: Fixed, events: Sender<Event>) -> Self {
        Self {
            tools: schema::tools(&fixed),
            fixed,
            era: None,
            calls: Calls::new(events),
            tasks: Tasks::default(),
            answers: Vec::new(),
        }
    }

    /// The response for a call that has ended; `None` if it was cancelled.
    pub(super) fn finish(&mut self, number: u64, waits: bool, answer: Answer) -> Option<Value> {
        match self.calls.finish(number, waits)? {
            Recipient::Request(id) => Some(response(Some(id), answer)),
            Recipient::Task(task) => {
                self.answers.extend(self.tasks.finish(&task, answer));
                None
            }
        }
    }

    /// The immediate response to a line.
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
                let id = identity(&params["requestId"])?;
                self.tasks.forget(&id);
                self.calls.cancel(&Recipient::Request(id));
            }
            return None;
        };
        let answer = self.request(id.clone(), &method, params).transpose()?;
        Some(response(Some(id), answer))
    }

    /// The result of a request; `None` if a call delivers it later.
    fn request(&mut self, id: Value, method: &str, params: Value) -> Result<Option<Value>, Value> {
        let misused = || misused(method, "the params are wrong");
        let version = match (method, &self.era) {
            ("initialize", _) => {
                return self.shake_hands(&params).map(Some).ok_or_else(misused);
            }
            ("ping", None) => HANDSHAKE,
            _ => self.version(method, &params["_meta"])?,
        };
        let is_newest = version == STATELESS;
        let now = |result| Ok(Some(shaped(result, is_newest, true)));
        let fixed = self.fixed.clone();
        let work: Work = match method {
            "ping" => return now(json!({})),
            "server/discover" => return Ok(Some(self.discovered())),
            "tools/list" => return now(self.tools(version)),
            "tools/call" => return self.call(id, &params, version),
            _ if method.starts_with("tasks/") => {
                let result = self.task(id, method, &params, version)?;
                return Ok(result.map(|result| shaped(result, is_newest, false)));
            }
            "resources/list" => {
                let cursor = params["cursor"].as_str().map(str::to_owned);
                Box::new(move |i| resources::list(&fixed, cursor.as_deref(), i))
            }
            "resources/templates/list" => return now(resources::templates()),
            "resources/read" => {
                let uri = params["uri"].as_str().ok_or_else(misused)?.to_owned();
                Box::new(move |i| resources::read(&fixed, &uri, i))
            }
            _ => return Err(error(NO_METHOD, method)),
        };
        let work = move |interruption: &_| match work(interruption) {
            Ok(result) => Ok(shaped(result, is_newest, true)),
            Err(mut error) => {
                if is_newest && error["code"] == NO_RESOURCE {
                    error["code"] = INVALID_PARAMS.into();
                }
                Err(error)
            }
        };
        self.calls
            .add(Recipient::Request(id), false, Box::new(work));
        Ok(None)
    }

    /// The result of a call: invalid arguments, or a created task; `None` if it comes later.
    fn call(&mut self, id: Value, params: &Value, version: &str) -> Result<Option<Value>, Value> {
        let misused = || misused("tools/call", "the params are wrong");
        let mut arguments = match &params["arguments"] {
            Value::Null => Object::new(),
            arguments => arguments.as_object().ok_or_else(misused)?.clone(),
        };
        let name = params["name"].as_str().ok_or_else(misused)?;
        let verb = verbs::named(name, self.fixed.tools);
        let verb = verb.map_err(|text| error(INVALID_PARAMS, text))?;
        let form = match form(version, params) {
            Some(Form::Requested) if params["task"].is_null() => None,
            Some(Form::Requested) if !verb.waits() => {
                return Err(error(NO_METHOD, format!("{name} can't be a task")));
            }
            form => form.filter(|_| verb.waits()),
        };
        if let (Some(_), Some((limit, _))) = (form, verb.preset) {
            arguments.entry(limit).or_insert(tasks::WAIT.into());
        }
        let is_newest = version == STATELESS;
        let fixed = self.fixed.clone();
        let line = match Line::of_call(verb, &arguments, &fixed) {
            Ok(line) => line,
            Err(failure) => {
                let wording = Wording::of_tool(verb, &fixed);
                let result = called(calls::document(&failure, &wording));
                return Ok(Some(shaped(result, is_newest, false)));
            }
        };
        let work = move |i: &_| {
            let wording = Wording::of_tool(verb, &fixed);
            let result = calls::run(line, &wording, i).map(called)?;
            Ok(shaped(result, is_newest, false))
        };
        let Some(form) = form else {
            self.calls
                .add(Recipient::Request(id), verb.waits(), Box::new(work));
            return Ok(None);
        };
        self.expire();
        let task = self.tasks.add(params["task"]["ttl"].as_u64());
        let mut shown = self.tasks.shown(&task.as_str().into(), form)?;
        self.calls.add(Recipient::Task(task), true, Box::new(work));
        Ok(Some(match form {
            Form::Requested => json!({ "task": shown }),
            Form::Extension => {
                shown["resultType"] = "task".into();
                shown
            }
        }))
    }

    /// The result of a task request; `None` if it comes later.
    fn task(
        &mut self,
        id: Value,
        method: &str,
        params: &Value,
        version: &str,
    ) -> Result<Option<Value>, Value> {
        self.expire();
        let task = &params["taskId"];
        let is_known = matches!(
            (version, method),
            (STATELESS, "tasks/get" | "tasks/cancel" | "tasks/update")
                | (
                    HANDSHAKE,
                    "tasks/get" | "tasks/cancel" | "tasks/result" | "tasks/list"
                )
        );
        if !is_known {
            return Err(error(NO_METHOD, method));
        }
        let Some(form) = form(version, params) else {
            let mut error = error(NO_CAPABILITY, "Missing required client capability");
            let extensions = json!({ (tasks::EXTENSION): {} });
            error["data"] = json!({ "requiredCapabilities": { "extensions": extensions } });
            return Err(error);
        };
        if method != "tasks/list" && !task.is_string() {
            return Err(misused(method, "the params are wrong"));
        }
        match (form, method) {
            (_, "tasks/get") => self.tasks.shown(task, form).map(Some),
            (_, "tasks/list") => self.tasks.list(params["cursor"].as_str()).map(Some),
            (_, "tasks/result") => self.tasks.result(task, id),
            (Form::Requested, _) => {
                self.cancel(task)?;
                self.tasks.shown(task, form).map(Some)
            }
            // A task that has ended can't be cancelled any more, and no task asks for input.
            (Form::Extension, _) => {
                if !self.tasks.is_over(task)? && method == "tasks/cancel" {
                    self.cancel(task)?;
                }
                Ok(Some(json!({})))
            }
        }
    }

    fn cancel(&mut self, task: &Value) -> Result<(), Value> {
        self.answers.extend(self.tasks.cancel(task)?);
        let task = task.as_str().unwrap_or_default();
        self.calls.cancel(&Recipient::Task(task.to_owned()));
        Ok(())
    }

    /// Drops expired tasks and interrupts their waits.
    fn expire(&mut self) {
        for task in self.tasks.expire() {
            self.calls.cancel(&Recipient::Task(task));
        }
    }

    /// The list of tools.
    fn tools(&self, version: &str) -> Value {
        let mut tools = self.tools.clone();
        // Only this version states in a tool's schema that its calls can be tasks.
        if version == HANDSHAKE {
            let waiting: Vec<String> = verbs::waiting().collect();
            for tool in tools.as_array_mut().into_iter().flatten() {
                if waiting.iter().any(|name| tool["name"] == **name) {
                    tool["execution"] = json!({ "taskSupport": "optional" });
                }
            }
        }
        json!({ "tools": tools })
    }

    /// Negotiates a version by handshake. A connection that began without a handshake stays
    /// stateless. `None` if the parameters are invalid.
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
            "capabilities": capabilities(version),
            "serverInfo": own(),
            "instructions": self.instructions(),
        }))
    }

    /// The version of a request. If there was no handshake, its first request makes the connection
    /// stateless.
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

    /// The server's description, for clients without a handshake.
    fn discovered(&self) -> Value {
        json!({
            "resultType": "complete",
            "supportedVersions": VERSIONS,
            "capabilities": capabilities(STATELESS),
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

fn capabilities(version: &str) -> Value {
    let mut capabilities = json!({ "resources": {}, "tools": {} });
    match version {
        HANDSHAKE => {
            let requests = json!({ "tools": { "call": {} } });
            capabilities["tasks"] = json!({ "list": {}, "cancel": {}, "requests": requests });
        }
        STATELESS => capabilities["extensions"] = json!({ (tasks::EXTENSION): {} }),
        _ => {}
    }
    capabilities
}

/// Which form of tasks a request uses, if any.
fn form(version: &str, params: &Value) -> Option<Form> {
    match version {
        HANDSHAKE => Some(Form::Requested),
        STATELESS => {
            let known = &params["_meta"][CAPABILITIES]["extensions"][tasks::EXTENSION];
            known.is_object().then_some(Form::Extension)
        }
        _ => None,
    }
}

fn own() -> Value {
    json!({
        "name": "git-handoff",
        "title": "Handoffs between agents",
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// The result of a tool call, from its document.
fn called(document: Value) -> Value {
    let is_error = document["ok"] != true;
    json!({
        "content": [{ "type": "text", "text": document.to_string() }],
        "structuredContent": document,
        "isError": is_error,
    })
}

/// Adds the fields that the newest version requires to a result.
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
