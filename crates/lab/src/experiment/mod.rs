//! Experiment files: what is run, against which drive, and what it is compared with.
//!
//! An experiment is a TOML file. It names a drive, describes jobs, and lists
//! *series*: combinations of jobs and drive settings. Each series is run once
//! for each value of the *axis*; `$x` in a string of the drive, a job or the host
//! stands for that value, and `$name` for that of another axis. The published results
//! that a series is set beside come from a table of the reference data, from one of the
//! user, or stand in the file.
//!
//! `docs/experiments.md` explains every key by example.

mod axis;
mod blocks;
mod check;
mod ftl;
mod host;
mod listing;
mod matrix;
mod pace;
mod published;
mod read;
mod reference;
mod scheduler;
mod search;
mod soft;
mod statement;
mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use zonelab_config::units::fmt_size;
use zonelab_config::{Errors, Override, Problem, PutIn};
use zonelab_device::{NamespaceId, Nanos};
use zonelab_host::rate::{Counting, Limit};
use zonelab_host::workload::{Arrival, Fill, Stop};
use zonelab_kv::work::Kind;
use zonelab_ssd::faults::FaultPlan;

use crate::figure::Width;
use crate::kv::KvTemplate;
use crate::published::CellPlace;
use crate::reference::plausible::InFlight;

pub(crate) use axis::number_of;
pub use axis::{Axis, AxisValue, is_word, says_more_than_a_number};
pub use blocks::BlocksTemplate;
pub use ftl::FtlTemplate;
pub use host::{HostModel, SchedulerModel, SchedulerTemplate, StackModel, Via};
pub use matrix::{ExplainSpec, MatrixSpec};
pub(crate) use read::{LONGEST, time};
pub use reference::ReferenceFile;
pub use search::{MAX_BUDGET, PublishedSetting, SearchSpec};
pub use soft::SoftTemplate;

/// Readers of what other files have in common with experiments.
pub mod reading {
    pub use super::read::{tables, text};
    pub use super::search::{objective, weights};
}

/// An experiment, with the axis value of one point put in.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Name, as `reproduce` takes it.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Kind of its rows: `E`, `D` or `S`.
    pub kind: String,
    /// Where the published result stands.
    pub source: String,
    /// How often each point runs, with seeds of its own.
    pub repeats: u32,
    /// Profile of the drive: a built-in name or a file.
    pub profile: String,
    /// Settings of the drive that differ from the profile, for all series.
    pub drive: Vec<Override>,
    /// Faults of the drive.
    pub faults: Option<FaultPlan>,
    /// What varies along a series.
    pub axis: Axis,
    /// Axes for whose values every series is repeated: `series` has the repetitions.
    pub crossed: Vec<Axis>,
    /// The host, without a scheduler.
    pub host: HostModel,
    /// Name of the scheduler of series that choose none.
    pub scheduler: Option<String>,
    /// How the jobs of series that do not say it reach the drive.
    pub via: Via,
    /// The flash translation layer, for series that go through it.
    pub ftl: FtlTemplate,
    /// The schedulers that series choose from, besides those that go by their
    /// own names.
    pub schedulers: Vec<SchedulerTemplate>,
    /// The jobs that series choose from.
    pub jobs: Vec<JobTemplate>,
    /// The series.
    pub series: Vec<SeriesSpec>,
    /// A table of published results beside the file.
    pub reference: Option<ReferenceFile>,
    /// Which measurements are compared.
    pub compare: Vec<Compare>,
    /// Interference of one series with another.
    pub interference: Vec<Interference>,
    /// Differences between two series.
    pub differences: Vec<Difference>,
    /// The matrix that some of the jobs, series and interferences came from.
    pub matrix: Option<MatrixSpec>,
    /// The interference model on given points: nothing is run for these.
    pub worked: Vec<Worked>,
    /// Statements about our results that must hold.
    pub checks: Vec<Check>,
    /// Listings of zones that were published.
    pub listings: Vec<Listing>,
    /// What `--quick` makes of it.
    pub quick: Quick,
    /// How it is drawn: the panels of one figure.
    pub figures: Vec<FigureSpec>,
    /// What `zonelab search` looks for.
    pub search: Option<SearchSpec>,
}

