//! Parses one line of the list: names, options, a key.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use handoff_base::Moment;
use handoff_base::finding::{Finding, FindingCode};
use handoff_base::text::quoted;
use ssh_key::PublicKey;
use ssh_key::public::KeyData;

use super::super::SIGNERS;
use super::signer::{AGENTS, OPENPGP, Signer, SigningKey, matches};

/// The sizes of RSA keys whose signatures can be verified, in bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=4096;

impl Signer {
    /// Parses a line; `None` if it is empty or a comment.
    pub(super) fn parse(number: u32, line: &str) -> Result<Option<Self>, Fault> {
        let line = line.trim_matches(BLANK);
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        if line.contains(|c: char| c.is_control() && c != '\t') {
            return Err(Fault::syntax("the line has a control character"));
        }
        let (principals, rest) = principals(line)?;
        let mut signer = Self {
            principals: principals.to_owned(),
            key: SigningKey::OpenPgp(String::new()),
            valid_after: None,
            valid_before: None,
            line: number,
        };
        let (first, _) = word(rest);
        let rest = if is_kind(first) {
            rest
        } else {
            let (options, rest) = options(rest)?;
            signer.read_options(options)?;
            rest
        };
        let (kind, rest) = word(rest);
        let (key, _comment) = word(rest);
        signer.key = match kind {
            "" => return Err(Fault::syntax("the line names no key")),
            OPENPGP => openpgp(key)?,
            _ => ssh(kind, key)?,
        };
        Ok(Some(signer))
    }

    fn read_options(&mut self, text: &str) -> Result<(), Fault> {
        let mut seen: Vec<String> = Vec::new();
        let mut rest = text;
        loop {
            let end = rest.find(['=', ',']).unwrap_or(rest.len());
            let name = rest[..end].to_ascii_lowercase();
            let (value, after) = match rest[end..].strip_prefix('=') {
                Some(value) => {
                    let (value, after) = quoted_value(value).ok_or_else(|| {
                        let text = format!("the value of {} is not in quotes", quoted(&name));
                        Fault::option(text)
                    })?;
                    (Some(value), after)
                }
                None => (None, &rest[end..]),
            };
            self.read_option(&name, value)?;
            if seen.contains(&name) {
                let text = format!("the option {} is there twice", quoted(&name));
                return Err(Fault::option(text));
            }
            seen.push(name);
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None if after.is_empty() => break,
                None => {
                    let text = format!("{} follows an option", quoted(after));
                    return Err(Fault::option(text));
                }
            }
        }
        match (self.valid_after, self.valid_before) {
            (Some(from), Some(until)) if until < from => {
                let text = "valid-before is before valid-after, so that the key is never valid";
                Err(Fault::new(FindingCode::SignersDate, text))
            }
            _ => Ok(()),
        }
    }

    fn read_option(&mut self, name: &str, value: Option<&str>) -> Result<(), Fault> {
        match (name, value) {
            ("cert-authority", _) => {
                let text = "certificate authorities are not taken: a line names one key";
                let fix = "list the key of each agent itself";
                Err(Fault::new(FindingCode::SignersAuthority, text).fix(fix))
            }
            ("namespaces", Some(list)) => {
                // The namespace in which git signs.
                if list
                    .split(',')
                    .any(|pattern| matches(pattern.trim(), "git"))
                {
                    return Ok(());
                }
                let text = "the key is not for the namespace git, so that it can sign no step";
                let fix = "add git to namespaces, or leave the option out";
                Err(Fault::option(text).fix(fix))
            }
            ("valid-after", Some(time)) => {
                self.valid_after = Some(moment(name, time)?);
                Ok(())
            }
            ("valid-before", Some(time)) => {
                self.valid_before = Some(moment(name, time)?);
                Ok(())
            }
            ("namespaces" | "valid-after" | "valid-before", None) => {
                Err(Fault::option(format!("the option {name} has no value")))
            }
            _ => {
                let text = format!("there is no option {}", quoted(name));
                let fix = "options are namespaces=\"…\", valid-after=\"…\" and valid-before=\"…\", with commas between";
                Err(Fault::option(text).fix(fix))
            }
        }
    }
}

/// The characters that separate words.
const BLANK: [char; 2] = [' ', '\t'];

/// A fault in a line.
pub(super) struct Fault {
    code: FindingCode,
    text: String,
    fix: Option<String>,
}

impl Fault {
    fn new(code: FindingCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
            fix: None,
        }
    }

    pub(super) fn syntax(text: impl Into<String>) -> Self {
        let fix = "write it as NAMES [OPTIONS] TYPE KEY, with the public key's own type and key";
        Self::new(FindingCode::SignersSyntax, text).fix(fix)
    }

    fn option(text: impl Into<String>) -> Self {
        Self::new(FindingCode::SignersOption, text)
    }

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub(super) fn finding(self, line: u32) -> Finding {
        let finding = Finding::error(self.code, SIGNERS, self.text).at(line, 1);
        match self.fix {
            Some(fix) => finding.fix(fix),
            None => finding,
        }
    }
}

/// Splits off the first word.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(BLANK);
    let (word, rest) = text.split_once(BLANK).unwrap_or((text, ""));
    (word, rest.trim_start_matches(BLANK))
}

/// Whether a word is a key type.
fn is_kind(word: &str) -> bool {
    word == OPENPGP
        || ["ssh-", "ecdsa-", "sk-"]
            .iter()
            .any(|s| word.starts_with(s))
}

