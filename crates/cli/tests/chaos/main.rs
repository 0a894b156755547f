//! Everything at once against `zonelab serve`: the tier `chaos` (`cargo xtask test chaos`).
//!
//! Two servers, in processes of their own, serve small drives with stores: one as it is, with
//! zones, one through the translation layer (`--ftl`). At the same time
//!
//! * hosts write, flush, read back and compare, each in zones or blocks of its own (`zones`,
//!   `blocks`), with the initiator of this repository over real sockets;
//! * a proxy before each server holds bytes back, sends them one at a time, and closes and resets
//!   connections (`proxy`);
//! * servers are killed (SIGKILL) and started again on their store, drives lose power, controllers
//!   give up (`arena`);
//! * neighbours send garbage, half PDUs and lies, stall, and come in crowds (`neighbours`).
//!
//! What must hold: nothing that was acknowledged and flushed is lost; what was acknowledged alone
//! is lost by a loss of power only, from the end of zones, and not if the write buffer is protected
//! (`zone`); blocks behind the layer are what they were at the last flush or later (`cell`);
//! nothing hangs (`stage`); and whenever it is calm, a server has the descriptors that it had
//! before anybody came, and memory within a bound (`arena`).
//!
//! A run is cut into rounds. In each there is a storm, and then it is calm: hosts look at
//! everything that they ever wrote, all leave, and the servers are measured. The last third of the
//! rounds has no ends of servers, so that what these would hide can add up.
//!
//! Beside that, a server of the layer alone is killed over and over (`kills`).
//!
//! **What a seed determines.** Each host, connection, neighbour and server has a sequence of
//! choices of its own, which follows from the seed: what it does, in what order, and with which
//! sizes. When it does it depends on sockets, processes and the machine: two runs with a seed do
//! the same things at other times, and see other numbers of them. So a failure says with which
//! seed it came, and that seed is the best way to have it again, and no certain one.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

mod arena;
mod blocks;
mod cell;
mod counts;
mod dice;
mod events;
mod host;
mod kills;
mod link;
mod neighbours;
mod pattern;
mod proxy;
#[path = "../suite/scratch.rs"]
#[expect(dead_code, reason = "the tests of the command need more of it")]
mod scratch;
#[path = "../suite/served.rs"]
mod served;
mod server;
mod stage;
#[path = "../hostile/wire.rs"]
#[expect(dead_code, reason = "the hostile tests need more of it")]
mod wire;
mod zone;
mod zones;

use std::sync::Arc;
use std::thread::JoinHandle;

use zonelab_device::Nanos;

use arena::Arena;
use blocks::BlockHost;
use host::{Around, Work};
use neighbours::Neighbour;
use proxy::Proxy;
use server::Kind;
use stage::{Phase, Stage};
use zones::ZonedHost;

/// Seconds of a run unless `ZONELAB_CHAOS_SECONDS` says otherwise.
const SECONDS: u64 = 110;
/// Seconds of a round.
const ROUND_SECONDS: u64 = 18;
/// Hosts of the zoned drive, and of the layer.
const ZONED_HOSTS: u32 = 3;
const LAYER_HOSTS: u32 = 2;
/// Neighbours of each server.
const NEIGHBOURS: u8 = 2;

/// A number that a variable says, if it is there.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is \"{text}\", valid is a whole number")))
}

/// A seed that is another one each time.
fn new_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};

    RandomState::new().hash_one(()) & u64::from(u32::MAX)
}

/// All that take part.
struct Cast {
    stage: Arc<Stage>,
    arenas: Vec<Arc<Arena>>,
    proxies: Vec<Proxy>,
    threads: Vec<JoinHandle<()>>,
}

impl Cast {
    fn new(stage: &Arc<Stage>) -> Self {
        let mut cast = Self {
            stage: Arc::clone(stage),
            arenas: Vec::new(),
            proxies: Vec::new(),
            threads: Vec::new(),
        };
        for kind in [Kind::Zoned, Kind::Layer] {
            let arena = Arena::new(kind);
            cast.proxies.push(Proxy::start(&arena, stage));
            cast.arenas.push(arena);
        }
        let [zoned, layer] = [0, 1].map(|at| Arc::clone(&cast.arenas[at]));
        for number in 0..ZONED_HOSTS {
            cast.host(&zoned, number + 1, ZonedHost::new(number + 1, number));
        }
        for number in 0..LAYER_HOSTS {
            let host = ZONED_HOSTS + number + 1;
            cast.host(&layer, host, BlockHost::new(host, number));
        }
        for (at, arena) in (0..).zip([zoned, layer]) {
            for number in at * NEIGHBOURS..(at + 1) * NEIGHBOURS {
                let (arena, stage) = (Arc::clone(&arena), Arc::clone(stage));
                cast.start(format!("neighbour {number}"), move |beat| {
                    Neighbour::new(&arena, &stage, number).run(beat);
                });
            }
            let stage = Arc::clone(stage);
            let name = format!("the events of the {} server", arena.kind.name());
            cast.start(name, move |beat| arena.disturb(&stage, beat));
        }
        cast
    }

