use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Args;
use handoff::base::ledger_names::{status_name, suffix};
use handoff::base::text::{continued, cut, quoted};
use handoff::git::Repository;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::workflows::remote_host;
use crate::context::{Context, worktree};
use crate::failure::{ErrorCode, Failure};
use crate::output::{Answer, Output};
use crate::view::Look;
use handoff_github::workflows::{ENVIRONMENT as AGENTS, paths, without_action};

/// The maximum length of a printed answer of `gh`, in characters.
const SHOWN: usize = 200;

/// Check what the workflows need of a repository on GitHub, and set it up
///
/// Asks GitHub through `gh`, as whoever is signed in there, and shows for each thing whether it is as it
/// should be, and the command that sets it. --apply runs those commands, each after it was shown, but for
/// what only a person can say: which commit of the action, and the agents' key. Run again, it does what
/// is left, and says what a plan does not have. Several repositories are set up one after the other, with
/// the files of this working tree.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff github setup                       (shows what is missing)
  git handoff github setup --apply
  git handoff github setup octo/parcels octo/ships --agents --apply
  git handoff github setup octo/parcels octo/ships --org octo")]
pub(crate) struct Arguments {
    /// The repositories, as OWNER/NAME or HOST/OWNER/NAME; by default the one of this clone, as `gh` knows it
    #[arg(value_name = "OWNER/NAME")]
    repositories: Vec<String>,
    /// Make each ruleset once, in the organization of the repositories; it takes an owner of that
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// Also what agents on Actions need
    #[arg(long)]
    agents: bool,
    /// Run the commands
    #[arg(long)]
    apply: bool,
}

/// A check: its name, the arguments for `gh` with the expected answer, if it is fixed, and the
/// command that sets it up.
struct Check {
    what: &'static str,
    asks: Vec<String>,
    wants: Option<String>,
    command: String,
    /// The file of the ruleset that the command creates.
    ruleset: Option<String>,
    /// What happens on a plan without the feature: GitHub Free with private repositories.
    without: &'static str,
}

