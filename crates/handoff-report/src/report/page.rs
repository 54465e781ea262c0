//! The page's frame: head, content security policy, navigation, footer.

use base64ct::{Base64, Encoding};
use sha2::{Digest, Sha256};

use super::escape::escaped;
use super::words::{ago, counted, thousands, time};
use super::{MOST_HANDOFFS, Report, open};
use handoff::ledger::attention::Attention;
use handoff::model::IssueStatus;

const STYLE: &str = include_str!("style.css");
const FILTERS: &str = include_str!("filters.js");
const LIVE: &str = include_str!("live.js");

/// How many sections are printed on paper; `style.css` has the same number.
const PRINTED: usize = 3;

/// The context of a page.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The repository's name, for the title.
    pub name: String,
    /// Whether it is served and polls for changes of the ledger.
    pub live: bool,
}

/// The content security policy of a page: it loads nothing, and only its own scripts and styles
/// run. A served page may query its own server.
pub fn policy(live: bool) -> String {
    let hash = |text: &str| Base64::encode_string(&Sha256::digest(text.as_bytes()));
    let connect = if live { "; connect-src 'self'" } else { "" };
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:{connect}; base-uri 'none'; form-action 'none'",
        hash(&script(live)),
        hash(&style())
    )
}

// A checkout on Windows may have CRLF, which browsers normalise before hashing.
fn style() -> String {
    STYLE.replace("\r\n", "\n")
}

fn script(live: bool) -> String {
    let filters = FILTERS.replace("\r\n", "\n");
    if live {
        filters + &LIVE.replace("\r\n", "\n")
    } else {
        filters
    }
}

/// Hatching patterns that distinguish stalled work without colour.
const HATCHINGS: &str = "<svg class=\"skip\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>\
<pattern id=\"hatch-blocked\" class=\"blocked\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path d=\"M0 0h3v6h-3z\" fill=\"currentColor\"/></pattern>\
<pattern id=\"hatch-failed\" class=\"failed\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path d=\"M0 0h6v3h-6z\" fill=\"currentColor\"/></pattern>\
<pattern id=\"hatch-late\" class=\"late\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><path d=\"M0 8L8 0M-2 2L2 -2M6 10L10 6\" stroke=\"currentColor\" stroke-width=\"2\"/></pattern>\
<pattern id=\"hatch-dead\" class=\"dead\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path d=\"M0 0h4v4h-4z\" fill=\"currentColor\"/></pattern>\
</defs></svg>\n";

/// Writes everything above the figures.
pub(super) fn head(page: &mut String, report: &Report<'_>, frame: &Frame) {
    let title = title(&report.stuck, frame);
    let live = if frame.live { " data-live" } else { "" };
    // Named issues are printed in full.
    let chosen = if report.wanted.only.is_none() {
        ""
    } else {
        " class=\"chosen\""
    };
    start(
        page,
        &title,
        frame.live,
        &format!(" data-tip=\"{}\"{live}{chosen}", report.tip),
    );
    page.push_str("<a class=\"skip\" href=\"#main\">Skip to what needs attention</a>\n");
    // The search needs JavaScript.
    page.push_str(
        "<a class=\"skip\" id=\"to-search\" href=\"#f-text\" hidden>Skip to the search field</a>\n",
    );
    page.push_str(HATCHINGS);
    page.push_str("<header>\n");
    *page += &format!("<h1>Handoffs of {}</h1>\n", escaped(&frame.name));
    *page += &format!(
        "<p class=\"meta\">Ledger <b>{}</b> at commit <code title=\"{}\">{}</code> · made {} UTC, as are all times{}</p>\n",
        escaped(report.branch),
        report.tip,
        &report.tip[..report.tip.len().min(10)],
        time(report.now),
        if frame.live {
            " · <span id=\"live\"><a href=\"/\">Look again</a></span>"
        } else {
            ""
        }
    );
    if !report.policy.is_empty() {
        *page += &format!("<p class=\"meta\">{}</p>\n", escaped(&report.policy));
    }
    if let Some(limits) = limits(report) {
        *page += &format!("<p class=\"limits\">{limits}</p>\n");
    }
    open::figures(page, &report.issues, &report.stuck);
    page.push_str("</header>\n<nav aria-label=\"On this page\"><ul>\n");
    for (id, name) in [
        ("attention", "Attention"),
        ("open", "Open work"),
        ("trends", "Trends"),
        ("timeline", "Timeline"),
        ("issues", "Issues"),
        ("details", "Each issue"),
    ] {
        let count = match id {
            "attention" => format!(" <b>{}</b>", thousands(report.stuck.len())),
            _ => String::new(),
        };
        *page += &format!("<li><a href=\"#{id}\">{name}{count}</a></li>\n");
    }
    page.push_str("</ul></nav>\n<main id=\"main\">\n");
}

