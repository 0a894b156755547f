//! The text format of Prometheus, version 0.0.4.
//!
//! Source: Prometheus documentation, "Exposition formats", text-based format.

use std::fmt::{self, Write as _};

/// What kind of metric a family is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows, until the program starts again.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Cumulative buckets, a sum and a count.
    Histogram,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A text that is being written.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

impl Exposition {
    /// Begins a family: its samples follow. `help` has no backslash and is one line.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        debug_assert!(!help.contains(['\\', '\n']), "{name}: {help}");
        self.put(format_args!(
            "# HELP {name} {help}\n# TYPE {name} {}\n",
            kind.name()
        ));
        Family { all: self, name }
    }

    /// A family with a single sample that has no labels.
    pub(super) fn single(
        &mut self,
        name: &'static str,
        kind: Kind,
        help: &str,
        value: impl fmt::Display,
    ) {
        self.family(name, kind, help).sample(&[], value);
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.text.write_fmt(text);
    }
}

/// A family whose samples are being written.
pub(super) struct Family<'a> {
    all: &'a mut Exposition,
    name: &'static str,
}

/// Names and values of labels.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

impl Family<'_> {
    /// A sample. Numbers are finite.
    pub(super) fn sample(&mut self, labels: Labels<'_>, value: impl fmt::Display) {
        self.sample_of("", labels, value);
    }

    /// A sample of a name that ends in `suffix`.
    pub(super) fn sample_of(&mut self, suffix: &str, labels: Labels<'_>, value: impl fmt::Display) {
        let name = self.name;
        self.all.put(format_args!("{name}{suffix}"));
        for (position, (label, text)) in labels.iter().enumerate() {
            let before = if position == 0 { '{' } else { ',' };
            self.all
                .put(format_args!("{before}{label}=\"{}\"", Escaped(text)));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        self.all.put(format_args!("{after} {value}\n"));
    }
}

/// The value of a label, in which backslash, quote and end of line are escaped.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            c => f.write_char(c),
        })
    }
}
