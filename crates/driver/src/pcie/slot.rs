//! Commands in flight, and where their data is meanwhile.

use zonelab_device::{Buf, Nanos, Tag};

use super::bus::{DmaError, DmaMemory};
use super::dma::{DmaBuf, DmaRegion, Domain};
use crate::entry::Direction;

/// How the data of a command gets to the device and back.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Way {
    /// None, or a buffer that no byte of is moved.
    None,
    /// The device accesses the caller's buffer.
    Direct,
    /// Through the bounce memory of the slot, from which it is copied at the end if
    /// the caller has a buffer.
    BounceToHost,
    /// Through the bounce memory of the slot, where it has been copied.
    BounceToController,
}

/// One slot of a queue.
///
/// Invariant: from [`Slot::fill`] to [`Slot::empty`] the caller's buffer is in here and
/// nowhere else, and the bounce memory is not replaced.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Slot {
    pub(crate) tag: Tag,
    pub(crate) began: Nanos,
    way: Way,
    bytes: usize,
    data: Option<Buf>,
    /// It grows to the longest transfer that the slot has had.
    bounce: Option<DmaRegion>,
    /// An Abort has been sent for it.
    pub(crate) is_aborted: bool,
}

impl Slot {
    pub(crate) fn new() -> Self {
        Self {
            tag: Tag(0),
            began: Nanos::ZERO,
            way: Way::None,
            bytes: 0,
            data: None,
            bounce: None,
            is_aborted: false,
        }
    }

    /// Finds the place of a command's data for the device, and keeps the caller's
    /// buffer. Returns the address; 0 if there is no data.
    ///
    /// # Errors
    /// No bounce memory; the buffer comes back.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        (memory, domain): (&impl DmaMemory, Domain),
        (bytes, direction): (usize, Direction),
        data: Option<Buf>,
    ) -> Result<u64, (DmaError, Option<Buf>)> {
        debug_assert!(self.data.is_none(), "a free slot has no buffer");
        self.bytes = bytes;
        self.is_aborted = false;
        if bytes == 0 {
            self.way = Way::None;
            self.data = data;
            return Ok(0);
        }
        let own = data.as_ref().and_then(Buf::memory::<DmaBuf>);
        if let Some(own) = own.filter(|own| own.domain() == domain) {
            own.lend(true);
            let iova = own.iova();
            self.way = Way::Direct;
            self.data = data;
            return Ok(iova);
        }
        let bounce = match self.bounce(memory, bytes) {
            Ok(bounce) => bounce,
            Err(error) => return Err((error, data)),
        };
        let iova = bounce.iova();
        self.way = match direction {
            Direction::ToController => {
                if let Some(data) = &data {
                    bounce.copy_in(data);
                }
                Way::BounceToController
            }
            _ => Way::BounceToHost,
        };
        self.data = data;
        Ok(iova)
    }

    /// Bounce memory of at least `bytes` bytes.
    #[inline]
    fn bounce(&mut self, memory: &impl DmaMemory, bytes: usize) -> Result<&DmaRegion, DmaError> {
        let is_enough = |of: &DmaRegion| of.bytes() >= bytes;
        let bounce = match self.bounce.take().filter(is_enough) {
            Some(bounce) => bounce,
            None => memory.allocate(bytes.next_power_of_two())?,
        };
        Ok(self.bounce.insert(bounce))
    }

    /// The command is over, and the device does not access its data any more. Gives
    /// the caller's buffer back, with the data if the command succeeded.
    #[inline]
    pub(crate) fn empty(&mut self, is_success: bool) -> Option<Buf> {
        let mut data = self.data.take();
        match self.way {
            Way::None | Way::BounceToController => {}
            Way::Direct => {
                if let Some(own) = data.as_ref().and_then(Buf::memory::<DmaBuf>) {
                    own.lend(false);
                }
            }
            Way::BounceToHost => {
                if let (Some(data), Some(bounce)) = (&mut data, &self.bounce)
                    && is_success
                {
                    bounce.copy_out(data);
                }
            }
        }
        data
    }

    /// The command is over for the caller, but the device may still access its data:
    /// the memory is kept for good. Buffers of the caller's own memory come back.
    pub(crate) fn abandon(&mut self) -> Option<Buf> {
        if let Some(bounce) = self.bounce.take() {
            bounce.leak();
        }
        let data = self.data.take();
        if self.way == Way::Direct {
            // Not dropped: the device may write to it, so nobody may look at it.
            if let Some(own) = data.as_ref().and_then(Buf::memory::<DmaBuf>) {
                own.leak();
            }
            return None;
        }
        data
    }

    /// Keeps the bounce memory for good.
    pub(crate) fn leak(&self) {
        if let Some(bounce) = &self.bounce {
            bounce.leak();
        }
        if let Some(own) = self.data.as_ref().and_then(Buf::memory::<DmaBuf>) {
            own.leak();
        }
    }
}
