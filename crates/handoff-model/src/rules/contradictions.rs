//! Finds rules of a protocol that contradict each other or can never be satisfied: about contracts'
//! values, about handoffs, or about how an issue proceeds.
//!
//! Only certain contradictions are reported: whatever schemas, words and routes leave open is
//! assumed to be possible.

use std::collections::{BTreeMap, BTreeSet};

use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::text::cut;
use handoff_protocol::{
    Action, AgentKind, Circumstances, Comparison, ConsistencyRule, Definition, Policy, Protocol,
    Requirement, Route, State, Subject, Term, Words, schema_has, schema_values,
};
use serde_json::{Value, json};

use crate::rules::mistakes::accepts;
use crate::rules::template_check::binding;
use crate::value::scalar;

/// Finds contradictions; `position` returns the line and column of a path in the file.
pub(super) struct Contradictions<'a, P> {
    pub(super) protocol: &'a Protocol,
    pub(super) schemas: &'a [Option<Value>],
    pub(super) position: P,
}

impl<P: Fn(&str) -> Option<(u32, u32)>> Contradictions<'_, P> {
    /// Every contradiction, with the line and column of both rules.
    pub(super) fn find(&self) -> Vec<Finding> {
        let mut found = self.consistency();
        found.extend(self.decisions());
        found.extend(self.requirements());
        found.extend(self.ways());
        found
    }

    fn definition(&self) -> &Definition {
        self.protocol.definition()
    }

    /// A finding; `others` are the names and paths of the other rules that take part.
    fn finding<'o>(
        &self,
        at: String,
        text: String,
        others: impl IntoIterator<Item = (&'o str, String)>,
    ) -> Finding {
        let others = others
            .into_iter()
            .map(|(name, at)| match (self.position)(&at) {
                Some((line, column)) => format!(" `{name}`, in line {line}, column {column}"),
                None => format!(" `{name}`"),
            });
        let text = text + &others.collect::<Vec<_>>().join(", and");
        let fix = "change what it says, or where it applies";
        let mut finding = Finding::error(FindingCode::ProtocolContradiction, at, text).fix(fix);
        (finding.line, finding.column) = (self.position)(&finding.path).unzip();
        finding
    }

    /// The contract types with all the places that a rule reads, and their schemas.
    fn types_of(&self, rule: &ConsistencyRule) -> Vec<(&str, &Value)> {
        let contracts = self.definition().contracts.iter().zip(self.schemas);
        let types = contracts.filter_map(|(kind, schema)| Some((&*kind.name, schema.as_ref()?)));
        let is_of = |name: &str| rule.of.is_empty() || rule.of.iter().any(|of| of == name);
        types
            .filter(|(name, schema)| is_of(name) && has_places(schema, rule))
            .collect()
    }

    /// Consistency rules that no contract can satisfy, alone or together.
    fn consistency(&self) -> Vec<Finding> {
        let is_each_known = self.schemas.iter().all(Option::is_some);
        let (mut found, mut sound) = (Vec::new(), Vec::<(usize, &ConsistencyRule)>::new());
        let mut pairs = BTreeSet::new();
        let rules = self.definition().consistency.iter().enumerate();
        for (j, rule) in rules.filter(|(_, rule)| rule.policy != Policy::Off) {
            let (at, name) = (format!("/consistency/{j}"), &rule.name);
            let mut applies = self.types_of(rule);
            let is_known = is_each_known && !applies.is_empty();
            applies.retain(|(_, schema)| impossible(schema, &[rule], &[]).is_none());
            let mut alone = applies.iter().filter_map(|(kind, schema)| {
                let (term, why) = impossible(schema, &[rule], &[rule])?;
                Some(format!("rule `{name}` can never hold: no `{term}` that a contract of type `{kind}` can have obeys it{why}"))
            });
            if let Some(text) = alone.next() {
                let finding = self.finding(at, text, None);
                found.push(weighed(finding, &[rule]));
                continue;
            } else if applies.is_empty() && is_known {
                let text = format!(
                    "rule `{name}` applies to no contract: none can have what its `when` asks"
                );
                let mut finding = self.finding(at, text, None);
                // Only a warning: its contract types may have been removed.
                finding.severity = Severity::Warning;
                found.push(finding);
                continue;
            }
            if is_known {
                found.extend(self.idle(&at, rule, &applies));
                found.extend(self.compares_nothing(&at, rule, &applies));
                found.extend(self.text_with_number(&at, rule, &applies));
            }
            for (i, other) in &sound {
                let both = [*other, rule];
                if !implies(rule, other) && !implies(other, rule) {
                    continue;
                }
                let types = applies
                    .iter()
                    .filter(|one| self.types_of(other).contains(one));
                let mut conflicts = types.filter_map(|(kind, schema)| {
                    // A pair is reported only if each of its rules can be satisfied alone.
                    let alone = |one| impossible(schema, &both, &[one]).is_some();
                    let is_of_both = !alone(other) && !alone(rule);
                    let (term, _) = impossible(schema, &both, &both).filter(|_| is_of_both)?;
                    Some(format!("rule `{name}` contradicts another, so that no `{term}` in a contract of type `{kind}` obeys both:"))
                });
                if let Some(text) = conflicts.next() {
                    let other = Some((&*other.name, format!("/consistency/{i}")));
                    found.push(weighed(self.finding(at.clone(), text, other), &both));
                    pairs.insert([*i, j]);
                }
            }
            sound.push((j, rule));
        }
        found.extend(self.together(&sound, &pairs));
        found
    }

    /// A comparison of numbers with a term that is one in no contract. Only a warning: such a rule
    /// refuses nothing.
    fn compares_nothing(
        &self,
        at: &str,
        rule: &ConsistencyRule,
        types: &[(&str, &Value)],
    ) -> Option<Finding> {
        let [one, two] = rule.compare.terms();
        let numbers = match &rule.compare {
            Comparison::AtMost(..) => vec![one, two],
            Comparison::Lasts(..) => vec![two],
            _ => return None,
        };
        let is_none = |term: &&Term| {
            let mut types = types.iter();
            types.all(|(_, schema)| Domain::of(term, schema).no_number)
        };
        let term = numbers.into_iter().find(is_none)?;
        let (name, compare) = (&rule.name, rule.compare.as_str());
        let text = format!(
            "rule `{name}` compares nothing: `{compare}` takes a number, and `{term}` is never one"
        );
        let mut finding = self.finding(at.to_owned(), text, None);
        finding.severity = Severity::Warning;
        Some(finding.fix(
            "compare a number, such as a text's with `|number`, or a list's length with `|count`",
        ))
    }

    /// A rule that asks of a text to be a number's: a warning, as a text may be written so.
    fn text_with_number(
        &self,
        at: &str,
        rule: &ConsistencyRule,
        types: &[(&str, &Value)],
    ) -> Option<Finding> {
        if !matches!(rule.compare, Comparison::Same(..)) || types.is_empty() {
            return None;
        }
        let [one, two] = rule.compare.terms();
        let is_apart = |text: &Term, number: &Term| {
            types.iter().all(|(_, schema)| {
                let (text, number) = (Domain::of(text, schema), Domain::of(number, schema));
                text.single && text.words.is_none() && text.is_no_digits() && number.number
            })
        };
        let (text, number) = match () {
            () if is_apart(one, two) => (one, two),
            () if is_apart(two, one) => (two, one),
            () => return None,
        };
        let name = &rule.name;
        let text = format!(
            "rule `{name}` can hardly hold: `{text}` is a text that is no number, and `{number}` a number"
        );
        let mut finding = self.finding(at.to_owned(), text, None);
        finding.severity = Severity::Warning;
        Some(finding.fix("compare two fields of one kind"))
    }

    /// Rules that no contract obeys all at once, although it can obey each of them, and any two that
    /// `pairs` does not have.
    fn together(
        &self,
        rules: &[(usize, &ConsistencyRule)],
        pairs: &BTreeSet<[usize; 2]>,
    ) -> Vec<Finding> {
        let (mut found, mut told) = (Vec::new(), BTreeSet::<usize>::new());
        let types: Vec<_> = rules.iter().map(|(_, rule)| self.types_of(rule)).collect();
        for ((j, rule), own) in rules.iter().zip(&types) {
            for (kind, schema) in own {
                if told.contains(j) || impossible(schema, &[rule], &[]).is_some() {
                    continue;
                }
                let of_kind = |types: &[(&str, &Value)]| types.iter().any(|(name, _)| name == kind);
                let all = rules.iter().zip(&types).filter(|(_, types)| of_kind(types));
                let all: Vec<(usize, &ConsistencyRule)> = all.map(|(rule, _)| *rule).collect();
                let is_refused = |set: &[(usize, &ConsistencyRule)]| {
                    let set: Vec<&ConsistencyRule> = set.iter().map(|(_, rule)| *rule).collect();
                    refuses_all(schema, rule, &set)
                };
                if !is_refused(&all) {
                    continue;
                }
                // Each that is left is needed for the contradiction.
                let mut least = all.clone();
                for (i, _) in std::iter::once(&(*j, *rule)).chain(&all) {
                    let mut without = least.clone();
                    without.retain(|(other, _)| other != i);
                    if is_refused(&without) {
                        least = without;
                    }
                }
                let indexes: Vec<usize> = least.iter().map(|(i, _)| *i).collect();
                let is_told =
                    <[usize; 2]>::try_from(&*indexes).is_ok_and(|pair| pairs.contains(&pair));
                let [others @ .., (last, named)] = &least[..] else {
                    continue;
                };
                if others.is_empty() || is_told || !indexes.contains(j) {
                    continue;
                }
                told.extend(&indexes);
                let text = format!(
                    "rule `{}` contradicts others, so that no contract of type `{kind}` obeys all of them:",
                    named.name
                );
                let at = |i: &usize| format!("/consistency/{i}");
                let parts = others.iter().map(|(i, other)| (&*other.name, at(i)));
                let rules: Vec<&ConsistencyRule> = least.iter().map(|(_, rule)| *rule).collect();
                found.push(weighed(self.finding(at(last), text, parts), &rules));
            }
        }
        found
    }

    /// Warns about a rule that every contract obeys.
    fn idle(&self, at: &str, rule: &ConsistencyRule, types: &[(&str, &Value)]) -> Option<Finding> {
        let name = &rule.name;
        let [one, two] = rule.compare.terms().map(ToString::to_string);
        let is_itself = one == two
            && !matches!(
                rule.compare,
                Comparison::Lasts(..) | Comparison::OrderedBy(..) | Comparison::Distinct(..)
            );
        let why = if is_itself {
            format!("it compares `{one}` with itself")
        } else {
            let whys = types.iter().map(|(_, schema)| always(schema, rule));
            let whys: Option<Vec<String>> = whys.collect();
            whys?.into_iter().next()?
        };
        let text = format!("rule `{name}` always holds: {why}");
        let mut finding = self.finding(at.to_owned(), text, None);
        finding.severity = Severity::Warning;
        Some(finding)
    }

    /// Decision rules that never apply, or that an earlier one always precedes. Only warnings,
    /// because a changed limit may have caused it.
    fn decisions(&self) -> Vec<Finding> {
        let rules = &self.definition().decisions;
        let at = |i: usize| format!("/decisions/{i}");
        let name = |i: usize| format!("{} {}", rules[i].action.as_str(), i + 1);
        let found = rules.iter().enumerate().filter_map(|(j, rule)| {
            let own = format!("decision `{}`", name(j));
            if let Some((why, key)) = self.never(&rule.when) {
                let other = key.map(|key| (key, format!("/limits/retry/{key}")));
                return Some(self.finding(at(j), format!("{own} never applies: {why}"), other));
            }
            let mut earlier = rules[..j].iter();
            let i = earlier
                .position(|one| is_sure(one.action, &one.when) && covers(&one.when, &rule.when))?;
            let text = format!("{own} is never reached: what it asks for meets an earlier one,");
            Some(self.finding(at(j), text, Some((&*name(i), at(i)))))
        });
        let warned = found.map(|mut finding| {
            finding.severity = Severity::Warning;
            finding
        });
        warned.collect()
    }

    /// Why no handoff ever is in these circumstances, and the key of the retry setting that
    /// prevents it.
    fn never(&self, when: &Circumstances) -> Option<(&'static str, Option<&'static str>)> {
        let definition = self.definition();
        let retried = when.retries_left == Some(true);
        let retry = definition.retry().filter(|_| retried);
        let may_retry = || {
            definition
                .contracts
                .iter()
                .any(|kind| kind.max_retries.is_some())
        };
        let is_not_failed =
            when.to_decide || when.state.is_some_and(|state| state != State::Failed);
        let never = |code| retry.is_some_and(|retry| retry.never.contains(code));
        let decides = |kind| definition.agents.iter().any(|agent| agent.kind == kind);
        Some(if when.redriven_below == Some(0) {
            ("`redriven_below` is 0, and no count is below 0", None)
        } else if retried && is_not_failed {
            ("only what failed has retries left", None)
        } else if retry.is_some_and(|retry| retry.max_retries == Some(0)) && !may_retry() {
            ("nothing has retries left, by", Some("max_retries"))
        } else if !when.codes.is_empty() && when.codes.iter().all(never) {
            (
                "what fails with these codes has no retries left, by",
                Some("never"),
            )
        } else if when.to_decide && !decides(AgentKind::Orchestrator) {
            ("there is no agent of kind `orchestrator` to decide", None)
        } else {
            return None;
        })
    }

    /// Requirements that no contract meets, and pairs of them for a merge that undo each other.
    fn requirements(&self) -> Vec<Finding> {
        let all = self.definition().requirements.iter();
        let shown: Vec<_> = all.filter(|(_, of)| of.approved_by.is_empty()).collect();
        let undoes = |one: &Requirement, other: &Requirement| {
            one.merge
                && one
                    .shown_by
                    .iter()
                    .all(|kind| other.undone_by.contains(kind))
        };
        let found = shown.iter().enumerate().filter_map(|(j, (name, requirement))| {
            let at = |name: &str| format!("/requirements/{name}");
            if !requirement.shown_by.iter().any(|kind| self.counts(requirement, kind)) {
                let kinds = requirement.shown_by.join(" or ");
                let text = format!("requirement `{name}` can never be met: no `{kinds}` has a status that counts");
                return Some(self.finding(at(name), text, None));
            }
            let mut before = shown[..j].iter();
            let (other, _) = before.find(|(_, one)| undoes(one, requirement) && undoes(requirement, one))?;
            let text = format!("requirement `{name}` and another undo each other, so that nothing can be merged:");
            Some(self.finding(at(name), text, Some((other.as_str(), at(other)))))
        });
        found.collect()
    }

    /// Whether a contract of this type can have a status that meets the requirement.
    fn counts(&self, requirement: &Requirement, name: &str) -> bool {
        let definition = self.definition();
        let mut types = definition.contracts.iter().zip(self.schemas);
        let Some((kind, Some(schema))) = types.find(|(kind, _)| kind.name == name) else {
            return true;
        };
        let status = self.protocol.field(kind, |fields| &fields.status);
        let Some(at) = status.filter(|at| schema_has(schema, at)) else {
            return requirement.status.is_empty();
        };
        let Some(listed) = schema_values(schema, at) else {
            return true;
        };
        if !requirement.status.is_empty() {
            return requirement.status.iter().any(|word| listed.contains(word));
        }
        let required = binding(schema, "")
            .into_iter()
            .filter_map(|node| node["required"].as_array());
        let is_required = required
            .flatten()
            .any(|name| name.as_str() == at.strip_prefix('/'));
        let state = |word: &String| definition.words.status.get(word);
        !is_required
            || listed
                .iter()
                .any(|word| state(word).is_none_or(|state| *state == State::Completed))
    }

    /// What takes more handoffs than an issue may have: its end, or a contract that a requirement
    /// names.
    fn ways(&self) -> Vec<Finding> {
        let definition = self.definition();
        let limits = definition.limits.as_ref();
        let Some(most) = limits.and_then(|limits| limits.handoffs) else {
            return Vec::new();
        };
        let ends = |route: &Route| self.protocol.is_kind(route.to.as_str(), AgentKind::End);
        let fewest = fewest(self.protocol, false);
        let least = |is: &dyn Fn(&Route) -> bool| {
            let routes = definition.routes.iter().filter(|route| is(route));
            routes
                .filter_map(|route| Some(held(&fewest, route)? + u32::from(!ends(route))))
                .min()
        };
        let end = (
            "the end of an issue".to_owned(),
            "/agents".to_owned(),
            least(&ends),
        );
        let shown = definition.requirements.iter().map(|(name, of)| {
            let least = least(&|route| {
                route
                    .contracts
                    .iter()
                    .any(|kind| of.shown_by.contains(kind))
            });
            (
                format!("what requirement `{name}` asks for"),
                format!("/requirements/{name}"),
                least,
            )
        });
        let found = std::iter::once(end)
            .chain(shown)
            .filter_map(|(what, at, least)| {
                let least = least.filter(|least| *least > most)?;
                let text = format!("{what} takes {least} handoffs, more than the limit");
                Some(self.finding(at, text, Some(("handoffs", "/limits/handoffs".to_owned()))))
            });
        found.collect()
    }
}

