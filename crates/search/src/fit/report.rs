//! What a fit came to: a table, JSON, a page, the profile.

use serde_json::json;

use super::fitting::{Compared, Fit, Stopped};
use super::found::{Combination, Found, Known as KnownShare, Mechanism};
use super::known::Known;
use super::parameters::profile_text;
use zonelab_lab::output::csv_field;
use zonelab_lab::space::Quantity;
use zonelab_lab::table::{Cell, Column, Style, Table};
use zonelab_page::sections::{self, Page};

/// Version of `fit.json`. Within a version keys are only added.
const SCHEMA: u32 = 1;
/// Mechanisms and numbers, as tables and pages head them.
const HEADER: [&str; 4] = ["parameter", "value", "95 % interval", "known"];

/// What a terminal shows.
#[must_use]
pub fn text(fit: &Fit, style: &Style) -> String {
    let mut table = Table::new([
        Column::text(HEADER[0]),
        Column::number(HEADER[1]),
        Column::word(HEADER[2]),
        Column::word(HEADER[3]),
    ]);
    for number in &fit.numbers {
        table.push(row(number).map(|cell| Cell::from(cell.as_str())));
    }
    let mut text = table.to_text(style);
    let mut table = Table::new([
        Column::text("mechanism"),
        Column::word("found"),
        Column::text("cannot be told from"),
    ]);
    for one in &fit.mechanisms {
        let rivals = one.rivals.join(", ");
        table.push([one.name, one.choice, &rivals].map(Cell::from));
    }
    text.push('\n');
    text.push_str(&table.to_text(style));
    let unknown = unknown(fit);
    if !unknown.is_empty() {
        text.push_str("\ncannot be identified from outside\n");
        for line in unknown {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text.push_str(&format!("\n{}\n", summary(fit)));
    text
}

fn row(number: &Found) -> [String; 4] {
    let [value, low, high] = &number.text;
    let known = match number.known {
        KnownShare::Determined => "yes",
        KnownShare::Open => "no",
    };
    [
        number.key.to_owned(),
        value.clone(),
        format!("{low} to {high}"),
        known.to_owned(),
    ]
}

/// What cannot be identified, and what is known of it all the same.
fn unknown(fit: &Fit) -> Vec<String> {
    let open = fit
        .numbers
        .iter()
        .filter(|one| one.known == KnownShare::Open);
    let mut lines: Vec<String> = open
        .map(|one| {
            let [_, low, high] = &one.text;
            format!("{}: anything from {low} to {high}", one.key)
        })
        .collect();
    lines.extend(fit.combinations.iter().map(combination));
    let undecided = fit.mechanisms.iter().filter(|one| !one.rivals.is_empty());
    lines.extend(undecided.map(|one: &Mechanism| {
        format!(
            "{}: {}, or {}",
            one.name,
            one.choice,
            one.rivals.join(", or ")
        )
    }));
    lines
}

fn combination(one: &Combination) -> String {
    let [first, second] = one.keys;
    let share = 100.0 * one.share;
    match one.kind {
        "sum" => {
            let sum = Quantity::Time.print(one.value.max(0.0) as u64);
            format!("{first} + {second} together: {sum}, give or take {share:.1} %")
        }
        _ => format!(
            "{first} is {:.4} times {second}, give or take {share:.1} %",
            one.value
        ),
    }
}

/// The fit in a line.
fn summary(fit: &Fit) -> String {
    let why = match fit.stopped {
        Stopped::NothingMoreToLearn => "nothing more to learn from the others",
        Stopped::NoMoreProbes => "there are no others",
        Stopped::MostProbes => "as many as allowed",
    };
    let mut errors: Vec<f64> = fit.values.iter().filter_map(error).collect();
    errors.sort_by(f64::total_cmp);
    let median = errors.get(errors.len() / 2).copied().unwrap_or(f64::NAN);
    format!(
        "{} probes ({why}), {} runs of candidates; median error of {} values {:.2} %; errors are {:.1} \
         times what repeats differ by",
        fit.asked.len(),
        fit.runs,
        fit.values.len(),
        100.0 * median,
        fit.misfit
    )
}

fn error(one: &Compared) -> Option<f64> {
    Some((one.ours? / one.measured - 1.0).abs())
}

/// Files of results: name and content. The first is `fit.json`, the second the profile.
#[must_use]
pub fn files(
    known: &Known,
    fit: &Fit,
    (name, tool, command): (&str, &str, &str),
) -> Vec<(&'static str, String)> {
    let json = json!({
        "schema": SCHEMA,
        "tool": tool,
        "device": name,
        "known": known,
        "parameters": fit.numbers,
        "mechanisms": fit.mechanisms,
        "combinations": fit.combinations,
        "not_identified": unknown(fit),
        "probes": fit.asked,
        "stopped": fit.stopped,
        "misfit": fit.misfit,
        "candidate_runs": fit.runs,
    });
    let mut profile = String::from("# Fitted by zonelab fit: see fit.json for intervals.\n");
    for line in unknown(fit) {
        profile.push_str(&format!("# Not identified: {line}\n"));
    }
    let id: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(50)
        .collect();
    let id = format!("fitted-{}", id.trim_matches('-'));
    profile.push_str(&profile_text(known, &fit.design, &fit.at, &id));
    let mut csv = "probe,metric,measured,ours\n".to_owned();
    for one in &fit.values {
        let ours = one.ours.map_or_else(String::new, |ours| ours.to_string());
        csv.push_str(&format!(
            "{},{},{},{ours}\n",
            csv_field(&one.probe),
            one.metric,
            one.measured
        ));
    }
    vec![
        ("fit.json", format!("{json:#}\n")),
        ("profile.toml", profile),
        ("values.csv", csv),
        ("fit.html", page(fit, (name, tool, command))),
    ]
}

fn page(fit: &Fit, (name, tool, command): (&str, &str, &str)) -> String {
    let mut page = Page::new("Fit", name);
    page.notice(&summary(fit));
    page.notice(&format!("{tool}: {command}"));
    let rows = fit.numbers.iter().map(|number| row(number).to_vec());
    page.part("parameters", "Parameters", sections::table(&HEADER, rows));
    let header = ["mechanism", "found", "cannot be told from"];
    let rows = fit.mechanisms.iter().map(|one| {
        let rivals = one.rivals.join(", ");
        vec![one.name.to_owned(), one.choice.to_owned(), rivals]
    });
    page.part("mechanisms", "Mechanisms", sections::table(&header, rows));
    let rows = unknown(fit).into_iter().map(|line| vec![line]);
    page.part(
        "unknown",
        "What cannot be identified from outside",
        sections::table(&["what is possible"], rows),
    );
    let header = ["probe", "metric", "measured", "ours", "error"];
    let rows = fit.values.iter().map(|one| {
        let ours = one
            .ours
            .map_or_else(|| "-".to_owned(), |ours| ours.to_string());
        let error = error(one).map_or_else(|| "-".to_owned(), |e| format!("{:.2} %", 100.0 * e));
        vec![
            one.probe.clone(),
            one.metric.to_owned(),
            one.measured.to_string(),
            ours,
            error,
        ]
    });
    page.part("values", "Values", sections::table(&header, rows));
    page.to_html()
}
