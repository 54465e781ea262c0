//! Contracts that the agents of a trial send.

use std::collections::{BTreeMap, BTreeSet};

use handoff::base::finding::{Finding, FindingCode};
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::pointer::parts;
use handoff::contract::Input;
use handoff::ledger::{Done, LedgerError, Offer};
use handoff::model::planner::Holder;
use handoff::model::{ContractRefusal, Record, Refusal, SendOptions, View};
use handoff::protocol::{
    ContractType, Outcome, State, Term, TimeField, Unit, schema_nodes, schema_types,
};
use handoff::templates::{
    known_at_tip, left_to_fill, skeleton, usual_format, with_answers, written,
};
use serde_json::{Map, Value, json};

use super::Trial;
use super::conditions::{conditions, is_at, named_values, rules};
use super::values::Values;
use handoff_cli::failure::{ErrorCode, Failure};

/// How often a contract is modified and sent again before it counts as refused.
const MOST_ATTEMPTS: usize = 60;

/// The maximum number of combinations of values that are tried for the fields named in conditions,
/// and the maximum number of values of such a field.
const MOST_CHOICES: usize = 24;
const FEW: usize = 8;

/// A contract type with sender and receiver.
pub(super) type Way = (String, AgentName, AgentName);

/// For each place that was filled in, the index of the accepted value.
pub(super) type Choices = BTreeMap<String, usize>;

/// A contract to send.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) issue: IssueKey,
    pub(super) from: AgentName,
    pub(super) to: AgentName,
    pub(super) kind: String,
    /// The number of the answered request.
    pub(super) answers: Option<u32>,
    /// Required values of fields, by pointer.
    pub(super) fixed: Vec<(String, Value)>,
}

impl Ask {
    fn way(&self) -> Way {
        (self.kind.clone(), self.from.clone(), self.to.clone())
    }
}

/// A contract that was sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) value: Value,
    pub(super) record: Record,
}

/// A place to fill in: the values to try, and the index of the current one. After the last value,
/// the place is left out.
struct Slot {
    candidates: Vec<Value>,
    at: usize,
}

/// A contract that may still be refused.
struct Draft {
    value: Value,
    slots: BTreeMap<String, Slot>,
    fixed: BTreeSet<String>,
    /// What is known of the issue.
    facts: Map<String, Value>,
    /// The handoff that the sender works on.
    held: Option<Record>,
    unique: String,
}

