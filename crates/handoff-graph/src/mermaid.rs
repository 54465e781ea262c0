//! Graphs as Mermaid, which GitHub and many others render.
//!
//! Mermaid interprets markup, icons, links, directives and entities in labels, so everything but
//! letters and digits is escaped as `#NN;`. It refuses more than 500 edges or 50,000 characters: a
//! larger graph is reduced to its most important parts, with a remark.

use std::collections::HashSet;
use std::fmt::Write;

use handoff::base::text::{counted, one_line};

use super::text::{cut_to_columns, label, wrap};
use super::{Edge, EdgeKind, Graph, Kind, Mark, Node, NodeId, Shape};

/// Below Mermaid's default limit of edges.
const MOST_EDGES: usize = 490;

/// Mermaid's default limit of characters.
const MOST_TEXT: usize = 50_000;

/// Draws a graph as a Mermaid flowchart.
pub fn mermaid(graph: &Graph) -> String {
    let tries = [(160, usize::MAX), (48, 500), (24, 300), (16, 150)];
    let fits = |text: &String| text.encode_utf16().count() < MOST_TEXT;
    let drawn = tries
        .iter()
        .map(|(columns, nodes)| draw(graph, *columns, *nodes));
    // The smallest selection always fits.
    let mut last = String::new();
    for text in drawn {
        last = text;
        if fits(&last) {
            break;
        }
    }
    last
}

fn draw(graph: &Graph, columns: usize, most_nodes: usize) -> String {
    let direction = match graph.kind {
        Kind::Issue | Kind::Protocol => "LR",
        Kind::Tasks => "TB",
    };
    let title = in_title(&cut_to_columns(&one_line(&graph.title), 160));
    let mut text = format!("---\ntitle: \"{title}\"\n---\nflowchart {direction}\n");
    let (nodes, edges) = most_important(graph, most_nodes);
    for (i, group) in graph.groups.iter().enumerate() {
        let title = in_label(&cut_to_columns(&one_line(&group.title), columns));
        let inside: Vec<&&Node> = nodes.iter().filter(|n| n.group == Some(i)).collect();
        if inside.is_empty() {
            continue;
        }
        let _ = writeln!(text, "  subgraph g{i}[\"{title}\"]");
        for node in inside {
            let _ = writeln!(text, "    {}", node_text(graph, node, columns));
        }
        text += "  end\n";
    }
    for node in nodes.iter().filter(|node| node.group.is_none()) {
        let _ = writeln!(text, "  {}", node_text(graph, node, columns));
    }
    for edge in &edges {
        let _ = writeln!(text, "  {}", edge_text(graph, edge, columns));
    }
    remarks(graph, &nodes, &edges, columns, &mut text);
    styles(graph, &nodes, &edges, &mut text);
    text
}

/// The nodes and edges to draw: all, or the most important ones.
fn most_important(graph: &Graph, most_nodes: usize) -> (Vec<&Node>, Vec<&Edge>) {
    let mut nodes: Vec<&Node> = graph.nodes.iter().collect();
    if nodes.len() > most_nodes {
        // Nodes by urgency.
        nodes.sort_by_key(|node| std::cmp::Reverse(node.mark));
        nodes.truncate(most_nodes);
        nodes.sort_by_key(|node| node.id);
    }
    let kept: HashSet<NodeId> = nodes.iter().map(|node| node.id).collect();
    let mut edges = graph.drawn();
    edges.retain(|edge| kept.contains(&edge.from) && kept.contains(&edge.to));
    if edges.len() > MOST_EDGES {
        // Used edges before unused ones, then the most urgent first.
        let mut order: Vec<(usize, &Edge)> = edges.into_iter().enumerate().collect();
        let is_over = |edge: &Edge| edge.kind == EdgeKind::Dependency && edge.mark == Mark::Done;
        order.sort_by_key(|(i, edge)| {
            let matters = std::cmp::Reverse(edge.mark);
            (edge.is_unused() || is_over(edge), matters, *i)
        });
        order.truncate(MOST_EDGES);
        order.sort_by_key(|(i, _)| *i);
        edges = order.into_iter().map(|(_, edge)| edge).collect();
    }
    (nodes, edges)
}

