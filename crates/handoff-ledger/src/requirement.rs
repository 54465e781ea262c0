//! Which of its protocol's requirements an issue of a ledger meets.

use handoff_base::ObjectId;
use handoff_git::Repository;
use handoff_model::Answered;

use super::error::LedgerError;
use super::snapshot::{IssueFolder, Rules};

/// Checks for each requirement whether an issue meets it, for the given commit if there is one.
///
/// # Errors
/// [`LedgerError`] if the protocol refuses the query or something can't be read.
pub fn required(
    repository: &Repository,
    folder: &IssueFolder<'_>,
    rules: &Rules<'_>,
    wanted: &[String],
    code: Option<ObjectId>,
) -> Result<Vec<Answered>, LedgerError> {
    let code = || match code {
        Some(id) => Ok(Some((
            id.to_string(),
            repository.commit(id)?.tree.to_string(),
        ))),
        None => Ok(None),
    };
    let answered = handoff_model::required(folder, folder.key(), rules.protocol(), wanted, code)?;
    Ok(answered)
}
