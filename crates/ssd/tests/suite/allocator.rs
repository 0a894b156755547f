//! The allocator beside an integer-programming solver: the solver is given the
//! formulas of SilentZNS, section 4, and nothing of how the allocator works.

use std::cell::Cell;

use microlp::{ComparisonOp, Error, OptimizationDirection, Problem, Variable};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use zonelab_ssd::mapping::allocator::{Allocator, Availability, ElementId, Exhausted};

/// Instances of each kind.
const INSTANCES: u32 = 5_000;

/// An instance in the notation of the paper (table 1). The `N` elements are
/// listed LUN by LUN, as many of each.
#[derive(Clone, Debug)]
struct Instance {
    luns: usize,
    wear: Vec<u32>,
    availability: Vec<u8>,
    per_lun: usize,
}

impl Instance {
    fn of(allocator: &Allocator, per_lun: u32) -> Self {
        let count = allocator.luns() * allocator.elements_per_lun();
        let elements = || (0..count).map(ElementId);
        Self {
            luns: allocator.luns() as usize,
            wear: elements().map(|id| allocator.wear(id)).collect(),
            availability: elements()
                .map(|id| allocator.availability(id) as u8)
                .collect(),
            per_lun: per_lun as usize,
        }
    }

    /// The objective and constraint (1), with a variable `c[n]` for each element.
    fn problem(&self) -> (Problem, Vec<Variable>) {
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let selected: Vec<Variable> = self
            .wear
            .iter()
            .map(|&wear| problem.add_binary_var(f64::from(wear)))
            .collect();
        for (&c, &a) in selected.iter().zip(&self.availability) {
            let is_available = if a == 0 || a == 3 { 1.0 } else { 0.0 };
            problem.add_constraint([(c, 1.0)], ComparisonOp::Le, is_available);
        }
        (problem, selected)
    }

    /// The least of total wear + `weight` * largest number on one LUN, subject to
    /// (1) and (2); `None`: there is no solution.
    fn relaxed(&self, weight: u32) -> Option<u64> {
        let (mut problem, selected) = self.problem();
        Self::select(&mut problem, &selected, self.per_lun * self.luns);
        let most = i32::try_from(selected.len()).expect("some dozens");
        let depth = problem.add_integer_var(f64::from(weight), (0, most));
        for lun in selected.chunks_exact(selected.len() / self.luns) {
            let sum = lun.iter().map(|&c| (c, 1.0)).chain([(depth, -1.0)]);
            problem.add_constraint(sum, ComparisonOp::Le, 0.0);
        }
        least(problem)
    }

    /// Constraints (2) and (5): Z elements in all.
    fn select(problem: &mut Problem, selected: &[Variable], z: usize) {
        let sum = selected.iter().map(|&c| (c, 1.0));
        problem.add_constraint(sum, ComparisonOp::Eq, z as f64);
    }

    /// The least total wear by chunks, (1) to (3); `None`: there is no solution.
    fn chunks(&self) -> Option<u64> {
        let (mut problem, selected) = self.problem();
        Self::select(&mut problem, &selected, self.per_lun * self.luns);
        for lun in selected.chunks_exact(selected.len() / self.luns) {
            let sum = lun.iter().map(|&c| (c, 1.0));
            problem.add_constraint(sum, ComparisonOp::Eq, self.per_lun as f64);
        }
        least(problem)
    }

    /// The least total wear by stripes, (4) and (5); `None`: there is no solution.
    fn stripes(&self) -> Option<u64> {
        let (mut problem, selected) = self.problem();
        Self::select(&mut problem, &selected, self.per_lun);
        least(problem)
    }
}

/// The value of the objective, a whole number.
fn least(problem: Problem) -> Option<u64> {
    match problem.solve() {
        Ok(outcome) => {
            let solution = outcome.into_solution().expect("there is no time limit");
            let objective = solution.objective();
            assert!((objective - objective.round()).abs() < 1e-6, "{objective}");
            #[expect(
                clippy::cast_sign_loss,
                clippy::cast_possible_truncation,
                reason = "wear"
            )]
            Some(objective.round() as u64)
        }
        Err(Error::Infeasible) => None,
        Err(error) => panic!("the solver failed: {error}"),
    }
}

