//! The conditions of a gate: options, or a policy file.

use clap::Args;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::text::quoted;
use handoff::git::Repository;
use handoff::ledger::{GateRequest, Ledger, Snapshot};
use handoff::model::GatePolicy;

use crate::context::{Context, one_commit};
use crate::contracts::input;
use crate::failure::{ErrorCode, Failure};
#[cfg(feature = "github")]
use crate::judging::{self, pull_request};
#[cfg(feature = "github")]
use handoff_http::github::Github;

// No doc comment: it would become the help of every command that takes these options.
#[derive(Args)]
pub(crate) struct PolicyArgs {
    /// The requirements to check; by default those that the protocol sets for a merge
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    require: Vec<String>,
    /// The protocol that the issue must follow; by default the ledger's, if it lists keys
    #[arg(long, value_name = "NAME")]
    protocol: Option<AgentName>,
    /// Require that each step of the issue is signed with a key that its protocol lists
    #[arg(long)]
    signed: bool,
    /// What to require, as a file that those who write to the ledger can't change: `help gate.md`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["require", "protocol", "signed"])]
    policy: Option<String>,
}

// No doc comment, as above.
#[derive(Args)]
pub(crate) struct GateArgs {
    #[command(flatten)]
    policy: PolicyArgs,
    /// The commit that must meet the requirements, or one with the same changes; by default the newest
    /// known of the issue's open pull request, else its branch's
    #[arg(long, value_name = "COMMIT")]
    head: Option<String>,
    /// Judge as the check on this pull request does: its newest commit, whether the policy exempts
    /// it, and only if the ledger is sound. Asks GitHub about it (GITHUB_REPOSITORY, GH_TOKEN), or reads
    /// what GitHub's API said of it from a file
    #[cfg(feature = "github")]
    #[arg(long, value_name = "NUMBER|FILE", conflicts_with = "head")]
    pull_request: Option<String>,
}

impl PolicyArgs {
    #[cfg(feature = "github")]
    fn is_given(&self) -> bool {
        let Self {
            require,
            protocol,
            signed,
            policy,
        } = self;
        let given = [protocol.is_some(), policy.is_some(), *signed];
        !require.is_empty() || given.contains(&true)
    }

    /// The policy: from the options, or from the file that they name.
    pub(crate) fn read(&self, context: &Context) -> Result<GatePolicy, Failure> {
        match &self.policy {
            Some(file) => policy(context, file),
            None => Ok(GatePolicy {
                protocol: self.protocol.clone(),
                require: self.require.clone(),
                signed: self.signed,
                ..GatePolicy::default()
            }),
        }
    }
}

impl GateArgs {
    /// Whether any condition is given.
    #[cfg(feature = "github")]
    pub(crate) fn is_given(&self) -> bool {
        self.policy.is_given() || self.head.is_some() || self.pull_request.is_some()
    }

    /// The branch that --head names.
    pub(crate) fn branch(&self, repository: &Repository) -> Option<&str> {
        let named = self.head.as_deref();
        named.filter(|name| repository.code(name).is_some())
    }

    /// The gate request for an issue.
    pub(crate) fn read(
        &self,
        context: &Context,
        (ledger, tip): (&Ledger<'_>, &Snapshot<'_>),
        key: &IssueKey,
    ) -> Result<GateRequest, Failure> {
        let policy = self.policy.read(context)?;
        #[cfg(feature = "github")]
        if let Some(named) = &self.pull_request {
            let described = match named.parse() {
                Ok(number) => pull_request(&Github::from_environment()?, number)?,
                Err(_) => {
                    let said = input::report(context, named)?;
                    judging::read(&serde_json::from_slice(&said).unwrap_or_default())?
                }
            };
            return judging::request((ledger, tip), policy, &described, Some(key), None);
        }
        #[cfg(not(feature = "github"))]
        let _ = (ledger, key);
        let head = self
            .head
            .as_deref()
            .map(|text| one_commit(tip.repository(), text));
        Ok(GateRequest {
            policy,
            head: head.transpose()?,
            ..GateRequest::default()
        })
    }
}

fn policy(context: &Context, file: &str) -> Result<GatePolicy, Failure> {
    GatePolicy::parse(&input::report(context, file)?).map_err(|findings| {
        let text = format!("{} is not a policy for a gate", quoted(file));
        Failure::new(ErrorCode::GatePolicyRefused, text)
            .hint("the gate stays closed; `git handoff help gate.md` describes the file")
            .findings(findings)
    })
}
