//! Checks a contract as a document, without recording it.

use handoff::base::ids::AgentName;
use handoff::contract::Outline;
use handoff::git::Repository;
use handoff::ledger::{Offer, Snapshot};
use handoff::model::{Review, first_match, is_contract_of, review};
use handoff::protocol::Protocol;
use handoff::templates::{BUILT_IN, FolderError, FolderSchemas};

use crate::args::protocols;
use crate::context::Context;
use crate::contracts::not_in_force::diagnosed;
use crate::failure::{ErrorCode, Failure, chain};

/// The rules to check against.
pub enum Against<'r> {
    /// The ledger's.
    Ledger(Box<Snapshot<'r>>),
    /// The built-in protocols', without a ledger.
    BuiltIn(Vec<(Protocol, FolderSchemas)>),
}

/// A built-in protocol and its review of a contract.
struct BuiltInMatch<'p> {
    protocol: &'p Protocol,
    review: Review,
}

impl AsRef<Review> for BuiltInMatch<'_> {
    fn as_ref(&self) -> &Review {
        &self.review
    }
}

impl<'r> Against<'r> {
    /// Chooses the ledger's rules, or else the built-in ones: all, or the named protocol's.
    pub fn choose(
        context: &Context,
        repository: Option<&'r Repository>,
        named: Option<&AgentName>,
    ) -> Result<Self, Failure> {
        if let Some(repository) = repository {
            let ledger = context.ledger(repository)?;
            if ledger.tip_id()?.is_some() {
                let snapshot = ledger.tip()?;
                return Ok(Self::Ledger(Box::new(snapshot)));
            }
        }
        let names: Vec<&str> = match named {
            Some(name) => vec![name.as_str()],
            None => BUILT_IN.to_vec(),
        };
        let load = |name: &str| {
            let folder = protocols::folder(name)?;
            let protocol = protocols::load(name, &folder)?;
            Ok((protocol, FolderSchemas::new(folder)))
        };
        let protocols = names.into_iter().map(load);
        Ok(Self::BuiltIn(protocols.collect::<Result<_, Failure>>()?))
    }

    /// Checks a contract.
    ///
    /// # Errors
    /// A [`Failure`] if the rules can't be read; faults of the contract are in the review.
    pub fn review(&self, offer: &Offer<'_>) -> Result<Review, Failure> {
        match self {
            Self::Ledger(snapshot) => {
                diagnosed(snapshot, offer, snapshot.match_contract(offer)?.review)
            }
            Self::BuiltIn(protocols) => {
                let found = first_match(protocols.iter().map(|(protocol, schemas)| {
                    let review = review(protocol, schemas, offer.input, offer.issue)?;
                    Ok(BuiltInMatch { protocol, review })
                }));
                let found = found.map_err(|error: FolderError| {
                    Failure::new(ErrorCode::SchemaBroken, chain(&error))
                })?;
                let BuiltInMatch { protocol, review } =
                    found.expect("there are built-in protocols");
                Ok(review.screened(protocol, offer.input, &offer.options.allowed_secrets))
            }
        }
    }

    /// Whether a file is meant to be a contract of one of the protocols.
    pub fn is_contract(&self, outline: &Outline<'_>) -> Result<bool, Failure> {
        match self {
            Self::Ledger(snapshot) => {
                for name in snapshot.protocols()? {
                    if is_contract_of(snapshot.rules(&name)?.protocol(), outline) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::BuiltIn(protocols) => {
                let mut protocols = protocols.iter();
                Ok(protocols.any(|(protocol, _)| is_contract_of(protocol, outline)))
            }
        }
    }
}
