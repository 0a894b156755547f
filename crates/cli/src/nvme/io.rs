//! `zonelab nvme read`, `write`, `flush`.

use std::fs::File;
use std::io::{Read as _, Write as _};

use serde_json::json;
use zonelab_device::Buf;
use zonelab_driver::Controller as _;
use zonelab_driver::tcp::Transfer;
use zonelab_nvme::command::{Flush, Read, Write};

use super::fields::{dump, pretty};
use super::{Session, failure, number, number32, out_of_range, refused};
use crate::exit::Failure;

/// Options of `nvme read`.
#[derive(clap::Args)]
pub(super) struct ReadArgs {
    /// First block
    #[arg(long, short = 's', value_parser = number, default_value = "0")]
    start_block: u64,
    /// Number of blocks: 1 is one block (nvme-cli counts from zero)
    #[arg(long, value_parser = number32, default_value = "1")]
    blocks: u32,
    /// Write the data to this file rather than show it
    #[arg(long, value_name = "FILE")]
    data: Option<String>,
    /// Read from the media (FUA)
    #[arg(long)]
    force_unit_access: bool,
}

/// Options of `nvme write`.
#[derive(clap::Args)]
pub(super) struct WriteArgs {
    /// First block: in a zone, its write pointer
    #[arg(long, short = 's', value_parser = number, default_value = "0")]
    start_block: u64,
    /// The data: whole blocks; - is standard input
    #[arg(long, value_name = "FILE")]
    data: String,
    /// Write through to the media (FUA)
    #[arg(long)]
    force_unit_access: bool,
}

pub(super) fn read(session: &mut Session, args: &ReadArgs) -> Result<String, Failure> {
    let entry = Read {
        fua: args.force_unit_access,
        ..Read::new(session.nsid, args.start_block, args.blocks)
    };
    let entry = entry.to_entry().map_err(out_of_range)?;
    let lba_bytes = session.namespace()?.lba_bytes().map_err(failure)?;
    let bytes = u64::from(args.blocks) * u64::from(lba_bytes);
    check_transfer(session, bytes)?;
    let buf = Buf::zeroed(bytes as usize);
    let reply = session.io("Read", entry, Transfer::ToHost(buf))?;
    let data = reply.data.unwrap_or_else(|| Buf::zeroed(0));
    if let Some(path) = &args.data {
        File::create(path)
            .and_then(|mut file| file.write_all(&data))
            .map_err(|e| Failure::environment(anyhow::anyhow!("{path}: {e}")))?;
        return Ok(report(session, "read", args.start_block, args.blocks));
    }
    Ok(match session.json {
        true => report(session, "read", args.start_block, args.blocks),
        false => dump(&data),
    })
}

pub(super) fn write(session: &mut Session, args: &WriteArgs) -> Result<String, Failure> {
    let (data, blocks) = blocks_of(session, &args.data)?;
    let entry = Write {
        fua: args.force_unit_access,
        ..Write::new(session.nsid, args.start_block, blocks)
    };
    let entry = entry.to_entry().map_err(out_of_range)?;
    session.io("Write", entry, Transfer::ToController(data))?;
    Ok(report(session, "write", args.start_block, blocks))
}

pub(super) fn flush(session: &mut Session) -> Result<String, Failure> {
    let nsid = session.namespace()?.nsid;
    session.io("Flush", Flush { nsid }.to_entry(), Transfer::None)?;
    Ok(match session.json {
        true => pretty(&json!({ "flush": "success" })),
        false => "NVMe Flush: success\n".to_owned(),
    })
}

/// What a command did.
pub(super) fn report(session: &Session, what: &str, slba: u64, blocks: u32) -> String {
    match session.json {
        true => pretty(&json!({ "command": what, "slba": slba, "blocks": blocks })),
        false => format!("{what}: success, {blocks} blocks at {slba:#x}\n"),
    }
}

/// A file of whole blocks of the namespace, and how many they are.
pub(super) fn blocks_of(session: &Session, path: &str) -> Result<(Buf, u32), Failure> {
    let lba_bytes = session.namespace()?.lba_bytes().map_err(failure)? as usize;
    let most = session.controller.info().max_transfer_bytes;
    let mut bytes = Vec::new();
    let limit = u64::from(most).saturating_add(1);
    let taken = match path {
        "-" => std::io::stdin().take(limit).read_to_end(&mut bytes),
        path => File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
    };
    taken.map_err(|e| Failure::input(anyhow::anyhow!("{path}: {e}")))?;
    if bytes.is_empty() {
        return Err(Failure::input(anyhow::anyhow!(
            "{path}: there is no data in it"
        )));
    }
    check_transfer(session, bytes.len() as u64)?;
    if !bytes.len().is_multiple_of(lba_bytes) {
        return Err(Failure::input(anyhow::anyhow!(
            "{path}: {} bytes are not a whole number of blocks of {lba_bytes} bytes",
            bytes.len()
        )));
    }
    let blocks = (bytes.len() / lba_bytes) as u32;
    Ok((Buf::from(bytes), blocks))
}

/// Refuses what exceeds the largest transfer of the drive: it would fail there.
fn check_transfer(session: &Session, bytes: u64) -> Result<(), Failure> {
    let most = session.controller.info().max_transfer_bytes;
    if bytes <= u64::from(most) {
        return Ok(());
    }
    Err(refused(format!(
        "{bytes} bytes are more than the drive moves with one command: {most} (MDTS)"
    )))
}
