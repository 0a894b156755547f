//! What happens to a drive: commands, and time that passes.

use zonelab_device::{Buf, Command, Lba, NamespaceId, Nanos, Op, QueueId};
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction};
use zonelab_ssd::DriveModel;
use zonelab_ssd::config::{DataStore, NamespaceConfig};

use super::config::time;
use super::session::Session;
use crate::draw::{Draw, Weights};

/// Actions of a run, at most.
const ACTIONS: u32 = 600;
/// Kinds of actions, in the order of [`act`].
const KINDS: usize = 23;

/// What a run does, drawn once: swarm testing.
#[derive(Debug)]
struct Plan {
    weights: Weights<KINDS>,
    /// Only the first zones, so that they meet often.
    zones: u32,
    /// Commands in flight, at most.
    depth: usize,
    /// Writes are at most this long.
    nlb: u32,
    /// How often time passes between actions: never, or once in so many.
    pace: u8,
    /// Writes without data on a drive that keeps it, and with it on one that
    /// does not, once in so many.
    odd_buffers: u8,
}

/// Draws and does actions until the input is used up.
pub(super) fn play(draw: &mut Draw<'_>, session: &mut Session) {
    let zones = session.config.zones.count;
    let plan = Plan {
        weights: Weights::draw(draw),
        zones: draw.int(1..=zones),
        depth: draw.pick(&[8, 1, 2, 32, 200]),
        nlb: draw.pick(&[4, 1, 16, 64]),
        pace: draw.pick(&[1, 2, 4, 16, 255]),
        odd_buffers: draw.pick(&[255, 2, 8]),
    };
    for _ in 0..ACTIONS {
        if draw.is_empty() {
            break;
        }
        while session.in_flight() >= plan.depth {
            let next = session.drive.next_event().expect("commands are in flight");
            session.advance(next.max(session.now));
        }
        act(draw, &plan, session);
        if draw.one_in(plan.pace) {
            pass(draw, session);
        }
    }
}

fn act(draw: &mut Draw<'_>, plan: &Plan, session: &mut Session) {
    let zone = draw.int(0..=plan.zones - 1);
    match plan.weights.choose(draw) {
        0 => write(draw, plan, session, zone),
        1 => append(draw, plan, session, zone),
        2 => read(draw, plan, session, zone),
        3 => send(draw, session, zone, ZoneSendAction::RESET),
        4 => send(draw, session, zone, ZoneSendAction::FINISH),
        5 => send(draw, session, zone, ZoneSendAction::OPEN),
        6 => send(draw, session, zone, ZoneSendAction::CLOSE),
        7 => {
            let action = draw.pick(&[ZoneSendAction::OFFLINE, ZoneSendAction::ZRWA_FLUSH]);
            send(draw, session, zone, action);
        }
        8 => select_all(draw, session),
        9 => set_extension(draw, session, zone),
        10 => report(draw, session),
        11 => submit(draw, session, Op::Flush, None),
        12 => misplaced(draw, session, zone),
        13 => wild(draw, session),
        14 => {
            let first = draw.int(0..=session.config.zones.count);
            let last = draw.int(0..=session.config.zones.count + 1);
            session.precondition(first..last.max(first));
        }
        15 => session.idle(),
        16 => open_area(draw, session, zone),
        17 | 18 => write_area(draw, plan, session, zone),
        19 => commit_area(draw, session, zone),
        20 => looked_at(draw, plan, session, zone),
        21 => copy(draw, plan, session, zone),
        _ => pass(draw, session),
    }
}

/// Time passes; the drive is asked for completions, or only finds out with the
/// next command.
fn pass(draw: &mut Draw<'_>, session: &mut Session) {
    let next = session
        .drive
        .next_event()
        .unwrap_or(session.now)
        .max(session.now);
    let to = match draw.int(0..=5_u8) {
        0 | 1 => next,
        2 => next.saturating_add(Nanos(1)),
        3 => Nanos(next.0.saturating_sub(1)).max(session.now),
        _ => session.now.saturating_add(time(draw)),
    };
    if draw.one_in(4) {
        session.now = to;
    } else {
        session.advance(to);
    }
}

/// Submits an operation whose address counts over the drive, to the namespace
/// that the address is in; one without an address that counts, to any.
fn submit(draw: &mut Draw<'_>, session: &mut Session, op: Op, data: Option<Buf>) {
    let queue = QueueId(draw.int(0..=3));
    let namespaces = &session.config.namespaces;
    let count = u32::try_from(namespaces.len().max(1)).expect("there are few");
    let select_all = matches!(
        op,
        Op::ZoneSend {
            select_all: true,
            ..
        }
    );
    let command = if count == 1 {
        Command::new(op)
    } else if op == Op::Flush || select_all {
        let nsid = NamespaceId(draw.int(1..=count));
        Command::on(nsid, op)
    } else {
        let size = session.config.zones.size_lbas;
        on_namespace(namespaces, size, op)
    };
    session.submit(command, queue, data);
}

