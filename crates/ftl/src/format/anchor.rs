//! Anchors: everything that a mount begins with.

use zerocopy::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Found, Head, Kind, VERSION};
use crate::error::FtlError;
use crate::shape::{ImageSlot, Shape};

/// Most journal zones that can be dead.
pub(crate) const DEAD_ZONES: usize = 16;
/// Anchors, checkpoints and journal blocks are counted up to this, and epochs to a
/// 2^31st of it, so that there is always a next one.
const NUMBER_MAX: u64 = 1 << 62;
/// An entry of the list of dead zones that names none.
const NO_ZONE: u32 = u32::MAX;

/// A block of a zone of the namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) zone: u32,
    pub(crate) offset: u32,
}

/// Bytes 32 to 255 of an anchor.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Body {
    sequence: U64,
    checkpoint: U64,
    epoch: U32,
    image_slot: U32,
    image_blocks: U32,
    is_alone: U32,
    // Byte 64.
    start: U64,
    start_zone: U32,
    start_offset: U32,
    epoch_start: U64,
    epoch_zone: U32,
    epoch_offset: U32,
    committed: U64,
    // Byte 104.
    zone_size_lbas: U64,
    block_bytes: U32,
    zones: U32,
    zone_capacity_lbas: U32,
    journal_zones: U32,
    image_zones: U32,
    footer_blocks: U32,
    reserved_zones: U32,
    logical_blocks: U32,
    zero: [u8; 48],
    // Byte 192.
    dead: [U32; DEAD_ZONES],
}

impl Kind for Body {
    const MAGIC: [u8; 8] = *b"ZLFTLANC";
}

const _: () = assert!(size_of::<Head>() + size_of::<Body>() == 256);

/// An anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// Its number: the newest has the highest.
    pub(crate) sequence: u64,
    /// The other anchor zone is dead, and only this one counts.
    pub(crate) is_alone: bool,
    /// The epoch of journal blocks from now on.
    pub(crate) epoch: u32,
    /// The number of its first block, and where it is or will be.
    pub(crate) epoch_start: u64,
    pub(crate) epoch_at: Position,
    /// Journal blocks below this number were durable.
    pub(crate) committed: u64,
    /// The image that counts.
    pub(crate) slot: ImageSlot,
    pub(crate) image_blocks: u32,
    pub(crate) checkpoint: u64,
    /// The journal block from which on changes are repeated, and where it is or
    /// will be, at the earliest.
    pub(crate) start: u64,
    pub(crate) start_at: Position,
    /// Journal zones that cannot be written any more.
    pub(crate) dead: Vec<u32>,
}

/// The bytes of an anchor.
pub(crate) fn encode(shape: &Shape, uuid: u128, anchor: &Anchor) -> Vec<u8> {
    let mut dead = [U32::new(NO_ZONE); DEAD_ZONES];
    for (place, zone) in dead.iter_mut().zip(&anchor.dead) {
        *place = U32::new(*zone);
    }
    let body = Body {
        sequence: U64::new(anchor.sequence),
        checkpoint: U64::new(anchor.checkpoint),
        epoch: U32::new(anchor.epoch),
        image_slot: U32::new(match anchor.slot {
            ImageSlot::A => 0,
            ImageSlot::B => 1,
        }),
        image_blocks: U32::new(anchor.image_blocks),
        is_alone: U32::new(anchor.is_alone.into()),
        start: U64::new(anchor.start),
        start_zone: U32::new(anchor.start_at.zone),
        start_offset: U32::new(anchor.start_at.offset),
        epoch_start: U64::new(anchor.epoch_start),
        epoch_zone: U32::new(anchor.epoch_at.zone),
        epoch_offset: U32::new(anchor.epoch_at.offset),
        committed: U64::new(anchor.committed),
        zone_size_lbas: U64::new(shape.zone_size_lbas),
        block_bytes: U32::new(shape.block_bytes),
        zones: U32::new(shape.zones),
        zone_capacity_lbas: U32::new(shape.zone_capacity_lbas),
        journal_zones: U32::new(shape.journal_zones),
        image_zones: U32::new(shape.image_zones),
        footer_blocks: U32::new(shape.footer_blocks),
        reserved_zones: U32::new(shape.reserved_zones),
        logical_blocks: U32::new(shape.logical_blocks),
        zero: [0; 48],
        dead,
    };
    super::seal::<_, u8>(shape.block_bytes, uuid, &body, &[])
}

/// A block that is an anchor, of whatever shape.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) uuid: u128,
    body: Body,
}

