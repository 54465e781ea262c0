//! The commit message of a step: a subject with the event, the issue's title, the text that did not
//! fit in the subject, and trailers.
//!
//! `git interpret-trailers --parse` reads the trailers. User text is always one line in a paragraph
//! or trailer of its own, so that it can't add a trailer, end the message or move a terminal's
//! cursor.

use handoff_base::text::{message_line, summary_line};
use handoff_protocol::Event;

use crate::record::{Issue, Record};
use crate::step::StepEvent;
use crate::step::trailers::Trailer;
use crate::trailers::folded;

/// The maximum length of a subject, in characters. Columns would depend on the version of Unicode,
/// but an audit must derive the same subject.
const SUBJECT: usize = 100;

/// The maximum length of text in the body, in characters.
const TEXT: usize = 2000;

/// What a step did and why, for its subject and trailers.
pub(crate) struct Account {
    pub(crate) event: StepEvent,
    /// The handoff's id, or the issue's key.
    pub(crate) about: String,
    /// The event in words: `claimed, until 14:32`.
    pub(crate) done: String,
    /// The reason, or what was said.
    pub(crate) reason: Option<String>,
    /// The text for a subject without a reason.
    pub(crate) summary: Option<String>,
    pub(crate) failure_code: Option<String>,
    pub(crate) attempt: Option<u32>,
    /// How long the handoff was claimable before this claim, in seconds.
    pub(crate) waited: Option<u64>,
    /// How long the lease was held, in seconds.
    pub(crate) held: Option<u64>,
    /// The counts of a review: `critical=1, important=2`.
    pub(crate) findings: Option<String>,
}

impl Account {
    pub(crate) fn new(event: StepEvent, about: String, done: String) -> Self {
        Self {
            event,
            about,
            done,
            reason: None,
            summary: None,
            failure_code: None,
            attempt: None,
            waited: None,
            held: None,
            findings: None,
        }
    }

    /// The subject, and its full text if the subject truncates it and no trailer has it.
    fn subject(&self) -> (String, Option<String>) {
        let text = self.reason.as_ref().or(self.summary.as_ref());
        let text = message_line(text.map_or("", String::as_str), TEXT);
        let named = self.failure_code.as_ref();
        let code = named.filter(|_| self.event == StepEvent::Lifecycle(Event::Fail));
        let code = message_line(code.map_or("", String::as_str), SUBJECT);
        let parts = [&code, &text].into_iter().filter(|part| !part.is_empty());
        let said: Vec<&str> = parts.map(String::as_str).collect();
        let mut subject = format!("{} {}", self.about, self.done);
        if !said.is_empty() {
            subject += &format!(": {}", said.join(": "));
        }
        let shown = message_line(&subject, SUBJECT);
        let cut = shown != subject && !text.is_empty() && self.reason.is_none();
        (shown, cut.then_some(text))
    }

    /// The trailers for what the step results in, in order; among them the reason, unless the
    /// request gives it.
    fn trailers(&self, is_told: bool) -> Vec<Trailer> {
        let line = |text: &Option<String>| text.as_deref().map(summary_line);
        let number = |number: Option<u64>| number.map(|n| n.to_string());
        let code = self.failure_code.as_deref();
        let all = [
            ("Reason", line(&self.reason).filter(|_| !is_told)),
            ("Failure-Code", code.map(|code| folded(code).into_owned())),
            ("Attempt", number(self.attempt.map(u64::from))),
            ("Waited-Seconds", number(self.waited)),
            ("Held-Seconds", number(self.held)),
            ("Findings", line(&self.findings)),
        ];
        let given = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        given.filter(|(_, value)| !value.is_empty()).collect()
    }
}

/// The message of a step.
pub(crate) struct Message<'a> {
    pub(crate) account: &'a Account,
    /// The record of the handoff that the step is about.
    pub(crate) record: &'a Record,
    pub(crate) issue: &'a Issue,
    pub(crate) transitions: &'a [String],
    /// The trailers of the request.
    pub(crate) asked: Vec<Trailer>,
    /// Whether the request gives the reason.
    pub(crate) is_told: bool,
    pub(crate) pull_request: Option<String>,
}

impl Message<'_> {
    pub(crate) fn render(&self) -> String {
        use std::fmt::{self, Write};
        /// The usual length of a message.
        const LENGTH: usize = 512;
        let Self {
            account, record, ..
        } = self;
        let (subject, rest) = account.subject();
        let mut text = String::with_capacity(LENGTH);
        let title = summary_line(&self.issue.title);
        for paragraph in [Some(subject), Some(title), rest].into_iter().flatten() {
            if !paragraph.is_empty() {
                text += &paragraph;
                text += "\n\n";
            }
        }
        let mut trailer = |name: &str, value: &dyn fmt::Display| {
            writeln!(text, "{name}: {value}").expect("a string takes all text");
        };
        trailer("Handoff-Id", &record.id);
        trailer("Issue", record.id.issue());
        trailer("From", &record.from);
        trailer("To", &record.to);
        for transition in self.transitions {
            trailer("Transition", transition);
        }
        trailer("Contract-Type", &record.contract_type);
        trailer("Contract-Sha256", &record.contract.sha256);
        trailer("Protocol", &record.protocol);
        trailer("Event", &account.event.as_str());
        for (name, value) in &self.asked {
            trailer(name, value);
        }
        for (name, value) in account.trailers(self.is_told) {
            trailer(name, &value);
        }
        if let Some(pull_request) = self.pull_request.as_deref().map(summary_line) {
            trailer("Pull-Request", &pull_request);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Account;
    use crate::step::StepEvent;
    use handoff_protocol::Event;

    #[test]
    fn a_subject_is_one_bounded_line_and_its_rest_is_in_the_body() {
        let account = |reason: &str| Account {
            reason: Some(reason.to_owned()),
            failure_code: Some("BuildError".to_owned()),
            ..Account::new(
                StepEvent::Lifecycle(Event::Fail),
                "7.2".to_owned(),
                "failed".to_owned(),
            )
        };
        let (subject, rest) = account("linker\n\u{1b}not  found").subject();
        assert_eq!(subject, "7.2 failed: BuildError: linker not found");
        assert_eq!(rest, None);
        let long = "é".repeat(300);
        let summed_up = Account {
            reason: None,
            summary: Some(long.clone()),
            ..account("")
        };
        for (account, rest) in [(account(&long), None), (summed_up, Some(long))] {
            let (subject, cut) = account.subject();
            assert_eq!(subject.chars().count(), 100);
            assert!(subject.ends_with("é…"), "{subject}");
            assert_eq!(cut, rest, "a trailer has the whole reason");
        }
        let named = account("a\n\nIssue: 9").trailers(false);
        assert_eq!(named[0], ("Reason", "a Issue: 9".to_owned()));
    }
}
