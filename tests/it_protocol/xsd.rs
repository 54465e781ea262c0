//! The XML Schemas say what the native validator says: on every sample and on thousands of mutants.
//!
//! The judge of the XML Schemas is xmllint. Without it nothing runs, which is an error where `CI` is set.
#![expect(clippy::print_stderr)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};

use handoff::base::finding::{Finding, FindingCode};

use crate::rules::{NAME, Rules, line, root, samples};

/// How many mutants are made of each valid sample.
const MUTANTS: usize = 150;

/// What the two cannot agree on, and why. A document that only the native validator refuses for one of
/// these findings is no difference.
const NATIVE_ONLY: [(&str, &str); 9] = [
    ("xml.doctype", "a DOCTYPE is refused whatever it declares"),
    ("xml.encoding", "contracts are UTF-8"),
    ("xml.version", "contracts are XML 1.0"),
    ("input.not_utf8", "contracts are UTF-8"),
    ("xml.too_deep", "nesting is bounded"),
    ("xml.too_many_attributes", "attributes are bounded"),
    (
        "field.unfilled",
        "a skeleton's mark is text to an XML Schema",
    ),
    (
        "field.undecided",
        "a list of choices, copied from a template, is text to an XML Schema",
    ),
    (
        "xml.namespace",
        "an XML Schema skips what stands inside `data`, namespaces too",
    ),
];

/// Places where the two cannot agree on such a finding, and why.
const NATIVE_ONLY_AT: [(&str, &str, &str); 4] = [
    (
        "field.missing",
        "/handoff/port",
        "an XML Schema cannot ask for one element by the text of another",
    ),
    (
        "field.missing",
        "/handoff/fixes_applied",
        "what was skipped has none, by the text of another element",
    ),
    ("field.length", "/handoff/fixes_applied", "the same"),
    ("field.missing", "/handoff/commits_added", "the same"),
];

/// What only xmllint refuses: a CDATA section of blanks between elements, which it counts as text although
/// a comment or a blank there is none.
const BLANK_CDATA: [&str; 2] = ["<![CDATA[]]>", "<![CDATA[ ]]>"];

/// Differences in places that an XML Schema cannot describe: inside `data`, which it skips.
fn is_within_data(path: &str) -> bool {
    path.split('/').nth(2).is_some_and(|part| part == "data")
}

pub(crate) fn has_xmllint() -> bool {
    let found = Command::new("xmllint")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        assert!(
            std::env::var_os("CI").is_none(),
            "xmllint is missing: install libxml2-utils"
        );
        eprintln!("NOT RUN: the XML Schemas against the native validator, for want of xmllint");
    }
    found
}

/// A document, and the contract type it is judged as.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) bytes: Vec<u8>,
}

/// Asks xmllint which cases are valid, in one process for each schema.
pub(crate) fn xsd_verdicts(protocol: &str, cases: &[Case]) -> Vec<bool> {
    let folder = tempfile::tempdir().unwrap();
    let mut by_kind: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        fs::write(folder.path().join(format!("{number}.xml")), &case.bytes).unwrap();
        by_kind.entry(&case.kind).or_default().push(number);
    }
    let mut verdicts = vec![false; cases.len()];
    for (kind, numbers) in by_kind {
        for part in numbers.chunks(1000) {
            let output = Command::new("xmllint")
                .args(["--noout", "--nonet", "--schema"])
                .arg(root().join(format!("schemas/{protocol}/{kind}.xsd")))
                .args(part.iter().map(|number| format!("{number}.xml")))
                .current_dir(folder.path())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!said.contains("failed to compile"), "{kind}: {said}");
            for line in said.lines() {
                if let Some(number) = line.strip_suffix(".xml validates") {
                    verdicts[number.parse::<usize>().unwrap()] = true;
                }
            }
        }
    }
    verdicts
}