/// What a block is. Its uuid is not known before.
///
/// # Errors
/// A whole anchor of another version.
pub(crate) fn decode(bytes: &[u8]) -> Result<Found<Raw>, FtlError> {
    let Ok((head, _)) = Head::ref_from_prefix(bytes) else {
        return Ok(Found::Foreign);
    };
    let is_whole = head.crc.get() == super::checksum(bytes);
    if is_whole && head.magic == Body::MAGIC && head.version.get() != VERSION {
        return Err(FtlError::Version {
            found: head.version.get(),
            known: VERSION,
        });
    }
    let uuid: U128 = head.uuid;
    let found = super::open::<Body>(uuid.get(), bytes);
    let found = found.and_then(|(body, _)| {
        Some(Raw {
            uuid: uuid.get(),
            body: *body,
        })
    });
    // Without a uuid to compare with, half of the magic tells what it was.
    let alike = head.magic.iter().zip(Body::MAGIC);
    let alike = alike.filter(|(found, wanted)| **found == *wanted).count();
    Ok(match found {
        Found::Foreign if super::is_of_layer(uuid.get(), bytes) => Found::Damaged,
        Found::Damaged if alike < Body::MAGIC.len() / 2 => Found::Foreign,
        found => found,
    })
}

impl Raw {
    pub(crate) fn sequence(&self) -> u64 {
        self.body.sequence.get()
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.body.is_alone.get() != 0
    }

    /// The anchor, and the shape of `namespace` as it was formatted.
    ///
    /// # Errors
    /// The namespace is not the one that was formatted. `None`: it cannot be.
    pub(crate) fn on(&self, namespace: &Shape) -> Result<Option<(Anchor, Shape)>, FtlError> {
        let body = &self.body;
        let same = |what, found: u64, expected: u64| match found == expected {
            true => Ok(()),
            false => Err(FtlError::Mismatch {
                what,
                found,
                expected,
            }),
        };
        let (found, of) = (body, namespace);
        same(
            "bytes of a block",
            found.block_bytes.get().into(),
            of.block_bytes.into(),
        )?;
        same("zones", found.zones.get().into(), of.zones.into())?;
        same("zone size", found.zone_size_lbas.get(), of.zone_size_lbas)?;
        same(
            "zone capacity",
            found.zone_capacity_lbas.get().into(),
            of.zone_capacity_lbas.into(),
        )?;
        let shape = Shape {
            journal_zones: body.journal_zones.get(),
            image_zones: body.image_zones.get(),
            footer_blocks: body.footer_blocks.get(),
            reserved_zones: body.reserved_zones.get(),
            logical_blocks: body.logical_blocks.get(),
            ..namespace.clone()
        };
        let anchor = self.anchor();
        let is_possible = is_possible(&shape) && fits(&anchor, &shape);
        Ok(is_possible.then_some((anchor, shape)))
    }

    fn anchor(&self) -> Anchor {
        let body = &self.body;
        let dead = body.dead.iter().map(|zone| zone.get());
        let position = |zone: U32, offset: U32| Position {
            zone: zone.get(),
            offset: offset.get(),
        };
        Anchor {
            sequence: body.sequence.get(),
            is_alone: self.is_alone(),
            epoch: body.epoch.get(),
            epoch_start: body.epoch_start.get(),
            epoch_at: position(body.epoch_zone, body.epoch_offset),
            committed: body.committed.get(),
            slot: match body.image_slot.get() {
                0 => ImageSlot::A,
                _ => ImageSlot::B,
            },
            image_blocks: body.image_blocks.get(),
            checkpoint: body.checkpoint.get(),
            start: body.start.get(),
            start_at: position(body.start_zone, body.start_offset),
            dead: dead.filter(|zone| *zone != NO_ZONE).collect(),
        }
    }
}

/// Whether a shape can have been formatted, so that counting with it is safe.
fn is_possible(shape: &Shape) -> bool {
    let zones = 2 * u64::from(shape.image_zones) + u64::from(shape.journal_zones) + 2;
    let zones_fit = shape.image_zones > 0 && shape.journal_zones > 0 && zones < shape.zones.into();
    zones_fit
        && shape.footer_blocks < shape.zone_capacity_lbas
        && u64::from(shape.logical_blocks)
            <= u64::from(shape.data_zones()) * u64::from(shape.data_blocks())
}

/// Whether an anchor is one of that shape.
fn fits(anchor: &Anchor, shape: &Shape) -> bool {
    let is_place =
        |at: &Position| shape.journal().contains(&at.zone) && at.offset <= shape.zone_capacity_lbas;
    let highest = anchor.sequence.max(anchor.checkpoint).max(anchor.committed);
    let can_go_on = highest <= NUMBER_MAX && u64::from(anchor.epoch) <= NUMBER_MAX >> 31;
    can_go_on
        && is_place(&anchor.start_at)
        && is_place(&anchor.epoch_at)
        && anchor.start.max(anchor.epoch_start) <= anchor.committed
        && [0, shape.logical_blocks.div_ceil(shape.words_per_block())]
            .contains(&anchor.image_blocks)
}
