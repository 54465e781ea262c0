//! A commit's signature: extraction and verification.

use std::fmt::Display;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use handoff_base::ObjectId;
use ssh_key::public::KeyData;
use ssh_key::{HashAlg, LineEnding, PublicKey, SshSig};
use tempfile::NamedTempFile;

use super::{Stored, signature_header};
use crate::process::{self, ProcessError};
use crate::repository::Repository;

/// The time limit of gpg or ssh-keygen for one signature.
const LIMIT: Duration = Duration::from_secs(60);

/// The ssh namespace of git's signatures.
const NAMESPACE: &str = "git";

/// A commit's signature, not verified yet.
pub struct Signature {
    commit: ObjectId,
    payload: Vec<u8>,
    armored: String,
}

/// The key of a valid signature.
#[derive(Debug)]
pub enum Key {
    /// An ssh key.
    Ssh(Box<KeyData>),
    /// An OpenPGP key.
    OpenPgp {
        /// The fingerprints of the key and of its primary key.
        fingerprints: [String; 2],
        /// When it expired, if it did.
        expired: Option<DateTime<Utc>>,
    },
}

impl Key {
    /// The fingerprint, in the form that its owner's tools print.
    pub fn fingerprint(&self) -> String {
        match self {
            Self::Ssh(key) => key.fingerprint(HashAlg::Sha256).to_string(),
            Self::OpenPgp { fingerprints, .. } => fingerprints[1].clone(),
        }
    }
}

/// Why a signature is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// It is invalid for this commit.
    #[error("{0}")]
    Bad(String),
    /// Signatures of this kind can't be verified here.
    #[error("{0}")]
    Unsupported(String),
    /// The key is missing.
    #[error("gpg does not have the key {0}")]
    NoKey(String),
    /// The key was revoked.
    #[error("the key {0} was revoked")]
    Revoked(String),
    /// The verifying program failed.
    #[error("{0}")]
    NotRun(String),
}

impl SignatureError {
    fn bad(text: &str) -> Self {
        Self::Bad(text.to_owned())
    }
}

impl Stored {
    /// The commit's signature, if it has one.
    ///
    /// # Errors
    /// [`SignatureError::Bad`] if there are several, or one in an unusual header.
    pub fn signature(&self) -> Result<Option<Signature>, SignatureError> {
        if self.is_plain() {
            return Ok(None);
        }
        let raw = self.bytes();
        let end = raw.windows(2).position(|two| two == b"\n\n");
        let header = &raw[..end.map_or(raw.len(), |end| end + 1)];
        if !header.windows(7).any(|seven| seven == b"\ngpgsig") {
            return Ok(None);
        }
        let start = format!("{} ", signature_header(self.commit.id.format()));
        let mut payload = Vec::new();
        let (mut armored, mut within) = (None, false);
        for line in header.split_inclusive(|&b| b == b'\n') {
            if let Some(first) = line.strip_prefix(start.as_bytes()) {
                if armored.is_some() {
                    return Err(SignatureError::bad("the commit has two signatures"));
                }
                armored = Some(first.to_vec());
                within = true;
            } else if let (true, Some(more)) = (within, line.strip_prefix(b" ")) {
                armored.iter_mut().for_each(|text| text.extend(more));
            } else {
                if line.starts_with(b"gpgsig") {
                    let text = "the commit has a signature in a header where git looks for none";
                    return Err(SignatureError::bad(text));
                }
                payload.extend(line);
                within = false;
            }
        }
        let Some(armored) = armored else {
            return Ok(None);
        };
        payload.extend(&raw[header.len()..]);
        let not_text = |_| SignatureError::bad("the signature is not text");
        Ok(Some(Signature {
            commit: self.commit.id,
            payload,
            armored: String::from_utf8(armored).map_err(not_text)?,
        }))
    }
}

impl Signature {
    /// Whether it is an ssh signature, which is verified without the user's keys.
    pub fn is_ssh(&self) -> bool {
        self.armored.starts_with("-----BEGIN SSH SIGNATURE-----")
    }

    /// Verifies the signature and returns its key.
    ///
    /// # Errors
    /// [`SignatureError`].
    pub fn key(&self, repository: &Repository) -> Result<Key, SignatureError> {
        if self.is_ssh() {
            return self.ssh();
        }
        let openpgp = ["SIGNATURE", "MESSAGE"].iter().any(|kind| {
            let begin = format!("-----BEGIN PGP {kind}-----");
            self.armored.starts_with(&begin)
        });
        if openpgp {
            return self.openpgp(repository);
        }
        let text = "the signature is neither one of ssh nor one of OpenPGP";
        Err(SignatureError::Unsupported(text.to_owned()))
    }