fn on_namespace(namespaces: &[NamespaceConfig], size_lbas: u64, mut op: Op) -> Command {
    let (Op::Read { slba: at, .. }
    | Op::Write { slba: at, .. }
    | Op::Append { zslba: at, .. }
    | Op::WriteZeroes { slba: at, .. }
    | Op::Compare { slba: at, .. }
    | Op::Verify { slba: at, .. }
    | Op::Copy { sdlba: at, .. }
    | Op::ZoneSend { slba: at, .. }
    | Op::ZrwaSend { slba: at, .. }
    | Op::ZoneReceive { slba: at, .. }) = &mut op
    else {
        return Command::new(op);
    };
    let mut nsid = 1;
    for namespace in &namespaces[..namespaces.len() - 1] {
        let lbas = u64::from(namespace.zones) * size_lbas;
        if at.0 < lbas {
            break;
        }
        at.0 -= lbas;
        nsid += 1;
    }
    let nsid = NamespaceId(nsid);
    Command::on(nsid, op)
}

fn start(session: &Session, zone: u32) -> u64 {
    u64::from(zone) * session.config.zones.size_lbas
}

/// A buffer for `nlb` blocks, if the drive has use for one; sometimes the opposite.
fn buffer(draw: &mut Draw<'_>, plan: &Plan, session: &Session, nlb: u32) -> Option<Buf> {
    let keeps = session.config.data == DataStore::Memory;
    let odd = draw.one_in(plan.odd_buffers);
    let bytes = nlb as usize * session.config.lba_bytes as usize;
    // Buffers of absurd lengths belong to commands that are refused anyway.
    (keeps != odd && bytes < 1 << 22).then(|| Buf::zeroed(bytes))
}

/// How many blocks to write to a zone: any number that the plan allows, to the
/// end of a page, or whatever is left.
fn length(draw: &mut Draw<'_>, plan: &Plan, session: &Session, zone: u32) -> u32 {
    let config = &session.config;
    let pointer = session.host.zones().all()[zone as usize].pointer;
    let left = config.zones.capacity_lbas - pointer;
    let page_lbas = u64::from(config.geometry.page_bytes / config.lba_bytes);
    let nlb = match draw.int(0..=5_u8) {
        0 => left,
        1 => page_lbas - pointer % page_lbas,
        _ => u64::from(draw.int(1..=plan.nlb)),
    };
    // Sometimes more than is left.
    let nlb = if draw.one_in(16) { nlb } else { nlb.min(left) };
    u32::try_from(nlb.max(1)).expect("zones are small")
}

fn write(draw: &mut Draw<'_>, plan: &Plan, session: &mut Session, zone: u32) {
    let nlb = length(draw, plan, session, zone);
    let slba = Lba(start(session, zone) + session.host.zones().all()[zone as usize].pointer);
    let data = buffer(draw, plan, session, nlb);
    submit(draw, session, Op::Write { slba, nlb }, data);
}

/// Opens a zone with a random write area, or gives it one with an extension.
fn open_area(draw: &mut Draw<'_>, session: &mut Session, zone: u32) {
    let offset = u64::from(draw.one_in(16));
    let slba = Lba(start(session, zone) + offset);
    let action = draw.pick(&[
        ZoneSendAction::OPEN,
        ZoneSendAction::OPEN,
        ZoneSendAction::SET_DESCRIPTOR_EXTENSION,
        ZoneSendAction::CLOSE,
    ]);
    let data = draw.maybe(|draw| Buf::zeroed(draw.pick(&[4_096, 64, 63])));
    submit(draw, session, Op::ZrwaSend { slba, action }, data);
}

/// A write around the random write area of a zone: in it, in the implicit commit
/// region, a little beyond.
fn write_area(draw: &mut Draw<'_>, plan: &Plan, session: &mut Session, zone: u32) {
    let reach = session
        .config
        .zones
        .zrwa
        .map_or(1, |zrwa| 2 * zrwa.size_lbas);
    let pointer = session.host.zones().all()[zone as usize].pointer;
    let offset = (pointer + u64::from(draw.int(0..=reach + 1))).saturating_sub(1);
    let left = session.config.zones.capacity_lbas.saturating_sub(offset);
    let nlb = u64::from(draw.int(1..=plan.nlb.min(reach)));
    let nlb = if draw.one_in(16) { nlb } else { nlb.min(left) };
    let nlb = u32::try_from(nlb.max(1)).expect("areas are small");
    let slba = Lba(start(session, zone) + offset);
    let data = buffer(draw, plan, session, nlb);
    submit(draw, session, Op::Write { slba, nlb }, data);
}

