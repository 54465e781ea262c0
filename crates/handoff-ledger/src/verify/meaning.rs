//! Explains an audit's findings to people who know neither Git nor JSON.

use handoff_base::finding::FindingCode;

/// The explanation of a finding's code, in one sentence.
pub fn meaning(code: FindingCode) -> &'static str {
    match code {
        FindingCode::ArtifactChanged => {
            "A file that was delivered, and that nobody has taken up yet, is not what it was."
        }
        FindingCode::ArtifactMissing => {
            "A file that was delivered, and that nobody has taken up yet, is not here."
        }
        FindingCode::CommitAuthor => {
            "The step bears another name than that of the agent whose step it is."
        }
        FindingCode::CommitHeader => {
            "The step carries technical data that this program never writes."
        }
        FindingCode::CommitMessage => {
            "The description of the step does not tell what the step did."
        }
        FindingCode::CommitTree => {
            "The step's files lie in folders that are not stored as this program stores them."
        }
        FindingCode::ContractAltered => "A contract is not what its sender handed over.",
        FindingCode::EvidenceForged => {
            "The step says that a statement was checked and is true, and it is not."
        }
        FindingCode::FailureAltered => {
            "What was kept of a failure was changed, added to, or removed."
        }
        FindingCode::FileAltered => "A file of the ledger was changed that no step changes.",
        FindingCode::FileMissing => "Something that must be there is missing.",
        FindingCode::FileStray => "A file lies in the ledger that no step put there.",
        FindingCode::FileUnreadable => "A file of the ledger can't be understood.",
        FindingCode::HistoryBroken => "Part of the history is missing.",
        FindingCode::HistoryMerge => {
            "Two lines of history were joined, so that the order of the steps is not certain."
        }
        FindingCode::HistoryRewritten => {
            "Steps that were here before are gone, or history was written anew."
        }
        FindingCode::IssueAltered => "What is known of an issue does not follow from its steps.",
        FindingCode::ObjectUnreadable => "Something was lost or damaged on the disk.",
        FindingCode::OpenMissing => "An open handoff is missing from the list of open ones.",
        FindingCode::OpenStale => {
            "The list of open handoffs says something else than the handoffs themselves."
        }
        FindingCode::RecordAltered => "The record of a handoff does not follow from its steps.",
        FindingCode::SignatureBad => {
            "The signature does not belong to this step: it was forged, or the step was changed after it was signed."
        }
        FindingCode::SignatureMissing => {
            "Nobody signed the step, and the rules in force want a signature."
        }
        FindingCode::SignatureNotValid => {
            "The step was signed with a key that was not valid at that time."
        }
        FindingCode::SignatureOtherAgent => {
            "The step was signed with the key of somebody else than the agent whose step it is."
        }
        FindingCode::SignatureUnknown => {
            "The step was signed with a key that nobody is known to have."
        }
        FindingCode::SignatureUnverified => "The signature could not be verified on this machine.",
        FindingCode::StepBackdated => "The step pretends to be older than what it follows.",
        FindingCode::StepIllegal => "The rules in force did not allow this step.",
        FindingCode::StepMany => "One commit changes several issues, which no step does.",
        FindingCode::StepNone => "The commit is not a step of any agent.",
        FindingCode::StepPostdated => "The step pretends to be made in the future.",
        FindingCode::StepRepeated => "The step repeats one that had been made already.",
        _ => "A contract is not as its protocol of the time wanted it.",
    }
}
