//! Commands through rings, with their data.

use zonelab_device::{Buf, Lba, Op, QueuePair, RejectReason, Tag};
use zonelab_driver::pcie::{Function, PcieOptions};
use zonelab_endpoint::EndpointSettings;
use zonelab_nvme::Status;
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::{ReportFilter, ReportHeader};

use crate::drive::{
    LBA, ZONE, command, connect, endpoint, fill, pattern, read, reset_all, run, write,
};

/// What is written comes back, through the heap and through the driver's own memory,
/// with doorbells in registers and in memory, with and without generations.
#[test]
fn data_comes_back() {
    for case in 0..8 {
        let (is_own, has_shadows, has_generations) = (case & 1 != 0, case & 2 != 0, case & 4 != 0);
        let settings = EndpointSettings {
            has_shadow_doorbells: has_shadows,
            ..EndpointSettings::default()
        };
        let endpoint = endpoint(settings);
        let options = PcieOptions {
            queue_entries: 4,
            has_generations,
            ..PcieOptions::default()
        };
        let mut controller = connect(&endpoint, options);
        assert_eq!(controller.has_shadow_doorbells(), has_shadows);
        let mut queue = controller.open_queue().unwrap();
        let buffer = |bytes| match is_own {
            true => controller.buffer(bytes).unwrap(),
            false => Buf::zeroed(bytes),
        };
        let mut slba = 0;
        for nlb in [1, 2, 3, 16, 32, 40] {
            let mut data = buffer(nlb as usize * LBA);
            fill(slba, &mut data);
            let done = run(&mut queue, &endpoint, write(slba, nlb), Some(data));
            assert_eq!(done.status, Status::SUCCESS);
            let data = buffer(nlb as usize * LBA);
            let done = run(&mut queue, &endpoint, read(slba, nlb), Some(data));
            assert_eq!(done.status, Status::SUCCESS);
            assert!(
                done.data.unwrap() == pattern(slba, nlb),
                "{nlb} blocks, case {case}"
            );
            slba += u64::from(nlb);
        }
        assert_eq!(endpoint.memory().faults(), 0);
        assert_eq!(queue.counts().dropped, 0);
    }
}

#[test]
fn appends_say_where_they_went() {
    let endpoint = endpoint(EndpointSettings::default());
    let mut controller = connect(&endpoint, PcieOptions::default());
    let mut queue = controller.open_queue().unwrap();
    let append = command(Op::Append {
        zslba: Lba(ZONE),
        nlb: 3,
    });
    for at in [0, 3, 6] {
        let done = run(&mut queue, &endpoint, append, None);
        assert_eq!((done.status, done.result), (Status::SUCCESS, ZONE + at));
    }
}

/// Commands fail with the status of the drive, and the buffer comes back.
#[test]
fn failures_have_the_status_of_the_drive() {
    let endpoint = endpoint(EndpointSettings::default());
    let mut controller = connect(&endpoint, PcieOptions::default());
    let mut queue = controller.open_queue().unwrap();
    let done = run(&mut queue, &endpoint, write(5, 1), Some(pattern(5, 1)));
    assert_eq!(done.status, Status::ZONE_INVALID_WRITE);
    assert!(done.data.unwrap() == pattern(5, 1));
    let done = run(&mut queue, &endpoint, read(6 * ZONE, 1), None);
    assert_eq!(done.status, Status::LBA_OUT_OF_RANGE);
    // What has no entry never reaches the device.
    let before = queue.counts().completions;
    let done = run(&mut queue, &endpoint, read(0, 0), None);
    assert_eq!(done.status, Status::INVALID_FIELD);
    let most = controller.info().max_transfer_bytes / LBA as u32;
    let done = run(&mut queue, &endpoint, read(0, most + 1), None);
    assert_eq!(done.status, Status::INVALID_FIELD);
    assert_eq!(queue.counts().completions, before);
}

