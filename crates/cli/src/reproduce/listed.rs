//! `zonelab reproduce --list`: what there is.

use serde_json::{Value, json};
use zonelab_lab::experiment::Experiment;
use zonelab_lab::table::{Cell, Column, Table};
use zonelab_lab::{catalogue, library};

use crate::exit::{Exit, Failure};
use crate::files::Files;
use crate::{console, session};

/// A built-in experiment.
fn experiment(id: &str, text: &str) -> Result<Experiment, Failure> {
    let file = format!("{id}.toml");
    let loaded = session::load(&Files::default(), (&file, text), &[], false)?;
    Ok(loaded.experiment)
}

/// For programs.
///
/// # Errors
/// It cannot be printed.
pub(super) fn as_json() -> Result<Exit, Failure> {
    let (mut experiments, mut examples): (Vec<Value>, Vec<Value>) = Default::default();
    for id in library::ids() {
        let of = experiment(id, library::text(id).unwrap_or_default())?;
        experiments.push(json!({ "id": id, "title": of.title, "source": of.source }));
    }
    for (id, text) in library::examples() {
        examples.push(json!({ "id": id, "title": experiment(id, text)?.title }));
    }
    let results = catalogue::results().map_err(Failure::input)?;
    let not_built = results.iter().filter_map(|of| {
        let missing = of.not_built.as_ref()?;
        Some(json!({ "id": of.id, "title": of.title, "missing": missing }))
    });
    let elsewhere = results.iter().filter_map(|of| {
        let place = of.elsewhere.as_ref()?;
        Some(json!({ "id": of.id, "where": place }))
    });
    let value = json!({
        "schema": 1,
        "experiments": experiments,
        "examples": examples,
        "not_built": not_built.collect::<Vec<_>>(),
        "elsewhere": elsewhere.collect::<Vec<_>>(),
    });
    console::print(&format!("{value:#}\n"))?;
    Ok(Exit::Done)
}

/// For people.
///
/// # Errors
/// It cannot be printed.
pub(super) fn as_text() -> Result<Exit, Failure> {
    let mut table = Table::new([
        Column::word("id"),
        Column::text("title"),
        Column::text("source"),
    ]);
    for id in library::ids() {
        let experiment = experiment(id, library::text(id).unwrap_or_default())?;
        table.push([id, &experiment.title, &experiment.source].map(Cell::from));
    }
    let mut text = table.to_text(&console::style());
    let mut table = Table::new([Column::word("example"), Column::text("title")]);
    for (id, example) in library::examples() {
        table.push([id, &experiment(id, example)?.title].map(Cell::from));
    }
    text.push_str("\nFor `zonelab run ID`, compared with nothing:\n\n");
    text.push_str(&table.to_text(&console::style()));
    let missing = catalogue::results().map_err(Failure::input)?;
    let mut table = Table::new([
        Column::word("not built"),
        Column::text("title"),
        Column::text("missing"),
    ]);
    for result in &missing {
        if let Some(why) = &result.not_built {
            table.push([&result.id, &result.title, why].map(Cell::from));
        }
    }
    if missing.iter().any(|result| result.not_built.is_some()) {
        text.push('\n');
        text.push_str(&table.to_text(&console::style()));
    }
    let mut table = Table::new([Column::word("result"), Column::text("what is no row")]);
    for result in &missing {
        if let Some(elsewhere) = &result.elsewhere {
            table.push([&result.id, elsewhere].map(Cell::from));
        }
    }
    text.push('\n');
    text.push_str(&table.to_text(&console::style()));
    console::print(&text)?;
    Ok(Exit::Done)
}
