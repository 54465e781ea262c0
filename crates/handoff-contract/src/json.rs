//! Strict JSON: a bounded scan, then serde_json; places are found again only when they are needed.

use std::collections::HashSet;
use std::fmt;

use handoff_base::finding::Finding;
use handoff_base::pointer::push_part;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{MAX_DEPTH, MAX_FINDINGS, text};

/// Parses a text that is valid UTF-8 and within the size cap.
pub(super) fn parse(source: &str) -> Result<Value, Vec<Finding>> {
    if source.starts_with('\u{feff}') {
        return Err(vec![
            Finding::error("json.bom", "", "JSON must not start with a byte order mark")
                .at(1, 1)
                .fix("save it as UTF-8 without a byte order mark"),
        ]);
    }
    let value = parse_any(source)?;
    if value.is_object() {
        return Ok(value);
    }
    Err(vec![
        Finding::error("json.not_an_object", "", "a contract is a JSON object")
            .at(1, 1)
            .fix("put the contract's fields into an object"),
    ])
}

/// Says whether a text that is no JSON would be, if more followed.
pub(super) fn ends_early(source: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(source).is_err_and(|error| error.is_eof())
}

/// Parses any value, as strictly and within the same bounds.
pub(super) fn parse_any(source: &str) -> Result<Value, Vec<Finding>> {
    if let Some(offset) = too_deep(source.as_bytes()) {
        let (line, column) = text::position(source, offset);
        let message = format!("objects and arrays nest deeper than {MAX_DEPTH} levels");
        return Err(vec![
            Finding::error("json.too_deep", "", message).at(line, column),
        ]);
    }
    let mut suspicious = false;
    let mut reader = serde_json::Deserializer::from_str(source);
    let value = Strict(&mut suspicious)
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| vec![syntax(source, &error)])?;
    let mut findings = Vec::new();
    if suspicious {
        let mut inspector = Inspector {
            source,
            bytes: source.as_bytes(),
            at: 0,
            pointer: String::new(),
            findings: &mut findings,
        };
        inspector.value();
    }
    if findings.is_empty() {
        Ok(value)
    } else {
        Err(findings)
    }
}

fn syntax(source: &str, error: &serde_json::Error) -> Finding {
    let shown = error.to_string();
    let message = shown
        .rsplit_once(" at line ")
        .map_or(shown.as_str(), |(head, _)| head);
    let code = if message == "number out of range" {
        "json.number_range"
    } else {
        "json.syntax"
    };
    let said = match message {
        "key must be a string" => "expected a key in double quotes",
        "expected value" => "expected a value",
        "trailing comma" => "a comma without a value after it",
        "trailing characters" => "only one JSON value is allowed, and more follows",
        "EOF while parsing an object" => "the document ends within an object",
        "EOF while parsing a list" => "the document ends within a list",
        "EOF while parsing a string" => "the document ends within a text",
        "EOF while parsing a value" => "the document ends where a value is expected",
        "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            "a \\u escape that is no character"
        }
        other if other.starts_with("control character") => {
            "a line break or control character within a text"
        }
        other => other,
    };
    let (line, column) = text::position_in_line(source, error.line(), error.column());
    let finding = Finding::error(code, "", text::short(said)).at(line, column);
    match message {
        "trailing comma" => finding.fix("remove the comma"),
        other if other.starts_with("control character") => {
            finding.fix("close the text with a double quote, or write a line break as \\n")
        }
        _ => finding,
    }
}

/// Offset of the first bracket that nests too deep.
fn too_deep(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at) - 1,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Some(at);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Reads a value; a duplicate key, a forbidden character or a float raises the flag.
struct Strict<'f>(&'f mut bool);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        *self.0 = true;
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        *self.0 |= forbidden(value).is_some();
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Strict(self.0))? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            *self.0 |= forbidden(&key).is_some();
            let value = access.next_value_seed(Strict(self.0))?;
            *self.0 |= members.insert(key, value).is_some();
        }
        Ok(Value::Object(members))
    }
}

/// The first character that XML, and so a contract, cannot hold.
fn forbidden(value: &str) -> Option<char> {
    value.chars().find(|&c| !text::is_xml_char(c))
}

/// Walks a valid text again to say what is suspicious, and where.
struct Inspector<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    pointer: String,
    findings: &'a mut Vec<Finding>,
}