/// Commits a part of a random write area, all of it, or what cannot be.
fn commit_area(draw: &mut Draw<'_>, session: &mut Session, zone: u32) {
    let zones = &session.config.zones;
    let granularity = zones.zrwa.map_or(1, |zrwa| zrwa.flush_granularity_lbas);
    let pointer = session.host.zones().all()[zone as usize].pointer;
    let lbas = match draw.int(0..=5_u8) {
        0 => draw.int(1..=20),
        _ => granularity * draw.int(1..=8),
    };
    let end = pointer + u64::from(lbas);
    let end = match draw.one_in(16) {
        true => end,
        false => end.min(zones.capacity_lbas),
    };
    let slba = Lba(start(session, zone) + end - 1);
    let op = Op::ZoneSend {
        slba,
        action: ZoneSendAction::ZRWA_FLUSH,
        select_all: false,
    };
    submit(draw, session, op, None);
}

fn append(draw: &mut Draw<'_>, plan: &Plan, session: &mut Session, zone: u32) {
    let nlb = length(draw, plan, session, zone);
    let zslba = Lba(start(session, zone));
    let data = buffer(draw, plan, session, nlb);
    submit(draw, session, Op::Append { zslba, nlb }, data);
}

/// A read around what was written, or to the end of the zone and beyond.
fn read(draw: &mut Draw<'_>, plan: &Plan, session: &mut Session, zone: u32) {
    let pointer = session.host.zones().all()[zone as usize].pointer;
    let offset = match draw.int(0..=3_u8) {
        0 => draw.int(0..=session.config.zones.size_lbas - 1),
        1 => pointer.saturating_sub(1),
        _ => draw.int(0..=pointer),
    };
    let nlb = draw.int(1..=plan.nlb);
    let slba = Lba(start(session, zone) + offset);
    let data = buffer(draw, plan, session, nlb);
    submit(draw, session, Op::Read { slba, nlb }, data);
}

/// Zeroes at the write pointer, a compare, a verify or a deallocation.
fn looked_at(draw: &mut Draw<'_>, plan: &Plan, session: &mut Session, zone: u32) {
    let pointer = session.host.zones().all()[zone as usize].pointer;
    let slba = Lba(start(session, zone) + draw.int(0..=pointer));
    let nlb = draw.int(1..=plan.nlb);
    match draw.int(0..=3_u8) {
        0 => {
            let slba = Lba(start(session, zone) + pointer);
            let nlb = length(draw, plan, session, zone);
            submit(draw, session, Op::WriteZeroes { slba, nlb }, None);
        }
        1 => {
            let mut data = buffer(draw, plan, session, nlb);
            if draw.one_in(4)
                && let Some(data) = &mut data
            {
                data.fill(draw.int(0..=255));
            }
            submit(draw, session, Op::Compare { slba, nlb }, data);
        }
        2 => submit(draw, session, Op::Verify { slba, nlb }, None),
        _ => {
            let ranges = draw.int(0..=4);
            let mut data = Buf::zeroed(draw.pick(&[64, 16, 32, 5]));
            for entry in data.chunks_exact_mut(16) {
                entry[4..8].copy_from_slice(&nlb.to_le_bytes());
                let at = start(session, draw.int(0..=plan.zones));
                entry[8..].copy_from_slice(&at.saturating_sub(draw.int(0..=64)).to_le_bytes());
            }
            submit(draw, session, Op::Deallocate { ranges }, Some(data));
        }
    }
}

/// A copy to the write pointer of a zone, from zones of its namespace or not.
fn copy(draw: &mut Draw<'_>, plan: &Plan, session: &mut Session, zone: u32) {
    let pointer = session.host.zones().all()[zone as usize].pointer;
    let sdlba = Lba(start(session, zone) + pointer);
    let ranges = draw.int(0..=4_u16);
    let mut data = Buf::zeroed(32 * usize::from(ranges));
    let limit = session.config.copy.map_or(1, |copy| copy.max_range_lbas);
    for entry in data.chunks_exact_mut(32) {
        let from = draw.int(0..=plan.zones - 1);
        let written = session.host.zones().all()[from as usize].pointer;
        let slba = start(session, from) + draw.int(0..=written);
        let most = u32::from(limit).min(plan.nlb) + u32::from(draw.one_in(16));
        let blocks_less_one = draw.int(1..=most) - 1;
        entry[8..16].copy_from_slice(&slba.to_le_bytes());
        entry[16..18].copy_from_slice(&blocks_less_one.to_le_bytes()[..2]);
    }
    let data = (!draw.one_in(16)).then_some(data);
    submit(draw, session, Op::Copy { sdlba, ranges }, data);
}

