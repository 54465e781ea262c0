//! Explains an audit's findings to people who know neither Git nor JSON.

/// Each code with a one-sentence explanation.
const MEANINGS: [(&str, &str); 32] = [
    (
        "artifact.changed",
        "A file that was delivered, and that nobody has taken up yet, is not what it was.",
    ),
    (
        "artifact.missing",
        "A file that was delivered, and that nobody has taken up yet, is not here.",
    ),
    (
        "commit.author",
        "The step bears another name than that of the agent whose step it is.",
    ),
    (
        "commit.header",
        "The step carries technical data that this program never writes.",
    ),
    (
        "commit.message",
        "The description of the step does not tell what the step did.",
    ),
    (
        "contract.altered",
        "A contract is not what its sender handed over.",
    ),
    (
        "evidence.forged",
        "The step says that a claim was checked and holds, and it does not.",
    ),
    (
        "failure.altered",
        "What was kept of a failure was changed, added to, or removed.",
    ),
    (
        "file.altered",
        "A file of the ledger was changed that no step changes.",
    ),
    ("file.missing", "Something that must be there is missing."),
    (
        "file.stray",
        "A file lies in the ledger that no step put there.",
    ),
    (
        "file.unreadable",
        "A file of the ledger can't be understood.",
    ),
    ("history.broken", "Part of the history is missing."),
    (
        "history.merge",
        "Two lines of history were joined, so that the order of the steps is not certain.",
    ),
    (
        "history.rewritten",
        "Steps that were here before are gone, or history was written anew.",
    ),
    (
        "issue.altered",
        "What is known of an issue does not follow from its steps.",
    ),
    (
        "object.unreadable",
        "Something was lost or damaged on the disk.",
    ),
    (
        "open.missing",
        "An open handoff is missing from the list of open ones.",
    ),
    (
        "open.stale",
        "The list of open handoffs says something else than the handoffs themselves.",
    ),
    (
        "record.altered",
        "The record of a handoff does not follow from its steps.",
    ),
    (
        "signature.bad",
        "The signature does not belong to this step: it was forged, or the step was changed after it was signed.",
    ),
    (
        "signature.missing",
        "Nobody signed the step, and the rules in force want a signature.",
    ),
    (
        "signature.not_valid",
        "The step was signed with a key that was not valid at that time.",
    ),
    (
        "signature.other_agent",
        "The step was signed with the key of somebody else than the agent whose step it is.",
    ),
    (
        "signature.unknown",
        "The step was signed with a key that nobody is known to have.",
    ),
    (
        "signature.unverified",
        "The signature could not be verified on this machine.",
    ),
    (
        "step.backdated",
        "The step pretends to be older than what it follows.",
    ),
    (
        "step.illegal",
        "The rules in force did not allow this step.",
    ),
    (
        "step.many",
        "One commit changes several issues, which no step does.",
    ),
    ("step.none", "The commit is not a step of any agent."),
    (
        "step.postdated",
        "The step pretends to be made in the future.",
    ),
    (
        "step.repeated",
        "The step repeats one that had been made already.",
    ),
];

/// The explanation of a finding's code, in one sentence.
pub fn meaning(code: &str) -> &'static str {
    let known = MEANINGS.iter().find(|(known, _)| *known == code);
    known.map_or(
        "A contract is not as its protocol of the time wanted it.",
        |(_, meaning)| meaning,
    )
}
