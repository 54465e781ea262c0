//! An issue's sequence diagram: a lane for each agent, an arrow for each handoff.

use std::collections::BTreeMap;

use handoff::base::ids::AgentRef;
use handoff::base::text::{counted, fit};
use handoff::ledger::{HandoffSurvey, IssueSurvey};
use handoff::protocol::State;

use super::escape::escaped;
use super::words::{sign, thousands};

/// The most handoffs in a diagram.
const MOST: usize = 60;
/// The most characters of an agent's name above its lane.
const NAME: usize = 20;
/// The height above the first arrow, and of each row.
const TOP: usize = 30;
const ROW: usize = 22;

/// Writes the diagram; a long issue shows its newest handoffs.
pub(super) fn flow(page: &mut String, issue: &IssueSurvey<'_>) {
    let left_out = issue.handoffs.len().saturating_sub(MOST);
    let shown = &issue.handoffs[left_out..];
    let mut lanes: Vec<AgentRef<'_>> = Vec::new();
    for handoff in shown {
        for agent in [handoff.from, handoff.to] {
            if !lanes.contains(&agent) {
                lanes.push(agent);
            }
        }
    }
    if lanes.is_empty() {
        return;
    }
    let longest = lanes
        .iter()
        .map(|agent| agent.as_str().chars().count())
        .max();
    let step = longest.unwrap_or(0).clamp(8, NAME) * 7 + 18;
    let (width, height) = (step * lanes.len(), TOP + ROW * shown.len() + 8);
    *page += &format!(
        "<figure class=\"flow\"><svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">",
        label(issue, shown, &lanes)
    );
    let middle = |lane: usize| step * lane + step / 2;
    let at = |agent: AgentRef<'_>| lanes.iter().position(|lane| *lane == agent).unwrap_or(0);
    let mut lines = String::new();
    for (lane, agent) in lanes.iter().enumerate() {
        let x = middle(lane);
        lines += &format!("M{x} 20V{height}");
        let name = fit(agent.as_str(), NAME);
        *page += &format!("<text x=\"{x}\" y=\"14\">{}</text>", escaped(name));
    }
    *page += &format!("<path class=\"lane\" d=\"{lines}\"/>");
    let mut arrows: BTreeMap<&str, String> = BTreeMap::new();
    let mut labels = String::new();
    for (row, handoff) in shown.iter().enumerate() {
        let y = TOP + ROW * row + 12;
        let (from, to) = (middle(at(handoff.from)), middle(at(handoff.to)));
        let class = handoff.state.as_str();
        *arrows.entry(class).or_default() += &arrow(from, to, y);
        let x = if from <= to { from + 6 } else { from - 6 };
        let end = if from <= to { "" } else { " class=\"e\"" };
        labels += &format!(
            "<text{end} x=\"{x}\" y=\"{}\">{} {}</text>",
            y - 4,
            handoff.number,
            sign(handoff.state)
        );
    }
    for (class, path) in arrows {
        *page += &format!("<path class=\"a {class}\" d=\"{path}\"/>");
    }
    *page += &format!("<g class=\"n\">{labels}</g></svg>");
    if left_out > 0 {
        *page += &format!(
            "<figcaption>The newest {MOST} of {} handoffs.</figcaption>",
            thousands(issue.handoffs.len())
        );
    }
    page.push_str("</figure>");
}

/// An arrow from one lane to another, or a loop within a lane.
fn arrow(from: usize, to: usize, y: usize) -> String {
    if from == to {
        return format!("M{from} {y}h26v8H{end}m6-4l-6 4l6 4", end = from + 2);
    }
    let (end, back) = if from < to { (to - 2, -7) } else { (to + 2, 7) };
    format!("M{from} {y}H{end}m{back}-4L{end} {y}l{back} 4")
}

/// The diagram's text alternative: its agents, its size, and where the work is.
fn label(issue: &IssueSurvey<'_>, shown: &[HandoffSurvey<'_>], lanes: &[AgentRef<'_>]) -> String {
    let names: Vec<&str> = lanes.iter().map(|lane| lane.as_str()).collect();
    let mut text = format!(
        "Way of issue {}: {} between {}",
        issue.key,
        counted(shown.len(), "handoff"),
        names.join(", ")
    );
    let done = |state: &State| *state == State::Completed;
    for handoff in shown.iter().filter(|h| !done(&h.state)).take(10) {
        text += &format!("; {} is {}", handoff.number, handoff.state.words());
    }
    escaped(text).to_string()
}
