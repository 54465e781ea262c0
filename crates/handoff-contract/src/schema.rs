//! A schema, and checking a source against it.

use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::pointer::push_part;
use handoff_base::text::counted_as;
use serde_json::Value;

use super::cost::{self, Cost};
use super::evaluate::{self, Limit};
use super::explain::Explainer;
use super::map::Mapped;
use super::pattern::Patterns;
use super::schema_error::SchemaError;
use super::shape::{Shape, ShapeError};
use super::source::{Source, Tree};
use super::{FILL, MAX_FINDINGS, Place, form, map, text};

/// A schema: JSON Schema 2020-12, offline, with formats asserted, and its [`Shape`].
#[derive(Debug)]
pub struct Schema {
    source: Value,
    patterns: Patterns,
    shape: Shape,
    /// Why its values can't be written as XML, if they can't.
    without_xml: Option<ShapeError>,
}

/// The result of checking a source.
#[derive(Clone, Debug)]
#[must_use]
pub struct Checked {
    /// The value, even if it is invalid.
    pub value: Value,
    /// Every finding, ordered by place.
    pub findings: Vec<Finding>,
}

impl Checked {
    /// Whether there are no errors among the findings.
    pub fn is_valid(&self) -> bool {
        !self.findings.iter().any(Finding::is_error)
    }
}

