//! Applies an event: makes the steps of the protocol's rules, once each.

use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::base::text::word;
use handoff::ledger::{
    ContractError, DamageError, Done, Ledger, LedgerError, Rules, Session, Snapshot,
};
use handoff::model::{
    ContractRefusal, Delivery, Issue, IssueStatus, Refusal, RequestRefusal, RetryRefusal, Update,
    View,
};
use handoff::protocol::{Command, Effect, EventKind, EventRule, PULL_REQUEST, Protocol};
use handoff::templates::built_in;
use serde_json::{Map, Value};

use super::contract::opens;
use super::effects::Work;
use super::outcome::{Carried, Did, EventContext};
use super::payload::{Event, Fork};
use super::repository::{moved, of_another, of_another_than_all};
use super::staleness::News;
use super::subject::{Naming, Subject, issues_of_pull_request, number_in, pull_request_in};
use super::values::{facts, lacking, says};

/// Applies the update that `decide` returns for the issue's current state, and retries if another
/// process has written to the issue meanwhile. Writes nothing if it returns none.
pub(super) fn update_if(
    ledger: &mut Ledger<'_>,
    session: &Session,
    agent: &AgentName,
    key: &IssueKey,
    mut decide: impl FnMut(&Issue) -> Option<Update>,
) -> Result<Option<Done>, LedgerError> {
    loop {
        let issue = ledger.tip()?.issue(key)?.issue()?;
        let issue = issue.ok_or_else(|| Refusal::no_issue(key))?;
        let Some(update) = decide(&issue) else {
            return Ok(None);
        };
        let done = ledger.update_as_of(session, agent, key, &update, issue.steps)?;
        if done.is_some() {
            return Ok(done);
        }
    }
}

/// Makes the steps for an event.
///
/// # Errors
/// [`LedgerError`] if the ledger can't be read or written, or refuses the event's text. An event
/// that is too late, or for another ledger, is no error.
pub fn carry_out(mut context: EventContext<'_, '_>, event: &Event) -> Result<Carried, LedgerError> {
    let Some(kind) = event.kind() else {
        let why = format!("nothing follows from an event `{}`", event.name());
        return Ok(Carried::nothing(why));
    };
    if let Some(state) = event.undone() {
        let why =
            format!("GitHub says that the issue is {state} now: the event that did so counts");
        return Ok(Carried::nothing(why));
    }
    let tip = context.ledger.tip()?;
    let naming = Naming::of(&tip, context.closes)?;
    let subject = Subject::of(event, &naming);
    let mut keys = subject.known(&tip, event)?;
    if context.unasked
        && let Some(number) = subject.pull_request
    {
        // GitHub did not answer: keep the issues that the ledger has for the pull request, even if
        // its text names others.
        let known = issues_of_pull_request(&tip, number)?;
        let new: Vec<IssueKey> = known
            .into_iter()
            .filter(|key| !keys.contains(key))
            .collect();
        keys.extend(new);
    }
    if keys.is_empty() {
        let why = naming.unserved(event);
        let why = why.unwrap_or_else(|| of_no_issue(kind, subject.pull_request));
        return Ok(Carried::nothing(why));
    }
    let mut all = Carried {
        issues: keys.clone(),
        ..Carried::default()
    };
    for key in &keys {
        let pull_request = subject.pull_request;
        let about = (key, &*keys, pull_request);
        let carried = carry_out_in(&mut context, event, kind, about, naming.is_alone())?;
        let why = carried.why.into_iter();
        all.why.extend(why.map(|why| match keys.len() {
            1 => why,
            _ => format!("issue {key}: {why}"),
        }));
        all.did.extend(carried.did);
        all.commands.extend(carried.commands);
        all.next = all.next.or(carried.next);
        match (&all.draft, carried.draft) {
            (None, draft) => all.draft = draft,
            (Some(_), None) => {}
            (Some(first), Some(draft)) => {
                let (first, kind) = (&first.contract_type, draft.contract_type);
                let why = format!(
                    "issue {key}: a draft of {first} was already started, so that {kind} was not"
                );
                all.why.push(why);
            }
        }
    }
    Ok(all)
}

