//! Random operations of several clients on files, against a plain map; with
//! losses of power at any moment, after which every synced byte is there, and
//! nothing that was never written.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::support::{Cut, End, Machine, Met, any_small, each_seed};
use futures_util::future::join_all;
use zonelab_device::Nanos;
use zonelab_host::Rng;
use zonelab_host::tasks::Io;
use zonelab_kv::Content;
use zonelab_kv::files::{
    Files, FilesConfig, FilesError, FinishWhen, Lifetime, Usage, Writer, ZoneUseState,
};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneState;
use zonelab_ssd::Drive;
use zonelab_ssd::config::DriveConfig;
use zonelab_ssd::faults::{Effect, Fault, FaultPlan, FaultyDrive, Match, Trigger};

const CLIENTS: usize = 3;
const NAMES: u64 = 4;

#[derive(Clone, Debug, Default)]
struct Known {
    /// All that was appended.
    bytes: Vec<u8>,
    /// Bytes that a sync which returned has made durable; `None`: it never did.
    synced: Option<usize>,
}

/// What a client waits for: after a loss of power it has happened or not.
#[derive(Clone, Debug)]
enum Doing {
    Nothing,
    Sync(String),
    Delete(String),
    Rename(String, String),
}

type Tree = BTreeMap<String, Known>;

/// What one client knows of its files, and what it does.
#[derive(Debug)]
struct Client {
    tree: Tree,
    doing: Doing,
}

type Model = Rc<RefCell<Vec<Client>>>;

fn new_model() -> Model {
    let clients = (0..CLIENTS).map(|_| Client {
        tree: Tree::new(),
        doing: Doing::Nothing,
    });
    Rc::new(RefCell::new(clients.collect()))
}

fn some_lifetime(rng: &mut Rng) -> Lifetime {
    Lifetime::ALL[rng.below(Lifetime::ALL.len() as u64) as usize]
}

