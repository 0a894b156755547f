//! Every block of metadata of small drives is damaged, one after the other, and repaired:
//! whatever was flushed is there, or it is said what is not.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Mutex;

use crate::check::{ask, look, report, rewrite};
use crate::support::layer::{self, Fuse, Machine, Main, Shadow, seeds::each_seed};
use zonelab_device::{Buf, Lba, NamespaceId, Op};
use zonelab_ftl::check::Finding;
use zonelab_ftl::durable::look::{Look, Purpose};
use zonelab_ftl::repair::{CutBack, Repair, repair};
use zonelab_ftl::{Durable, FtlError, FtlSettings, Media, Start};
use zonelab_host::Rng;
use zonelab_host::tasks::Io;

const NSID: NamespaceId = NamespaceId::FIRST;

/// What a drive has been through.
struct Life {
    machine: Machine,
    settings: FtlSettings,
    shadow: Shadow,
    /// What was durable of each block, and the number of the checkpoint then.
    floors: Vec<(u64, Vec<u32>)>,
    look: Look,
}

impl Life {
    /// The same for the same seed: blocks written, flushed and trimmed, zones collected, with
    /// losses of power.
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0);
        let mut machine = Machine::new(&layer::any_drive(&mut rng));
        let settings = machine.any_settings(&mut rng);
        let ftl = machine.mount(layer::format(0.15), &settings);
        let blocks = ftl.shape().logical_blocks;
        drop(ftl);
        let shadow: Shadow = Rc::new(RefCell::new(vec![layer::Block::default(); blocks as usize]));
        let mut floors = Vec::new();
        let sessions = 2 + rng.below(4);
        for session in 0..sessions {
            let ftl = machine.mount(Start::Mount, &settings);
            let read = Rc::clone(&shadow);
            let read: Main = Box::new(|io| Box::pin(layer::check_all(io, read)));
            let ftl = machine.run(ftl, &Fuse::after(u64::MAX, 0), vec![read]);
            let fuse = Fuse::after(500 + rng.below(8000), rng.next_u64());
            let programs = layer::clients(&shadow, blocks, 1, 4, 300, &mut rng);
            machine.run(ftl, &fuse, programs);
            if !fuse.is_lost() && (session + 1 < sessions || rng.below(2) == 0) {
                fuse.lose(&machine.drive, machine.now);
                machine.now = fuse.ready();
            }
            let of_blocks = shadow.borrow().iter().map(|block| block.floor).collect();
            floors.push((look(&mut machine).facts.checkpoint, of_blocks));
        }
        let look = look(&mut machine);
        Self {
            machine,
            settings,
            shadow,
            floors,
            look,
        }
    }

    /// The blocks of metadata that hold something: zone, offset.
    fn metadata(&mut self) -> Vec<(u32, u32)> {
        let shape = self.look.shape.clone();
        ask(&mut self.machine, async move |io| {
            let media = Media::new(&io, Rc::new(shape.clone()), true);
            let reported = media.report().await.expect("nothing fails");
            let mut all = Vec::new();
            for (zone, of) in (0..).zip(reported) {
                let first = match Purpose::of(&shape, zone) {
                    Purpose::Data(_) => shape.data_blocks(),
                    _ => 0,
                };
                for offset in first..of.written {
                    let bytes = media.read(zone, offset, 1).await.expect("nothing fails");
                    if bytes.iter().any(|byte| *byte != 0) {
                        all.push((zone, offset));
                    }
                }
            }
            all
        })
    }

    /// Flips bits of blocks of a zone.
    fn damage(&mut self, zone: u32, offsets: &[u32], rng: &mut Rng) {
        let shape = self.look.shape.clone();
        let flips: Vec<(usize, u8)> = offsets
            .iter()
            .map(|offset| {
                let byte = shape.bytes(*offset) + rng.below(shape.bytes(1) as u64) as usize;
                (byte, 1 << rng.below(8))
            })
            .collect();
        let damaged = ask(&mut self.machine, async move |io| {
            rewrite(io, shape, zone, |bytes| {
                for (byte, bit) in flips {
                    bytes[byte] ^= bit;
                }
            })
            .await
        });
        damaged.expect("the drive takes it");
    }

    /// Puts a copy of a block of metadata where another one is.
    fn replace(&mut self, (zone, offset): (u32, u32), (of, from): (u32, u32)) {
        let shape = self.look.shape.clone();
        let replaced = ask(&mut self.machine, async move |io| {
            let media = Media::new(&io, Rc::new(shape.clone()), true);
            let copy = media.read(of, from, 1).await?;
            let at = shape.bytes(offset);
            rewrite(io, shape, zone, |bytes| {
                bytes[at..at + copy.len()].copy_from_slice(&copy);
            })
            .await
        });
        replaced.expect("the drive takes it");
    }

    fn opens(&mut self) -> Result<(), FtlError> {
        ask(&mut self.machine, async |io| {
            Durable::look(&io, NSID).await.map(drop)
        })
    }

    fn repair(&mut self, writes: bool) -> Result<Repair, FtlError> {
        ask(&mut self.machine, async move |io| {
            repair(&io, NSID, writes).await
        })
    }

    /// Mounts, reads all blocks, and returns those that are older than what was flushed,
    /// with their versions. None may be anything that it never was.
    fn older(&mut self) -> Vec<(u32, u32)> {
        let ftl = self.machine.mount(Start::Mount, &self.settings);
        let (shadow, older) = (Rc::clone(&self.shadow), Rc::new(RefCell::new(Vec::new())));
        let found = Rc::clone(&older);
        let main: Main = Box::new(|io| Box::pin(compare(io, shadow, found)));
        self.machine.run(ftl, &Fuse::after(u64::MAX, 0), vec![main]);
        older.take()
    }

    /// Goes on as if nothing had been.
    fn goes_on(&mut self, rng: &mut Rng) {
        let blocks = self.look.shape.logical_blocks;
        for _ in 0..2 {
            let ftl = self.machine.mount(Start::Mount, &self.settings);
            let read = Rc::clone(&self.shadow);
            let read: Main = Box::new(|io| Box::pin(layer::check_all(io, read)));
            let ftl = self.machine.run(ftl, &Fuse::after(u64::MAX, 0), vec![read]);
            let fuse = Fuse::after(rng.below(4000), rng.next_u64());
            let programs = layer::clients(&self.shadow, blocks, 1, 3, 60, rng);
            self.machine.run(ftl, &fuse, programs);
            if !fuse.is_lost() {
                fuse.lose(&self.machine.drive, self.machine.now);
                self.machine.now = fuse.ready();
            }
        }
        // A footer is not needed, and stays as it is until its zone is reset.
        let findings = report(&mut self.machine).findings;
        let others = |found: &Finding| !matches!(found, Finding::Footer { .. });
        let others: Vec<Finding> = findings.into_iter().filter(others).collect();
        assert_eq!(others, []);
    }

    /// What was durable before the image of that checkpoint was begun.
    fn floor_before(&self, checkpoint: u64) -> Option<&[u32]> {
        let mut before = self.floors.iter().filter(|(at, _)| *at < checkpoint);
        before.next_back().map(|(_, floors)| &floors[..])
    }

    /// The logical blocks that journal blocks from `first` on changed.
    fn changed(&self, first: u64, count: u64) -> BTreeSet<u32> {
        let journal = self.look.journal.iter();
        let journal = journal.filter(|block| (first..first + count).contains(&block.sequence));
        let changes = journal.flat_map(|block| &block.changes);
        let blocks = changes.flat_map(|change| change.first.0..change.first.0 + change.count);
        blocks.collect()
    }
}

