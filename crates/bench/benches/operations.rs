//! `cargo bench`: simulated operations per second, end to end, beside the
//! yardstick (see `zonelab_bench`). The same cases as `zonelab bench`,
//! with criterion's statistics; a run of a case is one iteration.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use zonelab_bench::{cases, yardstick};

/// Operations of one iteration.
const OPERATIONS: u64 = 50_000;

fn operations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("operations");
    group
        .throughput(Throughput::Elements(OPERATIONS))
        .sample_size(20);
    group.bench_function("yardstick/qd32", |bencher| {
        bencher.iter(|| yardstick(OPERATIONS, 32))
    });
    for case in cases() {
        group.bench_function(&case.name, |bencher| {
            bencher.iter_batched(
                || case.prepare(OPERATIONS),
                |prepared| prepared.run(),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, operations);
criterion_main!(benches);
