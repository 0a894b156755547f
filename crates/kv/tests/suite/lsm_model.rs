//! The store against an ordered map, with and without data.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::support::lsm::{Op, any_options, roomy, value_of};
use crate::support::{Machine, each_seed};
use zonelab_device::Nanos;
use zonelab_host::Rng;
use zonelab_host::tasks::Io;
use zonelab_kv::Content;
use zonelab_kv::files::{Files, FilesConfig, Usage};
use zonelab_kv::lsm::{Db, DbError, DbStats, Options, Shadow, Value};
use zonelab_ssd::config::DataStore;

/// What the store said, with values by their lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Got(Option<u64>),
    Scanned(Vec<(Vec<u8>, u64)>),
}

struct Run {
    answers: Vec<Answer>,
    stats: DbStats,
    usage: Usage,
    end: Nanos,
}

async fn run(io: Io, ops: Rc<Vec<Op>>, options: Options) -> Result<Run, DbError> {
    let keeps_data = options.keeps_data;
    let config = FilesConfig {
        keeps_data,
        io_bytes: 64 << 10,
        finish_threshold_percent: 50,
        ..FilesConfig::default()
    };
    let files = Files::format(&io, config).await?;
    let shadow = Shadow::default();
    let mut db = Db::open_with(&io, &files, options.clone(), shadow.clone()).await?;
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut answers = Vec::new();
    for op in ops.iter() {
        match op {
            Op::Put(key, len, id) => {
                let value = value_of(*id, *len);
                match keeps_data {
                    true => db.put(key, Value::Bytes(&value)).await?,
                    false => db.put(key, Value::Sized(*len)).await?,
                }
                model.insert(key.clone(), value);
            }
            Op::Delete(key) => {
                db.delete(key).await?;
                model.remove(key);
            }
            Op::Get(key) => {
                let got = db.get(key).await?;
                let expected = model.get(key);
                match &got {
                    Some(Content::Bytes(bytes)) => assert_eq!(Some(bytes), expected, "{key:?}"),
                    _ => assert_eq!(
                        got.as_ref().map(Content::len),
                        expected.map(|value| value.len() as u64),
                        "{key:?}"
                    ),
                }
                answers.push(Answer::Got(got.map(|content| content.len())));
            }
            Op::Scan(from, limit) => {
                let mut found = Vec::new();
                let each = |key: &[u8], len| found.push((key.to_vec(), len));
                let count = db.scan(from, *limit, each).await?;
                let expected: Vec<(Vec<u8>, u64)> = model
                    .range(from.clone()..)
                    .take(*limit)
                    .map(|(key, value)| (key.clone(), value.len() as u64))
                    .collect();
                assert_eq!(found, expected, "from {from:?}");
                assert_eq!(count, found.len());
                answers.push(Answer::Scanned(found));
            }
            Op::Sync => db.sync().await?,
            Op::Flush => db.flush().await?,
            Op::Reopen => {
                db.close().await?;
                db = Db::open_with(&io, &files, options.clone(), shadow.clone()).await?;
            }
        }
    }
    db.idle().await?;
    let stats = db.stats();
    db.close().await?;
    Ok(Run {
        answers,
        stats,
        usage: files.usage(),
        end: io.now(),
    })
}

#[test]
fn random_operations_agree_with_a_map_and_need_the_same_commands_without_data() {
    each_seed("random_operations_agree", 60, |seed| {
        let mut rng = Rng::new(seed, 0);
        let ops = Rc::new(Op::draw_many(&mut rng, 1_500));
        let options = any_options(&mut rng);
        let mut runs = [true, false].map(|keeps_data| {
            let mut config = roomy();
            if !keeps_data {
                config.data = DataStore::None;
            }
            let (ops, options) = (Rc::clone(&ops), options.clone());
            let options = Options {
                keeps_data,
                ..options
            };
            let run = Machine::new(&config).run(async |io| run(io, ops, options).await);
            run.expect("the drive works and is large enough")
        });
        let [with, without] = &mut runs;
        assert_eq!(with.answers, without.answers);
        assert_eq!(with.stats, without.stats);
        assert_eq!(with.usage, without.usage);
        assert_eq!(
            with.end, without.end,
            "the same commands take the same time"
        );
    });
}
