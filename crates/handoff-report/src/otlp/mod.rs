//! Traces in OTLP: one trace per issue, with a span per handoff and child spans for its periods in
//! each state.
//!
//! `spans` builds them from an issue's records, `ids` names them, `encoding` defines the format: a
//! few types of our own, because the published crates bring protobuf and an exporter's runtime.

mod encoding;
mod ids;
mod spans;

use encoding::{Attributed, Attributes, ResourceSpans, Scope, ScopeSpans, TracesData};
use handoff::ledger::{LedgerError, Snapshot};

pub use encoding::Span;
pub use spans::{Traced, spans};

/// The version of the semantic conventions.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.41.0";

/// The service and the ledger that spans come from.
#[derive(Debug)]
pub struct Origin {
    attributes: Attributes,
    ledger: [u8; 32],
}

impl Origin {
    /// Names this program's service for a ledger.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger can't be read.
    pub fn new(tip: &Snapshot<'_>, service: &str) -> Result<Self, LedgerError> {
        let mut attributes = Attributes::default();
        attributes.add("service.name", service);
        attributes.add("service.version", env!("CARGO_PKG_VERSION"));
        attributes.add("git_handoff.ledger", tip.urn());
        let ledger = tip.identity();
        Ok(Self { attributes, ledger })
    }

    /// Encodes spans as one document.
    pub fn document(&self, spans: &[Span]) -> String {
        let data = TracesData {
            resource_spans: [ResourceSpans {
                resource: Attributed {
                    attributes: &self.attributes.0,
                },
                scope_spans: [ScopeSpans {
                    scope: Scope {
                        name: "git-handoff",
                        version: env!("CARGO_PKG_VERSION"),
                    },
                    spans,
                    schema_url: SCHEMA,
                }],
                schema_url: SCHEMA,
            }],
        };
        serde_json::to_string(&data).unwrap_or_default()
    }
}
