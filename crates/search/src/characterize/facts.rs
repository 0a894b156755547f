//! What of a drive the suite depends on.

use serde::{Deserialize, Serialize};
use zonelab_device::{DeviceInfo, NamespaceId};

/// Fewest zones that the suite makes do with: some are reset beside others that are read and
/// written.
const ZONES_MIN: u32 = 16;
/// Most zones that are written side by side: the limit of the drive of the study.
const OPEN_MOST: u32 = 14;
/// Greatest depth that is measured.
const DEPTH_MOST: u32 = 128;

/// How a drive is reached: what of it the measurement shows.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Emulated, in virtual time: nothing stands between, and the model of a host says what
    /// a storage stack would add.
    Virtual,
    /// Emulated in this process, in real time.
    RealTime,
    /// A real drive, by this transport.
    Transport(String),
}

impl Reach {
    /// Whether time is real, and so the host, too.
    #[must_use]
    pub const fn is_real(&self) -> bool {
        !matches!(self, Self::Virtual)
    }

    /// In words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Virtual => "emulated, in virtual time; the host costs nothing".to_owned(),
            Self::RealTime => {
                "emulated, in real time: with the time that this host takes".to_owned()
            }
            Self::Transport(name) => {
                format!("by {name}, in real time: with the time that host and transport take")
            }
        }
    }
}

/// What of a drive the suite depends on.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Profile or model.
    pub model: String,
    /// How it is reached.
    pub reach: Reach,
    /// Zones of its namespace.
    pub zones: u32,
    /// Capacity of a zone, in logical blocks.
    pub zone_capacity_lbas: u64,
    /// Size of a logical block, in bytes.
    pub lba_bytes: u32,
    /// Zones that are written side by side at most.
    pub open_zones: u32,
    /// Operations in flight at most, in one queue.
    pub depth: u32,
    /// Largest write, in bytes.
    pub max_write_bytes: u32,
    /// Largest append, in bytes.
    pub max_append_bytes: u32,
    /// Cores of the host, in real time; `None`: there is no host that could be too small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
}

/// Why a drive cannot be characterised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// Its namespace has no zones.
    #[error(
        "{model}: namespace {} is not zoned, and what is measured is about zones; \
         `zonelab fio --device` measures conventional ones",
        nsid.0
    )]
    NotZoned {
        /// The model.
        model: String,
        /// The namespace.
        nsid: NamespaceId,
    },
    /// It has too few of them.
    #[error("{model}: it has {zones} zones; the suite needs {ZONES_MIN} at least")]
    TooSmall {
        /// The model.
        model: String,
        /// Its zones.
        zones: u32,
    },
    /// It does not allow as much side by side as the suite compares.
    #[error(
        "{model}: {what} at most, and the observations compare what several in flight, or zones \
         side by side, come to: 4 at least"
    )]
    TooNarrow {
        /// The model.
        model: String,
        /// What it allows.
        what: String,
    },
}

impl Facts {
    /// Of a namespace of a drive that grants `queues` queues of `depth` entries; `None`: as
    /// many as one likes.
    ///
    /// # Errors
    /// It has no zones, or too few.
    pub fn of(
        info: &DeviceInfo,
        nsid: NamespaceId,
        reach: Reach,
        granted: Option<(u32, u32)>,
    ) -> Result<Self, FactsError> {
        let model = info.model.trim().to_owned();
        let namespace = info.namespace(nsid);
        let Some((namespace, zoned)) = namespace.and_then(|of| Some((of, of.zoned?))) else {
            return Err(FactsError::NotZoned { model, nsid });
        };
        if zoned.zones < ZONES_MIN {
            let zones = zoned.zones;
            return Err(FactsError::TooSmall { model, zones });
        }
        let (queues, depth) = granted.unwrap_or((u32::MAX, u32::MAX));
        // One thread more resets beside those that write.
        let threads = queues.saturating_sub(1);
        let limits = [
            (zoned.max_open.unwrap_or(u32::MAX), "open zones"),
            (zoned.max_active.unwrap_or(u32::MAX), "active zones"),
            (threads, "queues beside the first"),
        ];
        let least = limits.iter().min_by_key(|(count, _)| *count);
        let (open, what) = least.copied().unwrap_or((OPEN_MOST, ""));
        if open < 4 {
            let what = format!("{open} {what}");
            return Err(FactsError::TooNarrow { model, what });
        }
        if depth < 4 {
            let what = format!("queues of {depth} entries");
            return Err(FactsError::TooNarrow { model, what });
        }
        Ok(Self {
            model,
            reach,
            zones: zoned.zones,
            zone_capacity_lbas: zoned.zone_capacity_lbas,
            lba_bytes: namespace.lba_bytes,
            open_zones: open.min(OPEN_MOST).min(zoned.zones / 2),
            depth: depth.min(DEPTH_MOST),
            max_write_bytes: info.max_transfer_bytes,
            max_append_bytes: info.max_append_bytes.min(info.max_transfer_bytes),
            cores: None,
        })
    }

    /// Says how many cores the host has that everything runs on.
    #[must_use]
    pub const fn on_cores(mut self, cores: u32) -> Self {
        self.cores = Some(cores);
        self
    }

    /// Capacity of a zone, in bytes.
    #[must_use]
    pub fn zone_bytes(&self) -> u64 {
        self.zone_capacity_lbas
            .saturating_mul(self.lba_bytes.into())
    }
}
