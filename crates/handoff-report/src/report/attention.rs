//! What needs attention now, whose turn it is, since when, why, and the command to continue with.

use std::collections::{BTreeMap, HashMap};

use handoff::base::Moment;
use handoff::base::ids::{AgentName, IssueKey};
use handoff::base::text::cut;
use handoff::ledger::IssueSurvey;

use super::Shown;
use super::escape::escaped;
use super::words::{age, counted, thousands, time};
use handoff::ledger::attention::Attention;
use handoff::protocol::Need;

/// How many entries are shown unfolded.
const AT_ONCE: usize = 25;
const MOST: usize = 500;
/// The number of similar entries from which they are combined in one line.
const ALIKE: usize = 3;
/// The maximum length of a reason in a summary line, in characters.
const REASON: usize = 60;

/// Writes the section.
pub(super) fn section(
    page: &mut String,
    stuck: &[Attention],
    issues: &[&IssueSurvey<'_>],
    shown: &Shown<'_>,
    now: Moment,
) {
    page.push_str(
        "<section id=\"attention\" aria-labelledby=\"attention-title\">\n\
         <h2 id=\"attention-title\">Needs attention now</h2>\n",
    );
    if stuck.is_empty() {
        page.push_str(
            "<p class=\"calm\">Nothing needs attention: nothing failed, nobody waits for an answer, and whatever is open has been taken up in time.</p>\n</section>\n",
        );
        return;
    }
    *page += &format!("<p class=\"lead\">{}</p>\n", summary(stuck, now));
    sums(page, stuck, issues, now);
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
    page.push_str(
        "<p class=\"calm\" id=\"f-none\" hidden>Nothing that fits the filters needs attention.</p>\n</section>\n",
    );
}

/// The number of entries by need, and the oldest.
fn summary(stuck: &[Attention], now: Moment) -> String {
    let mut issues: Vec<&str> = stuck.iter().map(|s| s.issue.as_str()).collect();
    issues.sort_unstable();
    issues.dedup();
    let mut parts = Vec::new();
    for need in Need::ALL {
        let count = stuck.iter().filter(|s| s.need == need).count();
        if count > 0 {
            parts.push(format!(
                "<b class=\"n {}\">{}</b>",
                class(need),
                so_many(need, count)
            ));
        }
    }
    let oldest = stuck.iter().map(|s| s.since).min().unwrap_or(now);
    let count = match stuck.len() {
        1 => "One thing needs attention".to_owned(),
        count => format!("{} things need attention", thousands(count)),
    };
    format!(
        "{count} in {}, the oldest for {}: {}",
        counted(issues.len(), "issue"),
        age(oldest, now),
        parts.join(" ")
    )
}

fn so_many(need: Need, count: usize) -> String {
    let what = match (need, count) {
        (Need::Dead, 2..) => "with no attempt left",
        (Need::Stranded, 2..) => "wait in vain",
        (Need::Blocked, 2..) => "wait for an answer",
        (Need::Unapproved, 2..) => "wait for approval",
        (Need::LeaseRanOut, 2..) => "leases ran out",
        (Need::LeaseEnding, 2..) => "leases about to end",
        _ => need.title(),
    };
    format!("{} {what}", thousands(count))
}

/// Summary lines for an agent with many entries of the same need: how many, why, and since when.
fn sums(page: &mut String, stuck: &[Attention], issues: &[&IssueSurvey<'_>], now: Moment) {
    let mut alike: BTreeMap<(Need, &AgentName), Vec<&Attention>> = BTreeMap::new();
    for one in stuck {
        alike.entry((one.need, &one.with)).or_default().push(one);
    }
    alike.retain(|_, all| all.len() >= ALIKE);
    if alike.is_empty() {
        return;
    }
    let surveys = issues.iter().map(|issue| (&issue.key, *issue)).collect();
    page.push_str("<ul class=\"sums\">\n");
    for ((need, agent), all) in &alike {
        let why = reason(all, &surveys).map_or_else(String::new, |why| format!(" ({why})"));
        let oldest = all.iter().map(|one| one.since).min().unwrap_or(now);
        *page += &format!(
            "<li class=\"n {}\"><span><b>{}</b>: {}{why}, oldest <b>{}</b></span></li>\n",
            class(*need),
            escaped(agent.as_str()),
            so_many(*need, all.len()),
            age(oldest, now)
        );
    }
    page.push_str("</ul>\n");
}

/// The most frequent failure: its code, or its message if it has none; `None` for needs without
/// failures.
fn reason(all: &[&Attention], surveys: &HashMap<&IssueKey, &IssueSurvey<'_>>) -> Option<String> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for one in all.iter().filter(|one| one.need <= Need::Failed) {
        let issue = surveys.get(&one.issue);
        let handoff = issue.and_then(|issue| issue.handoff(one.id.number()));
        let code = handoff.and_then(|handoff| {
            let mut newest = handoff.changes.iter().rev();
            newest.find_map(|change| change.failure)
        });
        *reasons.entry(code.unwrap_or(&one.why)).or_default() += 1;
    }
    let (most, count) = reasons.iter().max_by_key(|(_, count)| **count)?;
    let (text, count) = (escaped(cut(most, REASON)), thousands(*count));
    Some(match reasons.len() {
        1 => text.to_string(),
        2 => format!("{count} {text}, and one other reason"),
        more => format!("{count} {text}, and {} other reasons", thousands(more - 1)),
    })
}

fn cards(page: &mut String, stuck: &[Attention], shown: &Shown<'_>, now: Moment) {
    page.push_str("<ol class=\"stuck\">\n");
    for one in stuck {
        let (id, anchor) = (&one.id, format!("h-{}", one.id));
        let what = if shown.has(&one.issue) {
            format!("<a href=\"#{anchor}\">{id}</a>")
        } else {
            id.to_string()
        };
        *page += &format!(
            "<li class=\"n {}\" id=\"s-{anchor}\" data-i=\"{}\" data-n=\"{}\"><p class=\"since\"><b>{}</b> <span>since {}</span></p><h3>{what} <b>{}</b> <small>{}</small></h3><p class=\"why\">{}</p><p class=\"where\">{}</p><p class=\"next\"><code>{}</code></p></li>\n",
            class(one.need),
            one.issue,
            needs(one),
            age(one.since, now),
            time(one.since),
            one.what(),
            escaped(&one.title),
            escaped(&one.why),
            position(one),
            escaped(&one.next)
        );
    }
    page.push_str("</ol>\n");
}

/// The filters' keywords: the need and its parties.
pub(super) fn needs(stuck: &Attention) -> String {
    format!("any {} turn:{}", stuck.need.as_str(), stuck.turn)
}

/// The agent that has the handoff, and whose turn it is.
fn position(stuck: &Attention) -> String {
    let name = |agent: &AgentName| escaped(agent.as_str().to_owned()).to_string();
    let turn = |agent: &AgentName| format!("<b>{}</b>'s turn", name(agent));
    let (with, next) = (&stuck.with, &stuck.turn);
    if with == next {
        format!("with <b>{}</b>, whose turn it is", name(with))
    } else {
        format!("with <b>{}</b>; {}", name(with), turn(next))
    }
}

/// A need's CSS class, which is that of the handoff's state.
pub(super) fn class(need: Need) -> &'static str {
    match need {
        Need::Dead => "dead",
        Need::Failed => "failed",
        Need::Blocked | Need::Escalated | Need::BudgetSpent | Need::Unapproved | Need::Merged => {
            "blocked"
        }
        Need::LeaseRanOut | Need::PastDeadline => "late",
        Need::Stranded | Need::Unclaimed | Need::Answered => "pending",
        Need::Rejected => "rejected",
        Need::Cancelled => "cancelled",
        Need::NotHandedOn => "idle",
        Need::LeaseEnding => "in_progress",
    }
}
