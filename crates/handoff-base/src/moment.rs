//! Moments, as used in every stored file and document.

use chrono::{DateTime, FixedOffset, SecondsFormat, Utc};
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

/// Reads RFC 3339 with any offset.
///
/// # Errors
/// Any error of the deserializer, including a text that is not a moment.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Moment, D::Error> {
    let text = String::deserialize(d)?;
    let at = DateTime::parse_from_rfc3339(&text).map_err(D::Error::custom)?;
    Ok(at.with_timezone(&Utc))
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

    use super::{rfc3339, to_millisecond, to_second};

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
