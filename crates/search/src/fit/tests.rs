//! Candidates are drives, keys have no influence where none is declared, and a fit of few
//! probes finds what these tell.

use zonelab_ssd::profile::Profile;

use super::design::CORES;
use super::design::topic::READ;
use super::designs::carried_over;
use super::measure::{Values, run_on, values_of};
use super::parameters::{free, start};
use super::predict::Candidate;
use super::recovery::{Truth, draw};
use super::*;
use crate::characterize::{Effort, Facts, Reach};

fn known_of(truth: &Truth) -> Known {
    let info = zonelab_ssd::Drive::info_of(&truth.profile.config);
    Known::of(&info, Reach::Virtual, None).unwrap()
}

fn run(text: &str, probe: &Probe) -> Values {
    let profile = Profile::parse("candidate", text, &[]).unwrap();
    let result = run_on(&OnProfile(profile), &probe.point, 1).unwrap();
    values_of(probe, &result)
}

#[test]
fn values_and_coordinates_are_each_others() {
    for one in PARAMETERS {
        let (low, high) = one.bounds;
        for value in [low, one.start, high] {
            let again = one.value(one.coordinate(value)) as f64;
            let off = (again - value as f64).abs();
            assert!(
                off <= value as f64 * 1e-4 + 1.0,
                "{} {value} {again}",
                one.key
            );
        }
        assert!(
            (low..=high).contains(&one.value(f64::INFINITY)),
            "{}",
            one.key
        );
        assert!(
            (low..=high).contains(&one.value(f64::NEG_INFINITY)),
            "{}",
            one.key
        );
        assert!(one.start >= low && one.start <= high, "{}", one.key);
    }
}

/// The first design and all next to it, on drives of several zones.
#[test]
fn candidates_are_profiles() {
    for seed in 1..4 {
        let known = known_of(&draw(seed));
        let first = Design::start();
        let mut all: Vec<Design> = first.neighbours().into_iter().map(|(of, _)| of).collect();
        all.push(first);
        for design in all {
            let text = profile_text(&known, &design, &start(), "candidate");
            let read = Profile::parse("candidate", &text, &[]);
            let profile = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
            let info = zonelab_ssd::Drive::info_of(&profile.config);
            let theirs = Known::of(&info, Reach::Virtual, None).unwrap();
            let same = Facts {
                model: theirs.facts.model.clone(),
                ..known.facts.clone()
            };
            // What a drive says of itself, a candidate says as well.
            assert_eq!(
                theirs,
                Known {
                    facts: same,
                    ..known.clone()
                }
            );
        }
    }
}

/// What is kept of a candidate goes by the keys that a probe reacts to: the others make no
/// difference to it.
#[test]
fn keys_have_no_influence_where_none_is_declared() {
    for seed in [3, 8] {
        let truth = draw(seed);
        let known = known_of(&truth);
        let library = probes(&known, Effort::Quick).unwrap();
        let base = profile_text(&known, &truth.design, &start(), "candidate");
        // One brief probe for each topic.
        let mut seen = 0_u8;
        for probe in library.iter().rev() {
            if seen & probe.topic != 0 {
                continue;
            }
            seen |= probe.topic;
            let here = run(&base, probe);
            for key in free(&truth.design) {
                if PARAMETERS[key].topics & probe.topic != 0 {
                    continue;
                }
                let mut at = start();
                at[key] += 0.7;
                let text = profile_text(&known, &truth.design, &at, "candidate");
                let says = (PARAMETERS[key].key, &probe.id);
                assert_eq!(run(&text, probe), here, "{says:?} of drive {seed}");
            }
        }
        assert_eq!(seen, u8::MAX, "each topic has a probe");
    }
}

/// Reads alone, on a drive whose other mechanisms are known: their numbers come out.
#[test]
fn what_reads_tell_is_found() {
    let truth = draw(1);
    let known = known_of(&truth);
    let mut library = probes(&known, Effort::Quick).unwrap();
    library.retain(|probe| probe.topic == READ && probe.is_first);
    let mut subject = OnProfile(truth.profile.clone());
    let settings = Settings {
        seed: 1,
        repeats: 1,
        most_probes: library.len(),
    };
    let mut store = Store::default();
    let of = (&known, library.as_slice());
    let fitted = fit(of, (&mut subject, &mut store), settings, &|_| (), &|| false).unwrap();
    let read = fitted
        .numbers
        .iter()
        .find(|one| one.key == "media.read")
        .unwrap();
    let truth = truth.profile.config.media.read_ns.0;
    let (low, high) = read.interval;
    assert!((low..=high).contains(&truth), "{truth} is not in {read:?}");
    // Reads say nothing of programs.
    let program = fitted
        .numbers
        .iter()
        .find(|one| one.key == "media.program")
        .unwrap();
    assert_eq!(program.known, KnownShare::Open);
}

/// Times that are carried over to another number of cores stay within their bounds, and a
/// command alone takes as long as before.
#[test]
fn numbers_of_other_cores_keep_the_time_of_a_command() {
    let place = |key: &str| PARAMETERS.iter().position(|of| of.key == key).unwrap();
    let (core, besides) = (place("front_end.read"), place("front_end.latency.read"));
    let most = PARAMETERS[core].bounds.1;
    let design = draw(1).design;
    let with_cores = |choice| {
        let mut design = design.clone();
        design.0[CORES] = choice;
        design
    };
    let mut at = start();
    // Half of what is possible, of which the change would make twice what is possible.
    at[core] = PARAMETERS[core].coordinate(most / 2);
    at[besides] = PARAMETERS[besides].coordinate(most);
    let design = with_cores(0);
    let here = Candidate { design, at };
    assert_eq!(carried_over(&here, &with_cores(0)), None);
    let there = carried_over(&here, &with_cores(2)).unwrap();
    let sum = |at: &[f64]| {
        [core, besides]
            .map(|n| PARAMETERS[n].value(at[n]))
            .iter()
            .sum::<u64>()
    };
    let (before, after) = (sum(&here.at), sum(&there));
    assert_eq!(PARAMETERS[core].value(there[core]), most);
    assert!(
        after.abs_diff(before) <= before / 1000,
        "{before} ns, then {after} ns"
    );
}
