//! Jobs, options and traces that people who work with zoned drives reported: each as it was found,
//! with the project in which it was. Commands of nvme-cli and what Linux makes of a drive are in
//! `nvme_shape` and `serve_linux`, names of workloads in `kv`.

use serde_json::Value;

use super::fio_jobs::{example, job};
use super::scratch::{Scratch, stderr};

fn writes(json: &Value, name: &str) -> u64 {
    job(json, name)["write"]["total_ios"].as_u64().unwrap()
}

/// axboe/fio 2032: a zone counts as active until the append that fills it has completed.
#[test]
fn appends_stay_within_the_limit_of_active_zones() {
    let scratch = Scratch::new("field-appends");
    let appends = "[a]\nzonemode=zbd\nzone_append=1\nrw=randwrite\nbs=64k\nioengine=libaio\n\
                   iodepth=32\nio_size=40g\n";
    scratch.write("job.fio", appends);
    let json = scratch.json(&["job.fio", "--device=zn540"]);
    assert_eq!(job(&json, "a")["error"], 0);
    assert_eq!(writes(&json, "a"), (40 << 30) / (64 << 10));
}

/// fio's examples for zones, and westerndigitalcorporation/zbdbench: the kernel sends in parts
/// what is longer than a command.
#[test]
fn blocks_may_be_longer_than_a_command() {
    let scratch = Scratch::new("field-parts");
    let jobs = "[global]\nzonemode=zbd\nsize=4z\n[w]\nrw=write\nbs=2m\nioengine=libaio\n\
                [r]\nstonewall\nrw=read\nbs=1m\nioengine=psync\n";
    scratch.write("job.fio", jobs);
    let json = scratch.json(&["job.fio", "--device=small-zones"]);
    assert_eq!(writes(&json, "w"), 64);
    assert_eq!(job(&json, "r")["read"]["total_ios"], 128);
}

/// Scripts of zbdbench and of NVMeVirt: names cut short, and flags without a value; fio 2103: how
/// appends are spelt now; options of fio's manual and of old files.
#[test]
fn options_are_spelt_as_fio_takes_them() {
    let scratch = Scratch::new("field-options");
    let takes = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        let output = scratch.fio(&[&words[..], &["--device=small-zones", "--parse-only"]].concat());
        assert!(output.status.success(), "{words:?}\n{}", stderr(&output));
    };
    for flag in "fixedbufs registerfiles hipri sqthread_poll userspace_reap".split(' ') {
        takes(&format!("--name=a --rw=write --size=1z --{flag}"));
    }
    takes(
        "--name=a --rw=write --bs=128k --size=2z --numjobs=2 --offset_increment=2z \
         --job_max_open_zone=1 --group_report",
    );
    for method in "crc64 crc32 crc16 crc7 xxhash sha1 meta null".split(' ') {
        takes(&format!(
            "--name=a --rw=write --bs=4k --size=1z --verify={method}"
        ));
    }
    let aliases = "[a]\nrw=write\nsize=1z\nfileoffset=0\nratemin=1k\nratecycle=500\n";
    scratch.write("aliases.fio", aliases);
    takes("aliases.fio");
    let appends = "[a]\nioengine=io_uring_cmd\ncmd_type=nvme\nzonemode=zbd\n\
                   write_mode=zone_append\nrw=randwrite\niodepth=4\nbs=8k\nio_size=16m\nsize=2z\n\
                   verify=crc32c\n";
    scratch.write("appends.fio", appends);
    let json = scratch.json(&["appends.fio", "--device=small-zones"]);
    assert_eq!(job(&json, "a")["zonelab"]["operations"]["append"], 2_048);
}

/// fio 1757 and 1613: writes go to the reclaim units of their handles. fio 800: shares of the
/// accesses by shares of the drive, as in JESD219. FEMU 8, 37, 130: what the drive did.
#[test]
fn blocks_without_zones_have_placement_distributions_and_counters() {
    let scratch = Scratch::new("field-blocks");
    let fdp = example("fdp.toml");
    let placed = "[global]\nioengine=io_uring_cmd\ncmd_type=nvme\nbs=16k\nfdp=1\nio_size=32m\n\
                  [hot]\nrw=randwrite\nsize=10%\nfdp_pli=0,1\n\
                  [cold]\nrw=write\noffset=50%\nsize=40%\nfdp_pli=2\n";
    scratch.write("placed.fio", placed);
    let json = scratch.json(&["placed.fio", "--device", &fdp]);
    assert_eq!(
        (writes(&json, "hot"), writes(&json, "cold")),
        (2_048, 2_048)
    );
    let shares = "[a]\nrw=randrw\nrwmixread=40\nbs=4k\nsize=100%\nio_size=64m\n\
                  random_distribution=zoned:50/5:30/15:20/80\n";
    scratch.write("shares.fio", shares);
    let json = scratch.json(&["shares.fio", "--device", &fdp]);
    let reads = job(&json, "a")["read"]["total_ios"].as_u64().unwrap();
    assert_eq!(reads + writes(&json, "a"), 16_384);
    let over = "--name=fill --rw=write --bs=128k --size=100% --name=over --stonewall \
                --rw=randwrite --bs=16k --size=100% --io_size=1g --norandommap";
    let words: Vec<&str> = over.split_whitespace().collect();
    let json = scratch.json(&[&words[..], &["--device", &fdp]].concat());
    let drive = &json["zonelab"]["drive"];
    assert!(drive["dlwa"].as_f64().unwrap() > 1.2, "{drive}");
    assert!(
        drive["collect_program_bytes"].as_u64().unwrap() > 1 << 28,
        "{drive}"
    );
    assert!(drive["erased_blocks"].as_u64().unwrap() > 1_000, "{drive}");
}

