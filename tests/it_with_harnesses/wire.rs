//! The four wire formats: what a request says, and how an answer is written.

use serde_json::{Value, json};

use crate::agent::SAYS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions.
    Completions,
    /// Gemini generateContent.
    Gemini,
}

/// A tool that a request offers.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    /// The JSON Schema of its arguments.
    pub(crate) schema: Value,
}

/// A request for the agent's next turn.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) wire: Wire,
    pub(crate) model: String,
    streams: bool,
    pub(crate) tools: Vec<Tool>,
    /// What it was told: by the program, by its user.
    pub(crate) texts: Vec<String>,
    /// What its tools answered.
    pub(crate) results: Vec<String>,
    /// How many turns it had.
    pub(crate) turns: usize,
    pub(crate) body: Value,
}

/// What an answer has.
pub(crate) enum Reply {
    Say(String),
    Call {
        id: String,
        tool: Tool,
        arguments: Value,
    },
}

/// Tokens, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// All that was read, the cached ones too.
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
}

/// The tokens that an answer says it took, told apart by kind: some are written to the cache, which
/// only Anthropic counts, and some are thoughts, which Anthropic does not count apart.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) fresh: u64,
    pub(crate) cached: u64,
    pub(crate) written: u64,
    pub(crate) said: u64,
    pub(crate) thought: u64,
}

impl Figures {
    /// Figures that differ from one request to the next.
    pub(crate) fn of(wire: Wire, number: u64) -> Self {
        let is_messages = wire == Wire::Messages;
        Self {
            fresh: 500 + number,
            cached: 70,
            written: if is_messages { 9 } else { 0 },
            said: 40 + number % 7,
            thought: if is_messages { 0 } else { 3 },
        }
    }

    pub(crate) fn tokens(self) -> Tokens {
        Tokens {
            input: self.fresh + self.cached + self.written,
            cached: self.cached,
            output: self.said + self.thought,
        }
    }
}

/// The mark in the id of a call that is no turn of the agent's own.
pub(crate) const ASIDE: &str = "aside";

impl Wire {
    /// The format that a path is for, and whether the path asks for a stream.
    pub(crate) fn of(path: &str) -> Option<(Self, bool)> {
        let path = path.split('?').next().unwrap_or_default();
        [
            ("/messages", Self::Messages, false),
            ("/responses", Self::Responses, false),
            ("/chat/completions", Self::Completions, false),
            (":generateContent", Self::Gemini, false),
            (":streamGenerateContent", Self::Gemini, true),
        ]
        .into_iter()
        .find(|(end, ..)| path.ends_with(end))
        .map(|(_, wire, streams)| (wire, streams))
    }

    /// What a request of this format says.
    pub(crate) fn read(self, body: Value, path: &str, streams: bool) -> Request {
        let mut request = Request {
            wire: self,
            model: text(&body["model"]).to_owned(),
            streams: streams || body["stream"] == true,
            tools: Vec::new(),
            texts: Vec::new(),
            results: Vec::new(),
            turns: 0,
            body: Value::Null,
        };
        match self {
            Self::Messages => request.read_messages(&body),
            Self::Responses => request.read_responses(&body),
            Self::Completions => request.read_completions(&body),
            Self::Gemini => {
                let name = path.rsplit('/').next().unwrap_or_default();
                name.split(':')
                    .next()
                    .unwrap_or_default()
                    .clone_into(&mut request.model);
                request.read_gemini(&body);
            }
        }
        request.body = body;
        request
    }

    /// The body of a refusal.
    pub(crate) fn refusal(self, status: u16) -> Value {
        let (kind, state) = match status {
            401 => ("authentication_error", "UNAUTHENTICATED"),
            429 => ("rate_limit_error", "RESOURCE_EXHAUSTED"),
            529 | 503 => ("overloaded_error", "UNAVAILABLE"),
            _ => ("api_error", "INTERNAL"),
        };
        let message = format!("the stand-in answers {status}");
        match self {
            Self::Messages => {
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            Self::Gemini => {
                json!({"error": {"code": status, "message": message, "status": state}})
            }
            Self::Responses | Self::Completions => {
                json!({"error": {"message": message, "type": kind, "code": kind}})
            }
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// All text of a message's content: a text, or parts that have one.
fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(content).collect();
            texts.join("\n")
        }
        Value::Object(part) => match part.get("text").or_else(|| part.get("content")) {
            Some(inner) => content(inner),
            None => value.to_string(),
        },
        _ => String::new(),
    }
}

fn tool(name: &Value, schema: &Value) -> Tool {
    Tool {
        namespace: None,
        name: text(name).to_owned(),
        schema: schema.clone(),
    }
}

impl Request {
    /// Whether it is one beside the agent's work, such as for a title: it offers no tools.
    pub(crate) fn is_aside(&self) -> bool {
        self.tools.is_empty()
    }

    /// All that it was told.
    pub(crate) fn told(&self) -> String {
        self.texts.join("\n")
    }

