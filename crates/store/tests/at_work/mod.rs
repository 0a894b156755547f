//! A host with many commands under way, and what it can rely on when everything ends.

use std::collections::BTreeMap;
use std::ops::Range;

use zonelab_device::{Buf, Command, Completion, Lba, NamespaceId, Nanos, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::Status;
use zonelab_nvme::command::CopyRange;
use zonelab_nvme::zerocopy::{FromZeros as _, IntoBytes as _};
use zonelab_nvme::zns::{ZoneSendAction, ZoneState};
use zonelab_oracle::disk::Numbers;
use zonelab_oracle::ends::{End, ZoneView};
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::{Drive, DriveModel};

/// Zones that are used, and looked at.
pub(super) const ZONES: u32 = 5;
/// Blocks of a zone that are looked at: hosts write no further, mostly.
const SEEN_LBAS: u64 = 48;
/// Commands under way, at most.
const DEPTH: usize = 12;
/// Only read back, before or after the work.
const READ: Tag = Tag(0);
const ACTIONS: [ZoneSendAction; 4] = [
    ZoneSendAction::OPEN,
    ZoneSendAction::CLOSE,
    ZoneSendAction::FINISH,
    ZoneSendAction::RESET,
];

/// What one block holds: the number of the write, and the place that it was for. Zero: nothing.
type Mark = (u32, u32);

/// What a host sees of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    pub(super) view: ZoneView,
    pub(super) marks: Vec<Mark>,
}

/// Something that a zone or block was.
#[derive(Clone, Debug)]
struct Candidate<T> {
    value: T,
    /// The command that led to it; 0: none.
    tag: u32,
    /// Which of the completions told the host.
    told: Option<u64>,
}

/// What something was since the last Flush, in order.
#[derive(Clone, Debug)]
pub(super) struct History<T>(Vec<Candidate<T>>);

impl<T: Clone> History<T> {
    fn new(value: T) -> Self {
        let mut history = Self(Vec::new());
        history.found(value);
        history
    }

    fn last(&self) -> &T {
        &self
            .0
            .last()
            .expect("there is one from the beginning")
            .value
    }

    fn push(&mut self, value: T, tag: u32) {
        let told = None;
        self.0.push(Candidate { value, tag, told });
    }

    /// It was looked at.
    fn found(&mut self, value: T) {
        let (tag, told) = (0, Some(0));
        self.0.push(Candidate { value, tag, told });
    }

    fn told(&mut self, tag: u32, at: u64) {
        for candidate in self.0.iter_mut().filter(|of| of.tag == tag) {
            candidate.told = Some(at);
        }
    }

    /// A command that was submitted after so many completions was a Flush, and is over.
    fn flushed(&mut self, until: u64) {
        let is_covered = |of: &Candidate<T>| of.told.is_some_and(|at| at <= until);
        let first = self.0.iter().rposition(is_covered);
        self.0.drain(..first.unwrap_or(0));
    }

    /// What can be there after an end.
    fn possible(&self, end: End) -> impl Iterator<Item = &T> + Clone {
        let first = match end {
            End::Machine => None,
            // No machine has ended: what was told is there.
            End::Process => self.0.iter().rposition(|of| of.told.is_some()),
        };
        self.0[first.unwrap_or(0)..].iter().map(|of| &of.value)
    }
}

/// What a host can rely on.
#[derive(Clone, Debug)]
pub(super) struct Known {
    zones: Vec<History<Zone>>,
    /// Of the conventional namespace, if there is one.
    blocks: Vec<History<Mark>>,
    next_tag: u32,
}

