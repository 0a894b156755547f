//! Data by SGLs: the driver's, beside PRPs, and what a host should not send.

use std::sync::atomic::Ordering;

use proptest::prelude::{ProptestConfig, Strategy, prop_oneof, proptest};
use zonelab_device::{Buf, Nanos};
use zonelab_driver::pcie::doorbell::Stride;
use zonelab_driver::pcie::pair::{PairSettings, RingPair};
use zonelab_driver::pcie::{DmaMemory, DmaRegion, Function, PcieController, PcieOptions};
use zonelab_driver::tcp::Transfer;
use zonelab_endpoint::{Endpoint, EndpointSettings};
use zonelab_nvme::Status;
use zonelab_nvme::command::{CreateIoCompletionQueue, CreateIoSubmissionQueue, Read};
use zonelab_nvme::queue::{SglDescriptor, SglId, SglType};
use zonelab_nvme::zerocopy::IntoBytes;

use crate::drive::{CAPACITY, LBA, ZONE, connect, endpoint, fill, pattern, read, run, write};

fn with_sgls(has_sgls: bool) -> Endpoint {
    endpoint(EndpointSettings {
        has_sgls,
        ..EndpointSettings::default()
    })
}

/// A write or read of blocks, through the heap or the driver's own memory.
#[derive(Clone, Debug)]
struct Step {
    zone: u64,
    nlb: u32,
    is_own: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // The sizes about which PRPs get a list, and those for which it gets a second page.
    let nlb = prop_oneof![1_u32..5, 1_u32..64];
    let step = (0_u64..3, nlb, proptest::bool::ANY);
    let step = step.prop_map(|(zone, nlb, is_own)| Step { zone, nlb, is_own });
    proptest::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The same buffers through PRPs and through SGLs reach the same bytes, and come back.
    #[test]
    fn both_ways_reach_the_same_bytes(steps in steps()) {
        let mut both = [false, true].map(|has_sgls| {
            let endpoint = with_sgls(has_sgls);
            let mut controller = connect(&endpoint, PcieOptions::default());
            let queue = controller.open_queue().unwrap();
            (endpoint, controller, queue)
        });
        let mut written = [const { Vec::new() }; 3];
        let mut long = 0;
        for Step { zone, nlb, is_own } in steps {
            let shadow: &mut Vec<u8> = &mut written[zone as usize];
            let at = (shadow.len() / LBA) as u64;
            if at + u64::from(nlb) > CAPACITY {
                continue;
            }
            let slba = zone * ZONE + at;
            shadow.extend_from_slice(&pattern(slba, nlb));
            let from = zone * ZONE + at / 2;
            let count = (slba - from) as u32 + nlb;
            let expected = &shadow[(at / 2) as usize * LBA..];
            long += u64::from(nlb > 2) + u64::from(count > 2);
            for (endpoint, controller, queue) in &mut both {
                let buffer = |bytes: usize| match is_own {
                    true => controller.buffer(bytes).unwrap(),
                    false => Buf::zeroed(bytes),
                };
                let mut data = buffer(nlb as usize * LBA);
                fill(slba, &mut data);
                let done = run(queue, endpoint, write(slba, nlb), Some(data));
                assert_eq!(done.status, Status::SUCCESS);
                let data = buffer(count as usize * LBA);
                let done = run(queue, endpoint, read(from, count), Some(data));
                assert_eq!(done.status, Status::SUCCESS);
                assert!(done.data.unwrap()[..] == *expected, "{count} blocks at {from}");
            }
        }
        for (endpoint, _, _) in &both {
            assert_eq!(endpoint.memory().faults(), 0);
        }
        // What needs a list of PRPs has a descriptor instead, and nothing else has.
        assert_eq!(both[0].0.sgl_commands(), 0);
        assert_eq!(both[1].0.sgl_commands(), long);
    }
}

/// Who does not want SGLs gets lists of PRPs from any controller.
#[test]
fn sgls_can_be_left_out() {
    let endpoint = with_sgls(true);
    let options = PcieOptions {
        has_sgls: false,
        ..PcieOptions::default()
    };
    let mut controller = connect(&endpoint, options);
    let mut queue = controller.open_queue().unwrap();
    let done = run(&mut queue, &endpoint, write(0, 9), Some(pattern(0, 9)));
    assert_eq!(done.status, Status::SUCCESS);
    assert_eq!(endpoint.sgl_commands(), 0);
}

