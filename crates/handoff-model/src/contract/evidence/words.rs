//! Parses test results in prose: `1 failed, 12 passed in 2.31s`.

use handoff_contract::TestCounts;

/// A count of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Passed,
    Failed,
    Skipped,
    Total,
}

impl Count {
    fn of(self, counts: TestCounts) -> u64 {
        match self {
            Self::Passed => counts.passed,
            Self::Failed => counts.failed,
            Self::Skipped => counts.skipped,
            Self::Total => counts.total(),
        }
    }
}

/// A token of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A whole number; `None` if it is too large.
    Number(Option<u64>, String),
    /// A word for a count. Numbers beside different words for one count, such as `failures` and
    /// `errors`, are added up.
    Count(Count, &'static str, String),
    /// `of` or `/` between two numbers.
    Of,
    Other(String),
    /// The end of a clause or a line.
    End,
}

/// A number next to a word for a count.
struct Claim {
    count: Count,
    kind: &'static str,
    number: Option<u64>,
    shown: String,
}

/// How a text contradicts a report's counts; `None` if it does not.
/// A number beside a word for a count must equal that count. Without any such pair, every whole
/// number must be one of the counts. If tests failed, their number must be mentioned.
pub(super) fn differs(text: &str, counts: TestCounts) -> Option<String> {
    let tokens = tokens(text);
    let claims = claims(&tokens);
    if claims.is_empty() {
        let known = [counts.passed, counts.failed, counts.skipped, counts.total()];
        let numbers = tokens.iter().filter_map(|token| match token {
            Token::Number(number, shown) => Some((*number, shown)),
            _ => None,
        });
        let mut told = counts.failed == 0;
        for (number, shown) in numbers {
            match number {
                Some(number) if known.contains(&number) => told |= number == counts.failed,
                _ => return Some(format!("{shown} is not one of its counts")),
            }
        }
        return (!told).then(|| unsaid(counts));
    }
    for count in [Count::Passed, Count::Failed, Count::Skipped, Count::Total] {
        let own: Vec<&Claim> = claims.iter().filter(|c| c.count == count).collect();
        if !add_up(&own, count.of(counts)) {
            let wrong = own
                .iter()
                .find(|claim| claim.number != Some(count.of(counts)));
            let known = count.of(counts);
            return wrong.map(|claim| format!("\"{}\": the report says {known}", claim.shown));
        }
    }
    let told = claims.iter().any(|claim| claim.count == Count::Failed);
    (!told && counts.failed > 0).then(|| unsaid(counts))
}

fn unsaid(counts: TestCounts) -> String {
    format!("it does not say that {} failed", counts.failed)
}

/// Whether every claim equals the count, or the numbers for its different words add up to it.
fn add_up(claims: &[&Claim], count: u64) -> bool {
    if claims.iter().all(|claim| claim.number == Some(count)) {
        return true;
    }
    let mut kinds: Vec<(&str, Option<u64>)> = Vec::new();
    for claim in claims {
        match kinds.iter().find(|(kind, _)| *kind == claim.kind) {
            Some((_, number)) if *number != claim.number => return false,
            Some(_) => {}
            None => kinds.push((claim.kind, claim.number)),
        }
    }
    let sum = kinds
        .iter()
        .try_fold(0_u64, |sum, (_, number)| sum.checked_add((*number)?));
    kinds.len() > 1 && sum == Some(count)
}

/// The numbers beside a word for a count.
fn claims(tokens: &[Token]) -> Vec<Claim> {
    let mut found = Vec::new();
    // Whether this part of a summary counts suites or files rather than tests.
    let mut elsewhere = false;
    for clause in tokens.split(|token| *token == Token::End) {
        let labelled = clause.iter().position(|token| {
            matches!(token, Token::Other(word) if ["suites", "files", "snapshots"].contains(&&**word))
        });
        let first = clause.iter().position(|t| matches!(t, Token::Number(..)));
        match (labelled, first) {
            (Some(label), Some(number)) if label < number => elsewhere = true,
            (Some(_), None) => elsewhere = true,
            _ => {
                let first = clause.first();
                if matches!(first, Some(Token::Count(Count::Total, ..))) {
                    elsewhere = false;
                }
            }
        }
        if !elsewhere {
            found.extend(claims_of(clause));
        }
    }
    found
}

