//! What a command must be before it gets memory for its data.
//!
//! The same checks come again when the data is there: what they look at may have
//! changed by then.

use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::command::AdminCommand;
use zonelab_nvme::fabrics::FabricsCommand;
use zonelab_nvme::log::ErrorEntry;
use zonelab_nvme::queue::{AdminOpcode, CompletionEntry, SubmissionEntry};
use zonelab_nvme::status::FabricsStatus;

use super::failure::{Failure, byte};
use super::plan::{Transfer, check_flags};
use super::reserve::is_reservation;
use super::state::Life;
use super::{Layer, QueueHandle, Subsystem};

/// Most data of an admin command from the host, in bytes.
const ADMIN_BYTES: u32 = 4096;
/// Most data of Dataset Management: 256 ranges.
const RANGES_BYTES: u32 = 4096;

impl<L: Layer> Subsystem<L> {
    /// Whether a command with `data_len` bytes of data, which the host has to be
    /// asked for, would be carried out as far as that can be said without them.
    ///
    /// # Errors
    /// The completion with which it fails.
    pub fn admit(
        &mut self,
        now: Nanos,
        queue: QueueHandle,
        entry: &SubmissionEntry,
        data_len: u32,
    ) -> Result<(), CompletionEntry> {
        self.now = self.now.max(now);
        let cid = entry.cdw0.cid();
        let of = self.queues.get_mut(queue.0);
        let Some(of) = of.filter(|of| of.life == Life::Open) else {
            return Err(CompletionEntry::new(cid, Status::ABORTED_SQ_DELETION));
        };
        let (slot, is_admin) = (of.controller, of.qid == 0);
        let checked = if !self.passes_gate(queue.0, entry) {
            let status = FabricsStatus::AUTHENTICATION_REQUIRED.status();
            Err(Failure::from(status))
        } else if is_admin || entry.cdw0.opc() == AdminOpcode::FABRICS.0 {
            self.check_admin(slot, entry, data_len)
        } else {
            let checked = self.check_io(slot, entry, data_len);
            checked.inspect_err(|_| self.activity.refused(entry))
        };
        checked.map_err(|failure| {
            let about = ErrorEntry {
                nsid: entry.nsid,
                ..ErrorEntry::default()
            };
            self.failed(queue.0, cid, failure, about)
        })
    }

    fn check_io(
        &mut self,
        slot: u32,
        entry: &SubmissionEntry,
        data_len: u32,
    ) -> Result<(), Failure> {
        let transfer = match is_reservation(entry) {
            true => self.checked_reservation(slot, entry)?.2,
            false => self.checked(slot, entry)?.0.transfer,
        };
        let len = u64::from(data_len);
        let is_right = match transfer {
            Transfer::None => false,
            Transfer::FromHost(bytes) | Transfer::ToHost(bytes) => len == bytes,
            Transfer::AtLeastFromHost(bytes) => len >= bytes && data_len <= RANGES_BYTES,
        };
        length(is_right)
    }

    fn check_admin(
        &mut self,
        slot: u32,
        entry: &SubmissionEntry,
        data_len: u32,
    ) -> Result<(), Failure> {
        check_flags(entry)?;
        if entry.cdw0.opc() == AdminOpcode::FABRICS.0 {
            let command = FabricsCommand::parse(entry);
            return match command.map_err(|status| Failure::at(status, byte::NSID))? {
                FabricsCommand::AuthenticationSend(send) => length(send.tl == data_len),
                FabricsCommand::AuthenticationReceive(receive) => length(receive.al == data_len),
                _ => length(false),
            };
        }
        if !self.controllers.at(slot).is_ready() {
            return Err(Failure::from(Status::COMMAND_SEQUENCE_ERROR));
        }
        let command =
            AdminCommand::parse(entry).map_err(|status| Failure::at(status, byte::OPC))?;
        match command {
            AdminCommand::SetFeatures(_) => length(data_len <= ADMIN_BYTES),
            // These have data for the host; how much, they check themselves.
            AdminCommand::Identify(_)
            | AdminCommand::GetLogPage(_)
            | AdminCommand::GetFeatures(_) => Ok(()),
            _ => length(false),
        }
    }

    /// Commands that the drive or a format has, of queues that there are.
    #[must_use]
    pub fn in_drive(&self) -> u64 {
        let queues = self.queues.iter().map(|(_, queue)| queue);
        let open = queues.filter(|queue| queue.life == Life::Open);
        open.map(|queue| u64::from(queue.in_drive)).sum()
    }

    /// Bytes of data in the drive of commands whose queues are gone.
    #[must_use]
    pub const fn orphaned_bytes(&self) -> u64 {
        self.orphaned_bytes
    }
}

fn length(is_right: bool) -> Result<(), Failure> {
    match is_right {
        true => Ok(()),
        false => Err(Failure::at(Status::DATA_SGL_LENGTH_INVALID, byte::DPTR + 8)),
    }
}
