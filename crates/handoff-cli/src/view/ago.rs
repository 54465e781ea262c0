//! Times that a person reads. One rule: in lists, and where the age is what matters, a time is
//! relative (three minutes ago, in two hours; a date, if it is far away); elsewhere it is absolute,
//! as [`Moment`] displays it: `2026-03-02 09:13:00Z`. RFC 3339 is for programs, and for what is
//! typed again. The report's page has its own form: all its times are in UTC, as it says.

use handoff::base::Moment;
use handoff::base::text::counted;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Moments further away than this are shown as dates.
const FAR: i64 = 21 * DAY;

/// A moment relative to now; `None` if it is too far away.
pub(super) fn relative(at: Moment, now: Moment) -> Option<String> {
    let seconds = (now - at).num_seconds();
    let length = seconds.abs();
    let (count, unit) = match length {
        0..MINUTE => (length, "second"),
        MINUTE..HOUR => (length / MINUTE, "minute"),
        HOUR..DAY => (length / HOUR, "hour"),
        DAY..FAR => (length / DAY, "day"),
        _ => return None,
    };
    let length = counted(count, unit);
    Some(match seconds {
        0 => "now".to_owned(),
        1.. => format!("{length} ago"),
        _ => format!("in {length}"),
    })
}

/// A moment relative to now, or its date.
pub(super) fn worded(at: Moment, now: Moment) -> String {
    relative(at, now).unwrap_or_else(|| at.format("%Y-%m-%d").to_string())
}

/// The age of a moment in its largest unit: `3m`.
pub fn short(at: Moment, now: Moment) -> String {
    let seconds = (now - at).num_seconds();
    match seconds {
        ..MINUTE => "now".to_owned(),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => format!("{}h", seconds / HOUR),
        _ => format!("{}d", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use handoff::base::Moment;

    use super::worded;

    #[test]
    fn times_are_worded_by_how_far_away_they_are() {
        let now = Moment::from_timestamp_millis(1_772_442_000_000).unwrap_or_default();
        for (seconds, expected) in [
            (0, "now"),
            (1, "1 second ago"),
            (59, "59 seconds ago"),
            (60, "1 minute ago"),
            (3599, "59 minutes ago"),
            (3600, "1 hour ago"),
            (86_399, "23 hours ago"),
            (86_400, "1 day ago"),
            (21 * 86_400 - 1, "20 days ago"),
            (21 * 86_400, "2026-02-09"),
            (-1, "in 1 second"),
            (-7200, "in 2 hours"),
            (-21 * 86_400, "2026-03-23"),
        ] {
            assert_eq!(worded(now - TimeDelta::seconds(seconds), now), expected);
        }
    }
}
