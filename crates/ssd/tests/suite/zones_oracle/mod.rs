//! The zone state machine against an independent implementation of the same rules.
//!
//! Random command sequences on random configurations run on both. Statuses,
//! addresses, states, write pointers, counts, reported changes and zone reports
//! must agree after each command. A failing run is shrunk, printed, and kept in
//! `zones_oracle.proptest-regressions` beside this directory, which is replayed first.

mod command;

use std::cmp::Ordering;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};
use zonelab_device::{Lba, NamespaceId, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;
use zonelab_oracle::zones::Zones as Reference;
use zonelab_ssd::zones::table::{Condition, Event, Placement, ROWS, Row, State};
use zonelab_ssd::zones::{Change, Committed, Extent, Zones};

use command::{Command, Report, Run};

type Check = Result<(), TestCaseError>;

proptest! {
    #![proptest_config(Config {
        cases: 2_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/suite/zones_oracle.proptest-regressions"
        )))),
        ..Config::default()
    })]

    #[test]
    fn agrees_with_the_reference(run in command::run()) {
        Pair::new(&run).execute(&run)?;
    }
}

/// The random commands come everywhere: no row of the table goes untested.
#[test]
fn every_row_is_compared() {
    let mut runner = TestRunner::deterministic();
    let mut reached = BTreeSet::new();
    for _ in 0..6_000 {
        let run = command::run().new_tree(&mut runner).unwrap().current();
        let mut pair = Pair::new(&run);
        pair.execute(&run).unwrap();
        reached.append(&mut pair.reached);
    }
    for (index, row) in ROWS.iter().enumerate() {
        // Implicit closes have no command of their own, and a loss of power is one
        // of the whole drive: tests/power.rs, and the fuzz target `system`.
        let is_internal = matches!(
            row.event,
            Event::ImplicitClose | Event::PowerCycleEmpty | Event::PowerCyclePartial
        );
        // Zones with an area are active, a write alone does not move the write
        // pointer to the capacity, and what a commit of a zone without an area
        // gets does not depend on its state.
        let needs_area = matches!(row.event, Event::WriteZrwa | Event::AppendZrwa);
        let is_impossible = needs_area
            && (row.from.iter().all(|state| !state.is_active())
                || row.placement == [Placement::Filling]);
        let is_internal = is_internal || is_impossible;
        assert!(
            is_internal || reached.contains(&index),
            "never reached: {row:?}"
        );
    }
}

/// What is tested, and what it is compared with.
struct Pair {
    zones: Zones,
    reference: Reference,
    /// States before the command that runs, as the reference sees them.
    before: Reference,
    /// Indexes of rows of the table that were decisive.
    reached: BTreeSet<usize>,
}

impl Pair {
    fn new(run: &Run) -> Self {
        let reference = Reference::new(&run.config, &[]);
        Self {
            zones: Zones::new(&run.config),
            before: reference.clone(),
            reference,
            reached: BTreeSet::new(),
        }
    }

    fn execute(&mut self, run: &Run) -> Check {
        for (step, draw) in run.draws.iter().enumerate() {
            let command = draw.command(&run.weights, &self.reference);
            self.before = self.reference.clone();
            self.note_row(&command);
            let context = |failure| match failure {
                TestCaseError::Fail(why) => {
                    TestCaseError::fail(format!("step {step}, {command:?}: {why}"))
                }
                other => other,
            };
            self.step(&command).map_err(context)?;
            self.compare_states().map_err(context)?;
        }
        Ok(())
    }

