//! Way in and way out: a ledger as files, and files as steps of a ledger.
//!
//! `export` writes a folder in one of four layouts, and beside it every step in
//! `steps.jsonl`; `import` reads such a folder back, or one that another system
//! made. Everything that is imported goes through the ordinary write path, so
//! that nothing enters which `send` would refuse. `history` reads the steps from
//! the ledger, `line` is their stored form, `layouts` writes the four layouts,
//! `files` reads foreign folders with care. `deliver` imports a contract,
//! `replay` the steps of an export, `inbound` and `states` what other systems
//! keep.

mod deliver;
mod export;
mod fault;
mod files;
mod history;
mod inbound;
mod layouts;
mod line;
mod pending;
mod replay;
mod states;

use std::io;
use std::path::{Path, PathBuf};

pub use deliver::{Import, Imported, Item, Refused};
pub use export::{Export, Exported, export};
pub use fault::Fault;
pub use replay::import;

use super::error::LedgerError;
use handoff_base::finding::Finding;
use handoff_git::GitError;

/// How a folder of handoffs is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One folder for each state, with the newest document of each request.
    Folders,
    /// One log of all handoffs.
    Log,
    /// A log in lines, and an archive of contracts.
    Archive,
    /// The contracts alone, a folder for each issue.
    Files,
}

/// What an import reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Every step of a ledger, as an export wrote it.
    Steps,
    /// What a system without a ledger keeps.
    Layout(Layout),
}

impl Source {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Layout(Layout::Folders) => "folders",
            Self::Layout(Layout::Log) => "log",
            Self::Layout(Layout::Archive) => "archive",
            Self::Layout(Layout::Files) => "files",
        }
    }
}

/// Why an export or an import ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The ledger could not be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// There is nothing at that path.
    #[error("there is no file or folder {}", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// It is a device, a pipe or a socket.
    #[error("{} is neither a file nor a folder", path.display())]
    Special {
        /// The path.
        path: PathBuf,
    },
    /// The folder holds nothing of the kind.
    #[error("{} holds nothing to import", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// An export needs a folder of its own.
    #[error("{} is not empty", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// A file or a folder can't be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file or a folder can't be written.
    #[error("{} cannot be written", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that all others are read by is at fault.
    #[error("{} cannot be imported", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        findings: Vec<Finding>,
    },
    /// The steps were written by a later program.
    #[error("{} has version {version}, and this program reads {}", path.display(), line::VERSION)]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// Not all of the history is in this clone.
    #[error("the beginning of the ledger's history is not in this clone")]
    CutOff,
    /// A commit is no step.
    #[error("a commit of the ledger is not a step")]
    Damaged {
        /// What is wrong with it.
        findings: Vec<Finding>,
    },
}

impl From<GitError> for ExchangeError {
    fn from(error: GitError) -> Self {
        Self::Ledger(error.into())
    }
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> ExchangeError + '_ {
    |source| ExchangeError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> ExchangeError + '_ {
    |source| ExchangeError::Unwritable {
        path: path.to_owned(),
        source,
    }
}
