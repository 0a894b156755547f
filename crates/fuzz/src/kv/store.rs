//! A store whose files are damaged.

use std::collections::BTreeMap;

use zonelab_host::Rng;
use zonelab_host::tasks::Io;
use zonelab_kv::Content;
use zonelab_kv::files::{Files, FilesError, Lifetime};
use zonelab_kv::lsm::{CpuCosts, Db, DbError, Options, Value};

use super::{Machine, files_config, flip, forge, overwrite};
use crate::draw::Draw;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a client does to a store.
#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Flush,
}

pub(super) fn run(draw: &mut Draw<'_>) {
    let options = options(draw);
    // A few bytes for all of them: the rest of the input is about the damage.
    let (count, mut rng) = (draw.int(0..=120_u8), Rng::new(draw.wide(), 0));
    let ops: Vec<Op> = (0..count).map(|at| op(&mut rng, at)).collect();
    let mut model = Map::new();
    for op in &ops {
        match op {
            Op::Put(key, value) => drop(model.insert(key.clone(), value.clone())),
            Op::Delete(key) => drop(model.remove(key)),
            Op::Flush => {}
        }
    }
    let made = {
        let options = options.clone();
        Machine::new().run(|io| make(io, options, ops))
    };
    let mut files = made.expect("the drive works and is large enough");
    let is_flip = draw.flag();
    let edits = damage(&mut files, is_flip, draw);
    let mut machine = Machine::new();
    let put = machine.run(|io| put_files(io, files));
    put.expect("the drive works and is large enough");
    if !is_flip && edits > 0 {
        let used = machine.run(|io| use_up(io, options));
        if let Err(error) = used {
            assert!(!error.to_string().is_empty(), "refused without a reason");
        }
        return;
    }
    match machine.run(|io| everything(io, options)) {
        Ok(found) => assert!(found == model, "damage went unseen and changed answers"),
        Err(error) => {
            assert!(edits > 0, "nothing was damaged: {error}");
            assert!(!error.to_string().is_empty(), "refused without a reason");
        }
    }
}

/// Settings with which a little is enough for several levels.
fn options(draw: &mut Draw<'_>) -> Options {
    Options {
        write_buffer_size: draw.pick(&[1 << 10, 4 << 10, 64 << 10]),
        level0_file_num_compaction_trigger: draw.pick(&[4, 2]),
        target_file_size_base: 4 << 10,
        max_bytes_for_level_base: 8 << 10,
        max_bytes_for_level_multiplier: 2,
        num_levels: 4,
        block_size: draw.pick(&[512, 64, 4096]),
        bloom_bits_per_key: draw.pick(&[10, 0]),
        block_cache_bytes: draw.pick(&[0, 64 << 10]),
        costs: CpuCosts::FREE,
        ..Options::default()
    }
}

fn op(rng: &mut Rng, number: u8) -> Op {
    let key = || format!("key{}", number % 37).into_bytes();
    match rng.below(16) {
        0 => Op::Flush,
        1..=3 => Op::Delete(key()),
        kind => Op::Put(key(), vec![number; kind as usize * 11]),
    }
}

/// Makes a store, and gives the files that it consists of.
async fn make(
    io: Io,
    options: Options,
    ops: Vec<Op>,
) -> Result<BTreeMap<String, Vec<u8>>, DbError> {
    let files = Files::format(&io, files_config()).await?;
    let db = Db::open(&io, &files, options).await?;
    for op in ops {
        match op {
            Op::Put(key, value) => db.put(&key, Value::Bytes(&value)).await?,
            Op::Delete(key) => db.delete(&key).await?,
            Op::Flush => db.flush().await?,
        }
    }
    db.close().await?;
    let mut all = BTreeMap::new();
    for (name, len) in files.list() {
        if let Content::Bytes(bytes) = files.open(&name)?.read(0, len).await? {
            all.insert(name, bytes);
        }
    }
    Ok(all)
}

