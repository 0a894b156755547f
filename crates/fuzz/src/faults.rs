//! Fault plans.

use zonelab_device::{Command, Completion, Lba, Nanos, Op, QueueId, Tag};
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_oracle::blocks::Blocks;
use zonelab_oracle::served::Served;
use zonelab_ssd::faults::{Fault, FaultPlan, FaultyDrive};
use zonelab_ssd::{Drive, DriveModel, profile};

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
/// once, but for those that the plan loses, and treats its flash as flash.
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
    let drive = FaultyDrive::new(Drive::new(&config), plan);
    let mut run = Run::new(drive);
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
        run.submit(Tag(tag), op);
        run.advance(run.now.saturating_add(Nanos::from_us(100)));
    }
    run.settle();
    // A host that gives up resets the controller: then every command has ended.
    run.drive.clear_faults();
    run.drive.power_cut(run.now, Nanos::ZERO);
    run.settle();
    run.served.check_at_rest();
}

/// A drive under a plan, with what watches it.
struct Run {
    drive: FaultyDrive,
    served: Served,
    blocks: Blocks,
    now: Nanos,
    done: Vec<Completion>,
}

impl Run {
    fn new(mut drive: FaultyDrive) -> Self {
        Self {
            blocks: Blocks::watch(drive.drive_mut()),
            drive,
            served: Served::default(),
            now: Nanos::ZERO,
            done: Vec::new(),
        }
    }

    fn submit(&mut self, tag: Tag, op: Op) {
        self.served.submitted(self.now, QueueId(0), tag);
        self.drive
            .submit(self.now, QueueId(0), tag, Command::new(op), None)
            .expect("few are in flight");
        self.blocks.look(self.drive.drive_mut());
    }

    fn advance(&mut self, to: Nanos) {
        self.now = to;
        self.drive.advance(to, &mut self.done);
        for completion in self.done.drain(..) {
            self.served.completed(to, &completion);
        }
        self.blocks.look(self.drive.drive_mut());
    }

    fn settle(&mut self) {
        while let Some(at) = self.drive.next_event() {
            self.advance(self.now.max(at));
        }
    }
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
