use clap::{Args, ValueEnum};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::environment::session;
use crate::cli::error::Failure;
use crate::cli::output::Output;
use crate::cli::{exit, protocols};
use crate::finding::Finding;
use crate::ledger::{DEFAULT_BRANCH, Founding, LedgerError, check_protocol};
use crate::protocol::Policy;
use crate::templates::BUILT_IN;

/// Start the ledger on a branch of its own
///
/// Creates the orphan branch with a README, ledger.json and the protocol's
/// definition, schemas and templates. Nothing is checked out, and nothing else
/// in the repository changes; a ledger that exists is left as it is. A branch
/// other than `handoffs` is remembered in the repository's configuration as
/// handoff.branch.
#[derive(Args)]
#[command(after_help = "Example:\n  git handoff init\n  git log handoffs")]
pub(crate) struct Arguments {
    /// The protocol that issues follow: a built-in one, as `git handoff protocol
    /// list` names them, or a folder
    #[arg(long, value_name = "NAME|FOLDER", default_value = BUILT_IN[0])]
    protocol: String,
    /// Whether claims about the repository are checked when a contract is sent
    /// [default: off]
    #[arg(long, value_name = "POLICY")]
    evidence: Option<Evidence>,
}

/// What becomes of a claim that the repository contradicts.
#[derive(Clone, Copy, ValueEnum)]
enum Evidence {
    /// The contract is refused
    Enforce,
    /// The contract is accepted, and the contradiction recorded and shown
    Warn,
    /// Claims are recorded as they are made
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

/// The page for the person who lands on the branch in a browser.
const README: &str = include_str!("ledger-readme.md");

impl Arguments {
    /// Runs the command.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    pub(crate) fn run(&self, context: &Context, output: &mut Output) -> Result<(), Failure> {
        let folder = protocols::folder(&self.protocol)?;
        let protocol = protocols::load(&folder)?;
        let files = folder.into_files();
        let findings = check_protocol(&files);
        if findings.iter().any(Finding::is_error) {
            return Err(LedgerError::ProtocolRefused { findings }.into());
        }
        let repository = context.repository()?;
        let session = session(&repository)?;
        let ledger = context.ledger(&repository)?;
        let founding = Founding {
            protocol: protocol.definition().name.clone(),
            evidence: self.evidence.map_or(Policy::Off, Policy::from),
            files,
            readme: README.replace("{{branch}}", ledger.branch()),
        };
        let before = match ledger.tip_id()? {
            Some(_) => None,
            None => ledger.seen(),
        };
        let commit = ledger.init(&session, &founding)?;
        let configured = repository.config("handoff.branch");
        let wanted = context
            .branch()
            .filter(|b| *b != configured.as_deref().unwrap_or(DEFAULT_BRANCH));
        if let Some(branch) = wanted {
            repository.set_config("handoff.branch", branch)?;
        }
        let tip = ledger.tip()?;
        let protocol = &tip.manifest().default_protocol;
        if *protocol != founding.protocol {
            let text = format!("the ledger exists already, with protocol {protocol}");
            let hint = format!(
                "`git handoff protocol add {}` puts another in force beside it",
                self.protocol
            );
            return Err(Failure::new(exit::PROTOCOL, "other_protocol", text).hint(hint));
        }
        let known = tip.manifest().evidence;
        if let Some(wanted) = self.evidence.map(Policy::from).filter(|p| *p != known) {
            let text = format!(
                "the ledger exists already, with --evidence {}",
                known.as_str()
            );
            let hint = format!(
                "a protocol can say it: set its `evidence` to {{\"policy\": \"{}\"}}, and put it in force with `git handoff protocol update`",
                wanted.as_str()
            );
            return Err(Failure::new(exit::PROTOCOL, "other_evidence", text).hint(hint));
        }
        let branch = ledger.branch();
        let text = match commit {
            Some(commit) => {
                format!(
                    "started the ledger on branch {branch}, protocol {protocol}\n  commit {}\n",
                    commit.short()
                )
            }
            None => {
                format!("the ledger is on branch {branch}, protocol {protocol}; nothing changed\n")
            }
        };
        let data = json!({
            "branch": branch,
            "protocol": protocol,
            "evidence": tip.manifest().evidence,
            "created": commit.is_some(),
            "commit": tip.commit().to_string(),
        });
        output.answer(&data, &text)?;
        if let Some(before) = before {
            output.say(&format!(
                "another ledger was on this branch, and its branch is gone: `git branch {branch}-before {before}` keeps what this clone saw of it; until `git handoff verify --accept-rewritten`, verify reports that it is missing"
            ));
        }
        let rules = tip.default_rules()?;
        let mut routes = rules.protocol().definition().routes.iter();
        if let Some(route) = routes.find(|r| r.opens && commit.is_some()) {
            let (from, to) = (&route.from, &route.to);
            output.say(&format!(
                "next: git handoff new --issue N --from {from} --to {to}"
            ));
        }
        Ok(())
    }
}
