//! `zonelab serve` within the limits of its process.

use std::io::Read as _;
use std::process::{Command, Stdio};

use super::scratch::{Scratch, stderr};
use super::store::Served;

/// A server that may have no more than `ulimit` says.
fn limited(scratch: &Scratch, ulimit: &str, more: &[&str]) -> Command {
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/live.toml");
    let fixed = ["serve", profile, "--listen", "127.0.0.1:0", "--json"];
    let server = scratch.command(&[&fixed, more].concat());
    let mut command = Command::new("sh");
    let line = format!("ulimit {ulimit}; exec \"$0\" \"$@\"");
    command.args(["-c", &line]).current_dir(&scratch.0);
    command.arg(server.get_program()).args(server.get_args());
    command.stderr(Stdio::piped());
    command
}

/// What it said until it was interrupted, which it takes.
fn interrupted(mut served: Served) -> String {
    let pid = served.process.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let mut said = String::new();
    let mut errors = served.process.stderr.take().unwrap();
    errors.read_to_string(&mut said).unwrap();
    let ended = served.process.wait().unwrap();
    assert!(ended.success(), "{ended}: {said}");
    said
}

#[test]
fn a_log_that_may_not_grow_ends_no_server() {
    let scratch = Scratch::new("serve-ulimits-files");
    let more = ["--no-timing", "--ftl", "--ftl-log", "log"];
    let served = Served::start(limited(&scratch, "-f 64", &more));
    let url = served.url();
    std::fs::write(scratch.0.join("data"), vec![7; 1 << 17]).unwrap();
    for _ in 0..4 {
        let blocks = ["--start-block=0", "--block-count=31", "--data-size=131072"];
        let write = ["nvme", "write", "--device", &url, "--data=data"];
        let output = scratch.zonelab(&[&write[..], &blocks].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let said = interrupted(served);
    assert!(said.contains("File too large"), "{said}");
}

#[test]
fn connections_are_as_many_as_there_can_be_descriptors() {
    let scratch = Scratch::new("serve-ulimits-descriptors");
    let served = Served::start(limited(&scratch, "-n 64", &[]));
    let output = scratch.zonelab(&["nvme", "list", "--device", &served.url()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = interrupted(served);
    assert!(
        said.contains("connections at a time instead of 256"),
        "{said}"
    );
    let output = limited(&scratch, "-n 20", &[]).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("may have 20 descriptors"), "{said}");
}
