//! Evaluates a protocol's consistency rules on a contract and its issue.

use std::borrow::Cow;

use handoff_base::Moment;
use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::ids::WorkerId;
use handoff_base::pointer::lookup;
use handoff_base::text::quoted;
use handoff_contract::{FILL, Source};
use handoff_protocol::{
    Comparison, ConsistencyRule, ContractType, Definition, FactRule, Known, Policy, Protocol,
    Subject, TaskState, Term, Words,
};
use serde_json::{Value, json};

use crate::contract::Opened;
use crate::record::{Contradiction, Issue, Record, Task, View};
use crate::value::scalar;

/// The maximum number of list items named in a finding.
const NAMED: usize = 3;

/// The maximum length of a value shown in a finding, in characters.
const SHOWN: usize = 80;

impl From<Broken<'_>> for Contradiction {
    fn from(broken: Broken<'_>) -> Self {
        Self {
            rule: broken.rule.name.clone(),
            path: broken.finding.path,
            message: broken.finding.message,
        }
    }
}

/// What a contract is compared with.
pub(crate) struct Ground<'a, V> {
    /// The issue as it is before the contract; `None` if the contract opens it.
    pub issue: Option<&'a Issue>,
    /// Its protocol.
    pub definition: &'a Definition,
    /// Its handoffs.
    pub view: &'a V,
    /// The worker that sends the contract, if known.
    pub worker: Option<&'a WorkerId>,
    /// The handoff that its sender holds, or the request that it answers.
    pub held: Option<&'a Record>,
    /// The number of the failed handoff whose contract this one corrects.
    pub replaces: Option<u32>,
    /// The time of the comparison.
    pub at: Moment,
    /// Whether an outside event states the contract: it outranks what agents stated.
    pub is_proved: bool,
}

/// A broken rule.
pub(crate) struct Broken<'p> {
    rule: &'p ConsistencyRule,
    /// What is wrong: an error or a warning, by the rule's policy.
    pub finding: Finding,
}

impl Broken<'_> {
    /// The places in the contract that the rule compares.
    pub(crate) fn places(&self) -> impl Iterator<Item = &str> {
        let terms = self.rule.compare.terms().into_iter();
        terms.filter_map(Term::place).map(first_place)
    }

    /// Whether it is broken whatever belongs at faulty places: they are in a list whose items the rule
    /// counts. `faults` has the number of those of a term that count; none if the list itself is faulty.
    pub(crate) fn is_certain(
        &self,
        contract: &Value,
        faults: impl Fn(&str) -> Option<usize>,
    ) -> bool {
        let range = |term: &Term| {
            let [value] = &term.own_values(contract)?[..] else {
                return None;
            };
            let least: f64 = scalar(value)?.parse().ok()?;
            let open = term.place().map_or(Some(0), &faults)?;
            let open = u32::try_from(open).ok()?;
            (open == 0 || term.is_count()).then(|| (least, least + f64::from(open)))
        };
        let [Some((least, most)), Some((other_least, other_most))] =
            self.rule.compare.terms().map(range)
        else {
            return false;
        };
        match self.rule.compare {
            Comparison::Same(..) => most < other_least || other_most < least,
            Comparison::AtMost(..) => least > other_most,
            _ => false,
        }
    }

    /// The facts that the rule compares.
    pub(crate) fn facts(&self) -> impl Iterator<Item = &str> {
        let terms = self.rule.compare.terms().into_iter();
        terms.filter_map(|term| match term.subject() {
            Subject::Fact(name, _) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// The rules that a contract breaks by itself, without its issue.
pub(crate) fn own<'p>(
    protocol: &'p Protocol,
    kind: &ContractType,
    contract: &Value,
) -> Vec<Broken<'p>> {
    let rules = applying(protocol, kind, contract).filter(|rule| rule.is_own());
    let broken = rules.filter_map(|rule| {
        let [left, right] = rule.compare.terms();
        let left = Operand::own(left, contract)?;
        let right = Operand::own(right, contract)?;
        compared(rule, &left, &right)
    });
    broken.collect()
}

/// The rules that a contract breaks together with facts of its issue.
///
/// # Errors
/// When a handoff or a contract can't be read.
pub(crate) fn known<'p, V: View<E>, E>(
    protocol: &'p Protocol,
    kind: &ContractType,
    contract: &Value,
    ground: &Ground<'_, V>,
) -> Result<Vec<Broken<'p>>, E> {
    let mut broken = Vec::new();
    for rule in applying(protocol, kind, contract).filter(|rule| !rule.is_own()) {
        let terms = rule.compare.terms();
        // Fast path: often the issue has no such fact.
        if !terms.iter().all(|term| ground.may_know(term)) {
            continue;
        }
        let mut operands = Vec::new();
        for term in terms {
            operands.extend(ground.operand(kind, contract, term)?);
        }
        let [left, right] = &mut operands[..] else {
            continue;
        };
        if compared(rule, left, right).is_none() {
            continue;
        }
        // Finding a fact's source is slow, so it is done only after a contradiction.
        let mut is_outdated = false;
        for operand in [&mut *left, &mut *right] {
            is_outdated |= !ground.find_source(protocol, operand)?;
        }
        if !is_outdated {
            broken.extend(compared(rule, left, right));
        }
    }
    Ok(broken)
}

