//! Classifies values: random, password-like, or a placeholder.

/// A value's entropy per character, in bits.
fn bits_per_character(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for &byte in value {
        counts[usize::from(byte)] += 1;
    }
    let length = value.len() as f64;
    let shares = counts.iter().filter(|&&count| count > 0).map(|&count| {
        let share = f64::from(count) / length;
        -share * share.log2()
    });
    shares.sum()
}

/// Whether a value looks random: digits among letters, few repetitions. A UUID does not count,
/// because contracts use UUIDs as names.
pub(super) fn is_drawn(value: &[u8]) -> bool {
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = value.iter().filter(|b| b.is_ascii_alphabetic()).count();
    // 32 hexadecimal digits have 3.6 to 4 bits each; words and paths with a number have less.
    let least = if value.len() < 20 { 3.0 } else { 3.4 };
    digits > 1 && letters > 1 && !is_uuid(value) && bits_per_character(value) >= least
}

/// Whether a value looks like a password that a person chose: letters, and a digit or a sign that
/// identifiers do not contain.
pub(super) fn is_chosen(value: &[u8]) -> bool {
    let letters = value.iter().any(u8::is_ascii_alphabetic);
    let others = |byte: &u8| byte.is_ascii_digit() || b"!@#$%^&*+?~|".contains(byte);
    let calls = value.windows(2).any(|two| two == b"()") || value.ends_with(b")");
    letters && value.iter().any(others) && !calls
}

/// Whether a value only stands for a secret: a variable, or a row of `x` or `*`.
pub(super) fn is_blank(value: &[u8]) -> bool {
    let starts: [&[u8]; 6] = [b"${", b"$(", b"{{", b"<", b"%(", b"$"];
    starts.iter().any(|start| value.starts_with(start)) || holds(value, &[b"xxxxx", b"*****"])
}

/// Whether a value that only its name makes a secret is a placeholder.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    const WORDS: [&[u8]; 8] = [
        b"example",
        b"placeholder",
        b"redacted",
        b"changeme",
        b"change_me",
        b"your_",
        b"your-",
        b"12345678",
    ];
    let mut kinds = value.to_ascii_lowercase();
    kinds.sort_unstable();
    kinds.dedup();
    is_blank(value) || holds(value, &WORDS) || kinds.len() < 4
}

fn holds(value: &[u8], words: &[&[u8]]) -> bool {
    let lower = value.to_ascii_lowercase();
    let stands = |word: &&[u8]| lower.windows(word.len()).any(|here| here == *word);
    words.iter().any(stands)
}

fn is_uuid(value: &[u8]) -> bool {
    let right = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    value.len() == 36 && value.iter().enumerate().all(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_by_lot_is_told_from_words() {
        assert!(is_drawn(b"9f86d081884c7d659a2feaa0c55ad015"));
        assert!(is_drawn(b"kX2pQv9LmT4zRb7WnY1c"));
        assert!(!is_drawn(b"handle_authentication_flow_2"));
        assert!(!is_drawn(b"aaaaaaaaaaaaaaaaaaaa11"));
        assert!(!is_drawn(b"2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d"));
    }

    #[test]
    fn passwords_are_told_from_names_in_code() {
        assert!(is_chosen(b"hunter2hunter2"));
        assert!(is_chosen(b"corr3ct-horse"));
        assert!(!is_chosen(b"required"));
        assert!(!is_chosen(b"password_hash"));
        assert!(!is_chosen(b"getPassword2()"));
    }

    #[test]
    fn placeholders_are_none() {
        for text in [
            "${DB_PASSWORD}",
            "<token>",
            "xxxxxxxxxxxx",
            "your-api-key-1",
            "$TOKEN",
        ] {
            assert!(is_placeholder(text.as_bytes()), "{text}");
        }
        assert!(!is_placeholder(b"kX2pQv9LmT4zRb7WnY1c"));
        assert!(is_placeholder(b"an-example-value-1") && !is_blank(b"an-example-value-1"));
        assert!(is_blank(b"ghp_xxxxxxxxxxxxxxxx") && is_blank(b"${TOKEN}"));
    }
}
