//! Draws the board.

use std::collections::BTreeMap;

use handoff::base::Moment;
use handoff::base::text::one_line;
use handoff::model::{Record, overdue_text};
use handoff::protocol::State;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Margin, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::actions::{ACTIONS, Action, Form, Outcome};
use super::data::{ATTENTION, Card};
use super::detail::TABS;
use super::state::{App, Looked, Popup, Shown};
use handoff_cli::view::{self, Look, wrapped};

/// The minimum size of a terminal.
const LEAST: (u16, u16) = (30, 8);

/// The minimum width of a column.
const COLUMN: u16 = 24;

/// The height of a card, with a blank row below it; cards with a need also name whose turn it is.
const CARD: u16 = 4;
const NEEDY_CARD: u16 = 5;

/// Styles and character set.
#[derive(Clone, Copy)]
pub(super) struct Paint {
    pub(super) has_colors: bool,
    pub(super) look: Look,
}

impl Paint {
    fn state(self, state: State) -> Style {
        if self.has_colors {
            converted(view::style(state))
        } else {
            Style::new()
        }
    }

    fn urgent(self) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        if self.has_colors {
            style.fg(Color::Red)
        } else {
            style
        }
    }

    /// Untrusted text as one line, truncated to this width.
    fn cut(self, text: &str, width: u16) -> String {
        self.look.cut(&one_line(text), usize::from(width))
    }

    fn block(self, title: &str) -> Block<'static> {
        let block = Block::bordered().title(format!(" {title} "));
        if self.look.is_ascii() {
            block.border_set(ratatui::symbols::border::Set {
                top_left: "+",
                top_right: "+",
                bottom_left: "+",
                bottom_right: "+",
                vertical_left: "|",
                vertical_right: "|",
                horizontal_top: "-",
                horizontal_bottom: "-",
            })
        } else {
            block
        }
    }
}

/// Converts an anstyle style to ratatui's.
fn converted(style: anstyle::Style) -> Style {
    use anstyle::AnsiColor as Ansi;
    let color = match style.get_fg_color() {
        Some(anstyle::Color::Ansi(color)) => Some(match color {
            Ansi::Red => Color::Red,
            Ansi::Green => Color::Green,
            Ansi::Yellow => Color::Yellow,
            Ansi::Blue => Color::Blue,
            Ansi::Magenta => Color::Magenta,
            _ => Color::Reset,
        }),
        _ => None,
    };
    color.map_or(Style::new(), |color| Style::new().fg(color))
}

/// Draws the whole screen.
pub(super) fn board(frame: &mut Frame<'_>, app: &mut App, paint: Paint) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!(
            "too small: {}x{} of {}x{}",
            area.width, area.height, LEAST.0, LEAST.1
        );
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ]);
    let [head, body, foot] = rows.areas(area);
    match &mut app.detail {
        Some(looked) => detail(frame, looked, paint, head, body),
        None => {
            header(frame, app, paint, head);
            columns(frame, app, paint, body);
        }
    }
    footer(frame, app, paint, foot);
    popup(frame, app, paint, area);
}

fn header(frame: &mut Frame<'_>, app: &App, paint: Paint, area: Rect) {
    let Some(board) = &app.board else {
        frame.render_widget(Line::from("reading the ledger ..."), area);
        return;
    };
    let ledger = one_line(&board.ledger);
    let actor = app
        .acting
        .agent
        .as_ref()
        .map(|agent| format!(", as {agent}"));
    let mut spans = vec![
        Span::styled("ledger ", Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(format!("{ledger}{}", actor.unwrap_or_default())),
    ];
    if let Some(trouble) = &board.trouble {
        spans.push(Span::styled(
            format!("  {}", one_line(trouble)),
            paint.urgent(),
        ));
    }
    frame.render_widget(Line::from(spans), area);
}

fn columns(frame: &mut Frame<'_>, app: &App, paint: Paint, area: Rect) {
    let all = app.columns();
    let fit = usize::from((area.width / (COLUMN + 1)).max(1));
    let count = fit.min(all.len().max(1));
    // The selected column is always visible.
    let first = (app.column + 1).saturating_sub(count);
    let areas = Layout::horizontal(vec![Constraint::Fill(1); count]).spacing(1);
    let areas = areas.split(area);
    let more = all.len().saturating_sub(first + count);
    for (i, (shown, area)) in all.iter().skip(first).zip(areas.iter()).enumerate() {
        let selected = (first + i == app.column).then_some(app.row);
        let before = (i == 0 && first > 0).then(|| format!("< {first} more"));
        let after = (i + 1 == count && more > 0).then(|| format!("{more} more >"));
        let beyond = before.into_iter().chain(after);
        let beyond = beyond.collect::<Vec<_>>().join("  ");
        let column = Column {
            shown,
            selected,
            beyond,
        };
        column.draw(frame, app.now, paint, *area);
    }
}

/// A column to draw.
struct Column<'a> {
    shown: &'a Shown<'a>,
    /// The index of the selected card, if it is in this column.
    selected: Option<usize>,
    /// The number of columns beyond it, as text.
    beyond: String,
}

