//! Commands of host software as submission queue entries.

use zonelab_device::{Command, DeviceInfo, NamespaceId, Op};
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    Compare, CopyCommand, CopyRange, DatasetManagement, DatasetRange, Flush, IoManagementReceive,
    IoManagementSend, OutOfRange, Read, Verify, Write, WriteZeroes, ZoneAppend,
    ZoneManagementReceive, ZoneManagementSend,
};
use zonelab_nvme::placement::DATA_PLACEMENT_DTYPE;
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
    /// The status it ends with: the queue is not for this namespace, a value has no place
    /// in the entry, or the buffer has another length than the command moves.
    pub(crate) fn new(
        info: &DeviceInfo,
        command: &Command,
        given: Option<usize>,
    ) -> Result<Self, Status> {
        // A queue is for the namespaces that it shows, whoever writes to others by mistake.
        let namespace = info.namespace(command.nsid);
        if namespace.is_none_or(|namespace| namespace.size_lbas == 0) {
            return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
        }
        let prepared = entry(info, command, given.unwrap_or(0))?;
        let is_wrong = match command.op {
            // What is in the buffer decides what they do.
            Op::Compare { .. }
            | Op::Deallocate { .. }
            | Op::Copy { .. }
            | Op::HandleUpdate { .. } => given != Some(prepared.bytes),
            _ => given.is_some_and(|given| given != prepared.bytes),
        };
        match is_wrong {
            true => Err(Status::INVALID_FIELD),
            false => Ok(prepared),
        }
    }
}

/// A write with a placement identifier, of which 0 is what one without directive has.
fn placed(mut write: Write, placement: u16) -> Write {
    if placement != 0 {
        write.dtype = DATA_PLACEMENT_DTYPE;
        write.dspec = placement;
    }
    write
}

/// Which report of zones it is: with descriptor extensions or without.
const fn report(extended: bool) -> ZoneReceiveAction {
    match extended {
        true => ZoneReceiveAction::EXTENDED_REPORT_ZONES,
        false => ZoneReceiveAction::REPORT_ZONES,
    }
}

/// Bytes of some blocks of a namespace.
fn bytes_of(info: &DeviceInfo, nsid: NamespaceId, nlb: u32) -> Result<usize, Status> {
    let namespace = info.namespace(nsid);
    let lba_bytes = namespace.map(|namespace| u64::from(namespace.lba_bytes));
    usize::try_from(u64::from(nlb) * lba_bytes.unwrap_or(0)).map_err(|_| Status::INVALID_FIELD)
}

/// The entry of a command, and how many bytes of data it has: in blocks of
/// the namespace, or by its buffer.
fn entry(info: &DeviceInfo, command: &Command, buffer_bytes: usize) -> Result<Prepared, Status> {
    let nsid = command.nsid.0;
    let bytes = |nlb: u32| bytes_of(info, command.nsid, nlb);
    let (entry, bytes, direction) = match command.op {
        Op::Read { slba, nlb } => {
            let entry = Read::new(nsid, slba.0, nlb).to_entry();
            (entry.map_err(out_of_range)?, bytes(nlb)?, Direction::ToHost)
        }
        Op::Write { slba, nlb } => {
            let write = placed(Write::new(nsid, slba.0, nlb), command.placement);
            let entry = write.to_entry().map_err(out_of_range)?;
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
            let receive = ZoneManagementReceive {
                zra: report(extended),
                filter,
                partial,
                ..ZoneManagementReceive::new(nsid, slba.0, buffer_bytes as u64 / 4)
            };
            let entry = receive.to_entry().map_err(out_of_range)?;
            (entry, buffer_bytes, Direction::ToHost)
        }
        Op::HandleStatus => {
            let receive = IoManagementReceive::handle_status(nsid, buffer_bytes as u64 / 4);
            let entry = receive.to_entry().map_err(out_of_range)?;
            (entry, buffer_bytes, Direction::ToHost)
        }
        Op::HandleUpdate { handles } => {
            let send = IoManagementSend::handle_update(nsid, handles).map_err(out_of_range)?;
            let bytes = handles as usize * size_of::<u16>();
            (send.to_entry(), bytes, Direction::ToController)
        }
    };
    Ok(Prepared {
        entry,
        bytes,
        direction,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonelab_device::{Lba, NamespaceInfo};

    fn info() -> DeviceInfo {
        DeviceInfo {
            model: String::new(),
            namespaces: vec![NamespaceInfo {
                placements: None,
                lba_bytes: 4_096,
                size_lbas: 64,
                zoned: None,
                copy: None,
            }],
            max_transfer_bytes: u32::MAX,
            max_append_bytes: u32::MAX,
            has_volatile_cache: false,
        }
    }

    #[test]
    fn a_placement_identifier_becomes_a_directive() {
        let write = Command::new(Op::Write {
            slba: Lba(8),
            nlb: 2,
        });
        let of = |command: Command| Prepared::new(&info(), &command, None).expect("it fits");
        let plain = of(write).entry;
        assert_eq!((plain.cdw12.get(), plain.cdw13.get()), (1, 0));
        let placed = of(write.placed(3)).entry;
        assert_eq!(placed.cdw12.get(), 0x0020_0001);
        assert_eq!(placed.cdw13.get(), 0x0003_0000);
    }

    #[test]
    fn commands_on_reclaim_unit_handles_have_their_data() {
        let status = Prepared::new(&info(), &Command::new(Op::HandleStatus), Some(64));
        let status = status.expect("it fits");
        assert_eq!((status.bytes, status.direction), (64, Direction::ToHost));
        assert_eq!(status.entry.cdw11.get(), 15);
        let update = Command::new(Op::HandleUpdate { handles: 2 });
        let given = |bytes| Prepared::new(&info(), &update, bytes);
        let prepared = given(Some(4)).expect("it fits");
        assert_eq!(prepared.direction, Direction::ToController);
        assert_eq!(prepared.entry.cdw10.get(), 0x0001_0001);
        for wrong in [None, Some(2), Some(6)] {
            assert_eq!(given(wrong).err(), Some(Status::INVALID_FIELD));
        }
    }
}
