//! The commands of `zonelab nvme` on blocks and zones, against a drive that
//! `zonelab serve` serves.

use super::scratch::{Scratch, stderr};
use super::store::Served;

/// Blocks of the drive are of this size.
const BLOCK: usize = 4096;

/// A drive with a conventional namespace beside its zones, if its profile has one.
struct Drive {
    scratch: Scratch,
    served: Served,
}

impl Drive {
    fn new(profile: &str, more: &[&str]) -> Self {
        let scratch = Scratch::new("nvme-commands");
        let listen = ["--listen", "127.0.0.1:0", "--json", "--no-timing"];
        let served =
            Served::start(scratch.command(&[&["serve", profile], &listen[..], more].concat()));
        Self { scratch, served }
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let url = self.served.url();
        let output = self
            .scratch
            .zonelab(&[&["nvme"], args, &["--device", &url]].concat());
        let said = stderr(&output);
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), text, said)
    }

    fn ok(&self, args: &[&str]) -> String {
        let (code, text, said) = self.run(args);
        assert_eq!(code, 0, "{args:?}: {said}");
        text
    }

    fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.ok(&[args, &["-o", "json"]].concat())).unwrap()
    }

    fn refused(&self, args: &[&str], code: i32, words: &str) {
        let (ended, text, said) = self.run(args);
        assert_eq!(ended, code, "{args:?}: {text}{said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }

    /// A file of blocks that are all `letter`.
    fn blocks(&self, name: &str, letter: char, count: usize) -> String {
        let text: String = std::iter::repeat_n(letter, count * BLOCK).collect();
        self.scratch.write(name, &text)
    }

    fn read(&self, lba: u64, count: u64) -> Vec<u8> {
        let (lba, count) = (lba.to_string(), count.to_string());
        let read = ["read", "-s", &lba, "--blocks", &count, "--data", "back"];
        self.ok(&read);
        self.scratch.read("back").into_bytes()
    }
}

#[test]
fn lists_name_namespaces_and_subsystem() {
    let drive = Drive::new("zn540", &[]);
    assert_eq!(drive.ok(&["list-ns"]), "[   0]:0x1\n");
    let list = drive.json(&["list-ns", "--all"]);
    assert_eq!(list["nsid_list"][0]["nsid"], 1);
    let subsystems = drive.json(&["list-subsys"]);
    let subsystem = &subsystems["Subsystems"][0];
    assert_eq!(subsystem["NQN"], drive.served.said["nqn"]);
    assert_eq!(subsystem["Paths"][0]["Transport"], "tcp");
    let text = drive.ok(&["list-subsys"]);
    assert!(text.contains("tcp traddr=127.0.0.1"), "{text}");
}

#[test]
fn blocks_are_zeroed_compared_and_verified() {
    let drive = Drive::new("zn540", &[]);
    let (a, b) = (drive.blocks("a", 'a', 2), drive.blocks("b", 'b', 2));
    drive.ok(&["write", "--data", &a]);
    drive.ok(&["write-zeroes", "-s", "2", "--blocks", "3"]);
    assert_eq!(
        drive.read(0, 5),
        [vec![b'a'; 2 * BLOCK], vec![0; 3 * BLOCK]].concat()
    );
    drive.ok(&["compare", "--data", &a]);
    drive.refused(&["compare", "--data", &b], 5, "(0x285)");
    assert_eq!(drive.json(&["verify", "--blocks", "5"])["blocks"], 5);
    // Write Zeroes is a write: not at the write pointer, it is none.
    drive.refused(&["write-zeroes", "-s", "2"], 5, "(0x1bc)");
    drive.refused(&["verify", "--blocks", "0"], 2, "0");
}

#[test]
fn ranges_are_copied_and_deallocated() {
    let copy = [
        "--set",
        "copy.max_ranges=4",
        "--set",
        "copy.max_range=256KiB",
        "--set",
        "copy.max_length=1MiB",
    ];
    let drive = Drive::new("zn540", &copy);
    let (a, b) = (drive.blocks("a", 'a', 2), drive.blocks("b", 'b', 2));
    drive.ok(&["write", "--data", &a]);
    drive.ok(&["write", "-s", "2", "--data", &b]);
    let zone = drive.json(&["zns", "id-ns"])["lbafe"][0]["zsze"]
        .as_u64()
        .unwrap();
    let sdlba = zone.to_string();
    let copy = [
        "copy", "--sdlba", &sdlba, "--slbs", "3,0", "--blocks", "1,2",
    ];
    let text = drive.ok(&copy);
    assert_eq!(
        text,
        format!("copy: success, 3 blocks in 2 ranges to {zone:#x}\n")
    );
    let expected = [vec![b'b'; BLOCK], vec![b'a'; 2 * BLOCK]].concat();
    assert_eq!(drive.read(zone, 3), expected);
    // Where it went is written now.
    drive.refused(&copy, 5, "(0x1bc)");
    drive.ok(&["dsm", "--slbs", "0", "--blocks", "4", "--ad"]);
    drive.refused(&["dsm", "--slbs", "0", "--blocks", "4"], 2, "--ad");
    drive.refused(
        &["dsm", "--slbs", "0,1", "--blocks", "4", "--ad"],
        2,
        "as many of each",
    );
    let huge = [
        "copy", "--sdlba", &sdlba, "--slbs", "0", "--blocks", "65537",
    ];
    drive.refused(&huge, 2, "1 to 65536");
}

#[test]
fn parts_of_blocks_are_refused() {
    let drive = Drive::new("zn540", &[]);
    let part = drive.scratch.write("part", "less than a block");
    for command in [
        &["write", "--data", &part][..],
        &["compare", "--data", &part],
        &["zns", "zone-append", "--zone", "0", "--data", &part],
    ] {
        drive.refused(
            command,
            3,
            "17 bytes are not a whole number of blocks of 4096",
        );
    }
    let report = drive.json(&["zns", "report-zones", "--descs", "1"]);
    assert_eq!(report["zone_list"][0]["state"], "EMPTY");
    // Read (02h) of two blocks into room for one.
    let read = [
        "io-passthru",
        "--opcode",
        "2",
        "--cdw12",
        "1",
        "--data-len",
        "4096",
    ];
    drive.refused(&read, 2, "says 2 blocks of 4096 bytes, which are 8192");
}

/// What is longer than the drive takes goes in parts, and says how far it came.
#[test]
fn long_reads_and_writes_go_in_parts() {
    let drive = Drive::new("zn540", &["--set", "front_end.max_transfer=16KiB"]);
    let report = drive.json(&["zns", "report-zones", "--descs", "2"]);
    let zone = report["zone_list"][1]["slba"].as_u64().unwrap();
    let capacity = report["zone_list"][0]["cap"].as_u64().unwrap();
    let data: String = ('a'..='j')
        .flat_map(|letter| std::iter::repeat_n(letter, BLOCK))
        .collect();
    let data = drive.scratch.write("data", &data);
    let expected = drive.scratch.read("data").into_bytes();
    drive.ok(&["write", "--data", &data]);
    assert!(drive.read(0, 10) == expected);
    drive.ok(&["write", "-s", &zone.to_string(), "--data", &data]);
    assert!(
        zone > capacity,
        "blocks that are never written are before it"
    );
    let across = drive.read(zone - 7, 17);
    assert!(across[7 * BLOCK..] == expected, "across the end of a zone");
    assert!(across[..7 * BLOCK].iter().all(|byte| *byte == 0));
    // The first part fails: it is not at the write pointer.
    drive.refused(
        &["write", "-s", "3", "--data", &data],
        5,
        "after 0 of 10 blocks",
    );
    let fua = ["write", "-s", "10", "--data", &data, "--force-unit-access"];
    drive.refused(&fua, 5, "16384 (MDTS)");
    let append = ["zns", "zone-append", "--data", &data, "--zone", "0"];
    drive.refused(&append, 5, "16384 (MDTS)");
    drive.refused(&["read", "--blocks", "0x100000"], 2, "1024 MiB");
}

#[test]
fn any_command_can_be_sent() {
    let drive = Drive::new("zn540", &[]);
    let a = drive.blocks("a", 'a', 1);
    // Append (7Dh) to the first zone, twice: the result is where.
    let append = ["io-passthru", "--opcode", "0x7d", "--input-file", &a];
    assert_eq!(drive.json(&append)["result"], 0);
    assert_eq!(drive.json(&append)["result"], 1);
    let read = [
        "io-passthru",
        "-O",
        "2",
        "--cdw10",
        "1",
        "-l",
        "4096",
        "--data",
        "back",
    ];
    assert_eq!(drive.ok(&read), "opcode 0x02: success, result:0x0\n");
    assert_eq!(drive.scratch.read("back").as_bytes(), [b'a'; BLOCK]);
    // Identify (06h), CNS 01h: the controller.
    let identify = [
        "admin-passthru",
        "--opcode",
        "6",
        "--cdw10",
        "1",
        "-l",
        "4096",
    ];
    let data = drive.json(&[&identify[..], &["--no-namespace"]].concat());
    let data: Vec<u8> = serde_json::from_value(data["data"].clone()).unwrap();
    let model = String::from_utf8_lossy(&data[24..64]).into_owned();
    let controller = drive.json(&["id-ctrl"]);
    assert_eq!(model.trim_end(), controller["mn"].as_str().unwrap());
    drive.refused(&["admin-passthru", "--opcode", "0xc1"], 5, "(0x1)");
    drive.refused(
        &["io-passthru", "--opcode", "1", "-l", "4096"],
        2,
        "returns no data",
    );
    let wrong = ["io-passthru", "--opcode", "2", "--input-file", &a];
    drive.refused(&wrong, 2, "takes no data");
    let huge = ["admin-passthru", "--opcode", "6", "-l", "0xffffffff"];
    drive.refused(&huge, 2, "MDTS");
}

#[test]
fn zones_have_random_write_areas_and_change() {
    let zrwa = [
        "--set",
        "zones.zrwa.size=64KiB",
        "--set",
        "zones.zrwa.flush_granularity=16KiB",
    ];
    let drive = Drive::new("zn540", &zrwa);
    let a = drive.blocks("a", 'a', 4);
    drive.ok(&["zns", "open-zone", "--zone", "0", "--zrwaa"]);
    drive.ok(&["write", "-s", "4", "--data", &a]);
    drive.ok(&["write", "--data", &a]);
    let pointer = || {
        let report = drive.json(&["zns", "report-zones", "--descs", "1"]);
        report["zone_list"][0]["wp"].as_u64()
    };
    assert_eq!(pointer(), Some(0));
    let flushed = drive.json(&["zns", "zrwa-flush-zone", "--lba", "7"]);
    assert_eq!(flushed["lba"], 7);
    assert_eq!(pointer(), Some(8));
    let changed = drive.json(&["zns", "changed-zone-list"]);
    assert_eq!(changed["nrzid"], 0);
    assert_eq!(drive.ok(&["zns", "changed-zone-list"]), "nrzid: 0\n");
}
