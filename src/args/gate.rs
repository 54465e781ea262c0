//! What a gate asks: on the command line, or in a file.

use clap::Args;
use handoff_base::ObjectId;
use handoff_base::ids::AgentName;
use handoff_base::text::quoted;
use handoff_git::Repository;
use handoff_ledger::GateRequest;
use handoff_model::GatePolicy;

use crate::context::{Context, commit_id};
use crate::contracts::input;
use crate::failure::{ErrorCode, Failure};

// No doc comment: it would become the help of every command that takes these options.
#[derive(Args)]
pub(crate) struct GateArgs {
    /// The requirements to check; by default those that the protocol sets for a merge
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    require: Vec<String>,
    /// The commit that must meet the requirements, or one whose changes are the same; by default the
    /// newest one that is known of the open pull request
    #[arg(long, value_name = "COMMIT")]
    head: Option<String>,
    /// The protocol that the issue must follow; by default the ledger's, if it lists keys
    #[arg(long, value_name = "NAME")]
    protocol: Option<AgentName>,
    /// Require that each step of the issue is signed with a key that its protocol lists
    #[arg(long)]
    signed: bool,
    /// What to require, as a file that those who write to the ledger can't change: docs/gate.md
    #[arg(long, value_name = "FILE", conflicts_with_all = ["require", "protocol", "signed"])]
    policy: Option<String>,
}

impl GateArgs {
    /// Whether anything is asked.
    pub(crate) fn is_given(&self) -> bool {
        let Self {
            require,
            head,
            protocol,
            signed,
            policy,
        } = self;
        let given = [
            head.is_some(),
            protocol.is_some(),
            policy.is_some(),
            *signed,
        ];
        !require.is_empty() || given.contains(&true)
    }

    /// What is asked.
    ///
    /// # Errors
    /// A [`Failure`] if the policy or the commit can't be read.
    pub(crate) fn read(
        &self,
        context: &Context,
        repository: &Repository,
    ) -> Result<GateRequest, Failure> {
        let policy = match &self.policy {
            Some(file) => policy(context, file)?,
            None => GatePolicy {
                protocol: self.protocol.clone(),
                require: self.require.clone(),
                signed: self.signed,
                signers: None,
            },
        };
        let head = self.head.as_deref().map(|text| head(repository, text));
        Ok(GateRequest {
            policy,
            head: head.transpose()?,
            ..GateRequest::default()
        })
    }
}

/// A commit by any name, or by its whole id: then it need not be here.
fn head(repository: &Repository, text: &str) -> Result<ObjectId, Failure> {
    let digits = 2 * repository.format().id_bytes();
    let id = Some(text).filter(|text| text.len() == digits);
    match id.and_then(|text| text.parse().ok()) {
        Some(id) => Ok(id),
        None => commit_id(repository, text),
    }
}

fn policy(context: &Context, file: &str) -> Result<GatePolicy, Failure> {
    GatePolicy::parse(&input::report(context, file)?).map_err(|findings| {
        let text = format!("{} is not a policy for a gate", quoted(file));
        Failure::new(ErrorCode::GatePolicyRefused, text)
            .advice("the gate stays closed; docs/gate.md describes the file")
            .findings(findings)
    })
}
