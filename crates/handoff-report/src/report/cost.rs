//! Usage in tokens and money: over time, and by agent and model.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use handoff::base::{Amount, Currency, Moment};
use handoff::ledger::{IssueSurvey, UsageSurvey};
use handoff::model::Spent;

use super::charts::{Columns, bars};
use super::escape::escaped;
use super::words::thousands;

/// The maximum number of rows in the table.
const MOST: usize = 20;

/// A hundredth of a currency's unit (a cent), in billionths.
const HUNDREDTH: u64 = 10_000_000;

/// Writes the section, if any usage was reported.
pub(super) fn section(page: &mut String, issues: &[&IssueSurvey<'_>], now: Moment) {
    let handoffs = issues.iter().flat_map(|issue| &issue.handoffs);
    let reported: Vec<&UsageSurvey<'_>> = handoffs.flat_map(|handoff| &handoff.usage).collect();
    let times: Vec<Moment> = reported.iter().map(|usage| usage.at).collect();
    let Some(columns) = Columns::of(&times, now) else {
        return;
    };
    page.push_str(
        "<section id=\"cost\" aria-labelledby=\"cost-title\">\n<h2 id=\"cost-title\">Cost</h2>\n<div class=\"charts\">\n",
    );
    let mut tokens = vec![0; columns.len()];
    let mut money: BTreeMap<&Currency, Vec<u64>> = BTreeMap::new();
    for usage in &reported {
        let Some(at) = columns.index(usage.at) else {
            continue;
        };
        tokens[at] += usage.spent.tokens();
        for (currency, cost) in &usage.spent.cost {
            let all = money
                .entry(currency)
                .or_insert_with(|| vec![0; columns.len()]);
            all[at] += cost.billionths();
        }
    }
    let (unit, names) = (columns.unit(), columns.names());
    let whole = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let tokens: Vec<usize> = tokens.into_iter().map(whole).collect();
    bars(
        page,
        &format!("Tokens per {unit}"),
        "bar",
        (&tokens, &thousands),
        &names,
    );
    for (currency, cost) in money {
        let cents = cost.into_iter().map(|cost| whole(cost.div_ceil(HUNDREDTH)));
        let cents: Vec<usize> = cents.collect();
        let shown = |cents: usize| {
            let cents = u64::try_from(cents).unwrap_or(u64::MAX);
            Amount::from_billionths(cents.saturating_mul(HUNDREDTH)).to_string()
        };
        let title = format!("Cost per {unit}, {currency}");
        bars(page, &title, "bar two", (&cents, &shown), &names);
    }
    page.push_str("</div>\n");
    table(page, &reported);
    page.push_str("</section>\n");
}

/// Usage by agent and model, the most expensive first.
fn table(page: &mut String, reported: &[&UsageSurvey<'_>]) {
    let mut sums: BTreeMap<(&str, &str, &str), Spent> = BTreeMap::new();
    for usage in reported {
        let key = (usage.by.as_str(), usage.provider, usage.model);
        sums.entry(key).or_default().add(&usage.spent);
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    let dear = |spent: &Spent| (spent.cost.values().max().copied(), spent.tokens());
    rows.sort_by_key(|(_, spent)| Reverse(dear(spent)));
    page.push_str(
        "<details><summary>By agent and model</summary><table><caption>What agents used, the dearest first</caption>\n\
         <thead><tr><th scope=\"col\">Agent</th><th scope=\"col\">Model</th><th scope=\"col\" class=\"r\">Input</th>\
         <th scope=\"col\" class=\"r\">Cached</th><th scope=\"col\" class=\"r\">Output</th><th scope=\"col\" class=\"r\">Cost</th></tr></thead>\n<tbody>\n",
    );
    for ((agent, provider, model), spent) in rows.iter().take(MOST) {
        let cost = spent
            .cost
            .iter()
            .map(|(currency, cost)| format!("{cost} {currency}"));
        let cost = cost.collect::<Vec<_>>().join(", ");
        let counts = [spent.input_tokens, spent.cached_tokens, spent.output_tokens];
        let counts = counts.map(|count| {
            let shown = thousands(usize::try_from(count).unwrap_or(usize::MAX));
            format!("<td class=\"r\">{shown}</td>")
        });
        *page += &format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td>{}<td class=\"r\">{cost}</td></tr>\n",
            escaped(agent),
            escaped(format!("{provider} {model}").trim()),
            counts.concat()
        );
    }
    page.push_str("</tbody></table></details>\n");
    if rows.len() > MOST {
        *page += &format!("<p class=\"calm\">and {} more</p>\n", rows.len() - MOST);
    }
}
