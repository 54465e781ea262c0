//! The steps requested by commands in comments and reviews: each is made once, or refused with the
//! reason and the command to write instead.

use std::collections::BTreeSet;

use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::base::text::{closest, without_invisible};
use handoff::base::{Code, Moment, ObjectId, short_id};
use handoff::ledger::{Done, LedgerError};
use handoff::model::{
    Annotation, Approval, Delivery, DeliveryName, EventArgs, Issue, Opinion, Record, Refusal,
    RequestRefusal, RetryRefusal, StateRefusal, Update, View, another_attempt,
};
use handoff::protocol::{Command, Event as Happens, EventKind, EventRule, HEAD, Permission, State};
use serde_json::{Map, Value};

use super::answer::{AnsweredTwice, answer_args};
use super::beside;
use super::carry::too_late;
use super::commands::{Asked, Said, Unclear, commands};
use super::effects::Work;
use super::outcome::{Commanded, Did};
use super::permission::{NotEntitled, UNPROVEN};
use super::staleness::noted;
use super::values::says;
use crate::answering::answer_lines;

/// The maximum length of a line that an outcome repeats, in characters.
const MOST_SAID: usize = 400;

/// The fact with who gave an approval on GitHub: one person of the ledger stands for several there.
const SAID_BY: &str = "said_by";

/// Why a command was refused, and what to write instead.
#[derive(Debug)]
struct Refused {
    why: String,
    next: Option<String>,
}

impl Refused {
    fn new(why: impl Into<String>) -> Self {
        let (why, next) = (why.into(), None);
        Self { why, next }
    }

    fn next(self, line: impl Into<String>) -> Self {
        let next = Some(line.into());
        Self { next, ..self }
    }
}

/// The comment or review that a command is in, and the issue that it is about.
struct Given<'a> {
    rule: &'a EventRule,
    issue: Issue,
    said_at: Moment,
    /// Its author, and its URL.
    by: String,
}

/// An agent and its update, or why the command is refused.
type Step = Result<(AgentName, Update), Refused>;

