//! Colours, marker shapes and the style sheet.
//!
//! The hues are those of Okabe and Ito (2008), which readers with the common
//! colour-vision deficiencies can tell apart. Their lightness differs as well, most between
//! neighbours, so that a print in grey keeps them apart; so do dashes and the shapes of markers.

use super::text::pixels;

/// Number of colours; series beyond it start over with other shapes.
const COLOURS: usize = 8;
/// Number of shapes. Not a divisor of [`COLOURS`], nor the reverse: 24 series
/// have different pairs.
const SHAPES: usize = 6;

/// Rules are below the class `zl`, so that figures which are pasted into one
/// page neither disturb the page nor each other.
pub(super) const SHEET: &str = "\
.zl{font-family:system-ui,'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif}
.zl .page{fill:#ffffff}
.zl text{fill:#222222;font-size:12px}
.zl .title{font-size:16px;font-weight:600}
.zl .panel-title{font-size:13px;font-weight:600}
.zl .tick-label{font-size:11px;fill:#444444}
.zl .note{font-size:11px;fill:#666666}
.zl .frame{fill:none;stroke:none}
.zl .grid{stroke:#e8e8e8;stroke-width:1;fill:none}
.zl .axis{stroke:#555555;stroke-width:1;fill:none}
.zl .key{color:#666666}
.zl .line{fill:none;stroke:currentColor;stroke-width:1.6;stroke-linejoin:round}
.zl .dot{fill:currentColor;stroke:none}
.zl .ring{fill:#ffffff;fill-opacity:0;stroke:currentColor;stroke-width:1.3}
.zl .spread{fill:none;stroke:currentColor;stroke-width:1}
.zl .s0{color:#005e92}
.zl .s1{color:#dc6100}
.zl .s2{color:#00533d}
.zl .s3{color:#be548f}
.zl .s4{color:#4a3062}
.zl .s5{color:#c28900}
.zl .s6{color:#21728c}
.zl .s7{color:#292929}
.zl .s1 .line{stroke-dasharray:8 3}
.zl .s2 .line{stroke-dasharray:3 2}
.zl .s3 .line{stroke-dasharray:9 2 2 2}
.zl .s5 .line{stroke-dasharray:12 4}
.zl .s6 .line{stroke-dasharray:5 2 2 2 2 2}
.zl .s7 .line{stroke-dasharray:2 2}
@media (prefers-color-scheme:dark){
.zl .page{fill:#16181c}
.zl text{fill:#e8e8e8}
.zl .tick-label{fill:#bbbbbb}
.zl .note{fill:#999999}
.zl .grid{stroke:#2c3036}
.zl .axis{stroke:#9a9a9a}
.zl .key{color:#aaaaaa}
.zl .s0{color:#30b5ff}
.zl .s1{color:#ffbe8c}
.zl .s2{color:#009e73}
.zl .s3{color:#efd6e4}
.zl .s4{color:#ad90c9}
.zl .s5{color:#ffe9b6}
.zl .s6{color:#7ac7df}
.zl .s7{color:#7b7b7b}
}
";

/// The class that gives series `index` its colour.
pub(super) fn colour(index: usize) -> String {
    format!("s{}", index % COLOURS)
}

/// Path data of the marker of series `index`, centred on the origin, about as
/// large as a circle of `radius` pixels.
pub(super) fn marker(index: usize, radius: f64) -> String {
    // Corners as multiples of the radius; areas close to that of the circle.
    let corners: &[(f64, f64)] = match index % SHAPES {
        1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        2 => &[(0.0, -1.3), (1.13, 0.7), (-1.13, 0.7)],
        3 => &[(0.0, -1.28), (1.28, 0.0), (0.0, 1.28), (-1.28, 0.0)],
        4 => &[(0.0, 1.3), (1.13, -0.7), (-1.13, -0.7)],
        5 => &[
            (-0.55, -0.95),
            (0.55, -0.95),
            (1.1, 0.0),
            (0.55, 0.95),
            (-0.55, 0.95),
            (-1.1, 0.0),
        ],
        _ => return circle(radius),
    };
    let mut path = String::new();
    for (n, (x, y)) in corners.iter().enumerate() {
        path.push(if n == 0 { 'M' } else { 'L' });
        path.push_str(&format!("{} {}", pixels(x * radius), pixels(y * radius)));
    }
    path.push('Z');
    path
}

fn circle(radius: f64) -> String {
    let (r, d) = (pixels(radius), pixels(2.0 * radius));
    format!("M-{r} 0a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn twenty_four_series_look_different() {
        let looks: BTreeSet<_> = (0..24).map(|n| (colour(n), marker(n, 3.0))).collect();
        assert_eq!(looks.len(), 24);
    }

    #[test]
    fn every_colour_is_defined_for_light_and_dark() {
        for n in 0..COLOURS {
            let rule = format!(".zl .{}{{", colour(n));
            assert_eq!(SHEET.matches(&rule).count(), 2, "{rule}");
        }
    }

    /// Lightness (CIE 1976 L*, 0 to 100) and relative luminance (WCAG 2) of "#rrggbb".
    fn lightness(colour: &str) -> (f64, f64) {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                libm::pow((value + 0.055) / 1.055, 2.4)
            }
        };
        let luminance = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
        (116.0 * libm::cbrt(luminance) - 16.0, luminance)
    }

    #[test]
    fn colours_survive_grey_and_stand_out_from_the_page() {
        let (light, dark) = SHEET.split_once("@media").unwrap();
        for sheet in [light, dark] {
            let colour = |rule: &str| {
                let at = sheet.find(rule).unwrap() + rule.len();
                lightness(&sheet[at..at + 7])
            };
            let (_, page) = colour(".page{fill:");
            let all: Vec<_> = (0..COLOURS)
                .map(|n| colour(&format!(".s{n}{{color:")))
                .collect();
            for (n, (shade, luminance)) in all.iter().enumerate() {
                let (more, less) = (page.max(*luminance), page.min(*luminance));
                // What WCAG 2.1 asks of graphics (1.4.11).
                assert!((more + 0.05) / (less + 0.05) >= 3.0, "s{n} on its page");
                for (m, (other, _)) in all.iter().enumerate().filter(|(m, _)| *m != n) {
                    let apart = if m.abs_diff(n) == 1 { 11.0 } else { 4.0 };
                    assert!((shade - other).abs() >= apart, "s{n} and s{m}");
                }
            }
        }
    }
}
