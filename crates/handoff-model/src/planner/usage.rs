//! What work costs: reports of usage, the sums that budgets need, and claims that budgets refuse.

use std::collections::BTreeMap;

use handoff_base::Edit;
use handoff_protocol::Per;

use crate::planner::{Changed, Planner};
use crate::record::spending::{SpentSoFar, day, ensure_believable, ensure_left, movements};
use crate::record::usage::ensure_usage;
use crate::record::{DaySpending, Issue, ModelUsage, NoUsage, Record, Spent, Usage, View};
use crate::refusal::RequestRefusal;
use crate::step::{FileChanges, Stop};
use crate::{layout, record};

/// Whether a report has less than an earlier one of something that budgets count.
fn is_less(report: &[ModelUsage], known: &[ModelUsage]) -> bool {
    let (report, known) = (Spent::of(report), Spent::of(known));
    let cost = |currency| report.cost.get(currency).copied().unwrap_or_default();
    let mut costs = known.cost.iter();
    report.tokens() < known.tokens() || costs.any(|(currency, before)| cost(currency) < *before)
}

impl<E, V: View<E>> Planner<'_, E, V> {
    /// Records the usage of the actor's claim of a handoff; returns whether it is new.
    pub(super) fn report_usage(&self, record: &mut Record) -> Result<bool, RequestRefusal> {
        let models = &self.step.usage;
        if models.is_empty() {
            return Ok(false);
        }
        ensure_usage(models).map_err(RequestRefusal::Usage)?;
        ensure_believable(self.protocol.definition(), &self.step.by, models)
            .map_err(RequestRefusal::Usage)?;
        let report = Usage {
            at: self.step.at,
            by: self.step.by.clone(),
            attempt: record.attempt,
            token: record.claims(),
            models: models.to_vec(),
        };
        let same = |known: &&mut Usage| known.token == report.token && known.by == report.by;
        match record.usage.iter_mut().find(same) {
            Some(known) if known.models == report.models => return Ok(false),
            // A report with less could free a spent budget.
            Some(known) if is_less(&report.models, &known.models) => {
                return Err(RequestRefusal::Usage(NoUsage::Less));
            }
            Some(known) => *known = report,
            None => record.usage.push(report),
        }
        Ok(true)
    }

    /// Refuses a claim if a budget is spent.
    pub(super) fn within_budgets(&self, issue: &Issue, record: &Record) -> Result<(), Stop<E>> {
        let definition = self.protocol.definition();
        if definition.budgets().is_empty() {
            return Ok(());
        }
        let today = self.spent_on(&day(self.step.at))?;
        let so_far = SpentSoFar {
            issue: &issue.spent,
            day: today.protocols.get(&definition.name),
        };
        Ok(ensure_left(
            definition,
            (&self.step.by, &record.id),
            so_far,
        )?)
    }

    /// Adds what a step's agents spent to the issue and to the days on which their claims began;
    /// returns the files of those days.
    pub(super) fn book(&self, changed: &mut Changed) -> Result<FileChanges, Stop<E>> {
        let definition = self.protocol.definition();
        // Claims that began under removed budgets must still be ended.
        if definition.budgets().is_empty() && changed.issue.spent.is_empty() {
            return Ok(Vec::new());
        }
        let has_days = definition
            .budgets()
            .values()
            .any(|budget| budget.per == Per::Day);
        // Each day's file before and after.
        let mut days: BTreeMap<String, (DaySpending, DaySpending)> = BTreeMap::new();
        for record in changed.records.iter().chain(&changed.quiet) {
            let before = self.view.shared_record(record.id.number());
            let before = before.map_err(Stop::Unreadable)?;
            for movement in movements(before.as_deref(), record, self.step.at) {
                movement.book(&mut changed.issue.spent);
                let name = day(movement.since);
                if !has_days {
                    let known = self.spent_on(&name)?;
                    let own = known.protocols.get(&definition.name);
                    if !own.is_some_and(|own| movement.ends_in(own)) {
                        continue;
                    }
                }
                if !days.contains_key(&name) {
                    let was = self.spent_on(&name)?;
                    days.insert(name.clone(), (was.clone(), was));
                }
                let (_, is) = days.entry(name).or_default();
                let own = is.protocols.entry(definition.name.clone());
                movement.book(own.or_default());
            }
        }
        let changed = days.into_iter().filter(|(_, (was, is))| was != is);
        let files = changed
            .map(|(day, (_, is))| (layout::spent_file(&day), Edit::Bytes(record::write(&is))));
        Ok(files.collect())
    }

    fn spent_on(&self, day: &str) -> Result<DaySpending, Stop<E>> {
        let known = self.view.spent_on(day).map_err(Stop::Unreadable)?;
        Ok(known.unwrap_or_default())
    }
}
