use std::path::PathBuf;

use clap::{Args, ValueEnum};
use handoff_base::ids::IssueKey;
use handoff_base::text::plain;
use handoff_ledger::{Import, Imported, Item, Source};
use serde_json::{Value, json};

use super::exchange::Format;
use crate::context::Context;
use crate::context::writer::say_synced;
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::output::Output;

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
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
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
        };
        let imported = || handoff_ledger::import(&mut alone, session.clone(), &self.path, wanted);
        let done = output.during(&session.tally, imported)?;
        if !self.dry_run {
            // Everything is pushed to the remote at once.
            let sent = || ledger.publish_recorded(&session);
            let synced = output.during(&session.tally, sent)?;
            output.follow(&ledger);
            say_synced(&synced, output);
        }
        let text = self.text(&done);
        let mut data = json!({
            "format": done.source.as_str(),
            "dry_run": self.dry_run,
            "imported": done.imported.iter().map(item).collect::<Vec<_>>(),
            "skipped": done.skipped.iter().map(item).collect::<Vec<_>>(),
            "commits": done.commits,
        });
        let (mut refused, mut findings, mut first) = (Vec::new(), Vec::new(), None);
        let mut lines = String::new();
        for item in done.refused {
            let failure = Failure::from(item.fault);
            first.get_or_insert(failure.exit);
            let file = plain(&item.file);
            lines += &format!("{file}: {} ({})\n", plain(&failure.message), failure.word());
            // The hint is for refusals without findings, which are printed below.
            let own = failure.findings.is_empty();
            if let Some(hint) = failure.hint.as_ref().filter(|_| own) {
                lines += &format!("    {}\n", plain(&hint.text));
            }
            let mut own = Vec::new();
            for mut finding in failure.findings {
                own.push(json!(finding));
                finding.path = match finding.path.as_str() {
                    "" => item.file.clone(),
                    path => format!("{} {path}", item.file),
                };
                findings.push(finding);
            }
            refused.push(json!({
                "file": item.file,
                "code": failure.code,
                "message": failure.message,
                "hint": failure.hint.map(|hint| hint.text),
                "findings": own,
            }));
        }
        let count = refused.len();
        data["refused"] = Value::Array(refused);
        let Some(first) = first else {
            return output.answer(&data, &text);
        };
        if !output.is_json() {
            output.raw(text.as_bytes())?;
            output.say(lines.trim_end());
        }
        let exit = match first {
            exit::CONTRACT | exit::PROTOCOL | exit::CONFLICT => first,
            _ => exit::PROTOCOL,
        };
        let text = match count {
            1 => "1 item was refused".to_owned(),
            _ => format!("{count} items were refused"),
        };
        let failure = Failure::new(ErrorCode::ImportRefused, text).exit(exit);
        let hint =
            "fix what was refused and import again; what was already imported is left as it is";
        Err(failure.advice(hint).findings(findings).data(data))
    }

    /// The counts as text.
    fn text(&self, done: &Imported) -> String {
        let (imported, there) = (done.imported.len(), done.skipped.len());
        let refused = match done.refused.len() {
            0 => String::new(),
            refused => format!(", {refused} refused"),
        };
        if done.commits == 0 {
            return format!("{there} there already{refused}; nothing was written\n");
        }
        let (verb, made) = if self.dry_run {
            ("would import", "would make")
        } else {
            ("imported", "made")
        };
        let commits = done.commits;
        format!("{verb} {imported}, {there} there already{refused}; {made} {commits} commits\n")
    }
}

fn item(item: &Item) -> Value {
    json!({ "file": item.file, "handoff": item.handoff })
}
