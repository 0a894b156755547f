//! Trims of blocks: Dataset Management, whose ranges are data.

use zerocopy::IntoBytes;
use zonelab_device::{Buf, Op};
use zonelab_nvme::command::DatasetRange;

use super::WorkloadJob;

impl WorkloadJob {
    /// The range of the trim that is to be issued.
    #[cold]
    pub(super) fn trim_data(&self) -> Option<Buf> {
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

    /// Where a command begins on the device.
    pub(super) fn first_block(&self, op: &Op) -> u64 {
        match (op, self.source.trim()) {
            (Op::Deallocate { .. }, Some((slba, _))) => slba,
            _ => op.first_block(),
        }
    }
}
