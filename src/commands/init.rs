use std::io::{IsTerminal, stderr, stdin};

use clap::{Args, ValueEnum};
use handoff::base::ObjectId;
use handoff::base::ids::AgentName;
use handoff::base::text::{continued, one_line, word};
use handoff::git::{Repository, masked};
use handoff::ledger::{
    DEFAULT_BRANCH, Founding, Ledger, ProtocolError, RemoteLook, Rules, Session, Snapshot, Synced,
};
use handoff::model::Assignment;
use handoff::protocol::Policy;
use handoff::templates::{BUILT_IN, SMALL};
use schemars::JsonSchema;
use serde::Serialize;

#[cfg(feature = "agents")]
use super::agents;
#[cfg(feature = "github")]
use super::github::workflows;
use super::hooks;
use crate::args::protocols;
use crate::context::elsewhere::{Elsewhere, elsewhere, takeover};
use crate::context::writer::say_synced;
use crate::context::{Context, remote_named};
use crate::contracts::asking::choice;
use crate::contracts::skeleton::opening_command;
use crate::failure::{ErrorCode, Failure, hint};
use crate::output::{Answer, BEGIN, Output, counted};
use crate::render::REFUSED_ANYWAY;
use crate::view::Look;

/// Start the ledger on its own branch
///
/// Creates the orphan branch with a README, ledger.json and the protocol's
/// definition, schemas and templates. Nothing is checked out, and nothing else
/// in the repository changes; an existing ledger is left as it is. A branch
/// other than `handoffs` is saved in the repository's configuration as
/// handoff.branch.
///
/// On a terminal, asks which protocol issues follow, and what happens to statements
/// that the repository contradicts, unless --protocol or --evidence says it.
///
/// --hooks, --github and --agents also install Git hooks, GitHub workflows, and
/// what harnesses of agents read, in this clone's files; `git handoff uninstall`
/// removes all of it again.
#[derive(Args)]
#[command(after_help = "Examples:
  git handoff init
  git handoff init --remote origin      (share it with other clones)
  git handoff init --hooks --agents claude-code,codex
  git log handoffs")]
pub(crate) struct Arguments {
    /// The protocol that issues follow: a built-in one (see `git handoff protocol
    /// list`) or a folder [default: what is answered on a terminal, else issue-to-pr]
    #[arg(long, value_name = "NAME|FOLDER")]
    protocol: Option<String>,
    /// Share the ledger through this remote, given by name or address: a step counts
    /// only once the remote has it. Takes over a ledger that is already there. Saved
    /// in the repository's configuration as handoff.remote
    #[arg(long, value_name = "REMOTE")]
    remote: Option<String>,
    /// Whether statements about the repository are checked when a contract is sent
    /// [default: what the protocol says, else warn]
    #[arg(long, value_name = "POLICY")]
    evidence: Option<Evidence>,
    /// Also install the Git hooks
    #[arg(long)]
    hooks: bool,
    /// Also write the GitHub workflows, which use the action at OWNER/REPOSITORY/action@COMMIT, and
    /// rulesets, for the ledger's branch; in what is there already, another action is replaced, and all
    /// else stays
    #[cfg(feature = "github")]
    #[arg(long, value_name = "ACTION", num_args = 0..=1)]
    github: Option<Option<String>>,
    /// With --github: also the workflow that runs agents
    #[cfg(feature = "github")]
    #[arg(long, requires = "github")]
    github_agents: bool,
    /// Also install what harnesses of agents read; by default all that are known
    #[cfg(feature = "agents")]
    #[arg(long, value_name = "NAME,…", num_args = 0.., value_delimiter = ',', value_parser = agents::names())]
    agents: Option<Vec<String>>,
}

/// The policy for statements that the repository contradicts.
#[derive(Clone, Copy, ValueEnum)]
enum Evidence {
    /// Refuse the contract
    Enforce,
    /// Accept the contract, and record and show the contradiction
    Warn,
    /// Record statements as they are, without checking them
    Off,
}

impl From<Evidence> for Policy {
    fn from(chosen: Evidence) -> Self {
        match chosen {
            Evidence::Enforce => Self::Enforce,
            Evidence::Warn => Self::Warn,
            Evidence::Off => Self::Off,
        }
    }
}