impl Known {
    /// Panics if this cannot be there after an end.
    pub(super) fn check(&self, end: End, (zones, blocks): &Found) {
        for (index, (found, history)) in zones.iter().zip(&self.zones).enumerate() {
            let possible = history.possible(end);
            let fits = |of: &&Zone| of.view.after_power_loss() == found.view;
            // Each block of an area is by itself.
            let is_loose = possible.clone().any(|of| of.view.has_zrwa());
            let is_of_some = |(lba, mark): (usize, &Mark)| {
                let mut possible = possible.clone();
                possible.any(|of| of.marks[lba] == *mark)
            };
            let mut fitting = possible.clone().filter(fits);
            let is_right = match is_loose {
                true => fitting.next().is_some() && found.marks.iter().enumerate().all(is_of_some),
                false => fitting.any(|of| of.marks == found.marks),
            };
            let possible: Vec<&Zone> = match is_right {
                true => continue,
                false => possible.collect(),
            };
            panic!("zone {index} is {found:?}; possible: {possible:#?}");
        }
        for (block, (found, history)) in blocks.iter().zip(&self.blocks).enumerate() {
            let possible = history.possible(end);
            assert!(
                possible.clone().any(|of| of == found),
                "block {block} is of {found:?}; possible: {:?}",
                possible.collect::<Vec<_>>()
            );
        }
    }
}

/// What is on a drive: zones, and blocks of the conventional namespace.
pub(super) type Found = (Vec<Zone>, Vec<Mark>);

/// Reads all that hosts use.
pub(super) fn look(drive: &mut Drive) -> Found {
    let size = drive.config().zones.size_lbas;
    let zones = (0..ZONES).map(|zone| {
        let view = ZoneView::of(drive, ZoneId(zone));
        let start = u64::from(zone) * size;
        let marks = read(drive, 1, start..start + SEEN_LBAS.min(size));
        Zone { view, marks }
    });
    let zones = zones.collect();
    let log = drive.info().namespaces.get(1).map(|of| of.size_lbas);
    let blocks = log.map_or(Vec::new(), |size| read(drive, 2, 0..size));
    (zones, blocks)
}

/// Commands for a drive of which nothing else is known: how they end.
pub(super) fn run(
    drive: &mut Drive,
    nsid: u32,
    op: Op,
    data: Option<Buf>,
) -> (Status, Option<Buf>) {
    let command = Command::on(NamespaceId(nsid), op);
    let now = drive.now();
    let submitted = drive.submit(now, QueueId(0), READ, command, data);
    submitted.expect("nothing else is under way");
    let mut done = Vec::new();
    while done.is_empty() {
        let at = drive.next_event().expect("a command is under way");
        drive.advance(at, &mut done);
    }
    drive.keep().expect("the medium takes everything");
    let completion = done.pop().expect("it is not empty");
    (completion.status, completion.data)
}

fn read(drive: &mut Drive, nsid: u32, range: Range<u64>) -> Vec<Mark> {
    let lba_bytes = drive.config().lba_bytes as usize;
    let mut marks = Vec::new();
    let mut slba = range.start;
    while slba < range.end {
        // No more than a command may transfer.
        let nlb = (range.end - slba).min(32) as u32;
        let data = Buf::zeroed(nlb as usize * lba_bytes);
        let op = Op::Read {
            slba: Lba(slba),
            nlb,
        };
        let (status, data) = run(drive, nsid, op, Some(data));
        assert!(status.is_success(), "reading block {slba}: {status:?}");
        let data = data.expect("a read has data");
        marks.extend(data.chunks(lba_bytes).map(mark_of));
        slba += u64::from(nlb);
    }
    marks
}

fn mark_of(block: &[u8]) -> Mark {
    let (words, _) = block.as_chunks::<4>();
    let mark = (u32::from_le_bytes(words[0]), u32::from_le_bytes(words[1]));
    // All pieces of 8 bytes are the same.
    let is_whole = block[8..] == block[..block.len() - 8];
    assert!(is_whole, "a block of {mark:?} is torn");
    mark
}

/// Blocks for a place and the next ones.
pub(super) fn marked(tag: u32, first: u64, nlb: u32, lba_bytes: u32) -> (Buf, Vec<Mark>) {
    let mut data = Buf::zeroed(nlb as usize * lba_bytes as usize);
    let marks: Vec<Mark> = (first as u32..)
        .take(nlb as usize)
        .map(|lba| (tag, lba))
        .collect();
    for (mark, block) in marks.iter().zip(data.chunks_mut(lba_bytes as usize)) {
        for piece in block.chunks_mut(8) {
            piece[..4].copy_from_slice(&mark.0.to_le_bytes());
            piece[4..].copy_from_slice(&mark.1.to_le_bytes());
        }
    }
    (data, marks)
}

