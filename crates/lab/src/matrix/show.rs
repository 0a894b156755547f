//! A matrix as a table, JSON, CSV and a heat map.

use std::fmt::Write as _;

use super::{Cell, Matrix};
use crate::figure::{HeatCell, HeatMap};
use crate::output::csv_field;
use crate::table::{self, Cell as Field, Column, Style, Table};

/// Version of the matrix files. Within a version keys are only added.
const SCHEMA: u32 = 1;

impl Matrix {
    /// The matrix for a terminal: numbers first, then why.
    #[must_use]
    pub fn to_text(&self, style: &Style) -> String {
        let mut columns = vec![Column::text("M, foreground \\ background")];
        columns.extend(self.background.iter().map(|name| Column::number(name)));
        let mut matrix = Table::new(columns);
        for front in &self.foreground {
            let mut row = vec![Field::from(front.clone())];
            row.extend(self.background.iter().map(|back| {
                let text = self.cell(front, back).map_or("-".to_owned(), in_short);
                Field::from(text)
            }));
            matrix.push(row);
        }
        let mut why = Table::new([
            Column::text("cell"),
            Column::text("at"),
            Column::text("what the foreground waits for, against alone"),
        ]);
        for cell in &self.cells {
            if let Some(explanation) = &cell.explanation {
                let at = explanation.x.as_str();
                why.push([&explanation.series, at, &explanation.text].map(Field::from));
            }
        }
        let weights = format!(
            "alpha {} (throughput), beta {} (P95)",
            self.alpha, self.beta
        );
        format!(
            "{}: {}, {weights}; ours (published)\n{}\n{}",
            self.id,
            self.title,
            matrix.to_text(style),
            why.to_text(style)
        )
    }

    /// `{"schema", "matrix"}`, the same bytes for the same matrix.
    #[must_use]
    pub fn to_json(&self) -> String {
        let value = serde_json::json!({ "schema": SCHEMA, "matrix": self });
        let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
        text.push('\n');
        text
    }

    /// One line for each cell, after RFC 4180.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut csv = String::from("foreground,background,m_inter,published,levels,explanation\n");
        let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
        for cell in &self.cells {
            let text = cell.explanation.as_ref().map_or("", |of| &of.text);
            // Writing to a string does not fail.
            let _ = writeln!(
                csv,
                "{},{},{},{},{},{}",
                csv_field(&cell.foreground),
                csv_field(&cell.background),
                number(cell.m_inter),
                number(cell.published),
                cell.levels.len(),
                csv_field(text)
            );
        }
        csv
    }

    /// The matrix as a heat map.
    #[must_use]
    pub fn heat_map(&self) -> HeatMap {
        let cell = |front: &String, back: &String| {
            let cell = self.cell(front, back)?;
            let published = cell.published.map(|m| format!("paper {m}"));
            let why = cell.explanation.as_ref().map(|of| of.text.clone());
            Some(HeatCell {
                value: cell.m_inter?,
                note: published.unwrap_or_default(),
                tooltip: why.unwrap_or_default(),
            })
        };
        HeatMap {
            title: format!("{}: {}", self.id, self.title),
            rows: self.foreground.clone(),
            columns: self.background.clone(),
            cells: self
                .foreground
                .iter()
                .map(|front| {
                    self.background
                        .iter()
                        .map(|back| cell(front, back))
                        .collect()
                })
                .collect(),
            width: None,
        }
    }
}

/// `0.25 (0.26)`.
fn in_short(cell: &Cell) -> String {
    let ours = cell.m_inter.map_or("-".to_owned(), table::number);
    match cell.published {
        Some(published) => format!("{ours} ({published})"),
        None => ours,
    }
}
