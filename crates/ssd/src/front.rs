//! What a command passes before and after the flash: firmware cores and the host link.
//!
//! Both serve in order of arrival, so closed forms are exact.

use zonelab_device::{Nanos, Op};

use crate::config::FrontEndConfig;

/// Firmware cores and host link of a drive.
#[derive(Clone, Debug)]
pub struct FrontEnd {
    config: FrontEndConfig,
    /// When each core is free.
    cores: Vec<Nanos>,
    /// When the link is free, from the host and to the host.
    from_host_free: Nanos,
    to_host_free: Nanos,
}

impl FrontEnd {
    /// An idle front end.
    #[must_use]
    pub fn new(config: &FrontEndConfig) -> Self {
        Self {
            config: *config,
            cores: vec![Nanos::ZERO; config.cores as usize],
            from_host_free: Nanos::ZERO,
            to_host_free: Nanos::ZERO,
        }
    }

    /// When a core is done with a command that arrives now.
    #[inline]
    pub fn process(&mut self, now: Nanos, op: &Op) -> Nanos {
        let Some(core) = self.cores.iter_mut().min() else {
            return now;
        };
        let cost = match op {
            Op::Read { .. } => self.config.read_ns,
            Op::Write { .. } => self.config.write_ns,
            Op::Append { .. } => self.config.append_ns,
            _ => self.config.management_ns,
        };
        *core = now.max(*core) + cost;
        *core
    }

    /// When `bytes` that a core asks the host for at `at` have arrived. Only
    /// commands that are accepted fetch their data.
    #[inline]
    pub fn fetch(&mut self, at: Nanos, bytes: u64) -> Nanos {
        let Some(bytes_per_s) = self.config.link_bytes_per_s else {
            return at;
        };
        self.from_host_free = at
            .max(self.from_host_free)
            .saturating_add(transfer(bytes, bytes_per_s));
        self.from_host_free
    }

    /// Whether commands can leave the front end later than they arrive.
    #[must_use]
    pub fn delays(&self) -> bool {
        !self.cores.is_empty() || self.config.link_bytes_per_s.is_some()
    }

    /// When `bytes` that are ready now have reached the host; `None`: at once.
    pub fn deliver(&mut self, now: Nanos, bytes: u64) -> Option<Nanos> {
        let bytes_per_s = self.config.link_bytes_per_s.filter(|_| bytes > 0)?;
        self.to_host_free = now
            .max(self.to_host_free)
            .saturating_add(transfer(bytes, bytes_per_s));
        Some(self.to_host_free)
    }
}

/// Time of `bytes` at `bytes_per_s`, rounded up.
fn transfer(bytes: u64, bytes_per_s: u64) -> Nanos {
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_s));
    Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}
