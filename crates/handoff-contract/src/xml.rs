//! Strict XML: a bounded scan, then roxmltree, whose tree is copied into an owned one.

use std::collections::HashMap;
use std::ops::Range;

use handoff_base::finding::{Finding, FindingCode};
use handoff_base::pointer::parts;
use roxmltree::{Document as Tree, Error, Node, NodeType, ParsingOptions};

use super::{MAX_ATTRIBUTES, MAX_DEPTH, MAX_FINDINGS, text};

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// A parsed document; element 0 is the root.
#[derive(Clone, Debug)]
pub(super) struct Document {
    elements: Vec<Element>,
}

/// One element: its attributes, its own text, and its child elements.
#[derive(Clone, Debug)]
pub(super) struct Element {
    pub(super) name: Box<str>,
    /// Byte offset of its `<`.
    pub(super) offset: usize,
    pub(super) attributes: Vec<Attribute>,
    /// Its own text and CDATA, joined, without the white space between child elements.
    pub(super) text: Box<str>,
    /// Byte offset of the first non-blank text.
    pub(super) text_offset: usize,
    children: Vec<u32>,
}

/// One attribute.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) name: Box<str>,
    pub(super) value: Box<str>,
    pub(super) offset: usize,
}

impl Document {
    pub(super) fn root(&self) -> &Element {
        &self.elements[0]
    }

    pub(super) fn children<'a>(
        &'a self,
        element: &'a Element,
    ) -> impl Iterator<Item = &'a Element> + Clone {
        element
            .children
            .iter()
            .map(|&index| &self.elements[index as usize])
    }

    /// Visits every text and attribute with its element path, name and offset. Elements of the same
    /// parent and name are numbered from 1.
    pub(super) fn each_text(&self, visit: &mut impl FnMut(&str, &str, &str, usize)) {
        let root = self.root();
        self.each_text_in(root, &mut format!("/{}", root.name), visit);
    }

    /// Recursion is bounded by `MAX_DEPTH`, which `scan` enforced.
    fn each_text_in(
        &self,
        element: &Element,
        path: &mut String,
        visit: &mut impl FnMut(&str, &str, &str, usize),
    ) {
        let length = path.len();
        for Attribute {
            name,
            value,
            offset,
        } in &element.attributes
        {
            path.push_str(&format!("/@{name}"));
            visit(path, name, value, *offset);
            path.truncate(length);
        }
        visit(path, &element.name, &element.text, element.text_offset);
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for child in self.children(element) {
            *seen.entry(&child.name).or_default() += 1;
        }
        let mut number: HashMap<&str, usize> = HashMap::new();
        for child in self.children(element) {
            path.push_str(&format!("/{}", child.name));
            if seen.get(&*child.name).is_some_and(|&count| count > 1) {
                let number = number.entry(&child.name).or_default();
                *number += 1;
                path.push_str(&format!("[{number}]"));
            }
            self.each_text_in(child, path, visit);
            path.truncate(length);
        }
    }

    /// The text at a pointer of element, attribute and position parts; see `Source::probe`.
    pub(super) fn probe(&self, pointer: &str) -> Option<String> {
        let mut element = self.root();
        let mut parts = parts(pointer).peekable();
        while let Some(part) = parts.next() {
            let child = match part.parse::<usize>() {
                Ok(position) => self.children(element).nth(position),
                Err(_) => self.children(element).find(|child| *child.name == *part),
            };
            match child {
                Some(child) => element = child,
                None if parts.peek().is_none() => {
                    return element
                        .attribute(&part)
                        .map(|found| found.value.to_string());
                }
                None => return None,
            }
        }
        element.is_leaf().then(|| element.text.to_string())
    }
}

impl Element {
    pub(super) fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes
            .iter()
            .find(|attribute| *attribute.name == *name)
    }
}

/// Parses text that is valid UTF-8 and within the size limit.
pub(super) fn parse(source: &str) -> Result<Document, Vec<Finding>> {
    scan(source).map_err(|fault| {
        let (line, column) = text::position(source, fault.offset);
        let mut finding = Finding::error(fault.code, "", fault.message).at(line, column);
        finding.fix = fault.fix.map(str::to_owned);
        vec![finding]
    })?;
    let options = ParsingOptions {
        allow_dtd: false,
        ..ParsingOptions::default()
    };
    let tree =
        Tree::parse_with_options(source, options).map_err(|error| vec![syntax(source, &error)])?;
    let mut builder = Builder {
        source,
        elements: Vec::new(),
        findings: Vec::new(),
    };
    builder.element(tree.root_element(), true);
    if builder.findings.is_empty() {
        Ok(Document {
            elements: builder.elements,
        })
    } else {
        Err(builder.findings)
    }
}

