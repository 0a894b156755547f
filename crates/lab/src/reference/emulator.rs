//! Results of the ConfZNS++ emulator (SYSTOR'24, figures 9 to 11, and lazy
//! mapping in the text).

use super::{CsvTable, Record, ReferenceError};

const FILE: &str = "reference/confznspp/emulator.csv";
const TEXT: &str = include_str!("../../../../reference/confznspp/emulator.csv");

/// What kind of measurement a row is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunKind {
    /// Foreground I/O beside a background operation (or alone, at intensity 0).
    Run,
    /// One operation alone at full speed.
    Peak,
    /// Writes under a zone mapping.
    Mapping,
    /// Latency of the first write of a zone under a mapping.
    MappingFirstWrite,
    /// A management operation by zone occupancy, from the text or a figure.
    Occupancy,
}

impl RunKind {
    fn parse(record: &Record<'_>) -> Result<Self, ReferenceError> {
        match record.text("kind")? {
            "run" => Ok(Self::Run),
            "peak" => Ok(Self::Peak),
            "mapping" => Ok(Self::Mapping),
            "mapping_first_write" => Ok(Self::MappingFirstWrite),
            "occupancy" => Ok(Self::Occupancy),
            other => Err(record.error("kind", format!("`{other}` is not a known kind"))),
        }
    }
}

/// What was measured: the columns that describe a point.
///
/// Texts are those of the file, empty where they do not apply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setup {
    /// Emulator configuration.
    pub config: String,
    /// Kind of measurement.
    pub kind: RunKind,
    /// Foreground operation: "write" or "read".
    pub foreground: String,
    /// Background operation: "finish" or "reset".
    pub background: String,
    /// "synchronous" or "asynchronous(lazy map)".
    pub reset_mode: String,
    /// "direct/sync-reset" or "lazy/async-reset".
    pub mapping: String,
    /// The operation of rows that are not runs.
    pub operation: String,
    /// Rate of the background, per cent of its own peak.
    pub intensity_pct: Option<u32>,
    /// Granularity of the finish, KiB.
    pub granularity_kib: Option<u32>,
    /// Concurrency level of the foreground.
    pub concurrency: Option<u32>,
    /// Threads of rows that are not runs.
    pub threads: Option<u32>,
    /// Request size, KiB, rounded (the file has means over all requests, with
    /// the fill before a read run in them).
    pub request_kib: Option<u32>,
}

impl Setup {
    fn parse(record: &Record<'_>) -> Result<Self, ReferenceError> {
        let text = |column| record.text(column).map(str::to_owned);
        let request = record.number("request_kib")?;
        if request.is_some_and(|kib| !(0.0..=1e6).contains(&kib)) {
            return Err(record.error("request_kib", "not a request size".to_owned()));
        }
        Ok(Self {
            config: text("config")?,
            kind: RunKind::parse(record)?,
            foreground: text("foreground")?,
            background: text("background")?,
            reset_mode: text("reset_mode")?,
            mapping: text("mapping")?,
            operation: text("operation")?,
            intensity_pct: record.natural("intensity_pct")?,
            granularity_kib: record.natural("granularity_kib")?,
            concurrency: record.natural("concurrency")?,
            threads: record.natural("threads")?,
            // In range by the check above.
            request_kib: request.map(|kib| (kib + 0.5) as u32),
        })
    }
}