/// A report lists what fits into the buffer, although more zones match.
#[test]
fn a_report_that_does_not_fit_counts_all_zones_and_lists_some() {
    let endpoint = endpoint(EndpointSettings::default());
    let mut controller = connect(&endpoint, PcieOptions::default());
    let mut queue = controller.open_queue().unwrap();
    for (partial, expected) in [(false, 6), (true, 2)] {
        let report = command(Op::ZoneReceive {
            slba: Lba(0),
            filter: ReportFilter::ALL,
            partial,
            extended: false,
        });
        let data = Some(Buf::zeroed(64 + 2 * 64));
        let done = run(&mut queue, &endpoint, report, data);
        let data = done.data.unwrap();
        let (header, _) = ReportHeader::read_from_prefix(&data).unwrap();
        assert_eq!(header.nr_zones.get(), expected);
    }
}

#[test]
fn a_full_queue_gives_the_buffer_back() {
    let endpoint = endpoint(EndpointSettings::default());
    let options = PcieOptions {
        queue_entries: 5,
        ..PcieOptions::default()
    };
    let mut controller = connect(&endpoint, options);
    let mut queue = controller.open_queue().unwrap();
    assert_eq!(queue.depth(), 4);
    for tag in 0..4 {
        queue.submit(read(0, 1), Tag(tag), None).unwrap();
    }
    let rejected = queue
        .submit(read(0, 1), Tag(4), Some(pattern(1, 1)))
        .unwrap_err();
    let (queue_id, depth) = (queue.id(), 4);
    assert_eq!(
        rejected.reason,
        RejectReason::QueueFull {
            queue: queue_id,
            depth
        }
    );
    assert!(rejected.data.unwrap() == pattern(1, 1));
}

/// 128 KiB is one command with one list of PRPs, and a batch is one doorbell.
#[test]
fn large_transfers_are_single_commands_and_batches_single_doorbells() {
    let endpoint = endpoint(EndpointSettings::default());
    let mut controller = connect(&endpoint, PcieOptions::default());
    let mut queue = controller.open_queue().unwrap();
    run(&mut queue, &endpoint, write(0, 64), Some(pattern(0, 64)));
    let before = queue.counts();
    for tag in 0..32 {
        queue.submit(read(0, 32), Tag(tag), None).unwrap();
    }
    queue.ring();
    let mut done = Vec::new();
    // All of them are over by then.
    endpoint.advance(endpoint.now() + zonelab_device::Nanos::from_secs(1));
    endpoint.advance(endpoint.now() + zonelab_device::Nanos::from_secs(1));
    assert_eq!(queue.poll(&mut done), 32);
    assert!(done.iter().all(|done| done.status.is_success()));
    let after = queue.counts();
    assert_eq!(after.completions - before.completions, 32);
    assert_eq!(after.submission_doorbells - before.submission_doorbells, 1);
    assert_eq!(after.completion_doorbells - before.completion_doorbells, 1);
}

/// A namespace that is not there, a zone action on all zones, a flush with a buffer.
#[test]
fn commands_without_data_go_through() {
    let endpoint = endpoint(EndpointSettings::default());
    let mut controller = connect(&endpoint, PcieOptions::default());
    let mut queue = controller.open_queue().unwrap();
    assert_eq!(
        run(&mut queue, &endpoint, reset_all(), None).status,
        Status::SUCCESS
    );
    let done = run(
        &mut queue,
        &endpoint,
        command(Op::Flush),
        Some(Buf::zeroed(0)),
    );
    assert_eq!(
        (done.status, done.data.map(|data| data.len())),
        (Status::SUCCESS, Some(0))
    );
    let mut flush = command(Op::Flush);
    flush.nsid = zonelab_device::NamespaceId(9);
    let done = run(&mut queue, &endpoint, flush, None);
    assert_eq!(done.status, Status::INVALID_NAMESPACE_OR_FORMAT);
}
