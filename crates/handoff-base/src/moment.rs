//! Moments, as used in every stored file and document.

use chrono::{DateTime, FixedOffset, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// A moment, to the second, in UTC.
pub type Moment = DateTime<Utc>;

/// The moment without its fraction of a second.
pub fn to_second(at: DateTime<FixedOffset>) -> Moment {
    DateTime::from_timestamp(at.timestamp(), 0).unwrap_or_default()
}

/// The moment in a form for people.
pub fn shown(at: Moment) -> String {
    at.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// The moment as data: RFC 3339, in UTC.
pub fn rfc3339(at: Moment) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
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