/// Makes the steps of one issue.
fn carry_out_in(
    context: &mut EventContext<'_, '_>,
    event: &Event,
    kind: EventKind,
    (key, issues, pull_request): (&IssueKey, &[IssueKey], Option<u64>),
    is_alone: bool,
) -> Result<Carried, LedgerError> {
    let tip = context.ledger.tip()?;
    let mut carried = Carried::default();
    let issue = tip.issue(key)?.issue()?;
    let is_open = issue
        .as_ref()
        .is_some_and(|i| i.status == IssueStatus::Open);
    let returned = event.as_returned().filter(|_| is_open);
    let event = returned.as_ref().unwrap_or(event);
    let rules = match governing(&tip, issue.as_ref(), event, kind)? {
        Ok(rules) => rules,
        Err(why) => {
            carried.why.push(why);
            return Ok(carried);
        }
    };
    // With several repositories, the issue's key names the repository.
    let other = match &issue {
        Some(issue) => of_another(event, (issue, rules.protocol().definition()), context.home),
        None if is_alone => of_another_than_all(event, &tip, context.home)?,
        None => None,
    };
    if let Some(why) = other {
        carried.why.push(why);
        return Ok(carried);
    }
    if let Some((base, default)) = event.merged_elsewhere() {
        let says = |branch| says(branch).unwrap_or_default();
        let (base, default) = (says(base), says(default));
        let why = format!("it was merged into {base}, and not into {default}, the default branch");
        carried.why.push(why);
        return Ok(carried);
    }
    let mut work = Work {
        context,
        event,
        key: key.clone(),
        issues: issues.to_vec(),
        pull_request,
        rules,
        carried,
    };
    let rules = applying(work.rules.protocol(), event, kind, &mut work.carried.why);
    for rule in &rules {
        work.follow(rule)?;
    }
    work.commands(&rules)?;
    work.take_back(&rules)?;
    if work.carried.did.iter().any(|did| did.what == "reopened") {
        work.goes_on_with()?;
    }
    Ok(work.carried)
}

/// Why an event is about no issue.
fn of_no_issue(kind: EventKind, pull_request: Option<u64>) -> String {
    match (kind, pull_request) {
        (EventKind::Issues | EventKind::IssueComment, None) => {
            "the payload names no issue".to_owned()
        }
        (_, Some(number)) => format!(
            "pull request {number} names no issue: neither \"Closes #12\" in its text, nor a branch such as issue-12, and no open issue of the ledger has it"
        ),
        (_, None) => {
            "neither a pull request nor a branch such as issue-12 says which issue it is about"
                .to_owned()
        }
    }
}

/// The protocol whose rules apply: the issue's, or for a new issue the first one, starting with the
/// default, that opens an issue with such an event.
fn governing<'r>(
    tip: &Snapshot<'r>,
    issue: Option<&Issue>,
    event: &Event,
    kind: EventKind,
) -> Result<Result<Rules<'r>, String>, LedgerError> {
    if let Some(issue) = issue {
        let rules = tip.rules(issue.protocol.as_str())?;
        let definition = rules.protocol().definition();
        if definition.github.is_none() {
            let update = if has_rules(definition.name.as_str()) {
                format!(
                    "; `git handoff protocol update {}` puts the version in force that has some",
                    definition.name
                )
            } else {
                String::new()
            };
            return Ok(Err(format!(
                "protocol {} {} of the ledger has no rules about GitHub's events (`github`){update}",
                definition.name, definition.version
            )));
        }
        return Ok(Ok(rules));
    }
    let mut any = false;
    for name in tip.protocols()? {
        let rules = tip.rules(&name)?;
        let protocol = rules.protocol();
        let mut all = protocol.definition().event_rules().iter();
        any |= protocol.definition().github.is_some();
        if all.any(|rule| rule.is_about(kind, event.action()) && begins(protocol, rule)) {
            return Ok(Ok(rules));
        }
    }
    Ok(Err(if any {
        "the ledger does not have this issue, and such an event begins none".to_owned()
    } else {
        let mut names = tip.protocols()?.into_iter();
        let update = names.find(|name| has_rules(name)).map(|name| {
            format!(
                "; `git handoff protocol update {}` puts the version in force that has some",
                word(&name)
            )
        });
        format!(
            "no protocol of the ledger has rules about GitHub's events (`github`){}",
            update.unwrap_or_default()
        )
    }))
}

