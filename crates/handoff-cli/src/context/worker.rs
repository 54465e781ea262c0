//! The acting worker, and the source of its id.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use handoff::base::ids::{AgentName, WorkerId};
use handoff::git::{Repository, SharedModes};
use handoff::ledger::Snapshot;
use handoff::model::planner::Holder;

use super::Context;
use crate::environment;
use crate::failure::{ErrorCode, Failure, chain};
use crate::output::Carried;

/// The file with a working tree's own worker id, in its git directory.
const FILE: &str = "handoff/worker";

/// A worker, and whether printed commands must name it.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its id.
    pub id: WorkerId,
    /// Whether it comes from the environment or the configuration, which other working trees share.
    is_shared: bool,
}

impl Worker {
    /// Whether other working trees share it, so that commands need not name it.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }
}

/// An agent with its worker, if known.
pub fn holder<'a>(agent: &'a AgentName, worker: Option<&'a Worker>) -> Holder<'a> {
    Holder {
        agent,
        worker: worker.map(|worker| &worker.id),
    }
}

impl Context {
    /// The acting worker, if it has an id already; writes nothing.
    ///
    /// # Errors
    /// A [`Failure`] if its id is malformed or can't be read.
    pub fn worker(&self, repository: &Repository) -> Result<Option<Worker>, Failure> {
        if let Some(named) = self.named_worker(repository)? {
            return Ok(Some(named));
        }
        let file = repository.path().join(FILE);
        Ok(own_id(&file)?.map(|id| Worker {
            id,
            is_shared: false,
        }))
    }

    /// The worker of a command that names none, as printed ones do. Errors are ignored: the command
    /// that needs the worker reports them.
    pub(super) fn unnamed_worker(&self, repository: &Repository) -> Option<WorkerId> {
        let mut unnamed = self.clone();
        unnamed.global.worker = None;
        unnamed.worker(repository).ok().flatten().map(|own| own.id)
    }

    /// The options that printed commands carry: with the worker if the command line names it, or if
    /// it belongs to one of several working trees. Errors are ignored: the command that needs the
    /// value reports them.
    pub fn carried(&self, repository: &Repository) -> Carried {
        let agent = self.agent(repository).ok().flatten();
        let worker = self.worker(repository).ok().flatten();
        let is_of_tree = worker.as_ref().is_some_and(|worker| !worker.is_shared());
        Carried {
            agent,
            is_agent_named: self.named_agent().is_some(),
            is_of_tree,
            is_worker_named: self.global.worker.is_some()
                || is_of_tree && repository.has_linked_worktrees(),
            worker: worker.map(|worker| worker.id),
            branch: self.branch().map(str::to_owned),
            stands_in_for: Vec::new(),
            is_signed: false,
        }
    }

    /// The options that printed commands carry, with the agent's canonical name in a ledger's
    /// state.
    pub fn carried_at(&self, repository: &Repository, tip: &Snapshot<'_>) -> Carried {
        let mut carried = self.carried(repository);
        if let Some(agent) = &carried.agent {
            let own = tip.own_name(agent.as_str()).ok().flatten();
            carried.agent = own.or(carried.agent);
        }
        carried.is_signed = is_signed(tip);
        if let (Some(agent), Ok(rules)) = (&carried.agent, tip.default_rules()) {
            let protocol = rules.protocol();
            if protocol.definition().people().any(|person| person == agent) {
                carried.stands_in_for.extend(protocol.lead().cloned());
            }
        }
        carried
    }

    /// The options that a failed command's hint carries, from the repository that it opened last.
    pub fn carried_by_failure(&self) -> Option<Carried> {
        let opened = self.opened.borrow();
        opened.last().map(|repository| Carried {
            is_signed: self
                .ledger(repository)
                .and_then(|ledger| Ok(is_signed(&ledger.tip()?)))
                .unwrap_or_default(),
            ..self.carried(repository)
        })
    }

