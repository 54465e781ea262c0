//! Identifies a ledger.

use handoff_model::layout;
use sha2::{Digest, Sha256};

use super::error::LedgerError;
use super::snapshot::Snapshot;

impl Snapshot<'_> {
    /// A digest of the ledger's first file, which no step changes. It is the same in every clone,
    /// including a shallow one. Ledgers created with the same settings in the same second share it.
    ///
    /// # Errors
    /// [`LedgerError`] if it can't be read.
    pub fn identity(&self) -> Result<[u8; 32], LedgerError> {
        let path = layout::MANIFEST.to_owned();
        let bytes = self.file(layout::MANIFEST)?;
        let bytes = bytes.ok_or(LedgerError::missing(path))?;
        Ok(Sha256::digest(&bytes).into())
    }
}
