//! A reset design of one's own, without touching the crate.
//!
//! ```console
//! $ cargo run --release -p zonelab --example own_reset
//! ```
//!
//! `Patient` erases a reset zone as a whole, and only after the host has been quiet for a
//! while. It stands beside the built-in thresholds (preemptive zone reset, which erases a
//! row of blocks in any pause) on the same drive under the same load: bursts of reads and
//! resets with short pauses between them, and a long one at the end.

use zonelab::config::Override;
use zonelab::device::{Command, Completion, Lba, Nanos, Op, QueueId, Tag};
use zonelab::nvme::zns::ZoneSendAction;
use zonelab::ssd::policy::{
    PolicyError, ResetEvent, ResetEvents, ResetPolicy, ResetStep, ResetView,
};
use zonelab::ssd::profile::Profile;
use zonelab::ssd::{Control, Drive, DriveModel, ResetState};

/// Erases whole zones, after the host has been quiet for some time.
#[derive(Debug)]
struct Patient {
    /// How long it has to be quiet.
    patience: Nanos,
    /// Since when it is, as far as is known.
    quiet_since: Nanos,
}

impl ResetPolicy for Patient {
    fn name(&self) -> &str {
        "patient"
    }

    // Beside the changes of what is free, it wants to hear of every command's end.
    fn events(&self) -> ResetEvents {
        ResetEvents::COUNTS.with(ResetEvent::CommandEnds)
    }

    // The host is never held back by it. (The drive does that by itself where a zone is
    // needed and none is free.)
    fn state_after(
        &mut self,
        event: ResetEvent,
        group: &ResetView<'_>,
    ) -> Result<ResetState, PolicyError> {
        if event == ResetEvent::CommandEnds {
            self.quiet_since = group.now();
        }
        Ok(match group.invalid() {
            0 => ResetState::Serving,
            _ => ResetState::Partial,
        })
    }

    fn step(&mut self, group: &ResetView<'_>) -> Result<ResetStep, PolicyError> {
        if !group.is_quiet() {
            // It is asked again when a command ends.
            return Ok(ResetStep::Wait);
        }
        let at = self.quiet_since.saturating_add(self.patience);
        Ok(match at > group.now() {
            true => ResetStep::LookAt(at),
            false => ResetStep::Zone,
        })
    }

    fn erases_more(&mut self, _: &ResetView<'_>) -> Result<bool, PolicyError> {
        Ok(false)
    }
}

/// What came of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Slowest read.
    pub(crate) slowest_read: Nanos,
    /// Mean read.
    pub(crate) mean_read: Nanos,
    /// From a reset to erased flash, on average.
    pub(crate) mean_freed: Option<Nanos>,
}

/// A small relative of the drive for which preemptive zone reset was made.
fn drive() -> Drive {
    let smaller = [
        "zones.size=512MiB",
        "zones.count=16",
        "geometry.blocks_per_plane=80",
    ];
    let overrides: Vec<Override> = smaller
        .iter()
        .map(|text| Override::parse(text).expect("a key and a value"))
        .collect();
    let text = zonelab::ssd::profile::builtin_text("cosmos-plus").expect("it is built in");
    let profile = Profile::parse("cosmos-plus", text, &overrides).expect("it is a valid profile");
    let mut drive = Drive::new(&profile.config);
    drive
        .control(Nanos::ZERO, &Control::PreconditionFull { zones: 0..16 })
        .expect("its zones are empty");
    drive
}

/// Bursts of reads; in front of some of them a zone is reset.
fn run(mut drive: Drive) -> Result<Outcome, PolicyError> {
    let zone_lbas = drive.config().zones.size_lbas;
    let mut done: Vec<Completion> = Vec::new();
    let mut submitted: Vec<(Nanos, bool)> = Vec::new();
    let mut now = Nanos::ZERO;
    for burst in 0..64_u64 {
        let reset = Op::ZoneSend {
            slba: Lba(burst / 8 * zone_lbas),
            action: ZoneSendAction::RESET,
            select_all: false,
        };
        let reads = (0..8).map(|n| Op::Read {
            slba: Lba(15 * zone_lbas + 1_024 * (burst + n)),
            nlb: 4,
        });
        let resets = (burst % 8 == 0).then_some(reset);
        for op in resets.into_iter().chain(reads) {
            let tag = Tag(submitted.len() as u32);
            submitted.push((now, matches!(op, Op::Read { .. })));
            drive
                .submit(now, QueueId(0), tag, Command::new(op), None)
                .expect("there is room for a few commands");
            now += Nanos::from_us(20);
            drive.advance(now, &mut done);
        }
        now += Nanos::from_us(1_500);
        drive.advance(now, &mut done);
    }
    drive.advance(now + Nanos::from_secs(2), &mut done);
    // A policy that made no sense would have been left alone from then on.
    if let Some(error) = drive.policy_error() {
        return Err(error.clone());
    }
    let latency = |completion: &Completion| {
        let (at, is_read) = submitted[completion.tag.0 as usize];
        is_read.then(|| completion.at.saturating_sub(at))
    };
    let reads: Vec<Nanos> = done.iter().filter_map(latency).collect();
    let total: u64 = reads.iter().map(|of| of.0).sum();
    Ok(Outcome {
        slowest_read: reads.iter().copied().max().unwrap_or_default(),
        mean_read: Nanos(total / reads.len().max(1) as u64),
        mean_freed: drive.freed().mean(),
    })
}

/// The built-in design, then the one of this file.
pub(crate) fn compare() -> Result<[Outcome; 2], PolicyError> {
    let built_in = run(drive())?;
    let mut own = drive();
    own.set_reset_policy(Box::new(Patient {
        patience: Nanos::from_us(10_000),
        quiet_since: Nanos::ZERO,
    }))?;
    Ok([built_in, run(own)?])
}

fn main() -> Result<(), PolicyError> {
    let [built_in, own] = compare()?;
    for (name, outcome) in [("thresholds", built_in), ("patient", own)] {
        println!(
            "{name:10}  reads: mean {}, slowest {}; a zone is erased {} after its reset",
            outcome.mean_read,
            outcome.slowest_read,
            outcome.mean_freed.unwrap_or_default(),
        );
    }
    Ok(())
}
