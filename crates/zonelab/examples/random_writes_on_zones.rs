//! Random writes on a drive of zones: a translation layer over an emulated drive, and a
//! program on it that knows nothing of zones.
//!
//! ```console
//! $ cargo run --release -p zonelab --example random_writes_on_zones
//! ```
//!
//! The program overwrites random blocks of the layer three times over, and reads some of
//! them back. The layer writes zones from their starts, collects those whose data has been
//! replaced, and resets them.

use zonelab::device::{Buf, Command, Lba, Nanos, Op};
use zonelab::ftl::{FormatSettings, FtlDevice, FtlError, FtlSettings, Start};
use zonelab::host::tasks::{Io, Tasks, TasksConfig};
use zonelab::host::{CoreId, Reactor, Rng, StopSignal, VirtualClock};
use zonelab::sim::{Emulated, HostCosts};
use zonelab::ssd::Drive;
use zonelab::testing::TestDrive;

/// What came of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    /// Logical blocks of the layer.
    pub(crate) blocks: u64,
    /// Blocks written to zones for each block that the program wrote.
    pub(crate) write_amplification: f64,
    /// Zones that were reset.
    pub(crate) resets: u64,
    /// The time on the drive's clock.
    pub(crate) took: Nanos,
}

/// Overwrites random blocks, and looks at some of them.
async fn program(io: Io, blocks: u64) -> Result<(), String> {
    let block_bytes = io.info().namespaces[0].lba_bytes as usize;
    let mut last_written = vec![0_u8; usize::try_from(blocks).map_err(|_| "too large")?];
    let mut rng = Rng::new(7, 0);
    for round in 0..3 * blocks {
        let block = rng.below(blocks);
        let byte = (round % 251) as u8 + 1;
        let write = Command::new(Op::Write {
            slba: Lba(block),
            nlb: 1,
        });
        let data = Buf::from(vec![byte; block_bytes]);
        let answer = io.run(write, Some(data)).await;
        let answer = answer.map_err(|reason| reason.to_string())?;
        if !answer.status.is_success() {
            return Err(format!("block {block}: {}", answer.status));
        }
        last_written[block as usize] = byte;
    }
    let flush = io.run(Command::new(Op::Flush), None).await;
    flush.map_err(|reason| reason.to_string())?;
    for (block, byte) in (0..).zip(last_written).step_by(97) {
        let read = Command::new(Op::Read {
            slba: Lba(block),
            nlb: 1,
        });
        let answer = io.run(read, Some(Buf::zeroed(block_bytes))).await;
        let data = answer.map_err(|reason| reason.to_string())?.data;
        if data.is_none_or(|data| data.iter().any(|of| *of != byte)) {
            return Err(format!("block {block} does not hold {byte}"));
        }
    }
    Ok(())
}

/// Formats a drive of zones, and runs the program on the layer.
pub(crate) fn run() -> Result<Outcome, Box<dyn std::error::Error>> {
    let config = TestDrive::builder().zones(48).config()?;
    let drive = Emulated::new(Drive::new(&config));
    let open = |drive: &Emulated| drive.open_queue(256, HostCosts::FREE, Rng::new(1, 0));
    let queue = open(&drive);
    let format = Start::Format(FormatSettings {
        spare: 0.2,
        ..FormatSettings::new(1)
    });
    let (mut layer, at): (FtlDevice<Emulated>, Nanos) = FtlDevice::start(
        drive,
        VirtualClock::default(),
        queue,
        format,
        FtlSettings::default(),
    )
    .map_err(|error: FtlError| error.to_string())?;

    // From here on it is a device like any other: blocks, and no zones.
    let queue = layer.queue(open(layer.inner()), 32)?;
    let info = zonelab::device::QueuePair::info(&queue).clone();
    let blocks = info.namespaces[0].size_lbas;
    let mut tasks = Tasks::new(&info, TasksConfig::default(), async move |io| {
        program(io, blocks).await
    });
    let clock = VirtualClock::starting_at(at);
    let mut reactor = Reactor::new(clock, &mut layer, StopSignal::default());
    reactor.add(&mut tasks, queue, CoreId(0), at);
    let end = reactor.run();
    tasks.into_result().ok_or("the program did not end")??;
    let metrics = layer.metrics();
    Ok(Outcome {
        blocks,
        write_amplification: metrics.write_amplification().unwrap_or(1.0),
        resets: layer.inner().with_drive(|drive| drive.totals().resets),
        took: end.at,
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Outcome {
        blocks,
        write_amplification,
        resets,
        took,
    } = run()?;
    println!("{blocks} blocks, overwritten at random three times, took {took} of the drive");
    println!("write amplification {write_amplification:.2}, {resets} zones reset");
    Ok(())
}
