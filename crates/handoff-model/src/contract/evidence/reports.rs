//! Compares claims with test and coverage reports.

use handoff_base::codes::ErrorCode;
use handoff_base::digest;
use handoff_base::explained::{Explained, Explanation};
use handoff_base::finding::Finding;
use handoff_base::text::{counted, quoted};
use handoff_contract::{Coverage, ReportFault, TestCounts};
use handoff_protocol::Check;
use serde_json::Value;

use super::{Found, count};
use crate::contract::evidence::{Claimed, words};
use crate::record::{ReportFile, not_applicable};
use crate::value::scalar;

/// The reports given with a contract.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    tests: Option<(TestCounts, Vec<ReportFile>)>,
    coverage: Option<(Coverage, Vec<ReportFile>)>,
}

/// A report that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the report {} cannot be used", quoted(name))]
pub struct ReportError {
    /// Its name.
    pub name: String,
    /// Why.
    pub source: ReportFault,
}

impl Explained for ReportError {
    fn explanation(&self) -> Explanation {
        ErrorCode::ReportRefused.hint(
            "nothing was written; pass JUnit XML to --tests, and lcov text or Cobertura XML to --coverage",
        )
    }
}

fn file(name: &str, bytes: &[u8]) -> ReportFile {
    ReportFile {
        name: name.to_owned(),
        sha256: digest(bytes),
    }
}

impl Reports {
    /// Adds a JUnit report.
    ///
    /// # Errors
    /// [`ReportError`] if it is not a JUnit report.
    pub fn add_tests(&mut self, name: &str, bytes: &[u8]) -> Result<(), ReportError> {
        let fault = |source| ReportError {
            name: name.to_owned(),
            source,
        };
        let read = TestCounts::read(bytes).map_err(fault)?;
        let (counts, files) = self.tests.get_or_insert_default();
        counts.add(read);
        files.push(file(name, bytes));
        Ok(())
    }

    /// Adds an lcov or a Cobertura report.
    ///
    /// # Errors
    /// [`ReportError`] if it is neither, or can't be summed with the others.
    pub fn add_coverage(&mut self, name: &str, bytes: &[u8]) -> Result<(), ReportError> {
        let fault = |source| ReportError {
            name: name.to_owned(),
            source,
        };
        let read = Coverage::read(bytes).map_err(fault)?;
        self.coverage = Some(match self.coverage.take() {
            None => (read, vec![file(name, bytes)]),
            Some((known, mut files)) => {
                files.push(file(name, bytes));
                (known.with(read).map_err(fault)?, files)
            }
        });
        Ok(())
    }

    /// The report files that a check used.
    pub fn files_for(&self, check: Check) -> Vec<ReportFile> {
        let files = match check {
            Check::Tests | Check::TestsAdded => self.tests.as_ref().map(|(_, files)| files),
            Check::Coverage => self.coverage.as_ref().map(|(_, files)| files),
            _ => None,
        };
        files.cloned().unwrap_or_default()
    }
}

/// Compares the claimed test results with the reports.
pub fn check_tests(claimed: &Claimed<'_>, reports: &Reports) -> Found {
    let claims = claimed.kind.claims.as_ref();
    let Some(claim) = claims.and_then(|c| c.tests.as_ref()) else {
        return Found::Passed;
    };
    let Some((counts, _)) = reports.tests else {
        return Found::Skipped("no test report was given".to_owned());
    };
    let found = claim.given().filter_map(|(name, at)| {
        let value = claimed.value(Some(at))?;
        let mut differs = None;
        let right = match name {
            "passed" => count(value) == Some(counts.passed),
            "failed" => count(value) == Some(counts.failed),
            "skipped" => count(value) == Some(counts.skipped),
            "total" => count(value) == Some(counts.total()),
            "passing" => value.as_bool() == Some(counts.failed == 0),
            _ => scalar(value).is_some_and(|text| {
                differs = words::differs(&text, counts);
                differs.is_none()
            }),
        };
        let said = quoted(&scalar(value).unwrap_or_else(|| value.to_string()));
        let differs = differs.map_or_else(String::new, |why| format!("; {why}"));
        let text = format!(
            "the contract says {said}, and the report has {}: {} passed, {} failed, {} skipped{differs}",
            counted(counts.total(), "test"),
            counts.passed,
            counts.failed,
            counts.skipped
        );
        let finding = Finding::error(Check::Tests.code(), at, text);
        (!right).then(|| finding.fix("say what the report says, or give the report of this run"))
    });
    Found::unless(found.collect())
}

