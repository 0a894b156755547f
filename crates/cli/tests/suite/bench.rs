//! `zonelab bench store`. What it measures is not judged: machines differ.

use super::scratch::{Scratch, stderr};

#[test]
fn the_store_is_measured_beside_a_plain_file() {
    let scratch = Scratch::new("bench");
    let args = ["--runs", "1", "--operations", "1000", "--directory", "."];
    let bench = |case: &str, more: &[&str]| {
        let output = scratch.zonelab(&[&["bench", case], &args[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = bench("store write 128k qd32", &[]);
    assert!(
        text.contains("store write 128k qd32") && text.contains("of plain"),
        "{text}"
    );
    let result: serde_json::Value = serde_json::from_str(&bench("flush 4k", &["--json"])).unwrap();
    assert!(result["store_is_in_memory"].is_boolean());
    let rows = result["store"].as_array().unwrap();
    let names: Vec<_> = rows
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    let expected = [
        "store flush 4k",
        "store tcp flush 4k x1",
        "store tcp flush 4k x4",
        "store tcp flush 4k x16",
    ];
    assert_eq!(names, expected);
    for (row, hosts) in rows.iter().zip([1.0, 1.0, 4.0, 16.0]) {
        let number = |of: &str, key: &str| row[of][key].as_f64().unwrap();
        for of in ["store", "without_checksums"] {
            assert!(number(of, "ops_per_s") > 0.0 && number(of, "syncs_per_op") > 0.0);
        }
        let plain = number("plain_file", "syncs_per_op") * hosts;
        assert!((plain - 1.0).abs() < 0.01, "{row}");
        assert!(row["of_plain_file"].as_f64().unwrap() > 0.0);
    }
    // Without others, a Flush is the file and then the number that it covers.
    assert_eq!(rows[0]["store"]["syncs_per_op"], 2.0);
    // What it made is gone.
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 0);
}

#[test]
fn a_directory_that_cannot_be_written_to_is_named() {
    let scratch = Scratch::new("bench-refused");
    scratch.write("file", "not a directory");
    for directory in ["not-there", "file"] {
        let args = ["bench", "store", "--directory", directory];
        let output = scratch.zonelab(&args);
        assert_eq!(output.status.code(), Some(4));
        let said = stderr(&output);
        let start = format!("zonelab: --directory {directory}: nothing can be made there");
        assert!(said.starts_with(&start), "{said}");
    }
    let output = scratch.zonelab(&["bench", "no such case"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("store tcp flush 4k x16"));
}
