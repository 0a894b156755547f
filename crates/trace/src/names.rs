//! What things are called in a trace.

use zonelab_device::{Lba, Op};
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::account::{Cause, Resource};
use zonelab_ssd::config::{DriveConfig, PlaneMode};
use zonelab_ssd::media::FlashKind;
use zonelab_ssd::record::{BackgroundKind, BackgroundRecord, CommandRecord, Record, Served, Span};

/// Names of what a drive's record is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    config: &'a DriveConfig,
    record: &'a Record,
}

/// The record with that number, if it was kept.
fn by_number<T>(records: &[T], number: u64, number_of: impl Fn(&T) -> u64) -> Option<&T> {
    let index = records.binary_search_by_key(&number, number_of).ok()?;
    records.get(index)
}

impl<'a> Names<'a> {
    pub(super) const fn new(config: &'a DriveConfig, record: &'a Record) -> Self {
        Self { config, record }
    }

    /// Whether the drive has a write buffer.
    pub(super) const fn has_buffer(&self) -> bool {
        self.config.write_buffer.is_some()
    }

    /// The command of that number, if it was kept.
    pub(super) fn command(&self, number: u64) -> Option<&'a CommandRecord> {
        by_number(&self.record.commands.records, number, |c| c.number)
    }

    /// The background operation of that number, if it was kept.
    pub(super) fn background(&self, number: u64) -> Option<&'a BackgroundRecord> {
        by_number(&self.record.background.records, number, |b| b.number)
    }

    /// The zone of an address.
    pub(super) fn zone(&self, lba: Lba) -> u64 {
        lba.0 / self.config.zones.size_lbas
    }

    /// A channel or unit, as `channel 0 way 1 die 0 plane 1`.
    pub(super) fn resource(&self, resource: Resource) -> String {
        let geometry = &self.config.geometry;
        let unit = match resource {
            Resource::Channel(channel) => return format!("channel {channel}"),
            Resource::Unit(unit) => unit,
        };
        let (lun, plane) = match self.config.media.planes {
            PlaneMode::Independent => {
                let plane = format!(" plane {}", unit % geometry.planes);
                (unit / geometry.planes, plane)
            }
            PlaneMode::MultiPlane | PlaneMode::Single => (unit, String::new()),
        };
        // LUNs count channel first, then way: see `zonelab_ssd::layout`.
        let channel = lun % geometry.channels;
        let way = lun / geometry.channels % geometry.ways;
        let die = lun / geometry.channels / geometry.ways;
        format!("channel {channel} way {way} die {die}{plane}")
    }

    /// A command, as `read 16 KiB zone 0 @1024`: the address is that of its
    /// first logical block.
    pub(super) fn command_name(&self, op: &Op) -> String {
        let transfer = |verb: &str, lba: Lba, nlb: u32| {
            let bytes = u64::from(nlb) * u64::from(self.config.lba_bytes);
            format!("{verb} {} zone {} @{}", size(bytes), self.zone(lba), lba.0)
        };
        match *op {
            Op::Read { slba, nlb } => transfer("read", slba, nlb),
            Op::Write { slba, nlb } => transfer("write", slba, nlb),
            Op::Append { zslba, nlb } => transfer("append", zslba, nlb),
            Op::WriteZeroes { slba, nlb } => transfer("write zeroes", slba, nlb),
            Op::Compare { slba, nlb } => transfer("compare", slba, nlb),
            Op::Verify { slba, nlb } => transfer("verify", slba, nlb),
            Op::Copy { sdlba, ranges } => {
                let zone = self.zone(sdlba);
                format!("copy {ranges} ranges to zone {zone} @{}", sdlba.0)
            }
            Op::Deallocate { ranges } => format!("deallocate {ranges} ranges"),
            Op::Flush => "flush".to_owned(),
            Op::ZoneReceive { .. } => "report zones".to_owned(),
            Op::HandleStatus => "reclaim unit handle status".to_owned(),
            Op::HandleUpdate { handles } => format!("update {handles} reclaim unit handles"),
            Op::ZoneSend {
                slba,
                action,
                select_all,
            } => {
                let verb = action_name(action);
                if select_all {
                    format!("{verb} all zones")
                } else {
                    format!("{verb} zone {}", self.zone(slba))
                }
            }
            Op::ZrwaSend { slba, action } => {
                let verb = action_name(action);
                format!("{verb} zone {} with ZRWA", self.zone(slba))
            }
        }
    }

    /// Whom a flash operation serves, as `reset of zone 3`.
    fn purpose(&self, span: &Span) -> String {
        match span.served {
            Some(Served::Command(number)) => match self.command(number).map(|c| c.op) {
                Some(Op::Read { slba, .. }) => return format!("read of zone {}", self.zone(slba)),
                Some(Op::Compare { slba, .. }) => {
                    return format!("compare in zone {}", self.zone(slba));
                }
                Some(Op::Verify { slba, .. }) => {
                    return format!("verify in zone {}", self.zone(slba));
                }
                Some(Op::Copy { sdlba, .. }) => {
                    return format!("copy to zone {}", self.zone(sdlba));
                }
                Some(Op::Write { slba, .. } | Op::WriteZeroes { slba, .. })
                    if span.cause == Cause::WriteErase =>
                {
                    return format!("before a write to zone {}", self.zone(slba));
                }
                Some(Op::Append { zslba, .. }) if span.cause == Cause::WriteErase => {
                    return format!("before an append to zone {}", self.zone(zslba));
                }
                Some(Op::Write { slba, .. } | Op::WriteZeroes { slba, .. }) => {
                    return format!("write to zone {}", self.zone(slba));
                }
                Some(Op::Append { zslba, .. }) => {
                    return format!("append to zone {}", self.zone(zslba));
                }
                _ => {}
            },
            Some(Served::Background(number)) => {
                if let Some(background) = self.background(number) {
                    return self.background_name(background);
                }
            }
            Some(Served::Collection) => return "garbage collection".to_owned(),
            None => {}
        }
        span.cause.name().to_owned()
    }

    /// A background operation, as `reset of zone 3`.
    pub(super) fn background_name(&self, background: &BackgroundRecord) -> String {
        let what = match background.kind {
            BackgroundKind::FinishFill => "finish",
            BackgroundKind::Erasure => "reset",
            BackgroundKind::PartialErase => {
                return format!("row of physical zone {}", background.physical);
            }
            BackgroundKind::FullErase => return format!("physical zone {}", background.physical),
        };
        format!("{what} of zone {}", background.zone.0)
    }

    /// A busy time, as `erase (reset of zone 3)` or `read of zone 5`.
    pub(super) fn span_name(&self, span: &Span) -> String {
        if span.kind == FlashKind::Read
            && matches!(span.resource, Resource::Unit(_))
            && let Some(Served::Command(_)) = span.served
        {
            return self.purpose(span);
        }
        let operation = match (span.resource, span.kind) {
            (Resource::Channel(_), _) => "transfer",
            (_, FlashKind::Read) => "read",
            (_, FlashKind::Program) => "program",
            (_, FlashKind::Erase) => "erase",
        };
        let purpose = self.purpose(span);
        match self.is_past_suspending(span) {
            false => format!("{operation} ({purpose})"),
            true => format!(
                "{operation} ({purpose}; suspended {} times, and no more)",
                span.suspends
            ),
        }
    }

    /// Whether the operation was suspended as often as it may be, so that what came in this
    /// time had to wait for its end.
    fn is_past_suspending(&self, span: &Span) -> bool {
        let suspend = &self.config.media.suspend;
        span.suspends > 0 && span.suspends >= suspend.max_per_operation
    }
}

/// The verb of a zone send action.
fn action_name(action: ZoneSendAction) -> &'static str {
    match action {
        ZoneSendAction::CLOSE => "close",
        ZoneSendAction::FINISH => "finish",
        ZoneSendAction::OPEN => "open",
        ZoneSendAction::RESET => "reset",
        ZoneSendAction::OFFLINE => "take offline",
        ZoneSendAction::SET_DESCRIPTOR_EXTENSION => "set descriptor extension of",
        ZoneSendAction::ZRWA_FLUSH => "commit ZRWA of",
        _ => "send to",
    }
}

/// Bytes, in KiB where that is exact.
fn size(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) {
        format!("{} KiB", bytes / 1024)
    } else {
        format!("{bytes} B")
    }
}