/// The minimum number of handoffs with which each agent can send. Those that step in can from the
/// start, and events can act for others, unless it is about the usual way.
pub(super) fn fewest(protocol: &Protocol, is_usual: bool) -> BTreeMap<&str, u32> {
    let definition = protocol.definition();
    let agents = definition.agents.iter().map(|agent| &agent.id);
    let acts = agents.filter(|agent| protocol.steps_in(agent));
    let acts = acts.chain(definition.event_rules().iter().map(|rule| &rule.agent));
    let acts = acts.filter(|_| !is_usual);
    let mut fewest: BTreeMap<&str, u32> = acts.map(|agent| (agent.as_str(), 1)).collect();
    for route in definition.agents.iter().flat_map(|_| &definition.routes) {
        // Any agent may report a failure.
        if is_usual && route.from == "*" {
            continue;
        }
        let Some(held) = held(&fewest, route) else {
            continue;
        };
        let sender = route.opens.then_some(&*route.from);
        for agent in sender.into_iter().chain([route.to.as_str()]) {
            let known = fewest.entry(agent).or_insert(held + 1);
            *known = (held + 1).min(*known);
        }
    }
    fewest
}

/// The minimum number of handoffs before one on this route can be sent.
pub(super) fn held(fewest: &BTreeMap<&str, u32>, route: &Route) -> Option<u32> {
    match route.from.as_str() {
        _ if route.opens => Some(0),
        "*" => fewest.values().min().copied(),
        from => fewest.get(from).copied(),
    }
}

