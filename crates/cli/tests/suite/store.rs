//! `zonelab serve --store`: killed under load, a full disk, another drive.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use zonelab_device::{Buf, Command as Of, Completion, Lba, Nanos, Op, QueuePair, Tag};
use zonelab_driver::{IoQueue as _, TcpQueue};
use zonelab_nvme::Status;
use zonelab_nvme::zns::ZoneSendAction;

use super::scratch::{Scratch, stderr};
pub(crate) use super::served::Served;

const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/live.toml");
/// Blocks of an append.
const NLB: u32 = 4;
/// Zones that are written at a time, and appends in flight.
const ZONES: u64 = 4;
const DEPTH: u32 = 16;

fn serve(scratch: &Scratch) -> Command {
    serve_with(scratch, &[])
}

fn serve_with(scratch: &Scratch, more: &[&str]) -> Command {
    let listen = ["--listen", "127.0.0.1:0", "--json", "--store", "drive"];
    scratch.command(&[&["serve", PROFILE, "--no-timing"], &listen[..], more].concat())
}

/// Zones that consist of storage elements, and flash for an eighth of them.
const THIN: [&str; 8] = [
    "--set",
    "mapping.design=chunk",
    "--set",
    "mapping.physical_zones=8",
    "--set",
    "mapping.thin=true",
    "--set",
    "finish.extent=elements",
];

/// What each piece of an append's data is.
fn mark(tag: u32) -> [u8; 4] {
    (tag + 1).to_le_bytes()
}

/// Appends until the connection is lost, nothing fits any more, or `kill` says that it is to be: tags
/// and addresses of those that were acknowledged.
fn append(queue: &mut TcpQueue, mut kill: impl FnMut(usize)) -> Vec<(u32, u64)> {
    let info = queue.info().clone();
    let (bytes, size) = (
        info.namespaces[0].lba_bytes as usize * NLB as usize,
        info.namespaces[0].zoned.unwrap().zone_size_lbas,
    );
    let mut told = Vec::new();
    let (mut next, mut in_flight) = (0, 0);
    let mut done: Vec<Completion> = Vec::new();
    let mut is_full = false;
    while queue.error().is_none() && !(is_full && in_flight == 0) {
        while !is_full && in_flight < DEPTH && queue.error().is_none() {
            let mut data = Buf::zeroed(bytes);
            data.chunks_mut(4)
                .for_each(|piece| piece.copy_from_slice(&mark(next)));
            let zslba = Lba(u64::from(next) % ZONES * size);
            let op = Op::Append { zslba, nlb: NLB };
            if queue.submit(Of::new(op), Tag(next), Some(data)).is_err() {
                break;
            }
            (next, in_flight) = (next + 1, in_flight + 1);
        }
        queue.ring();
        while queue.poll(&mut done) == 0 && queue.error().is_none() {
            let until = queue.now().saturating_add(Nanos::from_secs(10));
            if queue.wait(until).is_err() {
                break;
            }
        }
        for completion in done.drain(..) {
            in_flight -= 1;
            is_full |= completion.status == Status::CAPACITY_EXCEEDED;
            if completion.status.is_success() {
                told.push((completion.tag.0, completion.result));
            }
        }
        kill(told.len());
    }
    told
}

fn verify(queue: &mut TcpQueue, told: &[(u32, u64)]) {
    let bytes = queue.info().namespaces[0].lba_bytes as usize * NLB as usize;
    for (tag, slba) in told {
        let (slba, nlb) = (Lba(*slba), NLB);
        let data = Some(Buf::zeroed(bytes));
        queue
            .submit(Of::new(Op::Read { slba, nlb }), Tag(0), data)
            .unwrap();
        queue.ring();
        let mut done = Vec::new();
        while queue.poll(&mut done) == 0 {
            let until = queue.now().saturating_add(Nanos::from_secs(10));
            queue.wait(until).unwrap();
        }
        let data = done.pop().unwrap().data.unwrap();
        let is_it = data.chunks(4).all(|piece| piece == mark(*tag));
        assert!(is_it, "append {tag} at {slba:?}");
    }
}

