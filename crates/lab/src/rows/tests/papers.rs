//! Rows by their paper.

use super::*;

/// A point of a real drive, off by `error`.
fn of_drive(metric: &str, error: f64) -> Row {
    Row::new(
        "Z1",
        Kind::Drive,
        "s",
        (metric, "us"),
        100.0 * (1.0 + error),
    )
    .published(100.0)
    .judged()
}

fn statement(says: &str) -> Row {
    Row::new("Z1", Kind::Drive, "check", (says, ""), 2.0)
        .statement(Bound::AtMost(1.0))
        .judged()
}

#[test]
fn rows_match_or_are_off_or_are_only_shown() {
    let misfits = Misfits::parse(
        "m",
        "schema = 2\n[[misfit]]\nid = 'Z1'\nseries = 's'\nmetric = 'lat_p95_us'\ncause = 'c'\n\
         evidence = 'e'\n[[gap]]\nid = 'Z1'\nsays = 'open'\ntoday = 2\n\
         cause = 'not known: only that'\ntried = 't'\n[[gap]]\nid = 'Z1'\nsays = 'half open'\n\
         today = 2\ncause = 'It is so. Why is not known.'\ntried = 't'\n[[gap]]\nid = 'Z1'\n\
         says = 'explained'\ntoday = 2\ncause = 'c'\ntried = 't'\n",
    );
    let mut rows = vec![
        of_drive("kiops", 0.09),
        of_drive("kiops", 0.10),
        of_drive("lat_p99_us", 0.15),
        of_drive("lat_p99_us", 0.16),
        of_drive("lat_p95_us", 0.16),
        statement("open"),
        statement("half open"),
        statement("explained"),
        statement("fails"),
        of_drive("kiops", 9.0).shown("not judged"),
        Row::new("Z1", Kind::Drive, "s", ("kiops", "K"), 1.0).judged(),
    ];
    assert!(misfits.unwrap().apply(&mut rows, Scope::PART).is_empty());
    let all = PaperSummary::of_all(&rows);
    let [of] = all.as_slice() else {
        panic!("{all:?}");
    };
    let off = Off {
        percentiles: 2,
        values: 1,
        statements: 4,
        explained: 2,
    };
    assert_eq!((of.matching, of.off, of.stats.count), (2, off, 11));
    assert_eq!(of.paper.letter, 'Z');
}

/// Each result that is built in counts for the paper that its experiment names, or says that it
/// is left out by.
#[test]
fn every_result_is_of_a_paper() {
    for id in crate::library::ids() {
        let text = crate::library::text(id).unwrap();
        let source = text.lines().find(|line| line.starts_with("source = "));
        let source = source.unwrap_or_else(|| panic!("{id} has no source"));
        let paper = crate::catalogue::PAPERS.iter().find(|paper| paper.has(id));
        let words = match paper
            .unwrap_or_else(|| panic!("{id} is of no paper"))
            .letter
        {
            'C' => "ConfZNS++",
            'Z' => "CLUSTER'23",
            'P' => "Preemptive zone reset",
            'S' => "SilentZNS",
            _ => "thesis",
        };
        assert!(source.contains(words), "{id}: {source}");
    }
}
