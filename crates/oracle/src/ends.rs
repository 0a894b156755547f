//! Ends of a process, or of its machine, after drawn steps of its work on a [`Disk`]: what is left
//! is opened again, and compared with what a host could rely on.

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use zonelab_device::ZoneId;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::Drive;

use crate::disk::{Disk, Image, Numbers};

/// What ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process: all that it wrote is there.
    Process,
    /// The machine: what was not synchronised is there or not, sector by sector.
    Machine,
}

/// A host at work on what a [`Disk`] holds.
pub trait Work {
    /// The host, with its drive.
    type Host;
    /// What it can rely on, by the rules of its drive.
    type Known: Clone;

    /// Works on a medium, in the same way each time. `look` gets the host before its first
    /// command, and after each turn before completions reach it.
    fn work(
        &self,
        disk: &Disk,
        start: &Start<Self>,
        look: &mut dyn FnMut(&Self::Host),
    ) -> Self::Host;

    /// What the host can rely on if everything ends now.
    fn known(&self, host: &Self::Host) -> Self::Known;

    /// Opens what an end left.
    ///
    /// # Panics
    /// Something that the host could rely on is not there.
    fn check(&self, disk: &Disk, end: End, known: &Self::Known);
}

/// Where a session starts.
pub struct Start<W: Work + ?Sized> {
    /// What the medium holds.
    pub image: Image,
    /// Names the start of the machine.
    pub boot: u8,
    /// What ended before, and what the host could rely on then; `None`: the store is new.
    pub before: Option<(End, W::Known)>,
    /// The seed of the work.
    pub seed: u64,
}

/// A session, with all of its ends.
pub struct Session<W: Work> {
    /// Ends that were looked at.
    pub ends: u64,
    /// What one of them left, for another session.
    pub left: Start<W>,
    /// The host when its work was done.
    pub host: W::Host,
}

/// A number from the environment.
#[must_use]
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Works twice from the same start: to count the steps of the medium, and to look at what the
/// ends of process and machine leave after so many of them (after all if there are no more).
///
/// # Panics
/// Something that the host could rely on is not there; the message has the step.
pub fn session<W: Work>(work: &W, start: &Start<W>, points: u64) -> Session<W> {
    let trial = Disk::of(start.image.clone(), start.boot);
    let mut begun = None;
    work.work(&trial, start, &mut |_| {
        // What a first start makes is nobody's.
        let is_new = start.before.is_none();
        begun.get_or_insert(if is_new { trial.inner().steps } else { 0 });
    });
    let steps = begun.unwrap_or(0)..trial.inner().steps;
    let mut numbers = Numbers(start.seed);
    let disk = Disk::of(start.image.clone(), start.boot);
    {
        let mut inner = disk.inner();
        inner.draw = numbers.draw();
        inner.cuts = cuts(&mut numbers, &steps, points);
    }
    let (mut ends, mut left) = (0, None);
    let host = work.work(&disk, start, &mut |host| {
        for seen in std::mem::take(&mut disk.inner().seen) {
            let known = work.known(host);
            let what = format!("step {} of {}", seen.step, steps.end);
            let found = [
                (End::Process, start.boot, seen.by_process),
                (End::Machine, start.boot + 1, seen.by_machine),
            ];
            let kept = numbers.below(2);
            for (index, (end, boot, image)) in (0..).zip(found) {
                check(work, (end, boot, image.clone()), &known, &what);
                ends += 1;
                if index == kept && (left.is_none() || numbers.one_in(8)) {
                    left = Some(Start {
                        image,
                        boot,
                        before: Some((end, known.clone())),
                        seed: numbers.draw(),
                    });
                }
            }
        }
    });
    Session {
        ends,
        left: left.expect("a session has steps"),
        host,
    }
}

fn cuts(numbers: &mut Numbers, steps: &Range<u64>, points: u64) -> BTreeSet<u64> {
    let count = steps.end - steps.start;
    match points >= count {
        true => (steps.start + 1..=steps.end).collect(),
        false => (0..points)
            .map(|_| steps.start + 1 + numbers.below(count))
            .collect(),
    }
}

fn check<W: Work>(work: &W, left: (End, u8, Image), known: &W::Known, what: &str) {
    let (end, boot, image) = left;
    let disk = Disk::of(image, boot);
    let looked = catch_unwind(AssertUnwindSafe(|| work.check(&disk, end, known)));
    assert!(looked.is_ok(), "{what}, end of the {end:?}: see above");
}

/// What a host sees of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneView {
    /// Its state.
    pub state: ZoneState,
    /// Blocks before its write pointer that the host wrote.
    pub host_lbas: u64,
    written_lbas: u64,
    zrwa_end_lbas: Option<u64>,
    extension: Option<Box<[u8]>>,
}

impl ZoneView {
    /// That of a zone of a drive.
    #[must_use]
    pub fn of(drive: &Drive, zone: ZoneId) -> Self {
        let zones = drive.zones();
        Self {
            state: zones.state(zone),
            host_lbas: zones.host_lbas(zone),
            written_lbas: zones.written_lbas(zone),
            zrwa_end_lbas: zones.zrwa_end_lbas(zone),
            extension: zones.extension(zone).map(Into::into),
        }
    }

    /// Whether it has a random write area.
    #[must_use]
    pub const fn has_zrwa(&self) -> bool {
        self.zrwa_end_lbas.is_some()
    }

    /// What it is after power was lost and has come back (ZNS command set 1.1,
    /// section 2.1.1.3).
    #[must_use]
    pub fn after_power_loss(&self) -> Self {
        let is_active = matches!(
            self.state,
            ZoneState::IMPLICITLY_OPENED | ZoneState::EXPLICITLY_OPENED | ZoneState::CLOSED
        );
        if !is_active {
            return self.clone();
        }
        let holds_nothing = self.host_lbas == 0 && self.zrwa_end_lbas.unwrap_or(0) == 0;
        if holds_nothing && self.extension.is_none() {
            return Self {
                state: ZoneState::EMPTY,
                zrwa_end_lbas: None,
                ..self.clone()
            };
        }
        Self {
            state: ZoneState::CLOSED,
            ..self.clone()
        }
    }
}
