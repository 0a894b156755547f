//! What is better than what: dominance, fronts, hypervolumes.
//!
//! A cost is one number for each objective, smaller is better. Without a value
//! for each of them there is no cost: such a candidate is never on a front.

/// One number for each objective, all finite; `None`: one has no value.
pub type Cost = Option<Vec<f64>>;

/// The cost of values that may be missing or not finite.
#[must_use]
pub fn cost(values: impl IntoIterator<Item = Option<f64>>) -> Cost {
    // Without a negative zero, so that sorting and comparing agree.
    let finite = |value: Option<f64>| Some(value.filter(|value| value.is_finite())? + 0.0);
    values.into_iter().map(finite).collect()
}

/// Whether `a` is nowhere worse than `b` and somewhere better.
#[must_use]
pub fn dominates(a: &[f64], b: &[f64]) -> bool {
    let pairs = || a.iter().zip(b);
    pairs().all(|(a, b)| a <= b) && pairs().any(|(a, b)| a < b)
}

/// Which costs no other dominates. Equal costs are on the front together.
#[must_use]
pub fn front(costs: &[Cost]) -> Vec<bool> {
    let known = costs.iter().enumerate();
    let mut order: Vec<(usize, &[f64])> = known
        .filter_map(|(index, cost)| Some((index, cost.as_deref()?)))
        .collect();
    // What dominates a cost comes before it in this order.
    order.sort_by(|(_, a), (_, b)| {
        let mut pairs = a.iter().zip(*b).map(|(a, b)| a.total_cmp(b));
        let first = pairs.find(|order| order.is_ne());
        first.unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut on_front = vec![false; costs.len()];
    let mut members: Vec<&[f64]> = Vec::new();
    for (index, cost) in order {
        if !members.iter().any(|member| dominates(member, cost)) {
            on_front[index] = true;
            members.push(cost);
        }
    }
    on_front
}

/// The volume of what is between costs and a reference that they are better
/// than; those that are not better in every objective count for nothing.
///
/// Exact, by slices along the last objective: fast enough for some hundred
/// costs of up to four objectives.
#[must_use]
pub fn hypervolume(costs: &[&[f64]], reference: &[f64]) -> f64 {
    let is_inside = |cost: &&&[f64]| cost.iter().zip(reference).all(|(cost, worst)| cost < worst);
    let inside: Vec<&[f64]> = costs.iter().filter(is_inside).copied().collect();
    volume(inside, reference)
}

fn volume(mut costs: Vec<&[f64]>, reference: &[f64]) -> f64 {
    let Some((worst, rest)) = reference.split_last() else {
        return 1.0;
    };
    let depth = rest.len();
    if depth == 0 {
        let best = costs.iter().map(|cost| cost[0]).fold(*worst, f64::min);
        return worst - best;
    }
    costs.sort_by(|a, b| a[depth].total_cmp(&b[depth]));
    let mut sum = 0.0;
    for (index, cost) in costs.iter().enumerate() {
        let next = costs.get(index + 1).map_or(*worst, |next| next[depth]);
        if next > cost[depth] {
            let slice = costs[..=index].iter().map(|cost| &cost[..depth]).collect();
            sum += (next - cost[depth]) * volume(slice, rest);
        }
    }
    sum
}

/// How much larger, relatively, the hypervolume of one front is than that of an
/// earlier one, each objective on the scale of both fronts together.
#[must_use]
pub(super) fn gain(before: &[&[f64]], after: &[&[f64]]) -> f64 {
    let Some(first) = after.first() else {
        return 0.0;
    };
    let both = || before.iter().chain(after);
    let (mut best, mut worst) = (first.to_vec(), first.to_vec());
    for cost in both() {
        for (index, value) in cost.iter().enumerate() {
            best[index] = best[index].min(*value);
            worst[index] = worst[index].max(*value);
        }
    }
    // Beyond the worst of both, so that the ends of a front have a volume.
    for (worst, best) in worst.iter_mut().zip(&best) {
        let range = *worst - best;
        *worst += if range > 0.0 { 0.1 * range } else { 1.0 };
    }
    let (before, after) = (hypervolume(before, &worst), hypervolume(after, &worst));
    if before > 0.0 {
        after / before - 1.0
    } else if after > 0.0 {
        f64::INFINITY
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values on a coarse scale, so that ties and equal costs are frequent, and
    /// some that are missing or no numbers.
    fn value() -> impl Strategy<Value = Option<f64>> {
        prop_oneof![
            8 => (0_u8..6).prop_map(|value| Some(f64::from(value))),
            1 => Just(None),
            1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY)]
                .prop_map(Some),
        ]
    }

    fn values() -> impl Strategy<Value = Vec<Vec<Option<f64>>>> {
        (1_usize..=4).prop_flat_map(|objectives| {
            proptest::collection::vec(proptest::collection::vec(value(), objectives), 0..30)
        })
    }

    /// Counts the unit cells that some cost is at least as good as everywhere.
    fn cells(costs: &[&[f64]], reference: usize, objectives: usize) -> usize {
        let total = reference.pow(objectives as u32);
        let digit = |cell: usize, index: usize| cell / reference.pow(index as u32) % reference;
        (0..total)
            .filter(|cell| {
                costs.iter().any(|cost| {
                    (0..objectives).all(|index| cost[index] <= digit(*cell, index) as f64)
                })
            })
            .count()
    }

    proptest! {
        /// By the words of the definition, pair by pair.
        #[test]
        fn a_front_is_what_nothing_dominates(values in values()) {
            let costs: Vec<Cost> = values.iter().map(|one| cost(one.iter().copied())).collect();
            let front = front(&costs);
            prop_assert_eq!(front.len(), values.len());
            let number = |value: &Option<f64>| value.filter(|value| value.is_finite());
            for (mine, on_front) in values.iter().zip(&front) {
                let mut expected = mine.iter().all(|value| number(value).is_some());
                for other in &values {
                    if !expected || other.iter().any(|value| number(value).is_none()) {
                        continue;
                    }
                    let mut worse = 0;
                    let mut better = 0;
                    for (mine, other) in mine.iter().zip(other) {
                        match mine.partial_cmp(other) {
                            Some(std::cmp::Ordering::Less) => better += 1,
                            Some(std::cmp::Ordering::Greater) => worse += 1,
                            _ => {}
                        }
                    }
                    expected = better > 0 || worse == 0;
                }
                prop_assert_eq!(*on_front, expected, "{:?}", mine);
            }
        }

        #[test]
        fn a_hypervolume_is_the_number_of_cells_covered(values in values()) {
            let costs: Vec<Cost> = values.iter().map(|one| cost(one.iter().copied())).collect();
            let costs: Vec<&[f64]> = costs.iter().flatten().map(Vec::as_slice).collect();
            let objectives = costs.first().map_or(1, |cost| cost.len());
            let reference = vec![5.0; objectives];
            let expected = cells(&costs, 5, objectives) as f64;
            prop_assert!((hypervolume(&costs, &reference) - expected).abs() < 1e-9);
        }
    }

    #[test]
    fn a_front_gains_where_it_moves() {
        let before: [&[f64]; 2] = [&[0.0, 1.0], &[1.0, 0.0]];
        let after: [&[f64]; 3] = [&[0.0, 1.0], &[0.4, 0.4], &[1.0, 0.0]];
        assert!(gain(&before, &after) > 0.1);
        assert!(gain(&before, &before).abs() < 1e-12);
        assert!(gain(&[], &before).is_infinite());
        assert!(gain(&before, &[]).abs() < 1e-12);
        // Objectives without a range do not hide the others.
        assert!(gain(&[&[1.0, 5.0]], &[&[0.5, 5.0]]) > 0.1);
    }
}