/// A command under way.
#[derive(Clone, Debug, Default)]
struct Asked {
    /// Of a Flush, completions before it.
    flush: Option<u64>,
    /// Blocks of the conventional namespace.
    blocks: Range<u64>,
    /// It is known to be allowed.
    is_allowed: bool,
    /// It is a copy, or commits blocks of a random write area.
    is_copy: bool,
    is_commit: bool,
}

/// What a command does to its zone.
struct Intent {
    zone: u32,
    op: Op,
    data: Option<Buf>,
    /// From this block of the zone on.
    wrote: Option<(u64, Vec<Mark>)>,
}

pub(super) struct Host {
    drive: Drive,
    config: DriveConfig,
    known: Known,
    asked: BTreeMap<u32, Asked>,
    /// Completions so far.
    told: u64,
    done: Vec<Completion>,
    met: Met,
}

/// What a host has met.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    pub(super) copies: u64,
    pub(super) commits: u64,
    /// Bytes that the drive has programmed to collect.
    pub(super) collected_bytes: u64,
}

impl Met {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            copies: self.copies + other.copies,
            commits: self.commits + other.commits,
            collected_bytes: self.collected_bytes + other.collected_bytes,
        }
    }
}

impl Host {
    /// On a drive that was opened; `before`: what ended then, and what was known.
    pub(super) fn new(mut drive: Drive, before: Option<&(End, Known)>) -> Self {
        let (zones, blocks) = look(&mut drive);
        let known = match before {
            Some((End::Process, known)) => {
                // The machine can still end as if it had ended then.
                let mut known = known.clone();
                for (history, zone) in known.zones.iter_mut().zip(zones) {
                    history.found(zone);
                }
                for (history, mark) in known.blocks.iter_mut().zip(blocks) {
                    history.found(mark);
                }
                known
            }
            _ => Known {
                zones: zones.into_iter().map(History::new).collect(),
                blocks: blocks.into_iter().map(History::new).collect(),
                next_tag: before.map_or(1, |(_, known)| known.next_tag),
            },
        };
        Self {
            config: drive.config().clone(),
            drive,
            known,
            asked: BTreeMap::new(),
            told: 0,
            done: Vec::new(),
            met: Met::default(),
        }
    }

    pub(super) fn known(&self) -> Known {
        self.known.clone()
    }

    pub(super) fn met(&self) -> Met {
        Met {
            collected_bytes: self.drive.totals().collect_program_bytes,
            ..self.met
        }
    }

    /// The drive goes on for so long, and keeps what the host is about to be told.
    pub(super) fn turn(&mut self, span: Nanos) {
        let to = self.drive.now().saturating_add(span);
        self.drive.advance(to, &mut self.done);
        self.drive.keep().expect("the medium takes everything");
        self.drive.assert_invariants();
    }

    /// The host gets the completions of a turn.
    pub(super) fn land(&mut self) {
        for completion in std::mem::take(&mut self.done) {
            let tag = completion.tag.0;
            let asked = self.asked.remove(&tag).expect("each command ends once");
            let status = completion.status;
            assert!(
                status.is_success() || !asked.is_allowed,
                "command {tag}: {status:?}"
            );
            self.told += 1;
            if !status.is_success() {
                continue;
            }
            self.met.copies += u64::from(asked.is_copy);
            self.met.commits += u64::from(asked.is_commit);
            let told = self.told;
            let Known { zones, blocks, .. } = &mut self.known;
            zones.iter_mut().for_each(|of| of.told(tag, told));
            blocks.iter_mut().for_each(|of| of.told(tag, told));
            if let Some(until) = asked.flush {
                zones.iter_mut().for_each(|of| of.flushed(until));
                blocks.iter_mut().for_each(|of| of.flushed(until));
            }
        }
    }

    /// Submits a command, if there is room for one.
    pub(super) fn ask(&mut self, numbers: &mut Numbers) {
        if self.asked.len() == DEPTH {
            return;
        }
        let tag = self.known.next_tag;
        self.known.next_tag += 1;
        if numbers.one_in(16) {
            let flush = Some(self.told);
            let asked = Asked {
                flush,
                is_allowed: true,
                ..Asked::default()
            };
            return self.submit(tag, (1, Op::Flush, None), asked);
        }
        match self.known.blocks.is_empty() || numbers.one_in(4) {
            true => self.ask_zone(tag, numbers),
            false => self.ask_block(tag, numbers),
        }
    }

