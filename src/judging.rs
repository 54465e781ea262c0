//! Judges pull requests by the ledger, for the check, the comment, the values and the summary.

use std::collections::BTreeMap;

use handoff::base::ObjectId;
use handoff::base::ids::IssueKey;
use handoff::base::ledger_names::status_name;
use handoff::base::text::fit;
use handoff::ledger::{GateRequest, Judgement, Ledger, Snapshot, judge_any};
use handoff::model::{Answered, GatePolicy, View};
use handoff::protocol::PathPattern;
use handoff_github::pull_request::{PullRequest, QueueBranch};
use handoff_github::text::line;

use crate::environment;
use crate::failure::{ErrorCode, Failure};
use crate::output::Output;
use handoff_http::github::Github;

/// GitHub's limit for the description of a status, in characters.
const MOST_DESCRIPTION: usize = 140;

/// The maximum number of merge queue entries that are followed.
const MOST_QUEUED: usize = 100;

/// The judgement of a pull request.
pub(crate) struct Judged {
    /// Its number, if known.
    pub(crate) number: Option<u64>,
    /// The judgement for each of its issues; a single one without a key if it has none.
    pub(crate) issues: Vec<(Option<IssueKey>, Judgement)>,
}

impl Judged {
    pub(crate) fn passes(&self) -> bool {
        self.issues.iter().all(|(_, judgement)| judgement.passes())
    }

    /// Each result, with its issue.
    pub(crate) fn results(&self) -> impl Iterator<Item = (Option<&IssueKey>, &Answered)> {
        self.issues.iter().flat_map(|(key, judgement)| {
            let results = judgement.requirements.iter();
            results.map(move |one| (key.as_ref(), one))
        })
    }
}

/// The status description for these pull requests, in one line: the unmet requirements, else the
/// met ones.
pub(crate) fn description(judged: &[Judged]) -> String {
    let results: Vec<_> = judged.iter().flat_map(Judged::results).collect();
    let unmet = results.iter().find(|(_, one)| !one.met);
    let name = |key: Option<&IssueKey>| key.map(|key| format!("{key} ")).unwrap_or_default();
    let text = match unmet {
        Some((key, one)) => format!("{}not {}: {}", name(*key), one.requirement, one.why),
        None => {
            let met = results.iter().map(|(key, one)| match &*one.requirement {
                "exempt" => format!("exempt: {}", one.why),
                requirement => format!("{}{requirement}", name(*key)),
            });
            met.collect::<Vec<_>>().join(", ")
        }
    };
    fit(&line(&text, 2 * MOST_DESCRIPTION), MOST_DESCRIPTION)
}

/// Asks GitHub for a pull request.
///
/// # Errors
/// A [`Failure`] if it does not answer, or the answer is invalid.
pub(crate) fn pull_request(github: &Github, number: u64) -> Result<PullRequest, Failure> {
    read(&github.get(&format!("pulls/{number}"))?)
}

/// Reads GitHub's description of a pull request.
///
/// # Errors
/// A [`Failure`] if it is invalid.
pub(crate) fn read(described: &serde_json::Value) -> Result<PullRequest, Failure> {
    PullRequest::read(described).map_err(|error| {
        Failure::new(ErrorCode::EventRefused, error.to_string())
            .hint("give it a pull request as GitHub delivers it; nothing was judged")
    })
}

/// Sets the issues that GitHub says these pull requests close; returns the state and description of
/// each one's current status of this name. Without an answer, prints a notice and closes the gate.
pub(crate) fn ask_about(
    github: &Github,
    output: &mut Output,
    pull_requests: &mut [PullRequest],
    context: &str,
) -> BTreeMap<u64, Option<(String, String)>> {
    let numbers: Vec<u64> = pull_requests.iter().map(|one| one.number).collect();
    let about = github.about(&numbers, context).map_err(Failure::from);
    let mut about = about.unwrap_or_else(|failure| {
        output.notice("linked issues are not known", &failure.message);
        for one in &mut *pull_requests {
            one.unasked = Some(failure.message.clone());
        }
        BTreeMap::new()
    });
    let mut known = BTreeMap::new();
    for one in pull_requests {
        let Some(about) = about.remove(&one.number) else {
            continue;
        };
        one.closing(about.closes);
        if let Some((commit, status)) = about.status
            && commit == one.head.to_string()
        {
            known.insert(one.number, status);
        }
    }
    known
}

/// The gate's request for an issue of a pull request: for its own commit, or for a merge queue's
/// commit and the one before it.
pub(crate) fn request(
    (ledger, tip): (&Ledger<'_>, &Snapshot<'_>),
    policy: GatePolicy,
    pull_request: &PullRequest,
    issue: Option<&IssueKey>,
    queued: Option<(ObjectId, ObjectId)>,
) -> Result<GateRequest, Failure> {
    let (head, base) = match queued {
        Some((head, base)) => (head, Some(base)),
        None => (pull_request.head, None),
    };
    let mut request = GateRequest {
        policy,
        head: Some(head),
        base,
        into: Some(pull_request.into.clone()),
        ..GateRequest::default()
    };
    let changes_only = |patterns: &[String]| {
        let patterns = patterns.iter().map(|text| PathPattern::new(text));
        let patterns = patterns.collect::<Result<Vec<_>, _>>();
        let patterns =
            patterns.map_err(|error| format!("a pattern for paths is invalid: {error}"))?;
        let base = request.base(tip, request.into.as_deref())?;
        let accepts = |path: &str| patterns.iter().any(|pattern| pattern.matches(path));
        tip.code_store()?.changes_only(base, head, accepts)
    };
    let exempt = pull_request.exemption(&request.policy, issue.is_some(), changes_only);
    let damage = match (&exempt, issue) {
        (Ok(None) | Err(_), Some(key)) => damage(ledger, tip, key)?,
        _ => None,
    };
    // If the exemption could not be judged, nothing is exempt.
    (request.exempt, request.damage) = (exempt.unwrap_or_default(), damage);
    Ok(request)
}

