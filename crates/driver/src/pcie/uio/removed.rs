//! Registers of a device that is removed.
//!
//! When a function goes, the kernel takes its registers out of every mapping, and an access
//! of them raises SIGBUS. A driver wants to read all ones, as from any function that is gone.
//! So each mapping has spare memory of ones, which the handler of that signal moves to its
//! place; the access is then made again.

#![expect(unsafe_code, reason = "handles a signal, and moves memory into place")]

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use std::os::fd::AsFd;
use std::sync::{Arc, Once};

use rustix::io::Errno;
use rustix::mm::MremapFlags;

use crate::pcie::mapping::{self, Pages};
use crate::pcie::mmio::MappedBar;

/// Mappings that there can be at once: each is of one controller.
const MAPPINGS: usize = 64;

/// States of an entry.
const FREE: u8 = 0;
const BEING_SET: u8 = 1;
const WATCHED: u8 = 2;
const REPLACED: u8 = 3;
const FAILED: u8 = 4;

/// A mapping that is watched. The handler can only use what needs no lock.
struct Entry {
    state: AtomicU8,
    first: AtomicUsize,
    bytes: AtomicUsize,
    spare: AtomicPtr<c_void>,
}

static ENTRIES: [Entry; MAPPINGS] = [const {
    Entry {
        state: AtomicU8::new(FREE),
        first: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        spare: AtomicPtr::new(ptr::null_mut()),
    }
}; MAPPINGS];

/// What was done about the signal before. It is set once, and never freed.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Registers, and what stands in for them.
struct Watched {
    entry: &'static Entry,
    /// The registers, or the spare memory in their place.
    registers: Arc<Pages>,
    /// There until it is moved.
    spare: Option<Pages>,
}

/// Maps `bytes` bytes of registers from the start of `file`, such that they read as all ones
/// once the device is removed.
pub(super) fn map_registers(file: impl AsFd, bytes: usize) -> Result<MappedBar, Errno> {
    let registers = Arc::new(Pages::of_file(file, 0, bytes)?);
    let watched = Watched::new(Arc::clone(&registers))?;
    // SAFETY: the mapping is one of BAR 0, and `watched` keeps it.
    Ok(unsafe { mapping::bar(&registers, Arc::new(watched)) })
}

impl Watched {
    fn new(registers: Arc<Pages>) -> Result<Self, Errno> {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(install);
        if BEFORE.load(Ordering::Acquire).is_null() {
            return Err(Errno::NOTSUP);
        }
        let bytes = registers.bytes();
        let spare = Pages::zeroed(bytes)?;
        // SAFETY: it has just been mapped with that length, for nobody else.
        unsafe { spare.first().cast::<u8>().write_bytes(u8::MAX, bytes) };
        let free = |entry: &&Entry| {
            let states = (Ordering::Acquire, Ordering::Relaxed);
            let state = &entry.state;
            state
                .compare_exchange(FREE, BEING_SET, states.0, states.1)
                .is_ok()
        };
        let entry = ENTRIES.iter().find(free).ok_or(Errno::MFILE)?;
        let first = registers.first().as_ptr().expose_provenance();
        entry.first.store(first, Ordering::Relaxed);
        entry.bytes.store(bytes, Ordering::Relaxed);
        let at = spare.first().as_ptr();
        entry.spare.store(at, Ordering::Relaxed);
        entry.state.store(WATCHED, Ordering::Release);
        Ok(Self {
            entry,
            registers,
            spare: Some(spare),
        })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Nobody accesses the registers any more, so the handler does not change this.
        let state = self.entry.state.swap(FREE, Ordering::AcqRel);
        if state == REPLACED {
            // Its memory is where the registers were, and goes with them.
            core::mem::forget(self.spare.take());
        }
        debug_assert_eq!(
            self.entry.first.load(Ordering::Relaxed),
            self.registers.first().as_ptr().addr()
        );
    }
}