/// The finding, reduced to a warning if one of these rules only warns.
fn weighed(mut finding: Finding, rules: &[&ConsistencyRule]) -> Finding {
    if rules.iter().any(|rule| rule.policy == Policy::Warn) {
        finding.severity = Severity::Warning;
    }
    finding
}

/// Whether contracts with this schema can have all the places that a rule reads.
fn has_places(schema: &Value, rule: &ConsistencyRule) -> bool {
    let mut places = rule.places();
    places.all(|at| schema_has(schema, at))
}

/// Whether one rule applies only where the other does, too.
fn implies(rule: &ConsistencyRule, other: &ConsistencyRule) -> bool {
    other.when.iter().all(|(at, words)| {
        let own = rule.when.get(at);
        own.is_some_and(|own| own.texts().iter().all(|text| words.accept(text)))
    })
}

/// Whether an action can always be carried out when its rule applies.
fn is_sure(action: Action, when: &Circumstances) -> bool {
    let is = |state| when.state == Some(state);
    when.to_decide
        || match action {
            Action::Escalate | Action::FallBack => true,
            Action::Retry => when.retries_left == Some(true),
            Action::Ask => is(State::Blocked),
            Action::Advance | Action::ProceedPartial => is(State::Completed),
            Action::Skip | Action::Terminate => {
                when.state.is_some_and(|state| !state.is_terminal())
            }
            Action::Reassign => false,
        }
}

