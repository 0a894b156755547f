//! `zonelab ftl read` and `zonelab ftl write`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use serde_json::json;
use zonelab_device::{Buf, Command, Lba, Op, RejectReason};
use zonelab_ftl::Shape;
use zonelab_host::tasks::{Answer, Io};
use zonelab_nvme::Status;

use super::ground::Ground;
use super::{Said, failure};
use crate::exit::{Exit, Failure};
use crate::files::open_ordinary;
use crate::nvme::fields::dump;
use crate::nvme::{number, number32};

/// Bytes of one command: others of that size follow.
const PIECE_BYTES: u32 = 1 << 20;

/// Most bytes that one call takes.
const MOST_BYTES: u64 = 1 << 30;

/// Options of `ftl read`.
#[derive(clap::Args)]
pub(super) struct ReadArgs {
    /// First block
    #[arg(long, short = 's', value_parser = number, default_value = "0")]
    slba: u64,
    /// Number of blocks
    #[arg(long, value_parser = number32, default_value = "1")]
    nlb: u32,
    /// Write the data to this file rather than show it; - is standard output
    #[arg(long, value_name = "FILE")]
    data: Option<String>,
}

/// Options of `ftl write`.
#[derive(clap::Args)]
pub(super) struct WriteArgs {
    /// First block
    #[arg(long, short = 's', value_parser = number, default_value = "0")]
    slba: u64,
    /// Number of blocks [default: all of the data]
    #[arg(long, value_parser = number32)]
    nlb: Option<u32>,
    /// The data: whole blocks; - is standard input
    #[arg(long, value_name = "FILE")]
    data: String,
}

impl WriteArgs {
    /// Refuses what can be refused before the drive is opened.
    ///
    /// # Errors
    /// There is such an option.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.nlb {
            Some(0) => Err(Failure::usage("--nlb 0: valid: 1 or more".to_owned())),
            _ => Ok(()),
        }
    }
}

/// Why a command on the layer was not done.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("--slba {slba} and --nlb {nlb}: the layer has {size} blocks, from 0 on")]
    Beyond { slba: u64, nlb: u32, size: u64 },
    #[error("{action} at block {slba}: {status}")]
    Failed {
        action: &'static str,
        slba: u64,
        status: Status,
    },
    #[error("the layer does not take commands: {0}")]
    Gone(RejectReason),
}

impl Refused {
    fn failure(self, device: &str) -> Failure {
        let exit = match self {
            Self::Beyond { .. } => Exit::Usage,
            Self::Failed { .. } | Self::Gone(_) => Exit::Device,
        };
        Failure::new(exit, anyhow::anyhow!("{device}: {self}"))
    }
}

pub(super) fn read(ground: Ground, args: &ReadArgs, is_json: bool) -> Result<Said, Failure> {
    let block_bytes = match block_bytes(&ground).and_then(|bytes| fits(args, bytes, is_json)) {
        Ok(bytes) => bytes,
        Err(error) => return ground.end(Err(error)),
    };
    let (slba, nlb) = (args.slba, args.nlb);
    let name = ground.name.clone();
    let data = ground.mounted(async move |io| Ok(read_all(&io, (slba, nlb), block_bytes).await))?;
    let data = data.map_err(|refused| refused.failure(&name))?;
    let mut said = report("read", slba, nlb);
    match args.data.as_deref() {
        Some("-") => {
            let written = std::io::stdout().write_all(&data);
            written.map_err(Failure::environment)?;
            said.text.clear();
        }
        Some(path) => {
            let written = File::create(path).and_then(|mut file| file.write_all(&data));
            written.map_err(|e| Failure::environment(anyhow::anyhow!("{path}: {e}")))?;
        }
        None => said.text = dump(&data),
    }
    Ok(said)
}

/// Refuses what makes no sense; else the size of a block again.
fn fits(args: &ReadArgs, block_bytes: u32, is_json: bool) -> Result<u32, Failure> {
    if is_json && args.data.as_deref() == Some("-") {
        return Err(Failure::usage(
            "--data - and --json both write to standard output: leave one out, or name a file"
                .to_owned(),
        ));
    }
    let most = MOST_BYTES / u64::from(block_bytes);
    match (1..=most).contains(&args.nlb.into()) {
        true => Ok(block_bytes),
        false => Err(Failure::usage(format!(
            "--nlb {}: valid: 1 to {most}",
            args.nlb
        ))),
    }
}

async fn read_all(io: &Io, (slba, nlb): (u64, u32), block_bytes: u32) -> Result<Vec<u8>, Refused> {
    check_range(io, slba, nlb)?;
    let mut data = Vec::new();
    for (slba, nlb) in pieces(slba, nlb, block_bytes) {
        let buffer = Buf::zeroed(nlb as usize * block_bytes as usize);
        let answer = run(io, Op::Read { slba, nlb }, Some(buffer), "read", slba).await?;
        data.extend_from_slice(answer.data.as_deref().unwrap_or_default());
    }
    Ok(data)
}