/// What the native validator finds, judged as this type whatever the route.
fn native(rules: &Rules, case: &Case) -> Vec<(String, String, String)> {
    use handoff::contract::{Schema, Source};
    thread_local! {
        static SCHEMAS: std::cell::RefCell<BTreeMap<(&'static str, String), std::rc::Rc<Schema>>> =
            std::cell::RefCell::default();
    }
    let schema = SCHEMAS.with_borrow_mut(|schemas| {
        let schema = schemas
            .entry((rules.name, case.kind.clone()))
            .or_insert_with(|| {
                let schema = rules.schema(&case.kind);
                std::rc::Rc::new(Schema::compile_trusted(&schema).unwrap())
            });
        std::rc::Rc::clone(schema)
    });
    let expected = &rules.protocol.contract_type(&case.kind).unwrap().root;
    let findings = match Source::parse(&case.bytes) {
        Err(findings) => findings,
        Ok(source) => match source.root(&[]) {
            Some(root) if root == *expected => schema.check(&source, None).findings,
            root => {
                let text = format!("the root is {root:?}");
                vec![Finding::error(FindingCode::ContractRoot, "", text)]
            }
        },
    };
    let errors = findings.iter().filter(|f| f.is_error());
    errors
        .map(|f| (f.code.to_string(), f.path.clone(), line(f)))
        .collect()
}

/// Compares the two on every case; a difference is told with the document.
fn assert_agreement(rules: &Rules, cases: &[Case]) -> (usize, usize) {
    let verdicts = xsd_verdicts(rules.name, cases);
    let mut differences = Vec::new();
    let mut valid = 0;
    for (case, by_xsd) in cases.iter().zip(verdicts) {
        let found = native(rules, case);
        valid += usize::from(found.is_empty());
        if found.is_empty() == by_xsd {
            continue;
        }
        let text = String::from_utf8_lossy(&case.bytes);
        let blank = !by_xsd && BLANK_CDATA.iter().any(|section| text.contains(section));
        let refused = by_xsd
            && found.iter().all(|(code, path, _)| {
                let listed = NATIVE_ONLY.iter().any(|(known, _)| code.starts_with(known));
                let is_there = |known: &(&str, &str, &str)| (known.0, known.1) == (code, path);
                let listed = listed || NATIVE_ONLY_AT.iter().any(is_there);
                listed || is_within_data(path)
            });
        if !refused && !blank {
            let lines: Vec<&String> = found.iter().map(|(.., line)| line).collect();
            differences.push(format!(
                "{} as {}: the XSD says {by_xsd}, natively {lines:#?}\n{text}",
                case.name, case.kind
            ));
        }
    }
    let shown: Vec<&String> = differences.iter().take(8).collect();
    assert!(
        differences.is_empty(),
        "{} differences in {} cases:\n{}",
        differences.len(),
        cases.len(),
        shown
            .iter()
            .map(|s| s.as_str())
            .collect::<Vec<_>>()
            .join("\n----\n")
    );
    (valid, cases.len())
}

#[test]
fn both_agree_on_every_sample() {
    if !has_xmllint() {
        return;
    }
    let rules = Rules::new();
    let mut cases = Vec::new();
    for sample in samples("valid").into_iter().filter(|s| s.is_xml()) {
        let kind = rules.review(&sample.bytes).kind.unwrap();
        cases.push(Case {
            name: sample.name,
            kind,
            bytes: sample.bytes,
        });
    }
    let count = cases.len();
    assert_eq!(assert_agreement(&rules, &cases), (count, count));

    let mut cases = Vec::new();
    for sample in samples("invalid").into_iter().filter(|s| s.is_xml()) {
        // Where the type can't be told, it is told from the samples that the fault was put into.
        let text = String::from_utf8_lossy(&sample.bytes).into_owned();
        let kind = match rules.review(&sample.bytes).kind {
            Some(kind) => kind,
            None => likely_kind(&rules, &text),
        };
        cases.push(Case {
            name: sample.name,
            kind,
            bytes: sample.bytes,
        });
    }
    let (valid, count) = assert_agreement(&rules, &cases);
    // What only a route or an agent's name refuses fits its schema in both.
    assert!(valid < 5 && count > 80, "{valid} of {count}");
}

fn likely_kind(rules: &Rules, text: &str) -> String {
    if text.contains("<workflow-complete") {
        return "workflow-complete".to_owned();
    }
    let kinds = rules.protocol.definition().contracts.iter();
    let parties = |c: &&handoff::protocol::ContractType| {
        let (from, to) = c.name.split_once("-to-").unwrap_or(("", ""));
        !to.is_empty()
            && text.contains(&format!("<from>{from}</from>"))
            && text.contains(&format!("<to>{to}</to>"))
    };
    let found = kinds.clone().find(parties);
    found.map_or_else(
        || "reviewer-agent-to-validator-agent".to_owned(),
        |c| c.name.clone(),
    )
}

/// A small generator of pseudo-random numbers (xorshift64*): the same mutants on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let mixed = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(mixed).unwrap() % limit
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len());
        &from[at]
    }
}

