//! Tasks as a tree: parents and dependencies.

use handoff_base::text::one_line;

use super::{Paint, beneath};
use crate::graph::text::list;
use crate::graph::{EdgeKind, Graph, Mark, Node, NodeId};

/// The most tasks with lines of their own; of more, completed ones are only counted.
const MOST_TASKS: usize = 40;

pub(super) fn draw(graph: &Graph, columns: usize, paint: Paint<'_>, lines: &mut Vec<String>) {
    let is_long = graph.nodes.len() > MOST_TASKS;
    let mut parts: Vec<Vec<NodeId>> = vec![Vec::new(); graph.nodes.len()];
    let mut befores: Vec<Vec<NodeId>> = vec![Vec::new(); graph.nodes.len()];
    let mut is_part = vec![false; graph.nodes.len()];
    for edge in &graph.edges {
        match edge.kind {
            EdgeKind::Part => {
                parts[edge.from.0].push(edge.to);
                is_part[edge.to.0] = true;
            }
            EdgeKind::Dependency => befores[edge.to.0].push(edge.from),
            _ => {}
        }
    }
    let is_hidden = |id: &NodeId| is_long && graph.node(*id).mark == Mark::Done;
    // Parts of a task that nobody handed over are shown at the top.
    let tops = graph.nodes.iter().map(|node| node.id);
    let tops: Vec<NodeId> = tops.filter(|id| !is_part[id.0]).collect();
    let (done, shown): (Vec<NodeId>, Vec<NodeId>) = tops
        .into_iter()
        .partition(|id| is_hidden(id) && parts[id.0].is_empty());
    if !done.is_empty() {
        lines.push(some_done("", done.len(), paint));
    }
    for top in shown {
        let before = &befores[top.0];
        task(
            graph,
            graph.node(top),
            before,
            "",
            "",
            columns,
            paint,
            lines,
        );
        let (done, shown): (Vec<NodeId>, Vec<NodeId>) =
            parts[top.0].iter().partition(|id| is_hidden(id));
        if !done.is_empty() {
            let corner = if shown.is_empty() {
                "  └─ "
            } else {
                "  ├─ "
            };
            lines.push(some_done(corner, done.len(), paint));
        }
        for (i, id) in shown.iter().enumerate() {
            let (corner, bar) = if i + 1 == shown.len() {
                ("  └─ ", "     ")
            } else {
                ("  ├─ ", "  │  ")
            };
            let before = &befores[id.0];
            task(
                graph,
                graph.node(*id),
                before,
                corner,
                bar,
                columns,
                paint,
                lines,
            );
        }
    }
}

/// A line that counts completed tasks.
fn some_done(corner: &str, count: usize, paint: Paint<'_>) -> String {
    let text = format!("{} {count} done", Mark::Done.symbol());
    format!("{corner}{}", paint(Mark::Done, &text))
}

#[expect(clippy::too_many_arguments, reason = "a line is made of all of them")]
fn task(
    graph: &Graph,
    node: &Node,
    befores: &[NodeId],
    corner: &str,
    bar: &str,
    columns: usize,
    paint: Paint<'_>,
    lines: &mut Vec<String>,
) {
    let symbol = match node.mark {
        Mark::None => "·",
        mark => mark.symbol(),
    };
    let text = format!("{}: {}", one_line(&node.name), node.lines.join(", "));
    let mut told = beneath(&format!("{symbol} "), &text, columns - 6, 3);
    let all = befores.iter().map(|id| {
        let before = graph.node(*id);
        format!("{} {}", one_line(&before.name), before.mark.symbol())
    });
    let all: Vec<String> = all.collect();
    if !all.is_empty() && node.mark != Mark::Done {
        told.extend(beneath("  after ", &list(&all, 8), columns - 6, 3));
    }
    lines.extend(told.iter().enumerate().map(|(i, line)| {
        let before = if i == 0 { corner } else { bar };
        format!("{before}{}", paint(node.mark, line))
    }));
}
