//! What an I/O command asks the drive to do, and whether it may.

use zonelab_device::{Lba, Op};
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    CopyCommand, CopyRange, DatasetManagement, DatasetRange, IoCommand, Protection,
    ZoneManagementReceive, ZoneManagementSend,
};
use zonelab_nvme::queue::{PointerKind, SubmissionEntry};
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::{ZoneReceiveAction, ZoneSendAction};

use super::failure::{Failure, byte};
use super::io::is_of_all;
use super::placement::placement_of;
use super::settings::PAGE_BYTES;
use super::{Layer, Namespace, Subsystem};

/// Most ranges that a command may deallocate (DMRL).
pub(super) const DEALLOCATED_RANGES: u8 = 64;
/// Most blocks that a command may deallocate, in bytes.
const DEALLOCATED_BYTES: u64 = 64 << 20;

/// An I/O command that has passed its checks.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) op: Op,
    /// Placement identifier of a write.
    pub(super) placement: u16,
    pub(super) transfer: Transfer,
    /// Durable before it completes.
    pub(super) fua: bool,
}

impl Plan {
    /// A plan without force unit access and placement.
    pub(super) const fn of(op: Op, transfer: Transfer) -> Self {
        Self {
            op,
            placement: 0,
            transfer,
            fua: false,
        }
    }
}

/// Which way data goes, and how many bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Transfer {
    None,
    FromHost(u64),
    /// So many count. Linux sends room for all 256 ranges with Dataset Management.
    AtLeastFromHost(u64),
    ToHost(u64),
}

/// What makes every kind of command wrong.
pub(super) fn check_flags(entry: &SubmissionEntry) -> Result<(), Failure> {
    if entry.cdw0.fuse() != 0 {
        return Err(Failure::field(byte::FLAGS));
    }
    // On a fabric, data lies where an SGL says.
    if entry.cdw0.psdt() != PointerKind::SGL_MPTR_BUFFER {
        return Err(Failure::bit(Status::INVALID_FIELD, byte::FLAGS, 6));
    }
    Ok(())
}

/// Namespaces have no protection information, so no command may ask for it.
fn check_protection(protection: Protection) -> Result<(), Failure> {
    let Protection {
        pract,
        check_guard,
        check_application_tag,
        check_reference_tag,
        ..
    } = protection;
    if pract || check_guard || check_application_tag || check_reference_tag {
        let status = Status::INVALID_PROTECTION_INFORMATION;
        return Err(Failure::bit(status, byte::CDW12 + 3, 2));
    }
    Ok(())
}

/// There are no directives here.
fn check_directive(dtype: u8) -> Result<(), Failure> {
    if dtype != 0 {
        return Err(Failure::bit(Status::INVALID_FIELD, byte::CDW12 + 2, 4));
    }
    Ok(())
}

impl Namespace {
    fn plan_copy(&self, copy: CopyCommand) -> Result<Plan, Failure> {
        if copy.desfmt != 0 {
            return Err(Failure::field(byte::CDW12 + 1));
        }
        let read = copy.read_protection;
        check_protection(Protection {
            pract: read.pract,
            check_guard: read.check_guard,
            check_application_tag: read.check_application_tag,
            check_reference_tag: read.check_reference_tag,
            ..Protection::default()
        })?;
        check_protection(copy.protection)?;
        check_directive(copy.dtype)?;
        Ok(Plan {
            op: Op::Copy {
                sdlba: Lba(copy.sdlba),
                ranges: copy.nr,
            },
            placement: 0,
            transfer: Transfer::FromHost(u64::from(copy.nr) * size_of::<CopyRange>() as u64),
            fua: copy.fua,
        })
    }

    /// Bytes of `nlb` blocks, if one command may have that many.
    fn transfer_bytes(&self, nlb: u32, most: u32) -> Result<u64, Failure> {
        let bytes = u64::from(nlb) * u64::from(self.lba_bytes);
        if bytes > u64::from(most) {
            return Err(Failure::field(byte::CDW12));
        }
        Ok(bytes)
    }

