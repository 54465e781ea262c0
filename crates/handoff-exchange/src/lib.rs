//! Export and import: a ledger as files, and files as steps of a ledger.
//!
//! `export` writes a folder in one of four layouts, plus every step in `steps.jsonl`; `import`
//! reads such a folder, or another system's. Every import uses the ordinary write path, so it
//! accepts only what `send` accepts, except what an import profile of the protocol lets files of
//! another system omit. `exchanger` does both with a folder that other programs write to as well;
//! `shared_folder` is the index of that folder. `history` reads the ledger's steps, `line` is their
//! stored form, `layouts` and `folders` write the layouts, and `files` reads untrusted folders
//! safely. `deliver` imports a contract, `replay` the steps of an export, and `inbound` and
//! `states` the data of other systems.

mod deliver;
mod exchanger;
mod export;
mod fault;
mod files;
mod folders;
mod history;
mod inbound;
mod layouts;
mod line;
mod out;
mod pending;
mod places;
mod records;
mod replay;
mod shared_folder;
mod states;

use std::io;
use std::path::{Path, PathBuf};

pub use deliver::{Import, Imported, Item, Refused};
pub use exchanger::Exchanger;
pub use export::{Export, Exported, export};
pub use fault::Fault;
pub use folders::PutOut;
pub use replay::import;

use handoff::base::codes::ErrorCode;
use handoff::base::explained::{Explained, Explanation};
use handoff::base::finding::Finding;
use handoff::git::GitError;
use handoff::ledger::{DEEPEN, LedgerError};

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
    /// Every step of a ledger, as written by an export.
    Steps,
    /// The files of a system without a ledger.
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
    /// The path does not exist.
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
    /// The folder contains nothing to import.
    #[error("{} holds nothing to import", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// The export's folder is not empty.
    #[error("{} is not empty", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// Another program's file is where an exported one would be.
    #[error("{} exists, and this repository did not write it", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The path can't be exchanged with.
    #[error("{} {why}", path.display())]
    Unfit {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// Another process exchanges with the folder.
    #[error("another process exchanges with {}", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// No protocol in force supports folders of states.
    #[error("no protocol in force has files that are moved from state to state")]
    NoProfile,
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
    /// A file that all others depend on is invalid.
    #[error("{} cannot be imported", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        findings: Vec<Finding>,
    },
    /// The steps were written by a newer program.
    #[error("{} has version {version}, but this program reads {}", path.display(), line::VERSION)]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// This clone does not have the full history.
    #[error("the beginning of the ledger's history is not in this clone")]
    CutOff,
    /// A commit is not a ledger step.
    #[error("a commit of the ledger is not a step")]
    Damaged {
        /// What is wrong with it.
        findings: Vec<Finding>,
    },
}

impl Explained for ExchangeError {
    fn explanation(&self) -> Explanation {
        match self {
            Self::Ledger(error) => error.explanation(),
            Self::Missing { .. } => ErrorCode::NoFile.into(),
            Self::Special { .. } => {
                ErrorCode::ImportUnreadable.hint("name a folder, or a file in it")
            }
            Self::Empty { .. } => {
                ErrorCode::NothingToImport.hint("`git handoff import -h` lists what it reads")
            }
            Self::NotEmpty { .. } => {
                ErrorCode::FolderNotEmpty.hint("name a folder that does not exist yet")
            }
            Self::Foreign { .. } => {
                ErrorCode::FolderNotEmpty.hint("name another folder, or move it out of the way")
            }
            Self::Unfit { .. } => ErrorCode::FolderUnfit
                .hint("name a folder of its own, such as one beside the repository"),
            Self::Busy { .. } => ErrorCode::FolderBusy
                .hint("end the other one, or let it go on: one is enough for a folder"),
            Self::NoProfile => ErrorCode::NoImportProfile
                .hint("`git handoff protocol list` lists the protocols in force"),
            Self::Unreadable { .. } => ErrorCode::FolderUnreadable.into(),
            Self::Unwritable { .. } => ErrorCode::FolderUnwritable
                .hint("the export is incomplete: remove what was written"),
            Self::Unusable { findings, .. } => {
                Explanation::from(ErrorCode::ImportUnreadable).findings(findings)
            }
            Self::Version { .. } => ErrorCode::ImportVersion
                .hint("use the version of git-handoff that wrote it, or a later one"),
            Self::CutOff => ErrorCode::Shallow.hint(DEEPEN),
            Self::Damaged { findings } => ErrorCode::LedgerDamaged
                .hint("`git handoff verify` shows where the damage began")
                .findings(findings),
        }
    }
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
