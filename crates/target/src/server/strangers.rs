//! Which stranger makes room for a new connection.

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv6Addr};

use zonelab_device::Nanos;

/// A connection that has sent nothing yet is not called silent before.
const GRACE: Nanos = Nanos::from_ms(500);

/// Addresses that count as one: those of a /64 of IPv6, which a single machine has, are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Network(IpAddr);

impl Network {
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let prefix = address.to_bits() >> 64 << 64;
                Self(IpAddr::V6(Ipv6Addr::from_bits(prefix)))
            }
            four @ IpAddr::V4(_) => Self(four),
        }
    }
}

/// How far a stranger has come. The first go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// It says nothing, or looks for drives: nobody waits for it.
    Silent,
    /// It has been accepted just now.
    New,
    /// It is a host that is showing who it is.
    Authenticating,
}

impl Progress {
    /// Of a connection that was `opened` then, and has a queue or not.
    pub(super) fn of(opened: Nanos, now: Nanos, has_queue: bool, is_discovery: bool) -> Self {
        let is_new = now.saturating_sub(opened) < GRACE;
        match (has_queue && !is_discovery, is_new) {
            (true, _) => Self::Authenticating,
            (false, true) => Self::New,
            (false, false) => Self::Silent,
        }
    }
}

/// A connection that may be closed to make room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stranger {
    pub(super) index: usize,
    pub(super) network: Network,
    pub(super) progress: Progress,
    pub(super) opened: Nanos,
}

/// The one that makes room: of those that have come least far, of the network that has most
/// strangers the oldest, and of several such networks the oldest of all. If each network has
/// one, a new one so has the time that as many others take to come.
pub(super) fn victim(mut strangers: Vec<Stranger>) -> Option<usize> {
    strangers.sort_unstable_by_key(|of| of.network);
    let groups = strangers.chunk_by(|a, b| a.network == b.network);
    let ranked = groups.flat_map(|group| {
        let key = |of: &Stranger| (of.progress, Reverse(group.len()), of.opened, of.index);
        group.iter().map(key)
    });
    ranked.min().map(|(.., index)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(index: usize, network: u8, progress: Progress, opened_ms: u64) -> Stranger {
        Stranger {
            index,
            network: Network::of(IpAddr::from([10, 0, 0, network])),
            progress,
            opened: Nanos::from_ms(opened_ms),
        }
    }

    #[test]
    fn the_oldest_of_those_that_have_come_least_far_goes() {
        use Progress::{Authenticating, New, Silent};
        assert_eq!(victim(Vec::new()), None);
        let all = [
            stranger(0, 1, Authenticating, 1),
            stranger(1, 2, New, 5),
            stranger(2, 3, Silent, 4),
            stranger(3, 9, Silent, 3),
            stranger(4, 4, Silent, 9),
            stranger(5, 4, Silent, 8),
        ];
        let among = |of: &[usize]| victim(of.iter().map(|index| all[*index]).collect());
        assert_eq!(among(&[0, 1, 2, 3, 4, 5]), Some(5), "network 4 has two");
        assert_eq!(
            among(&[0, 1, 2, 3, 4]),
            Some(3),
            "the oldest of several networks"
        );
        assert_eq!(among(&[0, 1]), Some(1));
        assert_eq!(among(&[0]), Some(0));
    }

    #[test]
    fn a_64_of_ipv6_is_one_network() {
        let of = |text: &str| Network::of(text.parse().expect("it is an address"));
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::9"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_eq!(of("::ffff:10.1.2.3"), of("10.1.2.3"));
        assert_ne!(of("10.1.2.3"), of("10.1.2.4"));
    }

    /// 64 addresses have a silent connection each and renew one at a time, as often as the
    /// server accepts them; a login takes some time.
    #[test]
    fn logins_get_through_beside_connections_that_are_renewed() {
        for (renewals_per_s, login_ms, connect_ms) in [(50, 500, 5), (3_000, 300, 5)] {
            let mut places: Vec<Stranger> = Vec::new();
            let mut lost = 0;
            let mut login: Option<Nanos> = None;
            for step in 0..20 * renewals_per_s {
                let now = Nanos(step * 1_000_000_000 / renewals_per_s);
                let since = |at: Nanos| now.saturating_sub(at);
                if login.is_some_and(|at| since(at) >= Nanos::from_ms(login_ms)) {
                    login = None;
                    places.retain(|of| of.index != usize::MAX);
                }
                let begins = login.is_none() && step % renewals_per_s == 0;
                let who = if begins { 255 } else { (step % 64) as u8 };
                if places.len() >= 64 {
                    for of in &mut places {
                        let is_login = of.index == usize::MAX;
                        let has_queue = is_login && since(of.opened) >= Nanos::from_ms(connect_ms);
                        of.progress = Progress::of(of.opened, now, has_queue, false);
                    }
                    let gone = victim(places.clone());
                    lost += u64::from(gone == Some(usize::MAX));
                    places.retain(|of| Some(of.index) != gone);
                }
                if begins {
                    login = Some(now);
                }
                let index = if begins { usize::MAX } else { step as usize };
                let new = stranger(index, who, Progress::New, 0);
                places.push(Stranger { opened: now, ..new });
            }
            assert_eq!(lost, 0, "{renewals_per_s} a second");
        }
    }
}
