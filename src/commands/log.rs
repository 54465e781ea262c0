use anstyle::AnsiColor;
use clap::Args;
use handoff_base::ids::IssueKey;
use handoff_base::text::plain;
use handoff_base::{moment, to_second};
use handoff_git::Commit;
use handoff_model::{Refusal, View, issue_folder, trailers};
use handoff_protocol::State;
use serde_json::{Value, json};

use crate::context::Context;
use crate::environment::now;
use crate::failure::{DEEPEN, ErrorCode, Failure};
use crate::output::Output;
use crate::view::Look;

/// Show the audit trail: every step, newest first
///
/// This is the branch's history; the equivalent git command is printed below
/// it.
#[derive(Args)]
#[command(after_help = "Examples:\n  git handoff log 123\n  git handoff log -n 20 --json")]
pub(crate) struct Arguments {
    /// The issue; all issues by default
    #[arg(value_name = "ISSUE")]
    issue: Option<String>,
    /// Show at most this many steps
    #[arg(short = 'n', long, value_name = "COUNT")]
    limit: Option<usize>,
}

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        output.paged();
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let key = self
            .issue
            .as_deref()
            .map(str::parse::<IssueKey>)
            .transpose()?;
        let mut command = format!("git log {}", ledger.branch());
        let mut wanted = self.limit.unwrap_or(usize::MAX);
        if let Some(key) = &key {
            command = format!("git log {} -- {}", ledger.branch(), issue_folder(key));
            let no_issue = || Refusal::no_issue(key);
            let issue = tip.issue(key)?.issue()?.ok_or_else(no_issue)?;
            // The issue records how many steps it has: the walk ends with the last.
            wanted = wanted.min(usize::try_from(issue.steps).unwrap_or(usize::MAX));
        }
        let look = output.look(now()?);
        let (mut steps, mut text, mut rows) = (Vec::new(), String::new(), Vec::new());
        for id in repository.first_parents(tip.commit()) {
            if steps.len() >= wanted {
                break;
            }
            let commit = repository.commit(id?)?;
            let told = trailers(&commit.message);
            let value = |name: &str| told.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
            if key
                .as_ref()
                .is_some_and(|key| value("Issue") != Some(key.as_str()))
            {
                continue;
            }
            let subject = commit.message.lines().next().unwrap_or_default();
            let at = to_second(commit.author.at);
            if look.is_for_terminal() {
                rows.push(row(&commit, &look))
            } else {
                let (short, time) = (commit.id.short(), look.time(at));
                text += &format!("{short} {time} {}\n", plain(subject));
            }
            let transitions: Vec<&str> = told
                .iter()
                .filter(|(n, _)| *n == "Transition")
                .map(|(_, v)| *v)
                .collect();
            steps.push(json!({
                "commit": commit.id.to_string(),
                "at": moment::rfc3339(at),
                "author": commit.author.name,
                "committer": commit.committer.name,
                "subject": subject,
                "handoff": value("Handoff-Id"),
                "issue": value("Issue"),
                "transitions": transitions,
            }));
        }
        text += &look.table(&rows);
        let cut_off = steps.len() < wanted && repository.is_cut_off(tip.commit())?;
        if key.is_some() && cut_off {
            let text = "this clone does not have all of the ledger's history";
            return Err(Failure::new(ErrorCode::Shallow, text).hint(DEEPEN));
        }
        output.answer(
            &json!({ "steps": Value::Array(steps), "git": command, "cut_off": cut_off }),
            &text,
        )?;
        if cut_off {
            output.say(&format!("older steps are not in this clone: {DEEPEN}"));
        }
        output.say(&format!("the same with git: {command}"));
        Ok(())
    }
}

/// A step as a row for a terminal: its subject, split into columns if `git handoff` wrote
/// it, and its summary.
fn row(commit: &Commit, look: &Look) -> Vec<String> {
    let mut lines = commit.message.lines();
    let subject = lines.next().unwrap_or_default();
    let told = trailers(&commit.message);
    let is_trailer = |line: &str| { told.iter() }.any(|(name, _)| line.starts_with(name));
    let summary = lines.find(|line| !line.is_empty());
    let summary = summary.filter(|line| !is_trailer(line)).unwrap_or_default();
    let style = AnsiColor::Yellow.on_default();
    let id = format!("{style}{}{style:#}", commit.id.short());
    let time = look.time(to_second(commit.author.at));
    let Some((handoff, way, state)) = parts(subject) else {
        let none = String::new();
        return vec![
            id,
            time,
            none.clone(),
            none.clone(),
            none,
            look.cell(subject),
        ];
    };
    let way = look.cell(way).replace('→', look.arrow());
    let (handoff, state) = (look.heading(&look.cell(handoff)), look.state(state));
    vec![id, time, handoff, state, way, look.cell(summary)]
}

/// The handoff, its sender and receiver, and its state, from a step's subject.
fn parts(subject: &str) -> Option<(&str, &str, State)> {
    let (rest, word) = subject.rsplit_once(": ")?;
    let (handoff, way) = rest.split_once(' ')?;
    let state = State::ALL.into_iter().find(|s| s.as_str() == word)?;
    Some((handoff, way, state))
}
