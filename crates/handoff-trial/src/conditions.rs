//! The fields on which the conditions of a schema depend, and the values that rules name.

use std::collections::BTreeSet;

use handoff::base::pointer::{parts, push_part};
use handoff::protocol::{Comparison, ConsistencyRule, ContractType, Policy, Protocol, Subject};
use serde_json::{Map, Value};

/// A condition in a schema (`if`).
pub(super) struct Condition {
    /// The fields that it names.
    pub(super) reads: BTreeSet<String>,
    /// The fields that its branches describe.
    decides: BTreeSet<String>,
}

impl Condition {
    /// Whether a branch describes a field.
    pub(super) fn decides(&self, at: &str) -> bool {
        self.decides.contains(at)
    }
}

/// The conditions of a schema. Recursion is bounded by the schema's depth.
pub(super) fn conditions(schema: &Value) -> Vec<Condition> {
    fn walk(node: &Value, at: &str, found: &mut Vec<Condition>) {
        if let Some(condition) = node.get("if") {
            let (mut reads, mut decides) = (BTreeSet::new(), BTreeSet::new());
            members(condition, at, &mut reads);
            for branch in ["then", "else"] {
                members(&node[branch], at, &mut decides);
            }
            found.push(Condition { reads, decides });
        }
        for beside in beside(node) {
            walk(beside, at, found);
        }
        for (name, member) in properties(node) {
            walk(member, &under(at, name), found);
        }
    }
    let mut found = Vec::new();
    walk(schema, "", &mut found);
    found
}

/// The members that a schema names.
fn members(node: &Value, at: &str, found: &mut BTreeSet<String>) {
    let required = node["required"].as_array().into_iter().flatten();
    found.extend(required.filter_map(|name| Some(under(at, name.as_str()?))));
    for (name, member) in properties(node) {
        let at = under(at, name);
        members(member, &at, found);
        found.insert(at);
    }
    for beside in beside(node) {
        members(beside, at, found);
    }
}

/// The subschemas for the same value.
fn beside(node: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["allOf", "anyOf", "oneOf"].into_iter();
    let lists = lists.filter_map(|key| node[key].as_array()).flatten();
    lists.chain(
        ["then", "else", "not"]
            .into_iter()
            .filter_map(|key| node.get(key)),
    )
}

fn properties(node: &Value) -> impl Iterator<Item = (&String, &Value)> {
    node["properties"]
        .as_object()
        .into_iter()
        .flat_map(Map::iter)
}

fn under(at: &str, name: &str) -> String {
    let mut at = at.to_owned();
    push_part(&mut at, name);
    at
}

/// The enforced rules about contracts of a type.
pub(super) fn rules<'p>(
    protocol: &'p Protocol,
    kind: &ContractType,
) -> impl Iterator<Item = &'p ConsistencyRule> {
    let rules = protocol.definition().consistency.iter();
    rules.filter(|rule| {
        rule.policy == Policy::Enforce && (rule.of.is_empty() || rule.of.contains(&kind.name))
    })
}

/// The values that a rule compares a field with: its constant, or what is known of the issue.
pub(super) fn named_values(
    rule: &ConsistencyRule,
    at: &str,
    facts: &Map<String, Value>,
) -> Vec<Value> {
    if matches!(rule.compare, Comparison::Distinct(..)) {
        return Vec::new();
    }
    let [one, two] = rule.compare.terms();
    let mut found = Vec::new();
    for (term, other) in [(one, two), (two, one)] {
        let place = term.place().filter(|_| !term.is_filtered());
        let Some(place) = place.filter(|place| is_at(place, at)) else {
            continue;
        };
        let values = match other.subject() {
            Subject::Fact(name, part) => {
                let value = facts.get(name).and_then(|fact| fact.pointer(part)).cloned();
                other.filtered(value.into_iter().collect())
            }
            Subject::Fixed(_) => other.own_values(&Value::Null),
            _ => None,
        };
        for value in values.into_iter().flatten() {
            match value {
                Value::Array(items) if place.contains("/*") => found.extend(items),
                value => found.push(value),
            }
        }
    }
    found
}

/// Whether a place with `*` for any item includes a pointer.
pub(super) fn is_at(place: &str, at: &str) -> bool {
    let is_part =
        |(part, of): (String, String)| part == of || part == "*" && of.parse::<usize>().is_ok();
    parts(place).count() == parts(at).count() && parts(place).zip(parts(at)).all(is_part)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{conditions, is_at};

    #[test]
    fn a_condition_names_what_it_reads_and_what_it_decides() {
        let schema = json!({"properties": {"inner": {"allOf": [
            {"if": {"required": ["kind"], "properties": {"kind": {"const": "a"}}},
             "then": {"properties": {"to": {"const": "x"}}}, "else": {"required": ["why"]}}]}}});
        let found = conditions(&schema);
        assert_eq!(found.len(), 1);
        assert!(found[0].reads.iter().eq(["/inner/kind"]));
        assert!(found[0].decides("/inner/to") && found[0].decides("/inner/why"));
    }

    #[test]
    fn a_star_is_any_item() {
        assert!(is_at("/list/*/name", "/list/0/name"));
        assert!(!is_at("/list/*/name", "/list/0/text"));
        assert!(!is_at("/list/*", "/list/0/name"));
    }
}
