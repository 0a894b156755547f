//! The whole system: a drive with faults, a host with several clients, loss of
//! power, snapshots; all drawn, all in virtual time.
//!
//! * `scenario` draws a drive, a host, faults, and what each client likes to do.
//! * `client` is a program above a queue pair: it writes, appends, reads, finishes
//!   and resets zones of its own, several commands at a time, and puts up with
//!   whatever the drive answers.
//! * `zone` is what a client may believe of a zone: which blocks are acknowledged,
//!   which commands have an unknown fate.
//! * `drain` is how a run ends.
//!
//! A run has two phases, as those of TigerBeetle's simulator have. *Safety*: faults
//! strike while clients work. Whatever happens, an acknowledged block reads back
//! as it was written until its zone is reset, a block that was never acknowledged
//! holds nothing that nobody wrote there, write pointers do not fall behind what
//! was acknowledged, and no command ends in a way that neither the specification
//! nor a fault explains. *Liveness*: faults are switched off, and every client
//! reads back all it believes to have written, then resets, fills and reads every
//! zone that is not dead, within a bounded number of attempts; every command
//! completes, and nothing keeps running. Between the two, some runs save the
//! drive, restore it and go on with the copy.
//!
//! All the time, [`zonelab_oracle::blocks`] reads the log of the flash blocks: before and
//! after each step of a client.

mod client;
mod drain;
mod scenario;
mod zone;

use std::cell::RefCell;

use zonelab_device::{Completion, Nanos, QueuePair, ZoneId};
use zonelab_host::{CoreId, Job, NextWake, Reactor, Rng, StopSignal, VirtualClock};
use zonelab_nvme::zns::ZoneState;
use zonelab_oracle::blocks::Blocks;
use zonelab_sim::Emulated;
use zonelab_ssd::faults::{FaultPlan, FaultyDrive};
use zonelab_ssd::{Drive, DriveModel, snapshot};

use crate::draw::Draw;
use client::Client;
use drain::Drain;
use scenario::Scenario;

/// The target.
///
/// # Panics
/// Something is wrong.
pub fn run(data: &[u8]) {
    let scenario = Scenario::draw(&mut Draw::new(data));
    let _explain = Explain(&scenario);
    let mut drive = Drive::new(&scenario.config);
    let blocks = RefCell::new(Blocks::watch(&mut drive));
    let mut device = Emulated::new(FaultyDrive::new(drive, scenario.faults.clone()));
    let info = device.info().clone();

    let mut clients: Vec<Client> = scenario
        .clients
        .iter()
        .map(|habits| Client::new(habits, &scenario, &info))
        .collect();
    let mut now = phase(&device, &scenario, Nanos::ZERO, &mut clients, &blocks);
    now = come_to_rest(&device, now, &blocks);
    if scenario.restores {
        device = restored(&device, &scenario);
        device.with_drive(|drive| blocks.borrow_mut().restored(drive));
        now = Nanos::ZERO;
    }
    assert_eq!(device.info(), &info, "a drive stays what it is");

    device.with_faults(FaultyDrive::clear_faults);
    let mut drains: Vec<Drain> = clients
        .into_iter()
        .map(|client| Drain::new(client.into_zones(), &scenario, &info))
        .collect();
    now = phase(&device, &scenario, now, &mut drains, &blocks);
    come_to_rest(&device, now, &blocks);
}

/// Runs jobs until all have finished.
fn phase<J: Job>(
    device: &Emulated,
    scenario: &Scenario,
    start: Nanos,
    jobs: &mut [J],
    blocks: &RefCell<Blocks>,
) -> Nanos {
    let mut watched: Vec<Watched<'_, J>> = jobs
        .iter_mut()
        .map(|job| Watched {
            job,
            device,
            blocks,
        })
        .collect();
    let clock = VirtualClock::starting_at(start);
    let mut reactor = Reactor::new(clock, device.clone(), StopSignal::default());
    for (index, job) in (0..).zip(&mut watched) {
        let rng = Rng::new(scenario.seed, 1_000 + u64::from(index));
        let queue = device.open_queue(scenario.queue_depth, scenario.host, rng);
        reactor.add(job, queue, CoreId(index % scenario.cores), start);
    }
    let end = reactor.run();
    assert_eq!(
        end.stuck_jobs, 0,
        "jobs that nothing will wake, at {}",
        end.at
    );
    end.at
}

/// A job after each step of which somebody looks at the blocks of the drive.
struct Watched<'a, J> {
    job: &'a mut J,
    device: &'a Emulated,
    blocks: &'a RefCell<Blocks>,
}

