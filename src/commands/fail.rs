use std::fs::File;
use std::io;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;
use handoff::base::text::continued;
use handoff::contract::Allowance;
use handoff::git::Program;
use handoff::ledger::{Attached, CAPS, Keep, Ledger, Session};
use handoff::model::{EventArgs, Failure as Reported, UNSPECIFIED};
use handoff::protocol::{Event, RunFailure};

use crate::args::text;
use crate::context::left_for_worker::FAILED;
use crate::context::writer::catch_up;
use crate::context::{Context, handoff_id};
use crate::contracts::usage::UsageReport;
use crate::environment::{host, tools};
use crate::failure::{ErrorCode, Failure, hint};
use crate::output::{Output, counted_as};
use crate::render::receipt::ReceiptView;

/// Report that you cannot finish a handoff that you hold
///
/// The handoff has then failed but stays open: it can be retried or cancelled. The issue keeps what
/// happened, your branch and commit, the files that you attach and, with --snapshot, your unfinished
/// work: changed, added, untracked, staged and deleted files that are not ignored. The worktree is only
/// read. The next claim shows it, and `git handoff restore` restores it.
///
/// In a run of `work` whose sandbox forbids to record it, its text is left for the worker.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff fail 123.2 --as implementer-agent --code BuildError \\
      --message 'the build fails on a missing module' --recoverable
  git handoff fail 123.2 --as implementer-agent --message 'out of time' \\
      --snapshot --attach build.log --attach transcript.md")]
pub(crate) struct Arguments {
    /// The handoff
    #[arg(value_name = "ID")]
    id: String,
    /// What happened, in one sentence
    #[arg(
        long,
        short,
        value_name = "TEXT",
        visible_alias = "reason",
        visible_short_alias = 'r'
    )]
    message: String,
    /// A short, stable word for the kind of failure
    #[arg(long, value_name = "WORD", default_value = UNSPECIFIED)]
    code: String,
    /// How the agent's run ended, for a program that runs agents: the protocol says which of its codes
    /// stands for that, and whether another attempt may succeed
    #[arg(
        long,
        value_name = "KIND",
        conflicts_with = "code",
        value_parser = PossibleValuesParser::new(RunFailure::ALL.map(RunFailure::as_str)),
    )]
    run_failure: Option<String>,
    /// More details
    #[arg(long, value_name = "TEXT")]
    details: Option<String>,
    /// Say that another attempt may succeed
    #[arg(long)]
    recoverable: bool,
    /// What to do about it
    #[arg(long, value_name = "TEXT")]
    suggested_action: Option<String>,
    #[command(flatten)]
    kept: KeptArgs,
    #[command(flatten)]
    usage: UsageReport,
    /// Your claim's token; others are refused
    #[arg(long, value_name = "N")]
    token: Option<u32>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let run = self.run_failure.as_deref();
        let run = run.and_then(|word| RunFailure::ALL.into_iter().find(|r| r.as_str() == word));
        let reported = Reported {
            code: text::kept(run.map_or(self.code.as_str(), |run| run.as_str()))?,
            message: text::kept(&self.message)?,
            details: self.details.as_deref().map(text::kept).transpose()?,
            recoverable: self.recoverable,
            no_retry: false,
            run,
            suggested_action: self
                .suggested_action
                .as_deref()
                .map(text::kept)
                .transpose()?,
        };
        let args = EventArgs {
            failure: Some(reported),
            token: self.token,
            ..EventArgs::default()
        };
        let repository = context.repository()?;
        let (mut ledger, mut session) = context.requester(&repository, output)?;
        session.usage = self.usage.read(context)?;
        if let Some(left) = context.left_for_worker(&mut ledger, &session) {
            left.ensure_own(&self.id)?;
            return left.leave(FAILED, &self.told(), output);
        }
        let writer = (ledger, session);
        let change = (Event::Fail, args);
        self.kept.leave(context, output, writer, &self.id, change)
    }
}

impl Arguments {
    /// The failure as text for the worker that runs the agent; the worker attaches the files.
    fn told(&self) -> String {
        let code = Some(&self.code).filter(|code| *code != UNSPECIFIED);
        let code = code.map_or(String::new(), |code| format!("{code}: "));
        let more = [&self.details, &self.suggested_action];
        let more = more.into_iter().flatten().map(|text| format!("\n{text}\n"));
        format!("{code}{}\n{}", self.message, more.collect::<String>())
    }
}

