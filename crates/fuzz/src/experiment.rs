//! Experiment files.

use zonelab_config::Override;
use zonelab_lab::experiment::Experiment;
use zonelab_lab::library;

use crate::draw::Draw;
use crate::text;

/// Positions of an axis that are looked at.
const POSITIONS: usize = 3;

/// The target: a text is an experiment, or is refused with a reason; so is
/// what becomes of it at each position of its axis, and with `--quick`.
///
/// # Panics
/// Something is wrong.
pub fn run(data: &[u8]) {
    let text = text::verbatim(data).unwrap_or_else(|| {
        let bases: Vec<&str> = library::ids().filter_map(library::text).collect();
        text::draw(&mut Draw::new(data), &bases)
    });
    let Some(experiment) = parse(&text, &[], None) else {
        return;
    };
    for x in experiment.axis.values.iter().take(POSITIONS) {
        parse(&text, &[], Some(x));
        parse(&text, &experiment.quick.set, Some(x));
        let last = experiment.combinations().saturating_sub(1);
        if let Err(errors) = Experiment::parse_in("fuzz.toml", &text, &[], Some(x), last) {
            assert!(!errors.to_string().is_empty(), "refused without a reason");
        }
    }
}

fn parse(
    text: &str,
    sets: &[Override],
    x: Option<&zonelab_lab::experiment::AxisValue>,
) -> Option<Experiment> {
    match Experiment::parse("fuzz.toml", text, sets, x) {
        Ok(experiment) => Some(experiment),
        Err(errors) => {
            assert!(!errors.to_string().is_empty(), "refused without a reason");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness;

    #[test]
    fn the_corpus_has_files_that_are_read_at_every_position_of_their_axis() {
        let directory = harness::corpus_directory(crate::target("experiment").unwrap());
        for name in ["small.toml", "axis-of-sizes.toml"] {
            let data = std::fs::read(directory.join(name)).unwrap();
            let text = text::verbatim(&data).unwrap();
            let experiment = parse(&text, &[], None).unwrap();
            assert!(experiment.axis.values.len() > 1, "{name}");
            let x = &experiment.axis.values[0];
            assert!(parse(&text, &[], Some(x)).is_some(), "{name} with {x:?}");
        }
    }
}
