//! Contracts and protocols: what is accepted, what is refused and why, and what each
//! built-in protocol asks of its agents.
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story, or is one table"
)]

#[cfg(feature = "all")]
mod attention_views;
mod bad_input;
mod consistency;
mod contract_properties;
mod contracts;
mod decisions;
mod delegation;
mod directive;
mod explain;
mod foreign_text;
mod loosened;
mod mutations;
mod new_protocol;
#[cfg(all(feature = "agents", feature = "report"))]
mod one_view;
mod other_names;
#[cfg(unix)]
#[cfg(feature = "all")]
mod own_protocol;
mod printed_commands;
mod protocol_claims;
mod protocol_faults;
#[cfg(all(feature = "agents", feature = "trial"))]
mod protocol_trial;
mod protocols;
mod recognition;
mod rules;
mod schemas;
mod secrets;
mod skeletons;
mod tasks;
mod two_workers;
mod xml_forms;
mod xsd;
