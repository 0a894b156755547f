//! `docs/protocol.md` shows the table of the code, and the table names tests
//! that exist.

use std::path::Path;

use zonelab_target::controller::coverage::{ROWS, markdown};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol.md");
const BEGIN: &str = "<!-- generated from crates/target/src/controller/coverage.rs: begin -->\n";
const END: &str = "<!-- generated: end -->\n";

/// Fails if the page differs from the table; `ZONELAB_BLESS=1` rewrites it.
#[test]
fn the_page_shows_the_table() {
    let path = Path::new(PAGE);
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a begin mark");
    let (_, after) = rest.split_once(END).expect("the page has an end mark");
    let expected = format!("{before}{BEGIN}\n{}\n{END}{after}", markdown());
    if std::env::var_os("ZONELAB_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::write(path, expected).unwrap();
    } else {
        assert!(
            page == expected,
            "docs/protocol.md is out of date: run this test with ZONELAB_BLESS=1"
        );
    }
}

#[test]
fn every_test_that_is_named_exists() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controller");
    for row in ROWS {
        let (module, function) = row.test.split_once("::").unwrap();
        let source = std::fs::read_to_string(tests.join(format!("{module}.rs"))).unwrap();
        assert!(source.contains(&format!("fn {function}(")), "{}", row.test);
    }
}
