//! The keyword `pattern`, compiled on first use.
//!
//! A contract uses few of its schema's patterns, and compiling one takes longer than the rest of
//! the schema: a timestamp that handles leap years is a large expression.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::paths::Location;
use jsonschema::{Draft, Keyword, ValidationError, Validator};
use serde_json::{Map, Value, json};

/// The keyword's name in schemas and errors.
pub(super) const KEYWORD: &str = "pattern";

/// The most common pattern in protocols: more than blanks. As an expression over all of Unicode it
/// would take longer to compile than the rest of a schema.
const NOT_BLANK: &str = r"[^ \t\n\r]";

/// A pattern, shared by all places that use it.
struct Pattern {
    text: String,
    compiled: OnceLock<Option<Validator>>,
}

/// One place of a schema with a pattern.
struct LazyPattern(Arc<Pattern>);

impl<'i> Keyword<'i> for LazyPattern {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            Ok(())
        } else {
            // Explaining the error only needs the pattern.
            Err(ValidationError::custom(self.0.text.clone()))
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        let Some(text) = instance.as_str() else {
            return true;
        };
        if self.0.text == NOT_BLANK {
            return text.contains(|c| !matches!(c, ' ' | '\t' | '\n' | '\r'));
        }
        // The library's own keyword does the matching, so that a pattern has the same meaning as
        // when the whole schema is compiled.
        let compiled = self.0.compiled.get_or_init(|| {
            let schema = json!({ KEYWORD: self.0.text });
            let options = jsonschema::options().with_draft(Draft::Draft4).offline();
            options.build(&schema).ok()
        });
        compiled
            .as_ref()
            .is_some_and(|validator| validator.is_valid(instance))
    }
}

/// Creates the keyword's instances for one schema.
pub(super) fn factory()
-> impl for<'a> Fn(&'a Map<String, Value>, &'a Value, Location) -> Made<'a> + Send + Sync + 'static
{
    let known: Mutex<HashMap<String, Arc<Pattern>>> = Mutex::default();
    move |_, value, _| {
        let text = value.as_str().unwrap_or_default();
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let pattern = known.entry(text.to_owned()).or_insert_with(|| {
            Arc::new(Pattern {
                text: text.to_owned(),
                compiled: OnceLock::new(),
            })
        });
        Ok(Box::new(LazyPattern(Arc::clone(pattern))))
    }
}

type Made<'a> = Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>>;