/// Whether the built-in protocol of this name has rules for events.
fn has_rules(name: &str) -> bool {
    let folder = built_in(name);
    let file = folder
        .as_ref()
        .and_then(|folder| folder.file("protocol.json"));
    let protocol = file.and_then(|file| Protocol::load(file).ok());
    protocol.is_some_and(|protocol| protocol.definition().github.is_some())
}

/// Whether a rule sends or drafts a contract that opens an issue.
fn begins(protocol: &Protocol, rule: &EventRule) -> bool {
    match &rule.effect {
        Some(Effect::Send(contract) | Effect::Draft(contract)) => {
            opens(protocol, &rule.agent, contract)
        }
        _ => false,
    }
}

fn commands(rule: &EventRule) -> &[Command] {
    rule.effect.as_ref().map_or(&[], Effect::commands)
}

/// The rules that apply; `why` collects the reasons against the others.
fn applying(
    protocol: &Protocol,
    event: &Event,
    kind: EventKind,
    why: &mut Vec<String>,
) -> Vec<EventRule> {
    let about = protocol.definition().event_rules().iter();
    let about: Vec<&EventRule> = about
        .filter(|rule| rule.is_about(kind, event.action()))
        .collect();
    let fork = event.fork();
    let mut found = Vec::new();
    let mut unmet = Vec::new();
    for rule in &about {
        match (rule.unmet(event.payload()), &fork) {
            (Some(place), _) => unmet.push(format!("{} (`{place}`)", rule.name)),
            (None, Some(_)) if rule.note.is_some() || !commands(rule).is_empty() => {
                found.push((*rule).clone());
            }
            (None, Some(fork)) if !rule.forks => why.push(format!(
                "{}: {}",
                rule.name,
                match fork {
                    Fork::Other =>
                        "it comes from another repository, whose branches prove nothing about this one",
                    Fork::Unknown =>
                        "the repository that it comes from is gone or not named, so that it proves nothing about this one",
                }
            )),
            (None, _) => found.push((*rule).clone()),
        }
    }
    if found.is_empty() && why.is_empty() {
        let name = protocol.name();
        let action = event.action().map(|action| format!(" {action}"));
        let event = format!("{}{}", event.name(), action.unwrap_or_default());
        why.push(if unmet.is_empty() {
            format!("no rule of protocol {name} is about `{event}`")
        } else {
            format!(
                "no rule of protocol {name} applies: the payload does not meet their conditions: {}",
                unmet.join(", ")
            )
        });
    }
    found
}