pub(super) fn write(ground: Ground, args: &WriteArgs) -> Result<Said, Failure> {
    let taken = block_bytes(&ground).and_then(|bytes| Ok((bytes, taken(args, bytes)?)));
    let (block_bytes, data) = match taken {
        Ok(taken) => taken,
        Err(error) => return ground.end(Err(error)),
    };
    let (slba, nlb) = (args.slba, (data.len() / block_bytes as usize) as u32);
    let name = ground.name.clone();
    let end = ground.mounted(async move |io| Ok(write_all(&io, slba, &data, block_bytes).await))?;
    end.map_err(|refused| refused.failure(&name))?;
    Ok(report("write", slba, nlb))
}

/// Writes all of it, and makes it durable.
async fn write_all(io: &Io, slba: u64, data: &[u8], block_bytes: u32) -> Result<(), Refused> {
    let nlb = (data.len() / block_bytes as usize) as u32;
    check_range(io, slba, nlb)?;
    let mut rest = data;
    for (slba, nlb) in pieces(slba, nlb, block_bytes) {
        let (piece, others) = rest.split_at(nlb as usize * block_bytes as usize);
        rest = others;
        let buffer = Buf::from(piece.to_vec());
        run(io, Op::Write { slba, nlb }, Some(buffer), "write", slba).await?;
    }
    run(io, Op::Flush, None, "flush", Lba(slba)).await?;
    Ok(())
}

/// The size of a block of the layer: that of the namespace below.
fn block_bytes(ground: &Ground) -> Result<u32, Failure> {
    let shape = Shape::of_namespace(ground.info(), ground.nsid);
    let shape = shape.map_err(|error| failure(&ground.name, &error))?;
    Ok(shape.block_bytes)
}

/// The data of a write.
fn taken(args: &WriteArgs, block_bytes: u32) -> Result<Vec<u8>, Failure> {
    let path = args.data.as_str();
    let wanted = args.nlb.map(|nlb| u64::from(nlb) * u64::from(block_bytes));
    let most = wanted.unwrap_or(MOST_BYTES).min(MOST_BYTES);
    let mut bytes = Vec::new();
    let read = match path {
        "-" => std::io::stdin().take(most + 1).read_to_end(&mut bytes),
        path => open_ordinary(Path::new(path))
            .and_then(|file| file.take(most + 1).read_to_end(&mut bytes)),
    };
    let wrong = |what: String| Failure::input(anyhow::anyhow!("{path}: {what}"));
    read.map_err(|error| wrong(error.to_string()))?;
    let length = bytes.len() as u64;
    if let Some(wanted) = wanted.filter(|wanted| *wanted != length) {
        let nlb = wanted / u64::from(block_bytes);
        let relation = if length < wanted { "fewer" } else { "more" };
        return Err(wrong(format!(
            "it has {relation} bytes than the {wanted} of --nlb {nlb}"
        )));
    }
    if length == 0 {
        return Err(wrong("there is no data in it".to_owned()));
    }
    if length > most {
        return Err(wrong(format!(
            "it has more than the {most} bytes that one call writes"
        )));
    }
    if !length.is_multiple_of(block_bytes.into()) {
        return Err(wrong(format!(
            "{length} bytes are not a whole number of blocks of {block_bytes} bytes"
        )));
    }
    Ok(bytes)
}

/// What each command of a long transfer does.
fn pieces(slba: u64, nlb: u32, block_bytes: u32) -> impl Iterator<Item = (Lba, u32)> {
    let each = (PIECE_BYTES / block_bytes).max(1);
    let starts = (0..nlb).step_by(each as usize);
    starts.map(move |done| (Lba(slba + u64::from(done)), each.min(nlb - done)))
}

/// Whether there are such blocks.
fn check_range(io: &Io, slba: u64, nlb: u32) -> Result<(), Refused> {
    let first = io.info().namespaces.first();
    let size = first.map_or(0, |namespace| namespace.size_lbas);
    let end = slba.checked_add(nlb.into());
    match end.is_some_and(|end| end <= size) {
        true => Ok(()),
        false => Err(Refused::Beyond { slba, nlb, size }),
    }
}

/// Does a command on the layer that must succeed.
async fn run(
    io: &Io,
    op: Op,
    data: Option<Buf>,
    action: &'static str,
    lba: Lba,
) -> Result<Answer, Refused> {
    let answer = io
        .run(Command::new(op), data)
        .await
        .map_err(Refused::Gone)?;
    match answer.status.is_success() {
        true => Ok(answer),
        false => Err(Refused::Failed {
            action,
            slba: lba.0,
            status: answer.status,
        }),
    }
}

/// What a command did.
fn report(what: &str, slba: u64, nlb: u32) -> Said {
    let text = format!("{what}: success, {nlb} blocks at {slba}\n");
    let json = json!({ "schema": 1, "command": what, "slba": slba, "blocks": nlb });
    Said::done(text, json)
}
