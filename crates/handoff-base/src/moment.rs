//! Moments, as used in every stored file and document.

use chrono::{DateTime, Datelike, FixedOffset, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// A moment, to the millisecond, in UTC.
pub type Moment = DateTime<Utc>;

/// The moment without its fraction of a second, as a commit has it.
pub fn to_second(at: DateTime<FixedOffset>) -> Moment {
    DateTime::from_timestamp(at.timestamp(), 0).unwrap_or_default()
}

/// The moment to the millisecond, as a record has it.
pub fn to_millisecond(at: DateTime<FixedOffset>) -> Moment {
    DateTime::from_timestamp_millis(at.timestamp_millis()).unwrap_or_default()
}

/// The moment so many seconds after another, at most the last that a record can have.
pub fn later(since: Moment, seconds: u64) -> Moment {
    const LAST: i64 = 253_402_300_799_999;
    let length = i64::try_from(seconds).ok().and_then(TimeDelta::try_seconds);
    let end = length.and_then(|length| since.checked_add_signed(length));
    let last = DateTime::from_timestamp_millis(LAST).unwrap_or(since);
    end.map_or(last, |end| end.min(last))
}

/// The moment in a form for people, to the second.
pub fn shown(at: Moment) -> String {
    at.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// The moment as data: RFC 3339, in UTC, with milliseconds if there are any.
pub fn rfc3339(at: Moment) -> String {
    let form = match at.timestamp_subsec_millis() {
        0 => SecondsFormat::Secs,
        _ => SecondsFormat::Millis,
    };
    at.to_rfc3339_opts(form, true)
}

/// Writes a moment as RFC 3339 in UTC; for serde's `with`, like [`deserialize`].
///
/// # Errors
/// Any error of the serializer.
pub fn serialize<S: Serializer>(at: &Moment, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&rfc3339(*at))
}

/// Reads RFC 3339 with any offset, to the millisecond, so that what is written again is the same.
///
/// # Errors
/// Any error of the deserializer, including a text that is not a moment, or one whose year in UTC
/// RFC 3339 cannot have.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Moment, D::Error> {
    let text = String::deserialize(d)?;
    let at = DateTime::parse_from_rfc3339(&text).map_err(D::Error::custom)?;
    Some(to_millisecond(at))
        .filter(|at| (0..=9999).contains(&at.year()))
        .ok_or_else(|| D::Error::custom("in UTC, it is not in one of the years 0 to 9999"))
}

/// The same for an optional moment.
pub mod optional {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Moment;

    #[derive(Deserialize)]
    struct Wrapped(#[serde(with = "super")] Moment);

    /// Writes a moment or null.
    ///
    /// # Errors
    /// Any error of the serializer.
    pub fn serialize<S: Serializer>(at: &Option<Moment>, s: S) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => super::serialize(at, s),
            None => s.serialize_none(),
        }
    }

    /// Reads a moment or null.
    ///
    /// # Errors
    /// Any error of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Moment>, D::Error> {
        Ok(Option::<Wrapped>::deserialize(d)?.map(|w| w.0))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use chrono::DateTime;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    use super::{Moment, deserialize, later, rfc3339, to_millisecond, to_second};

    fn read(text: &str) -> Option<Moment> {
        let text: StrDeserializer<'_, Error> = text.into_deserializer();
        deserialize(text).ok()
    }

    #[test]
    fn what_is_read_is_written_the_same() {
        for text in [
            "2026-03-02T09:00:00.999999Z",
            "2026-06-30T23:59:60Z",
            "2026-03-02T09:00:00.2147483648267+01:00",
            "0000-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999999Z",
        ] {
            let at = read(text).unwrap();
            assert_eq!(read(&rfc3339(at)), Some(at), "{text}");
        }
        for text in [
            "0000-01-01T00:00:00+23:59",
            "9999-12-31T23:59:59-00:01",
            "9999-12-31T23:59:60Z",
            "2026-02-30T00:00:00Z",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn no_moment_is_later_than_can_be_read() {
        let at = |text| read(text).unwrap();
        let start = at("9999-12-31T23:00:00Z");
        assert_eq!(later(start, 60), at("9999-12-31T23:01:00Z"));
        let last = at("9999-12-31T23:59:59.999Z");
        for seconds in [3600, u64::from(u32::MAX), i64::MAX as u64, u64::MAX] {
            assert_eq!(later(start, seconds), last);
        }
    }

    #[test]
    fn milliseconds_are_kept_and_written_if_there_are_any() {
        for (given, milliseconds, second) in [
            (
                "2026-03-02T09:00:00Z",
                "2026-03-02T09:00:00Z",
                "2026-03-02T09:00:00Z",
            ),
            (
                "2026-03-02T10:00:00.25+01:00",
                "2026-03-02T09:00:00.250Z",
                "2026-03-02T09:00:00Z",
            ),
            (
                "2026-03-02T09:00:00.999999Z",
                "2026-03-02T09:00:00.999Z",
                "2026-03-02T09:00:00Z",
            ),
            (
                "2026-03-02T09:00:00.0004Z",
                "2026-03-02T09:00:00Z",
                "2026-03-02T09:00:00Z",
            ),
        ] {
            let at = DateTime::parse_from_rfc3339(given).unwrap();
            assert_eq!(rfc3339(to_millisecond(at)), milliseconds);
            assert_eq!(rfc3339(to_second(at)), second);
        }
    }
}