/// Whether one set of circumstances includes every case of another one.
fn covers(wide: &Circumstances, narrow: &Circumstances) -> bool {
    fn any<T: PartialEq>(wide: &[T], narrow: &[T]) -> bool {
        wide.is_empty() || !narrow.is_empty() && narrow.iter().all(|one| wide.contains(one))
    }
    fn same<T: PartialEq>(wide: Option<T>, narrow: Option<T>) -> bool {
        wide.is_none() || wide == narrow
    }
    let failed = narrow
        .retries_left
        .filter(|left| *left)
        .map(|_| State::Failed);
    wide.to_decide == narrow.to_decide
        && same(wide.state, narrow.state.or(failed))
        && any(&wide.codes, &narrow.codes)
        && any(&wide.status, &narrow.status)
        && any(&wide.priority, &narrow.priority)
        && any(&wide.recommends, &narrow.recommends)
        && same(wide.recoverable, narrow.recoverable)
        && same(wide.retries_left, narrow.retries_left)
        && (wide.after_seconds.is_none() || narrow.after_seconds >= wide.after_seconds)
        && same(
            wide.redriven_below,
            narrow.redriven_below.max(wide.redriven_below),
        )
        && wide
            .not_to
            .iter()
            .all(|agent| narrow.not_to.contains(agent))
        && wide
            .reached
            .iter()
            .all(|round| narrow.reached.contains(round))
}

