//! `zonelab nvme read`, `write`, `flush`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use serde_json::json;
use zonelab_device::{Buf, Command, Completion, Lba, NamespaceId, Op, QueuePair as _, Tag};
use zonelab_driver::tcp::Transfer;
use zonelab_driver::{Controller as _, IoQueue as _};
use zonelab_host::block::split::Splitting;
use zonelab_nvme::command::{Flush, Read, Write};

use super::fields::{dump, pretty};
use super::length::LengthArgs;
use super::{ALL_NAMESPACES, Session, failure, number, number32, out_of_range, refused};
use crate::exit::Failure;
use crate::files::open_ordinary;

/// Most data of one call, which it has in memory.
const MOST_BYTES: u64 = 1 << 30;

/// Options of `nvme read`.
#[derive(clap::Args)]
pub(super) struct ReadArgs {
    /// First block
    #[arg(long, short = 's', value_parser = number, default_value = "0")]
    start_block: u64,
    /// Number of blocks: 1 is one block (nvme-cli counts from zero). More than the drive moves
    /// with one command are read in parts
    #[arg(long, value_parser = number32, conflicts_with_all = ["block_count", "data_size"])]
    blocks: Option<u32>,
    #[command(flatten)]
    length: LengthArgs,
    /// Write the data to this file rather than show it
    #[arg(long, value_name = "FILE")]
    data: Option<String>,
    /// Read from the media (FUA)
    #[arg(long, short = 'f')]
    force_unit_access: bool,
}

/// Options of `nvme write`.
#[derive(clap::Args)]
pub(super) struct WriteArgs {
    /// First block: in a zone, its write pointer
    #[arg(long, short = 's', value_parser = number, default_value = "0")]
    start_block: u64,
    /// The data: whole blocks; - is standard input. More than the drive moves with one command
    /// are written in parts, one after the other
    #[arg(long, value_name = "FILE", default_value = "-")]
    data: String,
    #[command(flatten)]
    length: LengthArgs,
    /// Write through to the media (FUA)
    #[arg(long, short = 'f')]
    force_unit_access: bool,
}

pub(super) fn read(session: &mut Session, args: &ReadArgs) -> Result<String, Failure> {
    let counted = args.length.blocks(lba_bytes(session)?)?;
    let (slba, blocks) = (args.start_block, args.blocks.or(counted).unwrap_or(1));
    let bytes = u64::from(blocks) * u64::from(lba_bytes(session)?);
    check_amount(&format!("{blocks} blocks"), bytes)?;
    let buf = Buf::zeroed(bytes as usize);
    let data = if is_one_command(session, slba, bytes)? || args.force_unit_access {
        check_transfer(session, bytes)?;
        let entry = Read {
            fua: args.force_unit_access,
            ..Read::new(session.nsid()?, slba, blocks)
        };
        let entry = entry.to_entry().map_err(out_of_range)?;
        let reply = session.io("Read", entry, Transfer::ToHost(buf))?;
        reply.data.unwrap_or_else(|| Buf::zeroed(0))
    } else {
        let slba = Lba(slba);
        let nlb = blocks;
        in_parts(session, "Read", Op::Read { slba, nlb }, buf)?
    };
    if let Some(path) = &args.data {
        File::create(path)
            .and_then(|mut file| file.write_all(&data))
            .map_err(|e| Failure::environment(anyhow::anyhow!("{path}: {e}")))?;
        return Ok(report(session, "read", slba, blocks));
    }
    Ok(match session.json {
        true => report(session, "read", slba, blocks),
        false => dump(&data),
    })
}

pub(super) fn write(session: &mut Session, args: &WriteArgs) -> Result<String, Failure> {
    let slba = args.start_block;
    let (data, blocks) = blocks_up_to(session, &args.data, &args.length, MOST_BYTES)?;
    let bytes = data.len() as u64;
    if bytes <= u64::from(session.controller.info().max_transfer_bytes) || args.force_unit_access {
        check_transfer(session, bytes)?;
        let entry = Write {
            fua: args.force_unit_access,
            ..Write::new(session.nsid()?, slba, blocks)
        };
        let entry = entry.to_entry().map_err(out_of_range)?;
        session.io("Write", entry, Transfer::ToController(data))?;
    } else {
        let (op_slba, nlb) = (Lba(slba), blocks);
        let op = Op::Write { slba: op_slba, nlb };
        in_parts(session, "Write", op, data)?;
    }
    Ok(report(session, "write", slba, blocks))
}

pub(super) fn flush(session: &mut Session) -> Result<String, Failure> {
    let nsid = match session.stated {
        Some(ALL_NAMESPACES) => ALL_NAMESPACES,
        _ => session.nsid()?,
    };
    session.io("Flush", Flush { nsid }.to_entry(), Transfer::None)?;
    Ok(match session.json {
        true => pretty(&json!({ "flush": "success" })),
        false => "NVMe Flush: success\n".to_owned(),
    })
}

