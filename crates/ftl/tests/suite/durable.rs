//! Metadata under losses of power at any moment, also while they are formatted and
//! mounted: what was appended is there, and of what was not yet, a prefix.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Mutex;

use crate::support::{Cut, End, Machine, any_tiny, seeds::each_seed, settings};
use futures_util::future::join3;
use zonelab_device::{NamespaceId, Nanos};
use zonelab_ftl::media::ZoneUse;
use zonelab_ftl::{
    DataZone, Durable, ForwardMap, FtlError, LogicalBlock, MapChange, PhysicalBlock, Shape,
};
use zonelab_host::Rng;
use zonelab_host::tasks::Io;
use zonelab_ssd::Drive;
use zonelab_ssd::config::DriveConfig;

/// What a program knows of the map: outlives losses of power.
#[derive(Debug, Default)]
struct Shadow {
    /// The map as it was found last.
    base: Vec<Option<PhysicalBlock>>,
    /// All changes since, in the order in which they were made.
    changes: Vec<MapChange>,
    /// Of these, so many are durable for sure.
    durable: usize,
    /// A map that has so many of the changes needs so many blocks of the data zone.
    needs: Vec<(usize, u32)>,
    /// What was done, for tests of the tests.
    mounts: u64,
    checkpoints: u64,
    lost: u64,
}

impl Shadow {
    /// The map is that after some number of changes: at least those that are durable.
    /// Returns how many blocks of data it needs.
    fn check(&mut self, map: &ForwardMap) -> u32 {
        let found: Vec<_> = (0..map.blocks())
            .map(|at| map.get(LogicalBlock(at)))
            .collect();
        if self.base.is_empty() {
            self.base = vec![None; found.len()];
        }
        let mut wrong = 0;
        for (expected, found) in self.base.iter().zip(&found) {
            wrong += usize::from(expected != found);
        }
        let mut expected = core::mem::take(&mut self.base);
        let mut matches = self.durable == 0 && wrong == 0;
        let mut count = 0;
        for (index, change) in self.changes.iter().enumerate() {
            if matches {
                self.lost += 1;
                break;
            }
            for step in 0..change.count {
                let at = (change.first.0 + step) as usize;
                wrong -= usize::from(expected[at] != found[at]);
                expected[at] = change.to.map(|to| PhysicalBlock(to.0 + step));
                wrong += usize::from(expected[at] != found[at]);
            }
            matches = index + 1 >= self.durable && wrong == 0;
            count = index + 1;
        }
        assert!(
            matches,
            "of {} changes, {} are durable, and the map is that after none of those numbers",
            self.changes.len(),
            self.durable
        );
        self.base = found;
        self.changes.clear();
        self.durable = 0;
        self.mounts += 1;
        let needs = core::mem::take(&mut self.needs);
        let needs = needs.into_iter().filter(|(changes, _)| *changes <= count);
        needs.map(|(_, blocks)| blocks).max().unwrap_or(0)
    }
}

type Shared = Rc<RefCell<Shadow>>;

/// What the tasks of one run share.
struct Run {
    durable: Durable,
    map: ForwardMap,
    shadow: Shared,
    /// Changes in the map, and in no append yet.
    pending: RefCell<Vec<MapChange>>,
    writes_data: bool,
    is_over: Cell<bool>,
    wants: Cell<bool>,
}

/// A change of a few blocks.
fn any_change(rng: &mut Rng, shape: &Shape) -> MapChange {
    let offset = rng.below(u64::from(shape.data_blocks())) as u32;
    let zone = DataZone(rng.below(u64::from(shape.data_zones())) as u32);
    let first = rng.below(u64::from(shape.logical_blocks)) as u32;
    let most = (shape.data_blocks() - offset).min(shape.logical_blocks - first);
    MapChange {
        first: LogicalBlock(first),
        count: 1 + rng.below(u64::from(most.min(5))) as u32,
        to: (rng.below(8) > 0).then(|| shape.block_at(zone, offset)),
    }
}

impl Run {
    /// Changes the map.
    fn change(&self, rng: &mut Rng) {
        let change = any_change(rng, self.durable.shape());
        for step in 0..change.count {
            let to = change.to.map(|to| PhysicalBlock(to.0 + step));
            self.map.set(LogicalBlock(change.first.0 + step), to);
        }
        self.pending.borrow_mut().push(change);
        self.shadow.borrow_mut().changes.push(change);
    }

