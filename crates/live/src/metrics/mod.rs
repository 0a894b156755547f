//! Metrics for Prometheus.
//!
//! How many series there are is bounded: none by zone, by die and channel up to
//! [`DIES`] of them, by queue up to [`QUEUES`], by namespace up to
//! [`NAMESPACES`]. What is beyond is summed up under the label value `other`
//! (`all` for dies and channels).

mod exposition;
mod layer;

use hdrhistogram::Histogram;
use zonelab_device::Nanos;
use zonelab_ssd::account::{BusyByCause, Cause};
use zonelab_target::controller::activity::{Operation, Tallies, Tally};

use crate::snapshot::{Load, Namespace, Snapshot, Zone, ZoneKind};
use exposition::{Exposition, Family, Kind, Labels};

/// The media type of the text.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Most dies, and channels, that have series of their own.
pub const DIES: usize = 64;
/// Most queues that have series of their own.
pub const QUEUES: usize = 16;
/// Most namespaces that have series of their own.
pub const NAMESPACES: usize = 16;

/// Upper bounds of the buckets of durations, in nanoseconds.
const BOUNDS_NS: [u64; 20] = [
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// The metrics as text.
#[must_use]
pub fn render(snapshot: &Snapshot) -> String {
    let mut out = Exposition::default();
    server(&mut out, snapshot);
    commands(&mut out, snapshot);
    durations(&mut out, snapshot);
    zones(&mut out, snapshot);
    traffic(&mut out, snapshot);
    flash(&mut out, snapshot);
    if let Some(state) = &snapshot.layer {
        layer::layer(&mut out, state);
    }
    out.finish()
}

fn server(out: &mut Exposition, snapshot: &Snapshot) {
    out.family(
        "zonelab_build_info",
        Kind::Gauge,
        "Version of the program; always 1.",
    )
    .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let labels = [("profile", &*snapshot.profile), ("nqn", &*snapshot.nqn)];
    out.family(
        "zonelab_drive_info",
        Kind::Gauge,
        "The drive that is served; always 1.",
    )
    .sample(&labels, 1);
    let uptime = Seconds(snapshot.uptime.0);
    out.single(
        "zonelab_uptime_seconds",
        Kind::Gauge,
        "Time since the server started.",
        uptime,
    );
    let of = snapshot.connections;
    let help = "NVMe/TCP connections that there are.";
    out.single("zonelab_connections", Kind::Gauge, help, of.open);
    let help = "NVMe/TCP connections that were accepted.";
    out.single(
        "zonelab_connections_accepted_total",
        Kind::Counter,
        help,
        of.accepted,
    );
    let help = "NVMe/TCP connections that were closed for lack of room.";
    out.single(
        "zonelab_connections_turned_away_total",
        Kind::Counter,
        help,
        of.turned_away,
    );
    let help = "NVMe/TCP connections that broke the protocol or a time limit.";
    out.single(
        "zonelab_connections_broken_total",
        Kind::Counter,
        help,
        of.broken,
    );
    let help = "Controllers that hosts have.";
    out.single(
        "zonelab_controllers",
        Kind::Gauge,
        help,
        snapshot.controllers,
    );
    let help = "Faults that struck, of those that were asked for.";
    out.single("zonelab_faults_total", Kind::Counter, help, snapshot.faults);
}

fn commands(out: &mut Exposition, snapshot: &Snapshot) {
    let help = "Admin and fabrics commands on admin queues.";
    out.single(
        "zonelab_admin_commands_total",
        Kind::Counter,
        help,
        snapshot.admin_commands,
    );
    let help = "Commands in the drive.";
    out.single(
        "zonelab_commands_in_flight",
        Kind::Gauge,
        help,
        snapshot.in_flight,
    );
    let rows = by_namespace(snapshot);
    let help = "I/O commands that ended, by namespace and operation.";
    let mut family = out.family("zonelab_commands_total", Kind::Counter, help);
    tallies(&mut family, &rows, |tally| tally.commands);
    let help = "I/O commands that failed, by namespace and operation.";
    let mut family = out.family("zonelab_command_errors_total", Kind::Counter, help);
    tallies(&mut family, &rows, |tally| tally.errors);
    let help = "Bytes of the logical blocks that successful I/O commands named.";
    let mut family = out.family("zonelab_command_bytes_total", Kind::Counter, help);
    tallies(&mut family, &rows, |tally| tally.bytes);
}

/// Rows of counts by the label of their namespace; `none` is of commands that
/// named no namespace of the drive.
fn by_namespace(snapshot: &Snapshot) -> Vec<(String, Tallies)> {
    let mut rows = vec![("none".to_owned(), snapshot.elsewhere)];
    let mut other = None;
    for (namespace, nsid) in snapshot.namespaces.iter().zip(1_usize..) {
        if nsid <= NAMESPACES {
            rows.push((nsid.to_string(), namespace.tallies));
        } else {
            let sum = other.get_or_insert_with(Tallies::default);
            for (sum, tally) in sum.iter_mut().zip(&namespace.tallies) {
                sum.commands += tally.commands;
                sum.errors += tally.errors;
                sum.bytes += tally.bytes;
            }
        }
    }
    rows.extend(other.map(|sum| ("other".to_owned(), sum)));
    rows
}

fn tallies(family: &mut Family<'_>, rows: &[(String, Tallies)], value: fn(&Tally) -> u64) {
    for (namespace, tallies) in rows {
        for (operation, tally) in Operation::ALL.into_iter().zip(tallies) {
            let labels = [("namespace", &**namespace), ("operation", operation.name())];
            family.sample(&labels, value(tally));
        }
    }
}

fn durations(out: &mut Exposition, snapshot: &Snapshot) {
    let help = "Time from when a command was there as a whole until the model had it done.";
    let mut family = out.family("zonelab_command_duration_seconds", Kind::Histogram, help);
    for (operation, histogram) in &snapshot.latencies {
        buckets(&mut family, ("operation", operation.name()), &[histogram]);
    }
    let help = "How much later than the model had them done responses were sent.";
    let mut family = out.family("zonelab_response_lateness_seconds", Kind::Histogram, help);
    let (own, other) = snapshot
        .lateness
        .split_at(snapshot.lateness.len().min(QUEUES));
    for (qid, histogram) in own {
        buckets(&mut family, ("queue", &qid.to_string()), &[histogram]);
    }
    let other: Vec<_> = other.iter().map(|(_, histogram)| histogram).collect();
    if !other.is_empty() {
        buckets(&mut family, ("queue", "other"), &other);
    }
}

/// The sum of `histograms` as cumulative buckets. A value within 1 % of a bound
/// may count on either side of it.
fn buckets(family: &mut Family<'_>, label: (&str, &str), histograms: &[&Histogram<u64>]) {
    let mut counts = [0; BOUNDS_NS.len()];
    let (mut sum_ns, mut count) = (0_u64, 0);
    for histogram in histograms {
        for bin in histogram.iter_recorded() {
            let (value, many) = (bin.value_iterated_to(), bin.count_at_value());
            let middle = histogram.median_equivalent(value);
            sum_ns = sum_ns.saturating_add(middle.saturating_mul(many));
            count += many;
            if let Some(index) = BOUNDS_NS.iter().position(|bound| middle <= *bound) {
                counts[index] += many;
            }
        }
    }
    let mut below = 0;
    for (bound, many) in BOUNDS_NS.iter().zip(counts) {
        below += many;
        let bound = Seconds(*bound).to_string();
        family.sample_of("_bucket", &[label, ("le", &bound)], below);
    }
    family.sample_of("_bucket", &[label, ("le", "+Inf")], count);
    family.sample_of("_sum", &[label], Seconds(sum_ns));
    family.sample_of("_count", &[label], count);
}

fn zones(out: &mut Exposition, snapshot: &Snapshot) {
    let of = |namespace: &Namespace, is: &dyn Fn(&Zone) -> bool| {
        let range = namespace.zones.start as usize..namespace.zones.end as usize;
        let zones = snapshot.zones.all.get(range).unwrap_or_default();
        zones.iter().filter(|zone| is(zone)).count()
    };
    let named: Vec<_> = (1..=NAMESPACES)
        .zip(&snapshot.namespaces)
        .map(|(nsid, namespace)| (nsid.to_string(), namespace))
        .collect();
    let rest = snapshot.namespaces.get(NAMESPACES..).unwrap_or_default();
    let mut family = out.family(
        "zonelab_zones",
        Kind::Gauge,
        "Zones by namespace and state.",
    );
    for kind in ZoneKind::ALL {
        let is = |zone: &Zone| zone.kind == kind;
        for (nsid, namespace) in &named {
            let labels = [("namespace", &**nsid), ("state", kind.name())];
            family.sample(&labels, of(namespace, &is));
        }
        if !rest.is_empty() {
            let sum: usize = rest.iter().map(|namespace| of(namespace, &is)).sum();
            family.sample(&[("namespace", "other"), ("state", kind.name())], sum);
        }
    }
    let zoned = || named.iter().filter(|(_, namespace)| namespace.is_zoned);
    let mut family = out.family("zonelab_open_zones", Kind::Gauge, "Open zones.");
    for (nsid, namespace) in zoned() {
        let open = of(namespace, &|zone| zone.kind.is_open());
        family.sample(&[("namespace", nsid)], open);
    }
    let mut family = out.family("zonelab_active_zones", Kind::Gauge, "Active zones.");
    for (nsid, namespace) in zoned() {
        let active = of(namespace, &|zone| zone.kind.is_active());
        family.sample(&[("namespace", nsid)], active);
    }
    let help = "Most open zones (MOR + 1); no sample: unlimited.";
    let mut family = out.family("zonelab_open_zones_limit", Kind::Gauge, help);
    limits(&mut family, zoned(), |namespace| namespace.max_open);
    let help = "Most active zones (MAR + 1); no sample: unlimited.";
    let mut family = out.family("zonelab_active_zones_limit", Kind::Gauge, help);
    limits(&mut family, zoned(), |namespace| namespace.max_active);
    let totals = &snapshot.totals;
    out.single(
        "zonelab_zone_resets_total",
        Kind::Counter,
        "Zones reset.",
        totals.resets,
    );
    out.single(
        "zonelab_zone_finishes_total",
        Kind::Counter,
        "Zones finished.",
        totals.finishes,
    );
    let help = "Zones closed by the drive at the open limit.";
    let closes = totals.implicit_closes;
    out.single(
        "zonelab_zone_implicit_closes_total",
        Kind::Counter,
        help,
        closes,
    );
}

fn limits<'a>(
    family: &mut Family<'_>,
    namespaces: impl Iterator<Item = &'a (String, &'a Namespace)>,
    limit: fn(&Namespace) -> Option<u32>,
) {
    for (nsid, namespace) in namespaces {
        if let Some(limit) = limit(namespace) {
            family.sample(&[("namespace", nsid)], limit);
        }
    }
}