/// The README for people who open the branch in a browser.
const README: &str = include_str!("ledger-readme.md");

impl Arguments {
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let repository = context.repository()?;
        let (named, policy) = self.chosen(context, &repository, output)?;
        let (protocol, files) = protocols::sound(&named)?;
        let remote_of = |name: String| remote_named(&repository, name);
        let named_remote = self.remote.clone().map(remote_of).transpose()?;
        let remote = match &named_remote {
            Some(name) => Some(name.clone()),
            None => context.remote(&repository)?,
        };
        let (mut ledger, session) =
            context.writer_through(&repository, named_remote.as_deref(), output)?;
        if (remote.is_none() || session.offline) && ledger.tip_id()?.is_none() {
            let offline = session.offline || remote.is_some();
            not_twice(&repository, &ledger, offline, output)?;
        }
        // What an existing ledger refuses is decided before anything is taken over or pushed.
        if self.protocol.is_some() || self.evidence.is_some() {
            let known = existing(context, &repository, named_remote.as_deref(), &session)?;
            let agrees = |tip| self.ensure_agrees(&tip, &protocol.definition().name, &named);
            known.map_or(Ok(()), agrees)?;
        }
        let synced = ledger.catch_up(&session)?;
        let founding = Founding {
            protocol: protocol.definition().name.clone(),
            evidence: policy.unwrap_or(Policy::Warn),
            files,
            readme: README.replace("{{branch}}", ledger.branch()),
        };
        let is_new = ledger.tip_id()?.is_none();
        let before = is_new.then(|| ledger.seen()).flatten();
        let commit = ledger.init(&session, &founding)?;
        output.follow(&ledger);
        let configured = repository.config("handoff.branch");
        let wanted = context
            .branch()
            .filter(|b| *b != configured.as_deref().unwrap_or(DEFAULT_BRANCH));
        if let Some(branch) = wanted {
            repository.set_config("handoff.branch", branch)?;
        }
        say_synced(&synced, output);
        // The protocol's own policy takes precedence over the ledger's.
        let own = protocol.usual_policy(founding.evidence);
        if let Some(policy) = policy.filter(|policy| commit.is_some() && *policy != own) {
            set_policy(&mut ledger, &session, &founding.protocol, policy)?;
        }
        let tip = ledger.tip()?;
        let protocol = &tip.manifest().default_protocol;
        let rules = tip.rules(protocol.as_str())?;
        let evidence = rules.protocol().usual_policy(tip.manifest().evidence);
        // Another process may have started it in the meantime.
        self.ensure_agrees(&tip, &founding.protocol, &named)?;
        if commit.is_none() && !BUILT_IN.contains(&&*named) {
            say_other_files(&rules, &founding.files, &named, output)?;
        }
        let is_shared_anew = shares(context, &repository, named_remote.as_deref())?;
        let branch = ledger.branch();
        let installed = self.installed(context, &repository, branch)?;
        output.answer(&InitView {
            branch,
            protocol,
            evidence,
            created: commit.is_some(),
            remote: remote.as_deref().map(masked),
            to_share: to_share(&repository),
            commit: tip.commit(),
            installed,
            is_shared_anew,
            synced: &synced,
        })?;
        if let Some(before) = before {
            say_before(branch, before, output);
        }
        #[cfg(feature = "github")]
        if self.github.is_some() {
            workflows::say_action(&repository, branch, output)?;
        }
        if commit.is_some() {
            say_next(&tip.default_rules()?, output)?;
        } else if named_remote.is_some() && synced.brought > 0 {
            say_next_here(output);
        }
        Ok(())
    }

    /// Refuses a protocol or a policy that an existing ledger does not have.
    fn ensure_agrees(
        &self,
        tip: &Snapshot<'_>,
        wanted: &AgentName,
        named: &str,
    ) -> Result<(), Failure> {
        let manifest = tip.manifest();
        let protocol = &manifest.default_protocol;
        if self.protocol.is_some() && protocol != wanted {
            return Err(other_protocol(protocol, named));
        }
        let Some(policy) = self.evidence.map(Policy::from) else {
            return Ok(());
        };
        let rules = tip.rules(protocol.as_str())?;
        let evidence = rules.protocol().usual_policy(manifest.evidence);
        if policy != evidence {
            return Err(other_evidence(protocol, evidence, policy));
        }
        Ok(())
    }

    /// The protocol and the policy for contradicted statements; on a terminal, asks for both before
    /// there is a ledger.
    fn chosen(
        &self,
        context: &Context,
        repository: &Repository,
        output: &mut Output,
    ) -> Result<(String, Option<Policy>), Failure> {
        let usual = || self.protocol.as_deref().unwrap_or(BUILT_IN[0]).to_owned();
        let evidence = self.evidence.map(Policy::from);
        let is_new = || Ok::<_, Failure>(context.ledger(repository)?.tip_id()?.is_none());
        let is_terminal = stdin().is_terminal() && stderr().is_terminal();
        if self.protocol.is_some() || evidence.is_some() || output.is_json() || !is_terminal {
            return Ok((usual(), evidence));
        }
        if !is_new()? {
            return Ok((usual(), evidence));
        }
        let offered = [SMALL, BUILT_IN[0]];
        let titled = offered.map(|name| {
            let protocol = protocols::load(name, &protocols::folder(name)?)?;
            Ok::<_, Failure>(format!("{name}: {}", protocol.definition().title))
        });
        let [small, usual] = titled;
        let titles = [small?, usual?];
        let titles = titles.each_ref().map(String::as_str);
        let how = "`git handoff init --protocol NAME` asks nothing";
        let mut ask = |question, choices: [&str; 2]| choice(question, &choices, how, output);
        let protocol = ask("Which protocol do issues follow?", titles)?;
        let policies = ["refuse the contract", "note it, and go on"];
        let policy = ask("If the repository contradicts a contract:", policies)?;
        let policy = [Policy::Enforce, Policy::Warn][policy];
        let protocol = offered[protocol].to_owned();
        Ok((protocol, Some(policy)))
    }

    /// Installs what else was requested; returns each changed hook and file.
    fn installed(
        &self,
        context: &Context,
        repository: &Repository,
        branch: &str,
    ) -> Result<Vec<String>, Failure> {
        let mut installed = Vec::new();
        let Err(failure) = self.install(context, repository, branch, &mut installed) else {
            return Ok(installed);
        };
        let already = match &installed[..] {
            [] => String::new(),
            some => format!(", and these are installed: {}", some.join(", ")),
        };
        let ledger = format!("the ledger is on branch {branch}{already}");
        let message = format!("{ledger}; but: {}", failure.message);
        Err(Failure { message, ..failure })
    }

    /// Installs what else was requested, and lists each changed hook and file.
    #[cfg_attr(
        not(all(feature = "agents", feature = "github")),
        allow(unused_variables, reason = "what they are for is a room's")
    )]
    fn install(
        &self,
        context: &Context,
        repository: &Repository,
        branch: &str,
        installed: &mut Vec<String>,
    ) -> Result<(), Failure> {
        if self.hooks {
            installed.extend(hooks::install(repository)?);
        }
        #[cfg(feature = "github")]
        if let Some(action) = &self.github {
            let action = action.as_deref();
            let files = workflows::install(repository, action, branch, self.github_agents)?;
            installed.extend(files);
        }
        #[cfg(feature = "agents")]
        if let Some(names) = &self.agents {
            installed.extend(agents::install(context, repository, names)?);
        }
        Ok(())
    }
}

