//! The observations of the study, and when each holds on a drive.
//!
//! An observation is a few effects with a bound each. A bound is where a reader would say
//! that there is an effect at all, not what the study measured on its drive: that stands
//! beside it.

use serde::Serialize;

use super::effect::{Effect, Verdict};
use super::facts::Facts;
use super::samples::Samples;
use super::suite::REWRITES;

/// What counts as an effect: a twentieth.
const SOME: f64 = 1.05;
/// What counts as lower at all: of stacks on slow media little is left.
const LOWER: f64 = 1.001;
/// What counts as none.
const NONE: f64 = 0.05;
/// Throughputs that are the same: those of two ways to fill a drive.
const SAME: f64 = 0.1;
/// A throughput that is as good as constant: its variation over seconds.
const STEADY: f64 = 0.1;
/// An operation is marginal that takes less than so many writes.
const MARGINAL: f64 = 2.0;

/// An observation of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// Its number, from 1.
    pub number: u8,
    /// What it says, in short.
    pub says: &'static str,
}

/// Every observation, in their order.
pub(super) const ALL: [Observation; 13] = [
    says(1, "the logical block format matters for writes and appends"),
    says(
        2,
        "a user-space stack has the lowest latency, mq-deadline the highest",
    ),
    says(
        3,
        "throughput of writes and appends depends on the request size",
    ),
    says(4, "writes have a lower latency than appends"),
    says(5, "one zone scales further than many do"),
    says(6, "appends do not care: one zone or many"),
    says(7, "in one zone reads scale best, then writes, then appends"),
    says(
        8,
        "from 8 KiB on appends in one zone and writes in many reach the limit",
    ),
    says(
        9,
        "explicit and implicit opens are alike; opening and closing is marginal",
    ),
    says(10, "reset and finish depend on how full a zone is"),
    says(11, "throughput is stable beside writes and resets"),
    says(12, "resets do not slow reads, writes or appends"),
    says(13, "reads, writes and appends slow resets"),
];

const fn says(number: u8, says: &'static str) -> Observation {
    Observation { number, says }
}

/// A recommendation of the study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// Its number, from 1.
    pub number: u8,
    /// What it says.
    pub says: &'static str,
    /// Whether it follows for the drive.
    pub verdict: Verdict,
    /// From which of the observations.
    pub from: &'static [u8],
}

/// A number that an observation is judged by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// What it is.
    pub what: String,
    /// The number; `None`: nothing completed there.
    pub effect: Option<Effect>,
    /// What it has to be.
    pub bound: String,
    /// What the study has of its drive, as it would stand here.
    pub published: Option<f64>,
    /// Whether it is so.
    pub verdict: Verdict,
}

/// An observation on a drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The observation.
    #[serde(flatten)]
    pub observation: Observation,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Why it was not measured, or what else to know.
    pub note: Option<String>,
    /// The numbers.
    pub evidence: Vec<Evidence>,
}

/// Judges everything that was measured on a drive.
#[must_use]
pub fn judge(facts: &Facts, samples: &Samples) -> (Vec<Judged>, Vec<Recommendation>) {
    let look = Look { facts, samples };
    let all: Vec<Judged> = ALL.iter().map(|one| look.judged(*one)).collect();
    let recommendations = recommendations(&all, &look);
    (all, recommendations)
}

/// What is looked at.
struct Look<'a> {
    facts: &'a Facts,
    samples: &'a Samples,
}

/// How a number is held against a bound.
#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
    AboutOne(f64),
    /// It is shown, and decides nothing.
    None,
}

impl Bound {
    fn judge(self, effect: &Effect) -> Verdict {
        match self {
            Self::AtLeast(bound) => effect.at_least(bound),
            Self::AtMost(bound) => effect.at_most(bound),
            Self::AboutOne(share) => effect.about_one(share),
            Self::None => Verdict::Holds,
        }
    }

    fn describe(self) -> String {
        match self {
            Self::AtLeast(bound) => format!("at least {bound}"),
            Self::AtMost(bound) => format!("at most {bound}"),
            Self::AboutOne(share) => format!("{} to {}", 1.0 - share, 1.0 + share),
            Self::None => "-".to_owned(),
        }
    }
}

