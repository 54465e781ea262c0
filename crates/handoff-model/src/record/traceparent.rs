//! The trace context of a step, from its environment.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The position of a step in an existing trace: a W3C `traceparent`.
///
/// Normalized to version 00, as the specification requires for passing on an unknown version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Stored", into = "String")]
#[schemars(with = "String")]
pub struct TraceParent {
    trace: [u8; 16],
    span: [u8; 8],
    flags: u8,
}

/// Why a text is not a `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a W3C traceparent: 00-TRACE-SPAN-FLAGS in lower-case hexadecimal, no id all zero")]
pub struct NoTraceParent;

/// The stored text, which must be in canonical form.
#[derive(Deserialize)]
struct Stored(String);

/// `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
const LENGTH: usize = 55;
/// The flag defined by version 00: the trace is recorded.
const SAMPLED: u8 = 1;

impl TraceParent {
    /// The trace, in hexadecimal.
    pub fn trace_id(&self) -> String {
        digits(&self.trace)
    }

    /// The span in it, in hexadecimal.
    pub fn span_id(&self) -> String {
        digits(&self.span)
    }

    /// The flags: the lowest bit means that the trace is recorded.
    pub fn flags(&self) -> u8 {
        self.flags
    }
}

impl FromStr for TraceParent {
    type Err = NoTraceParent;

    /// Parses the value of a `traceparent` header or of `TRACEPARENT`.
    fn from_str(text: &str) -> Result<Self, NoTraceParent> {
        let known = text.get(..LENGTH).ok_or(NoTraceParent)?;
        let more = &text[LENGTH..];
        let mut parts = known.split('-');
        let mut part = || parts.next().ok_or(NoTraceParent);
        let [version] = bytes(part()?)?;
        let (trace, span) = (bytes(part()?)?, bytes(part()?)?);
        let [mut flags] = bytes(part()?)?;
        let is_whole = match version {
            0 => more.is_empty(),
            // Version 255 is invalid; other later versions may append fields.
            0xff => false,
            _ => more.is_empty() || more.starts_with('-'),
        };
        if !is_whole || trace == [0; 16] || span == [0; 8] {
            return Err(NoTraceParent);
        }
        if version > 0 {
            // The other flags of later versions are unknown.
            flags &= SAMPLED;
        }
        Ok(Self { trace, span, flags })
    }
}

/// Parses lower-case hexadecimal digits into exactly N bytes.
fn bytes<const N: usize>(text: &str) -> Result<[u8; N], NoTraceParent> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(NoTraceParent),
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return Err(NoTraceParent);
    };
    let mut bytes = [0; N];
    if pairs.len() != N {
        return Err(NoTraceParent);
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Ok(bytes)
}

fn digits(bytes: &[u8]) -> String {
    handoff_base::hexadecimal(bytes)
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (self.trace_id(), self.span_id());
        write!(f, "00-{trace}-{span}-{:02x}", self.flags)
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> Self {
        parent.to_string()
    }
}

impl TryFrom<Stored> for TraceParent {
    type Error = NoTraceParent;

    fn try_from(stored: Stored) -> Result<Self, NoTraceParent> {
        let parsed: Self = stored.0.parse()?;
        if parsed.to_string() == stored.0 {
            Ok(parsed)
        } else {
            Err(NoTraceParent)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::record::TraceParent;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_the_specification_allows_is_read() {
        for (text, kept) in [
            (VALID.to_owned(), VALID.to_owned()),
            (VALID.replace("-01", "-03"), VALID.replace("-01", "-03")),
            // Later versions are passed on as version 00, without their own flags.
            (VALID.replacen("00-", "cc-", 1), VALID.to_owned()),
            (
                VALID.replacen("00-", "01-", 1).replace("-01", "-ff"),
                VALID.to_owned(),
            ),
            (VALID.replacen("00-", "fe-", 1) + "-more", VALID.to_owned()),
        ] {
            let read: TraceParent = text.parse().expect(&text);
            assert_eq!(read.to_string(), kept, "{text}");
        }
    }

    #[test]
    fn what_the_specification_forbids_is_refused() {
        let no_trace = VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32));
        for text in [
            "",
            "00",
            &VALID.to_uppercase(),
            &VALID.replacen("00-", "ff-", 1),
            &VALID.replacen("00-", "0g-", 1),
            &no_trace,
            &VALID.replace("00f067aa0ba902b7", "0000000000000000"),
            &VALID[..54],
            &format!("{VALID}-00"),
            &format!("{VALID}0"),
            &format!(" {VALID}"),
            &format!("{VALID} "),
            &format!("{}0", VALID.replacen("00-", "01-", 1)),
            &VALID.replace('-', "_"),
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "é0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            &"é".repeat(40),
        ] {
            assert!(text.parse::<TraceParent>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_record_holds_it_in_one_form_only() {
        let stored = |text: &str| serde_json::from_value::<TraceParent>(text.into());
        assert!(stored(VALID).is_ok());
        assert!(stored(&VALID.replacen("00-", "01-", 1)).is_err());
        assert!(stored("later").is_err());
    }
}
