//! Candidates are drives, keys have no influence where none is declared, and a fit of few
//! probes finds what these tell.

use std::cell::Cell;

use zonelab_device::NamespaceId;
use zonelab_ssd::profile::Profile;

use super::design::topic::READ;
use super::design::{CHANNELS, CORES, PAGE, RESETS, ROWS, WAYS};
use super::designs::carried_over;
use super::measure::{Measured, Values, run_on, values_of};
use super::parameters::{
    CORE_APPEND, CORE_READ, CORE_WRITE, ERASE, MEDIA_READ, PROGRAM, TRANSFER, coordinates,
    cores_and_rests, free, range, slopes, start, values,
};
use super::predict::Candidate;
use super::probes::probes_of;
use super::recovery::{Truth, draw};
use super::solve::targets;
use super::*;
use crate::characterize::{Effort, Facts, Reach};

fn known_of(truth: &Truth) -> Known {
    let info = zonelab_ssd::Drive::info_of(&truth.profile.config);
    Known::of(&info, NamespaceId::FIRST, Reach::Virtual, None).unwrap()
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
            let theirs = Known::of(&info, NamespaceId::FIRST, Reach::Virtual, None).unwrap();
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

/// The first probes that read, brief, and a fit of them alone.
fn first_reads(known: &Known) -> (Vec<Probe>, Settings) {
    let mut library = probes_of(known, 200).unwrap();
    library.retain(|probe| probe.topic == READ && probe.is_first);
    let settings = Settings {
        seed: 1,
        repeats: 1,
        most_probes: library.len(),
    };
    (library, settings)
}

/// Reads alone, on a drive whose other mechanisms are known: their numbers come out.
#[test]
fn what_reads_tell_is_found() {
    let truth = draw(1);
    let known = known_of(&truth);
    let (library, settings) = first_reads(&known);
    let mut subject = OnProfile(truth.profile.clone());
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

fn place(key: &str) -> usize {
    PARAMETERS.iter().position(|of| of.key == key).unwrap()
}

/// Positions that code asks for are those of the numbers it means.
#[test]
fn positions_are_those_of_their_numbers() {
    let named = [
        (MEDIA_READ, "media.read"),
        (PROGRAM, "media.program"),
        (ERASE, "media.erase"),
        (TRANSFER, "media.transfer"),
        (CORE_READ, "front_end.read"),
        (CORE_WRITE, "front_end.write"),
        (CORE_APPEND, "front_end.append"),
    ];
    for (position, key) in named {
        assert_eq!(PARAMETERS[position].key, key);
    }
    for (core, rest) in cores_and_rests() {
        let key = PARAMETERS[core]
            .key
            .replace("front_end", "front_end.latency");
        assert_eq!(PARAMETERS[rest].key, key);
    }
}

/// Values are the same after a way through coordinates, which are within their bounds; and
/// another share of a core leaves a command as long as it was.
#[test]
fn a_command_has_its_whole_time_as_a_coordinate() {
    let append = place("front_end.latency.append");
    let whole = |values: &[u64]| values[CORE_APPEND] + values[append];
    for seed in 1..20 {
        let drawn = values(&draw(seed).at);
        let mut at = coordinates(&drawn);
        for (index, at) in at.iter().enumerate() {
            let (low, high) = range(index);
            let says = (PARAMETERS[index].key, seed);
            assert!(
                (low..=high).contains(at),
                "{says:?}: {at} in {low}..={high}"
            );
        }
        assert_eq!(values(&at), drawn, "drive {seed}");
        at[CORE_APPEND] -= 0.5;
        let there = values(&at);
        assert!(there[CORE_APPEND] < drawn[CORE_APPEND], "drive {seed}");
        assert!(whole(&there).abs_diff(whole(&drawn)) <= 1, "drive {seed}");
    }
}

/// The covariance says of a whole and a share what each part could be: with a whole that is
/// certain, one gains what the other loses.
#[test]
fn parts_of_a_whole_gain_what_others_lose() {
    let keys = [CORE_APPEND, place("front_end.latency.append")];
    let [core, rest] = keys.map(|key| slopes(&start(), key, &keys));
    assert!(core[0] > 0.0 && core[1] > 0.0, "{core:?}");
    assert!(
        (core[0] + rest[0]).abs() < 1e-3 * core[0],
        "{core:?} {rest:?}"
    );
    // A step of the whole by a tenth is a tenth of it.
    let times = values(&start());
    let whole = keys.iter().map(|key| times[*key]).sum::<u64>() as f64;
    assert!(((core[1] + rest[1]) / whole - 1.0).abs() < 1e-3);
}

/// Times that are carried over to another number of cores stay within their bounds, and a
/// command alone takes as long as before.
#[test]
fn numbers_of_other_cores_keep_the_time_of_a_command() {
    let besides = place("front_end.latency.read");
    let most = PARAMETERS[CORE_READ].bounds.1;
    let design = draw(1).design;
    let with_cores = |choice| {
        let mut design = design.clone();
        design.0[CORES] = choice;
        design
    };
    let mut times = values(&start());
    // Half of what is possible, of which the change would make twice what is possible.
    times[CORE_READ] = most / 2;
    times[besides] = most;
    let at = coordinates(&times);
    let design = with_cores(0);
    let here = Candidate { design, at };
    assert_eq!(carried_over(&here, &with_cores(0)), None);
    let there = carried_over(&here, &with_cores(2)).unwrap();
    let sum = |at: &[f64]| {
        let times = values(at);
        times[CORE_READ] + times[besides]
    };
    let (before, after) = (sum(&here.at), sum(&there));
    assert_eq!(values(&there)[CORE_READ], most);
    assert!(
        after.abs_diff(before) <= before / 1000,
        "{before} ns, then {after} ns"
    );
}

/// Another geometry begins where it moves as many bytes: its channels together, its dies
/// together; and a read takes as long.
#[test]
fn numbers_of_other_geometries_keep_the_rates() {
    let value = |at: &[f64], key: &str| values(at)[place(key)] as f64;
    let design = |channels, ways, page| {
        let start = Design::start();
        start
            .with(CHANNELS, channels)
            .with(WAYS, ways)
            .with(PAGE, page)
    };
    // 2 channels of 4 dies with pages of 16 KiB, as 8 of 1, or with pages of 8 KiB.
    let here = Candidate {
        design: design(1, 2, 2),
        at: start(),
    };
    for (other, channels, dies) in [(design(3, 0, 2), 4.0, 1.0), (design(1, 2, 1), 0.5, 0.5)] {
        let there = carried_over(&here, &other).unwrap();
        let ratio = |key| value(&there, key) / value(&here.at, key);
        assert!((ratio("media.transfer") - channels).abs() < 1e-3);
        assert!((ratio("media.program") - dies).abs() < 1e-3);
        let read = |at: &[f64]| value(at, "media.read") + value(at, "media.transfer");
        assert!((read(&there) / read(&here.at) - 1.0).abs() < 1e-3);
    }
}

/// A zone of twice as many blocks begins where each is erased in half of the time.
#[test]
fn numbers_of_other_blocks_keep_the_time_of_an_erasure() {
    let here = Candidate {
        design: Design::start().with(ROWS, 1),
        at: start(),
    };
    for (rows, ratio) in [(0, 2.0), (2, 0.5)] {
        let there = carried_over(&here, &here.design.with(ROWS, rows)).unwrap();
        let erase = |at: &[f64]| values(at)[ERASE] as f64;
        assert!((erase(&there) / erase(&here.at) - ratio).abs() < 1e-3);
    }
}

/// Some mechanisms fit only together, and so they are one change of a design.
#[test]
fn mechanisms_that_fit_together_change_together() {
    let here = Design::start();
    let neighbours = here.neighbours();
    let is_there = |design: &Design| neighbours.iter().any(|(of, _)| of == design);
    for rows in 0..3 {
        for reset in 0..4 {
            let other = here.with(ROWS, rows).with(RESETS, reset);
            assert!(other == here || is_there(&other), "{rows} {reset}");
        }
    }
    // As many dies, on a quarter of the channels.
    let wide = here.with(CHANNELS, 3).with(WAYS, 0);
    let narrow = here.with(CHANNELS, 1).with(WAYS, 2);
    assert!(wide.neighbours().iter().any(|(of, _)| *of == narrow));
}

/// Repeats that happen to be alike do not make a value certain.
#[test]
fn repeats_that_are_alike_by_chance_are_not_certain() {
    let known = known_of(&draw(1));
    let library = probes(&known, Effort::Quick).unwrap();
    let of = |probe: usize, values: [f64; 3]| {
        let repeats = values.map(|value| vec![Some(value), Some(value)]);
        let measured = Measured {
            probe: library[probe].id.clone(),
            repeats: repeats.to_vec(),
        };
        (probe, measured)
    };
    // Two probes that read, of which one looks certain.
    let measured = [of(0, [100.0, 100.0, 100.0]), of(1, [90.0, 100.0, 110.0])];
    let alone = targets(&library, &measured[..1], &[]);
    let beside = targets(&library, &measured, &[]);
    let of_candidate = targets(&library, &measured[..1], &[vec![Some(0.1), Some(0.1)]]);
    assert!(alone[0].sigma < 0.01, "{:?}", alone[0]);
    assert!(beside[0].sigma > 0.05, "{:?}", beside[0]);
    assert!(of_candidate[0].sigma > 0.1, "{:?}", of_candidate[0]);
}

/// Whoever interrupts a fit does not wait for the search: after the word, no candidate is run.
#[test]
fn a_search_is_interrupted_at_once() {
    let truth = draw(1);
    let known = known_of(&truth);
    let (library, settings) = first_reads(&known);
    let mut subject = OnProfile(truth.profile.clone());
    let (runs, at_the_word) = (Cell::new(0), Cell::new(None));
    let interrupted = || {
        let is_so = runs.get() > 300;
        if is_so && at_the_word.get().is_none() {
            at_the_word.set(Some(runs.get()));
        }
        is_so
    };
    let on_progress = |progress: &Progress<'_>| {
        if let Progress::Running(so_many) = progress {
            runs.set(*so_many);
        }
    };
    let mut store = Store::default();
    let of = (&known, library.as_slice());
    let with = (&mut subject as &mut dyn Subject, &mut store);
    let ended = fit(of, with, settings, &on_progress, &interrupted);
    assert!(matches!(ended, Err(FitError::Interrupted)), "{ended:?}");
    assert!(runs.get() > 300);
    assert_eq!(at_the_word.get(), Some(runs.get()));
}
