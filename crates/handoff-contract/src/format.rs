//! The formats that a text may have to have.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::pattern;

/// The formats that schemas may name.
const KNOWN: [&str; 17] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

const DURATION: &str = "^P(([0-9]+W)|([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)?(T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S))?)$";
const LOCAL_PART: &str = r#"^([A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+|"([^"\\]|\\.)*")$"#;
const POINTER: &str = "^(/([^~/]|~[01])*)*$";
const RELATIVE_POINTER: &str = "^(0|[1-9][0-9]*)(#|(/([^~/]|~[01])*)*)$";
const TEMPLATE: &str =
    r#"^([^\x00-\x20\x7f"%<>\\^`{|}]|%[0-9A-Fa-f]{2}|\{[+#./;?&=,!@|]?VARIABLE(,VARIABLE)*\})*$"#;
const VARIABLE: &str = r"(\w|%[0-9A-Fa-f]{2})+(\.(\w|%[0-9A-Fa-f]{2})+)*(:[1-9][0-9]{0,3}|\*)?";
const UUID: &str = "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$";
/// The characters of an IRI that a URI has not.
const BEYOND_ASCII: &str = r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\u{10000}-\u{efffd}";

/// Whether schemas may name a format.
pub(super) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
}

/// Whether a text has a format; it has every unknown one. `matches` tells whether a text matches a
/// pattern.
pub(super) fn holds(name: &str, text: &str, matches: &mut dyn FnMut(&str, &str) -> bool) -> bool {
    match name {
        "date" => is_date(text.as_bytes()).is_some(),
        "date-time" => {
            let parts = text.split_once(['T', 't']);
            parts.is_some_and(|(date, time)| {
                is_date(date.as_bytes()).is_some() && is_time(time).is_some()
            })
        }
        "duration" => text.len() > 1 && matches(DURATION, text),
        "email" => text.rsplit_once('@').is_some_and(|(local, domain)| {
            is_mail_domain(domain)
                && !(local.starts_with('.') || local.ends_with('.'))
                && (local.starts_with('"') || !local.contains(".."))
                && local.len() <= 64
                && local.is_ascii()
                && matches(LOCAL_PART, local)
        }),
        "hostname" => is_hostname(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "iri" | "iri-reference" | "uri" | "uri-reference" => {
            has_address(text) && matches(&reference(name), text)
        }
        "json-pointer" => matches(POINTER, text),
        "regex" => pattern::is_expression(text),
        "relative-json-pointer" => matches(RELATIVE_POINTER, text),
        "time" => is_time(text).is_some(),
        "uri-template" => matches(&TEMPLATE.replace("VARIABLE", VARIABLE), text),
        "uuid" => matches(UUID, text),
        _ => true,
    }
}

/// The number that two or four digits at an offset form.
fn number(text: &[u8], from: usize, to: usize) -> Option<u32> {
    let digits = text.get(from..to)?;
    digits.iter().try_fold(0, |number, digit| {
        let digit = (*digit as char).to_digit(10)?;
        Some(number * 10 + digit)
    })
}

fn is_date(text: &[u8]) -> Option<()> {
    let (year, month) = (number(text, 0, 4)?, number(text, 5, 7)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let is_split = text.len() == 10 && text[4] == b'-' && text[7] == b'-';
    (is_split && (1..=days).contains(&number(text, 8, 10)?)).then_some(())
}

/// A time with its zone; a leap second ends a day of UTC.
fn is_time(text: &str) -> Option<()> {
    let bytes = text.as_bytes();
    let (hour, minute) = (number(bytes, 0, 2)?, number(bytes, 3, 5)?);
    let second = number(bytes, 6, 8)?;
    if bytes[2] != b':' || bytes[5] != b':' || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut zone = &bytes[8..];
    if let [b'.', fraction @ ..] = zone {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit());
        let digits = digits.count();
        zone = &fraction[digits..];
        (digits > 0).then_some(())?;
    }
    let offset = match zone {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (number(zone, 1, 3)?, number(zone, 4, 6)?);
            (hours < 24 && minutes < 60).then_some(())?;
            let offset = hours * 60 + minutes;
            // What is added leads to UTC; a whole day keeps it positive.
            if *sign == b'+' {
                24 * 60 - offset
            } else {
                offset
            }
        }
        _ => return None,
    };
    let utc = (hour * 60 + minute + offset) % (24 * 60);
    (second < 60 || utc == 24 * 60 - 1).then_some(())
}

/// Names by RFC 1123. What the letters of another script are encoded as is not decoded.
fn is_hostname(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|label| {
            let is_encoded = label.get(2..4) == Some("--");
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|b| b == b'-' || b.is_ascii_alphanumeric())
                && !(label.starts_with('-') || label.ends_with('-'))
                && (!is_encoded || label.len() > 4 && label.starts_with("xn--"))
        })
}

fn is_mail_domain(domain: &str) -> bool {
    let literal = domain.strip_prefix('[').and_then(|d| d.strip_suffix(']'));
    literal.map_or_else(
        || is_hostname(domain),
        |address| {
            let is_tagged = address
                .get(..5)
                .is_some_and(|tag| tag.eq_ignore_ascii_case("IPv6:"));
            if is_tagged {
                address[5..].parse::<Ipv6Addr>().is_ok()
            } else {
                address.parse::<Ipv4Addr>().is_ok()
            }
        },
    )
}

/// Whether what stands in a reference's brackets, if it has any, is an address.
fn has_address(text: &str) -> bool {
    let inner = text.split_once('[').map(|(_, rest)| rest.split(']').next());
    inner.flatten().is_none_or(|address| {
        address.starts_with(['v', 'V']) || address.parse::<Ipv6Addr>().is_ok()
    })
}

/// The pattern of RFC 3986 for a format.
fn reference(name: &str) -> String {
    let others = if name.starts_with("iri") {
        BEYOND_ASCII
    } else {
        ""
    };
    let characters = |more: &str, times: char| {
        format!("([A-Za-z0-9._~!$&'()*+,;={others}{more}-]|%[0-9A-Fa-f]{{2}}){times}")
    };
    let (segment, first) = (characters(":@", '*'), characters(":@", '+'));
    let authority = format!(
        r"//({}@)?(\[[^\]]+\]|{})(:[0-9]*)?(/{segment})*",
        characters(":", '*'),
        characters("", '*')
    );
    let rest = characters(":@/?", '*');
    let rest = format!(r"(\?{rest})?(#{rest})?$");
    let absolute = format!("[A-Za-z][A-Za-z0-9+.-]*:({authority}|/?({first}(/{segment})*)?)");
    if name.ends_with("-reference") {
        let plain = characters("@", '+');
        let relative = format!("{authority}|/({first}(/{segment})*)?|({plain}(/{segment})*)?");
        format!("^({absolute}|{relative}){rest}")
    } else {
        format!("^{absolute}{rest}")
    }
}
