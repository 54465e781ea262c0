use std::path::PathBuf;

use clap::{ArgGroup, Args};
use handoff::base::ObjectId;
use handoff::base::ids::IssueKey;
use handoff::base::ledger_names::status_name;
use handoff::base::text::{continued, counted_as};
use handoff::ledger::{Ledger, Snapshot};
use handoff::model::{Answered, GatePolicy};
use handoff_cli::output::annotations::{Annotation, Weight};
use handoff_github::event::{Event, Naming, Subject};
use handoff_github::pull_request::PullRequest;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::given::{Given, pull_request_of, read};
use crate::args::gate::PolicyArgs;
use crate::context::Context;
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::judging::{self, Judged, description, judge, judge_queue};
use crate::output::annotations::Format;
use crate::output::replace::replace;
use crate::output::{Answer, Output, annotations};
use crate::view::Look;
use handoff_http::github::{Github, GithubError};

/// Set the check on pull requests by the ledger, as statuses of their commits
///
/// For each open pull request, or those that are named: its issue is verified and judged as `gate`
/// does, for its newest commit, and the result is set as a commit status. GitHub is asked what each is
/// now, and which issues it closes; while it does not say, the gate is closed. Only what differs from the
/// newest status of this name is set. A pull request that names no issue fails, unless the policy exempts
/// it; pull requests of one commit pass together. With --event it is about the event that started the
/// workflow: a pull request and all others about its issues, or the commit of a merge queue, which every
/// pull request in it must pass. The repository is GITHUB_REPOSITORY at GITHUB_API_URL, else on
/// GH_HOST, the token that which `gh` takes for that host: GH_TOKEN, or GH_ENTERPRISE_TOKEN for a GitHub
/// Enterprise Server; it needs `statuses: write`, `pull-requests: read` and `issues: read`. Exits 0 however the pull requests are judged.
#[derive(Args)]
#[command(group = ArgGroup::new("subject").args(["pull_requests", "issue", "event"]))]
#[command(after_help = "Examples:
  git handoff github status --dry-run                (all that are open)
  git handoff github status 7 --policy gate.json
  git handoff github status --issue 123 --require approved,other-worker
  git handoff github status --event --file event.json --name pull_request")]
pub(crate) struct Arguments {
    /// The pull requests, by number; by default all that are open
    #[arg(value_name = "NUMBER")]
    pull_requests: Vec<u64>,
    /// Those open pull requests that are about this issue
    #[arg(long, value_name = "ISSUE")]
    issue: Option<String>,
    /// What the event is about: a pull request as it is now, those of its issues, or a merge queue's commit
    #[arg(long)]
    event: bool,
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    policy: PolicyArgs,
    /// The name of the status; default: `handoff gate`, with the branch if that is not `handoffs`
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Set nothing, and show what would be set
    #[arg(long)]
    dry_run: bool,
    /// Keep each open pull request, as GitHub describes it, in this folder: 7.json
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// The output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    format: Format,
}

