//! Handshakes that are going on, and which of them ends to make room for a new one.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use tokio::task::AbortHandle;

use crate::FrontLimits;

/// A handshake.
struct Guest {
    number: u64,
    network: IpAddr,
    task: AbortHandle,
}

/// All handshakes, the oldest first.
#[derive(Default)]
pub(crate) struct Guests(Mutex<Vec<Guest>>);

impl Guests {
    /// Ends a handshake if there are as many as are allowed: the oldest of the new one's
    /// address, or of the address that has most. So those that take long keep nobody out.
    pub(crate) fn make_room(&self, address: IpAddr, limits: &FrontLimits) {
        let mut guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let networks: Vec<IpAddr> = guests.iter().map(|guest| guest.network).collect();
        let goes = evicted(&networks, network(address), limits);
        let goes = goes.map(|at| guests.remove(at));
        // Its end may come back here.
        drop(guests);
        if let Some(guest) = goes {
            tracing::debug!(network = %guest.network, "made room for others: no TLS yet");
            guest.task.abort();
        }
    }

    pub(crate) fn enter(&self, number: u64, address: IpAddr, task: AbortHandle) {
        let mut guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guests.push(Guest {
            number,
            network: network(address),
            task,
        });
    }

    pub(crate) fn leave(&self, number: u64) {
        let mut guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guests.retain(|guest| guest.number != number);
    }
}

/// What counts as one address: one of IPv4, or the 64 bits that all IPv6 addresses of a
/// link have in common, of which a peer can take as many as it likes.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits((v6.to_bits() >> 64) << 64).into(),
        v4 => v4,
    }
}

/// The place among `guests`, the oldest first, of the one that ends if one more of `new`
/// comes; `None`: there is room for it.
fn evicted(guests: &[IpAddr], new: IpAddr, limits: &FrontLimits) -> Option<usize> {
    let count = |of: IpAddr| guests.iter().filter(|guest| **guest == of).count();
    let full = if count(new) >= limits.address_handshakes {
        new
    } else if guests.len() >= limits.handshakes {
        // The last of those that have equally many, from the newest to the oldest.
        let newest_first = guests.iter().rev();
        *newest_first.max_by_key(|of| count(**of))?
    } else {
        return None;
    };
    guests.iter().position(|guest| *guest == full)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(last: u8) -> IpAddr {
        [127, 0, 0, last].into()
    }

    const LIMITS: FrontLimits = FrontLimits {
        handshakes: 4,
        address_handshakes: 2,
        ..FrontLimits::DEFAULT
    };

    #[test]
    fn the_oldest_handshake_makes_room() {
        let all_different = [v4(1), v4(2), v4(3), v4(4)];
        assert_eq!(evicted(&all_different[..3], v4(9), &LIMITS), None);
        assert_eq!(evicted(&all_different, v4(9), &LIMITS), Some(0));
        // The address with most is before that, and its own before all.
        let one_has_two = [v4(1), v4(2), v4(3), v4(2)];
        assert_eq!(evicted(&one_has_two, v4(9), &LIMITS), Some(1));
        let own = [v4(1), v4(1), v4(9), v4(9)];
        assert_eq!(evicted(&own, v4(9), &LIMITS), Some(2));
        assert_eq!(evicted(&own[1..], v4(9), &LIMITS), Some(1));
        assert_eq!(evicted(&own, v4(8), &LIMITS), Some(0));
    }

    #[test]
    fn addresses_of_a_link_count_as_one() {
        let of = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:0:0:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:127.0.0.1"), v4(1));
        assert_ne!(of("::ffff:127.0.0.1"), of("::ffff:127.0.0.2"));
    }
}
