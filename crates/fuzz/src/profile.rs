//! Profiles, and drives made from them.

use zonelab_config::{Errors, Override};
use zonelab_device::{Command, Lba, Nanos, Op, QueueId, Tag, ZoneId};
use zonelab_nvme::zns::{ReportFilter, ZoneSendAction, ZoneState};
use zonelab_ssd::profile::{Profile, builtin_names, builtin_text, describe, to_toml};
use zonelab_ssd::{Drive, DriveModel};

use crate::draw::Draw;
use crate::text;

/// Blocks, and zones, of a drive that is worth making for a few commands.
const SMALL: u64 = 1 << 16;
/// Pages of a zone that is worth finishing: each may be a device write.
const SMALL_ZONE: u32 = 1 << 12;

/// The target: a text is a profile, or is refused with a reason. A profile
/// describes itself, survives its own TOML, and makes a drive that works.
///
/// # Panics
/// Something is wrong.
pub fn run(data: &[u8]) {
    match read(data) {
        Ok(profile) => accepted(&profile),
        Err(errors) => assert!(!errors.to_string().is_empty(), "refused without a reason"),
    }
}

fn read(data: &[u8]) -> Result<Profile, Errors> {
    if let Some(text) = text::verbatim(data) {
        return Profile::parse("fuzz.toml", &text, &[]);
    }
    let mut draw = Draw::new(data);
    let sets: Vec<Override> = (0..draw.int(0..=2))
        .filter_map(|_| override_of(&mut draw))
        .collect();
    let bases: Vec<&str> = builtin_names().filter_map(builtin_text).collect();
    let text = text::draw(&mut draw, &bases);
    Profile::parse("fuzz.toml", &text, &sets)
}

/// A value for a key that exists.
fn override_of(draw: &mut Draw<'_>) -> Option<Override> {
    const KEYS: &[&str] = &[
        "geometry.channels",
        "geometry.planes",
        "geometry.blocks_per_plane",
        "geometry.page_size",
        "zones.count",
        "zones.capacity",
        "zones.max_active",
        "media.program",
        "media.die_queue",
        "media.channel_arbitration",
        "media.suspend.erase",
        "front_end.link",
        "finish.design",
        "finish.granularity",
        "reset.erase_at",
        "reset.preemptive",
        "mapping.design",
        "data.store",
        "media",
        "no.such.key",
    ];
    const VALUES: &[&str] = &[
        "",
        "lazy",
        "fill",
        "metadata",
        "ready",
        "weighted",
        "memory",
        "background",
        "true",
        "16KiB",
        "1056MiB",
        "700us",
        "[]",
        "{}",
        "\"",
    ];
    let key = draw.pick(KEYS);
    let value = match draw.flag() {
        true => draw.pick(VALUES).to_owned(),
        false => format!(
            "{}{}",
            draw.wide(),
            draw.pick(&["", "B", "KiB", "MiB", "ns", "us", "GB/s"])
        ),
    };
    Override::parse(&format!("{key}={value}")).ok()
}

fn accepted(profile: &Profile) {
    assert!(!describe(profile).is_empty());
    let again = Profile::parse("again.toml", &to_toml(&profile.config), &[]);
    let again = again.expect("the TOML of a profile is a profile");
    assert_eq!(again.config, profile.config, "its TOML says something else");
    assert_eq!(again.derived, profile.derived);
    let blocks =
        u64::from(profile.derived.planes) * u64::from(profile.config.geometry.blocks_per_plane);
    if blocks <= SMALL && u64::from(profile.derived.physical_zones) <= SMALL {
        use_drive(profile);
    }
}

/// Writes, reads, reports, finishes and resets the last zone of a drive.
fn use_drive(profile: &Profile) {
    let config = &profile.config;
    let mut drive = Drive::new(config);
    let zone = ZoneId(config.zones.count - 1);
    let start = drive.zones().start(zone);
    let limit = drive.info().max_append_bytes / config.lba_bytes;
    let nlb = u64::from(limit.min(4)).min(config.zones.capacity_lbas);
    let nlb = u32::try_from(nlb).expect("it is at most 4");
    let send = |action| Op::ZoneSend {
        slba: start,
        action,
        select_all: false,
    };
    let (filter, partial) = (ReportFilter::ALL, false);
    let mut ops = vec![Op::Flush];
    if nlb > 0 {
        ops.push(Op::Write { slba: start, nlb });
        ops.push(Op::Append { zslba: start, nlb });
        ops.push(Op::Read { slba: start, nlb });
    }
    ops.push(Op::ZoneReceive {
        slba: Lba(0),
        filter,
        partial,
        extended: false,
    });
    if profile.derived.zone_pages <= SMALL_ZONE {
        ops.push(send(ZoneSendAction::FINISH));
    }
    ops.push(send(ZoneSendAction::RESET));
    let mut done = Vec::new();
    let mut now = Nanos::ZERO;
    for (tag, op) in (0..).zip(&ops) {
        let report = matches!(op, Op::ZoneReceive { .. });
        let data = report.then(|| zonelab_device::Buf::zeroed(4_096));
        drive
            .submit(now, QueueId(0), Tag(tag), Command::new(*op), data)
            .expect("few commands are in flight");
        // Half of them meet the one before in flight.
        if tag % 2 == 1 {
            now = drain(&mut drive, &mut done).max(now);
        }
    }
    drain(&mut drive, &mut done);
    assert_eq!(done.len(), ops.len(), "every command completes");
    assert_eq!(drive.in_flight(), 0);
    drive.zones().assert_invariants();
    assert_eq!(
        drive.zones().state(zone),
        ZoneState::EMPTY,
        "the last command reset it"
    );
}

/// Runs a drive until nothing will happen any more; returns the time then.
fn drain(drive: &mut Drive, done: &mut Vec<zonelab_device::Completion>) -> Nanos {
    let mut now = Nanos::ZERO;
    while let Some(at) = drive.next_event() {
        assert!(at >= now, "time goes back");
        now = at;
        drive.advance(now, done);
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{self, seeded};

    #[test]
    fn texts_are_accepted_and_refused_in_fair_shares() {
        let target = crate::target("profile").unwrap();
        let accepted = (0..500)
            .filter(|seed| read(&seeded(target, *seed)).is_ok())
            .count();
        assert!(
            (50..450).contains(&accepted),
            "{accepted} of 500 are accepted"
        );
    }

    #[test]
    fn the_corpus_is_what_its_names_say() {
        let corpus = harness::corpus(&harness::corpus_directory(
            crate::target("profile").unwrap(),
        ));
        for path in corpus.unwrap() {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let valid = ["small", "every-design", "builtin"].contains(&&*name);
            assert_eq!(
                read(&std::fs::read(&path).unwrap()).is_ok(),
                valid,
                "{name}"
            );
        }
    }
}
