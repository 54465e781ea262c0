//! The actions on a handoff: each runs a command of this program.

use std::io;
use std::process::{Command, Stdio};

use handoff::base::text::{path, word};
use handoff::model::Record;
use handoff::protocol::{Event, State};

use super::edit::Line;
use handoff::base::codes::exit;

/// An action that decides about a handoff.
#[derive(Debug)]
pub(super) struct Action {
    pub(super) key: char,
    pub(super) command: &'static str,
    /// The events that it causes; it is offered in states that accept one of them.
    events: &'static [Event],
    /// Whether it also records a person's opinion of code, even of completed work.
    judges_code: bool,
    asks: &'static [Asked],
}

/// An input that an action needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The acting agent, unless one was named.
    Agent,
    /// A text, or a value for each question.
    Answer,
    /// Another agent.
    Receiver,
    /// An optional reason.
    Reason,
    /// A required reason.
    Why,
}

/// Every action. A new command needs one more line.
pub(super) const ACTIONS: &[Action] = &[
    Action::new('a', "answer", &[Event::Answer], &[Asked::Answer]),
    Action::new(
        'r',
        "retry",
        &[Event::Retry, Event::Redrive],
        &[Asked::Reason],
    ),
    Action::new(
        's',
        "reassign",
        &[Event::Reassign],
        &[Asked::Receiver, Asked::Reason],
    ),
    Action::new('c', "cancel", &[Event::Cancel], &[Asked::Reason]),
    Action::new('p', "approve", &[], &[Asked::Reason]).judging_code(),
    Action::new('x', "reject", &[Event::Reject], &[Asked::Why]).judging_code(),
];

impl Action {
    const fn new(
        key: char,
        command: &'static str,
        events: &'static [Event],
        asks: &'static [Asked],
    ) -> Self {
        Self {
            key,
            command,
            events,
            judges_code: false,
            asks,
        }
    }

    const fn judging_code(self) -> Self {
        Self {
            judges_code: true,
            ..self
        }
    }

    /// Whether the action is offered in a state, for a handoff with or without code.
    pub(super) fn is_for(&self, state: State, has_code: bool) -> bool {
        let judges = self.judges_code && has_code;
        judges && !matches!(state, State::Rejected | State::Cancelled)
            || self.events.iter().any(|event| state.on(*event).is_ok())
    }
}

/// The options that every command gets: the agent and the ledger.
#[derive(Clone, Debug, Default)]
pub(super) struct Acting {
    pub(super) agent: Option<String>,
    /// Further options with which the board was started.
    pub(super) options: Vec<String>,
}

/// An input field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) label: String,
    pub(super) value: Line,
    asked: Asked,
    /// The question's key, if the field is for an answer's value.
    key: Option<String>,
}

impl Field {
    fn new(asked: Asked, label: &str) -> Self {
        Self {
            label: label.to_owned(),
            value: Line::default(),
            asked,
            key: None,
        }
    }
}

/// An action with its input fields.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) action: &'static Action,
    id: String,
    acting: Acting,
    pub(super) fields: Vec<Field>,
    /// The index of the focused field.
    pub(super) at: usize,
}

impl Form {
    pub(super) fn new(action: &'static Action, record: &Record, acting: &Acting) -> Self {
        let mut fields = Vec::new();
        if acting.agent.is_none() {
            fields.push(Field::new(Asked::Agent, "as agent"));
        }
        for asked in action.asks {
            match asked {
                Asked::Answer if !record.questions().is_empty() => {
                    fields.extend(record.questions().iter().map(|question| {
                        let kind = question.kind.as_ref().map(|kind| format!(" ({kind})"));
                        let label = format!("{}{}", question.key, kind.unwrap_or_default());
                        Field {
                            key: Some(question.key.clone()),
                            ..Field::new(*asked, &path(&label))
                        }
                    }));
                }
                Asked::Answer => fields.push(Field::new(*asked, "answer")),
                Asked::Receiver => fields.push(Field::new(*asked, "to agent")),
                Asked::Reason => fields.push(Field::new(*asked, "reason, if any")),
                Asked::Why => fields.push(Field::new(*asked, "reason")),
                Asked::Agent => {}
            }
        }
        Self {
            action,
            id: record.id.to_string(),
            acting: acting.clone(),
            fields,
            at: 0,
        }
    }

    /// The first required field that is empty.
    pub(super) fn lacking(&self) -> Option<usize> {
        let needed = [Asked::Agent, Asked::Receiver, Asked::Why];
        let is_empty = |field: &Field| field.value.text().trim().is_empty();
        let mut fields = self.fields.iter();
        fields.position(|field| needed.contains(&field.asked) && is_empty(field))
    }

    /// The agent that was entered, if one was asked for.
    pub(super) fn agent(&self) -> Option<String> {
        self.typed(Asked::Agent).next().map(|(_, text)| text)
    }

    fn typed(&self, asked: Asked) -> impl Iterator<Item = (Option<&str>, String)> {
        let fields = self.fields.iter().filter(move |field| field.asked == asked);
        let typed = fields.map(|field| {
            let text = field.value.text().trim().to_owned();
            (field.key.as_deref(), text)
        });
        typed.filter(|(_, text)| !text.is_empty())
    }

