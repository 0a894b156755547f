//! Every verb that writes, on a drive with three namespaces: it works in the one that it was
//! pointed at, and the other two stay as they are, byte for byte.

use std::process::Output;

use zonelab_device::{
    Buf, Command as Of, Completion, DeviceInfo, Lba, NamespaceId, Nanos, Op, QueuePair, Tag,
};
use zonelab_driver::TcpQueue;
use zonelab_nvme::zns::ReportFilter;

use super::scratch::{Scratch, stderr};
use super::store::Served;

/// Two zoned namespaces of 20 zones of 1MiB, and a conventional one.
const THREE: &str = r#"
schema = 1
name = "three"
[geometry]
channels = 4
pages_per_block = 16
page_size = "16KiB"
[namespace]
lba_size = "4KiB"
[zones]
count = 60
size = "1MiB"
capacity = "1MiB"
max_open = 8
max_active = 8
[media]
read = "60us"
program = "300us"
erase = "2ms"
transfer = "20us"
[[namespaces]]
zones = 20
[[namespaces]]
zones = 20
[[namespaces]]
kind = "conventional"
zones = 20
spare_zones = 4
"#;

/// Blocks of a command of this test, within its first zones.
const NLB: u32 = 64;

/// The drive, served, with something in each namespace.
struct Drive {
    scratch: Scratch,
    served: Served,
}

/// What a namespace holds: its report of zones, and its blocks.
#[derive(PartialEq)]
struct Contents {
    report: Vec<u8>,
    blocks: Vec<u8>,
}

fn run(queue: &mut TcpQueue, nsid: u32, op: Op, data: Option<Buf>) -> Completion {
    let command = Of::on(NamespaceId(nsid), op);
    queue.submit(command, Tag(0), data).unwrap();
    queue.ring();
    let mut done = Vec::new();
    while queue.poll(&mut done) == 0 {
        let until = queue.now().saturating_add(Nanos::from_secs(10));
        queue.wait(until).unwrap();
    }
    let done = done.pop().unwrap();
    assert!(
        done.status.is_success(),
        "{op:?} on {nsid}: {}",
        done.status
    );
    done
}

fn contents_of(queue: &mut TcpQueue, info: &DeviceInfo, nsid: u32) -> Contents {
    let namespace = info.namespace(NamespaceId(nsid)).unwrap();
    let report = namespace.zoned.map_or_else(Vec::new, |zoned| {
        let receive = Op::ZoneReceive {
            slba: Lba(0),
            filter: ReportFilter::ALL,
            partial: true,
            extended: false,
        };
        let buf = Buf::zeroed(64 + 64 * zoned.zones as usize);
        run(queue, nsid, receive, Some(buf)).data.unwrap().to_vec()
    });
    let mut blocks = Vec::new();
    for slba in (0..namespace.size_lbas).step_by(NLB as usize) {
        let (slba, nlb) = (Lba(slba), NLB);
        let buf = Buf::zeroed(NLB as usize * namespace.lba_bytes as usize);
        let done = run(queue, nsid, Op::Read { slba, nlb }, Some(buf));
        blocks.extend_from_slice(&done.data.unwrap());
    }
    Contents { report, blocks }
}

impl Drive {
    fn serve(name: &str) -> Self {
        let scratch = Scratch::new(&format!("namespaces-{name}"));
        scratch.write("three.toml", THREE);
        let listen = ["serve", "three.toml", "--log=warn", "--json", "--no-timing"];
        let served = scratch.command(&[&listen[..], &["--listen=127.0.0.1:0"]].concat());
        let served = Served::start(served);
        let drive = Self { scratch, served };
        let (_controller, mut queue) = drive.served.connect();
        for nsid in 1..=3 {
            // Zones 0 and 1 are written, and so are as many blocks where there are no zones.
            for zone in 0..2 {
                let bytes = NLB as usize * 4096;
                let data: Vec<u8> = (0..bytes).map(|n| (n as u32 * nsid + zone) as u8).collect();
                let (slba, nlb) = (Lba(u64::from(zone) * 256), NLB);
                run(
                    &mut queue,
                    nsid,
                    Op::Write { slba, nlb },
                    Some(Buf::from(data)),
                );
            }
        }
        drive
    }

    /// What the namespaces hold.
    fn contents(&self) -> [Contents; 3] {
        let (_controller, mut queue) = self.served.connect();
        let info = queue.info().clone();
        [1, 2, 3].map(|nsid| contents_of(&mut queue, &info, nsid))
    }

    fn device(&self, nsid: Option<u32>) -> String {
        match nsid {
            Some(nsid) => format!("{}?nsid={nsid}", self.served.url()),
            None => self.served.url(),
        }
    }

