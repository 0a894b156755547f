//! Reading documents: values, and every refusal word for word.

use zonelab_config::{Document, Item, Place, Reported, Table};

/// Reads `text` with `read` and gives the messages, or none.
fn messages<T>(text: &str, read: impl FnOnce(&Table<'_>) -> Result<T, Reported>) -> String {
    let document = match Document::parse("x.toml", text, &[]) {
        Ok(document) => document,
        Err(errors) => return errors.to_string(),
    };
    let value = read(&document.root());
    document
        .finish(value)
        .err()
        .map(|errors| errors.to_string())
        .unwrap_or_default()
}

#[test]
fn values_of_all_kinds() {
    let text = r#"
flag = true
count = 48
large = 18446744073709551615
hex = 0xFF
name = "x"
size = "16KiB"
page_bytes = 4096
time = "3.5ms"
rate = "1KiB/s"
share = "50%"
zones = "0..=9"
first = "0..<10"
one = 7
mode = "b"
sizes = ["4KiB", "8KiB"]
[table]
inner = 1
[[job]]
id = 1
[[job]]
id = 2
"#;
    let document = Document::parse("x.toml", text, &[]).unwrap();
    let root = document.root();
    assert!(root.bool("flag").required().unwrap());
    assert_eq!(root.u32("count").required(), Ok(48));
    assert_eq!(root.u64("large").required(), Ok(u64::MAX));
    assert_eq!(root.u32("hex").required(), Ok(255));
    assert_eq!(root.string("name").required().unwrap(), "x");
    assert_eq!(root.size_bytes("size").required(), Ok(16_384));
    assert_eq!(root.size_bytes("page_bytes").required(), Ok(4_096));
    assert_eq!(root.duration_ns("time").required(), Ok(3_500_000));
    assert_eq!(root.rate_bytes_per_s("rate").required(), Ok(1_024));
    assert_eq!(root.percent_ppm("share").required(), Ok(500_000));
    assert_eq!(root.range("zones").required(), Ok(0..=9));
    assert_eq!(root.range("first").required(), Ok(0..=9));
    assert_eq!(root.range("one").required(), Ok(7..=7));
    assert_eq!(root.choice("mode", &[("a", 1), ("b", 2)]).required(), Ok(2));
    assert_eq!(
        root.list("sizes", Item::size_bytes).required(),
        Ok(vec![4_096, 8_192])
    );
    assert_eq!(root.table("table").u32("inner").required(), Ok(1));
    let jobs = root.tables("job").unwrap();
    let ids: Vec<_> = jobs
        .iter()
        .map(|job| job.u32("id").required().unwrap())
        .collect();
    assert_eq!(ids, [1, 2]);
    assert_eq!(root.u32("absent").optional(), Ok(None));
    assert_eq!(root.u32("absent").or(3), Ok(3));
    assert!(root.tables("absent").unwrap().is_empty());
    assert!(!root.table("absent").is_present());
    assert_eq!(document.finish(Ok(())), Ok(()));
}

#[test]
fn a_missing_key_is_reported_at_its_table() {
    let read = |root: &Table<'_>| root.table("media").duration_ns("program").required();
    assert_eq!(
        messages("\n[media]\n", read),
        "x.toml:2: media.program: missing"
    );
    assert_eq!(messages("", read), "x.toml: media.program: missing");
    let read = |root: &Table<'_>| root.u32("n").required_or("state n or m");
    assert_eq!(messages("", read), "x.toml: n: missing; state n or m");
}

#[test]
fn wrong_types() {
    let number = |root: &Table<'_>| root.u32("k").required();
    for (value, message) in [
        (
            "\"5\"",
            "the string \"5\" does not fit here; write a whole number without unit or quotes",
        ),
        (
            "1.5",
            "the number 1.5 does not fit here; write a whole number without unit or quotes",
        ),
        ("-1", "-1 is negative; write 0 or more"),
        ("4294967296", "4294967296 is too large; at most 4294967295"),
        (
            "99999999999999999999999999999999999999999",
            "the number is too large; at most 4294967295",
        ),
        (
            "true",
            "true does not fit here; write a whole number without unit or quotes",
        ),
        (
            "[1]",
            "an array does not fit here; write a whole number without unit or quotes",
        ),
        (
            "{}",
            "a table does not fit here; write a whole number without unit or quotes",
        ),
        (
            "2024-01-01",
            "the date 2024-01-01 does not fit here; write a whole number without unit or quotes",
        ),
    ] {
        assert_eq!(
            messages(&format!("k = {value}"), number),
            format!("x.toml:1: k: {message}")
        );
    }
    let flag = |root: &Table<'_>| root.bool("k").required();
    let message = "x.toml:1: k: the string \"yes\" does not fit here; write true or false";
    assert_eq!(messages("k = \"yes\"", flag), message);
    let text = |root: &Table<'_>| root.string("k").required();
    let message = "x.toml:1: k: the integer 1 does not fit here; write a string in quotes";
    assert_eq!(messages("k = 1", text), message);
    let list = |root: &Table<'_>| root.list("k", Item::u32).required();
    let message = "x.toml:1: k: the integer 1 does not fit here; write an array: [..., ...]";
    assert_eq!(messages("k = 1", list), message);
}

#[test]
fn quantities_without_unit() {
    let time = |root: &Table<'_>| root.duration_ns("k").required();
    for (value, message) in [
        (
            "\"700\"",
            "\"700\" has no unit; write for example \"700us\" or \"700s\"",
        ),
        (
            "700",
            "700 has no unit; write for example \"700us\" or \"700s\"",
        ),
        (
            "3.5",
            "3.5 has no unit; write for example \"3.5us\" or \"3.5s\"",
        ),
        (
            "true",
            "true does not fit here; write for example \"700us\"",
        ),
    ] {
        assert_eq!(
            messages(&format!("k = {value}"), time),
            format!("x.toml:1: k: {message}")
        );
    }
    let size = |root: &Table<'_>| root.size_bytes("k").required();
    let message = "x.toml:1: k: 4096 has no unit; write for example \"4096B\"";
    assert_eq!(messages("k = 4096", size), message);
}

#[test]
fn choices_and_ranges() {
    let read = |root: &Table<'_>| {
        root.choice("k", &[("fill", 1), ("metadata", 2), ("none", 3)])
            .required()
    };
    assert_eq!(
        messages("k = \"metdata\"", read),
        "x.toml:1: k: \"metdata\" is not a choice; did you mean \"metadata\"? \
         choose \"fill\", \"metadata\" or \"none\""
    );
    assert_eq!(
        messages("k = \"x\"", read),
        "x.toml:1: k: \"x\" is not a choice; choose \"fill\", \"metadata\" or \"none\""
    );
    assert_eq!(
        messages("k = 3", read),
        "x.toml:1: k: the integer 3 does not fit here; choose \"fill\", \"metadata\" or \"none\""
    );
    let only = |root: &Table<'_>| root.choice("k", &[("none", ())]).required();
    let message = "x.toml:1: k: \"x\" is not a choice; the only choice is \"none\"";
    assert_eq!(messages("k = \"x\"", only), message);

    let range = |root: &Table<'_>| root.range("k").required();
    let valid = "write \"0..=9\" or \"0..<10\" for 0 to 9";
    for (value, what) in [
        ("0..9", "\"0..9\" does not say whether it includes its end"),
        ("0-9", "\"0-9\" is not a range"),
        ("a..=9", "\"a..=9\" is not a range of whole numbers"),
        (
            "0..=99999999999999999999",
            "\"0..=99999999999999999999\" is not a range of whole numbers",
        ),
    ] {
        let text = format!("k = \"{value}\"");
        assert_eq!(
            messages(&text, range),
            format!("x.toml:1: k: {what}; {valid}")
        );
    }
    for empty in ["9..=0", "0..<0", "5..<5"] {
        let message = format!("x.toml:1: k: \"{empty}\" is empty; write the lower end first");
        assert_eq!(messages(&format!("k = \"{empty}\""), range), message);
    }
}

