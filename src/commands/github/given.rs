//! The event that a command is about: the one that started the workflow, or another.

use clap::Args;
use handoff_base::text::quoted;
use handoff_github::event::{Event, NoEvent};

use crate::context::Context;
use crate::contracts::input;
use crate::failure::{ErrorCode, Failure, chain};

// Without a doc comment, which would become the help of every command that takes these.
#[derive(Args)]
pub(super) struct Given {
    /// The event's payload; by default GITHUB_EVENT_PATH. - reads standard input
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<String>,
    /// The event's name; by default GITHUB_EVENT_NAME
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
}

/// Reads the event.
///
/// # Errors
/// A [`Failure`]: of usage where nothing says which, else of what can't be read.
pub(super) fn read(context: &Context, given: &Given) -> Result<Event, Failure> {
    let from = |variable: &str| {
        let set = std::env::var(variable).ok();
        set.filter(|value| !value.is_empty())
    };
    let missing = |what: &str, option: &str, variable: &str| {
        let text = format!("nothing says {what} of the event: there is no {variable}");
        Failure::new(ErrorCode::NoWorkflow, text).hint(format!(
            "say it with {option}; in a workflow on GitHub it is set"
        ))
    };
    let file = given.file.clone().or_else(|| from("GITHUB_EVENT_PATH"));
    let file = file.ok_or_else(|| missing("the payload", "--file FILE", "GITHUB_EVENT_PATH"))?;
    let name = given.name.clone().or_else(|| from("GITHUB_EVENT_NAME"));
    let name = name.ok_or_else(|| missing("the name", "--name NAME", "GITHUB_EVENT_NAME"))?;
    let bytes = input::payload(context, &file)?;
    Event::read(&name, &bytes).map_err(|error| match &error {
        NoEvent::Name { .. } => Failure::usage(error.to_string())
            .hint("--name is the name that GitHub has for it: issues, pull_request, issue_comment, …"),
        _ => {
            let text = format!("{} holds no event: {}", quoted(&file), chain(&error));
            Failure::new(ErrorCode::EventRefused, text)
                .hint("give it the payload as GitHub delivers it, in JSON: in a workflow, the file that GITHUB_EVENT_PATH names")
        }
    })
}