/// The newest state of the ledger, here or at the remote, if there is one. Moves no branch.
fn existing<'r>(
    context: &Context,
    repository: &'r Repository,
    remote: Option<&str>,
    session: &Session,
) -> Result<Option<Snapshot<'r>>, Failure> {
    let mut ledger = context.ledger(repository)?;
    if let Some(remote) = remote {
        ledger = ledger.shared_through(remote);
    }
    if ledger.tip_id()?.is_some() {
        return Ok(Some(ledger.newest()?));
    }
    if !ledger.is_shared() || session.offline {
        return Ok(None);
    }
    match ledger.ask(session) {
        Ok(RemoteLook::Seen { tip: Some(tip), .. }) => Ok(Some(ledger.at(tip)?)),
        // Catching up reports what is wrong with the remote.
        _ => Ok(None),
    }
}

/// What comes first in a clone that took a ledger over.
fn say_next_here(output: &mut Output) {
    let next = if output.is_on_terminal() {
        "git handoff".to_owned()
    } else {
        format!("git handoff {BEGIN} --as AGENT")
    };
    output.say(&format!("next: {next}"));
}

/// The remote through which a ledger could be shared: the only one, else a placeholder.
fn to_share(repository: &Repository) -> String {
    match &repository.remotes()[..] {
        [only] => word(only).into_owned(),
        _ => "NAME".to_owned(),
    }
}