/// The rules of a protocol that apply to a contract.
fn applying<'p, 'c>(
    protocol: &'p Protocol,
    kind: &'c ContractType,
    contract: &'c Value,
) -> impl Iterator<Item = &'p ConsistencyRule> {
    let rules = protocol.definition().consistency.iter();
    rules.filter(move |rule| {
        let is_of = rule.of.is_empty() || rule.of.contains(&kind.name);
        let holds = |(at, words): (&String, &Words)| {
            let text = lookup(contract, at).map(shown_plain);
            text.is_some_and(|text| words.accept(&text))
        };
        is_of && rule.policy != Policy::Off && rule.when.iter().all(holds)
    })
}

/// A term's value, with its name for findings.
struct Operand<'t> {
    term: &'t Term,
    values: Vec<Value>,
    /// The name of a value from outside the contract; for a fact, the fact's name.
    known_as: String,
}

impl<'t> Operand<'t> {
    fn own(term: &'t Term, contract: &Value) -> Option<Self> {
        Some(Self {
            term,
            values: term.own_values(contract)?,
            known_as: String::new(),
        })
    }

    fn known(term: &'t Term, values: Vec<Value>, known_as: impl Into<String>) -> Option<Self> {
        Some(Self {
            term,
            values: term.filtered(values)?,
            known_as: known_as.into(),
        })
    }

    /// The operand's name in a finding; for a constant, its value.
    fn called(&self) -> Cow<'_, str> {
        match self.term.subject() {
            Subject::Place(at) => format!("`{}`", at.trim_start_matches('/')).into(),
            Subject::Fixed(_) => self.shown().into(),
            _ => self.known_as.as_str().into(),
        }
    }

    fn is_fixed(&self) -> bool {
        matches!(self.term.subject(), Subject::Fixed(_))
    }

    /// What its filters take of the value, in brackets.
    fn part(&self) -> String {
        let parts = self.term.to_string();
        let part = parts.split('|').skip(1).collect::<Vec<_>>().join(", ");
        match part.as_str() {
            "" => String::new(),
            "failing" | "vulnerable" => " (failures)".to_owned(),
            part => format!(" ({part})"),
        }
    }

    /// How many items of a list have a value, in words and as a number, if that is what it counts.
    fn matching(&self) -> Option<(String, String)> {
        let Subject::Place(at) = self.term.subject() else {
            return None;
        };
        let (list, member) = at.trim_start_matches('/').split_once("/*/")?;
        let term = self.term.to_string();
        let filters: Vec<&str> = term.split('|').skip(1).collect();
        let [is, "count"] = filters[..] else {
            return None;
        };
        let value = is.strip_prefix("is ")?;
        let count = self.shown();
        let items = match count.as_str() {
            "0" => format!("none of `{list}` has"),
            "1" => format!("1 of `{list}` has"),
            several => format!("{several} of `{list}` have"),
        };
        Some((format!("{items} {member} `{value}`"), count))
    }

    fn shown(&self) -> String {
        match &self.values[..] {
            [one] => shown(one),
            [] => "empty".to_owned(),
            several => listed(several.iter().map(shown)),
        }
    }
}

