//! What a search came to: a table, files, a figure.

mod figure;
mod files;
mod page;

use std::collections::BTreeMap;

use zonelab_lab::table::{Cell, Column, Style, Table, measured};
use zonelab_page::sections;

use super::{Evaluation, Search};
use crate::sweep::{Goal, Objective, front};

/// Settings with what they came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Values of the keys as they are written; `None`: the file does not state one.
    pub values: Vec<Option<String>>,
    /// Values of the objectives.
    pub objectives: Vec<Option<f64>>,
    /// Whether nothing beats it.
    pub is_on_front: bool,
    /// Whether these are the settings of the file.
    pub is_own: bool,
    /// Why it cannot be run, if so.
    pub refused: Option<String>,
}

/// What a search came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Files of results: name and content.
    pub files: Vec<(String, String)>,
    /// The content of `search.json`.
    pub json: String,
    /// All settings, the front first.
    pub rows: Vec<Row>,
    columns: Vec<Column>,
    /// Of the objectives.
    units: Vec<&'static str>,
    published: Vec<(String, Vec<f64>)>,
    summary: String,
    notes: Vec<String>,
}

impl Outcome {
    pub(super) fn of(
        search: &Search,
        evaluations: &[Evaluation<'_>],
        configuration: &serde_json::Value,
        warnings: Vec<String>,
    ) -> Self {
        let rows = rows(search, evaluations);
        let json = files::json(search, evaluations, &rows, configuration);
        let sorted = sorted(search, &rows);
        let svg = figure::front(search, &sorted).to_svg();
        let mut outcome = Self {
            files: Vec::new(),
            json,
            columns: columns(search),
            units: search.objectives().iter().map(Objective::unit).collect(),
            published: search
                .published
                .iter()
                .map(|one| (one.label.clone(), one.values.clone()))
                .collect(),
            summary: summary(search, &sorted),
            notes: warnings.into_iter().chain(notes(search, &sorted)).collect(),
            rows: sorted,
        };
        outcome.files = vec![
            ("search.csv".to_owned(), files::csv(search, &outcome.rows)),
            ("search.json".to_owned(), outcome.json.clone()),
            ("search.html".to_owned(), outcome.html(search, &svg)),
            ("front.svg".to_owned(), svg),
        ];
        outcome
    }

    /// The front and the file's own settings, or everything.
    #[must_use]
    pub fn text(&self, all: bool, style: &Style) -> String {
        let mut text = format!("{}\n", self.summary);
        let mut table = Table::new(self.columns.clone());
        for row in self.rows.iter().filter(|row| is_shown(row, all)) {
            table.push(cells(row, &self.units).into_iter().map(Cell::from));
        }
        for (label, values) in &self.published {
            let keys = self.columns.len() - self.units.len() - 2;
            let mut cells = vec![String::new()];
            cells.extend(std::iter::repeat_n("-".to_owned(), keys));
            let values = values.iter().zip(&self.units);
            cells.extend(values.map(|(value, unit)| measured(*value, None, unit)));
            cells.push(format!("published: {label}"));
            table.push(cells.into_iter().map(Cell::from));
        }
        text.push_str(&table.to_text(style));
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        text
    }

    fn html(&self, search: &Search, svg: &str) -> String {
        let header: Vec<&str> = self.columns.iter().map(|c| c.header.as_str()).collect();
        let front = self.rows.iter().filter(|row| is_shown(row, false));
        let front = front.map(|row| cells(row, &self.units));
        let still = sections::figure(svg) + &sections::table(&header, front);
        page::html(search, &self.rows, (&self.summary, &self.notes), &still)
    }
}

fn is_shown(row: &Row, all: bool) -> bool {
    all || row.is_on_front || row.is_own
}

fn columns(search: &Search) -> Vec<Column> {
    let mut columns = vec![Column::word("front")];
    columns.extend(search.knobs().iter().map(|knob| Column::number(&knob.key)));
    columns.extend(search.objectives().iter().map(|objective| {
        let arrow = match objective.goal {
            Goal::Minimize => "min",
            Goal::Maximize => "max",
        };
        Column::number(&format!("{arrow} {}", objective.name()))
    }));
    columns.push(Column::text(""));
    columns
}

fn cells(row: &Row, units: &[&str]) -> Vec<String> {
    let mut cells = vec![if row.is_on_front { "*" } else { "" }.to_owned()];
    let stated = row.values.iter();
    cells.extend(stated.map(|value| value.clone().unwrap_or_else(|| "-".to_owned())));
    let values = row.objectives.iter().zip(units);
    let none = || "-".to_owned();
    cells.extend(
        values.map(|(value, unit)| value.map_or_else(none, |value| measured(value, None, unit))),
    );
    cells.push(match (&row.refused, row.is_own) {
        (Some(why), _) => format!("refused: {why}"),
        (None, true) => "the file's settings".to_owned(),
        (None, false) => String::new(),
    });
    cells
}

/// Rows in the order in which they were evaluated. A candidate that runs what
/// the file runs stands for the file's own settings.
fn rows(search: &Search, evaluations: &[Evaluation<'_>]) -> Vec<Row> {
    let values = |one: &Evaluation<'_>| search.values(one.runs);
    let costs = evaluations.iter().map(|one| search.cost(one.runs));
    let on_front = front(&costs.collect::<Vec<_>>());
    let own = evaluations.iter().find(|one| one.values.is_none());
    let is_same = |one: &Evaluation<'_>| {
        let identities = |one: &Evaluation<'_>| -> BTreeMap<(String, String), String> {
            let runs = one.runs.iter();
            let named = runs.map(|run| ((run.series.clone(), run.x.clone()), run.identity.clone()));
            named.collect()
        };
        own.is_some_and(|own| !own.runs.is_empty() && identities(own) == identities(one))
    };
    let stated = search.pack().adaptive.as_ref();
    let stated = stated.and_then(|adaptive| adaptive.own.clone());
    let row = |(one, is_on_front): (&Evaluation<'_>, bool)| Row {
        values: match one.values {
            Some(texts) => texts.iter().cloned().map(Some).collect(),
            None => stated.clone().unwrap_or_default(),
        },
        objectives: values(one),
        is_on_front,
        is_own: one.values.is_none() || is_same(one),
        refused: one.refused.clone(),
    };
    evaluations.iter().zip(on_front).map(row).collect()
}

