//! What peers may cost.

use zonelab_device::Nanos;

use crate::tcp::{self, Terms};

/// Data that an I/O connection may always hold, in bytes: small commands never
/// wait for the memory that others have.
pub const OWN_BYTES: u64 = 64 << 10;
/// What a connection may hold before it has shown that it may be there.
const STRANGER_BYTES: u64 = 4096;
/// Commands of a queue that has not authenticated itself. It needs one.
const STRANGER_COMMANDS: u16 = 8;
/// What a discovery connection may hold: its largest transfer.
const DISCOVERY_BYTES: u64 = crate::controller::DISCOVERY_TRANSFER_BYTES as u64;
/// Commands of a discovery connection.
const DISCOVERY_COMMANDS: u16 = 32;

/// How much data of commands may be in memory, in bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Of all connections.
    pub total_bytes: u64,
    /// Of all connections of a host.
    pub host_bytes: u64,
    /// Of a connection.
    pub connection_bytes: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            total_bytes: 512 << 20,
            host_bytes: 256 << 20,
            connection_bytes: 64 << 20,
        }
    }
}

/// A bound that is below what lies within it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("memory of {key} is {bytes} bytes; valid: at least {least} bytes, which {below} may have")]
pub struct MemoryError {
    /// Which.
    pub key: &'static str,
    /// Its value.
    pub bytes: u64,
    /// The least that is possible.
    pub least: u64,
    /// Of what that is the bound.
    pub below: &'static str,
}

impl Memory {
    /// Checks that each bound has room for the next smaller one: else a command
    /// could wait for ever.
    ///
    /// # Errors
    /// The first that has not.
    pub fn check(&self, transfer_bytes: u32) -> Result<(), MemoryError> {
        let chain = [
            (
                "a connection",
                self.connection_bytes,
                transfer_bytes.into(),
                "a command",
            ),
            (
                "a host",
                self.host_bytes,
                self.connection_bytes,
                "a connection",
            ),
            ("all hosts", self.total_bytes, self.host_bytes, "a host"),
        ];
        for (key, bytes, least, below) in chain {
            if bytes < least {
                return Err(MemoryError {
                    key,
                    bytes,
                    least,
                    below,
                });
            }
        }
        Ok(())
    }
}

/// What peers may cost.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most connections at a time.
    pub connections: usize,
    /// Most connections of an address (of IPv6, of a /64) at a time.
    pub address_connections: usize,
    /// Most connections of a host, by its NQN, at a time. Of the last eighth of all places a
    /// host gets one only if it has fewer than three.
    pub host_connections: usize,
    /// Most connections at a time that have not shown that they may be there, or
    /// are of discovery. One of them makes room for a new one.
    pub strangers: usize,
    /// Most of them of an address.
    pub address_strangers: usize,
    /// Time from the connection to a Connect command that succeeded.
    pub handshake: Nanos,
    /// A peer that owes data, or does not take what it is sent, has to move
    /// [`Limits::least_bytes_per_s`] over this time.
    pub stall: Nanos,
    /// See [`Limits::stall`].
    pub least_bytes_per_s: u64,
    /// Time that a peer has to close its side after the last PDU.
    pub linger: Nanos,
    /// When the server ends: time for commands that the drive works on, and for their answers.
    /// Hosts then have up to a second more to close their connections.
    pub drain: Nanos,
    /// Data of commands.
    pub memory: Memory,
    /// Diffie-Hellman calculations of an address in a row; after that as many
    /// in four seconds.
    pub calculations: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            address_connections: 128,
            host_connections: 128,
            strangers: 64,
            address_strangers: 32,
            handshake: Nanos::from_secs(10),
            stall: Nanos::from_secs(30),
            least_bytes_per_s: 1024,
            linger: Nanos::from_secs(2),
            drain: Nanos::from_secs(10),
            memory: Memory::default(),
            calculations: 64,
        }
    }
}

/// What the server knows of who is at the other end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: it has no queue, or one that waits for authentication.
    Stranger,
    /// It asks where the subsystem is, which anybody may.
    Discovery,
    /// It is a host that may use the drive.
    Host,
}

impl Limits {
    /// What a connection of that standing may hold.
    pub(super) fn terms(&self, standing: Standing, settings: &tcp::Settings) -> Terms {
        let bounded = |commands, bytes| Terms {
            commands,
            bytes,
            own_bytes: bytes,
            receive_bytes: STRANGER_BYTES as u32,
        };
        match standing {
            Standing::Stranger => bounded(STRANGER_COMMANDS, STRANGER_BYTES),
            Standing::Discovery => bounded(DISCOVERY_COMMANDS, DISCOVERY_BYTES),
            Standing::Host => Terms {
                commands: u16::MAX,
                bytes: self.memory.connection_bytes,
                own_bytes: OWN_BYTES.min(self.memory.connection_bytes),
                receive_bytes: settings.receive_bytes,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_below_what_it_holds_is_named() {
        let memory = Memory::default();
        assert_eq!(memory.check(1 << 20), Ok(()));
        let small = Memory {
            host_bytes: memory.connection_bytes - 1,
            ..memory
        };
        let error = small.check(1 << 20).unwrap_err();
        assert_eq!(
            (error.key, error.least),
            ("a host", memory.connection_bytes)
        );
        assert!(memory.check(u32::MAX).is_err());
    }
}
