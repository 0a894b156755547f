//! Doorbells: registers, and their shadows in memory.

use super::bus::Registers;
use super::dma::DmaRegion;
use super::sync::{Arc, AtomicU32, Ordering, fence};

/// Where the doorbell registers begin (PCIe transport 1.0, section 3.1.2).
const FIRST_DOORBELL: u64 = 0x1000;

/// Which doorbell of a queue pair.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// The tail of the submission queue.
    SubmissionTail,
    /// The head of the completion queue.
    CompletionHead,
}

/// Distance of doorbells: `4 << CAP.DSTRD` bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stride(u8);

impl Stride {
    /// The stride that CAP.DSTRD says: 0 to 15.
    #[must_use]
    pub const fn from_dstrd(dstrd: u8) -> Self {
        Self(dstrd & 0xf)
    }

    /// Bytes from the first doorbell to that of queue `qid`.
    const fn offset(self, qid: u16, of: Of) -> u64 {
        let index = 2 * qid as u64 + matches!(of, Of::CompletionHead) as u64;
        index << (2 + self.0)
    }

    /// Bytes of BAR 0 with the doorbells of queues 0 to `qid`.
    #[must_use]
    pub const fn bar_bytes(self, qid: u16) -> u64 {
        FIRST_DOORBELL + self.offset(qid, Of::CompletionHead) + 4
    }
}

/// The buffers of Doorbell Buffer Config (base specification 2.0, section 5.8): the
/// host writes doorbells to `shadow`, and the controller writes to `event_index` how
/// far it can go without the register. Both are laid out as the registers are.
#[derive(Clone, Debug)]
pub struct ShadowBuffers {
    /// Written by the host.
    pub shadow: Arc<DmaRegion>,
    /// Written by the controller.
    pub event_index: Arc<DmaRegion>,
}

/// The place of one doorbell in the shadow buffers.
#[derive(Clone, Debug)]
struct Shadow {
    buffers: ShadowBuffers,
    index: usize,
}

impl Shadow {
    fn slot(region: &DmaRegion, index: usize) -> Option<&AtomicU32> {
        region.dwords().get(index)
    }

    /// Publishes `new`, and says whether the controller has to be told besides.
    fn publish(&self, old: u16, new: u16) -> bool {
        let shadow = Self::slot(&self.buffers.shadow, self.index);
        let event_index = Self::slot(&self.buffers.event_index, self.index);
        let (Some(shadow), Some(event_index)) = (shadow, event_index) else {
            return true;
        };
        // What the ring holds must be there before the shadow says so.
        shadow.store(u32::from(new).to_le(), Ordering::Release);
        // The store must be there before the load: the controller stores EventIdx and
        // then looks at the shadow once more, so that one of the two sees the other.
        fence(Ordering::SeqCst);
        let event = u32::from_le(event_index.load(Ordering::Acquire)) as u16;
        needs_event(event, new, old)
    }
}

/// Whether a doorbell that goes from `old` to `new` passes `event`.
#[must_use]
pub const fn needs_event(event: u16, new: u16, old: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}

/// One doorbell.
#[derive(Debug)]
pub struct Doorbell {
    offset: u64,
    /// What the controller was told last.
    told: u16,
    shadow: Option<Shadow>,
    writes: u64,
}

impl Doorbell {
    /// A doorbell of queue `qid`, which was just made: the controller has 0.
    #[must_use]
    pub fn new(stride: Stride, qid: u16, of: Of, shadows: Option<&ShadowBuffers>) -> Self {
        let offset = stride.offset(qid, of);
        let index = usize::try_from(offset / 4).unwrap_or(usize::MAX);
        let shadow = shadows.map(|buffers| {
            // A queue of that number that is gone may have left something.
            for region in [&buffers.shadow, &buffers.event_index] {
                if let Some(slot) = Shadow::slot(region, index) {
                    slot.store(0, Ordering::Release);
                }
            }
            let buffers = buffers.clone();
            Shadow { buffers, index }
        });
        Self {
            offset: FIRST_DOORBELL + offset,
            told: 0,
            shadow,
            writes: 0,
        }
    }

    /// Tells the controller of `value`, unless it knows.
    #[inline]
    pub fn ring(&mut self, registers: &impl Registers, value: u16) {
        if value == self.told {
            return;
        }
        let old = core::mem::replace(&mut self.told, value);
        let has_to = match &self.shadow {
            None => true,
            Some(shadow) => shadow.publish(old, value),
        };
        if has_to {
            self.writes += 1;
            registers.write32(self.offset, value.into());
        }
    }

    /// How often the register was written.
    #[must_use]
    pub const fn writes(&self) -> u64 {
        self.writes
    }
}
