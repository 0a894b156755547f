//! What a controller offers a connection.

use zonelab_nvme::tcp::{Digests, MAX_PDA_Z, MIN_MAXH2CDATA};

/// When a command that reads gets its data with the success flag and no
/// response capsule.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum SuccessFlag {
    /// Never.
    Never,
    /// Where the host has disabled submission queue flow control: a response
    /// that is left out cannot carry a queue head.
    #[default]
    WithoutFlowControl,
    /// Always, as SPDK does. Hosts that do not look at the queue head, such as
    /// Linux, never miss it.
    Always,
}

/// What a controller offers a connection, and how much it lets it hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most data in a command capsule of an I/O queue, in bytes.
    pub in_capsule_bytes: u32,
    /// Most commands in flight of one queue, 1 to 65534.
    pub queue_depth: u16,
    /// Grant header and data digests to hosts that want them.
    pub digests: Digests,
    /// Alignment of data to the controller (CPDA), zero based in dwords, at most 31.
    pub cpda_z: u8,
    /// Most data of an H2CData PDU in bytes: a multiple of 4, at least 4096.
    pub maxh2cdata: u32,
    /// Most data of a command in bytes; what has more fails with Invalid Field.
    pub transfer_bytes: u32,
    /// Receive buffer in bytes, at least 1024.
    pub receive_bytes: u32,
    /// When reads end without a response capsule.
    pub success: SuccessFlag,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            in_capsule_bytes: 8192,
            queue_depth: 128,
            digests: Digests::default().with_hdgst(true).with_ddgst(true),
            cpda_z: 0,
            maxh2cdata: 1 << 20,
            transfer_bytes: 1 << 20,
            receive_bytes: 64 << 10,
            success: SuccessFlag::default(),
        }
    }
}

/// A setting outside what the protocol has room for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} is {value}; valid: {valid}")]
pub struct SettingsError {
    /// Which.
    pub key: &'static str,
    /// Its value.
    pub value: u64,
    /// What would be valid.
    pub valid: &'static str,
}

impl Settings {
    /// Checks them.
    ///
    /// # Errors
    /// The first that is outside what the protocol has room for.
    pub fn check(&self) -> Result<(), SettingsError> {
        let check = |is_valid, key, value, valid| {
            if is_valid {
                return Ok(());
            }
            Err(SettingsError { key, value, valid })
        };
        let depth = self.queue_depth;
        check(
            (1..u16::MAX).contains(&depth),
            "queue_depth",
            depth.into(),
            "1 to 65534",
        )?;
        let is_valid = self.maxh2cdata >= MIN_MAXH2CDATA && self.maxh2cdata.is_multiple_of(4);
        let valid = "a multiple of 4, at least 4096";
        check(is_valid, "maxh2cdata", self.maxh2cdata.into(), valid)?;
        check(
            self.cpda_z <= MAX_PDA_Z,
            "cpda_z",
            self.cpda_z.into(),
            "0 to 31",
        )?;
        let bytes = self.receive_bytes;
        check(
            bytes >= 1024,
            "receive_bytes",
            bytes.into(),
            "at least 1024",
        )
    }
}

/// What a peer may hold of the memory of the server. Its owner widens the terms
/// as it learns who the peer is, with [`Connection::set_terms`](super::Connection::set_terms).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Most commands at a time.
    pub commands: u16,
    /// Most data of all its commands together, in bytes. A command that has more
    /// fails; others wait until there is room.
    pub bytes: u64,
    /// As much of it is the connection's own; what is more is taken out of the
    /// room that the owner gives ([`Connection::set_room`](super::Connection::set_room)).
    pub own_bytes: u64,
    /// Bytes of the receive buffer, at least 1024.
    pub receive_bytes: u32,
}

impl Terms {
    /// No bound but that of the settings.
    #[must_use]
    pub const fn unbounded(settings: &Settings) -> Self {
        Self {
            commands: u16::MAX,
            bytes: u64::MAX,
            own_bytes: u64::MAX,
            receive_bytes: settings.receive_bytes,
        }
    }
}
