//! Metadata on drives whose commands fail: they go on where that is possible, and
//! nothing that was appended is lost.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Mutex;

use crate::support::{Cut, End, Machine, any_tiny, seeds::each_seed, settings, tiny};
use futures_util::future::join;
use zonelab_device::{NamespaceId, Nanos};
use zonelab_ftl::{Durable, ForwardMap, FtlError, LogicalBlock, MapChange, PhysicalBlock};
use zonelab_host::Rng;
use zonelab_host::tasks::Io;
use zonelab_nvme::Status;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::faults::{Effect, Fault, FaultPlan, Match, Trigger};

/// Each change puts a block somewhere else, so that the map says how many there were.
#[derive(Debug, Default)]
struct Known {
    durable: u32,
    handed: u32,
}

type Shared = Rc<RefCell<Known>>;

const BLOCKS: u32 = 30;

/// The changes from the `from`th on, in order: they go round over a few blocks.
fn changes(from: u32, count: u32) -> Vec<MapChange> {
    (from..from + count)
        .map(|at| MapChange {
            first: LogicalBlock(at % BLOCKS),
            count: 1,
            to: Some(PhysicalBlock(at / BLOCKS % 40)),
        })
        .collect()
}

/// The number of changes after which the map is as it was found.
fn count(map: &ForwardMap, known: &Known) -> Option<u32> {
    (known.durable..=known.handed).find(|count| {
        (0..BLOCKS.min(map.blocks())).all(|block| {
            let last = (*count + BLOCKS - 1 - block) / BLOCKS;
            let expected = last.checked_sub(1).map(|round| PhysicalBlock(round % 40));
            map.get(LogicalBlock(block)) == expected
        })
    })
}

async fn mount(io: &Io, known: &Shared) -> Result<(Durable, ForwardMap), FtlError> {
    let (durable, map) = Durable::open(io, NamespaceId::FIRST).await?;
    let mut known = known.borrow_mut();
    let found = count(&map, &known);
    let found = found.unwrap_or_else(|| panic!("the map is that after none of {known:?}"));
    (known.durable, known.handed) = (found, found);
    Ok((durable, map))
}

/// Appends until something fails for good, with checkpoints beside.
async fn work(io: Io, known: Shared, rng: Rng, appends: u64) -> Result<u64, FtlError> {
    let (durable, map) = mount(&io, &known).await?;
    let failed = RefCell::new(None);
    let is_over = Cell::new(false);
    let append = async {
        let end = append(&durable, &map, &known, rng, appends).await;
        failed.replace(end.err());
        is_over.set(true);
    };
    let commit_pending = async || {
        // Behind what is being appended; if that failed, the image has what it must not.
        durable.append(&[]).await?;
        failed.borrow().clone().map_or(Ok(()), Err)
    };
    let checkpoints = async {
        while !is_over.get() {
            if durable.wants_checkpoint() {
                durable.checkpoint(&map, commit_pending).await?;
            }
            io.sleep_until(io.now() + Nanos::from_us(100)).await;
        }
        Ok(())
    };
    let ((), checkpoints) = join(append, checkpoints).await;
    let failed = failed.borrow().clone();
    failed.map_or(checkpoints, Err)?;
    Ok(durable.facts().takeovers)
}

async fn append(
    durable: &Durable,
    map: &ForwardMap,
    known: &Shared,
    mut rng: Rng,
    appends: u64,
) -> Result<(), FtlError> {
    for _ in 0..appends {
        let from = known.borrow().handed;
        let most = u64::from(durable.most_pending() / 2);
        let changes = changes(from, 1 + rng.below(most.min(90)) as u32);
        known.borrow_mut().handed += changes.len() as u32;
        for change in &changes {
            map.set(change.first, change.to);
        }
        durable.append(&changes).await?;
        known.borrow_mut().durable += changes.len() as u32;
    }
    Ok(())
}

fn fault(
    trigger: Trigger,
    zones: core::ops::RangeInclusive<u32>,
    effect: Effect,
    rng: &mut Rng,
) -> Fault {
    Fault {
        when: Match {
            zones: Some(zones),
            skip: rng.below(20),
            count: 1 + rng.below(2),
            ..Match::every(trigger)
        },
        effect,
    }
}

