//! The combined content of an issue's contracts, in one document.

use handoff_contract::{Format, Source};
use handoff_model::{Record, Schemas, View};
use serde_json::{Map, Value, json};

use super::error::LedgerError;
use super::snapshot::{IssueFolder, Rules};

/// Builds the context of an issue: its known facts, the newest value of every field of its
/// contracts, and each handoff with its contract's value.
///
/// # Errors
/// [`LedgerError`] if a record or a contract can't be read.
pub fn context(folder: &IssueFolder<'_>, rules: &Rules<'_>) -> Result<Option<Value>, LedgerError> {
    let Some(issue) = folder.issue()? else {
        return Ok(None);
    };
    let mut latest = Map::new();
    let mut handoffs = Vec::new();
    for record in folder.records()? {
        let value = contract_value(rules, &record, &folder.contract(&record)?)?;
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
        handoffs.push(json!({ "record": record, "contract": value }));
    }
    Ok(Some(
        json!({ "issue": issue, "latest": latest, "handoffs": handoffs }),
    ))
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
