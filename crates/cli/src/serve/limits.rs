//! Options about what peers may cost.

use rustix::process::{Resource, getrlimit};
use zonelab_config::units::parse_size;
use zonelab_target::server::{self, Limits, Memory};
use zonelab_target::tcp;

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
    /// Most data of commands in memory, of all hosts [default: 512MiB, or an eighth of what
    /// is shared out if that is less: see docs/serve.md]
    #[arg(long, value_name = "SIZE")]
    max_memory: Option<String>,
    /// Most data of commands in memory, of a host [default: 256MiB, or as all hosts]
    #[arg(long, value_name = "SIZE")]
    max_memory_per_host: Option<String>,
    /// Most data of commands in memory, of a connection; at least 1MiB, which a
    /// command may have [default: 64MiB, or as a host]
    #[arg(long, value_name = "SIZE")]
    max_memory_per_connection: Option<String>,
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
/// Descriptors that the server needs for itself: of its store, logs, sockets and loop.
const OWN_DESCRIPTORS: u64 = 24;
/// Those of a connection with TLS: its socket, and both ends of what leads to the server.
const TLS_DESCRIPTORS: u64 = 3;
/// What a command takes without its data, in the connection, the controller and the drive.
const COMMAND_BYTES: u64 = 512;
/// What TLS takes for a connection.
const TLS_BYTES: u64 = 128 << 10;

/// Most memory that a connection takes, without what it shares with others.
pub(super) fn connection_bytes(tcp: &tcp::Settings, has_tls: bool) -> u64 {
    let commands = u64::from(tcp.queue_depth) * COMMAND_BYTES;
    let tls = if has_tls { TLS_BYTES } else { 0 };
    u64::from(tcp.receive_bytes) + server::OWN_BYTES + commands + tls
}

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

    /// Cuts connections down to what the process may have descriptors for, beside those of
    /// `clients` and its own.
    ///
    /// # Errors
    /// Not even a host can connect.
    pub(super) fn fit_descriptors(&mut self, clients: u64, has_tls: bool) -> Result<(), Failure> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let open = std::fs::read_dir("/proc/self/fd").map_or(3, Iterator::count) as u64;
        let each = if has_tls { TLS_DESCRIPTORS } else { 1 };
        let kept = open + OWN_DESCRIPTORS + clients;
        let most = limit.saturating_sub(kept) / each;
        if most >= u64::from(self.max_connections) {
            return Ok(());
        }
        if most < FOR_A_HOST as u64 {
            let least = kept + each * FOR_A_HOST as u64;
            return Err(Failure::environment(anyhow::anyhow!(
                "this process may have {limit} descriptors (ulimit -n), and needs {least} to serve \
                 a host"
            )));
        }
        tell!(
            "zonelab: {most} connections at a time instead of {}: this process may have {limit} \
             descriptors (ulimit -n)",
            self.max_connections
        );
        self.max_connections = u32::try_from(most).unwrap_or(u32::MAX);
        Ok(())
    }

    /// The bounds of memory, if this process may have `available` bytes. Those that no
    /// option names follow from that, and from those that one names.
    ///
    /// # Errors
    /// An option is none.
    pub(super) fn memory(
        &self,
        available: Option<u64>,
        transfer_bytes: u32,
    ) -> Result<Memory, Failure> {
        let size = |option: &str, text: &Option<String>| {
            let parsed = text.as_deref().map(parse_size).transpose();
            parsed.map_err(|problem| Failure::usage(format!("{option}: {problem}")))
        };
        let total = size("--max-memory", &self.max_memory)?;
        let host = size("--max-memory-per-host", &self.max_memory_per_host)?;
        let connection = size(
            "--max-memory-per-connection",
            &self.max_memory_per_connection,
        )?;
        let named = host.max(connection).unwrap_or(0);
        let least = named.max(transfer_bytes.into());
        let usual = available.map_or(u64::MAX, |bytes| bytes / 8);
        let total_bytes = total.unwrap_or_else(|| usual.min(512 << 20).max(least));
        let least = connection.unwrap_or(0).max(transfer_bytes.into());
        let host_bytes = host.unwrap_or_else(|| total_bytes.min(256 << 20).max(least));
        Ok(Memory {
            total_bytes,
            host_bytes,
            connection_bytes: connection.unwrap_or_else(|| host_bytes.min(64 << 20)),
        })
    }

    /// The limits that they say, if this process may have `available` bytes of memory.
    ///
    /// # Errors
    /// An option is none.
    pub(super) fn limits(
        &self,
        available: Option<u64>,
        transfer_bytes: u32,
    ) -> Result<Limits, Failure> {
        let connections = self.max_connections as usize;
        let most = self.max_connections_per_address.map(|most| most as usize);
        let half = connections.div_ceil(2).max(FOR_A_HOST);
        let strangers = (connections / 4).max(1);
        let memory = self.memory(available, transfer_bytes)?;
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        limits: LimitArgs,
    }

    #[test]
    fn bounds_of_memory_fit_into_what_there_is() {
        let mib = 1 << 20;
        let gib = 1 << 30;
        for (options, available, bounds) in [
            (&[][..], None, [512, 256, 64]),
            (&[], Some(64 * gib), [512, 256, 64]),
            (&[], Some(gib), [128, 128, 64]),
            (&[], Some(256 * mib), [32, 32, 32]),
            (&[], Some(0), [1, 1, 1]),
            (&["--max-memory=2GiB"], Some(256 * mib), [2048, 256, 64]),
            (&["--max-memory-per-host=100MiB"], Some(0), [100, 100, 64]),
            (&["--max-memory-per-connection=2MiB"], Some(0), [2, 2, 2]),
        ] {
            let line = [&["serve"], options].concat();
            let line = Line::try_parse_from(line).unwrap_or_else(|error| panic!("{error}"));
            let memory = line
                .limits
                .memory(available, 1 << 20)
                .unwrap_or_else(|failure| panic!("{options:?}: {}", failure.error));
            let found = [
                memory.total_bytes,
                memory.host_bytes,
                memory.connection_bytes,
            ];
            assert_eq!(
                found,
                bounds.map(|of| of * mib),
                "{options:?} {available:?}"
            );
            assert!(memory.check(1 << 20).is_ok(), "{options:?} {available:?}");
        }
    }
}
