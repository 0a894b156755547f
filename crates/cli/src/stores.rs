//! `zonelab store`: looking at the files of `serve --store`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::json;
use zonelab_ssd::Drive;
use zonelab_ssd::config::DriveConfig;
use zonelab_store::check::{self, Repaired, Report, Reservations};
use zonelab_store::{Found, LostRecord, Medium, Notice, OpenError, Options, Store};
use zonelab_target::controller::formatted;

use crate::console;
use crate::exit::{Exit, Failure};

/// Options of `store`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Look at all records and all data. Nothing is written
    Check(CheckArgs),
    /// Let a damaged store be served again, and say what is lost
    Repair(RepairArgs),
}

#[derive(clap::Args)]
struct CheckArgs {
    /// The store
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct RepairArgs {
    /// The store
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Do it although data is given up. There is no way back: copy the file
    /// before (`cp --sparse=always`)
    #[arg(long)]
    force: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Exit codes of check: 0 it is sound; 3 it is damaged, or no store; 4 a server uses it.
Zones that fall back on an older record become read-only, those without any record
offline. Blocks that are not what was written stay unreadable. docs/serve.md says more.

  zonelab store check drive.zonelab
  zonelab store repair drive.zonelab --force";

/// Checks or repairs a store.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn store(args: &Args) -> Result<Exit, Failure> {
    match &args.action {
        Action::Check(args) => run_check(args),
        Action::Repair(args) => run_repair(args),
    }
}

/// Why a store cannot be used, with the exit code for that.
pub(crate) fn refused(path: &Path, error: &OpenError) -> Failure {
    let at = anyhow::anyhow!("{}: {error}", path.display());
    match error {
        OpenError::System(_)
        | OpenError::InUse
        | OpenError::MadeByAnother
        | OpenError::InTheWay { .. }
        | OpenError::Limit { .. } => Failure::environment(at),
        _ => Failure::input(at),
    }
}

/// The drive of `config` that is in a store, which is made if it is not there, and what
/// was found.
///
/// # Errors
/// The store cannot be opened, is in use, damaged, or of another drive.
pub(crate) fn drive(
    path: &Path,
    config: &DriveConfig,
    options: Options,
) -> Result<(Drive, Found), Failure> {
    let opened = Store::at(path, config, options).map_err(|error| refused(path, &error))?;
    drive_in(path, config, opened)
}

/// The drive of `config` that is in a store, which has to be there.
///
/// # Errors
/// As [`drive`], or nothing is there.
pub(crate) fn drive_there(path: &Path, config: &DriveConfig, use_: Use) -> Result<Drive, Failure> {
    let refused = |error: OpenError| match &error {
        OpenError::System(system) if system.kind() == ErrorKind::NotFound => {
            Failure::input(anyhow::anyhow!(
                "{}: there is no such store: `zonelab serve --store` makes one, and so does \
                 `zonelab ftl format --store`",
                path.display()
            ))
        }
        _ => refused(path, &error),
    };
    let (drive, _) = match use_ {
        Use::Write => drive_in(path, config, Store::there(path, config).map_err(refused)?),
        Use::Look => drive_in(
            path,
            config,
            Store::looked_at(path, config).map_err(refused)?,
        ),
    }?;
    Ok(drive)
}

/// What a store that is there is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Its drive changes.
    Write,
    /// The file stays as it is: what the drive writes is in memory.
    Look,
}

fn drive_in<M: Medium + 'static>(
    path: &Path,
    config: &DriveConfig,
    (mut store, found): (Store<M>, Found),
) -> Result<(Drive, Found), Failure> {
    let name = path.display().to_string();
    store.tell(move |notice| match notice {
        Notice::CannotWrite { bytes, error } => {
            let errno = error.raw_os_error();
            tracing::warn!(store = name, bytes, errno, "{notice}");
        }
        _ => tracing::warn!(store = name, "{notice}"),
    });
    let damaged =
        |what: String| Failure::input(anyhow::anyhow!("{}: it is damaged: {what}", path.display()));
    // What a host formatted the drive to is part of its contents.
    let config = match config.lba_bytes == found.lba_bytes {
        true => Some(config.clone()),
        false => formatted(config, found.lba_bytes),
    };
    let config = config.ok_or_else(|| damaged(format!("blocks of {} bytes", found.lba_bytes)))?;
    let drive = Drive::stored(&config, &found.kept, Box::new(store));
    let drive = drive.map_err(|impossible| damaged(impossible.to_string()))?;
    Ok((drive, found))
}

fn run_check(args: &CheckArgs) -> Result<Exit, Failure> {
    let path = &args.file;
    let found = zonelab_store::file(path, false).and_then(|medium| check::check(&medium));
    let report = found.map_err(|error| refused(path, &error))?;
    let text = match args.json {
        true => format!("{}\n", report_json(path, &report)),
        false => report_text(path, &report),
    };
    console::print(&text)?;
    Ok(match report.is_sound() {
        true => Exit::Done,
        false => Exit::InvalidInput,
    })
}

fn run_repair(args: &RepairArgs) -> Result<Exit, Failure> {
    let path = &args.file;
    let at = |error: OpenError| refused(path, &error);
    let mut medium = zonelab_store::file(path, args.force).map_err(at)?;
    let report = check::check(&medium).map_err(at)?;
    let needs_repair = !report.lost.is_empty() || report.damage.is_some();
    if needs_repair && !args.force {
        return Err(Failure::input(anyhow::anyhow!(
            "{}Repairing it gives up what is lost; nothing was changed. With --force it is done: \
             copy the file before (cp --sparse=always)",
            report_text(path, &report)
        )));
    }
    let repaired = match needs_repair {
        true => check::repair(&mut medium).map_err(at)?,
        false => Vec::new(),
    };
    let text = match args.json {
        true => {
            let zones: Vec<_> = repaired.iter().map(repaired_json).collect();
            let value = json!({
                "schema": 1, "file": path.display().to_string(), "repaired": zones,
                "reservations": reservations_json(&report.reservations),
                "bad_blocks": bad_json(&report),
            });
            format!("{value}\n")
        }
        false => repaired_text(path, &report, &repaired),
    };
    console::print(&text)?;
    Ok(Exit::Done)
}

