//! The workloads of papers, by name.

use super::choice::{Choice, KeyRanges};
use super::{Clients, KeyOrder, Kind, Mix, Sizes, Spec};

/// Names of workloads, with what they do.
pub const NAMES: &[(&str, &str)] = &[
    (
        "kvbench-ii",
        "inserts 50 %, updates 25 %, point queries 15 %, deletes 10 % (KVBench, workload II)",
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
        "fillrandom" => db_bench(false, of(&[(Kind::Update, 1)])),
        "overwrite" => db_bench(true, of(&[(Kind::Update, 1)])),
        "readwhilewriting" => read_while_writing(),
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

fn read_while_writing() -> Spec {
    let mut spec = db_bench(true, Mix::of(&[(Kind::Get, 1)]));
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
