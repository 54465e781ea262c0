//! What commands open: the repository, the ledger, and the identities of agent and worker.
//!
//! `writer` opens a ledger for writing and synchronizes it with its remote; `lookout` watches it
//! for waiting commands, and `interruption` ends their wait; `fresh` asks the remote for reading
//! commands, and `elsewhere` finds a remote's ledger where there is none; `call` replaces standard
//! input and signals in a server; `left_for_worker` stores what a sandbox can't record; `worker`
//! determines the acting worker.

pub mod call;
pub mod elsewhere;
pub mod fresh;
pub mod here;
pub mod interruption;
pub mod left_for_worker;
pub mod lookout;
pub mod worker;
pub mod writer;

use std::cell::RefCell;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;

use call::Call;
use clap::Args;

use handoff::base::ObjectId;
use handoff::base::ids::{AgentName, HandoffId, IssueKey, WorkerId};
use handoff::base::text::{quoted, word};
use handoff::git::{Named, Repository};
use handoff::ledger::{DEFAULT_BRANCH, Ledger, LedgerError, Snapshot};
use handoff::model::View;
use interruption::Interruption;
use lookout::Lookout;

use crate::args::remote::RemoteArgs;
use crate::environment;
use crate::failure::{ErrorCode, Failure, hint};

/// Options that every command has.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Run as if started in this folder
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Act as this agent; else GIT_HANDOFF_AGENT, else the configuration's handoff.agent
    #[arg(long = "as", value_name = "AGENT", global = true)]
    agent: Option<String>,
    /// Act as this worker of the agent; else GIT_HANDOFF_WORKER, else the configuration's
    /// handoff.worker, else an id that this working tree keeps
    #[arg(long, value_name = "ID", global = true)]
    worker: Option<String>,
    /// Use the ledger on this branch; else the configuration's handoff.branch, else `handoffs`
    #[arg(long, value_name = "BRANCH", global = true)]
    branch: Option<String>,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colour
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto")]
    pub color: clap::ColorChoice,
    /// Do not use a pager
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// Print this help; with `git handoff`, use -h, since git turns --help into a manual page
    #[arg(short, long, global = true, action = clap::ArgAction::HelpLong)]
    help: Option<bool>,
}

/// The global options, and the repositories opened with them.
#[derive(Clone)]
pub struct Context {
    global: Global,
    /// Every repository handle given out.
    opened: Rc<RefCell<Vec<Rc<Repository>>>>,
    remote_args: RemoteArgs,
    /// The default worker.
    fallback_worker: Option<WorkerId>,
    /// Set if a server runs the command.
    call: Option<Rc<Call>>,
}

impl Context {
    /// The context of the program's own command.
    pub fn new(global: Global) -> Self {
        Self {
            global,
            opened: Rc::default(),
            remote_args: RemoteArgs::default(),
            fallback_worker: None,
            call: None,
        }
    }

    /// The context of a command that a server runs.
    pub fn of_call(global: Global, call: Call) -> Self {
        Self {
            call: Some(Rc::new(call)),
            ..Self::new(global)
        }
    }

    /// The call, if a server runs the command.
    pub fn call(&self) -> Option<&Call> {
        self.call.as_deref()
    }

    /// Refuses a path outside of the working tree in a call: the caller of a server need not have
    /// its user's file permissions.
    ///
    /// # Errors
    /// A [`Failure`] of usage.
    pub fn ensure_within(&self, repository: &Repository, path: &Path) -> Result<(), Failure> {
        let named = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let is_outside = |root: &Path| handoff::git::leads_out(&named, root);
        if self.call.is_none() || !repository.workdir().is_none_or(is_outside) {
            return Ok(());
        }
        let text = format!("{path:?} is not in the working tree, or leads out of it");
        Err(Failure::usage(text)
            .hint("nothing was read or written; name a path in the working tree, or run the command in a shell"))
    }

    /// An interruption for a wait: by the call, or by signals if a child process must not be left
    /// behind.
    ///
    /// # Errors
    /// A [`Failure`] if signals can't be caught.
    pub fn interruption(&self, lookout: &Lookout<'_>) -> Result<Option<Interruption>, Failure> {
        let Some(call) = &self.call else {
            return lookout.interruption();
        };
        let waker = lookout.waker();
        let interruption = call.interruption();
        interruption.wakes(move || waker.wake());
        Ok(Some(interruption.clone()))
    }

