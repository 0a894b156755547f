//! The same drive without its times.

use zonelab_device::Nanos;

use crate::config::{CommandCosts, DriveConfig, FinishConfig, Placement, Suspend};

/// The least time that a flash operation may have.
const LEAST: Nanos = Nanos(1);

/// A drive with the zones, limits and states of `config` that answers as fast
/// as the model runs: flash operations take a nanosecond, everything else
/// nothing, and finishing a zone programs nothing.
///
/// For measurements of what stands around the drive.
#[must_use]
pub fn untimed(config: &DriveConfig) -> DriveConfig {
    let mut config = config.clone();
    let media = &mut config.media;
    media.read_ns = LEAST;
    media.program_ns = LEAST;
    media.erase_ns = LEAST;
    media.transfer_ns = Nanos::ZERO;
    media.suspend = Suspend::NONE;
    media.details.read_parts = None;
    media.details.program_variation_ppm = 0;
    let front_end = &mut config.front_end;
    front_end.cores = 0;
    front_end.read_ns = Nanos::ZERO;
    front_end.write_ns = Nanos::ZERO;
    front_end.append_ns = Nanos::ZERO;
    front_end.management_ns = Nanos::ZERO;
    front_end.link_bytes_per_s = None;
    front_end.costs = CommandCosts::default();
    if let Some(cache) = &mut config.slc_cache {
        cache.read_ns = LEAST;
        cache.program_ns = LEAST;
        cache.erase_ns = LEAST;
        cache.fold_after_idle_ns = cache.fold_after_idle_ns.map(|_| Nanos::ZERO);
    }
    if let Some(buffer) = &mut config.write_buffer {
        buffer.drain_bytes_per_s = None;
        buffer.turn_bytes = None;
        buffer.placement = Placement::InOrder;
    }
    config.allocation.time_ns = Nanos::ZERO;
    config.allocation.pool_zones = 0;
    // Where there are more zones than flash, a finish has to give some back.
    if !config.allocation.thin {
        config.finish = FinishConfig::Metadata;
    }
    config.reset.preempt_ns = None;
    config.reset.bookkeeping = None;
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Drive;
    use crate::interface::DriveModel;
    use crate::profile;
    use zonelab_device::{Buf, Command, Lba, Op, QueueId, Tag};
    use zonelab_nvme::zns::ZoneSendAction;

    #[test]
    fn every_drive_works_without_its_times_and_takes_next_to_none() {
        for builtin in profile::builtin_names().filter_map(profile::builtin) {
            let config = untimed(&builtin.config);
            assert_eq!(profile::check(&config).err(), None, "{}", config.name);
            let mut drive = Drive::new(&config);
            let data = Buf::zeroed(config.lba_bytes as usize);
            let (slba, nlb) = (Lba(0), 1);
            let zone = |action| Op::ZoneSend {
                slba,
                action,
                select_all: false,
            };
            let ops = [
                (Op::Write { slba, nlb }, Some(data)),
                (Op::Read { slba, nlb }, None),
                (zone(ZoneSendAction::FINISH), None),
                (zone(ZoneSendAction::RESET), None),
            ];
            let mut done = Vec::new();
            for (tag, (op, data)) in (0..).zip(ops) {
                let now = drive.now();
                let taken = drive.submit(now, QueueId(0), Tag(tag), Command::new(op), data);
                assert!(taken.is_ok());
                while let Some(at) = drive.next_event() {
                    drive.advance(at, &mut done);
                }
            }
            assert_eq!(done.len(), 4, "{}", config.name);
            assert!(
                done.iter().all(|done| done.status.is_success()),
                "{}",
                config.name
            );
            assert!(
                drive.now() < Nanos::from_us(10),
                "{}: {}",
                config.name,
                drive.now()
            );
        }
    }
}
