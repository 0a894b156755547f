//! `zonelab serve --sandbox`, seen from outside.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::scratch::{Scratch, stderr};

/// How often the log is looked at, fifty times a second.
const LOOKS: u32 = 3000;
const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff";

/// A server that logs to a file, until the end of this value.
struct Served<'a> {
    scratch: &'a Scratch,
    child: Child,
}

impl<'a> Served<'a> {
    fn start(scratch: &'a Scratch, args: &[&str]) -> Self {
        let fixed = "serve small-zones --listen 127.0.0.1:0 --json --log-format json";
        let fixed: Vec<&str> = fixed.split(' ').collect();
        let mut command = scratch.command(&[&fixed[..], args].concat());
        command.stdout(Stdio::piped());
        command.stderr(File::create(scratch.0.join("log")).unwrap());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.contains("listening"), "{}", scratch.read("log"));
        Self { scratch, child }
    }

    /// The next message of the log that is one of these, after `seen` messages.
    #[expect(
        clippy::disallowed_methods,
        reason = "it waits for what another process writes"
    )]
    fn logged(&self, wanted: &[&str], seen: usize) -> (usize, Value) {
        for _ in 0..LOOKS {
            let text = self.scratch.read("log");
            let whole = text.lines().enumerate().skip(seen);
            for (at, line) in whole.filter(|(_, line)| line.ends_with('}')) {
                let line: Value = serde_json::from_str(line).unwrap();
                if wanted.iter().any(|message| line["message"] == **message) {
                    return (at + 1, line);
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!(
            "no {wanted:?} behind line {seen} of\n{}",
            self.scratch.read("log")
        );
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rules(namespace: u32) -> String {
    format!("[[host]]\nnqn = \"{HOST}\"\nnamespaces = [{namespace}]\n")
}

#[test]
fn every_thread_of_a_server_is_in_the_sandbox() {
    let scratch = Scratch::new("sandbox");
    let options = "--store drive --control control --web 127.0.0.1:0 --hosts hosts.toml";
    scratch.write("hosts.toml", &rules(1));
    let served = Served::start(&scratch, &options.split(' ').collect::<Vec<_>>());
    let (_, line) = served.logged(&["sandbox"], 0);
    assert_eq!(line["seccomp"], "full", "{line}");
    let tasks = format!("/proc/{}/task", served.child.id());
    let mut threads = 0;
    for task in std::fs::read_dir(tasks).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        for field in ["NoNewPrivs:\t1", "Seccomp:\t2"] {
            assert!(status.contains(field), "no {field}:\n{status}");
        }
        threads += 1;
    }
    assert!(threads > 2, "only {threads} threads");
    // What the options name is within reach: this socket, and its end.
    let list = scratch.zonelab(&["fault", "--control", "control", "list"]);
    assert_eq!(list.status.code(), Some(0), "{}", stderr(&list));
    let pid = served.child.id().to_string();
    let mut child = served;
    std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status()
        .unwrap();
    assert!(child.child.wait().unwrap().success());
    assert!(!scratch.0.join("control").exists());
}

/// A file of rules that becomes a link to another directory is not read, and one that is
/// replaced is. Without the sandbox both are.
#[test]
fn what_no_option_names_is_out_of_reach() {
    for mode in ["auto", "off"] {
        let (scratch, elsewhere) = (Scratch::new("sandbox"), Scratch::new("elsewhere"));
        let hosts = scratch.write("hosts.toml", &rules(1));
        let served = Served::start(&scratch, &["--hosts", &hosts, "--sandbox", mode]);
        let (seen, line) = served.logged(&["sandbox"], 0);
        // A kernel without Landlock is said to have none.
        let is_closed = line["landlock"] == "full" || line["landlock"] == "partial";
        assert!(
            is_closed || mode == "off" || line["landlock"] == "none",
            "{line}"
        );
        let target = elsewhere.write("other.toml", &rules(1));
        std::os::unix::fs::symlink(&target, scratch.0.join("link")).unwrap();
        std::fs::rename(scratch.0.join("link"), &hosts).unwrap();
        const SAID: [&str; 2] = ["read again", "not taken over: all stays as it was"];
        let (seen, line) = served.logged(&SAID, seen);
        assert_eq!(line["message"] == SAID[1], is_closed, "{line}");
        if is_closed {
            let error = line["error"].as_str().unwrap();
            assert!(error.contains("Permission denied"), "{error}");
        }
        scratch.write("new.toml", &rules(1));
        std::fs::rename(scratch.0.join("new.toml"), &hosts).unwrap();
        let (_, line) = served.logged(&SAID, seen);
        assert_eq!(line["message"], "read again", "{line}");
    }
}