/// What `--quick` makes of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quick {
    /// Settings of the file.
    pub set: Vec<Override>,
    /// The series that are run; empty: all.
    pub series: Vec<String>,
    /// Why it is left out, unless it is asked for by its id.
    pub skip: Option<String>,
}

impl Quick {
    /// Whether the series of this name is run.
    #[must_use]
    pub fn runs(&self, series: &str) -> bool {
        self.series.is_empty() || self.series.iter().any(|name| name == series)
    }
}

/// A job of an experiment: one or more threads doing the same.
#[derive(Clone, PartialEq)]
pub struct JobTemplate {
    /// Name, by which series choose it.
    pub name: String,
    /// What it does.
    pub work: WorkTemplate,
    /// Number of threads.
    pub threads: u32,
    /// The namespace that it names; `None`: it works in that of its point.
    pub namespace: Option<NamespaceId>,
    /// Zones of all threads together, counted within the namespace.
    pub zones: Range<u32>,
    /// Zones of each thread; `None`: an equal share.
    pub zones_per_thread: Option<u32>,
    /// Operations in flight, of each thread.
    pub queue_depth: u32,
    /// Bytes of one operation.
    pub block_bytes: u64,
    /// Limit on each thread.
    pub rate: Option<Limit>,
    /// Whether its operations are due at times of their own.
    pub arrival: Arrival,
    /// When operations count against it; `None`: as fio counts them.
    pub counting: Option<Counting>,
    /// Unmeasured time at the start.
    pub ramp: Nanos,
    /// When it ends.
    pub stop: Stop,
    /// When it ends, all end.
    pub ends_run: bool,
    /// Its operations are meant to find nothing to do.
    pub finds_nothing: bool,
    /// It starts this much after the others.
    pub start: Nanos,
    /// The storage stack that it uses instead of the host's.
    pub stack: Option<StackModel>,
    /// Bytes of one command, if writes are sent in several.
    pub command: Option<CommandSize>,
    /// Of finishes and resets: with the first zone again after the last.
    pub repeat: bool,
}

/// The text that results carry of their jobs: the first namespace and the
/// host's own stack go without saying, so that results that know no others
/// stay as they were.
impl fmt::Debug for JobTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            work,
            threads,
            namespace,
            zones,
            zones_per_thread,
            queue_depth,
            block_bytes,
            rate,
            arrival,
            counting,
            ramp,
            stop,
            ends_run,
            // Of what is said, not of what is run.
            finds_nothing: _,
            start,
            stack,
            command,
            repeat,
        } = self;
        let mut text = f.debug_struct("JobTemplate");
        text.field("name", name);
        text.field("work", work);
        text.field("threads", threads);
        if let Some(namespace) = namespace.filter(|nsid| *nsid != NamespaceId::FIRST) {
            text.field("namespace", &namespace);
        }
        text.field("zones", zones);
        text.field("zones_per_thread", zones_per_thread);
        text.field("queue_depth", queue_depth);
        text.field("block_bytes", block_bytes);
        text.field("rate", rate);
        if arrival.is_open() {
            text.field("arrival", arrival);
        }
        text.field("counting", counting);
        text.field("ramp", ramp);
        text.field("stop", stop);
        text.field("ends_run", ends_run);
        text.field("start", start);
        if let Some(stack) = stack {
            text.field("stack", stack);
        }
        if let Some(CommandSize { bytes, .. }) = command {
            text.field("command_bytes", bytes);
        }
        if *repeat {
            text.field("repeat", repeat);
        }
        text.finish()
    }
}

