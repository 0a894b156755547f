//! `cargo bench -p zonelab-kv`: operations per second of the mix of KVBench-II on a
//! drive without data, and what the store made of them.
//!
//! 50 % inserts, 10 % deletes, 15 % point queries, 25 % updates; values of 1,000
//! bytes, keys of 24. `ZONELAB_KV_OPERATIONS` sets their number, 4 million otherwise.

use zonelab_device::Nanos;
use zonelab_host::clock::{Clock, RealClock, VirtualClock};
use zonelab_host::tasks::{Io, Tasks, TasksConfig};
use zonelab_host::{CoreId, Reactor, Rng, StopSignal};
use zonelab_kv::files::{Files, FilesConfig, Usage};
use zonelab_kv::lsm::{Db, DbError, DbStats, Options, Value};
use zonelab_sim::{Emulated, HostCosts};
use zonelab_ssd::{Drive, profile};

struct Outcome {
    stats: DbStats,
    usage: Usage,
    at: Nanos,
}

async fn kvbench(io: Io, operations: u64) -> Result<Outcome, DbError> {
    let config = FilesConfig {
        finish_threshold_percent: 10,
        ..FilesConfig::default()
    };
    let files = Files::format(&io, config).await?;
    let options = Options {
        keeps_data: false,
        key_padding: 16,
        ..Options::default()
    };
    let db = Db::open(&io, &files, options).await?;
    let mut rng = Rng::new(1, 0);
    let key_of = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let mut inserted = 0;
    for _ in 0..operations {
        let old = key_of(rng.below(inserted.max(1)));
        match rng.below(100) {
            0..50 => {
                db.put(&key_of(inserted), Value::Sized(1_000)).await?;
                inserted += 1;
            }
            50..60 => db.delete(&old).await?,
            60..75 => drop(db.get(&old).await?),
            _ => db.put(&old, Value::Sized(1_000)).await?,
        }
    }
    db.flush().await?;
    db.idle().await?;
    let stats = db.stats();
    db.close().await?;
    Ok(Outcome {
        stats,
        usage: files.usage(),
        at: io.now(),
    })
}

fn main() {
    let operations = std::env::var("ZONELAB_KV_OPERATIONS");
    let operations = operations.map_or(4_000_000, |text| text.parse().expect("a number"));
    let profile = profile::builtin("confznspp").expect("it is built in");
    let info = Drive::info_of(&profile.config);
    let device = Emulated::new(Drive::new(&profile.config));
    let queue = device.open_queue(64, HostCosts::FREE, Rng::new(1, 0));
    let clock = RealClock::new();
    let start = clock.now();
    let mut tasks = Tasks::new(&info, TasksConfig::default(), |io| kvbench(io, operations));
    let mut reactor = Reactor::new(VirtualClock::default(), device, StopSignal::default());
    reactor.add(&mut tasks, queue, CoreId(0), Nanos::ZERO);
    reactor.run();
    let took = (clock.now() - start).0 as f64 / 1e9;
    match tasks.into_result() {
        Some(Ok(outcome)) => print(&outcome, operations, took),
        Some(Err(error)) => println!("failed: {error}"),
        None => println!("stuck"),
    }
}

fn print(Outcome { stats, usage, at }: &Outcome, operations: u64, took: f64) {
    let rate = operations as f64 / took;
    println!("{operations} operations in {took:.2} s: {rate:.0} per second");
    let mib = |bytes: u64| bytes >> 20;
    println!(
        "virtual time {:.3} s, stalled {:.3} s, write amplification {:.2}, blocks per get {:.2}",
        at.0 as f64 / 1e9,
        stats.stall_time().0 as f64 / 1e9,
        stats.write_amplification(),
        stats.read_amplification(),
    );
    println!(
        "gets {} found {}, cache {:?}",
        stats.gets, stats.gets_found, stats.block_cache
    );
    for (level, of) in stats.levels.iter().enumerate() {
        println!(
            "level {level}: {} files, {} MiB; {} compactions, read {} + {} MiB, wrote {} MiB, \
             {} of {} entries dropped, {} moved",
            of.files,
            mib(of.bytes),
            of.compactions,
            mib(of.read_upper_bytes),
            mib(of.read_bytes),
            mib(of.written_bytes),
            of.entries_dropped,
            of.entries_in,
            of.trivial_moves,
        );
    }
    println!(
        "device: {} MiB written, {} MiB invalid, {} finishes, {} resets",
        mib(usage.written_bytes),
        mib(usage.invalid_bytes),
        usage.finishes,
        usage.resets,
    );
}