    /// Appends all that is pending, behind what others append.
    async fn commit(&self) -> Result<(), FtlError> {
        let changes = self.pending.take();
        self.durable.append(&changes).await?;
        self.shadow.borrow_mut().durable += changes.len();
        Ok(())
    }

    /// The same, with a block of data before.
    async fn commit_with_data(&self) -> Result<(), FtlError> {
        let data = self.write_data().await?;
        let changes = self.shadow.borrow().changes.len();
        if changes > 0 && !self.pending.borrow().is_empty() {
            self.shadow.borrow_mut().needs.push((changes, data));
        }
        self.commit().await
    }

    /// Writes a block to the first data zone, as the data of a change. Returns how
    /// many blocks it has then.
    async fn write_data(&self) -> Result<u32, FtlError> {
        let media = self.durable.media();
        let zone = media.shape().first_data_zone();
        if !self.writes_data {
            return Ok(0);
        }
        let of = media.report_of(zone).await?;
        if of.written == of.capacity {
            return Ok(0);
        }
        media
            .write(zone, of.written, 1, &vec![7; media.shape().bytes(1)])
            .await?;
        Ok(of.written + 1)
    }

    async fn write(&self, mut rng: Rng, actions: u64) -> Result<(), FtlError> {
        let shape = self.durable.shape();
        let most = u64::from(self.durable.most_pending() / 2);
        for _ in 0..actions {
            // Now and then as many as there may be.
            let changes = match rng.below(4) {
                0 => most.min(400),
                _ => 1 + rng.below(u64::from(2 * shape.changes_per_block()).min(most)),
            };
            let pending = self.pending.borrow().len() as u64;
            for _ in pending..changes {
                self.change(&mut rng);
            }
            match rng.below(8) {
                0 => {
                    let pause = Nanos::from_us(rng.below(3_000));
                    self.durable
                        .media()
                        .io()
                        .sleep_until(self.durable.media().io().now() + pause)
                        .await;
                }
                1 => self.wants.set(true),
                _ => self.commit_with_data().await?,
            }
        }
        self.is_over.set(true);
        Ok(())
    }

    /// Keeps dies busy, each for another time, so that what was written first is not
    /// durable first.
    async fn make_noise(&self, mut rng: Rng) -> Result<(), FtlError> {
        let media = self.durable.media();
        let first = media.shape().first_data_zone() + 1;
        while self.writes_data && !self.is_over.get() {
            let zone = first + rng.below(4) as u32;
            let of = media.report_of(zone).await?;
            let room = of.capacity - of.written;
            if room == 0 || rng.below(4) == 0 {
                media.reset(zone).await?;
            } else {
                let some = room.min(1 + rng.below(16) as u32);
                media
                    .write(zone, of.written, some, &vec![7; media.shape().bytes(some)])
                    .await?;
            }
            let pause = Nanos::from_us(rng.below(2_000));
            media.io().sleep_until(media.io().now() + pause).await;
        }
        Ok(())
    }

    async fn run_checkpoints(&self) -> Result<(), FtlError> {
        let io = self.durable.media().io();
        while !self.is_over.get() {
            if self.durable.wants_checkpoint() || self.wants.take() {
                self.durable
                    .checkpoint(&self.map, async || self.commit().await)
                    .await?;
                self.shadow.borrow_mut().checkpoints += 1;
            }
            io.sleep_until(io.now() + Nanos::from_us(100)).await;
        }
        Ok(())
    }
}

