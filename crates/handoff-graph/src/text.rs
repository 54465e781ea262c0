//! Text for graphs: one-line names, times, counts.

use chrono::TimeDelta;
use handoff::protocol::State;
use unicode_width::UnicodeWidthChar;

use super::{Edge, Graph, Kind};

/// A duration in at most two units: `45s`, `12m`, `3h 20m`, `2d 4h`.
pub fn span(time: TimeDelta) -> String {
    let seconds = time.num_seconds().max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600, seconds / 60);
    let two = |first: i64, unit: &str, second: i64, smaller: &str| match second {
        0 => format!("{first}{unit}"),
        _ => format!("{first}{unit} {second}{smaller}"),
    };
    match () {
        () if days >= 2 => two(days, "d", hours - days * 24, "h"),
        () if hours >= 1 => two(hours, "h", minutes - hours * 60, "m"),
        () if minutes >= 1 => format!("{minutes}m"),
        () => format!("{seconds}s"),
    }
}

/// The width of a text in columns.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Truncates a text to this many columns.
pub(super) fn cut_to_columns(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        kept.push(c);
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

/// Wraps a text at words.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(cut_to_columns(word, columns)),
        }
    }
    lines
}

/// The first names, and the number of the rest.
pub(super) fn list(names: &[String], most: usize) -> String {
    match names.len().saturating_sub(most) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..most].join(", ")),
    }
}

/// Numbers as a list; of a long one, the middle is omitted.
pub(super) fn numbers(numbers: &[u32]) -> String {
    let all = |numbers: &[u32]| {
        let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
        texts.join(", ")
    };
    match numbers {
        [first, second, .., last] if numbers.len() > 6 => format!("{first}, {second} … {last}"),
        _ => all(numbers),
    }
}

/// An edge's handoffs and their states: `4, 6 ×2 ✗ 1 failed`.
fn taken(kind: Kind, edge: &Edge) -> String {
    let mut parts = vec![numbers(&edge.handoffs)];
    parts.extend((edge.count > 1 || kind == Kind::Protocol).then(|| format!("×{}", edge.count)));
    let other = edge
        .states
        .iter()
        .filter(|(state, _)| *state != State::Completed);
    let other: Vec<String> = other
        .map(|(state, count)| match edge.count {
            1 => state.words().to_owned(),
            _ => format!("{count} {}", state.words()),
        })
        .collect();
    // In a protocol, completed handoffs alone are not worth mentioning.
    let is_news = kind != Kind::Protocol || !other.is_empty();
    parts.extend(is_news.then(|| edge.mark.symbol().to_owned()));
    parts.push(other.join(", "));
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

/// An edge's contract types, except one that only repeats the agents' names.
pub(super) fn types(graph: &Graph, edge: &Edge) -> Vec<String> {
    let name = |id| graph.node(id).name.as_str();
    let (from, to) = (name(edge.from), name(edge.to));
    let only_names = format!("{from}-to-{to}");
    let says_more = |kind: &&String| **kind != only_names && *kind != to;
    edge.types.iter().filter(says_more).cloned().collect()
}

/// The lines of an edge's label.
pub(super) fn label(graph: &Graph, edge: &Edge) -> Vec<String> {
    let mut lines = Vec::new();
    let types = types(graph, edge);
    lines.extend((!types.is_empty()).then(|| list(&types, 3)));
    lines.extend((edge.count > 0).then(|| taken(graph.kind, edge)));
    let times = [("waited", edge.waited), ("worked", edge.worked)];
    let times = times
        .into_iter()
        .filter_map(|(what, time)| Some((what, time?)));
    let times: Vec<String> = times
        .map(|(what, time)| format!("{what} {}", span(time)))
        .collect();
    let before = if graph.kind == Kind::Protocol {
        "median: "
    } else {
        ""
    };
    lines.extend((!times.is_empty()).then(|| format!("{before}{}", times.join(", "))));
    let stands = |(state, _): &(State, usize)| matches!(state, State::Failed | State::Dead);
    // The states already show a current failure.
    if edge.failures > 0 && !edge.states.iter().any(stands) {
        let times = match edge.failures {
            1 => "once".to_owned(),
            count => format!("{count} times"),
        };
        lines.push(format!("✗ failed {times} before"));
    }
    lines.extend(match edge.late {
        0 => None,
        1 => Some("! lease ran out".to_owned()),
        late => Some(format!("! {late} leases ran out")),
    });
    lines.extend(edge.notes.iter().cloned());
    lines
}

#[cfg(test)]
mod tests {
    use super::{cut_to_columns, span, width, wrap};
    use chrono::TimeDelta;

    #[test]
    fn times_have_two_units_at_most() {
        let table = [
            (0, "0s"),
            (-5, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3_599, "59m"),
            (3_600, "1h"),
            (12_000, "3h 20m"),
            (86_400, "24h"),
            (172_800, "2d"),
            (187_200, "2d 4h"),
        ];
        for (seconds, expected) in table {
            assert_eq!(span(TimeDelta::seconds(seconds)), expected);
        }
    }

    #[test]
    fn what_is_cut_takes_no_more_columns_than_it_may() {
        for text in ["short", "a long line of words", "日本語のテキスト"] {
            for columns in 1..12 {
                assert!(
                    width(&cut_to_columns(text, columns)) <= columns,
                    "{text} {columns}"
                );
                assert!(wrap(text, columns).iter().all(|l| width(l) <= columns));
            }
        }
        assert_eq!(cut_to_columns("日本語", 5), "日本…");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    }
}
