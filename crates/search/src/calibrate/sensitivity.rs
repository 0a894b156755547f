//! Which data fix which parameter.

use super::evaluate::{Evaluator, Values};
use super::search::{OnProgress, Progress, elasticity, steps};
use super::{Calibration, Stop};

/// Step of a parameter, as a share of its range: 7 % of the value within the
/// usual bounds.
const STEP: f64 = 0.05;
/// An elasticity below this is none: doubling the parameter changes the value
/// by less than one per cent.
const NONE: f64 = 0.01;
/// Two parameters whose effects agree so well cannot be told apart.
const ALIKE: f64 = 0.99;

/// How measured values react to a parameter, at the solution.
#[derive(Clone, Debug)]
pub struct Sensitivity {
    /// The parameter's key.
    pub key: String,
    /// Elasticity of our value beside each measurement: relative change of the
    /// value over that of the parameter. `None` where there is none to see.
    pub elasticities: Vec<Option<f64>>,
}

impl Sensitivity {
    /// Whether any value reacts.
    #[must_use]
    pub fn is_determined(&self) -> bool {
        let mut known = self.elasticities.iter().flatten();
        known.any(|elasticity| elasticity.abs() >= NONE)
    }

    /// Position of the measurement that reacts most.
    #[must_use]
    pub fn strongest(&self) -> Option<usize> {
        let known = self.elasticities.iter().enumerate();
        let known = known.filter_map(|(index, value)| Some((index, value.as_ref()?.abs())));
        // The first of equals, whatever `max_by` does.
        let strongest = known.fold(None, |best: Option<(usize, f64)>, one| match best {
            Some(best) if best.1 >= one.1 => Some(best),
            _ => Some(one),
        });
        strongest.map(|(index, _)| index)
    }

    /// Number of values that react, of those at `positions`, and the root mean
    /// square of all their elasticities.
    #[must_use]
    pub fn over(&self, positions: &[usize]) -> (usize, f64) {
        let of = |index: &usize| self.elasticities[*index].unwrap_or(0.0);
        let reacting = positions
            .iter()
            .filter(|index| of(index).abs() >= NONE)
            .count();
        let squares: f64 = positions.iter().map(|index| of(index) * of(index)).sum();
        (reacting, (squares / positions.len().max(1) as f64).sqrt())
    }
}

/// Changes each parameter at the solution, one at a time.
pub(super) fn measure(
    calibration: &Calibration,
    evaluator: &mut Evaluator<'_>,
    values: &Values,
    on_progress: &OnProgress<'_>,
) -> Result<Vec<Sensitivity>, Stop> {
    let parameters = &calibration.parameters;
    let cases = evaluator.all_cases();
    let here = evaluator.evaluate(values, &cases)?;
    let mut list = Vec::new();
    for (index, parameter) in parameters.iter().enumerate() {
        let mut sensitivity = Sensitivity {
            key: parameter.key.clone(),
            elasticities: vec![None; calibration.data.measurements.len()],
        };
        for changed in steps(parameters, values, index, STEP) {
            let there = evaluator.evaluate(&changed, &cases)?;
            if let (Some(here), Some(there)) = (&here, &there) {
                let change = (values[index], changed[index]);
                sensitivity.elasticities = elasticity(here, there, change);
            }
            if sensitivity.is_determined() {
                break;
            }
        }
        list.push(sensitivity);
        on_progress(&Progress {
            stage: "sensitivity",
            evaluations: index as u32 + 1,
            most: parameters.len() as u32,
            best: f64::NAN,
        });
    }
    Ok(list)
}

/// Pairs of keys that act alike on the data, so that only both together are
/// determined.
pub(super) fn alike(list: &[Sensitivity]) -> Vec<(&str, &str)> {
    let mut pairs = Vec::new();
    for (index, one) in list.iter().enumerate() {
        for other in &list[index + 1..] {
            let both = one.is_determined() && other.is_determined();
            if both && cosine(&one.elasticities, &other.elasticities).abs() > ALIKE {
                pairs.push((one.key.as_str(), other.key.as_str()));
            }
        }
    }
    pairs
}

fn cosine(a: &[Option<f64>], b: &[Option<f64>]) -> f64 {
    let value = |v: &Option<f64>| v.unwrap_or(0.0);
    let dot = |a: &[Option<f64>], b: &[Option<f64>]| -> f64 {
        a.iter().zip(b).map(|(a, b)| value(a) * value(b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: &str, elasticities: &[f64]) -> Sensitivity {
        Sensitivity {
            key: key.to_owned(),
            elasticities: elasticities.iter().map(|e| Some(*e)).collect(),
        }
    }

    #[test]
    fn what_acts_alike_is_found_and_what_does_nothing_is_not() {
        let list = [
            of("a", &[1.0, 0.5, 0.0]),
            of("b", &[-2.0, -1.0, 0.0]),
            of("c", &[0.0, 0.0, 1.0]),
            of("d", &[0.0, 0.0, 0.001]),
        ];
        assert_eq!(alike(&list), [("a", "b")]);
        assert!(!list[3].is_determined() && list[2].is_determined());
        assert_eq!(list[0].strongest(), Some(0));
        assert_eq!(list[0].over(&[1, 2]).0, 1);
    }
}