/// The front first, each part by the first objective; without the file's own
/// settings where a candidate stands for them.
fn sorted(search: &Search, rows: &[Row]) -> Vec<Row> {
    let own = rows.iter().filter(|row| row.is_own).count();
    let own_evaluation = rows.iter().position(|row| row.is_own);
    // The file's own settings are evaluated first.
    let is_kept = |index: &usize| own < 2 || Some(*index) != own_evaluation;
    let kept = (0..rows.len()).filter(is_kept);
    let mut sorted: Vec<Row> = kept.map(|index| rows[index].clone()).collect();
    let costs = |row: &Row| -> Vec<f64> {
        let pairs = row.objectives.iter().zip(search.objectives());
        pairs
            .map(|(value, objective)| value.map_or(f64::INFINITY, |v| objective.goal.cost(v)))
            .collect()
    };
    sorted.sort_by(|a, b| {
        let by_cost = || {
            let pairs = costs(a).into_iter().zip(costs(b));
            let mut orders = pairs.map(|(a, b)| a.total_cmp(&b));
            let first = orders.find(|order| order.is_ne());
            first.unwrap_or(std::cmp::Ordering::Equal)
        };
        b.is_on_front.cmp(&a.is_on_front).then_with(by_cost)
    });
    sorted
}

fn summary(search: &Search, rows: &[Row]) -> String {
    let on_front = rows.iter().filter(|row| row.is_on_front).count();
    let refused = rows.iter().filter(|row| row.refused.is_some()).count();
    let refused = match refused {
        0 => String::new(),
        refused => format!(", {refused} of them refused"),
    };
    format!(
        "{}: {on_front} of {} settings found that no other of them beats{refused} ({}, seed {})",
        search.experiment().id,
        rows.len(),
        search.method().name(),
        search.seed()
    )
}

fn notes(search: &Search, rows: &[Row]) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, knob) in search.knobs().iter().enumerate() {
        let front = rows.iter().filter(|row| row.is_on_front && !row.is_own);
        let mut values: Vec<u64> = front
            .filter_map(|row| knob.value_of(row.values[index].as_ref()?))
            .filter(|value| knob.is_at_bound(*value))
            .collect();
        values.sort_unstable();
        values.dedup();
        // Nothing is below zero.
        values.retain(|value| *value > 0);
        let ends: Vec<String> = values.iter().map(|value| knob.text(*value)).collect();
        if !ends.is_empty() {
            notes.push(format!(
                "{}: the front reaches {}, where its range ends: wider bounds may find more",
                knob.key,
                ends.join(" and ")
            ));
        }
    }
    let is_missing = |row: &&Row| row.refused.is_none() && row.objectives.contains(&None);
    match rows.iter().filter(is_missing).count() {
        0 => {}
        missing => notes.push(format!(
            "{missing} settings have no value for some objective: nothing completed there while \
             it was measured, and they are not on the front"
        )),
    }
    notes
}
