//! The suite on many geometries, and verdicts of measurements that are made up.

use std::collections::BTreeMap;

use zonelab_device::{DeviceInfo, NamespaceId, NamespaceInfo, ZonedInfo};
use zonelab_lab::run;
use zonelab_lab::table::Style;

use super::observations::ALL;
use super::suite::REWRITES;
use super::*;

/// A drive of that many zones and blocks in each.
fn info(zones: u32, capacity: u64, open: Option<u32>, lba_bytes: u32) -> DeviceInfo {
    DeviceInfo {
        model: "made up".to_owned(),
        namespaces: vec![NamespaceInfo {
            placements: None,
            lba_bytes,
            size_lbas: capacity * u64::from(zones),
            zoned: Some(ZonedInfo {
                zones,
                zone_size_lbas: capacity,
                zone_capacity_lbas: capacity,
                max_active: open,
                max_open: open,
                read_across_zones: false,
                descriptor_extension_bytes: 0,
                zrwa: None,
            }),
            copy: None,
        }],
        max_transfer_bytes: 256 << 10,
        max_append_bytes: 128 << 10,
        has_volatile_cache: false,
    }
}

fn facts(reach: Reach) -> Facts {
    Facts::of(
        &info(904, 275_712, Some(14), 4096),
        NamespaceId::FIRST,
        reach,
        None,
    )
    .unwrap()
}

#[test]
fn the_suite_fits_drives_of_any_geometry() {
    let hows = [
        (Effort::Quick, Reach::Virtual),
        (Effort::Full, Reach::Transport("tcp".to_owned())),
    ];
    for zones in [16, 17, 904] {
        for capacity in [16, 2048, 275_712] {
            for (open, lba_bytes) in [(Some(4), 512), (None, 4096)] {
                let info = info(zones, capacity, open, lba_bytes);
                for (effort, reach) in &hows {
                    let facts =
                        Facts::of(&info, NamespaceId::FIRST, reach.clone(), Some((5, 31))).unwrap();
                    check(&info, &suite(&facts, *effort, 2), &facts);
                }
            }
        }
    }
}

/// Every part can be run on the drive, with the queues that it grants.
fn check(info: &DeviceInfo, parts: &[Part], facts: &Facts) {
    for part in parts {
        let points = run::points(part.id, &part.text, &[]);
        let points = points.unwrap_or_else(|error| panic!("{error}\n{}", part.text));
        assert!(!points.is_empty());
        // Its other half is for a drive of another format.
        if part.id == FORMATS {
            continue;
        }
        for point in points {
            let fits = point.check_on(info);
            fits.unwrap_or_else(|error| panic!("{facts:?}: {error}\n{}", part.text));
            assert!(point.threads().0 <= 5, "{}", part.text);
            assert!(point.deepest().0 <= 31, "{}", part.text);
            let zones = point.zones_on(info);
            assert!(zones.iter().all(|(_, zone)| *zone < facts.zones));
            assert_eq!(point.repeats(), 2);
        }
    }
}

/// Of a drive as that of the study.
fn as_published() -> Samples {
    let mut samples = Samples::default();
    let mut add = |part: &str, all: &[(&str, &str, f64, &str, f64)]| {
        let mut made: Vec<Sample> = Vec::new();
        for (series, job, x, metric, value) in all {
            // Two repeats that differ by a thousandth.
            let of = |times: f64| BTreeMap::from([((*metric).to_owned(), value * times)]);
            made.push(Sample {
                series: (*series).to_owned(),
                x: *x,
                job: (*job).to_owned(),
                repeats: vec![of(1.0), of(1.0001)],
            });
        }
        samples.add(part, made);
    };
    let one = |series: &'static str, x: f64, metric: &'static str, value: f64| {
        (series, series, x, metric, value)
    };
    let latency = "lat_mean_us";
    add(
        "formats",
        &[
            one("write 512 B", 1.0, latency, 24.8),
            one("write 4096 B", 1.0, latency, 11.36),
            one("append 512 B", 1.0, latency, 25.5),
            one("append 4096 B", 1.0, latency, 14.84),
        ],
    );
    add(
        "stacks",
        &[
            one("SPDK", 1.0, latency, 11.36),
            ("io_uring, none", "io_uring", 1.0, latency, 12.62),
            ("io_uring, mq-deadline", "io_uring", 1.0, latency, 14.47),
        ],
    );
    // Both what a size comes to and how long it takes: each from its own samples.
    add(
        "scaling",
        &[
            one("read deep", 1.0, "kiops", 14.0),
            one("read deep", 128.0, "kiops", 424.0),
            one("read wide", 14.0, "kiops", 120.0),
            one("write merged", 32.0, "kiops", 293.0),
            one("write wide", 8.0, "kiops", 186.0),
            one("append deep", 4.0, "kiops", 132.0),
            one("append deep", 8.0, "kiops", 132.5),
            one("append wide", 4.0, "kiops", 132.0),
            one("append wide", 8.0, "kiops", 132.0),
        ],
    );
    add(
        "bandwidth",
        &[
            one("write 8 KiB", 4.0, "mib_s", 1149.0),
            one("append 8 KiB", 32.0, "mib_s", 1141.0),
            one("write 16 KiB", 4.0, "mib_s", 1152.0),
            one("append 16 KiB", 32.0, "mib_s", 1146.0),
        ],
    );
    samples.add("opening", opening());
    samples.add("resets", occupied("reset", [1686.0, 16_187.0]));
    samples.add("finishes", occupied("finish", [907_510.0, 3_070.0]));
    samples.add("stability", stability());
    samples.add("sizes", sizes());
    samples.add("beside-resets", beside_resets());
    samples.add("shared-core", shared_core());
    samples
}

