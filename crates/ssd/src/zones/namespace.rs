//! Namespaces: ranges of a drive's zones, with addresses and limits of their own.

use std::ops::Range;

use zonelab_device::{Lba, NamespaceId, Op, ZoneId};
use zonelab_nvme::zns::ZoneState;

use super::Zones;
use super::implicit::ImplicitList;
use super::table::State;
use crate::config::{NamespaceConfig, NamespaceKind, ZonesConfig};

/// What the zones of one namespace have in common, besides their size.
#[derive(Clone, Debug)]
pub struct Namespace {
    /// Its position among the conventional namespaces, if it is one.
    conventional: Option<u8>,
    /// Its zones, counted over the drive.
    zones: Range<u32>,
    /// First block, counted over the drive.
    first_lba: u64,
    /// Its size in logical blocks (NSZE).
    size_lbas: u64,
    /// What lies behind the last block of the drive, less the size of the namespace.
    beyond_lbas: u64,
    /// `u32::MAX`: unlimited.
    pub(super) max_active: u32,
    /// `u32::MAX`: unlimited.
    pub(super) max_open: u32,
    pub(super) active: u32,
    pub(super) open: u32,
    /// `u32::MAX`: unlimited.
    pub(super) max_zrwa: u32,
    /// Zones with a random write area.
    pub(super) zrwa: u32,
    pub(super) implicit: ImplicitList,
}

impl Namespace {
    /// Namespaces side by side on the zones of a drive of `drive_lbas` blocks.
    pub(super) fn side_by_side(
        zones: &ZonesConfig,
        namespaces: &[NamespaceConfig],
        drive_lbas: u64,
    ) -> Box<[Self]> {
        let mut next = 0;
        let mut logs = 0;
        let mut namespace = |config: &NamespaceConfig| {
            let conventional = logs;
            logs += u8::from(config.kind != NamespaceKind::Zoned);
            let first = next;
            next = first + config.zones;
            let size_lbas = config.size_lbas(zones);
            let conventional = match config.kind {
                NamespaceKind::Zoned => None,
                NamespaceKind::Conventional(_) => Some(conventional),
            };
            Self {
                conventional,
                zones: first..next,
                first_lba: u64::from(first) * zones.size_lbas,
                size_lbas,
                beyond_lbas: drive_lbas - size_lbas,
                max_active: config.max_active.unwrap_or(u32::MAX),
                max_open: config.max_open.unwrap_or(u32::MAX),
                active: 0,
                open: 0,
                max_zrwa: zones
                    .zrwa
                    .map_or(0, |zrwa| zrwa.max_areas.unwrap_or(u32::MAX)),
                zrwa: 0,
                implicit: ImplicitList::default(),
            }
        };
        namespaces.iter().map(&mut namespace).collect()
    }

    /// Its position among the conventional namespaces, if it is one.
    #[inline]
    pub(crate) const fn conventional(&self) -> Option<u8> {
        self.conventional
    }

    /// Its zones, counted over the drive.
    #[must_use]
    pub fn zones(&self) -> Range<u32> {
        self.zones.clone()
    }

    /// Its first block, counted over the drive.
    #[inline]
    #[must_use]
    pub const fn first_lba(&self) -> Lba {
        Lba(self.first_lba)
    }

    /// Number of open zones.
    #[must_use]
    pub const fn open_count(&self) -> u32 {
        self.open
    }

    /// Number of active zones: open or closed.
    #[must_use]
    pub const fn active_count(&self) -> u32 {
        self.active
    }

    /// Number of zones with a random write area.
    #[must_use]
    pub const fn zrwa_count(&self) -> u32 {
        self.zrwa
    }

    /// An operation on this namespace with its address counted over the drive.
    ///
    /// Blocks outside the namespace become blocks outside the drive, so that
    /// they fail as those do, at the same step of a command. With select-all,
    /// the address is that of the namespace.
    #[inline]
    #[must_use]
    pub fn on_drive(&self, op: Op) -> Op {
        self.moved(op, |lba, nlb| self.lba_on_drive(lba, nlb))
    }

    /// The first of `nlb` blocks of this namespace, counted over the drive; if
    /// they are not all of this namespace, one that lies outside the drive, or
    /// from which so many do.
    #[inline]
    pub(crate) fn lba_on_drive(&self, lba: u64, nlb: u32) -> u64 {
        let offset = if self.contains(lba, nlb) {
            self.first_lba
        } else {
            self.beyond_lbas
        };
        lba.saturating_add(offset)
    }

    /// Whether it has `nlb` blocks from its block `lba`.
    #[inline]
    pub(crate) const fn contains(&self, lba: u64, nlb: u32) -> bool {
        lba <= self.size_lbas && nlb as u64 <= self.size_lbas - lba
    }

    /// Whether `nlb` blocks from `lba`, counted over the drive, are all of it.
    pub(crate) const fn has_on_drive(&self, lba: Lba, nlb: u32) -> bool {
        lba.0 >= self.first_lba && self.contains(lba.0 - self.first_lba, nlb)
    }

