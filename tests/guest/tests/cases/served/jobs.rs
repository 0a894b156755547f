//! Job files of fio, run twice: by the guest's fio on the drive of `zonelab serve`,
//! and by `zonelab fio` on the same profile in virtual time. Both have to do as many
//! operations of as many bytes, reset as many zones, and leave the same zones.
//!
//! Most of the job files are drawn from a seed, which a failure names.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zonelab_guest_tests::drive::State;
use zonelab_guest_tests::{Drive, Guest, host};

use super::{PROFILE, Served, program};
use crate::ServedCase;

mod drawn;

use drawn::{Exact, Job};

pub(crate) const CASES: &[(&str, ServedCase)] = &[
    ("served::jobs::as_long_as_their_capacity", |guest| {
        on_zones(guest, "8MiB", 1)
    }),
    ("served::jobs::longer_than_their_capacity", |guest| {
        on_zones(guest, "6MiB", 2)
    }),
];

/// How long one job file may take.
const LIMIT: Duration = Duration::from_secs(900);
/// Size of the zones, whatever their capacity is.
const ZONE_SIZE: &str = "zones.size=8MiB";
/// Job files that are drawn for each drive.
const DRAWN: u64 = 12;

/// What one job did, by direction: operations and bytes.
type Amounts = [(u64, u64); 3];

/// What running a job file came to.
#[derive(Debug)]
struct Outcome {
    /// Amounts of each entry of the results, by name.
    entries: Vec<(String, Amounts)>,
    /// Flushes of all jobs.
    syncs: u64,
    /// Resets of zones that were to be written again, of all jobs.
    resets: u64,
    /// State and written blocks of each zone.
    zones: Vec<(String, u64)>,
}

/// Runs all job files on a drive with zones of that capacity.
fn on_zones(guest: &mut Guest, capacity: &str, stream: u64) -> Result<()> {
    let capacity = format!("zones.capacity={capacity}");
    let settings = ["--set", ZONE_SIZE, "--set", &capacity];
    let options = ["--no-timing", "--web", "127.0.0.1:0"];
    let served = Served::start_with(&[&options, &settings[..]].concat())?;
    let controller = served.connect(guest)?;
    let drive = Drive::open(guest, &controller, 1, None)?;
    let (seed, only) = (number("ZONELAB_FIO_SEED")?, number("ZONELAB_FIO_JOB")?);
    let seed = seed.unwrap_or(1);
    let mut differences = String::new();
    let mut count = 0;
    for (index, job) in (0..).zip(drawn::all(seed ^ (stream << 32), DRAWN)) {
        if only.is_some_and(|only| only != index) {
            continue;
        }
        count += 1;
        let compared = compare(guest, &served, &drive, &settings, &job);
        let problems = match compared {
            Ok(problems) => problems,
            Err(error) => vec![format!("{error:#}")],
        };
        if !problems.is_empty() {
            let list = problems.join("\n  ");
            writeln!(
                differences,
                "job file {index}:\n{}\n  {list}\n  replay: ZONELAB_FIO_SEED={seed} \
                 ZONELAB_FIO_JOB={index} cargo xtask test guest",
                job.text
            )?;
        }
    }
    ensure!(count > 0, "there is no job file {only:?}");
    ensure!(
        differences.is_empty(),
        "of {count} job files:\n{differences}"
    );
    served.disconnect(guest)
}

/// A number of the environment.
fn number(name: &str) -> Result<Option<u64>> {
    let Ok(text) = std::env::var(name) else {
        return Ok(None);
    };
    let number = text.parse().with_context(|| format!("{name}={text}"))?;
    Ok(Some(number))
}

