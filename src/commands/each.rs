//! One command that changes many handoffs or issues, with a step for each.

use std::collections::BTreeSet;

use clap::Args;
use handoff::base::ObjectId;
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::base::text::continued;
use handoff::ledger::Snapshot;
use handoff::model::{Receipt, Record, Update, View};
use handoff::protocol::State;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::filter::Query;
use crate::context::Context;
use crate::exit;
use crate::failure::Failure;
use crate::output::{Answer, Output, counted};
use crate::render::receipt::taken_from;
use crate::view::Look;

// No doc comment: it would become the help of the commands.
#[derive(Args)]
pub(super) struct Where {
    /// Instead of naming it: all that meets these conditions, `title~csv and state=pending`, as `list --where` shows it
    #[arg(long = "where", value_name = "QUERY")]
    pub(super) query: Option<Query>,
}

/// The name of a target, its issue, and its update, or why it is refused.
pub(super) type Target = (String, IssueKey, Result<Update, Failure>);

/// The changes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Each")]
pub(crate) struct EachView {
    /// each handoff or issue that was changed, or needed no change
    changed: Vec<Changed>,
    /// each that was refused: their exit if nothing else was changed and they have one, else 1
    refused: Vec<Refused>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EachChanged")]
struct Changed {
    /// the handoff or the issue
    about: String,
    /// the commit that was written; null if nothing changed
    commit: Option<ObjectId>,
    /// what was set
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set: Vec<SetTo>,
    /// who held it, and is told
    #[serde(skip_serializing_if = "Option::is_none")]
    told: Option<String>,
    /// What it is now, or what was noted of an issue that is only mentioned.
    #[serde(skip)]
    done: String,
}

/// What was set.
#[derive(Serialize, JsonSchema)]
struct SetTo {
    /// its name
    name: String,
    /// what it was; null if it was not set
    from: Value,
    /// what it is; null for nothing
    to: Value,
}

impl SetTo {
    /// What an update sets in an issue, as seen before it.
    fn all(tip: &Snapshot<'_>, key: &IssueKey, update: &Update) -> Result<Vec<Self>, Failure> {
        let Some(issue) = tip.issue(key)?.issue()? else {
            return Ok(Vec::new());
        };
        let rules = tip.rules(issue.protocol.as_str())?;
        let definition = rules.protocol().definition();
        let to = |name: &str, from: Option<Value>, to: Value| Self {
            name: name.to_owned(),
            from: from.unwrap_or_default(),
            to,
        };
        let before = tip.paused(key)?.map(|paused| paused.after);
        let before = before.filter(|after| !after.is_empty());
        let order = |after: &[IssueKey]| match after {
            [] => to("after", before.clone().map(|all| json!(all)), Value::Null),
            after => to("after", before.clone().map(|all| json!(all)), json!(after)),
        };
        Ok(match update {
            Update::Set {
                facts,
                after,
                assignee,
                ..
            } => {
                let number = assignee.as_ref().map(|(number, _)| *number);
                let held = number.map(|number| tip.issue(key)?.record(number));
                let held = held.transpose()?.flatten().map(|record| json!(record.to));
                let given = assignee
                    .as_ref()
                    .map(|(_, agent)| to("assignee", held, json!(agent)));
                let each = facts.iter().map(|(name, value)| {
                    let known = issue
                        .fact(definition, name)
                        .map(|known| known.value.clone());
                    to(name, known, value.clone())
                });
                let order = after.as_deref().map(order);
                each.chain(order).chain(given).collect()
            }
            Update::Pause { .. } if before.is_some() => vec![order(&[])],
            _ => Vec::new(),
        })
    }