impl JobTemplate {
    /// Its operations in flight, of all threads together.
    #[must_use]
    pub fn in_flight(&self) -> InFlight {
        let threads = u64::from(self.threads);
        let most = threads * u64::from(self.queue_depth);
        let least = match (self.rate, &self.work) {
            (None, WorkTemplate::Read { .. } | WorkTemplate::Write { append: true, .. }) => most,
            // A zone takes one write at a time.
            (None, WorkTemplate::Write { .. }) => threads,
            _ => 0,
        };
        match self.arrival.is_open() {
            true => InFlight::Unknown,
            false => InFlight::Within { least, most },
        }
    }

    /// The namespace that it works in.
    #[must_use]
    pub fn nsid(&self) -> NamespaceId {
        self.namespace.unwrap_or(NamespaceId::FIRST)
    }

    /// Lets it work in a namespace.
    pub(crate) fn set_namespace(&mut self, nsid: NamespaceId) {
        self.namespace = Some(nsid);
        if let WorkTemplate::Kv(kv) = &mut self.work {
            kv.setup.files.namespace = nsid;
        }
    }
}

/// What a job does.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkTemplate {
    /// Writes or appends.
    Write {
        /// Appends.
        append: bool,
        /// All threads write to all zones, one of them at a time to each.
        shared: bool,
        /// Zones written side by side by one thread.
        open_zones: u32,
        /// Start over when the zones are full.
        repeat: bool,
        /// Zones are reset before their first write.
        reset_first: bool,
        /// Zones are opened explicitly before their first write.
        open_first: bool,
    },
    /// Reads.
    Read {
        /// At random.
        random: bool,
    },
    /// Finishes, each after a fill.
    Finish {
        /// Occupancy at the finish.
        fill: FillTemplate,
    },
    /// Finishes by writes of the host, each after a fill.
    SoftFinish {
        /// Occupancy at the finish.
        fill: FillTemplate,
        /// How.
        soft: SoftTemplate,
    },
    /// Resets, each after a fill.
    Reset {
        /// In random order.
        shuffled: bool,
        /// Occupancy at the reset.
        fill: FillTemplate,
    },
    /// Explicit opens.
    Open {
        /// What happens to the zone before.
        fill: FillTemplate,
    },
    /// Closes, each after a fill.
    Close {
        /// Occupancy at the close.
        fill: FillTemplate,
    },
    /// Reads or writes of blocks without zones.
    Blocks(BlocksTemplate),
    /// A key-value store and its clients.
    Kv(Box<KvTemplate>),
}

/// Bytes of a command, of which an operation has several.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandSize {
    pub(super) bytes: u64,
    /// What to say of it if it does not fit the drive.
    pub(super) at: Problem,
}

impl CommandSize {
    /// Logical blocks of a command.
    ///
    /// # Errors
    /// It is no multiple of the logical block, or more than a command may move.
    pub fn resolve(&self, lba_bytes: u32, max_transfer_bytes: u32) -> Result<u32, Problem> {
        let lba = u64::from(lba_bytes);
        let max = u64::from(max_transfer_bytes);
        let lbas = u32::try_from(self.bytes / lba).unwrap_or(u32::MAX);
        if self.bytes.is_multiple_of(lba) && self.bytes > 0 && self.bytes <= max {
            return Ok(lbas);
        }
        Err(Problem {
            what: format!(
                "{} is no size of a command of the drive",
                fmt_size(self.bytes)
            ),
            valid: format!(
                "{} to {}, in whole logical blocks of {lba_bytes} bytes",
                fmt_size(lba),
                fmt_size(max)
            ),
            ..self.at.clone()
        })
    }
}

/// What is done to a zone before what is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FillTemplate {
    /// Bytes, or parts per million of the zone's capacity, rounded up to a page.
    pub amount: Amount,
    /// Bytes of one write.
    pub block_bytes: u64,
    /// The zone is opened explicitly first.
    pub open_first: bool,
    /// The zone is finished after it is written.
    pub finish_first: bool,
    /// The drive is left alone then for this time.
    pub settle: Nanos,
}

