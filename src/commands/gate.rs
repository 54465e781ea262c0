use clap::Args;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::text::{continued, word};
use handoff::base::{Moment, ObjectId};
use handoff::git::Repository;
use handoff::ledger::attention::{NextTurn, turn_in};
use handoff::ledger::{
    IssueFolder, Judgement, Ledger, LedgerError, OtherProtocol, Rules, Snapshot, approved_merge,
    judge_gate, merged_into, unreported_merge, unsent_commits,
};
use handoff::model::{
    Answered, Issue, IssueStatus, IssueSummary, Record, Refusal, Remedy, View, approve_command,
    person, send_again,
};
use handoff::protocol::{BRANCH, Definition, Identity, PERSON, Protocol};
use handoff_cli::output::annotations::{Annotation, Weight};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::gate::GateArgs;
use crate::args::remote::AskArgs;
use crate::context::fresh::{Fresh, Reading};
use crate::context::here::issue_of;
use crate::context::{Context, fresh};
use crate::environment::{self, now};
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::output::annotations::Format;
use crate::output::{Answer, Output, annotations, counted_as};
use crate::render;
use crate::render::stored::to_read;
use crate::view::Look;

/// Check whether an issue meets the requirements of a merge
///
/// Exits 0 if it does, and 1 if it does not. The protocol defines the requirements, and which apply by
/// default (`merge`). Of the contracts that meet a requirement or undo it, the newest decides. Every
/// protocol has `completed`. The ledger's remote is asked first. A depth-1 fetch of the ledger is enough,
/// unless a requirement or --signed looks at committers or keys.
///
/// An approval holds for another commit if a clean merge of the approved changes with a newer base
/// branch gives it. Where the ledger lists keys, an issue of another protocol than the default one
/// meets nothing without --protocol. The issue's steps are verified, as far as this clone has not done
/// that before; a depth-1 or partial clone can't. `help gate.md` has the check that GitHub requires.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff gate 123
  git handoff gate --issue 123 --require approved,validated
  git handoff gate --issue 123 --require approved --head HEAD   (as it is now)
  git handoff gate --issue 123 --signed
  git handoff gate --issue 123 --format github     (annotations on GitHub)")]
pub(crate) struct Arguments {
    /// The issue; by default the branch's
    #[arg(value_name = "ISSUE", conflicts_with = "named")]
    issue: Option<String>,
    /// The issue, as an option
    #[arg(long = "issue", value_name = "ISSUE")]
    named: Option<String>,
    #[command(flatten)]
    gate: GateArgs,
    /// The output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    format: Format,
    #[command(flatten)]
    asks: AskArgs,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let is_github = self.format.is_github(output);
        let repository = context.repository()?;
        let reading = context.fresh(&repository, self.asks.offline, output)?;
        let Reading { ledger, tip, fresh } = reading;
        let named = self.issue.as_deref().or(self.named.as_deref());
        let key = match self.gate.branch(&repository).filter(|_| named.is_none()) {
            Some(branch) => issue_of(branch, &tip)?,
            None => context.issue_or_here(named, &repository, &tip)?,
        };
        let folder = tip.issue(&key)?;
        let Some(issue) = folder.current_issue()? else {
            return Err(Refusal::no_issue(&key).into());
        };
        let rules = tip.rules(issue.protocol.as_str())?;
        let mut request = self.gate.read(context, (&ledger, &tip), &key)?;
        request.offline = self.asks.offline;
        if request.damage.is_none() {
            request.damage = doubt((&ledger, &tip), fresh.as_ref(), &key)?;
        }
        let mut judgement = judge_gate(&tip, &folder, &issue, &rules, &request)?;
        if !self.asks.offline {
            ensure_published((&ledger, &tip), &key, &mut judgement)?;
        }
        let known = rules.protocol().definition();
        if request.head.is_none() {
            let unjudged = unjudged(&repository, (&issue, known), judgement.head);
            unjudged.iter().for_each(|text| output.say(text));
        }
        let now = now()?;
        let view = GateView {
            issue: IssueSummary::from(&issue),
            other_protocol: tip.other_protocol(&issue.protocol)?,
            policy: policy((&tip, &rules), &folder.records()?)?,
            passed: judgement.passes(),
            head: judgement.head,
            requirements: judgement.requirements,
            fresh,
        };
        // The hint of a closed gate says it where the remote was asked in vain.
        let told = view.fresh.as_ref();
        let is_hinted = |one: &&Fresh| one.is_missed() && !view.passed && !is_github;
        fresh::say(told.filter(|one| !is_hinted(one)), output);
        if is_github {
            let remarks: Vec<Annotation> = view.requirements.iter().map(remark).collect();
            annotations::show(output, &remarks, &view.text(&output.look(now)))?;
            return if view.passed {
                Ok(())
            } else {
                Err(Failure::reported(exit::NO))
            };
        }
        if view.passed {
            output.answer(&view)?;
            let then = after_passing((&tip, &folder), &issue, &rules, (view.head, now))?;
            then.iter().for_each(|then| output.say(then));
            return Ok(());
        }
        let missing = view.requirements.iter().filter(|one| !one.met);
        let missing: Vec<&str> = missing.map(|one| one.requirement.as_str()).collect();
        let message = match missing[..] {
            ["protocol"] => format!("issue {key} follows another protocol, {}", issue.protocol),
            _ => format!("issue {key} is not {}", missing.join(", not ")),
        };
        let unsent = unsent_commits(&tip, &folder, &issue, &rules)?;
        let hint = way_on(
            (&repository, &folder),
            (&issue, rules.protocol()),
            &missing,
            unsent.as_deref(),
            (&view, now),
        )?;
        let failure = Failure::new(ErrorCode::GateClosed, message).hint(hint);
        if output.is_json() {
            return Err(failure.data(&view));
        }
        output.answer(&view)?;
        let merged = unreported_merge(&tip, &folder, &issue, &rules)?;
        merged.iter().for_each(|told| output.say(&continued(told)));
        Err(failure)
    }
}

