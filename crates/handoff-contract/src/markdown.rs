//! Markdown messages: a title line, sections under headings in capitals, and JSON for structured
//! data.
//!
//! Headings, rules and code fences count only at the start of a line. No line of valid JSON looks
//! like a heading or a rule, so unterminated JSON can't swallow the following sections.

use std::ops::Range;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::pointer::push_part;
use serde_json::{Map, Value};

use super::line::{Bullet, Fence, Heading, Line};
use super::{FILL, MAX_FINDINGS, json, scan, text};

/// The start of a message.
const TITLE: &str = "HANDOFF:";

/// A parsed message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    value: Value,
    title: usize,
    /// In the order of the value's members.
    sections: Vec<Section>,
}

#[derive(Clone, Debug)]
struct Section {
    offset: usize,
    body: Body,
}

/// The positions of the parts of a section's value.
#[derive(Clone, Debug)]
enum Body {
    Text,
    /// The offsets of a list's items, or of an object's members in their order.
    Bullets(Vec<usize>),
    Json(Range<usize>),
}

impl Message {
    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    /// Locates a value by a pointer's parts: returns the byte offset of the deepest existing value.
    pub(super) fn locate(&self, source: &str, parts: &[String]) -> usize {
        let Some((key, rest)) = parts.split_first() else {
            return self.title;
        };
        let Some(section) = position(&self.value, key).and_then(|at| self.sections.get(at)) else {
            return self.title;
        };
        match &section.body {
            Body::Text => section.offset,
            Body::Json(range) => range.start + scan::locate(&source[range.clone()], rest),
            Body::Bullets(offsets) => rest
                .first()
                .and_then(|part| position(self.value.get(key)?, part))
                .and_then(|at| offsets.get(at).copied())
                .unwrap_or(section.offset),
        }
    }

    /// Whether the value at a pointer's parts is written as JSON, or would be if it existed.
    pub(super) fn is_json(&self, parts: &[String]) -> bool {
        let section = parts
            .split_first()
            .filter(|(_, rest)| !rest.is_empty())
            .and_then(|(key, _)| self.sections.get(position(&self.value, key)?));
        section.is_some_and(|section| matches!(section.body, Body::Json(_)))
    }
}

/// The position of an object's member or a list's item.
fn position(value: &Value, part: &str) -> Option<usize> {
    match value {
        Value::Object(members) => members.keys().position(|key| key == part),
        Value::Array(_) => part.parse().ok(),
        _ => None,
    }
}

/// Whether a text starts like a message, after an optional byte order mark.
pub(super) fn begins(source: &str) -> bool {
    let start = text::trim_start(source);
    let first = start.split('\n').next().unwrap_or_default();
    let start = match Fence::of(first) {
        Some(_) => text::trim_start(&start[first.len()..]),
        None => start,
    };
    start.starts_with(TITLE)
}

/// Parses text that is valid UTF-8, within the size limit, and starts like a message.
pub(super) fn parse(source: &str) -> Result<Message, Vec<Finding>> {
    let mut reader = Reader {
        source,
        at: source.len() - source.trim_start_matches('\u{feff}').len(),
        outer: None,
        members: Map::new(),
        sections: Vec::new(),
        findings: Vec::new(),
    };
    let title = reader.title();
    reader.head();
    while let Some(line) = reader.peek() {
        match line.heading() {
            Some(heading) => reader.section(line, &heading),
            None => break,
        }
    }
    reader.end();
    if reader.findings.is_empty() {
        return Ok(Message {
            value: Value::Object(reader.members),
            title,
            sections: reader.sections,
        });
    }
    reader
        .findings
        .sort_by_key(|finding| (finding.line, finding.column));
    Err(reader.findings)
}