/// An amount of a zone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Parts per million of the capacity, rounded up to a whole page.
    Ppm(u32),
    /// Logical blocks.
    Blocks(u64),
}

impl Default for Amount {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl FillTemplate {
    /// Whether nothing is done to a zone first.
    #[must_use]
    pub fn is_none(&self) -> bool {
        !self.writes() && !self.finish_first
    }

    /// Whether something is written to a zone.
    #[must_use]
    pub const fn writes(&self) -> bool {
        match self.amount {
            Amount::Bytes(bytes) => bytes > 0,
            Amount::Ppm(ppm) => ppm > 0,
            Amount::Blocks(blocks) => blocks > 0,
        }
    }

    /// The fill of a zone of `capacity_lbas` blocks of `lba_bytes` with pages of `page_bytes`.
    #[must_use]
    pub fn resolve(&self, capacity_lbas: u64, lba_bytes: u32, page_bytes: u32) -> Fill {
        let lba = u64::from(lba_bytes);
        let capacity = capacity_lbas * lba;
        let bytes = match self.amount {
            Amount::Bytes(bytes) => bytes,
            Amount::Ppm(ppm) => {
                let exact = u128::from(capacity) * u128::from(ppm) / 1_000_000;
                u64::try_from(exact)
                    .unwrap_or(u64::MAX)
                    .next_multiple_of(u64::from(page_bytes))
            }
            Amount::Blocks(blocks) => blocks.saturating_mul(lba),
        };
        let block_lbas = u32::try_from(self.block_bytes / lba).unwrap_or(u32::MAX);
        Fill {
            lbas: (bytes.min(capacity)) / lba,
            block_lbas,
            open_first: self.open_first,
            finish_first: self.finish_first,
            settle: self.settle,
            repeat: false,
        }
    }
}

/// A line of the experiment: jobs on a drive.
#[derive(Clone, Debug)]
pub struct SeriesSpec {
    /// Name, with the values of the crossed axes.
    pub name: String,
    /// Its place in the list of the file, from 0; that of its repetitions is the same.
    pub place: usize,
    /// Which combination of values of the crossed axes it has, from 0.
    pub combination: usize,
    /// Settings of the drive that differ from the experiment's.
    pub drive: Vec<Override>,
    /// Name of its scheduler; `None`: the experiment's.
    pub scheduler: Option<String>,
    /// How its jobs reach the drive; `None`: as in the experiment.
    pub via: Option<Via>,
    /// What it says itself of the flash translation layer.
    pub ftl: FtlTemplate,
    /// Jobs that run side by side, one such list after another.
    pub phases: Vec<Vec<String>>,
    /// Axis values at which it is run; empty: all.
    pub x: Vec<String>,
    /// Zones declared full before the first phase, counted over the drive.
    pub full_zones: Vec<Range<u32>>,
    /// Published results in tables; of several that have a value, the first counts.
    pub published: Vec<PublishedTable>,
    /// Published results that stand in the file.
    pub points: Vec<PublishedPoint>,
}

/// Rows of a reference table that are published points of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedTable {
    /// Name of the table, `confznspp/emulator`.
    pub table: String,
    /// Conditions `column=value`.
    pub filter: Vec<String>,
    /// Conditions that independent repeats of the points meet; empty: none are known.
    pub repeats: Vec<String>,
    /// Column of the axis value; `None`: the rows are those of every axis value.
    pub x: Option<String>,
    /// The axis value is this many times what the column says.
    pub x_factor: f64,
    /// The job whose values these are; empty: whichever is compared.
    pub job: String,
    /// Column of a metric, if it does not have the metric's name. If any is
    /// named, metrics that are not are not published here.
    pub columns: BTreeMap<String, String>,
    /// What turns the value of a column into the unit of the metric, where the names of
    /// the two do not say it.
    pub factors: BTreeMap<String, f64>,
    /// Columns of the table that are there for people.
    pub labels: Vec<String>,
    /// The table need not have a row of the series.
    pub may_be_absent: bool,
}

