//! What was done, for the end of a run.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counts {
    ($($name:ident: $what:literal,)*) => {
        /// What was done by all together.
        #[derive(Default)]
        pub(crate) struct Counts {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Counts {
            /// Each of them with what it is.
            pub(crate) fn list(&self) -> Vec<(&'static str, u64)> {
                vec![$(($what, self.$name.load(Ordering::Relaxed)),)*]
            }
        }
    };
}

counts! {
    commands: "commands that ended",
    written_bytes: "bytes written and acknowledged",
    verified_bytes: "bytes read back and compared",
    flushes: "flushes",
    zone_resets: "zones reset by hosts",
    zone_finishes: "zones finished by hosts",
    connections: "connections of hosts through the proxies",
    associations: "times that a host connected",
    refusals: "times that it could not",
    losses: "times that a host lost its connection",
    unanswered: "commands that got no answer",
    too_late: "commands that came when their queue had ended",
    lost_blocks: "acknowledged blocks lost that nobody had flushed",
    single_bytes: "bytes sent one at a time",
    delays: "delays",
    closes: "connections closed by a proxy",
    resets: "connections reset by a proxy",
    kills: "servers killed (SIGKILL)",
    restarts: "servers restarted in good order",
    cuts: "losses of power",
    controller_resets: "controllers that gave up",
    neighbours: "hostile connections",
    garbage: "garbage PDUs and other hostile messages",
}

/// One more.
pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

pub(crate) fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}
