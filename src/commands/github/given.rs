//! The event that a command processes: the workflow's, or another.

use clap::Args;
use handoff::base::ids::IssueKey;
use handoff::base::text::quoted;
use handoff::protocol::Permission;
use handoff_github::event::{Event, MAX_PAYLOAD, NoEvent};
use serde_json::{Value, json};

use crate::context::Context;
use crate::contracts::input;
use crate::exit;
use crate::failure::{ErrorCode, Failure, chain};
use crate::output::Output;
use handoff_http::github::{Github, GithubError};

// No doc comment: it would become the help of every command that takes these options.
#[derive(Args)]
pub(super) struct Given {
    /// The event's payload, by default GITHUB_EVENT_PATH; - reads standard input
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<String>,
    /// The event's name; by default GITHUB_EVENT_NAME
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// The issues that GitHub says the pull request closes (`closingIssuesReferences`), with commas;
    /// by default those that its text closes, else the one that its branch is named after
    #[arg(long, value_name = "ISSUES", value_delimiter = ',')]
    pub(super) closes: Vec<IssueKey>,
}

// No doc comment, as above.
#[derive(Args)]
pub(super) struct Asking {
    #[command(flatten)]
    pub(super) given: Given,
    /// Ask GitHub which issues the pull request closes, which labels an issue has now, and what the author
    /// of a comment or review may do (GITHUB_REPOSITORY, GH_TOKEN); limits of requests are waited for;
    /// without an answer, go on with what the event and the ledger say, but for the author
    #[arg(long, conflicts_with = "closes")]
    ask_github: bool,
}

/// GitHub's answers about an event.
#[derive(Default)]
pub(super) struct Said {
    /// The issues that the event's pull request closes: as given, or from GitHub.
    pub(super) closes: Vec<IssueKey>,
    /// Why GitHub's answers are incomplete.
    pub(super) unasked: Option<String>,
    /// The newest commit of the pull request.
    pub(super) head: Option<String>,
}

impl Asking {
    /// Asks GitHub which issues the event's pull request closes, and for the current state of the
    /// pull request or issue: events arrive out of order, and some may be dropped. Prints a notice
    /// if GitHub does not answer.
    pub(super) fn ask(&self, context: &Context, event: &mut Event, output: &mut Output) -> Said {
        let mut said = Said {
            closes: self.given.closes.clone(),
            ..Said::default()
        };
        if !self.ask_github {
            return said;
        }
        let asked = match pull_request_of(event) {
            Some(number) => github(context)
                .and_then(|github| Ok(github.about(&[number], "handoff gate")?))
                .map(|mut about| {
                    let about = about.remove(&number).unwrap_or_default();
                    if event.name().starts_with("pull_request") {
                        event.update("pull_request", about.now);
                    }
                    said.closes = about.closes;
                    said.head = about.status.map(|(commit, _)| commit);
                }),
            None => as_it_is_now(context, event),
        };
        if let Err(failure) = asked {
            output.notice("linked issues are not known", &failure.message);
            said.unasked = Some(failure.message);
        }
        said
    }