fn shown(value: &Value) -> String {
    let text = scalar(value).unwrap_or_else(|| value.to_string());
    let is_short = text.chars().nth(SHOWN).is_none();
    let text = if is_short {
        text
    } else {
        text.chars().take(SHOWN).chain(['…']).collect()
    };
    match value {
        Value::String(_) => quoted(&text),
        _ => text,
    }
}

impl<V> Ground<'_, V> {
    /// Whether a term can have a value: its fact is known, or its issue exists.
    fn may_know(&self, term: &Term) -> bool {
        match term.subject() {
            Subject::Fact(name, _) => self
                .issue
                .is_some_and(|issue| issue.fact(self.definition, name).is_some()),
            Subject::Known(..) => self.issue.is_some(),
            Subject::Place(_) | Subject::Fixed(_) => true,
        }
    }

    /// The value of a term; `None` if it has none.
    fn operand<'t, E>(
        &self,
        kind: &ContractType,
        contract: &Value,
        term: &'t Term,
    ) -> Result<Option<Operand<'t>>, E>
    where
        V: View<E>,
    {
        if term.is_own() {
            return Ok(Operand::own(term, contract));
        }
        let Some(issue) = self.issue else {
            return Ok(None);
        };
        let key = &issue.issue;
        Ok(match term.subject() {
            Subject::Fact(name, pointer) => issue.fact(self.definition, name).and_then(|fact| {
                let value = fact.value.pointer(pointer)?.clone();
                Operand::known(term, vec![value], format!("fact `{name}` of issue {key}"))
            }),
            Subject::Known(Known::Key, _) => Operand::known(
                term,
                vec![json!(key.as_str())],
                "the contract's issue".to_owned(),
            ),
            Subject::Known(Known::Age, _) => {
                let seconds = (self.at - issue.opened_at).num_seconds().max(0);
                Operand::known(
                    term,
                    vec![json!(seconds)],
                    format!("issue {key} has been open for"),
                )
            }
            Subject::Known(
                known @ (Known::Tasks | Known::TasksCompleted | Known::TasksRemaining),
                _,
            ) => {
                let what = match known {
                    Known::TasksCompleted => "completed",
                    Known::TasksRemaining => "remaining",
                    _ => "planned",
                };
                tasks(issue, kind, contract, *known).and_then(|tasks| {
                    Operand::known(term, tasks, format!("what the ledger has as {what}"))
                })
            }
            Subject::Known(Known::Workers, kinds) => {
                let mut workers = Vec::new();
                for number in 1..=issue.handoffs {
                    let Some(record) = self.view.record(number)? else {
                        continue;
                    };
                    let sent = record
                        .transitions
                        .first()
                        .and_then(|sent| sent.worker.as_ref());
                    if kinds
                        .split_whitespace()
                        .any(|kind| kind == record.contract_type)
                    {
                        workers.extend(sent.map(|worker| json!(worker.to_string())));
                    }
                }
                Operand::known(term, workers, format!("a worker that sent {kinds}"))
            }
            Subject::Known(Known::Worker, _) => self.worker.and_then(|worker| {
                Operand::known(
                    term,
                    vec![json!(worker.to_string())],
                    "the worker that sends it",
                )
            }),
            Subject::Known(Known::Retries, _) => self.held.and_then(|held| {
                Operand::known(
                    term,
                    vec![json!(held.retries())],
                    format!("the ledger's count of retries of {}", held.id),
                )
            }),
            Subject::Place(_) | Subject::Fixed(_) => None,
        })
    }

    /// Adds the source of a fact to its name. Returns `false` if the fact no longer counts: it was
    /// stated before the issue was reopened, by the contract that this one corrects, by one that was
    /// rejected or cancelled, or by an agent whom an event now contradicts.
    fn find_source<E>(&self, protocol: &Protocol, operand: &mut Operand<'_>) -> Result<bool, E>
    where
        V: View<E>,
    {
        let (Subject::Fact(name, _), Some(issue)) = (operand.term.subject(), self.issue) else {
            return Ok(true);
        };
        let known = issue.fact(self.definition, name);
        if let Some(note) = known.and_then(|fact| fact.note) {
            let by = match &note.event {
                Some(event) => format!("as event {event} told"),
                None => format!("as {} noted", note.by),
            };
            // The day: contradictions are recorded so.
            operand.known_as += &format!(", {by} on {},", note.at.date_naive());
            return Ok(true);
        }
        if self.is_proved {
            return Ok(false);
        }
        let rule = protocol.definition().facts.get(name).map(|fact| &fact.rule);
        let places: &[String] = match rule {
            Some(FactRule::Last(places) | FactRule::Newest { at: places, .. }) => places,
            // Such a fact comes from several contracts.
            _ => return Ok(true),
        };
        let mut is_withdrawn = false;
        for number in (1..=issue.handoffs).rev() {
            let Some(record) = self.view.record(number)? else {
                continue;
            };
            let bytes = self.view.contract(&record)?;
            if states(protocol, &bytes, places) {
                if record.is_turned_down() {
                    is_withdrawn = true;
                    continue;
                }
                operand.known_as += &format!(", by {} from {},", record.id, record.from);
                let is_corrected = self.replaces == Some(number);
                return Ok(!is_corrected
                    && issue
                        .reopened
                        .last()
                        .is_none_or(|last| number > last.handoffs));
            }
        }
        Ok(!is_withdrawn)
    }
}

