//! A graph as lines of text for a terminal, with box-drawing characters.
//!
//! An issue is a story with a lane for each agent, a protocol a list of ways by
//! sender, tasks are a tree. How things stand is told by symbols and words; colour is
//! the caller's, through [`Paint`].

mod issue;
mod protocol;
mod tasks;

use handoff_base::text::one_line;

use super::text::{cut_to_columns, wrap};
use super::{Graph, Kind, Mark};

/// Colours a text by how what it stands for stands.
pub type Paint<'a> = &'a dyn Fn(Mark, &str) -> String;

/// Draws a graph in lines of at most so many columns, where its names allow it.
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

/// A drawing for a terminal that shows no more than ASCII; names stay what they are.
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

/// Words under a line, indented, with something before the first of them.
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
