//! Traces of every form that a script wrote, which knows what is in them.

use std::process::Command;

use serde_json::Value;

use super::{here, text, zonelab};

#[test]
fn traces_of_every_form_do_what_their_script_says() {
    let scratch = std::env::temp_dir().join(format!("zonelab-traces-{}", std::process::id()));
    let fdp = here().join("../../../../docs/examples/fdp.toml");
    for seed in ["1", "2", "3"] {
        std::fs::create_dir_all(&scratch).unwrap();
        let mut script = Command::new("python3");
        let output = script.arg(here().join("traces.py")).arg(&scratch).arg(seed);
        let output = output.output().expect("this tier needs Python 3");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let says = text(&output.stdout);
        let expected: Vec<u64> = says
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect();
        let mut forms = 0;
        for file in std::fs::read_dir(&scratch).unwrap() {
            let file = file.unwrap().path();
            let trace = format!("--read_iolog={}", file.display());
            let how = ["--replay_no_stall=1", "--output-format=json", "--device"];
            let drive = fdp.display().to_string();
            let words = [&["fio", "--name=r", &trace], &how[..], &[&drive]].concat();
            let output = zonelab(&words);
            assert!(output.status.success(), "{trace}: {}", text(&output.stderr));
            let json: Value = serde_json::from_slice(&output.stdout).unwrap();
            let of = |direction: &str, key: &str| json["jobs"][0][direction][key].as_u64().unwrap();
            let did = ["read", "write"].map(|at| [of(at, "total_ios"), of(at, "io_bytes")]);
            assert_eq!(did.concat(), expected, "seed {seed}, {trace}");
            forms += 1;
        }
        assert_eq!(forms, 10);
        std::fs::remove_dir_all(&scratch).unwrap();
    }
}
