//! Making and deleting queues, from both sides.

use zonelab_driver::pcie::{DmaMemory, PcieController, PcieOptions};
use zonelab_driver::tcp::Transfer;
use zonelab_endpoint::{Endpoint, EndpointSettings};
use zonelab_nvme::Status;
use zonelab_nvme::command::{CreateIoCompletionQueue, CreateIoSubmissionQueue, DeleteIoQueue};
use zonelab_nvme::queue::SubmissionEntry;

use crate::drive::{connect, endpoint, pattern, read, run, write};

fn status(controller: &mut PcieController<Endpoint>, entry: SubmissionEntry) -> Status {
    let reply = controller.admin(entry, Transfer::None).unwrap();
    reply.entry.status.status()
}

/// A queue that is made again begins with phase 1 and zeroed memory, however often the
/// last of its number went round.
#[test]
fn a_queue_is_made_again() {
    for has_shadow_doorbells in [false, true] {
        let settings = EndpointSettings {
            has_shadow_doorbells,
            ..EndpointSettings::default()
        };
        let endpoint = endpoint(settings);
        let options = PcieOptions {
            queue_entries: 3,
            ..PcieOptions::default()
        };
        let mut controller = connect(&endpoint, options);
        let regions = endpoint.memory().regions();
        for round in 0..5 {
            let mut queue = controller.open_queue().unwrap();
            assert_eq!(queue.id().0, 1);
            for at in 0..round + 3 {
                let done = run(&mut queue, &endpoint, read(at, 1), None);
                assert!(done.status.is_success());
            }
            controller.close_queue(queue).unwrap();
        }
        assert!(
            endpoint.memory().regions() < regions,
            "the memory of queues is given back"
        );
        assert_eq!(endpoint.bad_doorbells(), 0);
    }
}

/// What a controller must refuse.
#[test]
fn bad_queues_are_refused() {
    let endpoint = endpoint(EndpointSettings {
        io_queues: 4,
        ..EndpointSettings::default()
    });
    let mut controller = connect(&endpoint, PcieOptions::default());
    let ring = endpoint.allocate(64 * 1024).unwrap();
    let good = CreateIoCompletionQueue {
        qid: 2,
        entries: 16,
        prp1: ring.iova(),
        contiguous: true,
        vector: None,
    };
    for (create, expected) in [
        (
            CreateIoCompletionQueue { qid: 0, ..good },
            Status::INVALID_QUEUE_IDENTIFIER,
        ),
        (
            CreateIoCompletionQueue { qid: 1, ..good },
            Status::INVALID_QUEUE_IDENTIFIER,
        ),
        (
            CreateIoCompletionQueue { qid: 5, ..good },
            Status::INVALID_QUEUE_IDENTIFIER,
        ),
        (
            CreateIoCompletionQueue {
                entries: 4096,
                ..good
            },
            Status::INVALID_QUEUE_SIZE,
        ),
        (
            CreateIoCompletionQueue {
                contiguous: false,
                ..good
            },
            Status::INVALID_FIELD,
        ),
        (
            CreateIoCompletionQueue {
                prp1: good.prp1 + 8,
                ..good
            },
            Status::PRP_OFFSET_INVALID,
        ),
        (
            CreateIoCompletionQueue { prp1: 0, ..good },
            Status::DATA_TRANSFER_ERROR,
        ),
        (
            CreateIoCompletionQueue {
                vector: Some(EndpointSettings::default().interrupt_vectors),
                ..good
            },
            Status::INVALID_INTERRUPT_VECTOR,
        ),
    ] {
        let entry = create.to_entry().unwrap();
        assert_eq!(status(&mut controller, entry), expected, "{create:?}");
    }
}

/// A submission queue needs its completion queue, which goes after it.
#[test]
fn queues_are_made_and_deleted_in_order() {
    let endpoint = endpoint(EndpointSettings::default());
    let mut controller = connect(&endpoint, PcieOptions::default());
    let ring = endpoint.allocate(64 * 1024).unwrap();
    let completion = CreateIoCompletionQueue {
        qid: 2,
        entries: 16,
        prp1: ring.iova(),
        contiguous: true,
        vector: None,
    };
    let submission = CreateIoSubmissionQueue {
        qid: 2,
        entries: 16,
        prp1: ring.iova(),
        contiguous: true,
        priority: 0,
        cqid: 2,
    };
    let delete = |is_submission| {
        let qid = 2;
        DeleteIoQueue { qid, is_submission }.to_entry()
    };
    let (completion, submission) = (
        completion.to_entry().unwrap(),
        submission.to_entry().unwrap(),
    );
    for (entry, expected) in [
        (submission, Status::CQ_INVALID),
        (completion, Status::SUCCESS),
        (submission, Status::SUCCESS),
        (submission, Status::INVALID_QUEUE_IDENTIFIER),
        (delete(false), Status::INVALID_QUEUE_DELETION),
        (delete(true), Status::SUCCESS),
        (delete(false), Status::SUCCESS),
        (delete(false), Status::INVALID_QUEUE_IDENTIFIER),
    ] {
        assert_eq!(status(&mut controller, entry), expected);
    }
}

/// Two queues at once do not get into each other's way.
#[test]
fn queues_are_apart() {
    let endpoint = endpoint(EndpointSettings::default());
    let options = PcieOptions {
        queues: 2,
        queue_entries: 4,
        ..PcieOptions::default()
    };
    let mut controller = connect(&endpoint, options);
    let mut first = controller.open_queue().unwrap();
    let mut second = controller.open_queue().unwrap();
    for at in 0..20 {
        let queue = if at % 3 == 0 { &mut first } else { &mut second };
        let done = run(queue, &endpoint, write(at, 1), Some(pattern(at, 1)));
        assert!(done.status.is_success());
        let other = if at % 2 == 0 { &mut first } else { &mut second };
        let done = run(other, &endpoint, read(at, 1), Some(pattern(99, 1)));
        assert!(done.data.unwrap() == pattern(at, 1));
    }
}