fn evidence(
    what: impl Into<String>,
    effect: Option<Effect>,
    bound: Bound,
    published: Option<f64>,
) -> Evidence {
    Evidence {
        what: what.into(),
        verdict: match (effect, bound) {
            (Some(effect), bound) => bound.judge(&effect),
            (None, Bound::None) => Verdict::Holds,
            (None, _) => Verdict::NotMeasured,
        },
        effect,
        bound: bound.describe(),
        published,
    }
}

impl Look<'_> {
    fn judged(&self, observation: Observation) -> Judged {
        let evidence = self.evidence(observation.number);
        let verdicts = evidence.iter().map(|one| one.verdict);
        let verdict = match observation.number {
            // "Can have": one of the two is enough.
            1 => verdicts.min().unwrap_or(Verdict::NotMeasured),
            _ => Verdict::all(verdicts),
        };
        Judged {
            note: self.note(observation.number, verdict),
            observation,
            verdict,
            evidence,
        }
    }

    fn evidence(&self, number: u8) -> Vec<Evidence> {
        match number {
            1 => self.formats(),
            2 => self.stacks(),
            3 => self.sizes(),
            4 => self.append_against_write(),
            5 => self.one_zone_or_many(),
            6 => self.appends(),
            7 => self.who_scales(),
            8 => self.bandwidth(),
            9 => self.opening(),
            10 => self.occupancy(),
            11 => self.stability(),
            12 => self.beside_resets(),
            13 => self.resets_beside(),
            _ => Vec::new(),
        }
    }

    /// What a reader has to know of a verdict.
    fn note(&self, number: u8, verdict: Verdict) -> Option<String> {
        let is_real = self.facts.reach.is_real();
        let host = self.host_note().filter(|_| (5..=8).contains(&number));
        let note = match (number, is_real, verdict) {
            (1, true, _) => "another format would destroy everything that the drive holds",
            (2, true, _) => "this host has one stack, the one that the drive is reached by",
            (5, true, _) => {
                let own = "of reads alone: a zone takes one write at a time without a scheduler";
                return Some(with(own, host));
            }
            (7, true, _) => {
                let own = "writes go one to a zone: without a scheduler a zone takes no more";
                return Some(with(own, host));
            }
            (6 | 8, true, _) if host.is_some() => return host,
            (13, true, _) => {
                "reads do not count: the study's effect of them is that of its host, whose threads \
                 shared a core"
            }
            (11, ..) => "of the zoned drive; its comparison with a conventional one is not made",
            (4 | 9, true, Verdict::Unclear | Verdict::DoesNotHold) => {
                return self.floor_note();
            }
            (1, false, Verdict::NotMeasured) => "its profile takes no other format",
            (.., Verdict::NotMeasured) => {
                "nothing completed, or took any time, that it could be judged by"
            }
            _ => return None,
        };
        Some(note.to_owned())
    }

    /// What the host hides of many zones side by side.
    fn host_note(&self) -> Option<String> {
        let (threads, cores) = (self.facts.open_zones, self.facts.cores?);
        (threads > cores).then(|| {
            format!(
                "up to {threads} threads shared {cores} cores of this host: what many zones come \
                 to may be its limit and not the drive's"
            )
        })
    }

    /// How small an effect may be that the way to the drive hides.
    fn floor_note(&self) -> Option<String> {
        let open = self.samples.at("opening", "open", 1.0, "lat_min_us");
        let floor = open.iter().copied().fold(f64::INFINITY, f64::min);
        floor.is_finite().then(|| {
            format!(
                "the study's drive has differences of 2 to 4 us here, and by this way no command \
                 took less than {floor:.1} us: they may be hidden"
            )
        })
    }

    /// One metric of a series as a multiple of the same of another, at one point each.
    fn ratio(&self, metric: &str, part: &str, of: (&str, f64), to: (&str, f64)) -> Option<Effect> {
        let of = self.samples.at(part, of.0, of.1, metric);
        let to = self.samples.at(part, to.0, to.1, metric);
        Effect::ratio(&of, &to)
    }

    /// The peak of one curve as a multiple of that of another.
    fn peaks(&self, metric: &str, part: &str, (of, to): (&str, &str)) -> Option<Effect> {
        let peak = |series| self.samples.peak(part, series, metric);
        Effect::ratio(&peak(of), &peak(to))
    }

    fn formats(&self) -> Vec<Evidence> {
        let published = [("write", 2.184), ("append", 1.718)];
        let of = |(work, published): (&str, f64)| {
            let (small, large) = (format!("{work} 512 B"), format!("{work} 4096 B"));
            let ratio = self.ratio("lat_mean_us", "formats", (&small, 1.0), (&large, 1.0));
            let what = format!("{work}s of a block of 512 B take, times those of 4 KiB");
            evidence(what, ratio, Bound::AtLeast(SOME), Some(published))
        };
        published.map(of).into()
    }

    fn stacks(&self) -> Vec<Evidence> {
        let ratio = |of, to| self.samples_of_stacks(of, to);
        vec![
            evidence(
                "a write through the kernel takes, times one by SPDK",
                ratio(("io_uring, none", "io_uring"), ("SPDK", "SPDK")),
                Bound::AtLeast(LOWER),
                Some(1.111),
            ),
            evidence(
                "with mq-deadline, times without a scheduler",
                ratio(
                    ("io_uring, mq-deadline", "io_uring"),
                    ("io_uring, none", "io_uring"),
                ),
                Bound::AtLeast(LOWER),
                Some(1.147),
            ),
        ]
    }

    fn samples_of_stacks(&self, of: (&str, &str), to: (&str, &str)) -> Option<Effect> {
        let values = |job| self.samples.of_job("stacks", job, 1.0, "lat_mean_us");
        Effect::ratio(&values(of), &values(to))
    }

    fn sizes(&self) -> Vec<Evidence> {
        let of = |(work, published): (&str, f64)| {
            let least = self.samples.curve("sizes", work, "mib_s");
            let least = least.first().map(|(_, values)| values.clone());
            let peak = self.samples.peak("sizes", work, "mib_s");
            let ratio = least.and_then(|least| Effect::ratio(&peak, &least));
            let what = format!("{work}s: the best bandwidth, times that of the smallest requests");
            evidence(what, ratio, Bound::AtLeast(1.25), Some(published))
        };
        [("write", 3.45), ("append", 4.45)].map(of).into()
    }

    fn append_against_write(&self) -> Vec<Evidence> {
        let curve = self.samples.curve("sizes", "write", "lat_mean_us");
        let small = curve.iter().map(|(x, _)| *x).filter(|x| *x <= 8192.0);
        let of = |x: f64| {
            let ratio = self.ratio("lat_mean_us", "sizes", ("append", x), ("write", x));
            let what = format!("an append of {} KiB takes, times a write", x / 1024.0);
            let published = if x < 8192.0 { 1.306 } else { 1.247 };
            evidence(what, ratio, Bound::AtLeast(SOME), Some(published))
        };
        small.map(of).collect()
    }

    fn one_zone_or_many(&self) -> Vec<Evidence> {
        let mut all = vec![evidence(
            "reads: the most in one zone, times the most in many",
            self.peaks("kiops", "scaling", ("read deep", "read wide")),
            Bound::AtLeast(SOME),
            Some(3.535),
        )];
        if !self.facts.reach.is_real() {
            all.push(evidence(
                "writes: the most in one zone (merged by mq-deadline), times the most in many",
                self.peaks("kiops", "scaling", ("write merged", "write wide")),
                Bound::AtLeast(SOME),
                Some(1.575),
            ));
        }
        all
    }

    fn appends(&self) -> Vec<Evidence> {
        let wide = self.samples.curve("scaling", "append wide", "kiops");
        let levels = wide.iter().map(|(x, _)| *x);
        let levels: Vec<f64> = levels.filter(|x| [4.0, 8.0].contains(x)).collect();
        let of = |x: &f64| {
            let ratio = self.ratio("kiops", "scaling", ("append deep", *x), ("append wide", *x));
            let what = format!("{x} appends in one zone, times as many in a zone each");
            evidence(what, ratio, Bound::AboutOne(SAME), Some(1.0))
        };
        let mut all: Vec<Evidence> = levels.iter().map(of).collect();
        all.push(evidence(
            "the most in one zone, times the most in many",
            self.peaks("kiops", "scaling", ("append deep", "append wide")),
            Bound::AboutOne(SAME),
            Some(1.04),
        ));
        all
    }

    fn who_scales(&self) -> Vec<Evidence> {
        let (write, published) = match self.facts.reach.is_real() {
            true => ("write wide", (2.28, 1.38)),
            false => ("write merged", (1.446, 2.13)),
        };
        vec![
            evidence(
                "the most reads in one zone, times the most writes",
                self.peaks("kiops", "scaling", ("read deep", write)),
                Bound::AtLeast(SOME),
                Some(published.0),
            ),
            evidence(
                "the most writes, times the most appends in one zone",
                self.peaks("kiops", "scaling", (write, "append deep")),
                Bound::AtLeast(SOME),
                Some(published.1),
            ),
        ]
    }

    fn bandwidth(&self) -> Vec<Evidence> {
        // The limit is the most that was seen of any way to write.
        let ways = [
            "write 8 KiB",
            "append 8 KiB",
            "write 16 KiB",
            "append 16 KiB",
        ];
        let peaks = ways.map(|series| self.samples.peak("bandwidth", series, "mib_s"));
        let large = ["write", "append"].map(|work| self.samples.peak("sizes", work, "mib_s"));
        let all: Vec<&Vec<f64>> = peaks
            .iter()
            .chain(&large)
            .filter(|of| !of.is_empty())
            .collect();
        let repeats = all.iter().map(|values| values.len()).min().unwrap_or(0);
        let limit: Vec<f64> = (0..repeats)
            .map(|repeat| all.iter().map(|of| of[repeat]).fold(0.0, f64::max))
            .collect();
        let pairs = ways.iter().zip(&peaks);
        let of = |(way, peak): (&&str, &Vec<f64>)| {
            let place = if way.starts_with("write") {
                "in many zones"
            } else {
                "in one zone"
            };
            let (work, size) = way.split_once(' ').unwrap_or((way, ""));
            let what = format!("{work}s of {size} {place}: the best, of the drive's limit");
            let share = Effect::ratio(peak, &limit);
            evidence(what, share, Bound::AtLeast(1.0 - SAME), Some(1.0))
        };
        pairs.map(of).collect()
    }

    fn opening(&self) -> Vec<Evidence> {
        let alike = |(work, published): (&str, f64)| {
            let (explicit, implicit) = (format!("{work}, explicit"), format!("{work}, implicit"));
            let ratio = self.ratio("lat_mean_us", "opening", (&explicit, 1.0), (&implicit, 1.0));
            let what =
                format!("{work}s take in a zone that was opened explicitly, times implicitly");
            evidence(what, ratio, Bound::AboutOne(NONE), Some(published))
        };
        let marginal = |(work, published): (&str, f64)| {
            let ratio = self.ratio(
                "lat_mean_us",
                "opening",
                (work, 1.0),
                ("write, implicit", 1.0),
            );
            let what = format!("to {work} a zone takes, times a write");
            evidence(what, ratio, Bound::AtMost(MARGINAL), Some(published))
        };
        let alike = [("write", 1.0), ("append", 1.0)].map(alike);
        let marginal = [("open", 0.84), ("close", 0.97)].map(marginal);
        alike.into_iter().chain(marginal).collect()
    }

    /// The ends of a curve, as a ratio: of the first point to the last.
    fn ends(&self, part: &str, series: &str) -> Option<(Vec<f64>, Vec<f64>)> {
        let curve = self.samples.curve(part, series, "lat_mean_us");
        let (first, last) = (curve.first()?, curve.last()?);
        (curve.len() > 1).then(|| (first.1.clone(), last.1.clone()))
    }

    fn occupancy(&self) -> Vec<Evidence> {
        let reset = self.ends("resets", "reset");
        let finish = self.ends("finishes", "finish");
        vec![
            evidence(
                "to reset a full zone takes, times one with a block",
                reset.and_then(|(block, full)| Effect::ratio(&full, &block)),
                Bound::AtLeast(SOME),
                Some(9.6),
            ),
            evidence(
                "to finish a zone that lacks a block takes, of one with a block",
                finish.and_then(|(block, full)| Effect::ratio(&full, &block)),
                Bound::AtMost(0.95),
                Some(0.0034),
            ),
        ]
    }

    fn stability(&self) -> Vec<Evidence> {
        let of = |(job, what, published): (&str, &str, Option<f64>)| {
            let values = self
                .samples
                .of_job("stability", ("beside", job), 1.0, "mib_s_cv");
            let effect = Effect::of(&values);
            evidence(what, effect, Bound::AtMost(STEADY), published)
        };
        let writes = "variation of the writes' bandwidth over seconds, as a share of its mean";
        let reads = "the same of reads beside them";
        [("append", writes, Some(0.013)), ("read", reads, None)]
            .map(of)
            .into()
    }

    /// Of one job, what it is beside another as a multiple of alone.
    fn beside(&self, metric: &str, of: (&str, &str), alone: (&str, &str)) -> Option<Effect> {
        let values = |job| self.samples.of_job("beside-resets", job, 1.0, metric);
        Effect::ratio(&values(of), &values(alone))
    }

    fn beside_resets(&self) -> Vec<Evidence> {
        let of = |(work, published): (&str, f64)| {
            let (beside, alone) = (format!("{work} beside"), format!("{work} alone"));
            let ratio = self.beside("lat_p95_us", (&beside, &beside), (&alone, &alone));
            let what = format!("P95 of {work}s beside resets, times alone");
            evidence(what, ratio, Bound::AtMost(1.0 + NONE), Some(published))
        };
        let mut all: Vec<Evidence> = [("read", 1.0), ("write", 1.007), ("append", 0.997)]
            .map(of)
            .into();
        let of = |series| {
            self.samples
                .by_time("beside-resets", (series, "read alone"))
        };
        all.push(evidence(
            "P95 by time of reads beside zones that are reset and written again, times alone",
            Effect::ratio(&of(REWRITES), &of("read alone")),
            Bound::AtMost(1.0 + NONE),
            None,
        ));
        all
    }

    fn resets_beside(&self) -> Vec<Evidence> {
        let of = |(work, published, bound): (&str, Option<f64>, Bound)| {
            let beside = format!("{work} beside");
            let ratio = self.beside("lat_p95_us", (&beside, "reset"), ("reset alone", "reset"));
            let what = format!("P95 of resets beside {work}s, times alone");
            evidence(what, ratio, bound, published)
        };
        let some = Bound::AtLeast(SOME);
        // Published of P95, on a host whose threads shared a core. The raw data say that the
        // drive by itself does not slow a reset beside reads, and by a third beside writes.
        let mut all = vec![
            of(("write", Some(1.78), some)),
            of(("append", Some(1.76), some)),
            of(("read", None, Bound::None)),
        ];
        if !self.facts.reach.is_real() {
            let values = |series| {
                self.samples
                    .of_job("shared-core", (series, "reset"), 1.0, "lat_p95_us")
            };
            let ratio = Effect::ratio(&values("read beside"), &values("reset alone"));
            let what = "the same on a host whose threads share a core, as in the study";
            all.push(evidence(what, ratio, some, Some(1.56)));
        }
        all
    }
}

