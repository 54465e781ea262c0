use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use handoff::base::ids::IssueKey;
use handoff::git::Repository;

use crate::args::duration;
use crate::context::Context;
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::output::Output;
use handoff_work::{Bounds, Listing, Plan, Supervisor, Wanted, reaper, roles};

/// Run agents: claim what waits for them, run a command for each piece, record what came of it
///
/// For each piece of work it claims, the command is run in a worktree of its own, on the issue's
/// branch, with a prompt on standard input that holds everything known of the work. It hands the work
/// on itself, or leaves a contract in the file that GIT_HANDOFF_CONTRACT names: that is checked and
/// sent, and if it is refused, the command is run again with the findings. If it exits with another
/// code than 0, takes too long or hands nothing on, the work has failed, with its unfinished files and
/// the end of its output kept. Commits are pushed, never forced.
///
/// It waits for more work until it is interrupted; then the agents are asked to end, and what they
/// had begun stays claimed, for the same command run again. A worker that is killed loses nothing:
/// the next one in this clone goes on as it. (Signals are for the process `git-handoff`: `git` only
/// waits for it.) Exits 1 if a piece of work was not handed on.
///
/// Words {prompt} and {prompt_file} in the command are replaced; then nothing is on standard input.
/// Only listed variables of the environment reach the agents. A file of roles has entries like this one:
///
///   [[role]]
///   agent = "implementer-agent"
///   profile = "claude"               # or: command = ["./implement.sh"]
///   allow = ["cargo test"]           # or: rights = "full"
///   jobs = 2
///   time = "30m"
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "Examples:
  git handoff work --as implementer-agent -- ./implement.sh
  git handoff work --as reviewer-agent --once --profile claude
  git handoff work --file .handoff-work.toml --decide
  git handoff work --list
  git handoff work --prune")]
