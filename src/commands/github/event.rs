use std::path::PathBuf;

use anstream::adapter::strip_str;
use clap::Args;
use handoff_base::text::quoted;
use handoff_github::event::{Carried, Did, Draft, Event, EventContext, carry_out};
use handoff_github::text::log;
use handoff_model::DeliveryName;
use serde_json::{Map, Value, json};

use super::given::{Given, read};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Output, counted, pretty, render, replace};

/// Record in the ledger what a GitHub event proves
///
/// In a workflow, this is the event that started it. The rules of the issue's protocol decide what
/// follows: a contract is sent, or drafted for an agent to finish; facts are noted on the issue,
/// and `git handoff new` fills them in from then on; a line `/handoff answer …` in a comment
/// answers what was asked. A delivery takes effect once, however often it arrives. An event that
/// means nothing here, or comes too late, is reported and changes nothing.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff github event
  git handoff github event --file event.json --name pull_request --dry-run
  git handoff github event --draft contract.xml   (for an agent to finish)")]
pub(crate) struct Arguments {
    #[command(flatten)]
    given: Given,
    /// The delivery's id, up to 80 letters, digits and `-`; by default taken from the payload or
    /// the workflow run, else the payload's digest
    #[arg(long, value_name = "ID")]
    delivery: Option<DeliveryName>,
    /// Write nothing, and show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Write the contract that an agent must finish, if there is one, to this file; `-` is
    /// standard output
    #[arg(long, value_name = "FILE")]
    draft: Option<PathBuf>,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let event = read(context, &self.given)?;
        let delivery = self.delivery(&event)?;
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
        let way = EventContext {
            ledger: &mut ledger,
            session: &session,
            delivery: &delivery,
        };
        let carried = carry_out(way, &event)?;
        if !self.dry_run && carried.did.iter().any(|did| did.commit.is_none()) {
            // What an earlier delivery did may not have reached the remote yet.
            ledger.publish_recorded(&session)?;
        }
        output.follow(&ledger);
        let written = self.write(carried.draft.as_ref())?;
        let data = self.data(&event, &delivery, &carried, written.as_deref());
        let mut text = self.text(&event, &delivery, &carried, written.as_deref());
        if let (Some(draft), Some(file)) = (&carried.draft, &self.draft)
            && replace::is_stdout(file)
            && !output.is_json()
        {
            // Print only the document, so that it can be piped.
            output.say(text.trim_end());
            text.clone_from(&draft.text);
        }
        output.answer(&data, &text)
    }

    /// The name of the delivery.
    fn delivery(&self, event: &Event) -> Result<DeliveryName, Failure> {
        if let Some(name) = &self.delivery {
            return Ok(name.clone());
        }
        if let Some(own) = event.own_delivery() {
            return Ok(own);
        }
        // Each attempt of a workflow run gets the same event.
        let run = std::env::var("GITHUB_RUN_ID").ok();
        let run = run.filter(|run| self.given.file.is_none() && !run.is_empty());
        let name = run.map(|run| format!("run-{run}").parse());
        let name = name.unwrap_or_else(|| event.digest_delivery());
        name.map_err(|error| {
            let text = format!("GITHUB_RUN_ID is invalid: {error}");
            Failure::usage(text).advice("name the delivery with --delivery ID")
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

    fn data(
        &self,
        event: &Event,
        delivery: &DeliveryName,
        carried: &Carried,
        written: Option<&str>,
    ) -> Value {
        let did = |did: &Did| {
            json!({
                "rule": did.rule,
                "what": did.what,
                "id": did.id,
                "agent": did.agent,
                "facts": did.facts,
                "commit": did.commit.filter(|_| !self.dry_run).map(|c| c.to_string()),
                "repeated": did.commit.is_none(),
                "warnings": did.warnings,
            })
        };
        let draft = |draft: &Draft| {
            let missing = draft.missing.iter();
            let missing = missing.map(|left| json!({ "path": left.path, "asked": left.asked }));
            json!({
                "contract_type": draft.contract_type,
                "from": draft.from,
                "to": draft.to,
                "format": draft.format,
                "text": draft.text,
                "missing": missing.collect::<Vec<_>>(),
                "findings": draft.findings,
                "file": written,
            })
        };
        json!({
            "event": event.name(),
            "action": event.action(),
            "delivery": delivery,
            "issue": carried.issue,
            "did": carried.did.iter().map(did).collect::<Vec<_>>(),
            "draft": carried.draft.as_ref().map(draft),
            "why": carried.why,
            "repeated": carried.is_repeated(),
            "dry_run": self.dry_run,
        })
    }

    fn text(
        &self,
        event: &Event,
        delivery: &DeliveryName,
        carried: &Carried,
        written: Option<&str>,
    ) -> String {
        let action = event.action().map(|action| format!(" {action}"));
        let issue = carried
            .issue
            .as_ref()
            .map(|issue| format!(", issue {issue}"));
        let mut text = format!(
            "{}{}{}, delivery {delivery}\n",
            event.name(),
            action.unwrap_or_default(),
            issue.unwrap_or_default(),
        );
        for did in &carried.did {
            let Did {
                what, id, agent, ..
            } = did;
            text += &match did.what {
                "noted" => format!("  note added to issue {} by {agent}", id.issue()),
                "reopened" => format!("  reopened issue {} by {agent}", id.issue()),
                _ => format!("  {what} {id} by {agent}"),
            };
            text += &match did.commit {
                Some(_) if self.dry_run => "\n".to_owned(),
                Some(commit) => format!(", commit {}\n", commit.short()),
                None => ", by an earlier delivery\n".to_owned(),
            };
            text += &facts(&did.facts);
            for warning in &did.warnings {
                text += &strip_str(&render(warning)).to_string();
            }
        }
        if let Some(draft) = &carried.draft {
            let left = counted(draft.missing.len(), "place");
            let (kind, from, to) = (&draft.contract_type, &draft.from, &draft.to);
            text += &format!("  for {from} to finish: {kind} to {to}, {left} left to fill\n");
            for finding in &draft.findings {
                text += &strip_str(&render(finding)).to_string();
            }
            text += &match (written, &self.draft) {
                (Some(file), _) => format!("    written to {}\n", quoted(file)),
                (None, Some(_)) => String::new(),
                (None, None) => "    --draft FILE writes it\n".to_owned(),
            };
        }
        for why in &carried.why {
            text += &format!("  nothing: {why}\n");
        }
        if self.dry_run {
            text += "  this was a dry run: nothing was written\n";
        }
        // The output may go to a workflow's log, which treats some lines as commands.
        log(&text)
    }
}

/// Facts, one per line.
fn facts(facts: &Map<String, Value>) -> String {
    let told = facts.iter().map(|(name, value)| match value {
        Value::String(text) => format!("    {name} {}\n", text.replace(['\n', '\r'], " ")),
        other => format!("    {name} {}", pretty(other)),
    });
    told.collect()
}
