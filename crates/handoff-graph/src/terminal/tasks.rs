//! Tasks as a tree: parents and dependencies.

use handoff::base::text::one_line;

use super::{Paint, beneath};
use crate::text::list;
use crate::{EdgeKind, Graph, Mark, Node, NodeId};

/// The maximum number of tasks drawn; if there are more, completed ones are only counted.
const MOST_TASKS: usize = 40;

pub(super) fn draw(graph: &Graph, columns: usize, paint: Paint<'_>, lines: &mut Vec<String>) {
    let is_long = graph.nodes.len() > MOST_TASKS;
    let mut parts: Vec<Vec<NodeId>> = vec![Vec::new(); graph.nodes.len()];
    let mut dependencies: Vec<Vec<NodeId>> = vec![Vec::new(); graph.nodes.len()];
    let mut is_part = vec![false; graph.nodes.len()];
    for edge in &graph.edges {
        match edge.kind {
            EdgeKind::Part => {
                parts[edge.from.0].push(edge.to);
                is_part[edge.to.0] = true;
            }
            EdgeKind::Dependency => dependencies[edge.to.0].push(edge.from),
            _ => {}
        }
    }
    let is_hidden = |id: &NodeId| is_long && graph.node(*id).mark == Mark::Done;
    let task = |id: &NodeId| task(graph, graph.node(*id), &dependencies[id.0], columns, paint);
    // Tasks whose parent was never handed over are at the top level.
    let tops = graph.nodes.iter().map(|node| node.id);
    let tops: Vec<NodeId> = tops.filter(|id| !is_part[id.0]).collect();
    let (done, shown): (Vec<NodeId>, Vec<NodeId>) = tops
        .into_iter()
        .partition(|id| is_hidden(id) && parts[id.0].is_empty());
    if !done.is_empty() {
        lines.push(some_done("", done.len(), paint));
    }
    for top in shown {
        lines.extend(task(&top));
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
            let starts = std::iter::once(corner).chain(std::iter::repeat(bar));
            let branch = starts.zip(task(id));
            lines.extend(branch.map(|(start, line)| format!("{start}{line}")));
        }
    }
}

/// A line that counts completed tasks.
fn some_done(corner: &str, count: usize, paint: Paint<'_>) -> String {
    let text = format!("{} {count} done", Mark::Done.symbol());
    format!("{corner}{}", paint(Mark::Done, &text))
}

fn task(
    graph: &Graph,
    node: &Node,
    dependencies: &[NodeId],
    columns: usize,
    paint: Paint<'_>,
) -> Vec<String> {
    let symbol = match node.mark {
        Mark::None => "·",
        mark => mark.symbol(),
    };
    let text = format!("{}: {}", one_line(&node.name), node.lines.join(", "));
    let mut shown = beneath(&format!("{symbol} "), &text, columns - 6, 3);
    let names = dependencies.iter().map(|id| {
        let before = graph.node(*id);
        format!("{} {}", one_line(&before.name), before.mark.symbol())
    });
    let names: Vec<String> = names.collect();
    if !names.is_empty() && node.mark != Mark::Done {
        shown.extend(beneath("  after ", &list(&names, 8), columns - 6, 3));
    }
    shown.iter().map(|line| paint(node.mark, line)).collect()
}
