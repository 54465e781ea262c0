//! The messages of steps that archive issues, and of those that restore them.

use handoff_base::Moment;
use handoff_base::text::counted;

use crate::record::ArchivedIssue;
use crate::step::StepEvent;
use crate::trailers::trailers;

/// The trailer with the moment that archived issues were last changed before.
const BEFORE: &str = "Archived-Before";

/// The message of an archive step for this number of issues.
pub fn archive_message(count: usize, before: Moment) -> String {
    let (issues, before) = (counted(count, "issue"), before.rfc3339());
    let event = StepEvent::Archive.as_str();
    format!(
        "Archive {issues} that ended before {before}\n\nEvent: {event}\nArchived-Issues: {count}\n{BEFORE}: {before}\n"
    )
}

/// The moment in such a message.
pub fn archived_before(message: &str) -> Option<Moment> {
    let stated = trailers(message).into_iter();
    let (_, text) = stated.rev().find(|(name, _)| *name == BEFORE)?;
    let at: Moment = text.parse().ok()?;
    (at.rfc3339() == text).then_some(at)
}

/// The message of a step that unarchives an issue.
pub fn unarchive_message(issue: &ArchivedIssue) -> String {
    let (key, commit) = (&issue.issue, issue.commit);
    let event = StepEvent::Unarchive.as_str();
    format!(
        "Bring issue {key} back from the archive\n\nEvent: {event}\nIssue: {key}\nArchived-Commit: {commit}\n"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn messages_say_what_was_archived_in_trailers() {
        let before: Moment = "2026-08-01T00:00:00Z".parse().unwrap();
        let message = archive_message(120, before);
        assert_eq!(
            message,
            "Archive 120 issues that ended before 2026-08-01T00:00:00Z\n\n\
             Event: archive\nArchived-Issues: 120\nArchived-Before: 2026-08-01T00:00:00Z\n"
        );
        assert_eq!(archived_before(&message), Some(before));
        assert!(archive_message(1, before).starts_with("Archive 1 issue that"));
        for other in ["2026-08-01", "2026-08-01T02:00:00+02:00", "soon"] {
            let other = message.replace("2026-08-01T00:00:00Z", other);
            assert_eq!(archived_before(&other), None, "{other}");
        }
        let issue = from_value(json!({
            "version": 4, "issue": "7", "title": "Seven", "protocol": "p", "status": "completed",
            "opened_at": before, "updated_at": before, "handoffs": 7,
            "commit": "01".repeat(20), "tree": "02".repeat(20),
        }));
        assert_eq!(
            unarchive_message(&issue.unwrap()),
            "Bring issue 7 back from the archive\n\nEvent: unarchive\nIssue: 7\n\
             Archived-Commit: 0101010101010101010101010101010101010101\n"
        );
    }
}