pub(crate) fn judge(
    (ledger, tip): (&Ledger<'_>, &Snapshot<'_>),
    policy: &GatePolicy,
    pull_request: &PullRequest,
    queued: Option<(ObjectId, ObjectId)>,
) -> Result<Judged, Failure> {
    let keys = pull_request.issues(tip)?;
    let mut issues = Vec::new();
    for key in &keys {
        let request = request(
            (ledger, tip),
            policy.clone(),
            pull_request,
            Some(key),
            queued,
        )?;
        let folder = tip.issue(key)?;
        let judgement = match folder.issue()? {
            _ if request.exempt.is_some() => alone(&request),
            None => {
                let text = format!("there is no issue {key} in the ledger");
                Judgement::single(request.head, "recorded", false, text)
            }
            Some(issue) => {
                let rules = tip.rules(issue.protocol.as_str())?;
                judge_any(tip, &folder, &issue, &rules, &request)?
            }
        };
        issues.push((Some(key.clone()), judgement));
    }
    if keys.is_empty() {
        let request = request((ledger, tip), policy.clone(), pull_request, None, queued)?;
        issues.push((None, alone(&request)));
    }
    if let Some(why) = &pull_request.unasked {
        let is_exempt = |(_, of): &(Option<IssueKey>, Judgement)| {
            of.requirements
                .iter()
                .all(|one| one.requirement == "exempt")
        };
        if !issues.iter().all(is_exempt) {
            let text =
                format!("which issues are linked to it; it is judged again by itself. {why}");
            let head = queued.map_or(pull_request.head, |(head, _)| head);
            issues.insert(
                0,
                (None, Judgement::single(Some(head), "known", false, text)),
            );
        }
    }
    Ok(Judged {
        number: Some(pull_request.number),
        issues,
    })
}

/// The judgement of a pull request that is exempt, or names no issue.
fn alone(request: &GateRequest) -> Judgement {
    match &request.exempt {
        Some(why) => Judgement::single(request.head, "exempt", true, why.clone()),
        None => {
            let text = "it names no issue: write \"Closes #12\" into the description, or name its branch after the issue (issue-12)";
            Judgement::single(request.head, "about an issue", false, text.to_owned())
        }
    }
}

/// Judges a merge queue's commit by each pull request in it: the last one, and earlier ones that
/// the branch does not contain yet.
pub(crate) fn judge_queue(
    (ledger, tip): (&Ledger<'_>, &Snapshot<'_>),
    policy: &GatePolicy,
    (github, output): (&Github, &mut Output),
    (name, head, base): (&str, ObjectId, ObjectId),
) -> Result<Vec<Judged>, Failure> {
    let refused = |text: String| Failure::new(ErrorCode::EventRefused, text);
    let not_queue = || refused("the event is not about a branch of a merge queue".to_owned());
    let into = QueueBranch::read(name)
        .ok_or_else(not_queue)?
        .into
        .to_owned();
    let unknown = |why: String| {
        refused(format!(
            "the merge queue's commits can't be determined: {why}"
        ))
        .hint("the queue tries again; see that the ledger's remote can be reached")
    };
    let store = tip.code_store().map_err(unknown)?;
    let branch = format!("refs/heads/{into}");
    let queue = format!("refs/heads/gh-readonly-queue/{into}/pr-*");
    let tips = store.remote_refs(&branch).map_err(unknown)?;
    let entries = store.remote_refs(&queue).map_err(unknown)?;
    let merged = tips.iter().find(|(name, _)| *name == branch);
    let merged = merged.map(|(_, id)| *id);
    let mut judged = Vec::new();
    let (mut name, mut head, mut base) = (name.to_owned(), head, base);
    for _ in 0..MOST_QUEUED {
        let entry = QueueBranch::read(&name).ok_or_else(not_queue)?;
        let mut described = [pull_request(github, entry.number)?];
        ask_about(
            github,
            output,
            &mut described,
            &status_name(ledger.branch()),
        );
        let queued = Some((head, base));
        judged.push(judge((ledger, tip), policy, &described[0], queued)?);
        let is_merged = merged.map(|merged| store.contains(merged, base));
        if is_merged.transpose().map_err(unknown)? == Some(true) {
            return Ok(judged);
        }
        let before = entries.iter().find(|(_, id)| *id == base);
        let before = before.and_then(|(name, _)| Some((name, QueueBranch::read(name)?.base?)));
        let Some((before, its_base)) = before else {
            break;
        };
        (name, head, base) = (before.clone(), base, its_base);
    }
    let text = format!(
        "commit {} is neither on {into} nor of a pull request in its queue",
        base.short()
    );
    let unmet = Judgement::single(Some(head), "about a pull request", false, text);
    judged.push(Judged {
        number: None,
        issues: vec![(None, unmet)],
    });
    Ok(judged)
}

/// Why the ledger can't prove anything about an issue, if it is damaged or cut off.
fn damage(
    ledger: &Ledger<'_>,
    tip: &Snapshot<'_>,
    key: &IssueKey,
) -> Result<Option<String>, Failure> {
    if tip.repository().is_cut_off(tip.commit())? {
        let text = "the ledger's history is cut off here, and the rules of its steps with it: `git fetch --unshallow`";
        return Ok(Some(text.to_owned()));
    }
    Ok(ledger.doubt(tip, key, environment::system_time())?)
}
