//! A contract's claims about the repository, and the checks that they require.
//!
//! The required checks follow from the contract and the rules alone ([`demanded`]). `reports`
//! compares claims with test reports, `words` with the contract's own wording.

mod reports;
mod words;

use handoff_base::finding::Finding;
use handoff_base::ids::AgentName;
use handoff_protocol::{Check, ContractType, Event, FixFields, Policy, Protocol};
use serde_json::Value;

use crate::contract::Contract;
use crate::contract::artifacts::delivered as named_files;
use crate::record::{Evidence, Verdict};
use crate::value::{is_true, scalar};

pub use crate::contract::evidence::reports::{
    NOT_APPLICABLE, ReportError, Reports, check_coverage, check_tests, check_tests_added,
};

/// The result of a check.
pub enum Found {
    /// The claim holds.
    Passed,
    /// The claim does not hold: the reasons, with JSON Pointers into the contract.
    Contradicted(Vec<Finding>),
    /// The claim could not be checked, for this reason.
    Skipped(String),
}

impl Found {
    /// Passed if there are no findings, otherwise contradicted.
    pub fn unless(findings: Vec<Finding>) -> Self {
        if findings.is_empty() {
            Self::Passed
        } else {
            Self::Contradicted(findings)
        }
    }

    /// Contradicted, for this reason alone.
    pub fn because(finding: Finding) -> Self {
        Self::Contradicted(vec![finding])
    }
}

/// How a step's recorded checks differ from the required ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceFault {
    /// A check is missing.
    #[error("the policy {} demands the check {}, and it was not recorded", policy.as_str(), check.as_str())]
    Missing {
        /// The check.
        check: Check,
        /// Its policy.
        policy: Policy,
    },
    /// A check is recorded that is not required.
    #[error("the check {} is recorded, and not required under that policy", check.as_str())]
    Needless {
        /// The check.
        check: Check,
    },
    /// The repository contradicts the contract.
    #[error("the repository contradicts the contract: {}: {reason}", check.as_str())]
    Contradicted {
        /// The check.
        check: Check,
        /// Why.
        reason: String,
    },
    /// A reason is missing, or is given for a passed check.
    #[error("the check {} needs a reason exactly if it did not pass", check.as_str())]
    Reason {
        /// The check.
        check: Check,
    },
}

/// The required checks, each with the policy on contradiction.
pub type Demanded = Vec<(Check, Policy)>;

/// The checks that a contract requires, which follow from its content and the rules alone.
pub fn demanded(protocol: &Protocol, ledger: Policy, contract: &Contract) -> Demanded {
    if ledger == Policy::Off && protocol.definition().evidence.is_none() {
        return Vec::new();
    }
    let Some(kind) = protocol.contract_type(&contract.kind) else {
        return Vec::new();
    };
    let claimed = Claimed::of(protocol, kind, contract);
    let checks = Check::ALL.into_iter().filter(|check| claimed.has(*check));
    let policies = checks.map(|check| (check, protocol.policy(check, ledger)));
    policies
        .filter(|(_, policy)| *policy != Policy::Off)
        .collect()
}

/// How the recorded checks differ from the required ones, if they do.
pub fn unfit(demanded: &[(Check, Policy)], recorded: &[Evidence]) -> Option<EvidenceFault> {
    for (i, &(check, policy)) in demanded.iter().enumerate() {
        let entry = recorded.get(i);
        let Some(entry) = entry.filter(|e| e.check == check && e.policy == policy) else {
            return Some(EvidenceFault::Missing { check, policy });
        };
        let reason = entry.reason.as_deref().filter(|why| !why.is_empty());
        if (entry.result == Verdict::Passed) != entry.reason.is_none()
            || entry.reason.is_some() && reason.is_none()
        {
            return Some(EvidenceFault::Reason { check });
        }
        if entry.result == Verdict::Contradicted && policy == Policy::Enforce {
            let reason = reason.unwrap_or_default().to_owned();
            return Some(EvidenceFault::Contradicted { check, reason });
        }
    }
    let needless = recorded.get(demanded.len());
    needless.map(|entry| EvidenceFault::Needless { check: entry.check })
}

/// The place of the code branch in contracts of a type.
pub fn branch_at<'a>(protocol: &'a Protocol, kind: &'a ContractType) -> Option<&'a str> {
    let own = kind.claims.as_ref().and_then(|c| c.branch.as_deref());
    own.or_else(|| protocol.field(kind, |f| &f.branch))
}

/// A contract's claims.
pub struct Claimed<'a> {
    protocol: &'a Protocol,
    /// The contract's type, which locates the claims.
    pub kind: &'a ContractType,
    contract: &'a Contract,
    /// The sender, if the contract or its type names it.
    pub from: Option<&'a AgentName>,
}

impl<'a> Claimed<'a> {
    /// The name of the protocol.
    pub fn protocol(&self) -> &str {
        self.protocol.name()
    }

    /// The claims of a contract of this type.
    pub fn of(protocol: &'a Protocol, kind: &'a ContractType, contract: &'a Contract) -> Self {
        let from = contract.from.as_ref().or(kind.implied_from.as_ref());
        Self {
            protocol,
            kind,
            contract,
            from,
        }
    }

