//! Reading the settings of schedulers.

use std::ops::RangeInclusive;

use zonelab_config::{Reported, Table, units};
use zonelab_device::Nanos;
use zonelab_host::scheduler::{MqDeadlineSettings, SchedulerSpec, ZincSettings, ZincThrottle};

use super::host::{SchedulerModel, SchedulerTemplate};

/// What mq-deadline takes for a command: writes of 4 KiB take 14.469 us with it
/// and 12.616 without (ZN540 characterisation, observation 2).
const MQ_DEADLINE_COST: Nanos = Nanos(1_853);

impl SchedulerModel {
    /// A scheduler with the cost that it is known to have. ZINC's is that of
    /// mq-deadline: its authors found no difference (ConfZNS++, section 5.1).
    #[must_use]
    pub fn default_of(spec: SchedulerSpec) -> Self {
        let cost = match spec {
            SchedulerSpec::None => Nanos::ZERO,
            SchedulerSpec::MqDeadline(_) | SchedulerSpec::Zinc(_) => MQ_DEADLINE_COST,
        };
        Self { spec, cost }
    }
}

/// The schedulers with their default settings, by their names.
fn defaults() -> [(&'static str, SchedulerSpec); 3] {
    [
        ("none", SchedulerSpec::None),
        (
            "mq-deadline",
            SchedulerSpec::MqDeadline(MqDeadlineSettings::default()),
        ),
        ("zinc", SchedulerSpec::Zinc(ZincSettings::default())),
    ]
}

/// The schedulers that need no table: each by its own name, with its defaults.
pub(super) fn builtin() -> [SchedulerTemplate; 3] {
    defaults().map(|(name, spec)| SchedulerTemplate {
        name: name.to_owned(),
        model: SchedulerModel::default_of(spec),
    })
}

/// Which scheduler, and its settings.
pub(super) fn spec(table: &Table<'_>) -> Result<SchedulerSpec, Reported> {
    match table.choice("kind", &defaults()).required()? {
        SchedulerSpec::None => Ok(SchedulerSpec::None),
        SchedulerSpec::MqDeadline(of) => deadline(table, &of).map(SchedulerSpec::MqDeadline),
        SchedulerSpec::Zinc(of) => {
            let deadline = deadline(table, &of.deadline);
            let reset = throttle(&table.table("reset"), &of.reset);
            let finish = throttle(&table.table("finish"), &of.finish);
            Ok(SchedulerSpec::Zinc(ZincSettings {
                deadline: deadline?,
                reset: reset?,
                finish: finish?,
            }))
        }
    }
}

fn deadline(table: &Table<'_>, of: &MqDeadlineSettings) -> Result<MqDeadlineSettings, Reported> {
    type Of = MqDeadlineSettings;
    let read_expire = time(table, "read_expire", Of::EXPIRE, of.read_expire);
    let write_expire = time(table, "write_expire", Of::EXPIRE, of.write_expire);
    let fifo_batch = table.u32("fifo_batch").within(Of::FIFO_BATCH);
    let fifo_batch = fifo_batch.or(of.fifo_batch);
    let writes_starved = table.u32("writes_starved").within(Of::WRITES_STARVED);
    let writes_starved = writes_starved.or(of.writes_starved);
    let front_merges = table.bool("front_merges").or(of.front_merges);
    let max_request = table.size_bytes_u32("max_request");
    let max_request = max_request.within(Of::MAX_REQUEST_BYTES);
    let max_request = max_request.or(of.max_request_bytes);
    Ok(MqDeadlineSettings {
        read_expire: read_expire?,
        write_expire: write_expire?,
        fifo_batch: fifo_batch?,
        writes_starved: writes_starved?,
        front_merges: front_merges?,
        max_request_bytes: max_request?,
    })
}

fn throttle(table: &Table<'_>, of: &ZincThrottle) -> Result<ZincThrottle, Reported> {
    type Of = ZincThrottle;
    let epoch = time(table, "epoch", Of::EPOCH, of.epoch);
    let write_tokens = table.u32("write_tokens").or(of.write_tokens);
    let min_concurrency = table.u32("min_concurrency").within(Of::MIN_CONCURRENCY);
    let min_concurrency = min_concurrency.or(of.min_concurrency);
    let max_epoch_holds = table.u32("max_epoch_holds").within(Of::MAX_EPOCH_HOLDS);
    let max_epoch_holds = max_epoch_holds.or(of.max_epoch_holds);
    Ok(ZincThrottle {
        epoch: epoch?,
        write_tokens: write_tokens?,
        min_concurrency: min_concurrency?,
        max_epoch_holds: max_epoch_holds?,
    })
}

/// A time within a range that is stated with its units.
fn time(
    table: &Table<'_>,
    key: &str,
    range: RangeInclusive<Nanos>,
    default: Nanos,
) -> Result<Nanos, Reported> {
    let read = table.get(key, |item| {
        let time = Nanos(item.duration_ns()?);
        if range.contains(&time) {
            return Ok(time);
        }
        let [least, most] = [range.start(), range.end()].map(|end| units::fmt_duration(end.0));
        Err(item.fail(
            format!("{} is out of range", units::fmt_duration(time.0)),
            format!("from {least} to {most}"),
        ))
    });
    read.or(default)
}
