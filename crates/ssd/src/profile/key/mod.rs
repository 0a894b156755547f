//! What a key of a profile is: a declaration, from which everything else follows.
//!
//! A [`Key`] is declared once, in [`super::keys`], by a constructor that names its unit and
//! methods that say the rest:
//!
//! ```text
//! time("media.suspend.overhead", at!(media.suspend.overhead_ns))
//!     .or(Nanos::ZERO)
//!     .within(Nanos::ZERO, limits::FLASH_TIME)
//!     .only(SUSPENDS)
//!     .says("The time that an operation takes to stop, and again to resume."),
//! ```
//!
//! | what | follows in |
//! | --- | --- |
//! | reading, with defaults and refusals of keys that have no effect | [`super::read`] |
//! | writing as TOML and describing | [`super::write`] |
//! | checking that values are in range | [`super::check`] |
//! | the tables of `docs/profiles.md` | [`page`] |
//!
//! Keys are of a configuration `C`: the drive's, or that of one of its namespaces.

mod field;
pub(super) mod page;
mod unit;

use zonelab_config::{Item, Reported, Table};

use super::Cell;
use super::write::Text;
use crate::config::DriveConfig;

pub(super) use field::{Field, choice, field, flag, number, rate, share, size, size_32, time};
pub(super) use unit::{
    FieldLbas, Lbas, Lbas32, Name, ReadTime, ReadTimes, SmallLbas, SourceRanges, Time,
};

/// A table of a profile, with its keys in the order in which they are written.
///
/// Keys that decide whether others apply stand before those.
pub(super) struct Section<C = DriveConfig> {
    /// Path of the table; empty: the top level.
    pub(super) path: &'static str,
    /// What it is about, for the heading of the page; may be empty.
    pub(super) title: &'static str,
    /// What there is to say about the whole of it; may be empty.
    pub(super) text: &'static str,
    /// Whether it is left out where all of its keys have their default.
    pub(super) rare: bool,
    pub(super) keys: Vec<Key<C>>,
}

/// A key of a profile.
pub(super) struct Key<C = DriveConfig> {
    /// Where it stands in a document: `media.suspend.overhead`.
    pub(super) path: &'static str,
    /// What it does and why, in sentences.
    pub(super) text: &'static str,
    /// Where the key has an effect; elsewhere it must not be stated. What the last of these
    /// conditions says implies those before it, which only have a better message.
    pub(super) only: Vec<Only<C>>,
    /// Where a value other than nothing has an effect; elsewhere it must be nothing.
    pub(super) needs: Option<Need<C>>,
    /// Whether it is left out of files and descriptions where it has its default.
    pub(super) rare: bool,
    /// Unit, range, default, and the place in the configuration.
    pub(super) value: Box<dyn Value<C>>,
}

impl<C> Key<C> {
    /// The last word of its path.
    pub(super) fn name(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, key)| key)
    }

    /// Whether it has an effect in a configuration.
    pub(super) fn applies(&self, config: &C) -> bool {
        self.only.iter().all(|only| (only.holds)(config))
    }
}

/// The place of a value in a configuration.
pub(super) struct At<C, T> {
    /// The value; `None`: the configuration has none.
    pub(super) get: fn(&C) -> Option<T>,
    /// Puts a value there.
    pub(super) set: fn(&mut C, T),
}

/// The place of a field: `at!(zones.count)`; of what is in a variant with one value:
/// `at!(write_buffer, Some => size_bytes)`; of a field of a variant:
/// `at!(finish, FinishConfig::Fill { pause_ns })`. A field may be optional.
macro_rules! at {
    ($($field:ident).+) => {
        $crate::profile::key::At {
            get: |of: &$crate::config::DriveConfig| of.$($field).+.into(),
            set: |of: &mut $crate::config::DriveConfig, value| of.$($field).+ = value.into(),
        }
    };
    ($($outer:ident).+, $variant:path => $field:ident) => {
        $crate::profile::key::At {
            get: |of: &$crate::config::DriveConfig| match &of.$($outer).+ {
                $variant(inner) => inner.$field.into(),
                _ => None,
            },
            set: |of: &mut $crate::config::DriveConfig, value| {
                if let $variant(inner) = &mut of.$($outer).+ {
                    inner.$field = value.into();
                }
            },
        }
    };
    ($($outer:ident).+, $variant:path { $field:ident }) => {
        $crate::profile::key::At {
            get: |of: &$crate::config::DriveConfig| match &of.$($outer).+ {
                $variant { $field, .. } => (*$field).into(),
                _ => None,
            },
            set: |of: &mut $crate::config::DriveConfig, value| {
                if let $variant { $field, .. } = &mut of.$($outer).+ {
                    *$field = value.into();
                }
            },
        }
    };
}
pub(super) use at;

