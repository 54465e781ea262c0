//! Durations on the command line: `90s`, `15m`, `2h 30m`.

use std::time::Duration;

use handoff::base::text::quoted;
use handoff::protocol::LONGEST;

/// Parses a duration of at least a second, as whole seconds.
pub fn seconds(text: &str) -> Result<u64, String> {
    let duration = parse(text)?;
    Ok(duration.as_secs() + u64::from(duration.subsec_nanos() > 0))
}

/// Parses a nonzero duration of up to ten years.
pub fn parse(text: &str) -> Result<Duration, String> {
    match any(text)? {
        Duration::ZERO => Err(format!(
            "{} is zero; a duration must be longer",
            quoted(text)
        )),
        duration => Ok(duration),
    }
}

/// Parses a duration of up to ten years.
pub fn any(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Err(error) => Err(format!(
            "{} is not a duration ({error}): write 90s, 15m or 2h",
            quoted(text)
        )),
        Ok(duration) if duration > Duration::from_secs(LONGEST) => {
            Err(format!("{} is longer than ten years", quoted(text)))
        }
        Ok(duration) => Ok(duration),
    }
}

/// A duration in its two largest units: `2d 4h`.
pub fn shown(seconds: i64) -> String {
    const UNITS: [(i64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let largest = UNITS.iter().position(|(size, _)| seconds >= *size);
    let Some(largest) = largest else {
        return "0s".to_owned();
    };
    let mut left = seconds;
    let mut parts = Vec::new();
    for (size, unit) in UNITS.iter().skip(largest).take(2) {
        if left / size > 0 {
            parts.push(format!("{}{unit}", left / size));
        }
        left %= size;
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{seconds, shown};

    #[test]
    fn lengths_are_shown_in_two_units() {
        let all = [0, 1, 90, 3_600, 3_661, 90_000, 86_400 * 400].map(shown);
        assert_eq!(all, ["0s", "1s", "1m 30s", "1h", "1h 1m", "1d 1h", "400d"]);
    }

    #[test]
    fn durations_are_whole_seconds_within_bounds() {
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("1h 30m"), Ok(5400));
        assert_eq!(seconds("1ms"), Ok(1));
        for text in [
            "",
            "0s",
            "0",
            "5",
            "-5s",
            "soon",
            "11years",
            "99999999999999999999s",
        ] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
