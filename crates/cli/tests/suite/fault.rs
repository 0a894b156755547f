//! `zonelab serve`, and `zonelab fault` beside it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

use super::scratch::{Scratch, stderr};

/// A drive that is served, and ends with this value at the latest.
struct Served {
    process: Child,
    output: BufReader<ChildStdout>,
    announced: Value,
}

impl Served {
    fn start(scratch: &Scratch, args: &[&str]) -> Self {
        let fixed = [
            "serve",
            "small-zones",
            "--listen",
            "127.0.0.1:0",
            "--json",
            "--no-timing",
        ];
        let mut process = scratch
            .command(&[&fixed, args].concat())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        Self {
            process,
            output,
            announced: serde_json::from_str(&line).unwrap(),
        }
    }

    /// Where `zonelab nvme` finds it.
    fn url(&self) -> String {
        let (port, nqn) = (&self.announced["port"], &self.announced["nqn"]);
        format!("tcp://127.0.0.1:{port}/{}", nqn.as_str().unwrap())
    }

    /// Interrupts it; its exit code, and what it prints at the end.
    fn end(mut self) -> (i32, String) {
        let pid = self.process.id().to_string();
        Command::new("kill").args(["-INT", &pid]).status().unwrap();
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        (self.process.wait().unwrap().code().unwrap(), text)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A drive with a control socket.
struct Controlled {
    scratch: Scratch,
    served: Served,
    socket: PathBuf,
}

impl Controlled {
    fn start(name: &str) -> Self {
        Self::start_with(name, &[])
    }

    fn start_with(name: &str, options: &[&str]) -> Self {
        let scratch = Scratch::new(name);
        let options = [&["--control", "socket"], options].concat();
        let served = Served::start(&scratch, &options);
        let socket = scratch.0.join("socket");
        Self {
            scratch,
            served,
            socket,
        }
    }

    fn try_fault(&self, args: &[&str]) -> Output {
        let args = [&["fault", "--control", "socket"], args].concat();
        self.scratch.zonelab(&args)
    }

    /// What a command that succeeds prints.
    fn fault(&self, args: &[&str]) -> String {
        let output = self.try_fault(args);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args:?}: {}",
            stderr(&output)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Exit code and message of one that fails.
    fn refused(&self, args: &[&str]) -> (i32, String) {
        let output = self.try_fault(args);
        (output.status.code().unwrap(), stderr(&output))
    }

    fn nvme(&self, args: &[&str]) -> Output {
        let url = self.served.url();
        self.scratch
            .zonelab(&[&["nvme", "--device", &url], args].concat())
    }

    fn client(&self) -> UnixStream {
        UnixStream::connect(&self.socket).unwrap()
    }
}

/// Sends a line as it is, and gives the answer.
fn raw(mut stream: &UnixStream, line: &str) -> Value {
    stream.write_all(line.as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn it_announces_itself_and_ends_with_a_report() {
    let scratch = Scratch::new("serve");
    let served = Served::start(&scratch, &[]);
    assert_eq!(served.announced["event"], "listening");
    assert_eq!(
        served.announced["nqn"],
        "nqn.2024-01.io.github.zonelab:small-zones"
    );
    let list = scratch.zonelab(&["nvme", "--device", &served.url(), "list"]);
    assert_eq!(list.status.code(), Some(0), "{}", stderr(&list));
    let (code, text) = served.end();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (code, &report["event"], &report["broken"]),
        (0, &"ended".into(), &0.into())
    );
    // One for the admin queue, one for the zone report.
    assert_eq!(report["connections"], 2);
    let queues = report["queues"].as_array().unwrap();
    let numbers: Vec<&Value> = queues.iter().map(|queue| &queue["queue"]).collect();
    assert_eq!(numbers, [&Value::from(0), &Value::from(1)]);
}

#[test]
fn responses_later_than_the_bound_end_it_with_exit_code_1() {
    let scratch = Scratch::new("serve");
    // No response takes less than a nanosecond, and none an hour.
    for (bound, expected) in [("1ns", 1), ("1h", 0)] {
        let served = Served::start(&scratch, &["--max-lateness", bound]);
        let list = scratch.zonelab(&["nvme", "--device", &served.url(), "list"]);
        assert_eq!(list.status.code(), Some(0), "{}", stderr(&list));
        let (code, text) = served.end();
        let report: Value = serde_json::from_str(&text).unwrap();
        let mut queues = report["queues"].as_array().unwrap().iter();
        let is_late = queues.any(|queue| queue["is_too_late"] == true);
        assert_eq!((code, is_late), (expected, expected == 1), "{text}");
    }
}

#[test]
fn an_address_for_everybody_without_keys_is_warned_of() {
    let scratch = Scratch::new("serve");
    for (listen, warned) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let args = ["serve", "small-zones", "--json", "--listen", listen];
        let mut command = scratch.command(&args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        process.kill().unwrap();
        let said = stderr(&process.wait_with_output().unwrap());
        assert_eq!(said.contains("--host-key"), warned, "{listen}: {said}");
    }
}

#[test]
fn options_that_are_not_possible_are_refused() {
    let scratch = Scratch::new("serve");
    let plan = "[[fault]]\non = \"read\"\nzones = 100000000\neffect = \"media-error\"\n";
    let beyond = scratch.write("beyond.toml", plan);
    let wrong = scratch.write(
        "wrong.toml",
        "[[fault]]\non = \"reed\"\neffect = \"fail\"\n",
    );
    for (args, code, part) in [
        (&["serve", "nowhere"][..], 3, "nowhere"),
        (
            &["serve", "zn540", "--spin", "50"],
            2,
            "--spin: \"50\" has no unit",
        ),
        (
            &["serve", "zn540", "--in-capsule", "5B"],
            2,
            "multiples of 16 bytes",
        ),
        (&["serve", "zn540", "--listen", "nowhere"], 2, "--listen"),
        (&["serve", "zn540", "--queue-depth", "1"], 2, "2..=4096"),
        (
            &["serve", "zn540", "--nqn", "zn540"],
            2,
            "no NVMe qualified name",
        ),
        (
            &["serve", "zn540", "--faults", &beyond],
            3,
            "are not all on the drive",
        ),
        (
            &["serve", "zn540", "--faults", &wrong],
            3,
            "did you mean \"read\"",
        ),
        (&["serve", "zn540", "--faults", "none.toml"], 3, "none.toml"),
        (
            &[
                "serve",
                "zn540",
                "--listen",
                "127.0.0.1:0",
                "--control",
                "no/such/place",
            ],
            4,
            "--control no/such/place",
        ),
    ] {
        let output = scratch.zonelab(args);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
        assert!(message.contains(part), "{args:?}: {message}");
    }
}

#[test]
fn a_plan_strikes_from_the_start() {
    let scratch = Scratch::new("serve");
    let plan =
        "[[fault]]\non = \"write\"\ncount = 1\neffect = \"fail\"\nstatus = \"write-fault\"\n";
    let plan = scratch.write("plan.toml", plan);
    let served = Served::start(&scratch, &["--faults", &plan]);
    let data = scratch.write("data", &"x".repeat(4096));
    let url = served.url();
    let write = [
        "nvme", "--device", &url, "write", "-s", "0", "--data", &data,
    ];
    let first = scratch.zonelab(&write);
    assert_eq!(first.status.code(), Some(5));
    assert!(
        stderr(&first).contains("Write Fault (0x280)"),
        "{}",
        stderr(&first)
    );
    assert_eq!(scratch.zonelab(&write).status.code(), Some(0));
}

#[test]
fn faults_are_added_listed_and_taken_away() {
    let it = Controlled::start("fault");
    assert_eq!(it.fault(&["list"]), "there are no faults\n");
    let data = it.scratch.write("data", &"x".repeat(4096));
    assert!(
        it.nvme(&["write", "-s", "0", "--data", &data])
            .status
            .success()
    );
    let weak = [
        "add",
        "--on",
        "read",
        "--lbas",
        "0..=3",
        "--effect",
        "media-error",
    ];
    assert_eq!(it.fault(&weak), "loaded: 1\n");
    let plan = "[[fault]]\non = \"flush\"\neffect = \"fail\"\n\n[[fault]]\non = \"any\"\nskip = 1000\neffect = \"delay\"\ndelay = \"1ms\"\n";
    let plan = it.scratch.write("plan.toml", plan);
    assert_eq!(it.fault(&["add", "--file", &plan]), "loaded: 2, 3\n");
    let read = it.nvme(&["read", "-s", "0"]);
    assert_eq!(read.status.code(), Some(5));
    assert!(
        stderr(&read).contains("Unrecovered Read Error"),
        "{}",
        stderr(&read)
    );
    let table = it.fault(&["list"]);
    let rows: Vec<&str> = table.lines().map(str::trim).collect();
    assert_eq!(rows.len(), 4, "{table}");
    assert_eq!(
        rows[1].split_whitespace().collect::<Vec<_>>(),
        ["1", "1", "1", "on=read", "lbas=0..=3", "effect=media-error"]
    );
    let list: Value = serde_json::from_str(&it.fault(&["list", "--json"])).unwrap();
    assert_eq!((&list["schema"], &list["struck"]), (&1.into(), &1.into()));
    assert_eq!(list["faults"][2]["fault"]["skip"], 1000);
    assert_eq!(it.fault(&["remove", "1"]), "removed: 1\n");
    assert!(it.nvme(&["read", "-s", "0"]).status.success());
    let (code, message) = it.refused(&["remove", "1"]);
    assert_eq!(code, 5);
    assert!(
        message.contains("there is no fault 1: there are 2, 3"),
        "{message}"
    );
    assert_eq!(it.fault(&["clear"]), "removed: 2\n");
    assert_eq!(it.served.end().0, 0);
    assert!(!it.socket.exists());
}

#[test]
fn zones_fail_and_the_drive_says_so() {
    let it = Controlled::start("fault");
    assert_eq!(
        it.fault(&["zone", "2", "4..=5", "--state", "offline"]),
        "zones failed: 3\n"
    );
    let smart = it.nvme(&["smart-log", "--json"]);
    let smart: Value = serde_json::from_slice(&smart.stdout).unwrap();
    assert_eq!(smart["critical_warning"], 4);
    let (code, message) = it.refused(&["zone", "1..=2", "--state", "read-only"]);
    assert_eq!(code, 5);
    assert!(
        message.contains("zone 2 cannot go from OFFLINE"),
        "{message}"
    );
    let (_, message) = it.refused(&["zone", "99999", "--state", "offline"]);
    assert!(
        message.contains("there is no zone 99999 in namespace 1"),
        "{message}"
    );
    let (_, message) = it.refused(&["zone", "0", "--namespace", "2", "--state", "offline"]);
    assert!(
        message.contains("there is no namespace 2; there is 1"),
        "{message}"
    );
}

#[test]
fn zones_of_a_drive_with_several_namespaces_fail_where_one_is_named() {
    let beside = "namespaces=[{zones=1016}, {kind=\"conventional\", zones=8, spare_zones=4}]";
    let it = Controlled::start_with("fault", &["--set", beside]);
    let fail = ["zone", "2", "--state", "read-only"];
    let (code, message) = it.refused(&fail);
    let words = "there are 2 namespaces, and none is named (1, 2): --namespace names one of them";
    assert!(code == 5 && message.contains(words), "{code}: {message}");
    // Zones of the log of a conventional one fail, too.
    for nsid in ["1", "2"] {
        let failed = it.fault(&[&fail[..], &["--namespace", nsid]].concat());
        assert_eq!(failed, "zones failed: 1\n", "{nsid}");
    }
}

#[test]
fn power_is_lost_and_comes_back() {
    let it = Controlled::start("fault");
    assert!(it.nvme(&["id-ctrl"]).status.success());
    let (_, message) = it.refused(&["power-cut", "--off", "25h"]);
    assert!(message.contains("a day"), "{message}");
    let text = it.fault(&["power-cut", "--off", "1h"]);
    assert!(text.ends_with("off for 3600s\n"), "{text}");
    let off = it.nvme(&["id-ctrl"]);
    assert!(!off.status.success(), "nobody is there");

    let other = Controlled::start("fault");
    other.fault(&["power-cut"]);
    let smart = other.nvme(&["smart-log", "--json"]);
    let smart: Value = serde_json::from_slice(&smart.stdout).unwrap();
    assert_eq!(
        (&smart["power_cycles"], &smart["unsafe_shutdowns"]),
        (&2.into(), &0.into())
    );
    assert_eq!(other.fault(&["reset-controller"]), "controllers reset: 0\n");
    let (code, message) = other.refused(&["reset-controller", "--controller", "1"]);
    assert_eq!(
        (code, message.contains("no host is connected")),
        (5, true),
        "{message}"
    );
}

#[test]
fn what_makes_no_sense_is_refused_before_it_is_sent() {
    let it = Controlled::start("fault");
    for (args, code, part) in [
        (&["add"][..], 2, "--on"),
        (
            &["add", "--on", "reed", "--effect", "fail"],
            2,
            "--on: \"reed\"",
        ),
        (
            &["add", "--on", "read", "--effect", "offline"],
            2,
            "--effect: does not go with",
        ),
        (
            &["add", "--on", "read", "--effect", "delay"],
            2,
            "--delay: missing",
        ),
        (
            &["add", "--on", "read", "--effect", "fail", "--lbas", "5-6"],
            2,
            "--lbas: \"5-6\" is not a range",
        ),
        (&["add", "--on", "a\"\nb", "--effect", "fail"], 2, "--on"),
        (&["add", "--file", "none.toml"], 3, "none.toml"),
        (
            &["add", "--file", "f", "--on", "read"],
            2,
            "cannot be used with",
        ),
        (
            &[
                "add",
                "--on",
                "read",
                "--effect",
                "media-error",
                "--zones",
                "99999",
            ],
            5,
            "are not all on the drive",
        ),
        (&["zone", "--state", "offline"], 2, "ZONE"),
        (
            &["zone", "9..=7", "--state", "offline"],
            2,
            "lower end first",
        ),
        (&["zone", "1", "--state", "full"], 2, "read-only"),
        (&["power-cut", "--off", "5"], 2, "--off: \"5\" has no unit"),
    ] {
        let (found, message) = it.refused(args);
        assert_eq!(found, code, "{args:?}: {message}");
        assert!(message.contains(part), "{args:?}: {message}");
    }
    let output = it.scratch.zonelab(&["fault", "list"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--control"));
    let output = it.scratch.zonelab(&["fault", "--control", "none", "list"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("nobody serves at none"));
}

#[test]
fn the_socket_is_mine_alone_and_takes_no_others_place() {
    let it = Controlled::start("fault");
    let mode = std::fs::metadata(&it.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = |path: &str| {
        let args = [
            "serve",
            "zn540",
            "--listen",
            "127.0.0.1:0",
            "--control",
            path,
        ];
        let output = it.scratch.zonelab(&args);
        (output.status.code(), stderr(&output))
    };
    let (code, message) = again("socket");
    assert_eq!(code, Some(4));
    assert!(
        message.contains("another server has this socket"),
        "{message}"
    );
    assert_eq!(it.fault(&["list"]), "there are no faults\n");
    it.scratch.write("file", "not to be removed");
    let (code, message) = again("file");
    assert_eq!(code, Some(4));
    assert!(
        message.contains("something else than a socket"),
        "{message}"
    );
    assert_eq!(it.scratch.read("file"), "not to be removed");
    // A server that was killed leaves its socket.
    drop(UnixListener::bind(it.scratch.0.join("stale")).unwrap());
    let served = Served::start(&it.scratch, &["--control", "stale"]);
    let list = it.scratch.zonelab(&["fault", "--control", "stale", "list"]);
    assert_eq!(list.status.code(), Some(0), "{}", stderr(&list));
    assert_eq!(served.end().0, 0);
    // Nothing else is left in the directory.
    let mut left: Vec<_> = std::fs::read_dir(&it.scratch.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["file", "socket"]);
}

#[test]
fn a_client_that_is_slow_or_wrong_costs_nobody_else_anything() {
    let it = Controlled::start("fault");
    let wrong = it.client();
    let answer = raw(&wrong, "nonsense\n");
    assert!(answer["error"].as_str().unwrap().contains("JSON object"));
    // The same client may go on.
    let list = "{\"schema\":1,\"request\":\"list-faults\"}\n";
    assert_eq!(raw(&wrong, list)["schema"], 1);
    let long = it.client();
    // It may be cut off before all of it is sent.
    let _ = (&long).write_all(&vec![b' '; 1 << 16]);
    let mut answer = String::new();
    BufReader::new(&long).read_line(&mut answer).unwrap();
    assert!(answer.contains("at most 65536 bytes"), "{answer}");
    // Half a request, and then nothing.
    let slow = it.client();
    (&slow).write_all(b"{\"schema\":").unwrap();
    assert_eq!(it.fault(&["list"]), "there are no faults\n");
    assert!(it.nvme(&["id-ctrl"]).status.success());

    // As many as may be there: the next is told, and the drive goes on.
    let silent: Vec<UnixStream> = (0..8).map(|_| it.client()).collect();
    let (code, message) = it.refused(&["list"]);
    assert_eq!(code, 5, "{message}");
    assert!(message.contains("8 clients are there already"), "{message}");
    assert!(it.nvme(&["id-ctrl"]).status.success());
    drop(silent);
}
