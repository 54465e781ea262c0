//! Who makes a step, when, and what comes with it.

use handoff_base::Moment;
use handoff_base::ids::{AgentName, WorkerId};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::record::{Delivery, ModelUsage, TraceParent};

/// The agent that makes a request, and when.
#[derive(Serialize)]
pub struct Actor<'a> {
    /// The agent.
    #[serde(rename = "by")]
    pub name: &'a AgentName,
    /// The worker that acts as the agent; `None` if no worker makes the step, as when a lease
    /// expired.
    pub worker: Option<&'a WorkerId>,
    /// The time of the step.
    pub at: Moment,
    /// The trace that it belongs to.
    pub traceparent: Option<TraceParent>,
    /// What the work that it ends or reports on took so far; empty if nothing is reported.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub usage: &'a [ModelUsage],
    /// The outside event that it carries out.
    pub delivery: Option<&'a Delivery>,
}

/// An owned [`Actor`], as a step's commit names it.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maker {
    /// The agent.
    pub by: AgentName,
    /// The worker that acted as the agent.
    pub worker: Option<WorkerId>,
    /// The time of the step.
    pub at: Moment,
    /// The trace that it belongs to.
    pub traceparent: Option<TraceParent>,
    /// What the work took, as far as it was reported with the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<ModelUsage>,
    /// The outside event that it carried out.
    pub delivery: Option<Delivery>,
}

impl Maker {
    /// The actor of its step.
    pub fn actor(&self) -> Actor<'_> {
        Actor {
            name: &self.by,
            worker: self.worker.as_ref(),
            at: self.at,
            traceparent: self.traceparent,
            usage: &self.usage,
            delivery: self.delivery.as_ref(),
        }
    }
}