/// Numbers as texts, of several lengths.
const NUMBERS: [&str; 7] = ["1", "20", "300", "4000", "56789", "1.5", "-1"];

/// The possible values of a term.
#[derive(Clone, Default, PartialEq)]
struct Domain {
    /// Whether it is a single scalar.
    single: bool,
    /// Whether it is a number; below, its minimum and maximum.
    number: bool,
    /// Whether it is certainly not a number.
    no_number: bool,
    least: Option<f64>,
    most: Option<f64>,
    /// The allowed values, if they are known, and the excluded ones.
    words: Option<BTreeSet<String>>,
    without: BTreeSet<String>,
    /// What the schema asks of a text.
    texts: Vec<Value>,
}

impl Domain {
    /// The values of a term that a contract type's schema allows.
    fn of(term: &Term, schema: &Value) -> Self {
        let mut domain = Self::default();
        if let Subject::Fixed(_) = term.subject() {
            let values = term.own_values(&Value::Null).unwrap_or_default();
            domain.single = values.len() == 1;
            let number = values
                .first()
                .and_then(Value::as_f64)
                .filter(|_| domain.single);
            (domain.number, domain.least, domain.most) = (number.is_some(), number, number);
            domain.no_number = number.is_none();
            domain.words = Some(values.iter().map(word).collect());
        } else if term.is_count() {
            (domain.single, domain.number, domain.least) = (true, true, Some(0.0));
        } else if let Some(at) = term.place().filter(|_| !term.is_filtered()) {
            domain = Self::at(at, schema);
            // Of a list, this is each item.
            domain.single &= term.is_whole_place();
            domain.number &= term.is_whole_place();
        } else {
            domain.no_number = term.is_text();
        }
        domain
    }

    /// The values at a pointer that a schema allows.
    fn at(pointer: &str, schema: &Value) -> Self {
        let mut domain = Self::default();
        for node in binding(schema, pointer) {
            let types = node["type"]
                .as_array()
                .map_or(std::slice::from_ref(&node["type"]), Vec::as_slice);
            let all = |known: &[&str]| {
                types
                    .iter()
                    .all(|t| t.as_str().is_some_and(|t| known.contains(&t)))
            };
            domain.single |= all(&["string", "number", "integer", "boolean", "null"]);
            domain.number |= all(&["number", "integer"]);
            if all(&["boolean"]) {
                domain.keep(&["true", "false"].map(str::to_owned).into());
            }
            domain.no_number |= all(&["string", "boolean", "null", "array", "object"]);
            domain.bound(node["minimum"].as_f64(), node["maximum"].as_f64());
            domain.bound(
                node["exclusiveMinimum"].as_f64(),
                node["exclusiveMaximum"].as_f64(),
            );
            for key in ["pattern", "minLength", "maxLength"] {
                let given = node.get(key).map(|given| json!({ (key): given }));
                domain.texts.extend(given);
            }
            if let Some(list) = listed(node) {
                let numbers: Option<Vec<f64>> = list.iter().map(|value| value.as_f64()).collect();
                if let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty()) {
                    domain.number = true;
                    let least = numbers.iter().copied().reduce(f64::min);
                    domain.bound(least, numbers.into_iter().reduce(f64::max));
                }
                domain.no_number |= !list.iter().any(|value| value.is_number());
                domain.keep(&list.into_iter().map(word).collect());
            }
        }
        domain
    }

    /// Restricts it to these values.
    fn keep(&mut self, words: &BTreeSet<String>) {
        self.single = true;
        let both = self.words.as_ref().map(|known| known & words);
        self.words = Some(both.unwrap_or_else(|| words.clone()));
    }

    /// Restricts it to a range of numbers.
    fn bound(&mut self, least: Option<f64>, most: Option<f64>) {
        let some =
            |known: Option<f64>, new: Option<f64>, of: fn(f64, f64) -> f64| match (known, new) {
                (Some(known), Some(new)) => Some(of(known, new)),
                (known, new) => known.or(new),
            };
        self.least = some(self.least, least, f64::max);
        self.most = some(self.most, most, f64::min);
    }

    /// What the schema asks of a text and this one does not meet. A number can be written otherwise.
    fn refuses(&self, word: &str) -> Option<&Value> {
        let text = Some(word).filter(|word| word.parse::<f64>().is_err())?;
        self.texts
            .iter()
            .find(|asked| !accepts(asked, &text.into()))
    }

    /// Whether it is a text, and the schema refuses each of some that are numbers.
    fn is_no_digits(&self) -> bool {
        let refuses = |text: &str| {
            let mut asked = self.texts.iter();
            asked.any(|asked| !accepts(asked, &text.into()))
        };
        self.no_number && NUMBERS.iter().all(|text| refuses(text))
    }

    /// Why no value is left, if the schema refuses the text that a rule asks for.
    fn why(&self) -> Option<String> {
        let words = self.words.iter().flatten();
        let refused = words
            .filter_map(|word| Some((word, self.refuses(word)?)))
            .next();
        refused.map(|(word, asked)| {
            format!(
                ": its schema has {asked}, which refuses `{}`",
                cut(word, 40)
            )
        })
    }

    /// What the schema lists, or its range.
    fn allowed(&self) -> Option<String> {
        let number = |at: Option<f64>| at.map(|at| at.to_string()).unwrap_or_default();
        match &self.words {
            Some(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let words = cut(&words.join("`, `"), 60);
                Some(format!(": its schema allows `{words}`"))
            }
            None if self.least.is_some() || self.most.is_some() => Some(format!(
                ": its schema allows {}..{}",
                number(self.least),
                number(self.most)
            )),
            None => self
                .number
                .then(|| ": its schema asks for a number".to_owned()),
        }
    }

    /// The values that are left, if they are listed.
    fn values(&self) -> Option<Vec<&String>> {
        let is_within = |n: f64| {
            self.least.is_none_or(|least| n >= least) && self.most.is_none_or(|most| n <= most)
        };
        let can = |word: &&String| {
            !self.without.contains(*word)
                && (!self.number || word.parse().is_ok_and(is_within))
                && self.refuses(word).is_none()
        };
        Some(self.words.as_ref()?.iter().filter(can).collect())
    }

    fn is_empty(&self) -> bool {
        let is_crossed = self.number
            && self
                .least
                .zip(self.most)
                .is_some_and(|(least, most)| least > most);
        is_crossed || self.values().is_some_and(|values| values.is_empty())
    }

    /// Restricts two terms to what a comparison between them allows.
    fn narrow(&mut self, compare: &Comparison, other: &mut Self) {
        // Except numbers, because a text can write the same number in several ways.
        let exclude = |from: &mut Self, words: &Self| {
            let words = words
                .words
                .iter()
                .flatten()
                .filter(|word| word.parse::<f64>().is_err());
            from.without.extend(words.cloned());
        };
        match compare {
            Comparison::Same(..) => {
                let (one, two) = (self.clone(), other.clone());
                for (this, that) in [(self, two), (other, one)] {
                    if let Some(words) = that.words.filter(|_| that.single) {
                        this.keep(&words);
                    }
                    if this.number && that.number {
                        this.bound(that.least, that.most);
                    }
                }
            }
            Comparison::AtMost(..) if self.number && other.number => {
                self.bound(None, other.most);
                other.bound(self.least, None);
            }
            Comparison::SubsetOf(_, list) if self.single && is_fixed(list) => {
                self.keep(&other.words.clone().unwrap_or_default());
            }
            Comparison::Distinct(_, list) if self.single && is_fixed(list) => exclude(self, other),
            Comparison::Distinct(list, _) if other.single && is_fixed(list) => exclude(other, self),
            _ => {}
        }
    }
}