/// Checks what a mount found against what was known.
async fn check_mount(io: &Io, shadow: &Shared) -> Result<(Durable, ForwardMap), FtlError> {
    let (durable, map) = Durable::open(io, NamespaceId::FIRST).await?;
    let needs = shadow.borrow_mut().check(&map);
    let media = durable.media();
    let zones = media.report().await?;
    let shape = durable.shape();
    let metadata = &zones[..shape.first_data_zone() as usize];
    let active = metadata.iter().filter(|zone| zone.is_active()).count();
    assert!(
        active <= 2,
        "a mount leaves {active} zones of metadata active"
    );
    let (facts, capacity) = (durable.facts(), u64::from(shape.zone_capacity_lbas));
    // The image as a format leaves it has no blocks; the mount can have written the first
    // that has.
    let image_blocks = u64::from(facts.image_blocks);
    assert!([0, image_blocks].contains(&facts.read.image), "{facts:?}");
    let is_blank = facts.checkpoint == 1 || facts.image_blocks_written > 0;
    assert!(facts.read.image == image_blocks || is_blank, "{facts:?}");
    assert!(facts.read.journal <= facts.journal_total_blocks);
    assert!(facts.read.anchors <= 2 * capacity);
    let first = zones[shape.first_data_zone() as usize];
    assert!(first.written >= needs, "data is durable before its change");
    if first.state == ZoneUse::Full {
        media.reset(shape.first_data_zone()).await?;
    }
    Ok((durable, map))
}

async fn work(io: Io, shadow: Shared, mut rng: Rng, actions: u64) -> Result<(), FtlError> {
    let (durable, map) = check_mount(&io, &shadow).await?;
    let zoned = io.info().namespaces[0].zoned.expect("it has zones");
    let run = Run {
        durable,
        map,
        shadow,
        pending: RefCell::default(),
        writes_data: zoned.max_active.is_none(),
        is_over: Cell::new(false),
        wants: Cell::new(false),
    };
    let writer = Rng::new(rng.next_u64(), 2);
    let noise = Rng::new(rng.next_u64(), 3);
    let (write, checkpoints, noise) = join3(
        async {
            let end = run.write(writer, actions).await;
            run.is_over.set(true);
            end
        },
        run.run_checkpoints(),
        run.make_noise(noise),
    )
    .await;
    write.and(checkpoints).and(noise)
}

/// Formats with losses of power in the middle, until it is done.
fn format(machine: &mut Machine, rng: &mut Rng) {
    loop {
        let cut = Some(Cut::draw(rng, 60));
        let end = machine.run_until(cut, async |io| {
            Durable::format(&io, &settings(), true).await.map(drop)
        });
        match end {
            End::Returned(end) => return end.expect("the drive can be formatted"),
            End::Cut => {
                let found =
                    machine.run(async |io| Durable::open(&io, NamespaceId::FIRST).await.map(drop));
                assert!(
                    matches!(found, Ok(()) | Err(FtlError::NotFormatted)),
                    "half a format: {found:?}"
                );
            }
        }
    }
}

fn case(config: &DriveConfig, rng: &mut Rng, rounds: u64) -> Shared {
    let mut machine = Machine::of(Drive::new(config));
    format(&mut machine, rng);
    let shadow = Shared::default();
    for _ in 0..rounds {
        // Some in the first steps: while it is mounted.
        let most = [30, 200, 1500][rng.below(3) as usize];
        let cut = (rng.below(10) > 0).then(|| Cut::draw(rng, most));
        let (of_run, shared) = (Rng::new(rng.next_u64(), 1), Rc::clone(&shadow));
        let actions = 5 + rng.below(60);
        let end = machine.run_until(cut, |io| work(io, shared, of_run, actions));
        if let End::Returned(end) = end {
            end.expect("nothing fails");
        }
    }
    let shared = Rc::clone(&shadow);
    machine
        .run(async move |io| check_mount(&io, &shared).await.map(drop))
        .expect("it can be mounted");
    shadow
}

#[test]
fn losses_of_power_at_any_moment_lose_nothing_that_was_appended() {
    let all = Mutex::new((0, 0, 0));
    each_seed("losses_of_power_at_any_moment", 500, |seed| {
        let mut rng = Rng::new(seed, 0);
        let config = any_tiny(&mut rng);
        let shadow = case(&config, &mut rng, 20);
        let (of, mut all) = (shadow.borrow(), all.lock().expect("adding cannot fail"));
        all.0 += of.mounts;
        all.1 += of.checkpoints;
        all.2 += of.lost;
    });
    let (mounts, checkpoints, lost) = all.into_inner().expect("adding cannot fail");
    println!("{mounts} mounts, {checkpoints} checkpoints, {lost} lost a change");
}
