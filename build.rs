//! Links the program at a fixed address on Linux: a third of its start-up was the relocation of
//! 23,000 pointers, in each process. `docs/security.md` says what that gives up;
//! `GIT_HANDOFF_RELOCATABLE=1` builds it otherwise.

const RELOCATABLE: &str = "GIT_HANDOFF_RELOCATABLE";

fn main() {
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let is_fixed = target("OS") == "linux" && target("ENV") == "gnu";
    if is_fixed && std::env::var_os(RELOCATABLE).is_none() {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rerun-if-env-changed={RELOCATABLE}");
    println!("cargo::rerun-if-changed=build.rs");
}
