//! Finds values that two open issues share although each needs its own: a port, a folder, a branch;
//! and the base, which is no issue's own branch.

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::text::quoted;
use handoff_contract::Input;
use handoff_model::branches::short_name;
use handoff_model::intake::placed;
use handoff_model::value::scalar;
use handoff_model::{Contract, IssueStatus, View, not_applicable, note_fact};
use handoff_protocol::{BRANCH, FactRule};
use serde_json::Value;

use super::base_branch::base_branch;
use super::error::LedgerError;
use super::snapshot::{Rules, Snapshot};

/// The maximum number of open issues that a contract is compared with, since it is only a warning.
const MOST: usize = 1000;

/// Warns of each fact of a contract that the protocol marks as exclusive and that another open
/// issue has, too, and of a branch that is the base.
pub(super) fn shared_resources(
    snapshot: &Snapshot<'_>,
    rules: &Rules<'_>,
    contract: &Contract,
    input: &Input<'_>,
) -> Result<Vec<Finding>, LedgerError> {
    let protocol = rules.protocol();
    let definition = protocol.definition();
    let Some(kind) = protocol.contract_type(&contract.kind) else {
        return Ok(Vec::new());
    };
    let mut stated: Vec<(&str, &str, &Value)> = Vec::new();
    for (name, fact) in definition.facts.iter().filter(|(_, fact)| fact.exclusive) {
        let FactRule::Last(places) = &fact.rule else {
            continue;
        };
        let found = places
            .iter()
            .find_map(|at| Some((at, contract.value.pointer(at)?)));
        let found = found.filter(|(_, value)| not_applicable::reason(value).is_none());
        stated.extend(found.map(|(at, value)| (name.as_str(), at.as_str(), value)));
    }
    if stated.is_empty() {
        return Ok(Vec::new());
    }
    let issue = snapshot.issue(&contract.issue)?.issue()?;
    if let Some(issue) = &issue {
        // Facts that the issue had already were compared before.
        let is_new = |name: &str, value: &Value| {
            issue.fact(definition, name).map(|f| f.value) != Some(value)
        };
        stated.retain(|(name, _, value)| is_new(name, value));
    }
    let mut sharing = vec![Vec::new(); stated.len()];
    if !stated.is_empty() {
        let others = snapshot.some_open_issues(&contract.issue, MOST)?;
        let others = snapshot.states(&others)?.into_iter();
        for other in others.filter(|other| other.status == IssueStatus::Open) {
            for ((name, _, value), sharing) in stated.iter().zip(&mut sharing) {
                let fact = other.fact(definition, name);
                if fact.is_some_and(|fact| is_same(fact.value, value)) {
                    sharing.push(other.issue.to_string());
                }
            }
        }
    }
    let warnings = stated.iter().zip(&sharing).filter(|(_, s)| !s.is_empty());
    let warnings = warnings.map(|((name, at, value), sharing)| {
        let (name, others) = (name.replace('_', " "), sharing.join(", "));
        let value = scalar(value).unwrap_or_else(|| value.to_string());
        let (issues, are) = match sharing.len() {
            1 => ("issue", "which is"),
            _ => ("issues", "which are"),
        };
        let text = format!(
            "{name} {} is also that of {issues} {others}, {are} open",
            quoted(&value)
        );
        let finding = Finding::warning(FindingCode::ContractShared, *at, text);
        finding.fix(format!(
            "use another {name}, or wait until nobody works on {issues} {others}"
        ))
    });
    let known = issue.as_ref().map(|issue| (issue, definition));
    let base = || base_branch(snapshot.repository(), known, None, None);
    let mut branch = stated.iter().filter(|(name, ..)| *name == BRANCH);
    let branch = branch.find_map(|(_, at, value)| Some((*at, short_name(value.as_str()?))));
    let base = branch.filter(|(_, branch)| base().as_deref() == Some(*branch));
    let base = base.map(|(at, base)| {
        let text = format!("{base} is the base, which work is merged into");
        let note = note_fact(protocol, &contract.issue, BRANCH);
        Finding::warning(FindingCode::ContractShared, at, text).fix(format!(
            "put the work on a branch of its own (`git switch -c NAME`), and have it noted: `{note}`"
        ))
    });
    placed(protocol, rules, kind, input, warnings.chain(base).collect())
}

/// Whether two values are the same branch or folder, in canonical form.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => plain(one) == plain(other),
        _ => one == other,
    }
}

/// The canonical form of a branch or a path: without blanks around it, `refs/heads/`, `.`, `..` and
/// doubled or final slashes.
fn plain(text: &str) -> String {
    let text = text.trim();
    let root = if text.starts_with('/') { "/" } else { "" };
    let text = text.strip_prefix("refs/").unwrap_or(text);
    let text = text.strip_prefix("heads/").unwrap_or(text);
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            // There is nothing above the root.
            ".." if !root.is_empty() => {}
            part => parts.push(part),
        }
    }
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_spelling_makes_no_other_branch_and_no_other_folder() {
        for same in [
            "refs/heads/a/b",
            "heads/a/b",
            " a/b",
            "a//b",
            "a/./b/",
            "a/c/../b",
        ] {
            assert_eq!(plain(same), "a/b", "{same}");
        }
        for same in [
            "/srv/w/1",
            "/srv/w/1/",
            "/srv/w/../w/1",
            "/srv//w/1/.",
            "/../srv/w/1",
        ] {
            assert_eq!(plain(same), "/srv/w/1", "{same}");
        }
        for other in ["b", "/a/b", "../a/b", "a/b/c", "a", "tags/a/b"] {
            assert_ne!(plain(other), "a/b", "{other}");
        }
    }
}
