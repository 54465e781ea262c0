use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use handoff::base::finding::{Finding, FindingCode};
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::text::{continued, counted, counted_as};
use handoff::contract::{Input, MAX_BYTES};
use handoff::ledger::{Offer, Snapshot};
use handoff::model::SendOptions;
use handoff_exchange::{Import, Item, Refused, Source};
use schemars::JsonSchema;
use serde::Serialize;

use super::formats::Format;
use crate::context::Context;
use crate::context::writer::say_synced;
use crate::contracts::not_in_force::diagnosed;
use crate::environment::now;
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::output::page::Cut;
use crate::output::{Answer, Output};
use crate::view::Look;

/// Import handoffs from another system or another ledger
///
/// Reads the steps that `git handoff export` wrote, or the folders, logs,
/// archives and contracts of other systems. Every step is one commit and
/// passes the same checks as `git handoff send`. Refused items are reported,
/// and the import continues; items already in the ledger are left as they are,
/// so repeating an import writes nothing. Exits 3 when contracts were refused,
/// 4 when the protocol refused, 5 when the ledger has something else in their
/// place: the first refusal decides.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff import backup
  git handoff import old-workflow --format folders --dry-run
  git handoff import handoff_log.json --issue 7")]
pub(crate) struct Arguments {
    /// The folder or file to import
    #[arg(value_name = "DIR|FILE")]
    path: PathBuf,
    /// The format; by default it is detected, steps.jsonl first
    #[arg(long, value_name = "FORMAT")]
    format: Option<Kind>,
    /// Show what would be imported, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// The issue for contracts that do not name one
    #[arg(long, value_name = "ISSUE")]
    issue: Option<IssueKey>,
    /// Apply only this import profile of the protocol; by default each, to what is not a contract as it is
    #[arg(long, value_name = "NAME")]
    profile: Option<AgentName>,
}

/// The kind of source.
#[derive(Clone, Copy)]
enum Kind {
    Steps,
    Other(Format),
}

impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Steps,
            Self::Other(Format::Folders),
            Self::Other(Format::Log),
            Self::Other(Format::Archive),
            Self::Other(Format::Files),
        ]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        match self {
            Self::Steps => {
                let value = clap::builder::PossibleValue::new("steps");
                Some(value.help("steps.jsonl: every step of a ledger, as written by an export"))
            }
            Self::Other(format) => format.to_possible_value(),
        }
    }
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let (mut ledger, session) = if self.dry_run {
            context.writer_apart(&repository, output)?
        } else {
            context.writer(&repository, output)?
        };
        let mut alone = if self.dry_run {
            ledger.alone().rehearsal()?
        } else {
            ledger.alone()
        };
        let wanted = Import {
            source: self.format.map(|kind| match kind {
                Kind::Steps => Source::Steps,
                Kind::Other(format) => Source::Layout(format.into()),
            }),
            issue: self.issue.clone(),
            agent: context.agent(&repository)?,
            profile: self.profile.clone(),
        };
        let imported = || handoff_exchange::import(&mut alone, session.clone(), &self.path, wanted);
        let done = output.during(&session.tally, imported)?;
        if !self.dry_run {
            // Push at once.
            let sent = || ledger.publish_recorded(&session);
            let synced = output.during(&session.tally, sent)?;
            output.follow(&ledger);
            say_synced(&synced, output);
        }
        let folder = if self.path.is_dir() {
            self.path.as_path()
        } else {
            self.path.parent().unwrap_or(Path::new(""))
        };
        let Refusals {
            refused,
            findings,
            first,
        } = Refusals::of(done.refused, &ledger.tip()?, folder)?;
        let view = ImportView {
            format: done.source.as_str(),
            dry_run: self.dry_run,
            imported: done.imported,
            skipped: done.skipped,
            commits: done.commits,
            refused,
            cut: Cut::of(output),
            left_out: done.left_out,
        };
        let Some(first) = first else {
            return output.answer(&view);
        };
        if !output.is_json() {
            output.raw(view.text(&output.look(now()?)).as_bytes())?;
            let (refused, rest) = view.cut.rows(&view.refused);
            let lines: String = refused.iter().map(RefusedView::text).collect();
            output.say((lines + &rest).trim_end());
        }
        let hint =
            "fix what was refused and import again; what was already imported is left as it is";
        let failure = refusal(first, view.refused.len()).hint(hint);
        Err(failure.findings(findings).data(&view))
    }
}

/// The failure of an import with this many refused items; `first` is the exit code of the first.
pub(super) fn refusal(first: u8, count: usize) -> Failure {
    let exit = match first {
        exit::CONTRACT | exit::PROTOCOL | exit::CONFLICT => first,
        _ => exit::PROTOCOL,
    };
    let text = counted_as(count, "item", [" was refused", "s were refused"]);
    Failure::new(ErrorCode::ImportRefused, text).exit(exit)
}

