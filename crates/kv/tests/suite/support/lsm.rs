//! Random operations on a store, and its settings.

use zonelab_host::Rng;
use zonelab_kv::lsm::{CpuCosts, Options, WalSync};
use zonelab_ssd::config::{DriveConfig, MappingConfig};

/// What a client does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Key, length of the value, and what its bytes are made of.
    Put(Vec<u8>, u32, u64),
    Delete(Vec<u8>),
    Get(Vec<u8>),
    Scan(Vec<u8>, usize),
    Sync,
    Flush,
    Reopen,
}

impl Op {
    /// Operations on so few keys that they meet. Each run has its own weights.
    pub(crate) fn draw_many(rng: &mut Rng, count: u64) -> Vec<Self> {
        let keys = 1 + rng.below(400);
        let len_max = [10, 200, 2_000][rng.below(3) as usize];
        let mut weights = [40, 15, 20, 2, 2, 1, 1].map(|most| rng.below(most + 1));
        weights[0] += 1;
        (0..count)
            .map(|id| {
                let key = key_of(rng.below(keys));
                match pick(rng, &weights) {
                    0 => Self::Put(key, rng.below(len_max) as u32, id),
                    1 => Self::Delete(key),
                    2 => Self::Get(key),
                    3 => Self::Scan(key, 1 + rng.below(100) as usize),
                    4 => Self::Sync,
                    5 => Self::Flush,
                    _ => Self::Reopen,
                }
            })
            .collect()
    }
}

fn pick(rng: &mut Rng, weights: &[u64]) -> usize {
    let mut at = rng.below(weights.iter().sum());
    for (index, weight) in weights.iter().enumerate() {
        match at.checked_sub(*weight) {
            Some(rest) => at = rest,
            None => return index,
        }
    }
    unreachable!("it is below the sum")
}

/// Keys of several lengths, some of which begin with others.
pub(crate) fn key_of(number: u64) -> Vec<u8> {
    let mut key = b"key".to_vec();
    key.extend_from_slice(number.to_string().as_bytes());
    if number.is_multiple_of(7) {
        key.extend_from_slice(&[0; 9]);
    }
    key
}

/// A value that says which one it is.
pub(crate) fn value_of(id: u64, len: u32) -> Vec<u8> {
    id.to_le_bytes()
        .into_iter()
        .cycle()
        .take(len as usize)
        .collect()
}

/// A small drive that has room for files of a few blocks in zones of their own.
pub(crate) fn roomy() -> DriveConfig {
    let mut config = super::small();
    config.zones.count = 96;
    config
}

/// The same of any design, with enough zones at a time for the log, the
/// manifest, a flush and a compaction.
pub(crate) fn any_roomy(rng: &mut Rng) -> DriveConfig {
    let mut config = super::any_small(rng);
    let zones = &mut config.zones;
    zones.count = roomy().zones.count;
    zones.max_active = zones.max_active.map(|most| most.max(6));
    zones.max_open = zones.max_open.map(|most| most.max(6));
    if let MappingConfig::Lazy { physical_zones } = &mut config.mapping {
        *physical_zones = zones.count + 4;
    }
    config
}

/// Settings of a store that fits a small drive, and does everything often.
pub(crate) fn any_options(rng: &mut Rng) -> Options {
    let mut draw = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
    Options {
        write_buffer_size: draw(&[1, 4, 16, 40]) << 10,
        max_write_buffer_number: draw(&[1, 2, 4]) as usize,
        level0_file_num_compaction_trigger: draw(&[1, 2, 4]) as usize,
        level0_slowdown_writes_trigger: draw(&[4, 6]) as usize,
        level0_stop_writes_trigger: draw(&[6, 8]) as usize,
        target_file_size_base: draw(&[4, 16, 40]) << 10,
        max_bytes_for_level_base: draw(&[16, 64]) << 10,
        max_bytes_for_level_multiplier: draw(&[2, 4]),
        num_levels: draw(&[3, 5, 7]) as usize,
        max_compaction_bytes: draw(&[0, 32 << 10]),
        block_size: draw(&[64, 512, 4_096]) as usize,
        bloom_bits_per_key: draw(&[0, 3, 10]) as u32,
        block_cache_bytes: draw(&[0, 8 << 10, 1 << 20]),
        max_background_jobs: draw(&[1, 2, 4]) as usize,
        compaction_readahead_size: draw(&[0, 8 << 10, 2 << 20]),
        compaction_async_io: draw(&[0, 1]) == 1,
        max_auto_readahead_size: draw(&[0, 64 << 10]),
        wal_buffer_bytes: draw(&[0, 1 << 10, 64 << 10]),
        wal_sync: match draw(&[0, 0, 0, 1, 2]) {
            1 => WalSync::EachWrite,
            2 => WalSync::EveryBytes(5_000),
            _ => WalSync::OnDemand,
        },
        costs: match draw(&[0, 1]) {
            0 => CpuCosts::FREE,
            _ => CpuCosts::default(),
        },
        ..Options::default()
    }
}
