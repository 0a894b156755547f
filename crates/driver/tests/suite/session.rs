//! Controller and queue against a peer behind a socket.

use zonelab_device::{
    Buf, Command, Completion, Lba, Nanos, Op, QueuePair, RejectReason, Tag, ZonedInfo,
};
use zonelab_driver::url::TcpAddress;
use zonelab_driver::{Backoff, DriverError, Options, TcpController, TcpQueue};
use zonelab_driver::{Controller as _, IoQueue as _};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ReportFilter;

use crate::bytes::pattern;
use crate::peer::{BLOCKS, FATAL_LBA, LBA, Peer};

fn options(url: &str) -> Options {
    Options::new(TcpAddress::parse(url).unwrap())
}

fn connect(peer: &Peer, query: &str) -> TcpController {
    TcpController::connect(options(&peer.url(query))).unwrap()
}

/// Submits, and waits for `count` completions.
fn run(queue: &mut TcpQueue, ops: Vec<(Op, Option<Buf>)>) -> Vec<Completion> {
    let count = ops.len();
    for (tag, (op, data)) in (0..).zip(ops) {
        queue.submit(Command::new(op), Tag(tag), data).unwrap();
    }
    queue.ring();
    let mut done = Vec::new();
    while done.len() < count {
        if queue.poll(&mut done) == 0 {
            let until = queue.now().saturating_add(Nanos::from_secs(10));
            queue.wait(until).unwrap();
        }
    }
    done.sort_by_key(|completion| completion.tag);
    done
}

fn read(slba: u64, nlb: u32) -> Op {
    let slba = Lba(slba);
    Op::Read { slba, nlb }
}

fn write(slba: u64, nlb: u32) -> Op {
    let slba = Lba(slba);
    Op::Write { slba, nlb }
}

#[test]
fn a_controller_says_what_it_is() {
    let peer = Peer::start();
    let controller = connect(&peer, "");
    let info = controller.info();
    assert_eq!(info.model, "HAND WRITTEN");
    assert_eq!(
        (info.max_transfer_bytes, info.max_append_bytes),
        (128 << 10, 64 << 10)
    );
    assert_eq!(info.namespaces.len(), 1);
    let namespace = &info.namespaces[0];
    assert_eq!(
        (namespace.lba_bytes, namespace.size_lbas),
        (512, BLOCKS as u64)
    );
    let expected = ZonedInfo {
        zones: 4,
        zone_size_lbas: 16,
        zone_capacity_lbas: 12,
        max_active: Some(3),
        max_open: Some(2),
        read_across_zones: false,
        descriptor_extension_bytes: 0,
        zrwa: None,
    };
    assert_eq!(namespace.zoned, Some(expected));
    assert_eq!((controller.cntlid(), controller.granted_queues()), (7, 1));
}

#[test]
fn data_goes_there_and_back_with_and_without_digests() {
    for query in ["", "?hdgst=1", "?ddgst=1", "?hdgst=1&ddgst=1"] {
        let peer = Peer::start();
        let mut controller = connect(&peer, query);
        let mut queue = controller.open_queue().unwrap();
        // MQES is 31, so 32 entries.
        assert_eq!(queue.depth(), 31);
        let small = pattern(2 * LBA);
        let large = pattern(24 * LBA);
        let done = run(
            &mut queue,
            vec![
                (write(0, 2), Some(Buf::from(small.clone()))),
                (write(2, 24), Some(Buf::from(large.clone()))),
                (Op::Flush, None),
            ],
        );
        assert!(done.iter().all(|done| done.status.is_success()), "{done:?}");
        let done = run(
            &mut queue,
            vec![
                (read(0, 26), Some(Buf::zeroed(26 * LBA))),
                (read(2, 24), None),
                (read(2, 24), None),
            ],
        );
        let expected = [small, large].concat();
        assert_eq!(&done[0].data.as_ref().unwrap()[..], expected);
        assert!(done[1].status.is_success() && done[1].data.is_none());
        let state = peer.state.lock().unwrap();
        assert_eq!((state.in_capsule_writes, state.r2t_writes), (1, 1));
    }
}

#[test]
fn appends_and_reports_carry_their_results() {
    let peer = Peer::start();
    let mut queue = connect(&peer, "").open_queue().unwrap();
    let append = Op::Append {
        zslba: Lba(16),
        nlb: 1,
    };
    let report = Op::ZoneReceive {
        slba: Lba(0),
        filter: ReportFilter::ALL,
        partial: true,
        extended: false,
    };
    let done = run(
        &mut queue,
        vec![
            (append, Some(Buf::zeroed(LBA))),
            (report, Some(Buf::zeroed(4096))),
        ],
    );
    assert_eq!((done[0].status, done[0].result), (Status::SUCCESS, 16));
    assert_eq!(done[1].data.as_ref().unwrap()[..2], [4, 0]);
}

