//! Units of values: how they are read and written.

use zonelab_config::units::{fmt_duration, fmt_percent, fmt_rate, fmt_size, quote};
use zonelab_config::{Item, Reported};
use zonelab_device::Nanos;

use super::super::names::name_of;
use super::super::write::Text;
use crate::config::ReadParts;

/// How values are read and written. Sizes that the configuration counts in logical blocks
/// need to know how large those are.
pub(in crate::profile) trait Unit: Clone + Send + Sync + 'static {
    type Value: Clone + PartialEq + Send + Sync + 'static;

    fn read(&self, item: &Item<'_>, lba_bytes: u32) -> Result<Self::Value, Reported>;

    /// As it is written in a file.
    fn text(&self, value: &Self::Value, lba_bytes: u32) -> Text;

    /// What it is called on the page, with the names of choices.
    fn words(&self) -> String;

    /// As it is written in messages and on the page.
    fn plain(&self, value: &Self::Value) -> String {
        match self.text(value, 1) {
            Text::Quoted(text) | Text::Bare(text) => text,
        }
    }

    /// What a range counts, behind its numbers; empty: its values say so themselves.
    fn counted(&self) -> &'static str {
        ""
    }

    fn out_of_range(&self, value: &Self::Value) -> String {
        format!("{} is out of range", self.plain(value))
    }

    /// Whether a value stands for nothing.
    fn is_nothing(&self, _value: &Self::Value) -> bool {
        false
    }
}

/// What counts something.
#[derive(Clone)]
pub(in crate::profile) struct Number;

impl Unit for Number {
    type Value = u32;

    fn read(&self, item: &Item<'_>, _lba_bytes: u32) -> Result<u32, Reported> {
        item.u32()
    }

    fn text(&self, value: &u32, _lba_bytes: u32) -> Text {
        Text::Bare(value.to_string())
    }

    fn words(&self) -> String {
        "number".to_owned()
    }

    fn is_nothing(&self, value: &u32) -> bool {
        *value == 0
    }
}

/// The source ranges of a Copy, of which Identify Namespace has one byte.
#[derive(Clone)]
pub(in crate::profile) struct SourceRanges;

impl SourceRanges {
    pub(in crate::profile) const MAX: u16 = 256;
}

impl Unit for SourceRanges {
    type Value = u16;

    fn read(&self, item: &Item<'_>, _lba_bytes: u32) -> Result<u16, Reported> {
        let value = item.u32()?;
        let narrow = u16::try_from(value).ok();
        let narrow = narrow.filter(|value| (1..=Self::MAX).contains(value));
        narrow.ok_or_else(|| {
            let valid = format!("at least 1, at most {}", Self::MAX);
            item.fail(format!("{value} is out of range"), valid)
        })
    }

    fn text(&self, value: &u16, _lba_bytes: u32) -> Text {
        Text::Bare(value.to_string())
    }

    fn words(&self) -> String {
        "number".to_owned()
    }
}

/// A size.
#[derive(Clone)]
pub(in crate::profile) struct Bytes;

impl Unit for Bytes {
    type Value = u64;

    fn read(&self, item: &Item<'_>, _lba_bytes: u32) -> Result<u64, Reported> {
        item.size_bytes()
    }

    fn text(&self, value: &u64, _lba_bytes: u32) -> Text {
        Text::Quoted(fmt_size(*value))
    }

    fn words(&self) -> String {
        "size".to_owned()
    }
}

/// A size of 32 bits.
#[derive(Clone)]
pub(in crate::profile) struct Bytes32;

impl Unit for Bytes32 {
    type Value = u32;

    fn read(&self, item: &Item<'_>, _lba_bytes: u32) -> Result<u32, Reported> {
        item.size_bytes_u32()
    }

    fn text(&self, value: &u32, _lba_bytes: u32) -> Text {
        Text::Quoted(fmt_size(u64::from(*value)))
    }

    fn words(&self) -> String {
        "size".to_owned()
    }
}

