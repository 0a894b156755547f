//! The options there are, and what becomes of each.
//!
//! `options.csv` has a row for each option of fio 3.41 and of SPDK's plug-in, with what fio's own
//! table says of it (kind, values, default, engine), and for each extension of ours.

use std::sync::LazyLock;

use super::value::{Wrong, shorten, wrong};

/// The table.
const TABLE: &str = include_str!("options.csv");

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It does what it does in fio, or what an extension of fio does by it.
    Used,
    /// It has no meaning here, for this reason: a warning.
    NoMeaning(&'static str),
    /// Without it the job would be another one, and it is not there: an error.
    Unsupported(&'static str),
}

/// A known option.
#[derive(Clone, Debug)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// Other names.
    pub aliases: Vec<&'static str>,
    /// What becomes of it.
    pub treatment: Treatment,
    /// What fio's table calls its kind: `str_set` may lack a value, `bool` is a switch.
    kind: &'static str,
    /// Words that it takes; empty: anything.
    values: Vec<&'static str>,
    /// What it is if nobody says it.
    default: &'static str,
}

/// Why options are not used: the word of the table, and the reason.
const REASONS: &[(&str, &str)] = &[
    (
        "chunks",
        "traces are read once, and kept in 24 bytes for each operation",
    ),
    (
        "data",
        "buffers are filled at random, with zeros (zero_buffers) or with a pattern (buffer_pattern)",
    ),
    ("deallocate", "it belongs to write_mode=zeroes"),
    ("drive", "there is one drive, and no file system on it"),
    ("dump", "the message says what was expected and found"),
    (
        "errors",
        "a job ends at its first failed operation, unless continue_on_error says otherwise",
    ),
    ("flush", "flushes come from fsync, fdatasync and end_fsync"),
    ("header", "headers are at the start of blocks"),
    ("host", "the host is modelled, not used"),
    ("log", "logs are whole and plain text"),
    (
        "map",
        "positions are multiples of the smallest bs, and a map of them is in memory",
    ),
    ("minimum", "a limit is only a limit from above"),
    ("nothing", "a job that only makes files would do nothing"),
    ("obsolete", "fio itself does nothing by it any more"),
    ("output", "output is in fio's default form"),
    ("pauses", "pauses are counted in operations issued"),
    (
        "placement",
        "writes are placed in turn or at random, not by a file of rules",
    ),
    ("priority", "commands have no priorities"),
    (
        "profile",
        "a profile of fio is a job of its own; `zonelab profiles` are drives",
    ),
    ("ramp_size", "what is not measured is a time, ramp_time"),
    (
        "random",
        "random numbers are a function of --seed and randseed",
    ),
    ("ranges", "a trim is of one range"),
    (
        "recover",
        "after a failed write the drive is asked what its zone holds",
    ),
    (
        "remainder",
        "the rest of a zone that is too small for a write is left out, or finished",
    ),
    ("scsi", "it is of commands of SCSI"),
    ("sequence", "random places are drawn"),
    (
        "sizes",
        "reads and writes have sizes by direction, and not by their order",
    ),
    (
        "sprandom",
        "a drive is made ready by writing it: a job before, with stonewall",
    ),
    (
        "submit",
        "commands are submitted one by one, and completions taken as they come",
    ),
    (
        "trace",
        "a job replays a trace as it is: traces are merged by fio or blkparse",
    ),
    (
        "verify",
        "every block carries the number of its write, and all are read back",
    ),
    (
        "verify_mode",
        "what was written is read, and compared by the host",
    ),
    (
        "weights",
        "weights alone decide who goes on, as in fio 3.33, which does not have it either",
    ),
];

/// The rows of the table.
static OPTIONS: LazyLock<Vec<OptionInfo>> =
    LazyLock::new(|| TABLE.lines().skip(1).filter_map(read).collect());

/// Reads a row; `None`: it is none, which a test refuses.
fn read(line: &'static str) -> Option<OptionInfo> {
    let mut cells = line.split(',');
    let mut next = || cells.next();
    let [name, aliases, kind, values, default] = [next()?, next()?, next()?, next()?, next()?];
    let [_engine, treatment, why] = [next()?, next()?, next()?];
    let reason = REASONS.iter().find(|(key, _)| *key == why);
    Some(OptionInfo {
        name,
        aliases: aliases.split_whitespace().collect(),
        treatment: match (treatment, reason) {
            ("used", None) => Treatment::Used,
            ("ignored", Some((_, reason))) => Treatment::NoMeaning(reason),
            ("refused", Some((_, reason))) => Treatment::Unsupported(reason),
            _ => return None,
        },
        kind,
        values: values.split_whitespace().collect(),
        default,
    })
}