macro_rules! metrics {
    ($($(#[$doc:meta])* $variant:ident = $column:literal,)+) => {
        /// A column of measured values.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Metric {
            $($(#[$doc])* $variant,)+
        }

        impl Metric {
            /// Every metric in the order of the file.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The name of the column, with its unit.
            #[must_use]
            pub const fn column(self) -> &'static str {
                match self {
                    $(Self::$variant => $column,)+
                }
            }
        }
    };
}

metrics! {
    /// Foreground throughput, mean of per-interval samples, 1000 commands/s.
    Kiops = "kiops",
    /// Rate of the operation, 1/s.
    OpsPerS = "ops_per_s",
    /// Foreground bandwidth, MiB/s.
    MibPerS = "mib_s",
    /// Mean total latency, us.
    LatMeanUs = "lat_mean_us",
    /// Median total latency, us.
    LatP50Us = "lat_p50_us",
    /// 95th percentile of total latency, us.
    LatP95Us = "lat_p95_us",
    /// 99th percentile of total latency, us.
    LatP99Us = "lat_p99_us",
    /// Greatest total latency, us.
    LatMaxUs = "lat_max_us",
    /// Mean time of the operation, us.
    OpMeanUs = "op_mean_us",
    /// Rate of the background operation, 1/s.
    BgOpsPerS = "bg_ops_per_s",
    /// Rate of the background operation as the limiter counts it, MiB/s.
    BgMibPerS = "bg_mib_s",
    /// Mean latency of the background operation, us.
    BgLatMeanUs = "bg_lat_mean_us",
    /// 95th percentile of the latency of the background operation, us.
    BgLatP95Us = "bg_lat_p95_us",
    /// Number of background operations.
    BgIos = "bg_ios",
    /// Run time of the background, s.
    BgRunS = "bg_run_s",
    /// Limit of the background, MiB/s.
    BgRateLimitMibPerS = "bg_rate_limit_mib_s",
    /// Number of foreground commands.
    FgIos = "fg_ios",
    /// Run time of the foreground, s.
    FgRunS = "fg_run_s",
}

/// One measured point.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Line of the file, from 1.
    pub line: usize,
    /// What was measured.
    pub setup: Setup,
    /// Figure of the paper that shows it ("10a"); empty if none does.
    pub figure: String,
    /// Remark on where the row comes from, often empty.
    pub note: String,
    /// In the order of [`Metric::ALL`].
    values: Vec<Option<f64>>,
}

impl Measurement {
    fn parse(record: &Record<'_>) -> Result<Self, ReferenceError> {
        let values = Metric::ALL
            .iter()
            .map(|metric| record.number(metric.column()));
        Ok(Self {
            line: record.line(),
            setup: Setup::parse(record)?,
            figure: record.text("figure")?.to_owned(),
            note: record.text("note")?.to_owned(),
            values: values.collect::<Result<_, _>>()?,
        })
    }

    /// The measured value of `metric`, none if unknown.
    #[must_use]
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let index = Metric::ALL.iter().position(|m| *m == metric)?;
        self.values.get(index).copied().flatten()
    }

    /// Whether `self` and `other` are independent repeats of one point.
    ///
    /// Without a running background (intensity 0) the point is foreground,
    /// concurrency and request size. Otherwise everything that describes the
    /// point must agree, the remark included: it marks runs of another length,
    /// and beside a rate-limited background the length decides how much of a
    /// run is start-up.
    #[must_use]
    pub fn repeats(&self, other: &Self) -> bool {
        let (a, b) = (&self.setup, &other.setup);
        let alone = |s: &Setup| s.kind == RunKind::Run && s.intensity_pct == Some(0);
        if alone(a) && alone(b) {
            return (&a.config, &a.foreground, a.concurrency, a.request_kib)
                == (&b.config, &b.foreground, b.concurrency, b.request_kib);
        }
        a == b && self.note == other.note
    }
}

/// The results of the emulator.
#[derive(Clone, Debug, PartialEq)]
pub struct Emulator {
    measurements: Vec<Measurement>,
}

/// The results that zonelab carries.
///
/// # Errors
/// Never for the file that a test reads; the signature is that of
/// [`parse`], so that callers handle both alike.
pub fn load() -> Result<Emulator, ReferenceError> {
    parse(FILE, TEXT)
}

/// Reads results in the same format from `text`; `file` names it in errors.
///
/// # Errors
/// The first row or column that cannot be read.
pub fn parse(file: &str, text: &str) -> Result<Emulator, ReferenceError> {
    let table = CsvTable::parse(file, text)?;
    let measurements = table.records().map(|record| Measurement::parse(&record));
    Ok(Emulator {
        measurements: measurements.collect::<Result<_, _>>()?,
    })
}

impl Emulator {
    /// All measurements in the order of the file.
    #[must_use]
    pub fn measurements(&self) -> &[Measurement] {
        &self.measurements
    }

