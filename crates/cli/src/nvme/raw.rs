//! `zonelab nvme io-passthru`, `admin-passthru`: any command, dword by dword.

use std::fs::File;
use std::io::Write as _;

use serde_json::json;
use zonelab_device::{Buf, NamespaceId};
use zonelab_driver::tcp::Transfer;
use zonelab_driver::{Controller as _, Reply};
use zonelab_nvme::queue::{IoOpcode, SubmissionEntry};

use super::fields::{dump, pretty};
use super::{Session, failure, number8, number32};
use crate::exit::Failure;
use crate::files;

/// Options of either.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The opcode. Its two low bits say where the data goes: 1 to the drive, 2 from it
    #[arg(long, short = 'O', value_parser = number8)]
    opcode: u8,
    /// No namespace at all (NSID 0), instead of that of the drive
    #[arg(long)]
    no_namespace: bool,
    #[arg(long, value_parser = number32, default_value = "0", hide_default_value = true)]
    cdw2: u32,
    #[arg(long, value_parser = number32, default_value = "0", hide_default_value = true)]
    cdw3: u32,
    #[arg(long, value_parser = number32, default_value = "0", hide_default_value = true)]
    cdw10: u32,
    #[arg(long, value_parser = number32, default_value = "0", hide_default_value = true)]
    cdw11: u32,
    #[arg(long, value_parser = number32, default_value = "0", hide_default_value = true)]
    cdw12: u32,
    #[arg(long, value_parser = number32, default_value = "0", hide_default_value = true)]
    cdw13: u32,
    #[arg(long, value_parser = number32, default_value = "0", hide_default_value = true)]
    cdw14: u32,
    #[arg(long, value_parser = number32, default_value = "0", hide_default_value = true)]
    cdw15: u32,
    /// Bytes that the drive returns
    #[arg(long, short = 'l', value_parser = number32, conflicts_with = "input_file")]
    data_len: Option<u32>,
    /// The data that goes to the drive
    #[arg(long, short = 'i', value_name = "FILE")]
    input_file: Option<String>,
    /// Write what the drive returned to this file rather than show it
    #[arg(long, value_name = "FILE")]
    data: Option<String>,
}

/// Where the data of a command goes (base specification 2.0, section 3.3.3.1).
const TO_DRIVE: u8 = 0b01;
const FROM_DRIVE: u8 = 0b10;

impl Args {
    fn entry(&self, session: &Session) -> Result<SubmissionEntry, Failure> {
        // Whoever names one means it, whether or not it is there.
        let nsid = match (self.no_namespace, session.stated, session.named) {
            (true, _, _) => 0,
            (false, Some(nsid), _) | (false, None, Some(NamespaceId(nsid))) => nsid,
            (false, None, None) => session.nsid()?,
        };
        Ok(SubmissionEntry {
            cdw2: self.cdw2.into(),
            cdw3: self.cdw3.into(),
            cdw10: self.cdw10.into(),
            cdw11: self.cdw11.into(),
            cdw12: self.cdw12.into(),
            cdw13: self.cdw13.into(),
            cdw14: self.cdw14.into(),
            cdw15: self.cdw15.into(),
            ..SubmissionEntry::new(self.opcode).with_nsid(nsid)
        })
    }

    /// The data, in the direction that the opcode names.
    fn transfer(&self, session: &Session) -> Result<Transfer, Failure> {
        let most = session.controller.info().max_transfer_bytes;
        let (opcode, direction) = (self.opcode, self.opcode & 0b11);
        let wrong = |what: &str| {
            Failure::usage(format!(
                "opcode {opcode:#04x} {what}: --data-len is for opcodes with the low bits 2 or 3, \
                 --input-file for those with 1 or 3"
            ))
        };
        if let Some(path) = &self.input_file {
            if direction & TO_DRIVE == 0 {
                return Err(wrong("takes no data"));
            }
            let bytes = files::read_whole(path)?;
            check_len(bytes.len() as u64, most)?;
            return Ok(Transfer::ToController(Buf::from(bytes)));
        }
        match self.data_len {
            None | Some(0) => Ok(Transfer::None),
            Some(_) if direction & FROM_DRIVE == 0 => Err(wrong("returns no data")),
            Some(len) => {
                check_len(len.into(), most)?;
                Ok(Transfer::ToHost(Buf::zeroed(len as usize)))
            }
        }
    }
}

fn check_len(bytes: u64, most: u32) -> Result<(), Failure> {
    match bytes <= most.into() {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "{bytes} bytes are more than the drive moves with one command: {most} (MDTS)"
        ))),
    }
}

/// Refuses a command on blocks whose data has another length: the drive moves as
/// many blocks as dword 12 says, whatever memory there is.
fn check_blocks(session: &Session, args: &Args, bytes: usize) -> Result<(), Failure> {
    let moves_blocks = matches!(
        IoOpcode(args.opcode),
        IoOpcode::READ | IoOpcode::WRITE | IoOpcode::COMPARE | IoOpcode::ZONE_APPEND
    );
    if !moves_blocks {
        return Ok(());
    }
    let lba_bytes = session.namespace()?.lba_bytes().map_err(failure)?;
    let blocks = u64::from(args.cdw12 as u16) + 1;
    let needed = blocks * u64::from(lba_bytes);
    match needed == bytes as u64 {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "--cdw12 {:#x} says {blocks} blocks of {lba_bytes} bytes, which are {needed}, and \
             there is room for {bytes}",
            args.cdw12
        ))),
    }
}

pub(super) fn io(session: &mut Session, args: &Args) -> Result<String, Failure> {
    let transfer = args.transfer(session)?;
    check_blocks(session, args, transfer.len())?;
    let entry = args.entry(session)?;
    let reply = session.io("the I/O command", entry, transfer)?;
    show(session, args, reply)
}

pub(super) fn admin(session: &mut Session, args: &Args) -> Result<String, Failure> {
    let transfer = args.transfer(session)?;
    let entry = args.entry(session)?;
    let what = "the admin command";
    let reply = session.controller.admin(what, entry, transfer);
    let reply = reply.and_then(|reply| reply.ok(what)).map_err(failure)?;
    show(session, args, reply)
}

fn show(session: &Session, args: &Args, reply: Reply) -> Result<String, Failure> {
    let is_returned = args.data_len.is_some_and(|len| len > 0);
    let data = reply.data.filter(|_| is_returned);
    let data = data.map_or(Vec::new(), |buf| buf.to_vec());
    let (opcode, result) = (args.opcode, reply.entry.result());
    if let Some(path) = &args.data {
        File::create(path)
            .and_then(|mut file| file.write_all(&data))
            .map_err(|e| Failure::environment(anyhow::anyhow!("{path}: {e}")))?;
    }
    if session.json {
        let shown = if args.data.is_some() {
            Vec::new()
        } else {
            data
        };
        return Ok(pretty(
            &json!({ "opcode": opcode, "result": result, "data": shown }),
        ));
    }
    let shown = match args.data {
        Some(_) => String::new(),
        None => dump(&data),
    };
    Ok(format!(
        "opcode {opcode:#04x}: success, result:{result:#x}\n{shown}"
    ))
}
