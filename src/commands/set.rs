use std::ffi::OsString;

use clap::Args;
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::base::text::{quoted, word};
use handoff::ledger::Snapshot;
use handoff::model::planner::ISSUE_SETTINGS;
use handoff::model::{EventArgs, Refusal, Update, View};
use handoff::protocol::Event;
use serde_json::{Map, Value, json};

use crate::args::text::{self, Reason};
use crate::commands::each::{Target, Where, each, issues, of};
use crate::context::{Context, handoff_id};
use crate::failure::Failure;
use crate::output::Output;

/// Set the priority, the assignee or the labels of issues, and how they relate to others
///
/// One command, one step an issue. The priority, one of the protocol's `priorities`, is that of all that is open in the issue and of what follows; the queue goes by it at once.
/// `assignee` gives the open handoff to another agent. What has `after` is handed to nobody before those issues have ended.
/// `duplicate_of` and `split_from` are links, which both issues show. An orchestrator, a person and who opened the issue can set them.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff set 123 124 priority=high --as orchestrator \\
      --reason 'a customer waits'
  git handoff set --where 'title~csv and state=pending' priority=low \\
      --as orchestrator --reason 'after the release'
  git handoff set 124 after=123 --as orchestrator --reason 'it needs 123'
  git handoff set 124 split_from=123 --as orchestrator --reason 'two subjects'")]
pub(crate) struct Arguments {
    /// Issues, then what to set: priority=WORD, assignee=AGENT, labels=A,B, after=ISSUE,…, duplicate_of=ISSUE, split_from=ISSUE
    #[arg(value_name = "ISSUE… NAME=VALUE", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    which: Where,
    #[command(flatten)]
    why: Reason,
}

/// The setting that an option of this name means, such as `--priority`.
pub(crate) fn setting(option: &str) -> Option<String> {
    let name = option.trim_start_matches('-').split('=').next()?;
    let name = name.replace('-', "_");
    ISSUE_SETTINGS.contains(&&*name).then_some(name)
}

/// The command with its settings as words, and a reason.
pub(crate) fn without_dashes(arguments: &[OsString]) -> String {
    let mut text = "git handoff".to_owned();
    let mut given = arguments.iter().skip(1).map(|one| one.to_string_lossy());
    let mut has_reason = false;
    while let Some(one) = given.next() {
        has_reason |= ["--reason", "--message", "-r", "-m"]
            .iter()
            .any(|option| one.starts_with(option));
        let name = one.strip_prefix("--").and_then(|_| setting(&one));
        let written = name.map(|name| match one.split_once('=') {
            Some((_, value)) => format!("{name}={value}"),
            None => format!("{name}={}", given.next().unwrap_or("VALUE".into())),
        });
        text += &format!(" {}", word(&written.unwrap_or(one.into_owned())));
    }
    if !has_reason {
        text += " --reason WHY";
    }
    text
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let (set, named): (Vec<_>, Vec<_>) = self.words.iter().partition(|word| word.contains('='));
        if set.is_empty() || named.is_empty() == self.which.query.is_none() {
            let text = "name issues or give --where, and what to set";
            return Err(Failure::usage(text)
                .hint("such as `git handoff set 12 labels=urgent --reason WHY`"));
        }
        let mut set: Vec<_> = set.iter().filter_map(|word| word.split_once('=')).collect();
        set.sort_unstable();
        set.dedup();
        if let Some(twice) = set.windows(2).find(|two| two[0].0 == two[1].0) {
            let text = format!("{} is given two values", quoted(twice[0].0));
            return Err(Failure::usage(text).hint("nothing was written; give one of them"));
        }
        let reason = text::kept(&self.why.reason)?;
        let named = named.iter().map(|issue| Ok(issue.parse()?));
        let named: Vec<IssueKey> = named.collect::<Result<_, Failure>>()?;
        each(context, output, |tip, _| {
            let keys = match &self.which.query {
                Some(query) => issues(tip, query)?.into_iter().collect(),
                None => named,
            };
            let targets = keys.iter().flat_map(|key| {
                targets(tip, key, (&set, &reason)).unwrap_or_else(|failure| {
                    vec![(format!("issue {key}"), key.clone(), Err(failure))]
                })
            });
            Ok(targets.collect())
        })?;
        // Whoever sets this often means the other.
        let duplicates = set.iter().find(|(name, _)| *name == "duplicate_of");
        if let Some((_, other)) = duplicates.filter(|(_, other)| !["", "none"].contains(other)) {
            let end = output.command(&format!("git handoff cancel ISSUE --duplicate-of {other}"));
            output.say(&format!(
                "that is a link: the issue stays open; to end it: {end}"
            ));
        }
        Ok(())
    }
}

/// The updates that make these settings of an issue.
fn targets(
    tip: &Snapshot<'_>,
    key: &IssueKey,
    (set, reason): (&[(&str, &str)], &str),
) -> Result<Vec<Target>, Failure> {
    let (mut facts, mut after, mut assignee) = (Map::new(), None, None);
    let mut targets = Vec::new();
    for (name, value) in set {
        let set = (&mut facts, &mut after, &mut assignee);
        targets.extend(change(tip, key, (name, value, reason), set)?);
    }
    let reason = reason.to_owned();
    let target = match assignee {
        Some((number, receiver)) if facts.is_empty() && after.is_none() => {
            let args = EventArgs {
                receiver: Some(receiver),
                ..EventArgs::because(&reason)
            };
            let update = Update::change(number, Event::Reassign, args);
            of(&HandoffId::new(key.clone(), number), update)
        }
        _ => {
            let update = Update::Set {
                facts,
                reason,
                after,
                assignee,
            };
            (format!("issue {key}"), key.clone(), Ok(update))
        }
    };
    targets.insert(0, target);
    Ok(targets)
}