/// Has the signal handled.
fn install() {
    let mut action = no_action();
    action.sa_sigaction = on_bus_error as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    let before = Box::into_raw(Box::new(no_action()));
    // The handler may be called as soon as it is installed.
    BEFORE.store(before, Ordering::Release);
    // SAFETY: both point to structures of ours, and the handler keeps to what a handler may
    // do.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, before) } != 0 {
        BEFORE.store(ptr::null_mut(), Ordering::Release);
    }
}

fn no_action() -> libc::sigaction {
    // SAFETY: a structure of numbers, for which zeros mean the default.
    unsafe { core::mem::zeroed() }
}

/// Puts ones in the place of registers that are gone, and leaves all else to what was there
/// before. It uses atomics and system calls alone, and not `errno`.
extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel hands a handler with SA_SIGINFO a structure that says more.
    let info = unsafe { &*info };
    // SAFETY: SIGBUS comes with an address.
    let address = unsafe { info.si_addr() }.addr();
    if ENTRIES.iter().any(|entry| entry.replaces(address)) {
        return;
    }
    let before = BEFORE.load(Ordering::Acquire);
    // The access is made again, and raises the signal again. If that should fail, it is
    // tried over and over.
    // SAFETY: `before` is what the kernel said was installed.
    let _ = unsafe { libc::sigaction(signal, before, ptr::null_mut()) };
}

impl Entry {
    /// Replaces the registers if `address` is among them. False: it is not.
    fn replaces(&self, address: usize) -> bool {
        let state = self.state.load(Ordering::Acquire);
        let first = self.first.load(Ordering::Relaxed);
        let bytes = self.bytes.load(Ordering::Relaxed);
        let is_inside = address.checked_sub(first).is_some_and(|at| at < bytes);
        if !is_inside || !matches!(state, WATCHED | REPLACED) {
            return false;
        }
        let (set, seen) = (Ordering::AcqRel, Ordering::Acquire);
        let won = self.state.compare_exchange(WATCHED, REPLACED, set, seen);
        // Another thread is at it: the access is made again until that is done.
        if won.is_err() {
            return true;
        }
        let spare = self.spare.load(Ordering::Relaxed);
        let to = ptr::with_exposed_provenance_mut(first);
        // SAFETY: both are mappings of ours of that length, and nobody has a pointer to the
        // spare one. At once the ones are in the place of registers that are no more.
        let moved =
            unsafe { rustix::mm::mremap_fixed(spare, bytes, bytes, MremapFlags::MAYMOVE, to) };
        if moved.is_err() {
            self.state.store(FAILED, Ordering::Release);
        }
        moved.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcie::bus::Registers as _;
    use rustix::fs::MemfdFlags;

    /// A file that gets shorter raises the same signal as a device that is removed.
    #[test]
    fn registers_that_are_gone_read_as_ones() {
        const BYTES: usize = 8192;
        let file = rustix::fs::memfd_create("registers", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, BYTES as u64).unwrap();
        for _ in 0..3 {
            let bar = map_registers(&file, BYTES).unwrap();
            bar.write32(0x14, 0x0046_0001);
            assert_eq!(bar.read32(0x14), 0x0046_0001);
            rustix::fs::ftruncate(&file, 0).unwrap();
            let seen: Vec<u32> = std::thread::scope(|scope| {
                let reads = [0x1c, 0x14, 0x1004].map(|at| {
                    let bar = &bar;
                    scope.spawn(move || bar.read32(at))
                });
                reads.map(|read| read.join().unwrap()).to_vec()
            });
            assert_eq!(seen, [u32::MAX; 3]);
            // A write is lost, as one to a function that is gone.
            bar.write32(0x1000, 7);
            assert_eq!(bar.read32(0x1c), u32::MAX);
            drop(bar);
            rustix::fs::ftruncate(&file, BYTES as u64).unwrap();
        }
    }
}
