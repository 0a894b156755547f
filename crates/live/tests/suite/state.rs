//! `/api/state`, `/healthz` and `/`.

use serde_json::{Value, json};
use zonelab_nvme::zns::ZoneSendAction;

use super::drive::{CAPACITY, Served, ZONE, ask, small};

fn state(served: &Served) -> Value {
    serde_json::from_str(&served.get("/api/state")).expect("JSON")
}

#[test]
fn zones_are_runs() {
    let mut served = Served::start(&small());
    served.write(2 * ZONE, 8);
    served.write(3 * ZONE, CAPACITY);
    served.send(5 * ZONE, ZoneSendAction::OPEN);
    let now = loop {
        let now = state(&served);
        if now["namespaces"][0]["operations"]["zone_open"]["commands"] == 1 {
            break now;
        }
    };
    assert_eq!(now["schema"], 1);
    let zones = &now["zones"];
    assert_eq!(zones["states"], "E2I1F1E1X1");
    assert_eq!(zones["written_lbas"], json!([0, 2, 8, 1, 128, 1, 0, 2]));
    assert_eq!(zones["erases"], json!([0, 6]));
    assert_eq!(
        (&zones["count"], &zones["capacity_lbas"]),
        (&json!(6), &json!(128))
    );
    assert_eq!(now["namespaces"][0]["max_active"], 4);
    let bins = now["latencies"]["write"].as_array().expect("bins");
    let many: u64 = bins
        .iter()
        .skip(1)
        .step_by(2)
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(many, 2);
    assert!(now["lateness"]["1"].is_array());
    let dies = now["dies"]["busy_ns"].as_array().expect("dies");
    assert_eq!(dies.len() as u32, small().geometry.luns());
}

#[test]
fn wear_follows_resets() {
    let mut served = Served::start(&small());
    served.write(ZONE, CAPACITY);
    served.send(ZONE, ZoneSendAction::RESET);
    // Erasures may go on behind the reset.
    let worn = loop {
        let now = state(&served);
        if now["wear"]["max"].as_u64() > Some(0) || now["totals"]["resets"] == 1 {
            break now;
        }
    };
    assert_eq!(worn["zones"]["states"], "E6");
    let erased = worn["totals"]["erased_blocks"].as_u64().expect("a count");
    let wear = &worn["wear"];
    let sum = wear["mean"].as_f64().expect("a mean") * wear["blocks"].as_f64().expect("a count");
    assert!((sum - erased as f64).abs() < 0.5, "{wear} and {erased}");
}

#[test]
fn when_the_drive_has_ended_that_is_said() {
    let mut served = Served::start(&small());
    assert_eq!(served.get("/healthz"), "ok\n");
    served.stop();
    let address = served.web.as_ref().expect("it listens").address();
    loop {
        // A snapshot may still be fresh.
        let answer = ask(address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if answer.starts_with("HTTP/1.1 503 ") {
            break;
        }
    }
    drop(served.web.take());
    assert!(
        std::net::TcpStream::connect(address).is_err(),
        "nobody listens"
    );
}

#[test]
fn the_page_may_run_its_own_script_and_nothing_else() {
    let served = Served::start(&small());
    let address = served.web.as_ref().expect("it listens").address();
    let answer = ask(address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let policy = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Security-Policy: "));
    let policy = policy.expect("a policy");
    assert!(
        policy.starts_with("default-src 'none'; connect-src 'self';"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    for place in ["src=", "http://", "https://", "@import", "url("] {
        let found = body.replace("http://www.w3.org/2000/svg", "");
        assert!(!found.contains(place), "{place} would fetch something");
    }
    assert_eq!(body.matches("<script").count(), 1);
    assert!(
        !body.contains('@') || !body.contains("@SCRIPT@"),
        "every place is filled"
    );
}
