//! Closing zones: footers, and what becomes of zones that failed.

use std::rc::Rc;

use super::Upkeep;
use crate::FtlError;
use crate::format::footer;
use crate::frontier::Frontier;
use crate::metrics::Counters;

impl Upkeep {
    /// Closes the zones that queues have written.
    pub(super) async fn closes(self: &Rc<Self>) -> Result<(), FtlError> {
        loop {
            let seen = self.bell.changes();
            for frontier in self.core.take_written() {
                self.close(frontier);
            }
            self.bell.after(seen).await;
        }
    }

    /// Closes a zone beside everything else.
    pub(super) fn close(self: &Rc<Self>, frontier: Frontier) {
        self.closing.set(self.closing.get() + 1);
        self.spawn(async move |upkeep| {
            let zone = frontier.zone;
            let is_whole = match frontier.has_failed {
                false => upkeep.write_footer(&frontier).await,
                true => false,
            };
            let is_closed = is_whole || upkeep.finish(&frontier).await?;
            if !upkeep.media().keeps_data() {
                let footers = &mut upkeep.footers.borrow_mut();
                footers[zone.0 as usize] = Some(frontier.holds);
            }
            match is_closed {
                true => upkeep.core.zones.note_closed(zone),
                false => {
                    upkeep.core.zones.note_lost(zone);
                    upkeep.to_evacuate.borrow_mut().push(zone);
                }
            }
            upkeep.closing.set(upkeep.closing.get() - 1);
            upkeep.core.release();
            upkeep.bell.ring();
            Ok(())
        });
    }

    /// Writes what the zone holds behind its data. Whether that went well.
    async fn write_footer(&self, frontier: &Frontier) -> bool {
        let shape = &self.core.shape;
        let zone = shape.zone_of(frontier.zone);
        let words = shape.words_per_block() as usize;
        let mut bytes = Vec::new();
        let blocks = (0..shape.footer_blocks).skip(frontier.footer_written as usize);
        for index in blocks {
            let first = (index as usize * words).min(frontier.holds.len());
            let end = (first + words).min(frontier.holds.len());
            let held = &frontier.holds[first..end];
            bytes.extend(footer::encode(
                shape,
                self.durable.uuid(),
                zone,
                index,
                held,
            ));
        }
        let at = shape.data_blocks() + frontier.footer_written;
        let blocks = shape.footer_blocks - frontier.footer_written;
        let written = self.media().write(zone, at, blocks, &bytes).await;
        Counters::add(&self.core.counters.footers, blocks.into());
        written.is_ok()
    }

    /// Gives up what is left of a zone. Whether it can be reset some day.
    async fn finish(&self, frontier: &Frontier) -> Result<bool, FtlError> {
        let zone = self.core.shape.zone_of(frontier.zone);
        match self.media().finish(zone).await {
            Ok(()) => Ok(true),
            Err(error @ FtlError::Gone(_)) => Err(error),
            Err(_) => Ok(false),
        }
    }
}
