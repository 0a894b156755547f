//! Key-value stores and their files on drives whose contents are damaged or forged.
//!
//! A drawn store, or drawn files, are written through their front door. Then
//! bytes are changed: those of the store's files (log, manifest, tables), or
//! the blocks of the metadata log. What must hold:
//!
//! * One bit that was flipped is seen, or is of no consequence: every answer is
//!   an error or the one that it was before. In the metadata log the last batch
//!   may be missing as well: it looks like one that power was lost in.
//! * What is forged, checksums and all, is refused with a reason, or is a store
//!   that takes and gives back writes: no panic, no end of memory, no endless loop.

mod files;
mod forge;
mod store;

use std::future::Future;

use zonelab_device::Nanos;
use zonelab_host::tasks::{Io, Tasks, TasksConfig};
use zonelab_host::{CoreId, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_kv::files::FilesConfig;
use zonelab_sim::{Emulated, HostCosts};
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::{Drive, profile};

use crate::draw::Draw;

/// The target.
///
/// # Panics
/// Something is wrong.
pub fn run(data: &[u8]) {
    let mut draw = Draw::new(data);
    match draw.one_in(3) {
        true => files::run(&mut draw),
        false => store::run(&mut draw),
    }
}

/// A drive of 48 zones of 512 KiB that keeps data.
fn small_drive() -> DriveConfig {
    let mut config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    config.data = DataStore::Memory;
    config.geometry.pages_per_block = 4;
    config.geometry.blocks_per_plane = 256;
    config.zones.count = 48;
    config.zones.capacity_lbas = 128;
    config.zones.size_lbas = 128;
    config.zones.max_active = None;
    config.zones.max_open = None;
    config
}

fn files_config() -> FilesConfig {
    FilesConfig {
        keeps_data: true,
        io_bytes: 64 << 10,
        ..FilesConfig::default()
    }
}

/// A drive, and the time on it.
struct Machine {
    device: Emulated,
    now: Nanos,
}

impl Machine {
    fn new() -> Self {
        Self {
            device: Emulated::new(Drive::new(&small_drive())),
            now: Nanos::ZERO,
        }
    }

    /// Runs a program to its end.
    fn run<T: 'static, F: Future<Output = T> + 'static>(
        &mut self,
        main: impl FnOnce(Io) -> F,
    ) -> T {
        let info = self.device.info().clone();
        let queue = self.device.open_queue(64, HostCosts::FREE, Rng::new(1, 0));
        let mut tasks = Tasks::new(&info, TasksConfig::default(), main);
        let clock = VirtualClock::default();
        let mut reactor = Reactor::new(clock, self.device.clone(), StopSignal::default());
        reactor.add(&mut tasks, queue, CoreId(0), self.now);
        let end = reactor.run();
        assert_eq!(end.stuck_jobs, 0, "the program waits for nothing");
        self.now = end.at.max(self.now);
        tasks
            .into_result()
            .expect("a program that ended has a result")
    }
}

/// A store of bytes in place of others.
fn set(bytes: &mut [u8], at: usize, value: &[u8]) {
    for (byte, value) in bytes.iter_mut().skip(at).zip(value) {
        *byte = *value;
    }
}

/// One bit, anywhere. Returns where.
fn flip(bytes: &mut [u8], draw: &mut Draw<'_>) -> usize {
    let at = draw.int(0..=bytes.len() - 1);
    bytes[at] ^= 1 << draw.int(0..=7_u8);
    at
}

/// A number of a drawn width that means something somewhere.
fn overwrite(bytes: &mut [u8], draw: &mut Draw<'_>) {
    let at = draw.int(0..=bytes.len() - 1);
    let value = draw.wide().to_le_bytes();
    let len = draw.pick(&[1, 2, 4, 8]);
    set(bytes, at, &value[..len]);
}
