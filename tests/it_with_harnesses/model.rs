//! The stand-in for the model: a server on loopback that plays an agent, in four wire formats, and
//! records what reached it.

use std::fmt::Write as _;
use std::io::Cursor;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use serde_json::{Value, json};
use tiny_http::{Header, Method, Response, Server};

use crate::agent::{self, Turn};
use crate::wire::{Figures, Reply, Request, Tokens, Wire};

/// What the agent does, by what it is asked.
type Play = Arc<dyn Fn(&Request) -> Turn + Send + Sync>;

/// A request that reached the model, and what it was answered.
#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) request: Request,
    /// What was answered, in words.
    pub(crate) answered: String,
    /// What the answer says that it took.
    pub(crate) tokens: Tokens,
}

#[derive(Default)]
struct State {
    play: Option<Play>,
    /// How often it was told what to play.
    plays: u64,
    /// The requests for turns since then, and all others by method and path.
    records: Vec<Record>,
    others: Vec<String>,
    /// How many requests get no answer now.
    hanging: usize,
    number: u64,
}

struct Shared {
    state: Mutex<State>,
    /// That another play began.
    changed: Condvar,
}

pub(crate) struct Model {
    pub(crate) address: String,
    shared: Arc<Shared>,
}

impl Model {
    pub(crate) fn start() -> Self {
        let server = Server::http("127.0.0.1:0").unwrap();
        let address = format!("http://{}", server.server_addr());
        let shared = Arc::new(Shared {
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        });
        let served = Arc::clone(&shared);
        thread::spawn(move || {
            for request in server.incoming_requests() {
                let shared = Arc::clone(&served);
                thread::spawn(move || shared.serve(request));
            }
        });
        Self { address, shared }
    }

    /// Plays this from now on, and forgets what was recorded.
    pub(crate) fn plays(&self, play: impl Fn(&Request) -> Turn + Send + Sync + 'static) {
        let mut state = self.shared.state.lock().unwrap();
        state.play = Some(Arc::new(play));
        state.plays += 1;
        state.records.clear();
        state.others.clear();
        self.shared.changed.notify_all();
    }

    /// The requests for turns.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.shared.state.lock().unwrap().records.clone()
    }

    /// How many requests get no answer now.
    pub(crate) fn hanging(&self) -> usize {
        self.shared.state.lock().unwrap().hanging
    }

    /// What all answers said that they took.
    pub(crate) fn tokens(&self) -> Tokens {
        let mut sum = Tokens::default();
        for record in self.records() {
            sum.input += record.tokens.input;
            sum.cached += record.tokens.cached;
            sum.output += record.tokens.output;
        }
        sum
    }

    /// What happened, in lines for a person.
    pub(crate) fn story(&self) -> String {
        let mut story = String::new();
        for record in self.records() {
            let Record {
                request, answered, ..
            } = &record;
            let result = request.results.last().map_or("", String::as_str);
            let result: String = result.chars().take(600).collect();
            let role = agent::role(&request.told()).unwrap_or("?");
            writeln!(
                story,
                "{role}, turn {}: {result}\n -> {answered}",
                request.turns
            )
            .unwrap();
        }
        let others = self.shared.state.lock().unwrap().others.join("\n");
        story + &others
    }
}

impl Shared {
    fn serve(&self, mut http: tiny_http::Request) {
        let path = http.url().to_owned();
        let mut bytes = Vec::new();
        http.as_reader().read_to_end(&mut bytes).unwrap();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let wire = Wire::of(&path).filter(|_| *http.method() == Method::Post);
        let (status, headers, content) = match wire {
            Some((wire, streams)) => self.answer(&wire.read(body, &path, streams)),
            None => self.other(&format!("{} {path}", http.method()), &path),
        };
        let headers = headers
            .iter()
            .map(|(name, value)| Header::from_bytes(name.as_bytes(), value.as_bytes()).unwrap());
        let length = content.len();
        let response = Response::new(
            status.into(),
            headers.collect(),
            Cursor::new(content.into_bytes()),
            Some(length),
            None,
        );
        // A program that was ended reads no answer.
        let _ = http.respond(response);
    }

    fn other(&self, line: &str, path: &str) -> Answer {
        let path = path.split('?').next().unwrap_or_default();
        self.state.lock().unwrap().others.push(line.to_owned());
        let (status, body) = if path.ends_with("/models") {
            let model = json!({"id": "stand-in", "object": "model", "type": "model"});
            (200, json!({"object": "list", "data": [model]}))
        } else if path.ends_with("count_tokens") || path.ends_with(":countTokens") {
            (200, json!({"input_tokens": 500, "totalTokens": 500}))
        } else {
            (
                404,
                json!({"error": {"message": format!("no {line} here")}}),
            )
        };
        (status, vec![json_type()], body.to_string())
    }

    fn answer(&self, request: &Request) -> Answer {
        if request.is_aside() {
            let reply = Reply::Say(aside(request));
            let (kind, content) = request.answer(0, &reply, Figures::of(request.wire, 0));
            return (200, vec![("Content-Type", kind.to_owned())], content);
        }
        let (play, number) = {
            let mut state = self.state.lock().unwrap();
            state.number += 1;
            (state.play.clone(), state.number)
        };
        let say = || Turn::Say("nothing is played.".to_owned());
        let turn = play.map_or_else(say, |play| play(request));
        let record = |answered: String, tokens| {
            self.state.lock().unwrap().records.push(Record {
                request: request.clone(),
                answered,
                tokens,
            });
        };
        match &turn {
            Turn::Refuse(status, after) => {
                record(format!("{turn:?}"), Tokens::default());
                let mut headers = vec![json_type()];
                headers.extend(after.map(|seconds| ("Retry-After", seconds.to_string())));
                return (*status, headers, request.wire.refusal(*status).to_string());
            }
            Turn::Hang => {
                record(format!("{turn:?}"), Tokens::default());
                self.hang();
                return (503, vec![json_type()], "{}".to_owned());
            }
            _ => {}
        }
        let reply = agent::reply(&turn, request, number);
        let reply = reply.unwrap_or_else(|why| Reply::Say(format!("{}{why}", agent::SAYS)));
        let figures = Figures::of(request.wire, number);
        record(said(&reply), figures.tokens());
        let (kind, content) = request.answer(number, &reply, figures);
        (200, vec![("Content-Type", kind.to_owned())], content)
    }

    /// Waits for another play.
    fn hang(&self) {
        let mut state = self.state.lock().unwrap();
        state.hanging += 1;
        let plays = state.plays;
        let mut state = self
            .changed
            .wait_while(state, |state| state.plays == plays)
            .unwrap();
        state.hanging -= 1;
    }
}

type Answer = (u16, Vec<(&'static str, String)>, String);

fn json_type() -> (&'static str, String) {
    ("Content-Type", "application/json".to_owned())
}

fn said(reply: &Reply) -> String {
    match reply {
        Reply::Say(said) => said.clone(),
        Reply::Call {
            tool, arguments, ..
        } => format!("{} {arguments}", tool.name),
    }
}

/// The answer to a question beside the work: in JSON, where that is asked for.
fn aside(request: &Request) -> String {
    let asked = request.body.to_string();
    if asked.contains("next_speaker") {
        return json!({"reasoning": "it is done", "next_speaker": "user"}).to_string();
    }
    if asked.contains("json") {
        return json!({"title": "The work"}).to_string();
    }
    "The work".to_owned()
}
