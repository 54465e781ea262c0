//! A target of tests/it_proof/fuzz, driven by libFuzzer: `FUZZ_TARGET` names it, `FUZZ_CORPUS` the
//! folder to put its samples into, which libFuzzer's arguments name too.
#![no_main]
#![allow(clippy::unwrap_used)]

#[path = "../it_proof/fuzz/mod.rs"]
mod targets;

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use targets::Target;

thread_local! {
    static TARGET: Target = {
        let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names one");
        targets::named(&name).expect("FUZZ_TARGET names one")
    };
}

fuzz_target!(
    init: {
        if let Some(folder) = std::env::var_os("FUZZ_CORPUS") {
            TARGET.with(|target| target.write_samples(Path::new(&folder)));
        }
    },
    |bytes: &[u8]| TARGET.with(|target| target.step(bytes))
);
