//! Signatures: the key that must sign a commit, making a signature, and verifying one.

use std::rc::Rc;
use std::time::{Duration, Instant};

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::ids::AgentName;
use handoff_base::{Moment, to_second};
use handoff_git::{Key, Prepared, Proposal, Repository, SignError, SignatureError, Stored};
use handoff_model::{Step, Update};
use handoff_protocol::{Event, Signer, Signers, SigningKey, Verdict};

use super::error::{LedgerError, WriteError};
use super::session::Session;
use super::snapshot::Rules;

/// Whose key must sign a commit.
#[derive(Clone, Debug)]
pub(super) enum By {
    /// The key of this agent.
    Agent(AgentName),
    /// Any listed key: no agent decided on the step.
    Anybody,
    /// The key of the person who records it, listed by email address.
    Committer,
    /// Any key of the default protocol: the step opens an issue under a protocol without keys.
    Opener,
}

impl By {
    /// The required signer of a step. An expiry may have any listed key: whoever writes next
    /// records it in the receiver's name.
    pub(super) fn of(step: &Step) -> Self {
        match step.request.update().and_then(Update::event) {
            Some(Event::Expire) => Self::Anybody,
            _ => Self::Agent(step.by.clone()),
        }
    }
}

/// The signature that a commit must have.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    signers: Rc<Signers>,
    by: By,
}

impl Demand {
    /// A signature with one of these keys.
    pub(super) fn new(signers: Rc<Signers>, by: By) -> Self {
        Self { signers, by }
    }

    /// The demand of a protocol's rules, if they require a signature.
    pub(super) fn of(rules: &Rules<'_>, by: By) -> Result<Option<Self>, LedgerError> {
        let signers = rules.signers()?;
        Ok(signers.map(|signers| Self::new(signers, by)))
    }
}

/// The minimum time for signing, however long other writers took.
const LEAST: Duration = Duration::from_secs(2);

/// Writes a commit with the required signature; refuses if the audit would. No ref points to it
/// yet.
///
/// # Errors
/// [`WriteError::Signing`] if it can't be signed, [`WriteError::Signature`] if the key may not sign
/// it.
pub(super) fn signed<'r>(
    repository: &'r Repository,
    proposal: &Proposal<'_>,
    session: &Session,
    demand: Option<&Demand>,
    start: Instant,
) -> Result<Prepared<'r>, LedgerError> {
    let deadline = (start + session.patience).max(Instant::now() + LEAST);
    let made = repository.prepare_signed(proposal, deadline);
    let (prepared, stored) = made.map_err(|error| match (error, demand) {
        // A user who did not configure signatures may not know how to.
        (SignError::Failed { message }, Some(demand)) if !session.sign => {
            let wanted = demand.wanted(&proposal.committer.email);
            let text = format!("{wanted}, and could not be signed: {message}");
            WriteError::Signature(vec![
                Finding::error(FindingCode::SignatureMissing, "", text).fix(SET_UP),
            ])
        }
        (error, _) => WriteError::Signing(error),
    })?;
    match judge(repository, &stored, demand) {
        None => Ok(prepared),
        Some(finding) => Err(WriteError::Signature(vec![finding]).into()),
    }
}

/// How to set up a key.
const SET_UP: &str = "tell git which key to sign with: `git config gpg.format ssh` and `git config user.signingKey PUBLIC-KEY-FILE`";

