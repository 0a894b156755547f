//! How often something may happen.

use std::net::IpAddr;

use zonelab_device::Nanos;

/// Addresses that are remembered.
const REMEMBERED: usize = 256;

/// `burst` times in a row, and after that once in each `interval`.
#[derive(Copy, Clone, Debug)]
pub(super) struct Pace {
    pub(super) interval: Nanos,
    pub(super) burst: u32,
}

/// When the last event would have been if all had come at the pace.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Rate {
    pub(super) due: Nanos,
}

impl Rate {
    /// Whether one more is within the pace at `now`; it then counts.
    pub(super) fn allows(&mut self, now: Nanos, pace: Pace) -> bool {
        if !self.would_allow(now, pace) {
            return false;
        }
        self.due = self.due.max(now).saturating_add(pace.interval);
        true
    }

    fn would_allow(&self, now: Nanos, pace: Pace) -> bool {
        let ahead = self.due.saturating_sub(now);
        ahead.0 < pace.interval.0.saturating_mul(pace.burst.into())
    }
}

/// A rate for each address.
#[derive(Debug)]
pub(super) struct Rates {
    pace: Pace,
    addresses: Vec<(IpAddr, Rate)>,
}

impl Rates {
    pub(super) const fn new(pace: Pace) -> Self {
        Self {
            pace,
            addresses: Vec::new(),
        }
    }

    /// Whether one more of an address is within the pace; it then counts.
    pub(super) fn allows(&mut self, now: Nanos, address: IpAddr) -> bool {
        let pace = self.pace;
        self.of(address).allows(now, pace)
    }

    /// How far an address is ahead of its pace; `None`: too far for one more.
    pub(super) fn ahead(&mut self, now: Nanos, address: IpAddr) -> Option<Nanos> {
        let pace = self.pace;
        let rate = self.of(address);
        let may = rate.would_allow(now, pace);
        may.then(|| rate.due.saturating_sub(now))
    }

    fn of(&mut self, address: IpAddr) -> &mut Rate {
        let at = self.addresses.iter().position(|(of, _)| *of == address);
        let at = at.unwrap_or_else(|| {
            if self.addresses.len() >= REMEMBERED {
                // Whoever is the least ahead has the least to be remembered for.
                let ahead = |(_, (_, rate)): &(usize, &(IpAddr, Rate))| rate.due;
                let least = self.addresses.iter().enumerate().min_by_key(ahead);
                let least = least.map_or(0, |(at, _)| at);
                self.addresses.swap_remove(least);
            }
            self.addresses.push((address, Rate::default()));
            self.addresses.len() - 1
        });
        &mut self.addresses[at].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        interval: Nanos::from_secs(1),
        burst: 3,
    };

    #[test]
    fn a_burst_and_then_one_at_a_time() {
        let mut rates = Rates::new(PACE);
        let [a, b] = [1, 2].map(|last| IpAddr::from([127, 0, 0, last]));
        let at = Nanos::from_secs;
        let allowed: Vec<_> = (0..5).map(|_| rates.allows(at(9), a)).collect();
        assert_eq!(allowed, [true, true, true, false, false]);
        assert!(rates.allows(at(9), b), "another address has its own");
        assert_eq!(rates.ahead(at(9), a), None);
        assert!(rates.allows(at(10), a) && !rates.allows(at(10), a));
    }

    #[test]
    fn addresses_are_forgotten_when_there_are_many() {
        let mut rates = Rates::new(PACE);
        for n in 0..2000_u32 {
            assert!(rates.allows(Nanos::from_secs(1), IpAddr::from(n.to_be_bytes())));
        }
        assert_eq!(rates.addresses.len(), REMEMBERED);
    }
}