/// The logical blocks of a size.
fn lbas_of(item: &Item<'_>, lba_bytes: u32) -> Result<u64, Reported> {
    let bytes = item.size_bytes()?;
    // A block size that is no size at all is refused by the check.
    let lba_bytes = u64::from(lba_bytes).max(1);
    if bytes.is_multiple_of(lba_bytes) {
        return Ok(bytes / lba_bytes);
    }
    let below = bytes / lba_bytes * lba_bytes;
    let what = format!(
        "{} is not a multiple of the logical block ({})",
        fmt_size(bytes),
        fmt_size(lba_bytes)
    );
    let above = fmt_size(below.saturating_add(lba_bytes));
    let valid = match below {
        0 => format!("use {above}"),
        _ => format!("use {} or {above}", fmt_size(below)),
    };
    Err(item.fail(what, valid))
}

fn text_of_lbas(lbas: u64, lba_bytes: u32) -> Text {
    Text::Quoted(fmt_size(lbas.saturating_mul(u64::from(lba_bytes))))
}

/// A size in whole logical blocks; messages about ranges count blocks.
macro_rules! lbas {
    ($(#[$doc:meta])* $name:ident, $value:ty, $narrow:expr) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub(in crate::profile) struct $name;

        impl Unit for $name {
            type Value = $value;

            fn read(&self, item: &Item<'_>, lba_bytes: u32) -> Result<$value, Reported> {
                let lbas = lbas_of(item, lba_bytes)?;
                let narrow: fn(&Item<'_>, u64, u32) -> Result<$value, Reported> = $narrow;
                narrow(item, lbas, lba_bytes)
            }

            fn text(&self, value: &$value, lba_bytes: u32) -> Text {
                text_of_lbas((*value).into(), lba_bytes)
            }

            fn words(&self) -> String {
                "size in whole logical blocks".to_owned()
            }

            fn counted(&self) -> &'static str {
                " blocks"
            }

            fn plain(&self, value: &$value) -> String {
                value.to_string()
            }

            fn out_of_range(&self, value: &$value) -> String {
                format!("{value} logical blocks are out of range")
            }
        }
    };
}

lbas! {
    /// Any number of logical blocks.
    Lbas, u64, |_, lbas, _| Ok(lbas)
}

lbas! {
    /// Up to 2^32 - 1 logical blocks. More are as far out of range as that.
    Lbas32, u32, |_, lbas, _| Ok(u32::try_from(lbas).unwrap_or(u32::MAX))
}

lbas! {
    /// Up to 65,535 logical blocks, as a field of Identify Namespace has them.
    SmallLbas, u16, |item, lbas, lba_bytes| {
        u16::try_from(lbas).map_err(|_| too_large(item, lbas, u16::MAX.into(), lba_bytes))
    }
}

lbas! {
    /// Up to 2^32 - 1 logical blocks, as a field of Identify Namespace has them.
    FieldLbas, u32, |item, lbas, lba_bytes| {
        u32::try_from(lbas).map_err(|_| too_large(item, lbas, u32::MAX, lba_bytes))
    }
}

fn too_large(item: &Item<'_>, lbas: u64, most: u32, lba_bytes: u32) -> Reported {
    let size = |lbas: u64| fmt_size(lbas.saturating_mul(u64::from(lba_bytes.max(1))));
    let what = format!("{} is too large", size(lbas));
    item.fail(what, format!("at most {}", size(most.into())))
}

/// A time.
#[derive(Clone)]
pub(in crate::profile) struct Time;

impl Unit for Time {
    type Value = Nanos;

    fn read(&self, item: &Item<'_>, _lba_bytes: u32) -> Result<Nanos, Reported> {
        item.duration_ns().map(Nanos)
    }

    fn text(&self, value: &Nanos, _lba_bytes: u32) -> Text {
        Text::Quoted(fmt_duration(value.0))
    }

    fn words(&self) -> String {
        "time".to_owned()
    }

    fn is_nothing(&self, value: &Nanos) -> bool {
        *value == Nanos::ZERO
    }
}

/// The read time of a page, or of each of its parts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::profile) struct ReadTime {
    /// That of a page; of parts, their mean.
    pub(in crate::profile) time: Nanos,
    pub(in crate::profile) parts: Option<ReadParts>,
}

impl From<Nanos> for ReadTime {
    fn from(time: Nanos) -> Self {
        Self { time, parts: None }
    }
}

/// A time, or a list of them.
#[derive(Clone)]
pub(in crate::profile) struct ReadTimes;

impl Unit for ReadTimes {
    type Value = ReadTime;