/// A command: its shell line, the arguments for `gh`, and its standard input.
struct Act {
    line: String,
    words: Vec<String>,
    input: Option<String>,
}

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let root = worktree(&repository)?;
        let ledger = context.ledger(&repository)?;
        let branch = ledger.branch().to_owned();
        let mut names = self.repositories.clone();
        if names.is_empty() {
            let words = ["repo", "view", "--json", "url", "--jq", ".url"];
            let found = gh("", &words)?.map_err(|why| {
                let text = format!("gh knows no repository on GitHub for this clone: {why}");
                Failure::new(ErrorCode::GithubUnreachable, text)
                    .hint("name it: git handoff github setup OWNER/NAME")
            })?;
            let place = found.split_once("://").map_or(&*found, |(_, place)| place);
            names.push(place.to_owned());
        }
        let host = host(&repository, &mut names)?;
        if let Some(org) = &self.org {
            let is_in = |name: &&String| {
                name.to_lowercase()
                    .starts_with(&format!("{}/", org.to_lowercase()))
            };
            if let Some(other) = names.iter().find(|name| !is_in(name)) {
                let text = format!("{} is not a repository of {}", quoted(other), quoted(org));
                return Err(Failure::usage(text).hint("write each as ORG/NAME"));
            }
        }
        let mut found = local(&root, &branch)?;
        for name in &names {
            for check in self.checks(name, &branch) {
                let mut one = check.look(&host, name)?;
                if one.command.is_some() {
                    let act = self.act(&check, &root, (&host, &names))?;
                    if self.apply && act.line.contains("gh api ") {
                        output.say(&format!("$ {}", act.line));
                        match act.run(&root)? {
                            Ok(_) => one = check.look(&host, name)?,
                            Err(why) => check.refused(&mut one, why),
                        }
                    }
                    one.command = one.command.map(|_| act.line);
                }
                found.push(one);
            }
        }
        output.answer(&SetupView { things: found })
    }

    /// The checks of a repository, in setup order.
    fn checks(&self, name: &str, branch: &str) -> Vec<Check> {
        let (status, own) = (status_name(branch), suffix('-', branch));
        let requires = format!(
            ".[] | select(.type == \"required_status_checks\") | .parameters.required_status_checks[].context | select(. == {})",
            Value::from(&*status)
        );
        let rewritten = ".[].type | select(. == \"non_fast_forward\")";
        let mut checks = vec![
            Check::new(
                "the ledger's branch is there",
                (name, &format!("branches/{branch}")),
                None,
                "git handoff init --remote origin".to_owned(),
            ),
            Check::new(
                "the workflows are on the default branch",
                (
                    name,
                    &format!("contents/.github/workflows/handoff-intake{own}.yml"),
                ),
                None,
                "git push".to_owned(),
            ),
            Check::new(
                "the ledger's branch is never rewritten",
                (name, &format!("rules/branches/{branch}")),
                Some((rewritten, "non_fast_forward")),
                String::new(),
            )
            .by_ruleset(
                name,
                format!("ruleset-ledger{own}.json"),
                "everyone with push access can rewrite it; the weekly audit reports that",
            ),
            Check::new(
                "the status is required on the default branch",
                (name, "rules/branches/HEAD"),
                Some((&requires, &status)),
                String::new(),
            )
            .by_ruleset(
                name,
                format!("ruleset-gate{own}.json"),
                "the status is shown, and holds no merge back",
            ),
        ];
        if self.agents {
            checks.extend(of_agents(name));
        }
        checks
    }

    /// The command that sets up what a check misses; with --org, a ruleset is for the whole
    /// organization.
    fn act(
        &self,
        check: &Check,
        root: &Path,
        (host, names): (&str, &[String]),
    ) -> Result<Act, Failure> {
        let (Some(org), Some(file)) = (&self.org, &check.ruleset) else {
            let line = on_host(host, &check.command);
            let words = line.split(' ').skip(1).map(str::to_owned);
            return Ok(Act {
                words: words.collect(),
                line,
                input: None,
            });
        };
        let unread = |why: String| {
            let text = format!(".github/{file} can't be read: {why}");
            Failure::new(ErrorCode::AgentsFile, text).hint("git handoff init --github writes it")
        };
        let text = fs::read_to_string(root.join(".github").join(file));
        let text = text.map_err(|error| unread(error.to_string()))?;
        let mut ruleset: Value =
            serde_json::from_str(&text).map_err(|error| unread(error.to_string()))?;
        let own = names.iter().filter_map(|name| name.split('/').nth(1));
        let mut include: BTreeSet<String> = own.map(str::to_owned).collect();
        let (mut path, mut method) = (format!("orgs/{org}/rulesets"), "POST");
        let same = format!(".[] | select(.name == {}) | .id", ruleset["name"]);
        if let Ok(id) = gh(host, &["api", "--paginate", &path, "--jq", &same])?
            && !id.is_empty()
        {
            // Keep the repositories that the ruleset covers already.
            (path, method) = (format!("{path}/{id}"), "PUT");
            let names = ".conditions.repository_name.include[]";
            let known = gh(host, &["api", &path, "--jq", names])?;
            include.extend(
                known
                    .iter()
                    .flat_map(|known| known.lines())
                    .map(str::to_owned),
            );
        }
        let of = json!({ "include": include, "exclude": [] });
        let line = on_host(
            host,
            &format!(
                "jq '.conditions.repository_name = {of}' .github/{file} | gh api {path} --method {method} --input -"
            ),
        );
        ruleset["conditions"]["repository_name"] = of;
        let words = [
            "api",
            "--hostname",
            host,
            &path,
            "--method",
            method,
            "--input",
            "-",
        ];
        Ok(Act {
            line,
            words: words.map(str::to_owned).to_vec(),
            input: Some(ruleset.to_string()),
        })
    }
}

/// Takes the host from the repositories' names; by default `GH_HOST`, else that of the ledger's remote.
///
/// # Errors
/// A usage [`Failure`] if they are on several hosts.
fn host(repository: &Repository, names: &mut [String]) -> Result<String, Failure> {
    let set = env::var("GH_HOST").ok().filter(|host| !host.is_empty());
    let usual = set.or_else(|| remote_host(repository));
    let usual = usual.unwrap_or_else(|| "github.com".to_owned());
    let mut hosts = BTreeSet::new();
    for name in names {
        let named = name.split_once('/').filter(|(_, rest)| rest.contains('/'));
        let named = named.map(|(host, rest)| (host.to_owned(), rest.to_owned()));
        let (host, rest) = named.unwrap_or_else(|| (usual.clone(), name.clone()));
        hosts.insert(host);
        *name = rest;
    }
    match (hosts.len(), hosts.pop_first()) {
        (1, Some(host)) => Ok(host),
        _ => Err(Failure::usage("the repositories are on several hosts")
            .hint("set up those of one host at a time")),
    }
}

/// A command for `gh`, on a host: without it, `gh` asks its own default one.
fn on_host(host: &str, line: &str) -> String {
    line.replacen("gh api ", &format!("gh api --hostname {host} "), 1)
        .replacen("--repo ", &format!("--repo {host}/"), 1)
}