/// Closes the gate of an issue with steps that the remote may refuse.
fn ensure_published(
    (ledger, tip): (&Ledger<'_>, &Snapshot<'_>),
    key: &IssueKey,
    judgement: &mut Judgement,
) -> Result<(), Failure> {
    let own = ledger.unpublished_steps(tip.commit(), key)?;
    if own > 0 {
        let steps = counted_as(own, "step", [" of it is", "s of it are"]);
        let text = format!("{steps} only here, and the remote may refuse them");
        let published = Judgement::single(judgement.head, "published", false, text);
        judgement.requirements.extend(published.requirements);
    }
    Ok(())
}

/// What comes after an open gate: what was not verified, the merge, or that it is done; and whose
/// turn it is.
fn after_passing(
    (tip, folder): (&Snapshot<'_>, &IssueFolder<'_>),
    issue: &Issue,
    rules: &Rules<'_>,
    (head, now): (Option<ObjectId>, Moment),
) -> Result<Vec<String>, Failure> {
    let part = "its steps are not verified: this clone has a part of the ledger; `git handoff fetch --full` gets the rest";
    let part = has_part(tip)?.then(|| part.to_owned());
    if let Some((mut left, false)) = approved_merge(tip, folder, issue, rules)? {
        // A rebased branch is merged as it is now.
        if let Some(head) = head {
            left.code.commit = head.to_string();
        }
        let next = format!("next: {}", continued(&left.merge()));
        return Ok(part.into_iter().chain([next]).collect());
    }
    let merged = merged_into(tip, folder, issue, rules)?;
    let merged = merged.map(|base| format!("{} has it", continued(&base)));
    let turn = match issue.status {
        IssueStatus::Open => turn_in(folder, rules.protocol(), now)?.1.as_ref().map(turn),
        _ => None,
    };
    Ok(part.into_iter().chain(merged).chain(turn).collect())
}

/// Why what is recorded here can't be trusted: it is damaged, or the remote could not be read. A
/// clone that lacks a part of the ledger can't audit it.
fn doubt(
    (ledger, tip): (&Ledger<'_>, &Snapshot<'_>),
    fresh: Option<&Fresh>,
    key: &IssueKey,
) -> Result<Option<String>, Failure> {
    if let Some(fresh) = fresh.filter(|fresh| fresh.is_missed()) {
        let remote = continued(fresh.remote());
        return Ok(Some(format!("what {remote} has now could not be read")));
    }
    if has_part(tip)? {
        return Ok(None);
    }
    Ok(ledger.doubt(tip, key, environment::system_time())?)
}

/// Whether this clone has only a part of the ledger, so that its steps can't be audited.
fn has_part(tip: &Snapshot<'_>) -> Result<bool, Failure> {
    let repository = tip.repository();
    Ok(repository.is_partial() || repository.is_cut_off(tip.commit())?)
}

/// What helps where all that is missing are signatures.
const UNSIGNED: &str = "what is recorded can't be signed any more: do it again in a new issue, each step signed \
                        with a listed key; `git handoff help signatures.md` sets that up";

