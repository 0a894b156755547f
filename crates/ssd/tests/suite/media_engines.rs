//! Where service is in order of arrival, the engine on events and the closed
//! form are the same to the nanosecond.

use crate::media_support::{Arrival, CONFZNSPP, Rig, Shape, shapes};
use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_ssd::account::Resource;
use zonelab_ssd::config::{MediaConfig, PageRegister};
use zonelab_ssd::media::{FlashKind, FlashOp, Media};
use zonelab_ssd::record::Span;

/// Times with many ties and zeros.
fn time_ns() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(0_u32), 4 => 1_u32..20, 2 => 1_u32..1_000]
}

fn op(units: u32) -> impl Strategy<Value = FlashOp> {
    let kind = prop_oneof![
        Just(FlashKind::Read),
        Just(FlashKind::Program),
        Just(FlashKind::Erase)
    ];
    (0..units, kind, time_ns(), time_ns()).prop_map(|(unit, kind, array_ns, transfer_ns)| FlashOp {
        unit,
        kind,
        array_ns,
        transfer_ns: if kind == FlashKind::Erase {
            0
        } else {
            transfer_ns
        },
    })
}

fn arrivals(units: u32) -> impl Strategy<Value = Vec<Arrival>> {
    let group = (time_ns(), proptest::collection::vec(op(units), 0..6));
    proptest::collection::vec(group, 1..40).prop_map(|groups| {
        let mut at = Nanos::ZERO;
        groups
            .into_iter()
            .map(|(gap, ops)| {
                at += Nanos(u64::from(gap));
                Arrival { at, ops }
            })
            .collect()
    })
}

fn workload() -> impl Strategy<Value = (Shape, Vec<Arrival>)> {
    shapes().prop_flat_map(|shape| {
        let units = shape.channel_of_unit.len() as u32;
        (Just(shape), arrivals(units))
    })
}

/// Everything that can be seen from outside.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    /// When each group ended.
    ends: Vec<Nanos>,
    /// Whether each unit was idle, just before each arrival.
    idle: Vec<Vec<bool>>,
    /// What was booked, by resource and time.
    spans: Vec<Span>,
}

fn outcome(media: Media, units: u32, arrivals: &[Arrival]) -> Outcome {
    let mut rig = Rig::of(media);
    let mut idle = Vec::new();
    for (token, arrival) in arrivals.iter().enumerate() {
        rig.run_to(arrival.at);
        idle.push(
            (0..units)
                .map(|u| rig.media.is_idle(arrival.at, u))
                .collect(),
        );
        rig.submit_at(arrival.at, token as u32, &arrival.ops);
    }
    rig.run_to(Nanos::MAX);
    let mut ended = rig.ended.clone();
    ended.sort_by_key(|(_, token)| *token);
    assert!(
        ended.iter().map(|(_, t)| *t as usize).eq(0..arrivals.len()),
        "each group ends once"
    );
    let mut spans = rig.spans();
    spans.retain(|span| span.start < span.end);
    spans.sort_by_key(|span| match span.resource {
        Resource::Unit(u) => (0, u, span.start),
        Resource::Channel(c) => (1, c, span.start),
    });
    Outcome {
        ends: ended.into_iter().map(|(at, _)| at).collect(),
        idle,
        spans,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn events_and_closed_form_agree((shape, arrivals) in workload(), hold: bool) {
        let page_register = if hold { PageRegister::Hold } else { PageRegister::Overlap };
        let config = MediaConfig { page_register, ..CONFZNSPP };
        let units = shape.channel_of_unit.len() as u32;
        let closed = Media::new(&shape.channel_of_unit, shape.channels, &config);
        let events = Media::event_driven(&shape.channel_of_unit, shape.channels, &config);
        prop_assert_eq!(
            outcome(closed, units, &arrivals),
            outcome(events, units, &arrivals)
        );
    }
}
