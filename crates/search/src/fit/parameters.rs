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

/// Positions of the numbers that code asks for.
pub(super) const MEDIA_READ: usize = 0;
pub(super) const PROGRAM: usize = 1;
pub(super) const ERASE: usize = 2;
pub(super) const TRANSFER: usize = 3;
pub(super) const CORE_READ: usize = 5;
pub(super) const CORE_WRITE: usize = 6;
pub(super) const CORE_APPEND: usize = 7;

/// Positions of the times that a command takes one after another.
struct Command {
    /// Of the flash, if the command waits for it.
    flash: Option<usize>,
    /// Of a core.
    core: usize,
    /// Besides.
    rest: usize,
}

const COMMANDS: [Command; 3] = [
    Command {
        flash: Some(MEDIA_READ),
        core: CORE_READ,
        rest: 9,
    },
    Command {
        flash: None,
        core: CORE_WRITE,
        rest: 10,
    },
    Command {
        flash: None,
        core: CORE_APPEND,
        rest: 11,
    },
];
/// A time of a core, and of what comes besides, that is as good as none, in nanoseconds.
const SHARE_SOFT: f64 = 20.0;
/// The greatest coordinate of a share, to either side: a part in some thousands.
const SHARE_MOST: f64 = 8.0;

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
    /// A value on a scale where a step of 0.1 is a tenth more. It is its coordinate, unless it
    /// is a time of a command: see [`Coordinates`].
    pub(super) fn coordinate(&self, value: u64) -> f64 {
        let value = value as f64;
        match self.soft {
            0 => libm::log(value.max(1.0)),
            soft => libm::log1p(value / soft as f64),
        }
    }

    /// The value at a place of that scale, as a profile can say it.
    pub(super) fn value(&self, at: f64) -> u64 {
        self.rounded(self.exact(at))
    }

    fn exact(&self, at: f64) -> f64 {
        match self.soft {
            0 => libm::exp(at),
            soft => soft as f64 * libm::expm1(at),
        }
    }

    /// Least and greatest place on that scale.
    pub(super) fn ends(&self) -> (f64, f64) {
        let (low, high) = self.bounds;
        (self.coordinate(low), self.coordinate(high))
    }

    /// A value within the bounds, as a profile can say it.
    fn rounded(&self, exact: f64) -> u64 {
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

/// A place of the search: a coordinate for each of [`PARAMETERS`], by position; those that a
/// design does not have stay unused.
///
/// Of the times that a command takes one after another (the flash, a core, the rest), often only
/// the whole is known. So the coordinates are the whole, and how it is shared: the flash against
/// the others, the core against the rest. What only the whole is known of then lies along a
/// straight line, and no share is impossible.
pub(super) type Coordinates = Vec<f64>;

/// The bounds of a coordinate.
pub(super) fn range(index: usize) -> (f64, f64) {
    let ends = |of: &[usize]| {
        let end = |end: fn(&Declared) -> u64| {
            let ends = of.iter().map(|index| end(&PARAMETERS[*index]));
            libm::log(ends.sum::<u64>() as f64)
        };
        (end(|one| one.bounds.0), end(|one| one.bounds.1))
    };
    for command in &COMMANDS {
        let way = [command.core, command.rest];
        if index == command.core {
            return (-SHARE_MOST, SHARE_MOST);
        } else if command.flash == Some(index) {
            let (flash, way) = (ends(&[index]), ends(&way));
            return (flash.0 - way.1, flash.1 - way.0);
        } else if index == command.rest {
            let flash = command.flash.map_or((0.0, 0.0), |flash| ends(&[flash]));
            let way = ends(&way);
            let sum = |flash, way| match command.flash {
                Some(_) => libm::log(libm::exp(flash) + libm::exp(way)),
                None => way,
            };
            return (sum(flash.0, way.0), sum(flash.1, way.1));
        }
    }
    PARAMETERS[index].ends()
}

/// The values at a place, without bounds.
fn exact(at: &[f64]) -> Vec<f64> {
    let at = |index: usize| at.get(index).copied().unwrap_or_default();
    let all = PARAMETERS.iter().enumerate();
    let mut exact: Vec<f64> = all.map(|(index, one)| one.exact(at(index))).collect();
    let share = |at: f64| 1.0 / (1.0 + libm::exp(-at));
    for command in &COMMANDS {
        let mut way = libm::exp(at(command.rest));
        if let Some(flash) = command.flash {
            exact[flash] = way * share(at(flash));
            way *= share(-at(flash));
        }
        let soft = way + 2.0 * SHARE_SOFT;
        exact[command.core] = soft * share(at(command.core)) - SHARE_SOFT;
        exact[command.rest] = soft * share(-at(command.core)) - SHARE_SOFT;
    }
    exact
}

/// The values at a place.
pub(super) fn values(at: &[f64]) -> Vec<u64> {
    let exact = exact(at);
    let one = |(one, exact): (&Declared, &f64)| one.rounded(*exact);
    PARAMETERS.iter().zip(&exact).map(one).collect()
}

/// The place of values.
pub(super) fn coordinates(values: &[u64]) -> Coordinates {
    let all = PARAMETERS.iter().zip(values);
    let mut at: Coordinates = all.map(|(one, value)| one.coordinate(*value)).collect();
    for command in &COMMANDS {
        let [core, rest] = [command.core, command.rest].map(|index| values[index] as f64);
        let mut whole = (core + rest).max(1.0);
        at[command.core] = libm::log((core + SHARE_SOFT) / (rest + SHARE_SOFT));
        if let Some(flash) = command.flash {
            let value = values[flash] as f64;
            at[flash] = libm::log(value.max(1.0) / whole);
            whole += value;
        }
        at[command.rest] = libm::log(whole);
    }
    at
}

/// Positions of what each command takes a core, and of what it takes besides.
pub(super) fn cores_and_rests() -> [(usize, usize); 3] {
    COMMANDS.map(|command| (command.core, command.rest))
}

/// Whether two numbers are times of one command, so that each follows from several coordinates.
pub(super) fn shares_with(one: usize, other: usize) -> bool {
    let is_of = |command: &Command, index| {
        [command.core, command.rest].contains(&index) || command.flash == Some(index)
    };
    let both = |command: &Command| is_of(command, one) && is_of(command, other);
    COMMANDS.iter().any(both)
}

/// By how much a value changes with the coordinates of these positions: value per coordinate.
pub(super) fn slopes(at: &[f64], index: usize, keys: &[usize]) -> Vec<f64> {
    const STEP: f64 = 1e-4;
    let slope = |key: &usize| {
        let moved = |step: f64| {
            let mut there = at.to_vec();
            there[*key] += step;
            exact(&there)[index]
        };
        (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
    };
    keys.iter().map(slope).collect()
}

/// Where every fit begins.
pub(super) fn start() -> Coordinates {
    let start: Vec<u64> = PARAMETERS.iter().map(|one| one.start).collect();
    coordinates(&start)
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
    let values = values(at);
    for index in free(design) {
        let one = &PARAMETERS[index];
        push(one.key, one.print(values[index]), one.topics);
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
