//! Stored files that cannot be used.

use handoff_ledger::DamageError;

use super::LEFT_OUT;
use crate::failure::{ErrorCode, Failure, chain};

impl From<DamageError> for Failure {
    fn from(error: DamageError) -> Self {
        let message = chain(&error);
        let at = |code| {
            Self::new(code, message).hint("`git handoff verify` shows where the damage began")
        };
        match error {
            DamageError::Object { source, .. } if source.is_left_out() => {
                at(ErrorCode::LeftOut).hint(LEFT_OUT)
            }
            DamageError::Protocol { findings, .. } => {
                at(ErrorCode::ProtocolBroken).findings(findings)
            }
            DamageError::Schema { .. } => at(ErrorCode::SchemaBroken),
            DamageError::Template { .. } => at(ErrorCode::TemplateBroken),
            DamageError::Missing(_)
            | DamageError::Object { .. }
            | DamageError::Stored { .. }
            | DamageError::TooLarge(_)
            | DamageError::Altered(_) => at(ErrorCode::LedgerDamaged),
        }
    }
}
