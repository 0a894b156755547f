//! What a profile says of an idle drive is what the drive does.

use crate::drive_support::Rig;
use crate::drive_support::random::drives;
use proptest::prelude::*;
use zonelab_ssd::config::{
    ChannelArbitration, EraseExtent, EraseWhen, MappingConfig, PageRegister,
};
use zonelab_ssd::profile;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn figures_agree_with_the_drive(mut config in drives()) {
        // The figures are about pages that move as a whole, and an erasure that
        // a command can be seen to wait for.
        config.mapping = MappingConfig::Direct;
        config.reset.erase = EraseWhen::Synchronous;
        config.reset.extent = EraseExtent::Full;
        let page_lbas = config.geometry.page_bytes / config.lba_bytes;
        config.zones.capacity_lbas =
            config.zones.capacity_lbas.next_multiple_of(u64::from(page_lbas));
        config.zones.size_lbas = config.zones.size_lbas.max(config.zones.capacity_lbas);
        let figures = profile::check(&config).expect("no more pages than before").figures;

        let mut rig = Rig::new(&config);
        let finish = rig.time(rig.finish(0));
        // The figure takes pages in their order, as channels that serve in order
        // of arrival do. Where pages that wait for their unit can be overtaken,
        // the drive may be quicker; where they come in pieces or only when the
        // one before is being programmed, slower.
        let media = &config.media;
        let overtaking = media.page_register == PageRegister::Hold
            && media.arbitration == ChannelArbitration::Ready;
        let is_held_up = media.page_register == PageRegister::Cache
            || media.details.transfer_unit_bytes.is_some();
        prop_assert!(is_held_up || finish <= figures.zone_finish_ns);
        prop_assert!(is_held_up || overtaking || finish == figures.zone_finish_ns);
        prop_assert_eq!(rig.time(rig.reset(0)), figures.zone_erase_ns);
        let op = rig.write(0, page_lbas);
        prop_assert_eq!(rig.time(op), figures.page_write_ns);
        prop_assert_eq!(rig.time(rig.read(0, 0, page_lbas)), figures.page_read_ns);
    }
}