impl<J: Job> Job for Watched<'_, J> {
    fn step(
        &mut self,
        now: Nanos,
        done: &mut Vec<Completion>,
        queue: &mut dyn QueuePair,
    ) -> NextWake {
        let look = |drive: &mut Drive| self.blocks.borrow_mut().look(drive);
        // What a loss of power left is looked at before it is written to.
        self.device.with_drive(look);
        let next = self.job.step(now, done, queue);
        self.device.with_drive(look);
        next
    }
}

/// Lets the drive finish what it does by itself, and looks at it.
fn come_to_rest(device: &Emulated, now: Nanos, blocks: &RefCell<Blocks>) -> Nanos {
    let now = device.with_faults(|faulty| {
        let mut done = Vec::new();
        let mut at = now;
        let mut steps = 0_u32;
        while let Some(next) = faulty.next_event() {
            at = at.max(next);
            faulty.advance(at, &mut done);
            blocks.borrow_mut().look(faulty.drive_mut());
            steps += 1;
            assert!(steps < 1 << 20, "the drive goes round in circles");
        }
        assert!(
            done.is_empty(),
            "completions that nobody waited for: {done:?}"
        );
        at.max(faulty.drive().ready_at())
    });
    device.with_drive(|drive| {
        blocks.borrow_mut().look(drive);
        drive.assert_invariants();
        assert_eq!(drive.in_flight(), 0, "commands in flight");
        assert_eq!(drive.background_tasks(), 0, "tasks that wait for nothing");
        check_flash(drive);
        let ledger = drive.flash().media().ledger();
        for row in ledger.units.iter().chain(&ledger.channels) {
            let busy: u64 = row.iter().sum();
            assert!(busy <= now.0, "busy for {busy} ns by {now}");
        }
    });
    now
}

/// Zones and flash agree: an empty zone has nothing programmed, a written one has.
fn check_flash(drive: &Drive) {
    let page_lbas = u64::from(drive.flash().layout().page_lbas());
    for zone in (0..drive.zones().count()).map(ZoneId) {
        let written = drive.zones().host_lbas(zone);
        let is_full = drive.zones().state(zone) == ZoneState::FULL;
        // The buffer keeps what is no whole unit.
        let pages = if drive.config().write_buffer.is_none() || is_full {
            written.div_ceil(page_lbas)
        } else {
            let unit_pages = u64::from(drive.config().geometry.planes);
            written / (page_lbas * unit_pages) * unit_pages
        };
        let physical = drive.flash().mapping().physical(zone);
        let programmed = physical.map_or(0, |physical| drive.flash().zone_state(physical).0);
        let is_cached = |page: &u64| {
            // Fits: zones are small.
            let lba = (page * page_lbas) as u32;
            physical.is_some_and(|of| drive.flash().cached_block(of, lba).is_some())
        };
        let pages = (0..pages)
            .filter(|page| !is_cached(page))
            .max()
            .map_or(0, |last| last + 1);
        assert!(
            pages <= u64::from(programmed),
            "{zone:?}: {pages} pages on {programmed}"
        );
        let is_empty = drive.zones().state(zone) == ZoneState::EMPTY;
        assert!(
            !is_empty || programmed == 0,
            "{zone:?} is empty on {programmed} pages"
        );
    }
}

/// The drive after it was saved and restored: the same, with a clock at zero.
fn restored(device: &Emulated, scenario: &Scenario) -> Emulated {
    let copy = device.with_drive(|drive| {
        let bytes = snapshot::save(drive).expect("the drive is idle");
        let copy = snapshot::restore(&scenario.config, &bytes).expect("it is of this drive");
        assert_eq!(
            snapshot::save(&copy).as_ref(),
            Ok(&bytes),
            "the copy is the same"
        );
        let mut totals = copy.totals();
        if drive.buffered_bytes() > 0 {
            // An orderly shutdown programs it.
            let before = drive.totals().host_program_bytes;
            assert!(totals.host_program_bytes > before, "the buffer was dropped");
            totals.host_program_bytes = before;
            totals.erased_blocks = drive.totals().erased_blocks;
        }
        if scenario.config.mapping.has_elements() {
            // Elements of which a part has been erased are erased whole.
            let before = drive.totals().erased_blocks;
            assert!(totals.erased_blocks >= before, "erasures are forgotten");
            totals.erased_blocks = before;
        }
        assert_eq!(totals, drive.totals());
        copy
    });
    Emulated::new(FaultyDrive::new(copy, FaultPlan::default()))
}

/// Prints the scenario if it is dropped by a panic.
struct Explain<'a>(&'a Scenario);

impl Drop for Explain<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !crate::harness::is_quiet() {
            eprintln!("--- the scenario\n{}---", self.0);
        }
    }
}
