//! `zonelab serve --ftl`: what hosts see, what outlives SIGKILL and losses of power, and
//! what is refused.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use zonelab_device::{Buf, Command as Of, Completion, Lba, Nanos, Op, QueuePair, Tag};
use zonelab_driver::tcp::Transfer;
use zonelab_driver::{IoQueue as _, TcpQueue};
use zonelab_nvme::Status;
use zonelab_nvme::command::{IoCommand, Write as WriteCommand};

use super::scratch::{Scratch, stderr};
use super::store::Served;

/// 64 zones of 16 MiB, and blocks of 4 KiB.
const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/live.toml");
const BLOCK: usize = 4096;

fn serve(scratch: &Scratch, more: &[&str]) -> Served {
    Served::start(command(scratch, more))
}

fn command(scratch: &Scratch, more: &[&str]) -> Command {
    let fixed = ["serve", PROFILE, "--listen", "127.0.0.1:0", "--json"];
    let drive = ["--no-timing", "--store", "drive", "--log", "off"];
    scratch.command(&[&fixed, &drive[..], more].concat())
}

/// Runs it to its end, which is a refusal.
fn refused(scratch: &Scratch, more: &[&str], code: i32, words: &[&str]) {
    let output = command(scratch, more).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{more:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{more:?}: {said}");
    }
}

/// Switches a served drive off in good order.
fn interrupt(mut served: Served) {
    let pid = served.process.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let ended = served.process.wait().unwrap();
    assert!(ended.success());
}

fn kill(mut served: Served) {
    served.process.kill().unwrap();
    served.process.wait().unwrap();
}

