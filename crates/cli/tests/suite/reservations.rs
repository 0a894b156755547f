//! Reservations of two hosts at a drive that `zonelab serve` serves: conflicts, preemption,
//! and what is left of them after an end of the server, orderly or not.

use serde_json::Value;

use super::scratch::{Scratch, stderr};
use super::store::Served;

const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/live.toml");

/// A host: its name and identifier in an address, its key, its identifier in a report.
#[derive(Clone, Copy)]
struct Host {
    query: &'static str,
    key: &'static str,
    id: &'static str,
}

const A: Host = Host {
    query: "hostnqn=nqn.2024-01.org.example:a&hostid=0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a",
    key: "0xa",
    id: "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a",
};
const B: Host = Host {
    query: "hostnqn=nqn.2024-01.org.example:b&hostid=0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b",
    key: "0xb",
    id: "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
};

/// A drive with a store, and its server.
struct Drive {
    scratch: Scratch,
    served: Served,
    more: Vec<&'static str>,
}

impl Drive {
    fn new(more: &[&'static str]) -> Self {
        let scratch = Scratch::new("reservations");
        scratch.write("data", &"d".repeat(4096));
        let served = serve(&scratch, more);
        let more = more.to_vec();
        Self {
            scratch,
            served,
            more,
        }
    }

    /// Ends the server without a word, and starts another.
    fn kill(&mut self) {
        self.served.process.kill().unwrap();
        self.served.process.wait().unwrap();
        self.served = serve(&self.scratch, &self.more);
    }

    /// Asks the server to end, and starts another.
    fn restart(&mut self) {
        let pid = self.served.process.id().to_string();
        let asked = std::process::Command::new("kill").arg(&pid).status();
        assert!(asked.unwrap().success());
        assert!(self.served.process.wait().unwrap().success());
        self.served = serve(&self.scratch, &self.more);
    }

    fn run(&self, host: Host, words: &[&str]) -> (i32, String, String) {
        let url = format!("{}?{}&nsid=1", self.served.url(), host.query);
        let all = [&["nvme"], words, &["--device", &url]].concat();
        let output = self.scratch.zonelab(&all);
        let said = stderr(&output);
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), text, said)
    }

    fn ok(&self, host: Host, words: &[&str]) -> String {
        let (code, text, said) = self.run(host, words);
        assert_eq!(code, 0, "{words:?}: {said}");
        text
    }

    fn conflict(&self, host: Host, words: &[&str]) {
        let (code, text, said) = self.run(host, words);
        assert_eq!(code, 5, "{words:?}: {text}{said}");
        assert!(said.contains("Reservation Conflict"), "{words:?}: {said}");
    }

    fn register(&self, host: Host, more: &[&str]) {
        let words = ["resv-register", "--nrkey", host.key];
        self.ok(host, &[&words, more].concat());
    }

    fn acquire(&self, host: Host, rtype: &str) {
        self.ok(
            host,
            &["resv-acquire", "--crkey", host.key, "--rtype", rtype],
        );
    }

    fn report(&self, host: Host) -> Value {
        serde_json::from_str(&self.ok(host, &["resv-report", "--json"])).unwrap()
    }

    /// The identifiers of registrants, and whether each holds the reservation.
    fn registrants(&self, host: Host) -> Vec<(String, bool)> {
        let report = self.report(host);
        let all = report["regctlext"].as_array().unwrap();
        let of = |of: &Value| (of["hostid"].as_str().unwrap().to_owned(), of["rcsts"] == 1);
        all.iter().map(of).collect()
    }
}

fn serve(scratch: &Scratch, more: &[&str]) -> Served {
    let listen = ["--listen", "127.0.0.1:0", "--json", "--store", "drive"];
    let words = [&["serve", PROFILE, "--no-timing"], &listen[..], more].concat();
    Served::start(scratch.command(&words))
}

const WRITE: [&str; 5] = ["write", "--start-block", "0", "--data", "data"];
const READ: [&str; 5] = ["read", "--start-block", "0", "--data", "back"];