    /// A curve of `figure`: the runs at this intensity (per cent) and finish
    /// granularity (KiB, none where it does not apply), by concurrency.
    #[must_use]
    pub fn curve(
        &self,
        figure: &str,
        intensity_pct: u32,
        granularity_kib: Option<u32>,
    ) -> Vec<&Measurement> {
        let on_curve = |m: &&Measurement| {
            let setup = &m.setup;
            m.figure == figure
                && setup.kind == RunKind::Run
                && setup.intensity_pct == Some(intensity_pct)
                && setup.granularity_kib == granularity_kib
        };
        let mut curve: Vec<_> = self.measurements.iter().filter(on_curve).collect();
        curve.sort_by_key(|m| m.setup.concurrency);
        curve
    }

    /// All repeats of a point, the given one included if it is in the file.
    pub fn repeats_of<'a>(
        &'a self,
        point: &'a Measurement,
    ) -> impl Iterator<Item = &'a Measurement> {
        self.measurements.iter().filter(|m| m.repeats(point))
    }

    /// Least and greatest value of `metric` over the repeats of `point`; none
    /// if it was measured once.
    #[must_use]
    pub fn repeat_spread(&self, point: &Measurement, metric: Metric) -> Option<(f64, f64)> {
        let mut values = self.repeats_of(point).filter_map(|m| m.value(metric));
        let first = values.next()?;
        let second = values.next()?;
        let start = (first.min(second), first.max(second));
        Some(values.fold(start, |(low, high), value| {
            (low.min(value), high.max(value))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point<'a>(curve: &[&'a Measurement], concurrency: u32) -> &'a Measurement {
        curve
            .iter()
            .find(|m| m.setup.concurrency == Some(concurrency))
            .unwrap()
    }

    #[test]
    fn the_carried_file_is_read_whole() {
        let emulator = load().unwrap();
        assert_eq!(emulator.measurements().len(), 148);
        let runs = emulator
            .measurements()
            .iter()
            .filter(|m| m.setup.kind == RunKind::Run);
        assert_eq!(runs.count(), 119);
        let quoted = emulator
            .measurements()
            .iter()
            .find(|m| m.setup.kind == RunKind::MappingFirstWrite);
        assert_eq!(
            quoted.unwrap().setup.operation,
            "first write of a zone, storage exhausted"
        );
        assert_eq!(quoted.unwrap().value(Metric::OpMeanUs), Some(77_700.0));
    }

    #[test]
    fn every_column_has_a_reader() {
        let described = [
            "config",
            "kind",
            "foreground",
            "background",
            "reset_mode",
            "mapping",
            "operation",
            "intensity_pct",
            "granularity_kib",
            "concurrency",
            "threads",
            "request_kib",
            "figure",
            "note",
        ];
        let table = CsvTable::parse(FILE, TEXT).unwrap();
        for column in table.columns() {
            let is_metric = Metric::ALL.iter().any(|m| m.column() == column);
            assert!(
                is_metric || described.contains(&column.as_str()),
                "{column}"
            );
        }
        assert_eq!(table.columns().len(), described.len() + Metric::ALL.len());
    }

    #[test]
    fn curves_are_complete_and_in_order() {
        let emulator = load().unwrap();
        let levels = |figure, intensity, granularity| -> Vec<_> {
            let curve = emulator.curve(figure, intensity, granularity);
            curve
                .into_iter()
                .map(|m| m.setup.concurrency.unwrap())
                .collect()
        };
        for (intensity, granularity) in [(0, None), (50, Some(16)), (50, Some(256))] {
            assert_eq!(levels("10a", intensity, granularity), [1, 2, 3, 4, 5, 6, 7]);
            assert_eq!(
                levels("10b", intensity, granularity),
                [1, 2, 4, 8, 16, 32, 64]
            );
        }
        for intensity in [0, 1, 5, 10, 25, 50] {
            assert_eq!(levels("11a", intensity, None), [1, 2, 3, 4, 5, 6, 7]);
        }
        assert_eq!(levels("11b", 50, None).len(), 7);
        assert!(levels("10a", 25, None).is_empty());
    }

    #[test]
    fn published_points_are_found() {
        let emulator = load().unwrap();
        let alone = point(&emulator.curve("10a", 0, None), 7).clone();
        assert_eq!(alone.value(Metric::Kiops), Some(5.7021));
        assert_eq!(alone.value(Metric::LatP95Us), Some(2056.19));
        assert_eq!(alone.value(Metric::BgIos), None);
        let read = point(&emulator.curve("10b", 50, Some(16)), 64).clone();
        assert_eq!(read.value(Metric::Kiops), Some(50.2933));
        assert_eq!(read.setup.request_kib, Some(16), "16.0021 in the file");
    }

    #[test]
    fn writes_alone_were_measured_four_times() {
        let emulator = load().unwrap();
        for figure in ["10a", "11a", "11b"] {
            let alone = point(&emulator.curve(figure, 0, None), 7).clone();
            assert_eq!(emulator.repeats_of(&alone).count(), 4);
            assert_eq!(
                emulator.repeat_spread(&alone, Metric::LatP95Us),
                Some((1581.06, 2408.45))
            );
        }
        let read = point(&emulator.curve("10b", 0, None), 1).clone();
        assert_eq!(emulator.repeat_spread(&read, Metric::LatP95Us), None);
    }

    #[test]
    fn short_runs_beside_a_finish_are_not_repeats() {
        let emulator = load().unwrap();
        let beside = point(&emulator.curve("10a", 50, Some(256)), 5).clone();
        assert_eq!(emulator.repeats_of(&beside).count(), 1);
        assert_eq!(emulator.repeat_spread(&beside, Metric::Kiops), None);
    }

    #[test]
    fn synchronous_and_asynchronous_resets_are_different_points() {
        let emulator = load().unwrap();
        let a = point(&emulator.curve("11a", 50, None), 7).clone();
        let b = point(&emulator.curve("11b", 50, None), 7).clone();
        assert!(!a.repeats(&b) && !b.repeats(&a) && a.repeats(&a));
    }

    #[test]
    fn resets_by_occupancy_are_different_points() {
        let emulator = load().unwrap();
        let occupancy = emulator
            .measurements()
            .iter()
            .filter(|m| m.setup.kind == RunKind::Occupancy);
        for m in occupancy {
            assert_eq!(emulator.repeats_of(m).count(), 1, "line {}", m.line);
        }
    }

    #[test]
    fn repeats_of_equal_fills_are_grouped() {
        let emulator = load().unwrap();
        let fills = |m: &&Measurement| {
            m.setup.mapping == "direct/sync-reset" && m.setup.operation == "write(fill)"
        };
        let fill = emulator.measurements().iter().find(fills).unwrap();
        assert_eq!(
            emulator.repeat_spread(fill, Metric::OpsPerS),
            Some((346.253, 350.004))
        );
    }

    #[test]
    fn repeats_differ_by_half_in_p95_and_hardly_in_throughput() {
        let emulator = load().unwrap();
        let widest = |metric| {
            let spreads = emulator
                .measurements()
                .iter()
                .filter_map(|m| emulator.repeat_spread(m, metric));
            spreads
                .map(|(low, high)| high / low - 1.0)
                .fold(0.0, f64::max)
        };
        assert!((0.52..0.53).contains(&widest(Metric::LatP95Us)));
        assert!(widest(Metric::Kiops) < 0.02);
    }

    #[test]
    fn errors_name_row_and_column() {
        let message = |from: &str, to: &str| {
            let text = TEXT.replacen(from, to, 1);
            parse("emulator.csv", &text).unwrap_err().to_string()
        };
        assert_eq!(
            message("349.167", "fast"),
            "emulator.csv:2: column `ops_per_s`: `fast` is not a number"
        );
        assert_eq!(
            message(",run,read,", ",jog,read,"),
            "emulator.csv:17: column `kind`: `jog` is not a known kind"
        );
        assert!(message("granularity_kib", "grain").contains("column `granularity_kib`"));
        assert!(message(",256.0,", ",-1,").contains("not a request size"));
    }
}