/// A published value that stands in the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedPoint {
    /// Axis value, as in the axis.
    pub x: String,
    /// What was measured.
    pub metric: String,
    /// Of which job; empty: of the job compared.
    pub job: String,
    /// The value.
    pub value: f64,
    /// Smallest and largest of the authors' repeats.
    pub spread: Option<(f64, f64)>,
    /// Where it stands.
    pub place: CellPlace,
}

/// A measurement that is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// The result that these rows are of, if it is not the experiment's own: a
    /// figure may be another panel of the same points.
    pub id: Option<String>,
    /// Of this job.
    pub job: String,
    /// Names of metrics.
    pub metrics: Vec<String>,
    /// Axis values and series at which it is only shown: the published value
    /// depends on what no model can know.
    pub informative: Vec<Informative>,
}

/// Points that are shown and not judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Informative {
    /// Metrics.
    pub metrics: Vec<String>,
    /// Series; empty: all.
    pub series: Vec<String>,
    /// Axis values; empty: all.
    pub x: Vec<String>,
    /// The published values were an input of the profile or of the host.
    pub is_input: bool,
    /// Why.
    pub reason: String,
}

/// Interference M of a series with an isolated one (ConfZNS++, section 2.3).
#[derive(Clone, Debug, PartialEq)]
pub struct Interference {
    /// The series with interference.
    pub series: String,
    /// The isolated series.
    pub isolated: String,
    /// Of this job.
    pub job: String,
    /// Its name in the isolated series.
    pub isolated_job: String,
    /// Weight of throughput; that of latency is what is left to 1.
    pub alpha: f64,
    /// The metric that is its throughput: "`kiops_by_count`", "kiops", or "`mib_s`".
    pub throughput: String,
    /// The published value.
    pub published: Option<f64>,
    /// Why it is shown and not judged, if it is not.
    pub informative: Option<String>,
    /// The figure that the same published value is counted in, if another.
    pub counted_in: Option<String>,
}

/// A difference between two series, at every axis value.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The series.
    pub series: String,
    /// The series that it is compared with.
    pub baseline: String,
    /// Of this job.
    pub job: String,
    /// Its name in the baseline.
    pub baseline_job: String,
    /// Names of metrics.
    pub metrics: Vec<String>,
}

/// Interference M of two given points.
#[derive(Clone, Debug, PartialEq)]
pub struct Worked {
    /// Name of the row.
    pub name: String,
    /// Throughput and latency in isolation.
    pub isolated: (f64, f64),
    /// Throughput and latency with interference.
    pub interfered: (f64, f64),
    /// Weight of throughput.
    pub alpha: f64,
    /// The published value.
    pub published: f64,
}

/// A statement about our results: a sentence of a paper, or of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The result that it is about, if it is not the experiment's own.
    pub id: Option<String>,
    /// In words.
    pub says: String,
    /// What it is about.
    pub value: Derived,
    /// What makes it hold.
    pub needs: Needs,
    /// The published size.
    pub published: Option<f64>,
    /// Why the statement is no evidence, if an input of the profile or of the host makes it
    /// true: then it is shown, and not judged.
    pub input: Option<String>,
    /// Why it cannot be judged in this run, whatever its points measure.
    pub unjudged: Option<String>,
}

/// A line of a listing of zones that was published, as a zone report in nvme-cli's form
/// has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// What it is called.
    pub name: String,
    /// The series whose drive is asked for its zones when its jobs have ended.
    pub series: String,
    /// The lines, in any order: each is compared with the line of ours that begins with
    /// the same field.
    pub lines: Vec<ListingLine>,
}

/// A line of a listing: fields with their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListingLine {
    /// As it was published.
    pub text: String,
    /// Its fields, in their order: `("SLBA", "0x80000")`.
    pub fields: Vec<(String, String)>,
}

