//! Strict, bounded parsers for test reports: JUnit XML for tests, lcov text and Cobertura XML for
//! coverage.

use super::xml::{Document, Element};
use super::{text, xml};

/// The maximum size of a report, in bytes.
pub const MAX_REPORT: usize = 16 << 20;

/// Why a report is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportFault {
    /// It is too large.
    #[error("it has more than {MAX_REPORT} bytes")]
    TooLarge,
    /// It is not text.
    #[error("it is not valid UTF-8")]
    NotText,
    /// It is not well-formed XML.
    #[error("line {line}: {message}")]
    Malformed {
        /// The line, from 1.
        line: u32,
        /// What is wrong.
        message: String,
    },
    /// It is a document of another kind.
    #[error("it is not {expected}")]
    Unknown {
        /// What it should be.
        expected: &'static str,
    },
    /// It has a document type with declarations.
    #[error("it has a document type with declarations of its own, which are not read")]
    Declarations,
    /// A number is invalid.
    #[error("{attribute} is {shown}, not a number")]
    Number {
        /// The attribute.
        attribute: String,
        /// Its value, escaped for display.
        shown: String,
    },
    /// It has no lines to cover.
    #[error("it lists no coverable lines")]
    NoLines,
    /// It reports more covered lines than lines.
    #[error("it says that {covered} of {valid} lines were run")]
    TooMany {
        /// The number of lines that were run.
        covered: u64,
        /// The number of lines in total.
        valid: u64,
    },
    /// It has only a rate, and combining several reports needs counts.
    #[error("it has no counts of lines, so that it cannot be summed with another report")]
    NoCounts,
}

/// The combined test results of one or more reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestCounts {
    /// The number that passed.
    pub passed: u64,
    /// The number that failed or were aborted.
    pub failed: u64,
    /// The number that were skipped.
    pub skipped: u64,
}

impl TestCounts {
    /// Reads a JUnit report.
    ///
    /// # Errors
    /// [`ReportFault`] if it is not a JUnit report.
    pub fn read(bytes: &[u8]) -> Result<Self, ReportFault> {
        let expected = "a JUnit report: XML with the root testsuites or testsuite";
        let document = parse(decode(bytes)?, expected)?;
        let root = document.root();
        if !["testsuites", "testsuite"].contains(&&*root.name) {
            return Err(ReportFault::Unknown { expected });
        }
        let mut counts = Self::default();
        counts.add_suite(&document, root)?;
        Ok(counts)
    }

    /// The total number of tests.
    pub fn total(self) -> u64 {
        let ended = self.passed.saturating_add(self.failed);
        ended.saturating_add(self.skipped)
    }

    /// Adds the tests of another report.
    pub fn add(&mut self, other: Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.skipped = self.skipped.saturating_add(other.skipped);
    }

    /// Adds a suite: its test cases and nested suites or, if it lists none, its own totals.
    /// Recursion is bounded by the parser's depth.
    fn add_suite(&mut self, document: &Document, suite: &Element) -> Result<(), ReportFault> {
        let mut listed = false;
        for child in document.children(suite) {
            match &*child.name {
                "testsuite" => self.add_suite(document, child)?,
                "testcase" => self.add_case(document, child),
                _ => continue,
            }
            listed = true;
        }
        if !listed {
            let count = |name| number(suite, name).map(|n| n.unwrap_or(0));
            let failed = count("failures")?.saturating_add(count("errors")?);
            let skipped = count("skipped")?.saturating_add(count("disabled")?);
            let total = count("tests")?;
            let passed = total.saturating_sub(failed).saturating_sub(skipped);
            self.add(Self {
                passed,
                failed,
                skipped,
            });
        }
        Ok(())
    }

    fn add_case(&mut self, document: &Document, case: &Element) {
        let has = |names: &[&str]| document.children(case).any(|c| names.contains(&&*c.name));
        let count = match () {
            () if has(&["failure", "error"]) => &mut self.failed,
            () if has(&["skipped"]) => &mut self.skipped,
            () => &mut self.passed,
        };
        *count = count.saturating_add(1);
    }
}

/// Line coverage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coverage {
    /// Counts of lines.
    Lines {
        /// The lines that were run.
        covered: u64,
        /// All lines that could be run.
        valid: u64,
    },
    /// The covered share, from 0 to 1.
    Rate(f64),
}