    fn submit(&mut self, tag: u32, (nsid, op, data): (u32, Op, Option<Buf>), asked: Asked) {
        let command = Command::on(NamespaceId(nsid), op);
        let queue = QueueId((tag % 3) as u16);
        let now = self.drive.now();
        let submitted = self.drive.submit(now, queue, Tag(tag), command, data);
        submitted.expect("the drive takes so many");
        self.asked.insert(tag, asked);
    }

    fn ask_block(&mut self, tag: u32, numbers: &mut Numbers) {
        let size = self.known.blocks.len() as u64;
        let first = numbers.below(size);
        let range = first..(first + 1 + numbers.below(6)).min(size);
        let overlaps = |of: &Range<u64>| of.start < range.end && range.start < of.end;
        // Nobody knows in which order two writes of a block take effect.
        if self.asked.values().any(|of| overlaps(&of.blocks)) {
            return;
        }
        let (slba, nlb) = (Lba(first), (range.end - first) as u32);
        let (op, data, marks) = match numbers.one_in(8) {
            true => (
                Op::WriteZeroes { slba, nlb },
                None,
                vec![(0, 0); nlb as usize],
            ),
            false => {
                let (data, marks) = marked(tag, first, nlb, self.config.lba_bytes);
                (Op::Write { slba, nlb }, Some(data), marks)
            }
        };
        let blocks = &mut self.known.blocks[first as usize..range.end as usize];
        for (block, mark) in blocks.iter_mut().zip(marks) {
            block.push(mark, tag);
        }
        let asked = Asked {
            blocks: range,
            is_allowed: true,
            ..Asked::default()
        };
        self.submit(tag, (2, op, data), asked);
    }

    fn ask_zone(&mut self, tag: u32, numbers: &mut Numbers) {
        let Intent {
            zone,
            op,
            data,
            wrote,
        } = match numbers.below(16) {
            0..=3 => self.manage(tag, numbers),
            4 => match self.copy(numbers) {
                Some(copy) => copy,
                None => return,
            },
            kind => match self.write(tag, kind == 5, numbers) {
                Some(write) => write,
                None => return,
            },
        };
        let asked = Asked {
            is_allowed: wrote.is_some(),
            is_copy: matches!(op, Op::Copy { .. }),
            is_commit: matches!(
                op,
                Op::ZoneSend {
                    action: ZoneSendAction::ZRWA_FLUSH,
                    ..
                }
            ),
            ..Asked::default()
        };
        self.submit(tag, (1, op, data), asked);
        self.note(tag, wrote.map(|(at, marks)| (zone, at, marks)));
    }

    fn slba(&self, zone: u32, offset: u64) -> Lba {
        Lba(u64::from(zone) * self.config.zones.size_lbas + offset)
    }

    fn manage(&self, tag: u32, numbers: &mut Numbers) -> Intent {
        let zone = numbers.below(u64::from(ZONES)) as u32;
        let slba = self.slba(zone, 0);
        let action = ACTIONS[numbers.below(4) as usize];
        let mut op = Op::ZoneSend {
            slba,
            action,
            select_all: numbers.one_in(16) && action != ZoneSendAction::OPEN,
        };
        let mut data = None;
        if self.config.zones.zrwa.is_some() && action == ZoneSendAction::OPEN {
            op = Op::ZrwaSend { slba, action };
        } else if self.config.zones.zrwa.is_some() && numbers.one_in(2) {
            // Commits up to a block, explicitly.
            let written = self.drive.zones().host_lbas(ZoneId(zone));
            op = Op::ZoneSend {
                slba: self.slba(zone, written + 4 * (1 + numbers.below(4)) - 1),
                action: ZoneSendAction::ZRWA_FLUSH,
                select_all: false,
            };
        } else if self.config.zones.descriptor_extension_bytes > 0 && numbers.one_in(4) {
            let bytes = self.config.zones.descriptor_extension_bytes;
            data = Some(Buf::zeroed(bytes as usize)).map(|mut data| {
                data.fill(tag as u8 | 1);
                data
            });
            op = Op::ZoneSend {
                slba,
                action: ZoneSendAction::SET_DESCRIPTOR_EXTENSION,
                select_all: false,
            };
        }
        Intent {
            zone,
            op,
            data,
            wrote: None,
        }
    }