/// Wear of elements: none, with many ties, even, skewed, of two kinds.
fn wear() -> impl Strategy<Value = BoxedStrategy<u32>> {
    prop_oneof![
        Just(Just(0).boxed()),
        Just((0..3_u32).boxed()),
        Just((0..200_u32).boxed()),
        Just((0..9_u32).prop_map(|power| 2_u32.pow(power)).boxed()),
        Just(prop_oneof![5 => 0..4_u32, 1 => 250..260_u32].boxed()),
    ]
}

/// A drive that has been used: wear and availability of each element.
fn used_drive() -> impl Strategy<Value = (u32, Vec<(u32, u8)>, u32)> {
    // How many elements are taken decides whether there is a solution.
    let drive = (1..9_u32, 1..17_u32, wear(), 0..5_u32);
    drive.prop_flat_map(|(luns, per_lun, wear, taken)| {
        let availability = prop_oneof![
            6 - taken => Just(0_u8), taken => Just(1), taken => Just(2), 6 - taken => Just(3)
        ];
        let elements = vec((wear, availability), (luns * per_lun) as usize);
        // Some LUNs are worn more than others.
        let more = prop_oneof![Just(0), Just(1), Just(30_u32)];
        (elements, more, 0..=per_lun + 1).prop_map(move |(mut elements, more, needed)| {
            for (lun, of_lun) in (0..).zip(elements.chunks_exact_mut(per_lun as usize)) {
                of_lun.iter_mut().for_each(|of| of.0 += more * lun);
            }
            (luns, elements, needed)
        })
    })
}

/// An allocator in a given state, by what happens to elements in a drive.
fn allocator(luns: u32, elements: &[(u32, u8)]) -> Allocator {
    let count = u32::try_from(elements.len()).expect("some dozens");
    let mut allocator = Allocator::new(luns, count / luns);
    let all = allocator.allocate(count / luns, &mut Vec::new());
    assert_eq!(all, Ok(()));
    for (&(wear, availability), id) in elements.iter().zip((0..count).map(ElementId)) {
        for _ in 0..wear {
            allocator.erased(id);
        }
        match availability {
            0 => allocator.release(id),
            1 => {}
            2 => allocator.write(id),
            _ => {
                allocator.write(id);
                allocator.release(id);
            }
        }
        assert_eq!(allocator.availability(id) as u8, availability);
        assert_eq!(allocator.wear(id), wear);
    }
    allocator
}

/// Allocates, checks (1) and (2) of what comes out, and returns its total wear
/// and how many elements are of each LUN.
fn allocate(
    allocator: &mut Allocator,
    per_lun: u32,
    call: impl FnOnce(&mut Allocator, &mut Vec<ElementId>) -> Result<(), Exhausted>,
) -> Option<(u64, Vec<u32>)> {
    let before = allocator.clone();
    let mut out = Vec::new();
    if call(allocator, &mut out).is_err() {
        assert_eq!(*allocator, before);
        return None;
    }
    assert!(out.is_sorted_by_key(|id| id.0 / allocator.elements_per_lun()));
    let mut distinct = out.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), out.len(), "an element is selected twice");
    assert_eq!(out.len(), (allocator.luns() * per_lun) as usize);
    let mut of_luns = vec![0; allocator.luns() as usize];
    for &id in &out {
        assert!(before.availability(id).is_available());
        assert_eq!(allocator.availability(id), Availability::Allocated);
        of_luns[(id.0 / allocator.elements_per_lun()) as usize] += 1;
    }
    // Nothing else is different, and what was put aside is back in its place.
    for id in (0..before.luns() * before.elements_per_lun()).map(ElementId) {
        if !distinct.contains(&id) {
            assert_eq!(allocator.availability(id), before.availability(id));
        }
    }
    let (luns, elements_per_lun) = (before.luns(), before.elements_per_lun());
    let restored = Allocator::restore(luns, elements_per_lun, &allocator.save());
    assert_eq!(restored.as_ref(), Ok(&*allocator));
    let wear = out.iter().map(|&id| u64::from(before.wear(id))).sum();
    Some((wear, of_luns))
}

