use clap::Args;
use handoff::base::ObjectId;
use handoff::base::text::continued;
use handoff::git::{Depth, masked};
use handoff::ledger::{Repaired, UpstreamError};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::remote::Timeout;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Answer, Output, counted};
use crate::view::Look;

/// Fetch the remote's ledger, and send nothing
///
/// Only the ledger's branch is fetched. A shallow clone, and with `--shallow` any clone at its first
/// fetch, gets only the last commit, which is enough to read and write; `--full` fetches the history
/// for `log` and `verify`. A clone made with a filter gets objects when a command reads them. Offline
/// steps stay as they are until `git handoff sync`.
///
/// `--repair` removes empty files of objects and of the branch, moves damaged files to a folder below
/// `.git/handoff/damaged`, and fetches what is missing. Where nothing has what a step needs, damaged files
/// go back, unless `--give-up`.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff fetch
  git handoff fetch --shallow   (the newest state, in a new clone)
  git handoff fetch --full      (the whole history, even in a shallow clone)
  git handoff fetch --repair    (what a power cut or a disk damaged)
  git handoff fetch --repair --from ../backup.git   (or a bundle)")]
pub(crate) struct Arguments {
    /// Fetch the whole history with all its objects
    #[arg(long)]
    full: bool,
    /// Fetch only the last commit, if nothing of the ledger is here yet
    #[arg(long, conflicts_with_all = ["full", "repair"])]
    shallow: bool,
    /// Fix what is empty, damaged or missing
    #[arg(long, conflicts_with = "full")]
    repair: bool,
    /// With --repair: from this copy and not from the remote: a folder, an address or a bundle
    #[arg(long, value_name = "COPY", requires = "repair")]
    from: Option<String>,
    /// With --repair: go back to the last step that is whole if nothing has what later ones need
    #[arg(long, requires = "repair")]
    give_up: bool,
    #[command(flatten)]
    timeout: Timeout,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let context = context.with(self.timeout.into());
        let (mut ledger, session) = context.writer_apart(&repository, output)?;
        if self.repair {
            let from = self.from.as_deref();
            let repair = || ledger.repair(&session, from, self.give_up);
            let repaired = output.during(&session.tally, repair)?;
            return output.answer(&RepairView { repaired });
        }
        let remote = context.remote(&repository)?;
        let remote = masked(&remote.ok_or(UpstreamError::NoRemote)?);
        let depth = match (self.full, self.shallow) {
            (true, _) => Depth::All,
            (_, true) => Depth::Tip,
            _ => Depth::Missing,
        };
        let brought = output.during(&session.tally, || ledger.fetch(&session, depth))?;
        let commit = ledger.tip_id()?;
        let beside = ledger.beside_remote()?;
        let unpublished = beside.map_or(0, |beside| beside.unpublished);
        output.answer(&FetchView {
            remote: &remote,
            brought,
            unpublished,
            commit,
            full: self.full,
        })?;
        if unpublished > 0 {
            output.say(&format!(
                "not on {} yet: {}; git handoff sync",
                continued(&remote),
                counted(unpublished, "commit")
            ));
        }
        Ok(())
    }
}

/// The result of a fetch.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Fetch")]
pub(crate) struct FetchView<'a> {
    /// the remote
    remote: &'a str,
    /// how many of the remote's commits were not here
    brought: usize,
    /// how many commits here are not on the remote
    unpublished: usize,
    /// where this clone's branch is now
    commit: Option<ObjectId>,
    #[serde(skip)]
    full: bool,
}

impl Answer for FetchView<'_> {
    fn text(&self, _: &Look) -> String {
        let remote = continued(self.remote);
        match (self.brought, self.commit) {
            (_, None) => format!("{remote} has no ledger yet\n"),
            (0, _) if self.full => format!("the whole history of {remote}'s ledger is here\n"),
            (0, _) => format!("{remote} has nothing new\n"),
            (n, _) => format!("fetched {} from {remote}\n", counted(n, "commit")),
        }
    }
}

/// The result of a repair.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FetchRepair")]
pub(crate) struct RepairView {
    #[serde(flatten)]
    repaired: Repaired,
}

impl Answer for RepairView {
    fn text(&self, _: &Look) -> String {
        let Repaired {
            removed,
            aside,
            others,
            commit,
            lost,
        } = &self.repaired;
        let mut text = match removed {
            0 => String::new(),
            n => format!("removed {}\n", counted(*n, "empty object file")),
        };
        if let Some(file) = aside.first() {
            let folder = file.parent().unwrap_or(file).display().to_string();
            let files = counted(aside.len(), "damaged file");
            text += &format!("moved {files} to {}\n", continued(&folder));
        }
        for id in others {
            text += &format!("object {id} is damaged, too; another branch needs it: `git fsck`\n");
        }
        text += &match commit {
            Some(commit) => format!("the branch is at {commit}, and all its objects are here\n"),
            None => "the branch is gone, and no remote has it\n".to_owned(),
        };
        if !lost.is_empty() {
            text += &format!(
                "lost, since no copy has them: {}\n",
                counted(lost.len(), "commit")
            );
            text.extend(lost.iter().map(|id| format!("  {id}\n")));
            text += "send them again; `git handoff verify --accept-rewritten` then accepts that\n";
        }
        text
    }
}
