//! Finds statements in Markdown: text outside of code and HTML comments.

use std::ops::Range;
use std::sync::LazyLock;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use regex::Regex;

use super::commands::NAME;
use crate::comment::MOST_COMMENT;

// Begins or ends comments and code in HTML. `<!-->` is a complete comment.
#[allow(clippy::expect_used)]
static HTML_MARK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)<!---?>|<!--|-->|</?(?:pre|code)\b[^>]*>?").expect("the expression is valid")
});

/// What is hidden, besides code blocks, `<pre>`, comments and quotations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Also {
    Nothing,
    /// `<code>` and struck out text.
    Inline,
}

struct Source<'t> {
    text: &'t str,
    events: Vec<(Event<'t>, Range<usize>)>,
    /// The hidden ranges, in order and without overlaps.
    hidden: Vec<Range<usize>>,
}

impl<'t> Source<'t> {
    /// Parses a text up to GitHub's limit: deep nesting takes quadratic time.
    fn new(text: &'t str, also: Also) -> Self {
        let end = text.char_indices().nth(MOST_COMMENT);
        let text = end.map_or(text, |(end, _)| &text[..end]);
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH;
        let events: Vec<_> = Parser::new_ext(text, options).into_offset_iter().collect();
        let mut hidden = Vec::new();
        // The start and the end mark of an open comment or element, which may end in a later block.
        let mut open: Option<(usize, &str)> = None;
        for (event, range) in &events {
            let (at, part) = (range.start, &text[range.clone()]);
            match event {
                Event::Start(Tag::HtmlBlock) | Event::InlineHtml(_) => {
                    for mark in HTML_MARK.find_iter(part) {
                        let name = mark.as_str().to_ascii_lowercase();
                        if let Some((start, end)) = open {
                            if name.starts_with(end) {
                                hidden.push(start..at + mark.end());
                                open = None;
                            }
                        } else if let Some(end) = end_of(&name, also) {
                            open = Some((at + mark.start(), end));
                        }
                    }
                }
                Event::Start(Tag::BlockQuote(_)) => {
                    hidden.push(at..at + quoted(part).trim_end().len());
                }
                // Text after a block stays on its own line.
                Event::Start(tag) if is_hidden(tag, also) => {
                    hidden.push(at..at + part.trim_end().len());
                }
                _ => {}
            }
        }
        hidden.extend(open.map(|(start, _)| start..text.len()));
        hidden.sort_by_key(|range| range.start);
        hidden.dedup_by(|next, last| {
            let overlaps = next.start <= last.end;
            if overlaps {
                last.end = last.end.max(next.end);
            }
            overlaps
        });
        Self {
            text,
            events,
            hidden,
        }
    }

    fn visible(&self, range: &Range<usize>) -> String {
        let first = self
            .hidden
            .partition_point(|hidden| hidden.end <= range.start);
        let mut kept = String::new();
        let mut at = range.start;
        for hidden in self.hidden[first..]
            .iter()
            .take_while(|hidden| hidden.start < range.end)
        {
            kept.push_str(&self.text[at..hidden.start.max(at)]);
            at = hidden.end;
        }
        kept.push_str(&self.text[at.min(range.end)..range.end]);
        kept
    }

    /// Whether an HTML block shows nothing: it has only comments or closing tags.
    fn is_silent(&self, block: &Range<usize>) -> bool {
        let html = &self.text[block.clone()];
        let says = |line: &str| !line.trim().is_empty() && !line.trim().starts_with("</");
        (html.starts_with("<!--") || html.starts_with("</"))
            && !self.visible(block).lines().any(says)
    }

