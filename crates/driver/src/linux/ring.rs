//! An io_uring of one thread for one node.
//!
//! Memory that the kernel may read or write belongs to the ring from the
//! submission of a command to its completion: it is in a slot that nothing touches
//! meanwhile, and whoever drops the ring waits for the kernel, or leaves the memory
//! to it.
#![expect(
    unsafe_code,
    reason = "io_uring reads and writes memory that its entries point to"
)]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use zonelab_device::Buf;
use zonelab_nvme::queue::SubmissionEntry;

use super::node::Node;

/// `NVME_URING_CMD_IO`: `_IOWR('N', 0x80, struct nvme_uring_cmd)`, of 72 bytes.
const URING_CMD_IO: u32 = 0xc048_4e80;

/// Bytes of `struct nvme_uring_cmd`.
const COMMAND_BYTES: usize = 72;

/// Entries that one system call may submit without the kernel collecting them
/// first. Linux before 6.13 hands what it has collected to the driver in the
/// opposite order, which writes to a zone do not survive.
const UNCOLLECTED: u32 = 2;

/// A page of memory, aligned as direct I/O needs it.
#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// What to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// An NVMe command, of a generic device.
    Command(SubmissionEntry),
    /// Read from this byte of a block device.
    Read(u64),
    /// Write from this byte of a block device on.
    Write(u64),
    /// Make written data of a block device durable.
    Sync,
}

/// The memory of a command.
#[derive(Debug)]
pub(super) enum Memory {
    /// None.
    None,
    /// This buffer. It is given back.
    Given(Buf),
    /// So many bytes of the slot's own, whatever is in them.
    Own(usize),
    /// As many bytes of the slot's own as the buffer has, which are copied from it
    /// before. It is given back.
    CopiedFrom(Buf),
    /// The same, copied into it after.
    CopiedTo(Buf),
}

impl Memory {
    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Given(buf) | Self::CopiedFrom(buf) | Self::CopiedTo(buf) => buf.len(),
            Self::Own(bytes) => *bytes,
        }
    }

    /// The buffer that came with it.
    pub(super) fn into_buf(self) -> Option<Buf> {
        match self {
            Self::None | Self::Own(_) => None,
            Self::Given(buf) | Self::CopiedFrom(buf) | Self::CopiedTo(buf) => Some(buf),
        }
    }
}

/// A command that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) token: u64,
    /// Of an NVMe command its status without the phase bit, of others the number
    /// of bytes; a negative errno if the kernel ended it.
    pub(super) outcome: i32,
    /// Of an NVMe command dwords 0 and 1 of its completion.
    pub(super) result: u64,
    /// Bytes of its memory.
    pub(super) bytes: usize,
    pub(super) data: Option<Buf>,
}

/// A command that was not taken, because the ring is full: its memory.
#[derive(Debug)]
pub(super) struct Full(pub(super) Memory);

/// A place for a command in flight.
#[derive(Default)]
struct Slot {
    /// Where the command is, if there is one.
    flying: Option<Flying>,
    /// Memory of the slot's own, for commands without a buffer and for copies.
    own: Vec<Page>,
    /// Pages of it that are registered with the kernel.
    registered_pages: usize,
}

struct Flying {
    token: u64,
    memory: Memory,
}

/// Makes the smallest ring of the kind that [`Ring`] has, and closes it.
pub(super) fn try_one() -> io::Result<()> {
    let ring = IoUring::<squeue::Entry128, cqueue::Entry32>::builder().build(1);
    ring.map(drop)
}

/// An io_uring.
pub(super) struct Ring {
    ring: IoUring<squeue::Entry128, cqueue::Entry32>,
    node: Arc<Node>,
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Commands in the submission ring that the kernel has not been told of.
    unsubmitted: u32,
    /// Whether one of them must not be overtaken.
    has_ordered: bool,
    /// Whether slots can register their memory.
    has_fixed: bool,
    is_polled: bool,
    timeout_ms: u32,
}

impl core::fmt::Debug for Ring {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ring")
            .field("node", &self.node.path)
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}