/// Whether a contract has a value at one of these places.
fn states(protocol: &Protocol, contract: &[u8], places: &[String]) -> bool {
    let Ok(source) = Source::parse(contract) else {
        return false;
    };
    let wrapper = Opened::new(protocol, &source).wrapper;
    places
        .iter()
        .any(|at| source.probe(wrapper.as_deref(), at).is_some())
}

/// The tasks with the same parent as the contract's task: all, the completed or the remaining ones.
fn tasks(issue: &Issue, kind: &ContractType, contract: &Value, known: Known) -> Option<Vec<Value>> {
    let plan = kind.tasks.as_ref()?.read(contract);
    let parent = plan.parent.as_ref()?;
    let mut beside = issue
        .tasks
        .iter()
        .filter(|task| task.parent.as_ref() == Some(parent))
        .peekable();
    beside.peek()?;
    let done = |task: &&Task| {
        task.state == TaskState::Completed || plan.completes.as_ref() == Some(&task.id)
    };
    let found = beside.filter(|task| match known {
        Known::TasksCompleted => done(task),
        Known::TasksRemaining => !done(task),
        _ => true,
    });
    Some(found.map(|task| json!(task.id)).collect())
}

/// The finding for a rule, if the two operands break it.
fn compared<'p>(
    rule: &'p ConsistencyRule,
    left: &Operand<'_>,
    right: &Operand<'_>,
) -> Option<Broken<'p>> {
    let mut values = left.values.iter().chain(&right.values);
    if values.any(|value| value.as_str().is_some_and(|text| text.contains(FILL))) {
        return None;
    }
    let text = contradiction(&rule.compare, left, right)?;
    // A warning is recorded as it is worded.
    let counted = (rule.policy == Policy::Enforce).then(|| miscounted(&rule.compare, left, right));
    let text = counted.flatten().unwrap_or(text);
    let place = left.term.place().or(right.term.place()).unwrap_or_default();
    let mut finding = Finding::error(
        FindingCode::ContractInconsistent,
        first_place(place),
        format!("{text} (rule `{}`)", rule.name),
    );
    if rule.policy == Policy::Warn {
        finding.severity = Severity::Warning;
    }
    Some(Broken { rule, finding })
}