/// Runs a test on thousands of instances, and makes sure that many of them have
/// a solution and many do not.
fn on_instances<S: Strategy>(strategy: S, test: impl Fn(S::Value) -> bool) {
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(INSTANCES)
    });
    let feasible = Cell::new(0);
    let result = runner.run(&strategy, |instance| {
        feasible.set(feasible.get() + u32::from(test(instance)));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}\n{runner}");
    }
    let share = f64::from(feasible.get()) / f64::from(INSTANCES);
    assert!((0.2..0.8).contains(&share), "{share} have a solution");
}

#[test]
fn chunks_of_least_wear() {
    on_instances(used_drive(), |(luns, elements, per_lun)| {
        let mut allocator = allocator(luns, &elements);
        let least = Instance::of(&allocator, per_lun).chunks();
        let allocated = allocate(&mut allocator, per_lun, |allocator, out| {
            allocator.allocate(per_lun, out)
        });
        assert_eq!(allocated.as_ref().map(|of| of.0), least);
        // Constraint (3).
        let is_even = |of: &(u64, Vec<u32>)| of.1.iter().all(|&of_lun| of_lun == per_lun);
        assert!(allocated.iter().all(is_even));
        least.is_some()
    });
}

#[test]
fn stripes_of_least_wear() {
    on_instances(used_drive(), |(luns, elements, per_lun)| {
        // As many elements, in one group: more to choose from.
        let mut allocator = allocator(1, &elements);
        let z = per_lun * luns;
        let least = Instance::of(&allocator, z).stripes();
        let allocated = allocate(&mut allocator, z, |allocator, out| {
            allocator.allocate(z, out)
        });
        assert_eq!(allocated.map(|of| of.0), least);
        least.is_some()
    });
}

/// No weight, weights about as large as what is saved, and one that nothing is.
fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 1..20_u32, 20..800_u32, Just(10_000_000)]
}

#[test]
fn less_wear_for_less_parallelism() {
    let uneven = Cell::new(0);
    on_instances(
        (used_drive(), weight()),
        |((luns, elements, per_lun), weight)| {
            let mut allocator = allocator(luns, &elements);
            let instance = Instance::of(&allocator, per_lun);
            let (least, strict) = (instance.relaxed(weight), instance.chunks());
            let allocated = allocate(&mut allocator, per_lun, |allocator, out| {
                allocator.allocate_relaxed(per_lun, weight, out)
            });
            let price = |of: &(u64, Vec<u32>)| {
                of.0 + u64::from(weight) * u64::from(of.1.iter().copied().max().unwrap_or(0))
            };
            assert_eq!(allocated.as_ref().map(price), least);
            if let (Some(_), Some((_, of_luns))) = (strict, &allocated) {
                uneven.set(uneven.get() + u32::from(of_luns.iter().any(|&of| of != per_lun)));
            }
            // With a weight beyond all wear it is the paper's problem, where that
            // has a solution.
            if let (10_000_000, Some(strict), Some(allocated)) = (weight, strict, allocated) {
                assert_eq!(allocated, (strict, vec![per_lun; luns as usize]));
            }
            least.is_some()
        },
    );
    assert!(
        uneven.get() > INSTANCES / 20,
        "{uneven:?} could be even, and are not"
    );
}