struct Builder<'a> {
    source: &'a str,
    elements: Vec<Element>,
    findings: Vec<Finding>,
}

impl Builder<'_> {
    /// Copies an element; recursion is bounded by `MAX_DEPTH`, which `scan` enforced.
    fn element(&mut self, node: Node<'_, '_>, is_root: bool) -> u32 {
        let offset = node.range().start;
        let name = node.tag_name();
        if name.namespace().is_some() {
            self.namespaced(offset, "element", name.name());
        }
        let mut attributes = Vec::with_capacity(node.attributes().len());
        for attribute in node.attributes() {
            match attribute.namespace() {
                None => attributes.push(Attribute {
                    name: attribute.name().into(),
                    value: attribute.value().into(),
                    offset: attribute.range().start,
                }),
                Some(XSI)
                    if is_root
                        && matches!(
                            attribute.name(),
                            "noNamespaceSchemaLocation" | "schemaLocation"
                        ) => {}
                Some(_) => self.namespaced(attribute.range().start, "attribute", attribute.name()),
            }
        }
        let index = self.elements.len();
        self.elements.push(Element {
            name: name.name().into(),
            offset,
            attributes,
            text: Box::default(),
            text_offset: offset,
            children: Vec::new(),
        });
        let mut children = Vec::new();
        let mut text = String::new();
        let mut text_offset = None;
        for child in node.children() {
            match child.node_type() {
                NodeType::Element => children.push(self.element(child, false)),
                NodeType::Text => {
                    let piece = child.text().unwrap_or_default();
                    if text_offset.is_none() && !text::is_blank(piece) {
                        text_offset = Some(first_visible(self.source, child.range()));
                    }
                    text.push_str(piece);
                }
                NodeType::Root | NodeType::PI | NodeType::Comment => {}
            }
        }
        if !children.is_empty() && text::is_blank(&text) {
            text.clear();
        }
        let element = &mut self.elements[index];
        element.children = children;
        element.text = text.into();
        element.text_offset = text_offset.unwrap_or(offset);
        u32::try_from(index).unwrap_or(u32::MAX)
    }

    fn namespaced(&mut self, offset: usize, what: &str, name: &str) {
        if self.findings.len() >= MAX_FINDINGS {
            return;
        }
        let (line, column) = text::position(self.source, offset);
        let message = format!(
            "the {what} `{}` is in a namespace, and contracts use none",
            text::short(name)
        );
        self.findings.push(
            Finding::error(FindingCode::XmlNamespace, "", message)
                .at(line, column)
                .fix("remove the prefix and the xmlns declaration"),
        );
    }
}

fn first_visible(source: &str, range: Range<usize>) -> usize {
    let blanks = source[range.clone()]
        .bytes()
        .take_while(|&byte| text::is_blank_byte(byte))
        .count();
    range.start + blanks
}

fn syntax(source: &str, error: &Error) -> Finding {
    let message = match error {
        Error::DtdDetected => "a DOCTYPE is not allowed".to_owned(),
        Error::NoRootNode => "there is no root element".to_owned(),
        Error::UnclosedRootNode => "the root element is never closed".to_owned(),
        Error::UnexpectedEndOfStream => "the document ends too early".to_owned(),
        Error::InvalidName(_) => "a name is expected here".to_owned(),
        Error::InvalidCharacterData(_) => "`]]>` is not allowed in text".to_owned(),
        Error::InvalidString(expected, _) => format!("expected `{expected}`"),
        Error::MalformedEntityReference(_) => "`&` begins no reference here".to_owned(),
        Error::UnknownEntityReference(name, _) => format!("the entity `{name}` is unknown"),
        Error::UnknownNamespace(prefix, _) => format!("the prefix `{prefix}` is not declared"),
        Error::DuplicatedAttribute(name, _) => format!("the attribute `{name}` is given twice"),
        Error::UnexpectedCloseTag(expected, actual, _) => {
            format!("expected `</{expected}>`, not `</{actual}>`")
        }
        Error::UnknownToken(_) => "only comments may stand outside the one root element".to_owned(),
        other => {
            let shown = other.to_string();
            let head = shown.rsplit_once(" at ").map_or(&*shown, |(head, _)| head);
            let mut chars = head.chars();
            let first = chars.next().map(|c| c.to_ascii_lowercase());
            first.into_iter().chain(chars).collect()
        }
    };
    let code = match error {
        Error::DtdDetected => FindingCode::XmlDoctype,
        Error::UnknownNamespace(..)
        | Error::InvalidXmlPrefixUri(_)
        | Error::UnexpectedXmlUri(_)
        | Error::UnexpectedXmlnsUri(_)
        | Error::InvalidElementNamePrefix(_)
        | Error::DuplicatedNamespace(..) => FindingCode::XmlNamespace,
        _ => FindingCode::XmlSyntax,
    };
    let (line, column) = match error {
        Error::NoRootNode | Error::UnclosedRootNode | Error::UnexpectedEndOfStream => {
            text::position(source, source.len())
        }
        _ => {
            let position = error.pos();
            let marked = position.row == 1 && source.starts_with('\u{feff}') && position.col > 1;
            (position.row, position.col - u32::from(marked))
        }
    };
    let finding = Finding::error(code, "", text::short(&message)).at(line, column);
    match error {
        Error::UnknownEntityReference(..) | Error::MalformedEntityReference(_) => {
            finding.fix("write & as &amp; and < as &lt;")
        }
        Error::InvalidName(_)
        | Error::InvalidAttributeValue(_)
        | Error::InvalidChar(_, b'<', _) => finding.fix("write < as &lt; if it is meant as text"),
        Error::InvalidCharacterData(_) => finding.fix("write it as ]]&gt;"),
        Error::DuplicatedAttribute(..) => finding.fix("keep one of them"),
        _ => finding,
    }
}

