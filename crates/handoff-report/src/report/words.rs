//! Times, durations, counts and states for the page.

use chrono::TimeDelta;
use handoff::base::Moment;
use handoff::protocol::State;

/// A time to the minute; all times on the page are in UTC.
pub(super) fn minute(at: Moment) -> String {
    at.format("%Y-%m-%d %H:%M").to_string()
}

/// A time in a machine-readable form (RFC 3339).
pub(super) fn machine(at: Moment) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time as a `<time>` element.
pub(super) fn time(at: Moment) -> String {
    format!("<time datetime=\"{}\">{}</time>", machine(at), minute(at))
}

/// A duration in its two largest units: `3 d 4 h`.
pub(super) fn length(length: TimeDelta) -> String {
    let seconds = length.num_seconds().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |large: i64, name: &str, small: i64, next: &str| match small {
        0 => format!("{large} {name}"),
        small => format!("{large} {name} {small} {next}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => pair(minutes, "min", 0, ""),
        3600..86_400 => pair(hours, "h", minutes % 60, "min"),
        _ if days < 14 => pair(days, "d", hours % 24, "h"),
        _ => format!("{} d", thousands(usize::try_from(days).unwrap_or(0))),
    }
}

/// How long ago a time was, or how far ahead it is.
pub(super) fn ago(at: Moment, now: Moment) -> String {
    let passed = now - at;
    if passed < TimeDelta::zero() {
        format!("in {}", length(-passed))
    } else if passed < TimeDelta::minutes(1) {
        "just now".to_owned()
    } else {
        format!("{} ago", length(passed))
    }
}

pub(super) fn age(since: Moment, now: Moment) -> String {
    let passed = now - since;
    if passed < TimeDelta::minutes(1) {
        "less than 1 min".to_owned()
    } else {
        length(passed)
    }
}

/// A number with thousands separators.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A count: `1 issue`, `2 issues`.
pub(super) fn counted(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {what}{ending}", thousands(count))
}

/// A size in bytes: `912 bytes`, `12 kB`.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => counted(usize::try_from(bytes).unwrap_or(0), "byte"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// A state's symbol, which shows it without colour.
pub(super) fn sign(state: State) -> char {
    match state {
        State::Pending => '○',
        State::InProgress => '◐',
        State::Completed => '✓',
        State::Failed => '✗',
        State::Blocked => '?',
        State::Dead => '■',
        State::Rejected => '←',
        State::Cancelled => '–',
    }
}

/// A state as a badge: symbol, colour and word.
pub(super) fn badge(at: State) -> String {
    format!("<b class=\"s {}\">{}</b>", at.as_str(), at.words())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::{length, size, thousands};

    #[test]
    fn lengths_have_two_units_at_most() {
        for (seconds, shown) in [
            (-5, "0 s"),
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3599, "59 min"),
            (3600, "1 h"),
            (7500, "2 h 5 min"),
            (86_400, "1 d"),
            (90_000, "1 d 1 h"),
            (86_400 * 14 + 5000, "14 d"),
            (86_400 * 1234, "1,234 d"),
        ] {
            assert_eq!(length(TimeDelta::seconds(seconds)), shown);
        }
    }

    #[test]
    fn large_numbers_are_readable() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1000), "1,000");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(size(1), "1 byte");
        assert_eq!(size(9_999), "9,999 bytes");
        assert_eq!(size(1_048_576), "1048 kB");
    }
}