/// Data of a file that no other place has.
fn fresh(rng: &mut Rng) -> Vec<u8> {
    let most = [100, 5_000, 70_000, 400_000][rng.below(4) as usize];
    let mut bytes = vec![0; rng.below(most) as usize];
    for chunk in bytes.chunks_mut(8) {
        let word = rng.next_u64().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
    bytes
}

struct Worker {
    files: Files,
    model: Model,
    me: usize,
    rng: Rng,
    writers: BTreeMap<String, Writer>,
    /// The drive loses power now and then, and the program does not.
    has_power_cuts: bool,
}

impl Worker {
    fn name(&mut self) -> String {
        format!("{}-{}", self.me, self.rng.below(NAMES))
    }

    fn doing(&self, doing: Doing) {
        self.model.borrow_mut()[self.me].doing = doing;
    }

    fn with<T>(&self, f: impl FnOnce(&mut Tree) -> T) -> T {
        f(&mut self.model.borrow_mut()[self.me].tree)
    }

    fn is_there(&self, name: &str) -> bool {
        self.with(|tree| tree.contains_key(name))
    }

    async fn work(mut self, operations: u64) -> Result<(), FilesError> {
        for _ in 0..operations {
            let end = self.operate().await;
            self.recover(end).await?;
        }
        while let Some(name) = self.writers.keys().next().cloned() {
            let end = self.sync(&name).await;
            match end {
                Ok(()) => self.close(&name).await?,
                end => self.recover(end).await?,
            }
        }
        Ok(())
    }

    /// Goes on after an error, if that is one after which one can.
    async fn recover(&mut self, end: Result<(), FilesError>) -> Result<(), FilesError> {
        match end {
            // Room is made by whoever needs it.
            Err(FilesError::OutOf(_)) => self.make_room().await,
            Err(FilesError::Lost { name, .. }) if self.has_power_cuts => {
                self.drop_writer(&name);
                Ok(())
            }
            Err(FilesError::Command { status, .. })
                if self.has_power_cuts && status == Status::ABORTED_BY_HOST =>
            {
                Ok(())
            }
            end => end,
        }
    }

    async fn make_room(&mut self) -> Result<(), FilesError> {
        let names = self.with(|tree| tree.keys().cloned().collect::<Vec<_>>());
        let closed = names
            .iter()
            .find(|name| !self.writers.contains_key(*name))
            .cloned();
        match (closed, self.writers.first_key_value()) {
            (Some(name), _) => self.delete(&name).await,
            (None, Some((name, _))) => {
                let name = name.clone();
                self.drop_writer(&name);
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    async fn operate(&mut self) -> Result<(), FilesError> {
        let name = self.name();
        let is_open = self.writers.contains_key(&name);
        match (self.rng.below(16), is_open) {
            (0..=5, true) => self.append(&name).await,
            (6..=8, true) => self.sync(&name).await,
            (9 | 10, true) => {
                self.sync(&name).await?;
                self.close(&name).await
            }
            (11, true) => {
                self.drop_writer(&name);
                Ok(())
            }
            (_, false) if !self.is_there(&name) => {
                let lifetime = some_lifetime(&mut self.rng);
                let writer = self.files.create(&name, lifetime).await?;
                self.with(|tree| tree.insert(name.clone(), Known::default()));
                self.writers.insert(name.clone(), writer);
                self.append(&name).await
            }
            (0..=3, false) => self.delete(&name).await,
            (4..=6, false) => {
                let to = self.name();
                self.rename(&name, &to).await
            }
            _ => self.read(&name).await,
        }
    }

    fn writer(&mut self, name: &str) -> &mut Writer {
        self.writers.get_mut(name).expect("it is open")
    }

    async fn append(&mut self, name: &str) -> Result<(), FilesError> {
        let bytes = fresh(&mut self.rng);
        self.with(|tree| {
            let known = tree.get_mut(name).expect("it is there");
            known.bytes.extend_from_slice(&bytes);
        });
        self.writer(name).append(Content::Bytes(bytes)).await
    }

    async fn sync(&mut self, name: &str) -> Result<(), FilesError> {
        self.doing(Doing::Sync(name.to_owned()));
        let end = self.writer(name).sync().await;
        if end.is_ok() {
            self.with(|tree| {
                let known = tree.get_mut(name).expect("it is there");
                known.synced = Some(known.bytes.len());
            });
        }
        self.doing(Doing::Nothing);
        end
    }

    /// Of a file that is synced.
    async fn close(&mut self, name: &str) -> Result<(), FilesError> {
        let writer = self.writers.remove(name).expect("it is open");
        let len = writer.len();
        writer.close().await?;
        assert_eq!(self.with(|tree| tree[name].bytes.len()) as u64, len);
        Ok(())
    }

    fn drop_writer(&mut self, name: &str) {
        drop(self.writers.remove(name));
        self.with(|tree| {
            let known = tree.get_mut(name).expect("it is there");
            match known.synced {
                Some(synced) => known.bytes.truncate(synced),
                None => drop(tree.remove(name)),
            }
        });
    }

    async fn delete(&mut self, name: &str) -> Result<(), FilesError> {
        self.doing(Doing::Delete(name.to_owned()));
        let end = self.files.delete(name).await;
        if end.is_ok() {
            self.with(|tree| tree.remove(name));
        }
        self.doing(Doing::Nothing);
        end
    }

    async fn rename(&mut self, from: &str, to: &str) -> Result<(), FilesError> {
        if self.writers.contains_key(to) {
            let refused = self.files.rename(from, to).await;
            let name = to.to_owned();
            assert_eq!(refused, Err(FilesError::InUse { name }));
            return Ok(());
        }
        self.doing(Doing::Rename(from.to_owned(), to.to_owned()));
        let end = self.files.rename(from, to).await;
        if end.is_ok() {
            self.with(|tree| {
                let known = tree.remove(from).expect("it is there");
                tree.insert(to.to_owned(), known);
            });
        }
        self.doing(Doing::Nothing);
        end
    }

    async fn read(&mut self, name: &str) -> Result<(), FilesError> {
        let reader = self.files.open(name)?;
        let mut end = reader.len();
        if self.has_power_cuts {
            // The rest may be gone.
            let synced = self.with(|tree| tree[name].synced);
            end = end.min(synced.unwrap_or(0) as u64);
        }
        let offset = self.rng.below(end + 1);
        let len = self.rng.below(end - offset + 1);
        let read = reader.read(offset, len).await?;
        self.with(|tree| {
            let expected = &tree[name].bytes[offset as usize..(offset + len) as usize];
            assert!(read == Content::Bytes(expected.to_vec()), "{name}");
        });
        Ok(())
    }
}

/// What must be there after a loss of power, if what was under way happened or
/// if it did not.
fn possible(client: &Client) -> Vec<BTreeMap<String, Vec<u8>>> {
    let synced = |tree: &Tree| -> BTreeMap<String, Vec<u8>> {
        let of = |known: &Known| known.synced.map(|synced| known.bytes[..synced].to_vec());
        tree.iter()
            .filter_map(|(name, known)| Some((name.clone(), of(known)?)))
            .collect()
    };
    let before = synced(&client.tree);
    let mut after = before.clone();
    match &client.doing {
        Doing::Nothing => {}
        Doing::Sync(name) => {
            after.insert(name.clone(), client.tree[name].bytes.clone());
        }
        Doing::Delete(name) => drop(after.remove(name)),
        Doing::Rename(from, to) => {
            let moved = after.remove(from).expect("only synced files are renamed");
            after.insert(to.clone(), moved);
        }
    }
    vec![before, after]
}

async fn everything(files: &Files) -> Result<BTreeMap<String, Vec<u8>>, FilesError> {
    let mut all = BTreeMap::new();
    for (name, len) in files.list() {
        match files.open(&name)?.read(0, len).await? {
            Content::Bytes(bytes) => drop(all.insert(name, bytes)),
            Content::Sized(_) => panic!("the device keeps data"),
        }
    }
    Ok(all)
}

/// Compares what is there with what may be, and goes on from there.
fn check(model: &Model, found: &BTreeMap<String, Vec<u8>>) {
    let mut model = model.borrow_mut();
    for (me, client) in model.iter_mut().enumerate() {
        let prefix = format!("{me}-");
        let mine: BTreeMap<String, Vec<u8>> = found
            .iter()
            .filter(|(name, _)| name.starts_with(&prefix))
            .map(|(name, bytes)| (name.clone(), bytes.clone()))
            .collect();
        if !possible(client).contains(&mine) {
            let lens = |tree: &BTreeMap<String, Vec<u8>>| -> Vec<(String, usize)> {
                tree.iter().map(|(n, b)| (n.clone(), b.len())).collect()
            };
            let expected: Vec<_> = possible(client).iter().map(lens).collect();
            for (name, bytes) in &mine {
                for other in possible(client).iter().filter_map(|of| of.get(name)) {
                    let differs = (0..bytes.len()).find(|at| bytes.get(*at) != other.get(*at));
                    eprintln!("{name}: first difference {differs:?} of {}", other.len());
                }
            }
            panic!(
                "client {me} was in {:?}; found {:?}, expected one of {expected:?}",
                client.doing,
                lens(&mine)
            );
        }
        let known = |bytes: Vec<u8>| Known {
            synced: Some(bytes.len()),
            bytes,
        };
        client.tree = mine.into_iter().map(|(n, b)| (n, known(b))).collect();
        client.doing = Doing::Nothing;
    }
}

fn check_usage(usage: &Usage, found: &BTreeMap<String, Vec<u8>>, drive: &DriveConfig) {
    let valid: usize = found.values().map(Vec::len).sum();
    assert_eq!(usage.valid_bytes, valid as u64);
    assert_eq!(usage.files, found.len());
    let all = usage.occupied_bytes() + usage.unusable_bytes + usage.free_bytes;
    let zones = usage.zones;
    let dead = zones.read_only + zones.offline;
    let count = zones.empty + zones.open + zones.closed + zones.full + dead;
    assert_eq!(all, u64::from(count) * drive.zones.capacity_lbas * 4_096);
    let by_lifetime: u64 = usage.valid_by_lifetime.iter().sum();
    assert_eq!(by_lifetime, usage.valid_bytes + usage.padding_bytes);
}

/// What clients do.
#[derive(Clone, Copy)]
struct Load {
    operations: u64,
    has_power_cuts: bool,
}

async fn program(
    io: Io,
    config: FilesConfig,
    is_new: bool,
    model: Model,
    rng: Rng,
    drive: DriveConfig,
    load: Load,
) -> Result<Files, FilesError> {
    let files = match is_new {
        true => Files::format(&io, config).await?,
        false => Files::mount(&io, config).await?,
    };
    let found = everything(&files).await?;
    check(&model, &found);
    check_usage(&files.usage(), &found, &drive);
    let mut rng = rng;
    let workers = (0..CLIENTS).map(|me| {
        let worker = Worker {
            files: files.clone(),
            model: Rc::clone(&model),
            me,
            rng: Rng::new(rng.next_u64(), me as u64),
            writers: BTreeMap::new(),
            has_power_cuts: load.has_power_cuts,
        };
        io.spawn(worker.work(load.operations))
    });
    let ends: Vec<_> = workers.collect();
    for end in join_all(ends).await {
        end?;
    }
    let found = everything(&files).await?;
    check(&model, &found);
    check_usage(&files.usage(), &found, &drive);
    Ok(files)
}

fn any_config(rng: &mut Rng) -> FilesConfig {
    FilesConfig {
        keeps_data: true,
        meta_zones: 2 + rng.below(2) as u32,
        finish_threshold_percent: [0, 10, 60, 99, 100][rng.below(5) as usize],
        finish_when: [FinishWhen::AtLimit, FinishWhen::Eager][rng.below(2) as usize],
        io_bytes: [4 << 10, 20 << 10, 128 << 10, 1 << 20][rng.below(4) as usize],
        write_depth: rng.below(4) as u32,
        wal_zones: rng.below(3) as u32,
        explicit_open: rng.below(2) == 0,
        ..FilesConfig::default()
    }
}

/// The file layer and the drive think the same of every zone.
fn compare_with_drive(machine: &Machine, files: &Files) {
    machine.device.with_drive(|drive| {
        for of in files.zone_use() {
            let zone = zonelab_device::ZoneId(of.zone);
            let state = drive.zones().state(zone);
            let expected = match of.state {
                // A writer that was dropped leaves its zone to whoever wants one next.
                ZoneUseState::Open => continue,
                ZoneUseState::Empty => ZoneState::EMPTY,
                ZoneUseState::Closed => ZoneState::CLOSED,
                ZoneUseState::Full | ZoneUseState::Finished => ZoneState::FULL,
                ZoneUseState::ReadOnly => ZoneState::READ_ONLY,
                ZoneUseState::Offline => ZoneState::OFFLINE,
            };
            assert_eq!(state, expected, "{of:?}");
            if state == ZoneState::CLOSED {
                assert_eq!(drive.zones().written_lbas(zone) * 4_096, of.written_bytes);
            }
        }
    });
}

#[test]
fn files_are_what_a_map_says() {
    each_seed("files_are_what_a_map_says", 150, |seed| {
        let mut rng = Rng::new(seed, 1);
        let drive = any_small(&mut rng);
        let config = any_config(&mut rng);
        let mut machine = Machine::new(&drive);
        let model = new_model();
        let files = machine.run({
            let (model, rng) = (Rc::clone(&model), Rng::new(seed, 2));
            let drive = drive.clone();
            move |io| {
                program(
                    io,
                    config,
                    true,
                    model,
                    rng,
                    drive,
                    Load {
                        operations: 60,
                        has_power_cuts: false,
                    },
                )
            }
        });
        let files = files.expect("a drive that works");
        compare_with_drive(&machine, &files);
    });
}

#[test]
fn synced_files_survive_losses_of_power() {
    let met = RefCell::new(Met::default());
    each_seed("synced_files_survive_losses_of_power", 400, |seed| {
        let mut rng = Rng::new(seed, 3);
        let drive = any_small(&mut rng);
        let config = any_config(&mut rng);
        let mut machine = Machine::new(&drive);
        let model = new_model();
        let mut is_new = true;
        for round in 0..6 {
            // Often enough while it mounts.
            let most = [30, 100, 400][rng.below(3) as usize];
            let cut = (round < 5).then(|| Cut::draw(&mut rng, most));
            let end = machine.run_until(cut, {
                let (config, model) = (config.clone(), Rc::clone(&model));
                let (drive, rng) = (drive.clone(), Rng::new(rng.next_u64(), round));
                move |io| {
                    program(
                        io,
                        config,
                        is_new,
                        model,
                        rng,
                        drive,
                        Load {
                            operations: 25,
                            has_power_cuts: false,
                        },
                    )
                }
            });
            match end {
                End::Returned(Ok(_)) => is_new = false,
                End::Returned(Err(FilesError::NotFormatted { .. })) if !is_new => {
                    unreachable!("seed {seed}: what was formatted is gone")
                }
                End::Returned(Err(error)) => panic!("round {round}: {error}"),
                // A format that did not end is done again.
                End::Cut => is_new = is_new && !was_formatted(&mut machine, &config),
            }
        }
        met.borrow_mut().add(machine.met);
    });
    met.into_inner().is_enough();
}

/// Whether a file system can be mounted.
fn was_formatted(machine: &mut Machine, config: &FilesConfig) -> bool {
    let config = config.clone();
    machine.run(async move |io| match Files::mount(&io, config).await {
        Ok(_) => true,
        Err(FilesError::NotFormatted { .. }) => false,
        Err(error) => panic!("{error}"),
    })
}

/// Commands that fail now and then, and zones that die.
fn any_faults(rng: &mut Rng) -> FaultPlan {
    let mut faults = Vec::new();
    let mut add = |trigger, effect, per_mille: u32, count| {
        let when = Match {
            probability_ppm: per_mille * 1_000,
            count,
            skip: 4,
            ..Match::every(trigger)
        };
        faults.push(Fault { when, effect });
    };
    let fails = Effect::Fail(Status::INTERNAL_ERROR);
    let timeout = Some(Nanos::from_ms(2));
    add(Trigger::Write, Effect::ReadOnly, 5, rng.below(3));
    add(Trigger::Write, fails, 20, u64::MAX);
    add(Trigger::Write, Effect::Lose { timeout }, 10, u64::MAX);
    add(
        Trigger::Write,
        Effect::Delay(Nanos::from_ms(1)),
        50,
        u64::MAX,
    );
    for trigger in [
        Trigger::Reset,
        Trigger::Finish,
        Trigger::Close,
        Trigger::Open,
    ] {
        add(trigger, fails, 50, 10);
        add(trigger, Effect::Lose { timeout }, 20, u64::MAX);
    }
    FaultPlan {
        seed: rng.next_u64(),
        faults,
    }
}

#[test]
fn synced_files_survive_failing_commands() {
    each_seed("synced_files_survive_failing_commands", 150, |seed| {
        let mut rng = Rng::new(seed, 4);
        let mut drive = any_small(&mut rng);
        // Zones that the device will neither finish nor reset stay active.
        drive.zones.max_active = None;
        drive.zones.max_open = None;
        let config = FilesConfig {
            meta_zones: 5,
            ..any_config(&mut rng)
        };
        let faulty = FaultyDrive::new(Drive::new(&drive), any_faults(&mut rng));
        let mut machine = Machine::of(faulty);
        let model = new_model();
        for round in 0..3 {
            let is_new = round == 0;
            let end = machine.run({
                let (config, model) = (config.clone(), Rc::clone(&model));
                let (drive, rng) = (drive.clone(), Rng::new(rng.next_u64(), round));
                move |io| {
                    program(
                        io,
                        config,
                        is_new,
                        model,
                        rng,
                        drive,
                        Load {
                            operations: 25,
                            has_power_cuts: false,
                        },
                    )
                }
            });
            if let Err(error) = end.map(drop) {
                panic!("round {round}: {error}");
            }
        }
    });
}

/// The drive loses power, and the program goes on: what was written and not
/// flushed may be gone, and no sync says otherwise.
#[test]
fn a_sync_is_true_even_if_the_drive_lost_power_before() {
    each_seed("a_sync_is_true_even_if_the_drive", 200, |seed| {
        let mut rng = Rng::new(seed, 5);
        let mut drive = any_small(&mut rng);
        // A full zone that loses its end is active again, and nobody knows.
        drive.zones.max_active = None;
        drive.zones.max_open = None;
        // Data takes its time: a write that goes by with the power is aborted. A loss
        // with nothing in flight is one that nobody can notice.
        drive.front_end.link_bytes_per_s = Some(1_000_000_000);
        let config = any_config(&mut rng);
        let faults = (0..1 + rng.below(4))
            .map(|_| Fault {
                when: Match {
                    skip: 10 + rng.below(150),
                    count: 1,
                    // A command in flight, without which nobody would notice.
                    ..Match::every(Trigger::Write)
                },
                effect: Effect::PowerCut {
                    off: Nanos::from_ms(rng.below(5)),
                },
            })
            .collect();
        let plan = FaultPlan {
            seed: rng.next_u64(),
            faults,
        };
        let mut machine = Machine::of(FaultyDrive::new(Drive::new(&drive), plan));
        let model = new_model();
        for round in 0..2 {
            let end = machine.run({
                let (config, model) = (config.clone(), Rc::clone(&model));
                let (drive, rng) = (drive.clone(), Rng::new(rng.next_u64(), round));
                move |io| {
                    program(
                        io,
                        config,
                        round == 0,
                        model,
                        rng,
                        drive,
                        Load {
                            operations: 40,
                            has_power_cuts: true,
                        },
                    )
                }
            });
            match end.map(drop) {
                Ok(()) => {}
                // It happened while everything was read or mounted: once more.
                Err(FilesError::Command { status, .. }) if status == Status::ABORTED_BY_HOST => {
                    machine.device.with_faults(|drive| drive.clear_faults());
                }
                Err(error) => panic!("round {round}: {error}"),
            }
        }
    });
}