    /// The command for what has been entered so far.
    pub(super) fn invocation(&self) -> Invocation {
        let mut words = vec![self.action.command.to_owned(), self.id.clone()];
        let receivers = self.typed(Asked::Receiver).map(|(_, to)| ("--to", to));
        let agent = self.acting.agent.clone().or_else(|| self.agent());
        let reasons = self.typed(Asked::Reason).chain(self.typed(Asked::Why));
        let reasons = reasons.map(|(_, why)| ("--reason", why));
        let agent = agent.map(|agent| ("--as", agent));
        for (option, value) in receivers.chain(agent).chain(reasons) {
            // The value must not be parsed as an option.
            if value.starts_with('-') {
                words.push(format!("{option}={value}"));
            } else {
                words.extend([option.to_owned(), value]);
            }
        }
        words.extend(self.acting.options.iter().cloned());
        let answers = self.typed(Asked::Answer).map(|(key, text)| match key {
            Some(key) => format!("{key}={text}"),
            None => text,
        });
        let answers: Vec<String> = answers.collect();
        if answers.iter().any(|answer| answer.starts_with('-')) {
            words.push("--".to_owned());
        }
        words.extend(answers);
        Invocation { words }
    }
}

/// A command of this program to run: its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Invocation {
    words: Vec<String>,
}

/// The result of a command.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) command: String,
    /// One word.
    pub(super) verdict: &'static str,
    pub(super) text: String,
}

impl Invocation {
    /// The command as a person would type it.
    pub(super) fn shown(&self) -> String {
        let words = self.words.iter().map(|arg| word(arg));
        let words: Vec<String> = words.map(|arg| path(&arg)).collect();
        format!("git handoff {}", words.join(" "))
    }

    /// Runs the command to its end, without a shell or a terminal.
    pub(super) fn run(&self) -> Outcome {
        let ran = self.output();
        let (verdict, text) = match ran {
            Ok(output) => {
                let code = output
                    .status
                    .code()
                    .and_then(|code| u8::try_from(code).ok());
                let verdict = match code {
                    Some(exit::DONE) => "done",
                    Some(exit::NOT_PUBLISHED) => "recorded here, not on the remote",
                    _ => "refused",
                };
                let said = [output.stdout, output.stderr].concat();
                (verdict, String::from_utf8_lossy(&said).into_owned())
            }
            Err(error) => ("refused", format!("the command cannot be started: {error}")),
        };
        Outcome {
            command: self.shown(),
            verdict,
            text: anstream::adapter::strip_str(&text).to_string(),
        }
    }

    fn output(&self) -> io::Result<std::process::Output> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(&self.words).stdin(Stdio::null());
        command.env("GIT_TERMINAL_PROMPT", "0").env("NO_COLOR", "1");
        // A process group of its own lets the command finish even if the board is closed.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.output()
    }
}

#[cfg(test)]
mod tests {
    use handoff::protocol::State;
    use serde_json::json;

    use super::{ACTIONS, Acting, Form};
    use crate::samples::{app, record};

    fn command(key: char, id: &str, acting: &Acting, typed: &[&str]) -> String {
        let app = app();
        let board = app.board.as_ref();
        let mut columns = board.iter().flat_map(|board| &board.columns);
        let card =
            columns.find_map(|c| c.cards.iter().find(|card| card.record.id.to_string() == id));
        let known = card.map(|card| (*card.record).clone());
        let record = known.unwrap_or_else(|| record(id, "writer", "failed", json!({})));
        let action = ACTIONS.iter().find(|action| action.key == key);
        let action = action.unwrap_or_else(|| panic!("{key} is for no action"));
        let mut form = Form::new(action, &record, acting);
        assert_eq!(form.fields.len(), typed.len());
        for (field, text) in form.fields.iter_mut().zip(typed) {
            field.value.insert(text);
        }
        form.invocation().shown()
    }

    #[test]
    fn what_is_typed_becomes_one_command() {
        let lead = Acting {
            agent: Some("lead".to_owned()),
            options: vec!["--branch".to_owned(), "other ledger".to_owned()],
        };
        let nobody = Acting::default();
        for (key, id, acting, typed, shown) in [
            (
                'r',
                "7.2",
                &lead,
                &["$(touch x); 'it' \u{1b}[2J works"][..],
                "git handoff retry 7.2 --as lead --reason '$(touch x); '\\''it'\\''  [2J works' --branch 'other ledger'",
            ),
            (
                's',
                "7.2",
                &nobody,
                &["lead", "checker", ""],
                "git handoff reassign 7.2 --to checker --as lead",
            ),
            (
                'c',
                "7.2",
                &nobody,
                &["lead", "--force"],
                "git handoff cancel 7.2 --as lead --reason=--force",
            ),
            (
                'a',
                "8.1",
                &nobody,
                &["lead", " 80 ", "a b"],
                "git handoff answer 8.1 --as lead port=80 'host=a b'",
            ),
            (
                'p',
                "7.2",
                &nobody,
                &["owner", ""],
                "git handoff approve 7.2 --as owner",
            ),
            (
                'a',
                "1.1",
                &nobody,
                &["lead", "-n\nno"],
                "git handoff answer 1.1 --as lead -- '-n no'",
            ),
        ] {
            assert_eq!(command(key, id, acting, typed), shown);
        }
    }

    #[test]
    fn an_action_is_for_the_states_that_accept_its_event() {
        let keys = |state: State, has_code| -> String {
            let actions = ACTIONS.iter();
            let actions = actions.filter(|action| action.is_for(state, has_code));
            actions.map(|action| action.key).collect()
        };
        assert_eq!(
            State::ALL.map(|state| keys(state, true)),
            ["scpx", "cpx", "acpx", "rscpx", "rcpx", "px", "", ""]
        );
        assert_eq!(
            State::ALL.map(|state| keys(state, false)),
            ["scx", "c", "ac", "rsc", "rc", "", "", ""]
        );
    }
}
