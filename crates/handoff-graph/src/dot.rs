//! Graphs in DOT, the language of Graphviz.

use std::fmt::Write;

use handoff::base::text::one_line;

use super::text::{cut_to_columns, label, wrap};
use super::{Edge, EdgeKind, Graph, Kind, Mark, Node, Shape};

/// Draws a graph as a DOT digraph.
pub fn dot(graph: &Graph) -> String {
    let direction = match graph.kind {
        Kind::Issue | Kind::Protocol => "LR",
        Kind::Tasks => "TB",
    };
    let mut heading = vec![one_line(&graph.title)];
    let loops = graph
        .loops
        .iter()
        .map(|around| format!("↻ {}", graph.loop_text(around)));
    heading.extend(loops);
    let mut text = format!(
        "digraph handoff {{\n  rankdir={direction};\n  label=\"{}\";\n  labelloc=t;\n",
        lines(&heading)
    );
    text += "  node [fontname=\"sans-serif\", style=filled, fillcolor=white];\n";
    text += "  edge [fontname=\"sans-serif\", fontsize=10];\n";
    for (i, group) in graph.groups.iter().enumerate() {
        let title = lines(&[one_line(&group.title)]);
        let _ = writeln!(text, "  subgraph cluster_{i} {{\n    label=\"{title}\";");
        for node in graph.nodes.iter().filter(|node| node.group == Some(i)) {
            let _ = writeln!(text, "    {}", node_text(graph, node));
        }
        text += "  }\n";
    }
    for node in graph.nodes.iter().filter(|node| node.group.is_none()) {
        let _ = writeln!(text, "  {}", node_text(graph, node));
    }
    for edge in graph.drawn() {
        let _ = writeln!(text, "  {}", edge_text(graph, edge));
    }
    text += "}\n";
    text
}

fn node_text(graph: &Graph, node: &Node) -> String {
    let symbol = match (graph.kind, node.here, node.mark) {
        (Kind::Issue, true, _) => "➤ ".to_owned(),
        (Kind::Tasks, _, mark) if mark != Mark::None => format!("{} ", mark.symbol()),
        _ => String::new(),
    };
    let mut all = vec![format!("{symbol}{}", one_line(&node.name))];
    for line in &node.lines {
        all.extend(wrap(&one_line(line), 40));
    }
    let shape = match node.shape {
        Shape::Orchestrator => "shape=hexagon",
        Shape::Specialist | Shape::Task => "shape=box",
        Shape::Human => "shape=parallelogram",
        Shape::End => "shape=box, style=\"filled,rounded\", peripheries=2",
        Shape::Anyone => "shape=box, style=\"filled,dashed\"",
    };
    let colour = match node.mark {
        Mark::None => "",
        Mark::Done => ", color=\"#1a7f37\", fillcolor=\"#dafbe1\"",
        Mark::Claimable => ", color=\"#9a6700\", fillcolor=\"#fff8c5\"",
        Mark::Waiting | Mark::Dropped => ", color=\"#57606a\", fillcolor=\"#f6f8fa\"",
        Mark::Working => ", color=\"#0969da\", fillcolor=\"#ddf4ff\", penwidth=2",
        Mark::Blocked => ", color=\"#8250df\", fillcolor=\"#fbefff\", penwidth=2",
        Mark::Late => ", color=\"#bc4c00\", fillcolor=\"#fff1e5\", penwidth=2",
        Mark::Failed => ", color=\"#cf222e\", fillcolor=\"#ffebe9\", penwidth=2",
    };
    format!("{} [label=\"{}\", {shape}{colour}];", node.id, lines(&all))
}

fn edge_text(graph: &Graph, edge: &Edge) -> String {
    let is_protocol = graph.kind == Kind::Protocol;
    let style = match edge.kind {
        EdgeKind::Handoff if is_protocol && edge.count > 0 => Some("penwidth=2"),
        EdgeKind::Handoff if is_protocol => Some("penwidth=0.5, color=\"#57606a\""),
        EdgeKind::Handoff | EdgeKind::Dependency => None,
        EdgeKind::Answer | EdgeKind::Reassigned => Some("style=dashed"),
        EdgeKind::Forbidden => {
            Some("style=dotted, arrowhead=tee, constraint=false, color=\"#cf222e\"")
        }
        EdgeKind::Part => Some("style=dotted, arrowhead=none"),
    };
    let colour = match edge.mark {
        Mark::Failed if !is_protocol => Some("color=\"#cf222e\", penwidth=2"),
        Mark::Late if !is_protocol => Some("color=\"#bc4c00\", penwidth=2"),
        Mark::Blocked if !is_protocol => Some("color=\"#8250df\", penwidth=2"),
        _ => None,
    };
    let mut all = Vec::new();
    for line in label(graph, edge) {
        let forbidden = edge.kind == EdgeKind::Forbidden && all.is_empty();
        let line = format!("{}{}", if forbidden { "✗ " } else { "" }, one_line(&line));
        all.extend(wrap(&cut_to_columns(&line, 400), 40));
    }
    let label = (!all.is_empty()).then(|| format!("label=\"{}\"", lines(&all)));
    let attributes = [label.as_deref(), style, colour];
    let attributes: Vec<&str> = attributes.into_iter().flatten().collect();
    if attributes.is_empty() {
        format!("{} -> {};", edge.from, edge.to)
    } else {
        format!("{} -> {} [{}];", edge.from, edge.to, attributes.join(", "))
    }
}

/// Lines of text in double quotes, escaped.
fn lines(all: &[String]) -> String {
    let escaped = all.iter().map(|line| {
        let mut shown = String::with_capacity(line.len());
        for c in line.chars() {
            match c {
                '"' => shown.push_str("\\\""),
                '\\' => shown.push_str("\\\\"),
                // Graphviz reads entities in any label.
                '&' => shown.push_str("&amp;"),
                c => shown.push(c),
            }
        }
        shown
    });
    escaped.collect::<Vec<_>>().join("\\n")
}
