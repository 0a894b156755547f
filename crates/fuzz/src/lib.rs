//! Fuzz targets: plain functions from bytes to nothing that panic if something
//! is wrong.
//!
//! Each has a row in [`TARGETS`]. The same function runs
//!
//! * on stable, over a corpus and over inputs made from seeds ([`harness`]):
//!   the tests of this crate, and `cargo xtask fuzz TARGET`;
//! * under libFuzzer, by a wrapper in the directory `fuzz` of the repository.
//!
//! `docs/testing.md` says how to replay a failure and how to add a target.
//!
//! | module | what |
//! | --- | --- |
//! | [`profile`], [`experiment`], [`fio`], [`trace`] | files: read or refused, never a panic |
//! | [`units`] | quantities with units: what is printed reads back |
//! | [`nvme_entry`] | submission queue entries |
//! | [`pdu_stream`], [`answers`] | what arrives on an NVMe/TCP connection, at its two ends |
//! | [`pcie_device`] | whatever a device on PCIe does to our driver |
//! | [`commands`] | whatever a host sends as commands |
//! | [`drive`] | commands into a drive, both drawn, against what a host knows and what flash asks for |
//! | [`faults`], [`snapshot`] | fault plans and snapshots: refused, or they work |
//! | [`bundle`] | results in one file that were damaged or forged |
//! | [`kv`] | key-value stores and files whose contents are damaged or forged |
//! | [`store`] | a store that loses power at any step, gets full, or is damaged |
//! | [`system`] | a host with clients, faults, loss of power and snapshots on a drawn drive |
//! | [`selftest`] | tests the harness itself |
//! | [`draw`], [`text`] | structured values, and texts, from bytes |
//! | [`harness`] | inputs from seeds and files; failures and how to replay them |

pub mod answers;
pub mod bundle;
pub mod commands;
pub mod draw;
pub mod drive;
pub mod experiment;
pub mod faults;
pub mod fio;
pub mod harness;
pub mod kv;
pub mod nvme_entry;
pub mod pcie_device;
pub mod pdu_stream;
pub mod profile;
pub mod selftest;
pub mod snapshot;
pub mod store;
pub mod system;
pub mod text;
pub mod trace;
pub mod units;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: on the command line, of its corpus directory, of its libFuzzer wrapper.
    pub name: &'static str,
    /// What it checks, in one line.
    pub description: &'static str,
    /// Panics if something is wrong with what `data` stands for.
    pub run: fn(data: &[u8]),
    /// Seeded inputs are at most this long.
    pub max_bytes: usize,
    /// Seeded inputs of an ordinary test run: as many as take a few seconds.
    pub runs: u64,
}

/// All targets but the one that always fails.
pub const TARGETS: &[Target] = &[
    Target {
        name: "smoke",
        description: "nothing: always passes, to test the harness",
        run: selftest::smoke,
        max_bytes: 64,
        runs: 2_000,
    },
    Target {
        name: "units",
        description: "quantities with units: never a panic, and what is printed reads back",
        run: units::run,
        max_bytes: 256,
        runs: 20_000,
    },
    Target {
        name: "nvme_entry",
        description: "submission queue entries: never a panic, and what is parsed writes back",
        run: nvme_entry::run,
        max_bytes: 128,
        runs: 20_000,
    },
    Target {
        name: "pdu_stream",
        description: "what arrives on an NVMe/TCP connection: commands, or the termination for it",
        run: pdu_stream::run,
        max_bytes: 4_096,
        runs: 5_000,
    },
    Target {
        name: "answers",
        description: "what a controller sends to our initiator: each command ends once",
        run: answers::run,
        max_bytes: 1_024,
        runs: 10_000,
    },
    Target {
        name: "pcie_device",
        description: "a hostile device on PCIe: our driver never panics, each command ends once",
        run: pcie_device::run,
        max_bytes: 1_024,
        runs: 1_000,
    },
    Target {
        name: "admin_commands",
        description: "any admin commands into a controller: each completes once, counts hold",
        run: commands::run_admin,
        max_bytes: 68 * 60,
        runs: 2_000,
    },
    Target {
        name: "io_commands",
        description: "any I/O commands into a controller: each completes once, counts hold",
        run: commands::run_io,
        max_bytes: 68 * 60,
        runs: 2_000,
    },
    Target {
        name: "profile",
        description: "profiles: read or refused; a drive made from one works, and so does its TOML",
        run: profile::run,
        max_bytes: 512,
        runs: 5_000,
    },
    Target {
        name: "experiment",
        description: "experiment files: read or refused",
        run: experiment::run,
        max_bytes: 512,
        runs: 2_000,
    },
    Target {
        name: "fio",
        description: "job files: read or refused at a line; what is a plan runs to its end",
        run: fio::run,
        max_bytes: 512,
        runs: 2_000,
    },
    Target {
        name: "fio_words",
        description: "jobs of fio on a command line: refused by the option, or those of a file",
        run: fio::run_words,
        max_bytes: 512,
        runs: 1_000,
    },
    Target {
        name: "fio_iolog",
        description: "logs of fio: refused at a line, or read, printed, and replayed to the end",
        run: trace::run_iolog,
        max_bytes: 512,
        runs: 2_000,
    },
    Target {
        name: "fio_blkparse",
        description: "text of blkparse: refused at a line, or read and replayed to the end",
        run: trace::run_blkparse,
        max_bytes: 512,
        runs: 2_000,
    },
    Target {
        name: "drive",
        description: "drawn commands into a drawn drive, against oracles of zones and of flash blocks",
        run: drive::run,
        max_bytes: 4_096,
        runs: 20_000,
    },
    Target {
        name: "faults",
        description: "fault plans: read or refused; under a plan every command ends once",
        run: faults::run,
        max_bytes: 512,
        runs: 5_000,
    },
    Target {
        name: "snapshot",
        description: "snapshots, damaged and forged: refused, or a drive that works",
        run: snapshot::run,
        max_bytes: 512,
        runs: 5_000,
    },
    Target {
        name: "bundle",
        description: "bundles, damaged and forged: refused, or what was packed",
        run: bundle::run,
        max_bytes: 512,
        runs: 2_000,
    },
    Target {
        name: "store",
        description: "a store that loses power at any step: what was acknowledged is there, whole",
        run: store::run,
        max_bytes: 1_024,
        runs: 1_500,
    },
    Target {
        name: "kv",
        description: "key-value stores that are damaged or forged: seen, refused, or they work",
        run: kv::run,
        max_bytes: 512,
        runs: 2_000,
    },
    Target {
        name: "system",
        description: "clients, faults, loss of power and snapshots on a drawn drive: safe, then live",
        run: system::run,
        max_bytes: 512,
        runs: 10_000,
    },
];

/// A target that always fails: a harness that cannot see that sees nothing.
pub const CANARY: Target = Target {
    name: "canary",
    description: "always fails, to test the harness",
    run: selftest::canary,
    max_bytes: 64,
    runs: 1,
};

/// The target of that name, the canary included.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS
        .iter()
        .chain([&CANARY])
        .find(|target| target.name == name)
}
