//! `zonelab ftl`.

mod check;
mod dump;
mod format;
pub(crate) use format::share;
pub(crate) mod ground;
mod info;
mod io;
mod repair;

use serde_json::{Value, json};
use zonelab_ftl::durable::look::Purpose;
use zonelab_ftl::media::ZoneUse;
use zonelab_ftl::{FtlError, Shape};

use ground::Needs;

use crate::console;
use crate::exit::{Exit, Failure};
use crate::nvme::fields::pretty;
use crate::real_drive;

/// Options of `ftl`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    device: ground::DeviceArgs,
    /// As JSON
    #[arg(long, global = true)]
    json: bool,
}

const HELP: &str = "\
The layer keeps blocks that can be written in any order on a namespace whose zones are
written in order. What was flushed survives a loss of power at any moment.

A drive is tcp://HOST:PORT/NQN?nsid=1, linux:///dev/ng0n1 or pcie://0000:01:00.0?nsid=1;
or it is a profile with --store FILE, the emulated drive that `zonelab serve --store FILE`
keeps in that file, in virtual time or with ?clock=real behind the profile.

  zonelab ftl format --device zn540 --store drive.zonelab
  zonelab ftl write --device zn540 --store drive.zonelab --slba 7 --data block
  zonelab ftl check --device zn540 --store drive.zonelab

Exit codes: 0 done, 1 repaired and something is cut back, 2 usage, 3 not formatted, damaged,
or a drive that the layer cannot use; 4 no connection or in use, 5 the drive failed a command.";

#[derive(clap::Subcommand)]
enum Command {
    /// Make a drive ready: all that is on it is lost
    Format(format::FormatArgs),
    /// Say what is on a drive. Nothing is written
    Info,
    /// Read all metadata, and see whether everything fits together. Nothing is written
    Check,
    /// Make a drive mountable again of which metadata are damaged, and say what is cut back
    Repair(repair::RepairArgs),
    /// Print the map, the journal and the zones. Nothing is written
    Dump(dump::DumpArgs),
    /// Mount, read blocks of the layer, and leave
    Read(io::ReadArgs),
    /// Mount, write blocks of the layer, make them durable, and leave
    Write(io::WriteArgs),
}

impl Command {
    const fn needs(&self) -> Needs {
        match self {
            Self::Format(_) => Needs::Make,
            Self::Repair(of) if !of.writes() => Needs::Look,
            Self::Info | Self::Check | Self::Dump(_) => Needs::Look,
            Self::Repair(_) | Self::Read(_) | Self::Write(_) => Needs::Write,
        }
    }
}

/// Does what the command line says.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn ftl(args: &Args) -> Result<Exit, Failure> {
    if let Command::Write(of) = &args.command {
        of.check()?;
    }
    let ground = ground::Ground::open(&args.device, args.command.needs())?;
    let said = match &args.command {
        Command::Format(of) => format::format(ground, of),
        Command::Info => info::info(ground),
        Command::Check => check::check(ground),
        Command::Repair(of) => repair::repair(ground, of),
        Command::Dump(of) => dump::dump(ground, of),
        Command::Read(of) => io::read(ground, of, args.json),
        Command::Write(of) => io::write(ground, of),
    }?;
    console::print(&match args.json {
        true => pretty(&said.json),
        false => said.text,
    })?;
    Ok(said.exit)
}

/// What a command has to say, in both forms, and how it ended.
struct Said {
    text: String,
    json: Value,
    exit: Exit,
}

impl Said {
    fn done(text: String, json: Value) -> Self {
        Self {
            text,
            json,
            exit: Exit::Done,
        }
    }
}

/// Why something cannot be done on `device`, with the exit code for that.
pub(crate) fn failure(device: &str, error: &FtlError) -> Failure {
    if let FtlError::Setting { key, value, valid } = error {
        let option = key.replace('_', "-");
        return Failure::usage(format!("--{option} {value}: valid: {valid}"));
    }
    let exit = match error {
        error if error.is_no_room() => Exit::Environment,
        FtlError::Command { .. }
        | FtlError::Stuck
        | FtlError::Gone(_)
        | FtlError::DeadZone { .. }
        | FtlError::JournalFull { .. } => Exit::Device,
        _ => Exit::InvalidInput,
    };
    let hint = match error {
        error if error.is_no_room() => ": is the disk of its store full?",
        // Metadata, or the blocks of whoever reads them: looking tells which.
        FtlError::Corrupt { .. } | FtlError::Command { action: "read", .. } => {
            "; `zonelab ftl repair` says what can be saved"
        }
        _ => "",
    };
    Failure::new(exit, anyhow::anyhow!("{device}: {error}{hint}"))
}

/// A uuid as people write it.
pub(crate) fn uuid_text(uuid: u128) -> String {
    let digits = format!("{uuid:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|part| digits[part].to_owned()).join("-")
}

/// The name of a zone's state.
const fn state_name(state: ZoneUse) -> &'static str {
    match state {
        ZoneUse::Empty => "empty",
        ZoneUse::Open => "open",
        ZoneUse::Closed => "closed",
        ZoneUse::Full => "full",
        ZoneUse::ReadOnly => "read only",
        ZoneUse::Offline => "offline",
    }
}

/// Bytes of so many blocks.
fn bytes_of(shape: &Shape, blocks: u64) -> u64 {
    blocks * u64::from(shape.block_bytes)
}

/// Data blocks beyond those that programs see, reserved zones not counted, as a share of
/// the latter.
fn spare(shape: &Shape) -> f64 {
    let zones = shape.data_zones().saturating_sub(shape.reserved_zones);
    let data = f64::from(zones) * f64::from(shape.data_blocks());
    data / f64::from(shape.logical_blocks) - 1.0
}

/// Which zones are for what, in order, as ranges of numbers.
fn purposes(shape: &Shape) -> Vec<(&'static str, Vec<u32>)> {
    let mut all: Vec<(&'static str, Vec<u32>)> = Vec::new();
    for zone in 0..shape.zones {
        let name = Purpose::of(shape, zone).name();
        match all.last_mut().filter(|(last, _)| *last == name) {
            Some((_, zones)) => zones.push(zone),
            None => all.push((name, vec![zone])),
        }
    }
    all
}

/// Lines of [`purposes`].
fn purposes_text(shape: &Shape) -> String {
    let line = |(name, zones): &(&str, Vec<u32>)| {
        let several = if zones.len() == 1 { "zone" } else { "zones" };
        format!("  {name:<8} {several} {}\n", real_drive::ranges(zones))
    };
    purposes(shape).iter().map(line).collect()
}

/// The same as JSON: name, first zone, number of zones.
fn purposes_json(shape: &Shape) -> Value {
    let of = |(name, zones): &(&str, Vec<u32>)| json!({ "use": name, "first": zones.first(), "count": zones.len() });
    purposes(shape).iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_in_five_parts() {
        let uuid = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;
        assert_eq!(uuid_text(uuid), "01234567-89ab-cdef-0123-456789abcdef");
        assert_eq!(uuid_text(1), "00000000-0000-0000-0000-000000000001");
    }

    #[test]
    fn settings_are_named_as_options() {
        let error = FtlError::Setting {
            key: "reserved_zones",
            value: "2".to_owned(),
            valid: "4 to 9".to_owned(),
        };
        let failure = failure("drive", &error);
        assert_eq!(failure.exit, Exit::Usage);
        let text = failure.error.to_string();
        assert_eq!(text, "--reserved-zones 2: valid: 4 to 9");
    }
}