/// An element that can be changed and written again.
#[derive(Clone)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    /// Markup between tags, and elements.
    content: Vec<Content>,
}

#[derive(Clone)]
enum Content {
    /// Text as it stands in the source, escaped; or a comment, and so on.
    Raw(String),
    Element(Element),
}

fn escaped(text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    text.replace('"', "&quot;")
}

impl Element {
    fn read(node: roxmltree::Node<'_, '_>) -> Self {
        let content = node.children().filter_map(|child| {
            if child.is_element() {
                Some(Content::Element(Self::read(child)))
            } else {
                child
                    .is_text()
                    .then(|| Content::Raw(escaped(child.text().unwrap())))
            }
        });
        Self {
            name: node.tag_name().name().to_owned(),
            attributes: node
                .attributes()
                .filter(|a| a.namespace().is_none())
                .map(|a| (a.name().to_owned(), escaped(a.value())))
                .collect(),
            content: content.collect(),
        }
    }

    fn write(&self, out: &mut String) {
        *out += &format!("<{}", self.name);
        for (name, value) in &self.attributes {
            *out += &format!(" {name}=\"{value}\"");
        }
        *out += ">";
        for content in &self.content {
            match content {
                Content::Raw(text) => *out += text,
                Content::Element(element) => element.write(out),
            }
        }
        *out += &format!("</{}>", self.name);
    }

    fn count(&self) -> usize {
        let below = self.content.iter().map(|content| match content {
            Content::Element(element) => element.count(),
            Content::Raw(_) => 0,
        });
        1 + below.sum::<usize>()
    }

    /// The element with this number, counted from this one.
    fn nth(&mut self, number: usize) -> &mut Self {
        if number == 0 {
            return self;
        }
        let mut left = number - 1;
        for content in &mut self.content {
            if let Content::Element(element) = content {
                let size = element.count();
                if left < size {
                    return element.nth(left);
                }
                left -= size;
            }
        }
        unreachable!("the number is below the count")
    }

    fn names(&self, out: &mut BTreeSet<String>) {
        out.insert(self.name.clone());
        out.extend(self.attributes.iter().map(|(name, _)| name.clone()));
        for content in &self.content {
            if let Content::Element(element) = content {
                element.names(out);
            }
        }
    }

    fn children(&self) -> Vec<usize> {
        let elements = self.content.iter().enumerate();
        let elements = elements.filter(|(_, content)| matches!(content, Content::Element(_)));
        elements.map(|(at, _)| at).collect()
    }
}

