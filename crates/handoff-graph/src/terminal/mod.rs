//! Graphs as text for a terminal, with box-drawing characters.
//!
//! An issue is drawn as a sequence diagram, a protocol as a list of routes by sender, tasks as a
//! tree. Symbols and words show the state; the caller adds colour through [`Paint`].

mod issue;
mod protocol;
mod tasks;

use handoff::base::text::one_line;

use super::text::{cut_to_columns, wrap};
use super::{Graph, Kind, Mark};

/// Colours a text according to a mark.
pub type Paint<'a> = &'a dyn Fn(Mark, &str) -> String;

/// Draws a graph in lines of at most this many columns, as far as names allow.
pub fn terminal(graph: &Graph, columns: usize, paint: Paint<'_>) -> String {
    let columns = columns.max(40);
    let mut lines = vec![
        cut_to_columns(&one_line(&graph.title), columns),
        String::new(),
    ];
    match graph.kind {
        Kind::Issue => issue::draw(graph, columns, paint, &mut lines),
        Kind::Protocol => protocol::draw(graph, columns, paint, &mut lines),
        Kind::Tasks => tasks::draw(graph, columns, paint, &mut lines),
    }
    lines
        .iter()
        .flat_map(|line| [line.trim_end(), "\n"])
        .collect()
}

/// Converts a drawing to ASCII, except names.
pub fn ascii(drawing: &str) -> String {
    let plain = drawing.chars().map(|c| match c {
        '│' | '├' | '┤' | '⋮' => '|',
        '└' => '`',
        '─' | '━' | '–' => '-',
        '┄' | '·' | '◌' | '…' => '.',
        '▶' | '▷' | '→' => '>',
        '◀' => '<',
        '◆' => '@',
        '↻' | '↺' | '○' => 'o',
        '◐' => '*',
        '✓' => '+',
        '✗' | '×' => 'x',
        c => c,
    });
    plain.collect()
}

/// Wraps and indents text, with a prefix on its first line.
fn beneath(before: &str, text: &str, columns: usize, most: usize) -> Vec<String> {
    let indent = super::text::width(before);
    let mut wrapped = wrap(&one_line(text), columns.saturating_sub(indent).max(20));
    if wrapped.len() > most {
        wrapped.truncate(most);
        if let Some(last) = wrapped.last_mut() {
            last.push('…');
        }
    }
    let lines = wrapped.iter().enumerate().map(|(i, line)| match i {
        0 => format!("{before}{line}"),
        _ => format!("{}{line}", " ".repeat(indent)),
    });
    lines.collect()
}
