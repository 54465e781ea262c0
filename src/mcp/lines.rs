//! The lines of the input, of which none takes more than so much memory.

use rmcp::model::RequestId;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// How many bytes a line may have.
pub(super) const LONGEST: usize = 16 * 1024 * 1024;

/// How much of either end of a longer line is kept, to find whom to answer.
const END: usize = 4 * 1024;

const ID: &[u8] = br#""id":"#;

/// A line that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// It was longer than a line may be, and is gone; its request's id, where one of
    /// its ends says it.
    TooLong(Option<RequestId>),
}

/// The lines of an input. Whoever stops waiting for a line loses nothing of it.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: BufReader<R>,
    longest: usize,
    /// What was read of a line, and of one that is too long its last part.
    read: Vec<u8>,
    /// How a line that is too long begins.
    begin: Option<Vec<u8>>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(input: R, longest: usize) -> Self {
        Self {
            input: BufReader::new(input),
            longest,
            read: Vec::new(),
            begin: None,
        }
    }

    /// The next line; the last needs no end. None where the input ended or broke.
    pub(super) async fn next(&mut self) -> Option<Line> {
        loop {
            let Ok(bytes) = self.input.fill_buf().await else {
                return None;
            };
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let is_over = bytes.is_empty();
            let part = &bytes[..end.unwrap_or(bytes.len())];
            self.read.extend_from_slice(part);
            let consumed = part.len() + usize::from(end.is_some());
            self.input.consume(consumed);
            if self.begin.is_none() && self.read.len() > self.longest {
                self.begin = Some(self.read[..END.min(self.longest)].to_vec());
            }
            if self.begin.is_some() && self.read.len() > 2 * END {
                // What was taken for a long line is given back.
                self.read = self.read.split_off(self.read.len() - END);
            }
            if end.is_some() || is_over && (!self.read.is_empty() || self.begin.is_some()) {
                let read = std::mem::take(&mut self.read);
                return Some(match self.begin.take() {
                    None => Line::Whole(read),
                    Some(begin) => Line::TooLong(id_within(&begin, &read)),
                });
            }
            if is_over {
                return None;
            }
        }
    }
}

/// The id of a request of which only the ends are known: clients write it first or last.
/// What stands deeper, or in a text, is not taken for it.
fn id_within(begin: &[u8], end: &[u8]) -> Option<RequestId> {
    let mut places = begin.windows(ID.len());
    let first = places.position(|bytes| bytes == ID).and_then(|at| {
        let (before, rest) = begin.split_at(at);
        let before = [before, br#""id":0}"#].concat();
        serde_json::from_slice::<Value>(&before).ok()?;
        let mut values = serde_json::Deserializer::from_slice(&rest[ID.len()..]).into_iter();
        let value = values.next()?.ok()?;
        // A number may go on where the rest is cut off.
        (ID.len() + values.byte_offset() < rest.len()).then_some(value)
    });
    let last = || {
        let at = end.windows(ID.len()).rposition(|bytes| bytes == ID)?;
        let separated = end[..at].trim_ascii_end().ends_with(b",");
        let rest = [b"{", &end[at..]].concat();
        let mut found: Value = serde_json::from_slice(&rest).ok()?;
        separated.then(|| found["id"].take())
    };
    serde_json::from_value(first.or_else(last)?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Line, Lines, id_within};

    fn all(input: &[u8], longest: usize) -> Vec<Line> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.unwrap_or_else(|error| panic!("{error}"));
        runtime.block_on(async {
            let mut lines = Lines::new(input, longest);
            let mut all = Vec::new();
            while let Some(line) = lines.next().await {
                all.push(line);
            }
            all
        })
    }

    #[test]
    fn a_line_has_an_end_or_is_the_last_and_a_long_one_takes_no_other_with_it() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(all(b"", 9), []);
        assert_eq!(all(b"a\n\nb", 9), [whole("a"), whole(""), whole("b")]);
        assert_eq!(
            all(b"123456789\n1234567890\nc\n", 9),
            [whole("123456789"), Line::TooLong(None), whole("c")]
        );
        assert_eq!(all(b"1234567890", 9), [Line::TooLong(None)]);
        let long = format!("{{\"id\":\"x\",\"a\":\"{}\"}}\nb", "a".repeat(100_000));
        let id = serde_json::from_value(json!("x")).ok();
        assert_eq!(
            all(long.as_bytes(), 50_000),
            [Line::TooLong(id), whole("b")]
        );
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
