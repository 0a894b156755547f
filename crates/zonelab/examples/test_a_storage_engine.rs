//! Does a storage engine keep what it acknowledged? A test of one's own engine, with power
//! lost at each of its commands.
//!
//! ```console
//! $ cargo run --release -p zonelab --example test_a_storage_engine
//! ```
//!
//! The engine is a log of records in two zones, such as a database's write-ahead log. It
//! is here twice: one that flushes before it says that a record is safe, and one that
//! trusts the drive's acknowledgement, as many a program does. Drives keep acknowledged
//! writes in a volatile buffer, so that the second loses records; the first never does.

use zonelab::testing::{
    CrashFailure, CrashPlan, CrashReport, TestDrive, TestDriveError, at_every_crash,
};

/// Why the engine failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// The drive did.
    #[error(transparent)]
    Drive(#[from] TestDriveError),
    /// A record that was said to be safe is not there.
    #[error("{kept} records are there, and {promised} were promised")]
    Lost {
        /// Records that were found.
        kept: u64,
        /// Records that the engine had said were safe.
        promised: u64,
    },
    /// A block is no record, and is not behind the last.
    #[error("block {block} is not record {record}")]
    Torn {
        /// The block.
        block: u64,
        /// The record that has to be there.
        record: u64,
    },
}

/// A log of records of a block each, in zone after zone.
pub(crate) struct Log<'a> {
    drive: &'a TestDrive,
    records: u64,
    does_flush: bool,
}

impl<'a> Log<'a> {
    /// Finds the records on a drive.
    fn open(drive: &'a TestDrive, does_flush: bool) -> Result<Self, EngineError> {
        let mut records = 0;
        for zone in 0..drive.zones() {
            let report = drive.zone(zone)?;
            for block in report.start..report.write_pointer() {
                let found = drive.read(block, 1)?;
                if found[..8] != u64::to_le_bytes(records) {
                    return Err(EngineError::Torn {
                        block,
                        record: records,
                    });
                }
                records += 1;
            }
            if report.written < report.capacity {
                break;
            }
        }
        Ok(Self {
            drive,
            records,
            does_flush,
        })
    }

    /// Appends a record. When it returns, the record is safe: so it says.
    fn append(&mut self) -> Result<u64, EngineError> {
        let mut block = vec![0; self.drive.block_bytes() as usize];
        block[..8].copy_from_slice(&self.records.to_le_bytes());
        let zone = self.records / self.drive.zone_capacity();
        self.drive.append(zone as u32, &block)?;
        if self.does_flush {
            self.drive.flush()?;
        }
        self.records += 1;
        Ok(self.records)
    }
}

/// Loses power at each command of the engine. Returns what the losses met that it survived.
pub(crate) fn test(does_flush: bool) -> Result<CrashReport, CrashFailure<EngineError>> {
    // What the engine said is noted here, outside of the drive.
    let work = |drive: &TestDrive, promised: &mut u64| -> Result<(), EngineError> {
        let mut log = Log::open(drive, does_flush)?;
        for _ in 0..40 {
            *promised = log.append()?;
        }
        Ok(())
    };
    let check = |drive: &TestDrive, promised: &u64| -> Result<(), EngineError> {
        let log = Log::open(drive, does_flush)?;
        match log.records >= *promised {
            true => Ok(()),
            false => Err(EngineError::Lost {
                kept: log.records,
                promised: *promised,
            }),
        }
    };
    let make = |seed| {
        let drive = TestDrive::builder()
            .zones(2)
            .zone_capacity_bytes(128 << 10)
            .seed(seed)
            .build();
        drive.expect("these are settings of a drive")
    };
    at_every_crash(CrashPlan::default().with_environment(), make, work, check)
}

fn main() {
    for (name, does_flush) in [
        ("flushes before it promises", true),
        ("trusts acknowledgements", false),
    ] {
        match test(does_flush) {
            Ok(report) => println!("an engine that {name}: survived {report}"),
            Err(failure) => println!("an engine that {name}: {failure}"),
        }
    }
}