/// Reads all blocks. What is older than its floor goes to `older`; what is found is durable
/// from then on.
async fn compare(io: Io, shadow: Shadow, older: Rc<RefCell<Vec<(u32, u32)>>>) {
    let blocks = shadow.borrow().len() as u32;
    for block in 0..blocks {
        let op = Op::Read {
            slba: Lba(block.into()),
            nlb: 1,
        };
        let data = layer::good(&io, op, Some(Buf::from(vec![0xee; 4096]))).await;
        let data = data.expect("it comes back");
        let entry = &mut shadow.borrow_mut()[block as usize];
        let found = layer::version_in(block, &data, entry.floor, entry.begun);
        let found = found.unwrap_or_else(|| {
            let found = layer::version_in(block, &data, 0, entry.floor);
            let found = found.unwrap_or_else(|| {
                let stamp = u64::from_le_bytes(data[..8].try_into().expect("8 bytes"));
                panic!("block {block}: {entry:?}, and found {stamp:#x}, which it never was");
            });
            older.borrow_mut().push((block, found));
            found
        });
        entry.ended = found;
        entry.floor = found;
    }
}

/// How often each end of a damage was met.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    harmless: u32,
    repaired: u32,
    cut_back: u32,
    refused: u32,
    /// Those after which a check still finds something.
    footers: u32,
}