impl Ring {
    /// Opens a ring for `depth` commands in flight. With `is_polled` the driver's
    /// polled queues are used, and completions have to be looked for.
    ///
    /// # Errors
    /// The kernel has no io_uring with entries of 128 bytes (5.19 and later), or
    /// forbids it.
    pub(super) fn open(
        node: &Arc<Node>,
        depth: u16,
        is_polled: bool,
        timeout_ms: u32,
    ) -> io::Result<Self> {
        let mut builder = IoUring::<squeue::Entry128, cqueue::Entry32>::builder();
        if is_polled {
            builder.setup_iopoll();
        }
        let ring = builder.build(u32::from(depth).next_power_of_two())?;
        // A table of buffers without any: slots register theirs when they have one.
        let has_fixed = ring.submitter().register_buffers_sparse(depth.into());
        Ok(Self {
            ring,
            node: Arc::clone(node),
            slots: (0..depth).map(|_| Slot::default()).collect(),
            free: (0..depth).rev().collect(),
            unsubmitted: 0,
            has_ordered: false,
            has_fixed: has_fixed.is_ok(),
            is_polled,
            timeout_ms,
        })
    }

    /// Commands that were submitted and have not ended.
    pub(super) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Commands that wait for [`Self::flush`].
    pub(super) fn has_unsubmitted(&self) -> bool {
        self.unsubmitted > 0
    }

    /// What becomes readable when something has ended.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the ring's, which lives as long as the borrow.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }

    /// Takes a command, which the kernel is told of by [`Self::flush`]. One that is
    /// ordered is not overtaken by those after it on their way to the driver.
    ///
    /// # Errors
    /// As many are in flight as there are slots.
    pub(super) fn submit(
        &mut self,
        work: Work,
        memory: Memory,
        token: u64,
        is_ordered: bool,
    ) -> Result<(), Full> {
        let Some(place) = self.free.pop() else {
            return Err(Full(memory));
        };
        let index = usize::from(place);
        let bytes = memory.len();
        self.slots[index].flying = Some(Flying { token, memory });
        let (address, fixed) = self.address(index);
        let entry = self.entry(work, address, bytes as u32, fixed);
        let entry = entry.user_data(place.into());
        // SAFETY: the memory at `address` is `bytes` long. It belongs to the slot,
        // which nothing touches until `reap` takes the completion of this entry.
        // The node is open as long as the ring.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() {
            // The submission ring has an entry for each slot; one is never missing
            // unless the kernel was not told of others.
            let flying = self.slots[index].flying.take();
            self.free.push(place);
            return Err(Full(flying.map_or(Memory::None, |flying| flying.memory)));
        }
        self.unsubmitted += 1;
        self.has_ordered |= is_ordered;
        Ok(())
    }

    /// Where the memory of the command in a slot is, and its place in the kernel's
    /// table if it is registered.
    fn address(&mut self, index: usize) -> (*mut u8, Option<u16>) {
        let Slot { flying, own, .. } = &mut self.slots[index];
        let memory = flying.as_mut().map(|flying| &mut flying.memory);
        let bytes = memory.as_ref().map_or(0, |memory| memory.len());
        if bytes == 0 {
            return (core::ptr::null_mut(), None);
        }
        if let Some(Memory::Given(buf)) = memory {
            return (buf.as_mut_ptr(), None);
        }
        let pages = bytes.div_ceil(size_of::<Page>());
        if own.len() < pages {
            own.resize(pages, Page([0; 4096]));
        }
        let start: *mut u8 = own.as_mut_ptr().cast();
        if let Some(Memory::CopiedFrom(buf)) = memory {
            // SAFETY: `own` has at least as many bytes as `buf`, they are its own,
            // and no command of this slot is in flight yet.
            unsafe { core::ptr::copy_nonoverlapping(buf.as_ptr(), start, buf.len()) };
        }
        (start, self.registered(index))
    }

    /// Registers the own memory of a slot, unless it is. `None`: the kernel takes
    /// no more of it, so that it has to be looked up for each command.
    fn registered(&mut self, index: usize) -> Option<u16> {
        if !self.has_fixed {
            return None;
        }
        let slot = &mut self.slots[index];
        if slot.registered_pages != slot.own.len() {
            let memory = libc::iovec {
                iov_base: slot.own.as_mut_ptr().cast(),
                iov_len: slot.own.len() * size_of::<Page>(),
            };
            let submitter = self.ring.submitter();
            // SAFETY: the memory is the slot's. It moves only when it grows, when
            // no command uses it; what was registered before is replaced here.
            let done = unsafe { submitter.register_buffers_update(index as u32, &[memory], None) };
            if done.is_err() {
                // The limit of locked memory, most likely.
                self.has_fixed = false;
                return None;
            }
            slot.registered_pages = slot.own.len();
        }
        u16::try_from(index).ok()
    }

    fn entry(
        &self,
        work: Work,
        address: *mut u8,
        bytes: u32,
        fixed: Option<u16>,
    ) -> squeue::Entry128 {
        let node = types::Fd(self.node.as_fd().as_raw_fd());
        match (work, fixed) {
            (Work::Command(entry), fixed) => {
                let command = command(&entry, address, bytes, self.timeout_ms);
                let built = opcode::UringCmd80::new(node, URING_CMD_IO).cmd(command);
                built.buf_index(fixed).build()
            }
            (Work::Read(offset), Some(index)) => {
                let built = opcode::ReadFixed::new(node, address, bytes, index);
                built.offset(offset).build().into()
            }
            (Work::Read(offset), None) => {
                let built = opcode::Read::new(node, address, bytes);
                built.offset(offset).build().into()
            }
            (Work::Write(offset), Some(index)) => {
                let built = opcode::WriteFixed::new(node, address, bytes, index);
                built.offset(offset).build().into()
            }
            (Work::Write(offset), None) => {
                let built = opcode::Write::new(node, address, bytes);
                built.offset(offset).build().into()
            }
            (Work::Sync, _) => opcode::Fsync::new(node).build().into(),
        }
    }

    /// Tells the kernel of everything that was submitted.
    ///
    /// # Errors
    /// The kernel takes nothing any more. That it takes nothing just now is none:
    /// the rest waits for the next call.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.unsubmitted > 0 {
            let count = match self.has_ordered {
                true => self.unsubmitted.min(UNCOLLECTED),
                false => self.unsubmitted,
            };
            match self.enter(count, 0) {
                Ok(0) => return Ok(()),
                Ok(taken) => self.unsubmitted -= (taken as u32).min(self.unsubmitted),
                Err(error) if is_passing(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.has_ordered = false;
        Ok(())
    }

    /// Waits until something has ended.
    ///
    /// # Errors
    /// The kernel does not wait.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        match self.enter(0, 1) {
            Err(error) if !is_passing(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn enter(&self, submit: u32, wait: u32) -> io::Result<usize> {
        /// `IORING_ENTER_GETEVENTS`.
        const GET_EVENTS: u32 = 1;
        let flags = match wait > 0 || self.is_polled {
            true => GET_EVENTS,
            false => 0,
        };
        // SAFETY: without an argument the call passes no memory but that of the
        // entries, of which `submit` has seen to.
        unsafe { self.ring.submitter().enter::<()>(submit, wait, flags, None) }
    }

    /// Gives what has ended to `each`.
    ///
    /// # Errors
    /// The kernel does not look for completions.
    pub(super) fn reap(&mut self, mut each: impl FnMut(Done)) -> io::Result<()> {
        let has_lost = self.ring.submission().cq_overflow();
        if (self.is_polled && self.in_flight() > self.unsubmitted as usize) || has_lost {
            match self.enter(0, 0) {
                Err(error) if !is_passing(&error) => return Err(error),
                _ => {}
            }
        }
        let Self {
            ring, slots, free, ..
        } = self;
        for entry in ring.completion() {
            let place = entry.user_data() as u16;
            let Some(slot) = slots.get_mut(usize::from(place)) else {
                continue;
            };
            // Each entry completes once.
            let Some(Flying { token, memory }) = slot.flying.take() else {
                continue;
            };
            free.push(place);
            let bytes = memory.len();
            let data = match memory {
                Memory::CopiedTo(mut buf) => {
                    let start: *const u8 = slot.own.as_ptr().cast();
                    // SAFETY: `own` has at least as many bytes as `buf` since the
                    // submission, and the command that wrote to them has ended.
                    unsafe { core::ptr::copy_nonoverlapping(start, buf.as_mut_ptr(), buf.len()) };
                    Some(buf)
                }
                memory => memory.into_buf(),
            };
            each(Done {
                token,
                outcome: entry.result(),
                result: entry.big_cqe()[0],
                bytes,
                data,
            });
        }
        Ok(())
    }
}

impl Drop for Ring {
    /// Waits for the kernel to let go of the memory; it ends every command within
    /// its time limit. What it does not let go of is never freed.
    fn drop(&mut self) {
        let is_busy = |ring: &Self| ring.in_flight() > ring.unsubmitted as usize;
        while is_busy(self) {
            let ended = self.wait().and_then(|()| self.reap(drop));
            if ended.is_err() {
                mem::forget(mem::take(&mut self.slots));
                return;
            }
        }
    }
}

/// Whether the same call may succeed later.
fn is_passing(error: &io::Error) -> bool {
    let passing = [libc::EAGAIN, libc::EBUSY, libc::EINTR];
    error
        .raw_os_error()
        .is_some_and(|errno| passing.contains(&errno))
}

/// `struct nvme_uring_cmd`, in the bytes that an entry has for it.
fn command(entry: &SubmissionEntry, address: *mut u8, bytes: u32, timeout_ms: u32) -> [u8; 80] {
    let mut command = [0; 80];
    let address = (address as u64).to_ne_bytes();
    let parts: [(usize, &[u8]); 12] = [
        (0, &[entry.cdw0.opc()]),
        (4, &entry.nsid.get().to_ne_bytes()),
        (8, &entry.cdw2.get().to_ne_bytes()),
        (12, &entry.cdw3.get().to_ne_bytes()),
        (24, &address),
        (36, &bytes.to_ne_bytes()),
        (40, &entry.cdw10.get().to_ne_bytes()),
        (44, &entry.cdw11.get().to_ne_bytes()),
        (48, &entry.cdw12.get().to_ne_bytes()),
        (52, &entry.cdw13.get().to_ne_bytes()),
        (56, &entry.cdw14.get().to_ne_bytes()),
        (60, &entry.cdw15.get().to_ne_bytes()),
    ];
    for (offset, bytes) in parts {
        command[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    command[64..68].copy_from_slice(&timeout_ms.to_ne_bytes());
    const { assert!(COMMAND_BYTES <= 80) };
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonelab_nvme::command::ZoneAppend;

    #[test]
    fn a_command_is_where_the_kernel_reads_it() {
        let entry = ZoneAppend::new(3, 0x1_0000_8000, 16).to_entry().unwrap();
        let bytes = command(&entry, 0x7f00_1234_5000 as *mut u8, 65536, 30_000);
        assert_eq!((bytes[0], bytes[4]), (0x7d, 3));
        assert_eq!(bytes[24..32], 0x7f00_1234_5000_u64.to_ne_bytes());
        assert_eq!(bytes[36..40], 65536_u32.to_ne_bytes());
        assert_eq!(bytes[40..48], 0x1_0000_8000_u64.to_ne_bytes());
        assert_eq!(bytes[48..52], 15_u32.to_ne_bytes());
        assert_eq!(bytes[64..68], 30_000_u32.to_ne_bytes());
        assert!(bytes[68..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn the_call_has_the_size_of_its_argument() {
        let (direction, kind, number) = (3_u32, u32::from(b'N'), 0x80);
        let size = COMMAND_BYTES as u32;
        assert_eq!(
            URING_CMD_IO,
            direction << 30 | size << 16 | kind << 8 | number
        );
    }
}
