//! Durations, as people write them.

use std::time::Duration;

use crate::ids::quoted;

/// The longest that is taken: what is longer is a slip.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Reads a duration that is not zero: `90s`, `5m`, `1h30m`.
///
/// # Errors
/// What is wrong with it, for whoever wrote it.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let write = "write 90s, 5m or 1h30m";
    match humantime::parse_duration(text) {
        Err(error) => Err(format!(
            "{} is not a duration: {error}; {write}",
            quoted(text)
        )),
        Ok(Duration::ZERO) => Err(format!("it must be longer than zero; {write}")),
        Ok(duration) if duration > LONGEST => Err(format!("it is longer than ten years; {write}")),
        Ok(duration) => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::parse;

    #[test]
    fn durations_are_read_and_nonsense_is_refused() {
        assert_eq!(parse("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("50ms"), Ok(Duration::from_millis(50)));
        for bad in [
            "",
            "5",
            "0s",
            "0",
            "-1s",
            "soon",
            "1 fortnight",
            "11years",
            "99999999999999999999s",
            "18446744073709551615y",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
