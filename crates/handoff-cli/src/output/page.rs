//! Paging of lists: the options, and the remark about truncation.

use clap::Args;
use handoff::base::text::{grouped, quoted, word};
use schemars::JsonSchema;
use serde::Serialize;

use super::Output;
use crate::failure::Failure;

/// The rows of a page; and of a step's results, which have only one page.
pub const ROWS: usize = 50;

// No doc comment: it would become the help of every command that prints a list.
#[derive(Args, Clone, Debug, Default)]
#[allow(missing_docs, reason = "clap would take it for the command's help")]
pub struct PageArgs {
    /// At most this many, 0 for all [default: 50]
    #[arg(short = 'n', long, value_name = "COUNT")]
    pub limit: Option<usize>,
    /// What follows this `cursor`
    #[arg(long, value_name = "CURSOR")]
    pub after: Option<String>,
}

/// Where a list was truncated.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Page {
    /// how many there are on all pages; null if that would take reading all of history
    total: Option<usize>,
    /// what `--after` takes to list the next; null if there are no more
    cursor: Option<String>,
    /// The text's remark about the missing rows.
    #[serde(skip)]
    rest: String,
}

impl PageArgs {
    /// The maximum number of rows.
    pub fn most(&self, output: &Output) -> usize {
        match self.limit {
            Some(0) => usize::MAX,
            Some(limit) => limit,
            None if output.has_pager() => usize::MAX,
            None => ROWS,
        }
    }

    /// The maximum number of entries in another list above this one: `usual` by default.
    pub fn most_before(&self, usual: usize) -> usize {
        match self.limit {
            _ if self.after.is_some() => 0,
            Some(0) => usize::MAX,
            Some(limit) => limit,
            None => usual,
        }
    }

    /// Truncates a list; a row's name is its cursor.
    ///
    /// # Errors
    /// A usage [`Failure`] if the cursor names no row.
    pub fn cut<T>(
        &self,
        rows: &mut Vec<T>,
        name: impl Fn(&T) -> String,
        output: &Output,
    ) -> Result<Page, Failure> {
        let total = rows.len();
        if let Some(after) = &self.after {
            let found = rows.iter().position(|row| name(row) == *after);
            let at = found.ok_or_else(|| self.gone(output))?;
            rows.drain(..=at);
        }
        let most = self.most(output);
        let last = rows.get(most.saturating_sub(1));
        let cursor = last.filter(|_| rows.len() > most).map(&name);
        rows.truncate(most);
        Ok(Page::new(Some(total), rows.len(), cursor, output))
    }

    /// The failure if the cursor names no row.
    pub fn gone(&self, output: &Output) -> Failure {
        let after = self.after.as_deref().unwrap_or_default();
        let text = format!("{} is not in this list, or not any more", quoted(after));
        let first = output.typed(&[]);
        Failure::usage(text).hint(format!("start with the first page: `{first}`"))
    }
}

impl Page {
    /// A page of this many rows, the last of which is the cursor if more follow.
    pub fn new(
        total: Option<usize>,
        shown: usize,
        cursor: Option<String>,
        output: &Output,
    ) -> Self {
        let of = total.map(|total| format!(" of {}", number(total)));
        let rest = cursor.as_deref().map(|cursor| {
            let command = output.typed(&["--after", cursor]);
            let (shown, of) = (number(shown), of.unwrap_or_default());
            format!("{shown}{of} shown; the rest: {command}\n")
        });
        Self {
            total,
            cursor,
            rest: rest.unwrap_or_default(),
        }
    }

    /// The remark about a truncated list; otherwise empty.
    pub fn text(&self) -> &str {
        &self.rest
    }
}

/// Truncation of a text without pages: JSON has everything.
#[derive(Debug, Default)]
pub struct Cut(Option<String>);

impl Cut {
    /// The truncation for an answer; `None` if a pager shows it.
    pub fn of(output: &Output) -> Self {
        Self((!output.has_pager()).then(|| output.typed(&["--json"])))
    }

    /// The shown rows, and the remark after them.
    pub fn rows<'r, T>(&self, rows: &'r [T]) -> (&'r [T], String) {
        match &self.0 {
            Some(command) => (&rows[..ROWS.min(rows.len())], rest(rows.len(), command)),
            None => (rows, String::new()),
        }
    }
}

/// The remark about a step's results beyond [`ROWS`]: the command lists the rest.
pub fn rest(total: usize, command: &str) -> String {
    if total <= ROWS {
        return String::new();
    }
    let total = number(total);
    format!("{ROWS} of {total} shown; the rest: {command}\n")
}

fn number(count: usize) -> String {
    grouped(u64::try_from(count).unwrap_or(u64::MAX))
}

/// The typed command without its `--after`, and with these options: a single flag is added, and an
/// option with a value replaces its own.
pub fn retyped(arguments: &[String], options: &[&str]) -> String {
    let end = arguments.iter().position(|word| word == "--");
    let (own, operands) = arguments.split_at(end.unwrap_or(arguments.len()));
    let mut words = vec!["git", "handoff"];
    let mut given = own.iter().map(String::as_str);
    while let Some(argument) = given.next() {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        if name != "--after" && (options.len() == 1 || Some(&name) != options.first()) {
            words.push(argument);
        } else if value.is_empty() {
            given.next();
        }
    }
    words.extend(options);
    words.extend(operands.iter().map(String::as_str));
    let words: Vec<_> = words.into_iter().map(word).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::retyped;

    #[test]
    fn the_rest_is_listed_by_the_same_command() {
        for (typed, rest) in [
            ("inbox --as fixer", "inbox --as fixer --after 7.1"),
            ("inbox --after 3.1 -n 5", "inbox -n 5 --after 7.1"),
            ("list --after=3.1", "list --after 7.1"),
            ("status -- 12", "status --after 7.1 -- 12"),
            ("-C a*b list", "-C 'a*b' list --after 7.1"),
        ] {
            let typed: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            let command = retyped(&typed, &["--after", "7.1"]);
            assert_eq!(command, format!("git handoff {rest}"));
        }
    }
}
