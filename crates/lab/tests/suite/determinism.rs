//! Same seed, same bytes.

use super::support::{SMALL, points, run, with, written};

#[test]
fn two_runs_are_the_same() {
    assert!(written(SMALL, 7, 1) == written(SMALL, 7, 1));
}

#[test]
fn threads_change_nothing() {
    let one = written(SMALL, 7, 1);
    for threads in [2, 5] {
        assert!(one == written(SMALL, 7, threads), "{threads} threads");
    }
}

#[test]
fn another_seed_gives_other_results() {
    let (a, b) = (written(SMALL, 1, 2), written(SMALL, 2, 2));
    for (a, b) in a.iter().zip(&b) {
        assert_ne!(a, b);
    }
}

/// Without anything drawn the seed does not matter, but for its own mention.
#[test]
fn the_seed_decides_nothing_else() {
    let text = with(SMALL, "jitter = \"1us\"\nstart_spread = \"50us\"\n", "");
    let text = with(&text, "shuffled = true\n", "");
    let text = with(
        &text,
        "queue_depth = \"$x\"\n",
        "queue_depth = \"$x\"\nrandom = false\n",
    );
    let (a, b) = (written(&text, 1, 1), written(&text, 2, 1));
    assert_eq!(a[1], b[1]);
    assert_eq!(a[3], b[3]);
}

/// A point's randomness is its own: leaving others out does not change it.
#[test]
fn a_point_does_not_depend_on_its_neighbours() {
    let all = run(SMALL, 7, 2).unwrap();
    let fewer = run(
        &with(SMALL, "values = [1, 2, 4]", "values = [4, 2]").replace("x = 4", "x = 2"),
        7,
        2,
    );
    let fewer = fewer.unwrap();
    assert_eq!(fewer.len(), 4);
    for result in &fewer {
        let same = all
            .iter()
            .find(|one| one.series == result.series && one.x == result.x);
        assert_eq!(format!("{same:?}"), format!("{:?}", Some(result)));
    }
}

/// Results come in the order of the file, whatever order they were run in.
#[test]
fn results_keep_the_order_of_the_points() {
    let order: Vec<_> = run(SMALL, 1, 4)
        .unwrap()
        .iter()
        .map(|result| (result.series.clone(), result.x.text.clone()))
        .collect();
    let points = points(SMALL, &[]).unwrap();
    let expected: Vec<_> = points
        .iter()
        .map(|point| (point.series().to_owned(), point.x().text.clone()))
        .collect();
    assert_eq!(order, expected);
    assert_eq!(order.len(), 6);
    assert_eq!(order[1], ("beside resets".to_owned(), "1".to_owned()));
}
