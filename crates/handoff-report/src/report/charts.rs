//! Throughput and cycle time over time, as small charts with tables below.

use chrono::{DateTime, Datelike, Days, NaiveDate, TimeDelta, Utc};
use handoff::base::Moment;
use handoff::ledger::IssueSurvey;
use handoff::protocol::State;

use super::words::{length, thousands};
use handoff_graph::times::cycle_time;
use handoff_graph::times::rank;

/// The most columns of a chart.
const MOST: usize = 60;

/// The time that one column covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Hour,
    Day,
    Week,
    Month,
}

impl Unit {
    fn word(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The unit that gives a suitable number of columns.
    fn of(span: TimeDelta) -> Self {
        if span <= TimeDelta::hours(48) {
            Self::Hour
        } else if span <= TimeDelta::days(MOST as i64 - 2) {
            Self::Day
        } else if span <= TimeDelta::weeks(MOST as i64 - 2) {
            Self::Week
        } else {
            Self::Month
        }
    }

    /// The column index of a moment, counted from a fixed origin.
    fn column(self, at: Moment) -> i64 {
        match self {
            Self::Hour => at.timestamp().div_euclid(3600),
            Self::Day => at.timestamp().div_euclid(86_400),
            // 1970-01-01 was a Thursday; weeks begin on Monday.
            Self::Week => (at.timestamp().div_euclid(86_400) + 3).div_euclid(7),
            Self::Month => i64::from(at.year()) * 12 + i64::from(at.month0()),
        }
    }

    /// A column's name: its beginning.
    fn name(self, column: i64) -> String {
        let day = |day: i64| {
            let start = NaiveDate::default();
            u64::try_from(day)
                .ok()
                .and_then(|d| start.checked_add_days(Days::new(d)))
        };
        let shown = match self {
            Self::Hour => DateTime::<Utc>::from_timestamp(column * 3600, 0)
                .map(|at| at.format("%Y-%m-%d %H:00").to_string()),
            Self::Day => day(column).map(|d| d.to_string()),
            Self::Week => day((column * 7 - 3).max(0)).map(|d| d.to_string()),
            Self::Month => Some(format!(
                "{:04}-{:02}",
                column.div_euclid(12),
                column.rem_euclid(12) + 1
            )),
        };
        shown.unwrap_or_default()
    }
}

/// The columns that several charts share.
pub(super) struct Columns {
    unit: Unit,
    start: i64,
    end: i64,
}

impl Columns {
    /// The columns for events at these times, up to now or the newest event; `None` if there are
    /// none.
    pub(super) fn of(times: &[Moment], now: Moment) -> Option<Self> {
        let (first, last) = (times.iter().min()?, times.iter().max()?);
        let newest = now.max(*last);
        let unit = Unit::of(newest - *first);
        let end = unit.column(newest);
        let start = unit.column(*first).max(end - MOST as i64 + 1);
        Some(Self { unit, start, end })
    }

    pub(super) fn len(&self) -> usize {
        usize::try_from(self.end - self.start + 1).unwrap_or(1)
    }

    /// The index of a moment's column, unless it precedes all of them.
    pub(super) fn index(&self, at: Moment) -> Option<usize> {
        let index = usize::try_from(self.unit.column(at) - self.start).ok();
        index.filter(|index| *index < self.len())
    }

    pub(super) fn unit(&self) -> &'static str {
        self.unit.word()
    }

    pub(super) fn names(&self) -> Vec<String> {
        let columns = self.start..=self.end;
        columns.map(|column| self.unit.name(column)).collect()
    }
}

/// The issues of one column.
#[derive(Clone, Debug, Default)]
struct Column {
    handoffs: usize,
    issues: usize,
    cycles: Vec<TimeDelta>,
}

