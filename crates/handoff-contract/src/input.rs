//! A contract as given, parsed only once.

use handoff_base::finding::Finding;

use super::source::Source;
use super::wrapping::unwrapped;

/// A document given as a contract: its bytes, and the result of the strict parse.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
    source: Result<Source, Vec<Finding>>,
}

impl<'a> Input<'a> {
    /// Parses a document like [`Source::parse`]. If it can't be parsed, the findings are kept
    /// instead, because other faults may have to be reported first.
    pub fn read(bytes: &'a [u8]) -> Self {
        let bytes = unwrapped(bytes);
        let source = Source::parse(bytes);
        Self { bytes, source }
    }

    /// The contract's bytes, without its wrapping (byte order mark, code fence).
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The parsed document.
    ///
    /// # Errors
    /// The findings, if it can't be parsed.
    pub fn source(&self) -> Result<&Source, &[Finding]> {
        self.source.as_ref().map_err(Vec::as_slice)
    }
}
