//! Job files never ask more of a drive than its limits on zones allow, whatever the jobs are.

use zonelab_config::Override;
use zonelab_device::Nanos;
use zonelab_fronts::fio::{RunSettings, run};
use zonelab_host::Rng;
use zonelab_host::fio::{JobFile, Outside};
use zonelab_sim::HostCosts;
use zonelab_ssd::Drive;
use zonelab_ssd::profile::Profile;

use super::tiny::TINY;

/// Job files that are drawn, unless `ZONELAB_LIMIT_RUNS` says how many.
const RUNS: u64 = 1_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn one_of<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// A section that writes, and may read and trim.
fn section(rng: &mut Rng, name: usize) -> String {
    let kinds = [
        "write",
        "randwrite",
        "rw",
        "randrw",
        "trimwrite",
        "randtrimwrite",
    ];
    let rw = one_of(rng, &kinds);
    let append = !rw.contains("trim") && rng.below(2) == 0;
    let bs = one_of(rng, &["4k", "16k", "64k", "4k-48k", "240k"]);
    let offset = rng.below(4);
    let zones = 1 + rng.below(8 - offset);
    let mut text = format!(
        "[job{name}]\nrw={rw}\nzone_append={}\niodepth={}\nnumjobs={}\noffset={offset}z\nsize={zones}z\nio_size={}k\n",
        u32::from(append),
        one_of(rng, &[1, 2, 8, 32]),
        1 + rng.below(3),
        240 * (1 + rng.below(12)),
    );
    text += &match bs.contains('-') {
        true => format!("bsrange={bs}\n"),
        false => format!("bs={bs}\n"),
    };
    if rng.below(3) == 0 {
        text += &format!("max_open_zones={}\n", 1 + rng.below(3));
    }
    if rng.below(4) == 0 {
        text += "job_max_open_zones=1\n";
    }
    text
}

/// A drive of few resources, and what jobs on it do.
fn drawn(rng: &mut Rng) -> (Profile, String, RunSettings) {
    let active = 1 + rng.below(4);
    let open = 1 + rng.below(active);
    let set = [
        format!("zones.max_active={active}"),
        format!("zones.max_open={open}"),
    ];
    let set: Vec<Override> = set
        .iter()
        .map(|set| Override::parse(set).expect("it is a setting"))
        .collect();
    let profile = Profile::parse("tiny.toml", TINY, &set).expect("it is a profile");
    let jobs = 1 + rng.below(3) as usize;
    let sections: Vec<String> = (0..jobs).map(|name| section(rng, name)).collect();
    let costs = HostCosts {
        submit_ns: Nanos(1_000),
        path_ns: Nanos(rng.below(20_000)),
        complete_ns: Nanos(1_000),
        jitter_ns: Nanos(rng.below(50_000)),
        hiccup_one_in: one_of(rng, &[0, 50]),
        hiccup_ns: Nanos(2_000_000),
        ..HostCosts::FREE
    };
    let settings = RunSettings {
        conditions: Default::default(),
        trace: None,
        saves: false,
        seed: rng.next_u64(),
        costs: one_of(rng, &[HostCosts::FREE, costs]),
        full_zones: one_of(rng, &[None, Some(3)]).map(|end| 0..end),
        interrupt: std::sync::Arc::default(),
    };
    (profile, sections.concat(), settings)
}

#[test]
fn jobs_keep_to_the_limits_of_their_drive() {
    let first = number("ZONELAB_LIMIT_SEED").unwrap_or(1);
    let mut operations = 0;
    for seed in first..first + number("ZONELAB_LIMIT_RUNS").unwrap_or(RUNS) {
        let (profile, text, settings) = drawn(&mut Rng::new(seed, 0));
        let outside = Outside {
            variable: &|_| None,
            include: &|_| Err("no files".to_owned()),
        };
        let file = JobFile::parse("j.fio", &text, &outside).expect("the job file is right");
        let info = Drive::new(&profile.config).info().clone();
        let Ok(plan) = file.plan(&info, 1) else {
            // More appends than the drive takes at a time, or the like.
            continue;
        };
        let done = run(&plan, &profile.config, &settings).expect("it runs");
        for thread in &done.threads {
            let Some(result) = &thread.result else {
                continue;
            };
            assert_eq!(
                result.errors, 0,
                "{:?} of\n{text}replay: ZONELAB_LIMIT_SEED={seed} ZONELAB_LIMIT_RUNS=1 cargo test \
                 -p zonelab-fronts jobs_keep_to_the_limits_of_their_drive",
                result.first_error,
            );
            operations += result.operations;
        }
    }
    assert!(operations > 0, "nothing was done");
}