#[test]
fn what_was_acknowledged_outlives_sigkill() {
    let scratch = Scratch::new("killed");
    let any: &[&str] = &[];
    for (most, more) in [(20, any), (700, any), (3000, any), (700, &THIN)] {
        let _ = std::fs::remove_file(scratch.0.join("drive"));
        let mut served = Served::start(serve_with(&scratch, more));
        assert_eq!(served.said["store"]["is_new"], true);
        let (_controller, mut queue) = served.connect();
        let told = append(&mut queue, |count| {
            if count >= most {
                served.process.kill().unwrap();
            }
        });
        assert!(told.len() >= most);
        served.process.wait().unwrap();
        let mut served = Served::start(serve_with(&scratch, more));
        assert_eq!(served.said["store"]["is_clean"], false);
        assert_eq!(served.said["store"]["zones_with_data"], ZONES);
        let (_controller, mut queue) = served.connect();
        verify(&mut queue, &told);
        // In good order, this time.
        let pid = served.process.id().to_string();
        Command::new("kill").args(["-INT", &pid]).status().unwrap();
        served.process.wait().unwrap();
        let served = Served::start(serve_with(&scratch, more));
        assert_eq!(served.said["store"]["is_clean"], true);
        let (_controller, mut queue) = served.connect();
        verify(&mut queue, &told);
    }
}

/// Does one command to its end.
pub(crate) fn run(queue: &mut TcpQueue, op: Op, data: Option<Buf>) -> Completion {
    queue.submit(Of::new(op), Tag(0), data).unwrap();
    queue.ring();
    let mut done = Vec::new();
    while queue.poll(&mut done) == 0 {
        let until = queue.now().saturating_add(Nanos::from_secs(10));
        queue.wait(until).unwrap();
    }
    done.pop().unwrap()
}

/// The server with its store on a small file system that goes with the processes in it, after
/// `prepares` was run there; `None`: none can be mounted here, and that is said.
fn on_a_small_disk(scratch: &Scratch, served: &Command, prepares: &str) -> Option<Command> {
    std::fs::create_dir(scratch.0.join("disk")).unwrap();
    let mount = "mount -t tmpfs -o size=6m none disk";
    let can = Command::new("unshare")
        .args(["-rm", "sh", "-c", mount])
        .current_dir(&scratch.0)
        .status();
    if !can.is_ok_and(|status| status.success()) {
        let why = "no file system can be mounted here (unshare -rm)";
        assert!(std::env::var_os("CI").is_none(), "{why}");
        // Past the capture of test output: nobody should take it for a pass.
        let mut uncaptured = std::io::stderr();
        writeln!(uncaptured, "SKIPPED: a full disk: {why}").unwrap();
        return None;
    }
    let script = format!("{mount} && cd disk && {prepares} exec \"$0\" \"$@\"");
    let mut command = Command::new("unshare");
    command
        .args(["-rm", "sh", "-c", &script])
        .current_dir(&scratch.0);
    command.arg(served.get_program()).args(served.get_args());
    Some(command)
}