/// Texts at the edges of what fields take.
fn edge_texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "",
        " ",
        "\n\t ",
        "\u{a0}",
        "\u{2003}",
        "\u{feff}",
        "0",
        "1",
        "-1",
        "+1",
        "-0",
        "+0",
        "00",
        "007",
        " 7 ",
        "\n7\n",
        "\u{a0}7",
        "7\u{a0}",
        "1.0",
        "1.",
        ".5",
        "1e3",
        "1E3",
        "0x10",
        "1_000",
        "1,000",
        "٣",
        "７",
        "½",
        "2147483647",
        "2147483648",
        "-2147483648",
        "4294967296",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775809",
        "9999999999999999999999999999999999999999",
        "000000000000000000000000000000000000000012",
        "65535",
        "65536",
        "+",
        "-",
        "--1",
        "+-1",
        "- 1",
        "NaN",
        "INF",
        "-INF",
        "Infinity",
        "true",
        "false",
        "TRUE",
        "True",
        "yes",
        " true ",
        "\ttrue",
        "null",
        "none",
        "critical",
        "Critical",
        " critical ",
        "critical ",
        "critical\n",
        "high",
        "important",
        "suggestion",
        "suggestions",
        "feature|bug|enhancement|refactor|chore",
        "critical|high|medium|low",
        "worktree|in-place|cloud",
        "feature|bug",
        "|",
        "merge",
        "squash",
        "rebase",
        "approved",
        "changes_requested",
        "changes-requested",
        "merged",
        "failed",
        "success",
        "failure",
        "blocked",
        "pending",
        "skipped",
        "ready",
        "ready-for-re-review",
        "completed",
        "passing",
        "fail",
        "ok",
        "http://",
        "https://",
        "http://x",
        "https://x",
        "HTTPS://x",
        "ftp://x",
        "https://x y",
        "https://x\ty",
        "https://é",
        "https://x\u{a0}y",
        "https://x?a=1&b=2#c",
        "https://x<y",
        "https://\"x",
        " https://x",
        "https://x ",
        "https://x\n",
        "abcd",
        "ABCD",
        "abc",
        "abcg",
        "0000",
        "abcd ",
        "\u{ff41}bcd",
        "100%",
        "100.0%",
        "100.1%",
        "99.99%",
        "0%",
        "00%",
        "000%",
        "87.5",
        "87.5 %",
        "%",
        "-5%",
        "87,5%",
        "87.%",
        "٨٧%",
        "2026-10-05T08:00:00Z",
        "2026-10-05T08:00:00z",
        "2026-10-05t08:00:00Z",
        "2026-10-05T08:00:00+00:00",
        "2026-10-05T08:00:00-00:00",
        "2026-10-05T08:00:00+14:00",
        "2026-10-05T08:00:00+14:01",
        "2026-10-05T08:00:00+24:00",
        "2026-10-05T08:00:00",
        "2026-10-05 08:00:00Z",
        "2026-10-05T24:00:00Z",
        "2026-10-05T23:59:60Z",
        "2026-10-05T08:60:00Z",
        "2026-02-28T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2024-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2000-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "10000-01-01T00:00:00Z",
        "-2026-01-01T00:00:00Z",
        "2026-10-05T08:00:00.1Z",
        "2026-10-05T08:00:00.123456789Z",
        "2026-10-05T08:00:00.1234567890Z",
        "2026-10-05T08:00:00.Z",
        " 2026-10-05T08:00:00Z",
        "2026-10-05T08:00:00Z\n",
        "２026-10-05T08:00:00Z",
        "2026-10-05",
        "20261005T080000Z",
        "e\u{301}",
        "\u{1f600}",
        "\u{10ffff}",
        "\u{fffd}",
        "\u{202e}x",
        "\u{85}",
        "\u{2028}",
        "a\rb",
        "a\nb",
        "]]&gt;",
        "{{x}}",
        "../../x",
        "-x",
        "x..y",
        "@x",
        "prep-agent",
        "Prep-agent",
        "prep-agent ",
        "reviewer-agent",
        "orchestrator",
        "workflow-complete",
        "issue-manager",
    ]
    .iter()
    .map(|text| (*text).to_owned())
    .collect();
    texts.extend([1000, 1001, 10_000, 10_001].map(|length| "x".repeat(length)));
    texts.extend([1000, 1001].map(|length| "\u{1f600}".repeat(length)));
    texts.push(format!("{}x", " ".repeat(1000)));
    texts
}