/// Prints how to open the first issue.
fn say_next(rules: &Rules<'_>, output: &mut Output) -> Result<(), Failure> {
    if let Some(command) = opening_command(rules, None, "")? {
        output.say(&format!("next: {command}"));
    }
    Ok(())
}

/// The ledger of a repository.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Init")]
pub(crate) struct InitView<'a> {
    /// the ledger's branch
    branch: &'a str,
    /// its protocol
    protocol: &'a AgentName,
    /// how statements that the repository contradicts are treated: `enforce`, `warn` or `off`
    evidence: Policy,
    /// false if the ledger already existed and nothing changed
    created: bool,
    /// the remote through which the ledger is shared
    remote: Option<String>,
    /// The remote to share it through, as far as it is known.
    #[serde(skip)]
    to_share: String,
    /// where the branch is now
    commit: ObjectId,
    /// each hook and file that was installed in this step, with what was done
    installed: Vec<String>,
    /// Whether this clone shares it from now on.
    #[serde(skip)]
    is_shared_anew: bool,
    #[serde(skip)]
    synced: &'a Synced,
}

impl Answer for InitView<'_> {
    fn text(&self, _: &Look) -> String {
        let Self {
            branch, protocol, ..
        } = self;
        let remote = continued(self.remote.as_deref().unwrap_or_default());
        let sent = self.synced.pushed;
        let mut text = if self.created {
            let commit = self.commit.short();
            let shared = match remote.as_str() {
                "" => format!(
                    "kept in this repository alone (share it: git handoff init --remote {})",
                    self.to_share
                ),
                remote => format!("shared through {remote}; {}", elsewhere_too(remote, branch)),
            };
            let anyway = if remote.is_empty() {
                "a false merge is refused anyway"
            } else {
                REFUSED_ANYWAY
            };
            let stricter = match self.evidence {
                Policy::Warn => {
                    format!(
                        "; {anyway} (refuse all: git handoff protocol set {protocol} evidence enforce)"
                    )
                }
                _ => String::new(),
            };
            let evidence = self.evidence.as_str();
            format!(
                "started the ledger on branch {branch}, protocol {protocol}\n  commit {commit}; {shared}\n  statements that the repository contradicts: {evidence}{stricter}\n"
            )
        } else if self.synced.brought > 0 && self.remote.is_some() {
            format!("took over the ledger of {remote} on branch {branch}, protocol {protocol}\n")
        } else if sent > 0 || self.is_shared_anew {
            let sent = match sent {
                0 => String::new(),
                sent => format!(": sent {}", counted(sent, "commit")),
            };
            let others = elsewhere_too(&remote, branch);
            format!("the ledger on branch {branch} is shared through {remote}{sent}\n  {others}\n")
        } else {
            let same = if self.installed.is_empty() {
                "; nothing changed"
            } else {
                ""
            };
            format!("the ledger is on branch {branch}, protocol {protocol}{same}\n")
        };
        for line in &self.installed {
            text += &format!("  {}\n", continued(line));
        }
        text
    }
}

/// What a clone does that is to have a shared ledger, too.
fn elsewhere_too(remote: &str, branch: &str) -> String {
    let named = (branch != DEFAULT_BRANCH).then(|| format!(" --branch {}", word(branch)));
    format!(
        "in every other clone: git handoff init --remote {}{}",
        word(remote),
        named.unwrap_or_default()
    )
}

