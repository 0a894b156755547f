//! Reading statements: `[[check]]`.

use std::collections::BTreeSet;

use zonelab_config::{Item, Reported, Table};

use super::read::{axis_text, metric};
use super::{Check, Derived, Experiment, Formula, Measured, Needs};
use crate::space::{Expression, Meaning, Word, Wrong};

/// The keys of which a statement has one, each a way to calculate its value.
const FORMS: &str = "`value`, `ratio`, `change`, `formula`, or `smaller` and `larger`";

const KEYS: [&str; 5] = ["value", "ratio", "change", "formula", "smaller"];

/// A statement.
pub(super) fn check(table: &Table<'_>) -> Result<Check, Reported> {
    let id = table.string("id").optional();
    let says = table.string("says").required();
    let value = derived(table);
    let published = table.get("published", Item::f64).optional();
    let input = table.string("input").optional();
    let at_least = table.get("at_least", Item::f64).optional();
    let at_most = table.get("at_most", Item::f64).optional();
    let (published, at_least, at_most) = (published?, at_least?, at_most?);
    let (input, (value, factor)) = (input?, value?);
    if factor.is_some() {
        table.refuse("at_least", "`smaller` and `larger` are bounded by `factor`")?;
    }
    let needs = match (at_least.or(factor), at_most) {
        (Some(least), None) => Needs::AtLeast(least),
        (None, Some(most)) => Needs::AtMost(most),
        (Some(_), Some(_)) => {
            table.refuse("at_most", "one bound; a second one is a second check")?;
            Needs::Published
        }
        (None, None) if published.is_some() => {
            if published == Some(value.nothing()) {
                table.refuse(
                    "published",
                    "a size of nothing takes `at_least` or `at_most`",
                )?;
            }
            Needs::Published
        }
        (None, None) => {
            let hint = "the size that is published, or a bound: `at_least`, `at_most`";
            table.get("published", Item::f64).required_or(hint)?;
            Needs::Published
        }
    };
    Ok(Check {
        id: id?,
        says: says?,
        value,
        needs,
        published,
        input,
        unjudged: None,
    })
}

/// What a statement is about, and the factor of one that has `smaller` and
/// `larger`.
fn derived(table: &Table<'_>) -> Result<(Derived, Option<f64>), Reported> {
    let one = |item: &Item<'_>| measured(&item.table()?);
    let list = |item: &Item<'_>| {
        let all: Vec<_> = item.items()?.iter().map(one).collect();
        all.into_iter().collect::<Result<Vec<_>, _>>()
    };
    let two = |item: &Item<'_>| match list(item)?.as_slice() {
        [a, b] => Ok((a.clone(), b.clone())),
        _ => Err(item.fail(
            "these are not two measurements",
            "write two: [{ .. }, { .. }]",
        )),
    };
    let value = table.get("value", one).optional();
    let ratio = table.get("ratio", two).optional();
    let change = table.get("change", two).optional();
    let formula = formula(table);
    let smaller = table.get("smaller", one).optional();
    let larger = table.get("larger", one).optional();
    let factor = table.get("factor", Item::f64).optional();
    let (smaller, larger, factor) = (smaller?, larger?, factor?);
    let mut forms = Vec::new();
    forms.extend(value?.map(Derived::Value));
    forms.extend(ratio?.map(|(a, b)| Derived::Ratio(a, b)));
    forms.extend(change?.map(|(a, b)| Derived::Change(a, b)));
    forms.extend(formula?.map(Derived::Formula));
    let ordered = match (smaller, larger) {
        (Some(smaller), Some(larger)) => {
            forms.push(Derived::Ratio(larger, smaller));
            true
        }
        (Some(_), None) => {
            table.get("larger", one).required()?;
            false
        }
        (None, Some(_)) => {
            table.get("smaller", one).required()?;
            false
        }
        (None, None) => false,
    };
    if factor.is_some() && !ordered {
        table.refuse("factor", "only with `smaller` and `larger`")?;
    }
    match forms.len() {
        1 => {}
        0 => {
            let hint = format!("a check has one of {FORMS}");
            forms.push(Derived::Value(table.get("value", one).required_or(&hint)?));
        }
        _ => {
            let stated = KEYS.into_iter().filter(|key| table.has(key));
            let hint = format!("a check has only one of {FORMS}");
            for key in stated.skip(1) {
                table.refuse(key, &hint)?;
            }
        }
    }
    Ok((forms.swap_remove(0), ordered.then(|| factor.unwrap_or(1.0))))
}