impl Inspector<'_> {
    fn value(&mut self) {
        self.at = skip_blanks(self.bytes, self.at);
        match self.bytes.get(self.at) {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => {
                self.string("the value");
            }
            _ => self.scalar(),
        }
    }

    fn object(&mut self) {
        let mut seen = HashSet::new();
        self.at = skip_blanks(self.bytes, self.at + 1);
        while self.bytes.get(self.at) == Some(&b'"') {
            let offset = self.at;
            let length = self.pointer.len();
            let key = self.string("a key");
            push_part(&mut self.pointer, &key);
            if !seen.insert(key.clone()) {
                let message = format!("the key `{}` is given twice", text::short(&key));
                self.report("json.duplicate_key", offset, message);
            }
            self.at = skip_blanks(self.bytes, self.at) + 1;
            self.value();
            self.pointer.truncate(length);
            self.next_item();
        }
        self.at += 1;
    }

    fn array(&mut self) {
        self.at = skip_blanks(self.bytes, self.at + 1);
        let mut index = 0_usize;
        while !matches!(self.bytes.get(self.at), None | Some(b']')) {
            let length = self.pointer.len();
            push_part(&mut self.pointer, &index.to_string());
            self.value();
            self.pointer.truncate(length);
            self.next_item();
            index += 1;
        }
        self.at += 1;
    }

    fn next_item(&mut self) {
        self.at = skip_blanks(self.bytes, self.at);
        if self.bytes.get(self.at) == Some(&b',') {
            self.at = skip_blanks(self.bytes, self.at + 1);
        }
    }

    fn string(&mut self, what: &str) -> String {
        let start = self.at;
        self.at = string_end(self.bytes, start);
        let value = unquote(&self.source[start..self.at]);
        if let Some(c) = forbidden(&value) {
            let message = format!(
                "{what} holds the character U+{:04X}, which a contract cannot hold",
                u32::from(c)
            );
            self.report("text.control_character", start, message);
        }
        value
    }

    fn scalar(&mut self) {
        let start = self.at;
        self.at = scalar_end(self.bytes, start);
        let raw = &self.source[start..self.at];
        let integral = raw.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            && !raw.contains(['.', 'e', 'E']);
        if integral && raw.parse::<i64>().is_err() && raw.parse::<u64>().is_err() {
            let message = format!("the number {} does not fit 64 bits", text::short(raw));
            self.report("json.number_range", start, message);
        }
    }

    fn report(&mut self, code: &'static str, offset: usize, message: String) {
        if self.findings.len() >= MAX_FINDINGS {
            return;
        }
        let (line, column) = text::position(self.source, offset);
        let mut path = self.pointer.clone();
        text::bound(&mut path);
        self.findings
            .push(Finding::error(code, path, message).at(line, column));
    }
}

/// Finds the value at the parts of a pointer in a valid text: the byte offset of the deepest value on
/// the way, and how many parts led there.
pub(super) fn locate(source: &str, parts: &[String]) -> (usize, usize) {
    let bytes = source.as_bytes();
    let mut at = skip_blanks(bytes, 0);
    for (depth, part) in parts.iter().enumerate() {
        match step(source, at, part) {
            Some(next) => at = next,
            None => return (at, depth),
        }
    }
    (at, parts.len())
}

fn step(source: &str, start: usize, part: &str) -> Option<usize> {
    let bytes = source.as_bytes();
    let is_object = match bytes.get(start)? {
        b'{' => true,
        b'[' => false,
        _ => return None,
    };
    let wanted = if is_object {
        0
    } else {
        part.parse::<usize>().ok()?
    };
    let mut at = skip_blanks(bytes, start + 1);
    let mut index = 0;
    while !matches!(bytes.get(at)?, b'}' | b']') {
        let mut found = !is_object && index == wanted;
        if is_object {
            let end = string_end(bytes, at);
            found = unquote(&source[at..end]) == part;
            at = skip_blanks(bytes, skip_blanks(bytes, end) + 1);
        }
        if found {
            return Some(at);
        }
        at = skip_blanks(bytes, value_end(bytes, at));
        if bytes.get(at) == Some(&b',') {
            at = skip_blanks(bytes, at + 1);
        }
        index += 1;
    }
    None
}

fn unquote(raw: &str) -> String {
    serde_json::from_str(raw).unwrap_or_default()
}

fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|&byte| text::is_blank_byte(byte)) {
        at += 1;
    }
    at
}

/// Offset after the string that starts at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn scalar_end(bytes: &[u8], start: usize) -> usize {
    let length = bytes[start..]
        .iter()
        .position(|&byte| matches!(byte, b',' | b']' | b'}') || text::is_blank_byte(byte));
    length.map_or(bytes.len(), |length| start + length)
}

fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = string_end(bytes, at);
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            _ if depth == 0 => return scalar_end(bytes, at),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}
