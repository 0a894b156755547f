//! Fault plans from TOML.

use core::ops::RangeInclusive;

use zonelab_config::{Document, Errors, Item, Override, PutIn, Reported, Table};
use zonelab_device::{NamespaceId, Nanos};
use zonelab_nvme::Status;

use super::{ALWAYS_PPM, Effect, Fault, FaultPlan, Match, Trigger};
use crate::config::NamespaceConfig;

/// Longest time that a plan can name: a year. Sums of such times stay in range.
const TIME_MAX_NS: u64 = 365 * 24 * 3_600 * 1_000_000_000;

/// Effects by their names in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EffectName {
    Fail,
    MediaError,
    ReadOnly,
    Offline,
    Delay,
    Lose,
    PowerCut,
}

pub(super) const EFFECTS: [(&str, EffectName); 7] = [
    ("fail", EffectName::Fail),
    ("media-error", EffectName::MediaError),
    ("read-only", EffectName::ReadOnly),
    ("offline", EffectName::Offline),
    ("delay", EffectName::Delay),
    ("lose", EffectName::Lose),
    ("power-cut", EffectName::PowerCut),
];

/// Statuses that a command can be made to fail with, by their names in files.
pub(super) const STATUSES: [(&str, Status); 10] = [
    ("internal-error", Status::INTERNAL_ERROR),
    ("data-transfer-error", Status::DATA_TRANSFER_ERROR),
    ("command-interrupted", Status::COMMAND_INTERRUPTED),
    ("namespace-not-ready", Status::NAMESPACE_NOT_READY),
    ("write-fault", Status::WRITE_FAULT),
    ("unrecovered-read-error", Status::UNRECOVERED_READ_ERROR),
    ("too-many-active-zones", Status::TOO_MANY_ACTIVE_ZONES),
    ("too-many-open-zones", Status::TOO_MANY_OPEN_ZONES),
    ("zone-is-read-only", Status::ZONE_IS_READ_ONLY),
    ("zone-is-offline", Status::ZONE_IS_OFFLINE),
];

impl FaultPlan {
    /// Reads a plan. `file` is the name that messages give. With
    /// `enabled = false` at the top the plan is checked, and is empty.
    ///
    /// # Errors
    /// Everything that is wrong with it, with lines.
    pub fn parse(file: &str, text: &str, overrides: &[Override]) -> Result<Self, Errors> {
        Self::parse_with(file, text, overrides, &[])
    }

    /// Reads a plan with values put in for `$name` in its strings.
    ///
    /// # Errors
    /// As [`Self::parse`], and a name that has no value.
    pub fn parse_with(
        file: &str,
        text: &str,
        overrides: &[Override],
        values: &[PutIn],
    ) -> Result<Self, Errors> {
        let mut document = Document::parse(file, text, overrides)?;
        if !values.is_empty() {
            let _ = document.put_in(values, &|_| true);
        }
        let plan = plan(&document.root());
        document.finish(plan)
    }

    /// Reads a plan that is a table of a larger document.
    ///
    /// # Errors
    /// Something is wrong, and was reported.
    pub fn read(table: &Table<'_>) -> Result<Self, Reported> {
        plan(table)
    }
}

fn plan(root: &Table<'_>) -> Result<FaultPlan, Reported> {
    let seed = root.u64("seed").or(0);
    let enabled = root.bool("enabled").or(true);
    let tables = root.tables("fault");
    // All of them before giving up, so that every problem is reported.
    let faults: Vec<Result<Fault, Reported>> = tables?.iter().map(fault).collect();
    let faults: Vec<Fault> = faults.into_iter().collect::<Result<_, _>>()?;
    Ok(FaultPlan {
        seed: seed?,
        faults: if enabled? { faults } else { Vec::new() },
    })
}

fn fault(table: &Table<'_>) -> Result<Fault, Reported> {
    let trigger = trigger(table);
    let namespace = table.u32("namespace").within(1..=NamespaceConfig::MAX);
    let namespace = namespace.optional();
    let zones = table.get("zones", zones).optional();
    let lbas = table.range("lbas").optional();
    let from = time(table, "from");
    let until = time(table, "until");
    let skip = table.u64("skip").or(0);
    let count = table.u64("count").or(u64::MAX);
    let probability = table
        .percent_ppm("probability")
        .within(0..=ALWAYS_PPM)
        .or(ALWAYS_PPM);
    let effect = effect(table);
    let when = Match {
        trigger: trigger?,
        namespace: namespace?.map(NamespaceId),
        zones: zones?,
        lbas: lbas?,
        from: from?.unwrap_or(Nanos::ZERO),
        until: until?.unwrap_or(Nanos::MAX),
        skip: skip?,
        count: count?,
        probability_ppm: probability?,
    };
    let effect = effect?;
    check(table, &when, effect)?;
    Ok(Fault { when, effect })
}

