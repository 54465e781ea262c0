//! A compiled schema, and checking a source against it.

use std::sync::{Arc, OnceLock};

use handoff_base::finding::{Finding, FindingCode, Severity};
use handoff_base::pointer::push_part;
use handoff_base::text::counted_as;
use jsonschema::{Draft, Registry, Validator};
use serde_json::{Value, json};

use super::contains::Contains;
use super::cost::{self, Cost, MAX_SCHEMA};
use super::explain::Explainer;
use super::map::Mapped;
use super::pattern::Budget;
use super::shape::{Shape, ShapeError};
use super::source::{Source, Tree};
use super::{FILL, MAX_FINDINGS, Place, contains, map, pattern, plain, text};

/// A compiled schema: JSON Schema 2020-12, offline, with formats asserted, and its [`Shape`].
#[derive(Debug)]
pub struct Schema {
    validator: OnceLock<Validator>,
    source: Value,
    /// Whether it is built in, so that it is compiled on first use.
    ships: bool,
    cost: Cost,
    shape: Shape,
    contains: OnceLock<Contains>,
    budget: Arc<Budget>,
    /// Why its values can't be written as XML, if they can't.
    without_xml: Option<ShapeError>,
}

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It is not a valid JSON Schema 2020-12, or refers outside itself.
    #[error("the schema is not valid at `{path}`: {message}")]
    Invalid {
        /// JSON Pointer into the schema.
        path: String,
        /// What is wrong, without the schema's content.
        message: String,
    },
    /// It has a pattern that may take more than linear time.
    #[error(
        "the pattern at `{path}` has look-around or back-references, or is too large: write it without, so that it takes time in proportion to the text"
    )]
    Pattern {
        /// JSON Pointer into the schema.
        path: String,
    },
    /// It is not an object.
    #[error("a schema is a JSON object")]
    NotAnObject,
    /// Checking any value against it can take too long.
    #[error(
        "the schema applies more than {MAX_SCHEMA} schemas to one value, or nests too deeply: let fewer definitions refer to each other"
    )]
    TooLarge,
    /// A reference can't be resolved.
    #[error("the schema cannot be followed")]
    Shape(#[from] ShapeError),
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

/// The base URI of schemas that are compiled without the meta-schema check.
const TRUSTED: &str = "git-handoff:///contract";

impl Schema {
    /// Compiles a schema after checking it against the 2020-12 meta-schema.
    ///
    /// # Errors
    /// [`SchemaError`], if it is not a valid schema.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let read = Self::read(schema)?;
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(false);
        let validator = options
            .with_pattern_options(pattern::engine(read.cost.patterns))
            .build(schema)
            .map_err(|error| match pattern::refused(schema, read.cost.patterns) {
                Some(path) => SchemaError::Pattern { path },
                None => invalid(&error),
            })?;
        Ok(Self {
            validator: OnceLock::from(validator),
            contains: contains::wanted(schema).into(),
            ..read
        })
    }

    /// Every place at which a schema breaks the 2020-12 meta-schema, as [`SchemaError::Invalid`];
    /// up to [`MAX_FINDINGS`].
    pub fn invalid_places(schema: &Value) -> Vec<SchemaError> {
        let meta = jsonschema::draft202012::meta::validator();
        let errors = meta.iter_errors(schema).take(MAX_FINDINGS);
        errors.map(|error| invalid(&error)).collect()
    }

    /// Compiles a schema that passed [`Schema::compile`] when it entered the ledger, without the
    /// meta-schema check, which takes most of the time of a process's first compile.
    ///
    /// # Errors
    /// [`SchemaError`], if it cannot be compiled.
    pub fn compile_trusted(schema: &Value) -> Result<Self, SchemaError> {
        let read = Self::read(schema)?;
        Ok(Self {
            validator: OnceLock::from(read.trusted()?),
            contains: contains::wanted(schema).into(),
            ..read
        })
    }

    /// Takes a built-in schema unchecked, because a test compiles it. It is compiled on the first
    /// value that is not trivially valid.
    ///
    /// # Errors
    /// [`SchemaError`], if its references can't be followed.
    pub fn sound(schema: Value) -> Result<Self, SchemaError> {
        let (shape, without_xml) = Shape::as_far_as_possible(&schema)?;
        Ok(Self {
            validator: OnceLock::new(),
            shape,
            without_xml,
            contains: OnceLock::new(),
            budget: Arc::default(),
            source: schema,
            ships: true,
            cost: Cost::default(),
        })
    }

    /// Reads a schema and checks its limits; it is compiled later.
    fn read(schema: &Value) -> Result<Self, SchemaError> {
        if !schema.is_object() {
            return Err(SchemaError::NotAnObject);
        }
        let cost = cost::of_schema(schema).ok_or(SchemaError::TooLarge)?;
        Ok(Self {
            ships: false,
            cost,
            ..Self::sound(schema.clone())?
        })
    }

    /// The cost of a schema, counted without compiling it; `None` if it exceeds the limits.
    pub fn cost_of(schema: &Value) -> Option<Cost> {
        cost::of_schema(schema)
    }

    /// Whether it is compiled already; a built-in schema is compiled lazily.
    pub fn is_compiled(&self) -> bool {
        self.validator.get().is_some()
    }

    fn validator(&self) -> &Validator {
        self.validator.get_or_init(|| {
            self.trusted()
                .expect("a schema that ships compiles: a test compiles each")
        })
    }

    /// Compiles it without the meta-schema check.
    fn trusted(&self) -> Result<Validator, SchemaError> {
        // jsonschema checks every schema it builds against a meta-schema, except those in a
        // registry. So this one is in the registry, and only a reference to it is checked, against
        // draft 4's far smaller meta-schema.
        let registry = Registry::new()
            .draft(Draft::Draft202012)
            .add(TRUSTED, &self.source)
            .and_then(|builder| builder.prepare())
            .map_err(|error| SchemaError::Invalid {
                path: String::new(),
                message: text::short(&error.to_string()),
            })?;
        jsonschema::options()
            .with_draft(Draft::Draft4)
            .with_registry(&registry)
            .with_pattern_options(pattern::engine(self.cost.patterns))
            .with_keyword(
                pattern::KEYWORD,
                pattern::factory(&self.budget, self.cost.patterns),
            )
            .offline()
            .should_validate_formats(true)
            .build(&json!({ "$ref": TRUSTED }))
            .map_err(|error| invalid(&error))
    }

    /// Whether a value is valid.
    pub fn accepts(&self, value: &Value) -> bool {
        self.is_plainly_valid(value) || self.validator().is_valid(value)
    }

    fn is_plainly_valid(&self, value: &Value) -> bool {
        self.ships && plain::is_plainly_valid(&self.source, value)
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
        self.budget.renew();
        let is_plain = self.is_plainly_valid(&value);
        let fits = is_plain || cost::is_affordable(&self.source, &value);
        if !fits {
            let text = "its schema needs more steps to check it than are allowed";
            let finding = Finding::error(FindingCode::InputTooLarge, "", text);
            findings.push(finding.fix("shorten it, or simplify the schema"));
        } else if !is_plain && !self.validator().is_valid(&value) && !self.budget.is_spent() {
            let mut explainer = Explainer {
                source,
                shape: &self.shape,
                contains: (self.contains).get_or_init(|| contains::wanted(&self.source)),
                wrapper,
                value: &value,
                findings: &mut findings,
                more,
            };
            for error in self.validator().iter_errors(&value) {
                explainer.explain(&error);
            }
            more = explainer.more;
        }
        if self.budget.is_spent() {
            let text = "the patterns of its schema have more to read in it than is allowed";
            let finding = Finding::error(FindingCode::InputTooLarge, "", text);
            findings.push(finding.fix("shorten its texts, or give them fewer patterns"));
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

fn invalid(error: &jsonschema::ValidationError<'_>) -> SchemaError {
    SchemaError::Invalid {
        path: error.instance_path().as_str().to_owned(),
        message: text::short(&error.masked().to_string()),
    }
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
