//! What must always hold of the write buffer.

use zonelab_device::ZoneId;

use super::{NONE, WriteBuffer};

impl WriteBuffer {
    /// Checks everything that must hold between two events. Costs time proportional to the
    /// zones: for tests and fuzzing. `is_whole`: no factor is left out, so that nothing takes
    /// more room than there is.
    ///
    /// # Panics
    /// Something does not hold, which is a defect of this crate.
    pub(crate) fn assert_invariants(&self, is_whole: bool) {
        let not_over = || self.programs.iter().filter(|(_, of)| of.groups > 0);
        let waiting: u64 = self.zones.iter().map(|of| self.waiting_lbas(of)).sum();
        let leaving = not_over().map(|(_, of)| u64::from(of.end - of.first - of.released));
        let fill_lbas = waiting + leaving.sum::<u64>();
        assert_eq!(self.fill_lbas, fill_lbas, "blocks in the buffer");
        if is_whole {
            assert!(self.fill_lbas <= self.size_lbas, "the buffer is too full");
        }
        let count = |which: &dyn Fn(&super::Program) -> bool| {
            // Fits: programs are counted in as many bits.
            not_over().filter(|(_, of)| which(of)).count() as u32
        };
        assert_eq!(self.running, count(&|_| true), "programs under way");
        assert_eq!(self.started, count(&|of| of.has_started), "started ones");
        assert_eq!(self.host_programs, count(&|of| !of.is_fill), "host's ones");
        for &slot in &self.ready {
            let program = &self.programs[slot];
            assert!(!program.has_started, "a program starts once");
        }
        for (zone, blocks) in (0..).map(ZoneId).zip(&self.zones) {
            let of_zone = self.admission_queue.iter().filter(|of| of.zone == zone);
            assert_eq!(blocks.queued as usize, of_zone.count(), "{zone:?} waits");
            let running = not_over().filter(|(_, of)| of.zone == zone).count();
            assert_eq!(blocks.running as usize, running, "programs of {zone:?}");
        }
        self.assert_open_list();
        assert!(
            self.flushes.iter().all(|flush| flush.programs > 0),
            "a flush waits for something"
        );
    }

    /// Blocks of a zone that are in the buffer and in no program.
    fn waiting_lbas(&self, blocks: &super::ZoneBlocks) -> u64 {
        assert!(blocks.issued <= blocks.admitted, "blocks leave once");
        u64::from(blocks.admitted - blocks.issued)
    }

    /// The zones with a unit that is not whole are those of the list, each once.
    fn assert_open_list(&self) {
        let (mut at, mut older, mut count) = (self.open_first, NONE, 0);
        while at != NONE {
            let blocks = &self.zones[at as usize];
            assert!(blocks.is_open && blocks.older == older, "zone {at}");
            (older, at) = (at, blocks.newer);
            count += 1;
        }
        assert_eq!(self.open_last, older, "the end of the list");
        let open = self.zones.iter().filter(|of| of.is_open).count();
        assert_eq!(open, count, "zones with a unit that is not whole");
    }
}
