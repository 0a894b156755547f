//! `cargo bench allocation`: time to choose the storage elements of a zone, of
//! a drive with 100,000. The same cases as `zonelab bench allocation`, with
//! criterion's statistics; the elements of half a drive are one iteration.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use zonelab_bench::{DriveWear, allocation_cases};

const ELEMENTS: u32 = 100_000;

fn allocation(criterion: &mut Criterion) {
    for case in allocation_cases() {
        let mut group = criterion.benchmark_group(case.name);
        for (name, wear) in [("fresh", DriveWear::Fresh), ("worn", DriveWear::Skewed)] {
            let fresh = case.prepare(ELEMENTS, wear, None);
            let zones = fresh.clone().allocate_half();
            // An element of throughput is a zone.
            group
                .throughput(Throughput::Elements(zones))
                .sample_size(20)
                .bench_function(name, |bencher| {
                    bencher.iter_batched(
                        || fresh.clone(),
                        |mut prepared| prepared.allocate_half(),
                        BatchSize::LargeInput,
                    );
                });
        }
        group.finish();
    }
}

criterion_group!(benches, allocation);
criterion_main!(benches);