/// The claims in a clause. A number belongs to the word after it or, if the clause starts with a
/// word and ends with a number, to the word before it.
fn claims_of(clause: &[Token]) -> Vec<Claim> {
    let told = |token: &&Token| matches!(token, Token::Count(..) | Token::Number(..));
    let first = clause.iter().find(told);
    let last = clause.iter().rfind(told);
    let word_first =
        matches!(first, Some(Token::Count(..))) && matches!(last, Some(Token::Number(..)));
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = clause.get(at) {
        let Token::Number(number, shown) = token else {
            at += 1;
            continue;
        };
        let behind = |steps| at.checked_sub(steps).and_then(|at| clause.get(at));
        // In `failed tests: 5`, `failed` is the word that counts.
        let before = match (behind(2), behind(1)) {
            (Some(word @ Token::Count(..)), Some(Token::Count(Count::Total, ..))) => Some(word),
            (_, before) => before,
        };
        let mut whole = None;
        let mut next = at + 1;
        if let (Some(Token::Of), Some(Token::Number(all, shown))) =
            (clause.get(next), clause.get(next + 1))
        {
            whole = Some((*all, shown));
            next += 2;
        }
        // In `5 tests passed`, `passed` is the word that counts.
        let mut after = clause.get(next);
        let mut sum = None;
        if let Some(Token::Count(Count::Total, ..)) = after {
            match clause.get(next + 1) {
                Some(more @ Token::Count(..)) => after = Some(more),
                _ if whole.is_some() => {
                    sum = after;
                    after = None;
                }
                _ => {}
            }
        }
        let word = match (word_first, before, after) {
            (true, Some(word @ Token::Count(..)), _)
            | (false, _, Some(word @ Token::Count(..)))
            | (false, Some(word @ Token::Count(..)), None) => Some(word),
            _ => None,
        };
        if let Some(Token::Count(count, kind, text)) = word {
            let (count, kind, number) = (*count, *kind, *number);
            let shown = if word_first {
                format!("{text} {shown}")
            } else {
                format!("{shown} {text}")
            };
            found.push(Claim {
                count,
                kind,
                number,
                shown,
            });
        }
        if let Some((number, shown)) = whole.filter(|_| word.is_some() || sum.is_some()) {
            let shown = format!("{shown} in all");
            found.push(Claim {
                count: Count::Total,
                kind: "total",
                number,
                shown,
            });
        }
        at = next;
    }
    found
}

fn tokens(text: &str) -> Vec<Token> {
    let characters: Vec<char> = text.chars().collect();
    let at = |i: usize| characters.get(i).copied();
    let digit = |i: usize| at(i).is_some_and(|c| c.is_ascii_digit());
    let mut found = Vec::new();
    let mut i = 0;
    while let Some(c) = at(i) {
        if !c.is_alphanumeric() {
            match c {
                '\n' | ';' | '|' | ',' | '#' => found.push(Token::End),
                '.' | '!' if at(i + 1).is_none_or(char::is_whitespace) => found.push(Token::End),
                '/' if i > 0 && digit(i - 1) && digit(i + 1) => found.push(Token::Of),
                _ => {}
            }
            i += 1;
            continue;
        }
        let start = i;
        // `2.31s`, `12:30` and `2026-11-21` are not whole numbers, `1,234` is.
        while at(i).is_some_and(char::is_alphanumeric)
            || matches!(at(i), Some('.' | ':' | '-' | '\'')) && digit(i - 1) && digit(i + 1)
            || at(i) == Some(',') && digit(i - 1) && (1..4).all(|j| digit(i + j)) && !digit(i + 4)
        {
            i += 1;
        }
        let word: String = characters[start..i].iter().collect();
        found.push(token(word, at(i) == Some('%')));
    }
    found
}

/// Classifies a word or a number.
fn token(word: String, is_share: bool) -> Token {
    let digits: String = word.chars().filter(|c| *c != ',').collect();
    if digits.chars().all(|c| c.is_ascii_digit()) && !is_share {
        return Token::Number(digits.parse().ok(), word);
    }
    let (count, kind) = match &*word.to_lowercase() {
        "of" => return Token::Of,
        "passed" | "passing" | "pass" | "passes" => (Count::Passed, "passed"),
        "failed" | "failing" | "fail" | "fails" | "failure" | "failures" => {
            (Count::Failed, "failed")
        }
        "error" | "errors" | "errored" => (Count::Failed, "errors"),
        "skipped" | "skip" => (Count::Skipped, "skipped"),
        "ignored" => (Count::Skipped, "ignored"),
        "pending" => (Count::Skipped, "pending"),
        "total" | "test" | "tests" => (Count::Total, "total"),
        other => return Token::Other(other.to_owned()),
    };
    Token::Count(count, kind, word)
}

