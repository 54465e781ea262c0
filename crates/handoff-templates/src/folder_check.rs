//! Checks a protocol's folder for its author: what [`check_protocol`] finds, without what only follows
//! from something else; files that nothing uses, and values that no contract can have.

use std::collections::BTreeSet;

use handoff_base::finding::{Finding, FindingCode as Code};
use handoff_base::pointer::{parts, under};
use handoff_base::text::closest;
use handoff_contract::{Schema, Shape, Source};
use handoff_model::layout::DEFINITION;
use handoff_model::{ProtocolFiles, check_protocol};
use handoff_protocol::{ContractType, Partial, Protocol, Route};

/// Checks a protocol's folder. The findings come in the order of the files and their lines.
pub fn check_folder(files: &ProtocolFiles) -> Vec<Finding> {
    let mut found = check_protocol(files);
    let rest = found.pop_if(|last| last.code == Code::FindingsMore);
    let empty: Vec<EmptyList<'_>> = files.iter().flat_map(empty_lists).collect();
    found.extend(empty.iter().map(|list| list.finding.clone()));
    let definition = file(files, DEFINITION).unwrap_or_default();
    let read = Protocol::with_faults(definition).ok();
    let read = read.map(|(protocol, _)| protocol);
    if let Some(protocol) = &read {
        unused(files, protocol, &mut found);
    }
    if let Some(protocol) = read.or_else(|| Partial::read(definition).protocol) {
        settle(files, &protocol, &empty, &mut found);
    }
    found.sort_by_key(|finding| {
        let own = files.iter().position(|(path, _)| *path == finding.path);
        let own = own.filter(|at| files[*at].0 != DEFINITION);
        let is_of_all = finding.line.is_none();
        (own, is_of_all, finding.line, finding.column)
    });
    // A limit that leaves room for nothing is below what work takes, too.
    found.dedup_by(|next, one| {
        one.code == Code::ProtocolLimit && next.code == one.code && next.path == one.path
    });
    found.extend(rest);
    found
}

fn file<'f>(files: &'f ProtocolFiles, path: &str) -> Option<&'f [u8]> {
    let found = files.iter().find(|(known, _)| known == path);
    found.map(|(_, bytes)| bytes.as_slice())
}

/// The line and column of a value in a JSON file.
fn position(bytes: &[u8], pointer: &str) -> Option<(u32, u32)> {
    let place = Source::parse(bytes)
        .ok()?
        .place(&Shape::open(), None, pointer);
    place.line.zip(place.column)
}

/// A list of values that has none, in a schema.
struct EmptyList<'f> {
    schema: &'f str,
    /// The field whose values it lists, unless it is in a list or an alternative.
    field: Option<String>,
    finding: Finding,
}

fn empty_lists((path, bytes): &(String, Vec<u8>)) -> Vec<EmptyList<'_>> {
    let value = serde_json::from_slice(bytes).ok();
    let Some(value) = value.filter(|_| path.starts_with("schemas/")) else {
        return Vec::new();
    };
    let list = |at: String| {
        let text = "no value is valid here: `enum` lists none";
        let mut finding = Finding::error(Code::ProtocolSchema, path, text);
        (finding.line, finding.column) = position(bytes, &at).unzip();
        let names: Vec<String> = parts(&at).collect();
        let (above, _) = names.split_at(names.len().saturating_sub(1));
        let is_field = above.chunks(2).all(|pair| pair[0] == "properties");
        let field = above.iter().skip(1).step_by(2);
        EmptyList {
            schema: path,
            field: is_field.then(|| field.fold(String::new(), |at, name| under(&at, name))),
            finding: finding.fix("list the values that it may have, or leave `enum` out"),
        }
    };
    Schema::without_value(&value)
        .into_iter()
        .map(list)
        .collect()
}