fn sample(series: &str, job: &str, x: f64, metrics: &[(&str, f64)]) -> Sample {
    let metrics = metrics.iter();
    let of: BTreeMap<String, f64> = metrics
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect();
    Sample {
        series: series.to_owned(),
        x,
        job: job.to_owned(),
        repeats: vec![of.clone(), of],
    }
}

fn opening() -> Vec<Sample> {
    let all = [
        ("write, implicit", 11.36),
        ("write, explicit", 11.36),
        ("append, implicit", 14.84),
        ("append, explicit", 14.84),
        ("open", 9.56),
        ("close", 11.01),
    ];
    all.map(|(series, us)| sample(series, series, 1.0, &[("lat_mean_us", us)]))
        .into()
}

/// Of a zone with a block, and of one that is full or lacks a block.
fn occupied(series: &str, us: [f64; 2]) -> Vec<Sample> {
    let of = |(x, us): (f64, f64)| sample(series, series, x, &[("lat_mean_us", us)]);
    [1.0, 275_711.0].into_iter().zip(us).map(of).collect()
}

fn stability() -> Vec<Sample> {
    let of = |(job, cv)| sample("beside", job, 1.0, &[("mib_s_cv", cv)]);
    [("append", 0.013), ("read", 0.05)].map(of).into()
}

fn sizes() -> Vec<Sample> {
    let all = [
        ("write", 4096.0, 332.0, 11.36),
        ("write", 8192.0, 664.0, 11.24),
        ("write", 131_072.0, 1146.0, 109.0),
        ("append", 4096.0, 258.0, 14.84),
        ("append", 8192.0, 539.0, 14.02),
        ("append", 131_072.0, 1146.0, 109.0),
    ];
    let of = |(series, x, mib_s, lat): (&str, f64, f64, f64)| {
        sample(series, series, x, &[("mib_s", mib_s), ("lat_mean_us", lat)])
    };
    all.map(of).into()
}

fn beside_resets() -> Vec<Sample> {
    let reset = |series, us| sample(series, "reset", 1.0, &[("lat_p95_us", us)]);
    let mut all = vec![
        reset("reset alone", 16_190.0),
        reset("read beside", 15_500.0),
        reset("write beside", 20_500.0),
        reset("append beside", 20_500.0),
    ];
    for work in ["read", "write", "append"] {
        for beside in [format!("{work} alone"), format!("{work} beside")] {
            all.push(sample(&beside, &beside, 1.0, &[("lat_p95_us", 20.0)]));
        }
    }
    let latencies = [("lat_p95_us", 20.0), ("lat_by_time_p95_us", 20.0)];
    all.push(sample(REWRITES, "read alone", 1.0, &latencies));
    all
}

fn shared_core() -> Vec<Sample> {
    let reset = |series, us| sample(series, "reset", 1.0, &[("lat_p95_us", us)]);
    vec![
        reset("reset alone", 17_940.0),
        reset("read beside", 28_000.0),
    ]
}

fn verdicts(reach: Reach, samples: &Samples) -> Vec<Verdict> {
    let (judged, _) = judge(&facts(reach), samples);
    assert_eq!(judged.len(), ALL.len());
    judged.into_iter().map(|one| one.verdict).collect()
}

#[test]
fn the_drive_of_the_study_has_all_of_its_observations() {
    let samples = as_published();
    assert_eq!(verdicts(Reach::Virtual, &samples), [Verdict::Holds; 13]);
    let (_, recommendations) = judge(&facts(Reach::Virtual), &samples);
    assert!(
        recommendations
            .iter()
            .all(|one| one.verdict == Verdict::Holds)
    );
    // In real time nothing is said of formats and stacks.
    let real = verdicts(Reach::RealTime, &samples);
    assert_eq!(real[4..], [Verdict::Holds; 9]);
    // Every number that the study published would pass its own bound.
    let (judged, _) = judge(&facts(Reach::Virtual), &samples);
    for evidence in judged.iter().flat_map(|one| &one.evidence) {
        let (Some(effect), Some(published)) = (evidence.effect, evidence.published) else {
            continue;
        };
        let off = effect.value / published - 1.0;
        // Of stability the study has the writes; of resets beside writes its host's share.
        let is_of_host = evidence.what.starts_with("P95 of resets beside");
        assert!(
            off.abs() < 0.1 || is_of_host,
            "{}: {effect:?}",
            evidence.what
        );
    }
}