#[test]
fn two_hosts_reserve_conflict_preempt_and_release() {
    let drive = Drive::new(&["--shared"]);
    assert_eq!(drive.report(A)["regctl"], 0);
    drive.conflict(A, &["resv-acquire", "--crkey", A.key, "--rtype", "1"]);
    drive.register(A, &[]);
    drive.acquire(A, "1");
    drive.ok(A, &WRITE);
    drive.ok(B, &READ);
    for words in [
        &["write", "--start-block", "1", "--data", "data"][..],
        &["zns", "reset-zone", "--zone", "0"],
        &["zns", "zone-append", "--zone", "1", "--data", "data"],
        &["flush"],
        &["resv-acquire", "--crkey", B.key, "--rtype", "1"],
    ] {
        drive.conflict(B, words);
    }
    drive.ok(B, &["zns", "report-zones", "--descs", "1"]);
    drive.register(B, &[]);
    let preempt = ["resv-acquire", "--racqa", "1", "--crkey", B.key];
    let preempt = [&preempt[..], &["--prkey", A.key, "--rtype", "2"]].concat();
    let said = drive.ok(B, &preempt);
    assert_eq!(said, "NVME Reservation Acquire success\n");
    assert_eq!(drive.registrants(A), [(B.id.to_owned(), true)]);
    drive.conflict(A, &READ);
    drive.conflict(A, &["resv-release", "--crkey", A.key, "--rtype", "2"]);
    let text = drive.ok(A, &["resv-report"]);
    assert!(text.starts_with("NVME Reservation status:\n\ngen       : 3\nrtype     : 2\n"));
    assert!(text.contains("regctlext[0] :\n  cntlid  : ffff\n  rcsts   : 1\n  rkey    : b\n"));
    drive.ok(B, &["resv-release", "--crkey", B.key, "--rtype", "2"]);
    drive.ok(A, &["zns", "reset-zone", "--zone", "0"]);
    drive.ok(B, &["resv-release", "--crkey", B.key, "--rrela", "1"]);
    assert_eq!(drive.report(A)["regctl"], 0);
    let (code, _, said) = drive.run(A, &["resv-report", "--numd", "0"]);
    assert_eq!(
        (code, said.contains("1 to 262144 is valid")),
        (2, true),
        "{said}"
    );
}

#[test]
fn what_is_to_outlive_a_loss_of_power_does_and_nothing_else() {
    let mut drive = Drive::new(&[]);
    let id: Value = serde_json::from_str(&drive.ok(A, &["id-ns", "--json"])).unwrap();
    assert_eq!((&id["rescap"], &id["nmic"]), (&255.into(), &0.into()));
    drive.register(A, &["--cptpl", "3"]);
    drive.register(B, &[]);
    drive.acquire(A, "3");
    let both = [(A.id.to_owned(), true), (B.id.to_owned(), false)];
    for is_killed in [true, false] {
        match is_killed {
            true => drive.kill(),
            false => drive.restart(),
        }
        let report = drive.report(B);
        assert_eq!((&report["ptpls"], &report["gen"]), (&1.into(), &2.into()));
        assert_eq!(drive.registrants(B), both, "killed: {is_killed}");
        drive.ok(B, &["resv-register", "--rrega", "1", "--crkey", B.key]);
        drive.conflict(B, &WRITE);
        drive.register(B, &[]);
        let back = ["resv-register", "--rrega", "2", "--iekey", "--nrkey", B.key];
        drive.ok(B, &back);
        // As it was, but for the generation: a clear and all of it once more.
        drive.ok(A, &["resv-release", "--crkey", A.key, "--rrela", "1"]);
        drive.kill();
        assert_eq!(drive.registrants(B), []);
        assert_eq!(drive.report(B)["ptpls"], 1, "the state itself is kept");
        drive.register(A, &[]);
        drive.register(B, &[]);
        drive.acquire(A, "3");
        let generation = drive.report(A)["gen"].as_u64().unwrap();
        drive.kill();
        assert_eq!(drive.registrants(B), both);
        assert_eq!(drive.report(B)["gen"], generation);
        // Without it nothing is left.
        drive.register(A, &["--cptpl", "2"]);
        drive.kill();
        assert_eq!(drive.report(B)["gen"], 0);
        assert_eq!(drive.registrants(B), []);
        drive.register(A, &["--cptpl", "3"]);
        drive.register(B, &[]);
        drive.acquire(A, "3");
    }
}

#[test]
fn the_feature_makes_them_outlive_it_too() {
    let mut drive = Drive::new(&[]);
    drive.register(A, &[]);
    drive.acquire(A, "2");
    let feature = ["--feature-id", "0x83", "--of-namespace"];
    let set = [&["set-feature", "--value", "1"], &feature[..]].concat();
    drive.ok(B, &set);
    drive.kill();
    assert_eq!(drive.registrants(B), [(A.id.to_owned(), true)]);
    drive.conflict(B, &READ);
    let check = drive.scratch.zonelab(&["store", "check", "drive"]);
    assert_eq!(
        check.status.code(),
        Some(4),
        "the server has it: {}",
        stderr(&check)
    );
}

