use clap::{ArgGroup, Args};
use handoff::base::ObjectId;
use handoff::base::ids::IssueKey;
use handoff::base::text::continued;
use handoff::ledger::{Ledger, Snapshot};
use handoff::model::{Answered, GatePolicy};
use handoff_cli::output::annotations::{Annotation, Weight};
use handoff_github::event::Event;
use handoff_github::pull_request::PullRequest;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::given::{Given, read};
use crate::args::gate::PolicyArgs;
use crate::context::Context;
use crate::exit;
use crate::failure::{ErrorCode, Failure};
use crate::judging::{self, Judged, description, judge, judge_queue};
use crate::output::annotations::Format;
use crate::output::{Answer, Output, annotations};
use crate::view::Look;
use handoff_http::github::{Github, GithubError};

/// Set the check on pull requests by the ledger, as statuses of their commits
///
/// For each open pull request, or those that are named: its issue is verified and judged as `gate`
/// does, for its newest commit, and the result is set as a commit status. GitHub is asked which
/// issues each closes. Only what differs from the newest status of this name is set. A pull request
/// that names no issue fails, unless the policy exempts it. With --event it is about the event that
/// started the workflow: a pull request, or the commit of a merge queue, which every pull request in
/// it must pass. The repository is GITHUB_REPOSITORY at GITHUB_API_URL, the token GH_TOKEN or
/// GITHUB_TOKEN; it needs `statuses: write`, `pull-requests: read` and `issues: read`. Exits 0 however the pull requests are judged.
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
    /// What the event is about: a pull request, or a merge queue's commit
    #[arg(long)]
    event: bool,
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    policy: PolicyArgs,
    /// The name of the status
    #[arg(long, value_name = "NAME", default_value = "handoff gate")]
    context: String,
    /// Set nothing, and show what would be set
    #[arg(long)]
    dry_run: bool,
    /// The output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    format: Format,
}

/// A commit, and the pull requests that its status is about.
struct Target {
    head: ObjectId,
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
        for target in &targets {
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
            let text = format!("not every status is what it should be: {first}");
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
        let mut found: Vec<PullRequest> = Vec::new();
        if self.event {
            let event = read(context, &self.given)?;
            if event.name() == "merge_group" {
                return Ok(vec![queued(&event, (github, output), policy, ledger)?]);
            }
            let described = event.at("/pull_request").ok_or_else(|| {
                let text = format!("the event {} is about no pull request", event.name());
                Failure::new(ErrorCode::EventRefused, text)
                    .hint("name pull requests by number, or none for all that are open")
            })?;
            found.push(judging::read(described)?);
        }
        for number in &self.pull_requests {
            found.push(judging::pull_request(github, *number)?);
        }
        found.retain(|one| one.is_open);
        let named = !asked.is_empty() || self.event;
        asked = found.iter().map(|one| one.number).collect();
        // A status belongs to a commit: every open pull request that has it is judged with it.
        if !named || !found.is_empty() {
            let heads: Vec<ObjectId> = found.iter().map(|one| one.head).collect();
            for described in github.list("pulls?state=open&per_page=100")? {
                let one = judging::read(&described)?;
                let is_new = !asked.contains(&one.number);
                if is_new && (!named || heads.contains(&one.head)) {
                    found.push(one);
                }
            }
        }
        let numbers: Vec<u64> = found.iter().map(|one| one.number).collect();
        let mut closes = match &self.given.closes[..] {
            [] => judging::ask_closing(Ok(github), output, &numbers),
            given => {
                let own = if named { &asked } else { &numbers };
                own.iter().map(|one| (*one, given.to_vec())).collect()
            }
        };
        for one in &mut found {
            one.closing(closes.remove(&one.number).unwrap_or_default());
        }
        let key: Option<IssueKey> = self.issue.as_deref().map(str::parse).transpose()?;
        let mut heads: Vec<ObjectId> = Vec::new();
        for one in &found {
            let is_about = match &key {
                Some(key) => one.issues(ledger.1)?.contains(key),
                None => true,
            };
            if is_about && !heads.contains(&one.head) {
                heads.push(one.head);
            }
        }
        let judged = heads.into_iter().map(|head| Target {
            head,
            judged: {
                let same = found.iter().filter(|one| one.head == head);
                same.map(|one| judge(ledger, policy, one, None)).collect()
            },
        });
        Ok(judged.collect())
    }

    /// Sets the status of a commit, unless it has it.
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
            context: self.context.clone(),
            state,
            description: text,
            set: false,
            trouble: None,
            results: target.judged.iter().flatten().flat_map(results).collect(),
        };
        let answer = self.post(github, &view);
        match answer {
            Ok(set) => view.set = set,
            // One commit may be gone; whether the others can be set, is seen then.
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

    /// Posts a status, unless the newest one of this name is the same; returns whether it did, or
    /// would in a dry run.
    fn post(&self, github: &Github, view: &StatusView<'_>) -> Result<bool, GithubError> {
        let all = github.list(&format!("commits/{}/statuses?per_page=100", view.commit))?;
        // The newest first.
        let known = all.iter().find(|one| one["context"] == *self.context);
        let is_same = known.is_some_and(|known| {
            known["state"] == view.state && known["description"] == *view.description
        });
        if is_same || self.dry_run {
            return Ok(!is_same);
        }
        let mut document = json!({
            "state": view.state,
            "context": self.context,
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
        judged: judge_queue(ledger, policy, github, (name, head, base)),
    })
}

/// The workflow's run, as an address for people.
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
    /// whether it was set, or would be in a dry run; otherwise it was so already
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
