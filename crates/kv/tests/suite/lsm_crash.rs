//! Losses of power under the store.
//!
//! After each, the store is what it was after some number of its operations:
//! at least those that were synced, at most those that were begun.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::support::lsm::{Op, any_options, any_roomy, value_of};
use crate::support::{Cut, End, Machine, Met, each_seed};
use zonelab_host::Rng;
use zonelab_host::tasks::Io;
use zonelab_kv::Content;
use zonelab_kv::files::{Files, FilesConfig};
use zonelab_kv::lsm::{Db, DbError, Options, Shadow, Value};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a client did, and what it was told.
#[derive(Default)]
struct History {
    /// What the store held when it was opened.
    base: Map,
    /// Writes that were begun since: the value, or nothing for a delete.
    writes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// So many of them are durable for sure.
    synced: usize,
    /// The first round has come so far that there is a file system.
    is_formatted: bool,
}

impl History {
    /// Finds out which of the possible states this is, and goes on from it.
    fn settle(&mut self, found: Map) {
        let mut state = self.base.clone();
        let mut matching = None;
        for done in 0..=self.writes.len() {
            if let Some(before) = done.checked_sub(1) {
                let (key, value) = &self.writes[before];
                match value {
                    Some(value) => drop(state.insert(key.clone(), value.clone())),
                    None => drop(state.remove(key)),
                }
            }
            if done >= self.synced && state == found {
                matching = Some(done);
            }
        }
        let (synced, begun) = (self.synced, self.writes.len());
        assert!(
            matching.is_some(),
            "not the state after any of {synced} to {begun} writes: {:?}",
            found.keys().collect::<Vec<_>>()
        );
        *self = Self {
            base: found,
            is_formatted: true,
            ..Self::default()
        };
    }
}

/// All that the store holds, by a range query, each value by a point query.
async fn everything(db: &Db) -> Result<Map, DbError> {
    let mut keys = Vec::new();
    let each = |key: &[u8], len| keys.push((key.to_vec(), len));
    db.scan(&[], usize::MAX, each).await?;
    let mut found = Map::new();
    for (key, len) in keys {
        match db.get(&key).await? {
            Some(Content::Bytes(value)) => {
                assert_eq!(value.len() as u64, len);
                found.insert(key, value);
            }
            other => panic!("{key:?} is in a range and {other:?} at its point"),
        }
    }
    Ok(found)
}

async fn client(
    io: Io,
    config: FilesConfig,
    options: Options,
    history: Rc<RefCell<History>>,
    ops: Vec<Op>,
) -> Result<(), DbError> {
    let is_formatted = history.borrow().is_formatted;
    let files = if is_formatted {
        Files::mount(&io, config).await?
    } else {
        Files::format(&io, config).await?
    };
    history.borrow_mut().is_formatted = true;
    let shadow = Shadow::default();
    let mut db = Db::open_with(&io, &files, options.clone(), shadow.clone()).await?;
    let found = everything(&db).await?;
    history.borrow_mut().settle(found);
    for op in ops {
        let begun = {
            let mut history = history.borrow_mut();
            match &op {
                Op::Put(key, len, id) => {
                    history
                        .writes
                        .push((key.clone(), Some(value_of(*id, *len))));
                }
                Op::Delete(key) => history.writes.push((key.clone(), None)),
                _ => {}
            }
            history.writes.len()
        };
        match op {
            Op::Put(key, len, id) => db.put(&key, Value::Bytes(&value_of(id, len))).await?,
            Op::Delete(key) => db.delete(&key).await?,
            Op::Get(key) => drop(db.get(&key).await?),
            Op::Scan(from, limit) => drop(db.scan(&from, limit, |_, _| {}).await?),
            Op::Sync => {
                db.sync().await?;
                history.borrow_mut().synced = begun;
            }
            Op::Flush => {
                db.flush().await?;
                history.borrow_mut().synced = begun;
            }
            Op::Reopen => {
                db.close().await?;
                history.borrow_mut().synced = begun;
                db = Db::open_with(&io, &files, options.clone(), shadow.clone()).await?;
            }
        }
        if options.wal_sync == zonelab_kv::lsm::WalSync::EachWrite {
            history.borrow_mut().synced = begun;
        }
    }
    Ok(())
}

#[test]
fn what_was_synced_survives_losses_of_power_and_nothing_has_a_gap() {
    let met = RefCell::new(Met::default());
    each_seed("what_was_synced_survives", 700, |seed| {
        let mut rng = Rng::new(seed, 0);
        let drive = any_roomy(&mut rng);
        let config = FilesConfig {
            keeps_data: true,
            io_bytes: 64 << 10,
            finish_threshold_percent: [0, 50, 99][rng.below(3) as usize],
            ..FilesConfig::default()
        };
        let mut options = any_options(&mut rng);
        let mut machine = Machine::new(&drive);
        let history = Rc::new(RefCell::new(History::default()));
        for _ in 0..4 {
            // Often enough while it is mounted and recovers.
            let most = [50, 300, 2_000][rng.below(3) as usize];
            let cut = Cut::draw(&mut rng, most);
            let ops = Op::draw_many(&mut rng, 300);
            let end = machine.run_until(Some(cut), {
                let (config, options) = (config.clone(), options.clone());
                let history = Rc::clone(&history);
                move |io| client(io, config, options, history, ops)
            });
            if let End::Returned(result) = end {
                result.expect("the drive works and is large enough");
            }
            // Before there is a file system, nothing was promised.
            if history.borrow().base.is_empty() && history.borrow().writes.is_empty() {
                history.borrow_mut().is_formatted = false;
            }
            options = Options {
                num_levels: options.num_levels,
                ..any_options(&mut rng)
            };
        }
        let last = machine.run(|io| client(io, config, options, history, Vec::new()));
        last.expect("the drive works");
        met.borrow_mut().add(machine.met);
    });
    met.into_inner().is_enough();
}
