//! The expressions of workflows, as far as the templates use them.

use serde_json::Value;

/// A text with each `${{ … }}` in it evaluated.
pub(crate) fn expanded(template: &str, context: &Value) -> String {
    let mut parts = template.split("${{");
    let mut all = parts.next().unwrap().to_owned();
    for part in parts {
        let (inner, rest) = part.split_once("}}").unwrap();
        all += &text(&evaluate(inner, context));
        all += rest;
    }
    all
}

/// A value as text.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(crate) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// Evaluates what stands between the braces.
pub(crate) fn evaluate(expression: &str, context: &Value) -> Value {
    let mut reader = Reader {
        words: words(expression),
        at: 0,
        context,
    };
    let value = reader.either();
    assert_eq!(reader.at, reader.words.len(), "{expression}");
    value
}

fn words(expression: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || "_.-*[]".contains(c);
        let length = match first {
            '\'' => rest[1..].find('\'').unwrap() + 2,
            '(' | ')' | ',' => 1,
            '!' if !rest.starts_with("!=") => 1,
            c if is_name(c) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
            _ => 2,
        };
        words.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    words
}

struct Reader<'a> {
    words: Vec<String>,
    at: usize,
    context: &'a Value,
}

impl Reader<'_> {
    fn takes(&mut self, word: &str) -> bool {
        let is_it = self.words.get(self.at).is_some_and(|w| w == word);
        self.at += usize::from(is_it);
        is_it
    }

    fn either(&mut self) -> Value {
        let mut left = self.both();
        while self.takes("||") {
            let right = self.both();
            left = if is_true(&left) { left } else { right };
        }
        left
    }

    fn both(&mut self) -> Value {
        let mut left = self.compared();
        while self.takes("&&") {
            let right = self.compared();
            left = if is_true(&left) { right } else { left };
        }
        left
    }

    fn compared(&mut self) -> Value {
        let left = self.one();
        if self.takes("==") {
            let right = self.one();
            return (text(&left) == text(&right)).into();
        }
        if self.takes("!=") {
            let right = self.one();
            return (text(&left) != text(&right)).into();
        }
        left
    }

    fn one(&mut self) -> Value {
        if self.takes("!") {
            return (!is_true(&self.one())).into();
        }
        if self.takes("(") {
            let value = self.either();
            assert!(self.takes(")"));
            return value;
        }
        let word = self.words[self.at].clone();
        self.at += 1;
        if let Some(quoted) = word.strip_prefix('\'') {
            return quoted.trim_end_matches('\'').into();
        }
        if word == "contains" || word == "startsWith" {
            assert!(self.takes("("));
            let whole = self.either();
            assert!(self.takes(","));
            let part = text(&self.either());
            assert!(self.takes(")"));
            return match &whole {
                whole if word == "startsWith" => text(whole).starts_with(&part),
                Value::Array(all) => all.iter().any(|one| text(one) == part),
                other => text(other).contains(&part),
            }
            .into();
        }
        if self.takes("(") {
            assert!(self.takes(")"), "{word} takes nothing here");
            let status = self.context["status"].as_str().unwrap();
            return match word.as_str() {
                "always" => true.into(),
                "success" => (status == "success").into(),
                "failure" => (status == "failure").into(),
                other => panic!("{other}() is not known here"),
            };
        }
        if word == "true" || word == "false" {
            return (word == "true").into();
        }
        let mut value = self.context.clone();
        let mut names = word.split('.');
        while let Some(name) = names.next() {
            if value == *self.context {
                assert!(value.get(name).is_some(), "there is no context {name}");
            }
            if name == "*" {
                let rest = names.next().unwrap();
                let all = value.as_array().into_iter().flatten();
                return all.map(|one| one[rest].clone()).collect();
            }
            value = match name.strip_suffix("[0]") {
                Some(list) => value[list][0].clone(),
                None => value[name].clone(),
            };
        }
        value
    }
}