/// The fault of a commit's signature, or that it is missing.
pub(super) fn judge(
    repository: &Repository,
    stored: &Stored,
    demand: Option<&Demand>,
) -> Option<Finding> {
    let error = |code: FindingCode, text: String| Some(Finding::error(code, "", text));
    let bad = |text: String| {
        let fix = "the commit is not what its signer signed: find out who made it";
        Some(Finding::error(FindingCode::SignatureBad, "", text).fix(fix))
    };
    let signature = match stored.signature() {
        Ok(signature) => signature,
        Err(fault) => return bad(fault.to_string()),
    };
    let Some(signature) = signature else {
        let demand = demand?;
        let text = format!(
            "{}, and is not signed",
            demand.wanted(&stored.commit.committer.email)
        );
        return Some(Finding::error(FindingCode::SignatureMissing, "", text).fix(SET_UP));
    };
    // Without a list of keys, only checks without other programs are made.
    if demand.is_none() && !signature.is_ssh() {
        return None;
    }
    let key = match (signature.key(repository), demand) {
        (Ok(key), _) => key,
        (Err(SignatureError::Bad(text)), _) => return bad(text),
        (Err(_), None) => return None,
        (Err(fault @ SignatureError::Unsupported(_)), Some(_)) => {
            return error(FindingCode::SignatureUnknown, fault.to_string());
        }
        (Err(fault @ SignatureError::NoKey(_)), Some(_)) => {
            let fix = "import the signer's public key: `gpg --import FILE`";
            return Some(
                Finding::error(FindingCode::SignatureUnverified, "", fault.to_string()).fix(fix),
            );
        }
        (Err(fault @ SignatureError::Revoked(_)), Some(_)) => {
            return error(FindingCode::SignatureNotValid, fault.to_string());
        }
        (Err(fault @ SignatureError::NotRun(_)), Some(_)) => {
            let text = format!("the signature could not be verified: {fault}");
            let fix =
                "install gpg, or set gpg.program to it; for an ssh signature, OpenSSH 8.1 or later";
            return Some(Finding::error(FindingCode::SignatureUnverified, "", text).fix(fix));
        }
    };
    let demand = demand?;
    demand.judge(&key, stored)
}

impl Demand {
    /// The required signer, in words. `email` is the address of the person who records it.
    fn wanted(&self, email: &str) -> String {
        match &self.by {
            By::Agent(agent) => format!("the step is {agent}'s"),
            By::Anybody => "the step is to be signed by anybody who is listed".to_owned(),
            By::Committer => format!("the change is {email}'s"),
            By::Opener => "an issue under a protocol without keys is opened with one that the ledger's default protocol lists".to_owned(),
        }
    }

    /// The finding against the key that made a commit's signature.
    fn judge(&self, key: &Key, stored: &Stored) -> Option<Finding> {
        let committer = &stored.commit.committer;
        let (at, wanted) = (to_second(committer.at), self.wanted(&committer.email));
        let print = key.fingerprint();
        let is = |listed: &SigningKey| match (listed, key) {
            (SigningKey::Ssh(listed), Key::Ssh(key)) => listed == key,
            (SigningKey::OpenPgp(listed), Key::OpenPgp { fingerprints, .. }) => {
                fingerprints.contains(listed)
            }
            _ => false,
        };
        let counts = |line: &Signer| match &self.by {
            By::Agent(agent) => line.is_agents(agent.as_str()),
            By::Anybody | By::Opener => true,
            By::Committer => line.is_persons(&committer.email),
        };
        let (code, text, fix) = match self.signers.verdict(is, counts, at) {
            Verdict::Allowed => match key {
                Key::OpenPgp {
                    expired: Some(end), ..
                } if *at > *end => (
                    FindingCode::SignatureNotValid,
                    format!(
                        "{wanted}, and its key {print} expired at {}",
                        Moment::from(*end)
                    ),
                    "sign with a key that has not expired",
                ),
                _ => return None,
            },
            Verdict::Unknown => (
                FindingCode::SignatureUnknown,
                format!("{wanted}, and is signed with {print}, which is nobody's key"),
                LIST,
            ),
            Verdict::OtherAgent(line) => (
                FindingCode::SignatureOtherAgent,
                format!(
                    "{wanted}, and is signed with {print}, a key of {}",
                    line.principals
                ),
                LIST,
            ),
            Verdict::NotValid(line) => (
                FindingCode::SignatureNotValid,
                format!(
                    "{wanted}, and is dated {at}; its key {print} is {}",
                    validity(line)
                ),
                LIST,
            ),
        };
        Some(Finding::error(code, "", text).fix(fix))
    }
}

/// The fix if a key must not sign.
const LIST: &str = "sign with a key that is listed: `git handoff protocol show` tells who has which; a new key is listed in allowed_signers, by `git handoff protocol update`";

/// The validity of a key, in words.
fn validity(line: &Signer) -> String {
    match (line.valid_after, line.valid_before) {
        (Some(from), Some(until)) => format!("valid from {from} to {until}"),
        (Some(from), None) => format!("valid from {from}"),
        (None, Some(until)) => format!("valid until {until}"),
        (None, None) => "always valid".to_owned(),
    }
}
