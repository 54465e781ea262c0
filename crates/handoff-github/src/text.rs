//! Escapes foreign text where GitHub would read it as Markdown or HTML, or as a mention or a
//! reference.

use handoff::base::text::{cut, one_line, plain};

/// Returns the fence that closes the code block in which a Markdown text ends, if any.
pub fn open_fence(text: &str) -> Option<String> {
    let mut open: Option<(char, usize, usize)> = None;
    for line in text.lines() {
        let rest = line.trim_start_matches(' ');
        let sign = rest.chars().next().filter(|c| ['`', '~'].contains(c));
        let indent = line.len() - rest.len();
        let Some(sign) = sign.filter(|_| indent < 4) else {
            continue;
        };
        let after = rest.trim_start_matches(sign);
        let length = rest.len() - after.len();
        match open {
            Some((of, least, _)) if sign == of && length >= least && after.trim().is_empty() => {
                open = None;
            }
            // After a fence of backticks, another backtick makes it inline code.
            None if length >= 3 && !(sign == '`' && after.contains('`')) => {
                open = Some((sign, length, indent));
            }
            _ => {}
        }
    }
    // Indent it like the opening fence, which may be in a list item.
    open.map(|(sign, length, indent)| " ".repeat(indent) + &sign.to_string().repeat(length))
}

/// Puts a text on one line without invisible or reordering characters, truncated after `most`
/// characters.
pub fn line(text: &str, most: usize) -> String {
    one_line(&cut(text.trim(), most))
}

/// Renders a text as a Markdown code span, in which nothing is a mention, a reference, a link, an
/// image or markup.
pub fn code(text: &str, most: usize) -> String {
    let line = line(text, most);
    if line.is_empty() {
        return "–".to_owned();
    }
    let fence = "`".repeat(longest_run(&line) + 1);
    // A backtick next to the fence would lengthen it.
    let pad = if line.starts_with('`') || line.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{line}{pad}{fence}")
}

/// Renders a text as a code span in a cell of a table, which `|` would end.
pub fn cell(text: &str, most: usize) -> String {
    let mut safe = String::new();
    for c in code(text, most).chars() {
        if c == '|' {
            // After a backslash in the text, our own would be the escaped character.
            let apart = if safe.ends_with('\\') { " " } else { "" };
            safe += apart;
            safe.push('\\');
        }
        safe.push(c);
    }
    safe
}

/// Renders the last `most` bytes of a text as a code block.
pub fn block(text: &str, most: usize) -> String {
    let shown = plain(text.trim_end()).replace('\t', "    ");
    let start = shown.len().saturating_sub(most);
    let start = (start..=shown.len()).find(|at| shown.is_char_boundary(*at));
    let shown = &shown[start.unwrap_or_default()..];
    let cut = if start > Some(0) { "…" } else { "" };
    let fence = "`".repeat(longest_run(shown).max(2) + 1);
    format!("{fence}text\n{cut}{shown}\n{fence}\n")
}

fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    for run in text.split(|c| c != '`') {
        longest = longest.max(run.len());
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::{block, cell, code, line};

    #[test]
    fn code_spans_end_where_the_text_does() {
        for (text, safe) in [
            ("plain", "`plain`"),
            ("", "–"),
            ("a `b` c", "``a `b` c``"),
            ("`b", "`` `b ``"),
            ("```", "```` ``` ````"),
            ("a\nb", "`a b`"),
            ("a\u{202e}b", "`a\\u{202e}b`"),
        ] {
            assert_eq!(code(text, 100), safe);
        }
        assert_eq!(line("abcdef", 3), "abc…");
        assert_eq!(cell("a|b\\|c", 100), "`a\\|b\\ \\|c`");
    }

    #[test]
    fn blocks_are_cut_at_their_beginning() {
        assert_eq!(block("a\n```\nb\n", 99), "````text\na\n```\nb\n````\n");
        assert_eq!(block("äöü", 3), "```text\n…ü\n```\n");
    }
}
