//! Whether what is on a drive fits together.

use zonelab_device::NamespaceId;
use zonelab_host::tasks::Io;

use crate::blocks::{DataZone, LogicalBlock, PhysicalBlock};
use crate::durable::look::Anchored;
use crate::durable::reads::read_each;
use crate::durable::{Facts, Look};
use crate::error::FtlError;
use crate::format::{Found, footer};
use crate::media::{Media, Zone, ZoneUse};

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// Metadata that a mount needs are damaged, missing or cannot be read.
    #[error("{0}")]
    Metadata(FtlError),
    /// The map has blocks of a zone that are not written, or cannot be read any more.
    #[error(
        "zone {zone}, block {lba}: the map has logical block {logical} here, and {what} \
         (blocks of the zone of which that is true: {blocks})"
    )]
    NotThere {
        /// The zone of the namespace.
        zone: u32,
        /// The first of those blocks on the drive.
        lba: u64,
        /// The logical block that should be there.
        logical: u32,
        /// How many such blocks the zone has.
        blocks: u32,
        /// Why it is not there.
        what: &'static str,
    },
    /// Two logical blocks are at one place.
    #[error(
        "zone {zone}, block {lba}: the map has logical blocks {first} and {second} here \
         (blocks of the zone with more than one: {blocks})"
    )]
    Shared {
        /// The zone of the namespace.
        zone: u32,
        /// The first such block on the drive.
        lba: u64,
        /// A logical block that is there.
        first: u32,
        /// The other one.
        second: u32,
        /// How many such blocks the zone has.
        blocks: u32,
    },
    /// A block of a footer is not whole, or cannot be read.
    #[error("zone {zone}, block {lba}: a block of the footer is damaged or cannot be read")]
    Footer {
        /// The zone of the namespace.
        zone: u32,
        /// The block of the footer.
        lba: u64,
    },
    /// A footer and the map say different things.
    #[error(
        "zone {zone}, block {lba}: the map has logical block {logical} here, and the footer of \
         the zone says {} (blocks of the zone of which they disagree: {blocks})",
        said.map_or_else(|| "none".to_owned(), |said| format!("logical block {said}"))
    )]
    FooterDiffers {
        /// The zone of the namespace.
        zone: u32,
        /// The first such block on the drive.
        lba: u64,
        /// The logical block that the map has there.
        logical: u32,
        /// The one that the footer names; `None`: it names none.
        said: Option<u32>,
        /// How many such blocks the zone has.
        blocks: u32,
    },
}

impl Finding {
    /// Where it is: the zone of the namespace, and the block. `None`: it is about no
    /// block.
    #[must_use]
    pub const fn place(&self) -> Option<(u32, u64)> {
        match self {
            Self::Metadata(
                FtlError::Corrupt { zone, lba, .. } | FtlError::Command { zone, lba, .. },
            )
            | Self::NotThere { zone, lba, .. }
            | Self::Shared { zone, lba, .. }
            | Self::Footer { zone, lba }
            | Self::FooterDiffers { zone, lba, .. } => Some((*zone, *lba)),
            Self::Metadata(_) => None,
        }
    }
}

/// What a check has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What is wrong, metadata first, then by zones.
    pub findings: Vec<Finding>,
    /// What the metadata say; `None`: they are damaged, so that nothing that depends on
    /// the map was checked.
    pub facts: Option<Facts>,
    /// Logical blocks that are somewhere.
    pub mapped_blocks: u32,
    /// Data zones whose footer was compared with the map.
    pub footers: u32,
    /// Data zones that are full and have no footer: they were closed early, after a
    /// write failed. That is in order.
    pub without_footer: u32,
}

/// Reads all metadata, as a mount does, and every footer; and compares everything with
/// the map and with what the drive says of its zones. Writes nothing.
///
/// # Errors
/// The namespace is not formatted, not by this version, or not as it is now; or the
/// device is gone. What is damaged, or cannot be read, is in the report.
pub async fn check(io: &Io, nsid: NamespaceId) -> Result<Report, FtlError> {
    let mut report = Report::default();
    let Some(mut found) = note(&mut report, Anchored::find(io, nsid).await)? else {
        return Ok(report);
    };
    let map = found.image().await;
    let map = note(&mut report, map)?;
    let journal = found.journal().await;
    let journal = note(&mut report, journal)?;
    let (Some(map), Some(journal)) = (map, journal) else {
        return Ok(report);
    };
    let (media, uuid) = (found.media.clone(), found.uuid);
    let Some(look) = note(&mut report, found.look(map, journal))? else {
        return Ok(report);
    };
    report.facts = Some(look.facts.clone());
    let holds = Holds::of(&look, &mut report);
    for zone in (0..look.shape.data_zones()).map(DataZone) {
        let on_drive = look.shape.zone_of(zone);
        let Some(reported) = look.reported.get(on_drive as usize) else {
            continue;
        };
        let blocks = holds.zone(&look, zone);
        report
            .findings
            .extend(not_there(&look, zone, reported, blocks));
        if reported.state == ZoneUse::Full {
            check_footer(&media, uuid, zone, blocks, &mut report).await?;
        }
    }
    Ok(report)
}

