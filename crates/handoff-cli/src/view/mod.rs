//! The look of answers, on a terminal and elsewhere.
//!
//! Without a terminal, nothing is shortened or omitted except in lists of handoffs: full texts,
//! absolute times, no symbols. On a terminal, [`Look`] gives relative times, state symbols, and
//! tables that fit. Commands use a `Look` without knowing which it is. `screen` describes the
//! terminal, `table` lays out columns, `ago` words times, `pager` runs a pager, `wishes` reads
//! git's settings.

mod ago;
mod pager;
mod screen;
mod table;
mod wishes;

use anstyle::{AnsiColor, Style};

pub use ago::short as age;
pub use pager::Pager;
pub use screen::{Screen, is_dumb, is_for_git_pager};
pub use table::{columns, cut_to_columns, wrapped};
pub use wishes::Wishes;

use handoff::base::Moment;
use handoff::base::ids::HandoffId;
use handoff::protocol::State;

/// The look of an answer at a moment.
#[derive(Clone, Copy)]
pub struct Look {
    now: Moment,
    screen: Option<Screen>,
}

impl Look {
    /// The look on this screen, or without a terminal.
    pub fn new(now: Moment, screen: Option<Screen>) -> Self {
        Self { now, screen }
    }

    /// The look without a terminal.
    pub fn plain(now: Moment) -> Self {
        Self::new(now, None)
    }

    /// This look, at another moment.
    pub fn at(self, now: Moment) -> Self {
        Self { now, ..self }
    }

    /// The time from which ages count.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// Whether a terminal shows it.
    pub fn is_for_terminal(&self) -> bool {
        self.screen.is_some()
    }

    /// The width of a drawing: the terminal's, or this default.
    pub fn width(&self, usual: usize) -> usize {
        self.screen.map_or(usual, Screen::width)
    }

    /// Whether a drawing is limited to ASCII.
    pub fn is_ascii(&self) -> bool {
        self.screen.is_some_and(|screen| !screen.unicode)
    }

    /// A state in its colour; on a terminal with its symbol.
    pub fn state(&self, state: State) -> String {
        match self.screen {
            Some(screen) => {
                let style = style(state);
                let symbol = symbol(state, screen.unicode);
                format!("{style}{symbol} {state}{style:#}")
            }
            None => colored(state),
        }
    }

    /// The symbol of a state.
    pub fn symbol(&self, state: State) -> char {
        symbol(state, !self.is_ascii())
    }

    /// A number of handoffs in a state.
    pub fn count(&self, count: usize, state: State) -> String {
        match self.screen {
            Some(screen) => {
                let style = style(state);
                let symbol = symbol(state, screen.unicode);
                format!("{style}{symbol} {count} {state}{style:#}")
            }
            None => format!("{count} {}", colored(state)),
        }
    }

