//! What a command passes before and after the flash: firmware cores and the host link.
//!
//! Both serve in order of arrival, so closed forms are exact.

use zonelab_device::{Nanos, Op};
use zonelab_nvme::zns::ZoneSendAction;

use crate::config::FrontEndConfig;
use crate::counterfactual::{Factor, Factors};
use crate::draw::Draw;

/// Firmware cores and host link of a drive.
#[derive(Clone, Debug)]
pub struct FrontEnd {
    config: FrontEndConfig,
    /// When each core is free.
    cores: Vec<Nanos>,
    /// The core that took the latest command.
    latest: usize,
    /// Logical blocks have 512 bytes.
    small_blocks: bool,
    /// Something is charged for commands that are accepted.
    charges: bool,
    /// Deviations of core times.
    variation: Draw,
    /// When the link is free, from the host and to the host.
    from_host_free: Nanos,
    to_host_free: Nanos,
    /// Commands wait for neither of these ([`crate::counterfactual`]).
    without: Factors,
}

impl FrontEnd {
    /// An idle front end.
    #[must_use]
    pub fn new(config: &FrontEndConfig, lba_bytes: u32) -> Self {
        Self {
            config: *config,
            latest: 0,
            small_blocks: lba_bytes == 512,
            charges: config.costs.charges(),
            variation: Draw::new(1),
            cores: vec![Nanos::ZERO; config.cores as usize],
            from_host_free: Nanos::ZERO,
            to_host_free: Nanos::ZERO,
            without: Factors::NONE,
        }
    }

    /// From now on no command waits because others have the cores, or the link.
    pub(crate) const fn leave_out(&mut self, factors: Factors) {
        self.without = factors;
    }

    /// When a core is done with a command that arrives now, and the command is through.
    #[inline]
    pub fn process(&mut self, now: Nanos, op: &Op) -> Nanos {
        let FrontEndConfig {
            read_ns,
            write_ns,
            append_ns,
            management_ns,
            costs,
            ..
        } = &self.config;
        let management = costs.management_latency_ns;
        let (cost, latency) = match op {
            Op::Read { .. } | Op::Compare { .. } | Op::Verify { .. } => {
                (*read_ns, costs.read_latency_ns)
            }
            Op::Write { .. } | Op::WriteZeroes { .. } | Op::Copy { .. } => {
                (*write_ns, costs.write_latency_ns)
            }
            Op::Append { .. } => (*append_ns, costs.append_latency_ns),
            Op::ZoneSend { action, .. } | Op::ZrwaSend { action, .. } => match *action {
                ZoneSendAction::OPEN => (costs.open_ns.unwrap_or(*management_ns), management),
                ZoneSendAction::CLOSE => (costs.close_ns.unwrap_or(*management_ns), management),
                _ => (*management_ns, management),
            },
            _ => (*management_ns, management),
        };
        // The first of those that are free earliest.
        let Some((latest, core)) = self.cores.iter_mut().enumerate().min_by_key(|(_, at)| **at)
        else {
            return now.saturating_add(latency);
        };
        self.latest = latest;
        let cost = vary(&mut self.variation, cost, costs.variation_ppm);
        if self.without.contains(Factor::Firmware) {
            return now.saturating_add(cost).saturating_add(latency);
        }
        *core = now.max(*core).saturating_add(cost);
        core.saturating_add(latency)
    }

    /// The latest command was accepted and moves `bytes`; `opened`: it opened a
    /// zone. Returns the core time that this takes besides.
    #[inline]
    pub fn charge(&mut self, op: &Op, bytes: u64, opened: bool) -> Nanos {
        if !self.charges {
            return Nanos::ZERO;
        }
        let costs = &self.config.costs;
        let Some(core) = self.cores.get_mut(self.latest) else {
            return Nanos::ZERO;
        };
        let (per_kib, writes) = match op {
            Op::Read { .. } | Op::Compare { .. } | Op::Verify { .. } => {
                (costs.read_per_kib_ns, false)
            }
            Op::Append { .. } => (costs.append_per_kib_ns, true),
            _ => (costs.write_per_kib_ns, true),
        };
        let mut extra = Nanos(per_kib.0.saturating_mul(bytes) / 1_024);
        if writes {
            let is_part = |unit: u32| !bytes.is_multiple_of(u64::from(unit));
            let additions = [
                (costs.unit_bytes.is_some_and(is_part), costs.part_of_unit_ns),
                (self.small_blocks, costs.small_blocks_ns),
                (opened, costs.implicit_open_ns),
            ];
            for (_, addition) in additions.into_iter().filter(|(applies, _)| *applies) {
                extra = extra.saturating_add(addition);
            }
        }
        *core = core.saturating_add(extra);
        extra
    }

