use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use handoff::base::finding::Finding;
use handoff::base::text::continued;
use handoff::protocol::Protocol;
use handoff::templates::{BUILT_IN, built_in};
use handoff_exchange::{Exchanger, Import, Item};
use schemars::JsonSchema;
use serde::Serialize;

use super::import::{Refusals, RefusedView, refusal};
use crate::context::Context;
use crate::context::lookout::{Lookout, Place};
use crate::context::writer::say_synced;
use crate::environment::now;
use crate::failure::{ErrorCode, Failure};
use crate::output::page::Cut;
use crate::output::{Answer, Output, SCHEMA};
use crate::view::Look;

/// The delay before a refused file, which may be half written, is read again.
const HALF_WRITTEN: Duration = Duration::from_secs(1);

/// Exchange handoffs with programs that move files from state to state
///
/// Takes in what they wrote and moved in FOLDER (handoffs/pending, in-progress, completed, failed, and context/),
/// as `git handoff import` does, and then writes what the ledger has there, as `git handoff export --format folders`
/// does. A file that is not as it was left is somebody else's: it is read, and neither replaced nor removed.
/// Killed at any point and started again, it goes on where it was. With `--watch`, it runs until it is
/// interrupted, whenever a file or the ledger changes. The folder is created if it does not exist.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff exchange ../desk
  git handoff exchange ../desk --watch")]
pub(crate) struct Arguments {
    /// The folder
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Go on whenever a file or the ledger changes, until interrupted
    #[arg(long)]
    watch: bool,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        crate::output::replace::ensure_no_git_directory(&self.folder)?;
        // Check for a ledger before the folder is created.
        let repository = context.repository()?;
        context.ledger(&repository)?.tip()?;
        let exchanger = Exchanger::open(&self.folder)?;
        if self.watch {
            return self.go_on(context, &exchanger, output);
        }
        let pass = self.pass(context, &exchanger, output)?;
        let Pass {
            view,
            findings,
            first,
        } = pass;
        let Some(first) = first else {
            return output.answer(&view);
        };
        if !output.is_json() {
            let text = view.text(&output.look(now()?));
            output.raw(text.as_bytes())?;
            output.say(view.refusals().trim_end());
        }
        let hint = "fix what was refused and exchange again; everything else was exchanged";
        let failure = refusal(first, view.refused.len()).hint(hint);
        Err(failure.findings(findings).data(&view))
    }

    /// Exchanges at every change until it is interrupted.
    fn go_on(
        &self,
        context: &Context,
        exchanger: &Exchanger,
        output: &mut Output,
    ) -> Result<(), Failure> {
        output.one_line_each();
        let repository = context.repository()?;
        let place = if context.remote_args().is_offline() {
            Place::Here
        } else {
            Place::Both(context.remote(&repository)?)
        };
        let mut lookout = Lookout::open(context.ledger(&repository)?, place, None, None)?;
        let (waker, interruption) = (lookout.waker(), lookout.catch()?);
        interruption.or_reader_gone(move || waker.wake());
        // A refusal is reported only if the next pass repeats it: the file may be half written.
        let (mut refused, mut told): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        while !interruption.requested().load(Ordering::SeqCst) {
            // Watch before reading the folder, so that no change is missed.
            lookout.watch_also(exchanger.folders());
            let mut pass = self.pass(context, exchanger, output)?;
            lookout.watch_also(exchanger.folders());
            let now: Vec<String> = pass.view.refused.iter().map(RefusedView::text).collect();
            let is_stable = |text: &String| refused.contains(text) && !told.contains(text);
            let mut texts = now.iter();
            pass.view
                .refused
                .retain(|_| texts.next().is_some_and(is_stable));
            if !pass.view.is_empty() {
                let text = pass.view.text(&output.look(crate::environment::now()?));
                let line = if output.is_json() {
                    pass.view.line()
                } else {
                    text + &pass.view.refusals()
                };
                if !output.stream(line.as_bytes())? {
                    return Ok(());
                }
            }
            let is_new = |text: &&String| !refused.contains(text);
            let limit = now.iter().any(|text| is_new(&text)).then_some(HALF_WRITTEN);
            told.retain(|text| now.contains(text));
            told.extend(now.iter().filter(|text| refused.contains(text)).cloned());
            refused = now;
            lookout.pause(limit, output);
            lookout.followed(output)?;
        }
        Ok(())
    }

    fn pass(
        &self,
        context: &Context,
        exchanger: &Exchanger,
        output: &mut Output,
    ) -> Result<Pass<'_>, Failure> {
        let repository = context.repository()?;
        let (mut ledger, session) = context.writer(&repository, output)?;
        let mut alone = ledger.alone();
        let wanted = Import {
            agent: context.agent(&repository)?,
            ..Import::default()
        };
        let taken = || exchanger.take_in(&mut alone, session.clone(), wanted);
        let taken = output.during(&session.tally, taken);
        let taken = taken.map_err(|error| naming_protocols(error.into()))?;
        // Push at once.
        let sent = || ledger.publish_recorded(&session);
        let synced = output.during(&session.tally, sent)?;
        output.follow(&ledger);
        say_synced(&synced, output);
        let out = exchanger.put_out(&ledger)?;
        let Refusals {
            refused,
            findings,
            first,
        } = Refusals::of(taken.refused, &ledger.tip()?, &self.folder)?;
        let view = ExchangeView {
            folder: &self.folder,
            imported: taken.imported,
            skipped: taken.skipped,
            commits: taken.commits,
            refused,
            left_out: taken.left_out,
            written: out.written,
            removed: out.removed,
            kept: out.kept,
            cut: Cut::of(output),
        };
        Ok(Pass {
            view,
            findings,
            first,
        })
    }
}

