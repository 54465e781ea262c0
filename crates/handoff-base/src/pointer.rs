//! JSON Pointers (RFC 6901): splitting and building.

/// The unescaped parts of a pointer.
pub fn parts(pointer: &str) -> impl Iterator<Item = String> + '_ {
    let parts = pointer.split('/').skip(1);
    parts.map(|part| part.replace("~1", "/").replace("~0", "~"))
}

/// A key or a number, escaped for a pointer.
pub fn escaped_part(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}

/// Appends a part to a pointer.
pub fn push_part(pointer: &mut String, part: &str) {
    pointer.push('/');
    pointer.push_str(&escaped_part(part));
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
}
