//! JSON Pointers (RFC 6901): splitting, building and following.

use std::borrow::Cow;

use serde_json::Value;

/// The unescaped parts of a pointer.
pub fn parts(pointer: &str) -> impl Iterator<Item = String> + '_ {
    borrowed_parts(pointer).map(Cow::into_owned)
}

/// The same, in a copy only where something is escaped.
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

/// The value that a pointer leads to, as [`Value::pointer`] finds it, which makes two texts for
/// each part.
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

/// A key or a number, escaped for a pointer.
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
}