/// A value that is calculated from measurements.
#[derive(Clone, Debug, PartialEq)]
pub enum Derived {
    /// The measurement itself.
    Value(Measured),
    /// The first over the second.
    Ratio(Measured, Measured),
    /// The change from the first to the second, as a share of the first.
    Change(Measured, Measured),
    /// A formula.
    Formula(Formula),
}

/// A formula of measurements: `(a + b) / c`.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    /// As it stands in the file; it was parsed once, so it can be again.
    pub(super) text: String,
    /// Its variables, in alphabetical order.
    pub(super) of: Vec<(String, Measured)>,
    /// Unit of its value.
    pub(super) unit: String,
}

impl Formula {
    /// Unit of its value.
    #[must_use]
    pub fn unit(&self) -> &str {
        &self.unit
    }

    fn value(&self, values: &[f64]) -> f64 {
        let parsed = statement::expression(&self.text);
        let known = parsed.ok().and_then(|(formula, _)| formula.known(values));
        known.unwrap_or(f64::NAN)
    }
}

/// What makes a statement hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Needs {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// It agrees with the published size.
    Published,
}

impl Derived {
    /// The published value to which no other has a relative difference: what
    /// agrees of a change is its factor.
    pub(super) const fn nothing(&self) -> f64 {
        match self {
            Self::Change(..) => -1.0,
            Self::Value(_) | Self::Ratio(..) | Self::Formula(_) => 0.0,
        }
    }

    /// The measurements that it is calculated from.
    #[must_use]
    pub fn measured(&self) -> Vec<&Measured> {
        match self {
            Self::Value(one) => vec![one],
            Self::Ratio(a, b) | Self::Change(a, b) => vec![a, b],
            Self::Formula(formula) => formula.of.iter().map(|(_, one)| one).collect(),
        }
    }

    /// Its value, from those of its measurements in their order.
    #[must_use]
    pub fn of(&self, values: &[f64]) -> f64 {
        match (self, values) {
            (Self::Value(_), [value]) => *value,
            (Self::Ratio(..), [a, b]) => a / b,
            (Self::Change(..), [from, to]) => to / from - 1.0,
            (Self::Formula(formula), values) => formula.value(values),
            _ => f64::NAN,
        }
    }
}

/// One measurement of our results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measured {
    /// A metric at a point.
    Metric {
        /// Where it stands in the file: `check.0.value`.
        path: String,
        /// Series.
        series: String,
        /// Axis value.
        x: String,
        /// Job.
        job: String,
        /// Metric.
        metric: String,
    },
    /// M^Inter of a series.
    Interference {
        /// Where it stands in the file.
        path: String,
        /// The series.
        series: String,
    },
}

/// How an experiment is drawn: one panel of `y` over `x`, or panels of
/// percentiles over latency.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureSpec {
    /// Heading of the panel; empty: none.
    pub title: String,
    /// Of this job.
    pub job: String,
    /// Metric or `axis` on the horizontal axis.
    pub x: String,
    /// Metric on the vertical axis.
    pub y: String,
    /// Logarithmic axes.
    pub log_x: bool,
    /// Logarithmic axes.
    pub log_y: bool,
    /// If there are any, a panel of percentiles from each of these on, in parts
    /// per million, instead of `y` over `x`.
    pub percentiles_ppm: Vec<u32>,
    /// Width of the whole picture; of several panels, those that say one say the same.
    pub width: Option<Width>,
}

impl Informative {
    /// Whether `metric` of `series` at the axis value `x` is only shown.
    #[must_use]
    pub fn applies(&self, metric: &str, series: &str, x: &str) -> bool {
        let has = |list: &[String], name: &str| list.iter().any(|known| known == name);
        let covers = |list: &[String], name: &str| list.is_empty() || has(list, name);
        has(&self.metrics, metric) && covers(&self.series, series) && covers(&self.x, x)
    }
}