    /// The part below the first heading that equals one of these words; everything, if no word is
    /// given. Headings in lists and quotations don't count.
    fn section(&self, words: &[String]) -> Option<Range<usize>> {
        if words.is_empty() {
            return Some(0..self.text.len());
        }
        let mut found: Option<(HeadingLevel, usize)> = None;
        let mut block_end = 0;
        for (event, range) in &self.events {
            let Event::Start(tag) = event else { continue };
            if range.start < block_end {
                continue;
            }
            block_end = range.end;
            let Tag::Heading { level, .. } = tag else {
                continue;
            };
            match found {
                Some((own, start)) if *level <= own => return Some(start..range.start),
                None if is_named(&self.visible(range), words) => found = Some((*level, block_end)),
                _ => {}
            }
        }
        found.map(|(_, start)| start..self.text.len())
    }
}

/// The end mark of the comment or code that an HTML mark begins.
fn end_of(mark: &str, also: Also) -> Option<&'static str> {
    match mark {
        "<!--" => Some("-->"),
        _ if mark.starts_with("<pre") => Some("</pre"),
        _ if mark.starts_with("<code") && also == Also::Inline => Some("</code"),
        _ => None,
    }
}

/// A quotation without an unquoted line right below it: in Markdown, the line continues the quoted
/// paragraph, but mail programs mark each quoted line.
fn quoted(block: &str) -> &str {
    let mut end = 0;
    for line in block.split_inclusive('\n') {
        if line.trim_start().starts_with(NAME) {
            break;
        }
        end += line.len();
    }
    &block[..end]
}

fn is_hidden(block: &Tag<'_>, also: Also) -> bool {
    match block {
        Tag::CodeBlock(_) => true,
        Tag::Strikethrough => also == Also::Inline,
        _ => false,
    }
}

/// The lines of a text outside code blocks, comments and quotations.
pub(super) fn statements(text: &str) -> Vec<String> {
    beneath(text, &[]).unwrap_or_default()
}

/// The statements below the first heading that equals one of these words.
pub(super) fn beneath(text: &str, words: &[String]) -> Option<Vec<String>> {
    let source = Source::new(text, Also::Nothing);
    let section = source.visible(&source.section(words)?);
    let lines = section.lines().filter(|line| !line.trim().is_empty());
    Some(lines.map(str::to_owned).collect())
}

/// The lines of a text without code, quotations and markup. A line ends where markup begins or
/// ends; an empty line separates blocks.
pub(super) fn spoken(text: &str) -> Vec<String> {
    let source = Source::new(text, Also::Inline);
    let mut spoken = String::new();
    for (event, range) in &source.events {
        match event {
            Event::Text(_) | Event::Html(_) => spoken.push_str(&source.visible(range)),
            Event::InlineHtml(html) if html.starts_with("<!--") => {}
            _ => spoken.push('\n'),
        }
    }
    spoken.lines().map(str::to_owned).collect()
}