fn trigger(table: &Table<'_>) -> Result<Trigger, Reported> {
    let names: Vec<(&str, Option<Trigger>)> = Trigger::BY_NAME
        .iter()
        .map(|(name, trigger)| (*name, Some(*trigger)))
        .chain([("time", None)])
        .collect();
    let on = table
        .choice("on", &names)
        .required_or("what sets it off: on = \"read\"");
    match on? {
        Some(trigger) => {
            table.refuse("at", "only with on = \"time\"")?;
            Ok(trigger)
        }
        None => {
            let at = table.duration_ns("at").within(0..=TIME_MAX_NS);
            Ok(Trigger::Time(Nanos(
                at.required_or("when it strikes: at = \"2s\"")?,
            )))
        }
    }
}

fn effect(table: &Table<'_>) -> Result<Effect, Reported> {
    let name = table
        .choice("effect", &EFFECTS)
        .required_or("what it does: effect = \"media-error\"")?;
    let only = |key: &str, owner: EffectName, with: &str| {
        if name == owner {
            Ok(())
        } else {
            table.refuse(key, with)
        }
    };
    only("status", EffectName::Fail, "only with effect = \"fail\"")?;
    only("delay", EffectName::Delay, "only with effect = \"delay\"")?;
    only("timeout", EffectName::Lose, "only with effect = \"lose\"")?;
    only(
        "off",
        EffectName::PowerCut,
        "only with effect = \"power-cut\"",
    )?;
    Ok(match name {
        EffectName::Fail => Effect::Fail(
            table
                .choice("status", &STATUSES)
                .or(Status::INTERNAL_ERROR)?,
        ),
        EffectName::MediaError => Effect::MediaError,
        EffectName::ReadOnly => Effect::ReadOnly,
        EffectName::Offline => Effect::Offline,
        EffectName::Delay => Effect::Delay(Nanos(
            table
                .duration_ns("delay")
                .within(0..=TIME_MAX_NS)
                .required_or("how much later: delay = \"5ms\"")?,
        )),
        EffectName::Lose => Effect::Lose {
            timeout: time(table, "timeout")?,
        },
        EffectName::PowerCut => Effect::PowerCut {
            off: time(table, "off")?.unwrap_or(Nanos::ZERO),
        },
    })
}

/// Effects and triggers that make sense together.
fn check(table: &Table<'_>, when: &Match, effect: Effect) -> Result<(), Reported> {
    let fail = |valid: &str| -> Result<(), Reported> {
        table
            .get("effect", |item| {
                Err::<(), _>(item.fail("does not go with what sets it off", valid))
            })
            .optional()?;
        Ok(())
    };
    let at_time = matches!(when.trigger, Trigger::Time(_));
    match effect {
        Effect::MediaError => match when.trigger {
            Trigger::Read | Trigger::Compare | Trigger::Verify | Trigger::Copy => Ok(()),
            _ => fail("media-error needs on = \"read\", \"compare\", \"verify\" or \"copy\""),
        },
        Effect::ReadOnly | Effect::Offline => match when.trigger {
            Trigger::Write | Trigger::Append | Trigger::WriteZeroes => Ok(()),
            Trigger::Time(_) if when.zones.is_some() => Ok(()),
            Trigger::Time(_) => fail("at a time, say which zones fail: zones = \"3\""),
            _ => fail("a zone fails by on = \"write\", \"append\" or \"time\""),
        },
        Effect::Fail(_) | Effect::Delay(_) | Effect::Lose { .. } if at_time => {
            fail("at a time: read-only, offline or power-cut")
        }
        _ => Ok(()),
    }?;
    if at_time && when.namespace.is_some() && when.zones.is_none() {
        table.refuse("namespace", "a loss of power is one of the whole drive")?;
    }
    if at_time {
        for key in ["lbas", "from", "until", "skip", "count", "probability"] {
            table.refuse(key, "not with on = \"time\"")?;
        }
    }
    Ok(())
}

fn zones(item: &Item<'_>) -> Result<RangeInclusive<u32>, Reported> {
    let range = item.range()?;
    match (u32::try_from(*range.start()), u32::try_from(*range.end())) {
        (Ok(first), Ok(last)) => Ok(first..=last),
        _ => Err(item.fail("no drive has such zones", "zone numbers below 2^32")),
    }
}

fn time(table: &Table<'_>, key: &str) -> Result<Option<Nanos>, Reported> {
    let time = table.duration_ns(key).within(0..=TIME_MAX_NS).optional()?;
    Ok(time.map(Nanos))
}