/// `zonelab nvme VERB...` as JSON.
fn nvme(scratch: &Scratch, served: &Served, words: &[&str]) -> Value {
    let url = served.url();
    let output = scratch.zonelab(&[&["nvme"], words, &["-d", &url, "-o", "json"]].concat());
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs one command to its end.
fn run(queue: &mut TcpQueue, op: Op, data: Option<Buf>) -> Completion {
    queue.submit(Of::new(op), Tag(0), data).unwrap();
    queue.ring();
    let mut done = Vec::new();
    while queue.poll(&mut done) == 0 {
        let until = queue.now().saturating_add(Nanos::from_secs(30));
        queue.wait(until).unwrap();
    }
    done.pop().unwrap()
}

fn filled(value: u32) -> Buf {
    let mut data = Buf::zeroed(BLOCK);
    data.chunks_mut(4)
        .for_each(|piece| piece.copy_from_slice(&value.to_le_bytes()));
    data
}

fn write(queue: &mut TcpQueue, lba: u64, value: u32) {
    let op = Op::Write {
        slba: Lba(lba),
        nlb: 1,
    };
    assert_eq!(run(queue, op, Some(filled(value))).status, Status::SUCCESS);
}

fn read(queue: &mut TcpQueue, lba: u64) -> u32 {
    let op = Op::Read {
        slba: Lba(lba),
        nlb: 1,
    };
    let ended = run(queue, op, Some(Buf::zeroed(BLOCK)));
    assert_eq!(ended.status, Status::SUCCESS);
    let data = ended.data.unwrap();
    let (words, _) = data.as_chunks::<4>();
    assert!(words.iter().all(|word| *word == words[0]), "block {lba}");
    u32::from_le_bytes(words[0])
}

/// Blocks in an order that no zone has.
fn scattered(size: u64, count: u64) -> impl Iterator<Item = (u64, u32)> {
    (0..count).map(move |n| (n * 7919 % size, n as u32 + 1))
}

#[test]
fn hosts_see_a_conventional_namespace() {
    let scratch = Scratch::new("serve-ftl-seen");
    let served = serve(&scratch, &["--ftl", "--ftl-spare", "28%"]);
    let said = &served.said["ftl"];
    let blocks = said["blocks"].as_u64().unwrap();
    assert_eq!(said["block_bytes"], BLOCK);
    assert_eq!(said["bytes"], blocks * BLOCK as u64);
    let of = nvme(&scratch, &served, &["id-ns"]);
    for key in ["nsze", "ncap", "nuse"] {
        assert_eq!(of[key], blocks, "{key}: {of}");
    }
    let controller = nvme(&scratch, &served, &["id-ctrl"]);
    assert_eq!(controller["vwc"].as_u64().unwrap() & 1, 1, "{controller}");
    // Without Format NVM, which would take the blocks from under the layer.
    assert_eq!(controller["oacs"].as_u64().unwrap() & 2, 0, "{controller}");
    let url = served.url();
    for words in [&["zns", "report-zones"][..], &["format", "--force"]] {
        let output = scratch.zonelab(&[&["nvme"], words, &["-d", &url]].concat());
        assert!(!output.status.success(), "{words:?}");
    }
    let (_controller, mut queue) = served.connect();
    assert_eq!(queue.info().namespaces[0].zoned, None);
    // In any order, again, and what nobody wrote.
    for (lba, value) in [(blocks - 1, 1), (5, 2), (blocks - 1, 3), (4, 4)] {
        write(&mut queue, lba, value);
    }
    for (lba, value) in [(blocks - 1, 3), (4, 4), (5, 2), (6, 0)] {
        assert_eq!(read(&mut queue, lba), value);
    }
    let beyond = Op::Read {
        slba: Lba(blocks),
        nlb: 1,
    };
    let ended = run(&mut queue, beyond, Some(Buf::zeroed(BLOCK)));
    assert_eq!(ended.status, Status::LBA_OUT_OF_RANGE);
    interrupt(served);
}

#[test]
fn flushed_blocks_of_the_layer_outlive_sigkill() {
    let scratch = Scratch::new("serve-ftl-killed");
    let served = serve(&scratch, &["--ftl"]);
    let size = served.said["ftl"]["blocks"].as_u64().unwrap();
    let (controller, mut queue) = served.connect();
    for (lba, value) in scattered(size, 500) {
        write(&mut queue, lba, value);
    }
    assert_eq!(run(&mut queue, Op::Flush, None).status, Status::SUCCESS);
    for (lba, value) in scattered(size, 250) {
        write(&mut queue, lba, value + 1000);
    }
    drop((queue, controller));
    kill(served);
    let served = serve(&scratch, &["--ftl"]);
    assert_eq!(served.said["ftl"]["blocks"], size);
    let (controller, mut queue) = served.connect();
    for (lba, value) in scattered(size, 500) {
        let found = read(&mut queue, lba);
        let later = value <= 250 && found == value + 1000;
        assert!(found == value || later, "block {lba}: {found}, not {value}");
    }
    // Switched off in good order, nothing is lost that was acknowledged.
    write(&mut queue, 3, 77);
    drop((queue, controller));
    interrupt(served);
    let output = scratch.zonelab(&["ftl", "check", "-d", PROFILE, "--store", "drive"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("It is sound.\n"), "{text}");
    let served = serve(&scratch, &["--ftl"]);
    let (_controller, mut queue) = served.connect();
    assert_eq!(read(&mut queue, 3), 77);
}

#[test]
fn a_write_with_force_unit_access_is_durable_and_others_wait_for_a_flush() {
    let scratch = Scratch::new("serve-ftl-fua");
    let served = serve(&scratch, &["--ftl"]);
    let (controller, mut queue) = served.connect();
    let forced = WriteCommand {
        fua: true,
        ..WriteCommand::new(1, 100, 1)
    };
    let entry = IoCommand::Write(forced).to_entry().unwrap();
    let transfer = Transfer::ToController(filled(5));
    let reply = queue.passthrough(entry, transfer).unwrap();
    assert_eq!(reply.entry.status.status(), Status::SUCCESS);
    write(&mut queue, 200, 6);
    drop((queue, controller));
    kill(served);
    let served = serve(&scratch, &["--ftl"]);
    let (_controller, mut queue) = served.connect();
    assert_eq!(read(&mut queue, 100), 5);
    // Its block is on the drive, and the journal does not say so: which shows that the
    // other one was there because of its flag.
    assert_eq!(read(&mut queue, 200), 0);
}

/// Each write of a job with `sync` or `writefua` is followed by a Flush of its own.
#[test]
fn synchronous_writes_of_a_job_are_flushed() {
    for (option, flushes) in [
        ("--sync=dsync", 50),
        ("--writefua=1", 50),
        ("--sync=none", 0),
    ] {
        let scratch = Scratch::new("ftl-sync");
        let served = serve(&scratch, &["--ftl", "--web", "127.0.0.1:0"]);
        let words = "--name=a --rw=write --bs=4k --size=200k --ioengine=io_uring --iodepth=4 \
                     --overwrite";
        let words: Vec<&str> = words.split_whitespace().collect();
        let device = served.url();
        let written = scratch.fio(&[&words[..], &[option, "--device", &device]].concat());
        assert_eq!(written.status.code(), Some(0), "{}", stderr(&written));
        let state: Value = serde_json::from_str(&served.get("/api/state")).unwrap();
        let operations = &state["namespaces"][0]["operations"];
        assert_eq!(operations["write"]["commands"], 50, "{operations}");
        let flushed = operations["flush"]["commands"].as_u64().unwrap_or(0);
        assert_eq!(flushed, flushes, "{option}: {operations}");
        interrupt(served);
    }
}

#[test]
fn the_layer_is_mounted_again_after_a_loss_of_power() {
    let scratch = Scratch::new("serve-ftl-power");
    let options = ["--ftl", "--control", "socket", "--web", "127.0.0.1:0"];
    let served = serve(&scratch, &options);
    let size = served.said["ftl"]["blocks"].as_u64().unwrap();
    let (controller, mut queue) = served.connect();
    for (lba, value) in scattered(size, 200) {
        write(&mut queue, lba, value);
    }
    assert_eq!(run(&mut queue, Op::Flush, None).status, Status::SUCCESS);
    assert_eq!(served.metric("zonelab_ftl_mounts_total") as u64, 1);
    drop((queue, controller));
    let cut = scratch.zonelab(&["fault", "--control", "socket", "power-cut", "--off", "1ms"]);
    assert!(cut.status.success(), "{}", stderr(&cut));
    // Connections are closed at once while the drive has no power.
    let again = (0..200).find_map(|_| {
        let options = zonelab_driver::Options::new(
            zonelab_driver::url::TcpAddress::parse(&served.url()).unwrap(),
        );
        let connected = zonelab_driver::TcpController::connect(options).ok();
        if connected.is_none() {
            std::thread::park_timeout(Duration::from_millis(20));
        }
        connected
    });
    let mut controller = again.expect("it has power again");
    let mut queue = zonelab_driver::Controller::open_queue(&mut controller).unwrap();
    for (lba, value) in scattered(size, 200) {
        assert_eq!(read(&mut queue, lba), value, "block {lba}");
    }
    // A snapshot serves whoever asks for 20 ms: this one can be of before.
    let is_seen = |_| {
        std::thread::park_timeout(Duration::from_millis(5));
        served.metric("zonelab_ftl_mounts_total") as u64 == 2
    };
    assert!((0..1000).any(is_seen), "it is mounted twice");
    assert_eq!(served.metric("zonelab_ftl_up") as u64, 1);
}

#[test]
fn metrics_and_state_tell_of_the_layer() {
    let scratch = Scratch::new("serve-ftl-web");
    let served = serve(&scratch, &["--ftl", "--web", "127.0.0.1:0"]);
    let (_controller, mut queue) = served.connect();
    for lba in 0..300 {
        write(&mut queue, lba * 3, 1);
    }
    assert_eq!(run(&mut queue, Op::Flush, None).status, Status::SUCCESS);
    let text = served.get("/metrics");
    let host = "zonelab_ftl_written_bytes_total{purpose=\"host\"} 1228800\n";
    assert!(text.contains(host), "{text}");
    assert!(served.metric("zonelab_ftl_free_zones") > 50.0);
    assert!(served.metric("zonelab_ftl_commits_total") >= 1.0);
    let ratio = served.metric("zonelab_ftl_write_amplification_ratio");
    assert!((1.0..1.1).contains(&ratio), "{ratio}");
    let state: Value = serde_json::from_str(&served.get("/api/state")).unwrap();
    assert_eq!(state["layer"]["host_bytes"], 300 * BLOCK);
    assert_eq!(state["layer"]["is_well"], true);
    let size = state["layer"]["size_bytes"].clone();
    assert_eq!(size, served.said["ftl"]["bytes"]);
    // Four bytes for each block.
    let blocks = served.said["ftl"]["blocks"].as_u64().unwrap();
    assert_eq!(state["layer"]["map_bytes"], 4 * blocks);
    assert_eq!(state["layer"]["map_hit_rate"], Value::Null);
    assert!(!text.contains("zonelab_ftl_map_lookups_total{"), "{text}");
    // The drive below has its own view of the same.
    assert_eq!(state["namespaces"][0]["is_zoned"], true);
    assert_eq!(
        state["namespaces"][0]["operations"]["write"]["commands"],
        300
    );
}

/// A share of the map is enough to find all that was written, also after a mount.
#[test]
fn a_share_of_the_map_finds_everything() {
    let scratch = Scratch::new("serve-ftl-share");
    let options = ["--ftl", "--ftl-map-share", "1%", "--web", "127.0.0.1:0"];
    let block = |number: u64| number * 7_919 % 100_000;
    for is_first in [true, false] {
        let served = serve(&scratch, &options);
        let (controller, mut queue) = served.connect();
        for (number, value) in (0..500).zip(1..) {
            if is_first {
                write(&mut queue, block(number), value);
            }
            for _ in 0..2 {
                assert_eq!(read(&mut queue, block(number)), value);
            }
        }
        assert_eq!(run(&mut queue, Op::Flush, None).status, Status::SUCCESS);
        // What is asked within 20 ms of another question has its answer.
        std::thread::park_timeout(Duration::from_millis(50));
        let state: Value = serde_json::from_str(&served.get("/api/state")).unwrap();
        let rate = state["layer"]["map_hit_rate"].as_f64().unwrap();
        assert!((0.001..0.999).contains(&rate), "{rate}");
        let blocks = served.said["ftl"]["blocks"].as_u64().unwrap();
        let bytes = state["layer"]["map_bytes"].as_u64().unwrap();
        assert!(bytes < 4 * blocks / 5, "{bytes} for {blocks} blocks");
        drop((queue, controller));
        interrupt(served);
    }
}

#[test]
fn what_hosts_write_is_logged_to_a_new_file() {
    let scratch = Scratch::new("serve-ftl-log");
    let served = serve(&scratch, &["--ftl", "--ftl-log", "log"]);
    let (controller, mut queue) = served.connect();
    write(&mut queue, 9, 1);
    assert_eq!(run(&mut queue, Op::Flush, None).status, Status::SUCCESS);
    drop((queue, controller));
    interrupt(served);
    let log = std::fs::read(scratch.0.join("log")).unwrap();
    assert_eq!(&log[..8], b"rhswfsj\0");
    // A superblock, a write of a block, a flush by the host, and the end. (The flush of the
    // shutdown of its controller comes to none, or one more.)
    assert!([5, 6].contains(&(log.len() / BLOCK)), "{}", log.len());
    assert_eq!(&log[BLOCK..BLOCK + 9], &[9, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(&log[2 * BLOCK..3 * BLOCK], &*filled(1));
    refused(
        &scratch,
        &["--ftl", "--ftl-log", "log"],
        4,
        &["--ftl-log log"],
    );
}

#[test]
fn a_drive_with_other_data_is_refused_unless_told_to_format() {
    let scratch = Scratch::new("serve-ftl-other");
    let served = serve(&scratch, &[]);
    assert!(served.said["ftl"].is_null());
    let (controller, mut queue) = served.connect();
    write(&mut queue, 0, 9);
    drop((queue, controller));
    interrupt(served);
    refused(&scratch, &["--ftl"], 3, &["--ftl-format"]);
    let served = serve(&scratch, &["--ftl", "--ftl-format"]);
    let (controller, mut queue) = served.connect();
    assert_eq!(read(&mut queue, 0), 0);
    drop((queue, controller));
    interrupt(served);
    let served = serve(&scratch, &["--ftl"]);
    assert!(served.said["ftl"]["blocks"].is_u64());
}

#[test]
fn options_of_the_layer_are_refused_by_name() {
    let scratch = Scratch::new("serve-ftl-options");
    for (options, words) in [
        (&["--ftl-spare", "7%"][..], &["--ftl"][..]),
        (&["--ftl", "--ftl-spare", "0.5%"], &["--ftl-spare", "1%"]),
        (
            &["--ftl", "--ftl-placement", "here"],
            &["--ftl-placement here", "shared-append"],
        ),
        (
            &["--ftl", "--ftl-victims", "lru"],
            &["--ftl-victims lru", "greedy"],
        ),
        (
            &["--ftl", "--ftl-generations", "5"],
            &["--ftl-generations 5", "1 to 4"],
        ),
        (
            &["--ftl", "--ftl-collect-below", "1"],
            &["--ftl-collect-below 1", "valid: 3 to"],
        ),
        (
            &["--ftl", "--ftl-reserved-zones", "1"],
            &["--ftl-reserved-zones 1", "valid"],
        ),
        (
            &["--ftl", "--ftl-map-share", "100%"],
            &["--ftl-map-share", "more than 0% and less than 100%"],
        ),
        (&["--ftl", "--ftl-queues", "20"], &["--ftl-queues"]),
        (&["--ftl", "--ftl-queues", "0"], &["--ftl-queues"]),
    ] {
        refused(&scratch, options, 2, words);
        let _ = std::fs::remove_file(scratch.0.join("drive"));
    }
    let none = ["serve", PROFILE, "--ftl", "--data", "none"];
    let output = scratch.zonelab(&none);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--data none"));
}
