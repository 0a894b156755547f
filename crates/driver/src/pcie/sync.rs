//! What threads, and the device, share is made of.
//!
//! Modules whose schedules are explored take these types from here: `tests/schedules` compiles
//! the same files with those of loom in their place.

pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