/// Changes some of the files; returns how often.
fn damage(files: &mut BTreeMap<String, Vec<u8>>, is_flip: bool, draw: &mut Draw<'_>) -> u8 {
    let tails = files
        .iter()
        .find(|(name, _)| name.starts_with("MANIFEST"))
        .map(|(_, bytes)| forge::tails(bytes))
        .unwrap_or_default();
    let names: Vec<String> = files.keys().cloned().collect();
    let edits = draw.pick(&[0, 1, 1, 2, 3]);
    for _ in 0..edits {
        // By name, `CURRENT` is the last but the manifest, and the shortest of all.
        let mut name = &names[draw.int(0..=names.len() - 1)];
        if name == "CURRENT" && !draw.one_in(4) {
            name = &names[0];
        }
        let Some(bytes) = files.get_mut(name).filter(|bytes| !bytes.is_empty()) else {
            continue;
        };
        if is_flip {
            flip(bytes, draw);
            continue;
        }
        overwrite(bytes, draw);
        if draw.one_in(8) {
            bytes.truncate(draw.int(0..=bytes.len()));
        }
        if draw.one_in(8) {
            let again = bytes.clone();
            bytes.extend(again);
        }
        if name.starts_with("MANIFEST") {
            forge::manifest(bytes);
        } else if name.ends_with(".log") {
            forge::log(bytes);
        } else if let Some(number) = name.strip_suffix(".sst") {
            let number = number.parse().unwrap_or(0);
            let tail = tails.iter().find(|(of, _)| *of == number);
            tail.and_then(|(_, len)| forge::table(bytes, *len));
        }
        match draw.int(0..=15_u8) {
            1 => drop(files.remove(name)),
            2 => {
                let other = names[draw.int(0..=names.len() - 1)].clone();
                if let Some(bytes) = files.get(name).cloned() {
                    files.insert(other, bytes);
                }
            }
            3 => {
                let number = draw.wide();
                let name = match draw.int(0..=2_u8) {
                    0 => format!("{number:06}.sst"),
                    1 => format!("{number:06}.log"),
                    _ => format!("MANIFEST-{number:06}"),
                };
                files.insert(name, vec![draw.int(0..=255); 40]);
            }
            _ => {}
        }
    }
    edits
}

async fn put_files(io: Io, contents: BTreeMap<String, Vec<u8>>) -> Result<(), FilesError> {
    let files = Files::format(&io, files_config()).await?;
    for (name, bytes) in contents {
        let mut writer = files.create(&name, Lifetime::Medium).await?;
        writer.append(Content::Bytes(bytes)).await?;
        writer.close().await?;
    }
    Ok(())
}

/// All that a store holds, by a range query and by point queries.
async fn everything(io: Io, options: Options) -> Result<Map, DbError> {
    let files = Files::mount(&io, files_config()).await?;
    let db = Db::open(&io, &files, options).await?;
    let mut keys = Vec::new();
    let count = db
        .scan(&[], 1 << 20, |key, len| keys.push((key.to_vec(), len)))
        .await?;
    assert!(count < 1 << 20, "a range query goes round in circles");
    let mut found = Map::new();
    for (key, len) in keys {
        let Some(Content::Bytes(value)) = db.get(&key).await? else {
            panic!("{key:?} is in a range and not at its point");
        };
        assert_eq!(value.len() as u64, len);
        found.insert(key, value);
    }
    db.close().await?;
    Ok(found)
}

/// A store that was forged is used like any other.
async fn use_up(io: Io, options: Options) -> Result<(), DbError> {
    let files = Files::mount(&io, files_config()).await?;
    let db = Db::open(&io, &files, options).await?;
    let mut seen = 0_u64;
    db.scan(&[], 1 << 16, |_, _| seen += 1).await?;
    for number in 0..40_u8 {
        drop(db.get(format!("key{number}").as_bytes()).await);
        let value = [number; 100];
        db.put(&[number; 5], Value::Bytes(&value)).await?;
    }
    db.flush().await?;
    db.idle().await?;
    for number in 0..40_u8 {
        // What was written now is not lost for what was forged before; and what cannot
        // be read is an error.
        let value = db.get(&[number; 5]).await?;
        assert_eq!(value, Some(Content::Bytes(vec![number; 100])));
    }
    db.close().await
}