/// A character that XML can only carry as a reference is written as one.
fn referenced(text: &str) -> String {
    text.replace('\r', "&#13;")
}

/// Changes one thing of a document; says what.
fn mutate(
    random: &mut Random,
    document: &mut Element,
    names: &[String],
    texts: &[String],
) -> &'static str {
    let count = document.count();
    let number = random.below(count);
    let element = document.nth(number);
    let children = element.children();
    match random.below(20) {
        0 if !children.is_empty() => {
            element.content.remove(*random.pick(&children));
            "an element dropped"
        }
        1 if !children.is_empty() => {
            let at = *random.pick(&children);
            let copy = element.content[at].clone();
            let to = *random.pick(&children);
            element.content.insert(to, copy);
            "an element doubled"
        }
        2 if children.len() > 1 => {
            let (a, b) = (*random.pick(&children), *random.pick(&children));
            element.content.swap(a, b);
            "elements in another order"
        }
        3 if number > 0 => {
            element.name = random.pick(names).clone();
            "an element renamed"
        }
        4 if number > 0 => {
            element.name = random
                .pick(&["x", "From", "issue", "item", "é", "a.b", "_", "xml-x"])
                .to_string();
            "an element with an unknown name"
        }
        5 => {
            let name = random.pick(names).clone();
            if element.attributes.iter().all(|(known, _)| *known != name) {
                let value = escaped(random.pick::<String>(texts));
                element.attributes.push((name, referenced(&value)));
            }
            "an attribute added"
        }
        6 if !element.attributes.is_empty() => {
            let at = random.below(element.attributes.len());
            element.attributes.remove(at);
            "an attribute dropped"
        }
        7 | 8 if !element.attributes.is_empty() => {
            let at = random.below(element.attributes.len());
            let value = referenced(&escaped(random.pick::<String>(texts)));
            element.attributes[at].1 = value;
            "an attribute changed"
        }
        9 if element.attributes.len() > 1 => {
            element.attributes.reverse();
            "attributes in another order"
        }
        10 => {
            let at = random.below(element.content.len() + 1);
            let what = *random.pick(&[
                "<!-- a comment -->",
                "<?hint x?>",
                "<![CDATA[]]>",
                "<![CDATA[ ]]>",
                "<![CDATA[x < y]]>",
                "&#32;",
                "&#x9;",
                "&amp;",
            ]);
            element.content.insert(at, Content::Raw(what.to_owned()));
            "markup inserted"
        }
        11 => {
            let at = random.below(element.content.len() + 1);
            let text = referenced(&escaped(random.pick::<String>(texts)));
            element.content.insert(at, Content::Raw(text));
            "text inserted"
        }
        12 => {
            element.content.clear();
            "an element emptied"
        }
        13 => {
            let child = Element {
                name: random.pick(names).clone(),
                attributes: Vec::new(),
                content: vec![Content::Raw("x".to_owned())],
            };
            let at = random.below(element.content.len() + 1);
            element.content.insert(at, Content::Element(child));
            "an element inserted"
        }
        14 => {
            let name = random
                .pick(&["xml:lang", "xml:space", "xmlns:x", "xmlns", "xml:id"])
                .to_string();
            let value = if name == "xml:space" { "preserve" } else { "x" };
            if element.attributes.iter().all(|(known, _)| *known != name) {
                element.attributes.push((name, value.to_owned()));
            }
            "a reserved attribute"
        }
        _ if children.is_empty() => {
            let text = referenced(&escaped(random.pick::<String>(texts)));
            element.content = vec![Content::Raw(text)];
            "another text"
        }
        _ => {
            let at = *random.pick(&children);
            if let Content::Element(child) = &mut element.content[at]
                && child.children().is_empty()
            {
                child.content = vec![Content::Raw(referenced(&escaped(
                    random.pick::<String>(texts),
                )))];
            }
            "another text"
        }
    }
}

