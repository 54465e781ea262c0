//! A contract's content: its fields, read by the protocol's rules.

use handoff_base::ids::{AgentName, IssueKey};
use handoff_base::pointer::lookup;
use handoff_base::text::summary_line;
use handoff_contract::{Allowance, Format, Input};
use handoff_protocol::{ContractType, FailureFields, Fields, Protocol, Resolved};
use serde_json::Value;

use crate::record::{Contradiction, Failure, ImportSource};
use crate::value::scalar;

/// A contract that passed the pipeline.
#[derive(Clone, Debug)]
pub struct Contract {
    /// The document, byte for byte.
    pub bytes: Vec<u8>,
    /// Its format.
    pub format: Format,
    /// The protocol it was checked against.
    pub protocol: AgentName,
    /// Its type.
    pub kind: String,
    /// The issue it belongs to.
    pub issue: IssueKey,
    /// Its own id, if its type has one.
    pub id: Option<String>,
    /// Its sender; optional in a note.
    pub from: Option<AgentName>,
    /// Its receiver; optional in an answer or a note.
    pub to: Option<AgentName>,
    /// Its status word.
    pub status: Option<String>,
    /// Its priority word.
    pub priority: Option<String>,
    /// The issue's title, if it gives one.
    pub title: Option<String>,
    /// A one-line summary: the contract's own, or else its type's title.
    pub summary: String,
    /// The location of its sender's session.
    pub session: Option<String>,
    /// The failure that it reports, if any.
    pub failure: Option<Failure>,
    /// The permissions for text in it that looks like a secret.
    pub allowed_secrets: Vec<Allowance>,
    /// Its source, if it was imported.
    pub imported: Option<ImportSource>,
    /// The contradictions that its rules only warn about.
    pub contradictions: Vec<Contradiction>,
    /// Its content, in the value model.
    pub value: Value,
}

impl Contract {
    /// The commit that it names as reviewed.
    pub fn reviewed_commit(&self, kind: &ContractType) -> Option<&str> {
        let at = kind.reviews.as_ref()?.commit.as_deref()?;
        lookup(&self.value, at)?.as_str()
    }

    /// Reads a contract that was found to be without faults.
    pub(super) fn read(
        protocol: &Protocol,
        input: &Input<'_>,
        format: Format,
        resolved: Resolved<'_>,
        issue: IssueKey,
        value: Value,
    ) -> Self {
        let Resolved { kind, from, to } = resolved;
        let text = |field: for<'f> fn(&'f Fields) -> &'f Option<String>| {
            scalar(lookup(&value, protocol.field(kind, field)?)?)
        };
        let own_summary = || scalar(lookup(&value, kind.summary.as_deref()?)?);
        let summary = text(|f| &f.summary)
            .or_else(own_summary)
            .unwrap_or_else(|| kind.title.clone());
        Self {
            bytes: input.bytes().to_vec(),
            format,
            protocol: protocol.definition().name.clone(),
            kind: kind.name.clone(),
            issue,
            id: text(|f| &f.id),
            from,
            to,
            status: text(|f| &f.status).or_else(|| {
                // In a log, the outcome is a boolean.
                let at = protocol.field(kind, |f| &f.status)?;
                Some(lookup(&value, at)?.as_bool()?.to_string())
            }),
            priority: text(|f| &f.priority),
            title: text(|f| &f.title)
                .map(|title| summary_line(&title))
                .filter(|title| !title.is_empty()),
            summary: summary_line(&summary),
            session: text(|f| &f.session),
            failure: kind.failure.as_ref().and_then(|f| failure(f, &value)),
            allowed_secrets: Vec::new(),
            imported: None,
            contradictions: Vec::new(),
            value,
        }
    }

    /// Its sender: the one it names, else the actor.
    pub fn sender<'a>(&'a self, actor: &'a AgentName) -> &'a AgentName {
        self.from.as_ref().unwrap_or(actor)
    }
}

/// The failure that a contract reports.
fn failure(fields: &FailureFields, value: &Value) -> Option<Failure> {
    let text = |pointer: &str| scalar(lookup(value, pointer)?);
    let optional = |pointer: &Option<String>| text(pointer.as_deref()?);
    let is = |at: &Option<String>| lookup(value, at.as_deref()?)?.as_bool();
    let code = if fields.code.starts_with('/') {
        text(&fields.code)?
    } else {
        fields.code.clone()
    };
    Some(Failure {
        code,
        message: text(&fields.message)?,
        details: fields
            .details
            .as_deref()
            .and_then(|at| told(lookup(value, at)?)),
        recoverable: is(&fields.recoverable).unwrap_or(false),
        suggested_action: optional(&fields.suggested_action),
        no_retry: is(&fields.retry_available) == Some(false),
        run: None,
    })
}

/// A value as text, with a list's items on separate lines.
fn told(value: &Value) -> Option<String> {
    let line = |item: &Value| match item {
        Value::Object(members) => {
            let texts = members.values().filter_map(scalar);
            Some(texts.collect::<Vec<_>>().join(": "))
        }
        item => scalar(item),
    };
    match value {
        Value::Array(items) => {
            let lines: Vec<String> = items.iter().filter_map(line).collect();
            Some(lines.join("\n")).filter(|lines| !lines.is_empty())
        }
        value => scalar(value),
    }
}
