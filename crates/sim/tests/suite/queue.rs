//! Emulated queue pairs: depth, buffers, and what they say of the drive.

use zonelab_device::{Buf, Command, DeviceQueue, Lba, Nanos, Op, QueuePair, RejectReason, Tag};
use zonelab_host::{CoreId, NextWake, Reactor, Rng, StopSignal, VirtualClock};

use super::support::{FREE, PAGE, ZONE, costs_us, first_write, script, tiny};

/// Two fit; the third is refused with its buffer, and goes when one is back.
#[test]
fn a_full_queue_gives_the_buffer_back() {
    for costs in [FREE, costs_us(1, 1)] {
        let device = tiny(&["data.store=memory"]);
        let queue = device.open_queue(2, costs, Rng::new(1, 1));
        let id = queue.id();
        let mut steps = 0;
        let mut job = script(|_, done, queue| {
            steps += 1;
            if steps > 1 {
                let buffer = done[0].data.take().expect("the buffer comes back");
                assert_eq!(buffer.len(), 16_384);
                if steps == 2 {
                    queue.submit(first_write(2), Tag(2), Some(buffer)).unwrap();
                }
                return if steps == 4 {
                    NextWake::Finished
                } else {
                    NextWake::Completion
                };
            }
            for zone in 0..2 {
                let data = Some(Buf::zeroed(16_384));
                queue
                    .submit(first_write(zone), Tag(zone as u32), data)
                    .unwrap();
            }
            let before = queue.now();
            let data = Buf::from(vec![7_u8; 16_384]);
            let rejected = queue
                .submit(first_write(2), Tag(2), Some(data.clone()))
                .unwrap_err();
            assert_eq!(
                rejected.reason,
                RejectReason::QueueFull {
                    queue: id,
                    depth: 2
                }
            );
            assert_eq!(rejected.data, Some(data));
            assert_eq!(queue.now(), before, "what is refused costs nothing");
            NextWake::Completion
        });
        let mut reactor = Reactor::new(
            VirtualClock::default(),
            device.clone(),
            StopSignal::default(),
        );
        reactor.add(&mut job, queue, CoreId(0), Nanos::ZERO);
        assert_eq!(reactor.run().stuck_jobs, 0);
        assert_eq!(steps, 4);
        assert_eq!(
            device.with_drive(|drive| drive.totals().host_write_bytes),
            3 * 16_384
        );
    }
}

/// A slot is free again when its completion is taken, not when the drive has
/// posted it.
#[test]
fn depth_counts_what_has_not_been_taken() {
    let device = tiny(&[]);
    let mut queue = device.open_queue(1, FREE, Rng::new(1, 1));
    let read = Command::new(Op::Read {
        slba: Lba(0),
        nlb: PAGE,
    });
    queue.submit(read, Tag(0), None).unwrap();
    assert!(queue.submit(read, Tag(1), None).is_err());
    let mut done = Vec::new();
    assert_eq!(
        queue.poll(&mut done),
        0,
        "nothing arrives while nobody runs the drive"
    );
    assert!(queue.submit(read, Tag(1), None).is_err());
}

#[test]
fn a_queue_of_no_depth_takes_nothing() {
    let device = tiny(&[]);
    let mut queue = device.open_queue(0, FREE, Rng::new(1, 1));
    let rejected = queue.submit(first_write(0), Tag(0), None).unwrap_err();
    assert!(matches!(
        rejected.reason,
        RejectReason::QueueFull { depth: 0, .. }
    ));
}

#[test]
fn queues_have_ids_of_their_own_and_know_the_drive() {
    let device = tiny(&[]);
    let (a, b) = (
        device.open_queue(1, FREE, Rng::new(1, 1)),
        device.open_queue(1, FREE, Rng::new(1, 1)),
    );
    assert_ne!(a.id(), b.id());
    assert_eq!(a.info(), device.info());
    let zoned = b.info().namespaces[0].zoned.expect("it is zoned");
    assert_eq!((zoned.zones, zoned.zone_size_lbas), (8, ZONE));
}

/// Appends with data, on two queues, to one zone: each gets its own completion,
/// with its own tag, address and buffer.
#[test]
fn completions_go_to_the_queue_they_belong_to() {
    let device = tiny(&["data.store=memory"]);
    let append = Command::new(Op::Append {
        zslba: Lba(0),
        nlb: PAGE,
    });
    let mut results = Vec::new();
    let job = |number: u32| {
        script(move |_, done, queue| {
            if let Some(completion) = done.first() {
                assert_eq!(completion.tag, Tag(number));
                let data = completion.data.as_deref().expect("the buffer comes back");
                assert!(data.iter().all(|byte| u32::from(*byte) == number));
                assert_eq!(completion.result, u64::from(number * PAGE));
                return NextWake::Finished;
            }
            let data = Buf::from(vec![number as u8; 16_384]);
            queue.submit(append, Tag(number), Some(data)).unwrap();
            NextWake::Completion
        })
    };
    let (mut a, mut b) = (job(0), job(1));
    let end = super::support::run_on_cores(&device, FREE, &mut [(&mut a, 0), (&mut b, 1)]);
    assert_eq!(end.stuck_jobs, 0);

    let read = Command::new(Op::Read {
        slba: Lba(0),
        nlb: 2 * PAGE,
    });
    let mut reader = script(|_, done, queue| {
        if let Some(completion) = done.first_mut() {
            results = completion
                .data
                .take()
                .expect("the buffer comes back")
                .to_vec();
            return NextWake::Finished;
        }
        queue
            .submit(read, Tag(0), Some(Buf::zeroed(2 * 16_384)))
            .unwrap();
        NextWake::Completion
    });
    let clock = VirtualClock::starting_at(end.at);
    let mut reactor = Reactor::new(clock, device.clone(), StopSignal::default());
    reactor.add(
        &mut reader,
        device.open_queue(1, FREE, Rng::new(1, 1)),
        CoreId(0),
        end.at,
    );
    reactor.run();
    let expected = [vec![0_u8; 16_384], vec![1_u8; 16_384]].concat();
    assert!(results == expected, "what was appended is read");
}