impl Column<'_> {
    fn draw(&self, frame: &mut Frame<'_>, now: Moment, paint: Paint, area: Rect) {
        let rows = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(1),
        ]);
        let [title, counts, body] = rows.areas(area);
        let mut style = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        if self.selected.is_some() {
            style = style.add_modifier(Modifier::REVERSED);
        }
        let name = paint.cut(self.shown.title, area.width);
        frame.render_widget(Line::styled(name, style), title);
        frame.render_widget(self.counts(paint), counts);
        let beyond = Line::raw(self.beyond.as_str()).alignment(Alignment::Right);
        frame.render_widget(beyond, counts);
        let is_attention = self.shown.title == ATTENTION;
        let height = if is_attention { NEEDY_CARD } else { CARD };
        let fit = usize::from((body.height / height).max(1));
        let first = (self.selected.unwrap_or(0) + 1).saturating_sub(fit);
        for (i, card) in self.shown.cards.iter().skip(first).take(fit).enumerate() {
            let down = u16::try_from(i).unwrap_or(u16::MAX).saturating_mul(height);
            let place = Rect {
                y: body.y.saturating_add(down),
                height: height - 1,
                ..body
            };
            let is_selected = self.selected == Some(first + i);
            let text = Text::from(card_lines(card, is_attention, now, paint, body.width));
            let mut style = Style::new();
            if is_selected {
                style = style.add_modifier(Modifier::REVERSED);
            }
            let place = place.intersection(body);
            frame.render_widget(Paragraph::new(text).style(style), place);
        }
    }

    /// The number of handoffs in each state.
    fn counts(&self, paint: Paint) -> Line<'static> {
        let mut counts: BTreeMap<usize, (State, usize)> = BTreeMap::new();
        for card in &self.shown.cards {
            let state = card.record.state;
            let place = State::ALL.iter().position(|known| *known == state);
            counts
                .entry(place.unwrap_or_default())
                .or_insert((state, 0))
                .1 += 1;
        }
        let spans = counts.into_values().map(|(state, count)| {
            let symbol = paint.look.symbol(state);
            Span::styled(format!("{symbol} {count}  "), paint.state(state))
        });
        Line::from_iter(spans)
    }
}

/// A card's lines: id and age, subject, and condition.
fn card_lines(
    card: &Card,
    is_attention: bool,
    now: Moment,
    paint: Paint,
    width: u16,
) -> Vec<Line<'static>> {
    let record = &card.record;
    let attention = card.attention.as_ref();
    let since = attention.map(|found| found.since);
    let since = since.or_else(|| record.latest().map(|last| last.at));
    let age = since.map_or(String::new(), |at| view::age(at, now));
    let mark = if attention.is_some() { "!" } else { " " };
    let symbol = paint.look.symbol(record.state);
    let room = usize::from(width).saturating_sub(age.len() + 4);
    let id = paint.look.cut(&record.id.to_string(), room);
    let head = vec![
        Span::styled(mark, paint.urgent()),
        Span::styled(format!("{symbol} "), paint.state(record.state)),
        Span::styled(
            format!("{id:<room$} "),
            Style::new().add_modifier(Modifier::BOLD),
        ),
        Span::raw(age),
    ];
    let about = match attention {
        Some(found) if is_attention => {
            let turn = format!("{}'s turn", found.turn);
            vec![found.need.title().to_owned(), turn]
        }
        _ => {
            let paused = card.paused.as_ref();
            let paused = paused.map(|paused| format!("paused{}, ", paused.until()));
            vec![paused.unwrap_or_default() + &standing(record, now)]
        }
    };
    let subject = [record.subject().to_owned()];
    let lines = subject.into_iter().chain(about);
    let lines = lines.map(|text| Line::raw(format!(" {}", paint.cut(&text, width - 1))));
    [Line::from(head)].into_iter().chain(lines).collect()
}