/// With the layer, too: its journal and its images find no room any more, and go on.
#[expect(
    clippy::disallowed_methods,
    reason = "another process makes room meanwhile"
)]
#[test]
fn the_layer_writes_again_when_a_full_disk_has_room() {
    let scratch = Scratch::new("full-ftl");
    let served = serve_with(&scratch, &["--ftl", "--log-format", "json"]);
    let frees = "head -c 3m /dev/zero > other && \
                 { (until [ -e ../go ]; do sleep 0.1; done; rm other) & } &&";
    let Some(mut command) = on_a_small_disk(&scratch, &served, frees) else {
        return;
    };
    command.stderr(Stdio::piped());
    let mut served = Served::start(command);
    let (_controller, mut queue) = served.connect();
    let bytes = queue.info().namespaces[0].lba_bytes as usize;
    let write = |queue: &mut TcpQueue, block: u64| {
        let mut data = Buf::zeroed(bytes);
        data.fill(1 + block as u8 % 200);
        let op = Op::Write {
            slba: Lba(block * 7),
            nlb: 1,
        };
        run(queue, op, Some(data)).status
    };
    // Written and flushed until something finds no room.
    let mut flushed = 0;
    let full = (0..100_000).find(|block| {
        let status = match write(&mut queue, *block) {
            Status::SUCCESS => run(&mut queue, Op::Flush, None).status,
            status => status,
        };
        assert!(
            [Status::SUCCESS, Status::CAPACITY_EXCEEDED].contains(&status),
            "{status}"
        );
        flushed = if status.is_success() {
            block + 1
        } else {
            flushed
        };
        !status.is_success()
    });
    let full = full.unwrap();
    assert!(flushed > 50, "{flushed}");
    let health = || {
        let words = ["nvme", "smart-log", "--json", "--device", &served.url()];
        let output = scratch.zonelab(&words);
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let bits = &value["critical_warning"];
        let hex = || u64::from_str_radix(bits.as_str()?.trim_start_matches("0x"), 16).ok();
        bits.as_u64().or_else(hex).unwrap() & 8
    };
    assert_eq!(health(), 8);
    std::fs::write(scratch.0.join("go"), "").unwrap();
    let mut tries = 0..1_200;
    let mut again = || {
        assert!(
            tries.next().is_some(),
            "there is room, and nothing is written"
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    while !run(&mut queue, Op::Flush, None).status.is_success() {
        again();
    }
    while write(&mut queue, full) != Status::SUCCESS {
        again();
    }
    assert_eq!(health(), 0);
    assert_eq!(run(&mut queue, Op::Flush, None).status, Status::SUCCESS);
    for block in 0..flushed {
        let op = Op::Read {
            slba: Lba(block * 7),
            nlb: 1,
        };
        let data = run(&mut queue, op, Some(Buf::zeroed(bytes))).data.unwrap();
        assert!(
            data.iter().all(|byte| *byte == 1 + block as u8 % 200),
            "block {block}"
        );
    }
    let mut log = served.process.stderr.take().unwrap();
    served.process.kill().unwrap();
    let mut said = String::new();
    log.read_to_string(&mut said).unwrap();
    for says in [
        "No space left on device (os error 28)",
        "data is written again",
    ] {
        let lines = said.lines().filter(|line| line.contains(says));
        assert!((1..4).contains(&lines.count()), "{says}: {said}");
    }
}

#[test]
fn a_full_disk_fails_writes_and_takes_nothing() {
    let scratch = Scratch::new("full");
    let Some(mut command) = on_a_small_disk(&scratch, &serve(&scratch), "") else {
        return;
    };
    command.args(["--log-format", "json"]);
    command.stderr(Stdio::piped());
    let mut served = Served::start(command);
    let (_controller, mut queue) = served.connect();
    let told = append(&mut queue, |_| {});
    assert!(!told.is_empty() && queue.error().is_none());
    verify(&mut queue, &told);
    // A zone that is reset makes room for others.
    let info = queue.info().namespaces[0].clone();
    let send = Op::ZoneSend {
        slba: Lba(0),
        action: ZoneSendAction::RESET,
        select_all: false,
    };
    assert_eq!(run(&mut queue, send, None).status, Status::SUCCESS);
    let mut data = Buf::zeroed(info.lba_bytes as usize * NLB as usize);
    data.fill(7);
    let size = info.zoned.unwrap().zone_size_lbas;
    let op = Op::Append {
        zslba: Lba(size),
        nlb: NLB,
    };
    assert_eq!(run(&mut queue, op, Some(data)).status, Status::SUCCESS);
    let others: Vec<_> = told.into_iter().filter(|(_, slba)| *slba >= size).collect();
    verify(&mut queue, &others);
    assert!(served.process.try_wait().unwrap().is_none());
    // The log has that once, and when it was over.
    let mut log = served.process.stderr.take().unwrap();
    served.process.kill().unwrap();
    let mut said = String::new();
    log.read_to_string(&mut said).unwrap();
    let lines = |what: &str| said.lines().filter(|line| line.contains(what)).count();
    let full = "bytes of a host cannot be written: No space left on device (os error 28)";
    let (full, again) = (
        lines(full),
        lines("data is written again; commands that failed: "),
    );
    assert!((1..4).contains(&full), "{said}");
    assert_eq!(again, full, "{said}");
    let named = said.lines().find(|line| line.contains("cannot be written"));
    let named = named.unwrap();
    let all = [r#""store":"drive""#, r#""bytes":"#, r#""errno":28"#];
    assert!(all.into_iter().all(|what| named.contains(what)), "{said}");
}

#[test]
fn a_new_store_has_one_maker() {
    for _ in 0..6 {
        let scratch = Scratch::new("race");
        let start = || {
            serve(&scratch)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        };
        let servers = [start().unwrap(), start().unwrap()];
        let mut refused = 0;
        let mut serving = Vec::new();
        for mut server in servers {
            let mut line = String::new();
            BufReader::new(server.stdout.take().unwrap())
                .read_line(&mut line)
                .unwrap();
            if line.is_empty() {
                let output = server.wait_with_output().unwrap();
                assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
                assert!(
                    stderr(&output).contains("another process"),
                    "{}",
                    stderr(&output)
                );
                refused += 1;
            } else {
                serving.push(server);
            }
        }
        assert_eq!((serving.len(), refused), (1, 1));
        for mut server in serving {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }
}

#[test]
fn memory_that_is_used_up_fails_writes_and_the_server_goes_on() {
    let scratch = Scratch::new("memory");
    let args = [
        "serve",
        PROFILE,
        "--no-timing",
        "--listen",
        "127.0.0.1:0",
        "--json",
    ];
    let limit = ["--data-limit", "256KiB"];
    let mut served = Served::start(scratch.command(&[&args[..], &limit].concat()));
    let (_controller, mut queue) = served.connect();
    let told = append(&mut queue, |_| {});
    assert!(!told.is_empty() && queue.error().is_none());
    verify(&mut queue, &told);
    assert!(served.process.try_wait().unwrap().is_none());
}

#[test]
fn a_store_is_checked() {
    let scratch = Scratch::new("checked");
    let served = Served::start(serve(&scratch));
    let output = scratch.zonelab(&["store", "check", "drive"]);
    assert_eq!(output.status.code(), Some(4), "a server uses it");
    drop(served);
    let output = scratch.zonelab(&["store", "check", "drive", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["is_sound"], true);
    let output = scratch.zonelab(&["store", "repair", "drive"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    std::fs::write(scratch.0.join("other"), "no store").unwrap();
    let output = scratch.zonelab(&["store", "check", "other"]);
    assert_eq!(output.status.code(), Some(3));
}

/// Flips bits of a store that was switched off until it is refused.
fn damage(scratch: &Scratch) {
    let path = scratch.0.join("drive");
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    // Behind the header: whatever is not zero is of some record.
    for at in (64 << 10..8 << 20_u64).step_by(4) {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        if byte[0] == 0 {
            continue;
        }
        file.write_all_at(&[byte[0] ^ 4], at).unwrap();
        let output = scratch.zonelab(&["store", "check", "drive", "--json"]);
        let report = serde_json::from_slice::<serde_json::Value>(&output.stdout);
        if report.is_ok_and(|report| report["is_sound"] == false) {
            assert_eq!(output.status.code(), Some(3));
            return;
        }
        file.write_all_at(&byte, at).unwrap();
    }
    panic!("nothing of it matters");
}

#[test]
fn a_damaged_store_is_repaired_only_by_force() {
    let scratch = Scratch::new("repaired");
    let mut served = Served::start(serve(&scratch));
    let pid = served.process.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    served.process.wait().unwrap();
    damage(&scratch);
    let output = serve(&scratch).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let before = std::fs::metadata(scratch.0.join("drive"))
        .unwrap()
        .modified()
        .unwrap();
    let output = scratch.zonelab(&["store", "repair", "drive"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("--force"), "{}", stderr(&output));
    let metadata = std::fs::metadata(scratch.0.join("drive")).unwrap();
    assert_eq!(metadata.modified().unwrap(), before, "nothing was written");
    let output = scratch.zonelab(&["store", "repair", "drive", "--force"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = scratch.zonelab(&["store", "check", "drive"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    drop(Served::start(serve(&scratch)));
}

#[test]
fn what_cannot_be_used_is_refused_with_the_reason() {
    let scratch = Scratch::new("refused");
    let served = Served::start(serve(&scratch));
    let output = serve(&scratch).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(
        stderr(&output).contains("another process uses it"),
        "{}",
        stderr(&output)
    );
    drop(served);
    let mut other = serve(&scratch);
    let output = other
        .args(["--set", "zones.max_active=13"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let message = stderr(&output);
    assert!(
        message.contains("zones.max_active is 12 there and 13 here"),
        "{message}"
    );
    // The system would end a process that writes further (SIGXFSZ).
    let limited = serve(&scratch);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -f 1000; exec \"$0\" \"$@\""])
        .current_dir(&scratch.0);
    let output = command
        .arg(limited.get_program())
        .args(limited.get_args())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("ulimit -f"), "{}", stderr(&output));
    let output = serve(&scratch).args(["--data", "none"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
