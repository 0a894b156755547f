//! Which flash zones get, decided from outside.

use proptest::prelude::*;
use zonelab_device::{Nanos, ZoneId};
use zonelab_ssd::config::{DriveConfig, EraseExtent, EraseWhen, MappingConfig};
use zonelab_ssd::mapping::allocator::ElementId;
use zonelab_ssd::policy::{AllocationPolicy, ElementsRequest, PolicyError, ZoneRequest};

use crate::drive_support::random::{Step, bodies, designs, drive, streams};
use crate::drive_support::thresholds::thresholds;
use crate::drive_support::{Rig, lazy, reset, small};

/// A rule for either mapping.
#[derive(Debug)]
enum Rule {
    /// The candidate at a position.
    At(usize),
    /// The built-in one.
    AsBefore,
    /// The last elements of each LUN.
    Last,
    /// Elements by number, these.
    These(Vec<u32>),
}

impl AllocationPolicy for Rule {
    fn name(&self) -> &str {
        "rule"
    }

    fn physical_zone(&mut self, request: &ZoneRequest<'_>) -> Result<usize, PolicyError> {
        assert!(!request.candidates.is_empty());
        Ok(match self {
            Self::At(at) => *at,
            Self::Last => request.candidates.len() - 1,
            Self::AsBefore | Self::These(_) => 0,
        })
    }

    fn elements(
        &mut self,
        request: &ElementsRequest<'_>,
        chosen: &mut Vec<ElementId>,
    ) -> Result<(), PolicyError> {
        match self {
            Self::Last => {
                for lun in (0..request.luns).rev() {
                    let of_lun = request.candidates.iter().filter(|of| of.lun == lun);
                    let last = of_lun.rev().take(request.per_lun as usize);
                    chosen.extend(last.map(|of| of.element));
                }
            }
            Self::These(elements) => chosen.extend(elements.iter().copied().map(ElementId)),
            Self::At(_) | Self::AsBefore => {}
        }
        Ok(())
    }
}

fn with(config: &DriveConfig, rule: Rule) -> Rig {
    let mut rig = Rig::new(config);
    rig.drive
        .set_allocation_policy(Box::new(rule))
        .expect("zones get and lose flash");
    rig
}

#[test]
fn a_zone_gets_the_physical_zone_that_was_chosen() {
    let mut config = lazy(small(), 8);
    config.reset = reset(EraseWhen::Background, EraseExtent::Full);
    let mut rig = with(&config, Rule::Last);
    for (zone, physical) in [(0, 7), (1, 6), (2, 5)] {
        rig.write_pages(zone, 1);
        assert_eq!(
            rig.drive.flash().mapping().physical(ZoneId(zone)),
            Some(physical)
        );
    }
    // What was freed last is the last again.
    let reset = rig.reset(1);
    rig.time(reset);
    rig.settle();
    rig.write_pages(3, 1);
    assert_eq!(rig.drive.flash().mapping().physical(ZoneId(3)), Some(6));
    assert_eq!(rig.drive.policy_error(), None);
}

/// Where none is free it is one of the invalid ones; by thresholds, the one that is erased
/// for it.
#[test]
fn invalid_zones_are_offered_where_none_is_free() {
    for erase in [
        EraseWhen::FirstZoneWrite,
        EraseWhen::Thresholds(thresholds(0, None)),
    ] {
        let mut config = lazy(small(), 6);
        config.reset = reset(erase, EraseExtent::Full);
        let mut rig = with(&config, Rule::Last);
        for zone in 0..6 {
            rig.write_pages(zone, 1);
        }
        for zone in 0..2 {
            let reset = rig.reset(zone);
            rig.time(reset);
        }
        let last = rig.drive.flash().mapping().invalid_zones(0)[1];
        let first = rig.drive.flash().mapping().invalid_zones(0)[0];
        rig.write_pages(0, 1);
        let expected = match erase {
            EraseWhen::FirstZoneWrite => last,
            _ => first,
        };
        assert_eq!(
            rig.drive.flash().mapping().physical(ZoneId(0)),
            Some(expected)
        );
        assert_eq!(rig.drive.policy_error(), None);
    }
}

