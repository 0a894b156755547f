//! Fault plans.

use zonelab_device::{Command, Lba, Nanos, Op, QueueId, Tag};
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_ssd::faults::{Fault, FaultPlan, FaultyDrive};
use zonelab_ssd::{Drive, profile};

use crate::draw::Draw;
use crate::text;

/// Plans to start from: every key and every effect.
const BASES: &[&str] = &[
    "seed = 7\nenabled = true\n\n[[fault]]\non = \"read\"\nlbas = \"4..=9\"\neffect = \"media-error\"\n\n\
     [[fault]]\non = \"append\"\nnamespace = 1\nskip = 3\ncount = 1\neffect = \"offline\"\n\n\
     [[fault]]\non = \"write\"\nprobability = \"10%\"\neffect = \"delay\"\ndelay = \"5ms\"\n",
    "[[fault]]\non = \"time\"\nat = \"2s\"\neffect = \"power-cut\"\noff = \"500ms\"\n\n\
     [[fault]]\non = \"time\"\nat = \"1ms\"\nzones = \"1..=2\"\neffect = \"read-only\"\n\n\
     [[fault]]\non = \"any\"\nfrom = \"1us\"\nuntil = \"10ms\"\neffect = \"lose\"\ntimeout = \"30s\"\n",
    "[[fault]]\non = \"reset\"\nzones = 3\neffect = \"fail\"\nstatus = \"command-interrupted\"\n\n\
     [[fault]]\non = \"zone-send\"\nskip = 1\neffect = \"power-cut\"\n\n\
     [[fault]]\non = \"report\"\neffect = \"lose\"\n",
];

/// The target: a text is a plan, or is refused with a reason; what a plan is
/// written as reads back the same; a drive under the plan answers every command
/// once, but for those that the plan loses.
///
/// # Panics
/// Something is wrong.
pub fn run(data: &[u8]) {
    let text = text::verbatim(data).unwrap_or_else(|| text::draw(&mut Draw::new(data), BASES));
    let plan = match FaultPlan::parse("fuzz.toml", &text, &[]) {
        Ok(plan) => plan,
        Err(errors) => {
            assert!(!errors.to_string().is_empty(), "refused without a reason");
            return;
        }
    };
    says_itself(&plan);
    let config = profile::builtin("confznspp")
        .expect("it is built in")
        .config;
    let size = config.zones.size_lbas;
    let mut drive = FaultyDrive::new(Drive::new(&config), plan);
    let mut now = Nanos::ZERO;
    let mut done = Vec::new();
    for tag in 0..40_u32 {
        let zone = Lba(u64::from(tag % 5) * size);
        let op = match tag % 4 {
            0 => Op::Append {
                zslba: zone,
                nlb: 4,
            },
            1 => Op::Read { slba: zone, nlb: 4 },
            2 => Op::Flush,
            _ => Op::ZoneSend {
                slba: zone,
                action: ZoneSendAction::RESET,
                select_all: false,
            },
        };
        drive
            .submit(now, QueueId(0), Tag(tag), Command::new(op), None)
            .expect("few are in flight");
        now = now.saturating_add(Nanos::from_us(100));
        drive.advance(now, &mut done);
    }
    let end = settle(&mut drive, &mut done, now);
    // A host that gives up resets the controller: then every command has ended.
    drive.clear_faults();
    drive.power_cut(end, Nanos::ZERO);
    settle(&mut drive, &mut done, end);
    let mut tags: Vec<u32> = done.iter().map(|completion| completion.tag.0).collect();
    tags.sort_unstable();
    assert!(
        tags.iter().copied().eq(0..40),
        "each completes once: {tags:?}"
    );
    assert!(
        done.is_sorted_by_key(|completion| completion.at),
        "in order of time"
    );
}

/// What a plan is written as reads back the same.
fn says_itself(plan: &FaultPlan) {
    let tables = plan.faults.iter().map(Fault::to_toml);
    let text = format!("seed = {}\n{}", plan.seed, tables.collect::<String>());
    match FaultPlan::parse("written.toml", &text, &[]) {
        Ok(read) => assert_eq!(read, *plan, "{text}"),
        Err(errors) => panic!("{errors}\n{text}"),
    }
}

fn settle(
    drive: &mut FaultyDrive,
    done: &mut Vec<zonelab_device::Completion>,
    mut now: Nanos,
) -> Nanos {
    while let Some(at) = drive.next_event() {
        now = now.max(at);
        drive.advance(now, done);
    }
    now
}
