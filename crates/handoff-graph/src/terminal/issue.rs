//! Draws an issue as a sequence diagram: a lane per agent, a line per handoff.

use handoff::base::text::{counted, one_line};
use handoff::model::overdue_text;
use handoff::protocol::State;

use super::{Paint, beneath};
use crate::text::{cut_to_columns, label, span, width};
use crate::{Edge, Graph, Mark, NodeId, Step};

/// The maximum number of handoffs drawn; of more, only the first, the last, and those between that
/// are open or had trouble.
const MOST_STEPS: usize = 60;

/// How many of them at the beginning; below, in between and at the end.
const FIRST: usize = 10;
const BETWEEN: usize = 10;
const LAST: usize = 30;

pub(super) fn draw(graph: &Graph, columns: usize, paint: Paint<'_>, lines: &mut Vec<String>) {
    let Some(lanes) = Lanes::new(graph, columns) else {
        return without_lanes(graph, columns, paint, lines);
    };
    lanes.heading(graph, columns, lines);
    let rows = rows(graph);
    for (i, part) in rows.iter().enumerate() {
        match part {
            Row::Step(step) => step_lines(graph, &lanes, step, columns, paint, lines),
            Row::Skipped(count) => {
                // The last gap names the command that shows everything.
                let is_last = !rows[i + 1..].iter().any(|p| matches!(p, Row::Skipped(_)));
                let see = if is_last {
                    format!(": `git handoff list --issue {}`", graph.name)
                } else {
                    String::new()
                };
                lines.push(format!("{}⋮ {count} more{see}", lanes.empty()));
            }
        }
    }
    positions(graph, Some(&lanes), columns, paint, lines);
    let skipped = rows.iter().any(|part| matches!(part, Row::Skipped(_)));
    summary(graph, columns, skipped, paint, lines);
}

/// The lanes of agents, from left to right.
struct Lanes {
    /// The width of a lane.
    pitch: usize,
    count: usize,
}

impl Lanes {
    /// `None` if the lanes would leave no room for text.
    fn new(graph: &Graph, columns: usize) -> Option<Self> {
        let count = graph.nodes.len();
        // Take the widest lanes that leave enough room for text.
        let fits = |pitch: &usize| match pitch {
            2 => 2 * count + 36 <= columns,
            pitch => pitch * count + 50 <= columns,
        };
        let pitch = [4, 3, 2].into_iter().find(fits)?;
        Some(Self { pitch, count })
    }

    /// The names, each above its lane.
    fn heading(&self, graph: &Graph, columns: usize, lines: &mut Vec<String>) {
        for (i, node) in graph.nodes.iter().enumerate() {
            let before = self.bars(i);
            let name = cut_to_columns(&one_line(&node.name), columns - width(&before) - 2);
            lines.push(format!("  {before}{name}"));
        }
        lines.push(format!("  {}", self.bars(self.count)));
    }

    /// The first lanes without an arrow.
    fn bars(&self, count: usize) -> String {
        format!("│{}", " ".repeat(self.pitch - 1)).repeat(count)
    }

    /// All lanes without an arrow, and the space before the text.
    fn empty(&self) -> String {
        format!("  {} ", self.bars(self.count))
    }

    fn arrow(&self, from: NodeId, to: NodeId, is_answer: bool) -> String {
        let line = if is_answer { '┄' } else { '─' };
        let mut cells: Vec<char> = self.bars(self.count).chars().collect();
        let (start, end) = (from.0 * self.pitch, to.0 * self.pitch);
        let (low, high) = (start.min(end), start.max(end));
        for (i, cell) in cells.iter_mut().enumerate() {
            if i > low && i < high {
                *cell = line;
            }
        }
        cells[start] = if end >= start { '├' } else { '┤' };
        if start == end {
            cells[start] = '↺'
        } else {
            cells[end] = if end > start { '▶' } else { '◀' }
        }
        format!("  {} ", cells.iter().collect::<String>())
    }