/// A note, and another one if there is one.
fn with(own: &str, other: Option<String>) -> String {
    other.map_or_else(|| own.to_owned(), |other| format!("{own}; {other}"))
}

/// What follows for the drive.
fn recommendations(all: &[Judged], look: &Look<'_>) -> Vec<Recommendation> {
    let verdict = |numbers: &[u8]| {
        let of = all
            .iter()
            .filter(|one| numbers.contains(&one.observation.number));
        Verdict::all(of.map(|one| one.verdict))
    };
    let follows = |number, says, from: &'static [u8]| Recommendation {
        number,
        says,
        verdict: verdict(from),
        from,
    };
    let resets = look.ends("resets", "reset");
    let finishes = look.ends("finishes", "finish");
    let costly = resets.zip(finishes).and_then(|(reset, finish)| {
        // A finish of a nearly empty zone against a reset of a full one.
        Effect::ratio(&finish.0, &reset.1)
    });
    let avoid = costly.map_or(Verdict::NotMeasured, |ratio| ratio.at_least(SOME));
    vec![
        follows(1, "write instead of append where latency counts", &[4]),
        follows(
            2,
            "prefer one zone to many, with requests of 8 KiB and more: for reads and appends; \
             writes go to many zones",
            &[5, 8],
        ),
        Recommendation {
            number: 3,
            says: "avoid to finish zones, most of all those that are nearly empty",
            verdict: avoid,
            from: &[10],
        },
        follows(
            4,
            "measure the peak and provide for it; there is no need to allow for collection by \
             the drive",
            &[11],
        ),
        follows(5, "reset beside I/O: it does not suffer from it", &[12]),
    ]
}
