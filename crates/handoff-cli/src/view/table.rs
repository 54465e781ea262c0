//! Lays out rows in columns by display width.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The space between two columns.
const GAP: usize = 2;

/// The minimum room for text; with less, it goes on its own line.
pub(super) const LEAST: usize = 24;

/// The minimum room for text about a handoff's subject and state.
pub(super) const LEAST_SUBJECT: usize = 48;

/// The indentation of a row's further lines.
const INDENT: &str = "  ";

/// The prefix of text below its row, so that it can't imitate the program's lines.
const BENEATH: &str = "  | ";

/// The display width of a text; styles have none.
pub(super) fn width(text: &str) -> usize {
    if is_plain(text) {
        return text.len();
    }
    anstream::adapter::strip_str(text).to_string().width()
}

/// Whether a text is ASCII without control characters: one column per byte.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Aligns columns without a width limit.
pub fn columns(rows: &[Vec<String>]) -> String {
    let widths = widths(rows);
    let mut text = String::new();
    for row in rows {
        line(&mut text, row, &widths);
    }
    text
}

/// Aligns columns within a width. The last column is text and is truncated; if that leaves less
/// than `least`, it goes below its row; if the other columns don't fit either, each row is wrapped.
pub(super) fn fitted(rows: &[Vec<String>], most: usize, least: usize, ellipsis: &str) -> String {
    let mut rows = rows.to_vec();
    drop_empty(&mut rows);
    let widths = widths(&rows);
    let Some((text_width, others)) = widths.split_last() else {
        return String::new();
    };
    let fixed: usize = others.iter().map(|width| width + GAP).sum();
    let room = most.saturating_sub(fixed);
    let mut shown = String::new();
    for mut row in rows {
        if room >= least.min(*text_width) {
            if row.len() == widths.len()
                && let Some(last) = row.last_mut()
            {
                *last = cut_to_columns(last, room, ellipsis);
            }
            line(&mut shown, &row, &widths);
            continue;
        }
        let text = row.split_off(others.len().min(row.len()));
        if fixed <= most + GAP {
            line(&mut shown, &row, &widths);
        } else {
            flow(&mut shown, &row, most);
        }
        let room = most.saturating_sub(BENEATH.len()).max(1);
        for text in text.iter().filter(|text| !text.is_empty()) {
            shown += &format!("{BENEATH}{}\n", cut_to_columns(text, room, ellipsis));
        }
    }
    shown
}

/// Removes columns that are empty in all rows.
fn drop_empty(rows: &mut [Vec<String>]) {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let is_used = |column: usize| {
        let mut cells = rows.iter().filter_map(|row| row.get(column));
        cells.any(|cell| width(cell) > 0)
    };
    let used: Vec<bool> = (0..count).map(|i| i + 1 == count || is_used(i)).collect();
    for row in rows {
        let mut column = used.iter();
        row.retain(|_| column.next() == Some(&true));
    }
}

/// The width of each column's widest cell.
fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths = Vec::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let wide = width(cell);
            match widths.get_mut(column) {
                Some(widest) => *widest = wide.max(*widest),
                None => widths.push(wide),
            }
        }
    }
    widths
}

/// A row on one line.
fn line(text: &mut String, row: &[String], widths: &[usize]) {
    for (column, cell) in row.iter().enumerate() {
        *text += cell;
        if column + 1 < row.len() {
            *text += &" ".repeat(widths[column] - width(cell) + GAP);
        }
    }
    // Empty cells at the end leave no trailing blanks.
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
}

/// A row wrapped to several lines.
fn flow(text: &mut String, row: &[String], most: usize) {
    let mut used = 0;
    for cell in row.iter().filter(|cell| width(cell) > 0) {
        let wide = width(cell);
        if used > 0 && used + GAP + wide > most {
            *text += "\n";
            *text += INDENT;
            used = INDENT.len();
        } else if used > 0 {
            *text += &" ".repeat(GAP);
            used += GAP;
        }
        *text += cell;
        used += wide;
    }
    text.push('\n');
}