/// An issue's facts, the issues it comes after, and who gets a handoff.
type Set<'s> = (
    &'s mut Map<String, Value>,
    &'s mut Option<Vec<IssueKey>>,
    &'s mut Option<(u32, AgentName)>,
);

/// Parses one setting of an issue; returns the other updates that it needs.
fn change(
    tip: &Snapshot<'_>,
    key: &IssueKey,
    (name, value, reason): (&str, &str, &str),
    (facts, comes_after, assignee): Set<'_>,
) -> Result<Vec<Target>, Failure> {
    let note = |other: IssueKey, note: String| {
        let note = Update::note(format!("{note}: {reason}"));
        vec![(format!("issue {other}"), other, Ok(note))]
    };
    Ok(match name {
        "assignee" => {
            let id = handoff_id(tip, key.as_str(), None)?;
            *assignee = Some((id.number(), tip.receiver(&value.parse()?)?));
            Vec::new()
        }
        "after" if ["", "none"].contains(&value) => {
            *comes_after = Some(Vec::new());
            Vec::new()
        }
        "after" => {
            let after = value.split(',').map(|one| Ok(one.trim().parse()?));
            let after: Vec<IssueKey> = after.collect::<Result<_, Failure>>()?;
            for before in &after {
                ensure_no_circle(tip, key, before)?;
            }
            *comes_after = Some(after);
            Vec::new()
        }
        "label" | "labels" => {
            let labels = value
                .split(',')
                .map(str::trim)
                .filter(|one| !one.is_empty());
            facts.insert("labels".to_owned(), json!(labels.collect::<Vec<_>>()));
            Vec::new()
        }
        "duplicate_of" | "split_from" => {
            let before = link(tip, key, name)?;
            let is_none = ["", "none"].contains(&value);
            let other = if is_none {
                facts.insert(name.to_owned(), Value::Null);
                before
            } else {
                let other = value.parse()?;
                ensure_linkable(tip, key, name, &other)?;
                facts.insert(name.to_owned(), other.as_str().into());
                Some(other)
            };
            let no_longer = if is_none { "no longer " } else { "" };
            let what = match name {
                "split_from" => format!("issue {key} was {no_longer}split from this one"),
                _ => format!("issue {key} is {no_longer}a duplicate of this one"),
            };
            other.map_or_else(Vec::new, |other| note(other, what))
        }
        "split_into" => {
            let text = "split_into can't be set: it is told by the other issue";
            let hint = format!("such as `git handoff set {value} split_from={key} --reason WHY`");
            return Err(Failure::usage(text).hint(hint));
        }
        // The planner validates the words.
        _ => {
            facts.insert(name.to_owned(), value.into());
            Vec::new()
        }
    })
}

/// The issue that an issue has this link to, if any.
fn link(tip: &Snapshot<'_>, key: &IssueKey, name: &str) -> Result<Option<IssueKey>, Failure> {
    let Some(issue) = tip.issue(key)?.issue()? else {
        return Ok(None);
    };
    let rules = tip.rules(issue.protocol.as_str())?;
    let known = issue.fact(rules.protocol().definition(), name);
    Ok(known.and_then(|known| known.value.as_str()?.parse().ok()))
}

/// Refuses a link to an unknown issue, and one that leads back to the issue itself.
pub(super) fn ensure_linkable(
    tip: &Snapshot<'_>,
    key: &IssueKey,
    name: &str,
    other: &IssueKey,
) -> Result<(), Failure> {
    if other == key {
        let text = format!("{name}={other} of issue {key} names the issue itself");
        return Err(Failure::usage(text).hint("nothing was written; name another issue"));
    }
    if tip.issue(other)?.issue()?.is_none() {
        return Err(Refusal::no_issue(other).into());
    }
    let (mut next, mut seen) = (Some(other.clone()), Vec::new());
    while let Some(one) = next.filter(|one| !seen.contains(one)) {
        if one == *key {
            let text = format!("{name} of issue {key} would lead back to itself, by {other}");
            return Err(Failure::usage(text).hint("nothing was written; name another issue"));
        }
        next = link(tip, &one, name)?;
        seen.push(one);
    }
    Ok(())
}

/// Refuses an issue that would come after itself.
fn ensure_no_circle(tip: &Snapshot<'_>, key: &IssueKey, before: &IssueKey) -> Result<(), Failure> {
    let mut next = vec![before.clone()];
    let mut seen = Vec::new();
    while let Some(one) = next.pop() {
        if one == *key {
            let text = format!(
                "issue {key} would come after itself, by {}",
                quoted(before.as_str())
            );
            return Err(Failure::usage(text).hint("nothing was written; name another issue"));
        }
        if !seen.contains(&one) {
            let paused = tip.paused(&one)?;
            next.extend(paused.into_iter().flat_map(|paused| paused.after));
            seen.push(one);
        }
    }
    Ok(())
}
