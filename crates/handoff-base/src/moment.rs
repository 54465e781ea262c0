//! Moments, as stored in files and documents.

use std::fmt;
use std::ops::{Add, AddAssign, Deref, Sub};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, ParseError, SecondsFormat, TimeDelta, TimeZone, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use thiserror::Error;

/// A moment in UTC with millisecond precision, in the years 0 to 9999.
///
/// Serialized as RFC 3339, with milliseconds if there are any; parsed with any offset and rounded
/// to milliseconds, so that it round-trips. Displayed to the second. Binary formats get the Unix
/// time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(DateTime<Utc>);

/// Why a text is not a [`Moment`].
#[derive(Debug, Error)]
pub enum NoMoment {
    /// It is not RFC 3339.
    #[error(transparent)]
    Form(#[from] ParseError),
    /// Its year in UTC is outside the range.
    #[error("in UTC, it is not in one of the years 0 to 9999")]
    Year,
}

impl Moment {
    /// The minimum.
    pub const FIRST: Self = Self::at(-62_167_219_200_000);
    /// The maximum.
    pub const LAST: Self = Self::at(253_402_300_799_999);

    const fn at(milliseconds: i64) -> Self {
        match DateTime::from_timestamp_millis(milliseconds) {
            Some(at) => Self(at),
            None => Self(DateTime::UNIX_EPOCH),
        }
    }

    /// The moment of a Unix time in milliseconds; `None` if it is out of range.
    pub fn from_timestamp_millis(milliseconds: i64) -> Option<Self> {
        let range = Self::FIRST.timestamp_millis()..=Self::LAST.timestamp_millis();
        range
            .contains(&milliseconds)
            .then(|| Self::at(milliseconds))
    }

    /// The moment of a Unix time in milliseconds, clamped.
    fn nearest(milliseconds: i64) -> Self {
        let [first, last] = [Self::FIRST, Self::LAST].map(|at| at.timestamp_millis());
        Self::at(milliseconds.clamp(first, last))
    }

    /// The moment plus a duration; `None` past the last moment.
    pub fn checked_add_signed(self, length: TimeDelta) -> Option<Self> {
        let end = self.0.checked_add_signed(length)?;
        Self::from_timestamp_millis(end.timestamp_millis())
    }

    /// The moment minus a duration; `None` before the first moment.
    pub fn checked_sub_signed(self, length: TimeDelta) -> Option<Self> {
        self.checked_add_signed(-length)
    }

    /// The moment plus seconds, clamped.
    pub fn later(self, seconds: u64) -> Self {
        let length = i64::try_from(seconds).ok().and_then(TimeDelta::try_seconds);
        let end = length.and_then(|length| self.checked_add_signed(length));
        end.unwrap_or(Self::LAST)
    }

    /// The moment in RFC 3339, in UTC, with milliseconds if there are any.
    pub fn rfc3339(self) -> String {
        let form = match self.0.timestamp_subsec_millis() {
            0 => SecondsFormat::Secs,
            _ => SecondsFormat::Millis,
        };
        self.0.to_rfc3339_opts(form, true)
    }
}

/// The moment truncated to the second, as in a commit.
pub fn to_second(at: impl Into<Moment>) -> Moment {
    Moment::nearest(at.into().timestamp() * 1000)
}

impl<Z: TimeZone> From<DateTime<Z>> for Moment {
    /// The moment truncated to the millisecond, as in a record, and clamped.
    fn from(at: DateTime<Z>) -> Self {
        Self::nearest(at.timestamp_millis())
    }
}

impl From<SystemTime> for Moment {
    fn from(at: SystemTime) -> Self {
        DateTime::<Utc>::from(at).into()
    }
}

impl Deref for Moment {
    type Target = DateTime<Utc>;

    fn deref(&self) -> &DateTime<Utc> {
        &self.0
    }
}

impl Add<TimeDelta> for Moment {
    type Output = Self;

    fn add(self, length: TimeDelta) -> Self {
        let milliseconds = length.num_milliseconds();
        Self::nearest(self.timestamp_millis().saturating_add(milliseconds))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, length: Duration) -> Self {
        self + TimeDelta::from_std(length).unwrap_or(TimeDelta::MAX)
    }
}

impl AddAssign<TimeDelta> for Moment {
    fn add_assign(&mut self, length: TimeDelta) {
        *self = *self + length;
    }
}

impl Sub<TimeDelta> for Moment {
    type Output = Self;

    fn sub(self, length: TimeDelta) -> Self {
        self + -length
    }
}

impl Sub for Moment {
    type Output = TimeDelta;

    fn sub(self, since: Self) -> TimeDelta {
        self.0 - since.0
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.format("%Y-%m-%d %H:%M:%SZ").fmt(f)
    }
}

impl FromStr for Moment {
    type Err = NoMoment;

    fn from_str(text: &str) -> Result<Self, NoMoment> {
        let at = DateTime::parse_from_rfc3339(text)?;
        Self::from_timestamp_millis(at.timestamp_millis()).ok_or(NoMoment::Year)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if s.is_human_readable() {
            s.serialize_str(&self.rfc3339())
        } else {
            s.serialize_i64(self.timestamp_millis())
        }
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        if d.is_human_readable() {
            return String::deserialize(d)?.parse().map_err(D::Error::custom);
        }
        let found = Self::from_timestamp_millis(i64::deserialize(d)?);
        found.ok_or_else(|| D::Error::custom(NoMoment::Year))
    }
}

schemars::generated! {
    impl schemars::JsonSchema for Moment {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Moment".into()
        }

        fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
            schemars::json_schema!({ "type": "string", "format": "date-time" })
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use chrono::{DateTime, TimeDelta, Utc};
    use serde_json::json;

    use super::{Moment, to_second};

    fn read(text: &str) -> Option<Moment> {
        serde_json::from_value(json!(text)).ok()
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
            assert_eq!(read(&at.rfc3339()), Some(at), "{text}");
            assert_eq!(json!(at), json!(at.rfc3339()));
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
        assert_eq!(start.later(60), at("9999-12-31T23:01:00Z"));
        let last = at("9999-12-31T23:59:59.999Z");
        for seconds in [3600, u64::from(u32::MAX), i64::MAX as u64, u64::MAX] {
            assert_eq!(start.later(seconds), last);
        }
        assert_eq!(Moment::LAST, last);
        assert_eq!(last + TimeDelta::milliseconds(1), last);
        assert_eq!(last.checked_add_signed(TimeDelta::milliseconds(1)), None);
        let first = at("0000-01-01T00:00:00Z");
        assert_eq!(Moment::FIRST, first);
        assert_eq!(first - TimeDelta::MAX, first);
        assert_eq!(first.checked_sub_signed(TimeDelta::milliseconds(1)), None);
        assert_eq!(Moment::from(DateTime::<Utc>::MIN_UTC), first);
        assert_eq!(to_second(last).rfc3339(), "9999-12-31T23:59:59Z");
        assert_eq!(last.to_string(), "9999-12-31 23:59:59Z");
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
            assert_eq!(Moment::from(at).rfc3339(), milliseconds);
            assert_eq!(to_second(at).rfc3339(), second);
        }
    }
}