impl Work<'_, '_, '_> {
    fn follow(&mut self, rule: &EventRule) -> Result<(), LedgerError> {
        // For a rule with commands, each command is judged by itself.
        if let Some(needed) = rule.needs.filter(|_| commands(rule).is_empty())
            && let Err(why) = self.entitled(needed, "have it recorded")
            && !self.has_effect(rule)?
        {
            return self.refuse(rule, why);
        }
        let is_foreign = !rule.forks && self.event.fork().is_some();
        if is_foreign {
            return self.note_beside(rule);
        }
        if rule.note.is_some() {
            self.note(rule)?;
        }
        match &rule.effect {
            None | Some(Effect::Commands(_) | Effect::Answer) => Ok(()),
            Some(Effect::Send(contract)) => self.contract(rule, contract, true),
            Some(Effect::Draft(contract)) => self.contract(rule, contract, false),
            Some(Effect::Reopen) => self.reopen(rule),
            Some(Effect::Pause(pause)) => self.pause(rule, &pause.except),
            Some(Effect::Cancel) => self.cancel(rule),
        }
    }

    /// Notes the event's facts on the issue.
    fn note(&mut self, rule: &EventRule) -> Result<(), LedgerError> {
        let facts = self.facts_of(rule)?;
        if facts.is_empty() && !rule.facts.is_empty() {
            self.not(
                rule,
                "the payload has none of the facts that this rule notes",
            );
            return Ok(());
        }
        let Some(note) = rule.note.clone() else {
            return Ok(());
        };
        let delivery = self.part(rule, "note")?;
        if self.had(rule, "noted", &delivery)? {
            return Ok(());
        }
        let Some(issue) = self.issue()? else {
            self.not(rule, "the ledger does not have this issue yet");
            return Ok(());
        };
        let mut sources = rule.facts.values();
        let lacks = sources.find_map(|source| lacking(source, self.event.payload()));
        let session = self.context.session.delivering(delivery);
        let news = News {
            event: self.event,
            protocol: self.rules.protocol(),
            pull_request: self.pull_request,
            now: self.now(),
        };
        if let Some(why) = news.of_another(&issue) {
            self.not(rule, why);
            return self.note_beside(rule);
        }
        let definition = self.rules.protocol().definition();
        // If another run notes newer facts at the same time, decide again.
        let (mut noted, mut why) = (Map::new(), None);
        let decide = |issue: &Issue| {
            let found = news.to_note(issue, rule, facts.clone());
            let found = found.and_then(|found| match lacks {
                Some(place) => Err(format!("nothing is noted: `{place}` is missing or invalid")),
                None => Ok(found),
            });
            match found {
                Ok(found) => {
                    let moved = moved(self.event, (issue, definition), &found);
                    noted = found;
                    noted.extend(moved);
                }
                Err(said) => {
                    why = Some(said);
                    return None;
                }
            }
            Some(Update::Annotate {
                handoff: None,
                note: note.clone(),
                facts: noted.clone(),
                approval: None,
            })
        };
        let ledger = &mut self.context.ledger;
        let done = update_if(ledger, &session, &rule.agent, &self.key, decide);
        self.took_note(rule, noted, done, why)
    }

    /// The facts that a rule takes from the event. If its pull request replaces the known one, also
    /// those that are taken from a newly opened one.
    fn facts_of(&self, rule: &EventRule) -> Result<Map<String, Value>, LedgerError> {
        let mut own = facts(rule, self.event);
        let number = own.get(PULL_REQUEST).and_then(number_in);
        let known = self.issue()?.and_then(|issue| pull_request_in(&issue));
        if number.is_none() || number == known || self.event.fork().is_some() {
            return Ok(own);
        }
        let mut rules = self.rules.protocol().definition().event_rules().iter();
        let opened = rules.find(|one| {
            let is_about = one.is_about(EventKind::PullRequest, Some("opened"));
            is_about && one.agent == rule.agent && one.facts.contains_key(PULL_REQUEST)
        });
        for (name, value) in opened.into_iter().flat_map(|one| facts(one, self.event)) {
            own.entry(name).or_insert(value);
        }
        Ok(own)
    }

    /// Records the note, or why there is none.
    pub(super) fn took_note(
        &mut self,
        rule: &EventRule,
        facts: Map<String, Value>,
        done: Result<Option<Done>, LedgerError>,
        why: Option<String>,
    ) -> Result<(), LedgerError> {
        match done.transpose() {
            Some(done) => self.took(rule, "noted", facts, done),
            None => {
                let delivery = self.part(rule, "note")?;
                self.not_unless_had(rule, "noted", &delivery, why.unwrap_or_default())
            }
        }
    }

    /// The issue at the tip, which another process may have moved.
    pub(super) fn issue(&self) -> Result<Option<Issue>, LedgerError> {
        self.context.ledger.tip()?.issue(&self.key)?.issue()
    }

    /// The name of a rule's step in this delivery, which makes it happen once.
    pub(super) fn part(&self, rule: &EventRule, what: &str) -> Result<Delivery, LedgerError> {
        let part = format!("{}-{what}", rule.name).parse();
        // A rule's name is validated when its protocol is loaded.
        let part = part.map_err(|_| DamageError::Missing(format!("github/rules/{}", rule.name)))?;
        Ok(Delivery {
            id: self.context.delivery.clone(),
            part,
        })
    }

    /// Whether an earlier delivery made a step of this rule: then the rule is not judged again.
    fn has_effect(&self, rule: &EventRule) -> Result<bool, LedgerError> {
        let Some(issue) = self.issue()? else {
            return Ok(false);
        };
        for what in ["note", "send", "reopen", "pause"] {
            if issue.delivered(&self.part(rule, what)?).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an earlier delivery made this step; if so, adds it to the outcome.
    pub(super) fn had(
        &mut self,
        rule: &EventRule,
        what: &'static str,
        delivery: &Delivery,
    ) -> Result<bool, LedgerError> {
        let issue = self.issue()?;
        let Some(known) = issue.as_ref().and_then(|issue| issue.delivered(delivery)) else {
            return Ok(false);
        };
        self.carried.did.push(Did {
            rule: rule.name.clone(),
            what,
            id: HandoffId::new(self.key.clone(), known.handoff),
            agent: rule.agent.clone(),
            facts: Map::new(),
            commit: None,
            warnings: Vec::new(),
        });
        Ok(true)
    }

    /// Records why a rule had no effect.
    pub(super) fn not(&mut self, rule: &EventRule, why: impl std::fmt::Display) {
        self.carried.why.push(format!("{}: {why}", rule.name));
    }

    /// Records why a rule had no effect, unless an earlier run of this delivery made the step.
    pub(super) fn not_unless_had(
        &mut self,
        rule: &EventRule,
        what: &'static str,
        delivery: &Delivery,
        why: String,
    ) -> Result<(), LedgerError> {
        if !self.had(rule, what, delivery)? {
            self.not(rule, why);
        }
        Ok(())
    }

    /// Records the step, or why it was refused.
    pub(super) fn took(
        &mut self,
        rule: &EventRule,
        what: &'static str,
        facts: Map<String, Value>,
        done: Result<Done, LedgerError>,
    ) -> Result<(), LedgerError> {
        match done {
            Ok(done) => self.carried.did.push(Did {
                rule: rule.name.clone(),
                what,
                id: done.receipt.record.id,
                agent: rule.agent.clone(),
                facts,
                commit: done.commit,
                warnings: done.warnings,
            }),
            Err(error) => match too_late(&error) {
                Some(why) => self.not(rule, why),
                None => return Err(error),
            },
        }
        Ok(())
    }
}

/// Why a step was refused, if the issue's state is the reason, not a fault of the caller.
pub(super) fn too_late(error: &LedgerError) -> Option<String> {
    let refusal = match error {
        LedgerError::Refused(refusal) => refusal,
        LedgerError::Contract(ContractError::Gate { refusal, .. }) => refusal,
        _ => return None,
    };
    let findings = match refusal {
        Refusal::Role(_)
        | Refusal::Contract(ContractRefusal::Evidence { .. })
        | Refusal::Retry(RetryRefusal::UnknownCode { .. }) => return None,
        Refusal::Request(
            RequestRefusal::AnswerUnfit { findings, .. } | RequestRefusal::Unfit { findings, .. },
        )
        | Refusal::Contract(
            ContractRefusal::Tasks { findings, .. }
            | ContractRefusal::Findings { findings, .. }
            | ContractRefusal::Inconsistent { findings, .. },
        ) => &findings[..],
        _ => &[],
    };
    let told: Vec<&str> = findings.iter().map(|finding| &*finding.message).collect();
    Some(if told.is_empty() {
        refusal.to_string()
    } else {
        format!("{refusal}: {}", told.join("; "))
    })
}
