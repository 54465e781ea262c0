//! What is said of an issue outside the ledger: by reviews on GitHub, by checks.

use handoff_model::{Issue, Witness};
use handoff_protocol::Protocol;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Somebody's opinion that counts, such as a review on GitHub.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Said {
    /// What it is one of: the protocol's title, such as `Reviews on GitHub`.
    pub title: String,
    /// Whose it is.
    pub by: String,
    /// It in a word: `changes_requested`, `failure`.
    pub value: String,
    /// Whether it asks for something.
    pub asks: bool,
    /// The facts that came with it: commit, address, text.
    pub facts: Map<String, Value>,
    /// The source of the statement.
    pub source: Witness,
}

impl Said {
    /// Every opinion in an issue that counts.
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

    /// It in one line.
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