/// Mutants of the valid XML samples of a protocol.
fn mutants(rules: &Rules) -> Vec<Case> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let texts = edge_texts();
    let mut cases = Vec::new();
    for sample in rules.samples("valid").iter().filter(|s| s.is_xml()) {
        let kind = rules.review(&sample.bytes).kind.unwrap();
        let text = sample.text().trim_start_matches('\u{feff}');
        let document = roxmltree::Document::parse(text).unwrap();
        let original = Element::read(document.root_element());
        let mut names = BTreeSet::new();
        original.names(&mut names);
        let names: Vec<String> = names.into_iter().collect();
        for number in 0..MUTANTS {
            let mut mutant = original.clone();
            let mut what = Vec::new();
            // Most have one change; two show that one fault does not hide another's absence.
            for _ in 0..1 + usize::from(number % 5 == 0) {
                what.push(mutate(&mut random, &mut mutant, &names, &texts));
            }
            let mut text = String::new();
            mutant.write(&mut text);
            cases.push(Case {
                name: format!("{} {number}: {}", sample.name, what.join(", ")),
                kind: kind.clone(),
                bytes: text.into_bytes(),
            });
        }
    }
    cases
}

/// The made XML Schemas leave out what they cannot say, and refuse nothing that is valid.
#[test]
fn a_made_xml_schema_refuses_no_valid_mutant() {
    if !has_xmllint() {
        return;
    }
    let has_xml = |rules: &Rules| {
        let mut formats = rules.protocol.definition().formats.iter();
        formats.any(|format| format == "xml")
    };
    for rules in Rules::all().filter(|rules| rules.name != NAME && has_xml(rules)) {
        let cases = mutants(&rules);
        let verdicts = xsd_verdicts(rules.name, &cases);
        let (mut invalid, mut refused) = (0, 0);
        for (case, by_xsd) in cases.iter().zip(verdicts) {
            let found = native(&rules, case);
            let text = String::from_utf8_lossy(&case.bytes);
            let blank = BLANK_CDATA.iter().any(|section| text.contains(section));
            assert!(
                by_xsd || blank || !found.is_empty(),
                "{} {}\n{text}",
                rules.name,
                case.name
            );
            invalid += usize::from(!found.is_empty());
            refused += usize::from(!by_xsd);
        }
        // It finds most of what is wrong.
        let (name, all) = (rules.name, cases.len());
        assert!(
            refused * 10 > invalid * 6,
            "{name}: {refused} of {invalid} invalid ones of {all}"
        );
    }
}

#[test]
fn both_agree_on_mutants() {
    if !has_xmllint() {
        return;
    }
    let rules = Rules::new();
    let cases = mutants(&rules);
    assert!(cases.len() >= 2000, "{}", cases.len());
    let (valid, count) = assert_agreement(&rules, &cases);
    // Both answers are tried in earnest.
    assert!(
        valid * 10 > count && valid * 10 < count * 6,
        "{valid} of {count}"
    );
}

#[test]
fn every_xml_schema_is_well_formed_and_compiles() {
    if !has_xmllint() {
        return;
    }
    let rules = Rules::new();
    for kind in &rules.protocol.definition().contracts {
        let path = root().join(format!("schemas/{NAME}/{}.xsd", kind.name));
        assert!(path.is_file(), "{}", path.display());
        let output = Command::new("xmllint")
            .arg("--noout")
            .arg(&path)
            .output()
            .unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{}",
            kind.name
        );
    }
}
