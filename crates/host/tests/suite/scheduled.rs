//! A scheduler in front of any queue pair.

use zonelab_device::{Command, Lba, Nanos, Op, QueuePair, Tag};
use zonelab_host::block::Scheduled;
use zonelab_host::scheduler::{MqDeadlineSettings, SchedulerSpec};

use super::support::{PAGE, Recorder, ZONE, tiny_info};

const US: fn(u64) -> Nanos = Nanos::from_us;
const MQ: fn() -> SchedulerSpec = || SchedulerSpec::MqDeadline(MqDeadlineSettings::default());

fn write(zone: u64, offset: u64, nlb: u32) -> Command {
    let slba = Lba(zone * ZONE + offset);
    Command::new(Op::Write { slba, nlb })
}

/// A queue pair of any kind, with a scheduler in front of it: one write of the
/// zone is with the device, and the rest follows merged.
#[test]
fn any_queue_pair_can_have_a_scheduler() {
    let device = Recorder::steady(tiny_info(), US(10));
    let mut queue = Scheduled::new(device, &MQ(), 4).expect("settings in range");
    for n in 0..4 {
        let command = write(0, u64::from(n) * 4, PAGE);
        queue.submit(command, Tag(n), None).expect("there is room");
    }
    let full = queue.submit(write(0, 16, PAGE), Tag(4), None);
    assert!(full.is_err(), "four is all it holds");
    assert_eq!(queue.layer().in_flight(), 1);
    let mut done = Vec::new();
    queue.device_mut().now = US(10);
    assert_eq!(queue.poll(&mut done), 1);
    queue.device_mut().now = US(20);
    assert_eq!(queue.poll(&mut done), 3);
    let tags: Vec<_> = done.iter().map(|completion| completion.tag.0).collect();
    assert_eq!(tags, [0, 1, 2, 3]);
    let lengths: Vec<_> = queue.device_mut().ops().iter().map(Op::nlb).collect();
    assert_eq!(lengths, [4, 12]);
    let out_of_range = SchedulerSpec::MqDeadline(MqDeadlineSettings {
        fifo_batch: 0,
        ..MqDeadlineSettings::default()
    });
    let error = queue.switch_to(&out_of_range).expect_err("refused");
    assert!(error.to_string().contains("fifo_batch"), "{error}");
}