fn send(draw: &mut Draw<'_>, session: &mut Session, zone: u32, action: ZoneSendAction) {
    let slba = Lba(start(session, zone));
    submit(
        draw,
        session,
        Op::ZoneSend {
            slba,
            action,
            select_all: false,
        },
        None,
    );
}

fn select_all(draw: &mut Draw<'_>, session: &mut Session) {
    let action = draw.pick(&[
        ZoneSendAction::RESET,
        ZoneSendAction::FINISH,
        ZoneSendAction::OPEN,
        ZoneSendAction::CLOSE,
        ZoneSendAction::OFFLINE,
        ZoneSendAction::SET_DESCRIPTOR_EXTENSION,
        ZoneSendAction::ZRWA_FLUSH,
    ]);
    // The address is ignored.
    let slba = Lba(draw.wide());
    let data = (action == ZoneSendAction::SET_DESCRIPTOR_EXTENSION).then(|| Buf::zeroed(4_096));
    submit(
        draw,
        session,
        Op::ZoneSend {
            slba,
            action,
            select_all: true,
        },
        data,
    );
}

fn set_extension(draw: &mut Draw<'_>, session: &mut Session, zone: u32) {
    let slba = Lba(start(session, zone));
    let bytes = draw.pick(&[4_096, 64, 192, 63, 0]);
    let mut data = Buf::zeroed(bytes);
    data.fill(draw.int(0..=255));
    let action = ZoneSendAction::SET_DESCRIPTOR_EXTENSION;
    submit(
        draw,
        session,
        Op::ZoneSend {
            slba,
            action,
            select_all: false,
        },
        Some(data),
    );
}

fn report(draw: &mut Draw<'_>, session: &mut Session) {
    let zone = draw.int(0..=session.config.zones.count - 1);
    let offset = draw.int(0..=session.config.zones.size_lbas - 1);
    let slba = Lba(start(session, zone) + offset);
    let filter = ReportFilter(draw.int(0..=8));
    let (partial, extended) = (draw.flag(), draw.flag());
    let data = match draw.int(0..=7_u8) {
        0 => None,
        1 => Some(Buf::zeroed(draw.int(0..=200))),
        _ => Some(Buf::zeroed(draw.pick(&[4_096, 64, 128, 512, 700]))),
    };
    submit(
        draw,
        session,
        Op::ZoneReceive {
            slba,
            filter,
            partial,
            extended,
        },
        data,
    );
}

/// A write beside the write pointer, or a command to an address that is not
/// the start of a zone.
fn misplaced(draw: &mut Draw<'_>, session: &mut Session, zone: u32) {
    let offset = draw.int(0..=session.config.zones.size_lbas - 1);
    let slba = Lba(start(session, zone) + offset);
    let nlb = draw.int(1..=8);
    let action = ZoneSendAction(draw.int(0..=6));
    let op = match draw.int(0..=2_u8) {
        0 => Op::Write { slba, nlb },
        1 => Op::Append { zslba: slba, nlb },
        _ => Op::ZoneSend {
            slba,
            action,
            select_all: false,
        },
    };
    submit(draw, session, op, None);
}

/// A command that makes no sense, or might not.
fn wild(draw: &mut Draw<'_>, session: &mut Session) {
    let end = start(session, session.config.zones.count);
    let lba = match draw.flag() {
        true => draw.wide(),
        false => end.saturating_sub(draw.int(0..=9)),
    };
    let (slba, zslba) = (Lba(lba), Lba(lba));
    let nlb = match draw.flag() {
        true => draw.int(0..=9),
        false => u32::try_from(draw.wide() >> 32).expect("the upper half is dropped"),
    };
    let action = ZoneSendAction(draw.int(0..=255));
    let ranges = draw.int(0..=300);
    let op = match draw.int(0..=9_u8) {
        5 => Op::WriteZeroes { slba, nlb },
        6 => Op::Compare { slba, nlb },
        7 => Op::Verify { slba, nlb },
        8 => Op::Deallocate { ranges },
        9 => Op::Copy {
            sdlba: slba,
            ranges,
        },
        0 => Op::Read { slba, nlb },
        1 => Op::Write { slba, nlb },
        2 => Op::Append { zslba, nlb },
        3 => Op::ZoneSend {
            slba,
            action,
            select_all: draw.one_in(8),
        },
        _ => {
            let filter = ReportFilter(draw.int(0..=255));
            Op::ZoneReceive {
                slba,
                filter,
                partial: draw.flag(),
                extended: draw.flag(),
            }
        }
    };
    let nsid = draw.pick(&[
        NamespaceId::FIRST,
        NamespaceId(0),
        NamespaceId(2),
        NamespaceId(3),
        NamespaceId(u32::MAX),
    ]);
    let data = draw.maybe(|draw| Buf::zeroed(draw.int(0..=1_100)));
    session.submit(Command::on(nsid, op), QueueId(draw.int(0..=u16::MAX)), data);
}
