//! Profiles: drives as TOML files.
//!
//! A [`Profile`] is a file, read: its [`DriveConfig`] with every default filled
//! in and every rule checked, what follows from it ([`Derived`]), and what it
//! says about itself. Some profiles are built in ([`builtin`]); they are the
//! best documentation of the keys.
//!
//! | function | from | to |
//! | --- | --- | --- |
//! | [`Profile::parse`] | TOML text and overrides | profile, or every mistake with its line |
//! | [`check`] | a configuration made by hand | what follows from it, or what is wrong |
//! | [`to_toml`] | a configuration | TOML that reads back as the same configuration |
//! | [`refused_by_linux`] | a configuration | why Linux makes no block device of it |
//! | [`untimed`] | a configuration | the same drive without its times |
//! | [`describe`] | a profile | every key, where its value is from, and what follows |
//! | [`keys_page`] | the declarations of keys | the page about all of them |
//!
//! A key is declared once, in `keys/`: its unit, range, default, text, and where it has an
//! effect. Reading, writing, checking and describing it follow from that, and so does the
//! page that lists all of them, `docs/profiles.md` ([`keys_page`];
//! `docs/decisions/0046-profile-keys.md` says why). Rules between keys are code, in
//! `check/relations`.
//!
//! A key whose value would have no effect is refused, not ignored: who writes
//! `read_weight` under a queue without weights expects something that will not
//! happen.

mod builtin;
mod cell;
mod check;
mod derived;
mod describe;
mod figures;
mod key;
mod keys;
mod linux;
mod names;
mod read;
mod untimed;
mod write;

use zonelab_config::{Document, Errors, FileKind, Override, Place, Problem};

use crate::config::DriveConfig;

pub use builtin::{builtin, builtin_names, builtin_text};
pub use cell::Cell;
pub use check::{Violation, check, limits};
pub use derived::{Derived, DerivedElements};
pub use describe::{Row, describe};
pub use figures::{Ceiling, Figures, Limit};
pub use key::page::keys_page;
pub use linux::refused_by_linux;
pub use untimed::untimed;
pub use write::to_toml;

/// The text of the built-in profile of that name or, for what looks like a path, of the
/// file that `read` gives, as [`Profile::load`] would parse it.
///
/// # Errors
/// No such profile or file.
pub fn text_of<E: std::fmt::Display>(
    name_or_path: &str,
    read: impl FnOnce(&str) -> Result<String, E>,
) -> Result<String, Errors> {
    if is_path(name_or_path) {
        let text = read(name_or_path);
        return text.map_err(|error| Problem::of_file(name_or_path, error.to_string(), "").into());
    }
    let text = builtin_text(name_or_path).map(str::to_owned);
    text.ok_or_else(|| builtin::unknown(name_or_path).into())
}

/// The name of the file that messages about a profile give, by the name or path of it.
#[must_use]
pub fn file_of(name_or_path: &str) -> String {
    if is_path(name_or_path) {
        name_or_path.to_owned()
    } else {
        format!("{name_or_path}.toml")
    }
}

/// Whether a profile is named by its path: a slash in it, or `.toml` at its end.
fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// A drive as a file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The configuration, resolved and checked.
    pub config: DriveConfig,
    /// What follows from it.
    pub derived: Derived,
    /// What the drive is, for people; may be empty.
    pub description: String,
    /// Where the numbers come from; may be empty.
    pub source: String,
    /// The kind of flash, if the file names it: its times are the defaults.
    pub cell: Option<Cell>,
    /// The keys that the file or an override states, with their place.
    stated: Vec<(String, Place)>,
}

impl Profile {
    /// Reads a profile. `file` is the name that messages give.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the file.
    pub fn parse(file: &str, text: &str, overrides: &[Override]) -> Result<Self, Errors> {
        let document = Document::parse(file, text, overrides)?;
        document.is_a(FileKind::Profile)?;
        let profile = read::profile(&document);
        document.finish(profile)
    }

    /// The built-in profile of that name or, for what looks like a path (a
    /// slash in it, or `.toml` at its end), the file that `read` gives: usually
    /// `std::fs::read_to_string`. The model itself opens no files.
    ///
    /// # Errors
    /// No such profile or file, or everything that is wrong with it.
    pub fn load<E: std::fmt::Display>(
        name_or_path: &str,
        overrides: &[Override],
        read: impl FnOnce(&str) -> Result<String, E>,
    ) -> Result<Self, Errors> {
        let text = text_of(name_or_path, read)?;
        Self::parse(&file_of(name_or_path), &text, overrides)
    }

    /// Where the file states the key `path` (`media.read`): a line, or an
    /// override; `None`: its value is a default.
    #[must_use]
    pub fn stated_at(&self, path: &str) -> Option<&Place> {
        self.stated
            .iter()
            .find(|(key, _)| key == path)
            .map(|(_, place)| place)
    }
}
