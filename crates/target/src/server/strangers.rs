//! Which stranger makes room for a new connection.

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv6Addr};

use zonelab_device::Nanos;

/// Who has not come a step further for so long is called silent, and not before.
const GRACE: Nanos = Nanos::from_secs(1);
/// And so is who has not shown in this time who it is, however many steps it has made.
const MOST: Nanos = Nanos::from_secs(5);

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

/// How far a stranger has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// It says nothing, or nothing more, or looks for drives: nobody waits for it.
    Silent,
    /// It has been accepted just now.
    New,
    /// It is a host that is showing who it is.
    Authenticating,
}

impl Progress {
    /// Of a connection that was `opened` then, came a step further at `moved`, and has a queue
    /// or not.
    pub(super) fn of((opened, moved): (Nanos, Nanos), now: Nanos, has_queue: bool) -> Self {
        let is_silent = now.saturating_sub(moved) >= GRACE || now.saturating_sub(opened) >= MOST;
        match (is_silent, has_queue) {
            (true, _) => Self::Silent,
            (false, true) => Self::Authenticating,
            (false, false) => Self::New,
        }
    }
}

/// A connection that may be closed to make room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stranger {
    pub(super) index: usize,
    pub(super) network: Network,
    pub(super) progress: Progress,
    /// When it came a step further for the last time.
    pub(super) moved: Nanos,
}