fn chunks() -> DriveConfig {
    let mut config = small();
    config.mapping = MappingConfig::Chunk {
        chunk_blocks: 1,
        physical_zones: 8,
    };
    config
}

#[test]
fn a_zone_gets_the_elements_that_were_chosen() {
    let mut rig = with(&chunks(), Rule::Last);
    rig.write_pages(0, 32);
    assert_eq!(rig.drive.policy_error(), None);
    let physical = rig
        .drive
        .flash()
        .mapping()
        .physical(ZoneId(0))
        .expect("it was written");
    let elements = rig.drive.flash().elements().expect("zones consist of them");
    let has: Vec<u32> = elements
        .of_zone(physical)
        .flatten()
        .map(|of| of.0)
        .collect();
    // Two lines over 4 LUNs of 16 elements: the last of each LUN, then the one before.
    assert_eq!(has, [15, 31, 47, 63, 14, 30, 46, 62]);
}

#[test]
fn elements_that_a_zone_cannot_have_are_refused_by_name() {
    let even = [0, 1, 16, 17, 32, 33, 48, 49];
    let instead = |at: usize, element| {
        let mut these = even.to_vec();
        these[at] = element;
        these
    };
    for (these, what) in [
        (even[1..].to_vec(), "7 elements"),
        (instead(0, 1), "element 1 twice"),
        (instead(0, 64), "element 64"),
        (instead(0, 18), "1 elements of LUN 0"),
    ] {
        let mut rig = with(&chunks(), Rule::These(these));
        rig.write_pages(0, 32);
        rig.settle();
        match rig.drive.policy_error() {
            Some(PolicyError::Answer { answer, .. }) => assert_eq!(answer, what),
            other => panic!("{what}: {other:?}"),
        }
    }
    let mut rig = with(&chunks(), Rule::These(even.to_vec()));
    rig.write_pages(0, 32);
    assert_eq!(rig.drive.policy_error(), None);
    // They are a zone's now.
    rig.write_pages(1, 32);
    assert!(rig.drive.policy_error().is_some());
    let error = with(&lazy(small(), 8), Rule::At(8));
    let mut rig = error;
    rig.write_pages(0, 1);
    let text = rig
        .drive
        .policy_error()
        .expect("there are eight")
        .to_string();
    assert!(text.contains("answered 8"), "{text}");
}

#[test]
fn zones_that_keep_their_flash_leave_nothing_to_choose() {
    let mut rig = Rig::new(&small());
    let refused = rig.drive.set_allocation_policy(Box::new(Rule::AsBefore));
    let text = refused.expect_err("mapping is direct").to_string();
    assert!(text.contains("mapping.design"), "{text}");
}

/// What is the same for two drives.
fn outcome(rig: &mut Rig, stream: &[Step]) -> String {
    for step in stream {
        match (step, step.op(rig)) {
            (_, Some(op)) => drop(rig.submit(op)),
            (Step::Pause(span), None) => rig.run_for(Nanos(*span)),
            (_, None) => rig.settle(),
        }
    }
    rig.settle();
    assert_eq!(rig.drive.policy_error(), None);
    let (totals, wear) = (rig.drive.totals(), rig.drive.flash().erase_counts());
    format!("{:?} {totals:?} {wear:?}", rig.done)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    /// A policy that takes what the drive would have taken changes nothing; one that
    /// takes anything else breaks nothing.
    #[test]
    fn the_oldest_free_zone_from_outside_is_the_built_in_rule(
        (body, designs, spare) in (bodies(), designs(), 0..4_u32),
        stream in streams(1..80),
    ) {
        let mut designs = designs;
        designs.lazy = true;
        let config = drive(body, designs, spare);
        let native = outcome(&mut Rig::new(&config), &stream);
        prop_assert_eq!(&native, &outcome(&mut with(&config, Rule::AsBefore), &stream));
        outcome(&mut with(&config, Rule::Last), &stream);
    }
}
