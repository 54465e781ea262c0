use std::path::PathBuf;

use anstream::adapter::strip_str;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use handoff::base::ObjectId;
use handoff::base::finding::Finding;
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::base::text::quoted;
use handoff::git::Repository;
use handoff::model::DeliveryName;
use handoff::protocol::Permission;
use handoff_cli::output::annotations::log;
use handoff_github::event::{Commanded, Did, Draft, Event, EventContext, carry_out};
use handoff_github::output::{of_reply, written};
use handoff_github::reply::Reply;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::given::{Asking, read};
use super::page::append;
use crate::context::{Context, commit_id};
use crate::environment;
use crate::failure::Failure;
use crate::output::{Answer, Output, counted, pretty, render, replace};
use crate::view::Look;

/// Record in the ledger what a GitHub event proves
///
/// In a workflow, this is the event that started it. The rules of the issue's protocol decide what
/// follows: a contract is sent, or drafted for an agent to finish; facts are noted on the issue,
/// and `git handoff new` fills them in from then on; lines such as `/handoff answer …` and `/handoff
/// retry` in a comment are commands. A delivery takes effect once, however often it arrives, and a
/// command once for each comment, however often that is edited. An event that means nothing here, or
/// comes too late, is reported and changes nothing.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff github event
  git handoff github event --ask-github --timeout 10m
  git handoff github event --permission write   (of its author, as GitHub says)
  git handoff github event --file event.json --name pull_request --dry-run
  git handoff github event --draft contract.xml   (for an agent to finish)
  git handoff github event --output values   (how to reply to commands)")]
pub(crate) struct Arguments {
    #[command(flatten)]
    asking: Asking,
    /// The delivery's id, up to 80 letters, digits and `-`; by default taken from the payload or
    /// the workflow run, else the payload's digest
    #[arg(long, value_name = "ID")]
    delivery: Option<DeliveryName>,
    /// What GitHub says that the author of the comment or the review may do in the repository
    /// (`repos/OWNER/NAME/collaborators/LOGIN/permission`): none, read, triage, write, maintain or
    /// admin. Without it and --ask-github, what takes a permission is only noted as unproven, unless the
    /// author owns the repository
    #[arg(long, value_name = "PERMISSION", value_parser = permission())]
    permission: Option<Permission>,
    /// Write nothing, and show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Write the contract that an agent must finish, if there is one, to this file; `-` is
    /// standard output
    #[arg(long, value_name = "FILE")]
    draft: Option<PathBuf>,
    /// Append values for later steps to this file: how to reply to the commands of a comment, as the
    /// `reaction` (rocket, +1, confused; empty without commands), whether one is `refused`, and the
    /// `reply` (Markdown, in Base64); the `issues` that the event is about; and whether GitHub said what
    /// it was `asked`
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The ledger's repository on GitHub, as `owner/name`: from the URL of its remote; without a
/// remote, the event's, if its commit exists here.
fn home(repository: &Repository, event: &Event) -> Option<String> {
    let name = repository.config("handoff.remote");
    let Some(url) = repository.remote_url(name.as_deref().unwrap_or("origin")) else {
        let (name, head) = event.own_head()?;
        let is_whole = head.parse::<ObjectId>().is_ok();
        return (is_whole && commit_id(repository, head).is_ok()).then(|| name.to_owned());
    };
    let url = url.trim_end_matches('/').trim_end_matches(".git");
    let parts: Vec<&str> = url.rsplit(['/', ':']).take(2).collect();
    let [name, owner] = parts[..] else {
        return None;
    };
    Some(format!("{owner}/{name}"))
}

/// Reads a permission by GitHub's word for it.
fn permission() -> impl TypedValueParser<Value = Permission> {
    PossibleValuesParser::new(Permission::ALL.map(Permission::as_str)).map(|word| {
        let mut all = Permission::ALL.into_iter();
        all.find(|permission| permission.as_str() == word)
            .unwrap_or(Permission::None)
    })
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let mut event = read(context, &self.asking.given)?;
        let said = self.asking.ask(context, &mut event, output);
        let permission = self
            .asking
            .permission(context, &mut event, self.permission)?;
        let delivery = self.delivery(&event)?;
        let run = environment::workflow_worker()?;
        let context = &context.with_fallback_worker(run);
        let repository = context.repository()?;
        let (ledger, session) = if self.dry_run {
            context.writer_apart(&repository, output)?
        } else {
            context.writer(&repository, output)?
        };
        let mut ledger = if self.dry_run {
            ledger.alone().rehearsal()?
        } else {
            ledger
        };
        let home = home(&repository, &event);
        let event_context = EventContext {
            ledger: &mut ledger,
            session: &session,
            delivery: &delivery,
            permission,
            closes: &said.closes,
            unasked: said.unasked.is_some(),
            head: said.head.as_deref(),
            home: home.as_deref(),
        };
        let carried = carry_out(event_context, &event)?;
        if !self.dry_run && carried.did.iter().any(|did| did.commit.is_none()) {
            // Steps of an earlier delivery may not have been pushed yet.
            ledger.publish_recorded(&session)?;
        }
        output.follow(&ledger);
        let reply = Reply::of(&event, &carried.commands, ledger.branch());
        if let Some(file) = &self.output {
            let mut values = of_reply(reply.as_ref());
            let issues: Vec<&str> = carried.issues.iter().map(IssueKey::as_str).collect();
            values.push(("issues", issues.join(" ")));
            values.push(("asked", said.unasked.is_none().to_string()));
            append(file, &written(&values, environment::random_word))?;
        }
        let file = self.write(carried.draft.as_ref())?;
        let view = EventView {
            event: event.name(),
            action: event.action(),
            delivery: &delivery,
            keys: &carried.issues,
            did: carried.did.iter().map(|did| self.step(did)).collect(),
            draft: carried
                .draft
                .as_ref()
                .map(|draft| DraftView { draft, file }),
            commands: &carried.commands,
            reply: reply.map(|reply| reply.body),
            why: &carried.why,
            next: carried.next.as_deref().map(|next| output.command(next)),
            repeated: carried.is_repeated(),
            dry_run: self.dry_run,
            pipes_draft: self.draft.as_deref().is_some_and(replace::is_stdout),
        };
        if view.pipes_draft && view.draft.is_some() {
            output.say(view.report().trim_end());
        }
        output.answer(&view)
    }

