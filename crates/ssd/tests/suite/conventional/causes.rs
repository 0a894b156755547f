//! What collection does is booked as its own, and what the host does as the host's.

use super::*;
use zonelab_ssd::account::Cause;

/// Operations of a cause, and its busy time on dies and channels.
fn booked(rig: &Rig, cause: Cause) -> (u64, u64, u64) {
    let ledger = rig.drive.flash().media().ledger();
    let sum = |rows: &[[u64; Cause::ALL.len()]]| rows.iter().map(|row| row[cause as usize]).sum();
    let (units, channels) = (sum(&ledger.units), sum(&ledger.channels));
    (sum(ledger.operations()), units, channels)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn collection_has_causes_of_its_own(config in drives(), pages in vec(0..BLOCKS / 4, 0..400)) {
        let mut config = config;
        config.data = DataStore::None;
        let mut rig = Rig::new(&config);
        for &page in &pages {
            let done = exec(&mut rig, write(page * 4, 4), None);
            prop_assert_eq!(done.status, Status::SUCCESS);
        }
        rig.settle();
        let totals = rig.drive.totals();
        let page_bytes = u64::from(config.geometry.page_bytes);
        let transfer_ns = config.media.transfer_ns.0;
        for (cause, bytes) in [
            (Cause::HostWrite, totals.host_program_bytes),
            (Cause::CollectWrite, totals.collect_program_bytes),
        ] {
            let (programs, _, channels) = booked(&rig, cause);
            prop_assert_eq!(programs * page_bytes, bytes, "{}", cause.name());
            prop_assert_eq!(channels, programs * transfer_ns, "{}", cause.name());
        }
        // The host read nothing, and what was moved had been read.
        prop_assert_eq!(booked(&rig, Cause::HostRead), (0, 0, 0));
        let reads = booked(&rig, Cause::CollectRead).0;
        if config.write_buffer.is_none() {
            prop_assert!(reads * page_bytes >= totals.collect_program_bytes);
        }
        // No host reset a zone: what is erased, is for the collection or before a write.
        prop_assert_eq!(totals.resets, 0);
        prop_assert_eq!(booked(&rig, Cause::ResetErase), (0, 0, 0));
        let erasures = [Cause::WriteErase, Cause::CollectErase].map(|of| booked(&rig, of).0);
        prop_assert_eq!(erasures.iter().sum::<u64>(), totals.erased_blocks);
        if config.reset.erase == EraseWhen::Synchronous {
            prop_assert_eq!(erasures[0], 0);
        }
        if totals.collect_program_bytes == 0 && totals.erased_blocks == 0 {
            prop_assert_eq!(reads, 0);
        }
    }
}
