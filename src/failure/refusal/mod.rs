//! What a user sees of a refusal: its exit code, a stable code, and what can be done next.

mod contract;
mod lease;
mod limit;
mod lookup;
mod queue;
mod request;
mod retry;
mod role;
mod state;

use handoff_model::Refusal;

use super::Failure;
pub(crate) use request::usage_refused;

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Role(refusal) => refusal.into(),
            Refusal::Lease(refusal) => refusal.into(),
            Refusal::Queue(refusal) => refusal.into(),
            Refusal::Retry(refusal) => refusal.into(),
            Refusal::Request(refusal) => refusal.into(),
            Refusal::Lookup(refusal) => refusal.into(),
            Refusal::State(refusal) => refusal.into(),
            Refusal::Contract(refusal) => refusal.into(),
            Refusal::Limit(refusal) => refusal.into(),
            Refusal::Budget(refusal) => refusal.into(),
        }
    }
}
