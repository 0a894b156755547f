//! A drive that is divided, under random commands.

use super::*;

/// One thing that a host does to a zone of the drive.
#[derive(Clone, Copy, Debug)]
struct Step {
    zone: u32,
    kind: u8,
    nlb: u32,
    pause: u64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step =
        (0..6_u32, 0..6_u8, 1..20_u32, 0..2_000_000_u64).prop_map(|(zone, kind, nlb, pause)| {
            Step {
                zone,
                kind,
                nlb,
                pause,
            }
        });
    proptest::collection::vec(step, 1..60)
}

/// What happens to the steps on a drive: status, time and the offset assigned.
fn outcomes(config: &DriveConfig, steps: &[Step]) -> (Vec<(Nanos, Status, u64)>, Drive) {
    let mut rig = Rig::new(config);
    let mut bases = Vec::new();
    for step in steps {
        let (nsid, zone) = rig.drive.zones().in_namespace(ZoneId(step.zone));
        let (slba, nlb) = (start(zone.0), step.nlb);
        let op = match step.kind {
            0 | 1 => Op::Append { zslba: slba, nlb },
            2 => Op::Read { slba, nlb },
            3 => send(zone.0, ZoneSendAction::RESET),
            4 => send(zone.0, ZoneSendAction::FINISH),
            _ => Op::Write { slba, nlb },
        };
        bases.push(if step.kind <= 1 { slba.0 } else { 0 });
        rig.submit_command(Command::on(nsid, op), None);
        rig.run_for(Nanos(step.pause));
    }
    rig.settle();
    let outcome = |(done, base): (&Option<drive_support::Done>, &u64)| {
        let done = done.as_ref().expect("it has settled");
        let offset = if done.status.is_success() {
            done.result - base
        } else {
            done.result
        };
        (done.at, done.status, offset)
    };
    let outcomes = rig.done.iter().zip(&bases).map(outcome).collect();
    (outcomes, rig.drive)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Without limits, namespaces are a drive whose zones have other names.
    #[test]
    fn a_divided_drive_behaves_as_the_whole_one(steps in steps(), at in 1..6_u32) {
        let mut whole = small();
        whole.zones.read_across = false;
        let mut divided = whole.clone();
        let of = |zones| NamespaceConfig {
            kind: NamespaceKind::Zoned,
            zones,
            max_active: None,
            max_open: None,
        };
        divided.namespaces = vec![of(at), of(6 - at)];
        let (expected, one) = outcomes(&whole, &steps);
        let (found, two) = outcomes(&divided, &steps);
        prop_assert_eq!(found, expected);
        prop_assert_eq!(two.totals(), one.totals());
        prop_assert_eq!(two.flash().media().ledger(), one.flash().media().ledger());
    }
}
