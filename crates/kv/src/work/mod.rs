//! Workloads: what clients do with a key-value store.
//!
//! A [`Spec`] is plain data: what is in the store before, and what clients do
//! then. The workloads that papers use go by their [names](NAMES). Everything
//! random comes from one seed.
//!
//! | module | what |
//! | --- | --- |
//! | [`choice`] | which of the keys: uniform, Zipfian, latest, hot ranges |
//! | [`sizes`] | sizes of values, lengths of scans |
//! | [`keys`] | the keys that there are, and what they look like |
//! | [`operations`] | the operations of a group of clients, one by one |
//! | [`builtin`] | the workloads of papers |
//! | [`ycsb`] | those of YCSB's property files |
//! | [`mod@run`] | a store, clients, and somebody who watches |
//! | [`measure`] | what clients measure |

pub mod builtin;
pub mod choice;
mod client;
pub mod keys;
pub mod measure;
pub mod operations;
pub mod run;
pub mod sizes;
pub mod ycsb;

use serde::{Serialize, Serializer};

pub use builtin::NAMES;
pub use choice::Choice;
pub use keys::KeyOrder;
pub use operations::{Operation, Operations};
pub use sizes::Sizes;

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Name.
    pub name: String,
    /// Bytes of a key: [`KEY_BYTES`].
    pub key_bytes: u32,
    /// Bytes of values.
    pub values: Sizes,
    /// Where keys lie among each other, by age.
    pub order: KeyOrder,
    /// Keys that there are from the start. Without [`loads`](Self::loads) they are
    /// names only, that updates write to.
    pub records: u64,
    /// The keys are put into the store before, in random order. Not measured.
    pub loads: bool,
    /// What happens side by side.
    pub clients: Vec<Clients>,
}

/// Sizes of keys that there can be, in bytes.
pub const KEY_BYTES: core::ops::RangeInclusive<u32> = 8..=1024;

/// The largest value, in bytes.
pub const MAX_VALUE_BYTES: u32 = 1 << 24;

/// Most keys and operations of a workload: the list of keys that live has
/// entries of 32 bits.
pub const MAX_OPERATIONS: u64 = 1 << 31;

/// Clients that do the same, each one operation after the other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Clients {
    /// How many, 1 to 4096.
    pub count: u32,
    /// Operations of all of them together; `None`: until the others have ended.
    pub operations: Option<u64>,
    /// What they do.
    pub mix: Mix,
    /// With which keys.
    pub choice: Choice,
    /// Entries of a scan.
    pub scans: Sizes,
}

/// Weights of kinds of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    /// Weight by [`Kind`], in the order of [`Kind::ALL`]; each at most a million.
    pub weights: [u32; Kind::ALL.len()],
}

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A put of a new key.
    Insert,
    /// A put of a key that is chosen.
    Update,
    /// A delete of a key that is chosen.
    Delete,
    /// A point query of a key that is chosen.
    Get,
    /// A range query from a key that is chosen.
    Scan,
    /// A get of a key that is chosen, and then a put of it.
    ReadModifyWrite,
}

impl Kind {
    /// All of them, in the order of output.
    pub const ALL: [Self; 6] = [
        Self::Insert,
        Self::Update,
        Self::Delete,
        Self::Get,
        Self::Scan,
        Self::ReadModifyWrite,
    ];

    /// Its name in files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Get => "get",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "rmw",
        }
    }
}

/// The weight of each kind, by its name.
impl Serialize for Mix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let weights = Kind::ALL.map(|kind| (kind.name(), self.weight(kind)));
        serializer.collect_map(weights)
    }
}

impl Mix {
    /// A mix of these kinds.
    #[must_use]
    pub fn of(parts: &[(Kind, u32)]) -> Self {
        let mut mix = Self::default();
        for &(kind, weight) in parts {
            mix.weights[kind as usize] += weight;
        }
        mix
    }

    /// The weight of a kind.
    #[must_use]
    pub const fn weight(&self, kind: Kind) -> u32 {
        self.weights[kind as usize]
    }