/// What opens the gate of an issue that does not meet these requirements.
fn way_on(
    (repository, folder): (&Repository, &IssueFolder<'_>),
    (issue, protocol): (&Issue, &Protocol),
    missing: &[&str],
    unsent: Option<&str>,
    (view, now): (&GateView, Moment),
) -> Result<String, Failure> {
    let key = &view.issue.key;
    match missing {
        ["sound"] if view.fresh.as_ref().is_some_and(Fresh::is_missed) => {
            return Ok(format!(
                "`git handoff gate {key} --offline` judges by what is here"
            ));
        }
        ["sound"] => {
            return Ok("`git handoff verify` says what is wrong, and what helps".to_owned());
        }
        ["signed"] => return Ok(UNSIGNED.to_owned()),
        ["published"] => return Ok("`git handoff sync` sends it".to_owned()),
        ["protocol"] => {
            return Ok(format!(
                "find out who opened it under {0}: `git handoff log {key}`; a gate for that protocol has `--protocol {0}`",
                issue.protocol
            ));
        }
        _ => {}
    }
    if let Some(hint) = sent_by_another(folder, protocol, view)? {
        return Ok(hint);
    }
    let code = || code_asked((repository, folder), (issue, protocol.definition()), view);
    let (needs, next) = turn_in(folder, protocol, now)?;
    let is_needed = issue.status != IssueStatus::Open || !needs.is_empty();
    if let Some(next) = next.as_ref().filter(|_| is_needed) {
        return Ok(turn(next) + &code()?);
    }
    // A person's approval opens no gate whose contract is missing.
    let mut missing = view.requirements.iter().filter(|one| !one.met);
    if missing.all(|one| one.remedy != Remedy::None)
        && let Some(hint) = person_asked(folder, protocol, view)?
    {
        return Ok(hint + &code()?);
    }
    Ok(match (&next, unsent) {
        (Some(next), _) => turn(next),
        (None, Some(unsent)) => continued(unsent),
        (None, None) => approved(folder, view)? + &ended(&view.issue, protocol),
    })
}

/// Which commit was approved, if it is another one than the judged one.
fn approved(folder: &IssueFolder<'_>, view: &GateView) -> Result<String, LedgerError> {
    let missing = view.requirements.iter().filter(|one| !one.met);
    for by in missing.filter_map(|one| one.by.as_ref()) {
        let record = folder
            .record(by.number())?
            .filter(|record| !record.is_turned_down());
        if let Some(code) = record.and_then(|record| record.code)
            && view.head.is_none_or(|head| head.to_string() != code.commit)
        {
            let (key, branch, commit) = (&view.issue.key, word(&code.branch), code.commit);
            return Ok(format!(
                "{by} is about {branch} at another one: `git handoff gate {key} --head {commit}`; "
            ));
        }
    }
    Ok(String::new())
}

/// How a contract is sent again that does not count because of who sent it, as long as that is
/// possible: the next one claims it else.
fn sent_by_another(
    folder: &IssueFolder<'_>,
    protocol: &Protocol,
    view: &GateView,
) -> Result<Option<String>, LedgerError> {
    let missing = view.requirements.iter().filter(|one| !one.met);
    for one in missing {
        let asked = protocol.definition().requirements.get(&one.requirement);
        if let (Remedy::Again(id), Some(asked)) = (&one.remedy, asked)
            && let Some(record) = folder.record(id.number())?
            && let Some(again) = send_again(&record, asked.apart_by)
        {
            return Ok(Some(again));
        }
    }
    Ok(None)
}

/// The policy in force for contradicted statements, and another one under which an issue's were checked.
fn policy(
    (tip, rules): (&Snapshot<'_>, &Rules<'_>),
    records: &[Record],
) -> Result<String, LedgerError> {
    let (protocol, ledger) = (rules.protocol(), tip.manifest().evidence);
    let mut checked = records.iter().flat_map(|record| &record.evidence);
    let earlier = checked.find(|one| one.policy != protocol.policy(one.check, ledger));
    let earlier = earlier.map(|one| format!("; this issue's, before: {}", one.policy.as_str()));
    Ok(render::in_force(tip, protocol.name())? + &earlier.unwrap_or_default())
}

/// What says that the branch has newer commits here than the judged one.
fn unjudged(
    repository: &Repository,
    (issue, definition): (&Issue, &Definition),
    head: Option<ObjectId>,
) -> Option<String> {
    let branch = issue.fact(definition, BRANCH)?.value.as_str()?;
    let (head, here) = (head?, repository.local_branch(branch)?);
    let is_newer = here != head && repository.is_in_history(head, here).unwrap_or_default();
    let head = head.short();
    is_newer.then(|| format!("{head} is judged; newer commits of {branch} here are not"))
}

/// How to read the code that a person is asked to approve.
fn code_asked(
    (repository, folder): (&Repository, &IssueFolder<'_>),
    issue: (&Issue, &Definition),
    view: &GateView,
) -> Result<String, Failure> {
    let mut missing = view.requirements.iter().filter(|one| !one.met);
    let asked = missing.find_map(|one| match &one.remedy {
        Remedy::Approve(id, _) => Some(id.number()),
        _ => None,
    });
    let record = asked.map(|number| folder.record(number)).transpose()?;
    let code = record.flatten().and_then(|record| record.code);
    let read = code.map(|code| to_read(repository, issue, &code));
    Ok(read.transpose()?.unwrap_or_default())
}

/// Whose turn it is, and the command.
fn turn(next: &NextTurn) -> String {
    let (agent, why) = (&next.agent, continued(&next.why));
    let id = next.id.as_ref();
    let id = id.map(|id| format!(" with {id}")).unwrap_or_default();
    let mut commands = next.commands.iter().take(2);
    let first = commands.next().map(|one| format!(": `{one}`"));
    let other = commands.next().map(|one| format!(", or `{one}`"));
    let (first, other) = (first.unwrap_or_default(), other.unwrap_or_default());
    format!("{agent}'s turn{id}, {why}{first}{other}")
}

/// How an issue that is over goes on.
pub(super) fn ended(issue: &IssueSummary, protocol: &Protocol) -> String {
    let key = &issue.key;
    let what = match issue.status {
        IssueStatus::Open => return format!("`git handoff status {key}` shows what came last"),
        IssueStatus::Completed => "is completed; for new work",
        IssueStatus::Cancelled => "was cancelled; to go on with it",
    };
    let agent = person(protocol).map_or("AGENT", |person| person.as_str());
    format!("the issue {what}: `git handoff reopen {key} --as {agent} --reason WHY`")
}

/// The command for a person, for the first requirement that lacks an approval.
fn person_asked(
    folder: &IssueFolder<'_>,
    protocol: &Protocol,
    view: &GateView,
) -> Result<Option<String>, LedgerError> {
    let definition = protocol.definition();
    let mut missing = view.requirements.iter().filter(|one| !one.met);
    let Some(one) = missing.find(|one| one.remedy != Remedy::None) else {
        return Ok(None);
    };
    let Some(asked) = definition.requirements.get(&one.requirement) else {
        return Ok(None);
    };
    let named = asked.approved_by.first().map_or(PERSON, String::as_str);
    let named = (named != PERSON).then_some(named);
    let person = named.or(definition.people().next().map(AgentName::as_str));
    let approve = |id, by: &str| approve_command(folder, protocol, (id, by));
    Ok(match (&one.remedy, view.head, person) {
        (Remedy::ApproveCode(id, by), Some(head), _) => {
            let approve = approve(id, by.as_str())?;
            Some(format!(
                "if that commit is right too: `{approve} --head {head}`"
            ))
        }
        (Remedy::Another(id), _, Some(person)) if asked.apart_by == Identity::Worker => {
            Some(format!(
                "a person is a worker of their own: `git handoff approve {id} --as {person} --worker NAME`"
            ))
        }
        (Remedy::Another(id), _, _) => Some(format!(
            "another {} than the code's has to approve: `git handoff show {id}`",
            asked.apart_by.as_str()
        )),
        (Remedy::Approve(id, Some(by)) | Remedy::ApproveCode(id, by), _, _) => {
            let approve = approve(id, by.as_str())?;
            Some(format!("{by} ends that by an approval: `{approve}`"))
        }
        (Remedy::Approve(id, None), _, Some(person)) => {
            let approve = approve(id, person)?;
            Some(format!("a person approves it: `{approve}`"))
        }
        (Remedy::Approve(_, None) | Remedy::Again(_) | Remedy::None, _, _) => None,
    })
}

/// Whether an issue meets the requirements of a merge.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Gate")]
pub(crate) struct GateView {
    /// the issue
    issue: IssueSummary,
    /// its protocol, if it is not the ledger's default one
    #[serde(skip_serializing_if = "Option::is_none")]
    other_protocol: Option<OtherProtocol>,
    /// how its protocol treats statements that the repository contradicts, and what was set in it
    policy: String,
    /// it meets all requirements
    passed: bool,
    /// the commit for which it must meet them
    head: Option<ObjectId>,
    /// the result for each requirement
    requirements: Vec<Answered>,
    /// whether the remote was asked first; null if the ledger has no remote
    fresh: Option<Fresh>,
}

impl Answer for GateView {
    fn text(&self, _: &Look) -> String {
        let line = |one: &Answered| {
            let (mark, not) = if one.met {
                ("✓", "")
            } else {
                ("✗", "not ")
            };
            let (requirement, why) = (continued(&one.requirement), continued(&one.why));
            format!("{mark} {not}{requirement}: {why}\n")
        };
        let lines: String = self.requirements.iter().map(line).collect();
        lines
            + &render::other_protocol(self.other_protocol.as_ref())
            + &render::policy_line(&self.policy)
    }
}

/// The result for a requirement, as an annotation.
fn remark(one: &Answered) -> Annotation {
    if one.met {
        Annotation::new(Weight::Notice, one.requirement.clone(), one.why.clone())
    } else {
        let title = format!("not {}", one.requirement);
        Annotation::new(Weight::Error, title, one.why.clone())
    }
}