/// The one that makes room. Networks with more than `crowd` strangers come first: then a step
/// that costs them nothing, as the name of a host, does not keep their places. Then those that
/// are silent, and those of the network that has most. Of what is left, new ones or those that
/// authenticate, whichever are more, so that neither keep the others out; and of these the one
/// that has not moved for the longest time.
pub(super) fn victim(mut strangers: Vec<Stranger>, crowd: usize) -> Option<usize> {
    let count = |progress| {
        strangers
            .iter()
            .filter(|of| of.progress == progress)
            .count()
    };
    let more = match count(Progress::New) >= count(Progress::Authenticating) {
        true => Progress::New,
        false => Progress::Authenticating,
    };
    strangers.sort_unstable_by_key(|of| of.network);
    let groups = strangers.chunk_by(|a, b| a.network == b.network);
    let ranked = groups.flat_map(|group| {
        let key = |of: &Stranger| {
            let is_silent = of.progress == Progress::Silent;
            let stands = (group.len() <= crowd, !is_silent, Reverse(group.len()));
            (stands, of.progress != more, of.moved, of.index)
        };
        group.iter().map(key)
    });
    ranked.min().map(|(.., index)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(index: usize, network: u8, progress: Progress, moved_ms: u64) -> Stranger {
        Stranger {
            index,
            network: Network::of(IpAddr::from([10, 0, 0, network])),
            progress,
            moved: Nanos::from_ms(moved_ms),
        }
    }

    #[test]
    fn the_oldest_of_those_that_have_come_least_far_goes() {
        use Progress::{Authenticating, New, Silent};
        assert_eq!(victim(Vec::new(), 2), None);
        let all = [
            stranger(0, 1, Authenticating, 1),
            stranger(1, 2, New, 5),
            stranger(2, 3, Silent, 4),
            stranger(3, 9, Silent, 3),
            stranger(4, 4, Silent, 9),
            stranger(5, 4, Silent, 8),
            stranger(6, 5, Authenticating, 9),
            stranger(7, 6, Authenticating, 6),
            stranger(8, 6, Authenticating, 7),
            stranger(9, 6, Authenticating, 8),
        ];
        let among = |of: &[usize]| victim(of.iter().map(|index| all[*index]).collect(), 2);
        assert_eq!(among(&[0, 1, 2, 3, 4, 5]), Some(5), "network 4 has two");
        let silent = [0, 1, 2, 3, 4];
        assert_eq!(among(&silent), Some(3), "the oldest of several networks");
        assert_eq!(among(&[0, 1]), Some(1), "as many of both");
        assert_eq!(
            among(&[0, 1, 6]),
            Some(0),
            "those that authenticate are more"
        );
        assert_eq!(among(&[0, 1, 4, 7, 8]), Some(4), "two are no crowd");
        assert_eq!(among(&[0, 1, 4, 7, 8, 9]), Some(7), "three are one");
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

    /// Strangers who come `each_s` times a second from `networks` addresses in turn, and send a
    /// Connect command or not, and a login now and then.
    struct Siege {
        networks: u64,
        each_s: u64,
        says_host: bool,
        /// From step to step of a login, of which the first makes a queue; and how many there
        /// are.
        step_ms: u64,
        steps: u64,
    }

    const LOGIN: usize = usize::MAX;

    /// How many logins lost their places in 20 s, of how many: there are 64 places, 32 for an
    /// address.
    fn lost(siege: &Siege) -> (u64, u64) {
        let mut places: Vec<(Stranger, Nanos)> = Vec::new();
        let (mut lost, mut begun, mut login) = (0, 0, None::<Nanos>);
        for step in 0..20 * siege.each_s {
            let now = Nanos(step * 1_000_000_000 / siege.each_s);
            let came = login.map_or(0, |at| {
                now.saturating_sub(at).0 / (siege.step_ms * 1_000_000)
            });
            if came >= siege.steps {
                login = None;
                places.retain(|(of, _)| of.index != LOGIN);
            }
            for (of, opened) in &mut places {
                let is_login = of.index == LOGIN;
                let has_queue = if is_login { came > 0 } else { siege.says_host };
                if is_login {
                    of.moved = Nanos(opened.0 + came * siege.step_ms * 1_000_000);
                }
                of.progress = Progress::of((*opened, of.moved), now, has_queue);
            }
            let begins = login.is_none() && step % siege.each_s == siege.each_s - 1;
            let who = if begins {
                255
            } else {
                (step % siege.networks) as u8
            };
            let index = if begins { LOGIN } else { step as usize };
            let new = Stranger {
                moved: now,
                ..stranger(index, who, Progress::New, 0)
            };
            let is_own = |of: &Stranger| of.network == new.network;
            let is_full = places.iter().filter(|(of, _)| is_own(of)).count() >= 32;
            if is_full || places.len() >= 64 {
                let all = places.iter().map(|(of, _)| *of);
                let all = all.filter(|of| !is_full || is_own(of));
                let gone = victim(all.collect(), 16);
                if gone == Some(LOGIN) {
                    lost += 1;
                    login = None;
                }
                places.retain(|(of, _)| Some(of.index) != gone);
            }
            if begins {
                begun += 1;
                login = Some(now);
            }
            places.push((new, now));
        }
        (lost, begun)
    }

    /// 64 addresses have a silent connection each and renew one at a time, as often as the
    /// server accepts them; a login takes some time.
    #[test]
    fn logins_get_through_beside_connections_that_are_renewed() {
        for (each_s, step_ms, steps) in [(50, 5, 100), (50, 100, 5), (3_000, 5, 60)] {
            let siege = Siege {
                networks: 64,
                each_s,
                says_host: false,
                step_ms,
                steps,
            };
            let (lost, begun) = lost(&siege);
            assert!(
                lost == 0 && begun >= 19,
                "{each_s} a second: {lost} of {begun}"
            );
        }
    }

    /// A name that is let in costs an attacker a command: he authenticates as little as one who
    /// says nothing.
    #[test]
    fn logins_get_through_beside_connections_that_name_a_host_and_stop() {
        for networks in [1, 2, 3, 5, 16, 64] {
            for (each_s, step_ms) in [(20, 20), (50, 20), (50, 200), (200, 40), (1_000, 20)] {
                let siege = Siege {
                    networks,
                    each_s,
                    says_host: true,
                    step_ms,
                    steps: 6,
                };
                let (lost, begun) = lost(&siege);
                let what = format!("{networks} addresses, {each_s} a second, {step_ms} ms");
                assert!(lost == 0 && begun >= 9, "{what}: {lost} of {begun}");
            }
        }
    }
}
