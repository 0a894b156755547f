//! Jobs of fio on blocks without zones, beside what fio 3.33 does on a file of the
//! same size (256 KiB, with blocks of 4 KiB), as its `write_iolog` says.

use zonelab_device::{DeviceInfo, NamespaceInfo, Nanos, Op};
use zonelab_host::Rng;
use zonelab_host::fio::{JobFile, Outside};
use zonelab_host::workload::{JobResult, Shared, WorkloadJob};

use super::support::{Recorder, tiny_info};

/// Blocks of the namespace.
const BLOCKS: u64 = 64;

fn conventional() -> DeviceInfo {
    DeviceInfo {
        namespaces: vec![NamespaceInfo {
            placements: None,
            lba_bytes: 4096,
            size_lbas: BLOCKS,
            zoned: None,
            copy: None,
        }],
        ..tiny_info()
    }
}

/// Runs a job of these options, one in each word, and gives its operations: first
/// block and number of blocks of each, after a letter for what it is.
fn run(info: &DeviceInfo, words: &str, seed: u64) -> (Vec<String>, JobResult) {
    let (device, result) = recorded(info, words, seed).expect(words);
    let name = |op: Op| match op {
        Op::Read { slba, nlb } => format!("r{}+{nlb}", slba.0),
        Op::Write { slba, nlb } => format!("w{}+{nlb}", slba.0),
        Op::Deallocate { .. } => "t".to_owned(),
        op => format!("{op:?}"),
    };
    (device.ops().into_iter().map(name).collect(), result)
}

/// The same, with all that is known of its commands; or what is wrong with it.
fn recorded(info: &DeviceInfo, words: &str, seed: u64) -> Result<(Recorder, JobResult), String> {
    let text = format!("[a]\n{}\n", words.replace(' ', "\n"));
    let outside = Outside {
        variable: &|_| None,
        include: &|_| Err("no files".to_owned()),
    };
    let file = JobFile::parse("j.fio", &text, &outside).map_err(|error| error.to_string())?;
    let plan = file.plan(info, seed).map_err(|error| error.to_string())?;
    let spec = plan.jobs[0].spec.clone();
    let mut job = WorkloadJob::new(spec, info, Rng::new(seed, 0), Shared::default());
    let mut device = Recorder::steady(info.clone(), Nanos::from_us(10));
    device.run(&mut job, 100_000).expect("it ends");
    Ok((device, job.into_result()))
}

fn ops(words: &str) -> String {
    run(&conventional(), words, 1).0.join(" ")
}

/// First blocks from `first` on, `step` apart.
fn steps(letter: char, first: u64, step: usize, count: usize) -> String {
    let at = (first..).step_by(step).take(count);
    let ops: Vec<String> = at.map(|at| format!("{letter}{at}+1")).collect();
    ops.join(" ")
}

#[test]
fn operations_in_order_are_those_of_fio() {
    let twice = |ops: String| format!("{ops} {ops}");
    for (words, expected) in [
        ("rw=write size=64k", steps('w', 0, 1, 16)),
        ("rw=read", steps('r', 0, 1, 64)),
        // Holes, and what is left out once the namespace has been gone through.
        ("rw=write:4k", twice(steps('w', 0, 2, 32))),
        ("rw=write:4k size=128k", steps('w', 0, 2, 16)),
        ("rw=write:4k offset=64k size=64k", steps('w', 16, 2, 8)),
        ("rw=read:4k number_ios=8", steps('r', 0, 2, 8)),
        ("rw=write:8k", steps('w', 0, 3, 22)),
        ("rw=write:12k loops=2 size=64k", twice(steps('w', 0, 4, 4))),
        // The last one ends behind the range, but not behind the namespace.
        (
            "rw=write size=64k bs=12k",
            "w0+3 w3+3 w6+3 w9+3 w12+3 w15+3".to_owned(),
        ),
        ("rw=write bs=12k offset=224k", "w56+3 w59+3".to_owned()),
        (
            "rw=write size=64k io_size=100k",
            format!("{} {}", steps('w', 0, 1, 16), steps('w', 0, 1, 9)),
        ),
        ("rw=write size=30k", steps('w', 0, 1, 8)),
        ("rw=write size=64k number_ios=40", steps('w', 0, 1, 16)),
        ("rw=write size=64k loops=2", twice(steps('w', 0, 1, 16))),
        ("rw=write size=25%", steps('w', 0, 1, 16)),
        ("rw=write offset=50% size=25%", steps('w', 32, 1, 16)),
        (
            "rw=write:4k rw_sequencer=identical number_ios=8",
            steps('w', 0, 2, 8),
        ),
        // A trim has its range in its data.
        ("rw=trimwrite size=12k", "t w0+1 t w1+1 t w2+1".to_owned()),
        ("rw=trim size=64k bs=32k", "t t".to_owned()),
    ] {
        assert_eq!(ops(words), expected, "{words}");
    }
}

