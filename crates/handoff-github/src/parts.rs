//! Truncates pages to a size: the last parts, and the last rows of lists, are omitted first; the
//! page says what is missing.

/// The bytes reserved for the line about omitted parts.
const RESERVE: usize = 600;

#[derive(Debug, Default)]
pub(super) struct Part {
    /// The part's name if it is omitted: `handoffs`, `the graph`.
    pub name: &'static str,
    /// The text before the rows, or the whole part.
    pub head: String,
    /// The most important first.
    pub rows: Vec<String>,
    pub tail: String,
}

/// A page within its limit.
#[derive(Debug, PartialEq, Eq)]
pub struct Fitted {
    /// Markdown.
    pub text: String,
    /// The names of the omitted parts, with the number of rows.
    pub left_out: Vec<String>,
}

/// Joins parts to a page of at most `most` bytes; `more` names the source of the rest.
pub(super) fn fit(parts: Vec<Part>, most: usize, more: &str) -> Fitted {
    let size = |part: &Part| {
        let rows: usize = part.rows.iter().map(String::len).sum();
        part.head.len() + rows + part.tail.len() + 1
    };
    let all: usize = parts.iter().map(size).sum();
    let limit = most;
    let most = if all <= limit {
        limit
    } else {
        limit.saturating_sub(RESERVE)
    };
    let mut text = String::new();
    let mut left_out = Vec::new();
    for part in parts {
        let room = most.saturating_sub(text.len());
        if size(&part) <= room {
            text += &part.head;
            text.extend(part.rows);
            text += &part.tail;
            text.push('\n');
            continue;
        }
        let count = part.rows.len();
        let mut used = part.head.len() + part.tail.len() + 1;
        let fitting = part.rows.iter().take_while(|row| {
            used += row.len();
            used <= room
        });
        match fitting.count() {
            0 if count > 0 => left_out.push(format!("{count} of {count} {}", part.name)),
            0 => left_out.push(part.name.to_owned()),
            some => {
                text += &part.head;
                text.extend(part.rows.into_iter().take(some));
                text += &part.tail;
                text.push('\n');
                left_out.push(format!("{} of {count} {}", count - some, part.name));
            }
        }
    }
    let note = format!(
        "_Left out, for GitHub takes no more: {}._ {more}\n",
        left_out.join(", ")
    );
    if !left_out.is_empty() && text.len() + note.len() <= limit {
        text += &note;
    }
    Fitted { text, left_out }
}

#[cfg(test)]
mod tests {
    use super::{Part, fit};

    fn parts() -> Vec<Part> {
        let rows = (0..300).map(|n| format!("- {n:03}\n")).collect();
        let part = |name, head: &str| Part {
            name,
            head: head.to_owned(),
            ..Part::default()
        };
        let rows = Part {
            rows,
            tail: "end\n".to_owned(),
            ..part("rows", "rows\n")
        };
        vec![part("the head", "head\n"), rows, part("the end", "last\n")]
    }

    #[test]
    fn what_fits_is_whole() {
        let page = fit(parts(), 10_000, "more");
        assert!(page.left_out.is_empty());
        assert!(page.text.starts_with("head\n\nrows\n- 000\n"));
        assert!(page.text.ends_with("- 299\nend\n\nlast\n\n"));
    }

    #[test]
    fn what_does_not_is_cut_from_the_end_and_told() {
        for most in 0..2_500 {
            let page = fit(parts(), most, "more");
            assert!(page.text.len() <= most, "{most}: {}", page.text.len());
        }
        let page = fit(parts(), 650, "more");
        assert_eq!(page.left_out, ["295 of 300 rows", "the end"]);
        assert!(page.text.contains("- 004\nend\n"), "{}", page.text);
        assert!(
            page.text
                .contains("takes no more: 295 of 300 rows, the end._ more")
        );
    }
}
