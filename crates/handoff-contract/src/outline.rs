//! The root and a few values of a document, guessed before parsing, and even if parsing fails.

use std::borrow::Cow;
use std::collections::HashMap;

use handoff_base::pointer;

use super::{Format, MAX_BYTES, markdown, scan, text};

/// A document that may be a contract.
#[derive(Debug)]
pub struct Outline<'a> {
    text: Cow<'a, str>,
    format: Format,
    /// XML's root element, or the only key of a JSON document.
    root: Option<String>,
    /// The offsets of a JSON document's values, by key.
    members: HashMap<String, usize>,
}

impl<'a> Outline<'a> {
    /// Outlines a document; `None` if it is larger than a contract may be, or in no contract
    /// format.
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() > MAX_BYTES {
            return None;
        }
        let text = String::from_utf8_lossy(bytes);
        let marked = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let start = text.len() - text::trim_start(marked).len();
        let (format, root, members) = match text.as_bytes().get(start)? {
            b'<' => (Format::Xml, xml_root(&text[start..]), HashMap::new()),
            b'{' => {
                let items = scan::items(&text, start);
                let members = items.filter_map(|item| Some((item.key(&text)?, item.value)));
                let members: HashMap<String, usize> = members.collect();
                let only = members.iter().next().filter(|_| members.len() == 1);
                let is_object = |at: usize| text.as_bytes().get(at) == Some(&b'{');
                let root = only.filter(|(_, at)| is_object(**at));
                (Format::Json, root.map(|(key, _)| key.clone()), members)
            }
            _ if markdown::begins(marked) => (Format::Markdown, None, HashMap::new()),
            _ => return None,
        };
        Some(Self {
            text,
            format,
            root,
            members,
        })
    }

    /// The document's format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The name of XML's root element, or the only key of a JSON document whose value is an object.
    pub fn root(&self) -> Option<&str> {
        self.root.as_deref()
    }

    /// The scalar at a JSON Pointer of a JSON document, as text.
    pub fn probe(&self, pointer: &str) -> Option<String> {
        let mut parts = pointer::parts(pointer);
        let mut at = *self.members.get(&parts.next()?)?;
        for part in parts {
            let position: Option<usize> = part.parse().ok();
            let mut items = scan::items(&self.text, at).enumerate();
            let (_, item) = items.find(|(index, item)| match item.key(&self.text) {
                Some(key) => key == part,
                None => position == Some(*index),
            })?;
            at = item.value;
        }
        let raw = self.text.get(at..scan::value_end(&self.text, at))?;
        match raw.as_bytes().first()? {
            b'"' => serde_json::from_str(raw).ok(),
            b'{' | b'[' => None,
            _ => Some(raw.to_owned()).filter(|raw| raw != "null"),
        }
    }
}

/// The name of the first element.
fn xml_root(mut text: &str) -> Option<String> {
    loop {
        text = text::trim_start(text);
        let end = match text.strip_prefix('<')? {
            rest if rest.starts_with("!--") => "-->",
            rest if rest.starts_with('?') => "?>",
            // A document type may contain declarations.
            rest if rest.starts_with('!') => {
                let inside = rest.find('[').is_some_and(|at| !rest[..at].contains('>'));
                if inside { "]>" } else { ">" }
            }
            rest => {
                let end = |c: char| c.is_whitespace() || matches!(c, '/' | '>' | '<');
                return Some(rest.split(end).next().unwrap_or_default().to_owned());
            }
        };
        text = &text[text.find(end)? + end.len()..];
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_root_is_found_in_what_cannot_be_parsed() {
        for (text, root) in [
            ("<handoff>", Some("handoff")),
            ("\u{feff}\n <handoff a='1'/>", Some("handoff")),
            (
                "<?xml version=\"1.0\"?><!-- <a> --><handoff\n>",
                Some("handoff"),
            ),
            (
                "<!DOCTYPE x [<!ENTITY a \"b\">]><handoff><",
                Some("handoff"),
            ),
            ("<!DOCTYPE html><html>", Some("html")),
            ("<handoff", Some("handoff")),
            ("<!-- never closed", None),
            ("{\"handoff\": {\"a\": ", Some("handoff")),
            ("{\"handoff\": {}, \"b\": 1}", None),
            ("{\"handoff\": []}", None),
        ] {
            let outline = Outline::of(text.as_bytes());
            assert_eq!(outline.unwrap().root(), root, "{text}");
        }
        let cut = b"<handoff>\xff";
        assert_eq!(Outline::of(cut).unwrap().root(), Some("handoff"));
    }

    #[test]
    fn values_are_found_by_their_pointers() {
        let text = br#"{"from": "a\u0062", "n": 12, "none": null,
            "source": {"agent_id": "x", "list": [1, "two"]}, "to": "y" oops"#;
        let outline = Outline::of(text).unwrap();
        let probe = |at: &str| outline.probe(at);
        assert_eq!(probe("/from").as_deref(), Some("ab"));
        assert_eq!(probe("/n").as_deref(), Some("12"));
        assert_eq!(probe("/none"), None);
        assert_eq!(probe("/source"), None);
        assert_eq!(probe("/source/agent_id").as_deref(), Some("x"));
        assert_eq!(probe("/source/list/1").as_deref(), Some("two"));
        assert_eq!(probe("/to").as_deref(), Some("y"));
        assert_eq!(probe("/other"), None);
    }

    #[test]
    fn other_files_have_none() {
        let large = [b"<handoff>".as_slice(), &vec![b' '; MAX_BYTES]].concat();
        for bytes in [&b""[..], b"[1]", b"# Notes", b"\"text\"", &large] {
            assert!(Outline::of(bytes).is_none());
        }
        let message = Outline::of(b"HANDOFF: A \xe2\x86\x92 B\n").unwrap();
        assert_eq!(message.format(), Format::Markdown);
    }
}
