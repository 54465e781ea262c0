//! References within a schema: resolution and cycles.

use std::collections::HashSet;

use serde_json::Value;

use super::error::ShapeError;
use crate::text;

/// The maximum nesting of a schema, and the maximum length of a chain of references.
const MAX_NESTING: usize = 256;

pub(crate) fn resolve<'s>(root: &'s Value, reference: &str) -> Result<&'s Value, ShapeError> {
    let target = match reference.strip_prefix('#') {
        Some(pointer) if pointer.contains('%') => root.pointer(&percent_decoded(pointer)),
        Some(pointer) => root.pointer(pointer),
        None => None,
    };
    target.ok_or_else(|| ShapeError::Reference {
        reference: text::short(reference),
    })
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |byte: u8| (byte as char).to_digit(16);
        if let (b'%', [high, low, after @ ..]) = (first, tail)
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
            rest = after;
            continue;
        }
        bytes.push(*first);
        rest = tail;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Refuses schemas that refer to themselves for the same value: validation would not terminate.
pub(super) fn refuse_endless(schema: &Value) -> Result<(), ShapeError> {
    let mut done = HashSet::new();
    let mut walk = vec![(schema, 0_usize)];
    while let Some((value, depth)) = walk.pop() {
        if depth > MAX_NESTING {
            return Err(ShapeError::TooLarge);
        }
        match value {
            Value::Object(members) => {
                // Refuse what this walk does not support.
                let nested = (depth > 0).then_some("$id");
                for key in ["$dynamicRef", "$recursiveRef"].into_iter().chain(nested) {
                    if let Some(Value::String(reference)) = members.get(key) {
                        return Err(ShapeError::Reference {
                            reference: text::short(reference),
                        });
                    }
                }
                if let Some(Value::String(reference)) = members.get("$ref") {
                    resolve(schema, reference)?;
                    let mut path = Vec::new();
                    descend(schema, value, reference, &mut path, &mut done)?;
                }
                walk.extend(members.values().map(|value| (value, depth + 1)));
            }
            Value::Array(items) => walk.extend(items.iter().map(|value| (value, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

fn descend<'s>(
    root: &'s Value,
    value: &'s Value,
    reference: &str,
    path: &mut Vec<*const Value>,
    done: &mut HashSet<*const Value>,
) -> Result<(), ShapeError> {
    let this = std::ptr::from_ref(value);
    if path.contains(&this) {
        return Err(ShapeError::Endless {
            reference: text::short(reference),
        });
    }
    if done.contains(&this) {
        return Ok(());
    }
    if path.len() >= MAX_NESTING {
        return Err(ShapeError::TooLarge);
    }
    let Value::Object(members) = value else {
        return Ok(());
    };
    path.push(this);
    for (key, member) in members {
        match (key.as_str(), member) {
            ("$ref", Value::String(next)) => {
                descend(root, resolve(root, next)?, next, path, done)?;
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                for branch in branches {
                    descend(root, branch, reference, path, done)?;
                }
            }
            ("dependentSchemas", Value::Object(branches)) => {
                for branch in branches.values() {
                    descend(root, branch, reference, path, done)?;
                }
            }
            ("if" | "then" | "else" | "not", member) => {
                descend(root, member, reference, path, done)?;
            }
            _ => {}
        }
    }
    path.pop();
    done.insert(this);
    Ok(())
}
