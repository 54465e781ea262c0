//! The facts about an issue, and the combined content of its contracts, in one document.

use handoff_base::Moment;
use handoff_contract::{Format, Source};
use handoff_model::{Detail, Handoff, Issue, IssueSummary, Record, Schemas, Told, View};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::attention::{Attention, NextTurn, turn_in};
use super::error::LedgerError;
use super::external_reviews::Said;
use super::snapshot::{IssueFolder, Rules};

/// The facts about an issue.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IssueReport {
    /// The issue.
    pub issue: IssueSummary,
    /// What else is stored of it.
    pub record: Detail<Issue>,
    /// What is known of it now, by name: noted by events and agents, else stated by contracts.
    pub known: Map<String, Value>,
    /// The sources of the facts; those without an entry come from contracts.
    pub sources: Vec<Told>,
    /// The contracts' statements that differ from the known facts.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub stated: Map<String, Value>,
    /// The opinions of reviews and checks outside the ledger.
    pub said: Vec<Said>,
    /// What needs somebody in it, and whom, the most urgent first.
    pub attention: Vec<Attention>,
    /// Whose turn it is.
    #[serde(skip)]
    pub turn: Option<NextTurn>,
}

impl IssueReport {
    /// The facts about an issue at a moment.
    ///
    /// # Errors
    /// [`LedgerError`] if something can't be read.
    pub fn new(
        issue: Issue,
        folder: &IssueFolder<'_>,
        rules: &Rules<'_>,
        now: Moment,
    ) -> Result<Self, LedgerError> {
        let (attention, turn) = turn_in(folder, rules.protocol(), now)?;
        let definition = rules.protocol().definition();
        let known = issue.known(definition);
        let sources = Told::of(issue.known_facts(definition), definition);
        let mut stated = issue.facts.clone();
        stated.retain(|name, value| known.get(name) != Some(value));
        Ok(Self {
            issue: IssueSummary::from(&issue),
            said: Said::of(&issue, rules.protocol()),
            record: Detail(issue),
            known,
            sources,
            stated,
            attention,
            turn,
        })
    }
}

/// The accumulated content of an issue's contracts.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Context")]
pub struct IssueContext {
    /// The facts about the issue.
    #[serde(flatten)]
    pub report: IssueReport,
    /// The newest value of every field of its contracts, without `from`, `to`, `status` and
    /// `summary`.
    pub latest: Map<String, Value>,
    /// Each handoff, by number.
    pub handoffs: Vec<HandoffContext>,
}

/// A handoff with its contract.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HandoffContext {
    /// What every answer has of it.
    #[serde(flatten)]
    pub handoff: Handoff,
    /// What else is stored of it.
    pub record: Detail<Record>,
    /// The contract as a value, whatever its format; null if it can't be parsed.
    pub contract: Value,
    /// The contract as it was sent; bytes that are not UTF-8 are replaced.
    #[serde(skip)]
    pub text: String,
}

/// Reads the context of an issue.
///
/// # Errors
/// [`LedgerError`] if a record or a contract can't be read.
pub fn context(
    folder: &IssueFolder<'_>,
    rules: &Rules<'_>,
    now: Moment,
) -> Result<Option<IssueContext>, LedgerError> {
    let Some(issue) = folder.current_issue()? else {
        return Ok(None);
    };
    let mut latest = Map::new();
    let mut handoffs = Vec::new();
    for record in folder.records()? {
        let bytes = folder.contract(&record)?;
        let value = contract_value(rules, &record, &bytes)?;
        let value = value.unwrap_or_default();
        let envelope = ["from", "to", "status", "summary"];
        if let Value::Object(fields) = &value {
            for (name, field) in fields
                .iter()
                .filter(|(n, _)| !envelope.contains(&n.as_str()))
            {
                latest.insert(name.clone(), field.clone());
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        handoffs.push(HandoffContext {
            handoff: Handoff::new(&record, now),
            record: Detail(record),
            contract: value,
            text,
        });
    }
    Ok(Some(IssueContext {
        report: IssueReport::new(issue, folder, rules, now)?,
        latest,
        handoffs,
    }))
}

/// The value of a recorded contract; `None` if the protocol no longer has its type or it can't be
/// parsed.
///
/// # Errors
/// [`LedgerError`] if the type's schema can't be read.
pub fn contract_value(
    rules: &Rules<'_>,
    record: &Record,
    bytes: &[u8],
) -> Result<Option<Value>, LedgerError> {
    let Some(kind) = rules.protocol().contract_type(&record.contract_type) else {
        return Ok(None);
    };
    let Ok(source) = Source::parse(bytes) else {
        return Ok(None);
    };
    let root = source.root(&rules.protocol().roots());
    let wrapper = root.as_deref().filter(|_| source.format() == Format::Json);
    Ok(Some(rules.schema(kind)?.value(&source, wrapper)))
}