#[test]
fn every_block_of_metadata_can_be_damaged() {
    let met = Mutex::new(Met::default());
    let name = "--test suite every_block_of_metadata_can_be_damaged";
    each_seed(name, 6, |seed| {
        let mut rng = Rng::new(seed, 7);
        let all = Life::new(seed).metadata();
        for (zone, offset) in all {
            let mut life = Life::new(seed);
            let at = format!("zone {zone}, offset {offset}");
            life.damage(zone, &[offset], &mut rng);
            let mounts = life.opens().is_ok();
            let dry = life.repair(false);
            let done = life.repair(true);
            let mut met = met.lock().expect("adding cannot fail");
            let Ok(done) = done else {
                met.refused += 1;
                panic!("{at}: {dry:?}");
            };
            let dry = dry.expect("what can be repaired can be looked at");
            let found = report(&mut life.machine).findings;
            met.footers += u32::from(!found.is_empty());
            let expected = Repair {
                is_done: !mounts,
                findings: found,
                ..dry
            };
            assert_eq!(done, expected, "{at}");
            assert_eq!(done.damage.is_none(), mounts, "{at}");
            match (mounts, done.cut_back.is_empty()) {
                (true, _) => met.harmless += 1,
                (false, true) => met.repaired += 1,
                (false, false) => met.cut_back += 1,
            }
            drop(met);
            let older: BTreeSet<u32> = life.older().iter().map(|(block, _)| *block).collect();
            match done.cut_back[..] {
                [] => assert_eq!(older, BTreeSet::new(), "{at}: {done:?}"),
                // The last block of the journal: nothing else.
                [CutBack::Journal { first, count }] => {
                    assert_eq!(count, 1, "{at}");
                    let changed = life.changed(first, count);
                    assert!(older.is_subset(&changed), "{at}: {older:?}, {done:?}");
                }
                _ => panic!("{at}: {done:?}"),
            }
            life.goes_on(&mut rng);
        }
    });
    let met = met.into_inner().expect("adding cannot fail");
    println!("{met:?}");
    assert!(met.harmless > 0 && met.repaired > 0 && met.cut_back > 0 && met.footers > 0);
    assert_eq!(met.refused, 0);
}

/// A write that went to the wrong place, or was lost where another block had been: a block
/// that is whole, and not the one that belongs there.
#[test]
fn every_block_of_metadata_can_be_replaced_by_another() {
    let met = Mutex::new(Met::default());
    let name = "--test suite every_block_of_metadata_can_be_replaced_by_another";
    each_seed(name, 3, |seed| {
        let mut rng = Rng::new(seed, 10);
        let mut first = Life::new(seed);
        let all = first.metadata();
        let shape = first.look.shape.clone();
        let is_data = |zone: u32| matches!(Purpose::of(&shape, zone), Purpose::Data(_));
        let is_journal = |(zone, _): &&(u32, u32)| shape.journal().contains(zone);
        let journal: Vec<(u32, u32)> = all.iter().filter(is_journal).copied().collect();
        for (index, target) in all.iter().enumerate().filter(|(_, at)| !is_data(at.0)) {
            // Of the journal, the one before in its zone, and any.
            let mut sources = vec![all[rng.below(all.len() as u64) as usize]];
            if is_journal(&target) {
                sources.push(journal[rng.below(journal.len() as u64) as usize]);
            }
            sources.extend(index.checked_sub(1).map(|before| all[before]));
            for source in sources.into_iter().filter(|source| source != target) {
                let mut life = Life::new(seed);
                life.replace(*target, source);
                let at = format!("{target:?} by {source:?}");
                is_never_wrong(&mut life, &at, &met);
                life.goes_on(&mut rng);
            }
        }
    });
    let met = met.into_inner().expect("adding cannot fail");
    println!("{met:?}");
    assert!(met.harmless > 0 && met.repaired > 0 && met.cut_back > 0);
    assert_eq!(met.refused, 0);
}

/// It mounts, or is repaired; and what is older then than what was flushed is said.
fn is_never_wrong(life: &mut Life, at: &str, met: &Mutex<Met>) {
    let mounts = life.opens();
    let dry = life.repair(false);
    let done = life.repair(true);
    let mut met = met.lock().expect("adding cannot fail");
    let Ok(done) = done else {
        met.refused += 1;
        panic!("{at}: {mounts:?}, {dry:?}");
    };
    assert_eq!(done.damage.is_none(), mounts.is_ok(), "{at}");
    match (&mounts, done.cut_back.is_empty()) {
        (Ok(()), _) => met.harmless += 1,
        (Err(_), true) => met.repaired += 1,
        (Err(_), false) => met.cut_back += 1,
    }
    drop(met);
    let older: BTreeSet<u32> = life.older().iter().map(|(block, _)| *block).collect();
    match done.cut_back[..] {
        [] => assert_eq!(older, BTreeSet::new(), "{at}: {mounts:?}, {done:?}"),
        // The last block of the journal: nothing else.
        [CutBack::Journal { first, count }] => {
            assert_eq!(count, 1, "{at}: {done:?}");
            let changed = life.changed(first, count);
            assert!(older.is_subset(&changed), "{at}: {older:?}, {done:?}");
        }
        _ => panic!("{at}: {mounts:?}, {done:?}"),
    }
}