    fn step<'a>(&self, did: &'a Did) -> StepView<'a> {
        StepView {
            rule: &did.rule,
            what: did.what,
            id: &did.id,
            agent: &did.agent,
            facts: &did.facts,
            commit: did.commit.filter(|_| !self.dry_run),
            repeated: did.commit.is_none(),
            warnings: &did.warnings,
        }
    }

    fn delivery(&self, event: &Event) -> Result<DeliveryName, Failure> {
        if let Some(name) = &self.delivery {
            return Ok(name.clone());
        }
        if let Some(own) = event.own_delivery() {
            return Ok(own);
        }
        // Each attempt of a workflow run has the same event.
        let run = std::env::var("GITHUB_RUN_ID").ok();
        let run = run.filter(|run| self.asking.given.file.is_none() && !run.is_empty());
        let name = run.map(|run| format!("run-{run}").parse());
        let name = name.unwrap_or_else(|| event.digest_delivery());
        name.map_err(|error| {
            let text = format!("GITHUB_RUN_ID is invalid: {error}");
            Failure::usage(text).hint("name the delivery with --delivery ID")
        })
    }

    /// Writes the draft to the requested file, if any, and returns its path.
    fn write(&self, draft: Option<&Draft>) -> Result<Option<String>, Failure> {
        let (Some(draft), Some(file)) = (draft, &self.draft) else {
            return Ok(None);
        };
        if replace::is_stdout(file) {
            return Ok(None);
        }
        replace::replace(file, draft.text.as_bytes())?;
        Ok(Some(file.display().to_string()))
    }
}

/// The result of an event.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GithubEvent")]
pub(crate) struct EventView<'a> {
    /// the event's name
    event: &'a str,
    /// the event's action, if it has one
    action: Option<&'a str>,
    /// the delivery that identifies its effects: they occur once
    delivery: &'a DeliveryName,
    /// the keys of the issues that it is about
    keys: &'a [IssueKey],
    /// the steps that follow from it, in order
    did: Vec<StepView<'a>>,
    /// a contract started from it, for an agent to finish
    draft: Option<DraftView<'a>>,
    /// what became of each command in the comment, in order
    commands: &'a [Commanded],
    /// the reply to them, as Markdown
    reply: Option<String>,
    /// why some or all of it was not done
    why: &'a [String],
    /// the command by which the work goes on, once the issue was reopened
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// whether all steps were made by an earlier delivery
    repeated: bool,
    /// whether nothing was written
    dry_run: bool,
    /// Whether standard output is only the draft, if there is one, so that it can be piped.
    #[serde(skip)]
    pipes_draft: bool,
}

