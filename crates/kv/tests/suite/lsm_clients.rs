//! Several clients of one store at the same time, with losses of power.
//!
//! Every query must be answered as if each operation had happened at one moment
//! between its call and its return (linearizability, per key), range queries
//! all at the moment of their call. After a loss of power, what a returned sync
//! covers is there, and so is all that was over before something began that is
//! there.

use std::cell::RefCell;
use std::rc::Rc;

use crate::support::lsm::{any_options, any_roomy, key_of, value_of};
use crate::support::{Cut, End, Machine, Met, each_seed};
use futures_util::future::join_all;
use zonelab_host::Rng;
use zonelab_host::tasks::Io;
use zonelab_kv::Content;
use zonelab_kv::files::{Files, FilesConfig};
use zonelab_kv::lsm::{Db, DbError, Options, Shadow, Value, WalSync};

/// What a key holds: of the values that it ever had, the one of this length.
/// `None`: nothing.
type Held = Option<u32>;

/// An operation on one key. Times count calls and returns of all clients.
#[derive(Clone, Copy, Debug)]
struct Op {
    begun: u64,
    /// [`NEVER`]: it has not returned.
    ended: u64,
    /// What was written, or found.
    held: Held,
}

const NEVER: u64 = u64::MAX;

/// What was there before all operations.
fn base(held: Held) -> Op {
    Op {
        begun: 0,
        ended: 0,
        held,
    }
}

impl Op {
    fn is_before(&self, other: &Self) -> bool {
        self.ended < other.begun
    }
}

/// What is known of a key.
#[derive(Clone, Debug, Default)]
struct Key {
    bytes: Vec<u8>,
    /// The first is what was there when the store was opened.
    writes: Vec<Op>,
    reads: Vec<Op>,
    /// No value had this length, or a larger one.
    next_len: u32,
}

/// When a value was there for sure: from the first return of an operation that
/// wrote or found it to the last call of one. If the return is the later of the
/// two, all those operations may have happened at any one moment between.
#[derive(Clone, Copy)]
struct Zone {
    first_end: u64,
    last_begin: u64,
}

impl Zone {
    fn of(op: &Op) -> Self {
        Self {
            first_end: op.ended,
            last_begin: op.begun,
        }
    }

    fn is_held(&self) -> bool {
        self.first_end < self.last_begin
    }

    /// The other one must have been there, for a moment at least, while this one
    /// was.
    fn excludes(&self, other: &Self) -> bool {
        self.first_end < other.last_begin && other.first_end < self.last_begin
    }
}

impl Key {
    /// Whether there is an order of the operations that explains all answers:
    /// Gibbons and Korach, "Testing shared memories", 1997, for values that are
    /// written once. Of deletes nobody knows which one a query saw; for each
    /// query there must be one that it can have been.
    fn check(&self) {
        let values: Vec<Op> = self.writes.clone();
        let mut zones: Vec<Zone> = values.iter().map(Zone::of).collect();
        for read in self.reads.iter().filter(|read| read.held.is_some()) {
            let at = values.iter().position(|write| write.held == read.held);
            let at = at.unwrap_or_else(|| panic!("{read:?} of what was never written"));
            assert!(!read.is_before(&values[at]), "{read:?} before its write");
            zones[at].first_end = zones[at].first_end.min(read.ended);
            zones[at].last_begin = zones[at].last_begin.max(read.begun);
        }
        let held: Vec<usize> = (0..zones.len()).filter(|at| zones[*at].is_held()).collect();
        for &at in &held {
            let wrong =
                (0..zones.len()).find(|other| *other != at && zones[at].excludes(&zones[*other]));
            assert!(
                wrong.is_none(),
                "{:?} was there all the time, and so was {:?}",
                values[at],
                wrong.map(|other| values[other])
            );
        }
        for read in self.reads.iter().filter(|read| read.held.is_none()) {
            let unseen = held.iter().find(|at| zones[**at].excludes(&Zone::of(read)));
            assert!(
                unseen.is_none(),
                "{read:?} found nothing where {:?} was all the time",
                unseen.map(|at| values[*at])
            );
            let may_be = |gone: &&Op| {
                let between = |other: &Op| gone.is_before(other) && other.is_before(read);
                gone.held.is_none() && gone.begun < read.ended && !values.iter().any(between)
            };
            assert!(
                values.iter().any(|gone| may_be(&gone)),
                "{read:?} found nothing, and something had been written"
            );
        }
    }

