//! What `export` and `import` share on the command line: the names of the formats, and how errors
//! are reported.

use clap::ValueEnum;
use handoff_ledger::{ExchangeError, Fault, Layout};

use crate::failure::{DEEPEN, ErrorCode, Failure, chain};

/// How a folder of handoffs is laid out.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// handoffs/pending, in-progress, completed, failed: one document per request
    Folders,
    /// handoff_log.json: one entry per handoff
    Log,
    /// handoffs.log and handoff_contracts/: one line and one file per contract
    Archive,
    /// The contracts, in one folder per issue
    Files,
}

impl From<Format> for Layout {
    fn from(format: Format) -> Self {
        match format {
            Format::Folders => Self::Folders,
            Format::Log => Self::Log,
            Format::Archive => Self::Archive,
            Format::Files => Self::Files,
        }
    }
}

impl From<ExchangeError> for Failure {
    fn from(error: ExchangeError) -> Self {
        let message = chain(&error);
        let at = |code| Self::new(code, message.clone());
        match error {
            ExchangeError::Ledger(error) => error.into(),
            ExchangeError::Missing { .. } => at(ErrorCode::NoFile),
            ExchangeError::Special { .. } => {
                at(ErrorCode::ImportUnreadable).advice("name a folder, or a file in it")
            }
            ExchangeError::Empty { .. } => {
                at(ErrorCode::NothingToImport).hint("`git handoff import -h` lists what it reads")
            }
            ExchangeError::NotEmpty { .. } => {
                at(ErrorCode::FolderNotEmpty).advice("name a folder that does not exist yet")
            }
            ExchangeError::Unreadable { .. } => at(ErrorCode::FolderUnreadable),
            ExchangeError::Unwritable { .. } => at(ErrorCode::FolderUnwritable)
                .advice("the export is incomplete: remove what was written"),
            ExchangeError::Unusable { findings, .. } => {
                at(ErrorCode::ImportUnreadable).findings(findings)
            }
            ExchangeError::Version { .. } => at(ErrorCode::ImportVersion)
                .advice("use the version of git-handoff that wrote it, or a later one"),
            ExchangeError::CutOff => at(ErrorCode::Shallow).hint(DEEPEN),
            ExchangeError::Damaged { findings } => at(ErrorCode::LedgerDamaged)
                .hint("`git handoff verify` shows where the damage began")
                .findings(findings),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let message = chain(&fault);
        let at = |code| Self::new(code, message.clone());
        match fault {
            Fault::Ledger(error) => error.into(),
            Fault::Unreadable { findings } => at(ErrorCode::ImportUnreadable).findings(findings),
            Fault::Order { .. } | Fault::Behind { .. } => {
                at(ErrorCode::OutOfOrder).advice("fix what was refused before it, and import again")
            }
            Fault::Other { .. } | Fault::Repeats { .. } => at(ErrorCode::ImportConflict)
                .advice("import it into a new ledger, on its own branch: --branch NAME"),
        }
    }
}
