//! Cases in which a relation is known not to hold, each with its reason.

use crate::case::Case;

/// Cases in which a relation need not hold.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// The relation.
    pub relation: &'static str,
    /// Which cases these are, and why.
    pub why: &'static str,
    /// Whether a case is one of them.
    pub covers: fn(&Case) -> bool,
}

/// All of them: as few as can be.
pub const OPEN: &[Open] = &[
    Open {
        relation: "reads-as-expected",
        why: "`media.page_register = \"hold\"` with `channel_arbitration = \"arrival\"`: a die keeps \
              its page until transfers are over whose places in line are before its own, and whose \
              dies still read; up to 63 % fewer",
        covers: |case| {
            let drive = &case.drive;
            drive.is("media.page_register", "hold")
                && drive.is("media.channel_arbitration", "arrival")
        },
    },
    Open {
        relation: "busy-is-elapsed",
        why: "with a write buffer, or resets that are asynchronous: the time of an operation counts \
              when a die has it ahead of it, and a run ends with its last completion",
        covers: |case| {
            let drive = &case.drive;
            drive.is("write_buffer.mode", "write-back") || drive.is("reset.timing", "asynchronous")
        },
    },
    Open {
        relation: "finish-is-monotone",
        why: "`media.planes = \"single\"` with `zones.stripe = \"plane-first\"`: device writes of the \
              fill that begin within a die go to two dies, and others to one, which is twice as long",
        covers: |case| {
            case.drive.is("media.planes", "single") && case.drive.is("zones.stripe", "plane-first")
        },
    },
    Open {
        relation: "declared-is-written",
        why: "writes choose their dies (`write_buffer.placement = \"least-work\"`), and zones that are \
              declared full have theirs in order: up to 28 % slower",
        covers: |case| case.drive.is("write_buffer.mode", "write-back"),
    },
    Open {
        relation: "endless-drain",
        why: "an SLC cache: units that leave the buffer a nanosecond apart find its blocks in another \
              order; by 0.2 %",
        covers: |case| case.drive.get("slc_cache.mode").is_some(),
    },
    Open {
        relation: "over-pcie",
        why: "`front_end.costs.variation`: costs are drawn in the order in which the front end turns \
              to commands, which is not always the same with the driver in between; why is not \
              understood; by 0.02 %, in 7 of 5,000 profiles",
        covers: |case| case.drive.get("front_end.costs.variation").is_some(),
    },
];

/// Whether it is known that a relation does not hold for a case.
#[must_use]
pub fn is_open(relation: &str, case: &Case) -> bool {
    let mut all = OPEN.iter().filter(|open| open.relation == relation);
    all.any(|open| (open.covers)(case))
}