impl Work<'_, '_, '_> {
    /// Executes the commands of a comment or a review, each by the first rule that allows it. Of an
    /// edited comment, only the new ones count.
    pub(super) fn commands(&mut self, rules: &[EventRule]) -> Result<(), LedgerError> {
        let allows = |rule: &&EventRule| {
            rule.effect
                .as_ref()
                .is_some_and(|e| !e.commands().is_empty())
        };
        let rules: Vec<&EventRule> = rules.iter().filter(allows).collect();
        let Some(first) = rules.first() else {
            return Ok(());
        };
        let all = commands(self.event.of_written("/body").unwrap_or_default());
        if all.is_empty() {
            self.not(first, "it has no line that begins with `/handoff`");
            return Ok(());
        }
        if self.event.is_by_program() {
            self.not(
                first,
                "a program wrote it, and only people may command here",
            );
            return Ok(());
        }
        let before = self.event.text("/changes/body/from").unwrap_or_default();
        let mut seen: BTreeSet<String> = commands(before).iter().map(Said::digest).collect();
        let mut unproven = None;
        for said in &all {
            if !seen.insert(said.digest()) {
                continue;
            }
            let tried = match self.concerns(said)? {
                Ok(true) => self.tried(&rules, said, &mut unproven)?,
                Ok(false) => continue,
                Err(refused) => Err(refused),
            };
            let refused = match tried {
                Ok(sentence) => {
                    self.commanded(said, Ok(sentence));
                    continue;
                }
                Err(refused) => refused,
            };
            let line = says(&said.lines[0]).unwrap_or_default();
            self.carried.why.push(format!("`{line}`: {}", refused.why));
            self.commanded(said, Err(refused));
        }
        if let Some((rule, delivery)) = unproven {
            self.note_unproven(rule, delivery)?;
        }
        if self.carried.commands.is_empty() && self.issues.len() == 1 {
            self.not(first, "it had the same commands before it was edited");
        }
        Ok(())
    }

    /// Whether a command is for this issue, if the event is about several: it names a handoff of the
    /// issue, or answers the only open question. One that fits none is judged with the first issue.
    fn concerns(&self, said: &Said) -> Result<Result<bool, Refused>, LedgerError> {
        let [first, _, ..] = &self.issues[..] else {
            return Ok(Ok(true));
        };
        let is_first = *first == self.key;
        let Ok(asked) = &said.asked else {
            return Ok(Ok(is_first));
        };
        if let Some(id) = &asked.id {
            let is_known = self.issues.contains(id.issue());
            return Ok(Ok(if is_known {
                id.issue() == &self.key
            } else {
                is_first
            }));
        }
        if asked.command == Command::Status {
            return Ok(Ok(is_first));
        }
        if asked.command == Command::Answer {
            let mut waiting = Vec::new();
            for key in &self.issues {
                let issue = self.context.ledger.tip()?.issue(key)?.issue()?;
                let is_blocked =
                    |issue: &Issue| issue.open.iter().any(|o| o.state == State::Blocked);
                waiting.extend(issue.filter(is_blocked).map(|_| key));
            }
            if let [only] = waiting[..] {
                return Ok(Ok(*only == self.key));
            }
        }
        if !is_first {
            return Ok(Ok(false));
        }
        let keys: Vec<&str> = self.issues.iter().map(IssueKey::as_str).collect();
        let (word, rest) = (asked.command.as_str(), asked.rest.join(" "));
        let why = format!(
            "the pull request is about issues {}: name a handoff",
            keys.join(", ")
        );
        let line = format!("/handoff {word} {first}.1 {rest}");
        Ok(Err(Refused::new(why).next(line.trim_end())))
    }

    fn commanded(&mut self, said: &Said, outcome: Result<String, Refused>) {
        let text = handoff::base::text::cut(&without_invisible(&said.lines.join("\n")), MOST_SAID);
        let command = said.asked.as_ref().ok().map(|asked| asked.command);
        let accepted = outcome.is_ok();
        let (sentence, next) = match outcome {
            Ok(sentence) => (sentence, None),
            Err(refused) => (refused.why, refused.next),
        };
        self.carried.commands.push(Commanded {
            said: text,
            command,
            accepted,
            sentence,
            next,
        });
    }

    /// Executes one command; returns a sentence about what it did, or why it is refused.
    fn tried<'r>(
        &mut self,
        rules: &[&'r EventRule],
        said: &Said,
        unproven: &mut Option<(&'r EventRule, Delivery)>,
    ) -> Result<Result<String, Refused>, LedgerError> {
        let asked = match &said.asked {
            Ok(asked) => asked,
            Err(why) => return Ok(Err(unclear(why, said, rules))),
        };
        let command = asked.command;
        let mut allowing = rules.iter().copied();
        let Some(rule) = allowing.find(|rule| allowed(rule).contains(&command)) else {
            let protocol = self.rules.protocol().name();
            let why = format!(
                "protocol {protocol} does not take `{}` from comments",
                command.as_str()
            );
            return Ok(Err(Refused::new(format!("{why}: {}", usable(rules)))));
        };
        let key = self.key.clone();
        if command == Command::Status {
            return Ok(Ok(format!(
                "the comment about issue {key} is written again"
            )));
        }
        let delivery = self.said_in(command.as_str(), said);
        if self.had(rule, done(command), &delivery)? {
            let by = self.carried.did.last().map(|did| did.id.to_string());
            let id = by.unwrap_or_default();
            return Ok(Ok(format!(
                "{id} was {} when this was said first",
                done(command)
            )));
        }
        let entitled = self.may_command(rule, command);
        if let Err(NotEntitled::Denied(why)) = entitled {
            return Ok(Err(Refused::new(why)));
        }
        let Some(said_at) = self.event.happened_at() else {
            return Ok(Err(Refused::new("it does not say when it was written")));
        };
        let Some(issue) = self.issue()? else {
            let why =
                format!("the ledger does not have issue {key} yet: its first contract opens it");
            return Ok(Err(Refused::new(why)));
        };
        let by = self.said_by();
        let given = Given {
            rule,
            issue,
            said_at,
            by,
        };
        // A missing permission is noted only if nothing else is wrong with the command.
        let (agent, update) = match (self.step(&given, asked)?, entitled) {
            (Err(refused), _) => {
                // Another run may have executed the command meanwhile.
                return Ok(if self.had(rule, done(command), &delivery)? {
                    Ok(format!("it was {} when this was said first", done(command)))
                } else {
                    Err(refused)
                });
            }
            (Ok(_), Err(NotEntitled::Denied(why) | NotEntitled::Unproven(why))) => {
                let part = format!("{}-{UNPROVEN}", said.digest());
                if let Ok(part) = part.parse::<DeliveryName>() {
                    let id = delivery.id;
                    unproven.get_or_insert((rule, Delivery { id, part }));
                }
                return Ok(Err(Refused::new(why)));
            }
            (Ok(step), Ok(())) => step,
        };
        let session = self.context.session.delivering(delivery);
        let taken = self.context.ledger.update(&session, &agent, &key, &update);
        match taken {
            Ok(taken) => Ok(Ok(self.taken(rule, &agent, command, taken))),
            Err(error) => self.refused(error, said),
        }
    }

    /// Adds a step to the outcome; returns its sentence.
    fn taken(
        &mut self,
        rule: &EventRule,
        agent: &AgentName,
        command: Command,
        taken: Done,
    ) -> String {
        let record = &taken.receipt.record;
        let id = record.id.clone();
        let sentence = match command {
            Command::Assign => format!("{id} was given to {}", record.to),
            Command::Approve => {
                let mut notes = taken.receipt.issue.annotations.iter().rev();
                let approval = notes.find_map(|note| note.approval.as_ref());
                let at = approval.map(Approval::done).unwrap_or_default();
                format!("{id} was {at}, in the name of {agent}")
            }
            _ => format!("{id} was {}", done(command)),
        };
        self.carried.did.push(Did {
            rule: rule.name.clone(),
            what: done(command),
            id,
            agent: agent.clone(),
            facts: Map::new(),
            commit: taken.commit,
            warnings: taken.warnings,
        });
        sentence
    }

    /// The delivery of a command, named by the comment and the command's words: other events about
    /// the comment, and edits of its other words, don't repeat the step.
    fn said_in(&self, what: &str, said: &Said) -> Delivery {
        let own = self.event.said_in().and_then(|name| name.parse().ok());
        let part = format!("{what}-{}", said.digest()).parse();
        Delivery {
            id: own.unwrap_or_else(|| self.context.delivery.clone()),
            part: part.unwrap_or_else(|_| self.context.delivery.clone()),
        }
    }

    fn may_command(&self, rule: &EventRule, command: Command) -> Result<(), NotEntitled> {
        let author = self.event.of_written("/user/login").unwrap_or_default();
        let editor = self.event.text("/sender/login").unwrap_or_default();
        if self.event.action() == Some("edited") && !author.eq_ignore_ascii_case(editor) {
            let why = "the comment was edited by someone other than its author, so its commands don't count";
            return Err(NotEntitled::Denied(why.to_owned()));
        }
        // A protocol can require more, but not less.
        let needed = rule.needs.unwrap_or(Permission::Write);
        let needed = needed.max(Permission::Write);
        self.entitled(needed, command.as_str())
    }

    fn said_by(&self) -> String {
        let place = self.event.of_written("/html_url").and_then(says);
        let place = place.map(|place| format!(", {place}")).unwrap_or_default();
        format!("{}{place}", self.event.author().unwrap_or_default())
    }

    fn step(&self, given: &Given<'_>, asked: &Asked) -> Result<Step, LedgerError> {
        match asked.command {
            Command::Answer => self.to_answer(given, asked),
            Command::Approve => self.to_approve(given, asked),
            Command::Retry => self.to_retry(given, asked),
            Command::Assign => self.to_assign(given, asked),
            Command::Cancel => Ok(to_cancel(given, asked)),
            Command::Status => Ok(Err(Refused::new("it changes nothing"))),
        }
    }

    fn to_answer(&self, given: &Given<'_>, asked: &Asked) -> Result<Step, LedgerError> {
        let blocked = |state| state == State::Blocked;
        let id = match pick(given, asked, blocked, "waits for an answer") {
            Ok(id) => id,
            Err(refused) => return Ok(Err(refused)),
        };
        let Some(record) = self.record(&id)? else {
            return Ok(Err(unknown(&id)));
        };
        let refused = |why: String| Ok(Err(Refused::new(why).next(answer_lines(&record))));
        if record.state != State::Blocked {
            return Ok(Err(
                Refused::new(format!("{id} waits for no answer")).next(STATUS)
            ));
        }
        if let Some(refused) = changed_since(given, &record, &answer_lines(&record)) {
            return Ok(Err(refused));
        }
        let lines: Vec<String> = asked
            .rest
            .iter()
            .map(|line| without_invisible(line))
            .collect();
        if lines.iter().any(|line| line.trim().is_empty()) {
            return refused("it has no answer that can be seen".to_owned());
        }
        match answer_args(record.questions(), &lines, &given.by, given.said_at) {
            Ok(args) => Ok(Ok((
                given.rule.agent.clone(),
                Update::change(id.number(), Happens::Answer, args),
            ))),
            Err(AnsweredTwice(key)) => refused(format!(
                "`{key}` is answered twice, and it is unclear which answer counts"
            )),
        }
    }

    fn to_retry(&self, given: &Given<'_>, asked: &Asked) -> Result<Step, LedgerError> {
        let failed = |state| matches!(state, State::Failed | State::Dead);
        let id = match pick(given, asked, failed, "failed") {
            Ok(id) => id,
            Err(refused) => return Ok(Err(refused)),
        };
        let Some(record) = self.record(&id)? else {
            return Ok(Err(unknown(&id)));
        };
        if let Some(refused) = changed_since(given, &record, "/handoff retry") {
            return Ok(Err(refused));
        }
        let event = another_attempt(&record, record.state, true);
        let drawn = (self.context.session.jitter)(1001);
        let args = EventArgs {
            jitter: u32::try_from(drawn)
                .ok()
                .filter(|_| event == Happens::Retry),
            ..because(given, &asked.rest[0])
        };
        let retry = Update::change(id.number(), event, args);
        Ok(Ok((given.rule.agent.clone(), retry)))
    }

    fn to_assign(&self, given: &Given<'_>, asked: &Asked) -> Result<Step, LedgerError> {
        let assignable = |state| matches!(state, State::Failed | State::Pending);
        let id = match pick(given, asked, assignable, "failed or waits for its receiver") {
            Ok(id) => id,
            Err(refused) => return Ok(Err(refused)),
        };
        let Some(record) = self.record(&id)? else {
            return Ok(Err(unknown(&id)));
        };
        let (agent, why) = first_word(&asked.rest[0]);
        let Ok(receiver) = agent.parse::<AgentName>() else {
            let why = "it names no agent that the work is given to";
            return Ok(Err(
                Refused::new(why).next(format!("/handoff assign {id} AGENT"))
            ));
        };
        let protocol = self.rules.protocol();
        let agents = protocol.agent_names();
        if !agents.contains(&receiver.as_str()) {
            let none = Refusal::unknown_agent(&receiver, protocol);
            let refused = Refused::new(format!("{none}: its agents are {}", agents.join(", ")));
            return Ok(Err(match closest(agent, agents.iter().copied()) {
                Some(close) => {
                    let line = format!("/handoff assign {id} {close} {why}");
                    refused.next(line.trim_end())
                }
                None => refused,
            }));
        }
        let again = format!("/handoff assign {id} {receiver}");
        if let Some(refused) = changed_since(given, &record, &again) {
            return Ok(Err(refused));
        }
        let args = EventArgs {
            receiver: Some(receiver),
            ..because(given, why)
        };
        let assign = Update::change(id.number(), Happens::Reassign, args);
        Ok(Ok((given.rule.agent.clone(), assign)))
    }

    /// Approves a handoff at the newest known commit of the pull request, in the name of the
    /// protocol's person.
    fn to_approve(&self, given: &Given<'_>, asked: &Asked) -> Result<Step, LedgerError> {
        let Some(person) = self.person(given.rule) else {
            let protocol = self.rules.protocol().name();
            let why = format!("protocol {protocol} names no person who could approve, or several");
            return Ok(Err(Refused::new(why)));
        };
        let record = match self.approvable(given, asked)? {
            Ok(record) => record,
            Err(refused) => return Ok(Err(refused)),
        };
        let words = &*asked.rest[0];
        let (commit, after) = first_word(words);
        let is_id =
            (7..=64).contains(&commit.len()) && commit.bytes().all(|b| b.is_ascii_hexdigit());
        let (named, note) = if is_id {
            (Some(commit), after)
        } else {
            (None, words)
        };
        let head = match self.known_head(given, named) {
            Ok(head) => head,
            Err(refused) => return Ok(Err(refused)),
        };
        let of_it = record.code.as_ref().map(|code| code.commit.as_str());
        let told = self.context.head.filter(|_| self.pull_request.is_some());
        // An approval in a pull request counts for that pull request's code only.
        if head.is_none() && (of_it.is_none() || told.is_some_and(|told| of_it != Some(told))) {
            let why = "there is nothing to approve yet: no commit of its work is known";
            return Ok(Err(Refused::new(why).next(STATUS)));
        }
        let facts = &given.issue.facts;
        let branch = facts.get("branch").and_then(Value::as_str);
        let branch = record.code.as_ref().map(|code| &*code.branch).or(branch);
        let branch = branch.filter(|_| !self.is_said_beside(&given.issue));
        if let Some(why) = self.opposed(given, head.as_deref().or(of_it)) {
            let refused = Refused::new(why);
            return Ok(Err(match &head {
                Some(head) => refused.next(format!("/handoff approve {}", short_id(head))),
                None => refused,
            }));
        }
        let code = head.map(|head| Code {
            branch: branch.unwrap_or(&head).to_owned(),
            tree: self.tree(&head),
            commit: head,
        });
        let approve = Update::Annotate {
            handoff: Some(record.id.number()),
            note: because(given, note).reason.unwrap_or_default(),
            facts: self.since_and_by(),
            approval: Some(Approval {
                approved: true,
                code,
            }),
        };
        Ok(Ok((person, approve)))
    }

    /// Why an approval does not count: its review was dismissed, or after it was given, somebody
    /// asked for changes to this commit or a person rejected it.
    fn opposed(&self, given: &Given<'_>, commit: Option<&str>) -> Option<String> {
        let is_review = self.event.kind() == Some(EventKind::PullRequestReview);
        if is_review && self.event.of_written("/state") == Some("dismissed") {
            return Some("the review was dismissed".to_owned());
        }
        let definition = self.rules.protocol().definition();
        let author = self.event.author();
        let since = EventKind::PullRequestReview.since_fact();
        let is_of_it = |note: &Annotation| {
            let facts = definition.event_rules().iter().flat_map(|rule| &rule.facts);
            let mut reviewed = facts.filter(|(_, at)| at.pointers() == ["/review/commit_id"]);
            reviewed.any(|(name, _)| note.facts.get(name).and_then(Value::as_str) == commit)
        };
        let is_later = |at: Moment| at.timestamp() >= given.said_at.timestamp();
        let disapproved = given.issue.annotations.iter().any(|note| {
            let no = note.approval.as_ref().filter(|one| !one.approved);
            let of = no.map(|no| no.code.as_ref().map(|code| &*code.commit));
            of.is_some_and(|of| of.is_none() || of == commit) && said_at(note).is_some_and(is_later)
        });
        if disapproved {
            return Some("since then, it was disapproved".to_owned());
        }
        let notes = given.issue.annotations.iter();
        notes
            .map(beside::usual)
            .filter(|note| note.facts.contains_key(&since))
            .find_map(|note| {
                let mut all = definition.facts.opinions.iter();
                let said = all.find_map(|rules| Opinion::of(rules, &note))?;
                let ends = said.withdraws() && author.as_deref() == Some(said.by)
                    || said.asks() && commit.is_some() && is_of_it(&note);
                let why = || format!("since then, the review by {} is {}", said.by, said.value);
                (ends && is_later(said.since())).then(why)
            })
    }

    /// The time of the comment or review, as a fact for later events to be compared with.
    fn since(&self) -> Map<String, Value> {
        let said = self.event.kind().zip(self.event.happened_at());
        let fact = said.map(|(kind, at)| (kind.since_fact(), at.rfc3339().into()));
        fact.into_iter().collect()
    }

    /// The same, and who said it on GitHub.
    fn since_and_by(&self) -> Map<String, Value> {
        let mut facts = self.since();
        facts.extend(
            self.event
                .author()
                .map(|by| (SAID_BY.to_owned(), by.into())),
        );
        facts
    }

    /// Withdraws a person's approval if the review that gave it is dismissed, or if later the same
    /// person's review of the same commit is dismissed, or somebody with write permission asks for
    /// changes to it.
    pub(super) fn take_back(&mut self, rules: &[EventRule]) -> Result<(), LedgerError> {
        let is_dismissed = self.event.action() == Some("dismissed");
        let asks = self.event.of_written("/state") == Some("changes_requested");
        let Some(rule) = rules.first().filter(|_| is_dismissed || asks) else {
            return Ok(());
        };
        let Some((person, issue)) = self.person(rule).zip(self.issue()?) else {
            return Ok(());
        };
        let words = issue.annotations.iter().filter(|note| note.by == person);
        let words = words.filter_map(|note| Some((note, note.approval.as_ref()?)));
        let newest = words.max_by_key(|(note, _)| note.said_at().unwrap_or(note.at).timestamp());
        let Some((last, approval)) = newest else {
            return Ok(());
        };
        let said_in = last.event.as_ref().map(ToString::to_string);
        let is_of_it = is_dismissed && said_in == self.event.said_in();
        let commit = approval.code.as_ref().map(|code| &*code.commit);
        let said_by = last.facts.get(SAID_BY).and_then(Value::as_str);
        let is_own = is_dismissed && said_by.is_some() && said_by == self.event.author().as_deref();
        let is_of_commit = commit.is_some() && commit == self.event.of_written("/commit_id");
        let may_ask = || self.entitled(Permission::Write, "ask for changes").is_ok();
        let is_against = is_of_commit && (is_own || asks && may_ask());
        let is_before = said_at(last).zip(self.event.happened_at());
        let is_before = is_before.is_none_or(|(said, asks)| said.timestamp() <= asks.timestamp());
        let delivery = self.part(rule, "taken-back")?;
        let Some(id) = last
            .id
            .as_ref()
            .filter(|_| approval.approved && (is_of_it || is_against && is_before))
        else {
            return Ok(());
        };
        if self.had(rule, "noted", &delivery)? {
            return Ok(());
        }
        let done = if is_dismissed {
            "dismissed"
        } else {
            "changes requested"
        };
        let no = Update::Annotate {
            handoff: Some(id.number()),
            note: format!("{done} on GitHub: {}", self.said_by()),
            facts: self.since(),
            approval: Some(Approval {
                approved: false,
                code: approval.code.clone(),
            }),
        };
        let session = self.context.session.delivering(delivery);
        let done = self
            .context
            .ledger
            .update(&session, &person, &self.key, &no);
        self.took(rule, "noted", Map::new(), done)
    }

    /// The person in whose name a rule's comments approve: the rule's agent, or the protocol's only
    /// person.
    fn person(&self, rule: &EventRule) -> Option<AgentName> {
        let people: Vec<&AgentName> = self.rules.protocol().definition().people().collect();
        match people[..] {
            _ if people.contains(&&rule.agent) => Some(rule.agent.clone()),
            [only] => Some(only.clone()),
            _ => None,
        }
    }

    /// The handoff to approve: the named one, or the newest for which a requirement asks a person.
    fn approvable(
        &self,
        given: &Given<'_>,
        asked: &Asked,
    ) -> Result<Result<Record, Refused>, LedgerError> {
        let issue = &given.issue;
        let found = match &asked.id {
            Some(id) if id.issue() != &issue.issue => return Ok(Err(of_another(id, issue))),
            Some(id) => match self.record(id)? {
                Some(record) => record,
                None => return Ok(Err(unknown(id))),
            },
            None => match self.newest_approvable(issue)? {
                Ok(record) => record,
                Err(types) => {
                    let why = format!("there is nothing to approve yet: nobody sent {types}");
                    return Ok(Err(Refused::new(why).next(STATUS)));
                }
            },
        };
        let is_newer = found
            .sent_at()
            .is_some_and(|sent| sent.timestamp() > given.said_at.timestamp());
        Ok(if is_newer {
            let why = format!("{} was sent after this was said", found.id);
            Err(Refused::new(why).next(format!("/handoff approve {}", found.id)))
        } else {
            Ok(found)
        })
    }

    fn newest_approvable(&self, issue: &Issue) -> Result<Result<Record, String>, LedgerError> {
        let requirements = self.rules.protocol().definition().requirements.values();
        let asking = requirements.filter(|one| !one.approved_by.is_empty());
        let types: BTreeSet<&String> = asking.flat_map(|one| &one.shown_by).collect();
        for number in (1..=issue.handoffs).rev() {
            let record = self.record(&HandoffId::new(self.key.clone(), number))?;
            let turned_down = [State::Rejected, State::Cancelled];
            let fits = |record: &Record| {
                let asked = types.is_empty() || types.contains(&record.contract_type);
                asked && !turned_down.contains(&record.state)
            };
            if let Some(record) = record.filter(fits) {
                return Ok(Ok(record));
            }
        }
        let types: Vec<&str> = types.into_iter().map(String::as_str).collect();
        Ok(Err(types.join(" or ")))
    }

    /// The newest known commit of the pull request; refused if the author may not have seen it.
    fn known_head(
        &self,
        given: &Given<'_>,
        named: Option<&str>,
    ) -> Result<Option<String>, Refused> {
        let issue = &given.issue;
        if self.is_said_beside(issue) {
            return self.head_beside(given, named).map(Some);
        }
        let head = noted(issue, HEAD).and_then(Value::as_str);
        let Some(head) = head.or_else(|| self.event.text("/pull_request/head/sha")) else {
            return match named {
                Some(named) => Err(Refused::new(format!(
                    "no commit of a pull request is known in issue {}, and so not {named}",
                    issue.issue
                ))),
                None => Ok(None),
            };
        };
        let again = format!("/handoff approve {}", short_id(head));
        let newest = format!(
            "the pull request's newest commit that is known is {}",
            short_id(head)
        );
        let seen = named.or_else(|| self.event.text("/review/commit_id"));
        if let Some(seen) = seen.filter(|seen| !head.starts_with(&seen.to_ascii_lowercase())) {
            let why = format!("{newest}, and not {}", short_id(seen));
            return Err(Refused::new(why).next(again));
        }
        let pushed = head_since(issue, head).filter(|_| !seen.is_some_and(is_whole));
        if pushed.is_some_and(|at| at > given.said_at.timestamp()) {
            return Err(
                Refused::new(format!("{newest}, which came after this was said")).next(again),
            );
        }
        Ok(Some(head.to_owned()))
    }

    /// The newest commit of another pull request: from the review or from GitHub, else as noted.
    /// Refused if its author approves, or the approver may not have seen it.
    fn head_beside(&self, given: &Given<'_>, named: Option<&str>) -> Result<String, Refused> {
        let author = ["/issue/user/login", "/pull_request/user/login"];
        let mut author = author.iter().filter_map(|place| self.event.text(place));
        let by = self.event.of_written("/user/login");
        if author.any(|author| by.is_some_and(|by| by.eq_ignore_ascii_case(author))) {
            return Err(Refused::new(
                "the author of a pull request can't approve it",
            ));
        }
        let known = self
            .pull_request
            .and_then(|of| beside::head(&given.issue, of));
        let told = self
            .event
            .text("/pull_request/head/sha")
            .or(self.context.head);
        let Some(head) = told.or(known.map(|(head, _)| head)) else {
            return Err(Refused::new(
                "the pull request's newest commit is not known",
            ));
        };
        let again = format!("/handoff approve {head}");
        let is = format!("the pull request's newest commit is {}", short_id(head));
        let seen = named.or_else(|| self.event.text("/review/commit_id"));
        if let Some(seen) = seen.filter(|seen| !head.starts_with(&seen.to_ascii_lowercase())) {
            let why = format!("{is}, and not {}", short_id(seen));
            return Err(Refused::new(why).next(again));
        }
        let since = known
            .filter(|(known, _)| *known == head)
            .and_then(|(_, since)| since);
        // An abbreviated id is no proof: somebody can make another commit with the same prefix.
        if seen.is_some_and(is_whole) || since.is_some_and(|at| at <= given.said_at.timestamp()) {
            return Ok(head.to_owned());
        }
        Err(Refused::new(format!("{is}, which may have come after this was said")).next(again))
    }

    /// The tree of a commit, if the repository has the commit.
    fn tree(&self, commit: &str) -> Option<String> {
        let commit: ObjectId = commit.parse().ok()?;
        let found = self.context.ledger.repository().commit(commit).ok()?;
        Some(found.tree.to_string())
    }

    fn record(&self, id: &HandoffId) -> Result<Option<Record>, LedgerError> {
        self.context
            .ledger
            .tip()?
            .issue(&self.key)?
            .record(id.number())
    }

    /// The refusal of a step, with what to write instead.
    fn refused(
        &self,
        error: LedgerError,
        said: &Said,
    ) -> Result<Result<String, Refused>, LedgerError> {
        let LedgerError::Refused(refusal) = &error else {
            let why = too_late(&error).ok_or(error)?;
            return Ok(Err(Refused::new(why)));
        };
        let refused = match refusal {
            Refusal::Role(_) => Refused::new(refusal.to_string()),
            Refusal::Retry(RetryRefusal::NotAssignable { id, others, .. }) => {
                let refused = Refused::new(refusal.to_string());
                match others.first() {
                    Some(other) => refused.next(format!("/handoff assign {id} {other}")),
                    None => refused,
                }
            }
            Refusal::Request(RequestRefusal::AnswerUnfit { id, .. }) => {
                let why = too_late(&error).unwrap_or_else(|| refusal.to_string());
                match self.record(id)? {
                    Some(record) => Refused::new(why).next(answer_lines(&record)),
                    None => Refused::new(why),
                }
            }
            Refusal::State(StateRefusal::SaidBefore { .. }) => {
                Refused::new(refusal.to_string()).next(said.lines.join("\n"))
            }
            _ => {
                let why = too_late(&error).unwrap_or_else(|| refusal.to_string());
                Refused::new(why).next(STATUS)
            }
        };
        Ok(Err(refused))
    }
}