    /// A mark in one lane.
    fn mark(&self, at: NodeId, mark: char) -> String {
        let mut cells: Vec<char> = self.bars(self.count).chars().collect();
        cells[at.0 * self.pitch] = mark;
        format!("  {} ", cells.iter().collect::<String>())
    }
}

/// A row of the diagram.
enum Row<'g> {
    Step(&'g Step),
    Skipped(usize),
}

/// The rows; of a long issue, the beginning, the end, and what is open or had trouble between.
fn rows(graph: &Graph) -> Vec<Row<'_>> {
    let steps = &graph.steps;
    if steps.len() <= MOST_STEPS {
        return steps.iter().map(Row::Step).collect();
    }
    let end = steps.len() - LAST;
    let stands_out = |step: &&Step| !step.state.is_terminal() || !step.troubles.is_empty();
    let between = steps[FIRST..end]
        .iter()
        .filter(stands_out)
        .rev()
        .take(BETWEEN)
        .map(|step| step.number);
    let between: Vec<u32> = between.collect();
    let mut rows = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        if i < FIRST || i >= end || between.contains(&step.number) {
            rows.push(Row::Step(step));
        } else if let Some(Row::Skipped(count)) = rows.last_mut() {
            *count += 1;
        } else {
            rows.push(Row::Skipped(1));
        }
    }
    rows
}

fn step_lines(
    graph: &Graph,
    lanes: &Lanes,
    step: &Step,
    columns: usize,
    paint: Paint<'_>,
    lines: &mut Vec<String>,
) {
    let arrow = lanes.arrow(step.from, step.to, step.answers.is_some());
    let room = columns.saturating_sub(width(&arrow)).max(20);
    let text = step_text(step, room);
    lines.push(format!("{arrow}{}", paint(step.mark, &text)));
    let indent = " ".repeat(step.number.to_string().len() + 1);
    let empty = lanes.empty();
    let skipped = step.troubles.len().saturating_sub(3);
    if skipped > 0 {
        lines.push(format!(
            "{empty}{indent}{}",
            counted(skipped, "earlier trouble")
        ));
    }
    for trouble in &step.troubles[skipped..] {
        let before = format!("{indent}{} ", trouble.mark.symbol());
        let shown = beneath(&before, &trouble.text, room, 2);
        lines.extend(
            shown
                .iter()
                .map(|l| format!("{empty}{}", paint(trouble.mark, l))),
        );
    }
    if let Some(with) = step.now_with {
        let name = one_line(&graph.node(with).name);
        let arrow = lanes.arrow(step.to, with, true);
        lines.push(format!("{arrow}{indent}reassigned to {name}"));
    }
}

/// A handoff's line: its summary, and its duration at the end.
fn step_text(step: &Step, room: usize) -> String {
    let mut text = format!("{} {}", step.number, step.mark.symbol());
    if step.state != State::Completed {
        let is_late = step.mark == Mark::Late;
        let how = if is_late {
            overdue_text(step.state)
        } else {
            step.state.words()
        };
        text += &format!(" {how}");
    }
    if step.attempt > 1 {
        text += &format!(" attempt {}", step.attempt);
    }
    if let Some(request) = step.answers {
        text += &format!(" {} to {request}:", one_line(&step.contract_type));
    }
    if let Some(task) = &step.task {
        text += &format!(" {}:", one_line(task));
    }
    if let Some(meant_for) = &step.meant_for {
        text += &format!(" for {meant_for}:");
    }
    text += &format!(" {}", one_line(&step.summary));
    let times = [("waited", step.waited), ("worked", step.worked)];
    let times = times
        .iter()
        .filter_map(|(what, time)| Some((what, (*time)?)));
    let times: Vec<String> = times
        .map(|(what, time)| format!("{what} {}", span(time)))
        .collect();
    let times = times.join(", ");
    match room
        .checked_sub(width(&times) + 2)
        .filter(|left| *left >= 14)
    {
        Some(left) if !times.is_empty() => {
            let text = cut_to_columns(text.trim_end(), left);
            format!("{text}{}  {times}", " ".repeat(left - width(&text)))
        }
        _ => cut_to_columns(text.trim_end(), room),
    }
}