    /// Does something that works in namespace `nsid`, and sees that it does so there alone.
    fn changes_only(&self, nsid: u32, what: &str, work: impl FnOnce(&Self)) {
        let before = self.contents();
        work(self);
        let after = self.contents();
        for (id, (before, after)) in (1..).zip(before.iter().zip(&after)) {
            let is_same = before == after;
            assert_eq!(is_same, id != nsid, "{what} in {nsid}: namespace {id}");
        }
    }

    /// `zonelab ARGS...` is refused as it stands without a namespace or with one that is not
    /// there, and does nothing then.
    fn needs_a_namespace(&self, args: &[&str]) {
        let before = self.contents();
        for (nsid, words) in [
            (None, "has 3 namespaces"),
            (Some(7), "there is no namespace 7"),
        ] {
            let device = self.device(nsid);
            let output = self
                .scratch
                .zonelab(&[args, &["--device", &device]].concat());
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{args:?} {nsid:?}: {said}");
            for words in [
                words,
                "nsid=2: zoned, 20 zones of 1MiB",
                "nsid=3: conventional",
            ] {
                assert!(said.contains(words), "{args:?} {nsid:?}: {said}");
            }
        }
        assert!(before == self.contents(), "{args:?}");
    }

    /// It is refused without `--overwrite` too, with what would be lost; that is said with
    /// it, before it is done.
    fn names_what_is_lost(&self, args: &[&str], lost: &str) {
        let before = self.contents();
        let device = self.device(Some(2));
        let output = self
            .scratch
            .zonelab(&[args, &["--device", &device]].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("say --overwrite"), "{args:?}: {said}");
        assert!(said.contains(lost), "{args:?}: {said}");
        assert!(before == self.contents(), "{args:?}");
    }

    fn zonelab(&self, nsid: u32, args: &[&str]) -> Output {
        let device = self.device(Some(nsid));
        self.scratch
            .zonelab(&[args, &["--device", &device]].concat())
    }

