//! The board's view state and key handling. It performs no I/O: work to do is returned as an
//! [`Effect`].

use handoff::base::Moment;
use handoff::base::ids::HandoffId;
use handoff::model::Record;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::actions::{ACTIONS, Acting, Form, Invocation, Outcome};
use super::data::{Board, Card};
use super::detail::{Detail, TABS};
use super::edit::Line;
use handoff_cli::args::filter::Query;

/// The view state.
pub(super) struct App {
    /// `None` until the ledger was read.
    pub(super) board: Option<Board>,
    pub(super) acting: Acting,
    pub(super) now: Moment,
    /// The selected column, and the selected card in it.
    pub(super) column: usize,
    pub(super) row: usize,
    pub(super) filter: Line,
    pub(super) is_filtering: bool,
    /// The open detail view.
    pub(super) detail: Option<Looked>,
    pub(super) popup: Option<Popup>,
    /// A message for the user.
    pub(super) note: Option<String>,
}

/// An open detail view.
pub(super) struct Looked {
    pub(super) detail: Detail,
    pub(super) tab: usize,
    /// The first visible line.
    pub(super) top: usize,
}

/// A dialog above everything else.
pub(super) enum Popup {
    Help,
    Form(Form),
    /// The running command.
    Running(String),
    Outcome(Outcome),
}

/// What the event loop must do after a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// Redraw the terminal.
    Redraw,
    /// Load only what matches a query.
    Filter(Query),
    /// Read a handoff.
    Open(HandoffId),
    /// Run a command.
    Run(Invocation),
    Quit,
}

/// A column, filtered.
pub(super) struct Shown<'a> {
    pub(super) title: &'a str,
    pub(super) cards: Vec<&'a Card>,
}

/// The number of lines or cards per page.
const PAGE: usize = 10;

impl App {
    pub(super) fn new(acting: Acting, query: &Query, now: Moment) -> Self {
        let mut filter = Line::default();
        filter.insert(&query.to_string());
        Self {
            board: None,
            acting,
            now,
            column: 0,
            row: 0,
            filter,
            is_filtering: false,
            detail: None,
            popup: None,
            note: None,
        }
    }