#[test]
fn they_hold_over_the_layer_and_a_drive_without_a_store_keeps_none() {
    let mut drive = Drive::new(&["--ftl"]);
    drive.register(A, &["--cptpl", "3"]);
    drive.acquire(A, "2");
    drive.ok(A, &WRITE);
    drive.conflict(B, &READ);
    drive.kill();
    drive.conflict(B, &READ);
    drive.conflict(B, &WRITE);
    drive.ok(A, &READ);
    let scratch = Scratch::new("reservations-without");
    let listen = ["--listen", "127.0.0.1:0", "--json", "--data", "memory"];
    let words = [&["serve", PROFILE, "--no-timing"], &listen[..]].concat();
    drive.served = Served::start(scratch.command(&words));
    let register = ["resv-register", "--nrkey", A.key, "--cptpl", "3"];
    let (code, _, said) = drive.run(A, &register);
    assert_eq!((code, said.contains("Invalid Field")), (5, true), "{said}");
    drive.register(A, &[]);
    drive.acquire(A, "2");
    drive.conflict(B, &READ);
}

/// Changes a byte in the body of a record of reservations; the slots are 32 and 48 KiB into
/// the store.
fn damage(scratch: &Scratch, slot: u64) {
    use std::os::unix::fs::FileExt as _;
    let options = std::fs::File::options()
        .read(true)
        .write(true)
        .open(scratch.0.join("drive"));
    let (file, at) = (options.unwrap(), (32 << 10) + slot * (16 << 10) + 20);
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

/// What `store` says of the drive as text and as JSON, and the code that it ends with.
fn store(scratch: &Scratch, words: &[&str]) -> (i32, String, Value) {
    let copy = || std::fs::copy(scratch.0.join("drive"), scratch.0.join("copy")).unwrap();
    let words = [&["store"], words, &["copy"]].concat();
    copy();
    let text = scratch.zonelab(&words);
    copy();
    let json = scratch.zonelab(&[&words[..], &["--json"]].concat());
    assert_eq!(text.status.code(), json.status.code());
    let said = String::from_utf8(text.stdout.clone()).unwrap() + &stderr(&text);
    let json = serde_json::from_slice(&json.stdout).unwrap_or_default();
    (text.status.code().unwrap(), said, json)
}

#[test]
fn a_repair_says_what_became_of_reservations() {
    let mut drive = Drive::new(&[]);
    drive.register(A, &["--cptpl", "3"]);
    drive.register(B, &["--cptpl", "3"]);
    let end = |drive: &mut Drive, is_orderly: bool| {
        if is_orderly {
            let pid = drive.served.process.id().to_string();
            let asked = std::process::Command::new("kill").arg(&pid).status();
            assert!(asked.unwrap().success());
        } else {
            drive.served.process.kill().unwrap();
        }
        drive.served.process.wait().unwrap();
    };
    // After a kill: one slot that is not whole is named, and no damage.
    end(&mut drive, false);
    damage(&drive.scratch, 0);
    let (code, said, json) = store(&drive.scratch, &["check"]);
    let slot = "slot 0 of two damaged, or a write that was cut short: record 1 in slot 1 holds";
    assert!(code == 0 && said.contains(slot), "{said}");
    assert!(
        said.contains("It is sound, as far as can be told."),
        "{said}"
    );
    assert_eq!(json["reservations"]["damaged_slots"][0], 0);
    assert_eq!(json["reservations"]["is_lost"], false);
    let (code, said, _) = store(&drive.scratch, &["repair"]);
    assert!(code == 0 && said.contains(slot), "{said}");
    damage(&drive.scratch, 0);
    // In good order: the one before is what there is.
    drive.served = serve(&drive.scratch, &[]);
    end(&mut drive, true);
    damage(&drive.scratch, 0);
    let (code, said, json) = store(&drive.scratch, &["repair"]);
    assert_eq!((code, json), (3, Value::Null), "{said}");
    let would = "a repair falls back on record 1 in slot 1";
    assert!(said.contains(would), "{said}");
    let (code, said, json) = store(&drive.scratch, &["repair", "--force"]);
    let did = "slot 0 of two damaged: they fell back on record 1 in slot 1";
    assert!(code == 0 && said.contains(did), "{said}");
    assert_eq!(json["reservations"]["sequence"], 1);
    assert_eq!(json["reservations"]["is_lost"], true);
    // Both.
    damage(&drive.scratch, 1);
    let (code, said, _) = store(&drive.scratch, &["repair"]);
    assert!(code == 3 && said.contains("a repair leaves none"), "{said}");
    let (code, said, json) = store(&drive.scratch, &["repair", "--force"]);
    let lost = "both slots damaged: all reservations and registrations are lost";
    assert!(code == 0 && said.contains(lost), "{said}");
    assert_eq!(json["reservations"]["slot"], Value::Null);
    super::schemas::valid("store-repair", json.to_string().as_bytes());
}
