//! Random commands through rings against the same commands given to the drive itself.

use proptest::prelude::{Just, ProptestConfig, Strategy, prop_oneof, proptest};
use zonelab_device::{Buf, Command, Completion, Lba, Nanos, Op, QueueId, QueuePair, Tag};
use zonelab_driver::pcie::{Function, PcieOptions};
use zonelab_endpoint::{Endpoint, EndpointSettings};
use zonelab_nvme::Status;
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction};
use zonelab_ssd::{Drive, DriveModel};

use crate::drive::{LBA, ZONE, config, connect, endpoint, fill, run};

/// A command, and how many bytes of buffer it has.
fn commands() -> impl Strategy<Value = (Op, usize)> {
    let lba = 0..6 * ZONE + 4;
    let zone = (0_u64..6).prop_map(|zone| Lba(zone * ZONE));
    let nlb = 1_u32..40;
    let bytes = |nlb: u32| nlb as usize * LBA;
    prop_oneof![
        4 => (zone.clone(), nlb.clone())
            .prop_map(move |(zslba, nlb)| (Op::Append { zslba, nlb }, bytes(nlb))),
        2 => (zone.clone(), nlb.clone())
            .prop_map(move |(slba, nlb)| (Op::Write { slba, nlb }, bytes(nlb))),
        4 => (lba.clone(), nlb.clone())
            .prop_map(move |(slba, nlb)| (Op::Read { slba: Lba(slba), nlb }, bytes(nlb))),
        1 => (lba.clone(), nlb.clone())
            .prop_map(move |(slba, nlb)| (Op::Compare { slba: Lba(slba), nlb }, bytes(nlb))),
        1 => (zone.clone(), nlb).prop_map(|(slba, nlb)| (Op::WriteZeroes { slba, nlb }, 0)),
        1 => Just((Op::Flush, 0)),
        3 => (zone, 1_u8..6, 0_u8..8).prop_map(|(slba, action, all)| {
            let (action, select_all) = (ZoneSendAction(action), all == 0);
            (Op::ZoneSend { slba, action, select_all }, 0)
        }),
        1 => (lba, 0_usize..5, proptest::bool::ANY).prop_map(|(slba, zones, partial)| {
            let (filter, extended) = (ReportFilter::ALL, false);
            let slba = Lba(slba);
            (Op::ZoneReceive { slba, filter, partial, extended }, 64 + 64 * zones)
        }),
    ]
}

/// How a command ends: status, result, data.
type End = (Status, u64, Option<Buf>);

fn end(completion: Completion) -> End {
    let result = match completion.status.is_success() {
        true => completion.result,
        false => 0,
    };
    (completion.status, result, completion.data)
}

fn directly(drive: &mut Drive, now: &mut Nanos, command: Command, data: Option<Buf>) -> End {
    drive
        .submit(*now, QueueId(1), Tag(7), command, data)
        .unwrap();
    let mut done = Vec::new();
    while done.is_empty() {
        *now = drive.next_event().expect("it ends").max(*now);
        drive.advance(*now, &mut done);
    }
    end(done.pop().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rings_change_nothing(
        steps in proptest::collection::vec((commands(), proptest::bool::ANY), 1..60),
        has_shadow_doorbells in proptest::bool::ANY,
        has_sgls in proptest::bool::ANY,
        queue_entries in 2_u32..20,
    ) {
        let settings = EndpointSettings {
            has_shadow_doorbells,
            has_sgls,
            ..EndpointSettings::default()
        };
        let endpoint: Endpoint = endpoint(settings);
        let options = PcieOptions { queue_entries, ..PcieOptions::default() };
        let mut controller = connect(&endpoint, options);
        let mut queue = controller.open_queue().unwrap();
        let mut drive = Drive::new(&config());
        let mut now = Nanos::ZERO;
        for (index, ((op, bytes), is_own)) in (0_u64..).zip(steps) {
            let mut heap = Buf::zeroed(bytes);
            fill(index, &mut heap);
            let given = (bytes > 0).then_some(heap);
            let through = given.clone().map(|heap| match is_own {
                true => {
                    let mut own = controller.buffer(bytes).unwrap();
                    own.copy_from_slice(&heap);
                    own
                }
                false => heap,
            });
            let expected = directly(&mut drive, &mut now, Command::new(op), given);
            let found = end(run(&mut queue, &endpoint, Command::new(op), through));
            assert_eq!(found.0, expected.0, "{op:?}");
            assert_eq!(found.1, expected.1, "{op:?}");
            assert!(found.2 == expected.2, "{op:?}: other data");
        }
        assert_eq!(endpoint.memory().faults(), 0);
        assert_eq!(queue.counts().dropped, 0);
        assert_eq!(queue.now(), endpoint.now());
    }
}
