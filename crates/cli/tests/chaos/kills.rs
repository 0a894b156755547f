//! The layer with a share of its map in memory, on a drive so small that the collector works: its
//! server is killed under load, over and over, and what was flushed is there each time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use zonelab_device::{Buf, Command as Of, Completion, Lba, Nanos, Op, QueuePair, Tag};
use zonelab_driver::TcpQueue;

use crate::number;
use crate::scratch::Scratch;
use crate::served::Served;
use crate::server::zonelab;

/// 64 zones of 16 MiB, and blocks of 4 KiB.
const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/live.toml");
const BLOCK: usize = 4096;
/// Servers that are killed under load, unless `ZONELAB_KILLS` says how many.
const KILLS: u64 = 15;
/// Blocks of a write under load.
const LOAD: u32 = 32;

/// Writes and flushes until the server is gone, counts writes that are `done`, and notes what
/// places hold.
fn load(queue: &mut TcpQueue, (size, round): (u64, u32), places: &mut [Place], done: &AtomicU64) {
    let groups = size / u64::from(LOAD);
    for n in 0_u64.. {
        let at = (n * 7919 + u64::from(round) * 104_729) % groups;
        let value = round * 1_000_000 + n as u32;
        let op = Op::Write {
            slba: Lba(at * u64::from(LOAD)),
            nlb: LOAD,
        };
        let mut data = Buf::zeroed(BLOCK * LOAD as usize);
        data.chunks_mut(4)
            .for_each(|piece| piece.copy_from_slice(&value.to_le_bytes()));
        places[at as usize].since.push(value);
        if !is_done(queue, op, Some(data)) {
            return;
        }
        done.fetch_add(1, Ordering::Relaxed);
        if n % 16 == 15 {
            if !is_done(queue, Op::Flush, None) {
                return;
            }
            places.iter_mut().for_each(Place::flushed);
        }
    }
}

/// What a group of blocks holds at least, and what was written to it since.
#[derive(Clone, Debug, Default)]
struct Place {
    flushed: u32,
    since: Vec<u32>,
}

impl Place {
    fn flushed(&mut self) {
        if let Some(last) = self.since.pop() {
            self.flushed = last;
            self.since.clear();
        }
    }
}

/// Runs one command to its end; `None`: the server is gone.
fn run(queue: &mut TcpQueue, op: Op, data: Option<Buf>) -> Option<Completion> {
    queue.submit(Of::new(op), Tag(0), data).ok()?;
    queue.ring();
    let mut done = Vec::new();
    while queue.poll(&mut done) == 0 {
        let until = queue.now().saturating_add(Nanos::from_secs(30));
        queue.wait(until).ok()?;
    }
    done.pop()
}

/// Whether a command came to its end, with success.
fn is_done(queue: &mut TcpQueue, op: Op, data: Option<Buf>) -> bool {
    run(queue, op, data).is_some_and(|ended| ended.status.is_success())
}

/// What a block holds: one number, over and over.
fn first_of(queue: &mut TcpQueue, lba: u64) -> u32 {
    let op = Op::Read {
        slba: Lba(lba),
        nlb: 1,
    };
    let ended = run(queue, op, Some(Buf::zeroed(BLOCK))).unwrap();
    assert!(ended.status.is_success(), "block {lba}: {}", ended.status);
    let data = ended.data.unwrap();
    let (words, _) = data.as_chunks::<4>();
    assert!(words.iter().all(|word| *word == words[0]), "block {lba}");
    u32::from_le_bytes(words[0])
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server in another process is under load meanwhile"
)]
#[test]
fn the_layer_is_mounted_after_every_kill() {
    let scratch = Scratch::new("chaos-kills");
    let kills = number("ZONELAB_KILLS").unwrap_or(KILLS);
    // So small that the collector works from the third round on.
    let drive = "--set zones.count=12 --no-timing --store drive --log off";
    let layer = "--ftl --ftl-map-share 10% --ftl-spare 40%";
    let options =
        format!("serve {PROFILE} --listen 127.0.0.1:0 --web 127.0.0.1:0 --json {drive} {layer}");
    let options: Vec<&str> = options.split(' ').collect();
    let mut places: Vec<Place> = Vec::new();
    let mut collected = 0.0;
    for round in 1..=kills as u32 {
        let mut served = Served::start(zonelab(&scratch.0, &options));
        let size = served.said["ftl"]["blocks"].as_u64().unwrap();
        places.resize((size / u64::from(LOAD)) as usize, Place::default());
        let (controller, mut queue) = served.connect();
        for (at, place) in (0..).zip(&mut places) {
            let found = first_of(&mut queue, at * u64::from(LOAD));
            let may = found == place.flushed || place.since.contains(&found);
            assert!(may, "round {round}, group {at}: {found} of {place:?}");
            *place = Place {
                flushed: found,
                since: Vec::new(),
            };
        }
        let (writes, done) = (200 + u64::from(round) * 37 % 200, AtomicU64::new(0));
        std::thread::scope(|scope| {
            let loading = scope.spawn(|| load(&mut queue, (size, round), &mut places, &done));
            while done.load(Ordering::Relaxed) < writes && !loading.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
            collected += served.metric("zonelab_ftl_collected_zones_total");
            served.process.kill().unwrap();
            served.process.wait().unwrap();
            loading.join().unwrap();
        });
        drop((queue, controller));
    }
    eprintln!("{kills} kills, {collected} zones emptied by the collector");
    assert!(
        collected > 0.0 || kills < KILLS,
        "no kill met the collector"
    );
}
