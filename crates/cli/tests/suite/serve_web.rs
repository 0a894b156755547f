//! `zonelab serve`: what it announces, shows and logs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use super::scratch::{Scratch, stderr};

/// A drive that is served, and ends with this value.
struct Served(Child, serde_json::Value);

impl Served {
    fn start(scratch: &Scratch, args: &[&str]) -> Self {
        let fixed = ["serve", "small-zones", "--listen", "127.0.0.1:0", "--json"];
        let mut command = scratch.command(&[&fixed, args].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self(child, serde_json::from_str(&line).unwrap())
    }

    /// Ends it, and gives what it logged.
    fn logs(mut self) -> String {
        self.0.kill().unwrap();
        let mut text = String::new();
        self.0
            .stderr
            .as_mut()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        text
    }

    fn url(&self) -> String {
        let (port, nqn) = (&self.1["port"], self.1["nqn"].as_str().unwrap());
        format!("tcp://127.0.0.1:{port}/{nqn}")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_page_is_where_it_says() {
    let scratch = Scratch::new("serve");
    let served = Served::start(&scratch, &["--web", "127.0.0.1:0"]);
    let web = served.1["web"].as_str().unwrap().to_owned();
    let address = web.strip_prefix("http://").unwrap().trim_end_matches('/');
    for (path, word) in [
        ("/", "<!DOCTYPE html>"),
        ("/healthz", "\r\n\r\nok\n"),
        (
            "/metrics",
            "zonelab_drive_info{profile=\"small-zones\",nqn=\"nqn.",
        ),
        ("/api/state", "\"schema\":1"),
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n"),
            "{path}: {answer}"
        );
        assert!(answer.contains(word), "{path}: {answer}");
    }
    let without = Served::start(&scratch, &[]);
    assert!(without.1["web"].is_null());
}

#[test]
fn logs_are_objects_with_fields() {
    let scratch = Scratch::new("serve");
    let served = Served::start(&scratch, &["--log-format", "json"]);
    let listed = scratch.zonelab(&["nvme", "id-ns", "--device", &served.url()]);
    assert!(listed.status.success(), "{}", stderr(&listed));
    let nqn = served.1["nqn"].clone();
    let logs = served.logs();
    let lines = logs
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let connected: Vec<_> = lines
        .filter(|line| line["message"] == "connected")
        .collect();
    assert_eq!(connected[0]["queue"], 0);
    for line in &connected {
        assert_eq!((&line["level"], &line["nqn"]), (&"INFO".into(), &nqn));
        assert!(line["peer"].as_str().unwrap().starts_with("127.0.0.1:"));
        assert!(line["host"].as_str().unwrap().starts_with("nqn."));
    }
    let quiet = Served::start(&scratch, &["--log", "off"]);
    scratch.zonelab(&["nvme", "id-ns", "--device", &quiet.url()]);
    assert_eq!(quiet.logs(), "");
}

#[test]
fn a_web_address_that_is_taken_is_named() {
    let scratch = Scratch::new("serve");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let args = [
        "serve",
        "small-zones",
        "--listen",
        "127.0.0.1:0",
        "--web",
        &address,
    ];
    let output = scratch.zonelab(&args);
    assert_eq!(output.status.code(), Some(4));
    assert!(
        stderr(&output).contains(&format!("--web {address}: ")),
        "{}",
        stderr(&output)
    );
}
