//! Writes contracts in agents' formats.

use handoff_base::ids::AgentName;
use handoff_contract::{FILL, write_json, write_markdown, write_message, write_xml};
use handoff_ledger::{DamageError, LedgerError, Rules};
use handoff_model::{Filled, Schemas};
use handoff_protocol::{ContractType, Outcome, Protocol};
use serde_json::Value;

use super::known::set_at;
use super::skeleton::{Known, Part, fill};

/// The formats that a skeleton can have.
const FORMATS: [&str; 3] = ["xml", "json", "md"];

/// The default format of a contract type: its first one, or the protocol's.
pub fn usual_format(protocol: &Protocol, kind: Option<&ContractType>) -> &'static str {
    let own = kind.and_then(|kind| kind.formats.first());
    let first = own.or_else(|| protocol.definition().formats.first());
    let known = FORMATS
        .into_iter()
        .find(|known| first.is_some_and(|f| f == known));
    known.unwrap_or("json")
}

/// A type's skeleton with the known values filled in.
///
/// # Errors
/// [`LedgerError`] when its template can't be read.
pub fn skeleton(
    rules: &Rules<'_>,
    kind: &ContractType,
    known: &Known,
) -> Result<Value, LedgerError> {
    let bytes = rules.bytes(&kind.template)?;
    let template = serde_json::from_slice(&bytes).map_err(|source| DamageError::Template {
        path: kind.template.clone(),
        source,
    })?;
    let schema = rules.bytes(&kind.schema)?;
    let schema = serde_json::from_slice(&schema).unwrap_or_default();
    let mut value = fill(&template, known, &schema);
    add_required(&mut value, &schema);
    // A review names the commit that its sender was shown, even if its template has no placeholder
    // for it.
    let reviewed = kind
        .reviews
        .as_ref()
        .and_then(|fields| fields.commit.as_deref());
    if let Some((at, commit)) = reviewed.zip(known.reviewed.as_deref())
        && value.pointer(at).is_none()
        && let Some(commit) = Part::at(&schema, at).taken(&commit.into())
    {
        set_at(&mut value, Some(at), commit);
    }
    Ok(value)
}

/// The list in which a contract of this type has to answer findings, if some are unanswered: they
/// fill it in where it is empty or missing.
pub fn with_answers<'k>(
    protocol: &Protocol,
    kind: &'k ContractType,
    known: &Known,
    contract: &mut Value,
) -> Option<&'k str> {
    let at = kind.fixes.as_ref()?.list.as_str();
    let answers = known.get(Filled::Fixes.as_str())?;
    let status = protocol.field(kind, |fields| &fields.status);
    let word = status.and_then(|at| contract.pointer(at)?.as_str());
    if protocol.outcome(kind, word) != Outcome::Complete {
        return None;
    }
    let own = contract.pointer(at);
    if own.is_none_or(|own| own.as_array().is_some_and(Vec::is_empty)) {
        set_at(contract, Some(at), answers.clone());
    }
    Some(at)
}

/// Adds a placeholder for each field that a schema requires and the skeleton lacks.
fn add_required(value: &mut Value, schema: &Value) {
    let (Some(fields), Some(required)) = (value.as_object_mut(), schema["required"].as_array())
    else {
        return;
    };
    for name in required.iter().filter_map(Value::as_str) {
        let known = &schema["properties"][name];
        let about = known["description"].as_str().unwrap_or(name);
        let mark = || format!("{FILL}: {about}}}}}").into();
        let own = known.get("const").cloned();
        fields
            .entry(name)
            .or_insert_with(|| own.unwrap_or_else(mark));
    }
}

/// Writes a contract as `xml`, `json` or `md`.
///
/// # Errors
/// [`LedgerError`] when its schema can't be read.
pub fn written(
    rules: &Rules<'_>,
    kind: &ContractType,
    value: &Value,
    format: &str,
    (from, to): (&AgentName, &AgentName),
) -> Result<String, LedgerError> {
    Ok(match format {
        "xml" => {
            let schema = rules.schema(kind)?;
            write_xml(value, schema.shape(), &kind.root)
        }
        // A type with no JSON form is a message: its fields are the sections.
        "md" if kind.has_format("md") && !kind.has_format("json") => {
            write_message(value, rules.schema(kind)?.shape())
        }
        "md" => {
            let [from, to] = [from, to].map(|agent| title(rules.protocol(), agent));
            write_markdown(value, &from, &to, &kind.title)
        }
        _ => write_json(value),
    })
}

/// An agent's display name in messages.
fn title(protocol: &Protocol, agent: &AgentName) -> String {
    let known = protocol.agent(agent.as_str());
    let alias = known.and_then(|known| known.aliases.first());
    alias.map_or_else(|| agent.to_string(), Clone::clone)
}