/// Whether this is a full commit id.
fn is_whole(id: &str) -> bool {
    id.len() >= 40
}

/// A command that is always safe.
const STATUS: &str = "/handoff status";

fn allowed(rule: &EventRule) -> &[Command] {
    rule.effect.as_ref().map_or(&[], |effect| effect.commands())
}

/// The word for an executed command in the outcome.
fn done(command: Command) -> &'static str {
    match command {
        Command::Answer => "answered",
        Command::Approve => "approved",
        Command::Retry => "retried",
        Command::Assign => "reassigned",
        Command::Cancel => "cancelled",
        Command::Status => "told",
    }
}

/// The commands that rules allow, as a sentence.
fn usable(rules: &[&EventRule]) -> String {
    let all = Command::ALL.into_iter();
    let all = all.filter(|command| rules.iter().any(|rule| allowed(rule).contains(command)));
    let all: Vec<&str> = all.map(Command::as_str).collect();
    format!("the commands are /handoff {}", all.join(", "))
}

fn unclear(why: &Unclear, said: &Said, rules: &[&EventRule]) -> Refused {
    let refused = match why {
        Unclear::None | Unclear::Unknown => Refused::new(format!("{why}: {}", usable(rules))),
        _ => return Refused::new(why.to_string()),
    };
    let mut words = said.lines[0].split_whitespace().skip(1);
    let first = words.next().unwrap_or_default().to_ascii_lowercase();
    let first = first.trim_end_matches(':');
    let known = Command::ALL.into_iter().map(Command::as_str);
    let meant = known.clone().find(|known| *known == first);
    match meant.or_else(|| closest(first, known)) {
        Some(close) => {
            let rest: Vec<&str> = words.collect();
            let line = format!("/handoff {close} {}", rest.join(" "));
            refused.next(line.trim_end())
        }
        None => refused.next(STATUS),
    }
}

