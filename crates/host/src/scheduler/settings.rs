//! What can be set about schedulers, and within which ranges.

use std::fmt::{Debug, Display};
use std::ops::RangeInclusive;

use zonelab_device::{DeviceInfo, Nanos};

use super::SettingError;

/// Settings of mq-deadline. The defaults are those of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MqDeadlineSettings {
    /// A new batch of reads begins with the oldest if it has waited for this long.
    pub read_expire: Nanos,
    /// The same of writes and appends.
    pub write_expire: Nanos,
    /// Commands of one direction that go in ascending addresses before it is
    /// decided anew which direction is next, and whether one has expired.
    pub fifo_batch: u32,
    /// Batches of reads that may go before a batch of writes that could go.
    pub writes_starved: u32,
    /// Whether a request is merged with one that begins where it ends.
    /// (With one that ends where it begins it always is.)
    pub front_merges: bool,
    /// Largest command that is made by merging, in bytes; a device that takes
    /// less makes it less. One logical block: nothing is merged.
    pub max_request_bytes: u32,
}

impl MqDeadlineSettings {
    /// What [`Self::read_expire`] and [`Self::write_expire`] may be.
    pub const EXPIRE: RangeInclusive<Nanos> = Nanos::ZERO..=Nanos::from_secs(3_600);
    /// What [`Self::fifo_batch`] may be.
    pub const FIFO_BATCH: RangeInclusive<u32> = 1..=1_000_000;
    /// What [`Self::writes_starved`] may be.
    pub const WRITES_STARVED: RangeInclusive<u32> = 0..=1_000_000;
    /// What [`Self::max_request_bytes`] may be, if besides it is no less than a
    /// logical block of the device.
    pub const MAX_REQUEST_BYTES: RangeInclusive<u32> = 512..=(256 << 20);

    /// Whether a device can be scheduled with these.
    ///
    /// # Errors
    /// The first setting that is out of its range.
    pub fn check(&self, info: &DeviceInfo) -> Result<(), SettingError> {
        within(
            "mq-deadline.read_expire",
            self.read_expire,
            Self::EXPIRE,
            "",
        )?;
        within(
            "mq-deadline.write_expire",
            self.write_expire,
            Self::EXPIRE,
            "",
        )?;
        within(
            "mq-deadline.fifo_batch",
            self.fifo_batch,
            Self::FIFO_BATCH,
            " commands",
        )?;
        within(
            "mq-deadline.writes_starved",
            self.writes_starved,
            Self::WRITES_STARVED,
            " batches",
        )?;
        let blocks = info.namespaces.iter().map(|namespace| namespace.lba_bytes);
        let smallest = blocks.fold(*Self::MAX_REQUEST_BYTES.start(), u32::max);
        within(
            "mq-deadline.max_request",
            self.max_request_bytes,
            smallest..=*Self::MAX_REQUEST_BYTES.end(),
            " bytes",
        )
    }
}

impl Default for MqDeadlineSettings {
    fn default() -> Self {
        Self {
            read_expire: Nanos::from_ms(500),
            write_expire: Nanos::from_secs(5),
            fifo_batch: 16,
            writes_starved: 2,
            front_merges: true,
            max_request_bytes: 512 << 10,
        }
    }
}

/// Settings of zinc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZincSettings {
    /// How reads, writes and appends are ordered.
    pub deadline: MqDeadlineSettings,
    /// When resets go.
    pub reset: ZincThrottle,
    /// When finishes go.
    pub finish: ZincThrottle,
}

impl ZincSettings {
    /// Whether a device can be scheduled with these.
    ///
    /// # Errors
    /// The first setting that is out of its range.
    pub fn check(&self, info: &DeviceInfo) -> Result<(), SettingError> {
        self.deadline.check(info)?;
        self.reset.check(&[
            "zinc.reset.epoch",
            "zinc.reset.min_concurrency",
            "zinc.reset.max_epoch_holds",
        ])?;
        self.finish.check(&[
            "zinc.finish.epoch",
            "zinc.finish.min_concurrency",
            "zinc.finish.max_epoch_holds",
        ])
    }
}

/// When zinc lets one kind of management command go.
///
/// The defaults are what the ConfZNS++ paper chose for resets of a ZN540
/// (section 5.1). The kernel module of its authors starts with a tenth of the
/// tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZincThrottle {
    /// Time between the points at which a waiting command is looked at.
    pub epoch: Nanos,
    /// Writes and appends that pay for one command, in units of 8 KiB
    /// ([`Self::UNIT_BYTES`]). Every value is valid; with 0 a command goes at
    /// the first end of an epoch.
    pub write_tokens: u32,
    /// With fewer than this many units of 8 KiB of reads, writes and appends
    /// waiting or in flight, a command goes at once. 0: it never does.
    pub min_concurrency: u32,
    /// Ends of epochs at which a command can be held back.
    pub max_epoch_holds: u32,
}

impl ZincThrottle {
    /// What tokens and concurrency are counted in.
    pub const UNIT_BYTES: u64 = 8 << 10;
    /// What [`Self::epoch`] may be.
    pub const EPOCH: RangeInclusive<Nanos> = Nanos::from_ms(1)..=Nanos::from_secs(60);
    /// What [`Self::min_concurrency`] may be.
    pub const MIN_CONCURRENCY: RangeInclusive<u32> = 0..=65_536;
    /// What [`Self::max_epoch_holds`] may be.
    pub const MAX_EPOCH_HOLDS: RangeInclusive<u32> = 0..=1_000;

    fn check(&self, [epoch, concurrency, holds]: &[&'static str; 3]) -> Result<(), SettingError> {
        within(epoch, self.epoch, Self::EPOCH, "")?;
        within(
            concurrency,
            self.min_concurrency,
            Self::MIN_CONCURRENCY,
            " units of 8 KiB",
        )?;
        within(
            holds,
            self.max_epoch_holds,
            Self::MAX_EPOCH_HOLDS,
            " epochs",
        )
    }
}

impl Default for ZincThrottle {
    fn default() -> Self {
        Self {
            epoch: Nanos::from_ms(64),
            write_tokens: 20_000,
            min_concurrency: 3,
            max_epoch_holds: 3,
        }
    }
}

fn within<T: Display + Debug + PartialOrd>(
    key: &'static str,
    value: T,
    valid: RangeInclusive<T>,
    unit: &str,
) -> Result<(), SettingError> {
    if valid.contains(&value) {
        return Ok(());
    }
    Err(SettingError {
        key,
        value: value.to_string(),
        valid: format!("{} to {}{unit}", valid.start(), valid.end()),
    })
}
