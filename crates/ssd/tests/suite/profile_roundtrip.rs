//! Configurations and their files agree, and so do the expected figures and the model.

use crate::profile_support::valid_config;
use proptest::prelude::*;
use zonelab_device::{Command, Lba, Nanos, Op, QueueId, Tag};
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::config::{
    AllocationConfig, ChannelArbitration, CommandCosts, DriveConfig, EraseExtent, EraseWhen,
    FinishConfig, MappingConfig, MediaDetails, PageRegister,
};
use zonelab_ssd::profile::{Limit, Profile, check, describe, to_toml};
use zonelab_ssd::{Drive, DriveModel};

/// When the last of `ops`, all submitted at `now`, completes.
fn last_completion(drive: &mut Drive, now: Nanos, ops: &[Op]) -> Nanos {
    for op in ops {
        drive
            .submit(now, QueueId(0), Tag(0), Command::new(*op), None)
            .expect("there is room");
    }
    let mut done = Vec::new();
    while let Some(at) = drive.next_event() {
        drive.advance(at, &mut done);
    }
    assert_eq!(done.len(), ops.len());
    assert!(
        done.iter().all(|completion| completion.status.is_success()),
        "{done:?}"
    );
    done.iter()
        .map(|completion| completion.at)
        .max()
        .expect("there are completions")
}

fn zone_send(action: ZoneSendAction) -> Op {
    Op::ZoneSend {
        slba: Lba(0),
        action,
        select_all: false,
    }
}

/// `config` without what the figures leave out: the finish stands alone and the
/// reset has everything to erase.
fn simplified(mut config: DriveConfig) -> DriveConfig {
    config.write_buffer = None;
    config.zones.zrwa = None;
    config.reset.bookkeeping = None;
    config.media.details = MediaDetails::NONE;
    if let FinishConfig::Fill { buffered, .. } = &mut config.finish {
        *buffered = false;
    }
    config.front_end.costs = CommandCosts::default();
    config.front_end.max_transfer_bytes = None;
    config.front_end.link_bytes_per_s = None;
    config.reset.extent = EraseExtent::Full;
    config.mapping = MappingConfig::Direct;
    config.allocation = AllocationConfig::NONE;
    config.reset.erase = EraseWhen::Synchronous;
    config
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_configuration_reads_back_from_its_toml(config in valid_config()) {
        let text = to_toml(&config);
        let profile = Profile::parse("x.toml", &text, &[]);
        let profile = profile.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        prop_assert_eq!(&profile.config, &config);
        prop_assert_eq!(check(&config), Ok(profile.derived.clone()));
        // Everything is stated, so nothing is described as a default.
        let rows = describe(&profile);
        let stated = rows.iter().filter(|row| row.note.starts_with("line ")).count();
        // One row describes a namespace, whatever it states.
        let (keys, _) = text.split_once("[[namespaces]]").unwrap_or((&text, ""));
        let keys = keys.lines().filter(|line| line.contains(" = ")).count();
        let expected = keys - 1 + config.namespaces.len();
        prop_assert_eq!(stated, expected, "all but `schema`");
    }

    #[test]
    fn what_is_derived_is_what_is_built(config in valid_config()) {
        let derived = check(&config).unwrap();
        let drive = Drive::new(&config);
        let layout = drive.flash().layout();
        prop_assert_eq!(derived.zone_groups, layout.groups());
        prop_assert_eq!(derived.planes_per_zone, layout.width());
        prop_assert_eq!(derived.zone_blocks_per_plane, layout.rows());
        prop_assert_eq!(derived.zone_blocks, layout.zone_blocks());
        prop_assert_eq!(derived.zone_pages, layout.zone_pages());
        let blocks = drive.flash().erase_counts().len() as u64;
        let block = u64::from(config.geometry.pages_per_block)
            * u64::from(config.geometry.page_bytes);
        prop_assert_eq!(derived.raw_bytes, blocks * block);
        prop_assert!(derived.zone_capacity_bytes <= derived.zone_flash_bytes);
        prop_assert!(derived.usable_bytes <= derived.raw_bytes);
        // The last block of the last physical zone exists: this must not panic.
        for physical in 0..derived.physical_zones {
            for block in [0, derived.zone_blocks - 1] {
                prop_assert!((layout.block_index(physical, block) as u64) < blocks);
            }
        }
    }

    #[test]
    fn finish_and_reset_take_as_long_as_expected(config in valid_config()) {
        let config = simplified(config);
        let figures = check(&config).unwrap().figures;
        let mut drive = Drive::new(&config);
        // A finish needs an active zone only where it is not empty.
        let finish = zone_send(ZoneSendAction::FINISH);
        let finished = last_completion(&mut drive, Nanos::ZERO, &[finish]);
        // Held registers under "ready" arbitration are served in another order.
        let exact = config.media.page_register == PageRegister::Overlap
            || config.media.arbitration == ChannelArbitration::Arrival;
        if exact || matches!(config.finish, FinishConfig::Metadata) {
            prop_assert_eq!(finished, figures.zone_finish_ns);
        }
        let erased = last_completion(&mut drive, finished, &[zone_send(ZoneSendAction::RESET)]);
        let expected = figures.zone_erase_ns.0 + config.front_end.management_ns.0;
        if config.reset.preempt_ns.is_none() {
            prop_assert_eq!(erased - finished, Nanos(expected));
        }
    }

    #[test]
    fn no_stream_beats_the_ceilings(config in valid_config()) {
        let mut config = simplified(config);
        config.front_end.cores = 0;
        for time in [
            &mut config.front_end.read_ns,
            &mut config.front_end.write_ns,
            &mut config.front_end.append_ns,
            &mut config.front_end.management_ns,
        ] {
            *time = Nanos::ZERO;
        }
        let figures = check(&config).unwrap().figures;
        let mut drive = Drive::new(&config);
        let lbas = u32::try_from(config.zones.capacity_lbas).unwrap();
        let bytes = u128::from(lbas) * u128::from(config.lba_bytes);
        let write = Op::Write { slba: Lba(0), nlb: lbas };
        let written = last_completion(&mut drive, Nanos::ZERO, &[write]);
        let ceiling = u128::from(figures.zone_write_bytes_per_s.per_s);
        // One page may be used in part, hence one more; rates are rounded down.
        let page = u128::from(config.geometry.page_bytes);
        let possible = (ceiling + 1).saturating_mul(u128::from(written.0)) / 1_000_000_000 + page;
        prop_assert!(bytes <= possible, "{bytes} bytes in {written}, expected at most {possible}");
    }
}

