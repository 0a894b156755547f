//! Hosts with rules: what each learns of the others, and what its commands cost it.

use core::num::NonZeroU64;

use zonelab_device::Nanos;
use zonelab_nvme::Status;
use zonelab_nvme::command::{
    AdminCommand, GetLogPage, IoCommand, IoManagementSend, ZoneManagementSend,
};
use zonelab_nvme::identify::{Cns, IdentifyNamespace};
use zonelab_nvme::log::LogPageId;
use zonelab_nvme::placement::{EnduranceGroupLog, PlacementStatistics};
use zonelab_nvme::zerocopy::FromBytes;
use zonelab_nvme::zns::ZoneSendAction;
use zonelab_target::controller::{BURST, HostRules};

use crate::host::HOST;
use crate::hosts::{OTHER, Pair, Queues, RO, RW, divided, read, rules, write};
use crate::placement;

const BLOCK: usize = 4096;

fn page(pair: &mut Pair, by: Queues, lid: LogPageId) -> Vec<u8> {
    let get = GetLogPage {
        lsi: 1,
        ..GetLogPage::new(0, lid, 128)
    };
    let (status, page) = pair.admin(by, AdminCommand::GetLogPage(get), 512);
    assert_eq!(status, Status::SUCCESS, "{lid:?}");
    page
}

/// Log pages of the endurance group say to a host with rules what was done to its own
/// namespaces, and nothing of the others.
#[test]
fn log_pages_of_placement_are_those_of_ones_own_namespaces() {
    let apart = vec![rules(HOST, &[(1, RW)]), rules(OTHER, &[(2, RW)])];
    let mut pair = Pair::on(&placement::config(), apart);
    let (first, other) = (pair.first, pair.other);
    let all = [
        LogPageId::ENDURANCE_GROUP,
        LogPageId::FDP_CONFIGURATIONS,
        LogPageId::RECLAIM_UNIT_HANDLE_USAGE,
        LogPageId::FDP_STATISTICS,
        LogPageId::FDP_EVENTS,
    ];
    let before = all.map(|lid| page(&mut pair, first, lid));
    for lba in 0..300 {
        let data = Some(vec![7; BLOCK]);
        assert_eq!(pair.io(other, write(2, lba), data, 0), Status::SUCCESS);
    }
    assert_eq!(pair.io(other, read(2), None, BLOCK), Status::SUCCESS);
    let after = all.map(|lid| page(&mut pair, first, lid));
    assert_eq!(before, after);

    // What is its own is there.
    let own = page(&mut pair, other, LogPageId::FDP_STATISTICS);
    let own = PlacementStatistics::read_from_bytes(&own[..64]).expect("a whole one");
    assert_eq!(own.hbmw.get(), 300 * BLOCK as u128);
    assert_eq!((own.mbmw.get(), own.mbe.get()), (0, 0));
    let own = page(&mut pair, other, LogPageId::ENDURANCE_GROUP);
    let own = EnduranceGroupLog::read_from_bytes(&own).expect("a whole one");
    assert_eq!((own.dur.get(), own.duw.get(), own.muw.get()), (1, 1, 0));
    let [_, configurations, usage, ..] = &before;
    assert_eq!(configurations[28], 1, "NNSS: its own namespace");
    assert_eq!(configurations[26], 0, "its only placement identifier");
    assert_eq!((configurations[84], configurations[88]), (1, 1), "as any");
    assert_eq!((usage[8], usage[16], usage[24]), (2, 0, 0), "others unused");
    let usage = page(&mut pair, other, LogPageId::RECLAIM_UNIT_HANDLE_USAGE);
    assert_eq!((usage[8], usage[16], usage[24]), (0, 1, 1));
}

/// I/O Management Send moves a handle on, which changes what the media holds.
#[test]
fn handles_of_what_may_be_read_may_not_be_updated() {
    let shared = vec![rules(HOST, &[(1, RW), (2, RW)]), rules(OTHER, &[(2, RO)])];
    let mut pair = Pair::on(&placement::config(), shared);
    let (first, other) = (pair.first, pair.other);
    let update = IoManagementSend::handle_update(2, 1).expect("it fits");
    let update = || (IoCommand::IoManagementSend(update), Some(vec![1, 0]));
    let (command, data) = update();
    let refused = pair.io(other, command, data, 0);
    assert_eq!(refused, Status::NAMESPACE_WRITE_PROTECTED);
    let (command, data) = update();
    assert_eq!(pair.io(first, command, data, 0), Status::SUCCESS);
}

/// NUSE of thin allocation: the flash that others have taken is not in it.
#[test]
fn a_namespace_shows_the_use_of_its_own_zones() {
    let mut config = divided();
    config.allocation.thin = true;
    let apart = vec![rules(HOST, &[(1, RW)]), rules(OTHER, &[(2, RW)])];
    let mut pair = Pair::on(&config, apart);
    let (first, other) = (pair.first, pair.other);
    let used = |pair: &mut Pair, by, nsid| {
        let (_, id) = pair.identify(by, nsid, Cns::NAMESPACE);
        let id = IdentifyNamespace::read_from_bytes(&id).expect("a whole one");
        id.nuse.get()
    };
    for zone in [0, 160] {
        let data = Some(vec![7; BLOCK]);
        assert_eq!(pair.io(other, write(2, zone), data, 0), Status::SUCCESS);
    }
    assert_eq!(used(&mut pair, first, 1), 0);
    assert_eq!(used(&mut pair, other, 2), 2 * 160);
}

