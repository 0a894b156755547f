//! Mechanisms of a drive, and the alternatives for each.

use serde::{Deserialize, Serialize};

/// What a probe is about: a set of these says which probes react to a key.
pub(super) mod topic {
    /// Reads.
    pub(crate) const READ: u8 = 1;
    /// Writes.
    pub(crate) const WRITE: u8 = 2;
    /// Appends.
    pub(crate) const APPEND: u8 = 4;
    /// Reads beside writes.
    pub(crate) const MIXED: u8 = 8;
    /// Resets.
    pub(crate) const RESET: u8 = 16;
    /// Finishes.
    pub(crate) const FINISH: u8 = 32;
    /// Opening and closing zones.
    pub(crate) const OPEN: u8 = 64;
    /// Writes to zones that were just reset.
    pub(crate) const REWRITE: u8 = 128;
    /// Everything that moves data to or from the flash.
    pub(crate) const DATA: u8 = READ | PUT;
    /// Everything that writes for the host.
    pub(crate) const PUT: u8 = WRITE | APPEND | MIXED | REWRITE;
    /// Everything that resets zones: those that are written to beside reads are, when they are full.
    pub(crate) const RESETTING: u8 = RESET | REWRITE | MIXED;
    /// Everything that sees flash.
    pub(crate) const FLASH: u8 = DATA | RESET | FINISH;
}

use topic::{DATA, FINISH, FLASH, MIXED, OPEN, PUT, READ, RESET, RESETTING};

/// A mechanism, or a count of the geometry, that a drive has in one of several ways.
#[derive(Debug)]
pub struct Factor {
    /// Its name.
    pub name: &'static str,
    /// Each alternative: its name and the keys that say so.
    pub(crate) choices: &'static [Choice],
    /// The one to begin with.
    pub(super) start: u8,
    /// Probes that react.
    pub(super) topics: u8,
}

/// An alternative: its name, and keys of a profile with their values.
pub(crate) type Choice = (&'static str, &'static [(&'static str, &'static str)]);

/// Positions of the factors that code asks for.
pub(super) const CHANNELS: usize = 0;
pub(super) const WAYS: usize = 1;
pub(super) const PAGE: usize = 2;
pub(super) const ROWS: usize = 3;
pub(super) const PARTIAL: usize = 4;
pub(super) const CORES: usize = 5;
pub(super) const BUFFER: usize = 6;
pub(super) const FINISHES: usize = 7;
pub(super) const RESETS: usize = 8;

/// Every mechanism that a fit decides about.
pub const FACTORS: &[Factor] = &[
    Factor {
        name: "channels",
        choices: &[
            ("1", &[("geometry.channels", "1")]),
            ("2", &[("geometry.channels", "2")]),
            ("4", &[("geometry.channels", "4")]),
            ("8", &[("geometry.channels", "8")]),
            ("16", &[("geometry.channels", "16")]),
        ],
        start: 2,
        topics: FLASH,
    },
    Factor {
        name: "dies on each channel",
        choices: &[
            ("1", &[("geometry.ways", "1")]),
            ("2", &[("geometry.ways", "2")]),
            ("4", &[("geometry.ways", "4")]),
            ("8", &[("geometry.ways", "8")]),
        ],
        start: 1,
        topics: FLASH,
    },
    Factor {
        name: "page",
        choices: &[
            ("4 KiB", &[("geometry.page_size", "4KiB")]),
            ("8 KiB", &[("geometry.page_size", "8KiB")]),
            ("16 KiB", &[("geometry.page_size", "16KiB")]),
            ("32 KiB", &[("geometry.page_size", "32KiB")]),
        ],
        start: 2,
        topics: FLASH,
    },
    Factor {
        // The pages of a block follow from it.
        name: "blocks of a zone on a die",
        choices: &[("1", &[]), ("2", &[]), ("4", &[])],
        start: 0,
        topics: RESETTING,
    },
    Factor {
        name: "transfer of a part of a page",
        choices: &[
            (
                "takes the whole time",
                &[("media.partial_transfer", "false")],
            ),
            ("takes its share", &[("media.partial_transfer", "true")]),
        ],
        start: 0,
        topics: READ | MIXED,
    },
    Factor {
        name: "firmware cores",
        choices: &[
            ("1", &[("front_end.cores", "1")]),
            ("2", &[("front_end.cores", "2")]),
            ("4", &[("front_end.cores", "4")]),
        ],
        start: 0,
        topics: DATA,
    },
    Factor {
        name: "write buffer",
        choices: &[
            ("none", &[("write_buffer.mode", "none")]),
            ("write-back", &[("write_buffer.mode", "write-back")]),
        ],
        start: 1,
        topics: PUT | FINISH | RESET,
    },
    Factor {
        name: "finish",
        choices: &[
            ("changes a state", &[("finish.design", "metadata")]),
            ("fills the zone", &[("finish.design", "fill")]),
        ],
        start: 0,
        topics: FINISH,
    },
    Factor {
        name: "reset",
        choices: &[
            (
                "erases what was written",
                &[("reset.timing", "synchronous"), ("reset.extent", "partial")],
            ),
            (
                "erases the zone",
                &[("reset.timing", "synchronous"), ("reset.extent", "full")],
            ),
            (
                "leaves it to the next write",
                &[
                    ("reset.timing", "asynchronous"),
                    ("reset.erase_at", "first-write"),
                ],
            ),
            (
                "erases in the background",
                &[
                    ("reset.timing", "asynchronous"),
                    ("reset.erase_at", "background"),
                ],
            ),
        ],
        start: 0,
        topics: RESETTING,
    },
    Factor {
        name: "order on a die",
        choices: &[
            ("as it came", &[("media.die_queue", "fifo")]),
            ("reads first", &[("media.die_queue", "read-first")]),
        ],
        start: 0,
        topics: MIXED,
    },
];