    fn ok(&self, nsid: u32, args: &[&str]) -> Output {
        let output = self.zonelab(nsid, args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        output
    }
}

/// A job that names no namespace, with zones that are full at the start.
const PLAIN: &str = r#"
schema = 1
id = "plain"
title = "Where the device says"
profile = "confznspp"
[axis]
name = "block"
unit = "B"
values = ["16KiB"]
[[job]]
name = "write"
work = "write"
zones = "2..=3"
block = "$x"
operations = 16
[[job]]
name = "read"
work = "read"
zones = "0..=1"
block = "$x"
operations = 8
[[series]]
name = "both"
jobs = ["write", "read"]
full_zones = "0..=1"
"#;

const LOST: &str = "zones 0 to 1 of namespace 2: 2 of 20 zones are not empty, 512KiB written";

#[test]
fn experiments_run_in_the_namespace_of_the_device() {
    let drive = Drive::serve("run");
    drive.scratch.write("plain.toml", PLAIN);
    let run = ["run", "plain.toml", "--quiet"];
    drive.needs_a_namespace(&[&run[..], &["--overwrite"]].concat());
    drive.names_what_is_lost(&run, LOST);
    drive.changes_only(2, "run", |drive| {
        let output = drive.ok(2, &[&run[..], &["--overwrite"]].concat());
        let said = stderr(&output);
        assert!(said.contains("zones 0 to 1 of namespace 2"), "{said}");
    });
    // A job that says where it works does so in that namespace, and in no other one.
    let named = PLAIN.replace("[[job]]\n", "[[job]]\nnamespace = 2\n");
    drive
        .scratch
        .write("named.toml", &named.replace("full_zones = \"0..=1\"\n", ""));
    let named = ["run", "named.toml", "--quiet", "--overwrite", "--out=named"];
    let other = drive.zonelab(1, &named);
    assert_eq!(other.status.code(), Some(3), "{}", stderr(&other));
    let said = stderr(&other);
    assert!(said.contains("\"write\" names namespace 2"), "{said}");
    drive.changes_only(2, "run", |drive| {
        let url = drive.device(None);
        let output = drive
            .scratch
            .zonelab(&[&named[..], &["--device", &url]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    });
}

/// A job on blocks, which a conventional namespace has.
const BLOCKS: &str = r#"
schema = 1
id = "blocks"
title = "Blocks"
profile = "confznspp"
[axis]
name = "block"
unit = "B"
values = ["4KiB"]
[[job]]
name = "write"
work = "write"
blocks = "0%..50%"
block = "$x"
operations = 16
[[series]]
name = "alone"
jobs = ["write"]
"#;

#[test]
fn blocks_are_not_written_unasked() {
    let drive = Drive::serve("blocks");
    drive.scratch.write("blocks.toml", BLOCKS);
    let run = ["run", "blocks.toml", "--quiet"];
    let before = drive.contents();
    let refused = drive.zonelab(3, &run);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("bytes 0 to 8388608 of namespace 3"), "{said}");
    assert!(before == drive.contents());
    drive.changes_only(3, "run", |drive| {
        drive.ok(3, &[&run[..], &["--overwrite"]].concat());
    });
}

#[test]
fn a_characterisation_and_a_fit_run_in_the_namespace_of_the_device() {
    for verb in ["characterize", "fit"] {
        let drive = Drive::serve(verb);
        let study = [verb, "--quiet", "--repeats=1"];
        drive.needs_a_namespace(&[&study[..], &["--overwrite"]].concat());
        drive.names_what_is_lost(&study, LOST);
        drive.changes_only(2, verb, |drive| {
            let (device, out) = (drive.device(Some(2)), format!("--out={verb}"));
            let more = ["--overwrite", out.as_str(), "--device", device.as_str()];
            // The head of the file, and the first part or probe.
            let file = format!("{verb}/evaluations.jsonl");
            let args = [&study[..], &more].concat();
            drive.scratch.interrupted(&args, &file, 2);
        });
    }
}

#[test]
fn jobs_of_fio_run_in_the_namespace_of_the_device() {
    let drive = Drive::serve("fio");
    let write = ["fio", "--name=a", "--rw=write", "--bs=64k", "--size=2z"];
    drive.needs_a_namespace(&[&write[..], &["--overwrite"]].concat());
    drive.changes_only(2, "fio", |drive| {
        // Of empty zones nothing is lost.
        drive.ok(2, &[&write[..], &["--offset=4z"]].concat());
    });
    drive.names_what_is_lost(&write, LOST);
    drive.changes_only(2, "fio --overwrite", |drive| {
        let trim = ["fio", "--name=a", "--rw=trim", "--bs=1m", "--size=1z"];
        let output = drive.ok(2, &[&trim[..], &["--overwrite"]].concat());
        let said = stderr(&output);
        assert!(said.contains("of namespace 2"), "{said}");
    });
    drive.changes_only(3, "fio", |drive| {
        let random = [
            "fio",
            "--name=a",
            "--rw=randwrite",
            "--size=1m",
            "--verify=crc32c",
        ];
        let refused = drive.zonelab(3, &random);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        let said = stderr(&refused);
        assert!(said.contains("bytes 0 to 1048576 of namespace 3"), "{said}");
        drive.ok(3, &[&random[..], &["--overwrite"]].concat());
    });
    // Whoever compares two devices writes to both.
    drive.changes_only(2, "fio --against", |drive| {
        let fill = [
            "fio",
            "--name=a",
            "--rw=write",
            "--bs=64k",
            "--offset=8z",
            "--size=1z",
        ];
        let (device, emulated) = (drive.device(Some(2)), "three.toml?nsid=2&clock=real");
        let against = ["--device", emulated, "--against", &device];
        let output = drive.scratch.zonelab(&[&fill[..], &against].concat());
        // On a busy host nothing can be said of it.
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1 | 4)), "{}", stderr(&output));
    });
}

#[test]
fn a_store_is_in_the_namespace_of_the_device() {
    let drive = Drive::serve("kv");
    let kv = [
        "kv",
        "fillrandom",
        "--quiet",
        "--operations=500",
        "--value-bytes=512",
    ];
    drive.needs_a_namespace(&[&kv[..], &["--overwrite"]].concat());
    drive.names_what_is_lost(&kv, LOST);
    drive.changes_only(2, "kv", |drive| {
        let output = drive.ok(2, &[&kv[..], &["--overwrite"]].concat());
        let said = stderr(&output);
        assert!(said.contains("zones 0 to 1 of namespace 2"), "{said}");
    });
}

#[test]
fn a_layer_is_in_the_namespace_of_the_device() {
    let drive = Drive::serve("ftl");
    let format = ["ftl", "format"];
    drive.needs_a_namespace(&[&format[..], &["--overwrite"]].concat());
    drive.names_what_is_lost(&format, LOST);
    drive.changes_only(2, "ftl format", |drive| {
        let output = drive.ok(2, &[&format[..], &["--overwrite"]].concat());
        let said = stderr(&output);
        assert!(said.contains("zones 0 to 1 of namespace 2"), "{said}");
    });
    drive.scratch.write("block", &"layer---".repeat(512));
    drive.changes_only(2, "ftl write", |drive| {
        drive.ok(2, &["ftl", "write", "--slba=7", "--data=block"]);
    });
    drive.changes_only(2, "fio --ftl", |drive| {
        let random = [
            "fio",
            "--name=a",
            "--rw=randwrite",
            "--size=1m",
            "--verify=crc32c",
        ];
        drive.ok(2, &[&random[..], &["--ftl", "--overwrite"]].concat());
    });
}

