//! JSON Pointers (RFC 6901): splitting, building and following.

use std::borrow::Cow;

use serde_json::Value;

/// The unescaped parts of a pointer.
pub fn parts(pointer: &str) -> impl Iterator<Item = String> + '_ {
    borrowed_parts(pointer).map(Cow::into_owned)
}

/// Like [`parts`], but allocates only for escaped parts.
pub fn borrowed_parts(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let parts = pointer.split('/').skip(1);
    parts.map(|part| {
        if part.contains('~') {
            Cow::Owned(part.replace("~1", "/").replace("~0", "~"))
        } else {
            Cow::Borrowed(part)
        }
    })
}

/// The value at a pointer. Unlike [`Value::pointer`], it does not allocate two strings per part.
pub fn lookup<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return None;
    }
    borrowed_parts(pointer).try_fold(value, |here, part| match here {
        Value::Object(members) => members.get(&*part),
        Value::Array(items) => {
            let is_other = part.starts_with('+') || part.len() > 1 && part.starts_with('0');
            let at = part.parse::<usize>().ok().filter(|_| !is_other)?;
            items.get(at)
        }
        _ => None,
    })
}

/// The values at a pointer in which `*` stands for every item of a list, or for every member of an
/// object that has no member called `*`.
pub fn select<'v>(value: &'v Value, pointer: &str) -> Vec<&'v Value> {
    if !pointer.contains('*') {
        return lookup(value, pointer).into_iter().collect();
    }
    let mut here = vec![value];
    for part in borrowed_parts(pointer) {
        let below = |value: &'v Value| -> Vec<&'v Value> {
            match value {
                Value::Array(items) if part == "*" => items.iter().collect(),
                Value::Array(items) => {
                    let item = part.parse::<usize>().ok().and_then(|at| items.get(at));
                    item.into_iter().collect()
                }
                Value::Object(members) if part == "*" && !members.contains_key("*") => {
                    members.values().collect()
                }
                Value::Object(members) => members.get(&*part).into_iter().collect(),
                _ => Vec::new(),
            }
        };
        here = here.into_iter().flat_map(below).collect();
    }
    here
}

/// Whether a text is a pointer below the root.
pub fn is_pointer(text: &str) -> bool {
    let mut escapes = text.split('~').skip(1);
    text.len() > 1 && text.starts_with('/') && escapes.all(|rest| rest.starts_with(['0', '1']))
}

/// Escapes a key or an index for a pointer.
pub fn escaped_part(part: &str) -> String {
    let mut escaped = String::with_capacity(part.len());
    push_escaped(&mut escaped, part);
    escaped
}

fn push_escaped(text: &mut String, part: &str) {
    for piece in part.split_inclusive(['~', '/']) {
        let end = piece.len() - 1;
        let (plain, sign) = match piece.as_bytes()[end] {
            b'~' => (&piece[..end], "~0"),
            b'/' => (&piece[..end], "~1"),
            _ => (piece, ""),
        };
        text.push_str(plain);
        text.push_str(sign);
    }
}

/// Appends a part to a pointer.
pub fn push_part(pointer: &mut String, part: &str) {
    pointer.push('/');
    push_escaped(pointer, part);
}

/// The pointer to a key or an index at another pointer.
pub fn under(pointer: &str, part: &str) -> String {
    let mut place = pointer.to_owned();
    push_part(&mut place, part);
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_comes_back_as_it_went_in() {
        let mut pointer = String::new();
        for part in ["a/b", "~", "~1", "", "0"] {
            push_part(&mut pointer, part);
        }
        assert_eq!(pointer, "/a~1b/~0/~01//0");
        let parts: Vec<String> = parts(&pointer).collect();
        assert_eq!(parts, ["a/b", "~", "~1", "", "0"]);
    }

    #[test]
    fn a_lookup_finds_what_serde_json_finds() {
        let value = serde_json::json!({
            "a": [1, {"b/c": 2, "": {"~": 3}}, [4]], "0": 5, "+1": 6, "": 7,
        });
        for pointer in [
            "",
            "/",
            "a",
            "/a",
            "/a/0",
            "/a/00",
            "/a/01",
            "/a/+1",
            "/a/1/b~1c",
            "/a/1//~0",
            "/a/2/0",
            "/a/3",
            "/a/-",
            "/a/-1",
            "/a/",
            "/0",
            "/+1",
            "/x",
            "/a/1/x",
            "/a/0/0",
            "/a/2/0/0",
            "//",
        ] {
            assert_eq!(lookup(&value, pointer), value.pointer(pointer), "{pointer}");
        }
    }

    #[test]
    fn a_pointer_can_lead_to_every_item() {
        let value =
            serde_json::json!({"labels": [{"name": "bug"}, {"name": "high"}, 3], "x": {"*": 1}});
        assert_eq!(
            select(&value, "/labels/*/name"),
            [&serde_json::json!("bug"), &serde_json::json!("high")]
        );
        assert_eq!(
            select(&value, "/labels/1/name"),
            [&serde_json::json!("high")]
        );
        assert_eq!(select(&value, "/x/*"), [&serde_json::json!(1)]);
        assert!(select(&value, "/labels/name").is_empty());
    }
}