fn any_faults(rng: &mut Rng, journal: core::ops::Range<u32>, metadata: u32) -> FaultPlan {
    let (all, journal) = (0..=metadata - 1, journal.start..=journal.end - 1);
    let lose = Effect::Lose {
        timeout: Some(Nanos::from_ms(20)),
    };
    let write_fault = Effect::Fail(Status::WRITE_FAULT);
    let mut faults = Vec::new();
    for _ in 0..1 + rng.below(3) {
        faults.push(match rng.below(6) {
            0 => fault(Trigger::Write, all.clone(), write_fault, rng),
            1 => fault(Trigger::Write, all.clone(), lose, rng),
            2 => fault(Trigger::Write, journal.clone(), lose, rng),
            3 => fault(Trigger::Reset, all.clone(), write_fault, rng),
            4 => fault(Trigger::Finish, all.clone(), write_fault, rng),
            _ => fault(Trigger::Write, journal.clone(), write_fault, rng),
        });
    }
    if rng.below(3) == 0 {
        let mut fault = fault(Trigger::Write, journal, Effect::ReadOnly, rng);
        fault.when.count = 1;
        faults.push(fault);
    }
    let seed = rng.next_u64();
    FaultPlan { seed, faults }
}

#[test]
fn faults_and_losses_of_power_lose_nothing_that_was_appended() {
    let takeovers = Mutex::new((0, 0));
    each_seed("faults_and_losses_of_power", 500, |seed| {
        let mut rng = Rng::new(seed, 0);
        let config = any_tiny(&mut rng);
        let mut machine = Machine::new(&config);
        let shape = machine
            .run(async |io| Durable::format(&io, &settings(), true).await)
            .expect("it can be formatted");
        let plan = any_faults(&mut rng, shape.journal(), shape.first_data_zone());
        let now = machine.now;
        machine
            .device
            .with_faults(|drive| drive.add_faults(now, plan));
        let known = Shared::default();
        for _ in 0..6 {
            let cut = (rng.below(2) == 0).then(|| Cut::draw(&mut rng, 300));
            let (of_run, shared) = (Rng::new(rng.next_u64(), 1), Rc::clone(&known));
            match machine.run_until(cut, |io| work(io, shared, of_run, 30)) {
                End::Returned(Ok(count)) => {
                    takeovers.lock().expect("adding cannot fail").0 += count
                }
                // Nothing is promised but what was there before.
                End::Returned(Err(FtlError::Command { .. } | FtlError::JournalFull { .. })) => {
                    takeovers.lock().expect("adding cannot fail").1 += 1;
                }
                End::Returned(Err(error)) => panic!("{error}"),
                End::Cut => {}
            }
        }
        machine.device.with_faults(|drive| drive.clear_faults());
        // Nothing fails any more: it goes on, and the last state is found.
        for _ in 0..2 {
            let (of_run, shared) = (Rng::new(rng.next_u64(), 1), Rc::clone(&known));
            machine
                .run(|io| work(io, shared, of_run, 20))
                .expect("nothing fails any more");
        }
    });
    let (takeovers, failed) = takeovers.into_inner().expect("adding cannot fail");
    println!("{takeovers} failed writes recovered from, {failed} sessions ended by an error");
    assert!(takeovers > 0, "the journal goes on after failures");
}

#[test]
fn what_cannot_be_formatted_is_refused() {
    let format = |config: &DriveConfig| {
        Machine::new(config).run(async |io| Durable::format(&io, &settings(), true).await.map(drop))
    };
    assert_eq!(
        format(&tiny(40, 4)),
        Err(FtlError::JournalTooSmall {
            blocks: 4,
            least: 8
        })
    );
    let mut few = tiny(16, 16);
    few.zones.max_active = Some(2);
    few.zones.max_open = Some(2);
    assert_eq!(
        format(&few),
        Err(FtlError::TooFewActive {
            limit: 2,
            needed: 3,
            what: "metadata"
        })
    );
    let open = Machine::new(&tiny(16, 16))
        .run(async |io| Durable::open(&io, NamespaceId::FIRST).await.map(drop));
    assert_eq!(open, Err(FtlError::NotFormatted));
}

/// A device that keeps no data takes the same commands: only mounting is impossible.
#[test]
fn a_device_without_data_can_be_formatted_and_appended_to() {
    let mut config = tiny(16, 16);
    config.data = zonelab_ssd::config::DataStore::None;
    let facts = Machine::new(&config).run(async |io| {
        let shape = Durable::format(&io, &settings(), false)
            .await
            .expect("it can be");
        let durable = Durable::open_blank(&io, shape).await.expect("it can be");
        let map = ForwardMap::empty(durable.shape().logical_blocks);
        for round in 0..100 {
            durable
                .append(&changes(50 * round, 50))
                .await
                .expect("nothing fails");
            if durable.wants_checkpoint() {
                durable
                    .checkpoint(&map, async || Ok(()))
                    .await
                    .expect("nothing fails");
            }
        }
        durable.facts()
    });
    assert_eq!(facts.journal_next, 200);
    assert!(facts.checkpoint > 5);
}