/// The additional checks for agents on Actions.
fn of_agents(name: &str) -> [Check; 3] {
    let api = format!("repos/{name}");
    let permissions =
        "[.default_workflow_permissions, .can_approve_pull_request_reviews] | join(\" \")";
    [
        Check::new(
            "workflows read by default, and may open pull requests",
            (name, "actions/permissions/workflow"),
            Some((permissions, "read true")),
            format!(
                "gh api {api}/actions/permissions/workflow --method PUT -f default_workflow_permissions=read -F can_approve_pull_request_reviews=true"
            ),
        ),
        Check {
            without: "nobody reviews a run before it has the agents' key",
            ..Check::new(
                "there is the agents' environment",
                (name, &format!("environments/{AGENTS}")),
                None,
                format!("gh api {api}/environments/{AGENTS} --method PUT"),
            )
        },
        Check {
            without: "the key can only be a secret of the repository, for all its workflows",
            ..Check::new(
                "it has the agents' key",
                (
                    name,
                    &format!("environments/{AGENTS}/secrets/HANDOFF_AGENT_KEY"),
                ),
                None,
                format!("gh secret set HANDOFF_AGENT_KEY --env {AGENTS} --repo {name}"),
            )
        },
    ]
}

/// The checks of the files in this working tree.
fn local(root: &Path, branch: &str) -> Result<Vec<ThingView>, Failure> {
    let thing = |what: &str, wrong: Vec<String>, command: String| ThingView {
        repository: None,
        what: what.to_owned(),
        right: wrong.is_empty(),
        why: (!wrong.is_empty()).then(|| wrong.join(", ")),
        command: Some(command).filter(|_| !wrong.is_empty()),
    };
    let named = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut lines = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("LEDGER: "));
        lines.any(|name| name.trim_matches('"') != branch)
    };
    let other = paths(branch).filter(|path| named(&root.join(path)));
    Ok(vec![
        thing(
            "the workflows name a commit of the action",
            without_action(root, branch)?,
            "git handoff init --github OWNER/REPOSITORY/action@COMMIT".to_owned(),
        ),
        thing(
            "the workflows name the ledger's branch",
            other.collect(),
            format!("set LEDGER to {branch} in each"),
        ),
    ])
}

impl Check {
    fn new(
        what: &'static str,
        (name, path): (&str, &str),
        jq: Option<(&str, &str)>,
        command: String,
    ) -> Self {
        let mut asks = vec!["api".to_owned(), format!("repos/{name}/{path}")];
        let filter = jq.iter().flat_map(|(jq, _)| ["--jq", jq]);
        asks.extend(filter.map(str::to_owned));
        Self {
            what,
            asks,
            wants: jq.map(|(_, wants)| wants.to_owned()),
            command,
            ruleset: None,
            without: "",
        }
    }

    fn by_ruleset(self, name: &str, file: String, without: &'static str) -> Self {
        Self {
            command: format!("gh api repos/{name}/rulesets --method POST --input .github/{file}"),
            ruleset: Some(file),
            without,
            ..self
        }
    }

    /// Notes why GitHub refused; if the plan lacks the feature, no command can help.
    fn refused(&self, one: &mut ThingView, why: String) {
        if why.contains("Upgrade to ") && !self.without.is_empty() {
            one.command = None;
            one.why = Some(format!("{why}; until then {}", self.without));
        } else {
            one.why = Some(why);
        }
    }

    /// Runs the check.
    fn look(&self, host: &str, name: &str) -> Result<ThingView, Failure> {
        let words: Vec<&str> = self.asks.iter().map(String::as_str).collect();
        let said = gh(host, &words)?;
        let right = match (&said, &self.wants) {
            (Ok(said), Some(wants)) => said.lines().any(|line| line == wants),
            (said, _) => said.is_ok(),
        };
        let mut one = ThingView {
            repository: Some(name.to_owned()),
            what: self.what.to_owned(),
            right,
            why: None,
            command: Some(self.command.clone()).filter(|_| !right),
        };
        if let Err(why) = said {
            self.refused(&mut one, why);
        }
        Ok(one)
    }
}

impl Act {
    fn run(&self, root: &Path) -> Result<Result<String, String>, Failure> {
        let mut command = Command::new("gh");
        command.args(&self.words).current_dir(root);
        answer(command, self.input.as_deref())
    }
}

/// The output of `gh`, or the first line of its error.
fn gh(host: &str, words: &[&str]) -> Result<Result<String, String>, Failure> {
    let mut command = Command::new("gh");
    command.args(words);
    if !host.is_empty() {
        command.args(["--hostname", host]);
    }
    answer(command, None)
}

fn answer(mut command: Command, input: Option<&str>) -> Result<Result<String, String>, Failure> {
    command.stdin(input.map_or_else(Stdio::null, |_| Stdio::piped()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = command.spawn().and_then(|mut gh| {
        if let Some((mut stdin, input)) = gh.stdin.take().zip(input) {
            // If gh does not read its input, its error says why.
            let _ = stdin.write_all(input.as_bytes());
        }
        gh.wait_with_output()
    });
    let ran = ran.map_err(|error| {
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

/// The checks and their results.
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