    fn plan_zone_send(&self, send: ZoneManagementSend) -> Result<Plan, Failure> {
        let allocates = |action| {
            let actions = [
                ZoneSendAction::OPEN,
                ZoneSendAction::SET_DESCRIPTOR_EXTENSION,
            ];
            self.has_zrwa && !send.select_all && actions.contains(&action)
        };
        if send.zsaso && !allocates(send.zsa) {
            return Err(Failure::bit(Status::INVALID_FIELD, byte::CDW13 + 1, 1));
        }
        let transfer = match send.zsa {
            ZoneSendAction::SET_DESCRIPTOR_EXTENSION if self.extension_bytes > 0 => {
                Transfer::FromHost(self.extension_bytes.into())
            }
            ZoneSendAction::SET_DESCRIPTOR_EXTENSION => return Err(Failure::field(byte::CDW13)),
            _ => Transfer::None,
        };
        let (slba, action) = (Lba(send.slba), send.zsa);
        let op = if send.zsaso {
            Op::ZrwaSend { slba, action }
        } else {
            Op::ZoneSend {
                slba,
                action,
                select_all: send.select_all,
            }
        };
        Ok(Plan::of(op, transfer))
    }

    fn plan_zone_receive(receive: ZoneManagementReceive, most: u32) -> Result<Plan, Failure> {
        let extended = match receive.zra {
            ZoneReceiveAction::REPORT_ZONES => false,
            ZoneReceiveAction::EXTENDED_REPORT_ZONES => true,
            _ => return Err(Failure::field(byte::CDW13)),
        };
        let bytes = receive.numd * 4;
        if bytes > u64::from(most) {
            return Err(Failure::field(byte::CDW12));
        }
        let op = Op::ZoneReceive {
            slba: Lba(receive.slba),
            filter: receive.filter,
            partial: receive.partial,
            extended,
        };
        Ok(Plan::of(op, Transfer::ToHost(bytes)))
    }
}

impl<L: Layer> Subsystem<L> {
    /// What the drive is to do for a command that it may be asked for, and whether
    /// that is only a hint.
    #[inline]
    pub(super) fn checked(
        &mut self,
        slot: u32,
        entry: &SubmissionEntry,
    ) -> Result<(Plan, bool), Failure> {
        check_flags(entry)?;
        let controller = self.controllers.at(slot);
        if !controller.is_ready() {
            return Err(Failure::from(Status::COMMAND_SEQUENCE_ERROR));
        }
        let has_zns = controller.has_zns();
        let command = IoCommand::parse(entry).map_err(|status| Failure::at(status, byte::OPC))?;
        let no_namespace = Failure::at(Status::INVALID_NAMESPACE_OR_FORMAT, byte::NSID);
        // A flush of all namespaces begins with the first one.
        let nsid = match is_of_all(entry) {
            true => self.next_namespace(slot, 0).ok_or(no_namespace)?,
            false => entry.nsid.get(),
        };
        let access = self.rights(slot, nsid).ok_or(no_namespace)?;
        let namespace = self
            .namespace(nsid)
            .filter(|namespace| has_zns || namespace.zone_lbas == 0)
            .ok_or(no_namespace)?;
        let is_hint = matches!(
            command,
            IoCommand::DatasetManagement(DatasetManagement { ad: false, .. })
        );
        let plan = self.plan(namespace, command)?;
        self.permit(slot, (access, &plan), is_hint)?;
        match is_of_all(entry) {
            true => {
                let mut all = self.visible(slot);
                all.try_for_each(|(nsid, _)| self.check_reserved(slot, nsid, &plan.op))?;
            }
            false => self.check_reserved(slot, nsid, &plan.op)?,
        }
        if self.format.is_some() {
            return Err(Failure::from(Status::FORMAT_IN_PROGRESS));
        }
        Ok((plan, is_hint))
    }

    /// Whether ranges to be deallocated keep to DMRSL and DMSL.
    pub(super) fn check_ranges(&self, data: &[u8]) -> Result<(), Failure> {
        let (ranges, _) = data.as_chunks::<{ size_of::<DatasetRange>() }>();
        let most = self.deallocation_lbas();
        let lengths = ranges.iter().filter_map(|range| {
            let range = DatasetRange::ref_from_bytes(range).ok()?;
            Some(u64::from(range.nlb.get()))
        });
        match lengths.sum::<u64>() <= most {
            true => Ok(()),
            false => Err(Failure::field_of_size()),
        }
    }

