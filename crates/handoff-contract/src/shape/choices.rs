//! Enumerations with a member that lists all others, such as `low|medium|high`. Examples use that
//! member; contracts must not.

use std::collections::HashMap;

use handoff_base::pointer::push_part;
use serde_json::Value;

use super::node::{Node, OPEN};
use crate::value::scalar_text;

/// The places of such enumerations in a shape, determined once per compiled schema.
#[derive(Clone, Debug, Default)]
pub(super) struct Choices {
    /// By node: the member that lists the choices, and the choices.
    leaves: HashMap<usize, (String, Vec<String>)>,
    /// For each node, whether such an enumeration is reachable from it; empty if there is none.
    leads: Vec<bool>,
    /// The choices of every enumeration, by the text that would list them all.
    lists: Vec<(String, Vec<String>)>,
}

impl Choices {
    /// Adds the enumeration of a node, if it has such a member.
    pub(super) fn add(&mut self, node: usize, allowed: &[&Value]) {
        let texts: Vec<String> = allowed.iter().map(|value| scalar_text(value)).collect();
        let list = listing(&texts);
        let is_choice = |text: &&String| Some(*text) != list;
        let rest: Vec<String> = texts.iter().filter(is_choice).cloned().collect();
        if rest.len() > 1 {
            self.lists.push((rest.join("|"), rest.clone()));
        }
        if let Some(list) = list {
            self.leaves.insert(node, (list.clone(), rest));
        }
    }

    /// The choices that a text lists, wherever it occurs.
    pub(super) fn listed(&self, text: &str) -> Option<&[String]> {
        if !text.contains('|') {
            return None;
        }
        let known = self.lists.iter().find(|(list, _)| list == text.trim());
        known.map(|(_, choices)| &choices[..])
    }

    /// Determines from which nodes such an enumeration is reachable.
    pub(super) fn link(&mut self, nodes: &[Node]) {
        if self.leaves.is_empty() {
            return;
        }
        self.leads = (0..nodes.len())
            .map(|node| self.leaves.contains_key(&node))
            .collect();
        loop {
            let mut changed = false;
            for (index, node) in nodes.iter().enumerate() {
                let leads = |node: usize| self.leads[node];
                let found = match node {
                    Node::Object { props, additional } => {
                        props.iter().any(|prop| leads(prop.node)) || additional.is_some_and(leads)
                    }
                    Node::Array { item, .. } => leads(*item),
                    Node::Leaf(_) | Node::Open { .. } | Node::Json { .. } => false,
                };
                if found && !self.leads[index] {
                    self.leads[index] = true;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Calls `report` for each text in a value that is a list of choices, with its pointer and the
    /// choices.
    pub(super) fn undecided(
        &self,
        nodes: &[Node],
        node: usize,
        value: &Value,
        mut report: impl FnMut(&str, &str, &[String]),
    ) {
        self.walk(nodes, node, value, &mut String::new(), &mut report);
    }

    /// Recursion is bounded by the source's depth.
    fn walk(
        &self,
        nodes: &[Node],
        node: usize,
        value: &Value,
        pointer: &mut String,
        report: &mut impl FnMut(&str, &str, &[String]),
    ) {
        if !self.leads.get(node).is_some_and(|&leads| leads) {
            return;
        }
        if let (Some((list, choices)), Value::String(text)) = (self.leaves.get(&node), value) {
            if text == list {
                report(pointer, list, choices);
            }
            return;
        }
        let mut into = |part: &str, node: usize, value: &Value| {
            let length = pointer.len();
            push_part(pointer, part);
            self.walk(nodes, node, value, pointer, report);
            pointer.truncate(length);
        };
        match (&nodes[node], value) {
            (Node::Object { props, additional }, Value::Object(members)) => {
                let rest = additional.unwrap_or(OPEN);
                for (key, member) in members {
                    let prop = props.iter().find(|prop| prop.key == *key);
                    into(key, prop.map_or(rest, |prop| prop.node), member);
                }
            }
            (Node::Array { item, .. }, Value::Array(items)) => {
                for (index, member) in items.iter().enumerate() {
                    into(&index.to_string(), *item, member);
                }
            }
            _ => {}
        }
    }
}

/// The member of an enumeration that lists all others, separated by `|`.
pub(crate) fn listing(texts: &[String]) -> Option<&String> {
    texts.iter().find(|text| {
        let parts: Vec<&str> = text.split('|').collect();
        parts.len() > 1
            && parts.len() + 1 == texts.len()
            && texts
                .iter()
                .filter(|other| other != text)
                .all(|other| parts.contains(&other.as_str()))
    })
}