/// Runs a job file both ways, and says what is different.
fn compare(
    guest: &mut Guest,
    served: &Served,
    drive: &Drive,
    settings: &[&str],
    job: &Job,
) -> Result<Vec<String>> {
    drive.reset_all(guest)?;
    let before = served.metric("zonelab_zone_resets_total")?;
    let theirs = by_fio(guest, drive, job)?;
    let resets_of_drive = served.metric("zonelab_zone_resets_total")? - before;
    let ours = by_zonelab(job, settings)?;
    let mut problems = Vec::new();
    let mut differ = |what: &str, theirs: String, ours: String| {
        if theirs != ours {
            problems.push(format!("{what}: fio {theirs}, zonelab {ours}"));
        }
    };
    let of = |outcome: &Outcome| format!("{:?}", names(outcome));
    differ("jobs", of(&theirs), of(&ours));
    for ((name, they), (_, we)) in theirs.entries.iter().zip(&ours.entries) {
        match job.amounts {
            Exact::Yes => differ(name, format!("{they:?}"), format!("{we:?}")),
            // Which operation is a read is drawn; how many there are is not.
            Exact::Total => differ(name, format!("{:?}", sum(they)), format!("{:?}", sum(we))),
        }
    }
    differ("flushes", theirs.syncs.to_string(), ours.syncs.to_string());
    // What the drive was asked for is what fio says that it did, with its trims. Of
    // these several may be under way for one zone, which is reset once.
    let trimmed: u64 = theirs.entries.iter().map(|(_, of)| of[2].0).sum();
    let asked = theirs.resets + trimmed;
    if resets_of_drive > asked || resets_of_drive + trimmed < asked {
        let counted = format!("says {asked}, where the drive counts {resets_of_drive}");
        differ("resets of zones", counted, ours.resets.to_string());
    }
    let [theirs_count, ours_count] = [&theirs, &ours].map(|of| of.zones.len().to_string());
    differ("zones", theirs_count, ours_count);
    if job.zones == Exact::Total {
        problems.extend(random_facts(&theirs, &ours, job));
        return Ok(problems);
    }
    differ("resets", theirs.resets.to_string(), ours.resets.to_string());
    for (index, (they, we)) in theirs.zones.iter().zip(&ours.zones).enumerate() {
        differ(
            &format!("zone {index}"),
            format!("{they:?}"),
            format!("{we:?}"),
        );
    }
    Ok(problems)
}

fn names(outcome: &Outcome) -> Vec<&str> {
    outcome.entries.iter().map(|(name, _)| &**name).collect()
}

fn sum(amounts: &Amounts) -> (u64, u64) {
    let add = |(a, b): (u64, u64), (c, d): &(u64, u64)| (a + c, b + d);
    amounts.iter().fold((0, 0), add)
}

/// What must hold whatever positions were drawn: blocks that were written are in
/// zones or were reset, whole zones at a time or less; and no more zones are
/// written in part than there may be.
fn random_facts(theirs: &Outcome, ours: &Outcome, job: &Job) -> Vec<String> {
    let mut problems = Vec::new();
    for (who, outcome) in [("fio", theirs), ("zonelab", ours)] {
        let in_part = outcome.zones.iter();
        let in_part = in_part.filter(|(state, _)| state != "EMPTY" && state != "FULL");
        let in_part = in_part.count() as u64;
        if in_part > job.max_open {
            problems.push(format!(
                "{who}: {in_part} zones are written in part, {} may be",
                job.max_open
            ));
        }
        if !job.ends_zones {
            let written: u64 = outcome.zones.iter().map(|(_, blocks)| blocks).sum();
            let bytes: u64 = outcome
                .entries
                .iter()
                .map(|(_, amounts)| amounts[1].1)
                .sum();
            let lost = (bytes / 4096).saturating_sub(written);
            let most = outcome.resets * job.capacity_lbas(outcome);
            if written > bytes / 4096 || lost > most {
                problems.push(format!(
                    "{who}: {} blocks were written, {written} are there after {} resets",
                    bytes / 4096,
                    outcome.resets
                ));
            }
        }
    }
    // Resets happen when a full zone is written again: their number is a sum of
    // draws of zones, which differs by little.
    let (low, high) = (
        theirs.resets.min(ours.resets),
        theirs.resets.max(ours.resets),
    );
    if !job.resets_are_drawn && high - low > 2 + high / 3 {
        problems.push(format!(
            "resets: fio {}, zonelab {}, which is no chance",
            theirs.resets, ours.resets
        ));
    }
    problems
}

