//! Issues that cannot be archived.

use handoff_model::NotArchivable;

use crate::failure::{ErrorCode, Failure};

impl From<NotArchivable> for Failure {
    fn from(why: NotArchivable) -> Self {
        let failure = Self::new(ErrorCode::NotArchivable, format!("cannot archive: {why}"));
        match why {
            NotArchivable::Open(key) => failure.hint(format!(
                "nothing was written; `git handoff status {key}` shows what it waits for"
            )),
            NotArchivable::TooRecent { .. } => {
                failure.advice("nothing was written; leave out the time to archive it all the same")
            }
        }
    }
}