    /// Where so many blocks can be written, if anywhere.
    fn place(&self, numbers: &mut Numbers, nlb: u64) -> Option<(u32, u64)> {
        let zone = numbers.below(u64::from(ZONES)) as u32;
        let zones = self.drive.zones();
        let is_writable = matches!(
            zones.state(ZoneId(zone)),
            ZoneState::EMPTY
                | ZoneState::IMPLICITLY_OPENED
                | ZoneState::EXPLICITLY_OPENED
                | ZoneState::CLOSED
        );
        let mut at = zones.host_lbas(ZoneId(zone));
        if zones.has_zrwa(ZoneId(zone)) {
            at += numbers.below(14);
        }
        let fits = at + nlb <= self.config.zones.capacity_lbas;
        (is_writable && fits).then_some((zone, at))
    }

    fn write(&self, tag: u32, is_of_zeros: bool, numbers: &mut Numbers) -> Option<Intent> {
        let nlb = 1 + numbers.below(5) as u32;
        let (zone, at) = self.place(numbers, u64::from(nlb))?;
        let slba = self.slba(zone, at);
        let zslba = self.slba(zone, 0);
        let can_append = !self.drive.zones().has_zrwa(ZoneId(zone));
        let (data, marks) = marked(tag, at, nlb, self.config.lba_bytes);
        let (op, data, marks) = match is_of_zeros {
            true => (
                Op::WriteZeroes { slba, nlb },
                None,
                vec![(0, 0); nlb as usize],
            ),
            false if can_append && numbers.one_in(2) => {
                (Op::Append { zslba, nlb }, Some(data), marks)
            }
            false => (Op::Write { slba, nlb }, Some(data), marks),
        };
        let wrote = Some((at, marks));
        Some(Intent {
            zone,
            op,
            data,
            wrote,
        })
    }

    /// Copies the first blocks of a zone.
    fn copy(&self, numbers: &mut Numbers) -> Option<Intent> {
        let from = numbers.below(u64::from(ZONES)) as u32;
        let written = self.drive.zones().host_lbas(ZoneId(from)).min(SEEN_LBAS);
        let nlb = written.min(1 + numbers.below(6));
        let (zone, at) = self.place(numbers, nlb).filter(|_| nlb > 0)?;
        let mut range = CopyRange::new_zeroed();
        range.slba = self.slba(from, 0).0.into();
        range.nlb_z = (nlb as u16 - 1).into();
        let mut data = Buf::zeroed(32);
        data.copy_from_slice(range.as_bytes());
        let marks = self.known.zones[from as usize].last().marks[..nlb as usize].to_vec();
        let op = Op::Copy {
            sdlba: self.slba(zone, at),
            ranges: 1,
        };
        Some(Intent {
            zone,
            op,
            data: Some(data),
            wrote: Some((at, marks)),
        })
    }

    /// A command has had its effect on zones.
    fn note(&mut self, tag: u32, wrote: Option<(u32, u64, Vec<Mark>)>) {
        for (zone, history) in (0..).zip(&mut self.known.zones) {
            let mut now = history.last().clone();
            now.view = ZoneView::of(&self.drive, ZoneId(zone));
            if now.view.state == ZoneState::EMPTY {
                now.marks.fill((0, 0));
            }
            if let Some((_, at, marks)) = wrote.as_ref().filter(|(to, ..)| *to == zone) {
                for (to, mark) in now.marks.iter_mut().skip(*at as usize).zip(marks) {
                    *to = *mark;
                }
            }
            // Another zone is closed to make room: nobody asked for it.
            let is_of_another = wrote.as_ref().is_some_and(|(to, ..)| *to != zone);
            if now != *history.last() {
                history.push(now, if is_of_another { 0 } else { tag });
            }
        }
    }
}
