//! The facts about an issue, gathered from its contracts as they arrive.

use handoff_base::pointer::lookup;
use serde_json::{Map, Value};

use crate::definition::FactRule;
use crate::protocol::Protocol;

/// The maximum number of collected items; the oldest are dropped.
const COLLECTED: usize = 1000;

impl Protocol {
    /// Adds the facts of a contract of a type to those known so far; returns the names of the facts
    /// that it states. A contract that `opens` its issue reviews nothing, and counts as no review.
    pub fn gather(
        &self,
        facts: &mut Map<String, Value>,
        (kind, contract, opens): (&str, &Value, bool),
    ) -> Vec<&str> {
        let reviews = || {
            self.contract_type(kind)
                .is_some_and(|k| k.reviews.is_some())
        };
        let counts = !opens || !reviews();
        let mut stated = Vec::new();
        for (name, fact) in &self.definition().facts {
            let number = |facts: &Map<String, Value>| facts.get(name).and_then(Value::as_u64);
            match &fact.rule {
                FactRule::Last(pointers) => {
                    let found = pointers.iter().find_map(|p| lookup(contract, p));
                    if let Some(value) = found {
                        facts.insert(name.clone(), value.clone());
                        stated.push(name.as_str());
                    }
                }
                FactRule::Newest { of, at } => {
                    if !of.iter().any(|k| k == kind) {
                        continue;
                    }
                    facts.shift_remove(name);
                    if let Some(value) = at.iter().find_map(|p| lookup(contract, p)) {
                        facts.insert(name.clone(), value.clone());
                        stated.push(name.as_str());
                    }
                }
                FactRule::Sum(pointers) => {
                    let found = pointers.iter().filter_map(|p| lookup(contract, p));
                    let mut counts = found.filter_map(quantity).peekable();
                    if counts.peek().is_some() {
                        let sum = counts.fold(number(facts).unwrap_or(0), u64::saturating_add);
                        facts.insert(name.clone(), sum.into());
                    }
                }
                FactRule::Collect(pointers) => {
                    let found = pointers.iter().filter_map(|p| lookup(contract, p));
                    let items = found.filter_map(Value::as_array).flatten();
                    for item in items {
                        let known = facts.entry(name.clone());
                        let known = known.or_insert_with(|| Value::Array(Vec::new()));
                        if let Value::Array(known) = known
                            && !known.contains(item)
                        {
                            known.push(item.clone());
                            let over = known.len().saturating_sub(COLLECTED);
                            known.drain(..over);
                        }
                    }
                }
                FactRule::Merge(pointers) => {
                    let found = pointers.iter().filter_map(|p| lookup(contract, p));
                    for members in found.filter_map(Value::as_object) {
                        let known = facts.entry(name.clone());
                        let known = known.or_insert_with(|| Value::Object(Map::new()));
                        if let Value::Object(known) = known {
                            known.extend(members.clone());
                        }
                    }
                }
                FactRule::Count(kinds) => {
                    if counts && kinds.iter().any(|k| k == kind) {
                        let count = number(facts).unwrap_or(0).saturating_add(1);
                        facts.insert(name.clone(), count.into());
                    }
                }
            }
        }
        stated
    }
}

fn quantity(value: &Value) -> Option<u64> {
    match value {
        Value::Array(items) => Some(items.len() as u64),
        other => other.as_u64(),
    }
}
