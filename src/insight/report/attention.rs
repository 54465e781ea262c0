//! What needs attention now, first of all: what stands still, with whom, since
//! when, why, and the command that goes on.

use super::Shown;
use super::escape::escaped;
use super::words::{ago, counted, thousands, time};
use crate::insight::attention::{Need, Stuck};
use crate::ledger::Moment;

/// How much of it stands open on the page, and how much is there at all.
const AT_ONCE: usize = 25;
const MOST: usize = 500;

/// Writes the section.
pub(super) fn section(page: &mut String, stuck: &[Stuck], shown: &Shown<'_>, now: Moment) {
    page.push_str(
        "<section id=\"attention\" aria-labelledby=\"attention-title\">\n\
         <h2 id=\"attention-title\">Needs attention now</h2>\n",
    );
    if stuck.is_empty() {
        page.push_str(
            "<p class=\"calm\">Nothing stands still: nothing failed, nobody waits for an answer, and whatever is open has been taken up in time.</p>\n</section>\n",
        );
        return;
    }
    *page += &format!("<p class=\"lead\">{}</p>\n", summary(stuck, now));
    cards(page, &stuck[..stuck.len().min(AT_ONCE)], shown, now);
    if stuck.len() > AT_ONCE {
        let rest = &stuck[AT_ONCE..stuck.len().min(MOST)];
        *page += &format!(
            "<details class=\"more\"><summary>{} more</summary>\n",
            thousands(stuck.len() - AT_ONCE)
        );
        cards(page, rest, shown, now);
        if stuck.len() > MOST {
            *page += &format!(
                "<p class=\"meta\">{} more are not listed here: <code>git handoff status --json</code> has all that is open.</p>\n",
                thousands(stuck.len() - MOST)
            );
        }
        page.push_str("</details>\n");
    }
    page.push_str("</section>\n");
}

/// How much of what, and what has stood longest.
fn summary(stuck: &[Stuck], now: Moment) -> String {
    let mut issues: Vec<&str> = stuck.iter().map(|s| s.issue.as_str()).collect();
    issues.sort_unstable();
    issues.dedup();
    let mut parts = Vec::new();
    for need in Need::ALL {
        let count = stuck.iter().filter(|s| s.need == need).count();
        if count > 0 {
            parts.push(format!(
                "<b class=\"n {}\">{} {}</b>",
                class(need),
                thousands(count),
                need.title()
            ));
        }
    }
    let oldest = stuck.iter().map(|s| s.since).min().unwrap_or(now);
    let count = match stuck.len() {
        1 => "One thing stands still".to_owned(),
        count => format!("{} things stand still", thousands(count)),
    };
    format!(
        "{count} in {}, the oldest for {}: {}",
        counted(issues.len(), "issue"),
        ago(oldest, now).trim_end_matches(" ago"),
        parts.join(" ")
    )
}

fn cards(page: &mut String, stuck: &[Stuck], shown: &Shown<'_>, now: Moment) {
    page.push_str("<ol class=\"stuck\">\n");
    for one in stuck {
        let (what, anchor) = match &one.id {
            Some(id) => (id.to_string(), format!("h-{id}")),
            None => (format!("Issue {}", one.issue), format!("i-{}", one.issue)),
        };
        let what = match shown.has(&one.issue) {
            true => format!("<a href=\"#{anchor}\">{what}</a>"),
            false => what,
        };
        *page += &format!(
            "<li class=\"n {}\"><h3>{what} <b>{}</b></h3><p class=\"why\">{}</p><p class=\"where\">{}</p><p class=\"since\"><b>{}</b> since {}</p><p class=\"next\"><code>{}</code></p></li>\n",
            class(one.need),
            one.need.title(),
            escaped(&one.why),
            place(one),
            ago(one.since, now).trim_end_matches(" ago"),
            time(one.since),
            escaped(&one.next)
        );
    }
    page.push_str("</ol>\n");
}

/// Where it is, and whose turn it is.
fn place(stuck: &Stuck) -> String {
    let name = |agent: &crate::ids::AgentName| escaped(agent.as_str().to_owned()).to_string();
    match (&stuck.with, &stuck.turn) {
        (Some(with), Some(turn)) if with != turn => {
            format!("with <b>{}</b>, turn of <b>{}</b>", name(with), name(turn))
        }
        (Some(with), _) => format!("with <b>{}</b>, whose turn it is", name(with)),
        (None, Some(turn)) => format!("with nobody, turn of <b>{}</b>", name(turn)),
        (None, None) => "with nobody".to_owned(),
    }
}

/// The class that a need is drawn with: that of the state it is in.
pub(super) fn class(need: Need) -> &'static str {
    match need {
        Need::Dead => "dead",
        Need::Failed => "failed",
        Need::Blocked => "blocked",
        Need::LeaseRanOut => "late",
        Need::Unclaimed => "pending",
        Need::Idle => "idle",
    }
}
