//! What threads share is made of these types, so that a schedule explorer can take
//! their place.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock. A thread that panicked with it has left nothing half done: critical
/// sections here do not panic but for violated invariants, and those end the program.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