/// A host of its own on a controller with SGLs, which sends any descriptor.
struct Host {
    endpoint: Endpoint,
    rings: RingPair,
    lists: DmaRegion,
    data: DmaRegion,
    // Last: it is dropped last, and disabled.
    _controller: PcieController<Endpoint>,
}

/// Blocks that there are to read.
const BLOCKS: u32 = 8;

impl Host {
    fn new() -> Self {
        let endpoint = with_sgls(true);
        let mut controller = connect(&endpoint, PcieOptions::default());
        let mut queue = controller.open_queue().unwrap();
        let data = Some(pattern(0, BLOCKS));
        let done = run(&mut queue, &endpoint, write(0, BLOCKS), data);
        assert_eq!(done.status, Status::SUCCESS);
        controller.close_queue(queue).unwrap();
        let settings = PairSettings {
            qid: 1,
            entries: 4,
            has_generations: false,
            stride: Stride::from_dstrd(0),
            shadows: None,
        };
        let rings = RingPair::new(&endpoint, &settings).unwrap();
        let (submission, completion) = rings.iovas();
        let (qid, entries, contiguous) = (1, 4, true);
        let create = CreateIoCompletionQueue {
            qid,
            entries,
            prp1: completion,
            contiguous,
            vector: None,
        };
        let made = controller.admin(create.to_entry().unwrap(), Transfer::None);
        made.unwrap().ok("Create").unwrap();
        let create = CreateIoSubmissionQueue {
            qid,
            entries,
            prp1: submission,
            contiguous,
            priority: 0,
            cqid: 1,
        };
        let made = controller.admin(create.to_entry().unwrap(), Transfer::None);
        made.unwrap().ok("Create").unwrap();
        Self {
            lists: endpoint.allocate(8 * LBA).unwrap(),
            data: endpoint.allocate(2 * BLOCKS as usize * LBA).unwrap(),
            endpoint,
            rings,
            _controller: controller,
        }
    }

    /// Stores a segment at `at` bytes in the memory of the lists.
    fn store(&self, at: usize, descriptors: &[SglDescriptor]) {
        let (words, _) = descriptors.as_bytes().as_chunks::<8>();
        for (place, word) in self.lists.words()[at / 8..].iter().zip(words) {
            place.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
    }

    fn segment(&self, at: usize, descriptors: u32, is_last: bool) -> SglDescriptor {
        SglDescriptor::segment(self.lists.iova() + at as u64, 16 * descriptors, is_last)
    }

    /// A block of the memory for data.
    fn block(&self, from: usize, bytes: u32) -> SglDescriptor {
        SglDescriptor::data_block(self.data.iova() + from as u64, bytes)
    }

    /// Reads all blocks to where `sgl` says.
    fn read(&mut self, sgl: SglDescriptor) -> Status {
        let entry = Read::new(1, 0, BLOCKS).to_entry().unwrap();
        self.rings.push(entry.with_sgl(sgl)).unwrap();
        self.rings.ring_submission(&self.endpoint);
        loop {
            self.endpoint.pause(Nanos::from_ms(1));
            if let Some(popped) = self.rings.pop().unwrap() {
                self.rings.ring_completion(&self.endpoint);
                return popped.entry.status.status();
            }
        }
    }

    fn data(&self) -> Vec<u8> {
        let words = self.data.words().iter();
        words
            .flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes())
            .collect()
    }
}

/// Blocks of any length and alignment, in lists of one segment and of several, with empty
/// blocks among them.
#[test]
fn lists_lead_to_pieces() {
    let mut host = Host::new();
    let all = BLOCKS * LBA as u32;
    let expected = pattern(0, BLOCKS);
    assert_eq!(host.read(host.block(13, all)), Status::SUCCESS);
    assert!(host.data()[13..][..all as usize] == expected[..]);
    // The second half, from its odd place, comes first in memory.
    let half = all / 2 + 1;
    let rest = all - half;
    let (first, second) = (host.block(rest as usize, half), host.block(0, rest));
    let (second_a, second_b) = (host.block(0, 7), host.block(7, rest - 7));
    let middle = host.segment(LBA, 2, false);
    let end = host.segment(2 * LBA, 3, true);
    host.store(0, &[first, second]);
    host.store(LBA, &[first, end]);
    host.store(2 * LBA, &[second_a, host.block(0, 0), second_b]);
    for list in [host.segment(0, 2, true), middle, host.segment(0, 2, false)] {
        // A segment that could go on need not.
        assert_eq!(host.read(list), Status::SUCCESS, "{list:?}");
        let found = host.data();
        assert!(found[rest as usize..][..half as usize] == expected[..half as usize]);
        assert!(found[..rest as usize] == expected[half as usize..]);
    }
    assert_eq!(host.endpoint.memory().faults(), 0);
}

