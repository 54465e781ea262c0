//! Reads lines of input in bounded memory.

use std::io::{BufRead, Read};

use serde_json::Value;

use super::message::identity;

/// The maximum length of a line, in bytes.
pub(super) const LONGEST: usize = 16 * 1024 * 1024;

/// How many bytes of both ends of a longer line are kept, to find the request's id.
const END: usize = 4 * 1024;

const ID: &[u8] = br#""id":"#;

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// Over the limit and discarded; with its request's id, if that is near one of its ends.
    TooLong(Option<Value>),
}

/// Iterates over the lines of an input until it ends or fails; the last line break is optional.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    longest: usize,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, longest: usize) -> Self {
        Self { input, longest }
    }

    /// Reads to the end of the line, but at most this many bytes.
    fn read(&mut self, most: usize, line: &mut Vec<u8>) -> Option<usize> {
        let mut input = self.input.by_ref().take(most as u64);
        input.read_until(b'\n', line).ok()
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let mut line = Vec::new();
        if self.read(self.longest + 1, &mut line)? == 0 {
            return None;
        }
        if line.pop_if(|last| *last == b'\n').is_some() || line.len() <= self.longest {
            return Some(Line::Whole(line));
        }
        let begin = line[..END.min(self.longest)].to_vec();
        let mut end = line.split_off(line.len().saturating_sub(END));
        // Release the memory of a long line.
        drop(line);
        while !end.ends_with(b"\n") && self.read(END, &mut end)? > 0 {
            end.drain(..end.len().saturating_sub(2 * END));
        }
        Some(Line::TooLong(id_within(&begin, &end)))
    }
}

/// The id of a request of which only both ends are known: clients write it first or last. Ids in
/// nested objects or in strings do not count.
fn id_within(begin: &[u8], end: &[u8]) -> Option<Value> {
    let mut places = begin.windows(ID.len());
    let first = places.position(|bytes| bytes == ID).and_then(|at| {
        let (before, rest) = begin.split_at(at);
        let before = [before, br#""id":0}"#].concat();
        serde_json::from_slice::<Value>(&before).ok()?;
        let mut values = serde_json::Deserializer::from_slice(&rest[ID.len()..]).into_iter();
        let value = values.next()?.ok()?;
        // A number at the very end may be cut off.
        (ID.len() + values.byte_offset() < rest.len()).then_some(value)
    });
    let last = || {
        let at = end.windows(ID.len()).rposition(|bytes| bytes == ID)?;
        let separated = end[..at].trim_ascii_end().ends_with(b",");
        let rest = [b"{", &end[at..]].concat();
        let mut found: Value = serde_json::from_slice(&rest).ok()?;
        separated.then(|| found["id"].take())
    };
    identity(&first.or_else(last)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Line, Lines, id_within};

    fn all(input: &[u8], longest: usize) -> Vec<Line> {
        Lines::new(input, longest).collect()
    }

    #[test]
    fn a_line_has_an_end_or_is_the_last_and_a_long_one_takes_no_other_with_it() {
        let complete = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(all(b"", 9), []);
        assert_eq!(
            all(b"a\n\nb", 9),
            [complete("a"), complete(""), complete("b")]
        );
        assert_eq!(
            all(b"123456789\n1234567890\nc\n", 9),
            [complete("123456789"), Line::TooLong(None), complete("c")]
        );
        assert_eq!(all(b"1234567890", 9), [Line::TooLong(None)]);
        let long = format!("{{\"id\":\"x\",\"a\":\"{}\"}}\nb", "a".repeat(100_000));
        let long = all(long.as_bytes(), 50_000);
        assert_eq!(long, [Line::TooLong(Some(json!("x"))), complete("b")]);
    }

    #[test]
    fn an_id_is_found_at_either_end_and_nowhere_else() {
        for (begin, end, id) in [
            (
                r#"{"jsonrpc":"2.0","id": 7,"params":{"a"#,
                "aa\"}}",
                json!(7),
            ),
            (r#"{"id":"a b","#, "aa\"}", json!("a b")),
            (
                r#"{"params":{"a"#,
                r#"aa"},"jsonrpc":"2.0","id":7}"#,
                json!(7),
            ),
            (r#"{"params":{"a"#, "aa\"},\"id\":\"x\"}\r", json!("x")),
            (r#"{"params":{"id":7,"a"#, "aa\"}}", json!(null)),
            (r#"{"params":{"a"#, r#"aa","id":7}}"#, json!(null)),
            (r#"{"params":["a"#, r#"aa",{"id":7}]}"#, json!(null)),
            (r#"{"a":"\"id":7,"#, r#"a"}"#, json!(null)),
            (r#"{"a"#, r#"a,\"id\":7}"}"#, json!(null)),
            (r#"{"a"#, r#"a,\"id":7}"#, json!(null)),
            (r#"{"id":7"#, "7}", json!(null)),
            (r#"{"id":true,"#, "}", json!(null)),
        ] {
            let found = id_within(begin.as_bytes(), end.as_bytes());
            assert_eq!(json!(found), id, "{begin} … {end}");
        }
    }
}
