//! The workloads of papers, by name.

use super::choice::{Choice, KeyRanges};
use super::{Clients, KeyOrder, Kind, Mix, Sizes, Spec};
use crate::lsm::{Options, WalSync};

/// Names of workloads, with what they do.
pub const NAMES: &[(&str, &str)] = &[
    (
        "kvbench-ii",
        "inserts 50 %, updates 25 %, point queries 15 %, deletes 10 % (KVBench, workload II)",
    ),
    (
        "fillseq",
        "puts of keys in their order into an empty store (db_bench)",
    ),
    (
        "filluniquerandom",
        "puts of keys that are all different into an empty store, in random order (db_bench)",
    ),
    (
        "fillsync",
        "a thousandth of fillrandom, each put durable before it returns (db_bench)",
    ),
    (
        "fillrandom",
        "puts of random keys into an empty store (db_bench)",
    ),
    (
        "overwrite",
        "puts of random keys into a full store (db_bench)",
    ),
    (
        "updaterandom",
        "read-modify-writes of random keys in a full store (db_bench)",
    ),
    (
        "deleterandom",
        "deletes of random keys until the store is empty (db_bench)",
    ),
    (
        "readrandom",
        "gets of random keys of a full store (db_bench)",
    ),
    (
        "readrandomwriterandom",
        "gets 90 %, puts 10 % of random keys of a full store (db_bench)",
    ),
    (
        "seekrandom",
        "range queries of one entry from random keys of a full store (db_bench)",
    ),
    (
        "seekrandomwhilewriting",
        "four clients of seekrandom beside a writer (db_bench)",
    ),
    (
        "readwhilewriting",
        "four readers beside a writer (db_bench)",
    ),
    (
        "mixgraph",
        "gets 83 %, puts 14 %, scans 3 % with hot key ranges (db_bench, FAST '20)",
    ),
    ("ycsb-a", "reads 50 %, updates 50 %, Zipfian"),
    ("ycsb-b", "reads 95 %, updates 5 %, Zipfian"),
    ("ycsb-c", "reads, Zipfian"),
    ("ycsb-d", "reads 95 % of the latest, inserts 5 %"),
    ("ycsb-e", "scans 95 %, inserts 5 %, Zipfian"),
    ("ycsb-f", "reads 50 %, read-modify-writes 50 %, Zipfian"),
];

/// Workloads of `db_bench` that the store cannot run, with the reason.
const NOT_BUILT: &[(&str, &str)] = &[
    (
        "readseq",
        "range queries here end after their entries; seekrandom with more `scans` is next to it",
    ),
    ("readreverse", "the store has no cursor that goes back"),
    (
        "deleteseq",
        "deletes choose their keys at random: deleterandom",
    ),
    ("readmissing", "queries are of keys that live: readrandom"),
    (
        "multireadrandom",
        "a query is of one key: readrandom with more --clients",
    ),
    (
        "mergerandom",
        "the store has no merge operator: updaterandom",
    ),
    ("compact", "the store compacts when it has to"),
];

/// Why there is no workload of that name, if `db_bench` has one.
#[must_use]
pub fn why_not(name: &str) -> Option<&'static str> {
    let found = NOT_BUILT.iter().find(|(known, _)| *known == name);
    found.map(|(_, why)| *why)
}

/// When the log of the store is made durable, unless its settings say so.
#[must_use]
pub fn wal_sync(name: &str) -> WalSync {
    match name {
        "fillsync" => WalSync::EachWrite,
        _ => Options::default().wal_sync,
    }
}

/// YCSB's exponent.
const THETA: f64 = 0.99;

/// A workload by name, with the sizes that its authors give: `db_bench`'s and YCSB's
/// defaults. `KVBench` in the paper on SilentZNS says no sizes: see
/// `docs/models/silentzns.md` for those that stand here.
#[must_use]
pub fn spec(name: &str) -> Option<Spec> {
    let (canonical, _) = NAMES.iter().find(|(known, _)| *known == name)?;
    let of = |parts: &[(Kind, u32)]| Mix::of(parts);
    let spec = match *canonical {
        "kvbench-ii" => kvbench_ii(),
        "fillseq" => fill(KeyOrder::ByAge),
        "filluniquerandom" => fill(KeyOrder::Scattered),
        "fillsync" => {
            let mut spec = db_bench(false, of(&[(Kind::Update, 1)]));
            spec.records /= 1000;
            spec.set_operations(1000);
            spec
        }
        "updaterandom" => db_bench(true, of(&[(Kind::ReadModifyWrite, 1)])),
        "deleterandom" => db_bench(true, of(&[(Kind::Delete, 1)])),
        "readrandom" => db_bench(true, of(&[(Kind::Get, 1)])),
        "readrandomwriterandom" => db_bench(true, of(&[(Kind::Get, 90), (Kind::Update, 10)])),
        "seekrandom" => seeks(db_bench(true, of(&[(Kind::Scan, 1)]))),
        "seekrandomwhilewriting" => seeks(beside_a_writer(Kind::Scan)),
        "fillrandom" => db_bench(false, of(&[(Kind::Update, 1)])),
        "overwrite" => db_bench(true, of(&[(Kind::Update, 1)])),
        "readwhilewriting" => beside_a_writer(Kind::Get),
        "mixgraph" => mixgraph(),
        "ycsb-a" => ycsb(of(&[(Kind::Get, 50), (Kind::Update, 50)])),
        "ycsb-b" => ycsb(of(&[(Kind::Get, 95), (Kind::Update, 5)])),
        "ycsb-c" => ycsb(of(&[(Kind::Get, 1)])),
        "ycsb-d" => with_choice(
            ycsb(of(&[(Kind::Get, 95), (Kind::Insert, 5)])),
            Choice::Latest { theta: THETA },
        ),
        "ycsb-e" => ycsb(of(&[(Kind::Scan, 95), (Kind::Insert, 5)])),
        "ycsb-f" => ycsb(of(&[(Kind::Get, 50), (Kind::ReadModifyWrite, 50)])),
        _ => return None,
    };
    Some(Spec {
        name: name.to_owned(),
        ..spec
    })
}