/// The refused items.
pub(super) struct Refusals {
    pub(super) refused: Vec<RefusedView>,
    /// The findings of all of them.
    pub(super) findings: Vec<Finding>,
    /// The exit code of the first.
    pub(super) first: Option<u8>,
}

impl Refusals {
    pub(super) fn of(
        all: Vec<Refused>,
        tip: &Snapshot<'_>,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let mut own = Self {
            refused: Vec::new(),
            findings: Vec::new(),
            first: None,
        };
        for item in all {
            let mut failure = Failure::from(item.fault);
            // Another protocol may also have other words for states.
            let is_of_contract = [ErrorCode::ContractRefused, ErrorCode::ImportUnreadable];
            if failure
                .code
                .is_some_and(|code| is_of_contract.contains(&code))
            {
                name_protocol(&mut failure, tip, &folder.join(&item.file))?;
            }
            own.first.get_or_insert(failure.exit);
            for finding in &failure.findings {
                let mut finding = finding.clone();
                finding.path = match finding.path.as_str() {
                    "" => item.file.clone(),
                    path => format!("{} {path}", item.file),
                };
                own.findings.push(finding);
            }
            own.refused.push(RefusedView::new(item.file, failure));
        }
        Ok(own)
    }
}

/// Adds the built-in protocol that a refused file belongs to, if that is not in force: the findings
/// by another protocol would mislead.
fn name_protocol(failure: &mut Failure, tip: &Snapshot<'_>, file: &Path) -> Result<(), Failure> {
    // A part of a file has no path of its own.
    let is_plain = fs::symlink_metadata(file)
        .is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES as u64);
    let Some(bytes) = is_plain.then(|| fs::read(file).ok()).flatten() else {
        return Ok(());
    };
    let input = &Input::read(&bytes);
    let offer = Offer {
        input,
        agent: None,
        issue: None,
        protocol: None,
        options: &SendOptions::default(),
        reports: None,
    };
    let own = tip.match_contract(&offer)?.review;
    let named = diagnosed(tip, &offer, own)?;
    let mut found = named.findings.into_iter();
    if let Some(cause) = found.find(|f| f.code == FindingCode::ContractNotInForce) {
        failure.findings = vec![cause];
    }
    Ok(())
}

/// The result of an import.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Import")]
pub(crate) struct ImportView {
    /// what was read: `steps`, `folders`, `log`, `archive` or `files`
    format: &'static str,
    /// nothing was written: this is what would have been done
    dry_run: bool,
    /// each new item
    imported: Vec<Item>,
    /// each item that the ledger had already
    skipped: Vec<Item>,
    /// how many commits were made, including claims that preceded a contract
    commits: usize,
    /// each item that was refused
    refused: Vec<RefusedView>,
    /// each file of the folder that was not read, since it is not of the format; for `steps`, none
    left_out: Vec<String>,
    #[serde(skip)]
    cut: Cut,
}

impl Answer for ImportView {
    fn text(&self, _: &Look) -> String {
        let (imported, there) = (self.imported.len(), self.skipped.len());
        let refused = match self.refused.len() {
            0 => String::new(),
            refused => format!(", {refused} refused"),
        };
        let (left_out, rest) = self.cut.rows(&self.left_out);
        let left_out: String = left_out
            .iter()
            .map(|file| format!("left out: {}\n", continued(file)))
            .collect();
        let left_out = left_out + &rest;
        if self.commits == 0 {
            return format!("{there} there already{refused}; nothing was written\n{left_out}");
        }
        let (verb, made) = if self.dry_run {
            ("would import", "would make")
        } else {
            ("imported", "made")
        };
        let commits = counted(self.commits, "commit");
        format!("{verb} {imported}, {there} there already{refused}; {made} {commits}\n{left_out}")
    }
}

/// A refused item.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RefusedItem")]
pub(super) struct RefusedView {
    /// the item, as in `imported`
    file: String,
    /// an [error code](codes.md#errors)
    #[schemars(with = "ErrorCode")]
    code: Option<ErrorCode>,
    /// what was refused and why
    message: String,
    /// the next safe thing to do; null if it is in the findings
    hint: Option<String>,
    /// every fault in it
    findings: Vec<Finding>,
}

impl RefusedView {
    fn new(file: String, failure: Failure) -> Self {
        Self {
            file,
            code: failure.code,
            message: failure.message,
            hint: failure.hint.map(|hint| hint.to_string()),
            findings: failure.findings,
        }
    }

    pub(super) fn text(&self) -> String {
        let code = self.code.map_or("", ErrorCode::as_str);
        let mut text = format!(
            "{}: {} ({code})\n",
            continued(&self.file),
            continued(&self.message)
        );
        // A hint is printed only without findings, which have their own.
        if let (Some(hint), []) = (&self.hint, &self.findings[..]) {
            text += &format!("    {}\n", continued(hint));
        }
        text
    }
}