fn traffic(out: &mut Exposition, snapshot: &Snapshot) {
    let totals = &snapshot.totals;
    let help = "Bytes that hosts read.";
    out.single(
        "zonelab_host_read_bytes_total",
        Kind::Counter,
        help,
        totals.host_read_bytes,
    );
    let help = "Bytes that hosts wrote and appended.";
    out.single(
        "zonelab_host_written_bytes_total",
        Kind::Counter,
        help,
        totals.host_write_bytes,
    );
    let help = "Bytes programmed to flash, in whole pages: for hosts, to finish zones, to \
                collect garbage of conventional namespaces, and to fold an SLC cache.";
    let mut family = out.family("zonelab_flash_programmed_bytes_total", Kind::Counter, help);
    for (purpose, bytes) in [
        ("host", totals.host_program_bytes),
        ("finish", totals.fill_program_bytes),
        ("collect", totals.collect_program_bytes),
        ("fold", totals.fold_program_bytes),
    ] {
        family.sample(&[("purpose", purpose)], bytes);
    }
    let help = "Bytes programmed per byte that hosts wrote; no sample before the first.";
    let mut family = out.family("zonelab_write_amplification_ratio", Kind::Gauge, help);
    if let Some(ratio) = totals.dlwa() {
        family.sample(&[], ratio);
    }
    if let Some((fill, size)) = snapshot.buffer {
        let help = "Bytes in the write buffer.";
        out.single("zonelab_write_buffer_fill_bytes", Kind::Gauge, help, fill);
        let help = "Bytes that fit in the write buffer.";
        out.single("zonelab_write_buffer_size_bytes", Kind::Gauge, help, size);
    }
}

