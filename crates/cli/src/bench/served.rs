//! The drive that the benchmarks of the server and of its store have, and the
//! server.

use std::net::SocketAddr;

use anyhow::Result;
use zonelab_config::units::parse_size;
use zonelab_device::Nanos;
use zonelab_ssd::config::{DataStore, DriveConfig};
use zonelab_ssd::faults::FaultyDrive;
use zonelab_ssd::profile::{self, Profile};
use zonelab_target::controller::{Subsystem, SubsystemSettings, TransportLimits};
use zonelab_target::server::{Server, ServerSettings};
use zonelab_target::tcp;

use crate::exit::Failure;
use crate::serve::IN_CAPSULE;

/// The qualified name of what is served.
pub(super) const NQN: &str = "nqn.2024-01.io.github.zonelab:bench";

/// The drive: its times are taken away.
const DRIVE: &str = r#"
schema = 1
name = "bench"
[geometry]
channels = 4
ways = 2
blocks_per_plane = 128
pages_per_block = 64
page_size = "16KiB"
[namespace]
lba_size = "4KiB"
[zones]
count = 64
size = "16MiB"
capacity = "16MiB"
[media]
read = "60us"
program = "700us"
erase = "3.5ms"
transfer = "13us"
[finish]
design = "fill"
granularity = "64KiB"
[reset]
timing = "asynchronous"
"#;

/// The drive, without its times.
///
/// # Errors
/// None: the text above is a profile.
pub(super) fn drive() -> Result<DriveConfig, Failure> {
    let profile = Profile::parse("bench", DRIVE, &[]).map_err(Failure::input)?;
    Ok(DriveConfig {
        data: DataStore::Memory,
        ..profile::untimed(&profile.config)
    })
}

/// A server on the loopback that polls, where it listens, and what it serves.
///
/// # Errors
/// The system has no sockets to spare.
pub(super) fn server(drive: FaultyDrive) -> Result<(Server, SocketAddr, Subsystem)> {
    let defaults = tcp::Settings::default();
    let in_capsule = parse_size(IN_CAPSULE)?;
    let settings = ServerSettings {
        spin: Nanos::from_us(50),
        tcp: tcp::Settings {
            in_capsule_bytes: u32::try_from(in_capsule)?,
            ..defaults
        },
        ..ServerSettings::default()
    };
    let server = Server::bind(([127, 0, 0, 1], 0).into(), settings)?;
    let address = server.local_addr()?;
    let mut names = SubsystemSettings::new(NQN);
    names.limits = TransportLimits {
        in_capsule_bytes: settings.tcp.in_capsule_bytes,
        queue_depth: settings.tcp.queue_depth,
    };
    names.max_transfer_bytes = settings.tcp.transfer_bytes;
    Ok((server, address, Subsystem::new(drive, names)?))
}
