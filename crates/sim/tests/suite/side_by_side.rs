//! Zones that are written side by side on drives with a write buffer: what they get
//! depends neither on their numbers nor on when they were begun.

use zonelab_device::Nanos;
use zonelab_host::stats::OpKind;
use zonelab_host::workload::{JobSpec, Work, WorkloadJob, WriteWork};
use zonelab_host::{CoreId, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_sim::Emulated;
use zonelab_ssd::config::{DriveConfig, Placement};
use zonelab_ssd::{Drive, profile};

use super::support::{FREE, spec, writes};

/// Measured for so long.
const FOR: Nanos = Nanos::from_ms(300);

/// Writers with a zone each, `spacing` apart, one write of `block_lbas` at a time.
#[derive(Clone, Copy, Debug)]
struct Writers {
    count: u32,
    spacing: u32,
    block_lbas: u32,
    /// They start at random within 50 ms, and not together.
    apart: bool,
    /// Measured from then on, when the buffer is full if it will be.
    from: Nanos,
}

impl Writers {
    /// Writes per second of all of them.
    fn rate(self, config: &DriveConfig) -> f64 {
        let device = Emulated::new(Drive::new(config));
        let stop = StopSignal::default();
        let mut random = Rng::new(u64::from(self.spacing), u64::from(self.count));
        let starts: Vec<Nanos> = (0..self.count)
            .map(|_| {
                Nanos(if self.apart {
                    random.below(50_000_000)
                } else {
                    0
                })
            })
            .collect();
        let mut jobs: Vec<WorkloadJob> = (0..self.count)
            .zip(&starts)
            .map(|(n, start)| {
                let spec = self.spec(n, *start);
                WorkloadJob::new(spec, device.info(), Rng::new(1, 1), stop.clone())
            })
            .collect();
        let mut reactor = Reactor::new(VirtualClock::default(), device.clone(), stop);
        for ((n, job), start) in (0..).zip(&mut jobs).zip(starts) {
            let queue = device.open_queue(job.depth(), FREE, Rng::new(2, 2));
            reactor.add(job, queue, CoreId(n), start);
        }
        reactor.run();
        let bytes: u64 = jobs
            .into_iter()
            .map(|job| {
                job.into_result()
                    .recorder
                    .stats
                    .get(OpKind::Write)
                    .map_or(0, |of| of.bytes)
            })
            .sum();
        let writes = bytes / u64::from(self.block_lbas * config.lba_bytes);
        writes as f64 / (FOR.0 as f64 / 1e9)
    }

    fn spec(self, n: u32, start: Nanos) -> JobSpec {
        let zone = n * self.spacing;
        let mut spec = spec(Work::Write(WriteWork {
            repeat: true,
            ..writes(zone..zone + 1, self.block_lbas)
        }));
        spec.ramp = self.from - start;
        spec.stop.runtime = Some(FOR);
        spec
    }
}

fn builtin(name: &str) -> DriveConfig {
    profile::builtin(name).expect("it is built in").config
}

/// `counts` writers get the same within 3 % at all of `spacings`.
fn assert_same(
    config: &DriveConfig,
    (block_lbas, from): (u32, Nanos),
    counts: &[u32],
    spacings: &[u32],
) {
    for &count in counts {
        let mut rates = Vec::new();
        for &spacing in spacings {
            for apart in [false, true] {
                let writers = Writers {
                    count,
                    spacing,
                    block_lbas,
                    apart,
                    from,
                };
                rates.push((writers.rate(config), writers));
            }
        }
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        let ((least, slow), (most, fast)) = (rates[0], rates[rates.len() - 1]);
        assert!(
            least >= 0.97 * most,
            "{}: {least:.0}/s with {slow:?}, {most:.0}/s with {fast:?}",
            config.name
        );
    }
}

/// A buffer of 3.5 MiB is full by then, also that of two writers, which together
/// are little faster than the dies.
const FULL: Nanos = Nanos::from_ms(400);

#[test]
fn zone_numbers_and_starts_make_no_difference_on_the_zn540() {
    let counts: Vec<u32> = (1..=14).collect();
    let spacings = [1, 8, 27, 32, 63, 64];
    assert_same(&builtin("zn540"), (2, FULL), &counts, &spacings);
}

/// Blocks of 4 KiB: of 8 KiB, zones on the same half of its dies would get what those
/// have, and others more.
#[test]
fn zone_numbers_and_starts_make_no_difference_on_the_larger_zn540() {
    assert_same(
        &builtin("zn540-2tb"),
        (1, FULL),
        &[2, 7, 14],
        &[1, 2, 32, 63, 64],
    );
}

/// It has 340 zones only, and 64 MiB of buffer.
#[test]
fn zone_numbers_and_starts_make_no_difference_on_qlc() {
    let from = Nanos::from_ms(300);
    assert_same(
        &builtin("qlc-buffered"),
        (8, from),
        &[2, 7, 14],
        &[1, 16, 24],
    );
}

#[test]
fn a_fixed_order_of_dies_does_make_a_difference() {
    let mut config = builtin("zn540");
    let buffer = config.write_buffer.as_mut().expect("it has one");
    buffer.placement = Placement::InOrder;
    let rate = |spacing| {
        let writers = Writers {
            count: 7,
            spacing,
            block_lbas: 2,
            apart: false,
            from: FULL,
        };
        writers.rate(&config)
    };
    // A turn of the stripe is 32 zones of a die each.
    assert!(rate(32) < 0.6 * rate(8));
}