/// A fault found by the scan, before a tree is built.
struct Fault {
    code: FindingCode,
    offset: usize,
    message: String,
    fix: Option<&'static str>,
}

impl Fault {
    fn new(code: FindingCode, offset: usize, message: impl Into<String>) -> Self {
        Self {
            code,
            offset,
            message: message.into(),
            fix: None,
        }
    }
}

/// Scans the markup once, without recursion: limits depth and attributes, and refuses what
/// roxmltree wrongly accepts. Incomplete markup is left to roxmltree, whose messages are better.
fn scan(source: &str) -> Result<(), Fault> {
    if let Some((offset, c)) = source.char_indices().find(|&(_, c)| !text::is_xml_char(c)) {
        let message = format!("the character U+{:04X} is not allowed in XML", u32::from(c));
        return Err(Fault::new(FindingCode::XmlSyntax, offset, message));
    }
    let bytes = source.as_bytes();
    let start = if source.starts_with('\u{feff}') { 3 } else { 0 };
    let mut at = start;
    let mut depth = 0_usize;
    let has_references = source.contains("&#");
    let check_references = |start, end| {
        if has_references {
            references(source, start, end)?;
        }
        Ok(())
    };
    while let Some(next) = memchr::memchr(b'<', &bytes[at..]).map(|length| at + length) {
        check_references(at, next)?;
        let rest = &source[next..];
        let end = if rest.starts_with("<!--") {
            comment(source, next)?
        } else if rest.starts_with("<![CDATA[") {
            find(source, next + 9, "]]>").map(|end| end + 3)
        } else if rest.starts_with("<?") {
            let end = find(source, next + 2, "?>");
            if let Some(end) = end {
                instruction(source, next, end, next == start)?;
            }
            end.map(|end| end + 2)
        } else if rest
            .get(..9)
            .is_some_and(|head| head.eq_ignore_ascii_case("<!DOCTYPE"))
        {
            let mut fault = Fault::new(FindingCode::XmlDoctype, next, "a DOCTYPE is not allowed");
            fault.fix = Some("remove the DOCTYPE and write entities out");
            return Err(fault);
        } else if rest.starts_with("<:") || rest.starts_with("</:") {
            let message = "a name cannot begin with a colon";
            return Err(Fault::new(FindingCode::XmlSyntax, next, message));
        } else if rest.starts_with("</") {
            depth = depth.saturating_sub(1);
            find(source, next, ">").map(|end| end + 1)
        } else {
            let Some((end, attributes)) = tag_end(bytes, next) else {
                return Ok(());
            };
            if attributes > MAX_ATTRIBUTES {
                let message = format!("the element has more than {MAX_ATTRIBUTES} attributes");
                return Err(Fault::new(FindingCode::XmlTooManyAttributes, next, message));
            }
            check_references(next, end)?;
            if bytes[end - 1] != b'/' {
                depth += 1;
                if depth > MAX_DEPTH {
                    let message = format!("elements nest deeper than {MAX_DEPTH} levels");
                    return Err(Fault::new(FindingCode::XmlTooDeep, next, message));
                }
            }
            Some(end + 1)
        };
        match end {
            Some(end) => at = end,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// The offset after a comment, if it is closed; refuses `--` inside it.
fn comment(source: &str, start: usize) -> Result<Option<usize>, Fault> {
    let Some(end) = find(source, start + 4, "-->") else {
        return Ok(None);
    };
    let content = &source[start + 4..end];
    let fault = |offset, message| Err(Fault::new(FindingCode::XmlSyntax, offset, message));
    if let Some(dashes) = content.find("--") {
        return fault(start + 4 + dashes, "`--` within a comment");
    }
    if content.ends_with('-') {
        return fault(end - 1, "a comment ends with `--->`");
    }
    Ok(Some(end + 3))
}

/// Refuses references to characters that XML does not allow, such as surrogates.
fn references(source: &str, start: usize, end: usize) -> Result<(), Fault> {
    let mut at = start;
    while let Some(length) = source[at..end].find("&#") {
        let offset = at + length;
        let body = source[offset + 2..end]
            .split(';')
            .next()
            .unwrap_or_default();
        let number = match body.strip_prefix('x') {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => body.parse(),
        };
        let signed = body.contains('+');
        if signed || !number.is_ok_and(|n| char::from_u32(n).is_some_and(text::is_xml_char)) {
            let shown = text::short(body);
            let message = format!("the reference `&#{shown};` is no character that XML allows");
            return Err(Fault::new(FindingCode::XmlSyntax, offset, message));
        }
        at = offset + 2;
    }
    Ok(())
}

fn find(source: &str, from: usize, what: &str) -> Option<usize> {
    source.get(from..)?.find(what).map(|at| from + at)
}

/// The offset of the `>` that ends a tag, and the number of its quoted values.
fn tag_end(bytes: &[u8], start: usize) -> Option<(usize, usize)> {
    let mut attributes = 0;
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'>' => return Some((at, attributes)),
            quote @ (b'"' | b'\'') => {
                attributes += 1;
                at += 1 + bytes[at + 1..].iter().position(|&byte| byte == quote)?;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Checks a processing instruction: its target, and the XML declaration's version and encoding.
fn instruction(source: &str, start: usize, end: usize, first: bool) -> Result<(), Fault> {
    let content = &source[start + 2..end];
    let target = content
        .split(|c: char| c.is_ascii_whitespace())
        .next()
        .unwrap_or_default();
    if !text::is_name(target) {
        let message = "a processing instruction needs a valid name";
        return Err(Fault::new(FindingCode::XmlSyntax, start, message));
    }
    if !target.eq_ignore_ascii_case("xml") {
        return Ok(());
    }
    if target != "xml" || !first {
        let message = "the XML declaration must stand once, in lower case, at the very start";
        return Err(Fault::new(FindingCode::XmlSyntax, start, message));
    }
    let bad = || {
        Fault::new(
            FindingCode::XmlSyntax,
            start,
            "the XML declaration is malformed",
        )
    };
    let mut rest = &content[3..];
    let mut seen = Vec::new();
    while !text::is_blank(rest) {
        let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if trimmed.len() == rest.len() {
            return Err(bad());
        }
        let (name, value) = trimmed.split_once('=').ok_or_else(bad)?;
        let name = text::trim(name);
        let value = value.trim_start_matches([' ', '\t', '\r', '\n']);
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let quote = quote.ok_or_else(bad)?;
        let (value, after) = value[1..].split_once(quote).ok_or_else(bad)?;
        match name {
            "version" if seen.is_empty() => {
                if value != "1.0" {
                    let message = format!("XML version `{}` is not 1.0", text::short(value));
                    return Err(Fault::new(FindingCode::XmlVersion, start, message));
                }
            }
            "encoding" if seen == ["version"] => {
                if !value.eq_ignore_ascii_case("utf-8") {
                    let message = format!("the encoding `{}` is not UTF-8", text::short(value));
                    let mut fault = Fault::new(FindingCode::XmlEncoding, start, message);
                    fault.fix = Some("save the contract as UTF-8 and declare that, or nothing");
                    return Err(fault);
                }
            }
            "standalone" if !seen.is_empty() && !seen.contains(&"standalone") => {
                if !matches!(value, "yes" | "no") {
                    return Err(bad());
                }
            }
            _ => return Err(bad()),
        }
        seen.push(name);
        rest = after;
    }
    if seen.is_empty() { Err(bad()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_name_has_no_empty_prefix() {
        assert!(parse("<a><b/></a>").is_ok());
        for text in ["<a></:a>", "<:a></a>", "<:a></:a>", "<a><:b/></a>"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
