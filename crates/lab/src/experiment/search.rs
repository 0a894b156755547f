//! Reading `[search]`: what may be changed, and what for.

use zonelab_config::{Item, Reported, Table};

use super::read::{axis_text, tables};
use crate::metrics::NAMES;
use crate::space::Knob;
use crate::space::{Goal, METRIC_M, ObjectiveSpec, Sample};

/// Most candidates of a search.
pub const MAX_BUDGET: u32 = 100_000;

/// A search over settings of the experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchSpec {
    /// What may be changed: `KEY=V1,V2` or `KEY=LOW..HIGH`.
    pub over: Vec<Knob>,
    /// What is better.
    pub objectives: Vec<ObjectiveSpec>,
    /// How candidates are chosen; `None`: as the keys suggest.
    pub method: Option<Sample>,
    /// Candidates to evaluate, at most.
    pub budget: Option<u32>,
    /// Weights of throughput and of latency in M^Inter, which add up to 1;
    /// `None`: those of the `[[interference]]`.
    pub weights: Option<(f64, f64)>,
    /// Published results, to be shown beside ours.
    pub published: Vec<PublishedSetting>,
}

/// A published result of some settings.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedSetting {
    /// Its name.
    pub label: String,
    /// Values of the objectives, in their order.
    pub values: Vec<f64>,
}

pub(super) fn search(table: &Table<'_>) -> Result<Option<SearchSpec>, Reported> {
    if !table.is_present() {
        return Ok(None);
    }
    let over = table.list("over", |item| {
        Knob::parse(item.str()?).map_err(|wrong| item.fail(wrong.what, wrong.valid))
    });
    let over = over.or(Vec::new());
    let objectives = tables(table, "objective", objective);
    let methods = Sample::OF_SEARCH.map(|method| (method.name(), method));
    let method = table.choice("method", &methods).optional();
    let budget = table.u32("budget").within(1..=MAX_BUDGET).optional();
    let weights = table.get("weights", weights).optional();
    let published = tables(table, "published", |table| {
        let label = table.string("label").required();
        let values = table.list("values", Item::f64).required();
        Ok(PublishedSetting {
            label: label?,
            values: values?,
        })
    });
    Ok(Some(SearchSpec {
        over: over?,
        objectives: objectives?,
        method: method?,
        budget: budget?,
        weights: weights?,
        published: published?,
    }))
}

/// `[[objective]]`: which way is better, and of what.
pub fn objective(table: &Table<'_>) -> Result<ObjectiveSpec, Reported> {
    let goals = Goal::ALL.map(|goal| (goal.name(), goal));
    let goal = table.choice("goal", &goals).required();
    let series = table.string("series").optional();
    let job = table.string("job").optional();
    let names = NAMES.iter().map(|(name, _)| *name).chain([METRIC_M]);
    let names: Vec<(&str, &str)> = names.map(|name| (name, name)).collect();
    let metric = table.choice("metric", &names).required();
    let x = table.list("x", axis_text).or(Vec::new());
    Ok(ObjectiveSpec {
        goal: goal?,
        series: series?,
        job: job?,
        metric: metric?.to_owned(),
        x: x?,
    })
}

/// `weights = [0.5, 0.5]`.
pub fn weights(item: &Item<'_>) -> Result<(f64, f64), Reported> {
    let pair = match item.items()?.as_slice() {
        [alpha, beta] => (alpha.f64()?, beta.f64()?),
        _ => return Err(item.fail("these are not two numbers", "write [0.5, 0.5]")),
    };
    crate::space::weights(pair).map_err(|wrong| item.fail(wrong.what, wrong.valid))
}
