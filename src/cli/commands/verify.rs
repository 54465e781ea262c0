use std::num::NonZero;
use std::thread;

use clap::Args;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::error::Failure;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::ids::IssueKey;
use crate::ledger::{Audit, AuditScope, LedgerError, Refusal, View};

/// Derive every step again from its contract, and report each that is not legal
///
/// Every commit of the ledger is run through the protocol again on the state
/// before it, and must have written exactly what such a step writes: files,
/// message, trailers, author. Files that were delivered to whoever has not yet
/// claimed them must be what they were. Goes on past damage, and reports all of it.
/// Exits 10 when the ledger is damaged.
#[derive(Args)]
#[command(after_help = "Examples:\n  git handoff verify\n  git handoff verify 123 --json")]
pub(crate) struct Arguments {
    /// Verify only the commits that touch this issue
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let branch = ledger.branch().to_owned();
        let key = self
            .issue
            .as_deref()
            .map(str::parse::<IssueKey>)
            .transpose()?;
        let tip = ledger.tip_id()?.ok_or(LedgerError::NoLedger { branch })?;
        let scope = match &key {
            Some(key) => {
                let known = ledger.tip().and_then(|tip| tip.issue(key)?.issue());
                if matches!(known, Ok(None)) {
                    return Err(Refusal::NoIssue { issue: key.clone() }.into());
                }
                AuditScope {
                    issue: Some(key),
                    since: None,
                }
            }
            None => AuditScope::default(),
        };
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let mut audit = Audit::run(&repository, tip, scope, threads)?;
        // A branch that never was a ledger is not a damaged one.
        if audit.handoffs == 0
            && let Err(error @ LedgerError::NotALedger { .. }) = ledger.tip()
        {
            return Err(error.into());
        }
        if let Ok(snapshot) = ledger.tip() {
            audit
                .findings
                .extend(snapshot.changed_artifacts(key.as_ref())?);
        }
        let checked = format!(
            "{} commits, {} handoffs, up to {}",
            audit.commits,
            audit.handoffs,
            audit.tip.chars().take(10).collect::<String>()
        );
        if !audit.is_clean() {
            let text = format!(
                "the ledger is damaged: {} findings in {checked}",
                audit.findings.len()
            );
            return Err(Failure::new(exit::INTEGRITY, "ledger_damaged", text)
                .hint("nothing was changed; compare with another clone's branch before you write to this one")
                .findings(audit.findings));
        }
        let data = json!({
            "commits": audit.commits,
            "handoffs": audit.handoffs,
            "tip": audit.tip,
            "cut_off": audit.cut_off,
            "findings": audit.findings,
        });
        let text = if audit.cut_off {
            format!(
                "what this clone has of the ledger is sound: {checked}; older history is not here\n"
            )
        } else {
            format!("the ledger is sound: {checked}\n")
        };
        output.answer(&data, &text)?;
        if audit.cut_off {
            output.say("fetch the rest with `git fetch --unshallow`");
        }
        Ok(())
    }
}
