//! Data that goes with commands: ranges of trims of blocks (Dataset Management), and buffers
//! of writes.

use zerocopy::IntoBytes;
use zonelab_device::{Buf, Op};
use zonelab_nvme::command::DatasetRange;

use super::WorkloadJob;
use crate::workload::source::{Role, Step};
use crate::workload::zone_table::ReportedZone;

impl WorkloadJob {
    /// What a command carries.
    pub(super) fn data_of(&mut self, slot: u32, step: &Step) -> Option<Buf> {
        if step.role == Role::Look {
            return Some(Buf::zeroed(ReportedZone::REPORT_BYTES));
        }
        match (&mut self.verify, &mut self.buffers) {
            (None, _) if matches!(step.op, Op::Deallocate { .. }) => self.trim_data(),
            (None, None) => None,
            (None, Some(buffers)) => buffers.data_of(&step.op),
            (Some(verify), _) => verify.data_of(slot, step, &mut self.sync),
        }
    }

    /// The range of the trim that is to be issued.
    #[cold]
    fn trim_data(&self) -> Option<Buf> {
        let (slba, nlb) = self.source.trim()?;
        let range = DatasetRange {
            nlb: nlb.into(),
            slba: slba.into(),
            ..DatasetRange::default()
        };
        let mut data = Buf::zeroed(size_of::<DatasetRange>());
        data.copy_from_slice(range.as_bytes());
        Some(data)
    }

    /// The buffer of a command that is over, or was not taken, serves the next write.
    pub(super) fn keep_buffer(&mut self, data: Option<Buf>) {
        if let Some(buffers) = &mut self.buffers {
            buffers.take_back(data, self.slots.len());
        }
    }

    /// Where a command begins on the device.
    #[inline]
    pub(super) fn first_block(&self, op: &Op) -> u64 {
        match op {
            Op::Read { slba, .. } | Op::Write { slba, .. } => slba.0,
            Op::Deallocate { .. } => self.source.trim().map_or(0, |(slba, _)| slba),
            _ => op.first_block(),
        }
    }
}