/// Truncates a text to this width, with a mark. Grapheme clusters are not split.
pub fn cut_to_columns(text: &str, most: usize, ellipsis: &str) -> String {
    if is_plain(text) && text.len() <= most {
        return text.to_owned();
    }
    // Foreign text, already escaped: it has no styles.
    if text.graphemes(true).map(room_for).sum::<usize>() <= most {
        return text.to_owned();
    }
    let mut room = most.saturating_sub(ellipsis.width());
    let mut end = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        let Some(left) = room.checked_sub(room_for(cluster)) else {
            break;
        };
        room = left;
        end = at + cluster.len();
    }
    format!("{}{ellipsis}", text[..end].trim_end())
}

/// The maximum width of a character: terminals disagree about joined emoji, and the widest
/// rendering must not break the line.
fn room_for(cluster: &str) -> usize {
    let parts = cluster.chars().filter_map(UnicodeWidthChar::width);
    cluster.width().max(parts.sum())
}

/// Wraps at words to this width, with continuation lines indented. Longer words are not broken.
pub fn wrapped(text: &str, most: usize) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.lines() {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        let mut used = indent;
        shown += &line[..indent];
        for (at, word) in words(content).enumerate() {
            let wide = width(word);
            if at > 0 && used + 1 + wide > most {
                used = indent + INDENT.len();
                shown.push('\n');
                shown += &" ".repeat(used);
            } else if at > 0 {
                shown.push(' ');
                used += 1;
            }
            shown += word;
            used += wide;
        }
        shown.push('\n');
    }
    shown
}

/// The words of a line; a command in backticks is one, so that it can be copied.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut from = 0;
        // The search for the end continues behind each pair of backticks before the next blank.
        let end = loop {
            let space = text[from..].find(' ').map(|at| from + at);
            let Some(open) = text[from..].find('`').map(|at| from + at) else {
                break space;
            };
            if space.is_some_and(|space| space < open) {
                break space;
            }
            match text[open + 1..].find('`') {
                Some(length) => from = open + length + 2,
                None => break space,
            }
        };
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

#[cfg(test)]
mod tests {
    use super::{LEAST, cut_to_columns, fitted, width, wrapped};

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn text_is_cut_between_characters_as_a_person_sees_them() {
        for (text, most, shown) in [
            ("as it is", 8, "as it is"),
            ("one more word", 8, "one mor…"),
            ("one more word", 9, "one more…"),
            ("漢字かな交じり", 7, "漢字か…"),
            ("漢字かな交じり", 8, "漢字か…"),
            // A combining accent, and an emoji joined from three faces.
            ("cafe\u{301} au lait", 5, "cafe\u{301}…"),
            ("👩‍👩‍👧 family", 8, "👩‍👩‍👧…"),
            ("👩‍👩‍👧 family", 6, "…"),
            ("🇩🇪🇫🇷🇮🇹", 5, "🇩🇪🇫🇷…"),
            ("x", 0, "…"),
        ] {
            let got = cut_to_columns(text, most, "…");
            assert_eq!(got, shown, "{text} in {most}");
            assert!(width(&got) <= most.max(1), "{text} in {most}");
        }
    }

    #[test]
    fn lines_break_between_words() {
        let text = "  one two three\n\u{1b}[31mfour\u{1b}[0m five\nunbreakable\n\n";
        let shown = "  one two\n    three\n\u{1b}[31mfour\u{1b}[0m five\nunbreakable\n\n";
        assert_eq!(wrapped(text, 10), shown);
        assert_eq!(wrapped(shown, 80), shown);
        let text = "see `git handoff show 1`, and `git\n";
        assert_eq!(
            wrapped(text, 12),
            "see\n  `git handoff show 1`,\n  and `git\n"
        );
    }

    #[test]
    fn a_table_fits_every_width_and_cuts_nothing_but_its_text() {
        let rows = [
            row(&[
                "7.1",
                "pending",
                "a → b",
                "",
                "1 day ago",
                "漢字 and a long summary of it",
            ]),
            row(&[
                "123456.10",
                "completed",
                "lead → worker",
                "",
                "now",
                "short",
            ]),
        ];
        for most in 1..120 {
            let shown = fitted(&rows, most, LEAST, "…");
            for cell in rows.iter().flat_map(|row| &row[..5]) {
                assert!(shown.contains(cell.as_str()), "{cell} in {most}:\n{shown}");
            }
            // The widest cell that is never truncated, with its indentation.
            if most >= "lead → worker".chars().count() + 2 {
                for line in shown.lines() {
                    assert!(width(line) <= most, "{most}: {line}");
                }
            }
        }
        assert!(!fitted(&rows, 119, LEAST, "…").contains('…'));
    }
}