impl Schema {
    /// Reads a schema, with every pattern compiled.
    ///
    /// # Errors
    /// [`SchemaError`], if it is not a valid schema.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let read = Self::read(schema)?;
        let faults = form::faults(schema, Some(&read.patterns));
        faults.into_iter().next().map_or(Ok(read), Err)
    }

    /// Every place at which a schema is not valid; up to [`MAX_FINDINGS`].
    pub fn invalid_places(schema: &Value) -> Vec<SchemaError> {
        let patterns = cost::of_schema(schema).map(|cost| Patterns::new(cost.patterns));
        form::faults(schema, patterns.as_ref())
    }

    /// The pointer of every `enum` that lists nothing: no value is valid there.
    pub fn without_value(schema: &Value) -> Vec<String> {
        form::without_value(schema)
    }

    /// Reads a schema that passed [`Schema::compile`] when it entered the ledger: patterns compile
    /// on first use.
    ///
    /// # Errors
    /// [`SchemaError`], if it can't be used.
    pub fn compile_trusted(schema: &Value) -> Result<Self, SchemaError> {
        let read = Self::read(schema)?;
        let faults = form::faults(schema, None);
        faults.into_iter().next().map_or(Ok(read), Err)
    }

    /// Takes a built-in schema unchecked, because a test compiles it.
    ///
    /// # Errors
    /// [`SchemaError`], if its references can't be followed.
    pub fn sound(schema: Value) -> Result<Self, SchemaError> {
        let (shape, without_xml) = Shape::as_far_as_possible(&schema)?;
        Ok(Self {
            shape,
            without_xml,
            patterns: Patterns::default(),
            source: schema,
        })
    }

    /// Reads a schema and checks its limits.
    fn read(schema: &Value) -> Result<Self, SchemaError> {
        if !schema.is_object() {
            return Err(SchemaError::NotAnObject);
        }
        let cost = cost::of_schema(schema).ok_or(SchemaError::TooLarge)?;
        Ok(Self {
            patterns: Patterns::new(cost.patterns),
            ..Self::sound(schema.clone())?
        })
    }

    /// The cost of a schema; `None` if it exceeds the limits.
    pub fn cost_of(schema: &Value) -> Option<Cost> {
        cost::of_schema(schema)
    }

    /// Whether a value is valid.
    pub fn accepts(&self, value: &Value) -> bool {
        evaluate::accepts(&self.source, &self.patterns, value) == Ok(true)
    }

    /// Returns why the schema's values can't be written as XML, if they can't.
    pub fn without_xml(&self) -> Option<&ShapeError> {
        self.without_xml.as_ref()
    }

    /// Returns the XML form of the schema's values.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Maps the source to a value by the shape without validating it, for a contract that was
    /// validated when it was sent.
    pub fn value(&self, source: &Source, wrapper: Option<&str>) -> Value {
        self.mapped(source, wrapper).value
    }

    fn mapped(&self, source: &Source, wrapper: Option<&str>) -> Mapped {
        match source.tree() {
            Tree::Xml(document) => map::to_value(source.text(), document, &self.shape),
            Tree::Json(document) => Mapped {
                value: Source::unwrapped(document, wrapper).clone(),
                findings: Vec::new(),
                more: 0,
            },
            Tree::Markdown(message) => Mapped {
                value: Source::unwrapped(message.value(), wrapper).clone(),
                findings: Vec::new(),
                more: 0,
            },
        }
    }

    /// Maps the source to a value by the shape, and validates it.
    ///
    /// `wrapper` is the key that wraps a JSON or Markdown contract, if [`Source::root`] found one.
    pub fn check(&self, source: &Source, wrapper: Option<&str>) -> Checked {
        let Mapped {
            value,
            mut findings,
            mut more,
        } = self.mapped(source, wrapper);
        self.unfilled(source, wrapper, &value, &mut findings);
        self.undecided(source, wrapper, &value, &mut findings);
        match evaluate::faults(&self.source, &self.patterns, &value) {
            Ok(faults) => {
                let mut explainer = Explainer {
                    source,
                    shape: &self.shape,
                    wrapper,
                    value: &value,
                    findings: &mut findings,
                    more,
                };
                for fault in &faults {
                    explainer.explain(fault);
                }
                more = explainer.more;
            }
            Err(limit) => findings.push(beyond(limit)),
        }
        self.copied(source, wrapper, &value, &mut findings);
        if more > 0 {
            let message = counted_as(more, "more fault", [" is not listed", "s are not listed"]);
            let mut note = Finding::error(FindingCode::FindingsMore, "", message);
            note.severity = Severity::Note;
            findings.push(note);
        }
        tidy(&mut findings);
        Checked { value, findings }
    }

    /// Reports every text that still contains a placeholder.
    fn unfilled(
        &self,
        source: &Source,
        wrapper: Option<&str>,
        value: &Value,
        findings: &mut Vec<Finding>,
    ) {
        let mut pointers = Vec::new();
        marked(value, &mut String::new(), &mut pointers);
        for (pointer, text) in pointers {
            let place = source.place(&self.shape, wrapper, &pointer);
            let mut finding = map::unfilled_finding(place.path, &text);
            (finding.line, finding.column) = (place.line, place.column);
            findings.push(finding);
        }
    }

    /// Reports every value that is the list of choices instead of one of them.
    fn undecided(
        &self,
        source: &Source,
        wrapper: Option<&str>,
        value: &Value,
        findings: &mut Vec<Finding>,
    ) {
        self.shape.undecided(value, |pointer, list, choices| {
            if findings.len() < MAX_FINDINGS {
                let place = source.place(&self.shape, wrapper, pointer);
                findings.push(undecided_finding(place, list, choices));
            }
        });
    }

    /// Reports every other text that is a list of choices, as copied from a template. Places that
    /// have choices are reported already.
    fn copied(
        &self,
        source: &Source,
        wrapper: Option<&str>,
        value: &Value,
        findings: &mut Vec<Finding>,
    ) {
        let mut found = Vec::new();
        texts(value, &mut String::new(), &mut |pointer, text| {
            // Finding a place parses the document again, so their number is limited.
            if found.len() >= MAX_FINDINGS {
                return;
            }
            if let Some(choices) = self.shape.listed(text) {
                let place = source.place(&self.shape, wrapper, pointer);
                found.push(undecided_finding(place, text, choices));
            }
        });
        for finding in found {
            let known = findings.iter().any(|f| f.path == finding.path);
            if !known && findings.len() < MAX_FINDINGS {
                findings.push(finding);
            }
        }
    }
}