/// A step that follows from an event.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventStep")]
struct StepView<'a> {
    /// the protocol's rule that it follows from
    rule: &'a str,
    /// `noted`, `sent`, `answered`, `approved`, `retried`, `reassigned`, `reopened`, `paused` or
    /// `cancelled`
    what: &'static str,
    /// the handoff that it is about; for the whole issue, the newest
    id: &'a HandoffId,
    /// the agent that makes the step
    agent: &'a AgentName,
    /// the facts that it noted, by name
    facts: &'a Map<String, Value>,
    /// its commit; null if an earlier delivery made it, and in a dry run
    commit: Option<ObjectId>,
    /// whether an earlier delivery made it
    repeated: bool,
    /// findings that did not prevent it
    warnings: &'a [Finding],
}

/// A contract started from an event, for an agent to finish.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventDraft")]
struct DraftView<'a> {
    #[serde(flatten)]
    draft: &'a Draft,
    /// the file that `--draft` wrote
    file: Option<String>,
}

impl Answer for EventView<'_> {
    fn text(&self, _: &Look) -> String {
        match &self.draft {
            Some(DraftView { draft, .. }) if self.pipes_draft => draft.text.clone(),
            _ => self.report(),
        }
    }
}

impl EventView<'_> {
    fn report(&self) -> String {
        let action = self.action.map(|action| format!(" {action}"));
        let issues: Vec<&str> = self.keys.iter().map(IssueKey::as_str).collect();
        let issue = match &issues[..] {
            [] => None,
            [issue] => Some(format!(", issue {issue}")),
            several => Some(format!(", issues {}", several.join(", "))),
        };
        let mut text = format!(
            "{}{}{}, delivery {}\n",
            self.event,
            action.unwrap_or_default(),
            issue.unwrap_or_default(),
            self.delivery,
        );
        for step in &self.did {
            let (id, agent) = (step.id, step.agent);
            text += &match step.what {
                "noted" => format!("  note added to issue {} by {agent}", id.issue()),
                what @ ("reopened" | "paused") => {
                    format!("  {what} issue {} by {agent}", id.issue())
                }
                what => format!("  {what} {id} by {agent}"),
            };
            text += &match step.commit {
                _ if step.repeated => ", by an earlier delivery\n".to_owned(),
                Some(commit) => format!(", commit {}\n", commit.short()),
                None => "\n".to_owned(),
            };
            text += &facts(step.facts);
            for warning in step.warnings {
                text += &strip_str(&render(warning)).to_string();
            }
        }
        if let Some(DraftView { draft, file }) = &self.draft {
            let left = counted(draft.missing.len(), "place");
            let (kind, from, to) = (&draft.contract_type, &draft.from, &draft.to);
            text += &format!("  for {from} to finish: {kind} to {to}, {left} left to fill\n");
            for finding in &draft.findings {
                text += &strip_str(&render(finding)).to_string();
            }
            text += &match file {
                Some(file) => format!("    written to {}\n", quoted(file)),
                None if self.pipes_draft => String::new(),
                None => "    --draft FILE writes it\n".to_owned(),
            };
        }
        for one in self.commands.iter().filter(|one| one.accepted) {
            text += &format!("  taken: {}\n", one.sentence);
        }
        for why in self.why {
            text += &format!("  nothing: {why}\n");
        }
        if let Some(next) = &self.next {
            text += &format!("  next: {next}\n");
        }
        if self.dry_run {
            text += "  this was a dry run: nothing was written\n";
        }
        // The output may go to a workflow's log, which interprets some lines as commands.
        log(&text)
    }
}

/// Facts, one per line.
fn facts(facts: &Map<String, Value>) -> String {
    let shown = facts.iter().map(|(name, value)| match value {
        Value::String(text) => format!("    {name} {}\n", text.replace(['\n', '\r'], " ")),
        other => format!("    {name} {}", pretty(other)),
    });
    shown.collect()
}