/// The values that a schema lists for one place, by itself or in each of its alternatives.
fn listed(node: &Value) -> Option<Vec<&Value>> {
    let constant = node.get("const").map(std::slice::from_ref);
    let own = node["enum"].as_array().map(Vec::as_slice).or(constant);
    let own = own.map(|list| list.iter().collect::<Vec<_>>());
    let alternatives = ["oneOf", "anyOf"].into_iter();
    let mut alternatives = alternatives.filter_map(|key| node[key].as_array());
    let list = own.or_else(|| {
        let each =
            alternatives.find_map(|nodes| nodes.iter().map(listed).collect::<Option<Vec<_>>>());
        Some(each?.into_iter().flatten().collect())
    })?;
    let is_scalar = |value: &&Value| !value.is_array() && !value.is_object();
    list.iter().all(is_scalar).then_some(list)
}

/// The canonical text of a value: trimmed, with numbers normalized.
fn word(value: &Value) -> String {
    let text = scalar(value).unwrap_or_else(|| value.to_string());
    let text = text.trim();
    text.parse::<f64>()
        .map_or(text.to_owned(), |number| number.to_string())
}

/// The values with which these conditions are met, by place.
fn asked<'w>(
    schema: &Value,
    when: impl IntoIterator<Item = (&'w String, &'w Words)>,
) -> BTreeMap<String, Domain> {
    let mut domains: BTreeMap<String, Domain> = BTreeMap::new();
    for (at, words) in when {
        let domain = domains
            .entry(at.clone())
            .or_insert_with(|| Domain::at(at, schema));
        if !words.accept("*") {
            domain.keep(&canonical(words));
        }
    }
    domains
}

/// Whether no value with this schema meets these conditions.
pub(super) fn excludes(schema: &Value, when: &BTreeMap<String, Words>) -> bool {
    asked(schema, when).values().any(Domain::is_empty)
}

fn canonical(words: &Words) -> BTreeSet<String> {
    let texts = words.texts().iter();
    texts.map(|text| word(&text.as_str().into())).collect()
}