/// The title: the number of needs, and the repository.
fn title(stuck: &[Attention], frame: &Frame) -> String {
    match stuck.len() {
        0 => format!("Handoffs of {}", frame.name),
        count => format!("({}) Handoffs of {}", thousands(count), frame.name),
    }
}

fn start(page: &mut String, title: &str, live: bool, attributes: &str) {
    *page += &format!(
        "<!doctype html>\n<html lang=\"en\"{attributes}>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n",
        policy(live),
        escaped(title),
        style()
    );
}

/// What the page leaves out, and the options that include it.
fn limits(report: &Report<'_>) -> Option<String> {
    let mut limits = Vec::new();
    let wanted = report.wanted;
    if !wanted.query.is_empty() {
        limits.push(format!(
            "This page is about the {} with a handoff that meets <code>{}</code>.",
            counted(report.found, "issue"),
            escaped(&wanted.query)
        ));
    } else if let Some(only) = &wanted.only {
        let keys: Vec<&str> = only.iter().map(|key| key.as_str()).collect();
        limits.push(format!("This page is about {} only.", keys.join(", ")));
    }
    if report.issues.len() < report.found {
        limits.push(format!(
            "It shows the first {} of {}: what is open first, then what moved last.",
            thousands(report.issues.len()),
            counted(report.found, "issue")
        ));
    }
    let left_out = report.issues.len() - report.sections.len();
    if left_out > 0 {
        let why = match wanted.since {
            Some(since) => format!(
                "{} and had no step since {} ({})",
                if left_out == 1 {
                    "has ended"
                } else {
                    "have ended"
                },
                time(since),
                ago(since, report.now)
            ),
            None => format!(
                "moved least recently: more than {} handoffs would make the page slow",
                thousands(MOST_HANDOFFS)
            ),
        };
        limits.push(format!(
            "Every issue is counted and listed, but {} without a section of {} own, which {why}. \
             <code>git handoff report --issue KEY</code> shows one of them, <code>--all</code> shows all.",
            match left_out {
                1 => "one is".to_owned(),
                _ => format!("{} are", counted(left_out, "issue")),
            },
            if left_out == 1 { "its" } else { "their" }
        ));
    }
    (!limits.is_empty()).then(|| limits.join(" "))
}

/// Writes the start of the issues' sections.
pub(super) fn details(page: &mut String, report: &Report<'_>) {
    page.push_str("<section id=\"details\" aria-labelledby=\"details-title\">\n<h2 id=\"details-title\">Each issue</h2>\n");
    let shown = report.sections.iter();
    let open = shown
        .filter(|issue| issue.status == IssueStatus::Open)
        .count();
    if report.sections.len() > open.min(PRINTED) {
        *page += &format!(
            "<p class=\"printed\">Printed are the first {} of {}; one that is looked for above, or <code>--issue</code>, is printed whole.</p>\n",
            counted(open.min(PRINTED), "open issue"),
            thousands(report.sections.len())
        );
    }
    if report.sections.is_empty() {
        page.push_str("<p class=\"calm\">There is no issue to show.</p>\n");
    }
}

pub(super) fn foot(page: &mut String, frame: &Frame) {
    page.push_str(
        "</section>\n</main>\n<footer><p class=\"meta\">Made by git-handoff from the ledger alone. Contracts are shown as their fields: \
         <code>git handoff show ID --contract</code> has one byte for byte.</p></footer>\n",
    );
    end(page, frame.live);
}

fn end(page: &mut String, live: bool) {
    *page += &format!("<script>{}</script>\n</body>\n</html>\n", script(live));
}

/// The served page while no ledger can be shown.
pub fn gone(frame: &Frame, why: &str) -> String {
    let mut page = String::new();
    let title = format!("Handoffs of {}", frame.name);
    start(&mut page, &title, true, " data-tip=\"\" data-live");
    page += &format!(
        "<main id=\"main\"><h1>{}</h1>\n<p class=\"limits\" role=\"alert\">The ledger can't be shown: {}</p>\n\
         <p class=\"meta\"><span id=\"live\"><a href=\"/\">Look again</a></span></p></main>\n",
        escaped(&title),
        escaped(why)
    );
    end(&mut page, true);
    page
}