impl Coverage {
    /// Reads an lcov or a Cobertura report.
    ///
    /// # Errors
    /// [`ReportFault`] if it is neither.
    pub fn read(bytes: &[u8]) -> Result<Self, ReportFault> {
        let expected = "a coverage report: lcov's text, or Cobertura's XML";
        let text = decode(bytes)?;
        if !text::trim(text).starts_with('<') {
            let records = lcov(text).ok_or(ReportFault::Unknown { expected })?;
            let (mut covered, mut valid) = (0_u64, 0_u64);
            for (run, all) in records {
                if run > all {
                    return Err(ReportFault::TooMany {
                        covered: run,
                        valid: all,
                    });
                }
                covered = covered.saturating_add(run);
                valid = valid.saturating_add(all);
            }
            return Self::lines(covered, valid);
        }
        let document = parse(text, expected)?;
        let root = document.root();
        if &*root.name != "coverage" {
            return Err(ReportFault::Unknown { expected });
        }
        let counts = (number(root, "lines-covered")?, number(root, "lines-valid")?);
        if let (Some(covered), Some(valid)) = counts {
            return Self::lines(covered, valid);
        }
        let rate = root.attribute("line-rate").map(|found| &*found.value);
        let rate = rate.ok_or(ReportFault::Unknown { expected })?;
        match rate.parse::<f64>() {
            Ok(rate) if (0.0..=1.0).contains(&rate) => Ok(Self::Rate(rate)),
            _ => Err(not_a_number("line-rate", rate)),
        }
    }

    /// The coverage from line counts.
    fn lines(covered: u64, valid: u64) -> Result<Self, ReportFault> {
        match (covered, valid) {
            (0, 0) => Err(ReportFault::NoLines),
            (covered, valid) if covered > valid => Err(ReportFault::TooMany { covered, valid }),
            (covered, valid) => Ok(Self::Lines { covered, valid }),
        }
    }

    /// The combined coverage of this report and another.
    ///
    /// # Errors
    /// [`ReportFault::NoCounts`] if one of them only has a rate.
    pub fn with(self, other: Self) -> Result<Self, ReportFault> {
        match (self, other) {
            (
                Self::Lines { covered, valid },
                Self::Lines {
                    covered: more,
                    valid: further,
                },
            ) => Ok(Self::Lines {
                covered: covered.saturating_add(more),
                valid: valid.saturating_add(further),
            }),
            _ => Err(ReportFault::NoCounts),
        }
    }

    /// The percentage.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a program has fewer than 2^52 lines"
    )]
    pub fn percent(self) -> f64 {
        match self {
            Self::Lines { covered, valid } => 100.0 * covered as f64 / valid as f64,
            Self::Rate(rate) => 100.0 * rate,
        }
    }
}

/// The covered and total lines of each file in lcov's text; `None` if it is not lcov.
fn lcov(text: &str) -> Option<Vec<(u64, u64)>> {
    let mut records = Vec::new();
    let (mut hit, mut lines) = (0_u64, 0_u64);
    let mut told = (None, None);
    for line in text.lines().map(str::trim) {
        let count = |rest: &str| rest.trim().parse::<u64>().ok();
        match line.split_once(':').unwrap_or((line, "")) {
            ("DA", rest) => {
                lines += 1;
                let times = rest.split(',').nth(1)?;
                // Some tools write a negative count after an overflow.
                hit += u64::from(times.trim().parse::<i64>().ok()? != 0);
            }
            ("LH", rest) => told.0 = Some(count(rest)?),
            ("LF", rest) => told.1 = Some(count(rest)?),
            ("end_of_record", _) => {
                records.push((told.0.unwrap_or(hit), told.1.unwrap_or(lines)));
                (hit, lines, told) = (0, 0, (None, None));
            }
            _ => {}
        }
    }
    (!records.is_empty()).then_some(records)
}

fn decode(bytes: &[u8]) -> Result<&str, ReportFault> {
    if bytes.len() > MAX_REPORT {
        return Err(ReportFault::TooLarge);
    }
    std::str::from_utf8(bytes).map_err(|_| ReportFault::NotText)
}

/// Parses XML. A document type without declarations is skipped, and never fetched.
fn parse(text: &str, expected: &'static str) -> Result<Document, ReportFault> {
    if !text::trim(text.trim_start_matches('\u{feff}')).starts_with('<') {
        return Err(ReportFault::Unknown { expected });
    }
    let start = text.find("<!DOCTYPE");
    let root = first_element(text);
    let text = match start.filter(|start| root.is_none_or(|root| *start < root)) {
        None => text.to_owned(),
        Some(start) => {
            let end = text[start..]
                .find('>')
                .map_or(text.len(), |end| start + end + 1);
            let declared = &text[start..end];
            if declared.contains('[') {
                return Err(ReportFault::Declarations);
            }
            let blank: String = declared
                .chars()
                .map(|c| if c == '\n' { c } else { ' ' })
                .collect();
            format!("{}{blank}{}", &text[..start], &text[end..])
        }
    };
    xml::parse(&text).map_err(|findings| {
        let first = findings.into_iter().next();
        let (line, message) = first.map_or((0, String::new()), |f| {
            (f.line.unwrap_or_default(), f.message)
        });
        ReportFault::Malformed { line, message }
    })
}