/// Runs a job file by the guest's fio.
fn by_fio(guest: &mut Guest, drive: &Drive, job: &Job) -> Result<Outcome> {
    guest.ok(&format!(
        "cat > /scratch/job.fio <<'END OF JOB'\n{}\nEND OF JOB",
        job.text
    ))?;
    let device = drive.block();
    // With both forms at once, JSON comes first.
    guest.ok_for(
        LIMIT,
        &format!(
            "fio --output-format=json,normal --output=/scratch/fio.out --filename={device} \
             /scratch/job.fio > /scratch/fio.err 2>&1 || {{ cat /scratch/fio.err; exit 1; }}"
        ),
    )?;
    let text = guest.ok("cat /scratch/fio.out")?;
    let begin = text.find('{').context("no JSON")?;
    let mut values = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>();
    let json = values.next().context("no JSON")??;
    let normal = &text[begin + values.byte_offset()..];
    let resets = normal.lines().filter_map(|line| {
        let (_, rest) = line.split_once("; ")?;
        rest.strip_suffix(" zone resets")?.parse::<u64>().ok()
    });
    let resets = resets.sum();
    let report = drive.report(guest, 0, drive.zones)?;
    let zones = report.iter().map(|zone| {
        let (name, written) = match zone.state {
            State::Empty => ("EMPTY", 0),
            State::Full => ("FULL", zone.capacity_lbas),
            State::Closed => ("CLOSED", zone.write_pointer_lba - zone.start_lba),
            State::ImplicitlyOpen => ("IMP_OPENED", zone.write_pointer_lba - zone.start_lba),
            _ => ("another state", 0),
        };
        (name.to_owned(), written)
    });
    Ok(Outcome {
        resets,
        zones: zones.collect(),
        ..outcome(&json)?
    })
}

/// Runs a job file on the profile, in virtual time.
fn by_zonelab(job: &Job, settings: &[&str]) -> Result<Outcome> {
    let scratch = Scratch::new()?;
    let (file, zones) = (scratch.0.join("job.fio"), scratch.0.join("zones.csv"));
    std::fs::write(&file, &job.text)?;
    let output = Command::new(program()?)
        .arg("fio")
        .arg(&file)
        .arg("--zone-report")
        .arg(&zones)
        .args(["--json", "--device", PROFILE])
        .args(settings)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "zonelab: {said}");
    let json: Value = serde_json::from_slice(&output.stdout)?;
    let jobs = json["jobs"].as_array().context("no jobs")?;
    let resets = jobs
        .iter()
        .map(|job| job["zonelab"]["cleared_zones"].as_u64());
    let resets: Option<u64> = resets.sum();
    let report = std::fs::read_to_string(&zones)?;
    let zones = report.lines().skip(1).map(|line| {
        let mut fields = line.split(',').skip(1);
        let state = fields.next().context("no state")?.to_owned();
        let written = fields.next().context("no blocks")?.parse()?;
        Ok((state, written))
    });
    Ok(Outcome {
        resets: resets.context("no resets")?,
        zones: zones.collect::<Result<_>>()?,
        ..outcome(&json)?
    })
}

/// What the JSON of either says.
fn outcome(json: &Value) -> Result<Outcome> {
    let jobs = json["jobs"].as_array().context("no jobs")?;
    let mut entries = Vec::new();
    let mut syncs = 0;
    for job in jobs {
        let name = job["jobname"].as_str().context("no name")?;
        ensure!(job["error"] == 0, "{name} failed: {}", job["error"]);
        let mut amounts = Amounts::default();
        for (amount, direction) in amounts.iter_mut().zip(["read", "write", "trim"]) {
            let number = |key: &str| job[direction][key].as_u64().context("no number");
            *amount = (number("total_ios")?, number("io_bytes")?);
        }
        entries.push((name.to_owned(), amounts));
        syncs += job["sync"]["total_ios"].as_u64().unwrap_or(0);
    }
    Ok(Outcome {
        entries,
        syncs,
        resets: 0,
        zones: Vec::new(),
    })
}

/// A directory that goes with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let path = host::temporary("jobs");
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
