//! The calls of VFIO (`linux/vfio.h`).

#![expect(
    unsafe_code,
    reason = "an ioctl reads and writes memory that its argument points to"
)]

use core::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

/// The version of the interface that there is.
pub(super) const API_VERSION: i32 = 0;
/// `VFIO_TYPE1v2_IOMMU`.
pub(super) const TYPE1V2: usize = 3;
/// `VFIO_PCI_BAR0_REGION_INDEX`.
pub(super) const BAR0: u32 = 0;
/// `VFIO_PCI_CONFIG_REGION_INDEX`.
pub(super) const CONFIG_SPACE: u32 = 7;
/// `VFIO_PCI_MSIX_IRQ_INDEX`.
const MSIX_IRQ: u32 = 2;
/// `VFIO_PCI_REQ_IRQ_INDEX`: the host asks for the device back.
const REQUEST_IRQ: u32 = 4;

const GROUP_IS_VIABLE: u32 = 1;
const DEVICE_IS_PCI: u32 = 1 << 1;
const REGION_CAN_BE_MAPPED: u32 = 1 << 2;
const DMA_READ_WRITE: u32 = 0b11;
const IOMMU_HAS_CAPABILITIES: u32 = 1 << 1;
const IOMMU_CAP_IOVA_RANGES: u16 = 1;
const IRQ_SET_DATA_EVENTFD: u32 = 1 << 2;
const IRQ_SET_ACTION_TRIGGER: u32 = 1 << 5;

/// Bytes for what the IOMMU says of itself: far more than the few ranges take.
const IOMMU_INFO_BYTES: usize = 4096;

const fn code(number: u8) -> Opcode {
    opcode::none(b';', 100 + number)
}

const GET_API_VERSION: Opcode = code(0);
const CHECK_EXTENSION: Opcode = code(1);
const SET_IOMMU: Opcode = code(2);
const GROUP_GET_STATUS: Opcode = code(3);
const GROUP_SET_CONTAINER: Opcode = code(4);
const GROUP_GET_DEVICE_FD: Opcode = code(6);
const DEVICE_GET_INFO: Opcode = code(7);
const DEVICE_GET_REGION_INFO: Opcode = code(8);
const DEVICE_GET_IRQ_INFO: Opcode = code(9);
const DEVICE_SET_IRQS: Opcode = code(10);
const DEVICE_RESET: Opcode = code(11);
const IOMMU_GET_INFO: Opcode = code(12);
const IOMMU_MAP_DMA: Opcode = code(13);
const IOMMU_UNMAP_DMA: Opcode = code(14);

/// A call whose argument is a number.
struct Number {
    code: Opcode,
    value: usize,
}

// SAFETY: `call_number` is given only codes of calls that take a number and access no
// memory through it.
unsafe impl Ioctl for Number {
    type Output = i32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        self.code
    }

    fn as_ptr(&mut self) -> *mut c_void {
        core::ptr::without_provenance_mut(self.value)
    }

    unsafe fn output_from_ptr(output: IoctlOutput, _: *mut c_void) -> Result<i32, Errno> {
        Ok(output)
    }
}

/// A call whose argument points to a structure.
struct Pointer<'a, T: ?Sized> {
    code: Opcode,
    value: &'a mut T,
}

// SAFETY: `call` is given only codes of calls that access nothing but the structure, whose
// first field says how long it is, and memory that it says.
unsafe impl<T: ?Sized> Ioctl for Pointer<'_, T> {
    type Output = i32;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.code
    }

    fn as_ptr(&mut self) -> *mut c_void {
        core::ptr::from_mut(self.value).cast()
    }

    unsafe fn output_from_ptr(output: IoctlOutput, _: *mut c_void) -> Result<i32, Errno> {
        Ok(output)
    }
}

fn call_number(fd: impl AsFd, code: Opcode, value: usize) -> Result<i32, Errno> {
    // SAFETY: `Number` says so, for the codes that this module passes on.
    unsafe { ioctl(fd, Number { code, value }) }
}

/// # Safety
/// `code` takes a pointer to a `T`, and what the kernel does with memory that `value`
/// names is accounted for.
unsafe fn call<T: ?Sized>(fd: impl AsFd, code: Opcode, value: &mut T) -> Result<i32, Errno> {
    // SAFETY: passed on.
    unsafe { ioctl(fd, Pointer { code, value }) }
}

