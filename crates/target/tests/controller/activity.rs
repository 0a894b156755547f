//! What the subsystem counts of I/O commands.

use zonelab_nvme::Status;
use zonelab_nvme::command::{IoCommand, Read, Write, ZoneManagementSend};
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_target::controller::activity::{Operation, Tally};

use crate::host::Host;

const BLOCK: usize = 4096;

fn tally(host: &Host, nsid: usize, operation: Operation) -> Tally {
    host.subsystem.activity().tallies()[nsid][operation as usize]
}

#[test]
fn commands_errors_and_bytes_are_counted_where_they_end() {
    let mut host = Host::new();
    let data = |blocks: usize| Some(vec![1; blocks * BLOCK]);
    let write = |slba, nlb| IoCommand::Write(Write::new(1, slba, nlb));
    assert_eq!(host.io(write(0, 4), data(4), 0).status(), Status::SUCCESS);
    // The drive refuses one, the controller the other.
    assert_eq!(
        host.io(write(9, 1), data(1), 0).status(),
        Status::ZONE_INVALID_WRITE
    );
    let short = host.io(write(4, 2), data(1), 0).status();
    assert_eq!(short, Status::DATA_SGL_LENGTH_INVALID);
    let counted = Tally {
        commands: 3,
        errors: 2,
        bytes: 4 * BLOCK as u64,
    };
    assert_eq!(tally(&host, 1, Operation::Write), counted);
    let activity = host.subsystem.activity();
    assert_eq!(
        activity.latency(Operation::Write).len(),
        2,
        "of those that the drive saw"
    );

    let read = host.io(IoCommand::Read(Read::new(9, 0, 1)), None, BLOCK);
    assert!(!read.status().is_success());
    assert_eq!(
        tally(&host, 0, Operation::Read).errors,
        1,
        "of no namespace"
    );
    assert_eq!(tally(&host, 1, Operation::Read), Tally::default());
}

#[test]
fn latencies_are_those_of_the_model() {
    let mut host = Host::new();
    let data = Some(vec![1; 8 * BLOCK]);
    host.io(IoCommand::Write(Write::new(1, 0, 8)), data, 0);
    let before = host.now;
    let reply = host.io(IoCommand::Read(Read::new(1, 0, 8)), None, 8 * BLOCK);
    let took = (reply.due - before).0;
    assert!(took > 0);
    let histogram = host.subsystem.activity().latency(Operation::Read);
    assert_eq!(histogram.len(), 1);
    assert!(
        histogram.equivalent(histogram.max(), took),
        "{} is {took}",
        histogram.max()
    );
}

#[test]
fn actions_on_zones_are_operations_of_their_own() {
    let mut host = Host::new();
    for (action, operation) in [
        (ZoneSendAction::OPEN, Operation::ZoneOpen),
        (ZoneSendAction::CLOSE, Operation::ZoneClose),
        (ZoneSendAction::FINISH, Operation::ZoneFinish),
        (ZoneSendAction::RESET, Operation::ZoneReset),
    ] {
        let data = Some(vec![1; BLOCK]);
        if action == ZoneSendAction::CLOSE {
            host.io(IoCommand::Write(Write::new(1, 0, 1)), data, 0);
        }
        let send = ZoneManagementSend::new(1, 0, action);
        let reply = host.io(IoCommand::ZoneManagementSend(send), None, 0);
        assert_eq!(reply.status(), Status::SUCCESS, "{action:?}");
        assert_eq!(tally(&host, 1, operation).commands, 1, "{action:?}");
    }
    let odd = ZoneManagementSend::new(1, 0, ZoneSendAction(0x7f));
    host.io(IoCommand::ZoneManagementSend(odd), None, 0);
    assert_eq!(tally(&host, 1, Operation::ZoneSend).errors, 1);
    assert!(host.subsystem.activity().admin_commands() > 0);
}
