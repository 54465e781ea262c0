//! Encodes arbitrary file names: as text that can be decoded exactly, and as names that a tree may
//! contain.

use handoff_base::ids::is_reserved;
use handoff_git::{Mode, is_ignored_by_hfs};

/// Escapes bytes as text: `%` and everything that is not readable UTF-8 becomes `%` and two
/// hexadecimal digits.
pub(super) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '%' || c.is_control() {
                let mut buffer = [0; 4];
                percent(c.encode_utf8(&mut buffer).as_bytes(), &mut text);
            } else {
                text.push(c);
            }
        }
        percent(chunk.invalid(), &mut text);
    }
    text
}

fn percent(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        *text += &format!("%{byte:02x}");
    }
}

/// Reverses [`escape`].
pub(super) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let hexadecimal = digits.bytes().all(|b| b.is_ascii_hexdigit());
        bytes.push(
            u8::from_str_radix(digits, 16)
                .ok()
                .filter(|_| hexadecimal)?,
        );
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

/// The path that a file is stored under: its own, unless git or a file system treats one of its
/// names specially.
pub(super) fn stored(path: &[u8]) -> Vec<u8> {
    let names = path.split(|&b| b == b'/').map(|name| {
        if is_plain(name) {
            return name.to_vec();
        }
        let mut safe = Vec::with_capacity(name.len() + 8);
        for (at, &byte) in name.iter().enumerate() {
            let is_dropped = at + 1 == name.len() && b". ".contains(&byte);
            let is_special = SPECIAL.contains(char::from(byte)) || byte.is_ascii_control();
            if at == 0 || is_dropped || is_special || !byte.is_ascii() {
                safe.extend_from_slice(format!("%{byte:02x}").as_bytes());
            } else {
                safe.push(byte);
            }
        }
        safe
    });
    names.collect::<Vec<_>>().join(&b'/')
}

/// Characters that Windows forbids or that escape one.
const SPECIAL: &str = "%~\\:*?\"<>|";

/// Whether a name is an ordinary one on every system.
fn is_plain(name: &[u8]) -> bool {
    let text = String::from_utf8_lossy(name);
    let special = text
        .chars()
        .any(|c| SPECIAL.contains(c) || c.is_control() || is_ignored_by_hfs(c));
    // Windows drops trailing dots and spaces.
    let special = special || text.ends_with(['.', ' ']);
    let start = text.to_ascii_lowercase();
    !special && !start.starts_with(".git") && !start.starts_with(".mailmap") && !is_reserved(&start)
}

/// A name normalized for file systems that ignore case and how accents are composed: equal for all
/// names that such a system regards as equal, and for some more.
///
/// Without Unicode's tables, letters beyond ASCII are all equal: a second such name gets a number.
pub(super) fn folded(stored: &[u8]) -> String {
    let text = escape(stored);
    // Characters that decompose to ASCII ones.
    let text = text.replace('\u{37e}', ";").replace('\u{1fef}', "`");
    let lower = text.to_uppercase().to_lowercase();
    if lower.is_ascii() {
        return lower;
    }
    let kept = lower.chars();
    let kept = kept.filter(|c| c.is_ascii() && !c.is_ascii_alphabetic());
    // No name contains a slash, so the result differs from any pure ASCII name.
    kept.chain(['/']).collect()
}

/// A mode in git's notation.
pub(super) fn mode_text(mode: Mode) -> String {
    format!("{:06o}", mode.number())
}

/// Parses a file's mode.
pub(super) fn mode_of(text: &str) -> Option<Mode> {
    [Mode::Plain, Mode::Executable, Mode::Link]
        .into_iter()
        .find(|mode| mode_text(*mode) == text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for name in [
            &b"a b"[..],
            b"100%",
            b"\xff\n\x00",
            "ä\u{7}é".as_bytes(),
            b"%25",
        ] {
            assert_eq!(unescape(&escape(name)).unwrap(), name);
        }
        assert_eq!(escape("grün 100%\n\u{e9}".as_bytes()), "grün 100%25%0aé");
        for text in ["%", "%4", "%zz", "%+1", "%é"] {
            assert_eq!(unescape(text), None, "{text}");
        }
    }

    #[test]
    fn names_that_mean_something_to_git_are_stored_under_others() {
        let stored_as = |path: &str| String::from_utf8(stored(path.as_bytes())).unwrap();
        for path in ["src/main.rs", ".env", "git", "a.git", "..a", "Größe"] {
            assert_eq!(stored_as(path), path);
        }
        assert_eq!(stored_as("a/.gitmodules"), "a/%2egitmodules");
        assert_eq!(stored_as("GIT~1/x"), "%47IT%7e1/x");
        assert_eq!(stored_as("%2egitmodules"), "%252egitmodules");
        assert_eq!(
            stored_as(".g\u{200c}itattributes"),
            "%2eg%e2%80%8citattributes"
        );
        assert_eq!(stored_as("a\\b"), "%61%5cb");
        for odd in ["a.", "a ", "a*b", "a|b", "a\nb", "COM¹", "conin$", "..."] {
            assert_ne!(stored_as(odd), odd);
        }
        for device in ["con", "NUL.txt", "com1", "a/Lpt9.log"] {
            assert_ne!(stored_as(device), device);
        }
        assert_eq!(stored_as("console/com10"), "console/com10");
    }

    #[test]
    fn names_that_a_file_system_takes_for_one_are_one() {
        let one = |name: &str| folded(name.as_bytes());
        for (name, other) in [
            ("a.log", "A.LOG"),
            ("é", "e\u{301}"),
            ("aé1", "ae\u{301}1"),
            ("ﬁ", "fi"),
            ("ß", "SS"),
            ("K", "\u{212a}"),
            ("a;", "a\u{37e}"),
        ] {
            assert_eq!(one(name), one(other), "{name} {other}");
        }
        for (name, other) in [("a", "b"), ("a", "é"), ("2-é", "é"), ("", "é")] {
            assert_ne!(one(name), one(other), "{name} {other}");
        }
    }
}