    fn ssh(&self) -> Result<Key, SignatureError> {
        let broken = |_| SignatureError::bad("the signature cannot be read");
        let signature = SshSig::from_pem(self.armored.trim_end()).map_err(broken)?;
        if signature.namespace() != NAMESPACE {
            return Err(SignatureError::bad("the signature was not made for git"));
        }
        // A malleable encoding would allow the same signature in other commits.
        let again = signature.to_pem(LineEnding::LF).map_err(broken)?;
        if again.trim_end() != self.armored.trim_end() {
            return Err(SignatureError::bad(
                "the signature is not written as ssh writes it",
            ));
        }
        let key = signature.public_key().clone();
        if !is_supported(&key) {
            let kind = key.algorithm();
            let text = format!("the signature is of a key that can't be used: {kind}");
            return Err(SignatureError::Unsupported(text));
        }
        let is_valid = match key {
            KeyData::Ed25519(_) | KeyData::SkEd25519(_) => {
                let known = PublicKey::from(key.clone());
                known.verify(NAMESPACE, &self.payload, &signature).is_ok()
            }
            _ => self.is_valid_for_ssh_keygen()?,
        };
        if is_valid {
            return Ok(Key::Ssh(Box::new(key)));
        }
        Err(SignatureError::bad(
            "the signature is not one of this commit",
        ))
    }

    /// Verifies the signature with ssh-keygen, using the key it contains.
    fn is_valid_for_ssh_keygen(&self) -> Result<bool, SignatureError> {
        let not_run = |error: &dyn Display| {
            SignatureError::NotRun(format!("ssh-keygen cannot be run: {error}"))
        };
        let mut file = NamedTempFile::new().map_err(|error| not_run(&error))?;
        let written = file.write_all(self.armored.as_bytes());
        written.map_err(|error| not_run(&error))?;
        let mut command = Command::new("ssh-keygen");
        command.args(["-Y", "check-novalidate", "-n", NAMESPACE, "-s"]);
        command.arg(file.path());
        let until = Some(Instant::now() + LIMIT);
        let ended = process::run_until(until, command, Some(self.payload.clone()));
        let ended = ended.map_err(|error| match error {
            ProcessError::NoStart(error) => not_run(&error),
            _ => not_run(&"it did not answer in time"),
        })?;
        let is_valid = ended.status.success();
        if is_valid || ended.stdout.starts_with(b"Could not verify signature") {
            return Ok(is_valid);
        }
        // OpenSSH before 8.1 lacks `-Y`.
        Err(not_run(&ended.complaint()))
    }

    /// Verifies the signature with gpg, run by git as the user configured it.
    fn openpgp(&self, repository: &Repository) -> Result<Key, SignatureError> {
        let mut command = repository.git();
        command.args(["verify-commit", "--raw", &self.commit.to_string()]);
        let ended = process::run_until(Some(Instant::now() + LIMIT), command, None);
        let ended = ended.map_err(|error| {
            SignatureError::NotRun(match error {
                ProcessError::TimedOut => "gpg did not answer in time".to_owned(),
                other => other.to_string(),
            })
        })?;
        verdict(&String::from_utf8_lossy(&ended.stderr))
            .ok_or_else(|| SignatureError::NotRun(format!("gpg says: {}", ended.complaint())))?
    }
}

/// Whether this program can verify signatures of a key.
fn is_supported(key: &KeyData) -> bool {
    let bits = |n: &ssh_key::Mpint| n.as_positive_bytes().unwrap_or_default().len() * 8;
    match key {
        KeyData::Ed25519(_)
        | KeyData::SkEd25519(_)
        | KeyData::Ecdsa(_)
        | KeyData::SkEcdsaSha2NistP256(_) => true,
        KeyData::Rsa(rsa) => (2048..=4096).contains(&bits(&rsa.n)),
        _ => false,
    }
}