#[cfg(test)]
mod tests {
    use super::differs;
    use handoff_contract::TestCounts;

    fn counts(passed: u64, failed: u64, skipped: u64) -> TestCounts {
        TestCounts {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn what_runners_print_is_understood() {
        for (text, counts) in [
            ("1 failed, 1 passed, 1 skipped in 2.31s", counts(1, 1, 1)),
            (
                "=== 1 failed, 12 passed in 61.20s (0:01:01) ===",
                counts(12, 1, 0),
            ),
            ("2 failed, 1 passed, 1 error in 0.1s", counts(1, 3, 0)),
            (
                "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.01s",
                counts(1, 1, 1),
            ),
            ("node 20: 1 failed, 1 passed", counts(1, 1, 0)),
            (
                "Tests run: 5, Failures: 1, Errors: 1, Skipped: 1",
                counts(2, 2, 1),
            ),
            (
                "Test Suites: 1 failed, 3 passed, 4 total\nTests:       2 failed, 7 passed, 9 total\nSnapshots:   0 total\nTime: 3 s",
                counts(7, 2, 0),
            ),
            (
                "Test Files  2 passed (2)\n     Tests  9 passed (9)",
                counts(9, 0, 0),
            ),
            (
                "  7 passing (12ms)\n  1 pending\n  2 failing",
                counts(7, 2, 1),
            ),
            ("# tests 5\n# pass 3\n# fail 2", counts(3, 2, 0)),
            ("tests 5 pass 3 fail 2", counts(3, 2, 0)),
            ("passed: 1, failed: 0", counts(1, 0, 0)),
            ("Total tests: 3, failed tests: 1", counts(2, 1, 0)),
            ("passed (156/156)", counts(156, 0, 0)),
            ("156/156 tests passed", counts(156, 0, 0)),
            ("3 of 10 failed", counts(7, 3, 0)),
            ("1,234 passed", counts(1234, 0, 0)),
            ("5 tests passed, 1 test failed", counts(5, 1, 0)),
            (
                "2026-11-21 12:30: 100% passed on node 20, 4 tests",
                counts(4, 0, 0),
            ),
            ("passed", counts(3, 0, 0)),
            ("all 431 green", counts(431, 0, 0)),
            ("all green", counts(9, 0, 0)),
        ] {
            assert_eq!(differs(text, counts), None, "{text}");
        }
    }

    #[test]
    fn the_number_that_differs_is_named() {
        for (text, counts, why) in [
            (
                "1 passed, 0 failed",
                counts(0, 1, 0),
                "\"1 passed\": the report says 0",
            ),
            (
                "1 failed, 0 passed",
                counts(1, 0, 0),
                "\"0 passed\": the report says 1",
            ),
            (
                "passed: 1; failed: 0",
                counts(1, 1, 0),
                "\"failed 0\": the report says 1",
            ),
            ("1 passed", counts(1, 1, 0), "it does not say that 1 failed"),
            (
                "0 failed, 1 failing",
                counts(0, 1, 0),
                "\"0 failed\": the report says 1",
            ),
            (
                "passed (156/156)",
                counts(150, 6, 0),
                "\"passed 156\": the report says 150",
            ),
            (
                "passed (150/150)",
                counts(150, 0, 1),
                "\"150 in all\": the report says 151",
            ),
            (
                "2 tests, 1 failed",
                counts(0, 1, 0),
                "\"2 tests\": the report says 1",
            ),
            (
                "1 failed, 5 skipped",
                counts(9, 1, 4),
                "\"5 skipped\": the report says 4",
            ),
            (
                "all 430 green",
                counts(431, 0, 0),
                "430 is not one of its counts",
            ),
            (
                "all green",
                counts(8, 1, 0),
                "it does not say that 1 failed",
            ),
            (
                "99999999999999999999999 passed",
                counts(11, 0, 0),
                "\"99999999999999999999999 passed\": the report says 11",
            ),
        ] {
            assert_eq!(differs(text, counts).as_deref(), Some(why), "{text}");
        }
    }
}