    fn read(&self, item: &Item<'_>, _lba_bytes: u32) -> Result<ReadTime, Reported> {
        if !item.is_array() {
            return item.duration_ns().map(|ns| Nanos(ns).into());
        }
        let items = item.items()?;
        // All of them are read before the first that is wrong ends it.
        let times: Vec<_> = items.iter().map(Item::duration_ns).collect();
        let times: Vec<Nanos> = times
            .into_iter()
            .map(|time| time.map(Nanos))
            .collect::<Result<_, _>>()?;
        match ReadParts::new(&times) {
            Some(parts) => Ok(ReadTime {
                time: parts.mean(),
                parts: Some(parts),
            }),
            None => {
                let what = format!("{} parts of a page", times.len());
                let valid = format!("write a time, or 2 to {} times", ReadParts::MAX);
                Err(item.fail(what, valid))
            }
        }
    }

    fn text(&self, value: &ReadTime, _lba_bytes: u32) -> Text {
        let Some(parts) = &value.parts else {
            return Text::Quoted(fmt_duration(value.time.0));
        };
        let times = parts.times().iter();
        let times: Vec<String> = times.map(|time| quote(&fmt_duration(time.0))).collect();
        Text::Bare(format!("[{}]", times.join(", ")))
    }

    fn words(&self) -> String {
        format!("time, or a list of 2 to {} times", ReadParts::MAX)
    }
}

/// Bytes per second.
#[derive(Clone)]
pub(in crate::profile) struct Rate;

impl Unit for Rate {
    type Value = u64;

    fn read(&self, item: &Item<'_>, _lba_bytes: u32) -> Result<u64, Reported> {
        item.rate_bytes_per_s()
    }

    fn text(&self, value: &u64, _lba_bytes: u32) -> Text {
        Text::Quoted(fmt_rate(*value))
    }

    fn words(&self) -> String {
        "rate".to_owned()
    }
}

/// Parts per million.
#[derive(Clone)]
pub(in crate::profile) struct Share;

impl Unit for Share {
    type Value = u32;

    fn read(&self, item: &Item<'_>, _lba_bytes: u32) -> Result<u32, Reported> {
        item.percent_ppm()
    }

    fn text(&self, value: &u32, _lba_bytes: u32) -> Text {
        Text::Quoted(fmt_percent(*value))
    }

    fn words(&self) -> String {
        "share".to_owned()
    }

    fn is_nothing(&self, value: &u32) -> bool {
        *value == 0
    }
}

/// True or false.
#[derive(Clone)]
pub(in crate::profile) struct Flag;

impl Unit for Flag {
    type Value = bool;

    fn read(&self, item: &Item<'_>, _lba_bytes: u32) -> Result<bool, Reported> {
        item.bool()
    }

    fn text(&self, value: &bool, _lba_bytes: u32) -> Text {
        Text::Bare(value.to_string())
    }

    fn words(&self) -> String {
        "`true` or `false`".to_owned()
    }

    fn is_nothing(&self, value: &bool) -> bool {
        !value
    }
}

/// The name of a drive.
#[derive(Clone)]
pub(in crate::profile) struct Name;

impl Unit for Name {
    type Value = String;

    fn read(&self, item: &Item<'_>, _lba_bytes: u32) -> Result<String, Reported> {
        item.str().map(str::to_owned)
    }

    fn text(&self, value: &String, _lba_bytes: u32) -> Text {
        Text::Quoted(value.clone())
    }

    fn words(&self) -> String {
        "text".to_owned()
    }
}

/// One of several values that have names.
#[derive(Clone)]
pub(in crate::profile) struct Choice<T: 'static>(
    pub(in crate::profile) &'static [(&'static str, T)],
);

impl<T: Copy + PartialEq + Send + Sync + 'static> Unit for Choice<T> {
    type Value = T;

    fn read(&self, item: &Item<'_>, _lba_bytes: u32) -> Result<T, Reported> {
        item.choice(self.0)
    }

    fn text(&self, value: &T, _lba_bytes: u32) -> Text {
        Text::Quoted(name_of(self.0, value).to_owned())
    }

    fn words(&self) -> String {
        let names: Vec<String> = self.0.iter().map(|(name, _)| format!("`{name}`")).collect();
        names.join(", ")
    }
}