/// How two operands contradict each other, if the comparison fails.
fn contradiction(
    comparison: &Comparison,
    left: &Operand<'_>,
    right: &Operand<'_>,
) -> Option<String> {
    // Computed only after a failure: most comparisons succeed.
    let (called, other) = (|| left.called(), || right.called());
    match comparison {
        Comparison::Same(..) => {
            let mut pairs = left.values.iter().zip(&right.values);
            let differs = left.values.len() != right.values.len()
                || pairs.any(|(left, right)| !equal(left, right));
            // Names the contract's value first.
            differs.then(|| match left.term.place() {
                Some(_) => told(left, right),
                None => told(right, left),
            })
        }
        Comparison::AtMost(..) => {
            let number = |operand: &Operand<'_>| operand.values.first()?.as_f64();
            let over = number(left)? > number(right)?;
            let (value, most) = (left.shown(), right.shown());
            over.then(|| match (left.is_fixed(), right.is_fixed()) {
                (true, _) => format!(
                    "{}{} is {most}, and must be at least {value}",
                    other(),
                    right.part()
                ),
                (_, true) => format!(
                    "{}{} is {value}, and must be at most {most}",
                    called(),
                    left.part()
                ),
                _ => format!("{} is {value}, more than {} ({most})", called(), other()),
            })
        }
        Comparison::SubsetOf(..) => {
            let (items, of) = (items(left), items(right));
            let strange = items.into_iter().filter(|item| !of.contains(item));
            not_there(strange, left, right)
        }
        Comparison::EqualSets(..) => {
            let (one, two) = (items(left), items(right));
            let strange = one.iter().filter(|item| !two.contains(item)).cloned();
            let missing = two.iter().filter(|item| !one.contains(item)).cloned();
            not_there(strange, left, right).or_else(|| not_there(missing, right, left))
        }
        Comparison::OrderedBy(..) => out_of_order(left, right),
        Comparison::Lasts(..) => {
            let words = left.values.first().and_then(scalar)?;
            let seconds = right.values.first()?.as_i64()?;
            let (lasts, unit) = duration(&words)?;
            let differs = (lasts - seconds).abs() >= unit;
            differs.then(|| {
                let words = quoted(&words);
                if right.is_fixed() {
                    return format!("{} is {words}, and must be {seconds} s", called());
                }
                format!("{} is {words}, and {} {seconds} s", called(), other())
            })
        }
        Comparison::Distinct(..) => {
            let of = items(right);
            let shared = items(left).into_iter().find(|item| of.contains(item));
            shared.map(|item| {
                let item = quoted(&item);
                match (left.is_fixed(), right.is_fixed()) {
                    (_, true) => format!("{} is {item}", called()),
                    (true, _) => format!("{} is {item}", other()),
                    _ => format!("{} is {item}, which is {} too", called(), other()),
                }
            })
        }
    }
}

/// How many items of a list match, for a failed comparison with the contract's own count of them.
fn miscounted(comparison: &Comparison, left: &Operand<'_>, right: &Operand<'_>) -> Option<String> {
    let (counted, stated) = match right.matching() {
        Some(counted) => (counted, left),
        None => (left.matching()?, right),
    };
    if stated.is_fixed() || stated.term.place().is_none() || stated.term.is_count() {
        return None;
    }
    let (place, number) = (stated.called(), stated.shown());
    let is = match comparison {
        Comparison::Same(..) => format!("and {place} is {number}"),
        Comparison::AtMost(one, _) if one.is_count() => {
            format!("more than {place} says ({number})")
        }
        _ => return None,
    };
    let (items, count) = counted;
    Some(format!("{items}, {is}: set it to {count}"))
}

/// A pointer up to its first `*`.
fn first_place(place: &str) -> &str {
    place.split_once("/*").map_or(place, |(list, _)| list)
}

/// The message for two values that should be equal.
fn told(one: &Operand<'_>, other: &Operand<'_>) -> String {
    let said = format!("{}{} is {}", one.called(), one.part(), one.shown());
    let (part, shown) = (other.part(), other.shown());
    if other.is_fixed() {
        format!("{said}, and must be {shown} here")
    } else {
        format!("{said}, and {}{part} is {shown}", other.called())
    }
}

/// The names in an operand's values, as [`Comparison`] compares them.
fn items(operand: &Operand<'_>) -> Vec<String> {
    let values = operand.values.iter();
    let texts = values.flat_map(|value| match value {
        Value::Array(items) => items.iter().map(shown_plain).collect(),
        Value::Object(fields) => fields.keys().cloned().collect(),
        other => vec![shown_plain(other)],
    });
    texts.collect()
}

fn shown_plain(value: &Value) -> String {
    scalar(value).unwrap_or_else(|| value.to_string())
}