/// A handoff's condition, most important first: state, worker, attempt, and reason.
fn standing(record: &Record, now: Moment) -> String {
    let state = if record.is_expired(now) {
        overdue_text(record.state).to_owned()
    } else {
        record.state.to_string()
    };
    let worker = record.lease.as_ref().map(|lease| lease.worker.to_string());
    let waits = record
        .waits_for
        .first()
        .filter(|_| record.state == State::Pending);
    let attempt = (record.attempt > 1).then(|| format!("attempt {}", record.attempt));
    let parts = [
        Some(state),
        worker,
        waits.map(|id| format!("waits for {id}")),
        attempt,
        record.all_spent().text(),
        record.reason().map(str::to_owned),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

fn detail(frame: &mut Frame<'_>, looked: &mut Looked, paint: Paint, head: Rect, body: Rect) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title = paint.cut(&looked.detail.headline, head.width);
    frame.render_widget(Line::styled(title, bold), head);
    let [tabs, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(body);
    let names = TABS.iter().enumerate().map(|(i, name)| {
        let is_shown = i == looked.tab;
        let style = if is_shown {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new()
        };
        Span::styled(format!(" {} {name} ", i + 1), style)
    });
    frame.render_widget(Line::from_iter(names), tabs);
    let text = looked.detail.texts[looked.tab].replace('\t', "    ");
    let text = wrapped(&text, usize::from(body.width));
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.len().saturating_sub(usize::from(body.height));
    looked.top = looked.top.min(last);
    let lines = lines
        .into_iter()
        .skip(looked.top)
        .take(usize::from(body.height));
    let is_diff = TABS[looked.tab] == "diff";
    let lines = lines.map(|line| Line::styled(line.to_owned(), line_style(line, is_diff, paint)));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), body);
}

fn line_style(line: &str, is_diff: bool, paint: Paint) -> Style {
    match line.chars().next() {
        Some('+') if is_diff && paint.has_colors => Style::new().fg(Color::Green),
        Some('-') if is_diff && paint.has_colors => Style::new().fg(Color::Red),
        Some('@') if is_diff => Style::new().add_modifier(Modifier::BOLD),
        _ => Style::new(),
    }
}

fn footer(frame: &mut Frame<'_>, app: &App, paint: Paint, area: Rect) {
    let is_shown = app.note.is_none() && !app.filter.text().is_empty() && app.detail.is_none();
    if app.is_filtering || is_shown {
        let text = format!("/{}", one_line(&app.filter.text()));
        if app.is_filtering {
            let column = u16::try_from(Line::raw(text.as_str()).width()).unwrap_or(u16::MAX);
            let at = area
                .x
                .saturating_add(column)
                .min(area.right().saturating_sub(1));
            frame.set_cursor_position((at, area.y));
        }
        frame.render_widget(Line::from(text), area);
        return;
    }
    let line = match &app.note {
        Some(note) => Line::styled(paint.cut(note, area.width), paint.urgent()),
        None => Line::raw(keys(app, usize::from(area.width))),
    };
    frame.render_widget(line, area);
}

/// The available keys, including actions for the selection, as far as they fit.
fn keys(app: &App, width: usize) -> String {
    let selected = app.selected();
    let for_it = |action: &&Action| {
        selected.is_some_and(|r| action.is_for(r.state_at(app.now), r.code.is_some()))
    };
    let actions = ACTIONS.iter().filter(for_it);
    let mut text = if app.detail.is_some() {
        "?: help  q: back  left/right: tabs".to_owned()
    } else {
        "?: help  q: quit  Enter: look  /: filter".to_owned()
    };
    for action in actions {
        let key = format!("  {}: {}", action.key, action.command);
        if text.len() + key.len() > width {
            break;
        }
        text += &key;
    }
    text
}

fn popup(frame: &mut Frame<'_>, app: &App, paint: Paint, area: Rect) {
    let Some(popup) = &app.popup else { return };
    let width = area.width.saturating_sub(2).min(100);
    let inner = usize::from(width.saturating_sub(4));
    let (title, text, cursor) = match popup {
        Popup::Help => ("help".to_owned(), help(), None),
        Popup::Form(form) => {
            let (text, cursor) = form_text(form);
            (form.action.command.to_owned(), text, Some(cursor))
        }
        Popup::Running(command) => ("running".to_owned(), format!("{command}\n"), None),
        Popup::Outcome(outcome) => (outcome.verdict.to_owned(), outcome_text(outcome), None),
    };
    let text = wrapped(&text, inner);
    let lines = text.lines().count();
    let height = u16::try_from(lines + 2)
        .unwrap_or(u16::MAX)
        .min(area.height);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, place);
    frame.render_widget(paint.block(&title), place);
    let inside = place.inner(Margin::new(2, 1));
    frame.render_widget(Paragraph::new(text), inside);
    if let Some((column, row)) = cursor {
        let column = column.min(inside.width.saturating_sub(1));
        frame.set_cursor_position((inside.x + column, inside.y + row));
    }
}

/// The help text: what each key does.
fn help() -> String {
    let mut text = "\
arrows, hjkl  move             Enter  look into a handoff
/             filter           Esc    back, no filter, quit
Ctrl-L        draw anew        q      back, quit

"
    .to_owned();
    for action in ACTIONS {
        text += &format!("{}  git handoff {}\n", action.key, action.command);
    }
    text + "\nAn action asks for what it needs, and shows the command before it runs."
}

