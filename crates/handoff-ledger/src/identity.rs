//! Identifies a ledger.

use handoff_base::hexadecimal;
use handoff_model::layout;
use sha2::{Digest, Sha256};

use super::error::LedgerError;
use super::snapshot::Snapshot;

impl Snapshot<'_> {
    /// A digest of `ledger.json`: the same in every clone, including a shallow one. A halt or a
    /// quarantine changes that file. Ledgers created with the same settings in the same second
    /// share it.
    ///
    /// # Errors
    /// [`LedgerError`] if it can't be read.
    pub fn identity(&self) -> Result<[u8; 32], LedgerError> {
        let path = layout::MANIFEST.to_owned();
        let bytes = self.file(layout::MANIFEST)?;
        let bytes = bytes.ok_or(LedgerError::missing(path))?;
        Ok(Sha256::digest(&bytes).into())
    }
    /// The ledger's identity as a URN, for programs that combine events of several sources: a UUID
    /// (version 8 of RFC 9562).
    ///
    /// # Errors
    /// [`LedgerError`] if it can't be read.
    pub fn urn(&self) -> Result<String, LedgerError> {
        let mut id = [0; 16];
        id.copy_from_slice(&self.identity()?[..16]);
        id[6] = id[6] & 0x0f | 0x80;
        id[8] = id[8] & 0x3f | 0x80;
        let digits = hexadecimal(&id);
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
        let parts = parts.map(|part| digits[part].to_owned());
        Ok(format!("urn:uuid:{}", parts.join("-")))
    }
}