fn not_there(
    strange: impl Iterator<Item = String>,
    of: &Operand<'_>,
    in_: &Operand<'_>,
) -> Option<String> {
    let mut strange = strange.map(|item| shown(&Value::from(item))).peekable();
    strange.peek()?;
    let strange = listed(strange);
    let (called, other, has) = (of.called(), in_.called(), in_.shown());
    if of.is_fixed() {
        return Some(format!("{other} is {has}, and must have {strange}"));
    } else if in_.is_fixed() {
        return Some(format!("{called} has {strange}, and must have only {has}"));
    }
    Some(format!(
        "{called} has {strange}, which {other} does not have ({has})"
    ))
}

/// The first items as text, and the number of the others.
fn listed(items: impl Iterator<Item = String>) -> String {
    let mut items: Vec<String> = items.collect();
    let more = items.split_off(NAMED.min(items.len())).len();
    let more = (more > 0).then(|| format!(" and {more} more"));
    items.join(", ") + &more.unwrap_or_default()
}

/// The first item that comes before one of its dependencies, as text.
fn out_of_order(list: &Operand<'_>, graph: &Operand<'_>) -> Option<String> {
    let list_items = items(list);
    let graph = graph.values.first()?.as_object()?;
    for (i, item) in list_items.iter().enumerate() {
        let on = graph
            .get(item)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let mut on = on.map(shown_plain);
        if let Some(on) = on.find(|on| list_items[i + 1..].contains(on)) {
            return Some(format!(
                "{} has {} before {}, which it depends on",
                list.called(),
                quoted(item),
                quoted(&on)
            ));
        }
    }
    None
}

/// Whether two scalars are equal: numbers by value, others by text.
fn equal(one: &Value, other: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::String(text) => text.trim().parse::<f64>().ok(),
        other => other.as_f64(),
    };
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one.total_cmp(&other).is_eq(),
        _ => match (scalar(one), scalar(other)) {
            (Some(one), Some(other)) => one.trim() == other.trim(),
            _ => one == other,
        },
    }
}

/// The seconds in a duration such as `2 days 4 hours`, and those of its smallest unit.
fn duration(text: &str) -> Option<(i64, i64)> {
    const UNITS: [(&str, i64); 7] = [
        ("year", 31_536_000),
        ("week", 604_800),
        ("day", 86_400),
        ("hour", 3_600),
        ("min", 60),
        ("sec", 1),
        ("month", 2_592_000),
    ];
    let words: Vec<&str> = text
        .split([' ', ','])
        .filter(|word| !word.is_empty() && *word != "and")
        .collect();
    let (mut sum, mut smallest) = (0_i64, None::<i64>);
    for pair in words.chunks(2) {
        let [number, unit] = pair else {
            return None;
        };
        let (_, unit) = UNITS.iter().find(|(name, _)| unit.starts_with(name))?;
        let number: f64 = number
            .parse()
            .ok()
            .filter(|n: &f64| n.is_finite() && *n >= 0.0 && *n < 1e9)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "small numbers"
        )]
        let seconds = (number * *unit as f64) as i64;
        sum += seconds;
        smallest = Some(smallest.map_or(*unit, |known| known.min(*unit)));
    }
    Some((sum, smallest?))
}

#[cfg(test)]
mod tests {
    use super::{duration, equal};
    use serde_json::json;

    #[test]
    fn durations_have_seconds_and_a_smallest_unit() {
        for (text, expected) in [
            ("2 days 4 hours", Some((187_200, 3_600))),
            ("25 minutes", Some((1_500, 60))),
            ("1 hour and 30 min", Some((5_400, 60))),
            ("2 years", Some((63_072_000, 31_536_000))),
            ("0.5 days", Some((43_200, 86_400))),
            ("about a day", None),
            ("3", None),
            ("-1 day", None),
        ] {
            assert_eq!(duration(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_are_equal_by_value_and_the_rest_by_text() {
        assert!(equal(&json!(7), &json!("7")));
        assert!(equal(&json!("7.0"), &json!(7)));
        assert!(equal(&json!(" main "), &json!("main")));
        assert!(!equal(&json!("88.5%"), &json!("88.5")));
        assert!(!equal(&json!("a"), &json!("A")));
    }
}
