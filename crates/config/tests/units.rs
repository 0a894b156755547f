//! Quantities: exact values, refusals word for word, and round trips.

use proptest::prelude::*;
use zonelab_config::units::{
    fmt_duration, fmt_percent, fmt_rate, fmt_size, parse_duration, parse_percent, parse_rate,
    parse_size, quote,
};

#[test]
fn sizes_are_exact() {
    for (text, bytes) in [
        ("0B", 0),
        ("512B", 512),
        ("16KiB", 16_384),
        ("16 KiB", 16_384),
        (" 16KiB ", 16_384),
        ("1056MiB", 1_107_296_256),
        ("2GiB", 2_147_483_648),
        ("4kB", 4_000),
        ("3MB", 3_000_000),
        ("1.5KiB", 1_536),
        ("0.5kB", 500),
        ("4TB", 4_000_000_000_000),
        ("1TiB", 1 << 40),
        ("18446744073709551615B", u64::MAX),
    ] {
        assert_eq!(parse_size(text), Ok(bytes), "{text}");
    }
}

#[test]
fn times_are_exact() {
    for (text, ns) in [
        ("0us", 0),
        ("12ns", 12),
        ("700us", 700_000),
        ("3.5ms", 3_500_000),
        ("0.001us", 1),
        ("1.000000000s", 1_000_000_000),
        ("1s", 1_000_000_000),
        ("2min", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("0.1h", 360_000_000_000),
        ("18446744073.709551615s", u64::MAX),
    ] {
        assert_eq!(parse_duration(text), Ok(ns), "{text}");
    }
}

#[test]
fn rates_are_rounded_to_whole_bytes_per_second() {
    for (text, rate) in [
        ("100B/s", 100),
        ("43.9MiB/s", 46_032_486), // 46,032,486.4
        ("3.2GB/s", 3_200_000_000),
        ("0.0005kB/s", 1), // a half rounds up
        ("0.0004kB/s", 0),
    ] {
        assert_eq!(parse_rate(text), Ok(rate), "{text}");
    }
}

#[test]
fn percentages_are_parts_per_million() {
    for (text, ppm) in [
        ("0%", 0),
        ("50%", 500_000),
        ("12.5%", 125_000),
        ("100%", 1_000_000),
        ("0.0001%", 1),
    ] {
        assert_eq!(parse_percent(text), Ok(ppm), "{text}");
    }
}

#[test]
fn size_refusals() {
    for (text, message) in [
        ("16", r#""16" has no unit; write for example "16KiB""#),
        (
            "4K",
            r#""4K" has the ambiguous unit `K`; write "4KiB" or "4kB""#,
        ),
        (
            "4M",
            r#""4M" has the ambiguous unit `M`; write "4MiB" or "4MB""#,
        ),
        (
            "4kb",
            r#""4kb" has the ambiguous unit `kb`; write "4KiB" or "4kB""#,
        ),
        (
            "4KB",
            r#""4KB" has the ambiguous unit `KB`; write "4KiB" or "4kB""#,
        ),
        ("4kib", r#""4kib" has the unknown unit `kib`; write "4KiB""#),
        ("4Mi", r#""4Mi" has the unknown unit `Mi`; write "4MiB""#),
        ("4b", r#""4b" has the unknown unit `b`; write "4B""#),
        (
            "4x",
            r#""4x" has the unknown unit `x`; units are B, KiB, MiB, GiB, TiB, kB, MB, GB, TB"#,
        ),
        (
            "0.3KiB",
            r#""0.3KiB" is not a whole number of bytes; write "307B" or "308B""#,
        ),
        ("-1KiB", r#""-1KiB" is negative; write for example "10KiB""#),
        (
            "KiB",
            r#""KiB" is not a number with a unit; write for example "10KiB""#,
        ),
        (
            "",
            r#""" is not a number with a unit; write for example "10KiB""#,
        ),
        (
            "1.KiB",
            r#""1.KiB" is not a number with a unit; write for example "10KiB""#,
        ),
        (
            ".5KiB",
            r#"".5KiB" is not a number with a unit; write for example "10KiB""#,
        ),
        (
            "1.2.3KiB",
            r#""1.2.3KiB" is not a number with a unit; write for example "10KiB""#,
        ),
        (
            "16777216TiB",
            r#""16777216TiB" is too large; at most 18446744073709551615B"#,
        ),
    ] {
        let error = parse_size(text).expect_err(text);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn time_refusals() {
    for (text, message) in [
        (
            "700",
            r#""700" has no unit; write for example "700us" or "700s""#,
        ),
        (
            "0.5ns",
            r#""0.5ns" is not a whole number of nanoseconds; write "0ns" or "1ns""#,
        ),
        (
            "700.0005us",
            r#""700.0005us" is not a whole number of nanoseconds; write "700us" or "700.001us""#,
        ),
        (
            "5m",
            r#""5m" has the ambiguous unit `m`; write "5ms" or "5min""#,
        ),
        (
            "5\u{b5}s",
            "\"5\u{b5}s\" has the unknown unit `\u{b5}s`; write \"5us\"",
        ),
        (
            "5usec",
            r#""5usec" has the unknown unit `usec`; write "5us""#,
        ),
        ("5sec", r#""5sec" has the unknown unit `sec`; write "5s""#),
        ("5MS", r#""5MS" has the unknown unit `MS`; write "5ms""#),
        (
            "5days",
            r#""5days" has the unknown unit `days`; units are ns, us, ms, s, min, h"#,
        ),
        (
            "5124095577h",
            r#""5124095577h" is too large; at most 18446744073.709551615s"#,
        ),
    ] {
        let error = parse_duration(text).expect_err(text);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn rate_and_percent_refusals() {
    for (text, message) in [
        ("100", r#""100" has no unit; write for example "100MiB/s""#),
        (
            "100MiB",
            r#""100MiB" has the unknown unit `MiB`; write "100MiB/s""#,
        ),
        (
            "100MBps",
            r#""100MBps" has the ambiguous unit `MBps`; write "100MiB/s" or "100MB/s""#,
        ),
    ] {
        assert_eq!(parse_rate(text).expect_err(text).to_string(), message);
    }
    for (text, message) in [
        ("50", r#""50" has no unit; write for example "50%""#),
        ("101%", r#""101%" is too large; at most 100%"#),
        (
            "0.00001%",
            r#""0.00001%" is not a whole number of parts per million; write "0%" or "0.0001%""#,
        ),
    ] {
        assert_eq!(parse_percent(text).expect_err(text).to_string(), message);
    }
}

#[test]
fn printed_in_the_unit_a_person_would_choose() {
    for (bytes, text) in [
        (0, "0B"),
        (513, "513B"),
        (16_384, "16KiB"),
        (1_107_296_256, "1056MiB"),
        (1 << 31, "2GiB"),
        (4_000, "4kB"),
        (4_000_000_000_000, "4TB"),
        (1_024_000, "1000KiB"),
    ] {
        assert_eq!(fmt_size(bytes), text);
    }
    for (ns, text) in [
        (0, "0ns"),
        (999, "999ns"),
        (725_000, "725us"),
        (3_500_000, "3.5ms"),
        (1_000_000_007, "1.000000007s"),
        (60_000_000_000, "60s"),
    ] {
        assert_eq!(fmt_duration(ns), text);
    }
    assert_eq!(fmt_rate(104_857_600), "100MiB/s");
    assert_eq!(fmt_percent(125_000), "12.5%");
}

#[test]
fn quoting_survives_toml() {
    for text in [
        "plain",
        "\"",
        "\\",
        "\n\t\u{0}\u{7f}",
        "\u{1f600}",
        "'''",
        "\"\"\"",
    ] {
        let document = format!("text = {}\n", quote(text));
        let document = zonelab_config::Document::parse("x", &document, &[]).unwrap();
        assert_eq!(document.root().string("text").required().unwrap(), text);
    }
}

/// Values of every magnitude, not only large ones.
fn any_magnitude() -> impl Strategy<Value = u64> {
    prop_oneof![
        (any::<u64>(), 0..64_u32).prop_map(|(value, shift)| value >> shift),
        (0..1_000_u64, 0..17_u32).prop_map(|(value, power)| value * 10_u64.pow(power)),
        (0..1_000_u64, 0..54_u32).prop_map(|(value, power)| value << power),
    ]
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(value in any_magnitude()) {
        prop_assert_eq!(parse_size(&fmt_size(value)), Ok(value));
        prop_assert_eq!(parse_duration(&fmt_duration(value)), Ok(value));
        prop_assert_eq!(parse_rate(&fmt_rate(value)), Ok(value));
        let ppm = u32::try_from(value % 1_000_001).unwrap();
        prop_assert_eq!(parse_percent(&fmt_percent(ppm)), Ok(ppm));
    }

    /// Against an independent computation: whole and thousandths of a unit, in integers.
    #[test]
    fn decimals_are_exact(whole in 0..10_000_000_u64, thousandths in 0..1_000_u64) {
        let text = format!("{whole}.{thousandths:03}");
        let ms = parse_duration(&format!("{text}ms"));
        prop_assert_eq!(ms, Ok(whole * 1_000_000 + thousandths * 1_000));
        let kb = parse_size(&format!("{text}kB"));
        prop_assert_eq!(kb, Ok(whole * 1_000 + thousandths));
        let kib = parse_size(&format!("{text}KiB")).ok();
        let scaled = thousandths * 1_024;
        prop_assert_eq!(kib, (scaled % 1_000 == 0).then(|| whole * 1_024 + scaled / 1_000));
    }

    #[test]
    fn no_text_panics(text in "\\PC*|[0-9.]{0,60} ?[a-zA-Z%/]{0,5}") {
        let _ = parse_size(&text);
        let _ = parse_duration(&text);
        let _ = parse_rate(&text);
        let _ = parse_percent(&text);
    }
}