fn repaired_json(of: &Repaired) -> serde_json::Value {
    json!({
        "zone": of.zone, "from_sequence": of.from_sequence, "state": of.state.to_string(),
        "host_lbas": of.host_lbas,
    })
}

fn repaired_text(path: &Path, report: &Report, repaired: &[Repaired]) -> String {
    let path = path.display();
    let mut text = match repaired.len() {
        0 => format!("{path}: no zone had to be given up\n"),
        count => format!("{path}: zones that had to be given up: {count}\n"),
    };
    for of in repaired {
        let from = of.from_sequence.map_or_else(
            || "without any record".to_owned(),
            |sequence| format!("as of record {sequence}, with {} blocks", of.host_lbas),
        );
        text += &format!("  zone {}: {from}; now {}\n", of.zone, of.state);
    }
    text + &reservations_text(&report.reservations, Tense::Past) + &bad_text(report)
}

fn lost_json(of: &LostRecord) -> serde_json::Value {
    json!({
        "zone": of.zone, "damaged_slots": of.damaged_slots, "found": of.found,
        "expected": of.expected,
    })
}

fn bad_json(report: &Report) -> serde_json::Value {
    let bad = report.bad_blocks.iter();
    bad.map(|of| json!({ "zone": of.zone, "first_lba": of.first_lba, "count": of.count }))
        .collect()
}

fn report_json(path: &Path, report: &Report) -> serde_json::Value {
    json!({
        "schema": 1, "file": path.display().to_string(), "is_sound": report.is_sound(),
        "is_clean": report.is_clean, "is_rolled_back": report.is_rolled_back,
        "has_checksums": report.has_checksums, "lba_bytes": report.lba_bytes,
        "zones": report.zones, "zones_with_data": report.zones_with_data,
        "blocks_checked": report.blocks_checked, "durable_sequence": report.durable_sequence,
        "lost_records": report.lost.iter().map(lost_json).collect::<Vec<_>>(),
        "bad_blocks": bad_json(report), "damage": report.damage,
        "reservations": reservations_json(&report.reservations),
    })
}

fn report_text(path: &Path, report: &Report) -> String {
    let how = match (report.is_clean, report.is_rolled_back) {
        (true, _) => "switched off in good order",
        (false, false) => "as after a loss of power",
        (false, true) => "the machine has ended since: what no Flush covers is void",
    };
    let checked = match report.has_checksums {
        true => format!("blocks checked: {}", report.blocks_checked),
        false => "blocks have no checksums".to_owned(),
    };
    let mut text = format!(
        "{}: {how}; zones with data: {} of {}; {checked}\n",
        path.display(),
        report.zones_with_data,
        report.zones
    );
    for of in &report.lost {
        let found = of
            .found
            .map_or_else(|| "none".to_owned(), |of| of.to_string());
        text += &format!(
            "  zone {}: its record (damaged slots: {:?}) has sequence {found}, and a Flush covers {}\n",
            of.zone, of.damaged_slots, of.expected
        );
    }
    if let Some(damage) = &report.damage {
        text += &format!("  {damage}\n");
    }
    text += &reservations_text(&report.reservations, Tense::Future);
    text += &bad_text(report);
    if report.is_sound() {
        text += match report.reservations.damaged_slots.is_empty() {
            true => "It is sound.\n",
            false => "It is sound, as far as can be told.\n",
        };
    }
    text
}

/// Whether a repair has been done.
#[derive(Clone, Copy)]
enum Tense {
    Past,
    Future,
}

fn reservations_json(of: &Reservations) -> serde_json::Value {
    json!({
        "damaged_slots": of.damaged_slots, "slot": of.newest.map(|(slot, _)| slot),
        "sequence": of.newest.map(|(_, sequence)| sequence), "is_lost": of.is_lost,
    })
}

/// Names the slots that are not whole, and what holds or will hold without them.
fn reservations_text(of: &Reservations, tense: Tense) -> String {
    let which = match of.damaged_slots[..] {
        [] => return String::new(),
        [slot] => format!("slot {slot} of two"),
        _ => "both slots".to_owned(),
    };
    let left = of
        .newest
        .map(|(slot, sequence)| format!("record {sequence} in slot {slot}"));
    let became = match (of.is_lost, left, tense) {
        (false, Some(left), _) => format!("{left} holds"),
        (false, None, _) => "there are none".to_owned(),
        (true, Some(left), Tense::Past) => {
            format!("they fell back on {left}, and what was changed after it is lost")
        }
        (true, Some(left), Tense::Future) => {
            format!("a repair falls back on {left}, and what was changed after it is lost")
        }
        (true, None, Tense::Past) => "all reservations and registrations are lost".to_owned(),
        (true, None, Tense::Future) => {
            "all reservations and registrations are lost, and a repair leaves none".to_owned()
        }
    };
    let how = match of.is_lost {
        true => "damaged",
        false => "damaged, or a write that was cut short",
    };
    format!("  reservations of hosts: {which} {how}: {became}\n")
}

fn bad_text(report: &Report) -> String {
    let line = |of: &check::BadBlocks| {
        format!(
            "  zone {}: blocks {}..={} are not what was written, and cannot be read\n",
            of.zone,
            of.first_lba,
            of.first_lba + of.count - 1
        )
    };
    report.bad_blocks.iter().map(line).collect()
}
