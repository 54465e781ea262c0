//! Checks what a schema can't express, because it spans several fields.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::text::{counted, quoted};
use handoff_contract::{FILL, Schema, Source};
use handoff_protocol::{ContractType, Gate, Protocol, TaskFields};
use serde_json::Value;

use crate::branches::nameable;
use crate::contract::Schemas;
use crate::contract::evidence::branch_at;
use crate::value::scalar;

/// Checks a contract by its type's rules; paths are JSON Pointers.
pub fn faults<S: Schemas>(
    protocol: &Protocol,
    kind: &ContractType,
    schemas: &S,
    value: &Value,
) -> Result<Vec<Finding>, S::Error> {
    let mut found = Vec::new();
    for named in &kind.named_schemas {
        let (Some(data), Some(name)) = (
            value.pointer(&named.data),
            value.pointer(&named.schema).and_then(scalar),
        ) else {
            continue;
        };
        match named_schema(schemas, &name)? {
            Ok(schema) => found.extend(part(&schema, data, &named.data)),
            Err(finding) => found.push(Finding {
                path: named.schema.clone(),
                ..*finding
            }),
        }
    }
    // With an unknown schema, no answer could be checked.
    if let Some(expected) = &kind.expects
        && let Some(name) = value.pointer(&expected.schema).and_then(scalar)
        && let Err(finding) = named_schema(schemas, &name)?
    {
        found.push(Finding {
            path: expected.schema.clone(),
            ..*finding
        });
    }
    for pointer in &kind.agents {
        let Some(name) = value.pointer(pointer).and_then(scalar) else {
            continue;
        };
        if protocol.agent(&name).is_none() {
            let text = format!(
                "{} is not an agent of protocol {}",
                quoted(&name),
                protocol.name()
            );
            let fix = format!("use one of: {}", protocol.agent_names().join(", "));
            found.push(Finding::error(FindingCode::AgentUnknown, pointer, text).fix(fix));
        }
    }
    let branch = branch_at(protocol, kind).and_then(|at| Some((at, value.pointer(at)?)));
    if let Some((at, Value::String(branch))) = branch.filter(|(_, value)| !has_mark(value))
        && !branch.is_empty()
        && let Err(refusal) = nameable(branch, None)
    {
        found.push(refusal.finding(at));
    }
    let codes = &protocol.definition().words.errors;
    if let Some(failure) = &kind.failure
        && let Some(code) = value.pointer(&failure.code).and_then(scalar)
        && !codes.is_empty()
        && !codes.contains_key(&code)
    {
        let known: Vec<&str> = codes.keys().map(String::as_str).collect();
        let text = format!(
            "{} is not an error code of protocol {}",
            quoted(&code),
            protocol.name()
        );
        let finding = Finding::error(FindingCode::ErrorUnknown, &failure.code, text);
        found.push(finding.fix(format!("use one of: {}", known.join(", "))));
    }
    // A placeholder is not a task's name.
    let named = |tasks: &&TaskFields| {
        let mut given = tasks.given();
        !given.any(|(_, at)| value.pointer(at).is_some_and(has_mark))
    };
    if let Some(tasks) = kind.tasks.as_ref().filter(named) {
        found.extend(tasks.faults(value, &tasks.read(value)));
    }
    Ok(found)
}

/// Whether a value contains a placeholder.
fn has_mark(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(FILL),
        Value::Array(items) => items.iter().any(has_mark),
        Value::Object(members) => members.iter().any(|(k, v)| k.contains(FILL) || has_mark(v)),
        _ => false,
    }
}

/// The schema of this name, or why the name is invalid.
pub fn named_schema<S: Schemas>(
    schemas: &S,
    name: &str,
) -> Result<Result<std::rc::Rc<Schema>, Box<Finding>>, S::Error> {
    let mut known = schemas.names()?;
    // Except the XML Schemas, which are in the same folder.
    known.retain(|name| !name.ends_with(".xsd"));
    if known.iter().any(|k| k == name) {
        return schemas.file(&format!("schemas/{name}")).map(Ok);
    }
    let text = format!("the protocol has no schema {}", quoted(name));
    let finding = Finding::error(FindingCode::SchemaUnknown, "", text);
    let fix = format!("use one of: {}", known.join(", "));
    Ok(Err(Box::new(finding.fix(fix))))
}

/// Checks a part of a contract against its own schema.
pub fn part(schema: &Schema, data: &Value, at: &str) -> Vec<Finding> {
    let Ok(source) = Source::parse(data.to_string().as_bytes()) else {
        let text = "the data is neither an object nor a list";
        return vec![Finding::error(FindingCode::FieldType, at, text)];
    };
    let mut findings = schema.check(&source, None).findings;
    for finding in &mut findings {
        // Within a part, line numbers would be wrong.
        (finding.line, finding.column) = (None, None);
        finding.path.insert_str(0, at);
    }
    findings
}

/// Adds a finding for each gate that fails.
pub fn gates(protocol: &Protocol, findings: &mut Vec<Finding>) {
    let mut failed: Vec<(Gate, usize)> = Vec::new();
    for finding in findings.iter().filter(|f| f.is_error()) {
        let gate = gate_of(finding.code);
        match failed.iter_mut().find(|(known, _)| *known == gate) {
            Some((_, count)) => *count += 1,
            None => failed.push((gate, 1)),
        }
    }
    for gate in protocol.definition().gates() {
        if let Some((_, count)) = failed.iter().find(|(failed, _)| failed == gate) {
            let faults = counted(*count, "fault");
            let text = format!("the gate is not passed: {faults}, listed beside this");
            findings.push(Finding::error(gate.code(), "", text));
        }
    }
}

/// The gate that a fault fails.
fn gate_of(code: FindingCode) -> Gate {
    match code {
        FindingCode::FieldMissing | FindingCode::FieldUnfilled => Gate::RequiredFields,
        FindingCode::TaskOrphan => Gate::NoOrphanedTasks,
        FindingCode::TaskState => Gate::StateConsistency,
        FindingCode::AgentUnknown
        | FindingCode::AgentName
        | FindingCode::StatusClosing
        | FindingCode::StatusUnfinished => Gate::ValidTransition,
        _ if code.is_route() => Gate::ValidTransition,
        _ => Gate::DataIntegrity,
    }
}
