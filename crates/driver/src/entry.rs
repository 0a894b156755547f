//! Commands of host software as submission queue entries.

use zonelab_device::{Command, DeviceInfo, NamespaceId, Op};
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    Compare, CopyCommand, CopyRange, DatasetManagement, DatasetRange, Flush, OutOfRange, Read,
    Verify, Write, WriteZeroes, ZoneAppend, ZoneManagementReceive, ZoneManagementSend,
};
use zonelab_nvme::queue::SubmissionEntry;
use zonelab_nvme::zns::ZoneReceiveAction;

/// Zero blocks, or more than NLB holds.
fn out_of_range(_: OutOfRange) -> Status {
    Status::INVALID_FIELD
}

/// Where the data of a command goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    None,
    ToHost,
    ToController,
}

/// A command that can be sent, whatever the transport.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    /// Its entry, without identifier and data pointer.
    pub(crate) entry: SubmissionEntry,
    /// Bytes of its data.
    pub(crate) bytes: usize,
    pub(crate) direction: Direction,
}

impl Prepared {
    /// The entry of a command that came with a buffer of `given` bytes.
    ///
    /// # Errors
    /// The status it ends with: a value has no place in the entry, or the buffer
    /// has another length than the command moves.
    pub(crate) fn new(
        info: &DeviceInfo,
        command: &Command,
        given: Option<usize>,
    ) -> Result<Self, Status> {
        let prepared = entry(info, command, given.unwrap_or(0))?;
        let is_wrong = match command.op {
            // What is in the buffer decides what they do.
            Op::Compare { .. } | Op::Deallocate { .. } | Op::Copy { .. } => {
                given != Some(prepared.bytes)
            }
            _ => given.is_some_and(|given| given != prepared.bytes),
        };
        match is_wrong {
            true => Err(Status::INVALID_FIELD),
            false => Ok(prepared),
        }
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
