//! `ledger.json`: the ledger's settings.

use handoff_base::Moment;
use handoff_base::ids::AgentName;
use handoff_protocol::Policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::stored_form::stored;

/// `ledger.json`: the ledger's settings.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the stored form: 4.
    pub version: u32,
    /// The protocol that a new issue is bound to.
    pub default_protocol: AgentName,
    /// The policy for statements that the repository contradicts, unless a protocol sets its own.
    pub evidence: Policy,
    /// When the ledger was created.
    pub created_at: Moment,
}

stored!(Manifest);
