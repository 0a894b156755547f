//! The host of an experiment: its cores, its storage stack, its schedulers.

use std::num::NonZeroU32;

use zonelab_config::{Reported, Table};
use zonelab_device::Nanos;
use zonelab_host::scheduler::SchedulerSpec;
use zonelab_sim::stack::{Stack, stacks};
use zonelab_sim::{BlockCosts, HostCosts};

use super::read::{LONGEST, time};
use super::scheduler;

/// Longest time that an operation costs the host, so that sums of times need no care.
const COSTLIEST: (u64, &str) = (1_000_000_000, "1s");

/// The machine that runs the jobs of an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostModel {
    /// What operations cost.
    pub stack: StackModel,
    /// Threads start at random within this time.
    pub start_spread: Nanos,
    /// Cores that the threads of all jobs share in time slices, and the length
    /// of a slice; `None`: each has a core of its own.
    pub cores: Option<(NonZeroU32, Nanos)>,
    /// The scheduler between the queues and the drive; `None`: commands go to
    /// the drive as they come, and no block layer costs anything.
    pub scheduler: Option<SchedulerModel>,
}

/// What a storage stack costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackModel {
    /// Cost of each operation.
    pub costs: HostCosts,
    /// How much longer a sleep is than asked for.
    pub sleep_slack: Nanos,
    /// What the block layer costs, if there is a scheduler.
    pub block: BlockCosts,
}

/// A scheduler, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerModel {
    /// Which, with its settings.
    pub spec: SchedulerSpec,
    /// Time that each command takes under its lock.
    pub cost: Nanos,
}

/// A scheduler that series choose by name.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerTemplate {
    /// Its name.
    pub name: String,
    /// What it is.
    pub model: SchedulerModel,
}

/// How jobs reach an emulated drive in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// Commands go to the drive as they are.
    #[default]
    Direct,
    /// Through the driver for PCIe: rings, doorbells and PRPs, with a controller in memory
    /// at the other end.
    Pcie,
    /// Through the flash translation layer of the host, which makes a conventional
    /// namespace of the zones.
    Ftl,
}

impl Via {
    /// Names in files, and what they stand for.
    pub(super) const NAMES: [(&str, Self); 3] = [
        ("direct", Self::Direct),
        ("pcie", Self::Pcie),
        ("ftl", Self::Ftl),
    ];

    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Pcie => "pcie",
            Self::Ftl => "ftl",
        }
    }
}

/// The table of the host.
#[derive(Clone, Debug, Default)]
pub(super) struct HostTable {
    /// The host, without a scheduler.
    pub(super) model: HostModel,
    /// Name of its scheduler.
    pub(super) scheduler: Option<String>,
    /// How jobs reach the drive.
    pub(super) via: Via,
}

/// The table of the host.
pub(super) fn host(table: &Table<'_>) -> Result<HostTable, Reported> {
    let stack = stack(table, &StackModel::default());
    let spread = time(table, "start_spread", LONGEST).or(0);
    let scheduler = table.string("scheduler").optional();
    let via = table.choice("via", &Via::NAMES).or(Via::Direct);
    let cores = table.u32("cores").within(1..=4096).optional()?;
    let cores = match cores.and_then(NonZeroU32::new) {
        None => {
            table.refuse(
                "slice",
                "only with `cores`: each thread has a core of its own",
            )?;
            None
        }
        Some(cores) => {
            let slice = time(table, "slice", LONGEST).within(1..=LONGEST.0);
            let why = "threads share `cores` in slices: slice = \"16ms\"";
            Some((cores, Nanos(slice.required_or(why)?)))
        }
    };
    let model = HostModel {
        stack: stack?,
        start_spread: Nanos(spread?),
        cores,
        scheduler: None,
    };
    Ok(HostTable {
        model,
        scheduler: scheduler?,
        via: via?,
    })
}

/// A stack: one by name, or `base`, with what the table says otherwise.
pub(super) fn stack(table: &Table<'_>, base: &StackModel) -> Result<StackModel, Reported> {
    let names: Vec<(&str, &Stack)> = stacks().iter().map(|stack| (&*stack.name, stack)).collect();
    let named = table.choice("stack", &names).optional();
    // The keys that say otherwise are looked at even if there is no such stack.
    let base = named.ok().flatten().map_or(*base, StackModel::of);
    let cost = |key, default: Nanos| time(table, key, COSTLIEST).or(default.0).map(Nanos);
    let submit_ns = cost("submit", base.costs.submit_ns);
    let path_ns = cost("path", base.costs.path_ns);
    let complete_ns = cost("complete", base.costs.complete_ns);
    let turn_ns = cost("turn", base.costs.turn_ns);
    let jitter_ns = cost("jitter", base.costs.jitter_ns);
    let hiccup_one_in = table.u64("hiccup_one_in").or(base.costs.hiccup_one_in);
    let hiccup_ns = cost("hiccup", base.costs.hiccup_ns);
    let sleep_slack = cost("sleep_slack", base.sleep_slack);
    let merged_ns = cost("merged", base.block.merged_ns);
    let tick_ns = cost("tick", base.block.tick_ns);
    named?;
    Ok(StackModel {
        costs: HostCosts {
            submit_ns: submit_ns?,
            path_ns: path_ns?,
            complete_ns: complete_ns?,
            turn_ns: turn_ns?,
            jitter_ns: jitter_ns?,
            hiccup_one_in: hiccup_one_in?,
            hiccup_ns: hiccup_ns?,
        },
        sleep_slack: sleep_slack?,
        block: BlockCosts {
            merged_ns: merged_ns?,
            tick_ns: tick_ns?,
            ..base.block
        },
    })
}

impl StackModel {
    /// Its name, if it is one that has a name: `free` costs nothing, and one that a file
    /// describes is its `own`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        if *self == Self::default() {
            return "free";
        }
        let known = stacks().iter().find(|stack| Self::of(stack) == *self);
        known.map_or("own", |stack| &stack.name)
    }

    fn of(stack: &Stack) -> Self {
        Self {
            costs: stack.costs,
            sleep_slack: stack.sleep_slack_ns,
            block: BlockCosts {
                merged_ns: stack.merged_ns,
                tick_ns: stack.tick_ns,
                ..BlockCosts::default()
            },
        }
    }
}

impl HostModel {
    /// The costs of the block layer, those of the scheduler among them.
    #[must_use]
    pub fn block_costs(&self, scheduler: &SchedulerModel) -> BlockCosts {
        BlockCosts {
            dispatch_ns: scheduler.cost,
            ..self.stack.block
        }
    }
}

/// A scheduler of the file. Without `with_values` only its name is read.
pub(super) fn scheduler_template(
    table: &Table<'_>,
    with_values: bool,
) -> Result<SchedulerTemplate, Reported> {
    let name = table.string("name").required();
    if !with_values {
        let _ = table.keys();
        return Ok(SchedulerTemplate {
            name: name?,
            model: SchedulerModel::default_of(SchedulerSpec::None),
        });
    }
    let spec = scheduler::spec(table);
    let cost = time(table, "cost", COSTLIEST).optional();
    let (name, spec, cost) = (name?, spec?, cost?);
    let model = SchedulerModel::default_of(spec);
    Ok(SchedulerTemplate {
        name,
        model: SchedulerModel {
            cost: cost.map_or(model.cost, Nanos),
            ..model
        },
    })
}
