//! smoke
mod support;
use support::{Machine, small};
use zonelab_kv::Content;
use zonelab_kv::files::{Files, FilesConfig};
use zonelab_kv::lsm::{Db, DbError, Options, Value};

#[test]
fn smoke() {
    let mut machine = Machine::new(&small());
    machine
        .run(async |io| {
            let config = FilesConfig {
                keeps_data: true,
                ..FilesConfig::default()
            };
            let files = Files::format(&io, config).await?;
            let options = Options {
                write_buffer_size: 64 << 10,
                target_file_size_base: 64 << 10,
                max_bytes_for_level_base: 256 << 10,
                max_bytes_for_level_multiplier: 4,
                ..Options::default()
            };
            let db = Db::open(&io, &files, options.clone()).await?;
            for i in 0..5_000_u32 {
                let key = (i * 7919 % 3000).to_be_bytes();
                db.put(&key, Value::Bytes(&vec![i as u8; 200])).await?;
                if i % 5 == 0 {
                    db.delete(&(i % 3000).to_be_bytes()).await?;
                }
            }
            println!("{:?}", db.get(&5u32.to_be_bytes()).await?.map(|c| c.len()));
            db.close().await?;
            let db = Db::open(&io, &files, options.clone()).await?;
            db.idle().await?;
            let mut n = 0;
            db.scan(b"", 10_000, |_, len| {
                assert_eq!(len, 200);
                n += 1;
            })
            .await?;
            println!("{n} {:#?} {:?}", db.stats(), files.usage());
            let _ = Content::Sized(0);
            db.close().await?;
            Ok::<_, DbError>(())
        })
        .expect("a drive that works");
}