    fn text(&self) -> String {
        let shown = |value: &Value| match value {
            Value::Null => "none".to_owned(),
            Value::String(text) => text.clone(),
            Value::Array(all) => {
                let all = all.iter().filter_map(Value::as_str);
                all.collect::<Vec<_>>().join(",")
            }
            other => other.to_string(),
        };
        let (name, from, to) = (&self.name, shown(&self.from), shown(&self.to));
        if from == to {
            return format!("{name} is {}", continued(&to));
        }
        format!("{name} {} → {}", continued(&from), continued(&to))
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EachRefused")]
struct Refused {
    /// the handoff or the issue
    about: String,
    /// why
    why: String,
}

impl Refused {
    fn of(about: String, failure: &Failure, output: &Output) -> Self {
        let next = output.sentence(failure.next());
        let why = format!("{}; {next}", failure.message);
        Self { about, why }
    }
}

impl Answer for EachView {
    fn text(&self, _: &Look) -> String {
        if self.changed.is_empty() && self.refused.is_empty() {
            return "nothing meets these conditions; nothing was written\n".to_owned();
        }
        let changed = self.changed.iter().map(|one| {
            let set: Vec<String> = one.set.iter().map(|set| set.text()).collect();
            let set = set.join(", ");
            match one.commit {
                Some(commit) => {
                    let told = one.told.iter().map(|told| format!("  {told}\n"));
                    let told: String = told.collect();
                    let done = if set.is_empty() { &one.done } else { &set };
                    format!("{}: {done}  commit {}\n{told}", one.about, commit.short())
                }
                None if set.is_empty() => format!("{}: unchanged\n", one.about),
                None => format!("{}: unchanged, {set}\n", one.about),
            }
        });
        let refused = self.refused.iter();
        let refused = refused.map(|one| format!("{}: refused: {}\n", one.about, one.why));
        let counts = match self.refused.len() {
            0 => String::new(),
            n => format!(
                "{n} of {} refused\n",
                counted(n + self.changed.len(), "change")
            ),
        };
        changed.chain(refused).collect::<String>() + &counts
    }
}

/// What a handoff or an issue is after an update that sets nothing.
fn outcome(update: &Update, receipt: &Receipt) -> String {
    match update {
        Update::Annotate { note, .. } => format!("noted that {}", continued(note)),
        Update::Change { .. } => receipt.record.state.to_string(),
        Update::Pause { .. } => "paused".to_owned(),
        Update::Reopen { .. } | Update::GiveUp { .. } => receipt.issue.status.to_string(),
        _ => "done".to_owned(),
    }
}

/// Applies each update. A refused one does not stop the others, except the notes that go with a
/// refused `set`.
pub(super) fn each(
    context: &Context,
    output: &mut Output,
    targets: impl FnOnce(&Snapshot<'_>, &AgentName) -> Result<Vec<Target>, Failure>,
) -> Result<(), Failure> {
    let repository = context.repository()?;
    let agent = context.acting_agent(&repository)?;
    let (mut ledger, session) = context.writer(&repository, output)?;
    let targets = targets(&ledger.tip()?, &agent)?;
    let mut view = EachView {
        changed: Vec::new(),
        refused: Vec::new(),
    };
    let (mut is_refused, mut failures) = (false, Vec::new());
    for (about, issue, update) in targets {
        if is_refused && matches!(update, Ok(Update::Annotate { .. })) {
            continue;
        }
        let update = match update {
            Ok(update) => update,
            Err(failure) => {
                failures.push((about, failure));
                continue;
            }
        };
        let is_set = matches!(update, Update::Set { .. });
        is_refused &= !is_set;
        let set = SetTo::all(&ledger.tip()?, &issue, &update)?;
        match ledger.update(&session, &agent, &issue, &update) {
            Ok(done) => view.changed.push(Changed {
                about,
                commit: done.commit,
                set,
                told: taken_from(&done.receipt),
                done: outcome(&update, &done.receipt),
            }),
            Err(error) => {
                failures.push((about, error.into()));
                is_refused |= is_set;
            }
        }
    }
    output.follow(&ledger);
    let is_alone = view.changed.is_empty() && failures.len() == 1;
    if let Some((_, failure)) = failures.pop_if(|_| is_alone) {
        return Err(failure);
    }
    let mut exits = failures.iter().map(|(_, failure)| failure.exit);
    let exit = exits.next().map(|first| {
        let is_same = view.changed.is_empty() && exits.all(|exit| exit == first);
        if is_same { first } else { exit::NO }
    });
    let refused = failures.into_iter();
    let refused = refused.map(|(about, failure)| Refused::of(about, &failure, output));
    view.refused = refused.collect();
    output.answer(&view)?;
    exit.map_or(Ok(()), |exit| Err(Failure::reported(exit)))
}

/// The open handoffs that meet the conditions and are in one of these states; in any state if none
/// is named.
pub(super) fn found(
    tip: &Snapshot<'_>,
    query: &Query,
    states: &[State],
) -> Result<Vec<Record>, Failure> {
    let query = query.clone().known(tip)?;
    let mut records = Vec::new();
    for entry in tip.open()? {
        records.push(tip.open_record(&entry)?);
    }
    records.retain(|record| states.is_empty() || states.contains(&record.state));
    query.retain(tip, &mut records)?;
    Ok(records)
}

/// The issues of the open handoffs that meet the conditions.
pub(super) fn issues(tip: &Snapshot<'_>, query: &Query) -> Result<BTreeSet<IssueKey>, Failure> {
    let found = found(tip, query, &[])?;
    Ok(found
        .iter()
        .map(|record| record.id.issue().clone())
        .collect())
}

/// The target for an update of a handoff.
pub(super) fn of(id: &HandoffId, update: Update) -> Target {
    (id.to_string(), id.issue().clone(), Ok(update))
}
