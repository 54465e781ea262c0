//! A contract on its way into the ledger: shared by `send`, which writes it, and `check`, which
//! does not.

use clap::Args;
use handoff::base::finding::{Finding, FindingCode};
use handoff::base::ids::{AgentName, HandoffId, IssueKey};
use handoff::contract::{Allowance, Input};
use handoff::ledger::{ContractError, Done, Ledger, LedgerError, Offer, Session};
use handoff::model::{Reports, SendOptions};

use crate::context::Context;
use crate::contracts::by_send;
use crate::contracts::input;
use crate::contracts::not_in_force::diagnosed;
use crate::contracts::settings::Setting;
use crate::failure::Failure;

// No doc comment: it would become the help of each command with these options.
#[derive(Args)]
#[allow(missing_docs, reason = "clap would take it for the command's help")]
pub struct OfferArgs {
    /// The issue, if the contract names none; by default the one that its sender works on
    #[arg(long, value_name = "ISSUE")]
    issue: Option<String>,
    /// The protocol; by default the issue's, else the ledger's first that accepts the contract
    #[arg(long, value_name = "NAME")]
    protocol: Option<String>,
    /// The request that the contract answers, if its sender works on several
    /// in one issue; by default the newest
    #[arg(long, value_name = "ID")]
    answers: Option<String>,
    /// Your claim's token; others are refused
    #[arg(long, value_name = "N")]
    token: Option<u32>,
    /// Send text that a rule takes for a secret, on record; `check` lists the rules and places
    #[arg(long, value_name = "RULE[@PLACE]")]
    allow_secret: Vec<Allowance>,
    /// Test reports as JUnit XML, to compare with the counts in the contract
    #[arg(long, value_name = "FILE", num_args = 1..)]
    tests: Vec<String>,
    /// Coverage reports from lcov or Cobertura, to compare with those in the contract
    #[arg(long, value_name = "FILE", num_args = 1..)]
    coverage: Vec<String>,
}

// No doc comment, as above: how `send` and `check` write the contract.
#[derive(Args)]
#[allow(missing_docs, reason = "clap would take it for the command's help")]
pub struct ComposeArgs {
    /// Write a contract to this agent, from the acting one
    #[arg(long, value_name = "AGENT")]
    pub to: Option<String>,
    /// Fill in a field of it, by name or path; each adds an entry to a list
    #[arg(long, value_name = "FIELD=VALUE", requires = "to")]
    pub set: Vec<Setting>,
    /// Its type, if the route has several
    #[arg(long = "type", value_name = "TYPE", requires = "to")]
    pub kind: Option<String>,
}

impl ComposeArgs {
    /// The values of fields, from options and a file.
    ///
    /// # Errors
    /// A [`Failure`] if the file is not a JSON object.
    pub fn values(&self, context: &Context, file: Option<&str>) -> Result<Vec<Setting>, Failure> {
        let mut set = self.set.clone();
        if let Some(file) = file {
            set.extend(Setting::members(&input::contract(context, file)?)?);
        }
        Ok(set)
    }
}

/// The parsed options about a contract.
pub struct Options {
    /// Its sender, if known.
    pub agent: Option<AgentName>,
    /// The issue, for a contract that names none.
    pub issue: Option<IssueKey>,
    /// The protocol that it follows, if given.
    pub protocol: Option<AgentName>,
    sending: SendOptions,
    reports: Reports,
}

impl OfferArgs {
    /// Whether other options are set than those about the contract's subject.
    pub fn has_more(&self) -> bool {
        self.answers.is_some()
            || !self.allow_secret.is_empty()
            || !self.tests.is_empty()
            || !self.coverage.is_empty()
    }

    /// Parses the options, and reads the reports that they name.
    ///
    /// # Errors
    /// A usage [`Failure`].
    pub fn read(&self, context: &Context, agent: Option<AgentName>) -> Result<Options, Failure> {
        let mut reports = Reports::default();
        for name in &self.tests {
            reports.add_tests(name, &input::report(context, name)?)?;
        }
        for name in &self.coverage {
            reports.add_coverage(name, &input::report(context, name)?)?;
        }
        let answers: Option<HandoffId> = self.answers.as_deref().map(str::parse).transpose()?;
        Ok(Options {
            agent,
            issue: self.issue()?,
            protocol: self.protocol.as_deref().map(str::parse).transpose()?,
            sending: SendOptions {
                answers: answers.as_ref().map(HandoffId::number),
                token: self.token,
                allowed_secrets: self.allow_secret.clone(),
                ..SendOptions::default()
            },
            reports,
        })
    }

    fn issue(&self) -> Result<Option<IssueKey>, Failure> {
        let issue: Option<IssueKey> = self.issue.as_deref().map(str::parse).transpose()?;
        let is_zero = |key: &&IssueKey| key.as_str().bytes().all(|b| b == b'0');
        match issue.as_ref().filter(is_zero) {
            None => Ok(issue),
            Some(key) => {
                let text = format!("{key} is not an issue's number: the first is 1");
                Err(Failure::usage(text).hint("give its number with --issue N"))
            }
        }
    }
}

impl Options {
    /// Combines a contract with these options.
    pub fn offer<'a>(&'a self, input: &'a Input<'a>) -> Offer<'a> {
        Offer {
            input,
            agent: self.agent.as_ref(),
            issue: self.issue.as_ref(),
            protocol: self.protocol.as_ref(),
            options: &self.sending,
            reports: Some(&self.reports),
        }
    }
}

/// The outcome of sending a contract, after places for `send` were filled in. If its protocol is
/// not in force, a refusal names it.
///
/// # Errors
/// A [`Failure`] if the ledger or the repository can't be read; the inner result is the ledger's.
pub fn attempt(
    ledger: &mut Ledger<'_>,
    session: &Session,
    offer: &Offer<'_>,
    how: fn(&mut Ledger<'_>, &Session, &Offer<'_>) -> Result<Done, LedgerError>,
) -> Result<Result<Done, LedgerError>, Failure> {
    let text = match ledger.tip_id()? {
        Some(_) => {
            let worker = session.worker.as_ref();
            by_send::filled(ledger.repository(), &ledger.tip()?, offer, worker)?
        }
        None => None,
    };
    let input = text.as_ref().map(|text| Input::read(text.as_bytes()));
    let offer = &Offer {
        input: input.as_ref().unwrap_or(offer.input),
        ..*offer
    };
    Ok(how(ledger, session, offer).map_err(|error| match error {
        LedgerError::Contract(ContractError::Invalid(_) | ContractError::Route(_)) => {
            of_other_protocol(ledger, offer).unwrap_or(error)
        }
        other => other,
    }))
}

/// The error for a contract of a protocol that is not in force.
fn of_other_protocol(ledger: &Ledger<'_>, offer: &Offer<'_>) -> Option<LedgerError> {
    let snapshot = ledger.tip().ok()?;
    let own = snapshot.match_contract(offer).ok()?.review;
    let review = diagnosed(&snapshot, offer, own).ok()?;
    let is_named = |f: &Finding| f.code == FindingCode::ContractNotInForce;
    let named = review.findings.iter().any(is_named);
    named.then(|| ContractError::Invalid(review.findings).into())
}
