use std::fs;
use std::process::{Command, Stdio};

use clap::Args;
use handoff::base::text::{continued, cut};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::agents::worktree;
use crate::context::Context;
use crate::failure::{ErrorCode, Failure};
use crate::judging::STATUS;
use crate::output::{Answer, Output};
use crate::view::Look;
use handoff_harness::workflows::{ENVIRONMENT as AGENTS, without_action};

/// The longest answer of `gh` that is shown, in characters.
const SHOWN: usize = 200;

/// Check what the workflows need of a repository on GitHub, and set it up
///
/// Asks GitHub through `gh`, as whoever is signed in there, and shows for each thing whether it is as it
/// should be, and the command that sets it. --apply runs those commands, each after it was shown, but for
/// what only a person can say: which commit of the action, and the agents' key. Run again, it does what
/// is left. Several repositories are set up one after the other, with the files of this working tree.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff github setup                       (shows what is missing)
  git handoff github setup --apply
  git handoff github setup octo/parcels octo/ships --agents --apply")]
pub(crate) struct Arguments {
    /// The repositories, as OWNER/NAME; by default the one of this clone, as `gh` knows it
    #[arg(value_name = "OWNER/NAME")]
    repositories: Vec<String>,
    /// Also what agents on Actions need
    #[arg(long)]
    agents: bool,
    /// Run the commands
    #[arg(long)]
    apply: bool,
}

/// A thing to check: what it is, the question to `gh` with the answer that it should have, if a certain
/// one, and the command that sets it.
struct Check {
    what: String,
    asks: Vec<String>,
    wants: Option<String>,
    command: String,
    /// Whether the command can be run as it is.
    runs: bool,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let root = worktree(&repository)?;
        let ledger = context.ledger(&repository)?;
        let branch = ledger.branch().to_owned();
        let mut names = self.repositories.clone();
        if names.is_empty() {
            let words = [
                "repo",
                "view",
                "--json",
                "nameWithOwner",
                "--jq",
                ".nameWithOwner",
            ];
            let found = gh(&words)?.map_err(|why| {
                let text = format!("gh knows no repository on GitHub for this clone: {why}");
                Failure::new(ErrorCode::GithubUnreachable, text)
                    .hint("name it: git handoff github setup OWNER/NAME")
            })?;
            names.push(found);
        }
        let mut found = local(&root, &branch)?;
        for name in &names {
            for check in self.checks(name, &branch) {
                let mut one = check.look(name)?;
                if !one.right && self.apply && check.runs {
                    output.say(&format!("$ {}", check.command));
                    let words: Vec<&str> = check.command.split(' ').skip(1).collect();
                    let mut gh = program(&words);
                    gh.current_dir(&root);
                    match answer(gh)? {
                        Ok(_) => one = check.look(name)?,
                        Err(why) => one.why = Some(why),
                    }
                }
                found.push(one);
            }
        }
        output.answer(&SetupView { things: found })
    }

    /// What is asked of GitHub about a repository, in the order in which it is set up.
    fn checks(&self, name: &str, branch: &str) -> Vec<Check> {
        let api = format!("repos/{name}");
        let check = |what: &str, path: &str, jq: Option<(&str, &str)>, command: String| {
            let mut asks = vec!["api".to_owned(), format!("{api}/{path}")];
            asks.extend(
                jq.into_iter()
                    .flat_map(|(jq, _)| ["--jq".to_owned(), jq.to_owned()]),
            );
            Check {
                what: what.to_owned(),
                asks,
                wants: jq.map(|(_, wants)| wants.to_owned()),
                runs: command.starts_with("gh api "),
                command,
            }
        };
        let ruleset =
            |file: &str| format!("gh api {api}/rulesets --method POST --input .github/{file}");
        let status = format!(
            ".[] | select(.type == \"required_status_checks\") | .parameters.required_status_checks[].context | select(. == \"{STATUS}\")"
        );
        let mut checks = vec![
            check(
                "the ledger's branch is there",
                &format!("branches/{branch}"),
                None,
                "git handoff init --remote origin".to_owned(),
            ),
            check(
                "the workflows are on the default branch",
                "contents/.github/workflows/handoff-intake.yml",
                None,
                "git push".to_owned(),
            ),
            check(
                "the ledger's branch is never rewritten",
                &format!("rules/branches/{branch}"),
                Some((
                    ".[].type | select(. == \"non_fast_forward\")",
                    "non_fast_forward",
                )),
                ruleset("ruleset-ledger.json"),
            ),
            check(
                "the status is required on the default branch",
                "rules/branches/HEAD",
                Some((&status, STATUS)),
                ruleset("ruleset-gate.json"),
            ),
        ];
        if self.agents {
            checks.extend([
                check(
                    "workflows read by default, and may open pull requests",
                    "actions/permissions/workflow",
                    Some((
                        "[.default_workflow_permissions, .can_approve_pull_request_reviews] | join(\" \")",
                        "read true",
                    )),
                    format!("gh api {api}/actions/permissions/workflow --method PUT -f default_workflow_permissions=read -F can_approve_pull_request_reviews=true"),
                ),
                check(
                    "there is the agents' environment",
                    &format!("environments/{AGENTS}"),
                    None,
                    format!("gh api {api}/environments/{AGENTS} --method PUT"),
                ),
                check(
                    "it has the agents' key",
                    &format!("environments/{AGENTS}/secrets/HANDOFF_AGENT_KEY"),
                    None,
                    format!("gh secret set HANDOFF_AGENT_KEY --env {AGENTS} --repo {name}"),
                ),
            ]);
        }
        checks
    }
}

