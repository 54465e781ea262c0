//! Fuzzing: each reader of foreign bytes, a file for each.
//!
//! A target is a function of bytes that panics where a promise is broken: what is accepted is read
//! the same by a second reader, and what is written and read again is equal. The tests run it on
//! mutants of samples. tests/fuzz has libFuzzer look for bytes that reach new code, with the samples
//! as its corpus and the words as its dictionary.

mod contracts;
mod event;
mod http;
mod mcp;
#[cfg(test)]
mod mutator;
mod protocol;
mod records;
mod second_reader;
mod signers;

use std::fs;
use std::path::{Path, PathBuf};

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What a reader may take for a mutant, in bytes.
const MOST_BYTES: usize = 256 << 20;

type Check = dyn Fn(&[u8]);

/// A reader, and what to start from.
pub(crate) struct Target {
    samples: Vec<Vec<u8>>,
    /// Words of its format.
    words: &'static [&'static str],
    check: Box<Check>,
}

/// The target of this name.
#[cfg_attr(test, allow(dead_code, reason = "tests/fuzz chooses by name"))]
pub(crate) fn named(name: &str) -> Option<Target> {
    Some(match name {
        "event" => event::target(),
        "http" => http::target(),
        "json" => contracts::json(),
        "markdown" => contracts::markdown(),
        "mcp" => mcp::target(),
        "protocol" => protocol::target(),
        "records" => records::target(),
        "signers" => signers::target(),
        "xml" => contracts::xml(),
        _ => return None,
    })
}

impl Target {
    /// Reads bytes, within what that may take.
    pub(crate) fn step(&self, bytes: &[u8]) {
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        (self.check)(bytes);
        let taken = MEMORY.peak_usage().saturating_sub(before);
        assert!(taken <= MOST_BYTES, "it takes {taken} bytes");
    }

    /// Writes the samples into a folder, and the words next to it as libFuzzer's dictionary.
    #[cfg_attr(test, allow(dead_code, reason = "tests/fuzz needs files"))]
    pub(crate) fn write_samples(&self, folder: &Path) {
        for (number, sample) in self.samples.iter().enumerate() {
            fs::write(folder.join(format!("sample-{number}")), sample).unwrap();
        }
        let quoted = self.words.iter().map(|word| {
            let bytes = word.bytes().map(|byte| format!("\\x{byte:02x}"));
            format!("\"{}\"\n", bytes.collect::<String>())
        });
        fs::write(folder.with_extension("dict"), quoted.collect::<String>()).unwrap();
    }
}

/// The files below a folder of the repository.
fn files(folder: &str, wanted: impl Fn(&Path) -> bool) -> Vec<Vec<u8>> {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let root = above.find(|above| above.join(folder).is_dir()).unwrap();
    let mut folders = vec![root.join(folder)];
    let mut found: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if wanted(&path) {
                found.push(path);
            }
        }
    }
    // The same in every run.
    found.sort();
    assert!(!found.is_empty(), "{folder}");
    found.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// The samples in tests/it_proof/corpus.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    files(&format!("tests/it_proof/corpus/{name}"), |_| true)
}

/// Tries a target's samples and mutants of them.
#[cfg(test)]
fn prove(name: &'static str, target: &Target) {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::{Duration, Instant};

    use test_support::dice::Dice;
    use test_support::proof::Proof;

    /// How many mutants the short form tries.
    const MUTANTS: u64 = 300;
    const MOST_TIME: Duration = Duration::from_secs(1);

    let mutator = mutator::Mutator {
        samples: &target.samples,
        words: target.words,
    };
    for sample in target.samples.iter().take(50) {
        target.step(sample);
    }
    let mut proof = Proof::new(name, MUTANTS);
    let mut mutants = 0;
    while let Some(seed) = proof.case() {
        let mutant = mutator.mutant(&mut Dice::new(seed));
        let started = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| target.step(&mutant)));
        let taken = started.elapsed();
        if outcome.is_err() || proof.is_long() && taken > MOST_TIME {
            let file = std::env::temp_dir().join(format!("{name}-{seed}"));
            fs::write(&file, &mutant).unwrap();
            let shown = String::from_utf8_lossy(&mutant[..mutant.len().min(2_000)]);
            panic!("seed {seed}, {taken:?}, in {}:\n{shown}", file.display());
        }
        mutants += 1;
    }
    proof.passed(&[("mutants", mutants)]);
}
