//! Detects contracts of built-in protocols that are not in force in the ledger.

use handoff::base::finding::{Finding, FindingCode};
use handoff::base::text::word;
use handoff::contract::Outline;
use handoff::ledger::{Offer, Snapshot};
use handoff::model::{Review, first_match, is_contract_of, review};
use handoff::protocol::Protocol;
use handoff::templates::{BUILT_IN, FolderError, FolderSchemas};

use crate::args::protocols;
use crate::failure::{ErrorCode, Failure, chain};

/// A review of the contract under a built-in protocol; under the ledger's own if `protocol` is
/// `None`.
struct Candidate {
    protocol: Option<Protocol>,
    review: Review,
}

impl AsRef<Review> for Candidate {
    fn as_ref(&self) -> &Review {
        &self.review
    }
}

/// Replaces the findings if a built-in protocol that is not in force matches the contract better:
/// they then name that protocol, since faults found under a wrong one would mislead.
pub fn diagnosed(
    snapshot: &Snapshot<'_>,
    offer: &Offer<'_>,
    own: Review,
) -> Result<Review, Failure> {
    // If only the route is missing, a protocol in force knows the agents: it is the intended one.
    let is_meant = offer.protocol.is_some() || own.no_route;
    if own.is_complete() || own.holds_secrets() || is_meant {
        return Ok(own);
    }
    let Some(outline) = Outline::of(offer.input.bytes()) else {
        return Ok(own);
    };
    let in_force = snapshot.protocols()?;
    let mut is_own = false;
    for name in &in_force {
        is_own |= is_contract_of(snapshot.rules(name)?.protocol(), &outline);
    }
    let others = BUILT_IN
        .into_iter()
        .filter(|name| !in_force.iter().any(|known| known == name));
    let others = others.map(|name| built_in(name, offer));
    let first = Candidate {
        protocol: None,
        review: own.clone(),
    };
    let found = first_match(std::iter::once(Ok(first)).chain(others))?;
    let Some(Candidate {
        protocol: Some(protocol),
        review,
    }) = found
    else {
        return Ok(own);
    };
    // A wrapper alone proves nothing: all protocols have the same one.
    if review.kind.is_none() && (is_own || !is_contract_of(&protocol, &outline)) {
        return Ok(own);
    }
    let finding = finding(&protocol, review.kind.as_deref(), &in_force);
    Ok(Review::refused(vec![finding]))
}

/// Reviews the contract under a built-in protocol.
fn built_in(name: &str, offer: &Offer<'_>) -> Result<Candidate, Failure> {
    let folder = protocols::folder(name)?;
    let protocol = protocols::load(name, &folder)?;
    let schemas = FolderSchemas::new(folder);
    let review = review(&protocol, &schemas, offer.input, offer.issue)
        .map_err(|error: FolderError| Failure::new(ErrorCode::SchemaBroken, chain(&error)))?;
    Ok(Candidate {
        protocol: Some(protocol),
        review,
    })
}

/// The finding that names a contract's protocol.
fn finding(protocol: &Protocol, kind: Option<&str>, in_force: &[String]) -> Finding {
    let name = protocol.name();
    let kind = kind.map_or_else(String::new, |kind| format!(", of type {kind}"));
    let text = format!(
        "this is a contract of protocol {name}{kind}, and {name} is not in force in this ledger"
    );
    Finding::error(FindingCode::ContractNotInForce, "", text).fix(format!(
        "put it in force with `git handoff protocol add {}`, or write a contract of {}",
        word(name),
        in_force.join(" or ")
    ))
}
