//! Which of its protocol's requirements an issue of a ledger meets.

use std::cell::OnceCell;
use std::collections::HashMap;

use handoff_base::ObjectId;
use handoff_base::ids::IssueKey;
use handoff_git::Stored;
use handoff_model::message::trailers;
use handoff_model::{Answered, Record};
use handoff_protocol::Identity;

use super::error::LedgerError;
use super::snapshot::{IssueFolder, Rules, Snapshot};

/// Checks for each requirement whether an issue meets it, for the given commit if there is one.
///
/// # Errors
/// [`LedgerError`] if the protocol refuses the query or something can't be read.
pub fn required(
    tip: &Snapshot<'_>,
    folder: &IssueFolder<'_>,
    rules: &Rules<'_>,
    wanted: &[String],
    code: Option<ObjectId>,
) -> Result<Vec<Answered>, LedgerError> {
    let repository = tip.repository();
    let code = || match code {
        Some(id) => Ok(Some((
            id.to_string(),
            repository.commit(id)?.tree.to_string(),
        ))),
        None => Ok(None),
    };
    let sent = OnceCell::new();
    let sender = |record: &Record, by: Identity| {
        if by == Identity::Worker {
            let sent = record.transitions.first();
            let worker = sent.and_then(|sent| sent.worker.as_ref());
            return Ok(worker.map(ToString::to_string));
        }
        if sent.get().is_none() {
            let found = sending_commits(tip, folder.key())?;
            sent.get_or_init(|| found);
        }
        let commit = sent.get().and_then(|sent| sent.get(&record.id.to_string()));
        Ok(commit.and_then(|stored| match by {
            Identity::Key => {
                let signature = stored.signature().ok()??;
                let key = signature.key(repository).ok()?;
                Some(key.fingerprint())
            }
            _ => Some(stored.commit.committer.email.to_lowercase()),
        }))
    };
    let (key, protocol) = (folder.key(), rules.protocol());
    let answered = handoff_model::required(folder, key, protocol, wanted, code, sender)?;
    Ok(answered)
}

/// The commits that sent the handoffs of an issue, by the handoffs' ids. They are read from the
/// newest to the one that opened the issue.
fn sending_commits(
    tip: &Snapshot<'_>,
    issue: &IssueKey,
) -> Result<HashMap<String, Stored>, LedgerError> {
    let mut sent = HashMap::new();
    let first = format!("{issue}.1");
    for stored in tip.repository().history(tip.commit()) {
        let stored = stored?;
        let trailers = trailers(&stored.commit.message);
        if !trailers.contains(&("Issue", issue.as_str())) {
            continue;
        }
        let new = trailers.iter().filter_map(|(name, value)| {
            let (id, change) = value.split_once(' ')?;
            (*name == "Transition" && change.starts_with("none..")).then(|| id.to_owned())
        });
        let new: Vec<String> = new.collect();
        let opens = new.contains(&first);
        sent.extend(new.into_iter().map(|id| (id, stored.clone())));
        if opens {
            break;
        }
    }
    Ok(sent)
}
