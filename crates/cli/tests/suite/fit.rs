//! `zonelab fit`: a profile that can be read, the same bytes again, and what is refused.

use std::process::Output;

use serde_json::Value;

use super::scratch::{Scratch, stderr};

/// A drive of few zones that answers quickly.
const SMALL: &str = r#"
schema = 1
name = "small"
[geometry]
channels = 4
pages_per_block = 128
page_size = "16KiB"
[zones]
count = 16
size = "8MiB"
max_open = 8
max_active = 8
[media]
read = "60us"
program = "300us"
erase = "2ms"
transfer = "20us"
[finish]
design = "metadata"
"#;

impl Scratch {
    fn run_fit(&self, args: &[&str]) -> Output {
        self.zonelab(&[&["fit", "--quiet", "--repeats=1"][..], args].concat())
    }
}

/// Few probes leave much open, and that is said; the profile can be read all the same. What
/// was measured is not measured again, and comes to the same.
#[test]
fn a_profile_comes_out_and_the_same_again() {
    let scratch = Scratch::new("fit-few");
    scratch.write("small.toml", SMALL);
    let args = [
        "--device=small.toml",
        "--max-probes=3",
        "--out=out",
        "--json",
    ];
    let first = scratch.run_fit(&args);
    assert!(first.status.success(), "{}", stderr(&first));
    super::schemas::valid("fit", &first.stdout);
    let found: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(found["probes"].as_array().unwrap().len(), 3);
    assert_eq!(found["stopped"], "most-probes");
    for number in found["parameters"].as_array().unwrap() {
        let value = number["value"].as_u64().unwrap();
        let [low, high] = [0, 1].map(|end| number["interval"][end].as_u64().unwrap());
        assert!(low <= value && value <= high, "{number}");
    }
    let open: Vec<&str> = found["not_identified"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    // Three kinds of reads say nothing of erasures: neither how long one takes nor when.
    assert!(
        open.iter().any(|line| line.starts_with("media.erase")),
        "{open:?}"
    );
    let reset = open.iter().find(|line| line.starts_with("reset: "));
    let reset = reset.unwrap_or_else(|| panic!("{open:?}"));
    for way in [
        "in the background",
        "erases the zone",
        "erases what was written",
        "leaves it to the next write",
    ] {
        assert!(reset.contains(way), "{reset}");
    }
    let check = scratch.zonelab(&["check", "out/profile.toml"]);
    assert!(check.status.success(), "{}", stderr(&check));
    let again = scratch.run_fit(&args);
    assert_eq!(first.stdout, again.stdout);
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let scratch = Scratch::new("fit-refused");
    scratch.write("small.toml", SMALL);
    let few = SMALL.replace("count = 16", "count = 8");
    scratch.write("few.toml", &few);
    for (device, code, says) in [
        ("small.toml?via=ftl", 2, "leave out via="),
        ("few.toml", 3, "needs 16 at least"),
        ("no-such-drive", 3, "no-such-drive"),
    ] {
        let output = scratch.run_fit(&["--device", device]);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{device}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(says),
            "{device}: {}",
            stderr(&output)
        );
    }
}
