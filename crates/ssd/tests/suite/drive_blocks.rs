//! What NAND flash asks for, block by block, on any drive.

use crate::drive_support::Rig;
use crate::drive_support::random::{bodies, designs, drive, front_ends, streams};
use crate::drive_support::thresholds::{any_thresholds, within};
use crate::elements_oracle::with_elements;
use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_oracle::blocks::Blocks;
use zonelab_ssd::FaultTarget;
use zonelab_ssd::config::{
    BufferRelease, EraseExtent, MappingConfig, Placement, WriteBufferConfig,
};
use zonelab_ssd::profile;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3_000) })]

    /// Whenever zones are erased and whatever they consist of: nothing is programmed
    /// on a block before it is erased, and to the write pointer nothing is erased that
    /// was not written.
    #[test]
    fn nothing_is_programmed_twice_without_an_erasure(
        (body, designs, spare) in (bodies(), designs(), 0..4_u32),
        elements in prop::option::of(any::<(u32, bool, bool)>()),
        thresholds in prop::option::of(any_thresholds()),
        (front_end, buffer) in (
            prop::option::of(front_ends()),
            prop::option::of((1..20_u64, any::<bool>(), any::<bool>())),
        ),
        stream in streams(1..120),
        cuts in prop::collection::vec((0..120_usize, any::<u64>()), 0..4),
    ) {
        let mut config = drive(body, designs, if elements.is_some() { 0 } else { spare });
        if let Some(draw) = elements {
            config = with_elements(config, draw, spare);
        }
        if let Some((thresholds, extent)) = thresholds
            && config.mapping != MappingConfig::Direct
        {
            config.reset.preempt_ns = None;
            config.reset.extent = extent;
            config.reset.erase = within(thresholds, &config);
        }
        if let Some(front_end) = front_end {
            config.front_end = front_end;
        }
        let page_bytes = u64::from(config.geometry.page_bytes);
        config.write_buffer = buffer.map(|(pages, is_protected, by_work)| WriteBufferConfig {
            size_bytes: pages * page_bytes,
            power_loss_protection: is_protected,
            release: BufferRelease::Program,
            drain_bytes_per_s: None,
            turn_bytes: None,
            placement: match by_work {
                true => Placement::LeastWork,
                false => Placement::InOrder,
            },
        });
        // Of elements with a write buffer: `elements_oracle`.
        config.write_buffer = config.write_buffer.filter(|_| elements.is_none());
        prop_assume!(profile::check(&config).is_ok());
        let mut rig = Rig::new(&config);
        let mut blocks = Blocks::watch(&mut rig.drive);
        for (at, step) in stream.iter().enumerate() {
            for (_, seed) in cuts.iter().filter(|(when, _)| *when == at) {
                rig.run_to(rig.now);
                let loss = rig.drive.power_cut(rig.now, Nanos::from_ms(1), *seed);
                rig.now = loss.ready_at;
                for lost in &loss.lost {
                    rig.forget(lost.tag.0 as usize);
                }
                blocks.look(&mut rig.drive);
            }
            match step.op(&rig) {
                Some(op) => {
                    rig.submit(op);
                }
                None => rig.run_for(Nanos::from_ms(1)),
            }
            blocks.look(&mut rig.drive);
        }
        while rig.next() {}
        blocks.look(&mut rig.drive);
        // Elements are erased whole, and rows are where the buffer chooses dies.
        let by_block = elements.is_none() && buffer.is_none();
        if config.reset.extent == EraseExtent::Partial && by_block {
            let cuts = cuts.iter().filter(|(at, _)| *at < stream.len()).count();
            let in_vain = blocks.in_vain();
            prop_assert!(in_vain as usize <= 2 * cuts, "{} in vain", in_vain);
        }
    }
}
