//! What is said of peers, and how often.
//!
//! Anybody who reaches the server can have it say something. So there is a bound
//! for each address and one for all; what exceeds it appears at the debug level
//! only, and how much that was is said now and then.

use std::net::SocketAddr;

use zonelab_device::Nanos;

use super::rates::{Pace, Rate, Rates};

/// Misbehaviour of an address: once, and again each minute.
const OF_ADDRESS: Pace = Pace {
    interval: Nanos::from_secs(60),
    burst: 1,
};
/// Misbehaviour of all addresses.
const OF_ALL: Pace = Pace {
    interval: Nanos::from_secs(1),
    burst: 20,
};
/// What happens to connections.
const NEWS: Pace = Pace {
    interval: Nanos::from_ms(100),
    burst: 400,
};
/// How often it is said that something was left out.
const SUMMARY: Pace = Pace {
    interval: Nanos::from_secs(10),
    burst: 1,
};

/// Who may say what.
#[derive(Debug)]
pub(super) struct Complaints {
    addresses: Rates,
    all: Rate,
    news: Rate,
    summary: Rate,
    left_out: u64,
}

impl Complaints {
    pub(super) const fn new() -> Self {
        let never = Rate { due: Nanos::ZERO };
        Self {
            addresses: Rates::new(OF_ADDRESS),
            all: never,
            news: never,
            summary: never,
            left_out: 0,
        }
    }

    /// A peer has misbehaved.
    pub(super) fn misbehaved(&mut self, now: Nanos, peer: SocketAddr, reason: &str) {
        let address = peer.ip();
        if self.addresses.ahead(now, address).is_some() && self.all.allows(now, OF_ALL) {
            self.addresses.allows(now, address);
            tracing::warn!(peer = %peer, reason, logged = "once", "misbehaved");
        } else {
            self.left_out += 1;
            tracing::debug!(peer = %peer, reason, "misbehaved");
        }
    }

    /// Whether to say what happened to a connection.
    pub(super) fn has_news(&mut self, now: Nanos) -> bool {
        let may = self.news.allows(now, NEWS);
        self.left_out += u64::from(!may);
        may
    }

    /// Says how much was left out, if it is time.
    pub(super) fn tick(&mut self, now: Nanos) {
        if self.left_out > 0 && self.summary.allows(now, SUMMARY) {
            tracing::info!(messages = self.left_out, "left out");
            self.left_out = 0;
        }
    }
}