/// Carries out a command that may be longer than the drive takes, and must succeed. Gives
/// the buffer back.
fn in_parts(session: &mut Session, what: &'static str, op: Op, data: Buf) -> Result<Buf, Failure> {
    let nsid = NamespaceId(session.nsid()?);
    session.queue()?;
    let Some(queue) = session.queue.take() else {
        return Ok(data);
    };
    let id = queue.id();
    let mut parts = Splitting::new(queue, id, 1);
    let taken = parts.submit(Command::on(nsid, op), Tag(0), Some(data));
    taken.map_err(|rejected| refused(format!("{what}: {}", rejected.reason)))?;
    let mut done = Vec::new();
    let completion = loop {
        parts.ring();
        parts.poll(&mut done);
        if let Some(completion) = done.pop() {
            break completion;
        }
        session.controller.keep_alive().map_err(failure)?;
        std::thread::yield_now();
    };
    let mut queue = parts.into_inner();
    let error = queue.take_error();
    session.queue = Some(queue);
    if let Some(error) = error {
        return Err(failure(error));
    }
    let Completion { status, result, .. } = completion;
    if !status.is_success() {
        let blocks = op.nlb();
        return Err(refused(format!(
            "{what}: {status}, after {result} of {blocks} blocks"
        )));
    }
    Ok(completion.data.unwrap_or_else(|| Buf::zeroed(0)))
}

/// What a command did.
pub(super) fn report(session: &Session, what: &str, slba: u64, blocks: u32) -> String {
    match session.json {
        true => pretty(&json!({ "command": what, "slba": slba, "blocks": blocks })),
        false => format!("{what}: success, {blocks} blocks at {slba:#x}\n"),
    }
}

/// A file of whole blocks of the namespace for one command, and how many they are.
pub(super) fn blocks_of(
    session: &Session,
    path: &str,
    length: &LengthArgs,
) -> Result<(Buf, u32), Failure> {
    let most = u64::from(session.controller.info().max_transfer_bytes);
    blocks_up_to(session, path, length, most.min(MOST_BYTES))
}

/// What is in a file, of `most` bytes or one more.
pub(super) fn bytes_of(path: &str, most: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let limit = most.saturating_add(1);
    let taken = match path {
        "-" => std::io::stdin().take(limit).read_to_end(&mut bytes),
        path => {
            open_ordinary(Path::new(path)).and_then(|file| file.take(limit).read_to_end(&mut bytes))
        }
    };
    taken.map_err(|e| Failure::input(anyhow::anyhow!("{path}: {e}")))?;
    if bytes.is_empty() {
        return Err(Failure::input(anyhow::anyhow!(
            "{path}: there is no data in it"
        )));
    }
    Ok(bytes)
}

/// As many blocks as the length says, with zeroes behind the end of the file, or else those
/// of the whole file.
fn blocks_up_to(
    session: &Session,
    path: &str,
    length: &LengthArgs,
    most: u64,
) -> Result<(Buf, u32), Failure> {
    let lba_bytes = lba_bytes(session)?;
    let wanted = length.blocks(lba_bytes)?;
    let wanted = wanted.map(|blocks| u64::from(blocks) * u64::from(lba_bytes));
    let check = |bytes: u64| {
        check_amount(path, bytes)?;
        match most < MOST_BYTES {
            true => check_transfer(session, bytes),
            false => Ok(()),
        }
    };
    wanted.map_or(Ok(()), check)?;
    let mut bytes = bytes_of(path, most)?;
    if let Some(wanted) = wanted {
        // Fits: it is at most what this program takes.
        bytes.resize(wanted as usize, 0);
    }
    check(bytes.len() as u64)?;
    if !bytes.len().is_multiple_of(lba_bytes as usize) {
        return Err(Failure::input(anyhow::anyhow!(
            "{path}: {} bytes are not a whole number of blocks of {lba_bytes} bytes; with \
             --data-size, zeroes fill the last one",
            bytes.len()
        )));
    }
    let blocks = (bytes.len() / lba_bytes as usize) as u32;
    Ok((Buf::from(bytes), blocks))
}

pub(super) fn lba_bytes(session: &Session) -> Result<u32, Failure> {
    session.namespace()?.lba_bytes().map_err(failure)
}

/// Whether the drive reads so many bytes with one command: they are not too many, and in
/// one zone if it wants that.
fn is_one_command(session: &Session, slba: u64, bytes: u64) -> Result<bool, Failure> {
    let info = session.controller.info();
    let blocks = bytes / u64::from(lba_bytes(session)?.max(1));
    let namespace = info.namespace(NamespaceId(session.nsid()?));
    let zoned = namespace.and_then(|namespace| namespace.zoned);
    let is_in_zone = zoned
        .filter(|zoned| !zoned.read_across_zones && zoned.zone_size_lbas > 0)
        .is_none_or(|zoned| slba % zoned.zone_size_lbas + blocks <= zoned.zone_size_lbas);
    Ok(is_in_zone && bytes <= u64::from(info.max_transfer_bytes))
}

/// Refuses what does not fit in the memory that this program takes.
fn check_amount(what: &str, bytes: u64) -> Result<(), Failure> {
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{what}: more than {} MiB; `zonelab fio` moves any amount",
        MOST_BYTES >> 20
    )))
}

/// Refuses what exceeds the largest transfer of the drive: it would fail there.
fn check_transfer(session: &Session, bytes: u64) -> Result<(), Failure> {
    let most = session.controller.info().max_transfer_bytes;
    if bytes <= u64::from(most) {
        return Ok(());
    }
    Err(refused(format!(
        "{bytes} bytes are more than the drive moves with one command: {most} (MDTS); reads and \
         writes without --force-unit-access go in parts"
    )))
}