fn flash(out: &mut Exposition, snapshot: &Snapshot) {
    let dies: Vec<_> = snapshot.dies.iter().map(|load| load.busy_ns).collect();
    let help = "Time that dies were busy, by cause; booked when it is certain.";
    let mut family = out.family("zonelab_die_busy_seconds_total", Kind::Counter, help);
    by_cause(&mut family, "die", &dies, |ns| Seconds(ns).to_string());
    let operations: Vec<_> = snapshot.dies.iter().map(|load| load.operations).collect();
    let help = "Flash operations (reads, programs, erasures) handed to dies, by cause.";
    let mut family = out.family("zonelab_flash_operations_total", Kind::Counter, help);
    by_cause(&mut family, "die", &operations, |many| many.to_string());
    let help = "Time that channels were busy, by cause; booked when it is certain.";
    let mut family = out.family("zonelab_channel_busy_seconds_total", Kind::Counter, help);
    by_cause(&mut family, "channel", &snapshot.channels, |ns| {
        Seconds(ns).to_string()
    });
    let help = "Blocks erased.";
    let erased = snapshot.totals.erased_blocks;
    out.single("zonelab_erased_blocks_total", Kind::Counter, help, erased);
    let wear = &snapshot.wear;
    let help = "Erasures of the block erased least often.";
    out.single("zonelab_block_erases_min", Kind::Gauge, help, wear.min);
    let help = "Erasures of a block on average.";
    out.single("zonelab_block_erases_mean", Kind::Gauge, help, wear.mean());
    let help = "Erasures of the block erased most often.";
    out.single("zonelab_block_erases_max", Kind::Gauge, help, wear.max);
}

/// A sample for each resource and cause, or their sums.
fn by_cause(family: &mut Family<'_>, label: &str, rows: &[BusyByCause], value: fn(u64) -> String) {
    let mut put = |name: &str, row: &BusyByCause| {
        for (cause, number) in Cause::ALL.into_iter().zip(row) {
            let labels: Labels<'_> = &[(label, name), ("cause", cause.name())];
            family.sample(labels, value(*number));
        }
    };
    if rows.len() <= DIES {
        for (index, row) in rows.iter().enumerate() {
            put(&index.to_string(), row);
        }
    } else {
        let mut sum = Load::default();
        for row in rows {
            sum.add(&Load {
                busy_ns: *row,
                ..Load::default()
            });
        }
        put("all", &sum.busy_ns);
    }
}

/// Nanoseconds, printed as seconds: exact, and never in the notation with exponents.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SECOND: u64 = Nanos::from_secs(1).0;
        let (whole, rest) = (self.0 / SECOND, self.0 % SECOND);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{rest:09}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}