    fn step(&mut self, command: &Command) -> Check {
        let mut changes = Vec::new();
        match command {
            Command::Write { slba, nlb } => {
                let extent = self.zones.write(Lba(*slba), *nlb);
                let expected = self.reference.write(*slba, *nlb).map(|()| *slba);
                return self.compare_extent(extent, expected, Some(*nlb));
            }
            Command::Commit { last } => {
                let extent = self.zones.commit_zrwa(Lba(*last));
                let expected = self.reference.commit(*last);
                return self.compare_extent(extent, expected, None);
            }
            Command::OpenZrwa { slba } => {
                let status = self.zones.open_with_zrwa(Lba(*slba), &mut changes);
                prop_assert_eq!(status, self.reference.open_with_area(*slba));
                return self.compare_changes(&changes);
            }
            Command::SetExtensionZrwa { slba, bytes } => prop_assert_eq!(
                self.zones.set_extension_with_zrwa(Lba(*slba), bytes),
                self.reference.set_extension_with_area(*slba, bytes)
            ),
            Command::Append { zslba, nlb } => {
                let extent = self.zones.append(Lba(*zslba), *nlb);
                let expected = self.reference.append(*zslba, *nlb);
                return self.compare_extent(extent, expected, Some(*nlb));
            }
            Command::Read { slba, nlb } => prop_assert_eq!(
                self.zones.read(Lba(*slba), *nlb),
                self.reference.read(*slba, *nlb)
            ),
            Command::Report(report) => return self.compare_reports(report),
            Command::SetExtension { slba, bytes } => prop_assert_eq!(
                self.zones.set_extension(Lba(*slba), bytes),
                self.reference.set_extension(*slba, bytes)
            ),
            Command::Precondition { from, to } => prop_assert_eq!(
                self.zones.precondition_full(*from..*to),
                self.reference
                    .precondition_full(*from as usize..*to as usize)
            ),
            Command::Send { slba, action } => {
                let status = self.zones.send(Lba(*slba), *action, &mut changes);
                prop_assert_eq!(status, self.reference.send(*slba, *action));
                return self.compare_changes(&changes);
            }
            Command::SendAll { action } => {
                let status = self
                    .zones
                    .send_all(NamespaceId::FIRST, *action, &mut changes);
                prop_assert_eq!(status, self.reference.send_all(*action));
                return self.compare_changes(&changes);
            }
            Command::Fail { zone, to } => {
                let status = self.zones.fail(ZoneId(*zone), *to, &mut changes);
                prop_assert_eq!(status, self.reference.fail(*zone as usize, *to));
                return self.compare_changes(&changes);
            }
        }
        Ok(())
    }

    fn compare_states(&self) -> Check {
        self.zones.assert_invariants();
        for (index, expected) in self.reference.all().iter().enumerate() {
            let zone = ZoneId(index as u32);
            let start = self.reference.start(index);
            prop_assert_eq!(self.zones.state(zone), expected.state, "{:?}", zone);
            let pointer = self.zones.written_lbas(zone);
            prop_assert_eq!(pointer, expected.pointer, "{:?}", zone);
            prop_assert_eq!(self.zones.host_lbas(zone), expected.host, "{:?}", zone);
            prop_assert_eq!(self.zones.extension(zone), expected.extension.as_deref());
            prop_assert_eq!(self.zones.has_zrwa(zone), expected.area.is_some());
            let written = expected.area.map(|end| end.max(expected.pointer));
            prop_assert_eq!(self.zones.zrwa_end_lbas(zone), written, "{:?}", zone);
            prop_assert_eq!(self.zones.zone_of(Lba(start)), Some(zone));
            let last = start + self.reference.config().size_lbas - 1;
            prop_assert_eq!(self.zones.zone_of(Lba(last)), Some(zone));
        }
        let implicit = self.reference.in_state(ZoneState::IMPLICITLY_OPENED).len();
        prop_assert_eq!(self.zones.open_count(), self.reference.open());
        prop_assert_eq!(self.zones.active_count(), self.reference.active());
        prop_assert_eq!(self.zones.implicitly_open_count() as usize, implicit);
        let areas = self.zones.namespaces()[0].zrwa_count();
        prop_assert_eq!(areas, self.reference.areas());
        Ok(())
    }