/// Writes the section.
pub(super) fn section(page: &mut String, issues: &[&IssueSurvey<'_>], now: Moment) {
    page.push_str(
        "<section id=\"trends\" aria-labelledby=\"trends-title\">\n<h2 id=\"trends-title\">Throughput and cycle time</h2>\n",
    );
    let ends = issues
        .iter()
        .flat_map(|issue| issue.handoffs.iter())
        .filter_map(|handoff| {
            let last = handoff.changes.last()?;
            (handoff.state == State::Completed && !handoff.is_note()).then_some(last.at)
        });
    let ends: Vec<Moment> = ends.collect();
    let Some(over) = Columns::of(&ends, now) else {
        page.push_str("<p class=\"calm\">No handoff has been completed yet.</p>\n</section>\n");
        return;
    };
    let mut columns = vec![Column::default(); over.len()];
    for at in &ends {
        if let Some(index) = over.index(*at) {
            columns[index].handoffs += 1;
        }
    }
    for issue in issues {
        if let (Some(at), Some(length)) = (issue.completed_at, cycle_time(issue))
            && let Some(index) = over.index(at)
        {
            columns[index].issues += 1;
            columns[index].cycles.push(length);
        }
    }
    let (word, names) = (over.unit(), over.names());
    page.push_str("<div class=\"charts\">\n");
    let handoffs: Vec<usize> = columns.iter().map(|c| c.handoffs).collect();
    bars(
        page,
        &format!("Handoffs completed per {word}"),
        "bar",
        (&handoffs, &thousands),
        &names,
    );
    let done: Vec<usize> = columns.iter().map(|c| c.issues).collect();
    bars(
        page,
        &format!("Issues completed per {word}"),
        "bar two",
        (&done, &thousands),
        &names,
    );
    let cycles: Vec<Option<(TimeDelta, TimeDelta)>> = columns
        .iter()
        .map(|column| {
            Some((
                median(column.cycles.clone())?,
                nine_of_ten(column.cycles.clone())?,
            ))
        })
        .collect();
    cycle(page, word, &cycles, &names);
    page.push_str("</div>\n");
    table(page, word, &columns, &cycles, &names);
    page.push_str("</section>\n");
}

/// The median by nearest rank.
pub(super) fn median(lengths: Vec<TimeDelta>) -> Option<TimeDelta> {
    ranked(lengths, 0.5)
}

/// The 90th percentile by nearest rank.
fn nine_of_ten(lengths: Vec<TimeDelta>) -> Option<TimeDelta> {
    ranked(lengths, 0.9)
}

fn ranked(mut lengths: Vec<TimeDelta>, quantile: f64) -> Option<TimeDelta> {
    lengths.sort_unstable();
    let rank = rank(quantile, lengths.len())?;
    Some(lengths[rank - 1])
}

const WIDTH: usize = 360;
const HEIGHT: usize = 130;
const TOP: usize = 14;
const BOTTOM: usize = 18;

/// A chart's frame, title and scale.
fn frame(page: &mut String, title: &str, description: &str, most: &str, names: &[String]) {
    let floor = HEIGHT - BOTTOM;
    *page += &format!(
        "<figure><figcaption>{title}</figcaption><svg role=\"img\" aria-label=\"{title}: {description}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\">\
         <path class=\"grid\" d=\"M0 {TOP}.5H{WIDTH}M0 {floor}.5H{WIDTH}\"/><text x=\"0\" y=\"{}\">{most}</text>",
        TOP - 3
    );
    if let (Some(first), Some(last)) = (names.first(), names.last()) {
        *page += &format!("<text x=\"0\" y=\"{HEIGHT}\" dy=\"-4\">{first}</text>");
        if names.len() > 1 {
            *page +=
                &format!("<text class=\"e\" x=\"{WIDTH}\" y=\"{HEIGHT}\" dy=\"-4\">{last}</text>");
        }
    }
}

/// A column's left edge and width, in tenths.
fn position(index: usize, count: usize) -> (usize, usize) {
    let step = (WIDTH * 10 / count.max(1)).min(400);
    // A few columns are right-aligned, because the newest are there.
    let start = WIDTH * 10 - step * count;
    (start + step * index, step)
}

fn tenths(number: usize) -> String {
    format!("{}.{}", number / 10, number % 10)
}

/// A bar chart of counts, which `shown` formats.
pub(super) fn bars(
    page: &mut String,
    title: &str,
    class: &str,
    (counts, shown): (&[usize], &dyn Fn(usize) -> String),
    names: &[String],
) {
    let most = counts.iter().copied().max().unwrap_or(0);
    let sum = counts.iter().copied().fold(0, usize::saturating_add);
    let description = format!("{} in all, at most {}", shown(sum), shown(most));
    frame(page, title, &description, &shown(most), names);
    let (floor, room) = (HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP);
    let mut path = String::new();
    for (i, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (left, step) = position(i, counts.len());
        let height = (room.saturating_mul(*count) / most.max(1)).max(1);
        let wide = (step * 8 / 10).max(8);
        path += &format!(
            "M{} {floor}v-{height}h{}v{height}z",
            tenths(left + (step - wide) / 2),
            tenths(wide)
        );
    }
    *page += &format!("<path class=\"{class}\" d=\"{path}\"/></svg></figure>\n");
}

fn cycle(
    page: &mut String,
    word: &str,
    cycles: &[Option<(TimeDelta, TimeDelta)>],
    names: &[String],
) {
    let title = format!("Cycle time of completed issues per {word}");
    let longest = cycles.iter().flatten().map(|(_, slow)| *slow).max();
    let Some(longest) = longest else {
        *page += &format!(
            "<figure><figcaption>{title}</figcaption><p class=\"calm\">No issue has been completed yet.</p></figure>\n"
        );
        return;
    };
    let description = format!("nine of ten took at most {}", length(longest));
    frame(page, &title, &description, &length(longest), names);
    let (floor, room) = (HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP);
    let scale = usize::try_from(longest.num_seconds()).unwrap_or(0).max(1);
    let height = |length: TimeDelta| {
        let seconds = usize::try_from(length.num_seconds()).unwrap_or(0);
        floor - room * seconds / scale
    };
    let (mut ranges, mut middles) = (String::new(), String::new());
    for (i, (middle, slow)) in cycles
        .iter()
        .enumerate()
        .filter_map(|(i, c)| Some((i, (*c)?)))
    {
        let (left, step) = position(i, cycles.len());
        let (x, middle) = (left + step / 2, height(middle));
        ranges += &format!("M{} {middle}V{}", tenths(x), height(slow));
        middles += &format!(
            "M{} {middle}a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
            tenths(x.saturating_sub(30))
        );
    }
    *page += &format!(
        "<path class=\"range\" d=\"{ranges}\"/><path class=\"middle\" d=\"{middles}\"/></svg>\
         <p class=\"meta\">The dot is the median; the line reaches to what nine of ten stay below.</p></figure>\n"
    );
}

fn table(
    page: &mut String,
    word: &str,
    columns: &[Column],
    cycles: &[Option<(TimeDelta, TimeDelta)>],
    names: &[String],
) {
    *page += &format!(
        "<details><summary>The same in figures</summary><table><caption>Completed per {word}, and cycle time</caption>\n<thead><tr><th scope=\"col\">{}{}</th><th scope=\"col\" class=\"r\">Handoffs</th><th scope=\"col\" class=\"r\">Issues</th><th scope=\"col\" class=\"r\">Median</th><th scope=\"col\" class=\"r\">Nine of ten</th></tr></thead>\n<tbody>\n",
        word[..1].to_uppercase(),
        &word[1..]
    );
    for ((column, cycle), name) in columns.iter().zip(cycles).zip(names).rev() {
        if column.handoffs == 0 && column.issues == 0 {
            continue;
        }
        let shown = |length: Option<TimeDelta>| length.map_or("–".to_owned(), super::words::length);
        *page += &format!(
            "<tr><th scope=\"row\">{name}</th><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td></tr>\n",
            thousands(column.handoffs),
            thousands(column.issues),
            shown(cycle.map(|c| c.0)),
            shown(cycle.map(|c| c.1))
        );
    }
    page.push_str("</tbody></table></details>\n");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use chrono::TimeDelta;

    use super::{Unit, median, nine_of_ten};
    use handoff::base::Moment;

    #[test]
    fn columns_begin_where_calendars_do() {
        let at = |text: &str| text.parse::<Moment>().unwrap();
        let name = |unit: Unit, text: &str| unit.name(unit.column(at(text)));
        assert_eq!(name(Unit::Hour, "2026-03-02T09:59:59Z"), "2026-03-02 09:00");
        assert_eq!(name(Unit::Day, "2026-03-02T00:00:00Z"), "2026-03-02");
        // A Monday, and the Sunday before.
        assert_eq!(name(Unit::Week, "2026-03-02T00:00:00Z"), "2026-03-02");
        assert_eq!(name(Unit::Week, "2026-03-01T23:59:59Z"), "2026-02-23");
        assert_eq!(name(Unit::Month, "2026-12-31T23:59:59Z"), "2026-12");
        assert_eq!(name(Unit::Month, "2026-01-01T00:00:00Z"), "2026-01");
    }

    #[test]
    fn a_span_has_at_most_sixty_columns() {
        for (days, unit) in [
            (0, Unit::Hour),
            (2, Unit::Hour),
            (3, Unit::Day),
            (58, Unit::Day),
            (59, Unit::Week),
            (406, Unit::Week),
            (407, Unit::Month),
        ] {
            assert_eq!(Unit::of(TimeDelta::days(days)), unit, "{days}");
        }
    }

    #[test]
    fn ranks_are_of_lengths_that_were_there() {
        let lengths = |all: &[i64]| all.iter().map(|s| TimeDelta::seconds(*s)).collect();
        assert_eq!(median(lengths(&[])), None);
        assert_eq!(median(lengths(&[3, 1])), Some(TimeDelta::seconds(1)));
        assert_eq!(median(lengths(&[5, 1, 3])), Some(TimeDelta::seconds(3)));
        let ten: Vec<i64> = (1..=10).collect();
        assert_eq!(nine_of_ten(lengths(&ten)), Some(TimeDelta::seconds(9)));
    }
}