    /// The contract's value at a JSON Pointer, unless it is null.
    pub fn value(&self, pointer: Option<&str>) -> Option<&'a Value> {
        let value = self.contract.value.pointer(pointer?)?;
        (!value.is_null()).then_some(value)
    }

    /// The contract's text at a JSON Pointer.
    pub fn text(&self, pointer: Option<&str>) -> Option<&'a str> {
        self.value(pointer)?.as_str()
    }

    /// The place of the code branch.
    pub fn branch_at(&self) -> Option<&'a str> {
        branch_at(self.protocol, self.kind)
    }

    /// The code branch that it names.
    pub fn branch(&self) -> Option<&'a str> {
        self.text(self.branch_at())
    }

    /// The base branch that it names.
    pub fn base(&self) -> Option<&'a str> {
        self.text(self.kind.claims.as_ref()?.base.as_deref())
    }

    /// The merge commit that it names.
    pub fn merge(&self) -> Option<&'a str> {
        let merge = self.kind.claims.as_ref()?.merge.as_ref()?;
        self.text(Some(&merge.commit))
    }

    /// Where fixes are listed, and the commit that each fix names; skipped ones are left out.
    pub fn fixes(&self) -> Option<(&'a FixFields, Vec<Option<String>>)> {
        let fields = self.kind.fixes.as_ref()?;
        let list = self.value(Some(&fields.list))?.as_array()?;
        let at = |entry: &'a Value, place: &Option<String>| entry.pointer(place.as_deref()?);
        let done = list
            .iter()
            .filter(|entry| !at(entry, &fields.skipped).is_some_and(is_true));
        let commits = done.map(|entry| {
            let commit = at(entry, &fields.commit).and_then(scalar)?;
            Some(commit).filter(|commit| !commit.is_empty())
        });
        Some((fields, commits.collect()))
    }

    /// The commits that it names as reviewed or as fixes, each with its place.
    pub fn named(&self) -> Vec<(String, String)> {
        let reviews = self.kind.reviews.as_ref();
        let at = reviews.and_then(|reviews| reviews.commit.clone());
        let reviewed = self.contract.reviewed_commit(self.kind);
        let reviewed = at.zip(reviewed.map(str::to_owned));
        let mut found: Vec<(String, String)> = reviewed.into_iter().collect();
        let fields = self.kind.fixes.as_ref();
        let Some((fields, place)) = fields.and_then(|f| Some((f, f.commit.as_deref()?))) else {
            return found;
        };
        let list = self.value(Some(&fields.list)).and_then(Value::as_array);
        for (i, entry) in list.into_iter().flatten().enumerate() {
            let commit = entry.pointer(place).and_then(scalar);
            let commit = commit.filter(|commit| !commit.is_empty());
            found.extend(commit.map(|commit| (format!("{}/{i}{place}", fields.list), commit)));
        }
        found
    }

    /// The path patterns of its sender's role.
    pub fn paths(&self) -> &'a [String] {
        let agent = self
            .from
            .and_then(|name| self.protocol.agent(name.as_str()));
        agent.map_or(&[], |agent| &agent.paths)
    }

    /// The delivered files that are files of the repository, with their places.
    pub fn files(&self) -> Vec<crate::contract::artifacts::NamedFile> {
        let files = named_files(self.kind, &self.contract.value).into_iter();
        files.filter(|file| file.is_file).collect()
    }

    /// Whether the contract makes a claim for this check.
    fn has(&self, check: Check) -> bool {
        let claims = self.kind.claims.as_ref();
        let at = |pointer: Option<&String>| self.value(pointer.map(String::as_str)).is_some();
        match check {
            // The branch may have been deleted after the merge.
            Check::Branch => self.branch().is_some() && self.merge().is_none(),
            Check::Commits => {
                let list = claims.and_then(|c| Some(c.commits.as_ref()?.list.as_str()));
                let list = self.value(list).and_then(Value::as_array);
                list.is_some_and(|list| !list.is_empty())
            }
            Check::FilesChanged => at(claims.and_then(|c| c.files_changed.as_ref())),
            Check::CommitsAdded => at(claims.and_then(|c| c.commits_added.as_ref())),
            Check::Merge => self.merge().is_some(),
            Check::Artifacts => !self.files().is_empty(),
            Check::Paths => {
                let status = self.contract.status.as_deref();
                let outcome = self.protocol.outcome(self.kind, status);
                !self.paths().is_empty() && outcome.event() == Event::Complete
            }
            Check::Tests => claims.and_then(|c| c.tests.as_ref()).is_some_and(|tests| {
                let mut given = tests.given();
                given.any(|(_, pointer)| self.value(Some(pointer)).is_some())
            }),
            Check::TestsAdded => at(claims.and_then(|c| c.tests_added.as_ref())),
            Check::Coverage => at(claims.and_then(|c| c.coverage.as_ref())),
        }
    }
}

/// A whole number, given as a number or a text.
pub fn count(value: &Value) -> Option<u64> {
    scalar(value)?.trim().parse().ok()
}