/// One client that does `mix` with any key.
fn clients(operations: u64, mix: Mix) -> Clients {
    Clients {
        count: 1,
        operations: Some(operations),
        mix,
        choice: Choice::Uniform,
        scans: Sizes::Uniform { min: 1, max: 100 },
    }
}

fn kvbench_ii() -> Spec {
    let mix = Mix::of(&[
        (Kind::Insert, 50),
        (Kind::Update, 25),
        (Kind::Get, 15),
        (Kind::Delete, 10),
    ]);
    Spec {
        name: String::new(),
        key_bytes: 24,
        values: Sizes::Fixed(1000),
        order: KeyOrder::Scattered,
        records: 0,
        loads: false,
        clients: vec![clients(4_000_000, mix)],
    }
}

/// `db_bench`: a million keys of 16 bytes, values of 100.
fn db_bench(loads: bool, mix: Mix) -> Spec {
    Spec {
        name: String::new(),
        key_bytes: 16,
        values: Sizes::Fixed(100),
        order: KeyOrder::ByAge,
        records: 1_000_000,
        loads,
        clients: vec![clients(1_000_000, mix)],
    }
}

/// New keys into an empty store.
fn fill(order: KeyOrder) -> Spec {
    Spec {
        records: 0,
        order,
        ..db_bench(false, Mix::of(&[(Kind::Insert, 1)]))
    }
}

/// Range queries end with the entry that they find: `seek_nexts` is 0.
fn seeks(mut spec: Spec) -> Spec {
    for group in &mut spec.clients {
        group.scans = Sizes::Fixed(1);
    }
    spec
}

/// Four clients that do one thing, beside a writer.
fn beside_a_writer(kind: Kind) -> Spec {
    let mut spec = db_bench(true, Mix::of(&[(kind, 1)]));
    let writer = Clients {
        operations: None,
        mix: Mix::of(&[(Kind::Update, 1)]),
        ..spec.clients[0].clone()
    };
    spec.clients[0].count = 4;
    spec.clients.push(writer);
    spec
}

/// The command line of `db_bench`'s documentation, a fiftieth of its 50 million keys.
fn mixgraph() -> Spec {
    let mix = Mix::of(&[(Kind::Get, 83), (Kind::Update, 14), (Kind::Scan, 3)]);
    let spec = Spec {
        key_bytes: 48,
        values: Sizes::ZIPPYDB_VALUES,
        ..db_bench(true, mix)
    };
    let mut spec = with_choice(spec, Choice::KeyRanges(KeyRanges::ZIPPYDB));
    spec.clients[0].scans = Sizes::ZIPPYDB_SCANS;
    spec
}

/// YCSB: a million records of ten fields of 100 bytes; keys of "user" and 19 digits.
fn ycsb(mix: Mix) -> Spec {
    let spec = Spec {
        key_bytes: 23,
        values: Sizes::Fixed(1000),
        order: KeyOrder::Scattered,
        ..db_bench(true, mix)
    };
    with_choice(spec, Choice::Zipfian { theta: THETA })
}

fn with_choice(mut spec: Spec, choice: Choice) -> Spec {
    for group in &mut spec.clients {
        group.choice = choice;
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_are_workloads_that_can_be_run() {
        for (name, what) in NAMES {
            let spec = spec(name).expect("a name");
            assert_eq!(spec.check(), Ok(()), "{name}");
            assert_eq!(spec.name, *name);
            assert!(!what.is_empty());
        }
        assert_eq!(spec("ycsb-g"), None);
        for (name, _) in NOT_BUILT {
            assert_eq!(spec(name), None, "{name}");
        }
    }

    #[test]
    fn operations_are_divided_among_the_clients_that_have_some() {
        let mut spec = spec("readwhilewriting").expect("a name");
        spec.set_operations(7);
        assert_eq!(
            (spec.clients[0].operations, spec.clients[1].operations),
            (Some(7), None)
        );
        assert_eq!(spec.operations(), 7);
    }
}