impl Trial<'_> {
    /// Sends a contract; while it is refused, changes the invented values. If no change helps, the
    /// fields named in conditions get each of their values in turn.
    ///
    /// # Errors
    /// The first refusal; it names the field for which no value was accepted.
    pub(super) fn send(&mut self, ask: &Ask) -> Result<Sent, Failure> {
        let draft = self.draft(ask)?;
        let choices = self.choices(ask, &draft);
        let failure = match self.send_draft(ask, draft) {
            Ok(sent) => return Ok(sent),
            Err(failure) => failure,
        };
        for chosen in choices.iter().filter(|_| value_fault(&failure).is_some()) {
            let mut draft = self.draft(ask)?;
            for (at, index) in chosen {
                self.fill(ask, &mut draft, at, *index);
                draft.fixed.insert(at.clone());
            }
            if let Ok(sent) = self.send_draft(ask, draft) {
                return Ok(sent);
            }
        }
        Err(self.explained(ask, failure))
    }

    /// Every combination of the values that the fields named in conditions may have.
    fn choices(&self, ask: &Ask, draft: &Draft) -> Vec<Choices> {
        let kind = self.kind(&ask.kind);
        let Some(schema) = self.schemas.get(&kind.schema) else {
            return Vec::new();
        };
        let reads = conditions(schema).into_iter().flat_map(|one| one.reads);
        let when = rules(&self.protocol, kind).flat_map(|rule| rule.when.keys().cloned());
        let mut fields: BTreeSet<String> = reads.chain(when).collect();
        fields.retain(|at| draft.slots.contains_key(at) && !draft.fixed.contains(at));
        let mut all = vec![Choices::new()];
        for at in fields {
            let values = draft.slots[&at].candidates.len();
            if values > FEW || values * all.len() > MOST_CHOICES {
                continue;
            }
            let with = |chosen: &Choices, index| {
                let mut chosen = chosen.clone();
                chosen.insert(at.clone(), index);
                chosen
            };
            let all_with = |index| all.iter().map(move |chosen| with(chosen, index));
            all = (0..values).flat_map(all_with).collect();
        }
        all.retain(|chosen| !chosen.is_empty());
        all
    }

    /// Sends a draft; while it is refused, changes the invented values.
    fn send_draft(&mut self, ask: &Ask, mut draft: Draft) -> Result<Sent, Failure> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let error = match self.offer(ask, &draft.value) {
                Ok(done) => {
                    let slots = draft.slots.into_iter();
                    let choices = slots.map(|(at, slot)| (at, slot.at)).collect();
                    self.learned.insert(ask.way(), choices);
                    self.steps += 1;
                    return Ok(Sent {
                        value: draft.value,
                        record: done.receipt.record,
                    });
                }
                Err(error) => error,
            };
            if let Some((at, wanted)) = self.wanted(ask, &error)
                && draft.fixed.insert(at.clone())
            {
                set(&mut draft.value, &at, json!(wanted));
                continue;
            }
            let failure = Failure::from(error);
            if attempts >= MOST_ATTEMPTS || !self.change(ask, &mut draft, &failure) {
                return Err(failure);
            }
        }
    }

    /// Sends a contract unchanged.
    pub(super) fn offer(&mut self, ask: &Ask, value: &Value) -> Result<Done, LedgerError> {
        let cooldown = self.protocol.definition().limits.as_ref();
        let cooldown = cooldown.and_then(|limits| limits.cooldown_seconds);
        self.wait(cooldown.unwrap_or(0) + 1);
        let text = {
            let tip = self.ledger.tip()?;
            let rules = tip.rules(self.protocol.name())?;
            let kind = self.kind(&ask.kind);
            let format = self.format(kind);
            written(&rules, kind, value, format, (&ask.from, &ask.to))?
        };
        self.act_as(&ask.from, "1");
        let offer = Offer {
            input: &Input::read(text.as_bytes()),
            agent: Some(&ask.from),
            issue: Some(&ask.issue),
            protocol: Some(&self.protocol.definition().name),
            options: &SendOptions {
                answers: ask.answers,
                ..SendOptions::default()
            },
            reports: None,
        };
        self.ledger.send(&self.session, &offer)
    }

    /// A contract type of the protocol by name; the first one if the name is unknown.
    pub(super) fn kind(&self, name: &str) -> &ContractType {
        let first = &self.protocol.definition().contracts[0];
        self.protocol.contract_type(name).unwrap_or(first)
    }

    /// JSON if the type has it: its findings name places that can be changed.
    fn format(&self, kind: &ContractType) -> &'static str {
        let formats = &self.protocol.definition().formats;
        if kind.has_format("json") && formats.iter().any(|format| format == "json") {
            return "json";
        }
        usual_format(&self.protocol, Some(kind))
    }

    /// The value that a refusal demands for a place.
    fn wanted(&self, ask: &Ask, error: &LedgerError) -> Option<(String, String)> {
        let LedgerError::Refused(Refusal::Contract(refusal)) = error else {
            return None;
        };
        let kind = self.kind(&ask.kind);
        match refusal {
            ContractRefusal::NotAbout { known, .. } => {
                Some((kind.about.clone()?, known.to_string()))
            }
            ContractRefusal::NotAfter { field, fitting, .. } => {
                let mut rules = kind.after.keys();
                let at = rules.find(|at| at.trim_start_matches('/') == &**field)?;
                Some((at.clone(), fitting.first()?.clone()))
            }
            _ => None,
        }
    }

    /// A refusal, with the field for which no value was accepted, or the one that decides it.
    fn explained(&self, ask: &Ask, mut failure: Failure) -> Failure {
        if let Some(finding) = value_fault(&failure) {
            let kind = self.kind(&ask.kind);
            let path = &kind.schema;
            let answers = kind.fixes.as_ref().map(|fixes| fixes.list.as_str());
            let is_of_none = |at: &&str| match finding.code {
                FindingCode::FindingUnknown => finding.path.starts_with(at),
                FindingCode::FindingOpen => false,
                _ => finding.path == *at,
            };
            let answers = answers.filter(is_of_none);
            let place = match finding.path.as_str() {
                "" => "all",
                place => place,
            };
            let schema = self.schemas.get(path).unwrap_or(&Value::Null);
            let conditions = conditions(schema).into_iter();
            let deciding = conditions.filter(|one| one.decides(place));
            let reads: BTreeSet<String> = deciding.flat_map(|one| one.reads).collect();
            let reads: Vec<String> = reads.into_iter().collect();
            let advice = match (finding.code, answers) {
                (_, Some(answers)) => format!(
                    "no finding is open then: let `{answers}` be empty, without `minItems`, in"
                ),
                (FindingCode::ContractInconsistent, None) => {
                    "change the rule, or give it `examples` that obey it in".to_owned()
                }
                _ if reads.is_empty() => "give it `examples` in".to_owned(),
                _ => format!(
                    "{} decides it: give that `examples`, or change the condition, in",
                    reads.join(" or ")
                ),
            };
            failure.message = format!(
                "no value was found for {place} of {} from {} to {}: {}; {advice} {path}",
                ask.kind, ask.from, ask.to, finding.message
            );
        }
        failure
    }

    /// A contract with everything filled in.
    fn draft(&mut self, ask: &Ask) -> Result<Draft, Failure> {
        let kind = self.kind(&ask.kind).clone();
        let (value, held, facts) = {
            let tip = self.ledger.tip()?;
            let rules = tip.rules(self.protocol.name())?;
            let folder = tip.issue(&ask.issue)?;
            let issue = folder.issue()?;
            let from = Holder {
                agent: &ask.from,
                worker: None,
            };
            let parties = (from, &ask.to);
            let (protocol, now) = (&self.protocol, self.now());
            let known = known_at_tip(
                self.repository,
                protocol,
                &folder,
                issue.as_ref(),
                parties,
                now,
            )?;
            let works = issue.iter().flat_map(|issue| issue.open.iter().rev());
            let mut works =
                works.filter(|open| open.to == ask.from && open.state == State::InProgress);
            let held = match works.next() {
                Some(open) => folder.record(open.id.number())?,
                None => None,
            };
            let facts = issue.iter().map(|issue| issue.known(protocol.definition()));
            let facts = facts.flatten().collect();
            let mut value = skeleton(&rules, &kind, &known)?;
            with_answers(protocol, &kind, &known, &mut value);
            (value, held, facts)
        };
        let mut draft = Draft {
            value,
            slots: BTreeMap::new(),
            fixed: BTreeSet::new(),
            facts,
            held,
            unique: format!("example-{}", self.steps + 1),
        };
        self.set_envelope(ask, &kind, &mut draft);
        for (at, value) in &ask.fixed {
            set(&mut draft.value, at, value.clone());
            draft.fixed.insert(at.clone());
        }
        for (at, _) in left_to_fill(&draft.value) {
            self.fill(ask, &mut draft, &at, 0);
        }
        let learned = self.learned.get(&ask.way()).cloned().unwrap_or_default();
        for (at, chosen) in learned {
            let is_new = draft.value.pointer(&at).is_none();
            // Only open findings are answered.
            let answers = kind.fixes.as_ref().map(|fixes| fixes.list.as_str());
            if is_new && answers.is_some_and(|list| at.starts_with(list)) {
                continue;
            }
            if chosen > 0 || is_new {
                self.fill(ask, &mut draft, &at, chosen);
            }
        }
        Ok(draft)
    }

    /// Sets envelope fields that the template leaves open, from the ledger.
    fn set_envelope(&self, ask: &Ask, kind: &ContractType, draft: &mut Draft) {
        let schema = self.schemas.get(&kind.schema).unwrap_or(&Value::Null);
        let key = |at: &str| {
            let is_text = schema_types(schema, at).is_none_or(|types| types.contains("string"));
            let number = ask.issue.as_str().parse::<u64>().ok();
            number
                .filter(|_| !is_text)
                .map_or(json!(ask.issue), |n| json!(n))
        };
        let issue = self.protocol.field(kind, |f| &f.issue);
        let from = self.protocol.field(kind, |f| &f.from);
        let to = self.protocol.field(kind, |f| &f.to);
        let envelope = [
            issue.map(|at| (at, key(at))),
            from.map(|at| (at, json!(ask.from))),
            to.map(|at| (at, json!(ask.to))),
        ];
        for (at, value) in envelope.into_iter().flatten() {
            if is_open(&draft.value, at) {
                set(&mut draft.value, at, value);
            }
        }
        for (at, words) in &kind.when {
            let word = words.texts().iter().find(|word| *word != "*");
            if let Some(word) = word.filter(|_| is_open(&draft.value, at)) {
                set(&mut draft.value, at, json!(word));
            }
        }
    }

    /// Fills in a place with the candidate of this index.
    fn fill(&self, ask: &Ask, draft: &mut Draft, at: &str, chosen: usize) {
        let candidates = self.candidates(ask, draft, at);
        let slot = Slot {
            at: chosen.min(candidates.len()),
            candidates,
        };
        match slot.candidates.get(slot.at) {
            Some(value) => set(&mut draft.value, at, value.clone()),
            None => drop(remove(&mut draft.value, at)),
        }
        draft.slots.insert(at.to_owned(), slot);
    }

    /// The values to try at a place.
    fn candidates(&self, ask: &Ask, draft: &Draft, at: &str) -> Vec<Value> {
        let kind = self.kind(&ask.kind);
        let mut first = Vec::new();
        if self.protocol.field(kind, |f| &f.id) == Some(at) {
            first.push(json!(draft.unique));
        }
        if kind.about.as_deref() == Some(at) {
            let known = draft
                .held
                .as_ref()
                .and_then(|held| held.contract_id.clone());
            first.extend(known.map(Value::from));
        }
        if kind.recommends.as_deref() == Some(at) || kind.agents.iter().any(|agent| agent == at) {
            let agents = self.protocol.agent_names().into_iter();
            first.push(json!(ask.to));
            first.extend(agents.map(Value::from));
        }
        let opened = kind.tasks.as_ref().and_then(|tasks| tasks.opens.as_deref());
        if opened.is_some_and(|list| at.starts_with(&format!("{list}/"))) {
            first.push(json!(draft.unique));
        }
        let time = |field: &Option<TimeField>| {
            let field = field.as_ref().filter(|field| field.at == at)?;
            Some(match field.unit {
                Unit::Seconds => json!(3600),
                Unit::Milliseconds => json!(3_600_000),
            })
        };
        first.extend(time(&kind.timeout).or(time(&kind.acknowledge)));
        first.extend(self.named_files(ask, kind, at));
        first.extend(
            rules(&self.protocol, kind).flat_map(|rule| named_values(rule, at, &draft.facts)),
        );
        let (schema, within) = self.schema_at(kind, &draft.value, at);
        let values = Values {
            schema,
            unique: &draft.unique,
        };
        let mut rest = values.at(&within);
        if self.protocol.field(kind, |f| &f.status) == Some(at) {
            let completes =
                |value: &Value| self.protocol.outcome(kind, value.as_str()) == Outcome::Complete;
            rest.sort_by_key(|value| !completes(value));
        }
        rest.retain(|value| !first.contains(value));
        first.extend(rest);
        first
    }

    /// The schema that describes a place, and the place's pointer in that schema's data.
    fn schema_at(&self, kind: &ContractType, contract: &Value, at: &str) -> (&Value, String) {
        for named in &kind.named_schemas {
            let file = contract.pointer(&named.schema).and_then(Value::as_str);
            let schema = file.and_then(|file| self.schemas.get(&format!("schemas/{file}")));
            if let (Some(schema), Some(within)) = (schema, at.strip_prefix(named.data.as_str())) {
                return (schema, within.to_owned());
            }
        }
        let own = self.schemas.get(&kind.schema);
        (own.unwrap_or(&Value::Null), at.to_owned())
    }

    /// The schemas that a contract can name, those named after its receiver first.
    fn named_files(&self, ask: &Ask, kind: &ContractType, at: &str) -> Vec<Value> {
        let expected = kind
            .expects
            .as_ref()
            .map(|expected| expected.schema.as_str());
        let named = kind.named_schemas.iter().map(|named| named.schema.as_str());
        if !named.chain(expected).any(|place| place == at) {
            return Vec::new();
        }
        let definition = self.protocol.definition();
        let contracts = definition.contracts.iter().map(|kind| kind.schema.as_str());
        let documents = definition.documents.values().map(|d| d.schema.as_str());
        let used: BTreeSet<&str> = contracts.chain(documents).collect();
        let free = self
            .schemas
            .keys()
            .filter(|path| !used.contains(path.as_str()));
        let mut names: Vec<&str> = free
            .filter_map(|path| path.strip_prefix("schemas/"))
            .collect();
        let receiver = ask.to.as_str().trim_start_matches('@');
        names.sort_by_key(|name| !name.contains(receiver));
        names.into_iter().map(Value::from).collect()
    }

    /// Changes the invented values that the findings are about; returns whether it changed any.
    fn change(&self, ask: &Ask, draft: &mut Draft, failure: &Failure) -> bool {
        let mut changed = false;
        let errors = failure.findings.iter();
        for finding in errors.filter(|f| f.is_error() && !f.code.is_gate()) {
            let at = self.place(ask, finding);
            if finding.code == FindingCode::ContractInconsistent
                && let Some(compared) = self.compared(ask, draft, &at, failure.code)
            {
                changed |= compared.iter().any(|at| self.try_next(ask, draft, at));
            } else if !at.is_empty() && !draft.fixed.contains(&at) {
                changed |= self.change_at(ask, draft, &at, finding.code);
            }
        }
        changed || !failure.findings.is_empty() && self.choose_otherwise(ask, draft)
    }

    /// The invented values in a list that its rules compare: rules about the contract alone, or
    /// with what is known of the issue.
    fn compared(
        &self,
        ask: &Ask,
        draft: &Draft,
        at: &str,
        code: Option<ErrorCode>,
    ) -> Option<Vec<String>> {
        let rules = rules(&self.protocol, self.kind(&ask.kind));
        let rules = rules.filter(|rule| rule.is_own() != (code == Some(ErrorCode::Inconsistent)));
        let terms = rules.flat_map(|rule| rule.compare.terms());
        let within = |place: &&str| place.split_once("/*").is_some_and(|(list, _)| list == at);
        let places: BTreeSet<&str> = terms.filter_map(Term::place).filter(within).collect();
        let slots = draft.slots.keys().filter(|slot| {
            !draft.fixed.contains(*slot) && places.iter().any(|place| is_at(place, slot))
        });
        let slots: Vec<String> = slots.cloned().collect();
        (!slots.is_empty()).then_some(slots)
    }

    /// Tries the next value at a place with few candidates: a finding elsewhere may depend on it.
    fn choose_otherwise(&self, ask: &Ask, draft: &mut Draft) -> bool {
        let has_more = |slot: &&Slot| slot.at + 1 < slot.candidates.len();
        let choice = draft.slots.iter().find(|(at, slot)| {
            !draft.fixed.contains(*at) && slot.candidates.len() <= FEW && has_more(slot)
        });
        let at = choice.map(|(at, _)| at.clone());
        at.is_some_and(|at| self.try_next(ask, draft, &at))
    }

    /// A finding's place as a JSON Pointer.
    fn place(&self, ask: &Ask, finding: &Finding) -> String {
        if self.format(self.kind(&ask.kind)) == "json" {
            return finding.path.clone();
        }
        // Without the root element.
        let rest = finding.path.split('/').skip(2);
        rest.fold(String::new(), |at, part| {
            let part = part.trim_start_matches('@');
            match part.trim_end_matches(']').split_once('[') {
                Some((name, number)) => {
                    let number = number.parse::<usize>().map_or(0, |n| n.saturating_sub(1));
                    format!("{at}/{name}/{number}")
                }
                None => format!("{at}/{part}"),
            }
        })
    }

    fn change_at(&self, ask: &Ask, draft: &mut Draft, at: &str, code: FindingCode) -> bool {
        if draft.value.pointer(at).is_none() {
            let is_new = !draft.slots.contains_key(at) && code == FindingCode::FieldMissing;
            if is_new {
                self.fill(ask, draft, at, 0);
            }
            return is_new || self.try_next(ask, draft, at);
        }
        let (schema, within) = self.schema_at(self.kind(&ask.kind), &draft.value, at);
        let is_excluded = code == FindingCode::FieldUnknown
            || code == FindingCode::FieldInvalid
                && schema_nodes(schema, &within).contains(&&Value::Bool(false));
        let is_made_up = draft.slots.keys().any(|slot| is_within(at, slot));
        if is_excluded && is_made_up {
            let removed = remove(&mut draft.value, at).is_some();
            let left_out = Slot {
                candidates: Vec::new(),
                at: 0,
            };
            draft.slots.insert(at.to_owned(), left_out);
            return removed;
        }
        if !draft.slots.contains_key(at) && is_made_up {
            // It is part of an invented value: start from its current value.
            let candidates = self.candidates(ask, draft, at);
            let now = draft.value.pointer(at);
            let now = candidates.iter().position(|value| Some(value) == now);
            let slot = Slot {
                at: now.unwrap_or(0),
                candidates,
            };
            draft.slots.insert(at.to_owned(), slot);
        }
        let own = draft.slots.contains_key(at).then(|| at.to_owned());
        let beneath = draft
            .slots
            .keys()
            .filter(|slot| *slot != at && is_within(slot, at));
        let places: Vec<String> = own.into_iter().chain(beneath.cloned()).collect();
        places.iter().any(|place| self.try_next(ask, draft, place))
    }

    /// Fills in the next candidate at a place, or leaves it out if it is optional.
    fn try_next(&self, ask: &Ask, draft: &mut Draft, at: &str) -> bool {
        let Some(slot) = draft
            .slots
            .get_mut(at)
            .filter(|_| !draft.fixed.contains(at))
        else {
            return false;
        };
        if slot.at >= slot.candidates.len() {
            return false;
        }
        if let Some(value) = slot.candidates.get(slot.at + 1) {
            slot.at += 1;
            set(&mut draft.value, at, value.clone());
            return true;
        }
        let (schema, within) = self.schema_at(self.kind(&ask.kind), &draft.value, at);
        let Some((above, _)) = within.rsplit_once('/') else {
            return false;
        };
        let key = parts(&within).last().unwrap_or_default();
        let required = schema_nodes(schema, above).into_iter();
        let mut required = required
            .flat_map(|node| node["required"].as_array())
            .flatten();
        if required.any(|name| *name == key) {
            return false;
        }
        slot.at += 1;
        remove(&mut draft.value, at).is_some()
    }
}

