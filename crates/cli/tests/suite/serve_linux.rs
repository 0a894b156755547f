//! What `serve` says of drives of which Linux makes no block device.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use super::scratch::Scratch;

/// What a server says on standard error until it listens, and its line of JSON.
fn said(words: &[&str]) -> (String, serde_json::Value) {
    let scratch = Scratch::new("serve-linux");
    let fixed = ["serve", "small-zones", "--listen", "127.0.0.1:0", "--json"];
    let mut command = scratch.command(&[&fixed, words].concat());
    let pipes = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = pipes.spawn().unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    let mut text = String::new();
    process
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    (text, serde_json::from_str(&line).unwrap())
}

#[test]
fn a_drive_that_linux_refuses_is_named_when_it_starts() {
    let size = ["--set", "zones.size=48MiB", "--set", "zones.capacity=32MiB"];
    let (text, json) = said(&size);
    let why = "zones of 48MiB are no power of two";
    assert!(
        text.contains("Linux makes no block device") && text.contains(why),
        "{text}"
    );
    assert_eq!(json["refused_by_linux"], why);
    let conventional = "namespaces=[{kind=\"conventional\", zones=1024, spare_zones=64}]";
    for more in [&["--ftl"][..], &["--set", conventional]] {
        // Hosts see no zones.
        let (text, json) = said(&[&size[..], more].concat());
        assert!(!text.contains("Linux makes"), "{text}");
        assert!(json["refused_by_linux"].is_null(), "{json}");
    }
    let (text, json) = said(&[]);
    assert!(!text.contains("Linux makes"), "{text}");
    assert!(json["refused_by_linux"].is_null(), "{json}");
}
