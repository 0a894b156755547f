//! Where one can start from: figures of the five papers, and experiments to play with.

use serde::Serialize;
use zonelab_lab::library;

/// A starting point.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Start {
    /// The id of a built-in experiment.
    pub id: &'static str,
    /// Where it is from.
    pub group: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// What to try.
    pub hint: &'static str,
    /// With the settings of its `[quick]`.
    pub quick: bool,
    /// Settings that make it short enough to watch.
    pub set: &'static [&'static str],
}

const CONFZNSPP: &str = "ConfZNS++ (SYSTOR '24)";
const SILENTZNS: &str = "SilentZNS";
const PREEMPTIVE: &str = "Preemptive zone reset (Electronics 12)";
const ZN540: &str = "ZN540 characterisation (CLUSTER '23)";
const THESIS: &str = "ZNS in a user-space driver (thesis)";

/// All of them; the first is the one that a page begins with.
const STARTS: &[Start] = &[
    Start {
        id: "finish-on-read",
        group: "To play with",
        title: "Random reads beside a finish",
        hint: "Move the granularity of the finish: reads gain what it loses.",
        quick: false,
        set: &["axis.values=[1, 4, 16, 64]", "job.0.runtime=500ms"],
    },
    Start {
        id: "reset-under-reads",
        group: "To play with",
        title: "Reads beside resets",
        hint: "Try resets that are asynchronous, and ones that are preemptive.",
        quick: false,
        set: &[],
    },
    Start {
        id: "C9a",
        group: CONFZNSPP,
        title: "Figure 9a: how long a finish takes",
        hint: "Each series has a granularity of its own; try the design \"metadata\".",
        quick: true,
        set: &[],
    },
    Start {
        id: "C9b",
        group: CONFZNSPP,
        title: "Figure 9b: how long a reset takes",
        hint: "Change how long an erasure takes.",
        quick: true,
        set: &[],
    },
    Start {
        id: "C10b",
        group: CONFZNSPP,
        title: "Figure 10b: finish on read",
        hint: "Half a second of each point, where the command runs three minutes.",
        quick: false,
        set: &[
            "axis.values=[1, 8, 64]",
            "job.0.runtime=500ms",
            "job.1.ramp=100ms",
            "job.1.runtime=500ms",
            "job.2.ramp=100ms",
        ],
    },
    Start {
        id: "C11b",
        group: CONFZNSPP,
        title: "Figure 11b: asynchronous reset on write",
        hint: "Compare with erasure in the background.",
        quick: true,
        set: &[],
    },
    Start {
        id: "S3a",
        group: SILENTZNS,
        title: "Figure 3a: write amplification of finish",
        hint: "The series are mappings; chunks of fewer blocks waste less.",
        quick: true,
        set: &[],
    },
    Start {
        id: "P2",
        group: PREEMPTIVE,
        title: "Figure 2: erasure of a zone against its size",
        hint: "Change how long the erasure of a block takes.",
        quick: true,
        set: &[],
    },
    Start {
        id: "Z9",
        group: ZN540,
        title: "Observation 9: open, close, and opening by a write",
        hint: "A profile of a real drive, fitted once for all of its figures.",
        quick: true,
        set: &[],
    },
    Start {
        id: "Z10a",
        group: ZN540,
        title: "Figure 5a: reset against occupancy",
        hint: "Finished zones take longer to reset on this drive.",
        quick: true,
        set: &[],
    },
    Start {
        id: "V2",
        group: THESIS,
        title: "Figures 5.2 and 5.3: random reads, queue depth and threads",
        hint: "Without the driver for PCIe, which is not there in a browser, and shortened.",
        quick: true,
        set: &[
            "host.via=direct",
            "axis.values=[1, 8, 64]",
            "job.0.runtime=50ms",
            "job.1.runtime=50ms",
            "job.2.runtime=20ms",
        ],
    },
];

/// All starting points.
#[must_use]
pub fn starts() -> &'static [Start] {
    STARTS
}

/// The text of the experiment of a starting point.
pub(crate) fn text(id: &str) -> Option<&'static str> {
    library::text(id).or_else(|| library::example(id))
}
