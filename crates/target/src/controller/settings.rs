//! What a subsystem is told about itself.

use std::net::IpAddr;

use zonelab_nvme::fabrics::DISCOVERY_NQN;
use zonelab_nvme::identify::{Ascii, Nqn};

/// Smallest memory page of a controller (CAP.MPSMIN 0), in bytes: the unit of
/// MDTS and ZASL.
pub(super) const PAGE_BYTES: u32 = 4096;
/// Least number of entries of an admin queue: a host may count on it
/// (base specification 2.0, section 3.3.1.1).
pub(super) const ADMIN_QUEUE_ENTRIES: u16 = 32;

/// Most data of a command to a discovery controller, in bytes: it has a log
/// page that is read in small pieces, and anybody may connect to it.
pub const DISCOVERY_TRANSFER_BYTES: u32 = 16 * PAGE_BYTES;

/// What a transport tells of itself, for Identify and for the discovery log.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TransportLimits {
    /// Most data in a command capsule of an I/O queue, in bytes (IOCCSZ says so).
    pub in_capsule_bytes: u32,
    /// Most commands in flight in one queue (MAXCMD, MQES).
    pub queue_depth: u16,
}

impl Default for TransportLimits {
    /// 8 KiB in a capsule, 128 commands.
    fn default() -> Self {
        Self {
            in_capsule_bytes: 8192,
            queue_depth: 128,
        }
    }
}

/// Where hosts find the subsystem: an entry of the discovery log.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryAddress {
    /// Address that the server listens on.
    pub address: IpAddr,
    /// TCP port.
    pub port: u16,
    /// TLS 1.3 is required there; else there is none.
    pub has_tls: bool,
}

/// What a [`Subsystem`](super::Subsystem) is called, whom it lets in, and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubsystemSettings {
    /// NVMe qualified name, at most 223 bytes. All identifiers of namespaces
    /// follow from it: the same name gives the same ones at every start.
    pub nqn: String,
    /// Serial number (SN): at most 20 printable ASCII characters.
    pub serial_number: String,
    /// Model number (MN): at most 40 printable ASCII characters.
    pub model_number: String,
    /// Firmware revision (FR): at most 8 printable ASCII characters.
    pub firmware_revision: String,
    /// Qualified names of the hosts that may connect; `None`: every host.
    pub allowed_hosts: Option<Vec<String>>,
    /// Controllers of one host are paths to the same namespaces (CMIC, NMIC).
    pub is_shared: bool,
    /// What the transport can do.
    pub limits: TransportLimits,
    /// Most I/O queues of a controller, at least 1.
    pub io_queues: u16,
    /// Most I/O controllers at a time, at least 1: an association needs one.
    pub controllers: u16,
    /// Most discovery controllers at a time, at least 1. They have places of
    /// their own, since anybody may have one.
    pub discovery_controllers: u16,
    /// Most data of one command in bytes, at least 4096. MDTS is the smaller of
    /// this and what the drive takes, rounded down to a power of two pages.
    pub max_transfer_bytes: u32,
    /// Entries of the discovery log.
    pub addresses: Vec<DiscoveryAddress>,
}

/// Why a subsystem cannot be made of its settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A name of a subsystem or of a host.
    #[error(
        "{key}: \"{value}\" is no NVMe qualified name: \"nqn.YYYY-MM.DOMAIN\" with the domain reversed, \":\" and any text after it, or \"nqn.2014-08.org.nvmexpress:uuid:\" and a UUID; at most 223 bytes; and not that of discovery"
    )]
    Nqn {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// Two entries for one host.
    #[error("host \"{0}\" is listed twice; valid: one entry for each host")]
    HostTwice(String),
    /// A rule for a host.
    #[error("host \"{host}\": {key}: {value}: {valid}")]
    Rule {
        /// The host.
        host: String,
        /// The key of its rule.
        key: &'static str,
        /// The value.
        value: String,
        /// What would be valid.
        valid: String,
    },
    /// A text that Identify cannot hold.
    #[error("{key}: \"{value}\" does not fit: up to {most} printable ASCII characters")]
    Text {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: String,
        /// Characters that fit.
        most: usize,
    },
    /// Reservations that were kept of an earlier drive.
    #[error(transparent)]
    Reservations(#[from] crate::reservations::Impossible),
    /// A number out of range.
    #[error("{key} is {value}, but must be {least} to {most}")]
    Number {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: u64,
        /// The least that is possible.
        least: u64,
        /// The most that is possible.
        most: u64,
    },
}

/// Texts and names in the layout of Identify.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    pub(super) subnqn: Nqn,
    pub(super) sn: Ascii<20>,
    pub(super) mn: Ascii<40>,
    pub(super) fr: Ascii<8>,
}