    /// The writes that can be the last one that is left, if the key now holds
    /// `found` and all are durable that had ended at `durable`.
    fn left(&self, found: Held, durable: u64) -> Vec<Op> {
        let lost = |left: &Op, other: &Op| left.is_before(other) && other.ended <= durable;
        let of_it = self.writes.iter().filter(|write| write.held == found);
        of_it
            .filter(|left| !self.writes.iter().any(|other| lost(left, other)))
            .copied()
            .collect()
    }
}

/// What the clients did, and what they were told.
#[derive(Default)]
struct History {
    keys: Vec<Key>,
    now: u64,
    /// All writes are durable that had ended by then.
    durable: u64,
    is_formatted: bool,
}

impl History {
    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Compares what a crash, or a clean end, has left with what it may have left,
    /// and goes on from there.
    fn settle(&mut self, found: &[Held]) {
        // A write that is left has all those with it that were over before it began.
        let last_begin = |key: &Key, held: Held| -> u64 {
            let left = key.writes.iter().filter(|write| write.held == held);
            match held {
                Some(_) => left.map(|write| write.begun).max().unwrap_or(0),
                // It may be any of them.
                None => left.map(|write| write.begun).min().unwrap_or(0),
            }
        };
        let seen = self.keys.iter().zip(found);
        let begun = seen.map(|(key, held)| last_begin(key, *held)).max();
        let durable = self.durable.max(begun.unwrap_or(0));
        for (key, held) in self.keys.iter_mut().zip(found) {
            assert!(
                !key.left(*held, durable).is_empty(),
                "{:?} holds {held:?}, and all is durable up to {durable}: {:?}",
                key.bytes,
                key.writes
            );
            key.writes = vec![base(*held)];
            key.reads.clear();
        }
        (self.now, self.durable) = (0, 0);
    }
}

/// A client, and what it is about to do.
struct Client {
    db: Db,
    history: Rc<RefCell<History>>,
    rng: Rng,
    weights: [u64; 6],
    /// Values have this length times their number.
    spread: u32,
}

impl Client {
    async fn work(mut self, operations: u64) -> Result<(), DbError> {
        for _ in 0..operations {
            let keys = self.history.borrow().keys.len() as u64;
            let key = self.rng.below(keys) as usize;
            let mut at = self.rng.below(self.weights.iter().sum());
            let kind = self.weights.iter().position(|weight| {
                let is_it = at < *weight;
                at = at.saturating_sub(*weight);
                is_it
            });
            match kind {
                Some(0) => self.write(key, true).await?,
                Some(1) => self.write(key, false).await?,
                Some(2) => self.get(key).await?,
                Some(3) => self.scan(key).await?,
                Some(4) => self.make_durable(false).await?,
                _ => self.make_durable(true).await?,
            }
        }
        Ok(())
    }

    async fn write(&self, key: usize, is_put: bool) -> Result<(), DbError> {
        let (bytes, held, at) = {
            let mut history = self.history.borrow_mut();
            let begun = history.tick();
            let of = &mut history.keys[key];
            let held = is_put.then_some(of.next_len);
            of.next_len += u32::from(is_put);
            of.writes.push(Op {
                begun,
                ended: NEVER,
                held,
            });
            (of.bytes.clone(), held, of.writes.len() - 1)
        };
        match held {
            Some(number) => {
                let value = value_of(key as u64, number * self.spread);
                self.db.put(&bytes, Value::Bytes(&value)).await?;
            }
            None => self.db.delete(&bytes).await?,
        }
        let mut history = self.history.borrow_mut();
        let ended = history.tick();
        history.keys[key].writes[at].ended = ended;
        if self.db.options().wal_sync == WalSync::EachWrite {
            history.durable = ended.max(history.durable);
        }
        Ok(())
    }