    /// What the drive is to do. A new operation is one arm here.
    #[inline]
    fn plan(&self, namespace: &Namespace, command: IoCommand) -> Result<Plan, Failure> {
        let is_zoned = namespace.zone_lbas > 0;
        match command {
            IoCommand::Read(read) => {
                check_protection(read.protection)?;
                let bytes = namespace.transfer_bytes(read.nlb, self.max_transfer_bytes)?;
                let (slba, nlb) = (Lba(read.slba), read.nlb);
                // Force unit access: what was read from a cache is no other data.
                Ok(Plan::of(Op::Read { slba, nlb }, Transfer::ToHost(bytes)))
            }
            IoCommand::Write(write) => {
                check_protection(write.protection)?;
                let directive = (write.dtype, write.dspec);
                let placement = placement_of(directive, namespace.has_placement)?;
                let bytes = namespace.transfer_bytes(write.nlb, self.max_transfer_bytes)?;
                Ok(Plan {
                    op: Op::Write {
                        slba: Lba(write.slba),
                        nlb: write.nlb,
                    },
                    placement,
                    transfer: Transfer::FromHost(bytes),
                    fua: write.fua,
                })
            }
            IoCommand::Flush(_) => Ok(Plan::of(Op::Flush, Transfer::None)),
            IoCommand::Compare(_)
            | IoCommand::Verify(_)
            | IoCommand::WriteZeroes(_)
            | IoCommand::DatasetManagement(_) => self.plan_without_transfer(namespace, command),
            IoCommand::Copy(copy) if namespace.has_copy => namespace.plan_copy(copy),
            IoCommand::ZoneAppend(append) if is_zoned => {
                check_protection(append.protection)?;
                check_directive(append.dtype)?;
                let bytes = namespace.transfer_bytes(append.nlb, self.max_append_bytes)?;
                Ok(Plan {
                    op: Op::Append {
                        zslba: Lba(append.zslba),
                        nlb: append.nlb,
                    },
                    placement: 0,
                    transfer: Transfer::FromHost(bytes),
                    fua: append.fua,
                })
            }
            IoCommand::ZoneManagementSend(send) if is_zoned => namespace.plan_zone_send(send),
            IoCommand::ZoneManagementReceive(receive) if is_zoned => {
                Namespace::plan_zone_receive(receive, self.max_transfer_bytes)
            }
            IoCommand::IoManagementReceive(receive) if namespace.has_placement => {
                self.plan_io_receive(receive)
            }
            IoCommand::IoManagementSend(send) if namespace.has_placement => {
                Self::plan_io_send(send)
            }
            _ => Err(Failure::at(Status::INVALID_OPCODE, byte::OPC)),
        }
    }

    /// Commands on blocks that carry none of them to or from the media.
    fn plan_without_transfer(
        &self,
        namespace: &Namespace,
        command: IoCommand,
    ) -> Result<Plan, Failure> {
        let (op, transfer, fua) = match command {
            IoCommand::Compare(compare) => {
                check_protection(compare.protection)?;
                let bytes = namespace.transfer_bytes(compare.nlb, self.max_transfer_bytes)?;
                let (slba, nlb) = (Lba(compare.slba), compare.nlb);
                (Op::Compare { slba, nlb }, Transfer::FromHost(bytes), false)
            }
            IoCommand::Verify(verify) => {
                check_protection(verify.protection)?;
                namespace.transfer_bytes(verify.nlb, self.work_bytes())?;
                let (slba, nlb) = (Lba(verify.slba), verify.nlb);
                (Op::Verify { slba, nlb }, Transfer::None, false)
            }
            IoCommand::WriteZeroes(zeroes) => {
                check_protection(zeroes.protection)?;
                namespace.transfer_bytes(zeroes.nlb, self.work_bytes())?;
                let (slba, nlb) = (Lba(zeroes.slba), zeroes.nlb);
                (Op::WriteZeroes { slba, nlb }, Transfer::None, zeroes.fua)
            }
            IoCommand::DatasetManagement(DatasetManagement { nr: ranges, ad, .. }) => {
                if ad && u32::from(ranges) > DEALLOCATED_RANGES.into() {
                    return Err(Failure::field_of_size());
                }
                let bytes = u64::from(ranges) * size_of::<DatasetRange>() as u64;
                let transfer = Transfer::AtLeastFromHost(bytes);
                (Op::Deallocate { ranges }, transfer, false)
            }
            _ => return Err(Failure::at(Status::INVALID_OPCODE, byte::OPC)),
        };
        Ok(Plan {
            fua,
            ..Plan::of(op, transfer)
        })
    }

    /// Most blocks that a command without transfer may be about, in bytes (VSL,
    /// WZSL): as many as one with.
    pub(super) fn work_bytes(&self) -> u32 {
        // 0 would say that there is no limit.
        self.max_transfer_bytes.max(2 * PAGE_BYTES)
    }

    /// Most blocks that a command may deallocate (DMRSL, DMSL).
    pub(super) fn deallocation_lbas(&self) -> u64 {
        DEALLOCATED_BYTES / u64::from(self.drive.drive().config().lba_bytes)
    }
}
