//! Which zone of a log is collected next.

use core::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::Log;
use crate::config::CollectionPolicy;

/// How old what zones hold is, in what the host writes to the log.
///
/// Of each zone one number is kept. What collection moves is taken to be as old as the
/// youngest block of the zone that it comes from, so that cold data stays cold: it would be
/// young again with each move if its age were that of the zone that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ages {
    /// Mapping units that the host has written to the log.
    written_units: u64,
    /// By zone, how many of them it had written with the youngest unit that is in the zone.
    youngest_units: Vec<u64>,
}

impl Ages {
    /// Those of a log of so many empty zones, if its collection asks for them.
    pub(super) fn new(collection: CollectionPolicy, zones: usize) -> Option<Self> {
        match collection {
            CollectionPolicy::Greedy => None,
            CollectionPolicy::CostBenefit => Some(Self {
                written_units: 0,
                youngest_units: vec![0; zones],
            }),
        }
    }

    /// The host writes to a zone.
    #[inline]
    pub(super) fn host_writes(&mut self, zone: u32) {
        self.written_units += 1;
        self.youngest_units[zone as usize] = self.written_units;
    }

    /// Something of one zone is moved to another.
    pub(super) fn moves(&mut self, from: u32, to: u32) {
        let of_victim = self.youngest_units[from as usize];
        let youngest = &mut self.youngest_units[to as usize];
        *youngest = of_victim.max(*youngest);
    }

    /// A zone is empty.
    pub(super) fn empties(&mut self, zone: u32) {
        self.youngest_units[zone as usize] = 0;
    }

    /// What the host has written since, at least 1.
    fn age(&self, zone: u32) -> u64 {
        self.written_units - self.youngest_units[zone as usize] + 1
    }

    /// Whether these, of which nothing is believed, can be those of so many zones.
    fn are_possible(&self, zones: usize) -> bool {
        self.youngest_units.len() == zones
            && self.written_units < u64::MAX / 2
            && self
                .youngest_units
                .iter()
                .all(|of| *of <= self.written_units)
    }
}

impl Log {
    /// The zone that is collected next: full, or left, and collecting it gives room.
    ///
    /// It looks at each zone once, and a zone is collected once for each that is written.
    pub(crate) fn victim(&self) -> Option<u32> {
        // Fits: they are zones of the drive.
        let count = self.written.len() as u32;
        let holds = |zone: u32| self.valid[zone as usize];
        let can_be = |zone: &u32| {
            holds(*zone) < self.capacity
                && !self.has_failed(*zone)
                && self.is_closed(*zone)
                && self.has_room_for(*zone)
        };
        let mut all = (0..count).filter(can_be);
        match &self.ages {
            None => all.min_by_key(|zone| holds(*zone)),
            Some(ages) => {
                let first = all.next()?;
                let better = |best: u32, zone: u32| match self.by_benefit(ages, zone, best) {
                    Ordering::Greater => zone,
                    _ => best,
                };
                Some(all.fold(first, better))
            }
        }
    }

    /// Compares what collecting one zone and another gives for what it costs,
    /// (1 - u) * age / 2u; of equals, the one that holds less is better.
    fn by_benefit(&self, ages: &Ages, one: u32, other: u32) -> Ordering {
        let of = |zone: u32| {
            let valid = u128::from(self.valid[zone as usize]);
            let gain = (u128::from(self.capacity) - valid) * u128::from(ages.age(zone));
            (gain, valid)
        };
        let ((gain, valid), (other_gain, other_valid)) = (of(one), of(other));
        // Divided by what they hold, and without division: that may be nothing.
        let benefits = (gain * other_valid).cmp(&(other_gain * valid));
        benefits.then(other_valid.cmp(&valid))
    }

    /// Nobody writes to a zone, and it is not empty: it is full, or was left, or lost its
    /// end with the power.
    fn is_closed(&self, zone: u32) -> bool {
        match self.written[zone as usize] {
            0 => false,
            full if full == self.capacity => true,
            _ => !self.open.contains(&zone),
        }
    }

    /// What a zone holds can be moved. There is always such a zone: the one whose collection
    /// a loss of power interrupted, if none is empty.
    fn has_room_for(&self, zone: u32) -> bool {
        let stream = self.streams.collection_of(self.writers[zone as usize]);
        let written = self.written.get(self.open[stream.index()] as usize);
        let open = written.map_or(0, |written| self.capacity - written);
        !self.free.is_empty() || self.valid[zone as usize] <= open
    }

