//! A commit's signature: extraction and verification.

use std::fmt::Display;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use cryptoxide::ed25519;
use handoff_base::ObjectId;
use ssh_key::public::KeyData;
use ssh_key::{Algorithm, HashAlg, LineEnding, SshSig};
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
        let key = signature.public_key().clone();
        // A malleable encoding would allow the same signature in other commits: only one is accepted,
        // also of the version and the reserved bytes, which are not signed.
        let raw = signature.signature().clone();
        let again = SshSig::new(key.clone(), NAMESPACE, signature.hash_alg(), raw);
        let again = again.and_then(|again| again.to_pem(LineEnding::LF));
        if again.map_err(broken)?.trim_end() != self.armored.trim_end() {
            return Err(SignatureError::bad(
                "the signature is not written as ssh writes it",
            ));
        }
        if !is_supported(&key) {
            let kind = key.algorithm();
            let text = format!("the signature is of a key that can't be used: {kind}");
            return Err(SignatureError::Unsupported(text));
        }
        let is_valid = match &key {
            KeyData::Ed25519(own) => is_valid_ed25519(&own.0, &signature, &self.payload),
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

/// Whether a key signed this, by the rule of OpenSSH: S is reduced, and R is what the equation gives.
fn is_valid_ed25519(key: &[u8; 32], signature: &SshSig, payload: &[u8]) -> bool {
    let signed = SshSig::signed_data(NAMESPACE, signature.hash_alg(), payload);
    let raw = signature.signature_bytes().try_into();
    match (signature.algorithm(), signed, raw) {
        (Algorithm::Ed25519, Ok(signed), Ok(raw)) => ed25519::verify(&signed, key, raw),
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
    #![allow(clippy::unwrap_used)]

    use cryptoxide::ed25519;
    use ssh_key::public::{Ed25519PublicKey, KeyData, SkEd25519};
    use ssh_key::{Algorithm, HashAlg, LineEnding, SshSig};

    use super::{Key, NAMESPACE, Signature, SignatureError, verdict};

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

    /// Made by `ssh-keygen -Y sign -n git`, of [`PAYLOAD`].
    const KNOWN: &str = "\
        U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg2xyo2pj55+jZ4AmnmoOk/Jo/TBABwj2MwVgJAWi0PNwAAAADZ2l0AAAA\
        AAAAAAZzaGE1MTIAAABTAAAAC3NzaC1lZDI1NTE5AAAAQBwAzQdDraGgEioBMEzocknVNmMr1oZwqxkUvmxfYyjMS4VE28NW+FPS\
        rDGUj7Y8FfzWlrVxmJzDQ3mbZqm+9gk=";
    const PAYLOAD: &str = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nA step.\n";

    fn armored(base64: &str) -> String {
        let lines: Vec<&str> = (0..base64.len())
            .step_by(70)
            .map(|at| &base64[at..base64.len().min(at + 70)])
            .collect();
        let lines = lines.join("\n");
        format!("-----BEGIN SSH SIGNATURE-----\n{lines}\n-----END SSH SIGNATURE-----\n")
    }

    /// What is refused, or the key's fingerprint.
    fn judged(armored: String, payload: &str) -> Result<String, String> {
        let signature = Signature {
            commit: "4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse().unwrap(),
            payload: payload.into(),
            armored,
        };
        let key = signature.ssh();
        key.map(|key| key.fingerprint())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_signature_of_ssh_keygen_vouches_for_its_bytes_alone() {
        let own = "SHA256:FLsEbyPQKIFu/XApK9J1rD/T0ymjaVZ7qxw/0HMtDgc";
        assert_eq!(judged(armored(KNOWN), PAYLOAD).unwrap(), own);
        let bad = Err("the signature is not one of this commit".to_owned());
        let other = PAYLOAD.replace("A step", "A stdp");
        assert_eq!(judged(armored(KNOWN), &other), bad);
        // R, S, and S with the order of the group added, which is the same to who does not look.
        let known = SshSig::from_pem(armored(KNOWN)).unwrap();
        let with = |change: &dyn Fn(&mut [u8])| {
            let mut raw = known.signature_bytes().to_vec();
            change(&mut raw);
            let raw = ssh_key::Signature::new(Algorithm::Ed25519, raw).unwrap();
            let key = known.public_key().clone();
            let changed = SshSig::new(key, NAMESPACE, known.hash_alg(), raw).unwrap();
            judged(changed.to_pem(LineEnding::LF).unwrap(), PAYLOAD)
        };
        assert_eq!(with(&|_| ()).unwrap(), own);
        for at in [0, 31, 32, 63] {
            assert_eq!(with(&|raw| raw[at] ^= 1), bad);
        }
        let order = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
        let add = |raw: &mut [u8]| {
            let mut carry = 0;
            for (at, byte) in raw[32..].iter_mut().enumerate() {
                let digit = u16::from_str_radix(&order[2 * at..2 * at + 2], 16).unwrap();
                carry += u16::from(*byte) + digit;
                *byte = carry as u8;
                carry >>= 8;
            }
        };
        assert_eq!(with(&add), bad);
    }

    #[test]
    fn a_signature_has_one_form() {
        let reserved = ("Z2l0AAAAAAAA", "Z2l0AAAAAwAAAAAA");
        let version = ("U1NIU0lHAAAAAQ", "U1NIU0lHAAAAAA");
        let refused = Err("the signature is not written as ssh writes it".to_owned());
        for (usual, other) in [reserved, version] {
            let changed = KNOWN.replace(usual, other);
            assert_ne!(changed, KNOWN);
            assert_eq!(judged(armored(&changed), PAYLOAD), refused);
        }
        let loose = armored(KNOWN).replace("\n-----END", "\n\n-----END");
        assert!(judged(loose, PAYLOAD).is_err());
    }

    /// As a security key signs: with the application, flags (touched) and a counter.
    #[test]
    fn security_keys_are_verified() {
        let (pair, public) = ed25519::keypair(&[7; 32]);
        let key = SkEd25519::new(Ed25519PublicKey(public), "ssh:");
        let signed = |message: &str| {
            let data = SshSig::signed_data(NAMESPACE, HashAlg::Sha512, message.as_bytes()).unwrap();
            let device = [1, 0, 0, 0, 9];
            let parts = [
                &HashAlg::Sha256.digest(b"ssh:"),
                &device[..],
                &HashAlg::Sha256.digest(&data),
            ];
            let raw = [&ed25519::signature(&parts.concat(), &pair), &device[..]].concat();
            let raw = ssh_key::Signature::new(Algorithm::SkEd25519, raw).unwrap();
            let key = KeyData::SkEd25519(key.clone());
            let signature = SshSig::new(key, NAMESPACE, HashAlg::Sha512, raw).unwrap();
            signature.to_pem(LineEnding::LF).unwrap()
        };
        judged(signed(PAYLOAD), PAYLOAD).unwrap();
        let bad = Err("the signature is not one of this commit".to_owned());
        assert_eq!(judged(signed("another"), PAYLOAD), bad);
    }
}
