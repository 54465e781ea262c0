//! The wrapping around a contract: a byte order mark, or a Markdown code fence, which many agents
//! add unasked.

use handoff_base::text::without_mark;

use super::line::Fence;
use super::text;

/// The bytes without a byte order mark and, if the whole document is one code block of XML or JSON,
/// without its fence.
pub fn unwrapped(bytes: &[u8]) -> &[u8] {
    let bytes = without_mark(bytes);
    let text = std::str::from_utf8(bytes).ok();
    text.and_then(in_fence).map_or(bytes, str::as_bytes)
}

/// The content of a text's only code block, if there is nothing else.
fn in_fence(text: &str) -> Option<&str> {
    let document = text::trim(text);
    let (first, rest) = document.split_once('\n')?;
    let opened = Fence::of(first)?;
    let (inside, last) = rest.rsplit_once('\n')?;
    let closes = |line: &str| Fence::of(line).is_some_and(|fence| fence.closes(opened));
    let is_one = closes(last) && !inside.lines().any(closes);
    // A fenced Markdown message has a parser of its own.
    let is_contract = text::trim(inside).starts_with(['<', '{']);
    (is_one && is_contract).then_some(inside)
}

/// Whether a text has a code block.
pub(super) fn has_fence(text: &str) -> bool {
    text.lines().any(|line| Fence::of(line).is_some())
}

#[cfg(test)]
mod tests {
    use super::unwrapped;

    #[test]
    fn a_mark_and_a_fence_around_the_whole_are_not_the_contract() {
        for (document, contract) in [
            ("\u{feff}{}", "{}"),
            ("```xml\n<a/>\n```", "<a/>"),
            ("\u{feff}\n\n```json\n{\n}\n```  \n\n", "{\n}"),
            ("~~~~\n<a>\n```\n</a>\n~~~~~", "<a>\n```\n</a>"),
        ] {
            assert_eq!(unwrapped(document.as_bytes()), contract.as_bytes());
        }
        for document in [
            "<a/>",
            "Here it is:\n```xml\n<a/>\n```",
            "```xml\n<a/>\n```\nI hope it is right.",
            "```xml\n<a/>\n```\n```xml\n<b/>\n```",
            "```xml\n<a/>",
            "```\nHANDOFF: A → B\n```",
            "```",
            "",
        ] {
            assert_eq!(unwrapped(document.as_bytes()), document.as_bytes());
        }
    }
}