/// Which alternative a drive has of each of [`FACTORS`], by position.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Design(pub(super) Vec<u8>);

impl Design {
    /// The one that a fit begins with.
    #[must_use]
    pub fn start() -> Self {
        Self(FACTORS.iter().map(|factor| factor.start).collect())
    }

    /// The alternative of a factor.
    pub(crate) fn choice(&self, factor: usize) -> &'static Choice {
        let chosen = self.0.get(factor).copied().unwrap_or_default();
        let choices = FACTORS[factor].choices;
        &choices[usize::from(chosen).min(choices.len() - 1)]
    }

    /// The number that an alternative is named by; 1 if it is none.
    pub(super) fn number(&self, factor: usize) -> u64 {
        let word = self.choice(factor).0.split(' ').next();
        word.and_then(|word| word.parse().ok()).unwrap_or(1)
    }

    /// The same with another alternative of one factor.
    #[must_use]
    pub fn with(&self, factor: usize, choice: u8) -> Self {
        let mut other = self.clone();
        if let Some(of) = other.0.get_mut(factor) {
            *of = choice;
        }
        other
    }

    /// Dies of the drive.
    pub(super) fn dies(&self) -> u64 {
        self.number(CHANNELS).saturating_mul(self.number(WAYS))
    }

    /// Whether writes wait in a buffer.
    pub(super) fn has_buffer(&self) -> bool {
        self.0.get(BUFFER) == Some(&1)
    }

    /// Whether a finish programs what is left of a zone.
    pub(super) fn fills(&self) -> bool {
        self.0.get(FINISHES) == Some(&1)
    }

    /// Designs that differ from this one in one thing, with the topics whose probes would see
    /// that. Dies may move between channels, and bytes between the size of a page and the
    /// number of pages: neither could go half of the way. The blocks of a zone and what a reset
    /// does with them change together, too: how long a reset takes follows from both.
    pub(super) fn neighbours(&self) -> Vec<(Self, u8)> {
        let mut all = Vec::new();
        for (factor, of) in FACTORS.iter().enumerate() {
            let others = self.others(factor);
            all.extend(others.map(|choice| (self.with(factor, choice), of.topics)));
        }
        let pairs = [
            (CHANNELS, WAYS),
            (WAYS, CHANNELS),
            (PAGE, WAYS),
            (PAGE, CHANNELS),
            (WAYS, PAGE),
            (CHANNELS, PAGE),
        ];
        for (more, less) in pairs {
            // Dies move any number of times: the same number of them on fewer channels can be
            // far from a design where each step to it is worse.
            let is_page = [more, less].contains(&PAGE);
            let there_are = self.0.get(less).copied().unwrap_or_default();
            let most = if is_page { there_are.min(1) } else { there_are };
            let shifted = (1..=most).filter_map(|steps| self.shifted(steps, more, less));
            all.extend(shifted.map(|other| (other, FLASH)));
        }
        for rows in self.others(ROWS) {
            for reset in self.others(RESETS) {
                let both = self.with(ROWS, rows).with(RESETS, reset);
                all.push((both, FACTORS[ROWS].topics | FACTORS[RESETS].topics));
            }
        }
        all
    }

    /// The alternatives of a factor that this design does not have.
    fn others(&self, factor: usize) -> impl Iterator<Item = u8> + use<> {
        let choices = u8::try_from(FACTORS[factor].choices.len()).unwrap_or(u8::MAX);
        let ours = self.0.get(factor).copied();
        (0..choices).filter(move |choice| Some(*choice) != ours)
    }

    /// So many steps more of one count and less of another.
    fn shifted(&self, steps: u8, more: usize, less: usize) -> Option<Self> {
        let up = self.0.get(more)?.checked_add(steps)?;
        let down = self.0.get(less)?.checked_sub(steps)?;
        let is_there = usize::from(up) < FACTORS[more].choices.len();
        is_there.then(|| self.with(more, up).with(less, down))
    }

    /// Topics of probes on which a key of this factor has an influence.
    pub(super) const fn topics(factor: usize) -> u8 {
        match factor {
            // Where they lie makes a difference to everything but the states of zones.
            CHANNELS | WAYS | PAGE => !OPEN,
            BUFFER => !(OPEN | READ),
            _ => FACTORS[factor].topics,
        }
    }
}