    /// The reverse of [`Namespace::on_drive`].
    #[must_use]
    pub fn of_host(&self, op: Op) -> Op {
        let end = self.first_lba + self.size_lbas;
        self.moved(op, |lba, nlb| {
            let is_inside = (self.first_lba..=end).contains(&lba) && u64::from(nlb) <= end - lba;
            let offset = if is_inside {
                self.first_lba
            } else {
                self.beyond_lbas
            };
            lba.saturating_sub(offset)
        })
    }

    /// `op` with its address as `to` gives it for an address and a number of blocks.
    #[inline]
    fn moved(&self, mut op: Op, to: impl Fn(u64, u32) -> u64) -> Op {
        match &mut op {
            Op::Read { slba, nlb }
            | Op::Write { slba, nlb }
            | Op::Append { zslba: slba, nlb }
            | Op::WriteZeroes { slba, nlb }
            | Op::Compare { slba, nlb }
            | Op::Verify { slba, nlb } => slba.0 = to(slba.0, *nlb),
            // How many blocks it is, its source ranges say.
            Op::Copy { sdlba, .. } => sdlba.0 = to(sdlba.0, 1),
            Op::ZoneSend {
                slba,
                select_all: false,
                ..
            }
            | Op::ZrwaSend { slba, .. }
            | Op::ZoneReceive { slba, .. } => slba.0 = to(slba.0, 1),
            Op::Flush
            | Op::Deallocate { .. }
            | Op::ZoneSend { .. }
            | Op::HandleStatus
            | Op::HandleUpdate { .. } => {}
        }
        op
    }
}

impl Zones {
    /// The namespace of that identifier, if there is one.
    #[inline]
    #[must_use]
    pub fn namespace(&self, nsid: NamespaceId) -> Option<&Namespace> {
        // Identifiers begin at 1, so that of 0 becomes one that no drive has.
        self.namespaces.get(nsid.0.wrapping_sub(1) as usize)
    }

    /// The namespaces, NSID 1 first.
    #[must_use]
    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// The namespace of a zone, and the zone counted from its start.
    ///
    /// # Panics
    /// There is no such zone.
    #[must_use]
    pub fn in_namespace(&self, zone: ZoneId) -> (NamespaceId, ZoneId) {
        let index = self.zones[zone.0 as usize].namespace;
        let first = self.namespaces[usize::from(index)].zones.start;
        (NamespaceId(u32::from(index) + 1), ZoneId(zone.0 - first))
    }

    /// Number of open zones of all namespaces.
    #[must_use]
    pub fn open_count(&self) -> u32 {
        self.namespaces.iter().map(|namespace| namespace.open).sum()
    }

    /// Number of active zones of all namespaces: open or closed.
    #[must_use]
    pub fn active_count(&self) -> u32 {
        let active = self.namespaces.iter().map(|namespace| namespace.active);
        active.sum()
    }

    /// Number of implicitly opened zones of all namespaces.
    #[must_use]
    pub fn implicitly_open_count(&self) -> u32 {
        let implicit = self.namespaces.iter().map(|n| n.implicit.len());
        implicit.sum()
    }

    /// Checks everything that must always hold. Costs time proportional to the
    /// number of zones: for tests and fuzzing.
    ///
    /// # Panics
    /// Something does not hold, which is a defect of this module.
    pub fn assert_invariants(&self) {
        for (index, namespace) in self.namespaces.iter().enumerate() {
            let range = namespace.zones.start as usize..namespace.zones.end as usize;
            let mine = &self.zones[range];
            let count = |is: fn(State) -> bool| mine.iter().filter(|z| is(z.state)).count();
            assert!(mine.iter().all(|z| usize::from(z.namespace) == index));
            assert_eq!(namespace.open as usize, count(State::is_open));
            assert_eq!(namespace.active as usize, count(State::is_active));
            assert!(namespace.open <= namespace.max_open);
            assert!(namespace.active <= namespace.max_active);
            assert_eq!(
                namespace.implicit.len() as usize,
                count(|s| s == State::ImplicitlyOpened)
            );
            namespace.implicit.assert_lists(&self.zones);
        }
        self.assert_zrwa();
        for (index, zone) in self.zones.iter().enumerate() {
            let written = zone.written_lbas(self.capacity_lbas);
            assert!(zone.host_lbas <= written && written <= self.capacity_lbas);
            match zone.state.code() {
                ZoneState::EMPTY => assert_eq!(written, 0),
                ZoneState::FULL => assert_eq!(written, self.capacity_lbas),
                ZoneState::READ_ONLY | ZoneState::OFFLINE => {}
                _ => assert!(written < self.capacity_lbas && !zone.is_finished()),
            }
            assert_eq!(zone.has_extension, self.extensions.contains_key(&index));
        }
    }
}
