//! Numbers of a profile that are fitted, and the profile of a candidate.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::design::topic::{
    APPEND, DATA, FINISH, MIXED, OPEN, PUT, READ, RESETTING, REWRITE, WRITE,
};
use super::design::{CHANNELS, Design, FACTORS, PAGE, RESETS, ROWS, WAYS};
use super::known::Known;
use zonelab_lab::space::Quantity;

/// Most pages of a block.
const PAGES_MOST: u64 = 65_535;

/// A number that is fitted.
#[derive(Debug)]
pub struct Declared {
    /// Its key in a profile.
    pub key: &'static str,
    pub(super) quantity: Quantity,
    /// Where a fit begins, in base units.
    pub(super) start: u64,
    /// Least and greatest value.
    pub(super) bounds: (u64, u64),
    /// Below this, a value is as good as none; 0: equal ratios count the same everywhere.
    pub(super) soft: u64,
    /// Probes that react.
    pub(super) topics: u8,
    /// Whether a drive of this design has it.
    pub(super) is_in: fn(&Design) -> bool,
}

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

const fn time(
    key: &'static str,
    start: u64,
    bounds: (u64, u64),
    soft: u64,
    topics: u8,
) -> Declared {
    Declared {
        key,
        quantity: Quantity::Time,
        start,
        bounds,
        soft,
        topics,
        is_in: |_| true,
    }
}

/// Every number that a fit decides about.
pub const PARAMETERS: &[Declared] = &[
    time("media.read", 50 * US, (2 * US, 400 * US), 0, READ | MIXED),
    time(
        "media.program",
        500 * US,
        (20 * US, 5 * MS),
        0,
        PUT | FINISH,
    ),
    Declared {
        is_in: |design| design.0.get(RESETS).is_some_and(|reset| *reset < 3),
        ..time("media.erase", 3 * MS, (100 * US, 30 * MS), 0, RESETTING)
    },
    time(
        "media.transfer",
        15 * US,
        (500, 200 * US),
        200,
        DATA | FINISH,
    ),
    Declared {
        quantity: Quantity::Rate,
        ..time(
            "front_end.link",
            4_000_000_000,
            (100_000_000, 30_000_000_000),
            0,
            DATA,
        )
    },
    time("front_end.read", 2 * US, (50, 50 * US), 100, READ | MIXED),
    time(
        "front_end.write",
        4 * US,
        (50, 50 * US),
        100,
        WRITE | MIXED | REWRITE,
    ),
    time("front_end.append", 5 * US, (50, 50 * US), 100, APPEND),
    time(
        "front_end.management",
        8 * US,
        (50, 500 * US),
        100,
        OPEN | FINISH | RESETTING,
    ),
    time(
        "front_end.latency.read",
        2 * US,
        (0, 100 * US),
        500,
        READ | MIXED,
    ),
    time(
        "front_end.latency.write",
        2 * US,
        (0, 100 * US),
        500,
        WRITE | MIXED | REWRITE,
    ),
    time(
        "front_end.latency.append",
        2 * US,
        (0, 100 * US),
        500,
        APPEND,
    ),
    Declared {
        quantity: Quantity::Size,
        is_in: Design::has_buffer,
        ..time("write_buffer.size", 4 << 20, (64 << 10, 512 << 20), 0, PUT)
    },
    Declared {
        is_in: Design::fills,
        ..time("finish.pause", 50 * US, (0, 5 * MS), 5 * US, FINISH)
    },
    time(
        "reset.bookkeeping.base",
        100 * US,
        (0, 20 * MS),
        5 * US,
        RESETTING,
    ),
    time(
        "reset.bookkeeping.full_zone",
        300 * US,
        (0, 50 * MS),
        5 * US,
        RESETTING,
    ),
    Declared {
        quantity: Quantity::Share,
        ..time(
            "media.program_variation",
            10_000,
            (0, 300_000),
            5_000,
            PUT | FINISH,
        )
    },
    Declared {
        quantity: Quantity::Share,
        ..time(
            "front_end.costs.variation",
            10_000,
            (0, 300_000),
            5_000,
            u8::MAX,
        )
    },
];

impl Declared {
    /// The coordinate of a value, in which the search works: a step of 0.1 is a tenth more.
    pub(super) fn coordinate(&self, value: u64) -> f64 {
        let value = value as f64;
        match self.soft {
            0 => libm::log(value.max(1.0)),
            soft => libm::log1p(value / soft as f64),
        }
    }

