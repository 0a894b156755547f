//! Format NVM: the same drive with blocks of another size, and empty.
//!
//! The size of a block belongs to the whole drive, so a format applies to all
//! namespaces (FNA says so). A zone keeps its bytes: its size and capacity in
//! blocks change. A format begins when nothing is in the drive any more, and
//! commands that come before that end as Format In Progress. It takes no time
//! in the model.

use zonelab_nvme::Status;
use zonelab_nvme::command::{FormatNvm, SecureErase};
use zonelab_nvme::queue::CompletionEntry;
use zonelab_ssd::config::{DriveConfig, NamespaceKind};

use super::events::Event;
use super::failure::{Failure, byte};
use super::state::Life;
use super::{Answer, Layer, Subsystem};

/// Sizes of a block in bytes, by index of the LBA format.
pub(super) const FORMATS: [u32; 2] = [512, 4096];

/// A format that waits for the drive to be idle.
#[derive(Debug)]
pub(super) struct PendingFormat {
    queue: u32,
    cid: u16,
    /// The controller that asked for it.
    slot: u32,
    config: Box<DriveConfig>,
}

/// The same drive with blocks of `lba_bytes`; `None`: its zones or pages are
/// no whole number of them.
#[must_use]
pub fn formatted(config: &DriveConfig, lba_bytes: u32) -> Option<DriveConfig> {
    let old = u64::from(config.lba_bytes);
    let new = u64::from(lba_bytes);
    let scaled = |lbas: u64| {
        let bytes = lbas.checked_mul(old)?;
        let lbas = bytes / new;
        (bytes % new == 0 && lbas < u64::from(u32::MAX)).then_some(lbas)
    };
    let holds_blocks = |bytes: u64| bytes.is_multiple_of(new);
    let mut config = config.clone();
    config.zones.size_lbas = scaled(config.zones.size_lbas)?;
    config.zones.capacity_lbas = scaled(config.zones.capacity_lbas)?;
    config.lba_bytes = lba_bytes;
    if let Some(zrwa) = &mut config.zones.zrwa {
        let areas = |lbas: u32| u16::try_from(scaled(lbas.into())?).ok().map(u32::from);
        zrwa.size_lbas = areas(zrwa.size_lbas)?;
        zrwa.flush_granularity_lbas = areas(zrwa.flush_granularity_lbas)?;
    }
    for namespace in &mut config.namespaces {
        if let NamespaceKind::Conventional(log) = &mut namespace.kind
            && log.mapping_unit_lbas > 1
        {
            log.mapping_unit_lbas = u32::try_from(scaled(log.mapping_unit_lbas.into())?).ok()?;
        }
    }
    if let Some(copy) = &mut config.copy {
        // As many bytes as before, as far as the fields go.
        let lbas = |lbas: u64| (lbas * old / new).max(1);
        copy.max_range_lbas = u16::try_from(lbas(copy.max_range_lbas.into())).unwrap_or(u16::MAX);
        copy.max_lbas = u32::try_from(lbas(copy.max_lbas.into())).unwrap_or(u32::MAX);
    }
    let buffer = config.write_buffer.as_ref();
    let front = &config.front_end;
    let all_hold = holds_blocks(config.geometry.page_bytes.into())
        && front
            .max_transfer_bytes
            .is_none_or(|bytes| bytes >= lba_bytes)
        && front
            .max_append_bytes
            .is_none_or(|bytes| bytes >= lba_bytes)
        && buffer.is_none_or(|buffer| {
            holds_blocks(buffer.size_bytes) && buffer.turn_bytes.is_none_or(holds_blocks)
        });
    all_hold.then_some(config)
}

impl<L: Layer> Subsystem<L> {
    /// Format NVM.
    pub(super) fn format_nvm(
        &mut self,
        (queue, slot): (u32, u32),
        cid: u16,
        format: FormatNvm,
    ) -> Result<Answer, Failure> {
        if format.nsid != u32::MAX && self.namespace(format.nsid).is_none() {
            return Err(Failure::at(Status::INVALID_NAMESPACE_OR_FORMAT, byte::NSID));
        }
        if format.pi != 0 {
            return Err(Failure::bit(Status::INVALID_FORMAT, byte::CDW10, 5));
        }
        if format.mset {
            return Err(Failure::bit(Status::INVALID_FORMAT, byte::CDW10, 4));
        }
        if !matches!(format.ses, SecureErase::NONE | SecureErase::USER_DATA) {
            return Err(Failure::bit(Status::INVALID_FIELD, byte::CDW10 + 1, 1));
        }
        self.check_format_reserved(slot)?;
        if self.format.is_some() {
            return Err(Failure::from(Status::FORMAT_IN_PROGRESS));
        }
        let invalid = Failure::at(Status::INVALID_FORMAT, byte::CDW10);
        let lba_bytes = *FORMATS.get(usize::from(format.lbaf)).ok_or(invalid)?;
        let config = self.drive.drive().config();
        let config = if lba_bytes == config.lba_bytes {
            config.clone()
        } else {
            formatted(config, lba_bytes).ok_or(invalid)?
        };
        self.queues.at(queue).in_drive += 1;
        self.format = Some(PendingFormat {
            queue,
            cid,
            slot,
            config: Box::new(config),
        });
        if self.flights.is_empty() {
            self.apply_format();
        }
        Ok(Answer::Later)
    }

    /// A format will not be carried out.
    pub(super) fn forget_format(&mut self, format: &PendingFormat) {
        self.leave(format.queue, 0);
    }

    /// Formats the drive, if that is asked for and nothing is in the drive.
    pub(super) fn apply_format(&mut self) {
        let Some(format) = self.format.take() else {
            return;
        };
        let totals = self.drive.drive().totals();
        self.counters.read_bytes += totals.host_read_bytes;
        self.counters.written_bytes += totals.host_write_bytes;
        let placement = self.drive.drive().placement().statistics();
        let before = &mut self.counters.placement;
        before.host_write_bytes += placement.host_write_bytes;
        before.media_write_bytes += placement.media_write_bytes;
        before.media_erase_bytes += placement.media_erase_bytes;
        self.drive.format(&format.config);
        self.learn_drive();
        self.pasts.forget_all_zones();
        let of = self.queues.at(format.queue);
        of.in_drive -= 1;
        let by = (of.life == Life::Open).then_some(format.slot);
        if by.is_some() {
            of.end(format.cid);
            let entry = CompletionEntry::new(format.cid, Status::SUCCESS);
            self.post(format.queue, entry, None, None);
        } else {
            self.free_if_over(format.queue);
        }
        // Whoever formats knows that the namespaces change.
        for nsid in self.namespace_ids() {
            let about = (Event::Namespace, Some(nsid.0));
            self.notify(about, by, |events| events.note_namespace(nsid.0));
        }
    }
}