/// The offset of the first element.
fn first_element(text: &str) -> Option<usize> {
    let begins = |at: &usize| {
        let next = text[at + 1..].chars().next();
        next.is_some_and(|c| c.is_alphabetic() || c == '_')
    };
    text.match_indices('<').map(|(at, _)| at).find(begins)
}

fn number(element: &Element, name: &str) -> Result<Option<u64>, ReportFault> {
    let Some(found) = element.attribute(name) else {
        return Ok(None);
    };
    match found.value.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(not_a_number(name, &found.value)),
    }
}

fn not_a_number(attribute: &str, value: &str) -> ReportFault {
    ReportFault::Number {
        attribute: attribute.to_owned(),
        shown: handoff_base::text::quoted(value),
    }
}

#[cfg(test)]
mod tests {
    use super::{Coverage, ReportFault, TestCounts};

    fn tests(text: &str) -> (u64, u64, u64) {
        let counts = TestCounts::read(text.as_bytes()).expect("it is a report");
        (counts.passed, counts.failed, counts.skipped)
    }

    #[test]
    fn test_cases_are_counted_in_all_suites() {
        let nested = r#"<?xml version="1.0"?><testsuites tests="99"><testsuite name="a" tests="9">
            <properties/><testcase name="1"/><testcase name="2"><failure>no</failure></testcase>
            <testsuite name="b"><testcase name="3"><error/></testcase><testcase name="4"><skipped/></testcase></testsuite>
            </testsuite></testsuites>"#;
        assert_eq!(tests(nested), (1, 2, 1));
        let bare = r#"<testsuite tests="10" failures="2" errors="1" skipped="3"/>"#;
        assert_eq!(tests(bare), (4, 3, 3));
        assert_eq!(tests("<testsuites/>"), (0, 0, 0));
    }

    #[test]
    fn what_is_no_test_report_is_refused() {
        let fault = |text: &str| TestCounts::read(text.as_bytes()).expect_err("it is none");
        assert!(matches!(fault("{}"), ReportFault::Unknown { .. }));
        assert!(matches!(fault("<coverage/>"), ReportFault::Unknown { .. }));
        assert!(matches!(
            fault("<testsuite>"),
            ReportFault::Malformed { .. }
        ));
        let number = fault(r#"<testsuite tests="many"/>"#);
        assert!(matches!(number, ReportFault::Number { .. }));
        let bomb = r#"<!DOCTYPE t [<!ENTITY a "b">]><testsuite>&a;</testsuite>"#;
        assert_eq!(fault(bomb), ReportFault::Declarations);
    }

    #[test]
    fn coverage_is_read_from_lcov_and_from_cobertura() {
        let read = |text: &str| Coverage::read(text.as_bytes());
        let lcov = "TN:\nSF:a.rs\nDA:1,1\nDA:2,0\nLF:2\nLH:1\nend_of_record\nSF:b.rs\nDA:1,5\nDA:2,7\nend_of_record\n";
        let lines = |covered, valid| Ok(Coverage::Lines { covered, valid });
        assert_eq!(read(lcov), lines(3, 4));
        let cobertura = "<?xml version=\"1.0\" ?>\n<!DOCTYPE coverage SYSTEM 'http://cobertura.sourceforge.net/xml/coverage-04.dtd'>\n<coverage line-rate=\"0.5\" lines-covered=\"7\" lines-valid=\"8\"><packages/></coverage>";
        assert_eq!(read(cobertura), lines(7, 8));
        let rate = read(r#"<coverage line-rate="0.885"/>"#);
        assert_eq!(rate, Ok(Coverage::Rate(0.885)));
        assert_eq!(rate.and_then(|r| r.with(r)), Err(ReportFault::NoCounts));
        for none in [
            "",
            "SF:a.rs\n",
            "DA:1,x\nend_of_record\n",
            "<coverage/>",
            "<a/>",
        ] {
            assert!(
                matches!(read(none), Err(ReportFault::Unknown { .. })),
                "{none}"
            );
        }
    }
}
