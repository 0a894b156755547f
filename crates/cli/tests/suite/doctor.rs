//! `zonelab doctor` on whichever machine this is.

use serde_json::Value;

use super::scratch::Scratch;

#[test]
fn any_machine_can_be_asked() {
    let scratch = Scratch::new("doctor");
    let output = scratch.zonelab(&["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lines = report["checks"].as_array().unwrap();
    for line in lines {
        let state = line["state"].as_str();
        assert!(matches!(state, Some("ok" | "missing" | "not needed")));
        assert_eq!(line["help"].is_string(), state == Some("missing"), "{line}");
    }
    let ways = report["ways"].as_object().unwrap();
    assert_eq!(ways.len(), 3);
    let is_open = ways.values().any(|way| way == true);
    let has_none = lines.iter().any(|line| line["name"] == "controllers");
    let code = if is_open || has_none { 0 } else { 4 };
    assert_eq!(output.status.code(), Some(code), "{report}");
    let text = scratch.zonelab(&["doctor"]);
    assert_eq!(text.status.code(), Some(code));
}

#[test]
fn unsafe_dma_is_for_drives_on_pcie() {
    let scratch = Scratch::new("unsafe-dma");
    for device in [
        "linux:///dev/ng0n1",
        "tcp://127.0.0.1:1/nqn.2024-01.org.example:a",
    ] {
        let output = scratch.zonelab(&["nvme", "id-ctrl", "--device", device, "--unsafe-dma"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains("--unsafe-dma is for drives on PCIe"),
            "{text}"
        );
    }
}
