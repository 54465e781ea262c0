use clap::Args;
use handoff::base::text::quoted;
use handoff::contract::Allowance;
use handoff::ledger::Ledger;
use handoff::model::{EventArgs, Question, Refusal, View, read_answer};
use handoff::protocol::Event;
use serde_json::{Map, Value};

use super::change::act;
use crate::args::text;
use crate::context::{Context, handoff_id};
use crate::contracts::input;
use crate::failure::Failure;
use crate::output::Output;

/// Answer a blocked handoff, so that it can be claimed again
///
/// If values were requested by name, give each one a value of the requested type; if only texts
/// were requested, one text can answer them all. The handoff's sender, its receiver, an
/// orchestrator or a person can answer.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff answer 123.2 'the one for customers' --as orchestrator
  git handoff answer 123.2 port=8080 host=test.example --as orchestrator
  git handoff answer 123.2 answers.json --as orchestrator   (one member per key)")]
pub(crate) struct Arguments {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    /// Values as KEY=VALUE, a JSON file of them (- reads standard input), or the answer as plain
    /// text
    #[arg(value_name = "ANSWER", required = true)]
    answer: Vec<String>,
    /// As with `git commit`: the answer follows
    #[arg(short = 'm', long = "message", alias = "note", hide = true)]
    _message: bool,
    /// Accept text that a rule takes for a secret, on record
    #[arg(long, value_name = "RULE[@PLACE]")]
    allow_secret: Vec<Allowance>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let (ledger, session) = context.writer(&repository, output)?;
        let questions = self.questions(context, &ledger)?;
        let read = self.read(context, &questions)?;
        let args = EventArgs {
            allow: self.allow_secret.clone(),
            reason: read.reason.as_deref().map(text::kept).transpose()?,
            ..read
        };
        let writer = (ledger, session);
        act(writer, context, output, &self.id, |_, _| {
            Ok((Event::Answer, args.clone()))
        })
    }

    fn questions(&self, context: &Context, ledger: &Ledger<'_>) -> Result<Vec<Question>, Failure> {
        let agent = context.agent(ledger.repository())?;
        let tip = ledger.tip()?;
        let id = handoff_id(&tip, &self.id, agent.as_ref())?;
        let record = tip.issue(id.issue())?.record(id.number())?;
        let record = record.ok_or_else(|| Refusal::no_handoff(&id))?;
        Ok(record.questions().to_vec())
    }

    fn read(&self, context: &Context, questions: &[Question]) -> Result<EventArgs, Failure> {
        if let [file] = &self.answer[..]
            && is_file(file)
        {
            let values = values(context, file)?;
            return Ok(EventArgs {
                values,
                ..EventArgs::default()
            });
        }
        let pairs = self.answer.iter().map(|text| keyed(questions, text));
        let pairs: Option<Vec<(&str, &str)>> = pairs.collect();
        let Some(pairs) = pairs else {
            let reason = Some(self.answer.join(" "));
            return Ok(EventArgs {
                reason,
                ..EventArgs::default()
            });
        };
        let mut values = Map::new();
        for (key, given) in pairs {
            text::no_placeholder(given)?;
            let value = read_answer(questions, key, given);
            if values.insert(key.to_owned(), value).is_some() {
                let text = format!("{} is answered twice", quoted(key));
                return Err(Failure::usage(text).hint("give each key one value"));
            }
        }
        Ok(EventArgs {
            values,
            ..EventArgs::default()
        })
    }
}

/// Splits `KEY=VALUE`. If the part before the equals sign contains whitespace, the text is not a
/// pair, unless that part is a requested key.
fn keyed<'a>(questions: &[Question], text: &'a str) -> Option<(&'a str, &'a str)> {
    let (key, value) = text.split_once('=')?;
    let known = questions.iter().any(|q| q.key == key);
    (known || !key.contains(char::is_whitespace)).then_some((key, value))
}

/// Returns whether an answer names a file: `-` for standard input, or a file name without an
/// equals sign.
fn is_file(text: &str) -> bool {
    text == "-"
        || !text.contains('=') && (text.ends_with(".json") || std::path::Path::new(text).is_file())
}

/// Reads a JSON object, in which no key may be repeated.
fn values(context: &Context, file: &str) -> Result<Map<String, Value>, Failure> {
    let bytes = input::contract(context, file)?;
    let parsed = handoff::contract::Source::parse(&bytes).ok();
    let parsed = parsed.and_then(|_| serde_json::from_slice(&bytes).ok());
    match parsed {
        Some(Value::Object(values)) => Ok(values),
        _ => {
            let text = format!("{} is not a JSON object, or repeats a key", quoted(file));
            Err(Failure::usage(text).hint("write it as {\"key\": value, …}"))
        }
    }
}