fn node_text(graph: &Graph, node: &Node, columns: usize) -> String {
    let symbol = match (graph.kind, node.here, node.mark) {
        (Kind::Issue, true, _) => "➤ ".to_owned(),
        (Kind::Tasks, _, mark) if mark != Mark::None => format!("{} ", mark.symbol()),
        _ => String::new(),
    };
    let name = format!("{symbol}{}", one_line(&node.name));
    let mut lines = vec![in_label(&cut_to_columns(&name, columns))];
    lines.extend(
        node.lines
            .iter()
            .map(|line| in_label(&cut_to_columns(&one_line(line), columns))),
    );
    let inside = lines.join("<br/>");
    let (open, close) = match node.shape {
        Shape::Orchestrator => ("{{", "}}"),
        Shape::Specialist | Shape::Task => ("[", "]"),
        Shape::Human => ("[/", "/]"),
        Shape::End => ("([", "])"),
        Shape::Anyone => ("(", ")"),
    };
    format!("{}{open}\"{inside}\"{close}", node.id)
}

fn edge_text(graph: &Graph, edge: &Edge, columns: usize) -> String {
    let arrow = match edge.kind {
        EdgeKind::Handoff if graph.kind == Kind::Protocol && edge.count > 0 => "==>",
        EdgeKind::Handoff | EdgeKind::Dependency => "-->",
        EdgeKind::Answer | EdgeKind::Reassigned => "-.->",
        EdgeKind::Forbidden => "-.-x",
        EdgeKind::Part => "-.-",
    };
    let mut lines = Vec::new();
    for line in label(graph, edge) {
        let forbidden = edge.kind == EdgeKind::Forbidden && lines.is_empty();
        let line = format!("{}{}", if forbidden { "✗ " } else { "" }, one_line(&line));
        let wrapped = wrap(&cut_to_columns(&line, columns * 2), 40.min(columns));
        lines.extend(wrapped.iter().map(|line| in_label(line)));
    }
    if lines.is_empty() {
        format!("{} {arrow} {}", edge.from, edge.to)
    } else {
        format!(
            "{} {arrow}|\"{}\"| {}",
            edge.from,
            lines.join("<br/>"),
            edge.to
        )
    }
}

/// Remarks about loops, rounds and omitted parts.
fn remarks(graph: &Graph, nodes: &[&Node], edges: &[&Edge], columns: usize, text: &mut String) {
    let mut lines: Vec<String> = graph
        .loops
        .iter()
        .take(5)
        .map(|around| format!("↻ {}", graph.loop_text(around)))
        .collect();
    let more = graph.loops.len().saturating_sub(lines.len());
    lines.extend((more > 0).then(|| counted(more, "other loop")));
    lines.extend(graph.round_texts());
    let left = graph.nodes.len() - nodes.len();
    lines.extend((left > 0).then(|| format!("{left} of {} not drawn", graph.nodes.len())));
    let all = graph.drawn().len();
    let left = all - edges.len();
    lines.extend((left > 0).then(|| format!("{left} of {all} edges not drawn")));
    if lines.is_empty() {
        return;
    }
    let lines: Vec<String> = lines
        .iter()
        .map(|line| in_label(&cut_to_columns(&one_line(line), columns * 2)))
        .collect();
    let _ = writeln!(text, "  remarks[\"{}\"]", lines.join("<br/>"));
    text.push_str("  style remarks fill:none,stroke:none\n");
}