#[test]
fn limits_and_contradictions() {
    let read = |root: &Table<'_>| root.u32("k").within(1..=9).required();
    assert_eq!(
        messages("k = 0", read),
        "x.toml:1: k: 0 is out of range; at least 1, at most 9"
    );
    assert_eq!(messages("k = 9", read), "");
    let read = |root: &Table<'_>| root.refuse("k", "it needs m = 1");
    assert_eq!(
        messages("k = 0", read),
        "x.toml:1: k: contradicts other keys; it needs m = 1"
    );
    assert_eq!(messages("", read), "");
}

#[test]
fn unknown_keys() {
    let read = |root: &Table<'_>| {
        let media = root.table("media");
        let _ = media.u32("program").optional();
        let _ = media.u32("read").optional();
        for job in root.tables("job")? {
            let _ = job.u32("id").optional();
        }
        Ok(())
    };
    let text =
        "[media]\nprgram = 1\nzzzzzz = 2\n[medai]\nx = 1\n[[job]]\nid = 1\n[[job]]\niid = 2\n";
    assert_eq!(
        messages(text, read),
        "x.toml:2: media.prgram: unknown key `prgram`; did you mean `program`?\n\
         x.toml:3: media.zzzzzz: unknown key `zzzzzz`; known here: program, read\n\
         x.toml:4: medai: unknown key `medai`; did you mean `media`?\n\
         x.toml:9: job.1.iid: unknown key `iid`; did you mean `id`?"
    );
}

#[test]
fn a_table_whose_keys_are_the_users() {
    let document = Document::parse("x.toml", "[set]\nb = 1\na = 2\n", &[]).unwrap();
    assert_eq!(document.root().table("set").keys(), ["a", "b"]);
    assert_eq!(document.finish(Ok(())), Ok(()));
}

