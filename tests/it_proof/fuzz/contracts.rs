//! Contracts: XML, JSON and Markdown messages.

use std::ffi::OsStr;

use handoff::base::finding::{Finding, FindingCode};
use handoff::contract::scan::{Seen, walk};
use handoff::contract::{
    Format, Input, Schema, Source, edit, write_json, write_markdown, write_message, write_xml,
};
use handoff::model::{Schemas, review};
use handoff::protocol::Protocol;
use handoff::templates::{BUILT_IN, FolderSchemas, built_in};
use serde_json::{Value, json};

use super::{Target, files, second_reader};

pub(super) fn xml() -> Target {
    const WORDS: &[&str] = &[
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "--->",
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>",
        "<?a b?>",
        "<!DOCTYPE a [<!ENTITY b \"c\">]>",
        "&amp;",
        "&lt;",
        "&#10;",
        "&#xD;",
        "&#x1F600;",
        "&#+10;",
        "&#xD800;",
        "&b;",
        "xmlns=\"a\"",
        "xmlns:a=\"b\"",
        "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"",
        "xsi:noNamespaceSchemaLocation=\"a\"",
        "a:",
        "a=\"\"",
        "a='\"'",
        "<a/>",
        "</a>",
        "/>",
        "{{fill: a}}",
        "\u{85}",
        "\t",
    ];
    target("xml", WORDS, |contracts, source| contracts.xml(source))
}

pub(super) fn json() -> Target {
    const WORDS: &[&str] = &[
        "{\"a\":1,\"a\":2}",
        "{}",
        "[]",
        "\"\"",
        ",",
        ":",
        "\\u0000",
        "\\ud800",
        "\\ud83d\\ude00",
        "\\n",
        "\\/",
        "1.5",
        "1E5",
        "-",
        "NaN",
        "//",
        "{{fill: a}}",
        "handoff_to",
        "\"@a\":",
        "\"#text\":",
        "\u{7f}",
        "\u{2028}",
    ];
    target("json", WORDS, |contracts, source| contracts.json(source))
}

pub(super) fn markdown() -> Target {
    const WORDS: &[&str] = &[
        "HANDOFF: a → b\n",
        "HANDOFF:",
        "→",
        "->",
        "\n================\n",
        "\n---\n",
        "\n```json\n",
        "\n```\n",
        "\n~~~~\n",
        "\nSTATUS: ",
        "\nNEXT STEPS:\n",
        "\nHANDOFF DATA:\n",
        "\n- a: b\n",
        "\n* a\n",
        "\n  - a\n",
        "\n1. a\n",
        "{\"a\": [1]}",
        "{{fill: a}}",
        "\n\n",
        "\r",
        "\t",
    ];
    target("md", WORDS, |contracts, source| contracts.markdown(source))
}

fn target(
    extension: &'static str,
    words: &'static [&'static str],
    each: fn(&Contracts, &Source),
) -> Target {
    let contracts = Contracts::new();
    Target {
        samples: files("tests/samples", |path| {
            let extension = Some(OsStr::new(extension));
            path.extension() == extension && path.file_name() != Some(OsStr::new("README.md"))
        }),
        words,
        check: Box::new(move |bytes| match Source::parse(bytes) {
            Ok(source) => {
                each(&contracts, &source);
                contracts.reviewed(bytes, &source);
            }
            Err(findings) => refused(bytes, &findings),
        }),
    }
}

/// What refuses a contract has a place in it, and a reason.
fn refused(bytes: &[u8], findings: &[Finding]) {
    assert!(!findings.is_empty());
    let lines = bytes.split(|b| *b == b'\n').count();
    for finding in findings {
        let line = finding.line.unwrap_or(1) as usize;
        assert!((1..=lines).contains(&line), "{finding:?}");
        assert!(finding.column != Some(0), "{finding:?}");
    }
    let is_syntax = |finding: &Finding| finding.code == FindingCode::JsonSyntax;
    if findings.iter().all(is_syntax) && bytes.starts_with(b"{") {
        let second = serde_json::from_slice::<Value>(bytes);
        assert!(second.is_err(), "serde_json reads it: {findings:?}");
    }
}

/// A protocol, and the schemas of its contracts.
type Rules = (Protocol, FolderSchemas);

struct Contracts {
    /// A schema that everything fits.
    open: Schema,
    rules: Vec<Rules>,
}

impl Contracts {
    fn new() -> Self {
        let rules = BUILT_IN.iter().map(|name| {
            let folder = built_in(name).unwrap();
            let protocol = Protocol::load(folder.file("protocol.json").unwrap()).unwrap();
            (protocol, FolderSchemas::new(folder))
        });
        Self {
            open: Schema::compile(&json!({})).unwrap(),
            rules: rules.collect(),
        }
    }

    /// The value of a written contract, without a schema.
    fn again(&self, text: &str) -> Value {
        let source = Source::parse(text.as_bytes());
        let source =
            source.unwrap_or_else(|found| panic!("{found:?} in what was written:\n{text}"));
        self.open.value(&source, None)
    }