/// Compares the claimed number of added tests with the reports. A total below it contradicts the
/// claim, but no report can confirm it.
pub fn check_tests_added(claimed: &Claimed<'_>, reports: &Reports) -> Found {
    let at = claimed.kind.claims.as_ref();
    let at = at
        .and_then(|c| c.tests_added.as_deref())
        .unwrap_or_default();
    let Some(value) = claimed.value(Some(at)) else {
        return Found::Passed;
    };
    let Some((counts, _)) = reports.tests else {
        return Found::Skipped("no test report was given".to_owned());
    };
    match count(value) {
        Some(0) => Found::Passed,
        Some(added) if added <= counts.total() => {
            Found::Skipped("a report does not say which of its tests are new".to_owned())
        }
        _ => {
            let said = quoted(&scalar(value).unwrap_or_else(|| value.to_string()));
            let total = counted(counts.total(), "test");
            let text = format!("the contract says {said}, and the report has only {total}");
            let finding = Finding::error(Check::TestsAdded.code(), at, text);
            Found::because(
                finding.fix("count the tests of this work, or give the report of this run"),
            )
        }
    }
}

/// How the reason begins why a statement was not checked that does not apply.
pub const NOT_APPLICABLE: &str = "the contract says that it does not apply";

/// Compares the claimed coverage with the reports.
pub fn check_coverage(claimed: &Claimed<'_>, reports: &Reports) -> Found {
    let at = claimed.kind.claims.as_ref();
    let at = at.and_then(|c| c.coverage.as_deref()).unwrap_or_default();
    let Some(value) = claimed.value(Some(at)) else {
        return Found::Passed;
    };
    let Some((coverage, _)) = reports.coverage else {
        return Found::Skipped(match not_applicable::reason(value) {
            Some(reason) => format!("{NOT_APPLICABLE}: {reason}"),
            None => "no coverage report was given".to_owned(),
        });
    };
    let percent = coverage.percent();
    if agrees(value, percent) {
        return Found::Passed;
    }
    let said = quoted(&scalar(value).unwrap_or_else(|| value.to_string()));
    let text = format!("the contract says {said}, and the report {percent:.2}%");
    let finding = Finding::error(Check::Coverage.code(), at, text);
    Found::because(finding.fix("say what the report says, or give the report of this run"))
}

/// Whether a percentage, rounded or truncated to the claim's decimals, equals the claim.
fn agrees(claimed: &Value, percent: f64) -> bool {
    let Some(text) = scalar(claimed) else {
        return false;
    };
    let text = text.trim().trim_end_matches('%').trim_end();
    let Ok(number) = text.parse::<f64>() else {
        return false;
    };
    let decimals = text
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len());
    let decimals = i32::try_from(decimals).unwrap_or(i32::MAX).min(12);
    let unit = 10_f64.powi(decimals);
    // Tolerates binary floating point, in which decimal fractions are rarely exact.
    let same = |wanted: f64| (number * unit - wanted).abs() < 1e-6;
    same((percent * unit + 1e-9).floor()) || same((percent * unit).round())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::agrees;

    #[test]
    fn a_percentage_may_be_rounded_or_cut_off() {
        for right in [
            json!("88.5%"),
            json!(88.46),
            json!("88%"),
            json!(88),
            json!("88.461538 %"),
        ] {
            assert!(agrees(&right, 88.461_538), "{right}");
        }
        assert!(agrees(&json!("89%"), 88.6) && agrees(&json!("88%"), 88.6));
        for wrong in [
            json!("88.6%"),
            json!(89),
            json!("100%"),
            json!("most"),
            json!(true),
        ] {
            assert!(!agrees(&wrong, 88.461_538), "{wrong}");
        }
    }
}
