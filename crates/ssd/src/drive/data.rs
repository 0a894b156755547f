//! Data that commands carry, where the drive keeps it.

use zonelab_device::{Buf, Lba, Op, ZoneId};
use zonelab_nvme::Status;

use super::Core;
use crate::contents::{Data, Unreadable};

impl Core {
    /// How a command ends that succeeds but for its data: a read gets it, and what is compared or
    /// verified is looked at.
    #[inline]
    pub(super) fn answer(&self, op: Op, buf: &mut Option<Buf>) -> Status {
        let outcome = match (op, &self.data, buf) {
            (Op::Read { slba, .. }, Some(data), Some(buf)) => self.copy_out(data, slba, buf),
            (Op::Compare { slba, .. }, Some(data), Some(buf)) => {
                match self.is_same(data, slba, buf) {
                    Ok(true) => Ok(()),
                    Ok(false) => return Status::COMPARE_FAILURE,
                    Err(Unreadable) => Err(Unreadable),
                }
            }
            (Op::Verify { slba, nlb }, ..) => self.verify(slba, nlb),
            _ => Ok(()),
        };
        match outcome {
            Ok(()) => Status::SUCCESS,
            Err(Unreadable) => Status::UNRECOVERED_READ_ERROR,
        }
    }

    pub(crate) fn copy_out(
        &self,
        data: &Data,
        slba: Lba,
        buf: &mut [u8],
    ) -> Result<(), Unreadable> {
        let mut done = 0;
        for (zone, within, bytes) in self.pieces(slba, buf.len()) {
            data.read(zone, within, &mut buf[done..done + bytes])?;
            done += bytes;
        }
        Ok(())
    }

    /// Looks at the data of accepted blocks.
    #[cold]
    fn verify(&self, slba: Lba, nlb: u32) -> Result<(), Unreadable> {
        let Some(data) = &self.data else {
            return Ok(());
        };
        let bytes = u64::from(nlb) * u64::from(self.config.lba_bytes);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.pieces(slba, bytes)
            .try_for_each(|(zone, at, bytes)| data.verify(zone, at..at + bytes as u64))
    }

    /// Whether blocks hold what is in a buffer.
    #[cold]
    fn is_same(&self, data: &Data, slba: Lba, buf: &[u8]) -> Result<bool, Unreadable> {
        let mut done = 0;
        for (zone, within, bytes) in self.pieces(slba, buf.len()) {
            if !data.is_same(zone, within, &buf[done..done + bytes])? {
                return Ok(false);
            }
            done += bytes;
        }
        Ok(true)
    }

    /// The parts of `bytes` from an accepted block on that lie in one zone
    /// each: zone, first byte in it, number of bytes.
    fn pieces(&self, slba: Lba, bytes: usize) -> impl Iterator<Item = (ZoneId, u64, usize)> {
        let lba_bytes = u64::from(self.config.lba_bytes);
        let zone_bytes = self.config.zones.size_lbas * lba_bytes;
        let (mut at, mut rest) = (slba.0 * lba_bytes, bytes);
        core::iter::from_fn(move || {
            let within = at % zone_bytes;
            let piece = rest.min(usize::try_from(zone_bytes - within).unwrap_or(usize::MAX));
            // Fits: the command was accepted, so the zone is one of the drive's.
            let zone = ZoneId((at / zone_bytes) as u32);
            at += piece as u64;
            rest -= piece;
            (piece > 0).then_some((zone, within, piece))
        })
    }
}