/// Colours for light and dark pages; they repeat what the symbols show.
fn styles(graph: &Graph, nodes: &[&Node], edges: &[&Edge], text: &mut String) {
    let marks = [
        (
            Mark::Done,
            "done",
            "fill:#dafbe1,stroke:#1a7f37,color:#1f2328",
        ),
        (
            Mark::Claimable,
            "ready",
            "fill:#fff8c5,stroke:#9a6700,color:#1f2328",
        ),
        (
            Mark::Waiting,
            "waiting",
            "fill:#f6f8fa,stroke:#57606a,color:#1f2328",
        ),
        (
            Mark::Working,
            "working",
            "fill:#ddf4ff,stroke:#0969da,color:#1f2328,stroke-width:3px",
        ),
        (
            Mark::Blocked,
            "blocked",
            "fill:#fbefff,stroke:#8250df,color:#1f2328,stroke-width:3px",
        ),
        (
            Mark::Late,
            "late",
            "fill:#fff1e5,stroke:#bc4c00,color:#1f2328,stroke-width:3px",
        ),
        (
            Mark::Failed,
            "failed",
            "fill:#ffebe9,stroke:#cf222e,color:#1f2328,stroke-width:3px",
        ),
        (
            Mark::Dropped,
            "dropped",
            "fill:#f6f8fa,stroke:#8c959f,color:#1f2328",
        ),
    ];
    for (mark, name, style) in marks {
        let marked: Vec<String> = nodes
            .iter()
            .filter(|node| node.mark == mark)
            .map(|node| node.id.to_string())
            .collect();
        if !marked.is_empty() {
            let _ = writeln!(text, "  classDef {name} {style}");
            let _ = writeln!(text, "  class {} {name}", marked.join(","));
        }
    }
    let mut link = |which: &dyn Fn(&Edge) -> bool, style: &str| {
        let places = edges.iter().enumerate().filter(|(_, edge)| which(edge));
        let places: Vec<String> = places.map(|(i, _)| i.to_string()).collect();
        if !places.is_empty() {
            let _ = writeln!(text, "  linkStyle {} {style}", places.join(","));
        }
    };
    let is_protocol = graph.kind == Kind::Protocol;
    link(
        &|edge| is_protocol && edge.is_unused(),
        "stroke:#8c959f,stroke-width:1px",
    );
    link(&|edge| edge.kind == EdgeKind::Forbidden, "stroke:#cf222e");
    link(
        &|edge| !is_protocol && edge.mark == Mark::Failed,
        "stroke:#cf222e,stroke-width:3px",
    );
    link(
        &|edge| !is_protocol && edge.mark == Mark::Late,
        "stroke:#bc4c00,stroke-width:3px",
    );
    link(
        &|edge| !is_protocol && edge.mark == Mark::Blocked,
        "stroke:#8250df,stroke-width:3px",
    );
}

/// Escapes a text for a quoted label: special characters become their number.
fn in_label(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let chars: Vec<char> = text.chars().collect();
    for (i, &c) in chars.iter().enumerate() {
        let neighbour = |at: Option<usize>| {
            let other = at.and_then(|at| chars.get(at));
            other.is_some_and(char::is_ascii_alphanumeric)
        };
        let is_plain = match c {
            ' ' | ',' => true,
            // These are harmless within a word.
            '-' | '_' | '.' => neighbour(i.checked_sub(1)) && neighbour(Some(i + 1)),
            // Mermaid's internal placeholders for `#` and `;`.
            'ﬂ' | 'ß' => false,
            '→' | '×' | '✓' | '✗' | '○' | '◌' | '◐' | '–' | '➤' | '↻' | '…' => {
                true
            }
            c => c.is_alphanumeric(),
        };
        if is_plain {
            shown.push(c);
            continue;
        }
        let _ = write!(shown, "#{};", u32::from(c));
        // Two dollar signs start a formula, even when escaped.
        if c == '$' {
            shown.push_str("#8203;");
        }
    }
    if shown.trim().is_empty() {
        // Mermaid refuses an empty label.
        return "#8203;".to_owned();
    }
    shown
}

/// Escapes a text for a title: a YAML string in which Mermaid looks for directives.
fn in_title(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' ' | '-' | '_' | '.' | ',' | ':' | '(' | ')' => shown.push(c),
            c if c.is_alphanumeric() => shown.push(c),
            c => {
                let _ = write!(shown, "\\U{:08x}", u32::from(c));
            }
        }
    }
    shown
}