    /// Ages of what it holds, if its collection asks for them.
    pub(crate) fn ages(&self) -> Option<&Ages> {
        self.ages.as_ref()
    }

    /// Puts ages into it, of which nothing is believed.
    ///
    /// # Errors
    /// What is impossible about them.
    pub(crate) fn restore_ages(&mut self, ages: Option<Ages>) -> Result<(), String> {
        let zones = self.written.len();
        let is_possible = match (&self.ages, &ages) {
            (None, None) => true,
            (Some(_), Some(ages)) => ages.are_possible(zones),
            _ => false,
        };
        if !is_possible {
            return Err("ages of a log".to_owned());
        }
        self.ages = ages;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::super::streams::{Stream, Streams};
    use super::*;
    use crate::config::LogConfig;

    const ZONES: u32 = 8;
    const CAPACITY: u32 = 8;
    const BLOCKS: u32 = (ZONES - 3) * CAPACITY;

    /// What somebody who remembers each write would choose: by time of writing of each
    /// block, and with fractions that are added up one by one.
    struct Oracle {
        collection: CollectionPolicy,
        now: u64,
        /// By zone, the times of the blocks that were written to it.
        times: Vec<Vec<u64>>,
    }

    impl Oracle {
        fn choice(&self, log: &Log) -> Option<u32> {
            let mut best: Option<(f64, u32, u32)> = None;
            for zone in 0..ZONES {
                let places = log.places_of(zone);
                let holds = places.filter(|place| log.unit_at(*place).is_some()).count() as u32;
                let times = &self.times[zone as usize];
                if times.len() < CAPACITY as usize || holds == CAPACITY {
                    continue;
                }
                let used = f64::from(holds) / f64::from(CAPACITY);
                let age = self.now - times.iter().max().copied().unwrap_or(0) + 1;
                let benefit = match self.collection {
                    CollectionPolicy::Greedy => 1.0 - used,
                    CollectionPolicy::CostBenefit => (1.0 - used) * age as f64 / (2.0 * used),
                };
                let is_better = best.is_none_or(|(most, held, _)| {
                    let is_equal =
                        (benefit - most).abs() <= most * 1e-12 || benefit.total_cmp(&most).is_eq();
                    (benefit > most && !is_equal) || (is_equal && holds < held)
                });
                if is_better {
                    best = Some((benefit, holds, zone));
                }
            }
            best.map(|(_, _, zone)| zone)
        }
    }

    proptest! {
        #[test]
        fn the_victim_is_the_one_that_an_oracle_chooses(
            is_by_cost in any::<bool>(),
            writes in vec(0..BLOCKS, 0..2_000),
        ) {
            let collection = match is_by_cost {
                true => CollectionPolicy::CostBenefit,
                false => CollectionPolicy::Greedy,
            };
            let config = LogConfig { collection, ..LogConfig::new(3) };
            let streams = Streams::new(None, false);
            let mut log = Log::new(0..ZONES, (CAPACITY, BLOCKS), (&config, streams), false);
            let mut oracle = Oracle { collection, now: 0, times: vec![Vec::new(); ZONES as usize] };
            let host = Stream::DEFAULT;
            let moved = streams.collection_of(host);
            for block in writes {
                while log.room(host) == 0 || log.free_zones() < 2 {
                    let victim = log.victim();
                    prop_assert_eq!(victim, oracle.choice(&log));
                    let victim = victim.expect("some zone is not full of data");
                    let youngest = oracle.times[victim as usize].iter().max().copied();
                    for place in log.places_of(victim) {
                        let Some(block) = log.unit_at(place) else { continue };
                        prop_assert!(log.room(moved) > 0);
                        let to = log.next_place(moved) / CAPACITY;
                        log.append_moved(moved, block, victim);
                        oracle.times[to as usize].push(youngest.unwrap_or(0));
                    }
                    log.freed(victim);
                    oracle.times[victim as usize].clear();
                }
                let zone = log.next_place(host) / CAPACITY;
                log.append(host, block);
                oracle.now += 1;
                oracle.times[zone as usize].push(oracle.now);
            }
        }
    }
}
