//! A page of a limited number of tokens, whatever text is on it.
//!
//! No tokenizer is available here, and models differ, so the cost of a text is an upper bound: the
//! program's own words at what such words usually cost, everything else at the worst case of its
//! kind. A test measures pages with a real tokenizer.

use schemars::JsonSchema;
use serde::Serialize;

/// Marks around foreign text while a page is made; never printed.
const BEGIN: char = '\u{e000}';
const END: char = '\u{e001}';

/// Marks a text that is not the program's own.
pub(super) fn foreign(text: impl ToString) -> String {
    let text = text.to_string().replace([BEGIN, END], "\u{fffd}");
    format!("{BEGIN}{text}{END}")
}

/// A foreign text in quotes, on one line, escaped so that nothing in it can end the quotes, and
/// truncated to this many tokens.
pub(super) fn quote(text: &str, most: usize) -> String {
    // More could never be shown.
    let beginning: String = text.chars().take(8 * most + 80).collect();
    let words: Vec<&str> = beginning.split_whitespace().collect();
    let escaped: String = words
        .join(" ")
        .chars()
        .flat_map(char::escape_debug)
        .collect();
    let shown = match clip(&escaped, most) {
        unchanged if unchanged == escaped => escaped,
        // A truncated escape would have another meaning.
        cut => format!("{}…", cut.trim_end_matches('\\')),
    };
    foreign(format!("\"{shown}\""))
}

/// The longest prefix that costs at most this many tokens.
pub(super) fn clip(text: &str, most: usize) -> String {
    let (mut left, mut end) = (most * TOKEN, 0);
    for run in runs(text) {
        if let Some(rest) = left.checked_sub(run_cost(run)) {
            left = rest;
            end += run.len();
            continue;
        }
        let ends = run.char_indices().map(|(at, c)| at + c.len_utf8());
        let part = ends.take_while(|&end| run_cost(&run[..end]) <= left);
        end += part.last().unwrap_or(0);
        break;
    }
    text[..end].to_owned()
}

/// Costs are counted in hundredths of a token.
const TOKEN: usize = 100;

/// The cost of a text, in hundredths of a token.
fn cost(text: &str) -> usize {
    /// The program's own text costs about a quarter of a token per character.
    const OWN: usize = 30;
    let (mut sum, mut rest) = (0, text);
    while let Some((own, after)) = rest.split_once(BEGIN) {
        let (inside, after) = after.split_once(END).unwrap_or((after, ""));
        sum += own.len() * OWN + foreign_cost(inside);
        rest = after;
    }
    sum + rest.len() * OWN
}

/// The cost of unknown text, in hundredths of a token.
fn foreign_cost(text: &str) -> usize {
    runs(text).map(run_cost).sum()
}

/// The class of a character; a token ends where it changes.
fn kind(c: char) -> u8 {
    match c {
        'a'..='z' => 0,
        'A'..='Z' => 1,
        '0'..='9' => 2,
        c if c.is_ascii_whitespace() => 3,
        _ => 4,
    }
}

/// The words, numbers and blanks of a text, and each other character.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        // A capital starts a word.
        let mut end = first.len_utf8();
        let mut before = kind(first);
        for c in rest[end..].chars() {
            let goes_on = match (before, kind(c)) {
                (4, _) => false,
                (1, 0) => end == 1,
                (a, b) => a == b,
            };
            if !goes_on {
                break;
            }
            end += c.len_utf8();
            before = kind(c);
        }
        let (run, after) = rest.split_at(end);
        rest = after;
        Some(run)
    })
}

/// The cost of a run, in hundredths of a token.
fn run_cost(run: &str) -> usize {
    let first = run.chars().next().unwrap_or(' ');
    match kind(first) {
        0 | 1 => word_cost(run),
        2 => run.len() * 50,
        3 => run.matches('\n').count().max(usize::from(run.len() > 1)) * 60,
        _ if first.is_ascii() => 80,
        _ => run.len() * 100,
    }
}

/// The cost of a run of letters: less if it looks like a word.
fn word_cost(run: &str) -> usize {
    let is_vowel = |c: char| "aeiouyAEIOUY".contains(c);
    let (mut longest, mut same, mut last) = (0, 0, None);
    for c in run.chars() {
        let vowel = is_vowel(c);
        same = if last == Some(vowel) { same + 1 } else { 1 };
        longest = longest.max(same);
        last = Some(vowel);
    }
    let capitals = run.chars().filter(char::is_ascii_uppercase).count();
    if run.len() <= 16 && longest <= 3 && capitals <= 1 {
        (run.len() * 45).max(TOKEN)
    } else {
        20 + run.len() * 80
    }
}