/// Rules with which [`HOST`] may do everything to namespace 1, at such rates.
fn bounded(operations_per_s: u64, bytes_per_s: u64) -> Vec<HostRules> {
    let mut host = rules(HOST, &[(1, RW)]);
    host.permissions.all_zones = true;
    host.quality.operations_per_s = NonZeroU64::new(operations_per_s);
    host.quality.bytes_per_s = NonZeroU64::new(bytes_per_s);
    vec![host, rules(OTHER, &[(2, RW)])]
}

fn all_zones(action: ZoneSendAction) -> IoCommand {
    IoCommand::ZoneManagementSend(ZoneManagementSend {
        select_all: true,
        ..ZoneManagementSend::new(1, 0, action)
    })
}

/// How much later than now a read goes that is sent now.
fn wait_of_a_read(pair: &mut Pair) -> Nanos {
    let (start, by) = (pair.all.now, pair.first);
    let entry = read(1).to_entry().expect("it fits");
    let cid = pair.all.send(by.io, entry, None, BLOCK);
    pair.all.run(start.saturating_add(Nanos::from_secs(10)));
    let reply = pair.all.take(by.io, cid).expect("it is done");
    pair.all.now = pair.all.now.max(reply.due);
    reply.due - start
}

/// A finish counts as the blocks that it fills, and not as zones that it leaves alone.
#[test]
fn a_finish_of_all_zones_costs_what_is_left_of_those_that_it_finishes() {
    let mut pair = Pair::on(&divided(), bounded(0, 0));
    let first = pair.first;
    for lba in 0..100 {
        let data = Some(vec![7; BLOCK]);
        assert_eq!(pair.io(first, write(1, lba), data, 0), Status::SUCCESS);
    }
    // A thousand blocks in a second: 28 of a zone's 128 are left, and two zones are empty.
    pair.set(bounded(0, 1000 * BLOCK as u64));
    let finish = all_zones(ZoneSendAction::FINISH)
        .to_entry()
        .expect("it fits");
    pair.all.send(first.io, finish, None, 0);
    let wait = wait_of_a_read(&mut pair);
    let least = Nanos::from_ms(28) - BURST;
    assert!(
        (least..least + Nanos::from_ms(2)).contains(&wait),
        "{wait:?}"
    );
}

/// Commands about all zones count as many operations as zones are in the states concerned.
#[test]
fn commands_about_all_zones_cost_the_zones_that_they_change() {
    let mut pair = Pair::on(&divided(), bounded(1000, 0));
    let first = pair.first;
    // None is open or closed, nor full: each is one operation, and ten are saved up.
    for action in [
        ZoneSendAction::OPEN,
        ZoneSendAction::CLOSE,
        ZoneSendAction::FINISH,
        ZoneSendAction::RESET,
    ]
    .repeat(2)
    {
        let entry = all_zones(action).to_entry().expect("it fits");
        pair.all.send(first.io, entry, None, 0);
    }
    let wait = wait_of_a_read(&mut pair);
    assert!(wait < Nanos::from_ms(2), "{wait:?}");
}

/// A rate that was mistyped and is corrected: nobody waits by the wrong one.
#[test]
fn a_corrected_rate_counts_at_once() {
    for (wrong, right) in [
        (bounded(1, 0), bounded(1_000_000, 0)),
        (bounded(0, 100), bounded(0, 100 << 20)),
        (bounded(0, 100), bounded(0, 0)),
    ] {
        let mut pair = Pair::on(&divided(), wrong);
        let first = pair.first;
        let entry = || read(1).to_entry().expect("it fits");
        pair.all.send(first.io, entry(), None, BLOCK);
        let waits = pair.all.send(first.io, entry(), None, BLOCK);
        let soon = pair.all.now + Nanos::from_ms(5);
        pair.all.run(soon);
        assert!(pair.all.take(first.io, waits).is_none(), "it has to wait");
        pair.set(right);
        pair.all.run(pair.all.now + Nanos::from_ms(1));
        assert!(pair.all.take(first.io, waits).is_some(), "it goes at once");
    }
}

/// What waits when the server ends is not carried out, however long that takes.
#[test]
fn what_waits_for_its_turn_at_the_end_is_not_carried_out() {
    let mut pair = Pair::on(&divided(), bounded(1, 0));
    let first = pair.first;
    let entry = || read(1).to_entry().expect("it fits");
    let goes = pair.all.send(first.io, entry(), None, BLOCK);
    let waits = pair.all.send(first.io, entry(), None, BLOCK);
    pair.all.subsystem.begin_to_end();
    pair.all.run(pair.all.now + Nanos::from_secs(10));
    assert!(pair.all.take(first.io, goes).is_some());
    assert!(pair.all.take(first.io, waits).is_none());
    assert_eq!(pair.all.subsystem.in_drive(), 0);
}
