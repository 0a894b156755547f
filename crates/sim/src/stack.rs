//! Storage stacks of a host: what lies between a program and a drive, as costs.
//!
//! The figures and their sources are data: `hosts/stacks.toml`.

use std::sync::LazyLock;

use zonelab_config::{Document, Errors, Reported, Table};
use zonelab_device::Nanos;

use crate::costs::HostCosts;

/// The stacks that come with zonelab.
const BUILTIN: &str = include_str!("../hosts/stacks.toml");

/// A storage stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Name in experiment files and on command lines.
    pub name: String,
    /// What an operation costs.
    pub costs: HostCosts,
    /// What a command of several merged requests costs more
    /// ([`BlockCosts::merged_ns`](crate::BlockCosts)).
    pub merged_ns: Nanos,
    /// Tick of its timers ([`BlockCosts::tick_ns`](crate::BlockCosts)).
    pub tick_ns: Nanos,
    /// How much longer a sleep is than asked for.
    pub sleep_slack_ns: Nanos,
    /// Where the figures are from.
    pub source: String,
}

/// The stacks that are known by name.
#[must_use]
pub fn stacks() -> &'static [Stack] {
    static STACKS: LazyLock<Vec<Stack>> =
        LazyLock::new(|| parse("stacks.toml", BUILTIN).expect("a test reads the built-in stacks"));
    &STACKS
}

impl Stack {
    /// The stack of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        stacks().iter().find(|stack| stack.name == name)
    }

    fn read(table: &Table<'_>) -> Result<Self, Reported> {
        let time = |key| table.duration_ns(key).or(0).map(Nanos);
        let name = table.string("name").required();
        let [submit_ns, path_ns, complete_ns] = ["submit", "path", "complete"].map(time);
        let turn_ns = time("turn");
        let [merged_ns, tick_ns, sleep_slack_ns] = ["merged", "tick", "sleep_slack"].map(time);
        let source = table.string("source").required();
        Ok(Self {
            name: name?,
            costs: HostCosts {
                submit_ns: submit_ns?,
                path_ns: path_ns?,
                complete_ns: complete_ns?,
                turn_ns: turn_ns?,
                ..HostCosts::FREE
            },
            merged_ns: merged_ns?,
            tick_ns: tick_ns?,
            sleep_slack_ns: sleep_slack_ns?,
            source: source?,
        })
    }
}

/// Reads stacks: tables `[[stack]]`.
fn parse(file: &str, text: &str) -> Result<Vec<Stack>, Errors> {
    let document = Document::parse(file, text, &[])?;
    let read = || {
        let tables = document.root().tables("stack")?;
        let stacks: Vec<Result<Stack, Reported>> = tables.iter().map(Stack::read).collect();
        stacks.into_iter().collect()
    };
    let stacks = read();
    document.finish(stacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtin_stacks_are_right() {
        let stacks = parse("stacks.toml", BUILTIN).unwrap_or_else(|errors| panic!("{errors}"));
        let mut names: Vec<&str> = stacks.iter().map(|stack| &*stack.name).collect();
        assert_eq!(names.len(), 8);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 8, "{names:?}");
        assert!(stacks.iter().all(|stack| !stack.source.is_empty()));
    }

    #[test]
    fn figures_are_those_of_their_sources() {
        let stack = |name| Stack::named(name).expect(name);
        let spdk = HostCosts {
            turn_ns: Nanos(11_740 - 11_360),
            ..HostCosts::FREE
        };
        assert_eq!(stack("spdk").costs, spdk);
        assert_eq!(stack("spdk").tick_ns, Nanos::ZERO);
        let sqpoll = stack("io_uring-sqpoll");
        let costs = sqpoll.costs;
        let sum = costs.submit_ns + costs.path_ns + costs.complete_ns;
        assert_eq!(sum, Nanos(12_620 - 11_360));
        assert_eq!(stack("ioctl").costs.complete_ns, Nanos(14_600));
        assert_eq!(sqpoll.sleep_slack_ns, Nanos::from_us(57));
        assert_eq!(Stack::named("iouring"), None);
    }

    #[test]
    fn mistakes_are_named() {
        let text = "[[stack]]\nname = \"a\"\nsubmit = 3\nsorce = \"me\"\n";
        let errors = parse("x.toml", text)
            .expect_err("three mistakes")
            .to_string();
        for part in ["submit", "source", "sorce"] {
            assert!(errors.contains(part), "{part}: {errors}");
        }
    }
}