/// A commit, and the pull requests that its status covers.
struct Target {
    head: ObjectId,
    /// The name of the status.
    context: String,
    /// The state and description of its current status, if any; `None` if GitHub was not asked yet.
    known: Option<Option<(String, String)>>,
    judged: Result<Vec<Judged>, Failure>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let is_github = self.format.is_github(output);
        let github = Github::from_environment()?;
        let policy = self.policy.read(context)?;
        let repository = context.repository()?;
        let ledger = context.ledger(&repository)?;
        let tip = ledger.tip()?;
        let targets = self.targets((context, output), &github, &policy, (&ledger, &tip))?;
        let mut statuses = Vec::new();
        let is_sweep = self.pull_requests.is_empty() && self.issue.is_none() && !self.event;
        for (done, target) in targets.iter().enumerate() {
            if is_sweep && github.is_short() {
                let text = format!(
                    "{} of {} left for the next time: GitHub takes few more requests in this hour",
                    targets.len() - done,
                    counted_as(targets.len(), "status", [" is", "es are"])
                );
                output.notice("not all pull requests are judged", &text);
                break;
            }
            statuses.push(self.set(&github, target)?);
        }
        let failures = targets
            .iter()
            .filter_map(|target| target.judged.as_ref().err());
        let unset = statuses
            .iter()
            .filter_map(|status| status.trouble.as_deref());
        let trouble: Vec<String> = failures
            .map(|failure| failure.message.clone())
            .chain(unset.map(str::to_owned))
            .collect();
        let view = StatusesView {
            statuses,
            dry_run: self.dry_run,
        };
        if is_github {
            annotations::show(output, &view.remarks(), &view.report())?;
            return if trouble.is_empty() {
                Ok(())
            } else {
                Err(Failure::reported(exit::ENVIRONMENT))
            };
        }
        if let Some(first) = trouble.first() {
            let text = format!("some statuses could not be set: {first}");
            let failure = Failure::new(ErrorCode::GithubRefused, text)
                .hint("fix that, then run the command again: what is set already is left alone");
            if output.is_json() {
                return Err(failure.data(&view));
            }
            output.answer(&view)?;
            return Err(failure);
        }
        output.answer(&view)
    }

    fn targets(
        &self,
        (context, output): (&Context, &mut Output),
        github: &Github,
        policy: &GatePolicy,
        ledger: (&Ledger<'_>, &Snapshot<'_>),
    ) -> Result<Vec<Target>, Failure> {
        let mut asked: Vec<u64> = self.pull_requests.clone();
        let mut keys: Vec<IssueKey> = Vec::new();
        keys.extend(self.issue.as_deref().map(str::parse).transpose()?);
        if self.event {
            let event = read(context, &self.given)?;
            if event.name() == "merge_group" {
                let name = self.name(ledger.0);
                return Ok(vec![queued(
                    &event,
                    name,
                    (github, output),
                    policy,
                    ledger,
                )?]);
            }
            // The event may be outdated: a run can be late, or run again.
            match pull_request_of(&event) {
                Some(number) => asked.push(number),
                None => {
                    let naming = Naming::of(ledger.1, &[])?;
                    keys = Subject::of(&event, &naming).known(ledger.1, &event)?;
                }
            }
        }
        let open = github.list("pulls?state=open&per_page=100")?;
        let found: Result<Vec<PullRequest>, Failure> = open.iter().map(judging::read).collect();
        let mut found = found?;
        for (described, one) in open.iter().zip(&found) {
            if let Some(folder) = &self.keep {
                let file = folder.join(format!("{}.json", one.number));
                replace(&file, described.to_string().as_bytes())?;
            }
        }
        for number in &self.pull_requests {
            if !found.iter().any(|one| one.number == *number) {
                // A missing pull request is reported.
                judging::pull_request(github, *number)?;
            }
        }
        let named = !self.pull_requests.is_empty();
        if named {
            // A status belongs to a commit, so every open pull request with that commit is judged.
            let is_asked = |one: &&PullRequest| asked.contains(&one.number);
            let heads: Vec<ObjectId> = found.iter().filter(is_asked).map(|one| one.head).collect();
            found.retain(|one| heads.contains(&one.head));
        }
        let name = self.name(ledger.0);
        let known = judging::ask_about(github, output, &mut found, &name);
        if !self.given.closes.is_empty() {
            for one in &mut found {
                if !named || asked.contains(&one.number) {
                    one.closing(self.given.closes.clone());
                    one.unasked = None;
                }
            }
        }
        if self.event {
            for one in found.iter().filter(|one| asked.contains(&one.number)) {
                keys.extend(one.issues(ledger.1)?);
            }
        }
        let all = !self.event && self.issue.is_none();
        let mut heads: Vec<ObjectId> = Vec::new();
        for one in &found {
            let is_about = all
                || asked.contains(&one.number)
                || one.unasked.is_some()
                || one.issues(ledger.1)?.iter().any(|key| keys.contains(key));
            if is_about && !heads.contains(&one.head) {
                heads.push(one.head);
            }
        }
        let judged = heads.into_iter().map(|head| {
            let same = || found.iter().filter(|one| one.head == head);
            Target {
                head,
                context: name.clone(),
                known: same().find_map(|one| known.get(&one.number)).cloned(),
                judged: same().map(|one| judge(ledger, policy, one, None)).collect(),
            }
        });
        Ok(judged.collect())
    }

    /// The name of the status.
    fn name(&self, ledger: &Ledger<'_>) -> String {
        let usual = || status_name(ledger.branch());
        self.context.clone().unwrap_or_else(usual)
    }

    /// Sets the status of a commit, unless it is current.
    fn set<'t>(&self, github: &Github, target: &'t Target) -> Result<StatusView<'t>, Failure> {
        let (state, text) = match &target.judged {
            Ok(judged) if judged.iter().all(Judged::passes) => ("success", description(judged)),
            Ok(judged) => ("failure", description(judged)),
            Err(_) => (
                "error",
                "the ledger could not be read: see the log".to_owned(),
            ),
        };
        let mut view = StatusView {
            commit: target.head,
            context: target.context.clone(),
            state,
            description: text,
            set: false,
            trouble: None,
            results: target.judged.iter().flatten().flat_map(results).collect(),
        };
        let answer = self.post(github, &view, target.known.as_ref());
        match answer {
            Ok(set) => view.set = set,
            // A single commit may be gone; the others may still work.
            Err(GithubError::Refused(refused)) if [404, 422].contains(&refused.status) => {
                let short = target.head.short();
                view.trouble = Some(format!(
                    "GitHub answers {} for commit {short}{}",
                    refused.status, refused.message
                ));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(view)
    }

    /// Posts a status unless the newest one of this name equals it; returns whether it did, or
    /// would in a dry run.
    fn post(
        &self,
        github: &Github,
        view: &StatusView<'_>,
        known: Option<&Option<(String, String)>>,
    ) -> Result<bool, GithubError> {
        let is_same = match known {
            Some(known) => {
                let same = |(state, text): &(String, String)| {
                    *state == view.state && *text == view.description
                };
                known.as_ref().is_some_and(same)
            }
            None => {
                let all = github.list(&format!("commits/{}/statuses?per_page=100", view.commit))?;
                // Newest first.
                let mut known = all.iter().filter(|one| one["context"] == *view.context);
                known.next().is_some_and(|known| {
                    known["state"] == view.state && known["description"] == *view.description
                })
            }
        };
        if is_same || self.dry_run {
            return Ok(!is_same);
        }
        let mut document = json!({
            "state": view.state,
            "context": view.context,
            "description": view.description,
        });
        if let Some(run) = run_address() {
            document["target_url"] = Value::String(run);
        }
        github.post(&format!("statuses/{}", view.commit), &document)?;
        Ok(true)
    }
}