    /// The acting worker; a working tree without an id gets one.
    ///
    /// # Errors
    /// A [`Failure`] if its id is malformed, or can't be read or written.
    pub fn acting_worker(&self, repository: &Repository) -> Result<Worker, Failure> {
        if let Some(known) = self.worker(repository)? {
            return Ok(known);
        }
        let file = repository.path().join(FILE);
        create(&file).map_err(|error| fault(&file, "written", &error))?;
        let id = own_id(&file)?
            .ok_or_else(|| fault(&file, "read", &io::Error::from(io::ErrorKind::NotFound)))?;
        Ok(Worker {
            id,
            is_shared: false,
        })
    }

    /// The other working tree of a repository, main or linked, to which the worker that the command
    /// line names belongs.
    pub fn other_tree(&self, repository: &Repository) -> Option<PathBuf> {
        let named = self.global.worker.as_ref()?.parse().ok();
        let is_its = |git_dir: &Path| {
            git_dir != repository.path()
                && matches!(own_id(&git_dir.join(FILE)), Ok(own) if own.is_some() && own == named)
        };
        repository.worktree_where(is_its)
    }

    /// The worker named by the command line, the environment or the configuration.
    ///
    /// # Errors
    /// A usage [`Failure`] for a malformed id.
    pub fn named_worker(&self, repository: &Repository) -> Result<Option<Worker>, Failure> {
        let parsed = |text: String, place: &str| -> Result<WorkerId, Failure> {
            let id = text.parse();
            id.map_err(|error| Failure::from(error).hint(format!("it comes from {place}")))
        };
        if let Some(text) = &self.global.worker {
            let id = parsed(text.clone(), "--worker")?;
            return Ok(Some(Worker {
                id,
                is_shared: false,
            }));
        }
        let shared = if let Some(text) = environment::worker() {
            parsed(text, "GIT_HANDOFF_WORKER")?
        } else if let Some(text) = repository.config("handoff.worker") {
            parsed(text, "the configuration's handoff.worker")?
        } else if let Some(id) = &self.fallback_worker {
            id.clone()
        } else {
            return Ok(None);
        };
        Ok(Some(Worker {
            id: shared,
            is_shared: true,
        }))
    }

    /// A copy with a default worker.
    pub fn with_fallback_worker(&self, worker: Option<WorkerId>) -> Self {
        Self {
            fallback_worker: worker,
            ..self.clone()
        }
    }
}

/// A random worker id with a prefix for its kind.
pub fn random_worker(kind: &str) -> String {
    let word = environment::random_word();
    format!("{kind}-{}", &word[..12])
}

/// The id in a working tree's file, if there is one.
fn own_id(file: &Path) -> Result<Option<WorkerId>, Failure> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(file, "read", &error)),
    };
    match text.trim_end().parse() {
        Ok(id) => Ok(Some(id)),
        Err(error) => Err(fault(file, "used", &error)),
    }
}

/// Creates the file atomically with a random id, unless another process already did.
fn create(file: &Path) -> io::Result<()> {
    let _modes = SharedModes::begin();
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let id = random_worker("tree");
    let new: PathBuf = file.with_extension(&id);
    let mut out = File::create_new(&new)?;
    let written = writeln!(out, "{id}").and_then(|()| out.sync_all());
    drop(out);
    // A hard link, unlike a rename, replaces nothing; some file systems lack it.
    let linked = written.and_then(|()| match fs::hard_link(&new, file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(_) if !file.exists() => fs::copy(&new, file).map(drop),
        other => other,
    });
    // At worst, a temporary file is left over.
    let _ = fs::remove_file(&new);
    linked
}

fn fault(file: &Path, verb: &str, error: &dyn std::error::Error) -> Failure {
    let text = format!(
        "the worker id of this working tree can't be {verb}: {}: {}",
        file.display(),
        chain(error)
    );
    Failure::new(ErrorCode::WorkerFile, text).hint(
        "name the worker with --worker ID or GIT_HANDOFF_WORKER; without that file, this working tree gets a new id",
    )
}

/// Whether a ledger lists keys.
fn is_signed(tip: &Snapshot<'_>) -> bool {
    let signers = tip.default_rules().and_then(|rules| rules.signers());
    signers.is_ok_and(|signers| signers.is_some())
}
