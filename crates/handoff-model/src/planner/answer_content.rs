//! Compares the values of an answer with the questions.

use std::rc::Rc;

use handoff_base::finding::Finding;
use handoff_base::pointer::escaped_part;
use handoff_protocol::{ContractType, Event, GivenFields, Protocol};
use serde_json::{Map, Value};

use crate::contract::Contract;
use crate::planner::{Planner, recorded};
use crate::record::{Question, Record, View};
use crate::refusal::RequestRefusal;
use crate::step::Stop;
use crate::step::answers::{Asked, misfits, missing, unanswered};
use crate::value::scalar;

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Refuses an answer that does not give what the handoff in its sender's hands asks for.
    pub(super) fn gives(
        &self,
        kind: &ContractType,
        contract: &Contract,
        held: &Record,
    ) -> Result<(), Stop<E>> {
        let findings = missing_answers(self.view, self.protocol, kind, contract, held)?;
        if findings.is_empty() {
            return Ok(());
        }
        let issue = self.key.clone();
        Err(RequestRefusal::Unfit { issue, findings }.into())
    }
}

/// What is wrong with an answer to this handoff: an unknown key, a value of another type, or a
/// missing value that its status requires. The questions are the handoff's own and those of the
/// handoff that it is about; answering either set completely is enough.
///
/// # Errors
/// [`Stop`]: a handoff has no record, or it can't be read.
pub(super) fn missing_answers<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    kind: &ContractType,
    contract: &Contract,
    held: &Record,
) -> Result<Vec<Finding>, Stop<E>> {
    let Some(fields) = &kind.given else {
        return Ok(Vec::new());
    };
    let meant = match kind.about {
        Some(_) => Some(meant(view, protocol, held)?),
        None => None,
    };
    let asked: Vec<Asked<'_>> = [Some(held), meant.as_ref()]
        .into_iter()
        .flatten()
        .filter(|record| !record.missing.is_empty())
        .map(|record| Asked {
            id: &record.id,
            questions: &record.missing,
        })
        .collect();
    let Some(first) = asked.first() else {
        return Ok(Vec::new());
    };
    let values = given(fields, &contract.value);
    let place = |key: &str| place(fields, &contract.value, key);
    let mut findings = misfits(&asked, &values, place);
    let status = contract.status.as_deref();
    let is_over = protocol.outcome(kind, status).event() == Event::Complete;
    let lacks = |asked: &Asked<'_>| unanswered(asked.questions, &values).next().is_some();
    if is_over && is_full(fields, status) && asked.iter().all(lacks) {
        findings.extend(missing(*first, &values, place));
    }
    Ok(findings)
}

/// The handoff that this one is ultimately about: follows chains of contracts that are themselves
/// about another contract.
pub(super) fn meant<E>(
    view: &impl View<E>,
    protocol: &Protocol,
    held: &Record,
) -> Result<Record, Stop<E>> {
    let speaks_of_another = |record: &Record| {
        let kind = protocol.contract_type(&record.contract_type);
        kind.is_some_and(|kind| kind.about.is_some())
    };
    let mut meant = held.clone();
    while let Some(id) = meant.follows.clone().filter(|_| speaks_of_another(&meant)) {
        meant = Rc::unwrap_or_clone(recorded(view, &id)?);
    }
    Ok(meant)
}

/// The inputs that an answer lists as unavailable.
pub(super) fn stated(kind: &ContractType, contract: &Contract) -> Vec<String> {
    let at = kind.critical_inputs.as_ref().map(|critical| &critical.at);
    let list = at.and_then(|at| contract.value.pointer(at)?.as_array());
    let keys = list.into_iter().flatten().filter_map(Value::as_str);
    keys.map(str::to_owned).collect()
}

/// The questions of a request that remain after an answer: those that it lists as unavailable, and
/// those that it leaves out.
pub(super) fn left_open(
    kind: &ContractType,
    contract: &Contract,
    request: &Record,
) -> Vec<Question> {
    let question = |key: &str| {
        let known = request.missing.iter().find(|q| q.key == key);
        known.cloned().unwrap_or_else(|| Question {
            key: key.to_owned(),
            kind: None,
            description: None,
            optional: false,
        })
    };
    let mut open: Vec<Question> = stated(kind, contract)
        .iter()
        .map(|key| question(key))
        .collect();
    if let Some(fields) = &kind.given {
        let values = given(fields, &contract.value);
        for question in unanswered(&request.missing, &values) {
            if open.iter().all(|known| known.key != question.key) {
                open.push(question.clone());
            }
        }
    }
    open
}

/// Whether an answer with this status must answer every question.
fn is_full(fields: &GivenFields, status: Option<&str>) -> bool {
    let complete = &fields.complete;
    complete.is_empty() || complete.iter().any(|word| Some(word.as_str()) == status)
}

/// The values that an answer gives, by the questions' keys.
fn given(fields: &GivenFields, value: &Value) -> Map<String, Value> {
    match value.pointer(&fields.at) {
        Some(Value::Object(members)) => members.clone(),
        Some(Value::Array(entries)) => {
            let pair = |entry: &Value| {
                let key = key_of(fields, entry)?;
                let value = entry.pointer(fields.value.as_deref()?)?;
                Some((key, value.clone()))
            };
            entries.iter().filter_map(pair).collect()
        }
        _ => Map::new(),
    }
}

fn key_of(fields: &GivenFields, entry: &Value) -> Option<String> {
    let key = scalar(entry.pointer(fields.key.as_deref()?)?)?;
    Some(key.trim().to_owned())
}

/// The place of the answer to a question; the list as a whole if it has none.
fn place(fields: &GivenFields, value: &Value, key: &str) -> String {
    let at = &fields.at;
    match value.pointer(at) {
        Some(Value::Array(entries)) => {
            let is_of_it = |entry: &Value| key_of(fields, entry).as_deref() == Some(key);
            let value = fields.value.as_deref().unwrap_or_default();
            match entries.iter().position(is_of_it) {
                Some(i) => format!("{at}/{i}{value}"),
                None => at.clone(),
            }
        }
        _ => format!("{at}/{}", escaped_part(key)),
    }
}