/// The finding for a value that is the list of choices.
fn undecided_finding(place: Place, list: &str, choices: &[String]) -> Finding {
    let message = format!("`{}` lists all the choices: pick one", text::short(list));
    let mut finding = Finding::error(FindingCode::FieldUndecided, place.path, message);
    (finding.line, finding.column) = (place.line, place.column);
    let choices: Vec<String> = choices.iter().map(|choice| text::short(choice)).collect();
    finding.fix(format!("use one of: {}", choices.join(", ")))
}

/// Calls `see` for every text in a value, with its pointer. Recursion is bounded by the source's
/// depth.
fn texts(value: &Value, pointer: &mut String, see: &mut impl FnMut(&str, &str)) {
    let mut into = |part: &str, value: &Value| {
        let length = pointer.len();
        push_part(pointer, part);
        texts(value, pointer, see);
        pointer.truncate(length);
    };
    match value {
        Value::String(text) => see(pointer, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                into(&index.to_string(), item);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                into(key, member);
            }
        }
        _ => {}
    }
}

/// The finding for a value that can't be checked.
fn beyond(limit: Limit) -> Finding {
    let (text, fix) = match limit {
        Limit::Steps => (
            "its schema needs more steps to check it than are allowed",
            "shorten it, or simplify the schema",
        ),
        Limit::Matched => (
            "the patterns of its schema have more to read in it than is allowed",
            "shorten its texts, or give them fewer patterns",
        ),
        Limit::Unusable => (
            "a pattern or a reference of its schema can't be used",
            "correct the schema",
        ),
    };
    Finding::error(FindingCode::InputTooLarge, "", text).fix(fix)
}

/// Collects the leaves with a placeholder. Recursion is bounded by the source's depth.
fn marked(value: &Value, pointer: &mut String, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => {
            if text.contains(FILL) && found.len() < MAX_FINDINGS {
                found.push((pointer.clone(), text.clone()));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if item.is_string() && !item.as_str().is_some_and(|text| text.contains(FILL)) {
                    continue;
                }
                let length = pointer.len();
                push_part(pointer, &index.to_string());
                marked(item, pointer, found);
                pointer.truncate(length);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                if member.is_string() && !member.as_str().is_some_and(|text| text.contains(FILL)) {
                    continue;
                }
                let length = pointer.len();
                push_part(pointer, key);
                marked(member, pointer, found);
                pointer.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Sorts by place, removes duplicates, and drops other findings about a place that is unfilled.
fn tidy(findings: &mut Vec<Finding>) {
    if findings.is_empty() {
        return;
    }
    for finding in findings.iter_mut() {
        text::bound(&mut finding.path);
    }
    findings.sort_by(|a, b| {
        let key = |finding: &Finding| {
            (
                finding.line.unwrap_or(u32::MAX),
                finding.column.unwrap_or(u32::MAX),
            )
        };
        key(a)
            .cmp(&key(b))
            .then_with(|| a.path.cmp(&b.path))
            .then_with(|| a.code.as_str().cmp(b.code.as_str()))
            .then_with(|| a.message.cmp(&b.message))
    });
    findings.dedup();
    let unfilled: Vec<String> = findings
        .iter()
        .filter(|finding| finding.code == FindingCode::FieldUnfilled)
        .map(|finding| finding.path.clone())
        .collect();
    if !unfilled.is_empty() {
        let mut last = None;
        findings.retain(|finding| {
            if !unfilled.contains(&finding.path) {
                return true;
            }
            let first = last.as_ref() != Some(&finding.path);
            let keep = finding.code == FindingCode::FieldUnfilled && first;
            if keep {
                last = Some(finding.path.clone());
            }
            keep
        });
    }
}