    /// Counts a part of a message of the agent's.
    fn own(&mut self, id: Option<&Value>, said: Option<&Value>) {
        let called = id.is_some_and(|id| !text(id).contains(ASIDE));
        let said = said.is_some_and(|said| text(said).starts_with(SAYS));
        self.turns += usize::from(called) + usize::from(said);
    }

    fn read_messages(&mut self, body: &Value) {
        self.texts.push(content(&body["system"]));
        for message in list(&body["messages"]) {
            let parts = &message["content"];
            if message["role"] == "assistant" {
                self.own(None, Some(parts));
                for part in list(parts) {
                    self.own(part.get("id"), part.get("text"));
                }
            } else if parts.is_string() {
                self.texts.push(content(parts));
            }
            for part in list(parts).filter(|_| message["role"] != "assistant") {
                let is_result = part["type"] == "tool_result";
                let to = if is_result {
                    &mut self.results
                } else {
                    &mut self.texts
                };
                to.push(content(part));
            }
        }
        let tools = list(&body["tools"]).map(|t| tool(&t["name"], &t["input_schema"]));
        self.tools.extend(tools);
    }

    fn read_responses(&mut self, body: &Value) {
        self.texts.push(content(&body["instructions"]));
        if body["input"].is_string() {
            self.texts.push(content(&body["input"]));
        }
        for item in list(&body["input"]) {
            let kind = text(&item["type"]);
            if kind.ends_with("_output") {
                self.results.push(content(&item["output"]));
            } else if kind.ends_with("_call") {
                self.own(item.get("call_id"), None);
            } else if item["role"] == "assistant" {
                self.own(None, Some(&Value::String(content(&item["content"]))));
            } else if item.get("role").is_some() {
                self.texts.push(content(&item["content"]));
            }
        }
        for group in list(&body["tools"]) {
            if group["type"] == "namespace" {
                self.tools.extend(list(&group["tools"]).map(|t| Tool {
                    namespace: Some(text(&group["name"]).to_owned()),
                    ..tool(&t["name"], &t["parameters"])
                }));
            } else {
                self.tools.push(tool(&group["name"], &group["parameters"]));
            }
        }
    }

    fn read_completions(&mut self, body: &Value) {
        for message in list(&body["messages"]) {
            match text(&message["role"]) {
                "assistant" => {
                    self.own(None, Some(&Value::String(content(&message["content"]))));
                    for call in list(&message["tool_calls"]) {
                        self.own(call.get("id"), None);
                    }
                }
                "tool" => self.results.push(content(&message["content"])),
                _ => self.texts.push(content(&message["content"])),
            }
        }
        let functions = list(&body["tools"]).map(|tool| &tool["function"]);
        let tools = functions.map(|f| tool(&f["name"], &f["parameters"]));
        self.tools.extend(tools);
    }

    fn read_gemini(&mut self, body: &Value) {
        self.texts
            .push(content(&body["systemInstruction"]["parts"]));
        for message in list(&body["contents"]) {
            for part in list(&message["parts"]) {
                if message["role"] == "model" {
                    let id = part.get("functionCall").map(|call| &call["name"]);
                    self.own(id, part.get("text"));
                } else if let Some(result) = part.get("functionResponse") {
                    self.results.push(result["response"].to_string());
                } else {
                    self.texts.push(content(part));
                }
            }
        }
        for tools in list(&body["tools"]) {
            for f in list(&tools["functionDeclarations"]) {
                let schema = f.get("parametersJsonSchema").unwrap_or(&f["parameters"]);
                self.tools.push(tool(&f["name"], schema));
            }
        }
    }

    /// An answer: the type of its content, and the content.
    pub(crate) fn answer(
        &self,
        number: u64,
        reply: &Reply,
        figures: Figures,
    ) -> (&'static str, String) {
        let (whole, events) = match self.wire {
            Wire::Messages => self.messages(number, reply, figures),
            Wire::Responses => self.responses(number, reply, figures),
            Wire::Completions => self.completions(number, reply, figures),
            Wire::Gemini => self.gemini(number, reply, figures),
        };
        if !self.streams {
            return ("application/json", whole.to_string());
        }
        let mut stream = String::new();
        for event in events {
            if let Some(name) = event["type"].as_str() {
                stream += &format!("event: {name}\n");
            }
            stream += &format!("data: {event}\n\n");
        }
        if self.wire == Wire::Completions {
            stream += "data: [DONE]\n\n";
        }
        ("text/event-stream", stream)
    }

