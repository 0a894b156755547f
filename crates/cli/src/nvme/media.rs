//! `zonelab nvme copy`, `dsm`, `write-zeroes`, `compare`, `verify`.

use serde_json::json;
use zonelab_device::Buf;
use zonelab_driver::tcp::Transfer;
use zonelab_nvme::Reserved;
use zonelab_nvme::command::{
    Compare, CopyCommand, CopyRange, DatasetManagement, DatasetRange, Verify, WriteZeroes,
};
use zonelab_nvme::zerocopy::IntoBytes;

use super::fields::pretty;
use super::length::LengthArgs;
use super::{Session, io, number, number32, out_of_range};
use crate::exit::Failure;

/// Ranges of one command at most: what NR holds.
const MAX_RANGES: usize = 256;

/// Which blocks.
#[derive(clap::Args)]
pub(super) struct BlockArgs {
    /// First block
    #[arg(long, short = 's', value_parser = number, default_value = "0")]
    start_block: u64,
    /// Number of blocks: 1 is one block (nvme-cli counts from zero)
    #[arg(long, value_parser = number32, conflicts_with_all = ["block_count", "data_size"])]
    blocks: Option<u32>,
    #[command(flatten)]
    length: LengthArgs,
    /// From or to the media (FUA)
    #[arg(long, short = 'f')]
    force_unit_access: bool,
}

impl BlockArgs {
    fn blocks(&self, session: &Session) -> Result<u32, Failure> {
        let counted = self.length.blocks(io::lba_bytes(session)?)?;
        Ok(self.blocks.or(counted).unwrap_or(1))
    }
}

/// Options of `nvme write-zeroes`.
#[derive(clap::Args)]
pub(super) struct ZeroesArgs {
    #[command(flatten)]
    blocks: BlockArgs,
    /// The drive may deallocate the blocks (DEAC)
    #[arg(long)]
    deac: bool,
}

/// Options of `nvme compare`.
#[derive(clap::Args)]
pub(super) struct CompareArgs {
    /// First block
    #[arg(long, short = 's', value_parser = number, default_value = "0")]
    start_block: u64,
    /// What the blocks should hold: whole blocks; - is standard input
    #[arg(long, value_name = "FILE", default_value = "-")]
    data: String,
    #[command(flatten)]
    length: LengthArgs,
}

/// Ranges of blocks.
#[derive(clap::Args)]
struct RangeArgs {
    /// First block of each range
    #[arg(long, value_delimiter = ',', value_parser = number, required = true)]
    slbs: Vec<u64>,
    /// Number of blocks of each range: 1 is one block
    #[arg(long, value_delimiter = ',', value_parser = number32, required = true)]
    blocks: Vec<u32>,
}

/// Options of `nvme dsm`.
#[derive(clap::Args)]
pub(super) struct DsmArgs {
    #[command(flatten)]
    ranges: RangeArgs,
    /// Deallocate (AD)
    #[arg(long)]
    ad: bool,
    /// They are going to be written as one (IDW)
    #[arg(long, short = 'w')]
    idw: bool,
    /// They are going to be read as one (IDR)
    #[arg(long, short = 'r')]
    idr: bool,
}

/// Options of `nvme copy`.
#[derive(clap::Args)]
pub(super) struct CopyArgs {
    /// First block of the destination: in a zone, its write pointer
    #[arg(long, value_parser = number)]
    sdlba: u64,
    #[command(flatten)]
    ranges: RangeArgs,
    /// Write through to the media (FUA)
    #[arg(long)]
    force_unit_access: bool,
}

impl RangeArgs {
    /// First block and number of blocks of each.
    fn pairs(&self) -> Result<Vec<(u64, u32)>, Failure> {
        let (starts, counts) = (self.slbs.len(), self.blocks.len());
        if starts != counts || starts > MAX_RANGES {
            return Err(Failure::usage(format!(
                "--slbs names {starts} ranges and --blocks {counts}: as many of each, at most \
                 {MAX_RANGES}"
            )));
        }
        let pairs = self.slbs.iter().copied();
        Ok(pairs.zip(self.blocks.iter().copied()).collect())
    }
}

