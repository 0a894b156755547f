use proptest::prelude::*;
use zonelab_device::Nanos;

use super::*;

/// The probability that a variable of Student's t distribution is between `-t` and `t`,
/// by its finite series in the angle `atan(t / sqrt(n))`: Abramowitz and Stegun, 26.7.3
/// and 26.7.4.
fn within(t: f64, degrees_of_freedom: u32) -> f64 {
    let n = f64::from(degrees_of_freedom);
    let angle = libm::atan(t / n.sqrt());
    let (sine, cosine) = libm::sincos(angle);
    let is_odd = degrees_of_freedom % 2 == 1;
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = if degrees_of_freedom == 1 { 0.0 } else { term };
    let mut k = if is_odd { 3 } else { 2 };
    while k + 2 <= degrees_of_freedom {
        term *= cosine * cosine * f64::from(k - 1) / f64::from(k);
        sum += term;
        k += 2;
    }
    match is_odd {
        true => (angle + sine * sum) * 2.0 / std::f64::consts::PI,
        false => sine * sum,
    }
}

#[test]
fn quantiles_are_those_of_the_distribution() {
    for degrees_of_freedom in 1..=1000 {
        let share = within(student_t_975(degrees_of_freedom), degrees_of_freedom);
        let off = (share - 0.95).abs();
        assert!(off < 1e-8, "{degrees_of_freedom}: {share}");
    }
}

/// Tables in print: 97.5 % of 1, 4, 9, 19, 29, 60, 120 and very many.
#[test]
fn quantiles_are_those_of_printed_tables() {
    for (degrees_of_freedom, printed) in [
        (1, 12.706),
        (4, 2.776),
        (9, 2.262),
        (19, 2.093),
        (29, 2.045),
        (60, 2.000),
        (120, 1.980),
        (1_000_000, 1.960),
    ] {
        let off = (student_t_975(degrees_of_freedom) - printed).abs();
        assert!(off < 0.000_51, "{degrees_of_freedom}: {off}");
    }
}

/// Python 3.11: `statistics.mean`, `statistics.stdev`, and 2.7764451051977987 * stdev /
/// sqrt(5), whose factor is `scipy.stats.t.ppf(0.975, 4)`.
#[test]
fn five_values_are_what_python_makes_of_them() {
    let of = Statistics::of(&[64.8, 65.1, 64.2, 66.0, 63.9]).unwrap();
    let near = |a: f64, b: f64| (a - b).abs() < 1e-8;
    assert!(near(of.mean, 64.8), "{of:?}");
    assert!(near(of.sd.unwrap(), 0.821_583_836_257_748_6), "{of:?}");
    assert!(near(of.half_width.unwrap(), 1.020_131_070_987_384_5));
    assert_eq!((of.count, of.min, of.max), (5, 63.9, 66.0));
    let (low, high) = of.interval().unwrap();
    assert!(near(low, 63.779_868_929) && near(high, 65.820_131_071));
}

#[test]
fn one_value_has_no_interval_and_none_no_statistics() {
    let one = Statistics::of(&[7.0]).unwrap();
    assert_eq!((one.mean, one.min, one.max), (7.0, 7.0, 7.0));
    assert_eq!((one.sd, one.half_width, one.interval()), (None, None, None));
    assert_eq!(Statistics::of(&[]), None);
    assert_eq!(Statistics::of(&[1.0, f64::NAN]), None);
}

proptest! {
    /// Against other formulas: the mean of squares less the square of the mean.
    #[test]
    fn statistics_agree_with_other_formulas(values in prop::collection::vec(-1e3..1e3_f64, 2..40)) {
        let of = Statistics::of(&values).unwrap();
        let n = values.len() as f64;
        let mean = values.iter().rev().sum::<f64>() / n;
        let squares = values.iter().map(|v| v * v).sum::<f64>() / n;
        let variance = (squares - mean * mean).max(0.0) * n / (n - 1.0);
        prop_assert!((of.mean - mean).abs() < 1e-9);
        let sd = of.sd.unwrap();
        prop_assert!((sd * sd - variance).abs() < 1e-6, "{} {}", sd * sd, variance);
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        prop_assert_eq!(Some(&of.min), sorted.first());
        prop_assert_eq!(Some(&of.max), sorted.last());
        let half = of.half_width.unwrap();
        prop_assert!((half * n.sqrt() - sd * student_t_975(values.len() as u32 - 1)).abs() < 1e-9);
    }

    #[test]
    fn equal_values_are_known_exactly(value in -1e9..1e9_f64, count in 2..30_usize) {
        let of = Statistics::of(&vec![value; count]).unwrap();
        prop_assert_eq!((of.mean, of.sd, of.half_width), (value, Some(0.0), Some(0.0)));
    }
}

/// Slots of half a second.
fn slots(operations: impl IntoIterator<Item = u64>) -> Vec<Slot> {
    let slot = |(n, operations)| Slot {
        from: Nanos(n * 500),
        to: Nanos((n + 1) * 500),
        operations,
    };
    (0_u64..).zip(operations).map(slot).collect()
}

#[test]
fn batches_of_a_run_say_how_well_its_throughput_is_known() {
    // Ten batches that vary independently: the interval is that of ten values, in the
    // proportion of the throughput to their mean.
    let operations = [90, 110, 105, 95, 98, 102, 110, 90, 93, 107];
    let of = throughput_of(&slots(operations), 0.2).unwrap();
    let plain = Statistics::of(&operations.map(|n| n as f64)).unwrap();
    assert_eq!((of.over, of.count, of.mean), (Over::Batches, 10, 0.2));
    let share = |of: &Statistics| of.half_width.unwrap() / of.mean;
    assert!((share(&of) - share(&plain)).abs() < 1e-12);
    assert_eq!(throughput_of(&slots([100; 9]), 0.2), None);
    assert_eq!(throughput_of(&slots([0; 20]), 0.0), None);
    assert_eq!(throughput_of(&[], 1.0), None);
    // What is slow first and fast then is known worse than its spread says.
    let drift = (0..20).map(|n| 100 + 5 * n);
    let drifting = throughput_of(&slots(drift.clone()), 1.0).unwrap();
    let drift: Vec<f64> = drift.map(|n| n as f64).collect();
    let plain = Statistics::of(&drift).unwrap();
    assert!(share(&drifting) > 2.0 * share(&plain));
}

#[test]
fn long_runs_have_few_batches_and_a_last_slot_that_is_shorter_counts_in_none() {
    let mut all = slots((0..240).map(|n| 100 + n % 7));
    let of = throughput_of(&all, 1.0).unwrap();
    assert_eq!(of.count, 30);
    all.push(Slot {
        from: Nanos(120_000),
        to: Nanos(120_100),
        operations: 1_000_000,
    });
    assert_eq!(throughput_of(&all, 1.0), Some(of));
}
