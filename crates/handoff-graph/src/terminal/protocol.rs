//! A protocol as a list of routes by sender.

use handoff::base::text::one_line;

use super::{Paint, beneath};
use crate::text::{cut_to_columns, list, span, types, width};
use crate::{Edge, EdgeKind, Graph, Mark, Node, Shape};

pub(super) fn draw(graph: &Graph, columns: usize, paint: Paint<'_>, lines: &mut Vec<String>) {
    let receivers = graph.edges.iter().map(|edge| width(&receiver(graph, edge)));
    let names = receivers.max().unwrap_or(0).min(columns / 3);
    for node in &graph.nodes {
        let leaving = || graph.edges.iter().filter(|edge| edge.from == node.id);
        let is_reached = graph.edges.iter().any(|edge| edge.to == node.id);
        if leaving().next().is_none() && is_reached {
            continue;
        }
        lines.push(cut_to_columns(&heading(node), columns));
        let count = leaving().count();
        for (i, edge) in leaving().enumerate() {
            let (corner, bar) = if i + 1 == count {
                ("└", " ")
            } else {
                ("├", "│")
            };
            let name = cut_to_columns(&receiver(graph, edge), names);
            let pad = " ".repeat(names - width(&name));
            let mut line = format!("  {corner}{} {name}{pad}  {}", arrow(edge), figures(edge));
            line.truncate(line.trim_end().len());
            let remarks = remarks(graph, edge);
            let beside = format!("{line}  {remarks}");
            let fits = width(&beside) <= columns;
            if fits && !remarks.is_empty() {
                line = beside;
            }
            lines.push(match edge.kind {
                EdgeKind::Forbidden => paint(Mark::Failed, &line),
                _ => line,
            });
            if !fits {
                let before = format!("  {bar}     ");
                lines.extend(beneath(&before, &remarks, columns, 4));
            }
        }
    }
    if graph.edges.iter().any(|edge| edge.waited.is_some()) {
        let note = "Times are medians: from the sending until it was taken up, and of work that has ended.";
        lines.push(String::new());
        lines.extend(beneath("", note, columns, 4));
    }
}

fn heading(node: &Node) -> String {
    let kind = match node.shape {
        Shape::Orchestrator => " (orchestrator)",
        Shape::Human => " (human)",
        Shape::End => " (end)",
        Shape::Specialist | Shape::Task | Shape::Anyone => "",
    };
    format!("{}{kind}", one_line(&node.name))
}

fn receiver(graph: &Graph, edge: &Edge) -> String {
    let node = graph.node(edge.to);
    let end = if node.shape == Shape::End {
        " (end)"
    } else {
        ""
    };
    format!("{}{end}", one_line(&node.name))
}

fn arrow(edge: &Edge) -> &'static str {
    match edge.kind {
        EdgeKind::Forbidden => "┄┄✗",
        EdgeKind::Answer => "┄┄▶",
        _ if edge.count == 0 => "──▷",
        _ => "━━▶",
    }
}

/// An edge's count and times.
fn figures(edge: &Edge) -> String {
    match edge.kind {
        EdgeKind::Forbidden => "forbidden".to_owned(),
        _ if edge.count == 0 => "never taken".to_owned(),
        _ => {
            let count = format!("×{}", edge.count);
            let time = |what: &str, time: Option<chrono::TimeDelta>| {
                time.map_or(String::new(), |time| format!("{what} {}", span(time)))
            };
            let (waited, worked) = (time("waited", edge.waited), time("worked", edge.worked));
            let text = format!("{count:<6} {waited:<14} {worked}");
            text.trim_end().to_owned()
        }
    }
}

/// An edge's contract types and remarks.
fn remarks(graph: &Graph, edge: &Edge) -> String {
    let shown = types(graph, edge);
    let types = (!shown.is_empty()).then(|| list(&shown, 6));
    let types_and_notes: Vec<String> = types
        .into_iter()
        .chain(edge.notes.iter().cloned())
        .collect();
    one_line(&types_and_notes.join("; "))
}