/// Bytes of a structure, as its first field has them.
const fn argsz<T>() -> u32 {
    size_of::<T>() as u32
}

/// The version of the interface.
pub(super) fn api_version(container: impl AsFd) -> Result<i32, Errno> {
    call_number(container, GET_API_VERSION, 0)
}

/// Whether the container can have such an IOMMU.
pub(super) fn has_extension(container: impl AsFd, which: usize) -> Result<bool, Errno> {
    Ok(call_number(container, CHECK_EXTENSION, which)? > 0)
}

/// Chooses the kind of IOMMU of a container that has a group.
pub(super) fn set_iommu(container: impl AsFd, which: usize) -> Result<(), Errno> {
    call_number(container, SET_IOMMU, which).map(drop)
}

/// Whether no device of the group is used by another driver.
pub(super) fn is_viable(group: impl AsFd) -> Result<bool, Errno> {
    #[repr(C)]
    struct Status {
        argsz: u32,
        flags: u32,
    }
    let mut status = Status {
        argsz: argsz::<Status>(),
        flags: 0,
    };
    // SAFETY: this call fills a `Status`.
    unsafe { call(group, GROUP_GET_STATUS, &mut status) }?;
    Ok(status.flags & GROUP_IS_VIABLE != 0)
}

/// Puts a group into a container.
pub(super) fn set_container(group: impl AsFd, container: RawFd) -> Result<(), Errno> {
    let mut container = container;
    // SAFETY: this call reads a file descriptor from where it is pointed to.
    unsafe { call(group, GROUP_SET_CONTAINER, &mut container) }.map(drop)
}

/// Opens a device of a group. `name` is its PCI address.
pub(super) fn device(group: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    // It ends with a zero, whatever the name.
    let mut text: Vec<u8> = name.bytes().take_while(|byte| *byte != 0).collect();
    text.push(0);
    // SAFETY: this call reads a text up to the zero that ends it.
    let device = unsafe { call(group, GROUP_GET_DEVICE_FD, text.as_mut_slice()) }?;
    // SAFETY: it has just been opened for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(device) })
}

/// Whether the device is one of PCI.
pub(super) fn is_pci(device: impl AsFd) -> Result<bool, Errno> {
    #[repr(C)]
    struct Info {
        argsz: u32,
        flags: u32,
        num_regions: u32,
        num_irqs: u32,
    }
    let mut info = Info {
        argsz: argsz::<Info>(),
        flags: 0,
        num_regions: 0,
        num_irqs: 0,
    };
    // SAFETY: this call fills an `Info`, whose length it is told.
    unsafe { call(device, DEVICE_GET_INFO, &mut info) }?;
    Ok(info.flags & DEVICE_IS_PCI != 0)
}

/// Where a region of a device is in its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) bytes: u64,
    pub(super) offset: u64,
    /// Whether it can be mapped into memory.
    pub(super) can_be_mapped: bool,
}

/// Where region `index` is.
pub(super) fn region(device: impl AsFd, index: u32) -> Result<Region, Errno> {
    #[repr(C)]
    struct Info {
        argsz: u32,
        flags: u32,
        index: u32,
        cap_offset: u32,
        size: u64,
        offset: u64,
    }
    let mut info = Info {
        argsz: argsz::<Info>(),
        flags: 0,
        index,
        cap_offset: 0,
        size: 0,
        offset: 0,
    };
    // SAFETY: this call fills an `Info`, whose length it is told.
    unsafe { call(device, DEVICE_GET_REGION_INFO, &mut info) }?;
    Ok(Region {
        bytes: info.size,
        offset: info.offset,
        can_be_mapped: info.flags & REGION_CAN_BE_MAPPED != 0,
    })
}

/// Has `eventfd` signalled when the host wants the device back.
pub(super) fn watch_requests(device: impl AsFd, eventfd: RawFd) -> Result<(), Errno> {
    #[repr(C)]
    struct Set {
        argsz: u32,
        flags: u32,
        index: u32,
        start: u32,
        count: u32,
        eventfd: RawFd,
    }
    let mut set = Set {
        argsz: argsz::<Set>(),
        flags: IRQ_SET_DATA_EVENTFD | IRQ_SET_ACTION_TRIGGER,
        index: REQUEST_IRQ,
        start: 0,
        count: 1,
        eventfd,
    };
    // SAFETY: this call reads a header and as many descriptors as that says, here one.
    unsafe { call(device, DEVICE_SET_IRQS, &mut set) }.map(drop)
}