    /// Sum of the weights.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.weights.iter().map(|&weight| u64::from(weight)).sum()
    }

    /// `operations` in the proportions of the weights, by the largest remainders.
    #[must_use]
    pub fn quotas(&self, operations: u64) -> [u64; Kind::ALL.len()] {
        let sum = u128::from(self.sum().max(1));
        let exact = self
            .weights
            .map(|weight| u128::from(operations) * u128::from(weight));
        // At most `operations`.
        let mut quotas = exact.map(|part| (part / sum) as u64);
        let mut order: Vec<usize> = (0..quotas.len()).collect();
        order.sort_by_key(|&kind| core::cmp::Reverse(exact[kind] % sum));
        let missing = match self.sum() {
            0 => 0,
            _ => operations - quotas.iter().sum::<u64>(),
        };
        for &kind in order.iter().take(missing as usize) {
            quotas[kind] += 1;
        }
        quotas
    }
}

/// What is wrong with a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {valid}")]
pub struct SpecError {
    /// The key of `[job.kv]` that it is about, or the first of them.
    pub key: &'static str,
    /// What is wrong, with the key and its value.
    pub what: String,
    /// What would be right.
    pub valid: String,
}

impl Spec {
    /// Checks that the workload can be run, and ends.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), SpecError> {
        let wrong = |key, what: String, valid: &str| {
            Err(SpecError {
                key,
                what,
                valid: valid.to_owned(),
            })
        };
        if !KEY_BYTES.contains(&self.key_bytes) {
            return wrong(
                "key",
                format!("a key of {} bytes", self.key_bytes),
                "keys have 8 to 1024 bytes",
            );
        }
        if self.values.largest() > MAX_VALUE_BYTES {
            return wrong(
                "value",
                format!("a value of {} bytes", self.values.largest()),
                "values have at most 16 MiB",
            );
        }
        check_sizes("value", &self.values)?;
        let counted: u64 = self
            .clients
            .iter()
            .filter_map(|group| group.operations)
            .fold(0, u64::saturating_add);
        if counted.saturating_add(self.records) > MAX_OPERATIONS {
            return wrong(
                "operations",
                format!("{counted} operations on {} records", self.records),
                "at most 2147483648 together",
            );
        }
        if self.clients.iter().all(|group| group.operations.is_none()) {
            return wrong(
                "operations",
                "no client has a number of operations".to_owned(),
                "give it to one of them, so that the run ends",
            );
        }
        self.clients.iter().try_for_each(check_clients)?;
        if self.records == 0
            && self
                .clients
                .iter()
                .all(|group| group.mix.weight(Kind::Insert) == 0)
        {
            return wrong(
                "records",
                "records = 0, and nobody inserts any".to_owned(),
                "give the number of keys that operations choose from",
            );
        }
        Ok(())
    }

    /// Operations of all clients that have a number of them.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.clients
            .iter()
            .filter_map(|group| group.operations)
            .sum()
    }

    /// Divides `operations` among the clients that have a number of them, in the
    /// proportions of those numbers.
    pub fn set_operations(&mut self, operations: u64) {
        let before = u128::from(self.operations().max(1));
        for own in self
            .clients
            .iter_mut()
            .filter_map(|c| c.operations.as_mut())
        {
            // At most `operations`, up to rounding of none.
            *own = (u128::from(*own) * u128::from(operations) / before) as u64;
        }
    }

    /// Whether anybody deletes keys.
    #[must_use]
    pub fn deletes(&self) -> bool {
        self.clients
            .iter()
            .any(|group| group.mix.weight(Kind::Delete) > 0)
    }
}