#[test]
fn strides_are_those_of_fio() {
    for (words, expected) in [
        (
            "rw=write zonemode=strided zonesize=8k zoneskip=8k size=32k",
            "w0+1 w1+1 w4+1 w5+1 w8+1 w9+1 w12+1 w13+1",
        ),
        (
            "rw=write zonemode=strided zonesize=8k zonerange=16k zoneskip=8k size=32k",
            "w0+1 w1+1 w6+1 w7+1 w12+1 w13+1 w18+1 w19+1",
        ),
        (
            "rw=write zonemode=strided zonesize=32k zonerange=16k zoneskip=8k size=64k",
            "w0+1 w1+1 w2+1 w3+1 w0+1 w1+1 w2+1 w3+1 w6+1 w7+1 w8+1 w9+1 w6+1 w7+1 w8+1 w9+1",
        ),
    ] {
        assert_eq!(ops(words), expected, "{words}");
    }
    let around = ops("rw=read zonemode=strided zonesize=8k zoneskip=8k io_size=256k");
    let all: Vec<&str> = around.split(' ').collect();
    assert_eq!(all.len(), 64);
    assert_eq!(all[..32], all[32..], "from the start again");
    assert_eq!(all[30..32], ["r60+1", "r61+1"]);
    // Each part has its own random places, half of which are had.
    let (random, _) = run(
        &conventional(),
        "rw=randwrite zonemode=strided zonesize=16k zonerange=32k size=64k offset=32k",
        3,
    );
    for (part, ops) in random.chunks(4).enumerate() {
        let at = |op: &String| op[1..op.len() - 2].parse::<usize>().expect("a number");
        let mut places: Vec<usize> = ops.iter().map(at).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 4, "{ops:?}");
        let first = 8 + part * 8;
        assert!(
            places.iter().all(|at| (first..first + 8).contains(at)),
            "{ops:?}"
        );
    }
}

/// How often each block was had.
fn counts(ops: &[String]) -> Vec<u32> {
    let mut counts = vec![0; BLOCKS as usize];
    for op in ops {
        let (at, nlb) = op[1..].split_once('+').expect("a range");
        let number = |text: &str| text.parse::<usize>().expect("a number");
        let (at, nlb) = (number(at), number(nlb));
        counts[at..at + nlb]
            .iter_mut()
            .for_each(|count| *count += 1);
    }
    counts
}

#[test]
fn random_places_are_had_once_in_a_pass() {
    for seed in 0..20 {
        let of = |words: &str| counts(&run(&conventional(), words, seed).0);
        let only = |range: std::ops::Range<usize>, count: u32| {
            let mut counts = vec![0; BLOCKS as usize];
            counts[range].fill(count);
            counts
        };
        for (words, expected) in [
            ("rw=randwrite", only(0..64, 1)),
            ("rw=randread offset=64k size=64k", only(16..32, 1)),
            ("rw=randwrite size=64k io_size=128k", only(0..16, 2)),
            ("rw=randwrite size=64k bsrange=4k-16k", only(0..16, 1)),
            ("rw=randrw size=64k loops=3", only(0..16, 3)),
            // Whole blocks only.
            ("rw=randwrite size=64k bs=12k", only(0..15, 1)),
            (
                "rw=randread:4 size=64k bs=4k rw_sequencer=identical iodepth=8",
                {
                    let counts = of("rw=randread:4 size=64k rw_sequencer=identical");
                    assert_eq!(counts.iter().filter(|count| **count == 4).count(), 4);
                    counts
                },
            ),
        ] {
            assert_eq!(of(words), expected, "seed {seed}: {words}");
        }
        let repeats = of("rw=randwrite norandommap");
        assert_eq!(repeats.iter().sum::<u32>(), 64);
        assert!(repeats.iter().any(|count| *count > 1), "seed {seed}");
    }
}

#[test]
fn trims_come_before_writes_at_any_depth() {
    let words = "rw=randtrimwrite size=64k iodepth=8 ioengine=libaio";
    for seed in 0..10 {
        let (ops, result) = run(&conventional(), words, seed);
        let mut trims = 0;
        let mut writes = Vec::new();
        for op in ops {
            match op.as_str() {
                "t" => trims += 1,
                _ => writes.push(op),
            }
            assert!(writes.len() <= trims, "seed {seed}");
        }
        assert_eq!(trims, 16);
        assert_eq!(counts(&writes)[..16], [1; 16]);
        assert_eq!(result.operations, 32);
    }
}

#[test]
fn zones_are_reset_and_written() {
    let (ops, result) = run(&tiny_info(), "rw=trimwrite size=2z bs=120k", 1);
    let reset = |op: &String| op.contains("ZoneSend");
    assert_eq!(ops.len(), 2 * (1 + 2));
    assert!(reset(&ops[0]) && reset(&ops[3]), "{ops:?}");
    assert_eq!([&ops[1], &ops[2]], ["w0+30", "w30+30"]);
    assert_eq!([&ops[4], &ops[5]], ["w64+30", "w94+30"]);
    assert_eq!(result.cleared_zones, 0, "they are operations");
    let (again, _) = run(&tiny_info(), "rw=trimwrite size=2z bs=120k loops=2", 1);
    assert_eq!(again, [ops.clone(), ops].concat());
    // At random, zones that hold something: there are none.
    let (none, _) = run(&tiny_info(), "rw=randtrimwrite size=2z bs=120k", 1);
    assert!(none.is_empty(), "{none:?}");
}