/// The merge queue's commit of an event.
fn queued(
    event: &Event,
    context: String,
    github: (&Github, &mut Output),
    policy: &GatePolicy,
    ledger: (&Ledger<'_>, &Snapshot<'_>),
) -> Result<Target, Failure> {
    let text = |name: &str| event.at(&format!("/merge_group/{name}"))?.as_str();
    let id = |name: &str| text(name)?.parse().ok();
    let parts = text("head_ref").zip(id("head_sha").zip(id("base_sha")));
    let Some((name, (head, base))) = parts else {
        let text = "the event does not say what the merge queue's commit is";
        return Err(Failure::new(ErrorCode::EventRefused, text)
            .hint("give it the payload as GitHub delivers it"));
    };
    Ok(Target {
        head,
        context,
        known: None,
        judged: judge_queue(ledger, policy, github, (name, head, base)),
    })
}

/// The URL of the workflow's run.
fn run_address() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let server = set("GITHUB_SERVER_URL").filter(|server| server.starts_with("http"))?;
    let (repository, run) = (set("GITHUB_REPOSITORY")?, set("GITHUB_RUN_ID")?);
    Some(format!("{server}/{repository}/actions/runs/{run}"))
}

fn results(judged: &Judged) -> Vec<ResultView<'_>> {
    let all = judged.results().map(|(issue, answered)| ResultView {
        pull_request: judged.number,
        issue,
        answered,
    });
    all.collect()
}

/// The statuses of commits.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GithubStatuses")]
pub(crate) struct StatusesView<'a> {
    /// one for each pull request, or one for the merge queue's commit
    statuses: Vec<StatusView<'a>>,
    /// whether nothing was set
    dry_run: bool,
}

/// The status of a commit.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GithubStatus")]
struct StatusView<'a> {
    /// the commit
    commit: ObjectId,
    /// its name
    context: String,
    /// `success`, `failure`; `error` if the ledger could not be read
    state: &'static str,
    /// what GitHub shows beside it
    description: String,
    /// whether it was set, or would be in a dry run; otherwise it was set before
    set: bool,
    /// why it could not be set
    trouble: Option<String>,
    /// what it follows from
    results: Vec<ResultView<'a>>,
}

/// Whether a pull request meets a requirement.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GithubResult")]
struct ResultView<'a> {
    /// the pull request; null for a commit in a merge queue that belongs to none
    pull_request: Option<u64>,
    /// the issue
    issue: Option<&'a IssueKey>,
    #[serde(flatten)]
    answered: &'a Answered,
}

impl ResultView<'_> {
    fn text(&self) -> String {
        let number = self
            .pull_request
            .map(|number| format!("pull request {number}"));
        let issue = self.issue.map(|issue| format!(", issue {issue}"));
        let about =
            number.unwrap_or_else(|| "the merge queue".to_owned()) + &issue.unwrap_or_default();
        let (mark, not) = if self.answered.met {
            ("✓", "")
        } else {
            ("✗", "not ")
        };
        let (name, why) = (&self.answered.requirement, &self.answered.why);
        format!(
            "  {mark} {about}: {not}{}: {}\n",
            continued(name),
            continued(why)
        )
    }
}

impl StatusesView<'_> {
    fn report(&self) -> String {
        let mut text = String::new();
        for status in &self.statuses {
            let done = match (&status.trouble, status.set) {
                (Some(why), _) => format!("not set: {}", continued(why)),
                (None, true) if self.dry_run => "would be set".to_owned(),
                (None, true) => "set".to_owned(),
                (None, false) => "as it was".to_owned(),
            };
            let (short, state) = (status.commit.short(), status.state);
            text += &format!("{short} {state}, {done}\n");
            text.extend(status.results.iter().map(ResultView::text));
        }
        if text.is_empty() {
            text += "no open pull request\n";
        }
        text
    }

    fn remarks(&self) -> Vec<Annotation> {
        let mut remarks = Vec::new();
        for status in &self.statuses {
            for one in &status.results {
                let name = &one.answered.requirement;
                let (weight, title) = if one.answered.met {
                    (Weight::Notice, name.clone())
                } else {
                    (Weight::Warning, format!("not {name}"))
                };
                remarks.push(Annotation::new(weight, title, one.answered.why.clone()));
            }
            let trouble = status.trouble.iter();
            let trouble = trouble.map(|why| Annotation::new(Weight::Error, "not set", why.clone()));
            remarks.extend(trouble);
        }
        remarks
    }
}

impl Answer for StatusesView<'_> {
    fn text(&self, _: &Look) -> String {
        self.report()
    }
}