#[test]
fn something_else_in_place_of_a_table_is_said_once() {
    let read = |root: &Table<'_>| {
        let media = root.table("media");
        let program = media.u32("program").required();
        let suspend = media.table("suspend").u32("program").required();
        Ok((program?, suspend?))
    };
    assert_eq!(
        messages("media = 3", read),
        "x.toml:1: media: the integer 3 does not fit here; write a table: [media]"
    );
}

#[test]
fn problems_come_in_the_order_of_the_file_with_lines_and_columns() {
    let document = Document::parse("x.toml", "z = 1\n  a = \"\u{e4}\"\nm=1", &[]).unwrap();
    let root = document.root();
    let _ = (
        root.bool("m").optional(),
        root.bool("a").optional(),
        root.bool("z").optional(),
    );
    let errors = document.finish(Ok(())).unwrap_err();
    let places: Vec<_> = errors.problems().iter().map(|p| p.place.clone()).collect();
    let line = |line, column| Place::Line { line, column };
    assert_eq!(places, [line(1, 5), line(2, 7), line(3, 3)]);
}

#[test]
fn columns_count_characters() {
    let text = "t = { \"\u{e4}\u{f6}\" = 1, b = 2 }";
    let document = Document::parse("x.toml", text, &[]).unwrap();
    let _ = document.root().table("t").bool("b").optional();
    let errors = document.finish(Ok(())).unwrap_err();
    let place = &errors
        .problems()
        .iter()
        .find(|p| p.key == "t.b")
        .unwrap()
        .place;
    assert_eq!(
        *place,
        Place::Line {
            line: 1,
            column: 21
        }
    );
}

#[test]
fn what_is_not_toml() {
    let nothing = |_: &Table<'_>| Ok(());
    assert_eq!(
        messages("ok = 1\nread = 700us\n", nothing),
        "x.toml:2: this is not a TOML value; a value with a unit is a string: \
         write \"700us\", not 700us"
    );
    assert_eq!(
        messages("a = 1\na = 2\n", nothing),
        "x.toml:2: not TOML: duplicate key"
    );
    assert_eq!(
        messages("[media\n", nothing),
        "x.toml:1: not TOML: unclosed table, expected `]`"
    );
}

#[test]
fn depth_and_length_are_limited() {
    let nothing = |_: &Table<'_>| Ok(());
    let dotted = format!("{}a = 1", "a.".repeat(100_000));
    assert_eq!(
        messages(&dotted, nothing),
        "x.toml: tables or arrays are nested too deeply"
    );
    let nested = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(
        messages(&nested, nothing),
        "x.toml:1: tables or arrays are nested too deeply"
    );
    let long = "#".repeat(Document::TEXT_MAX + 1);
    let message = "x.toml: the file has 4194305 bytes; at most 4194304 are read";
    assert_eq!(messages(&long, nothing), message);
}

#[test]
fn a_flood_of_problems_is_counted() {
    let text: String = (0..1_000).map(|i| format!("unknown_{i} = 1\n")).collect();
    let message = messages(&text, |root| root.u32("k").optional());
    assert_eq!(message.lines().count(), 51);
    assert!(message.ends_with("\nand 950 more"), "{message}");
}

#[test]
fn readers_report_what_they_find_out_themselves() {
    let read = |root: &Table<'_>| {
        let _ = root.table("zones").u32("count").optional();
        Ok(())
    };
    let document = Document::parse("x.toml", "\n[zones]\ncount = 1\n", &[]).unwrap();
    let value: Result<(), Reported> = read(&document.root());
    document.report("zones.count", "1 is few", "");
    document.report("zones.size", "not stated", "");
    document.report("media.read", "not stated either", "");
    assert_eq!(
        document.finish(value).unwrap_err().to_string(),
        "x.toml: media.read: not stated either\n\
         x.toml:2: zones.size: not stated\n\
         x.toml:3: zones.count: 1 is few"
    );
}

/// A problem of a key in the second of several tables is at its line, not at the first's.
#[test]
fn keys_of_tables_in_arrays_have_their_own_lines() {
    let text = "[[job]]\nname = \"a\"\n\n[[job]]\nname = \"b\"\nzones = 3\n";
    let document = Document::parse("f.toml", text, &[]).unwrap();
    let jobs = document.root().tables("job").unwrap();
    let names: Vec<_> = jobs
        .iter()
        .map(|job| job.string("name").required())
        .collect();
    assert!(names.iter().all(Result::is_ok));
    let refused = jobs[1].refuse("zones", "not here");
    let missing = jobs[1].u32("size").required();
    assert!(refused.is_err() && missing.is_err());
    let error = document.finish(missing).unwrap_err().to_string();
    assert!(error.contains("f.toml:6: job.1.zones"), "{error}");
    assert!(error.contains("f.toml:4: job.1.size"), "{error}");
}
