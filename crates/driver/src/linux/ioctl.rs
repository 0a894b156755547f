//! The passthrough calls of the kernel's NVMe driver (`linux/nvme_ioctl.h`).
#![expect(
    unsafe_code,
    reason = "an ioctl reads and writes memory that its argument points to"
)]

use core::ffi::c_void;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use zonelab_nvme::queue::SubmissionEntry;

/// `NVME_IOCTL_ID`: the namespace identifier of a node.
const ID: Opcode = opcode::none(b'N', 0x40);
/// `NVME_IOCTL_ADMIN64_CMD`.
const ADMIN: Opcode = opcode::read_write::<Command>(b'N', 0x47);
/// `NVME_IOCTL_IO64_CMD`.
const IO: Opcode = opcode::read_write::<Command>(b'N', 0x48);

/// `struct nvme_passthru_cmd64`.
#[derive(Debug, Default)]
#[repr(C)]
struct Command {
    opcode: u8,
    flags: u8,
    rsvd1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    rsvd2: u32,
    result: u64,
}

const _: () = assert!(size_of::<Command>() == 80);

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// The status field without its phase bit: 0 is success.
    pub(super) status: u16,
    /// Dwords 0 and 1 of the completion.
    pub(super) result: u64,
}

/// A passthrough call. The memory that `command` points to is borrowed by whoever
/// made it for as long as the call takes.
struct Passthrough<'a> {
    code: Opcode,
    command: &'a mut Command,
}

// SAFETY: `code` is one of the two calls that take a pointer to a `Command` and
// write to nothing but it and the data that it points to.
unsafe impl Ioctl for Passthrough<'_> {
    type Output = u16;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.code
    }

    fn as_ptr(&mut self) -> *mut c_void {
        core::ptr::from_mut(self.command).cast()
    }

    unsafe fn output_from_ptr(output: IoctlOutput, _: *mut c_void) -> Result<u16, Errno> {
        // Fifteen bits: the kernel passes on what the controller said.
        Ok((output & 0x7fff) as u16)
    }
}

/// Asks for the namespace identifier of a node.
struct NamespaceId;

// SAFETY: the call takes no argument, and returns the identifier.
unsafe impl Ioctl for NamespaceId {
    type Output = u32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        ID
    }

    fn as_ptr(&mut self) -> *mut c_void {
        core::ptr::null_mut()
    }

    unsafe fn output_from_ptr(output: IoctlOutput, _: *mut c_void) -> Result<u32, Errno> {
        Ok(output as u32)
    }
}

/// The namespace identifier of a node.
pub(super) fn namespace_id(node: BorrowedFd<'_>) -> Result<u32, Errno> {
    // SAFETY: the call passes no memory.
    unsafe { ioctl(node, NamespaceId) }
}

/// Sends an admin command and waits for its end.
pub(super) fn admin(
    node: BorrowedFd<'_>,
    entry: &SubmissionEntry,
    data: &mut [u8],
    timeout_ms: u32,
) -> Result<Ended, Errno> {
    send(ADMIN, node, entry, data, timeout_ms)
}

/// Sends an I/O command and waits for its end.
pub(super) fn io(
    node: BorrowedFd<'_>,
    entry: &SubmissionEntry,
    data: &mut [u8],
    timeout_ms: u32,
) -> Result<Ended, Errno> {
    send(IO, node, entry, data, timeout_ms)
}

fn send(
    code: Opcode,
    node: BorrowedFd<'_>,
    entry: &SubmissionEntry,
    data: &mut [u8],
    timeout_ms: u32,
) -> Result<Ended, Errno> {
    let data_len = u32::try_from(data.len()).map_err(|_| Errno::INVAL)?;
    let mut command = Command {
        opcode: entry.cdw0.opc(),
        nsid: entry.nsid.get(),
        cdw2: entry.cdw2.get(),
        cdw3: entry.cdw3.get(),
        addr: match data_len {
            0 => 0,
            _ => data.as_mut_ptr() as u64,
        },
        data_len,
        cdw10: entry.cdw10.get(),
        cdw11: entry.cdw11.get(),
        cdw12: entry.cdw12.get(),
        cdw13: entry.cdw13.get(),
        cdw14: entry.cdw14.get(),
        cdw15: entry.cdw15.get(),
        timeout_ms,
        ..Command::default()
    };
    let call = Passthrough {
        code,
        command: &mut command,
    };
    // SAFETY: the call returns when the command has ended. Until then `data`, which
    // the kernel reads or writes as the opcode says, is borrowed mutably, and
    // `data_len` is its length.
    let status = unsafe { ioctl(node, call) }?;
    Ok(Ended {
        status,
        result: command.result,
    })
}