    /// A copy for a writing command.
    pub fn with(&self, remote_args: RemoteArgs) -> Self {
        Self {
            remote_args,
            ..self.clone()
        }
    }

    /// The remote options.
    pub fn remote_args(&self) -> RemoteArgs {
        self.remote_args
    }

    /// Opens the repository of the current folder.
    ///
    /// # Errors
    /// A [`Failure`] of the environment.
    pub fn repository(&self) -> Result<Rc<Repository>, Failure> {
        let repository = Rc::new(Repository::open_here()?.shipping(handoff::templates::shipped));
        self.opened.borrow_mut().push(Rc::clone(&repository));
        Ok(repository)
    }

    /// Opens the same repository for a command that reads every issue.
    ///
    /// # Errors
    /// A [`Failure`] of the environment.
    pub fn repository_to_survey(&self) -> Result<Rc<Repository>, Failure> {
        Repository::map_little();
        self.repository()
    }

    /// How many threads a survey runs on.
    pub fn threads() -> usize {
        thread::available_parallelism().map_or(1, NonZero::get)
    }

    /// Runs git's maintenance if this command wrote or fetched objects and it is due: call it last.
    /// Within another git command, that one is responsible.
    pub fn maintain(&self) {
        if !environment::is_within_git() {
            let opened = self.opened.borrow();
            opened.iter().for_each(|repository| repository.maintain());
        }
    }

    /// The agent named on the command line.
    pub fn named_agent(&self) -> Option<&str> {
        self.global.agent.as_deref()
    }

    /// A copy of the global options, to build a context on another thread.
    pub fn global(&self) -> Global {
        self.global.clone()
    }

    /// The options of this command line that another command on the same ledger needs, except the
    /// agent.
    pub fn other_options(&self, offline: bool) -> Vec<String> {
        let options = [
            ("--worker", self.global.worker.as_ref()),
            ("--branch", self.global.branch.as_ref()),
        ];
        let named = options
            .into_iter()
            .filter_map(|(name, value)| Some([name.to_owned(), value?.clone()]));
        let offline = offline.then(|| "--offline".to_owned());
        named.flatten().chain(offline).collect()
    }

    /// The branch named on the command line.
    pub fn branch(&self) -> Option<&str> {
        self.global.branch.as_deref()
    }

    /// The remote of the ledger, if it has one.
    ///
    /// # Errors
    /// A [`Failure`] of usage if there is no remote of that name.
    pub fn remote(&self, repository: &Repository) -> Result<Option<String>, Failure> {
        let configured = configured_remote(repository);
        if let Some(name) = &configured {
            configured_exists(repository, name)?;
        }
        Ok(configured)
    }