/// A term for which no value is possible, if contracts with this schema to which the rules `when`
/// apply must satisfy the rules `then`; and why, if the schema refuses a text.
fn impossible(
    schema: &Value,
    when: &[&ConsistencyRule],
    then: &[&ConsistencyRule],
) -> Option<(String, String)> {
    let mut domains = asked(schema, when.iter().flat_map(|rule| &rule.when));
    // Again for each, because a later rule may restrict a term of an earlier one.
    for _ in 0..=then.len() {
        let before = domains.clone();
        for rule in then {
            let terms = rule.compare.terms();
            let [mut left, mut right] = terms.map(|term| {
                let known = domains.get(&term.to_string()).cloned();
                known.unwrap_or_else(|| Domain::of(term, schema))
            });
            left.narrow(&rule.compare, &mut right);
            let both = terms.into_iter().zip([left, right]);
            let open = both.filter(|(term, _)| !is_fixed(term));
            domains.extend(open.map(|(term, domain)| (term.to_string(), domain)));
        }
        if domains == before {
            break;
        }
    }
    let mut empty = domains.into_iter().filter(|(_, domain)| domain.is_empty());
    let terms = || then.iter().flat_map(|rule| rule.compare.terms());
    empty
        .next()
        .map(|(name, domain)| {
            let term = terms().find(|term| term.to_string() == name);
            let allowed = term.map(|term| Domain::of(term, schema).allowed());
            let why = domain.why().or_else(|| allowed.flatten());
            (name, why.unwrap_or_default())
        })
        .or_else(|| Some((opposed(then)?, String::new())))
}

/// Why every contract with this schema obeys a rule, if that is certain. A rule may repeat the
/// values that a schema lists.
fn always(schema: &Value, rule: &ConsistencyRule) -> Option<String> {
    let [one, two] = rule.compare.terms();
    let domain = |term: &Term| {
        let mut domain = Domain::of(term, schema);
        let words = rule.when.get(&term.to_string());
        if let Some(words) = words.filter(|words| !words.accept("*")) {
            domain.keep(&canonical(words));
        }
        domain
    };
    let (left, right) = (domain(one), domain(two));
    let (most, least) = left.most.zip(right.least)?;
    let is_compared = matches!(rule.compare, Comparison::AtMost(..)) && left.number && right.number;
    let (term, of) = match one.subject() {
        Subject::Fixed(_) => (two, &right),
        _ => (one, &left),
    };
    let allowed = || of.allowed().unwrap_or_default();
    (is_compared && most <= least).then(|| format!("every `{term}` obeys it{}", allowed()))
}

fn is_fixed(term: &Term) -> bool {
    matches!(term.subject(), Subject::Fixed(_))
}

/// A term that a rule requires to differ from itself, or from what other rules require it to be
/// equal to; empty lists are not what an author means.
fn opposed(rules: &[&ConsistencyRule]) -> Option<String> {
    use Comparison::{Distinct, EqualSets, Same, SubsetOf};
    let terms = |compare: &Comparison| compare.terms().map(ToString::to_string);
    rules.iter().find_map(|not| {
        let Distinct(one, _) = &not.compare else {
            return None;
        };
        let [first, second] = terms(&not.compare);
        if first == second && !is_fixed(one) {
            return Some(first);
        }
        let pair = rules.iter().find_map(|is| {
            let other = terms(&is.compare);
            let is_equal = matches!(is.compare, Same(..) | EqualSets(..) | SubsetOf(..));
            let is_pair = other == [&*first, &*second] || other == [&*second, &*first];
            (is_equal && is_pair).then(|| other[0].clone())
        });
        // What is equal to the first term, over several rules.
        let mut equal = BTreeSet::from([first.clone()]);
        for _ in rules {
            let rules = rules
                .iter()
                .filter(|is| matches!(is.compare, Same(..) | EqualSets(..)));
            for both in rules.map(|is| terms(&is.compare)) {
                if both.iter().any(|term| equal.contains(term)) {
                    equal.extend(both);
                }
            }
        }
        pair.or_else(|| equal.contains(&second).then_some(first))
    })
}

/// Whether these rules refuse each contract with this schema to which the rule `applied` applies.
fn refuses_all(schema: &Value, applied: &ConsistencyRule, rules: &[&ConsistencyRule]) -> bool {
    let also: Vec<&ConsistencyRule> = rules
        .iter()
        .copied()
        .filter(|rule| implies(applied, rule))
        .collect();
    let when: Vec<&ConsistencyRule> = also.iter().copied().chain([applied]).collect();
    impossible(schema, &when, &also).is_some()
        || Choices::of(schema, applied, rules).is_some_and(|choices| !choices.any())
}

/// The combinations of values of those terms whose values are listed.
#[derive(Default)]
struct Choices<'r> {
    /// The terms, and their values; none for a place that a contract may lack.
    terms: BTreeMap<String, Option<usize>>,
    values: Vec<Vec<Option<String>>>,
    /// The rules about these terms alone: with the greatest index of a term that each reads.
    rules: Vec<(usize, Case<'r>)>,
}

/// A rule, with the indexes of the terms that it reads.
struct Case<'r> {
    when: Vec<(usize, BTreeSet<String>)>,
    compare: &'r Comparison,
    terms: [Result<usize, Vec<String>>; 2],
}

/// The most choices that are tried; beyond, some combination is assumed to be possible.
const MOST_CHOICES: u32 = 20_000;