/// The first error about a value.
fn value_fault(failure: &Failure) -> Option<&Finding> {
    let mut errors = failure.findings.iter().filter(|f| f.is_error());
    errors.find(|f| !f.code.is_route() && !f.code.is_gate())
}

/// Whether a place equals another one or is below it.
fn is_within(place: &str, other: &str) -> bool {
    let rest = place.strip_prefix(other);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a contract leaves a place to its sender.
fn is_open(contract: &Value, at: &str) -> bool {
    let text = contract.pointer(at).and_then(Value::as_str);
    text.is_some_and(|text| text.contains(handoff::contract::FILL))
}

/// Sets the value at a pointer; missing members become objects.
pub(super) fn set(contract: &mut Value, at: &str, value: Value) {
    let mut here = contract;
    for part in parts(at) {
        here = match here {
            Value::Array(items) => match part.parse::<usize>() {
                Ok(index) if index < items.len() => &mut items[index],
                _ => return,
            },
            Value::Object(members) => members.entry(part).or_insert(Value::Null),
            other => {
                *other = json!({});
                &mut other[part.as_str()]
            }
        };
    }
    *here = value;
}

/// Removes the value at a pointer.
pub(super) fn remove(contract: &mut Value, at: &str) -> Option<Value> {
    let (above, _) = at.rsplit_once('/')?;
    let key = parts(at).last()?;
    match contract.pointer_mut(above)? {
        Value::Object(members) => members.shift_remove(&key),
        Value::Array(items) => {
            let index: usize = key.parse().ok()?;
            (index < items.len()).then(|| items.remove(index))
        }
        _ => None,
    }
}
