//! Quantities with units.

use std::fmt::Debug;

use zonelab_config::units::{
    NotAQuantity, fmt_duration, fmt_percent, fmt_rate, fmt_size, parse_duration, parse_percent,
    parse_rate, parse_size,
};

use crate::draw::Draw;
use crate::text;

/// A number and a unit that hits more often than any text.
fn quantity(draw: &mut Draw<'_>) -> String {
    const UNITS: &[&str] = &[
        "", "B", "KiB", "kB", "KB", "MiB", "TiB", "EiB", "ns", "us", "ms", "s", "min", "h", "B/s",
        "MiB/s", "GB/s", "%", " ", "e3",
    ];
    let mut text = draw.wide().to_string();
    if draw.flag() {
        text.push('.');
        text.push_str(&draw.wide().to_string());
    }
    if draw.one_in(8) {
        text.insert_str(0, draw.pick(&["-", "+", " ", "0", "_"]));
    }
    if draw.flag() {
        text.push(' ');
    }
    text + draw.pick(UNITS)
}

/// What is printed reads back, and is printed the same again.
fn round_trip<T: Copy + Debug + PartialEq>(
    value: T,
    print: fn(T) -> String,
    parse: fn(&str) -> Result<T, NotAQuantity>,
) {
    let text = print(value);
    assert_eq!(
        parse(&text).as_ref(),
        Ok(&value),
        "{value:?} is printed as {text:?}"
    );
}

/// Reads a text; what it says reads back, what is refused is explained.
fn read<T: Copy + Debug + PartialEq>(
    text: &str,
    print: fn(T) -> String,
    parse: fn(&str) -> Result<T, NotAQuantity>,
) {
    match parse(text) {
        Ok(value) => round_trip(value, print, parse),
        Err(refusal) => assert!(
            !refusal.what.is_empty(),
            "{text:?} is refused without a reason"
        ),
    }
}

/// The target.
///
/// # Panics
/// Something is wrong.
pub fn run(data: &[u8]) {
    if let Some(text) = text::verbatim(data) {
        return text.lines().for_each(read_all);
    }
    let mut draw = Draw::new(data);
    let number = draw.wide();
    round_trip(number, fmt_size, parse_size);
    round_trip(number, fmt_rate, parse_rate);
    round_trip(number, fmt_duration, parse_duration);
    let ppm = draw.int(0..=1_000_000);
    round_trip(ppm, fmt_percent, parse_percent);
    read_all(&match draw.flag() {
        true => quantity(&mut draw),
        false => String::from_utf8_lossy(draw.bytes(usize::MAX)).into_owned(),
    });
}

/// Reads a text as each kind of quantity.
fn read_all(text: &str) {
    read(text, fmt_size, parse_size);
    read(text, fmt_rate, parse_rate);
    read(text, fmt_duration, parse_duration);
    read(text, fmt_percent, parse_percent);
}
