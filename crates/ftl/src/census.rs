//! What a mount finds in the data zones: which blocks are valid in each.

use crate::FtlError;
use crate::blocks::{DataZone, LogicalBlock, PhysicalBlock};
use crate::frontier::Frontier;
use crate::media::{self, Zone};
use crate::shape::Shape;
use crate::zones::Generation;

/// Valid blocks of each data zone, counted while the map is read, and what is in those
/// that are partly written.
#[derive(Debug)]
pub(crate) struct Census {
    shape: Shape,
    /// By zone of the drive.
    zones: Vec<Zone>,
    /// By data zone.
    pub(crate) valid: Vec<u32>,
    /// Data zones that are partly written.
    pub(crate) partial: Vec<Frontier>,
    /// By data zone: which of those it is.
    partial_of: Vec<Option<u32>>,
}

impl Census {
    pub(crate) fn new(shape: &Shape, zones: &[Zone]) -> Self {
        let partial = partial_zones(shape, zones);
        let mut partial_of = vec![None; shape.data_zones() as usize];
        for (index, frontier) in (0..).zip(&partial) {
            partial_of[frontier.zone.0 as usize] = Some(index);
        }
        Self {
            shape: shape.clone(),
            zones: zones.to_vec(),
            valid: vec![0; shape.data_zones() as usize],
            partial,
            partial_of,
        }
    }

    /// A block is somewhere.
    ///
    /// # Errors
    /// Nothing is written there.
    pub(crate) fn note(&mut self, block: LogicalBlock, at: PhysicalBlock) -> Result<(), FtlError> {
        check_place(&self.shape, &self.zones, at)?;
        let (zone, offset) = self.shape.place_of(at);
        let zone = zone.0 as usize;
        self.valid[zone] += 1;
        if let Some(index) = self.partial_of[zone] {
            self.partial[index as usize].holds[offset as usize] = block.0;
        }
        Ok(())
    }
}

/// Data zones that are partly written, with nothing in them yet.
fn partial_zones(shape: &Shape, zones: &[Zone]) -> Vec<Frontier> {
    let data = (0..shape.data_zones()).map(DataZone);
    let partial = data.filter_map(|zone| {
        let reported = &zones[shape.zone_of(zone) as usize];
        reported.is_active().then(|| {
            let mut frontier = Frontier::new(zone, Generation::QUEUES, shape);
            frontier.next = reported.written.min(shape.data_blocks());
            frontier.footer_written = reported.written - frontier.next;
            frontier
        })
    });
    partial.collect()
}

/// Blocks are only where something has been written.
fn check_place(shape: &Shape, zones: &[Zone], at: PhysicalBlock) -> Result<(), FtlError> {
    let (zone, offset) = shape.place_of(at);
    let corrupt = |zone: u32| FtlError::Corrupt {
        zone,
        lba: shape.lba(zone, offset).0,
        what: "the map has a block here, and nothing is written",
    };
    if zone.0 >= shape.data_zones() {
        return Err(corrupt(shape.zones));
    }
    let on_drive = shape.zone_of(zone);
    let reported = zones
        .get(on_drive as usize)
        .ok_or_else(|| corrupt(on_drive))?;
    let is_offline = reported.state == media::ZoneUse::Offline;
    match offset < reported.written || is_offline {
        true => Ok(()),
        false => Err(corrupt(on_drive)),
    }
}