/// Vectors of MSI-X that the device has, and the host can use.
pub(super) fn vectors(device: impl AsFd) -> Result<u32, Errno> {
    #[repr(C)]
    struct Info {
        argsz: u32,
        flags: u32,
        index: u32,
        count: u32,
    }
    let mut info = Info {
        argsz: argsz::<Info>(),
        flags: 0,
        index: MSIX_IRQ,
        count: 0,
    };
    // SAFETY: this call fills an `Info`, whose length it is told.
    unsafe { call(device, DEVICE_GET_IRQ_INFO, &mut info) }?;
    Ok(info.count)
}

/// Switches MSI-X on, and has the eventfd of each vector signalled by it; `None`: that
/// vector signals nothing.
pub(super) fn connect_vectors(
    device: impl AsFd,
    eventfds: &[Option<BorrowedFd<'_>>],
) -> Result<(), Errno> {
    const HEADER_WORDS: usize = 5;
    const NO_EVENTFD: RawFd = -1;
    // `struct vfio_irq_set`: argsz, flags, index, start, count, and the descriptors.
    let bytes = 4 * (HEADER_WORDS + eventfds.len());
    let flags = IRQ_SET_DATA_EVENTFD | IRQ_SET_ACTION_TRIGGER;
    let mut set = vec![bytes as u32, flags, MSIX_IRQ, 0, eventfds.len() as u32];
    let number = |fd: &Option<BorrowedFd<'_>>| fd.map_or(NO_EVENTFD, |fd| fd.as_raw_fd());
    set.extend(eventfds.iter().map(|fd| number(fd).cast_unsigned()));
    // SAFETY: this call reads a header and as many descriptors as that says, which follow.
    unsafe { call(device, DEVICE_SET_IRQS, set.as_mut_slice()) }.map(drop)
}

/// Resets the function, if it can be reset alone.
pub(super) fn reset(device: impl AsFd) -> Result<(), Errno> {
    call_number(device, DEVICE_RESET, 0).map(drop)
}

/// The I/O virtual addresses that can be mapped, first and last; all of 39 bits if the
/// kernel does not say, which every IOMMU has.
pub(super) fn iova_ranges(container: impl AsFd) -> Result<Vec<(u64, u64)>, Errno> {
    const ALL: (u64, u64) = (0, (1 << 39) - 1);
    // Words, since the kernel may look at them as such: argsz and flags, iova_pgsizes,
    // cap_offset, and the capabilities.
    let mut info = vec![0_u64; IOMMU_INFO_BYTES / 8];
    info[0] = u64::from_ne_bytes(pair(IOMMU_INFO_BYTES as u32, 0));
    // SAFETY: this call fills at most as many bytes as the first field says.
    unsafe { call(container, IOMMU_GET_INFO, info.as_mut_slice()) }?;
    let bytes: Vec<u8> = info.iter().flat_map(|word| word.to_ne_bytes()).collect();
    Ok(ranges_of(&bytes).unwrap_or_else(|| vec![ALL]))
}

fn pair(low: u32, high: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&low.to_ne_bytes());
    bytes[4..].copy_from_slice(&high.to_ne_bytes());
    bytes
}

/// The ranges in a `struct vfio_iommu_type1_info`, if they are there and well formed.
fn ranges_of(info: &[u8]) -> Option<Vec<(u64, u64)>> {
    let u16_at = |at: usize| Some(u16::from_ne_bytes(info.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_ne_bytes(info.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?));
    if u32_at(4)? & IOMMU_HAS_CAPABILITIES == 0 {
        return None;
    }
    let mut at = u32_at(16)? as usize;
    // Each is further on than the one before, so this ends.
    while at != 0 {
        let next = u32_at(at + 4)? as usize;
        if u16_at(at)? == IOMMU_CAP_IOVA_RANGES {
            let count = u32_at(at + 8)? as usize;
            let ranges = (0..count).map(|range| {
                let first = at + 16 + 16 * range;
                Some((u64_at(first)?, u64_at(first + 8)?))
            });
            return ranges
                .collect::<Option<Vec<_>>>()
                .filter(|all| !all.is_empty());
        }
        at = if next > at { next } else { 0 };
    }
    None
}

/// Memory of this process, and where a device finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) address: u64,
    pub(super) iova: u64,
    pub(super) bytes: u64,
}

