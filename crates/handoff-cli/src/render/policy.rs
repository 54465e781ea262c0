//! The policy in force: how a protocol treats contradicted statements, and which of its settings
//! were changed.

use std::collections::BTreeMap;
use std::fmt::Display;

use handoff::base::text::one_line;
use handoff::ledger::{LedgerError, Rules, Snapshot};
use handoff::model::layout::DEFINITION;
use handoff::model::{SETTINGS, has_settings};
use handoff::protocol::{Check, Policy, Protocol};
use handoff::templates::built_in;
use serde_json::Value;

/// What happens even if contradictions only warn.
pub const REFUSED_ANYWAY: &str =
    "a false merge is refused anyway, and so is a branch that `send` can't push to the remote";

/// The policy of a protocol in force, in a few words: `warn (off for coverage); set here:
/// limits.handoffs 40`.
///
/// # Errors
/// [`LedgerError`] if the protocol can't be read.
pub fn in_force(tip: &Snapshot<'_>, protocol: &str) -> Result<String, LedgerError> {
    let rules = tip.rules(protocol)?;
    let checked = checked(rules.protocol(), tip.manifest().evidence);
    Ok(match set_here(&rules)? {
        set if set.is_empty() => checked,
        set => format!("{checked}; set here: {}", one_line(&set.join(", "))),
    })
}

/// The policy of each protocol in force.
///
/// # Errors
/// [`LedgerError`] if one can't be read.
pub fn policies(tip: &Snapshot<'_>) -> Result<BTreeMap<String, String>, LedgerError> {
    let names = tip.protocols()?.into_iter();
    names
        .map(|name| in_force(tip, &name).map(|policy| (name, policy)))
        .collect()
}

/// The policies of several protocols as one: all have it, or each is named with its own.
pub fn policies_text<N: Display>(policies: &BTreeMap<N, String>) -> String {
    let mut all = policies.values();
    let first = all.next().map_or("", String::as_str);
    if all.all(|policy| policy == first) {
        return first.to_owned();
    }
    let one = |(name, policy)| format!("{name} {policy}");
    policies.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The policy as a line; empty if nothing is checked and nothing was changed.
pub fn policy_line(policy: &str) -> String {
    if policy == Policy::Off.as_str() || policy.is_empty() {
        return String::new();
    }
    format!("  contracts' statements are checked: {policy}\n")
}

fn checked(protocol: &Protocol, ledger: Policy) -> String {
    let usual = protocol.usual_policy(ledger);
    let mut others: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for check in Check::ALL {
        let own = protocol.policy(check, ledger);
        if own != usual {
            others.entry(own.as_str()).or_default().push(check.as_str());
        }
    }
    let one =
        |(policy, checks): (&str, Vec<&str>)| format!(" ({policy} for {})", checks.join(", "));
    let others: String = others.into_iter().map(one).collect();
    format!("{}{others}", usual.as_str())
}

/// How often settings were changed: one that was changed twice counts twice.
fn changes(made: &str) -> String {
    let times = if made == "1" { "change" } else { "changes" };
    format!("{made} {times}")
}

/// The settings in which a built-in protocol in force differs from the shipped one, except evidence
/// policies; for other protocols, the number of changes.
fn set_here(rules: &Rules<'_>) -> Result<Vec<String>, LedgerError> {
    let definition = rules.protocol().definition();
    if !has_settings(&definition.version) {
        return Ok(Vec::new());
    }
    let Some((shipped, (base, made))) =
        built_in(definition.name.as_str()).zip(definition.version.rsplit_once('+'))
    else {
        let made = definition.version.rsplit_once('+').map(|(_, made)| made);
        return Ok(made.into_iter().map(changes).collect());
    };
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    let shipped = read(shipped.file(DEFINITION).unwrap_or_default());
    if shipped["version"] != *base {
        return Ok(vec![changes(made)]);
    }
    let own = read(&rules.bytes(DEFINITION)?);
    let others = SETTINGS
        .iter()
        .filter(|setting| !setting.key.starts_with("evidence"));
    let differ = others.flat_map(|setting| {
        let usual = setting.values(&shipped);
        let values = setting.values(&own).into_iter();
        values.filter(move |value| !usual.contains(value))
    });
    Ok(differ
        .map(|(key, value)| format!("{key} {value}"))
        .collect())
}
