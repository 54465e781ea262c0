//! Sets the fields that order the queue, and the links between issues.

use handoff_base::Edit;
use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::text::quoted;
use serde_json::{Map, Value};

use crate::layout;
use crate::planner::{Changed, Planner, trail};
use crate::record::{Annotation, Issue, Paused, Record, View};
use crate::refusal::{Refusal, RequestRefusal};
use crate::step::{Planned, StepEvent, Stop};

/// The fields that can be set.
const SETTABLE: [&str; 5] = [
    "priority",
    "labels",
    "duplicate_of",
    "split_from",
    "split_into",
];

/// What `set` changes of an issue, as the command names it.
pub const ISSUE_SETTINGS: [&str; 6] = [
    "priority",
    "labels",
    "assignee",
    "after",
    "duplicate_of",
    "split_from",
];

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Sets facts of an open issue, and the issues that it comes after. A priority applies to
    /// everything that is open in the issue, and to what follows.
    pub(super) fn set(
        &self,
        mut issue: Issue,
        facts: &Map<String, Value>,
        reason: &str,
        (after, assignee): (Option<&[IssueKey]>, Option<&(u32, AgentName)>),
    ) -> Result<Planned, Stop<E>> {
        let about = self.record(&self.id(issue.handoffs))?;
        let priority = self.settable(facts)?;
        self.ensure_open(&issue)?;
        let names = facts.keys().map(String::as_str);
        let order = after.map(|_| "after");
        let names = names.chain(order).chain(assignee.map(|_| "assignee"));
        let names = names.collect::<Vec<_>>().join(", ");
        self.ensure_may_pause(&about, &format!("set {names} of"))?;
        let definition = self.protocol.definition();
        let is_known = |(name, value): (&String, &Value)| {
            let known = issue.fact(definition, name).map(|known| known.value);
            known.unwrap_or(&Value::Null) == value
        };
        let is_known = facts.iter().all(is_known);
        let given = assignee.map(|one| self.reassigned(&mut issue, one, reason));
        let mut given = given.transpose()?.flatten();
        let mut moved = match priority {
            Some(word) => self.prioritized(&mut issue, word, given.as_mut())?,
            None => Vec::new(),
        };
        let paused = match after {
            None => None,
            Some([]) => self.end_order(&mut issue, &mut moved, given.as_ref(), reason)?,
            Some(after) => self.begin_pause(&mut issue, &about, reason, (&[], after), None)?,
        };
        if moved.is_empty() && given.is_none() && is_known && paused.is_none() {
            return Ok(Planned::Repeat(Box::new(self.repeated(about, issue))));
        }
        let note = Annotation {
            at: self.step.at,
            by: self.step.by.clone(),
            id: None,
            note: reason.to_owned(),
            event: None,
            facts: facts.clone(),
            approval: None,
            worker: self.step.worker.clone(),
        };
        self.add_note(&mut issue, note).map_err(Refusal::from)?;
        let each = facts.iter().map(|(name, value)| match value {
            Value::String(text) => format!("{name}={}", quoted(text)),
            Value::Null => format!("{name}=none"),
            other => format!("{name}={other}"),
        });
        let after = after.filter(|_| paused.is_some()).map(|after| {
            let after: Vec<&str> = after.iter().map(IssueKey::as_str).collect();
            match after[..] {
                [] => "after=none".to_owned(),
                _ => format!("after={}", after.join(",")),
            }
        });
        let assigned = given.iter().map(|given| format!("assignee={}", given.to));
        let each = each.chain(after).chain(assigned);
        let done = format!("set {}", each.collect::<Vec<_>>().join(" "));
        let account = trail::remark(StepEvent::Set, self.key, &done, reason);
        let status = issue.status.as_str();
        let first = given.iter().chain(&moved).next();
        let mut planned = if let Some(first) = first.map(|first| first.id.clone()) {
            let is_given = given.is_some();
            let mut changed = Changed {
                quiet: moved,
                ..Changed::of(issue, first, given.into_iter().collect())
            };
            if is_given {
                self.follow_tasks(&mut changed)?;
            }
            self.await_somebody(&mut changed)?;
            Planned::Write(Box::new(self.commit(changed, &account)?))
        } else {
            let transition = format!("{} {status}..{status}", self.key);
            let message = self.message(&issue, &about, &[transition], &account);
            self.in_the_issue(issue, about, message)?
        };
        if let Planned::Write(step) = &mut planned {
            step.files.extend(paused);
        }
        Ok(planned)
    }

    /// Lets an issue no longer come after others; another pause is not lifted. Work that was held
    /// back joins what is `moved`, but for the `given` one, which has no deadline anyway.
    fn end_order(
        &self,
        issue: &mut Issue,
        moved: &mut Vec<Record>,
        given: Option<&Record>,
        reason: &str,
    ) -> Result<Option<(String, Edit)>, Stop<E>> {
        let is_order = |paused: &mut Paused| !paused.after.is_empty();
        let Some(paused) = issue.paused.take_if(is_order) else {
            return Ok(None);
        };
        for waiting in self.held_back(issue, &paused)? {
            match moved.iter_mut().find(|one| one.id == waiting.id) {
                Some(one) => one.acknowledge_by = None,
                None if given.is_some_and(|given| given.id == waiting.id) => {}
                None => moved.push(waiting),
            }
        }
        self.resumed(issue, Some(paused), reason, None);
        Ok(Some((layout::paused_file(self.key), Edit::Gone)))
    }

    /// The priority among these facts, all of which must be settable.
    fn settable<'f>(&self, facts: &'f Map<String, Value>) -> Result<Option<&'f str>, Refusal> {
        let words = &self.protocol.definition().words.priorities;
        let unset = |what: String, known: Vec<String>, example: String| {
            let issue = self.key.clone();
            Err(RequestRefusal::NotSettable {
                issue,
                what,
                known,
                example,
            }
            .into())
        };
        let names = |what: String| {
            let mut names = ISSUE_SETTINGS
                .iter()
                .filter(|name| **name != "priority" || !words.is_empty());
            let names = names.by_ref().map(ToString::to_string).collect();
            unset(what, names, "labels=urgent".to_owned())
        };
        if let Some(name) = facts.keys().find(|name| !SETTABLE.contains(&name.as_str())) {
            return names(quoted(name));
        }
        let priority = facts
            .get("priority")
            .map(|word| word.as_str().unwrap_or_default());
        if let Some(word) = priority.filter(|word| words.iter().all(|known| known != word)) {
            let what = format!("the priority {}", quoted(word));
            let Some(first) = words.first() else {
                let protocol = self.protocol.name();
                return names(format!("{what}, of which protocol {protocol} has none,"));
            };
            return unset(what, words.clone(), format!("priority={first}"));
        }
        Ok(priority)
    }

    /// The open handoffs whose priority changes, but for the `given` one, which gets it too.
    fn prioritized(
        &self,
        issue: &mut Issue,
        word: &str,
        mut given: Option<&mut Record>,
    ) -> Result<Vec<Record>, Stop<E>> {
        issue.facts.insert("priority".to_owned(), word.into());
        let mut moved = Vec::new();
        for open in &issue.open {
            if let Some(given) = given.as_mut().filter(|given| given.id == open.id) {
                given.priority = Some(word.to_owned());
                continue;
            }
            let mut record = self.record(&open.id)?;
            if record.priority.as_deref() != Some(word) {
                record.priority = Some(word.to_owned());
                moved.push(record);
            }
        }
        Ok(moved)
    }
}