#[test]
fn commands_are_for_the_namespace_that_is_named() {
    let drive = Drive::serve("nvme");
    drive.scratch.write("block", &"command-".repeat(512));
    let write = ["nvme", "write", "--data=block", "--start-block"];
    let zone = |verb: &'static str| ["nvme", "zns", verb, "--zone"];
    let of_two: &[&[&str]] = &[
        &[&write[..], &["64"]].concat(),
        &["nvme", "write-zeroes", "--start-block=65"],
        &[&zone("open-zone")[..], &["2"]].concat(),
        &[&zone("zone-append")[..], &["2", "--data=block"]].concat(),
        &[&zone("close-zone")[..], &["2"]].concat(),
        &[&zone("finish-zone")[..], &["2"]].concat(),
        &[&zone("reset-zone")[..], &["2"]].concat(),
        // Write one block at the write pointer of zone 3.
        &[
            "nvme",
            "io-passthru",
            "--opcode=1",
            "--cdw10=768",
            "--input-file=block",
        ],
        &["nvme", "zns", "reset-zone", "--all"],
    ];
    for args in of_two {
        let is_named = |output: Output| {
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
            assert!(said.contains("nsid=2: zoned, 20 zones"), "{args:?}: {said}");
        };
        let before = drive.contents();
        let url = drive.device(None);
        is_named(
            drive
                .scratch
                .zonelab(&[*args, &["--device", &url][..]].concat()),
        );
        assert!(before == drive.contents(), "{args:?}");
        drive.changes_only(2, &args.join(" "), |drive| {
            drive.ok(2, args);
        });
    }
    let of_three: [&[&str]; 2] = [
        &["nvme", "write", "--data=block", "--namespace-id=3"],
        &[
            "nvme",
            "dsm",
            "--ad",
            "--slbs=256",
            "--blocks=64",
            "--namespace-id=3",
        ],
    ];
    for args in of_three {
        drive.changes_only(3, &args.join(" "), |drive| {
            // The command line counts before the address.
            drive.ok(2, args);
        });
    }
}

/// Namespaces 1 and 3 have no zones, so that work there would fail.
const BETWEEN: &str = "namespaces=[{kind=\"conventional\", zones=20, spare_zones=4}, {zones=20}, \
                       {kind=\"conventional\", zones=20, spare_zones=4}]";

#[test]
fn on_an_emulated_drive_the_namespace_is_named_too() {
    let scratch = Scratch::new("namespaces-emulated");
    let (head, _) = THREE.split_once("[[namespaces]]").unwrap();
    let three = format!("{BETWEEN}\n{head}").replacen("schema = 1\n", "", 1);
    scratch.write("three.toml", &format!("schema = 1\n{three}"));
    scratch.write("plain.toml", PLAIN);
    let run = ["run", "plain.toml", "--quiet"];
    let verbs: [&[&str]; 5] = [
        &run,
        &["fio", "--name=a", "--rw=write", "--bs=64k", "--size=2z"],
        &[
            "kv",
            "fillrandom",
            "--quiet",
            "--operations=500",
            "--set=data.store=memory",
        ],
        &["characterize", "--quiet", "--repeats=1"],
        &["fit", "--quiet", "--repeats=1", "--max-probes=2"],
    ];
    for (number, args) in verbs.iter().enumerate() {
        let with = |device: &str| scratch.zonelab(&[*args, &["--device", device][..]].concat());
        for (device, words) in [
            ("three.toml", "has 3 namespaces"),
            ("three.toml?nsid=7", "there is no namespace 7"),
        ] {
            let output = with(device);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
            for words in [words, "nsid=2: zoned, 20 zones of 1MiB"] {
                assert!(said.contains(words), "{args:?}: {said}");
            }
        }
        let output = with("three.toml?nsid=2");
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        // What is studied takes too long in real time.
        if number < 3 {
            let output = with("three.toml?nsid=2&clock=real");
            assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        }
    }
    let output = scratch.zonelab(&[&run[..], &["--device=three.toml?nsid=2&via=pcie"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    // In a file it is kept from one command to the next.
    let ftl = ["ftl", "format", "--store=drive", "--device"];
    let several = scratch.zonelab(&[&ftl[..], &["three.toml"]].concat());
    assert_eq!(several.status.code(), Some(2), "{}", stderr(&several));
    let output = scratch.zonelab(&[&ftl[..], &["three.toml?nsid=2"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
}