    fn messages(&self, number: u64, reply: &Reply, f: Figures) -> (Value, Vec<Value>) {
        let (block, begun, delta, stop) = match reply {
            Reply::Say(said) => (
                json!({"type": "text", "text": said}),
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": said}),
                "end_turn",
            ),
            Reply::Call {
                id,
                tool,
                arguments,
            } => (
                json!({"type": "tool_use", "id": id, "name": tool.name, "input": arguments}),
                json!({"type": "tool_use", "id": id, "name": tool.name, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": arguments.to_string()}),
                "tool_use",
            ),
        };
        let usage = json!({
            "input_tokens": f.fresh, "cache_read_input_tokens": f.cached,
            "cache_creation_input_tokens": f.written, "output_tokens": f.said,
        });
        let whole = json!({
            "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": self.model,
            "content": [block], "stop_reason": stop, "stop_sequence": null, "usage": usage,
        });
        let mut start = whole.clone();
        start["content"] = json!([]);
        start["stop_reason"] = Value::Null;
        start["usage"]["output_tokens"] = 1.into();
        let events = vec![
            json!({"type": "message_start", "message": start}),
            json!({"type": "content_block_start", "index": 0, "content_block": begun}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": usage}),
            json!({"type": "message_stop"}),
        ];
        (whole, events)
    }

    fn responses(&self, number: u64, reply: &Reply, f: Figures) -> (Value, Vec<Value>) {
        let item = match reply {
            Reply::Say(said) => json!({
                "type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": said, "annotations": []}],
            }),
            Reply::Call {
                id,
                tool,
                arguments,
            } => {
                let mut item = json!({
                    "type": "function_call", "id": format!("fc_{number}"), "call_id": id, "name": tool.name,
                    "arguments": arguments.to_string(), "status": "completed",
                });
                if let Some(namespace) = &tool.namespace {
                    item["namespace"] = namespace.as_str().into();
                }
                item
            }
        };
        let (input, output) = (f.fresh + f.cached, f.said + f.thought);
        let whole = json!({
            "id": format!("resp_{number}"), "object": "response", "status": "completed", "model": self.model,
            "output": [item],
            "usage": {
                "input_tokens": input, "input_tokens_details": {"cached_tokens": f.cached},
                "output_tokens": output, "output_tokens_details": {"reasoning_tokens": f.thought},
                "total_tokens": input + output,
            },
        });
        let mut begun = whole.clone();
        begun["status"] = "in_progress".into();
        begun["output"] = json!([]);
        begun["usage"] = Value::Null;
        let mut events = vec![
            json!({"type": "response.created", "response": begun}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        ];
        if let Reply::Say(said) = reply {
            events.push(json!({
                "type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0,
                "delta": said,
            }));
        }
        events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
        events.push(json!({"type": "response.completed", "response": whole}));
        for (number, event) in events.iter_mut().enumerate() {
            event["sequence_number"] = number.into();
        }
        (whole, events)
    }

    fn completions(&self, number: u64, reply: &Reply, f: Figures) -> (Value, Vec<Value>) {
        let (message, stop) = match reply {
            Reply::Say(said) => (json!({"role": "assistant", "content": said}), "stop"),
            Reply::Call {
                id,
                tool,
                arguments,
            } => {
                let function = json!({"name": tool.name, "arguments": arguments.to_string()});
                let call = json!({"index": 0, "id": id, "type": "function", "function": function});
                let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
                (message, "tool_calls")
            }
        };
        let (input, output) = (f.fresh + f.cached, f.said + f.thought);
        let usage = json!({
            "prompt_tokens": input, "prompt_tokens_details": {"cached_tokens": f.cached},
            "completion_tokens": output, "completion_tokens_details": {"reasoning_tokens": f.thought},
            "total_tokens": input + output,
        });
        let of = |object: &str, choices: Value| {
            json!({
                "id": format!("chatcmpl-{number}"), "object": object, "created": 1, "model": self.model,
                "choices": choices,
            })
        };
        let mut whole = of(
            "chat.completion",
            json!([{"index": 0, "message": message, "finish_reason": stop}]),
        );
        whole["usage"] = usage.clone();
        let chunk = |choices| of("chat.completion.chunk", choices);
        let mut last = chunk(json!([]));
        last["usage"] = usage;
        let events = vec![
            chunk(json!([{"index": 0, "delta": message, "finish_reason": null}])),
            chunk(json!([{"index": 0, "delta": {}, "finish_reason": stop}])),
            last,
        ];
        (whole, events)
    }

    fn gemini(&self, number: u64, reply: &Reply, f: Figures) -> (Value, Vec<Value>) {
        let part = match reply {
            Reply::Say(said) => json!({"text": said}),
            Reply::Call {
                id,
                tool,
                arguments,
            } => json!({"functionCall": {"id": id, "name": tool.name, "args": arguments}}),
        };
        let whole = json!({
            "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
            "usageMetadata": {
                "promptTokenCount": f.fresh + f.cached, "cachedContentTokenCount": f.cached,
                "candidatesTokenCount": f.said, "thoughtsTokenCount": f.thought,
                "totalTokenCount": f.fresh + f.cached + f.said + f.thought,
            },
            "modelVersion": self.model, "responseId": format!("response-{number}"),
        });
        (whole.clone(), vec![whole])
    }
}
