//! The page of a search: all of its candidates, to look through.

use super::Row;
use crate::explore::{Column, Explorer, Point, Role, Values, quoted};
use crate::search::Search;

/// The page; `said` are the summary and what a reader must know, `still` what is shown without
/// scripts.
pub(super) fn html(search: &Search, rows: &[Row], said: (&str, &[String]), still: &str) -> String {
    let (summary, notes) = said;
    let mut columns: Vec<Column> = search
        .knobs()
        .iter()
        .enumerate()
        .map(|(index, knob)| {
            let texts: Vec<Option<&str>> = rows
                .iter()
                .map(|row| row.values[index].as_deref())
                .collect();
            let (values, unit) = Values::of_texts(&texts);
            Column {
                name: knob.key.clone(),
                unit,
                role: Role::Input,
                values,
            }
        })
        .collect();
    columns.extend(
        search
            .objectives()
            .iter()
            .enumerate()
            .map(|(index, objective)| Column {
                name: objective.name(),
                unit: objective.unit().to_owned(),
                role: Role::Objective(objective.goal),
                values: Values::Numbers(rows.iter().map(|row| row.objectives[index]).collect()),
            }),
    );
    let points: Vec<Point> = rows.iter().map(|row| point(search, row)).collect();
    let commands = &search.commands;
    let notices: Vec<String> = std::iter::once(summary.to_owned())
        .chain(notes.iter().cloned())
        .collect();
    let (before, after) = &commands.run;
    let page = Explorer {
        kind: "Search",
        title: &search.experiment().title,
        tool: &commands.tool,
        seed: search.seed(),
        command: &commands.search,
        command_of_point: (before, after),
        command_note: "Runs every series of the experiment with these settings and the same seed.",
        files_note: "The same numbers are in search.csv and search.json, beside this page.",
        notices: &notices,
        columns: &columns,
        points: &points,
        still,
    };
    page.to_html()
}

fn point(search: &Search, row: &Row) -> Point {
    let pairs = search.knobs().iter().zip(&row.values);
    let settings = pairs.filter_map(|(knob, value)| {
        let setting = format!("{}={}", knob.key, value.as_ref()?);
        Some(format!("--set {}", quoted(&setting)))
    });
    let note = match (&row.refused, row.is_own) {
        (Some(why), _) => format!("Refused: {why}"),
        (None, true) => "These are the settings of the file.".to_owned(),
        (None, false) => String::new(),
    };
    Point {
        // The file has its own settings without being told.
        command: if row.is_own {
            String::new()
        } else {
            settings.collect::<Vec<_>>().join(" ")
        },
        note,
    }
}
