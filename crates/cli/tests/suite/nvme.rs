//! `zonelab nvme` against a controller that answers by bytes written by hand.

#[expect(dead_code, reason = "the tests of the driver look at more of it")]
#[path = "../../../driver/tests/suite/peer.rs"]
mod peer;
#[path = "../../../driver/tests/suite/wire.rs"]
mod wire;

use super::scratch::{Scratch, stderr};
use peer::Peer;

/// Standard output of a command that succeeds.
fn stdout(scratch: &Scratch, args: &[&str], url: &str) -> String {
    let output = scratch.zonelab(&[&["nvme"], args, &["--device", url]].concat());
    assert_eq!(
        output.status.code(),
        Some(0),
        "{args:?}: {}",
        stderr(&output)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn json(scratch: &Scratch, args: &[&str], url: &str) -> serde_json::Value {
    let text = stdout(scratch, &[args, &["--json"]].concat(), url);
    serde_json::from_str(&text).unwrap()
}

/// Exit code and standard error of a command that fails.
fn refusal(scratch: &Scratch, args: &[&str]) -> (i32, String) {
    let output = scratch.zonelab(&[&["nvme"], args].concat());
    (output.status.code().unwrap(), stderr(&output))
}

#[test]
fn a_drive_is_identified() {
    let (scratch, peer) = (Scratch::new("nvme"), Peer::start());
    let url = peer.url("");
    let text = stdout(&scratch, &["id-ctrl"], &url);
    assert!(text.contains("mn        : HAND WRITTEN\n"), "{text}");
    assert!(text.contains("ioccsz    : 132\n"), "{text}");
    assert_eq!(json(&scratch, &["id-ctrl"], &url)["mdts"], 5);
    let text = stdout(&scratch, &["id-ns"], &url);
    assert!(
        text.contains("lbaf  0 : ms:0   lbads:9  rp:0x0 (in use)"),
        "{text}"
    );
    let zns = json(&scratch, &["zns", "id-ns"], &url);
    assert_eq!(
        (&zns["mar"], &zns["lbafe"][0]["zsze"]),
        (&2.into(), &16.into())
    );
    let list = json(&scratch, &["list"], &url);
    assert_eq!(list["Devices"][0]["CommandSet"], "zns");
    assert_eq!(list["Devices"][0]["PhysicalSize"], 32_768);
}

#[test]
fn data_is_written_appended_and_read() {
    let (scratch, peer) = (Scratch::new("nvme"), Peer::start());
    let url = peer.url("?hdgst=1&ddgst=1");
    let text = format!("{:\0<512}", "zones of a drive");
    let file = scratch.write("in", &text);
    let text = stdout(
        &scratch,
        &["write", "--data", &file, "--start-block", "0x2"],
        &url,
    );
    assert_eq!(text, "write: success, 1 blocks at 0x2\n");
    let text = stdout(&scratch, &["read", "-s", "2"], &url);
    assert!(text.contains("\"zones of a drive\""), "{text}");
    let append = ["zns", "zone-append", "--zone", "1", "--data", &file];
    let text = stdout(&scratch, &append, &url);
    assert_eq!(text, "Success appended data to LBA 0x10\n");
    stdout(&scratch, &["read", "-s", "16", "--data", "out"], &url);
    assert!(scratch.read("out").starts_with("zones of a drive\0"));
    assert_eq!(stdout(&scratch, &["flush"], &url), "NVMe Flush: success\n");
}

#[test]
fn failures_are_named_and_have_their_exit_codes() {
    let (scratch, peer) = (Scratch::new("nvme"), Peer::start());
    let url = peer.url("");
    let (code, message) = refusal(&scratch, &["read", "-s", "64", "--device", &url]);
    assert_eq!(code, 5);
    assert!(
        message.contains("LBA Out of Range (0x80), do not retry"),
        "{message}"
    );
    let reset = ["zns", "reset-zone", "--all", "--device", &url];
    let (code, message) = refusal(&scratch, &reset);
    assert_eq!(code, 5);
    assert!(
        message.contains("Invalid Command Opcode (0x1)"),
        "{message}"
    );
    let (code, message) = refusal(&scratch, &["id-ns", "-n", "2", "--device", &url]);
    assert_eq!(
        (code, message.contains("there is no namespace 2")),
        (2, true),
        "{message}"
    );
    let (code, message) = refusal(&scratch, &["zns", "open-zone", "--device", &url]);
    assert_eq!((code, message.contains("--all")), (2, true), "{message}");
    let (code, message) = refusal(&scratch, &["list", "--device", "zn540"]);
    assert_eq!((code, message.contains("tcp://")), (2, true), "{message}");
    assert_eq!(refusal(&scratch, &["list"]).0, 2);
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let nobody = format!("tcp://127.0.0.1:{port}/nqn.a");
    let (code, message) = refusal(&scratch, &["list", "--device", &nobody]);
    assert_eq!(
        (code, message.contains("no connection to 127.0.0.1")),
        (4, true),
        "{message}"
    );
}