// No doc comment: it would become the help of the commands.
#[derive(Args)]
pub(super) struct KeptArgs {
    /// Keep this file too, such as a log; can be repeated
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// Keep the unfinished work of this worktree
    #[arg(long)]
    snapshot: bool,
    /// Accept text that a rule takes for a secret, on record
    #[arg(long, value_name = "RULE[@PLACE]")]
    allow_secret: Vec<Allowance>,
}

impl KeptArgs {
    /// Ends the acting agent's claim with this event, and keeps what was chosen.
    pub(super) fn leave(
        &self,
        context: &Context,
        output: &mut Output,
        (mut ledger, session): (Ledger<'_>, Session),
        id: &str,
        (event, mut args): (Event, EventArgs),
    ) -> Result<(), Failure> {
        let repository = ledger.repository();
        let agent = context.acting_agent(repository)?;
        if let Some(tree) = context.other_tree(repository).filter(|_| self.snapshot) {
            let tree = continued(&tree.display().to_string());
            let text = format!(
                "that worker's files are in {tree}: --snapshot would keep those of this working tree"
            );
            return Err(Failure::usage(text).hint(hint!(
                "nothing was written; run it there, without --worker: `git -C {} handoff {} {} --snapshot …`",
                tree,
                event.as_str(),
                id
            )));
        }
        for path in &self.attach {
            context.ensure_within(repository, path)?;
        }
        let keep = Keep {
            host: host(),
            tools: tools(),
            attached: attached(&self.attach)?,
            snapshot: self.snapshot,
        };
        args.allow.clone_from(&self.allow_secret);
        catch_up(&mut ledger, &session, output)?;
        let id = handoff_id(&ledger.tip()?, id, Some(&agent))?;
        let done = ledger.leave(&session, &agent, &id, (event, &args), &keep)?;
        output.follow(&ledger);
        let receipt = ReceiptView::new(&done, output)?;
        output.answer(&receipt)?;
        let last = done.receipt.record.latest();
        // The step is recorded; an error in counting the files must not hide that.
        if !self.snapshot {
            let lost = Program::uncommitted(repository).unwrap_or_default();
            if lost > 0 {
                output.say(&format!(
                    "{} not kept, only here: `{event} --snapshot` keeps such files",
                    counted_as(lost, "uncommitted file", [" was", "s were"])
                ));
            }
        } else if last.is_some_and(|last| last.context.is_none()) {
            output.say(
                "there was nothing to keep: no uncommitted files, and no commits that the remote lacks",
            );
        }
        receipt.say_next(output);
        Ok(())
    }
}

/// Reads the attached files.
fn attached(paths: &[PathBuf]) -> Result<Vec<Attached>, Failure> {
    let mut read = Vec::with_capacity(paths.len());
    let mut total = 0;
    for path in paths {
        let file = attachment(path)?;
        total += file.bytes.len() as u64;
        if total > CAPS.total {
            let text = format!("the files together have more than {} bytes", CAPS.total);
            return Err(refused(path, &text));
        }
        read.push(file);
    }
    Ok(read)
}

fn refused(path: &Path, why: &str) -> Failure {
    let text = format!("{path:?} cannot be attached: {why}");
    Failure::new(ErrorCode::AttachmentRefused, text)
        .hint("nothing was written; attach a regular file, or a part of it, or leave it out")
}

fn attachment(path: &Path) -> Result<Attached, Failure> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            let text = format!("{path:?} cannot be attached: there is no such file");
            Failure::new(ErrorCode::NoFile, text).hint("nothing was written")
        }
        _ => refused(path, &error.to_string()),
    };
    let found = path.metadata().map_err(unreadable)?;
    if found.is_dir() {
        return Err(refused(path, "it is a folder"));
    }
    if !found.is_file() {
        return Err(refused(path, "it is a device, a pipe or a socket"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    // One extra byte is enough to detect a file over the cap.
    let mut limited = file.take(CAPS.file + 1);
    limited.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > CAPS.file {
        let size = found.len().max(CAPS.file + 1);
        let text = format!("it has {size} bytes; the limit is {}", CAPS.file);
        return Err(refused(path, &text));
    }
    Ok(Attached {
        path: path.as_os_str().as_encoded_bytes().to_vec(),
        bytes,
        executable: is_executable(&found),
    })
}

#[cfg(unix)]
fn is_executable(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    found.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}