    /// The ledger, which may not exist yet.
    ///
    /// # Errors
    /// A usage [`Failure`] for an invalid branch name.
    pub fn ledger<'r>(&self, repository: &'r Repository) -> Result<Ledger<'r>, Failure> {
        let configured = || repository.config("handoff.branch");
        let branch = self.global.branch.clone().or_else(configured);
        let ledger = Ledger::new(repository, branch.as_deref().unwrap_or(DEFAULT_BRANCH))?;
        let ledger = ledger.read_for(self.unnamed_worker(repository));
        Ok(match configured_remote(repository) {
            Some(remote) => ledger.shared_through(&remote),
            None => ledger,
        })
    }

    /// The newest state of the ledger.
    ///
    /// # Errors
    /// A [`Failure`] if there is no ledger, or it cannot be read.
    pub fn tip<'r>(&self, repository: &'r Repository) -> Result<Snapshot<'r>, Failure> {
        Ok(self.ledger(repository)?.tip()?)
    }

    /// The acting agent, if one was named.
    ///
    /// # Errors
    /// A [`Failure`] of usage if the name is malformed.
    pub fn agent(&self, repository: &Repository) -> Result<Option<AgentName>, Failure> {
        let environment = || {
            std::env::var("GIT_HANDOFF_AGENT")
                .ok()
                .filter(|n| !n.is_empty())
        };
        let configured = || repository.config("handoff.agent");
        let name = self
            .global
            .agent
            .clone()
            .or_else(environment)
            .or_else(configured);
        name.map(|name| self.named(repository, &name)).transpose()
    }

    /// Resolves an agent's name or alias by the protocols in force: every agent name from the user
    /// passes through here.
    ///
    /// # Errors
    /// A [`Failure`] of usage if no agent can have the name.
    pub fn named(&self, repository: &Repository, name: &str) -> Result<AgentName, Failure> {
        // Read errors are reported by the command that needs the ledger.
        let tip = self.tip(repository).ok();
        let own = tip.and_then(|tip| tip.own_name(name).ok()).flatten();
        Ok(own.map_or_else(|| name.parse(), Ok)?)
    }

    /// Resolves several agents' names or aliases, as [`named`](Self::named) does one.
    ///
    /// # Errors
    /// As [`named`](Self::named).
    pub fn all_named(
        &self,
        repository: &Repository,
        names: &[String],
    ) -> Result<Vec<AgentName>, Failure> {
        let names = names.iter();
        names.map(|name| self.named(repository, name)).collect()
    }

    /// The acting agent, which the command requires.
    ///
    /// # Errors
    /// A [`Failure`] of usage if none was named: it is never guessed.
    pub fn acting_agent(&self, repository: &Repository) -> Result<AgentName, Failure> {
        self.agent(repository)?.ok_or_else(|| {
            let set = repository.setting_command("handoff.agent AGENT");
            let how = format!("with --as AGENT, GIT_HANDOFF_AGENT, or `{set}`");
            let agents = self.agents_here(repository).unwrap_or_default();
            let agents = agents.map_or(String::new(), |names| format!("; agents are: {names}"));
            Failure::new(ErrorCode::NoAgent, "say which agent you are")
                .hint(format!("{how}{agents}"))
        })
    }

    /// The agents of the ledger's first protocol that can act.
    fn agents_here(&self, repository: &Repository) -> Result<Option<String>, Failure> {
        let ledger = self.ledger(repository)?;
        if ledger.tip_id()?.is_none() {
            return Ok(None);
        }
        let tip = ledger.tip()?;
        let rules = tip.default_rules()?;
        Ok(Some(rules.protocol().agent_names().join(", ")))
    }
}

/// The remote in the configuration; a path is relative to the working tree.
fn configured_remote(repository: &Repository) -> Option<String> {
    let name = repository.config("handoff.remote")?;
    let from = repository.workdir().unwrap_or(repository.path());
    (!name.is_empty()).then(|| canonical_remote(repository, from, name))
}

/// Resolves a remote by name, URL or path.
///
/// # Errors
/// A usage [`Failure`] for anything else.
pub fn remote_named(repository: &Repository, name: String) -> Result<String, Failure> {
    let name = canonical_remote(repository, Path::new(""), name);
    existing(repository, name)
}

/// The working tree's folder.
///
/// # Errors
/// A [`Failure`] in a bare repository.
pub fn worktree(repository: &Repository) -> Result<PathBuf, Failure> {
    let root = repository
        .workdir()
        .and_then(|root| root.canonicalize().ok());
    root.ok_or_else(|| {
        let text = "a bare repository has no files that a harness reads";
        Failure::new(ErrorCode::Bare, text).hint("run it in a clone or a worktree")
    })
}

