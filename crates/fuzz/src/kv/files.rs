//! Files whose metadata log is damaged.

use std::collections::BTreeMap;

use zonelab_device::{Buf, Command, Lba, Op};
use zonelab_host::Rng;
use zonelab_host::tasks::Io;
use zonelab_kv::Content;
use zonelab_kv::files::{Files, FilesError, Lifetime};
use zonelab_nvme::zns::ZoneSendAction;

use super::{Machine, files_config, flip, forge, overwrite, small_drive};
use crate::draw::Draw;

type Map = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    /// Name, and bytes of each sync.
    Write(String, Vec<usize>),
    Delete(String),
    Rename(String, String),
}

pub(super) fn run(draw: &mut Draw<'_>) {
    let (count, mut rng) = (draw.int(0..=20_u8), Rng::new(draw.wide(), 0));
    let steps: Vec<Step> = (0..count).map(|_| step(&mut rng)).collect();
    let mut machine = Machine::new();
    let states = machine.run(|io| make(io, steps));
    let states = states.expect("the drive works and is large enough");
    let zone = 0;
    let block_bytes = small_drive().lba_bytes as usize;
    let written = (machine.device).with_drive(|drive| {
        let id = zonelab_device::ZoneId(zone);
        drive.zones().written_lbas(id) as usize
    });
    let mut log = machine.run(|io| read_blocks(io, zone, written));
    let is_flip = draw.flag();
    if is_flip {
        flip(&mut log, draw);
    } else {
        for _ in 0..draw.int(1..=4_u8) {
            // Where something is: a batch rarely fills its block.
            let block = draw.int(0..=written - 1) * block_bytes;
            let from = if draw.one_in(4) { 0 } else { 72 };
            overwrite(&mut log[block + from..block + 200], draw);
        }
        forge::batches(&mut log, block_bytes);
    }
    machine.run(|io| write_blocks(io, zone, log));
    if !is_flip {
        let used = machine.run(use_up);
        if let Err(error) = used {
            assert!(!error.to_string().is_empty(), "refused without a reason");
        }
        return;
    }
    match machine.run(everything) {
        Ok(found) => {
            let last = states.iter().rev().take(2);
            assert!(last.clone().any(|state| *state == found), "{found:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty(), "refused without a reason"),
    }
}

fn step(rng: &mut Rng) -> Step {
    let mut name = || format!("file{}", rng.below(6));
    let (one, other) = (name(), name());
    match rng.below(4) {
        0 => Step::Delete(one),
        1 => Step::Rename(one, other),
        _ => {
            let syncs = 1 + rng.below(3);
            let len = |_| rng.below(20_000) as usize;
            Step::Write(one, (0..syncs).map(len).collect())
        }
    }
}

/// Makes files, and gives all that there was, one state for each batch.
async fn make(io: Io, steps: Vec<Step>) -> Result<Vec<Map>, FilesError> {
    let files = Files::format(&io, files_config()).await?;
    let mut states = vec![Map::new()];
    for step in steps {
        let mut now = states.last().cloned().unwrap_or_default();
        match step {
            Step::Write(name, _) if now.contains_key(&name) => {}
            Step::Write(name, syncs) => {
                let mut writer = files.create(&name, Lifetime::Medium).await?;
                for (at, len) in syncs.into_iter().enumerate() {
                    let bytes = vec![(at + states.len()) as u8; len];
                    writer.append(Content::Bytes(bytes.clone())).await?;
                    writer.sync().await?;
                    let is_new = !now.contains_key(&name);
                    now.entry(name.clone()).or_default().extend(bytes);
                    if is_new || len > 0 {
                        states.push(now.clone());
                    }
                }
                writer.close().await?;
            }
            Step::Delete(name) => {
                if now.remove(&name).is_some() {
                    files.delete(&name).await?;
                    states.push(now);
                }
            }
            Step::Rename(from, to) => {
                if from != to
                    && let Some(bytes) = now.remove(&from)
                {
                    now.insert(to.clone(), bytes);
                    files.rename(&from, &to).await?;
                    states.push(now);
                }
            }
        }
    }
    Ok(states)
}

async fn read_blocks(io: Io, zone: u32, blocks: usize) -> Vec<u8> {
    let config = small_drive();
    let op = Op::Read {
        slba: Lba(u64::from(zone) * config.zones.size_lbas),
        nlb: blocks as u32,
    };
    let buffer = Buf::zeroed(blocks * config.lba_bytes as usize);
    let answer = io.run(Command::new(op), Some(buffer)).await;
    let data = answer.expect("it is there").data;
    data.expect("the buffer comes back").to_vec()
}

async fn write_blocks(io: Io, zone: u32, bytes: Vec<u8>) {
    let config = small_drive();
    let slba = Lba(u64::from(zone) * config.zones.size_lbas);
    let reset = Op::ZoneSend {
        slba,
        action: ZoneSendAction::RESET,
        select_all: false,
    };
    let nlb = (bytes.len() / config.lba_bytes as usize) as u32;
    for (op, data) in [(reset, None), (Op::Write { slba, nlb }, Some(bytes))] {
        let answer = io.run(Command::new(op), data.map(Buf::from)).await;
        assert!(answer.expect("it is there").status.is_success());
    }
}

async fn everything(io: Io) -> Result<Map, FilesError> {
    let files = Files::mount(&io, files_config()).await?;
    let mut all = Map::new();
    for (name, len) in files.list() {
        if let Content::Bytes(bytes) = files.open(&name)?.read(0, len).await? {
            all.insert(name, bytes);
        }
    }
    Ok(all)
}

/// Files that were forged are used like any others.
async fn use_up(io: Io) -> Result<(), FilesError> {
    let files = Files::mount(&io, files_config()).await?;
    let names = files.list();
    for (name, len) in &names {
        if let Ok(reader) = files.open(name) {
            drop(reader.read(0, *len).await);
        }
    }
    for (name, _) in names.iter().step_by(2) {
        files.delete(name).await?;
    }
    let bytes = vec![7; 30_000];
    let mut writer = files.create("a new one", Lifetime::Short).await?;
    writer.append(Content::Bytes(bytes.clone())).await?;
    writer.close().await?;
    files.rename("a new one", "another name").await?;
    let found = everything(io).await?;
    assert!(found.get("another name") == Some(&bytes));
    Ok(())
}
