//! What people write on GitHub: Markdown, of which comments and code are no statements.

/// The lines of a text that are neither in a comment nor in a block of code, each
/// without what ends it. They borrow nothing, since comments are cut out of them.
pub(super) fn statements(text: &str) -> Vec<String> {
    lines(text).into_iter().flatten().collect()
}

/// The same, but also without code within a line: what is only shown is not said.
pub(super) fn spoken(text: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    for line in lines(text) {
        let line = line.unwrap_or_default();
        let apart = line.trim().is_empty() || is_heading(&line) || begins_item(&line);
        match blocks.last_mut() {
            Some(block) if !apart => {
                block.push('\n');
                block.push_str(&line);
            }
            _ => blocks.push(line),
        }
    }
    let blocks = blocks.iter().map(|block| {
        let block = without_element(block, "code");
        without_spans(&without_element(&block, "pre"))
    });
    blocks
        .flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// The lines of a text; none stands for one of a block of code.
fn lines(text: &str) -> Vec<Option<String>> {
    let text = without_comments(text);
    let mut fence: Option<(char, usize)> = None;
    let mut preformatted = false;
    // How far a list's text is indented, and whether a line can go on with a paragraph.
    let mut list = 0;
    let mut paragraph = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        let begun = line.trim_start();
        let indent = line
            .chars()
            .take_while(|c| c.is_whitespace())
            .fold(0, |at, c| if c == '\t' { at / 4 * 4 + 4 } else { at + 1 });
        let mark = begun.chars().next().filter(|c| ['`', '~'].contains(c));
        let length = mark.map_or(0, |mark| begun.chars().take_while(|c| *c == mark).count());
        let low = begun.to_ascii_lowercase();
        let shown = match (fence, mark) {
            (Some((open, least)), Some(mark))
                if mark == open && length >= least && begun[length..].trim().is_empty() =>
            {
                fence = None;
                true
            }
            (Some(_), _) => true,
            _ if preformatted || (indent < list + 4 && low.starts_with("<pre")) => {
                preformatted = !low.contains("</pre>");
                true
            }
            // In a code span that begins a line, its marks end in the line.
            (None, Some(mark))
                if length >= 3
                    && indent < list + 4
                    && (mark == '~' || !begun[length..].contains('`')) =>
            {
                fence = Some((mark, length));
                true
            }
            _ => !begun.is_empty() && !paragraph && indent >= list + 4,
        };
        if shown {
            paragraph = false;
            lines.push(None);
            continue;
        }
        if begins_item(line) {
            list =
                indent + begun.len() - after_mark(begun).map_or(0, |rest| rest.trim_start().len());
        } else if !begun.is_empty() && !paragraph {
            list = list.min(indent);
        }
        paragraph = !begun.is_empty() && !is_heading(line);
        lines.push(Some(line.to_owned()));
    }
    lines
}

/// A text without an element and what is in it, and without the rest where it does not end.
fn without_element(text: &str, name: &str) -> String {
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    // Only letters of ASCII change their case, and none its length.
    while let Some(at) = rest.to_ascii_lowercase().find(&open) {
        kept.push_str(&rest[..at]);
        kept.push(' ');
        let end = rest[at..].to_ascii_lowercase().find(&close);
        rest = end.map_or("", |end| &rest[at + end + close.len()..]);
    }
    kept.push_str(rest);
    kept
}

/// A text without what stands between as many backticks and as many more.
fn without_spans(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        let length = rest[at..].bytes().take_while(|b| *b == b'`').count();
        let (before, after) = (&rest[..at], &rest[at + length..]);
        let mark = "`".repeat(length);
        let mut from = 0;
        let mut end = None;
        while let Some(found) = after[from..].find('`') {
            let here = after[from + found..].bytes();
            let run = here.take_while(|b| *b == b'`').count();
            if run == length {
                end = Some(from + found + run);
                break;
            }
            from += found + run;
        }
        kept.push_str(before);
        let escaped = before.ends_with('\\');
        match end.filter(|_| !escaped) {
            Some(end) => {
                kept.push(' ');
                rest = &after[end..];
            }
            None => {
                kept.push_str(&mark);
                rest = after;
            }
        }
    }
    kept.push_str(rest);
    kept
}

/// A text without `<!-- … -->`, and without the rest where one does not end.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = inside.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

/// How deep a heading is; none, if the line is no heading.
fn level(line: &str) -> Option<usize> {
    let begun = line.trim_start();
    let level = begun.chars().take_while(|c| *c == '#').count();
    let rest = &begun[level..];
    let fits = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    (fits && line.len() - begun.len() < 4).then_some(level)
}

fn is_heading(line: &str) -> bool {
    level(line).is_some()
}