    fn xml(&self, source: &Source) {
        if source.format() != Format::Xml {
            return;
        }
        let value = self.open.value(source, None);
        let root = source.root(&[]).unwrap();
        let read = (root.clone(), value.clone());
        let text = source.text();
        assert_eq!(read, second_reader::roxmltree(text), "roxmltree");
        assert_eq!(read, second_reader::quick_xml(text), "quick-xml");
        let written = write_xml(&value, self.open.shape(), &root);
        assert_eq!(self.again(&written), value, "{written}");
    }

    fn json(&self, source: &Source) {
        if source.format() != Format::Json {
            return;
        }
        let text = source.text();
        let value = self.open.value(source, None);
        let second: Value = serde_json::from_str(text).unwrap();
        assert_eq!(value, second, "serde_json");
        assert_eq!(self.again(&write_json(&value)), value);
        let mut walked = Vec::new();
        walk(text, &mut |pointer, _, seen| match seen {
            Seen::Key { again, .. } => assert!(!again, "{pointer}"),
            Seen::Text(text) => walked.push((pointer.to_owned(), json!(text))),
            Seen::Scalar(raw) => {
                walked.push((pointer.to_owned(), serde_json::from_str(raw).unwrap()));
            }
        });
        for (pointer, leaf) in walked {
            assert_eq!(second.pointer(&pointer), Some(&leaf), "{pointer}");
        }
        edited(text, &value);
    }

    fn markdown(&self, source: &Source) {
        if source.format() != Format::Markdown {
            return;
        }
        let value = self.open.value(source, None);
        let text = source.text();
        if !text.contains('\r') {
            let windows = text.replace('\n', "\r\n");
            assert_eq!(self.again(&windows), value, "with Windows' line ends");
        }
        let written = write_markdown(&value, "a", "b", "c");
        let again = self.again(&written);
        assert_eq!(again["handoff_data"], value, "{written}");
        // Other texts are written in another form than they were read from.
        let is_plain = |value: &Value| {
            let text = value.as_str().unwrap_or("a");
            !text.is_empty() && !text.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
        };
        let members = value.as_object().unwrap();
        let all = members.values().all(|value| match value {
            Value::Object(members) => members.values().all(is_plain),
            other => is_plain(other),
        });
        if all {
            // Not always equal: a text may look like a bullet. It is never a fault.
            write_message(&value, self.open.shape());
        }
    }

    /// Runs a contract through the pipeline of each protocol. Where it is accepted, its value is
    /// the same after it was written in its format, or in another one.
    fn reviewed(&self, bytes: &[u8], source: &Source) {
        for (protocol, schemas) in &self.rules {
            let roots = protocol.roots();
            let wrapper = source.root(&roots);
            if source.format() == Format::Xml
                && !wrapper.as_deref().is_some_and(|root| roots.contains(&root))
            {
                continue;
            }
            let found = review(protocol, schemas, &Input::read(bytes), None).unwrap();
            let Some(contract) = found.contract else {
                continue;
            };
            let kind = protocol.contract_type(&contract.kind).unwrap();
            let schema = schemas.schema(kind).unwrap();
            let value = schema.value(source, wrapper.as_deref());
            let mut forms = vec![write_json(&value)];
            if source.format() == Format::Xml {
                forms.push(write_xml(&value, schema.shape(), &kind.root));
            }
            for form in forms {
                let again = Source::parse(form.as_bytes()).unwrap();
                let root = again.root(&roots);
                assert_eq!(schema.value(&again, root.as_deref()), value, "{form}");
                let accepted = review(protocol, schemas, &Input::read(form.as_bytes()), None);
                let accepted = accepted.unwrap();
                assert!(accepted.contract.is_some(), "{:?}", accepted.findings);
            }
            return;
        }
    }
}

/// What is added to a text is in it, and without it, the text is what it was.
fn edited(text: &str, value: &Value) {
    const KEY: &str = "added by the test";
    let added = json!({"a": ["b", 1]});
    let longer = edit::add(text, &[], edit::Leaf::Member(KEY, &added)).unwrap();
    let mut expected = value.clone();
    expected[KEY] = added.clone();
    assert_eq!(edit::read(&longer).unwrap(), expected, "{longer}");
    let same = |key: Option<&str>, _: &Value| key == Some(KEY);
    let shorter = edit::remove(&longer, &[], same).unwrap().unwrap();
    assert_eq!(&edit::read(&shorter).unwrap(), value, "{shorter}");
    let replaced = edit::replace(&longer, &[], same, &json!(1))
        .unwrap()
        .unwrap();
    expected[KEY] = json!(1);
    assert_eq!(edit::read(&replaced).unwrap(), expected, "{replaced}");
}

#[test]
fn prove_xml() {
    super::prove("fuzz-xml", &xml());
}

#[test]
fn prove_json() {
    super::prove("fuzz-json", &json());
}

#[test]
fn prove_markdown() {
    super::prove("fuzz-markdown", &markdown());
}