    fn compare_extent(
        &self,
        extent: Result<Extent, Status>,
        expected: Result<u64, Status>,
        nlb: Option<u32>,
    ) -> Check {
        let lba = match (extent, expected) {
            (Ok(_), Ok(lba)) => lba,
            (extent, expected) => {
                prop_assert_eq!(extent.map(|extent| extent.slba.0), expected);
                return Ok(());
            }
        };
        let zone = (lba / self.reference.config().size_lbas) as usize;
        let (before, after) = (&self.before.all()[zone], &self.reference.all()[zone]);
        let closed = (0..self.reference.all().len()).find(|&other| {
            self.before.all()[other].state == ZoneState::IMPLICITLY_OPENED
                && self.reference.all()[other].state == ZoneState::CLOSED
        });
        let committed = before.area.as_ref().map(|_| Committed {
            offset_lbas: before.pointer,
            nlb: (after.pointer - before.pointer) as u32,
        });
        let commit_lbas = committed.map_or(0, |committed| committed.nlb);
        let expected = Extent {
            zone: ZoneId(zone as u32),
            slba: Lba(lba),
            offset_lbas: lba - self.reference.start(zone),
            nlb: nlb.unwrap_or(commit_lbas),
            was_empty: before.state == ZoneState::EMPTY,
            opened: !before.is_open(),
            filled: after.state == ZoneState::FULL,
            closed: closed.map(|index| ZoneId(index as u32)),
            zrwa: committed,
        };
        prop_assert_eq!(extent, Ok(expected));
        Ok(())
    }

    /// The changes, applied to the states before, give the states after.
    fn compare_changes(&self, changes: &[Change]) -> Check {
        let states = |drive: &Reference| drive.all().iter().map(|z| z.state).collect::<Vec<_>>();
        let mut replayed = states(&self.before);
        for change in changes {
            let index = change.zone.0 as usize;
            prop_assert_eq!(replayed[index], change.from, "{:?}", change);
            prop_assert_ne!(change.from, change.to, "{:?}", change);
            replayed[index] = change.to;
            let pointer = self.before.all()[index].pointer;
            prop_assert_eq!(change.written_lbas, pointer, "{:?}", change);
            // A finish counts what it commits of a random write area.
            let host = match change.to {
                ZoneState::FULL => self.reference.all()[index].host,
                _ => self.before.all()[index].host,
            };
            prop_assert_eq!(change.host_lbas, host, "{:?}", change);
        }
        prop_assert_eq!(replayed, states(&self.reference));
        Ok(())
    }

    fn compare_reports(&self, report: &Report) -> Check {
        let Report {
            slba,
            filter,
            partial,
            extended,
            len,
        } = *report;
        let mut out = vec![0xa5; len];
        let used = self
            .zones
            .report(Lba(slba), filter, partial, extended, &mut out);
        let expected = self.reference.report(slba, filter, partial, extended, len);
        prop_assert_eq!(
            used,
            expected
                .as_ref()
                .map(|(_, used)| *used)
                .map_err(|status| *status)
        );
        prop_assert_eq!(out, expected.map_or(vec![0xa5; len], |(bytes, _)| bytes));
        Ok(())
    }

    /// Notes which row of the table decides about a command, if one does.
    fn note_row(&mut self, command: &Command) {
        let drive = &self.before;
        let Some((slba, event, placement)) = decision(command, drive) else {
            return;
        };
        let size = drive.config().size_lbas;
        let is_anywhere = matches!(event, Event::Write | Event::WriteZrwa | Event::CommitZrwa);
        let is_start = slba.is_multiple_of(size) || is_anywhere;
        let zone = drive.all().get((slba / size) as usize);
        let Some(zone) = zone.filter(|_| is_start) else {
            return;
        };
        let has_implicit = !drive.in_state(ZoneState::IMPLICITLY_OPENED).is_empty();
        let below = |count: u32, limit: Option<u32>| limit.is_none_or(|l| count < l);
        let condition = Condition {
            placement,
            active_free: below(drive.active(), drive.config().max_active),
            open_free: below(drive.open(), drive.config().max_open) || has_implicit,
            zrwa_free: drive
                .config()
                .zrwa
                .is_some_and(|zrwa| below(drive.areas(), zrwa.max_areas)),
        };
        let is_its_state = |state: &State| state.code() == zone.state;
        let state = State::ALL
            .into_iter()
            .find(is_its_state)
            .expect("a zone has a state");
        let matches = |row: &Row| row.matches(state, event, condition);
        self.reached.insert(
            ROWS.iter()
                .position(matches)
                .expect("the table is complete"),
        );
    }
}