/// The lines with headings that are underlined (`=`, `-`) written as the others are.
fn with_marked_headings(lines: Vec<Option<String>>) -> Vec<Option<String>> {
    let mut marked: Vec<Option<String>> = Vec::with_capacity(lines.len());
    for line in lines {
        let under = line.as_deref().map(str::trim).and_then(|under| {
            let all = |mark: char| !under.is_empty() && under.chars().all(|c| c == mark);
            match (all('='), all('-')) {
                (true, _) => Some("#"),
                (_, true) => Some("##"),
                _ => None,
            }
        });
        let apart = |line: &Option<String>| {
            line.as_ref()
                .is_none_or(|line| line.trim().is_empty() || is_heading(line))
        };
        let alone = marked
            .len()
            .checked_sub(2)
            .is_none_or(|at| apart(&marked[at]));
        match (under, marked.last_mut()) {
            (Some(mark), Some(Some(text)))
                if alone && !text.trim().is_empty() && !is_heading(text) && !begins_item(text) =>
            {
                *text = format!("{mark} {}", text.trim());
            }
            _ => marked.push(line),
        }
    }
    marked
}

/// Says whether a heading says one of these words and no more: numbered or not, with a colon
/// or not, as one thing or several, in whatever case.
fn is_named(line: &str, words: &[String]) -> bool {
    let Some(level) = level(line) else {
        return false;
    };
    let around = |c: char| !c.is_alphanumeric() && !['(', ')', '~'].contains(&c);
    let text = line.trim_start()[level..].trim_matches(around);
    let text = text
        .split_once(char::is_whitespace)
        .filter(|(number, _)| {
            number
                .chars()
                .all(|c| c.is_ascii_digit() || ".)".contains(c))
        })
        .map_or(text, |(_, text)| text.trim_matches(around));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.to_lowercase();
    let one = text.strip_suffix('s').unwrap_or(&text);
    words
        .iter()
        .map(|word| word.to_lowercase())
        .any(|word| word == text || word == one)
}

/// The lines beneath the first heading that says one of these words; all of them, if no word
/// is given. None, if there is no such heading.
fn below(text: &str, words: &[String]) -> Option<Vec<Option<String>>> {
    let lines = with_marked_headings(lines(text));
    if words.is_empty() {
        return Some(lines);
    }
    let named = |line: &Option<String>| line.as_ref().is_some_and(|line| is_named(line, words));
    let at = lines.iter().position(named)?;
    let depth = |line: &Option<String>| line.as_deref().and_then(level);
    let own = depth(&lines[at]);
    let inside = lines[at + 1..].iter();
    let inside = inside.take_while(|line| depth(line).is_none_or(|_| depth(line) > own));
    Some(inside.cloned().collect())
}

/// The statements beneath the first heading that says one of these words.
pub(super) fn beneath(text: &str, words: &[String]) -> Option<Vec<String>> {
    Some(below(text, words)?.into_iter().flatten().collect())
}

/// The items of lists.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Items {
    /// What each says, in one line.
    pub(super) all: Vec<String>,
    /// Whether more is said after an item, in a paragraph of its own, a quotation or code.
    pub(super) more: bool,
}

/// The items beneath the first heading that says one of these words.
pub(super) fn items(text: &str, words: &[String]) -> Option<Items> {
    let mut items = Items::default();
    // Whether the line before belongs to an item, so that this one can go on with it.
    let mut goes_on = false;
    for line in below(text, words)? {
        let any = !items.all.is_empty();
        let Some(line) = line else {
            items.more |= any;
            goes_on = false;
            continue;
        };
        let text = line.trim();
        let is_rule = |mark: char| {
            text.chars().filter(|c| *c == mark).count() >= 3
                && text.chars().all(|c| c == mark || c.is_whitespace())
        };
        if text.is_empty() || is_heading(text) || ['-', '*', '_'].into_iter().any(is_rule) {
            goes_on = false;
        } else if begins_item(text) {
            items.all.push(item(text).unwrap_or_default().to_owned());
            goes_on = true;
        } else if text.starts_with("</") {
            goes_on = false;
        } else if let (true, Some(last)) = (
            goes_on && !text.starts_with(['>', '|']),
            items.all.last_mut(),
        ) {
            last.push(' ');
            last.push_str(text);
        } else {
            items.more |= any;
            goes_on = false;
        }
    }
    items.all.retain(|item| !item.trim().is_empty());
    Some(items)
}

/// What stands after the mark that begins an item.
fn after_mark(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix(['-', '*', '+']).or_else(|| {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let rest = line[digits..].strip_prefix(['.', ')'])?;
        (1..=9).contains(&digits).then_some(rest)
    })?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some(rest)
}

/// Says whether a line begins an item of a list, also one that says nothing.
fn begins_item(line: &str) -> bool {
    after_mark(line).is_some()
}

/// What an item of a list says; none, if the line is no item.
fn item(line: &str) -> Option<&str> {
    let rest = after_mark(line.trim())?.trim_start();
    let task = ["[ ]", "[x]", "[X]"];
    let rest = task
        .iter()
        .find_map(|mark| rest.strip_prefix(mark))
        .unwrap_or(rest);
    Some(rest.trim()).filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{beneath, item, items, spoken, statements};

    #[test]
    fn comments_and_code_state_nothing() {
        let text = "a <!-- closes #1\ncloses #2 -->b\r\n```sh\ncloses #3\n```\nc\n~~~\n```\n~~~\nd\n<!-- e";
        assert_eq!(statements(text), ["a b", "c", "d"]);
        assert_eq!(statements("````\n```\n````\nx"), ["x"]);
        assert!(statements("```\nnever closed").is_empty());
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
            assert_eq!(item(line), said, "{line}");
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
}