/// A condition under which a key has an effect.
pub(super) struct Only<C = DriveConfig> {
    /// The keys that decide.
    pub(super) of: &'static [&'static str],
    /// Whether it holds.
    pub(super) holds: fn(&C) -> bool,
    /// What follows from a value of these keys that could not be read: the condition holds,
    /// because it only asks whether they are stated; or nothing is known.
    pub(super) holds_if_wrong: bool,
    pub(super) says: Says,
}

/// What is said about a condition.
#[derive(Clone, Copy)]
pub(super) enum Says {
    /// The key needs this.
    With(&'static str),
    /// The key is excluded by this.
    Without(&'static str),
    /// The key is excluded by this value of another one, for a reason that is given.
    Because(&'static str, &'static str),
}

impl Says {
    /// Why a key is refused where the condition does not hold.
    pub(super) fn why(self) -> String {
        match self {
            Self::With(what) => format!("it only has an effect with {what}; leave it out"),
            Self::Without(what) => format!("it has no effect with {what}; leave it out"),
            Self::Because(_, why) => why.to_owned(),
        }
    }
}

impl<C> Only<C> {
    /// With `what`, which the keys `of` say.
    pub(super) const fn with(
        what: &'static str,
        of: &'static [&'static str],
        holds: fn(&C) -> bool,
    ) -> Self {
        Self {
            of,
            holds,
            holds_if_wrong: false,
            says: Says::With(what),
        }
    }

    /// If the key `of` is stated.
    pub(super) const fn if_stated(
        what: &'static str,
        of: &'static [&'static str],
        holds: fn(&C) -> bool,
    ) -> Self {
        Self {
            holds_if_wrong: true,
            ..Self::with(what, of, holds)
        }
    }

    /// But with `what`, which the keys `of` say.
    pub(super) const fn without(
        what: &'static str,
        of: &'static [&'static str],
        holds: fn(&C) -> bool,
    ) -> Self {
        Self {
            says: Says::Without(what),
            ..Self::with(what, of, holds)
        }
    }
}

/// What a value other than nothing needs to have an effect.
pub(super) struct Need<C = DriveConfig> {
    /// Whether it is there.
    pub(super) holds: fn(&C) -> bool,
    /// What is wrong where it is not.
    pub(super) what: &'static str,
    /// What would be valid there.
    pub(super) valid: &'static str,
    /// What it is, for the page.
    pub(super) page: &'static str,
}

/// A rule that a value breaks by itself: what is wrong, and what would be valid.
pub(super) type Broken = (String, String);

/// What every key can do, whatever its unit.
pub(super) trait Value<C>: Send + Sync {
    /// Reads the key, or gives it its default if that is known by now; says whether it is
    /// stated. It need not be there if it is not `certain` that it applies.
    fn read(
        &self,
        table: &Table<'_>,
        name: &str,
        certain: bool,
        reading: &mut Reading<C>,
    ) -> Result<bool, Reported>;

    /// Gives it the default that follows from other keys, all of which are known.
    fn follow(&self, config: &mut C);

    /// The value as it is written; `None`: the configuration has none.
    fn text(&self, config: &C, lba_bytes: u32) -> Option<Text>;

    /// What it means that a configuration has no value, if there is something to say.
    fn absent(&self) -> Option<&'static str>;

    /// Whether the value is its constant default.
    fn is_usual(&self, config: &C) -> bool;

    /// Whether the default is typical of a kind of cell.
    fn is_typical(&self) -> bool;

    /// Whether there is no value, or one that stands for nothing: zero, or false.
    fn is_nothing(&self, config: &C) -> bool;

    /// What is wrong with the value.
    fn broken(&self, config: &C) -> Vec<Broken>;

    /// Its unit and range, for the page.
    fn page_value(&self) -> String;

    /// Its default, for the page.
    fn page_default(&self) -> String;
}

/// What a file says that is no part of a configuration.
#[derive(Default)]
pub(super) struct About {
    pub(super) description: String,
    pub(super) source: String,
    pub(super) cell: Option<Cell>,
}