    /// When a core is done with a write of the drive's own that begins now and moves `bytes`. It
    /// stands in line with what the host asks for.
    pub(crate) fn own_write(&mut self, now: Nanos, bytes: u64) -> Nanos {
        let Some(core) = self.cores.iter_mut().min_by_key(|at| **at) else {
            return now;
        };
        let cost = self.config.own_write_ns(bytes);
        let cost = vary(&mut self.variation, cost, self.config.costs.variation_ppm);
        if self.without.contains(Factor::Firmware) {
            return now.saturating_add(cost);
        }
        *core = now.max(*core).saturating_add(cost);
        *core
    }

    /// The latest command takes its core for that much longer.
    pub(crate) fn prolong(&mut self, time: Nanos) {
        if let Some(core) = self.cores.get_mut(self.latest) {
            *core = core.saturating_add(time);
        }
    }

    /// When the completion of a command whose work is done now is on its way
    /// to the host, and through; `None`: at once.
    #[inline]
    pub fn conclude(&mut self, now: Nanos, op: &Op) -> Option<Nanos> {
        let costs = &self.config.costs;
        let cost = match op {
            Op::Read { .. } | Op::Compare { .. } | Op::Verify { .. } => costs.read_completion_ns,
            Op::Write { .. } | Op::WriteZeroes { .. } | Op::Copy { .. } => {
                costs.write_completion_ns
            }
            Op::Append { .. } => costs.append_completion_ns,
            _ => return None,
        };
        let latency = costs.completion_latency_ns;
        let core = self.cores.iter_mut().min_by_key(|at| **at);
        let Some(core) = core.filter(|_| cost > Nanos::ZERO) else {
            return (latency > Nanos::ZERO).then(|| now.saturating_add(latency));
        };
        let cost = vary(&mut self.variation, cost, costs.variation_ppm);
        if self.without.contains(Factor::Firmware) {
            return Some(now.saturating_add(cost).saturating_add(latency));
        }
        *core = now.max(*core).saturating_add(cost);
        Some(core.saturating_add(latency))
    }

    /// When `bytes` that a core asks the host for at `at` have arrived. Only
    /// commands that are accepted fetch their data.
    #[inline]
    pub fn fetch(&mut self, at: Nanos, bytes: u64) -> Nanos {
        let Some(bytes_per_s) = self.config.link_bytes_per_s else {
            return at;
        };
        let time = transfer(bytes, bytes_per_s);
        if self.without.contains(Factor::Link) {
            return at.saturating_add(time);
        }
        self.from_host_free = at.max(self.from_host_free).saturating_add(time);
        self.from_host_free
    }

    /// Whether commands can leave the front end later than they arrive.
    #[must_use]
    pub fn delays(&self) -> bool {
        let latencies = self.config.costs.latencies();
        let waits = latencies.iter().any(|(_, time)| *time > Nanos::ZERO);
        !self.cores.is_empty() || self.config.link_bytes_per_s.is_some() || waits
    }

    /// When `bytes` that are ready now have reached the host; `None`: at once.
    pub fn deliver(&mut self, now: Nanos, bytes: u64) -> Option<Nanos> {
        let bytes_per_s = self.config.link_bytes_per_s.filter(|_| bytes > 0)?;
        let time = transfer(bytes, bytes_per_s);
        if self.without.contains(Factor::Link) {
            return Some(now.saturating_add(time));
        }
        self.to_host_free = now.max(self.to_host_free).saturating_add(time);
        Some(self.to_host_free)
    }
}

/// `time`, or one near it if times vary.
#[inline]
fn vary(variation: &mut Draw, time: Nanos, ppm: u32) -> Nanos {
    match ppm {
        0 => time,
        ppm => variation.vary(time, ppm),
    }
}

/// Time of `bytes` at `bytes_per_s`, rounded up.
pub(crate) fn transfer(bytes: u64, bytes_per_s: u64) -> Nanos {
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_s));
    Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}