/// The ceilings are reached, not only kept: the drive of the paper, saturated.
#[test]
fn the_papers_drive_reaches_its_ceilings() {
    let profile = zonelab_ssd::profile::builtin("confznspp").unwrap();
    let figures = &profile.derived.figures;
    assert_eq!(figures.zone_write_bytes_per_s.limit, Limit::Dies);
    let mut drive = Drive::new(&profile.config);
    // 64 MiB in writes of 256 KiB, all at once.
    let writes: Vec<Op> = (0..256)
        .map(|i| Op::Write {
            slba: Lba(i * 64),
            nlb: 64,
        })
        .collect();
    let written = last_completion(&mut drive, Nanos::ZERO, &writes);
    let reached = (64 << 20) * 1_000_000_000 / written.0;
    let ceiling = figures.zone_write_bytes_per_s.per_s;
    assert!(
        reached <= ceiling && reached > ceiling * 999 / 1_000,
        "{reached} of {ceiling}"
    );
    // 16,384 reads of one block, evenly over the four dies, all at once.
    let reads: Vec<Op> = (0..16_384)
        .map(|i| Op::Read {
            slba: Lba(i),
            nlb: 1,
        })
        .collect();
    let read = last_completion(&mut drive, written, &reads) - written;
    let reached = 16_384 * 1_000_000_000 / read.0;
    let ceiling = figures.read_iops.per_s;
    assert!(
        reached <= ceiling && reached > ceiling * 999 / 1_000,
        "{reached} of {ceiling}"
    );
}
