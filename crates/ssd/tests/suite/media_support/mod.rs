//! What the tests of flash timing share: configurations, and a drive that is
//! nothing but its flash.

pub(crate) mod random;
pub(crate) mod service;

use proptest::prelude::*;
use zonelab_device::Nanos;
use zonelab_ssd::account::Cause;
use zonelab_ssd::config::{
    ChannelArbitration, DiePolicy, MediaConfig, MediaDetails, PageRegister, PlaneMode, Suspend,
};
use zonelab_ssd::event::{Event, EventQueue};
use zonelab_ssd::media::{FlashKind, FlashOp, Media};
use zonelab_ssd::record::{RecordLimits, Span};

/// ConfZNS++ (SYSTOR'24): tR 60 us, tPROG 700 us, tBERS 3.5 ms, 25 us a page,
/// service in order of arrival.
pub(crate) const CONFZNSPP: MediaConfig = MediaConfig {
    read_ns: Nanos::from_us(60),
    program_ns: Nanos::from_us(700),
    erase_ns: Nanos(3_500_000),
    transfer_ns: Nanos::from_us(25),
    partial_transfer: false,
    page_register: PageRegister::Overlap,
    planes: PlaneMode::Independent,
    policy: DiePolicy::Fifo,
    arbitration: ChannelArbitration::Arrival,
    suspend: Suspend::NONE,
    details: MediaDetails::NONE,
};

/// The same with transfers in order of readiness.
pub(crate) fn ready(policy: DiePolicy) -> MediaConfig {
    MediaConfig {
        policy,
        arbitration: ChannelArbitration::Ready,
        ..CONFZNSPP
    }
}

/// A page read with the times of [`CONFZNSPP`].
pub(crate) fn read(unit: u32) -> FlashOp {
    FlashOp {
        unit,
        kind: FlashKind::Read,
        array_ns: 60_000,
        transfer_ns: 25_000,
    }
}

/// A page program with the times of [`CONFZNSPP`].
pub(crate) fn program(unit: u32) -> FlashOp {
    FlashOp {
        unit,
        kind: FlashKind::Program,
        array_ns: 700_000,
        transfer_ns: 25_000,
    }
}

/// A block erase with the times of [`CONFZNSPP`].
pub(crate) fn erase(unit: u32) -> FlashOp {
    FlashOp {
        unit,
        kind: FlashKind::Erase,
        array_ns: 3_500_000,
        transfer_ns: 0,
    }
}

/// The cause that tests book an operation to.
pub(crate) fn cause_of(kind: FlashKind) -> Cause {
    match kind {
        FlashKind::Read => Cause::HostRead,
        FlashKind::Program => Cause::HostWrite,
        FlashKind::Erase => Cause::ResetErase,
    }
}

/// Flash, its events, and what has come out of them.
pub(crate) struct Rig {
    pub(crate) media: Media,
    pub(crate) events: EventQueue,
    /// Group ends in order: time and token.
    pub(crate) ended: Vec<(Nanos, u32)>,
    /// Wake-ups in order: time and task.
    pub(crate) woken: Vec<(Nanos, u32)>,
    /// Events of units and channels.
    pub(crate) internal: usize,
}

impl Rig {
    pub(crate) fn of(mut media: Media) -> Self {
        media
            .ledger_mut()
            .record(&RecordLimits::everything(usize::MAX));
        Self {
            media,
            events: EventQueue::default(),
            ended: Vec::new(),
            woken: Vec::new(),
            internal: 0,
        }
    }

    /// One unit on each of `channels` channels.
    pub(crate) fn new(channels: u16, config: &MediaConfig) -> Self {
        let units: Vec<u16> = (0..channels).collect();
        Self::of(Media::new(&units, u32::from(channels), config))
    }

    /// Two units on one channel.
    pub(crate) fn shared_channel(config: &MediaConfig) -> Self {
        Self::of(Media::new(&[0, 0], 1, config))
    }

    /// Submits a group whose cause is that of its first operation.
    pub(crate) fn submit(&mut self, at_us: u64, token: u32, ops: &[FlashOp]) {
        self.submit_at(Nanos::from_us(at_us), token, ops);
    }

    pub(crate) fn submit_at(&mut self, at: Nanos, token: u32, ops: &[FlashOp]) {
        self.run_to(at);
        self.submit_at_once(at, token, ops);
    }

    /// Submits before the other events of `at` are handled.
    pub(crate) fn submit_at_once(&mut self, at: Nanos, token: u32, ops: &[FlashOp]) {
        let cause = ops.first().map_or(Cause::HostRead, |op| cause_of(op.kind));
        self.media.submit(at, token, cause, ops, &mut self.events);
    }

    pub(crate) fn when_idle(
        &mut self,
        at: Nanos,
        unit: u32,
        task: u32,
        deadline: Option<Nanos>,
    ) -> bool {
        self.run_to(at);
        self.media
            .when_idle(at, unit, task, deadline, &mut self.events)
    }

    /// Handles everything that is due by `to`.
    pub(crate) fn run_to(&mut self, to: Nanos) {
        while let Some((at, event)) = self.events.pop_due(to) {
            self.deliver(at, event);
        }
    }

    /// Handles one event.
    pub(crate) fn deliver(&mut self, at: Nanos, event: Event) {
        match event {
            Event::GroupDone(token) => self.ended.push((at, token)),
            Event::Task(task) => self.woken.push((at, task)),
            Event::Unit(_) | Event::Ended(_) | Event::Idle(_) | Event::Channel(_) => {
                self.internal += 1;
                self.media.handle(at, event, &mut self.events);
            }
            Event::Request(_)
            | Event::Drain
            | Event::Quiet
            | Event::Fold
            | Event::Loaded(_)
            | Event::Line => {
                unreachable!("flash knows no requests")
            }
        }
    }

    /// Runs to the end; returns when each token ended, in microseconds.
    pub(crate) fn ends_us(&mut self) -> Vec<u64> {
        self.run_to(Nanos::MAX);
        let mut ends = self.ended.clone();
        ends.sort_by_key(|(_, token)| *token);
        ends.iter()
            .map(|(at, _)| {
                assert_eq!(at.0 % 1_000, 0, "whole microseconds");
                at.0 / 1_000
            })
            .collect()
    }

    pub(crate) fn spans(&mut self) -> Vec<Span> {
        self.media.ledger_mut().take_spans().records
    }
}

/// A group and when it arrives.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Nanos,
    pub(crate) ops: Vec<FlashOp>,
}

/// Where the units are.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) channels: u32,
    pub(crate) channel_of_unit: Vec<u16>,
}

pub(crate) fn shapes() -> impl Strategy<Value = Shape> {
    (1_u16..4).prop_flat_map(|channels| {
        proptest::collection::vec(0..channels, 1..7).prop_map(move |channel_of_unit| Shape {
            channels: u32::from(channels),
            channel_of_unit,
        })
    })
}