impl<'r> Choices<'r> {
    /// The combinations for contracts to which the rule `applied` applies, and which have all that
    /// these rules compare; `None` if the rules say nothing about listed values.
    fn of(
        schema: &Value,
        applied: &ConsistencyRule,
        rules: &[&'r ConsistencyRule],
    ) -> Option<Self> {
        let compared = rules.iter().flat_map(|rule| rule.compare.terms());
        let compared: BTreeSet<&str> = compared.filter_map(Term::place).collect();
        let is_there = |at: &str| {
            applied.when.contains_key(at) || compared.contains(at) || is_required(schema, at)
        };
        let mut all = Self::default();
        for rule in rules {
            // What is asked of `applied`, too, is met.
            let open = rule.when.iter().filter(|(at, words)| {
                let known = applied.when.get(*at).map(Words::texts).unwrap_or_default();
                let is_met = !known.is_empty() && known.iter().all(|text| words.accept(text));
                !(is_met || words.accept("*") && is_there(at))
            });
            let when = open.map(|(at, words)| {
                let domain = (Domain::at(at, schema), is_there(at));
                Some((all.index(at.clone(), domain, applied)?, canonical(words)))
            });
            let when: Option<Vec<_>> = when.collect();
            let [one, two] = rule.compare.terms().map(|term| {
                if is_fixed(term) {
                    let values = term.own_values(&Value::Null)?;
                    return Some(Err(values.iter().map(word).collect()));
                }
                let domain = (Domain::of(term, schema), true);
                all.index(term.to_string(), domain, applied).map(Ok)
            });
            let (Some(when), Some(one), Some(two)) = (when, one, two) else {
                continue;
            };
            let (terms, compare) = ([one, two], &rule.compare);
            let read = terms.iter().filter_map(|term| term.as_ref().ok());
            let last = read.chain(when.iter().map(|(index, _)| index)).max();
            all.rules.extend(last.copied().map(|last| {
                (
                    last,
                    Case {
                        when,
                        compare,
                        terms,
                    },
                )
            }));
        }
        (!all.rules.is_empty()).then_some(all)
    }

    /// The index of a term, if its values are listed.
    fn index(
        &mut self,
        term: String,
        (mut domain, is_there): (Domain, bool),
        applied: &ConsistencyRule,
    ) -> Option<usize> {
        if let Some(known) = self.terms.get(&term) {
            return *known;
        }
        let words = applied.when.get(&term).filter(|words| !words.accept("*"));
        if let Some(words) = words {
            domain.keep(&canonical(words));
        }
        // A text can write a number in several ways.
        let is_plain = |text: &&String| domain.number || text.parse::<f64>().is_err();
        let values = domain.values().filter(|_| domain.single);
        let values = values.filter(|values| values.iter().all(is_plain));
        let index = values.map(|values| {
            let values = values.into_iter().cloned().map(Some);
            let lacking = (!is_there).then_some(None);
            self.values.push(values.chain(lacking).collect());
            self.values.len() - 1
        });
        self.terms.insert(term, index);
        index
    }

    /// Whether a combination obeys all rules.
    fn any(&self) -> bool {
        let mut left = MOST_CHOICES;
        self.is_possible(&mut Vec::new(), &mut left)
    }

    fn is_possible<'c>(&'c self, chosen: &mut Vec<Option<&'c String>>, left: &mut u32) -> bool {
        let Some(values) = self.values.get(chosen.len()) else {
            return true;
        };
        values.iter().any(|value| {
            if *left == 0 {
                return true;
            }
            *left -= 1;
            let at = chosen.len();
            chosen.push(value.as_ref());
            let mut rules = self.rules.iter().filter(|(last, _)| *last == at);
            let is_possible =
                rules.all(|(_, case)| case.is_obeyed(chosen)) && self.is_possible(chosen, left);
            chosen.pop();
            is_possible
        })
    }
}

/// Whether each contract with this schema has this place.
pub(super) fn is_required(schema: &Value, at: &str) -> bool {
    let mut above = String::new();
    at.split('/').skip(1).all(|part| {
        let nodes = binding(schema, &above);
        above += &format!("/{part}");
        let mut required = nodes.iter().filter_map(|node| node["required"].as_array());
        required.any(|names| names.iter().any(|name| name == part))
    })
}

impl Case<'_> {
    fn is_obeyed(&self, chosen: &[Option<&String>]) -> bool {
        let applies = |(index, words): &(usize, BTreeSet<String>)| {
            chosen[*index].is_some_and(|text| words.contains("*") || words.contains(text))
        };
        if !self.when.iter().all(applies) {
            return true;
        }
        let [one, two] = self.terms.each_ref().map(|term| match term {
            Ok(index) => chosen[*index].into_iter().collect::<Vec<_>>(),
            Err(words) => words.iter().collect(),
        });
        if one.is_empty() || two.is_empty() {
            return true;
        }
        let number = |words: &[&String]| words.first()?.parse::<f64>().ok();
        let is_in = |one: &[&String], two: &[&String]| one.iter().all(|word| two.contains(word));
        match self.compare {
            Comparison::Same(..) => one == two,
            Comparison::AtMost(..) => {
                let numbers = number(&one).zip(number(&two));
                numbers.is_none_or(|(one, two)| one <= two)
            }
            Comparison::SubsetOf(..) => is_in(&one, &two),
            Comparison::EqualSets(..) => is_in(&one, &two) && is_in(&two, &one),
            Comparison::Distinct(..) => !one.iter().any(|word| two.contains(word)),
            Comparison::OrderedBy(..) | Comparison::Lasts(..) => true,
        }
    }
}