/// What a zone does next in a drive that is used for a while.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A zone is allocated, and this many of its elements are written.
    Open { written: usize },
    /// The zone at this place of a list of zones is finished.
    Finish(usize),
    /// The zone at this place of a list of zones is reset.
    Reset(usize),
    /// An element is erased in the background, if it is invalid.
    Erase(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..9_usize).prop_map(|written| Step::Open { written }),
        2 => any::<usize>().prop_map(Step::Finish),
        4 => any::<usize>().prop_map(Step::Reset),
        2 => any::<u32>().prop_map(Step::Erase),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    /// Every allocation of a drive's life, not only the first.
    #[test]
    fn a_drive_in_use_keeps_to_least_wear(
        luns in 1..5_u32,
        per_lun in 1..4_u32,
        zones in 1..5_u32,
        steps in vec(step(), 1..80),
    ) {
        let elements_per_lun = per_lun * zones + 1;
        let mut allocator = Allocator::new(luns, elements_per_lun);
        let mut standing: Vec<Vec<ElementId>> = Vec::new();
        for step in steps {
            match step {
                Step::Open { written } => {
                    let least = Instance::of(&allocator, per_lun).chunks();
                    let mut out = Vec::new();
                    let before = allocator.clone();
                    let is_solved = allocator.allocate(per_lun, &mut out).is_ok();
                    let wear = out.iter().map(|&id| u64::from(before.wear(id))).sum();
                    prop_assert_eq!(is_solved.then_some(wear), least);
                    for &id in out.iter().take(written) {
                        if allocator.is_stale(id) {
                            allocator.erased(id);
                        }
                        allocator.write(id);
                    }
                    if is_solved {
                        standing.push(out);
                    }
                }
                Step::Finish(at) if !standing.is_empty() => {
                    let at = at % standing.len();
                    standing[at].retain(|&id| {
                        let is_written = allocator.availability(id) == Availability::Valid;
                        if !is_written {
                            allocator.release(id);
                        }
                        is_written
                    });
                }
                Step::Reset(at) if !standing.is_empty() => {
                    let at = at % standing.len();
                    for id in standing.swap_remove(at) {
                        allocator.release(id);
                    }
                }
                Step::Erase(id) => {
                    let id = ElementId(id % (luns * elements_per_lun));
                    if allocator.availability(id) == Availability::Invalid {
                        allocator.erased(id);
                    }
                }
                Step::Finish(_) | Step::Reset(_) => {}
            }
        }
    }
}

/// The solver itself, on instances that can be solved by trying everything.
#[test]
fn the_solver_is_right_about_small_instances() {
    let mut solved = 0;
    for case in 0..400_u32 {
        // Digits of the case number, in a mixed base.
        let (luns, per_lun) = (1 + case % 2, 1 + case / 2 % 3);
        let elements: Vec<(u32, u8)> = (0..luns * 4)
            .map(|n| {
                let mixed = (case * 97 + n * 31).wrapping_mul(2_654_435_761) >> 16;
                (mixed % 7, u8::try_from(mixed / 7 % 4).unwrap())
            })
            .collect();
        let instance = Instance {
            luns: luns as usize,
            wear: elements.iter().map(|element| element.0).collect(),
            availability: elements.iter().map(|element| element.1).collect(),
            per_lun: per_lun as usize,
        };
        let least = (0..1_u32 << elements.len())
            .filter(|selection| {
                let of_lun = |lun: u32| (selection >> (lun * 4) & 15).count_ones();
                let is_available = |n: usize| matches!(elements[n].1, 0 | 3);
                (0..luns).all(|lun| of_lun(lun) == per_lun)
                    && (0..elements.len()).all(|n| selection >> n & 1 == 0 || is_available(n))
            })
            .map(|selection| {
                (0..elements.len())
                    .filter(|n| selection >> n & 1 == 1)
                    .map(|n| u64::from(elements[n].0))
                    .sum()
            })
            .min();
        assert_eq!(instance.chunks(), least, "case {case}");
        solved += u32::from(least.is_some());
    }
    assert!((100..300).contains(&solved), "{solved} have a solution");
}
