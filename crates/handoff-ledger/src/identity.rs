//! Identifies a ledger.

use handoff_base::hexadecimal;
use handoff_model::{Manifest, record};
use sha2::{Digest, Sha256};

use super::snapshot::Snapshot;

impl Snapshot<'_> {
    /// A digest of `ledger.json` as the ledger was created: the same in every clone, including a
    /// shallow one, whatever was paused or quarantined since. Ledgers created with the same settings
    /// in the same second share it.
    pub fn identity(&self) -> [u8; 32] {
        let created = Manifest {
            paused: Vec::new(),
            resumed: None,
            quarantined: Vec::new(),
            ..self.manifest().clone()
        };
        Sha256::digest(record::write(&created)).into()
    }

    /// The ledger's identity as a URN, for programs that combine events of several sources: a UUID
    /// (version 8 of RFC 9562).
    pub fn urn(&self) -> String {
        let mut id = [0; 16];
        id.copy_from_slice(&self.identity()[..16]);
        id[6] = id[6] & 0x0f | 0x80;
        id[8] = id[8] & 0x3f | 0x80;
        let digits = hexadecimal(&id);
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
        let parts = parts.map(|part| digits[part].to_owned());
        format!("urn:uuid:{}", parts.join("-"))
    }
}
