//! How much data a command moves, for transports where the command alone says it.
//!
//! On a fabric the length of the data is in the command's SGL. PRPs say only where the
//! data is, so that a controller on PCIe has to know each command's length.

use zonelab_nvme::command::AdminCommand;
use zonelab_nvme::feature::{FeatureId, FeatureSelect, HostBehaviorSupport, HostIdentifier};
use zonelab_nvme::placement::{PlacementEventsSelect, SupportedEvent};
use zonelab_nvme::queue::SubmissionEntry;

use super::plan::Transfer;
use super::reserve::is_reservation;
use super::state::Life;
use super::{Layer, QueueHandle, Subsystem};

/// Bytes of the structures of Identify.
const IDENTIFY_BYTES: u32 = 4096;

/// Which way data goes with a command, and how many bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Moves {
    /// None; or the command fails, and its completion says why.
    Nothing,
    /// From the host.
    FromHost(u32),
    /// To the host.
    ToHost(u32),
}

impl<L: Layer> Subsystem<L> {
    /// How much data a command moves that has its data in PRPs. `entry` is as
    /// [`Subsystem::submit`] takes it.
    pub fn moves(&mut self, queue: QueueHandle, entry: &SubmissionEntry) -> Moves {
        let of = self.queues.get_mut(queue.0);
        let Some(of) = of.filter(|of| of.life == Life::Open) else {
            return Moves::Nothing;
        };
        let (slot, is_admin) = (of.controller, of.qid == 0);
        let most = self.max_transfer_bytes;
        match is_admin {
            true => admin_moves(entry, most),
            false if is_reservation(entry) => match self.checked_reservation(slot, entry) {
                Ok((.., transfer)) => io_moves(transfer),
                Err(_) => Moves::Nothing,
            },
            false => match self.checked(slot, entry) {
                Ok((plan, _)) => io_moves(plan.transfer),
                Err(_) => Moves::Nothing,
            },
        }
    }
}

fn io_moves(transfer: Transfer) -> Moves {
    // Fits: it is at most the largest transfer.
    match transfer {
        Transfer::None => Moves::Nothing,
        Transfer::FromHost(bytes) | Transfer::AtLeastFromHost(bytes) => {
            Moves::FromHost(bytes as u32)
        }
        Transfer::ToHost(bytes) => Moves::ToHost(bytes as u32),
    }
}

fn admin_moves(entry: &SubmissionEntry, most: u32) -> Moves {
    match AdminCommand::parse(entry) {
        Ok(AdminCommand::Identify(_)) => Moves::ToHost(IDENTIFY_BYTES),
        Ok(AdminCommand::GetLogPage(get)) => {
            let bytes = get.numd.saturating_mul(4).min(most.into());
            Moves::ToHost(bytes as u32)
        }
        Ok(AdminCommand::GetFeatures(get)) => {
            let bytes = match get.fid {
                FeatureId::FDP_EVENTS => {
                    let count = PlacementEventsSelect::from_bits(get.dword11).noet();
                    u32::from(count) * size_of::<SupportedEvent>() as u32
                }
                fid => feature_bytes(fid, get.dword11),
            };
            match bytes == 0 || get.sel == FeatureSelect::SUPPORTED_CAPABILITIES {
                true => Moves::Nothing,
                false => Moves::ToHost(bytes),
            }
        }
        Ok(AdminCommand::SetFeatures(set)) => match feature_bytes(set.fid, set.dword11) {
            0 => Moves::Nothing,
            bytes => Moves::FromHost(bytes),
        },
        _ => Moves::Nothing,
    }
}

/// Bytes of data of a feature that has some.
fn feature_bytes(fid: FeatureId, dword11: u32) -> u32 {
    match fid {
        FeatureId::HOST_BEHAVIOR_SUPPORT => size_of::<HostBehaviorSupport>() as u32,
        FeatureId::HOST_IDENTIFIER => match HostIdentifier::from_bits(dword11).exhid() {
            true => 16,
            false => 8,
        },
        FeatureId::FDP_EVENTS => PlacementEventsSelect::from_bits(dword11).noet().into(),
        _ => 0,
    }
}