/// Address of the zone, event and placement with which a command comes to the
/// table; `None` if its form alone is wrong, or it concerns several zones.
fn decision(command: &Command, drive: &Reference) -> Option<(u64, Event, Placement)> {
    let size = drive.config().size_lbas;
    match *command {
        Command::Write { slba, nlb } => {
            let index = (slba / size) as usize;
            let zone = drive.all().get(index)?;
            let fits = nlb > 0 && slba.saturating_add(nlb.into()) <= drive.end(index);
            if zone.area.is_some() {
                let pointer = drive.start(index) + zone.pointer;
                let reach = pointer + 2 * drive.area_lbas();
                let is_in = slba >= pointer && slba.saturating_add(nlb.into()) <= reach;
                let placement = if is_in {
                    Placement::Within
                } else {
                    Placement::Elsewhere
                };
                return fits.then_some((slba, Event::WriteZrwa, placement));
            }
            let placement = if slba == drive.start(index) + zone.pointer {
                placement_at_pointer(drive, index, nlb)
            } else {
                Placement::Elsewhere
            };
            fits.then_some((slba, Event::Write, placement))
        }
        Command::Append { zslba, nlb } => {
            let index = (zslba / size) as usize;
            let is_valid = nlb > 0 && zslba.is_multiple_of(size) && index < drive.all().len();
            is_valid.then(|| match drive.all()[index].area {
                Some(_) => (zslba, Event::AppendZrwa, Placement::Within),
                None => (zslba, Event::Write, placement_at_pointer(drive, index, nlb)),
            })
        }
        Command::OpenZrwa { slba } => {
            let is_valid = drive.config().zrwa.is_some();
            is_valid.then_some((slba, Event::OpenZrwa, Placement::Within))
        }
        Command::SetExtensionZrwa { slba, ref bytes } => {
            let len = drive.config().descriptor_extension_bytes as usize;
            let is_valid = len > 0 && bytes.len() >= len && drive.config().zrwa.is_some();
            is_valid.then_some((slba, Event::SetExtensionZrwa, Placement::Within))
        }
        Command::Commit { last } => {
            let index = (last / size) as usize;
            let zone = drive.all().get(index)?;
            let zrwa = drive.config().zrwa.filter(|zrwa| zrwa.explicit_flush)?;
            let pointer = drive.start(index) + zone.pointer;
            let area = pointer..pointer + u64::from(zrwa.size_lbas);
            let granularity = u64::from(zrwa.flush_granularity_lbas);
            let is_in = zone.area.is_some()
                && area.contains(&last)
                && (last + 1 - drive.start(index)).is_multiple_of(granularity);
            let placement = match last + 1 == drive.end(index) {
                _ if !is_in || last >= drive.end(index) => Placement::Elsewhere,
                true => Placement::Filling,
                false => Placement::Within,
            };
            Some((last, Event::CommitZrwa, placement))
        }
        Command::Send { slba, action } => {
            Event::of_action(action).map(|event| (slba, event, Placement::Within))
        }
        Command::SetExtension { slba, ref bytes } => {
            let len = drive.config().descriptor_extension_bytes as usize;
            let is_valid = len > 0 && bytes.len() >= len;
            is_valid.then_some((slba, Event::SetExtension, Placement::Within))
        }
        Command::Fail { zone, to } => {
            let event = match to {
                ZoneState::READ_ONLY => Event::FailReadOnly,
                ZoneState::OFFLINE => Event::FailOffline,
                _ => return None,
            };
            Some((u64::from(zone) * size, event, Placement::Within))
        }
        Command::Precondition { from, to } => {
            let slba = u64::from(from) * size;
            (to == from + 1).then_some((slba, Event::Precondition, Placement::Within))
        }
        Command::Read { .. } | Command::SendAll { .. } | Command::Report(_) => None,
    }
}

fn placement_at_pointer(drive: &Reference, zone: usize, nlb: u32) -> Placement {
    let left = drive.config().capacity_lbas - drive.all()[zone].pointer;
    match u64::from(nlb).cmp(&left) {
        Ordering::Less => Placement::Within,
        Ordering::Equal => Placement::Filling,
        Ordering::Greater => Placement::Beyond,
    }
}