impl OptionInfo {
    /// Its names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.name].into_iter().chain(self.aliases.iter().copied())
    }

    /// Whether `--name` is complete on the command line, without a value.
    #[must_use]
    pub fn may_lack_value(&self) -> bool {
        self.kind == "str_set"
    }

    /// Whether a value of an option that is not used changes nothing: it is off, or as if nobody
    /// had said it.
    ///
    /// # Errors
    /// It is none of the words that the option takes.
    pub(super) fn changes_nothing(&self, value: Option<&str>) -> Result<bool, Wrong> {
        let Some(value) = value else {
            return Ok(false);
        };
        let word = value.split(':').next().unwrap_or(value);
        if self.kind == "str" && !(self.values.is_empty() || self.values.contains(&word)) {
            return Err(wrong(
                format!("\"{}\" is none of the values", shorten(value)),
                self.values.join(", "),
            ));
        }
        let is_off = matches!(self.kind, "bool" | "str_set") && matches!(value, "0" | "false");
        let is_default = !self.default.is_empty() && value == self.default;
        Ok(match self.default {
            "" | "0" => is_off || is_default,
            _ => is_default,
        })
    }
}

/// Every option that is known.
pub fn all() -> impl Iterator<Item = &'static OptionInfo> {
    OPTIONS.iter()
}

/// The option of that name or alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static OptionInfo> {
    all().find(|option| option.names().any(|of| of == name))
}

/// The options one of whose names begins so: on a command line, the beginning of a name stands for
/// it if no other name begins so, as `getopt_long` has it.
#[must_use]
pub fn beginning(name: &str) -> Vec<&'static OptionInfo> {
    let begins = |option: &&OptionInfo| option.names().any(|of| of.starts_with(name));
    all().filter(begins).collect()
}

/// The known name that is most likely meant by `name`.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    zonelab_config::nearest(name, all().flat_map(OptionInfo::names))
}

#[cfg(test)]
mod tests {
    use super::Treatment::NoMeaning;
    use super::*;

    #[test]
    fn every_row_is_read_and_every_name_is_there_once() {
        assert_eq!(all().count(), TABLE.lines().count() - 1);
        let mut names: Vec<&str> = all().flat_map(OptionInfo::names).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_reason_is_some_options() {
        for (key, _) in REASONS {
            let of = |line: &str| line.ends_with(&format!(",{key}"));
            assert!(TABLE.lines().any(of), "{key}");
        }
    }

    #[test]
    fn names_are_found_and_typing_errors_too() {
        let drive = "there is one drive, and no file system on it";
        assert_eq!(find("blocksize").map(|o| o.name), Some("bs"));
        assert_eq!(find("direct").map(|o| o.treatment), Some(NoMeaning(drive)));
        assert!(find("iodeph").is_none());
        assert_eq!(nearest("iodeph"), Some("iodepth"));
        assert_eq!(nearest("stonewal"), Some("stonewall"));
        let names = |of: &str| -> Vec<&str> { beginning(of).iter().map(|o| o.name).collect() };
        assert_eq!(names("group_rep"), ["group_reporting"]);
        assert_eq!(names("readwri"), ["rw"]);
        assert!(names("zone").len() > 3);
    }

    #[test]
    fn values_that_change_nothing_are_known() {
        let of = |name: &str, value| find(name).unwrap().changes_nothing(value);
        assert_eq!(of("fdp", Some("0")), Ok(true));
        assert_eq!(of("fdp", Some("1")), Ok(false));
        assert_eq!(of("thread", None), Ok(false));
        assert_eq!(of("unique_filename", Some("1")), Ok(true));
        assert_eq!(of("unique_filename", Some("0")), Ok(false));
        assert_eq!(of("fallocate", Some("native")), Ok(true));
        let (what, valid) = of("fallocate", Some("often")).unwrap_err();
        assert!(what.contains("none of the values") && valid.contains("posix"));
    }
}