const PLAIN: Style = Style {
    width: None,
    colour: None,
};

#[test]
fn a_busy_host_concludes_nothing() {
    let (facts, samples) = (facts(Reach::RealTime), as_published());
    let (judged, recommendations) = judge(&facts, &samples);
    let measured = |all: &[Judged]| {
        let all = all.iter().filter(|one| one.verdict != Verdict::NotMeasured);
        all.count()
    };
    let before = measured(&judged);
    let mut device = Device {
        name: "tcp://a".to_owned(),
        facts,
        effort: Effort::Quick,
        samples,
        judged,
        recommendations,
        too_busy: None,
    };
    device.doubt("what was due was handled 378 ms late (P99)".to_owned());
    let doubted = |one: &Judged| one.verdict == Verdict::CannotBeJudged;
    assert!(before > 5);
    assert_eq!(
        device.judged.iter().filter(|one| doubted(one)).count(),
        before
    );
    let text = text(&device, true, &PLAIN);
    assert!(text.contains("too busy to measure tcp://a: what was due was handled 378 ms late"));
    let follows = device.recommendations.iter();
    assert!(
        follows
            .map(|one| one.verdict)
            .all(|of| of != Verdict::Holds)
    );
}

#[test]
fn each_observation_can_fail_by_itself() {
    /// A part, a series, its job, a metric, how much more of it, and the observation.
    type Change = (
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        f64,
        u8,
    );
    const CHANGES: [Change; 11] = [
        // Few of its reads are slow, and most of their time passes in these: the erasures that
        // resets left to the next writes.
        (
            "beside-resets",
            REWRITES,
            "read alone",
            "lat_by_time_p95_us",
            3_000.0,
            12,
        ),
        (
            "stacks",
            "io_uring, mq-deadline",
            "io_uring",
            "lat_mean_us",
            0.5,
            2,
        ),
        ("sizes", "append", "append", "lat_mean_us", 0.5, 4),
        ("scaling", "read wide", "read wide", "kiops", 10.0, 5),
        ("scaling", "append wide", "append wide", "kiops", 2.0, 6),
        ("scaling", "read deep", "read deep", "kiops", 0.5, 7),
        ("bandwidth", "append 8 KiB", "append 8 KiB", "mib_s", 0.5, 8),
        ("opening", "open", "open", "lat_mean_us", 10.0, 9),
        ("finishes", "finish", "finish", "lat_mean_us", 1.0, 10),
        ("stability", "beside", "append", "mib_s_cv", 40.0, 11),
        (
            "beside-resets",
            "write beside",
            "write beside",
            "lat_p95_us",
            2.0,
            12,
        ),
    ];
    for (part, series, job, metric, times, number) in CHANGES {
        let published = as_published();
        let mut samples = Samples::default();
        for (id, all) in published.parts() {
            let mut all = all.to_vec();
            let of = |sample: &&mut Sample| sample.series == series && sample.job == job;
            for sample in all.iter_mut().filter(|_| id == part).filter(of) {
                for repeat in &mut sample.repeats {
                    if let Some(value) = repeat.get_mut(metric) {
                        *value = if number == 10 {
                            3_070.0
                        } else {
                            *value * times
                        };
                    }
                }
            }
            samples.add(id, all);
        }
        let verdicts = verdicts(Reach::Virtual, &samples);
        let place = usize::from(number) - 1;
        assert_eq!(
            verdicts[place],
            Verdict::DoesNotHold,
            "{number}: {verdicts:?}"
        );
    }
    // What was not measured is not judged.
    let nothing = verdicts(Reach::Virtual, &Samples::default());
    assert_eq!(nothing, [Verdict::NotMeasured; 13]);
}

#[test]
fn drives_that_cannot_be_characterised_are_told_why() {
    let of =
        |info: &DeviceInfo, granted| Facts::of(info, NamespaceId::FIRST, Reach::Virtual, granted);
    let mut flat = info(40, 60, None, 4096);
    flat.namespaces[0].zoned = None;
    assert!(matches!(of(&flat, None), Err(FactsError::NotZoned { .. })));
    let few = of(&info(15, 60, None, 4096), None).unwrap_err().to_string();
    assert!(few.contains("15 zones"), "{few}");
    let narrow = of(&info(40, 60, Some(3), 4096), None)
        .unwrap_err()
        .to_string();
    assert!(narrow.contains("3 open zones"), "{narrow}");
    let queues = of(&info(40, 60, None, 4096), Some((4, 64))).unwrap_err();
    assert!(queues.to_string().contains("3 queues"), "{queues}");
    let shallow = of(&info(40, 60, None, 4096), Some((64, 2))).unwrap_err();
    assert!(shallow.to_string().contains("2 entries"), "{shallow}");
}