/// Names the built-in protocols with folders of states in the hint, if no protocol in force has
/// any.
fn naming_protocols(failure: Failure) -> Failure {
    if failure.code != Some(ErrorCode::NoImportProfile) {
        return failure;
    }
    let has_files = |name: &&str| {
        let read = || Protocol::load(built_in(name)?.file("protocol.json")?).ok();
        read().is_some_and(|protocol| !protocol.definition().imports.is_empty())
    };
    let names: Vec<&str> = BUILT_IN.into_iter().filter(has_files).collect();
    let add = format!(
        "put one in force: git handoff protocol add {}",
        names.join("|")
    );
    failure.hint(add)
}

/// The result of one pass, and the refused items with their findings.
struct Pass<'a> {
    view: ExchangeView<'a>,
    findings: Vec<Finding>,
    /// The exit code of the first refused item.
    first: Option<u8>,
}

/// The result of an exchange.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Exchange")]
pub(crate) struct ExchangeView<'a> {
    /// the folder, as given
    folder: &'a Path,
    /// each item that came in
    imported: Vec<Item>,
    /// each item that the ledger had already
    skipped: Vec<Item>,
    /// how many commits were made
    commits: usize,
    /// each item that was refused
    refused: Vec<RefusedView>,
    /// each file of the folder that was not read, since it is not of the format
    left_out: Vec<String>,
    /// each file that was written
    written: Vec<String>,
    /// each file of an earlier state that was removed
    removed: Vec<String>,
    /// each file of another program where one would be written; it stays as it is
    kept: Vec<String>,
    #[serde(skip)]
    cut: Cut,
}

/// One output line of `--watch`.
#[derive(Serialize)]
struct Line<'a> {
    schema: &'static str,
    #[serde(flatten)]
    view: &'a ExchangeView<'a>,
}

impl ExchangeView<'_> {
    /// Whether nothing was done and there is nothing new to report.
    fn is_empty(&self) -> bool {
        let lists = [&self.written, &self.removed];
        self.imported.is_empty() && self.refused.is_empty() && lists.iter().all(|l| l.is_empty())
    }

    fn line(&self) -> String {
        let line = Line {
            schema: SCHEMA,
            view: self,
        };
        serde_json::to_string(&line).unwrap_or_default() + "\n"
    }

    fn refusals(&self) -> String {
        let (refused, rest) = self.cut.rows(&self.refused);
        let lines: String = refused.iter().map(RefusedView::text).collect();
        lines + &rest
    }
}

impl Answer for ExchangeView<'_> {
    fn text(&self, _: &Look) -> String {
        let mut text = format!(
            "in: {}, {} there already, {} refused; out: {} written, {} removed\n",
            self.imported.len(),
            self.skipped.len(),
            self.refused.len(),
            self.written.len(),
            self.removed.len()
        );
        for (what, files) in [("left out", &self.left_out), ("left as it is", &self.kept)] {
            let (files, rest) = self.cut.rows(files);
            for file in files {
                text += &format!("{what}: {}\n", continued(file));
            }
            text += &rest;
        }
        text
    }
}
