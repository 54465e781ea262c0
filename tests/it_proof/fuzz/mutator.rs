//! Mutations of samples: of bytes, of tokens, of nesting, and splices of two.

use std::ops::Range;

use test_support::dice::Dice;

/// The most bytes that a mutant has.
pub(super) const LONGEST: usize = 32 * 1024;

/// What readers of numbers and of text get wrong.
const WORDS: [&[u8]; 22] = [
    b"0",
    b"-1",
    b"-0",
    b"1e999",
    b"0.1e-400",
    b"2147483648",
    b"4294967296",
    b"9007199254740993",
    b"9223372036854775808",
    b"18446744073709551616",
    b"99999999999999999999999999999999999999999999",
    b"1.0",
    b"null",
    b"true",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xff",
    b"\x00",
    "\u{feff}".as_bytes(),
    "\u{202e}\u{200b}\u{2028}".as_bytes(),
    b"\r\n",
];

/// What nests in one of the formats.
const NESTS: [(&[u8], &[u8]); 5] = [
    (b"<a>", b"</a>"),
    (b"{\"a\":", b"}"),
    (b"[", b"]"),
    (b"\"", b"\""),
    (b"```\n", b"\n```\n"),
];

/// The samples and the words of one format.
pub(super) struct Mutator<'a> {
    pub(super) samples: &'a [Vec<u8>],
    pub(super) words: &'a [&'a str],
}

impl Mutator<'_> {
    /// A sample with a few mutations.
    pub(super) fn mutant(&self, dice: &mut Dice) -> Vec<u8> {
        let mut bytes = dice.one(self.samples).clone();
        let most = *dice.one(&[1, 2, 4, 16]);
        for _ in 0..=dice.below(most) {
            self.mutate(&mut bytes, dice);
            bytes.truncate(LONGEST);
        }
        bytes
    }

    fn mutate(&self, bytes: &mut Vec<u8>, dice: &mut Dice) {
        match dice.below(12) {
            0 if !bytes.is_empty() => {
                let at = place(bytes, dice);
                bytes[at] ^= 1 << dice.below(8);
            }
            1 => {
                let byte = u8::try_from(dice.below(256)).unwrap();
                let at = gap(bytes, dice);
                bytes.insert(at, byte);
            }
            2 => drop(bytes.drain(part(bytes, dice))),
            3 => {
                let copy = bytes[part(bytes, dice)].to_vec();
                let at = gap(bytes, dice);
                bytes.splice(at..at, copy);
            }
            4 => bytes.truncate(gap(bytes, dice)),
            5 => {
                let other = dice.one(self.samples);
                let from = gap(other, dice);
                bytes.truncate(gap(bytes, dice));
                bytes.extend_from_slice(&other[from..]);
            }
            6 => self.swap(bytes, dice),
            7 => {
                let range = token(bytes, dice);
                let word = self.word(dice);
                bytes.splice(range, word);
            }
            8 => {
                let at = token(bytes, dice).start;
                let word = self.word(dice);
                bytes.splice(at..at, word);
            }
            9 => {
                let other = dice.one(self.samples);
                let word = other[token(other, dice)].to_vec();
                let range = token(bytes, dice);
                bytes.splice(range, word);
            }
            10 => drop(bytes.drain(token(bytes, dice))),
            _ => {
                let range = if dice.percent(50) {
                    token(bytes, dice)
                } else {
                    part(bytes, dice)
                };
                let (open, close) = dice.one(&NESTS);
                let depth =
                    usize::try_from(*dice.one(&[1_u64, 2, 63, 64, 65, 130, 1_000])).unwrap();
                let inner = bytes[range.clone()].to_vec();
                bytes.splice(
                    range,
                    [open.repeat(depth), inner, close.repeat(depth)].concat(),
                );
            }
        }
    }

    /// Exchanges two tokens.
    fn swap(&self, bytes: &mut Vec<u8>, dice: &mut Dice) {
        let (one, other) = (token(bytes, dice), token(bytes, dice));
        let (first, second) = if one.start <= other.start {
            (one, other)
        } else {
            (other, one)
        };
        if first.end <= second.start {
            let (a, b) = (
                bytes[first.clone()].to_vec(),
                bytes[second.clone()].to_vec(),
            );
            bytes.splice(second, a);
            bytes.splice(first, b);
        }
    }

    fn word(&self, dice: &mut Dice) -> Vec<u8> {
        if !self.words.is_empty() && dice.percent(70) {
            return dice.one(self.words).as_bytes().to_vec();
        }
        dice.one(&WORDS).to_vec()
    }
}

fn below(limit: usize, dice: &mut Dice) -> usize {
    usize::try_from(dice.below(limit.max(1) as u64)).unwrap()
}

fn place(bytes: &[u8], dice: &mut Dice) -> usize {
    below(bytes.len(), dice)
}

/// A place between two bytes, or at an end.
fn gap(bytes: &[u8], dice: &mut Dice) -> usize {
    below(bytes.len() + 1, dice)
}

fn part(bytes: &[u8], dice: &mut Dice) -> Range<usize> {
    let start = gap(bytes, dice);
    let longest = *dice.one(&[4_usize, 32, 512, usize::MAX]);
    let length = below((bytes.len() - start).min(longest) + 1, dice);
    start..start + length
}

/// A word, or a single other byte.
fn token(bytes: &[u8], dice: &mut Dice) -> Range<usize> {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80;
    let at = place(bytes, dice);
    if !bytes.get(at).is_some_and(is_word) {
        return at..bytes.len().min(at + 1);
    }
    let before = bytes[..at].iter().rev().take_while(|b| is_word(b)).count();
    let after = bytes[at..].iter().take_while(|b| is_word(b)).count();
    at - before..at + after
}