/// Takes what is wrong with metadata into the report.
fn note<T>(report: &mut Report, result: Result<T, FtlError>) -> Result<Option<T>, FtlError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(
            error @ (FtlError::Corrupt { .. }
            | FtlError::Command { .. }
            | FtlError::DeadZone { .. }
            | FtlError::JournalTooSmall { .. }),
        ) => {
            report.findings.push(Finding::Metadata(error));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The logical block of each block of the data zones.
struct Holds {
    words: Vec<u32>,
}

impl Holds {
    /// Turns the map round. Blocks that cannot be, and places with two blocks, go into
    /// the report.
    fn of(look: &Look, report: &mut Report) -> Self {
        let shape = &look.shape;
        let places = shape.data_zones() as usize * shape.data_blocks() as usize;
        let mut words = vec![PhysicalBlock::NOWHERE; places];
        let mut shared: Vec<Finding> = Vec::new();
        for logical in 0..shape.logical_blocks {
            let Some(at) = look.map.get(LogicalBlock(logical)) else {
                continue;
            };
            report.mapped_blocks += 1;
            let (zone, offset) = shape.place_of(at);
            let on_drive = shape.zone_of(zone);
            let lba = shape.lba(on_drive, offset).0;
            match words.get_mut(at.0 as usize) {
                None => report.findings.push(Finding::NotThere {
                    zone: on_drive,
                    lba,
                    logical,
                    blocks: 1,
                    what: "there is no such zone",
                }),
                Some(word) if *word == PhysicalBlock::NOWHERE => *word = logical,
                Some(word) => add_shared(&mut shared, (on_drive, lba), (*word, logical)),
            }
        }
        report.findings.append(&mut shared);
        Self { words }
    }

    fn zone(&self, look: &Look, zone: DataZone) -> &[u32] {
        let each = look.shape.data_blocks() as usize;
        let first = zone.0 as usize * each;
        &self.words[first..first + each]
    }
}

/// Counts another place with two blocks: zones have one finding each.
fn add_shared(shared: &mut Vec<Finding>, at: (u32, u64), pair: (u32, u32)) {
    for finding in shared.iter_mut() {
        if let Finding::Shared { zone, blocks, .. } = finding
            && *zone == at.0
        {
            *blocks += 1;
            return;
        }
    }
    shared.push(Finding::Shared {
        zone: at.0,
        lba: at.1,
        first: pair.0,
        second: pair.1,
        blocks: 1,
    });
}

/// Blocks of the map beyond what is written.
fn not_there(look: &Look, zone: DataZone, reported: &Zone, holds: &[u32]) -> Option<Finding> {
    let (from, what) = match reported.state {
        ZoneUse::Offline => (0, "the zone is offline"),
        _ => (reported.written as usize, "nothing is written here"),
    };
    let beyond = (0u32..).zip(holds).skip(from);
    let mut beyond = beyond.filter(|(_, word)| **word != PhysicalBlock::NOWHERE);
    let (offset, logical) = beyond.next()?;
    let on_drive = look.shape.zone_of(zone);
    Some(Finding::NotThere {
        zone: on_drive,
        lba: look.shape.lba(on_drive, offset).0,
        logical: *logical,
        blocks: 1 + beyond.count() as u32,
        what,
    })
}

/// Compares the footer of a zone, if it has one, with the map.
async fn check_footer(
    media: &Media,
    uuid: u128,
    zone: DataZone,
    holds: &[u32],
    report: &mut Report,
) -> Result<(), FtlError> {
    let shape = media.shape();
    let on_drive = shape.zone_of(zone);
    let first = shape.data_blocks();
    let mut said = Vec::with_capacity(holds.len());
    let mut missing = 0;
    let mut damaged = None;
    let blocks = read_each(media, on_drive, first, shape.footer_blocks).await?;
    for (index, block) in (0..).zip(blocks) {
        let found = match block {
            Ok(block) => footer::look(shape, uuid, on_drive, index, &block),
            Err(_) => Found::Damaged,
        };
        match found {
            Found::Valid(words) => said.extend(words),
            Found::Foreign => missing += 1,
            Found::Damaged => {
                damaged.get_or_insert(shape.lba(on_drive, first + index).0);
            }
        }
    }
    if let Some(lba) = damaged {
        let zone = on_drive;
        report.findings.push(Finding::Footer { zone, lba });
        return Ok(());
    }
    if missing > 0 {
        report.without_footer += 1;
        return Ok(());
    }
    report.footers += 1;
    let said_of = |offset: u32| {
        let word = said.get(offset as usize).copied();
        word.filter(|word| *word != PhysicalBlock::NOWHERE)
    };
    let mapped = (0u32..).zip(holds.iter().copied());
    let mapped = mapped.filter(|(_, logical)| *logical != PhysicalBlock::NOWHERE);
    let mut wrong = mapped.filter(|(offset, logical)| said_of(*offset) != Some(*logical));
    if let Some((offset, logical)) = wrong.next() {
        report.findings.push(Finding::FooterDiffers {
            zone: on_drive,
            lba: shape.lba(on_drive, offset).0,
            logical,
            said: said_of(offset),
            blocks: 1 + wrong.count() as u32,
        });
    }
    Ok(())
}