/// An omitted part, and the command that shows it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Cut {
    /// what
    pub(super) what: String,
    /// the command that shows it
    pub(super) command: String,
}

/// A page under construction.
pub(super) struct Page {
    text: String,
    spent: usize,
    most: usize,
    /// The omitted parts.
    pub(super) cut: Vec<Cut>,
}

impl Page {
    /// An empty page for this many tokens.
    pub(super) fn new(most: usize) -> Self {
        Self {
            text: String::new(),
            spent: 0,
            most: most * TOKEN,
            cut: Vec::new(),
        }
    }

    /// Adds a line, even beyond the limit.
    pub(super) fn line(&mut self, line: &str) {
        self.spent += cost(line) + TOKEN / 2;
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds lines while there is room, keeping `kept` tokens for what follows. If some don't fit,
    /// or there are `more`, adds a line with the number of omitted ones; the noun and the words
    /// after it name them, `command` shows them.
    pub(super) fn lines(
        &mut self,
        lines: &[String],
        more: usize,
        kept: usize,
        (noun, after, command): (&str, &str, &str),
    ) {
        let left_out = |left: usize| {
            let ending = if left == 1 || noun.is_empty() {
                ""
            } else {
                "s"
            };
            format!("{left} more {noun}{ending}{after}")
        };
        let notice = |left: usize| format!("({})", left_out(left));
        let room = self.most.saturating_sub(kept * TOKEN);
        let reserve = cost(&notice(lines.len() + more)) + TOKEN / 2;
        let mut shown = 0;
        for (at, line) in lines.iter().enumerate() {
            let last = at + 1 == lines.len() && more == 0;
            let reserve = if last { 0 } else { reserve };
            if self.spent + cost(line) + TOKEN / 2 + reserve > room {
                break;
            }
            self.line(line);
            shown += 1;
        }
        let left = lines.len() - shown + more;
        if left > 0 {
            self.line(&notice(left));
            self.cut.push(Cut {
                what: without_marks(&left_out(left)),
                command: without_marks(command),
            });
        }
    }

    /// The page.
    pub(super) fn finish(self) -> String {
        without_marks(&self.text)
    }
}

pub(super) fn without_marks(text: &str) -> String {
    text.replace([BEGIN, END], "")
}

#[cfg(test)]
mod tests {
    use super::{Page, clip, cost, foreign, foreign_cost, quote, without_marks};

    #[test]
    fn what_is_quoted_stays_in_its_quotes() {
        let text = "a \"b\" \\ \u{e001}\nIgnore this.\u{1b}[31m\u{202e}";
        let quoted = without_marks(&quote(text, 60));
        assert_eq!(
            quoted,
            r#""a \"b\" \\ \u{e001} Ignore this.\u{1b}[31m\u{202e}""#
        );
        for most in 0..40 {
            let cut = without_marks(&quote(text, most));
            let inside = cut.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
            let inside = inside.unwrap_or_else(|| panic!("{cut}"));
            let mut escaped = false;
            for c in inside.chars() {
                assert!(escaped || c != '"', "{cut}");
                escaped = c == '\\' && !escaped;
            }
            assert!(!escaped, "{cut}");
        }
    }

    #[test]
    fn foreign_text_costs_more_than_our_own() {
        let text = "Qx7 вход 漢字 zxcvbnm";
        assert!(cost(&foreign(text)) > 2 * cost("Qx7 ok ok zxcvbnm"));
        assert_eq!(cost(&foreign(text)), foreign_cost(text));
        assert_eq!(clip("漢字", 5), "漢");
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let mut page = Page::new(40);
        let lines: Vec<String> = (0..50).map(|n| format!("line {n}")).collect();
        page.lines(&lines, 3, 0, ("line", ": git status", "git status"));
        assert_eq!(page.cut.len(), 1);
        let text = page.finish();
        assert!(text.ends_with(" more lines: git status)\n"), "{text}");
        let lines = text.lines().count() - 1;
        assert!(text.contains(&format!("({} more", 53 - lines)), "{text}");
        let mut page = Page::new(40);
        page.lines(&[], 1, 0, ("line", "", "git status"));
        assert_eq!(page.finish(), "(1 more line)\n");
    }
}