    async fn get(&self, key: usize) -> Result<(), DbError> {
        let begun = self.history.borrow_mut().tick();
        let bytes = self.history.borrow().keys[key].bytes.clone();
        let found = self.db.get(&bytes).await?;
        let mut history = self.history.borrow_mut();
        let ended = history.tick();
        let held = found.map(|content| match content {
            Content::Bytes(bytes) => {
                let len = bytes.len() as u64;
                assert!(bytes == value_of(key as u64, len as u32), "not whole");
                self.number_of(len)
            }
            Content::Sized(_) => panic!("the device keeps data"),
        });
        history.keys[key].reads.push(Op { begun, ended, held });
        Ok(())
    }

    fn number_of(&self, len: u64) -> u32 {
        let spread = u64::from(self.spread);
        assert!(len.is_multiple_of(spread), "no value has {len} bytes");
        (len / spread) as u32
    }

    /// It sees the store as it is now.
    async fn scan(&mut self, from: usize) -> Result<(), DbError> {
        let limit = 1 + self.rng.below(20) as usize;
        let (begun, ended, bytes) = {
            let mut history = self.history.borrow_mut();
            let (begun, ended) = (history.tick(), history.tick());
            (begun, ended, history.keys[from].bytes.clone())
        };
        let mut found = Vec::new();
        let each = |key: &[u8], len| found.push((key.to_vec(), len));
        self.db.scan(&bytes, limit, each).await?;
        let is_all = found.len() < limit;
        let mut history = self.history.borrow_mut();
        let mut found = found.into_iter().peekable();
        for key in &mut history.keys[from..] {
            if !is_all && found.peek().is_none() {
                break;
            }
            let value = found.next_if(|(bytes, _)| *bytes == key.bytes);
            let held = value.map(|(_, len)| self.number_of(len));
            key.reads.push(Op { begun, ended, held });
        }
        assert!(found.next().is_none(), "a key out of order, or of nobody");
        Ok(())
    }

    async fn make_durable(&self, by_flush: bool) -> Result<(), DbError> {
        let begun = self.history.borrow_mut().tick();
        match by_flush {
            true => self.db.flush().await?,
            false => self.db.sync().await?,
        }
        let mut history = self.history.borrow_mut();
        history.durable = begun.max(history.durable);
        Ok(())
    }
}

/// How a store is used until power is lost or all clients have done their work.
#[derive(Clone)]
struct Round {
    config: FilesConfig,
    options: Options,
    clients: u64,
    operations: u64,
    spread: u32,
    seed: u64,
}

async fn program(io: Io, round: Round, history: Rc<RefCell<History>>) -> Result<(), DbError> {
    let is_formatted = history.borrow().is_formatted;
    let files = match is_formatted {
        true => Files::mount(&io, round.config).await?,
        false => Files::format(&io, round.config).await?,
    };
    history.borrow_mut().is_formatted = true;
    let db = Db::open_with(&io, &files, round.options, Shadow::default()).await?;
    let mut found = Vec::new();
    let keys = history.borrow().keys.clone();
    for key in &keys {
        let value = db.get(&key.bytes).await?;
        found.push(value.map(|value| value.len() as u32 / round.spread));
    }
    history.borrow_mut().settle(&found);
    let mut rng = Rng::new(round.seed, 0);
    let clients: Vec<_> = (0..round.clients)
        .map(|_| {
            let mut weights = [30, 10, 30, 4, 2, 1].map(|most| rng.below(most + 1));
            weights[0] += 1;
            let client = Client {
                db: db.clone(),
                history: Rc::clone(&history),
                rng: Rng::new(rng.next_u64(), 1),
                weights,
                spread: round.spread,
            };
            io.spawn(client.work(round.operations))
        })
        .collect();
    for end in join_all(clients).await {
        end?;
    }
    db.close().await?;
    history.borrow_mut().durable = NEVER;
    Ok(())
}