/// The form's text with the command so far, and the cursor's position.
fn form_text(form: &Form) -> (String, (u16, u16)) {
    let mut text = String::new();
    let mut cursor = (0, 0);
    for (i, field) in form.fields.iter().enumerate() {
        let (before, after) = field.value.parts();
        let shown = format!("{}: {}", field.label, one_line(before));
        if i == form.at {
            let column = u16::try_from(Line::raw(shown.as_str()).width()).unwrap_or(u16::MAX);
            cursor = (column, u16::try_from(i).unwrap_or(u16::MAX));
        }
        text += &format!("{shown}{}\n", one_line(after));
    }
    let enter = if form.at + 1 == form.fields.len() {
        "run it"
    } else {
        "next field"
    };
    let command = form.invocation().shown();
    text += &format!("\n{command}\n\nEnter: {enter}  Tab: next field  Esc: back");
    (text, cursor)
}

fn outcome_text(outcome: &Outcome) -> String {
    let said = handoff::base::text::plain(outcome.text.trim_end());
    format!("{}\n\n{said}\n\nany key: close", outcome.command)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyModifiers};

    use super::{Paint, board};
    use crate::samples::{app, now};
    use crate::state::App;
    use handoff_cli::view::Look;

    /// The rendered screen, row by row.
    fn drawn(app: &mut App, width: u16, height: u16) -> String {
        let paint = Paint {
            has_colors: false,
            look: Look::plain(now()),
        };
        let backend = TestBackend::new(width, height);
        let terminal = Terminal::new(backend);
        let mut terminal = terminal.unwrap_or_else(|error| panic!("{error}"));
        let ended = terminal.draw(|frame| board(frame, app, paint));
        ended.unwrap_or_else(|error| panic!("{error}"));
        let buffer = terminal.backend().buffer();
        let rows = buffer.content().chunks(usize::from(width));
        let rows = rows.map(|row| {
            let row: String = row.iter().map(|cell| cell.symbol()).collect();
            row.trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    fn press(app: &mut App, code: KeyCode) {
        app.key(ratatui::crossterm::event::KeyEvent::new(
            code,
            KeyModifiers::NONE,
        ));
    }

    #[test]
    fn columns_are_what_needs_somebody_and_each_agent() {
        let mut app = app();
        assert_snapshot!(drawn(&mut app, 80, 18), @r#"
        ledger handoffs at 0123456789
        needs attention            writer                     checker
        ? 1  ✗ 1                   ◐ 1  ? 1  ✗ 1              ○ 1
        !? 8.1                 now !? 8.1                 now  ○ 7.1                  2h
         Export the history         Export the history         Export the history
         waits for an answer        blocked, port              pending
         lead's turn
                                   !✗ 7.2                 now
        !✗ 7.2                 now  Export the history
         Export the history         failed, attempt 2, disk…
         failed
         lead's turn                ◐ 9.1                  2h
                                    \u{1b}]0;x\u{7}Two
                                    in_progress, desk-1



        ?: help  q: quit  Enter: look  /: filter  a: answer  c: cancel
        "#);
    }

    #[test]
    fn a_narrow_terminal_shows_the_selected_column() {
        let mut app = app();
        press(&mut app, KeyCode::Right);
        press(&mut app, KeyCode::Down);
        assert_snapshot!(drawn(&mut app, 40, 8), @r"
        ledger handoffs at 0123456789
        writer
        ◐ 1  ? 1  ✗ 1         < 1 more  1 more >
        !✗ 7.2                               now
         Export the history
         failed, attempt 2, disk \u{1b}[31mfull

        ?: help  q: quit  Enter: look  /: filter
        ");
        assert_snapshot!(drawn(&mut app, 29, 8), @r"
        too small: 29x8 of 30x8
        ");
        for width in 1..60 {
            for height in 1..20 {
                drawn(&mut app, width, height);
            }
        }
    }

    #[test]
    fn an_action_shows_its_command() {
        let mut app = app();
        press(&mut app, KeyCode::Char('a'));
        assert_snapshot!(drawn(&mut app, 60, 16), @r#"
        ledger handoffs at 0123456789
        needs attention                writer
        ? 1  ✗ 1                       ◐ 1  ? 1  ✗ 1        1 more >
        !┌ answer ────────────────────────────────────────────────┐w
         │ as agent:                                              │
         │ port (integer):                                        │
         │ host:                                                  │
         │                                                        │w
        !│ git handoff answer 8.1                                 │
         │                                                        │…
         │ Enter: next field  Tab: next field  Esc: back          │
         └────────────────────────────────────────────────────────┘h
                                        \u{1b}]0;x\u{7}Two
                                        in_progress, desk-1

        ?: help  q: quit  Enter: look  /: filter  a: answer
        "#);
    }
}
