//! Opinions about an issue from outside the ledger: GitHub reviews and checks.

use handoff_model::{Issue, Witness};
use handoff_protocol::Protocol;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// A current opinion, such as a review on GitHub.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Said {
    /// The protocol's title of its kind, such as `Reviews on GitHub`.
    pub title: String,
    /// Its author.
    pub by: String,
    /// Its value: `changes_requested`, `failure`.
    pub value: String,
    /// Whether it requests something.
    pub asks: bool,
    /// The facts that came with it: commit, URL, text.
    pub facts: Map<String, Value>,
    /// The source of the statement.
    pub source: Witness,
}

impl Said {
    /// Every current opinion about an issue.
    pub fn of(issue: &Issue, protocol: &Protocol) -> Vec<Self> {
        let rules = protocol.definition().facts.opinions.iter();
        let all = rules.flat_map(|rules| issue.opinions(rules));
        all.map(|one| {
            let more = one.rules.commit.iter().chain(&one.rules.with);
            let facts = more.filter_map(|name| {
                let value = one.note.facts.get(name)?;
                Some((name.clone(), value.clone()))
            });
            Self {
                title: one.rules.title.clone(),
                by: one.by.to_owned(),
                value: one.value.to_owned(),
                asks: one.asks(),
                facts: facts.collect(),
                source: one.note.source(protocol.definition()),
            }
        })
        .collect()
    }

    /// The opinion in one line.
    pub fn line(&self) -> String {
        let facts = self.facts.values().filter_map(Value::as_str);
        let facts: Vec<&str> = facts.collect();
        let more = if facts.is_empty() { "" } else { ": " };
        let said = self
            .source
            .beside(&format!("{} by {}", self.value, self.by));
        format!("{said}{more}{}", facts.join(", "))
    }
}
