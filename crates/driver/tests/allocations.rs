//! Writing to a zone allocates nothing: counted by the allocator of this program.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;

use zonelab_device::{
    Buf, Command, Completion, DeviceInfo, Found, NamespaceId, NamespaceInfo, Nanos, Op, QueueId,
    QueuePair, Rejected, Tag, ZoneId, ZonedInfo,
};
use zonelab_driver::zones::{Settings, ZonedNamespace};
use zonelab_nvme::Status;
use zonelab_nvme::zerocopy::IntoBytes;
use zonelab_nvme::zns::{ReportHeader, ZoneDescriptor, ZoneState};

const LBA: usize = 4096;
const ZONE: u64 = 4096;

std::thread_local! {
    /// Allocations of this thread.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, and a count.
struct Counting;

#[expect(
    unsafe_code,
    reason = "an allocator is the only one who sees allocations"
)]
// SAFETY: all calls go to the system's allocator as they came; the count has no destructor and
// needs no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller keeps the contract of the same function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of the same function.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One zone, whose commands all succeed at once, and whose data is nowhere.
struct Nowhere {
    info: DeviceInfo,
    written: u64,
    ended: VecDeque<Completion>,
}

impl Nowhere {
    fn new() -> Self {
        let zoned = ZonedInfo {
            zones: 1,
            zone_size_lbas: ZONE,
            zone_capacity_lbas: ZONE,
            max_active: None,
            max_open: None,
            read_across_zones: false,
            descriptor_extension_bytes: 0,
            zrwa: None,
        };
        let namespace = NamespaceInfo {
            placements: None,
            lba_bytes: LBA as u32,
            size_lbas: ZONE,
            zoned: Some(zoned),
            copy: None,
        };
        Self {
            info: DeviceInfo {
                model: "nowhere".to_owned(),
                namespaces: vec![namespace],
                max_transfer_bytes: u32::MAX,
                max_append_bytes: u32::MAX,
                has_volatile_cache: false,
            },
            written: 0,
            ended: VecDeque::with_capacity(64),
        }
    }
}

impl QueuePair for Nowhere {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        Nanos::ZERO
    }

    fn submit(
        &mut self,
        command: Command,
        tag: Tag,
        mut data: Option<Buf>,
    ) -> Result<(), Rejected> {
        let result = self.written;
        match command.op {
            Op::Write { nlb, .. } | Op::Append { nlb, .. } => self.written += u64::from(nlb),
            Op::ZoneReceive { .. } => {
                let mut zone = ZoneDescriptor::sequential(ZoneState::EMPTY);
                zone.zcap = ZONE.into();
                let header = ReportHeader {
                    nr_zones: 1.into(),
                    ..ReportHeader::default()
                };
                let report = data.as_deref_mut().unwrap();
                report[..64].copy_from_slice(header.as_bytes());
                report[64..128].copy_from_slice(zone.as_bytes());
            }
            _ => {}
        }
        self.ended.push_back(Completion {
            queue: QueueId(1),
            tag,
            status: Status::SUCCESS,
            at: Nanos::ZERO,
            result,
            found: Found::Unknown,
            data,
        });
        Ok(())
    }

    fn ring(&mut self) {}

    fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let count = self.ended.len();
        done.extend(self.ended.drain(..));
        count
    }
}

#[test]
fn writes_reads_and_appends_allocate_nothing() {
    let nsid = NamespaceId::FIRST;
    let namespace = ZonedNamespace::open(Nowhere::new(), nsid, Settings::default()).unwrap();
    let mut zone = namespace.zone(ZoneId(0)).unwrap().open().unwrap();
    let mut bufs: Vec<Buf> = (0..32).map(|_| Buf::zeroed(LBA)).collect();

    let before = COUNT.get();
    assert!(before > 0, "it counts");
    for _ in 0..100 {
        let written = zone.write(bufs.pop().unwrap()).unwrap();
        let read = zone.read(written.lba, written.data).unwrap();
        bufs.push(zone.append(read).unwrap().data);
    }
    let mut appender = zone.appender().unwrap();
    for _ in 0..10 {
        while let Some(buf) = bufs.pop() {
            appender.start(buf).unwrap();
        }
        while let Some(ended) = appender.next() {
            bufs.push(ended.unwrap().data);
        }
    }
    drop(appender);
    // What is refused costs nothing either.
    let mut buf = bufs.pop().unwrap();
    for _ in 0..10 {
        buf = zone
            .read(zone.write_pointer(), buf)
            .unwrap_err()
            .data
            .unwrap();
    }
    assert_eq!(COUNT.get() - before, 0);
    assert_eq!(zone.write_pointer().0, 200 + 320);
}