fn other_protocol(protocol: &AgentName, wanted: &str) -> Failure {
    let text = format!("the ledger already exists, with protocol {protocol}");
    let hint = hint!(
        "use `git handoff protocol add {}` to add another protocol",
        wanted
    );
    Failure::new(ErrorCode::OtherProtocol, text).hint(hint)
}

/// Says that a folder is not what is in force, and how to put it in force.
fn say_other_files(
    rules: &Rules<'_>,
    files: &[(String, Vec<u8>)],
    folder: &str,
    output: &mut Output,
) -> Result<(), Failure> {
    let in_force = rules.files()?;
    let other = files.iter().filter(|file| !in_force.contains(file));
    let gone = in_force
        .iter()
        .filter(|(path, _)| !files.iter().any(|(own, _)| own == path));
    let Some((file, _)) = other.chain(gone).next() else {
        return Ok(());
    };
    let definition = rules.protocol().definition();
    output.say(&format!(
        "{} {} stays in force: {} in {} is another; give the folder another `version`, then `git handoff protocol update {}` puts it in force",
        definition.name,
        one_line(&definition.version),
        one_line(file),
        one_line(folder),
        word(folder),
    ));
    Ok(())
}

fn other_evidence(protocol: &AgentName, evidence: Policy, wanted: Policy) -> Failure {
    let text = format!(
        "the ledger already exists, with --evidence {}",
        evidence.as_str()
    );
    let hint = format!(
        "set it in the protocol instead: `git handoff protocol set {protocol} evidence {}`",
        wanted.as_str()
    );
    Failure::new(ErrorCode::OtherEvidence, text).hint(hint)
}

/// Sets the remote through which this clone shares its ledger; returns whether that is new.
fn shares(
    context: &Context,
    repository: &Repository,
    remote: Option<&str>,
) -> Result<bool, Failure> {
    let Some(name) = remote else {
        return Ok(false);
    };
    let is_new = context.remote(repository)?.as_deref() != Some(name);
    repository.set_config("handoff.remote", name)?;
    Ok(is_new)
}

/// Sets a protocol's own policy for statements that the repository contradicts.
fn set_policy(
    ledger: &mut Ledger<'_>,
    session: &Session,
    protocol: &AgentName,
    policy: Policy,
) -> Result<(), Failure> {
    let assignment = Assignment::new("evidence", policy.as_str());
    let name = protocol.to_string();
    let assignment = assignment.map_err(|source| ProtocolError::Setting { name, source })?;
    ledger.set_in_protocol(session, protocol.as_str(), &assignment, true)?;
    Ok(())
}

/// Prints how to keep what this clone last saw of an earlier ledger on the branch.
fn say_before(branch: &str, before: ObjectId, output: &mut Output) {
    output.say(&format!(
        "this branch held another ledger before, and it was deleted: `git branch {} {before}` keeps what this clone saw of it; verify reports it as missing until you run `git handoff verify --accept-rewritten`",
        word(&format!("{branch}-before"))
    ));
}

/// Refuses to start a second ledger if a remote has one, since the two could never be merged.
/// Prints a warning if the remote can't be reached.
fn not_twice(
    repository: &Repository,
    ledger: &Ledger<'_>,
    offline: bool,
    output: &mut Output,
) -> Result<(), Failure> {
    let branch = ledger.branch();
    let remote = match elsewhere(repository, ledger, offline) {
        Elsewhere::There(remote) => remote,
        Elsewhere::Unknown(remote) => {
            output.say(&format!(
                "{} could not be asked whether it has a ledger on branch {branch}: if it has one, this is a second one, which can't be merged with it; run `{}` once it is there",
                continued(&remote),
                takeover(&remote, branch)
            ));
            return Ok(());
        }
        Elsewhere::Nowhere => return Ok(()),
    };
    let text = format!(
        "{} has a ledger on branch {branch}, but this clone has none yet",
        continued(&remote)
    );
    let command = takeover(&remote, branch);
    Err(Failure::new(ErrorCode::LedgerThere, text)
        .hint(format!("nothing was written; `{command}` takes it over")))
}