/// The canonical name of a remote, under which its branch is tracked. For a path, it does not
/// depend on the current folder, and the path need not exist.
fn canonical_remote(repository: &Repository, from: &Path, name: String) -> String {
    if name.starts_with('-') || is_known(repository, &name) {
        return name;
    }
    let path = from.join(&name);
    let is_path = name.contains('/') && !name.contains(':');
    let beside = || {
        let folder = path.parent().filter(|_| is_path)?.canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    let found = path.canonicalize().ok().or_else(beside);
    let found = found.and_then(|path| path.to_str().map(str::to_owned));
    found.unwrap_or(name)
}

fn is_known(repository: &Repository, name: &str) -> bool {
    repository.config(&format!("remote.{name}.url")).is_some()
}

/// Refuses a configured remote that no longer exists, as after `git remote rename`.
fn configured_exists(repository: &Repository, name: &str) -> Result<(), Failure> {
    let Err(failure) = existing(repository, name.to_owned()) else {
        return Ok(());
    };
    let message = format!(
        "{}, which the configuration names as handoff.remote",
        failure.message
    );
    let remotes = repository.remotes();
    let hint = match &remotes[..] {
        [] => hint!(
            "add the remote again with `git remote add`, or go on without one: `git config --unset handoff.remote`"
        ),
        [only] => hint!(
            "if it was renamed: `git config handoff.remote {}`; `git remote -v` shows where that is",
            only
        ),
        _ => hint!(
            "if it was renamed: `git config handoff.remote NAME`; `git remote -v` lists the remotes"
        ),
    };
    Err(Failure::usage(message).hint(hint))
}

/// Refuses text that is not a remote's name, a URL or a path.
fn existing(repository: &Repository, name: String) -> Result<String, Failure> {
    let is_address = name.contains(['/', ':']);
    if name.starts_with('-') || !is_address && !is_known(repository, &name) {
        let text = format!("there is no remote {}", quoted(&name));
        return Err(Failure::usage(text).hint("`git remote -v` lists the remotes"));
    }
    Ok(name)
}

/// Resolves text to a commit in this repository.
///
/// # Errors
/// A [`Failure`] if there is no such commit.
pub fn commit_id(repository: &Repository, text: &str) -> Result<ObjectId, Failure> {
    let found = repository.commit_named(text).map_err(LedgerError::from)?;
    found.ok_or_else(|| {
        let text = format!("{} names no commit here", quoted(text));
        Failure::new(ErrorCode::NoCommit, text)
            .hint("fetch the code branch first (a branch that only the remote has is named with it: `origin/BRANCH`), or give the commit's whole id")
    })
}

/// Resolves text that is unambiguous forever: a full id, which need not exist here, a name of a
/// single ref, or `HEAD`. An abbreviated id could become ambiguous.
///
/// # Errors
/// A [`Failure`] if there is no such commit, or the text is ambiguous.
pub fn one_commit(repository: &Repository, text: &str) -> Result<ObjectId, Failure> {
    let digits = 2 * repository.format().id_bytes();
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let unclear = |why: String| {
        Failure::new(ErrorCode::NoCommit, why).hint(format!(
            "give the commit's whole id: `git rev-parse refs/heads/{}`",
            word(text)
        ))
    };
    if is_hex && text.len() == digits {
        return text
            .parse()
            .map_err(|_| unclear(format!("{} is no id", quoted(text))));
    }
    let name = text.split(['~', '^', '@', ':']).next().unwrap_or_default();
    if is_hex && text.len() >= 4 {
        let hint = match repository.named(text) {
            Ok(Named::Commit(id)) => format!("give the commit's whole id: {id}"),
            _ => "give the commit's whole id, as `git log` shows it".to_owned(),
        };
        return Err(unclear(format!("{} may be an abbreviated id", quoted(text))).hint(hint));
    }
    let places = ["refs/heads/", "refs/tags/", "refs/remotes/", "refs/"];
    let refs = places.map(|place| format!("{place}{name}"));
    let mut found = refs
        .iter()
        .filter(|full| name != "HEAD" && matches!(repository.resolve(full), Ok(Some(_))));
    match (found.next(), found.next()) {
        (Some(one), Some(other)) => Err(unclear(format!(
            "{} is the name of several: {one} and {other}",
            quoted(name)
        ))),
        (Some(one), None) => commit_id(repository, &text.replacen(name, one, 1)),
        _ => commit_id(repository, text),
    }
}

/// Parses a handoff's id. A bare issue key means its only open handoff, the only open one with the
/// acting agent, or, if none is open, its newest.
pub fn handoff_id(
    snapshot: &Snapshot<'_>,
    text: &str,
    agent: Option<&AgentName>,
) -> Result<HandoffId, Failure> {
    if text.contains('.') {
        return Ok(text.parse()?);
    }
    let key: IssueKey = text.parse()?;
    let issue = snapshot.issue(&key)?.issue()?;
    let Some(issue) = issue else {
        return Err(handoff::model::Refusal::no_issue(&key).into());
    };
    let mine: Vec<_> = issue
        .open
        .iter()
        .filter(|open| Some(&open.to) == agent)
        .collect();
    match &issue.open[..] {
        [only] => Ok(only.id.clone()),
        _ if mine.len() == 1 => Ok(mine[0].id.clone()),
        [] => Ok(HandoffId::new(key, issue.handoffs)),
        open => {
            let ids: Vec<String> = open
                .iter()
                .map(|o| format!("{} with {}", o.id, o.to))
                .collect();
            let text = format!("issue {key} has {} open handoffs: say which", open.len());
            Err(Failure::usage(text).hint(ids.join(", ")))
        }
    }
}
