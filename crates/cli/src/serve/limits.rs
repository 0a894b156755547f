//! Options about what peers may cost.

use zonelab_config::units::parse_size;
use zonelab_target::server::{Limits, Memory};

use super::duration;
use crate::exit::Failure;

/// Options about what peers may cost.
#[derive(clap::Args)]
pub(super) struct LimitArgs {
    /// Most connections at a time; a host needs two, for its admin queue and a queue for I/O
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = count)]
    max_connections: u32,
    /// Most connections of an address at a time [default: half of all, at least 2]
    #[arg(long, value_name = "N", value_parser = count)]
    max_connections_per_address: Option<u32>,
    /// Most data of commands in memory, of all hosts
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    max_memory: String,
    /// Most data of commands in memory, of a host
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    max_memory_per_host: String,
    /// Most data of commands in memory, of a connection; at least 1MiB, which a
    /// command may have
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    max_memory_per_connection: String,
    /// Let go who owes data, or does not take what it is sent, and moves less
    /// than 1 KiB/s for this long
    #[arg(long, value_name = "TIME", default_value = "30s")]
    stall: String,
    /// When the server ends: the longest that commands which the drive works on may take, and
    /// their answers; 0s ends at once
    #[arg(long, value_name = "TIME", default_value = "10s")]
    drain: String,
}

/// The least connections that are of use.
const FOR_A_HOST: usize = 2;

fn count(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| *count <= 65536);
    match count {
        None => Err("2 to 65536 is valid".to_owned()),
        Some(0 | 1) => Err(
            "a host needs two connections, for its admin queue and a queue for I/O: 2 to 65536 \
             is valid"
                .to_owned(),
        ),
        Some(count) => Ok(count),
    }
}

impl LimitArgs {
    /// Most connections at a time.
    pub(super) const fn connections(&self) -> u32 {
        self.max_connections
    }

    /// The limits that they say.
    ///
    /// # Errors
    /// An option is none.
    pub(super) fn limits(&self, transfer_bytes: u32) -> Result<Limits, Failure> {
        let connections = self.max_connections as usize;
        let most = self.max_connections_per_address.map(|most| most as usize);
        let half = connections.div_ceil(2).max(FOR_A_HOST);
        let strangers = (connections / 4).max(1);
        let size = |option: &str, text: &str| {
            parse_size(text).map_err(|problem| Failure::usage(format!("{option}: {problem}")))
        };
        let memory = Memory {
            total_bytes: size("--max-memory", &self.max_memory)?,
            host_bytes: size("--max-memory-per-host", &self.max_memory_per_host)?,
            connection_bytes: size(
                "--max-memory-per-connection",
                &self.max_memory_per_connection,
            )?,
        };
        let checked = memory.check(transfer_bytes);
        checked.map_err(|error| Failure::usage(format!("--max-memory...: {error}")))?;
        Ok(Limits {
            connections,
            address_connections: most.unwrap_or(half),
            // Who lets an address have more lets its hosts.
            host_connections: half.max(most.unwrap_or(0)),
            strangers,
            address_strangers: strangers.div_ceil(2),
            stall: duration("--stall", &self.stall)?,
            drain: duration("--drain", &self.drain)?,
            memory,
            ..Limits::default()
        })
    }
}