fn first_word(text: &str) -> (&str, &str) {
    let (first, after) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (first, after.trim())
}

/// The handoff that a command is about: the named one, or the only one in a suitable state.
fn pick(
    given: &Given<'_>,
    asked: &Asked,
    fits: impl Fn(State) -> bool,
    what: &str,
) -> Result<HandoffId, Refused> {
    let issue = &given.issue;
    if let Some(id) = &asked.id {
        return if id.issue() == &issue.issue {
            Ok(id.clone())
        } else {
            Err(of_another(id, issue))
        };
    }
    let found = issue.open.iter().filter(|open| fits(open.state));
    let found: Vec<&HandoffId> = found.map(|open| &open.id).collect();
    match found[..] {
        [only] => Ok(only.clone()),
        [] => Err(Refused::new(format!("nothing in issue {} {what}", issue.issue)).next(STATUS)),
        [first, ..] => {
            let ids: Vec<String> = found.iter().map(ToString::to_string).collect();
            let line = format!(
                "/handoff {} {first} {}",
                asked.command.as_str(),
                asked.rest.join(" ")
            );
            let why = format!("it does not say which is meant: {}", ids.join(", "));
            Err(Refused::new(why).next(line.trim_end()))
        }
    }
}

fn to_cancel(given: &Given<'_>, asked: &Asked) -> Step {
    let id = pick(given, asked, |_| true, "is open")?;
    let args = because(given, &asked.rest[0]);
    let cancel = Update::change(id.number(), Happens::Cancel, args);
    Ok((given.rule.agent.clone(), cancel))
}