struct Reader<'a> {
    source: &'a str,
    at: usize,
    /// The fence of the code block around the whole message, if any.
    outer: Option<Fence<'a>>,
    members: Map<String, Value>,
    sections: Vec<Section>,
    findings: Vec<Finding>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<Line<'a>> {
        let rest = &self.source[self.at..];
        let text = rest.split('\n').next().filter(|_| !rest.is_empty())?;
        Some(Line {
            offset: self.at,
            text,
        })
    }

    fn skip(&mut self, line: Line<'_>) {
        self.at = (line.offset + line.text.len() + 1).min(self.source.len());
    }

    /// Consumes a line outside JSON blocks and checks its characters; the JSON parser checks those
    /// of the blocks.
    fn take(&mut self, line: Line<'_>, path: &str) {
        let found = line
            .text
            .char_indices()
            .find(|&(_, c)| !text::is_xml_char(c));
        if let Some((at, c)) = found {
            let message = format!(
                "the line holds the character U+{:04X}, which a contract cannot hold",
                u32::from(c)
            );
            let finding = Finding::error(FindingCode::TextControlCharacter, path, message);
            self.report(line.offset + at, finding.fix("remove it"));
        }
        self.skip(line);
    }

    fn skip_blanks(&mut self) {
        let rest = &self.source[self.at..];
        self.at += rest.len() - text::trim_start(rest).len();
    }

    fn report(&mut self, offset: usize, mut finding: Finding) {
        if self.findings.len() >= MAX_FINDINGS {
            return;
        }
        let (line, column) = text::position(self.source, offset);
        text::bound(&mut finding.path);
        self.findings.push(finding.at(line, column));
    }

    fn insert(&mut self, key: &str, value: Value, offset: usize, body: Body) {
        self.members.insert(key.to_owned(), value);
        self.sections.push(Section { offset, body });
    }

    /// Parses the opening fence, if there is one, and the title; returns the title's offset.
    fn title(&mut self) -> usize {
        self.skip_blanks();
        if let Some(line) = self.peek()
            && let Some(fence) = Fence::of(line.text)
        {
            self.outer = Some(fence);
            self.skip(line);
            self.skip_blanks();
        }
        let title = self.at;
        let Some(line) = self.peek() else {
            return title;
        };
        self.take(line, "");
        let names = line.text.get(TITLE.len()..).unwrap_or_default();
        let arrows: Vec<(usize, &str)> = ["→", "->"]
            .into_iter()
            .flat_map(|arrow| names.match_indices(arrow))
            .collect();
        let fault = match arrows[..] {
            [(at, arrow)] => {
                let (from, to) = (&names[..at], &names[at + arrow.len()..]);
                if !text::is_blank(from) && !text::is_blank(to) {
                    let start = TITLE.len();
                    for (key, name, start) in
                        [("from", from, start), ("to", to, start + at + arrow.len())]
                    {
                        let offset = line.offset + start + line.blanks(start);
                        self.insert(key, text::trim(name).into(), offset, Body::Text);
                    }
                    return title;
                }
                "the title names only one of sender and receiver"
            }
            [] => "the title has no arrow between sender and receiver",
            _ => "the title has more than one arrow",
        };
        let finding = Finding::error(FindingCode::MarkdownTitle, "", fault);
        self.report(title, finding.fix("write `HANDOFF: SENDER → RECEIVER`"));
        title
    }

    /// Parses the rules between the title and the first section.
    fn head(&mut self) {
        let mut reported = false;
        while let Some(line) = self.peek() {
            if line.heading().is_some() || (!reported && self.closes_message(line)) {
                return;
            }
            if !line.is_blank() && !line.is_rule() && !reported {
                reported = true;
                let message = "text before the first section";
                let finding = Finding::error(FindingCode::MarkdownTextBeforeSection, "", message);
                let fix =
                    "put it under a heading in capitals at the start of a line, such as `STATUS:`";
                self.report(line.offset, finding.fix(fix));
            }
            self.take(line, "");
        }
    }

    /// Whether the line closes the code block around the message. If JSON follows it, it opens a
    /// JSON block instead.
    fn closes_message(&self, line: Line<'_>) -> bool {
        let closes = match (line.fence(), self.outer) {
            (Some(fence), Some(outer)) => fence.closes(outer),
            _ => false,
        };
        let rest = &self.source[line.offset + line.text.len()..];
        closes && !text::trim_start(rest).starts_with(['{', '['])
    }

    fn section(&mut self, line: Line<'a>, heading: &Heading<'a>) {
        let mut path = String::new();
        push_part(&mut path, &heading.key);
        // Truncated, so that a key of many kilobytes is not copied for every bullet.
        text::bound(&mut path);
        self.take(line, &path);
        let duplicate = self.members.contains_key(&heading.key);
        if heading.key == "handoff" {
            let finding = Finding::error(FindingCode::MarkdownSecondTitle, "", "a second title");
            self.report(
                line.offset,
                finding.fix("send each handoff as a message of its own"),
            );
        } else if duplicate {
            let said = match heading.key.as_str() {
                "from" | "to" => " by the title and by a section",
                _ => " twice",
            };
            let message = format!("the key `{}` is given{said}", text::short(&heading.key));
            let finding = Finding::error(FindingCode::MarkdownDuplicateKey, &path, message);
            self.report(
                line.offset,
                finding.fix("put what belongs together into one section"),
            );
        }
        let found = self.body(line, heading, &path);
        if heading.key == "handoff" || duplicate {
            return;
        }
        let (value, offset, body) = found.unwrap_or((Value::Null, line.offset, Body::Text));
        self.insert(&heading.key, value, offset, body);
    }

    /// Parses the content of a section; `None` if a fault was reported.
    fn body(
        &mut self,
        line: Line<'a>,
        heading: &Heading<'a>,
        path: &str,
    ) -> Option<(Value, usize, Body)> {
        if heading.text.is_empty() {
            self.skip_blank_lines();
            let first = self
                .peek()
                .filter(|&next| !next.ends_section() && !self.closes_message(next));
            let Some(first) = first else {
                if heading.key == "handoff" {
                    return None;
                }
                let message = "the section holds nothing";
                let finding = Finding::error(FindingCode::MarkdownEmpty, path, message);
                self.report(
                    line.offset,
                    finding.fix("write what belongs there, or remove it"),
                );
                return None;
            };
            if let Some(fence) = first.fence() {
                return self.fenced(first, fence, path);
            }
            let body = text::trim_start(first.text);
            // A placeholder counts as text, whatever replaces it later.
            if body.starts_with(['{', '[']) && !body.starts_with(FILL) {
                let start = first.offset + first.blanks(0);
                let end = self.block_end(None);
                let found = self.json(start..end, path);
                self.nothing_more(path);
                return found;
            }
            if first.bullet().is_some() {
                return self.bullets(line.offset, path);
            }
        }
        self.lines(heading, path)
    }

    fn skip_blank_lines(&mut self) {
        while let Some(line) = self.peek()
            && line.is_blank()
        {
            self.take(line, "");
        }
    }

    /// Advances to the line that ends a JSON block, and returns its offset: a heading, a rule or
    /// the closing fence (any fence, if none was opened).
    fn block_end(&mut self, opened: Option<Fence<'_>>) -> usize {
        while let Some(line) = self.peek() {
            let fence = line.fence();
            let closes = match opened {
                Some(opened) => fence.is_some_and(|fence| fence.closes(opened)),
                None => fence.is_some(),
            };
            if closes || line.ends_section() {
                break;
            }
            self.skip(line);
        }
        self.at
    }

    /// Parses a code block and what may follow it in its section.
    fn fenced(
        &mut self,
        line: Line<'a>,
        fence: Fence<'a>,
        path: &str,
    ) -> Option<(Value, usize, Body)> {
        self.take(line, path);
        let start = self.at;
        let end = self.block_end(Some(fence));
        let closing = self.peek().filter(|line| line.fence().is_some());
        let Some(closing) = closing else {
            let message = "the code block that begins here does not end";
            let finding = Finding::error(FindingCode::MarkdownUnclosed, path, message);
            let fix = "close it before the next section with a line as long as its first, of the same marks";
            self.report(line.offset, finding.fix(fix));
            return None;
        };
        self.skip(closing);
        let content = &self.source[start..end];
        let start = end - text::trim_start(content).len();
        let is_json = matches!(fence.language, "" | "json" | "JSON")
            && self.source[start..end].starts_with(['{', '[']);
        let found = if is_json {
            self.json(start..end, path)
        } else {
            let message = "a code block in a section holds a JSON object or list, and nothing else";
            let finding = Finding::error(FindingCode::MarkdownCodeBlock, path, message);
            self.report(
                line.offset,
                finding.fix("write JSON, or text without the fence"),
            );
            None
        };
        self.nothing_more(path);
        found
    }

    /// Reports content after the end of a section's value.
    fn nothing_more(&mut self, path: &str) {
        let mut reported = false;
        while let Some(line) = self.peek() {
            if line.ends_section() || self.closes_message(line) {
                return;
            }
            if !line.is_blank() && !reported {
                reported = true;
                self.mixed(line, path);
            }
            self.take(line, path);
        }
    }

    fn mixed(&mut self, line: Line<'_>, path: &str) {
        let message = "a section holds either JSON, or bullets, or lines of text";
        let finding = Finding::error(FindingCode::MarkdownMixed, path, message);
        let fix = "put this into a section of its own; JSON begins on the line below its heading";
        self.report(line.offset + line.blanks(0), finding.fix(fix));
    }

    fn json(&mut self, range: Range<usize>, path: &str) -> Option<(Value, usize, Body)> {
        let length = text::trim(&self.source[range.clone()]).len();
        let range = range.start..range.start + length;
        let block = &self.source[range.clone()];
        match json::parse_any(block) {
            Ok(value) => Some((value, range.start, Body::Json(range))),
            Err(findings) => {
                let syntax = findings
                    .iter()
                    .any(|found| found.code == FindingCode::JsonSyntax);
                if syntax && json::ends_early(block) {
                    let message = "the JSON that begins here does not end";
                    let finding = Finding::error(FindingCode::MarkdownUnclosed, path, message);
                    let fix = "close every text, list and object before the section ends";
                    self.report(range.start, finding.fix(fix));
                    return None;
                }
                let (line, column) = text::position(self.source, range.start);
                let room = MAX_FINDINGS.saturating_sub(self.findings.len());
                for mut found in findings.into_iter().take(room) {
                    found.path.insert_str(0, path);
                    text::bound(&mut found.path);
                    let (l, c) = (found.line.unwrap_or(1), found.column.unwrap_or(1));
                    let shift = if l == 1 { column - 1 } else { 0 };
                    self.findings.push(found.at(line + l - 1, c + shift));
                }
                None
            }
        }
    }

    fn bullets(&mut self, section: usize, path: &str) -> Option<(Value, usize, Body)> {
        let mut bullets: Vec<Bullet> = Vec::new();
        let (mut margin, mut mixed) = (None, false);
        while let Some(line) = self.peek() {
            if line.ends_section() || self.closes_message(line) {
                break;
            }
            let indent = line.blanks(0);
            let limit = *margin.get_or_insert(indent);
            match line.bullet() {
                _ if line.is_blank() => {}
                Some((_, start)) if indent <= limit => bullets.push(Bullet::read(line, start)),
                _ if indent > limit => {
                    if let Some(last) = bullets.last_mut() {
                        if !last.text.is_empty() {
                            last.text.push('\n');
                        }
                        last.text.push_str(text::trim(line.text));
                    }
                }
                _ if !mixed => {
                    mixed = true;
                    self.mixed(line, path);
                }
                _ => {}
            }
            self.take(line, path);
        }
        let keyed = bullets.iter().all(|bullet| bullet.key.is_some());
        let (mut members, mut items) = (Map::new(), Vec::new());
        let mut offsets = Vec::with_capacity(bullets.len());
        for Bullet { offset, text, key } in bullets {
            let (mut at, mut value, mut path) = (offset, text::trim(&text), path.to_owned());
            match key {
                Some((key, start)) if keyed => {
                    value = text::trim(&text[start..]);
                    push_part(&mut path, &key);
                    if members.contains_key(&key) {
                        let message = format!("the key `{}` is given twice", text::short(&key));
                        let finding =
                            Finding::error(FindingCode::MarkdownDuplicateKey, &path, message);
                        self.report(offset, finding.fix("keep one, or rename one"));
                    }
                    let blanks = text[start..].len() - text::trim_start(&text[start..]).len();
                    // Findings point to a value on the same line as its key, else to the key.
                    if !text[start..start + blanks].contains('\n') {
                        at += start + blanks;
                    }
                    members.insert(key, value.into());
                }
                _ => {
                    push_part(&mut path, &items.len().to_string());
                    items.push(value.into());
                }
            }
            if value.is_empty() {
                let finding = Finding::error(
                    FindingCode::MarkdownEmpty,
                    &path,
                    "the bullet holds nothing",
                );
                self.report(
                    offset,
                    finding.fix("write what belongs there, or remove it"),
                );
            }
            offsets.push(at);
        }
        let value = if keyed {
            Value::Object(members)
        } else {
            Value::Array(items)
        };
        Some((value, section, Body::Bullets(offsets)))
    }

    fn lines(&mut self, heading: &Heading<'a>, path: &str) -> Option<(Value, usize, Body)> {
        let mut content = heading.text.to_owned();
        let mut start = (!content.is_empty()).then_some(heading.offset);
        let mut mixed = false;
        while let Some(line) = self.peek() {
            if line.ends_section() || self.closes_message(line) {
                break;
            }
            let shown = text::trim(line.text);
            if !shown.is_empty() && start.is_none() {
                start = Some(line.offset + line.blanks(0));
            }
            // Structured data must not be flattened into lines of text.
            let foreign = line.bullet().is_some()
                || line.fence().is_some()
                || shown.starts_with('{') && !shown.starts_with(FILL)
                || (!shown.is_empty() && heading.text.starts_with(['{', '[']));
            if foreign && !mixed {
                mixed = true;
                self.mixed(line, path);
            }
            self.take(line, path);
            if !content.is_empty() {
                content.push('\n');
            }
            content.push_str(line.text.trim_end_matches([' ', '\t', '\r']));
        }
        Some((text::trim(&content).into(), start?, Body::Text))
    }

    /// Parses the end: the closing rule, the closing fence, nothing else.
    fn end(&mut self) {
        let mut closed = self.outer.is_none();
        let mut reported = false;
        if let Some(line) = self.peek()
            && line.is_rule()
        {
            self.skip(line);
        }
        while let Some(line) = self.peek() {
            if !closed && self.closes_message(line) {
                closed = true;
            } else if !line.is_blank() && !reported {
                reported = true;
                let message = "text after the end of the message";
                let finding = Finding::error(FindingCode::MarkdownTextAfterEnd, "", message);
                let fix = "remove it, or move it into a section above the closing rule";
                self.report(line.offset, finding.fix(fix));
            }
            self.take(line, "");
        }
        if !closed {
            let message = "the code block that holds the message does not end";
            let finding = Finding::error(FindingCode::MarkdownUnclosed, "", message);
            self.report(
                self.source.len(),
                finding.fix(
                    "end it with a line of the marks that opened it; the message may be cut off",
                ),
            );
        }
    }
}
