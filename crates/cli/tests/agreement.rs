//! One drive, two clocks: the same jobs on the ZN540 in virtual time and on the
//! ZN540 that is served over NVMe/TCP in real time, times on. The tier
//! `agreement` (`cargo xtask test agreement`) runs it alone: whoever takes the
//! processor meanwhile is measured too.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// Throughput and mean latency may differ by so much.
const TOLERANCE: f64 = 0.03;
/// Known gaps: jobs whose P95 on the served drive is earlier than what the command
/// tolerates, and the furthest that was seen. The command says that they differ. The cause
/// is a host whose times vary: in virtual time `--host-jitter 10us` takes P95 of `write` from
/// 771.6 us to 742.4 us at the same throughput. Closed when the run in virtual time is given
/// the way as it was measured. What is further, or later, fails.
const KNOWN_GAPS: [(&str, f64); 2] = [("write", -0.08), ("writers", -0.08)];
/// So many rounds are measured at most.
const ROUNDS: usize = 3;

fn zonelab(args: &[&str]) -> Command {
    let built = std::env::var("ZONELAB");
    let program = built.unwrap_or_else(|_| env!("CARGO_BIN_EXE_zonelab").to_owned());
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves the drive; the jobs look at no data, so it keeps none.
fn serve() -> (Server, String) {
    let args = [
        "serve",
        "zn540",
        "--listen",
        "127.0.0.1:0",
        "--data",
        "none",
    ];
    let mut command = zonelab(&args);
    command.args(["--json", "--log", "warn"]);
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = process.stdout.take().unwrap();
    let server = Server(process);
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    let (port, nqn) = (&said["port"], said["nqn"].as_str().unwrap());
    (server, format!("tcp://127.0.0.1:{port}/{nqn}"))
}

/// Whether it is a gap that is known, and no further than it was; says so if it is.
fn is_known_gap(metric: &Value, difference: f64) -> bool {
    let job = metric["job"].as_str().unwrap();
    let gap = KNOWN_GAPS.iter().find(|(name, _)| *name == job);
    let is_known = gap.is_some_and(|(_, furthest)| (*furthest..0.0).contains(&difference));
    if is_known {
        println!("known gap: P95 of {job} differs by {difference:+.3}");
    }
    is_known
}

/// One round, on a fresh drive: what is not as tolerated. The median and P95 are judged by the command
/// itself: within what is tolerated and what an empty command takes longer over the
/// network, which is measured and printed.
fn disagreements() -> Vec<String> {
    let (_server, url) = serve();
    let jobs = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agreement.fio");
    let against = [
        "fio",
        jobs,
        "--device",
        "zn540",
        "--json",
        "--against",
        &url,
    ];
    let output = zonelab(&against).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    let result: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{said}"));
    println!("{text}");
    let mut wrong = Vec::new();
    let mut judged = 0;
    for metric in result["metrics"].as_array().unwrap() {
        let difference = metric["difference"]["value"].as_f64().unwrap();
        let is_as_tolerated = match metric["metric"].as_str().unwrap() {
            "throughput" | "mean latency" => difference.abs() <= TOLERANCE,
            "P95" if metric["verdict"] == "differs" => is_known_gap(metric, difference),
            "P50" | "P95" => ["agrees", "undecided"]
                .iter()
                .any(|of| metric["verdict"] == *of),
            // What the operating system adds once in a hundred times is its own.
            _ => continue,
        };
        judged += 1;
        if !is_as_tolerated {
            wrong.push(format!("{metric:#}\n{:#}", result["devices"]));
        }
    }
    // Four jobs; the zones that are finished are too few for percentiles.
    assert_eq!(judged, 3 * 4 + 2, "{text}");
    wrong
}

/// Throughput and mean latency are within 3 %, the median and P95 within what the
/// transport adds. Another program that has the processor for a while makes a round
/// differ, a model that is wrong makes all of them: one round has to be right in
/// everything.
#[test]
fn virtual_time_agrees_with_the_drive_that_is_served() {
    let mut rounds = Vec::new();
    while rounds.len() < ROUNDS {
        let wrong = disagreements();
        if wrong.is_empty() {
            return;
        }
        println!("round {}: {} differ", rounds.len() + 1, wrong.len());
        rounds.push(wrong.join("\n"));
    }
    panic!("no round of {ROUNDS} agrees\n{}", rounds.join("\n\n"));
}
