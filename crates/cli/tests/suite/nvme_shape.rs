//! `zonelab nvme` takes what scripts for nvme-cli say, and shows what they read.

use super::scratch::{Scratch, stderr};
use super::store::Served;

/// Blocks of the drives are of this size.
const BLOCK: usize = 4096;

struct Drive {
    scratch: Scratch,
    served: Served,
}

impl Drive {
    fn new(profile: &str, more: &[&str]) -> Self {
        let scratch = Scratch::new("nvme-shape");
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

    fn read(&self, slba: &str, count: &str) -> Vec<u8> {
        self.ok(&["read", "-s", slba, "-c", count, "--data", "back"]);
        self.scratch.read("back").into_bytes()
    }
}

#[test]
fn reports_count_the_zones_of_their_filter() {
    let drive = Drive::new("small-zones", &[]);
    let zones = 1024;
    for descs in ["0", "1", "700"] {
        let text = drive.ok(&["zns", "report-zones", "--descs", descs]);
        assert!(text.starts_with("nr_zones: 1024\n"), "{text}");
        assert_eq!(text.lines().count() - 1, descs.parse::<usize>().unwrap());
        let json = drive.json(&["zns", "report-zones", "--descs", descs]);
        assert_eq!(json["nr_zones"], zones);
        let list = json["zone_list"].as_array().unwrap();
        assert_eq!(list.len(), descs.parse::<usize>().unwrap());
    }
    for zone in ["3", "9"] {
        drive.ok(&["zns", "finish-zone", "--zone", zone]);
    }
    // Wherever the report starts, and with the numbers of nvme-cli.
    for state in ["5", "0x5", "full"] {
        let full = drive.json(&["zns", "report-zones", "-S", state, "--zone", "4"]);
        assert_eq!(
            (
                &full["nr_zones"],
                full["zone_list"].as_array().unwrap().len()
            ),
            (&2.into(), 1)
        );
        assert_eq!(full["zone_list"][0]["state"], "FULL");
    }
    let empty = drive.json(&["zns", "report-zones", "--state", "1", "--descs", "1"]);
    assert_eq!(empty["nr_zones"], zones - 2);
    let partial = ["zns", "report-zones", "--partial", "--descs", "7"];
    assert_eq!(drive.json(&partial)["nr_zones"], 7);
    drive.refused(&["zns", "report-zones", "--state", "8"], 2, "read-only");
}

#[test]
fn namespaces_are_named_in_either_notation_and_all_at_once() {
    let drive = Drive::new("small-zones", &[]);
    for nsid in ["1", "0x1", "0xffffffff", "4294967295"] {
        drive.ok(&["io-passthru", "--opcode", "0", "--namespace-id", nsid]);
        drive.ok(&["flush", "-n", nsid]);
    }
    for nsid in ["1", "0x1", "0X01"] {
        assert!(drive.ok(&["id-ns", "-n", nsid]).contains("nsze"));
    }
    let all = "0xffffffff";
    let smart = ["--cdw10", "0x7f0002", "--data-len", "512"];
    let log = [&["admin-passthru", "-O", "2", "-n", all], &smart[..]].concat();
    assert!(drive.ok(&log).contains("opcode 0x02: success"));
    drive.ok(&["get-log", "-n", all, "-i", "2", "-l", "512"]);
    // One namespace is meant by whatever is not of all of them.
    for words in [&["id-ns"][..], &["zns", "report-zones"], &["read"]] {
        drive.refused(&[words, &["-n", all]].concat(), 2, "1 to 4294967294");
    }
    drive.refused(&["flush", "-n", "0"], 2, "1 to 4294967294");
    drive.refused(&["flush", "-n", "x1"], 2, "hexadecimal");
    drive.refused(&["flush", "-n", "0x100000000"], 2, "0xffffffff");
    // The drive has the last word on what passes through.
    drive.refused(&["io-passthru", "-O", "0", "-n", "7"], 5, "(0xb)");
}

#[test]
fn errors_and_changed_zones_outlive_a_connection() {
    let control = ["--control", "socket"];
    let drive = Drive::new("small-zones", &control);
    for _ in 0..3 {
        drive.refused(&["zns", "close-zone", "--zone", "0"], 5, "(0x1bf)");
    }
    assert_eq!(drive.json(&["smart-log"])["num_err_log_entries"], 3);
    let log = drive.json(&["error-log", "--log-entries", "4"]);
    let counts = [0, 1, 2, 3].map(|at| log["errors"][at]["error_count"].as_u64().unwrap());
    assert_eq!(counts, [3, 2, 1, 0]);
    let fault = [
        "fault",
        "--control",
        "socket",
        "zone",
        "3",
        "--state",
        "offline",
    ];
    let output = drive.scratch.zonelab(&fault);
    assert!(output.status.success(), "{}", stderr(&output));
    let slba = drive.json(&["zns", "report-zones", "--zone", "3", "--descs", "1"]);
    let slba = slba["zone_list"][0]["slba"].clone();
    // Read with its event retained, then for good.
    drive.ok(&["get-log", "-n", "1", "-i", "0xbf", "-l", "4096", "--rae"]);
    let list = drive.json(&["zns", "changed-zone-list"]);
    assert_eq!((&list["nrzid"], &list["zones"][0]), (&1.into(), &slba));
    assert_eq!(drive.json(&["zns", "changed-zone-list"])["nrzid"], 0);
}

#[test]
fn zones_have_descriptor_extensions() {
    let drive = Drive::new("small-zones", &["--set", "zones.descriptor_extension=64B"]);
    drive.scratch.write("text", "of the host");
    let set = ["zns", "set-zone-desc", "--zone", "2", "--data", "text"];
    let text = drive.ok(&set);
    assert!(
        text.starts_with("zns-set-zone-desc: Success, action:0x10"),
        "{text}"
    );
    drive.ok(&["zns", "finish-zone", "--zone", "7"]);
    let full = ["zns", "set-zone-desc", "--zone", "7", "--data", "text"];
    drive.refused(&full, 5, "(0x1bf)");
    let report = [
        "zns",
        "report-zones",
        "--extended",
        "--descs",
        "2",
        "--zone",
        "1",
    ];
    let zones = drive.json(&report);
    assert_eq!(zones["zone_list"][0]["ext_data"], serde_json::Value::Null);
    let zone = &zones["zone_list"][1];
    let bytes: Vec<u8> = serde_json::from_value(zone["ext_data"].clone()).unwrap();
    assert_eq!(bytes, [&b"of the host"[..], &[0; 53]].concat());
    assert_eq!(
        (&zone["state"], &zone["attrs"]),
        (&"CLOSED".into(), &128.into())
    );
    let text = drive.ok(&report);
    assert!(text.contains("Extension Data: N/A\n"), "{text}");
    assert!(text.contains("\"of the host"), "{text}");
    // All of them, over several reports.
    let all = drive.json(&["zns", "report-zones", "-e"]);
    assert_eq!(all["zone_list"].as_array().unwrap().len(), 1024);
    drive.scratch.write("long", &"x".repeat(65));
    let long = ["zns", "set-zone-desc", "--zone", "5", "--data", "long"];
    drive.refused(&long, 3, "64 bytes");
    let without = Drive::new("small-zones", &["--set", "zones.descriptor_extension=0B"]);
    without.scratch.write("text", "of the host");
    without.refused(&set, 5, "have no descriptor extensions");
}

#[test]
fn any_management_action_is_sent_and_received() {
    let drive = Drive::new("small-zones", &[]);
    let zones = drive.json(&["zns", "report-zones", "--descs", "2"]);
    let slba = zones["zone_list"][1]["slba"].to_string();
    let send = ["zns", "zone-mgmt-send", "--start-lba", &slba, "--zsa"];
    assert!(
        drive
            .ok(&[&send[..], &["3"]].concat())
            .contains("action:0x3")
    );
    let receive = [
        "zns",
        "zone-mgmt-recv",
        "-s",
        "0",
        "--zra=0",
        "--data-len",
        "192",
    ];
    let open = drive.json(&[&receive[..], &["--zrasf", "3", "--partial"]].concat());
    let data: Vec<u8> = serde_json::from_value(open["data"].clone()).unwrap();
    assert_eq!((data.len(), data[0]), (192, 1));
    assert_eq!(
        data[64 + 16..][..8],
        slba.parse::<u64>().unwrap().to_le_bytes()
    );
    // Without --partial it counts what does not fit, too.
    let text = drive.ok(&receive);
    assert!(
        text.contains("zns-zone-mgmt-recv: Success, action:0x0"),
        "{text}"
    );
    assert!(text.contains("0000: 00 04 00"), "{text}");
    drive.ok(&["zns", "zone-mgmt-send", "-a", "-z", "0x4"]);
    drive.refused(&[&send[..], &["0x7f"]].concat(), 5, "(0x2)");
    drive.refused(&["zns", "zone-mgmt-recv", "-l", "6"], 2, "a multiple of 4");
}

#[test]
fn lengths_are_those_of_nvme_cli() {
    let drive = Drive::new("zn540", &[]);
    drive.scratch.write("text", "zones of a drive");
    let append = ["zns", "zone-append", "--zslba=0", "--data", "text"];
    let text = drive.ok(&[&append[..], &["--data-size=4096"]].concat());
    assert_eq!(text, "Success appended data to LBA 0x0\n");
    drive.ok(&[&append[..], &["-z", "4k"]].concat());
    drive.ok(&["write", "-s", "2", "-c", "1", "--data", "text"]);
    let block = [&b"zones of a drive"[..], &[0; BLOCK - 16]].concat();
    let expected = [&block[..], &block, &block, &[0; BLOCK]].concat();
    assert_eq!(drive.read("0", "3"), expected);
    let read = ["read", "-s", "0", "--data", "back"];
    for (length, blocks) in [
        (&["-z", "8192"][..], 2),
        (&["--block-count", "1", "--data-size", "8192"], 2),
        (&["--count", "0"], 1),
        (&[], 1),
    ] {
        drive.ok(&[&read[..], length].concat());
        let back = drive.scratch.read("back");
        assert_eq!(back.len(), blocks * BLOCK, "{length:?}");
    }
    assert_eq!(drive.json(&["verify", "-c", "3"])["blocks"], 4);
    drive.refused(&["read", "-z", "100"], 2, "whole number of blocks");
    drive.refused(&["read", "-c", "0", "-z", "8192"], 2, "leave one out");
    drive.refused(
        &["read", "-c", "0", "--blocks", "1"],
        2,
        "cannot be used with",
    );
    // Without a length the file is all of it, in whole blocks.
    drive.refused(&append, 3, "--data-size");
}

#[test]
fn the_short_name_of_the_device_is_explained() {
    let drive = Drive::new("zn540", &[]);
    for words in [
        &["zns", "report-zones", "-d", "1"][..],
        &["write", "-s", "0", "-d", "FILE"],
    ] {
        drive.refused(words, 2, "--descs or --data");
        let output = drive.scratch.zonelab(&[&["nvme"], words].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--descs or --data"), "{said}");
    }
}

#[test]
fn a_namespace_is_explained_bit_by_bit() {
    let drive = Drive::new("zn540", &[]);
    let text = drive.ok(&["id-ns", "-H"]);
    for line in [
        "  [0:0] : 0x0\tThin Provisioning Not Supported\n",
        "  [4:4] : 0x0\tMetadata Transferred in Separate Contiguous Buffer\n",
        "Data Size: 4096 bytes - Relative Performance: 0x0 Best (in use)\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let fields = |text: &str| text.lines().filter(|line| line.contains(" : ")).count();
    assert!(fields(&text) > fields(&drive.ok(&["id-ns"])));
}

#[test]
fn placement_is_looked_at_and_updated() {
    let set = "namespaces=[{kind=\"conventional\", zones=1024, spare_zones=64, \
               reclaim_unit_handles=4}]";
    let drive = Drive::new("small-zones", &["--set", set]);
    let configs = drive.json(&["fdp", "configs", "--endgrp-id", "1"]);
    assert_eq!(configs["configs"][0]["nruh"], 4);
    assert_eq!(configs["configs"][0]["ruhs"].as_array().unwrap().len(), 4);
    let text = drive.ok(&["fdp", "configs"]);
    assert!(
        text.contains("Number of Reclaim Unit Handles: 4\n"),
        "{text}"
    );
    assert!(text.contains("  [3]: Initially Isolated\n"), "{text}");
    let usage = drive.json(&["fdp", "usage", "-e", "1"]);
    assert_eq!(
        (&usage["nruh"], usage["ruhus"].as_array().unwrap().len()),
        (&4.into(), 4)
    );
    let before = drive.json(&["fdp", "status"]);
    assert_eq!(before["nruhsd"], 4);
    drive.scratch.write("data", &"d".repeat(BLOCK));
    drive.ok(&["write", "--data", "data"]);
    let written = drive.json(&["fdp", "stats"]);
    assert_eq!(written["hbmw"], BLOCK);
    let room = |json: &serde_json::Value, at: usize| json["ruhss"][at]["ruamw"].as_u64().unwrap();
    let after = drive.json(&["fdp", "status"]);
    assert_eq!(room(&after, 0) + 1, room(&before, 0));
    // The handle goes on to another unit, of which nothing is written.
    assert_eq!(
        drive.ok(&["fdp", "update", "--pids", "0,2"]),
        "update: Success\n"
    );
    assert_eq!(room(&drive.json(&["fdp", "status"]), 0), room(&before, 0));
    for words in [&["fdp", "events"][..], &["fdp", "events", "-E"]] {
        let events = drive.json(words);
        let listed = events["events"].as_array().unwrap().len();
        assert_eq!(events["nevents"], listed, "{words:?}");
        drive.ok(words);
    }
    drive.refused(&["fdp", "stats", "-e", "2"], 5, "(0x2)");
    drive.refused(&["fdp", "update", "--pids", "9"], 5, "(0x2)");
    Drive::new("small-zones", &[]).refused(&["fdp", "stats"], 5, "(0x109)");
}