    /// Asks GitHub for the permission of the author of the event's comment or review, unless
    /// `given`; `None` if the author is no collaborator. A review is first updated to its current
    /// state.
    ///
    /// # Errors
    /// A [`Failure`] if GitHub does not answer: the comment must not be dropped for that.
    pub(super) fn permission(
        &self,
        context: &Context,
        event: &mut Event,
        given: Option<Permission>,
    ) -> Result<Option<Permission>, Failure> {
        if self.ask_github {
            review_as_it_is_now(context, event)?;
        }
        let is_plain = |login: &String| {
            let is_part = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
            login.bytes().all(is_part)
        };
        let is_asked = self.ask_github && given.is_none();
        let Some(login) = event.author().filter(is_plain).filter(|_| is_asked) else {
            return Ok(given);
        };
        match github(context)?.get(&format!("collaborators/{login}/permission")) {
            Ok(said) => Ok(said["permission"].as_str().and_then(|word| {
                let mut all = Permission::ALL.into_iter();
                all.find(|permission| permission.as_str() == word)
            })),
            Err(GithubError::Refused(refused)) if refused.status == 404 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Updates a submitted review to its current state: it may have been dismissed since.
///
/// # Errors
/// A [`Failure`] if GitHub does not answer: a dismissed review must not count as an approval.
fn review_as_it_is_now(context: &Context, event: &mut Event) -> Result<(), Failure> {
    let number = |place| event.at(place).and_then(Value::as_u64);
    let review = number("/pull_request/number").zip(number("/review/id"));
    let Some((number, id)) = review.filter(|_| event.action() == Some("submitted")) else {
        return Ok(());
    };
    match github(context)?.get(&format!("pulls/{number}/reviews/{id}")) {
        Ok(now) => {
            let state = now["state"].as_str().unwrap_or_default().to_lowercase();
            event.update("review", json!({ "state": state }));
            Ok(())
        }
        Err(GithubError::Refused(refused)) if refused.status == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A GitHub client with the command's timeout.
fn github(context: &Context) -> Result<Github, Failure> {
    Ok(Github::from_environment()?.within(context.remote_args().timeout()))
}

/// The number of the pull request in an event's payload.
pub(super) fn pull_request_of(event: &Event) -> Option<u64> {
    let place = match event.at("/issue/pull_request") {
        None | Some(Value::Null) => "/pull_request/number",
        Some(_) => "/issue/number",
    };
    event.at(place).and_then(Value::as_u64)
}

/// Actions on an issue that a later action can undo.
const UNDOABLE: [&str; 9] = [
    "labeled",
    "unlabeled",
    "assigned",
    "unassigned",
    "milestoned",
    "demilestoned",
    "edited",
    "closed",
    "reopened",
];

/// Updates an event's issue to its current state, unless the issue is gone.
fn as_it_is_now(context: &Context, event: &mut Event) -> Result<(), Failure> {
    let is_undoable = event.name() == "issues"
        && event
            .action()
            .is_some_and(|action| UNDOABLE.contains(&action));
    let number = event.at("/issue/number").and_then(Value::as_u64);
    if let Some(number) = number.filter(|_| is_undoable) {
        match github(context)?.get(&format!("issues/{number}")) {
            // Keep the event's own time: it decides which steps came before.
            Ok(now) if matches!(event.action(), Some("closed" | "reopened")) => {
                event.update("issue", json!({ "state": now["state"] }));
            }
            Ok(now) => event.update("issue", now),
            // Transferred or deleted.
            Err(GithubError::Refused(refused)) if [301, 404, 410].contains(&refused.status) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads the event.
///
/// # Errors
/// A [`Failure`]: of usage if no event is given, else if it can't be read.
pub(super) fn read(context: &Context, given: &Given) -> Result<Event, Failure> {
    let from = |variable: &str| {
        let set = std::env::var(variable).ok();
        set.filter(|value| !value.is_empty())
    };
    let missing = |what: &str, option: &str, variable: &str| {
        let text = format!("{what} of the event is missing: {variable} is not set");
        Failure::new(ErrorCode::NoWorkflow, text).hint(format!(
            "use {option}; a workflow on GitHub sets {variable}"
        ))
    };
    let file = given.file.clone().or_else(|| from("GITHUB_EVENT_PATH"));
    let file = file.ok_or_else(|| missing("the payload", "--file FILE", "GITHUB_EVENT_PATH"))?;
    let name = given.name.clone().or_else(|| from("GITHUB_EVENT_NAME"));
    let name = name.ok_or_else(|| missing("the name", "--name NAME", "GITHUB_EVENT_NAME"))?;
    let bytes = payload(context, &file)?;
    Event::read(&name, &bytes).map_err(|error| match &error {
        NoEvent::Name { .. } => Failure::usage(error.to_string())
            .hint("--name is GitHub's name for the event: issues, pull_request, issue_comment, …"),
        _ => {
            let text = format!("{} is not an event: {}", quoted(&file), chain(&error));
            Failure::new(ErrorCode::EventRefused, text)
                .hint("give the JSON payload as GitHub delivers it; in a workflow, GITHUB_EVENT_PATH names its file")
        }
    })
}

/// Reads the payload of an event.
///
/// # Errors
/// A [`Failure`]: 6 if the file does not exist, 3 if it can't be parsed.
fn payload(context: &Context, name: &str) -> Result<Vec<u8>, Failure> {
    input::read(context, name, MAX_PAYLOAD).map_err(|failure| match failure.exit {
        exit::CONTRACT => Failure {
            code: Some(ErrorCode::EventRefused),
            findings: Vec::new(),
            ..failure
        }
        .hint("give it the payload as GitHub delivers it, in JSON"),
        _ => failure,
    })
}
