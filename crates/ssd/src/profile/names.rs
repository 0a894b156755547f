//! The names that profiles use for named values; reading and writing share them.

use super::Cell;
use crate::config::{
    BufferRelease, ChannelArbitration, CollectionPolicy, DataStore, EraseExtent, Evaluate,
    FillExtent, Isolation, PageRegister, Placement, PlaneMode, StripeOrder, Victim,
};

pub(super) const CELL: &[(&str, Cell)] = &[
    ("slc", Cell::Slc),
    ("mlc", Cell::Mlc),
    ("tlc", Cell::Tlc),
    ("qlc", Cell::Qlc),
];

pub(super) const STRIPE: &[(&str, StripeOrder)] = &[
    ("channel-first", StripeOrder::ChannelFirst),
    ("plane-first", StripeOrder::PlaneFirst),
];

pub(super) const PAGE_REGISTER: &[(&str, PageRegister)] = &[
    ("overlap", PageRegister::Overlap),
    ("hold", PageRegister::Hold),
    ("cache", PageRegister::Cache),
];

pub(super) const PLANES: &[(&str, PlaneMode)] = &[
    ("independent", PlaneMode::Independent),
    ("multi-plane", PlaneMode::MultiPlane),
    ("single", PlaneMode::Single),
];

pub(super) const ARBITRATION: &[(&str, ChannelArbitration)] = &[
    ("arrival", ChannelArbitration::Arrival),
    ("ready", ChannelArbitration::Ready),
];

pub(super) const EXTENT: &[(&str, EraseExtent)] = &[
    ("full", EraseExtent::Full),
    ("partial", EraseExtent::Partial),
];

pub(super) const STORE: &[(&str, DataStore)] =
    &[("none", DataStore::None), ("memory", DataStore::Memory)];

/// `kind` of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Zoned,
    Conventional,
}

pub(super) const NAMESPACE_KIND: &[(&str, Kind)] =
    &[("zoned", Kind::Zoned), ("conventional", Kind::Conventional)];

pub(super) const COLLECTION: &[(&str, CollectionPolicy)] = &[
    ("greedy", CollectionPolicy::Greedy),
    ("cost-benefit", CollectionPolicy::CostBenefit),
];

pub(super) const ISOLATION: &[(&str, Isolation)] = &[
    ("initially", Isolation::Initially),
    ("persistently", Isolation::Persistently),
];

/// `write_buffer.mode`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Buffer {
    None,
    WriteBack,
}

pub(super) const WRITE_BUFFER: &[(&str, Buffer)] =
    &[("none", Buffer::None), ("write-back", Buffer::WriteBack)];

/// `slc_cache.mode`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cache {
    None,
    Static,
}

pub(super) const SLC_CACHE: &[(&str, Cache)] = &[("none", Cache::None), ("static", Cache::Static)];

pub(super) const RELEASE: &[(&str, BufferRelease)] = &[
    ("program", BufferRelease::Program),
    ("transfer", BufferRelease::Transfer),
];

pub(super) const PLACEMENT: &[(&str, Placement)] = &[
    ("in-order", Placement::InOrder),
    ("least-work", Placement::LeastWork),
];

/// `media.die_queue`; the weight is a key of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Queue {
    Fifo,
    ReadFirst,
    Weighted,
}

pub(super) const QUEUE: &[(&str, Queue)] = &[
    ("fifo", Queue::Fifo),
    ("read-first", Queue::ReadFirst),
    ("weighted", Queue::Weighted),
];

/// `finish.design`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    Fill,
    Metadata,
    AtFold,
}

pub(super) const FINISH: &[(&str, Finish)] = &[
    ("fill", Finish::Fill),
    ("metadata", Finish::Metadata),
    ("at-fold", Finish::AtFold),
];

/// `finish.path`: whether device writes go through the write buffer.
pub(super) const PATH: &[(&str, bool)] = &[("flash", false), ("buffer", true)];

/// `finish.extent`.
pub(super) const FILL_EXTENT: &[(&str, FillExtent)] = &[
    ("zone", FillExtent::Zone),
    ("elements", FillExtent::Elements),
];

/// `reset.timing`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Timing {
    Synchronous,
    Asynchronous,
}

pub(super) const TIMING: &[(&str, Timing)] = &[
    ("synchronous", Timing::Synchronous),
    ("asynchronous", Timing::Asynchronous),
];

/// `reset.erase_at`, where the timing is asynchronous.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EraseAt {
    FirstWrite,
    FirstBlockWrite,
    Background,
    Thresholds,
}

pub(super) const ERASE_AT: &[(&str, EraseAt)] = &[
    ("first-write", EraseAt::FirstWrite),
    ("first-block-write", EraseAt::FirstBlockWrite),
    ("background", EraseAt::Background),
    ("thresholds", EraseAt::Thresholds),
];

/// `reset.thresholds.evaluate`.
pub(super) const EVALUATE: &[(&str, Evaluate)] = &[
    ("allocation", Evaluate::Allocation),
    ("command", Evaluate::Command),
    ("change", Evaluate::Change),
];

/// `reset.thresholds.victim`.
pub(super) const VICTIM: &[(&str, Victim)] = &[
    ("oldest", Victim::Oldest),
    ("least-worn", Victim::LeastWorn),
];

/// `mapping.design`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mapping {
    Direct,
    Lazy,
    Chunk,
    Stripe,
}

pub(super) const MAPPING: &[(&str, Mapping)] = &[
    ("direct", Mapping::Direct),
    ("lazy", Mapping::Lazy),
    ("chunk", Mapping::Chunk),
    ("stripe", Mapping::Stripe),
];

/// `mapping.allocate_at`: whether it is at an explicit open.
pub(super) const ALLOCATE_AT: &[(&str, bool)] = &[("write", false), ("open", true)];

/// The name of `value`.
pub(super) fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    let found = names.iter().find(|(_, named)| named == value);
    found.expect("every value of these types has a name").0
}