/// Lets the devices of a container access memory, and pins it.
///
/// # Safety
/// The memory is mapped in this process until [`unmap`] has been called, and nothing in
/// the program depends on what it holds but by ways that allow the device to change it
/// at any time.
pub(super) unsafe fn map(container: impl AsFd, place: Place) -> Result<(), Errno> {
    #[repr(C)]
    struct Map {
        argsz: u32,
        flags: u32,
        vaddr: u64,
        iova: u64,
        size: u64,
    }
    let mut map = Map {
        argsz: argsz::<Map>(),
        flags: DMA_READ_WRITE,
        vaddr: place.address,
        iova: place.iova,
        size: place.bytes,
    };
    // SAFETY: this call reads a `Map`; the rest is the caller's promise.
    unsafe { call(container, IOMMU_MAP_DMA, &mut map) }.map(drop)
}

/// Ends that. False: it did not, and the device may still access the memory.
pub(super) fn unmap(container: impl AsFd, place: Place) -> bool {
    #[repr(C)]
    struct Unmap {
        argsz: u32,
        flags: u32,
        iova: u64,
        size: u64,
    }
    let mut unmap = Unmap {
        argsz: argsz::<Unmap>(),
        flags: 0,
        iova: place.iova,
        size: place.bytes,
    };
    // SAFETY: this call reads an `Unmap` and writes to its `size` what it has unmapped.
    let result = unsafe { call(container, IOMMU_UNMAP_DMA, &mut unmap) };
    result.is_ok() && unmap.size == place.bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `struct vfio_iommu_type1_info` with capabilities, as the kernel lays it out.
    fn info(flags: u32, capabilities: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = vec![0; 24];
        bytes[4..8].copy_from_slice(&flags.to_ne_bytes());
        let mut link = 16;
        for (id, body) in capabilities {
            let at = bytes.len() as u32;
            bytes[link..link + 4].copy_from_slice(&at.to_ne_bytes());
            link = bytes.len() + 4;
            bytes.extend(id.to_ne_bytes());
            bytes.extend(1_u16.to_ne_bytes());
            bytes.extend(0_u32.to_ne_bytes());
            bytes.extend(body);
        }
        bytes
    }

    fn ranges(all: &[(u64, u64)]) -> Vec<u8> {
        let mut body = (all.len() as u32).to_ne_bytes().to_vec();
        body.extend(0_u32.to_ne_bytes());
        for (first, last) in all {
            body.extend(first.to_ne_bytes());
            body.extend(last.to_ne_bytes());
        }
        body
    }

    #[test]
    fn the_ranges_are_found_among_the_capabilities() {
        let two = [(0, 0xfedf_ffff), (0xfef0_0000, (1 << 39) - 1)];
        let all = [(2, vec![0; 16]), (IOMMU_CAP_IOVA_RANGES, ranges(&two))];
        assert_eq!(
            ranges_of(&info(IOMMU_HAS_CAPABILITIES, &all)),
            Some(two.to_vec())
        );
        assert_eq!(ranges_of(&info(0, &all)), None);
        assert_eq!(ranges_of(&info(IOMMU_HAS_CAPABILITIES, &all[..1])), None);
    }

    #[test]
    fn a_list_that_leads_astray_ends() {
        let all = [(IOMMU_CAP_IOVA_RANGES, ranges(&[(0, 1 << 20)]))];
        let whole = info(IOMMU_HAS_CAPABILITIES, &all);
        for end in 0..whole.len() {
            assert_eq!(ranges_of(&whole[..end]), None, "cut at {end}");
        }
        let mut round = info(IOMMU_HAS_CAPABILITIES, &[(2, vec![0; 8])]);
        round[28..32].copy_from_slice(&24_u32.to_ne_bytes());
        assert_eq!(ranges_of(&round), None);
    }
}
