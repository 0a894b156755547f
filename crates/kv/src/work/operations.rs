//! The operations of a group of clients, one by one.

use zonelab_host::Rng;

use super::choice::Chooser;
use super::keys::KeySpace;
use super::{Clients, Kind, Sizes};

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What.
    pub kind: Kind,
    /// Number of the key.
    pub key: u64,
    /// Bytes of the value that is put; entries of a scan.
    pub len: u32,
}

/// What is left to do of each kind, and in all.
type Quotas = ([u64; Kind::ALL.len()], u64);

/// Draws the operations of a group of clients.
///
/// With a number of operations, each kind comes exactly as often as the weights
/// say, in random order; without, kinds are drawn by weight.
#[derive(Clone, Debug)]
pub struct Operations {
    weights: ([u32; Kind::ALL.len()], u64),
    left: Option<Quotas>,
    chooser: Chooser,
    values: Sizes,
    scans: Sizes,
    rng: Rng,
}

impl Operations {
    /// The operations of `clients` with `values`, on a space of `records` keys at first.
    #[must_use]
    pub fn new(clients: &Clients, values: Sizes, records: u64, rng: Rng) -> Self {
        let quotas = clients.operations.map(|count| {
            let quotas = clients.mix.quotas(count);
            (quotas, quotas.iter().sum())
        });
        Self {
            weights: (clients.mix.weights, clients.mix.sum()),
            left: quotas,
            chooser: Chooser::new(clients.choice, records),
            values,
            scans: clients.scans,
            rng,
        }
    }

    /// The next operation, on a key of `space`, which it changes. `None`: all are done.
    pub fn next(&mut self, space: &mut KeySpace) -> Option<Operation> {
        let kind = self.kind(space.is_empty())?;
        let key = match kind {
            Kind::Insert => space.insert(),
            // Nothing lives, and nobody inserts any more: some key that is not there.
            _ if space.is_empty() => 0,
            Kind::Delete => {
                let position = self.chooser.next(space.len(), &mut self.rng);
                space.remove(position)
            }
            _ => space.at(self.chooser.next(space.len(), &mut self.rng)),
        };
        let len = match kind {
            Kind::Insert | Kind::Update | Kind::ReadModifyWrite => self.values.next(&mut self.rng),
            Kind::Scan => self.scans.next(&mut self.rng),
            Kind::Delete | Kind::Get => 0,
        };
        Some(Operation { kind, key, len })
    }

    /// What comes next. While no key lives, inserts come first, if there are any.
    fn kind(&mut self, none_live: bool) -> Option<Kind> {
        let drawn = match &self.left {
            Some((_, 0)) => return None,
            Some((quotas, sum)) => draw(quotas, self.rng.below(*sum)),
            None => {
                let (weights, sum) = &self.weights;
                draw(&weights.map(u64::from), self.rng.below(*sum))
            }
        };
        let insert = Kind::Insert as usize;
        let can_insert = match &self.left {
            Some((quotas, _)) => quotas[insert] > 0,
            None => self.weights.0[insert] > 0,
        };
        let kind = if none_live && can_insert {
            Kind::Insert
        } else {
            drawn
        };
        if let Some((quotas, sum)) = &mut self.left {
            quotas[kind as usize] -= 1;
            *sum -= 1;
        }
        Some(kind)
    }
}

/// The kind that `at`, below the sum of `weights`, falls to.
fn draw(weights: &[u64; Kind::ALL.len()], mut at: u64) -> Kind {
    for kind in Kind::ALL {
        let weight = weights[kind as usize];
        if at < weight {
            return kind;
        }
        at -= weight;
    }
    // `at` is below the sum; without any weight, which is refused, a read does no harm.
    Kind::Get
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::builtin;
    use super::*;

    /// All operations of the first group of a workload.
    fn all(name: &str, operations: u64, seed: u64) -> Vec<Operation> {
        let mut spec = builtin::spec(name).expect("it is built in");
        spec.set_operations(operations);
        let mut space = KeySpace::new(spec.records, spec.deletes());
        let group = &spec.clients[0];
        let mut operations = Operations::new(group, spec.values, spec.records, Rng::new(seed, 0));
        std::iter::from_fn(|| operations.next(&mut space)).collect()
    }

    #[test]
    fn kvbench_does_what_it_says_and_only_with_keys_that_live() {
        let all = all("kvbench-ii", 40_000, 1);
        let count = |kind| all.iter().filter(|op| op.kind == kind).count();
        assert_eq!(
            [Kind::Insert, Kind::Delete, Kind::Get, Kind::Update].map(count),
            [20_000, 4_000, 6_000, 10_000]
        );
        let mut live = BTreeSet::new();
        for operation in &all {
            match operation.kind {
                Kind::Insert => assert!(live.insert(operation.key), "a new key"),
                Kind::Delete => assert!(live.remove(&operation.key), "a key that lives"),
                _ => assert!(live.contains(&operation.key), "{operation:?}"),
            }
        }
        assert_eq!(live.len(), 16_000);
        // Kinds are spread over the run: the first half has half of the deletes,
        // with a standard deviation of sqrt(4000) / 2 or a little less.
        let early = all[..20_000].iter().filter(|op| op.kind == Kind::Delete);
        assert!(early.count().abs_diff(2_000) < 160);
    }

    #[test]
    fn a_seed_decides_everything() {
        assert_eq!(all("ycsb-a", 5_000, 7), all("ycsb-a", 5_000, 7));
        assert_ne!(all("ycsb-a", 5_000, 7), all("ycsb-a", 5_000, 8));
    }

    #[test]
    fn inserts_of_ycsb_d_are_what_is_read() {
        let all = all("ycsb-d", 100_000, 2);
        let newest = all.iter().filter(|op| op.kind == Kind::Insert).count() as u64;
        let spec = builtin::spec("ycsb-d").expect("it is built in");
        let young = all
            .iter()
            .filter(|op| op.kind == Kind::Get && op.key >= spec.records)
            .count();
        // The youngest 2500 of a million keys, on average, have 57 % of Zipf's
        // weights; uniform reads would find 0.25 %.
        assert!(newest == 5_000 && young > 45_000, "{young} of 95000");
    }

    #[test]
    fn with_nothing_there_inserts_come_first() {
        for seed in 0..50 {
            assert_eq!(all("kvbench-ii", 4, seed)[0].kind, Kind::Insert);
        }
    }
}