/// Whether a heading is one of these words, ignoring numbers, a colon, plurals and case.
fn is_named(heading: &str, words: &[String]) -> bool {
    let around = |c: char| !c.is_alphanumeric() && !['(', ')', '~'].contains(&c);
    let text = heading.trim_matches(around);
    let text = text
        .split_once(char::is_whitespace)
        .filter(|(number, _)| {
            number
                .chars()
                .all(|c| c.is_ascii_digit() || ".)".contains(c))
        })
        .map_or(text, |(_, text)| text.trim_matches(around));
    let text = one_line(text).to_lowercase();
    let one = text.strip_suffix('s').unwrap_or(&text);
    words
        .iter()
        .map(|word| word.to_lowercase())
        .any(|word| word == text || word == one)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The items of lists.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Items {
    /// The source text of each, on one line.
    pub(super) all: Vec<String>,
    /// Whether an item has more text: another paragraph, a quotation or code.
    pub(super) more: bool,
}

/// The list items below the first heading that equals one of these words.
pub(super) fn items(text: &str, words: &[String]) -> Option<Items> {
    let source = Source::new(text, Also::Nothing);
    let section = source.section(words)?;
    let mut items: Vec<Range<usize>> = Vec::new();
    let mut more = false;
    // Whether the last item's text can continue.
    let mut open = false;
    let mut skip_to = section.start;
    for (event, range) in &source.events {
        if !(skip_to..section.end).contains(&range.start) {
            continue;
        }
        let last = items.last_mut().filter(|_| open);
        match (event, last) {
            (Event::Start(Tag::Item), _) => {
                items.push(range.start..range.start);
                open = true;
            }
            (Event::TaskListMarker(_), _) => {}
            (Event::Start(Tag::Paragraph | Tag::HtmlBlock | Tag::Heading { .. }), Some(item))
                if item.start == item.end => {}
            (Event::Start(Tag::List(_)) | Event::Rule, _)
            | (Event::End(TagEnd::Item | TagEnd::List(_) | TagEnd::Paragraph), _)
            | (Event::End(TagEnd::HtmlBlock | TagEnd::Heading(_)), _) => open = false,
            (Event::Start(Tag::Heading { .. }), _) => {
                open = false;
                skip_to = range.end;
            }
            (
                Event::Start(
                    block @ (Tag::Paragraph
                    | Tag::HtmlBlock
                    | Tag::BlockQuote(_)
                    | Tag::CodeBlock(_)
                    | Tag::Table(_)),
                ),
                _,
            ) => {
                open = false;
                skip_to = range.end;
                let adds = *block != Tag::HtmlBlock || !source.is_silent(range);
                more |= adds && !items.is_empty();
            }
            (_, Some(item)) => {
                let start = if item.start == item.end {
                    range.start
                } else {
                    item.start
                };
                *item = start..range.end.max(item.end);
            }
            (_, None) => more |= !items.is_empty(),
        }
    }
    let all = items
        .into_iter()
        .map(|item| one_line(&source.visible(&item)));
    // Without a text, GitHub does not show a checkbox.
    let all = all.filter(|item| !["", "[ ]", "[x]", "[X]"].contains(&&**item));
    Some(Items {
        all: all.collect(),
        more,
    })
}

#[cfg(test)]
mod tests {
    use super::{Items, beneath, items, spoken, statements};

    #[test]
    fn comments_and_code_state_nothing() {
        let text = "a <!-- closes #1\ncloses #2 -->b\r\n```sh\ncloses #3\n```\nc\n~~~\n```\n~~~\nd\n<!-- e";
        assert_eq!(statements(text), ["a b", "c", "d"]);
        assert_eq!(statements("````\n```\n````\nx"), ["x"]);
        assert!(statements("```\nnever closed").is_empty());
    }

    #[test]
    fn a_command_below_a_quoted_line_is_no_quotation() {
        let text = "> 12.1 asks: which?\r\n/handoff answer UTF-8\r\n\r\n> /handoff cancel\r\n";
        assert_eq!(statements(text), ["/handoff answer UTF-8"]);
        assert!(statements("> a\nb\n> /handoff answer x").is_empty());
    }

    #[test]
    fn a_heading_ends_where_the_next_of_its_level_begins() {
        let text = "# A\nx\n## 2. Requirements:\n- y\n### more\n- z\n## B\n- w";
        let words = ["requirements".to_owned()];
        let inside = beneath(text, &words).unwrap_or_default();
        assert_eq!(inside, ["- y", "### more", "- z"]);
        assert_eq!(beneath("#requirements\n- y", &words), None);
    }

    #[test]
    fn items_have_marks() {
        for (line, said) in [
            ("- [ ] a b", Some("a b")),
            ("  * [x]  c", Some("c")),
            ("12) d", Some("d")),
            ("3. e", Some("e")),
            ("3.5 is no item", None),
            ("-no", None),
            ("- ", None),
            ("- [ ] ", None),
            ("plain", None),
        ] {
            let all: Vec<String> = said.map(str::to_owned).into_iter().collect();
            let more = false;
            assert_eq!(items(line, &[]), Some(Items { all, more }), "{line}");
        }
    }

    #[test]
    fn a_heading_is_named_as_a_whole() {
        let words = ["requirement".to_owned(), "definition of done".to_owned()];
        for (heading, is_it) in [
            ("## Requirements", true),
            ("### requirement", true),
            ("# 3.1 REQUIREMENTS:", true),
            ("## **Definition of Done** ##", true),
            ("## ✅ Requirements", true),
            ("Requirements\n===", true),
            ("Requirements:\n---", true),
            ("## Non-requirements", false),
            ("## Requirements (out of scope)", false),
            ("## ~~Requirements~~", false),
            ("## No requirements", false),
            ("- Requirements\n---", false),
        ] {
            let text = format!("x\n\n{heading}\n- y");
            assert_eq!(beneath(&text, &words).is_some(), is_it, "{heading}");
        }
        let text = "## Requirements\n- a\n\nElse\n---\n- b";
        assert_eq!(items(text, &words).unwrap_or_default().all, ["a"]);
    }

    #[test]
    fn an_item_is_taken_as_a_whole() {
        let read = |text: &str| items(text, &[]).unwrap_or_default();
        let found = read("Intro:\n- a\n  b\nlazy\n* [ ] c\n1. d\n   - e\n- [ ] \n\n***\n");
        assert_eq!(found.all, ["a b lazy", "c", "d", "e"]);
        assert!(!found.more);
        for text in [
            "- a\n\n  more",
            "- a\n\nmore",
            "- a\n> more",
            "- a\n  ```\n  more\n  ```",
        ] {
            let found = read(text);
            assert_eq!(
                (&found.all[..], found.more),
                (&["a".to_owned()][..], true),
                "{text}"
            );
        }
    }

    #[test]
    fn code_within_a_line_is_not_said() {
        for text in [
            "`closes #1`",
            "``a ` closes\n#1``",
            "    closes #1",
            "a\n\n\tcloses #1",
            "<code>closes #1</code>",
            "<PRE lang=x>\ncloses #1\n</PRE>",
            "a <pre>closes #1</pre>",
            "- a\n\n      closes #1",
        ] {
            assert!(
                !spoken(text).concat().contains('1'),
                "{text}: {:?}",
                spoken(text)
            );
        }
        for text in [
            "`a` closes #1 `b`",
            "a ` closes #1\n\n`",
            "a\n    closes #1",
            "- a\n    - closes #1",
            "- a\n\n    closes #1",
            "<pre>x</pre>\ncloses #1",
            "```a``` closes #1",
        ] {
            assert!(
                spoken(text).concat().contains("closes #1"),
                "{text}: {:?}",
                spoken(text)
            );
        }
    }

    #[test]
    fn markdown_is_read_as_github_reads_it() {
        for (text, said) in [
            // An item continues at its indentation, however deep (CommonMark 5.2).
            ("- a\n  - b\n\n        closes #1\n", false),
            ("- a\n  - b\n\n    closes #1\n", true),
            ("- a\n  ```\n  closes #1\n  ```\n", false),
            ("> ```\n> closes #1\n> ```\n", false),
            // The end of a quotation ends the code in it (CommonMark 4.5).
            ("> ```\n> x\n\ncloses #1\n", true),
            // A comment that begins a line goes on over blocks, within one it doesn't (4.6, 6.6).
            ("<!-- x\n\ncloses #1\n\n-->", false),
            ("a <!-- x\n\ncloses #1 -->", true),
            ("<!-->closes #1", true),
            ("<!-- x --> closes #1", true),
            ("closes <!-- which? --> #1", true),
            ("<pre>\nx\n\ncloses #1\n</pre>", false),
            ("<details>\n<pre>\n\ncloses #1\n\n</pre></details>", false),
            ("<pre>x</pre> closes #1", true),
            ("<details>\ncloses #1\n</details>", true),
            ("<details>\n\n    closes #1\n</details>", false),
            ("[closes #1](https://example.com)", true),
            ("[x](https://example.com \"closes #1\")", false),
            ("[x]: https://example.com \"closes #1\"", false),
            ("closes [#1](https://example.com)", false),
            // A backslash does not end code (6.1), but it keeps a backtick from beginning any (2.4).
            ("\\`closes #1\\`", true),
            ("`a\\` closes #1 `b`", true),
            ("`` a\\` closes #1 ``", false),
            ("| a |\n|---|\n| `closes #1` |", false),
            ("| a |\n|---|\n| closes #1 |", true),
        ] {
            let lines = spoken(text);
            let closes = |line: &String| line.contains("closes") && line.contains("#1");
            assert_eq!(lines.iter().any(closes), said, "{text}: {lines:?}");
        }
    }

    #[test]
    fn commands_are_outside_quotations_and_code() {
        for (text, said) in [
            ("> a\n\n/handoff", true),
            // In CommonMark (5.1) the quoted paragraph continues here, but this is how mail is
            // answered.
            ("> a\n/handoff", true),
            ("> a\n> /handoff", false),
            ("- a\n  ```\n  x\n  ```\n/handoff", true),
            ("- ```\n/handoff", true),
            ("```\nx\n```\n/handoff", true),
            ("<details>\n\n/handoff\n\n</details>", true),
            ("<details>\n/handoff\n</details>", true),
            ("<pre>\n/handoff\n\n/handoff\n</pre>", false),
            ("<!-- x\n\n/handoff\n", false),
        ] {
            let lines = statements(text);
            assert_eq!(
                lines.iter().any(|line| line == "/handoff"),
                said,
                "{text}: {lines:?}"
            );
        }
    }

    #[test]
    fn items_may_nest_and_hold_anything() {
        for (text, all, more) in [
            (
                "- a\n  - `b`\n    - c\n- d",
                &["a", "`b`", "c", "d"][..],
                false,
            ),
            ("- a\n\n- b\n", &["a", "b"], false),
            (
                "- <!-- x --> a\n<!-- y -->\n- b\n\n</details>",
                &["a", "b"],
                false,
            ),
            ("> - a\n\n- b", &["b"], false),
            ("- a\n\n      code", &["a"], true),
            ("- a\n\n| b |\n|---|\n| c |", &["a"], true),
            ("- a\n\n<pre>b</pre>", &["a"], true),
            ("- a\n<details>b</details>", &["a"], true),
            ("- [x](u) a\n- [x] *b*", &["[x](u) a", "*b*"], false),
            ("- a\n\n[b]: c", &["a"], false),
        ] {
            let found = items(text, &[]).unwrap_or_default();
            assert_eq!(
                (&*found.all, found.more),
                (
                    &*all.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(),
                    more
                ),
                "{text}"
            );
        }
        let words = ["requirements".to_owned()];
        for text in [
            "> ## Requirements\n> - a",
            "- ## Requirements\n- a",
            "<div>\n## Requirements\n- a",
        ] {
            assert_eq!(items(text, &words), None, "{text}");
        }
        let text = "## Requirements <!-- x -->\n- a\n\n> ## b\n\n## c\n- d";
        assert_eq!(items(text, &words).unwrap_or_default().all, ["a"]);
    }

    #[test]
    fn long_and_deep_texts_are_read() {
        for unit in [
            "> ", "`", "<!-- ", "a <pre> ", "![", "**a *b ", "- a\n", "|a", "é\n",
        ] {
            let text = unit.repeat((1 << 20) / unit.len());
            let _ = (
                statements(&text),
                spoken(&text),
                items(&text, &["a".to_owned()]),
            );
        }
        let deep = format!("{}closes #1\n{}", "1. ".repeat(1000), "x\n".repeat(1000));
        assert_eq!(
            spoken(&deep)
                .iter()
                .filter(|line| line.contains('1'))
                .count(),
            1
        );
        assert_eq!(items(&deep, &[]).unwrap_or_default().all.len(), 1);
    }
}