impl SubsystemSettings {
    /// Settings of a subsystem called `nqn` that any host may use: 16 I/O
    /// queues for each of at most 64 controllers, up to 1 MiB of data in a command.
    #[must_use]
    pub fn new(nqn: &str) -> Self {
        Self {
            nqn: nqn.to_owned(),
            serial_number: format!("{:016X}", super::names::hash(nqn.as_bytes(), 0)),
            model_number: "zonelab emulated drive".to_owned(),
            firmware_revision: env!("CARGO_PKG_VERSION").to_owned(),
            allowed_hosts: None,
            is_shared: false,
            limits: TransportLimits::default(),
            io_queues: 16,
            controllers: 64,
            discovery_controllers: 64,
            max_transfer_bytes: 1 << 20,
            addresses: Vec::new(),
        }
    }

    /// Whether a host of that name may connect.
    #[must_use]
    pub fn allows(&self, hostnqn: &str) -> bool {
        let Some(allowed) = &self.allowed_hosts else {
            return true;
        };
        allowed.iter().any(|name| name == hostnqn)
    }

    /// Checks everything, and gives the texts in the layout of Identify.
    pub(super) fn texts(&self) -> Result<Texts, SettingsError> {
        let subnqn = nqn("nqn", &self.nqn)?;
        for host in self.allowed_hosts.iter().flatten() {
            nqn("allowed_hosts", host)?;
        }
        number(
            "limits.queue_depth",
            self.limits.queue_depth.into(),
            2,
            4096,
        )?;
        number(
            "limits.in_capsule_bytes",
            self.limits.in_capsule_bytes.into(),
            0,
            1 << 20,
        )?;
        number("io_queues", self.io_queues.into(), 1, 1024)?;
        number("controllers", self.controllers.into(), 1, 0xffef)?;
        let discovery = self.discovery_controllers.into();
        number("discovery_controllers", discovery, 1, 0xffef)?;
        let all = u64::from(self.controllers) + discovery;
        number("controllers and discovery_controllers", all, 2, 0xffef)?;
        number(
            "max_transfer_bytes",
            self.max_transfer_bytes.into(),
            PAGE_BYTES.into(),
            1 << 28,
        )?;
        Ok(Texts {
            subnqn,
            sn: text("serial_number", &self.serial_number)?,
            mn: text("model_number", &self.model_number)?,
            fr: text("firmware_revision", &self.firmware_revision)?,
        })
    }
}

pub(super) fn nqn(key: &'static str, value: &str) -> Result<Nqn, SettingsError> {
    let is_name = Nqn::is_well_formed(value) && value != DISCOVERY_NQN;
    let name = Nqn::new(value).filter(|_| is_name);
    name.ok_or_else(|| SettingsError::Nqn {
        key,
        value: value.to_owned(),
    })
}

fn text<const N: usize>(key: &'static str, value: &str) -> Result<Ascii<N>, SettingsError> {
    Ascii::new(value).ok_or_else(|| SettingsError::Text {
        key,
        value: value.to_owned(),
        most: N,
    })
}

fn number(key: &'static str, value: u64, least: u64, most: u64) -> Result<(), SettingsError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(SettingsError::Number {
        key,
        value,
        least,
        most,
    })
}
