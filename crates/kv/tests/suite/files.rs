//! Files in zones, on drives that work.

use crate::support::{Machine, small};
use zonelab_kv::Content;
use zonelab_kv::files::{Files, FilesConfig, FilesError, Lifetime};
use zonelab_ssd::config::DataStore;

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|at| (at as u8).wrapping_mul(31) ^ seed)
        .collect()
}

fn keeping() -> FilesConfig {
    FilesConfig {
        keeps_data: true,
        io_bytes: 64 << 10,
        ..FilesConfig::default()
    }
}

#[test]
fn what_was_written_is_read() {
    let mut machine = Machine::new(&small());
    machine
        .run(async |io| {
            let files = Files::format(&io, keeping()).await?;
            let mut writer = files.create("a", Lifetime::Medium).await?;
            // More than a zone, in pieces that fit nothing.
            let all = bytes(700_001, 3);
            for piece in all.chunks(10_007) {
                writer.append(Content::Bytes(piece.to_vec())).await?;
            }
            writer.sync().await?;
            writer.append(Content::Bytes(vec![7; 5])).await?;
            assert_eq!(writer.len(), 700_006);
            writer.close().await?;
            assert_eq!(files.list(), [("a".to_owned(), 700_006)]);
            let reader = files.open("a")?;
            let whole = [&all[..], &[7; 5]].concat();
            for (offset, len) in [
                (0, 700_006),
                (1, 700_005),
                (699_999, 7),
                (4_096, 1),
                (524_287, 2),
            ] {
                let expected = whole[offset..offset + len].to_vec();
                let read = reader.read(offset as u64, len as u64).await?;
                assert_eq!(read, Content::Bytes(expected), "{len} at {offset}");
            }
            Ok::<_, FilesError>(())
        })
        .expect("a drive that works");
}

#[test]
fn sizes_alone_do_on_a_drive_that_keeps_nothing() {
    let mut config = small();
    config.data = DataStore::None;
    let mut machine = Machine::new(&config);
    machine
        .run(async |io| {
            let config = FilesConfig::default();
            let files = Files::format(&io, config.clone()).await?;
            let mut writer = files.create("a", Lifetime::Medium).await?;
            writer.append(Content::Sized(3 << 20)).await?;
            writer.close().await?;
            let read = files.open("a")?.read(1_000_000, 5_000).await?;
            assert_eq!(read, Content::Sized(5_000));
            assert_eq!(files.usage().valid_bytes, 3 << 20);
            files.delete("a").await?;
            let usage = files.usage();
            assert_eq!((usage.valid_bytes, usage.invalid_bytes), (0, 0));
            assert_eq!((usage.zones.empty, usage.resets), (21, 6));
            Ok::<_, FilesError>(())
        })
        .expect("a drive that works");
}