fn new_history(keys: u64) -> History {
    let mut keys: Vec<Key> = (0..keys)
        .map(|number| Key {
            bytes: key_of(number),
            writes: vec![base(None)],
            ..Key::default()
        })
        .collect();
    keys.sort_by(|a, b| a.bytes.cmp(&b.bytes));
    History {
        keys,
        ..History::default()
    }
}

#[test]
fn clients_see_one_store_that_survives_losses_of_power() {
    let met = RefCell::new(Met::default());
    each_seed("clients_see_one_store", 200, |seed| {
        let mut rng = Rng::new(seed, 0);
        let drive = any_roomy(&mut rng);
        let mut machine = Machine::new(&drive);
        let history = Rc::new(RefCell::new(new_history(1 + rng.below(30))));
        let spread = [1, 3, 20][rng.below(3) as usize];
        for number in 0..5 {
            let round = Round {
                config: FilesConfig {
                    keeps_data: true,
                    io_bytes: 64 << 10,
                    finish_threshold_percent: [0, 50, 99][rng.below(3) as usize],
                    ..FilesConfig::default()
                },
                options: Options {
                    num_levels: 5,
                    ..any_options(&mut rng)
                },
                clients: 2 + rng.below(4),
                operations: 150,
                spread,
                seed: rng.next_u64(),
            };
            let most = [100, 1_000, 5_000][rng.below(3) as usize];
            let cut = (number < 4).then(|| Cut::draw(&mut rng, most));
            let end = machine.run_until(cut, {
                let history = Rc::clone(&history);
                move |io| program(io, round, history)
            });
            if let End::Returned(end) = end {
                end.expect("the drive works and is large enough");
            }
            for key in &history.borrow().keys {
                key.check();
            }
        }
        met.borrow_mut().add(machine.met);
    });
    met.into_inner().is_enough();
}

/// The checker itself: answers that no store can have given.
#[test]
fn wrong_answers_are_seen() {
    let op = |begun, ended, held| Op { begun, ended, held };
    let history = |writes: &[Op], reads: &[Op]| {
        let key = Key {
            writes: [&[base(None)], writes].concat(),
            reads: reads.to_vec(),
            ..Key::default()
        };
        std::panic::catch_unwind(|| key.check()).is_ok()
    };
    let (one, two) = (op(1, 2, Some(1)), op(5, 8, Some(2)));
    // While it is written, a value may be there or not, but does not go again.
    assert!(history(&[one, two], &[op(6, 7, Some(1))]));
    assert!(history(&[one, two], &[op(6, 7, Some(2))]));
    let there_and_back = [op(6, 7, Some(2)), op(9, 10, Some(1))];
    assert!(!history(&[one, two], &there_and_back));
    // Old, too early, never written, absent, absent too late.
    assert!(!history(&[one, two], &[op(9, 10, Some(1))]));
    assert!(!history(&[one, two], &[op(3, 4, Some(2))]));
    assert!(!history(&[one, two], &[op(3, 4, Some(3))]));
    assert!(!history(&[one, two], &[op(3, 4, None)]));
    let gone = op(11, 14, None);
    assert!(history(&[one, two, gone], &[op(12, 13, None)]));
    assert!(history(&[one, two, gone], &[op(12, 13, Some(2))]));
    let gone_and_back = [op(12, 13, None), op(15, 16, Some(2))];
    assert!(!history(&[one, two, gone], &gone_and_back));
    let later = [op(12, 20, Some(2)), op(15, 16, None)];
    assert!(history(&[one, two, gone], &later));
    // What is left after a loss of power.
    let key = Key {
        writes: vec![base(None), one, two, op(9, NEVER, Some(3))],
        ..Key::default()
    };
    for (durable, left) in [(0, 4), (2, 3), (8, 2)] {
        let found = [None, Some(1), Some(2), Some(3)];
        let may_be = found
            .iter()
            .filter(|held| !key.left(**held, durable).is_empty());
        assert_eq!(may_be.count(), left, "durable up to {durable}");
    }
}
