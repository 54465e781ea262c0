//! What a protocol asks of contracts and issues, in words: its rules, requirements and limits.

use handoff::base::text::one_line;
use handoff::model::Setting;
use handoff::protocol::{Comparison, Definition, Policy, Requirement, Subject};
use serde_json::Value;

/// The rules that compare fields.
pub(super) fn rules(definition: &Definition) -> Vec<Vec<String>> {
    let rows = definition.consistency.iter().map(|rule| {
        let when = rule.when.iter();
        let when = when.map(|(at, words)| format!("if {at} is {}", words.texts().join(" or ")));
        let of = (!rule.of.is_empty()).then(|| rule.of.join(", "));
        let policy = match rule.policy {
            Policy::Enforce => None,
            Policy::Warn => Some("warns only".to_owned()),
            Policy::Off => Some("is off".to_owned()),
        };
        let remarks: Vec<String> = of.into_iter().chain(when).chain(policy).collect();
        row(&rule.name, &compared(&rule.compare), &remarks.join("; "))
    });
    rows.collect()
}

fn compared(compare: &Comparison) -> String {
    let [one, two] = compare.terms();
    match compare {
        Comparison::Same(..) => format!("{one} is {two}"),
        Comparison::AtMost(..) if matches!(one.subject(), Subject::Fixed(_)) => {
            format!("{two} is at least {one}")
        }
        Comparison::AtMost(..) => format!("{one} is at most {two}"),
        Comparison::SubsetOf(..) => format!("each of {one} is in {two}"),
        Comparison::EqualSets(..) => format!("{one} has the items of {two}"),
        Comparison::OrderedBy(..) => format!("{one} is in the order of {two}"),
        Comparison::Lasts(..) => format!("{one} is as long as {two} seconds"),
        Comparison::Distinct(..) => format!("none of {one} is in {two}"),
    }
}

/// What issues must show.
pub(super) fn requirements(definition: &Definition) -> Vec<Vec<String>> {
    let all = definition.requirements.iter();
    all.map(|(name, of)| row(name, &of.title, &met_by(of)))
        .collect()
}

fn met_by(requirement: &Requirement) -> String {
    let list = |title: &str, names: &[String]| {
        (!names.is_empty()).then(|| format!("{title} {}", names.join(" or ")))
    };
    let shown = match requirement.approved_by[..] {
        [] => "shown by",
        _ => "of",
    };
    let parts = [
        list("approved by", &requirement.approved_by),
        list(shown, &requirement.shown_by),
        list("with status", &requirement.status),
        list("again after", &requirement.undone_by),
        list("not by who sent", &requirement.apart_from),
        requirement.merge.then(|| "before a merge".to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join("; ")
}

/// The limits, by the keys that `protocol set` takes; then those that it does not set.
pub(super) fn limits(definition: &Value) -> Vec<Vec<String>> {
    let rows = Setting::limits(definition);
    let set = rows.map(|(key, value, about)| row(&key, &value, about));
    let fixed = Setting::fixed_limits(definition).into_iter();
    let fixed = fixed.map(|(at, value)| row(&at, &value, "in protocol.json only"));
    set.chain(fixed).collect()
}

/// The decisions, in their order: the first whose conditions hold counts.
pub(super) fn decisions(definition: &Value) -> Vec<Vec<String>> {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items = items.iter().map(|item| {
                item.as_str()
                    .map_or_else(|| item.to_string(), str::to_owned)
            });
            items.collect::<Vec<_>>().join(" or ")
        }
        other => other.to_string(),
    };
    let all = definition["decisions"].as_array().into_iter().flatten();
    let rows = all.map(|rule| {
        let when = rule["when"].as_object().into_iter().flatten();
        let when: Vec<String> = when
            .map(|(key, value)| format!("{key} {}", word(value)))
            .collect();
        let to = rule["to"].as_str().map(|to| format!(" to {to}"));
        let action = word(&rule["action"]) + &to.unwrap_or_default();
        let when = match &when[..] {
            [] => "always".to_owned(),
            conditions => conditions.join(", "),
        };
        row(&when, &action, &word(&rule["why"]))
    });
    rows.collect()
}

fn row(name: &str, words: &str, remarks: &str) -> Vec<String> {
    vec![
        format!("  {}", one_line(name)),
        one_line(words),
        one_line(remarks),
    ]
}
