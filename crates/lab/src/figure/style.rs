//! Colours, marker shapes and the style sheet.
//!
//! The colours are those of Okabe and Ito (2008), which readers with the common
//! colour-vision deficiencies can tell apart, with lighter variants on a dark
//! page. Shapes differ as well, so that print without colour stays readable.

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
.zl .s0{color:#0072b2}
.zl .s1{color:#d55e00}
.zl .s2{color:#009e73}
.zl .s3{color:#cc79a7}
.zl .s4{color:#56b4e9}
.zl .s5{color:#e69f00}
.zl .s6{color:#555555}
.zl .s7{color:#7a4fa3}
@media (prefers-color-scheme:dark){
.zl .page{fill:#16181c}
.zl text{fill:#e8e8e8}
.zl .tick-label{fill:#bbbbbb}
.zl .note{fill:#999999}
.zl .grid{stroke:#2c3036}
.zl .axis{stroke:#9a9a9a}
.zl .key{color:#aaaaaa}
.zl .s0{color:#4fa8e0}
.zl .s1{color:#ff8a3d}
.zl .s2{color:#2fc99b}
.zl .s3{color:#e6a3c8}
.zl .s4{color:#8fd0f7}
.zl .s5{color:#f5bd41}
.zl .s6{color:#bbbbbb}
.zl .s7{color:#b793dd}
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
}
