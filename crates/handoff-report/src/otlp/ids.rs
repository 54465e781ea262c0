//! The ids of traces and spans: the same at every export.

use handoff::base::hexadecimal;
use handoff::base::ids::IssueKey;
use sha2::{Digest, Sha256};

/// The id of an issue's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceId([u8; 16]);

impl TraceId {
    /// The key itself if it is a UUID, so that an agent that began a trace under it finds the issue
    /// there; otherwise a digest of the ledger's identity and the key.
    pub(super) fn of(ledger: &[u8; 32], key: &IssueKey) -> Self {
        let made = || {
            let digest = Sha256::new()
                .chain_update(ledger)
                .chain_update(key.as_str());
            Self(first(&digest.finalize()))
        };
        uuid(key.as_str()).map_or_else(made, Self)
    }

    /// The id of a span, from a handoff's number and a part of it.
    pub(super) fn span(&self, number: u32, part: &str) -> String {
        let digest = Sha256::new()
            .chain_update(self.0)
            .chain_update(number.to_be_bytes())
            .chain_update(part);
        let id: [u8; 8] = first(&digest.finalize());
        hexadecimal(&id)
    }

    pub(super) fn digits(&self) -> String {
        hexadecimal(&self.0)
    }
}

/// The bytes of a UUID in its usual form; `None` for the nil UUID, which no trace id may be.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let joined = text.replace('-', "");
    if !matches!(lengths[..], [8, 4, 4, 4, 12] | [32])
        || !joined.bytes().all(|b| b.is_ascii_hexdigit())
    {
        return None;
    }
    let number = u128::from_str_radix(&joined, 16).ok()?;
    (number != 0).then(|| number.to_be_bytes())
}

/// The first bytes of a digest.
fn first<const N: usize>(digest: &[u8]) -> [u8; N] {
    let mut id = [0; N];
    id.copy_from_slice(&digest[..N]);
    // An id of zeros is invalid.
    if id == [0; N] {
        id[0] = 1;
    }
    id
}

#[cfg(test)]
mod tests {
    use super::{TraceId, uuid};

    #[test]
    fn a_key_that_is_a_uuid_is_the_trace() {
        let of = |key: &str| TraceId::of(&[7; 32], &key.parse().expect(key)).digits();
        let id = "5a1c7e900b2d4f389c64d07e1f2a3b4c";
        assert_eq!(of("5a1c7e90-0b2d-4f38-9c64-d07e1f2a3b4c"), id);
        assert_eq!(of("5A1C7E90-0B2D-4F38-9C64-D07E1F2A3B4C"), id);
        assert_eq!(of(id), id);
        assert_ne!(of("87"), of("88"));
        assert_ne!(of("00000000-0000-0000-0000-000000000000"), "0".repeat(32));
        assert_eq!(of("87").len(), 32);
    }

    #[test]
    fn what_only_looks_like_a_uuid_is_none() {
        for text in [
            "",
            "87",
            "5a1c7e90-0b2d-4f38-9c64-d07e1f2a3b4",
            "5a1c7e900-b2d-4f38-9c64-d07e1f2a3b4c",
            "+a1c7e90-0b2d-4f38-9c64-d07e1f2a3b4c",
            "ga1c7e900b2d4f389c64d07e1f2a3b4c",
        ] {
            assert_eq!(uuid(text), None, "{text}");
        }
    }

    #[test]
    fn spans_differ_by_handoff_and_part() {
        let trace = TraceId::of(&[7; 32], &"87".parse().expect("a key"));
        let ids = [
            trace.span(0, ""),
            trace.span(1, ""),
            trace.span(1, "0"),
            trace.span(1, "1"),
            trace.span(2, "0"),
        ];
        for (i, id) in ids.iter().enumerate() {
            assert_eq!(id.len(), 16);
            assert!(!ids[..i].contains(id));
        }
    }
}
