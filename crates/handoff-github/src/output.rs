//! Values for later steps of a workflow, in the format of `GITHUB_OUTPUT`.
//!
//! Each value is a word, a number or a list of names, never foreign text: a workflow that pastes
//! one into a script runs nothing of it.

use base64ct::{Base64, Encoding as _};
use serde_json::Value;

use super::event::pull_request_in;
use super::reply::Reply;
use super::status::{self, Ledger};

/// Names and values, in the order of the file.
pub type Values = Vec<(&'static str, String)>;

/// Returns the values of an issue.
pub fn of_issue(standing: &status::Issue) -> Values {
    let (issue, survey) = (&standing.issue, standing.survey());
    let last = survey.handoffs.last();
    let next = standing.next.as_ref();
    let unmet = standing.gate.requirements.iter().filter(|one| !one.met);
    vec![
        ("exists", "true".to_owned()),
        ("issue", issue.issue.to_string()),
        ("protocol", issue.protocol.to_string()),
        (
            "pull_request",
            pull_request_in(issue)
                .map(|number| number.to_string())
                .unwrap_or_default(),
        ),
        ("state", issue.status.as_str().to_owned()),
        ("holder", listed(standing.holders())),
        ("open", issue.open.len().to_string()),
        ("open_ids", listed(issue.open.iter().map(|open| &open.id))),
        ("attention", standing.stuck.len().to_string()),
        (
            "next_action",
            next.map(|next| next.action.as_str().to_owned())
                .unwrap_or_default(),
        ),
        (
            "next_agent",
            next.map(|next| next.agent.to_string()).unwrap_or_default(),
        ),
        (
            "next_id",
            next.and_then(|next| Some(next.id.as_ref()?.to_string()))
                .unwrap_or_default(),
        ),
        ("branch", branch(standing)),
        ("branch_for_agents", standing.agents_write.to_string()),
        ("gate", standing.gate.passes().to_string()),
        (
            "gate_head",
            standing
                .gate
                .head
                .map(|id| id.to_string())
                .unwrap_or_default(),
        ),
        ("unmet", listed(unmet.map(|one| &one.requirement))),
        (
            "last_id",
            last.map(|last| survey.id(last).to_string())
                .unwrap_or_default(),
        ),
        (
            "last_state",
            last.map(|last| last.state.to_string()).unwrap_or_default(),
        ),
        (
            "last_from",
            last.map(|last| last.from.to_string()).unwrap_or_default(),
        ),
        (
            "last_to",
            last.map(|last| last.to.to_string()).unwrap_or_default(),
        ),
        ("commit", standing.commit.to_string()),
    ]
}

/// An issue's code branch, if its name has no special character of a shell: contracts and notes
/// contain arbitrary text.
fn branch(standing: &status::Issue) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._/-".contains(&b);
    let name = standing.known.get("branch").and_then(Value::as_str);
    let name = name.filter(|name| !name.starts_with('-') && name.bytes().all(is_plain));
    name.unwrap_or_default().to_owned()
}

/// Returns the values of an issue that is not in the ledger.
pub fn of_none() -> Values {
    vec![("exists", "false".to_owned())]
}

/// Returns the values of the reply to commands: whether there is one, and its body, encoded as a
/// single word.
pub fn of_reply(reply: Option<&Reply>) -> Values {
    let Some(reply) = reply else {
        return vec![("reaction", String::new())];
    };
    vec![
        ("reaction", reply.reaction.to_owned()),
        ("refused", reply.refused.to_string()),
        ("reply", Base64::encode_string(reply.body.as_bytes())),
    ]
}

/// Returns the values of a whole ledger.
pub fn of_ledger(standing: &Ledger) -> Values {
    let mut values = vec![
        ("protocol", standing.protocol.clone()),
        ("open", standing.open.len().to_string()),
    ];
    for (state, count) in &standing.counts {
        values.push((state.as_str(), count.to_string()));
    }
    values.push(("attention", standing.stuck.len().to_string()));
    values.push(("firing", standing.firing.len().to_string()));
    values.push(("commit", standing.commit.to_string()));
    values
}

fn listed<T: ToString>(all: impl Iterator<Item = T>) -> String {
    let texts: Vec<String> = all.map(|one| one.to_string()).collect();
    texts.join(",")
}

/// Renders the file: each value is between two lines with a delimiter that it does not contain.
/// `word` returns another delimiter on each call.
pub fn written(values: &Values, mut word: impl FnMut() -> String) -> String {
    let mut text = String::new();
    for (name, value) in values {
        let mut end = word();
        while value.contains(&end) {
            end = word();
        }
        text += &format!("{name}<<{end}\n{value}\n{end}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn a_value_never_holds_the_word_that_ends_it() {
        let mut words = ["one", "two", "three"].into_iter().map(str::to_owned);
        let values = vec![("a", "x\none\nb=1\ntwo".to_owned())];
        assert_eq!(
            written(&values, || words.next().unwrap_or_default()),
            "a<<three\nx\none\nb=1\ntwo\nthree\n"
        );
    }
}