    /// The visible columns.
    pub(super) fn columns(&self) -> Vec<Shown<'_>> {
        let mut filter = self.filter.text();
        // A query is not applied here, but when the ledger is read, after Enter.
        if filter.parse::<Query>().is_ok() {
            filter.clear();
        }
        let columns = self.board.iter().flat_map(|board| &board.columns);
        columns
            .map(|column| {
                let cards = column.cards.iter();
                Shown {
                    title: &column.title,
                    cards: cards
                        .filter(|card| filter.is_empty() || card.has(&filter))
                        .collect(),
                }
            })
            .collect()
    }

    /// The handoff to which actions apply.
    pub(super) fn selected(&self) -> Option<&Record> {
        if let Some(looked) = &self.detail {
            return looked.detail.record.as_ref();
        }
        let mut columns = self.columns();
        let column = (self.column < columns.len()).then(|| columns.swap_remove(self.column))?;
        let card = *column.cards.get(self.row)?;
        Some(&card.record)
    }

    /// Shows a new board, preserving the selection.
    pub(super) fn load(&mut self, board: Board) -> Effect {
        let title = self.columns().get(self.column).map(|c| c.title.to_owned());
        let id = self.selected_card().map(|card| card.record.id.clone());
        self.board = Some(board);
        let columns = self.columns();
        let column = columns
            .iter()
            .position(|column| title.as_deref() == Some(column.title));
        // At first, select a column that is not empty.
        let first = columns.iter().position(|column| !column.cards.is_empty());
        let first = first.filter(|_| title.is_none());
        let column = column.or(first).unwrap_or(self.column);
        let cards = columns
            .get(column)
            .map(|c| &c.cards[..])
            .unwrap_or_default();
        let row = cards
            .iter()
            .position(|card| Some(&card.record.id) == id.as_ref());
        let row = row.unwrap_or(self.row);
        (self.column, self.row) = (column, row);
        self.clamp();
        // The open detail view may be outdated, too: read it again.
        let looked = self.detail.as_ref();
        looked.map_or(Effect::None, |l| Effect::Open(l.detail.id.clone()))
    }

    fn selected_card(&self) -> Option<&Card> {
        let mut columns = self.columns();
        let column = (self.column < columns.len()).then(|| columns.swap_remove(self.column))?;
        column.cards.get(self.row).copied()
    }

    /// Shows why the ledger could not be read; the old board stays.
    pub(super) fn fail(&mut self, why: String) {
        self.board.get_or_insert_default().trouble = Some(why);
    }

    /// Shows a detail view that was read, if it is still open.
    pub(super) fn looked(&mut self, detail: Detail) {
        if let Some(looked) = &mut self.detail
            && looked.detail.id == detail.id
        {
            looked.detail = detail;
        }
    }

    /// Shows a command's result, unless something is being typed.
    pub(super) fn ran(&mut self, outcome: Outcome) {
        if matches!(self.popup, Some(Popup::Form(_))) {
            self.note = Some(format!("{}: {}", outcome.verdict, outcome.command));
        } else {
            self.popup = Some(Popup::Outcome(outcome));
        }
    }

    /// Inserts pasted text.
    pub(super) fn paste(&mut self, text: &str) {
        match &mut self.popup {
            Some(Popup::Form(form)) => {
                if let Some(field) = form.fields.get_mut(form.at) {
                    field.value.insert(text);
                }
            }
            None if self.is_filtering => self.filter.insert(text),
            _ => {}
        }
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Effect {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return Effect::Quit,
                KeyCode::Char('l') => return Effect::Redraw,
                _ => {}
            }
        }
        self.note = None;
        match self.popup.take() {
            Some(Popup::Form(form)) => self.form_key(form, key),
            // Any key closes the dialog; a running command continues.
            Some(_) => Effect::None,
            None if self.is_filtering => self.filter_key(key),
            None if self.detail.is_some() => self.detail_key(key),
            None => self.board_key(key),
        }
    }

    fn form_key(&mut self, mut form: Form, key: KeyEvent) -> Effect {
        let count = form.fields.len().max(1);
        match key.code {
            KeyCode::Esc => return Effect::None,
            KeyCode::Enter if form.at + 1 == count && form.lacking().is_some() => {
                form.at = form.lacking().unwrap_or_default();
            }
            KeyCode::Enter if form.at + 1 == count => {
                let invocation = form.invocation();
                self.acting.agent = self.acting.agent.take().or_else(|| form.agent());
                self.popup = Some(Popup::Running(invocation.shown()));
                return Effect::Run(invocation);
            }
            KeyCode::Enter | KeyCode::Tab | KeyCode::Down => form.at = (form.at + 1) % count,
            KeyCode::BackTab | KeyCode::Up => form.at = (form.at + count - 1) % count,
            _ => {
                if let Some(field) = form.fields.get_mut(form.at) {
                    field.value.key(key);
                }
            }
        }
        self.popup = Some(Popup::Form(form));
        Effect::None
    }

    fn filter_key(&mut self, key: KeyEvent) -> Effect {
        match key.code {
            KeyCode::Enter => return self.filtered(),
            KeyCode::Esc => {
                self.filter = Line::default();
                return self.filtered();
            }
            _ => self.filter.key(key),
        }
        self.clamp();
        Effect::None
    }

    /// Applies the entered filter: words at once, a query when the ledger is read next.
    fn filtered(&mut self) -> Effect {
        self.is_filtering = false;
        self.clamp();
        let text = self.filter.text();
        let query = text.parse::<Query>();
        if let Err(why) = &query
            && text.contains(['=', '~'])
        {
            self.note = Some(why.clone());
        }
        Effect::Filter(query.unwrap_or_default())
    }

    fn board_key(&mut self, key: KeyEvent) -> Effect {
        match key.code {
            KeyCode::Esc if !self.filter.text().is_empty() => {
                self.filter = Line::default();
                return self.filtered();
            }
            KeyCode::Char('q') | KeyCode::Esc => return Effect::Quit,
            KeyCode::Char('/') => self.is_filtering = true,
            KeyCode::Left | KeyCode::Char('h') => self.column = self.column.saturating_sub(1),
            KeyCode::Right | KeyCode::Char('l') | KeyCode::Tab => self.column += 1,
            KeyCode::Up | KeyCode::Char('k') => self.row = self.row.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.row += 1,
            KeyCode::PageUp => self.row = self.row.saturating_sub(PAGE),
            KeyCode::PageDown => self.row += PAGE,
            KeyCode::Home | KeyCode::Char('g') => self.row = 0,
            KeyCode::End | KeyCode::Char('G') => self.row = usize::MAX,
            KeyCode::Enter => {
                let Some(id) = self.selected().map(|record| record.id.clone()) else {
                    return Effect::None;
                };
                self.detail = Some(Looked {
                    detail: Detail::loading(id.clone()),
                    tab: 0,
                    top: 0,
                });
                return Effect::Open(id);
            }
            code => self.common_key(code),
        }
        self.clamp();
        Effect::None
    }

    fn detail_key(&mut self, key: KeyEvent) -> Effect {
        let Some(looked) = &mut self.detail else {
            return Effect::None;
        };
        let tab = match key.code {
            KeyCode::Left | KeyCode::Char('h') | KeyCode::BackTab => {
                (looked.tab + TABS.len() - 1) % TABS.len()
            }
            KeyCode::Right | KeyCode::Char('l') | KeyCode::Tab => (looked.tab + 1) % TABS.len(),
            KeyCode::Char(c @ '1'..='9') => (c as usize - '1' as usize).min(TABS.len() - 1),
            _ => looked.tab,
        };
        if tab != looked.tab {
            (looked.tab, looked.top) = (tab, 0);
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => self.detail = None,
            KeyCode::Up | KeyCode::Char('k') => looked.top = looked.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => looked.top += 1,
            KeyCode::PageUp => looked.top = looked.top.saturating_sub(PAGE),
            KeyCode::PageDown | KeyCode::Char(' ') => looked.top += PAGE,
            KeyCode::Home | KeyCode::Char('g') => looked.top = 0,
            KeyCode::End | KeyCode::Char('G') => looked.top = usize::MAX,
            code => self.common_key(code),
        }
        Effect::None
    }

    /// Keys with the same meaning everywhere: help and actions.
    fn common_key(&mut self, code: KeyCode) {
        if code == KeyCode::Char('?') {
            self.popup = Some(Popup::Help);
            return;
        }
        let mut actions = ACTIONS.iter();
        let Some(action) = actions.find(|action| code == KeyCode::Char(action.key)) else {
            return;
        };
        let (form, note) = match self.selected() {
            None => (None, Some("no handoff is selected".to_owned())),
            Some(record) => {
                let state = record.state_at(self.now);
                if action.is_for(state, record.code.is_some()) {
                    (Some(Form::new(action, record, &self.acting)), None)
                } else {
                    let (id, command) = (&record.id, action.command);
                    (
                        None,
                        Some(format!("{id} is {state}: {command} is not for it")),
                    )
                }
            }
        };
        self.popup = form.map(Popup::Form);
        self.note = note;
    }

    /// Clamps the selection to the visible cards.
    fn clamp(&mut self) {
        let columns = self.columns();
        let column = self.column.min(columns.len().saturating_sub(1));
        let count = columns.get(column).map_or(0, |column| column.cards.len());
        let row = self.row.min(count.saturating_sub(1));
        (self.column, self.row) = (column, row);
    }
}