/// A formula, and its variables in alphabetical order, as their values are given to it.
pub(super) fn expression(text: &str) -> Result<(Expression, BTreeSet<String>), Wrong> {
    let words = |names: &mut dyn FnMut(&str) -> usize| {
        Expression::parse(text, &mut |word| match word {
            Word::Name(name) => Ok(Meaning::Variable(names(name))),
            Word::Text(text) => Err(Wrong::new(
                format!("\"{text}\" is a text"),
                "a formula has numbers and the names of measurements",
            )),
        })
    };
    let mut names = BTreeSet::new();
    words(&mut |name| {
        names.insert(name.to_owned());
        0
    })?;
    let place = |name: &str| names.iter().position(|one| one == name);
    // Every name was put there by the first reading.
    let expression = words(&mut |name| place(name).unwrap_or(usize::MAX))?;
    Ok((expression, names))
}

/// `formula = "a / b"` with its variables in the table `of`.
fn formula(table: &Table<'_>) -> Result<Option<Formula>, Reported> {
    let of = table.table("of");
    let mut variables = Vec::new();
    for name in of.keys() {
        variables.push((name.to_owned(), measured(&of.table(name))));
    }
    let unit = table.string("unit").or("ratio".to_owned());
    let parsed = table.get("formula", |item| {
        let text = item.str()?;
        let (_, names) = expression(text).map_err(|wrong| item.fail(wrong.what, wrong.valid))?;
        if names.is_empty() {
            return Err(item.fail("it is about no measurement", "write \"a / b\""));
        }
        if !names.iter().eq(variables.iter().map(|(name, _)| name)) {
            let names: Vec<String> = names.into_iter().collect();
            let what = format!("its variables are {}", names.join(", "));
            return Err(item.fail(what, "the table `of` has exactly these"));
        }
        Ok(text.to_owned())
    });
    let text = parsed.optional();
    if !table.has("formula") {
        table.refuse("of", "only with `formula`")?;
        table.refuse("unit", "only with `formula`")?;
    }
    let (text, unit) = (text?, unit?);
    let of: Vec<(String, Measured)> = variables
        .into_iter()
        .map(|(name, one)| Ok((name, one?)))
        .collect::<Result<_, _>>()?;
    Ok(text.map(|text| Formula { text, of, unit }))
}

fn measured(table: &Table<'_>) -> Result<Measured, Reported> {
    let path = table.path().to_owned();
    if let Some(series) = table.string("interference").optional()? {
        return Ok(Measured::Interference { path, series });
    }
    let series = table.string("series").required();
    let x = table.get("x", axis_text).or("1".to_owned());
    let job = table.string("job").required();
    let metric = table.get("metric", metric).required();
    Ok(Measured::Metric {
        path,
        series: series?,
        x: x?,
        job: job?,
        metric: metric?,
    })
}
impl Experiment {
    /// Whether something of one that nobody published is judged by `kiops`, the mean of samples.
    pub(crate) fn judges_samples(&self) -> bool {
        let metrics = self.compare.iter().flat_map(|of| &of.metrics);
        let metrics = metrics.chain(self.differences.iter().flat_map(|of| &of.metrics));
        let throughput = self.interference.iter().map(|of| &of.throughput);
        let measured = self.checks.iter().flat_map(|check| match &check.value {
            Derived::Value(of) => vec![of],
            Derived::Ratio(a, b) | Derived::Change(a, b) => vec![a, b],
            Derived::Formula(formula) => formula.of.iter().map(|(_, of)| of).collect(),
        });
        let measured = measured.filter_map(|of| match of {
            Measured::Metric { metric, .. } => Some(metric),
            Measured::Interference { .. } => None,
        });
        let mut metrics = metrics.chain(throughput).chain(measured);
        self.source.is_empty() && metrics.any(|metric| metric == "kiops")
    }
}
