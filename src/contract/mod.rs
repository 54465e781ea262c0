//! The contract pipeline: bytes in, a checked value and findings out.