fn of_another(id: &HandoffId, issue: &Issue) -> Refused {
    Refused::new(format!("{id} is not of issue {}", issue.issue)).next(STATUS)
}

fn unknown(id: &HandoffId) -> Refused {
    Refused::new(format!("there is no handoff {id}")).next(STATUS)
}

/// The event arguments with the text as the reason, its author and its time.
fn because(given: &Given<'_>, text: &str) -> EventArgs {
    let text = without_invisible(text);
    let reason = match text.trim() {
        "" => format!("by {}", given.by),
        text => format!("{text} (by {})", given.by),
    };
    EventArgs {
        reason: Some(reason),
        said_at: Some(given.said_at),
        ..EventArgs::default()
    }
}

/// The refusal of a command that was written before the handoff's last transition.
fn changed_since(given: &Given<'_>, record: &Record, again: &str) -> Option<Refused> {
    let last = record.latest()?.at;
    (last.timestamp() > given.said_at.timestamp()).then(|| {
        let why = format!(
            "{} changed after this was said: it is {}",
            record.id, record.state
        );
        Refused::new(why).next(again)
    })
}

/// When an approval was given; for one by the command line, when it was recorded.
fn said_at(note: &Annotation) -> Option<Moment> {
    let recorded = note.event.is_none().then_some(note.at);
    note.said_at().or(recorded)
}

/// When a commit became the newest one according to events, in seconds since 1970.
fn head_since(issue: &Issue, head: &str) -> Option<i64> {
    let mut earliest = None;
    for note in issue.annotations.iter().rev() {
        match note.facts.get(HEAD).and_then(Value::as_str) {
            Some(known) if known == head => {
                let at = note.facts.get(&EventKind::PullRequest.since_fact());
                let at = at.and_then(Value::as_str);
                let at = at.and_then(|at| chrono::DateTime::parse_from_rfc3339(at).ok());
                earliest = at.map(|at| at.timestamp()).or(earliest);
            }
            Some(_) => break,
            None => {}
        }
    }
    earliest
}