/// Seen with fio's examples: a job that waits for one that is wrong is not wrong for that.
#[test]
fn a_mistake_is_named_once() {
    let scratch = Scratch::new("field-once");
    let jobs = "[warm]\nrw=write\nbs=3k\nsize=1z\n[main]\nwait_for=warm\nrw=randread\nbs=4k\n\
                size=1z\nruntime=1\n";
    scratch.write("job.fio", jobs);
    let output = scratch.fio(&["job.fio", "--device=small-zones", "--parse-only"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("job.fio:3: bs: 3072 bytes are no multiple"),
        "{said}"
    );
    assert!(!said.contains("wait_for"), "{said}");
}

/// SimpleSSD-Standalone 8 and 19, MQSim 15, 51 and 74, FEMU 130: public traces in their own
/// forms, on zones and on blocks that are written over.
#[test]
fn public_traces_are_replayed() {
    let scratch = Scratch::new("field-traces");
    let msr = "128166372000000000,srv,0,Write,0,4096,120\n\
               128166372000010000,srv,0,Write,4096,8192,130\n\
               128166372000030000,srv,0,Read,0,4096,90\n";
    let alibaba = "7,W,0,16384,1577808144000000\n7,W,16384,4096,1577808144000100\n\
                   7,R,0,4096,1577808144000400\n";
    let spc = "0,0,8192,W,0.000100\n0,16,8192,w,0.000200\n0,0,4096,R,0.000300\n";
    let mqsim = "1000 0 0 16 0\n2000 0 16 16 0\n9000 0 0 8 1\n";
    let all = [
        ("msr", msr, 12),
        ("alibaba", alibaba, 20),
        ("spc", spc, 16),
        ("mqsim", mqsim, 16),
    ];
    for (name, text, written_kib) in all {
        let file = format!("--read_iolog={}", scratch.write(name, text));
        let how = ["--name=r", "--replay_zones=append", "--device=small-zones"];
        let json = scratch.json(&[&[file.as_str()], &how[..]].concat());
        let bytes = &job(&json, "r")["write"]["io_bytes"];
        assert_eq!(bytes.as_u64(), Some(written_kib << 10), "{name}");
        assert_eq!(job(&json, "r")["read"]["total_ios"], 1, "{name}");
    }
    let over = "fio version 2 iolog\nd add\nd open\nd write 0 16384\nd write 0 4096\n\
                d write 4096 4096\nd read 0 16384\nd close\n";
    let file = format!("--read_iolog={}", scratch.write("over.iolog", over));
    let json = scratch.json(&["--name=r", &file, "--device", &example("fdp.toml")]);
    assert_eq!(writes(&json, "r"), 3);
}

/// FEMU 161 and 177: what is shown can be set again.
#[test]
fn shown_values_can_be_set() {
    let scratch = Scratch::new("field-shown");
    for key in [
        "zones.max_active",
        "zones.max_open",
        "front_end.max_transfer",
    ] {
        let set = format!("{key}=unlimited");
        let output = scratch.zonelab(&["check", "zn540", "--set", &set]);
        assert!(output.status.success(), "{set}: {}", stderr(&output));
    }
}

#[test]
fn a_trace_that_is_left_out_says_so() {
    let scratch = Scratch::new("field-skipped");
    let trace = "fio version 2 iolog\nd add\nd open\nd read 0 16384\nd close\n";
    let file = format!("--read_iolog={}", scratch.write("reads.iolog", trace));
    let words = [
        "--name=r",
        &file,
        "--replay_skip=read",
        "--device=small-zones",
    ];
    let said = stderr(&scratch.fio(&words));
    assert!(
        said.contains("replay_skip leaves out all operations of its trace"),
        "{said}"
    );
}