/// What the files of this working tree lack.
fn local(root: &std::path::Path, branch: &str) -> Result<Vec<ThingView>, Failure> {
    let thing = |what: &str, wrong: Vec<String>, command: String| ThingView {
        repository: None,
        what: what.to_owned(),
        right: wrong.is_empty(),
        why: (!wrong.is_empty()).then(|| wrong.join(", ")),
        command: Some(command).filter(|_| !wrong.is_empty()),
    };
    let named = |path: &std::path::Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut lines = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("LEDGER: "));
        lines.any(|name| name.trim_matches('"') != branch)
    };
    let files = fs::read_dir(root.join(".github/workflows"));
    let files = files.into_iter().flatten().filter_map(Result::ok);
    let mut other: Vec<String> = files
        .filter(|file| file.file_name().to_string_lossy().starts_with("handoff-"))
        .filter(|file| named(&file.path()))
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .collect();
    other.sort();
    Ok(vec![
        thing(
            "the workflows name a commit of the action",
            without_action(root)?,
            "git handoff init --github OWNER/REPOSITORY/action@COMMIT".to_owned(),
        ),
        thing(
            "the workflows name the ledger's branch",
            other,
            format!("set LEDGER to {branch} in each"),
        ),
    ])
}

impl Check {
    /// Asks how it is.
    fn look(&self, name: &str) -> Result<ThingView, Failure> {
        let words: Vec<&str> = self.asks.iter().map(String::as_str).collect();
        let said = gh(&words)?;
        let right = match (&said, &self.wants) {
            (Ok(said), Some(wants)) => said.lines().any(|line| line == wants),
            (said, _) => said.is_ok(),
        };
        Ok(ThingView {
            repository: Some(name.to_owned()),
            what: self.what.clone(),
            right,
            why: said.err(),
            command: Some(self.command.clone()).filter(|_| !right),
        })
    }
}

fn program(words: &[&str]) -> Command {
    let mut command = Command::new("gh");
    command.args(words).stdin(Stdio::null());
    command
}

/// What `gh` answers, or its reason in one line.
fn gh(words: &[&str]) -> Result<Result<String, String>, Failure> {
    answer(program(words))
}

fn answer(mut command: Command) -> Result<Result<String, String>, Failure> {
    let ran = command.output().map_err(|error| {
        let text = format!("gh can't be run: {error}");
        Failure::new(ErrorCode::GithubUnreachable, text)
            .hint("install it, https://cli.github.com, and run `gh auth login`")
    })?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if ran.status.success() {
        return Ok(Ok(said(&ran.stdout)));
    }
    let why = said(&ran.stderr);
    Ok(Err(cut(why.lines().next().unwrap_or_default(), SHOWN)))
}

/// What the workflows need, and whether it is there.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GithubSetup")]
pub(crate) struct SetupView {
    /// each thing, in the order in which it is set up
    things: Vec<ThingView>,
}

/// A thing that the workflows need.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GithubThing")]
struct ThingView {
    /// the repository; null for the files of this working tree
    repository: Option<String>,
    /// what it is
    what: String,
    /// whether it is as it should be
    right: bool,
    /// why it is not, or is not known to be
    why: Option<String>,
    /// what sets it, if it is not as it should be
    command: Option<String>,
}

impl Answer for SetupView {
    fn text(&self, _: &Look) -> String {
        let mut text = String::new();
        for one in &self.things {
            let mark = if one.right { "✓" } else { "✗" };
            let of = one.repository.as_ref().map(|name| format!("{name}: "));
            let why = one.why.as_ref().map(|why| format!(" ({})", continued(why)));
            let (of, why) = (of.unwrap_or_default(), why.unwrap_or_default());
            text += &format!("{mark} {}{}{why}\n", continued(&of), one.what);
            if let Some(command) = &one.command {
                text += &format!("    {}\n", continued(command));
            }
        }
        text
    }
}
