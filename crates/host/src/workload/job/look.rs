//! What a zone holds after a command to it failed: the device is asked.

use zonelab_device::{Completion, Lba, Op};
use zonelab_nvme::zns::ReportFilter;

use super::WorkloadJob;
use crate::stats::OpKind;
use crate::workload::directed::Direction;
use crate::workload::source::{Role, Sent, Step};

impl WorkloadJob {
    /// The report of a zone; its commands may carry data from now on.
    #[cold]
    pub(super) fn look(&mut self, zone: u32) -> Step {
        self.carries_data = true;
        Step {
            op: Op::ZoneReceive {
                slba: Lba(u64::from(zone) * self.zone_size_lbas),
                filter: ReportFilter::ALL,
                partial: true,
                extended: false,
            },
            kind: OpKind::Read,
            direction: Direction::Write,
            lbas: 0,
            stream: zone,
            role: Role::Look,
        }
    }

    /// The report is there, or will not be.
    #[cold]
    pub(super) fn looked(&mut self, sent: &Sent, completion: &mut Completion) {
        let report = completion.data.take();
        let report = report.filter(|_| completion.status.is_success());
        self.source.looked(sent.stream, report.as_deref());
    }
}