/// A configuration that is being read.
pub(super) struct Reading<C> {
    pub(super) config: C,
    pub(super) about: About,
    /// Bytes of a logical block, in which some sizes are counted.
    pub(super) lba_bytes: u32,
    /// Keys that are stated, and right.
    stated: Vec<&'static str>,
    /// Keys that are missing, or stated and wrong.
    failed: Vec<(&'static str, Reported)>,
}

/// Whether a key may be stated.
enum May {
    /// It may.
    Yes,
    /// It may; whether it has an effect depends on a key that is wrong.
    Unknown,
    /// It may not, for this reason.
    No(String),
}

impl<C> Reading<C> {
    /// From a configuration in which nothing is stated yet.
    pub(super) fn new(config: C, lba_bytes: u32) -> Self {
        Self {
            config,
            about: About::default(),
            lba_bytes,
            stated: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Reads the keys of a section, all of them, and defaults that depend on nothing that
    /// may follow.
    pub(super) fn section(&mut self, section: &Section<C>, table: &Table<'_>) {
        for key in &section.keys {
            let read = match self.may(key) {
                May::No(why) => table.refuse(key.name(), &why).map(|()| false),
                may => {
                    let certain = matches!(may, May::Yes);
                    key.value.read(table, key.name(), certain, self)
                }
            };
            match read {
                Ok(true) => self.stated.push(key.path),
                Ok(false) => {}
                Err(reported) => self.failed.push((key.path, reported)),
            }
        }
    }

    /// Fills in the defaults that follow from other keys, if nothing is wrong.
    pub(super) fn follow(&mut self, section: &Section<C>) {
        for key in &section.keys {
            if !self.is_stated(key.path) && key.applies(&self.config) {
                key.value.follow(&mut self.config);
            }
        }
    }

    fn may(&self, key: &Key<C>) -> May {
        let mut may = May::Yes;
        for only in &key.only {
            if (only.holds)(&self.config) {
                continue;
            }
            if !only.of.iter().any(|of| self.has_failed(of)) {
                return May::No(only.says.why());
            }
            if !only.holds_if_wrong {
                may = May::Unknown;
            }
        }
        may
    }

    pub(super) fn is_stated(&self, path: &str) -> bool {
        self.stated.contains(&path)
    }

    pub(super) fn has_failed(&self, path: &str) -> bool {
        self.failed.iter().any(|(failed, _)| *failed == path)
    }

    /// Whether all keys so far are right.
    pub(super) fn so_far(&self) -> Result<(), Reported> {
        self.failed
            .first()
            .map_or(Ok(()), |(_, reported)| Err(*reported))
    }
}

/// A key of a file that is no part of a configuration: [`About`] has its value, if any.
pub(super) struct OfFile {
    pub(super) unit: &'static str,
    pub(super) default: &'static str,
    /// What to write if it is missing; `None`: it may be.
    pub(super) required: Option<&'static str>,
    pub(super) read: fn(&Item<'_>, &mut About) -> Result<(), Reported>,
}

impl OfFile {
    pub(super) fn says(self, path: &'static str, text: &'static str) -> Key {
        Key {
            path,
            text,
            only: Vec::new(),
            needs: None,
            rare: true,
            value: Box::new(self),
        }
    }
}

impl Value<DriveConfig> for OfFile {
    fn read(
        &self,
        table: &Table<'_>,
        name: &str,
        _certain: bool,
        reading: &mut Reading<DriveConfig>,
    ) -> Result<bool, Reported> {
        let field = table.get(name, |item| (self.read)(item, &mut reading.about));
        match self.required {
            Some(hint) => field.required_or(hint).map(|()| true),
            None => field.optional().map(|value| value.is_some()),
        }
    }

    fn follow(&self, _config: &mut DriveConfig) {}

    fn text(&self, _config: &DriveConfig, _lba_bytes: u32) -> Option<Text> {
        None
    }

    fn absent(&self) -> Option<&'static str> {
        None
    }

    fn is_usual(&self, _config: &DriveConfig) -> bool {
        true
    }

    fn is_typical(&self) -> bool {
        false
    }

    fn is_nothing(&self, _config: &DriveConfig) -> bool {
        true
    }

    fn broken(&self, _config: &DriveConfig) -> Vec<Broken> {
        Vec::new()
    }

    fn page_value(&self) -> String {
        self.unit.to_owned()
    }

    fn page_default(&self) -> String {
        self.default.to_owned()
    }
}
