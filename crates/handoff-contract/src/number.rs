//! Values compared as JSON Schema does: 1 equals 1.0, and 0.3 is a multiple of 0.1.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// Compares two numbers by value.
pub(super) fn compare(one: &Number, other: &Number) -> Ordering {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        // One of them has a fraction, so that it is exact, or exceeds every whole number here.
        _ => one
            .as_f64()
            .partial_cmp(&other.as_f64())
            .unwrap_or(Ordering::Equal),
    }
}

/// A number without a fraction, if it isn't enormous.
pub(super) fn whole(number: &Number) -> Option<i128> {
    const ENORMOUS: f64 = 1e38;
    if let Some(number) = number.as_i64() {
        return Some(number.into());
    }
    if let Some(number) = number.as_u64() {
        return Some(number.into());
    }
    let float = number.as_f64().filter(|float| float.abs() < ENORMOUS)?;
    (float.fract() == 0.0).then_some(float as i128)
}

/// Whether a number has no fraction.
pub(super) fn is_integer(number: &Number) -> bool {
    number.as_f64().is_some_and(|float| float.fract() == 0.0) || !number.is_f64()
}

/// Whether a number is a whole multiple of another one, both as they are written in decimal.
pub(super) fn is_multiple(number: &Number, unit: &Number) -> bool {
    let (Some((digits, exponent)), Some((unit, scale))) = (decimal(number), decimal(unit)) else {
        return false;
    };
    if digits == 0 || unit == 0 {
        return digits == 0;
    }
    // The last digit isn't 0, so nothing that ends with more zeros divides it.
    let Ok(zeros) = u32::try_from(exponent - scale) else {
        return false;
    };
    (0..zeros).fold(digits % unit, |rest, _| rest * 10 % unit) == 0
}

/// A number's digits without zeros at the end, and its exponent.
fn decimal(number: &Number) -> Option<(u128, i32)> {
    let text = number.to_string();
    let text = text.trim_start_matches('-');
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let mut exponent = exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()?;
    while digits != 0 && digits.is_multiple_of(10) {
        digits /= 10;
        exponent += 1;
    }
    Some((digits, exponent))
}

/// Orders all values, so that equal ones stand side by side. Recursion is bounded by the depth of
/// JSON.
pub(super) fn order(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other),
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Array(one), Value::Array(other)) => {
            let mut parts = one.iter().zip(other).map(|(one, other)| order(one, other));
            let first = parts.find(|found| found.is_ne());
            (one.len().cmp(&other.len())).then(first.unwrap_or(Ordering::Equal))
        }
        (Value::Object(one), Value::Object(other)) => {
            if one.len() != other.len() {
                return one.len().cmp(&other.len());
            }
            let (one, other) = (sorted(one), sorted(other));
            let mut parts = one
                .iter()
                .zip(other)
                .map(|((name, one), (key, other))| name.cmp(&key).then_with(|| order(one, other)));
            let first = parts.find(|found| found.is_ne());
            first.unwrap_or(Ordering::Equal)
        }
        _ => rank(one).cmp(&rank(other)),
    }
}

fn sorted(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    members
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

/// Whether two values are equal.
pub(super) fn equal(one: &Value, other: &Value) -> bool {
    order(one, other).is_eq()
}

/// Whether a list holds no value twice.
pub(super) fn are_unique(items: &[Value]) -> bool {
    let mut items: Vec<&Value> = items.iter().collect();
    items.sort_unstable_by(|one, other| order(one, other));
    items.windows(2).all(|pair| !equal(pair[0], pair[1]))
}
