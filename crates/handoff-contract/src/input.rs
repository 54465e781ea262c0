//! A contract as it was given, which is parsed once on its way.

use handoff_base::finding::Finding;

use super::source::Source;

/// A document that is given as a contract: its bytes, and what the strict parse makes of them.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
    source: Result<Source, Vec<Finding>>,
}

impl<'a> Input<'a> {
    /// Parses a document, as [`Source::parse`] does. One that can't be parsed is an input too: what
    /// else speaks against it may come first.
    pub fn read(bytes: &'a [u8]) -> Self {
        let source = Source::parse(bytes);
        Self { bytes, source }
    }

    /// The document, byte for byte.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What was parsed.
    ///
    /// # Errors
    /// The findings, if it can't be parsed.
    pub fn source(&self) -> Result<&Source, &[Finding]> {
        self.source.as_ref().map_err(Vec::as_slice)
    }
}
