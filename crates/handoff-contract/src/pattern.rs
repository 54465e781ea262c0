//! The keyword `pattern`, compiled on first use.
//!
//! Patterns compile lazily: a contract needs few of them, and compiling a single one (a timestamp
//! with leap years) takes longer than the rest of the schema.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use handoff_base::pointer::push_part;
use jsonschema::paths::Location;
use jsonschema::{Draft, Keyword, PatternOptions, Regex, ValidationError, Validator};
use serde_json::{Map, Value, json};

/// The keyword's name in schemas and errors.
pub(super) const KEYWORD: &str = "pattern";

/// The most common pattern in protocols, "not blank", is matched without a regex: compiled with
/// full Unicode, it would take longer than the rest of a schema.
const NOT_BLANK: &str = r"[^ \t\n\r]";

/// Whether a text is not blank, if the pattern says just that; `None` for other patterns.
pub(super) fn is_not_blank(pattern: &str, text: &str) -> Option<bool> {
    (pattern == NOT_BLANK).then(|| text.contains(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')))
}

/// A regex engine that takes linear time, because it has no look-around and back-references.
/// `patterns` is the number of patterns in the schema, which share one limit on compiled size.
pub(super) fn engine(patterns: usize) -> PatternOptions<Regex> {
    let share = (32 << 20) / patterns.max(32);
    let options = PatternOptions::regex().size_limit(share);
    options.dfa_size_limit(share)
}

/// The place of a valid pattern that the engine rejects, as a JSON Pointer into the schema.
pub(super) fn refused(schema: &Value, patterns: usize) -> Option<String> {
    let mut path = String::new();
    refused_in(schema, patterns, &mut path).then_some(path)
}

/// Recursion is bounded by the depth of JSON.
fn refused_in(schema: &Value, patterns: usize, path: &mut String) -> bool {
    let length = path.len();
    let is_taken = |pattern: &str| {
        let any = jsonschema::options().with_draft(Draft::Draft4).offline();
        compiled(pattern, patterns).is_some() || any.build(&json!({ KEYWORD: pattern })).is_err()
    };
    let mut inside = |part: &str, is_refused: bool, value: &Value| {
        push_part(path, part);
        let found = is_refused || refused_in(value, patterns, path);
        if !found {
            path.truncate(length);
        }
        found
    };
    match schema {
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.any(|(i, item)| inside(&i.to_string(), false, item))
        }
        Value::Object(members) => members.iter().any(|(key, value)| match (&**key, value) {
            // These hold values, not schemas.
            ("const" | "default" | "enum" | "examples", _) => false,
            ("patternProperties", Value::Object(own)) => {
                inside(key, !own.keys().all(|pattern| is_taken(pattern)), value)
            }
            (KEYWORD, Value::String(pattern)) => inside(key, !is_taken(pattern), value),
            _ => inside(key, false, value),
        }),
        _ => false,
    }
}

fn compiled(pattern: &str, patterns: usize) -> Option<Validator> {
    let options = jsonschema::options()
        .with_draft(Draft::Draft4)
        .with_pattern_options(engine(patterns))
        .offline();
    options.build(&json!({ KEYWORD: pattern })).ok()
}

/// The bytes of text that a document may match against patterns: each text may be matched against
/// many.
#[derive(Debug, Default)]
pub(super) struct Budget(AtomicUsize);

impl Budget {
    /// All texts of the largest document, for about sixty patterns; less in tests, which are slow.
    const WHOLE: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };

    pub(super) fn renew(&self) {
        self.0.store(Self::WHOLE, Ordering::Relaxed);
    }

    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Spends `bytes` from the budget; false if too little is left.
    fn takes(&self, bytes: usize) -> bool {
        let left = self.0.load(Ordering::Relaxed).saturating_sub(bytes + 1);
        self.0.store(left, Ordering::Relaxed);
        left > 0
    }
}

/// A pattern, shared by every place in the schema that uses it.
struct Pattern {
    text: String,
    compiled: OnceLock<Option<Validator>>,
    budget: Arc<Budget>,
    /// The number of patterns in its schema.
    patterns: usize,
}

/// One place of a schema with a pattern.
struct LazyPattern(Arc<Pattern>);

impl<'i> Keyword<'i> for LazyPattern {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            Ok(())
        } else {
            // The error's explanation needs only the pattern's text.
            Err(ValidationError::custom(self.0.text.clone()))
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        let Some(text) = instance.as_str() else {
            return true;
        };
        if let Some(answer) = is_not_blank(&self.0.text, text) {
            return answer;
        }
        if !self.0.budget.takes(text.len()) {
            return false;
        }
        // The library's own keyword does the matching, so that patterns mean the same as in a
        // schema that is compiled at once.
        let compiled = self
            .0
            .compiled
            .get_or_init(|| compiled(&self.0.text, self.0.patterns));
        compiled
            .as_ref()
            .is_some_and(|validator| validator.is_valid(instance))
    }
}

/// Creates the keyword's instances for one schema.
pub(super) fn factory(
    budget: &Arc<Budget>,
    patterns: usize,
) -> impl for<'a> Fn(&'a Map<String, Value>, &'a Value, Location) -> Made<'a> + Send + Sync + 'static
{
    let budget = Arc::clone(budget);
    let known: Mutex<HashMap<String, Arc<Pattern>>> = Mutex::default();
    move |_, value, _| {
        let text = value.as_str().unwrap_or_default();
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let pattern = known.entry(text.to_owned()).or_insert_with(|| {
            Arc::new(Pattern {
                text: text.to_owned(),
                compiled: OnceLock::new(),
                budget: Arc::clone(&budget),
                patterns,
            })
        });
        Ok(Box::new(LazyPattern(Arc::clone(pattern))))
    }
}

type Made<'a> = Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>>;