    /// The arrow from a sender to a receiver.
    pub fn arrow(&self) -> &'static str {
        match self.screen {
            Some(screen) if !screen.unicode => "->",
            _ => "→",
        }
    }

    /// A moment in a table.
    pub fn time(&self, at: Moment) -> String {
        if self.screen.is_none() {
            return at.to_string();
        }
        let style = Style::new().dimmed();
        format!("{style}{}{style:#}", ago::worded(at, self.now))
    }

    /// The age of a moment in a row that fits its width.
    pub fn age(&self, at: Moment) -> String {
        match self.screen {
            Some(_) => self.time(at),
            None => self.relative(at),
        }
    }

    /// A moment relative to now, if it is near enough.
    pub fn relative(&self, at: Moment) -> String {
        ago::worded(at, self.now)
    }

    /// A moment in a sentence: the time, and on a terminal its age.
    pub fn moment(&self, at: Moment) -> String {
        match self.screen.and_then(|_| ago::relative(at, self.now)) {
            Some(ago) => format!("{at} ({ago})"),
            None => at.to_string(),
        }
    }

    /// A moment relative to now on a terminal, if it is near enough.
    pub fn ago(&self, at: Moment) -> String {
        match self.screen {
            Some(_) => ago::worded(at, self.now),
            None => at.to_string(),
        }
    }

    /// Urgent text, coloured on a terminal.
    pub fn urgent(&self, text: &str) -> String {
        match self.screen {
            Some(_) => {
                let style = AnsiColor::Red.on_default();
                format!("{style}{text}{style:#}")
            }
            None => text.to_owned(),
        }
    }

    /// The first line of foreign text, as a table cell that can't shift columns.
    pub fn cell(&self, text: &str) -> String {
        let first = handoff::base::text::plain(text.lines().next().unwrap_or_default());
        first.replace('\t', " ")
    }

    /// Lines of sentences; on a terminal, long ones are wrapped.
    pub fn sentences(&self, text: &str) -> String {
        match self.screen {
            Some(screen) => table::wrapped(text, screen.width),
            None => text.to_owned(),
        }
    }

    /// An id, highlighted on a terminal.
    pub fn id(&self, id: &HandoffId) -> String {
        match self.screen {
            Some(_) => self.heading(&id.to_string()),
            None => id.to_string(),
        }
    }

    /// A heading.
    pub fn heading(&self, text: &str) -> String {
        let style = Style::new().bold();
        format!("{style}{text}{style:#}")
    }

    /// Truncates a text to this many columns.
    pub fn cut(&self, text: &str, most: usize) -> String {
        cut_to_columns(text, most, self.ellipsis())
    }

    fn ellipsis(&self) -> &'static str {
        self.screen.map_or("…", Screen::ellipsis)
    }

    /// Rows as columns that fit the terminal; elsewhere one line each.
    pub fn rows(&self, rows: &[Vec<String>]) -> String {
        let width = self.width(usize::MAX);
        table::fitted(rows, width, table::LEAST_SUBJECT, self.ellipsis())
    }

    /// Rows as columns. On a terminal they fit its width: the last column is unstyled text and is
    /// truncated; other columns never are.
    pub fn table(&self, rows: &[Vec<String>]) -> String {
        match self.screen {
            Some(screen) => table::fitted(rows, screen.width, table::LEAST, screen.ellipsis()),
            None => columns(rows),
        }
    }
}

/// A state in its colour.
pub fn colored(state: State) -> String {
    let style = style(state);
    format!("{style}{state}{style:#}")
}

/// A state's colour.
pub fn style(state: State) -> Style {
    match state {
        State::Pending => AnsiColor::Yellow.on_default(),
        State::InProgress => AnsiColor::Blue.on_default(),
        State::Completed => AnsiColor::Green.on_default(),
        State::Failed | State::Dead => AnsiColor::Red.on_default(),
        State::Blocked => AnsiColor::Magenta.on_default(),
        State::Rejected | State::Cancelled => Style::new().dimmed(),
    }
}

/// The symbols that distinguish states without colour, each one column wide.
fn symbol(state: State, unicode: bool) -> char {
    let (symbol, ascii) = match state {
        State::Pending => ('○', 'o'),
        State::InProgress => ('◐', '*'),
        State::Completed => ('✓', '+'),
        State::Failed => ('✗', 'x'),
        State::Dead => ('■', '#'),
        // It waits for an answer.
        State::Blocked => ('?', '?'),
        // It was sent back.
        State::Rejected => ('←', '<'),
        State::Cancelled => ('–', '-'),
    };
    if unicode { symbol } else { ascii }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthChar;

    use super::{State, symbol};

    #[test]
    fn symbols_are_one_column_wide_and_differ() {
        for unicode in [true, false] {
            let mut seen: Vec<char> = State::ALL.iter().map(|s| symbol(*s, unicode)).collect();
            assert!(seen.iter().all(|c| c.width() == Some(1)), "{seen:?}");
            assert!(unicode || seen.iter().all(char::is_ascii), "{seen:?}");
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), State::ALL.len());
        }
    }
}
