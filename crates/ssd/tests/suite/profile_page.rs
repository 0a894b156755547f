//! The page of all keys of a profile says what their declarations say.

use zonelab_ssd::profile::keys_page;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profiles.md");
const BEGIN: &str = "<!-- keys, generated from crates/ssd/src/profile/keys: begin -->\n";
const END: &str = "<!-- keys, generated: end -->\n";

/// Fails if the page differs from the declarations; `ZONELAB_BLESS=1` rewrites it.
#[test]
fn the_page_has_every_key() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a begin mark");
    let (_, after) = rest.split_once(END).expect("the page has an end mark");
    let expected = format!("{before}{BEGIN}\n{}{END}{after}", keys_page());
    if std::env::var_os("ZONELAB_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::write(PAGE, expected).unwrap();
    } else {
        assert!(
            page == expected,
            "docs/profiles.md is out of date: run \
             `ZONELAB_BLESS=1 cargo test -p zonelab-ssd --test suite the_page_has_every_key`"
        );
    }
}