/// Parses gpg's status lines; `None` if they are inconclusive.
fn verdict(said: &str) -> Option<Result<Key, SignatureError>> {
    let lines = said.lines().filter_map(|l| l.strip_prefix("[GNUPG:] "));
    let lines: Vec<Vec<&str>> = lines.map(|l| l.split(' ').collect()).collect();
    let of = |kinds: &[&str]| -> Vec<&Vec<&str>> {
        lines.iter().filter(|l| kinds.contains(&l[0])).collect()
    };
    let about = [
        "GOODSIG",
        "EXPSIG",
        "EXPKEYSIG",
        "REVKEYSIG",
        "BADSIG",
        "ERRSIG",
    ];
    let kept = of(&about);
    let [one] = kept[..] else {
        return None;
    };
    let id = (*one.get(1)?).to_owned();
    let valid = of(&["VALIDSIG"]);
    let expired = match one[0] {
        "GOODSIG" => None,
        "EXPKEYSIG" => {
            let last = of(&["KEYEXPIRED"]).last()?.get(1)?.parse().ok()?;
            Some(DateTime::from_timestamp(last, 0)?)
        }
        "REVKEYSIG" => return Some(Err(SignatureError::Revoked(id))),
        "ERRSIG" if !of(&["NO_PUBKEY"]).is_empty() => {
            return Some(Err(SignatureError::NoKey(id)));
        }
        "BADSIG" => {
            let text = "the signature is not one of this commit";
            return Some(Err(SignatureError::bad(text)));
        }
        _ => {
            return Some(Err(SignatureError::bad(
                "gpg does not accept the signature",
            )));
        }
    };
    let [valid] = valid[..] else {
        return None;
    };
    // VALIDSIG FINGERPRINT DATE TIME EXPIRES VERSION - ALGORITHM HASH CLASS PRIMARY
    let (own, primary) = (valid.get(1)?, valid.get(10)?);
    let fingerprints = [own, primary].map(|print| print.to_ascii_uppercase());
    let right = |print: &String| print.len() >= 40 && print.bytes().all(|b| b.is_ascii_hexdigit());
    fingerprints.iter().all(right).then_some(Ok(Key::OpenPgp {
        fingerprints,
        expired,
    }))
}

#[cfg(test)]
mod tests {
    use super::{Key, SignatureError, verdict};

    const OWN: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    const PRIMARY: &str = "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB";

    fn lines(kind: &str) -> String {
        format!(
            "gpg: something\n[GNUPG:] NEWSIG\n[GNUPG:] {kind} AAAA Robin Doe\n\
             [GNUPG:] VALIDSIG {OWN} 2026-03-02 1772442000 0 4 0 22 8 00 {PRIMARY}\n"
        )
    }

    #[test]
    fn what_gpg_says_is_read_to_the_letter() {
        let good = verdict(&lines("GOODSIG"));
        assert!(matches!(
            good,
            Some(Ok(Key::OpenPgp { fingerprints: [own, primary], expired: None }))
                if own == OWN && primary == PRIMARY
        ));
        assert!(matches!(
            verdict(&lines("BADSIG")),
            Some(Err(SignatureError::Bad(_)))
        ));
        assert!(matches!(
            verdict(&lines("REVKEYSIG")),
            Some(Err(SignatureError::Revoked(_)))
        ));
        let late = format!("[GNUPG:] KEYEXPIRED 1772442001\n{}", lines("EXPKEYSIG"));
        assert!(matches!(
            verdict(&late),
            Some(Ok(Key::OpenPgp { expired: Some(at), .. })) if at.timestamp() == 1_772_442_001
        ));
        assert!(matches!(
            verdict("[GNUPG:] ERRSIG AAAA 22 8 00 1772442000 9 -\n[GNUPG:] NO_PUBKEY AAAA\n"),
            Some(Err(SignatureError::NoKey(_)))
        ));
    }

    #[test]
    fn what_gpg_does_not_say_counts_for_nothing() {
        let twice = lines("GOODSIG") + &lines("GOODSIG");
        let both = lines("GOODSIG") + "[GNUPG:] BADSIG AAAA Robin Doe\n";
        let bare = "[GNUPG:] GOODSIG AAAA Robin Doe\n";
        let short = lines("GOODSIG").replace(PRIMARY, "BBBB");
        let indented = lines("GOODSIG").replace("[GNUPG:]", " [GNUPG:]");
        let undated = lines("EXPKEYSIG");
        for said in ["", &twice, &both, bare, &short, &indented, &undated] {
            assert!(verdict(said).is_none(), "{said}");
        }
    }
}
