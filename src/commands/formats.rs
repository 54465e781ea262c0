//! The names of the formats, for `export` and `import`.

use clap::ValueEnum;
use handoff_exchange::Layout;

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
