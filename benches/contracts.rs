//! The cost of a handoff in process, without Git: checking, compiling a schema, planning.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use handoff::contract::{Format, Schema};
use handoff::templates::built_in;
use support::contracts::Stage;
use support::{Samples, Work};

fn check(c: &mut Criterion) {
    let samples = Samples::new();
    let mut group = c.benchmark_group("check");
    group.throughput(Throughput::Elements(1));
    for (name, format) in [("xml", Format::Xml), ("json", Format::Json)] {
        let text = samples.text(Stage::Review(1), 17, format);
        group.bench_function(name, |b| b.iter(|| samples.review(black_box(&text))));
    }
    group.finish();
}

fn compile(c: &mut Criterion) {
    let folder = built_in("issue-to-pr").unwrap();
    let file = "schemas/reviewer-agent-to-fixer-agent.schema.json";
    let schema = serde_json::from_slice(folder.file(file).unwrap()).unwrap();
    c.bench_function("compile", |b| {
        b.iter(|| Schema::compile_trusted(black_box(&schema)).unwrap())
    });
}

fn plan(c: &mut Criterion) {
    let mut work = Work::new();
    let mut group = c.benchmark_group("plan");
    group.throughput(Throughput::Elements(1));
    // Sends and claims alternate: sample, check, plan, write the records.
    group.bench_function("step", |b| b.iter(|| work.next_step()));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(4)).without_plots();
    targets = check, compile, plan
}
criterion_main!(benches);