#[cfg(test)]
mod tests {
    use handoff::protocol::Need;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use serde_json::json;

    use super::{App, Effect, Popup};
    use crate::actions::Outcome;
    use crate::samples::{app, board, record};

    fn press(app: &mut App, keys: &str) -> Effect {
        let mut effect = Effect::None;
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\u{1b}' => KeyCode::Esc,
                key => KeyCode::Char(key),
            };
            effect = app.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        effect
    }

    fn selected(app: &App) -> String {
        let columns = app.columns();
        let title = columns.get(app.column).map_or("", |column| column.title);
        let id = app.selected().map(|record| record.id.to_string());
        format!("{title} {}", id.unwrap_or_default())
    }

    #[test]
    fn keys_move_and_never_beyond_the_cards() {
        let mut app = app();
        // A person's turn takes precedence over urgency.
        for (keys, at) in [
            ("", "needs attention 8.1"),
            ("j", "needs attention 7.2"),
            ("jjj", "needs attention 7.2"),
            ("lkk", "writer 8.1"),
            ("G", "writer 9.1"),
            ("llll", "checker 7.1"),
            ("hhhh", "needs attention 8.1"),
        ] {
            press(&mut app, keys);
            assert_eq!(selected(&app), at, "{keys}");
        }
        assert_eq!(press(&mut app, "q"), Effect::Quit);
    }

    #[test]
    fn what_is_selected_stays_selected_while_the_ledger_changes() {
        let mut app = app();
        press(&mut app, "lj");
        assert_eq!(selected(&app), "writer 7.2");
        let more = |ids: [&str; 3]| {
            let records = ids.map(|id| record(id, "writer", "failed", json!({})));
            board(records.into(), &[("7.2", Need::Failed)])
        };
        app.load(more(["1.1", "2.1", "7.2"]));
        assert_eq!(selected(&app), "writer 7.2");
        app.load(more(["1.1", "2.1", "3.1"]));
        assert_eq!(selected(&app), "writer 1.1");
        app.load(board(Vec::new(), &[]));
        assert_eq!(selected(&app), "needs attention ");
        assert_eq!(press(&mut app, "\nr"), Effect::None);
        assert_eq!(app.note.as_deref(), Some("no handoff is selected"));
    }

    #[test]
    fn a_filter_leaves_what_it_is_about() {
        let mut app = app();
        press(&mut app, "/DESK-");
        let shown = |app: &App| {
            app.columns()
                .iter()
                .map(|c| c.cards.len())
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(&app), [0, 1, 0]);
        // In the filter input, keys are text.
        assert_eq!(press(&mut app, "q"), Effect::None);
        assert_eq!(shown(&app), [0, 0, 0]);
        assert_eq!(
            press(&mut app, "\u{1b}"),
            Effect::Filter(super::Query::default())
        );
        assert_eq!(shown(&app), [2, 3, 1]);
        assert_eq!(press(&mut app, "\u{1b}"), Effect::Quit);
    }

    #[test]
    fn an_action_asks_shows_and_runs() {
        let mut app = app();
        press(&mut app, "r");
        assert_eq!(
            app.note.as_deref(),
            Some("8.1 is blocked: retry is not for it")
        );
        assert_eq!(press(&mut app, "jrq"), Effect::None);
        press(&mut app, "\u{1b}");
        assert!(app.popup.is_none());
        let Effect::Run(run) = press(&mut app, "rlead\nthe disk is larger\n") else {
            panic!("nothing is run");
        };
        let command = "git handoff retry 7.2 --as lead --reason 'the disk is larger'";
        assert_eq!(run.shown(), command);
        assert!(matches!(&app.popup, Some(Popup::Running(shown)) if shown == command));
        // Typed text is not lost; the agent need not be entered again.
        press(&mut app, "xc");
        let outcome = |text: &str| Outcome {
            command: command.to_owned(),
            verdict: "refused",
            text: text.to_owned(),
        };
        app.ran(outcome("no"));
        assert_eq!(app.note, Some(format!("refused: {command}")));
        let Effect::Run(run) = press(&mut app, "no\n") else {
            panic!("nothing is run");
        };
        assert_eq!(run.shown(), "git handoff cancel 7.2 --as lead --reason no");
        app.ran(outcome("no"));
        assert!(matches!(app.popup, Some(Popup::Outcome(_))));
        assert_eq!(press(&mut app, "q"), Effect::None);
        assert!(app.popup.is_none());
    }

    #[test]
    fn what_a_command_needs_is_asked_for_until_it_is_typed() {
        let mut app = app();
        assert_eq!(press(&mut app, "jx\n\n"), Effect::None);
        let Some(Popup::Form(form)) = &app.popup else {
            panic!("the form is gone");
        };
        assert_eq!(form.at, 0);
        assert_eq!(press(&mut app, "lead\n\n \n"), Effect::None);
        let Effect::Run(run) = press(&mut app, "no\n") else {
            panic!("nothing is run");
        };
        assert_eq!(run.shown(), "git handoff reject 7.2 --as lead --reason no");
    }

    #[test]
    fn pasted_lines_run_nothing() {
        let mut app = app();
        press(&mut app, "jrlead\n");
        app.paste("one\ntwo\r\n");
        let Some(Popup::Form(form)) = &app.popup else {
            panic!("the form is gone");
        };
        assert_eq!(form.fields[1].value.text(), "one two");
    }
}
