//! A drive with a store, commands for it, and what the host was told.

use std::collections::BTreeMap;

use zonelab_device::{Buf, Command, Completion, Lba, NamespaceId, Nanos, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_oracle::ends::ZoneView;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::contents::Contents;
use zonelab_ssd::{Control, Drive, DriveModel, profile};
use zonelab_store::open;
use zonelab_target::controller::formatted;

use super::history::{Candidate, History, Value, ZEROED, check_block};
use super::tape::Tape;
use crate::draw::{Draw, Weights};

const ACTIONS: [ZoneSendAction; 4] = [
    ZoneSendAction::OPEN,
    ZoneSendAction::CLOSE,
    ZoneSendAction::FINISH,
    ZoneSendAction::RESET,
];

pub(super) struct Player {
    drive: Drive,
    tape: Tape,
    now: Nanos,
    zones: Vec<History>,
    /// By conventional namespace and block.
    blocks: BTreeMap<u32, Vec<Vec<Value>>>,
    next_tag: u32,
    events: u64,
    in_flight: usize,
    /// Completions that the host has not seen yet.
    done: Vec<Completion>,
    has_failed: bool,
    /// While this many steps were made, the drive was being formatted.
    formatting: Vec<std::ops::Range<usize>>,
}

impl Player {
    /// A drive from the store on a tape, which is whole.
    pub(super) fn open(config: &DriveConfig, tape: &Tape) -> Self {
        let (drive, zones, blocks) = recovered(config, tape);
        let from = |stamp: &u32| {
            vec![Value {
                tag: 0,
                stamp: *stamp,
                from: (0, 0),
                told: Some((0, 0)),
            }]
        };
        let candidate = |(view, stamps)| {
            History(vec![Candidate {
                tag: 0,
                from: 0,
                told: Some(0),
                view,
                stamps,
            }])
        };
        let blocks = blocks
            .iter()
            .map(|(nsid, all)| (*nsid, all.iter().map(from).collect()));
        Self {
            // Stamps of sessions before are not used again.
            next_tag: 1
                + zones
                    .iter()
                    .flat_map(|(_, stamps)| stamps)
                    .max()
                    .map_or(0, |x| *x)
                + blocks.len() as u32 * 100_000,
            blocks: blocks.collect(),
            zones: zones.into_iter().map(candidate).collect(),
            drive,
            tape: tape.clone(),
            now: Nanos::ZERO,
            events: 1,
            in_flight: 0,
            done: Vec::new(),
            has_failed: false,
            formatting: Vec::new(),
        }
    }

    pub(super) const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Commands, as many as are drawn, or until the store fails.
    pub(super) fn play(&mut self, draw: &mut Draw<'_>) {
        let weights = Weights::<6>::draw(draw);
        for _ in 0..draw.int(1..=120_u8) {
            let kind = weights.choose(draw);
            self.command(draw, kind);
            match draw.int(0..=5_u8) {
                0..=2 => self.advance(draw.int(1..=40)),
                3 => self.advance(u32::MAX),
                _ => {}
            }
            if self.has_failed {
                return;
            }
            if draw.one_in(60) {
                self.format(draw);
            }
            self.drive.assert_invariants();
        }
    }

    /// A command of some kind for a zone, and whether it has an extension with it;
    /// `None`: what was drawn was none, and is done.
    fn draw_op(
        &mut self,
        draw: &mut Draw<'_>,
        (kind, zone, slba): (usize, ZoneId, Lba),
    ) -> Option<(Op, bool)> {
        let written = self.drive.zones().written_lbas(zone);
        let nlb = draw.int(1..=24_u32);
        let send = |action, select_all| Op::ZoneSend {
            slba,
            action,
            select_all,
        };
        Some(match (kind, draw.int(0..=9_u8)) {
            (1, 0) => {
                let to = draw.pick(&[ZoneState::READ_ONLY, ZoneState::OFFLINE]);
                let from = self.tape.len();
                // Logs cannot fail, and offline zones not again.
                let _ = self
                    .drive
                    .control(self.now, &Control::FailZone { zone, to });
                self.note(0, from, None);
                return None;
            }
            (1 | 2, select) => (send(draw.pick(&ACTIONS), select == 1), false),
            (3, 0..=4) => (send(ZoneSendAction::SET_DESCRIPTOR_EXTENSION, false), true),
            (3, _) => {
                let (slba, nlb) = (Lba(slba.0 + written), nlb);
                (Op::WriteZeroes { slba, nlb }, false)
            }
            (4, 0..=2) => {
                let action = ZoneSendAction::OPEN;
                (Op::ZrwaSend { slba, action }, false)
            }
            (4, 3) => {
                let slba = Lba(slba.0 + written + u64::from(nlb) - 1);
                let action = ZoneSendAction::ZRWA_FLUSH;
                let select_all = false;
                let op = Op::ZoneSend {
                    slba,
                    action,
                    select_all,
                };
                (op, false)
            }
            (4, zeroes) if self.drive.zones().has_zrwa(zone) => {
                let slba = Lba(slba.0 + written + draw.int(0..=24));
                let op = match zeroes {
                    9 => Op::WriteZeroes { slba, nlb },
                    _ => Op::Write { slba, nlb },
                };
                (op, false)
            }
            (5, _) => (Op::Flush, false),
            _ if draw.flag() => (Op::Append { zslba: slba, nlb }, false),
            _ => {
                let slba = Lba(slba.0 + written);
                (Op::Write { slba, nlb }, false)
            }
        })
    }

    fn command(&mut self, draw: &mut Draw<'_>, kind: usize) {
        let count = self.drive.config().zones.count;
        let zone = ZoneId(draw.int(0..=count - 1));
        let (nsid, within) = self.drive.zones().in_namespace(zone);
        let slba = Lba(u64::from(within.0) * self.drive.config().zones.size_lbas);
        if self.drive.info().namespaces[nsid.0 as usize - 1]
            .zoned
            .is_none()
        {
            return self.conventional(draw, nsid);
        }
        let Some((op, extension)) = self.draw_op(draw, (kind, zone, slba)) else {
            return;
        };
        let size_lbas = self.drive.config().zones.size_lbas;
        // Blocks of the next zone are not meant.
        let end = op.first_block() + u64::from(op.nlb());
        let is_within = matches!(op, Op::Append { .. }) || end <= slba.0 + size_lbas;
        let op = if is_within { op } else { Op::Flush };
        let before = ZoneView::of(&self.drive, zone);
        let (tag, from) = (self.next_tag, self.tape.len());
        let offset = match op {
            Op::Append { .. } => before.host_lbas,
            _ => op.first_block().saturating_sub(slba.0),
        };
        let data = match op {
            Op::Write { nlb, .. } | Op::Append { nlb, .. } => Some(self.stamped(tag, offset, nlb)),
            _ if extension => Some(Buf::zeroed(
                self.drive.config().zones.descriptor_extension_bytes as usize,
            ))
            .map(|mut data| {
                data.fill(tag as u8);
                data
            }),
            _ => None,
        };
        self.submit(nsid, op, data);
        let after = ZoneView::of(&self.drive, zone);
        let blocks = offset..(offset + u64::from(op.nlb())).min(size_lbas);
        let is_write = matches!(
            op,
            Op::Write { .. } | Op::Append { .. } | Op::WriteZeroes { .. }
        );
        let is_placed = before.has_zrwa() || after.host_lbas == offset + u64::from(op.nlb());
        let stamp = match op {
            Op::WriteZeroes { .. } => tag | ZEROED,
            _ => tag,
        };
        let wrote = (is_write && is_placed && offset >= before.host_lbas && after != before)
            || (is_write && before.has_zrwa());
        self.note(tag, from, wrote.then_some((zone, blocks, stamp)));
    }

    fn conventional(&mut self, draw: &mut Draw<'_>, nsid: NamespaceId) {
        let blocks = self.drive.info().namespaces[nsid.0 as usize - 1].size_lbas;
        let block = draw.int(0..=blocks - 1);
        let nlb = draw.int(1..=24).min(blocks - block) as u32;
        let slba = Lba(block);
        let (tag, from) = (self.next_tag, (self.tape.len(), self.events));
        let (op, stamp) = match draw.int(0..=5_u8) {
            0 => (Op::WriteZeroes { slba, nlb }, 0),
            1 => return self.submit(nsid, Op::Flush, None),
            _ => (Op::Write { slba, nlb }, tag),
        };
        let data = (stamp > 0).then(|| self.stamped(tag, block, nlb));
        self.submit(nsid, op, data);
        let all = self.blocks.get_mut(&nsid.0).expect("it has blocks");
        for values in &mut all[block as usize..][..nlb as usize] {
            values.push(Value {
                tag,
                stamp,
                from,
                told: None,
            });
        }
    }

    fn stamped(&self, tag: u32, first: u64, nlb: u32) -> Buf {
        let lba_bytes = self.drive.config().lba_bytes as usize;
        let mut data = Buf::zeroed(nlb as usize * lba_bytes);
        for (lba, block) in (first..).zip(data.chunks_mut(lba_bytes)) {
            let mark = mark(tag, lba);
            block
                .chunks_mut(8)
                .for_each(|piece| piece.copy_from_slice(&mark));
        }
        data
    }

    fn submit(&mut self, nsid: NamespaceId, op: Op, data: Option<Buf>) {
        let tag = Tag(self.next_tag);
        self.next_tag += 1;
        self.events += 1;
        self.in_flight += 1;
        self.drive
            .submit(self.now, QueueId(0), tag, Command::on(nsid, op), data)
            .expect("few are in flight, and there is power");
        // What it has changed can be seen once the front end has turned to it.
        while self.drive.waiting() > 0 {
            let at = self.drive.next_event();
            let at = at.expect("a command waits for others, which go on");
            self.now = self.now.max(at);
            self.drive.advance(self.now, &mut self.done);
        }
    }

    /// Notes which zones are not as they were, and what was written to one.
    fn note(&mut self, tag: u32, from: usize, wrote: Option<(ZoneId, std::ops::Range<u64>, u32)>) {
        for (zone, history) in (0..).map(ZoneId).zip(&mut self.zones) {
            let view = ZoneView::of(&self.drive, zone);
            let last = history.last();
            let mut stamps = last.stamps.clone();
            if stamps.is_empty() {
                continue;
            }
            if view.host_lbas < last.view.host_lbas {
                stamps.fill(0);
            }
            let (mut is_other, mut by) = (view != last.view, tag);
            match &wrote {
                Some((to, blocks, stamp)) if *to == zone => {
                    let blocks = blocks.start as usize..blocks.end as usize;
                    // Refused, and seen to be only when it completes.
                    if let Some(of) = stamps.get_mut(blocks) {
                        of.fill(*stamp);
                        is_other = true;
                    }
                }
                // A reset of a zone with an area and nothing committed.
                _ if view.state == ZoneState::EMPTY => stamps.fill(0),
                _ => {}
            }
            // A zone that was closed for another one: nobody asked for it.
            let is_closed = view.state == ZoneState::CLOSED && wrote.is_some();
            if is_closed && wrote.as_ref().is_none_or(|(to, ..)| *to != zone) {
                by = 0;
            }
            if is_other {
                history.0.push(Candidate {
                    tag: by,
                    from,
                    told: None,
                    view,
                    stamps,
                });
            }
        }
    }

    /// Goes on by so many events of the drive, and tells the host what completed.
    fn advance(&mut self, events: u32) {
        let mut done = std::mem::take(&mut self.done);
        for _ in 0..events {
            let Some(at) = self.drive.next_event() else {
                break;
            };
            self.now = self.now.max(at);
            self.drive.advance(self.now, &mut done);
        }
        if self.drive.keep().is_err() {
            self.has_failed = true;
            return;
        }
        let at = self.tape.len();
        for completion in done {
            self.events += 1;
            self.in_flight -= 1;
            let tag = completion.tag.0;
            if !completion.status.is_success() {
                self.zones.iter_mut().for_each(|of| of.failed(tag));
                continue;
            }
            self.zones.iter_mut().for_each(|of| of.told(tag, at));
            for value in self.blocks.values_mut().flatten().flatten() {
                if value.tag == tag {
                    value.told = Some((at, self.events));
                }
            }
        }
    }

    /// Formats the drive when nothing is in it.
    fn format(&mut self, draw: &mut Draw<'_>) {
        self.advance(u32::MAX);
        let config = formatted(self.drive.config(), draw.pick(&[512, 4096]));
        let config = config.filter(|config| profile::check(config).is_ok());
        let Some(config) = config.filter(|_| self.in_flight == 0 && !self.has_failed) else {
            return;
        };
        let from = self.tape.len();
        self.drive.format(&config);
        self.now = Nanos::ZERO;
        if self.drive.keep().is_err() {
            self.has_failed = true;
        }
        self.formatting.push(from..self.tape.len());
        let told = self.tape.len();
        for (zone, history) in (0..).map(ZoneId).zip(&mut self.zones) {
            let is_of_log = history.last().stamps.is_empty();
            let lbas = if is_of_log { 0 } else { config.zones.size_lbas };
            history.0 = vec![Candidate {
                tag: 0,
                from: told,
                told: Some(told),
                view: ZoneView::of(&self.drive, zone),
                stamps: vec![0; lbas as usize],
            }];
        }
        for (nsid, blocks) in &mut self.blocks {
            let size = self.drive.info().namespaces[*nsid as usize - 1].size_lbas;
            let fresh = Value {
                tag: 0,
                stamp: 0,
                from: (told, 0),
                told: Some((told, 0)),
            };
            *blocks = vec![vec![fresh]; size as usize];
        }
    }

    /// Checks what is on a tape that got so many steps of this player's.
    pub(super) fn check(&self, config: &DriveConfig, tape: &Tape, steps: usize) {
        let (_, zones, blocks) = recovered(config, tape);
        // What was there before a format was not remembered.
        let formatted_at = self.formatting.last().map_or(0, |range| range.end);
        if steps < formatted_at {
            return;
        }
        for (zone, ((view, stamps), history)) in (0..).zip(zones.iter().zip(&self.zones)) {
            if !history.last().stamps.is_empty() {
                history.check(steps, zone, view, stamps);
            }
        }
        for (nsid, found) in &blocks {
            for (block, (stamp, values)) in found.iter().zip(&self.blocks[nsid]).enumerate() {
                check_block(values, steps, block, *stamp);
            }
        }
    }
}

/// What each block of a command has in all of its pieces.
fn mark(tag: u32, lba: u64) -> [u8; 8] {
    let mut mark = [0; 8];
    mark[..4].copy_from_slice(&tag.to_le_bytes());
    mark[4..].copy_from_slice(&(lba as u32).to_le_bytes());
    mark
}

/// Which command wrote a block; 0: none. Panics if it is not one whole block.
fn stamp_of(block: &[u8], lba: u64) -> u32 {
    let tag = u32::from_le_bytes([block[0], block[1], block[2], block[3]]);
    let expected = if tag == 0 { [0; 8] } else { mark(tag, lba) };
    assert!(
        block.chunks(8).all(|piece| piece == expected),
        "block {lba} of {tag} is torn or misplaced"
    );
    tag
}

type Zones = Vec<(ZoneView, Vec<u32>)>;
type Blocks = BTreeMap<u32, Vec<u32>>;

/// The drive on a tape that lost power, and all that is in it.
fn recovered(config: &DriveConfig, tape: &Tape) -> (Drive, Zones, Blocks) {
    let (store, found) = open(tape.clone(), config).expect("nothing is damaged");
    let current = formatted(config, found.lba_bytes).expect("it was formatted so");
    let mut drive =
        Drive::stored(&current, &found.kept, Box::new(store)).expect("nothing is damaged");
    drive.keep().expect("the tape takes everything");
    drive.assert_invariants();
    let (store, again) = open(tape.clone(), config).expect("it was opened before");
    assert_eq!(again.kept.logs, found.kept.logs);
    let lba_bytes = current.lba_bytes as usize;
    let mut block = vec![0; lba_bytes];
    let mut zones = Vec::new();
    for zone in (0..current.zones.count).map(ZoneId) {
        let (nsid, _) = drive.zones().in_namespace(zone);
        let is_zoned = drive.info().namespaces[nsid.0 as usize - 1].zoned.is_some();
        let lbas = if is_zoned { current.zones.size_lbas } else { 0 };
        let stamps = (0..lbas).map(|lba| {
            let read = store.read(zone, lba * lba_bytes as u64, &mut block);
            read.expect("nothing is damaged");
            stamp_of(&block, lba)
        });
        zones.push((ZoneView::of(&drive, zone), stamps.collect()));
    }
    let mut blocks = BTreeMap::new();
    for (nsid, of) in (1..).zip(drive.info().namespaces.clone()) {
        if of.zoned.is_none() {
            let all = (0..of.size_lbas).map(|lba| read_block(&mut drive, nsid, lba));
            blocks.insert(nsid, all.collect());
        }
    }
    assert!(store.failure().is_none());
    // Reads took time, which a drive that begins has not had.
    let (store, found) = open(tape.clone(), config).expect("it was opened before");
    let drive = Drive::stored(&current, &found.kept, Box::new(store)).expect("it was one before");
    (drive, zones, blocks)
}

fn read_block(drive: &mut Drive, nsid: u32, lba: u64) -> u32 {
    let data = Buf::zeroed(drive.config().lba_bytes as usize);
    let op = Op::Read {
        slba: Lba(lba),
        nlb: 1,
    };
    let command = Command::on(NamespaceId(nsid), op);
    drive
        .submit(drive.now(), QueueId(0), Tag(0), command, Some(data))
        .expect("nothing else is in flight");
    let mut done = Vec::new();
    while let Some(at) = drive.next_event().filter(|_| done.is_empty()) {
        drive.advance(at, &mut done);
    }
    let data = done.pop().and_then(|completion| completion.data);
    stamp_of(&data.expect("a read ends with its buffer"), lba)
}