/// Whatever a descriptor says, the command ends, and with the status for it.
#[test]
fn bad_lists_are_refused() {
    let mut host = Host::new();
    let all = BLOCKS * LBA as u32;
    let whole = host.block(0, all);
    let of_type = |sgl_type| SglDescriptor {
        id: SglId::default().with_sgl_type(sgl_type),
        ..whole
    };
    // At 0 a list that leads to itself; at LBA one that goes on in its middle; at 2 * LBA
    // the last segment, which leads to another.
    host.store(0, &[host.block(0, 0), host.segment(0, 2, false)]);
    host.store(LBA, &[host.segment(0, 1, true), whole]);
    host.store(2 * LBA, &[host.segment(3 * LBA, 1, true)]);
    host.store(3 * LBA, &[whole]);
    let odd = SglDescriptor {
        length: 24.into(),
        ..host.segment(0, 1, true)
    };
    let nowhere = |is_last| SglDescriptor::segment(0, 16, is_last);
    for (list, expected) in [
        (host.block(0, all - 1), Status::DATA_SGL_LENGTH_INVALID),
        (host.block(0, all + 1), Status::DATA_SGL_LENGTH_INVALID),
        (host.block(0, 0), Status::DATA_SGL_LENGTH_INVALID),
        (
            SglDescriptor::data_block(0, all),
            Status::DATA_TRANSFER_ERROR,
        ),
        (
            of_type(SglType::BIT_BUCKET),
            Status::SGL_DESCRIPTOR_TYPE_INVALID,
        ),
        (
            of_type(SglType::VENDOR_SPECIFIC),
            Status::SGL_DESCRIPTOR_TYPE_INVALID,
        ),
        (
            SglDescriptor::transport(all),
            Status::SGL_DESCRIPTOR_TYPE_INVALID,
        ),
        (
            SglDescriptor::in_capsule(0, all),
            Status::SGL_DESCRIPTOR_TYPE_INVALID,
        ),
        (
            host.segment(0, 0, true),
            Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        ),
        (odd, Status::INVALID_SGL_SEGMENT_DESCRIPTOR),
        (
            host.segment(2 * LBA, 1, true),
            Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        ),
        (host.segment(2 * LBA, 1, false), Status::SUCCESS),
        (
            host.segment(0, 2, false),
            Status::INVALID_SGL_DESCRIPTOR_COUNT,
        ),
        (
            host.segment(LBA, 2, false),
            Status::INVALID_SGL_DESCRIPTOR_COUNT,
        ),
        (
            host.segment(0, 1 << 20, true),
            Status::INVALID_SGL_DESCRIPTOR_COUNT,
        ),
        (nowhere(true), Status::DATA_TRANSFER_ERROR),
        (nowhere(false), Status::DATA_TRANSFER_ERROR),
    ] {
        assert_eq!(host.read(list), expected, "{list:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Any bytes as descriptors, some of which lead to memory: the command ends, and what
    /// is no memory of this host's is not accessed unnoticed.
    #[test]
    fn any_descriptors_are_survived(
        seeds in proptest::collection::vec((0_u8..8, proptest::num::u64::ANY, 0_u32..70_000), 1..64),
    ) {
        let mut host = Host::new();
        let made: Vec<SglDescriptor> = seeds
            .iter()
            .map(|&(kind, address, length)| match kind {
                0..3 => host.block(address as usize % LBA, length % 5000),
                3..6 => host.segment((address as usize % 1024) & !15, length % 40, kind == 3),
                6 => SglDescriptor::data_block(address, length),
                _ => SglDescriptor {
                    id: SglId::default().with_sgl_type(SglType(length as u8 & 15)),
                    address: address.into(),
                    ..SglDescriptor::default()
                },
            })
            .collect();
        host.store(0, &made);
        let _any = host.read(made[0]);
        // It works on.
        assert_eq!(host.read(host.block(0, BLOCKS * LBA as u32)), Status::SUCCESS);
        assert!(host.data().starts_with(&pattern(0, BLOCKS)));
    }
}