    /// The value at a coordinate, as a profile can say it.
    pub(super) fn value(&self, coordinate: f64) -> u64 {
        let exact = match self.soft {
            0 => libm::exp(coordinate),
            soft => soft as f64 * libm::expm1(coordinate),
        };
        let (low, high) = self.bounds;
        let exact = exact.clamp(low as f64, high as f64);
        // Sizes are whole pages, others have five digits.
        let grain = match self.quantity {
            Quantity::Size => 64 << 10,
            _ => grain(exact as u64),
        };
        let value = (exact / grain as f64).round() as u64 * grain;
        value.clamp(low, high)
    }

    /// Coordinates of the bounds.
    pub(super) fn range(&self) -> (f64, f64) {
        let (low, high) = self.bounds;
        (self.coordinate(low), self.coordinate(high))
    }

    /// A value as a profile says it.
    #[must_use]
    pub fn print(&self, value: u64) -> String {
        self.quantity.print(value)
    }
}

/// What leaves five digits of a value.
const fn grain(value: u64) -> u64 {
    match value.checked_ilog10() {
        Some(digits) if digits > 4 => 10_u64.pow(digits - 4),
        _ => 1,
    }
}

/// Values of [`PARAMETERS`], by position; those that a design does not have stay unused.
pub(super) type Coordinates = Vec<f64>;

/// Where every fit begins.
pub(super) fn start() -> Coordinates {
    let start = |one: &Declared| one.coordinate(one.start);
    PARAMETERS.iter().map(start).collect()
}

/// Positions of the numbers that a drive of this design has.
pub(super) fn free(design: &Design) -> Vec<usize> {
    let all = PARAMETERS.iter().enumerate();
    let free = all.filter(|(_, one)| (one.is_in)(design));
    free.map(|(index, _)| index).collect()
}

/// A key of a profile, its value, and the topics of probes on which it has an influence.
pub(super) struct Setting {
    pub(super) key: &'static str,
    pub(super) value: String,
    pub(super) topics: u8,
}

/// Every key of a candidate.
pub(super) fn settings(known: &Known, design: &Design, at: &[f64]) -> Vec<Setting> {
    let mut all = Vec::new();
    let mut push = |key, value: String, topics| all.push(Setting { key, value, topics });
    for (key, value) in known.settings() {
        push(key, value, u8::MAX);
    }
    for factor in 0..FACTORS.len() {
        for (key, value) in design.choice(factor).1 {
            push(*key, (*value).to_owned(), Design::topics(factor));
        }
    }
    push(
        "geometry.pages_per_block",
        pages(known, design).to_string(),
        RESETTING,
    );
    for index in free(design) {
        let one = &PARAMETERS[index];
        let value = one.value(at.get(index).copied().unwrap_or_default());
        push(one.key, one.print(value), one.topics);
    }
    if !(PARAMETERS
        .iter()
        .any(|one| one.key == "media.erase" && (one.is_in)(design)))
    {
        push("media.erase", "3ms".to_owned(), RESETTING);
    }
    all
}

/// Pages of a block, so that a zone has as many blocks on each die as the design says.
fn pages(known: &Known, design: &Design) -> u64 {
    let facts = &known.facts;
    let dies = design.number(CHANNELS).saturating_mul(design.number(WAYS));
    let row = dies.saturating_mul(design.number(PAGE) << 10).max(1);
    let all = facts.zone_bytes().div_ceil(row).max(1);
    let mut rows = design.number(ROWS);
    while all.div_ceil(rows) > PAGES_MOST {
        rows = rows.saturating_mul(2);
    }
    all.div_ceil(rows)
}

/// A candidate as a profile: a file that `zonelab check` reads.
#[must_use]
pub fn profile_text(known: &Known, design: &Design, at: &[f64], name: &str) -> String {
    written(name, &settings(known, design, at))
}

/// Settings as a profile.
pub(super) fn written(name: &str, settings: &[Setting]) -> String {
    let mut sections: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for setting in settings {
        let (section, key) = setting.key.rsplit_once('.').unwrap_or(("", setting.key));
        let lines = sections.entry(section).or_default();
        lines.push((key, &setting.value));
    }
    let mut text = format!("schema = 1\nname = \"{name}\"\n");
    for (section, lines) in sections {
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n[{section}]");
        for (key, value) in lines {
            let is_bare = value.parse::<u64>().is_ok() || matches!(value, "true" | "false");
            let _ = match is_bare {
                true => writeln!(text, "{key} = {value}"),
                false => writeln!(text, "{key} = \"{value}\""),
            };
        }
    }
    text
}
