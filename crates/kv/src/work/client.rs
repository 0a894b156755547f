//! A client: one operation after the other.

use std::cell::RefCell;
use std::rc::Rc;

use zonelab_device::Nanos;
use zonelab_host::Rng;
use zonelab_host::tasks::Io;

use super::keys::{DISTINCT_BYTES, KeySpace};
use super::run::Shared;
use super::{KeyOrder, Kind, Operation, Operations, Spec};
use crate::content::Content;
use crate::lsm::{Db, DbError, Value};

/// Operations that a client without an end does in no time before it lets time go on.
const AT_ONCE: u32 = 1_000;

/// Values that are put: the number of the key, and then bytes that look random.
pub(super) struct Values {
    keeps_data: bool,
    pattern: Vec<u8>,
    next: usize,
}

impl Values {
    /// Values of at most `largest` bytes; only sizes, unless the device keeps data.
    pub(super) fn new(largest: u32, keeps_data: bool, seed: u64) -> Self {
        let len = if keeps_data {
            2 * largest as usize + 64
        } else {
            0
        };
        let mut rng = Rng::new(seed, 0);
        let words = core::iter::repeat_with(|| rng.next_u64().to_le_bytes()).take(len.div_ceil(8));
        Self {
            keeps_data,
            pattern: words.flatten().collect(),
            next: 0,
        }
    }

    fn value(&mut self, key: u64, len: u32) -> Value<'_> {
        if !self.keeps_data {
            return Value::Sized(len);
        }
        let len = len as usize;
        let from = self.next % (self.pattern.len() - len).max(1);
        self.next += 61;
        let value = &mut self.pattern[from..from + len];
        let name = key.to_le_bytes();
        let named = len.min(name.len());
        value[..named].copy_from_slice(&name[..named]);
        Value::Bytes(value)
    }
}

/// Whether a value that was read is one of `key`.
fn is_of(content: &Content, key: u64) -> bool {
    match content {
        Content::Bytes(bytes) => bytes.iter().zip(key.to_le_bytes()).all(|(a, b)| *a == b),
        Content::Sized(_) => true,
    }
}

pub(super) struct Client {
    io: Io,
    db: Db,
    order: KeyOrder,
    key: Vec<u8>,
    key_bytes: u64,
    values: Values,
}

/// What an operation came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    /// Bytes of keys and values.
    pub(super) bytes: u64,
    /// The key was not there.
    pub(super) is_missing: bool,
    /// A value was not that of its key.
    pub(super) is_wrong: bool,
}

impl Client {
    pub(super) fn new(io: &Io, db: &Db, spec: &Spec, values: Values) -> Self {
        let key_bytes = spec.key_bytes as usize;
        let held = if values.keeps_data {
            key_bytes
        } else {
            DISTINCT_BYTES
        };
        Self {
            io: io.clone(),
            db: db.clone(),
            order: spec.order,
            key: vec![0; held],
            key_bytes: key_bytes as u64,
            values,
        }
    }

    /// Does `operations` until there are no more, or the run is over.
    pub(super) async fn run(
        mut self,
        operations: Rc<RefCell<Operations>>,
        space: Rc<RefCell<KeySpace>>,
        shared: Rc<Shared>,
        is_counted: bool,
    ) -> Result<(), DbError> {
        let mut at_once = 0;
        while !shared.is_stopped.get() && (is_counted || !shared.is_over.get()) {
            let next = operations.borrow_mut().next(&mut space.borrow_mut());
            let Some(operation) = next else { break };
            // What the client computed and did not wait for yet is part of it.
            let before = self.db.now();
            let done = match self.operation(operation).await {
                Ok(done) => done,
                Err(error) => {
                    // The others end too.
                    shared.is_stopped.set(true);
                    return Err(error);
                }
            };
            let now = self.db.now();
            shared.record(operation.kind, before, now, &done);
            if is_counted {
                shared.done.set(shared.done.get() + 1);
                continue;
            }
            at_once = if now > before { 0 } else { at_once + 1 };
            if at_once == AT_ONCE {
                at_once = 0;
                self.io.sleep_until(now + Nanos::from_us(1)).await;
            }
        }
        Ok(())
    }

    pub(super) async fn put(&mut self, id: u64, len: u32) -> Result<(), DbError> {
        self.order.write(id, &mut self.key);
        self.db.put(&self.key, self.values.value(id, len)).await
    }

    async fn operation(&mut self, operation: Operation) -> Result<Done, DbError> {
        let Operation { kind, key, len } = operation;
        match kind {
            Kind::Insert | Kind::Update => {
                self.put(key, len).await?;
                Ok(self.moved(u64::from(len)))
            }
            Kind::Delete => {
                self.order.write(key, &mut self.key);
                self.db.delete(&self.key).await?;
                Ok(self.moved(0))
            }
            Kind::Get => self.get(key).await,
            Kind::ReadModifyWrite => {
                let read = self.get(key).await?;
                self.put(key, len).await?;
                let bytes = read.bytes + self.moved(u64::from(len)).bytes;
                Ok(Done { bytes, ..read })
            }
            Kind::Scan => {
                self.order.write(key, &mut self.key);
                let mut bytes = 0;
                let key_bytes = self.key_bytes;
                let each = |_: &[u8], value_bytes: u64| bytes += key_bytes + value_bytes;
                let found = self.db.scan(&self.key, len as usize, each).await?;
                Ok(Done {
                    bytes,
                    is_missing: found == 0,
                    is_wrong: false,
                })
            }
        }
    }

    async fn get(&mut self, key: u64) -> Result<Done, DbError> {
        self.order.write(key, &mut self.key);
        let found = self.db.get(&self.key).await?;
        Ok(Done {
            bytes: self.key_bytes + found.as_ref().map_or(0, Content::len),
            is_missing: found.is_none(),
            is_wrong: found.is_some_and(|value| !is_of(&value, key)),
        })
    }

    fn moved(&self, value_bytes: u64) -> Done {
        Done {
            bytes: self.key_bytes + value_bytes,
            ..Done::default()
        }
    }
}
