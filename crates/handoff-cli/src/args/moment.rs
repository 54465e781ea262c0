//! Moments on the command line: a date, a time, or an age.

use chrono::{DateTime, Duration, NaiveDate};
use handoff::base::Moment;
use handoff::base::text::quoted;

use super::duration;
use crate::environment::now;
use crate::failure::Failure;

/// Parses a moment: RFC 3339, a date (midnight UTC), or an age; `None` for other text.
///
/// # Errors
/// A usage [`Failure`] if the environment sets an invalid date.
pub fn read(text: &str) -> Result<Option<Moment>, Failure> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(Some(at.into()));
    }
    if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return Ok(date.and_hms_opt(0, 0, 0).map(|at| at.and_utc().into()));
    }
    let Ok(ago) = duration::parse(text) else {
        return Ok(None);
    };
    let ago = Duration::from_std(ago).unwrap_or_default();
    Ok(now()?.checked_sub_signed(ago))
}

/// Parses a moment for an option that requires one.
pub fn parse(text: &str) -> Result<Moment, String> {
    let found = read(text).map_err(|failure| failure.message)?;
    found.ok_or_else(|| {
        format!(
            "{} is not a time: write 2026-03-04, 2026-03-04T05:06:07Z, or how long ago: 7d",
            quoted(text)
        )
    })
}