    fn start(&mut self, name: String, run: impl FnOnce(&stage::Beat) + Send + 'static) {
        self.threads.push(self.stage.spawn(name, run));
    }

    fn host(&mut self, arena: &Arc<Arena>, host: u32, mut work: impl Work + Send + 'static) {
        let (arena, stage) = (Arc::clone(arena), Arc::clone(&self.stage));
        self.start(format!("host {host}"), move |beat| {
            let stage = &stage;
            host::run(&mut work, host, &arena, &Around { stage, beat });
        });
    }

    /// Everything at once, for a while, and then nothing at all.
    fn round(&self, has_kills: bool, span: Nanos) {
        let stage = &self.stage;
        stage.set_phase(Phase::Storm { has_kills });
        let until = stage.clock.now().saturating_add(span);
        while stage.clock.now() < until && stage.is_storm() {
            stage.pause(Nanos::from_secs(1));
            self.check_stuck();
        }
        stage.set_phase(Phase::Calm);
        while !stage.is_over() && !stage.all_rest(self.threads.len()) {
            self.check_stuck();
        }
    }

    /// What servers take at rest.
    fn measure(&self, round: u64) {
        for arena in &self.arenas {
            let name = arena.kind.name();
            match arena.rest(&self.stage) {
                Ok(rest) => println!(
                    "chaos: round {round}: the {name} server at rest: {} descriptors, {} MiB",
                    rest.descriptors,
                    rest.resident_kib >> 10
                ),
                Err(too_much) => self.stage.fail(too_much),
            }
        }
    }

    /// Ends the process if somebody hangs: then nobody can be waited for.
    fn check_stuck(&self) {
        if let Some(stuck) = self.stage.stuck() {
            self.stage.fail(stuck);
            self.report();
            self.abandon();
            std::process::exit(101);
        }
    }

    fn report(&self) {
        let stage = &self.stage;
        println!("chaos: after {}", stage.clock.now());
        for (what, number) in stage.counts.list() {
            println!("  {number:>12} {what}");
        }
        let failures = stage.failures();
        for failure in &failures {
            println!("chaos: FAILED: {failure}");
        }
        if !failures.is_empty() {
            println!(
                "replay: ZONELAB_CHAOS_SEED={} cargo xtask test chaos",
                stage.seed
            );
        }
    }

    /// After a failure: shows where its traces are, and ends the servers.
    fn abandon(&self) {
        for arena in &self.arenas {
            println!("{}", arena.evidence());
            arena.abandon();
        }
    }

    /// Ends it: everybody leaves, servers end in good order, their stores are sound.
    fn end(mut self) {
        self.stage.set_phase(Phase::End);
        for thread in self.threads.drain(..) {
            // What it panicked about is known.
            let _ = thread.join();
        }
        self.proxies.clear();
        self.report();
        let failures = self.stage.failures();
        assert!(
            failures.is_empty(),
            "seed {}: {failures:?}",
            self.stage.seed
        );
        for arena in &self.arenas {
            arena.close();
        }
    }
}

impl Drop for Cast {
    /// After a failure nobody else ends the servers.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stage.set_phase(Phase::End);
            self.abandon();
        }
    }
}

#[test]
fn everything_at_once_loses_nothing_that_was_promised() {
    let seed = number("ZONELAB_CHAOS_SEED").unwrap_or_else(new_seed);
    let seconds = number("ZONELAB_CHAOS_SECONDS").unwrap_or(SECONDS);
    let rounds = (seconds / ROUND_SECONDS).max(3);
    let span = Nanos::from_ms(seconds * 1_000 / rounds);
    println!("chaos: seed {seed}, {seconds} s in {rounds} rounds");
    println!("replay: ZONELAB_CHAOS_SEED={seed} cargo xtask test chaos");
    let cast = Cast::new(&Stage::new(seed));
    for round in 0..rounds {
        cast.round(round < rounds * 2 / 3, span);
        if cast.stage.is_over() {
            break;
        }
        cast.measure(round + 1);
    }
    cast.end();
}