fn check_clients(group: &Clients) -> Result<(), SpecError> {
    let wrong = |key, what: String, valid: &str| {
        Err(SpecError {
            key,
            what,
            valid: valid.to_owned(),
        })
    };
    if !(1..=4096).contains(&group.count) {
        return wrong(
            "clients",
            format!("{} clients in a group", group.count),
            "1 to 4096 can be",
        );
    }
    if group.mix.sum() == 0 || group.mix.weights.iter().any(|&weight| weight > 1_000_000) {
        return wrong(
            "mix",
            format!("weights {:?} of operations", group.mix.weights),
            "one is above 0, and none above 1000000",
        );
    }
    check_sizes("scans", &group.scans)?;
    let ok = match group.choice {
        Choice::Uniform => true,
        Choice::Zipfian { theta } | Choice::Latest { theta } => {
            if theta > 0.0 && theta <= 100.0 {
                return Ok(());
            }
            let what = format!("theta = {theta}");
            return wrong("theta", what, "above 0, at most 100");
        }
        Choice::KeyRanges(ranges) => {
            let weight = |x: u32| ranges.weights.at(f64::from(x));
            let is_power = |power: choice::Power| power.a > 0.0 && power.b > 0.0;
            (1..=65_536).contains(&ranges.ranges)
                && (1..=ranges.ranges).any(|x| weight(x) > 0.0)
                && ranges.within.is_none_or(is_power)
        }
    };
    if ok {
        return Ok(());
    }
    wrong(
        "keys",
        format!("{:?}", group.choice),
        "exponents and factors are above 0, ranges 1 to 65536, and one has a weight",
    )
}

fn check_sizes(key: &'static str, sizes: &Sizes) -> Result<(), SpecError> {
    let ok = match *sizes {
        Sizes::Fixed(_) => true,
        Sizes::Uniform { min, max } => min <= max,
        Sizes::Pareto { k, sigma, min, max } => {
            min < max && sigma > 0.0 && sigma.is_finite() && k.is_finite() && k != 0.0
        }
    };
    if ok {
        return Ok(());
    }
    let (what, valid) = match *sizes {
        Sizes::Uniform { min, max } => (
            format!("sizes of {min} to {max} bytes"),
            "the smaller one comes first",
        ),
        _ => (
            format!("{sizes:?}"),
            "min is below max, sigma above 0, and k not 0",
        ),
    };
    Err(SpecError {
        key,
        what,
        valid: valid.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_the_whole_in_its_proportions() {
        let mix = Mix::of(&[
            (Kind::Insert, 50),
            (Kind::Delete, 10),
            (Kind::Get, 15),
            (Kind::Update, 25),
        ]);
        assert_eq!(
            mix.quotas(4_000_000),
            [2_000_000, 1_000_000, 400_000, 600_000, 0, 0]
        );
        for operations in [0, 1, 2, 3, 7, 99, 101] {
            let quotas = mix.quotas(operations);
            assert_eq!(quotas.iter().sum::<u64>(), operations);
            for (quota, weight) in quotas.iter().zip(mix.weights) {
                let exact = operations as f64 * f64::from(weight) / 100.0;
                assert!((*quota as f64 - exact).abs() < 1.0, "{quotas:?}");
            }
        }
        assert_eq!(Mix::default().quotas(5), [0; 6]);
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let good = builtin::spec("kvbench-ii").expect("it is built in");
        assert_eq!(good.check(), Ok(()));
        let refused = |change: &dyn Fn(&mut Spec), about: &str| {
            let mut spec = good.clone();
            change(&mut spec);
            let error = spec.check().expect_err(about).to_string();
            assert!(error.contains(about), "{error}");
        };
        refused(&|spec| spec.key_bytes = 7, "a key of 7 bytes");
        refused(&|spec| spec.clients.clear(), "no client");
        refused(&|spec| spec.clients[0].operations = None, "no client");
        refused(&|spec| spec.clients[0].count = 0, "0 clients");
        refused(&|spec| spec.clients[0].mix = Mix::default(), "weights");
        refused(&|spec| spec.records = u64::MAX, "operations on");
        refused(
            &|spec| spec.clients[0].mix = Mix::of(&[(Kind::Get, 1)]),
            "records = 0",
        );
        refused(
            &|spec| spec.clients[0].choice = Choice::Zipfian { theta: f64::NAN },
            "NaN",
        );
        refused(
            &|spec| spec.values = Sizes::Uniform { min: 2, max: 1 },
            "sizes of 2 to 1 bytes",
        );
    }
}
