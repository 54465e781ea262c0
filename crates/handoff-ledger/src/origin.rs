//! Trailers for the origin of a step that was not made directly on the remote's state.

use handoff_base::ObjectFormat;

/// The trailer that names the offline commit that a step replaces.
pub(super) const SYNCED_FROM: &str = "Synced-From";

/// The trailer that makes an offline step unique: a random number.
pub(super) const MADE_OFFLINE: &str = "Made-Offline";

/// A commit's message without its last line, if that is the trailer `Synced-From` or
/// `Made-Offline`. `format` is the repository's.
pub(super) fn without_origin(message: &[u8], format: ObjectFormat) -> &[u8] {
    let Some(last) = message.strip_suffix(b"\n") else {
        return message;
    };
    let start = last
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |at| at + 1);
    let is_origin = |(name, digits): (&str, usize)| {
        let value = last[start..].strip_prefix(name.as_bytes());
        let value = value.and_then(|rest| rest.strip_prefix(b": "));
        let digit = |b: &u8| b.is_ascii_digit() || (b'a'..=b'f').contains(b);
        value.is_some_and(|value| value.len() == digits && value.iter().all(digit))
    };
    if [(SYNCED_FROM, 2 * format.id_bytes()), (MADE_OFFLINE, 16)]
        .into_iter()
        .any(is_origin)
    {
        &message[..start]
    } else {
        message
    }
}
