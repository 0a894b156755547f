//! Commands of a queue pair as entries, for every transport.

use zonelab_device::{Command, DeviceInfo, NamespaceId, Op};
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    Compare, CopyCommand, CopyRange, DatasetManagement, DatasetRange, Flush, OutOfRange, Read,
    Verify, Write, WriteZeroes, ZoneAppend, ZoneManagementReceive, ZoneManagementSend,
};
use zonelab_nvme::queue::SubmissionEntry;
use zonelab_nvme::zns::ZoneReceiveAction;

/// Where the data of a command goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    None,
    ToHost,
    ToController,
}

/// A command as it goes to the controller, but for its identifier and data pointer.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) entry: SubmissionEntry,
    /// Bytes of data.
    pub(crate) bytes: usize,
    pub(crate) direction: Direction,
}

/// The entry of a command that came with a buffer of `given` bytes, if with one.
///
/// # Errors
/// The status with which it completes: it has no entry, or a buffer of the wrong
/// length.
#[inline]
pub(crate) fn prepare(
    info: &DeviceInfo,
    command: &Command,
    given: Option<usize>,
) -> Result<Prepared, Status> {
    let prepared = entry(info, command, given.unwrap_or(0))?;
    let is_right = match command.op {
        // What is in the buffer decides what they do.
        Op::Compare { .. } | Op::Deallocate { .. } | Op::Copy { .. } => {
            given == Some(prepared.bytes)
        }
        _ => given.is_none_or(|given| given == prepared.bytes),
    };
    match is_right {
        true => Ok(prepared),
        false => Err(Status::INVALID_FIELD),
    }
}

/// The entry of a command, and how many bytes of data it has: in blocks of
/// the namespace, or by its buffer.
fn entry(info: &DeviceInfo, command: &Command, buffer_bytes: usize) -> Result<Prepared, Status> {
    let nsid = command.nsid.0;
    let bytes = |nlb: u32| {
        let namespace = info.namespace(NamespaceId(nsid));
        let lba_bytes = namespace.map(|namespace| u64::from(namespace.lba_bytes));
        // The controller knows what to say of a namespace that is not there.
        usize::try_from(u64::from(nlb) * lba_bytes.unwrap_or(0)).map_err(|_| Status::INVALID_FIELD)
    };
    let (entry, bytes, direction) = match command.op {
        Op::Read { slba, nlb } => {
            let entry = Read::new(nsid, slba.0, nlb).to_entry();
            (entry.map_err(out_of_range)?, bytes(nlb)?, Direction::ToHost)
        }
        Op::Write { slba, nlb } => {
            let entry = Write::new(nsid, slba.0, nlb).to_entry();
            let entry = entry.map_err(out_of_range)?;
            (entry, bytes(nlb)?, Direction::ToController)
        }
        Op::Append { zslba, nlb } => {
            let entry = ZoneAppend::new(nsid, zslba.0, nlb).to_entry();
            let entry = entry.map_err(out_of_range)?;
            (entry, bytes(nlb)?, Direction::ToController)
        }
        Op::WriteZeroes { slba, nlb } => {
            let entry = WriteZeroes::new(nsid, slba.0, nlb).to_entry();
            (entry.map_err(out_of_range)?, 0, Direction::None)
        }
        Op::Compare { slba, nlb } => {
            let entry = Compare::new(nsid, slba.0, nlb).to_entry();
            let entry = entry.map_err(out_of_range)?;
            (entry, bytes(nlb)?, Direction::ToController)
        }
        Op::Verify { slba, nlb } => {
            let entry = Verify::new(nsid, slba.0, nlb).to_entry();
            (entry.map_err(out_of_range)?, 0, Direction::None)
        }
        Op::Deallocate { ranges } => {
            let entry = DatasetManagement::deallocate(nsid, ranges).to_entry();
            let bytes = usize::from(ranges) * size_of::<DatasetRange>();
            (entry.map_err(out_of_range)?, bytes, Direction::ToController)
        }
        Op::Copy { sdlba, ranges } => {
            let entry = CopyCommand::new(nsid, sdlba.0, ranges).to_entry();
            let bytes = usize::from(ranges) * size_of::<CopyRange>();
            (entry.map_err(out_of_range)?, bytes, Direction::ToController)
        }
        Op::Flush => (Flush { nsid }.to_entry(), 0, Direction::None),
        Op::ZoneSend {
            slba,
            action,
            select_all,
        } => {
            let mut send = ZoneManagementSend::new(nsid, slba.0, action);
            send.select_all = select_all;
            (send.to_entry(), buffer_bytes, Direction::ToController)
        }
        Op::ZrwaSend { slba, action } => {
            let mut send = ZoneManagementSend::new(nsid, slba.0, action);
            send.zsaso = true;
            (send.to_entry(), buffer_bytes, Direction::ToController)
        }
        Op::ZoneReceive {
            slba,
            filter,
            partial,
            extended,
        } => {
            let zra = match extended {
                true => ZoneReceiveAction::EXTENDED_REPORT_ZONES,
                false => ZoneReceiveAction::REPORT_ZONES,
            };
            let receive = ZoneManagementReceive {
                zra,
                filter,
                partial,
                ..ZoneManagementReceive::new(nsid, slba.0, buffer_bytes as u64 / 4)
            };
            let entry = receive.to_entry().map_err(out_of_range)?;
            (entry, buffer_bytes, Direction::ToHost)
        }
    };
    Ok(Prepared {
        entry,
        bytes,
        direction,
    })
}

/// Zero blocks, or more than NLB holds.
fn out_of_range(_: OutOfRange) -> Status {
    Status::INVALID_FIELD
}