pub(crate) struct Arguments {
    /// The command and its arguments, after two dashes; no shell reads them
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Run the command as the parent of all that it starts, and end that with it; how long its
    /// processes have to end, in milliseconds. The worker runs itself so
    #[arg(long, hide = true, value_name = "MILLISECONDS")]
    reaper: Option<u64>,
    /// With --reaper: the control group to be in
    #[arg(long, hide = true, value_name = "DIR", requires = "reaper")]
    cgroup: Option<PathBuf>,
    /// Take the roles from this file
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    file: Option<PathBuf>,
    /// Run the agent as this profile says: claude, codex, copilot, gemini, qwen, opencode, amp
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// What the agents may do unasked: `edit` their folder and run what is allowed, or `full`
    #[arg(long, value_name = "RIGHTS")]
    rights: Option<roles::Rights>,
    /// Let the agents run commands that begin so: `cargo test`; may be repeated
    #[arg(long, value_name = "COMMAND")]
    allow: Vec<String>,
    /// Let this variable reach the agents, or with a * at its end all that begin so; may be repeated
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// End after one piece of work, for which it waits
    #[arg(long, conflicts_with = "max")]
    once: bool,
    /// End after so many pieces of work
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max: Option<u32>,
    /// End once nothing waits that this worker can claim
    #[arg(long)]
    until_idle: bool,
    /// How many pieces are worked on at a time, each in a worktree of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,
    /// Work on this issue only
    #[arg(long, value_name = "ISSUE")]
    issue: Option<IssueKey>,
    /// Claim nothing more after this time, and end when what runs has ended
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// How long one run may take; by default as long as its lease can be extended
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    time: Option<Duration>,
    /// How long processes have to end once they are asked to, before they are killed
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::any)]
    grace: Duration,
    /// How often the command is run again when its contract was refused
    #[arg(long, value_name = "N", default_value = "1")]
    mend: u32,
    /// Do not push the branch
    #[arg(long)]
    no_push: bool,
    /// Work in this working tree, as it is, instead of a worktree; nothing is pushed
    #[arg(long)]
    in_place: bool,
    /// The folder for worktrees; else the configuration's handoff.worktrees, else a folder beside the
    /// repository that is named after it
    #[arg(long, value_name = "DIR")]
    worktrees: Option<PathBuf>,
    /// Also carry out what the protocol's rules decide: retry, reassign, record what ran out, call a
    /// person; what takes a judgement is left
    #[arg(long)]
    decide: bool,
    /// How often to poll the remote [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    poll: Option<Duration>,
    /// List the worktrees that were made here, the branches of ended issues, and what only they have
    #[arg(long, conflicts_with_all = ["command", "file", "prune"])]
    list: bool,
    /// Remove worktrees that nobody uses and branches of ended issues that have nothing that is not
    /// elsewhere
    #[arg(long, conflicts_with_all = ["command", "file"])]
    prune: bool,
    /// With --prune: remove those of this issue, with what only they have
    #[arg(long, value_name = "ISSUE", requires = "prune")]
    discard: Option<IssueKey>,
    /// List or prune the branches on the remote, too: those that are merged into its main branch have
    /// nothing that is not elsewhere
    #[arg(long, conflicts_with_all = ["command", "file"])]
    remote: bool,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        if let Some(grace) = self.reaper {
            return self.reap(Duration::from_millis(grace), output);
        }
        let repository = context.repository()?;
        output.carry(context.carried(&repository));
        if self.list || self.prune || self.remote {
            let folder = self.folder(&repository, None);
            let listing = Listing::of(context, &repository, folder, self.wanted(), output)?;
            return output.answer(&listing);
        }
        let bounds = Bounds {
            jobs: self.jobs as usize,
            time: self.time,
            grace: self.grace,
            mend: self.mend,
            pushes: !self.no_push,
            in_place: self.in_place,
        };
        let extra = roles::Extra {
            env: self.env.clone(),
            allow: self.allow.clone(),
            rights: self.rights,
        };
        let (mut roles, of_file) = match &self.file {
            Some(file) => roles::of_file(file, &bounds, &extra)?,
            None if self.decide && self.command.is_empty() && self.profile.is_none() => {
                (Vec::new(), None)
            }
            None => {
                let agent = context.acting_agent(&repository)?;
                let profile = self.profile.as_deref();
                let role = roles::of_command(agent, &self.command, profile, &bounds, &extra)?;
                (vec![role], None)
            }
        };
        context.tip(&repository)?;
        for role in &mut roles {
            role.agent = context.named(&repository, role.agent.as_str())?;
            role.find_command()?;
            role.ensure_room(&repository)?;
        }
        let worktrees = self.folder(&repository, of_file);
        if roles.iter().any(|role| !role.is_in_place()) {
            ensure_outside(&repository, &worktrees)?;
        }
        let plan = Plan {
            roles,
            issue: self.issue.clone(),
            most: if self.once {
                Some(1)
            } else {
                self.max.map(|max| max as usize)
            },
            until_idle: self.until_idle,
            time: self.timeout,
            poll: self.poll,
            decides: self.decide,
            worktrees,
        };
        let done = Supervisor::new(context, &repository, plan)?.run(output)?;
        let failed = done.is_any_left();
        output.answer(&done)?;
        if failed {
            return Err(Failure::reported(exit::NO));
        }
        Ok(())
    }

    /// Runs an agent's command for a worker.
    fn reap(&self, grace: Duration, output: &mut Output) -> Result<(), Failure> {
        match reaper::run(&self.command, grace, self.cgroup.as_deref()) {
            Ok(0) => Ok(()),
            Ok(code) => Err(Failure::reported(code)),
            Err(error) => {
                let program = self.command.first().map_or("", String::as_str);
                let prefix = reaper::PREFIX;
                output.say(&format!("{prefix}{program} can't be started: {error}"));
                Err(Failure::reported(reaper::NOT_STARTED))
            }
        }
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            prunes: self.prune,
            discarded: self.discard.clone(),
            on_remote: self.remote,
        }
    }

    /// The folder for worktrees.
    fn folder(&self, repository: &Repository, of_file: Option<PathBuf>) -> PathBuf {
        let home = repository.workdir().unwrap_or(repository.path());
        let configured = || {
            repository
                .config("handoff.worktrees")
                .map(|folder| home.join(folder))
        };
        let named = self.worktrees.clone().or(of_file).or_else(configured);
        let folder = named.unwrap_or_else(|| {
            let common = repository.common_dir();
            // The folder of the main working tree, even if this is a linked one; for a submodule,
            // of the outermost repository.
            let outermost = common
                .ancestors()
                .filter(|dir| dir.ends_with(".git"))
                .last();
            let main = outermost.map_or(Some(common), Path::parent).unwrap_or(home);
            let name = main.file_name().unwrap_or_default().to_string_lossy();
            let mut name = name.trim_end_matches(".git").to_owned();
            let within = outermost.and_then(|dir| common.strip_prefix(dir).ok());
            for module in within.into_iter().flatten().skip(1) {
                name = format!("{name}.{}", module.display());
            }
            main.with_file_name(format!("{name}.worktrees"))
        });
        std::path::absolute(&folder).unwrap_or(folder)
    }
}

/// Refuses a folder for worktrees within the repository's files, and one that can't be written.
fn ensure_outside(repository: &Repository, folder: &Path) -> Result<(), Failure> {
    let hint = "name another one with --worktrees DIR or `git config handoff.worktrees DIR`";
    let existing = folder
        .ancestors()
        .find_map(|above| above.canonicalize().ok());
    let within = |root: &Path| {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        existing
            .as_ref()
            .is_some_and(|existing| existing.starts_with(&root))
    };
    let roots = [repository.workdir(), Some(repository.common_dir())];
    if roots.into_iter().flatten().any(within) {
        let text = format!(
            "{} is within the repository, whose files tools would take those of a worktree for",
            folder.display()
        );
        return Err(Failure::usage(text).hint(hint));
    }
    let had = folder.exists();
    let tried = fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder).map(drop));
    if !had {
        // The first worktree creates it again.
        let _ = fs::remove_dir(folder);
    }
    tried.map_err(|error| {
        let text = format!("worktrees can't be made in {}: {error}", folder.display());
        Failure::new(ErrorCode::FolderUnwritable, text).hint(hint)
    })
}
