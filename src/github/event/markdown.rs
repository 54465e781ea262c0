//! What people write on GitHub: Markdown, of which comments and code are no statements.

/// The lines of a text that are neither in a comment nor in a block of code, each
/// without what ends it. They borrow nothing, since comments are cut out of them.
pub(super) fn statements(text: &str) -> Vec<String> {
    let text = without_comments(text);
    let mut fence: Option<(char, usize)> = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        let begun = line.trim_start();
        let indent = line.len() - begun.len();
        let mark = begun.chars().next().filter(|c| ['`', '~'].contains(c));
        let length = mark.map_or(0, |mark| begun.chars().take_while(|c| *c == mark).count());
        match (fence, mark) {
            (None, Some(mark)) if length >= 3 && indent < 4 => fence = Some((mark, length)),
            (Some((open, least)), Some(mark))
                if mark == open && length >= least && begun[length..].trim().is_empty() =>
            {
                fence = None;
            }
            (None, _) => lines.push(line.to_owned()),
            (Some(_), _) => {}
        }
    }
    lines
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

/// The statements beneath the first heading in which one of these words stands; all of
/// them, if no word is given. None, if there is no such heading.
pub(super) fn beneath(text: &str, words: &[String]) -> Option<Vec<String>> {
    let lines = statements(text);
    if words.is_empty() {
        return Some(lines);
    }
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let level = |line: &str| line.chars().take_while(|c| *c == '#').count();
    let is_heading = |line: &str| {
        let level = level(line);
        (1..=6).contains(&level) && line[level..].starts_with([' ', '\t'])
    };
    let named = |line: &String| {
        let low = line.to_lowercase();
        is_heading(line) && words.iter().any(|word| low.contains(word.as_str()))
    };
    let at = lines.iter().position(named)?;
    let own = level(&lines[at]);
    let inside = lines[at + 1..].iter();
    let inside = inside.take_while(|line| !is_heading(line) || level(line) > own);
    Some(inside.cloned().collect())
}

/// What an item of a list says; none, if the line is no item.
pub(super) fn item(line: &str) -> Option<&str> {
    let line = line.trim();
    let bullet = ["- ", "* ", "+ "];
    let rest = { bullet.iter().find_map(|mark| line.strip_prefix(mark)) }.or_else(|| {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let rest = line[digits..].strip_prefix(['.', ')'])?;
        (1..=9).contains(&digits).then(|| rest.strip_prefix(' '))?
    })?;
    let task = ["[ ]", "[x]", "[X]"];
    let rest = rest.trim_start();
    let rest = { task.iter().find_map(|mark| rest.strip_prefix(mark)) }.unwrap_or(rest);
    Some(rest.trim()).filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{beneath, item, statements};

    #[test]
    fn comments_and_code_state_nothing() {
        let text = "a <!-- closes #1\ncloses #2 -->b\r\n```sh\ncloses #3\n```\nc\n~~~\n```\n~~~\nd\n<!-- e";
        assert_eq!(statements(text), ["a b", "c", "d"]);
        assert_eq!(statements("````\n```\n````\nx"), ["x"]);
        assert!(statements("```\nnever closed").is_empty());
    }

    #[test]
    fn a_heading_ends_where_the_next_of_its_level_begins() {
        let text = "# A\nx\n## Requirements (must)\n- y\n### more\n- z\n## B\n- w";
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
}