pub(super) fn write_zeroes(session: &mut Session, args: &ZeroesArgs) -> Result<String, Failure> {
    let (slba, blocks) = (args.blocks.start_block, args.blocks.blocks(session)?);
    let entry = WriteZeroes {
        fua: args.blocks.force_unit_access,
        deac: args.deac,
        ..WriteZeroes::new(session.nsid()?, slba, blocks)
    };
    let entry = entry.to_entry().map_err(out_of_range)?;
    session.io("Write Zeroes", entry, Transfer::None)?;
    Ok(io::report(session, "write-zeroes", slba, blocks))
}

pub(super) fn verify(session: &mut Session, args: &BlockArgs) -> Result<String, Failure> {
    let blocks = args.blocks(session)?;
    let entry = Verify {
        fua: args.force_unit_access,
        ..Verify::new(session.nsid()?, args.start_block, blocks)
    };
    let entry = entry.to_entry().map_err(out_of_range)?;
    session.io("Verify", entry, Transfer::None)?;
    Ok(io::report(session, "verify", args.start_block, blocks))
}

pub(super) fn compare(session: &mut Session, args: &CompareArgs) -> Result<String, Failure> {
    let (data, blocks) = io::blocks_of(session, &args.data, &args.length)?;
    let entry = Compare::new(session.nsid()?, args.start_block, blocks);
    let entry = entry.to_entry().map_err(out_of_range)?;
    session.io("Compare", entry, Transfer::ToController(data))?;
    Ok(io::report(session, "compare", args.start_block, blocks))
}

pub(super) fn dsm(session: &mut Session, args: &DsmArgs) -> Result<String, Failure> {
    let pairs = args.ranges.pairs()?;
    if !(args.ad || args.idw || args.idr) {
        let message = "what about the ranges? Say --ad, --idw or --idr".to_owned();
        return Err(Failure::usage(message));
    }
    let mut data = Vec::new();
    for &(slba, nlb) in &pairs {
        let range = DatasetRange {
            nlb: nlb.into(),
            slba: slba.into(),
            ..DatasetRange::default()
        };
        data.extend(range.as_bytes());
    }
    let command = DatasetManagement {
        ad: args.ad,
        idw: args.idw,
        idr: args.idr,
        ..DatasetManagement::deallocate(session.nsid()?, pairs.len() as u16)
    };
    let entry = command.to_entry().map_err(out_of_range)?;
    let transfer = Transfer::ToController(Buf::from(data));
    session.io("Dataset Management", entry, transfer)?;
    Ok(of_ranges(session, "dsm", None, &pairs))
}

pub(super) fn copy(session: &mut Session, args: &CopyArgs) -> Result<String, Failure> {
    let pairs = args.ranges.pairs()?;
    let mut data = Vec::new();
    for &(slba, nlb) in &pairs {
        let nlb_z = nlb
            .checked_sub(1)
            .and_then(|nlb_z| u16::try_from(nlb_z).ok());
        let nlb_z = nlb_z.ok_or_else(|| {
            Failure::usage(format!("--blocks {nlb}: a range has 1 to 65536 blocks"))
        })?;
        let range = CopyRange {
            slba: slba.into(),
            nlb_z: nlb_z.into(),
            reserved_0: Reserved::ZERO,
            ..CopyRange::default()
        };
        data.extend(range.as_bytes());
    }
    let command = CopyCommand {
        fua: args.force_unit_access,
        ..CopyCommand::new(session.nsid()?, args.sdlba, pairs.len() as u16)
    };
    let entry = command.to_entry().map_err(out_of_range)?;
    session.io("Copy", entry, Transfer::ToController(Buf::from(data)))?;
    Ok(of_ranges(session, "copy", Some(args.sdlba), &pairs))
}

/// What a command did with ranges.
fn of_ranges(session: &Session, what: &str, sdlba: Option<u64>, pairs: &[(u64, u32)]) -> String {
    let blocks: u64 = pairs.iter().map(|(_, nlb)| u64::from(*nlb)).sum();
    if session.json {
        let ranges = pairs.iter();
        let ranges: Vec<_> = ranges
            .map(|(slba, nlb)| json!({ "slba": slba, "blocks": nlb }))
            .collect();
        return pretty(&json!({ "command": what, "sdlba": sdlba, "ranges": ranges }));
    }
    let to = sdlba.map_or(String::new(), |sdlba| format!(" to {sdlba:#x}"));
    format!(
        "{what}: success, {blocks} blocks in {} ranges{to}\n",
        pairs.len()
    )
}
