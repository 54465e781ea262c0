//! Protocols and their documents.

use handoff_base::text::word;
use handoff_ledger::ProtocolError;
use handoff_model::SettingError;

use crate::failure::{ErrorCode, Failure, chain};

impl From<ProtocolError> for Failure {
    fn from(error: ProtocolError) -> Self {
        let message = chain(&error);
        let at = |code| Self::new(code, message);
        match error {
            ProtocolError::Refused(findings) => at(ErrorCode::ProtocolRefused)
                .hint("fix it until `git handoff protocol check FOLDER` finds nothing")
                .findings(findings),
            ProtocolError::SameVersion { name, findings } => at(ErrorCode::ProtocolRefused)
                .hint(format!(
                    "raise `version` in its protocol.json and update again; `git handoff protocol show {}` shows what is in force",
                    word(&name)
                ))
                .findings(findings),
            ProtocolError::Exists { name, .. } => at(ErrorCode::ProtocolExists)
                .hint(format!("`git handoff protocol update` puts a new version in force; see `git handoff protocol show {}`", word(&name))),
            ProtocolError::Unknown { known, .. } => at(ErrorCode::NoProtocol)
                .hint(format!(
                    "the ledger has: {}; `git handoff protocol add` puts another in force",
                    known.join(", ")
                )),
            ProtocolError::Setting { name, source } => at(ErrorCode::Usage).hint(match source {
                SettingError::Edit(_) => {
                    "copy the protocol, edit its protocol.json and use `git handoff protocol update`"
                        .to_owned()
                }
                _ => format!("`git handoff protocol set {name}` lists what can be set"),
            }),
            ProtocolError::Orphans { findings, .. } => at(ErrorCode::ProtocolOrphans)
                .advice("finish the open handoffs first, or keep what they need in the definition")
                .findings(findings),
            ProtocolError::Weaker { findings, .. } => at(ErrorCode::ProtocolWeaker)
                .advice("nothing was written; make it as strict, or say that it may be weaker: --weaker, which is recorded with your name")
                .findings(findings),
            ProtocolError::NoDocument { known, .. } => {
                at(ErrorCode::NoDocument).advice(match &known[..] {
                    [] => "the protocol shares no documents".to_owned(),
                    known => format!("the protocol has: {}", known.join(", ")),
                })
            }
            ProtocolError::Document(findings) => at(ErrorCode::DocumentRefused)
                .advice("fix the document and set it again")
                .findings(findings),
        }
    }
}