impl Experiment {
    /// The host of a series: with its scheduler.
    #[must_use]
    pub fn host_of(&self, series: &SeriesSpec) -> HostModel {
        let name = series.scheduler.as_ref().or(self.scheduler.as_ref());
        HostModel {
            scheduler: name.and_then(|name| self.scheduler_named(name)),
            ..self.host
        }
    }

    /// How wide its figure is to be.
    #[must_use]
    pub fn figure_width(&self) -> Option<Width> {
        self.figures.iter().find_map(|figure| figure.width)
    }

    /// How the jobs of a series reach an emulated drive in virtual time.
    #[must_use]
    pub fn via_of(&self, series: &SeriesSpec) -> Via {
        series.via.unwrap_or(self.via)
    }

    /// The flash translation layer of a series.
    #[must_use]
    pub fn ftl_of(&self, series: &SeriesSpec) -> FtlTemplate {
        series.ftl.over(&self.ftl)
    }

    /// A scheduler: of the file, or one that goes by its own name.
    fn scheduler_named(&self, name: &str) -> Option<SchedulerModel> {
        let builtin = scheduler::builtin();
        let mut all = self.schedulers.iter().chain(&builtin);
        all.find(|known| known.name == name)
            .map(|known| known.model)
    }

    /// Reads an experiment file, with `x` (a position on its axis) put in for `"$x"`.
    ///
    /// # Errors
    /// Everything that is wrong with the file, by line.
    pub fn parse(
        file: &str,
        text: &str,
        overrides: &[Override],
        x: Option<&AxisValue>,
    ) -> Result<Self, Errors> {
        Self::parse_in(file, text, overrides, x, 0)
    }

    /// The same, at a combination of values of the crossed axes: below
    /// [`Self::combinations`]. Only the series of that combination have its settings.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_in(
        file: &str,
        text: &str,
        overrides: &[Override],
        x: Option<&AxisValue>,
        combination: usize,
    ) -> Result<Self, Errors> {
        read::experiment(file, text, overrides, x.map(|x| (x, combination)))
    }

    /// What stands for the names of axes at `x`, and at a combination of values of the
    /// crossed ones.
    #[must_use]
    pub fn values_at(&self, x: &AxisValue, combination: usize) -> Vec<PutIn> {
        axis::values_at((&self.axis, &self.crossed), x, combination)
    }

    /// How many combinations of values the crossed axes have; 1 without any.
    #[must_use]
    pub fn combinations(&self) -> usize {
        self.crossed.iter().map(|axis| axis.values.len()).product()
    }

    /// The job of that name.
    #[must_use]
    pub fn job(&self, name: &str) -> Option<&JobTemplate> {
        self.jobs.iter().find(|job| job.name == name)
    }

    /// Whether a series runs the job that results of this name are of.
    #[must_use]
    pub fn runs_result(&self, series: &SeriesSpec, result: &str) -> bool {
        let job = self.job_of_result(result);
        job.is_some_and(|job| series.phases.iter().flatten().any(|name| *name == job.name))
    }

    /// The job that results of this name are of ([`Self::result_names`]).
    #[must_use]
    pub fn job_of_result(&self, name: &str) -> Option<&JobTemplate> {
        let is_kind = |kind: &str| Kind::ALL.iter().any(|known| known.name() == kind);
        let whole = name.rsplit_once(": ").filter(|(_, kind)| is_kind(kind));
        self.job(name).or_else(|| self.job(whole?.0))
    }

    /// Names that results of jobs go by: those of the jobs, and for key-value
    /// workloads also those of each kind of operation.
    #[must_use]
    pub fn result_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for job in &self.jobs {
            names.push(job.name.clone());
            // Before an axis value is put in, it is not known which jobs are such.
            names.extend(Kind::ALL.map(|kind| crate::kv::job_of_kind(&job.name, kind)));
        }
        names
    }
}