#[test]
fn holes_lead_to_other_zones() {
    // 60 blocks of 64 can be written; behind 40 of them a hole of 24 ends.
    let (ops, _) = run(&tiny_info(), "rw=write:96k size=3z bs=40k number_ios=8", 1);
    let first: Vec<&str> = ops.iter().map(String::as_str).collect();
    assert_eq!(
        first,
        [
            "w0+10", "w10+10", "w20+10", "w30+10", "w64+10", "w74+10", "w84+10", "w94+10"
        ]
    );
    let (ops, _) = run(
        &tiny_info(),
        "rw=read:256k size=3z bs=40k read_beyond_wp=1",
        1,
    );
    assert_eq!(ops[..3], ["r0+10", "r74+10", "r148+10"]);
}

#[test]
fn a_latency_that_is_too_long_ends_the_job() {
    let (ops, result) = run(&conventional(), "rw=read max_latency=9", 1);
    assert_eq!(ops, ["r0+1"]);
    let late = result.too_late.expect("10 us are more than 9");
    assert_eq!(
        (late.latency, late.limit),
        (Nanos::from_us(10), Nanos::from_us(9))
    );
    let (ops, result) = run(&conventional(), "rw=read max_latency=,9", 1);
    assert_eq!((ops.len(), result.too_late), (64, None), "of writes only");
}

#[test]
fn the_depth_that_keeps_to_a_latency_is_measured_alone() {
    let words = "rw=randread time_based runtime=1 iodepth=32 ioengine=libaio norandommap \
                 latency_target=50 latency_window=1000";
    let (_, result) = run(&conventional(), words, 1);
    // All depths have 10 us.
    assert_eq!(result.depth_found, Some(32));
    let measured = result.ended - result.measured_from;
    assert!(measured < Nanos::from_ms(2), "one window: {measured}");
    assert!(result.ended < Nanos::from_ms(20), "{}", result.ended);
}

/// Identifiers of all commands of a job on a namespace that has so many.
fn placements(words: &str, count: Option<u16>) -> Result<Vec<u16>, String> {
    let mut info = conventional();
    info.namespaces[0].placements = count;
    let (device, _) = recorded(&info, words, 1)?;
    let mut all = vec![0; device.log.len()];
    for (at, placement) in device.placed {
        all[at] = placement;
    }
    Ok(all)
}

#[test]
fn writes_are_placed_in_turn_or_at_random() {
    let placed = |words: &str| placements(words, Some(4)).unwrap();
    let eight = "rw=write number_ios=8 fdp=1";
    assert_eq!(placed(eight), [0, 1, 2, 3, 0, 1, 2, 3]);
    let some = |plids: &str| placed(&format!("{eight} {plids}"));
    assert_eq!(some("plids=1,3"), [1, 3, 1, 3, 1, 3, 1, 3]);
    assert_eq!(some("fdp_pli=1-2,0"), [1, 2, 0, 1, 2, 0, 1, 2]);
    // Other operations take no turn.
    let trims = placed("rw=trimwrite number_ios=4 dataplacement=fdp plids=2,3");
    assert_eq!(trims, [0, 2, 0, 3, 0, 2, 0, 3]);
    assert_eq!(placed("rw=write number_ios=2 fdp=0 plids=3"), [0, 0]);
    let mut drawn = placed("rw=write fdp=1 plid_select=random");
    assert_eq!(drawn.len() as u64, BLOCKS);
    drawn.dedup();
    assert!(drawn.len() > 30, "{drawn:?}");
    // Whoever does not know how many there are believes the job.
    assert_eq!(
        placements("rw=write number_ios=2 fdp=1 plids=9", None),
        Ok(vec![9, 9])
    );
}

#[test]
fn placements_that_are_not_there_are_refused() {
    for (words, count, says) in [
        (
            "fdp=1 plids=1,4",
            Some(4),
            "plids: there is no identifier 4; 0 to 3",
        ),
        (
            "fdp=1",
            Some(0),
            "fdp: the namespace has no flexible data placement",
        ),
        (
            "fdp=1",
            None,
            "fdp: the device was not asked which identifiers it has",
        ),
        (
            "fdp=1 plids=3-1",
            Some(4),
            "plids: \"3-1\" are none, or too many",
        ),
        ("fdp=1 plids=x", Some(4), "plids: \"x\" is no identifier"),
        ("dataplacement=streams", Some(4), "none, fdp"),
        ("plid_select=scheme", Some(4), "roundrobin, random"),
        ("fdp=2", Some(4), "0 to 1"),
        ("dp_scheme=rules", Some(4), "in turn or at random"),
    ] {
        let refused = placements(&format!("rw=write {words}"), count).unwrap_err();
        assert!(refused.contains(says), "{words}: {refused}");
    }
}