/// Where the work is now.
fn positions(
    graph: &Graph,
    lanes: Option<&Lanes>,
    columns: usize,
    paint: Paint<'_>,
    lines: &mut Vec<String>,
) {
    for node in graph.nodes.iter().filter(|node| node.here) {
        let before = match lanes {
            Some(lanes) => lanes.mark(node.id, '◆'),
            None => "  ◆ ".to_owned(),
        };
        let room = columns.saturating_sub(width(&before)).max(20);
        let text = format!("here: {}: {}", one_line(&node.name), node.lines.join(", "));
        let shown = beneath("", &text, room, 4);
        let empty = lanes.map_or("    ".to_owned(), Lanes::empty);
        lines.extend(shown.iter().enumerate().map(|(i, line)| {
            let before = if i == 0 { &before } else { &empty };
            format!("{before}{}", paint(node.mark, line))
        }));
    }
}

/// The loops, the rounds and, if steps were skipped, the routes with their counts.
fn summary(
    graph: &Graph,
    columns: usize,
    skipped: bool,
    paint: Paint<'_>,
    lines: &mut Vec<String>,
) {
    if !graph.loops.is_empty() || !graph.rounds.is_empty() {
        lines.push(String::new());
    }
    for around in graph.loops.iter().take(8) {
        let mut text = graph.loop_text(around);
        let taken = &around.rounds;
        let spans: Vec<String> = taken
            .iter()
            .take(4)
            .map(|(first, last)| {
                if first == last {
                    first.to_string()
                } else {
                    format!("{first}–{last}")
                }
            })
            .collect();
        let more = if taken.len() > 4 { ", …" } else { "" };
        text += &format!(" ({}{more})", spans.join(", "));
        lines.extend(beneath("  ↻ ", &text, columns, 4));
    }
    let more = graph.loops.len().saturating_sub(8);
    if more > 0 {
        lines.push(format!("  ↻ {}", counted(more, "other loop")));
    }
    for rounds in graph.round_texts() {
        lines.extend(beneath("  ", &rounds, columns, 4));
    }
    if skipped {
        lines.push(String::new());
        ways(graph, columns, paint, lines);
    }
}

fn ways(graph: &Graph, columns: usize, paint: Paint<'_>, lines: &mut Vec<String>) {
    for edge in &graph.edges {
        let text = format!("{}: {}", names(graph, edge), label(graph, edge).join(", "));
        let shown = beneath("  ", &text, columns, 3);
        lines.extend(shown.iter().map(|line| paint(edge.mark, line)));
    }
}

fn names(graph: &Graph, edge: &Edge) -> String {
    let name = |id| one_line(&graph.node(id).name);
    format!("{} → {}", name(edge.from), name(edge.to))
}

/// Draws lines with agents' names, if there are too many agents for lanes.
fn without_lanes(graph: &Graph, columns: usize, paint: Paint<'_>, lines: &mut Vec<String>) {
    for part in rows(graph) {
        match part {
            Row::Step(step) => {
                let name = |id| one_line(&graph.node(id).name);
                let ways = format!("  {} → {}", name(step.from), name(step.to));
                lines.push(cut_to_columns(&ways, columns));
                let text = format!("    {}", step_text(step, columns - 4));
                lines.push(paint(step.mark, &text));
                for trouble in &step.troubles {
                    let before = format!("      {} ", trouble.mark.symbol());
                    let shown = beneath(&before, &trouble.text, columns, 2);
                    lines.extend(shown.iter().map(|line| paint(trouble.mark, line)));
                }
            }
            Row::Skipped(count) => lines.push(format!("  ⋮ {count} more")),
        }
    }
    positions(graph, None, columns, paint, lines);
    summary(graph, columns, true, paint, lines);
}