/// Tells of schemas and templates that no contract type names: as what may be meant, if another file
/// is missing; not if a type's name is at fault, which may be theirs.
fn unused(files: &ProtocolFiles, protocol: &Protocol, found: &mut Vec<Finding>) {
    let names = [Code::ProtocolDuplicate, Code::ProtocolUnknownType];
    let is_misnamed = found.iter().any(|one| names.contains(&one.code));
    let definition = protocol.definition();
    let kinds = &definition.contracts;
    let own = kinds.iter().flat_map(|kind| [&kind.schema, &kind.template]);
    let documents = definition.documents.values();
    let named: BTreeSet<&String> = own.chain(documents.map(|one| &one.schema)).collect();
    // A contract may name any schema of the folder.
    let names = |kind: &ContractType| !kind.named_schemas.is_empty() || kind.expects.is_some();
    for (folder, key, code) in [
        ("schemas/", "schema", Code::ProtocolSchema),
        ("templates/", "template", Code::ProtocolTemplate),
    ] {
        let paths = files.iter().map(|(path, _)| path);
        let of_folder = |path: &&String| path.starts_with(folder) && path.ends_with(".json");
        let others = paths.filter(of_folder).filter(|path| !named.contains(path));
        let others: Vec<&str> = others.map(String::as_str).collect();
        if others.is_empty() || folder == "schemas/" && kinds.iter().any(names) {
            continue;
        }
        let mut is_meant = false;
        for (i, kind) in kinds.iter().enumerate() {
            let own = if key == "schema" {
                &kind.schema
            } else {
                &kind.template
            };
            let at = format!("/contracts/{i}/{key}");
            let is_own =
                |one: &&mut Finding| one.code == Code::ProtocolMissingFile && one.path == at;
            let meant = closest(own, others.iter().copied()).unwrap_or(others[0]);
            if let Some(missing) = found.iter_mut().find(is_own) {
                let fix = format!("rename {meant}, which no type has, or name it as `{key}`");
                missing.fix = Some(fix);
                is_meant = true;
            }
        }
        let is_faulty = |path: &str| {
            let mut found = found.iter();
            is_misnamed || found.any(|one| one.path == path && one.is_error())
        };
        let told = others
            .into_iter()
            .filter(|path| !is_meant && !is_faulty(path));
        let told = told.map(|path| {
            let text = format!("no contract type has this {key}: nothing uses it");
            let finding = Finding::warning(code, path, text);
            finding.fix(format!("name it as the `{key}` of a type, or delete it"))
        });
        let told: Vec<Finding> = told.collect();
        found.extend(told);
    }
}

/// Drops the findings that only follow from others: about types that a route lacks or can't have, and
/// about values in templates whose schema is at fault.
fn settle(
    files: &ProtocolFiles,
    protocol: &Protocol,
    empty: &[EmptyList<'_>],
    found: &mut Vec<Finding>,
) {
    let definition = protocol.definition();
    let is_refused = |at: &str| {
        let mut found = found.iter();
        found.any(|one| one.code == Code::ProtocolRoute && one.is_error() && one.path == at)
    };
    let routes = definition.routes.iter();
    let refused = routes.filter(|route| is_refused(&route.place("contracts")));
    let refused: Vec<&Route> = refused.collect();
    let lacks_types = refused.iter().any(|route| route.contracts.is_empty());
    let refused: BTreeSet<&String> = refused.iter().flat_map(|route| &route.contracts).collect();
    let (mut ambiguous, mut values) = (BTreeSet::new(), Vec::new());
    for (i, kind) in definition.contracts.iter().enumerate() {
        let mut fields: Vec<&str> = Vec::new();
        if refused.contains(&kind.name) {
            ambiguous.insert(format!("/contracts/{i}/when"));
            fields.extend(protocol.field(kind, |fields| &fields.from));
            fields.extend(protocol.field(kind, |fields| &fields.to));
        }
        let own = empty.iter().filter(|list| list.schema == kind.schema);
        fields.extend(own.filter_map(|list| list.field.as_deref()));
        let template = file(files, &kind.template).unwrap_or_default();
        values.extend(fields.into_iter().filter_map(|field| {
            let (line, column) = position(template, field)?;
            Some((&kind.template, Some(line), Some(column)))
        }));
    }
    found.retain(|one| match one.code {
        Code::ProtocolUnusedType => !lacks_types,
        Code::ProtocolAmbiguous => !ambiguous.contains(&one.path),
        Code::ProtocolTemplate => {
            !one.is_error() || !values.contains(&(&one.path, one.line, one.column))
        }
        _ => true,
    });
}