#[test]
fn commands_that_cannot_be_right_complete_with_a_status() {
    let peer = Peer::start();
    let mut queue = connect(&peer, "").open_queue().unwrap();
    let done = run(
        &mut queue,
        vec![
            (read(0, 2), Some(Buf::zeroed(LBA))),
            (read(0, 0), Some(Buf::zeroed(0))),
            (write(0, 65_537), None),
            (read(60, 8), None),
        ],
    );
    let statuses: Vec<_> = done.iter().map(|done| done.status).collect();
    let invalid = Status::INVALID_FIELD;
    assert_eq!(
        statuses,
        [invalid, invalid, invalid, Status::LBA_OUT_OF_RANGE]
    );
    assert!(queue.last_status().dnr());
}

#[test]
fn a_lost_connection_ends_all_commands_and_can_be_made_anew() {
    let peer = Peer::start();
    let mut controller = connect(&peer, "");
    let mut queue = controller.open_queue().unwrap();
    let lost = vec![
        (read(FATAL_LBA, 1), Some(Buf::zeroed(LBA))),
        (read(0, 1), Some(Buf::zeroed(LBA))),
        (write(0, 1), None),
    ];
    for done in run(&mut queue, lost) {
        assert_eq!(done.status, Status::HOST_PATHING_ERROR);
        assert_eq!(done.data.is_some(), done.tag != Tag(2));
    }
    assert!(queue.error().is_some());
    let buf = Some(Buf::zeroed(LBA));
    let rejected = queue
        .submit(Command::new(read(0, 1)), Tag(0), buf)
        .unwrap_err();
    assert_eq!(rejected.reason, RejectReason::Disconnected);
    assert_eq!(rejected.data.unwrap().len(), LBA);
    controller.reconnect(&Backoff::default()).unwrap();
    let mut queue = controller.open_queue().unwrap();
    assert!(
        run(&mut queue, vec![(read(0, 1), None)])[0]
            .status
            .is_success()
    );
}

#[test]
fn a_full_queue_gives_the_buffer_back() {
    let peer = Peer::start();
    let mut options = options(&peer.url(""));
    options.queue_entries = 3;
    let mut controller = TcpController::connect(options).unwrap();
    let mut queue = controller.open_queue().unwrap();
    for tag in 0..2 {
        queue
            .submit(Command::new(read(0, 1)), Tag(tag), None)
            .unwrap();
    }
    let buf = Some(Buf::zeroed(LBA));
    let rejected = queue
        .submit(Command::new(read(0, 1)), Tag(2), buf)
        .unwrap_err();
    assert!(matches!(
        rejected.reason,
        RejectReason::QueueFull { depth: 2, .. }
    ));
    assert!(rejected.data.is_some());
    let none_left = controller.open_queue().unwrap_err();
    assert!(matches!(none_left, DriverError::Unusable { .. }));
}

#[test]
fn keep_alives_are_sent_and_answered() {
    let peer = Peer::start();
    let mut options = options(&peer.url(""));
    options.kato_ms = 5_000;
    let quiet = TcpController::connect(options.clone());
    assert_eq!(peer.state.lock().unwrap().kato_ms, 5_000);
    // Not yet due.
    quiet.unwrap().keep_alive().unwrap();
    assert_eq!(peer.state.lock().unwrap().keep_alives, 0);
    options.kato_ms = 1_000;
    let mut controller = TcpController::connect(options).unwrap();
    while peer.state.lock().unwrap().keep_alives < 2 {
        controller.keep_alive().unwrap();
        std::thread::yield_now();
    }
}

#[test]
fn a_disconnect_shuts_the_controller_down() {
    let peer = Peer::start();
    connect(&peer, "").disconnect().unwrap();
    let cc = peer.state.lock().unwrap().cc;
    assert_eq!(cc >> 14 & 3, 1, "normal shutdown");
    assert_eq!(cc & 1, 1, "it stays enabled");
}

#[test]
fn refusals_are_named_and_a_silent_port_is_no_drive() {
    let peer = Peer::start();
    let url = format!("tcp://127.0.0.1:{}/nqn.2024-01.org.example:none", peer.port);
    let refused = TcpController::connect(options(&url)).unwrap_err();
    assert!(!refused.is_unreachable());
    let message = refused.to_string();
    for says in [
        "has no subsystem \"nqn.2024-01.org.example:none\"",
        &format!(
            "zonelab nvme discover --device tcp://127.0.0.1:{}`",
            peer.port
        ),
        "Connect Invalid Parameters (0x182), do not retry",
    ] {
        assert!(message.contains(says), "{says}: {message}");
    }
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let url = format!("tcp://127.0.0.1:{port}/nqn.a");
    let unreachable = TcpController::connect(options(&url)).unwrap_err();
    assert!(unreachable.is_unreachable(), "{unreachable}");
}