/// Of an image with more damage than its parity makes good, the older one has the blocks, and
/// what cannot be there any more is said; damage of both is refused, and changes nothing.
#[test]
fn an_image_is_replaced_by_the_older_one() {
    let met = Mutex::new((0, 0));
    let name = "--test suite an_image_is_replaced_by_the_older_one";
    each_seed(name, 60, |seed| {
        let mut rng = Rng::new(seed, 8);
        let mut life = Life::new(seed);
        let facts = life.look.facts.clone();
        let slot = facts.image_slot;
        let zone = life.look.shape.image(slot).start;
        // The image and its parity.
        let all: Vec<u32> = (0..=facts.image_blocks).collect();
        life.damage(zone, &all, &mut rng);
        let done = match life.repair(true) {
            Ok(done) => done,
            Err(error) => {
                // The next image had been begun.
                assert!(matches!(error, FtlError::BeyondRepair { .. }), "{error}");
                let other = life.look.shape.image(slot.other()).start;
                let written = life.look.reported[other as usize].written;
                assert!(written < facts.image_blocks, "{written}: {facts:?}");
                return;
            }
        };
        let lost: BTreeSet<u32> = done
            .cut_back
            .iter()
            .flat_map(|cut| match cut {
                CutBack::Lost { first, count } => *first..*first + *count,
                _ => 0..0,
            })
            .collect();
        let before = life.floor_before(facts.checkpoint - 1).map(<[u32]>::to_vec);
        for (block, version) in life.older() {
            let floor = before.as_ref().map_or(0, |floors| floors[block as usize]);
            assert!(
                version >= floor || lost.contains(&block),
                "block {block}: {version} is older than {floor}: {done:?}"
            );
        }
        met.lock().expect("adding cannot fail").0 += 1;
        met.lock().expect("adding cannot fail").1 += lost.len();
        life.goes_on(&mut rng);
    });
    let (replaced, lost) = met.into_inner().expect("adding cannot fail");
    println!("{replaced} replaced, {lost} blocks lost");
    assert!(replaced > 5);
}

/// An anchor and a row of the journal's blocks are damaged together: what nobody repeats is cut
/// back, and said; nothing that it never was is in any block.
#[test]
fn an_anchor_and_blocks_of_the_journal_can_be_damaged_together() {
    let met = Mutex::new(Met::default());
    let name = "--test suite an_anchor_and_blocks_of_the_journal_can_be_damaged_together";
    each_seed(name, 60, |seed| {
        let mut rng = Rng::new(seed, 9);
        let mut life = Life::new(seed);
        let shape = life.look.shape.clone();
        let all = life.metadata();
        let is_anchor = |(zone, _): &&(u32, u32)| shape.anchor().contains(zone);
        let anchors: Vec<(u32, u32)> = all.iter().filter(is_anchor).copied().collect();
        let zone = rng.below(2) as u32;
        let newest = anchors.iter().rfind(|(of, _)| *of == zone);
        let Some((zone, offset)) = newest.or(anchors.last()).copied() else {
            return;
        };
        let is_journal = |(zone, _): &&(u32, u32)| shape.journal().contains(zone);
        let journal: Vec<(u32, u32)> = all.iter().filter(is_journal).copied().collect();
        if journal.len() < 3 {
            return;
        }
        life.damage(zone, &[offset], &mut rng);
        let from = rng.below(journal.len() as u64 - 1) as usize;
        let row = journal[from..].iter().take(1 + rng.below(3) as usize);
        for (zone, offset) in row.clone() {
            life.damage(*zone, &[*offset], &mut rng);
        }
        let at = format!("anchor {zone} {offset}, journal {row:?}");
        let mounts = life.opens().is_ok();
        let dry = life.repair(false);
        let done = life
            .repair(true)
            .unwrap_or_else(|error| panic!("{at}: {error}, {dry:?}"));
        let footers = |found: &Finding| matches!(found, Finding::Footer { .. });
        assert!(done.findings.iter().all(footers), "{at}: {done:?}");
        let older = life.older();
        assert!(
            older.is_empty() || !done.cut_back.is_empty(),
            "{at}: {older:?}, {done:?}"
        );
        let mut met = met.lock().expect("adding cannot fail");
        match (mounts, done.cut_back.is_empty()) {
            (true, _) => met.harmless += 1,
            (false, true) => met.repaired += 1,
            (false, false) => met.cut_back += 1,
        }
        drop(met);
        life.goes_on(&mut rng);
    });
    let met = met.into_inner().expect("adding cannot fail");
    println!("{met:?}");
    assert!(met.repaired > 0 && met.cut_back > 0);
}