/// Splits off the names at the start of a line.
fn principals(line: &str) -> Result<(&str, &str), Fault> {
    let (names, rest) = match line.strip_prefix('"') {
        Some(text) => {
            let closed = text.split_once('"');
            closed.ok_or_else(|| Fault::syntax("the quotes around the names are not closed"))?
        }
        None => word(line),
    };
    let ends = rest.is_empty() || rest.starts_with(BLANK) || !line.starts_with('"');
    let is_pattern = |p: &str| !p.trim_start_matches('!').is_empty();
    if !ends || !names.split(',').all(is_pattern) {
        let text = format!(
            "{} is not a list of names with commas between",
            quoted(names)
        );
        return Err(Fault::syntax(text));
    }
    if let Some(both) = names.split(',').find(|pattern| covers_both(pattern)) {
        let text = format!("{} covers every agent as well as people", quoted(both));
        let fix = "name the domain, such as *@example.com; name agents without an @";
        return Err(Fault::new(FindingCode::SignersPattern, text).fix(fix));
    }
    Ok((names, rest.trim_start_matches(BLANK)))
}

/// Whether an address pattern also matches agents' addresses.
fn covers_both(pattern: &str) -> bool {
    let domain = pattern.rsplit_once('@').map(|(_, domain)| domain);
    let agents = AGENTS.trim_start_matches('@');
    !pattern.starts_with('!')
        && domain.is_some_and(|domain| {
            !domain.eq_ignore_ascii_case(agents) && matches(&domain.to_ascii_lowercase(), agents)
        })
}

/// Splits off the options at the start of a text.
fn options(text: &str) -> Result<(&str, &str), Fault> {
    let (mut in_quotes, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => in_quotes = !in_quotes,
            ' ' | '\t' if !in_quotes => {
                return Ok((&text[..at], text[at..].trim_start_matches(BLANK)));
            }
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    Err(if in_quotes {
        Fault::syntax("the quotes of an option are not closed")
    } else {
        Fault::syntax("the line names no key")
    })
}

/// Splits off a quoted value.
fn quoted_value(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"')
}

/// Parses a moment in ssh's format: a date, or a date and a time of day.
fn moment(option: &str, text: &str) -> Result<Moment, Fault> {
    let fault = |text: String, fix: String| Fault::new(FindingCode::SignersDate, text).fix(fix);
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let read = digits.bytes().all(|b| b.is_ascii_digit()).then(|| {
        let seconds = match digits.len() {
            8 => format!("{digits}000000"),
            12 => format!("{digits}00"),
            14 => digits.to_owned(),
            _ => return None,
        };
        let (date, time) = seconds.split_at(8);
        let date = NaiveDate::parse_from_str(date, "%Y%m%d").ok()?;
        let time = NaiveTime::parse_from_str(time, "%H%M%S").ok()?;
        Some(NaiveDateTime::new(date, time))
    });
    let zone = text[digits.len()..].to_ascii_uppercase();
    match (read.flatten(), zone.as_str()) {
        (Some(at), "Z" | "UTC") => Ok(at.and_utc().into()),
        // ssh interprets this in the reader's local time zone.
        (Some(_), "") => {
            let text = format!("{option} is {text}, which is another moment in each time zone");
            Err(fault(
                text,
                format!("end it in Z, for UTC: {option}=\"{digits}Z\""),
            ))
        }
        _ => {
            let text = format!("{option} is {}, which is not a moment", quoted(text));
            let fix = format!("write it as {option}=\"20260331Z\" or {option}=\"20260331123000Z\"");
            Err(fault(text, fix))
        }
    }
}

fn ssh(kind: &str, key: &str) -> Result<SigningKey, Fault> {
    let fault = |text: &str| Fault::new(FindingCode::SignersKey, text);
    if kind.contains("-cert-v0") {
        let text = "it is a certificate, not a key";
        return Err(fault(text).fix("list the public key that it was made for"));
    }
    let known = PublicKey::from_openssh(&format!("{kind} {key}")).map_err(|_| {
        fault(&format!(
            "{} is not followed by a key of its kind",
            quoted(kind)
        ))
    })?;
    let key = known.key_data().clone();
    match &key {
        KeyData::Ed25519(_)
        | KeyData::SkEd25519(_)
        | KeyData::Ecdsa(_)
        | KeyData::SkEcdsaSha2NistP256(_) => {}
        KeyData::Rsa(rsa) => {
            let bytes = rsa.n.as_positive_bytes().unwrap_or_default();
            let unused = bytes
                .first()
                .map_or(0, |first| first.leading_zeros() as usize);
            let bits = bytes.len() * 8 - unused.min(bytes.len() * 8);
            if !RSA_BITS.contains(&bits) {
                let (least, most) = (RSA_BITS.start(), RSA_BITS.end());
                let text =
                    format!("the key has {bits} bits, and RSA keys have from {least} to {most}");
                return Err(fault(&text).fix("use an ed25519 key"));
            }
        }
        _ => {
            let text = format!("keys of the kind {} can't be used", quoted(kind));
            return Err(fault(&text).fix("use an ed25519 key"));
        }
    }
    Ok(SigningKey::Ssh(Box::new(key)))
}

/// Parses the fingerprint of an OpenPGP key.
fn openpgp(text: &str) -> Result<SigningKey, Fault> {
    let right = [40, 64].contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    if !right {
        let text = format!("{} is not the whole fingerprint of a key", quoted(text));
        let fix = "`gpg --fingerprint` shows it; write it without spaces";
        return Err(Fault::new(FindingCode::SignersKey, text).fix(fix));
    }
    Ok(SigningKey::OpenPgp(text.to_ascii_uppercase()))
}
